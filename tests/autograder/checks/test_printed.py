"""What a student's code prints while a check runs it is cut, so that the card is not buried."""

import sys

import pytest

from autograder.checks.limits import MOST_CHARACTERS, MOST_LINES
from autograder.runs.context import check_context
from autograder.runs.inputs import between
from autograder.student import (
    CheckFailed,
    check_function,
    check_gradients,
    check_handwritten_gradient,
    check_tangents,
)
from tests.autograder import student_engines as students
from tests.autograder import student_engines_arrays as arrays

LINE = "in the loop"


def flood() -> None:
    for _ in range(2000):
        print(LINE)
        print(LINE, file=sys.stderr)


class Loud(arrays.functions()):
    def __mul__(self, other):
        flood()
        return super().__mul__(other)


def square(x):
    flood()
    return x * x


def slope_of_square(x):
    flood()
    return (2 * x,)


def jvp(function, inputs, tangents):
    flood()
    (x,), (t,) = inputs, tangents
    return x**2, 2 * x * t


CHECKS = {
    "gradients": lambda: check_gradients(lambda a: a * a, [()], engine=Loud),
    "handwritten": lambda: check_handwritten_gradient(slope_of_square, lambda x: x * x, [()]),
    "function": lambda: check_function(square, lambda x: x * x, [between(1, 2)]),
    "tangents": lambda: check_tangents(jvp, lambda x: x * x, [()]),
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_flood_is_cut_and_the_card_comes_last(check: str, capsys: pytest.CaptureFixture[str]) -> None:
    CHECKS[check]()
    out, error = capsys.readouterr()
    assert (out + error).count(f"{LINE}\n") == MOST_LINES
    before, note, card = out.partition(" lines more. They are left out here, so that you see the card below.]\n")
    assert note
    assert LINE not in card
    assert card.strip()
    assert int(before.rpartition("Your code printed ")[2].replace(",", "")) >= 4000 - MOST_LINES


def test_a_failed_check_of_an_engine_that_prints_still_shows_its_card(capsys: pytest.CaptureFixture[str]) -> None:
    class LoudAndWrong(students.closures(("operands_swapped", "*"))):
        def __mul__(self, other):
            flood()
            return super().__mul__(other)

    with pytest.raises(CheckFailed, match="\n  wrong "):
        check_gradients(lambda a, b: a * b + a, [(), ()], engine=LoudAndWrong)
    out, error = capsys.readouterr()
    assert (out + error).count(f"{LINE}\n") == MOST_LINES, "the search for the cause runs the code again and again"


def test_one_long_line_is_cut_too(capsys: pytest.CaptureFixture[str]) -> None:
    def long_line(x):
        print("x" * 1_000_000, end="")
        return x

    check_function(long_line, lambda x: x, [between(1, 2)])
    out = capsys.readouterr().out
    assert "\n[Your code printed " in out
    assert "characters more. They are left out" in out
    assert len(out) < MOST_CHARACTERS + 2000


def test_what_is_printed_in_few_lines_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    def quiet(x):
        print("x is", x)
        return x

    check_function(quiet, lambda x: x, [1.0])
    out = capsys.readouterr().out
    assert out.startswith("x is 1.0\n")
    assert "left out" not in out


def test_while_grading_nothing_is_cut_here(capsys: pytest.CaptureFixture[str]) -> None:
    """There, the judge has limits of its own."""
    with check_context(3, graded=True):
        check_function(square, lambda x: x * x, [between(1, 2)], points=1)
    assert capsys.readouterr().out.count(LINE) >= 2000


def test_the_graph_below_a_card_prints_nothing_again(capsys: pytest.CaptureFixture[str]) -> None:
    class Chatty(students.closures(("operands_swapped", "*"))):
        def __mul__(self, other):
            print(LINE)
            return super().__mul__(other)

    with check_context() as context, pytest.raises(CheckFailed):
        check_gradients(lambda a, b: a * b + a, [(), ()], engine=Chatty)
    capsys.readouterr()
    (report,) = context.reports
    assert report.on_the_graph() is not None
    assert LINE not in capsys.readouterr().out
