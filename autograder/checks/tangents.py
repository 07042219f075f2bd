"""`check_tangents`: a student's `jvp(function, inputs, tangents)`, forward mode, on expressions and random directions.

The right tangent comes from the reference's forward mode. The gradients of PyTorch, which `expected_of` has compared
with finite differences, must agree with it: the cotangent times the tangent is the gradient times the direction.
(PyTorch's own forward mode takes half a second for its first call, most of it imports.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from autograder.cards.check_report import Line, Report
from autograder.checks.functions import Mismatch, allowed_for, compare_numbers, disturbed
from autograder.localize.showing import shown
from autograder.runs import engine_protocol
from autograder.runs.answers import Unusable, failure_in, number_or_array
from autograder.runs.comparison import within
from autograder.runs.context import CheckContext, tell
from autograder.runs.engines import REFERENCE, run_where_it_lives
from autograder.runs.errors import LessonError
from autograder.runs.expected import Expected, expected_of
from autograder.runs.finite_differences import random_line
from autograder.runs.inputs import Array, Spec, cases_of
from autograder.runs.methods import reference_methods
from autograder.runs.programs import Program, programs_of
from autograder.runs.rounding import SAMPLES
from mini_autograd import func

AGREEMENT = 1e-9  # relative: how well the trusted routes must agree


@dataclass(frozen=True)
class Push:
    """One call: inputs, a direction, the right value and tangent, how far these may be off, and the tangents that
    likely mistakes give, by their descriptions."""

    inputs: tuple[Array, ...]
    direction: tuple[Array, ...]
    right: tuple[Array, Array]
    allowed: tuple[Array, Array]
    mistakes: Mapping[str, Array]


def tangents_report(
    jvp: Any,
    expression: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    inputs: Sequence[Any],
    context: CheckContext,
    *,
    points: float | None,
    name: str | None,
) -> Report:
    """Check a forward mode on every expression. Raises LessonError when the check is faulty."""
    cases = cases_of(inputs)
    programs = programs_of(expression, len(cases[0]))
    tell(context)
    found = [_pushes(program, cases, context.seed) for program in programs]
    lines, guesses = [], []
    for number, (program, pushes) in enumerate(zip(programs, found, strict=True)):
        calls = [[program.function, push.inputs, push.direction] for push in pushes]
        answer = run_where_it_lives(jvp, engine_protocol.call_jvp, calls)
        line = _line(program, pushes, answer, number, context.hidden)
        lines.append(line)
        guesses += [] if line.passed else [_guess(pushes, answer)]
    likely = guesses[0] if guesses and len(set(guesses)) == 1 else ""
    return Report(
        title="Hidden check" if context.hidden else name or "Tangents",
        lines=tuple(lines),
        earned=(points or 0.0) * sum(line.passed for line in lines) / len(lines),
        points=points,
        diagnosis=likely,
        hidden=context.hidden,
    )


def _pushes(program: Program, cases: Sequence[Sequence[Spec]], seed: int | None) -> list[Push]:
    generator = np.random.default_rng([seed or 0, program.seed()])
    return [_push(program, entry, generator) for entry in expected_of(program, cases, seed, accumulates=False)]


def _push(program: Program, entry: Expected, generator: np.random.Generator) -> Push:
    inputs = entry.draw.inputs
    line = tuple(np.asarray(array) for array in random_line(generator, inputs))
    right = _by_reference(program, inputs, line)
    forward = entry.draw.seed(right[1].shape) * right[1]
    backward = [gradient * v for gradient, v in zip((entry.torch or entry.reference).dense, line, strict=True)]
    scale = float(np.sum(np.abs(forward))) + sum(float(np.sum(np.abs(terms))) for terms in backward)
    if abs(float(np.sum(forward)) - sum(float(np.sum(terms)) for terms in backward)) > AGREEMENT * scale:
        raise LessonError(f"the trusted engines disagree about the tangent of {program.name}")
    moved = [
        list(_by_reference(program, *([disturbed(a, generator) for a in arrays] for arrays in (inputs, line))))
        for _ in range(SAMPLES)
    ]
    value, tangent = allowed_for(list(right), moved)
    return Push(inputs, line, right, (value, tangent), dict(_mistakes(program, inputs, line, right)))


def _by_reference(program: Program, inputs: Sequence[Array], line: Sequence[Array]) -> tuple[Array, Array]:
    with reference_methods(), np.errstate(all="ignore"):
        pair = func.jvp(program.function, tuple(map(REFERENCE, inputs)), tuple(map(REFERENCE, line)))
    return np.asarray(pair[0].data, dtype=np.float64), np.asarray(pair[1].data, dtype=np.float64)


def _mistakes(
    program: Program, inputs: Sequence[Array], line: Sequence[Array], right: tuple[Array, Array]
) -> Iterator[tuple[str, Array]]:
    """The wrong tangents that likely mistakes give, with descriptions; only those that differ from the right one."""
    value, tangent = right
    ones = [np.ones_like(array) for array in line]
    others: list[tuple[str, Any]] = [("the tangents of the inputs are ignored: every element moves at rate 1", ones)]
    for number, name in enumerate(program.arguments if len(inputs) > 1 else ()):
        still = [np.zeros_like(array) if number == place else array for place, array in enumerate(line)]
        others.append((f"the tangent of `{name}` has no effect, as if `{name}` were a constant", still))
    if len(inputs) == 2 and inputs[0].shape == inputs[1].shape:
        others.append(("the slopes, or the tangents, of the two inputs are swapped", list(reversed(line))))
    found = [(text, _by_reference(program, inputs, other)[1]) for text, other in others]
    found += [("the sign of the tangent is wrong", -tangent), ("the value was returned instead of the tangent", value)]
    for text, array in found:
        if not within(array, tangent, np.asarray(1e-6)):
            yield text, array


def _line(program: Program, pushes: Sequence[Push], answer: Any, number: int, hidden: bool) -> Line:
    """The verdict on all calls for one expression: the first thing that is wrong."""
    title = f"hidden expression {number + 1}" if hidden else program.name
    for place, push in enumerate(pushes):
        call = answer[place] if isinstance(answer, list) and place < len(answer) else {}
        problem = failure_in(call)
        facts = () if hidden else _facts(program, push)
        if problem is not None:
            return Line(title, problem.status, problem.public if hidden else problem.text, details=facts)
        try:
            if not _is_pair(call):
                raise Mismatch("expected two results: the value and its tangent", "two results are expected")
            whats = ("the value", "the tangent")
            facts += () if hidden else _yours(call["result"][1])
            for what, got, right, allowed in zip(whats, call["result"], push.right, push.allowed, strict=True):
                compare_numbers(got, right, allowed, what)
            if call.get("changed") is not False:
                text = "the function changed an array that was passed to it"
                raise Mismatch(text, text)
        except Mismatch as mismatch:
            return Line(title, "wrong", mismatch.public if hidden else str(mismatch), details=facts)
    return Line(title, "right")


def _facts(program: Program, push: Push) -> tuple[tuple[str, str], ...]:
    inputs = [(name, shown(array)) for name, array in zip(program.arguments, push.inputs, strict=True)]
    moving = [(f"tangent of {name}", shown(v)) for name, v in zip(program.arguments, push.direction, strict=True)]
    return (*inputs, *moving, ("tangent, expected", shown(push.right[1])))


def _yours(tangent: Any) -> tuple[tuple[str, str], ...]:
    """The student's tangent as a line of the card; nothing if it is no array of numbers, which the verdict says."""
    try:
        return (("tangent, yours", shown(number_or_array(tangent))),)
    except Unusable:
        return ()


def _guess(pushes: Sequence[Push], answer: Any) -> str:
    """The one mistake that gives the student's tangent in every call; empty if there is none, or several."""
    if not isinstance(answer, list) or len(answer) != len(pushes) or not all(map(_is_pair, answer)):
        return ""
    try:
        tangents = [number_or_array(call["result"][1]) for call in answer]
    except Unusable:
        return ""
    fitting = [text for text in pushes[0].mistakes if all(map(partial(_gives, text), pushes, tangents))]
    return f"{fitting[0]}." if len(fitting) == 1 else ""


def _gives(mistake: str, push: Push, tangent: Array) -> bool:
    right = push.mistakes.get(mistake)
    return right is not None and right.shape == tangent.shape and within(tangent, right, 4 * push.allowed[1])


def _is_pair(call: Any) -> bool:
    return isinstance(call, dict) and isinstance(call.get("result"), list) and len(call["result"]) == 2
