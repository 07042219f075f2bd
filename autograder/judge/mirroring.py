"""Seeds that a test sets for the global random generators reach the student's process too, as they would in one
notebook.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from autograder.sandbox import Sandbox

SIMPLE = (int, float, str, bytes, type(None))


@contextlib.contextmanager
def seeds(sandbox: Sandbox) -> Iterator[None]:
    """While inside, `random.seed` and `numpy.random.seed` on this side also seed the generators of the sandbox."""
    before = random.seed, np.random.seed

    def seed_python(a: Any = None, version: int = 2) -> None:
        before[0](a, version)
        if isinstance(a, SIMPLE):
            sandbox.execute(f"import random as _r; _r.seed({a!r}); del _r")

    def seed_numpy(seed: Any = None) -> None:
        before[1](seed)
        if isinstance(seed, (int, np.integer)):
            sandbox.execute(f"import numpy as _n; _n.random.seed({int(seed)}); del _n")

    random.seed, np.random.seed = seed_python, seed_numpy  # type: ignore[assignment]
    try:
        yield
    finally:
        random.seed, np.random.seed = before
