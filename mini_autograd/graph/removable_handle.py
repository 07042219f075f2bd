"""The handle that registering a hook on a tensor, a node or a module returns, and that can remove the hook.

The one idea to know: hooks are kept in a dict and run in its order, the order in which they were registered.
"""

from __future__ import annotations

import itertools
from typing import Any

next_id = itertools.count().__next__


class RemovableHandle:
    """An entry in a dict of hooks. `remove()`, or the end of a `with` block, takes it out.

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
        """Remove the hook; a second call does nothing."""
        if self.hooks is not None:
            self.hooks.pop(self.id, None)
            self.hooks = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
