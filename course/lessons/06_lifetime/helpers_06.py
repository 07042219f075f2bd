"""Counting and plotting for lesson 06: how many nodes are alive, and how many bytes of saved arrays.

A weak reference can watch an object without keeping it alive. `Census` uses them on a MiniTensor. For PyTorch,
`growth_of_torch` uses a pair of hooks, which are called for every tensor that a node saves.
"""

from __future__ import annotations

import weakref

import numpy as np


class Census:
    """Counts the nodes that are alive and the bytes of their saved arrays, and takes a sample after each operation.

    `Function` is the base class of the operations of the watched engine. `known` are tensors that stay alive anyway:
    weights and data. Their arrays are not counted. A census keeps no node alive, and it restores the engine when the
    `with` block ends.
    """

    def __init__(self, Function, *known):
        self.Function = Function
        self.known = {id(tensor.data) for tensor in known}
        self.nodes, self.arrays, self.samples = weakref.WeakSet(), {}, []

    @property
    def kilobytes(self):
        """The kilobytes of the saved arrays that are alive now."""
        return sum(self.arrays.values()) / 1e3

    def __enter__(self):
        self.apply = self.Function.__dict__["apply"]
        self.Function.apply = classmethod(self.watched_apply)
        return self

    def __exit__(self, *error):
        self.Function.apply = self.apply

    def watched_apply(self, cls, *inputs, **options):
        """Stands in for `Function.apply`: notes the new node and what it saves."""
        output = self.apply.__func__(cls, *inputs, **options)
        if output.grad_fn is not None:
            self.nodes.add(output.grad_fn)
            output.grad_fn.backward = self.watched_rule
            for array in output.grad_fn.saved or ():
                if isinstance(array, np.ndarray) and id(array) not in self.known | self.arrays.keys():
                    self.arrays[id(array)] = array.nbytes
                    weakref.finalize(array, self.arrays.pop, id(array), None)
        self.sample("forward")
        return output

    def watched_rule(self, node, grad):
        """Stands in for a node's `backward`."""
        shares = type(node).backward(node, grad)
        self.sample("backward")
        return shares

    def sample(self, phase):
        """Note the nodes and kilobytes that are alive now."""
        self.samples.append((phase, len(self.nodes), self.kilobytes))


def pyplot():
    """Matplotlib's pyplot in the style of this lesson; only what draws needs it."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"figure.figsize": (7, 4), "figure.facecolor": "white", "font.size": 11})
    plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.3})
    return plt


def plot_steps(samples):
    """Plot what is alive after each operation of a training step. `samples`: name -> the samples of a census."""
    plt = pyplot()
    _, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 5.2), layout="constrained")
    for (name, found), mark in zip(samples.items(), ("o-", "s--"), strict=True):
        axes[0].plot([kilobytes / 1e3 for _, _, kilobytes in found], mark, markersize=3, label=name)
        axes[1].plot([nodes for _, nodes, _ in found], mark, markersize=3)
        _, nodes, kilobytes = found[-1]
        print(f"{name}: peak {max(sample[2] for sample in found) / 1e3:.1f} MB", end="; ")
        print(f"after `del loss` {nodes} nodes and {kilobytes / 1e3:.1f} MB")
    for axis in axes:
        axis.axvline([phase for phase, _, _ in found].index("backward") - 0.5, color="gray", linewidth=1)
    axes[0].set(ylabel="MB saved and alive", title="one training step of eight layers")
    axes[1].set(ylabel="nodes alive", xlabel="operations: forward, backward, and at the end `del loss`")
    axes[0].legend()
    plt.show()


def rules_called(losses, way):
    """Run `way(losses)`, which runs backward from two losses. Count the calls of rules, in total and in the part that
    the two graphs share.
    """
    calls = []
    first, second = (nodes_behind(loss.grad_fn) for loss in losses)

    def counted(node, grad):
        calls.append(node in first & second)
        return type(node).backward(node, grad)

    for node in first | second:
        if node.next_functions:  # AccumulateGrad has no rule
            node.backward = counted
    way(losses)
    return f"rules called {len(calls)}, in the shared part {sum(calls)}"


def nodes_behind(node):
    """The nodes that can be reached from a node, including the node itself."""
    found, waiting = {node}, [node]
    while waiting:
        new = {source for source, _ in waiting.pop().next_functions if source is not None} - found
        found |= new
        waiting += new
    return found


class World:
    """A small network and a recurrent cell. `tensor` makes their tensors: MiniTensor or torch.tensor."""

    def __init__(self, tensor):
        rng = np.random.default_rng(3)
        self.weights = [tensor(rng.normal(size=(64, 64)) / 8, requires_grad=True) for _ in range(3)]
        self.x = tensor(rng.normal(size=(128, 64)))

    def loss(self):
        """The loss of the network: two layers."""
        h = self.x
        for w in self.weights[:2]:
            h = (h @ w).tanh()
        return (h * h).mean()

    def next_state(self, state):
        """One step of the recurrent cell."""
        return (state @ self.weights[2]).tanh()


def growth_of_mine(loop, MiniTensor, Function, iterations=20):
    """Run the body of a loop on MiniTensors. Returns the nodes and kilobytes that are alive after each iteration."""
    world, keep, nodes, kilobytes = World(MiniTensor), {}, [], []
    with Census(Function, world.x, *world.weights) as census:
        for _ in range(iterations):
            loop(world, keep)
            nodes.append(len(census.nodes))
            kilobytes.append(census.kilobytes)
    return nodes, kilobytes


def growth_of_torch(loop, iterations=20):
    """Run the body of a loop in PyTorch. Returns the kilobytes of saved tensors that are alive after each iteration."""
    import torch

    world, keep, alive, kilobytes = World(torch.tensor), {}, {}, []
    known = {tensor.data_ptr() for tensor in (world.x, *world.weights)}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in alive and storage.data_ptr() not in known:
            alive[storage._cdata] = storage.nbytes()
            weakref.finalize(storage, alive.pop, storage._cdata, None)
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for _ in range(iterations):
            loop(world, keep)
            kilobytes.append(sum(alive.values()) / 1e3)
    return kilobytes


def show_growth(loops, MiniTensor, Function):
    """Run each loop for 20 iterations in both engines, and print and plot what is alive after them."""
    plt = pyplot()
    _, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    print("after 1, 10 and 20 iterations:")
    print(f"{'':18s} {'nodes alive':>24s} {'kB saved and alive':>24s} {'the same in PyTorch':>24s}")
    for loop, width in zip(loops, (10, 7.5, 5, 3, 1.5), strict=False):
        nodes, kilobytes = growth_of_mine(loop, MiniTensor, Function)
        name = loop.__doc__[:1]
        axes[0].plot(range(1, 21), kilobytes, linewidth=width, label=name)
        axes[1].plot(range(1, 21), nodes, linewidth=width, label=name)
        found = nodes, kilobytes, growth_of_torch(loop)
        columns = ("".join(f"{values[i]:8.0f}" for i in (0, 9, 19)) for values in found)
        print(f"{name} {loop.__name__:16s}", *columns)
    axes[0].set(xlabel="iteration", ylabel="kB saved and alive")
    axes[1].set(xlabel="iteration", ylabel="nodes alive")
    axes[0].legend()
    plt.show()
