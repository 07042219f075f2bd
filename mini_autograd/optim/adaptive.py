"""Adadelta, which has its own step size for each element.

The one idea to know: each element of the gradient is divided by a measure of how large it has been.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mini_autograd.optim.optimizer import Group, Optimizer, State, check, ignored_options


class Adadelta(Optimizer):
    """v and u are running means of g^2 and of d^2, where d = g sqrt(u + eps) / sqrt(v + eps); p <- p - lr d
    (Zeiler 2012).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        check(lr >= 0, "learning rate", lr)
        check(0 <= rho <= 1, "rho value", rho)
        check(eps >= 0, "epsilon value", eps)
        check(weight_decay >= 0, "weight_decay value", weight_decay)
        options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options | ignored_options(ignored, "foreach", "capturable", "differentiable"))

    def update(self, values: Any, gradient: Any, state: State, group: Group) -> None:
        if not state:
            state |= {"step": 0, "square_avg": np.zeros_like(values), "acc_delta": np.zeros_like(values)}
        state["step"] += 1
        rho, eps = group["rho"], group["eps"]
        square, moved = state["square_avg"], state["acc_delta"]
        square *= rho
        square += (1 - rho) * gradient * gradient
        step = np.sqrt(moved + eps) / np.sqrt(square + eps) * gradient
        moved *= rho
        moved += (1 - rho) * step * step
        values -= group["lr"] * step
