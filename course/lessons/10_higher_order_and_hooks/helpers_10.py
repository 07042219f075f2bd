"""What lesson 10 asks PyTorch for, beside the learner's engine."""

from __future__ import annotations

from typing import Any

import torch


def leaf(value: Any) -> torch.Tensor:
    """A number or an array in double precision, for which PyTorch will find the gradient."""
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def asked_twice(at: float, **options: bool) -> str:
    """First and second derivative of x**3 from PyTorch, or its error message."""
    x = leaf(at)
    (first,) = torch.autograd.grad(x**3, x, **options)
    try:
        (second,) = torch.autograd.grad(first, x)
        return f"{first.item():.0f} and {second.item():.0f}"
    except RuntimeError as error:
        return f"{first.item():.0f}, and then RuntimeError: {str(error)[:58]} ..."
