"""Arrays; every tensor has a buffer for its gradient, into which rules add in place."""

import numpy as np


class Array:
    def __init__(self, data, inputs=()):
        self.data = np.array(data, dtype=np.float64)
        self.grad = np.zeros_like(self.data)
        self.inputs = inputs
        self.rule = lambda: None

    @property
    def shape(self):
        return self.data.shape

    def __add__(self, other):
        other = array(other)
        out = Array(self.data + other.data, (self, other))

        def rule():
            self.grad += reduced(out.grad, self.shape)
            other.grad += reduced(out.grad, other.shape)

        out.rule = rule
        return out

    def __mul__(self, other):
        other = array(other)
        out = Array(self.data * other.data, (self, other))

        def rule():
            self.grad += reduced(out.grad * other.data, self.shape)
            other.grad += reduced(out.grad * self.data, other.shape)

        out.rule = rule
        return out

    def __neg__(self):
        out = Array(-self.data, (self,))

        def rule():
            self.grad -= out.grad

        out.rule = rule
        return out

    def relu(self):
        out = Array(np.maximum(self.data, 0.0), (self,))

        def rule():
            self.grad += out.grad * (self.data > 0)

        out.rule = rule
        return out

    def __getitem__(self, index):
        out = Array(self.data[index], (self,))

        def rule():
            self.grad[index] += out.grad

        out.rule = rule
        return out

    def sum(self):
        out = Array(self.data.sum(), (self,))

        def rule():
            self.grad += out.grad

        out.rule = rule
        return out

    def backward(self, grad=None):
        order, seen = [], set()

        def visit(node):
            if node in seen:
                return
            seen.add(node)
            for source in node.inputs:
                visit(source)
            order.append(node)

        visit(self)
        self.grad += 1.0 if grad is None else grad
        for node in reversed(order):
            node.rule()


def array(value):
    return value if isinstance(value, Array) else Array(value)


def reduced(grad, shape):
    lead = grad.ndim - len(shape)
    grad = grad.sum(axis=tuple(range(lead)))
    return grad.sum(axis=tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)
