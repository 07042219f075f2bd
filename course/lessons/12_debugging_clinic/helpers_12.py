"""Data, a network, and tables for lesson 12."""

from __future__ import annotations

import warnings

import numpy as np
import torch


def waves(rows=120, seed=1):
    """Points with four features, and the sine of their sum: two arrays."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 4))
    return x, np.sin(x.sum(axis=1, keepdims=True))


def alarm(function, leaf, mode):
    """Value and gradient without the mode, and whether the mode raises."""
    output = function(leaf)
    output.backward()
    value, slope = output.item(), leaf.grad.item()
    try:
        with mode():
            function(leaf).backward()
        return value, slope, "-"
    except RuntimeError:
        return value, slope, "alarm"


def print_alarms(cases, tensor, mode):
    """Print the value and the gradient of each function at 1.0, and whether the modes of the engine and of PyTorch
    raise. `tensor` is the class of the engine's tensors.
    """
    print(f"{'':29s} value  gradient   yours   PyTorch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch prints the forward call as a warning
        for name, function in cases.items():
            value, slope, yours = alarm(function, tensor(1.0, requires_grad=True), mode)
            leaf = torch.tensor(1.0, dtype=torch.double, requires_grad=True)
            *_, theirs = alarm(function, leaf, torch.autograd.detect_anomaly)
            print(f"{name:29s} {value:5.0f} {slope:9.0f}   {yours:7s} {theirs}")


def result_or_error(action):
    """What an action returns, or the first line of the error that it raises, with "..." if there are more."""
    try:
        return action()
    except RuntimeError as error:
        first, *more = str(error).splitlines()
        return f"{type(error).__name__} - {first.rstrip(',')}{' ...' * bool(more)}"


def print_losses(name, losses, against):
    """Print every tenth loss of a training run, and the loss against the target."""
    print(name, "losses:", *(f"{loss:10.3g}" for loss in losses[::10]), end="")
    print(f"   against the target: {against:.3g}")
