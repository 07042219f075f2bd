"""Jacobians from moved inputs, PyTorch's side of comparisons, and pictures for lesson 04.

`jacobian` moves each entry of an input and watches every output, as in lesson 01. It uses no rule, so the rules can be
compared with it.
"""

from __future__ import annotations

import numpy as np
import torch


def leaf(values):
    """An array for which PyTorch will find the gradient."""
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def jacobian(f, x, h=1e-6):
    """The slope of every entry of f(x) with respect to every entry of x, by central differences."""
    columns = []
    for position in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[position] = h
        columns.append((f(x + step) - f(x - step)).ravel() / (2 * h))
    return np.stack(columns, axis=1)


def try_backward(x, output, *gradient):
    """Call PyTorch's backward. Print the gradient of x, or PyTorch's error."""
    shape = str(tuple(output.shape))
    x.grad = None
    try:
        output.backward(*gradient)
        print(f"shape {shape:8s} fine, gradient {x.grad.tolist()}")
    except RuntimeError as error:
        print(f"shape {shape:8s} RuntimeError: {str(error).split(' and output')[0]}")


def probabilities(x):
    """Each row of x as probabilities: positive, with sum 1."""
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def error_of_rule(tensor, function, x, cotangent):
    """How far a function's gradient is from cotangent @ J, where J comes from moved inputs. `tensor`: MiniTensor."""
    moved = cotangent.ravel() @ jacobian(lambda x: function(tensor(x)).data, x)
    a = tensor(x)
    function(a).backward(cotangent)
    return np.abs(a.grad.ravel() - moved).max()


def show_classifier(images, labels, W, b):
    """Print how often a classifier is right on its training pictures and on others, and show its weights."""
    import matplotlib.pyplot as plt

    logits = images.reshape(len(images), -1) / 16 @ W + b
    for name, part in (("training", slice(600)), ("test", slice(600, None))):
        right = (logits.argmax(axis=1) == labels)[part].mean()
        print(f"{name:9s} {100 * right:.1f} % right")
    _, axes = plt.subplots(2, 10, figsize=(9, 2.6), layout="constrained")
    for digit, (above, below) in enumerate(axes.T):
        above.imshow(images[labels == digit][0], cmap="gray_r")
        below.imshow(W[:, digit].reshape(8, 8), cmap="RdBu", vmin=-abs(W).max(), vmax=abs(W).max())
        above.axis("off")
        below.axis("off")
    plt.show()


def show_zeros(tables):
    """Draw tables of slopes: gray is zero, blue positive, red negative."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained")
    for axis, (title, table) in zip(axes, tables.items(), strict=True):
        zero = np.abs(table) < 1e-9
        axis.imshow(np.where(zero, np.nan, table), cmap="RdBu", vmin=-2, vmax=2)
        axis.set(title=title, xlabel="input", ylabel="output", xticks=[], yticks=[])
        axis.set_facecolor("0.88")
        print(f"{title:32s} {table.shape[0]:2d} x {table.shape[1]:2d}, {100 * zero.mean():.0f} % zeros")
    plt.show()
