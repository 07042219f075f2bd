"""Test cells that only the submission's own process can answer for, such as those that look at its code or its names.

They run as nbgrader runs them: in order, in one namespace with the student's cells, here in a sandbox of their own. A
submission can change what such a test sees, so verdicts of this kind are marked, and only cells that cannot be judged
from outside are judged here. Code in this sandbox may have seen the hidden tests that ran before it, so none of its
output after a hidden test is shown.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from autograder.judge.outside.running import CellOutcome, FailedInside, Ran, TestTimeout
from autograder.judge.writing.outputs import clean_student_outputs, printable
from autograder.notebooks.cells import CodeCell
from autograder.notebooks.regions import hidden_lines
from autograder.sandbox.process.limits import SandboxDied
from autograder.sandbox.sandbox import CELL_DIED, CellResult, Sandbox

NO_DETAILS = "This test failed. It runs in the same process as hidden tests, so no details can be shown."


def run_inside(cells: list[CodeCell], sandbox: Sandbox, inside: Collection[str]) -> list[Ran]:
    """Run these cells in the sandbox. Returns one result per cell, in order; for tests in `inside`, how they went."""
    ran = []
    hidden = False
    for cell in cells:
        if not cell.is_test and (cell.is_demo or not cell.source.strip()):
            ran.append(Ran())
            continue
        hidden = hidden or (cell.is_test and bool(hidden_lines(cell.source)))
        began = time.monotonic()
        result = sandbox.execute(cell.source)
        sandbox.require_undisturbed()
        if cell.is_test and cell.grade_id in inside:
            ran.append(Ran(outcome=_outcome(result, time.monotonic() - began, secret=hidden)))
        else:
            ran.append(Ran([] if cell.is_test or hidden else _outputs(result)))
    return ran


def _outputs(result: CellResult) -> list[Any]:
    return clean_student_outputs(result.outputs)


def _outcome(result: CellResult, seconds: float, secret: bool) -> CellOutcome:
    outcome = CellOutcome(seconds=seconds, timed_out=result.timed_out)
    if result.timed_out:
        outcome.error = TestTimeout()
    elif result.died:
        outcome.error = SandboxDied((result.error or "it ended").removeprefix(CELL_DIED).removesuffix("."))
    elif result.error is not None:
        outcome.error = FailedInside(NO_DETAILS) if secret else _said(result)
    else:
        outcome.value = _value(result)
    if not secret:
        texts = (o.get("text") for o in result.outputs if o.get("output_type") == "stream")
        outcome.printed = printable("".join(text for text in texts if isinstance(text, str)))
    return outcome


def _said(result: CellResult) -> FailedInside:
    error = next((output for output in result.outputs if output.get("output_type") == "error"), {})
    name, text = str(error.get("ename", "")), str(error.get("evalue", "")).strip()
    line = _line(error.get("traceback"))
    if name == "AssertionError":
        return FailedInside(text or (f"This is not true: `{line}`" if line else "The test failed."), name)
    said = f"{name or 'The test failed'}{': ' if text else ''}{text}".rstrip(".")
    return FailedInside(f"{said}. It failed at `{line}`." if line else f"{said}.", name or "TestFailed")


def _line(traceback: Any) -> str:
    """The line that the last arrow in IPython's traceback points to."""
    text = "\n".join(map(str, traceback)) if isinstance(traceback, list) else ""
    marked = [line.partition(" ")[2] for row in text.split("\n") if (line := row.lstrip("-")).startswith("> ")]
    return marked[-1].lstrip("0123456789 ").strip() if marked else ""


def _value(result: CellResult) -> Any:
    """The number that the cell shows at its end, which nbgrader reads as points; None if it is not a number."""
    for output in result.outputs:
        data = output.get("data")
        if output.get("output_type") == "execute_result" and isinstance(data, dict):
            try:
                return float(str(data.get("text/plain")))
            except ValueError:
                return None
    return None
