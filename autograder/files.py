"""Where the course lies, and files that are there as a whole or not at all: half a table of marks would be imported
like a whole one.

Standard library only, so that `autograder lab` need not wait for Jupyter's libraries when nothing has changed.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
DISTRIBUTION = "mini-autograd-course"


def _installed_course() -> Path:
    """Where a wheel has put the course: pip knows, and each way of installing has a place of its own."""
    from importlib.metadata import PackageNotFoundError, files

    with contextlib.suppress(PackageNotFoundError):
        for file in files(DISTRIBUTION) or ():
            if file.parts[-3:] == (DISTRIBUTION, "course", "gallery.py"):
                return Path(str(file.locate())).resolve().parent
    return PROJECT / "course"


IS_CHECKOUT = (PROJECT / "course" / "lessons").is_dir()
BUILT_IN = PROJECT / "course" if IS_CHECKOUT else _installed_course()


def course_around(folder: Path) -> Path:
    """The course that a folder is in: the folder itself or the nearest one above it that holds `nbgrader_config.py`.
    The built-in course where there is none, and in a checkout outside of its courses.
    """
    for place in (folder, *folder.parents):
        if (place / "nbgrader_config.py").is_file():
            return place
        if IS_CHECKOUT and place == PROJECT:
            break
    return BUILT_IN


COURSE = course_around(Path.cwd())
"""The course that commands are about, unless told otherwise: the one in which they are given, or the built-in one."""
HOME = PROJECT if IS_CHECKOUT else Path.cwd()
"""Below it go the folders that commands make, unless told otherwise."""


@contextlib.contextmanager
def atomic_write(target: Path) -> Iterator[Path]:
    """Where to write what is to be `target`: it takes that name when all is written. Raises OSError."""
    draft = target.with_name(f".{os.getpid()}.{threading.get_ident()}.part")  # short, however long the other is
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
    """Write a file in one step, in a folder that is made where it is missing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as draft:
        draft.write_bytes(content)


def write_if_changed(target: Path, text: str) -> bool:
    """Write a file in one step, unless it has this text already. Returns whether it was written."""
    content = text.encode()
    if target.is_file() and target.read_bytes() == content:
        return False
    write_file(target, content)
    return True


def swap_folders(new: Path, target: Path, old: Path) -> None:
    """Put `new` in place of `target`, which becomes `old`; where that fails, `target` is as before."""
    if not os.path.lexists(target):
        os.rename(new, target)
        return
    os.rename(target, old)
    try:
        os.rename(new, target)
    except OSError:
        os.rename(old, target)
        raise
