"""Modules that our own checks need, above all PyTorch, loaded once by the process that judges are forked from.

Loading them takes most of the startup time, so an assignment that uses no check does without.
PyTorch loads its symbolic shapes, and with them SymPy, at the first `backward` that is given a gradient.
"""

from __future__ import annotations

import contextlib
import importlib

import torch

import autograder.student  # noqa: F401  # what lessons import

LATER = (
    "torch.fx.experimental.symbolic_shapes",
    # what checks import when they are called, or when an answer is wrong
    *(f"autograder.checks.{name}" for name in ("diagnosis", "functions", "tangents")),
)

for name in LATER:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
# Otherwise every fork would load what PyTorch loads at its first operation.
numbers = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
torch.softmax(torch.relu(numbers @ numbers), -1).sum().backward()
del numbers
torch.set_num_threads(1)  # there is a worker for each processor, and no thread may run when judges are forked
