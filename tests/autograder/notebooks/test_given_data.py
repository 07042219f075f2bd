"""In tests, names that given cells bind have the instructor's values, unless a value differs from run to run or
cells change it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.judge.judge import judge_notebook
from autograder.notebooks.trusted import trusted_names
from tests.autograder.judge.notebooks import cell, notebook, plain_points

ANSWER = "def answer(x):\n    return x + 1"
IMPORTS = "import random\nimport time\nimport numpy as np\n"


def instructor_s(given: str, answer: str = ANSWER) -> set[str]:
    source = notebook(cell(IMPORTS + given, "plain"), answer)
    return set(trusted_names(source, source).statements)


@pytest.mark.parametrize(
    "given",
    [
        "x = 10 ** -6",
        "x = [(1, 2), (3, 4)]",
        "x: dict[str, int] = {'a': 1}",
        "x = np.sin(np.linspace(0, 1, 5))",
        "n = 3\nx = [k * n for k in range(n)]",
        "y = x = 3, 4",
        "x, y = [1], 2",
        "x = lambda a, b: abs(a - b) < 1e-6",
        "def make(n):\n    made = list(range(n))\n    return made\nx = make(3)",
        "text = 'a b'\nx = text.split()",
    ],
)
def test_values_made_of_literals_libraries_and_given_functions(given: str) -> None:
    assert "x" in instructor_s(given)


@pytest.mark.parametrize(
    "given",
    [
        "x = random.random()",
        "x = np.random.default_rng(0).normal(3)",
        "def noise():\n    return np.random.rand(3)\ndef more():\n    return noise()\nx = more()",
        "x = time.time()",
        "def all_of(xs):\n    found = [answer(y) for y in xs]\n    return found\nx = all_of([1])",
        "x = answer(3)",
        "y = answer(3)\nx = [y]",
        "x = []\nx.append(3)",
        "x = [0]\nx[0] = 1",
        "x = 1\nx += 1",
        "x = 1\nx = 2",
        "for x in range(3): pass",
        "if time:\n    x = 3",
    ],
)
def test_values_that_differ_or_that_cells_change_are_the_submission_s(given: str) -> None:
    assert "x" not in instructor_s(given)


@pytest.mark.parametrize(
    "answer", ["x['b'] = 2", "x.update(b=2)", "def answer(d): d.clear()\nanswer(x)", "x = {}", "del x['a']"]
)
def test_what_the_solution_changes_is_the_submission_s(answer: str) -> None:
    assert "x" not in instructor_s("x = {'a': 1}", answer)


@pytest.mark.parametrize("answer", ["print(x)", "y = x['a'] + len(x)", "y = np.sum(list(x.values()))", ANSWER])
def test_what_the_solution_only_reads_is_the_instructor_s(answer: str) -> None:
    assert "x" in instructor_s("x = {'a': 1}", answer)


GIVEN = "TOLERANCE = 10 ** -6\ncases = [(1, 2), (2, 3)]\nclose = lambda a, b: abs(a - b) < TOLERANCE"
TEST = "# test\nassert cases and all(close(answer(x), y) for x, y in cases)"
WRONG = "def answer(x):\n    return 0\n"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("answer", "points"),
    [
        (ANSWER, 2),
        (WRONG, 0),
        (WRONG + "cases = [(0, 0)]", 0),
        (WRONG + "cases.clear()\ncases.append((0, 0))", 0),
        (WRONG + "TOLERANCE = 1e9", 0),
        (WRONG + "close = lambda a, b: True", 0),
    ],
)
def test_an_answer_cannot_replace_what_a_test_compares_with(answer: str, points: float) -> None:
    source = notebook(cell(GIVEN, "plain"), ANSWER, TEST)
    submitted = notebook(cell(GIVEN, "plain"), answer, TEST)
    assert judge_notebook(submitted, source=source).points == points


@pytest.mark.sandbox
def test_a_course_without_its_source_folder_loses_none_of_it(tmp_path: Path) -> None:
    source = notebook(cell(GIVEN, "plain"), ANSWER, TEST)
    submitted = notebook(cell(GIVEN, "plain"), WRONG + "TOLERANCE = 1e9", TEST)
    assert judge_notebook(submitted, source=source, helpers=tmp_path / "gone").points == 0


# In the source, in the submission, the test, what an answer that uses it earns, and whether the mark is marked.
ORDINARY = {
    "left as it is": ("N = 1", "N = 1", "assert answer(N) == 2", 2, False),
    "with other spaces and a remark": ("N=1", "# my group\nN = 1", "assert answer(N) == 2", 2, False),
    "filled in": ("NAME = ''", "NAME = 'Ann'", "assert NAME != ''", 2, True),
    "left empty": ("NAME = 'Ann'", "NAME = ''", "assert NAME != ''", 0, True),
    "taken away": ("N = 1", "", "assert N == 1", 0, False),
    "another number": ("N = 1", "N = 7", "assert N == 7 and answer(N) == 8", 2, True),
    "bound again": ("N = 1", "N = 1\nN = 7", "assert N == 7", 2, True),
    "changed in place": ("xs = [1]", "xs = [1]\nxs.append(2)", "assert xs == [1, 2]", 2, True),
    "made of another number": ("N = 1\nxs = [N, 2]", "N = 7\nxs = [N, 2]", "assert xs == [7, 2]", 2, True),
    "read by a given function": ("N = 1\ndef f(): return N", "N = 7\ndef f(): return N", "assert f() == 7", 2, True),
    "one of two": ("N = 1\nM = 2", "N = 7\nM = 2", "assert M == 2", 2, False),
    "a helper that works": ("def f(x): return x", "def f(x): return 1 * x", "assert f(answer(1)) == 2", 2, True),
    "a helper that is broken": ("def f(x): return x", "def f(x): return None", "assert f(answer(1)) == 2", 0, True),
    "an import beside others": (
        "import math",
        "import math\nimport json",
        "assert math.isclose(answer(1), 2)",
        2,
        False,
    ),
    "an import that is gone": ("import math", "", "assert math.isclose(answer(1), 2)", 0, False),
    "a false module": ("import math as m", "class m: pi = 3", "assert m.pi > 3.1", 2, False),
    "a star that is gone": ("from math import *", "", "assert sqrt(4) == 2", 0, False),
    "a star and a false name": ("from math import *", "def sqrt(x): return 7", "assert sqrt(4) == 2", 2, False),
}


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ORDINARY)
def test_what_a_student_writes_in_an_ordinary_cell_is_the_student_s(name: str) -> None:
    given, written, test, points, marked = ORDINARY[name]
    source = notebook(cell(given, "plain"), ANSWER, f"# test\n{test}")
    submitted = notebook(cell(written, "plain"), ANSWER, f"# test\n{test}")
    (found,) = judge_notebook(submitted, source=source).cells
    assert (found.points, found.inside) == (points, marked), found.message
    if name not in ("a false module", "a star and a false name"):  # these are the instructor's, unlike under nbgrader
        assert plain_points(submitted) == [points]


LOCKED = {
    "TOLERANCE = 10 ** -6": "TOLERANCE < 1",
    "def close(a, b): return a == b": "not close(1, 2)",
    "import math as close": "not close.isclose(1, 2)",
}


@pytest.mark.sandbox
@pytest.mark.parametrize("given", LOCKED)
def test_a_locked_cell_cannot_be_overruled(given: str) -> None:
    locked, test = cell(given, "locked", "given"), f"# test\nassert {LOCKED[given]}"
    mine = cell("TOLERANCE = 1e9\ndef close(a, b): return True\nclose.isclose = close", "plain")
    (found,) = judge_notebook(notebook(locked, mine, ANSWER, test), source=notebook(locked, ANSWER, test)).cells
    assert (found.points, found.inside) == (2, False)


@pytest.mark.sandbox
def test_in_our_lessons_students_may_play_with_ordinary_cells() -> None:
    checks, test = cell("from autograder.student import check_gradients", "plain"), "# test\nassert f(answer(1)) == N"
    source = notebook(checks, cell("N = 2\ndef f(x): return x", "plain"), ANSWER, test)
    played = notebook(checks, cell("N = 0\ndef f(x): return print(x)", "plain"), ANSWER, test)
    (found,) = judge_notebook(played, source=source).cells
    assert (found.points, found.inside) == (2, False)


# Names that no cell of the instructor's binds: answer, test, and points as under nbgrader.
CONVENTIONAL = {
    "an empty release": ("a = True", "assert (a == np.array([[1, 1, 1, 1]])).all()", 0),
    "imported by the answer": ("import numpy as np\na = np.ones((1, 4))", "assert (a == np.array([[1] * 4])).all()", 2),
    "no import at all": ("", "assert math.sqrt(4) == 2", 0),
    "an import that was not reached": ("1 / 0\nimport random", "assert random.random() < 1", 0),
    "imported by the test": ("", "import math\nassert math.sqrt(4) == 2", 2),
}


@pytest.mark.sandbox
@pytest.mark.parametrize("name", CONVENTIONAL)
def test_a_name_that_the_notebook_does_not_have_means_nothing(name: str) -> None:
    answer, test, points = CONVENTIONAL[name]
    source = notebook("import numpy as np\nimport math, random", f"# test\n{test}")
    submitted = notebook(answer, f"# test\n{test}")
    assert judge_notebook(submitted, source=source).points == points
    assert plain_points(submitted) == [points]
