"""What handles and what travels ask of the sandbox that holds the objects: a protocol, so that neither knows the class
`Sandbox`, which is built upon both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Referring(Protocol):
    """What a sandbox sees of a reference: which object it means, and of which process."""

    @property
    def sandbox(self) -> Port: ...

    @property
    def number(self) -> int: ...

    @property
    def generation(self) -> int: ...


class Port(Protocol):
    """The way to a submission's objects."""

    def apply(self, operation: str, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """An operator or builtin, by name, applied over there."""

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an object over there."""

    def run(self, function: Callable[..., Any], target: Any, *args: Any) -> Any:
        """Run a trusted function over there."""

    def base_value(self, ref: Referring) -> Any:
        """The plain value beneath an object whose class derives from a plain one."""

    def note(self, text: str) -> None:
        """Something that may explain a failed test later."""

    def number_of(self, ref: Referring) -> int:
        """The number of an object over there. Raises StaleHandle where it was lost."""

    def hold(self, ref: Referring) -> None:
        """Count a reference that was made."""

    def release(self, ref: Referring) -> None:
        """Count a reference that has gone."""

    def handle_of(self, ref: Referring) -> Any:
        """The handle for an object known by reference only."""

    def is_exception_proxy(self, value: object) -> bool:
        """Whether this is an exception of the submission, or a class of them, as it stands on this side."""
