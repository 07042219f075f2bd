"""Decides what a notebook earns: takes its test cells out, runs them on this side against the sandbox, writes outputs
and points back.
"""

from autograder.judge.apart import JudgeDied, judge_apart
from autograder.judge.judge import CellVerdict, Verdict, judge_notebook, seed_of
from autograder.judge.rehearsal import REHEARSED_BEFORE, read_ahead, rehearse
from autograder.judge.trial import try_solution

__all__ = [
    "REHEARSED_BEFORE",
    "CellVerdict",
    "JudgeDied",
    "Verdict",
    "judge_apart",
    "judge_notebook",
    "read_ahead",
    "rehearse",
    "seed_of",
    "try_solution",
]
