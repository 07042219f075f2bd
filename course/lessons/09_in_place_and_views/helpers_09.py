"""Shortcuts for lesson 09: a leaf, attempts that may fail, and a gradient beside central differences."""

from __future__ import annotations

import numpy as np
import torch


def leaf(value):
    """A PyTorch tensor in double precision that requires grad."""
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def attempt(text, action, shown=60):
    """Print what an action returns, or the first `shown` characters of its error."""
    try:
        print(f"{text:34s} {action()}")
    except (RuntimeError, TypeError) as error:
        if type(error) is NotImplementedError and not str(error):
            raise  # an exercise that is still empty
        print(f"{text:34s} {type(error).__name__}: {str(error)[:shown]}")


def complaint(action):
    """The text of the RuntimeError that an action raises; empty if it raises none."""
    try:
        action()
    except NotImplementedError:
        raise  # an exercise that is still empty
    except RuntimeError as error:
        return str(error)
    return ""


def central_differences(function, values, step=1e-6):
    """The slopes of a function of a PyTorch tensor, found by moving one entry at a time."""
    with torch.no_grad():
        moved = [
            [function(torch.tensor(values + sign * step * row)).item() for sign in (1, -1)]
            for row in np.eye(len(values))
        ]
    return np.array([(up - down) / (2 * step) for up, down in moved])


def beside_differences(program, meant, values):
    """The gradient of a program in PyTorch beside the slopes of the intended program, and whether they agree.

    If `backward` raises an error, only the beginning of the error.
    """
    right, x = central_differences(meant, values), leaf(values)
    try:
        program(x).backward()
    except RuntimeError as error:
        return f"RuntimeError: {str(error)[:40]}"
    found = x.grad.numpy()
    word = "right" if np.allclose(found, right) else "silently wrong"
    return f"{found}   right: {right.round(6)}   {word}"
