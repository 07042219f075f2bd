"""Arrays in float32; `requires_grad`; broadcasting is undone in one helper."""

import numpy as np


def unbroadcast(grad, shape):
    while grad.ndim > len(shape):
        grad = grad.sum(axis=0)
    for axis, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(axis=axis, keepdims=True)
    return grad


class Tensor:
    def __init__(self, data, requires_grad=False, parents=()):
        self.data = np.asarray(data, dtype=np.float32)
        self.requires_grad = requires_grad or any(parent.requires_grad for parent in parents)
        self.grad = np.zeros_like(self.data) if self.requires_grad else None
        self.parents = parents
        self.rule = None

    @property
    def shape(self):
        return self.data.shape

    def add_grad(self, grad):
        if self.requires_grad:
            self.grad = self.grad + unbroadcast(grad, self.shape).astype(np.float32)

    def __add__(self, other):
        other = wrap(other)
        out = Tensor(self.data + other.data, parents=(self, other))

        def rule(grad):
            self.add_grad(grad)
            other.add_grad(grad)

        out.rule = rule
        return out

    def __mul__(self, other):
        other = wrap(other)
        out = Tensor(self.data * other.data, parents=(self, other))

        def rule(grad):
            self.add_grad(grad * other.data)
            other.add_grad(grad * self.data)

        out.rule = rule
        return out

    def __truediv__(self, other):
        other = wrap(other)
        out = Tensor(self.data / other.data, parents=(self, other))

        def rule(grad):
            self.add_grad(grad / other.data)
            other.add_grad(-grad * self.data / other.data**2)

        out.rule = rule
        return out

    def relu(self):
        out = Tensor(np.maximum(self.data, 0), parents=(self,))
        out.rule = lambda grad: self.add_grad(grad * (self.data > 0))
        return out

    def sqrt(self):
        out = Tensor(np.sqrt(self.data), parents=(self,))
        out.rule = lambda grad: self.add_grad(grad * 0.5 / out.data)
        return out

    def sum(self):
        out = Tensor(self.data.sum(), parents=(self,))
        out.rule = lambda grad: self.add_grad(np.broadcast_to(grad, self.shape))
        return out

    def backward(self, grad=None):
        order, seen, todo = [], set(), [(self, False)]
        while todo:
            node, done = todo.pop()
            if done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                todo.append((node, True))
                todo.extend((parent, False) for parent in node.parents)
        self.grad = np.ones_like(self.data) if grad is None else np.asarray(grad, dtype=np.float32)
        for node in reversed(order):
            if node.rule is not None:
                node.rule(node.grad)


def wrap(value):
    return value if isinstance(value, Tensor) else Tensor(value)
