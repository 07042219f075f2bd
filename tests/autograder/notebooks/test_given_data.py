"""In tests, names that given cells bind have the instructor's values, unless a value differs from run to run or
cells change it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.judge.judge import judge_notebook
from autograder.notebooks.trusted import trusted_names
from tests.autograder.judge.notebooks import cell, notebook

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
