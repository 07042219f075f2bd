"""`autograder new` writes a lesson that can be built, has an exercise, and overwrites nothing."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from autograder.cli import main
from autograder.lessons.builder.notebook import build_lesson
from autograder.lessons.commands.audit import isolated_judge


def new(course: Path, name: str) -> int:
    return main(["new", name, "--course", str(course)])


def test_it_takes_the_next_number(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert new(tmp_path, "first_steps") == 0
    assert f"autograder build 00 --course {tmp_path} && autograder audit 00" in capsys.readouterr().out
    assert new(tmp_path, "more") == 0
    assert new(tmp_path, "07_later") == 0
    assert new(tmp_path, "last") == 0
    found = sorted(path.name for path in (tmp_path / "lessons").iterdir())
    assert found == ["00_first_steps", "01_more", "07_later", "08_last"]
    assert "# # First steps" in (tmp_path / "lessons/00_first_steps/00_first_steps.py").read_text()


def test_the_commands_that_it_names_are_about_the_same_course(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    course = tmp_path / "my course"
    assert new(course, "first") == 2
    assert "there is no folder" in capsys.readouterr().err
    course.mkdir()
    assert new(course, "first") == 0
    assert f"autograder build 00 --course '{course}' && autograder audit 00" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["My_lesson", "a/b", "7_x", "..", "", "x.py", "00_other"])
def test_a_name_that_cannot_be_used_is_refused(tmp_path: Path, name: str, capsys: pytest.CaptureFixture) -> None:
    new(tmp_path, "first")
    assert new(tmp_path, name) == 2
    assert capsys.readouterr().err.startswith("autograder new: ")
    assert [path.name for path in (tmp_path / "lessons").iterdir()] == ["00_first"]


@pytest.mark.sandbox
def test_its_solution_gets_full_marks_and_its_release_none(tmp_path: Path) -> None:
    new(tmp_path, "first_steps")
    source = nbformat.read(build_lesson(tmp_path / "lessons/00_first_steps/00_first_steps.py", tmp_path), as_version=4)
    solved, unsolved = (nbformat.from_dict(source) for _ in range(2))
    for cell in unsolved.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = "raise NotImplementedError"
    judge, folder = isolated_judge(), tmp_path / "source" / "00_first_steps"
    assert judge(solved, source, folder, b"secret").points == 4
    assert judge(unsolved, source, folder, b"secret").points == 0
