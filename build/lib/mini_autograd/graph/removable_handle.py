"""What registering a hook gives, of a tensor, a node or a module: a handle with which the hook is taken away again.

The one idea to know: hooks wait in a dict and run in its order, which is the order in which they were registered.
"""

from __future__ import annotations

import itertools
from typing import Any

next_id = itertools.count().__next__


class RemovableHandle:
    """Keeps an entry in a dict of hooks. `remove()` takes it away; so does the end of a `with` block.

    With `prepend` the entry comes before the others. Its key is a new number, unless one is given.
    """

    def __init__(self, hooks: dict, entry: Any, key: Any = None, prepend: bool = False) -> None:
        self.id = next_id() if key is None else key
        self.hooks: dict | None = hooks
        others = dict(hooks) if prepend else {}
        for other in others:
            del hooks[other]
        hooks[self.id] = entry
        hooks.update(others)

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        if self.hooks is not None:
            self.hooks.pop(self.id, None)
            self.hooks = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
