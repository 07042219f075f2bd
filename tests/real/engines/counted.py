"""Numbers; local derivatives are stored at once; recursion into an input once all its uses have reported."""

import math


class Scalar:
    def __init__(self, data, parents=(), locals_=()):
        self.data, self.grad = data, 0.0
        self.parents, self.locals = parents, locals_
        self.uses = 0

    def __add__(self, other):
        other = number(other)
        return Scalar(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = number(other)
        return Scalar(self.data * other.data, (self, other), (other.data, self.data))

    def __sub__(self, other):
        other = number(other)
        return Scalar(self.data - other.data, (self, other), (1.0, -1.0))

    def __truediv__(self, other):
        other = number(other)
        return Scalar(self.data / other.data, (self, other), (1 / other.data, -self.data / other.data**2))

    def sigmoid(self):
        s = 1 / (1 + math.exp(-self.data))
        return Scalar(s, (self,), (s * (1 - s),))

    def log(self):
        return Scalar(math.log(self.data), (self,), (1 / self.data,))

    def count(self):
        for parent in self.parents:
            parent.uses += 1
            if parent.uses == 1:
                parent.count()

    def backward(self):
        self.count()
        self.push(1.0)

    def push(self, grad):
        self.grad += grad
        self.arrived = getattr(self, "arrived", 0.0) + grad
        self.uses -= 1
        if self.uses > 0:
            return
        self.uses, total, self.arrived = 0, self.arrived, 0.0
        for parent, local in zip(self.parents, self.locals, strict=True):
            parent.push(total * local)


def number(value):
    return value if isinstance(value, Scalar) else Scalar(value)
