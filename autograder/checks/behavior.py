"""`check_engine`: whether an engine behaves like PyTorch in ways that values and gradients do not show.

The same probes run on the student's engine, on the reference and on PyTorch. A mistake is named when exactly one bug,
planted into the reference, makes the probes see what they saw on the student's engine.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from autograder.bugs.bank import BUGS
from autograder.bugs.bug import Bug
from autograder.bugs.matching import MOST_NAMED, Diagnosis
from autograder.cards.check_report import Line, Report
from autograder.localize.probes import PROBES, run_probes
from autograder.localize.showing import shown
from autograder.runs.answers import failure_in
from autograder.runs.context import CheckContext
from autograder.runs.engines import REFERENCE, TORCH, has_torch, run_where_it_lives
from autograder.runs.errors import LessonError
from autograder.runs.reference_patch import LOCK

Seen = dict[str, Any]


def behavior_report(
    engine: Any,
    behaviors: Sequence[str],
    no_grad: Any,
    context: CheckContext,
    *,
    points: float | None,
    name: str | None,
) -> Report:
    """Check the named behaviors. Raises LessonError when there is no such behavior."""
    unknown = [behavior for behavior in behaviors if behavior not in PROBES]
    if unknown or not behaviors:
        raise LessonError(f"the behaviors are {', '.join(map(repr, PROBES))}, not {', '.join(map(repr, unknown))}")
    right = _trusted(behaviors)
    answers = run_where_it_lives(engine, run_probes, [PROBES[behavior] for behavior in behaviors], no_grad)
    if not isinstance(answers, list) or len(answers) != len(behaviors):
        answers = [None] * len(behaviors)
    lines = [_line(*cell, context.hidden) for cell in zip(behaviors, answers, right, strict=True)]
    diagnosis = _diagnosis(behaviors, answers, right)
    bug = diagnosis.certain
    return Report(
        title="Hidden check" if context.hidden else name or "Engine",
        lines=tuple(lines),
        earned=sum(line.passed for line in lines) / len(lines) * (points or 0.0),
        points=points,
        diagnosis=diagnosis.sentence(),
        hints=() if bug is None else (bug.hint, f"This mistake often comes from a wrong belief: *{bug.misconception}*"),
        compared=() if context.hidden else (("compared with", _compared_with()),),
        hidden=context.hidden,
        bugs=tuple(candidate.name for candidate in diagnosis.candidates),
    )


def _trusted(behaviors: Sequence[str]) -> list[Seen]:
    """What the probes see on the reference, and likewise on PyTorch if it is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        probes = [PROBES[behavior] for behavior in behaviors]
        reference = [seen for behavior in behaviors if (seen := _on_reference(behavior)) is not None]
        right = reference
        if has_torch():
            right = [answer["seen"] for answer in run_probes(TORCH, probes, TORCH.no_grad, Exception)]
    if len(reference) < len(behaviors) or not all(map(_same, reference, right)):
        raise LessonError("the reference and PyTorch disagree on a behavior")
    return right


def _compared_with() -> str:
    return "PyTorch and the reference engine" if has_torch() else "the reference engine; this Python has no PyTorch"


def _on_reference(behavior: str, bug: Bug | None = None, number: int = 0) -> Seen | None:
    """What a probe sees on the reference, in which a form of a bug may be planted; None if it raises."""
    with LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with nullcontext() if bug is None else bug.variants(bug.operations)[number].plants[0]():
            (answer,) = run_probes(REFERENCE, [PROBES[behavior]], REFERENCE.no_grad, Exception)
    return answer.get("seen")


def _line(behavior: str, answer: Any, right: Seen, hidden: bool) -> Line:
    name = "hidden behavior" if hidden else behavior
    problem = failure_in(answer)
    if problem is not None:
        return Line(name, problem.status, problem.public if hidden else problem.text)
    seen = answer.get("seen") if isinstance(answer, dict) else None
    if not isinstance(seen, dict) or list(seen) != list(right):
        return Line(name, "wrong", "no usable answer came back")
    wrong = next((key for key in right if not _equal(seen[key], right[key])), None)
    if wrong is None:
        return Line(name, "right")
    if hidden:
        return Line(name, "wrong", "the engine behaves differently from PyTorch")
    return Line(name, "wrong", f"{wrong}: expected {_shown(right[wrong])}, got {_shown(seen[wrong])}")


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return shown(value.astype(np.float64)) if value.dtype.kind in "biuf" else "an array of something else"
    return str(value)[:60]


def _same(seen: Any, right: Seen) -> bool:
    return isinstance(seen, dict) and list(seen) == list(right) and all(_equal(seen[key], right[key]) for key in right)


def _equal(first: Any, second: Any) -> bool:
    """Whether the same was seen: the same word, None, or the same numbers."""
    if isinstance(second, np.ndarray):
        fits = isinstance(first, np.ndarray) and first.dtype.kind == "f" and first.shape == second.shape
        return fits and bool(np.allclose(first, second, rtol=1e-12, atol=1e-12))
    return type(first) is type(second) and first == second


def _diagnosis(behaviors: Sequence[str], answers: Sequence[Any], right: Sequence[Seen]) -> Diagnosis:
    """The bugs that make the probes see on the reference what they saw on the student's engine, in every behavior that
    is wrong. The diagnosis is certain if there is only one such bug."""
    wrong = [
        (behavior, answer.get("seen") if isinstance(answer, dict) else None)
        for behavior, answer, expected in zip(behaviors, answers, right, strict=True)
        if not (isinstance(answer, dict) and _same(answer.get("seen"), expected))
    ]
    if not wrong:
        return Diagnosis()
    found = [bug for bug in BUGS if bug.behavior and all(_explains(bug, *cell) for cell in wrong)]
    return Diagnosis(found[0] if len(found) == 1 else None, tuple(found) if len(found) <= MOST_NAMED else ())


def _explains(bug: Bug, behavior: str, seen: Any) -> bool:
    for number, _ in enumerate(bug.variants(bug.operations)):
        planted = _on_reference(behavior, bug, number)
        if planted is not None and _same(seen, planted):
            return True
    return False
