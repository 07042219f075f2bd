"""Judging one notebook in a process forked for it.

A test's changes to its process (`np.seterr`, a patched function, a seed) disappear with the process, so no mark depends
on which notebook was judged before. A notebook that ends its process loses only its own marks.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any, NoReturn

from autograder.judge.judge import Verdict, judge_notebook
from autograder.notebooks.libraries import withheld_from
from autograder.sandbox.process.forkserver import end_warm_process, prepare_to_share, share_warm_process
from autograder.sandbox.process.isolation import require_isolation
from autograder.sandbox.process.parent import end_with

FAILED = 1


class JudgeDied(RuntimeError):  # noqa: N818
    """The process that judged a notebook was killed: by its own limits, or from outside."""


def judge_apart(notebook: Any, **options: Any) -> Verdict:
    """Call `judge_notebook` with these options in a process of its own. Raises what it raises, and JudgeDied."""
    if not options.get("unsafe"):
        require_isolation()
        prepare_to_share(withheld_from(options.get("source")))
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        os.close(reading)
        _judge_and_leave(parent, writing, notebook, options)
    os.close(writing)
    try:
        with open(reading, "rb") as file:
            answer = file.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        end_warm_process()  # and with it what the submission still runs
        raise
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        end_warm_process()
        raise JudgeDied(f"the process that judged it {_how_it_ended(status)}")
    judged, verdict = pickle.loads(answer)
    if isinstance(verdict, BaseException):
        raise verdict
    notebook.clear()
    notebook.update(judged)
    return verdict


def _judge_and_leave(parent: int, writing: int, notebook: Any, options: dict[str, Any]) -> NoReturn:
    """What the fork does. It always exits here, because everything that it inherited belongs to its parent."""
    status = FAILED
    try:
        end_with(parent)
        share_warm_process()
        try:
            answer = pickle.dumps((notebook, judge_notebook(notebook, **options)))
        except Exception as error:
            answer = _pickled(error)
        with open(writing, "wb") as file:
            file.write(answer)
        status = 0
    finally:
        try:
            end_warm_process()  # if this process had to start one of its own
        finally:
            os._exit(status)


def _pickled(error: Exception) -> bytes:
    try:
        return pickle.dumps((None, error))
    except Exception:
        return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))


def _how_it_ended(status: int) -> str:
    if status == -signal.SIGXCPU:
        return "used up its processor time"
    return f"was ended by signal {-status}" if status < 0 else "ended without an answer"
