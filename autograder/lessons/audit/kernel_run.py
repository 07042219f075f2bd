"""Runs a lesson's notebook in a real kernel, as JupyterLab would on a student's laptop, and reads what came out."""

from __future__ import annotations

import ast
import copy
import os
import re
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat import NotebookNode
from nbgrader.utils import determine_grade

from autograder.lessons.audit.forked_kernel import kernel_manager
from autograder.notebooks.cells import grade_id, has_tag, is_test

SECONDS_PER_CELL = 120
WANT_OF_A_SOLUTION = {"NotImplementedError", "AssertionError", "CheckFailed"}
VIEW, STATES = (f"application/vnd.jupyter.widget-{kind}+json" for kind in ("view", "state"))
NAME_IN_MESSAGE = re.compile(r"name '(\w+)' is not defined")


def run_in_kernel(notebook: NotebookNode, folder: Path, forked: bool = True) -> NotebookNode:
    """A copy of the notebook with the outputs of every cell, run in `folder`. A failing cell does not stop the rest.

    `forked`: the kernel may be a fork that already has its imports (see `forked_kernel.py`).
    """
    notebook = copy.deepcopy(notebook)
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        kernel_manager_class=kernel_manager() if forked else AsyncKernelManager,
        allow_errors=True,
        interrupt_on_timeout=True,
        extra_arguments=["--InteractiveShell.xmode=Minimal"],  # an unsolved lesson fails often, and nobody reads where
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        # The kernel's own messages, such as one about its transport, are not something an author could act on.
        client.execute(stderr=subprocess.DEVNULL)
    except DeadKernelError:
        raise RuntimeError("the kernel died while the notebook ran") from None
    return notebook


def failures(notebook: NotebookNode, among: Callable[[NotebookNode], bool] = bool) -> list[str]:
    """Every cell (among those chosen) that failed, with its error. Cells tagged `raises-exception` are meant to."""
    found = []
    for number, cell in enumerate(notebook.cells, 1):
        if among(cell) and (error := _error(cell)) and not has_tag(cell, "raises-exception"):
            found.append(f"{_place(number, cell)}: {error.ename}: {_first_line(error.evalue)}")
    return found


def crashes(notebook: NotebookNode, tests: bool = True) -> list[str]:
    """Every cell that failed for a reason other than a missing solution or the names that it leaves undefined."""
    found = []
    missing: set[str] = set()
    for number, cell in enumerate(notebook.cells, 1):
        error = _error(cell)
        if error is None or (is_test(cell) and not tests):
            continue
        name = NAME_IN_MESSAGE.search(error.evalue) if error.ename == "NameError" else None
        follows = name is not None and name[1] in missing
        expected = error.ename in WANT_OF_A_SOLUTION or has_tag(cell, "raises-exception")
        if expected or follows:
            missing |= _assigned(cell.source)
        else:
            found.append(f"{_place(number, cell)}: {error.ename}: {_first_line(error.evalue)}")
    return found


def unanswered(notebook: NotebookNode) -> list[str]:
    """Every prediction that has no verdict after its cell ran, or one that is none of its options. A cell that shows
    nothing but the question waits for its reader.
    """
    widgets = notebook.metadata.get("widgets", {}).get(STATES, {}).get("state", {})
    found = []
    for number, cell in enumerate(notebook.cells, 1):
        views = [output.get("data", {}).get(VIEW, {}).get("model_id") for output in cell.get("outputs", [])]
        for asked in (widgets[view]["state"] for view in views if view in widgets):
            outcome, options = asked.get("outcome"), asked.get("options")
            if outcome == "" and len(views) > 1:
                found.append(f"{_place(number, cell)}: no verdict on {asked['question']!r}")
            elif outcome and options and outcome not in options:
                found.append(f"{_place(number, cell)}: {outcome!r} is no answer to {asked['question']!r}")
    return found


def validated(cell: NotebookNode) -> float:
    """The points that nbgrader's Validate reads from a test cell's outputs."""
    points, _ = determine_grade(cell)
    return float(points or 0.0)


def slowest_check(notebook: NotebookNode) -> str:
    """The test cell that took longest, in words."""
    timed = [(_seconds(cell), grade_id(cell)) for cell in notebook.cells if is_test(cell)]
    return "slowest check {:.2f} s ({})".format(*max(timed)) if timed else ""


def _seconds(cell: NotebookNode) -> float:
    times = cell.metadata.get("execution", {})
    begin, end = times.get("iopub.execute_input"), times.get("shell.execute_reply")
    if not begin or not end:
        return 0.0
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def _error(cell: NotebookNode) -> NotebookNode | None:
    return next((output for output in cell.get("outputs", []) if output.output_type == "error"), None)


def _place(number: int, cell: NotebookNode) -> str:
    return grade_id(cell) or f"cell {number} ({_first_line(cell.source)[:40]})"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:200]


def _assigned(source: str) -> set[str]:
    """The names that a cell's source would have defined."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return set()
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = {
        alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    return stored | defined | imported
