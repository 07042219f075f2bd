"""The right answers: the trusted side of a check. Draws inputs, runs the reference, PyTorch and finite differences on
them, and refuses to judge when these routes disagree.

Of many candidate draws it keeps those that look different to the reference (which gradients are zero), so that both
sides of a relu are visited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from autograder.runs import finite_differences as fd
from autograder.runs.comparison import Tolerance, difference, least_tolerance, tolerances_of
from autograder.runs.engines import REFERENCE, TORCH, Draw, Run, forward, has_torch, run_trusted, values_alone
from autograder.runs.errors import LessonError, Raised
from autograder.runs.inputs import FLOAT64, Array, Fixed, Spec, draw_cotangent, key_of
from autograder.runs.methods import reference_methods
from autograder.runs.programs import Program

CANDIDATES = 12
DRAWS = 4
ATTEMPTS = 20
SHARED = 1e-5  # relative: how well the sum of a gradient at a kink must agree with a difference


@dataclass(frozen=True)
class Share:
    """At a kink, the sum of all gradient elements of some inputs (by number): one input whose elements tie for a
    maximum, or two inputs that tie for the maximum of both.
    """

    inputs: tuple[int, ...]
    total: float

    def missed_by(self, run: Run) -> float | None:
        """The sum in a run, if it differs."""
        gradients = [run.dense[number] for number in self.inputs]
        got = float(sum(np.sum(gradient) for gradient in gradients))
        size = max(1.0, float(sum(np.sum(np.abs(gradient)) for gradient in gradients)))
        return got if abs(got - self.total) > SHARED * size else None


@dataclass(frozen=True)
class Differentiated:
    """One draw and its gradients by the reference, which finite differences confirm.

    `low` and `high` bound the gradients that are right at a kink (None: no kink). `shares`: the sums that gradients
    must have there: tied elements may share a gradient in any way, but have to share all of it.
    """

    draw: Draw
    reference: Run
    numerical_difference: float
    low: tuple[Array, ...] | None = None
    high: tuple[Array, ...] | None = None
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Expected(Differentiated):
    """One draw and its right answer. `torch`: what PyTorch gives, None on a machine without it. `tolerance`: the least
    one, unless it is `measured`. `planted`: what the reference with a bug gave on this draw, kept by those who plant
    bugs.
    """

    torch: Run | None
    tolerance: Tolerance
    torch_difference: float
    planted: dict[Any, Run | Raised] = field(default_factory=dict, compare=False, repr=False)


MOST_KEPT = 1_000
LARGEST_KEPT = 10_000
_KNOWN: dict[Any, tuple[Expected, ...]] = {}
"""Answers found before: all students of a class are checked with the same expressions and the same seed, and parts of
an expression that are wrong for one of them are tried for the next one too."""


def expected_of(
    program: Program,
    cases: Sequence[Sequence[Spec]],
    seed: int | None,
    *,
    accumulates: bool = True,
    plain: bool = False,
    dtype: str = FLOAT64,
) -> tuple[Expected, ...]:
    """Draws and right answers for all cases of a program. Raises LessonError when the check itself is faulty.

    `accumulates`: the first draw of a case has a second backward call. `plain`: no draw has a cotangent of its own.
    `dtype`: what a student's engine gets, with numbers that this dtype can hold. The tolerances are the least ones:
    numbers within them are right, and before others are called wrong, the tolerances must be `measured`.
    """
    key = (tuple(tuple(map(key_of, case)) for case in cases), seed, accumulates, plain, dtype)
    return _known(program, key, lambda: _calculated(program, cases, seed, accumulates, plain, dtype))


def _known(program: Program, key: Any, calculate: Callable[[], tuple[Expected, ...]]) -> tuple[Expected, ...]:
    """An answer found before for a program of the same meaning, or a new one."""
    identity = program.identity()
    known = None if identity is None else _KNOWN.get((identity, key))
    if known is not None:
        return known
    with reference_methods():
        answer = calculate()
    if identity is not None and sum(array.size for entry in answer for array in entry.draw.inputs) <= LARGEST_KEPT:
        if len(_KNOWN) >= MOST_KEPT:
            _KNOWN.clear()
        _KNOWN[identity, key] = answer
    return answer


def _calculated(
    program: Program, cases: Sequence[Sequence[Spec]], seed: int | None, accumulates: bool, plain: bool, dtype: str
) -> tuple[Expected, ...]:
    generator = np.random.default_rng([seed or 0, program.seed()])
    found: list[Differentiated] = []
    for case in cases:
        found += _draws_of_case(program, case[: len(program.arguments)], generator, accumulates, plain, dtype)
    if not any(np.any(gradient != 0) for entry in found for gradient in entry.reference.dense):
        raise LessonError("the gradient is zero wherever it is checked: an engine that does nothing would pass")
    return _beside_pytorch(program, found)


def measured(program: Program, expected: Sequence[Expected]) -> tuple[Expected, ...]:
    """The same right answers of a program with whole tolerances, which take its conditioning into account."""
    key = ("measured", *((entry.draw.key(), entry.low is None) for entry in expected))
    return _known(program, key, lambda: _with_whole_tolerances(program, expected))


def _with_whole_tolerances(program: Program, expected: Sequence[Expected]) -> tuple[Expected, ...]:
    draws, references = [entry.draw for entry in expected], [entry.reference for entry in expected]
    tolerances = tolerances_of(program, draws, references)
    return tuple(replace(entry, tolerance=one) for entry, one in zip(expected, tolerances, strict=True))


def expected_of_draws(program: Program, draws: Sequence[Draw]) -> tuple[Expected, ...]:
    """The right answers for given draws, with measured tolerances."""
    return _known(program, tuple(draw.key() for draw in draws), lambda: _calculated_on(program, draws))


def _calculated_on(program: Program, draws: Sequence[Draw]) -> tuple[Expected, ...]:
    generator = np.random.default_rng(0)
    references = run_trusted(REFERENCE, program, draws)
    found = [_differentiated(program, *each, True, generator) for each in zip(draws, references, strict=True)]
    answers = _beside_pytorch(program, [entry for entry in found if entry is not None])
    return _with_whole_tolerances(program, answers)


def answers_by_reference(program: Program, draws: Sequence[Draw]) -> tuple[Expected, ...]:
    """The right answers by the reference alone, with the least tolerances: numbers within them are right, and only
    others need the other routes.
    """
    key = ("by the reference", *(draw.key() for draw in draws))
    return _known(program, key, lambda: _calculated_by_reference(program, draws))


def _calculated_by_reference(program: Program, draws: Sequence[Draw]) -> tuple[Expected, ...]:
    return tuple(
        Expected(draw, run, 0.0, torch=run, tolerance=least_tolerance(draw, run), torch_difference=0.0)
        for draw, run in zip(draws, run_trusted(REFERENCE, program, draws), strict=True)
    )


def _draws_of_case(
    program: Program,
    specs: Sequence[Spec],
    generator: np.random.Generator,
    accumulates: bool,
    plain: bool,
    dtype: str,
) -> list[Differentiated]:
    """The draws of a case. None of them lies at a kink unless all arguments are fixed."""
    fixed = all(isinstance(spec, Fixed) for spec in specs)
    with values_alone():
        shape = forward(program, [spec.draw(generator) for spec in specs]).shape
    kept: list[Differentiated] = []
    for _ in range(ATTEMPTS):
        missing = DRAWS - len(kept)
        for draw, run in _candidates(program, specs, shape, generator, missing, DRAWS if fixed else CANDIDATES):
            again = accumulates and not kept
            finished = _finished(draw, shape, generator, again, plain or not kept, dtype)
            same = finished.cotangent is not None and finished.again is None and finished.dtype == FLOAT64
            reference = run if same else run_trusted(REFERENCE, program, [finished])[0]
            entry = _differentiated(program, finished, reference, fixed, generator)
            kept += [entry] if entry is not None else []
        if len(kept) >= DRAWS:
            return kept[:DRAWS]
    raise LessonError(
        "the reference and finite differences disagree, or the inputs always lie at a kink or where the expression "
        "is not finite"
    )


def _candidates(
    program: Program,
    specs: Sequence[Spec],
    shape: tuple[int, ...],
    generator: np.random.Generator,
    keep: int,
    many: int,
) -> list[tuple[Draw, Run]]:
    """Draws with finite results; first one of each pattern of zero gradients, then any."""
    draws = [Draw(tuple(spec.draw(generator) for spec in specs), draw_cotangent(generator, shape)) for _ in range(many)]
    runs = run_trusted(REFERENCE, program, draws)
    finite = [
        (draw, run)
        for draw, run in zip(draws, runs, strict=True)
        if all(np.all(np.isfinite(array)) for array in (run.value, *run.dense))
    ]
    patterns: dict[tuple[bool, ...], int] = {}
    for number, (_, run) in enumerate(finite):
        patterns.setdefault(_pattern(run), number)
    first = list(patterns.values())
    order = first + [number for number in range(len(finite)) if number not in first]
    return [finite[number] for number in order[:keep]]


def _pattern(run: Run) -> tuple[bool, ...]:
    """Which gradients contain zeros, and which contain anything else."""
    return tuple(bool(test) for gradient in run.dense for test in (np.any(gradient == 0), np.any(gradient != 0)))


def _finished(
    draw: Draw, shape: tuple[int, ...], generator: np.random.Generator, again: bool, plain: bool, dtype: str
) -> Draw:
    """The draw with its second backward call, and without a cotangent if plain `backward()` is to be tried."""
    second = draw_cotangent(generator, shape) if again else None
    return Draw.in_dtype(dtype, draw.inputs, None if plain and shape == () else draw.cotangent, second)


def _differentiated(
    program: Program, draw: Draw, reference: Run, fixed: bool, generator: np.random.Generator
) -> Differentiated | None:
    """The draw beside finite differences; None when it lies at or near a kink that another draw can avoid."""
    numerical, suspicious = _compare_with_values(program, draw, reference, generator)
    if not suspicious:
        return Differentiated(draw, reference, numerical)
    if not fixed:
        return None
    low, high = _one_sided(program, draw, reference)
    return Differentiated(draw, reference, numerical, low, high, _shares(program, draw, reference, low, high))


def _beside_pytorch(program: Program, found: Sequence[Differentiated]) -> tuple[Expected, ...]:
    """The answers for these draws. PyTorch, if installed, runs all of them at once. The tolerances are measured if it
    differs by more than the least ones.
    """
    draws = [entry.draw for entry in found]
    torches: list[Run] | list[None] = run_trusted(TORCH, program, draws) if has_torch() else [None] * len(draws)
    answers = tuple(
        Expected(
            **vars(entry),
            torch=torch,
            tolerance=least_tolerance(entry.draw, entry.reference),
            torch_difference=0.0 if torch is None else difference(entry.reference, torch),
        )
        for entry, torch in zip(found, torches, strict=True)
    )
    if all(entry.low is not None or _is_pytorchs(entry) for entry in answers):
        return answers
    answers = _with_whole_tolerances(program, answers)
    if all(entry.low is not None or _is_pytorchs(entry) for entry in answers):
        return answers
    raise LessonError("the reference and PyTorch disagree on this expression")


def _is_pytorchs(entry: Expected) -> bool:
    """Whether PyTorch, if installed, gives the answer of the reference."""
    return entry.torch is None or entry.tolerance.accepts(entry.reference, entry.torch)


def _compare_with_values(
    program: Program, draw: Draw, reference: Run, generator: np.random.Generator
) -> tuple[float, bool]:
    """The reference beside finite differences along two random lines: largest difference, and whether it is odd."""
    largest, suspicious = 0.0, False
    seed = draw.seed(reference.value.shape)
    for _ in range(2):
        line = fd.random_line(generator, draw.inputs)
        products = [g * d for g, d in zip(reference.dense, line, strict=False)]
        along = float(sum(np.sum(product) for product in products))
        moved = float(sum(np.sum(np.abs(product)) for product in products))
        scale = max(1e-300, moved, float(np.max(np.abs(seed), initial=0.0)))
        slope = _slope(program, draw, reference, line)
        largest = max(largest, abs(slope.central - along))
        suspicious = suspicious or slope.kink(scale) or not slope.agrees(along, scale)
    return largest, suspicious


def as_pytorch(entry: Expected) -> Expected:
    """The answer for an exercise that states a convention for kinks: even there, only PyTorch's gradient is right. Its
    tolerance must be measured.
    """
    if entry.low is None:
        return entry
    if not _is_pytorchs(entry):
        raise LessonError("the reference and PyTorch disagree on this expression")
    return replace(entry, low=None, high=None)


def numerical_gradient(program: Program, entry: Expected, number: int, index: tuple[int, ...]) -> float:
    """One element of a gradient by finite differences."""
    return _slope(program, entry.draw, entry.reference, fd.axis(entry.draw.inputs, number, index)).central


def _slope(program: Program, draw: Draw, reference: Run, line: Sequence[Array]) -> fd.Slope:
    """The slope along a line of the output, weighed with the cotangent of the draw."""
    seed = draw.seed(reference.value.shape)

    def weighed(value: Array) -> float:
        return float(np.sum(seed * value))

    with values_alone():
        return fd.slope(
            lambda inputs: weighed(forward(program, inputs)), draw.inputs, line, here=weighed(reference.value)
        )


def _one_sided(program: Program, draw: Draw, reference: Run) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Bounds of the right gradients at a kink, element by element. Raises LessonError if the reference is outside."""
    seed = draw.seed(reference.value.shape)
    lows, highs = [], []
    for number, gradient in enumerate(reference.dense[: len(draw.inputs)]):
        low = np.array(np.broadcast_to(gradient, draw.inputs[number].shape))
        high = low.copy()
        for index in np.ndindex(low.shape):
            slope = _slope(program, draw, reference, fd.axis(draw.inputs, number, index))
            scale = max(abs(slope.right), abs(slope.left), float(np.max(np.abs(seed))))
            ends = sorted((slope.left, slope.right))
            if not ends[0] - fd.GAP * scale <= low[index] <= ends[1] + fd.GAP * scale:
                raise LessonError("the reference and finite differences disagree on this expression")
            if slope.kink(scale):  # the ends are known as exactly as differences can tell
                low[index] = min(ends[0] - fd.ONE_SIDED * scale, float(low[index]))
                high[index] = max(ends[1] + fd.ONE_SIDED * scale, float(high[index]))
        lows.append(low)
        highs.append(high)
    return tuple(lows), tuple(highs)


def _shares(
    program: Program, draw: Draw, reference: Run, low: Sequence[Array], high: Sequence[Array]
) -> tuple[Share, ...]:
    """The sums of the gradients of each input, and of all inputs together, if some are at a kink: the slope along the
    line that moves all their elements alike. There is none if the output has a kink on that line too, or if the chain
    rule itself does not give that slope, as in relu(a) - relu(-b) at zero.
    """
    together = tuple(range(len(draw.inputs)))
    at_kink = [bool(np.any(low[number] < high[number])) for number in together]
    groups = [(number,) for number in together if at_kink[number] and draw.inputs[number].size > 1]
    groups += [together] if sum(at_kink) > 1 else []  # type: ignore[list-item]
    slopes = [(group, _slope_together(program, draw, reference, group)) for group in groups]
    found = [Share(group, total) for group, total in slopes if total is not None]
    return tuple(share for share in found if share.missed_by(reference) is None)


def _slope_together(program: Program, draw: Draw, reference: Run, numbers: Sequence[int]) -> float | None:
    """The slope along the line that moves all elements of these inputs alike; None if an element of the output has a
    kink on it.
    """
    line = [np.full(other.shape, float(n in numbers)) for n, other in enumerate(draw.inputs)]
    with values_alone():
        along: Any = fd.slope(partial(forward, program), draw.inputs, line, reference.value)  # type: ignore[arg-type]
    if np.any(np.abs(along.right - along.left) > fd.GAP * np.maximum(1.0, np.abs(along.central))):
        return None
    return float(np.sum(draw.seed(along.central.shape) * along.central))
