"""Operations that leave no trace in a graph, because they run under `no_grad`: watched while they run.

    with watching() as trace:
        with no_grad():
            target = w * x
        loss = (w * x - target) ** 2
    read_graph(loss, trace=trace)

A watch sees the calls of our own engine, which tells its watchers, and of PyTorch, if it has been imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from mini_autograd.graph.grad_mode import WATCHED, state


@dataclass(frozen=True, eq=False)
class Call:
    """One operation: its inputs and its output. `node` is its node in the graph, or None if it has none."""

    name: str
    inputs: tuple[Any, ...]
    output: Any
    node: Any


class CallTrace:
    """The calls of a watch. It keeps nodes and tensors alive, so that their identities stay valid."""

    def __init__(self) -> None:
        self._by_node: dict[int, Call] = {}
        self._by_output: dict[int, Call] = {}

    def saw(self, name: str, inputs: Sequence[Any], output: Any) -> None:
        """Keep a call whose result is a tensor, unless it returned its own input, which is nothing new."""
        if not _is_tensor(output) or not any(map(_is_tensor, inputs)) or any(item is output for item in inputs):
            return
        call = Call(name, tuple(inputs), output, output.grad_fn)
        if call.node is not None:
            self._by_node[id(call.node)] = call
        elif not output.requires_grad:
            self._by_output[id(output)] = call

    def node_was_recorded(self, node: Any) -> None:
        """Do nothing: `saw` gets all that is needed."""

    def input_of(self, node: Any, position: int) -> Any:
        """The tensor that the call behind a node was given at a position; None if it is not known."""
        call = self._by_node.get(id(node))
        if call is None or len(call.inputs) != len(node.next_functions):
            return None
        return call.inputs[position] if _is_tensor(call.inputs[position]) else None

    def maker_of(self, tensor: Any) -> Call | None:
        """The unrecorded call that made a tensor."""
        return self._by_output.get(id(tensor))


@contextmanager
def watching() -> Iterator[CallTrace]:
    """Context in which every operation is noted."""
    trace = CallTrace()
    before = state.watchers, state.mode & WATCHED
    with ExitStack() as stack:
        torch = sys.modules.get("torch")
        if hasattr(torch, "overrides"):  # else there is no PyTorch, or this engine stands in for it
            stack.enter_context(_torch_watch(torch, trace))
        state.watchers, state.mode = (*state.watchers, trace), state.mode | WATCHED
        try:
            yield trace
        finally:
            state.watchers, watched = before
            state.mode = state.mode & ~WATCHED | watched


def _torch_watch(torch: Any, trace: CallTrace) -> Any:
    class TorchWatch(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, arguments: tuple = (), options: dict | None = None
        ) -> Any:
            result = function(*arguments, **(options or {}))
            name = getattr(function, "__name__", "?").strip("_")
            trace.saw("view" if name == "get" else name, arguments, result)  # `get` reads an attribute, such as .T
            return result

    return TorchWatch()


def _is_tensor(candidate: Any) -> bool:
    return hasattr(candidate, "grad_fn") and hasattr(candidate, "requires_grad")
