"""Where a gradient goes wrong, when no known mistake explains the numbers.

The expression is taken apart. First every operation is tried alone on the student's engine, with the inputs that it
really had and the right gradient arriving: the first wrong one in backward order is the place. When all of them are
right, the fault lies between the rules, and the smallest part of the expression that goes wrong shows where.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.bugs.matching import Diagnosis, diagnose_all
from autograder.localize.formulas import formulas
from autograder.localize.on_paper import on_paper
from autograder.localize.places import (
    RELEASED,
    SAID,
    Facts,
    Place,
    between_operations,
    error_hints,
    everywhere,
    everywhere_in_values,
    facts_of,
    fails_everywhere,
    function_hints,
    is_or_are,
    listed_names,
    lost_in_backward,
    maps_of,
    rule_hints,
    sentences,
    wrong_operand,
)
from autograder.localize.returned import misfit, rule_is_right
from autograder.localize.rule_patterns import pattern
from autograder.localize.subexpressions import Part, Trial, between, expanded, needed, separated, single, try_parts
from autograder.localize.tracing import Step, Trace, Value, traces_of
from autograder.runs.answers import INPUT_CHANGED, WRONG_TYPE, Problem
from autograder.runs.engines import Draw
from autograder.runs.expected import DRAWS, Expected
from autograder.runs.programs import Program
from autograder.runs.slips import FREED, hints_on

NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?")
LARGEST = 20_000  # numbers in one draw

A, B = Value(0), Value(1)
ELEMENTARY: dict[str, Step] = {
    "+": Step("operator", "add", (A, B)),
    "*": Step("operator", "mul", (A, B)),
    "-a": Step("operator", "neg", (A,)),
    "**": Step("operator", "pow", (A, -1.0)),
    "exp": Step("method", "exp", (A,)),
    "log": Step("method", "log", (A,)),
    "sum": Step("method", "sum", (A,)),
    "/": Step("operator", "truediv", (A, B)),
    "-": Step("operator", "sub", (A, B)),
}
"""Operations from which engines build others: a / b as a * b**-1, a mean as a sum divided by a number."""

MADE_OF = {"-": ("+", "-a", "*"), "-a": ("*",), "/": ("**", "*"), "mean": ("sum", "/", "*", "**")}


def localize(engine: Any, program: Program, expected: Sequence[Expected], problem: Problem) -> Place | None:
    """Find the place where an expression goes wrong. None when nothing definite can be said."""
    if hints_on(problem.error) == FREED:  # a check walks each graph once, so no earlier walk has freed anything
        return RELEASED
    if problem.draw >= len(expected) or _size(expected[problem.draw].draw) > LARGEST:
        return None
    traces = _traces(program, expected, problem.draw)
    if not traces:
        return None
    numbers = range(len(traces[0].steps))
    parts = [part for number in reversed(numbers) if (part := single(traces, number, program.arguments)) is not None]
    trials = [trial for trial in try_parts(engine, parts) if trial is not None]
    wrong = [trial for trial in trials if trial.wrong]
    if problem.forward:
        wrong = [trial for trial in reversed(wrong) if trial.problem and trial.problem.forward]
    if wrong:
        place = _in_an_operation(engine, wrong, [trial for trial in trials if not trial.wrong], problem.forward)
        return place if len(numbers) > 1 else replace(place, maps=())  # the maps are those of the whole expression
    if problem.forward or len(trials) < len(parts):
        return None
    accumulated = problem.worst is not None and problem.worst.accumulated
    smallest = _smallest(engine, traces, program.arguments, accumulated)
    if smallest is not None:
        return between_operations(smallest if accumulated else _without_reuse(engine, smallest), accumulated)
    return _in_a_function(engine, traces, program, accumulated, problem.error)


def example(engine: Any, program: Program, expected: Sequence[Expected], problem: Problem, symbol: str) -> Facts | None:
    """The results of a wrong operation tried alone, once the mistake is known, on numbers that can be checked on paper.
    None if the mistake does not show: the expression has no such operation, or it is right alone.
    """
    traces = _traces(program, expected, problem.draw) if problem.draw < len(expected) else []
    steps = list(enumerate(traces[0].steps))[::-1] if traces else []
    parts = [single(traces, number, program.arguments) for number, step in steps if step.symbol == symbol]
    for trial in try_parts(engine, [part for part in parts if part is not None]):
        if trial is not None and trial.wrong:
            sure = not (trial.weighed and symbol in ("*", "sum"))  # these brought the incoming gradient in
            return (*_shown(engine, trial)[0], *(formulas(trial) if sure else ()))
    return None


def _size(draw: Draw) -> int:
    return sum(array.size for array in draw.inputs)


def _traces(program: Program, expected: Sequence[Expected], first: int) -> list[Trace]:
    """Traces of the draw that failed and of the others with inputs of the same shapes, if the expression takes the same
    steps on them: what is said of a rule has to hold for each.
    """
    order = [first, *(number for number in range(len(expected)) if number != first)]
    return traces_of(program, [expected[number].draw for number in order], DRAWS)


def _in_an_operation(engine: Any, wrong: Sequence[Trial], right: Sequence[Trial], forward: bool) -> Place:
    """The place is a single operation: the first of `wrong`, or what it is made of. `right`: those that are right."""
    first = wrong[0]
    symbol = first.part.steps[0].symbol
    found = None if first.problem is None else first.problem.public
    if found in SAID and (found != INPUT_CHANGED or _alone(first).certain is None):
        return SAID[found](first)
    if not forward and (place := _of_the_rule(engine, first)) is not None:
        return place
    equal = expanded(first.part)
    probes = [part for name, step in ELEMENTARY.items() if (part := _probe(name, step, first.part)) is not None]
    tried = try_parts(engine, [*probes, *([equal] if equal else [])])
    if _all_fail_alike(first, tried[: len(probes)]):
        return fails_everywhere(first)
    elementary = [trial for trial in tried[: len(probes)] if trial is not None and _ran(trial)]
    broken = [trial.part.steps[0].symbol for trial in elementary if trial.wrong]
    if len(elementary) > 2 and len(broken) == len(elementary):
        return everywhere_in_values(first) if forward else _with_example(engine, everywhere(first), first)
    inner = [name for name in MADE_OF.get(symbol, ()) if name in broken and first.nodes != 1]
    for trial in elementary:
        if trial.part.steps[0].symbol in inner and (place := _of_the_rule(engine, trial)) is not None:
            return place
    others = {name: trial for trial in reversed(wrong) if (name := trial.part.steps[0].symbol) != symbol}
    broadcast = equal is not None and tried[-1] is not None and not tried[-1].wrong
    if not forward and not broadcast and rule_is_right(engine, first):
        return _with_example(engine, lost_in_backward(first), first)
    names = tuple(dict.fromkeys([*inner, symbol, *others]))
    squares = None if forward else _on_squares(engine, first)
    place = _described(engine, first, right, names, inner, others, broadcast, forward, squares)
    told = not forward and not (first.weighed and {"*", "sum"} & {*broken})  # else it is not certain what arrives
    return _with_example(engine, place, first, formulas(squares or first) if told else ())


def _with_example(engine: Any, place: Place, first: Trial, more: Facts = ()) -> Place:
    """The place with the results of its operation, and with more facts."""
    facts, shown = _shown(engine, first)
    return replace(place, facts=(*facts, *more), maps=maps_of(shown))


def _shown(engine: Any, trial: Trial) -> tuple[Facts, Trial]:
    """The results of an operation on numbers that can be checked on paper, or else on those of the expression."""
    simple = on_paper(engine, trial)
    return facts_of(simple, "alone, for simple numbers" if simple is not trial else ""), simple


def _of_the_rule(engine: Any, trial: Trial) -> Place | None:
    """The place where a rule does not return one gradient per input."""
    found = misfit(engine, trial)
    if found is None:
        return None
    facts = (*facts_of(trial), *found.facts)
    names = (trial.part.steps[0].symbol,)
    return Place(names, found.sentence, found.public, facts, hints=found.hints, certain=True)


def _ran(trial: Trial) -> bool:
    """Whether the engine has the operation at all."""
    problem = trial.problem
    odd = problem is not None and problem.public == WRONG_TYPE
    return bool(trial.runs) or trial.comparison.difference is not None or odd


def _all_fail_alike(first: Trial, tried: Sequence[Trial | None]) -> bool:
    """Whether no operation runs, and several raise the error that the first one raised; others may be unknown yet."""
    if not first.raised or first.problem is None or any(trial and _ran(trial) for trial in tried):
        return False
    problems = [trial.problem for trial in tried if trial and trial.problem]
    errors = [NUMBER.sub("", problem.error) for problem in problems]  # a message may hold the inputs
    return errors.count(NUMBER.sub("", first.problem.error)) > 2 and not first.problem.unwritten


def _probe(name: str, step: Step, part: Part) -> Part | None:
    """An elementary operation on numbers like those of a part, positive for powers and logarithms."""
    array = part.draws[0].inputs[0]
    inputs = (np.abs(array) + 0.5, np.abs(part.draws[0].inputs[-1][..., None][..., 0]) + 0.75)
    if inputs[0].shape != inputs[1].shape:
        inputs = (inputs[0], inputs[0] * 0.5 + 0.6)
    count = len(step.operands())
    shape = () if name == "sum" else array.shape
    cotangent = np.asarray(np.linspace(12.0, 5.0, max(1, int(np.prod(shape)))).reshape(shape))
    draws = tuple(Draw(inputs[:count], sign * cotangent) for sign in (1.0, -1.0))  # some engines lose one sign only
    return Part((step,), draws, ("first", "second")[:count])


def _on_squares(engine: Any, first: Trial) -> Trial | None:
    """A matrix product tried again with square matrices, for which a wrong rule gives numbers instead of raising an
    error. None if the matrices are square already, or it is another operation.
    """
    inputs = first.part.draws[0].inputs
    shapes = {array.shape for array in inputs}
    if first.part.steps[0].symbol != "@" or any(array.ndim != 2 for array in inputs):
        return None
    size = max(max(shape) for shape in shapes)
    if shapes == {(size, size)}:
        return None
    generator = np.random.default_rng(size)
    drawn = [generator.uniform(0.5, 2.0, (3, size, size)) for _ in first.part.draws]
    draws = tuple(Draw((a, -b), cotangent) for a, b, cotangent in drawn)
    return try_parts(engine, [replace(first.part, draws=draws)])[0]


def _alone(trial: Trial, right: Sequence[Trial] = ()) -> Diagnosis:
    """The bug that explains an operation by itself, and would not show in operations that are right."""
    return diagnose_all((trial, *right))


def _described(
    engine: Any,
    trial: Trial,
    right: Sequence[Trial],
    names: tuple[str, ...],
    inner: Sequence[str],
    others: Mapping[str, Trial],
    broadcast: bool,
    forward: bool,
    squares: Trial | None,
) -> Place:
    """The place of a wrong operation, with sentences. The public one names operations and nothing else."""
    symbol = trial.part.steps[0].symbol
    place = wrong_operand(trial)
    alone = not forward and trial.problem is not None and trial.problem.forward
    sentence, public = sentences(trial, place, forward, alone)
    before, after, certain = _explained(engine, trial, right, squares, forward or alone)
    more = ""
    if inner:
        more += f" {listed_names(inner)} {is_or_are(inner)} wrong too when tried alone; "
        more += f"if `{symbol}` is built from {'that' if len(inner) == 1 else 'them'}, start there."
    if broadcast:
        more += " With inputs of equal shapes it is right: the fault is where an input is broadcast."
    apart = {name: other for name, other in others.items() if name not in inner}
    as_well = f" {listed_names(list(apart))} {is_or_are(list(apart))} wrong as well." if apart else ""
    named = [_alone(other, right) for other in apart.values()] if certain else []
    also = "".join(f" {text[0].upper()}{text[1:]}" for bug in named if bug.certain and (text := bug.sentence()))
    certain = tuple(dict.fromkeys((*certain, *(bug.certain.name for bug in named if bug.certain))))
    hints = rule_hints(inner[0] if inner else symbol, "" if inner else place, broadcast, forward or alone)
    return Place(
        names,
        f"{before}{sentence}.{after}{more}{as_well}{also}",
        f"{public}.{more}{as_well}",
        hints=error_hints(trial) if trial.raised else hints,
        bugs=certain,
    )


def _is_right_elsewhere(engine: Any, trial: Trial) -> bool:
    """Whether an operation that is wrong alone is right for inputs that are all at least 1."""
    draw = trial.part.draws[0]
    positive = replace(draw, inputs=tuple(np.abs(array) + 1.0 for array in draw.inputs), again=None)
    (again,) = try_parts(engine, [replace(trial.part, draws=(positive,))])
    return again is not None and not again.wrong


def _explained(
    engine: Any, trial: Trial, right: Sequence[Trial], squares: Trial | None, in_value: bool
) -> tuple[str, str, tuple[str, ...]]:
    """The explanation of an operation that is wrong alone: text before its name, text after it, and the bug's name."""
    bug = _alone(trial, right)
    if bug.certain is not None and not (bug.certain.drops_gradients and _is_right_elsewhere(engine, trial)):
        return "", f" Taken alone: {bug.sentence()}", (bug.certain.name,)
    if squares is not None and (bug := _alone(squares)).certain is not None:
        text = bug.sentence()
        text = f"{text[0].upper()}{text[1:]} Square matrices show this, because their shapes always fit. "
        return text, "", (bug.certain.name,)
    if in_value:
        return "", "", ()
    common = "" if squares is None else pattern(squares)
    common = f"With square matrices: {common[0].lower()}{common[1:]}" if common else pattern(trial)
    return "", f" {common}".rstrip(), ()


def _smallest(engine: Any, traces: Sequence[Trace], names: Sequence[str], again: bool) -> Trial | None:
    """The smallest part that goes wrong: up to the first result that does, with as few steps before it as possible."""
    ways = [needed(traces[0], number) for number in range(len(traces[0].steps))]
    found = _first_wrong(engine, traces, ways, names, again)
    if found is None:
        return None
    steps, whole = found
    shorter = [steps[start:] for start in range(len(steps) - 1, 0, -1)]
    inner = _first_wrong(engine, traces, shorter, names, again)
    return whole if inner is None else inner[1]


def _first_wrong(
    engine: Any, traces: Sequence[Trace], ways: Sequence[Sequence[int]], names: Sequence[str], again: bool
) -> tuple[Sequence[int], Trial] | None:
    """The first of several selections of steps that goes wrong when it is run as a part."""
    parts = [(way, part) for way in ways if (part := between(traces, way, names, again)) is not None]
    for (way, _), trial in zip(parts, try_parts(engine, [part for _, part in parts]), strict=True):
        if trial is not None and trial.wrong:
            return way, trial
    return None


def _without_reuse(engine: Any, trial: Trial) -> Trial:
    """A part that also goes wrong if no tensor in it is used more than once, in that form; else as it is."""
    reuses = len(trial.part.steps) > 1 and trial.part.used_often()
    part = separated(trial.part) if reuses else None
    again = None if part is None else try_parts(engine, [part])[0]
    return trial if again is None or not again.wrong else again


def _in_a_function(engine: Any, traces: Sequence[Trace], program: Program, again: bool, error: str) -> Place | None:
    """The place if no operation is wrong: the expression fails only with the functions that it calls around them."""
    functions = program.functions()
    everything = needed(traces[0], len(traces[0].steps) - 1)
    part = between(traces, everything, program.arguments, again) if functions else None
    trial = None if part is None else try_parts(engine, [part])[0]
    if part is None or trial is None or trial.wrong:
        return None
    listed = listed_names(functions)
    right = "Every operation is right when it is tried alone, and so are all of them together"
    sentence = f"{right} without {listed}: `{part.text()}`. The fault is in what {listed} "
    sentence += "calls." if len(functions) == 1 else "call."
    public = f"{right}: the fault is in a function around them."
    return Place((), sentence, public, hints=function_hints(error), certain=True)
