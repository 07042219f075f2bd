"""Break-it labs: an engine with one bug of the bank planted in it, and the question of which example exposes it.

    engine = broken("operands_swapped")
    engine.run(lambda a, b: a * b, [2.0, 3.0])     # value and gradients of the broken engine
    expose(engine, lambda a, b: a * b, [2.0, 3.0])

The broken engine is the reference, with the bug planted while an expression runs, so everything else is right. An
expression is a function of tensors, or a text such as "a * b"; a graded notebook hands over only the text.
`check_gradients(..., engine=engine)` shows the card that a student with this mistake would see.
"""

from __future__ import annotations

import ast
import string
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from autograder.bugs.bank import BY_NAME
from autograder.bugs.bug import Bug, Variant
from autograder.runs.comparison import EPSILON
from autograder.runs.engines import REFERENCE
from autograder.runs.errors import LessonError
from autograder.runs.inputs import Array
from autograder.runs.methods import reference_methods
from autograder.runs.reference_patch import OPERATIONS, symbol
from mini_autograd.graph.backward import reachable
from mini_autograd.graph.function import AccumulateGrad, GraphRoot

DIFFERENT = 1e7 * EPSILON
"""The relative difference between two gradients from which an example counts, well above rounding."""
LONGEST, LARGEST = 400, 1e6
"""Of an expression as a text: its characters, and the numbers in it."""
METHODS = (
    *("abs", "cos", "exp", "log", "log_softmax", "max", "mean", "min", "relu", "reshape", "sigmoid", "sin", "softmax"),
    *("sqrt", "sum", "tanh", "transpose"),
)
Expression = Callable[..., Any] | str


@dataclass(frozen=True)
class Evaluation:
    """The result of an expression on an engine: its value and the gradient of each input (None: none arrived)."""

    value: Array
    gradients: tuple[Array | None, ...]


@dataclass(frozen=True)
class BrokenEngine:
    """The reference with a bug. Printing it shows only the name of the bug."""

    broken_on_purpose: ClassVar[bool] = True
    bug: Bug

    def run(self, expression: Expression, inputs: Sequence[Any]) -> Evaluation:
        """Run the expression on tensors made from `inputs`, forward, and backward with a cotangent of ones.

        Raises LessonError if the expression does not run even without the bug.
        """
        right = _run(expression, inputs, None)
        variant = self._variant(expression, inputs)
        if variant is None:
            return right
        try:
            return _run(expression, inputs, variant)
        except Exception as error:
            raise LessonError(f"the broken engine raised {type(error).__name__}: {error}") from error

    def _variant(self, expression: Expression, inputs: Sequence[Any]) -> Variant | None:
        """The bug in every operation of this expression that can have it; None if there is none."""
        found = self.bug.variants(operations_of(expression, inputs))
        return max(found, key=lambda variant: len(variant.operations)) if found else None

    def __run_remotely__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call `function` with the reference instead of this engine, while the bug is planted wherever it can sit. This
        is how a check runs an engine that is not a class of the notebook.
        """
        with reference_methods(), warnings.catch_warnings(), np.errstate(all="ignore"), self.bug.planted():
            warnings.simplefilter("ignore")
            return function(REFERENCE, *arguments)

    def __repr__(self) -> str:
        return f"<an engine with the bug {self.bug.name}>"


def broken(name: str) -> BrokenEngine:
    """The reference engine with this bug of the bank. Raises LessonError if no bug with this name can be planted."""
    if name not in BY_NAME:
        known = ", ".join(sorted(BY_NAME))
        raise LessonError(f"there is no bug {name!r} to plant; the bugs are: {known}")
    return BrokenEngine(BY_NAME[name])


@dataclass(frozen=True)
class Exposure:
    """Whether an example shows a bug: the right answer, the broken one, and how large the example is."""

    name: str
    right: Evaluation
    broken: Evaluation | None
    problem: str
    operations: tuple[str, ...]
    numbers: int

    @property
    def exposed(self) -> bool:
        return bool(self.problem)

    def sentence(self) -> str:
        """The outcome, for a student."""
        size = f"{_count(len(self.operations), 'operation')} on {_count(self.numbers, 'number')}"
        if not self.exposed:
            return f"not exposed: the broken engine gives the right gradients here ({size})."
        return f"exposed with {size}: {self.problem}."


def exposure(engine: BrokenEngine, expression: Expression, inputs: Sequence[Any]) -> Exposure:
    """Run an example on the broken engine and on the right one. Raises LessonError if it does not run at all."""
    right = _run(expression, inputs, None)
    names = tuple(symbol(name) for name in operations_of(expression, inputs, repeated=True))
    numbers = sum(np.size(value) for value in inputs)
    try:
        broken: Evaluation | None = engine.run(expression, inputs)
        problem = _difference(right, broken)
    except LessonError as error:
        broken, problem = None, str(error)
    return Exposure(engine.bug.name, right, broken, problem, names, numbers)


def _difference(right: Evaluation, broken: Evaluation | None) -> str:
    """The first gradient that differs, in words; empty if all agree."""
    assert broken is not None
    for number, (good, bad) in enumerate(zip(right.gradients, broken.gradients, strict=True)):
        where = f"the gradient of input {number + 1}"
        if (good is None) != (bad is None):
            return f"{where} is {_shown(bad)}, but should be {_shown(good)}"
        if good is None or bad is None:
            continue
        scale = 1.0 + float(np.max(np.abs(good), initial=0.0))
        if good.shape != bad.shape or not np.allclose(good, bad, rtol=DIFFERENT, atol=DIFFERENT * scale):
            return f"{where} is {_shown(bad)}, but should be {_shown(good)}"
    return ""


def _shown(array: Array | None) -> str:
    if array is None:
        return "None"
    if array.ndim == 0:
        return f"{array.item():.6g}"
    return " ".join(np.array2string(array, precision=4, threshold=12, separator=", ").split())


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def operations_of(expression: Expression, inputs: Sequence[Any], repeated: bool = False) -> list[str]:
    """The class names of the operations that an expression records: each once, or one per node."""
    with reference_methods():
        output = _output(expression, [REFERENCE(np.array(x, dtype=np.float64), requires_grad=True) for x in inputs])
        nodes = reachable(GraphRoot((output.gradient_edge,)))
    names = [type(node).__qualname__ for node in nodes if not isinstance(node, AccumulateGrad | GraphRoot)]
    known = [name for name in names if name in OPERATIONS]
    return sorted(names if repeated else set(known))


def _run(expression: Expression, inputs: Sequence[Any], variant: Variant | None) -> Evaluation:
    with reference_methods(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if variant is None:
            return _answer(expression, inputs)
        with variant.plants[0]():
            return _answer(expression, inputs)


def _answer(expression: Expression, inputs: Sequence[Any]) -> Evaluation:
    leaves = [REFERENCE(np.array(x, dtype=np.float64), requires_grad=True) for x in inputs]
    output = _output(expression, leaves)
    REFERENCE.start_backward(output, np.ones(output.shape))
    gradients = tuple(None if leaf.grad is None else np.array(leaf.grad.array) for leaf in leaves)
    return Evaluation(np.array(output.detach().array), gradients)


def expression_of(text: str, inputs: int) -> Callable[..., Any]:
    """The function that a text stands for, of inputs a, b, c, ... in order. The text may come from a submission: it is
    read, never run as Python, and may use only numbers, operators and METHODS. Raises LessonError for anything else.
    """
    from mini_autograd.widgets.expressions import ExpressionError, computed, parsed  # not for functions of tensors

    if not isinstance(text, str) or len(text) > LONGEST:
        raise LessonError(f"an expression is a string of at most {LONGEST} characters, such as 'a * b + a'")
    try:
        tree = parsed(text)
    except (ExpressionError, MemoryError) as error:
        raise LessonError(f"{text!r} is not an expression: {error}") from error
    names = list(string.ascii_lowercase[:inputs])
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in (*names, *METHODS):
            raise LessonError(f"{text!r}: {node.id!r} is not an input; the inputs are {', '.join(names)}")
        if isinstance(node, ast.Constant) and not _is_number(node.value):
            raise LessonError(f"{text!r}: {node.value!r:.20} is not allowed here")
        if isinstance(node, ast.Attribute) and node.attr not in METHODS:
            raise LessonError(f"{text!r}: there is no method {node.attr!r}; the methods are {', '.join(METHODS)}")
    return lambda *leaves: computed(tree, dict(zip(names, leaves, strict=True)), REFERENCE.no_grad)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST


def _output(expression: Expression, leaves: Sequence[Any]) -> Any:
    if not callable(expression):
        expression = expression_of(expression, len(leaves))
    try:
        output = expression(*leaves)
    except Exception as error:
        raise LessonError(f"the expression does not run: {type(error).__name__}: {error}") from error
    if not hasattr(output, "backward") or not output.requires_grad:
        raise LessonError("the expression must return a tensor that depends on its inputs")
    return output
