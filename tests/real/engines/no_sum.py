"""Matrices without a sum; `backward` begins with ones of the output's shape."""

import numpy as np


class Matrix:
    def __init__(self, data, inputs=()):
        self.data = np.array(data, dtype=float)
        self.grad = np.zeros(self.data.shape)
        self.inputs = inputs
        self.rule = None

    @property
    def shape(self):
        return self.data.shape

    @property
    def T(self):  # noqa: N802
        out = Matrix(self.data.T, (self,))
        out.rule = lambda grad: (grad.T,)
        return out

    def __add__(self, other):
        assert self.shape == other.shape
        out = Matrix(self.data + other.data, (self, other))
        out.rule = lambda grad: (grad, grad)
        return out

    def __sub__(self, other):
        assert self.shape == other.shape
        out = Matrix(self.data - other.data, (self, other))
        out.rule = lambda grad: (grad, -grad)
        return out

    def __mul__(self, other):
        assert self.shape == other.shape
        out = Matrix(self.data * other.data, (self, other))
        out.rule = lambda grad: (grad * other.data, grad * self.data)
        return out

    def __matmul__(self, other):
        out = Matrix(self.data @ other.data, (self, other))
        out.rule = lambda grad: (grad @ other.data.T, self.data.T @ grad)
        return out

    def tanh(self):
        out = Matrix(np.tanh(self.data), (self,))
        out.rule = lambda grad: (grad * (1 - out.data**2),)
        return out

    def backward(self):
        order, seen, todo = [], set(), [(self, False)]
        while todo:
            node, done = todo.pop()
            if done:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                todo += [(node, True), *((source, False) for source in node.inputs)]
        arriving = {self: np.ones(self.shape)}
        for node in reversed(order):
            grad = arriving.pop(node)
            node.grad += grad
            for source, share in zip(node.inputs, node.rule(grad) if node.rule else (), strict=True):
                arriving[source] = arriving[source] + share if source in arriving else share
