"""How an engine finds gradients that are right: they should come from the chain rule.

A difference quotient of second order betrays itself by its digits (see `comparison.py`), but a complex step gets them
all right, and a quotient of high order nearly all. So every expression that passed is run once more, on a draw made for
this, and watched (see `watching.py`): what backward executes, how often it repeats what forward has executed, and at
which points it evaluates functions. In that draw the numbers of an input differ by many orders of magnitude, as far as
nothing overflows. The chain rule does not mind; a difference loses digits, because no step suits all of them. The
observations come from the student's process and can be forged, but that takes more than writing an engine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograder.localize import watching
from autograder.runs.comparison import (
    Tolerance,
    Worst,
    least_tolerance,
    tolerances_of,
    two_numbers,
    within,
    worst_element,
)
from autograder.runs.engines import REFERENCE, TORCH, Draw, Run, has_torch, run_trusted, run_where_it_lives
from autograder.runs.errors import LessonError
from autograder.runs.expected import DRAWS, Expected
from autograder.runs.inputs import Array, AwayFromZero, Spec, rounded
from autograder.runs.programs import Program

FEWEST_ELEMENTS = 8  # with fewer numbers in an input, calling forward once for each is not much
# An engine that records its backward pass runs its own operations in it, a few for each one in forward.
MOST_REPEATED = 8
MOST_AROUND = 2
SPANS = ((-10, 10), (-10, 4), (-7, 2))  # exponents of 2 by which the numbers of a trial are stretched
LARGEST = 1e120
MOST_KEPT = 500
NOT_BACKPROPAGATION = "the gradients are right, but they do not come from the chain rule with a formula for each slope"
NOT_SEEN = "the gradients are right, but it cannot be seen whether they come from the chain rule"
RIGHT_BUT = (NOT_BACKPROPAGATION, NOT_SEEN)


@dataclass(frozen=True)
class WatchedDraw:
    """The draw on which an engine is watched, and, if the draw has numbers of very different size, what is right. The
    tolerance is the least one, unless the trial is `measured`.
    """

    draw: Draw
    reference: Run | None = None
    tolerance: Tolerance | None = None

    @property
    def elements(self) -> int:
        return max((value.size for value in self.draw.inputs), default=0)

    def measured(self, program: Program) -> WatchedDraw:
        """The same trial with the whole tolerance."""
        if self.reference is None:
            return self
        return replace(self, tolerance=tolerances_of(program, [self.draw], [self.reference])[0])


def reasons(
    engine: Any, passed: Sequence[tuple[Program, Sequence[Expected]]], cases: Sequence[Sequence[Spec]]
) -> list[str]:
    """For each expression with right gradients, why they do not count after all, or an empty text."""
    if not passed:
        return []
    trials = [trial_of(program, expected, cases) for program, expected in passed]
    sent = [
        {"function": program.function, "draw": trial.draw.sent()}
        for (program, _), trial in zip(passed, trials, strict=True)
    ]
    answers = run_where_it_lives(engine, watching.watch_programs, sent)
    if not isinstance(answers, list) or len(answers) != len(passed):
        return [""] * len(passed)
    return [
        reason(answer, trial, program.arguments) and reason(answer, trial.measured(program), program.arguments)
        for answer, trial, (program, _) in zip(answers, trials, passed, strict=True)
    ]


def reason(entry: Any, trial: WatchedDraw, arguments: Sequence[str]) -> str:
    """Why right gradients do not count. `entry` is what the student's process said, and may be anything."""
    if not isinstance(entry, dict) or "forward" not in entry:
        return ""
    if entry.get("watched") is False:
        return f"{NOT_SEEN}: backward removes the profiler that watches it"
    if entry.get("elsewhere") is True:
        return f"{NOT_SEEN}: something is calculated in another thread or process, or waited for"
    said = _of_what_was_seen(entry, trial.elements) or _of_digits(entry, trial, arguments)
    return f"{NOT_BACKPROPAGATION}: {said}" if said else ""


def _of_what_was_seen(entry: dict[str, Any], elements: int) -> str:
    if entry.get("complex") is True:
        return "backward calculates with complex numbers, as in a complex-step estimate"
    forward, repeated, around = (entry.get(key) for key in ("forward", "repeated", "around"))
    if type(around) is int and around > MOST_AROUND:
        at = f"at {around} points around the point where forward evaluated it"
        return f"a function is evaluated {at}, as in a difference quotient"
    if type(forward) is not int or type(repeated) is not int or elements < FEWEST_ELEMENTS:
        return ""
    if repeated >= elements and repeated > MOST_REPEATED * max(1, forward):
        again = f"backward runs operations of forward {repeated} times for an input of {elements} numbers"
        return f"{again}, as in a difference quotient"
    return ""


def _of_digits(entry: dict[str, Any], trial: WatchedDraw, arguments: Sequence[str]) -> str:
    """What is wrong if numbers of very different size meet. An engine whose formulas overflow there is excused, as is
    an engine that gets the value itself wrong.
    """
    if trial.reference is None or trial.tolerance is None:
        return ""
    value, gradients = _array(entry.get("value")), entry.get("gradients")
    if value is None or not within(value, trial.reference.value, trial.tolerance.value):
        return ""
    if not isinstance(gradients, list) or len(gradients) != len(trial.reference.gradients):
        return ""
    worst: list[Worst] = []
    rows = zip(arguments, gradients, trial.reference.dense, trial.tolerance.gradients, strict=False)
    for name, gradient, right, allowed in rows:
        if gradient is None:
            continue
        got = _array(gradient)
        if got is None or got.shape != right.shape:
            return ""
        found = worst_element(f"{name}.grad", got, right, right, allowed)
        worst += [] if found is None else [found]
    if not worst:
        return ""
    most = max(worst, key=lambda one: one.excess)
    expected, got_text = two_numbers(most.expected, most.got)
    numbers = f"{most.where()} is {got_text} instead of {expected}"
    as_in = "a difference quotient does" + ", or a rule that takes a small number for 0" * (most.got == 0)
    return f"they lose digits when numbers of very different sizes are combined ({numbers}), as {as_in}"


def _array(value: Any) -> Array | None:
    """A finite array of numbers, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.ndarray)):
        return None
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind in "iuf" and np.all(np.isfinite(array)) else None


# The draw


_KNOWN: dict[Any, WatchedDraw] = {}


def trial_of(program: Program, expected: Sequence[Expected], cases: Sequence[Sequence[Spec]]) -> WatchedDraw:
    """The largest draw of an expression, its numbers stretched as far as nothing overflows."""
    number = max(range(len(expected)), key=lambda n: sum(value.size for value in expected[n].draw.inputs))
    draw = replace(expected[number].draw, again=None)
    key = (program.identity(), draw.dtype, b"".join(value.tobytes() for value in draw.inputs), program.arguments)
    if key[0] is not None and key in _KNOWN:
        return _KNOWN[key]
    specs = cases[min(number // DRAWS, len(cases) - 1)]
    trial = next(filter(None, (_stretched(program, draw, specs, span) for span in SPANS)), WatchedDraw(draw))
    if key[0] is not None:
        if len(_KNOWN) >= MOST_KEPT:
            _KNOWN.clear()
        _KNOWN[key] = trial
    return trial


def _stretched(program: Program, draw: Draw, specs: Sequence[Spec], span: tuple[int, int]) -> WatchedDraw | None:
    """A trial that stretches numbers which may have any size and sign; None if an answer overflows or is uncertain."""
    free = [isinstance(spec, AwayFromZero) for spec in specs[: len(draw.inputs)]]
    if not any(free):
        return None
    generator = np.random.default_rng([program.seed(), *(abs(end) for end in span)])
    powers = [_powers(generator, n, value.shape, span) for n, value in enumerate(draw.inputs)]
    inputs = tuple(
        rounded(value * power, draw.dtype) if may_grow else value
        for value, power, may_grow in zip(draw.inputs, powers, free, strict=True)
    )
    stretched = replace(draw, inputs=inputs)
    try:
        with np.errstate(all="ignore"):
            engines = (REFERENCE, TORCH) if has_torch() else (REFERENCE, REFERENCE)
            reference, torch = (run_trusted(engine, program, [stretched])[0] for engine in engines)
            tolerance = least_tolerance(stretched, reference)
            if not tolerance.accepts(reference, torch):
                [tolerance] = tolerances_of(program, [stretched], [reference])
    except (LessonError, ArithmeticError):
        return None
    arrays = (reference.value, *reference.dense, tolerance.value, *tolerance.gradients)
    sizes = [float(np.max(np.abs(array), initial=0.0)) for array in arrays]
    certain = all(math.isfinite(size) and size < LARGEST for size in sizes) and tolerance.accepts(reference, torch)
    return WatchedDraw(stretched, reference, tolerance) if certain else None


def _powers(generator: np.random.Generator, number: int, shape: tuple[int, ...], span: tuple[int, int]) -> Array:
    """Powers of 2 between two ends. Single numbers are near an end: the upper and the lower one in turn, by input."""
    low, high = span
    if np.prod(shape) == 1:
        low, high = (low, low + 2) if number % 2 else (high - 2, high)
    return np.asarray(np.exp2(generator.uniform(low, high, shape)), dtype=np.float64)
