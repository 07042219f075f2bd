"""What both halves agree on: the special methods that a handle can forward, the bases with a plain value, a request."""

from __future__ import annotations

import collections

BRANCH = b"branch"  # asks the warm process for a fork that takes requests in its place


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BINARY = tuple("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split())  # noqa: SIM905
IN_PLACE = tuple(f"i{name}" for name in BINARY if name != "divmod")
COMPARISONS = ("lt", "le", "gt", "ge")
UNARY = ("neg", "pos", "abs", "invert")
OTHER = words("""
    float int complex index bool len round trunc floor ceil array hash getitem setitem delitem contains iter next
    reversed call enter exit await eq ne instancecheck subclasscheck
""")
SPECIAL_METHODS = frozenset(
    f"__{name}__" for name in (*BINARY, *(f"r{name}" for name in BINARY), *IN_PLACE, *COMPARISONS, *UNARY, *OTHER)
)

# A subclass of one of these (or one of these that is not plain by itself) has a plain value beneath whatever its class
# redefines.
BASES = words("""
    bool int float complex str bytes tuple list dict set frozenset range ndarray deque OrderedDict Counter defaultdict
    dict_keys dict_values dict_items mappingproxy
""")
CONTAINERS: dict[str, type] = {
    name: getattr(collections, name) for name in ("OrderedDict", "Counter", "defaultdict", "deque")
}
