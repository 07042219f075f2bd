"""A rehearsal of an assignment in the process that judges are forked from.

Each fork begins with what its parent has loaded, compiled and computed; what the fork adds is lost when it ends. So the
parent does the work that every submission needs: it takes the tests apart and, if they use our checks, whose right
answers are the same for the whole class, judges the solution once. In lessons this halves the time per submission.
"""

from __future__ import annotations

import contextlib
import copy
import os
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from autograder.judge.judge import judge_notebook
from autograder.judge.outside.mirroring import touches_files
from autograder.judge.outside.steps import test_code
from autograder.notebooks.cells import code_cells
from autograder.notebooks.trusted import trusted_names

OUR_CHECKS = "autograder.student"


def rehearse(source: Any, **options: Any) -> None:
    """Prepare this process for submissions of an assignment. `source` is the instructor's notebook; the options are
    those of `judge_notebook`. Errors are ignored here: they occur again, and are reported, when a submission is judged.
    """
    read_ahead(source)
    with contextlib.suppress(Exception):
        if any(OUR_CHECKS in cell.source for _, cell in code_cells(source)):
            with _as_it_was():
                judge_notebook(copy.deepcopy(source), source=source, points_only=True, **options)


def read_ahead(source: Any) -> None:
    """Take the tests of the instructor's notebook apart, and find the instructor's names, for all judges that are
    forked from this process. Errors are ignored, as in `rehearse`.
    """
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trusted_names(source, source)
        for _, cell in code_cells(source):
            if cell.is_test:
                _take_apart(cell.source, f"<test {cell.grade_id}>")


def _take_apart(source: str, filename: str) -> None:
    touches_files(source)
    with contextlib.suppress(SyntaxError, ValueError):
        for step in test_code(source, filename).steps:
            assert step.code is not None
            assert step.uses is not None


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """Restore process state that a test may have changed and not restored."""
    generators = random.getstate(), np.random.get_state()
    place = dict(os.environ), list(sys.path), os.getcwd(), sys.getrecursionlimit()
    torch: Any = sys.modules.get("torch")
    dtype = None if torch is None else (torch.get_default_dtype(), torch.is_grad_enabled())
    try:
        with np.errstate(), np.printoptions(), warnings.catch_warnings():
            yield
    finally:
        random.setstate(generators[0])
        np.random.set_state(generators[1])
        os.environ.clear()
        os.environ.update(place[0])
        sys.path[:] = place[1]
        os.chdir(place[2])
        sys.setrecursionlimit(place[3])
        if dtype is not None:
            torch.set_default_dtype(dtype[0])
            torch.set_grad_enabled(dtype[1])
