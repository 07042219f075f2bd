"""Right answers in many styles: engines of numbers, engines of arrays, functions and gradients by hand.

Every one is right, and each differs from the reference in what it keeps, in which order it works, or in the formulas
that it uses. A check that complains about any of them is wrong.
"""

import cmath
import heapq
import itertools
import math

import numpy as np

from tests.autograder import student_engines as students

# Formulas for numbers: operation -> (value, derivatives), as functions of the inputs and the output.

PLAIN = {
    "+": (lambda a, b: a + b, lambda a, b, out: (1.0, 1.0)),
    "-": (lambda a, b: a - b, lambda a, b, out: (1.0, -1.0)),
    "*": (lambda a, b: a * b, lambda a, b, out: (b, a)),
    "/": (lambda a, b: a / b, lambda a, b, out: (1 / b, -a / b**2)),
    "**": (lambda a, n: a**n, lambda a, n, out: (n * a ** (n - 1),)),
    "neg": (lambda a: -a, lambda a, out: (-1.0,)),
    "exp": (math.exp, lambda a, out: (out,)),
    "tanh": (math.tanh, lambda a, out: (1 - out**2,)),
    "relu": (lambda a: a if a > 0 else 0.0, lambda a, out: (float(a > 0),)),
}
WITH_OUTPUTS = PLAIN | {
    "/": (lambda a, b: a * (1 / b), lambda a, b, out: (1 / b, -out / b)),
    "**": (lambda a, n: a**n, lambda a, n, out: (n * out / a,)),
    "tanh": (math.tanh, lambda a, out: ((1 - out) * (1 + out),)),
    "relu": (lambda a: max(0.0, a), lambda a, out: (1.0 if out > 0 else 0.0,)),
}
WITH_EXPONENTIALS = PLAIN | {
    "exp": (lambda a: math.e**a, lambda a, out: (math.exp(a),)),
    "tanh": (
        lambda a: (math.exp(a) - math.exp(-a)) / (math.exp(a) + math.exp(-a)),
        lambda a, out: (4 / (math.exp(a) + math.exp(-a)) ** 2,),
    ),
    "relu": (lambda a: (a + abs(a)) / 2, lambda a, out: ((1 + math.copysign(1, a)) / 2,)),
}
WITH_LOGISTIC = PLAIN | {
    "tanh": (lambda a: 2 / (1 + math.exp(-2 * a)) - 1, lambda a, out: (1 / math.cosh(a) ** 2,)),
    "/": (lambda a, b: a / b, lambda a, b, out: (b / (b * b), -(a / b) / b)),
    "relu": (lambda a: a * (a > 0), lambda a, out: (int(a > 0),)),
}


def complex_steps(operation):
    """Derivatives without a formula and without cancellation: the imaginary part of a tiny complex step."""
    functions = {"tanh": cmath.tanh, "exp": cmath.exp, "relu": lambda z: z if z.real > 0 else 0j}
    value = PLAIN[operation][0]
    function = functions.get(operation, value)

    def derivatives(*numbers):
        *inputs, _ = numbers
        constant = inputs[1:] if operation == "**" else []
        moving = inputs[: len(inputs) - len(constant)]
        steps = [[x + 1e-30j * (i == j) for j, x in enumerate(moving)] for i in range(len(moving))]
        return tuple(complex(function(*step, *constant)).imag / 1e-30 for step in steps)

    return value, derivatives


COMPLEX = {operation: complex_steps(operation) for operation in PLAIN}


class Operators:
    """Operators in terms of `self.make(operation, inputs, constants)`."""

    def __init__(self, data):
        self.data, self.grad = float(data), 0.0

    def binary(self, operation, first, second):
        first, second = (x if isinstance(x, Operators) else type(self)(x) for x in (first, second))
        return self.make(operation, (first, second), ())

    def __add__(self, other):
        return self.binary("+", self, other)

    def __sub__(self, other):
        return self.binary("-", self, other)

    def __rsub__(self, other):
        return self.binary("-", other, self)

    def __mul__(self, other):
        return self.binary("*", self, other)

    def __truediv__(self, other):
        return self.binary("/", self, other)

    def __rtruediv__(self, other):
        return self.binary("/", other, self)

    def __pow__(self, n):
        return self.make("**", (self,), (n,))

    def __neg__(self):
        return self.make("neg", (self,), ())

    def exp(self):
        return self.make("exp", (self,), ())

    def tanh(self):
        return self.make("tanh", (self,), ())

    def relu(self):
        return self.make("relu", (self,), ())

    __radd__, __rmul__ = __add__, __mul__


def calculated(rules, operation, inputs, constants):
    """The value of an operation and its derivatives."""
    value, derivatives = rules[operation]
    numbers = [x.data for x in inputs]
    out = value(*numbers, *constants)
    return out, derivatives(*numbers, *constants, out)


def tape(rules):
    """A list of everything that was calculated, walked backwards; it is emptied at the end."""
    records = []

    class MiniTensor(Operators):
        def make(self, operation, inputs, constants):
            value, shares = calculated(rules, operation, inputs, constants)
            out = MiniTensor(value)
            records.append((out, inputs, shares))
            return out

        def backward(self, gradient=1.0):
            waiting = {id(self): gradient}
            for out, inputs, shares in reversed(records):
                grad = waiting.pop(id(out), 0.0)
                out.grad += grad
                for x, share in zip(inputs, shares, strict=True):
                    waiting[id(x)] = waiting.get(id(x), 0.0) + grad * share
            leaves = {id(x): x for _, inputs, _ in records for x in inputs} | {id(self): self}
            for key, grad in waiting.items():
                leaves[key].grad += grad
            records.clear()

    return MiniTensor


def every_path(rules):
    """Recursion along every path, adding at every node: slow, and right without any order."""

    class MiniTensor(Operators):
        sources = ()

        def make(self, operation, inputs, constants):
            value, shares = calculated(rules, operation, inputs, constants)
            out = MiniTensor(value)
            out.sources = tuple(zip(inputs, shares, strict=True))
            return out

        def backward(self, gradient=1.0):
            self.grad += gradient
            for x, share in self.sources:
                x.backward(gradient * share)

    return MiniTensor


def forward_sums(rules):
    """No backward pass at all: every number carries its derivative with respect to every leaf."""

    class MiniTensor(Operators):
        slopes = None

        def make(self, operation, inputs, constants):
            value, shares = calculated(rules, operation, inputs, constants)
            out = MiniTensor(value)
            out.slopes = {}
            for x, share in zip(inputs, shares, strict=True):
                for leaf, slope in (x.slopes or {x: 1.0}).items():
                    out.slopes[leaf] = out.slopes.get(leaf, 0.0) + share * slope
            return out

        def backward(self, gradient=1.0):
            for leaf, slope in (self.slopes or {self: 1.0}).items():
                leaf.grad = leaf.grad + gradient * slope

    return MiniTensor


def generations(rules):
    """Generation numbers and a heap in place of a topological sort; `.grad` is None until something arrives."""
    counter = itertools.count()

    class MiniTensor(Operators):
        def __init__(self, data, generation=0, sources=()):
            self.data, self.grad, self.generation, self.sources = data, None, generation, sources

        def make(self, operation, inputs, constants):
            value, shares = calculated(rules, operation, inputs, constants)
            generation = 1 + max(x.generation for x in inputs)
            return MiniTensor(value, generation, list(zip(inputs, shares, strict=True)))

        def backward(self, gradient=1.0):
            pending, heap = {self: gradient}, [(-self.generation, next(counter), self)]
            while heap:
                node = heapq.heappop(heap)[2]
                grad = pending.pop(node)
                if not node.sources:
                    node.grad = grad if node.grad is None else node.grad + grad
                for x, share in node.sources:
                    if x not in pending:
                        heapq.heappush(heap, (-x.generation, next(counter), x))
                    pending[x] = pending.get(x, 0) + grad * share

    return MiniTensor


def exact_sums(rules):
    """Contributions are collected and added without rounding; `.grad` is a property."""

    class MiniTensor(Operators):
        def __init__(self, data, sources=()):
            self.data, self.sources, self.arrived = float(data), sources, []

        @property
        def grad(self):
            return math.fsum(self.arrived)

        def make(self, operation, inputs, constants):
            value, shares = calculated(rules, operation, inputs, constants)
            return MiniTensor(value, tuple(zip(inputs, shares, strict=True)))

        def backward(self, gradient=1.0):
            order, seen = [], set()

            def visit(node):
                if node not in seen:
                    seen.add(node)
                    for x, _ in node.sources:
                        visit(x)
                    order.append(node)

            visit(self)
            before = {node: list(node.arrived) for node in order}
            for node in order:
                node.arrived = []
            self.arrived = [gradient]
            for node in reversed(order):
                for x, share in node.sources:
                    x.arrived.append(node.grad * share)
            for node in order:
                node.arrived = before[node] + node.arrived

    return MiniTensor


def without_argument(rules):
    """`backward()` takes no argument; the caller has to multiply other cotangents in."""

    class MiniTensor(tape(rules)):
        def backward(self):
            super().backward(1.0)

    return MiniTensor


def lazy(rules):
    """Nothing is calculated before it is needed; `backward` calculates the derivatives."""

    class MiniTensor(Operators):
        def __init__(self, data=None, recipe=None):
            self.known, self.recipe, self.grad = data, recipe, np.zeros(())

        @property
        def data(self):
            if self.known is None:
                operation, inputs, constants = self.recipe
                self.known = calculated(rules, operation, inputs, constants)[0]
            return self.known

        def make(self, operation, inputs, constants):
            return MiniTensor(None, (operation, inputs, constants))

        def backward(self, gradient=1.0):
            if self.recipe is None:
                self.grad = self.grad + np.float64(gradient)
                return
            operation, inputs, constants = self.recipe
            for x, share in zip(inputs, calculated(rules, operation, inputs, constants)[1], strict=True):
                x.backward(gradient * share)

    return MiniTensor


NUMBERS = {
    "closures": students.closures,
    "Function classes": students.function_classes,
    "a dict of pending gradients": students.pending_dict,
    "a tape": lambda: tape(PLAIN),
    "a tape, outputs in the formulas": lambda: tape(WITH_OUTPUTS),
    "a tape, complex steps": lambda: tape(COMPLEX),
    "every path": lambda: every_path(PLAIN),
    "every path, exponentials": lambda: every_path(WITH_EXPONENTIALS),
    "every path, complex steps": lambda: every_path(COMPLEX),
    "forward sums": lambda: forward_sums(PLAIN),
    "forward sums, outputs": lambda: forward_sums(WITH_OUTPUTS),
    "forward sums, logistic function": lambda: forward_sums(WITH_LOGISTIC),
    "generations, None at first": lambda: generations(PLAIN),
    "generations, logistic function": lambda: generations(WITH_LOGISTIC),
    "exact sums": lambda: exact_sums(WITH_EXPONENTIALS),
    "exact sums, logistic function": lambda: exact_sums(WITH_LOGISTIC),
    "no gradient argument": lambda: without_argument(WITH_OUTPUTS),
    "lazy, NumPy numbers": lambda: lazy(PLAIN),
    "lazy, exponentials": lambda: lazy(WITH_EXPONENTIALS),
}

# Arrays: how a broadcast is undone, how gradients are added and kept, and which formulas the rules use.


def summed_by_axes(grad, shape):
    axes = tuple(range(grad.ndim - len(shape)))
    grad = grad.sum(axis=axes)
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and grad.shape[axis] != 1)
    return grad.sum(axis=stretched, keepdims=True)


def summed_one_by_one(grad, shape):
    while grad.ndim > len(shape):
        grad = np.add.reduce(grad, 0)
    for axis in range(len(shape)):
        if shape[axis] == 1:
            grad = np.add.reduce(grad, axis, keepdims=True)
    return grad


def summed_by_loop(grad, shape):
    """Add each element at the place that it was broadcast from."""
    out = np.zeros(shape)
    origin = np.broadcast_to(np.arange(out.size).reshape(shape), grad.shape)
    np.add.at(out.reshape(-1), origin.reshape(-1), grad.reshape(-1))
    return out


def summed_by_einsum(grad, shape):
    letters = "abcdefgh"[: grad.ndim]
    padded = (1,) * (grad.ndim - len(shape)) + tuple(shape)
    kept = "".join(letter for letter, size in zip(letters, padded, strict=True) if size != 1)
    return np.einsum(f"{letters}->{kept}", grad).reshape(shape)


def in_place(leaf, grad):
    if leaf.grad is None:
        leaf.grad = np.zeros_like(leaf.data)
    leaf.grad += grad


def new_sum(leaf, grad):
    leaf.grad = grad if leaf.grad is None else grad + leaf.grad


def column_order(leaf, grad):
    """Gradients are in Fortran order and read-only."""
    total = np.asfortranarray(grad if leaf.grad is None else leaf.grad + grad)
    total.flags.writeable = False
    leaf.grad = total


def in_a_tensor(leaf, grad):
    """As in PyTorch, `.grad` is a tensor."""
    leaf.grad = type(leaf)(grad if leaf.grad is None else leaf.grad.data + grad)


def product_by_loops(g, a, b):
    first, second = np.zeros(a.shape), np.zeros(b.shape)
    for i, j in np.ndindex(g.shape):
        for k in range(a.shape[1]):
            first[i, k] += g[i, j] * b[k, j]
            second[k, j] += g[i, j] * a[i, k]
    return first, second


PRODUCTS = {
    "transposed": lambda g, a, b: (g @ b.T, a.T @ g),
    "einsum": lambda g, a, b: (np.einsum("ij,kj->ik", g, b), np.einsum("ik,ij->kj", a, g)),
    "reversed": lambda g, a, b: ((b @ g.T).T, np.dot(g.T, a).T),
    "outer": lambda g, a, b: (
        sum(np.outer(g[:, j], b[:, j]) for j in range(b.shape[1])),
        sum(np.outer(a[i], g[i]) for i in range(len(a))),
    ),
    "loops": product_by_loops,
}


def softmax_by_jacobian(g, out):
    """Row by row with the whole Jacobian."""
    rows = [(np.diag(p) - np.outer(p, p)) @ d for p, d in zip(np.atleast_2d(out), np.atleast_2d(g), strict=True)]
    return np.array(rows).reshape(out.shape)


SOFTMAX = {
    "short": lambda g, out: out * (g - (g * out).sum(-1, keepdims=True)),
    "two terms": lambda g, out: out * g - out * np.einsum("...i,...i->...", out, g)[..., None],
    "Jacobian": softmax_by_jacobian,
}


def arrays(summed=summed_by_axes, keep=new_sum, product="transposed", softmax="short", dtype=np.float64, zeros=False):
    """An engine of arrays. `zeros`: `.grad` starts as zeros, not as None."""

    class MiniTensor:
        def __init__(self, data, requires_grad=False, sources=(), rule=None):
            self.data = np.array(data, dtype=dtype)
            self.grad = np.zeros(self.data.shape, dtype) if zeros else None
            self.sources, self.rule = sources, rule

        def make(self, data, sources, rule):
            return MiniTensor(data, True, sources, rule)

        def with_(self, other, function, rule):
            other = other if isinstance(other, MiniTensor) else MiniTensor(other)
            a, b = self.data, other.data
            return self.make(function(a, b), (self, other), lambda g: rule(g, a, b))

        def __add__(self, other):
            return self.with_(other, np.add, lambda g, a, b: (g, g))

        def __sub__(self, other):
            return self.with_(other, np.subtract, lambda g, a, b: (g, np.negative(g)))

        def __mul__(self, other):
            return self.with_(other, np.multiply, lambda g, a, b: (b * g, g * a))

        def __truediv__(self, other):
            return self.with_(other, np.divide, lambda g, a, b: (g / b, -(g * a) / np.square(b)))

        def __matmul__(self, other):
            return self.with_(other, np.matmul, PRODUCTS[product])

        __radd__, __rmul__ = __add__, __mul__

        def tanh(self):
            out = np.tanh(self.data)
            return self.make(out, (self,), lambda g: (g - g * out * out,))

        def relu(self):
            positive = self.data > 0
            return self.make(self.data * positive, (self,), lambda g: (np.where(positive, g, 0),))

        def softmax(self, dim):
            powers = np.exp(self.data - self.data.max(dim, keepdims=True))
            out = powers / powers.sum(dim, keepdims=True)
            return self.make(out, (self,), lambda g: (SOFTMAX[softmax](g, out),))

        def sum(self):
            return self.make(np.sum(self.data), (self,), lambda g: (np.broadcast_to(g, self.data.shape),))

        def mean(self):
            return self.make(self.data.mean(), (self,), lambda g: (np.full(self.data.shape, g / self.data.size),))

        @property
        def T(self):  # noqa: N802
            return self.make(self.data.T, (self,), lambda g: (g.T,))

        def backward(self, gradient=None):
            order, seen = [], set()

            def visit(node):
                if id(node) not in seen:
                    seen.add(id(node))
                    for source in node.sources:
                        visit(source)
                    order.append(node)

            visit(self)
            start = np.ones_like(self.data) if gradient is None else np.asarray(gradient, dtype=dtype)
            pending = {id(self): start}
            for node in reversed(order):
                grad = pending.pop(id(node))
                if node.rule is None:
                    keep(node, grad)
                    continue
                for source, share in zip(node.sources, node.rule(grad), strict=True):
                    share = summed(share, source.data.shape)
                    pending[id(source)] = share + pending[id(source)] if id(source) in pending else share

    return MiniTensor


ARRAYS = {
    "plain": arrays(),
    "in place": arrays(keep=in_place),
    "in place from zeros": arrays(keep=in_place, zeros=True),
    "axes one by one": arrays(summed_one_by_one, product="reversed"),
    "a loop over elements": arrays(summed_by_loop, product="loops", softmax="Jacobian"),
    "einsum throughout": arrays(summed_by_einsum, product="einsum", softmax="two terms"),
    "columns first, read only": arrays(keep=column_order, product="outer"),
    "gradients in tensors": arrays(keep=in_a_tensor, softmax="two terms"),
    "zeros and einsum": arrays(summed_by_einsum, in_place, "outer", zeros=True),
    "the array engine of the other tests": students.arrays(),
}
NARROW = {
    "float32": arrays(dtype=np.float32),
    "float32, in place, loops": arrays(summed_one_by_one, in_place, "outer", "Jacobian", np.float32),
    "float64 all the same": arrays(summed_by_einsum),
}

KINKS = {
    "PyTorch's": (0.0, 0.0, "shared"),
    "from the right": (1.0, 1.0, "first"),
    "from the left": (0.0, -1.0, "last"),
    "in the middle": (0.5, 0.25, "first"),
}
"""The slopes of relu and abs at 0, and which of several largest elements gets the gradient."""


def largest_marked(x, which):
    """Weights of the elements that are the largest of their row."""
    marks = (x == x.max(-1, keepdims=True)).astype(float)
    if which == "shared":
        return marks / marks.sum(-1, keepdims=True)
    places = marks.argmax(-1) if which == "first" else x.shape[-1] - 1 - marks[:, ::-1].argmax(-1)
    return np.eye(x.shape[-1])[places]


def with_convention(relu_at_zero, abs_at_zero, which):
    class MiniTensor(arrays()):
        def make(self, data, sources, rule):
            out = MiniTensor(data, True)
            out.sources, out.rule = sources, rule
            return out

        def relu(self):
            slope = np.where(self.data == 0, relu_at_zero, self.data > 0)
            return self.make(np.maximum(self.data, 0), (self,), lambda g: (g * slope,))

        def __abs__(self):
            slope = np.where(self.data == 0, abs_at_zero, np.sign(self.data))
            return self.make(np.abs(self.data), (self,), lambda g: (g * slope,))

        def amax(self, dim):
            weights = largest_marked(self.data, which)
            return self.make(self.data.max(-1), (self,), lambda g: (weights * g[:, None],))

    return MiniTensor


# Functions, and gradients by hand: pairs of a right function and what it is compared with.


def softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def softmax_by_differences(x):
    return np.array([1 / np.sum(np.exp(x - value)) for value in x])


def softmax_by_logarithm(x):
    return np.exp(x - np.log(np.sum(np.exp(x))))


def log_sum_exp(x):
    return float(np.log(np.sum(np.exp(x))))


def log_sum_exp_shifted(x):
    return x.max() + math.log(math.fsum(math.exp(value - x.max()) for value in x))


def log_sum_exp_pairwise(x):
    return np.logaddexp.reduce(x)


def variance_by_loop(x):
    mean = sum(x) / len(x)
    return sum((value - mean) ** 2 for value in x) / len(x)


def central_difference(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2 * h)


FUNCTIONS = {
    "softmax by differences": (softmax_by_differences, softmax, [(5,)]),
    "softmax by the logarithm": (softmax_by_logarithm, softmax, [(5,)]),
    "log-sum-exp, shifted": (log_sum_exp_shifted, log_sum_exp, [(6,)]),
    "log-sum-exp, pairwise": (log_sum_exp_pairwise, log_sum_exp, [(6,)]),
    "variance in a loop": (variance_by_loop, lambda x: np.var(x), [(7,)]),
    "a list for an array": (lambda x: [value * 2 for value in x], lambda x: [value + value for value in x], [(3,)]),
    "infinities where they are right": (lambda x: x / np.zeros(3), lambda x: np.copysign(np.inf, x), [(3,)]),
    "NaN where it is right": (lambda x: np.sqrt(-np.abs(x)), lambda x: np.full(4, np.nan), [(4,)]),
}


def product(a, b):
    return (a * b).tanh()


def row_sum(a, b):
    return (a / b).sum()


def by_cosh(a, b):
    slope = 1 / np.cosh(a * b) ** 2
    return slope * b, slope * a


def by_tanh(a, b):
    t = math.tanh(a * b)
    return [b - b * t * t, a * (1 - t) * (1 + t)]


BY_HAND = {
    "cosh": (by_cosh, product, [(), ()]),
    "tanh, as a list": (by_tanh, product, [(), ()]),
    "quotient": (lambda a, b: (1 / b, -a * b**-2.0), row_sum, [(3,), (3,)]),
    "quotient in a loop": (
        lambda a, b: (
            np.array([1 / y for y in b]),
            np.array([-x / y / y for x, y in zip(a, b, strict=True)]),
        ),
        row_sum,
        [(3,), (3,)],
    ),
}
