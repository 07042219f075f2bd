"""Timing, a plot, and PyTorch's side of a comparison for lesson 02."""

from __future__ import annotations

import torch

from mini_autograd.widgets.demo import logarithmic
from mini_autograd.widgets.demos.stopwatch import now


def leaf(value):
    """A number for which PyTorch will find the gradient."""
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def beside_pytorch(MiniTensor, name, expression, *numbers):
    """Print the value of an expression, its gradients, and how far they are from PyTorch's."""
    ours = [MiniTensor(number) for number in numbers]
    theirs = [leaf(number) for number in numbers]
    our_output, their_output = expression(*ours), expression(*theirs)
    our_output.backward()
    their_output.backward()
    gradients = [tensor.grad for tensor in ours]
    difference = max(abs(g - t.grad.item()) for g, t in zip(gradients, theirs, strict=True))
    print(f"{name:22s} value {our_output.data:5g}", end="   ")
    print(f"difference {difference:.0e}   gradients {gradients}")


def seconds_for(method, doublings, count, repeat=3):
    """The seconds of the fastest of a few backward passes through `doublings(count)`, all with the right gradient."""
    found = []
    for _ in range(repeat):
        x, y = doublings(count)
        start = now()
        method(y)
        found.append(now() - start)
        assert x.grad == 2.0**count
    return min(found)


def plot_doublings(every_path, each_node_once):
    """Plot the seconds of both methods for 1, 2, 3 and more doublings, and extrapolate the first."""
    import matplotlib.pyplot as plt

    measured, last = len(every_path), len(each_node_once)
    _, axis = plt.subplots(layout="constrained")
    longer = [every_path[-1], every_path[-1] * 2.0 ** (last - measured)]
    axis.plot(range(1, measured + 1), every_path, "oC0", markersize=4, label="every path, measured")
    axis.plot((measured, last), longer, "--C0", label="every path, extrapolated")
    axis.plot(range(1, last + 1), each_node_once, "sC1", markersize=4, label="each node once, measured")
    logarithmic(axis)
    axis.set(xlabel="number of doublings", ylabel="seconds for one backward")
    axis.legend(loc="upper center")
    plt.show()
