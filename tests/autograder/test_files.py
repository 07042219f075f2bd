"""Which course a command uses if none is named."""

from __future__ import annotations

from pathlib import Path

from autograder.files import BUILT_IN, PROJECT, course_around


def test_a_folder_of_a_course_belongs_to_that_course(tmp_path: Path) -> None:
    submitted = tmp_path / "class" / "submitted" / "ann"
    submitted.mkdir(parents=True)
    assert course_around(submitted) == BUILT_IN
    (tmp_path / "class" / "nbgrader_config.py").touch()
    assert course_around(submitted) == course_around(tmp_path / "class") == tmp_path / "class"


def test_a_folder_of_the_checkout_belongs_to_the_course_in_it() -> None:
    assert course_around(PROJECT / "docs") == course_around(BUILT_IN / "lessons") == BUILT_IN
