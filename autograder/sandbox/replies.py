"""Reads parts of what a submission's process sends. Nothing in it is trusted, neither types nor sizes."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from autograder.sandbox.inside.protocol import CONTAINERS
from autograder.sandbox.inside.values import Malformed


def names_in(code: Any) -> list[str]:
    """The names in the description of a class. Raises Malformed."""
    if type(code) is not list or not all(type(name) is str for name in code):
        raise Malformed("a class is not described")
    return code


def print_again(outputs: list[Any]) -> None:
    """Print here what student code printed while it answered a question: the test may capture it."""
    for output in outputs:
        if isinstance(output, dict) and output.get("output_type") == "stream" and isinstance(output.get("text"), str):
            stream = sys.stderr if output.get("name") == "stderr" else sys.stdout
            stream.write(output["text"].encode("utf-8", "replace").decode())


def places_in(code: Any) -> tuple[tuple[int, str, str], ...]:
    """Where an exception was raised: line number, its text, function. Malformed entries are left out."""
    found = []
    for place in code[:5] if type(code) is list else []:
        if (
            type(place) is list
            and len(place) == 3
            and type(place[0]) is int
            and type(place[1]) is str
            and type(place[2]) is str
        ):
            found.append((place[0], place[1][:200], place[2][:80]))
    return tuple(found)


def builtin_class(name: Any) -> Any:
    """The builtin class of this name, or one of `collections`. Raises Malformed."""
    found = CONTAINERS.get(name, getattr(builtins, name, None)) if type(name) is str else None
    if not isinstance(found, type):
        raise Malformed("no such builtin class")
    return found
