"""The strength of checks: bugs that apply cost points, and a weak check is named with the bugs that it lets through."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder import cli
from autograder.lessons.audit.strength import AskedProgram, Strength, strength_of
from autograder.runs.context import CheckContext, listening
from autograder.runs.engines import REFERENCE
from autograder.student import between, check_gradients, positive


def checks_of(*calls: tuple[str, Callable[..., Any], list[Any]]) -> list[AskedProgram]:
    """The checks of test cells, each with one expression."""
    found: list[AskedProgram] = []
    for cell, expression, inputs in calls:

        def keep(context: CheckContext, asked: Any, cell: str = cell) -> None:
            found.extend(AskedProgram(cell, program, expected) for program, expected in asked)

        with listening(keep):
            check_gradients(expression, inputs, engine=REFERENCE, points=1)
    return found


def names(strength: Strength) -> set[tuple[str, str, str]]:
    return {(one.cell, one.bug.name, one.operation) for one in strength.survivors}


MATRIX, SQUARE = (3, 4), (3, 3)
STRONG: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "product": (lambda a, b: a * b, [between(-3.0, 3.0), between(-3.0, 3.0)]),
    "softmax": (lambda a: a.softmax(1), [MATRIX]),
    "matrix product": (lambda a, b: a @ b, [(3, 4), (4, 2)]),
    "sum along an axis": (lambda a: a.sum(1), [MATRIX]),
    "power": (lambda a: a**3, [positive(MATRIX)]),
}


@pytest.mark.parametrize("name", STRONG)
def test_random_cotangents_see_every_bug(name: str) -> None:
    expression, inputs = STRONG[name]
    found = strength_of(checks_of(("test", expression, inputs)), writes_backward=False)
    assert found.applied >= 5
    assert names(found) == set()
    assert found.score == 1.0


WEAK: dict[str, tuple[Callable[..., Any], list[Any], tuple[str, str]]] = {
    "softmax, only ever added up": (lambda a: a.softmax(1).sum(), [MATRIX], ("softmax_gradient_zero", "Softmax")),
    "rows of a product, added up": (lambda a: a.transpose(0, 1).sum(), [MATRIX], ("transpose_not_undone", "Transpose")),
}


@pytest.mark.parametrize("name", WEAK)
def test_a_cotangent_of_ones_lets_bugs_through_and_they_are_named(name: str) -> None:
    expression, inputs, (_, operation) = WEAK[name]
    found = strength_of(checks_of(("test_weak", expression, inputs)), writes_backward=False)
    survivors = names(found)
    assert {one for one in survivors if one[2] == operation}
    assert found.score < 1.0
    assert all("test_weak" in str(one) for one in found.survivors)


def test_an_operation_that_another_exercise_checks_need_not_be_checked_again() -> None:
    weak = ("test_softmax", lambda a: a.softmax(1).sum() + (a.softmax(1) * a).sum(0), [MATRIX])
    alone = strength_of(checks_of(("test_softmax", lambda a: a.softmax(1).sum(), [MATRIX])), writes_backward=False)
    both = strength_of(
        checks_of(weak, ("test_sum", lambda a: a.sum(1), [MATRIX]), ("test_whole", lambda a: a.sum() * a, [MATRIX])),
        writes_backward=False,
    )
    assert any(one.operation == "Sum" for one in alone.survivors)
    assert not any(one.operation == "Sum" for one in both.survivors)


def test_bugs_of_the_backward_pass_are_demanded_where_students_write_it() -> None:
    plain = checks_of(("test_backward", lambda a, b: a * b, [between(1.0, 2.0), between(1.0, 2.0)]))
    assert names(strength_of(plain, writes_backward=False)) == set()
    assert {name for _, name, _ in names(strength_of(plain, writes_backward=True))} == {"order_not_reversed"}

    def used_twice(a: Any, b: Any) -> Any:
        c = a + b
        d = c + a
        return c * d + d * d * a

    strong = checks_of(("test_backward", used_twice, [between(1.0, 2.0), between(1.0, 2.0)]))
    assert names(strength_of(strong, writes_backward=True)) == set()


def test_what_changes_nothing_on_the_values_does_not_apply() -> None:
    """In a square, swapped operands change nothing."""
    square = strength_of(checks_of(("test", lambda a: a * a, [SQUARE])), writes_backward=False)
    assert not any(one.bug.name == "operands_swapped" for one in square.survived)


TEXT = (Path(__file__).parent / "weak_lesson.txt").read_text()


@pytest.mark.sandbox
@pytest.mark.parametrize("weak", [False, True], ids=["random cotangents", "a cotangent of ones"])
def test_the_audit_stops_a_lesson_whose_check_lets_bugs_through(
    weak: bool, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """The weak check only sums the outputs of softmax, which gives its rule a cotangent of ones."""
    text = TEXT.replace("lambda a: a.softmax(1)}", "lambda a: a.softmax(1).sum()}") if weak else TEXT
    lesson = tmp_path / "course" / "lessons" / "01_softmax" / "01_softmax.py"
    lesson.parent.mkdir(parents=True)
    lesson.write_text(text)
    assert (text != TEXT) == weak
    status = cli.main(["audit", "01", "--workers", "1", "--course", str(tmp_path / "course")])
    output = " ".join(capsys.readouterr().out.split())
    assert status == int(weak), output
    if weak:
        assert "test_softmax: softmax_zero in `softmax` costs nothing" in output
        assert "test_softmax: softmax_without_coupling in `softmax`" not in output, "the sum shows that one"
