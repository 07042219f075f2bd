"""Nudge and watch: its numbers are the engine's, and the truth is drawn only as far as the reader has stepped."""

import json
import re
from html import unescape

import pytest

import mini_autograd as ma
from mini_autograd.widgets import nudge
from mini_autograd.widgets.demos.nudge import EXPRESSIONS, PLACES, STEPS, changes, demo, show


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("step", [0.0, 0.05, 0.5, 2.0])
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
        assert show(expression).bet.reason.endswith("the prediction is exact")
    else:
        assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.15)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_question_is_answered_at_the_largest_step_and_every_step_has_its_numbers(expression):
    shown = show(expression)
    predicted, true = changes(expression, STEPS[-1])
    gap = true - predicted
    assert shown.bet.right == PLACES[2 if abs(gap) < 1e-9 else 0 if gap > 0 else 1]
    assert len(shown.steps) == len(STEPS)
    lists = [json.loads(unescape(data)) for data in re.findall(r'data-each="([^"]*)"', shown.svg)]
    assert {len(entries) for each in lists for entries in each.values()} == {len(STEPS)}
    texts = [each["text"] for each in lists if "text" in each]
    (told,) = [each for each in texts if each[0].startswith("true: ")]
    for text, step in zip(told, STEPS, strict=True):
        assert float(text.removeprefix("true: ")) == pytest.approx(changes(expression, step)[1], rel=5e-3)


def test_the_axes_have_numbers_and_their_names_stand_outside_the_curves():
    for expression in EXPRESSIONS:
        svg = show(expression).svg
        places = re.findall(r'<text (?:data-each="[^"]*" )?x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)', svg)
        texts = {text: (float(x), float(y)) for x, y, text in places}
        paths = re.findall(r' d="M([^"]+)" fill="none" stroke="#', svg)
        curves = [float(y) for path in paths for y in re.findall(r"[\d.]+ ([\d.]+)", path)]
        assert {"0", "0.5", "1", "1.5", "2"} <= set(texts)
        assert texts["change of the result"][1] < min(curves)
        assert texts["step of a"][1] > max(curves)


def test_presets_and_a_call_in_a_lesson():
    for state in demo().presets.values():
        demo().show(**demo().checked({**demo().start, **state}))
    assert (nudge(step=1.0).step, nudge().step, nudge().predict) == (20, 0, True)
    with pytest.raises(ValueError, match=r"from 0 to 2 in steps of 0\.05: 0\.07 is none"):
        nudge(step=0.07)
