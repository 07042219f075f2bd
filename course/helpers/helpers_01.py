"""Plots, and helpers that use PyTorch, for lesson 01."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn


def leaf(value):
    """A number for which PyTorch will find the gradient."""
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def plot_errors(errors):
    """Plot `errors(dtype, central)`, which returns steps and errors, for two dtypes and both kinds of difference."""
    _, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for axis, dtype in zip(axes, (np.float64, np.float32), strict=True):
        for central, style, label in ((False, "o", "one-sided"), (True, "s", "central")):
            axis.loglog(*errors(dtype, central), style, markersize=3, label=label)
        axis.set(title=dtype.__name__, xlabel="step h", ylim=(1e-13, 10))
    axes[0].set_ylabel("error of the estimated slope")
    axes[0].legend()
    plt.show()


def plot_losses(curves):
    """Plot the losses of a neuron from two starts, step by step. `curves`: name -> losses."""
    _, axis = plt.subplots(layout="constrained")
    for (name, losses), style in zip(curves.items(), ("o-", "s-"), strict=True):
        axis.plot(losses, style, markersize=4, label=name)
    axis.set(xlabel="training step", ylabel="loss", title="the same neuron, two starts")
    axis.set_xticks(range(0, 20, 5))
    axis.legend()
    plt.show()


def steps_until_revival(layer, unit, steps=100):
    """Train a PyTorch network with two hidden layers of 16 units, in which one unit starts off for every example.
    Returns the step at which that unit is on again for some example, or None. `layer`: 0 for the first, 2 for the
    second.
    """
    torch.manual_seed(0)
    examples = torch.randn(256, 4)
    targets = torch.sin(examples.sum(1, keepdim=True))
    torch.manual_seed(1)
    layers = nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1)
    network = nn.Sequential(*layers)
    part = network[: layer + 1]  # up to the value before this unit's ReLU
    with torch.no_grad():
        network[layer].bias[unit] -= part(examples)[:, unit].max() + 0.02
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for step in range(steps):
        with torch.no_grad():
            if (part(examples)[:, unit] > 0).any():
                return step
        optimizer.zero_grad()
        ((network(examples) - targets) ** 2).mean().backward()
        optimizer.step()
    return None
