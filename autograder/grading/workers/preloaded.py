"""Modules that every worker needs and that are slow to import, loaded by the process that workers are forked from."""

from __future__ import annotations

import gc

import autograder.grading.submission.trying_solutions
import autograder.grading.workers.preloaded_everywhere  # noqa: F401
from autograder.grading.workers.preloaded_processes import libraries
from autograder.sandbox.process.forkserver import find_out_before_forking

if libraries is not None:
    find_out_before_forking()
gc.freeze()  # a collection in a worker would touch, and so copy, every page
gc.enable()
