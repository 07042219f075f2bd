"""Questions that a person grades: off by default, without their mark scheme wherever a student looks, and with it where
somebody grades.
"""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from autograder.cli import main
from autograder.lessons.builder.lesson_files import LessonTextError, lesson_texts
from autograder.lessons.builder.notebook import assemble, build_lesson
from autograder.lessons.builder.paths import PATHS
from autograder.lessons.builder.text import TextCell, read_lesson
from autograder.lessons.release import release_notebook
from autograder.notebooks.cells import grade_id, points_of
from autograder.notebooks.headings import titles
from autograder.notebooks.regions import MARK_SCHEME, regions
from tests.autograder.grading.here import in_this_process
from tests.autograder.grading.test_nbgrader_commands import CONFIGURATION
from tests.autograder.nbgrader_commands import NbgraderCommands

COURSE = Path(__file__).parents[3] / "course"
SCHEME = "Two ways lead there, and their shares add up."
QUESTION = f"""
# %% [markdown] question="why_twice" points=3
# ### Why twice?
#
# The square uses its input twice. **Why** does the gradient have a factor 2?
#
# ### BEGIN MARK SCHEME
# {SCHEME}
# ### END MARK SCHEME
"""
ANSWER = "Because there are two ways."


def questions_of(text: Path) -> list[TextCell]:
    return [cell for cell in read_lesson(text, questions=True) if cell.is_question]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course with lesson 02, which has a question; not yet built."""
    text = tmp_path / "lessons" / "02_numbers" / "02_numbers.py"
    text.parent.mkdir(parents=True)
    text.write_text((Path(__file__).parents[1] / "lessons" / "engine_lesson.txt").read_text() + QUESTION)
    (tmp_path / "nbgrader_config.py").write_text(CONFIGURATION)
    return tmp_path


def test_a_course_asks_only_if_it_says_so(course: Path) -> None:
    (text,) = lesson_texts(course)
    assert "why_twice" not in build_lesson(text, course).read_text()
    (course / PATHS).write_text("questions = true\n")
    built = nbformat.read(build_lesson(text, course), as_version=4)
    assert [grade_id(cell) for cell in built.cells][-2:] == ["why_twice_question", "why_twice"]
    assert titles(built.cells)["why_twice"] == "Why twice?"


@pytest.mark.parametrize(
    "wrong", [QUESTION.replace(SCHEME, ""), QUESTION.replace("# ### END MARK SCHEME", ""), QUESTION.partition("#\n")[0]]
)
def test_a_question_without_a_mark_scheme_is_refused(wrong: str, course: Path) -> None:
    (text,) = lesson_texts(course)
    text.write_text(text.read_text().replace(QUESTION, wrong))
    with pytest.raises(LessonTextError, match="why_twice"):
        assemble(text, questions=True)


@pytest.mark.sandbox
def test_an_answer_waits_for_a_person_who_sees_the_mark_scheme(
    course: Path, nbgrader: NbgraderCommands, capsys: pytest.CaptureFixture[str]
) -> None:
    (course / PATHS).write_text("questions = true\n")
    build_lesson(lesson_texts(course)[0], course)
    nbgrader("generate_assignment", "02_numbers", "--create", cwd=course)
    released = nbformat.read(course / "release" / "02_numbers" / "02_numbers.ipynb", as_version=4)
    assert SCHEME not in nbformat.writes(released)
    for student in ("ann", "bob"):
        folder = course / "submitted" / student / "02_numbers"
        folder.mkdir(parents=True)
        released.cells[-1].source = ANSWER if student == "ann" else released.cells[-1].source
        nbformat.write(released, folder / "02_numbers.ipynb")
        released.cells[-1].source = "YOUR ANSWER HERE"
    with in_this_process():
        options = ["--feedback", "--json", str(course / "marks.json")]
        assert main(["grade", "02_numbers", "--course", str(course), *options]) == 0
    marks = {record["student"]: record for record in json.loads((course / "marks.json").read_text())}
    assert {name: marks[name].get("open_points") for name in marks} == {"ann": 3, "bob": 0}
    graded = (course / "autograded" / "ann" / "02_numbers" / "02_numbers.ipynb").read_text()
    assert SCHEME in graded
    page = (course / "feedback" / "ann" / "02_numbers" / "02_numbers.html").read_text()
    assert "Why twice?" in page
    assert ANSWER in page
    assert SCHEME not in page


def test_the_lessons_have_such_questions_and_release_none_of_their_mark_schemes() -> None:
    asking = [text for text in lesson_texts(COURSE) if questions_of(text)]
    assert len(asking) >= 8
    for text in asking:
        whole = assemble(text, questions=True)
        assert not {cell.grade_id for cell in questions_of(text)} & {grade_id(cell) for cell in assemble(text).cells}
        points = {grade_id(cell): points_of(cell) for cell in release_notebook(whole).cells}
        for cell in questions_of(text):
            (scheme,) = (region.text for region in regions(cell.source) if region.kind == MARK_SCHEME)
            assert scheme.count("* 1 point: ") == points[cell.grade_id], "one line for each point"
            assert "Wrong answers, and what they get:" in scheme
