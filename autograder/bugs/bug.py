"""The form of a bug: a classic mistake, its description, and the ways of planting it in the reference engine.

The bank holds the bugs; this file defines what a bug is. A bug has one or more variants, because the same mistake can
sit in one rule or in all, and can take forms that give different numbers (a wrong order may be depth first or breadth
first).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from autograder.bugs.orders import Order
from autograder.runs.reference_patch import WrongRule, any_shape, symbol, wrong_rules
from autograder.runs.replay import Plant

KEPT_OR_ADDED = (True, False)
MOST_RULES_NAMED = 3
THE_RULE = "the rule "  # begins explanations that go on with what the rule does
LOOK_AT = {  # by family, for a bug that sits in no rule
    "engine": "`backward` itself: the order of the visits, and the line that adds to a gradient",
    "broadcast": "the place where the gradient of a broadcast input is summed to the shape of that input",
}


@dataclass(frozen=True)
class Variant:
    """One way of planting a bug. `operations`: the rules it sits in (empty: in the engine, not in a rule).

    `plants` holds alternatives, such as the order in which equal nodes are visited, among which a student's engine may
    choose again at every call. The variant explains a draw if any of them does. If only the order differs, `ordered`
    makes a plant from each of `orders`. `arrays_only`: plain numbers cannot show the bug.
    """

    operations: tuple[str, ...]
    plants: tuple[Plant, ...]
    ordered: Callable[[Order], Plant] | None = None
    orders: tuple[Order, ...] = ()
    arrays_only: bool = False


def in_orders(
    operations: Sequence[str],
    ordered: Callable[[Order], Plant],
    orders: tuple[Order, ...],
    arrays_only: bool = False,
) -> Variant:
    """A variant whose numbers depend on the order of the visits."""
    return Variant(tuple(operations), tuple(map(ordered, orders)), ordered, orders, arrays_only)


@dataclass(frozen=True, eq=False)
class Bug:
    """A classic mistake. `rules` gives a wrong rule per operation; `engine` makes variants outside the rules.

    `examples` shows the mistake in the formulas of some operations, for use when it is known to sit there.
    `forms` are further forms of the mistake: other wrong rules of the same kind. `shapes`: if the wrong rules give
    gradients of wrong shapes, what engines do with these: keep them (True) or add them to zeros (False).
    `drops_gradients`: its rules leave out the gradient of an input, and so may return fewer gradients than inputs.

    `by_hand`: describes a bug of an engine in gradients worked out without one; empty if it cannot occur there.
    `said_in` begins the sentence that names its rules, `{rules}` (with `{s}` for several of them and `{verb_s}` for a
    single one). `look_at` says what a student should read again: `{where}` is the usual text.

    The bank fills in `name` and `family`.
    """

    explanation: str
    hint: str
    misconception: str
    rules: Mapping[str, WrongRule] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    forms: tuple[Mapping[str, WrongRule], ...] = ()
    engine: Callable[[Sequence[str]], Sequence[Variant]] | None = None
    engine_operations: tuple[str, ...] = ()
    shapes: tuple[bool, ...] = ()
    drops_gradients: bool = False
    by_hand: str = ""
    said_in: str = "in the rule{s} of {rules},"
    look_at: str = "{where}"
    name: str = ""
    family: str = ""

    def explained(self, operations: Sequence[str] = ()) -> str:
        """The explanation, with an example for the one operation that the bug sits in, if that is known."""
        example = self.examples.get(operations[0]) if len(operations) == 1 else None
        return self.explanation if example is None else f"{self.explanation} ({example})"

    def sentence(self, operations: Sequence[str] = ()) -> str:
        """Where the bug sits, if that can be said, and what it is."""
        place, text = self.place(operations), self.explained(operations)
        if len(operations) == 1 and text.startswith(THE_RULE) and self.said_in == Bug.said_in:
            return f"{THE_RULE}of {_symbols(operations)} {text.removeprefix(THE_RULE)}"
        return f"{place and f'{place} '}{text}"

    def place(self, operations: Sequence[str]) -> str:
        """The beginning of a sentence: the rules in which the bug sits. Empty if they are unknown or too many."""
        if not operations or len(operations) > MOST_RULES_NAMED:
            return ""
        several = len(operations) > 1
        return self.said_in.format(rules=_symbols(operations), s="s" * several, verb_s="s" * (not several))

    def where_to_look(self, operations: Sequence[str]) -> str:
        """What the student should read again."""
        rules = _symbols(operations)
        otherwise = LOOK_AT.get(self.family, "the backward rules of the operations")
        where = f"the backward rule of {rules}" if rules else otherwise
        return self.look_at.format(where=where, rules=rules or "a rule")

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that the bug can sit in, or that can show it."""
        return tuple(dict.fromkeys(name for form in (self.rules, *self.forms) for name in form)) or (
            self.engine_operations
        )

    def variants(self, present: Sequence[str]) -> list[Variant]:
        """The ways of planting the bug in a program with these operations: in each rule alone, and in all of them."""
        if self.engine is not None:
            return list(self.engine(present)) if set(present) & set(self.engine_operations) else []
        found = []
        for form in (self.rules, *self.forms):
            names = [name for name in present if name in form]
            chosen = [(name,) for name in names] + ([tuple(names)] if len(names) > 1 else [])
            found += [Variant(operations, self._plants(form, operations)) for operations in chosen]
        return found

    def _plants(self, form: Mapping[str, WrongRule], operations: Sequence[str]) -> tuple[Plant, ...]:
        rules = {name: form[name] for name in operations}
        if not self.shapes:
            return (partial(wrong_rules, rules),)
        return tuple(partial(_misshapen, rules, stored) for stored in self.shapes)

    @contextmanager
    def planted(self, *operations: str) -> Iterator[None]:
        """The reference engine with this bug, in the given operations or in all that it applies to."""
        variant = max(self.variants(operations or self.operations), key=lambda variant: len(variant.operations))
        with variant.plants[0]():
            yield


def _symbols(operations: Sequence[str]) -> str:
    return " and ".join(f"`{symbol(operation)}`" for operation in operations)


@contextmanager
def _misshapen(rules: Mapping[str, WrongRule], stored: bool) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(any_shape(stored))
        stack.enter_context(wrong_rules(rules))
        yield
