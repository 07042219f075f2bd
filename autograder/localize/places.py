"""What a card says about the place of a mistake: the sentences, the hints, and the numbers beside them.

Nothing is searched for here: `localizing.py` finds the place, and these functions put it into words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten

from autograder.cards.heat_map import HeatMap
from autograder.localize.rule_patterns import pattern
from autograder.localize.showing import heat_maps, shown
from autograder.localize.subexpressions import Part, Trial
from autograder.runs.answers import GRADIENT_CHANGED, INPUT_CHANGED, NO_BACKWARD, NO_TENSOR, NOT_KEPT
from autograder.runs.comparison import two_numbers
from autograder.runs.slips import ANYTHING, FREED, IN_A_FUNCTION, hints_on

KEEPING = (
    "Make a tensor of 0.1 and print its data with all digits. Add 0.2 to it. Which digits are right?",
    "A tensor stores the numbers that it is given with all their digits, and changes none of them.",
    "Look at `__init__` of your tensor, and at the function that makes results.",
)
LONGEST_LINE = 300  # characters of an error in the facts, where it is one line
Facts = tuple[tuple[str, str], ...]
"""Lines of a card: a label, and numbers as text."""


@dataclass(frozen=True)
class Place:
    """Where it goes wrong. `public` names operations only. `bugs` explain the first wrong operation taken alone.
    `certain`: the sentence says what the mistake is, so no other explanation is needed. `rules_right`: no rule is
    to blame. `everywhere`: every operation raises the same error.
    """

    operations: tuple[str, ...]
    sentence: str
    public: str
    facts: Facts = ()
    maps: tuple[HeatMap, ...] = ()
    hints: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()
    certain: bool = False
    rules_right: bool = False
    everywhere: bool = False


def gives_no_tensor(trial: Trial) -> Place:
    """The place where an operation, tried alone, has a result without a graph behind it."""
    symbol = trial.part.steps[0].symbol
    sentence = f"`{symbol}` does not return a tensor, so no gradient can come back through it."
    hints = (
        f"What does your function for `{symbol}` return, in each of its branches?",
        "The result of an operation is a tensor that knows its inputs and its rule. A plain number knows neither, and "
        "a function that ends without `return` returns None.",
        f"Look at the end of the function for `{symbol}`, and of the functions that it calls.",
    )
    return Place((symbol,), sentence, sentence, facts_of(trial), hints=hints, certain=True)


def has_no_backward(trial: Trial) -> Place:
    """The place if no operation is wrong: the class was made again, and lacks what was added to it later."""
    sentence = "The results are tensors, but they have no `backward`: the class has lost it."
    hints = (
        "Which cell adds `backward` to the class, and did it run after the cell that defines the class?",
        "Running the cell that defines a class again makes a new class, without what later cells added to the old one.",
        "Run every cell below the definition of the class again, in order.",
    )
    return Place((), sentence, sentence, hints=hints, certain=True)


def does_not_keep(trial: Trial) -> Place:
    """The place where a new tensor holds other numbers than it was given, before anything is calculated."""
    sentence = "A new tensor does not hold the numbers that it was given: they are rounded, cast or reshaped."
    return Place((), sentence, sentence, hints=KEEPING, certain=True)


def changes_its_input(trial: Trial) -> Place:
    """The place where an operation writes into its input's data."""
    symbol = trial.part.steps[0].symbol
    sentence = f"`{symbol}` changes the data of its input, in the forward or the backward pass."
    hints = (
        f"Print the input's data before and after `{symbol}` and its `backward`. Which line changes it?",
        "`x *= 2` and `x[...] = 2` write into the array that they are given, and so does `out=x`. That array is still "
        "the input's: everything that uses it sees the change.",
        f"Look in `{symbol}` for a line that writes in place, and make a new array there instead.",
    )
    return Place((symbol,), sentence, sentence, facts_of(trial), hints=hints, certain=True)


def changes_the_gradient(trial: Trial) -> Place:
    """The place where a rule, or `backward`, writes into the gradient that arrives."""
    symbol = trial.part.steps[0].symbol
    sentence = f"On the way back through `{symbol}` alone, something writes into the array of the incoming gradient."
    hints = (
        f"Print the incoming gradient before and after the rule of `{symbol}` has run. Which line changes it?",
        "`grad *= 2` and `grad[...] = 2` write into the array that arrived. Other nodes may use the same array: the "
        "rule of an addition, for example, passes one array to both of its inputs.",
        f"Look in the rule of `{symbol}`, then in `backward`, for a line that writes in place. Make a new array there.",
    )
    return Place((symbol,), sentence, sentence, facts_of(trial), hints=hints, certain=True)


SAID = {
    NO_TENSOR: gives_no_tensor,
    NO_BACKWARD: has_no_backward,
    NOT_KEPT: does_not_keep,
    INPUT_CHANGED: changes_its_input,
    GRADIENT_CHANGED: changes_the_gradient,
}
"""The places that need no further search, by the public text of the problem of an operation that was tried alone."""


def everywhere(first: Trial) -> Place:
    sentence = (
        "Every operation that was tried alone gives a wrong gradient, so the fault is probably not in a single rule. "
        "Look at `backward` itself: at which nodes it visits, and at what it does with the gradient it is given and "
        "with what the rules return."
    )
    hints = (
        "Take the simplest expression, a + b. Which number does `backward` start with, and what happens to it on the "
        "way to `a.grad`?",
        "The rules only say how a gradient is split among the inputs of one operation; starting, passing gradients "
        "on and adding them up is the job of `backward`.",
        "Look in `backward`, and in what it calls: the first gradient, the loop over the nodes, and the line that "
        "writes `.grad`.",
    )
    return Place(("backward",), f"{sentence} {pattern(first)}".rstrip(), sentence, hints=hints)


def lost_in_backward(first: Trial) -> Place:
    """The place where a rule returns the right gradients, but others reach the inputs."""
    symbol = first.part.steps[0].symbol
    public = (
        f"The rule of `{symbol}` is not to blame: called by itself with the gradient that arrives, it returns the "
        "right gradients."
    )
    sentence = f"{public} Other gradients reach the inputs: look at what `backward` does with what the rule returns."
    hints = (
        f"Print what the rule of `{symbol}` returns, and what `backward` adds for each input. Where do they differ?",
        "`backward` sends each gradient that a rule returns to its own input: the first one to the first input.",
        "Look in `backward` at the lines after the call to the rule: which names do they use, and when does the loop "
        "end?",
    )
    return Place(("backward",), sentence, public, facts_of(first), hints=hints, rules_right=True)


def everywhere_in_values(first: Trial) -> Place:
    sentence = (
        "Every operation that was tried alone gives a wrong value, so the fault is probably not in a single "
        "operation: look at what they all share, which is how a tensor stores its data."
    )
    return Place((), sentence + _few_digits(first), sentence, facts_of(first), (), KEEPING)


def _few_digits(trial: Trial) -> str:
    """Whether the value is right to the digits of float32, as a sentence."""
    worst = None if trial.problem is None else trial.problem.worst
    if worst is None or not 1e-9 < abs(worst.got - worst.expected) / (abs(worst.expected) or 1.0) < 1e-5:
        return ""
    return " The values are right to about seven digits, which is the precision of float32. The check needs float64."


def fails_everywhere(first: Trial) -> Place:
    same = "Every operation that was tried alone raises the same error"
    sentence = f"{same}: {error_of(first)}. Start with that error, not with a rule."
    public = (
        f"{same}. Start with that error, not with a rule: look at what all of them share, which is how a result is "
        "made, the order of the nodes, and `backward`."
    )
    hints = (
        f"Take `{first.part.text()}` and go through your code line by line. Which line raises the error, and what does "
        "it expect to find there?",
        "The output has its gradient from the start. Any other node gets its gradients from rules, and its turn comes "
        "when all of them have arrived.",
        "Look in `backward`, and in what it calls: the first gradient, the order of the nodes, and where gradients are "
        "added and read.",
    )
    said = hints_on(error_of(first)) or hints
    return Place(("backward",), sentence, public, facts_of(first), hints=said, everywhere=True)


def between_operations(trial: Trial, accumulated: bool) -> Place:
    """The place if no rule is wrong: every operation is right alone, but this part is not."""
    part = trial.part
    names = part.symbols()
    public = "Every operation is right when it is tried alone; "
    if accumulated:
        kind = "a second `backward` on the same tensors gives wrong gradients"
        look = "look at what happens to what `.grad` already holds, and to anything kept from the first call"
        hints = SECOND_CALL
    elif part.used_often():
        kind = "the gradient goes wrong where a tensor is used more than once"
        look = "look at how its contributions are added, and whether all have arrived before it passes its gradient on"
        hints = REUSE
    else:
        kind = f"the gradient goes wrong on its way from one operation to the next ({_arrow(part)})"
        look = "look at how `backward` passes on to the inputs what a rule returns"
        hints = CHAIN
        names = tuple(reversed(names))  # first the rule that gets something other than the first gradient
    sentence = f"{public}{kind}. The smallest part that goes wrong is `{part.text()}`: {look}."
    return Place(names, sentence, f"{public}{kind}: {look}.", facts_of(trial), maps_of(trial), hints, rules_right=True)


def sentences(trial: Trial, place: str, forward: bool, alone: bool) -> tuple[str, str]:
    """What is wrong with an operation: in full, and in public. `alone`: its value is wrong when tried alone."""
    symbol = trial.part.steps[0].symbol
    if trial.raised:
        return (
            f"`{symbol}` raises an error when it is tried alone: {error_of(trial)}",
            f"`{symbol}` fails when it is tried alone",
        )
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


def is_or_are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def listed_names(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def wrong_operand(trial: Trial) -> str:
    """Which input's gradient is wrong, if there are several."""
    problem = trial.problem
    worst = None if problem is None else problem.worst
    if worst is None or len(trial.part.names) == 1 or worst.place == "the value":
        return ""
    return f" for its {worst.place.removesuffix('.grad')} input"


def error_of(trial: Trial) -> str:
    """What the student's code raised in a trial; empty if nothing. A colon that ends the quoted line is left out."""
    error = "" if trial.problem is None else trial.problem.error
    return f"{error.removesuffix(':`')}`" if error.endswith(":`") else error


def error_hints(trial: Trial) -> tuple[str, ...]:
    """Hints for an operation that raised an error."""
    return hints_on(error_of(trial)) or ANYTHING


def function_hints(error: str) -> tuple[str, ...]:
    """Hints for a function around right operations, which goes wrong, or raises an error."""
    return (hints_on(error) or IN_A_FUNCTION) if error else FUNCTIONS


def rule_hints(symbol: str, place: str, broadcast: bool, forward: bool) -> tuple[str, ...]:
    if forward:
        return (f"Work out `{symbol}` by hand for the numbers shown. Where does yours differ?",)
    if broadcast:
        return (
            f"Which input of `{symbol}` was repeated to fit the other, and how often is each of its elements used?",
            "An element that was used several times gets the sum of all the gradients that belong to its copies.",
            "Look at the code that brings the gradient of a broadcast input back to the shape of that input.",
        )
    return (
        f"Take `{symbol}` alone. How much does its output change when its input changes a little, and what does your "
        "rule say?",
        "For each input, a rule multiplies the gradient that arrives by the local derivative for that input. Nothing "
        "else may influence the result.",
        f"Look at the backward rule of `{symbol}`{place.replace(' for', ', at the part for')}.",
    )


def facts_of(trial: Trial, alone: str = "") -> Facts:
    """The inputs of the part, its results, and the right ones. `alone` says that the numbers are not those of the
    expression.
    """
    problem = trial.problem
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
        happened = problem.text.rpartition("\nin the line `")[0] or problem.text
        return (*facts, ("what happened", shorten(happened, LONGEST_LINE, placeholder=" ...")))
    expected, got = two_numbers(problem.worst.expected, problem.worst.got)
    return (*facts, (f"{problem.worst.where()}, expected", expected), (f"{problem.worst.where()}, yours", got))


def maps_of(trial: Trial) -> tuple[HeatMap, ...]:
    """Pictures of the wrong gradients of a part."""
    problem = trial.problem
    if problem is None or problem.forward:
        return ()
    return heat_maps(problem, trial.expected, trial.runs, trial.part.names)


def _arrow(part: Part) -> str:
    return " to ".join(f"`{symbol}`" for symbol in part.symbols()[:3])


FREED_TOO_EARLY = (
    "The values that a node had saved were gone when its rule asked for them: the node was released before its own "
    "rule ran, or its rule ran twice."
)
RELEASED = Place((), FREED_TOO_EARLY, FREED_TOO_EARLY, hints=FREED, certain=True)
SECOND_CALL = (
    "Build `a * b` twice and call `backward` on both. What is in `a.grad` after the first call, and after the second?",
    "`.grad` accumulates over calls; everything else must start fresh in each call.",
    "Look at what survives a call: `.grad` of tensors that are not leaves, a list of visited nodes, a tape.",
)
REUSE = (
    "Which tensor of this part is used more than once, and how many contributions does its gradient have?",
    "The gradient of a tensor is the sum over all its uses, and it may be passed on only when the sum is complete.",
    "Look at the line that adds a contribution, and at the order in which `backward` visits the nodes.",
)
FUNCTIONS = (
    "What does that function do with its inputs before the first operation, and with the result after the last?",
    "Gradients come back through the tensors themselves. A copy of an input or of a result is another leaf.",
    "Calculate the gradient twice, with the function and without it, and follow both graphs back from the result.",
)
CHAIN = (
    "What is the incoming gradient of the operation in the middle, and where does your engine take it from?",
    "A rule gets the gradient of its own output, not that of the whole expression.",
    "Look at where `backward` calls a rule: which number does it pass?",
)
