"""Which files are litter, and how to write files atomically: half a table of marks would be imported like a whole one.

Standard library only, so that `autograder lab` does not wait for Jupyter's libraries when nothing has changed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

LITTER = (
    # macOS
    *("__macosx", "._*", ".ds_store", ".appledouble", ".apdisk", ".fseventsd", ".spotlight-v100", ".temporaryitems"),
    *(".trashes", ".documentrevisions-v100", ".localized", "icon\r"),
    # Windows
    *("thumbs.db", "ehthumbs*.db", "desktop.ini", "$recycle.bin", "system volume information", "*:zone.identifier"),
    # Linux, and disks in a network
    *(".directory", ".trash-*", ".nfs*", ".fuse_hidden*", "@eadir"),
    # programs that have a document open: Word, LibreOffice, JupyterLab
    *("~$*", ".~*"),
)
"""Patterns of names, in lowercase, that operating systems and open programs give to files of their own."""


def is_litter(path: str) -> bool:
    """Whether a file, or a folder on its path, was made by a computer for itself, and not by a person."""
    return any(fnmatchcase(part.casefold(), pattern) for part in path.split("/") for pattern in LITTER)


@contextlib.contextmanager
def atomic_write(target: Path) -> Iterator[Path]:
    """Yield the path of a draft, which is renamed to `target` once it is complete. Raises OSError."""
    draft = target.with_name(f".{os.getpid()}.{threading.get_ident()}.part")  # short, however long target's name is
    try:
        yield draft
        os.replace(draft, target)
    except OSError as error:
        if error.filename in (None, str(draft)):
            error.filename = str(target)
        raise
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def write_file(target: Path, content: bytes) -> None:
    """Write a file in one step, and make its folder if it is missing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as draft:
        draft.write_bytes(content)


def write_if_changed(target: Path, text: str) -> bool:
    """Write a file in one step, unless it already has this text. Returns whether it was written."""
    content = text.encode()
    if target.is_file() and target.read_bytes() == content:
        return False
    write_file(target, content)
    return True


def swap_folders(new: Path, target: Path, old: Path) -> None:
    """Put `new` in place of `target`, which becomes `old`. If that fails, `target` stays as it was."""
    if not os.path.lexists(target):
        os.rename(new, target)
        return
    os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old, target)
        raise


def files_below(folder: Path) -> dict[str, bytes]:
    """The files below a folder by their relative names, without links."""
    return {path: (folder / path).read_bytes() for path, link in sorted(files_and_links(folder)) if not link}


def files_and_links(folder: Path) -> Iterator[tuple[str, bool]]:
    """The files below a folder and whether each is a link. Litter, devices and pipes are left out."""
    for directory, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not is_litter(name)]
        for entry in [*folders, *(name for name in files if not is_litter(name))]:
            path = Path(directory, entry)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) or stat.S_ISREG(mode):
                yield str(path.relative_to(folder)), stat.S_ISLNK(mode)


def _refuse(error: OSError) -> None:
    """Raise the error of listing a folder, which must not pass for an empty one; a missing folder counts as empty."""
    if not isinstance(error, FileNotFoundError):
        raise error
