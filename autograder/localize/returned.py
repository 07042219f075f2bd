"""What the rule of an operation returned, if it is not one gradient per input, in a tuple, or if it is right but
`backward` makes something else of it.

A forgotten comma or tuple shows far away from the rule: `backward` iterates over an array as if it were the tuple, and
takes its first row for the gradient of the first input. So the rule itself is called. `ask_rule` travels into the
sandbox, like the functions of `engine_protocol`. It knows engines whose results have a `rule` and `inputs` (from lesson
02 on) or a `grad_fn` with `next_functions` (from lesson 05 on, as in PyTorch). About others nothing is said.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.localize.subexpressions import Trial
from autograder.localize.tracing import BINARY, Step
from autograder.runs.comparison import within
from autograder.runs.engine_protocol import replayed
from autograder.runs.engines import run_where_it_lives
from autograder.runs.inputs import Array
from autograder.runs.plain_values import LONGEST_TEXT, plain
from autograder.runs.slips import NO_RETURN
from autograder.runs.ways import Ways

FORGOTTEN = (
    "From which tensors was the result made, and which of them does it remember?",
    "The gradients that a rule returns go to the inputs that the result remembers, one after the other. An input "
    "that it does not remember gets nothing.",
    "Look at the line that makes the result: which inputs does it pass to the result?",
)
NO_RETURN_HINTS = (
    "What does a Python function return if it ends without `return`?",
    "A rule hands its gradients on by returning them, one per input in a tuple. Printing them, or writing "
    "them into `.grad`, is not enough: `backward` only uses what the rule returns.",
    "Look at the last line of the rule.",
)
NOTHING = (
    "Which expression in the rule gives that None?",
    "A rule returns None only for an input that needs no gradient. Functions that change an array in place, such as "
    "`np.add.at`, return None, too.",
    "Look at what stands in that place in the `return` of the rule.",
)
WRITES = (
    "What adds to the `.grad` of an input: the rule, or `backward`?",
    "A rule only calculates: it returns one gradient per input, and changes nothing. `backward` adds what has arrived.",
    "Look in the rule for a line that changes `.grad`.",
)
TENSORS = (
    "Which of the things that the rule uses are tensors, and which are numbers?",
    "A rule gets numbers and returns numbers. The numbers of an input are in its `data`.",
    "Look at the rule: does it use `a` where it needs `a.data`?",
)
SHAPES = (
    "Which shape has the gradient that arrives, and which shapes have the gradients that the rule returns?",
    "For each input, a rule multiplies the gradient that arrives, which has the shape of the result, by the local "
    "derivative.",
    "Look at the `return` of the rule: is `grad` in each of its gradients?",
)
TURNED = (
    "Which shape has the gradient that the rule returns, and which shape has the input?",
    "A gradient has the shape of its input. Here the rows and the columns have changed places. The transpose of "
    "`a @ b` is `b.T @ a.T`: it changes the order, too.",
    "Look at the `return` of the rule: which factor stands on the left, and which one is transposed?",
)
NO_TENSORS_HERE = re.compile("operand type|must be real number|object has no attribute '(\\w+)'")
FEW = ("no", "one", "two", "three", "four", "five")
ORDINALS = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True)
class Misfit:
    """A rule that returned something other than one gradient per input. `public` does not tell what it returned."""

    sentence: str
    public: str
    facts: tuple[tuple[str, str], ...]
    hints: tuple[str, ...]


def ask_rule(engine: Any, steps: list[Any], draw: dict[str, Any]) -> dict[str, Any]:
    """What the rule of the last step returns: {} if no rule is found, or it raises.

    `inputs`: how many the operation has; `kind`: the name of the returned type; `count`: how many gradients, if it is a
    tuple or list; `none`: the inputs that need a gradient but got None; `more`: whether there are gradients beyond
    those of the inputs; `tensors`: whether it uses tensors where it needs their numbers, and then nothing else is said;
    `shares`: the gradients themselves, for inputs that all need one; `writes`: whether the rule has changed the `.grad`
    of an input itself; `fixed`: whether `backward` gives gradients of the right shapes once the same gradients come in
    a tuple.
    """
    try:
        ways = Ways(engine)
        leaves, output = _calculated(ways, steps, draw)
        rule, needed, _ = _rule_of(output)
        if getattr(output, "grad_fn", None) is None and _uses_tensors(ways, steps, draw):
            return {"inputs": len(needed), "kind": "", "tensors": True}
        before = [np.array(ways.gradient(leaf)) for leaf in leaves]
        cotangent = np.ones(np.shape(output.data)) if draw["cotangent"] is None else np.array(draw["cotangent"])
        given = rule(cotangent if ways.tracked or cotangent.ndim else float(cotangent))
        several = isinstance(given, tuple | list)
        found = {"inputs": len(needed), "kind": type(given).__name__[:LONGEST_TEXT], "count": None}
        if several:
            none = [number for number, share in enumerate(given) if share is None and number < len(needed)]
            found["none"] = [number for number in none if needed[number]]
            found["more"] = any(share is not None for share in given[len(needed) :])
            found["count"] = len(given)
        shares = list(given) if several else [given]
        if all(needed) and len(shares) == len(needed):
            found["shares"] = [plain(share, ways.tracked) for share in shares]
        after = [np.array(ways.gradient(leaf)) for leaf in leaves]
        found["writes"] = any(not np.array_equal(one, other) for one, other in zip(before, after, strict=True))
        found["fixed"] = _fits_in_a_tuple(ways, steps, draw, several)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a student's rule may well raise SystemExit
        return {}
    return found


def _calculated(ways: Ways, steps: list[Any], draw: dict[str, Any]) -> tuple[list[Any], Any]:
    leaves = [ways.leaf(value, draw["dtype"]) for value in draw["inputs"]]
    return leaves, replayed(steps, leaves)


def _rule_of(output: Any) -> tuple[Callable[[Any], Any], list[bool], Callable[[Any], None]]:
    """The rule that made a result, which of its inputs need a gradient, and a function that sets another rule."""
    node = getattr(output, "grad_fn", None)
    if node is None:
        rule = output.rule
        return rule, [True] * len(output.inputs), lambda other: setattr(output, "rule", other)
    needed = [edge[0] is not None for edge in node.next_functions]
    backward = node.backward
    return (
        lambda grad: backward(node, grad),
        needed,
        lambda other: setattr(node, "backward", lambda ctx, grad: other(grad)),
    )


def _uses_tensors(ways: Ways, steps: list[Any], draw: dict[str, Any]) -> bool:
    """Whether a rule that gets numbers from `backward` returns tensors, or raises an error because it uses one."""
    leaves, output = _calculated(ways, steps, draw)
    rule, _, set_rule = _rule_of(output)
    kind, found = type(leaves[0]), []

    def watched(grad: Any) -> Any:
        if isinstance(grad, kind):  # in this engine rules calculate with tensors
            return rule(grad)
        try:
            given = rule(grad)
        except (TypeError, AttributeError) as error:
            told = NO_TENSORS_HERE.search(str(error)) if kind.__name__ in str(error) else None
            found.append(told is not None and (told[1] is None or hasattr(np.ndarray, told[1])))
            raise
        found.extend(isinstance(share, kind) for share in (given if isinstance(given, tuple | list) else [given]))
        return given

    set_rule(watched)
    with contextlib.suppress(Exception):
        ways.start(output, draw["cotangent"], draw["dtype"])
    return any(found)


def _fits_in_a_tuple(ways: Ways, steps: list[Any], draw: dict[str, Any], several: bool) -> bool:
    """Whether `backward` gives real gradients of the right shapes when the rule's answer is put into a tuple."""
    leaves, output = _calculated(ways, steps, draw)
    rule, _, set_rule = _rule_of(output)
    set_rule(lambda grad: tuple(rule(grad)) if several else (rule(grad),))
    try:
        ways.start(output, draw["cotangent"], draw["dtype"])
    except Exception:
        return False
    grads = [getattr(leaf.grad, "data", leaf.grad) if ways.tracked else leaf.grad for leaf in leaves]
    pairs = zip(grads, leaves, strict=True)
    return all(np.shape(grad) == np.shape(leaf.data) and np.isrealobj(grad) for grad, leaf in pairs)


def misfit(engine: Any, trial: Trial) -> Misfit | None:
    """The misfit of an operation that, tried alone, went wrong because of what its rule returned; else None."""
    answer, problem = _answer(engine, trial), trial.problem
    if problem is None or not _is_count(answer.get("inputs")) or type(answer.get("kind")) is not str:
        return None
    misshapen = trial.raised or problem.worst is None
    step = trial.part.steps[0]
    if answer.get("tensors") is True:
        return _with_tensors(step.symbol, trial.nodes > 1) if misshapen else None
    found = _forgotten(step, answer) or _described(step.symbol, answer, misshapen)
    found = found or (_misshapen(trial, problem.draw, answer) if misshapen else None)
    return found or _writing(step.symbol, answer)


def _answer(engine: Any, trial: Trial) -> dict[str, Any]:
    """What `ask_rule` says about the draw that went wrong on the way back; {} if there is none."""
    problem = trial.problem
    if problem is None or problem.forward:
        return {}
    draw = trial.part.draws[min(problem.draw, len(trial.part.draws) - 1)]
    try:
        answer = run_where_it_lives(engine, ask_rule, trial.part.sent_steps(), draw.sent())
    except Exception:  # the verdict is known already, and must not be lost because an explanation fails
        return {}
    return answer if isinstance(answer, dict) else {}


def rule_is_right(engine: Any, trial: Trial) -> bool:
    """Whether the rule of an operation, called by itself with the right gradient, returns the right gradients, which
    `backward` does not deliver. False unless the engine made one node of the operation and nothing raised an error.
    """
    problem = trial.problem
    if problem is None or trial.raised or trial.weighed or trial.nodes != 1:
        return False
    shares = _answer(engine, trial).get("shares")
    expected = trial.expected[min(problem.draw, len(trial.expected) - 1)]
    right = expected.reference.gradients
    if not isinstance(shares, list) or len(shares) != len(right):
        return False
    return all(map(_agree, shares, right, expected.tolerance.gradients))


def _agree(share: Any, gradient: Any, allowed: Array) -> bool:
    """Whether a rule's gradient is right to the precision of the check, once it is summed to the shape of an input that
    was broadcast.
    """
    if gradient is None or not isinstance(share, int | float | np.ndarray) or np.ndim(share) < np.ndim(gradient):
        return False
    added = np.sum(share, axis=tuple(range(np.ndim(share) - np.ndim(gradient))))
    stretched = tuple(axis for axis, length in enumerate(np.shape(gradient)) if length == 1)
    added = np.sum(added, axis=stretched, keepdims=True)
    return added.shape == np.shape(gradient) and within(added, gradient, allowed)


def _with_tensors(symbol: str, made_of_others: bool) -> Misfit:
    """What to say if a rule uses tensors where it needs their numbers."""
    rule = f"he rule of {'the last operation in ' if made_of_others else ''}`{symbol}`"
    rest = "uses a tensor where it needs its numbers: calculate with `.data` inside the rules."
    return Misfit(f"t{rule} {rest}", f"T{rule} {rest}", (), TENSORS)


def _forgotten(step: Step, answer: dict[str, Any]) -> Misfit | None:
    """What to say if the rule returns a gradient for each operand, but the result remembers fewer of them. Where a
    number is an operand, an engine may remember it or not: then it is not said which of the two is wrong.
    """
    operands, inputs, count = len(step.operands()), answer["inputs"], answer.get("count")
    numbers = sum(type(argument) in (int, float) for argument in step.arguments) if step.name in BINARY else 0
    if count not in (operands, operands + numbers) or not 0 < inputs < count or answer.get("more") is not True:
        return None
    if count == operands:
        remembers = f"remembers {FEW[inputs]} of its {FEW[operands]} inputs"
        sentence = f"the result of `{step.symbol}` {remembers}, so a gradient that its rule returns has nowhere to go."
        public = f"The result of `{step.symbol}` does not remember all its inputs."
    else:
        remembers = f"remembers {FEW[inputs]} input{'s' * (inputs != 1)}"
        sentence = f"the result of `{step.symbol}` {remembers}, but its rule returned {FEW[count]} gradients."
        public = f"The rule of `{step.symbol}` returned more gradients than the result remembers inputs."
    facts = (
        ("inputs that the result remembers", str(inputs)),
        ("its rule returned", _thing(answer["kind"][:60], count)),
    )
    return Misfit(sentence, public, facts, FORGOTTEN)


def _described(symbol: str, answer: dict[str, Any], misshapen: bool) -> Misfit | None:
    """What to say of a rule's answer; None if it was one gradient per input, or if that is not what went wrong."""
    inputs, kind, count = answer["inputs"], answer["kind"][:60], answer.get("count")
    due = f"{FEW[inputs]} input{'s' * (inputs != 1)}"
    if not inputs:
        public = f"The result of `{symbol}` remembers no inputs, so what its rule returns goes nowhere."
        return Misfit(public[0].lower() + public[1:], public, (), FORGOTTEN)
    public = f"The rule of `{symbol}` did not return one gradient per input, in a tuple."
    facts = (("inputs of the operation", str(inputs)), ("its rule returned", _thing(kind, count)))
    if kind == "NoneType" and misshapen:
        sentence = f"the rule of `{symbol}` returned nothing for its {due}: {NO_RETURN}"
        return Misfit(sentence, public, facts, NO_RETURN_HINTS)
    if not _is_count(count):
        if inputs == 1 and not (misshapen and answer.get("fixed") is True):
            return None
        then = "and `backward` looped over it as if it were a tuple" if inputs == 1 else "instead of a tuple"
        sentence = f"the rule of `{symbol}` returned {_thing(kind, None)} for its {due}, {then}."
        return Misfit(sentence, public, facts, _hints(inputs))
    if count != inputs and (count < inputs or answer.get("more") is True):
        sentence = f"the rule of `{symbol}` returned {_thing(kind, count)} for its {due}."
        return Misfit(sentence, public, facts, _hints(inputs, count))
    none = answer.get("none")
    if isinstance(none, list) and none and all(_is_count(number) and number < inputs for number in none):
        which = " and ".join(ORDINALS[number] for number in none)
        sentence = f"the rule of `{symbol}` returned None for its {which} input, which needs a gradient."
        return Misfit(sentence, public, (facts[0], ("its rule returned", f"None for its {which} input")), NOTHING)
    if kind != "tuple" and misshapen and answer.get("fixed") is True:
        sentence = f"the rule of `{symbol}` returned a {kind}, instead of a tuple."
        return Misfit(sentence, public, facts, _hints(inputs, inputs))
    return None


def _misshapen(trial: Trial, number: int, answer: dict[str, Any]) -> Misfit | None:
    """What to say if a rule's gradient has a shape that no sum brings to the shape of the input. A rule that passes the
    gradient of the result on, in its shape, makes another mistake, which has other names.
    """
    draws, shares = trial.part.draws, answer.get("shares")
    inputs = draws[min(number, len(draws) - 1)].inputs
    if not isinstance(shares, list) or len(shares) != len(inputs):
        return None
    symbol = trial.part.steps[0].symbol
    result = np.shape(trial.expected[min(number, len(trial.expected) - 1)].reference.value)
    for ordinal, share, array in zip(ORDINALS, shares, inputs, strict=False):
        odd = isinstance(share, np.ndarray) and share.shape not in ((), result)
        if odd and not _can_be_summed(share.shape, np.shape(array)):
            returned = f"an array of shape {share.shape} for its {ordinal} input"
            sentence = f"the rule of `{symbol}` returned {returned}, which has shape {np.shape(array)}."
            public = f"The rule of `{symbol}` returned an array of the wrong shape for its {ordinal} input."
            hints = TURNED if share.shape == np.shape(array)[::-1] else SHAPES
            return Misfit(sentence, public, (("its rule returned", returned),), hints)
    return None


def _can_be_summed(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether the gradient of a broadcast result may have this shape: an input of the wanted shape stretches to it."""
    try:
        return np.broadcast_shapes(shape, wanted) == shape
    except ValueError:
        return False


def _writing(symbol: str, answer: dict[str, Any]) -> Misfit | None:
    """What to say if the rule writes into `.grad`, to which `backward` then adds what the rule returns."""
    if answer.get("writes") is not True:
        return None
    public = f"The rule of `{symbol}` writes into the `.grad` of its inputs itself."
    sentence = (
        f"the rule of `{symbol}` writes into the `.grad` of its inputs itself, and returns their gradients as well: "
        "`backward` adds these to `.grad` once more."
    )
    return Misfit(sentence, public, (), WRITES)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < len(FEW)


def _thing(kind: str, count: Any) -> str:
    if not _is_count(count):
        return {"ndarray": "a single array", "float": "a single number", "float64": "a single number"}.get(
            kind, "nothing (None)" if kind == "NoneType" else f"a single {kind}"
        )
    return f"a {kind} with {FEW[count]} gradient{'s' * (count != 1)}"


def _hints(inputs: int, count: int | None = None) -> tuple[str, ...]:
    """A question, the idea, and where to look."""
    said = "1" if count is None else str(count)
    words = f"function ...Backward returned an incorrect number of gradients (expected {inputs}, got {said})"
    many = f' PyTorch would say: "{words}".' if said != str(inputs) else ""
    comma = (
        "`return (gradient,)`: the comma makes the tuple. If rules may return a single gradient, `backward` has to "
        "put it into a tuple before it loops over it."
    )
    return (
        "How many inputs does the operation have, and what exactly comes after `return` in its rule?",
        f"A rule returns one gradient per input, in the order of the inputs, and None where there is none.{many}",
        f"Look at the `return` of the rule: {comma if inputs == 1 else 'a comma between the gradients of two inputs.'}",
    )
