"""The names and parameters of CuPy's functions and methods, for the stand-in for a GPU (`strict_array`).

`python -m tests.mini_autograd.cupy_signatures` reads them from an installed CuPy, which needs no GPU for that, and
writes `cupy_signatures.json`. The stored ones are from CuPy 14.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")
ANY = "*"  # any number of positional or keyword arguments
KNOWN: dict[str, dict[str, list[str]]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}


def check(kind: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise what CuPy would raise for a call that it does not understand. `kind` is "functions" or "methods"."""
    parameters = KNOWN[kind].get(name)
    if parameters is None:
        raise AttributeError(f"CuPy has no {name} among its {kind}")
    taken = [parameter for parameter in parameters if parameter != "self"]
    unknown = [key for key in kwargs if key not in taken and ANY not in taken]
    if unknown or (len(args) > len(taken) and ANY not in taken):
        raise TypeError(f"CuPy's {name} takes {', '.join(taken)}; it was given {len(args)} values and {unknown}")


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters; for compiled ones, from the first line of the docstring."""
    try:
        found = inspect.signature(function).parameters.values()
        return [ANY if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) else one.name for one in found]
    except (ValueError, TypeError):
        listed = re.match(r"[\w.]*\((.*?)\)", (function.__doc__ or "").strip())
        entries = listed[1].split(",") if listed else [ANY]
        return [ANY if "*" in entry else re.split("[=:]", entry.strip())[0].split()[-1] for entry in entries]


def main() -> None:
    import cupy  # type: ignore[import-not-found]

    shared = [name for name in sorted(dir(cupy)) if not name.startswith("_") and hasattr(np, name)]
    functions = {name: getattr(cupy, name) for name in shared}
    methods = {name: getattr(cupy.ndarray, name) for name in sorted(dir(cupy.ndarray)) if not name.startswith("_")}
    found = {
        "functions": {
            name: [ANY] if isinstance(one, cupy.ufunc) else parameters_of(one)
            for name, one in functions.items()
            if callable(one) and not isinstance(one, type)
        },
        "methods": {name: parameters_of(one) for name, one in methods.items() if callable(one)},
    }
    lines = [f'"{kind}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}"
             for kind, rows in found.items()]  # fmt: skip
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
