"""Assignments in the style of other courses earn what they earn in one plain IPython namespace: the solution, wrong
answers, and answers never written. The trial of the solution finds the tests that can be judged only inside.
"""

from __future__ import annotations

import copy
import gc
import importlib
import multiprocessing
import re
import sys
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from nbformat import NotebookNode

from autograder.judge import JUDGE, Source, judge_apart, try_solution
from autograder.notebooks.libraries import libraries_in
from autograder.notebooks.verdicts import SolutionTrial
from autograder.sandbox.process import forkserver
from autograder.sandbox.process.kind import OF_OTHER_COURSES
from tests.autograder.judge.notebooks import cell, notebook, plain_points, stock_points

pytestmark = pytest.mark.sandbox

NOT_WRITTEN = "# your code here\nraise NotImplementedError()"
OUTSIDE = 60  # percent of the tests, at least: judging inside is the exception


@dataclass
class Foreign:
    """One assignment: the cells of its source, the wrong answers by the number of the cell, and files beside it."""

    cells: list[NotebookNode] = field(default_factory=list)
    wrong: dict[int, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def add(self, head: str, text: str) -> None:
        kind, _, name = head.partition(" ")
        number = len(self.cells)
        if kind == "file":
            self.files[name] = text + "\n"
        elif kind == "wrong":
            self.wrong[number - 1] = text
        else:
            kinds = {"given": "plain", "answer": "student", "test": "test"}
            self.cells.append(cell(text, kinds[kind], f"cell{number}"))

    def source(self) -> NotebookNode:
        return notebook(*copy.deepcopy(self.cells))

    def given(self) -> Source:
        return Source(self.source(), {name: text.encode() for name, text in self.files.items()})

    def answered(self, how: str) -> NotebookNode:
        submitted = self.source()
        for number, node in enumerate(submitted.cells):
            if node.metadata.get("nbgrader", {}).get("solution"):
                node.source = {"solution": node.source, "wrong": self.wrong[number], "not written": NOT_WRITTEN}[how]
        return submitted


def read(path: Path) -> dict[str, Foreign]:
    found: dict[str, Foreign] = {}
    for section in re.split(r"^=== ", path.read_text(), flags=re.MULTILINE)[1:]:
        name, _, body = section.partition("\n")
        found[name] = Foreign()
        parts = re.split(r"^# (given|answer|wrong|test|file \S+)\n", body, flags=re.MULTILINE)
        for head, text in zip(parts[1::2], parts[2::2], strict=True):
            found[name].add(head, text.strip("\n"))
    return found


CORPUS = read(Path(__file__).with_name("foreign.txt"))


@pytest.fixture(scope="module")
def _loaded_libraries() -> Generator[None]:
    """Load what the notebooks import once, as before a class is graded: in this process and in the warm processes."""
    libraries = libraries_in(foreign.source() for foreign in CORPUS.values())
    for name in [*libraries, "IPython.core.completer"]:
        importlib.import_module(name)
    gc.freeze()  # a collection in a fork would touch, and so copy, every page
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forkserver, "_preload", {})  # set by `preload`, and put back afterwards
        for kind in (OF_OTHER_COURSES, JUDGE):
            forkserver.end_warm_process(kind)
            forkserver.preload(libraries, kind)
        yield
        for kind in (OF_OTHER_COURSES, JUDGE):
            forkserver.end_warm_process(kind)


@pytest.fixture(scope="module")
def trials(_loaded_libraries: None) -> dict[str, SolutionTrial]:
    return {name: try_solution(foreign.given(), {}) for name, foreign in CORPUS.items()}


def in_one_namespace(submitted: NotebookNode, files: dict[str, str], folder: Path) -> list[float]:
    """The points under nbgrader's rules when all cells run in one process: this one."""
    import os

    os.chdir(folder)
    os.environ["NBGRADER_EXECUTION"] = "autograde"
    sys.path.insert(0, str(folder))
    for name, text in files.items():
        Path(name).write_text(text)
    return plain_points(submitted)


@pytest.mark.parametrize("how", ["solution", "wrong", "not written"])
@pytest.mark.parametrize("name", CORPUS)
def test_an_assignment_of_another_course_earns_what_it_earns_there(
    name: str, how: str, trials: dict[str, SolutionTrial], tmp_path: Path
) -> None:
    foreign, trial = CORPUS[name], trials[name]
    assert not trial.failed
    submitted = foreign.answered(how)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as fork:
        expected = fork.submit(in_one_namespace, copy.deepcopy(submitted), foreign.files, tmp_path).result()
    source = foreign.given()
    verdict = judge_apart(submitted, source=source, files=source.given, inside=tuple(trial.inside))
    said = [(judged.grade_id, judged.message) for judged in verdict.cells]
    assert [judged.points for judged in verdict.cells] == expected, said
    assert stock_points(submitted) == expected


def test_most_tests_are_judged_outside(trials: dict[str, SolutionTrial]) -> None:
    tests = sum(node.metadata.get("nbgrader", {}).get("grade", False) for f in CORPUS.values() for node in f.cells)
    inside = sum(len(trial.inside) for trial in trials.values())
    assert 100 * (tests - inside) >= OUTSIDE * tests, f"{inside} of {tests} inside"
