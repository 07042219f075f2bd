"""A message says what failed first and the likely mistake, and neither twice."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.cards.check_report import Line, Report
from autograder.judge.writing.messages import about_solution, cut, said_by, sentences
from autograder.notebooks.verdicts import without_repeats

SWAPPED = "the two operands are swapped."
SIGN = "a minus sign is missing."
EITHER = "one of these: a minus sign is missing; or a factor appears twice."


def report(finding: str, diagnosis: str, *bugs: str, hidden: bool = False, place: str = "") -> Report:
    line = Line("hidden expression 1" if hidden else "a * b", "wrong", finding)
    return Report("Gradients", (line,), 0.0, 1.0, diagnosis, hidden=hidden, bugs=bugs, place=place)


REPORTS: dict[str, tuple[list[Any], str]] = {
    "the same mistake, visible and hidden": (
        [
            report("`a.grad` is wrong", SWAPPED, "swapped"),
            report("a gradient is wrong", SWAPPED, "swapped", hidden=True),
        ],
        f"`a.grad` is wrong. Likely: {SWAPPED} hidden expression 1: a gradient is wrong.",
    ),
    "the same mistake in other words": (
        [report("one", SWAPPED, "swapped"), report("two", f"in the rule of `*`, {SWAPPED}", "swapped")],
        f"one. Likely: {SWAPPED} two.",
    ),
    "a guess, then certainty": (
        [report("one", EITHER, "sign", "twice"), report("two", SIGN, "sign")],
        f"one. two. Likely: {SIGN}",
    ),
    "two mistakes": (
        [report("one", SWAPPED, "swapped"), report("two", SIGN, "sign")],
        f"one. Likely: {SWAPPED} two. Also likely: {SIGN}",
    ),
    "a mistake without a name": ([report("one", SIGN), report("two", SIGN)], f"one. Likely: {SIGN} two."),
    "a place": (
        [report("one", "", place="`*` is first."), report("two", "", place="`*` is first.")],
        "one. `*` is first. two.",
    ),
    "a check that passed": (
        [Report("Gradients", (Line("a * b", "right"),)), report("one", SIGN, "sign")],
        f"one. Likely: {SIGN}",
    ),
    "the same check twice": ([report("one", SIGN, "sign")] * 2, f"one. Likely: {SIGN}"),
    "nothing to say": ([object()], ""),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_message_names_each_likely_mistake_once(name: str) -> None:
    reports, message = REPORTS[name]
    assert said_by(reports) == message
    assert message.count("Likely:") <= 1


@pytest.mark.parametrize(
    ("messages", "left"),
    [
        ([f"a * b: wrong. Likely: {SWAPPED}", f"a * a: 3 is wrong. Likely: {SWAPPED}"], ["a * a: 3 is wrong."]),
        (["This is not true: `f(1) == 2`", "This is not true: `f(1) == 2`"], []),
        (["Not written yet. Begin.", "Not right."], ["Not right."]),
    ],
)
def test_a_comment_on_an_answer_says_what_several_tests_found_once(messages: list[str], left: list[str]) -> None:
    assert without_repeats(messages) == [messages[0], *left]


def test_a_cut_leaves_whole_words_and_cuts_only_a_long_one() -> None:
    assert cut("one two three four", 16) == "one two ..."
    assert cut("ValueError: " + "x" * 500, 100) == "ValueError: " + "x" * 84 + " ..."
    assert cut("x" * 500, 100) == "x" * 96 + " ..."


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("This is not true: `x`", "Note: y."), "This is not true: `x`. Note: y."),
        (("Really?", "", "No"), "Really? No"),
        (("  ", "One.\n", "two"), "One. two"),
        ((), ""),
    ],
)
def test_sentences_are_told_apart(parts: tuple[str, ...], text: str) -> None:
    assert sentences(*parts) == text


def test_the_instructor_reads_of_the_solution() -> None:
    said = "Your code raised KeyError: 1. name 'x' is not defined: is it defined in your notebook?"
    assert (
        about_solution(said)
        == "The solution raised KeyError: 1. name 'x' is not defined: is it defined in the notebook?"
    )
