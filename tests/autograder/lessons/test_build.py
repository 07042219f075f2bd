"""A lesson's text becomes the same notebook every time, and an error in a text is reported with its line."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder import cli
from autograder.lessons.builder.lesson_files import LessonTextError
from autograder.lessons.builder.notebook import assemble, build_lesson, styles
from autograder.lessons.builder.text import read_lesson
from autograder.notebooks.cells import TESTED
from autograder.quizzes import sealing


def test_building_twice_gives_the_same_bytes(course: Path, lesson: Path) -> None:
    built = build_lesson(lesson, course)
    assert built == course / "source" / "01_squares" / "01_squares.ipynb"
    first = built.read_bytes()
    built.unlink()
    assert build_lesson(lesson, course).read_bytes() == first


def test_an_unchanged_notebook_is_not_written_again(course: Path, lesson: Path) -> None:
    built = build_lesson(lesson, course)
    before = built.stat().st_mtime_ns
    build_lesson(lesson, course)
    assert built.stat().st_mtime_ns == before


def test_an_edit_elsewhere_keeps_the_ids_of_cells(lesson: Path) -> None:
    before = [cell.id for cell in assemble(lesson).cells]
    lesson.write_text(lesson.read_text().replace("# # Squares", "# # Squares and more"))
    after = [cell.id for cell in assemble(lesson).cells]
    assert before[1:] == after[1:]


def test_the_notebook_is_valid_and_carries_nothing_of_the_text_format(course: Path, lesson: Path) -> None:
    notebook = nbformat.read(build_lesson(lesson, course), as_version=4)
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(set(cell.metadata) <= {"nbgrader", "tags", "jupyter", TESTED} for cell in notebook.cells)
    assert not any("def slope(x):\n    return x + x" in cell.source for cell in notebook.cells)


def test_data_that_the_lesson_reads_is_copied_beside_it(course: Path, lesson: Path) -> None:
    data = build_lesson(lesson, course).parent / "data" / "points.csv"
    assert data.read_text() == "1,2\n3,4\n"


def test_hints_become_one_sealed_cell_at_the_place_of_the_first(lesson: Path) -> None:
    cells = assemble(lesson).cells
    position = next(n for n, cell in enumerate(cells) if "hints(" in cell.source)
    assert cells[position - 1].metadata.nbgrader.grade_id == "slope"
    sealed = ast.literal_eval(cells[position].source.partition("hints(")[2].rstrip(")"))
    assert sealing.open_hints(sealed) == [
        "The exponent comes down in front of the power.",
        "Its derivative is twice the number, so `2 * x`.",
    ]
    assert sum("exponent comes down" in cell.source for cell in cells) == 0


CUBE = """
# %% [markdown]
# Write a function that returns the derivative of $x^3$.

# %% nbgrader={"grade_id": "cube", "solution": true}
def cube(x):
    ### BEGIN SOLUTION
    return 3 * x**2
    ### END SOLUTION

# %% nbgrader={"grade_id": "test_cube", "grade": true, "points": 1}
check_function(cube, lambda x: times(3, x) * x, [2.0], points=1)

# %% [markdown]
# ## Questions
"""


def test_a_check_repeats_what_only_a_check_above_it_defines(lesson: Path) -> None:
    helpers = "FACTOR = 1\n\n\ndef times(n, x):\n    return FACTOR * n * x\n\n\ncredit = check_function(slope, "
    text = lesson.read_text().replace("credit = check_function(slope, ", helpers, 1)
    lesson.write_text(text.replace("\n# %% [markdown]\n# ## Questions\n", CUBE, 1))
    check = next(cell for cell in assemble(lesson).cells if cell.id == "test_cube")
    names: dict[str, Any] = {"cube": lambda x: 3 * x**2}
    exec("from autograder.student import check_function\n" + check.source, names)
    assert names["times"](3, 2.0) == 6.0, "a student who skips the first check can run the second one"
    assert check.source.startswith("# Run this cell to check your answer (1 point).\nFACTOR = 1\n")
    assert "-1.75" not in check.source, "hidden tests are not repeated"


HIDDEN = "### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS\n"
HELPER = "def try_slope(x):\n    assert slope(x)\n\n\n"
CREDIT = "credit = check_function(slope, lambda x: 2 * x, [2.0], points=1)\n"
MORE = "credit += check_function(slope, lambda x: 2 * x, [-1.75], points=2)"


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (f"{CREDIT}{HIDDEN.format(MORE)}credit", "3 points: 1 here, 2 in hidden tests)."),
        (f"{CREDIT}{HIDDEN.format('assert slope(1)' + chr(10) + MORE)}credit", "3 points; hidden tests count too)."),
        (f"credit = 1\n{HIDDEN.format('credit += 2')}credit", "3 points; hidden tests count too)."),
        (f"assert slope(1)\n{HIDDEN.format('assert slope(3)')}", "3 points, all or none; hidden tests count too)."),
        (f"{HELPER}try_slope(1)\n{HIDDEN.format('try_slope(2)')}", "3 points, all or none; hidden tests count too)."),
        (
            f"{HELPER}{CREDIT}{HIDDEN.format('try_slope(2)' + chr(10) + MORE)}credit",
            "3 points; hidden tests count too).",
        ),
        (f"{CREDIT}{HIDDEN.format(MORE + ' if slope(0) == 0 else 0')}credit", "3 points; hidden tests count too)."),
        (f"{CREDIT}{HIDDEN.format(MORE)}assert credit > 1", "3 points, all or none; hidden tests count too)."),
        (f"{CREDIT}{HIDDEN.format(MORE)}min(credit, 3)", "3 points: 1 here, 2 in hidden tests)."),
        (f"credit = 3\n{HIDDEN.format('credit -= 1')}float(credit)", "3 points; hidden tests count too)."),
        (f"table = dict(points=None)\nassert slope(1)\n{HIDDEN.format('assert slope(2)')}", "3 points, all or none;"),
        ("assert slope(1)", "3 points)."),
        (f"assert slope(1)\n{HIDDEN.format('# none yet')}", "3 points)."),
    ],
)
def test_the_first_line_of_a_check_says_what_hidden_tests_decide(lesson: Path, test: str, said: str) -> None:
    text = lesson.read_text()
    before, _, rest = text.partition("credit = check_function(slope, ")
    _, edge, after = rest.partition("\n# %%")
    lesson.write_text(before + test + "\n" + edge + after)
    check = next(cell for cell in assemble(lesson).cells if cell.id == "test_slope")
    assert check.source.startswith(f"# Run this cell to check your answer ({said}")


def test_a_quiz_becomes_questions_answers_and_a_check(lesson: Path) -> None:
    questions, answers, check = assemble(lesson).cells[-3:]
    assert "**Question 1.** What is the slope of $x^2$ at 0?" in questions.source
    assert "**Question 2.** Left of 0 the slope is ..." in questions.source
    names: dict[str, dict[str, str]] = {}
    exec(answers.source, names)
    right = names["quiz_01_answers"]
    call = ast.parse(check.source).body[0].value
    sealed = next(keyword.value.value for keyword in call.keywords if keyword.arg == "sealed")
    assert list(right) == sealing.question_keys(sealed) == ["at_zero", "sign"]
    for key, letter in right.items():
        for option in sealing.option_letters(sealed, key):
            opened = sealing.open_answer(sealed, key, option)
            assert opened.right == (option == letter)
            assert f"- **{option})** {opened.text}" in questions.source
    assert answers.metadata.nbgrader.grade_id == "quiz_01_answers"
    assert check.metadata.nbgrader.grade_id == "quiz_01"
    assert check.metadata.nbgrader.locked
    assert check.metadata.nbgrader.points == 2


def test_styles_are_found_by_name(lesson: Path) -> None:
    assert styles(lesson) == {"addition": {"slope": "def slope(x):\n    return x + x"}}


def test_lines_are_right_even_after_a_marker_inside_a_string(lesson: Path) -> None:
    text = lesson.read_text() + '\n# %%\nexample = """\n# %% [markdown]\n# not a cell\n"""\n\n# %%\nlast = 1\n'
    lesson.write_text(text)
    last = read_lesson(lesson)[-1]
    assert last.source == "last = 1"
    assert text.splitlines()[last.line] == "last = 1"


SLOPE = '# %% nbgrader={"grade_id": "slope", "solution": true}'
TEST = '# %% nbgrader={"grade_id": "test_slope", "grade": true, "points": 3}'
STYLE = '# %% tags=["style:addition"] exercise="slope"'
HINT = '# %% [markdown] tags=["hint"] exercise="slope"'
SECOND = '# %% nbgrader={"grade_id": "second", "solution": true}\n### BEGIN SOLUTION\n### END SOLUTION'

BROKEN = {
    "grade_id twice": (TEST, TEST.replace("test_slope", "slope"), "cell 'slope': grade_id 'slope' is used twice"),
    "the quiz's own id twice": (SLOPE, SLOPE.replace("slope", "quiz_01_answers"), "'quiz_01_answers' is used twice"),
    "no grade_id": (SLOPE, '# %% nbgrader={"solution": true}', "no grade_id"),
    "odd grade_id": (SLOPE, SLOPE.replace("slope", "my slope"), "letters, digits"),
    "no points": (TEST, TEST.replace(', "points": 3', ""), "cell 'test_slope': a graded cell needs points"),
    "text for points": (TEST, TEST.replace("3}", '"3"}'), "positive number"),
    "points on a solution": (SLOPE, SLOPE.replace("}", ', "points": 1}'), "points without"),
    "points that do not add up": (TEST, TEST.replace("3}", "4}"), "checks give 3.0 points, but the cell has 4"),
    "no solution region": ("    ### BEGIN SOLUTION\n", "", "END SOLUTION without BEGIN"),
    "no region at all": (
        "    ### BEGIN SOLUTION\n    factor = 2.0\n    return factor * x\n    ### END SOLUTION\n",
        "    return 2 * x\n",
        "needs ### BEGIN SOLUTION",
    ),
    "region left open": ("### END HIDDEN TESTS\n", "", "BEGIN HIDDEN TESTS without END"),
    "region in a region": ("    factor = 2.0\n", "    ### BEGIN SOLUTION\n", "BEGIN SOLUTION inside a solution"),
    "wrong end": ("### END HIDDEN TESTS\n", "### END SOLUTION\n", "END SOLUTION without BEGIN"),
    "solution in an ordinary cell": (SLOPE, "# %%", "outside a solution cell"),
    "hidden tests in an ordinary cell": (TEST, "# %%", "outside a test cell"),
    "unknown tag": ('tags=["demo"]', 'tags=["dmeo"]', "unknown tag 'dmeo'"),
    "unknown metadata": ('tags=["demo"]', "color=3", "unknown metadata 'color'"),
    "unreadable cell line": (SLOPE, '# %% nbgrader={"grade_id": "slope", solution}', "cannot be read"),
    "no lead-in": (TEST, f"{SECOND}\n\n{TEST}", "cell 'second': an exercise needs a lead-in"),
    "exercise number twice": (
        "# ## The slope of a square\n",
        "# ## Exercise 1: a slope\n#\n# ### Exercise 1: of a square\n",
        "'Exercise 1' is exercise 2 of the lesson",
    ),
    "exercise number left out": (
        "# ## The slope of a square\n",
        "# ## Exercise 1: a slope\n#\n# # Further\n#\n# ### Exercise 3: of a square\n",
        "'Exercise 3' is exercise 2 of the lesson",
    ),
    "hint for nothing": (HINT, HINT.replace("slope", "slop"), "a hint must be"),
    "four hints": (HINT, f"{HINT}\n# One.\n\n{HINT}\n# Two.\n\n{HINT}", "more than 3 hints"),
    "style for nothing": (STYLE, STYLE.replace("slope", "slop"), "a style must be"),
    "exercise on an ordinary cell": ('tags=["demo"]', 'exercise="slope"', "only on hint and style cells"),
    "quiz not imported": ("check_function, hints, quiz", "check_function, hints", "must import quiz"),
    "hints not imported": ("check_function, hints, quiz", "check_function, quiz", "must import hints"),
    "two right options": ('wrong("positive"', 'right("positive"', "does not know 'misconception'"),
    "two right answers": ('wrong("undefined"', 'right("undefined"', "'at_zero' has 2 right options"),
    "no right answer": ('right("negative"', 'wrong("negative"', "'sign' has 0 right options"),
    "key twice": ('"sign"', '"at_zero"', "'at_zero' is used twice"),
    "code in a quiz": ('right("negative"', 'right("nega" + str(1)', "only literal strings"),
    "a call in a quiz": ("question(\n    \"sign\"", "print(\n    \"sign\"", "only question\\(...\\) calls"),
    "no explanation": (', "It falls towards the lowest point."', "", "an option has the form right"),
    "no valid Python": ("factor = 2.0", "factor = = 2.0", "cell 'slope': not valid Python"),
    "a region misspelled": ("### BEGIN HIDDEN TESTS", "### BEGIN HIDDEN TEST", "'### BEGIN HIDDEN TEST' hides nothing"),
    "a region in small letters": ("### END HIDDEN TESTS", "# end hidden_tests", "'# end hidden_tests' hides nothing"),
    "a forgotten assert": ("credit\n", "credit\nslope(1) == 2\ncredit\n", "a condition on a line of its own"),
    "a misspelled check": ("credit = check_function(", "credit = check_functions(", "there is no check_functions; the"),
    "a cell magic in a test": (f"{TEST}\n", f"{TEST}\n%%time\n", "cannot begin with a cell magic"),
    "a question twice": ("credit\n", 'credit\npredict("a?")\npredict("a?")\n', "'a\\?' is asked twice, first in line"),
    "data that is not there": ("data/points.csv", "data/other.csv", "needs data/other.csv, which .* does not have"),
}  # fmt: skip


GIVING = {
    "another check": "credit = check_gradients(lambda a: a * a, [()], points=3)",
    "points of its own": "credit = check_function(slope, float, [1.0], points=1)\ncredit += 2 * (slope(1) == 2)",
}


@pytest.mark.parametrize("name", GIVING)
def test_every_check_and_points_of_its_own_count(name: str, course: Path, lesson: Path) -> None:
    before, _, rest = lesson.read_text().partition("credit = check_function(slope, ")
    after = rest.partition("\n# %%")[2]
    lesson.write_text(f"{before}{GIVING[name]}\ncredit\n\n# %%{after}")
    assert build_lesson(lesson, course).is_file()


def test_a_lesson_in_another_encoding_is_refused(course: Path, lesson: Path) -> None:
    lesson.write_bytes(lesson.read_text().replace("# # Squares", "# # Zoë").encode("latin-1"))
    with pytest.raises(LessonTextError, match=r"^01_squares\.py:\d+: this lesson is not in UTF-8"):
        build_lesson(lesson, course)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_lesson_is_refused_with_its_place(name: str, course: Path, lesson: Path) -> None:
    old, new, message = BROKEN[name]
    text = lesson.read_text()
    assert old in text
    lesson.write_text(text.replace(old, new, 1))
    with pytest.raises(LessonTextError, match=message) as caught:
        build_lesson(lesson, course)
    assert str(caught.value).startswith("01_squares.py:")
    assert not (course / "source").exists()


HEADER_ALONE = "# ---\n# jupyter:\n#   text_representation:\n#     extension: .py\n# ---\n"


@pytest.mark.parametrize("text", ["", "\n\n", HEADER_ALONE])
def test_an_empty_lesson_is_refused(text: str, course: Path, lesson: Path) -> None:
    lesson.write_text(text)
    with pytest.raises(LessonTextError, match=r"^01_squares\.py:1: this lesson is empty"):
        build_lesson(lesson, course)


def test_the_named_line_is_the_wrong_one(course: Path, lesson: Path) -> None:
    text = lesson.read_text().replace("    factor = 2.0\n", "    factor = = 2.0\n")
    lesson.write_text(text)
    with pytest.raises(LessonTextError) as caught:
        build_lesson(lesson, course)
    line = int(str(caught.value).split(":")[1])
    assert text.splitlines()[line - 1] == "    factor = = 2.0"


def test_the_command_builds_what_is_named_and_reports_the_rest(
    course: Path, lesson: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = lesson.parents[1] / "02_broken" / "02_broken.py"
    broken.parent.mkdir()
    broken.write_text('# %% tags=["nonsense"]\n1\n')
    assert cli.main(["build", "--course", str(course), "01"]) == 0
    assert cli.main(["build", "--course", str(course)]) == 1
    assert "02_broken.py:1" in capsys.readouterr().err
    assert cli.main(["build", "--course", str(course), "07"]) == 1
    assert "01_squares, 02_broken" in capsys.readouterr().err
    assert json.loads((course / "source" / "01_squares" / "01_squares.ipynb").read_text())["nbformat"] == 4
    broken.rename(course / "lessons" / broken.name)
    assert cli.main(["build", "--course", str(course)]) == 1
    assert "move lessons/02_broken.py to lessons/02_broken/02_broken.py" in capsys.readouterr().err
