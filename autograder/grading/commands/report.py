"""`autograder report`: one HTML page about a graded lesson, for the instructor. It needs no network and no script."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from markupsafe import Markup

from autograder.course_folder import COURSE

if TYPE_CHECKING:
    from autograder.grading.course import Course
    from autograder.grading.report.class_report import ClassReport
    from autograder.grading.submission.assignments import Assignment
    from autograder.grading.submission.class_records import SubmissionRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", help="the assignment, as nbgrader names it")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="an nbgrader course directory")
    parser.add_argument("--to", type=Path, metavar="FILE", help="where to write it (default: reports/LESSON.html)")


def run(arguments: argparse.Namespace) -> int:
    """Write the page and say where it is. Returns 2 for a request that cannot be met."""
    from autograder.grading.quick_imports import quick_imports

    with quick_imports():
        from autograder.grading.course import open_course
        from autograder.grading.errors import CourseError, faults_said

    target = arguments.to.resolve() if arguments.to else None
    try:
        with faults_said(), open_course(arguments.course) as course:
            target = target or course.root / "reports" / f"{arguments.lesson}.html"
            write(course, arguments.lesson, target)
    except CourseError as error:
        print(f"autograder report: {error}", file=sys.stderr)
        return 2
    print(target)
    return 0


def write(course: Course, lesson: str, target: Path) -> None:
    """Write the page of a lesson. Raises `CourseError` if nothing of it has been graded."""
    from jinja2 import Environment, PackageLoader

    from autograder.files import atomic_write
    from autograder.nbgrader_plugins.times import span

    report = collected(course, lesson, target)
    environment = Environment(
        loader=PackageLoader("autograder.grading.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"coded": coded, "span": span}
    target.parent.mkdir(parents=True, exist_ok=True)
    page = environment.get_template("report.html.j2").render(report=report)
    with atomic_write(target) as draft:
        draft.write_text(page, encoding="utf-8", errors="replace")


def coded(text: str) -> Markup:
    """Show text between backticks as code, and escape everything."""
    parts = text.split("`")
    whole = len(parts) % 2 == 1
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if whole and index % 2 else Markup("{}").format(part)
        for index, part in enumerate(parts)
    )


def collected(course: Course, lesson: str, target: Path) -> ClassReport:
    """Everything that the page shows."""
    from autograder.grading import moves
    from autograder.grading.course import CourseError, absent_students, is_in_gradebook, require_source
    from autograder.grading.gradebook.assignment_reader import is_released_as_usual
    from autograder.grading.journal import NAME, Journal
    from autograder.grading.questions import titles_in_order
    from autograder.grading.report.class_report import ClassReport, made_now
    from autograder.grading.report.notices import notices
    from autograder.grading.report.similarity import as_reference, groups, joined
    from autograder.grading.run import read_records
    from autograder.grading.text_ahead import text_ahead
    from autograder.grading.workers.spool import Spool

    nothing = CourseError(
        f"Nothing of {lesson!r} has been graded in {course.root}: run autograder grade {shlex.quote(lesson)}, or name "
        "your course with --course."
    )
    if not is_in_gradebook(course, lesson):
        require_source(course, lesson)
        raise nothing
    assignment, records = read_records(course, lesson)
    if not records:
        raise nothing
    pages = _feedback(course, lesson, assignment.notebooks, records, target)
    answers = dict(_answers(course, assignment, records))
    alike, complete = groups({student: joined(texts.values()) for student, texts in answers.items()})
    said = notices(assignment, as_written=is_released_as_usual(course.app.config))
    journal = Journal.read(Spool.of(course.root, lesson).root / NAME)
    return ClassReport(
        records,
        lesson,
        course.coursedir.course_id,
        made_now(),
        pages,
        alike,
        complete,
        [*said, *text_ahead(course, lesson), *journal.complaints()],
        titles={name: title for (_, name), title in titles_in_order(course, lesson).items()},
        absent=absent_students(course, lesson),
        answers=journal.answers,
        moves=moves.read(Spool.of(course.root, lesson).root / moves.NAME)[::-1],
        as_reference=as_reference(answers, _reference(course, assignment)),
    )


def _feedback(
    course: Course, lesson: str, notebooks: list[str], records: Iterable[SubmissionRecord], target: Path
) -> dict[str, str]:
    """Student -> address of the feedback page, relative to the report, if there is one."""
    pages: dict[str, str] = {}
    for record in records:
        for name in notebooks:
            page = course.folder("feedback", record.student, lesson) / f"{name}.html"
            if page.is_file():
                pages.setdefault(record.student, quote(os.path.relpath(page, target.parent)))
    return pages


def _answers(
    course: Course, assignment: Assignment, records: Iterable[SubmissionRecord]
) -> Iterable[tuple[str, dict[str, str]]]:
    """Each student's answers as text, by grade_id. The gradebook says what was handed out."""
    given = _given(assignment)
    for record in records:
        if record.status != "graded":
            continue
        folder = course.folder("autograded", record.student, assignment.name)
        yield record.student, _answers_in(folder, assignment, given)


def _reference(course: Course, assignment: Assignment) -> dict[str, str]:
    """The solutions in the source notebooks, by grade_id; nothing if a course has none."""
    return _answers_in(course.folder("source", ".", assignment.name), assignment, _given(assignment))


def _given(assignment: Assignment) -> dict[str, str]:
    return {row["name"]: row["source"] for row in assignment.rows["source_cell"]}


def _answers_in(folder: Path, assignment: Assignment, given: dict[str, str]) -> dict[str, str]:
    import nbformat

    from autograder.grading.report.similarity import answers

    paths = [path for name in assignment.notebooks if (path := folder / f"{name}.ipynb").is_file()]
    return {name: text for path in paths for name, text in answers(nbformat.read(path, as_version=4), given).items()}
