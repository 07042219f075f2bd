"""Is recording on? `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`: context managers and decorators.

The switch belongs to the thread, as in PyTorch: a data-loading thread under `no_grad` does not switch recording off for
the thread that trains. It is one small number, so an operation needs only one check.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

RECORDING, INFERENCE, WATCHED, FORWARD = 1, 2, 4, 8
"""Bits of the mode. Without RECORDING, nothing is recorded. WATCHED: watchers, such as saved-tensor hooks, are on."""


DECORATED_CLASS = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
    "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method "
    "and nothing else."
)


class _State(threading.local):
    mode = RECORDING
    watchers: tuple = ()  # told of every node that is recorded, while WATCHED
    forward_level: Any = None  # the level of dual numbers, while FORWARD
    only_some_wanted = False  # whether a backward pass that ends at given inputs is under way


state = _State()


def switch(bit: int, on: bool) -> bool:
    """Set one bit of the mode, and return what it was."""
    before = state.mode
    state.mode = before | bit if on else before & ~bit
    return bool(before & bit)


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return bool(state.mode & RECORDING)


def is_inference_mode_enabled() -> bool:
    """Whether new tensors are inference tensors."""
    return bool(state.mode & INFERENCE)


class Mode:
    """Set the mode on entry and restore it on exit. Also a decorator; on a generator, it holds during each step."""

    def entered(self) -> int:
        """The mode that holds inside."""
        raise NotImplementedError

    def __enter__(self) -> None:
        self._before = state.mode
        state.mode = self.entered()

    def __exit__(self, *error: object) -> None:
        state.mode = self._before

    def clone(self) -> Mode:
        """A new object for each call of a decorated function, because the function may call itself."""
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__)
        return fresh

    def __call__(self, function: Callable) -> Callable:
        if inspect.isclass(function):
            warnings.warn(DECORATED_CLASS, FutureWarning, stacklevel=2)
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args: Any, **kwargs: Any) -> Iterator:
                with self.clone():
                    generator = function(*args, **kwargs)
                return (yield from _each_step(generator, self.clone))

            return steps

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return call


def _each_step(generator: Any, mode: Callable[[], Mode]) -> Any:
    """Run a generator with the mode on only during its own steps, whether values or errors are sent into it."""
    step, argument = generator.send, None
    while True:
        try:
            with mode():
                value = step(argument)
        except StopIteration as stop:
            return stop.value
        try:
            argument = yield value
            step = generator.send
        except GeneratorExit:
            with mode():
                generator.close()
            raise
        except BaseException as error:
            step, argument = generator.throw, error


class no_grad(Mode):  # noqa: N801  (PyTorch's name)
    """Record nothing: results of operations do not require grad. `with no_grad():`, `@no_grad()` or `@no_grad`."""

    def __new__(cls, function: Callable | None = None) -> Any:
        context = super().__new__(cls)
        return context if function is None else context(function)

    def entered(self) -> int:
        return state.mode & ~RECORDING


class enable_grad(no_grad):  # noqa: N801  (PyTorch's name)
    """Record again inside `no_grad`."""

    def entered(self) -> int:
        return state.mode | RECORDING


class set_grad_enabled(Mode):  # noqa: N801  (PyTorch's name)
    """Switch recording on or off when called; as a context manager, switch it back on exit."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._before = state.mode
        switch(RECORDING, mode)

    def entered(self) -> int:
        return state.mode | RECORDING if self.mode else state.mode & ~RECORDING

    def __enter__(self) -> None:
        state.mode = self.entered()

    def __call__(self, function: Callable) -> Callable:
        """As a decorator, hold for the function only."""
        state.mode = self._before
        return super().__call__(function)

    def clone(self) -> Mode:
        return super().clone() if state.mode & RECORDING == self.mode else type(self)(self.mode)

    def __repr__(self) -> str:
        return f"set_grad_enabled(mode={self.mode})"


class inference_mode(Mode):  # noqa: N801  (PyTorch's name)
    """Like `no_grad`, but tensors made inside can never take part in a recorded operation that saves them.

    They have no version counter. `inference_mode(False)` switches the mode off inside another `inference_mode`.
    """

    def __new__(cls, mode: Any = True) -> Any:
        context = super().__new__(cls)
        return context if isinstance(mode, bool) else inference_mode(True)(mode)

    def __init__(self, mode: Any = True) -> None:
        self.mode = mode

    def entered(self) -> int:
        return (state.mode | INFERENCE) & ~RECORDING if self.mode else (state.mode | RECORDING) & ~INFERENCE


class without_forward_mode:  # noqa: N801  (beside no_grad, it reads like it)
    """Context in which operations ignore dual numbers."""

    def __enter__(self) -> None:
        self.before = state.mode & FORWARD
        state.mode &= ~FORWARD

    def __exit__(self, *error: object) -> None:
        state.mode |= self.before
