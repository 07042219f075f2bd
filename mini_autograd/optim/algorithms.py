"""The algorithms: SGD, Adam, AdamW, RMSprop.

The one idea to know: `update` gets arrays and changes them in place. `np.multiply(a, b, out=scratch)` is `a * b`
without a new array.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from mini_autograd.numerics.blocks import blocks_of
from mini_autograd.optim.optimizer import Group, Optimizer, State, check, ignored_options


class SGD(Optimizer):
    """v <- momentum v + (1 - dampening) g, then p <- p - lr v; with `nesterov`, p <- p - lr (g + momentum v)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        check(lr >= 0, "learning rate", lr)
        check(momentum >= 0, "momentum value", momentum)
        check(weight_decay >= 0, "weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        options |= {"nesterov": nesterov, "maximize": maximize}
        super().__init__(params, options | ignored_options(ignored, "foreach", "differentiable", "fused"))

    def update(self, values: Any, gradient: Any, state: State, group: Group) -> None:
        momentum, direction = group["momentum"], gradient
        if momentum:
            scratch = self.scratch(values)
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = gradient.copy()
            else:
                velocity *= momentum
                velocity += np.multiply(gradient, 1 - group["dampening"], out=scratch)
            direction = velocity
            if group["nesterov"]:
                direction = np.multiply(velocity, momentum, out=scratch)
                direction += gradient
        for part, change in blocks_of(values, direction):
            part -= np.multiply(change, group["lr"], out=self.scratch(part))


class Adam(Optimizer):
    """m and v are running means of g and g^2; p <- p - lr m' / (sqrt(v') + eps), with m' and v' corrected for the bias
    of starting at 0 (Kingma and Ba 2014).
    """

    decoupled_weight_decay = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        check(lr >= 0, "learning rate", lr)
        check(eps >= 0, "epsilon value", eps)
        check(0 <= betas[0] < 1, "beta parameter at index 0", betas[0])
        check(0 <= betas[1] < 1, "beta parameter at index 1", betas[1])
        check(weight_decay >= 0, "weight_decay value", weight_decay)
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        options |= {"maximize": maximize, "decoupled_weight_decay": self.decoupled_weight_decay}
        names = "foreach", "capturable", "differentiable", "fused"
        super().__init__(params, options | ignored_options(ignored, *names))

    def update(self, values: Any, gradient: Any, state: State, group: Group) -> None:
        if not state:
            state |= {"step": 0, "exp_avg": np.zeros_like(values), "exp_avg_sq": np.zeros_like(values)}
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = np.zeros_like(values)
        state["step"] += 1
        beta1, beta2 = group["betas"]
        mean, square, scratch = state["exp_avg"], state["exp_avg_sq"], self.scratch(values)
        mean *= beta1
        mean += np.multiply(gradient, 1 - beta1, out=scratch)
        square *= beta2
        np.multiply(gradient, gradient, out=scratch)
        square += np.multiply(scratch, 1 - beta2, out=scratch)
        if group["amsgrad"]:
            square = np.maximum(state["max_exp_avg_sq"], square, out=state["max_exp_avg_sq"])
        np.sqrt(square, out=scratch)
        scratch /= math.sqrt(1 - beta2 ** state["step"])
        scratch += group["eps"]
        np.divide(mean, scratch, out=scratch)
        values -= np.multiply(scratch, group["lr"] / (1 - beta1 ** state["step"]), out=scratch)


class AdamW(Adam):
    """Adam with decoupled weight decay: first p <- (1 - lr weight_decay) p (Loshchilov and Hutter 2017)."""

    decoupled_weight_decay = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **ignored)


class RMSprop(Optimizer):
    """v is a running mean of g^2 (`centered`: minus the squared running mean of g); p <- p - lr g / (sqrt(v) + eps)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **ignored: Any,
    ) -> None:
        check(lr >= 0, "learning rate", lr)
        check(eps >= 0, "epsilon value", eps)
        check(momentum >= 0, "momentum value", momentum)
        check(weight_decay >= 0, "weight_decay value", weight_decay)
        check(alpha >= 0, "alpha value", alpha)
        options = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered}
        options |= {"weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options | ignored_options(ignored, "foreach", "capturable", "differentiable"))

    def update(self, values: Any, gradient: Any, state: State, group: Group) -> None:
        if not state:
            state |= {"step": 0, "square_avg": np.zeros_like(values)}
            state |= {"momentum_buffer": np.zeros_like(values)} if group["momentum"] else {}
            state |= {"grad_avg": np.zeros_like(values)} if group["centered"] else {}
        state["step"] += 1
        alpha, square, scratch = group["alpha"], state["square_avg"], self.scratch(values)
        square *= alpha
        np.multiply(gradient, gradient, out=scratch)
        square += np.multiply(scratch, 1 - alpha, out=scratch)
        if group["centered"]:
            mean = state["grad_avg"]
            mean *= alpha
            mean += np.multiply(gradient, 1 - alpha, out=scratch)
            np.multiply(mean, mean, out=scratch)
            np.sqrt(np.subtract(square, scratch, out=scratch), out=scratch)
        else:
            np.sqrt(square, out=scratch)
        scratch += group["eps"]
        direction = np.divide(gradient, scratch, out=scratch)
        if group["momentum"]:
            velocity = state["momentum_buffer"]
            velocity *= group["momentum"]
            velocity += direction
            direction = velocity
        values -= np.multiply(direction, group["lr"], out=scratch)
