"""Plain values leave the sandbox exactly as they are; anything else on the wire is refused without harm."""

import contextlib
import datetime
import decimal
import fractions
import json
import math
import socket
import struct
import sys
import threading
import time
import tracemalloc
from random import Random

import numpy as np
import pandas as pd
import pytest
import sympy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.sandbox.inside.values import MAX_DEPTH, Decoder, Encoder, Malformed, NotPlain
from autograder.sandbox.inside.wire import MAGIC, Wire, WireClosed, WireError, WireTimeout
from tests.autograder import junk

HUGE = 1 << 10_000_000
AMPLE = 300.0  # seconds: far more than needed, even on a loaded machine


def refuse(value):
    raise NotPlain(type(value).__name__)


def there_and_back(value):
    encoder = Encoder(refuse)
    code = json.loads(json.dumps(encoder.encode(value)))
    return Decoder([memoryview(buffer) for buffer in encoder.buffers], {}).decode(code)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1,
        2**70,
        -(2**70),
        1.5,
        math.inf,
        "a\udcff\n",
        b"\x00\xff",
        1 + 2j,
        [1, [2.0, "x"]],
        (1,),
        {1: "a", (2, 3): [4]},
        {1, "a"},
        frozenset([1]),
        fractions.Fraction(1, 3),
        decimal.Decimal("1.10"),
        datetime.date(2020, 2, 29),
        datetime.datetime(2020, 1, 1, 12),
        datetime.timedelta(1, 2, 3),
        ...,
        slice(1, None, 2),
        bytearray(b"x"),
    ],
)
def test_plain_values_come_back_as_they_were(value):
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i1", "u8", "?", "c8", "c16", ">f8", "U3", "S2", "M8[D]"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_arrays_come_back_as_they_were(dtype, shape):
    array = np.zeros(shape, dtype)
    back = there_and_back(array)
    assert back.dtype == array.dtype
    assert back.shape == shape
    assert back.flags.writeable
    scalar = np.float32(1.25)
    assert type(there_and_back(scalar)) is np.float32


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x) | st.tuples(x, x)
    )
)
def test_any_nest_of_plain_values_comes_back(value):
    assert repr(there_and_back(value)) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        np.array([object()]),
        type("I", (int,), {})(3),
        [object()],
        {(object(),): 1},
        pytest.param(HUGE, id="huge"),
    ],
)
def test_what_is_not_plain_is_handed_over(value):
    with pytest.raises(NotPlain):
        Encoder(refuse).encode(value)


@pytest.mark.slow
def test_junk_is_malformed_or_harmless():
    for example in range(5000):
        r = Random(example)
        decoder = Decoder([memoryview(r.randbytes(r.randint(0, 24)))], {})
        with contextlib.suppress(Malformed):
            decoder.decode([r.choice(junk.TAGS), *junk.some(r, junk.code, 0, 4)])


@pytest.mark.parametrize(
    "code",
    [
        ["a", "<f8", [10**9, 10**9], 0],
        ["a", "<f8", [2], 0],
        ["a", "|O", [1], 0],
        ["a", "<f8", [-1, -8], 0],
        ["a", "<f8", [2**62, 0], 0],
        ["a", "<f8", [1], 7],
        ["a", "<f8", "x", 0],
        ["i", "0x" + "f" * 10**6],
        ["s", [["l", []]]],
        ["d", [1], []],
        [],
        ["l"],
        ["a"],
        {"a": 1},
        ["F", [1, 0]],
        ["o", [2], ["l", [1]]],
        ["o", [0, 2**47], ["l", []]],
        ["o", [1], ["h", 1]],
        ["E", [1, "x"]],
        ["U", 1],
        ["a", "<U999999999", [1], 0],
    ],
)
def test_lies_about_sizes_and_types_are_malformed(code):
    with pytest.raises(Malformed):
        Decoder([memoryview(b"12345678")], {}).decode(code)


def test_too_deep_is_malformed():
    code = 1
    for _ in range(MAX_DEPTH + 10):
        code = ["l", [code]]
    with pytest.raises(Malformed):
        Decoder([], {}).decode(code)


FRAMES = {
    "numbers and texts": pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, np.nan], "d": [True, False]}),
    "rows with names": pd.DataFrame([[1, 2]], index=["row"], columns=pd.Index(["a", "a"], name="twice")),
    "none at all": pd.DataFrame(),
    "dates": pd.DataFrame({"v": [1, 2]}, index=pd.date_range("2026-01-01", periods=2, freq="D")),
    "several levels": pd.DataFrame(
        {"v": [1, 2]}, index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", None])
    ),
    "mixed objects": pd.Series([1, "a", None, (2, 3)], name="mixed", dtype=object),
    "small integers": pd.Series(np.arange(3, dtype=np.int8), index=[3, 1, 2]),
    "texts alone": pd.Index(["a", "b"], name="letters"),
    "a range": pd.RangeIndex(2, 9, 3),
}


@pytest.mark.parametrize("value", FRAMES.values(), ids=FRAMES)
def test_frames_come_back_as_they_were(value):
    back = there_and_back(value)
    assert type(back) is type(value)
    kind = {pd.DataFrame: "frame", pd.Series: "series"}.get(type(value), "index")
    getattr(pd.testing, f"assert_{kind}_equal")(back, value, check_exact=True)


OF_LIBRARIES = [
    pd.Timestamp("2026-01-04 12:30:00.000001"),
    pd.Timestamp("2026-01-04").as_unit("s"),
    pd.Timedelta(days=2, seconds=-1),
    sympy.Integer(3),
    sympy.Rational(-1, 2),
    sympy.Integer(1),
]


@pytest.mark.parametrize("value", OF_LIBRARIES, ids=repr)
def test_times_and_exact_numbers_come_back_as_they_were(value):
    back = there_and_back(value)
    assert type(back) is type(value)
    assert back == value
    assert getattr(back, "unit", None) == getattr(value, "unit", None)


@pytest.mark.parametrize("value", [pd.NaT, pd.NA, sympy.true, sympy.false], ids=repr)
def test_missing_values_and_truth_values_are_the_same_objects(value):
    assert there_and_back(value) is value


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (0, 2)])
def test_arrays_of_several_kinds_come_back_as_they_were(shape):
    value = np.empty(shape, object)
    value.ravel()[:] = [["ann", 3, None], ["bob", (1, [2]), 2.5]][0][: value.size]
    back = there_and_back(value)
    assert back.dtype == object
    assert back.shape == shape
    assert back.tolist() == value.tolist()


@pytest.mark.parametrize(
    "value",
    [
        pd.Timestamp("2026-01-01", tz="UTC"),
        sympy.Symbol("x"),
        sympy.pi,
        sympy.oo,
        sympy.Float(0.5),
        pd.Series(["a", "b"], dtype="category"),
        pd.Series(pd.to_datetime(["2026-01-01"], utc=True)),
        pd.Series([object()]),
        pd.Series([1, None], dtype="Int64"),
        type("Own", (pd.DataFrame,), {})({"a": [1]}),
    ],
)
def test_what_would_not_come_back_stays_there(value):
    assert Encoder(lambda other: ["h", 1]).encode(value) == ["h", 1]


@pytest.mark.parametrize(
    "code",
    [
        ["P", ["t", ["frame"]]],
        ["P", ["t", ["no such kind", 1]]],
        ["P", ["t", ["series", ["t", ["range", 0, 5, 1, None]], ["t", ["<f8", ["l", [1]]]], None]]],
        ["P", 3],
    ],
)
def test_what_is_no_frame_is_malformed(code):
    with pytest.raises(Malformed):
        Decoder([], {}).decode(code)


MANY = ["P", ["t", ["range", 0, 10**9, 1, None]]]
LONG = ["t", ["range", 0, 10**9, 1, None]]


@pytest.mark.parametrize(
    "code",
    [
        ["a", "<U0", [1_000_000, 2_000], 0],
        ["a", "|S0", [10**6, 10**6], 0],
        ["o", [10**6, 10**6], ["l", []]],
        ["P", ["t", ["series", LONG, ["t", ["<f8", 1.5]], None]]],
        ["P", ["t", ["series", LONG, ["t", ["<f8", ["a", "<f8", [], 1]]], None]]],
        ["P", ["t", ["series", LONG, ["t", ["<f8", ["a", "<f8", [1], 1]]], None]]],
        ["P", ["t", ["series", LONG, ["t", ["object", MANY]], None]]],
        ["P", ["t", ["series", MANY, ["t", ["<f8", ["l", [1.5]]]], None]]],
        ["P", ["t", ["frame", LONG, LONG, ["l", [["t", ["<f8", 1.5]]]]]]],
        ["P", ["t", ["index", ["t", ["<f8", MANY]], None, None]]],
        ["P", ["t", ["index", ["t", ["str", MANY]], None, None]]],
        *(
            ["P", ["t", ["index", ["t", [kind, ["l", [1]]]], None, None]]]
            for kind in ("U100000000", "V1000000000", "(10000,10000)f8", "100000000S", "f8,(10000,10000)f8")
        ),
        ["P", MANY],
    ],
    ids=str,
)
def test_no_message_makes_the_judge_allocate_what_it_does_not_hold(code):
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            Decoder([memoryview(b""), memoryview(b"12345678")], {}).decode(code)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["s", "f", "d"])
def test_parts_with_one_hash_are_malformed(kind):
    """The time to build a set of them grows with the square of their number: an hour for as many as a message holds."""
    period = sys.hash_info.modulus
    same = [["i", hex(period * k)] for k in range(2, 50_000)]
    assert hash(period * 2) == hash(period * 3)
    code = ["d", same, same] if kind == "d" else [kind, same]
    with pytest.raises(Malformed, match="same hash"):
        Decoder([], {}).decode(code)


def test_a_few_parts_with_one_hash_are_not():
    value = {sys.hash_info.modulus * k: -1 for k in range(20)} | dict.fromkeys(range(-50, 50))
    assert there_and_back(value) == value


def test_a_fraction_of_huge_integers_is_malformed():
    """Reducing one takes time that grows with the square of its digits."""
    digits = ["i", hex(3**50_000)]
    with pytest.raises(Malformed, match="moderate size"):
        Decoder([], {}).decode(["F", [digits, digits]])


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    yield Wire(ours, max_bytes=1000, max_header=1000), theirs
    ours.close()
    theirs.close()


def test_messages_arrive_whole(ends):
    wire, theirs = ends
    other = Wire(theirs, 1000, 1000)
    other.send({"a": [1, "x"]}, [b"12", b""], time.monotonic() + AMPLE)
    header, buffers = wire.receive(time.monotonic() + AMPLE)
    assert header == {"a": [1, "x"]}
    assert [bytes(buffer) for buffer in buffers] == [b"12", b""]


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense" * 10,
        struct.pack("<4sIIQ", MAGIC, 2**31, 0, 0),
        struct.pack("<4sIIQ", MAGIC, 2, 2**31, 0),
        struct.pack("<4sIIQ", MAGIC, 2, 0, 2**60) + b"{}",
        struct.pack("<4sIIQ", MAGIC, 2, 1, 5) + struct.pack("<Q", 2**60) + b"{}" + b"12345",
        struct.pack("<4sIIQ", MAGIC, 2, 0, 0) + b"{x",
        struct.pack("<4sIIQ", MAGIC, 900, 0, 0) + b"[" * 900,
        struct.pack("<4sIIQ", MAGIC, 4, 0, 0) + b"\xff\xfe\xfd\xfc",
    ],
)
def test_a_malformed_message_is_refused(ends, raw):
    wire, theirs = ends
    theirs.sendall(raw)
    with pytest.raises(WireError):
        wire.receive(time.monotonic() + AMPLE)


def test_a_slow_sender_cannot_stretch_the_deadline(ends):
    wire, theirs = ends
    stop = threading.Event()

    def drip():
        theirs.sendall(struct.pack("<4sIIQ", MAGIC, 900, 0, 0))
        while not stop.wait(0.02):
            theirs.send(b" ")

    thread = threading.Thread(target=drip)
    thread.start()
    with pytest.raises(WireTimeout):  # the message would be complete after 18 seconds
        wire.receive(time.monotonic() + 0.3)
    stop.set()
    thread.join()


def test_a_reader_that_does_not_read_is_noticed(ends):
    _, theirs = ends
    sender = Wire(theirs, 1 << 30, 1000)
    with pytest.raises(WireTimeout):
        sender.send({}, [bytes(50 << 20)], time.monotonic() + 0.2)


def test_a_closed_connection_is_noticed(ends):
    wire, theirs = ends
    theirs.close()
    with pytest.raises(WireClosed):
        wire.receive(time.monotonic() + AMPLE)
