"""The files of lessons: their texts, and the data that these read.

Standard library only, so that `autograder lab` need not wait for Jupyter's libraries when nothing has changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

LESSON_NAME = re.compile(r"\d\d_[a-z0-9_]+")
DATA_FILE = re.compile(r"""["']data/([\w.\-]+)["']""")


class LessonTextError(Exception):
    """A lesson cannot be built from its text. The message names the file, the line and the cell."""


def lesson_texts(course_dir: Path, names: Sequence[str] = ()) -> list[Path]:
    """The lesson texts of a course, all or those named (`02`, `02_scalar_engine` or a path). Raises LessonTextError."""
    texts = sorted(path for path in (course_dir / "lessons").glob("*.py") if LESSON_NAME.fullmatch(path.stem))
    if not names:
        return texts
    chosen = []
    for name in names:
        found = [path for path in texts if Path(name).stem in (path.stem, path.stem.partition("_")[0])]
        if not found:
            known = ", ".join(path.stem for path in texts) or "none"
            raise LessonTextError(f"there is no lesson {name!r} in {course_dir / 'lessons'}; there are: {known}")
        chosen += found
    return chosen


def texts_asked_for(course_dir: Path, names: Sequence[str]) -> list[Path]:
    """The same for a command, which has nothing to do without any. Raises LessonTextError."""
    texts = lesson_texts(course_dir, names)
    if not texts:
        raise LessonTextError(f"There are no lessons in {course_dir / 'lessons'}.")
    return texts


def data_files(path: Path, course_dir: Path) -> list[Path]:
    """The files of course/data that a lesson asks for by writing "data/NAME". Raises LessonTextError for a missing
    one.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for name in DATA_FILE.findall(line):
            file = course_dir / "data" / name
            if not file.is_file():
                raise LessonTextError(
                    f"{path.name}:{number}: the lesson reads data/{name}, which {file.parent} does not have"
                )
            found.append(file)
    return sorted(set(found))
