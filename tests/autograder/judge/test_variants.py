"""Variants of a question by student: the judge knows whose they are, and no student can take another's."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from autograder.judge import Source, judge_apart
from autograder.runs.context import check_context
from autograder.runs.errors import CheckFailed
from autograder.student import variant
from tests.autograder.judge.notebooks import cell, notebook, stock_points

NAMES = [f"student{number}" for number in range(400)]
GIVEN = """
from autograder.student import variant

RATES = [0.1, 0.2, 0.5]
"""
ANSWER = "me = {!r}\nanswer = {} * 10"
TEST = "# test\nassert answer == variant('rate', RATES, me) * 10"
RATE = {name: variant("rate", [0.1, 0.2, 0.5], name) for name in NAMES}
MINE = "student0"
OTHER = next(name for name in NAMES if RATE[name] != RATE[MINE])


def test_a_student_always_has_the_same_variant_and_all_variants_are_drawn() -> None:
    drawn = Counter(variant("q", range(5), name) for name in NAMES)
    assert set(drawn) == set(range(5))
    assert min(drawn.values()) > 40
    assert variant("q", "abcde", " Ada ") == variant("q", "abcde", "ada")
    assert len({tuple(variant(f"q{number}", range(9), name) for number in range(5)) for name in NAMES}) > 390


def test_a_name_is_a_text() -> None:
    with pytest.raises(TypeError, match="in quotes"):
        variant("q", [1, 2], 7)  # type: ignore[arg-type]


def test_nobody_takes_the_variant_of_another() -> None:
    with check_context(graded=True, student="Ada"):
        assert variant("q", [1, 2], "ada ") in (1, 2)
        with pytest.raises(CheckFailed, match="'Ada' handed this in, but it uses the variant of 'bob'"):
            variant("q", [1, 2], "bob")


LIES = """
class Name(str):
    def __eq__(self, other): return True
    def __hash__(self): return hash({other!r})
    def strip(self): return {other!r}
    def casefold(self): return {other!r}
me = Name({mine!r})
answer = {answer} * 10
"""
PATCHES = """
import autograder.student
autograder.student.variant = variant = lambda *given: {answer}
RATES = [{answer}]
me = {mine!r}
answer = {answer} * 10
"""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("answer", "points", "said"),
    [
        (ANSWER.format(MINE, RATE[MINE]), 2, ""),
        (ANSWER.format(MINE, f"variant('rate', RATES, {MINE!r})"), 2, ""),
        (ANSWER.format(MINE.upper(), RATE[MINE]), 2, ""),
        (ANSWER.format(MINE, RATE[OTHER]), 0, "answer"),
        (ANSWER.format(OTHER, RATE[OTHER]), 0, f"'{MINE}' handed this in, but it uses the variant of '{OTHER}'"),
        (ANSWER.format(OTHER, RATE[MINE]), 0, f"'{MINE}' handed this in"),
        (LIES.format(mine=MINE, other=OTHER, answer=RATE[OTHER]), 0, ""),
        (PATCHES.format(mine=MINE, answer=RATE[OTHER]), 0, ""),
    ],
    ids=["own", "asks", "other case", "number of another", "name of another", "only the name", "lies", "patches"],
)
def test_points_go_by_who_handed_it_in(answer: str, points: float, said: str) -> None:
    source = notebook(cell(GIVEN, "locked"), "me = 'x'\nanswer = variant('rate', RATES, me) * 10", TEST)
    judged = notebook(cell(GIVEN, "locked"), answer, TEST)
    verdict = judge_apart(judged, source=Source(source), student=MINE)
    assert (verdict.cells[0].points, stock_points(judged)) == (points, [points]), verdict.cells
    assert said in verdict.cells[0].message


@pytest.mark.sandbox
def test_the_solution_goes_by_its_own_name() -> None:
    solved = notebook(cell(GIVEN, "locked"), ANSWER.format(OTHER, RATE[OTHER]), TEST)
    assert judge_apart(solved, source=Source(solved)).points == 2


@pytest.mark.sandbox
@pytest.mark.parametrize(("student", "points"), [("ada", 2), ("bob", 0)])
def test_the_example_of_the_docs(student: str, points: int) -> None:
    page = (Path(__file__).parents[3] / "docs" / "instructors.md").read_text()
    section = page.partition("## Variants by student")[2].partition("\n## ")[0]
    given, answer, test = [dedent(block) for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.MULTILINE)]
    solved = notebook(cell(given, "locked"), answer, f"# test\n{test}")
    assert judge_apart(solved, source=Source(solved), student=student).points == points
