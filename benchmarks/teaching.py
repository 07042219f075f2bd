"""A page for teachers of each lesson, and the schedules of the paths: `python -m benchmarks.teaching` writes
docs/teaching.

Goals, times, mistakes and the pages of the demos come from the lessons and from course/gallery.py. Prompts, exam
questions and what to read are written by hand, in `teaching.toml` beside each lesson. Students and the website get
neither this file nor these pages, because both answer exam questions.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.files import write_if_changed
from autograder.lessons.builder.further import headings, with_parts
from autograder.lessons.builder.lesson_files import lesson_texts
from autograder.lessons.builder.paths import CoursePath, LessonPart, paths_of
from autograder.lessons.builder.text import TextCell, read_lesson
from autograder.lessons.mistakes.listed import KnownMistake, mistakes_of
from benchmarks.reading_time import Amount, amount_of, is_read, minutes_of_week, reading

PROJECT = Path(__file__).resolve().parents[1]
COURSE, PAGES = PROJECT / "course", PROJECT / "docs" / "teaching"
TEACHING = "teaching.toml"
GOAL = re.compile(r"^(?:\d+\.|[*-]) (.*?)[;.]?$")
GALLERY_PAGE = re.compile(r"^# ## (.*)$", re.MULTILINE)
MISTAKES = 3
EDGE = re.compile(r"^### BEGIN MARK SCHEME$")
ANY_HEADING = re.compile(r"^#+ (.*)$")
IN_WRITING = "A class asks it if its `paths.toml` has `questions = true`; a person grades it."
NOTE = "<!-- Written by `python -m benchmarks.teaching` from the lesson and the teaching.toml beside it. -->\n\n"


@dataclass(frozen=True)
class LessonPage:
    """What is known of a lesson for its page. `notes` is its teaching.toml."""

    text: Path
    cells: list[TextCell]
    notes: dict[str, Any]

    @property
    def title(self) -> str:
        return headings(self.cells[0])[0][1]

    @property
    def goals(self) -> list[str]:
        """The items of the first list of the lesson, which says what a student can do after it."""
        for cell in self.cells:
            items = [match[1] for line in cell.source.splitlines() if (match := GOAL.match(line))]
            if cell.kind == "markdown" and items:
                return items
        return []


def lesson_page(text: Path) -> LessonPage:
    """A lesson and its notes. Raises FileNotFoundError if it has none."""
    notes = tomllib.loads(text.with_name(TEACHING).read_text(encoding="utf-8"))
    return LessonPage(text, read_lesson(text), notes)


def sections(cells: Sequence[TextCell]) -> Iterator[tuple[str, float]]:
    """The sections of the core and their exercises, with the minutes of each."""
    title, amount = "Opening", Amount()
    for cell, is_further in with_parts([cell for cell in cells if is_read(cell)]):
        if is_further:
            continue
        for mark, found in headings(cell):
            if len(mark) == 2 or (len(mark) == 3 and found.startswith("Exercise")):
                yield title, amount.minutes
                title, amount = found, Amount()
        amount.add(amount_of(cell))
    yield title, amount.minutes


def expected(text: Path) -> list[KnownMistake]:
    """Mistakes to expect: for each of the core's exercises with the most points the first of the lesson's list, those
    of the bug bank before all others.
    """
    cells = with_parts(read_lesson(text))
    points = {cell.grade_id: cell.nbgrader.get("points", 0) for cell, is_further in cells if not is_further}
    first: dict[str, KnownMistake] = {}
    for mistake in sorted(mistakes_of(text), key=lambda mistake: not mistake.bug):
        if mistake.costs[0] in points:
            first.setdefault(mistake.costs[0], mistake)
    if len(first) < MISTAKES:
        return mistakes_of(text)[:MISTAKES]
    return [first[name] for name in sorted(first, key=lambda name: -points[name])[:MISTAKES]]


def page(lesson: LessonPage, gallery: Sequence[str]) -> str:
    """The page of a lesson, in Markdown. Raises ValueError for a demo that the gallery does not have."""
    notes, amounts = lesson.notes, reading(lesson.cells)
    parts = [f"# {lesson.text.stem[:2]}. {lesson.title}", "## Afterward, a student can"]
    parts.append(_list(lesson.goals))
    parts.append("## Time\n\n| part | minutes |\n| --- | ---: |")
    rows = [f"| {title} | {minutes:.0f} |" for title, minutes in sections(lesson.cells) if minutes >= 0.5]
    rows.append(f"| **core** | **{amounts.core.minutes:.0f}** |")
    if amounts.further.minutes >= 1:
        rows.append(f"| optional parts | {amounts.further.minutes:.0f} |")
    parts[-1] += "\n" + "\n".join(rows)
    if notes["demos"]:
        shown = [f"page {gallery.index(demo) + 1}, *{demo}*: {when}" for demo, when in notes["demos"].items()]
        parts += ["## Demos (`make demos`)", _list(shown)]
    parts += ["## To discuss", _list(notes["prompts"])]
    parts += ["## Mistakes to expect", "In the words of the cards:", _list([m.said for m in expected(lesson.text)])]
    parts.append("## Exam")
    for number, question in enumerate(notes["exam"], 1):
        rubric = _list(question["rubric"])
        parts += [f"**{number}.** {question['question'].strip()}", f"*Answer.* {question['answer'].strip()}", rubric]
    for cell in filter(lambda cell: cell.is_question, read_lesson(lesson.text, questions=True)):
        parts += ["## A question in writing", IN_WRITING, _as_quote(cell.source)]
    parts += ["## To read", _list(notes["read"])]
    return NOTE + "\n\n".join(parts) + "\n"


def overview(lessons: Sequence[LessonPage]) -> str:
    """The first page: what a class needs, and the schedule of each path."""
    cores = {lesson.text.stem[:2]: lesson.cells for lesson in lessons}
    titles = {lesson.text.stem[:2]: lesson.title for lesson in lessons}
    times = [reading(lesson.cells) for lesson in lessons]
    core, optional = (sum(getattr(time, part).minutes for time in times) / 60 for part in ("core", "further"))
    parts = [
        "# Teaching",
        "For a class that knows Python (functions, classes), NumPy's arrays, and derivatives from school; matrix "
        "products from lesson 04 on. PyTorch need not be known.",
        f"All {len(lessons)} cores take {core:.0f} hours, all optional parts {optional:.0f} more. Minutes count "
        "reading, writing, finding one's mistakes and quizzes; `python -m benchmarks.lessons` has the formula. They "
        "are an estimate for one student alone: a class that discusses needs more. Rows are rounded, so their sums may "
        "differ by a few minutes.",
        "Optional parts with exercises are assignments of their own, `NN_name_further`: release those that you want. "
        "`autograder course DIR --path NAME` sets up a path.",
        "Nine lessons have a question in writing, which a person grades; a class asks if its `paths.toml` says so.",
    ]
    parts += [schedule(path, cores, titles) for path in paths_of(COURSE).values()]
    links = [f"[{lesson.text.stem[:2]}. {lesson.title}]({lesson.text.stem}.md)" for lesson in lessons]
    parts += ["## Lessons", "Each page answers its exam questions: do not hand it out.", _list(links)]
    return NOTE + "\n\n".join(parts) + "\n"


def schedule(path: CoursePath, cores: dict[str, list[TextCell]], titles: dict[str, str]) -> str:
    """A path as a table of its weeks."""
    minutes = [minutes_of_week(week, cores) for week in path.weeks]
    hours = (sum(minutes) + path.demos) / 60
    rows = []
    for number, (week, time) in enumerate(zip(path.weeks, minutes, strict=True), 1):
        words = "; ".join(" or ".join(in_words(part, titles) for part in choice) for choice in week)
        rows.append(f"| {number} | {words} | {time:.0f} |")
    if path.demos:
        rows.append(f"| | what you choose from `make demos` | {path.demos:.0f} |")
    head = (
        f"## {path.title} (`{path.name}`): {hours:.1f} hours\n\n| week | lessons | minutes |\n| ---: | --- | ---: |\n"
    )
    return head + "\n".join(rows)


def in_words(part: LessonPart, titles: dict[str, str]) -> str:
    """A part of a lesson in words."""
    name = f"{part.number} {titles[part.number]}"
    if part.last:
        return f"{name}, exercises {part.first} to {part.last}"
    return f"{name}, from exercise {part.first} on" if part.first > 1 else name


def _as_quote(markdown: str) -> str:
    """A cell of prose as a quotation, with its headings as bold lines, so that they are none of the page."""
    lines = (EDGE.sub("**Mark scheme**", line) for line in markdown.splitlines() if "END MARK SCHEME" not in line)
    return "\n".join(("> " + ANY_HEADING.sub(r"**\1**", line)).rstrip() for line in lines)


def _list(items: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(item.split())}" for item in items)


def pages() -> dict[str, str]:
    """All pages by the names of their files."""
    gallery = GALLERY_PAGE.findall((COURSE / "gallery.py").read_text(encoding="utf-8"))
    lessons = [lesson_page(text) for text in lesson_texts(COURSE)]
    return {"README.md": overview(lessons), **{f"{each.text.stem}.md": page(each, gallery) for each in lessons}}


def main() -> None:
    for name, content in pages().items():
        write_if_changed(PAGES / name, content)


if __name__ == "__main__":
    main()
