"""Is recording on? `no_grad`, `enable_grad` and `set_grad_enabled`, each a context manager and a decorator.

Imports nothing of the package. The switch belongs to the thread, as in PyTorch: a data-loading thread under `no_grad`
does not switch recording off for the thread that trains.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any


class _State(threading.local):
    enabled = True


state = _State()


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return state.enabled


class _GradMode:
    """Sets the switch on entry and puts it back on exit; one object may be entered again after it was left."""

    mode: bool

    def __enter__(self) -> None:
        self._before = state.enabled
        state.enabled = self.mode

    def __exit__(self, *error: object) -> None:
        state.enabled = self._before

    def __call__(self, function: Callable) -> Callable:
        """Run every call of `function` in this mode; of a generator, every step."""
        mode = self.mode
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def steps(*args: Any, **kwargs: Any) -> Iterator:
                generator = function(*args, **kwargs)
                while True:
                    with _Fixed(mode):
                        try:
                            value = next(generator)
                        except StopIteration as stop:
                            return stop.value
                    yield value

            return steps

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _Fixed(mode):
                return function(*args, **kwargs)

        return call


class _Fixed(_GradMode):
    def __init__(self, mode: bool) -> None:
        self.mode = mode


class no_grad(_GradMode):  # noqa: N801  (PyTorch's name)
    """Record nothing: results of operations do not require grad. `with no_grad():`, `@no_grad()` or `@no_grad`."""

    mode = False

    def __new__(cls, function: Callable | None = None) -> Any:
        context = super().__new__(cls)
        return context if function is None else context(function)


class enable_grad(no_grad):  # noqa: N801  (PyTorch's name)
    """Record again inside `no_grad`."""

    mode = True


class set_grad_enabled(_GradMode):  # noqa: N801  (PyTorch's name)
    """Switch recording on or off: at once when called, and back when left if used as a context manager."""

    def __init__(self, mode: bool) -> None:
        self._before = state.enabled
        self.mode = mode
        state.enabled = mode

    def __enter__(self) -> None:
        state.enabled = self.mode

    def __call__(self, function: Callable) -> Callable:
        """As a decorator it holds for the function only."""
        state.enabled = self._before
        return super().__call__(function)
