"""Checks of plain functions: same result as a reference function, and gradients that a student wrote by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograder.cards.check_report import Line, Report
from autograder.localize.error_patterns import arrays_of, in_common
from autograder.localize.showing import shown
from autograder.runs import engine_protocol
from autograder.runs.answers import Comparison, Outcome, Problem, Unusable, failure_in, number_or_array, shown_shape
from autograder.runs.comparison import EPSILON, ROUNDINGS, explained, largest_finite, worst_element
from autograder.runs.context import CheckContext, tell
from autograder.runs.engines import Run, run_where_it_lives
from autograder.runs.errors import LessonError
from autograder.runs.expected import DRAWS, Expected, expected_of, measured
from autograder.runs.inputs import Array, Spec, cases_of
from autograder.runs.programs import Program, argument_names, programs_of
from autograder.runs.rounding import DISTURBANCE, SAMPLES
from autograder.runs.slips import NO_RETURN

Traced = tuple[Program, Sequence[Expected]]
"""An expression, and what is right for each of its draws."""


@dataclass(frozen=True)
class FunctionCall:
    """One call of a function: its arguments, the right result, and how far numbers in it may be off."""

    arguments: tuple[Any, ...]
    right: Any
    tolerance: Any


class Mismatch(Exception):  # noqa: N818
    """Two results differ: where, and why. `public` is the text for hidden checks."""

    def __init__(self, text: str, public: str = "the result is wrong") -> None:
        super().__init__(text)
        self.public = public


def function_report(
    function: Any,
    reference: Callable[..., Any],
    inputs: Sequence[Any],
    context: CheckContext,
    *,
    points: float | None,
    name: str | None,
    tolerance: float | None,
) -> Report:
    """Compare a student's function with a trusted one on random inputs. All or nothing."""
    cases = cases_of(inputs)
    names = argument_names(reference, len(cases[0]))
    tell(context)
    generator = np.random.default_rng([context.seed or 0, len(names)])
    calls = [_call(reference, case, generator, tolerance) for case in cases for _ in range(DRAWS)]
    return _checked(function, calls, names, context, points, name or "Function")


def handwritten_report(
    function: Any,
    expression: Callable[..., Any],
    inputs: Sequence[Any],
    context: CheckContext,
    *,
    points: float | None,
    name: str | None,
) -> Report:
    """Compare the gradients that a student's function returns with those of the expression. Each is worth the same."""
    cases = cases_of(inputs)
    (program,) = programs_of(expression, len(cases[0]))
    tell(context)
    expected = measured(program, expected_of(program, cases, context.seed, accumulates=False, plain=True))
    calls = []
    for entry in expected:
        if entry.reference.value.shape != ():
            raise LessonError("a gradient by hand needs an expression whose value is a number")
        right = [np.broadcast_to(g, x.shape) for g, x in zip(entry.reference.dense, entry.draw.inputs, strict=True)]
        calls.append(FunctionCall(entry.draw.inputs, tuple(right), entry.tolerance.gradients))
    traced = program, expected
    return _checked(function, calls, program.arguments, context, points, name or "Gradient by hand", traced)


def _call(
    reference: Callable[..., Any], case: Sequence[Spec], generator: np.random.Generator, tolerance: float | None
) -> FunctionCall:
    arguments = tuple(spec.draw(generator) for spec in case)
    right = _trusted(reference, arguments)
    if tolerance is not None:
        return FunctionCall(arguments, right, _mapped(right, lambda array: tolerance * np.maximum(1.0, np.abs(array))))
    moved = [_trusted(reference, tuple(disturbed(a, generator) for a in arguments)) for _ in range(SAMPLES)]
    return FunctionCall(arguments, right, allowed_for(right, moved))


def disturbed(argument: Any, generator: np.random.Generator) -> Any:
    """An argument with every number moved independently, so that numbers that cancel in a sum show by how much."""
    if callable(argument):
        return argument
    signs = np.where(generator.random(np.shape(argument)) < 0.5, -1.0, 1.0)
    return argument * (1 + DISTURBANCE * signs)


def _trusted(reference: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """The reference's result as a plain tree. Raises LessonError if it fails."""
    with np.errstate(all="ignore"):
        answer = engine_protocol.call_function(reference, [list(arguments)], Exception)[0]
    if "error" in answer:
        raise LessonError(f"the reference function raised {answer['error']['type']}: {answer['error']['message']}")
    return answer["result"]


def _is_number(tree: Any) -> bool:
    numeric = type(tree) is np.ndarray and tree.dtype.kind in "iuf"
    return numeric or type(tree) in (int, float)


def _mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with every number or array changed."""
    if isinstance(tree, dict):
        return {key: _mapped(entry, change) for key, entry in tree.items()}
    if isinstance(tree, list | tuple):
        return [_mapped(entry, change) for entry in tree]
    return change(np.asarray(tree, dtype=np.float64)) if _is_number(tree) else None


def allowed_for(right: Any, moved: Sequence[Any]) -> Any:
    """Tolerances from conditioning: how far each number of the result moves when the inputs are disturbed."""
    if isinstance(right, dict):
        return {key: allowed_for(entry, [one.get(key) for one in moved]) for key, entry in right.items()}
    if isinstance(right, list | tuple):
        return [allowed_for(entry, list(others)) for entry, *others in zip(right, *moved, strict=False)]
    if not _is_number(right):
        return None
    first = np.asarray(right, dtype=np.float64)
    allowed = np.full(first.shape, max(1e-300, largest_finite(first)))
    for one in moved:
        second = np.asarray(one, dtype=np.float64)
        if first.shape == second.shape:
            with np.errstate(invalid="ignore"):
                allowed = np.maximum(allowed, np.nan_to_num(np.abs(first - second) / DISTURBANCE))
    return ROUNDINGS * EPSILON * allowed


def _checked(
    function: Any,
    calls: Sequence[FunctionCall],
    names: Sequence[str],
    context: CheckContext,
    points: float | None,
    title: str,
    traced: Traced | None = None,
) -> Report:
    """The report on all calls. `traced`: the expression whose gradients the function returns, if it does."""
    gradients = traced is not None
    answers = run_where_it_lives(function, engine_protocol.call_function, [list(call.arguments) for call in calls])
    lines: tuple[Line, ...] = (_line(answers, calls, names, context.hidden, gradients),)
    if gradients and len(names) > 1 and not lines[0].passed:
        lines = _lines_per_gradient(answers, calls, names, context.hidden) or lines
    slipped = context.explained and not context.hidden and not all(line.passed for line in lines)
    return Report(
        title="Hidden check" if context.hidden else title,
        lines=lines,
        earned=(points or 0.0) * sum(line.passed for line in lines) / len(lines),
        points=points,
        hidden=context.hidden,
        **(_cause(answers, calls, names, traced) if slipped else {}),
    )


def _cause(answers: Any, calls: Sequence[FunctionCall], names: Sequence[str], traced: Traced | None) -> dict[str, Any]:
    """The cause of wrong results, as report fields: what they have in common, else the bug that gives the gradients."""
    got = _numbers(answers, calls, traced is not None)
    if got is None or not _all_unchanged(answers, calls, names):
        return {}
    common = _in_common(got, calls, names, traced is not None)
    return {"diagnosis": common} if common or traced is None else _bug(got, *traced)


def _bug(got: Sequence[Sequence[Array]], program: Program, expected: Sequence[Expected]) -> dict[str, Any]:
    """The bug of the bank that gives the calculated gradients, as fields of a report."""
    from autograder.checks.diagnosis import named  # loads the bug bank, which right answers need not wait for

    runs = tuple(Run(entry.reference.value, tuple(arrays)) for entry, arrays in zip(expected, got, strict=True))
    wrong = Problem("a gradient is wrong", "a gradient is wrong")
    return named(Outcome(program, tuple(expected), Comparison(wrong, runs)))


def _numbers(answers: Any, calls: Sequence[FunctionCall], gradients: bool) -> list[list[Array]] | None:
    """The results of all calls as arrays; None if a call failed or gave something else."""
    if not isinstance(answers, list) or len(answers) != len(calls):
        return None
    got = []
    for answer, call in zip(answers, calls, strict=True):
        if not isinstance(answer, dict) or "result" not in answer:
            return None
        wanted = call.right if gradients else (call.right,)
        result = _as_gradients(answer["result"], call) if gradients else [answer["result"]]
        usable = isinstance(result, list) and all(_is_number(entry) for entry in wanted)
        arrays = arrays_of(result, wanted) if usable else None
        if arrays is None:
            return None
        got.append(arrays)
    return got


def _in_common(
    got: Sequence[Sequence[Array]], calls: Sequence[FunctionCall], names: Sequence[str], gradients: bool
) -> str:
    """What the wrong results of all calls have in common; empty if nothing is known."""
    right, allowed = [], []
    for call in calls:
        wanted = call.right if gradients else (call.right,)
        right.append([np.asarray(entry, dtype=np.float64) for entry in wanted])
        allowed.append([np.asarray(entry) for entry in (call.tolerance if gradients else (call.tolerance,))])
    return in_common(got, right, allowed, names if gradients else ())


def _lines_per_gradient(
    answers: Any, calls: Sequence[FunctionCall], names: Sequence[str], hidden: bool
) -> tuple[Line, ...] | None:
    """A verdict on each gradient; None if a call failed, gave the wrong number of them, or changed its inputs."""
    if not isinstance(answers, list) or len(answers) != len(calls):
        return None
    for answer, call in zip(answers, calls, strict=True):
        whole = isinstance(answer, dict) and failure_in(answer) is None
        result = _as_gradients(answer.get("result"), call) if whole else None
        if not isinstance(result, list) or len(result) != len(names):
            return None
        with contextlib.suppress(Mismatch):
            _unchanged(answer.get("inputs"), call, names)
            continue
        return None
    lines = [_gradient_line(answers, calls, names, number, hidden) for number in range(len(names))]
    for number, line in enumerate(lines):
        if any(earlier.facts == line.facts for earlier in lines[:number]):  # the same inputs need no second showing
            lines[number] = replace(line, facts=())
    return None if all(line.passed for line in lines) else tuple(lines)


def _gradient_line(
    answers: Any, calls: Sequence[FunctionCall], names: Sequence[str], number: int, hidden: bool
) -> Line:
    shown_name = f"hidden gradient {number + 1}" if hidden else names[number]
    for answer, call in zip(answers, calls, strict=True):
        try:
            place = f"the gradient with respect to {names[number]}"
            got = _as_gradients(answer["result"], call)[number]
            _compare_trees(got, call.right[number], call.tolerance[number], place, ())
        except Mismatch as mismatch:
            text = mismatch.public if hidden else str(mismatch)
            return Line(shown_name, "wrong", text, _inputs(call, names, hidden))
    return Line(shown_name, "right")


def _line(answers: Any, calls: Sequence[FunctionCall], names: Sequence[str], hidden: bool, gradients: bool) -> Line:
    """The verdict on all calls: the first thing that is wrong."""
    shown_name = "hidden call" if hidden else f"called with {', '.join(names)}"
    for number, call in enumerate(calls):
        answer = answers[number] if isinstance(answers, list) and number < len(answers) else {}
        problem = failure_in(answer)
        if problem is not None:
            return Line(
                shown_name, problem.status, problem.public if hidden else problem.text, _inputs(call, names, hidden)
            )
        try:
            if not isinstance(answer, dict) or "result" not in answer:
                raise Mismatch("no usable answer came back", "no usable answer came back")
            got = _as_gradients(answer["result"], call) if gradients else answer["result"]
            _unchanged(answer.get("inputs"), call, names)
            _compare_trees(got, call.right, call.tolerance, "", names if gradients else ())
        except Mismatch as mismatch:
            text = mismatch.public if hidden else str(mismatch)
            return Line(shown_name, "wrong", text, _inputs(call, names, hidden))
    return Line(shown_name, "right")


def _as_gradients(result: Any, call: FunctionCall) -> Any:
    """A function of one input may return the gradient itself; a function of several numbers may return one array."""
    if len(call.arguments) == 1 and not (isinstance(result, list) and len(result) == 1):
        return [result]
    numbers = all(np.shape(entry) == () for entry in call.right)
    if numbers and _is_number(result) and np.shape(result) == (len(call.arguments),):
        return np.asarray(result, dtype=np.float64).tolist()
    return result


def _inputs(call: FunctionCall, names: Sequence[str], hidden: bool) -> tuple[tuple[str, str], ...]:
    if hidden:
        return ()
    return tuple(
        (f"input {name}", _shown_argument(argument)) for name, argument in zip(names, call.arguments, strict=True)
    )


def _shown_argument(argument: Any) -> str:
    return "a function" if callable(argument) else shown(argument)


def _compare_trees(got: Any, right: Any, tolerance: Any, place: str, names: Sequence[str]) -> None:
    """Raises Mismatch at the first place where two plain trees differ."""
    where = f" at {place}" if place else ""
    if isinstance(right, dict):
        if not isinstance(got, dict) or set(got) != set(right):
            raise Mismatch(f"the result{where} should be a dictionary with the keys {sorted(right)}", "wrong structure")
        for key, entry in right.items():
            _compare_trees(got[key], entry, tolerance[key], f"{place}[{key!r}]", ())
    elif isinstance(right, list | tuple):
        if not isinstance(got, list) or len(got) != len(right):
            found = values(len(got)) if isinstance(got, list) else _what_came(got, place)
            expected = values(len(right)) + (f" (for {', '.join(names)})" if names else "")
            raise Mismatch(f"the result{where} should hold {expected}, got {found}", "the result has the wrong length")
        for number, entry in enumerate(right):
            inner = f"the gradient with respect to {names[number]}" if names else f"{place}[{number}]"
            _compare_trees(got[number], entry, tolerance[number], inner, ())
    elif _is_number(right):
        compare_numbers(got, np.asarray(right, dtype=np.float64), tolerance, place)
    elif type(got) is not type(right) or not np.array_equal(got, right):
        raise Mismatch(f"the result{where} should be {right!r}, got {_what_came(got, place)}")


def compare_numbers(got: Any, right: Any, tolerance: Any, place: str) -> None:
    what = f"the result{place}" if not place or place.startswith("[") else place
    try:
        array = number_or_array(got)
    except Unusable as odd:
        text = f"{what} is {odd}, expected {'an array' if right.ndim else 'a number'}"
        text += f": {NO_RETURN}" if got is None and not place else ""
        raise Mismatch(text, "the result has the wrong type") from None
    if array.shape != right.shape:
        text = f"{what} has the wrong shape: expected {shown_shape(right)}, got {shown_shape(array)}"
        raise Mismatch(text, "the result has the wrong shape")
    worst = worst_element(what, array, right, right, np.asarray(tolerance))
    if worst is not None:
        raise Mismatch(f"{worst.where()}: {explained(worst)}")


def _unchanged(inputs: Any, call: FunctionCall, names: Sequence[str]) -> None:
    for number, (name, argument) in enumerate(zip(names, call.arguments, strict=True)):
        if callable(argument):
            continue
        after = inputs[number] if isinstance(inputs, list) and number < len(inputs) else None
        if not (_is_number(after) and np.array_equal(np.asarray(after), argument)):
            by = " in its last digits: put the number itself back" * _nearly_equal(after, argument)
            text = f"the input `{name}` was changed by the function{by}"
            raise Mismatch(text, "an input was changed by the function")


def _nearly_equal(after: Any, argument: Any) -> bool:
    """Whether an input differs by no more than rounding, as `x + h - h` does from `x`."""
    return _is_number(after) and np.shape(after) == np.shape(argument) and np.allclose(after, argument, rtol=1e-9)


def _all_unchanged(answers: Any, calls: Sequence[FunctionCall], names: Sequence[str]) -> bool:
    """Whether no call changed its inputs: numbers that are wrong for that reason have no other cause."""
    try:
        for answer, call in zip(answers, calls, strict=True):
            _unchanged(answer.get("inputs"), call, names)
    except Mismatch:
        return False
    return True


def values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"


def _what_came(tree: Any, place: str) -> str:
    """What a result is; if the whole result is None, also the usual reason."""
    return kind_of(tree) + (f": {NO_RETURN}" if tree is None and not place else "")


def kind_of(tree: Any) -> str:
    """What a tree is, in a few words."""
    if tree is None:
        return "None"
    if isinstance(tree, dict) and type(tree.get("odd")) is str:
        return f"something of type {tree['odd'][:60]}"
    if type(tree) is np.ndarray:
        return f"an array of shape {tree.shape}"
    return f"{str(tree)[:60]} ({type(tree).__name__})"
