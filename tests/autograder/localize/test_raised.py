"""The hints below an error fit that error, and say nothing of a cause that another error of its kind does not have."""

from __future__ import annotations

import pytest

from autograder.localize import raised
from autograder.localize.returned import FORGOTTEN, _described


@pytest.mark.parametrize(
    ("error", "hints"),
    [
        ("TypeError: 'MiniTensor' object is not iterable", raised.NOT_A_TUPLE),
        ("TypeError: 'NoneType' object is not iterable", None),
        ("ValueError: The truth value of an array with more than one element is ambiguous", raised.ONE_FOR_EACH_ENTRY),
        ("AttributeError: 'MiniTensor' object has no attribute 'copy'", raised.NOT_AN_ARRAY),
        ("AttributeError: 'NoneType' object has no attribute 'ndim'", None),
        ("AttributeError: 'MiniTensor' object has no attribute 'tanh'", None),
        ("NameError: name 'rule' is not defined", raised.NO_SUCH_NAME),
        ("ValueError: operands could not be broadcast together with shapes (2,) (3,)", raised.SHAPES),
    ],
)
def test_the_hints_on_an_error(error: str, hints: tuple[str, ...] | None) -> None:
    assert raised.hints_on(error) == hints


def test_a_result_that_remembers_no_inputs_is_not_blamed_on_its_rule() -> None:
    misfit = _described("+", {"inputs": 0, "kind": "tuple", "count": 2, "more": True}, misshapen=True)
    assert misfit is not None
    assert misfit.sentence == "the result of `+` remembers no inputs, so what its rule returns goes nowhere."
    assert misfit.hints == FORGOTTEN
