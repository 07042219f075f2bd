"""Every bug of the bank as a student's mistake, with the checks that a lesson on that operation would make.

Shared by the tests and by `benchmarks.diagnosis`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.bugs.bank import BUGS, bug
from autograder.student import positive
from tests.autograder import student_engines_arrays as arrays
from tests.autograder import student_engines_operations as operations

STYLES: dict[str, Callable[..., Any]] = {"closures": arrays.closures, "functions": arrays.functions}


@dataclass(frozen=True)
class Check:
    """Expressions and inputs of one call of `check_gradients`."""

    expressions: dict[str, Callable[..., Any]]
    inputs: list[Any]


@dataclass(frozen=True)
class Mistake:
    """A bug of the bank in a student's engine: in which operation or form, and in which styles of engine."""

    bug: str
    where: str
    check: Check
    styles: tuple[str, ...] = ("closures", "functions")

    @property
    def family(self) -> str:
        return bug(self.bug).family

    def __str__(self) -> str:
        return f"{self.bug}-{self.where}" if self.where else self.bug


PAIRS = [[(3, 4), (3, 4)], [(), ()]]
SQUARES = [[(3, 3), (3, 3)], [(2, 4), (4, 3)]]
ONE = [[(3, 4)], [()]]
RISING = [[positive((3, 4))], [positive()]]
CHECKS: dict[str, Check] = {
    "add": Check({"a + b": lambda a, b: a + b, "(a + b) * a": lambda a, b: (a + b) * a}, PAIRS),
    "sub": Check({"a - b": lambda a, b: a - b, "(a - b) * a": lambda a, b: (a - b) * a}, PAIRS),
    "mul": Check({"a * b": lambda a, b: a * b, "a * b + a": lambda a, b: a * b + a}, PAIRS),
    "div": Check({"a / b": lambda a, b: a / b, "a / b * a": lambda a, b: a / b * a}, PAIRS),
    "neg": Check({"-a": lambda a: -a, "-a * a": lambda a: -a * a}, ONE),
    "pow": Check({"a**3": lambda a: a**3, "a**-2 * a": lambda a: a**-2 * a}, RISING),
    "exp": Check({"exp": lambda a: a.exp(), "exp * a": lambda a: a.exp() * a}, ONE),
    "log": Check({"log": lambda a: a.log(), "log * a": lambda a: a.log() * a}, RISING),
    "tanh": Check({"tanh": lambda a: a.tanh(), "tanh * a": lambda a: a.tanh() * a}, ONE),
    "relu": Check({"relu": lambda a: a.relu(), "relu * a": lambda a: a.relu() * a}, ONE),
    "sigmoid": Check({"sigmoid": lambda a: a.sigmoid(), "sigmoid * a": lambda a: a.sigmoid() * a}, ONE),
    "sqrt": Check({"sqrt": lambda a: a.sqrt(), "sqrt * a": lambda a: a.sqrt() * a}, RISING),
    "abs": Check({"abs": lambda a: a.abs(), "abs * a": lambda a: a.abs() * a}, ONE),
    "sin": Check({"sin": lambda a: a.sin(), "sin * a": lambda a: a.sin() * a}, ONE),
    "cos": Check({"cos": lambda a: a.cos(), "cos * a": lambda a: a.cos() * a}, ONE),
    "leaky_relu": Check({"leaky": lambda a: a.leaky_relu(0.05), "leaky * a": lambda a: a.leaky_relu(0.05) * a}, ONE),
    "maximum": Check({"maximum": lambda a, b: a.maximum(b), "maximum * a": lambda a, b: a.maximum(b) * a}, PAIRS),
    "where": Check(
        {"where": lambda a, b: a.where(a > 0, b), "where * a": lambda a, b: a.where(b > 0, b) * a}, [[(3, 4), (3, 4)]]
    ),
    "matmul": Check({"a @ b": lambda a, b: a @ b, "tanh": lambda a, b: (a @ b).tanh()}, SQUARES),
    "vectors": Check({"a @ b": lambda a, b: a @ b}, [[(3, 3), (3,)], [(3, 4), (4,)], [(3,), (3, 3)]]),
    "batches": Check({"a @ b": lambda a, b: a @ b}, [[(3, 3, 3), (3, 3, 3)], [(2, 3, 4), (2, 4, 2)]]),
    "sum": Check(
        {"sum": lambda a: a.sum(), "dim 0": lambda a: a.sum(0) * 2.0, "dim 1": lambda a: a.sum(1, True) * a},
        [[(3, 3)], [(2, 4)]],
    ),
    "mean": Check(
        {"mean": lambda a: a.mean(), "dim 0": lambda a: a.mean(0) * 2.0, "dim 1": lambda a: a.mean(1, True) * a},
        [[(3, 3)], [(2, 4)]],
    ),
    "rows": Check({"dim 1": lambda a: a.sum(1) * 2.0, "mean": lambda a: a.mean(1) * 2.0}, [[(3, 3)], [(4, 4)]]),
    "amax": Check(
        {"all": lambda a: a.amax(), "dim 0": lambda a: a.amax(0), "dim 1": lambda a: a.amax(1, True) * a}, [[(3, 4)]]
    ),
    "amin": Check(
        {"all": lambda a: a.amin(), "dim 0": lambda a: a.amin(0), "dim 1": lambda a: a.amin(1, True) * a}, [[(3, 4)]]
    ),
    "ties": Check({"amax": lambda a: a.amax(1)}, [[np.array([[2.0, 1.0, 2.0], [0.5, 0.5, 0.5]])]]),
    "reshape": Check({"reshape": lambda a: a.reshape(4, 3), "of a product": lambda a: (a * a).reshape(12)}, [[(3, 4)]]),
    "transpose": Check({"swap": lambda a: a.transpose(0, 1), "tanh": lambda a: a.tanh().transpose(0, 1)}, SQUARES[:1]),
    "permute": Check({"permute": lambda a: a.permute(2, 0, 1) * 2.0}, [[(3, 3, 3)]]),
    "flip": Check({"flip": lambda a: a.flip(0), "flip * a": lambda a: a.flip(1) * a}, [[(3, 4)]]),
    "roll": Check({"roll": lambda a: a.roll(1, 0), "roll * a": lambda a: a.roll(1, 1) * a}, [[(3, 4)]]),
    "index": Check(
        {"repeats": lambda a: a[[0, 2, 0]], "slice": lambda a: a[1:] * 2.0, "one": lambda a: a[2] * a[0]}, [[(3, 4)]]
    ),
    "cat": Check({"rows": lambda a, b: a.cat(b), "columns": lambda a, b: a.cat(b, 1)}, [[(3, 3), (3, 3)]]),
    "sort": Check({"sort": lambda a: a.sort(0)[0], "sort 1": lambda a: a.sort(1)[0] * 2.0}, [[(4, 4)]]),
    "cumsum": Check({"cumsum": lambda a: a.cumsum(0), "cumsum 1": lambda a: a.cumsum(1) * a}, [[(3, 4)]]),
    "softmax": Check({"dim 1": lambda a: a.softmax(1), "dim 0": lambda a: a.softmax(0) * a}, [[(3, 4)], [(3, 3)]]),
    "log_softmax": Check(
        {"dim 1": lambda a: a.log_softmax(1), "dim 0": lambda a: a.log_softmax(0) * a}, [[(3, 4)], [(3, 3)]]
    ),
    "cross_entropy": Check(
        {"loss": lambda a: a.cross_entropy([0, 2, 1]), "twice": lambda a: a.cross_entropy([1, 1, 0]) * 2.0}, [[(3, 4)]]
    ),
    "mse_loss": Check(
        {"loss": lambda a, b: a.mse_loss(b), "3 *": lambda a, b: a.mse_loss(b) * 3.0}, [[(3, 4), (3, 4)]]
    ),
    "layer_norm": Check({"norm": lambda a: a.layer_norm(), "norm * a": lambda a: a.layer_norm() * a}, [[(3, 4)]]),
    "batch_norm": Check({"norm": lambda a: a.batch_norm(), "norm * a": lambda a: a.batch_norm() * a}, [[(4, 3)]]),
    "dropout": Check(
        {"one": lambda a: a.dropout([1, 0, 1, 0], 0.4), "two": lambda a: a.tanh().dropout([0, 1, 1, 0], 0.3)},
        [[(3, 4)]],
    ),
    "embedding": Check(
        {"rows": lambda a: a.embedding([0, 2, 0, 0]), "tanh": lambda a: a.tanh().embedding([1, 1])}, [[(3, 4)]]
    ),
    "broadcast": Check(
        {"a * b": lambda a, b: a * b, "b + a": lambda a, b: b + a, "a - b": lambda a, b: a - b},
        [[(3, 3), (3,)], [(3, 1), (3, 4)], [(2, 3, 4), (3, 1)], [(3, 3), (1, 3)]],
    ),
    "engine": Check(
        {
            "a + b": lambda a, b: a + b,
            "a * b": lambda a, b: a * b,
            "diamond": lambda a, b: (lambda c: (c * b).tanh() + c * c)(a * b),
            "early and late": lambda a, b: (lambda c: c + (c * b).tanh())(a + b),
            "shared": lambda a, b: (a * b + a) * b,
        },
        [[(3, 2), (3, 2)]],
    ),
    "branches": Check(
        {
            "sum of two": lambda a, b: a * b + a.tanh() + b.exp() * a,
            "sum of functions": lambda a, b: a.tanh() + b.exp(),
            "product and more": lambda a, b: a * b * a + a.relu() + b.tanh() * 2.0,
        },
        [[(3, 2), (3, 2)]],
    ),
    "terms": Check({"a term twice": lambda a, b: (lambda c: (c + b.tanh()) + c)(a * b)}, [[(3, 2), (3, 2)]]),
    "kept": Check(
        {
            "relu": lambda a: a.sigmoid().relu(),
            "log": lambda a: a.sqrt().log(),
            "pow": lambda a: a.sqrt() ** 3,
            "relu * a": lambda a: a.relu() * a,
        },
        [[positive((3, 4))]],
    ),
    "in place": Check({"relu": lambda a: a.relu(), "exp": lambda a: a.exp(), "tanh": lambda a: a.tanh()}, [[(3, 4)]]),
}
COMPOSED = ("sub", "div")  # in the second style they are made of other operations


def _mistakes() -> tuple[Mistake, ...]:
    rules = [
        Mistake(
            name,
            where,
            CHECKS[operations.SHOWN_BY.get(name, where)],
            operations.STYLES_OF.get(name) or (("closures",) if where in COMPOSED else ("closures", "functions")),
        )
        for name, where in operations.WRONG
    ]
    engine = [Mistake(*mistake, CHECKS[check], styles) for mistake, (check, styles) in arrays.ENGINE.items()]
    known = {entry.name: number for number, entry in enumerate(BUGS)}
    return tuple(sorted((*rules, *engine), key=lambda mistake: known[mistake.bug]))


MISTAKES = _mistakes()


def engine_of(mistake: Mistake, style: str) -> Any:
    """The engine of a student who made that mistake."""
    return STYLES[style]((mistake.bug, mistake.where))
