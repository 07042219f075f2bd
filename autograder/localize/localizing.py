"""Where a gradient goes wrong, when no known mistake explains the numbers.

The expression is taken apart. First every operation is tried alone on the student's engine, with the inputs that it
really had and the right gradient arriving: the first wrong one in backward order is the place. When all of them are
right, the fault lies between the rules, and the smallest part of the expression that goes wrong shows where.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograder.bugs.matching import Diagnosis, diagnose_all
from autograder.cards.heat_map import HeatMap
from autograder.localize.formulas import formulas
from autograder.localize.on_paper import on_paper
from autograder.localize.returned import misfit
from autograder.localize.rule_patterns import pattern
from autograder.localize.showing import heat_maps, shown
from autograder.localize.subexpressions import Part, Trial, between, expanded, needed, single, try_parts
from autograder.localize.tracing import Step, Trace, Value, trace
from autograder.runs.answers import GRADIENT_CHANGED, INPUT_CHANGED, NO_BACKWARD, NO_TENSOR, WRONG_TYPE, Problem
from autograder.runs.comparison import two_numbers
from autograder.runs.engines import Draw
from autograder.runs.expected import Expected
from autograder.runs.programs import Program
from autograder.runs.replay import Evidence

MOST_DRAWS = 3
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
"""Operations of which engines make others: a / b as a * b**-1, a mean as a sum divided by a number."""

MADE_OF = {"-": ("+", "-a", "*"), "-a": ("*",), "/": ("**", "*"), "mean": ("sum", "/", "*", "**")}


@dataclass(frozen=True)
class Place:
    """Where it goes wrong. `public` names operations only. `bugs` explain the first wrong operation taken alone.
    `certain`: the sentence says what the mistake is, so no other explanation is needed.
    """

    operations: tuple[str, ...]
    sentence: str
    public: str
    facts: tuple[tuple[str, str], ...] = ()
    maps: tuple[HeatMap, ...] = ()
    hints: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()
    certain: bool = False


def localize(engine: Any, program: Program, expected: Sequence[Expected], problem: Problem) -> Place | None:
    """Find the place where an expression goes wrong. None when nothing definite can be said."""
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
        wrong = [trial for trial in reversed(wrong) if trial.comparison.problem and trial.comparison.problem.forward]
    if wrong:
        place = _in_an_operation(engine, wrong, problem.forward)
        return place if len(numbers) > 1 else replace(place, maps=())  # they are those of the whole expression
    if problem.forward or len(trials) < len(parts):
        return None
    accumulated = problem.worst is not None and problem.worst.accumulated
    smallest = _smallest(engine, traces, program.arguments, accumulated)
    if smallest is not None:
        return _between_operations(smallest, accumulated)
    return _in_a_function(engine, traces, program, accumulated)


def _size(draw: Draw) -> int:
    return sum(array.size for array in draw.inputs)


def _traces(program: Program, expected: Sequence[Expected], first: int) -> list[Trace]:
    """Traces of the draw that failed and of some others on which the expression does the same."""
    order = [first, *(number for number in range(len(expected)) if number != first)]
    found: list[Trace] = []
    for number in order:
        entry = trace(program, expected[number].draw)
        if entry is None:
            return found
        if not found or (entry.steps == found[0].steps and _shapes(entry) == _shapes(found[0])):
            found.append(entry)
        if len(found) == MOST_DRAWS:
            break
    return found


def _shapes(entry: Trace) -> list[tuple[int, ...]]:
    return [array.shape for array in entry.arrays]


def _in_an_operation(engine: Any, wrong: Sequence[Trial], forward: bool) -> Place:
    """The place is a single operation: the first of `wrong`, or what it is made of."""
    first = wrong[0]
    symbol = first.part.steps[0].symbol
    found = None if first.comparison.problem is None else first.comparison.problem.public
    if found in SAID and (found != INPUT_CHANGED or _alone(first).certain is None):
        return SAID[found](first)
    if not forward and (place := _of_the_rule(engine, first)) is not None:
        return place
    equal = expanded(first.part)
    probes = [part for name, step in ELEMENTARY.items() if (part := _probe(name, step, first.part)) is not None]
    tried = try_parts(engine, [*probes, *([equal] if equal else [])])
    if _all_fail_alike(first, tried[: len(probes)]):
        return _fails_everywhere(first)
    elementary = [trial for trial in tried[: len(probes)] if trial is not None and _ran(trial)]
    broken = [trial.part.steps[0].symbol for trial in elementary if trial.wrong]
    if len(elementary) > 2 and len(broken) == len(elementary):
        return _everywhere_in_values(first) if forward else _with_example(engine, _everywhere(first), first)
    inner = [name for name in MADE_OF.get(symbol, ()) if name in broken and first.nodes != 1]
    for trial in elementary:
        if trial.part.steps[0].symbol in inner and (place := _of_the_rule(engine, trial)) is not None:
            return place
    others = tuple(dict.fromkeys(name for trial in wrong if (name := trial.part.steps[0].symbol) != symbol))
    broadcast = equal is not None and tried[-1] is not None and not tried[-1].wrong
    names = tuple(dict.fromkeys([*inner, symbol, *others]))
    squares = None if forward else _on_squares(engine, first)
    place = _described(first, names, inner, others, broadcast, forward, squares)
    told = not forward and not (first.weighed and {"*", "sum"} & {*broken})  # else it is not sure what arrives
    return _with_example(engine, place, first, formulas(squares or first) if told else ())


def _with_example(engine: Any, place: Place, first: Trial, more: Sequence[tuple[str, str]] = ()) -> Place:
    """The place with what its operation gives for numbers that can be checked on paper, and with more facts."""
    simple = on_paper(engine, first)
    facts = _facts(simple, "alone, for simple numbers" if simple is not first else "")
    return replace(place, facts=(*facts, *more), maps=_maps(simple))


def _of_the_rule(engine: Any, trial: Trial) -> Place | None:
    """The place where a rule does not return one gradient per input."""
    found = misfit(engine, trial)
    if found is None:
        return None
    facts = (*_facts(trial), *found.facts)
    names = (trial.part.steps[0].symbol,)
    return Place(names, found.sentence, found.public, facts, hints=found.hints, certain=True)


def _gives_no_tensor(trial: Trial) -> Place:
    """The place where an operation, tried alone, has a result without a graph behind it."""
    symbol = trial.part.steps[0].symbol
    sentence = f"`{symbol}` does not give a tensor, so no gradient can come back through it."
    hints = (
        f"What does your function for `{symbol}` give back, whichever way through it is taken?",
        "The result of an operation is a tensor that knows its inputs and its rule. A plain number knows neither, and "
        "a function that ends without `return` gives None.",
        f"Look at the end of the function for `{symbol}`, and of the functions that it calls.",
    )
    return Place((symbol,), sentence, sentence, _facts(trial), hints=hints, certain=True)


def _has_no_backward(trial: Trial) -> Place:
    """Nothing is wrong with an operation: the class was made anew, and what was added to it later is not there."""
    sentence = "The results are tensors, but they have no `backward`: the class has lost it."
    hints = (
        "Which cell adds `backward` to the class, and has it run since the cell of the class?",
        "Running the cell of a class again makes a new class. What later cells added to the old one is not in it.",
        "Run every cell below the cell of the class again, in order.",
    )
    return Place((), sentence, sentence, hints=hints, certain=True)


def _changes_its_input(trial: Trial) -> Place:
    """The place where an operation writes into its input's data."""
    symbol = trial.part.steps[0].symbol
    sentence = f"`{symbol}` changes the data of its input, forward or on the way back."
    hints = (
        f"Print the input's data before and after `{symbol}` and its `backward`. Which line changes it?",
        "`x *= 2` and `x[...] = 2` write into the array that they are given, and so does `out=x`. That array is still "
        "the input's: everybody who holds it sees the change.",
        f"Look in `{symbol}` for what writes in place, and let it make a new array.",
    )
    return Place((symbol,), sentence, sentence, _facts(trial), hints=hints, certain=True)


def _changes_the_gradient(trial: Trial) -> Place:
    """The place where a rule, or `backward`, writes into the gradient that arrives."""
    symbol = trial.part.steps[0].symbol
    sentence = f"On the way back through `{symbol}` alone, something writes into the array of the incoming gradient."
    hints = (
        f"Print the incoming gradient before and after the rule of `{symbol}` has run. Which line changes it?",
        "`grad *= 2` and `grad[...] = 2` write into the array that arrived. Other nodes may hold the same array: the "
        "rule of a sum, for example, hands one on to both of its inputs.",
        f"Look in the rule of `{symbol}`, then in `backward`, for what writes in place, and make a new array there.",
    )
    return Place((symbol,), sentence, sentence, _facts(trial), hints=hints, certain=True)


SAID = {
    NO_TENSOR: _gives_no_tensor,
    NO_BACKWARD: _has_no_backward,
    INPUT_CHANGED: _changes_its_input,
    GRADIENT_CHANGED: _changes_the_gradient,
}
"""What needs no further search, by the public text of the problem of an operation that was tried alone."""


def _ran(trial: Trial) -> bool:
    """Whether the engine has the operation at all."""
    problem = trial.comparison.problem
    odd = problem is not None and problem.public == WRONG_TYPE
    return bool(trial.comparison.runs) or trial.comparison.difference is not None or odd


def _all_fail_alike(first: Trial, tried: Sequence[Trial | None]) -> bool:
    """Whether no operation runs, and several raise the error that the first one raised; others may be unknown yet."""
    if not first.raised or first.comparison.problem is None or any(trial and _ran(trial) for trial in tried):
        return False
    problems = [trial.comparison.problem for trial in tried if trial and trial.comparison.problem]
    errors = [NUMBER.sub("", problem.error) for problem in problems]  # a message may hold the inputs
    return errors.count(NUMBER.sub("", first.comparison.problem.error)) > 2 and not first.comparison.problem.unwritten


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
    """A product of matrices tried again with square ones: there a wrong rule gives numbers, where other shapes raise an
    error. None where the matrices are square already, or it is another operation.
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


def _everywhere(first: Trial) -> Place:
    sentence = (
        "Every operation that was tried alone gives a wrong gradient, so the fault is hardly in one rule: look at "
        "`backward` itself, at what it does with the gradient it is given and with what the rules return."
    )
    hints = (
        "Take the simplest expression, a + b. Which number does `backward` start with, and what happens to it on the "
        "way to `a.grad`?",
        "The rules only say how a gradient is split among the inputs of one operation; starting, handing on and adding "
        "up is the work of `backward`.",
        "Look in `backward`: the first gradient, the loop over the nodes, and the line that writes `.grad`.",
    )
    return Place(("backward",), f"{sentence} {pattern(first)}".rstrip(), sentence, hints=hints)


def _everywhere_in_values(first: Trial) -> Place:
    sentence = (
        "Every operation that was tried alone gives a wrong value, so the fault is hardly in one operation: look at "
        "what all of them go through, which is how a tensor stores its data."
    )
    hints = (
        "Make a tensor of 0.1 and print its data with all digits. Add 0.2 to it. Which digits are right?",
        "A tensor keeps the numbers that it is given, with all their digits, and changes none.",
        "Look at `__init__` of your tensor, and at the function that makes results.",
    )
    return Place((), sentence + _few_digits(first), sentence, _facts(first), (), hints)


def _few_digits(trial: Trial) -> str:
    """Whether the value is right to the digits of float32, as a sentence."""
    worst = None if trial.comparison.problem is None else trial.comparison.problem.worst
    if worst is None or not 1e-9 < abs(worst.got - worst.expected) / (abs(worst.expected) or 1.0) < 1e-5:
        return ""
    return " The values are right to about seven digits, as float32 keeps numbers. The check needs float64."


def _fails_everywhere(first: Trial) -> Place:
    error = "" if first.comparison.problem is None else first.comparison.problem.error
    sentence = (
        f"Every operation that was tried alone raises the same error: {error}. Begin with that error, not with a rule."
    )
    public = (
        "Every operation that was tried alone raises the same error. Begin with that error, not with a rule: look at "
        "what all of them go through, which is how a result is made, the order of the nodes, and `backward`."
    )
    hints = (
        f"Take `{first.part.text()}` and go through your code line by line. Which line raises the error, and what does "
        "it expect to find there?",
        "The output's gradient is there from the start; for any other node there is one as soon as a rule has sent it, "
        "and its turn comes when all have been sent.",
        "Look in `backward`: the first gradient, the order of the nodes, and where gradients are added and taken.",
    )
    return Place(("backward",), sentence, public, _facts(first), (), hints)


def _alone(trial: Trial) -> Diagnosis:
    """The bug that explains an operation by itself."""
    return diagnose_all([Evidence(trial.part.program(), trial.expected, trial.comparison.runs, False)])


def _described(
    trial: Trial,
    names: tuple[str, ...],
    inner: Sequence[str],
    others: Sequence[str],
    broadcast: bool,
    forward: bool,
    squares: Trial | None,
) -> Place:
    """Sentences about a wrong operation. The public one names operations and nothing else."""
    symbol = trial.part.steps[0].symbol
    place = _operand(trial)
    alone = not forward and trial.comparison.problem is not None and trial.comparison.problem.forward
    sentence, public = _sentences(trial, place, forward, alone)
    before, after, certain = _explained(trial, squares, forward or alone)
    more = ""
    if inner:
        more += f" {_listed(inner)} alone {_is(inner)} wrong, too; where `{symbol}` is made of that, begin there."
    if broadcast:
        more += " With inputs of equal shapes it is right: the fault is where an input is broadcast."
    apart = [name for name in others if name not in inner]
    if apart:
        more += f" {_listed(apart)} {_is(apart)} wrong as well."
    start = inner[0] if inner else symbol
    return Place(
        names,
        f"{before}{sentence}.{after}{more}",
        f"{public}.{more}",
        hints=RAISED if trial.raised else _hints(start, "" if inner else place, broadcast, forward or alone),
        bugs=certain,
    )


def _explained(trial: Trial, squares: Trial | None, in_value: bool) -> tuple[str, str, tuple[str, ...]]:
    """What explains an operation that is wrong alone: said before it is named, said after it, and the bug's name."""
    bug = _alone(trial)
    if bug.certain is not None:
        return "", f" Taken alone: {bug.sentence()}", (bug.certain.name,)
    if squares is not None and (bug := _alone(squares)).certain is not None:
        text = bug.sentence()
        text = f"{text[0].upper()}{text[1:]} This shows with square matrices, of which every product fits. "
        return text, "", (bug.certain.name,)
    if in_value:
        return "", "", ()
    common = "" if squares is None else pattern(squares)
    common = f"With square matrices: {common[0].lower()}{common[1:]}" if common else pattern(trial)
    return "", f" {common}".rstrip(), ()


def _sentences(trial: Trial, place: str, forward: bool, alone: bool) -> tuple[str, str]:
    """What is wrong with an operation: in full, and for the public. `alone`: its value is wrong when tried alone."""
    symbol = trial.part.steps[0].symbol
    if trial.raised:
        error = "" if trial.comparison.problem is None else f": {trial.comparison.problem.error}"
        return f"`{symbol}` raises an error when it is tried alone{error}", f"`{symbol}` fails when it is tried alone"
    if alone:
        return (f"`{symbol}` gives a wrong value when it is tried alone",) * 2
    if forward:
        sentence = f"`{symbol}` is the first operation whose value is wrong although its inputs are right"
        return sentence, f"The first wrong value, going forwards, is that of `{symbol}`"
    sentence = (
        f"`{symbol}` is the first operation, going backwards, whose gradient{place} is wrong although the right "
        "gradient arrives at it"
    )
    return sentence, f"The first wrong gradient, going backwards, is that of `{symbol}`"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _operand(trial: Trial) -> str:
    """Which input's gradient is wrong, where there are several."""
    problem = trial.comparison.problem
    worst = None if problem is None else problem.worst
    if worst is None or len(trial.part.names) == 1 or worst.place == "the value":
        return ""
    return f" for its {worst.place.removesuffix('.grad')} input"


def _hints(symbol: str, place: str, broadcast: bool, forward: bool) -> tuple[str, ...]:
    if forward:
        return (f"Work out `{symbol}` by hand for the numbers shown. Where does yours differ?",)
    if broadcast:
        return (
            f"Which input of `{symbol}` was repeated to fit the other, and how often does each of its elements count?",
            "An element that was used several times gets the sum of all the gradients that belong to its copies.",
            "Look where the gradient of a broadcast input is brought back to the shape of that input.",
        )
    return (
        f"Take `{symbol}` alone. How much does its output change when its input changes a little, and what does your "
        "rule say?",
        "A rule multiplies the gradient that arrives by the local derivative, for each input its own, and nothing else "
        "may influence it.",
        f"Look at the backward rule of `{symbol}`{place.replace(' for', ', at the part for')}.",
    )


def _facts(trial: Trial, alone: str = "") -> tuple[tuple[str, str], ...]:
    """What the part was given, what came out, and what should have. `alone` says that the numbers are not those of the
    expression.
    """
    problem = trial.comparison.problem
    if problem is None:
        return ()
    draw = trial.part.draws[min(problem.draw, len(trial.part.draws) - 1)]
    facts = [("step", trial.part.origin) if trial.part.origin else ("part", trial.part.text())]
    facts += [(alone, trial.part.text())] if alone else []
    origins = {} if alone else dict(trial.part.inner)
    labels = [f"{name} = {origins[name]}" if name in origins else name for name in trial.part.names]
    facts += [(label, shown(array)) for label, array in zip(labels, draw.inputs, strict=True)]
    if draw.cotangent is not None:
        facts.append(("incoming gradient", shown(draw.cotangent)))
    if problem.worst is None:
        return (*facts, ("what happened", problem.text.splitlines()[0]))
    expected, got = two_numbers(problem.worst.expected, problem.worst.got)
    return (*facts, (f"{problem.worst.where()}, expected", expected), (f"{problem.worst.where()}, yours", got))


def _maps(trial: Trial) -> tuple[HeatMap, ...]:
    """Pictures of the wrong gradients of a part."""
    problem = trial.comparison.problem
    if problem is None or problem.forward:
        return ()
    return heat_maps(problem, trial.expected, trial.comparison.runs, trial.part.names)


def _smallest(engine: Any, traces: Sequence[Trace], names: Sequence[str], again: bool) -> Trial | None:
    """The smallest part that goes wrong: the first result that does, and then as few steps before it as possible."""
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
    """Of several selections of steps, the first that goes wrong when it is run as a part."""
    parts = [(way, part) for way in ways if (part := between(traces, way, names, again)) is not None]
    for (way, _), trial in zip(parts, try_parts(engine, [part for _, part in parts]), strict=True):
        if trial is not None and trial.wrong:
            return way, trial
    return None


def _between_operations(trial: Trial, accumulated: bool) -> Place:
    """The place is no rule: every operation is right alone, and this part is not."""
    part = trial.part
    names = part.symbols()
    public = "Every operation is right when it is tried alone; "
    if accumulated:
        kind = "a second `backward` on the same tensors gives wrong gradients"
        look = "look at what happens to what is in `.grad` already, and to anything kept from the first call"
        hints = SECOND_CALL
    elif part.used_often():
        kind = "the gradient goes wrong where a tensor is used more than once"
        look = "look at how its contributions are added, and whether all have arrived before it passes them on"
        hints = REUSE
    else:
        kind = f"the gradient goes wrong on its way from one operation to the next ({_arrow(part)})"
        look = "look at how `backward` hands what a rule returns on to the inputs"
        hints = CHAIN
        names = tuple(reversed(names))  # the rule that gets something else than the first gradient comes first
    sentence = f"{public}{kind}. The smallest part that goes wrong is `{part.text()}`: {look}."
    return Place(names, sentence, f"{public}{kind}: {look}.", _facts(trial), _maps(trial), hints)


def _in_a_function(engine: Any, traces: Sequence[Trace], program: Program, again: bool) -> Place | None:
    """The place is no operation: the expression goes wrong only with the functions that it calls around them."""
    functions = program.functions()
    everything = needed(traces[0], len(traces[0].steps) - 1)
    part = between(traces, everything, program.arguments, again) if functions else None
    trial = None if part is None else try_parts(engine, [part])[0]
    if part is None or trial is None or trial.wrong:
        return None
    listed = _listed(functions)
    right = "Every operation is right when it is tried alone, and so are all of them together"
    sentence = f"{right} without {listed}: `{part.text()}`. The fault is in what {listed} "
    sentence += "calls." if len(functions) == 1 else "call."
    return Place((), sentence, f"{right}: the fault is in a function around them.", hints=FUNCTIONS, certain=True)


def _arrow(part: Part) -> str:
    return " to ".join(f"`{symbol}`" for symbol in part.symbols()[:3])


RAISED = (
    "Which line raised the error, and which values did it get there?",
    "A rule gets the gradient that arrives; all else that it needs must have been kept when the value was calculated.",
    "Look at the line that raised the error, and at where the values in it come from.",
)
SECOND_CALL = (
    "Build `a * b` twice and call `backward` on both. What is in `a.grad` after the first call, and after the second?",
    "`.grad` collects over calls; everything else of a call must begin anew.",
    "Look at what survives a call: `.grad` of tensors that are no leaves, a list of visited nodes, a tape.",
)
REUSE = (
    "Which tensor of this part is used more than once, and how many contributions does its gradient have?",
    "The gradient of a tensor is the sum over all its uses, and it may be passed on only when the sum is complete.",
    "Look at the line that adds a contribution, and at the order in which `backward` visits the nodes.",
)
FUNCTIONS = (
    "What does that function do with its inputs before the first operation, and with the result behind the last?",
    "Gradients come back through the tensors themselves. A copy of an input or of a result is another leaf.",
    "Calculate the gradient twice, with the function and without it, and follow the graph of both from the result.",
)
CHAIN = (
    "What is the incoming gradient of the operation in the middle, and where does your engine take it from?",
    "A rule gets the gradient of its own output, not that of the whole expression.",
    "Look where `backward` calls a rule: which number does it hand over?",
)
