"""A training monitor: `for batch in monitor(loader, model=model):` shows progress, losses and gradient norms by layer.

It depends on no engine: a parameter is anything with `.grad`, so it works with PyTorch, `mini_autograd` and a student's
class. In a notebook it draws a picture that stays in the notebook, elsewhere a progress bar. Everything logged is kept
in the object; only drawing is skipped if it would slow the training down.
"""

from __future__ import annotations

import atexit
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from mini_autograd.widgets.demos.monitor_picture import draw
from mini_autograd.widgets.demos.series import Series
from mini_autograd.widgets.static import StaticPicture, on_paper

INTERVAL = 0.25
"""The least number of seconds between two pictures."""

SHARE = 0.05
"""The largest share of a loop's time for drawing, and likewise for measuring gradients."""

ALWAYS = 100
"""The number of first steps that are always measured."""


class Display(Protocol):
    """Where a monitor is shown."""

    def show(self, monitor: Monitor, last: bool) -> None: ...


class Monitor:
    """Iterates over batches and keeps the logged numbers. Made by `monitor`."""

    def __init__(self, batches: Iterable[Any], model: Any = None, display: Display | None = None) -> None:
        self.batches, self.model = batches, model
        self.total = count(batches)
        self.history: dict[str, Series] = {}
        """The logged numbers, by name."""
        self.norms: dict[str, Series] = {}
        """The length of the gradient of each layer."""
        self.step, self.passes, self.in_pass, self.state = 0, 0, 0, "not started"
        self.seconds = 0.0
        self._started = self._next_picture = self._next_norms = 0.0
        self._cheapest = math.inf
        self._display = display or (InNotebook() if in_notebook() else InTerminal())

    def __iter__(self) -> Iterator[Any]:
        """The batches. A second pass through the same monitor continues its curves."""
        self._begin()
        try:
            for batch in self.batches:
                yield batch
                self.step, self.in_pass = self.step + 1, self.in_pass + 1
                self._tick()
            self.state = "finished"
        finally:
            self.finish()

    def log(self, **values: Any) -> None:
        """Log numbers by name: floats, or tensors of one element. Call it after backward and before zero_grad, so that
        the gradients of the model can be measured too.
        """
        for name, value in values.items():
            self.history.setdefault(name, Series()).append(self.step + 1, number(value))
        began = time.perf_counter()
        if self.model is not None and (self.step < ALWAYS or began >= self._next_norms):
            for name, norm in gradient_norms(self.model).items():
                self.norms.setdefault(name, Series()).append(self.step + 1, norm)
            after = time.perf_counter()
            self._cheapest = min(self._cheapest, after - began)
            cost = min(after - began, 3 * self._cheapest)  # any more is time that another program took
            self._next_norms = after + cost / SHARE

    def finish(self) -> None:
        """Draw the last picture. Called when the loop ends, is left early or fails; calling it again does nothing."""
        if self.state == "running":
            self.state = f"stopped in step {self.step + 1}"
        if self._started:
            self.seconds += time.perf_counter() - self._started
            self._started = 0.0
            atexit.unregister(self.finish)
            self._display.show(self, last=True)

    def describe(self) -> str:
        """The progress in words."""
        of = f" of {self.total}" if self.total is not None else ""
        again = f", pass {self.passes}" if self.passes > 1 else ""
        parts = [f"step {self.in_pass}{of}{again}: {self.state}"]
        parts += [f"{name} {series.values[-1]:.4g}" for name, series in self.history.items()]
        parts += [
            f"{name} has been {series.values[series.steps.index(lost)]} since step {lost}"
            for name, series in {**self.history, **self.norms}.items()
            if (lost := series.first_lost()) is not None
        ]
        return "; ".join(parts)

    def elapsed(self) -> float:
        """Seconds spent in its loops."""
        return self.seconds + (time.perf_counter() - self._started if self._started else 0.0)

    def _begin(self) -> None:
        self.finish()  # if a loop before this one failed
        self.state, self.in_pass, self.passes = "running", 0, self.passes + 1
        self._started = time.perf_counter()
        self._next_picture = self._started
        running.append(self)
        del running[:-1]
        atexit.register(self.finish)
        when_cell_ends(self.finish)
        self._tick()

    def _tick(self) -> None:
        """Draw a new picture if it is time for one."""
        now = time.perf_counter()
        if now >= self._next_picture:
            self._display.show(self, last=False)
            after = time.perf_counter()
            self._next_picture = after + max(INTERVAL, (after - now) / SHARE)


running: list[Monitor] = []
"""The monitor started last."""


class Starter:
    """The class of `monitor`: calling it makes a Monitor, and its `log` logs to the one started last."""

    def __call__(self, batches: Iterable[Any] | int, model: Any = None) -> Monitor:
        """Watch a loop over `batches` (or over range(batches)).

        `model` has named_parameters() or parameters(), or is a dict of parameters, or a list of them.
        """
        return Monitor(range(batches) if isinstance(batches, int) else batches, model)

    def log(self, **values: Any) -> None:
        """Log to the monitor that was started last. Raises RuntimeError if none was."""
        if not running:
            raise RuntimeError("monitor.log was called before any loop over monitor(...) began; call it in such a loop")
        running[-1].log(**values)


monitor = Starter()


def count(batches: Any) -> int | None:
    """The number of batches; None if it is not known, as for a loader of a stream."""
    try:
        return len(batches)
    except TypeError:
        return None


def parameters_of(model: Any) -> dict[str, Any]:
    """The parameters of a model by name."""
    if isinstance(model, Mapping):
        return dict(model)
    if hasattr(model, "named_parameters"):
        return dict(model.named_parameters())
    listed = model.parameters if hasattr(model, "parameters") else model
    return {f"parameter {i}": parameter for i, parameter in enumerate(listed() if callable(listed) else listed)}


def gradient_norms(model: Any) -> dict[str, float]:
    """The length of the gradient of each layer: of all parameters with the same name up to the last dot."""
    squares: dict[str, float] = {}
    for name, parameter in parameters_of(model).items():
        if parameter.grad is not None:
            layer = name.rpartition(".")[0] or name
            squares[layer] = squares.get(layer, 0.0) + length(parameter.grad) ** 2
    return {layer: math.sqrt(square) for layer, square in squares.items()}


def length(gradient: Any) -> float:
    """The length of a gradient: PyTorch's and our tensors, a student's tensors around arrays, arrays, numbers."""
    if callable(getattr(gradient, "norm", None)) and callable(getattr(gradient, "detach", None)):
        return float(gradient.detach().norm().item())
    array = np.asarray(plain(gradient), dtype=float).ravel()
    return math.sqrt(float(array @ array))


def number(value: Any) -> float:
    """The float in a tensor or an array of one element, or a number as a float. Raises ValueError for anything else."""
    try:
        return float(value.item() if callable(getattr(value, "item", None)) else np.asarray(plain(value)).item())
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"monitor.log takes numbers and tensors of one element, not {value!r}") from error


def plain(value: Any) -> Any:
    """The array or number inside a tensor."""
    while hasattr(value, "data") and not isinstance(value, np.ndarray | np.generic):
        value = value.data
    return value


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


def when_cell_ends(action: Any) -> None:
    """Call `action` at the end of the running cell: a loop that fails does not tell its iterator."""
    if not in_notebook():
        return
    events = sys.modules["IPython"].get_ipython().events

    def once(*_: Any) -> None:
        events.unregister("post_run_cell", once)
        action()

    events.register("post_run_cell", once)


class Inline(StaticPicture):
    """A picture in the colors of the page. As an image, which cannot take them, it has its own colors."""

    def _repr_svg_(self) -> str:
        return on_paper(self.svg)

    def _repr_html_(self) -> str:
        return f'<div class="ma-monitor" style="color: var(--jp-ui-font-color1, black)">{self.svg}</div>'


class InNotebook:
    """A picture that is replaced while the loop runs, and stays in the notebook."""

    def __init__(self) -> None:
        self.handle: Any = None

    def show(self, monitor: Monitor, last: bool) -> None:
        from IPython.display import display

        picture = Inline(draw(monitor), monitor.describe())
        if self.handle is None:
            self.handle = display(picture, display_id=True)
        else:
            self.handle.update(picture)


class InTerminal:
    """A progress bar from the rich library, with the numbers logged last."""

    def __init__(self, console: Any = None) -> None:
        self.console, self.bar, self.task = console, None, None

    def show(self, monitor: Monitor, last: bool) -> None:
        if self.bar is None:
            self._open(monitor)
        bar: Any = self.bar
        numbers = "  ".join(f"{name} {series.values[-1]:.4g}" for name, series in monitor.history.items())
        bar.update(self.task, completed=monitor.in_pass, numbers=numbers, refresh=True)
        if last:
            bar.stop()
            self.bar = None
            if monitor.state != "finished":
                bar.console.print(monitor.describe(), highlight=False)

    def _open(self, monitor: Monitor) -> None:
        from rich import progress

        columns = (
            progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(), progress.TextColumn("{task.fields[numbers]}"),
        )  # fmt: skip
        bar = progress.Progress(*columns, console=self.console, auto_refresh=False)
        name = f"pass {monitor.passes}" if monitor.passes > 1 else "steps"
        self.bar, self.task = bar, bar.add_task(name, total=monitor.total, numbers="")  # type: ignore[assignment]
        bar.start()
