"""What dtype results have, for who asks: `result_type`, `can_cast`.

Imports arrays and function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd import arrays
from mini_autograd.function import as_array


def result_type(tensor1: Any, tensor2: Any) -> np.dtype:
    """The dtype of `tensor1 + tensor2`; one of them may be a number."""
    return arrays.result_type(as_array(tensor1), as_array(tensor2))


def can_cast(from_: np.dtype, to: np.dtype) -> bool:
    """Whether results of a dtype may be written into a tensor of another: no higher kind (bool < integer < float)."""
    return KINDS.index(from_.kind) <= KINDS.index(to.kind) or (from_.kind, to.kind) == ("i", "u")


KINDS = "buif"
