"""Tools for lesson 03: watch a backward pass, try many orders, ask PyTorch, and run a program in another process."""

from __future__ import annotations

import itertools
import subprocess
import sys

import torch

from mini_autograd.widgets.demo import logarithmic


def follow(backward, output, **names):
    """Run a backward pass. Print what each node pushes on, in order, and then the gradients of the leaves."""

    def watched(name, rule):
        def watched_rule(grad):
            shares = rule(grad)
            print(f"{name} has {grad:g} and pushes on", *(f"{share + 0:g}" for share in shares))
            return shares

        return watched_rule

    for name, node in names.items():
        if node.rule is not None:
            node.rule = watched(name, node.rule)
    backward(output)
    print({name: node.grad for name, node in names.items() if node.rule is None})


def try_all_orders(nodes, backward_in, is_topological):
    """Run a backward pass in every order of some nodes, the first of which is the only leaf. Count the orders that give
    the same gradient as the given order reversed.
    """
    leaf = nodes[0]

    def gradient_in(order):
        for node in nodes:
            node.grad = 0.0
        backward_in(order)
        return leaf.grad

    right = gradient_in(nodes[::-1])
    counts = {(valid, fits): 0 for valid in (True, False) for fits in (True, False)}
    results = set()
    for order in itertools.permutations(nodes):
        found, valid = gradient_in(order), is_topological(list(order))
        counts[valid, abs(found - right) < 1e-9] += 1
        if valid:
            results.add(found)
    print("topological, right gradients:    ", counts[True, True])
    print("topological, wrong gradients:    ", counts[True, False])
    print("not topological, right gradients:", counts[False, True])
    print("not topological, wrong gradients:", counts[False, False])
    print("gradients from topological orders:", sorted(results))


def torch_order(expression, **numbers):
    """The names of PyTorch's nodes in the order in which they run in a backward pass."""
    leaves = [torch.tensor(number, requires_grad=True) for number in numbers.values()]
    output = expression(*leaves)
    ran, waiting, seen = [], [output.grad_fn], set()
    for node in waiting:
        if node is not None and node not in seen:
            seen.add(node)
            name = node.name().split("::")[-1]
            node.register_prehook(lambda grads, name=name: ran.append(name))
            waiting.extend(source for source, _ in node.next_functions)
    output.backward()
    return ran


def torch_recurrent(w, sequence):
    """The last state of the lesson's recurrent network, computed with PyTorch."""
    h = torch.tensor(0.0, dtype=torch.float64)
    for x in sequence:
        h = torch.tanh(w * h + x)
    return h


def plot_contributions(shares):
    """Plot the size of what each step contributes. `shares`: name -> one number per step, from the second step on."""
    import matplotlib.pyplot as plt

    _, axis = plt.subplots(layout="constrained")
    for (name, found), marker in zip(shares.items(), "os", strict=True):
        steps = range(2, len(found) + 2)
        axis.plot(steps, [abs(share) for share in found], marker + "-", markersize=5, label=name)
    axis.set(xlabel="step at which the weight is used", ylabel="size of its contribution")
    logarithmic(axis)
    axis.set_xticks(range(1, len(found) + 2))
    axis.legend()
    plt.show()


def in_another_process(program):
    """Run a program in a new Python process, and say in a few words how it ended."""
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = (child.stderr.strip().splitlines() or ["no message"])[-1]
    return "fine" if child.returncode == 0 else f"died (status {child.returncode}, {last})"
