"""Where the boxes and lines of a graph go: layers by longest path, few crossings, straight long edges.

Works on sizes and pairs of numbers only, so it can lay out anything. Positions are found for a drawing that runs from
left to right and are transposed for one that runs down. Long edges are routed through a dummy place in every layer that
they pass, and lines bend only in the free space between layers, so no line ever runs through a box.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

SWEEPS = 12
PORT_SPREAD = 0.9  # the fraction of a box's side that the arriving lines share
ENOUGH = 4000  # places times sweeps
NEARLY = 24.0  # a line that is off by less than this becomes straight
Point = tuple[float, float]
Spring = tuple[int, float, float]


@dataclass(frozen=True)
class Spacing:
    """Free space: between boxes of a layer, between layers, around the whole, for passing lines and for labels."""

    between: float = 18.0
    layers: float = 58.0
    margin: float = 14.0
    lane: float = 12.0
    label: tuple[float, float] = (30.0, 15.0)


@dataclass(frozen=True)
class Box:
    """The upper left corner and the size of a node's box."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Route:
    """Cubic Bezier pieces: the start, then per piece two control points and an end; `label` is a free spot."""

    start: Point
    pieces: tuple[tuple[Point, Point, Point], ...]
    label: Point


@dataclass(frozen=True)
class Layout:
    """Boxes in the order of the nodes, routes in the order of the edges, and the size of the whole."""

    boxes: tuple[Box, ...]
    routes: tuple[Route, ...]
    width: float
    height: float


@dataclass
class _Place:
    """A node, or the spot where a long edge passes a layer. Flow runs along, layers extend across."""

    layer: int
    length: float
    breadth: float
    node: int | None
    across: float = 0.0
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)


def lay_out(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    *,
    direction: str = "right",
    spacing: Spacing | None = None,
) -> Layout:
    """Positions for boxes of the given (width, height) and for the edges (source, target) of a graph without cycles.

    Nodes must be numbered so that every edge goes from a smaller to a larger number. `direction` is "right" or "down".
    """
    if direction not in {"right", "down"}:
        raise ValueError(f"direction must be 'right' or 'down', got {direction!r}")
    spacing = spacing or Spacing()
    turned = direction == "down"
    flow = [(height, width) if turned else (width, height) for width, height in sizes]
    layers = assign_layers(len(sizes), edges)
    places, chains = _places(flow, edges, layers, spacing)
    rows = _order(places, edges, chains)
    _spread(places, rows, spacing)
    return _finish(places, rows, edges, chains, spacing, turned)


def assign_layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Layers by longest path from the leaves; then leaves, and nodes with long lines, move next to their users."""
    inputs: list[list[int]] = [[] for _ in range(count)]
    users: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        inputs[target].append(source)
        users[source].append(target)
    layers = [0] * count
    for node in range(count):
        layers[node] = max((layers[source] + 1 for source in inputs[node]), default=0)
    for node in reversed(range(count)):
        movable = [source for source in set(inputs[node]) if inputs[source] or len(set(users[source])) > 1]
        if users[node] and len(movable) <= len(set(users[node])):
            layers[node] = min(layers[user] for user in users[node]) - 1
    return layers


def _places(
    flow: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]], layers: Sequence[int], spacing: Spacing
) -> tuple[list[_Place], list[tuple[int, ...]]]:
    """The nodes, and per edge the chain of places from source to target. Edges of one source share their dummies."""
    places = [_Place(layer, *size, node) for node, (layer, size) in enumerate(zip(layers, flow, strict=True))]
    dummies: dict[tuple[int, int], int] = {}
    chains = []
    for source, target in edges:
        chain = [source]
        for layer in range(layers[source] + 1, layers[target]):
            key = (source, layer)
            if key not in dummies:
                dummies[key] = len(places)
                places.append(_Place(layer, 0.0, spacing.lane, None))
            chain.append(dummies[key])
        chain.append(target)
        for first, second in pairwise(chain):
            if second not in places[first].after or second == target:
                places[first].after.append(second)
                places[second].before.append(first)
        chains.append(tuple(chain))
    return places, chains


def _order(
    places: list[_Place], edges: Sequence[tuple[int, int]], chains: Sequence[tuple[int, ...]]
) -> list[list[int]]:
    """Barycenter sweeps back and forth; the arrangement with the fewest crossings wins."""
    rows: list[list[int]] = [[] for _ in range(max(place.layer for place in places) + 1)]
    for place in _first_visit(places):
        rows[places[place].layer].append(place)
    best, fewest = [list(row) for row in rows], count_crossings(places, rows)
    for sweep in range(_sweeps(places)):
        if fewest == 0:
            break
        forth = sweep % 2 == 0
        position = {place: rank for row in rows for rank, place in enumerate(row)}
        for row in rows if forth else reversed(rows):
            _sort_by_neighbors(row, places, position, forth)
            position.update({place: rank for rank, place in enumerate(row)})
        crossings = count_crossings(places, rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _sweeps(places: list[_Place]) -> int:
    """The number of sweeps: fewer for large graphs, so that a layout stays fast."""
    return max(2, min(SWEEPS, ENOUGH // len(places)))


def _first_visit(places: list[_Place]) -> list[int]:
    """Places in the order of a depth-first walk from the outputs, first inputs first: already a good arrangement."""
    seen: set[int] = set()
    order = []
    for root in reversed([number for number, place in enumerate(places) if not place.after]):
        stack = [root]
        while stack:
            place = stack.pop()
            if place not in seen:
                seen.add(place)
                order.append(place)
                stack.extend(reversed(places[place].before))
    return order


def _sort_by_neighbors(row: list[int], places: list[_Place], position: dict[int, int], forth: bool) -> None:
    def barycenter(place: int) -> float:
        near = places[place].before if forth else places[place].after
        if not near:
            return float(position[place])
        if forth:
            return sum(position[other] for other in near) / len(near)
        return sum(position[other] + _port_share(places[other], place) for other in near) / len(near)

    row.sort(key=barycenter)


def _port_share(user: _Place, source: int) -> float:
    """Where on the side of its user an input arrives: -0.5 is one end, 0.5 the other. The mean if it arrives twice."""
    positions = [position for position, other in enumerate(user.before, 1) if other == source]
    return sum(positions) / len(positions) / (len(user.before) + 1) - 0.5


def count_crossings(places: Sequence[_Place], rows: Sequence[Sequence[int]]) -> int:
    """How many pairs of lines cross between neighboring layers."""
    total = 0
    for row in rows[1:]:
        position = {other: rank for rank, other in enumerate(rows[places[row[0]].layer - 1])}
        seen: list[int] = []
        for place in row:
            for other in places[place].before:
                total += len(seen) - bisect_right(seen, position[other])
                insort(seen, position[other])
    return total


def _spread(places: list[_Place], rows: list[list[int]], spacing: Spacing) -> None:
    """Move every place towards its neighbors as far as the free space between boxes allows, sweep after sweep."""
    gaps = [_gaps(row, places, spacing) for row in rows]
    for row, gap in zip(rows, gaps, strict=True):
        at = 0.0
        for place, step in zip(row, [0.0, *gap], strict=True):
            at += step
            places[place].across = at
    springs = [_springs(places, number) for number in range(len(places))]
    rounds = 2 * _sweeps(places)
    for sweep in range(rounds):
        both = sweep >= rounds - 2 or sweep > rounds / 2
        numbered = list(enumerate(rows))
        for layer, row in numbered if sweep % 2 == 0 else reversed(numbered):
            wishes = [_wish(places, place, springs[place], both=both, forth=sweep % 2 == 0) for place in row]
            for place, across in zip(row, fit(wishes, gaps[layer]), strict=True):
                places[place].across = across
    _straighten(places, rows, gaps)


def _straighten(places: list[_Place], rows: list[list[int]], gaps: list[list[float]]) -> None:
    """Straighten nearly straight lines into places with one input, if there is room."""
    for row, gap in zip(rows, gaps, strict=True):
        for rank, number in enumerate(row):
            place = places[number]
            if len(set(place.before)) != 1:
                continue
            goal = places[place.before[0]].across
            low = places[row[rank - 1]].across + gap[rank - 1] if rank else goal
            high = places[row[rank + 1]].across - gap[rank] if rank + 1 < len(row) else goal
            if abs(goal - place.across) < NEARLY and low <= goal <= high:
                place.across = goal


def _gaps(row: list[int], places: list[_Place], spacing: Spacing) -> list[float]:
    return [
        (places[a].breadth + places[b].breadth) / 2
        + (spacing.between if _boxes(places, a, b) else spacing.between * 0.6)
        for a, b in pairwise(row)
    ]


def _boxes(places: list[_Place], *numbers: int) -> bool:
    return all(places[number].node is not None for number in numbers)


def _springs(places: list[_Place], number: int) -> tuple[list[Spring], list[Spring]]:
    """What pulls at a place, inputs and users separately: which place, how strongly, and how far off its middle."""
    place = places[number]
    before = [(other, _pull(places, other, number), -_port_offset(place, other)) for other in place.before]
    after = []
    for other in place.after:
        user = places[other]
        after.append(
            (other, _pull(places, number, other), _port_offset(user, number) if user.node is not None else 0.0)
        )
    return before, after


def _wish(
    places: list[_Place], number: int, springs: tuple[list[Spring], list[Spring]], *, both: bool, forth: bool
) -> tuple[float, float]:
    """Where a place would like to be and how strongly: dummies hold long lines straight, leaves follow their users."""
    before, after = springs
    near = (before if both or forth or not after else []) + (after if both or not forth or not before else [])
    if not near:
        return places[number].across, 0.1
    weight = total = 0.0
    for other, pull, shift in near:
        weight += pull
        total += pull * (places[other].across + shift)
    return total / weight, weight


def _pull(places: list[_Place], first: int, second: int) -> float:
    dummies = (places[first].node is None) + (places[second].node is None)
    return (1.0, 3.0, 8.0)[dummies] * (3.0 if len(set(places[second].before)) == 1 else 1.0)


def _port_offset(place: _Place, source: int) -> float:
    """How far from the middle of its user's side the line from `source` ends."""
    if place.node is None:
        return 0.0
    return _port_share(place, source) * place.breadth * PORT_SPREAD


def fit(wishes: Sequence[tuple[float, float]], gaps: Sequence[float]) -> list[float]:
    """The places nearest to the wishes (weighted least squares) that keep the gaps, by pooling adjacent violators."""
    if len(wishes) == 1:
        return [wishes[0][0]]
    blocks: list[list[float]] = []  # sum of weighted wishes, weight, number of places
    offset, offsets = 0.0, []
    for number, (wish, weight) in enumerate(wishes):
        offset += gaps[number - 1] if number else 0.0
        offsets.append(offset)
        blocks.append([(wish - offset) * weight, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [old + new for old, new in zip(blocks[-1], last, strict=True)]
    result = [total / weight for total, weight, size in blocks for _ in range(int(size))]
    return [at + offset for at, offset in zip(result, offsets, strict=True)]


def _finish(
    places: list[_Place],
    rows: list[list[int]],
    edges: Sequence[tuple[int, int]],
    chains: Sequence[tuple[int, ...]],
    spacing: Spacing,
    turned: bool,
) -> Layout:
    """Turn layers and places into boxes and routes whose smallest coordinates are the margin."""
    lengths = [max((places[place].length for place in row), default=0.0) for row in rows]
    starts, at = [], spacing.margin
    for length in lengths:
        starts.append(at)
        at += length + spacing.layers
    along = at - spacing.layers + spacing.margin
    lowest = min(place.across - place.breadth / 2 for place in places)
    for place in places:
        place.across += spacing.margin - lowest
    breadth = max(place.across + place.breadth / 2 for place in places) + spacing.margin
    boxes = []
    for place in places:
        if place.node is not None:
            x = starts[place.layer] + (lengths[place.layer] - place.length) / 2
            corner = (x, place.across - place.breadth / 2)
            boxes.append(
                Box(corner[1], corner[0], place.breadth, place.length)
                if turned
                else Box(*corner, place.length, place.breadth)
            )
    ports = _ports(places, edges)
    routes = tuple(_route(places, chain, ports[number], starts, lengths, turned) for number, chain in enumerate(chains))
    routes = _labels_apart(routes, edges, spacing, turned)
    return Layout(tuple(boxes), routes, *((breadth, along) if turned else (along, breadth)))


def _labels_apart(
    routes: tuple[Route, ...], edges: Sequence[tuple[int, int]], spacing: Spacing, turned: bool
) -> tuple[Route, ...]:
    """Move the labels of lines into the same box apart if they would overlap."""
    axis, room = (0, spacing.label[0]) if turned else (1, spacing.label[1])
    result = list(routes)
    groups: dict[int, list[int]] = {}
    for number, (_, target) in enumerate(edges):
        groups.setdefault(target, []).append(number)
    for numbers in groups.values():
        numbers.sort(key=lambda number: routes[number].label[axis])
        wishes = [(routes[number].label[axis], 1.0) for number in numbers]
        for number, at in zip(numbers, fit(wishes, [room] * (len(numbers) - 1)), strict=True):
            x, y = routes[number].label
            result[number] = replace(routes[number], label=(at, y) if turned else (x, at))
    return tuple(result)


def _ports(places: list[_Place], edges: Sequence[tuple[int, int]]) -> list[float]:
    """For each edge, how far from the middle of its target's side it ends: inputs arrive in order."""
    counts: dict[int, int] = {}
    for _, target in edges:
        counts[target] = counts.get(target, 0) + 1
    used: dict[int, int] = {}
    offsets = []
    for _, target in edges:
        used[target] = used.get(target, 0) + 1
        share = used[target] / (counts[target] + 1) - 0.5
        offsets.append(share * places[target].breadth * PORT_SPREAD)
    return offsets


def _route(
    places: list[_Place], chain: tuple[int, ...], port: float, starts: list[float], lengths: list[float], turned: bool
) -> Route:
    """The route from the middle of the source's far side, through the dummies, to the port of the target."""

    def point(along: float, across: float) -> Point:
        return (across, along) if turned else (along, across)

    source, target = places[chain[0]], places[chain[-1]]
    along = starts[source.layer] + (lengths[source.layer] + source.length) / 2
    across = source.across
    start, pieces, label = point(along, across), [], (0.0, 0.0)
    for number in chain[1:]:
        place = places[number]
        if number != chain[-1] and abs(place.across - across) < 0.5:
            continue  # straight on: one piece for all the layers that it passes
        edge_of_layer = starts[place.layer - 1] + lengths[place.layer - 1]
        if edge_of_layer > along + 0.5:
            pieces.append(_straight(point, along, edge_of_layer, across))
            along = edge_of_layer
        goal = place.across + (port if number == chain[-1] else 0.0)
        until = starts[place.layer]
        bend = (until - along) * 0.5
        pieces.append((point(along + bend, across), point(until - bend, goal), point(until, goal)))
        label = point((along + until) / 2, (across + goal) / 2)
        along, across = until, goal
        if number != chain[-1] and lengths[place.layer]:
            pieces.append(_straight(point, along, along + lengths[place.layer], across))
            along += lengths[place.layer]
    end = starts[target.layer] + (lengths[target.layer] - target.length) / 2
    if end > along + 0.5:
        pieces.append(_straight(point, along, end, across))
    return Route(start, tuple(pieces), label)


def _straight(point, along: float, until: float, across: float) -> tuple[Point, Point, Point]:  # type: ignore[no-untyped-def]
    third = (until - along) / 3
    return point(along + third, across), point(until - third, across), point(until, across)
