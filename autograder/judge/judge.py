"""Judges one notebook: student cells in the sandbox, test cells on this side against it, and the verdict written into
the outputs.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle

from autograder.checks import student_side
from autograder.judge import mirroring
from autograder.judge.cells import Cell, code_cells
from autograder.judge.messages import cut, error_name, explain
from autograder.judge.namespace import TestNamespace, TrustedPath
from autograder.judge.outputs import clean_student_outputs, printable, verdict_outputs
from autograder.judge.points import points_for_value
from autograder.judge.running import Outcome, run_test
from autograder.judge.trusted import bound_names, parse, trusted_names
from autograder.sandbox import Limits, Sandbox, SandboxUnavailable

cloudpickle.register_pickle_by_value(student_side)  # the sandbox does not have this module; its functions travel whole


@dataclass(frozen=True)
class CellVerdict:
    """What one test cell earned, and in a sentence why not more."""

    grade_id: str
    points: float
    max_points: float
    message: str
    seconds: float


@dataclass
class Verdict:
    """The verdict on a notebook. `isolation` says what the student's code was shut in by."""

    cells: list[CellVerdict] = field(default_factory=list)
    seconds: float = 0.0
    isolation: str = ""
    restarts: int = 0

    @property
    def points(self) -> float:
        return sum(cell.points for cell in self.cells)

    @property
    def max_points(self) -> float:
        return sum(cell.max_points for cell in self.cells)


def judge_notebook(
    notebook: Any,
    *,
    source: Any | None = None,
    secret: bytes = b"",
    limits: Limits | None = None,
    files: Path | None = None,
    unsafe: bool = False,
) -> Verdict:
    """Run and judge a notebook in place: the outputs of every code cell are rewritten.

    `notebook` is an nbformat v4 notebook with nbgrader metadata whose test cells are the instructor's, hidden tests
    included. `source` is the instructor's own notebook; with it, more names are known to be the instructor's. `secret`
    seeds the inputs of gradient checks, `files` is a folder of files that the notebook may read. Raises
    SandboxUnavailable where student code cannot be isolated, unless `unsafe`; otherwise every test cell gets a verdict,
    whatever the notebook holds.
    """
    from autograder.sandbox.isolation import require_isolation

    isolation = "none: the instructor asked for it" if unsafe else require_isolation().description
    began = time.monotonic()
    with Sandbox(limits, files=files, unsafe=unsafe) as sandbox, TrustedPath(), mirroring.seeds(sandbox):
        judge = _Judge(sandbox, notebook, source, secret)
        verdict = Verdict(list(judge.verdicts()), isolation=isolation, restarts=sandbox.starts - 1)
    verdict.seconds = time.monotonic() - began
    return verdict


class _Judge:
    """The state of judging one notebook."""

    def __init__(self, sandbox: Sandbox, notebook: Any, source: Any | None, secret: bytes):
        self.sandbox, self.notebook, self.secret = sandbox, notebook, secret
        self.namespace = TestNamespace(sandbox, trusted_names(notebook, source))
        self.count = 0

    def verdicts(self) -> Iterator[CellVerdict]:
        for node, cell in code_cells(self.notebook):
            self.count += 1
            node["execution_count"] = None
            if cell.is_test:
                yield self.test(node, cell)
            elif cell.skipped:
                node["outputs"] = []
            else:
                node["outputs"] = self.student(cell)

    def student(self, cell: Cell) -> list[Any]:
        """Run a student's cell and return its outputs."""
        if not cell.source.strip():
            return []
        result = self.sandbox.execute(cell.source)
        self.namespace.forget(bound_names(parse(cell.source)) & self.namespace.trusted.students)
        outputs = clean_student_outputs(result.outputs)
        if result.timed_out or result.died:
            outputs += clean_student_outputs([_error("CellStopped", result.error or "")])
        return outputs

    def test(self, node: Any, cell: Cell) -> CellVerdict:
        """Judge a test cell and write its outputs."""
        self.sandbox.notes.clear()
        try:
            outcome = run_test(cell, self.namespace, self.seed(cell), self.sandbox.limits.cell_seconds)
            points, message, full = self.decide(cell, outcome)
            cards, cards_text = _cards(outcome.reports)
            name, printed, seconds = error_name(outcome), outcome.printed, outcome.seconds
        except SandboxUnavailable:
            raise
        except Exception as error:
            points, full, message = 0.0, False, f"The test could not be run ({type(error).__name__})."
            cards = cards_text = printed = ""
            name, seconds = "TestNotRun", 0.0
        node["outputs"] = verdict_outputs(
            points=points,
            max_points=cell.points,
            message=message,
            name=name,
            printed=printed,
            cards=cards,
            cards_text=cards_text,
            full=full,
        )
        return CellVerdict(cell.grade_id, points, cell.points, message, seconds)

    def decide(self, cell: Cell, outcome: Outcome) -> tuple[float, str, bool]:
        """Points, message, and whether these are full marks."""
        if outcome.error is not None:
            return 0.0, explain(outcome, self.sandbox.notes), False
        points, reason = points_for_value(outcome.value, cell.points)
        if reason:
            return points, reason, False
        if points >= cell.points:
            return cell.points, "", True
        return points, _said(outcome.reports) or f"{points:g} of {cell.points:g} points.", False

    def seed(self, cell: Cell) -> int:
        """The seed of this cell's random inputs, which nobody can know without the course's secret."""
        digest = hmac.new(self.secret, cell.grade_id.encode("utf-8", "replace"), hashlib.sha256).digest()
        return int.from_bytes(digest[:8], "big")


def _said(reports: list[Any]) -> str:
    """What the checks of a cell have to say, without saying anything twice."""
    texts = [text for report in reports if isinstance(text := getattr(report, "message", ""), str) and text]
    unique = list(dict.fromkeys(texts))
    return cut(" ".join(text for text in unique if not any(text != other and text in other for other in unique)))


def _cards(reports: list[Any]) -> tuple[str, str]:
    """The reports of the checks in a cell as HTML and as text. They are made by us and escape what students say."""
    html, text = [], []
    for report in reports[:50]:
        with contextlib.suppress(Exception):
            html.append(str(report.html()))
            text.append(str(report.text()))
    return printable("\n".join(html)), printable("\n\n".join(text))


def _error(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": [text]}
