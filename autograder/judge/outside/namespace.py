"""The globals of test cells: what test cells define, the instructor's names, Python's builtins, and finally the
submission's names.

A dict subclass, because Python asks `__missing__` for every global that is not in it, in nested functions and
comprehensions too.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import os
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from autograder.judge.outside.texts import Texts
from autograder.notebooks.statements import bound_names
from autograder.notebooks.trusted import TrustedNames
from autograder.sandbox.empty import EmptyArray
from autograder.sandbox.handles import describe, is_handle, mark_constructor, reference
from autograder.sandbox.inside.frames import is_of_library
from autograder.sandbox.process.limits import Refused
from autograder.sandbox.sandbox import Sandbox

CACHED_CLASSES = frozenset({"function", "type", "module", "builtin_function_or_method"})
TABLES = "DataFrame Series"  # of pandas
FILENAME = "<instructor's cells>"
EXECUTION = "NBGRADER_EXECUTION"  # nbgrader's environment variable for why a notebook is run


class TypeOf:
    """What `type(value)` and `value.__class__` mean in a test: for a handle the submission's own class. In a function
    that travels into the sandbox, where there are no handles, it is `type` itself.
    """

    def __call__(self, value: Any) -> Any:
        if is_handle(value):
            return reference(value).ask("type", value)
        return np.ndarray if isinstance(value, EmptyArray) else type(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (builtins, "type")


class SeenAs:
    """Put around an object whose class a test asks for. One that is an instance only by its own account is refused,
    because both "yes" and "no" could be wrong. In a function that travels into the sandbox, it is `typing.cast`, which
    gives its second argument back.
    """

    def __call__(self, kinds: Any, value: Any) -> Any:
        if not is_handle(value) or isinstance(value, kinds):
            return value
        try:
            says_so = reference(value).ask("isinstance", value, kinds)
        except Exception:  # a class that does not exist there
            return value
        if says_so is True:
            parts = kinds if isinstance(kinds, tuple) else (kinds,)
            names = " or ".join(getattr(kind, "__name__", str(kind)) for kind in parts)
            raise Refused(f"only its own process can tell whether {describe(value)} is an instance of {names}")
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (typing, "cast")


class NamesHere(dict[str, Any]):
    """What `globals()` gives in a test, and `locals()` outside of functions: the notebook's names, those of tests and
    those of the submission. In a function that travels into the sandbox, `globals()` is Python's own.
    """

    def __init__(self, namespace: TestNamespace):
        super().__init__({"__builtins__": builtins})
        self.namespace = namespace

    def __call__(self) -> NamesHere:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (builtins, "globals")

    def __missing__(self, name: str) -> Any:
        return self.namespace[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.namespace[name] = value

    def __delitem__(self, name: str) -> None:
        del self.namespace[name]

    def __contains__(self, name: object) -> bool:
        return name in self.namespace or name in self.namespace.sandbox.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:  # type: ignore[override]
        return sorted({*self.namespace, *self.namespace.sandbox.names()})

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401


class TestNamespace(dict[str, Any]):
    """Names as a test cell sees them."""

    __test__ = False  # not a class for pytest to collect

    def __init__(self, sandbox: Sandbox, trusted: TrustedNames, helpers: Path | None = None):
        super().__init__({"__name__": "__main__", "__builtins__": builtins})
        self.update(__type_of__=TypeOf(), __seen_as__=SeenAs(), __names_here__=NamesHere(self))
        self.sandbox = sandbox
        self.trusted = trusted
        self.beside = (
            helpers if helpers is not None and helpers.is_dir() else Path.cwd()
        )  # where the instructor's own statements find files
        self.looked_up: dict[str, Any] = {}
        self.copied: dict[str, tuple[Any, int]] = {}  # arrays and tables, and how much code had run there by then
        self.unavailable: set[str] = set()
        self.imported: dict[str, frozenset[str]] = {}  # imports repeated in the submission: what they bind
        self.texts = Texts(trusted.statements.values())  # that test cells may execute
        self.secrets: set[str] = set()  # names that hidden tests have bound
        self.taken: set[str] = set()  # names that a test has deleted in the submission
        self.believed: set[str] = set()  # names of given cells whose values the submission has chosen, in this cell

    def __missing__(self, name: str) -> Any:
        if self._has(name) and self._execute(name, self.trusted.statements[name]):
            return dict.__getitem__(self, name)
        if hasattr(builtins, name) and name not in self.trusted.students:
            raise KeyError(name)
        if name not in self.trusted.students and self._from_star_import(name):
            return dict.__getitem__(self, name)
        return self.from_submission(name)

    def _has(self, name: str) -> bool:
        """Whether the name is the instructor's."""
        return name in self.trusted.statements and (name not in self.trusted.if_there or self._is_there(name))

    def _is_there(self, name: str) -> bool:
        """Whether the submission has such a name."""
        try:
            self.sandbox.lookup(name)
        except NameError:
            return False
        return True

    def from_submission(self, name: str) -> Any:
        """What the submission has bound the name to. Raises KeyError, which Python turns into a NameError."""
        if name in self.looked_up:
            return self.looked_up[name]
        copy, then = self.copied.get(name, (None, -1))
        if then == self.sandbox.acts:
            return copy
        try:
            value = self.sandbox.lookup(name)
        except NameError:
            raise KeyError(name) from None
        if name in self.trusted.changed:
            self.believed.add(name)
        if is_handle(value):
            if self.trusted.is_class_of_submission(name):
                mark_constructor(value)
            if type(value).__name__ in CACHED_CLASSES:
                self.looked_up[name] = value
        elif type(value) is np.ndarray or is_of_library(type(value), TABLES):
            self.copied[name] = value, self.sandbox.acts
        return value

    def __delitem__(self, name: str) -> None:
        """`del name` removes a student's name from the submission, as in one notebook, to see what fails without it."""
        if name in self:
            super().__delitem__(name)
            return
        self.from_submission(name)  # a KeyError if there is no such name
        self.sandbox.bind(name)
        self.looked_up.pop(name, None)
        self.taken.add(name)

    def __setitem__(self, name: str, value: Any) -> None:
        """If a test restores a name that it has deleted, it is restored in the submission."""
        if name in self.taken and is_handle(value):
            self.sandbox.bind(name, value)
            self.taken.discard(name)
        else:
            super().__setitem__(name, value)

    def new_cell(self) -> None:
        """Forget what names meant in the submission: its cells may have run since."""
        self.looked_up.clear()
        self.copied.clear()
        self.believed.clear()

    def forget(self, cell: list[ast.stmt]) -> None:
        """Names that a student's cell binds belong to the student from now on, even if a test has bound them."""
        bound = bound_names(cell)
        for name in bound & (self.trusted.students | self.trusted.changed):
            self.pop(name, None)
        if any(isinstance(node, ast.Delete) for statement in cell for node in ast.walk(statement)):
            self.imported.clear()
        self.imported = {text: names for text, names in self.imported.items() if bound.isdisjoint(names)}

    def _execute(self, name: str, statement: ast.stmt) -> bool:
        if name in self.unavailable:
            return False
        try:
            with contextlib.chdir(self.beside):
                exec(compile(ast.Module([statement], []), FILENAME, "exec"), self)
        except Exception:
            self.unavailable.add(name)
            return False
        return True

    def _from_star_import(self, name: str) -> bool:
        if "*" in self.trusted.if_there and not self._is_there(name):
            return False
        for statement in self.trusted.star_imports:
            try:
                module = importlib.import_module(statement.module or "")
            except Exception:
                continue
            public = getattr(module, "__all__", None)
            if name in public if public is not None else not name.startswith("_") and hasattr(module, name):
                self[name] = getattr(module, name)
                return True
        return False


def modules_in(folder: Path | None) -> list[Path]:
    """The Python files in a folder and in its direct subfolders."""
    return [] if folder is None else [*folder.glob("*.py"), *folder.glob("*/*.py")]


class TrustedPath:
    """While tests run, no import may find a file in the working directory: it may be a student's. Modules in `helpers`,
    a folder of the instructor's, are found first, as if beside the notebook. As under nbgrader, tests can see that a
    notebook is being graded.
    """

    def __init__(self, helpers: Path | None = None) -> None:
        self.names = {path.relative_to(helpers).parts[0].removesuffix(".py") for path in modules_in(helpers) if helpers}
        self.helpers = [str(helpers)] if self.names else []

    def __enter__(self) -> None:
        self.before = list(sys.path), sys.dont_write_bytecode, os.environ.get(EXECUTION)
        self.set_aside = self._take_helpers()
        here = {"", ".", os.getcwd()}
        sys.path[:] = [*self.helpers, *(entry for entry in sys.path if entry not in here)]
        sys.dont_write_bytecode = True  # the instructor's folder stays as it is
        os.environ[EXECUTION] = "autograde"

    def __exit__(self, *exception: object) -> None:
        self._take_helpers()
        sys.modules.update(self.set_aside)
        sys.path[:], sys.dont_write_bytecode, execution = self.before
        if execution is None:
            del os.environ[EXECUTION]
        else:
            os.environ[EXECUTION] = execution

    def _take_helpers(self) -> dict[str, ModuleType]:
        """Remove loaded modules with the names of helpers, and return them."""
        if not self.names:
            return {}
        return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in self.names}
