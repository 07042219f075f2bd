"""Modules that every worker needs and that are slow to import, loaded once by the process that workers are forked from.

nbformat compiles its schema at the first notebook. Here that happens before the fork instead of in each worker.
`preloaded_checks.py` has what our own checks need on top of this.
"""

from __future__ import annotations

import gc

import nbformat

# NumPy loads these on first use, which would happen again in the process of every notebook.
import numpy.random
import numpy.testing  # noqa: F401
from nbformat.v4 import new_notebook

import autograder.grading.submission.trying_solutions
import autograder.grading.workers.local  # noqa: F401
from autograder.grading.submission.worker import load
from autograder.grading.workers.preloaded_sandbox import libraries
from autograder.sandbox.process.forkserver import find_out_before_forking

nbformat.validate(new_notebook())
if libraries is not None:
    load(libraries)
    find_out_before_forking()
gc.freeze()  # a collection in a worker would touch, and so copy, every page
gc.enable()
