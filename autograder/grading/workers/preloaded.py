"""Modules that every worker needs and that are slow to import, loaded once by the process that workers are forked from.

`preloaded_checks.py` has what our own checks need on top of this.
"""

from __future__ import annotations

import gc

# NumPy loads it at its first use, which would happen again in the process of every notebook.
import numpy.random  # noqa: F401

import autograder.grading.submission.trying_solutions
import autograder.grading.workers.preloaded_everywhere  # noqa: F401
from autograder.grading.submission.worker import load
from autograder.grading.workers.preloaded_sandbox import libraries
from autograder.sandbox.process.forkserver import find_out_before_forking

if libraries is not None:
    load(libraries)
    find_out_before_forking()
gc.freeze()  # a collection in a worker would touch, and so copy, every page
gc.enable()
