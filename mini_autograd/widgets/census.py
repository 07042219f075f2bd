"""A census of a running program: which nodes and saved arrays are alive after each line and each operation.

The program runs line by line, as shown. Weak references watch the nodes and arrays without keeping them alive, so the
census counts what the program really holds.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mini_autograd.graph.function import FREED
from mini_autograd.graph.hooks import Watcher
from mini_autograd.tensors.tensor import Tensor


class Witness:
    """An object in the metadata of a node that dies with it: nodes themselves do not support weak references."""


@dataclass
class Seen:
    """A node: its operation, the round of the program that made it, and the samples at which things happened to it."""

    name: str
    round: int
    own: list[int]  # the numbers of the arrays that it saved
    born: int
    freed: int | None = None
    gone: int | None = None


@dataclass
class Sample:
    """The state after one line or one operation."""

    round: int
    line: int
    event: str
    nodes: int
    size: int


@dataclass
class Census(Watcher):
    """Runs a program and takes a sample after each line, each recorded operation, and each step of a backward pass."""

    namespace: dict[str, Any]
    known: Sequence[Any] = ()  # arrays that stay alive anyway, such as weights and data
    seen: list[Seen] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.witnesses: list[weakref.ref[Witness]] = []
        self.arrays: list[weakref.ref[np.ndarray]] = []
        self.sizes: list[int] = []
        self.at = (0, 0)

    def run(self, lines: Sequence[str], rounds: int) -> None:
        """Run the lines `rounds` times."""
        for number in range(rounds):
            for line, source in enumerate(lines):
                self.at = (number, line)
                with self.watching():
                    exec(source, self.namespace)
                self.sample("")

    @contextmanager
    def watching(self) -> Iterator[None]:
        with self:  # type: ignore[attr-defined]
            yield

    def node_was_recorded(self, node: Any) -> None:
        """Put a witness into the node, and note what it saved."""
        witness = node.metadata["witness"] = Witness()
        self.witnesses.append(weakref.ref(witness))
        own = [self.number(array) for array in node.saved_tensors if self.counts(array)]
        name = node.name().partition("Backward")[0]
        self.seen.append(Seen(name, self.at[0], own, len(self.samples)))
        node.register_prehook(lambda grads, name=name: self.sample(f"backward reaches {name}"))
        self.sample(f"{name} is recorded")

    def counts(self, array: Any) -> bool:
        return isinstance(array, np.ndarray) and not any(array is known for known in self.known)

    def number(self, array: np.ndarray) -> int:
        for number, reference in enumerate(self.arrays):
            if reference() is array:
                return number
        self.arrays.append(weakref.ref(array))
        self.sizes.append(array.nbytes)
        return len(self.arrays) - 1

    def sample(self, event: str) -> None:
        """Count what is alive now."""
        now = len(self.samples)
        freed = self.freed_nodes()
        for number, (node, reference) in enumerate(zip(self.seen, self.witnesses, strict=True)):
            if node.gone is None and reference() is None:
                node.gone = now
            if node.freed is None and number in freed:
                node.freed = now
        alive = sum(reference() is not None for reference in self.witnesses)
        size = sum(size for size, reference in zip(self.sizes, self.arrays, strict=True) if reference() is not None)
        self.samples.append(Sample(*self.at, event, alive, size))

    def freed_nodes(self) -> set[int]:
        """The nodes whose saved tensors are gone, found from the tensors that the program holds."""
        held: list[Any] = []
        for value in self.namespace.values():
            held += value if isinstance(value, list) else [value]
        stack: list[Any] = [item.grad_fn for item in held if isinstance(item, Tensor) and item.grad_fn is not None]
        numbers = {id(reference()): number for number, reference in enumerate(self.witnesses) if reference()}
        found, visited = set(), set()
        while stack:
            node = stack.pop()
            if node is None or node in visited:
                continue
            visited.add(node)
            if node.saved_tensors is FREED and "witness" in node.metadata:
                found.add(numbers[id(node.metadata["witness"])])
            stack += [source for source, _ in node.next_functions]
        return found
