"""A card on a `backward` that raises an error does not blame the rules, which are right."""

from __future__ import annotations

import linecache

import pytest

from autograder.student import between, check_gradients
from tests.course.planting import cells_that_define, solved

BACKWARD = """
def backward(self, gradient=1.0):
    pending = {{self: gradient}}
    for node in {order}:
        grad = pending.pop(node)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                {adds}
MiniTensor.backward = backward
"""
ADDS = "pending[source] = pending.get(source, 0.0) + share"
ORDER = "topological_order(self)"
SLIPS = {
    "nothing is pending at first": BACKWARD.format(order=ORDER, adds="pending[source] += share"),
    "shares go to the node itself": BACKWARD.format(order=ORDER, adds=ADDS.replace("[source]", "[node]")),
    "from the leaves on": BACKWARD.format(order=f"{ORDER}[::-1]", adds=ADDS),
    "what is added is thrown away": BACKWARD.format(order=ORDER, adds="pending.get(source, 0.0) + share"),
}


def report_after(change, expressions):
    names = solved("02_scalar_engine")
    exec(change, names)
    return check_gradients(expressions, [(), ()], points=1, engine=names["MiniTensor"]).reports[0]


@pytest.mark.parametrize("slip", SLIPS)
def test_an_error_of_every_operation_is_one_of_backward(slip):
    report = report_after(SLIPS[slip], {"a + b": lambda a, b: a + b, "(a * b).tanh()": lambda a, b: (a * b).tanh()})
    assert report.place.startswith("Every operation that was tried alone raises the same error: ")
    assert report.operations == ("backward",)
    assert not report.diagnosis
    assert not any("rule" in hint for hint in (report.hints[0], report.hints[-1]))


def test_a_line_that_is_quoted_ends_without_its_colon():
    change = BACKWARD.format(order=ORDER, adds=ADDS).replace("zip(node.inputs, node.rule(grad))", "node.rule(grad)")
    names = solved("02_scalar_engine")
    linecache.cache["<cell>"] = len(change), None, change.splitlines(keepends=True), "<cell>"
    exec(compile(change, "<cell>", "exec"), names)
    report = check_gradients(lambda a, b: a + b, [(), ()], points=1, engine=names["MiniTensor"]).reports[0]
    assert "in the line `for source, share in node.rule(grad)`. Start with that error" in report.place


def test_an_error_over_several_lines_is_one_line_of_the_facts():
    names = solved("04_arrays")
    exec("MiniTensor.exp = lambda a: {}[a]", names)
    (report,) = check_gradients(lambda a: a.exp(), [(3, 4)], points=1, engine=names["MiniTensor"]).reports
    happened = dict(report.place_facts)["what happened"]
    assert "\n" in report.lines[0].explanation.partition("in the line")[0].strip()
    assert "\n" not in happened
    assert "]" in happened


INPUTS_OF_THE_OUTPUT = BACKWARD.format(order=ORDER, adds=ADDS).replace("zip(node.inputs", "zip(self.inputs")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (INPUTS_OF_THE_OUTPUT, "on its way from one operation to the next"),
        (BACKWARD.format(order=ORDER, adds="pending[source] = share"), "(`=`) instead of added"),
        (BACKWARD.format(order=ORDER, adds="pending[source] = 3 * pending.get(source, 0.0) + share"), "`a + a`"),
    ],
    ids=["inputs of the output", "assigned", "added three times"],
)
def test_reuse_is_to_blame_only_where_nothing_goes_wrong_without_it(change, said):
    report = report_after(change, {"a + a + b": lambda a, b: a + a + b})
    assert said in f"{report.place} {report.diagnosis}", report.text()
    assert ("used more than once" in report.place) == (said == "`a + a`")


BY_VALUE = """
def topological_order(root):
    order, seen = [], set()
    def visit(node):
        if node.data not in seen:
            seen.add(node.data)
            for source in node.inputs:
                visit(source)
            order.append(node)
    visit(root)
    return order[::-1]
"""


def test_no_rule_is_blamed_where_all_are_right_alone():
    """The gradients look as if the rule of `relu` lost one, but the input of `relu` was taken for its output."""
    expressions = {"relu": lambda a, b: (a * b).relu() + b, "+": lambda a, b: a * b + b}
    names = solved("02_scalar_engine")
    exec(BY_VALUE + SLIPS["from the leaves on"].replace("[::-1]", "").replace("pop(node)", "pop(node, 0.0)"), names)
    positive = between(0.5, 2.0)
    report = check_gradients(expressions, [positive, positive], points=1, engine=names["MiniTensor"]).reports[0]
    assert "The rule of `relu` is not to blame" in report.place
    assert not report.diagnosis


def test_a_backward_that_ends_after_the_output_is_not_said_to_have_the_wrong_order():
    change = """
def backward(self, gradient=1.0):
    self.grad += gradient
    for source, share in zip(self.inputs, self.rule(gradient)):
        source.grad += share
MiniTensor.backward = backward
"""
    report = report_after(
        change, {"a + a + b": lambda a, b: a + a + b, "(a * b + a) * b": lambda a, b: (a * b + a) * b}
    )
    assert "or the pass ends after the output" in report.diagnosis


@pytest.mark.parametrize("kept", ["float(np.float32(data))", "round(data, 4)"])
def test_a_constructor_that_rounds_is_not_taken_for_an_operation_that_writes(kept):
    change = f"""
import numpy as np
right = MiniTensor.__init__
def initialize(self, data, inputs=(), operation="", rule=None):
    right(self, {kept}, inputs, operation, rule)
MiniTensor.__init__ = initialize
"""
    report = report_after(change, {"a + b": lambda a, b: a + b, "a * b": lambda a, b: a * b})
    assert report.place.startswith("A new tensor does not hold the numbers that it was given")
    assert report.operations == ()


def test_a_class_that_was_made_anew_has_lost_its_backward():
    report = report_after("del MiniTensor.backward", {"a + b": lambda a, b: a + b, "a * b": lambda a, b: a * b})
    assert "the class has lost it" in report.place
    assert "Run every cell below" in report.hints[-1]
    assert report.operations == ()


@pytest.mark.parametrize(
    ("line", "operation"),
    [("a.data = a.data + 1", "*"), ("b.data = b.data * 2", "*")],
)
def test_an_operation_that_changes_its_input_is_named(line, operation):
    change = (
        "def multiply(a, b):\n"
        "    out = MiniTensor(a.data * b.data, (a, b), '*', lambda grad: (grad * b.data, grad * a.data))\n"
        f"    {line}\n"
        "    return out\n"
        "MiniTensor.__mul__ = multiply"
    )
    report = report_after(change, {"a + b": lambda a, b: a + b, "a * b": lambda a, b: a * b})
    assert report.place.startswith("`*` changes the data of its input")
    assert report.operations == (operation,)
    assert not report.diagnosis


@pytest.mark.parametrize("line", ["grad *= a.data > 0", "grad[a.data <= 0] = 0"])
def test_a_rule_that_writes_into_the_incoming_gradient_is_named(line):
    names = solved("04_arrays")
    change = (
        "def relu(a):\n"
        "    def rule(grad):\n"
        f"        {line}\n"
        "        return (grad,)\n"
        "    return MiniTensor(np.maximum(a.data, 0), (a,), 'relu', rule)\n"
        "MiniTensor.relu = relu"
    )
    exec(change, names)
    expressions = {"a + a": lambda a: a + a, "a.relu()": lambda a: a.relu()}
    (report,) = check_gradients(expressions, [(3, 4)], points=2, engine=names["MiniTensor"]).reports
    assert [line.status for line in report.lines] == ["right", "wrong"]
    assert "the incoming gradient" in report.lines[1].explanation
    assert report.place.startswith("On the way back through `relu` alone, something writes into")
    assert report.operations == ("relu",)
    assert not report.diagnosis


def test_a_node_whose_turn_comes_too_early_is_asked_about():
    change = BACKWARD.format(order=f"{ORDER}[::-1]", adds=ADDS)
    report = report_after(change, {"a + b": lambda a, b: a + b})
    assert "nothing had arrived at this node" in report.lines[0].explanation


def test_inputs_that_are_no_tuple_are_asked_about_where_tensors_can_be_indexed():
    names = solved("04_arrays")
    exec(
        "MiniTensor.relu = lambda a: MiniTensor(\n"
        "    np.maximum(a.data, 0), a, 'relu', lambda grad: (grad * (a.data > 0),) * len(a.data)\n"
        ")",
        names,
    )
    (report,) = check_gradients({"relu": lambda a: a.relu()}, [(3,)], points=1, engine=names["MiniTensor"]).reports
    assert "in place of the tuple `(a,)`?" in report.lines[0].explanation


def test_a_class_that_was_replaced_by_a_number_is_no_wrong_rule():
    (report,) = check_gradients(lambda a, b: a + b, [(), ()], points=1, engine=3).reports
    assert "given to a number" in report.lines[0].explanation


def test_a_leaf_without_a_rule_is_no_forgotten_return():
    change = BACKWARD.format(order=ORDER, adds=ADDS).replace("if node.rule is not None", "if True")
    report = report_after(change, {"a + b": lambda a, b: a + b, "a * b": lambda a, b: a * b})
    assert "A leaf has no rule" in report.lines[0].explanation
    assert "return" not in report.lines[0].explanation


def test_an_error_of_one_rule_stays_where_it_is():
    change = "MiniTensor.__mul__ = lambda a, b: MiniTensor(a.data * b.data, (a, b), '*', lambda grad: {}[grad])"
    report = report_after(change, {"a + b": lambda a, b: a + b, "a * b": lambda a, b: a * b})
    assert report.place.startswith("`*` raises an error when it is tried alone: KeyError")
    assert report.operations == ("*",)


def test_where_several_operations_raise_errors_no_card_guesses_at_the_rule_of_one():
    """Rules that get lists in place of arrays raise errors that mistakes of `mean` would raise, too."""
    lesson, call = "05_leaves_and_accumulation", "node.backward(node, grad)"
    names = solved(lesson)
    (change,) = (cell.source for cell in cells_that_define(lesson) if call in cell.source)
    exec(change.replace(call, call.replace("grad)", "grad.tolist())")), names)
    names["MiniTensor"].backward = names["backward"]
    expressions = {"squares": lambda a, b: ((a - b) ** 2).mean(1)}
    (report,) = check_gradients(expressions, [(2, 3), (2, 3)], points=1, engine=names["MiniTensor"]).reports
    assert "are wrong as well" in report.place
    assert not report.diagnosis
    assert not report.bugs


def test_where_every_operation_raises_the_same_error_no_card_guesses_at_a_rule():
    """That an array has no truth value is an error that mistakes with shapes would raise, too."""
    lesson, asks = "10_higher_order_and_hooks", "if share is not None"
    names = solved(lesson)
    (change,) = (cell.source for cell in cells_that_define(lesson) if asks in cell.source and "def walk" in cell.source)
    exec(change.replace(asks, "if share"), names)
    expressions = {
        "a.sum(dim=1) * b.mean()": lambda a, b: a.sum(dim=1) * b.mean(),
        "(a @ b).tanh()": lambda a, b: (a @ b).tanh() * a.sum(),
    }
    (report,) = check_gradients(expressions, [(2, 3), (3, 2)], points=1, engine=names["MiniTensor"]).reports
    assert report.place.startswith("Every operation that was tried alone raises the same error: ")
    assert not report.diagnosis
    assert not report.bugs
    assert "`is None` asks whether there is an array" in report.hints[-1]
