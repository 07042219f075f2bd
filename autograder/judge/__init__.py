"""Decides what a notebook earns: takes its test cells out, runs them on this side against the sandbox, writes outputs
and points back.

What is imported here judges in a process of its own; `judge.py`, which that process runs, also needs NumPy.
"""

from autograder.judge.apart import FOR_CHECKS, JUDGE, REHEARSED_BEFORE, JudgeDied, judge_apart, rehearse_apart
from autograder.judge.source import Source
from autograder.judge.trial import try_solution
from autograder.judge.verdict import Verdict

__all__ = [
    "FOR_CHECKS",
    "JUDGE",
    "REHEARSED_BEFORE",
    "JudgeDied",
    "Source",
    "Verdict",
    "judge_apart",
    "rehearse_apart",
    "try_solution",
]
