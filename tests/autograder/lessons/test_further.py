"""*Further* as an assignment of its own: what it begins with, whose engine it starts from, and what goes on from it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode

from autograder import cli
from autograder.course_folder import lesson_name
from autograder.lessons.audit import variants
from autograder.lessons.audit.gates import points_of_tests
from autograder.lessons.builder.lesson_files import LessonTextError
from autograder.lessons.builder.notebook import assemble, assignments, build_lesson, notebook_text
from autograder.lessons.student.delivery import Workspace
from autograder.notebooks.cells import grade_id
from autograder.sandbox.inside import engine_file

HERE = Path(__file__).parent
CORE, FURTHER, NEXT = "02_numbers", "02_numbers_further", "03_more"
EARLY = "raise NotImplementedError"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Lesson 02, in which exp and what follows is *Further*; lesson 03 continues its engine."""
    lessons = tmp_path / "course" / "lessons"
    for name, file in ((CORE, "engine"), (NEXT, "next")):
        (lessons / name).mkdir(parents=True)
        shutil.copy(HERE / f"{file}_lesson.txt", lessons / name / f"{name}.py")
    text = lessons / CORE / f"{CORE}.py"
    text.write_text(text.read_text().replace("# ### Exercise 2: exp", "# # Further\n#\n# ### Exercise 2: exp"))
    return text


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A student's folder, with no engine in memory."""
    monkeypatch.setattr(engine_file, "LAST", [])
    return tmp_path / "desk"


def put(desk: Path, name: str, notebook: NotebookNode, **changes: tuple[str, str]) -> None:
    """A solved notebook on the desk, after the changes: grade_id -> (old, new)."""
    notebook = variants.solved_release(notebook)
    for cell in notebook.cells:
        cell.source = "\n".join(line for line in cell.source.splitlines() if "SOLUTION" not in line)
        if grade_id(cell) in changes:
            old, new = changes[grade_id(cell)]
            assert old in cell.source
            cell.source = cell.source.replace(old, new)
    (desk / name).mkdir(parents=True, exist_ok=True)
    (desk / name / f"{name}.ipynb").write_text(notebook_text(notebook))


def run(desk: Path, name: str, notebook: NotebookNode, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run all code cells of a solved notebook in its folder on the desk."""
    (desk / name).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(desk / name)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in variants.solved_release(notebook).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, cell.id, "exec"), names)
    return names


def test_each_point_is_in_one_of_the_two_assignments(text: Path) -> None:
    built = assignments(text)
    core, further = map(points_of_tests, built.values())
    assert [*built] == [CORE, FURTHER]
    assert core | further == points_of_tests(assemble(text))
    assert (core, further) == ({"test_product": 4}, {"test_exponential": 1, "test_answer": 1})
    assert [*assignments(text.parents[1] / NEXT / f"{NEXT}.py")] == [NEXT]


def test_without_points_it_stays_in_the_lesson(text: Path) -> None:
    text.write_text(text.read_text().partition("### Exercise 2")[0])
    assert [*assignments(text)] == [CORE]


def test_it_runs_by_itself(text: Path, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run(desk, FURTHER, assignments(text)[FURTHER], monkeypatch)
    assert {"product", "twice", "exponential"} <= names.keys()
    assert "LIMIT" not in names, "what it does not use is not defined"


def test_a_solution_of_the_core_that_it_uses_must_be_a_part_of_the_engine(text: Path) -> None:
    text.write_text(text.read_text().replace('tags=["engine"] items="36" ', "").replace("answer() == 42", "product"))
    with pytest.raises(LessonTextError, match="Further uses 'product', a solution of the core; tag its cell engine"):
        assignments(text)


@pytest.mark.parametrize("there", ["absent", "not begun", "begun"])
def test_the_own_engine_goes_into_it_and_what_it_adds_goes_on(
    there: str, text: Path, desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = assignments(text)
    put(desk, CORE, built[CORE], product=("return MiniTensor", "mine = 1\n    return MiniTensor"))
    run(desk, FURTHER, built[FURTHER], monkeypatch)
    assert "Using your own engine of lesson 02." in capsys.readouterr().out
    assert "mine = 1" in (desk / FURTHER / "engine.py").read_text()
    if there != "absent":
        word = f"{EARLY}\n    output = " if there == "not begun" else "my_own = output = "
        put(desk, FURTHER, built[FURTHER], exponential=("output = ", word))
    names = run(desk, NEXT, assemble(text.parents[1] / NEXT / f"{NEXT}.py"), monkeypatch)
    assert capsys.readouterr().out.startswith("Using your own engine of lesson 02.\n")
    assert names["MiniTensor"](0.0).exp().data == 1.0
    source = (desk / NEXT / "engine.py").read_text()
    assert ("mine = 1" in source, "my_own = output" in source) == (True, there == "begun")


def test_it_is_built_delivered_and_taken_from_elsewhere(text: Path, tmp_path: Path) -> None:
    course = text.parents[2]
    build_lesson(text, course)
    assert [lesson_name(course, name) for name in ("02", "02_further", "07")] == [CORE, FURTHER, "07"]
    workspace = Workspace(tmp_path / "workspace")
    assert [file.name for file in workspace.deliver(text, course)] == [f"{n}/{n}.ipynb" for n in (CORE, FURTHER)]
    mine = workspace.notebook(text, further=True).read_bytes().replace(EARLY.encode(), b"return 1")
    brought = {f"{FURTHER}/{FURTHER}.ipynb": mine}
    assert workspace.take(text, brought) is None
    taken = workspace.take(text, brought, further=True)
    assert taken is not None
    assert (taken.what, taken.path.read_bytes()) == ("taken", mine)


def test_building_names_both_notebooks(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["build", "02", "--course", str(text.parents[2])]) == 0
    assert [Path(line).stem for line in capsys.readouterr().out.splitlines()] == [CORE, FURTHER]
