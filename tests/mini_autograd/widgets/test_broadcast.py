"""The broadcast demo: what it says about two shapes is what the engine and NumPy do with them."""

import re

import numpy as np
import pytest

from mini_autograd.numerics.arrays import sum_to
from mini_autograd.widgets import broadcast
from mini_autograd.widgets.demos.broadcast import demo, run, shape_of, show

PAIRS = [
    ((3, 1), (4,)),
    ((4, 3), (3,)),
    ((2, 3), ()),
    ((2, 3, 4), (3, 1)),
    ((1, 1), (1,)),
    ((0, 3), (3,)),
    ((5, 1, 4), (1, 3, 1)),
]


@pytest.mark.parametrize(
    ("text", "shape"), [("(3, 1)", (3, 1)), ("3,1", (3, 1)), (" 4 ", (4,)), ("(4,)", (4,)), ("()", ()), ("", ())]
)
def test_shapes_are_read_as_they_are_typed(text, shape):
    assert shape_of(text) == shape


@pytest.mark.parametrize("text", ["3x4", "(3, -1)", "a", "(3,,4)", "2.5"])
def test_what_is_no_shape_gets_a_sentence(text):
    with pytest.raises(ValueError, match=r"is not a shape\. Write the sizes with commas"):
        shape_of(text)


@pytest.mark.parametrize("operation", ["a + b", "a * b"])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_sums_on_the_way_end_at_the_gradient_of_the_engine(a, b, operation):
    done = run((a, b), operation)
    for shape, share, sums, grad in zip((a, b), done.shares, done.sums, done.grads, strict=True):
        last = sums[-1][1] if sums else share
        assert last.shape == shape == grad.shape
        np.testing.assert_array_equal(last, grad)
        np.testing.assert_array_equal(sum_to(share, shape), grad)


def test_words_and_steps_of_the_first_picture():
    shown = show("(3, 1)", "(4,)", "a + b")
    used = "Each entry of a is used 4 times. Each entry of b is used 3 times."
    assert shown.words == (f"(3, 1) and (4,) are stretched to (3, 4). {used}",)
    assert shown.steps[-3:] == (
        "a: sum over axis 1, stretched from size 1: it stays, with size 1. The shape is now (3, 1).",
        "b: sum over axis 0, added in front: it disappears. The shape is now (4,).",
        "a.grad: summed over axis 1 of (3, 4), which gives (3, 1). "
        "b.grad: summed over axis 0 of (3, 4), which gives (4,).",
    )
    assert {int(number) for number in re.findall(r'id="from-(\d+)"', shown.svg)} <= set(range(len(shown.steps)))
    for total in (10, 26, 42, 15, 18, 21, 24):
        assert f">{total}</text>" in shown.svg


def test_shapes_that_do_not_fit_are_shown_with_the_axis_to_blame():
    shown = show("(3, 4)", "(3,)", "a + b")
    assert "4 meets 3, and neither is 1" in shown.words[0]
    assert not shown.steps


def test_every_preset_and_large_shapes_have_a_picture():
    for state in [{}, *demo().presets.values(), {"a": "(1000, 1000)", "b": "(1000,)"}]:
        shown = show(**{**demo().start, **state})
        assert shown.svg.startswith("<svg")
        assert shown.words


def test_tensors_and_tuples_may_be_given_and_the_still_picture_travels_along():
    widget = broadcast(np.ones((2, 1)), (3,), operation="a * b", step=3)
    assert widget.step == 3
    assert widget.state == {"a": "(2, 1)", "b": "(3,)", "operation": "a * b"}
    bundle = widget._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "b.grad" in data["image/svg+xml"]
    widget.state = {**widget.state, "b": "nonsense"}
    assert widget.shown["wrong"]
    assert "not a shape" in widget.shown["words"][0]
    widget.state = {**widget.state, "b": "(1, 3)"}
    assert not widget.shown["wrong"]
    with pytest.raises(ValueError, match="too large"):
        show("(100000,)", "(100000, 1)", "a + b")
