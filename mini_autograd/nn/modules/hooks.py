"""Running the hooks of a module's forward pass.

The one idea to know: hooks run in the order in which they were registered, which is the order of a dict.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


def run_pre_hooks(module: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a forward pass, after the hooks that run before it."""
    for number, hook in list(module._forward_pre_hooks.items()):
        if number in module._takes_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                )
            args, kwargs = changed
        elif (changed := hook(module, args)) is not None:
            args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def run_hooks(module: Any, args: tuple, kwargs: dict[str, Any], result: Any, called: set[int]) -> Any:
    """The result of a forward pass, as the hooks after it change it. Adds the numbers of these hooks to `called`."""
    for number, hook in list(module._forward_hooks.items()):
        called.add(number)
        changed = call_hook(module, number, hook, args, kwargs, result)
        result = result if changed is None else changed
    return result


def run_remaining_hooks(module: Any, args: tuple, kwargs: dict[str, Any], called: set[int]) -> None:
    """After an error, call the `always_call` hooks that have not run yet. Errors that they raise become warnings."""
    for number, hook in list(module._forward_hooks.items()):
        if number in module._always_called and number not in called:
            try:
                call_hook(module, number, hook, args, kwargs, None)
            except Exception as error:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=3,
                )


def call_hook(module: Any, number: int, hook: Callable, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    """Call a hook that runs after the forward pass, with or without the keyword arguments."""
    return hook(module, args, kwargs, result) if number in module._takes_kwargs else hook(module, args, result)
