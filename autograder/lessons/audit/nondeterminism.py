"""What a lesson leaves to chance: code that draws random numbers from a generator without a seed, or from one that
everybody shares, and the test cells that may run it. Found in the text, with the engine that the lesson starts from; in
doubt, a cell may.

A test cell reaches code by a name. So what mentions a name that something nondeterministic has bound is
nondeterministic itself, and so on. A definition alone does nothing yet; any other nondeterministic statement that runs,
in a test cell too, may put what it has got where no name tells of it, so every test cell after it is in doubt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nbformat import NotebookNode

from autograder.notebooks.cells import DEMO, grade_id, has_tag, is_code, is_test
from autograder.notebooks.trusted import SEALED_ENGINE, parse
from autograder.sandbox.inside.engine_file import open_engine

GENERATORS = {"default_rng", "RandomState", "Random", "SeedSequence", "PCG64", "MT19937", "Philox", "SFC64"}
SHARED = {"numpy.random", "np.random", "torch.random"}
ALWAYS = {"urandom", "SystemRandom", "secrets", "uuid1", "uuid4"}
OF_TORCH = {"bernoulli", "multinomial", "normal", "poisson", "seed", "initial_seed"}
NAMELESS = {"__subclasses__", "__globals__", "__closure__", "get_objects", "get_referrers", "get_referents"}
NAMELESS |= {"import_module", "__init_subclass__", "__set_name__", "metaclass"}
"""Ways to something whose name is not mentioned, and what runs when a class is only defined."""
BY_TEXT = {"globals", "locals", "exec", "eval", "__import__"}  # functions that do the same
DROPS = re.compile(r"globals\(\)\.pop\([\w', ]*\)")
HARMLESS = {"staticmethod", "classmethod", "property"}  # decorators
DEFINITION = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def nondeterministic_cells(source: NotebookNode) -> set[str]:
    """The grade_ids of the test cells that may draw other numbers each time they run, though their seed is the same."""
    cells = [(cell, _statements(cell)) for cell in _graded(source)]
    everything = [statement for _, statements in cells for statement in statements]
    nondeterministic = _nondeterministic(everything)
    in_doubt = bool(nondeterministic) and any(map(_needs_no_name, everything))
    found = set()
    for cell, statements in cells:
        in_doubt = in_doubt or any(id(one) in nondeterministic and not _only_defines(one) for one in statements)
        if in_doubt and is_test(cell):
            found.add(grade_id(cell))
    return found


def _graded(source: NotebookNode) -> Iterator[NotebookNode]:
    """The code cells that run when the notebook is graded."""
    for cell in source.cells:
        if is_code(cell) and not has_tag(cell, DEMO):
            yield cell


def _statements(cell: NotebookNode) -> list[ast.stmt]:
    """The statements of a cell, and before them those of the engine that it brings."""
    engines = [open_engine(sealed).source for sealed in SEALED_ENGINE.findall(cell.source)]
    return [statement for text in (*engines, cell.source) for statement in parse(text)]


def _nondeterministic(statements: list[ast.stmt]) -> set[int]:
    """The `id` of each statement that may draw, or that mentions what one of them has bound."""
    shared = _shared(statements)
    names = {id(statement): _names(statement) for statement in statements}
    nondeterministic = {id(statement) for statement in statements if _draws(statement, shared)}
    while True:
        bound = {name for statement in statements if id(statement) in nondeterministic for name in _bound(statement)}
        more = {number for number, mentioned in names.items() if mentioned & bound} | nondeterministic
        if more == nondeterministic:
            return nondeterministic
        nondeterministic = more


def _names(statement: ast.stmt) -> set[str]:
    """Every name that a statement mentions, as an attribute, an argument or a word in a text, but for docstrings."""
    found: set[str] = set()
    described = {id(node.value) for node in ast.walk(statement) if isinstance(node, ast.Expr)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, DEFINITION):
            found.add(node.name)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.keyword | ast.arg) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.alias):
            found |= {*node.name.split("."), node.asname or ""}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            found |= set(re.findall(r"\w+", node.value))
    return found


def _needs_no_name(statement: ast.stmt) -> bool:
    """Whether a statement may get at something that it does not mention."""
    return bool(_names(statement) & NAMELESS) or any(
        (isinstance(node, ast.Name) and node.id in BY_TEXT)
        or (isinstance(node, ast.Call) and _last_name(node.func) in ("vars", "dir") and not node.args)
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.modules")
        for node in _that_matter(statement)
    )


def _that_matter(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all inside it, without what only drops a name."""
    if isinstance(node, ast.Expr) and DROPS.fullmatch(ast.unparse(node)):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _that_matter(child)


def _bound(statement: ast.stmt) -> set[str]:
    """The names under which others find what a statement makes."""
    if isinstance(statement, DEFINITION):
        return {statement.name}
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(statement)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


def _only_defines(statement: ast.stmt) -> bool:
    """Whether a statement binds one name to a function, a class or a new generator, and runs nothing else."""
    if isinstance(statement, ast.ClassDef):
        heads = [*statement.bases, *(keyword.value for keyword in statement.keywords)]
        calls = any(isinstance(node, ast.Call) for head in heads for node in ast.walk(head))
        return not (calls or statement.decorator_list) and all(map(_within_a_class, statement.body))
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        defaults = [default for default in (*statement.args.defaults, *statement.args.kw_defaults) if default]
        calls = any(isinstance(node, ast.Call) for default in defaults for node in ast.walk(default))
        return not calls and all(isinstance(d, ast.Name) and d.id in HARMLESS for d in statement.decorator_list)
    if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
        return False
    made = _last_name(statement.value.func) in GENERATORS
    plain = not (statement.value.args or statement.value.keywords)
    return made and plain and all(isinstance(target, ast.Name) for target in statement.targets)


def _within_a_class(statement: ast.stmt) -> bool:
    """Whether a statement of a class runs nothing when the class is defined."""
    if isinstance(statement, DEFINITION):
        return _only_defines(statement)
    return not any(isinstance(node, ast.Call) for node in ast.walk(statement))


def _shared(statements: list[ast.stmt]) -> set[str]:
    """The modules whose functions draw from a generator that everybody shares."""
    imports = (node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Import))
    return SHARED | ({"random"} & {alias.name for node in imports for alias in node.names})


def _draws(statement: ast.stmt, shared: set[str]) -> bool:
    """Whether a statement makes a generator without a seed somewhere, or takes something from a shared one."""
    return any(_draws_here(node, shared) for node in ast.walk(statement))


def _draws_here(node: ast.AST, shared: set[str]) -> bool:
    """Whether a node makes a generator without a seed, or takes something from a shared one."""
    if isinstance(node, ast.Call):
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        seeded = any(not (isinstance(a, ast.Constant) and a.value is None) for a in arguments)
        return not seeded and _last_name(node.func) in GENERATORS
    if isinstance(node, ast.ImportFrom):
        taken = {alias.name for alias in node.names}
        return node.module in {"random", "secrets", "numpy.random"} and not taken <= GENERATORS | {"Generator"}
    if isinstance(node, ast.Name | ast.Attribute) and _last_name(node) in ALWAYS:
        return True
    if not isinstance(node, ast.Attribute):
        return False
    owner = ast.unparse(node.value)
    if owner == "torch":
        return node.attr.startswith("rand") or node.attr in OF_TORCH
    return owner in shared and node.attr not in GENERATORS | {"Generator"}


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
