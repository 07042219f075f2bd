"""The demos on training: what they say must be what their runs did."""

import re

import numpy as np
import pytest
import torch

from mini_autograd.widgets import accumulation as accumulation_widget
from mini_autograd.widgets.demos.accumulation import demo as accumulation
from mini_autograd.widgets.demos.accumulation import train
from mini_autograd.widgets.demos.activations import INPUTS, STEPS, run, start_weights, trained
from mini_autograd.widgets.demos.activations import demo as activations
from mini_autograd.widgets.demos.optimizer_paths import LANDSCAPES, METHODS, heights, path
from mini_autograd.widgets.demos.optimizer_paths import STEPS as WALKED
from mini_autograd.widgets.demos.optimizer_paths import demo as optimizer_paths


def shown(demo, **state):
    return demo.show(**demo.checked({**demo.start, **state}))


def static_picture(widget):
    """The picture and the text that remain of a widget without a kernel."""
    bundle = widget._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    return data["image/svg+xml"], data["text/plain"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [accumulation, activations, optimizer_paths])
def test_every_preset_of_a_demo_is_shown(make):
    demo = make()
    pictures = {name: shown(demo, **state).svg for name, state in {"start": {}, **demo.presets}.items()}
    assert all('role="img" aria-label=' in svg[:200] and svg.rstrip().endswith("</svg>") for svg in pictures.values())
    assert len(set(pictures.values())) == len(pictures)


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"problem": "one weight", "lr": 4.1}, "never cleared: diverged after"),
        ({"problem": "one weight", "lr": 0.1}, "a ball that rolls without friction"),
        ({"problem": "network", "spring": True}, r"momentum 1.0 \(dotted, with the length of its buffer\): 0\."),
        ({"problem": "regression", "optimizer": "Adam", "spring": True}, "They are the same only for plain SGD"),
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
        ("one weight", "SGD", "all", 0.1, 0.9, 1.1),  # swings forever
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
    with pytest.raises(ValueError, match=r"7 is not a setting of 'lr' in 'A gradient that is never cleared'"):
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


def torch_gradients(name, weights, x):
    """PyTorch's gradients at the inputs of the activations, for the same network."""
    call = {"ReLU": torch.relu, "GELU": torch.nn.functional.gelu}.get(
        name, lambda z: torch.nn.functional.leaky_relu(z, 0.1)
    )
    value, before = torch.tensor(x.reshape(-1, 1)), []
    for layer in (0, 2):
        before.append((value @ torch.tensor(weights[layer]) + torch.tensor(weights[layer + 1])).requires_grad_())
        before[-1].retain_grad()
        value = call(before[-1])
    (value @ torch.tensor(weights[4]) + torch.tensor(weights[5])).sum().backward()
    return [tensor.grad.numpy() for tensor in before]


@pytest.mark.parametrize("name", ["ReLU", "Leaky ReLU", "GELU"])
@pytest.mark.parametrize("shift", [0.0, -8.0])
def test_gradients_in_the_networks_are_pytorchs(name, shift):
    weights = start_weights(shift)
    for ours, theirs in zip(
        run(name, weights, INPUTS).before_grad, torch_gradients(name, weights, INPUTS), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "shift", "dead"), [("ReLU", 0.0, 0), ("ReLU", -8.0, 3), ("Leaky ReLU", -8.0, 0), ("GELU", -8.0, 0)]
)
def test_pushed_down_units_are_dead_with_relu_alone(name, shift, dead):
    weights = start_weights(shift)
    assert sum(int(layer.sum()) for layer in run(name, weights, INPUTS).dead()) == dead
    moved = np.abs(trained(name, shift)[STEPS][0][0, :3] - weights[0][0, :3]).max()
    assert (moved == 0) == (dead == 3)


def test_activations_count_what_the_picture_shows():
    shown_now = shown(activations(), x=-1.5, shift=-8.0)
    for name, words, panel in zip(
        ("ReLU", "Leaky ReLU", "GELU"), shown_now.words, shown_now.svg.split("<g transform=")[1:], strict=True
    ):
        passing, dead = map(
            int, re.match(rf"{name}: (\d+) of 12 units pass gradient at x = -1.5; (\d+)", words).groups()
        )
        assert len(re.findall(r'fill-opacity="0.28"', panel)) == passing
        assert panel.count("no gradient at any x") == dead


def torch_path(landscape, method, lr):
    ground = LANDSCAPES[landscape]
    place = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in ground.start]
    if method == "Adam":
        optimizer = torch.optim.Adam(place, lr=lr)
    else:
        optimizer = torch.optim.SGD(place, lr=lr, momentum=0.9 if method == "momentum 0.9" else 0.0)
    points = [ground.start]
    for _ in range(WALKED):
        if method != "forgot to zero":
            optimizer.zero_grad()
        ground.loss(*place).backward()
        optimizer.step()
        points.append([p.item() for p in place])
    return np.array(points)


@pytest.mark.parametrize("landscape", LANDSCAPES)
@pytest.mark.parametrize("method", METHODS)
def test_paths_are_those_of_pytorch(landscape, method):
    ours = path(landscape, method, 0.005)
    np.testing.assert_allclose(ours, torch_path(landscape, method, 0.005), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("landscape", LANDSCAPES)
def test_the_lowest_point_is_the_lowest(landscape):
    ground = LANDSCAPES[landscape]
    x, y = np.meshgrid(np.linspace(ground.left, ground.right, 201), np.linspace(ground.bottom, ground.top, 201))
    lowest = heights(landscape, np.array([ground.lowest]))[0]
    assert lowest <= np.asarray(ground.loss(x, y)).min() + 1e-12


def test_a_path_is_walked_step_by_step():
    now = shown(optimizer_paths(), landscape="narrow valley", method="SGD", lr=0.2)
    points = path("narrow valley", "SGD", 0.2)
    assert now.words == (f"SGD: diverged, stopped after {len(points) - 1} steps.",)
    assert len(now.steps) == len(points)
    assert now.steps[3] == f"step 3: loss SGD {heights('narrow valley', points)[3]:.3g}"
    ways = re.findall(r'data-way="(ground|loss) SGD" d="M([^"]*)"', now.svg)
    assert [panel for panel, _ in ways] == ["ground", "loss"]
    for panel, line in ways:  # a point for each step, and the mark at the last of them
        drawn = line.split("L")
        assert len(drawn) == len(points)
        assert f'data-along="{panel} SGD" transform="translate({drawn[-1]})"' in now.svg


def test_a_picture_of_paths_shows_the_last_step():
    picture, text = static_picture(optimizer_paths().live(method="Adam"))
    assert f"step {WALKED}: loss Adam" in text
    (line,) = re.findall(r'data-way="ground Adam" d="M([^"]*)"', picture)
    assert len(line.split("L")) == WALKED + 1
