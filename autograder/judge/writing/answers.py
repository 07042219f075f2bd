"""What was wrong with an answer before its test began: its cell is gone, or stopped with an error.

The test then says only what that led to (a missing operation, an undefined name). The reader of the mark wants to know
the cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autograder.judge.writing.messages import cut
from autograder.notebooks.cells import code_cells

LONGEST = 120
UNWRITTEN = "NotImplementedError"  # the test itself says that nothing has been written yet
STOPPED = "CellStopped"
"""The name of the error that the judge puts below a cell that it has stopped."""


def troubles(notebook: Any, source: Any | None) -> dict[str, str]:
    """grade_id of a test cell -> what is wrong with the answers before it, as sentences, if something is.

    Read from a notebook that has run. `source` is the instructor's, which knows which cells there should be.
    """
    errors = {cell.grade_id: _error_in(node.get("outputs")) for node, cell in code_cells(notebook)}
    found = {}
    for test, answers in _answers_before_tests(notebook if source is None else source):
        said = [text for answer in answers if (text := _trouble(answer, errors))]
        if said:
            found[test] = " ".join(said)
    return found


def _answers_before_tests(notebook: Any) -> Iterator[tuple[str, list[str]]]:
    """Each test cell with the answers that it is about: those after the previous tests."""
    answers: list[str] = []
    tested = False
    for _, cell in code_cells(notebook):
        if cell.solution:
            answers = [*([] if tested else answers), cell.grade_id]
            tested = False
        elif cell.is_test:
            tested = True
            yield cell.grade_id, answers


def _trouble(answer: str, errors: Mapping[str, str]) -> str:
    if answer not in errors:
        return f"The cell `{answer}` is missing."
    return f"The cell `{answer}` {errors[answer]}." if errors[answer] else ""


def _error_in(outputs: Any) -> str:
    """How a cell ended, if its outputs show an error; empty if they show none, or only that nothing was written."""
    for output in outputs if isinstance(outputs, Sequence) else ():
        if output.get("output_type") != "error" or output.get("ename") == UNWRITTEN:
            continue
        text = cut(str(output.get("evalue", "")).partition("\n")[0], LONGEST).rstrip(".")
        if output.get("ename") == STOPPED:
            return f"was stopped: {text}"
        return f"stopped with {cut(str(output.get('ename')), 60)}" + (f": {text}" if text else "")
    return ""
