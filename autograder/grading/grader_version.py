"""Finds the code that decides on marks, and hashes it: a changed grader grades every submission again.

This is the code that a run and its workers can reach: starting from `ROOTS`, every module of ours that a reached module
names in an import, in a string such as nbgrader's configuration, or in a comment. So it may be too much, never too
little. Code that only commands, reports and widgets use is not reached: changing it grades no class again.
"""

from __future__ import annotations

import glob
import hashlib
import importlib.metadata
import os
import platform
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import autograder

LIBRARIES = ("torch", "numpy", "nbgrader", "nbconvert", "nbformat")
ROOTS = ("autograder.grading.run", "autograder.grading.submission.worker", "autograder.student")
WHOLE = ("autograder.nbgrader_plugins.", "autograder.sandbox.inside.", "mini_autograd.")
"""Packages whose modules are not named individually anywhere."""
WITHOUT = "mini_autograd.widgets"
NAMED = re.compile(r"autograder(?:\.\w+)+")
IMPORTED = re.compile(r"from (autograder[\w.]*) import (\([^)]*\)|.+)")


@cache
def grader_version() -> str:
    """A hash of the code that decides on marks, and of the versions of Python and of `LIBRARIES`."""
    libraries = [f"{library} {importlib.metadata.version(library)}" for library in LIBRARIES]
    code = hash_of_code(Path(next(iter(autograder.__path__))).parent)
    return hashlib.sha256("\0".join([code, platform.python_version(), *libraries]).encode()).hexdigest()


def hash_of_code(root: Path) -> str:
    """A hash of the code that decides on marks, from the packages below a folder."""
    digest = hashlib.sha256()
    for name, text in sorted(deciding_modules(root).items()):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()


def deciding_modules(root: Path) -> dict[str, str]:
    """The texts of the modules that can decide a mark, by name."""
    modules = {
        path.removesuffix(".py").replace(os.sep, ".").removesuffix(".__init__"): root / path
        for package in ("autograder", "mini_autograd")
        for path in glob.glob(f"{package}/**/*.py", root_dir=root, recursive=True)
    }
    found: dict[str, str] = {}
    todo = [*ROOTS, *(name for name in modules if f"{name}.".startswith(WHOLE) and not name.startswith(WITHOUT))]
    while todo:
        name = todo.pop()
        if name not in found and name in modules:
            found[name] = modules[name].read_text(encoding="utf-8")
            todo += _named_in(found[name], modules)
    return found


def _named_in(text: str, modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules of `autograder` that a text names, with the packages that they are in."""
    names = set(NAMED.findall(text))
    names |= {f"{origin}.{name}" for origin, listed in IMPORTED.findall(text) for name in re.findall(r"\w+", listed)}
    for name in names:
        while name:
            if name in modules:
                yield name
            name = name.rpartition(".")[0]
