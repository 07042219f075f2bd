"""Functions that few programs call: their modules are imported at the first call, so that the engine starts quickly.

The one idea to know: here are only names, of functions of `torch` and of methods of Tensor.
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
"""module -> the functions of it that `torch` has too"""


def by_name(table: dict[str, str]) -> dict[str, Callable[..., Any]]:
    """name -> a function that imports the one of that name when it is called."""
    return {name: called_later(module, name) for module, names in table.items() for name in names.split()}


def called_later(module: str, name: str) -> Callable[..., Any]:
    """The function of that name in a module that is imported when it is called."""

    def function(*args: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(f"mini_autograd.{module}"), name)(*args, **options)

    function.__name__ = function.__qualname__ = name
    return numpy_names.translated(function)
