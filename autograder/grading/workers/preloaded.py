"""What the process that workers are forked from does first: it starts the warm processes, and imports what is slow.

The warm processes come first, as their imports take longest and so overlap with the others. They are started only if
the run has said which libraries the assignment uses.
"""

from __future__ import annotations

import gc
import importlib
import json
import os

from autograder.grading.workers.early_forkserver import TOLD, import_for_both
from autograder.judge import FOR_CHECKS, JUDGE
from autograder.sandbox.process.forkserver import find_out_before_forking, preload
from autograder.sandbox.process.kind import OF_OTHER_COURSES, STUDENT

FOR_FEEDBACK = ("autograder.grading.workers.feedback_pages", "nbgrader.converters.generate_feedback")

told = json.loads(os.environ.pop(TOLD, "{}"))
libraries = told.get("libraries")
if told.get("apart"):
    # A terminal sends Ctrl-C to the whole group of a command, and some service managers do the same with SIGTERM.
    # `watch` is asked to stop in this way, and its workers finish what they are grading.
    os.setpgid(0, 0)
# NumPy would start a thread for each processor when it is imported. There is a worker for each, and no thread may run
# when workers are forked.
os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
if libraries is not None:
    preload([*libraries, *([FOR_CHECKS] if told["checks"] else [])], JUDGE)
    preload(libraries, STUDENT if told["lesson"] else OF_OTHER_COURSES)
gc.disable()  # what is imported from here on stays; scanning it again and again takes a sixth of the time
import_for_both()
for name in (*(FOR_FEEDBACK if told.get("feedback") else ()), "autograder.grading.submission.trying_solutions"):
    importlib.import_module(name)
if libraries is not None:
    find_out_before_forking()
gc.freeze()  # a collection in a worker would touch, and so copy, every page
gc.enable()
