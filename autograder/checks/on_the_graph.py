"""A failing expression on its own graph, opened where the gradient goes wrong: for a card in a student's notebook."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.localize.on_paper import simple_draw
from autograder.runs.engines import Draw
from autograder.runs.programs import Program
from autograder.runs.ways import Ways

SHOW = "Show on the graph"


def explorer_of(engine: Any, program: Program, draw: Draw) -> Any | None:
    """An explorer of the engine's graph: on simple numbers if it goes wrong on them too, else on the draw.

    None if no graph can be read, or nothing in it is wrong.
    """
    for tried in (simple_draw(draw), draw):
        try:
            unseen = io.StringIO()  # what the engine prints, the check has shown already
            with contextlib.redirect_stdout(unseen), contextlib.redirect_stderr(unseen):
                shown = None if tried is None else _explored(engine, program, replace(tried, again=None))
        except Exception:  # whatever the engine raises
            shown = None
        if shown is not None:
            return shown
    return None


def _explored(engine: Any, program: Program, draw: Draw) -> Any | None:
    from mini_autograd.widgets.graph_explorer import explore_fault

    ways = Ways(engine)
    leaves = [ways.leaf(value, draw.dtype) for value in draw.inputs]
    output = program.function(*leaves)
    with contextlib.suppress(Exception):  # a rule that raises can be seen on the graph, too
        ways.start(output, draw.cotangent, draw.dtype)
    names = dict(zip(program.arguments, leaves, strict=False))
    gradient = None if draw.cotangent is None else np.asarray(draw.cotangent)
    return explore_fault(output, names, gradient, f"{SHOW}: {program.name}")
