"""The libraries that the instructor's notebooks import, to be loaded once instead of for each submission, and the ones
that submissions may not use.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from typing import Any

from autograder.notebooks.cells import CodeCell, code_cells
from autograder.notebooks.statements import parse
from autograder.sandbox.inside.absent import OURS, WITHHELD

OF_ANY_COURSE = {"variant"}  # what courses on any subject use of `autograder.student`
PLACES = ("purelib", "platlib")
LOADED_AT_FIRST_USE = {"fft", "testing"}  # `import numpy` does not load them


def libraries_in(notebooks: Iterable[Any]) -> list[str]:
    """Full names of the imported modules that are in the standard library or installed. Nothing is imported."""
    named = {name for notebook in notebooks for _, cell in code_cells(notebook) for name in _imported(cell.source)}
    return sorted(name for name in named if _is_installed(name.partition(".")[0]))


def withheld_from(*sources: Any | None) -> tuple[str, ...]:
    """The packages that submissions may not use, as the instructor's notebooks say: ours, and also other engines if a
    notebook is one of our lessons, in which students build one. Without any notebook that may be so.
    """
    cells = [cell for source in sources if source is not None for _, cell in code_cells(source)]
    return WITHHELD if not cells or is_lesson(cells) else OURS


def is_lesson(cells: Iterable[CodeCell]) -> bool:
    """Whether the cells of an instructor's notebook use our checks."""
    return any(_uses_checks(cell.source) for cell in cells)


def _uses_checks(source: str) -> bool:
    if not any(name in source for name in OURS):
        return False
    nodes = [node for statement in parse(source) for node in ast.walk(statement)]
    packages = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    packages += [
        node.module or ""
        for node in nodes
        if isinstance(node, ast.ImportFrom) and not {alias.name for alias in node.names} <= OF_ANY_COURSE
    ]
    return any(name.partition(".")[0] in OURS for name in packages)


def _imported(source: str) -> Iterator[str]:
    for statement in parse(source):
        for node in ast.walk(statement):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module
            elif isinstance(node, ast.Attribute) and node.attr in LOADED_AT_FIRST_USE:
                yield f"numpy.{node.attr}"


def _is_installed(package: str) -> bool:
    """Whether a package is where libraries are installed, and not beside a notebook or in the working directory. It may
    be in the base Python, if this environment uses that one's packages.
    """
    if package in sys.stdlib_module_names:
        return True
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return False
    paths = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
    roots = tuple(
        os.path.realpath(path) + os.sep for path in {*site.getsitepackages(), *map(sysconfig.get_path, PLACES)}
    )
    return any(os.path.realpath(path).startswith(roots) for path in paths)
