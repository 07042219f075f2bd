"""A module of helpers is beside its notebook wherever that runs, and grading never uses a student's version."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from autograder import cli
from autograder.lessons.audit import gates
from autograder.lessons.audit.variants import solved_release
from autograder.lessons.builder.lesson_engines import engine_after
from autograder.lessons.builder.lesson_files import LessonTextError
from autograder.lessons.builder.notebook import assemble, build_lesson, notebook_text
from autograder.lessons.commands.audit import isolated_judge
from autograder.lessons.student import starting
from autograder.lessons.student.delivery import Workspace
from autograder.sandbox.inside import engine_file
from tests.autograder.grading.test_nbgrader_commands import CONFIGURATION
from tests.autograder.nbgrader_commands import NbgraderCommands

HERE = Path(__file__).parent
MODULE = '''"""What lesson 01 shows and nobody has to write."""


def slopes(slope, numbers):
    """The slope at each number."""
    return [slope(number) for number in numbers]
'''
GIVES_POINTS = "def slopes(slope, numbers):\n    return [2.0, 4.0]\n"
IMPORT = "from helpers_01 import slopes"
SHOWN = "# %%\nprint(slopes(lambda x: 7.0 * x, [1.0]))"
TEST = """# %% nbgrader={"grade_id": "test_slopes", "grade": true, "points": 1}
assert slopes(slope, [1.0, 2.0]) == [2.0, 4.0]"""


@pytest.fixture
def helped(course: Path, lesson: Path) -> Path:
    """The text of the small lesson, which now imports a module of helpers for a given cell and a test."""
    lesson.with_name("helpers_01.py").write_text(MODULE)
    text = lesson.read_text().replace("import numpy as np\n", f"import numpy as np\n\n{IMPORT}\n")
    lesson.write_text(
        text.replace("# %% [markdown]\n# ## Questions", f"{SHOWN}\n\n{TEST}\n\n# %% [markdown]\n# ## Questions")
    )
    return lesson


def test_the_module_is_built_beside_the_notebook(helped: Path, course: Path) -> None:
    assert (build_lesson(helped, course).parent / "helpers_01.py").read_text() == MODULE


def test_the_cell_that_imports_it_is_folded_and_names_it(helped: Path) -> None:
    (cell,) = (cell for cell in assemble(helped).cells if IMPORT in cell.source)
    assert cell.metadata.jupyter.source_hidden
    assert "helpers_01.py" in cell.source.splitlines()[0]


def test_it_is_delivered_and_a_newer_one_replaces_it_unless_it_was_changed(
    helped: Path, course: Path, tmp_path: Path
) -> None:
    there = tmp_path / "workspace" / "01_squares" / "helpers_01.py"

    def delivered() -> dict[str, str]:
        return {file.path.name: file.what for file in Workspace(tmp_path / "workspace").deliver(helped, course)}

    def change(file: Path) -> None:
        file.write_text(file.read_text() + "\n\nNUMBER = 1\n")

    assert delivered()["helpers_01.py"] == "new"
    change(course / "lessons" / "01_squares" / "helpers_01.py")
    assert delivered()["helpers_01.py"] == "updated"
    change(there)
    change(course / "lessons" / "01_squares" / "helpers_01.py")
    change(course / "lessons" / "01_squares" / "helpers_01.py")
    assert "beside" in delivered().values()
    assert there.read_text().count("NUMBER") == 2


def test_one_that_is_missing_is_named_with_its_line(helped: Path, course: Path) -> None:
    (course / "lessons" / "01_squares" / "helpers_01.py").unlink()
    line = helped.read_text().splitlines().index(IMPORT) + 1
    with pytest.raises(
        LessonTextError, match=rf"^01_squares.py:{line}: the lesson needs helpers_01.py, which .*01_squares"
    ):
        build_lesson(helped, course)


@pytest.mark.slow
@pytest.mark.sandbox
def test_the_gates_run_it(helped: Path, course: Path) -> None:
    assert [str(found) for found in gates.audit_lesson(helped, course, isolated_judge()) if not found.passed] == []


def test_one_that_shows_a_solution_is_refused(helped: Path, course: Path) -> None:
    with (course / "lessons" / "01_squares" / "helpers_01.py").open("a") as file:
        file.write("\n\ndef slope(x):\n    factor = 2.0\n    return factor * x\n")
    _, problems = gates.release_hides(gates.Lesson(helped, course, isolated_judge(), course, assemble(helped)))
    assert problems[0].startswith("helpers_01.py shows solution")


BY: dict[str, Callable[[Path, NbgraderCommands], object]] = {
    "autograder": lambda course, _: cli.main(["grade", "01_squares", "--course", str(course), "--workers", "1"]),
    "nbgrader": lambda course, nbgrader: nbgrader("autograde", "01_squares", cwd=course),
}


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.parametrize("way", BY)
def test_it_is_released_and_grading_uses_the_instructor_s(
    way: str, helped: Path, course: Path, nbgrader: NbgraderCommands
) -> None:
    """Ann left out her copy, and Bob, who has no solution, wrote one that gives the right answers."""
    source = nbformat.read(build_lesson(helped, course), as_version=4)
    (course / "nbgrader_config.py").write_text(CONFIGURATION)
    nbgrader("generate_assignment", "01_squares", "--create", cwd=course)
    assert (course / "release" / "01_squares" / "helpers_01.py").read_text() == MODULE
    solved = notebook_text(solved_release(source))
    for student, notebook in {"ann": solved, "bob": solved.replace("factor = 2.0", "factor = 3.0")}.items():
        folder = course / "submitted" / student / "01_squares"
        folder.mkdir(parents=True)
        (folder / "01_squares.ipynb").write_text(notebook)
    (folder / "helpers_01.py").write_text(GIVES_POINTS)
    BY[way](course, nbgrader)
    assert graded(course, "ann") == ("[7.0]\n", 1.0)
    assert graded(course, "bob") == ("[7.0]\n", 0.0)


def graded(course: Path, student: str) -> tuple[str, float]:
    """What the given cell printed, and the points of the test."""
    notebook = json.loads((course / "autograded" / student / "01_squares" / "01_squares.ipynb").read_text())
    (shown,) = (cell for cell in notebook["cells"] if "slopes(lambda" in "".join(cell["source"]))
    (test,) = (
        cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == "test_slopes"
    )
    return "".join(shown["outputs"][0]["text"]), float(not any(o["output_type"] == "error" for o in test["outputs"]))


@pytest.fixture
def engines(tmp_path: Path) -> Path:
    """Two lessons with an engine; a check of the first uses a helper."""
    course = tmp_path / "course"
    for name in ("02_numbers", "03_more"):
        (course / "lessons" / name).mkdir(parents=True)
    (course / "lessons" / "02_numbers" / "helpers_02.py").write_text(
        '"""For checks."""\n\n\ndef twice(value):\n    return 2 * value\n'
    )
    text = (HERE / "engine_lesson.txt").read_text()
    text = text.replace("def twice(value):\n    return 2 * value\n", "").replace(
        "LIMIT =", "from helpers_02 import twice\n\nLIMIT ="
    )
    (course / "lessons" / "02_numbers" / "02_numbers.py").write_text(text)
    (course / "lessons" / "03_more" / "03_more.py").write_text((HERE / "next_lesson.txt").read_text())
    return course


def test_the_next_lesson_tries_the_own_engine_with_the_helpers_of_its_lesson(
    engines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = tmp_path / "desk"
    for text in sorted((engines / "lessons").glob("*/[0-9]*.py")):
        Workspace(desk).deliver(text, engines)
    monkeypatch.setattr(engine_file, "LAST", [])
    monkeypatch.delitem(sys.modules, "helpers_02", raising=False)  # another test has imported another course's
    monkeypatch.chdir(desk / "03_more")
    first = desk / "02_numbers" / "02_numbers.ipynb"
    first.write_text(
        notebook_text(without_marks(solved_release(assemble(engines / "lessons" / "02_numbers" / "02_numbers.py"))))
    )
    engine = engine_after(engines / "lessons" / "03_more" / "03_more.py", itself=False)
    assert engine is not None
    assert starting.choose(engine, None).message == "Using your own engine of lesson 02."


def without_marks(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    for cell in notebook.cells:
        lines = cell.source.splitlines(True)
        cell.source = "".join(line for line in lines if not line.strip().startswith("### "))
    return notebook


def test_an_engine_cannot_rest_on_a_helper(engines: Path) -> None:
    """The next lesson's folder does not have the helper."""
    lesson = engines / "lessons" / "02_numbers" / "02_numbers.py"
    text = lesson.read_text().replace("import math\n", "import math\n\nfrom helpers_02 import twice\n")
    lesson.write_text(text.replace("(grad * output,)", "(twice(grad) * output / 2,)"))
    with pytest.raises(LessonTextError, match="no engine cell defines 'twice'"):
        assemble(lesson)
