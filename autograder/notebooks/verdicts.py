"""Verdicts on graded cells: what each earned and why, as the judge wrote it into the cell's outputs.

They are read without nbgrader, which takes a second to import. The rules for points are nbgrader's own, because its
preprocessors must give the same marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from autograder.notebooks.cells import grade_id, is_code, is_grade, is_solution, is_untouched, points_of

if TYPE_CHECKING:
    from nbformat import NotebookNode

SENTENCE_END = re.compile(r"(?<=[.?!]) ")

NO_RESPONSE = "No response."  # nbgrader's comment on an answer that is as it was handed out
NOTICE = "This cell (id:{cell_id}) was missing from the submission. It was added back by nbgrader.\n\n"
GONE = "its cell was not in the notebook, so look for the answer in another cell"
"""What is said of an answer for a person if its cell was added back."""
ENDED = "stopped the notebook's process"
"""What the message of a test says if student code ended its process."""


@dataclass(frozen=True)
class CellVerdict:
    """What one graded cell earned, and why it is not more: from the judge to the gradebook, tables, pages and reports.

    `points` is None if a person has to give them. `bugs` are names of the bug bank. `inside`: its test ran in the
    submission's process, or used names of given cells that the submission has bound otherwise, so the submission could
    change what the test saw. `by_hand`: a person has to grade it, or to look again at a mark that was given by hand
    before this submission; only the gradebook knows that.
    """

    grade_id: str
    points: float | None
    max_points: float
    message: str = ""
    notebook: str = ""
    bugs: tuple[str, ...] = ()
    inside: bool = False
    by_hand: bool = False

    @property
    def place(self) -> tuple[str, str]:
        """The notebook and the cell: cells of two notebooks may have the same name."""
        return self.notebook, self.grade_id

    @property
    def full(self) -> bool:
        return self.points is not None and self.points >= self.max_points

    @property
    def lost(self) -> bool:
        return self.points is not None and self.points < self.max_points

    @property
    def waiting(self) -> bool:
        """Whether its points are open: a person has to give them."""
        return self.by_hand and self.points is None

    @property
    def note(self) -> dict[str, Any]:
        """What is noted of it in the outputs of its cell."""
        return {"message": self.message, "points": self.points, "bugs": list(self.bugs), "inside": self.inside}


@dataclass(frozen=True)
class SolutionTrial:
    """How the judge graded an assignment's own solution. `inside`: the test cells that run inside, each with what goes
    wrong outside. `failed`: the test cells that the solution fails, each with its message. Both by grade_id. `fault`:
    why there is no trial.
    """

    inside: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    fault: str = ""


def earned_points(cell: NotebookNode) -> float | None:
    """The points that the outputs of a graded cell carry; None if a person has to grade it."""
    if is_solution(cell):
        return 0.0 if is_untouched(cell) else None
    if not is_code(cell):
        return None
    for output in cell.outputs:
        if output.output_type == "error" or (output.output_type == "stream" and output.name == "stderr"):
            return 0.0
        if output.output_type == "execute_result":
            return float(output.data["text/plain"])  # written by the judge
    return points_of(cell)


def is_waiting(needs_manual_grade: bool, auto_score: float | None, manual_score: float | None) -> bool:
    """Whether a cell's points are open, by its columns in the gradebook. nbgrader counts them as 0. A mark that was
    given by hand to an earlier submission is a mark, although nbgrader asks a person to look again.
    """
    return bool(needs_manual_grade) and auto_score is None and manual_score is None


def verdict(cell: NotebookNode) -> CellVerdict:
    """What the judge noted in the outputs of a test cell; no points and no message if it noted nothing."""
    notes = (output.get("metadata", {}).get("autograder") for output in cell.get("outputs", []))
    note = next((note for note in notes if isinstance(note, dict)), {})
    names, message = note.get("bugs"), str(note.get("message") or "")
    if not message and NOTICE.format(cell_id=grade_id(cell)) in cell.source and earned_points(cell) is None:
        message = GONE
    return CellVerdict(
        grade_id(cell),
        note.get("points"),
        points_of(cell),
        message,
        bugs=tuple(name for name in names if isinstance(name, str)) if isinstance(names, list | tuple) else (),
        inside=note.get("inside") is True,
    )


def messages_by_answer(nb: NotebookNode) -> dict[str, list[str]]:
    """The messages of the tests that cost points, by the grade_id of the answer that they are about: the last one
    before the test.
    """
    found: dict[str, list[str]] = {}
    answer = ""
    for cell in nb.cells:
        if is_solution(cell):
            answer = grade_id(cell)
        elif is_grade(cell) and answer:
            judged = verdict(cell)
            if judged.message and not judged.full:
                found.setdefault(answer, []).append(judged.message)
    return {name: without_repeats(messages) for name, messages in found.items()}


def without_repeats(messages: Iterable[str]) -> list[str]:
    """Messages of several tests about one answer, without the sentences of an earlier one, such as its cause."""
    return [message for message in fresh_parts(messages) if message]


def fresh_parts(messages: Iterable[str]) -> list[str]:
    """What each of several messages says that no earlier one has said; empty if nothing."""
    said: set[str] = set()
    kept = []
    for message in messages:
        fresh = [sentence for sentence in SENTENCE_END.split(message) if sentence not in said]
        said.update(fresh)
        kept.append(" ".join(fresh))
    return kept
