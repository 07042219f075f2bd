"""Be the engine: the reader chooses which node sends its gradients next, and what it sends.

The graph, its values, its local slopes and the right gradients come from a real backward pass. The effect of the
reader's moves is computed from these slopes: a node sends what has arrived at it by then, which may not be everything.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mini_autograd.drawing import Edge, Graph, Node, read_graph
from mini_autograd.drawing.formatting import TIMES, factor, short
from mini_autograd.drawing.layout import Layout, Spacing, lay_out
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.tensor import Tensor
from mini_autograd.widgets.demo import COLORS, Choice, Demo, Entry, Shown
from mini_autograd.widgets.sketch import BUTTON, PAPER, SMALL, box, button, curved, picture, press, words

WIDTH, HEIGHT = 130.0, 78.0
SPACING = Spacing(between=26.0, layers=66.0, margin=10.0, label=(34.0, 18.0))
BLUE, ORANGE, GREEN = COLORS[0], COLORS[1], COLORS[2]
WRONG_ANSWERS = 3  # at most, beside the right one


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


@dataclass(frozen=True)
class Sending:
    """A node that sends, and the reader's answer to what its first input receives (None: no answer)."""

    node: str
    said: float | None = None

    def __str__(self) -> str:
        return self.node if self.said is None else f"{self.node}={self.said:g}"


def moves_in(text: str) -> list[Sending]:
    """The moves in a text such as "y v=0.5 u". Raises ValueError for anything else."""
    found = []
    for part in text.split():
        name, equals, number = part.partition("=")
        try:
            found.append(Sending(name, float(number) if equals else None))
        except ValueError:
            raise ValueError(f"{part!r} is not a move. Write a node, or a node and what it sends: v=0.5") from None
    return found


def written(moves: Sequence[Sending]) -> str:
    return " ".join(map(str, moves))


@dataclass
class Play:
    """A graph after some moves. `arrived` has what each node received, `sent` what went along an edge, and `early` how
    much had arrived at a node that sent before it had everything.
    """

    graph: Graph
    arrived: dict[int, list[float]] = field(default_factory=dict)
    sent: dict[Edge, float] = field(default_factory=dict)
    done: list[int] = field(default_factory=list)
    early: dict[int, int] = field(default_factory=dict)
    late: list[Edge] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.arrived[self.graph.output.index] = [1.0]

    def operations(self) -> list[Node]:
        return [node for node in self.graph.nodes if node.kind == "operation"]

    def named(self, name: str) -> Node:
        """The operation with this name. Raises ValueError, with a list of the names, if there is none."""
        found = next((node for node in self.operations() if node.name == name), None)
        if found is None:
            raise ValueError(
                f"No operation is called {name!r}. The operations are {', '.join(n.name for n in self.operations())}."
            )
        return found

    def uses(self, node: Node) -> int:
        return max(1, sum(edge.source == node.index for edge in self.graph.edges))

    def edges_of(self, node: Node) -> list[Edge]:
        """The edges along which a node sends: those to inputs that need a gradient."""
        return [edge for edge in self.graph.edges_into(node.index) if self.graph.nodes[edge.source].kind != "constant"]

    def ready(self) -> list[Node]:
        """The operations that have received everything and have not sent yet."""
        waiting = [node for node in self.operations() if node.index not in self.done]
        return [node for node in waiting if len(self.arrived.get(node.index, [])) == self.uses(node)]

    def finished(self) -> bool:
        return len(self.done) == len(self.operations())

    def send(self, node: Node) -> None:
        """Let a node send what has arrived at it so far, times its local slopes. Raises ValueError if it cannot."""
        if node.index in self.done:
            raise ValueError(f"{node.name} has already sent its gradients. Each node sends once.")
        if node.index not in self.arrived:
            raise ValueError(f"Nothing has arrived at {node.name} yet, so it has nothing to send.")
        if len(self.arrived[node.index]) < self.uses(node):
            self.early[node.index] = len(self.arrived[node.index])
        for edge in self.edges_of(node):
            self.sent[edge] = self.total(node) * number(edge.local)
            self.arrived.setdefault(edge.source, []).append(self.sent[edge])
            if edge.source in self.done:
                self.late.append(edge)
        self.done.append(node.index)

    def total(self, node: Node) -> float:
        return sum(self.arrived.get(node.index, []))


def number(value: Any) -> float:
    return float(value)


@functools.cache
def example(name: str) -> Graph:
    tensors = EXAMPLES[name]()
    return read_graph(list(tensors.values())[-1], tensors)


def played(graph: Graph, moves: Sequence[Sending]) -> Play:
    """The graph after these moves. Raises ValueError for a move that cannot be made."""
    play = Play(graph)
    for move in moves:
        play.send(play.named(move.node))
    return play


def show(example_name: str, moves: str) -> Shown:
    """The graph after the reader's moves, what can be done next, and what was wrong."""
    graph, made = example(example_name), moves_in(moves)
    if made and belongs_elsewhere(made[0], example_name):
        made = []  # the reader has chosen another graph
    play = played(graph, made)
    last = made[-1] if made else None
    asked = question(play, last) if last and last.said is None and not play.finished() else None
    said = [*answer(play, last), *asking(play, asked), *(ending(play, made) if play.finished() else ())]
    if not said:
        said = ["Click the node that sends first. It sends what has arrived at it, times each local slope."]
    layout = layout_of(graph)
    bottom = layout.height + 14
    seen = played(graph, made[:-1]) if asked else play  # the answer is not shown before the reader gives one
    boxes, choices = nodes(seen, layout, made, asked), buttons(play, made, asked, bottom)
    # If there is a question, its answers come first in the order of keyboard focus.
    parts = [*edges(seen, layout), *(choices + boxes if asked else boxes + choices)]
    label = f"A graph of {len(graph.nodes)} values. {' '.join(said)}"
    return Shown(
        picture(max(layout.width, 640), bottom + BUTTON + 6, parts, label, role="group"),
        tuple(said),
        asks=not play.finished(),
    )


def belongs_elsewhere(move: Sending, example_name: str) -> bool:
    """Whether a move belongs to another graph; no two graphs have a node of the same name."""
    return any(move.node == node.name for name in EXAMPLES if name != example_name for node in example(name).nodes)


@dataclass(frozen=True)
class Asked:
    """The question of what the first input of a node receives, and wrong answers with reasons."""

    node: Node
    edge: Edge
    incoming: float

    @property
    def right(self) -> float:
        return self.incoming * number(self.edge.local)

    def wrong(self) -> dict[float, str]:
        local = number(self.edge.local)
        reasons = {
            self.incoming: "That is what arrived. It has to be multiplied by the local slope.",
            local: "That is the local slope alone. It has to be multiplied by what arrived.",
            self.incoming + local: "That is a sum. What arrived and the local slope are multiplied.",
            -self.right: "The sign is wrong.",
            2 * self.right: "That is twice the right number.",
        }
        return {value: reason for value, reason in reasons.items() if value != self.right}


def question(play: Play, move: Sending) -> Asked:
    node = play.named(move.node)
    later = played(play.graph, [])  # what had arrived when this node sent: shares that came too late do not count
    for index in play.done[: play.done.index(node.index)]:
        later.send(play.graph.nodes[index])
    return Asked(node, play.edges_of(node)[0], later.total(node))


def asking(play: Play, asked: Asked | None) -> list[str]:
    if asked is None:
        return []
    source = play.graph.nodes[asked.edge.source].name
    return [f"{short(asked.incoming)} has arrived at {asked.node.name}. What does {asked.node.name} send to {source}?"]


def answer(play: Play, last: Sending | None) -> list[str]:
    """Sentences about the reader's last answer."""
    if last is None or last.said is None:
        return []
    asked = question(play, last)
    product = f"{short(asked.incoming)} {TIMES} {factor(asked.edge.local)} = {short(asked.right)}"
    if last.said == asked.right:
        return [f"Right: {product}.", *following(play)]
    reason = asked.wrong().get(last.said, "What arrived and the local slope are multiplied.")
    return [f"Not {short(last.said)}. {reason} {product}.", *following(play)]


def following(play: Play) -> list[str]:
    return [] if play.finished() else ["Which node sends next?"]


def ending(play: Play, made: Sequence[Sending]) -> list[str]:
    """The gradients of the leaves beside the right ones, and why they differ."""
    leaves = [node for node in play.graph.nodes if node.kind == "leaf"]
    wrong = [node for node in leaves if play.total(node) != number(node.incoming)]
    told = []
    if not wrong:
        found = ", ".join(f"{node.name}: {short(play.total(node))}" for node in leaves)
        told.append(f"All gradients are right ({found}). Each node sent only after everything had arrived at it.")
    for node in wrong:
        told.append(f"{node.name} has {short(play.total(node))}; the right gradient is {short(number(node.incoming))}.")
    for index, count in play.early.items():
        node = play.graph.nodes[index]
        users = [play.graph.nodes[edge.target].name for edge in play.late if edge.source == index]
        told.append(
            f"{node.name} sent when {count} of its {play.uses(node)} shares had arrived: the share from "
            f"{' and '.join(users)} came too late. A node may send once all nodes that use it have sent."
        )
    known = [move for move in made if move.said is not None]
    if known:
        told.append(f"Right answers: {sum(question(play, move).right == move.said for move in known)} of {len(known)}.")
    return told


def layout_of(graph: Graph) -> Layout:
    """Places for all nodes but constants, which have no gradient."""
    shown = [node.index for node in graph.nodes if node.kind != "constant"]
    place = {index: number for number, index in enumerate(shown)}
    pairs = [(place[edge.source], place[edge.target]) for edge in drawn(graph)]
    return lay_out([(WIDTH, HEIGHT)] * len(shown), pairs, spacing=SPACING)


def drawn(graph: Graph) -> list[Edge]:
    return [edge for edge in graph.edges if graph.nodes[edge.source].kind != "constant"]


def edges(play: Play, layout: Layout) -> list[str]:
    """The edges: their local slopes, and what was sent along them; what came too late is orange and dashed."""
    parts = []
    for edge, route in zip(drawn(play.graph), layout.routes, strict=True):
        sent, late = play.sent.get(edge), edge in play.late or edge.target in play.early
        color = "currentColor" if sent is None else ORANGE if late else GREEN
        dashes = ' stroke-dasharray="6 4"' if sent is not None and late else ""
        line = f'stroke="{color}" stroke-width="{1.2 if sent is None else 2.6}"{dashes}'
        parts.append(f'<path d="{curved(route)}" fill="none" {line}/>')
        text = f"{TIMES} {factor(edge.local)}" if sent is None else short(sent)
        at_x, at_y = route.label
        wide = 9 + 8 * len(text)
        parts.append(box(at_x - wide / 2, at_y - 9, wide, 18, fill=PAPER, stroke="none"))
        parts.append(words(at_x, at_y + 5, text, size=SMALL, anchor="middle", bold=sent is not None, fill=color))
    return parts


def nodes(play: Play, layout: Layout, made: Sequence[Sending], asked: Asked | None) -> list[str]:
    shown = [node for node in play.graph.nodes if node.kind != "constant"]
    name = asked.node.name if asked else ""
    return [node_part(play, node, at.x, at.y, made, name) for node, at in zip(shown, layout.boxes, strict=True)]


def node_part(play: Play, node: Node, x: float, y: float, made: Sequence[Sending], asked: str) -> str:
    """One node: its formula, its value, and what has arrived; an operation that can be clicked is a button."""
    shares, gone = play.arrived.get(node.index, []), node.index in play.done or node.name == asked
    sent = ORANGE if node.index in play.early else GREEN
    color = "currentColor" if not gone else BLUE if node.name == asked else sent
    sum_ = " + ".join(short(share) for share in shares)
    arrived = f"{sum_} = {short(sum(shares))}" if len(shares) > 1 else sum_ or "nothing yet"
    head = f"{node.name} = {node.formula}" if node.formula else node.name
    middle = x + WIDTH / 2
    drawing = "".join((
        box(x, y, WIDTH, HEIGHT, fill=color, opacity=0.14 if gone else 0.04, stroke=color, line=2.4 if gone else 1.2,
            radius=4 if node.kind == "operation" else 14),
        words(middle, y + 21, head, size=SMALL, anchor="middle", bold=True),
        words(middle, y + 42, f"value {short(node.value)}", size=SMALL, anchor="middle"),
        words(middle, y + 64, f"arrived: {arrived}" if len(shares) == 1 else arrived, size=SMALL, anchor="middle",
              fill=BLUE if shares else "currentColor", opacity=1.0 if shares else 0.7),
    ))  # fmt: skip
    if node.kind != "operation" or gone:
        return drawing
    return press(drawing, f"{node.name} sends", {"moves": written([*made, Sending(node.name)])})


def buttons(play: Play, made: Sequence[Sending], asked: Asked | None, y: float) -> list[str]:
    """The answers to choose from, and the tools."""
    x, parts = 10.0, []
    offered: list[tuple[str, str, list[Sending]]] = []
    if asked is not None:
        values = sorted([asked.right, *list(asked.wrong())[:WRONG_ANSWERS]])
        offered = [
            (short(value), f"It sends {value:g}", [*made[:-1], Sending(asked.node.name, value)]) for value in values
        ]
    if made:
        offered += [("Undo", "Undo", list(made[:-1]))]
    if asked is not None:
        offered += [("Show me", "Show me", [*made[:-1], Sending(asked.node.name, asked.right)])]
    elif ready := play.ready():
        offered += [("Show me", "Show me", [*made, Sending(ready[0].name)])]
    for text, label, then in offered:
        drawing, width = button(text, x, y)
        parts.append(press(drawing, label, {"moves": written(then)}, tool=True))
        x += width + 10
    return parts


@functools.cache
def demo() -> Demo:
    controls = (Choice("example_name", "Graph", tuple(EXAMPLES)), Entry("moves", "Moves", hidden=True))
    presets = {
        "Too early": {"example_name": "a diamond", "moves": "r p d q"},
        "In order": {"example_name": "a diamond", "moves": "r q p d"},
        "A shortcut": {"example_name": "a shortcut", "moves": ""},
    }
    return Demo(
        "Be the engine",
        controls,
        show,
        {"example_name": "a leaf used twice", "moves": ""},
        presets,
        presets["In order"],
    )


def be_the_engine(**state: Any) -> Any:
    """The demo: the reader sends the gradients back. Which node is next, and what does it send?

    `example_name` is one of the graphs, `moves` the moves made so far, such as "t s=2". Raises ValueError for others.
    """
    return demo().live(**state)
