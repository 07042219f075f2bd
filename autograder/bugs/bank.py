"""The bug bank: classic mistakes in automatic differentiation, each with its description and the change that plants it.

The entries are in `families`, one module per family. The name of a bug is the one that its module gives it. The same
entries serve diagnosis, audits, lessons and simulations.
"""

from __future__ import annotations

from dataclasses import replace

from autograder.bugs.bug import Bug
from autograder.bugs.families import (
    broadcast,
    engine,
    linear_algebra,
    local_rule,
    neural,
    reduction,
    shape,
    upstream,
)

FAMILIES = {
    "local rule": local_rule,
    "upstream": upstream,
    "broadcast": broadcast,
    "linear algebra": linear_algebra,
    "reduction": reduction,
    "shape and index": shape,
    "neural": neural,
    "engine": engine,
}

BUGS: tuple[Bug, ...] = tuple(
    replace(entry, name=name, family=family)
    for family, module in FAMILIES.items()
    for name, entry in vars(module).items()
    if isinstance(entry, Bug)
)
"""All bugs. If several explain a student's numbers equally well, the earliest is named first."""

BY_NAME = {entry.name: entry for entry in BUGS}


def bug(name: str) -> Bug:
    """The bug with this name. Raises KeyError if there is none."""
    return BY_NAME[name]
