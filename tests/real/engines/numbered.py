"""Numbers; a global graph of numbered nodes, walked from the highest number down; gradients in `.derivative`."""

import math

GRAPH = {}


class Scalar:
    def __init__(self, data):
        self.data, self.derivative = data, 0.0
        self.number = len(GRAPH)
        GRAPH[self.number] = (self, (), None)

    def made(self, value, inputs, rule):
        out = Scalar(value)
        GRAPH[out.number] = (out, inputs, rule)
        return out

    def __add__(self, other):
        other = scalar(other)
        return self.made(self.data + other.data, (self, other), lambda d: (d, d))

    def __sub__(self, other):
        other = scalar(other)
        return self.made(self.data - other.data, (self, other), lambda d: (d, -d))

    def __mul__(self, other):
        other = scalar(other)
        return self.made(self.data * other.data, (self, other), lambda d: (d * other.data, d * self.data))

    def __truediv__(self, other):
        other = scalar(other)
        a, b = self.data, other.data
        return self.made(a / b, (self, other), lambda d: (d / b, -d * a / b**2))

    def __rtruediv__(self, other):
        return scalar(other) / self

    def __rsub__(self, other):
        return scalar(other) - self

    def log(self):
        return self.made(math.log(self.data), (self,), lambda d: (d / self.data,))

    def sigmoid(self):
        s = 1 / (1 + math.exp(-self.data))
        return self.made(s, (self,), lambda d: (d * s * (1 - s),))

    def backward(self, d_output=1.0):
        arriving = {self.number: d_output}
        for number in range(self.number, -1, -1):
            d = arriving.pop(number, None)
            if d is None:
                continue
            node, inputs, rule = GRAPH[number]
            node.derivative += d
            for source, share in zip(inputs, rule(d) if rule else (), strict=True):
                arriving[source.number] = arriving.get(source.number, 0.0) + share


def scalar(value):
    return value if isinstance(value, Scalar) else Scalar(value)
