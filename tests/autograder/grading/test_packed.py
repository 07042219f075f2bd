"""The file that `pack()` makes for a student: `autograder import` takes it, and it earns what its notebook earns."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_output

from autograder.cli import main
from autograder.grading.pretend_class.pretend_course import make_course
from autograder.grading.run import Request, grade_class
from autograder.lessons.student.packing import VIEW, PackingError, pack, unpack
from autograder.notebooks.cells import grade_id
from autograder.student import pack as pack_outside_notebooks
from tests.autograder.grading.here import in_this_process

EXAMPLE = Path(__file__).parents[1] / "lessons" / "squares_lesson.txt"
LESSON = "01_squares"
ENGINE = b"# an engine\n"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A released course with one lesson."""
    lesson = tmp_path / "texts" / "lessons" / LESSON / f"{LESSON}.py"
    lesson.parent.mkdir(parents=True)
    shutil.copy(EXAMPLE, lesson)
    (tmp_path / "texts" / "data").mkdir()
    (tmp_path / "texts" / "data" / "points.csv").write_text("1,2\n3,4\n")
    make_course(tmp_path / "course", lesson)
    return tmp_path / "course"


@pytest.fixture
def home(course: Path, tmp_path: Path) -> Path:
    """A student's lessons: one solved, with a widget, and with an engine beside it."""
    folder = Path(shutil.copytree(course / "release" / LESSON, tmp_path / "home" / LESSON))
    notebook = nbformat.read(folder / f"{LESSON}.ipynb", as_version=4)
    solution = next(cell for cell in notebook.cells if grade_id(cell) == "slope")
    solution.source = "def slope(x):\n    return 2 * x"
    solution.outputs = [new_output("display_data", {VIEW: {"model_id": "a"}, "image/png": "iVBORw0KGgo="})]
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"a": "x" * 100_000}}}
    nbformat.write(notebook, folder / f"{LESSON}.ipynb")
    (folder / "engine.py").write_bytes(ENGINE)
    (folder / f"{LESSON} (update 2026-11-30).ipynb").write_text("{}")
    return folder


def test_a_packed_lesson_has_its_notebook_and_engine_and_no_state_of_widgets(home: Path, tmp_path: Path) -> None:
    (tmp_path / "lessons.zip").write_bytes(pack(home))
    files = unpack(tmp_path / "lessons.zip")
    assert list(files) == [f"{LESSON}/{LESSON}.ipynb", f"{LESSON}/engine.py"]
    packed, mine = (json.loads(text) for text in (*files.values(), (home / f"{LESSON}.ipynb").read_bytes())[::2])
    assert packed["metadata"] == {name: value for name, value in mine["metadata"].items() if name != "widgets"}
    assert [cell["source"] for cell in packed["cells"]] == [cell["source"] for cell in mine["cells"]]
    outputs = [output["data"] for cell in packed["cells"] for output in cell.get("outputs", ())]
    assert [list(data) for data in outputs] == [["image/png"]]


def test_a_damaged_notebook_is_packed_as_it_is(home: Path, tmp_path: Path) -> None:
    (home / f"{LESSON}.ipynb").write_bytes(b"{")
    (tmp_path / "lessons.zip").write_bytes(pack(home))
    assert unpack(tmp_path / "lessons.zip")[f"{LESSON}/{LESSON}.ipynb"] == b"{"


def test_outside_notebooks_the_file_lies_in_the_working_directory(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(home.parent)
    pack_outside_notebooks()
    assert capsys.readouterr().out == f"Your lessons are in {home.parent / 'lessons.zip'}.\n"
    assert next(iter(unpack(home.parent / "lessons.zip"))) == f"{LESSON}/{LESSON}.ipynb"


def test_where_there_are_no_lessons_nothing_is_packed(tmp_path: Path) -> None:
    with pytest.raises(PackingError, match="There are no lessons"):
        pack(tmp_path)


def import_as(student: str, archive: Path, course: Path) -> int:
    return main(["import", LESSON, str(archive), "--course", str(course), "--student", student])


@pytest.mark.parametrize(
    ("student", "members", "said"),
    [
        ("ann", {"notes.txt": b""}, "The archive has no folder 01_squares"),
        ("../ann", {f"{LESSON}/{LESSON}.ipynb": b"{}"}, "cannot be the name of a student's folder"),
    ],
    ids=["another archive", "another folder"],
)
def test_what_cannot_be_a_student_s_lessons_is_refused(
    student: str, members: dict[str, bytes], said: str, course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = course.parent / "lessons.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    assert import_as(student, archive, course) == 2
    assert said in capsys.readouterr().err
    assert not (course / "submitted").exists()


@pytest.mark.sandbox
def test_a_packed_lesson_earns_what_its_notebook_earns(course: Path, home: Path) -> None:
    shutil.copytree(home, course / "submitted" / "ann" / LESSON)
    (course.parent / "lessons.zip").write_bytes(pack(home))
    assert import_as("bob", course.parent / "lessons.zip", course) == 0
    with in_this_process():
        records: Any = {record.student: record for record in grade_class(Request(LESSON, course))}
    assert (course / "submitted" / "bob" / LESSON / "engine.py").read_bytes() == ENGINE
    assert {name: (record.status, record.points) for name, record in records.items()} == {
        "ann": ("graded", 3),
        "bob": ("graded", 3),
    }
    assert os.listdir(course / "submitted" / "bob") == [LESSON]
