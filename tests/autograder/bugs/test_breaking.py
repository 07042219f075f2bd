"""Break-it labs: every bug can be handed out, and examples that show it are told apart from others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autograder.bugs.bank import BUGS
from autograder.bugs.breaking import exposure, expression_of
from autograder.runs.errors import LessonError
from autograder.student import CheckFailed, between, broken_engine, check_gradients, expose


def test_a_broken_engine_gives_the_numbers_of_its_bug() -> None:
    engine = broken_engine("operands_swapped")
    answer = engine.run(lambda a, b: a * b, [2.0, 3.0])
    assert answer.value == 6.0
    assert [float(g) for g in answer.gradients] == [2.0, 3.0]
    assert "operands_swapped" in repr(engine)


# bug, an example that shows it, one that does not, inputs
EXAMPLES: list[tuple[str, Any, Any, list[Any]]] = [
    ("operands_swapped", "a * b", "a * a", [2.0, 3.0]),
    ("assigned_not_accumulated", "a * b + a", "a * b", [2.0, 3.0]),
    ("sign_lost", "a - b", "a + b", [2.0, 3.0]),
    ("upstream_ignored", "(a * b) * 3", "a * b", [2.0, 3.0]),
    ("no_topological_order", "(a + b) + ((a + b) + a)", "a + b", [2.0, 3.0]),
    ("broadcast_not_summed", "a * b", "a + a", [np.ones((2, 3)), np.ones(3)]),
]


@pytest.mark.parametrize(("name", "showing", "hiding", "inputs"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_an_example_shows_a_bug_or_does_not(name: str, showing: str, hiding: str, inputs: list[Any]) -> None:
    engine = broken_engine(name)
    if name == "no_topological_order":  # an expression in a text cannot name a value

        def shared(a: Any, b: Any) -> Any:
            c = a + b
            d = c + a
            return c * d + d

        assert exposure(engine, shared, inputs).exposed
    else:
        found = exposure(engine, showing, inputs)
        assert found.exposed
        assert "but should be" in found.sentence()
    other = exposure(engine, hiding, inputs)
    assert not other.exposed
    assert "not exposed" in other.sentence()


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_bug_of_numbers_can_be_handed_out(bug: Any) -> None:
    engine = broken_engine(bug.name)
    answer = engine.run(lambda a: (a * a + a).sum(), [np.array([1.0, 2.0])])
    assert answer.value == (10.0 if bug.name == "input_mutated" else 8.0)


@pytest.mark.parametrize(
    ("name", "expression", "inputs", "said"),
    [
        ("operands_swapped", lambda a, b: a * b, [between(1, 3)] * 2, "the two operands are swapped"),
        ("operands_swapped", lambda a, b: a * b, [between(1, 3)] * 2, "broken engine"),
        ("matmul_not_transposed", lambda a, b: a @ b, [(3, 4), (4, 2)], "the broken engine raised ValueError"),
        ("sign_lost", lambda a, b: a * b, [between(1, 3)] * 2, ""),
    ],
)
def test_a_check_of_a_broken_engine_speaks_of_it_and_not_of_the_reader_s_code(
    name: str, expression: Any, inputs: list[Any], said: str
) -> None:
    credit = check_gradients(expression, inputs, engine=broken_engine(name), points=2)
    assert credit is not None
    (report,) = credit.reports
    assert float(credit) == (0 if said else 2)
    assert said in report.text()
    assert "your" not in (report.text() + report.html() + report.message).lower()


def test_small_examples_are_asked_for_and_counted() -> None:
    engine = broken_engine("operands_swapped")
    assert float(expose(engine, "a * b", [2.0, 3.0], most=1, points=2) or 0) == 2.0
    assert float(expose(engine, "a * b + a", [2.0, 3.0], most=1, points=2) or 0) == 0.0
    assert float(expose(engine, "a * a", [2.0], points=2) or 0) == 0.0
    with pytest.raises(CheckFailed):
        expose(engine, lambda a, b: a + b, [2.0, 3.0])


BAD = {
    "__import__('os')": "is not an input",
    "a.__class__": "no method",
    "a.tanh().data": "no method",
    "d * a": "is not an input",
    "no_grad(a)": "is not an input",
    "numpy(a).tofile(3)": "no method",
    "a.tofile(3)": "no method",
    "a * 'x'": "is not allowed here",
    "[a]": "must return a tensor",
    "a if a else b": "cannot be used",
    "a *": "is not an expression",
    "lambda: a": "cannot be used",
    "9" * 9 + " * a": "is not allowed here",
    "a * " * 200 + "a": "at most 400",
    "3": "must return a tensor",
    "a.reshape(7)": "does not run",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:20])
def test_a_text_that_is_no_expression_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(LessonError, match=BAD[text]):
        exposure(broken_engine("sign_lost"), text, [1.0, 2.0])
    assert float(expose(broken_engine("sign_lost"), text, [1.0, 2.0], points=1) or 0) == 0.0


def test_methods_take_numbers() -> None:
    import mini_autograd as ma

    output = expression_of("(a.sum(1) @ b - 2 ** -1).tanh()", 2)(ma.ones(2, 3), ma.ones(2))
    assert output.item() == pytest.approx(float(np.tanh(5.5)))


def test_a_name_that_the_bank_does_not_have() -> None:
    with pytest.raises(LessonError, match="there is no bug 'nonsense'"):
        broken_engine("nonsense")
