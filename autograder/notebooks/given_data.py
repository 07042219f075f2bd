"""Finds the values in given cells that stay the instructor's in test cells: tolerances, cases, expected results.

A value does not depend on a submission if it is made from literals, libraries and the instructor's own functions,
always in the same way, and if no cell changes it afterwards. A value that a submission is meant to change stays the
submission's. The cells are only read, not run, so the result is careful rather than complete.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from autograder.notebooks.statements import bound_names


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names that give a different value each time, or one that depends on where they run.
UNCERTAIN = _words("""
    random rand randn randint default_rng shuffle rng secrets uuid time perf_counter now today environ getcwd getpass
    input exec eval compile globals locals vars dir id hash breakpoint __import__
""")
CHANGING = _words("""
    append extend insert remove pop clear sort reverse add discard update setdefault popitem appendleft popleft rotate
    fill put resize partition setflags difference_update intersection_update symmetric_difference_update shuffle
    fill_diagonal copyto heappush heappop heapify insort
""")


def given_data(
    ours: Sequence[ast.stmt], theirs: Sequence[ast.stmt], known: Mapping[str, ast.stmt]
) -> dict[str, ast.stmt]:
    """The assignments in the instructor's cells `ours` whose values are the instructor's, by the names they bind.

    `theirs` are the solution's statements, and `known` the instructor's imports and functions.
    """
    certain_names = (known.keys() - _uncertain_functions(known)) | SAFE_BUILTINS
    changed = changed_in_place(ours) | changed_in_place(theirs, certain_names)
    times = Counter(name for statement in ours for name in bound_names([statement]))
    found: dict[str, ast.stmt] = {}
    for statement in ours:
        names = _assigned(statement)
        certain = names and all(times[name] == 1 and name not in changed for name in names)
        if certain and _free_names(statement) <= certain_names | found.keys() and not _is_uncertain(statement):
            found.update(dict.fromkeys(names, statement))
    return found


SAFE_BUILTINS = frozenset(dir(builtins)) - UNCERTAIN


def _assigned(statement: ast.stmt) -> list[str]:
    """The names that an assignment binds; none if the statement is anything else, or does more."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets: list[ast.expr] = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = [part for t in statement.targets for part in (t.elts if isinstance(t, ast.Tuple) else [t])]
    else:
        return []
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names if len(names) == len(targets) else []


def _free_names(statement: ast.stmt) -> set[str]:
    """The names that a statement reads, except the variables of its own comprehensions and lambdas."""
    nodes = list(ast.walk(statement))
    inner = {node.arg for node in nodes if isinstance(node, ast.arg)}
    inner |= {
        part.id
        for node in nodes
        if isinstance(node, ast.comprehension)
        for part in ast.walk(node.target)
        if isinstance(part, ast.Name)
    }
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return read - inner


def _is_uncertain(statement: ast.AST) -> bool:
    names = (getattr(node, "id", None) or getattr(node, "attr", None) for node in ast.walk(statement))
    return any(name in UNCERTAIN for name in names)


def _uncertain_functions(known: Mapping[str, ast.stmt]) -> set[str]:
    """The functions that give a different value each time or use a submission's name, and those that use them."""
    functions = {name: s for name, s in known.items() if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))}
    uses = {name: _free_names(function) - bound_names(function.body) for name, function in functions.items()}
    ours = known.keys() | SAFE_BUILTINS
    found = {name for name, function in functions.items() if _is_uncertain(function) or not uses[name] <= ours}
    while more := {name for name in uses.keys() - found if not found.isdisjoint(uses[name])}:
        found |= more
    return found


def changed_in_place(statements: Iterable[ast.stmt], harmless: Collection[str] | None = None) -> set[str]:
    """The names whose values may be changed in place: by assignments and methods, and by calls of any function that is
    not in `harmless`, unless that is None.
    """
    return {name for statement in statements for node in ast.walk(statement) for name in _changed_by(node, harmless)}


def _changed_by(node: ast.AST, harmless: Collection[str] | None) -> Iterator[str]:
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        yield _root(node)
    elif isinstance(node, ast.AugAssign):
        yield _root(node.target)
    elif isinstance(node, ast.Call):
        changes = isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING
        if changes:
            yield _root(node.func)
        if changes or (harmless is not None and _root(node.func) not in harmless):
            yield from (_root(part) for part in [*node.args, *(keyword.value for keyword in node.keywords)])


def _root(node: ast.AST) -> str:
    """The name that a chain of attributes and subscripts begins with; empty if it begins with something else."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
