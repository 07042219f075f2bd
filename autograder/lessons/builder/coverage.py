"""Which cell of which lesson teaches each topic of the course's checklist, and which topics no cell teaches.

A topic belongs to one lesson or several (checklist.toml). It is covered if a cell of one of these lessons claims it, or
a cell of a lesson next to one: if two lessons share a subject, their authors decide which of the two teaches it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.lessons.builder.lesson_files import LessonTextError, lesson_texts
from autograder.lessons.builder.text import TextCell, read_lesson

CHECKLIST = "checklist.toml"
LONGEST_WORDS = 50


@dataclass(frozen=True)
class Topic:
    """One line of the checklist. `lessons` are numbers such as "05"."""

    name: str
    title: str
    lessons: tuple[str, ...]

    def may_be_told_in(self, lesson: str) -> bool:
        return any(abs(int(lesson) - int(own)) <= 1 for own in self.lessons)


@dataclass(frozen=True)
class Claim:
    """A cell that says it teaches a topic."""

    topic: str
    lesson: str
    line: int
    words: str

    @property
    def place(self) -> str:
        return f"{self.lesson}:{self.line} {self.words}"


@dataclass(frozen=True)
class Coverage:
    """The checklist and the claims of all lessons that exist."""

    topics: dict[str, Topic]
    claims: tuple[Claim, ...]
    lessons: tuple[str, ...]

    def claims_of(self, topic: Topic) -> list[Claim]:
        """The claims that count, in the order of the lessons."""
        return [c for c in self.claims if c.topic == topic.name and topic.may_be_told_in(c.lesson)]

    def gaps(self) -> list[Topic]:
        """Topics of lessons that exist and that no cell teaches."""
        due = [topic for topic in self.topics.values() if set(topic.lessons) & set(self.lessons)]
        return [topic for topic in due if not self.claims_of(topic)]

    def unknown(self) -> list[Claim]:
        """Claims of topics that the checklist does not have."""
        return [claim for claim in self.claims if claim.topic not in self.topics]


def coverage(course: Path) -> Coverage:
    """Read the checklist and every lesson of a course. Raises LessonTextError."""
    texts = lesson_texts(course)
    claims = [claim for path in texts for claim in claims_in(read_lesson(path), path.stem[:2])]
    return Coverage(checklist(course / CHECKLIST), tuple(claims), tuple(path.stem[:2] for path in texts))


def checklist(path: Path) -> dict[str, Topic]:
    """The topics of a checklist by their names. Raises LessonTextError."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["topics"]
        return {name: Topic(name, entry["title"], tuple(entry["lessons"])) for name, entry in entries.items()}
    except FileNotFoundError as error:
        raise LessonTextError(f"there is no {path}") from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        raise LessonTextError(f"{path.name} cannot be read: {type(error).__name__}: {error}") from error


def claims_in(cells: Sequence[TextCell], lesson: str) -> list[Claim]:
    return [
        Claim(topic, lesson, cell.line, _first_words(cell))
        for cell in cells
        for topic in dict.fromkeys(str(cell.metadata.get("items", "")).split())
    ]


def _first_words(cell: TextCell) -> str:
    """A name by which an author recognizes a cell: its grade_id, else the start of its text."""
    if cell.grade_id:
        return cell.grade_id
    words = next((line.strip("# ") for line in cell.source.splitlines() if line.strip("# ")), "")
    return words if len(words) <= LONGEST_WORDS else words[: LONGEST_WORDS - 3].rstrip() + "..."
