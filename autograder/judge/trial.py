"""The trial of an assignment before a class is graded: the instructor's own solution is judged as if a student had
handed it in.

It tells which test cells cannot be judged from outside and have to run inside the submission's process, because the
solution earns their points only there, and which test cells the solution fails either way.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any

from autograder.judge.apart import judge_apart
from autograder.judge.source import Source
from autograder.judge.writing.messages import about_solution, sentences
from autograder.notebooks.cells import code_cells
from autograder.notebooks.regions import without_marks
from autograder.notebooks.verdicts import SolutionTrial

ROUNDS = 3  # once a test runs inside, another one that depends on it may fail outside


def try_solution(source: Source, tests: Mapping[str, str], **options: Any) -> SolutionTrial:
    """Judge the solution in the instructor's notebook. `tests` are the sources of test cells in students' notebooks, if
    they differ from those in `source`; the options are those of `judge_apart`.
    """
    solution = copy.deepcopy(source.notebook)
    for node, cell in code_cells(solution):
        if cell.is_test:  # the instructor reads the messages, so nothing is hidden
            node["source"] = without_marks(tests.get(cell.grade_id, cell.source))

    def lost(inside: Collection[str]) -> dict[str, str]:
        asked: dict[str, Any] = {"source": source, "files": source.given, "inside": tuple(inside), **options}
        verdict = judge_apart(copy.deepcopy(solution), points_only=True, **asked)
        return {cell.grade_id: about_solution(cell.message) for cell in verdict.cells if not cell.full}

    outside = lost(())
    if not outside:
        return SolutionTrial()
    there = lost([cell.grade_id for _, cell in code_cells(solution) if cell.is_test])
    inside: dict[str, str] = {}
    for _ in range(ROUNDS):
        found = {name: said for name, said in outside.items() if name not in there and name not in inside}
        if not found:
            break
        inside |= found
        outside = lost(inside) | outside
    return SolutionTrial(inside, {name: _both(said, there[name]) for name, said in outside.items() if name in there})


def _both(outside: str, inside: str) -> str:
    """Why the solution fails a test outside, and why it fails it inside, too."""
    too = f"In the process of the solution it fails, too: {inside}"
    return outside if outside == inside else sentences(outside, too)
