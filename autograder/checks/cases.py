"""Checks as tables. A case is a title and its steps, written like an example in a docstring, with what is right after
each:

    check = Check("held", points=3)
    check.cases('''
    >>> x = MiniTensor(2.0, requires_grad=True)

    # one node
    >>> held((x * x).grad_fn)
    (2, 0)

    # a second call fails
    >>> y = x**3
    >>> y.backward()
    >>> y.backward()
    RuntimeError: Trying to backward*
    ''')

What is right is a value, the beginning of an error (`*` stands for any text), a condition on `got`, or `anything`,
errors included; a step with nothing after it must not raise. Each case has its own names over those of the notebook,
and begins with the steps above the first title. A step may use the functions of its file, which see the notebook's
names.

The steps run where the student's objects live; what is right never goes there. A case is right as a whole. With
`points`, a check gives all of them or none; without, each case gives its own: 1, or what stands at the end of its
title, `# a second call fails (2 points)`. Of a hidden case, students see only the title: the builder takes it out of
the file that they get.
"""

from __future__ import annotations

import ast
import copy
import dis
import functools
import itertools
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cloudpickle
import numpy as np

from autograder.cards.check_report import NOT_HERE, Line, Report
from autograder.cards.credit import Credit
from autograder.checks.known import Explanation, Signatures
from autograder.checks.outcomes import as_code, difference, same, short_name
from autograder.checks.steps import run_steps
from autograder.runs.answers import failure_in
from autograder.runs.context import CheckContext
from autograder.runs.errors import LessonError
from mini_autograd.system import SLOWER, lacking

REGISTER = "CHECKS"
CONDITION = re.compile(r"\bgot\b")
ERROR = re.compile(r"[A-Z]\w*(?:Error|Exception|Warning|Long|Stop\w*)\b")
POINTS = re.compile(r"(.+) \(([\d.]+) points?\)")
NOT_THERE = "`{}` is not defined: run the cell that defines it, and then this one"
ENDLESS, NOTHING = "TookTooLong", "nothing"
RAISED, OTHERWISE = "your code raised an error", "another result than expected"
SHORT_TERM = 20  # letters
AFTER_A_LOOP = 0.25
"""Seconds for each further case once one has used up its time: most likely it will, too."""


@dataclass(frozen=True)
class CaseStep:
    """One statement, and the text that says what is right after it."""

    source: str
    right: str = ""


@dataclass(frozen=True)
class Case:
    """One script. `hidden`: what students may read of it."""

    title: str
    steps: tuple[CaseStep, ...]
    points: float
    hidden: bool = False


@dataclass(frozen=True)
class CaseResult:
    """What a case gave: its line on the card, and the outcomes of its steps."""

    case: Case
    line: Line
    outcomes: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The short name of a wrong outcome; empty if it is right."""
        return "" if self.line.passed else short_name(self.outcomes)


@dataclass(frozen=True)
class OnRandomInputs:
    """A check on random inputs, beside the cases: `report` gives its report on what the notebook calls `of`."""

    of: str
    report: Callable[[Any, CheckContext], Report]
    points: float
    hidden: bool = False


@dataclass
class Check:
    """The cases of one test cell. A file of cases makes one after the other; each is found under its name."""

    name: str
    points: float = 0.0
    seconds: float = 4.0
    given: tuple[CaseStep, ...] = ()
    written: list[Case] = field(default_factory=list)
    drawn: list[OnRandomInputs] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Note the check in the module that makes it, whose names its steps may use. Raises LessonError."""
        self.scope = sys._getframe(2).f_globals  # below the generated __init__
        checks = self.scope.setdefault(REGISTER, {})
        if self.name in checks:
            raise LessonError(f"there are two checks of the name {self.name!r}")
        checks[self.name] = self

    def cases(self, text: str) -> None:
        """Add cases, and before the first title the steps with which every case begins. Raises SyntaxError."""
        given, cases = _read(text, hidden=False)
        if given and self.written:
            raise SyntaxError(f"steps for every case stand above the first one, not at `{given[0].source}`")
        self.given += given
        self._write(cases)

    def hidden(self, text: str) -> None:
        """Add hidden cases. The titles are all that students read of them. Raises SyntaxError."""
        given, cases = _read(text, hidden=True)
        if given:
            raise SyntaxError(f"a hidden case begins with its title, `# title`, not with `{given[0].source}`")
        self._write(cases)

    def _write(self, cases: Sequence[Case]) -> None:
        for case in cases:
            if any(case.title == other.title for other in self.written):  # signatures go by titles
                raise SyntaxError(f"two cases of {self.name!r} have the title {case.title!r}")
            self.written.append(case)

    def gradients(
        self,
        expression: Any,
        inputs: Sequence[Any],
        points: float = 1.0,
        hidden: bool = False,
        engine: str = "MiniTensor",
        **options: Any,
    ) -> None:
        """Add a check of the gradients of an engine of the notebook, as `check_gradients` makes it."""
        options = {"accumulates": True, "name": "Gradients", **options}

        def report(found: Any, context: CheckContext) -> Report:
            from autograder.checks.gradients import gradients_report

            return gradients_report(found, expression, inputs, context, points=points, **options)

        self.drawn.append(OnRandomInputs(engine, report, points, hidden))

    def function(
        self,
        function: str,
        reference: Callable[..., Any],
        inputs: Sequence[Any],
        points: float = 1.0,
        hidden: bool = False,
        tolerance: float | None = None,
    ) -> None:
        """Add a check of a function of the notebook beside a reference, as `check_function` makes it."""

        def report(found: Any, context: CheckContext) -> Report:
            from autograder.checks.functions import function_report

            options: dict[str, Any] = {"points": points, "name": function, "tolerance": tolerance}
            return function_report(found, reference, inputs, context, **options)

        self.drawn.append(OnRandomInputs(function, report, points, hidden))

    def handwritten(
        self,
        function: str,
        expression: Callable[..., Any],
        inputs: Sequence[Any],
        points: float = 1.0,
        hidden: bool = False,
    ) -> None:
        """Add a check of a function that returns gradients, as `check_handwritten_gradient` makes it."""

        def report(found: Any, context: CheckContext) -> Report:
            from autograder.checks.functions import handwritten_report

            return handwritten_report(found, expression, inputs, context, points=points, name=function)

        self.drawn.append(OnRandomInputs(function, report, points, hidden))

    def tangents(
        self, jvp: str, expression: Any, inputs: Sequence[Any], points: float = 1.0, hidden: bool = False
    ) -> None:
        """Add a check of a forward mode of the notebook, as `check_tangents` makes it."""

        def report(found: Any, context: CheckContext) -> Report:
            from autograder.checks.tangents import tangents_report

            return tangents_report(found, expression, inputs, context, points=points, name="Tangents")

        self.drawn.append(OnRandomInputs(jvp, report, points, hidden))

    def define(self, source: str) -> None:
        """Add a definition that only hidden cases use, to the names of the file."""
        exec(source, self.scope)

    @property
    def most(self) -> float:
        """The points for everything."""
        return self.points or sum(case.points for case in self.written) + sum(each.points for each in self.drawn)

    def sent(self) -> dict[str, Any]:
        """What the steps need of their file: functions, and the modules and values that it names."""
        module = sys.modules.get(self.scope["__name__"])
        if module is not None:
            cloudpickle.register_pickle_by_value(module)
        found: dict[str, Any] = {}
        steps = [step for case in self.written for step in case.steps]
        waiting = {name.id for name in _names([*self.given, *steps])}
        while waiting:
            name = waiting.pop()
            if name in found or name not in self.scope or isinstance(self.scope[name], Check):
                continue
            value = found[name] = self.scope[name]
            if isinstance(value, types.FunctionType) and value.__module__ == self.scope["__name__"]:
                waiting |= set(_names_in(value.__code__))
        return found

    def needed(self) -> set[str]:
        """The names of the notebook that the cases use, also in the functions of their file."""
        sent = self.sent()
        own = [value.__code__ for value in sent.values() if isinstance(value, types.FunctionType)]
        read = {name for code in own for name in _globals_in(code)} | {each.of for each in self.drawn}
        for case in self.written:
            nodes = _nodes([*self.given, *case.steps])
            names = [node for node in nodes if isinstance(node, ast.Name)]
            bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
            bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
            read |= {node.id for node in names} - bound
        return read - sent.keys()


def _read(text: str, hidden: bool) -> tuple[tuple[CaseStep, ...], list[Case]]:
    """The steps before the first title, and the cases."""
    given, *cases = re.split(r"^# ", textwrap.dedent(text), flags=re.MULTILINE)
    return tuple(steps_of(given)), [_case(each, hidden) for each in cases]


def _case(text: str, hidden: bool) -> Case:
    title, _, script = text.partition("\n")
    points = POINTS.fullmatch(title)
    steps = tuple(steps_of(script))
    if not steps:
        raise SyntaxError(f"the case {title!r} has no step")
    return Case(points[1] if points else title, steps, float(points[2]) if points else 1.0, hidden)


def steps_of(script: str) -> Iterator[CaseStep]:
    """The steps of a script. Raises SyntaxError with the line that is wrong."""
    before, *blocks = re.split(r"^>>> ", script, flags=re.MULTILINE)
    if before.strip():
        raise SyntaxError(f"a title begins with `# `, a step with `>>> `: {_start(before)}")
    for block in blocks:
        step, _, after = block.rstrip().partition("\n\n")
        if after:
            raise SyntaxError(f"after an empty line comes a title, `# title`, or a step, `>>> step`: {_start(after)}")
        lines = step.split("\n")
        more = list(itertools.takewhile(lambda line: line == "..." or line.startswith("... "), lines[1:]))
        source = "\n".join([lines[0], *(line[4:] for line in more)])
        right = "\n".join(lines[1 + len(more) :])
        _parse(source, "exec")
        if right and not ERROR.match(right):
            _parse(right, "eval")
        yield CaseStep(source, right)


def _parse(text: str, mode: str) -> None:
    try:
        ast.parse(text, mode=mode)
    except SyntaxError as error:
        raise SyntaxError(f"{_start(text)} is not Python: {error.msg}") from error


def _start(text: str) -> str:
    """The first line that is not empty, as an error shows it."""
    return f"`{text.strip().partition(chr(10))[0]}`"


def run_check(
    check: Check,
    names: Any,
    context: CheckContext,
    signatures: Signatures,
    hidden: Callable[[Check], None] | None = None,
) -> Credit:
    """The credit for a check, whose steps run where the names live: the notebook's, or those of a test namespace with
    a sandbox. `hidden` is a function that adds the hidden cases to a check.
    """
    whole = copy.copy(check)
    whole.written, whole.drawn, whole.scope = _open(check.written), _open(check.drawn), {**check.scope}
    if hidden is not None:  # written in the file of cases, whose names it may use
        types.FunctionType(hidden.__code__, whole.scope)(whole)
    results = list(_results(whole, whole.written, names))
    reports = []
    for secret in (False, True):
        part = [result for result in results if result.case.hidden == secret]
        if part:
            reports.append(_report(whole, part, secret, context, signatures))
        here = replace(context, hidden=secret)
        reports += [_drawn(each, names, here) for each in whole.drawn if each.hidden == secret]
    reports = _one_cause(reports, of_cases=not all(result.case.hidden for result in results))
    if check.points:
        earned = check.points * all(report.passed for report in reports)
        one, *others = reports
        others = [replace(report, earned=0.0, points=None) for report in others]
        return Credit(earned, (replace(one, earned=earned, points=check.points), *others))
    return Credit(sum(report.earned for report in reports), tuple(reports))


def _open(parts: Sequence[Any]) -> list[Any]:
    return [part for part in parts if not part.hidden]


def _one_cause(reports: Sequence[Report], of_cases: bool) -> list[Report]:
    """The reports, each mistake only in the first that names it, with the hints of the others. `of_cases`: the first is
    on cases. If it is certain, a listed mistake gives the very numbers of these cases, and no other report guesses.
    """
    found: list[Report] = []
    for report in reports:
        for place, first in enumerate(found):
            same = report.certain and report.bugs == first.bugs
            if first.certain and first.bugs and report.diagnosis and (same or (of_cases and place == 0)):
                found[place] = replace(first, hints=first.hints or report.hints)
                report = replace(report, diagnosis="", hints=(), bugs=())
        found.append(report)
    return found


def _drawn(each: OnRandomInputs, names: Any, context: CheckContext) -> Report:
    """The report of a check on random inputs."""
    try:
        found = names[each.of]
    except KeyError:
        return Report(
            each.of, (Line(each.of, "wrong", NOT_THERE.format(each.of)),), 0.0, each.points, hidden=each.hidden
        )
    return each.report(found, context)


def wrong_outcomes(check: Check, names: Any) -> dict[str, str]:
    """title -> short name of the outcome, of the visible cases that go wrong."""
    results = _results(check, [case for case in check.written if not case.hidden], names)
    return {result.case.title: result.name for result in results if result.name}


def _results(check: Check, cases: Sequence[Case], names: Any) -> Iterator[CaseResult]:
    seconds = check.seconds * SLOWER
    sent = check.sent()
    for case in cases:
        every = [*check.given, *case.steps]
        outcomes = _run(names, sent, [step.source for step in every], seconds)
        if outcomes and isinstance(outcomes[-1], dict) and _error_in(outcomes[-1]).get("type") == ENDLESS:
            seconds = min(seconds, AFTER_A_LOOP)
        yield _result(check, case, every, outcomes)


def _run(names: Any, sent: Mapping[str, Any], sources: list[str], seconds: float) -> list[Any]:
    sandbox = getattr(names, "sandbox", None)
    where = run_steps if sandbox is None else functools.partial(sandbox.run, run_steps)
    answers = where(None if sandbox is not None else names, sent, sources, seconds)
    return answers if isinstance(answers, list) else []


def _result(check: Check, case: Case, steps: Sequence[CaseStep], outcomes: Sequence[Any]) -> CaseResult:
    """The verdict on a case: its first wrong step decides."""
    for number, step in enumerate(steps):
        outcome = outcomes[number] if number < len(outcomes) else None
        outcome = outcome if isinstance(outcome, dict) else {"error": {"type": NOTHING}}
        wrong = _wrong(check, step, outcome)
        if wrong is None:
            continue
        if lack := lacking(str(_error_in(outcome).get("message"))):
            return CaseResult(case, Line(case.title, NOT_HERE, lack), tuple(outcomes))
        status, text = wrong
        ran = "\n".join(step.source for step in steps[: number + 1])
        line = Line(case.title, status, text, facts=(("steps", ran),))
        if case.hidden:
            line = Line(case.title, status, RAISED if _error_in(outcome) else OTHERWISE)
        return CaseResult(case, line, tuple(outcomes))
    return CaseResult(case, Line(case.title, "right"), tuple(outcomes))


def _wrong(check: Check, step: CaseStep, outcome: Mapping[str, Any]) -> tuple[str, str] | None:
    """Status and sentence of a step that went wrong; None if it is right."""
    error, got = _error_in(outcome), outcome.get("value")
    if step.right == "anything" and error.get("type") != NOTHING:
        return None
    if error:
        return None if _is_expected(step, error) else _raised(check, step, error)
    if not step.right:
        return None
    if ERROR.match(step.right):
        came = f"it gives {as_code(got)[0]}" if "value" in outcome else "it raises nothing"
        return "wrong", f"`{step.source}` must raise {_shown_error(step)}; {came}"
    if CONDITION.search(step.right):
        if _holds(step.right, {**check.scope, "got": got}):
            return None
        return "wrong", f"`{step.source}` is {as_code(got)[0]}; right would be: `{_without_got(step)}`"
    right = evaluated(step.right, check.scope)
    if same(got, right):
        return None
    cause = difference(got, right)
    mine, theirs = as_code(got, right)
    return "wrong", f"`{step.source}` is {mine}, not {theirs}" + (f": {cause}" if cause else "")


def _error_in(outcome: Mapping[str, Any]) -> dict[str, Any]:
    error = outcome.get("error")
    return error if isinstance(error, dict) else {}


def _is_expected(step: CaseStep, error: Mapping[str, Any]) -> bool:
    expected = step.right if step.right.endswith("*") or ":" in step.right else f"{step.right}*"
    pattern = ".*".join(map(re.escape, expected.split("*")))
    came = re.fullmatch(pattern, f"{error.get('type')}: {error.get('message')}", re.DOTALL)
    return came is not None and bool(ERROR.match(step.right))


def _raised(check: Check, step: CaseStep, error: Mapping[str, Any]) -> tuple[str, str]:
    """Status and sentence of a step that raised what it should not."""
    kind, message, line = (str(error.get(key) or "").strip() for key in ("type", "message", "line"))
    if kind == ENDLESS:
        text = f"`{step.source}` does not end, or takes longer than {check.seconds * SLOWER:g} seconds"
        return "wrong", text + (f"; it was in the line `{line}`" if line else "")
    if kind == "NameError" and not line and (missing := re.match(r"name '(\w+)' is not defined", message)):
        return "wrong", NOT_THERE.format(missing[1])
    problem = failure_in({"error": dict(error)})
    if problem is None or kind == NOTHING:
        return "wrong", f"`{step.source}` gave no usable answer"
    if problem.unwritten and (line or not message):  # a stub says nothing more
        return problem.status, problem.text
    right = f"; right would be: `{_shown_error(step)}`" if ERROR.match(step.right) else ""
    if not line:  # the step itself raised it, on what the code gave
        return "wrong", f"`{step.source}` raises {kind}: {message}{right}"
    return problem.status, f"at `{step.source}`, {problem.text}{right}"


def _without_got(step: CaseStep) -> str:
    """The condition of a step, for a card: about the step if that is a short term, else about "it"."""
    last = ast.parse(step.source).body[-1]
    is_term = isinstance(last, ast.Expr) and isinstance(last.value, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
    named = step.source if is_term and len(step.source) <= SHORT_TERM else "it"
    return CONDITION.sub(lambda _: named, step.right)


def _shown_error(step: CaseStep) -> str:
    """The error that a step must raise, for a card."""
    return step.right.rstrip("*").replace("*", "...")


def _holds(condition: str, scope: Mapping[str, Any]) -> bool:
    """Whether a condition holds. One that cannot be asked of what came back, such as of another kind, does not."""
    try:
        return bool(evaluated(condition, scope))
    except Exception:
        return False


def evaluated(text: str, scope: Mapping[str, Any]) -> Any:
    """The value of an expression in a file of cases: what is right after a step, or whether it is."""
    names = {"np": np, "array": np.array, "inf": np.inf, "nan": np.nan, "same": same, **scope}
    return eval(compile(text, "<case>", "eval"), names)


def _report(
    check: Check, results: Sequence[CaseResult], secret: bool, context: CheckContext, signatures: Signatures
) -> Report:
    lines = tuple(result.line for result in results)
    right = all(line.passed for line in lines)
    most = check.points or sum(result.case.points for result in results)
    earned = most * right if check.points else sum(result.case.points for result in results if result.line.passed)
    found = Explanation()
    if not secret and context.explained and all(line.status != "not yet" for line in lines):
        found = signatures.explain(check.name, {each.case.title: each.name for each in results if each.name})
    title = "Hidden cases" if secret else check.name
    points = None if secret and check.points else most
    return Report(
        title, lines, 0.0 if points is None else earned, points, found.sentence, hidden=secret, bugs=found.names
    )


def _names(steps: Sequence[CaseStep]) -> list[ast.Name]:
    return [node for node in _nodes(steps) if isinstance(node, ast.Name)]


def _nodes(steps: Sequence[CaseStep]) -> list[ast.AST]:
    return [node for step in steps for node in ast.walk(ast.parse(step.source))]


def _globals_in(code: types.CodeType) -> Iterator[str]:
    """The global names that compiled code and the functions in it read."""
    yield from (each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL")
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_in(constant)


def _names_in(code: types.CodeType) -> Iterator[str]:
    """The names that compiled code and the functions in it may read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)
