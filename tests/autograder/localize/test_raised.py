"""The hints below an error fit that error, and say nothing of a cause that another error of its kind does not have."""

from __future__ import annotations

import pytest

from autograder.localize.returned import FORGOTTEN, _described
from autograder.runs import slips


@pytest.mark.parametrize(
    ("error", "hints"),
    [
        ("TypeError: 'MiniTensor' object is not iterable", slips.NOT_A_TUPLE),
        ("TypeError: 'NoneType' object is not iterable", ()),
        ("ValueError: The truth value of an array with more than one element is ambiguous", slips.ONE_FOR_EACH_ENTRY),
        ("AttributeError: 'MiniTensor' object has no attribute 'copy'", slips.NOT_AN_ARRAY),
        ("AttributeError: 'NoneType' object has no attribute 'ndim'", ()),
        ("AttributeError: 'MiniTensor' object has no attribute 'tanh'", ()),
        ("NameError: name 'rule' is not defined", slips.NO_SUCH_NAME),
        ("ValueError: operands could not be broadcast together with shapes (2,) (3,)", slips.SHAPES),
    ],
)
def test_the_hints_on_an_error(error: str, hints: tuple[str, ...]) -> None:
    assert slips.hints_on(error) == hints


def test_a_result_that_remembers_no_inputs_is_not_blamed_on_its_rule() -> None:
    misfit = _described("+", {"inputs": 0, "kind": "tuple", "count": 2, "more": True}, misshapen=True)
    assert misfit is not None
    assert misfit.sentence == "the result of `+` remembers no inputs, so what its rule returns goes nowhere."
    assert misfit.hints == FORGOTTEN
