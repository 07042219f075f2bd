"""Accumulation: a training run that never clears `.grad`, beside one that does.

Every curve is a run of `mini_autograd` and its optimizers. The one idea to know: a `.grad` that is never cleared is the
running sum of all gradients, so plain SGD steps along it exactly as SGD with momentum 1.0 does.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd.widgets.demo import COLORS, INK, Bet, Choice, Demo, Shown, Slider, Switch, axes, plotting, svg_of

RATES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 1.9, 2.1, 3.0, 3.9, 4.1)
BATCHES = ("all", "64", "16", "8")
TOO_LARGE = 1e30
"""A run with a loss above this is lost and stops."""


@dataclass(frozen=True)
class Problem:
    """Something to train: its data, the first weights, the output for data and weights, and how many steps to run."""

    inputs: np.ndarray
    targets: np.ndarray
    weights: tuple[np.ndarray, ...]
    model: Callable[[Any, list[Any]], Any]
    steps: int


@dataclass(frozen=True)
class TrainingRun:
    """A run step by step: the loss, the length of the vector that plain SGD would step along (`.grad`, or the momentum
    buffer with ROLLING), and three of the weights.
    """

    loss: np.ndarray
    norm: np.ndarray
    weights: np.ndarray


def one_weight() -> Problem:
    """The loss w**2 / 2, from w = 1: curvature 1, so the learning rate is all that counts."""
    half = np.full((1, 1), math.sqrt(0.5))
    return Problem(half, np.zeros((1, 1)), (np.ones((1, 1)),), lambda x, w: x @ w[0], 120)


def regression() -> Problem:
    """Ten weights, 256 points, no noise: the smallest loss is 0."""
    draw = np.random.default_rng(0)
    inputs, best = draw.normal(size=(256, 10)), draw.normal(size=(10, 1))
    return Problem(inputs, inputs @ best, (np.zeros((10, 1)),), lambda x, w: x @ w[0], 400)


def network() -> Problem:
    """Two hidden layers of 32 tanh units and a smooth function of two numbers to learn: the network of lesson 05."""
    inputs = np.random.default_rng(0).uniform(-2.0, 2.0, (256, 2))
    draw, weights = np.random.default_rng(1), []
    for before, after in ((2, 32), (32, 32), (32, 1)):
        bound = 1 / math.sqrt(before)
        weights += [draw.uniform(-bound, bound, (before, after)), draw.uniform(-bound, bound, after)]

    def model(x: Any, w: list[Any]) -> Any:
        return ((x @ w[0] + w[1]).tanh() @ w[2] + w[3]).tanh() @ w[4] + w[5]

    return Problem(inputs, np.sin(2 * inputs[:, :1]) * np.cos(inputs[:, 1:]), tuple(weights), model, 300)


PROBLEMS = {"one weight": one_weight, "regression": regression, "network": network}
OPTIMIZERS = ("SGD", "SGD, momentum 0.9", "Adam")
ROLLING = "SGD, momentum 1.0"


def optimizer_for(name: str, weights: list[Any], lr: float) -> Any:
    """The optimizer of that name: one of OPTIMIZERS, or ROLLING."""
    from mini_autograd import optim

    if name == "Adam":
        return optim.Adam(weights, lr=lr)
    momentum = float(name.rpartition(" ")[2]) if "momentum" in name else 0.0
    return optim.SGD(weights, lr=lr, momentum=momentum)


def length(parts: list[Any]) -> float:
    """The length of the vector of all numbers in some tensors or arrays."""
    return math.sqrt(sum(float((np.asarray(part) ** 2).sum()) for part in parts))


@functools.lru_cache(maxsize=128)
def train(problem: str, forget: bool, optimizer: str, batch: str, lr: float) -> TrainingRun:
    """Train from the same weights on the same batches; `forget` leaves out zero_grad. Stops when the run is lost."""
    import mini_autograd as torch

    task = PROBLEMS[problem]()
    weights: list[Any] = [torch.tensor(start, requires_grad=True) for start in task.weights]
    method = optimizer_for(optimizer, weights, lr)
    draw, count = np.random.default_rng(2), len(task.inputs)
    whole = (torch.tensor(task.inputs), torch.tensor(task.targets))
    found: list[tuple[Any, ...]] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(task.steps):
            if batch == "all" or int(batch) >= count:
                x, y = whole
            else:
                rows = draw.integers(count, size=int(batch))
                x, y = torch.tensor(task.inputs[rows]), torch.tensor(task.targets[rows])
            if not forget:
                method.zero_grad()
            loss = ((task.model(x, weights) - y) ** 2).mean()
            loss.backward()
            norm = length([w.grad for w in weights])
            first = weights[0].detach().numpy().ravel()[:3].tolist()
            method.step()
            if optimizer == ROLLING:
                norm = length([method.state[w]["momentum_buffer"] for w in weights])
            found.append((loss.item(), norm, *first))
            if not loss.item() < TOO_LARGE:
                break
    table = np.array(found)
    return TrainingRun(table[:, 0], table[:, 1], table[:, 2:])


def show(problem: str, forget: bool, optimizer: str, batch: str, lr: float, spring: bool) -> Shown:
    """Loss, length of `.grad` and weights of the cleared run, the forgetful one and the one with momentum 1.0."""
    runs = {"cleared": train(problem, False, optimizer, batch, lr)}
    if forget:
        runs["never cleared"] = train(problem, True, optimizer, batch, lr)
    if spring:
        runs["cleared, momentum 1.0"] = train(problem, False, ROLLING, batch, lr)
    words = [sentence(name, run) for name, run in runs.items() if name != "cleared, momentum 1.0"]
    words += comparison(runs, optimizer)
    bound = energy_bound(runs, optimizer, batch, problem, lr)
    if bound:
        words.append(energy_words(runs["never cleared"], lr, bound))
    title = f"{problem}, {optimizer}, learning rate {lr:g}, {'all points' if batch == 'all' else f'batches of {batch}'}"
    pair = runs["cleared"], train(problem, True, optimizer, batch, lr)
    return Shown(picture(runs, title, bound), tuple(words), bet=bet(title, *pair))


def bet(title: str, cleared: TrainingRun, never: TrainingRun) -> Bet:
    """The question of where the loss ends if the gradient is never cleared."""
    lost = not never.loss[-1] < TOO_LARGE
    share = math.inf if lost else float(never.loss[-1] / cleared.loss[-1])
    right = ENDS[0] if share < 0.95 else ENDS[1] if share > 1.05 else ENDS[2]
    end = "diverges" if lost else f"ends at {never.loss[-1]:.2g}"
    question = f"If .grad is never cleared, where does the loss end, compared with a run that clears it ({title})?"
    return Bet(
        question,
        ENDS,
        right,
        f"cleared, the loss ends at {cleared.loss[-1]:.2g}; never cleared, it {end}",
        {"forget": True},
    )


def sentence(name: str, run: TrainingRun) -> str:
    """The outcome of one run, in numbers."""
    quarter = max(1, len(run.norm) // 4)
    early, late = run.norm[:quarter].max(), run.norm[-quarter:].max()
    if not run.loss[-1] < TOO_LARGE:
        return f"{name}: diverged after {len(run.loss)} steps, when the loss was {run.loss[-1]:.0e}."
    return (
        f"{name}: loss {run.loss[-1]:.2g} after {len(run.loss)} steps; .grad was at most {early:.3g} long "
        f"in the first quarter of the run and {late:.3g} in the last."
    )


def comparison(runs: dict[str, TrainingRun], optimizer: str) -> list[str]:
    """How never clearing compares with momentum 1.0."""
    if len(runs) < 3:
        return []
    never, rolling = runs["never cleared"], runs["cleared, momentum 1.0"]
    steps = min(len(never.loss), len(rolling.loss))
    gap = float(np.abs(never.loss[:steps] - rolling.loss[:steps]).max())
    told = (
        "Largest difference in loss between never clearing and momentum 1.0 (dotted, with the length of its buffer): "
        f"{gap:.3g}."
    )
    if optimizer != "SGD":
        told += " They are the same only for plain SGD."
    return [told]


def energy_bound(runs: dict[str, TrainingRun], optimizer: str, batch: str, problem: str, lr: float) -> float | None:
    """The largest length of `.grad` if loss + lr / 2 * norm**2 is conserved. That holds for plain SGD with small steps
    on a loss that stays the same; otherwise None.
    """
    unchanging = batch == "all" or problem == "one weight"
    if "never cleared" not in runs or optimizer != "SGD" or not unchanging or lr > 0.1:
        return None
    return math.sqrt(2 * runs["never cleared"].loss[0] / lr)


def energy_words(run: TrainingRun, lr: float, bound: float) -> str:
    energy = run.loss + lr / 2 * run.norm**2
    return (
        f"loss + lr/2 * norm**2 stays between {energy.min():.3g} and {energy.max():.3g}: "
        f"a ball that rolls without friction. .grad cannot get much longer than {bound:.3g}."
    )


STYLES: dict[str, dict[str, Any]] = {
    "cleared": {"color": COLORS[0]},
    "never cleared": {"color": COLORS[1]},
    "cleared, momentum 1.0": {"color": INK, "linestyle": (0, (1, 3)), "linewidth": 2.5},
}


def picture(runs: dict[str, TrainingRun], title: str, bound: float | None) -> str:
    """Three plots side by side."""
    with plotting():
        row = axes(3, figsize=(9.6, 3.7))
        for name, run in runs.items():
            for axis, values in zip(row, (run.loss, run.norm, run.weights), strict=True):
                lines = axis.plot(np.arange(1, len(values) + 1), values, **STYLES[name])
                lines[0].set_label(name)
        if bound:
            row[1].axhline(bound, color="gray", linestyle="--", linewidth=1.5)
            row[1].text(
                0.98,
                bound,
                "bound from the first loss",
                transform=row[1].get_yaxis_transform(),
                va="bottom",
                ha="right",
                fontsize=11,
            )
            row[1].margins(y=0.1)
        several = next(iter(runs.values())).weights.shape[1] > 1
        for axis, label in zip(
            row, ("loss", "length of .grad", "three of the weights" if several else "w"), strict=True
        ):
            axis.set(xlabel="step", title=label)
            scale(axis, runs, label)
        figure = row[0].get_figure()
        figure.subplots_adjust(bottom=0.24)
        figure.legend(*row[0].get_legend_handles_labels(), loc="lower center", ncols=3, fontsize=11)
        return svg_of(row[0], f"Loss, length of .grad and weights, step by step: {title}")


def scale(axis: Any, runs: dict[str, TrainingRun], label: str) -> None:
    """Set the scale of an axis: logarithmic for losses, and for other values if they exceed 1000."""
    from mini_autograd.widgets.demo import logarithmic

    if label == "loss":
        logarithmic(axis)
        axis.set_ylim(bottom=max(1e-12, min(float(run.loss.min()) for run in runs.values()) * 0.5))
    elif label == "length of .grad":
        if max(float(run.norm.max()) for run in runs.values()) > 1000:
            logarithmic(axis)
            axis.set_ylim(bottom=1e-3)
    elif max(float(np.abs(run.weights).max()) for run in runs.values()) > 1000:
        axis.set_yscale("symlog", linthresh=1.0)
        largest = max(float(np.abs(run.weights).max()) for run in runs.values())
        power = 10.0 ** max(1, round(math.log10(largest)))
        axis.set_yticks([-power, 0, power], [f"-{power:.0e}", "0", f"{power:.0e}"])
        axis.minorticks_off()


ENDS = ("lower", "higher", "about the same")
START: dict[str, Any] = {
    "forget": False, "problem": "network", "optimizer": "SGD", "batch": "all", "lr": 0.05, "spring": False,
}  # fmt: skip
FORGETTING: dict[str, dict[str, Any]] = {
    "The bug": {},
    "The same as momentum 1.0": {"spring": True},
    "A spring": {"problem": "one weight", "lr": 0.1},
    "Small batches": {"problem": "regression", "batch": "8"},
    "Above 4": {"problem": "one weight", "lr": 4.1},
    "Momentum 0.9": {"problem": "regression", "optimizer": "SGD, momentum 0.9", "spring": True},
    "Adam": {"problem": "regression", "optimizer": "Adam", "lr": 0.01, "spring": True},
}
"""Settings with a button, as differences from the start. All of them also forget."""


@functools.cache
def demo() -> Demo:
    return Demo(
        title="A gradient that is never cleared",
        controls=(
            Switch("forget", "forget zero_grad"),
            Switch("spring", "compare with momentum 1.0"),
            Slider("lr", "learning rate", RATES),
            Choice("problem", "problem", tuple(PROBLEMS)),
            Choice("optimizer", "optimizer", OPTIMIZERS),
            Choice("batch", "batch size", BATCHES),
        ),
        show=show,
        start=START,
        presets={name: {**START, "forget": True, **state} for name, state in FORGETTING.items()},
    )


def accumulation(predict: bool = True, **state: Any) -> Any:
    """The demo: training with `.grad` cleared and never cleared. `state` sets its controls, such as `forget=True`;
    `predict` asks first where the loss ends.
    """
    return demo().live(predict=predict, **state)
