"""Whatever nbgrader takes for the name of an assignment, a student or a notebook can be graded, watched, reported,
imported and exported.
"""

from __future__ import annotations

import csv
import glob
import os
import re
import secrets
import tempfile
import unicodedata
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import notebook_hash
from traitlets import TraitError

from autograder.cli import main
from autograder.files import is_litter
from autograder.grading.course import (
    Course,
    CourseError,
    generate_assignment,
    notebooks_of,
    open_course,
    require_source,
    submitted_students,
)
from autograder.grading.report.progress_display import wide_console
from tests.autograder.grading.here import in_this_process
from tests.autograder.grading.test_watch import exchange_beside

SPECIAL = " .+-()]{}^$|\\%'\"&<>#~,;:!@=`\n"  # *, ? and [ are patterns to nbgrader, and refused
names = st.text(st.sampled_from(f"aZ1{SPECIAL}é\u0301日🙂"), min_size=1, max_size=8).filter(
    lambda it: it.strip(".") and not is_litter(it)
)


def course_at(root: str) -> Course:
    """A course with nbgrader's usual settings, opened without its gradebook."""
    return Course(SimpleNamespace(coursedir=CourseDirectory(root=root)))  # type: ignore[arg-type]


def nbgrader_finds(converter: Any, root: str, assignment: str) -> set[str]:
    """The students of whose submissions nbgrader finds a notebook, under the name that they have."""
    try:
        found = converter(coursedir=CourseDirectory(root=root, assignment_id=assignment))
        if converter is GenerateAssignment:
            found.coursedir.student_id = "."
        found.init_notebooks()
        places = [found.init_single_notebook_resources(it)["nbgrader"] for [it] in found.assignments.values()]
    except (TraitError, NbGraderException):
        return set()
    return {place["student"] for place in places if place["assignment"] == assignment}


@settings(max_examples=100, deadline=None)
@given(names, names, names)
@example("hw (1)", "ann (b)", "part [a]")
@example("a.b", "o'neil+1", "100%")
@example("c++", " bob ", "a")
@example("-1", ".bob", "é")
def test_what_nbgrader_finds_is_found_and_what_it_does_not_is_refused(
    assignment: str, student: str, notebook: str
) -> None:
    with tempfile.TemporaryDirectory() as root:
        for folder in (f"source/{assignment}", f"submitted/{student}/{assignment}", f"submitted/x/{assignment}x"):
            Path(root, folder).mkdir(parents=True)
            Path(root, folder, f"{notebook}.ipynb").touch()
        course = course_at(root)
        if nbgrader_finds(GenerateAssignment, root, assignment):
            require_source(course, assignment)
            assert notebooks_of(course, assignment) == [notebook]
            assert nbgrader_finds(Autograde, root, assignment) <= set(submitted_students(course, assignment))
            assert submitted_students(course, assignment, glob.escape(student)) == [student]
        elif not notebook.startswith(".") and "\n" not in notebook:
            with pytest.raises(CourseError, match=re.escape(repr(assignment))):
                require_source(course, assignment)


@pytest.mark.parametrize("name", ["a*", "a?", "[a]", "a+b", " a", "a ", "a\nb"])
def test_a_name_that_nbgrader_cannot_grade_is_refused_before_anything_is_made(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "source" / name).mkdir(parents=True)
    (tmp_path / "source" / name / "a.ipynb").write_text('{"cells": [], "nbformat": 4, "nbformat_minor": 5}')
    (tmp_path / "submitted" / "ann" / name).mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as archive:
        archive.writestr("leeann_101_1_a.ipynb", "")
    for command in (["grade", name], ["report", name], ["doctor", name], ["import", name, f"{tmp_path}/download.zip"]):
        assert main([*command, "--course", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert f"so it cannot grade {name!r}: rename its folder." in said, command
    assert not (tmp_path / "gradebook.db").exists()


@pytest.mark.parametrize("name", ["ps1/", "./ps1", "..", ".", "", "ps1/../ps1"])
def test_a_path_is_no_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "source" / "ps1").mkdir(parents=True)
    with pytest.raises(CourseError, match="It has: ps1"):
        require_source(course_at(str(tmp_path)), name)


@pytest.mark.parametrize("name", ["[a]", "[/a]", "[bold]", "a:bug:", "\\[a]", "a\\"])
def test_a_terminal_shows_a_name_as_it_is(name: str, capsys: pytest.CaptureFixture) -> None:
    wide_console().print(name)
    assert capsys.readouterr().out == f"{name}\n"


ASSIGNMENT, NOTEBOOK, STUDENT = "hw (1) {x} 100%", "part [a] é", " o'Neil+b (c) "


@pytest.fixture
def odd_course(small_course: Any) -> Path:
    """The small course, with odd names for everything."""
    root = small_course.root
    (root / "source" / "words").rename(root / "source" / ASSIGNMENT)
    (root / "source" / ASSIGNMENT / "strings.ipynb").rename(root / "source" / ASSIGNMENT / f"{NOTEBOOK}.ipynb")
    with open_course(root) as course:
        generate_assignment(course, ASSIGNMENT)
    folder = root / "submitted" / STUDENT / ASSIGNMENT
    folder.mkdir(parents=True)
    nbformat.write(small_course.answered(shout="return word"), folder / f"{NOTEBOOK}.ipynb")
    return Path(root)


@pytest.mark.sandbox
@pytest.mark.parametrize("configuration", ["", "c.LimitOutput.max_lines = 500\n"])  # ours, and nbgrader's converter
def test_odd_names_go_through_grading_reports_and_an_lms(
    odd_course: Path, configuration: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with (odd_course / "nbgrader_config.py").open("a") as file:
        file.write(configuration)
    course, roster, download = ["--course", str(odd_course)], tmp_path / "roster.csv", tmp_path / "download.zip"
    with in_this_process():
        assert main(["grade", ASSIGNMENT, "--feedback", *course]) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert said.startswith(ASSIGNMENT)
    assert "2 / 5" in said
    assert (odd_course / "feedback" / STUDENT / ASSIGNMENT / f"{NOTEBOOK}.html").is_file()
    assert main(["report", ASSIGNMENT, *course]) == 0
    assert "o%27Neil%2Bb%20%28c%29%20/hw%20%281%29" in (odd_course / "reports" / f"{ASSIGNMENT}.html").read_text()

    roster.write_text(f'Student,ID,SIS Login ID,Section\n"Neil, O",101,{STUDENT.strip()},A\n')
    with zipfile.ZipFile(download, "w") as archive:
        submitted = odd_course / "submitted" / STUDENT / ASSIGNMENT / f"{NOTEBOOK}.ipynb"
        archive.write(submitted, f"neilo_101_7001_{unicodedata.normalize('NFD', NOTEBOOK)}.ipynb")
    assert main(["import", ASSIGNMENT, str(download), "--roster", str(roster), *course]) == 0
    with in_this_process():
        assert main(["grade", ASSIGNMENT, "--feedback", *course]) == 0
    capsys.readouterr()
    options = ["--canvas-gradebook", str(roster), "--feedback", str(download), "--to", str(tmp_path / "marks.csv")]
    assert main(["export", ASSIGNMENT, "--for", "canvas", *options, *course]) == 1
    assert f"no row for 1 student ({STUDENT})" in capsys.readouterr().err
    with (tmp_path / "marks.csv").open() as file:
        assert next(csv.DictReader(file))[ASSIGNMENT] == "2"
    with zipfile.ZipFile(tmp_path / f"{ASSIGNMENT}-feedback.zip") as archive:
        assert archive.namelist() == [f"neilo_101_7001_{NOTEBOOK}.html"]


@pytest.mark.sandbox
def test_odd_names_go_through_the_exchange(odd_course: Path, small_course: Any) -> None:
    exchange = exchange_beside(small_course)
    attempt = exchange.inbound / f"{STUDENT}+{ASSIGNMENT}+2026-11-01 10:00:00.000000 UTC+{secrets.token_urlsafe(9)}"
    submitted = odd_course / "submitted" / STUDENT
    os.rename(submitted / ASSIGNMENT, attempt)
    submitted.rmdir()
    (attempt / "timestamp.txt").write_text("2026-11-01 10:00:00.000000 UTC")
    (attempt / "submission_secret.txt").write_text("secret")
    with in_this_process():
        assert main(["watch", ASSIGNMENT, "--until-quiet", "0", "--course", str(odd_course)]) == 0
    page = notebook_hash(secret="secret", notebook_id=NOTEBOOK)
    assert "2 of 5 points" in (exchange.root / "small" / "feedback" / f"{page}.html").read_text()
