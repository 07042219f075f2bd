"""Orders in which an engine may visit the nodes of a graph: right ones (there are many) and tempting wrong ones.

Every function takes the root of a backward pass and returns its nodes. Leaves mostly come last: an engine that adds to
a leaf's gradient whenever something arrives has no place for leaves in its order. An engine with a dict of pending
gradients has one, which matters if the order is wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

from mini_autograd.graph.function import AccumulateGrad, Function

Order = Callable[[Function], list[Function]]
MOST_VISITS = 5_000


def inputs_of(node: Function) -> list[Function]:
    """The nodes of the inputs that need a gradient. An input used twice appears twice."""
    return [source for source, _ in node.next_functions if source is not None]


def leaves_last(order: list[Function]) -> list[Function]:
    inner = [node for node in order if not isinstance(node, AccumulateGrad)]
    leaves = [node for node in order if isinstance(node, AccumulateGrad)]
    return inner + list(dict.fromkeys(leaves))


def depth_first(root: Function, last_first: bool = False) -> list[Function]:
    """Wrong: every node once, as soon as the walk reaches it."""
    found: dict[Function, None] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            stack += inputs_of(node) if last_first else reversed(inputs_of(node))
    return list(found)


def breadth_first(root: Function, last_first: bool = False) -> list[Function]:
    """Wrong: level by level, every node once, at the first level where it appears."""
    found = {root: None}
    queue = deque([root])
    while queue:
        inputs = inputs_of(queue.popleft())
        for node in reversed(inputs) if last_first else inputs:
            if node not in found:
                found[node] = None
                queue.append(node)
    return list(found)


def every_path(root: Function, last_first: bool = False) -> Iterator[Function]:
    """Wrong: recursion without a record of visited nodes; a node comes once per path that leads to it."""
    stack = [root]
    leaves: dict[Function, None] = {}
    for _ in range(MOST_VISITS):
        if not stack:
            break
        node = stack.pop()
        if isinstance(node, AccumulateGrad):
            leaves[node] = None
            continue
        yield node
        inputs = list(dict.fromkeys(inputs_of(node)))
        stack += inputs if last_first else reversed(inputs)
    yield from leaves


def topological(root: Function, last_first: bool = False) -> list[Function]:
    """Right: reversed postorder of a depth-first walk, as in most engines for learners."""
    finished: list[Function] = []
    seen: set[Function] = set()
    stack: list[tuple[Function, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            finished.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            inputs = inputs_of(node)
            stack += [(source, False) for source in (inputs if last_first else reversed(inputs))]
    return leaves_last(finished[::-1])


def from_the_leaves(root: Function) -> list[Function]:
    """Wrong: a topological order that was not reversed."""
    order = topological(root)
    inner = [node for node in order if not isinstance(node, AccumulateGrad)]
    return [root, *(node for node in inner[::-1] if node is not root), *order[len(inner) :]]


def wrong_orders(order: Callable[..., list[Function]]) -> tuple[Order, ...]:
    """The forms of a wrong order: inputs from either side, leaves in their place or last."""
    both = [partial(order, last_first=last) for last in (False, True)]
    return (*((lambda root, walk=walk: leaves_last(walk(root))) for walk in both), *both)


RIGHT_ORDERS = tuple(partial(topological, last_first=last) for last in (False, True))
"""Right orders: an engine whose result depends on the order has to be tried with each."""
DEPTH_FIRST, BREADTH_FIRST = wrong_orders(depth_first), wrong_orders(breadth_first)


def distinct(root: Function, orders: Sequence[Order]) -> tuple[Order, ...]:
    """Those of several orders that differ for this graph, in a form for any graph that is built in the same way.

    Nodes are identified by their place in one walk, which depends on the graph alone. Their order of creation would not
    work: the nodes of leaves survive the first graph, and are older than all other nodes of the second.
    """
    number = {node: n for n, node in enumerate(topological(root))}
    kept = dict.fromkeys(tuple(number[node] for node in order(root)) for order in orders)
    return tuple(map(_rearranging, kept))


@cache
def _rearranging(numbers: tuple[int, ...]) -> Order:
    """The order that visits the nodes of any graph by these numbers, the same function at every call."""
    return partial(_rearranged, numbers=numbers)


def _rearranged(root: Function, numbers: Sequence[int]) -> list[Function]:
    walked = topological(root)
    return [walked[n] for n in numbers] if len(walked) == len(numbers) else walked
