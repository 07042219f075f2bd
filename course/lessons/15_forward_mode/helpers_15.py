"""Timing, PyTorch's side of comparisons, and plots for lesson 15."""

from __future__ import annotations

import timeit
import tracemalloc

import numpy as np
import torch
import torch.autograd.forward_ad as forward_ad

from mini_autograd.widgets.demo import logarithmic


def seconds(action, rounds=5):
    """The shortest time of an action, after one run to warm up. A busy machine can only make a time longer."""
    action()
    return min(timeit.repeat(action, number=1, repeat=rounds))


def peak(action):
    """The most memory that NumPy held at one time, in megabytes."""
    tracemalloc.start()
    try:
        result = action()
        found = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    del result
    return found / 1e6


def one_at_a_time(x):
    """One tensor for each entry of x, of the shape of x: 1 at that entry and 0 elsewhere."""
    return torch.eye(x.numel(), dtype=torch.float64).reshape(-1, *x.shape)


def backward_passes(function, x):
    """All derivatives in PyTorch, one pass per output."""
    x = x.clone().requires_grad_()
    y = function(x)
    return [torch.autograd.grad(y, x, e, retain_graph=True)[0] for e in one_at_a_time(y)]


def forward_passes(function, x):
    """All derivatives in PyTorch, one pass per input."""
    return [torch.func.jvp(function, (x,), (e,))[1] for e in one_at_a_time(x)]


def with_dual_numbers(function, inputs, tangents):
    """The value and the tangent, computed with PyTorch's `forward_ad`."""
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, t) for x, t in zip(inputs, tangents, strict=True)]
        return tuple(forward_ad.unpack_dual(function(*duals)))


def small_network(inputs, outputs, make=np.asarray):
    """A random network as a function of an array with `inputs` entries, and a random point for it."""
    draw = np.random.default_rng(inputs)
    first = make(draw.normal(size=(inputs, 32)) / inputs**0.5)
    second = make(draw.normal(size=(32, outputs)) / 32**0.5)
    return lambda x: (x @ first).tanh() @ second, make(draw.normal(size=inputs))


def bumpy_slope(x):
    """The slope of tanh(x * x) * exp(x) / (x + 2) by the formula, in extended precision."""
    x = np.longdouble(x)
    t, e = np.tanh(x * x), np.exp(x)
    return (2 * x * (1 - t * t) * e + t * e) / (x + 2) - t * e / (x + 2) ** 2


def plot_errors(steps, errors, of_dual):
    """Plot the errors of a slope: from central differences for each step, and from a dual number."""
    import matplotlib.pyplot as plt

    _, axis = plt.subplots(layout="constrained")
    axis.plot(steps, errors, "o-", markersize=4, label="central differences")
    axis.axhline(of_dual, color="C1", linewidth=2, label="dual number")
    logarithmic(axis, "xy")
    axis.set(xlabel="step h", ylabel="error of the slope")
    axis.legend()
    plt.show()


def plot_peaks(peaks, depths):
    """Plot the peaks of memory. `peaks`: name -> the megabytes for each depth."""
    import matplotlib.pyplot as plt

    _, axis = plt.subplots(layout="constrained")
    for (name, sizes), marker in zip(peaks.items(), "s^o", strict=True):
        axis.plot(depths, sizes, f"{marker}-", label=name)
        print(f"{name:22s}", "  ".join(f"{d}: {size:5.1f} MB" for d, size in zip(depths, sizes, strict=True)))
    axis.set(xlabel="number of layers", ylabel="peak memory in MB", ylim=(0, None))
    axis.legend()
    plt.show()
