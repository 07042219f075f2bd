"""Numbers; a global tape of backward steps, played from its end."""

import math

TAPE = []


class Var:
    def __init__(self, data):
        self.data, self.grad = float(data), 0.0

    def __add__(self, other):
        other = lift(other)
        out = Var(self.data + other.data)

        def step():
            self.grad += out.grad
            other.grad += out.grad

        TAPE.append(step)
        return out

    def __sub__(self, other):
        other = lift(other)
        out = Var(self.data - other.data)

        def step():
            self.grad += out.grad
            other.grad -= out.grad

        TAPE.append(step)
        return out

    def __mul__(self, other):
        other = lift(other)
        out = Var(self.data * other.data)

        def step():
            self.grad += out.grad * other.data
            other.grad += out.grad * self.data

        TAPE.append(step)
        return out

    def __truediv__(self, other):
        other = lift(other)
        out = Var(self.data / other.data)

        def step():
            self.grad += out.grad / other.data
            other.grad -= out.grad * self.data / other.data**2

        TAPE.append(step)
        return out

    def exp(self):
        out = Var(math.exp(self.data))

        def step():
            self.grad += out.grad * out.data

        TAPE.append(step)
        return out

    def relu(self):
        out = Var(max(self.data, 0.0))

        def step():
            self.grad += out.grad * (self.data > 0)

        TAPE.append(step)
        return out

    def backward(self):
        self.grad = 1.0
        for step in reversed(TAPE):
            step()
        TAPE.clear()


def lift(value):
    return value if isinstance(value, Var) else Var(value)
