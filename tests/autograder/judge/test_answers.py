"""A message says where the trouble began: an answer that is missing, or whose cell stopped before the test did."""

import copy

import pytest

from autograder.judge.judge import judge_notebook
from autograder.judge.writing.answers import troubles
from tests.autograder.judge.notebooks import cell, notebook

TEST = "# test\nassert double(2) == 4"
GONE = "The cell `cell0` is missing."


def lesson(answer):
    return notebook(answer, TEST)


def message(submitted, source):
    (judged,) = judge_notebook(submitted, source=source).cells
    return judged.message


RIGHT = "def double(x):\n    return 2 * x"
ANSWERS = {
    "a mistake in the syntax": ("def doub le(x):\n    return 2 * x", "The cell `cell0` stopped with SyntaxError: "),
    "an error": (f"{RIGHT.replace('double', 'twice')}\ndouble = twce", "The cell `cell0` stopped with NameError: name"),
    "a crash": ("import os\nos._exit(1)", "The cell `cell0` was stopped: "),
}


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ANSWERS)
def test_the_cell_that_stopped_is_named_first(name):
    answer, said = ANSWERS[name]
    text = message(lesson(answer), lesson(RIGHT))
    assert text.startswith(said)
    assert "double" in text.removeprefix(said), "and then what the test has to say"


@pytest.mark.sandbox
def test_a_cell_that_is_gone_is_named_first():
    source = lesson(RIGHT)
    submitted = copy.deepcopy(source)
    del submitted.cells[0]
    assert message(submitted, source).startswith(f"{GONE} name 'double' is not defined")


@pytest.mark.sandbox
@pytest.mark.parametrize("answer", [RIGHT, "raise NotImplementedError()", "def double(x):\n    return x"])
def test_an_answer_that_ran_or_was_never_begun_is_not_blamed(answer):
    assert "cell0" not in message(lesson(answer), lesson(RIGHT))


def test_an_answer_is_that_of_the_tests_that_follow_it_and_of_no_others():
    source = notebook("one = 1", cell("", "test", "t1"), cell("", "test", "t2"), "two = 2", cell("", "test", "t3"))
    submitted = copy.deepcopy(source)
    del submitted.cells[0]
    assert troubles(submitted, source) == {"t1": GONE, "t2": GONE}
    assert troubles(submitted, None) == {}


@pytest.mark.sandbox
def test_the_line_that_a_check_shows_is_the_students_and_never_one_of_ours():
    test = "# test\nfrom autograder.student import check_function\ncheck_function(twice, lambda x: x, [()], points=1)"
    stub = "def twice(x):\n    raise NotImplementedError()"
    text = message(notebook(stub, test), notebook("def twice(x):\n    return x", test))
    assert "not written yet (`raise NotImplementedError()`)" in text
