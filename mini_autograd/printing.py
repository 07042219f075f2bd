"""How a tensor is printed, as PyTorch prints it: four digits, `1.` for whole numbers, scientific where sizes differ
much.

Imports arrays and NumPy only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mini_autograd.arrays import bool_, default_dtype, int64, is_floating

PRECISION = 4
THRESHOLD = 1000
EDGE_ITEMS = 3
LINE_WIDTH = 80


def tensor_text(array: np.ndarray, requires_grad: bool, grad_fn_name: str | None) -> str:
    """The text of a tensor: `tensor([1., 2.], requires_grad=True)`."""
    suffixes = []
    if array.size == 0 and array.shape != (0,):
        suffixes.append(f"size={array.shape}")
    if array.dtype not in (default_dtype, int64, bool_) or (array.size == 0 and array.dtype != default_dtype):
        suffixes.append(f"dtype=torch.{array.dtype.name}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return "tensor(" + ", ".join([elements_text(array), *suffixes]) + ")"


def elements_text(array: np.ndarray) -> str:
    """The elements in nested brackets."""
    if array.size == 0:
        return "[]"
    one = element_formatter(array)
    if array.ndim == 0:
        return one(array[()]).strip()
    return np.array2string(
        array,
        formatter={"all": one},
        separator=", ",
        prefix="tensor(",
        threshold=THRESHOLD,
        edgeitems=EDGE_ITEMS,
        max_line_width=LINE_WIDTH,
    )


def element_formatter(array: np.ndarray) -> Callable[[object], str]:
    """A function that prints one element, all of the same width."""
    form: Callable = float_form(array) if is_floating(array.dtype) else str
    width = max(len(form(element)) for element in array.ravel())
    return lambda element: form(element).rjust(width)


def float_form(array: np.ndarray) -> Callable[[float], str]:
    """PyTorch's choice between `1.`, `1.5000` and `1.0000e+10`, made for all elements together."""
    finite = np.abs(array[np.isfinite(array) & (array != 0)].astype(np.float64))
    if finite.size == 0:
        return lambda x: f"{x:.0f}." if np.isfinite(x) else f"{x:.0f}"
    largest, smallest = finite.max(), finite.min()
    whole = bool((finite == np.floor(finite)).all())
    scientific = largest / smallest > 1000.0 or largest > 1.0e8 or (not whole and smallest < 1.0e-4)
    if scientific:
        return lambda x: f"{x:.{PRECISION}e}"
    if whole:
        return lambda x: f"{x:.0f}." if np.isfinite(x) else f"{x:.0f}"
    return lambda x: f"{x:.{PRECISION}f}"
