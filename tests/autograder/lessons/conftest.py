"""A course with one small lesson that uses every feature of the builder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent / "squares_lesson.txt"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course folder with the lesson 01_squares and its data file."""
    folder = tmp_path / "course"
    (folder / "lessons" / "01_squares").mkdir(parents=True)
    (folder / "data").mkdir()
    (folder / "data" / "points.csv").write_text("1,2\n3,4\n")
    shutil.copy(EXAMPLE, folder / "lessons" / "01_squares" / "01_squares.py")
    return folder


@pytest.fixture
def lesson(course: Path) -> Path:
    """The file of the lesson's text, which tests may change."""
    return course / "lessons" / "01_squares" / "01_squares.py"
