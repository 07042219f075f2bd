"""The bug bank: classic mistakes in automatic differentiation, each with its description and the change that plants it.

The entries are in `families`, one module per family. The same entries serve diagnosis, audits, lessons and simulations.
"""

from __future__ import annotations

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

FAMILIES = (local_rule, upstream, broadcast, linear_algebra, reduction, shape, neural, engine)

BUGS: tuple[Bug, ...] = tuple(entry for family in FAMILIES for entry in family.BUGS)
"""All bugs. If several explain a student's numbers equally well, the earliest is named first."""

BY_NAME = {entry.name: entry for entry in BUGS}


def bug(name: str) -> Bug:
    """The bug with this name. Raises KeyError if there is none."""
    return BY_NAME[name]
