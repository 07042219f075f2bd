"""Runs the judge where nbgrader would execute notebooks.

nbgrader's Execute runs students' code and the tests in one process and believes what it prints. Here the two run apart,
and the outputs of test cells come from our side; nbgrader's own SaveAutoGrades then reads its marks as usual.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Dict, Float, default

from autograder.files import files_below
from autograder.judge import REHEARSED_BEFORE, Source, judge_apart, rehearse_apart, try_solution
from autograder.nbgrader_plugins.configuration import cell_seconds
from autograder.nbgrader_plugins.converter_context import course_directory, source_notebook
from autograder.nbgrader_plugins.course_secret import course_secret
from autograder.notebooks.cells import code_cells
from autograder.notebooks.verdicts import SolutionTrial
from autograder.sandbox.process.limits import Limits

TRIALS: dict[str, SolutionTrial] = {}  # of each assignment that this process has graded
GRADED: Counter[tuple[str, str]] = Counter()  # how many submissions of each notebook
SOLUTION_FAILS = "%s.ipynb: the solution itself does not get full marks for the test cell %r. %s"


class JudgeNotebook(NbGraderPreprocessor):
    """Runs a submission in the sandbox, its tests on the trusted side, and writes the outputs that carry the marks."""

    unsafe = Bool(
        False,
        help="Run submissions without isolation. They can then do whatever you can do on this machine.",
    ).tag(config=True)

    cell_seconds = Float(
        help="Processor time that one cell may use; three times as long if it only sleeps. "
        "If this is not set, c.Execute.timeout applies."
    ).tag(config=True)
    query_seconds = Float(10, help="Processor time that the answer to one question of a test may use.").tag(config=True)

    inside = Dict(
        default_value=None,
        allow_none=True,
        help="The test cells that run in the submission's process, by notebook. If this is not set, the solution in "
        "the source notebook is judged first, and decides.",
    ).tag(config=True)

    undecided = Dict(
        help="The test cells that also run in the submission's process, where they may earn more, by notebook. This "
        "counts only if `inside` is set; if it is not, these are the ones that the solution fails."
    ).tag(config=True)

    @default("cell_seconds")
    def _cell_seconds(self) -> float:
        return cell_seconds(self.config)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        coursedir = course_directory(self)
        place = resources["nbgrader"]
        notebook = source_notebook(coursedir, place["assignment"], place["notebook"])
        limits = Limits(cell_seconds=self.cell_seconds, query_seconds=self.query_seconds)
        secret = course_secret(coursedir)
        folder = Path(coursedir.format_path(coursedir.source_directory, ".", place["assignment"]))
        source = Source(notebook, files_below(folder))
        options: dict[str, Any] = {"secret": secret, "limits": limits, "unsafe": self.unsafe}
        inside, undecided = self._tests_inside(nb, source, place, options)
        self._rehearse(source, place, options)
        student = place["student"]
        files = submitted_files(coursedir, place["assignment"], student)
        told: dict[str, Any] = {"source": source, "files": files, "student": student, **options}
        verdict = judge_apart(nb, inside=inside, undecided=undecided, **told)
        nb.metadata["autograder"] = {**nb.metadata.get("autograder", {}), "isolation": verdict.isolation}
        return nb, resources

    def _tests_inside(
        self, nb: NotebookNode, source: Source, place: Any, options: dict[str, Any]
    ) -> tuple[list[str], list[str]]:
        """The tests of this notebook that run in the submission's process, and those that may have to, as set by the
        instructor or else found by the trial of the solution.
        """
        name = place["notebook"]
        if self.inside is not None or source.notebook is None:
            return list((self.inside or {}).get(name, ())), list(self.undecided.get(name, ()))
        tests = {cell.grade_id: cell.source for _, cell in code_cells(nb) if cell.is_test and cell.locked}
        key = json.dumps([source.key, tests, str(options)], sort_keys=True)
        if key not in TRIALS:
            trial = TRIALS[key] = try_solution(source, tests, **options)
            for cell, said in trial.failed.items():
                self.log.warning(SOLUTION_FAILS, name, cell, said)
        return list(TRIALS[key].inside), list(TRIALS[key].failed)

    def _rehearse(self, source: Source, place: Any, options: dict[str, Any]) -> None:
        """Prepare for the rest of a class, once there are enough submissions to expect one."""
        key = source.key, place["notebook"]
        GRADED[key] += 1
        if GRADED[key] == REHEARSED_BEFORE:
            rehearse_apart(source, **options)


def submitted_files(coursedir: CourseDirectory, assignment: str, student: str) -> dict[str, bytes]:
    """The files that a submission may read: its own and those the course hands out, which are in its place already.

    No file that the student handed in as a link is among them, because nbgrader has copied what the link points to.
    """
    graded = Path(coursedir.format_path(coursedir.autograded_directory, student, assignment))
    submitted = Path(coursedir.format_path(coursedir.submitted_directory, student, assignment))
    source = Path(coursedir.format_path(coursedir.source_directory, ".", assignment))
    return {
        name: content
        for name, content in files_below(graded).items()
        if (source / name).exists() or not _through_link(submitted, Path(name))
    }


def _through_link(root: Path, name: Path) -> bool:
    parts = [root / part for part in [name, *name.parents] if part != Path(".")]
    return any(part.is_symlink() for part in parts)
