"""Answers from the student's side, none of which are trusted: they become runs and are compared, or become a problem.

A problem has two texts. `text` says everything; `public` is what a hidden check may say, without any number or string
that came from the student or from the hidden inputs.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograder.runs.comparison import Worst, explained, most_wrong, within, worst_element
from autograder.runs.engine_protocol import begins_at_arrays, run_programs
from autograder.runs.engines import Draw, Run, run_where_it_lives
from autograder.runs.errors import Raised
from autograder.runs.expected import Expected, answers_by_reference, expected_of_draws, measured
from autograder.runs.inputs import FLOAT32, FLOAT64, Array
from autograder.runs.programs import Program, programs_of
from autograder.runs.slips import NO_RETURN, slip
from autograder.runs.ways import NOWHERE, operated

LONGEST_TEXT = 400
(WEIGHING_NUMBERS,) = programs_of({"a * number": lambda a: a * 0.75}, 1)
(WEIGHING_ARRAYS,) = programs_of({"(a * b).sum()": lambda a, b: operated("mul", a, b).sum()}, 2)
SHAPE_ERRORS = ("ValueError", "IndexError", "AxisError")
"""What NumPy raises if shapes do not fit: such an exception says something about the gradients."""
ABOUT_SHAPES = re.compile(r"shape|size|dimension|broadcast", re.IGNORECASE)
"""In the message of a RuntimeError, which engines also raise for much else, such as a freed graph."""
UNWRITTEN = "not written yet"
NO_TENSOR = "the result of the expression is not a tensor with a `backward`"
NO_BACKWARD = "the result is a tensor without a `backward`"
WRONG_TYPE = "a gradient has the wrong type"
INPUT_CHANGED = "the data of an input was changed by the calculation"
NOT_KEPT = "a tensor does not keep the numbers that it is given"
GRADIENT_CHANGED = "`backward` changed the array of the incoming gradient that was passed to it"


@dataclass(frozen=True)
class Problem:
    """Why an expression failed. `draw` is the number of the draw, `worst` the most wrong element if there is one,
    `forward` whether the value is already wrong, before any gradient. `error` is what the student's code raised, and in
    which line, if it raised anything.
    """

    text: str
    public: str
    draw: int = 0
    worst: Worst | None = None
    forward: bool = False
    error: str = ""

    @property
    def unwritten(self) -> bool:
        """Whether the student has not begun."""
        return self.public == UNWRITTEN

    @property
    def status(self) -> str:
        """The status on a card, in a word. Not wrong: an exercise that has not been begun, an engine that lacks what
        only the check needs."""
        return {UNWRITTEN: "not yet", NOWHERE: "not checked"}.get(self.public, "wrong")


@dataclass(frozen=True)
class Comparison:
    """A student's runs beside the right ones: the problem (None when all is right), and the runs if they can be used
    for a diagnosis. `raised`: the backward pass of the draw after these runs raised something. `narrow`: the leaves
    keep numbers of float64 in float32."""

    problem: Problem | None
    runs: tuple[Run, ...] = ()
    difference: float | None = None
    raised: Raised | None = None
    narrow: bool = False


@dataclass(frozen=True, eq=False)
class Outcome:
    """One program after it ran on a student's engine: what was expected, and how the answer compares."""

    program: Program
    expected: tuple[Expected, ...]
    comparison: Comparison

    @property
    def problem(self) -> Problem | None:
        return self.comparison.problem

    @property
    def runs(self) -> tuple[Run, ...]:
        """The student's runs, if a diagnosis can use them."""
        return self.comparison.runs


class Unusable(Exception):  # noqa: N818
    """Raised inside this file when an answer cannot be used. `forward`: because of the value, before any gradient."""

    def __init__(self, text: str, public: str | None = None, forward: bool = False) -> None:
        super().__init__(text)
        self.public = public or text
        self.forward = forward


def compared_on(engine: Any, programs: Sequence[Program], expected: Sequence[tuple[Expected, ...]]) -> list[Outcome]:
    """Run programs on a student's engine, where it lives, and compare each with its expected results. If an answer is
    outside the least tolerances, all are compared with measured ones, which then come back with the expected results.
    """
    sent = [
        {"function": program.function, "draws": [entry.draw.sent() for entry in entries]}
        for program, entries in zip(programs, expected, strict=True)
    ]
    answers = run_where_it_lives(engine, run_programs, sent)
    if not isinstance(answers, list) or len(answers) != len(programs):
        answers = [None] * len(programs)
    if any(isinstance(answer, dict) and "unseeded" in answer for answer in answers):
        return list(map(_compared_unseeded, answers, programs, expected))
    arguments = [program.arguments for program in programs]
    comparisons = list(map(compare, answers, expected, arguments))
    if any(comparison.problem for comparison in comparisons):
        if any(isinstance(answer, dict) and answer.get("weighed") is True for answer in answers):
            ones = _beginning_with_one(engine, programs, expected, comparisons)
            if ones is not None:
                return ones
        expected = list(map(measured, programs, expected))
        comparisons = list(map(compare, answers, expected, arguments))
    return list(map(Outcome, programs, expected, comparisons))


def _beginning_with_one(
    engine: Any,
    programs: Sequence[Program],
    expected: Sequence[tuple[Expected, ...]],
    weighed: Sequence[Comparison],
) -> list[Outcome] | None:
    """The outcomes with a `backward` that begins with 1, if the product or sum is wrong by which the check would
    give it another gradient: otherwise every expression would look wrong. None if they are right.
    """
    shape = expected[0][0].reference.value.shape
    weights = np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape)
    weighing = WEIGHING_NUMBERS if shape == () else WEIGHING_ARRAYS
    inputs = (weights + 1.0, weights)[: len(weighing.arguments)]
    draws = [Draw.in_dtype(expected[0][0].draw.dtype, inputs, None)]
    wrong = _on_draws(engine, weighing, draws).problem
    if wrong is None:
        return None
    missing = wrong.error or f"`{weighing.name}` is wrong itself"
    begins = run_where_it_lives(engine, begins_at_arrays) is True
    found = []
    for program, entries, comparison in zip(programs, expected, weighed, strict=True):
        ones = [replace(entry.draw, cotangent=None, again=None) for entry in entries]
        outcome = _on_draws(engine, program, ones)
        raised = outcome.problem.error if outcome.problem is not None else ""
        refused = raised and not begins
        own = raised == wrong.error  # `backward` raises it anyway, so it is not about the gradient that it gets
        if refused and not own and comparison.problem and comparison.problem.error in ("", wrong.error):
            outcome = Outcome(program, entries, _nowhere(missing))
        elif refused:
            outcome = Outcome(program, entries, comparison)
        found.append(outcome)
    return found


def _nowhere(missing: str) -> Comparison:
    needs = "`backward(gradient)`, or a product with a number and `sum()`"
    return Comparison(Problem(f"{NOWHERE}: it needs {needs}, but {missing}", NOWHERE))


def _on_draws(engine: Any, program: Program, draws: Sequence[Draw]) -> Outcome:
    sent = [{"function": program.function, "draws": [draw.sent() for draw in draws]}]
    answers = run_where_it_lives(engine, run_programs, sent)
    return compare_on_draws(answers[0] if isinstance(answers, list) and answers else None, program, draws)


def _compared_unseeded(answer: Any, program: Program, expected: tuple[Expected, ...]) -> Outcome:
    """The outcome of an answer, in which `backward` perhaps began with 1, since the engine lacks what it takes to
    give it another gradient.
    """
    missing = _string(answer.get("unseeded")) if isinstance(answer, dict) else ""
    if not missing:
        return compare_on_draws(answer, program, [entry.draw for entry in expected])
    draws = [replace(entry.draw, cotangent=None, again=None) for entry in expected]
    outcome = compare_on_draws(answer, program, draws)
    if "error" in answer and answer.get("begins") is not True and np.ndim(outcome.expected[0].reference.value):
        return replace(outcome, comparison=_nowhere(missing))
    return outcome


def compare_on_draws(answer: Any, program: Program, draws: Sequence[Draw]) -> Outcome:
    """The answer compared with the expected results of a program on these draws. An answer that agrees with
    the reference is right; only others are worth the other routes. Raises LessonError if the program does not run.
    """
    expected = answers_by_reference(program, draws)
    comparison = compare(answer, expected, program.arguments)
    if comparison.problem is not None:
        expected = expected_of_draws(program, draws)
        comparison = compare(answer, expected, program.arguments)
    return Outcome(program, expected, comparison)


def compare(answer: Any, expected: Sequence[Expected], arguments: Sequence[str]) -> Comparison:
    """Compare the answer to one program with what is expected. Never raises on anything an answer may hold."""
    failed = failure_in(answer)
    if failed is not None:
        runs = usable_runs(answer.get("draws"), expected)
        error = answer.get("error")
        in_backward = answer.get("backward") is True and len(runs) == failed.draw < len(expected)
        if in_backward and isinstance(error, dict) and _is_about_shapes(error):
            return Comparison(failed, runs, raised=Raised(_string(error.get("type")), _string(error.get("message"))))
        return Comparison(failed)
    draws = answer.get("draws") if isinstance(answer, dict) else None
    if not isinstance(draws, list) or len(draws) != len(expected):
        return Comparison(Problem("no usable answer came back", "no usable answer came back"))
    usable: list[Run] = []
    for number, (draw, right) in enumerate(zip(draws, expected, strict=True)):
        try:
            usable.append(run := _run(draw, right, arguments))
            _check_shapes(run, right, arguments)
            _check_inputs(draw.get("made"), draw.get("inputs"), right, arguments)
            if draw.get("overwrites") is True:
                raise Unusable(GRADIENT_CHANGED)
        except Unusable as odd:
            problem = Problem(str(odd), odd.public, number, forward=odd.forward)
            return Comparison(problem, usable_runs(draws, expected), narrow=_is_narrow(draw, right))
    return _compared(tuple(usable), expected, arguments)


def _is_narrow(draw: Any, right: Expected) -> bool:
    """Whether each leaf keeps its numbers of float64 in float32."""
    made = draw.get("made") if isinstance(draw, dict) else None
    arrays = made if isinstance(made, list) else [None]
    return right.draw.dtype == FLOAT64 and all(getattr(array, "dtype", None) == FLOAT32 for array in arrays)


def _is_about_shapes(error: dict[str, Any]) -> bool:
    kind, message = _string(error.get("type")), _string(error.get("message"))
    return kind in SHAPE_ERRORS or (kind == "RuntimeError" and ABOUT_SHAPES.search(message) is not None)


def failure_in(answer: Any) -> Problem | None:
    """The problem when an answer says that the student's code raised something or returned no tensor."""
    if not isinstance(answer, dict):
        return None
    number = answer.get("draw")
    number = number if isinstance(number, int) else 0
    if isinstance(answer.get("returned"), str):
        kind = answer["returned"][:60]
        text = f"the result of the expression is a {kind}, which has no `backward`: do all operations return tensors?"
        if kind == "NoneType":
            text = f"the result of the expression is None, not a tensor: {NO_RETURN}"
        elif kind == answer.get("leaf"):
            text = (
                f"a {kind} has no `backward`: did you run the cell that adds it after the cell that defines the class?"
            )
            return Problem(text, NO_BACKWARD, number, forward=True)
        return Problem(text, NO_TENSOR, number, forward=True)
    error = answer.get("error")
    if not isinstance(error, dict):
        return None
    kind, message, line = (_string(error.get(key)) for key in ("type", "message", "line"))
    if kind == "NotImplementedError":
        return Problem(UNWRITTEN + (f" (`{line.strip()}`)" if line.strip() else ""), UNWRITTEN, number)
    public = f"your code raised {kind}" if _is_exception_name(kind) else "your code raised an error"
    text = f"your code raised {kind}" + (f": {message}" if message else "")
    if guess := slip(kind, message):
        text += f" ({guess})"
    where = f"in the line `{line.strip()}`" if line.strip() else ""
    raised = f"{kind}: {message}" if message else kind
    return Problem(f"{text}\n{where}".strip(), public, number, error=f"{raised}, {where}" if where else raised)


def _is_exception_name(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _string(value: Any) -> str:
    return value[:LONGEST_TEXT] if type(value) is str else ""


def number_or_array(tree: Any) -> Array:
    """A number or an array of numbers as float64. Raises Unusable with what it is instead."""
    if type(tree) in (int, float):
        return np.asarray(float(tree))
    if type(tree) is np.ndarray and tree.dtype.kind in "iuf":
        return tree.astype(np.float64)
    if tree is None:
        raise Unusable("None")
    if isinstance(tree, dict) and type(tree.get("odd")) is str:
        raise Unusable(f"of type {tree['odd'][:60]}", "neither a number nor an array")
    if type(tree) is np.ndarray:
        raise Unusable(f"an array of {tree.dtype.name[:30]}", "not an array of numbers")
    raise Unusable(f"a {type(tree).__name__[:30]}")


def usable_runs(draws: Any, expected: Sequence[Expected]) -> tuple[Run, ...]:
    """The runs for a diagnosis, of any shapes and precision; none at all if one of them is not made of numbers, or has
    a wrong value."""
    runs: list[Run] = []
    try:
        for draw, right in zip(draws if isinstance(draws, list) else [], expected, strict=False):
            value = number_or_array(draw["value"])
            gradients = [draw["gradients"], draw["again"] if right.draw.again is not None else None]
            first, second = ([None if g is None else number_or_array(g) for g in trees or ()] for trees in gradients)
            if not within(value, right.reference.value, right.tolerance.value):
                return ()
            again = None if right.draw.again is None else tuple(second)
            runs.append(
                Run(
                    value,
                    tuple(first),
                    again,
                    changed_inputs(draw["inputs"], right),
                    _narrow(gradients, right.draw.dtype),
                )
            )
    except (Unusable, KeyError, TypeError, ValueError):
        return ()
    counts = len(expected[0].draw.inputs)
    return tuple(runs) if all(len(g) == counts for run in runs for g in (run.gradients, run.again or ()) if g) else ()


def changed_inputs(trees: Any, right: Expected) -> tuple[tuple[int, Array], ...]:
    """The inputs whose data is no longer what it was, by number."""
    after = [number_or_array(tree) for tree in trees]
    pairs = enumerate(zip(after, right.draw.inputs, strict=True))
    return tuple((number, array) for number, (array, before) in pairs if not np.array_equal(array, before))


def _narrow(gradients: Any, dtype: str) -> bool:
    """Whether a gradient has a floating dtype with fewer digits than its input."""
    arrays = [tree for trees in gradients for tree in trees or () if isinstance(tree, np.ndarray)]
    return any(array.dtype.kind == "f" and array.dtype.itemsize < np.dtype(dtype).itemsize for array in arrays)


def _run(draw: Any, right: Expected, arguments: Sequence[str]) -> Run:
    """The numbers of one draw, of any shape. Raises Unusable when they are not numbers."""
    if not isinstance(draw, dict):
        raise Unusable("no usable answer came back")
    try:
        value = number_or_array(draw.get("value"))
    except Unusable as odd:
        text = f"the value (`.data`) of the result is {odd}, not a number"
        raise Unusable(text, "the value is not a number") from None
    dtype = right.draw.dtype
    gradients = _gradients(draw.get("gradients"), arguments, right.reference.gradients, dtype)
    expected_again = right.reference.again
    again = None if expected_again is None else _gradients(draw.get("again"), arguments, expected_again, dtype)
    return Run(value, gradients, again)


def _gradients(
    trees: Any, arguments: Sequence[str], expected: Sequence[Array | None], dtype: str
) -> tuple[Array | None, ...]:
    if not isinstance(trees, list) or len(trees) != len(expected):
        raise Unusable("no usable answer came back")
    return tuple(_gradient(*cell, dtype) for cell in zip(trees, arguments, expected, strict=True))


def _gradient(tree: Any, name: str, expected: Array | None, dtype: str) -> Array | None:
    """One gradient of any shape. None is right if the right gradient is zero."""
    if tree is None and (expected is None or not np.any(expected)):
        return None
    what = f"the gradient of `{name}`"
    if tree is None:
        raise Unusable(f"{what} is None: did `backward` never reach it?", "a gradient is None")
    try:
        gradient = number_or_array(tree)
    except Unusable as odd:
        kind = "an array" if expected is not None and expected.shape else "a number"
        hint = f": {_reason(tree.get('odd'))}" if isinstance(tree, dict) else ""
        raise Unusable(f"{what} is {odd}, not {kind}{hint}", WRONG_TYPE) from None
    if type(tree) is np.ndarray and tree.dtype.kind == "f" and tree.dtype.itemsize < np.dtype(dtype).itemsize:
        text = f"{what} is {tree.dtype.name}, but `{name}` is {dtype}: precision is lost"
        raise Unusable(text, "a gradient has the wrong dtype")
    return gradient


def _reason(kind: Any) -> str:
    """Why a rule may have made something of this type in place of a number."""
    if kind == "complex":
        return "a negative number to a power that is not whole is complex"
    return "calculate with `.data` inside the rules"


def _check_shapes(run: Run, right: Expected, arguments: Sequence[str]) -> None:
    """Raises Unusable at the first wrong shape."""
    if run.value.shape != right.reference.value.shape:
        expected, got = shown_shape(right.reference.value), shown_shape(run.value)
        text = "the value has the wrong shape"
        if run.value.shape == () and np.isnan(run.value):
            got = f"a single nan, which is what None becomes in an array ({NO_RETURN})"
        raise Unusable(f"{text}: expected {expected}, got {got}", text, forward=True)
    for gradients in (run.gradients, run.again or ()):
        for gradient, name, array in zip(gradients, arguments, right.draw.inputs, strict=False):
            if gradient is None or gradient.shape == array.shape:
                continue
            expected, got = shown_shape(array), shown_shape(gradient)
            text = f"the gradient of `{name}` has the wrong shape: expected {expected}, got {got}"
            text += _guess(gradient.shape, array.shape)
            raise Unusable(text, "a gradient has the wrong shape")


def _guess(got: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The likely cause of a wrong shape, as a question; empty if none is known."""
    if _comes_from_broadcast(got, shape):
        return ": was the broadcast summed back?"
    if got == ():
        return ": was everything summed, or is the gradient of a sum not spread out again?"
    if got == shape[::-1]:
        return ": is it transposed?"
    if [n for n in got if n != 1] == [n for n in shape if n != 1]:
        return ": was an axis of size 1 dropped or added?"
    return ""


def _comes_from_broadcast(got: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    try:
        return len(got) >= len(shape) and np.broadcast_shapes(got, shape) == got
    except ValueError:
        return False


def shown_shape(array: Array) -> str:
    return "a number" if array.ndim == 0 else str(array.shape)


def _check_inputs(made: Any, after: Any, right: Expected, arguments: Sequence[str]) -> None:
    """Whether each leaf held its numbers when it was made, and still does after the run."""
    given = right.draw.inputs
    if not all(isinstance(trees, list) and len(trees) == len(given) for trees in (made, after)):
        raise Unusable("no usable answer came back")
    for name, numbers, first, last in zip(arguments, given, made, after, strict=True):
        if not _holds(first, numbers):
            raise Unusable(f"`{name}`: {NOT_KEPT}", NOT_KEPT, forward=True)
        if not _holds(last, numbers):
            raise Unusable(INPUT_CHANGED.replace("an input", f"`{name}`"), INPUT_CHANGED)


def _holds(tree: Any, numbers: Array) -> bool:
    try:
        return np.array_equal(number_or_array(tree), numbers)
    except Unusable:
        return False


def _compared(runs: tuple[Run, ...], expected: Sequence[Expected], arguments: Sequence[str]) -> Comparison:
    values = [
        worst_element("the value", run.value, right.reference.value, right.reference.value, right.tolerance.value)
        for run, right in zip(runs, expected, strict=True)
    ]
    largest = _largest_difference(runs, expected)
    worst = most_wrong(values)
    if worst is not None:
        text = f"the value is wrong, before any gradient: {explained(worst)}"
        problem = Problem(text, "the value is wrong, before any gradient", values.index(worst), worst, forward=True)
        return Comparison(problem, (), largest)
    gradients = [_worst_gradient(run, right, arguments) for run, right in zip(runs, expected, strict=True)]
    worst = most_wrong(gradients)
    if worst is not None:
        text = f"`{worst.where()}` is wrong: {explained(worst)}"
        return Comparison(Problem(text, "a gradient is wrong", gradients.index(worst), worst), runs, largest)
    for number, (run, right) in enumerate(zip(runs, expected, strict=True)):
        unshared = _unshared(run, right, arguments)
        if unshared:
            return Comparison(Problem(unshared, "a gradient is wrong", number), runs, largest)
    again = [_worst_again(run, right, arguments) for run, right in zip(runs, expected, strict=True)]
    worst = most_wrong(again)
    if worst is None:
        return Comparison(None, runs, largest)
    public = "after a second `backward` the gradients are not the sum of both"
    return Comparison(
        Problem(f"{public}: `{worst.where()}`, {explained(worst)}", public, again.index(worst), worst), runs, largest
    )


def _worst_gradient(run: Run, right: Expected, arguments: Sequence[str]) -> Worst | None:
    count = len(arguments)
    low = right.low or right.reference.dense[:count]
    high = right.high or right.reference.dense[:count]
    cells = zip(arguments, run.dense[:count], low, high, right.tolerance.gradients[:count], strict=True)
    return most_wrong([worst_element(f"{name}.grad", *arrays) for name, *arrays in cells])


def _unshared(run: Run, right: Expected, arguments: Sequence[str]) -> str:
    """What is wrong if tied elements got more or less than there is to share; empty if nothing is."""
    for share in right.shares:
        got = share.missed_by(run)
        if got is None:
            continue
        names = " and ".join(f"`{arguments[number]}.grad`" for number in share.inputs)
        return (
            f"the elements of {names} add up to {got:.4g}, but there is {share.total:.4g} to share: does every "
            "element that ties get all of it?"
        )
    return ""


def _worst_again(run: Run, right: Expected, arguments: Sequence[str]) -> Worst | None:
    if run.again is None or right.low is not None:
        return None
    count = len(arguments)
    expected = right.reference.dense[count:]
    cells = zip(arguments, run.dense[count:], expected, expected, right.tolerance.gradients[count:], strict=True)
    worst = most_wrong([worst_element(f"{name}.grad", *arrays) for name, *arrays in cells])
    return None if worst is None else replace(worst, accumulated=True)


def _largest_difference(runs: Sequence[Run], expected: Sequence[Expected]) -> float:
    """The largest distance from the reference, over values and single gradients."""
    largest = 0.0
    for run, right in zip(runs, expected, strict=True):
        pairs = [(run.value, right.reference.value), *zip(run.dense, right.reference.dense, strict=True)]
        with np.errstate(invalid="ignore"):
            largest = max([largest, *(float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs)])
    return largest
