"""A lesson's notebook as different students would hand it in: solved, empty, in another style, full of nonsense."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Collection, Mapping

from nbformat import NotebookNode

from autograder.lessons.audit import spoiling
from autograder.lessons.release import release_notebook, without_solutions
from autograder.notebooks.cells import grade_id, is_code_solution, is_test


def solved(source: NotebookNode) -> NotebookNode:
    """The notebook with the instructor's solutions."""
    return copy.deepcopy(source)


def solved_release(source: NotebookNode) -> NotebookNode:
    """The student's version with the instructor's solutions: the notebook of a student who got everything right."""
    notebook = release_notebook(source)
    solutions = {grade_id(cell): cell.source for cell in source.cells if is_code_solution(cell)}
    for cell in notebook.cells:
        if is_code_solution(cell):
            cell.source = solutions[grade_id(cell)]
    return notebook


def stubbed(source: NotebookNode) -> NotebookNode:
    """The notebook with nothing done: the stubs that students start from."""
    return without_solutions(source)


def styled(source: NotebookNode, solutions: Mapping[str, str]) -> NotebookNode:
    """The notebook with these solutions, by grade_id, and the instructor's in the other cells."""
    return _with_solutions(source, lambda cell: solutions.get(grade_id(cell), cell.source))


def drawn_again(source: NotebookNode, times: int, among: Collection[str]) -> tuple[NotebookNode, dict[str, str]]:
    """The solved notebook in which each of the test cells `among` stands `times` times, and the names of the copies ->
    the names of their originals. The seed of a cell follows from its grade_id, so each copy draws other inputs.
    """
    notebook = copy.deepcopy(source)
    copies: dict[str, str] = {}
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        for number in range(2, times + 1) if is_test(cell) and grade_id(cell) in among else ():
            again = copy.deepcopy(cell)
            again.metadata.nbgrader.grade_id = f"{grade_id(cell)}, draw {number}"
            copies[grade_id(again)] = grade_id(cell)
            cells.append(again)
    notebook.cells = cells
    return notebook, copies


def zeroed(source: NotebookNode) -> NotebookNode:
    """The notebook with solutions whose functions return zeros and whose engines give zero gradients."""
    return _with_solutions(source, lambda cell: _spoiled(cell.source, "zeros"))


def randomized(source: NotebookNode) -> NotebookNode:
    """The notebook with solutions whose functions return random numbers and whose engines give random gradients."""
    return _with_solutions(source, lambda cell: _spoiled(cell.source, "random"))


def _with_solutions(source: NotebookNode, rewrite: Callable[[NotebookNode], str]) -> NotebookNode:
    notebook = copy.deepcopy(source)
    for cell in notebook.cells:
        if is_code_solution(cell):
            cell.source = rewrite(cell)
    return notebook


def _spoiled(source: str, kind: str) -> str:
    """The cell's source, followed by code that spoils what the cell has defined."""
    names = [name for statement in ast.parse(source).body for name in _defined(statement)]
    if not names:
        return source
    return "\n".join(
        [
            source,
            'if "_spoiling" not in globals():',
            "    _spoiling = {}",
            f"    exec({inspect.getsource(spoiling)!r}, _spoiling)",
            f'_spoiling["spoil"](globals(), {names!r}, {kind!r})',
        ]
    )


def _defined(statement: ast.stmt) -> list[str]:
    """The names that a statement of a cell defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return []
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
