"""Where the project is, and the course that a command works on.

Standard library only, so that `autograder lab` does not wait for Jupyter's libraries when nothing has changed.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
DISTRIBUTION = "mini-autograd-course"


def _installed_course() -> Path:
    """The folder into which a wheel installed the course, as pip recorded it: each way of installing uses another."""
    from importlib.metadata import PackageNotFoundError, files

    with contextlib.suppress(PackageNotFoundError):
        for file in files(DISTRIBUTION) or ():
            if file.parts[-3:] == (DISTRIBUTION, "course", "gallery.py"):
                return Path(str(file.locate())).resolve().parent
    return PROJECT / "course"


IS_CHECKOUT = (PROJECT / "course" / "lessons").is_dir()
BUILT_IN = PROJECT / "course" if IS_CHECKOUT else _installed_course()


def course_around(folder: Path) -> Path:
    """The course that a folder is in: the folder itself or its nearest parent that holds `nbgrader_config.py`. If there
    is none, the built-in course; the search does not leave a checkout.
    """
    for place in (folder, *folder.parents):
        if (place / "nbgrader_config.py").is_file():
            return place
        if IS_CHECKOUT and place == PROJECT:
            break
    return BUILT_IN


COURSE = course_around(Path.cwd())
"""The course that commands use by default: the one around the working directory, or the built-in one."""
HOME = PROJECT if IS_CHECKOUT else Path.cwd()
"""By default, commands make their folders below this one."""


def lesson_name(course: Path, name: str) -> str:
    """The assignment that a lesson's number means (`02` is `02_scalar_engine`, `08_further` its optional part), or else
    the name as it is.
    """
    number, _, further = name.partition("_")
    if not number.isdigit() or further not in ("", "further") or (course / "source" / name).is_dir():
        return name
    there = [path.name for path in (course / "source").glob(f"{number}_*") if path.is_dir()]
    found = [each for each in there if each.endswith("_further") == bool(further)]
    return found[0] if len(found) == 1 else name
