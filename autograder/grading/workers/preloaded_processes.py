"""Starts the warm processes that all workers share, before the process that they are forked from imports anything else.
Their imports take longest, and so they overlap with those of `preloaded.py`.

They are started only if the run has said which libraries the assignment uses.
"""

from __future__ import annotations

import gc
import os

from autograder.grading.workers.early_forkserver import CHECKS, LESSON, LIBRARIES
from autograder.judge import FOR_CHECKS, JUDGE
from autograder.sandbox.process.forkserver import preload
from autograder.sandbox.process.kind import OF_OTHER_COURSES, STUDENT

named, checks, lesson = (os.environ.pop(name, None) for name in (LIBRARIES, CHECKS, LESSON))
libraries = None if named is None else named.split()
# NumPy would start a thread for each processor when it is imported. There is a worker for each, and no thread may run
# when workers are forked.
os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
if libraries is not None:
    preload([*libraries, *([FOR_CHECKS] if checks else [])], JUDGE)
    preload(libraries, STUDENT if lesson else OF_OTHER_COURSES)
gc.disable()  # what is imported from here on stays; scanning it again and again takes a sixth of the time
