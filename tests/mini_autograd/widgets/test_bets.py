"""What readers may predict: the right answers of the demos, compared with NumPy and with the paths themselves."""

import numpy as np
import pytest

from mini_autograd.widgets import activations, broadcast, step_size
from mini_autograd.widgets.demos import accumulation as accumulating
from mini_autograd.widgets.demos import broadcast as broadcasting
from mini_autograd.widgets.demos import forward_or_reverse as modes
from mini_autograd.widgets.demos import optimizer_paths as paths
from mini_autograd.widgets.demos import step_size as stepping


@pytest.mark.parametrize(
    ("a", "b"), [("(3, 1)", "(4,)"), ("(4, 3)", "(3,)"), ("(2, 3)", "()"), ("(2, 3, 4)", "(3, 1)"), ("(3, 4)", "(3,)")]
)
def test_the_shape_of_a_result_is_numpy_s_and_the_other_answers_are_not(a, b):
    bet = broadcasting.demo().show(a=a, b=b, operation="a + b").bet
    try:
        right = str((np.empty(eval(a)) + np.empty(eval(b))).shape)
    except ValueError:
        right = broadcasting.NO_FIT
    assert bet.right == right
    assert len(set(bet.options)) == len(bet.options) >= 3
    assert right in bet.options


@pytest.mark.parametrize(("precision", "right"), [("float64", "1e-8"), ("float32", "1e-4")])
def test_the_best_step_is_near_the_root_of_the_rounding(precision, right):
    for function in ("sin x", "exp x"):
        for point in (0.25, 0.5, 1.0, 1.5):
            bet = stepping.bet(function, precision, point)
            assert (bet.right, precision in bet.question) == (right, True), (function, point)
    assert stepping.bet("x cubed", "float64", 0.25) is None  # every small step is exact there


@pytest.mark.parametrize("landscape", paths.LANDSCAPES)
@pytest.mark.parametrize("lr", [0.01, 0.05, 0.2])
def test_the_lowest_method_is_the_one_whose_path_ends_lowest(landscape, lr):
    bet = paths.demo().show(landscape=landscape, method="all", lr=lr).bet
    ends = {}
    for name in paths.METHODS:
        points = paths.path(landscape, name, lr)
        if len(points) == paths.STEPS + 1:
            ends[name] = paths.heights(landscape, points)[-1]
    assert ends[bet.right] == min(ends.values())
    assert paths.demo().show(landscape=landscape, method="Adam", lr=lr).bet is None


def test_only_demos_with_a_question_can_ask_it():
    assert step_size().predict is True
    assert broadcast((3, 1), (4,), predict=False).predict is False
    assert activations().predict is None


def test_where_a_loss_ends_is_told_of_the_runs_themselves(monkeypatch):
    monkeypatch.setattr(accumulating, "picture", lambda *drawn: "")  # drawing takes longer than the runs
    ends = {name: accumulating.demo().show(**state).bet.right for name, state in accumulating.demo().presets.items()}
    assert (ends["The bug"], ends["Small batches"]) == ("lower", "higher")
    assert set(ends.values()) <= set(accumulating.ENDS)


def test_an_answer_about_a_curve_draws_it(monkeypatch):
    monkeypatch.setattr(accumulating, "picture", lambda runs, *drawn: " ".join(runs))
    demo = accumulating.demo()
    asked = demo.show(**demo.start)
    answered = demo.show(**{**demo.start, **asked.bet.reveals})
    assert ("never cleared" in asked.svg, "never cleared" in answered.svg) == (False, True)
    assert answered.bet == asked.bet, "the answer belongs to the same question"


def test_no_mode_wins_where_the_times_overlap(monkeypatch):
    for taken, right in (((1.0, 2.0), "forward mode"), ((2.0, 1.0), "reverse mode"), ((1.0, 1.0), "no clear winner")):
        seconds = iter(taken * modes.RUNS)
        monkeypatch.setattr(modes, "timed", lambda compute, *given, left=seconds: (compute(*given), next(left)))
        shown = modes.demo().show(inputs=4, outputs=2)
        assert shown.bet.right == right
        assert shown.steps[3] == "after 3 passes: forward mode has 3 of 4 columns, reverse mode 2 of 2 rows"
