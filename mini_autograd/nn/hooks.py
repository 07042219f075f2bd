"""The handle that takes a module's hook away again.

Imports nothing of the package. The one idea to know: hooks run in the order in which they were registered, which is the
order of a dict.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

next_id = itertools.count().__next__


class RemovableHandle:
    """What `register_..._hook` returns. `remove()` takes the hook away; so does the end of a `with` block."""

    def __init__(self, hooks: dict[int, Callable], hook: Callable, prepend: bool = False) -> None:
        self.id, self._hooks = next_id(), hooks
        others = dict(hooks) if prepend else {}
        for number in others:
            del hooks[number]
        hooks[self.id] = hook
        hooks.update(others)

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()
