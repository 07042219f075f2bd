"""Engine: what happens between the rules. Order of visits, accumulation, memory, and what is recorded.

A bug that depends on the order in which equal nodes are visited has one plant per order, since a student's engine may
choose any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from autograder.bugs import orders
from autograder.bugs.bug import Bug, Plant, Variant, in_orders
from autograder.bugs.families.shares import local, slope
from autograder.runs.reference_patch import OPERATIONS, Call, Rule, all_patched, engine_changed, wrong_rules
from mini_autograd.graph import backward as engine
from mini_autograd.graph.function import AccumulateGrad, Function, tensor_of

EVERYWHERE = tuple(OPERATIONS)


def _overwriting(names: Sequence[str], order: orders.Order) -> Plant:
    """Rules of the named operations write `input.grad = ...`; all others add. Leaves store their gradient at once."""
    source: list[Function] = []
    right_send = engine.send

    def send(pending: Any, node: Function, grads: Sequence[Any]) -> None:
        source[:] = [node]
        right_send(pending, node, grads)

    def accumulate(pending: Any, edge: Any, grad: Any) -> None:
        overwrites = type(source[0]).__qualname__ in names
        if isinstance(edge, AccumulateGrad):
            leaf = edge.variable
            leaf.grad = tensor_of(grad + (0.0 if overwrites or leaf.grad is None else leaf.grad.array))
        else:
            pending[edge] = grad + (0.0 if overwrites else pending.get(edge, 0.0))

    return partial(engine_changed, send=send, accumulate=accumulate, topological_order=order)


def _overwriting_pending(names: Sequence[str], order: orders.Order) -> Plant:
    """The gradient from a named operation replaces the pending gradient of a node; leaves add up over several calls."""
    source: list[Function] = []
    right_send, right_accumulate = engine.send, engine.accumulate

    def send(pending: Any, node: Function, grads: Sequence[Any]) -> None:
        source[:] = [node]
        right_send(pending, node, grads)

    def accumulate(pending: Any, edge: Any, grad: Any) -> None:
        if not names or type(source[0]).__qualname__ in names:
            pending[edge] = grad
        else:
            right_accumulate(pending, edge, grad)

    return partial(engine_changed, send=send, accumulate=accumulate, topological_order=order)


def _keeping_first(order: orders.Order) -> Plant:
    """The pending gradient of a node stays, and later ones are lost; leaves add up over several calls."""

    def accumulate(pending: Any, edge: Any, grad: Any) -> None:
        pending.setdefault(edge, grad)

    return partial(engine_changed, accumulate=accumulate, topological_order=order)


def _keeping_first_at_leaves(order: orders.Order) -> Plant:
    """A leaf whose `.grad` is no longer None keeps it; elsewhere gradients are added."""
    right_accumulate = engine.accumulate

    def accumulate(pending: Any, edge: Any, grad: Any) -> None:
        if not isinstance(edge, AccumulateGrad):
            right_accumulate(pending, edge, grad)
        elif edge.variable.grad is None:
            edge.variable.grad = tensor_of(grad.copy())

    return partial(engine_changed, accumulate=accumulate, topological_order=order)


def _assignments(present: Sequence[str]) -> list[Variant]:
    """Assignment in one rule, in all, or in the pass. Which gradient survives depends on the order of the visits."""
    names = [name for name in present if name in OPERATIONS]
    chosen = [tuple(names)] + ([(name,) for name in names] if len(names) > 1 else [])
    return [
        *(in_orders(operations, partial(_overwriting, operations), orders.RIGHT_ORDERS) for operations in chosen),
        in_orders((), partial(_overwriting_pending, ()), orders.RIGHT_ORDERS),
        *(in_orders((name,), partial(_overwriting_pending, (name,)), orders.RIGHT_ORDERS) for name in names),
        in_orders((), _keeping_first, orders.RIGHT_ORDERS),
        in_orders((), _keeping_first_at_leaves, orders.RIGHT_ORDERS),
    ]


assigned_not_accumulated = Bug(
    explanation="a gradient is assigned (`=`) instead of added (`+=`): only one of several contributions survives",
    hint="Use a tensor twice, as in a + a, and write down `a.grad` after each rule that touches it.",
    misconception="A value gets its whole gradient from one rule.",
    by_hand="a value is used more than once in the expression, and the gradient through one of its uses is missing: "
    "add the gradients through all of them",
    # not the rule's fault if `backward` does the adding
    said_in="where the gradients that {rules} produce{verb_s} are stored,",
    look_at="the line that adds the gradients from {rules}: in the rule, or in `backward`",
    engine=_assignments,
    engine_operations=EVERYWHERE,
)


def _visiting(order: orders.Order) -> Plant:
    return partial(engine_changed, topological_order=order)


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

        keeping = (Function, {"release": lambda self: None})
        with all_patched([keeping, (engine, {"accumulate": accumulate, "topological_order": order})]):
            yield

    return plant


def _disorder(present: Sequence[str]) -> list[Variant]:
    return [
        in_orders((), _visiting, orders.DEPTH_FIRST),
        in_orders((), _visiting, orders.BREADTH_FIRST),
    ]


no_topological_order = Bug(
    explanation=(
        "a node passes its gradient on before all its own contributions have arrived (no topological order), or the "
        "pass ends before it reaches the last nodes"
    ),
    hint="Draw the graph of b = a + 1; c = b * b + b. When is the gradient of b complete, and when is it used?",
    misconception="Walking the graph backwards from the output in any order is enough.",
    engine=_disorder,
    engine_operations=EVERYWHERE,
)

visited_twice = Bug(
    explanation="a node that two paths reach runs its rule twice, the second time with all that has arrived so far",
    hint="Count how often each rule is called for b = a + 1; c = b * b + b. Once per node is enough, but when?",
    misconception="Calling `backward` on the inputs recursively visits each of them once.",
    engine=lambda present: [Variant((), tuple(_visiting_again(last) for last in (False, True)))],
    engine_operations=EVERYWHERE,
)

order_not_reversed = Bug(
    explanation=(
        "only the rule of the output has any effect: the nodes are visited from the inputs to the output (the "
        "topological order was not reversed), or the pass ends after the output"
    ),
    hint="Which node knows its gradient first? Does your loop visit it first, and then all the others?",
    misconception="The backward pass runs through the operations in the order in which they were calculated.",
    engine=lambda present: [Variant((), (_visiting(orders.from_the_leaves),))],
    engine_operations=EVERYWHERE,
)


def _overwritten_leaf() -> AbstractContextManager[None]:
    def accumulate_leaf(tensor: Any, grad: Any) -> None:
        tensor.grad = tensor_of(grad.copy())

    return engine_changed(accumulate_leaf=accumulate_leaf)


leaf_overwritten = Bug(
    explanation="a second `backward` starts over: it replaces or zeroes what was in `.grad` instead of adding to it",
    hint="Call `backward` on two expressions of the same tensor. What should its `.grad` be after the second call?",
    misconception="Every call of `backward` begins with gradients of zero.",
    engine=lambda present: [Variant((), (_overwritten_leaf,))],
    engine_operations=EVERYWHERE,
)


def _in_order(order: orders.Order, contexts: Sequence[Callable[[], AbstractContextManager[Any]]]) -> Plant:
    """A plant in an engine that visits the nodes in that order."""

    @contextmanager
    def plant() -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(engine_changed(topological_order=order))
            for context in contexts:
                stack.enter_context(context())
            yield

    return plant


def _shared_leaf_gradient() -> AbstractContextManager[None]:
    return engine_changed(own=lambda held, key: held[key])


def _shared_pending_gradient() -> AbstractContextManager[None]:
    def accumulate(pending: Any, edge: Any, grad: Any) -> None:
        if edge in pending:
            pending[edge] += grad
        else:
            pending[edge] = grad

    return engine_changed(accumulate=accumulate)


gradient_aliased = Bug(
    explanation="two tensors share one gradient array (no copy was made), so adding to one with `+=` changes the other",
    hint="After (a + b).backward(), compare id(a.grad) and id(b.grad). What does `a.grad += ...` do now?",
    misconception="`grad = other` makes a copy.",
    engine=lambda present: [
        Variant((), (_shared_leaf_gradient,), arrays_only=True),
        in_orders((), partial(_in_order, contexts=(_shared_pending_gradient,)), orders.RIGHT_ORDERS, True),
        in_orders(
            (),
            partial(_in_order, contexts=(_shared_pending_gradient, _shared_leaf_gradient)),
            orders.RIGHT_ORDERS,
            True,
        ),
    ],
    engine_operations=("Add", "Subtract", "Reshape", "Sum"),
)


def in_place(right: Rule, call: Call, grad: Any) -> Any:
    """The rule writes what it returns for its first input into the array that arrived."""
    result = right(grad)
    first = result[0] if isinstance(result, tuple) else result
    if not isinstance(grad, np.ndarray) or np.shape(first) != grad.shape or not grad.flags.writeable:
        return result
    grad[...] = first
    return (grad, *result[1:]) if isinstance(result, tuple) else grad


def used_again(right: Rule, call: Call, grad: Any) -> Any:
    """The second gradient is computed from what the first one left in the incoming gradient's array."""
    first, second = right(grad)
    if first is None or second is None or np.shape(first) != np.shape(grad):
        return first, second
    return first, right(first)[1]


SCALING = ("Multiply", "Divide", "Power", "Exp", "Log", "Tanh", "Relu", "Sigmoid", "Sqrt", "Negate")


def _each_and_all(
    names: Sequence[str], rules: Callable[[Sequence[str]], Callable[[], Any]], ordered: bool
) -> list[Variant]:
    """The bug in each operation alone and in all, in every right order of the visits if that matters."""
    chosen = [(name,) for name in names] + ([tuple(names)] if len(names) > 1 else [])
    if ordered:
        return [
            in_orders(several, partial(_in_order, contexts=(rules(several),)), orders.RIGHT_ORDERS, True)
            for several in chosen
        ]
    return [Variant(several, (rules(several),)) for several in chosen]


incoming_changed_in_place = Bug(
    explanation="a rule changes the incoming gradient in place (`grad *= ...`), but that array is still used elsewhere",
    hint="An addition hands the same array to both of its inputs. What does the second one find after `grad *= ...`?",
    misconception="The gradient that a rule receives belongs to that rule.",
    engine=lambda present: [
        *_each_and_all(
            [name for name in present if name in SCALING],
            lambda names: lambda: wrong_rules(dict.fromkeys(names, in_place)),
            ordered=True,
        ),
        *_each_and_all(
            [name for name in present if name in ("Multiply", "Divide")],
            lambda names: lambda: wrong_rules(dict.fromkeys(names, used_again)),
            ordered=False,
        ),
    ],
    engine_operations=SCALING,
)


def through_saved_input(right: Rule, call: Call, grad: Any) -> Any:
    """The derivative is computed in place, in the array that the forward pass kept."""
    x = call.inputs[0]
    result, derivative = right(grad), local(right, grad)
    if isinstance(x, np.ndarray) and x.flags.writeable:
        x[...] = derivative
    return result


KEEPING_INPUT = ("Log", "Power", "Relu", "Abs")
saved_value_changed = Bug(
    explanation=(
        "a rule overwrites a value that the forward pass saved (`x[x > 0] = 1`) and that is still needed elsewhere"
    ),
    hint="Print the input of the operation before and after the backward pass.",
    misconception="After the forward pass, the values are no longer needed.",
    engine=lambda present: _each_and_all(
        [name for name in present if name in KEEPING_INPUT],
        lambda names: lambda: wrong_rules(dict.fromkeys(names, through_saved_input)),
        ordered=False,
    ),
    engine_operations=KEEPING_INPUT,
)


@contextmanager
def _writing_into_input(names: Sequence[str]) -> Iterator[None]:
    with all_patched([(OPERATIONS[name], {"forward": staticmethod(_in_place_forward(name))}) for name in names]):
        yield


def _in_place_forward(name: str) -> Callable[..., Any]:
    right = OPERATIONS[name].forward

    def forward(ctx: Any, x: Any, *others: Any, **options: Any) -> Any:
        output = right(ctx, x, *others, **options)
        if isinstance(x, np.ndarray) and x.shape == np.shape(output) and x.flags.writeable:
            x[...] = output
        return output

    return forward


@contextmanager
def _writing_and_reading_again(names: Sequence[str]) -> Iterator[None]:
    """Operations write their output into their input, and their rules read that input."""
    with wrong_rules({name: FROM_INPUT[name] for name in names if name in FROM_INPUT}), _writing_into_input(names):
        yield


FROM_INPUT = {
    "Exp": slope(lambda x, y: np.exp(x)),
    "Tanh": slope(lambda x, y: 1.0 - np.tanh(x) ** 2),
    "Sigmoid": slope(lambda x, y: 0.25 / np.cosh(x / 2.0) ** 2),
}
CHANGING = ("Exp", "Relu", "Tanh", "Add", "Multiply", "Negate", "Softmax", "Sigmoid")
input_mutated = Bug(
    explanation="the operation writes its result into the array of its input (`out=x.data`, `x.data += ...`)",
    hint="Print the data of the input before and after the operation.",
    misconception="`x += y` is short for x = x + y.",
    look_at="the line that computes the result of the operation",
    engine=lambda present: [
        Variant(variant.operations, (*variant.plants, partial(_writing_and_reading_again, variant.operations)))
        for variant in _each_and_all(
            [name for name in present if name in CHANGING],
            lambda names: partial(_writing_into_input, names),
            ordered=False,
        )
    ],
    engine_operations=CHANGING,
)


def _narrow_leaf_gradients() -> AbstractContextManager[None]:
    def accumulate_leaf(tensor: Any, grad: Any) -> None:
        known = 0.0 if tensor.grad is None else tensor.grad.array
        tensor._grad = tensor_of(np.asarray(grad + known, dtype=np.float32))

    return engine_changed(accumulate_leaf=accumulate_leaf)


dtype_narrowed = Bug(
    explanation="gradients are stored in float32 although the data is float64: half of the digits are lost",
    hint="Print `gradient.dtype`. Which line makes the array for the gradient, and with which dtype?",
    misconception="A float is a float.",
    engine=lambda present: [Variant((), (_narrow_leaf_gradients,))],
    engine_operations=EVERYWHERE,
)
