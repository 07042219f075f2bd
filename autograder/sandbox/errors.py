"""Represents exceptions of student code here, by classes that inherit the same builtin type as the student's class.

So `except ValueError`, `pytest.raises` and `assertRaises` see what they would see in the student's own process, and an
exception class of the student's, looked up by name, can be used in an `except` clause. The classes are made here; only
their names come from inside.
"""

from __future__ import annotations

import keyword
from typing import Any

MAX_NAME = 80


class RemoteError:
    """Mixed into every exception that student code raised. `student_where` tells in which lines of the cells."""

    student_where: tuple[tuple[int, str, str], ...] = ()
    student_reference: Any = None

    def __getattr__(self, name: str) -> Any:
        """Attributes that the student's exception has, such as `error.balance`."""
        reference = object.__getattribute__(self, "student_reference")
        if reference is None or name.startswith("__"):
            raise AttributeError(name)
        return getattr(reference.handle(), name)


def clean_name(name: object, otherwise: str = "object") -> str:
    """A class name that came from inside, if it is an ordinary identifier."""
    usable = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name) and len(name) <= MAX_NAME
    return name if usable else otherwise  # type: ignore[return-value]


def make_class(name: object, bases: tuple[type, ...]) -> type[BaseException]:
    """A class that stands for a student's exception class and inherits the given classes."""
    bases = bases or (Exception,)
    if not any(issubclass(base, RemoteError) for base in bases):
        bases = (RemoteError, *bases)
    try:
        return type(clean_name(name, "Exception"), bases, {"__module__": "submission"})
    except TypeError:  # bases that cannot be combined here
        return type(clean_name(name, "Exception"), (RemoteError, Exception), {"__module__": "submission"})


def make_instance(kind: type[BaseException], message: str, arguments: tuple[Any, ...] | None) -> BaseException:
    """An exception of class `kind` with the student's arguments if they are plain, else with its text."""
    try:
        error = kind.__new__(kind)
    except TypeError:  # exception groups cannot be made without their parts
        kind = type(kind.__name__, (RemoteError, Exception), {"__module__": "submission"})
        error = kind()
    error.args = arguments if arguments is not None else (message,)
    if _text(error) != message:
        error = _with_text(kind)(message)
        error.args = arguments if arguments is not None else (message,)
        error.student_text = message  # type: ignore[attr-defined]
    return error


def that_ends_no_loop(error: BaseException) -> BaseException:
    """Turn a StopIteration that a student's function raised into another error here: it would end a test's loop, such
    as one over `map(answer, inputs)`, before anything is compared. (In a generator, Python does the same.)
    """
    kind = make_class(type(error).__name__, (RuntimeError,))
    other = make_instance(kind, str(error), error.args)
    other.__dict__.update(error.__dict__)
    return other


def _text(error: BaseException) -> str | None:
    try:
        return str(error)
    except Exception:
        return None


def _with_text(kind: type[BaseException]) -> type[BaseException]:
    """A subclass of `kind` with the text that the student's own `__str__` returned."""

    def text(self: Any) -> str:
        return str(self.__dict__.get("student_text", ""))

    return type(
        kind.__name__, (kind,), {"__module__": "submission", "__str__": text, "__init__": lambda self, *args: None}
    )
