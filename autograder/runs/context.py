"""Where a check runs: on a student's laptop or while grading, and with which seed.

The judge sets a context around every test cell; without one a check is a student's own. The context also collects the
reports of all the checks that ran inside it, so that the judge can put them where it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class CheckContext:
    """`seed` draws the inputs (None: a fixed seed per expression); `hidden` keeps inputs and numbers off the cards;
    `student` has handed in the graded work, if known. `explained`: look for the causes of wrong answers, which takes
    longer than finding that they are wrong.
    """

    seed: int | None = None
    graded: bool = False
    hidden: bool = False
    student: str | None = None
    explained: bool = True
    reports: list[Any] = field(default_factory=list)


Listener = Callable[["CheckContext", Any], None]
"""Called for every check that draws inputs, with its context and, for a check of gradients, what it asks of an engine:
each expression with its expected results. Other checks give an empty tuple."""

_LISTENER: ContextVar[Listener | None] = ContextVar("autograder_check_listener", default=None)
_CURRENT: ContextVar[CheckContext | None] = ContextVar("autograder_check_context", default=None)


def current() -> CheckContext:
    """The context of the running check; a fresh local one if none is set."""
    return _CURRENT.get() or CheckContext()


def is_alone() -> bool:
    """Whether a check runs by itself, on a student's laptop, and nobody around it has limits of their own."""
    return _CURRENT.get() is None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """A context in which `listener` is told of every check that draws inputs: audits need to know what lessons ask."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(context: CheckContext, asked: Any = ()) -> None:
    """Tell the listener, if there is one. Every check that draws inputs calls this."""
    if (listener := _LISTENER.get()) is not None:
        listener(context, asked)


@contextmanager
def check_context(
    seed: int | None = None,
    *,
    graded: bool = False,
    hidden: bool = False,
    student: str | None = None,
    explained: bool | None = None,
    reports: list[Any] | None = None,
) -> Iterator[CheckContext]:
    """Run checks with the given seed and secrecy. Yields the context, whose `reports` grow as checks finish.

    If `student` or `explained` is not given, it comes from the context around this one.
    """
    around = current()
    student = around.student if student is None else student
    explained = around.explained if explained is None else explained
    context = CheckContext(seed, graded, hidden, student, explained, [] if reports is None else reports)
    token = _CURRENT.set(context)
    try:
        yield context
    finally:
        _CURRENT.reset(token)
