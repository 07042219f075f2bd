"""The bug bank: classic mistakes in automatic differentiation, each with its words beside the change that plants it.

A wrong rule is `wrong(right, call, grad)`, where `right(grad)` is the right result: a bug reads as what is done to it.
The same entries diagnose, audit, teach and simulate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from autograder.bugs import orders
from autograder.bugs.bug import Bug, Plant, Variant
from autograder.bugs.planting import OPERATIONS, Call, Rule, engine_changed, exchanged
from mini_autograd import arrays
from mini_autograd import backward as engine
from mini_autograd.function import AccumulateGrad, Function
from mini_autograd.tensor import Tensor

# Local rules: the derivative of one operation is wrong.


def exchange(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return second, first


def exchange_base_and_exponent(right: Rule, call: Call, grad: Any) -> Any:
    (x,) = call.inputs
    return grad * (x * call.options["exponent"] ** (x - 1.0))


def exchange_factors(right: Rule, call: Call, grad: Any) -> Any:
    a, b = call.inputs
    return b.mT @ grad, grad @ a.mT


operands_swapped = Bug(
    name="operands_swapped",
    family="local rule",
    explanation="the two operands have changed places: each got the derivative that belongs to the other",
    hint="Write d(output)/d(first input) on paper for two different numbers. Which of the two inputs appears in it?",
    misconception="The derivative with respect to an input contains that input itself.",
    rules={
        "Multiply": exchange,
        "Subtract": exchange,
        "Divide": exchange,
        "Power": exchange_base_and_exponent,
        "MatMul": exchange_factors,
    },
)


def flip_second(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return first, -second


def flip(right: Rule, call: Call, grad: Any) -> Any:
    return -right(grad)


sign_lost = Bug(
    name="sign_lost",
    family="local rule",
    explanation="a minus sign is missing: the gradient has the right size and the wrong sign",
    hint="If this input grows a little, does the output grow or shrink? The sign of its derivative must say so too.",
    misconception="Subtracting or dividing passes the gradient on like adding or multiplying.",
    rules={"Subtract": flip_second, "Negate": flip, "Divide": flip_second},
)


def keep_exponent(right: Rule, call: Call, grad: Any) -> Any:
    (x,) = call.inputs
    return right(grad) * x


exponent_not_lowered = Bug(
    name="exponent_not_lowered",
    family="local rule",
    explanation="the exponent was brought to the front but not lowered by one: n * x**n in place of n * x**(n - 1)",
    hint="Try n = 1: x**1 is x, whose derivative is 1. What does your rule give there?",
    misconception="The power rule only multiplies by the exponent.",
    rules={"Power": keep_exponent},
)


def tanh_of_input(right: Rule, call: Call, grad: Any) -> Any:
    (x,) = call.inputs
    return grad * (1.0 - x * x)


def exp_of_input(right: Rule, call: Call, grad: Any) -> Any:
    (x,) = call.inputs
    return grad * x


input_used_for_output = Bug(
    name="input_used_for_output",
    family="local rule",
    explanation="the rule uses the input where the formula needs the output (1 - tanh(x)**2, not 1 - x**2)",
    hint="The formula contains the result of the operation. Which number does your rule put there?",
    misconception="A derivative is always written in terms of the input.",
    rules={"Tanh": tanh_of_input, "Exp": exp_of_input},
)


# Upstream: what happens to the gradient that arrives.


def ignore_upstream(right: Rule, call: Call, grad: Any) -> Any:
    return right(grad * 0.0 + 1.0)


upstream_ignored = Bug(
    name="upstream_ignored",
    family="upstream",
    explanation="the gradient that arrives at the output is ignored: the rule passes on its local derivative alone",
    hint="What would your rule do differently if the output mattered ten times as much to the final result?",
    misconception="The gradient of an input is the local derivative.",
    rules={name: ignore_upstream for name in OPERATIONS if name not in ("Where", "Put")},
)


# Engine: what happens between the rules.


def _overwriting(names: Sequence[str], order: orders.Order) -> Plant:
    """Rules of the named operations write `input.grad = ...`; all others add. Leaves keep their gradient at once."""
    source: list[Function] = []
    right_send = engine.send

    def send(pending: Any, node: Function, grads: Sequence[Any]) -> None:
        source[:] = [node]
        right_send(pending, node, grads)

    def accumulate(pending: Any, edge: Any, grad: Any) -> None:
        overwrites = type(source[0]).__name__ in names
        if isinstance(edge, AccumulateGrad):
            leaf = edge.variable
            leaf.grad = Tensor(grad + (0.0 if overwrites or leaf.grad is None else leaf.grad.array))
        else:
            pending[edge] = grad + (0.0 if overwrites else pending.get(edge, 0.0))

    return lambda: engine_changed(send=send, accumulate=accumulate, topological_order=order)


def _overwriting_pending(order: orders.Order) -> Plant:
    """The backward pass overwrites what waits for a node; leaves add up what arrives from several calls."""

    def accumulate(pending: Any, edge: Any, grad: Any) -> None:
        pending[edge] = grad

    return lambda: engine_changed(accumulate=accumulate, topological_order=order)


def _assignments(present: Sequence[str]) -> list[Variant]:
    """In one rule, in all, or in the pass; which gradient survives depends on the order of the visits."""
    names = [name for name in present if name in OPERATIONS]
    chosen = [tuple(names)] + ([(name,) for name in names] if len(names) > 1 else [])
    ways = orders.right_orders()
    return [
        *(Variant(operations, tuple(_overwriting(operations, order) for order in ways)) for operations in chosen),
        Variant((), tuple(map(_overwriting_pending, ways))),
    ]


assigned_not_accumulated = Bug(
    name="assigned_not_accumulated",
    family="engine",
    explanation="a gradient is assigned (`=`) where it must be added (`+=`): of several contributions one survives",
    hint="Use a tensor twice, as in a + a, and write down `a.grad` after each rule that touches it.",
    misconception="A value has one gradient, and a rule knows it.",
    engine=_assignments,
    engine_operations=tuple(OPERATIONS),
)


@contextmanager
def _overwritten_leaf() -> Iterator[None]:
    def accumulate_leaf(tensor: Any, grad: Any) -> None:
        tensor.grad = Tensor(grad.copy())

    with engine_changed(accumulate_leaf=accumulate_leaf):
        yield


leaf_overwritten = Bug(
    name="leaf_overwritten",
    family="engine",
    explanation="a second `backward` starts anew: what was in `.grad` is replaced or set to zero, not added to",
    hint="Call `backward` on two expressions of the same tensor. What should its `.grad` be after the second call?",
    misconception="Every call of `backward` begins with gradients of zero.",
    engine=lambda present: [Variant((), (_overwritten_leaf,))],
    engine_operations=tuple(OPERATIONS),
)


def _visiting(order: orders.Order) -> Plant:
    return lambda: engine_changed(topological_order=order)


def _visiting_again(last_first: bool) -> Plant:
    """Recursion without a set of visited nodes: a node passes on all it has so far, once per path."""

    @contextmanager
    def plant() -> Iterator[None]:
        sums: dict[Any, Any] = {}
        waiting: list[Any] = [{}]

        def accumulate(pending: Any, edge: Any, grad: Any) -> None:
            waiting[0] = pending
            sums[edge] = sums.get(edge, 0.0) + grad
            pending[edge] = sums[edge]

        def order(root: Function) -> Iterator[Function]:
            sums.clear()
            for node in orders.every_path(root, last_first):
                if node in sums:
                    waiting[0][node] = sums[node]
                yield node

        with ExitStack() as stack:
            stack.enter_context(exchanged(Function, {"release": lambda self: None}))
            stack.enter_context(engine_changed(accumulate=accumulate, topological_order=order))
            yield

    return plant


def _disorder(present: Sequence[str]) -> list[Variant]:
    return [
        Variant((), tuple(map(_visiting, orders.wrong_orders(orders.depth_first)))),
        Variant((), tuple(map(_visiting, orders.wrong_orders(orders.breadth_first)))),
        Variant((), tuple(_visiting_again(last) for last in (False, True))),
        Variant((), (_visiting(orders.from_the_leaves),)),
    ]


no_topological_order = Bug(
    name="no_topological_order",
    family="engine",
    explanation="a node passes its gradient on before all its own contributions have arrived (no topological order)",
    hint="Draw the graph of b = a + 1; c = b * b + b. When is the gradient of b complete, and when is it used?",
    misconception="Walking the graph backwards from the output, in any way, is enough.",
    engine=_disorder,
    engine_operations=tuple(OPERATIONS),
)


@contextmanager
def _unsummed() -> Iterator[None]:
    def accumulate_leaf(tensor: Any, grad: Any) -> None:
        known = 0.0 if tensor.grad is None else tensor.grad.array
        tensor._grad = Tensor(grad + known)  # past the check of the shape

    with exchanged(arrays, {"sum_to": lambda grad, shape: grad}), engine_changed(accumulate_leaf=accumulate_leaf):
        yield


broadcast_not_summed = Bug(
    name="broadcast_not_summed",
    family="broadcast",
    explanation="an input was broadcast to a larger shape, but its gradient was not summed back to its own shape",
    hint="Which axes did NumPy repeat to make the shapes fit? The same axes have to be summed in the gradient.",
    misconception="The gradient has the shape of the output.",
    engine=lambda present: [Variant((), (_unsummed,))],
    engine_operations=("Add", "Subtract", "Multiply", "Divide"),
)


BUGS: tuple[Bug, ...] = (
    operands_swapped,
    upstream_ignored,
    sign_lost,
    exponent_not_lowered,
    input_used_for_output,
    assigned_not_accumulated,
    no_topological_order,
    broadcast_not_summed,
    leaf_overwritten,
)


def bug(name: str) -> Bug:
    """The bug of that name. Raises KeyError."""
    return {entry.name: entry for entry in BUGS}[name]
