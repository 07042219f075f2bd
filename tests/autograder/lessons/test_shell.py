"""What a student's notebook shows without being asked, in a real kernel."""

from __future__ import annotations

import re
import time

import pytest
from nbclient import NotebookClient
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

CHECK = "# Run this cell to check your answer (1 point).\n"
CELLS = {
    "holds": "assert [number for number in (1, 2)] == [1, 2]",
    "no assertion": "numbers = [1]",
    "asserts in a function": "def sure(x):\n    assert x",
    "asserts in a function that it calls": "def check_it(x):\n    assert x\n\n\nfor x in (1, 2):\n    check_it(x)",
    "shows a value": "assert numbers\nnumbers",
    "fails": "assert not numbers, 'there are numbers'",
    "fails in a function": "def wants(x):\n    assert x, 'x is 0'\n\n\nwants(0)",
    "fails without words": "assert not numbers",
    "fails in another cell": "sure(0)",
    "fails after an error": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise AssertionError('divided') from None",
    "fails because of an error": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    assert False, 'divided'",
    "not written": "def norm(x):\n    raise NotImplementedError\n\n\nassert norm(2) == 2",
    "a rule not written": "class Sub:\n    def backward(x):\n        raise NotImplementedError\n\n\nSub.backward(1)",
    "an error with words": "def half(x):\n    raise NotImplementedError('odd numbers')\n\n\nhalf(1)",
    "answers missing": f"quiz(answers, sealed='{'x' * 20_000}')",
    "check before the answer": "# Run this cell to check your answer (1 point).\nassert norm2(1) in [2, 4]",
    "a return missing": CHECK + "def half(x):\n    x / 2\n\n\nassert half(2) + 1 == 2",
    "a name misspelled": "def root(x):\n    squared = x * x\n    return sqared",
    "its check": CHECK + "assert root(1) == 1",
    "an argument forgotten": CHECK + "assert root() == 1",
    "not in a check": "root()",
    "a name in another cell": "assert norm2(1) in [2, 4]",
    "no engine": "autograder.student.start_lesson('engine1.cut_off')",
    "endless": "def again(x):\n    return again(x)\n\n\nassert again(1)",
    "endless in a cleanup": "def twice(x):\n    try:\n        twice(x)\n    finally:\n        x + 1\n\n\ntwice(1)",
}


@pytest.fixture(scope="module")
def outputs() -> dict[str, list[NotebookNode]]:
    cells = [new_code_cell("import autograder.student"), *map(new_code_cell, CELLS.values())]
    notebook = new_notebook(cells=cells)
    started = time.process_time()
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute()
    assert time.process_time() - started < 30
    return dict(zip(CELLS, (cell.outputs for cell in notebook.cells[1:]), strict=True))


def test_assertions_that_hold_are_right(outputs: dict[str, list[NotebookNode]]) -> None:
    for name in ("holds", "asserts in a function that it calls"):
        (shown,) = outputs[name]
        assert shown.data["text/plain"].startswith("right: ")
        assert "right" in shown.data["text/html"]
        assert shown.output_type == "display_data", "nbgrader reads points from results alone"


def test_nothing_is_added_elsewhere(outputs: dict[str, list[NotebookNode]]) -> None:
    assert outputs["no assertion"] == []
    assert outputs["asserts in a function"] == []
    assert [output.output_type for output in outputs["shows a value"]] == ["execute_result"]
    assert [output.ename for output in outputs["fails"]] == ["AssertionError"]


def test_an_exercise_that_is_not_written_is_named_in_one_line(outputs: dict[str, list[NotebookNode]]) -> None:
    (error,) = outputs["not written"]
    assert error.ename == "NotImplementedError"
    assert len(error.traceback) == 1
    assert "`norm` is not written" in error.traceback[0]
    assert "`Sub.backward` is not written" in outputs["a rule not written"][0].traceback[0]
    assert "odd numbers" in "".join(outputs["an error with words"][0].traceback)


def test_a_sealed_text_does_not_fill_the_page(outputs: dict[str, list[NotebookNode]]) -> None:
    (line,) = outputs["answers missing"][0].traceback
    assert line == "NameError: name 'quiz' is not defined. Run the cell that defines it, then this one again."


def test_a_check_without_its_answer_shows_nothing_of_its_code(outputs: dict[str, list[NotebookNode]]) -> None:
    (line,) = outputs["check before the answer"][0].traceback
    assert line == "NameError: name 'norm2' is not defined. Run the cell that defines it, then this one again."
    assert "assert norm2(1)" in strip_ansi("\n".join(outputs["a name in another cell"][0].traceback))


SLIPS = {
    "a return missing": "TypeError: .*\nIs a `return` missing\\?$",
    "its check": "NameError: .*\nIs it misspelled, or did the cell that defines it not run.\nDid you mean `squared`.$",
    "an argument forgotten": "TypeError: .*\nWas an argument forgotten in the call, or is there one too many in",
    "not in a check": "TypeError: [^\n]*$",
}


@pytest.mark.parametrize("name", SLIPS)
def test_the_usual_cause_stands_below_an_error_in_a_check(name: str, outputs: dict[str, list[NotebookNode]]) -> None:
    assert re.search(SLIPS[name], strip_ansi("\n".join(outputs[name][0].traceback)))


def test_a_failed_assertion_of_the_cell_is_one_line_and_others_show_where(
    outputs: dict[str, list[NotebookNode]],
) -> None:
    failed = {name: cell[-1].traceback for name, cell in outputs.items() if name.startswith("fails")}
    shown = {name: strip_ansi("\n".join(lines)) for name, lines in failed.items()}
    assert shown.pop("fails") == "AssertionError: there are numbers"
    assert shown.pop("fails in a function") == "AssertionError: x is 0"
    assert shown.pop("fails after an error") == "AssertionError: divided"
    assert "assert not numbers" in shown.pop("fails without words")
    assert "assert x" in shown.pop("fails in another cell")
    assert "1 / 0" in shown.pop("fails because of an error")
    assert not shown


def test_why_there_is_no_engine_is_said_in_one_line(outputs: dict[str, list[NotebookNode]]) -> None:
    (error,) = outputs["no engine"]
    assert error.traceback == ["the text in start_lesson(...) is damaged; fetch the lesson again"]


@pytest.mark.parametrize("name", ["endless", "endless in a cleanup"])
def test_a_recursion_without_end_is_short(name: str, outputs: dict[str, list[NotebookNode]]) -> None:
    (error,) = outputs[name]
    text = "\n".join(error.traceback)
    assert error.ename == "RecursionError"
    assert "calls itself too often" in text
    assert len(text.splitlines()) < 60


def test_a_cell_of_assertions_that_never_ends_is_stopped() -> None:
    soon = "from autograder.checks import limits\n\nlimits.SECONDS, limits.ASLEEP = 0.5, 100\nimport autograder.student"
    order = "def order(nodes):\n    while nodes:\n        nodes = list(nodes)"
    test = "# Run this cell to check your answer (1 point).\nassert order([1]) == [1]"
    cells = [new_code_cell(source) for source in (soon, order, test, "print('on')")]
    NotebookClient(new_notebook(cells=cells), kernel_name="python3", allow_errors=True, timeout=60).execute()
    (error,) = cells[2].outputs
    assert error.ename == "TookTooMuch"
    assert len(error.traceback) == 1
    assert "after 0.5 seconds of processor time, in the line `" in error.traceback[0]
    assert "of `order`" in error.traceback[0]
    assert cells[3].outputs[0].text == "on\n"
