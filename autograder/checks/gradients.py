"""`check_gradients` and `check_handwritten_gradient`, apart from finding the student's objects: expression -> inputs ->
runs -> comparison -> diagnosis -> report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from autograder.cards.check_report import Line, Report
from autograder.localize import numerical_gradient_detector
from autograder.localize.showing import heat_maps, shown
from autograder.runs.answers import Outcome, Problem, compared_on
from autograder.runs.comparison import Worst, two_numbers
from autograder.runs.context import CheckContext, tell
from autograder.runs.engines import has_torch
from autograder.runs.errors import LessonError
from autograder.runs.expected import Expected, as_pytorch, expected_of, measured, numerical_gradient
from autograder.runs.inputs import FLOAT32, FLOAT64, Spec, cases_of
from autograder.runs.programs import Program, programs_of

Expression = Callable[..., Any] | Mapping[str, Callable[..., Any]]
ANY, PYTORCH = "any", "PyTorch"
SOMEBODYS = {  # an engine that was broken on purpose is not the reader's
    "your code": "the broken engine",
    "yours give": "the broken engine give",
    "yours": "broken engine",
    "your ": "its ",
}


def gradients_report(
    engine: Any,
    expression: Expression,
    inputs: Sequence[Any],
    context: CheckContext,
    *,
    points: float | None,
    name: str | None,
    accumulates: bool,
    at_kinks: str = ANY,
    dtype: str | None = FLOAT64,
) -> Report:
    """Check an engine on every expression and report the outcome. `dtype` None: the one that the engine keeps. Raises
    LessonError when the check is faulty.
    """
    cases = cases_of(inputs)
    programs = programs_of(expression, len(cases[0]))
    if at_kinks not in (ANY, PYTORCH) or dtype not in (None, FLOAT64, FLOAT32):
        raise LessonError(f"at_kinks must be {ANY!r} or {PYTORCH!r}, and dtype {FLOAT64!r} or {FLOAT32!r}")

    def tried(dtype: str) -> list[Outcome]:
        draws = [
            expected_of(program, cases, context.seed, accumulates=accumulates, dtype=dtype) for program in programs
        ]
        if at_kinks == PYTORCH:
            draws = [tuple(map(as_pytorch, measured(*each))) for each in zip(programs, draws, strict=True)]
        tell(context, tuple(zip(programs, draws, strict=True)))
        return compared_on(engine, programs, draws)

    outcomes = tried(dtype or FLOAT64)
    if dtype is None and any(outcome.comparison.narrow for outcome in outcomes):
        outcomes = tried(FLOAT32)
    report = report_of(engine, _by_the_chain_rule(engine, outcomes, cases), context, points, name or "Gradients")
    return report.reworded(SOMEBODYS) if getattr(type(engine), "broken_on_purpose", False) else report


def _by_the_chain_rule(engine: Any, outcomes: list[Outcome], cases: Sequence[Sequence[Spec]]) -> list[Outcome]:
    """The outcomes, with a problem if right gradients were found by means other than backpropagation."""
    passed = [outcome for outcome in outcomes if outcome.problem is None]
    reasons = iter(
        numerical_gradient_detector.reasons(engine, [(outcome.program, outcome.expected) for outcome in passed], cases)
    )
    return [outcome if outcome.problem else _unless(outcome, next(reasons)) for outcome in outcomes]


def _unless(outcome: Outcome, reason: str) -> Outcome:
    problem = Problem(reason, reason.partition(":")[0]) if reason else None
    return replace(outcome, comparison=replace(outcome.comparison, problem=problem))


def report_of(
    engine: Any, outcomes: Sequence[Outcome], context: CheckContext, points: float | None, title: str
) -> Report:
    lines = tuple(_line(outcome, number, context.hidden) for number, outcome in enumerate(outcomes))
    share = sum(line.passed for line in lines) / len(lines)
    hidden = context.hidden
    return Report(
        title="Hidden check" if hidden else title,
        lines=lines,
        earned=share * (points or 0.0),
        points=points,
        compared=() if hidden else _compared(outcomes),
        hidden=hidden,
        on_the_graph=None if context.graded else partial(_on_the_graph, engine, outcomes),
        **(_cause(engine, outcomes, hidden) if context.explained else {}),
    )


def _on_the_graph(engine: Any, outcomes: Sequence[Outcome]) -> Any:
    """An explorer for the first failing expression whose graph shows what is wrong."""
    from autograder.checks.on_the_graph import explorer_of

    failing = [(outcome, outcome.problem.draw) for outcome in outcomes if outcome.problem]
    drawn = ((outcome, outcome.expected[draw].draw) for outcome, draw in failing if draw < len(outcome.expected))
    return next(filter(None, (explorer_of(engine, outcome.program, draw) for outcome, draw in drawn)), None)


def _cause(engine: Any, outcomes: Sequence[Outcome], hidden: bool) -> dict[str, Any]:
    """The cause of wrong answers, as fields of `Report`; empty if all are right."""
    if all(outcome.problem is None for outcome in outcomes):
        return {}
    from autograder.checks.diagnosis import cause  # loads the bug bank, which right answers need not wait for

    return cause(engine, outcomes, hidden)


def _line(outcome: Outcome, number: int, hidden: bool) -> Line:
    problem = outcome.problem
    status = "right" if problem is None else problem.status
    if hidden:
        return Line(f"hidden expression {number + 1}", status, "" if problem is None else problem.public)
    if problem is None:
        return Line(outcome.program.name, status)
    seen = outcome.runs
    maps = () if problem.forward else heat_maps(problem, outcome.expected, seen, outcome.program.arguments)
    return Line(outcome.program.name, status, problem.text, maps=maps, details=_facts(outcome, problem))


def _facts(outcome: Outcome, problem: Problem) -> tuple[tuple[str, str], ...]:
    """The inputs and the numbers of all routes at the most wrong element."""
    worst = problem.worst
    if worst is None or problem.draw >= len(outcome.expected):
        return ()
    right = outcome.expected[problem.draw]
    names = outcome.program.arguments
    facts = [(name, shown(array)) for name, array in zip(names, right.draw.inputs, strict=True)]
    if right.draw.cotangent is not None and worst.place != "the value":
        facts.append(("incoming gradient", shown(right.draw.cotangent)))
    facts += _routes(outcome.program, right, worst)
    return tuple(facts)


def _routes(program: Program, right: Expected, worst: Worst) -> list[tuple[str, str]]:
    """The number that each route gives for the most wrong element."""
    digits = max(6, len(two_numbers(worst.expected, worst.got)[0].lstrip("-0.").replace(".", "")))
    routes = [(f"{worst.where()}, yours", f"{worst.got:.{digits}g}"), ("reference", f"{worst.expected:.{digits}g}")]
    number = next((n for n, name in enumerate(program.arguments) if worst.place == f"{name}.grad"), None)
    if number is None or worst.accumulated:
        return routes
    if right.torch is not None:
        routes.append(("PyTorch", f"{float(right.torch.dense[number][worst.index]):.{digits}g}"))
    numerical = numerical_gradient(program, right, number, worst.index)
    return [*routes, ("finite differences", f"{numerical:.{digits}g}")]


def _compared(outcomes: Sequence[Outcome]) -> tuple[tuple[str, str], ...]:
    """The largest distance of each route from the reference, over all draws."""
    everything = [entry for outcome in outcomes for entry in outcome.expected]
    smooth = [entry.numerical_difference for entry in everything if entry.low is None]
    differences = [outcome.comparison.difference for outcome in outcomes if outcome.comparison.difference is not None]
    expressions = "1 expression" if len(outcomes) == 1 else f"{len(outcomes)} expressions"
    return (
        ("runs", f"{expressions} on {len(everything)} random draws, in {_dtype(everything)}"),
        ("compared with", "the reference engine; the largest differences from it:"),
        ("yours", _distance(differences) if differences else "nothing to compare"),
        (
            "PyTorch",
            _distance([entry.torch_difference for entry in everything]) if has_torch() else "not installed here",
        ),
        ("finite differences", _distance(smooth) if smooth else "not usable here: a kink, or too steep"),
    )


def _dtype(everything: Sequence[Expected]) -> str:
    """The dtype of the draws, with what a narrow one means."""
    dtype = everything[0].draw.dtype
    return f"{dtype}, as the engine keeps its numbers: seven digits count" if dtype == FLOAT32 else dtype


def _distance(differences: Sequence[float]) -> str:
    largest = max(differences)
    return f"{largest:.1e}" if largest else "0"
