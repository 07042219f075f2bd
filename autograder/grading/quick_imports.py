"""How our commands import nbgrader in less time.

`import nbgrader` imports JupyterLab's server, all of nbgrader's commands, and nbconvert, which takes a third of a
second. The gradebook and the configuration need none of these, so they are left out until they are needed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any

# Their modules can be imported without what their __init__.py imports.
LEFT_OUT = {"nbgrader", "nbgrader.apps", "rapidfuzz"}
AT_FIRST_USE = {"nbgrader.converters", "nbgrader.plugins", "nbgrader.preprocessors"}
AT_FIRST_USE |= {"arrow", "rapidfuzz.fuzz", "requests"}  # nbgrader and nbformat import them, and rarely use them


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Import lazily (see `import_lazily`), and do not look for garbage cycles during the imports inside, or later among
    the hundreds of thousands of objects that they leave behind: this halves the processor time. Does nothing if
    nbgrader is already loaded.
    """
    if "nbgrader" in sys.modules:
        yield
        return
    import_lazily()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def import_lazily() -> None:
    """Let this process import these packages lazily from now on. Does nothing for those that it has imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds modules where Python finds them, and gives these packages another loader."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in LEFT_OUT | AT_FIRST_USE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader) if name in LEFT_OUT else LazyLoader(spec.loader)
        return spec


class _Later(Loader):
    """Makes packages whose `__init__.py` has not run yet."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Package(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader


class _Package(ModuleType):
    """A package whose `__init__.py` runs when a name is asked for that is not one of its modules."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__all__", "__version__"):  # Python itself asks for these
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if PathFinder.find_spec(f"{self.__name__}.{name}", self.__path__):
            return importlib.import_module(f"{self.__name__}.{name}")
        self.__class__ = ModuleType  # type: ignore[assignment]
        self.__loader__.exec_module(self)  # type: ignore[union-attr]
        return getattr(self, name)
