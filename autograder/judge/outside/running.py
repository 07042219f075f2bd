"""Runs one test cell on the trusted side: statement by statement, with a time limit, its output captured, its hidden
part kept apart.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import resource
import sys
import threading
import time
import types
import warnings
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from autograder.judge.outside.guard import on_guard
from autograder.judge.outside.namespace import TestNamespace
from autograder.judge.outside.steps import TestCode, TestStatement, test_code
from autograder.notebooks.cells import CodeCell
from autograder.notebooks.regions import LINE_END, hidden_lines
from autograder.notebooks.trusted import is_stateful, split_import
from autograder.runs.alarm import alarm
from autograder.runs.context import check_context
from autograder.sandbox.process.allowance import Allowance
from autograder.sandbox.replies import print_again

MAX_TEXT = 50_000
MORE_MEMORY = 8 << 30
# A test may use this many times its limit of processor time, and for us this many times the time of grace.
PATIENCE, SPARE = 4.0, 15.0


class TestTimeout(BaseException):
    """The time for a test cell is over. Not an Exception, so that `except Exception` in a test does not swallow it."""

    __test__ = False


class FailedInside(Exception):  # noqa: N818
    """A test failed in the submission's process. `kind` is the name of the exception that the process reports."""

    def __init__(self, text: str, kind: str = "TestFailed"):
        super().__init__(text)
        self.kind = kind


@dataclass
class CellOutcome:
    """How a test cell went. `hidden_value`: a hidden statement gave the value. `failed_hidden`: it failed in the hidden
    part, so the details are secret. `met_hidden`: it came to a hidden statement, and ran or skipped it. `said`: the
    text of the error, if it was read while the objects in it could still answer. `printed_by_test`: `printed` without
    what the submission's code printed. `believed`: the names of given cells that it used and that the submission has
    bound otherwise.
    """

    value: Any = None
    hidden_value: bool = False
    error: BaseException | None = None
    said: str | None = None
    failed_hidden: bool = False
    met_hidden: bool = False
    failed_source: str = ""
    printed: str = ""
    printed_by_test: str = ""
    reports: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    timed_out: bool = False
    notes: list[str] = field(default_factory=list)
    believed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What the error says."""
        return str(self.error).strip() if self.said is None and self.error is not None else self.said or ""


@dataclass
class Ran:
    """One cell of one run through a notebook: a student's outputs, or how a test went."""

    outputs: list[Any] = field(default_factory=list)
    outcome: CellOutcome | None = None


class BoundedText(io.StringIO):
    """Text written while a test runs, up to a size. `by_test`: the test's own, without what student code printed."""

    def __init__(self) -> None:
        super().__init__()
        self.by_test = ""

    def write(self, text: str) -> int:
        if self.tell() < MAX_TEXT:
            super().write(text[:MAX_TEXT])
            if sys._getframe(1).f_code is not print_again.__code__:
                self.by_test += text[:MAX_TEXT]
        return len(text)


def run_test(
    cell: CodeCell, namespace: TestNamespace, seed: int | None, seconds: float, visible_only: bool
) -> CellOutcome:
    """Run the statements of a test cell in order, or only those that are not hidden. Errors go into the outcome; only
    KeyboardInterrupt is raised.
    """
    outcome = CellOutcome()
    namespace.new_cell()
    namespace.sandbox.prepare()
    namespace.sandbox.notes.clear()
    sandbox = namespace.sandbox
    began = time.monotonic()
    sandbox.allowance = allowance = Allowance(seconds, sandbox.usage, sandbox.quick_usage)
    longer = allowance.longer(1.0)  # so that a question can report first that it is over
    try:
        with (
            on_guard(namespace.texts),
            _processor_limit(PATIENCE * seconds + SPARE * sandbox.limits.grace_seconds),
            _memory_limit(),
            warnings.catch_warnings(),
            _time_limit(longer),  # last, so that its alarm cannot keep the others from restoring things
        ):
            warnings.simplefilter("ignore")
            _run_statements(cell, namespace, seed, outcome, visible_only)
    except TestTimeout as error:
        outcome.error, outcome.timed_out = outcome.error or error, True
    finally:
        sandbox.allowance = None
    outcome.seconds = time.monotonic() - began
    outcome.timed_out = outcome.timed_out or allowance.left() <= 0
    outcome.notes = list(namespace.sandbox.notes)
    outcome.believed = tuple(sorted(namespace.believed))
    return outcome


def _run_statements(
    cell: CodeCell, namespace: TestNamespace, seed: int | None, outcome: CellOutcome, visible_only: bool
) -> None:
    filename = f"<test {cell.grade_id}>"
    try:
        test = test_code(cell.source, filename)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        outcome.error, outcome.failed_hidden = error, bool(hidden_lines(cell.source))
        return
    namespace.texts.add(step.statement for step in test.steps)
    for step in test.steps:
        is_hidden = _is_hidden(step, test.hidden, namespace.secrets)
        outcome.met_hidden = outcome.met_hidden or is_hidden
        if is_hidden and visible_only:
            if (shown := test.shown.get(id(step))) is None:
                continue
            step, is_hidden = shown, False
        try:
            with (
                _captured(outcome, keep=not is_hidden),
                check_context(seed, graded=True, hidden=is_hidden, reports=outcome.reports),
            ):
                outcome.value, outcome.hidden_value = _run_step(step, namespace, is_hidden), is_hidden
        except BaseException as error:
            outcome.error = error
            outcome.said = _text_of(error)
            outcome.failed_hidden = is_hidden or _passes_through(error, filename, test.hidden)
            outcome.failed_source = "" if outcome.failed_hidden else _segment(test, step, error)
            if isinstance(error, KeyboardInterrupt) and type(error) is KeyboardInterrupt:
                raise
            return


def _text_of(error: BaseException) -> str:
    """The text of an error; empty if reading it fails, because it may contain objects of the submission."""
    try:
        return str(error).strip()
    except Exception:
        return ""


def _is_hidden(step: TestStatement, hidden: frozenset[int], secrets: set[str]) -> bool:
    """Whether a statement lies in the hidden part, or uses a name that the hidden part of this cell or an earlier one
    has bound. If so, the names that it binds are secret too. A name that a visible statement rebinds is no longer
    secret.
    """
    if hidden.isdisjoint(step.lines) and secrets.isdisjoint(step.uses):
        secrets -= step.rebinds
        return False
    if not step.is_import:
        secrets |= step.binds
    return True


def _run_step(step: TestStatement, namespace: TestNamespace, is_hidden: bool) -> Any:
    if isinstance(step.statement, (ast.Import, ast.ImportFrom)):
        if is_stateful(step.statement):
            namespace.sandbox.execute(ast.unparse(step.statement))
            for name, _ in split_import(step.statement):
                namespace[name] = namespace.sandbox.lookup(name)
            return None
        if not is_hidden:
            _import_there_too(step, namespace)
    code = step.code
    if code.co_flags & inspect.CO_COROUTINE:
        return _completed(types.FunctionType(code, namespace)())
    return eval(code, namespace)


def _completed(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The value of a test cell that uses `await`."""
    import asyncio

    with no_event_loop():
        return asyncio.run(coroutine)


@contextlib.contextmanager
def no_event_loop() -> Iterator[None]:
    """While inside, hide the running event loop: asyncio does not start a second one inside another. Formgrader grades
    from within its own.
    """
    import asyncio  # here because few test cells need it, and it takes 10 ms

    around = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(around)


def _import_there_too(step: TestStatement, namespace: TestNamespace) -> None:
    """Repeat an import in the submission: in a notebook, the student's later cells can use what a test cell imports."""
    text = ast.unparse(step.statement)
    if text not in namespace.imported or "*" in step.binds:
        namespace.imported[text] = step.binds
        namespace.sandbox.execute(f"try:\n    {text}\nexcept Exception:\n    pass")


@contextlib.contextmanager
def _captured(outcome: CellOutcome, keep: bool) -> Iterator[None]:
    """Put what the test prints into the outcome, or drop it if it is hidden. Warnings and stderr cost no points and are
    dropped.
    """
    out = BoundedText()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(BoundedText()):
            yield
    finally:
        if keep and len(outcome.printed) < MAX_TEXT:
            outcome.printed += out.getvalue()
            outcome.printed_by_test += out.by_test


def _passes_through(error: BaseException, filename: str, hidden: frozenset[int]) -> bool:
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == filename and frame.tb_lineno in hidden:
            return True
        frame = frame.tb_next
    return False


def _segment(test: TestCode, step: TestStatement, error: BaseException) -> str:
    """The text of the assertion that failed; for a long one or any other statement, the line."""
    lines = LINE_END.split(test.source)
    statement = step.statement
    last = statement.lineno
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == test.filename:
            last = frame.tb_lineno
        frame = frame.tb_next
    if isinstance(statement, ast.Assert) and (statement.end_lineno or 0) - statement.lineno < 4:
        return ast.get_source_segment(test.source, statement) or ""
    return lines[last - 1].strip() if 0 < last <= len(lines) else ""


@contextlib.contextmanager
def _time_limit(allowance: Allowance) -> Iterator[None]:
    """Raise TestTimeout in the main thread when the time is over. In other threads only questions to the sandbox are
    limited.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring() -> float:
        wait = allowance.wait()
        if not wait:
            raise TestTimeout
        return wait

    with alarm(allowance.wait(), ring):
        yield


@contextlib.contextmanager
def _processor_limit(seconds: float) -> Iterator[None]:
    """Have the kernel end this process if a test never ends. The alarm cannot interrupt C code that a submission's
    number makes endless, such as `sum(range(n))`. The submission loses its marks; others lose nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(time.process_time() + seconds) + 1
    known = [value for value in (soft, hard) if value != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_CPU, (min([limit, *known]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


@contextlib.contextmanager
def _memory_limit() -> Iterator[None]:
    """Give a test a MemoryError if a submission's numbers make it allocate without end, to protect the machine."""
    if sys.platform != "linux":
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    limit = used + MORE_MEMORY
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
