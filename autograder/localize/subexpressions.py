"""Pieces of a traced expression that can be tried alone: one operation, all steps to a result, or those between.

A part is a small program of its own, with the arrays that really went in and the gradient that really arrived.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from autograder.localize.tracing import Step, Trace, Value
from autograder.runs import engine_protocol
from autograder.runs.answers import Outcome, compare_on_draws
from autograder.runs.engines import Draw, run_where_it_lives
from autograder.runs.errors import LessonError
from autograder.runs.methods import METHODS
from autograder.runs.programs import Program, program_of_steps

MOST_SECONDS = 1.0
ORDINALS = ("first", "second", "third", "fourth", "fifth")
LONGEST_TEXT = 100
MOST_COPIES = 10


@dataclass(frozen=True)
class Part:
    """Steps, their draws, and names for their inputs. Values are numbered as in a trace of its own.

    `origin`: what the part calculates, in terms of the expression's inputs. `inner`: the same for those of the part's
    inputs that are results inside the expression.
    """

    steps: tuple[Step, ...]
    draws: tuple[Draw, ...]
    names: tuple[str, ...]
    origin: str = ""
    inner: tuple[tuple[str, str], ...] = ()

    @cached_property
    def program(self) -> Program:
        return program_of_steps(
            self.text(), self.sent_steps(), self.names, any(step.name in METHODS for step in self.steps)
        )

    def sent_steps(self) -> list[Any]:
        return [step.sent() for step in self.steps]

    def text(self) -> str:
        """The part as an expression; results that are used several times get a name."""
        return rendered(self.steps, self.names)

    def symbols(self) -> tuple[str, ...]:
        """The operations, in backward order, each once."""
        return tuple(dict.fromkeys(step.symbol for step in reversed(self.steps)))

    def used_often(self) -> list[int]:
        """The numbers of the values that are used more than once."""
        return [value for value, uses in uses_in(self.steps).items() if uses > 1]


@dataclass(frozen=True, eq=False)
class Trial(Outcome):
    """A part that was tried on a student's engine. `nodes`: how many operations that engine made of it (0: unknown).
    `raised`: something raised an error. `weighed`: its result was multiplied by the incoming gradient and summed,
    because `backward` takes none.
    """

    part: Part
    nodes: int
    raised: bool
    weighed: bool

    @property
    def wrong(self) -> bool:
        return self.comparison.problem is not None


def try_parts(engine: Any, parts: Sequence[Part]) -> list[Trial | None]:
    """Try every part on an engine. None: there is no answer, or the trusted engines cannot run the part."""
    if not parts:
        return []
    sent = [{"steps": part.sent_steps(), "draws": [draw.sent() for draw in part.draws]} for part in parts]
    try:
        answers = run_where_it_lives(engine, engine_protocol.run_parts, sent, MOST_SECONDS)
    except Exception:  # the verdict is known already, and must not be lost because an explanation fails
        return [None] * len(parts)
    answers = answers if isinstance(answers, list) else []
    return [_trial(part, answer) for part, answer in zip(parts, [*answers, *[None] * len(parts)], strict=False)]


def _trial(part: Part, answer: Any) -> Trial | None:
    if not isinstance(answer, dict):
        return None
    if answer.get("plain") is True:
        part = replace(part, draws=tuple(replace(draw, cotangent=None, again=None) for draw in part.draws))
    try:
        outcome = compare_on_draws(answer, part.program, part.draws)
    except LessonError:
        return None
    nodes = answer.get("nodes")
    return Trial(
        *(outcome.program, outcome.expected, outcome.comparison, part),
        nodes=nodes if isinstance(nodes, int) else 0,
        raised="error" in answer,
        weighed=answer.get("weighed") is True,
    )


def single(traces: Sequence[Trace], number: int, inputs: Sequence[str]) -> Part | None:
    """Step `number` alone. A tensor that the step takes twice becomes two inputs."""
    step = traces[0].steps[number]
    operands = step.operands()
    draws = []
    for trace in traces:
        cotangent = trace.cotangents[trace.inputs + number]
        if cotangent is None:
            return None
        draws.append(trace.draw([trace.arrays[operand] for operand in operands], cotangent))
    counter = iter(range(len(operands)))
    names = ORDINALS if len(operands) > 1 else ("input",)
    steps = (step.renumbered(lambda _: next(counter)),)
    origin = _calculation(traces[0], traces[0].inputs + number, inputs)
    return Part(steps, tuple(draws), names[: len(operands)], origin)


def between(traces: Sequence[Trace], numbers: Sequence[int], names: Sequence[str], again: bool) -> Part | None:
    """The given steps (ascending) as a part with the result of the last one; whatever else they need is an input."""
    inputs = traces[0].inputs
    results = {inputs + number: place for place, number in enumerate(numbers)}
    operands = [value for number in numbers for value in traces[0].steps[number].operands()]
    outside = sorted({value for value in operands if value not in results})
    if not outside or len(outside) > len(ORDINALS) + 5:
        return None
    places = {value: place for place, value in enumerate(outside)}
    places |= {value: len(outside) + place for value, place in results.items()}
    draws = []
    for trace in traces:
        cotangent = trace.cotangents[inputs + numbers[-1]]
        if cotangent is None:
            return None
        draw = trace.draw([trace.arrays[value] for value in outside], cotangent)
        draws.append(replace(draw, again=0.75 * cotangent) if again else draw)
    steps = tuple(traces[0].steps[number].renumbered(places.__getitem__) for number in numbers)
    named = _named(outside, inputs, names)
    inner = [(name, _calculation(traces[0], value, names)) for name, value in zip(named, outside, strict=True)]
    return Part(steps, tuple(draws), named, inner=tuple(entry for entry in inner if entry[1]))


def separated(part: Part) -> Part | None:
    """The same calculation without reuse: every use of an input gets a tensor of its own, and every use of a result
    steps of its own. None if that takes too many of them.
    """
    count = len(part.names)
    uses: list[int] = []
    steps: list[Step] = []

    def copied(value: int) -> int:
        """The place of a copy: a result's number, or for an input a negative one, counted from -1 down."""
        if max(len(uses), len(steps)) > MOST_COPIES:
            return 0
        if value < count:
            uses.append(value)
            return -len(uses)
        steps.append(part.steps[value - count].renumbered(copied))
        return len(steps) - 1

    copied(count + len(part.steps) - 1)
    if max(len(uses), len(steps)) > MOST_COPIES:
        return None
    free = (letter for letter in "uvwxyzpqrstmnk" if letter not in part.names)
    names = tuple(part.names[use] if use not in uses[:place] else next(free) for place, use in enumerate(uses))
    inner = dict(part.inner)
    return Part(
        tuple(step.renumbered(lambda place: place + len(uses) if place >= 0 else -place - 1) for step in steps),
        tuple(replace(draw, inputs=tuple(draw.inputs[use] for use in uses)) for draw in part.draws),
        names,
        inner=tuple(
            (name, inner[part.names[use]]) for name, use in zip(names, uses, strict=True) if part.names[use] in inner
        ),
    )


def _calculation(trace: Trace, value: int, names: Sequence[str]) -> str:
    """How a result is calculated from the inputs of the expression, as Python; empty for an input itself."""
    if value < trace.inputs:
        return ""
    numbers = needed(trace, value - trace.inputs)
    places = {number: number for number in range(trace.inputs)}
    places |= {trace.inputs + number: trace.inputs + place for place, number in enumerate(numbers)}
    return rendered([trace.steps[number].renumbered(places.__getitem__) for number in numbers], names)


def needed(trace: Trace, number: int) -> list[int]:
    """The numbers of the steps that the result of a step depends on, including that step."""
    found: set[int] = set()
    stack = [number]
    while stack:
        step = stack.pop()
        if step not in found:
            found.add(step)
            stack += [value - trace.inputs for value in trace.steps[step].operands() if value >= trace.inputs]
    return sorted(found)


def _named(values: Sequence[int], inputs: int, names: Sequence[str]) -> tuple[str, ...]:
    """Inputs of the expression keep their names; results inside it, which became inputs, get free letters."""
    free = (letter for letter in "uvwxyzpqrstmnk" if letter not in names)
    return tuple(names[value] if value < inputs else next(free, f"v{value}") for value in values)


def expanded(part: Part) -> Part | None:
    """A part of one operator with its inputs already broadcast to one shape; None if there is nothing to broadcast."""
    shapes = [array.shape for array in part.draws[0].inputs]
    step = part.steps[0]
    if len(shapes) < 2 or len(set(shapes)) == 1 or step.kind != "operator" or step.name == "matmul":
        return None
    draws = [
        replace(draw, inputs=tuple(np.array(array) for array in np.broadcast_arrays(*draw.inputs)))
        for draw in part.draws
    ]
    return replace(part, draws=tuple(draws))


def uses_in(steps: Sequence[Step]) -> Counter[int]:
    return Counter(value for step in steps for value in step.operands())


def rendered(steps: Sequence[Step], names: Sequence[str]) -> str:
    """Steps as a line of Python: `c = a * b; c * c + c`."""
    uses = uses_in(steps)
    letters = (letter for letter in "cdefghijkl" if letter not in names)
    texts = list(names)
    sentences = []
    for place, step in enumerate(steps):
        text = _expression(step, texts)
        if uses[len(texts)] > 1 and place < len(steps) - 1:
            letter = next(letters, f"v{place}")
            sentences.append(f"{letter} = {text}")
            text = letter
        texts.append(text)
    line = "; ".join(_tidy(sentence) for sentence in [*sentences, texts[-1]])
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 3] + "..."


def _expression(step: Step, texts: Sequence[str]) -> str:
    """One step; operators stand in parentheses, and `_tidy` removes the needless ones."""
    given = [_argument(argument, texts) for argument in step.arguments]
    if step.kind == "operator" and step.name == "getitem":
        index = step.arguments[1]
        return f"{given[0]}[{', '.join(map(_index, index)) if isinstance(index, tuple) else _index(index)}]"
    if step.kind == "operator" and len(given) == 2:
        return f"({given[0]} {step.symbol} {given[1]})"
    if step.kind == "operator":
        return f"(-{given[0]})" if step.name == "neg" else f"{step.name}({given[0]})"
    target = given[0]
    if step.kind == "attribute":
        return f"{target}.{step.name}"
    options = [f"{key}={_argument(value, texts)}" for key, value in step.options]
    return f"{target}.{step.name}({', '.join([*given[1:], *options])})"


def _argument(argument: Any, texts: Sequence[str]) -> str:
    if isinstance(argument, Value):
        return texts[argument.number]
    if isinstance(argument, list | tuple):
        inside = ", ".join(_argument(entry, texts) for entry in argument)
        return f"[{inside}]" if isinstance(argument, list) else f"({inside}{',' * (len(argument) == 1)})"
    return f"{argument:g}" if isinstance(argument, float) else f"{argument!r:.20}"


def _index(index: Any) -> str:
    if isinstance(index, slice):
        ends = ["" if end is None else str(end) for end in (index.start, index.stop)]
        return ":".join(ends if index.step is None else [*ends, str(index.step)])
    return f"{index!r:.20}"


def _tidy(text: str) -> str:
    """Python without needless parentheses."""
    try:
        return ast.unparse(ast.parse(text))
    except (SyntaxError, ValueError):  # a long argument was cut
        return text
