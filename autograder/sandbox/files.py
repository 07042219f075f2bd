"""The files that go into a sandbox with a submission, and the names that may come out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

KnownFiles = dict[str, Any]
"""`known`: name -> state, for files of the working directory that are known outside; `room`: how many bytes of other
files are wanted.
"""


@dataclass
class ChangedFiles:
    """What has changed in the working directory since its files were known."""

    found: dict[str, tuple[Any, bytes]] = field(default_factory=dict)  # name -> (state, content)
    gone: list[str] = field(default_factory=list)


def files_in(reply: Mapping[str, Any], buffers: Sequence[memoryview]) -> ChangedFiles:
    """The changed files that an answer reports, without names that may not be used here."""
    told = reply.get("files")
    if not isinstance(told, dict):
        return ChangedFiles()
    names, states, gone, count = (told.get(key) for key in ("names", "states", "gone", "before"))
    if not (isinstance(names, list) and isinstance(states, list) and isinstance(gone, list)):
        return ChangedFiles()
    if type(count) is not int or not 0 <= count <= len(buffers):
        return ChangedFiles()
    contents = zip(names, states, buffers[count:], strict=False)
    found = {name: (state, bytes(content)) for name, state, content in contents if is_file_name(name)}
    return ChangedFiles(found, [name for name in gone if is_file_name(name)])


def is_file_name(name: object) -> bool:
    """Whether a name from inside is an ordinary relative path that may be used here."""
    if not isinstance(name, str) or not 0 < len(name) <= 200 or "\x00" in name or "\\" in name:
        return False
    parts = name.split("/")
    return len(parts) <= 8 and all(part and not part.startswith(".") and part != "matplotlibrc" for part in parts)


def readable(files: Mapping[str, bytes], max_bytes: int) -> dict[str, bytes]:
    """Those of these files that a notebook may read, up to `max_bytes` in total: no notebooks, which may contain hidden
    tests, and nothing hidden.
    """
    found: dict[str, bytes] = {}
    room = max_bytes
    for name, content in sorted(files.items()):
        hidden = any(part.startswith(".") for part in name.split("/")[:-1])
        if not hidden and not name.lower().endswith(".ipynb") and len(content) <= room:
            room -= len(content)
            found[name] = content
    return found
