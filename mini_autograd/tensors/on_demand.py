"""Functions that few programs call: their modules are imported at the first call, so that the engine starts quickly.

The one idea to know: this file holds only names of functions, and the stand-ins that import them when they are called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from mini_autograd.numerics import numpy_names

FUNCTIONS = {
    "tensors.printing": "set_printoptions",
    "tensors.saving": "load save",
}
"""module -> its functions that `torch` has too"""


def by_name(table: dict[str, str]) -> dict[str, Callable[..., Any]]:
    """name -> a stand-in that imports the function of that name when it is called."""
    return {name: called_later(module, name) for module, names in table.items() for name in names.split()}


def called_later(module: str, name: str) -> Callable[..., Any]:
    """A stand-in for a function, which imports the function's module when it is called."""

    def function(*args: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(f"mini_autograd.{module}"), name)(*args, **options)

    function.__name__ = function.__qualname__ = name
    return numpy_names.translated(function)
