"""Random values as a process that lies would send them: lists that look like the codes of values, and are not. Each
follows from the state of a generator, so it can be made again.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from random import Random
from typing import Any

from autograder.sandbox.inside.protocol import BASES, SPECIAL_METHODS

TAGS = [*"ltdsfanibBceoNSFDEUPhxXmgwpGC?", "date", "datetime", "delta"]
TEXTS = ["", "x", "<f8", "|O", "|S3", "__class__", "int", "ValueError", "numpy", "os", "0x" + "f" * 50]
LARGE = [2**31, 2**63, -(2**70)]
FLOATS = [0.0, -0.0, 0.5, 123456789.25, 1e308, 5e-324, math.inf, -math.inf, math.nan]
SPECIAL, KNOWN_BASES = sorted(SPECIAL_METHODS), sorted(BASES)


def text(r: Random) -> str:
    return r.choice(TEXTS)


def number(r: Random) -> float:
    any_float = struct.unpack("<d", r.randbytes(8))[0]
    return r.choice([r.randint(-2, 6), r.choice(LARGE), r.choice(FLOATS), any_float])


def some(r: Random, make: Callable[[Random], Any], least: int, most: int) -> list[Any]:
    """A list of things, `least` to `most` of them."""
    return [make(r) for _ in range(r.randint(least, most))]


def methods(r: Random) -> list[str]:
    return some(r, lambda r: r.choice(SPECIAL), 0, 12)


def handle(r: Random) -> list[Any]:
    base = r.choice([None, r.choice(KNOWN_BASES)])
    return ["h", number(r), number(r), {"name": text(r), "special": methods(r), "base": base}]


def leaf(r: Random) -> Any:
    return r.choice([lambda r: None, lambda r: r.random() < 0.5, number, number, text, handle])(r)


def code(r: Random, depth: int = 0) -> Any:
    """What may stand for a value: leaves in lists, many of which begin like the code of a value."""
    if depth == 4 or r.random() < 0.4:
        return leaf(r)
    return [*some(r, lambda r: r.choice(TAGS), 0, 1), *some(r, lambda r: code(r, depth + 1), 0, 4)]
