"""Engines as students write them, in styles that differ from the reference, right or with one mistake planted.

`mistake` is a pair (name of the bug, operation or form).
"""

import math
import random

import numpy as np


def closures(mistake=("", "")):
    """One class, a closure per operation that adds to `.grad`, recursion for the order; each operation has its rule."""
    bug, where = mistake

    def wrong(name, operation):
        return bug == name and where in (operation, "all")

    class MiniTensor:
        def __init__(self, data, _inputs=(), _op=""):
            self.data = float(data)
            self.grad = 0.0
            self._prev = _inputs
            self._op = _op
            self._backward = lambda: None

        def _give(self, operation, share, upstream):
            if wrong("upstream_ignored", operation):
                upstream = 1.0
            if wrong("assigned_not_accumulated", operation):
                self.grad = share * upstream
            else:
                self.grad += share * upstream

        def _binary(self, other, operation, value, d_self, d_other):
            other = other if isinstance(other, MiniTensor) else type(self)(other)
            out = type(self)(value(self.data, other.data), (self, other), operation)

            def backward():
                first, second = d_self(self.data, other.data), d_other(self.data, other.data)
                if wrong("operands_swapped", operation):
                    first, second = second, first
                if wrong("sign_lost", operation):
                    second = -second
                self._give(operation, first, out.grad)
                other._give(operation, second, out.grad)

            out._backward = backward
            return out

        def _unary(self, operation, value, derivative):
            out = type(self)(value(self.data), (self,), operation)
            out._backward = lambda: self._give(operation, derivative(self.data, out.data), out.grad)
            return out

        def __add__(self, other):
            return self._binary(other, "+", lambda a, b: a + b, lambda a, b: 1.0, lambda a, b: 1.0)

        def __sub__(self, other):
            return self._binary(other, "-", lambda a, b: a - b, lambda a, b: 1.0, lambda a, b: -1.0)

        def __mul__(self, other):
            return self._binary(other, "*", lambda a, b: a * b, lambda a, b: b, lambda a, b: a)

        def __truediv__(self, other):
            return self._binary(other, "/", lambda a, b: a / b, lambda a, b: 1 / b, lambda a, b: -a / (b * b))

        def __neg__(self):
            sign = 1.0 if wrong("sign_lost", "neg") else -1.0
            return self._unary("neg", lambda a: -a, lambda a, out: sign)

        def __pow__(self, n):
            def derivative(a, out):
                if wrong("exponent_not_lowered", "**"):
                    return n * a**n
                return a * n ** (a - 1) if wrong("operands_swapped", "**") else n * a ** (n - 1)

            return self._unary("**", lambda a: a**n, derivative)

        def tanh(self):
            use_input = wrong("input_used_for_output", "tanh")
            return self._unary("tanh", math.tanh, lambda a, out: 1 - (a if use_input else out) ** 2)

        def exp(self):
            use_input = wrong("input_used_for_output", "exp")
            return self._unary("exp", math.exp, lambda a, out: a if use_input else out)

        def relu(self):
            return self._unary("relu", lambda a: max(a, 0.0), lambda a, out: 1.0 if a > 0 else 0.0)

        __radd__, __rmul__ = __add__, __mul__

        def __rsub__(self, other):
            return type(self)(other) - self

        def __rtruediv__(self, other):
            return type(self)(other) / self

        def backward(self, gradient=1.0):
            self.grad = gradient
            if where in wrong_orders:
                wrong_orders[where](self)
                return
            order, seen = [], set()

            def visit(node):
                if node not in seen:
                    seen.add(node)
                    for source in node._prev:
                        visit(source)
                    order.append(node)

            visit(self)
            for node in reversed(order):
                node._backward()

    def depth_first(root):
        seen = set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                node._backward()
                for source in node._prev:
                    visit(source)

        visit(root)

    def breadth_first(root):
        queue, seen = [root], {root}
        while queue:
            node = queue.pop(0)
            node._backward()
            for source in node._prev:
                if source not in seen:
                    seen.add(source)
                    queue.append(source)

    def every_path(node):
        node._backward()
        for source in dict.fromkeys(node._prev):
            every_path(source)

    def not_reversed(root):
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                for source in node._prev:
                    visit(source)
                order.append(node)

        visit(root)
        for node in order:
            node._backward()

    wrong_orders = {
        "depth first": depth_first,
        "breadth first": breadth_first,
        "every path": every_path,
        "not reversed": not_reversed,
    }
    return MiniTensor


def function_classes(mistake=("", "")):
    """Function classes that return shares, gradients in a dict, counted uses for the order; - and / from others."""
    bug, where = mistake

    class Function:
        operation = ""

        def __init__(self, *inputs):
            self.inputs = inputs
            self.numbers = [source.data for source in inputs]

        @classmethod
        def apply(cls, *inputs, **options):
            function = cls(*inputs)
            function.options = options
            out = MiniTensor(function.forward(*function.numbers, **options))
            function.output = out.data
            out.function = function
            return out

        def shares(self, grad):
            if bug == "upstream_ignored" and where in (self.operation, "all"):
                grad = 1.0
            shares = self.backward(grad)
            return shares if isinstance(shares, tuple) else (shares,)

    class Add(Function):
        operation = "+"

        def forward(self, a, b):
            return b + a

        def backward(self, grad):
            return grad, grad

    class Multiply(Function):
        operation = "*"

        def forward(self, a, b):
            return b * a

        def backward(self, grad):
            a, b = self.numbers
            return (a * grad, b * grad) if bug == "operands_swapped" and where in ("*", "all") else (b * grad, a * grad)

    class Power(Function):
        operation = "**"

        def forward(self, a, n):
            return math.pow(a, n)

        def backward(self, grad):
            (a,), n = self.numbers, self.options["n"]
            if bug == "operands_swapped" and where in ("**", "all"):
                return a * math.pow(n, a - 1) * grad
            return math.pow(a, n if bug == "exponent_not_lowered" else n - 1) * grad * n

    class Negate(Function):
        operation = "neg"

        def forward(self, a):
            return 0.0 - a

        def backward(self, grad):
            return grad if bug == "sign_lost" else -grad

    class Tanh(Function):
        operation = "tanh"

        def forward(self, a):
            return 1 - 2 / (math.exp(2 * a) + 1)

        def backward(self, grad):
            (a,) = self.numbers
            return grad * (1 - a * a) if bug == "input_used_for_output" else grad / math.cosh(a) ** 2

    class Exp(Function):
        operation = "exp"

        def forward(self, a):
            return math.e**a

        def backward(self, grad):
            (a,) = self.numbers
            return grad * (a if bug == "input_used_for_output" else math.exp(a))

    class Relu(Function):
        operation = "relu"

        def forward(self, a):
            return (a + abs(a)) / 2

        def backward(self, grad):
            return grad if self.numbers[0] > 0 else None

    class MiniTensor:
        def __init__(self, data):
            self.data, self.grad, self.function = data, 0.0, None

        def __add__(self, other):
            return Add.apply(self, wrapped(other))

        def __mul__(self, other):
            return Multiply.apply(self, wrapped(other))

        def __neg__(self):
            return Negate.apply(self)

        def __pow__(self, n):
            return Power.apply(self, n=n)

        def __sub__(self, other):
            return self + (-wrapped(other))

        def __truediv__(self, other):
            return self * wrapped(other) ** -1

        def __rsub__(self, other):
            return -self + other

        def __rtruediv__(self, other):
            return self**-1 * other

        __radd__, __rmul__ = __add__, __mul__

        def tanh(self):
            return Tanh.apply(self)

        def exp(self):
            return Exp.apply(self)

        def relu(self):
            return Relu.apply(self)

        def backward(self, gradient=1.0):
            waiting = {self: gradient}
            uses = count_uses(self)
            ready = [self]
            while ready:
                node = ready.pop(random.randrange(len(ready)))
                grad = waiting.pop(node, 0.0)
                if node.function is None:
                    node.grad = grad if bug == "assigned_not_accumulated" else node.grad + grad
                    continue
                for source, share in zip(node.function.inputs, node.function.shares(grad), strict=True):
                    if bug == "assigned_not_accumulated":
                        waiting[source] = share
                    else:
                        waiting[source] = waiting.get(source, 0.0) + (share or 0.0)
                    uses[source] -= 1
                    if uses[source] == 0 or (bug == "no_topological_order" and source not in ready):
                        ready.append(source)

    def wrapped(value):
        return value if isinstance(value, MiniTensor) else MiniTensor(value)

    def count_uses(root):
        uses, stack, seen = {}, [root], set()
        while stack:
            node = stack.pop()
            if node in seen or node.function is None:
                continue
            seen.add(node)
            for source in node.function.inputs:
                uses[source] = uses.get(source, 0) + 1
                stack.append(source)
        return uses

    return MiniTensor


def pending_dict(mistake=("", "")):
    """Rules as functions stored on the tensor, gradients waiting in a dict, `.grad` only written once per call."""
    bug, _ = mistake

    def visit(node, order, seen):
        if node in seen:
            return
        seen.add(node)
        if bug == "no_topological_order":
            order.append(node)
        for source in node.inputs:
            visit(source, order, seen)
        if bug != "no_topological_order":
            order.append(node)

    class MiniTensor(closures()):
        def _binary(self, other, operation, value, d_self, d_other):
            other = other if isinstance(other, MiniTensor) else MiniTensor(other)
            out = MiniTensor(value(self.data, other.data))
            out.inputs = (self, other)
            out.rule = lambda g: (g * d_self(self.data, other.data), g * d_other(self.data, other.data))
            return out

        def _unary(self, operation, value, derivative):
            out = MiniTensor(value(self.data))
            out.inputs = (self,)
            out.rule = lambda g: (g * derivative(self.data, out.data),)
            return out

        inputs, rule = (), None

        def backward(self, gradient=1.0):
            order = []
            visit(self, order, set())
            pending = {self: gradient}
            for node in order if bug == "no_topological_order" else order[::-1]:
                grad = pending.pop(node)
                node.grad = grad if bug == "leaf_overwritten" else node.grad + grad
                for source, share in zip(node.inputs, node.rule(grad) if node.rule else (), strict=True):
                    known = 0.0 if bug == "assigned_not_accumulated" else pending.get(source, 0.0)
                    pending[source] = known + share

    return MiniTensor


def arrays(mistake=("", "")):
    """An engine of NumPy arrays: broadcasting, sum, matmul, transpose; `.grad` is None until something arrives."""
    bug, where = mistake

    def summed_to(grad, shape):
        if bug == "broadcast_not_summed":
            return grad
        while grad.ndim > len(shape):
            grad = grad.sum(0)
        for axis, size in enumerate(shape):
            if size == 1 and grad.shape[axis] > 1:
                grad = grad.sum(axis, keepdims=True)
        return grad

    class MiniTensor:
        def __init__(self, data, inputs=(), rule=None):
            self.data = np.asarray(data, dtype=np.float64)
            self.grad = None
            self.inputs = inputs
            self.rule = rule

        def __add__(self, other):
            other = wrapped(other)
            return MiniTensor(self.data + other.data, (self, other), lambda g: (g, g))

        def __sub__(self, other):
            other = wrapped(other)
            sign = 1 if bug == "sign_lost" else -1
            return MiniTensor(self.data - other.data, (self, other), lambda g: (g, sign * g))

        def __mul__(self, other):
            other = wrapped(other)
            first, second = other.data, self.data
            if bug == "operands_swapped" and where == "*":
                first, second = second, first

            def rule(g):
                g = np.ones_like(g) if bug == "upstream_ignored" and where == "*" else g
                return g * first, g * second

            return MiniTensor(self.data * other.data, (self, other), rule)

        def __matmul__(self, other):
            a, b = self.data, other.data

            def rule(g):
                g = np.ones_like(g) if bug == "upstream_ignored" and where == "@" else g
                return (b.T @ g, g @ a.T) if bug == "matmul_factors_exchanged" and where == "@" else (g @ b.T, a.T @ g)

            return MiniTensor(a @ b, (self, other), rule)

        def __pow__(self, n):
            low = n if bug == "exponent_not_lowered" else n - 1
            return MiniTensor(self.data**n, (self,), lambda g: (g * n * self.data**low,))

        def tanh(self):
            out = np.tanh(self.data)
            inner = self.data if bug == "input_used_for_output" else out
            return MiniTensor(out, (self,), lambda g: (g - g * inner**2,))

        def relu(self):
            return MiniTensor(np.maximum(self.data, 0), (self,), lambda g: (np.where(self.data > 0, g, 0.0),))

        def sum(self):
            return MiniTensor(self.data.sum(), (self,), lambda g: (np.full(self.data.shape, g),))

        @property
        def T(self):  # noqa: N802
            return MiniTensor(self.data.T, (self,), lambda g: (g.T,))

        def backward(self, gradient=None):
            order, seen = [], set()

            def visit(node):
                if id(node) not in seen:
                    seen.add(id(node))
                    for source in node.inputs:
                        visit(source)
                    order.append(node)

            visit(self)
            grads = {id(self): np.ones(()) if gradient is None else gradient}
            for node in reversed(order):
                grad = grads.get(id(node))
                if node.rule is None:
                    add = node.grad is not None and bug != "assigned_not_accumulated"
                    node.grad = grad + node.grad if add else grad
                    continue
                for source, share in zip(node.inputs, node.rule(grad), strict=True):
                    share = summed_to(share, source.data.shape)
                    known = None if bug == "assigned_not_accumulated" else grads.get(id(source))
                    grads[id(source)] = share if known is None else known + share

    def wrapped(value):
        return value if isinstance(value, MiniTensor) else MiniTensor(value)

    return MiniTensor
