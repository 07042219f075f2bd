"""Which cell of which lesson teaches each topic of the course's checklist, what runs there, which exercise or question
tests it, and which topics no cell teaches.

A topic belongs to one lesson or several (checklist.toml). It is covered if a cell of one of these lessons claims it, or
a cell of a lesson next to one: if two lessons share a subject, their authors decide which of the two teaches it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.lessons.builder.further import OPTIONAL, with_parts
from autograder.lessons.builder.lesson_files import LessonTextError, lesson_texts
from autograder.lessons.builder.quiz_cells import read_questions
from autograder.lessons.builder.text import TextCell, read_lesson

CHECKLIST = "checklist.toml"
STATEMENTS = "statements.txt"
"""The file beside a lesson with what it says about PyTorch and NumPy, and code that tries it."""
ALONE = "[PyTorch] "
"""Before the words of a statement: our engine lacks it, or does it in another way."""
LONGEST_WORDS = 50


@dataclass(frozen=True)
class Topic:
    """One line of the checklist. `lessons` are numbers such as "05", `tested` exercises and questions of quizzes such
    as "05.sgd". `further`: why only an optional part teaches it.
    """

    name: str
    title: str
    lessons: tuple[str, ...]
    tested: tuple[str, ...] = ()
    further: str = ""

    def may_be_told_in(self, lesson: str) -> bool:
        return any(abs(int(lesson) - int(own)) <= 1 for own in self.lessons)


@dataclass(frozen=True)
class Claim:
    """A cell that says it teaches a topic. `further`: it is optional. `run`: how much of it audit and tests run: the
    cell itself, if it is code, or the statements in it.
    """

    topic: str
    lesson: str
    line: int
    words: str
    further: bool = False
    run: int = 0

    @property
    def place(self) -> str:
        return f"{self.lesson}:{self.line} {self.words}"


@dataclass(frozen=True)
class Coverage:
    """The checklist and the claims of all lessons that exist."""

    topics: dict[str, Topic]
    claims: tuple[Claim, ...]
    lessons: tuple[str, ...]
    tests: Mapping[str, bool]  # "05.sgd" -> whether it is optional

    def claims_of(self, topic: Topic) -> list[Claim]:
        """The claims that count, in the order of the lessons."""
        return [c for c in self.claims if c.topic == topic.name and topic.may_be_told_in(c.lesson)]

    def gaps(self) -> list[Topic]:
        """Topics of lessons that exist and that no cell teaches."""
        due = [topic for topic in self.topics.values() if set(topic.lessons) & set(self.lessons)]
        return [topic for topic in due if not self.claims_of(topic)]

    def optional(self) -> list[Topic]:
        """Topics that only optional parts teach."""
        claims = {topic.name: self.claims_of(topic) for topic in self.topics.values()}
        return [self.topics[name] for name, found in claims.items() if found and all(it.further for it in found)]

    def wrong(self) -> list[str]:
        """What the checklist says and the lessons do not: tests that are not there, topics only in optional parts with
        no reason, and reasons for others.
        """
        optional = self.optional()
        said = [
            f"{it.name}: there is no exercise or question {test!r}"
            for it in self.topics.values()
            for test in it.tested
            if test not in self.tests
        ]
        said += [f"{it.name}: only Further teaches it, and no reason is given" for it in optional if not it.further]
        return said + [
            f"{it.name}: a core teaches it, so `further` is wrong"
            for it in self.topics.values()
            if it.further and it not in optional
        ]

    def unknown(self) -> list[Claim]:
        """Claims of topics that the checklist does not have."""
        return [claim for claim in self.claims if claim.topic not in self.topics]


def coverage(course: Path) -> Coverage:
    """Read the checklist and every lesson of a course. Raises LessonTextError."""
    texts = lesson_texts(course)
    claims: list[Claim] = []
    tests: dict[str, bool] = {}
    for path in texts:
        cells, lesson = read_lesson(path), path.stem[:2]
        claims += claims_in(cells, lesson, [_spaced(words) for words, _, _ in statements_beside(path)])
        for cell, is_further in with_parts(cells, OPTIONAL):
            names = [question.key for question in read_questions(cell)] if "quiz" in cell.tags else []
            names += [cell.grade_id] if cell.is_solution else []
            tests |= {f"{lesson}.{name}": is_further for name in names}
    return Coverage(checklist(course / CHECKLIST), tuple(claims), tuple(path.stem[:2] for path in texts), tests)


def statements_beside(text: Path) -> list[tuple[str, bool, str]]:
    """The statements about PyTorch and NumPy in the file beside a lesson: the words of the lesson, whether they are
    about PyTorch alone, and the code that tries them, with what it prints.
    """
    file = text.with_name(STATEMENTS)
    blocks = file.read_text(encoding="utf-8").split("# %% ")[1:] if file.is_file() else []
    parts = (block.partition("\n") for block in blocks)
    return [(words.removeprefix(ALONE).strip(), words.startswith(ALONE), code) for words, _, code in parts]


def checklist(path: Path) -> dict[str, Topic]:
    """The topics of a checklist by their names. Raises LessonTextError."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["topics"]
        return {
            name: Topic(
                name,
                entry["title"],
                tuple(entry["lessons"]),
                tuple(entry.get("tested", "").split()),
                entry.get("further", ""),
            )
            for name, entry in entries.items()
        }
    except FileNotFoundError as error:
        raise LessonTextError(f"there is no {path}") from error
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        raise LessonTextError(f"{path.name} cannot be read: {type(error).__name__}: {error}") from error


def claims_in(cells: Sequence[TextCell], lesson: str, statements: Sequence[str] = ()) -> list[Claim]:
    return [
        Claim(topic, lesson, cell.line, _first_words(cell), is_further, _run(cell, statements))
        for cell, is_further in with_parts(cells, OPTIONAL)
        for topic in dict.fromkeys(str(cell.metadata.get("items", "")).split())
    ]


def _run(cell: TextCell, statements: Sequence[str]) -> int:
    """What is run of a cell: itself, or as many of the statements as stand in it."""
    if cell.kind == "code":
        return int("quiz" not in cell.tags)
    text = _spaced(cell.source)
    return sum(words in text for words in statements)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _first_words(cell: TextCell) -> str:
    """A name by which an author recognizes a cell: its grade_id, else the start of its text."""
    if cell.grade_id:
        return cell.grade_id
    words = next((line.strip("# ") for line in cell.source.splitlines() if line.strip("# ")), "")
    return words if len(words) <= LONGEST_WORDS else words[: LONGEST_WORDS - 3].rstrip() + "..."
