"""What a feedback page says first: each exercise with its points, and a line for each test that cost some.

The text of the lesson is folded around the answers and their cards. A comment that only repeats what the first screen
and the card say is left out; what a person wrote stays.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import List

from autograder.cards.check_report import LIKELY
from autograder.cards.style import escaped
from autograder.notebooks.cells import grade_id, is_grade, is_solution, is_task, marks
from autograder.notebooks.headings import headings, titles
from autograder.notebooks.reading import NOT_ISOLATED, UNPROTECTED, note_of
from autograder.notebooks.verdicts import NO_RESPONSE, SENTENCE_END, fresh_parts, messages_by_answer, verdict

FOLD = "autograder_fold"
LESSON = "Text of the lesson"
NO_REASON = "This cell cost points."
BY_HAND = "A person gave these points, without a comment."
LONGEST_COMMENT = 240


@dataclass(frozen=True)
class Loss:
    """A test that cost points: where the answer stands on the page, and what was wrong, as HTML."""

    anchor: str
    message: str


@dataclass
class ExerciseRow:
    """A row of the first screen. `waiting`: the open points of each cell that waits for a person. `comments`:
    the beginning of what was written about each answer, as HTML.
    """

    title: str
    anchor: str
    earned: float = 0.0
    points: float = 0.0
    losses: list[Loss] = field(default_factory=list)
    waiting: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)

    @property
    def open(self) -> float:
        return sum(self.waiting.values())

    @property
    def lost(self) -> bool:
        return self.earned + self.open < self.points


@dataclass
class SharedMistake:
    """A mistake that the judge has named in several exercises: its cause in a sentence, and what these tests lost."""

    sentence: str
    lost: float = 0.0
    exercises: dict[str, None] = field(default_factory=dict)

    @property
    def cause(self) -> str:
        return escaped(self.sentence)


class FirstScreen(NbGraderPreprocessor):
    """Puts the rows of the first screen into the resources, and marks what is folded. Runs after GetGrades."""

    # Of no use here; without it nbgrader warns at each page, since the exporter sets it for all preprocessors.
    display_data_priority: Any = List(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        drop_repeated_comments(nb)
        title = next((found[1] for cell in nb.cells if (found := _title(cell))), resources["nbgrader"]["notebook"])
        problem = note_of(nb, "problem")
        shared = [] if problem else mistakes(nb)
        rows = exercises(nb, [mistake.sentence for mistake in shared])
        if problem:
            keep_what_people_wrote(nb)
        resources["autograder"] = {
            "title": title,
            "exercises": rows,
            "mistakes": shared,
            "open": sum(row.open for row in rows),
            "problem": problem,
            "warning": UNPROTECTED if note_of(nb, "isolation") == NOT_ISOLATED else "",
        }
        fold(nb)
        return nb, resources


def exercises(nb: NotebookNode, told: Sequence[str] = ()) -> list[ExerciseRow]:
    """The rows, in the order of the notebook. Cells under one heading are one exercise. `told`: sentences that stand
    above the rows.
    """
    names = titles(nb.cells)
    rows: dict[str, ExerciseRow] = {}
    said = list(told)
    commented: dict[str, str] = {}  # comments on answers whose test has not come yet
    answers: dict[str, str] = {}  # the last one of each exercise so far; its card follows it on the page
    for cell in nb.cells:
        name, noted = grade_id(cell), marks(cell)
        if is_solution(cell):
            answers[names.get(name, name)] = name
        by_hand = is_solution(cell) or is_task(cell)
        if noted.get("comment") and by_hand:
            commented[name] = escaped(textwrap.shorten(str(noted["comment"]), LONGEST_COMMENT, placeholder=" ..."))
        if not is_grade(cell) and not is_task(cell):
            continue
        title = names.get(name, name)
        anchor = answers.get(title, name)
        row = rows.setdefault(title, ExerciseRow(title, anchor))
        earned, points = float(noted.get("score") or 0.0), float(noted.get("points") or 0.0)
        row.earned += earned
        row.points += points
        row.comments |= commented
        commented = {}
        if noted.get("waiting"):
            row.waiting[name] = points
        elif earned < points and not (by_hand and name in row.comments):
            said.append(verdict(cell).message or (BY_HAND if by_hand else NO_REASON))
            row.losses.append(Loss(anchor, escaped(fresh_parts(said)[-1] or said[-1])))
    if commented and rows:
        list(rows.values())[-1].comments |= commented
    return list(rows.values())


def mistakes(nb: NotebookNode) -> list[SharedMistake]:
    """The mistakes that cost points in several exercises, in the order of the notebook."""
    names = titles(nb.cells)
    found: dict[str, SharedMistake] = {}
    for cell in filter(is_grade, nb.cells):
        noted, judged = marks(cell), verdict(cell)
        lost = float(noted.get("points") or 0.0) - float(noted.get("score") or 0.0)
        for bug in judged.bugs if lost > 0 and not noted.get("waiting") else ():
            cause = SENTENCE_END.split(judged.message.partition(LIKELY)[2].strip())[0] or bug.replace("_", " ")
            one = found.setdefault(bug, SharedMistake(f"{LIKELY} {cause}"))
            one.lost += lost
            one.exercises[names.get(grade_id(cell), grade_id(cell))] = None
    return [one for one in found.values() if len(one.exercises) > 1]


def keep_what_people_wrote(nb: NotebookNode) -> None:
    """Keep only answers with a comment in a notebook that could not be read: its cells are nbgrader's, about answers
    that nobody has seen.
    """
    nb.cells = [cell for cell in nb.cells if marks(cell).get("comment")]


def drop_repeated_comments(nb: NotebookNode) -> None:
    """Remove the comments that the judge and nbgrader wrote automatically: the tests' messages say the same."""
    for name, messages in messages_by_answer(nb).items():
        for cell in nb.cells:
            if grade_id(cell) == name and marks(cell).get("comment") in ("\n\n".join(messages), NO_RESPONSE):
                cell.metadata.nbgrader["comment"] = None


def fold(nb: NotebookNode) -> None:
    """Mark each run of ungraded cells to be folded, except the text directly above an answer, which asks for it."""
    for cell in nb.cells:
        cell.metadata.pop(FOLD, None)  # whatever a student wrote there
    for graded, group in groupby(nb.cells, key=_is_graded):
        run = list(group)
        if graded:
            continue
        if len(run) > 1 and run[-1].cell_type == "markdown" and run[-1] is not nb.cells[-1]:
            run = run[:-1]
        summary = " \u00b7 ".join(heading for cell in run for heading in _headings(cell)) or LESSON
        for cell in run:
            cell.metadata[FOLD] = {"opens": cell is run[0], "closes": cell is run[-1], "summary": summary}


def _is_graded(cell: NotebookNode) -> bool:
    return is_grade(cell) or is_solution(cell) or is_task(cell)


def _title(cell: NotebookNode) -> re.Match[str] | None:
    """The heading of the first level in a cell that is not an answer."""
    if cell.cell_type != "markdown" or is_solution(cell):
        return None
    return re.search(r"^# +(.+?)\s*#*$", cell.source, re.MULTILINE)


def _headings(cell: NotebookNode) -> Sequence[str]:
    return headings(cell.source) if cell.cell_type == "markdown" else ()
