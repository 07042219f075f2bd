"""A rule that does not return a tuple with one gradient per input is named, on the engines of the lessons."""

from functools import cache
from pathlib import Path

import pytest
import torch

from autograder.lessons.builder.lesson_engines import engine_after
from autograder.runs.context import check_context
from autograder.sandbox.sandbox import Sandbox
from autograder.student import between, check_gradients

LESSONS = Path(__file__).parents[3] / "course" / "lessons"
NUMBERS, PAIRS = [(), ()], [(3, 4), (3, 4)]


@cache
def source_after(lesson):
    (text,) = LESSONS.glob(f"{lesson}_*/{lesson}_*.py")
    return engine_after(text).source


def report_on(lesson, change, expression, inputs, hidden=False):
    """The card of a check of the lesson's engine after a change."""
    names = {"__name__": "__main__"}
    exec(compile(source_after(lesson) + "\n" + change, "<engine>", "exec", dont_inherit=True), names)
    with check_context(0, graded=hidden, hidden=hidden) as context:
        check_gradients(expression, inputs, points=1, engine=names["MiniTensor"])
    return context.reports[0]


def tanh_of(returned):
    """An engine's tanh whose rule returns `returned`: `output` is its value, `grad` the incoming gradient."""
    return f"""
def tanh(self):
    output = np.tanh(self.data) if hasattr(self.data, "shape") else math.tanh(self.data)
    return MiniTensor(output, (self,), "tanh", lambda grad: {returned})
MiniTensor.tanh = tanh
"""


DIVIDE = """
def divide(a, b):
    b = as_tensor(b)
    def rule(grad):
        return {returned}
    return MiniTensor(a.data / b.data, (a, b), "/", rule)
MiniTensor.__truediv__ = divide
"""


@pytest.mark.parametrize(
    ("lesson", "returned", "inputs"),
    [
        ("02", "grad * b, grad * a", NUMBERS),
        ("02", "grad / b.data, -grad * a.data / b.tanh() ** a", NUMBERS),
        ("02", "math.exp(a), grad", NUMBERS),
        ("04", "grad / b, -grad * a / b**2", PAIRS),
        ("04", "grad / b.data, -grad * a.data / b.swapaxes(0, 1)", PAIRS),
    ],
)
def test_a_rule_that_calculates_with_tensors_is_named(lesson, returned, inputs):
    report = report_on(lesson, DIVIDE.format(returned=returned), {"a / b": lambda a, b: a / b * b}, inputs)
    assert report.place.startswith("the rule of `/` uses a tensor where it needs its numbers"), report.text()
    assert report.operations == ("/",)
    assert not report.diagnosis


@pytest.mark.parametrize("returned", ["grad / b.data, -grad * a.dta", "grad / b.data, print(a)", "grad, {}[a]"])
def test_another_error_in_a_rule_is_not_said_to_come_from_tensors(returned):
    report = report_on("02", DIVIDE.format(returned=returned), {"a / b": lambda a, b: a / b}, NUMBERS)
    assert "uses a tensor" not in report.place


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        (False, "the rule of `/` returned an array of shape (4,) for its first input, which has shape (3, 4)."),
        (True, "The rule of `/` returned an array of the wrong shape for its first input."),
    ],
)
def test_a_gradient_of_an_impossible_shape_is_named_and_not_the_sum_that_stumbles_over_it(hidden, said):
    change = DIVIDE.format(returned="1 / b.data, -a.data / b.data**2")
    report = report_on("04", change, {"a / b": lambda a, b: a / b}, [(3, 4), (4,)], hidden)
    assert report.place == said, report.text()


@pytest.mark.parametrize(
    ("second", "transposed"),
    [("(a.data.T @ grad).T", True), ("grad.T @ a.data", True), ("a.data.T @ a.data", False)],
)
def test_a_transposed_gradient_of_a_matrix_is_called_that(second, transposed):
    change = f"""
def matmul(a, b):
    return MiniTensor(a.data @ b.data, (a, b), "@", lambda grad: (grad @ b.data.T, {second}))
MiniTensor.__matmul__ = matmul
"""
    report = report_on("04", change, {"a @ b": lambda a, b: a @ b}, [(3, 4), (4, 2)])
    assert ("the rows and the columns have changed places" in report.text()) == transposed, report.text()


def rule_of(operation, returned):
    return f"{operation}.backward = staticmethod(lambda ctx, grad: {returned})\n"


RIGHT_TANH = "grad * (1 - output**2)"
SHARES = "grad * ctx.saved_tensors[1], grad * ctx.saved_tensors[0]"
LOOP = """
def backward(self, gradient=None):
    root, _ = edge_to(self)
    pending = {root: np.ones(self.shape) if gradient is None else as_tensor(gradient).data}
    for node in topological_order(root):
        grad = pending.pop(node, None)
        if grad is None:
            continue
        if isinstance(node, AccumulateGrad):
            node.accumulate(grad)
            continue
        for (source, _), share, shape in zip(node.next_functions, node.backward(node, grad), node.input_shapes):
            if source is not None and share is not None:
                share = sum_to(share, shape)
                pending[source] = pending[source] + share if source in pending else share
MiniTensor.backward = backward
"""


def product(a, b):
    return a * b


def total(a, b):
    return (a * b).sum(1)


def squashed(a, b):
    return a.tanh() + b


FORGOTTEN = {
    "a number for a tuple of one": (
        "02",
        tanh_of(RIGHT_TANH),
        squashed,
        NUMBERS,
        "tanh",
        "a single number for its one",
    ),
    "an array for a tuple of one": ("04", tanh_of(RIGHT_TANH), squashed, PAIRS, "tanh", "a single array for its one"),
    "an array, to be summed": (
        "04",
        "MiniTensor.sum = lambda a: MiniTensor(a.data.sum(), (a,), 'sum', lambda grad: np.full(a.shape, grad))",
        lambda a, b: a.sum() + b.sum(),
        PAIRS,
        "sum",
        "a single array for its one input",
    ),
    "a loop that expects tuples": ("05", LOOP, total, PAIRS, "sum", "a single array for its one input"),
    "an array for two": ("05", rule_of("Mul", "grad"), total, PAIRS, "*", "a single array for its two inputs"),
    "a tuple of one for two": ("05", rule_of("Mul", "(grad,)"), product, PAIRS, "*", "a tuple with one gradient for"),
    "a list": ("08", rule_of("Mul", f"[{SHARES}]"), product, PAIRS, "*", "returned a list, instead of a tuple"),
    "None": ("09", rule_of("Mul", "(None, grad)"), product, PAIRS, "*", "None for its first input, which needs"),
    "an array for two, later": ("10", rule_of("Mul", "grad"), total, PAIRS, "*", "a single array for its two inputs"),
    "nothing at all": ("05", rule_of("Mul", "None"), total, PAIRS, "*", "nothing for its two inputs: is a `return`"),
    "one too many": ("10", rule_of("Mul", f"({SHARES}, grad)"), total, PAIRS, "*", "a tuple with three gradients for"),
}


@pytest.mark.parametrize("name", FORGOTTEN)
def test_a_rule_without_one_gradient_per_input_is_named(name):
    lesson, change, expression, inputs, operation, said = FORGOTTEN[name]
    report = report_on(lesson, change, expression, inputs)
    assert not report.passed
    assert report.diagnosis == "", "no other mistake is blamed"
    assert report.operations == (operation,)
    assert f"the rule of `{operation}` returned {said}" in report.place or said in report.place, report.text()
    assert any(label == "its rule returned" for label, _ in report.place_facts)
    hidden = report_on(lesson, change, expression, inputs, hidden=True)
    assert hidden.place == f"The rule of `{operation}` did not return one gradient per input, in a tuple."


@pytest.mark.parametrize("hidden", [False, True])
def test_an_input_that_the_result_does_not_remember_is_named_and_no_rule_is_blamed(hidden):
    change = """
def add(a, b):
    return MiniTensor(a.data + b.data, (a,), "+", lambda grad: (grad, grad))
MiniTensor.__add__ = add
"""
    report = report_on("02", change, lambda a, b: a + b, NUMBERS, hidden)
    if hidden:
        assert report.place == "The result of `+` does not remember all its inputs."
    else:
        assert report.place.startswith("the result of `+` remembers one of its two inputs")
        assert "that makes the result" in report.hints[-1]
    assert report.diagnosis == ""


def test_with_a_number_neither_the_rule_nor_the_result_is_blamed():
    change = """
def from_number(self, number):
    return MiniTensor(number - self.data, (self,), "-", lambda grad: (grad, -grad))
MiniTensor.__rsub__ = from_number
"""
    report = report_on("02", change, lambda a, b: (1 - a) * b, NUMBERS)
    assert report.place == "the result of `-` remembers one input, but its rule returned two gradients."
    assert report.hints[0].startswith("From which tensors was the result made")
    hidden = report_on("02", change, lambda a, b: (1 - a) * b, NUMBERS, hidden=True)
    assert hidden.place == "The rule of `-` returned more gradients than the result remembers inputs."


OTHERS = {
    "a single array may be returned": ("05", "", squashed, True),
    "more than needed, but only None": ("10", rule_of("Mul", f"({SHARES}, None)"), product, True),
    "a single array with wrong numbers": ("05", rule_of("Tanh", "grad * 0.7"), squashed, False),
    "a single array of a wrong shape": ("05", rule_of("Tanh", "grad.sum()"), squashed, False),
    "a tuple with wrong numbers": ("04", tanh_of("(grad * 0.7,)"), squashed, False),
    "a rule that raises": ("05", rule_of("Mul", "{}[grad]"), product, False),
    "two gradients in a tuple, one of them wrong": ("05", rule_of("Mul", "(grad, grad * 0.7)"), product, False),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_answers_of_a_rule_are_not_blamed(name):
    lesson, change, expression, right = OTHERS[name]
    report = report_on(lesson, change, expression, PAIRS)
    assert report.passed == right
    assert "returned" not in report.place


RIGHT_LOOP = (
    LOOP.replace("node.backward(node, grad)", "shares_of(node, grad)")
    + """
def shares_of(node, grad):
    shares = node.backward(node, grad)
    return shares if isinstance(shares, tuple) else (shares,)
"""
)
IN_BACKWARD = {
    "the incoming gradient is handed on": ("sum_to(share, shape)", "sum_to(grad, shape)"),
    "the loop ends with the first leaf": (
        "accumulate(grad)\n            continue",
        "accumulate(grad)\n            return",
    ),
}


@pytest.mark.parametrize("name", IN_BACKWARD)
def test_a_right_rule_is_not_blamed_for_what_backward_does(name):
    assert report_on("05", RIGHT_LOOP, lambda a, b: a - b, PAIRS).passed
    for expression in (lambda a, b: a - b, lambda a, b: a - b.sum(0)):
        report = report_on("05", RIGHT_LOOP.replace(*IN_BACKWARD[name]), expression, PAIRS)
        assert "The rule of `-` is not to blame" in report.place
        assert "look at what `backward` does with what the rule returns" in report.place


def test_pairs_of_wrong_rules_are_no_explanation_if_every_operation_is_wrong_alone():
    change = RIGHT_LOOP.replace("sum_to(share, shape)", "sum_to(share * grad, shape)")
    report = report_on("05", change, lambda a, b: (a - b.sum(0)).mean(1), PAIRS)
    assert "Look at `backward` itself" in report.place
    assert report.diagnosis == ""


def test_a_leaf_that_is_called_like_a_rule_is_named():
    change = RIGHT_LOOP.replace("accumulate(grad)\n            continue", "accumulate(grad)")
    assert "the end of a path: it has no rule" in report_on("05", change, lambda a, b: a - b, PAIRS).text()


def test_a_broadcast_that_is_not_summed_is_still_named():
    change = RIGHT_LOOP.replace("share = sum_to(share, shape)", "pass")
    assert "the fault is where an input is broadcast" in report_on("05", change, lambda a, b: a - b.sum(0), PAIRS).place


def test_a_wrong_rule_is_still_named():
    report = report_on("05", RIGHT_LOOP + rule_of("Sub", "(grad, grad)"), lambda a, b: a - b, PAIRS)
    assert "not to blame" not in report.place


@pytest.mark.parametrize("h", [1e-7, 1e-5])
def test_a_rule_that_is_right_to_some_digits_is_not_acquitted(h):
    slope = f"(math.exp(a.data + {h}) - math.exp(a.data - {h})) / {2 * h}"
    change = f"""
MiniTensor.exp = lambda a: MiniTensor(math.exp(a.data), (a,), "exp", lambda grad: (grad * {slope},))
"""
    report = report_on("02", change, lambda a: a.exp(), [()])
    assert not report.passed
    assert "not to blame" not in report.place


@pytest.mark.parametrize("kind", ["({},)", "[{}]"])
def test_a_rule_that_gives_a_complex_number_for_some_gradients_is_neither_acquitted_nor_told_to_return_a_tuple(kind):
    shares = kind.format("exponent * (grad * a.data) ** (exponent - 1)")
    change = f"""
def power(a, exponent):
    return MiniTensor(a.data**exponent, (a,), "**", lambda grad: {shares})

MiniTensor.__pow__ = power
"""
    report = report_on("02", change, lambda a: a**0.5, [between(0.5, 3.0)])
    assert "not to blame" not in report.place
    assert "returned" not in report.place
    assert "a negative number to a power that is not whole is complex" in report.text()


@pytest.mark.parametrize("hidden", [False, True])
def test_a_rule_that_writes_into_grad_is_named(hidden):
    change = """
def add(a, b):
    def rule(grad):
        a.grad += grad
        b.grad += grad
        return grad, grad
    return MiniTensor(a.data + b.data, (a, b), "+", rule)
MiniTensor.__add__ = add
"""
    report = report_on("02", change, lambda a, b: a + b, NUMBERS, hidden)
    assert report.place.lower().startswith("the rule of `+` writes into the `.grad` of its inputs itself")
    assert not report.diagnosis


@pytest.mark.sandbox
def test_a_rule_in_the_sandbox_is_asked_there():
    with Sandbox() as sandbox:
        assert sandbox.execute(source_after("05") + "\n" + rule_of("Mul", "grad")).error is None
        engine = sandbox.lookup("MiniTensor")
        report = check_gradients(lambda a, b: a * b, PAIRS, points=1, engine=engine).reports[0]
    assert "the rule of `*` returned a single array for its two inputs" in report.place


@pytest.mark.parametrize(("returned", "got"), [("grad", 1), (f"({SHARES}, grad)", 3)])
def test_the_engine_of_lesson_10_counts_gradients_as_pytorch_does(returned, got):
    """Without a check, a wrong number raises an error in PyTorch's words."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, grad):
            return eval(returned, {"ctx": ctx, "grad": grad})

    names = {"__name__": "__main__"}
    exec(source_after("10") + "\n" + rule_of("Mul", returned), names)
    a = names["MiniTensor"](2.0, requires_grad=True)
    with pytest.raises(RuntimeError) as ours:
        (a * a).backward()
    a = torch.tensor(2.0, requires_grad=True)
    with pytest.raises(RuntimeError) as theirs:
        Product.apply(a, a).backward()
    said = f"returned an incorrect number of gradients (expected 2, got {got})"
    assert said in str(ours.value)
    assert said in str(theirs.value)
    for none_beyond in (False, True):
        exec(rule_of("Mul", f"({SHARES}, None)"), names)
        a = names["MiniTensor"](2.0, requires_grad=True)
        (a * a).backward(create_graph=none_beyond)
        assert a.grad.item() == 4.0
