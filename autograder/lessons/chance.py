"""Which lessons leave something to chance: their code draws random numbers from a generator without a seed, or from one
that everybody shares. Found in the text, with the engine that the lesson starts from; in doubt, it does.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nbformat import NotebookNode

from autograder.judge.cells import SKIP_TAG
from autograder.judge.trusted import SEALED_ENGINE, parse
from autograder.sandbox.inside.engine_file import open_engine

GENERATORS = {"default_rng", "RandomState", "Random", "SeedSequence", "PCG64", "MT19937", "Philox", "SFC64"}
SHARED = {"numpy.random", "np.random", "torch.random"}
ALWAYS = {"urandom", "SystemRandom", "secrets", "uuid1", "uuid4"}
OF_TORCH = {"bernoulli", "multinomial", "normal", "poisson", "seed", "initial_seed"}


def draws_without_seed(source: NotebookNode) -> bool:
    """Whether a cell that is graded, or the engine before it, may draw other numbers each time it runs."""
    statements = [statement for text in _texts(source) for statement in parse(text)]
    nodes = [node for statement in statements for node in ast.walk(statement)]
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    shared = SHARED | ({"random"} & modules)
    return any(_draws(node, shared) for node in nodes)


def _texts(source: NotebookNode) -> Iterator[str]:
    """The code that runs when the notebook is graded."""
    for cell in source.cells:
        if cell.cell_type == "code" and SKIP_TAG not in cell.metadata.get("tags", []):
            yield cell.source
            for sealed in SEALED_ENGINE.findall(cell.source):
                yield open_engine(sealed).source


def _draws(node: ast.AST, shared: set[str]) -> bool:
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
