"""Which bug explains a student's wrong numbers: run each bug that applies on the same draws, and compare.

A bug counts only if it gives the student's numbers in every draw of every failing expression, and does not contradict
them in the expressions that pass. A single such bug is certain, unless the expressions use operations that no bug can
sit in, such as writes through views. A few are named together. If there is none, nothing is said.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from autograder.bugs.bank import BUGS
from autograder.bugs.bug import Bug, Variant
from autograder.bugs.orders import Order, distinct
from autograder.runs.answers import Outcome
from autograder.runs.methods import reference_methods
from autograder.runs.reference_patch import OPERATIONS
from autograder.runs.replay import OverBudget, RecordedGraph, Replays, graph_of, size_of

LARGEST = 20_000  # numbers in one draw
MOST_NAMED = 3


@dataclass(frozen=True)
class Diagnosis:
    """The explanation of a student's numbers.

    `certain`: the one bug that explains them. `candidates`: all that do, the likeliest first. `operations`: the rules
    that the certain bug sits in.
    """

    certain: Bug | None = None
    candidates: tuple[Bug, ...] = ()
    operations: tuple[str, ...] = ()

    def sentence(self) -> str:
        """One sentence for the student; empty if nothing is known."""
        if self.certain is not None:
            return f"{self.certain.sentence(self.operations)}."
        texts = [bug.explanation for bug in self.candidates]
        if len(texts) == 1:  # it fits, but an exception alone proves nothing
            return f"{texts[0]}. This fits, but it is not certain."
        return f"one of these: {'; or '.join(texts)}." if texts else ""


def diagnose_all(evidence: Sequence[Outcome]) -> Diagnosis:
    """The diagnosis of a whole check; empty if it would take too long."""
    failing = [entry for entry in evidence if entry.problem and (entry.runs or entry.comparison.raised)]
    passing = [entry for entry in evidence if not entry.problem and entry.runs]
    if not failing or max(map(size_of, evidence)) > LARGEST:
        return Diagnosis()
    replays = Replays()
    plain, composed = Search(replays, False), Search(replays, True)
    with reference_methods(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        failing.sort(key=lambda entry: len(plain.graph(entry).operations))
        try:
            found = {bug: (plain, fits) for bug, fits in plain.explaining(failing, passing).items()}
            if any(composed.graph(entry).composed for entry in failing):
                also = composed.explaining(failing, passing)
                found |= {bug: (composed, fits) for bug, fits in also.items() if bug not in found}
            if not 0 < len(found) <= MOST_NAMED:
                return Diagnosis()
            bug, (search, fits) = next(iter(found.items()))
            certain = (
                len(found) == 1
                and any(entry.runs for entry in failing)  # an exception alone proves nothing
                and all(name in OPERATIONS for entry in failing for name in plain.graph(entry).operations)
                # if it only fits when, say, `/` is made of `**`, something has to show that it is
                and (search is plain or not all(search.graph(entry).composed for entry in failing))
                and all(map(search.is_steady, failing, fits))
            )
        except OverBudget:
            return Diagnosis()
    if not certain:
        return Diagnosis(None, tuple(found))
    alone = [{variant.operations[0] for variant in variants if len(variant.operations) == 1} for variants in fits]
    common = set.intersection(*alone)
    return Diagnosis(bug, (bug,), tuple(common) if len(common) == 1 else ())


Explaining = dict[Bug, list[list[Variant]]]
"""The bugs that each explain everything, and for each failing expression the variants that do."""


class Search:
    """Replays the expressions of a check with each bug that can sit in them, and compares with the student's numbers.

    `composed`: in an engine that makes its differences and quotients of other operations, so that a bug in `*` or `**`
    also shows in `-` and `/`.
    """

    def __init__(self, replays: Replays, composed: bool) -> None:
        self.replays, self.composed = replays, composed
        self.graph = cache(self._graph)
        self._distinct_orders = cache(self._find_distinct_orders)

    def _graph(self, entry: Outcome) -> RecordedGraph:
        """What the reference records for an expression; as it is, if composing changes nothing."""
        plain = graph_of(entry, False)
        other = graph_of(entry, True) if self.composed else plain
        return plain if plain.operations == other.operations else other

    def explaining(self, failing: Sequence[Outcome], passing: Sequence[Outcome]) -> Explaining:
        """The bugs that give the student's numbers in each failing expression, in one rule or in all, and would not
        show in the passing ones.
        """
        found: Explaining = {bug: [] for bug in BUGS}
        for entry in failing:
            for bug in list(found):
                variants = [one for one in self._variants(entry, bug) if self._explains(entry, one)]
                if fitting := [one for one in variants if all(self._spares(one, other) for other in passing)]:
                    found[bug].append(fitting)
                else:
                    del found[bug]
        return dict(sorted(found.items(), key=lambda item: len(item[0].operations)))

    def is_steady(self, entry: Outcome, variants: Sequence[Variant]) -> bool:
        """Whether a single plant gives the student's numbers in every draw. Several that take turns fit too easily: a
        draw that is right fits the plants that change nothing.
        """
        graph = self.graph(entry)
        return any(self.replays.explains(entry, graph.composed, (plant,)) for one in variants for plant in one.plants)

    def _variants(self, entry: Outcome, bug: Bug) -> list[Variant]:
        """The ways of planting a bug in an expression, the same ones at every call; each order of visits once."""
        graph = self.graph(entry)
        variants = variants_of(bug, graph.operations)
        return [self._in_orders_of(entry, one) for one in variants if graph.has_arrays or not one.arrays_only]

    def _in_orders_of(self, entry: Outcome, variant: Variant) -> Variant:
        """The variant with one plant for each order of visits that differs in this expression."""
        return in_these_orders(variant, self._distinct_orders(entry, variant.orders))

    def _find_distinct_orders(self, entry: Outcome, orders: tuple[Order, ...]) -> tuple[Order, ...]:
        return distinct(self.graph(entry).root, orders)

    def _explains(self, entry: Outcome, variant: Variant) -> bool:
        return self.replays.explains(entry, self.graph(entry).composed, variant.plants)

    def _spares(self, variant: Variant, entry: Outcome) -> bool:
        """Whether an expression that passed would have passed with this bug."""
        if variant.operations and not set(variant.operations) & set(self.graph(entry).operations):
            return True
        return self._explains(entry, self._in_orders_of(entry, variant))


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
