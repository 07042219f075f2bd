"""Be the engine: the reader chooses which node sends its gradients next, and what it sends.

Python has the graphs and their pictures. The browser computes and plays (`be_the_engine.js`), and what has been chosen
is kept here, so that it is saved with the notebook.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mini_autograd.drawing import Graph, read_graph, render, summary
from mini_autograd.drawing.svg import title
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.tensor import Tensor
from mini_autograd.widgets.scripts import EVALUATOR, SET_BY_READERS, script
from mini_autograd.widgets.static import StaticPicture, with_static_picture

try:
    import anywidget
    import traitlets
except ImportError:  # without the widget library the still picture is shown
    anywidget = None  # type: ignore[assignment]

WIDGETS = Path(__file__).parents[1]


def chain() -> dict[str, Tensor]:
    x = tensor(2.0, requires_grad=True)
    u = x * 3
    v = u - 1
    return {"x": x, "u": u, "v": v, "y": v * 0.5}


def used_twice() -> dict[str, Tensor]:
    a, b = tensor(2.0, requires_grad=True), tensor(-3.0, requires_grad=True)
    s = a + b
    return {"a": a, "b": b, "s": s, "t": s * a}


def diamond() -> dict[str, Tensor]:
    c = tensor(2.0, requires_grad=True)
    d = c * 3
    p, q = d + 1, d * 0.5
    return {"c": c, "d": d, "p": p, "q": q, "r": p * q}


def shortcut() -> dict[str, Tensor]:
    e = tensor(1.0, requires_grad=True)
    f = e * 2
    g = f * 3
    h = g + f
    return {"e": e, "f": f, "g": g, "h": h, "k": h * f}


EXAMPLES: dict[str, Callable[[], dict[str, Tensor]]] = {
    "a chain": chain, "a leaf used twice": used_twice, "a diamond": diamond, "a shortcut": shortcut,
}  # fmt: skip
START = "a leaf used twice"
PRESETS = [["Too early", {"example_name": "a diamond", "moves": "r p d q"}]]


@functools.cache
def example(name: str) -> Graph:
    tensors = EXAMPLES[name]()
    return read_graph(list(tensors.values())[-1], tensors)


def told(name: str) -> dict[str, Any]:
    """A graph for the browser: its nodes, the numbers of its leaves, and pictures to the right and downward."""
    graph = example(name)
    nodes = [
        {"name": n.name, "kind": n.kind, "title": title(n), "operation": n.operation, "inputs": n.inputs}
        for n in graph.nodes
    ]
    pictures = [render(graph, direction=direction, interactive=True, replay=True) for direction in ("right", "down")]
    leaves = [None if node.inputs else float(node.value) for node in graph.nodes]  # type: ignore[arg-type]
    return {"name": name, "nodes": nodes, "leaves": leaves, "picture": pictures[0], "upright": pictures[1]}


def still(name: str) -> StaticPicture:
    """The finished picture, for pages without a kernel and for terminals."""
    return StaticPicture(render(example(name), replay=True), summary(example(name), replay=True))


def checked(example_name: str, moves: str) -> None:
    """Raises ValueError for a graph that is not there, or a move that is none."""
    if example_name not in EXAMPLES:
        raise ValueError(f"There is no graph {example_name!r}. The graphs are {', '.join(EXAMPLES)}.")
    operations = [node.name for node in example(example_name).nodes if node.kind == "operation"]
    seen = set()
    for part in moves.split():
        name, equals, number = part.partition("=")
        if name not in operations:
            raise ValueError(f"No operation is called {name!r}. The operations are {', '.join(operations)}.")
        if name in seen:
            raise ValueError(f"{name} has already sent its gradients. Each node sends once.")
        seen.add(name)
        try:
            float(number if equals else 0)
        except ValueError:
            raise ValueError(f"{part!r} is not a move. Write a node, or a node and what it sends: v=0.5") from None


if anywidget is not None:

    class EngineGame(anywidget.AnyWidget):
        """The live demo. The reader sets `example_name` and `moves`; the browser does the rest."""

        _esm = script(EVALUATOR, WIDGETS / "be_the_engine.js")
        _css = (WIDGETS / "graph_explorer.css").read_text(encoding="utf-8")

        title = traitlets.Unicode("Be the engine").tag(sync=True)
        graphs: Any = traitlets.List().tag(sync=True)
        presets: Any = traitlets.List(PRESETS).tag(sync=True)
        example_name = traitlets.Unicode().tag(**SET_BY_READERS)
        moves = traitlets.Unicode().tag(**SET_BY_READERS)
        own_id = traitlets.Unicode().tag(sync=True)

        def __init__(self, example_name: str, moves: str) -> None:
            super().__init__(graphs=[told(name) for name in EXAMPLES], example_name=example_name, moves=moves)
            self.own_id = self.model_id

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            return with_static_picture(super()._repr_mimebundle_(**kwargs), still(self.example_name))


def be_the_engine(example_name: str = START, moves: str = "") -> Any:
    """The demo: the reader sends the gradients back. Which node is next, and what does it send?

    `example_name` is one of the graphs, `moves` the moves made so far, such as "t s=2". Raises ValueError for others.
    """
    checked(example_name, moves)
    return still(example_name) if anywidget is None else EngineGame(example_name, moves)
