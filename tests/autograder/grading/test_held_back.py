"""A class whose releases hold no answers: what a student gets, how it is graded, and the reference engine later."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.cli import main
from autograder.lessons.builder.notebook import build_lesson
from autograder.notebooks.cells import grade_id
from autograder.quizzes.sealing import SEALED_TEXT, is_held_back, open_questions
from autograder.sandbox.inside.engine_file import REFERENCE_FILE, SEALED_ENGINE, open_engine
from tests.autograder.grading.here import in_this_process
from tests.autograder.grading.test_nbgrader_commands import CONFIGURATION
from tests.autograder.nbgrader_commands import NbgraderCommands

pytestmark = pytest.mark.sandbox

LESSONS = Path(__file__).parents[1] / "lessons"
EXPLANATION = "Both of its inputs are the same."
QUIZ = f"""
# %% tags=["quiz"] nbgrader={{"grade": true, "grade_id": "quiz_03", "points": 2}}
question(
    "inputs",
    "How many inputs has a square?",
    right("two, which are equal", "{EXPLANATION}"),
    wrong("none", "Then it would be a constant."),
)
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, nbgrader: NbgraderCommands) -> Path:
    """A course with lesson 03 released by nbgrader, its answers held back."""
    root = tmp_path_factory.mktemp("course")
    for name, file in {"02_numbers": "engine_lesson.txt", "03_more": "next_lesson.txt"}.items():
        text = (LESSONS / file).read_text() + QUIZ * (name == "03_more")
        path = root / "lessons" / name / f"{name}.py"
        path.parent.mkdir(parents=True)
        path.write_text(text.replace("import between", "import quiz, between"))
        build_lesson(path, root)
    (root / "nbgrader_config.py").write_text(f"{CONFIGURATION}\nc.HoldBack.enabled = True\n")
    nbgrader("generate_assignment", "03_more", "--create", cwd=root)
    return root


def released(course: Path) -> NotebookNode:
    return nbformat.read(course / "release" / "03_more" / "03_more.ipynb", as_version=4)


def found(notebook: NotebookNode) -> tuple[str, str]:
    """The sealed engine and the sealed quiz of a notebook."""
    text = "\n".join(cell.source for cell in notebook.cells)
    engine, quiz = SEALED_ENGINE.search(text), SEALED_TEXT.search(text)
    assert engine
    assert quiz
    return engine[1], quiz[1]


def test_a_release_holds_neither_solutions_nor_records(course: Path) -> None:
    engine, quiz = found(released(course))
    assert open_engine(engine).is_held_back
    assert is_held_back(quiz)
    assert [question.key for question in open_questions(quiz)] == ["inputs"]


def test_grading_has_the_reference_and_the_answers(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The submission has no engine of its own, and it changed the call with which the release provides one."""
    source = nbformat.read(course / "source" / "03_more" / "03_more.ipynb", as_version=4)
    (question,) = open_questions(found(source)[1])
    letter = next(letter for letter, text in question.options.items() if text.startswith("two"))
    notebook = released(course)
    for cell in notebook.cells:
        if "start_lesson(" in cell.source:
            cell.source = cell.source.replace("start_lesson(", "start_lesson(own=True) or (")
        cell.source = cell.source.replace('"inputs": ""', f'"inputs": "{letter}"')
        if grade_id(cell) == "square":
            cell.source = "def square(a):\n    return product(a, a)\n\nMiniTensor.square = square"
    folder = course / "submitted" / "ann" / "03_more"
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / "03_more.ipynb")
    with in_this_process():
        assert main(["grade", "03_more", "--course", str(course)]) == 0
    assert "4 / 4" in capsys.readouterr().out
    graded = (course / "autograded" / "ann" / "03_more" / "03_more.ipynb").read_text()
    assert EXPLANATION in graded
    assert "engine.py was not handed in" in graded


def test_the_reference_is_given_out_later(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reference", "03_more", "--course", str(course)]) == 0
    assert "Release 03_more again" in capsys.readouterr().out
    given = (course / "release" / "03_more" / REFERENCE_FILE).read_text().strip()
    assert "grad * b.data" in open_engine(given).source


@pytest.mark.parametrize(
    ("lesson", "said"), [("02_numbers", "generate the lesson's release"), ("07_no", "has no lesson '07_no'. It has: ")]
)
def test_a_lesson_without_release_is_named(
    lesson: str, said: str, course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reference", lesson, "--course", str(course)]) == 2
    assert said in capsys.readouterr().err
