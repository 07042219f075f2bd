"""`checkpoint`: do not keep what a part of the forward pass saves, but compute that part again in the backward pass.

Imports hooks, grad_mode, function and random. The one idea to know: saved-tensor hooks put a number in the place of
each saved tensor. When the first of them is asked for, the function runs again, and other hooks collect what it saves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mini_autograd import function as graph
from mini_autograd.grad_mode import enable_grad
from mini_autograd.hooks import saved_tensors_hooks
from mini_autograd.random import get_rng_state, set_rng_state

OTHER_NUMBER = (
    "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
    "Number of tensors saved during forward: {first}\nNumber of tensors saved during recomputation: {again}."
)
OTHER_SHAPES = (
    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
    "forward pass."
)


class CheckpointError(RuntimeError):
    """The function did not do the same the second time."""


class _EnoughError(Exception):
    """All that was saved has been computed again."""


class Frame:
    """One call of `checkpoint`: how to run it again, and what it saved."""

    def __init__(self, run: Callable[[], Any], early_stop: bool) -> None:
        self.run, self.early_stop = run, early_stop
        self.metadata: list[tuple] = []
        self.recomputed: list[Any] | None = None
        self.left = 0

    def pack(self, tensor: Any) -> int:
        """Keep the place of a saved tensor, and not the tensor."""
        self.metadata.append((tensor.shape, tensor.dtype))
        return len(self.metadata) - 1

    def unpack(self, number: int) -> Any:
        """The saved tensor, from the second run; the last one asked for ends what that run gave."""
        if self.recomputed is None:
            self.recompute()
        assert self.recomputed is not None
        tensor = self.recomputed[number]
        if (tensor.shape, tensor.dtype) != self.metadata[number]:
            raise CheckpointError(OTHER_SHAPES)
        self.left -= 1
        if self.left == 0:
            self.recomputed = None
        return tensor

    def recompute(self) -> None:
        """Run the function again, and collect what it saves."""
        collected: list[Any] = []

        def collect(tensor: Any) -> Any:
            collected.append(tensor.detach())
            if self.early_stop and len(collected) == len(self.metadata):
                raise _EnoughError
            return collected[-1]

        try:
            with enable_grad(), saved_tensors_hooks(collect, lambda tensor: tensor):
                self.run()
        except _EnoughError:
            pass
        if len(collected) != len(self.metadata):
            raise CheckpointError(OTHER_NUMBER.format(first=len(self.metadata), again=len(collected)))
        self.recomputed, self.left = collected, len(collected)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, of which nothing is saved but the arguments; it runs again in the backward pass.

    Both values of `use_reentrant` do what PyTorch recommends (False). `preserve_rng_state`: random numbers are the same
    the second time. Calls may be nested.
    """
    before = get_rng_state() if preserve_rng_state else None
    arguments = [x.detach().requires_grad_(x.requires_grad) if isinstance(x, graph.Tensor) else x for x in args]
    versions = [(x, x.version[0]) for x in args if isinstance(x, graph.Tensor) and x.version is not None]

    def run_again() -> None:
        for tensor, expected in versions:
            if tensor.version[0] != expected:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"an argument of checkpoint is at version {tensor.version[0]}; expected version {expected} instead."
                )
        after = get_rng_state() if preserve_rng_state else None
        if preserve_rng_state:
            set_rng_state(before)
        try:
            function(*arguments, **kwargs)
        finally:
            if preserve_rng_state:
                set_rng_state(after)

    frame = Frame(run_again, early_stop)
    with saved_tensors_hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **kwargs: Any) -> Any:
    """Run a chain of functions (or a Sequential) in so many checkpointed segments; the last one is not checkpointed."""
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments

    def segment(start: int, stop: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for function in functions[start:stop]:
                x = function(x)
            return x

        return run

    last = size * (segments - 1)
    for start in range(0, last, size):
        input = checkpoint(segment(start, start + size), input, **kwargs)
    return segment(last, len(functions))(input)
