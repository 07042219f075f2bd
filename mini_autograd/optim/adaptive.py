"""More algorithms with a step of its own for each element: Adagrad, Adadelta, Adamax.

Imports views and optimizer. The one idea to know: each divides the gradient by a measure of how large it has been
there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mini_autograd.optim.optimizer import Group, Optimizer, State, check, ignored_options
from mini_autograd.views import memory_of


class Adagrad(Optimizer):
    """s is the sum of all g^2; p <- p - lr g / (sqrt(s) + eps) (Duchi, Hazan and Singer 2011).

    With `lr_decay` the n-th step goes with lr / (1 + (n - 1) lr_decay).
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        check(lr >= 0, "learning rate", lr)
        check(lr_decay >= 0, "lr_decay value", lr_decay)
        check(weight_decay >= 0, "weight_decay value", weight_decay)
        check(initial_accumulator_value >= 0, "initial_accumulator_value value", initial_accumulator_value)
        check(eps >= 0, "epsilon value", eps)
        options = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        options |= {"initial_accumulator_value": initial_accumulator_value}
        super().__init__(params, options | ignored_options(ignored, "foreach", "differentiable", "fused"))
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param] = self.first_state(memory_of(param), group)

    @staticmethod
    def first_state(values: Any, group: Group) -> State:
        """No step yet, and the sum that was asked for."""
        return {"step": 0, "sum": np.full_like(values, group["initial_accumulator_value"])}

    def update(self, values: Any, gradient: Any, state: State, group: Group) -> None:
        if not state:
            state |= self.first_state(values, group)
        state["step"] += 1
        state["sum"] += gradient * gradient
        rate = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
        values -= rate * gradient / (np.sqrt(state["sum"]) + group["eps"])


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


class Adamax(Optimizer):
    """As Adam, but divided by u <- max(beta2 u, |g| + eps), a running maximum (Kingma and Ba 2014)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        check(lr >= 0, "learning rate", lr)
        check(eps >= 0, "epsilon value", eps)
        check(0 <= betas[0] < 1, "beta parameter at index 0", betas[0])
        check(0 <= betas[1] < 1, "beta parameter at index 1", betas[1])
        check(weight_decay >= 0, "weight_decay value", weight_decay)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options | ignored_options(ignored, "foreach", "capturable", "differentiable"))

    def update(self, values: Any, gradient: Any, state: State, group: Group) -> None:
        if not state:
            state |= {"step": 0, "exp_avg": np.zeros_like(values), "exp_inf": np.zeros_like(values)}
        state["step"] += 1
        beta1, beta2 = group["betas"]
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean *= beta1
        mean += (1 - beta1) * gradient
        np.maximum(beta2 * largest, abs(gradient) + group["eps"], out=largest)
        values -= group["lr"] / (1 - beta1 ** state["step"]) * mean / largest
