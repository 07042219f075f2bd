"""Nudge and watch: its numbers are the engine's, and it shows the truth only after a guess."""

import re

import pytest

import mini_autograd as ma
from mini_autograd.widgets import nudge
from mini_autograd.widgets.demos.nudge import EXPRESSIONS, GUESSES, NOT_YET, SHOW, STEPS, changes, demo, show


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("step", [-2.0, -0.05, 0.0, 0.5, 2.0])
def test_both_changes_are_those_of_the_engine(expression, step):
    function, first, second = EXPRESSIONS[expression]
    a, b = (ma.tensor(value, dtype=ma.float64, requires_grad=True) for value in (first, second))
    result = function(a, b)
    result.backward()
    predicted, true = changes(expression, step)
    assert predicted == pytest.approx(a.grad.item() * step)
    after = function(ma.tensor(first + step, dtype=ma.float64), b)
    assert true == pytest.approx(after.item() - result.item(), abs=1e-12)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_gap_shrinks_with_the_square_of_the_step(expression):
    gaps = [abs(true - predicted) for predicted, true in (changes(expression, step) for step in (0.1, 0.05))]
    if expression == "a * b":
        assert max(gaps) < 1e-12
        assert "the prediction is exact" in show(expression, 1.0, SHOW).words[2]
    else:
        assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.15)


def test_the_truth_waits_for_a_guess():
    _, true = changes("a * a * b", 1.0)
    before, after = show("a * a * b", 1.0, NOT_YET), show("a * a * b", 1.0, GUESSES[2])
    assert "true:" not in before.svg
    assert before.words[1].endswith("Make your guess above to see it.")
    assert f"true: {true:g}" in after.svg
    assert after.words[1] == 'You guessed "below it". The true change is 3, above the prediction.'
    assert show("a * a * b", 1.0, GUESSES[1]).words[1].startswith("You guessed right. ")


def test_the_axes_have_numbers_and_their_names_stand_outside_the_curves():
    for expression in EXPRESSIONS:
        svg = show(expression, 0.5, SHOW).svg
        texts = {
            text: (float(x), float(y))
            for x, y, text in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)', svg)
        }
        curves = [
            float(y)
            for path in re.findall(r'd="M([^"]+)" fill="none" stroke="#', svg)
            for y in re.findall(r"[\d.]+ ([\d.]+)", path)
        ]
        assert {"-2", "-1", "0", "1", "2"} <= set(texts)
        assert texts["change of the result"][1] < min(curves)
        assert texts["step of a"][1] > max(curves)


def test_presets_and_a_call_in_a_lesson():
    for state in demo().presets.values():
        demo().show(**demo().checked({**demo().start, **state}))
    assert 0.0 in STEPS
    assert nudge(expression="a * b", step=1.0).state["guess"] == NOT_YET
