"""Tests that only the submission's own process can answer for run there, and the instructor's solution says which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.files import files_below
from autograder.judge import Source, judge_apart, try_solution
from autograder.judge.inside import NO_DETAILS, run_inside
from autograder.judge.judge import judge_notebook
from autograder.notebooks.verdicts import CellVerdict, verdict
from autograder.sandbox.process.limits import Limits
from tests.autograder.judge.notebooks import notebook, plain_points, stock_points

pytestmark = pytest.mark.sandbox

ANSWER = "def twice(number):\n    return 2 * number\nprint('seen')"
LOOKS_AT_CODE = """# test
import inspect
assert 'return' in inspect.getsource(twice)
assert list(inspect.signature(twice).parameters)[0] == 'number'"""
LOOKS_AT_NAMES = "# test\nassert 'twice' in dir() and 'thrice' not in globals() and 'In' in globals()"
CALLS = "# test\nassert twice(2) == 4"
HIDDEN = "# test\n### BEGIN HIDDEN TESTS\nassert twice(1917) == 3834, 'twice(1917)'\n### END HIDDEN TESTS"
TELLS = "def twice(number):\n    raise ValueError(f'asked for {number}, with ' + str(In[-1]))"


def judged(*cells: str, inside: tuple[str, ...], **options: Any) -> tuple[Any, list[CellVerdict]]:
    node = notebook(*cells)
    return node, judge_notebook(node, inside=inside, **options).cells


def test_a_test_inside_sees_the_notebook_as_a_kernel_shows_it() -> None:
    node, cells = judged(ANSWER, LOOKS_AT_CODE, LOOKS_AT_NAMES, CALLS, inside=("cell1", "cell2"))
    assert [(cell.points, cell.inside) for cell in cells] == [(2, True), (2, True), (2, False)]
    assert stock_points(node) == [2, 2, 2]
    assert node.cells[0].outputs[0].text == "seen\n"


def test_a_test_that_passes_inside_is_marked_too() -> None:
    node, _ = judged(ANSWER, LOOKS_AT_CODE, inside=("cell1",))
    assert verdict(node.cells[1]) == CellVerdict("cell1", 2, 2, inside=True)


def test_nobody_knows_who_printed_what_is_printed_inside() -> None:
    test = "# test\npoints = 2 if twice(2) == 4 else 0\nprint('2 * 2 is 4')\npoints"
    _, cells = judged("def twice(number):\n    print('all is right')", test, inside=("cell1",))
    assert cells[0].message == "Printed while the test ran: all is right; 2 * 2 is 4"


def test_a_tag_of_the_student_s_skips_no_test() -> None:
    node = notebook("pass", LOOKS_AT_CODE)
    node.cells[1].metadata["tags"] = ["demo"]
    assert [cell.points for cell in judge_notebook(node, inside=("cell1",)).cells] == stock_points(node) == [0]


def test_what_fails_is_said_in_words() -> None:
    wrong = ANSWER.replace("number", "n")
    node, cells = judged(
        wrong, LOOKS_AT_CODE, "# test\nassert twice(1) == 3, 'not 3'", "# test\nthrice(1)", inside=NAMES
    )
    assert [cell.points for cell in cells] == stock_points(node) == [0, 0, 0]
    assert cells[0].message == "This is not true: `assert list(inspect.signature(twice).parameters)[0] == 'number'`"
    assert cells[1].message == "not 3"
    assert cells[2].message == "NameError: name 'thrice' is not defined. It failed at `thrice(1)`."


NAMES = tuple(f"cell{number}" for number in range(9))


def test_points_in_part_and_what_a_test_leaves_for_the_next() -> None:
    node, cells = judged(ANSWER, "# test\nkept = 1.5\nkept", "# test\nassert kept == 1.5", inside=("cell1", "cell2"))
    assert [cell.points for cell in cells] == stock_points(node) == [1.5, 2]


@pytest.mark.parametrize("inside", [("cell1",), ("cell1", "cell2"), ("cell2",)])
def test_nothing_tells_what_a_hidden_test_asked(inside: tuple[str, ...]) -> None:
    node, cells = judged(TELLS, HIDDEN, "# test\ntwice(0)", "twice(5)", inside=inside)
    assert [cell.points for cell in cells] == [0, 0]
    assert "1917" not in str(node.cells[1].outputs) + str([cell.message for cell in cells])
    shown = str([cell.outputs for cell in node.cells])
    assert "asked for 5" in shown
    assert "1917" not in shown


def test_a_student_s_cell_does_not_show_what_it_saw_of_hidden_tests() -> None:
    node, _ = judged(ANSWER, HIDDEN, "print(In)", inside=("cell1",))
    assert "1917" not in str(node.cells[2].outputs)


def test_an_endless_test_and_a_deadly_one_cost_only_their_points() -> None:
    cells = [
        "import os\ndef wait():\n    while True: pass\ndef leave(): os._exit(1)",
        "# test\nwait()",
        "# test\nleave()",
    ]
    limits = Limits(cell_seconds=1, grace_seconds=1)
    _, found = judged(*cells, "# test\nassert os", inside=("cell1", "cell2", "cell3"), limits=limits)
    assert [cell.points for cell in found] == [0, 0, 2]
    assert "took too long" in found[0].message
    assert "stopped the notebook's process" in found[1].message


@pytest.mark.parametrize(
    ("tests", "runs"),
    [((CALLS, CALLS), 1), ((CALLS, "# test\nassert twice(2) == 5"), 2), ((CALLS, LOOKS_AT_CODE), 3)],
)
def test_a_trial_judges_the_solution_no_more_often_than_it_has_to(
    tests: tuple[str, ...], runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def counted(*notebook: Any, **options: Any) -> Any:
        asked.append(options["inside"])
        return judge_apart(*notebook, **options)

    monkeypatch.setattr("autograder.judge.trial.judge_apart", counted)
    try_solution(Source(notebook(ANSWER, *tests)), {})
    assert len(asked) == runs, asked


FAILS = "# test\nassert twice(2) == 5"


def test_the_solution_says_what_is_judged_inside() -> None:
    trial = try_solution(Source(notebook(ANSWER, LOOKS_AT_CODE, CALLS, LOOKS_AT_CODE, FAILS)), {})
    assert list(trial.inside) == ["cell1", "cell3"]
    assert list(trial.failed) == ["cell4"]
    assert trial.failed["cell4"] == "This is not true: `assert twice(2) == 5`"


def test_a_test_that_the_solution_fails_for_two_reasons_gives_both() -> None:
    trial = try_solution(Source(notebook(ANSWER, f"{LOOKS_AT_CODE}\nassert twice(2) == 5")), {})
    said = trial.failed["cell1"]
    assert "In the process of the solution it fails, too: This is not true: `assert twice(2) == 5`" in said
    assert not said.startswith("In the process")
    assert "was expected, got code. In the process" in said


def test_a_test_that_rests_on_one_inside_goes_inside_with_it() -> None:
    """The first test is not run outside, so the names that it binds are missing there."""
    tests = "# test\nimport inspect\nsource = inspect.getsource(twice)", "# test\nassert 'return' in source", CALLS
    trial = try_solution(Source(notebook(ANSWER, *tests)), {})
    assert list(trial.inside) == ["cell1", "cell2"]
    assert not trial.failed


def test_the_trial_takes_the_tests_as_they_were_released() -> None:
    source = notebook(ANSWER, "# test\n### AUTOTEST twice(3)")
    assert list(try_solution(Source(source), {"cell1": "assert twice(3) == 7"}).failed) == ["cell1"]
    assert not try_solution(Source(source), {"cell1": "assert twice(3) == 6"}).failed


@pytest.fixture
def helpers(tmp_path: Path) -> Path:
    """A module beside the notebook with the name of one that is loaded here, and a file that it reads."""
    (tmp_path / "tests.py").write_text(
        "def check(function):\n    with open('numbers.txt') as file:\n"
        "        assert [function(int(line)) for line in file] == [2, 4]\n"
    )
    (tmp_path / "numbers.txt").write_text("1\n2\n")
    return tmp_path


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (ANSWER, 2),
        ("def twice(number): return number", 0),
        ("open('tests.py', 'w').write('def check(f): pass')\ndef twice(number): return number", 0),
    ],
)
def test_a_module_beside_the_notebook_is_the_instructor_s(helpers: Path, answer: str, points: float) -> None:
    """This holds whatever the submission writes in its place, and this project's own `tests` stays loaded."""
    import tests

    test = "# test\nfrom tests import check\ncheck(twice)"
    _, cells = judged(answer, test, inside=(), files=files_below(helpers), helpers=helpers)
    assert [cell.points for cell in cells] == [points]
    assert __import__("tests") is tests
    assert sorted(path.name for path in helpers.iterdir()) == ["numbers.txt", "tests.py"]


def test_the_instructor_is_told_what_went_wrong_in_a_hidden_test() -> None:
    trial = try_solution(Source(notebook(ANSWER, HIDDEN.replace("3834", "0"))), {})
    assert trial.failed == {"cell1": "twice(1917)"}


# A source without a solution says nothing about where its tests have to run: answer, test, and whether it needs the
# process of the submission.
UNDECIDED = {
    "a plain value": ("def f(): return 4", "assert f() == 4", False),
    "what is typed in": (
        "def f(): return int(input()) + int(input())",
        "from unittest.mock import patch\nwith patch('builtins.input', side_effect=['1', '2']):\n    assert f() == 3",
        True,
    ),
    "an input of its own": (
        "def f(): return 'Hi ' + input('name?')",
        "import builtins\nbuiltins.input = lambda prompt: 'Ann'\nassert f() == 'Hi Ann'",
        True,
    ),
    "a graph": (
        "import networkx\ndef f(): return networkx.DiGraph([(1, 2)])",
        "import unittest, networkx as nx\nunittest.TestCase().assertIsInstance(f(), nx.DiGraph)\n"
        "assert list(f().edges) == [(1, 2)]",
        True,
    ),
    "a path": (
        "from pathlib import Path\ndef f(): return Path('a') / 'b'",
        "from pathlib import Path\nassert isinstance(f(), Path) and f() == Path('a/b')",
        True,
    ),
    "a pattern": (
        "import re\ndef f(): return re.compile('a+')",
        "import re\nassert isinstance(f(), re.Pattern) and f().pattern == 'a+'",
        True,
    ),
    "an error": ("def f(): return KeyError('x')", "assert isinstance(f(), KeyError)", True),
    "a class": (
        "class A:\n    def __eq__(self, other): return other == 4\ndef f(): return A()",
        "assert f() == 4",
        True,
    ),
    "text of a function": ("def f(): return 4", "import inspect\nassert 'return' in inspect.getsource(f)", True),
    "points in part": ("def f(): return [4]", "points = (f() == [4]) * 1.0\npoints", False),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_the_solution_cannot_decide_runs_in_both_places(name: str) -> None:
    answer, test, inside = UNDECIDED[name]
    empty = notebook("# your code here\nraise NotImplementedError()", f"# test\n{test}")
    trial = try_solution(Source(empty), {})
    assert list(trial.failed) == ["cell1"]
    for text in (answer, "def f(): return None"):
        stock = plain_points(notebook(text, f"# test\n{test}"))
        node = notebook(text, f"# test\n{test}")
        (cell,) = judge_notebook(node, source=empty, inside=tuple(trial.inside), undecided=tuple(trial.failed)).cells
        assert [cell.points] == stock_points(node) == stock
        assert cell.inside is (inside or not stock[0]), "whoever reads the mark can see that it may be forged"
        assert verdict(node.cells[1]).inside is cell.inside


def test_a_forged_result_of_an_undecided_test_is_marked() -> None:
    forged = "def f(): return 4\nisinstance = lambda *_: True"
    tests = "# test\nassert f() == 5", "# test\nassert isinstance(f(), list)"
    node = notebook(forged, *tests)
    cells = judge_notebook(node, source=notebook("pass", *tests), undecided=("cell1", "cell2")).cells
    assert [(cell.points, cell.inside) for cell in cells] == [(0, True), (2, True)]


@pytest.mark.parametrize(
    ("undecided", "cells_run"),
    [(("cell1",), []), (("cell1", "cell2"), [3]), (("cell4",), []), (("cell2", "cell4"), [3])],
)
def test_only_what_may_earn_more_runs_in_both_places(
    undecided: tuple[str, ...], cells_run: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    def counted(cells: Any, *others: Any) -> Any:
        counts.append(len(cells))
        return run_inside(cells, *others)

    monkeypatch.setattr("autograder.judge.judge.run_inside", counted)
    _, cells = judged(ANSWER, CALLS, LOOKS_AT_CODE, "twice(3)", CALLS, "twice(4)", inside=(), undecided=undecided)
    assert counts == cells_run
    assert [cell.points for cell in cells] == [2, 2 if "cell2" in undecided else 0, 2]
    assert [cell.inside for cell in cells] == [False, "cell2" in undecided, False]


@pytest.mark.parametrize("points_only", [False, True])
def test_hidden_tests_stay_hidden_where_nothing_is_decided(points_only: bool) -> None:
    node, cells = judged(TELLS, HIDDEN, "twice(5)", inside=(), undecided=("cell1",), points_only=points_only)
    assert [(cell.points, cell.message) for cell in cells] == [(0, NO_DETAILS)]
    assert "1917" not in str([cell.outputs for cell in node.cells]) + cells[0].message
