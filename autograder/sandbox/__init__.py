"""Runs a notebook's cells isolated from everything else and answers questions about their objects with plain values;
knows nothing of marks.
"""

from autograder.sandbox.handles import Handle, is_handle
from autograder.sandbox.process.isolation import isolation_available
from autograder.sandbox.process.limits import (
    Limits,
    NotAnswered,
    NotRebuilt,
    Refused,
    SandboxDied,
    SandboxError,
    SandboxUnavailable,
    StaleHandle,
)
from autograder.sandbox.process.process import isolation_in_force
from autograder.sandbox.sandbox import CELL_DIED, CellResult, Sandbox

__all__ = [
    "CELL_DIED",
    "CellResult",
    "Handle",
    "Limits",
    "NotAnswered",
    "NotRebuilt",
    "Refused",
    "Sandbox",
    "SandboxDied",
    "SandboxError",
    "SandboxUnavailable",
    "StaleHandle",
    "is_handle",
    "isolation_available",
    "isolation_in_force",
]
