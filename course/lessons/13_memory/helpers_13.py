"""Counting and a plot for lesson 13."""

from __future__ import annotations

import contextlib
import tracemalloc

from torch.utils.checkpoint import checkpoint


def again(block, *inputs):
    """PyTorch's checkpoint around a block."""
    return checkpoint(block, *inputs, use_reentrant=False)


@contextlib.contextmanager
def traced_memory():
    """Count memory with Python's `tracemalloc` in the block. Left on after an error, it would slow everything else."""
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def plot_hills(hills):
    """Plot the memory in use during a step. `hills`: title -> (the sample at which backward begins, megabytes)."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"figure.facecolor": "white", "axes.grid": True, "grid.alpha": 0.3})
    _, axes = plt.subplots(1, len(hills), figsize=(10, 3.6), sharey=True, layout="constrained")
    for axis, (title, (turn, megabytes)) in zip(axes, hills.items(), strict=True):
        axis.plot(megabytes, "o-", markersize=3)
        axis.axvline(turn - 0.5, color="gray", linewidth=1)
        axis.set(title=title, xlabel="layers and rules that have run")
        print(f"{title:22s} peak {megabytes.max():.1f} MB, {len(megabytes)} samples")
    axes[0].set(ylabel="MB in use", ylim=0)
    plt.show()


def counting_product(Function, counts):
    """A matrix product as a Function of an engine. It counts its calls, and its multiplications in both passes."""

    class Product(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            counts["layers"] += 1
            counts["multiplications"] += a.shape[0] * b.size
            return a @ b

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            counts["multiplications"] += 2 * a.shape[0] * b.size  # one product for each factor
            return grad @ b.T, a.T @ grad

    return Product.apply
