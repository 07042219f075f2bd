"""The cases that lie beside a notebook: `checks_NN.py`, and the signatures of known mistakes, `signatures_NN.json`."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from autograder.checks.cases import REGISTER, Check
from autograder.checks.known import Signatures
from autograder.runs.errors import LessonError

NO_FILE = "there is no {0}.py beside this notebook: it came with the lesson, and holds the cases that are checked"
_LOADED: dict[str, tuple[tuple[int, int], ModuleType]] = {}


def check_named(name: str) -> tuple[Check, Signatures]:
    """The check of a name such as `06.held`, and the signatures of its lesson. Raises LessonError.

    A file that has changed is read again: a notebook's kernel may run for days.
    """
    lesson, _, exercise = name.partition(".")
    module = f"checks_{lesson}"
    spec = PathFinder.find_spec(module)
    if spec is None or spec.origin is None:
        raise LessonError(NO_FILE.format(module))
    path = Path(spec.origin)
    checks: dict[str, Check] = getattr(_module(module, path), REGISTER, {})
    if exercise not in checks:
        raise LessonError(f"{path.name} has no check {exercise!r}; it has {', '.join(checks) or 'none'}")
    return checks[exercise], Signatures.read(path.with_name(f"signatures_{lesson}.json"))


def _module(name: str, path: Path) -> ModuleType:
    """The module in a file, loaded anew if the file has changed."""
    there = path.stat()
    state = there.st_mtime_ns, there.st_size
    if str(path) not in _LOADED or _LOADED[str(path)][0] != state:
        _LOADED[str(path)] = state, load(name, path)
    module = _LOADED[str(path)][1]
    sys.modules[name] = module  # where functions that travel are looked for
    return module


def load(name: str, path: Path) -> ModuleType:
    """Execute a file of cases as a module of that name."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LessonError(f"{path.name} cannot be read")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
