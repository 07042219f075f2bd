"""Stand-ins for packages that are withheld while grading: importing them works, so that one import line does not cost a
whole cell; using them fails, except that a lesson's checks and demos do nothing.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Collection, Sequence
from typing import Any

OURS = ("mini_autograd", "autograder")  # these know the tests' answers
ENGINES = ("torch", "torchgen", "functorch", "jax", "jaxlib", "autograd", "tinygrad")  # these have what students build
WITHHELD = (*OURS, *ENGINES)
QUIET = ("autograder", "mini_autograd.widgets", "mini_autograd.drawing")


class Absent:
    """Something from a withheld package. Attributes can be fetched and classes derived from it, but nothing can be
    computed.
    """

    def __init__(self, *path: Any):
        self._path = path[0] if path and isinstance(path[0], str) else "this class"

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ImportError(f"{self._path} is not available while a notebook is graded")

    def __repr__(self) -> str:
        return f"<{self._path}: not available while a notebook is graded>"


def do_nothing(*args: Any, **kwargs: Any) -> None:
    """Stands in for checks, quizzes and demos inside the sandbox: the judge runs the real ones outside."""


class AbsentModule(types.ModuleType):
    """A withheld module."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if (self.__name__, name) == ("autograder.student", "start_lesson"):
            from .engine_file import start_graded

            return start_graded
        if (self.__name__, name) == ("autograder.student", "variant"):
            from .variants import chosen

            return chosen
        return do_nothing if self.__name__.startswith(QUIET) else Absent(f"{self.__name__}.{name}")


class Finder:
    """Answers every import of one of these packages, before the file system is asked."""

    def __init__(self, packages: Collection[str]):
        self.packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self.packages:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return AbsentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def withhold(packages: Collection[str]) -> None:
    """Replace these packages in this process with stand-ins."""
    sys.meta_path.insert(0, Finder(packages))  # type: ignore[arg-type]  # importlib.abc would cost 15 ms to import
