"""Which names a script needs and does not define, and where else in a notebook they are defined.

Engine cells must run by themselves, without the rest of the notebook; this says what would be missing. Standard
library only, because `start_lesson` uses it in students' notebooks.
"""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from types import CodeType

from autograder.lessons.builder.lesson_files import HELPERS
from autograder.notebooks.statements import parse

GLOBAL_READS = {"LOAD_GLOBAL", "LOAD_NAME"}
GLOBAL_WRITES = {"STORE_GLOBAL", "STORE_NAME"}
BUILTIN = {*dir(builtins), "__name__", "__file__", "__module__", "__qualname__", "__annotations__", "__builtins__"}


def missing_names(source: str, defined: Iterable[str] = ()) -> list[str]:
    """Global names that a script reads, at the top or in a function, and that nothing defines. Raises SyntaxError."""
    read, written = _read_and_written(source)
    present = {*written, *defined, *BUILTIN}
    return [name for name in read if name not in present]


@lru_cache(maxsize=4096)  # the same cells stand in many engines, and before many checks
def _read_and_written(source: str) -> tuple[Sequence[str], Set[str]]:
    """The global names that a script reads, in their order, and those that it defines. Raises SyntaxError."""
    code = compile(source, "<engine>", "exec", dont_inherit=True)
    written: set[str] = set()
    read: dict[str, None] = {}
    for part in _codes(code):
        known: set[str] = set()
        for instruction in dis.get_instructions(part):
            if instruction.opname in GLOBAL_WRITES:
                (written if part is code or instruction.opname == "STORE_GLOBAL" else known).add(instruction.argval)
            elif instruction.opname in GLOBAL_READS and instruction.argval not in known:
                read[instruction.argval] = None
    return tuple(read), written


def completed(source: str, others: Sequence[str], defined: Iterable[str] = (), needed: Iterable[str] = ()) -> str:
    """The script, preceded by the statements of other cells that define the names it needs, as far as they do. `needed`
    are further names.

    Only imports, functions, classes and assignments are taken: the last definition of each name, and what that
    definition needs. Nothing else of the other cells is run.
    """
    defined = set(defined)
    todo = [*missing_names(source, defined), *(name for name in needed if name not in defined)]
    offered = _definitions(others) if todo else {}
    taken: dict[ast.stmt, str] = {}
    while todo:
        statement = offered.get(todo.pop())
        if statement is None or statement in taken:
            continue
        taken[statement] = ast.unparse(statement)
        todo += missing_names(taken[statement], defined)
    in_order = [taken[statement] for statement in dict.fromkeys(offered.values()) if statement in taken]
    return "\n\n".join([*in_order, source])


def is_of_course(statement: ast.stmt) -> bool:
    """Whether a statement imports the course's own helpers: checks, or the module beside one lesson."""
    if isinstance(statement, ast.ImportFrom):
        return _is_ours(statement.module or "")
    return isinstance(statement, ast.Import) and any(_is_ours(alias.name) for alias in statement.names)


def _is_ours(module: str) -> bool:
    package = module.partition(".")[0]
    return package == "autograder" or HELPERS.fullmatch(package) is not None


def _definitions(sources: Sequence[str]) -> dict[str, ast.stmt]:
    """Name -> the last statement that defines it at the top level of a cell, in the order of the cells."""
    found: dict[str, ast.stmt] = {}
    for source in sources:
        for statement in parse(source):
            for name in names_bound_by(statement):
                found.pop(name, None)
                found[name] = statement
    return found


def names_bound_by(statement: ast.stmt) -> Iterator[str]:
    """The names that a definition, import or assignment binds; none for any other statement."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name) and _stored(node))


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
