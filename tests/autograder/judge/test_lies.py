"""The judge against a process that answers anything at all: ten thousand messages, and never a point, an exception
that gets out, or a class that cannot be graded.

The messages are made by Hypothesis: junk, frames whose lengths lie, and well-formed answers about objects that do not
exist, classes that claim every special method, errors of impossible kinds, arguments that were changed into others.
"""

import contextlib
import copy
import json
import socket
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.judge import judge_notebook
from autograder.sandbox import Limits
from autograder.sandbox.inside.protocol import BASES, SPECIAL_METHODS
from autograder.sandbox.inside.wire import LENGTH, MAGIC, PREFIX, Wire
from autograder.sandbox.process import StudentProcess
from tests.autograder.judge.notebooks import notebook, stock_points

LIMITS = Limits(cell_seconds=5, query_seconds=5, grace_seconds=1, restarts=10**9, message_bytes=1 << 20)
TESTS = [
    "# test\nassert f(1) == 123456789.25",
    "# test\nassert isinstance(f('x'), str) and f('x').startswith('only this text')",
    "# test\nnp.testing.assert_allclose(f(np.arange(3.0)), [1.25, 99.5, -3.75])",
    "# test\nassert sorted(f([3, 1])) == ['a9', 'b8', 'c7']",
    "# test\nwith f(4) as opened:\n    assert opened.read(5) == 'these words'",
    "# test\ntry:\n    f(5)\nexcept ValueError as error:\n    assert str(error) == 'exactly this'\nelse:\n    assert 0",
    "# test\na = f(6)\na += 1\nassert abs(a[0].b - 7.125) < 1e-9 and len(a) == 7 and a['k'](1) in (2.5,)",
]
TAGS = [*"ltdsfanibBceNSFDhxXmgpG", "date", "datetime", "delta"]
TEXTS = st.sampled_from(["", "x", "<f8", "|O", "|S3", "__class__", "int", "ValueError", "numpy", "os", "0x" + "f" * 50])
NUMBERS = st.integers(-2, 6) | st.sampled_from([2**31, 2**63, -(2**70)]) | st.floats()
CLASSES = st.fixed_dictionaries(
    {
        "name": TEXTS,
        "special": st.lists(st.sampled_from(sorted(SPECIAL_METHODS)), max_size=12),
        "base": st.none() | st.sampled_from(sorted(BASES)),
    }
)
HANDLES = st.builds(lambda number, kind, about: ["h", number, kind, about], NUMBERS, NUMBERS, CLASSES)
CODES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | HANDLES,
    lambda x: st.lists(x, max_size=4) | st.builds(lambda tag, rest: [tag, *rest], st.sampled_from(TAGS), st.lists(x)),
    max_leaves=12,
)
ERRORS = st.fixed_dictionaries(
    {"class": CODES | st.just(["x", "ValueError"]), "message": TEXTS | CODES},
    optional={"args": CODES, "where": CODES, "instance": CODES},
)
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "value": CODES,
        "error": ERRORS | CODES,
        "outputs": CODES,
        "changed": CODES,
        "failed": CODES,
        "names": CODES,
        "states": CODES,
        "gone": CODES,
        "classes": CODES
        | st.lists(st.tuples(NUMBERS, st.lists(st.sampled_from(sorted(SPECIAL_METHODS)), max_size=12))),
    },
)
BUFFERS = st.lists(st.binary(max_size=24), max_size=3)
ANSWER = st.tuples(st.just("answer"), ANSWERS, BUFFERS)
OTHER = st.tuples(st.just("other"), CODES | st.dictionaries(TEXTS, CODES, max_size=3), BUFFERS)
LIE = st.tuples(st.just("lie"), st.tuples(*[st.sampled_from([0, 1, 9, 2**20, 2**31])] * 3), st.binary(max_size=40))
RAW = st.tuples(st.just("raw"), st.none(), st.binary(max_size=60))
MESSAGES = st.lists(ANSWER | ANSWER | ANSWER | OTHER | LIE | RAW, min_size=8, max_size=40)

JUDGED = notebook("import numpy as np\ndef f(x):\n    return 0", *TESTS)
sent = 0


class Liar(StudentProcess):
    """In the place of a submission's process: whatever it is asked, it says the next thing on its list."""

    pid = None
    script: list = []  # noqa: RUF012  (one list for all processes of an example)

    def __init__(self, limits, unsafe=False):
        self.limits, self.alive, self.ready, self.process = limits, True, True, self
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
        """Send one message. False if it may not be whole."""
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

    def has_ended(self):
        return False

    def end(self):
        self.theirs.close()


@settings(max_examples=350, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(MESSAGES)
def lie(script):
    """The same messages in several orders: each then answers other questions, and making them is what takes time."""
    for start in range(0, len(script), max(1, len(script) // 4)):
        Liar.script = script[start:] + script[:start]
        judged = copy.deepcopy(JUDGED)
        verdict = judge_notebook(judged, limits=LIMITS, unsafe=True)
        assert [cell.points for cell in verdict.cells] == [0.0] * len(TESTS)
        assert stock_points(judged) == [0.0] * len(TESTS)
        assert all(cell.message for cell in verdict.cells)
        assert len(json.dumps(judged)) < 200_000


def test_ten_thousand_lies_earn_nothing(monkeypatch):
    monkeypatch.setattr("autograder.sandbox.sandbox.StudentProcess", Liar)
    lie()
    assert sent >= 10_000, sent


CHECK = """# test
from autograder.student import check_gradients
check_gradients({"a * b": lambda a, b: a * b}, [(2, 3), (2, 3)], points=2)"""
TREES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda x: (
        st.lists(x, max_size=3).map(lambda items: ["l", items])
        | st.lists(
            st.tuples(st.sampled_from(["draws", "value", "gradients", "error", "type", "message", "draw", "again"]), x)
        )
        .map(dict)
        .map(lambda items: ["d", list(items), list(items.values())])
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(st.tuples(st.just("answer"), st.fixed_dictionaries({"value": TREES}), st.just([])), max_size=4))
def lie_about_gradients(replies):
    engine = ("answer", {"value": ["h", 1, 2, {"name": "type", "special": ["__call__"], "base": None}]}, [])
    Liar.script = [("answer", {}, []), engine, *replies]
    judged = notebook("class MiniTensor: pass", CHECK)
    verdict = judge_notebook(judged, limits=LIMITS, unsafe=True)
    assert [cell.points for cell in verdict.cells] == [0.0]
    assert verdict.cells[0].message


def test_lies_about_gradients_earn_nothing(monkeypatch):
    monkeypatch.setattr("autograder.sandbox.sandbox.StudentProcess", Liar)
    lie_about_gradients()


@pytest.mark.parametrize("value", [3, ["n", "<f8", 0]])
def test_the_liar_is_believed_where_it_tells_the_truth(monkeypatch, value):
    """Otherwise the tests above would show nothing."""
    monkeypatch.setattr("autograder.sandbox.sandbox.StudentProcess", Liar)
    function = ("answer", {"value": ["h", 1, 2, {"name": "function", "special": ["__call__"], "base": None}]}, [])
    answer = ("answer", {"value": value}, [struct.pack("<d", 3.0)])
    Liar.script = [("answer", {}, []), function, answer, ("answer", {}, [])]
    assert judge_notebook(notebook("f = 0", "# test\nassert f(1) == 3"), limits=LIMITS, unsafe=True).points == 2
