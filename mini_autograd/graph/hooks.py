"""Hooks: functions that see the gradients of a tensor, or the tensors that a graph saves.

The one idea to know: a hook of a tensor is attached to the node that made the tensor, so a hook registered before an
in-place operation acts on the old value, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mini_autograd.graph import function as graph
from mini_autograd.graph.edges import NO_EDGE
from mini_autograd.graph.function import AFTER, BEFORE, CONSTANT, OUTPUT
from mini_autograd.graph.grad_mode import WATCHED, no_grad, state
from mini_autograd.graph.versions import is_unneeded
from mini_autograd.numerics.arrays import dtype_name

LEFT = (
    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was originally "
    "recorded."
)


def run(node: Any, arrived: list[Any]) -> None:
    """Call the hooks of the outputs with their complete gradients. A hook that returns something replaces the gradient.

    If one of several outputs got no gradient, its hooks are called with None; those that retain it are skipped.
    """
    entries = sorted(node.hooks.items(), key=lambda entry: isinstance(entry[0], tuple))
    for key, (number, hook) in entries:
        if number < 0 or (arrived[number] is None and isinstance(key, tuple)):
            continue
        grad = arrived[number]
        given = shown(grad)
        result = hook(given)
        if result is not None:
            check_replacement(result, given, hook)
            arrived[number] = result if given is grad else result.array


def run_before(node: Any, arrived: list[Any]) -> list[Any]:
    """The gradients of the outputs, after the hooks registered with `register_prehook`."""
    for number, hook in list(node.hooks.values()):
        if number == BEFORE:
            given = tuple(map(shown, arrived))
            arrived = replaced(hook(given), given, arrived, hook)
    return arrived


def run_after(node: Any, grads: Any, arrived: list[Any], fit: Callable) -> Any:
    """The gradients of the inputs, after the hooks registered with `register_hook`.

    Hooks see them as they will be sent on: `fit` undoes broadcasting.
    """
    after = [hook for number, hook in node.hooks.values() if number == AFTER]
    if not after:
        return grads
    outputs = tuple(map(shown, arrived))
    fitted = [
        grad if grad is None or edge is NO_EDGE else fit(grad, node, edge)
        for grad, edge in zip(grads, node.inputs, strict=True)
    ]
    for hook in after:
        given = tuple(map(shown, fitted))
        fitted = replaced(hook(given, outputs), given, fitted, hook)
    return tuple(fitted)


def shown(grad: Any) -> Any:
    """A gradient as hooks see it: a Tensor, or None."""
    return grad if grad is None or isinstance(grad, graph.Tensor) else graph.tensor_of(grad)


def replaced(results: Any, given: tuple, before: list[Any], hook: Callable) -> list[Any]:
    """Several gradients after a node's hook: a tuple replaces them, None keeps them. Raises PyTorch's errors."""
    if results is None:
        return before
    if not isinstance(results, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(results).__name__}'")
    if len(results) != len(given):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values (got {len(results)}, but expected "
            f"{len(given)})"
        )
    for result, grad in zip(results, given, strict=True):
        if result is not None:
            check_replacement(result, grad, hook)
    recorded = any(isinstance(grad, graph.Tensor) for grad in before)
    return [result if result is None or recorded else result.array for result in results]


def hook_name(hook: Callable) -> str:
    """The name of a hook in error texts."""
    return getattr(hook, "__name__", repr(hook))


def check_replacement(result: Any, given: Any, hook: Callable) -> None:
    """Raise PyTorch's error if a hook returned something that cannot replace the gradient."""
    if given is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(result, graph.Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if result.dtype != given.dtype:
        was, got = (f"torch.{dtype_name(x.dtype)}Tensor" for x in (given, result))
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the type of value (was {was} got {got})")
    if result.shape != given.shape:
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the size of value")


class Watcher:
    """A context manager that is told of every node recorded inside."""

    def node_was_recorded(self, node: Any) -> None:
        """Called when a node is complete."""

    def __enter__(self) -> Any:
        self._before = state.watchers, state.mode & WATCHED
        state.watchers = (*state.watchers, self)
        state.mode |= WATCHED
        return None

    def __exit__(self, *error: object) -> None:
        state.watchers, watched = self._before
        state.mode = state.mode & ~WATCHED | watched


class Packed:
    """Takes the place of saved tensors: unpacking it calls the unpack hook on what was packed."""

    def __init__(self, values: list[Any], unpack: Callable) -> None:
        self.values, self.unpack = values, unpack

    def __iter__(self) -> Any:
        return iter([self._unpacked(packed, value) for packed, value in self.values])

    def _unpacked(self, packed: bool, value: Any) -> Any:
        if not packed:
            return value
        tensor = self.unpack(value)
        if not isinstance(tensor, graph.Tensor):
            kind = type(tensor).__name__
            raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {kind}")
        return tensor.array


class saved_tensors_hooks(Watcher):  # noqa: N801  (PyTorch's name)
    """Context in which saved tensors go through `pack_hook(tensor)`, and come back through `unpack_hook(packed)`.

    Of several nested contexts, only the innermost applies. In-place changes of packed tensors go unnoticed.
    """

    def __init__(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def node_was_recorded(self, node: Any) -> None:
        innermost = [watcher for watcher in state.watchers if isinstance(watcher, saved_tensors_hooks)][-1]
        if innermost is not self or not node.saved_tensors:
            return
        values = []
        with no_grad():  # what a hook computes is not recorded, so it is not packed in turn
            for value, origin in zip(node.saved_tensors, node.origins, strict=True):
                packs = hasattr(value, "__array__") and not (origin >= 0 and is_unneeded(node, origin))
                values.append((packs, self.pack(node, value, origin) if packs else value))
        node.saved_tensors = Packed(values, self.unpack_hook)
        node.origins = tuple(graph.COPY - n if n >= 0 else n for n in node.origins)

    def pack(self, node: Any, value: Any, origin: int) -> Any:
        """A saved value, packed by the hook. An input is passed with its history, an output without, to avoid cycles.

        Raises RuntimeError if the hook changes it in place.
        """
        if isinstance(value, graph.Tensor):
            return self.pack_hook(value)
        edge = NO_EDGE if origin in (OUTPUT, CONSTANT) else node.inputs[origin]
        with_history = graph.tensor_of(value, edge)
        version = with_history.version
        packed = self.pack_hook(with_history)
        if version is not None and version[0]:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
                "cannot be modified by in-place operations as this can lead to unexpected side-effects. Please open "
                "an issue if you need to perform in-place operations on the input to a pack hook."
            )
        return packed


class save_on_cpu(saved_tensors_hooks):  # noqa: N801  (PyTorch's name)
    """Context in which saved tensors are kept as copies. They stay on the tensor's device: nothing moves to the CPU."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: tensor.detach().clone(), lambda tensor: tensor)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):  # noqa: N801  (PyTorch's name)
    """Context in which saved tensors may be changed in place; gradients are computed from the values that were saved.

    PyTorch copies a tensor when it is changed, this engine when it is saved. The backward pass must run inside too.
    """

    copies = True  # indices and masks are copied too, so `note_needed` need not watch them

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.detach().clone(), self.unpacked)
        self.inside = False

    def unpacked(self, tensor: Any) -> Any:
        """The packed tensor. Raises AssertionError if the context has been left."""
        if not self.inside:
            raise AssertionError(LEFT)
        return tensor

    def node_was_recorded(self, node: Any) -> None:
        super().node_was_recorded(node)
        for name in ("index", "condition"):
            if hasattr(node, name):
                setattr(node, name, copied(getattr(node, name)))

    def __enter__(self) -> Any:
        if any(isinstance(watcher, allow_mutation_on_saved_tensors) for watcher in state.watchers):
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        self.inside = True
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        self.inside = False
        super().__exit__(*error)


def copied(index: Any) -> Any:
    """An index whose arrays are copied."""
    if isinstance(index, tuple):
        return tuple([copied(part) for part in index])
    return index.copy() if hasattr(index, "__array__") else index
