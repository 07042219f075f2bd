"""The graph explorer: a picture of a graph that a reader steps forward and backward in the browser.

Python draws the picture and computes all steps once; the browser does the rest, so the widget is quick, needs no
network, and still works in an exported page whose kernel is gone. A reader can change the numbers of the leaves, and
with a kernel, type other expressions. The engine that made the graph computes them (see `rerun`). In a graph of numbers
the browser answers first, within a frame, if its own rules agree with the engine at the last numbers from there.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from mini_autograd.drawing import DRAWING_LIMIT, Graph, is_tensor, read_graph, render, summary, watching
from mini_autograd.drawing.folding import fold as folded_graph
from mini_autograd.drawing.folding import repeated_blocks
from mini_autograd.drawing.svg import value_text
from mini_autograd.tensors.creation import tensor
from mini_autograd.widgets.faults import faults_of
from mini_autograd.widgets.rerun import EDITABLE, Engine, Value, Workbench
from mini_autograd.widgets.scripts import EVALUATOR, SET_BY_READERS, in_words, script
from mini_autograd.widgets.static import StaticPicture, with_static_picture
from mini_autograd.widgets.steps import details, factors, numbers_of, story, with_places

try:
    import anywidget
    import traitlets
except ImportError:  # without the widget library the still picture is shown
    anywidget = None  # type: ignore[assignment]

HERE = Path(__file__).parent
serial = itertools.count()
LARGE = 60
"""In graphs with more nodes than this, repeated blocks start folded."""
STANDS = 20
"""Graphs with at most so many nodes are also drawn from top to bottom, for a narrow page."""

EXAMPLES: dict[str, tuple[str, dict[str, Value]]] = {
    "a chain": ("(2 * a).tanh().exp()", {"a": 0.25}),
    "one input used twice": ("a * b + a", {"a": 2.0, "b": -3.0}),
    "a diamond": ("(a + b) * (a - b)", {"a": 3.0, "b": 2.0}),
    "a neuron": ("(w1 * x1 + w2 * x2 + b).tanh()", {"w1": -1.0, "x1": 2.0, "w2": 1.0, "x2": 0.5, "b": 1.0}),
    "a row stretched over a matrix": (
        "(x + b).sum()",
        {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "b": [1.0, 0.0, -1.0]},
    ),
    "softmax": ("(x.exp() / x.exp().sum())[0]", {"x": [1.0, 2.0, 0.0]}),
    "an in-place operation": ("(a * b).add_(a).tanh()", {"a": 0.5, "b": -2.0}),
    "under no_grad": ("(w * x - no_grad(w * x + 1)) ** 2", {"w": 3.0, "x": 2.0}),
}
"""Expressions for our own engine and PyTorch, with their starting values."""


def explore(
    output: Any,
    names: Mapping[str, Any] | None = None,
    *,
    direction: str = "right",
    gradient: Any = None,
    fold: bool | None = None,
    predict: bool = False,
) -> Any:
    """The graph of `output` as an interactive picture, or as a still one if widgets are not installed.

    `output` is a student's MiniTensor, a tensor of ours or of PyTorch, or an expression such as "(a*b + a).tanh()", for
    which `names` may map names to numbers. For our tensors and PyTorch's, it may also be a function without arguments
    that returns the tensor. The picture then also shows operations under `no_grad`, marked as not recorded, which a
    finished graph does not contain. `names` maps labels to tensors; without it, the variables of the calling cell are
    searched. `direction` is "right" or "down"; `gradient` starts the backward pass. `fold` says whether repeated
    blocks, such as layers, start as one node each; by default, only those in large graphs do. `predict` asks before
    each backward step what the nodes receive; answers stay in the notebook and are never graded. While a kernel runs, a
    reader can change the numbers of named leaves and type other expressions in the picture. Raises GraphTooLargeError
    above 1,000 nodes, TypeError for an object without a graph, and ValueError for a text that is not an expression.
    """
    if isinstance(output, str):
        return explore_expression(output, names or {}, direction, predict)
    if names is None:
        names = names_in(sys._getframe(1))
    trace = None
    if callable(output) and not is_tensor(output):
        with watching() as trace:
            output = output()
    graph = read_graph(output, names, limit=DRAWING_LIMIT, gradient=gradient, trace=trace)
    if anywidget is None:
        return StaticPicture(render(graph, direction=direction, replay=True), summary(graph, replay=True))
    return GraphExplorer(Workbench(graph, Engine(output), gradient), direction, fold, predict)


def explore_expression(text: str, values: Mapping[str, Value], direction: str, predict: bool) -> Any:
    """An expression in our own engine, as an interactive picture."""
    start = tensor(0.0, requires_grad=True)
    bench = Workbench(read_graph(start), Engine(start))
    bench.compute(text.strip() or "?", values)  # an empty text is not an expression here
    if anywidget is None:
        return StaticPicture(render(bench.graph, direction=direction, replay=True), summary(bench.graph, replay=True))
    return GraphExplorer(bench, direction, None, predict)


def explore_fault(
    output: Any, names: Mapping[str, Any], gradient: Any = None, opened_by: str = ""
) -> GraphExplorer | None:
    """The graph of a student's tensor, at the step where its gradient goes wrong; None if no gradient does.

    `output.backward` has already been called, if it can be. `opened_by`: the text of a button that the reader has to
    press first.
    """
    graph = read_graph(output, names, limit=LARGE, gradient=gradient)
    faults = faults_of(graph)
    if anywidget is None or not faults:
        return None
    shown = GraphExplorer(Workbench(graph, Engine(output), gradient), folded=False, seek_faults=True)
    wrong = Counter(graph.edges[number].target for number in faults)
    backward = {step["node"]: at for at, step in enumerate(shown.steps) if step["phase"] == "backward"}
    shown.step = backward[max(wrong, key=lambda node: (wrong[node], node))]
    shown.opened_by = opened_by
    return shown


def names_in(frame: Any) -> dict[str, Any]:
    """The tensors among the variables of a frame, by name. Names that begin with an underscore are left out."""
    variables = {**frame.f_globals, **frame.f_locals}
    return {
        name: value
        for name, value in variables.items()
        if not name.startswith("_") and not isinstance(value, (type, ModuleType)) and is_tensor(value)
    }


if anywidget is not None:

    class GraphExplorer(anywidget.AnyWidget):
        """The widget. The reader sets `step`, `folded`, `predict`, `predictions` and `wanted`; the rest follows."""

        _esm = script(EVALUATOR, HERE / "graph_explorer.js")
        _css = (HERE / "graph_explorer.css").read_text(encoding="utf-8")

        picture = traitlets.Unicode().tag(sync=True)
        upright = traitlets.Unicode().tag(sync=True)  # the same for a narrow page; empty: there is none
        steps: Any = traitlets.List().tag(sync=True)
        edges: Any = traitlets.List().tag(sync=True)
        details: Any = traitlets.List().tag(sync=True)
        values: Any = traitlets.List().tag(sync=True)  # the text in the value row of each node
        numbers: Any = traitlets.Dict().tag(sync=True)  # of a graph of numbers; then the texts name their places
        step = traitlets.Int(0).tag(**SET_BY_READERS)
        foldable = traitlets.Bool(False).tag(sync=True)
        folded = traitlets.Bool(False).tag(**SET_BY_READERS)
        predict = traitlets.Bool(False).tag(**SET_BY_READERS)
        predictions: Any = traitlets.Dict().tag(**SET_BY_READERS)  # the entered texts, by step number
        wanted: Any = traitlets.Dict().tag(**SET_BY_READERS)  # the expression and the numbers that the reader asks for
        computed: Any = traitlets.Dict().tag(sync=True)  # the answer: what is shown now, or the problem
        examples: Any = traitlets.List().tag(sync=True)
        wrong: Any = traitlets.List().tag(sync=True)  # the numbers of the edges that are marked as wrong
        opened_by = traitlets.Unicode().tag(sync=True)  # the text of the button that shows the graph; empty: no button
        own_id = traitlets.Unicode().tag(sync=True)

        def __init__(
            self,
            bench: Workbench,
            direction: str = "right",
            folded: bool | None = None,
            predict: bool = False,
            seek_faults: bool = False,
        ) -> None:
            self._bench, self._direction, self._seek_faults = bench, direction, seek_faults
            blocks = self._take(bench.graph)
            if folded is None:
                folded = len(bench.graph.nodes) > LARGE
            folded = folded and blocks
            examples = [] if bench.engine.is_student_s else [[label, *example] for label, example in EXAMPLES.items()]
            super().__init__(
                foldable=blocks,
                folded=folded,
                predict=predict,
                examples=examples,
                computed=self._answer(""),
                **self._drawn(folded),
            )
            self.own_id = self.model_id
            self.observe(self._refold, "folded")
            self.observe(self._compute, "wanted")

        def _take(self, graph: Graph) -> bool:
            """Set the graph that is shown. Returns whether it has blocks that can be folded."""
            blocks = [] if any(node.kind == "unrecorded" for node in graph.nodes) else repeated_blocks(graph)
            self._graphs = {False: graph, True: folded_graph(graph, blocks) if blocks else graph}
            return bool(blocks)

        def _drawn(self, folded: bool) -> dict[str, Any]:
            """Everything that the browser shows of the graph, folded or not."""
            graph = self._graphs[folded]
            stands = self._direction == "right" and len(graph.nodes) <= STANDS
            return {
                "picture": render(graph, direction=self._direction, interactive=True, replay=True),
                "upright": render(graph, direction="down", interactive=True, replay=True) if stands else "",
                **self._told(graph),
            }

        def _told(self, graph: Graph) -> dict[str, Any]:
            """The traits that change with the numbers, while the picture keeps its boxes and lines."""
            faults = faults_of(graph) if self._seek_faults else {}
            numbers = {} if self._seek_faults or len(graph.nodes) > EDITABLE else numbers_of(graph)
            graph = with_places(graph) if numbers else graph
            return {
                "numbers": numbers,
                "wrong": list(faults),
                "steps": [step.to_json() for step in story(graph, faults)],
                "edges": [[edge.source, edge.target, factors(edge, graph)] for edge in graph.edges],
                "details": [details(node, graph) for node in graph.nodes],
                "values": [value_text(node) for node in graph.nodes],
            }

        def _refold(self, change: Any) -> None:
            self._show(self._drawn(change["new"]))

        def _show(self, drawn: Mapping[str, Any]) -> None:
            """Replace what the browser shows. The picture comes last, since drawing it uses the rest."""
            with self.hold_sync():
                self.step = 0 if self.step == 0 else len(drawn["steps"]) - 1
                self.predictions = {}  # the steps are numbered differently now
                for name in ("numbers", "wrong", "steps", "edges", "details", "values", "upright", "picture"):
                    setattr(self, name, drawn[name])

        def _compute(self, change: Any) -> None:
            """Let the engine compute what the reader asks for."""
            problem = ""
            try:
                before = self._bench.graph
                self._bench.compute(change["new"]["expression"], change["new"]["values"])
                self._replace(before, self._bench.graph)
            except (Exception, KeyboardInterrupt) as error:  # the browser waits for an answer
                problem = in_words(error)
            self.computed = self._answer(problem)

        def _replace(self, before: Graph, graph: Graph) -> None:
            """Show another graph, or other numbers in the same one."""
            self._take(graph)
            with self.hold_sync():
                if _same_boxes(before, graph):
                    self.predictions = {}  # they were about other numbers
                    for name, told in self._told(self._graphs[self.folded]).items():
                        setattr(self, name, told)
                else:
                    self.folded = False
                    self._show(self._drawn(False))
                    self.step = 0

        def _answer(self, problem: str) -> dict[str, Any]:
            """The answer to the browser. The serial number makes it a new answer even if it equals the last one."""
            bench = self._bench
            index = {node.name: node.index for node in bench.graph.nodes if node.kind == "leaf"}
            leaves = [[index[name], name, value] for name, value in bench.numbers.items()]
            return {"expression": bench.expression, "leaves": leaves, "problem": problem, "serial": next(serial)}

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            graph = self._graphs[self.folded]
            still = StaticPicture(
                render(graph, direction=self._direction, replay=True), summary(self._bench.graph, replay=True)
            )
            return with_static_picture(super()._repr_mimebundle_(**kwargs), still)


def _same_boxes(one: Graph, other: Graph) -> bool:
    """Whether two graphs differ only in their numbers."""
    return [(node.name, node.formula, node.shape) for node in one.nodes] == [
        (node.name, node.formula, node.shape) for node in other.nodes
    ]
