"""The standard list: what any engine is tried on, operation by operation, and the table and cards that come of it.

An operation that the engine does not have is no mistake. Neither is a property of its design, which is noted: gradients
that are replaced rather than added by a second `backward`, or a graph that it can only walk by recursion or along every
path.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from autograder.cards.check_report import Line, Report
from autograder.checks.gradients import report_of
from autograder.runs.answers import Outcome, Problem, compared_on
from autograder.runs.comparison import within
from autograder.runs.context import CheckContext
from autograder.runs.engine_protocol import ways_in_words
from autograder.runs.engines import REFERENCE
from autograder.runs.expected import Expected, expected_of
from autograder.runs.inputs import FLOAT32, FLOAT64, AwayFromZero, Spec, positive
from autograder.runs.methods import reference_methods
from autograder.runs.programs import programs_of
from autograder.runs.ways import METHODS, Adapter, Unseeded, Ways, operated

COLUMNS = ("value", "gradient", "broadcast", "reuse", "second call", "deep graph")
RIGHT, WRONG, NONE = "right", "wrong", "-"
REPLACES, RECURSION, SLOW, OTHER, NEAR = "replaces", "recursion", "slow", "other", "near"
NOTES = {
    REPLACES: "replaces: a second `backward` replaces the gradients, where PyTorch adds to them.",
    RECURSION: "recursion: `backward` recurses, and a graph of {} operations in a row is too deep for it.",
    SLOW: "slow: `backward` visits a node once for each path to it, so each `a = a + a` doubles the time.",
    NEAR: "near: right to about five digits. Does an epsilon, float32 or a difference quotient cost the others?",
    OTHER: "other: not what PyTorch's operation of that name gives; what it gives was not looked at.",
}
DEEP, DOUBLED, EXPLODES = 2000, 25, 12
MOST_CARDS = 6
CLOSE = 1e-5
OF_ARRAYS = ("sum", "mean", "__matmul__", "matmul", "dot", "reshape", "shape", "transpose", "T")
SHAPE = (2, 3)
NUMBER = re.compile(r"-?\d[\d.e+-]*")
STRETCHED = (((2, 3), (3,)), ((2, 1), (1, 3)), ((2, 3), (1, 3)))


@dataclass(frozen=True)
class Operation:
    """A row of the list. `needs`: the method without which an engine does not have it. `shapes`: of the inputs, where
    an engine has arrays; None if it is elementwise. `chained`: whether thousands of it in a row stay small numbers.
    `optional`: an engine may refuse these arguments. `turned`: the operation with its operands the other way round.
    """

    name: str
    needs: str
    function: Callable[..., Any]
    inputs: int = 1
    positive: bool = False
    shapes: tuple[tuple[int, ...], ...] | None = None
    chained: bool = False
    optional: bool = False
    turned: Callable[..., Any] | None = None

    def specs(self, arrays: bool) -> list[Spec]:
        shapes = self.shapes or (SHAPE if arrays else (),) * self.inputs
        return [positive(shape) if self.positive else AwayFromZero(shape) for shape in shapes]


def _method(name: str, *arguments: Any, **options: Any) -> Callable[..., Any]:
    """A call of a method or, where the engine has a function instead, of that one."""

    def function(a: Any) -> Any:
        if hasattr(a, name) or name not in FUNCTIONS:
            return getattr(a, name)(*arguments, **options)
        return FUNCTIONS[name](a, *arguments, **options)

    return function


def _operator(name: str) -> Callable[..., Any]:
    return lambda a, b: operated(name, a, b)


def _reshape(a: Any) -> Any:
    try:
        return a.reshape((3, 2))
    except Exception:
        return a.reshape(3, 2)


FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions of the engine that is being tried, for what are not methods of its tensors."""

MATRICES, MATRIX = ((2, 3), (3, 4)), ((2, 3),)
OPERATIONS = (
    Operation("a + b", "__add__", _operator("add"), 2, chained=True),
    Operation("a * b", "__mul__", _operator("mul"), 2, chained=True),
    Operation("a - b", "__sub__", _operator("sub"), 2, chained=True),
    Operation("a / b", "__truediv__", _operator("truediv"), 2),
    Operation("-a", "__neg__", lambda a: -a, chained=True),
    Operation("a ** 3", "__pow__", lambda a: a**3, positive=True),
    Operation("a ** b", "__pow__", lambda a, b: a**b, 2, positive=True),
    Operation("a + 2", "__add__", lambda a: a + 2.0),
    Operation("2 + a", "__radd__", lambda a: 2.0 + a),
    Operation("a * 2", "__mul__", lambda a: a * 2.0),
    Operation("2 * a", "__rmul__", lambda a: 2.0 * a),
    Operation("a - 2", "__sub__", lambda a: a - 2.0),
    Operation("2 - a", "__rsub__", lambda a: 2.0 - a, turned=lambda a: a - 2.0),
    Operation("a / 2", "__truediv__", lambda a: a / 2.0),
    Operation("2 / a", "__rtruediv__", lambda a: 2.0 / a, turned=lambda a: a / 2.0),
    *(
        Operation(f"{name}(a)", name, _method(name), chained=name in ("tanh", "relu", "sigmoid"))
        for name in ("exp", "tanh", "relu", "sigmoid", "sin", "cos", "abs")
    ),
    *(Operation(f"{name}(a)", name, _method(name), positive=True) for name in ("log", "sqrt")),
    Operation("a @ b", "__matmul__", _operator("matmul"), 2, shapes=MATRICES),
    Operation("sum(a)", "sum", _method("sum"), shapes=MATRIX),
    Operation("sum(a, axis=0)", "sum", _method("sum", axis=0), shapes=MATRIX, optional=True),
    Operation("mean(a)", "mean", _method("mean"), shapes=MATRIX),
    Operation("max(a)", "max", _method("max"), shapes=MATRIX),
    Operation("reshape(a, (3, 2))", "reshape", _reshape, shapes=MATRIX, optional=True),
    Operation("a.T", "T", lambda a: a.T, shapes=MATRIX),
    Operation("a[0]", "__getitem__", lambda a: a[0], shapes=MATRIX, optional=True),
)


_SUM, _PRODUCT = _operator("add"), _operator("mul")


def _shared(a: Any, b: Any) -> Any:
    c = _PRODUCT(a, b)
    return _SUM(c, _PRODUCT(c, a))


def _shared_first(a: Any, b: Any) -> Any:
    c = _PRODUCT(a, b)
    return _SUM(_PRODUCT(c, a), c)


def _shared_often(a: Any, b: Any) -> Any:
    c = _PRODUCT(a, b)
    return _SUM(_PRODUCT(c, c), _PRODUCT(c, c))


def _doubled(a: Any) -> Any:
    for _ in range(DOUBLED):
        a = _SUM(a, a)
    return a


GRAPHS = (
    Operation("c + c * a, where c = a * b", "__mul__", _shared, 2),
    Operation("c * a + c, where c = a * b", "__mul__", _shared_first, 2),
    Operation("c * c + c * c, where c = a * b", "__mul__", _shared_often, 2),
    Operation("(a * b + a) * (a + b)", "__mul__", lambda a, b: _PRODUCT(_SUM(_PRODUCT(a, b), a), _SUM(a, b)), 2),
    Operation(f"a = a + a, {DOUBLED} times", "__add__", _doubled, 1),
)


@dataclass(frozen=True)
class Row:
    """An operation in the table: a word for each of COLUMNS."""

    name: str
    cells: tuple[str, ...]


@dataclass
class EngineTrial:
    """What came of it: how the engine works, the rows, the cards, and what is to be noted."""

    how: str = ""
    rows: list[Row] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        """Whether something was tried and nothing was wrong."""
        cells = [cell for row in self.rows for cell in row.cells]
        return RIGHT in cells and WRONG not in cells

    def table(self) -> str:
        """The rows for a terminal."""
        lines = [("operation", *COLUMNS), *((row.name, *row.cells) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
        return "\n".join("  ".join(line).rstrip() for line in padded)


Announced = Callable[[str], Any]


def try_engine(
    engine: Any,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    announced: Announced = lambda name: None,
    without: Sequence[str] = (),
) -> EngineTrial:
    """Try an engine on the standard list. `functions`: what are not methods of its tensors, by name. `announced` is
    told what is tried next. `without`: operations to leave out.
    """
    announced("a leaf")
    tried = EngineTrial(ways_in_words(engine))
    FUNCTIONS.clear()
    FUNCTIONS.update({**(functions or {}), **(engine.operations if isinstance(engine, Adapter) else {})})
    trial = _Trial(engine)
    outcomes: dict[str, list[Outcome]] = {}
    stopped: dict[str, Report] = {}
    for operation in (*OPERATIONS, *GRAPHS):
        if operation.name in without or not trial.has(operation):
            continue
        announced(operation.name)
        found: list[Outcome] = []
        cells = dict.fromkeys(COLUMNS, NONE)
        try:
            trial.fill(operation, cells, found)
        except KeyboardInterrupt as error:  # of a limit of time; by hand it has no text
            if not str(error):
                raise
            cells = {name: WRONG if cell == NONE and name == "gradient" else cell for name, cell in cells.items()}
            stopped[operation.name] = Report(operation.name, (Line(operation.name, WRONG, str(error)),))
        if any(cell != NONE for cell in cells.values()):
            tried.rows.append(Row(operation.name, tuple(cells.values())))
            outcomes[operation.name] = found
    tried.notes = [NOTES[word].format(DEEP) for word in NOTES if any(word in row.cells for row in tried.rows)]
    tried.notes += trial.unchecked[:1]
    announced("the causes")
    tried.reports = [*stopped.values(), *_cards(engine, outcomes)][:MOST_CARDS]
    return tried


class _Trial:
    """An engine in the course of a trial."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.dtype = FLOAT64
        self.sums_right = False
        self.unchecked: list[str] = []
        self.arrays = False
        ways = Ways(engine)
        with contextlib.suppress(Exception):
            leaf = ways.leaf(np.ones(SHAPE), FLOAT64)
            kept = np.shape(ways.numbers(leaf)) == SHAPE
            self.arrays = kept and (any(hasattr(leaf, name) for name in OF_ARRAYS) or "sum" in FUNCTIONS)
            self.arrays = self.arrays or (kept and np.shape(ways.gradient(leaf)) == SHAPE)
        self.small = np.full((2,) if self.arrays else (), 0.5)
        self.known = ways.leaf(self.small, FLOAT64)

    def has(self, operation: Operation) -> bool:
        """Whether the engine has what an operation needs."""
        if operation.shapes is not None and not self.arrays:
            return False
        names = (
            [operation.needs]
            if operation.inputs == 1 and operation not in GRAPHS
            else [operation.needs, METHODS.get(operation.needs.strip("_"), "")]
        )
        return any(hasattr(self.known, name) for name in names) or operation.needs in FUNCTIONS

    def fill(self, operation: Operation, cells: dict[str, str], found: list[Outcome]) -> None:
        """Fill the cells of a row, and collect what failed or was right."""
        specs = operation.specs(self.arrays)
        if operation.function is _doubled and self.explodes():
            cells["gradient"] = SLOW
            return
        if operation.shapes is not None and (meaning := self.other_meaning(operation)):
            cells["value"] = meaning
            return
        first = self.outcome(operation.name, operation.function, [specs], accumulates=True)
        if first.comparison.narrow and self.dtype == FLOAT64:
            self.dtype = FLOAT32
            first = self.outcome(operation.name, operation.function, [specs], accumulates=True)
        problem = first.problem
        if problem is not None and _is_lacking(problem.error, problem.public):
            return
        if problem is not None and problem.status != WRONG:
            cells["gradient"] = problem.status
            self.unchecked.append(f"{problem.status}: {problem.text}")
            return
        if problem is not None and problem.forward and self.is_turned(operation):
            text = f"{problem.text}\n`{operation.needs}` has its operands the wrong way round"
            first = replace(first, comparison=replace(first.comparison, problem=replace(problem, text=text)))
        if problem is not None and _is_near(problem):
            cells["value" if problem.forward else "gradient"] = NEAR
            return
        cells["value"] = WRONG if problem is not None and problem.forward else RIGHT
        if problem is None:
            cells["gradient"] = RIGHT
            if any(entry.draw.again is not None for entry in first.expected):
                cells["second call"] = RIGHT
        elif problem.worst is not None and problem.worst.accumulated:
            cells["gradient"], cells["second call"] = RIGHT, _second(first)
            if cells["second call"] == REPLACES:
                first = replace(first, comparison=replace(first.comparison, problem=None))
        elif not problem.forward:
            cells["gradient"] = WRONG
        found.append(first)
        if first.problem is not None or operation in GRAPHS:
            return
        for column, outcome in self.others(operation):
            cells[column] = RIGHT if outcome.problem is None else outcome.problem.status
            found.append(outcome)
        if operation.name == "a + b":
            self.sums_right = cells["reuse"] == RIGHT
        if operation.chained:
            cells["deep graph"] = self.deep(operation)

    def other_meaning(self, operation: Operation) -> str:
        """OTHER if the result has another shape than in PyTorch, or is no tensor; NONE if the engine refuses it."""
        inputs = [np.full(shape, 0.5) for shape in operation.shapes or ()]
        ways = Ways(self.engine)
        try:
            output = operation.function(*(ways.leaf(array, self.dtype) for array in inputs))
        except Exception as error:
            return NONE if operation.optional and not isinstance(error, NotImplementedError) else ""
        with contextlib.suppress(Exception), reference_methods():
            right = operation.function(*map(REFERENCE, inputs))
            same = ways.can_start(output) and np.shape(ways.numbers(output, right.ndim == 0)) == right.array.shape
            return "" if same else OTHER
        return ""

    def is_turned(self, operation: Operation) -> bool:
        """Whether the value is that of the operands the other way round."""
        ways = Ways(self.engine)
        with contextlib.suppress(Exception):
            if operation.turned is not None:
                numbers = ways.numbers(operation.function(ways.leaf(self.small, self.dtype)))
                return bool(np.allclose(numbers, operation.turned(self.small), rtol=CLOSE))
        return False

    def begin(self, output: Any, ways: Ways) -> None:
        """Go backward from a result, in whatever way there is."""
        try:
            ways.start(output, np.ones_like(self.small), self.dtype)
        except Unseeded:
            ways.start(output, None, self.dtype)

    def explodes(self) -> bool:
        """Whether `backward` takes many times as long for a few more `a = a + a`. Calls are counted, not seconds."""
        calls = []
        for times in (6, 12):
            count = 0

            def note(frame: Any, event: str, argument: Any) -> None:
                nonlocal count
                count += event in ("call", "c_call")

            with contextlib.suppress(Exception):
                ways = Ways(self.engine)
                output = ways.leaf(self.small, self.dtype)
                for _ in range(times):
                    output = _SUM(output, output)
                before = sys.getprofile()
                sys.setprofile(note)
                try:
                    self.begin(output, ways)
                finally:
                    sys.setprofile(before)
            calls.append(count)
        return calls[1] > EXPLODES * max(calls[0], 1)

    def others(self, operation: Operation) -> Iterator[tuple[str, Outcome]]:
        """The operation with inputs that are stretched, and with an input or a result that is used twice."""
        name, function = operation.name, operation.function
        if operation.inputs == 2 and operation.shapes is None:
            if self.arrays:
                make = positive if operation.positive else AwayFromZero
                shapes = [shapes for shapes in STRETCHED if self.stretches(operation, shapes)]
                cases = [[make(shape) for shape in pair] for pair in shapes]
                if cases:
                    yield "broadcast", self.outcome(f"{name}, stretched", function, cases)
            nested = name.replace("b", "(b" + name.strip("ab") + "a)")
            specs = [operation.specs(self.arrays)]
            yield "reuse", self.outcome(nested, lambda a, b: function(a, function(b, a)), specs)
        elif operation.inputs == 1 and self.sums_right:

            def twice(a: Any) -> Any:
                c = function(a)
                return _SUM(c, c)

            yield "reuse", self.outcome(f"c + c, where c = {name}", twice, [operation.specs(self.arrays)])

    def stretches(self, operation: Operation, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether the engine calculates with inputs of these shapes: it need not stretch arrays."""
        with contextlib.suppress(Exception):
            ways = Ways(self.engine)
            operation.function(*(ways.leaf(np.full(shape, 0.5), self.dtype) for shape in shapes))
            return True
        return False

    def outcome(
        self, name: str, function: Callable[..., Any], cases: Sequence[Sequence[Spec]], accumulates: bool = False
    ) -> Outcome:
        (program,) = programs_of({name: function}, len(cases[0]))
        expected = expected_of(program, cases, None, accumulates=accumulates, dtype=self.dtype)
        (outcome,) = compared_on(self.engine, [program], [expected])
        return outcome

    def deep(self, operation: Operation) -> str:
        """Whether `backward` ends on thousands of operations in a row; what it gives is not looked at."""
        ways = Ways(self.engine)
        try:
            with np.errstate(all="ignore"):
                leaf, one = ways.leaf(self.small, self.dtype), ways.leaf(np.ones_like(self.small), self.dtype)
                output = operation.function(*(leaf, one)[: operation.inputs])
                for _ in range(DEEP):
                    output = operation.function(*(output, one)[: operation.inputs])
                self.begin(output, ways)
        except RecursionError:
            return RECURSION
        except Exception:
            return NONE
        return RIGHT


def _is_near(problem: Problem) -> bool:
    """Whether the most wrong number is nearly right."""
    worst = problem.worst
    return worst is not None and abs(worst.got - worst.expected) <= CLOSE * max(1.0, abs(worst.expected))


def _is_lacking(error: str, public: str) -> bool:
    """Whether an error says that the engine does not have an operation at all, in this form."""
    kind, _, message = error.partition(": ")
    if kind.partition(",")[0] in ("NotImplementedError", "AssertionError"):
        return True
    words = ("unsupported operand", "unexpected keyword", "positional argument", "has no attribute", "not callable")
    return kind in ("TypeError", "AttributeError") and any(word in message for word in words) and "grad" not in message


def _second(outcome: Outcome) -> str:
    """Whether the gradients after a second `backward` are those of the second alone."""
    runs = zip(outcome.runs, outcome.expected, strict=True)
    pairs = [pair for run, right in runs if right.draw.again is not None for pair in _alone(run, right)]
    return REPLACES if pairs and all(within(*pair) for pair in pairs) else WRONG


def _alone(run: Any, right: Expected) -> Iterator[tuple[Any, Any, Any]]:
    """The gradients after the second call, what they are if the first call did not count, and the tolerances."""
    count = len(right.draw.inputs)
    once, both = right.reference.dense[:count], right.reference.dense[count:]
    for got, first, sum_of_both, allowed in zip(
        run.dense[count:], once, both, right.tolerance.gradients[count:], strict=True
    ):
        yield got, sum_of_both - first, allowed


def _cards(engine: Any, outcomes: Mapping[str, Sequence[Outcome]]) -> list[Report]:
    """One card if one mistake explains everything, else one for each operation that is wrong."""
    failed = {name: found for name, found in outcomes.items() if any(map(_is_wrong, found))}
    if not failed:
        return []
    everything = [outcome for found in outcomes.values() for outcome in found]
    first, *others = failed
    whole = _card(engine, f"{first}, and {len(others)} more" if others else first, everything)
    if len(failed) == 1 or whole.certain:
        return [whole]
    cards: list[Report] = []
    for name, found in failed.items():
        card = _card(engine, name, found)
        same = next((n for n, one in enumerate(cards) if _said(one) == _said(card)), None)
        if same is None:
            cards.append(card)
        else:
            cards[same] = replace(cards[same], title=f"{cards[same].title}, {name}")
    return cards


def _is_wrong(outcome: Outcome) -> bool:
    return outcome.problem is not None and outcome.problem.status == WRONG


def _said(card: Report) -> tuple[Any, ...]:
    """What a card says, apart from numbers: cards that say the same become one."""
    if card.operations or card.bugs:
        return card.operations, card.bugs
    return (NUMBER.sub("", f"{card.diagnosis} {card.place}".strip() or card.lines[0].explanation),)


def _card(engine: Any, title: str, outcomes: Sequence[Outcome]) -> Report:
    report = report_of(engine, outcomes, CheckContext(), None, title)
    failed = [line for line in report.lines if not line.passed]
    return replace(report, lines=tuple(failed[:1]), compared=(), on_the_graph=None)
