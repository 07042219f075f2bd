"""`autograder doctor`: how far the marks of an assignment can be trusted, before anybody hands anything in.

The solution in each source notebook is judged as if a student had handed it in. A submission cannot forge a test that
is judged outside, but it can forge one that is judged inside. A test that the solution fails costs everybody its
points; one that the untouched release passes gives them away. With `--compare-with-nbgrader`, the solution and the
untouched release are graded by stock nbgrader as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course_folder import COURSE

if TYPE_CHECKING:
    from autograder.grading.course import Course
    from autograder.grading.submission.assignments import Assignment
    from autograder.notebooks.verdicts import SolutionTrial

OUTSIDE, INSIDE, FAILS, ASKS_NOTHING = "outside", "inside", "fails", "asks nothing"
NOTHING_ASKED = "It asserts nothing, so every answer gets its points unless a line of it stops with an error."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="the assignments (default: all in source/)")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="an nbgrader course directory")
    parser.add_argument(
        "--compare-with-nbgrader",
        action="store_true",
        help="also grade the solution and the release with stock nbgrader, which runs them without a sandbox",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each test cell. Returns 1 if a solution fails a test or nbgrader's marks differ, 2 for a request
    that cannot be met.
    """
    from autograder.grading.quick_imports import quick_imports

    with quick_imports():
        from autograder.grading.course import assignments_of, open_course, what_there_is
        from autograder.grading.errors import CourseError, faults_said

    fine = True
    try:
        with faults_said(), open_course(arguments.course) as course:
            names = arguments.lessons or assignments_of(course)
            if not names:
                raise CourseError(what_there_is(course))
            for name in names:
                fine = _examine(course, name, arguments.compare_with_nbgrader) and fine
    except CourseError as error:
        print(f"autograder doctor: {error}", file=sys.stderr)
        return 2
    return 0 if fine else 1


def _examine(course: Course, name: str, compare: bool) -> bool:
    """Print what there is to say about an assignment. Returns whether all is well. Leaves nothing in the course."""
    from autograder.grading.course import released_for_now

    with released_for_now(course, name):
        return _say(course, name, compare)


def _say(course: Course, name: str, compare: bool) -> bool:
    from autograder.grading.gradebook.assignment_reader import is_released_as_usual, read_assignment
    from autograder.grading.report.notices import notices, other_kernels
    from autograder.grading.soundness import in_words, unsound
    from autograder.grading.submission.trying_solutions import trials_of

    assignment = read_assignment(course, name)
    if others := other_kernels(assignment):
        print("\n".join(f"{name}: {sentence}" for sentence in others))
        return False
    trials = trials_of(assignment)
    rows = list(_rows(assignment, trials))
    _print(name, rows)
    said = [trial.fault for trial in trials.values() if trial.fault]
    said += in_words(unsound(course, replace(assignment, trials=trials)))
    said += notices(assignment, as_written=is_released_as_usual(course.app.config))
    said += [f"{notebook}.ipynb has no source, so there was no trial." for notebook in _untried(assignment, trials)]
    if compare:
        from autograder.grading.comparing import differences

        different = differences(course, name)
        said += different
        if not different:
            print(f"{name}: nbgrader gives the solution and the untouched release the same points, cell by cell.")
    for sentence in said:
        print(f"{name}: {sentence}")
    return not said and all(judged != FAILS for _, _, judged, _ in rows)


def _untried(assignment: Assignment, trials: dict[str, SolutionTrial]) -> list[str]:
    return [notebook for notebook in assignment.notebooks if notebook not in trials]


def _rows(assignment: Assignment, trials: dict[str, SolutionTrial]) -> Iterator[tuple[str, float, str, str]]:
    """For each test cell, in the order of the notebook: name, points, where it is judged, and why not outside."""
    from autograder.grading.submission.trials import by_kind
    from autograder.grading.submission.usual_steps import known_notebooks
    from autograder.notebooks.cells import code_cells
    from autograder.notebooks.giving_points import asserts_nothing
    from autograder.notebooks.verdicts import SolutionTrial

    for name, known in known_notebooks(assignment.rows, assignment.files).items():
        trial = trials.get(name, SolutionTrial())
        why = {**trial.failed, **trial.inside}
        for first, *others in (cells for said in (trial.failed, trial.inside) for cells, _ in by_kind(said)):
            why |= dict.fromkeys(others, f"As in {first!r}.")
        tests = code_cells(known.source.notebook) if name in trials else ()
        for cell in (cell for _, cell in tests if cell.is_test):
            judged = FAILS if cell.grade_id in trial.failed else INSIDE if cell.grade_id in trial.inside else OUTSIDE
            released = known.cells.get(cell.grade_id)
            if judged == OUTSIDE and released is not None and asserts_nothing(released.source):
                judged, why[cell.grade_id] = ASKS_NOTHING, NOTHING_ASKED
            yield cell.grade_id, cell.points, judged, why.get(cell.grade_id, "")


def _print(name: str, rows: list[tuple[str, float, str, str]]) -> None:
    from rich.table import Table

    from autograder.grading.report.progress_display import wide_console

    table = Table("test cell", "points", "judged", "what goes wrong outside", title=name, title_justify="left")
    for cell, points, judged, why in rows:
        table.add_row(cell, f"{points:g}", judged, why)
    console = wide_console()
    console.print(table)
    total = sum(points for _, points, _, _ in rows)
    inside = sum(points for _, points, judged, _ in rows if judged == INSIDE)
    console.print(f"{inside:g} of {total:g} points are judged inside, where a submission can forge results.\n")
