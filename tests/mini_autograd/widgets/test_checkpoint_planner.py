"""The checkpoint planner: predictions count what is kept, and measurements come from real steps."""

import numpy as np
import pytest

from mini_autograd.widgets import checkpoint_planner
from mini_autograd.widgets.demos.checkpoint_planner import (
    LAYER,
    Plan,
    against,
    demo,
    measured,
    overhead,
    peak_of,
    predicted_arrays,
    show,
    step_of,
)
from mini_autograd.widgets.demos.stopwatch import times


@pytest.mark.parametrize(("length", "kept"), [(0, 16), (1, 16), (2, 9), (4, 7), (8, 9), (16, 16), (3, 8)])
def test_what_is_predicted_to_be_kept(length, kept):
    assert predicted_arrays(16, length) == kept


def test_measured_memory_follows_the_prediction():
    plans = {plan.length: plan for plan in measured(16, 1)}
    assert set(plans) == {0, 1, 2, 3, 4, 6, 8, 9, 12, 16}
    for plan in plans.values():
        assert plan.predicted_bytes == predicted_arrays(16, plan.length) * LAYER
        assert plan.predicted_bytes <= plan.measured_bytes < plan.predicted_bytes + 8 * LAYER
    assert plans[4].measured_bytes < 0.75 * plans[0].measured_bytes
    assert plans[16].measured_bytes > plans[0].measured_bytes


def test_the_peak_is_what_a_step_holds_at_once():
    held = []

    def step():
        held.append(np.ones(100_000))
        held.clear()
        held.append(np.ones(50_000))

    assert 800_000 <= peak_of(step) < 820_000


def test_a_step_leaves_no_gradient_behind():
    step = step_of(4, 2)
    first = peak_of(step)
    assert all(seconds > 0 for seconds in step())
    assert peak_of(step) < first + LAYER


def test_words_tell_of_the_chosen_length():
    shown = show("16", 0, 1)
    assert shown.words[0].startswith("Without checkpoints: 16 layer outputs kept at once, predicted 1.05 MB")
    assert "(100% of the memory without checkpoints)" in shown.words[0]
    assert "Nothing is computed twice." in shown.words[0]
    assert show("16", 4, 1).words[0].startswith("Segments of 4: 7 layer outputs kept at once, predicted 0.46 MB")
    assert show("16", 36, 1).words[0].startswith("Segments of 16")


@pytest.mark.parametrize(
    ("some", "others", "told"),
    [
        ((2.0, 2.1, 2.2), (1.0, 1.1, 1.2), "That is 1.9 times the median without checkpoints."),
        ((1.0, 2.0, 9.0), (1.1, 1.9, 2.0), "The times with and without checkpoints overlap, so they do not show"),
    ],
)
def test_a_ratio_of_times_is_told_only_where_the_steps_agree(some, others, told):
    plain, plan = (Plan(length, 1, 1, 1, times(seconds)) for length, seconds in ((0, others), (4, some)))
    assert against(plan, plain).startswith(told)


@pytest.mark.parametrize(
    ("length", "measured_seconds", "explained"),
    [(4, (2.0, 2.1, 2.2), True), (4, (1.0, 1.6, 2.0), False), (0, (2.0, 2.1, 2.2), False)],
)
def test_a_time_above_the_predicted_one_is_explained(length, measured_seconds, explained):
    told = overhead(Plan(length, 1, 1, 1.4, times(measured_seconds)))
    assert ("a checkpoint calls it for each saved value" in told) == explained


def test_presets_are_settings_and_the_still_picture_travels_along():
    for state in demo().presets.values():
        assert demo().checked({**demo().start, **state})
    bundle = checkpoint_planner(length=8)._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "layers per segment" in data["image/svg+xml"]
