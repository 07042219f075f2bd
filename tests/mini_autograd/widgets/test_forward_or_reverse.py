"""Forward or reverse: both modes give the Jacobian, in as many passes as the picture says."""

import re
import sys

import numpy as np
import pytest

from mini_autograd.autograd import functional
from mini_autograd.widgets import forward_or_reverse
from mini_autograd.widgets.demos.forward_or_reverse import by_columns, by_rows, demo, measure, network, show

module = sys.modules[show.__module__]  # in the package, this name is the demo itself


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 8), (8, 1), (4, 16), (64, 2)])
def test_both_modes_give_the_jacobian(n, m):
    function, x = network(n, m)
    expected = functional.jacobian(function, x).numpy()
    assert expected.shape == (m, n)
    np.testing.assert_allclose(by_columns(function, x), expected, atol=1e-12)
    np.testing.assert_allclose(by_rows(function, x), expected, atol=1e-12)


def test_forward_mode_evaluates_once_per_input_and_reverse_mode_once():
    function, x = network(5, 3)
    calls = []

    def counted(values):
        calls.append(values)
        return function(values)

    by_columns(counted, x)
    assert len(calls) == 5
    by_rows(counted, x)
    assert len(calls) == 6


@pytest.fixture
def times_by_passes(monkeypatch):
    """A millisecond for each pass, whatever else the machine has to do."""

    def timed(compute, function, x):
        jacobian = compute(function, x)
        return jacobian, 0.001 * jacobian.shape[0 if compute is by_rows else 1]

    monkeypatch.setattr(module, "timed", timed)


def test_words_count_passes_first_and_then_name_the_quicker_mode(times_by_passes):
    assert show(64, 1).words[:2] == (
        "64 inputs, 1 output: the Jacobian has 1 x 64 entries. Forward mode needs 64 passes, reverse mode 1 pass.",
        "Reverse mode is quicker on this machine: median of 9 runs 1 ms (1 to 1 ms), against 64 ms (64 to 64 ms).",
    )
    assert show(1, 64).words[1].startswith("Forward mode is quicker on this machine: ")


def test_no_time_is_shown_where_the_runs_spread_more_than_the_modes_differ(monkeypatch):
    noise = iter([0.001, 0.003, 0.003, 0.001] * 18)
    monkeypatch.setattr(module, "timed", lambda compute, function, x: (compute(function, x), next(noise)))
    shown = show(16, 2)
    assert shown.words[1] == "The times of 9 runs overlap, so they do not show which mode is quicker here."
    assert " ms" not in shown.svg + " ".join(shown.words)
    assert show(4, 4).words[1] == shown.words[1]


def test_the_times_appear_with_the_last_pass(times_by_passes):
    shown = show(4, 2)
    assert shown.words_at_end
    (last,) = re.findall(r'<g id="from-4[^"]*">(?:(?!</g>).)*median computing time.*?</g>', shown.svg)
    assert shown.svg.count(" ms") == last.count(" ms") > 0


def test_both_modes_are_timed():
    done = measure(2, 2)
    for taken in (done.forward_times, done.reverse_times):
        assert 0 < taken.low <= taken.median <= taken.high


def test_presets_are_settings_and_the_still_picture_travels_along():
    for state in demo().presets.values():
        assert demo().checked({**demo().start, **state})
    bundle = forward_or_reverse(inputs=4, outputs=2)._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "Forward mode: 4 passes, one per column" in data["image/svg+xml"]
    with pytest.raises(ValueError, match="not a setting of 'inputs'"):
        forward_or_reverse(inputs=3)
