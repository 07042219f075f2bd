"""The calls that PyTorch's own table of operations says are wrong: the same error type and text here.

If we accept what PyTorch refuses, or word an error differently, the reason is in DIFFERENT.
`python -m tests.mini_autograd.test_opinfo_errors` prints the reasons with the numbers of calls.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.mini_autograd.test_opinfo import NAMES, OPS, Call, both

DIFFERENT: dict[str, Callable[[Any, str], bool]] = {
    "an operation takes a Python number where PyTorch insists on a tensor": lambda sample, text: (
        isinstance(sample.input, int) or "must be Tensor, not int" in text
    ),
    "out= is not covered": lambda sample, text: "out" in sample.kwargs,
    "there are no complex numbers": lambda sample, text: "complex" in sample.summary(),
    "PyTorch's error lists the signatures that C++ knows": lambda sample, text: "combination of arguments" in text,
    "max_pool1d and max_pool2d share their words": lambda sample, text: "Invalid computed output size" in text,
}
"""Reasons for another error, each with a test whether it applies to a call and to PyTorch's text."""


def wrong_calls(name: str) -> list[Any]:
    op = OPS[name]
    return [] if op.error_inputs_func is None else [error.sample_input for error in op.error_inputs("cpu")]


def outcome(call: Call) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call.run()
        except Exception as error:
            return type(error).__name__, str(error)
    return "no error", ""


def why_different(sample: Any, text: str) -> str | None:
    return next((reason for reason, applies in DIFFERENT.items() if applies(sample, text)), None)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if OPS[name].error_inputs_func is not None])
def test_errors_are_those_of_pytorch(name: str) -> None:
    for sample in wrong_calls(name):
        mine, torchs = (outcome(call) for call in both(OPS[name], sample))
        if mine != torchs and why_different(sample, torchs[1]) is None:
            assert mine == torchs, sample.summary()


def print_differences() -> None:
    """How many calls give the same error, and why the others do not."""
    counts: Counter[str] = Counter()
    for name in NAMES:
        for sample in wrong_calls(name):
            mine, torchs = (outcome(call) for call in both(OPS[name], sample))
            counts["the same error" if mine == torchs else str(why_different(sample, torchs[1]))] += 1
    for reason, number in counts.most_common():
        print(f"{number:4} {reason}")


if __name__ == "__main__":
    print_differences()
