"""Ways through a course, `paths.toml`: which lessons, week by week. A course may be set to one of them, and asks its
questions in writing or not.

Standard library only, like lesson_files.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.lessons.builder.lesson_files import LessonTextError, lesson_texts

PATHS = "paths.toml"
CHOSEN = 'chosen = "{}"\n'
"""The first line of the paths of a course that is set to one of them."""
PART = re.compile(r"(\d\d)(?::(\d+)-(\d*))?")


@dataclass(frozen=True)
class LessonPart:
    """Lesson `number` from exercise `first` on, up to exercise `last`, or to the end if that is 0."""

    number: str
    first: int = 1
    last: int = 0


@dataclass(frozen=True)
class CoursePath:
    """A path. `weeks[week][place]` are the parts from which one is chosen. `demos`: minutes for the gallery."""

    name: str
    title: str
    hours: float
    demos: float
    weeks: tuple[tuple[tuple[LessonPart, ...], ...], ...]

    @property
    def lessons(self) -> list[str]:
        """The numbers of its lessons, those to choose from included, in order."""
        return sorted({part.number for week in self.weeks for choice in week for part in choice})


def paths_of(course_dir: Path) -> dict[str, CoursePath]:
    """The paths of a course by their names; none if it has no such file. Raises LessonTextError."""
    return {name: _path(name, entry) for name, entry in _read(course_dir).items() if isinstance(entry, dict)}


def texts_asked_for(course_dir: Path, names: Sequence[str] = (), path: str = "") -> list[Path]:
    """The lesson texts that a command works on: those named, else those of a path, of the one to which the course is
    set, or all. Raises LessonTextError for an unknown name, or if there are none.
    """
    path = path or str(_read(course_dir).get("chosen", ""))
    known = paths_of(course_dir) if path and not names else {}
    if path and not names and path not in known:
        there = ", ".join(known) or "none"
        raise LessonTextError(f"there is no path {path!r} in {course_dir / PATHS}; the paths are: {there}")
    texts = lesson_texts(course_dir, names or (known[path].lessons if known else ()))
    if not texts:
        raise LessonTextError(f"There are no lessons in {course_dir / 'lessons'}.")
    return texts


def asks_questions(course_dir: Path) -> bool:
    """Whether a course asks the questions that a person grades, the line `questions = true`. Raises LessonTextError."""
    return _read(course_dir).get("questions", False) is True


def _read(course_dir: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((course_dir / PATHS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LessonTextError(f"{course_dir / PATHS}: {error}") from error


def _path(name: str, entry: dict[str, Any]) -> CoursePath:
    try:
        weeks = tuple(tuple(_choice(words) for words in week) for week in entry["weeks"])
        return CoursePath(
            name, str(entry["title"]), float(str(entry["hours"])), float(str(entry.get("demos", 0))), weeks
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LessonTextError(f"{PATHS}: path {name!r} cannot be read: {type(error).__name__}: {error}") from error


def _choice(words: str) -> tuple[LessonPart, ...]:
    """The parts in words such as "02:1-4" or "13|14"."""
    found = []
    for part in words.split("|"):
        match = PART.fullmatch(part)
        if match is None:
            raise ValueError(f'{part!r} is no part of a lesson, such as "02" or "02:1-4"')
        found.append(LessonPart(match[1], int(match[2] or 1), int(match[3] or 0)))
    return tuple(found)
