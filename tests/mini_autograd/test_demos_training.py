"""The demos on training: what they say must be what their runs did."""

import re

import numpy as np
import pytest

from mini_autograd.widgets import accumulation as accumulation_widget
from mini_autograd.widgets.accumulation import demo as accumulation
from mini_autograd.widgets.accumulation import train


def shown(demo, **state):
    return demo.show(**demo.checked({**demo.start, **state}))


def static_picture(widget):
    """The picture that is left of a widget without a kernel, and the text."""
    bundle = widget._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    return data["image/svg+xml"], data["text/plain"]


@pytest.mark.parametrize("make", [accumulation])
def test_every_preset_of_a_demo_is_shown(make):
    demo = make()
    pictures = {name: shown(demo, **state).svg for name, state in {"start": {}, **demo.presets}.items()}
    assert all(svg.startswith("<svg role=") and svg.rstrip().endswith("</svg>") for svg in pictures.values())
    assert len(set(pictures.values())) == len(pictures)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"problem": "one weight", "lr": 4.1}, "never cleared: lost after"),
        ({"problem": "one weight", "lr": 0.1}, "a ball that rolls without friction"),
        ({"problem": "network", "spring": True}, r"momentum 1.0 \(dotted, with its buffer\): 0\."),
        ({"problem": "regression", "optimizer": "Adam", "spring": True}, "the same thing for plain SGD alone"),
    ],
)
def test_accumulation_says_what_happened(state, sentence):
    words = " ".join(shown(accumulation(), forget=True, **state).words)
    assert re.search(sentence, words), words


def test_the_numbers_in_the_words_are_those_of_the_run():
    run = train("network", True, "SGD", "all", 0.05)
    words = shown(accumulation(), forget=True).words
    assert f"never cleared: loss {run.loss[-1]:.2g} after 300 steps" in words[1]
    assert f"{run.norm[-75:].max():.3g} in the last" in words[1]


@pytest.mark.parametrize("problem", ["one weight", "regression", "network"])
@pytest.mark.parametrize("batch", ["all", "16"])
def test_never_clearing_is_momentum_one_to_the_last_bit(problem, batch):
    never = train(problem, True, "SGD", batch, 0.05)
    rolling = train(problem, False, "SGD, momentum 1.0", batch, 0.05)
    assert np.array_equal(never.loss, rolling.loss)
    assert np.array_equal(never.norm, rolling.norm)
    assert not np.array_equal(never.loss, train(problem, False, "SGD", batch, 0.05).loss)


@pytest.mark.parametrize(
    ("problem", "optimizer", "batch", "lr", "least", "most"),
    [
        ("one weight", "SGD", "all", 0.1, 0.9, 1.1),  # swings for ever
        ("one weight", "SGD", "all", 3.9, 0.9, 1.1),  # even where clearing has broken down
        ("regression", "SGD", "all", 0.05, 0.8, 1.3),
        ("regression", "SGD", "8", 0.05, 1e3, np.inf),  # mini-batches feed it
        ("regression", "SGD, momentum 0.9", "all", 0.05, 1e3, np.inf),  # so does a second running sum
        ("regression", "Adam", "all", 0.01, 0.1, 3.0),
    ],
)
def test_only_what_is_fed_grows(problem, optimizer, batch, lr, least, most):
    norm = train(problem, True, optimizer, batch, lr).norm
    half = len(norm) // 2
    assert least < norm[half:].max() / norm[:half].max() < most


def test_a_wrong_setting_is_refused_in_words():
    with pytest.raises(ValueError, match=r"7 is no setting of 'lr' in 'A gradient that is never cleared'"):
        accumulation_widget(lr=7)
    with pytest.raises(ValueError, match="has no control 'clear'"):
        accumulation_widget(clear=True)


def test_the_widget_follows_its_state_and_leaves_a_picture():
    widget = accumulation_widget(forget=True)
    picture, text = static_picture(widget)
    assert "never cleared" in picture
    assert "never cleared: loss" in text
    widget.state = {**widget.state, "forget": False}
    assert "never cleared" not in widget.shown["svg"]
    widget.state = {**widget.state, "optimizer": "magic"}
    assert widget.shown["wrong"] is True
