"""What the process that starts a run and every worker need: imported once, before one is forked from the other.

nbformat compiles its schema at the first notebook. Here that happens before any fork.
"""

from __future__ import annotations

import nbformat
from nbformat.v4 import new_notebook

import autograder.grading.workers.local  # noqa: F401

nbformat.validate(new_notebook())
