"""Everything slow that a worker needs, loaded once by the process that workers are forked from.

PyTorch loads its symbolic shapes, and with them SymPy, at the first `backward` that is given a gradient; nbformat
compiles its schema at the first notebook. Here that happens before the fork instead of in each worker.
"""

from __future__ import annotations

import contextlib
import gc
import importlib

import nbformat
import torch
from nbformat.v4 import new_notebook

import autograder.grading.workers.local
import autograder.judge
import autograder.student  # noqa: F401  # what lessons import

LATER = (
    "torch.fx.experimental.symbolic_shapes",
    # what checks import when they are called, or when an answer is wrong
    *(f"autograder.checks.{name}" for name in ("behaviour", "diagnosis", "functions", "tangents")),
)

for name in LATER:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
nbformat.validate(new_notebook())
torch.set_num_threads(1)  # there is a worker for each processor; and no thread may live when workers are forked
gc.collect()
gc.freeze()  # a collection in a worker would touch, and so copy, every page
