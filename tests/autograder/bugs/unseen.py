"""Mistakes that the bank does not hold, in the tape engine: does a check catch them, and is what it says true?

A mistake changes one rule (`rules`), a part of the engine (`parts`) or both. `place` is where it is: an operation as
cards write it, or `backward`. `told` are words of a card that name the mistake itself, not only its place; it is empty
if cards name only the place. `bugs` are entries of the bank that come down to the same mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.student import between, positive
from tests.autograder.bugs.tape_engine import (
    RULES,
    Tensor,
    engine,
    layer_norm_back,
    mean_back,
    stretched,
    swapped,
    to_shape,
)


@dataclass(frozen=True)
class Unseen:
    """A mistake, and the check of a lesson on that operation."""

    name: str
    place: str
    told: tuple[str, ...]
    expressions: dict[str, Callable[..., Any]]
    inputs: list[Any]
    rules: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    bugs: tuple[str, ...] = ()

    def engine(self) -> Any:
        return engine(self.rules, **self.parts)

    def __str__(self) -> str:
        return self.name


def rule(opcode, back):
    """The right forward with another backward."""
    return {opcode: (RULES[opcode][0], back)}


def slipped(opcode, forward):
    """Another forward with the right backward."""
    return {opcode: (forward, RULES[opcode][1])}


PAIR = [[(3, 4), (3, 4)]]
ONE = [[(3, 4)]]
RISING = [[positive((3, 4))]]
TIED = [[np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([[2.0, 0.0], [0.5, 4.0]])]]


def of_one(method, *options):
    """The expressions that a lesson on a method of one tensor checks."""
    return {
        method: lambda a: getattr(a, method)(*options),
        f"{method} * a": lambda a: getattr(a, method)(*options) * a,
    }


def of_two(method):
    return {
        method: lambda a, b: getattr(a, method)(b),
        f"{method} * a": lambda a, b: getattr(a, method)(b) * a,
    }


def reductions(method):
    """Over the first axis, and over the last one with `keepdim`."""
    return {
        "0": lambda a: getattr(a, method)(dim=0) * 2.0,
        "-1": lambda a: getattr(a, method)(dim=-1, keepdim=True) * a,
    }


PRODUCTS = {"a @ b": lambda a, b: a @ b, "tanh": lambda a, b: (a @ b).tanh()}
MATRICES = [[(2, 3), (3, 4)]]
SHAPED = {"a * b": lambda a, b: a * b, "a + b": lambda a, b: a + b}
WHOLE = {
    "a + b": lambda a, b: a + b,
    "a * b": lambda a, b: a * b,
    "shared": lambda a, b: (a * b + a) * b,
    "diamond": lambda a, b: (lambda c: (c * b).tanh() + c * c)(a * b),
}
NUMBERS = [[(), ()]]


class Narrow:
    """Values that are kept with seven digits."""

    def calculated(self, opcode, options, values):
        return Tensor.calculated(self, opcode, options, values).astype(np.float32)


def by_use(self, gradient=None):
    """Right except for the last line, which takes a mean over the uses of a leaf."""
    uses = [number for _, inputs, _, _ in self.tape.code for number in inputs]
    found = {self.number: self.first_gradient(gradient)}
    for opcode, inputs, output, options in reversed(self.tape.code):
        if output in found:
            self.send(found, opcode, inputs, output, options)
    for number, leaf in self.tape.leaves.items():
        if number in found:
            self.store(leaf, found[number] / max(1, uses.count(number)))


def once_each(self, found, opcode, inputs, output, options):
    """The inputs of an instruction as a set: an input that is used twice gets one share."""
    values = [self.tape.values[number] for number in inputs]
    shares = self.rules[opcode][1](found[output], self.tape.values[output], options, *values)
    for number, share in dict(zip(inputs, shares, strict=True)).items():
        self.add(found, number, to_shape(share, self.tape.values[number].shape))


def clipped(self, found, number, share):
    found[number] = np.clip(found.get(number, 0.0) + share, -1.0, 1.0)


def positive_only(self, found, number, share):
    if np.max(share, initial=-1.0) > 0:
        found[number] = found.get(number, 0.0) + share


def largest_kept(self, found, number, share):
    before = found.get(number)
    found[number] = share if before is None or np.sum(np.abs(share)) > np.sum(np.abs(before)) else before


def subtracted(self, found, number, share):
    found[number] = share if number not in found else found[number] - share


def first_kept(self, found, number, share):
    found.setdefault(number, share)


def halved(self, leaf, gradient):
    leaf.grad = gradient if leaf.grad is None else (leaf.grad + gradient) / 2


def as_lists(self, leaf, gradient):
    leaf.grad = (gradient if leaf.grad is None else np.asarray(leaf.grad) + gradient).tolist()


UNSEEN = (
    Unseen(
        "both operands of a tie get all of it",
        "maximum",
        ("to share",),
        of_two("maximum"),
        TIED,
        rule("maximum", lambda g, y, o, a, b: (g * (a >= b), g * (b >= a))),
    ),
    Unseen(
        "neither operand of a tie gets any",
        "minimum",
        ("to share",),
        of_two("minimum"),
        TIED,
        rule("minimum", lambda g, y, o, a, b: (g * (a < b), g * (b < a))),
    ),
    Unseen(
        "minimum with the mask of maximum",
        "minimum",
        ("the other one was chosen"),
        of_two("minimum"),
        PAIR,
        rule("minimum", lambda g, y, o, a, b: (g * (a > b), g * (b > a))),
        bugs=("where_branches_swapped",),
    ),
    Unseen(
        "clamp lets everything through",
        "clamp",
        ("as if the slope were 1",),
        of_one("clamp", -1.0, 1.0),
        ONE,
        rule("clamp", lambda g, y, o, a: (g,)),
    ),
    Unseen(
        "clamp forgets the upper limit",
        "clamp",
        ("is not 0 at elements where it must be, and right elsewhere",),
        of_one("clamp", -1.0, 1.0),
        ONE,
        rule("clamp", lambda g, y, o, a: (g * (a >= o["min"]),)),
    ),
    Unseen(
        "clamp stops what is inside",
        "clamp",
        ("inverted",),
        of_one("clamp", -1.0, 1.0),
        ONE,
        rule("clamp", lambda g, y, o, a: (g * ((a < o["min"]) | (a > o["max"])),)),
    ),
    Unseen(
        "the leaky side gets the whole gradient",
        "leaky_relu",
        ("as if the slope were 1",),
        of_one("leaky_relu", 0.1),
        ONE,
        rule("leaky_relu", lambda g, y, o, a: (g,)),
    ),
    Unseen(
        "the slope of leaky relu added",
        "leaky_relu",
        ("wrong sign at some elements: those where `input` is negative",),
        of_one("leaky_relu", 0.1),
        ONE,
        rule("leaky_relu", lambda g, y, o, a: (g * np.where(a > 0, 1.0, -o["slope"]),)),
    ),
    Unseen(
        "log1p with the rule of log",
        "log1p",
        ("another function: the logarithm",),
        of_one("log1p"),
        RISING,
        rule("log1p", lambda g, y, o, a: (g / a,)),
    ),
    Unseen(
        "rsqrt with half the power",
        "rsqrt",
        ("the right one times `input`",),
        of_one("rsqrt"),
        RISING,
        rule("rsqrt", lambda g, y, o, a: (-g * y / 2,)),
    ),
    Unseen(
        "reciprocal without its sign",
        "reciprocal",
        ("wrong sign",),
        of_one("reciprocal"),
        RISING,
        rule("reciprocal", lambda g, y, o, a: (g * y**2,)),
    ),
    Unseen(
        "the logarithm of the exponent",
        "**",
        (),
        {"a**b": lambda a, b: a**b, "a**b * a": lambda a, b: a**b * a},
        [[positive((3, 4)), positive((3, 4))]],
        rule("power", lambda g, y, o, a, b: (g * b * a ** (b - 1), g * y * np.log(b))),
    ),
    Unseen(
        "the exponent is a constant",
        "**",
        ("has the value 0",),
        {"a**b": lambda a, b: a**b, "a**b * a": lambda a, b: a**b * a},
        [[positive((3, 4)), positive((3, 4))]],
        rule("power", lambda g, y, o, a, b: (g * b * a ** (b - 1), np.zeros_like(b))),
    ),
    Unseen(
        "lerp with its weights exchanged",
        "lerp",
        ("in the wrong order",),
        {"lerp": lambda a, b: a.lerp(b, 0.3), "lerp * a": lambda a, b: a.lerp(b, 0.3) * a},
        PAIR,
        rule("lerp", lambda g, y, o, a, b: (g * o["weight"], g * (1 - o["weight"]))),
    ),
    Unseen(
        "the variance divided by n",
        "var",
        ("times the right size",),
        reductions("var"),
        ONE,
        rule(
            "var",
            lambda g, y, o, x: (stretched(g, x, o) * 2 * (x - x.mean(o["dim"], keepdims=True)) * y.size / x.size,),
        ),
    ),
    Unseen(
        "the variance about zero",
        "var",
        (),
        reductions("var"),
        ONE,
        rule("var", lambda g, y, o, x: (stretched(g, x, o) * 2 * x / (x.size / max(1, y.size) - 1),)),
    ),
    Unseen(
        "the norm like its square",
        "norm",
        ("another function: the square",),
        reductions("norm"),
        ONE,
        rule("norm", lambda g, y, o, x: (2 * stretched(g, x, o) * x,)),
    ),
    Unseen(
        "the norm not divided",
        "norm",
        ("the right one times the output",),
        reductions("norm"),
        ONE,
        rule("norm", lambda g, y, o, x: (stretched(g, x, o) * x,)),
    ),
    Unseen(
        "logsumexp gives all to the largest",
        "logsumexp",
        (),
        {"0": lambda a: a.logsumexp(0) * 2.0, "1": lambda a: a.logsumexp(1, True) * a},
        ONE,
        rule("logsumexp", lambda g, y, o, x: (stretched(g, x, o) * (x == x.max(o["dim"], keepdims=True)),)),
    ),
    Unseen(
        "logsumexp not normalized",
        "logsumexp",
        ("another function: exp",),
        {"0": lambda a: a.logsumexp(0) * 2.0, "1": lambda a: a.logsumexp(1, True) * a},
        ONE,
        rule("logsumexp", lambda g, y, o, x: (stretched(g, x, o) * np.exp(x),)),
    ),
    Unseen(
        "a product like a sum",
        "prod",
        ("as if the slope were 1",),
        reductions("prod"),
        RISING,
        rule("prod", lambda g, y, o, x: (stretched(g, x, o) * 1.0,)),
    ),
    Unseen(
        "a product not divided by the element",
        "prod",
        ("the right one times `input`",),
        reductions("prod"),
        RISING,
        rule("prod", lambda g, y, o, x: (stretched(g, x, o) * stretched(y, x, o),)),
    ),
    Unseen(
        "a mean over several axes divided by the first",
        "mean",
        ("twice the right size",),
        {"two": lambda a: a.mean((0, 1)) * 3.0, "one": lambda a: a.mean(0) * 2.0},
        [[(3, 2, 4)]],
        rule(
            "mean",
            lambda g, y, o, x: (
                stretched(g, x, o) / x.shape[o["dim"][0]] if isinstance(o["dim"], tuple) else mean_back(g, y, o, x)[0],
            ),
        ),
    ),
    Unseen(
        "matmul, the second not transposed",
        "@",
        ("not transposed",),
        PRODUCTS,
        MATRICES,
        rule("matmul", lambda g, y, o, a, b: (g @ b, swapped(a) @ g)),
        bugs=("matmul_not_transposed",),
    ),
    Unseen(
        "matmul, the first not transposed",
        "@",
        ("not transposed",),
        PRODUCTS,
        MATRICES,
        rule("matmul", lambda g, y, o, a, b: (g @ swapped(b), a @ g)),
        bugs=("matmul_not_transposed",),
    ),
    Unseen(
        "matmul, a result transposed",
        "@",
        ("came back transposed",),
        PRODUCTS,
        MATRICES,
        rule("matmul", lambda g, y, o, a, b: (swapped(g @ swapped(b)), swapped(a) @ g)),
    ),
    Unseen(
        "matmul, its factors in the other order",
        "@",
        ("swapped",),
        PRODUCTS,
        MATRICES,
        rule("matmul", lambda g, y, o, a, b: (swapped(b) @ g, g @ swapped(a))),
        bugs=("matmul_factors_exchanged",),
    ),
    Unseen(
        "the second part of cat begins at its own size",
        "cat",
        (),
        {"rows": lambda a, b: a.cat(b), "twice": lambda a, b: a.cat(b) * 2.0},
        [[(2, 3), (2, 3)]],
        rule("cat", lambda g, y, o, a, b: (g[: len(a)], g[len(a) - 1 : len(a) - 1 + len(b)])),
    ),
    Unseen(
        "the copies of repeat averaged",
        "repeat",
        ("the mean over the repeated axes",),
        {"repeat": lambda a: a.repeat(2, 1), "tanh": lambda a: a.repeat(2, 1).tanh()},
        [[(3, 4)]],
        rule("repeat", lambda g, y, o, x: (g.reshape(2, *x.shape).mean(0),)),
        bugs=("broadcast_averaged",),
    ),
    Unseen(
        "only the first copy of repeat",
        "repeat",
        ("only the first row",),
        {"repeat": lambda a: a.repeat(2, 1), "tanh": lambda a: a.repeat(2, 1).tanh()},
        [[(3, 4)]],
        rule("repeat", lambda g, y, o, x: (g[: len(x)],)),
        bugs=("broadcast_first_kept",),
    ),
    Unseen(
        "the diagonal spread over its rows",
        "diagonal",
        ("is not 0 at elements where it must be",),
        of_one("diagonal"),
        [[(3, 3)]],
        rule("diagonal", lambda g, y, o, x: (np.broadcast_to(g[:, None], x.shape) * 1.0,)),
    ),
    Unseen(
        "tril lets everything through",
        "tril",
        ("as if the slope were 1",),
        of_one("tril"),
        [[(3, 3)]],
        rule("tril", lambda g, y, o, x: (g,)),
    ),
    Unseen(
        "tril of the other side",
        "tril",
        (),
        of_one("tril"),
        [[(3, 3)]],
        rule("tril", lambda g, y, o, x: (np.triu(g),)),
    ),
    Unseen(
        "softmax with the largest subtracted in the rule",
        "softmax",
        (),
        of_one("softmax", 1),
        ONE,
        rule("softmax", lambda g, y, o, x: (y * (g - g.max(o["dim"], keepdims=True)),)),
    ),
    Unseen(
        "layer norm divides twice",
        "layer_norm",
        (),
        of_one("layer_norm"),
        ONE,
        rule("layer_norm", lambda g, y, o, x: (layer_norm_back(g, y, o, x)[0] / np.sqrt(x.var(-1, keepdims=True)),)),
    ),
    Unseen(
        "the value of sigmoid is that of tanh",
        "sigmoid",
        (),
        of_one("sigmoid"),
        ONE,
        slipped("sigmoid", lambda o, a: np.tanh(a)),
    ),
    Unseen(
        "the value of mean divides by the rows",
        "mean",
        (),
        {"1": lambda a: a.mean(1) * 2.0},
        ONE,
        slipped("mean", lambda o, x: np.sum(x, axis=o["dim"], keepdims=o["keepdim"]) / len(x)),
    ),
    Unseen(
        "softmax without the shift, of large numbers",
        "softmax",
        ("inf - inf",),
        of_one("softmax", 1),
        [[between(900.0, 1000.0, (2, 3))]],
        slipped("softmax", lambda o, x: np.exp(x) / np.exp(x).sum(o["dim"], keepdims=True)),
    ),
    Unseen("values kept in seven digits", "backward", ("the precision of float32",), WHOLE, PAIR, parts=vars(Narrow)),
    Unseen("a mean over the uses", "backward", (), WHOLE, PAIR, parts={"backward": by_use}),
    Unseen(
        "an input used twice counts once",
        "backward",
        ("used more than once",),
        {**WHOLE, "a * a": lambda a: a * a},
        PAIR,
        parts={"send": once_each},
    ),
    Unseen("clipped on the way", "backward", ("cut off there",), WHOLE, PAIR, parts={"add": clipped}),
    Unseen(
        "negative shares skipped",
        "backward",
        ("is 0 at elements where it must not be",),
        WHOLE,
        NUMBERS,
        parts={"add": positive_only},
    ),
    Unseen(
        "only the largest share kept",
        "backward",
        ("how its contributions are added",),
        WHOLE,
        PAIR,
        parts={"add": largest_kept},
    ),
    Unseen(
        "shares subtracted", "backward", ("how its contributions are added",), WHOLE, PAIR, parts={"add": subtracted}
    ),
    Unseen(
        "the first share kept",
        "backward",
        ("only one of several contributions survives",),
        WHOLE,
        PAIR,
        parts={"add": first_kept},
        bugs=("assigned_not_accumulated",),
    ),
    Unseen("gradients as lists", "backward", ("Look at `backward` itself",), WHOLE, PAIR, parts={"store": as_lists}),
    Unseen("a second backward averaged", "backward", ("second `backward`",), WHOLE, PAIR, parts={"store": halved}),
    Unseen(
        "a number minus a tensor like a tensor minus a number",
        "-",
        (),
        {"2 - a": lambda a: 2.0 - a, "a - 2": lambda a: a - 2.0},
        ONE,
        parts={"__rsub__": lambda self, other: self - other},
    ),
    Unseen(
        "a number divided by a tensor is no operation",
        "/",
        ("no gradient is passed on at all",),
        {"2 / a": lambda a: 2.0 / a, "a / 2": lambda a: a / 2.0},
        RISING,
        parts={"__rtruediv__": lambda self, other: type(self)(np.asarray(other) / self.data)},
    ),
)
