"""The graph explorer: a picture of a graph that is stepped forwards and backwards in the browser.

Python draws the picture and works out all steps once; the browser does the rest, so the widget is quick, needs no
network, and still works in an exported page whose kernel is gone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from mini_autograd.drawing import DRAWING_LIMIT, Graph, is_tensor, read_graph, render, summary, watching
from mini_autograd.drawing.folding import fold as folded_graph
from mini_autograd.drawing.folding import repeated_blocks
from mini_autograd.widgets.scripts import script
from mini_autograd.widgets.static import StaticPicture, with_static_picture
from mini_autograd.widgets.steps import details, factors, story

try:
    import anywidget
    import traitlets
except ImportError:  # without the widget library the still picture is shown
    anywidget = None  # type: ignore[assignment]

HERE = Path(__file__).parent
LARGE = 60
"""Above so many nodes, blocks that repeat are folded at first."""


def explore(
    output: Any,
    names: Mapping[str, Any] | None = None,
    *,
    direction: str = "right",
    gradient: Any = None,
    fold: bool | None = None,
    predict: bool = False,
) -> Any:
    """The graph behind `output` as an interactive picture; a still one where widgets are not installed.

    `output` is a student's MiniTensor, a tensor of ours, or a PyTorch tensor. Of the latter two it may also be a
    function without arguments that gives the tensor: then what it computes under `no_grad` is drawn too, marked as not
    recorded; a finished graph tells nothing of it. `names` maps labels to tensors; without it the variables of the
    calling cell are searched. `direction` is "right" or "down", `gradient` starts backward. `fold` says whether blocks
    that repeat, such as layers, start as one node each; large graphs do unless told not to.
    `predict` asks before each backward step what the nodes receive; answers stay in the notebook and are never graded.
    Raises GraphTooLargeError above 400 nodes and TypeError for an object without a graph.
    """
    if names is None:
        names = names_in(sys._getframe(1))
    trace = None
    if callable(output) and not is_tensor(output):
        with watching() as trace:
            output = output()
    graph = read_graph(output, names, limit=DRAWING_LIMIT, gradient=gradient, trace=trace)
    if anywidget is None:
        return StaticPicture(render(graph, direction=direction, replay=True), summary(graph, replay=True))
    return GraphExplorer(graph, direction, fold, predict)


def names_in(frame: Any) -> dict[str, Any]:
    """The tensors among the variables of a frame by their names, but none that begin with an underscore."""
    variables = {**frame.f_globals, **frame.f_locals}
    return {
        name: value
        for name, value in variables.items()
        if not name.startswith("_") and not isinstance(value, (type, ModuleType)) and is_tensor(value)
    }


if anywidget is not None:

    class GraphExplorer(anywidget.AnyWidget):
        """The widget. All traits are set once, but `step`, `predict` and `predictions` follow the reader."""

        _esm = script(HERE / "graph_explorer.js")
        _css = (HERE / "graph_explorer.css").read_text(encoding="utf-8")

        picture = traitlets.Unicode().tag(sync=True)
        steps: Any = traitlets.List().tag(sync=True)
        edges: Any = traitlets.List().tag(sync=True)
        details: Any = traitlets.List().tag(sync=True)
        step = traitlets.Int(0).tag(sync=True)
        foldable = traitlets.Bool(False).tag(sync=True)
        folded = traitlets.Bool(False).tag(sync=True)
        predict = traitlets.Bool(False).tag(sync=True)
        predictions: Any = traitlets.Dict().tag(sync=True)  # what the reader entered, by the number of the step
        own_id = traitlets.Unicode().tag(sync=True)

        def __init__(
            self, graph: Graph, direction: str = "right", folded: bool | None = None, predict: bool = False
        ) -> None:
            blocks = [] if any(node.kind == "unrecorded" for node in graph.nodes) else repeated_blocks(graph)
            self._graphs = {False: graph, True: folded_graph(graph, blocks) if blocks else graph}
            self._direction = direction
            if folded is None:
                folded = len(graph.nodes) > LARGE
            folded = folded and bool(blocks)
            shown = self._graphs[folded]
            self._still = StaticPicture(render(shown, direction=direction, replay=True), summary(graph, replay=True))
            super().__init__(foldable=bool(blocks), folded=folded, predict=predict, **self._drawn(folded))
            self.own_id = self.model_id
            self.observe(self._refold, "folded")

        def _drawn(self, folded: bool) -> dict[str, Any]:
            """Everything that the browser shows of the graph, folded or not."""
            graph = self._graphs[folded]
            return {
                "picture": render(graph, direction=self._direction, interactive=True, replay=True),
                "steps": [step.to_json() for step in story(graph)],
                "edges": [[edge.source, edge.target, factors(edge, graph)] for edge in graph.edges],
                "details": [details(node, graph) for node in graph.nodes],
            }

        def _refold(self, change: Any) -> None:
            drawn = self._drawn(change["new"])
            with self.hold_sync():
                self.step = 0 if self.step == 0 else len(drawn["steps"]) - 1
                self.predictions = {}  # the steps have other numbers now
                for name in ("steps", "edges", "details", "picture"):
                    setattr(self, name, drawn[name])

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            return with_static_picture(super()._repr_mimebundle_(**kwargs), self._still)
