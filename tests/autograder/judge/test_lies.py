"""The judge against a process that answers anything at all: in ten thousand messages, none earns a point, lets an
exception escape, or makes a class impossible to grade.

The messages are random: junk, frames whose lengths lie, and well-formed answers about objects that do not exist,
classes that claim every special method, errors of impossible kinds, arguments that were changed into others. Each list
of messages follows from a number, which a failure shows, so the list can be made again.
"""

import contextlib
import copy
import json
import socket
import struct
from random import Random
from typing import Any

import pytest
import torch as torch  # here: a test that is stopped during the import would leave half of it

from autograder.judge.judge import judge_notebook
from autograder.sandbox.inside.wire import LENGTH, MAGIC, PREFIX, Wire
from autograder.sandbox.process.limits import Limits
from autograder.sandbox.process.process import StudentProcess
from tests.autograder.judge.notebooks import notebook, stock_points
from tests.autograder.junk import code, methods, number, some, text

LIMITS = Limits(cell_seconds=5, query_seconds=5, grace_seconds=1, restarts=10**9, message_bytes=1 << 20)
TESTS = [
    "# test\nassert f(1) == 123456789.25",
    "# test\nassert isinstance(f('x'), str) and f('x').startswith('only this text')",
    "# test\nnp.testing.assert_allclose(f(np.arange(3.0)), [1.25, 99.5, -3.75])",
    "# test\nassert sorted(f([3, 1])) == ['a9', 'b8', 'c7']",
    "# test\nwith f(4) as opened:\n    assert opened.read(5) == 'these words'",
    "# test\ntry:\n    f(5)\nexcept ValueError as error:\n    assert str(error) == 'exactly this'\nelse:\n    assert 0",
    "# test\nf(7)\nassert open('made.txt').read() == 'these words, too'",
    "# test\na = f(6)\na += 1\nassert abs(a[0].b - 7.125) < 1e-9 and len(a) == 7 and a['k'](1) in (2.5,)",
]


def error(r: Random) -> Any:
    if r.random() < 0.3:
        return code(r)
    found = {"class": r.choice([code(r), ["x", "ValueError"]]), "message": r.choice([text(r), code(r)])}
    return found | {key: code(r) for key in ("args", "where", "instance") if r.random() < 0.5}


def classes(r: Random) -> Any:
    return r.choice([code, lambda r: some(r, lambda r: [number(r), methods(r)], 0, 4)])(r)


def files(r: Random) -> Any:
    """What has changed in the working directory: forbidden file names among allowed ones."""
    names = ["made.txt", "a/b.txt", "../out.txt", "/tmp/out.txt", ".hidden", "matplotlibrc", "x" * 300, 7, None]
    parts = {
        "names": lambda r: some(r, lambda r: r.choice(names), 0, 4),
        "states": lambda r: some(r, code, 0, 4),
        "gone": lambda r: some(r, lambda r: r.choice(names), 0, 4),
        "before": number,
    }
    return r.choice([code, lambda r: {key: make(r) for key, make in parts.items() if r.random() < 0.9}])(r)


def answer(r: Random) -> dict[str, Any]:
    keys = ["value", "outputs", "changed", "failed"]
    parts = {**dict.fromkeys(keys, code), "error": error, "classes": classes, "files": files}
    return {key: make(r) for key, make in parts.items() if r.random() < 0.5}


def message(r: Random) -> tuple[str, Any, Any]:
    """What a liar says next: the kind of a message, its content and its data."""
    kind = r.choice(["answer", "answer", "answer", "other", "lie", "raw"])
    if kind == "lie":
        return kind, [r.choice([0, 1, 9, 2**20, 2**31]) for _ in range(3)], r.randbytes(r.randint(0, 40))
    if kind == "raw":
        return kind, None, r.randbytes(r.randint(0, 60))
    other = r.choice([code(r), {text(r): code(r) for _ in range(r.randint(0, 3))}])
    buffers = some(r, lambda r: r.randbytes(r.randint(0, 24)), 0, 3)
    return kind, answer(r) if kind == "answer" else other, buffers


JUDGED = notebook("import numpy as np\ndef f(x):\n    return 0", *TESTS)
sent = 0


class Liar(StudentProcess):
    """Replaces a submission's process: whatever it is asked, it sends the next message on its list."""

    script: list = []  # noqa: RUF012  (one list for all processes of an example)

    def __init__(self, limits, start):
        self.limits, self.alive, self.ended, self.ready, self.process = limits, True, False, True, self
        self.disturbed_by = ""
        ours, self.theirs = socket.socketpair()
        self.wire = Wire(ours, limits.message_bytes, limits.header_bytes)

    def exchange(self, header, buffers, seconds):
        global sent
        with contextlib.suppress(BrokenPipeError):
            if self.script:
                sent += 1
                whole = self.say(*self.script.pop(0), header["id"])
            if not self.script or not whole:
                self.theirs.shutdown(socket.SHUT_WR)
        return super().exchange(header, buffers, seconds)

    def say(self, kind, content, data, number):
        """Send one message. Return False if it may be incomplete."""
        if kind == "lie":
            text, count, total = content
            self.theirs.sendall(struct.pack("<4sIIQ", MAGIC, text, count, total) + data)
        elif kind == "raw":
            self.theirs.sendall(data)
        else:
            text = json.dumps({**content, "id": number} if kind == "answer" else content).encode()
            head = PREFIX.pack(MAGIC, len(text), len(data), sum(map(len, data)))
            self.theirs.sendall(head + b"".join(LENGTH.pack(len(d)) for d in data) + text + b"".join(data))
        return kind in ("answer", "other")

    def interrupt(self):
        pass

    def usage(self):
        return None

    quick_usage = usage

    def fault(self):
        return ""

    def has_ended(self):
        return False

    def end(self):
        self.theirs.close()


def lie(example: int) -> None:
    """Send the same messages in several orders, so each answers other questions."""
    script = some(Random(example), message, 8, 40)
    for start in range(0, len(script), max(1, len(script) // 4)):
        Liar.script = script[start:] + script[:start]
        judged = copy.deepcopy(JUDGED)
        verdict = judge_notebook(judged, limits=LIMITS)
        assert [cell.points for cell in verdict.cells] == [0.0] * len(TESTS)
        assert stock_points(judged) == [0.0] * len(TESTS)
        assert all(cell.message for cell in verdict.cells)
        assert len(json.dumps(judged)) < 200_000


@pytest.mark.slow
def test_ten_thousand_lies_earn_nothing(monkeypatch):
    monkeypatch.setattr("autograder.sandbox.sandbox.StudentProcess", Liar)
    for example in range(400):
        lie(example)
    assert sent >= 10_000, sent


CHECK = """# test
from autograder.student import check_gradients
check_gradients({"a * b": lambda a, b: a * b}, [(2, 3), (2, 3)], points=2)"""
WORDS = ["draws", "value", "gradients", "error", "type", "message", "draw", "again"]


def tree(r: Random, depth: int = 0) -> Any:
    """A value that may stand in an answer about gradients."""
    if depth == 4 or r.random() < 0.3:
        return r.choice([lambda r: None, lambda r: r.random() < 0.5, number, text])(r)
    return r.choice([listed, named])(r, depth + 1)


def listed(r: Random, depth: int) -> list[Any]:
    return ["l", some(r, lambda r: tree(r, depth), 0, 3)]


def named(r: Random, depth: int) -> list[Any]:
    names = r.sample(WORDS, r.randint(0, len(WORDS)))
    return ["d", names, [tree(r, depth) for _ in names]]


def reply(r: Random) -> tuple[str, dict[str, Any], list[Any]]:
    """Half of the answers begin like right ones: one entry for each expression, with its draws in a list."""
    beginning = ["l", [["d", ["draws"], [["l", some(r, lambda r: named(r, 2), 0, 5)]]]]]
    return "answer", {"value": r.choice([tree(r), beginning])}, []


def lie_about_gradients(example: int) -> None:
    r = Random(example)
    replies = some(r, reply, 0, 4)
    engine = ("answer", {"value": ["h", 1, 2, {"name": "type", "special": ["__call__"], "base": None}]}, [])
    Liar.script = [("answer", {}, []), engine, *replies]
    judged = notebook("class MiniTensor: pass", CHECK)
    verdict = judge_notebook(judged, limits=LIMITS)
    assert [cell.points for cell in verdict.cells] == [0.0]
    assert verdict.cells[0].message


@pytest.mark.slow
def test_lies_about_gradients_earn_nothing(monkeypatch):
    monkeypatch.setattr("autograder.sandbox.sandbox.StudentProcess", Liar)
    for example in range(100):
        lie_about_gradients(example)


@pytest.mark.parametrize("value", [3, ["n", "<f8", 0]])
def test_the_liar_is_believed_where_it_tells_the_truth(monkeypatch, value):
    """Otherwise the tests above would show nothing."""
    monkeypatch.setattr("autograder.sandbox.sandbox.StudentProcess", Liar)
    function = ("answer", {"value": ["h", 1, 2, {"name": "function", "special": ["__call__"], "base": None}]}, [])
    answer = ("answer", {"value": value}, [struct.pack("<d", 3.0)])
    Liar.script = [("answer", {}, []), function, answer, ("answer", {}, [])]
    assert judge_notebook(notebook("f = 0", "# test\nassert f(1) == 3"), limits=LIMITS).points == 2
