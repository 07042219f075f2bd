"""Modules that hold modules: Sequential, ModuleList, ModuleDict.

The one idea to know: in Sequential and ModuleList, the names of modules are their positions, "0", "1", ...
"""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from mini_autograd.nn.modules.module import Module, indented

L = TypeVar("L", bound="Numbered")


class Numbered(Module):
    """What Sequential and ModuleList share: modules in a row, named by their positions."""

    def append(self: L, module: Module) -> L:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: L, modules: Iterable[Module]) -> L:
        """Add several modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Put a module in front of the one at `index`; those behind it get new names."""
        modules = list(self)
        modules.insert(index, module)
        self._modules.clear()
        self.extend(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        modules = list(self)
        return self._part(index) if isinstance(index, slice) else modules[position(index, len(modules))]

    def _part(self, part: slice) -> Any:
        raise NotImplementedError


class Sequential(Numbered):
    """Modules one after the other, each fed with the result of the one before."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Sequential:  # type: ignore[override]
        """As in ModuleList, but the index must be within bounds, and the Sequential is returned."""
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        super().insert(index, module)
        return self

    def _part(self, part: slice) -> Sequential:
        return type(self)(OrderedDict(list(self._modules.items())[part]))  # they keep their names


class ModuleList(Numbered):
    """A list of modules, which are registered with the module that holds it."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def _part(self, part: slice) -> ModuleList:
        return type(self)(list(self)[part])

    def _inner_lines(self) -> list[str]:
        """The modules, printed; neighbors that look the same are printed once."""
        lines, start = [], 0
        for text, same in itertools.groupby(map(repr, self)):
            count = len(list(same))
            name, times = (f"{start}", "") if count == 1 else (f"{start}-{start + count - 1}", f"{count} x ")
            lines.append(f"({name}): {times}" + indented(text))
            start += count
        return lines

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, str(position(index, len(self))), module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index if isinstance(index, slice) else position(index, len(modules))]
        self._modules.clear()
        self.extend(modules)

    def pop(self, key: int) -> Module:
        """Remove the module at a position, and return it."""
        module = self[key]
        del self[key]
        return module


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self[name] = module

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def pop(self, key: str) -> Module:
        """Remove the module with a name, and return it."""
        return self._modules.pop(key)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add several modules, or replace those of the same names."""
        for name, module in modules.items() if isinstance(modules, Mapping) else modules:
            self[name] = module

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        return self._modules.items()


def position(index: int, length: int) -> int:
    """An index counted from the front."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length
