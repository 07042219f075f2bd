"""Makes solutions return zeros, or random numbers of the right shape. Runs inside the notebook that is audited.

A check that gives marks for such a solution is too weak. The source of this file is put into the notebook's own
process, so it imports only NumPy and the standard library and knows nothing of the course. It spoils the results of
functions. Engines (classes with `backward`) keep right values, and every gradient is spoiled.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

MARK = "__spoiled__"
random = np.random.default_rng(20)
instances: list[Any] = []  # every engine object made so far: a backward pass may write to any of them


def spoil(namespace: dict[str, Any], names: list[str], kind: str) -> None:
    """Spoil what a solution cell has defined: `names` in `namespace`; kind is "zeros" or "random"."""
    for name in names:
        value = namespace.get(name)
        if inspect.isfunction(value):
            namespace[name] = spoiled_function(value, kind)
        elif not inspect.isclass(value):
            namespace[name] = spoiled(value, kind)
    for value in list(namespace.values()):  # a cell may also have added methods to a class of an earlier cell
        if inspect.isclass(value) and value.__module__ == namespace.get("__name__"):
            spoil_engine(value, kind)


def spoiled(value: Any, kind: str) -> Any:
    """The value with every number replaced by zero or a random number. Other objects are returned as they are."""
    if isinstance(value, (bool, np.bool_, str, bytes)):
        return value
    if isinstance(value, (int, float, np.number)):
        return 0.0 if kind == "zeros" else float(random.normal())
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        return np.zeros(value.shape) if kind == "zeros" else random.normal(size=value.shape)
    if type(value) in (tuple, list, set):
        return type(value)(spoiled(item, kind) for item in value)
    if type(value) is dict:
        return {key: spoiled(item, kind) for key, item in value.items()}
    if inspect.isfunction(value):
        return spoiled_function(value, kind)
    return value


def spoiled_function(function: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """The function with its results spoiled."""
    if hasattr(function, MARK):
        return function

    @functools.wraps(function)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        return spoiled(function(*arguments, **keywords), kind)

    setattr(wrapper, MARK, True)
    return wrapper


def spoil_engine(cls: Any, kind: str) -> None:
    """Let every backward pass of a class end with spoiled gradients. Classes without `backward` are left alone."""
    backward = vars(cls).get("backward")
    if isinstance(backward, staticmethod):
        cls.backward = staticmethod(spoiled_function(backward.__func__, kind))
    elif inspect.isfunction(backward) and not hasattr(backward, MARK):
        cls.backward = spoiled_backward(backward, kind)
    start = vars(cls).get("__init__")
    if hasattr(cls, "backward") and inspect.isfunction(start) and not hasattr(start, MARK):
        cls.__init__ = remembering(start)


def spoiled_backward(backward: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """The backward pass, and then nonsense in every gradient it may have written."""

    @functools.wraps(backward)
    def wrapper(self: Any, *arguments: Any, **keywords: Any) -> Any:
        result = backward(self, *arguments, **keywords)
        for instance in instances:
            grad = getattr(instance, "grad", None)
            if grad is not None and hasattr(grad, "data") and not isinstance(grad, (np.ndarray, np.generic)):
                grad.data = spoiled(grad.data, kind)
            elif grad is not None:
                instance.grad = spoiled(grad, kind)
        return spoiled(result, kind)

    setattr(wrapper, MARK, True)
    return wrapper


def remembering(start: Callable[..., Any]) -> Callable[..., Any]:
    """An `__init__` that remembers the object."""

    @functools.wraps(start)
    def wrapper(self: Any, *arguments: Any, **keywords: Any) -> Any:
        instances.append(self)
        start(self, *arguments, **keywords)

    setattr(wrapper, MARK, True)
    return wrapper
