"""Edges: where a gradient goes.

The one idea to know: an edge leads to a node or, if that has several outputs, to one of them, an `OutputOf`. Both tell
under the same names which dtype and shape a gradient has that goes there, and `node_of` and `number_of` say what an
edge leads to: nobody else needs to know which of the two it is.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

Edge = Any
"""A node; of a node with several outputs, an `OutputOf`."""


class OutputOf(NamedTuple):
    """The edge to one output of a node that has several."""

    node: Any
    number: int

    @property
    def output_type(self) -> None:
        """None, as the output is an array and no NumPy scalar."""

    @property
    def array_shape(self) -> tuple[int, ...]:
        """The shape of that output, and so of its gradient."""
        return self.node.outputs[self.number][0]

    @property
    def array_dtype(self) -> np.dtype | None:
        """The dtype of that output, and so of its gradient."""
        return self.node.outputs[self.number][1]


NO_EDGE: Edge = OutputOf(None, 0)
"""The edge of an input that needs no gradient."""


def node_of(edge: Edge) -> Any:
    """The node to which an edge leads; None of NO_EDGE."""
    return edge.node if type(edge) is OutputOf else edge


def number_of(edge: Edge) -> int:
    """The number of the output to which an edge leads: 0, if the node has only one."""
    return edge.number if type(edge) is OutputOf else 0


def unpacked(edges: Edge | tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The edges of a node's inputs, as a tuple.

    A node whose first input alone has an edge keeps that edge by itself: without the tuple, a long chain takes a fifth
    less memory, and Python's garbage collector has less to look through.
    """
    return edges if type(edges) is tuple else (edges,)


class Written(int):
    """When an operation wrote its output into a view, and (weakly, as it leads to the operation's node) that view."""

    view: weakref.ref

    def __new__(cls, when: int, view: Any) -> Written:
        written = super().__new__(cls, when)
        written.view = weakref.ref(view)
        return written


def output_edge(node: Any) -> Edge:
    """Where the gradient of a node's saved output goes: to the node, or on the way on which the tensor's goes by now.

    That is another way if the output was written into a view: through the node that the view's base got thereby.
    """
    written = getattr(node, "changed_at", None)
    view = written.view() if isinstance(written, Written) else None
    return node if view is None else view.gradient_edge
