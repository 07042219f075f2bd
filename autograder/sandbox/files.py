"""The files that go into a sandbox with a submission, and the names that may come out of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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


def read_files(folder: Path, max_bytes: int) -> dict[str, bytes]:
    """The regular files below a folder, up to `max_bytes` in total, without notebooks (they may contain hidden tests),
    databases, links and hidden folders.
    """
    found: dict[str, bytes] = {}
    room = max_bytes
    for root, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if name.lower().endswith((".ipynb", ".db")):
                continue
            try:
                with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                    status = os.fstat(file.fileno())
                    if not stat.S_ISREG(status.st_mode) or status.st_size > room:
                        continue
                    data = file.read(room)
            except OSError:
                continue
            room -= len(data)
            found[str(path.relative_to(folder))] = data
    return found
