"""What a bug is: a classic mistake, its words, and the ways of planting it in the reference engine.

The bank holds the bugs; this file holds their shape. A bug has one or several variants, because the same mistake can
sit in one rule or in all, and can take forms that give different numbers (a wrong order: depth first, breadth first).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from autograder.bugs.planting import WrongRule, wrong_rules

Plant = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True)
class Variant:
    """One way of planting a bug. `operations`: the rules it sits in (empty: in the engine, not in a rule).

    `plants` holds alternatives among which a student's engine may choose anew at every call, such as the order in which
    equal nodes are visited; the variant explains a draw if any of them does.
    """

    operations: tuple[str, ...]
    plants: tuple[Plant, ...]


@dataclass(frozen=True)
class Bug:
    """A classic mistake. `rules` gives a wrong rule per operation; `engine` makes variants that are no rule's fault."""

    name: str
    family: str
    explanation: str
    hint: str
    misconception: str
    rules: Mapping[str, WrongRule] = field(default_factory=dict)
    engine: Callable[[Sequence[str]], Sequence[Variant]] | None = None
    engine_operations: tuple[str, ...] = ()

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that the bug can sit in or show itself with."""
        return tuple(self.rules) or self.engine_operations

    def variants(self, present: Sequence[str]) -> list[Variant]:
        """The ways of planting the bug in a program with these operations: in each rule alone, and in all of them."""
        if self.engine is not None:
            return list(self.engine(present))
        names = [name for name in present if name in self.rules]
        chosen = [(name,) for name in names] + ([tuple(names)] if len(names) > 1 else [])
        return [Variant(operations, (self._plant(operations),)) for operations in chosen]

    def _plant(self, operations: Sequence[str]) -> Plant:
        return lambda: wrong_rules({name: self.rules[name] for name in operations})

    @contextmanager
    def planted(self, *operations: str) -> Iterator[None]:
        """The reference engine with this bug, in the given operations or in all that it applies to."""
        variant = max(self.variants(operations or self.operations), key=lambda variant: len(variant.operations))
        with variant.plants[0]():
            yield
