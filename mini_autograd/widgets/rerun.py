"""Computes a graph again on the engine that it came from: with other values of its leaves, or for a new expression.

The engine itself computes, never a copy of its rules, so a student's mistake stays in the picture.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from mini_autograd.drawing import DRAWING_LIMIT, Graph, is_tensor, read_graph, watching
from mini_autograd.drawing.formatting import OPERATORS, numpy_function, short
from mini_autograd.drawing.graph import Node, is_scalar
from mini_autograd.widgets.expressions import NO_GRAD, ExpressionError, computed, names_used, parsed

METHODS = {"mean", "relu", "rsqrt", "sigmoid", "sum"}
"""Operations without options that change numbers, and NumPy's functions of single numbers are such, too: a graph holds
the name of an operation, but not its options."""

EDITABLE = 60
"""Graphs with more nodes are not computed again: a reader would have to wait, and could not follow."""

Value = float | list
STARTS = (2.0, -3.0, 1.0, 0.5)
"""Starting values for names that are new in a reader's expression."""


class Engine:
    """Makes leaves for the engine of a given tensor, without keeping that tensor's graph alive."""

    def __init__(self, tensor: Any) -> None:
        self.is_student_s = not hasattr(tensor, "new_tensor")
        self._type = type(tensor)
        self._options = {"requires_grad": True} if hasattr(tensor, "requires_grad") else {}
        self._like = None if self.is_student_s else tensor.new_tensor(0.0)

    def leaf(self, value: Value) -> Any:
        """A tensor that requires a gradient. Raises whatever the engine raises."""
        if self._like is not None:
            return self._like.new_tensor(value, requires_grad=True)
        return self._type(np.array(value) if isinstance(value, list) else value, **self._options)

    def constant(self, value: Any) -> Any:
        """A constant as operations take it: an array becomes a tensor, unless the engine is a student's."""
        if is_scalar(value) or self._like is None:
            return value
        return self._like.new_tensor(value)

    def no_grad(self) -> AbstractContextManager[Any]:
        """The engine's `no_grad`. Raises ExpressionError if none can be found."""
        package = sys.modules.get(self._type.__module__.partition(".")[0])
        if self._like is None or not hasattr(package, NO_GRAD):
            raise ExpressionError(f"This engine has no {NO_GRAD} that can be used here.")
        return getattr(package, NO_GRAD)()


class Workbench:
    """A graph whose numbers a reader can change, or which an expression of the reader's replaces.

    `graph` was computed last, from `expression` ("": the output given to `explore`); `values` are the values of its
    names.
    """

    def __init__(self, graph: Graph, engine: Engine, gradient: Any = None) -> None:
        self.graph, self.engine, self.gradient = graph, engine, gradient
        self.expression = ""
        self.values: dict[str, Value] = dict(_settable(graph, engine, gradient))

    @property
    def numbers(self) -> dict[str, float]:
        """The values that are single numbers: a reader can drag these."""
        return {name: value for name, value in self.values.items() if not isinstance(value, list)}

    def compute(self, expression: str, values: Mapping[str, Value]) -> None:
        """Compute an expression ("": the graph as it is) with these values; other names keep theirs.

        Raises ExpressionError, with a message for readers, if the text is not an expression or the engine refuses it;
        then nothing has changed.
        """
        wanted = {**self.values, **values}
        try:
            with np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):  # a student's engine may print
                if expression:
                    graph, wanted = _of_expression(expression, self.engine, wanted)
                else:
                    graph = _with_values(self.graph, self.engine, wanted, self.gradient)
        except ExpressionError:
            raise
        except Exception as error:  # whatever the engine raises
            raise ExpressionError(f"The engine refuses this: {type(error).__name__}: {error}") from error
        self.graph, self.expression, self.values = graph, expression, wanted


def _settable(graph: Graph, engine: Engine, gradient: Any) -> dict[str, float]:
    """The named numbers among the leaves, with their values, if the engine computes the same graph again from them.

    Empty if it does not: an operation is unknown here, or takes options that a graph does not hold.
    """
    found = [node for node in graph.nodes if node.kind == "leaf" and is_scalar(node.value)]
    values = {node.name: _as_written(float(node.value)) for node in found if node.name != short(node.value)}  # type: ignore[arg-type]
    if not values or len(graph.nodes) > EDITABLE:
        return {}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return values if _alike(graph, _with_values(graph, engine, values, gradient)) else {}
    except Exception:  # a student's engine may fail in any way; the picture then stays as it is
        return {}


def _as_written(number: float) -> float:
    """A number that float32 can hold, with its shortest digits: 0.9 instead of 0.8999999761581421."""
    with np.errstate(over="ignore"):
        narrow = np.float32(number)
    return float(str(narrow)) if float(narrow) == number else number


def _with_values(graph: Graph, engine: Engine, values: Mapping[str, Value], gradient: Any) -> Graph:
    """The graph of the same operations on other values. Its constants stay as they are."""
    tensors: list[Any] = []
    for node in graph.nodes:
        tensors.append(_tensor(node, [tensors[source] for source in node.inputs], engine, values))
    names = {node.name: item for node, item in zip(graph.nodes, tensors, strict=True) if is_tensor(item)}
    return _without_stored(read_graph(tensors[-1], names, limit=DRAWING_LIMIT, gradient=gradient))


def _tensor(node: Node, inputs: Sequence[Any], engine: Engine, values: Mapping[str, Value]) -> Any:
    if node.kind == "operation":
        return operation_of(node, inputs)
    value = values.get(node.name, node.value)
    if value is None or node.kind == "unrecorded":
        raise ValueError(f"the value of {node.name} is not known")
    if node.kind == "constant":
        return engine.constant(value)
    return engine.leaf(value.tolist() if isinstance(value, np.ndarray) else value)


def operation_of(node: Node, inputs: Sequence[Any]) -> Any:
    """The result of a node's operation on these tensors. Raises ValueError if a graph does not hold its options."""
    if node.operation in OPERATORS:
        return OPERATORS[node.operation](*inputs)
    if node.operation.startswith("**"):
        exponent = float(node.operation[2:])
        return inputs[0] ** (int(exponent) if exponent.is_integer() else exponent)
    if node.operation not in METHODS and numpy_function(node.operation) is None:
        raise ValueError(f"{node.operation} may have options that are not known")
    return getattr(inputs[0], node.operation)(*inputs[1:])


def _alike(first: Graph, second: Graph) -> bool:
    """Whether two graphs have the same nodes, values and gradients."""
    if len(first.nodes) != len(second.nodes):
        return False
    return all(
        (one.kind, one.operation, one.inputs) == (other.kind, other.operation, other.inputs)
        and _close(one.value, other.value)
        and _close(one.incoming, other.incoming)
        for one, other in zip(first.nodes, second.nodes, strict=True)
    )


def _close(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, rtol=1e-5, atol=1e-8, equal_nan=True))


def _of_expression(text: str, engine: Engine, values: Mapping[str, Value]) -> tuple[Graph, dict[str, Value]]:
    """The graph of an expression, and the values of its names: those given, and a starting value for each new name."""
    tree = parsed(text)
    names = names_used(tree)
    starts = itertools.cycle(STARTS)
    used = {name: values[name] if name in values else next(starts) for name in names}
    with watching() as trace:
        tensors = {name: engine.leaf(value) for name, value in used.items()}
        output = computed(tree, tensors, engine.no_grad)
    if not is_tensor(output):
        raise ExpressionError("The result is not a tensor. Use at least one name, such as a.")
    return _without_stored(read_graph(output, tensors, limit=DRAWING_LIMIT, trace=trace)), used


def _without_stored(graph: Graph) -> Graph:
    """The graph without stored `.grad`: its tensors were made for the picture, and nobody ran backward on them."""
    return Graph(tuple(replace(node, stored=None) for node in graph.nodes), graph.edges)
