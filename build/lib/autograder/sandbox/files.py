"""The files that go into a sandbox with a submission, and the names that may come out of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def is_file_name(name: object) -> bool:
    """Whether a name from inside is an ordinary relative path that may be used here."""
    if not isinstance(name, str) or not 0 < len(name) <= 200 or "\x00" in name or "\\" in name:
        return False
    parts = name.split("/")
    return len(parts) <= 8 and all(part and not part.startswith(".") and part != "matplotlibrc" for part in parts)


def read_files(folder: Path, max_bytes: int) -> dict[str, bytes]:
    """The regular files below a folder, without notebooks (they may hold hidden tests), links and hidden folders;
    until too large.
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
