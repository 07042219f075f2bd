"""What nbgrader notes on a cell, and what of it can be read without nbgrader, which takes a second to import.

The rules for points and checksums are nbgrader's own: marks and comments have to come out the same by both ways.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from nbformat import NotebookNode

SENTENCE_END = re.compile(r"(?<=[.?!]) ")


def noted(cell: NotebookNode) -> dict[str, Any]:
    """nbgrader's metadata of a cell; empty where it has none that can be read."""
    metadata = cell.metadata.get("nbgrader")
    return metadata if isinstance(metadata, dict) else {}


def grade_id(cell: NotebookNode) -> str | None:
    """The name that nbgrader knows a cell by."""
    name = noted(cell).get("grade_id")
    return name if isinstance(name, str) else None


def is_grade(cell: NotebookNode) -> bool:
    return bool(noted(cell).get("grade", False))


def is_solution(cell: NotebookNode) -> bool:
    return bool(noted(cell).get("solution", False))


def is_locked(cell: NotebookNode) -> bool:
    """Whether the text is the instructor's: tests are, answers are not, others say so."""
    return not is_solution(cell) and (is_grade(cell) or bool(noted(cell).get("locked", False)))


def checksum(cell: NotebookNode) -> str:
    """What nbgrader compares to see whether a cell is still as it was handed out."""
    kinds = (str(value(cell)) for value in (is_grade, is_solution, is_locked))
    points = [str(float(noted(cell)["points"]))] if is_grade(cell) else []
    text = "".join([cell.source, cell.cell_type, *kinds, noted(cell)["grade_id"], *points])
    return hashlib.md5(text.encode()).hexdigest()


def is_untouched(cell: NotebookNode) -> bool:
    """Whether an answer is still what was handed out."""
    return noted(cell).get("checksum") == checksum(cell)


def points_of(cell: NotebookNode) -> float | None:
    """The points that the outputs of a graded cell carry; None where a person has to grade it."""
    if is_solution(cell):
        return 0.0 if is_untouched(cell) else None
    if cell.cell_type != "code":
        return None
    for output in cell.outputs:
        if output.output_type == "error" or (output.output_type == "stream" and output.name == "stderr"):
            return 0.0
        if output.output_type == "execute_result":
            return float(output.data["text/plain"])  # written by the judge
    return float(noted(cell)["points"])


def verdict(cell: NotebookNode) -> dict[str, Any]:
    """What the judge noted in the outputs of a test cell: `message`, `points`, `bugs`. Empty where it noted nothing."""
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
    answer: str | None = None
    for cell in nb.cells:
        if is_solution(cell):
            answer = grade_id(cell)
        elif is_grade(cell) and answer is not None:
            note = verdict(cell)
            message, points = note.get("message"), note.get("points")
            if message and (points is None or points < float(noted(cell)["points"])):
                found.setdefault(answer, []).append(str(message))
    return {name: without_repeats(messages) for name, messages in found.items()}


def without_repeats(messages: Iterable[str]) -> list[str]:
    """Messages of several tests about one answer, without the sentences that one before has said, such as its cause."""
    said: set[str] = set()
    kept = []
    for message in messages:
        fresh = [sentence for sentence in SENTENCE_END.split(message) if sentence not in said]
        said.update(fresh)
        kept.append(" ".join(fresh))
    return [message for message in kept if message]
