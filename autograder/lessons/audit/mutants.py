"""Mutants: small machine-made mistakes in an instructor's own solutions, to see which of them the tests notice.

Each mutant has one change, made in the syntax tree: an operator exchanged, a term dropped, operands or results swapped,
a minus sign lost, a constant changed, `+=` turned into `=`, a comparison made strict, loosened or negated. The judge
then gives marks to the solved notebook with the mutant in it. A mutant that keeps full marks survives: a test is
missing, or the change has no effect. No tool can tell which, so an author lists the second kind with the reason, in
`lessons/NN_name/survivors.txt`:

    # %% topological_order
    -    if len(found) > 0:
    +    if len(found) >= 0:
    Nothing comes of an empty list either.
"""

from __future__ import annotations

import ast
import copy
import difflib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from autograder.lessons.audit import variants
from autograder.lessons.builder.lesson_files import LessonTextError
from autograder.lessons.release import without_solutions
from autograder.notebooks.cells import grade_id, is_code_solution

NO_REASON = "strengthen a test, or say why nothing changes"
"""Stands where an author has to write the reason."""


@dataclass(frozen=True)
class Mutant:
    """A solution cell with one change: what was changed, and in which line of the cell."""

    cell: str
    line: int
    what: str
    original: str
    source: str

    def diff(self) -> str:
        """The changed lines, as a unified diff without its header."""
        lines = difflib.unified_diff(self.original.splitlines(), self.source.splitlines(), lineterm="", n=0)
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


@dataclass(frozen=True)
class Tried:
    """The results for the mutants of a lesson. `unlisted` survived without a reason; `listed` maps the others that
    survived to their reasons; `outdated` are listed, though they cost points or can no longer be made.
    """

    lesson: str
    count: int
    unlisted: tuple[Mutant, ...]
    listed: dict[Mutant, str]
    outdated: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.unlisted and not self.outdated


def tried(text: Path, every: Sequence[Mutant], results: Sequence[tuple[Mutant, bool]]) -> Tried:
    """Compare what survived with what is listed beside a lesson. `every`: all mutants, tried or not."""
    reasons = listed_survivors(text)
    survivors = [mutant for mutant, survived in results if survived]
    killed = {_key(mutant) for mutant, survived in results if not survived}
    possible = {_key(mutant) for mutant in every}
    return Tried(
        text.stem,
        len(results),
        tuple(mutant for mutant in survivors if _key(mutant) not in reasons),
        {mutant: reasons[_key(mutant)] for mutant in survivors if _key(mutant) in reasons},
        tuple(
            f"{cell}\n{diff}\n{'this costs points' if (cell, diff) in killed else 'no such change can be made'}"
            for cell, diff in reasons
            if (cell, diff) in killed or (cell, diff) not in possible
        ),
    )


def listed_survivors(text: Path) -> dict[tuple[str, str], str]:
    """The survivors that are listed beside a lesson: cell and changed lines -> reason. Empty if there is no list."""
    path = text.with_name("survivors.txt")
    found = {}
    for block in path.read_text("utf-8").split("# %% ")[1:] if path.is_file() else ():
        cell, *lines = block.strip().splitlines()
        diff = [line for line in lines if line.startswith(("-", "+"))]
        reason = " ".join(line.strip() for line in lines[len(diff) :])
        if not diff or not reason or NO_REASON in reason:
            raise LessonTextError(f"{path.name}: {cell}: expected the changed lines (- and +), then the reason")
        found[cell.strip(), "\n".join(diff)] = reason
    return found


def as_listed(mutant: Mutant, reason: str) -> str:
    """A block for the list of survivors."""
    return f"# %% {mutant.cell}\n{mutant.diff()}\n{reason}\n"


def _key(mutant: Mutant) -> tuple[str, str]:
    return mutant.cell, mutant.diff()


OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

Change = tuple[str, Callable[[Any], ast.AST]]
"""What is changed, and a function that takes a copy of the old node and returns the node that replaces it."""


def changes(node: ast.AST) -> Iterator[Change]:
    """The changes that can be made at one node."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in OPERATORS:
            yield "another operator", lambda n: ast.BinOp(n.left, OPERATORS[type(n.op)](), n.right)
        if isinstance(node.op, ast.MatMult | ast.Sub | ast.Div | ast.Pow):
            yield "operands swapped", lambda n: ast.BinOp(n.right, n.op, n.left)
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            yield "a term dropped", lambda n: n.left
            if isinstance(node.op, ast.Add | ast.Mult):
                yield "a term dropped", lambda n: n.right
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "a sign or a not lost", lambda n: n.operand
    elif isinstance(node, ast.AugAssign):
        yield "set, not added to", lambda n: ast.Assign([n.target], n.value)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        yield "another comparison", lambda n: ast.Compare(n.left, [COMPARISONS[type(n.ops[0])]()], n.comparators)
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        yield "results swapped", lambda n: ast.Return(ast.Tuple(n.value.elts[::-1], ast.Load()))
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "another number", lambda n: ast.Constant(n.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield "the opposite", lambda n: ast.Constant(not n.value)


class _ChangeOne(ast.NodeTransformer):
    """Makes one change: the `wanted`-th of all possible ones, counted from 0."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.seen = wanted, 0
        self.made: tuple[int, str] | None = None

    def visit(self, node: ast.AST) -> Any:
        for what, make in changes(node):
            self.seen += 1
            if self.seen - 1 == self.wanted:
                self.made = (getattr(node, "lineno", 0), what)
                return ast.copy_location(make(copy.deepcopy(node)), node)
        return self.generic_visit(node)


def mutants_of(cell: str, source: str, stub: str = "") -> Iterator[Mutant]:
    """All mutants of a solution cell. Only lines that the stub lacks are changed: the lines that students write."""
    tree = ast.parse(source)
    given = {line.strip() for line in stub.splitlines()}
    lines = source.splitlines()
    original = ast.unparse(tree)
    number = 0
    while True:
        change = _ChangeOne(number)
        changed = ast.fix_missing_locations(change.visit(copy.deepcopy(tree)))
        if change.made is None:
            return
        number += 1
        line, what = change.made
        text = ast.unparse(changed)
        if text != original and lines[line - 1].strip() not in given:
            yield Mutant(cell, line, what, original, text)


def mutants_in(notebook: NotebookNode) -> list[Mutant]:
    """The mutants of all solution cells of a solved notebook."""
    stubs = {grade_id(cell): cell.source for cell in without_solutions(notebook).cells}
    found: list[Mutant] = []
    for cell in notebook.cells:
        if is_code_solution(cell) and not _only_answers(cell.source):
            name = grade_id(cell)
            found += mutants_of(name, cell.source, stubs.get(name, ""))
    return found


def chosen_among(mutants: Sequence[Mutant], most: int) -> list[Mutant]:
    """All mutants, or a seeded random choice of `most` if there are more."""
    if len(mutants) <= most:
        return list(mutants)
    chosen = set(random.Random(0).sample(range(len(mutants)), most))
    return [mutant for number, mutant in enumerate(mutants) if number in chosen]


def _only_answers(source: str) -> bool:
    """Whether a cell holds only the letters of a quiz, and no code."""
    return not any(isinstance(node, ast.FunctionDef | ast.BinOp | ast.Call) for node in ast.walk(ast.parse(source)))


def survivors_among(
    mutants: Sequence[Mutant], notebook: NotebookNode, points: dict[str, float], marks: Callable[[NotebookNode], Any]
) -> Iterator[tuple[Mutant, bool]]:
    """Each mutant, and whether it keeps full marks. `marks` gives the points of each test cell of a notebook."""
    for mutant in mutants:
        given = marks(variants.styled(notebook, {mutant.cell: mutant.source}))
        yield mutant, all(name in given and given[name] >= most - 1e-9 for name, most in points.items())
