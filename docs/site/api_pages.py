"""The pages of the API: public names with their signatures and docstrings, which are Markdown as it stands.

Sphinx's autodoc would read them as reStructuredText.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from sphinx.util.inspect import stringify_signature

import mini_autograd

Named = tuple[str, str, Any]
"""The module, the name in it, and the object."""

WORDS = {
    "student": ("Checks", "What a lesson imports from `autograder.student`."),
    "engine": ("The engine", "Public names of `mini_autograd`, which are PyTorch's: `import mini_autograd as torch`."),
    "tensor": ("Tensor", "Methods of `mini_autograd.Tensor`, which are PyTorch's."),
    "nn": ("Modules and optimizers", "Public names of `mini_autograd.nn`, `nn.functional` and `optim`."),
    "autograd": ("Derivatives", "Public names of `mini_autograd.autograd`, `func` and `linalg`."),
}


def pages() -> Iterator[tuple[str, str]]:
    """The name of each page, and its text."""
    contents = {
        "student": _public("autograder.student"),
        "engine": _public("mini_autograd"),
        "tensor": _methods(mini_autograd.Tensor),
        "nn": chain(*map(_public, ("mini_autograd.nn", "mini_autograd.nn.functional", "mini_autograd.optim"))),
        "autograd": chain(*map(_public, ("mini_autograd.autograd", "mini_autograd.func", "mini_autograd.linalg"))),
    }
    seen: list[Any] = []
    for page, entries in contents.items():
        parts = ["# {}\n\n{}".format(*WORDS[page])]
        for module, group in groupby(entries, key=itemgetter(0)):
            parts.append(f"## `{module}`\n\n```{{py:currentmodule}} {module}\n```")
            for _, name, value in group:
                if not (inspect.isclass(value) and value in seen):  # a type in a signature leads to one place
                    parts.append(_entry(name, value))
                seen.append(value)
        yield page, "\n\n".join(parts) + "\n"


def _public(module: str) -> Iterator[Named]:
    """Functions and classes of a module that are ours."""
    found = importlib.import_module(module)
    for name in getattr(found, "__all__", None) or dir(found):
        value = getattr(found, name)
        ours = (getattr(value, "__module__", None) or "").startswith(module.partition(".")[0])
        if not name.startswith("_") and ours and callable(value):
            yield module, name, value


def _methods(owner: type) -> Iterator[Named]:
    for name in dir(owner):
        if not name.startswith("_"):
            yield "mini_autograd", f"{owner.__name__}.{name}", getattr(owner, name)


def _entry(name: str, value: Any) -> str:
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "attribute"
    try:
        signature = stringify_signature(inspect.signature(value), show_return_annotation=kind == "function")
    except (TypeError, ValueError):  # an attribute, or something made by C code
        signature = ""
    return f"`````{{py:{kind}}} {name}{signature}\n{inspect.getdoc(value) or ''}\n`````"
