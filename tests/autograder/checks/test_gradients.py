"""Does a check let right engines pass, whatever their style, and give nothing to engines that are wrong or hostile?"""

import math
import random
import re

import numpy as np
import pytest

from autograder.runs import expected as expected_module
from autograder.runs.context import check_context
from autograder.runs.engines import REFERENCE, TORCH
from autograder.student import CheckFailed, LessonError, between, check_gradients, positive
from mini_autograd.operations.pointwise import mathematical
from tests.autograder import student_engines as students
from tests.autograder import student_engines_arrays as arrays

SCALAR = {
    "a + b": lambda a, b: a + b,
    "2 - a / b": lambda a, b: 2 - a / b,
    "3 * a * b": lambda a, b: 3 * a * b,
    "a**3 - b**-2": lambda a, b: a**3 - b**-2,
    "-(a * b).tanh()": lambda a, b: -(a * b).tanh(),
    "relu and exp": lambda a, b: (a * b).relu() + (a - b).exp() * a,
    "used often": lambda a, b: (lambda c: c * c + c * a + c.tanh() * b)(a + b),
    "one input": lambda a: a * a,
}
ARRAY = {
    "a * b + a": lambda a, b: a * b + a,
    "(a - b).tanh() * a": lambda a, b: (a - b).tanh() * a,
    "sum": lambda a, b: (a * b).sum() * 2.0,
    "b.T": lambda a, b: (b.T * 3.0) ** 2,
}
SHAPES = [[(3, 4), (4,)], [(2, 1), (1, 3)], [(), (3,)], [(2, 3), ()]]
SEEDS = range(6)


class Zero(students.closures()):
    """Values right, gradients zero."""

    def backward(self, gradient=1.0):
        pass


class Noise(students.closures()):
    """Values right, gradients random."""

    def _give(self, operation, share, upstream):
        self.grad += random.gauss(0, 1)


class Stub(students.closures()):
    def backward(self, gradient=1.0):
        raise NotImplementedError


class Numerical:
    """No autodiff at all: remembers how it was made and uses central differences in backward."""

    def __init__(self, data, inputs=(), remake=None):
        self.data, self.grad, self.inputs, self.remake = data, 0.0, inputs, remake

    def _made(self, *inputs, remake):
        return Numerical(remake(*(i.data for i in inputs)), inputs, remake)

    def __mul__(self, other):
        return self._made(self, other, remake=lambda a, b: a * b)

    def tanh(self):
        return self._made(self, remake=math.tanh)

    def exp(self):
        return self._made(self, remake=math.exp)

    def backward(self, gradient=1.0):
        self.grad += gradient
        for number, source in enumerate(self.inputs):
            data = [i.data for i in self.inputs]
            up, down = list(data), list(data)
            up[number] += 1e-5
            down[number] -= 1e-5
            source.backward(gradient * (self.remake(*up) - self.remake(*down)) / 2e-5)


@pytest.mark.parametrize("style", [students.closures, students.function_classes, students.pending_dict])
def test_right_scalar_engines_pass(style):
    for seed in SEEDS:
        with check_context(seed):
            credit = check_gradients(SCALAR, [(), ()], points=2, engine=style())
        assert credit == 2, credit.reports[0].text()


@pytest.mark.parametrize("engine", [students.arrays(), REFERENCE, TORCH], ids=["NumPy", "reference", "PyTorch"])
def test_right_array_engines_pass(engine):
    for seed in SEEDS:
        with check_context(seed):
            credit = check_gradients(ARRAY, SHAPES, points=2, engine=engine)
        assert credit == 2, credit.reports[0].text()


def test_engine_without_a_gradient_argument_passes():
    class Plain(students.closures()):
        def backward(self):
            super().backward()

    assert check_gradients(SCALAR, [(), ()], points=1, engine=Plain) == 1


@pytest.mark.parametrize("engine", [Zero, Noise, Stub, int, object, lambda data: data])
def test_engines_that_do_nothing_earn_nothing(engine):
    for seed in SEEDS:
        with check_context(seed):
            assert check_gradients(SCALAR, [(), ()], points=1, engine=engine) == 0


def test_central_differences_are_not_accepted():
    expressions = {"tanh": lambda a, b: (a * b).tanh(), "exp": lambda a, b: (a * b).exp().tanh()}
    assert check_gradients(expressions, [(), ()], points=1, engine=Numerical) == 0


def test_badly_conditioned_expressions_do_not_raise_alarms():
    expressions = {
        "cancellation": lambda a, b: ((a * 1e6 + b) - a * 1e6) * a,
        "steep": lambda a, b: (a * 5).exp() / (b * b + 0.01),
        "saturated": lambda a, b: (a * 8).tanh() + (b * 8).tanh(),
    }
    for seed in SEEDS:
        for style in (students.closures, students.function_classes):
            with check_context(seed):
                credit = check_gradients(expressions, [(), ()], points=1, engine=style())
            assert credit == 1, credit.reports[0].text()


def test_what_is_within_the_least_tolerance_is_within_the_measured_one():
    program = expected_module.Program("cancellation", lambda a, b: ((a * 1e6 + b) - a * 1e6) * a, ("a", "b"))
    least = expected_module.expected_of(program, [(expected_module_spec(),) * 2], 0)
    measured = expected_module.measured(program, least)
    for before, after in zip(least, measured, strict=True):
        assert before.tolerance.value < after.tolerance.value
        pairs = list(zip(before.tolerance.gradients, after.tolerance.gradients, strict=True))
        assert all(np.all(small <= large) for small, large in pairs)
        assert any(np.all(small < large) for small, large in pairs)
        assert before.draw is after.draw


@pytest.mark.parametrize(("at_zero", "right"), [(0.0, True), (0.5, True), (1.0, True), (1.5, False), (-0.1, False)])
def test_any_slope_between_the_one_sided_ones_is_right_at_a_kink(at_zero, right):
    class Convention(students.closures()):
        def relu(self):
            slope = at_zero if self.data == 0 else float(self.data > 0)
            return self._unary("relu", lambda a: max(a, 0.0), lambda a, out: slope)

    credit = check_gradients(lambda a, b: a.relu() * b + a * b, [0.0, 3.0], points=1, engine=Convention)
    assert (credit == 1) is right


@pytest.mark.parametrize(("at_zero", "right"), [(0.0, True), (0.5, False), (1.0, False)])
def test_an_exercise_may_state_a_convention_for_kinks(at_zero, right):
    class Convention(students.closures()):
        def relu(self):
            slope = at_zero if self.data == 0 else float(self.data > 0)
            return self._unary("relu", lambda a: max(a, 0.0), lambda a, out: slope)

    expression, inputs = (lambda a, b: a.relu() * b + a * b), [0.0, 3.0]
    credit = check_gradients(expression, inputs, points=1, engine=Convention, at_kinks="PyTorch")
    assert (credit == 1) is right
    with pytest.raises(LessonError, match="at_kinks"):
        check_gradients(expression, inputs, points=1, engine=Convention, at_kinks="zero")


@pytest.mark.parametrize(
    ("shares", "right"),
    [
        ((0.5, 0.5), True),
        ((1.0, 0.0), True),
        ((0.25, 0.75), True),
        ((1.0, 1.0), False),
        ((0.0, 0.0), False),
        ((0.5, 0.75), False),
    ],
)
@pytest.mark.parametrize(
    "inputs", [[2.0, 2.0], [np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([[2.0, 0.0], [0.5, 4.0]])]]
)
def test_two_operands_that_tie_share_one_gradient_in_any_way(shares, right, inputs):
    class Shared(arrays.functions()):
        def maximum(self, other):
            tied = np.equal(self.data, other.data)
            weights = [np.where(tied, share, self.data > other.data) for share in shares]
            weights[1] = np.where(tied, shares[1], other.data > self.data)
            high = self * weights[0] + other * weights[1]
            return high + (np.maximum(self.data, other.data) - high.data)

    for expression in (lambda a, b: a.maximum(b) * 3.0, lambda a, b: a.maximum(b).sum()):
        credit = check_gradients(expression, [inputs], points=1, engine=Shared)
        assert (credit == 1) is right, credit.reports[0].text()


def test_no_share_is_demanded_where_the_chain_rule_itself_does_not_give_it():
    """relu(a) - relu(-b) with a = b = 0 has the slope 1 along a = b, and PyTorch gives 0 and 0."""

    class Half(arrays.functions()):
        def relu(self):
            return self * ((self.data > 0) + 0.5 * (self.data == 0))

    expression = lambda a, b: a.relu() - (-b).relu() + a + b  # noqa: E731
    for engine in (Half, arrays.functions()):
        assert check_gradients(expression, [[0.0, 0.0]], points=1, engine=engine) == 1


def test_inputs_may_have_an_axis_without_elements():
    assert check_gradients(lambda a: a * 2.0, [[(0, 3)], [(2, 3)]], points=1, engine=arrays.functions()) == 1


def joined_twice(a):
    return joined(a) * 2.0


def joined(a):
    return a.cat(a)


def test_a_method_that_pytorch_has_as_a_function_may_stand_in_a_function_that_the_expression_calls():
    def inside(a):
        return a.layer_norm() * a

    expressions = {"by name": lambda a: joined_twice(a), "around": lambda a: inside(a)}
    assert check_gradients(expressions, [(2, 3)], points=1, engine=arrays.functions()) == 1


def giving(change):
    """The array engine with `change` applied to every gradient of a leaf at the end."""

    engine = students.arrays()
    right = engine.backward

    def backward(self, gradient=None):
        right(self, gradient)
        for node in self.inputs:
            node.grad = change(node.grad)

    engine.backward = backward
    return engine


SHAPES_EXPLAINED = {
    "not summed": (
        lambda g: np.stack([g, g]),
        (2, 3),
        "expected (2, 3), got (2, 2, 3): was the broadcast summed back?",
    ),
    "kept axis": (lambda g: g[None], (3,), "expected (3,), got (1, 3): was the broadcast summed back?"),
    "transposed": (lambda g: g.T, (2, 3), "expected (2, 3), got (3, 2): is it transposed?"),
    "axis dropped": (lambda g: g[:, 0], (3, 1), "expected (3, 1), got (3,): was an axis of size 1 dropped or added?"),
    "all summed": (np.sum, (2, 3), "expected (2, 3), got a number: was everything summed"),
    "something else": (lambda g: g.reshape(-1), (2, 3), "expected (2, 3), got (6,)"),
    "NaN": (lambda g: g * np.nan, (3,), "got nan (the result of 0 / 0, of inf - inf"),
    "infinite": (lambda g: g * np.inf, (3,), "inf (an overflow, a division by zero, or the logarithm of 0)"),
    "a list": (lambda g: g.tolist(), (3,), "is a list, not an array"),
    "an array of objects": (lambda g: g.astype(object), (3,), "object"),
    "half precision": (lambda g: g.astype(np.float16), (3,), "is float16, but `a` is float64: precision is lost"),
}


@pytest.mark.parametrize("name", SHAPES_EXPLAINED)
def test_what_is_odd_about_a_gradient_is_explained(name):
    change, shape, said = SHAPES_EXPLAINED[name]
    credit = check_gradients(lambda a, b: a * b, [shape, shape], points=1, engine=giving(change), accumulates=False)
    assert credit == 0
    assert said in credit.reports[0].text()


def float32_arrays(mistake=("", "")):
    base = students.arrays(mistake)

    def narrowed(data, **_):
        tensor = base(data)
        tensor.data = np.asarray(data, dtype=np.float32)
        return tensor

    return narrowed


def test_float32_is_allowed_where_the_check_says_so_and_wrong_rules_are_still_seen():
    for seed in SEEDS:
        with check_context(seed):
            arguments = ARRAY, [(3, 4), (4,)]
            assert check_gradients(*arguments, points=4, engine=float32_arrays(), dtype="float32") == 4
            assert check_gradients(*arguments, points=4, engine=float32_arrays(), dtype="float64") < 4
            recognized = check_gradients(*arguments, points=4, engine=float32_arrays())
            assert recognized == 4
            assert "in float32, as the engine keeps its numbers" in recognized.reports[0].text()
            wrong = float32_arrays(("operands_swapped", "*"))
            assert check_gradients(*arguments, points=4, engine=wrong, dtype="float32") < 4
    with pytest.raises(LessonError, match="dtype"):
        check_gradients(*arguments, points=4, engine=float32_arrays(), dtype="int8")


def test_partial_credit_is_per_expression():
    engine = students.closures(("sign_lost", "-"))
    credit = check_gradients(
        {"sum": lambda a, b: a + b, "difference": lambda a, b: a - b}, [(), ()], points=3, engine=engine
    )
    assert repr(credit) == "1.5"
    both = credit + check_gradients({"sum": lambda a, b: a + b}, [(), ()], points=1, engine=engine)
    assert repr(both) == "2.5"
    assert len(both.reports) == 2
    assert "difference" in both._repr_html_()


def test_without_points_a_wrong_gradient_raises(capsys):
    with pytest.raises(CheckFailed, match="is wrong: expected"):
        check_gradients(lambda a, b: a - b, [(), ()], engine=students.closures(("sign_lost", "-")))
    assert check_gradients(lambda a, b: a - b, [(), ()], engine=students.closures()) is None
    assert "right" in capsys.readouterr().out


def test_engine_is_found_where_the_check_is_called():
    cell = "from autograder.student import check_gradients\ncredit = check_gradients(lambda a: a * a, [()], points=1)"
    names = {"MiniTensor": students.closures()}
    exec(cell, names)
    assert names["credit"] == 1
    names = {}
    exec(cell, names)
    assert names["credit"] == 0
    assert "not defined" in names["credit"].reports[0].text()


def test_the_students_line_is_shown():
    report = check_gradients(lambda a: a * a, [()], points=1, engine=raising(ZeroDivisionError("by zero"))).reports[0]
    assert "in the line `raise error`" in report.text()


def test_remote_engine_is_asked_in_one_call_and_watched_in_another():
    calls = []

    class Handle:
        def __run_remotely__(self, function, *arguments):
            calls.append(function.__name__)
            return function(students.closures(), *arguments)

    assert check_gradients(SCALAR, [(), ()], points=1, engine=Handle()) == 1
    assert calls == ["run_programs", "watch_programs"]


def gradient_is(value):
    class Answers(students.closures()):
        def backward(self, gradient=1.0):
            super().backward(gradient)
            for node in self._prev:
                node.grad = value

    return Answers


class Lying(float):
    def __eq__(self, other):
        return True

    def __sub__(self, other):
        return 0.0

    __hash__ = None


class Recursive(students.closures()):
    def __mul__(self, other):
        return self * other


def raising(error):
    class Raises(students.closures()):
        def __mul__(self, other):
            raise error

    return Raises


class BadMessageError(Exception):
    def __str__(self):
        raise SystemExit


class Changes(students.closures()):
    def backward(self, gradient=1.0):
        super().backward(gradient)
        for node in self._prev:
            node.data *= 2


HOSTILE = {
    "nan": (gradient_is(math.nan), "nan"),
    "infinity": (gradient_is(math.inf), "inf"),
    "a string": (gradient_is("1.0"), "str"),
    "None": (gradient_is(None), "None"),
    "a bool": (gradient_is(True), "bool"),
    "a complex number": (gradient_is(1j), "complex"),
    "a list": (gradient_is([1.0]), "list"),
    "a wrong shape": (gradient_is(np.ones((1, 3))), "expected a number, got (1, 3)"),
    "an array of objects": (gradient_is(np.array([object()])), "object"),
    "a huge array": (gradient_is(np.zeros(2_000_000)), "2000000"),
    "a huge int": (gradient_is(10**400), "huge"),
    "a float that lies": (gradient_is(Lying(3.0)), "expected"),
    "a tensor": (gradient_is(students.closures()(1.0)), "MiniTensor"),
    "a float32": (gradient_is(np.ones((), dtype=np.float32)), "float32"),
    "recursion": (Recursive, "RecursionError"),
    "exit": (raising(SystemExit(0)), "SystemExit"),
    "a bad message": (raising(BadMessageError()), "BadMessageError"),
    "a division": (raising(ZeroDivisionError("by zero")), "ZeroDivisionError: by zero"),
    "not written": (raising(NotImplementedError()), "not written yet"),
    "changed inputs": (Changes, "was changed"),
    "markup": (raising(ValueError("<script>alert(1)</script>")), "<script>"),
}


@pytest.mark.parametrize(("engine", "said"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_answers_are_failures_with_a_reason(engine, said):
    credit = check_gradients(lambda a, b: a * b, [(), ()], points=1, engine=engine, accumulates=False)
    assert credit == 0
    (report,) = credit.reports
    assert said in report.text()
    assert "<script>" not in report.html()
    with check_context(5, graded=True, hidden=True):
        secret = check_gradients(lambda a, b: a * b, [(), ()], points=1, engine=engine).reports[0]
    assert secret.lines[0].explanation
    assert "alert" not in secret.html() + secret.text()
    assert "a * b" not in secret.html() + secret.text() + secret.message


TREES = [
    None,
    [],
    [None],
    [{}],
    [{"draws": []}],
    [{"draws": [None] * 4}],
    [{"draws": [{"value": 1.0, "gradients": [1.0], "inputs": []}] * 4}],
    [{"draws": [{"value": {"odd": 5}, "gradients": "ab", "inputs": None}] * 4}],
    [{"error": "no"}],
    [{"error": {"type": 5, "message": [], "line": None}}],
    [{"error": {"type": "x" * 9999, "message": "y" * 9999, "line": "z" * 9999}, "draw": "first"}],
    [{"returned": "x" * 9999}],
]


@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
def test_forged_answers_are_failures(tree):
    class Forger:
        def __run_remotely__(self, function, *arguments):
            return tree

    credit = check_gradients(lambda a, b: a * b, [(), ()], points=1, engine=Forger())
    assert credit == 0
    assert len(credit.reports[0].html()) < 20_000


FAULTY = {
    "takes more inputs than drawn": (lambda a, b: a * b, [()]),
    "not in PyTorch": (lambda a: a.no_such_method(), [()]),
    "not finite": (lambda a: a**0.5, [between(-2.0, -1.0)]),
    "zero gradient": (lambda a: a * 0.0, [()]),
    "no tensor": (lambda a: 3.0, [()]),
    "odd input": (lambda a: a, ["text"]),
    "no function": (3, [()]),
}


@pytest.mark.parametrize(("expression", "inputs"), FAULTY.values(), ids=FAULTY)
def test_a_faulty_check_is_the_lessons_fault(expression, inputs):
    with pytest.raises(LessonError):
        check_gradients(expression, inputs, points=1, engine=students.closures())


def test_disagreement_of_the_trusted_engines_is_the_lessons_fault(monkeypatch):
    monkeypatch.setattr(mathematical.Tanh, "backward", staticmethod(lambda ctx, grad: grad))
    with pytest.raises(LessonError, match="disagree"):
        check_gradients(lambda a: a.tanh() * 1.25, [()], points=1, engine=students.closures())


def test_hidden_cards_show_no_numbers_but_the_diagnosis():
    with check_context(7, graded=True, hidden=True) as context:
        check_gradients(
            {"secret": lambda a, b: a * b}, [(), ()], points=1, engine=students.closures(("operands_swapped", "*"))
        )
    (report,) = context.reports
    text = report.text() + report.html() + report.message
    assert "swapped" in text
    assert "secret" not in text
    assert "expected" not in text
    assert not re.search(r"\d\.\d", report.text() + report.message), "a number of the hidden check is shown"
    assert "<svg" not in text


def test_seeds_decide_the_draws():
    def inputs_with(seed):
        seen = []

        class Spy(students.closures()):
            def __init__(self, data, *rest):
                super().__init__(data, *rest)
                seen.append(self.data)

        with check_context(seed):
            check_gradients(lambda a: a.exp(), [positive()], points=1, engine=Spy)
        return seen

    assert inputs_with(1) == inputs_with(1) != inputs_with(2)
    assert inputs_with(None) == inputs_with(None)


def test_both_sides_of_a_relu_are_visited():
    for seed in range(20):
        program = expected_module.Program("relu", lambda a: a.relu(), ("a",))
        specs = [(expected_module_spec(),)]
        entries = expected_module.expected_of(program, specs, seed)
        gradients = {float(entry.reference.dense[0]) == 0 for entry in entries}
        assert gradients == {True, False}


def expected_module_spec():
    from autograder.runs.inputs import spec_of

    return spec_of(())
