"""The network, its training loop, tables and pictures for lesson 05.

`train` works with PyTorch's tensors and with MiniTensors: it takes a function that makes a tensor, and a function that
makes an optimizer.
"""

from __future__ import annotations

import numpy as np

from mini_autograd.widgets.demo import logarithmic

random = np.random.default_rng(1)
points = random.uniform(-2.0, 2.0, (256, 2))
heights = np.sin(2 * points[:, :1]) * np.cos(points[:, 1:])
sizes = (2, 32), (32,), (32, 32), (32,), (32, 1), (1,)
layers = [random.uniform(-0.3, 0.3, size) for size in sizes]


def network(x, parameters):
    """Two hidden layers with tanh. Works with PyTorch's tensors and with MiniTensors."""
    w1, b1, w2, b2, w3, b3 = parameters
    return ((x @ w1 + b1).tanh() @ w2 + b2).tanh() @ w3 + b3


def train(tensor, make_optimizer, steps=500, forget=False, batch=None, **options):
    """Train the network, and return the losses, step by step. `forget` leaves out zero_grad."""
    parameters = [tensor(array.copy(), requires_grad=True) for array in layers]
    optimizer = make_optimizer(parameters, lr=0.003, **options)
    random, losses = np.random.default_rng(2), []
    for _ in range(steps):
        rows = slice(None) if batch is None else random.integers(256, size=batch)
        if not forget:
            optimizer.zero_grad()
        output = network(tensor(points[rows]), parameters)
        loss = ((output - tensor(heights[rows])) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def plot_losses(**losses):
    """Draw curves of losses, step by step, with their names."""
    import matplotlib.pyplot as plt

    for name, curve in losses.items():
        plt.plot(curve, label=name.replace("_", " "))
    logarithmic(plt.gca())
    plt.gca().set(xlabel="step", ylabel="loss")
    plt.legend()
    plt.show()


def print_flags(tensors):
    """Print the flags of some PyTorch tensors. `tensors`: name -> tensor."""
    print("               requires_grad  is_leaf  grad_fn         .grad")
    for name, tensor in tensors.items():
        made_by = "None" if tensor.grad_fn is None else tensor.grad_fn.name()
        flags = f"{tensor.requires_grad!s:13s}  {tensor.is_leaf!s:7s}"
        print(f"{name:13s}  {flags}  {made_by:15s} {tensor.grad}")


def distances(batch, momentum=0.0, forget=True, steps=2000, lr=0.05, clip=np.inf):
    """Distance from the best weights of a linear regression without noise, step by step; no engine is needed."""
    rng = np.random.default_rng(0)
    x, best = rng.normal(size=(256, 10)), rng.normal(size=(10, 1))
    y, w, found = x @ best, np.zeros((10, 1)), []
    gradient, buffer = np.zeros_like(w), np.zeros_like(w)
    for _ in range(steps):
        rows = slice(None) if batch is None else rng.integers(0, 256, batch)
        fresh = 2 * x[rows].T @ (x[rows] @ w - y[rows]) / len(x[rows])
        gradient = gradient + fresh if forget else fresh
        gradient = gradient * min(1.0, clip / np.linalg.norm(gradient))
        buffer = momentum * buffer + gradient
        w = w - lr * buffer
        found.append(np.linalg.norm(w - best))
        if found[-1] > 1e40:
            break
    return found


def plot_balls(roll):
    """Draw the weights from `roll(lr, steps, forget)` for three learning rates, cleared and never cleared."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
    for axis, lr in zip(axes, (0.1, 3.0, 4.1), strict=True):
        for forget, mark in ((False, "-"), (True, "--")):
            label = "never cleared" if forget else "cleared"
            axis.plot(roll(lr, 60 if lr < 4 else 14, forget), mark, label=label)
        axis.set(xlabel="step", title=f"learning rate {lr}")
        if lr >= 2:
            axis.set_yscale("symlog", linthresh=1.0)
            axis.set_yticks([-1e6, -1e3, -1, 1, 1e3, 1e6])
    axes[0].set(ylabel="w")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    plt.show()
