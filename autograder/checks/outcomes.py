"""What a step of a case gave, beside what is right: whether they are the same, in what they differ, and a short name
for an outcome, by which a mistake is known again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from autograder.localize.error_patterns import in_common

SAME = 1e-9  # relative
DIGITS = 6  # of numbers, by which an outcome is known again: other machines round otherwise
LONGEST_SHOWN = 160
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
OWN_WORDS = ("NameError", "UnboundLocalError", "RecursionError")
"""Errors whose text holds names that a learner chose, or tells where Python stopped: their type says all."""
FRACTION = re.compile(r"\d+\.\d+(?:e[-+]?\d+)?")


def same(got: Any, right: Any) -> bool:
    """Whether a plain outcome is the right one: numbers up to rounding, everything else exactly, kinds included."""
    if isinstance(right, np.ndarray | np.generic | float | int) and not isinstance(right, bool):
        if isinstance(got, bool) or not isinstance(got, np.ndarray | int | float) or np.shape(got) != np.shape(right):
            return False
        return bool(np.allclose(got, right, rtol=SAME, atol=1e-12, equal_nan=True))
    if isinstance(right, list | tuple):
        return type(got) is type(right) and len(got) == len(right) and all(map(same, got, right))
    if isinstance(right, dict):
        return isinstance(got, dict) and got.keys() == right.keys() and all(same(got[key], right[key]) for key in right)
    return type(got) is type(right) and bool(got == right)


DECIMALS = (4, 8, 12, 16)


def shown(value: Any, decimals: int = DECIMALS[0]) -> str:
    """A plain value as a reader would write it, with so many decimals in arrays, and two digits more elsewhere."""
    if isinstance(value, dict) and set(value) == {"odd"}:
        return value["odd"] if " " in value["odd"] else f"a {value['odd']}"
    if isinstance(value, np.ndarray) and value.ndim:
        return np.array2string(value, precision=decimals)
    if isinstance(value, np.ndarray | float):
        return f"{float(value):.{decimals + 2}g}" if np.isrealobj(value) else str(value)
    if isinstance(value, list | tuple):
        inside = ", ".join(shown(each, decimals) for each in value)
        inside += "," * (isinstance(value, tuple) and len(value) == 1)
        text = f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    else:
        text = repr(value)
    return text if len(text) < LONGEST_SHOWN else text[: LONGEST_SHOWN - 3] + "..."


def as_code(*values: Any) -> tuple[str, ...]:
    """Plain values as a card shows code: stars in it are no emphasis, and backquotes end nothing. Several have as many
    decimals as it takes to tell them apart.
    """
    for decimals in DECIMALS:
        texts = [shown(value, decimals).replace("`", "'") for value in values]
        if len({*texts}) == len(values):
            break
    return tuple(f"`{text}`" for text in texts)


def difference(got: Any, right: Any) -> str:
    """What a wrong outcome of this form means: another kind, length or shape, one factor; or the empty string."""
    if isinstance(got, list | tuple) and isinstance(right, list | tuple):
        if type(got) is not type(right):
            return f"this is a {type(got).__name__}; a {type(right).__name__} is expected"
        if len(got) != len(right):
            return f"{len(got)} entries came back; {len(right)} are expected"
        return next(filter(None, map(difference, got, right)), "") if not same(got, right) else ""
    if not isinstance(right, np.ndarray | float) or not isinstance(got, np.ndarray | float):
        return ""
    if np.shape(got) != np.shape(right):
        return f"the shape is {np.shape(got)}; {np.shape(right)} is expected"
    mine, theirs = np.asarray(got, dtype=float), np.asarray(right, dtype=float)
    if np.allclose(mine, theirs, rtol=SAME, atol=1e-12, equal_nan=True):
        return ""
    found = in_common([[mine]], [[theirs]], [[np.full(mine.shape, SAME)]], ())
    return found.replace(" at every input that was tried", "").rstrip(".")


def short_name(outcomes: Sequence[Any]) -> str:
    """A short name for the outcomes of a case's steps. Equal outcomes have equal names, on other machines too."""
    return hashlib.sha256(json.dumps([_settled(each) for each in outcomes]).encode()).hexdigest()[:12]


def _settled(value: Any) -> Any:
    """An outcome without what differs between machines, runs and notebooks: the last digits of numbers, addresses, the
    names that an error guesses, and those that a learner chose.
    """
    if isinstance(value, np.ndarray):
        return ["array", list(value.shape), [_settled(entry) for entry in value.ravel().tolist()]]
    if isinstance(value, dict) and isinstance(error := value.get("error"), dict):
        kind, message = str(error.get("type")), str(error.get("message")).partition(". Did you mean `")[0]
        return ["error", kind, "" if kind in OWN_WORDS else _settled(message)]
    if isinstance(value, dict):
        return ["dict", *([_settled(key), _settled(entry)] for key, entry in value.items())]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(_settled, value)]
    if isinstance(value, float):
        return f"{0.0 if abs(value) < SAME else value:.{DIGITS - 1}e}"
    if isinstance(value, str):
        return FRACTION.sub(lambda found: _settled(float(found[0])), ADDRESS.sub("0x", value))
    return value if value is None or isinstance(value, bool | int) else repr(type(value))
