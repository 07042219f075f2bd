"""Numbers in `.value`, gradients in `.gradient`; `backward` has an option; edges are (input, local derivative)."""

import math


class Node:
    def __init__(self, value, edges=()):
        self.value, self.gradient, self.edges = value, 0.0, edges

    def __add__(self, other):
        other = node(other)
        return Node(self.value + other.value, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other):
        other = node(other)
        return Node(self.value * other.value, [(self, other.value), (other, self.value)])

    def __sub__(self, other):
        other = node(other)
        return Node(self.value - other.value, [(self, 1.0), (other, -1.0)])

    def __rsub__(self, other):
        return node(other) - self

    def __neg__(self):
        return Node(-self.value, [(self, -1.0)])

    def sin(self):
        return Node(math.sin(self.value), [(self, math.cos(self.value))])

    def cos(self):
        return Node(math.cos(self.value), [(self, -math.sin(self.value))])

    def exp(self):
        e = math.exp(self.value)
        return Node(e, [(self, e)])

    def backward(self, retain_graph=False):
        order, seen, todo = [], set(), [(self, False)]
        while todo:
            current, done = todo.pop()
            if done:
                order.append(current)
            elif current not in seen:
                seen.add(current)
                todo.append((current, True))
                todo += [(source, False) for source, _ in current.edges]
        arriving = {self: 1.0}
        for current in reversed(order):
            grad = arriving.get(current, 0.0)
            current.gradient += grad
            for source, local in current.edges:
                arriving[source] = arriving.get(source, 0.0) + grad * local
            if not retain_graph:
                current.edges = ()


def node(value):
    return value if isinstance(value, Node) else Node(value)
