"""NumPy's names of arguments: `x.argmax(axis=1, keepdims=True)` works, as in PyTorch.

The one idea to know: the operations know only `dim` and `keepdim`; the public functions and methods get the other names
here, so that the engine itself does not pay for the translation.
"""

import functools
import types
from collections.abc import Callable
from typing import Any

NAMES = {"axis": "dim", "keepdims": "keepdim"}


def translated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, but it also accepts `axis` for `dim` and `keepdims` for `keepdim`."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if "axis" in options or "keepdims" in options:
            options = {NAMES.get(name, name): value for name, value in options.items()}
        return function(*args, **options)

    return called


def accept(namespace: dict[str, Any]) -> None:
    """Replace every function of a namespace that has a `dim`, but does not accept `axis` yet, by its translation."""
    for name, function in namespace.items():
        if isinstance(function, types.FunctionType):
            code = function.__code__
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            if "dim" in arguments and name not in ("sum", "mean"):
                namespace[name] = translated(function)
