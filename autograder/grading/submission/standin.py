"""A notebook in place of one that could not be graded, so that Formgrader and feedback say why."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.grading.submission.assignments import Assignment
from autograder.grading.submission.result import Result

NOT_RUN = "This test was not run."


def stand_in(assignment: Assignment, result: Result, folder: Path) -> None:
    """Put stand-ins for all notebooks of the assignment into the autograded folder, in one step."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    draft.chmod(0o755)
    for name in assignment.notebooks:
        nbformat.write(_notebook(assignment, name, result.reason), draft / f"{name}.ipynb")
    if folder.exists() or folder.is_symlink():
        shutil.rmtree(folder) if not folder.is_symlink() else folder.unlink()
    os.rename(draft, folder)


def _notebook(assignment: Assignment, name: str, reason: str) -> NotebookNode:
    notebook = new_notebook(metadata={"autograder": {"problem": reason}})
    notebook.cells.append(new_markdown_cell(f"**This submission was not graded.** {reason}"))
    identity = next(row["id"] for row in assignment.rows["notebook"] if row["name"] == name)
    cells = {row["id"]: row["name"] for row in assignment.rows["base_cell"] if row["notebook_id"] == identity}
    for row in assignment.rows["grade_cells"]:
        if row["id"] in cells:
            notebook.cells.append(_cell(cells[row["id"]], row["max_score"], reason))
    return notebook


def _cell(name: str, points: float, reason: str) -> NotebookNode:
    about = {"schema_version": 3, "grade_id": name, "grade": True, "solution": False, "locked": True, "task": False}
    about |= {"points": points, "cell_type": "code"}
    cell = new_code_cell(f"# {NOT_RUN}", metadata={"nbgrader": about})
    cell.outputs = [new_output("error", ename="NotGraded", evalue=reason, traceback=[f"NotGraded: {reason}"])]
    return cell
