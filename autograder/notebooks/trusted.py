"""Which names of a notebook are the instructor's, and so keep the instructor's meaning in test cells whatever a
submission binds them to.

They are found in the locked cells, which nbgrader has restored, and, with a source notebook, in its ordinary cells:
what import statements bind, functions, and, with a source, data (see `given_data.py`). A name that a solution cell of
the source binds belongs to the student, and so does one that the student has bound otherwise in an ordinary cell. But
what is imported keeps its meaning there, too, as long as the submission has the name. In our lessons, students may play
with ordinary cells: tests do not notice.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from autograder.notebooks.cells import CodeCell, code_cells
from autograder.notebooks.given_data import changed_in_place, given_data
from autograder.notebooks.libraries import is_lesson
from autograder.notebooks.statements import bound_names, parse
from autograder.sandbox.inside.engine_file import SEALED_ENGINE, open_engine

# What these names conventionally mean in test cells that find them in the submission, unless a cell of the instructor's
# says otherwise.
CONVENTIONAL = {
    "np": "numpy",
    "numpy": "numpy",
    "math": "math",
    "random": "random",
    "pytest": "pytest",
    "unittest": "unittest",
}
# Tests are about the state of these modules, so they are the submission's own.
STATEFUL = ("matplotlib", "seaborn", "pylab", "mpl_toolkits", "IPython")
IMPORTS, DEFINITIONS = (ast.Import, ast.ImportFrom), (ast.FunctionDef, ast.AsyncFunctionDef)
CLASS_NAME = re.compile(r"_*[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*_*")


@dataclass
class TrustedNames:
    """Statements by the name they bind, to be executed when the name is first needed. `if_there`: those of these names
    that a test has only if the submission has them (`*`: and those of star imports). `changed`: names that the
    submission has bound otherwise, in an ordinary cell, than the instructor.
    """

    statements: dict[str, ast.stmt] = field(default_factory=dict)
    star_imports: list[ast.ImportFrom] = field(default_factory=list)
    students: frozenset[str] = frozenset()
    if_there: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    classes: frozenset[str] | None = None

    def is_class_of_submission(self, name: str) -> bool:
        """Whether a test that calls this name means to make an object of a student's class."""
        return bool(CLASS_NAME.fullmatch(name)) if self.classes is None else name in self.classes


def trusted_names(notebook: Any, source: Any | None) -> TrustedNames:
    """The instructor's names in a submission: with a source notebook, as that says, else those of the locked cells."""
    handed_in = tuple(cell for _, cell in code_cells(notebook))
    if source is None:
        return _names_in(handed_in, False)
    cells = tuple(cell for _, cell in code_cells(source))
    return _names_in(cells, True, frozenset() if is_lesson(cells) else _changed(cells, handed_in))


def _changed(cells: Iterable[CodeCell], handed_in: Iterable[CodeCell]) -> frozenset[str]:
    """The names that the source's ordinary cells bind, and the submission's not, or otherwise. Also the names whose
    values are made of these.
    """
    ours, theirs = ([cell.source for cell in each if _is_ordinary(cell)] for each in (cells, handed_in))
    if ours == theirs:
        return frozenset()
    given, found = (
        _binding(text for text in one if text not in other) for one, other in ((ours, theirs), (theirs, ours))
    )
    statements = [statement for source in ours for statement in parse(source)]
    changed = {name for name in bound_names(statements) if found.get(name) != given.get(name)}
    assigned = [s for s in statements if not isinstance(s, (*IMPORTS, *DEFINITIONS))]
    reading = [({n.id for n in ast.walk(s) if isinstance(n, ast.Name)}, bound_names([s])) for s in assigned]
    while more := {name for read, bound in reading if not changed.isdisjoint(read) for name in bound} - changed:
        changed |= more
    return frozenset(changed)


def _is_ordinary(cell: CodeCell) -> bool:
    return not (cell.solution or cell.is_test or cell.locked)


def _binding(sources: Iterable[str]) -> dict[str, list[str]]:
    """By name, the statements that bind it or change what it is bound to."""
    found: dict[str, list[str]] = {}
    for statement in (statement for source in sources for statement in parse(source)):
        for name in bound_names([statement]) | changed_in_place([statement]):
            found.setdefault(name, []).append(ast.unparse(statement))
    return found


@functools.lru_cache(maxsize=16)
def _names_in(cells: tuple[CodeCell, ...], from_source: bool, changed: frozenset[str] = frozenset()) -> TrustedNames:
    theirs = [cell for cell in cells if cell.solution]
    ours = [cell for cell in cells if not cell.solution and not cell.is_test and (from_source or cell.locked)]
    names = TrustedNames()
    if from_source:
        names.students = frozenset(bound for cell in theirs for bound in _not_imported(cell))
        names.classes = frozenset(
            statement.name
            for source in (*(cell.source for cell in cells), *_engines(cells))
            for statement in parse(source)
            if isinstance(statement, ast.ClassDef)
        )
    for name, module in CONVENTIONAL.items():
        names.statements[name] = ast.parse(f"import {module} as {name}").body[0]
    given, firm = [], set[str]()
    for statement, is_locked in ((statement, cell.locked) for cell in ours for statement in parse(cell.source)):
        bound = bound_names([statement])
        is_kept = is_locked or changed.isdisjoint(bound)
        firm |= bound if is_kept else set()
        if is_kept or isinstance(statement, IMPORTS):
            _collect(names, statement)
            given.append(statement)
    for name in names.students:
        names.statements.pop(name, None)
    names.changed = changed - firm - names.students
    if from_source:
        answers = [statement for cell in theirs for statement in parse(cell.source)]
        data = given_data(given, answers, names.statements)
        names.statements |= {name: data[name] for name in data.keys() - names.students}
    names.if_there = frozenset(names.statements) - firm | (changed & {"*"})
    return names


def _engines(cells: Iterable[CodeCell]) -> Iterator[str]:
    """The engines that the instructor's calls of `start_lesson` bring into the notebook."""
    for cell in cells:
        for sealed in SEALED_ENGINE.findall(cell.source):
            yield open_engine(sealed).source


def _collect(names: TrustedNames, statement: ast.stmt) -> None:
    if isinstance(statement, IMPORTS):
        if not is_stateful(statement):
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                names.star_imports.append(statement)
            names.statements.update((name, single) for name, single in split_import(statement))
    elif isinstance(statement, DEFINITIONS):
        names.statements[statement.name] = statement


def split_import(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ast.stmt]]:
    """Each name that an import statement binds, with a statement that binds only that."""
    for alias in statement.names:
        if alias.name == "*":
            continue
        single: ast.stmt
        if isinstance(statement, ast.Import):
            single = ast.Import(names=[alias])
            name = alias.asname or alias.name.partition(".")[0]
        else:
            single = ast.ImportFrom(module=statement.module, names=[alias], level=statement.level)
            name = alias.asname or alias.name
        yield name, ast.fix_missing_locations(ast.copy_location(single, statement))


def is_stateful(statement: ast.stmt) -> bool:
    """Whether an import statement imports something whose state belongs to the submission's process."""
    if isinstance(statement, ast.Import):
        return any(alias.name.partition(".")[0] in STATEFUL for alias in statement.names)
    return isinstance(statement, ast.ImportFrom) and (statement.module or "").partition(".")[0] in STATEFUL


def _not_imported(cell: CodeCell) -> set[str]:
    return bound_names(s for s in parse(cell.source) if not isinstance(s, IMPORTS))
