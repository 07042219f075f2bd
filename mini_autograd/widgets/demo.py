"""A demo: a few controls, a picture that follows them, and a sentence or two on what it shows.

A demo defines its controls and what it shows for a setting of them; this file holds what all demos share. Pictures are
SVG, drawn by hand or by Matplotlib, so an exported page keeps them. If there are steps, the browser goes through them
without Python: parts of the picture carry the number of the step in which they appear.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mini_autograd.widgets.scripts import SET_BY_READERS, in_words, script
from mini_autograd.widgets.static import StaticPicture, on_paper, with_static_picture

try:
    import anywidget
    import traitlets
except ImportError:  # without the widget library the still picture is shown
    anywidget = None  # type: ignore[assignment]

HERE = Path(__file__).parent
INK, PAPER = "#010203", "#fdfefd"
"""Placeholders for the text and background color of the page, whatever its theme."""

COLORS = ("#1f83c4", "#d9660a", "#4b9687", "#c30f3c", "#692dff", "#6978ff")
"""For lines: distinct for color-blind readers, and readable on white and on black (tests check both)."""

STYLE: dict[Any, Any] = {
    "figure.figsize": (7.2, 3.9),
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.labelcolor": INK,
    "legend.frameon": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 11,
    "lines.linewidth": 2,
    "svg.fonttype": "none",
    "mathtext.default": "regular",
}


@dataclass(frozen=True)
class Choice:
    """Picks one of several words."""

    name: str
    label: str
    options: tuple[str, ...]

    def read(self, value: Any) -> str:
        return self.options[self.options.index(value)]

    def to_json(self) -> dict[str, Any]:
        return {"kind": "choice", "name": self.name, "label": self.label, "options": list(self.options)}


@dataclass(frozen=True)
class Slider:
    """Picks one of several numbers, in order. `texts` are their labels. With `plays`, a button runs through them."""

    name: str
    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...] = ()
    plays: bool = False

    def read(self, value: Any) -> float:
        """The number as the demo has it: a browser sends 1.0 as 1."""
        return self.values[self.values.index(value)]

    def to_json(self) -> dict[str, Any]:
        texts = list(self.texts) or [f"{value:g}" for value in self.values]
        numbers = {"values": list(self.values), "texts": texts, "plays": self.plays}
        return {"kind": "slider", "name": self.name, "label": self.label, **numbers}


@dataclass(frozen=True)
class Switch:
    """A switch that is on or off."""

    name: str
    label: str

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError("neither on nor off")
        return value

    def to_json(self) -> dict[str, Any]:
        return {"kind": "switch", "name": self.name, "label": self.label}


@dataclass(frozen=True)
class Entry:
    """Takes a short typed text, such as a shape. If hidden, it only keeps what was chosen in the picture."""

    name: str
    label: str
    hidden: bool = False

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or len(value) > 200:
            raise ValueError("not a short text")
        return value

    def to_json(self) -> dict[str, Any]:
        return {"kind": "entry", "name": self.name, "label": self.label, "hidden": self.hidden}


Control = Choice | Slider | Switch | Entry


@dataclass(frozen=True)
class Bet:
    """A prediction before a picture is shown: the question, the answers to choose from, the right one, and the reason.

    A question is asked once. To have it asked again at another setting, name the setting in the question. `reveals` are
    the controls that are set by an answer, for a picture that shows the right one.
    """

    question: str
    options: tuple[str, ...]
    right: str
    reason: str
    reveals: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "options": list(self.options), "reveals": dict(self.reveals)}


@dataclass(frozen=True)
class Shown:
    """What a demo shows for one setting: an SVG, sentences about it, and a sentence about each of its steps.

    In the SVG, a group with the id `from-3` is visible from step 3 on, one with the id `only-3` only in step 3. A path
    `data-way="a"` is drawn point by point, one per step, and a mark `data-along="a"` stands at its current end; both
    are written as they look in the last step.
    """

    svg: str
    words: tuple[str, ...]
    steps: tuple[str, ...] = ()
    words_at_end: bool = False  # the words tell how it ends, so they wait for the last step
    bet: Bet | None = None
    asks: bool = False  # the words ask for something that only Python can answer


@dataclass(frozen=True)
class Demo:
    """A demo: its title, controls, the function that shows a setting, the first setting, and settings with a button.

    If the first setting asks for something, `answered` changes it to one that does not, for pages without Python.
    """

    title: str
    controls: tuple[Control, ...]
    show: Callable[..., Shown]
    start: Mapping[str, Any]
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answered: Mapping[str, Any] = field(default_factory=dict)

    def live(self, step: int | None = None, predict: bool = False, **state: Any) -> Any:
        """The widget, or a still picture if widgets are not installed. `state` overrides the start.

        `step` is the step to show first; by default, the last. `predict` asks for a bet before the picture, if the demo
        has one.
        """
        first = self.checked({**self.start, **state})
        shown = self.show(**first)
        if anywidget is None:
            return self.still(shown)
        last = max(len(shown.steps) - 1, 0)
        return DemoWidget(self, first, shown, last if step is None else min(step, last), predict)

    def checked(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """A setting with a value for each control. Raises ValueError for an unknown control or value."""
        controls = {control.name: control for control in self.controls}
        read = {}
        for name, value in state.items():
            if name not in controls:
                raise ValueError(f"{self.title!r} has no control {name!r}; it has {', '.join(controls)}")
            try:
                read[name] = controls[name].read(value)
            except ValueError:
                control = controls[name].to_json()
                raise ValueError(f"{value!r} is not a setting of {name!r} in {self.title!r}: {control}") from None
        return {name: read[name] for name in controls}

    def still(self, shown: Shown) -> StaticPicture:
        """The picture at its last step, for pages without a kernel and for terminals."""
        last = max(len(shown.steps) - 1, 0)
        text = "\n".join((self.title, *shown.words, *shown.steps[-1:]))
        return StaticPicture(on_paper(without_presses(with_steps_hidden(shown.svg, last))), text)


def with_steps_hidden(svg: str, step: int) -> str:
    """An SVG as it looks in one step."""

    def hidden(match: re.Match[str]) -> str:
        kind, number = match[1], int(match[2])
        visible = number <= step if kind == "from" else number == step
        return match[0] if visible else f'{match[0]} display="none"'

    return re.sub(r'<g id="(from|only)-(\d+)(?:-\w+)?"', hidden, svg)


def without_presses(svg: str) -> str:
    """An SVG whose parts cannot be pressed, for where nothing answers. What is only there to be pressed is gone."""
    svg = re.sub(r'<g class="ma-press ma-tool".*?</g>', "", svg, flags=re.DOTALL)
    return re.sub(r'<g class="ma-press"[^>]*>', "<g>", svg)


serial = itertools.count()


def axes(columns: int = 1, **options: Any) -> Any:
    """The axes of a new Matplotlib figure, side by side; draw inside `with plotting():`.

    The margins are fixed: computing a layout for every picture takes longer than the picture itself.
    """
    from matplotlib.figure import Figure

    drawn = Figure(**options)
    drawn.subplots_adjust(left=0.11 if columns == 1 else 0.08, right=0.985, bottom=0.15, top=0.91, wspace=0.28)
    return drawn.subplots(1, columns)


def logarithmic(axis: Any, which: str = "y") -> None:
    """Mark powers of ten along an axis, written 1e-3: labels set as formulas take ten times longer to draw.

    An axis with fewer than two powers of ten also has marks at 2 and 5 times a power; a short axis has even more.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    class Powers(LogLocator):
        def tick_values(self, low: float, high: float) -> Any:
            self.set_params(subs=(1, 1.5, 2, 3, 5, 7) if high < 6 * low else (1, 2, 5) if high < 100 * low else (1,))
            return super().tick_values(low, high)

    for name in which:
        getattr(axis, f"set_{name}scale")("log")
        line = getattr(axis, f"{name}axis")
        line.set_major_locator(Powers(numticks=8))
        line.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g}" if 0.001 < value < 1e4 else f"{value:.0e}")
        )
        line.set_minor_locator(NullLocator())


def plotting() -> Any:
    """A context in which figures have the common style of the demos."""
    import matplotlib as mpl
    from cycler import cycler

    return mpl.rc_context(STYLE | {"axes.prop_cycle": cycler(color=COLORS), "svg.hashsalt": f"demo{next(serial)}"})


def svg_of(axis: Any, label: str) -> str:
    """The figure of some axes as SVG, in the colors and the font of the page. `label` is for screen readers."""
    buffer = io.StringIO()
    axis.get_figure().savefig(buffer, format="svg")
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)  # hundredths cannot be seen
    svg = svg.replace(INK, "currentColor").replace(PAPER, "var(--jp-layout-color0, white)")
    escaped = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escaped}" ', 1)


if anywidget is not None:

    class DemoWidget(anywidget.AnyWidget):
        """The live demo. The browser sets `state`; everything else follows from it, or an error is shown in words."""

        _esm = script(HERE / "demo.js")
        _css = (HERE / "demo.css").read_text(encoding="utf-8")

        title = traitlets.Unicode().tag(sync=True)
        controls: Any = traitlets.List().tag(sync=True)
        presets: Any = traitlets.List().tag(sync=True)  # pairs, since a notebook file would sort the keys of a dict
        start: Any = traitlets.Dict().tag(sync=True)
        state: Any = traitlets.Dict().tag(**SET_BY_READERS)
        shown: Any = traitlets.Dict().tag(sync=True)
        step = traitlets.Int(0).tag(**SET_BY_READERS)
        predict: Any = traitlets.Bool(None, allow_none=True).tag(**SET_BY_READERS)  # None: nothing to bet on
        bets: Any = traitlets.Dict().tag(**SET_BY_READERS)  # what was chosen, by question; "" if skipped
        own_id = traitlets.Unicode().tag(sync=True)

        def __init__(self, demo: Demo, first: Mapping[str, Any], shown: Shown, step: int, predict: bool) -> None:
            self._demo, self._shown = demo, shown
            super().__init__(
                title=demo.title,
                controls=[control.to_json() for control in demo.controls],
                presets=[[name, dict(state)] for name, state in demo.presets.items()],
                start=dict(first),
                state=dict(first),
                shown=as_json(shown),
                step=step,
                predict=None if shown.bet is None else predict,
            )
            self.own_id = self.model_id
            self.observe(self._follow, "state")

        def _follow(self, change: Any) -> None:
            try:
                self._shown = self._demo.show(**self._demo.checked({**self._demo.start, **change["new"]}))
            except (Exception, KeyboardInterrupt) as error:  # the browser waits for an answer
                told = {"words": [in_words(error)], "steps": [], "words_at_end": False, "bet": None, "wrong": True}
                self.shown = {**self.shown, **told, "serial": next(serial)}
                return
            self.shown = as_json(self._shown)

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            return with_static_picture(super()._repr_mimebundle_(**kwargs), self._demo.still(self._shown))


def as_json(shown: Shown) -> dict[str, Any]:
    """The data for the browser. Its serial number shows that it is a new answer, even if it equals the last one."""
    words: Sequence[str] = shown.words
    return {
        "svg": shown.svg,
        "words": list(words),
        "steps": list(shown.steps),
        "words_at_end": shown.words_at_end,
        "bet": None if shown.bet is None else shown.bet.to_json(),
        "wrong": False,
        "serial": next(serial),
    }
