"""Two bugs at once, for numbers that no single bug explains.

Either every failing expression is explained by one of the two, or both sit in one expression. In that case there are
too many pairs to try all. So a bug is kept only if, alone, it changes only inputs whose gradient is wrong, and explains
those that the other bug of the pair does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, repeat

from autograder.bugs.bug import Bug
from autograder.bugs.search import Search, Suspect, both, consistent_with_passing, suspects_in
from autograder.runs.engines import Run
from autograder.runs.replay import Evidence, OverBudget, Plant, same_effects, same_numbers

MOST_PAIRS = 600  # runs of two bugs at once
MOST_PLANTS = 2  # of a bug that depends on the order of visits


@dataclass(frozen=True)
class Pair:
    """Two bugs, each with the rules that it sits in (empty: not in a rule, or unknown)."""

    bugs: tuple[Bug, Bug]
    operations: tuple[tuple[str, ...], tuple[str, ...]]

    def places(self) -> dict[Bug, tuple[str, ...]]:
        """The rules that each bug sits in."""
        return dict(zip(self.bugs, self.operations, strict=True))

    def leaves_open(self, first: Alone, second: Alone) -> bool:
        """Whether two suspects of these bugs would add nothing: each place that they differ in is already left open."""
        told = self.places()
        return all(told[one.suspect.bug] in ((), one.suspect.variant.operations) for one in (first, second))

    def agreeing(self, other: Pair) -> Pair:
        """The same pair, naming only the places that `other` names too: the bug may as well sit elsewhere."""
        elsewhere = other.places()
        return Pair(
            self.bugs,
            tuple(names if elsewhere[bug] == names else () for bug, names in self.places().items()),  # type: ignore[arg-type]
        )

    def sentence(self) -> str:
        texts = [
            bug.sentence(names if len(names) == 1 else ())
            for bug, names in zip(self.bugs, self.operations, strict=True)
        ]
        return "; and ".join(texts)


@dataclass(frozen=True)
class Alone:
    """The effect of a suspect alone on the first draw of an expression: which inputs' gradients it changes, and which
    wrong ones it explains."""

    suspect: Suspect
    plant: Plant
    changes: frozenset[int]
    explains: frozenset[int]


def find_pairs(
    search: Search, failing: Sequence[Evidence], passing: Sequence[Evidence], bugs: Sequence[Bug]
) -> list[Pair]:
    """All pairs that explain every failing expression and leave the passing ones as they are."""
    found = [consistent_with_passing(search, suspects_in(search, entry, bugs), entry, passing) for entry in failing]
    if all(found) and len(failing) > 1:
        return _shared_out(found)
    unexplained = [entry for entry, suspects in zip(failing, found, strict=True) if not suspects]
    explained = [suspects for suspects in found if suspects]
    alive: dict[frozenset[Bug], Pair] | None = None
    for entry in unexplained:
        if not entry.runs:
            continue
        pairs = _together(search, entry, passing, bugs, explained)
        alive = pairs if alive is None else {key: pair for key, pair in alive.items() if key in pairs}
        if not alive:
            return []
    return list((alive or {}).values())


def _shared_out(found: Sequence[Sequence[Suspect]]) -> list[Pair]:
    """Pairs in which one bug or the other explains each failing expression."""
    places: dict[Bug, set[str]] = {}
    for suspects in found:
        for suspect in suspects:
            places.setdefault(suspect.bug, set()).update(suspect.variant.operations)
    pairs = []
    for first, second in combinations(places, 2):
        if all(any(suspect.bug in (first, second) for suspect in suspects) for suspects in found):
            pairs.append(Pair((first, second), (tuple(sorted(places[first])), tuple(sorted(places[second])))))
    return pairs


def _together(
    search: Search,
    entry: Evidence,
    passing: Sequence[Evidence],
    bugs: Sequence[Bug],
    explained: Sequence[Sequence[Suspect]],
) -> dict[frozenset[Bug], Pair]:
    """Pairs of bugs that, planted at once, explain one expression; one of them must explain each other expression."""
    pairs: dict[frozenset[Bug], Pair] = {}
    tried = 0
    for decomposition in list(search.decompositions(entry))[:1]:
        alone = _alone(search, entry, decomposition, bugs)
        number = entry.quickest
        right = entry.expected[number]
        wrong = differing(
            entry.runs[number], right.reference, search.replays.allowed(entry, number), right.draw.epsilon
        )
        for first, second in combinations(alone, 2):
            ones = {first.suspect.bug, second.suspect.bug}
            known = pairs.get(frozenset(ones))
            if not _compatible(first, second, wrong) or (known is not None and known.leaves_open(first, second)):
                continue
            if not all(any(suspect.bug in ones for suspect in suspects) for suspects in explained):
                continue
            tried += 1
            if tried > MOST_PAIRS:
                if known is not None:  # it explains the numbers; only its possible places have not all been tried
                    continue
                raise OverBudget
            if not search.replays.explains(entry, decomposition, [both(first.plant, second.plant)]):
                continue
            if len(consistent_with_passing(search, [first.suspect, second.suspect], entry, passing)) == 2:
                bugs_found = (first.suspect.bug, second.suspect.bug)
                operations = (first.suspect.variant.operations, second.suspect.variant.operations)
                pair = Pair(bugs_found, operations)
                pairs[frozenset(ones)] = pair if known is None else known.agreeing(pair)
    return pairs


def _alone(search: Search, entry: Evidence, decomposition: int, bugs: Sequence[Bug]) -> list[Alone]:
    """The effect of each suspect alone, for those that change nothing that is right."""
    number = entry.quickest
    reference, run = entry.expected[number].reference, entry.runs[number]
    allowed = search.replays.allowed(entry, number)
    epsilon = entry.expected[number].draw.epsilon
    wrong = differing(run, reference, allowed, epsilon)
    found = []
    for bug in bugs:
        for variant in search.variants(entry, decomposition, bug):
            for plant in variant.plants[:MOST_PLANTS]:
                planted = search.replays.planted(entry, number, decomposition, plant)
                if not isinstance(planted, Run) or not same_effects(planted, run, epsilon):
                    continue
                changes = differing(planted, reference, allowed, epsilon)
                if changes and changes <= wrong:
                    explains = changes - differing(planted, run, allowed, epsilon)
                    found.append(Alone(Suspect(bug, variant, decomposition), plant, changes, explains))
    return found


def differing(first: Run, second: Run, allowed: Sequence[float], epsilon: float) -> frozenset[int]:
    """The inputs whose gradients differ between two runs."""
    pairs = enumerate(zip(first.dense(), second.dense(), allowed, repeat(epsilon), strict=False))
    return frozenset(n % len(first.gradients) for n, pair in pairs if not same_numbers(*pair))


def _compatible(first: Alone, second: Alone, wrong: frozenset[int]) -> bool:
    """Whether two suspects may explain together what neither does alone."""
    if first.suspect.bug is second.suspect.bug:
        return False
    if set(first.suspect.variant.operations) & set(second.suspect.variant.operations):
        return False
    if first.changes | second.changes != wrong:
        return False
    return first.changes - second.changes <= first.explains and second.changes - first.changes <= second.explains
