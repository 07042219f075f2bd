"""How far a student has come: read from the saved notebooks of all lessons, and shown as a table.

Nothing is run. A cell's outputs hold the result of its last run: the points of a check, or its error. The points of a
quiz come from the letters in its answer cell, whether they were clicked or typed, run or not. The module needs only the
standard library and the style of a card, so the table appears at once.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from autograder.cards.style import FAINT, RIGHT, RULE, SANS, TEXT, UNDECIDED
from autograder.lessons.builder.lesson_files import LESSON_NAME
from autograder.notebooks.cells import grade_id, is_code_solution, is_test, points_of, tested_by
from autograder.notebooks.headings import headings
from autograder.quizzes.sealing import SEALED_TEXT, SealError, is_held_back, open_answer, question_keys

DONE, NOT_YET, NOT_STARTED = "done", "not yet", "not started"
COLORS = {DONE: RIGHT, NOT_YET: UNDECIDED, NOT_STARTED: FAINT}
SHOWN_POINTS = re.compile(r"[\d.]+ of [\d.]+ points")
CARD_POINTS = re.compile(r">([\d.]+) of [\d.]+ points<")
NUMBER = re.compile(r"\d+(\.\d+)?")
NUMBERED = re.compile(r"^\d+\. ")
DELETED = "(its cell was deleted)"
NOTE = (
    "From the notebooks as last saved, visible checks only. Hidden checks add their points when you hand in. To hand "
    "in, or to go on at another computer: pack() in lesson 00 saves all lessons as one file."
)


@dataclass(frozen=True)
class ExerciseProgress:
    """One exercise or quiz. `points` are those that its visible checks gave when last run, and those of all its checks;
    None if nothing is begun, for an exercise that is done, as only its hidden checks are left, and for a quiz whose
    answers are held back. It is `optional` if it is below the heading *Further*."""

    title: str
    state: str
    points: tuple[float, float] | None = None
    is_quiz: bool = False
    optional: bool = False

    @property
    def short_title(self) -> str:
        """The title within a sentence: "quiz" of "8. Quiz", or "looking back" of "Looking back: twelve questions"."""
        return NUMBERED.sub("", self.title).partition(":")[0].lower()

    @property
    def shown_points(self) -> str:
        return f"{self.points[0]:.4g} of {self.points[1]:.4g}" if self.points else ""


@dataclass(frozen=True)
class LessonProgress:
    """One of the student's notebooks. `link`: its address on the page of the notebook that shows the progress."""

    number: str
    title: str
    exercises: tuple[ExerciseProgress, ...]
    is_open: bool = False
    link: str = ""

    @property
    def summary(self) -> str:
        graded = [exercise for exercise in self.exercises if not exercise.is_quiz]
        if not self.exercises:
            return "nothing to hand in"
        parts = [f"{sum(e.state == DONE for e in graded)} of {len(graded)} exercises done"] if graded else []
        for quiz in self.exercises:
            if quiz.is_quiz:
                parts.append(f"{quiz.short_title} {f'{quiz.shown_points} points' if quiz.points else quiz.state}")
        return ", ".join(parts)

    @property
    def state(self) -> str:
        states = {exercise.state for exercise in self.exercises}
        return next(iter(states)) if len(states) == 1 else NOT_YET


class Progress:
    """All lessons of a student's folder, as HTML and as text."""

    def __init__(self, lessons: Sequence[LessonProgress]) -> None:
        self.lessons = list(lessons)

    @property
    def _next(self) -> tuple[LessonProgress, ExerciseProgress] | None:
        """The first thing that is not done, in this lesson or in a later one. Optional exercises are left out."""
        here = next((place for place, lesson in enumerate(self.lessons) if lesson.is_open), 0)
        for lesson in self.lessons[here:]:
            for exercise in lesson.exercises:
                if exercise.state != DONE and not exercise.optional:
                    return lesson, exercise
        return None

    @property
    def next_lesson(self) -> LessonProgress | None:
        """The lesson in which the next step is; None if everything is done."""
        return self._next[0] if self._next else None

    @property
    def next_step(self) -> str:
        """What to do next, in a sentence."""
        if self._next is None:
            return "Everything from this lesson on is done."
        lesson, exercise = self._next
        place = "" if lesson.is_open else f"lesson {lesson.number}, {lesson.title}. "
        return f"Next: {place}{exercise.title}."

    @property
    def so_far(self) -> str:
        """A line about this lesson to show at its start; empty if nothing has been done in it."""
        here = next((lesson for lesson in self.lessons if lesson.is_open), None)
        if here is None or here.state == NOT_STARTED or not here.exercises:
            return ""
        return f"This lesson so far: {here.summary}. {self.next_step}"

    def text(self) -> str:
        """What comes next, then one line per lesson, and below it the exercises of a lesson that is under way."""
        if not self.lessons:
            return "There are no lessons in the folder above this notebook."
        rows = []
        for lesson in self.lessons:
            rows.append(f"{lesson.number}  {lesson.title}: {lesson.summary}")
            if lesson.is_open or lesson.state == NOT_YET:
                rows += [
                    f"      {e.state:12} {e.title}{' (optional)' * e.optional}  {e.shown_points}".rstrip()
                    for e in lesson.exercises
                ]
        return "\n".join([self.next_step, *rows, NOTE])

    def html(self) -> str:
        """What comes next, and one folded line per lesson; this lesson's is open."""
        if not self.lessons:
            return f"<p>{html.escape(self.text())}</p>"
        style = f"font-family:{SANS};font-size:13px;line-height:1.5;color:{TEXT};max-width:860px"
        note = f'<div style="color:{FAINT};margin-top:6px">{html.escape(NOTE)}</div>'
        lesson = self.next_lesson
        link = "" if lesson is None or lesson.is_open else lesson.link
        step = f'<div style="font-weight:600;padding:3px 0">{_linked(self.next_step, link)}</div>'
        return f'<div style="{style}">{step}{"".join(map(_lesson_html, self.lessons))}{note}</div>'


def lesson_notebooks(here: Path) -> list[Path]:
    """The notebooks of all lessons of the folder in which the lesson folder `here` lies (or of `here` itself)."""
    for folder in (here.parent, here):
        if found := [path for path in sorted(folder.glob("[0-9][0-9]_*/*.ipynb")) if _is_lesson(path)]:
            return found
    return []


def progress_of(here: Path) -> Progress:
    """The progress in all lessons around a folder, as `lesson_notebooks` finds them."""
    found = lesson_notebooks(here)
    up = "../" if found and found[0].parent.parent == here.parent else ""
    lessons = [read_progress(path, path.parent.name == here.name, up) for path in found]
    return Progress([lesson for lesson in lessons if lesson is not None])


def read_progress(path: Path, is_open: bool = False, up: str = "") -> LessonProgress | None:
    """The progress in one notebook; None if it cannot be read as one. `up`: how its folder's parent is called here."""
    try:
        cells = [_Cell(cell) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    found = [heading for cell in cells if cell.kind == "markdown" for heading in headings(cell.source)]
    title = found[0] if found else path.stem
    link = quote(f"{up}{path.parent.name}/{path.name}")
    return LessonProgress(path.stem[:2], title, tuple(_exercises(cells)), is_open, link)


def _is_lesson(path: Path) -> bool:
    return path.stem == path.parent.name and LESSON_NAME.fullmatch(path.stem) is not None


class _Cell:
    """The parts of a notebook's cell that progress depends on."""

    def __init__(self, cell: dict[str, Any]) -> None:
        self.kind = str(cell["cell_type"])
        self.source = "".join(cell["source"])
        self.name = grade_id(cell)
        self.points = points_of(cell)
        self.exercises = tested_by(cell)
        self.is_solution = is_code_solution(cell)
        self.is_test = is_test(cell)
        self.outputs: list[dict[str, Any]] = list(cell.get("outputs", []))
        self.was_run = cell.get("execution_count") is not None or bool(self.outputs)

    def earned(self) -> tuple[bool, float]:
        """Whether the test passed when it was last run, and its points as far as its visible part shows."""
        for output in self.outputs:
            if output.get("output_type") == "error":
                return False, 0.0
            text = "".join(output.get("data", {}).get("text/plain", ""))
            if SHOWN_POINTS.fullmatch(text.strip()):
                return True, self.points
            cards = CARD_POINTS.findall("".join(output.get("data", {}).get("text/html", "")))
            if cards:
                return False, sum(map(float, cards))
            if output.get("output_type") == "execute_result" and NUMBER.fullmatch(text.strip()):
                return float(text) >= self.points, float(text)
        return self.was_run, self.points * self.was_run


def _exercises(cells: Sequence[_Cell]) -> list[ExerciseProgress]:
    """Each solution cell with the tests that follow it, under the heading above it."""
    groups: list[tuple[str, bool, _Cell, list[_Cell]]] = []
    heading, optional = "", False
    there = {cell.name for cell in cells if cell.is_solution}
    for cell in cells:
        if cell.kind == "markdown":
            found = headings(cell.source)
            heading, optional = (found or [heading])[-1], optional or "Further" in found
        elif cell.is_solution:
            groups.append((heading, optional, cell, []))
        elif cell.is_test:
            for name in cell.exercises:
                if name not in there:
                    there.add(name)
                    groups.append((f"{heading} {DELETED}".strip(), optional, _deleted(name), []))
            if groups:
                groups[-1][-1].append(cell)
    return [_exercise(title, optional, solution, tests) for title, optional, solution, tests in groups if tests]


def _deleted(name: str) -> _Cell:
    """In place of an exercise cell that is no longer in the notebook."""
    return _Cell({"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": name, "solution": True}}})


def _exercise(title: str, optional: bool, solution: _Cell, tests: Sequence[_Cell]) -> ExerciseProgress:
    is_quiz = solution.name.endswith("_answers")
    results = [(_earned_by_letters(solution, test) if is_quiz else None) or test.earned() for test in tests]
    points = None
    if not solution.source and not is_quiz:
        state = NOT_YET
    elif all(passed for passed, _ in results):
        state = DONE
    elif _untouched(solution, is_quiz):
        state = NOT_STARTED
    else:
        state = NOT_YET
    if state == NOT_YET or (state == DONE and is_quiz):
        known = [some for _, some in results if some is not None]
        points = (sum(known), sum(test.points for test in tests)) if known else None
    return ExerciseProgress(title or ("Quiz" if is_quiz else solution.name), state, points, is_quiz, optional)


def _earned_by_letters(answers: _Cell, check: _Cell) -> tuple[bool, float | None] | None:
    """Whether all letters of a quiz are right, and the points for them; None if the check holds no sealed quiz. If
    its answers are held back: whether all questions have a letter, and no points."""
    found = SEALED_TEXT.search(check.source)
    try:
        keys = question_keys(found[1]) if found else []
        if found and is_held_back(found[1]):
            return all(_letter(key, answers.source) for key in keys), None
        right = sum(_is_right(found[1], key, answers.source) for key in keys) if found else 0
    except SealError:
        return None
    return (right == len(keys), check.points * right / len(keys)) if keys else None


def _is_right(sealed: str, key: str, source: str) -> bool:
    try:
        return open_answer(sealed, key, _letter(key, source)).right
    except SealError:  # no letter of this question
        return False


def _letter(key: str, source: str) -> str:
    """The answer that a cell gives to a question; empty if it gives none."""
    found = re.findall(rf"""["']{re.escape(key)}["']\]?\s*[:=]\s*["']([^"'\n]*)["']""", source)
    return found[-1].strip() if found else ""


def _untouched(solution: _Cell, is_quiz: bool) -> bool:
    if is_quiz:
        return re.search(r':\s*"\s*\w', solution.source) is None
    return "raise NotImplementedError" in solution.source


def _linked(text: str, link: str) -> str:
    """A text as HTML, with a link if there is one."""
    return f'<a href="{html.escape(link)}">{html.escape(text)}</a>' if link else html.escape(text)


def _lesson_html(lesson: LessonProgress) -> str:
    color = COLORS[lesson.state] if lesson.exercises else FAINT
    head = (
        f'<summary style="cursor:pointer;padding:3px 0">{lesson.number}&ensp;<b>{html.escape(lesson.title)}</b>'
        f'&ensp;<span style="color:{color}">{html.escape(lesson.summary)}</span></summary>'
    )
    rows = "".join(
        f'<div style="color:{COLORS[e.state]}">{e.state}</div>'
        f"<div>{html.escape(e.title)}{' (optional)' * e.optional}</div>"
        f'<div style="color:{FAINT}">{e.shown_points}</div>'
        for e in lesson.exercises
    )
    columns = "display:grid;grid-template-columns:90px minmax(0,1fr) max-content;gap:0 14px;padding:2px 0 6px 26px"
    grid = f'<div style="{columns}">{rows}</div>'
    is_open = " open" if lesson.is_open else ""
    link = "" if lesson.is_open else _linked(f"open {lesson.number}", lesson.link)  # a summary may hold no link
    row = f"display:flex;gap:14px;align-items:baseline;border-bottom:1px solid {RULE}"
    lines = f'<details{is_open} style="flex:1;min-width:0">{head}{grid}</details>'
    return f'<div style="{row}">{lines}{link}</div>'
