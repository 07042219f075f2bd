"""No module sets a name in another one: what a lower layer needs from a higher one is registered with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mini_autograd

ENGINE = Path(mini_autograd.__file__).parent


def imported_modules_and_classes(tree: ast.AST) -> set[str]:
    """The names under which a file knows modules and classes of the engine. Other objects may well be changed."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name for alias in node.names if alias.name.startswith("mini_autograd")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mini_autograd"):
            for alias in node.names:
                is_module = any(ENGINE.parent.glob(f"{node.module.replace('.', '/')}/{alias.name}*"))  # type: ignore[union-attr]
                if is_module or (alias.name[0].isupper() and not alias.name.isupper()):
                    found.add(alias.asname or alias.name)
    return found


def filled_in(text: str) -> Iterator[str]:
    """The assignments with which a file changes a module or a class that it imports."""
    tree = ast.parse(text)
    others = imported_modules_and_classes(tree)
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(part, ast.Attribute) and ast.unparse(part.value).split(".")[0] in others:
                    yield ast.unparse(node)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr" and ast.unparse(node.args[0]) in others:
            yield ast.unparse(node)


@pytest.mark.parametrize(
    "text",
    [
        "from mini_autograd.graph import function\nfunction.Tensor = int",
        "from mini_autograd.graph import function as graph\ndef fill():\n    graph.Function.name = 1",
        "from mini_autograd.tensors.tensor import Tensor\nTensor.first, Tensor.second = 1, 2",
        "from mini_autograd.tensors.tensor import Tensor\nfor name in 'ab':\n    setattr(Tensor, name, name)",
    ],
)
def test_a_name_that_is_filled_in_would_be_found(text: str) -> None:
    assert list(filled_in(text))


def test_no_name_is_filled_in_from_another_module() -> None:
    paths = sorted(ENGINE.rglob("*.py"))
    assert len(paths) > 50
    assert not [f"{path.name}: {found}" for path in paths for found in filled_in(path.read_text())]
