"""How an engine works: how a leaf is made, where its numbers and its gradient are, how `backward` is called.

The engine's own names and signatures say so; what they leave open is tried on a small sum. `Adapter` is for engines
about which that does not say enough. These classes travel into the sandbox: standard library and NumPy only.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.runs.plain_values import LONGEST_TEXT, described, plain

NUMBERS = ("data", "value", "numpy", "to_numpy", "val", "array", "_data", "_value", "item", "v", "x")
GRADIENTS = ("grad", "gradient", "derivative", "_grad", "_gradient", "adjoint", "grad_value", "g", "d")
BACKWARDS = ("backward", "backprop", "backpropagate", "backward_pass", "run_backward", "compute_gradients")
TRACKING = ("requires_grad", "require_grad", "requires_gradient", "needs_grad", "track_grad", "track_gradient")
SEED = re.compile(
    r"(^|_)(grads?|gradients?|seed|cotangent|upstream|incoming|adjoint|derivative|delta|d_?out(put)?|dy|dz|dl|g)(_|$)"
)
SWITCH = re.compile(
    r"(^|_)(retain|keep|create|zero|clear|reset|requires?|no|accumulate|clip|check|store|save|print|free|use|with|is)_"
)
VISITED = re.compile(r"visited|seen|order|topo|stack|path|nodes")
LIST = 2  # the form of a leaf
METHODS = {"add": "add", "mul": "mul", "sub": "sub", "truediv": "div", "matmul": "dot"}
"""The methods of engines without operators."""
NOWHERE = "the check cannot start `backward` here"


@dataclass(frozen=True)
class Adapter:
    """How to work with an engine, for `check_gradients(engine=...)`, where the check does not find it out by itself.

    `leaf(numbers)` makes a tensor that gets a gradient from a float or an array. The others may be left out:
    `numbers(tensor)` gives its float, array or lists, `gradient(leaf)` likewise its gradient after `backward`, and
    `backward(output, seed)` goes backward with the gradient `seed` of the output, a float or an array of its shape.
    `operations`: functions for what are not methods of a tensor, by the names of methods: {"tanh": functions.tanh}.
    """

    leaf: Callable[[Any], Any]
    numbers: Callable[[Any], Any] | None = None
    gradient: Callable[[Any], Any] | None = None
    backward: Callable[[Any, Any], Any] | None = None
    operations: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


class Unseeded(Exception):  # noqa: N818
    """The engine lacks what the check needs to give `backward` a gradient. `missing`: what it raised."""

    def __init__(self, missing: str) -> None:
        super().__init__(missing)
        self.missing = missing


class Ways:
    """The ways of one engine. `tracked`: it says which tensors need a gradient, as PyTorch does, so its leaves are made
    of arrays, and its gradients may be tensors. `seeding`: how `backward` gets the gradient of the output.
    """

    def __init__(self, engine: Any) -> None:
        self.adapter = engine if isinstance(engine, Adapter) else None
        self.engine = engine if self.adapter is None else engine.leaf
        self.option = None if self.adapter else _tracking(engine)
        self.tracked = self.option is not None
        self.form = 0  # of leaves
        self.lists = self.boxed = False  # numbers in lists; gradients as tensors
        self.ones: bool | None = None
        self.names: dict[str, str] = {}
        self.passed = ""  # how the seed is passed, once it is known: "array", "tensor" or "none"
        self.weighing = ""  # what the check did with an output whose `backward` takes no gradient
        self._signatures: dict[Any, Mapping[str, inspect.Parameter]] = {}  # every draw asks for them

    def leaf(self, value: Any, dtype: str) -> Any:
        """A fresh leaf. Engines of numbers get a Python float, engines that know `requires_grad` an array; an engine
        that raises at these gets whichever of a float, an array and a list it takes.
        """
        array = np.array(value, dtype=dtype)
        number: Any = float(array) if array.ndim == 0 else array
        forms: list[Any] = [array, number] if self.tracked else [number, array]
        forms += [array.tolist() if array.ndim else [float(array)]]
        first: BaseException | None = None
        for form in range(self.form, len(forms)):
            try:
                leaf = self._made(forms[form])
            except Exception as error:
                first = first or error
                if isinstance(error, NotImplementedError):
                    break
                continue
            if form < LIST and array.ndim and self._takes_for_one_number(leaf):
                continue
            self.form = form
            return leaf
        raise first or TypeError("no leaf")

    def _takes_for_one_number(self, leaf: Any) -> bool:
        """Whether an engine of lists has taken an array for a single number, so that it cannot be read."""
        try:
            return self.adapter is None and self._read(leaf, "numbers", NUMBERS) is None
        except (TypeError, ValueError):
            return True
        except Exception:
            return False

    def _made(self, numbers: Any) -> Any:
        return self.engine(numbers, **{self.option: True}) if self.option else self.engine(numbers)

    def numbers(self, tensor: Any, scalar: bool = False) -> Any:
        """The numbers of a tensor as a plain tree. `scalar`: one number is expected."""
        if self.adapter is not None and self.adapter.numbers is not None:
            tree = plain(self.adapter.numbers(tensor), self.tracked)
        else:
            tree = plain(self._read(tensor, "numbers", NUMBERS), self.tracked)
        if isinstance(tree, list):
            self.lists = True
        return self._unwrapped(tree, scalar)

    def gradient(self, leaf: Any, scalar: bool = False) -> Any:
        """The gradient of a leaf as a plain tree."""
        if self.adapter is not None and self.adapter.gradient is not None:
            return self._unwrapped(plain(self.adapter.gradient(leaf), True), scalar)
        found = self._read(leaf, "gradient", GRADIENTS)
        if not self.tracked and self._backward_of(found) and self._keeps_tensors(leaf):
            found = self._read(found, "numbers", NUMBERS)
        elif self.tracked and not _readable(found) and self.names.get("numbers", "data") != "data":
            with contextlib.suppress(Exception):
                found = self._read(found, "numbers", NUMBERS)
        return self._unwrapped(plain(found, self.tracked), scalar)

    def _unwrapped(self, tree: Any, scalar: bool) -> Any:
        """Lists as arrays, if the engine keeps its numbers in lists, and an array of one number as that number."""
        if isinstance(tree, list) and (self.lists or (scalar and len(tree) == 1 and self._begins_with_a_list())):
            with contextlib.suppress(TypeError, ValueError):
                tree = np.array(tree, dtype=np.float64)
        one = scalar and isinstance(tree, np.ndarray) and tree.ndim > 0 and tree.size == 1
        return tree.reshape(()) if one and (self.form == LIST or self.lists or self._lacks_numbers()) else tree

    def _lacks_numbers(self) -> bool:
        """Whether the engine calculates with arrays but not with those of shape (): its numbers have the shape (1,)."""
        if self.ones is None:
            self.ones = False
            with contextlib.suppress(Exception):
                self._small((2,))
                self.ones = True
                leaf, _ = self._small(())
                self.ones = np.shape(self._read(leaf, "numbers", NUMBERS)) == (1,)
        return self.ones

    def _begins_with_a_list(self) -> bool:
        """Whether the gradient of a new leaf is a list, so that one number in a list is this engine's way."""
        self.lists = isinstance(self._read(self.leaf(np.ones(()), "float64"), "gradient", GRADIENTS), list)
        return self.lists

    def _read(self, tensor: Any, what: str, names: tuple[str, ...]) -> Any:
        """The first attribute or method of these names that holds numbers, else the first that there is: a gradient is
        None before it arrives. Raises AttributeError as the usual name would.
        """
        known = self.names.get(what)
        for name in (known,) if known else names:
            found = getattr(tensor, name, None)
            if inspect.ismethod(found):
                try:
                    found = found()
                except TypeError:  # it needs arguments, so it is something else
                    continue
            if _readable(found) or (self.tracked and hasattr(found, "__array__")):
                self.names[what] = name
                return found
            if what == "gradient" and hasattr(tensor, name):
                return found
        return getattr(tensor, known or next((name for name in names if hasattr(tensor, name)), names[0]))

    def _keeps_tensors(self, leaf: Any) -> bool:
        """Whether the gradients of an engine are tensors by design, as the one that `backward` begins with."""
        with contextlib.suppress(Exception):
            fresh = self.leaf(np.ones(np.shape(self.numbers(leaf))), "float64")
            with contextlib.suppress(Exception):
                getattr(fresh, self._backward_of(fresh) or "backward")()
            self.boxed = self._backward_of(self._read(fresh, "gradient", GRADIENTS)) is not None
        return self.boxed

    def _backward_of(self, output: Any) -> str | None:
        return next((name for name in BACKWARDS if callable(getattr(output, name, None))), None)

    def _parameters(self, backward: Any) -> Mapping[str, inspect.Parameter]:
        """The parameters of a `backward`, a method of some result or a function."""
        function = getattr(backward, "__func__", backward)
        if function not in self._signatures:
            self._signatures[function] = inspect.signature(backward).parameters
        return self._signatures[function]

    def _seed_of(self, backward: Any) -> tuple[str, bool] | None:
        """The parameter of a `backward` that is the gradient of the output, and whether it has to be named; None if
        there is none. An option that is on or off is no gradient, whatever its name.
        """
        try:
            parameters = list(self._parameters(backward).values())
        except (TypeError, ValueError):
            return "gradient", False
        for number, parameter in enumerate(parameters):
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or _is_switch(parameter):
                continue
            one = type(parameter.default) in (int, float) and parameter.default == 1
            if SEED.search(parameter.name.lower()) or (number == 0 and one):
                return parameter.name, number > 0 or parameter.kind is parameter.KEYWORD_ONLY
            needed = parameter.default is parameter.empty
            if number == 0 and needed and not VISITED.search(parameter.name.lower()):
                return parameter.name, False
        return None

    def can_start(self, output: Any) -> bool:
        """Whether something can go backward from a result."""
        start = self.adapter is not None and self.adapter.backward is not None
        return start or hasattr(output, "backward") or self._backward_of(output) is not None

    def takes_gradient(self, output: Any) -> bool:
        """Whether `backward` is given the gradient of the output."""
        if self.adapter is not None and self.adapter.backward is not None:
            return True
        if hasattr(self.engine, "start_backward"):
            return True
        backward = getattr(output, self._backward_of(output) or "backward")
        return self.passed != "none" and self._seed_of(backward) is not None

    def start(self, output: Any, cotangent: Any, dtype: str) -> bool:
        """Go backward from an output with a cotangent; if `backward` takes none, from the sum of output times
        cotangent. Returns whether something has written into the array of the cotangent. Raises Unseeded if the engine
        lacks the operations for that.
        """
        if self.adapter is not None and self.adapter.backward is not None:
            shape = np.shape(self.numbers(output))
            cotangent = np.ones(shape) if cotangent is None else cotangent
            self.adapter.backward(output, float(cotangent) if np.ndim(cotangent) == 0 else np.array(cotangent, dtype))
            return False
        backward = getattr(output, self._backward_of(output) or "backward")
        if cotangent is None:
            self._without(output, backward)
            return False
        array = np.array(cotangent, dtype=dtype)
        seed: Any = float(array) if array.ndim == 0 and not self.tracked else array
        if self.form == LIST:
            seed = array.tolist() if array.ndim else [seed]
        if hasattr(self.engine, "start_backward"):
            self.engine.start_backward(output, seed)
        elif self.takes_gradient(output):
            seed = self.engine(seed) if self._passes_tensors(backward, output) else seed
            name, keyword = self._seed_of(backward) or ("", False)
            backward(**{name: seed}) if keyword else backward(seed)
        else:
            weighed = self._weighed(output, seed)
            getattr(weighed, self._backward_of(weighed) or "backward")()
        return not np.array_equal(array, np.array(cotangent, dtype=dtype), equal_nan=True)

    def _without(self, output: Any, backward: Any) -> None:
        """`backward` without an argument, or with a 1 if it needs one."""
        seed = self._seed_of(backward)
        needed = seed is not None and self._parameters(backward)[seed[0]].default is inspect.Parameter.empty
        if needed and self.passed != "none":
            self.start(output, np.ones(np.shape(self.numbers(output))), "float64")
        else:
            backward()

    def _weighed(self, output: Any, seed: Any) -> Any:
        """The sum of output times seed. Raises Unseeded if the engine cannot do that."""
        scalar = np.ndim(seed) == 0
        try:
            weighed = operated("mul", output, seed if scalar else self.engine(seed))
            for axis in range(np.ndim(seed)):  # in some engines a sum is that over the last axis
                if axis == 0 or np.size(self.numbers(weighed)) > 1:
                    weighed = weighed.sum()
        except Exception as error:
            said = described(error)
            self.weighing = ""
            asked = "`output * number`" if scalar else "`(output * tensor).sum()`"
            raise Unseeded(f"{asked} raised {said['type']}: {said['message']}"[:LONGEST_TEXT]) from None
        if not self.can_start(weighed):
            raise Unseeded("`output * number` is not a tensor" if scalar else "`(output * tensor).sum()` is no tensor")
        self.weighing = "(output * number)" if scalar else "(output * tensor).sum()"
        return weighed

    def _passes_tensors(self, backward: Any, output: Any) -> bool:
        """Whether the seed has to be a tensor: `backward` says so, or only that worked."""
        if self.passed:
            return self.passed == "tensor"
        name, _ = self._seed_of(backward) or ("", False)
        parameter = self._parameters(backward).get(name) if name else None
        wanted = "" if parameter is None else str(parameter.annotation)
        return type(output).__name__ in wanted and "|" not in wanted.replace("| None", "")

    def tried(self) -> bool:
        """After an error: try on a small sum whether `backward` wants its gradient in another way. Returns whether it
        does; the ways are those from then on.
        """
        if self.adapter is not None or self.passed or hasattr(self.engine, "start_backward"):
            return False
        with contextlib.suppress(Exception):
            self._keeps_tensors(self._small((2,))[0])
        ways = ("tensor", "array", "none") if self.boxed else ("", "array", "tensor", "none")
        for self.passed in ways:
            for shape in ((), (2,)):
                with contextlib.suppress(Exception):
                    leaf, output = self._small(shape)
                    if self.passed in ("", "none") or self.takes_gradient(output):
                        self.start(output, np.full(shape, 0.75), "float64")
                        if _is_number(self.gradient(leaf, scalar=shape == ())):
                            return bool(self.passed)
        self.passed = ""
        return False

    def _small(self, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """A leaf, and a small expression of it, with whichever operation there is."""
        leaf, other = self.leaf(np.full(shape, 0.5), "float64"), self.leaf(np.full(shape, 1.5), "float64")
        try:
            return leaf, operated("add", leaf, other)
        except Exception:
            return leaf, operated("mul", leaf, other)

    def begins(self) -> bool:
        """Whether `backward` without a gradient can begin at an array, and not only at a number."""
        with contextlib.suppress(Exception):
            _, output = self._small((2,))
            self._without(output, getattr(output, self._backward_of(output) or "backward"))
            return True
        return False

    def described(self) -> str:
        """The ways in one line. Leaves an engine alone whose own code raises an error."""
        if self.adapter is not None:
            given = [name for name in ("numbers", "gradient", "backward") if getattr(self.adapter, name) is not None]
            return f"an Adapter with {', '.join(['leaf', *given])}"
        for shape in ((), (2,)):
            try:
                leaf, output = self._small(shape)
                numbers = self.numbers(leaf, scalar=shape == ())
                break
            except Exception as error:
                said = described(error)
        else:
            return f"it cannot be tried: {said['type']}: {said['message']}"
        try:
            self.start(output, np.full(shape, 0.75), "float64")
            self.gradient(leaf, scalar=shape == ())
        except Exception:
            self.tried()
        kind = ("an array" if self.tracked else "a number", "an array" if not self.tracked else "a number", "a list")
        option = f", {self.option}=True" if self.option else ""
        float32 = isinstance(numbers, np.ndarray) and numbers.dtype == np.float32
        gradient = self.names.get("gradient", "grad")
        return "; ".join(
            [
                f"a leaf is {getattr(self.engine, '__name__', 'engine')}({kind[self.form]}{option})",
                f"its numbers are in .{self.names.get('numbers', 'data')}{', in float32' if float32 else ''}",
                f"its gradient is in .{gradient}{', a tensor' if self.boxed else ''}",
                self._call(output),
            ]
        )

    def _call(self, output: Any) -> str:
        name = self._backward_of(output)
        if name is None:
            return "it has no `backward`"
        if not self.takes_gradient(output):
            weighed = f", so the check calls it on {self.weighing}" if self.weighing else ", so it begins with 1"
            return f".{name}() takes no gradient{weighed}"
        seed, _ = self._seed_of(getattr(output, name)) or ("", False)
        kind = "a tensor" if self._passes_tensors(getattr(output, name), output) else "a number or an array"
        return f".{name}({seed}) takes {kind}"


def operated(name: str, *operands: Any) -> Any:
    """The result of an operator of the module `operator` or, in an engine without operators, of the method for it."""
    first, method = operands[0], METHODS.get(name)
    if method is None or hasattr(first, f"__{name}__") or not hasattr(first, method):
        return getattr(operator, name)(*operands)
    return getattr(first, method)(*operands[1:])


def _tracking(engine: Any) -> str | None:
    """The option of a call that asks for a gradient; the usual one if the signature is unknown."""
    try:
        parameters = inspect.signature(engine).parameters
    except (TypeError, ValueError):
        return TRACKING[0]
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return TRACKING[0]
    return next((name for name in TRACKING if name in parameters), None)


def _is_switch(parameter: inspect.Parameter) -> bool:
    on_or_off = type(parameter.default) is bool or parameter.annotation in (bool, "bool")
    return on_or_off or SWITCH.search(parameter.name.lower()) is not None


def _readable(value: Any) -> bool:
    """Whether a value is a number, or an array or lists of numbers."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(_readable, value))
    return isinstance(value, int | float | np.ndarray | np.generic)


def _is_number(tree: Any) -> bool:
    return type(tree) in (int, float) or (isinstance(tree, np.ndarray) and tree.dtype.kind in "iuf")
