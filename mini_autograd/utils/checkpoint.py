"""`checkpoint`: recompute a part of the forward pass in the backward pass, instead of keeping what it saves.

The one idea to know: saved-tensor hooks put a number in place of each saved tensor. When the first of them is asked
for, the function runs again, and other hooks collect what it saves. `Reentrant` is PyTorch's older implementation: one
node for the whole function, which starts its own backward pass. Griewank 1992 shows where to cut a chain and what it
costs; for networks, see Chen and others 2016.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from mini_autograd.autograd.function import Function
from mini_autograd.graph import function as graph
from mini_autograd.graph.grad_mode import enable_grad, state
from mini_autograd.graph.hooks import saved_tensors_hooks
from mini_autograd.tensors import gradients
from mini_autograd.tensors.random import get_rng_state, set_rng_state

UNSAID = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
    "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
    "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)
ONLY_BACKWARD = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
    ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing "
    "the `inputs` argument."
)
OTHER_NUMBER = (
    "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
    "Number of tensors saved during forward: {first}\nNumber of tensors saved during recomputation: {again}."
)
OTHER_SHAPES = (
    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
    "forward pass."
)


class CheckpointError(RuntimeError):
    """The function did something different in its second run."""


class _EnoughError(Exception):
    """Everything that was saved has been computed again."""


class Frame:
    """One call of `checkpoint`: how to run it again, and what it saved."""

    def __init__(self, run: Callable[[], Any], early_stop: bool) -> None:
        self.run, self.early_stop = run, early_stop
        self.metadata: list[tuple] = []
        self.recomputed: list[Any] | None = None
        self.left = 0

    def pack(self, tensor: Any) -> int:
        """Keep the position of a saved tensor instead of the tensor."""
        self.metadata.append((tensor.shape, tensor.dtype))
        return len(self.metadata) - 1

    def unpack(self, number: int) -> Any:
        """The saved tensor, from the second run. After the last one, the results of that run are freed.

        Raises CheckpointError if its shape or dtype differs from the first run.
        """
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
        """Run the function again, and collect what it saves.

        Raises CheckpointError if the number of tensors differs from the first run.
        """
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


@contextlib.contextmanager
def random_numbers_from(before: Any) -> Iterator[None]:
    """Context in which random numbers continue from the state `before`; on exit, the state from entry is restored.

    If `before` is None, nothing changes.
    """
    if before is None:
        yield
        return
    after = get_rng_state()
    set_rng_state(before)
    try:
        yield
    finally:
        set_rng_state(after)


class Reentrant(Function):
    """A whole function as one node: it runs unrecorded, and again, recorded, in the backward pass."""

    torch_name = "CheckpointFunctionBackward"

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        ctx.function, ctx.before = function, get_rng_state() if preserve_rng_state else None
        ctx.others = [None if isinstance(x, graph.Tensor) else x for x in args]
        ctx.tensors = [number for number, x in enumerate(args) if isinstance(x, graph.Tensor)]
        ctx.save_for_backward(*(args[number] for number in ctx.tensors))
        return function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if state.only_some_wanted:
            raise RuntimeError(ONLY_BACKWARD)
        arguments = list(ctx.others)
        for number, tensor in zip(ctx.tensors, ctx.saved_tensors, strict=True):
            arguments[number] = tensor.detach().requires_grad_(tensor.requires_grad)
        with enable_grad(), random_numbers_from(ctx.before):
            outputs = ctx.function(*arguments)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=True)
            if isinstance(output, graph.Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        gradients.backward([output for output, _ in pairs], [grad for _, grad in pairs])
        return None, None, *(getattr(x, "grad", None) if isinstance(x, graph.Tensor) else None for x in arguments)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, saving nothing but the arguments; the function runs again in the backward pass.

    `use_reentrant`: False is recommended. True, PyTorch's default, is the older implementation, which takes no keyword
    arguments, needs an argument that requires grad, and works only with `.backward()`. With `preserve_rng_state`,
    random numbers are the same in the second run. Calls may be nested.

    Raises ValueError for keyword arguments with `use_reentrant=True`, which passes none on. If the second run saves
    different tensors, the backward pass raises CheckpointError.
    """
    if use_reentrant is None:
        warnings.warn(UNSAID, UserWarning, stacklevel=2)
        use_reentrant = True
    if not use_reentrant:
        return recorded_again(function, args, kwargs, preserve_rng_state, early_stop)
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    if not any(isinstance(x, graph.Tensor) and x.requires_grad for x in args):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=2)
    return Reentrant.apply(function, preserve_rng_state, *args)


def recorded_again(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], preserve_rng_state: bool, early_stop: bool
) -> Any:
    """`checkpoint` with saved-tensor hooks: the graph is the function's own, but no tensors are kept in it.

    If an argument is changed in place before the backward pass, that pass raises RuntimeError.
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
        with random_numbers_from(before):
            function(*arguments, **kwargs)

    frame = Frame(run_again, early_stop)
    with saved_tensors_hooks(frame.pack, frame.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **kwargs: Any) -> Any:
    """Run a chain of functions (or a Sequential) in `segments` segments, of which all but the last are checkpointed."""
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
