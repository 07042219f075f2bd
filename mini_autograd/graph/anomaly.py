"""Anomaly detection: find the forward call of the operation whose backward failed or returned nan.

While it is on, every node records the stack of its creation.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from mini_autograd.graph import function as graph
from mini_autograd.graph.edges import NO_EDGE
from mini_autograd.graph.grad_mode import state
from mini_autograd.graph.hooks import Watcher
from mini_autograd.graph.versions import check_saved
from mini_autograd.numerics.arrays import holds

PACKAGE = str(Path(__file__).parents[1])
ENABLED = (
    "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging."
)
UNKNOWN = (
    "Error detected in {name}. No forward pass information available. Enable detect anomaly during forward pass for "
    "more information."
)


class detect_anomaly(Watcher):  # noqa: N801  (PyTorch's name)
    """Context in which an error in a backward rule shows the traceback of the forward call.

    With `check_nan`, a nan in a gradient is an error.
    """

    is_anomaly = True

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(ENABLED, stacklevel=2)

    def node_was_recorded(self, node: Any) -> None:
        import traceback  # here because the mode is rare: it would add half a millisecond to importing the engine

        stack = traceback.extract_stack()
        while stack and stack[-1].filename.startswith(PACKAGE):  # end at the user's call, not inside the engine
            stack.pop()
        node.metadata["traceback_"] = traceback.format_list(stack)


class set_detect_anomaly(detect_anomaly):  # noqa: N801  (PyTorch's name)
    """Switch anomaly detection on or off when called; as a context manager, switch it back on exit."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.mode, self.check_nan = mode, check_nan
        super().__enter__()
        if not mode:
            self.switch_off()

    def switch_off(self) -> None:
        """Remove anomaly detection and keep the other watchers."""
        state.watchers = tuple(watcher for watcher in state.watchers if not getattr(watcher, "is_anomaly", False))
        if not state.watchers:
            super().__exit__()
            state.watchers = ()

    def __enter__(self) -> None:
        pass


def active() -> Any:
    """The anomaly detection that is on in this thread, or None."""
    found = [watcher for watcher in state.watchers if getattr(watcher, "is_anomaly", False)]
    return found[-1] if found else None


def watched_gradients(node: Any, arrived: Any, create_graph: bool, check_nan: bool, changed: bool) -> Any:
    """Run a node's rule; if it fails, returns nan or needs a value that has changed, show where the node was made.

    `changed`: whether anything was changed in place after the node was made.
    """
    try:
        if changed:
            check_saved(node)
        grads = node.input_gradients(arrived, create_graph)
        for number, grad in enumerate(grads) if check_nan else ():
            if grad is not None and node.inputs[number] is not NO_EDGE and has_nan(grad):
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")
    except Exception:
        show_origin(node)
        raise
    return grads


def show_origin(node: Any) -> None:
    """Warn with the traceback of the forward call."""
    stack = node.metadata.get("traceback_")
    text = UNKNOWN.format(name=node.name())
    if stack is not None:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}"
    warnings.warn(text, UserWarning, stacklevel=2)


def has_nan(grad: Any) -> bool:
    """Whether a gradient, array or Tensor, has a nan."""
    return holds(np.isnan(graph.as_array(grad) if isinstance(grad, graph.Tensor) else grad).any())
