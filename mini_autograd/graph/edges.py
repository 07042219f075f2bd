"""Edges: where a gradient goes.

The one idea to know: an edge is a node or, if the node has several outputs, an `OutputOf` for one of them. Both give
the dtype and shape of the gradient under the same names. `node_of` and `number_of` tell where an edge leads, so other
code need not know which of the two it is.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

Edge = Any
"""A node, or an `OutputOf` if the node has several outputs."""


class OutputOf(NamedTuple):
    """The edge to one output of a node that has several."""

    node: Any
    number: int

    @property
    def output_type(self) -> None:
        """None: the output is an array, not a NumPy scalar."""

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
    """The node to which an edge leads; None for NO_EDGE."""
    return edge.node if type(edge) is OutputOf else edge


def number_of(edge: Edge) -> int:
    """The number of the output to which an edge leads: 0 if the node has only one."""
    return edge.number if type(edge) is OutputOf else 0


def unpacked(edges: Edge | tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The edges of a node's inputs, as a tuple.

    If only a node's first input has an edge, the node stores that edge without a tuple. A long chain then takes a fifth
    less memory, and Python's garbage collector has less to scan.
    """
    return edges if type(edges) is tuple else (edges,)


class Written(int):
    """When an operation wrote its output into a view, with a weak reference to the view, which leads to the node."""

    view: weakref.ref

    def __new__(cls, when: int, view: Any) -> Written:
        written = super().__new__(cls, when)
        written.view = weakref.ref(view)
        return written


def output_edge(node: Any) -> Edge:
    """Where the gradient of a node's saved output goes: to the node or, if written into a view, along the view's edge.

    That edge leads through the node that the base of the view got from the write.
    """
    written = getattr(node, "changed_at", None)
    view = written.view() if isinstance(written, Written) else None
    return node if view is None else view.gradient_edge
