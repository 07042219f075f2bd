"""A graph as one self-contained SVG: boxes with name, value and gradient, and lines from inputs to results.

Colors come from JupyterLab's theme if there is one, else from a light or dark palette that follows the reader's system;
kinds of nodes differ in shape as well as color. For the stepper, the same picture carries roles and hidden edge labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from mini_autograd.drawing.formatting import clip, describe, shape_text, short, text_width
from mini_autograd.drawing.graph import COMPUTED, DRAWING_LIMIT, Graph, Node, Value, check_size, is_scalar
from mini_autograd.drawing.layout import Box, Layout, Route, Spacing, lay_out
from mini_autograd.drawing.reading import read_graph

TITLE_SIZE, ROW_SIZE = 12.5, 12.0
HEADER, ROW, PADDING = 23.0, 17.0, 9.0
HEIGHT = HEADER + 2 * ROW + 8
LABEL_WIDTH = 42.0
TITLE_LENGTH = 26
RADIUS = {"leaf": 13.0, "constant": 13.0, "operation": 3.0, "unrecorded": 3.0}
NO_GRADIENT = {"constant": "none", "unrecorded": "not recorded"}
STYLE = (Path(__file__).parent / "graph.css").read_text(encoding="utf-8")


def draw(graph: Any, names: Mapping[str, Any] | None = None, *, direction: str = "right") -> str:
    """The SVG text of a graph, or of what `read_graph` finds behind an output.

    Raises GraphTooLargeError above 1,000 nodes, and TypeError for an object that has no graph.
    """
    if not isinstance(graph, Graph):
        graph = read_graph(graph, names, limit=DRAWING_LIMIT)
    return render(graph, direction=direction)


def render(graph: Graph, *, direction: str = "right", interactive: bool = False, replay: bool = False) -> str:
    """The SVG text.

    `replay` shows the gradients of the replayed backward pass instead of those that the objects store. `interactive`
    adds what the stepper needs (focusable nodes, and a place for a number on each line) and leaves out tooltips, which
    would give the result away.
    """
    check_size(len(graph.nodes), DRAWING_LIMIT)
    layout = lay_out(
        [(_width(node), HEIGHT) for node in graph.nodes],
        [(edge.source, edge.target) for edge in graph.edges],
        direction=direction,
        spacing=_spacing(graph, direction),
    )
    words = "" if interactive else "; ".join(summary(graph, replay=replay).splitlines()[:12])
    parts = [_open_tag(words, layout), f"<style>{STYLE}</style>"]
    parts.append(f'<rect class="ma-page" width="{layout.width:.0f}" height="{layout.height:.0f}" rx="4"/>')
    silent = {node.index for node in graph.nodes if node.kind == "unrecorded"}
    parts += [
        _edge(number, route, bool(silent & {edge.source, edge.target}))
        for number, (edge, route) in enumerate(zip(graph.edges, layout.routes, strict=True))
    ]
    gradients = [replayed(node) if replay else node.gradient for node in graph.nodes]
    parts += [
        _node(node, box, cell_text(gradients[node.index], norm=True), interactive)
        for node, box in zip(graph.nodes, layout.boxes, strict=True)
    ]
    if interactive:
        parts += [_edge_label(number, route) for number, route in enumerate(layout.routes)]
    return "".join([*parts, "</svg>"])


def summary(graph: Graph, *, replay: bool = False) -> str:
    """The graph in words, for a plain terminal and for screen readers: one line per operation, then the gradients."""
    gradients = [replayed(node) if replay else node.gradient for node in graph.nodes]
    lines = [f"{title(node)} = {describe(node.value)}" for node in graph.nodes if node.kind == "operation"]
    known = [node for node in graph.nodes if node.kind == "leaf" and gradients[node.index] is not None]
    lines += [f"gradient of {node.name}: {describe(gradients[node.index])}" for node in known]
    return "\n".join(lines) or f"{title(graph.output)} = {describe(graph.output.value)}"


def replayed(node: Node) -> Value | None:
    """The gradient that the replayed backward pass brought to a node, or the stored one if it is not known."""
    return node.stored if node.incoming is None else node.incoming


def title(node: Node) -> str:
    """The text at the top of a node's box."""
    if node.kind in COMPUTED:
        return f"{node.name} = {node.formula}"
    unnamed = is_scalar(node.value) and node.name == short(float(node.value))  # type: ignore[arg-type]
    return node.kind if unnamed else node.name


def value_text(node: Node) -> str:
    """The number in the value row; for an array, its entries if there are few, or its shape."""
    if node.value is None:
        return shape_text(node.shape) if node.shape else "?"
    return cell_text(node.value)


def cell_text(value: Any, *, norm: bool = False) -> str:
    """A value as text that fits into a box. Larger arrays are shown by their shape or, if `norm`, by their norm."""
    if value is None:
        return ""
    if isinstance(value, float):
        return short(value)
    array = np.asarray(value)
    if array.ndim == 0:
        return short(array.item())
    if array.ndim == 1 and array.size <= 2:
        return describe(array)
    return f"norm {short(np.linalg.norm(array))}" if norm else shape_text(array.shape)


def bytes_text(size: int) -> str:
    """1,024 B up to 10 kB, then kB and MB."""
    if size < 10_000:
        return f"{size:,} B"
    return f"{size / 1e3:,.0f} kB" if size < 10_000_000 else f"{size / 1e6:,.1f} MB"


def flow_text(contribution: Any) -> str:
    """The text on a line while backward passes along it: the number, or the norm of an array between double bars."""
    if contribution is None or is_scalar(contribution):
        return cell_text(contribution)
    return f"\u2016{short(np.linalg.norm(contribution))}\u2016"


def _spacing(graph: Graph, direction: str) -> Spacing:
    """Spacing with layers so far apart that the numbers on the lines fit between them."""
    widest = max((text_width(flow_text(edge.contribution), ROW_SIZE) for edge in graph.edges), default=0.0)
    layers = 52.0 if direction == "down" else max(44.0, widest + 8.0)
    return Spacing(layers=layers, label=(widest + 4.0, 15.0))


def _open_tag(words: str, layout: Layout) -> str:
    label = escape(f"Computation graph. {words}".strip(), quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ma-graph" role="img" aria-label="{label}" '
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}">'
    )


def _width(node: Node) -> float:
    """Wide enough for the title and for any number that a step may put into a row."""
    rows = [value_text(node), "-0.12345", NO_GRADIENT.get(node.kind, "")]
    rows += [cell_text(gradient, norm=True) for gradient in (node.gradient, node.incoming)]
    row = LABEL_WIDTH + max(text_width(text, ROW_SIZE) for text in rows)
    return max(row, text_width(clip(title(node), TITLE_LENGTH), TITLE_SIZE)) + 2 * PADDING


def _node(node: Node, box: Box, gradient: str, interactive: bool) -> str:
    radius = RADIUS[node.kind]
    right = box.width - PADDING
    value_line, grad_line = HEADER + ROW - 2, HEADER + 2 * ROW - 1
    label = "shape" if node.shape and not value_text(node).startswith("[") else "value"
    gradient = NO_GRADIENT.get(node.kind, gradient)
    heading = escape(clip(title(node), TITLE_LENGTH))
    role = f' role="button" tabindex="0" aria-label="{escape(title(node), quote=True)}"' if interactive else ""
    tooltip = "" if interactive else f"<title>{escape(_spoken(node, gradient))}</title>"
    return (
        f'<g class="ma-node ma-{node.kind}{" ma-freed" if node.memory.freed else ""}" data-node="{node.index}" '
        f'transform="translate({box.x:.1f} {box.y:.1f})"{role}>{tooltip}'
        f'<rect class="ma-box" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"/>'
        f'<path class="ma-header" d="{_header(box.width, radius)}"/>'
        f'<text class="ma-title" x="{box.width / 2:.1f}" y="{HEADER - 7}">{heading}</text>'
        f'<text class="ma-label" x="{PADDING}" y="{value_line}">{label}</text>'
        f'<text class="ma-value" x="{right:.1f}" y="{value_line}">{escape(value_text(node))}</text>'
        f'<text class="ma-label" x="{PADDING}" y="{grad_line}">grad</text>'
        f'<text class="ma-grad" x="{right:.1f}" y="{grad_line}">{escape(gradient)}</text>{_marks(node, box)}</g>'
    )


def _marks(node: Node, box: Box) -> str:
    """What the node saved, under its box (shown on demand), and a sign in the corner if hooks are registered."""
    saved = "freed" if node.memory.freed else f"saved {bytes_text(node.memory.saved)}" if node.memory.saved else ""
    below = f'<text class="ma-saved" x="{box.width / 2:.1f}" y="{box.height + 11:.1f}">{saved}</text>' if saved else ""
    if not node.memory.hooks:
        return below
    corner = f'<circle class="ma-hook" cx="{box.width:.1f}" cy="0" r="8"/>'
    return f'{below}{corner}<text class="ma-hook-sign" x="{box.width:.1f}" y="4">h</text>'


def _header(width: float, radius: float) -> str:
    """The upper part of a box, round where the box is round; 0.7 keeps it inside the outline."""
    corner = f"A{radius} {radius} 0 0 1"
    left, right = f"M0.7 {HEADER}V{radius}{corner} {radius} 0.7", f"{corner} {width - 0.7:.1f} {radius}V{HEADER}Z"
    return f"{left}H{width - radius:.1f}{right}"


def _spoken(node: Node, gradient: str) -> str:
    value = describe(node.value) if node.value is not None else f"unknown, shape {shape_text(node.shape or ())}"
    return f"{title(node)}; value {value}; " + ("no gradient" if node.kind in NO_GRADIENT else f"gradient {gradient}")


def _edge(number: int, route: Route, silent: bool) -> str:
    path = f"M{_point(route.start)}" + "".join(
        f"C{' '.join(_point(point) for point in piece)}" for piece in route.pieces
    )
    kind = "ma-edge ma-silent" if silent else "ma-edge"
    lines = f'<path d="{path}"/><path class="ma-tip" d="{_tip(route)}"/>'
    return f'<g class="{kind}" data-edge="{number}">{lines}</g>'


def _tip(route: Route) -> str:
    """An arrow head that points along the end of the line, which runs straight to the right or straight down."""
    (_, control, (x, y)) = route.pieces[-1]
    if abs(x - control[0]) >= abs(y - control[1]):
        return f"M{x:.1f} {y:.1f}l-8 -4v8z"
    return f"M{x:.1f} {y:.1f}l-4 -8h8z"


def _edge_label(number: int, route: Route) -> str:
    x, y = route.label
    return f'<text class="ma-flow" data-edge="{number}" x="{x:.1f}" y="{y + 4:.1f}"></text>'


def _point(point: tuple[float, float]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"
