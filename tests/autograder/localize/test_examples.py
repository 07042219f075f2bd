"""The example of a card: numbers that can be checked on paper, and the two formulas, which are evaluated here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autograder.localize.formulas import EXPLAINED, made_of
from autograder.runs.context import check_context
from autograder.student import between, check_gradients
from tests.autograder import student_engines as students
from tests.autograder.localize.test_localizing import OddTanh, array_engine

SCALARS, PAIRS, ONE = [(), ()], [(2, 2), (2, 2)], [(3,)]
Rule = Callable[..., Any]


def times(factor: Rule, input: int = 0) -> Rule:
    """A rule whose gradient for one input is the right one times `factor(a, b, out, g)`."""

    def rule(a: Any, b: Any, out: Any, g: Any, right: Any) -> Any:
        wrong = right[input] * factor(a, b, out, g)
        return *right[:input], wrong, *right[input + 1 :]

    return rule


def swapped(a: Any, b: Any, out: Any, g: Any, right: Any) -> Any:
    return right[::-1]


def square_missing(a: Any, b: Any, out: Any, g: Any, right: Any) -> Any:
    return (g * (1 - out),)


class QuotientWithoutSquare(students.closures()):  # type: ignore[misc]
    def __truediv__(self, other: Any) -> Any:
        return self._binary(other, "/", lambda a, b: a / b, lambda a, b: 1 / b, lambda a, b: -a / b)


class LogTurnedOver(students.closures()):  # type: ignore[misc]
    def log(self) -> Any:
        return self._unary("log", math.log, lambda a, out: a)


FORMULAS: dict[str, tuple[Any, Callable[..., Any], list[Any], dict[str, tuple[str, str]]]] = {
    "operands swapped": (
        array_engine(__mul__=swapped),
        lambda a, b: a * b,
        PAIRS,
        {"first": ("grad * first", "grad * second"), "second": ("grad * second", "grad * first")},
    ),
    "square missing": (
        array_engine(tanh=square_missing),
        lambda a: a.tanh(),
        ONE,
        {"input": ("grad * (1 - output)", "grad * (1 - output**2)")},
    ),
    "factor 2 missing": (
        array_engine(__pow__=times(lambda a, b, out, g: 0.5)),
        lambda a: a**2,
        ONE,
        {"input": ("grad * input", "2 * grad * input")},
    ),
    "sign of a difference": (
        array_engine(__sub__=times(lambda a, b, out, g: -1.0, 1)),
        lambda a, b: a - b,
        PAIRS,
        {"second": ("grad", "-grad")},
    ),
    "square missing below": (
        QuotientWithoutSquare,
        lambda a, b: a / b,
        SCALARS,
        {"second": ("-grad * first / second", "-grad * first / second**2")},
    ),
    "logarithm of the wrong side": (
        LogTurnedOver,
        lambda a: a.log(),
        [between(0.3, 2.0)],
        {"input": ("grad * input", "grad / input")},
    ),
    "gradient forgotten": (
        array_engine(tanh=lambda a, b, out, g, right: (1 - out**2,)),
        lambda a: a.tanh(),
        ONE,
        {"input": ("(1 - output**2)", "grad * (1 - output**2)")},
    ),
    "matrices not transposed": (
        array_engine(__matmul__=lambda a, b, out, g, right: (g @ b, a.T @ g)),
        lambda a, b: (a @ b).tanh(),
        PAIRS,
        {"first": ("grad @ second", "grad @ second.T")},
    ),
}


def report_on(engine: Any, expression: Callable[..., Any], inputs: list[Any], hidden: bool = False) -> Any:
    with check_context(0, graded=hidden, hidden=hidden) as context:
        check_gradients(expression, inputs, points=1, engine=engine)
    return context.reports[0]


@pytest.mark.parametrize("name", FORMULAS)
def test_the_students_formula_is_named_and_what_the_right_one_is_made_of(name: str) -> None:
    engine, expression, inputs, formulas = FORMULAS[name]
    report = report_on(engine, expression, inputs)
    shown = {label: value for label, value in report.place_facts if label.endswith("as a formula")}
    assert shown == {
        f"{name}.grad as a formula": f"yours: {yours}; the right one is made of {made_of(right)} ({EXPLAINED})"
        for name, (yours, right) in formulas.items()
    }


@pytest.mark.parametrize("name", FORMULAS)
def test_the_shown_numbers_follow_from_the_formulas(name: str) -> None:
    """Evaluating the two formulas with the numbers on the card gives the card's two results."""
    engine, expression, inputs, formulas = FORMULAS[name]
    facts = dict(report_on(engine, expression, inputs).place_facts)
    at_hand = {key: np.array(eval(facts[key])) for key in ("first", "second", "input") if key in facts}
    at_hand["grad"] = np.array(eval(facts.get("incoming gradient", "1.0")))
    assert all(np.all(2 * array == np.round(2 * array)) for array in at_hand.values())
    calculated = re.sub(r"input\.(\w+)\(\)", r"np.\1(input)", facts["alone, for simple numbers"])
    at_hand["output"] = eval(calculated, {"np": np}, at_hand)
    for result in ("yours", "expected"):
        label = next(label for label in facts if label.endswith(f", {result}"))
        index = re.search(r"\[(.+)\]", label)
        place = tuple(map(int, index[1].split(", "))) if index else ()
        name_of_input = label.partition(".")[0]
        formula = formulas[name_of_input][result == "expected"]
        found = np.broadcast_to(eval(formula, {"np": np}, at_hand), at_hand["grad"].shape)[place]
        assert found == pytest.approx(float(facts[label]), rel=1e-3)


def test_no_formula_is_named_where_none_fits() -> None:
    report = report_on(OddTanh, lambda a: a.tanh(), [()])
    assert not [label for label, _ in report.place_facts if "formula" in label]
    assert dict(report.place_facts)["alone, for simple numbers"] == "input.tanh()"


def without_argument(backward: Any) -> Any:
    return lambda self: backward(self)


def test_no_formula_is_named_where_the_gradient_that_arrives_is_not_sure() -> None:
    """The check multiplies by the incoming gradient and sums up on this engine, whose product is wrong as well."""
    engine = array_engine(tanh=square_missing, __mul__=times(lambda a, b, out, g: a * a + 3.0))
    engine.backward = without_argument(engine.backward)
    report = report_on(engine, lambda a: a.tanh(), ONE)
    assert not [label for label, _ in report.place_facts if "formula" in label]


def test_a_mistake_that_simple_numbers_hide_is_shown_with_the_numbers_that_show_it() -> None:
    """Wrong only if an input is not a multiple of one half."""

    def odd(a: Any, b: Any, out: Any, g: Any, right: Any) -> Any:
        return (right[0] * np.where(2 * a == np.round(2 * a), 1.0, 1.25),)

    facts = dict(report_on(array_engine(tanh=odd), lambda a: a.tanh(), ONE).place_facts)
    assert "alone, for simple numbers" not in facts
    assert "." in facts["input"]


def test_a_hidden_check_shows_no_example() -> None:
    engine, expression, inputs, _ = FORMULAS["operands swapped"]
    assert report_on(engine, expression, inputs, hidden=True).place_facts == ()
