"""Small notebooks for the judge's tests, and what stock nbgrader makes of them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from nbgrader.utils import determine_grade

from autograder.judge.outside.running import no_event_loop

POINTS = 2.0


def cell(source: str, kind: str = "student", grade_id: str = "c", points: float = POINTS) -> NotebookNode:
    """A code cell. `kind`: "student", "test", "locked", "manual" (graded by hand) or "plain" (no metadata)."""
    if kind == "plain":
        return new_code_cell(source)
    metadata: dict[str, Any] = {
        "schema_version": 3,
        "grade_id": grade_id,
        "locked": kind in ("test", "locked"),
        "task": False,
    }
    metadata["grade"] = kind in ("test", "manual")
    metadata["solution"] = kind in ("student", "manual")
    if metadata["grade"]:
        metadata["points"] = points
    return new_code_cell(source, metadata={"nbgrader": metadata})


def notebook(*sources: str | NotebookNode) -> NotebookNode:
    """A notebook of cells; a text that begins with `# test` is a test cell, any other a student's."""
    cells = []
    for number, source in enumerate(sources):
        if isinstance(source, str):
            source = source.strip("\n")
            source = cell(source, "test" if source.startswith("# test") else "student", f"cell{number}")
        cells.append(source)
    return new_notebook(cells=cells)


def stock_points(judged: NotebookNode) -> list[float]:
    """What nbgrader's SaveAutoGrades reads from the outputs of the test cells."""
    tests = [
        c for c in judged.cells if c.metadata.get("nbgrader", {}).get("grade") and not c.metadata.nbgrader.solution
    ]
    return [determine_grade(test)[0] for test in tests]


def plain_points(plain: NotebookNode) -> list[float]:
    """The points when all cells run in one ordinary IPython namespace, as under nbgrader's Execute."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    # Drawing the traceback of a deep recursion takes many seconds, and IPython draws it twice.
    shell.showtraceback = shell._format_exception_for_storage = lambda *_, **__: None
    for node in plain.cells:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), no_event_loop():
            result = shell.run_cell(node.source, store_history=True)
        node.outputs = []
        if not result.success:
            node.outputs = [new_output("error", ename="Error", evalue="", traceback=[])]
        elif result.result is not None and not node.source.rstrip().endswith(";"):
            data, _ = shell.display_formatter.format(result.result)
            node.outputs = [new_output("execute_result", data, execution_count=1)]
    return stock_points(plain)


def read_table(path: Path) -> dict[str, tuple[list[str], list[float]]]:
    """The notebooks in a table file by name: the texts of their cells, and the points after `->`."""
    root = str(Path(__file__).parents[3])
    definitions: dict[str, str] = {}
    table: dict[str, tuple[list[str], list[float]]] = {}
    sections = re.split(r"^=== (.*)\n", path.read_text().replace("PROJECT_ROOT", root), flags=re.MULTILINE)[1:]
    for head, body in zip(sections[::2], sections[1::2], strict=True):
        body = re.sub(r"^#####.*\n", "", body, flags=re.MULTILINE).strip("\n")
        body = re.sub(r"^@([A-Z_]+)$", lambda found: definitions.get(found[1], found[0]), body, flags=re.MULTILINE)
        if head.startswith("define "):
            definitions[head.removeprefix("define ")] = body
            continue
        name, _, points = head.partition(" -> ")
        assert name not in table, name
        cells = [text.strip("\n") for text in re.split(r"^---$", body, flags=re.MULTILINE)]
        table[name] = cells, [float(number) for number in points.split()]
    return table
