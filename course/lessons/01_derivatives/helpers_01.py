"""Plots, and helpers that use PyTorch, for lesson 01."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from mini_autograd.widgets.demo import logarithmic


def leaf(value):
    """A number for which PyTorch will find the gradient."""
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def pyplot():
    """Matplotlib's pyplot in the style of this lesson; only what draws needs it."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"figure.figsize": (7, 4), "figure.facecolor": "white", "font.size": 11})
    plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.3})
    return plt


def plot_errors(errors):
    """Plot `errors(dtype, central)`, which returns steps and errors, for two dtypes and both kinds of difference."""
    plt = pyplot()
    _, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for axis, dtype in zip(axes, (np.float64, np.float32), strict=True):
        for central, style, label in ((False, "o", "one-sided"), (True, "s", "central")):
            axis.plot(*errors(dtype, central), style, markersize=3, label=label)
        logarithmic(axis, "xy")
        axis.set(title=dtype.__name__, xlabel="step h", ylim=(1e-13, 10))
    axes[0].set_ylabel("error of the estimated slope")
    axes[0].legend()
    plt.show()


def plot_losses(curves):
    """Plot the losses of a neuron from two starts, step by step. `curves`: name -> losses."""
    plt = pyplot()
    _, axis = plt.subplots(layout="constrained")
    for (name, losses), style in zip(curves.items(), ("o-", "s-"), strict=True):
        axis.plot(losses, style, markersize=4, label=name)
    axis.set(xlabel="training step", ylabel="loss", title="the same neuron, two starts")
    axis.set_xticks(range(0, 20, 5))
    axis.legend()
    plt.show()


def steps_until_revival(layer, steps=100):
    """Train 16 copies of a PyTorch network with two hidden layers of 16 units. In copy i, unit i of one layer (0 or 1)
    starts off for every example. Returns for each unit the step at which it is on again for some example, or None.
    """
    torch.manual_seed(0)
    examples = torch.randn(256, 4)
    targets = torch.sin(examples.sum(1, keepdim=True))
    torch.manual_seed(1)
    first, second, last = nn.Linear(4, 16), nn.Linear(16, 16), nn.Linear(16, 1)
    weights = [copies(part.weight.T) for part in (first, second, last)]
    biases = [copies(part.bias[None]) for part in (first, second, last)]

    def values():
        """What each layer computes before its ReLU, for all copies: arrays (copy, example, unit)."""
        found = [examples @ weights[0] + biases[0]]
        for weight, bias in zip(weights[1:], biases[1:], strict=True):
            found.append(found[-1].relu() @ weight + bias)
        return found

    def watched(values):
        """The values of unit i in copy i, for all examples."""
        return values[layer].diagonal(dim1=0, dim2=2)

    with torch.no_grad():
        biases[layer].diagonal(dim1=0, dim2=2).sub_(watched(values()).amax(0) + 0.02)
    optimizer = torch.optim.SGD([*weights, *biases], lr=0.1)
    back = [None] * 16
    for step in range(steps):
        found = values()
        for unit in (watched(found) > 0).any(0).nonzero().flatten().tolist():
            back[unit] = step if back[unit] is None else back[unit]
        optimizer.zero_grad()
        ((found[-1] - targets) ** 2).mean((1, 2)).sum().backward()
        optimizer.step()
    return back


def copies(array, count=16):
    """Copies of an array as one leaf, along a new first axis."""
    return array.detach().expand(count, *array.shape).clone().requires_grad_()
