"""A third style of engine, for mistakes that the bank does not know: a tape of instructions, as compilers write them.

Every operation appends one instruction (opcode, numbers of its inputs, number of its output, options) to one list, and
all values are in a second list. The backward pass is a loop over the instructions from the last to the first; there is
no graph and no order to find. The rules are in a table by opcode: `forward(options, *inputs)` and
`back(grad, output, options, *inputs)`, which gives one gradient per input.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Tape:
    """`values` and `leaves` by number; `code` holds the instructions."""

    values: list = field(default_factory=list)
    leaves: dict = field(default_factory=dict)
    code: list = field(default_factory=list)


def to_shape(grad, shape):
    """Add up what broadcasting repeated."""
    grad = np.sum(grad, axis=tuple(range(np.ndim(grad) - len(shape))))
    return np.sum(grad, axis=tuple(n for n, size in enumerate(shape) if size == 1), keepdims=True).reshape(shape)


def stretched(grad, x, o):
    """The gradient of a reduction, repeated along the axes that were reduced."""
    if o.get("dim") is None or o.get("keepdim"):
        return np.broadcast_to(grad, x.shape)
    return np.broadcast_to(np.expand_dims(grad, o["dim"]), x.shape)


def softmaxed(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def swapped(x):
    return np.swapaxes(x, -1, -2)


def reduced(function):
    return lambda o, x: function(x, axis=o["dim"], keepdims=o["keepdim"])


def mean_back(g, y, o, x):
    return (stretched(g, x, o) * (np.size(y) / x.size),)


def var_back(g, y, o, x):
    centered = x - x.mean(o["dim"], keepdims=True)
    return (stretched(g, x, o) * 2 * centered / (x.size / max(1, np.size(y)) - 1),)


def norm_back(g, y, o, x):
    return (stretched(g, x, o) * x / stretched(y, x, o),)


def logsumexp_back(g, y, o, x):
    return (stretched(g, x, o) * np.exp(x - stretched(y, x, o)),)


def prod_back(g, y, o, x):
    return (stretched(g, x, o) * stretched(y, x, o) / x,)


def sum_back(g, y, o, x):
    return (stretched(g, x, o),)


def matmul_back(g, y, o, a, b):
    return g @ swapped(b), swapped(a) @ g


def index_back(g, y, o, x):
    out = np.zeros_like(x)
    np.add.at(out, o["index"], g)
    return (out,)


def cat_back(g, y, o, a, b):
    return tuple(np.split(g, [a.shape[o["dim"]]], o["dim"]))


def diagonal_back(g, y, o, x):
    out = np.zeros_like(x)
    np.fill_diagonal(out, g)
    return (out,)


def repeat_back(g, y, o, x):
    split = [size for pair in zip(o["times"], x.shape, strict=True) for size in pair]
    return (g.reshape(split).sum(tuple(range(0, len(split), 2))),)


def power_back(g, y, o, a, b):
    return g * b * a ** (b - 1), g * y * np.log(a)


def layer_norm(o, x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def layer_norm_back(g, y, o, x):
    scale = np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return ((g - g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True)) / scale,)


RULES = {
    "add": (lambda o, a, b: a + b, lambda g, y, o, a, b: (g, g)),
    "sub": (lambda o, a, b: a - b, lambda g, y, o, a, b: (g, -g)),
    "mul": (lambda o, a, b: a * b, lambda g, y, o, a, b: (g * b, g * a)),
    "div": (lambda o, a, b: a / b, lambda g, y, o, a, b: (g / b, -g * a / b**2)),
    "neg": (lambda o, a: -a, lambda g, y, o, a: (-g,)),
    "pow": (lambda o, a: a ** o["n"], lambda g, y, o, a: (g * o["n"] * a ** (o["n"] - 1),)),
    "exp": (lambda o, a: np.exp(a), lambda g, y, o, a: (g * y,)),
    "log": (lambda o, a: np.log(a), lambda g, y, o, a: (g / a,)),
    "sqrt": (lambda o, a: np.sqrt(a), lambda g, y, o, a: (g / (2 * y),)),
    "sin": (lambda o, a: np.sin(a), lambda g, y, o, a: (g * np.cos(a),)),
    "tanh": (lambda o, a: np.tanh(a), lambda g, y, o, a: (g * (1 - y**2),)),
    "sigmoid": (lambda o, a: 1 / (1 + np.exp(-a)), lambda g, y, o, a: (g * y * (1 - y),)),
    "relu": (lambda o, a: np.maximum(a, 0), lambda g, y, o, a: (g * (a > 0),)),
    "leaky_relu": (
        lambda o, a: np.where(a > 0, a, o["slope"] * a),
        lambda g, y, o, a: (g * np.where(a > 0, 1.0, o["slope"]),),
    ),
    "log1p": (lambda o, a: np.log1p(a), lambda g, y, o, a: (g / (1 + a),)),
    "rsqrt": (lambda o, a: a**-0.5, lambda g, y, o, a: (-g * y**3 / 2,)),
    "reciprocal": (lambda o, a: 1 / a, lambda g, y, o, a: (-g * y**2,)),
    "abs": (lambda o, a: np.abs(a), lambda g, y, o, a: (g * np.sign(a),)),
    "clamp": (
        lambda o, a: np.clip(a, o["min"], o["max"]),
        lambda g, y, o, a: (g * ((a >= o["min"]) & (a <= o["max"])),),
    ),
    "maximum": (
        lambda o, a, b: np.maximum(a, b),
        lambda g, y, o, a, b: (g * ((a > b) + (a == b) / 2), g * ((b > a) + (a == b) / 2)),
    ),
    "minimum": (
        lambda o, a, b: np.minimum(a, b),
        lambda g, y, o, a, b: (g * ((a < b) + (a == b) / 2), g * ((b < a) + (a == b) / 2)),
    ),
    "matmul": (lambda o, a, b: a @ b, matmul_back),
    "sum": (reduced(np.sum), sum_back),
    "mean": (reduced(np.mean), mean_back),
    "prod": (reduced(np.prod), prod_back),
    "var": (lambda o, x: np.var(x, axis=o["dim"], keepdims=o["keepdim"], ddof=1), var_back),
    "norm": (lambda o, x: np.sqrt(np.sum(x**2, axis=o["dim"], keepdims=o["keepdim"])), norm_back),
    "logsumexp": (lambda o, x: np.log(np.sum(np.exp(x), axis=o["dim"], keepdims=o["keepdim"])), logsumexp_back),
    "reshape": (lambda o, x: x.reshape(o["shape"]), lambda g, y, o, x: (g.reshape(x.shape),)),
    "permute": (lambda o, x: x.transpose(o["dims"]), lambda g, y, o, x: (g.transpose(np.argsort(o["dims"])),)),
    "index": (lambda o, x: x[o["index"]], index_back),
    "cat": (lambda o, a, b: np.concatenate([a, b], o["dim"]), cat_back),
    "cumsum": (
        lambda o, x: np.cumsum(x, o["dim"]),
        lambda g, y, o, x: (np.flip(np.cumsum(np.flip(g, o["dim"]), o["dim"]), o["dim"]),),
    ),
    "power": (lambda o, a, b: a**b, power_back),
    "lerp": (
        lambda o, a, b: a + o["weight"] * (b - a),
        lambda g, y, o, a, b: (g * (1 - o["weight"]), g * o["weight"]),
    ),
    "where": (
        lambda o, a, b: np.where(o["condition"], a, b),
        lambda g, y, o, a, b: (g * o["condition"], g * ~o["condition"]),
    ),
    "repeat": (lambda o, x: np.tile(x, o["times"]), repeat_back),
    "expand": (lambda o, x: np.broadcast_to(x, o["shape"]), lambda g, y, o, x: (g,)),
    "diagonal": (lambda o, x: np.diagonal(x), diagonal_back),
    "tril": (lambda o, x: np.tril(x), lambda g, y, o, x: (np.tril(g),)),
    "softmax": (
        lambda o, x: softmaxed(x, o["dim"]),
        lambda g, y, o, x: (y * (g - (g * y).sum(o["dim"], keepdims=True)),),
    ),
    "layer_norm": (layer_norm, layer_norm_back),
}


def engine(rules=None, **parts):
    """A class of tensors with its own tape. `rules` and `parts` (methods of the class) replace the right ones."""
    return type("Tensor", (Tensor,), {"tape": Tape(), "rules": RULES | (rules or {}), **parts})


class Tensor:
    tape = Tape()
    rules = RULES

    def __init__(self, data, requires_grad=False, number=None):
        self.grad = None
        self.requires_grad = requires_grad
        self.number = len(self.tape.values) if number is None else number
        if number is None:
            self.tape.values.append(np.asarray(data, dtype=np.float64))
        if requires_grad:
            self.tape.leaves[self.number] = self

    @property
    def data(self):
        return self.tape.values[self.number]

    @property
    def shape(self):
        return self.data.shape

    def apply(self, opcode, *others, **options):
        """Calculate the result, a tensor with the next number, and append the instruction."""
        others = [other if isinstance(other, Tensor) else type(self)(other) for other in others]
        numbers = [self.number, *(other.number for other in others)]
        values = [self.tape.values[number] for number in numbers]
        result = type(self)(self.calculated(opcode, options, values))
        self.tape.code.append((opcode, numbers, result.number, options))
        return result

    def calculated(self, opcode, options, values):
        return self.rules[opcode][0](options, *values)

    def backward(self, gradient=None):
        found = {self.number: self.first_gradient(gradient)}
        for opcode, inputs, output, options in reversed(self.tape.code):
            if output in found:
                self.send(found, opcode, inputs, output, options)
        for number, leaf in self.tape.leaves.items():
            if number in found:
                self.store(leaf, found[number])

    def first_gradient(self, gradient):
        return np.ones(self.shape) if gradient is None else np.asarray(gradient, dtype=np.float64)

    def send(self, found, opcode, inputs, output, options):
        values = [self.tape.values[number] for number in inputs]
        shares = self.rules[opcode][1](found[output], self.tape.values[output], options, *values)
        for number, value, share in zip(inputs, values, shares, strict=True):
            self.add(found, number, to_shape(share, value.shape))

    def add(self, found, number, share):
        found[number] = found.get(number, 0.0) + share

    def store(self, leaf, gradient):
        leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient

    def __add__(self, other):
        return self.apply("add", other)

    def __sub__(self, other):
        return self.apply("sub", other)

    def __mul__(self, other):
        return self.apply("mul", other)

    def __truediv__(self, other):
        return self.apply("div", other)

    def __matmul__(self, other):
        return self.apply("matmul", other)

    def __neg__(self):
        return self.apply("neg")

    def __pow__(self, n):
        return self.apply("power", n) if isinstance(n, Tensor) else self.apply("pow", n=n)

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __rsub__(self, other):
        return type(self)(other) - self

    def __rtruediv__(self, other):
        return type(self)(other) / self

    def __getitem__(self, index):
        return self.apply("index", index=index)

    def reshape(self, *shape):
        return self.apply("reshape", shape=shape)

    def permute(self, *dims):
        return self.apply("permute", dims=dims)

    def cat(self, other, dim=0):
        return self.apply("cat", other, dim=dim)

    def maximum(self, other):
        return self.apply("maximum", other)

    def minimum(self, other):
        return self.apply("minimum", other)

    def clamp(self, min, max):
        return self.apply("clamp", min=min, max=max)

    def leaky_relu(self, slope=0.01):
        return self.apply("leaky_relu", slope=slope)

    def cumsum(self, dim):
        return self.apply("cumsum", dim=dim)

    def lerp(self, end, weight):
        return self.apply("lerp", end, weight=weight)

    def repeat(self, *times):
        return self.apply("repeat", times=times)

    def expand(self, *shape):
        return self.apply("expand", shape=shape)

    def diagonal(self):
        return self.apply("diagonal")

    def tril(self):
        return self.apply("tril")

    def where(self, condition, other):
        return self.apply("where", other, condition=condition)

    def __gt__(self, other):
        return self.data > getattr(other, "data", other)

    def softmax(self, dim):
        return self.apply("softmax", dim=dim)


def _add_methods():
    def unary(opcode):
        return lambda self: self.apply(opcode)

    def reduction(opcode):
        return lambda self, dim=None, keepdim=False: self.apply(opcode, dim=dim, keepdim=keepdim)

    for opcode in (
        "exp",
        "log",
        "sqrt",
        "sin",
        "tanh",
        "sigmoid",
        "relu",
        "log1p",
        "rsqrt",
        "reciprocal",
        "abs",
        "layer_norm",
    ):
        setattr(Tensor, opcode, unary(opcode))
    for opcode in ("sum", "mean", "prod", "var", "norm", "logsumexp"):
        setattr(Tensor, opcode, reduction(opcode))


_add_methods()
