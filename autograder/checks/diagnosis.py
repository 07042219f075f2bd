"""Why gradients are wrong: the bug of the bank that explains all of them, else the place where they go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from autograder.bugs.bug import Bug
from autograder.bugs.matching import Diagnosis, diagnose_all
from autograder.localize import numerical_gradient_detector
from autograder.localize.localizing import example, localize
from autograder.localize.places import Facts, Place
from autograder.runs.answers import Outcome, Problem
from autograder.runs.expected import Expected
from autograder.runs.programs import Program
from autograder.runs.reference_patch import symbol

MOST_LOCALIZED = 2  # expressions that are taken apart
MOST_IN_ONE_MISTAKE = 2  # wrong operations that a guess at one bug may stand beside

Found = TypeVar("Found")


def cause(engine: Any, outcomes: Sequence[Outcome], hidden: bool) -> dict[str, Any]:
    """The cause, as fields of `Report`. `hidden`: leave out anything that tells what was asked."""
    diagnosis, place = _explained(engine, outcomes)
    if place is None:
        bugs = tuple(bug.name for bug in diagnosis.candidates)
        facts = () if hidden else _example(engine, outcomes, diagnosis)
        return {"diagnosis": diagnosis.sentence(), "hints": _hints(diagnosis), "bugs": bugs, "place_facts": facts}
    return {
        "diagnosis": diagnosis.sentence(),
        "hints": place.hints,
        "bugs": tuple(bug.name for bug in diagnosis.candidates) or place.bugs,
        "place": place.public if hidden else place.sentence,
        "place_facts": () if hidden else place.facts,
        "place_maps": () if hidden else place.maps,
        "operations": place.operations,
    }


def named(outcome: Outcome) -> dict[str, Any]:
    """The bug or few bugs that explain gradients worked out without an engine, as fields of `Report`."""
    found = diagnose_all([outcome])
    lost = next((bug for bug in found.candidates if bug.by_hand), None)
    others = [bug for bug in found.candidates if bug.rules and not bug.drops_gradients]
    if lost is not None:
        texts = "; or ".join([lost.by_hand, *(bug.explanation for bug in others)])  # `others` give the same numbers
        beginning = "one of these: " if others else ""
        return {"diagnosis": f"{beginning}{texts}.", "bugs": (lost.name, *(bug.name for bug in others))}
    found = replace(found, candidates=tuple(bug for bug in found.candidates if bug.rules))
    if not found.candidates:
        return {}
    if found.certain is not None:  # there is no `backward` that could be at fault
        found = replace(found, certain=replace(found.certain, said_in=Bug.said_in))
    bugs = tuple(bug.name for bug in found.candidates)
    return {"diagnosis": found.sentence(), "hints": _hints(found)[:2], "bugs": bugs}


def _explained(engine: Any, outcomes: Sequence[Outcome]) -> tuple[Diagnosis, Place | None]:
    """What explains the wrong answers, from the surest evidence to the least: a bug, or the place where they go wrong,
    or guesses at bugs beside the place.
    """
    diagnosis = diagnose_all(outcomes)
    bug, guesses = diagnosis.certain, diagnosis.candidates
    # One bug gives all numbers. If gradients are missing, or have a wrong shape, what the rules return comes first.
    if bug is not None and not bug.shapes and not bug.drops_gradients:
        return diagnosis, None
    place = _place(engine, outcomes)
    if place is None:
        return diagnosis, None
    # A rule, or an operation, was seen to make a mistake that has a sentence of its own.
    if place.certain:
        return Diagnosis(), replace(place, bugs=(bug.name,)) if bug is not None and bug.drops_gradients else place
    in_backward = place.operations == ("backward",)
    in_a_rule = bool(place.operations) and not in_backward and not place.rules_right
    contradicted = (
        (in_backward and place.rules_right and all(guess.rules for guess in guesses))  # they need a wrong rule
        or (bug is None and in_a_rule and all(guess.family == "engine" for guess in guesses))  # a wrong `backward`
        or (bug is None and (place.everywhere or len(place.operations) > MOST_IN_ONE_MISTAKE))  # or less that is wrong
    )
    if contradicted:
        return Diagnosis(), place
    return diagnosis, place if bug is None else None


def _example(engine: Any, outcomes: Sequence[Outcome], diagnosis: Diagnosis) -> Facts:
    """The results of the one rule in which a bug sits, tried alone; nothing if it sits elsewhere."""
    if diagnosis.certain is None or not diagnosis.certain.rules or len(diagnosis.operations) != 1:
        return ()
    operation = symbol(diagnosis.operations[0])
    return _first(outcomes, partial(example, engine, symbol=operation)) or ()


def _place(engine: Any, outcomes: Sequence[Outcome]) -> Place | None:
    """The place where an expression goes wrong, for the shortest expression for which it can be found."""
    return _first(outcomes, partial(localize, engine))


def _first(
    outcomes: Sequence[Outcome], explain: Callable[[Program, Sequence[Expected], Problem], Found | None]
) -> Found | None:
    """The first explanation found, trying only the shortest failing expressions."""
    failing = [
        (outcome.program, outcome.expected, outcome.problem)
        for outcome in outcomes
        if outcome.problem
        and outcome.problem.status == "wrong"
        and outcome.problem.public not in numerical_gradient_detector.RIGHT_BUT
    ]
    failing.sort(key=lambda failed: len(failed[0].function.__code__.co_code))
    return next(filter(None, (explain(*failed) for failed in failing[:MOST_LOCALIZED])), None)


def _hints(diagnosis: Diagnosis) -> tuple[str, ...]:
    """A question, the misconception behind the bug, and where to look; empty if no bug is certain."""
    bug = diagnosis.certain
    if bug is None:
        return ()
    belief = f"This mistake often comes from a wrong belief: *{bug.misconception}*"
    return bug.hint, belief, f"Look at {bug.where_to_look(diagnosis.operations)}."
