"""Messages that a student's notebook shows by itself: all assertions of a cell hold or one fails, an exercise is not
written yet, a cell uses PyTorch where there is none or another thing that this system lacks, there is no engine to
continue with, or a function calls itself too often.

IPython needs half a minute to print the thousands of lines of a RecursionError, and says nothing about assertions that
hold.
"""

from __future__ import annotations

import ast
import contextlib
import html
import json
import linecache
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from autograder.cards.style import RIGHT, SANS, TEXT
from autograder.checks.limits import limited
from autograder.lessons.student import stand_in
from autograder.lessons.student.exercises import Exercises
from autograder.notebooks.giving_points import POINTS_GIVING
from autograder.notebooks.statements import bound_names, parse
from autograder.runs.engines import has_torch
from autograder.runs.plain_values import meant
from autograder.runs.slips import slip
from autograder.sandbox.inside.engine_file import EngineError
from mini_autograd.system import IN_BROWSER, lacking

FIRST_CALLS = 4
LONGEST_LINE = 500  # including color codes; a sealed text in a cell is one line of many thousand letters
GIVEN = "# Run this cell"  # the page folds the cells that begin like this: readers need not see their code
CHECKS = "# Run this cell to check"
NOT_DEFINED = "Run the cell that defines it, then this one again."
NOT_RUN = (
    "The cell that begins with `{}` has not run since Python started: a restart, or a reload of the page in a browser, "
    "empties Python's memory. Choose Run, Run All Above Selected Cell, then run this cell again."
)
HOLDS = "right: every assertion in this cell holds"
ENDLESS = (
    "A function calls itself too often, each call inside the one before; most calls are not shown. Either it never "
    "stops, or it goes too deep, for example one call for each node of a long graph."
)
NOT_YET = (
    "Not yet: {name} is not written. Replace its `raise NotImplementedError`, run its cell, then run this one again."
)

NO_TORCH = f"PyTorch is not {'available in the browser' if IN_BROWSER else 'installed here'}"
STANDS_IN = f"{NO_TORCH}: this is our reference engine, {stand_in.ENGINE}."
CANNOT_RUN = (
    "This cell cannot run here: {why}. Exercises and their checks work without it: skip it, and the cells below that "
    "use a name defined in it."
)
ENGINE_LACKS = f"{NO_TORCH}, and our reference engine lacks what it uses ({{error}})"
NOT_DEFINED_HERE = "`{name}` comes from a cell that could not run"
RECORDED = "recorded.json"
"""A file beside the notebooks of the lab in a browser: the source of a cell -> what it showed where it could run."""
SHOWED = "Recorded when the website was built, since this cell cannot run here:"


def prepare(shell: Any) -> None:
    """Make a notebook's shell show these messages. A second call changes nothing."""
    if getattr(shell, "_autograder_prepared", False):
        return
    shell._autograder_prepared = True
    if hasattr(shell.displayhook, "publish_execution_result"):  # it is that of JupyterLite's kernel
        show_no_empty_result(shell.displayhook)
    if not has_torch():
        stand_in.install(shell)
        shell.events.register("post_run_cell", lambda result: say_what_stands_in(shell, result))
    shell._autograder_exercises = exercises = Exercises(shell)
    shell._autograder_missing = set()  # the names that cells have not defined because of what this system lacks
    shell.events.register("pre_run_cell", exercises.before)
    shell.events.register("post_run_cell", exercises.after)
    limits = contextlib.ExitStack()
    shell.events.register("pre_run_cell", lambda info: limits.enter_context(limited()) if is_check(info) else None)
    shell.events.register("post_run_cell", lambda _: limits.close())
    shell.events.register("post_run_cell", lambda result: note_what_is_missing(shell, result))
    shell.events.register("post_run_cell", say_that_assertions_hold)
    shell.set_custom_exc((Exception,), shown_shortly)


def show_no_empty_result(displayhook: Any) -> None:
    """JupyterLite's kernel puts an empty output below what shows itself, such as a card. Leave that out."""
    finish = displayhook.finish_displayhook
    displayhook.finish_displayhook = lambda: finish() if displayhook.data else None


def is_check(info: Any) -> bool:
    """Whether a cell that is about to run tests an exercise."""
    return info is not None and info.raw_cell.startswith(CHECKS)


def say_that_assertions_hold(result: Any) -> None:
    """Show a short message below a cell that asserted something, ran to its end, and shows nothing else."""
    if result.info is None or not result.success or result.result is not None or not asserts(result.info.raw_cell):
        return
    _say(HOLDS, RIGHT)


def say_what_stands_in(shell: Any, result: Any) -> None:
    """Show a short message below a cell that used the reference engine as PyTorch, and not to check an exercise."""
    if result.info is None or is_check(result.info) or _why_not_here(shell, result.error_in_exec):
        return
    if stand_in.uses_it(result.info.raw_cell, shell.user_ns):
        _say(STANDS_IN, TEXT)


def _say(message: str, color: str) -> None:
    from IPython.display import display

    style = f"font-family:{SANS};font-size:13px;color:{color}"
    display({"text/plain": message, "text/html": f'<span style="{style}">{html.escape(message)}</span>'}, raw=True)


def asserts(source: str) -> bool:
    """Whether a cell asserts something, itself or in a function of its own that it calls. A check shows a card, so a
    cell with one does not count."""
    try:
        nodes = _with_own_functions(ast.parse(source))
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Assert) for node in nodes) and not _called(nodes) & POINTS_GIVING


def _with_own_functions(tree: ast.Module) -> list[ast.AST]:
    """The nodes that a cell executes, and the nodes of the functions that it defines and calls."""
    own = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    nodes: list[ast.AST] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        executed = list(_executed(waiting.pop()))
        nodes += executed
        waiting += [own.pop(name) for name in _called(executed) & own.keys()]
    return nodes


def _called(nodes: list[ast.AST]) -> set[str]:
    """The names of the functions that these nodes call."""
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    return {function.id for function in calls if isinstance(function, ast.Name)}


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a syntax tree, without the functions and classes that it defines."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield node
            yield from _executed(node)


def shown_shortly(
    shell: Any, kind: type[BaseException], error: BaseException, trace: TracebackType, tb_offset: int | None = None
) -> None:
    """Show these errors in a few lines. The cell has still failed."""
    last = trace
    while last.tb_next is not None:
        last = last.tb_next
    if issubclass(kind, RecursionError):
        error.__suppress_context__ = True
        _cut(trace, FIRST_CALLS)
        lines = shell.InteractiveTB.structured_traceback(kind, error, trace, tb_offset=tb_offset)
        shell._showtraceback(kind, error, [*lines, ENDLESS])
    elif why := _why_not_here(shell, error):
        shell._showtraceback(kind, error, [CANNOT_RUN.format(why=why)])
        show_recorded(shell.history_manager.input_hist_raw[-1])
    elif isinstance(error, EngineError):
        shell._showtraceback(kind, error, [str(error)])
    elif isinstance(error, NameError):
        lines = shell.InteractiveTB.structured_traceback(kind, error, trace, tb_offset=tb_offset)
        sealed = any(len(line) > LONGEST_LINE for part in lines for line in part.split("\n"))
        not_run = NOT_RUN.format(line) if (line := shell._autograder_exercises.not_run(error.name)) else ""
        if sealed or (_of_cell(trace, last) and _is_given(last)):
            lines = [f"{kind.__name__}: {error}. {not_run or NOT_DEFINED}"]
        else:
            lines = [*lines, *([not_run] if not_run else _usual_cause(shell, error))]
        shell._showtraceback(kind, error, lines)
    elif isinstance(error, AssertionError) and str(error) and _is_alone(error) and _of_cell(trace, last):
        shell._showtraceback(kind, error, [f"{kind.__name__}: {error}"])
    elif cause := _usual_cause(shell, error):
        lines = shell.InteractiveTB.structured_traceback(kind, error, trace, tb_offset=tb_offset)
        shell._showtraceback(kind, error, [*lines, *cause])
    elif not isinstance(error, NotImplementedError) or error.args or last.tb_frame.f_code.co_name == "<module>":
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    else:
        name = last.tb_frame.f_code.co_qualname.rpartition("<locals>.")[2]
        shell._showtraceback(kind, error, [NOT_YET.format(name=f"`{name}`")])


def show_recorded(source: str) -> None:
    """Show what a cell showed where it could run, if that is known."""
    from IPython.display import display

    file = Path(RECORDED)
    outputs = json.loads(file.read_text(encoding="utf-8")).get(source) if file.is_file() else None
    if outputs:
        _say(SHOWED, TEXT)
    for output in outputs or ():
        display(output, raw=True)


def _usual_cause(shell: Any, error: BaseException) -> list[str]:
    """What errors like this one usually come from, as lines below its traceback; none except for tests of exercises."""
    if not shell.user_ns["In"][-1].startswith(CHECKS):
        return []
    found = (slip(type(error).__name__, str(error)), meant(error).removeprefix(". "))
    return [line[:1].upper() + line[1:] for line in found if line]


def note_what_is_missing(shell: Any, result: Any) -> None:
    """Note the names that a cell has not defined because of what this system lacks: cells that use them lack them."""
    if result.info is not None and _why_not_here(shell, result.error_in_exec):
        shell._autograder_missing |= bound_names(parse(result.info.raw_cell)) - set(shell.user_ns)


def _why_not_here(shell: Any, error: BaseException | None) -> str:
    """Why a cell that raised an error cannot run on this system; empty if it could."""
    if isinstance(error, NameError) and error.name in shell._autograder_missing:
        return NOT_DEFINED_HERE.format(name=error.name)
    if error is not None and not has_torch() and stand_in.is_lacking(error):
        return ENGINE_LACKS.format(error=error)
    return lacking(str(error))


def _is_alone(error: BaseException) -> bool:
    """Whether no other error led to this one, or its author has hidden it with `from None`."""
    return error.__context__ is None or (error.__suppress_context__ and error.__cause__ is None)


def _is_given(last: TracebackType) -> bool:
    """Whether this is code of a folded cell, which would show a student the right answers of its tests."""
    return linecache.getline(last.tb_frame.f_code.co_filename, 1).startswith(GIVEN)


def _of_cell(trace: TracebackType, last: TracebackType) -> bool:
    """Whether an error was raised by the code of the cell that runs, and not by what it calls."""
    entry: TracebackType | None = trace
    while entry is not None and entry.tb_frame.f_code.co_name != "<module>":
        entry = entry.tb_next
    return entry is not None and entry.tb_frame.f_code.co_filename == last.tb_frame.f_code.co_filename


def _cut(trace: TracebackType, calls: int) -> None:
    """Cut a traceback after this many calls."""
    entry: TracebackType | None = trace
    for _ in range(calls):
        if entry is None or entry.tb_next is None:
            return
        entry = entry.tb_next
    if entry is not None:
        entry.tb_next = None
