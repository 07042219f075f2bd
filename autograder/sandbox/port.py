"""The protocol by which `handles` and `travel` use the sandbox that holds the objects. So neither depends on the class
`Sandbox`, which is built on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Referring(Protocol):
    """What a sandbox needs of a reference: which object it means, and in which process."""

    @property
    def sandbox(self) -> Port: ...

    @property
    def number(self) -> int: ...

    @property
    def generation(self) -> int: ...


class Port(Protocol):
    """Access to a submission's objects."""

    def apply(self, operation: str, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """Apply an operator or builtin, by name, over there."""

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an object over there."""

    def run(self, function: Callable[..., Any], target: Any, *args: Any) -> Any:
        """Run a trusted function over there."""

    def base_value(self, ref: Referring) -> Any:
        """The plain value beneath an object whose class derives from a plain one."""

    def note(self, text: str) -> None:
        """Note something that may explain a failed test later."""

    def number_of(self, ref: Referring) -> int:
        """The number of an object over there. Raises StaleHandle if it was lost."""

    def hold(self, ref: Referring) -> None:
        """Count a new reference."""

    def release(self, ref: Referring) -> None:
        """Count a reference as gone."""

    def handle_of(self, ref: Referring) -> Any:
        """The handle for an object known by reference only."""

    def is_exception_proxy(self, value: object) -> bool:
        """Whether this stands on this side for an exception of the submission, or for an exception class."""
