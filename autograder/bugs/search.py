"""Searches for the bugs that explain a student's numbers: where each can sit in an expression, and whether it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from autograder.bugs.bug import Bug, Variant
from autograder.bugs.orders import Order, distinct
from autograder.runs.reference_patch import OPERATOR_DECOMPOSITIONS
from autograder.runs.replay import Evidence, RecordedGraph, Replays, graphs_of


@dataclass(frozen=True)
class Suspect:
    """A bug, where it would sit, and the first operator decomposition in which it explains an expression;
    `decompositions` are all in which it does and also leaves the passing expressions as they are."""

    bug: Bug
    variant: Variant
    decomposition: int
    decompositions: tuple[int, ...] = ()


class Search:
    """The ways of planting bugs in the expressions of a check, each found once, and what replays with them explain."""

    def __init__(self) -> None:
        self.replays = Replays()
        self._graphs = cache(graphs_of)
        self.variants = cache(self._variants)
        self._distinct_orders = cache(self._find_distinct_orders)

    def graph(self, entry: Evidence, decomposition: int) -> RecordedGraph:
        """What the reference records for an expression, in an operator decomposition."""
        return self._graphs(entry)[decomposition]

    def _variants(self, entry: Evidence, decomposition: int, bug: Bug) -> list[Variant]:
        """The ways of planting a bug in an expression, the same ones at every call; each order of visits once."""
        graph = self.graph(entry, decomposition)
        variants = variants_of(bug, graph.operations)
        possible = [variant for variant in variants if graph.has_arrays or not variant.arrays_only]
        return [self.with_distinct_orders(entry, decomposition, variant) for variant in possible]

    def with_distinct_orders(self, entry: Evidence, decomposition: int, variant: Variant) -> Variant:
        """The variant with one plant for each order of visits that differs in this expression."""
        return in_these_orders(variant, self._distinct_orders(entry, decomposition, variant.orders))

    def _find_distinct_orders(
        self, entry: Evidence, decomposition: int, orders: tuple[Order, ...]
    ) -> tuple[Order, ...]:
        return distinct(self.graph(entry, decomposition).root, orders)

    def decompositions(self, entry: Evidence) -> Iterator[int]:
        """The decompositions in which an expression consists of different operations."""
        yield from dict.fromkeys(
            self.same_decomposition(entry, decomposition) for decomposition in range(len(OPERATOR_DECOMPOSITIONS))
        )

    def same_decomposition(self, entry: Evidence, decomposition: int) -> int:
        """The first decomposition in which an expression consists of the same operations."""
        present = self.graph(entry, decomposition).operations
        return next(n for n in range(len(OPERATOR_DECOMPOSITIONS)) if self.graph(entry, n).operations == present)


MOST_KEPT = 10_000
"""Variants that later diagnoses find again, and with them the runs that are kept for their plants."""


@lru_cache(maxsize=MOST_KEPT)
def variants_of(bug: Bug, operations: tuple[str, ...]) -> list[Variant]:
    """The ways of planting a bug in a program with these operations."""
    return bug.variants(operations)


@lru_cache(maxsize=MOST_KEPT)
def in_these_orders(variant: Variant, orders: tuple[Order, ...]) -> Variant:
    """A variant with one plant for each of these orders of visits."""
    return variant if variant.ordered is None else replace(variant, plants=tuple(map(variant.ordered, orders)))


def suspects_in(search: Search, entry: Evidence, bugs: Sequence[Bug]) -> list[Suspect]:
    """Every way of planting one of the bugs, in one rule or in all, that gives the student's numbers."""
    return [
        Suspect(bug, variant, decomposition)
        for decomposition in search.decompositions(entry)
        for bug in bugs
        for variant in search.variants(entry, decomposition, bug)
        if search.replays.explains(entry, decomposition, variant.plants)
    ]


def consistent_with_passing(
    search: Search, suspects: Sequence[Suspect], entry: Evidence, passing: Sequence[Evidence]
) -> list[Suspect]:
    """The suspects of a failing expression that leave the passing ones as they are, with the decompositions in which
    they do. In the same decomposition, the bug must explain the failing expression and be invisible in the others."""
    found = []
    for suspect in suspects:
        spoken = [
            d
            for d in range(len(OPERATOR_DECOMPOSITIONS))
            if search.same_decomposition(entry, d) == suspect.decomposition
        ]
        kept = [d for d in spoken if all(_spares(search, suspect.variant, other, d) for other in passing)]
        if kept:
            found.append(replace(suspect, decompositions=tuple(kept)))
    return found


def _spares(search: Search, variant: Variant, entry: Evidence, decomposition: int) -> bool:
    """Whether an expression that passed would have passed with this bug, in that decomposition."""
    decomposition = search.same_decomposition(entry, decomposition)
    if variant.operations and not set(variant.operations) & set(search.graph(entry, decomposition).operations):
        return True
    return search.replays.explains(
        entry, decomposition, search.with_distinct_orders(entry, decomposition, variant).plants
    )
