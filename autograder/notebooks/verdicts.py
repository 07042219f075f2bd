"""The points and messages that the judge wrote into the outputs of graded cells, read without nbgrader, which takes a
second to import. The rules for points are nbgrader's own, because both ways must give the same marks.
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

ENDED = "stopped the notebook's process"
"""What the message of a test says if student code ended its process."""


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


def verdict(cell: NotebookNode) -> dict[str, Any]:
    """What the judge noted in the outputs of a test cell: `message`, `points`, `bugs`. Empty if it noted nothing."""
    for output in cell.get("outputs", []):
        note = output.get("metadata", {}).get("autograder")
        if isinstance(note, dict):
            return note
    return {}


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
            note = verdict(cell)
            message, points = note.get("message"), note.get("points")
            if message and (points is None or points < points_of(cell)):
                found.setdefault(answer, []).append(str(message))
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
