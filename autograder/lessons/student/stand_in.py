"""Where there is no PyTorch, as in a browser tab, the reference engine stands in for it, under its own name.

`import torch` then gives `mini_autograd`, in the cells of a notebook and in the helpers of its lesson, and where their
texts say "PyTorch", as labels of numbers and of curves do, they say `mini_autograd`. Checks have no part in this:
`has_torch()` stays False.
"""

from __future__ import annotations

import ast
import dis
import importlib
import re
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_loader
from types import CodeType, FunctionType, ModuleType
from typing import Any

import mini_autograd
from autograder.lessons.builder.lesson_files import HELPERS
from autograder.notebooks.magics import plain_python

ENGINE = mini_autograd.__name__
LABEL = re.compile(r"PyTorch|\btorch\b(?!\S*\()")
"""What a text calls PyTorch; but a call in a text is code that a lesson evaluates."""
READS = {"LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME", "IMPORT_FROM"}
UNKNOWN_OPTION = re.compile(r"(\w+)\(\) got an unexpected keyword argument")
TENSORS = tuple(f"{ENGINE}.{room}" for room in ("tensors", "nn", "optim", "autograd"))
"""Where the engine defines what a program that uses it holds: tensors, modules, optimizers, operations."""


def install(shell: Any) -> None:
    """Let the engine stand in for PyTorch in this process and in the cells of this shell."""
    sys.modules["torch"] = mini_autograd
    sys.meta_path.insert(0, StandIn())
    shell.ast_transformers.append(Renamed())


def renamed(text: str) -> str:
    """A text that is about what cells show, with their name for the engine that computes there."""
    return text.replace("PyTorch", ENGINE) if sys.modules.get("torch") is mini_autograd else text


class StandIn(MetaPathFinder):
    """Finds the modules of the engine by PyTorch's names for them, and a lesson's helpers, whose texts it renames."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith("torch."):
            return spec_from_loader(fullname, EngineLoader())
        if not HELPERS.fullmatch(fullname):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = RenamedLoader(fullname, spec.loader.path)
        return spec


class EngineLoader(Loader):
    """Gives a module of the engine where one of PyTorch is asked for."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        try:
            sys.modules[name] = importlib.import_module(ENGINE + name.removeprefix("torch"))
        except ModuleNotFoundError:
            vars(module)["__getattr__"] = lambda part: _lacked(f"{name}.{part}")


def _lacked(name: str) -> Lacked:
    if name.rpartition(".")[2].startswith("__"):  # Python asks every module for some of these
        raise AttributeError(name)
    return Lacked(name)


class Lacked:
    """A part of PyTorch that the engine lacks. A cell can import it beside other things; its use raises LackedError."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        raise LackedError(self.name)

    def __getattr__(self, name: str) -> Any:
        raise LackedError(f"{self.name}.{name}")

    def __mro_entries__(self, bases: tuple[Any, ...]) -> Any:
        raise LackedError(self.name)


class LackedError(AttributeError):
    """A cell uses a part of PyTorch that the engine lacks; the text is its name."""


class RenamedLoader(SourceFileLoader):
    """Loads a module whose texts name the engine, and writes no bytecode: elsewhere they name PyTorch."""

    def get_code(self, fullname: str) -> CodeType:
        tree = Renamed().visit(ast.parse(self.get_data(self.path)))
        return compile(tree, self.path, "exec", dont_inherit=True)


class Renamed(ast.NodeTransformer):
    """Names the engine in all texts of a program."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str):
            node.value = LABEL.sub(ENGINE, node.value)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return node if node.arg == "at_kinks" else self.generic_visit(node)  # a check knows PyTorch's convention


def uses_it(source: str, namespace: dict[str, Any]) -> bool:
    """Whether a cell uses the engine in PyTorch's place: it names torch, or something that is the engine's, or a
    function of the notebook or the helpers that does; or it labels something with PyTorch's name."""
    try:
        tree = ast.parse(plain_python(source)[0])
        code = compile(tree, "<cell>", "exec", dont_inherit=True, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError):
        return False
    return _any_uses(_names_in(code), namespace, set()) or any(map(LABEL.search, _texts_in(tree)))


def _any_uses(names: set[str], namespace: dict[str, Any], seen: set[str]) -> bool:
    new = names - seen
    seen |= new
    return any("torch" in name.lower() or _is_used(namespace.get(name), seen) for name in new)


def _is_used(value: Any, seen: set[str]) -> bool:
    if isinstance(value, ModuleType):
        return value is mini_autograd or value.__name__.startswith(TENSORS)
    if isinstance(value, FunctionType):
        own = value.__module__ == "__main__" or HELPERS.fullmatch(value.__module__)
        return bool(own) and _any_uses(_names_in(value.__code__), value.__globals__, seen)
    kind = value if isinstance(value, type) else type(value)
    return any(base.__module__.startswith(TENSORS) for base in kind.__mro__)


def _names_in(code: CodeType) -> set[str]:
    """The global names that code reads, and what it imports, also in the functions that it defines."""
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    own = (step.argval for step in dis.get_instructions(code) if step.opname in READS)
    return set(own).union(*map(_names_in, inner))


def _texts_in(tree: ast.Module) -> list[str]:
    """The texts in a program that are no docstrings."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [str(node.value) for node in texts if id(node) not in documents]


def is_lacking(error: BaseException) -> bool:
    """Whether an error says that the engine lacks something that PyTorch may have."""
    if isinstance(error, AttributeError):
        kind = error.obj if isinstance(error.obj, type) else type(error.obj)
        place = error.obj.__name__ if isinstance(error.obj, ModuleType) else kind.__module__
        return isinstance(error, LackedError) or place.partition(".")[0] == ENGINE
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0] == ENGINE
    option = isinstance(error, TypeError) and UNKNOWN_OPTION.match(str(error))
    return bool(option and hasattr(mini_autograd, option[1])) or str(error).endswith("device string: meta")
