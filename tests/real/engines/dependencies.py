"""Arrays; gradients are tensors; each tensor keeps its dependencies with a function of the gradient."""

import numpy as np


class Tensor:
    def __init__(self, data, requires_grad=False, depends_on=()):
        self.data = np.array(data, dtype=np.float64)
        self.requires_grad = requires_grad
        self.depends_on = depends_on
        self.grad = None
        self.shape = self.data.shape

    def zero_grad(self):
        self.grad = Tensor(np.zeros(self.shape))

    def backward(self, grad=None):
        if grad is None:
            grad = Tensor(np.ones(self.shape))
        arriving, order = {self: grad.data}, topological(self)
        for node in order:
            share = arriving.pop(node)
            if node.grad is None:
                node.zero_grad()
            node.grad.data = node.grad.data + share
            for source, rule in node.depends_on:
                arriving[source] = arriving.get(source, 0.0) + rule(share)

    def __add__(self, other):
        other = tensor(other)
        return made(self.data + other.data, (self, lambda g: fit(g, self)), (other, lambda g: fit(g, other)))

    def __sub__(self, other):
        other = tensor(other)
        return made(self.data - other.data, (self, lambda g: fit(g, self)), (other, lambda g: fit(-g, other)))

    def __mul__(self, other):
        other = tensor(other)
        return made(
            self.data * other.data,
            (self, lambda g: fit(g * other.data, self)),
            (other, lambda g: fit(g * self.data, other)),
        )

    def __matmul__(self, other):
        return made(self.data @ other.data, (self, lambda g: g @ other.data.T), (other, lambda g: self.data.T @ g))

    def sum(self):
        return made(self.data.sum(), (self, lambda g: g * np.ones(self.shape)))

    def mean(self):
        return made(self.data.mean(), (self, lambda g: g * np.ones(self.shape) / self.data.size))

    def sigmoid(self):
        s = 1 / (1 + np.exp(-self.data))
        return made(s, (self, lambda g: g * s * (1 - s)))


def made(data, *depends_on):
    kept = [pair for pair in depends_on if pair[0].requires_grad]
    return Tensor(data, bool(kept), kept)


def tensor(value):
    return value if isinstance(value, Tensor) else Tensor(value)


def fit(grad, source):
    for _ in range(grad.ndim - source.data.ndim):
        grad = grad.sum(axis=0)
    for axis, size in enumerate(source.shape):
        if size == 1:
            grad = grad.sum(axis=axis, keepdims=True)
    return grad


def topological(root):
    order, seen, todo = [], set(), [(root, False)]
    while todo:
        node, done = todo.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            todo.append((node, True))
            todo.extend((source, False) for source, _ in node.depends_on)
    return reversed(order)
