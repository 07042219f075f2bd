"""Vectors in plain lists, gradients too; no NumPy."""

import math


class Vector:
    def __init__(self, data, inputs=()):
        self.data = [float(x) for x in data]
        self.grad = [0.0] * len(self.data)
        self.inputs = inputs
        self.rule = None

    def __add__(self, other):
        out = Vector([a + b for a, b in zip(self.data, other.data, strict=True)], (self, other))
        out.rule = lambda grad: (grad, grad)
        return out

    def __sub__(self, other):
        out = Vector([a - b for a, b in zip(self.data, other.data, strict=True)], (self, other))
        out.rule = lambda grad: (grad, [-g for g in grad])
        return out

    def __mul__(self, other):
        if isinstance(other, int | float):
            other = Vector([other] * len(self.data))
        out = Vector([a * b for a, b in zip(self.data, other.data, strict=True)], (self, other))
        out.rule = lambda grad: (
            [g * b for g, b in zip(grad, other.data, strict=True)],
            [g * a for g, a in zip(grad, self.data, strict=True)],
        )
        return out

    def tanh(self):
        out = Vector([math.tanh(a) for a in self.data], (self,))
        out.rule = lambda grad: ([g * (1 - t * t) for g, t in zip(grad, out.data, strict=True)],)
        return out

    def exp(self):
        out = Vector([math.exp(a) for a in self.data], (self,))
        out.rule = lambda grad: ([g * e for g, e in zip(grad, out.data, strict=True)],)
        return out

    def backward(self, gradient=None):
        order, seen = [], set()

        def visit(node):
            if id(node) not in seen:
                seen.add(id(node))
                for source in node.inputs:
                    visit(source)
                order.append(node)

        visit(self)
        arriving = {id(self): [1.0] * len(self.data) if gradient is None else list(gradient)}
        for node in reversed(order):
            grad = arriving[id(node)]
            node.grad = [a + g for a, g in zip(node.grad, grad, strict=True)]
            if node.rule is None:
                continue
            for source, share in zip(node.inputs, node.rule(grad), strict=True):
                known = arriving.get(id(source), [0.0] * len(share))
                arriving[id(source)] = [a + s for a, s in zip(known, share, strict=True)]
