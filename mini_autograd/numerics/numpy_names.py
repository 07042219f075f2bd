"""NumPy's names of arguments: who writes `x.argmax(axis=1, keepdims=True)` is understood, as in PyTorch.

The one idea to know: the operations know `dim` and `keepdim` only; the public functions and methods are given their
other names here, so that the engine itself does not pay for the translation.
"""

import functools
import types
from collections.abc import Callable
from typing import Any

NAMES = {"axis": "dim", "keepdims": "keepdim"}


def translated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which takes `axis` for `dim` and `keepdims` for `keepdim`."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if "axis" in options or "keepdims" in options:
            options = {NAMES.get(name, name): value for name, value in options.items()}
        return function(*args, **options)

    return called


def accept(namespace: dict[str, Any]) -> None:
    """Put such a function in place of every function of a namespace that has a `dim` and knows no `axis` yet."""
    for name, function in namespace.items():
        if isinstance(function, types.FunctionType):
            code = function.__code__
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            if "dim" in arguments and name not in ("sum", "mean"):
                namespace[name] = translated(function)
