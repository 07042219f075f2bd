"""Mistakes that are in no list: is the right operation named, and is no wrong bug called certain?"""

import math
import re
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from autograder.localize.localizing import localize
from autograder.localize.places import FUNCTIONS, function_hints
from autograder.localize.subexpressions import rendered
from autograder.localize.tracing import traces_of
from autograder.runs import engine_protocol
from autograder.runs.answers import compare
from autograder.runs.context import check_context
from autograder.runs.engines import REFERENCE, Draw, forward
from autograder.runs.expected import expected_of
from autograder.runs.inputs import cases_of
from autograder.runs.programs import programs_of
from autograder.runs.slips import IN_A_FUNCTION, NOT_RECORDED
from autograder.sandbox.sandbox import Sandbox
from autograder.student import check_gradients
from tests.autograder import student_engines as students

SCALARS, MATRICES, ROWS = [(), ()], [(3, 3), (3, 3)], [(3, 4), (4,)]


def mixed(a, b):
    return ((a * b).tanh() * a + b - a / b).tanh() * 0.5


def smooth(a, b):
    return ((a * b).exp() + a**3).tanh() - b


def gated(a, b):
    return (a * b + a).relu() * b


def reused(a, b):
    return (lambda c: c * a + c.tanh() * b + c)(a + b)


def matrices(a, b):
    return ((a @ b).tanh() * a - b).sum()


def rows(a, b):
    return ((a * b).tanh() + b) * a


def powers(a, b):
    return (a**3 * b).tanh() + a


class OddTanh(students.closures()):
    def tanh(self):
        return self._unary("tanh", math.tanh, lambda a, out: 0.9 - out * out)


class SecondOfProductTwice(students.closures()):
    def __mul__(self, other):
        return self._binary(other, "*", lambda a, b: a * b, lambda a, b: b, lambda a, b: 1.5 * a)

    __rmul__ = __mul__


class ProductRounded(students.closures()):
    def __mul__(self, other):
        return self._binary(other, "*", lambda a, b: a * b, lambda a, b: round(b, 2), lambda a, b: a)

    __rmul__ = __mul__


class QuotientKeptAway(students.closures()):
    def __truediv__(self, other):
        return self._binary(other, "/", lambda a, b: a / b, lambda a, b: 1 / b, lambda a, b: -a / (b * b + 0.1))


class ExponentLoweredTwice(students.closures()):
    def __pow__(self, n):
        return self._unary("**", lambda a: a**n, lambda a, out: n * (n - 1) * a ** (n - 2))


class ExpCapped(students.closures()):
    def exp(self):
        return self._unary("exp", math.exp, lambda a, out: min(out, 1.2) + 0.01)


class ReluAtOne(students.closures()):
    """The derivative has its threshold at the wrong place and lets a little through below it."""

    def relu(self):
        return self._unary("relu", lambda a: max(a, 0.0), lambda a, out: 1.0 if a > 1.3 else 0.25)


class DifferenceHalved(students.closures()):
    def __sub__(self, other):
        return self._binary(other, "-", lambda a, b: a - b, lambda a, b: 0.5, lambda a, b: -0.25)


class TanhForgetsSmall(students.closures()):
    """Passes nothing on where the slope is small, as if the unit were dead."""

    def tanh(self):
        return self._unary("tanh", math.tanh, lambda a, out: 0.0 if 1 - out * out < 0.6 else 1 - out * out)


class ExpForgetsNegative(students.closures()):
    """Passes nothing on where its input is negative, which looks like a lost path on some draws."""

    def exp(self):
        return self._unary("exp", math.exp, lambda a, out: out if a > 0 else 0.0)


class TwoWrongRules(students.closures()):
    """Two mistakes, neither of which is a classic one."""

    def tanh(self):
        return self._unary("tanh", math.tanh, lambda a, out: 1 - abs(out) ** 3)

    def __truediv__(self, other):
        return self._binary(other, "/", lambda a, b: a / b, lambda a, b: 1 / b + 0.1, lambda a, b: -a / (b * b))


class ClassicAndOdd(students.closures(("operands_swapped", "*"))):
    def tanh(self):
        return self._unary("tanh", math.tanh, lambda a, out: 0.9 - out * out)


class UpstreamSquaredInTanh(students.closures()):
    def tanh(self):
        out = self._unary("tanh", math.tanh, lambda a, out: 1 - out * out)

        def backward():
            self.grad += (1 - out.data**2) * out.grad * abs(out.grad) * 3

        out._backward = backward
        return out


class ThirdContributionLost(students.closures()):
    """Counts what has arrived and stops after two."""

    def _give(self, operation, share, upstream):
        self.count = getattr(self, "count", 0) + 1
        if self.count <= 2:
            self.grad += share * upstream


class ContributionsAveraged(students.closures()):
    def _give(self, operation, share, upstream):
        self.count = getattr(self, "count", 0) + 1
        self.grad += (share * upstream - self.grad) / self.count


class Clipped(students.closures()):
    """`backward` clips every gradient that it meets."""

    def _give(self, operation, share, upstream):
        self.grad += max(-0.2, min(0.2, share * upstream))


class SecondCallHalved(students.closures()):
    def backward(self, gradient=1.0):
        leaves, stack = set(), [self]
        while stack:
            node = stack.pop()
            leaves |= set() if node._prev else {node}
            stack += node._prev
        for leaf in leaves:
            leaf.grad *= 0.5
        super().backward(gradient)


class PowerInsideQuotient(students.function_classes()):
    """A quotient is made of `**`, whose rule is wrong for negative exponents only."""

    def __pow__(self, n):
        out = super().__pow__(n)
        right = out.function.backward
        out.function.backward = lambda grad: right(grad) * (0.7 if n < 0 else 1.0)
        return out


def array_engine(**changes):
    """The array engine with some rules replaced: `changes` gives rule(a, b, out, g, right) per method."""
    base = students.arrays()

    def changed(name, rule):
        right = getattr(base, name)

        def method(self, *others):
            out = right(self, *others)
            a, b = self.data, getattr(others[0], "data", others[0]) if others else None
            correct = out.rule
            out.rule = lambda g: rule(a, b, out.data, g, correct(g))
            return out

        return method

    for name, rule in changes.items():
        setattr(base, name, changed(name, rule))
    return base


def lower_triangle(a, b, out, g, right):
    return np.tril(right[0]) if right[0].ndim == 2 else right[0], right[1]


def first_row_doubled(a, b, out, g, right):
    return right[0] * np.where(np.arange(len(right[0])) == 0, 2.0, 1.0)[:, None], right[1]


def by_the_largest(a, b, out, g, right):
    return tuple(share / np.max(np.abs(share)) for share in right)


def sum_of_the_last(a, b, out, g, right):
    return (np.where(np.arange(a.shape[-1]) == a.shape[-1] - 1, 2.0, 1.0) * right[0],)


@dataclass(frozen=True)
class Odd:
    """A mistake: the engine, an expression that shows it, the operations one of which must be named first (or the words
    that must be said instead), and bugs of the bank that really are part of it."""

    engine: object
    expression: object
    inputs: list = field(default_factory=lambda: SCALARS)
    operations: tuple = ()
    said: str = ""
    bugs: tuple = ()


MISTAKES = {
    "tanh with another constant": Odd(OddTanh, mixed, operations=("tanh",)),
    "one factor of a product half as large again": Odd(SecondOfProductTwice, mixed, operations=("*",)),
    "a factor rounded": Odd(ProductRounded, mixed, operations=("*",)),
    "quotient, kept away from zero": Odd(QuotientKeptAway, mixed, operations=("/",)),
    "second derivative of a power": Odd(ExponentLoweredTwice, powers, operations=("**",)),
    "exp capped": Odd(ExpCapped, smooth, operations=("exp",)),
    "relu with another threshold": Odd(ReluAtOne, gated, operations=("relu",)),
    "difference with halves": Odd(DifferenceHalved, mixed, operations=("-",)),
    "tanh that dies early": Odd(TanhForgetsSmall, mixed, operations=("tanh",)),
    "exp of negative inputs": Odd(ExpForgetsNegative, lambda a: a.exp() * a, [()], operations=("exp",)),
    "two wrong rules": Odd(TwoWrongRules, mixed, operations=("tanh", "/")),
    "a classic and an odd one": Odd(ClassicAndOdd, mixed, operations=("*",), bugs=("operands_swapped",)),
    "upstream squared with its sign": Odd(UpstreamSquaredInTanh, mixed, operations=("tanh",)),
    "third contribution lost": Odd(ThirdContributionLost, reused, said="used more than once"),
    "contributions averaged": Odd(ContributionsAveraged, reused, said="used more than once"),
    "everything clipped": Odd(Clipped, mixed, said="`backward` itself"),
    "second call halves the first": Odd(SecondCallHalved, mixed, said="a second `backward`"),
    "power inside a quotient": Odd(PowerInsideQuotient, mixed, operations=("**",)),
    "triangle of a matrix product": Odd(array_engine(__matmul__=lower_triangle), matrices, MATRICES, ("@",)),
    "first row of a matrix product": Odd(array_engine(__matmul__=first_row_doubled), matrices, MATRICES, ("@",)),
    "product of arrays normalized": Odd(array_engine(__mul__=by_the_largest), rows, ROWS, ("*",)),
    "sum that counts the last twice": Odd(array_engine(sum=sum_of_the_last), matrices, MATRICES, ("sum",)),
}


def first_report(odd, seed=0, hidden=False):
    with check_context(seed, graded=hidden, hidden=hidden) as context:
        check_gradients(odd.expression, odd.inputs, points=1, engine=odd.engine)
    return context.reports[0]


def localized(odd, report):
    """Whether the report names the right place."""
    if odd.said:
        return odd.said in report.place
    return bool(report.operations) and report.operations[0] in odd.operations


def called_certain(report):
    """The bugs that the report names without an "or"."""
    return set() if report.diagnosis.startswith("one of these") else set(report.bugs)


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_an_unknown_mistake_is_localized_and_never_called_by_a_wrong_name(name):
    odd = MISTAKES[name]
    report = first_report(odd)
    assert not report.passed
    assert called_certain(report) <= set(odd.bugs), f"{report.bugs}\n{report.text()}"
    assert localized(odd, report), report.text()


def test_a_hidden_check_names_the_operation_and_nothing_else():
    odd = MISTAKES["triangle of a matrix product"]
    shown, hidden = first_report(odd), first_report(odd, hidden=True)
    assert "`@`" in hidden.place
    assert "expected" in shown.text()
    assert re.search(r"(?m)^ +[-+.?]( [-+.?])+$", shown.text()), "no heat map in the text"
    assert "<svg" in shown.html()
    for text in (hidden.text(), hidden.html(), hidden.message):
        assert "expected" not in text
        assert "<svg" not in text
        assert odd.expression.__name__ not in text
        assert "tanh" not in text, "an operation that is right is no business of a hidden card"
    assert not re.search(r"\d\.\d", hidden.text() + hidden.message)


BETWEEN = {
    "a tensor used twice": (("assigned_not_accumulated", "all"), reused, "used more than once"),
    "visited too early": (("no_topological_order", "depth first"), reused, "used more than once"),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_what_no_single_operation_shows_lies_between_them(name):
    """Without the bank: all operations are right, and the smallest part that goes wrong is named."""
    mistake, expression, said = BETWEEN[name]
    place = place_of(students.closures(mistake), expression, SCALARS)
    assert said in place.sentence
    assert "Every operation is right" in place.public
    assert "smallest part" not in place.public, "a hidden card would show a piece of the expression"
    assert any(label == "part" and len(text) < 40 for label, text in place.facts)


def place_of(engine, expression, inputs):
    (program,) = programs_of(expression, len(inputs))
    expected = expected_of(program, cases_of(inputs), 0)
    sent = [{"function": program.function, "draws": [entry.draw.sent() for entry in expected]}]
    problem = compare(engine_protocol.run_programs(engine, sent)[0], expected, program.arguments).problem
    return localize(engine, program, expected, problem)


def test_broadcasting_is_told_from_the_rule():
    place = place_of(students.arrays(("broadcast_not_summed", "all")), rows, ROWS)
    assert place.operations[0] == "+", "the first broadcast, going backwards"
    assert "equal shapes it is right" in place.public


def test_a_wrong_value_is_localized_going_forwards():
    class WrongValue(students.closures()):
        def tanh(self):
            return self._unary("tanh", lambda a: math.tanh(a) + 0.01, lambda a, out: 1 - out * out)

    place = place_of(WrongValue, mixed, SCALARS)
    assert place.operations == ("tanh",)
    assert "value" in place.public


def test_an_operation_that_raises_is_named():
    class Raises(students.closures()):
        def exp(self):
            return self._unary("exp", math.exp, lambda a, out: {}[a])

    assert place_of(Raises, smooth, SCALARS).operations == ("exp",)


def test_an_engine_without_a_gradient_argument_is_localized():
    class Plain(OddTanh):
        def backward(self):
            super().backward()

    assert place_of(Plain, mixed, SCALARS).operations == ("tanh",)


def test_localizing_asks_the_engine_seldom_and_survives_its_silence():
    calls = []

    class Handle:
        def __run_remotely__(self, function, *arguments):
            calls.append(function.__name__)
            if function.__name__ == "run_parts":
                raise RuntimeError("the sandbox is gone")
            return function(OddTanh, *arguments)

    credit = check_gradients(mixed, SCALARS, points=1, engine=Handle())
    assert credit == 0
    assert credit.reports[0].place == ""
    assert calls == ["run_programs", "run_parts"]


@pytest.mark.sandbox
def test_an_engine_in_the_sandbox_is_taken_apart_there():
    """With the bare code of an engine, as a submission has it."""
    with Sandbox() as sandbox:
        source = Path(students.__file__).read_text() + "\nclass Odd(closures()):\n    pass\n"
        source += "Odd.tanh = lambda self: self._unary('tanh', math.tanh, lambda a, out: 0.9 - out * out)\n"
        source += "Odd.__mul__ = lambda self, other: Odd._binary(self, other, '*', lambda a, b: a * b, "
        source += "lambda a, b: b, lambda a, b: a)\n"
        assert sandbox.execute(source.replace("out = type(self)(", "out = Odd(")).error is None
        engine = sandbox.lookup("Odd")
        place = check_gradients(lambda a, b: (a * b).tanh() * b, SCALARS, points=1, engine=engine).reports[0]
    assert place.operations == ("tanh",)


STEPS = {
    "operators": (lambda a, b: 2 - a * b / -a, "2 - a * b / -a"),
    "methods and properties": (lambda a, b: (a @ b.T).sum(dim=0)[1:], "(a @ b.T).sum(dim=0)[1:]"),
    "a result used twice": (lambda a, b: (lambda c: c * c)(a + b), "c = a + b; c * c"),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_trace_can_be_read_and_replayed(name):
    expression, text = STEPS[name]
    program = programs_of(expression, 2)[0]
    draw = Draw((np.arange(6.0).reshape(2, 3) + 1, np.ones((2, 3)) * 2), None)
    draw = Draw(draw.inputs, np.ones(forward(program, draw.inputs).shape))
    (entry,) = traces_of(program, [draw], most=1)
    assert rendered(entry.steps, program.arguments) == text
    leaves = [REFERENCE(array) for array in draw.inputs]
    again = engine_protocol.replayed([step.sent() for step in entry.steps], leaves)
    assert np.array_equal(again.data, forward(program, draw.inputs))


@pytest.mark.parametrize("expression", [lambda a: a.add_(1.0), lambda a: np.sin(a), lambda a: 3.0, lambda a: a])
def test_what_cannot_be_traced_is_left_alone(expression):
    assert not traces_of(programs_of(expression, 1)[0], [Draw((np.ones(3),), np.ones(3))], most=1)


def test_hints_on_a_function_that_raises_speak_of_the_error_and_not_of_copies():
    assert function_hints("") is FUNCTIONS
    assert function_hints("TypeError: unsupported operand type(s) for *: 'NoneType' and 'NoneType'") is IN_A_FUNCTION
    assert function_hints("RuntimeError: element 0 does not require grad and does not have a grad_fn") is NOT_RECORDED


def test_an_index_array_that_is_made_anew_is_the_same_step_if_its_numbers_are_the_same():
    draws, numbers = [Draw((np.ones(3),), np.ones(2))] * 2, count()
    same, other = (lambda a: a[np.array([0, 2])]), (lambda a: a[np.array([0, next(numbers) % 3])])
    assert [len(traces_of(programs_of(index, 1)[0], draws, most=2)) for index in (same, other)] == [2, 1]
