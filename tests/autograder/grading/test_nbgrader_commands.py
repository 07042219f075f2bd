"""nbgrader's own commands with our configuration: the marks, messages and pages are those of `autograder grade`."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from tests.autograder.nbgrader_commands import NbgraderCommands

pytestmark = pytest.mark.sandbox

CONFIGURATION = """from autograder.nbgrader_plugins import configure

c = get_config()
c.CourseDirectory.course_id = 'small'
configure(c)
"""


def test_release_grade_feedback_export(small_course: Any, nbgrader: NbgraderCommands) -> None:
    root = small_course.root
    (root / "nbgrader_config.py").write_text(CONFIGURATION)
    said = nbgrader("generate_assignment", "words", "--force", cwd=root)
    assert "HIDDEN" not in "".join(cell.source for cell in small_course.released().cells)
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered(shout="return word"))
    small_course.submit("eve", b"no notebook")
    said += nbgrader("autograde", "words", cwd=root)
    said += nbgrader("generate_feedback", "words", cwd=root)
    assert "not recognized" not in said, "our configuration fits all classes that read it"
    nbgrader("export", cwd=root)
    with (root / "grades.csv").open() as file:
        assert {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)} == {
            "ann": 5,
            "bob": 2,
            "eve": 0,
        }
    for student in ("ann", "bob", "eve"):
        page = small_course.feedback(student)
        assert "hiddenword" not in page
        assert "<script" not in page
    assert "This submission was not judged.</strong> The file is not valid JSON" in small_course.feedback("eve")
