"""Judging one notebook in a confined process made for it.

A test may hand a student's text or file name to a library that acts on it. So the judge's process gets what it needs
over a wire and sees nothing else of this machine (see `service.py`); what comes back is believed only as far as a judge
could say it. A test's changes to its process (`np.seterr`, a patched function, a seed) disappear with it, so no mark
depends on which notebook was judged before. A notebook that ends its process loses only its own marks.
"""

from __future__ import annotations

import contextlib
import json
import select
import signal
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from autograder.course_folder import PROJECT
from autograder.judge.seeds import seed_of
from autograder.judge.source import Source
from autograder.judge.verdict import Verdict
from autograder.notebooks.cells import CodeCell, code_cells
from autograder.notebooks.libraries import kind_for
from autograder.notebooks.reading import NOT_ISOLATED
from autograder.notebooks.verdicts import CellVerdict, earned_points
from autograder.sandbox.files import readable
from autograder.sandbox.inside.wire import Wire, WireClosed, WireError
from autograder.sandbox.process.allowance import Allowance, Usage
from autograder.sandbox.process.forkserver import branch_of, fork_from_warm, why_not_warm
from autograder.sandbox.process.kind import Kind
from autograder.sandbox.process.limits import MEGABYTE, Limits, SandboxDied, SandboxLost, SandboxUnavailable
from autograder.sandbox.process.process import isolation_in_force, start_confined, start_unsafe
from autograder.sandbox.process.starting import Started
from autograder.sandbox.process.supervision import Supervisor

JUDGE = Kind(
    name="judge",
    code={str(PROJECT / name): str(PROJECT / name) for name in ("autograder", "mini_autograd")},
    start="import sys; sys.path.append(sys.argv.pop(1)); from autograder.sandbox.inside.main import main; main()",
    serves="autograder.judge.service:Service",
    withholds=(),
    sacrificed=False,
    limits=Limits(
        memory=64_000 * MEGABYTE,  # of address space; `running.py` limits what one test may add
        processes=512,
        open_files=1024,
        file_size=1024 * MEGABYTE,
        disk=2048 * MEGABYTE,
        total_seconds=24 * 3600.0,
        message_bytes=2048 * MEGABYTE,
    ),
)
FOR_CHECKS = "autograder.grading.workers.preloaded_checks"
"""The module that a judge has to load if tests use our checks."""
REHEARSED_BEFORE = 3
"""Rehearse before this submission of an assignment (counted from 1): a rehearsal costs as much as a submission."""
SPARE_SECONDS = 60.0  # of processor time for a judge, in addition to what cells and tests may use
Code = list[tuple[Any, CodeCell]]
INVALID = "sent an invalid answer"


class JudgeDied(RuntimeError):  # noqa: N818
    """The process that judged a notebook was killed, by its own limits or from outside, or gave no possible verdict."""


def judge_apart(
    notebook: Any,
    *,
    source: Source | None = None,
    secret: bytes = b"",
    limits: Limits | None = None,
    files: Mapping[str, bytes] | None = None,
    unsafe: bool = False,
    points_only: bool = False,
    inside: Collection[str] = (),
    undecided: Collection[str] = (),
    student: str | None = None,
) -> Verdict:
    """Run and judge a notebook in place: the outputs of every code cell are rewritten (see `judge_notebook`).

    `source` is the instructor's side of it. `secret` seeds the inputs of gradient checks; the judge gets only seeds.
    `files` are those that lie beside the notebook. With `unsafe`, nothing is isolated. Raises
    SandboxUnavailable if student code cannot be isolated, or if a process does not start, and JudgeDied.
    """
    isolation = NOT_ISOLATED if unsafe else isolation_in_force()
    source, limits = source or Source(), limits or Limits()
    began = time.monotonic()
    beside = readable(files or {}, limits.files_bytes)
    code = list(code_cells(notebook))
    request = {
        "do": "judge",
        "key": source.key,
        "names": list(beside),
        "limits": asdict(limits),
        "seeds": _seeds(code, secret),
        "inside": list(inside),
        "undecided": list(undecided),
        "student": student,
        "points_only": points_only,
    }
    with _opened(source, limits, unsafe) as judge:
        seconds = 2 * (limits.total_seconds + len(code) * limits.cell_seconds) + SPARE_SECONDS
        answer = judge.ask(request, [json.dumps(notebook).encode(), *beside.values()], seconds)
        verdict = _believed(answer, code)
    verdict.isolation, verdict.seconds = isolation, time.monotonic() - began
    return verdict


def rehearse_apart(source: Source, *, secret: bytes = b"", limits: Limits | None = None, unsafe: bool = False) -> None:
    """Rehearse an assignment (see `rehearsal.py`) in the process that its next judges are forked from, if there is one.
    Errors are ignored here: they occur again, and are reported, when a submission is judged.
    """
    limits = limits or Limits()
    if unsafe or why_not_warm():
        return
    seeds = _seeds(list(code_cells(source.notebook)), secret)
    request = {"do": "rehearse", "key": source.key, "limits": asdict(limits), "seeds": seeds}
    with contextlib.suppress(JudgeDied, SandboxUnavailable):
        _tell_branch(source, limits)
        with contextlib.closing(_Judge(source, limits, here=True)) as branch:
            branch.ask(request, [], 2 * limits.total_seconds)


@contextlib.contextmanager
def _opened(source: Source, limits: Limits, unsafe: bool) -> Iterator[_Judge]:
    """A judge's process that has the source: from the branch that it is forked from, or told by itself."""
    forked = not unsafe and not why_not_warm()
    if forked:
        _tell_branch(source, limits)
    with contextlib.closing(_Judge(source, limits, unsafe)) as judge:
        if not forked:
            judge.prepare()
        yield judge


def _tell_branch(source: Source, limits: Limits) -> None:
    """Let the branch from which judges are forked have the source, if it has not."""
    told = branch_of(JUDGE).told
    if source.key not in told:
        with contextlib.closing(_Judge(source, limits, here=True)) as branch:
            branch.prepare()
        told.add(source.key)


def _seeds(code: Code, secret: bytes) -> dict[str, int]:
    """The seed of each test cell, by its name."""
    return {cell.grade_id: seed_of(secret, cell.grade_id) for _, cell in code if cell.is_test}


class _Judge:
    """A judge's process, or the branch that it would be forked from, and the supervisor of what it has started. The
    instructor's source says of which kind that is: the judge has no say in it.
    """

    def __init__(self, source: Source, limits: Limits, unsafe: bool = False, here: bool = False) -> None:
        start = start_unsafe if unsafe else start_confined
        self.source = source
        self.process: Started | None = None
        self.lifeline: socket.socket | None = None
        ours, theirs = socket.socketpair()
        line, their_line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.wire = Wire(ours, JUDGE.limits.message_bytes, JUDGE.limits.header_bytes)
        self.supervisor = Supervisor(line, limits, partial(start, kind=kind_for(source.notebook)))
        try:
            with theirs, their_line:
                if here:
                    self.lifeline = fork_from_warm([theirs, their_line], JUDGE.limits, JUDGE, here=True)[0]
                else:
                    self.process = start(ours, [theirs, their_line], JUDGE.limits, JUDGE)
                    self.process.wait_until_ready(ours, time.monotonic() + limits.start_seconds)
            self.wire.receive(time.monotonic() + limits.start_seconds)
        except (SandboxDied, WireError, OSError) as error:
            self.close()
            raise SandboxUnavailable(f"The judge's process could not be started: {error}.") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> int | None:
        """End everything. Returns the exit status of the judge, if that is known."""
        self.supervisor.close()
        self.wire.close()
        if self.lifeline is not None:
            self.lifeline.close()
        return None if self.process is None else self.process.end()

    def prepare(self) -> None:
        """Let it have the source and load what that needs."""
        request = {"do": "prepare", "key": self.source.key, "names": list(self.source.given)}
        self.ask(request, [self.source.text, *self.source.given.values()], JUDGE.limits.start_seconds)

    def ask(self, request: Mapping[str, Any], buffers: Sequence[bytes], seconds: float) -> bytes:
        """Send one request, supervise what the judge starts, and return the answer's buffer, if there is one."""
        try:
            self.wire.send(request, buffers, time.monotonic() + JUDGE.limits.start_seconds)
            self._supervise(seconds)
            reply, contents = self.wire.receive(time.monotonic() + JUDGE.limits.start_seconds)
        except WireError as error:
            self.supervisor.require_undisturbed()
            if self.process is not None and (fault := self.process.fault()):
                raise SandboxLost(fault) from None
            raise JudgeDied(self._how_it_ended(error)) from None
        self.supervisor.require_undisturbed()
        if not isinstance(reply, dict) or len(contents) > 1:
            raise JudgeDied(f"the process that judged it {INVALID}")
        if "raised" in reply:
            kind, text = map(str, reply["raised"])
            raise _RAISED.get(kind, JudgeDied)(text if kind in _RAISED else f"the judge stopped with {kind}: {text}")
        return bytes(contents[0]) if contents else b""

    def _supervise(self, seconds: float) -> None:
        """Answer the judge's questions until its own answer comes. Raises WireError if the time is up."""
        allowance = Allowance(seconds, partial(self._usage, "usage"), partial(self._usage, "quick_usage"))
        sources = [self.wire.connection, self.supervisor.connection]
        while wait := allowance.wait():
            ready = select.select(sources, [], [], wait)[0]
            if self.supervisor.connection in ready and not self.supervisor.answer():
                sources.remove(self.supervisor.connection)
            elif self.wire.connection in ready:
                return
        raise WireError("it used up its time")

    def _usage(self, method: str) -> Usage | None:
        own = None if self.process is None else getattr(self.process, method)()
        return own and own + self.supervisor.usage(method)

    def _how_it_ended(self, error: WireError) -> str:
        status = self.close()
        if not isinstance(error, WireClosed):
            how = str(error) or INVALID
        elif status == signal.SIGXCPU:  # with which a judge ends whose processor time is up
            how = "used up its processor time"
        else:
            how = f"was ended by signal {-status}" if status and status < 0 else "ended without an answer"
        return f"the process that judged it {how}"


_RAISED: dict[str, Callable[[str], Exception]] = {kind.__name__: kind for kind in (SandboxLost, SandboxUnavailable)}


def _believed(answer: bytes, code: Code) -> Verdict:
    """The verdict in an answer; its outputs go into the notebook. What a test has handed to a library may have turned
    the judge, so an answer that no judge could give is none. Raises JudgeDied.
    """
    from nbformat import from_dict  # here, because the judge's process imports this module too, and never does this

    tests = [(node, cell) for node, cell in code if cell.is_test]
    try:
        told, outputs = json.loads(answer)
        cells = [CellVerdict(**{**cell, "bugs": tuple(cell["bugs"])}) for cell in told["cells"]]
        verdict = Verdict(cells, [float(each) for each in told["test_seconds"]], restarts=int(told["restarts"]))
        for (node, _), seen in zip(code, outputs, strict=True):
            node["execution_count"], node["outputs"] = None, [from_dict(output) for output in seen]
        possible = [cell.grade_id for cell in verdict.cells] == [cell.grade_id for _, cell in tests] and all(
            0 <= (judged.points or 0) <= cell.points and earned_points(node) == judged.points
            for judged, (node, cell) in zip(verdict.cells, tests, strict=True)
        )
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise JudgeDied(f"the process that judged it {INVALID} ({type(error).__name__})") from None
    if not possible:
        raise JudgeDied(f"the process that judged it {INVALID}")
    return verdict
