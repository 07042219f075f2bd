"""From the cells of a lesson's text to the cells of its notebook, and their ids, which come from the text alone."""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from autograder.lessons.builder.lesson_files import IMPORT_OF_HELPERS
from autograder.lessons.builder.names import completed
from autograder.lessons.builder.quiz_cells import expand_quiz
from autograder.lessons.builder.shares import points_of_test
from autograder.lessons.builder.text import TextCell
from autograder.notebooks.regions import without_hidden_tests
from autograder.notebooks.statements import bound_names, parse
from autograder.quizzes.sealing import seal_hints

HINT_COMMENT = "# Stuck? Run this cell. Each hint opens with a click."
CHECK_COMMENT = "# Run this cell to check your answer ({})."
IMPORT_COMMENT = "# Run this cell: it imports {}."
ANSWER = "The mark scheme above says what an answer needs."
SETTINGS = ("plt.rcParams.update", "torch.set_num_threads", "warnings.simplefilter")


def expanded(cells: Sequence[TextCell]) -> list[tuple[TextCell, str]]:
    """The cells of the notebook with their ids: hints gathered where the first stood, quizzes expanded, no styles."""
    used = Counter[str]()
    return [(cell, _cell_id(cell, used)) for cell in _notebook_cells(cells)]


def _notebook_cells(cells: Sequence[TextCell]) -> list[TextCell]:
    hints: dict[str, list[str]] = {}
    for cell in cells:
        if "hint" in cell.tags:
            hints.setdefault(cell.exercise, []).append(cell.source)
    result: list[TextCell] = []
    alone = _standing_alone(cells)
    for cell in cells:
        if "hint" in cell.tags:
            if texts := hints.pop(cell.exercise, None):
                source = f"{HINT_COMMENT}\nhints({json.dumps(seal_hints(texts))})"
                result.append(replace(cell, kind="code", source=source, metadata={}))
        elif "quiz" in cell.tags:
            result += expand_quiz(cell)
        elif cell.is_question:
            result += _question_and_answer(cell)
        elif cell.is_test and cell.kind == "code":
            points = cell.metadata.get("worth") or points_of_test(alone[cell.grade_id], float(cell.nbgrader["points"]))
            result.append(replace(cell, source=f"{CHECK_COMMENT.format(points)}\n{alone[cell.grade_id]}"))
        elif cell.kind == "code" and only_imports(cell.source):
            result.append(replace(cell, source=f"{IMPORT_COMMENT.format(_imported(cell))}\n{cell.source}"))
        elif not cell.style:
            result.append(cell)
    return result


def _question_and_answer(cell: TextCell) -> list[TextCell]:
    """A question with its mark scheme, which students cannot change, and the cell for the answer."""
    marks = {
        **cell.nbgrader,
        "grade": False,
        "solution": False,
        "locked": True,
        "grade_id": f"{cell.grade_id}_question",
    }
    marks.pop("points")
    return [replace(cell, metadata={**cell.metadata, "nbgrader": marks}), replace(cell, source=ANSWER)]


def _standing_alone(cells: Sequence[TextCell]) -> dict[str, str]:
    """grade_id -> source of each test cell, preceded by the functions that it needs and only the tests above it define.
    Students skip checks, for example those that they passed yesterday.
    """
    code = [cell for cell in cells if cell.kind == "code" and not cell.style and "quiz" not in cell.tags]
    defined = bound_names(statement for cell in code if not cell.is_test for statement in parse(cell.source))
    above: list[str] = []
    found = {}
    for cell in code:
        if cell.is_test:
            try:
                found[cell.grade_id] = completed(cell.source, above, defined)
            except SyntaxError:  # IPython's commands
                found[cell.grade_id] = cell.source
            above.append(without_hidden_tests(cell.source))
    return found


def only_imports(source: str) -> bool:
    """Whether a cell does nothing but import modules and change settings, such as how plots look."""
    found = parse(source)
    return bool(found) and all(map(_imports, found))


def _imported(cell: TextCell) -> str:
    """What the imports of a cell are for; several such cells may stand one after the other."""
    if found := IMPORT_OF_HELPERS.search(cell.source):
        return f"what the lesson needs, also from {found[1]}.py"
    if "demo" in cell.tags:
        return "what the demonstrations need"
    only_ours = cell.source.startswith("from autograder.student import") and cell.source.count("import ") == 1
    return "the checks, the hints and the quiz" if only_ours else "what the lesson needs"


def _imports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return ast.unparse(statement.value.func) in SETTINGS
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _cell_id(cell: TextCell, used: Counter[str]) -> str:
    name = cell.grade_id or hashlib.sha256(f"{cell.kind}\n{cell.source}".encode()).hexdigest()[:12]
    used[name] += 1
    return (name if used[name] == 1 else f"{name}-{used[name]}")[-64:]
