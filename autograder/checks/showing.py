"""How arrays are written on a card."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_NUMBERS = 12


def shown(value: Any) -> str:
    """The numbers of an array, or only its shape where there are many."""
    array = np.asarray(value)
    if array.size > MOST_NUMBERS:
        return f"array of shape {array.shape}"
    return np.array2string(array, precision=4, separator=", ", max_line_width=100).replace("\n", "")
