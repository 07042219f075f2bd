"""Puts the process that workers are forked from, and so the workers, into a process group of their own.

A terminal sends Ctrl-C to the whole group of a command, and some service managers do the same with SIGTERM. `watch` is
asked to stop in this way, and its workers finish what they are grading.
"""

from __future__ import annotations

import os

os.setpgid(0, 0)
