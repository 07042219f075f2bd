"""Repeated blocks of a graph, such as the layers of a network, each folded into one node.

A block is a run of operations that occurs several times in the same order and passes on exactly one result. Leaves and
constants that only one block uses are folded into it. Gradients do not change: the gradient of the result goes in, and
the gradients of the inputs come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mini_autograd.drawing.graph import Edge, Graph, Memory, Node, Value

REPEATS = 3
LONGEST = 40


def repeated_blocks(graph: Graph) -> list[tuple[int, ...]]:
    """The nodes of each block, for the pattern that covers most of the graph; no blocks if nothing repeats."""
    operations = [node.index for node in graph.nodes if node.kind == "operation"]
    signs = [graph.nodes[index].operation for index in operations]
    best: list[tuple[int, ...]] = []
    for period in range(2, min(LONGEST, len(signs) // REPEATS) + 1):
        for start, length in runs(signs, period):
            for offset in range(period):
                count = (length - offset) // period
                if count < REPEATS or count * period <= sum(map(len, best)):
                    break
                cuts = range(start + offset, start + offset + count * period, period)
                blocks = [tuple(operations[cut : cut + period]) for cut in cuts]
                if all(hands_on_one(graph, block) for block in blocks):
                    best = blocks
                    break
    return with_leaves(graph, best)


def runs(signs: Sequence[str], period: int) -> list[tuple[int, int]]:
    """Where a sequence repeats with this period at least `REPEATS` times: the start and length of each run."""
    found, start = [], 0
    for place in range(len(signs) - period + 1):
        if place == len(signs) - period or signs[place] != signs[place + period]:
            if place - start + period >= REPEATS * period:
                found.append((start, place - start + period))
            start = place + 1
    return found


def hands_on_one(graph: Graph, block: Sequence[int]) -> bool:
    """Whether only the last operation of a block is used outside of it."""
    inside = set(block)
    outer = {edge.source for edge in graph.edges if edge.source in inside and edge.target not in inside}
    return outer <= {block[-1]}


def with_leaves(graph: Graph, blocks: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The blocks, each with the leaves and constants that only it uses, if every block has one in the same place.

    So the weights of the first layer are folded in, but not its input: there, the other layers have a layer's result.
    """
    home = {index: (number, rank) for number, block in enumerate(blocks) for rank, index in enumerate(block)}
    given: dict[tuple[int, int], int] = {}  # how many blocks have a leaf in a place: which operation, which input
    users: dict[int, list[Edge]] = {}
    for edge in graph.edges:
        users.setdefault(edge.source, []).append(edge)
        if edge.target in home and graph.nodes[edge.source].kind != "operation":
            slot = (home[edge.target][1], edge.position)
            given[slot] = given.get(slot, 0) + 1
    grown = [list(block) for block in blocks]
    for leaf, edges in users.items():
        inside = [home[edge.target] for edge in edges if edge.target in home]
        where = {number for number, _ in inside}
        always = all(
            given.get((rank, edge.position)) == len(blocks) for (_, rank), edge in zip(inside, edges, strict=False)
        )
        if graph.nodes[leaf].kind != "operation" and len(inside) == len(edges) and len(where) == 1 and always:
            grown[where.pop()].append(leaf)
    return [tuple(sorted(block)) for block in grown]


def fold(graph: Graph, blocks: Sequence[tuple[int, ...]]) -> Graph:
    """The graph with each block as one node, which stands where the result of the block stood."""
    last = [max(index for index in block if graph.nodes[index].kind == "operation") for block in blocks]
    home = {index: exit for block, exit in zip(blocks, last, strict=True) for index in block}
    kept = [node for node in graph.nodes if home.get(node.index, node.index) == node.index]
    place = {node.index: number for number, node in enumerate(kept)}
    sums: dict[tuple[int, int], Edge] = {}
    for edge in graph.edges:
        source, target = home.get(edge.source, edge.source), home.get(edge.target, edge.target)
        if source == target:
            continue
        ends = (place[source], place[target])
        if source in last or target in last:
            before = sums.get(ends)
            sent = edge.contribution if before is None else added(before.contribution, edge.contribution)
            sums[ends] = Edge(*ends, edge.position, None if target in last else edge.local, sent)
        else:
            sums[(len(sums), -1)] = replace(edge, source=ends[0], target=ends[1])
    edges = sorted(sums.values(), key=lambda edge: (edge.target, edge.position))
    members = dict(zip(last, blocks, strict=True))
    numbers = {exit: number for number, exit in enumerate(last, 1)}
    nodes = []
    for number, node in enumerate(kept):
        inputs = tuple(edge.source for edge in edges if edge.target == number)
        folded = block_node(graph, node, members[node.index], numbers[node.index]) if node.index in members else node
        nodes.append(replace(folded, index=number, inputs=inputs))
    return Graph(tuple(nodes), tuple(edges))


def block_node(graph: Graph, exit: Node, block: Sequence[int], number: int) -> Node:
    """One node for a block: the value and gradient of its result, and the memory of the whole block."""
    inside = [graph.nodes[index] for index in block]
    memory = Memory(
        sum(node.memory.saved for node in inside),
        any(node.memory.freed for node in inside),
        sum(node.memory.hooks for node in inside),
    )
    signs = ", ".join(node.operation for node in inside if node.kind == "operation")
    return replace(exit, formula=f"block {number}", operation=f"block of {len(block)}", source=signs, memory=memory)


def added(first: Value | None, second: Value | None) -> Value | None:
    return None if first is None or second is None else np.add(first, second)
