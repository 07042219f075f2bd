"""Break the engine: the bugs are real, each shows in its own way, and a score is kept."""

import itertools
import json
import re
from html import unescape

import numpy as np
import pytest

from mini_autograd.widgets import break_the_engine
from mini_autograd.widgets.demos.break_the_engine import BUGS, NAMES, ROUNDS, SHOWN, bug_of, show, training

WRONG = {"slope": {"w1", "b", "w2"}, "overwritten": {"w2"}, "sign": {"w1"}, "row": {"b"}}


@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_the_right_engine_learns_and_its_gradients_are_right(number):
    moments = training(number, "")
    assert moments[-1].loss < 0.1 * moments[0].loss
    assert all(share == pytest.approx(1) for moment in moments for share in moment.shares)


@pytest.mark.parametrize(("number", "bug"), list(itertools.product(range(1, ROUNDS + 1), BUGS)))
def test_a_bug_spoils_the_gradients_that_its_words_name_and_no_others(number, bug):
    moments = training(number, bug)
    for name, shares in zip(NAMES, np.array([moment.shares for moment in moments]).T, strict=True):
        if bug == "cleared":
            assert np.abs(shares[1:] - 1).max() > 0.5
        elif name in WRONG[bug]:
            assert np.abs(shares - 1).max() > 0.2
            assert bug != "sign" or shares == pytest.approx(-1)
        else:
            assert shares == pytest.approx(1)


def test_the_rounds_are_always_the_same_and_hold_every_bug():
    assert {bug_of(number) for number in range(1, 6)} == set(BUGS)
    assert {bug_of(number) for number in range(6, 11)} == set(BUGS)
    assert [bug_of(number) for number in range(1, 4)] == ["overwritten", "row", "cleared"]


def test_nothing_is_told_before_a_guess_and_everything_after_it():
    bug = bug_of(1)
    before, right, wrong = (show(1, guesses) for guesses in ("", f"1={bug}", "1=sign"))
    assert BUGS[bug].sign not in " ".join(before.words)
    assert "Next round" not in before.svg
    assert right.words == (f"Right: {BUGS[bug].words}.", BUGS[bug].sign)
    assert wrong.words[0] == f"No. It is another bug: {BUGS[bug].words}."
    assert "Right so far: 1 of 1" in right.svg
    assert "Right so far: 0 of 1" in wrong.svg
    assert "Next round" in right.svg


def test_a_diverging_training_is_drawn_inside_its_frame():
    assert training(2, "cleared")[-1].shares[0] < -1e6
    assert "nan" not in show(2, "").svg


def test_every_step_shows_its_moment():
    shown = show(1, "")
    broken = [training(1, bug_of(1))[at] for at in SHOWN]
    for text, moment in zip(shown.steps, broken, strict=True):
        assert text.endswith(f"{moment.loss:.3g} with the broken one")
    lists = [json.loads(unescape(data)) for data in re.findall(r'data-each="([^"]*)"', shown.svg)]
    assert {len(entries) for each in lists for entries in each.values()} == {len(SHOWN)}
    assert [f"w2: {moment.shares[2]:.2g}" for moment in broken] in [each.get("text") for each in lists]
    assert len(shown.svg) < 60_000


def test_a_call_in_a_lesson():
    widget = break_the_engine(step=3, number=3)
    assert (widget.state["number"], widget.step) == (3, 3)


def test_what_is_no_guess_is_said():
    with pytest.raises(ValueError, match=r"'1:sign' is not a guess\. Write a round and one of cleared, slope"):
        show(1, "1:sign")
