"""Engine, second part: mistakes that the values and gradients of one expression do not show. They concern what is
recorded, what is kept after the pass, and what `.grad` is if nothing arrives.

Each of them names the behavior that shows it (see `autograder.checks.behavior`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np

from autograder.bugs.bug import Bug, Plant, Variant
from autograder.bugs.families.engine import EVERYWHERE, FAMILY
from autograder.runs.reference_patch import engine_changed, patched
from mini_autograd.graph import backward as engine
from mini_autograd.graph import grad_mode
from mini_autograd.graph.function import AccumulateGrad, Function, tensor_of
from mini_autograd.tensors.tensor import Tensor


def only(*plants: Plant) -> Callable[[Sequence[str]], list[Variant]]:
    """Variants that do not depend on the operations of a program."""
    return lambda present: [Variant((), (plant,)) for plant in plants]


@contextmanager
def _gradients_on_all_tensors() -> Iterator[None]:
    made: dict[Any, Tensor] = {}
    right_connect, right_accumulate = Function.connect, engine.accumulate

    def connect(self: Function, output: Any) -> Any:
        made[self] = right_connect(self, output)
        return made[self]

    def accumulate(pending: Any, edge: Any, grad: Any) -> None:
        right_accumulate(pending, edge, grad)
        if edge in made and not isinstance(edge, AccumulateGrad):
            made[edge]._grad = tensor_of(np.asarray(pending[edge]))

    with ExitStack() as stack:
        stack.enter_context(patched(Function, {"connect": connect}))
        stack.enter_context(engine_changed(accumulate=accumulate))
        yield


non_leaf_gradient_kept = Bug(
    name="non_leaf_gradient_kept",
    family=FAMILY,
    explanation="tensors that are not leaves keep their gradient: only leaves should, unless `retain_grad` was called",
    hint="After (a * 2).sum().backward(), which of the three tensors should have a `.grad`?",
    misconception="Every tensor of the graph ends up with a gradient.",
    engine=only(_gradients_on_all_tensors),
    engine_operations=EVERYWHERE,
    behavior="gradients of leaves only",
)


def _nothing_freed() -> AbstractContextManager[None]:
    return patched(Function, {"release": lambda self: None})


graph_not_freed = Bug(
    name="graph_not_freed",
    family=FAMILY,
    explanation="the saved values are not freed after `backward`, so a second pass is not refused",
    hint="When can the values that the forward pass saved be freed? What still needs them after `backward`?",
    misconception="The graph is needed until the program ends.",
    engine=only(_nothing_freed),
    engine_operations=EVERYWHERE,
    behavior="freed after backward",
)


def _always_freed() -> AbstractContextManager[None]:
    right = engine.run_backward

    def run_backward(edges: Any, grads: Any, retain_graph: bool, *others: Any, **options: Any) -> Any:
        return right(edges, grads, False, *others, **options)

    return engine_changed(run_backward=run_backward)


retain_graph_ignored = Bug(
    name="retain_graph_ignored",
    family=FAMILY,
    explanation="`retain_graph=True` has no effect: the saved values are freed anyway",
    hint="Where does your pass free the saved values, and does it look at `retain_graph` there?",
    misconception="`retain_graph` belongs to the second call, not to the first.",
    engine=only(_always_freed),
    engine_operations=EVERYWHERE,
    behavior="retained graph",
)


def _zero_left_out() -> AbstractContextManager[None]:
    right = engine.accumulate_leaf

    def accumulate_leaf(tensor: Any, grad: Any) -> None:
        if np.any(grad):
            right(tensor, grad)

    return engine_changed(accumulate_leaf=accumulate_leaf)


none_for_zero = Bug(
    name="none_for_zero",
    family=FAMILY,
    explanation=(
        "the `.grad` of a leaf with a zero gradient is None: None is for a leaf that the output does not depend on"
    ),
    hint="Which of your lines asks whether a gradient is zero (or falsy) when it should ask whether there is one?",
    misconception="No influence means no path in the graph.",
    engine=only(_zero_left_out),
    engine_operations=EVERYWHERE,
    behavior="None and zero",
)


def _zero_from_the_start() -> AbstractContextManager[None]:
    right = vars(Tensor)["grad"]

    def grad(self: Any) -> Any:
        if right.fget(self) is None and self.is_leaf and self.requires_grad:
            self._grad = tensor_of(np.zeros_like(self.array))
        return right.fget(self)

    return patched(Tensor, {"grad": property(grad, right.fset)})


zero_for_none = Bug(
    name="zero_for_none",
    family=FAMILY,
    explanation="the `.grad` of a leaf that no gradient has reached is zero, but it should be None",
    hint="What is the `.grad` of a new tensor, and what should tell an optimizer that there is nothing to do?",
    misconception="No gradient means a gradient of zero.",
    engine=only(_zero_from_the_start),
    engine_operations=EVERYWHERE,
    behavior="None and zero",
)


def _still_recording() -> AbstractContextManager[None]:
    return patched(grad_mode.no_grad, {"entered": lambda self: grad_mode.state.mode | grad_mode.RECORDING})


recording_left_on = Bug(
    name="recording_left_on",
    family=FAMILY,
    explanation="operations inside `no_grad` are still recorded",
    hint="Where does an operation decide whether to become part of the graph? Does it ask whether recording is on?",
    misconception="`no_grad` only matters for the backward pass.",
    engine=only(_still_recording),
    engine_operations=EVERYWHERE,
    behavior="no_grad",
)


def _not_restored(always: bool) -> Plant:
    @contextmanager
    def plant() -> Iterator[None]:
        before = grad_mode.state.mode
        right = grad_mode.Mode.__exit__

        def leave(self: Any, *error: Any) -> None:
            if not always and error[0] is None:
                right(self, *error)

        try:
            with patched(grad_mode.no_grad, {"__exit__": leave}):
                yield
        finally:
            grad_mode.state.mode = before

    return plant


recording_not_restored = Bug(
    name="recording_not_restored",
    family=FAMILY,
    explanation="recording stays off after `no_grad` (always, or only if an exception ended the block)",
    hint="What runs when the block ends normally, and what runs when an exception ends it?",
    misconception="A `with` block can only end after its last line.",
    engine=only(_not_restored(True), _not_restored(False)),
    engine_operations=EVERYWHERE,
    behavior="no_grad",
)


def _switched_on_at_the_end() -> Plant:
    @contextmanager
    def plant() -> Iterator[None]:
        def leave(self: Any, *error: Any) -> None:
            grad_mode.state.mode = grad_mode.state.mode | grad_mode.RECORDING

        with patched(grad_mode.no_grad, {"__exit__": leave}):
            yield

    return plant


nested_no_grad_lost = Bug(
    name="nested_no_grad_lost",
    family=FAMILY,
    explanation="leaving an inner `no_grad` switches recording on although an outer one is still active",
    hint="What was the state before the inner block began? The end of the block has to restore it.",
    misconception="Leaving `no_grad` means switching recording on.",
    engine=only(_switched_on_at_the_end()),
    engine_operations=EVERYWHERE,
    behavior="no_grad",
)

BUGS = (
    non_leaf_gradient_kept,
    graph_not_freed,
    retain_graph_ignored,
    none_for_zero,
    zero_for_none,
    recording_left_on,
    recording_not_restored,
    nested_no_grad_lost,
)
