"""How quickly widgets answer: milliseconds from a pointer or key to the picture, in a real JupyterLab and on a page.

`python -m benchmarks.widgets` times the layout of graphs of 30, 100 and 300 nodes; then it opens a notebook with every
widget of the course in Chromium, uses each 60 times, and prints medians beside targets, and beside what the same took
when Python computed it. `--quick` only times layouts. The clock of the page runs from the event until the first change
that follows it has been painted, so a row is never shorter than the wait for the next frame. The first row is a message
to Python and back that does nothing: where that takes long, the machine is busy, and the other rows are longer by it.
Then the widgets that need no Python are used on a page as the website has it. Last come the two pictures that are not
clicked: how long drawing the training monitor takes, and the table of progress from the notebooks of all lessons.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mini_autograd as ma
from autograder.lessons.builder.lesson_files import lesson_texts
from autograder.lessons.builder.notebook import assemble, notebook_text
from autograder.lessons.release import release_notebook
from autograder.lessons.student.progress import progress_of
from autograder.quizzes.sealing import Answer, seal_quiz
from docs.site.lesson_pages import live
from docs.site.widget_files import write_widgets
from mini_autograd import widgets
from mini_autograd.drawing import read_graph
from mini_autograd.drawing.layout import lay_out
from mini_autograd.widgets.demos.monitor import Monitor
from mini_autograd.widgets.demos.monitor_picture import draw
from tests.browser import conftest

PROJECT = Path(__file__).resolve().parents[1]
LIVE = PROJECT / "docs" / "site" / "static" / "live.js"
TIMES = 60
TARGETS = {"browser": 33, "Python": 100, "Matplotlib": 100, "layout of 300": 100}
THROUGH_PYTHON = {("explore", "drag a leaf"): 214}
"""Medians of what the browser computes now, from when Python did."""
WATCH = """(root, part) => {
  const note = window.noted = { start: null, end: null, seen: false };
  const begin = () => { note.start = performance.now(); note.end = null; note.seen = false; };
  const painted = new MessageChannel(); // its message arrives after the frame has been painted
  painted.port1.onmessage = () => (note.end = performance.now());
  for (const kind of ["pointerdown", "keydown"]) window.addEventListener(kind, begin, { capture: true });
  window.addEventListener("pointermove", (event) => event.buttons && begin(), { capture: true });
  new MutationObserver(() => {
    if (note.start === null || note.seen) return;
    note.seen = true;
    requestAnimationFrame(() => painted.port2.postMessage(null));
  }).observe(part ? root.querySelector(part) : root, { subtree: true, childList: true, attributes: true });
}"""
GRAPH = """import mini_autograd as ma
from mini_autograd.widgets import *
net = ma.nn.Sequential(*[part for _ in range(3) for part in (ma.nn.Linear(3, 3), ma.nn.Tanh())])
loss = net(ma.ones(2, 3)).sum()
explore(loss)"""
NUMBERS = 'explore("(a*b + a).tanh()")'
GAME = "be_the_engine()"
KEYS = [f"q{number}" for number in range(8)]
OPTIONS = {"a": Answer(True, "Yes. " * 20, "", "One"), "b": Answer(False, "No. " * 20, "", "Two")}
SEALED = seal_quiz(dict.fromkeys(KEYS, OPTIONS), dict.fromkeys(KEYS, "Which of the two is it?"))
QUIZ = (
    f"answers = {json.dumps(dict.fromkeys(KEYS, ''))}",
    f'from autograder.student import quiz\nquiz(answers, points=4, sealed="{SEALED}")',
)


@dataclass(frozen=True)
class Row:
    """One line of the table: what was done, who answers, and the milliseconds that each time took."""

    widget: str
    action: str
    answered_by: str
    milliseconds: list[float]

    def text(self) -> str:
        median, target = statistics.median(self.milliseconds), TARGETS[self.answered_by]
        low, high = min(self.milliseconds), max(self.milliseconds)
        verdict = "" if median < target else "  over"
        if before := THROUGH_PYTHON.get((self.widget, self.action)):
            verdict += f"  (through Python: {before})"
        return (
            f"{self.widget:20s} {self.action:28s} {self.answered_by:13s} {median:7.1f} {low:7.1f} {high:7.1f} "
            f"{target:5d}{verdict}"
        )


def demos() -> dict[str, Any]:
    """The demos of the package by name, each with its description."""
    modules = {name: sys.modules.get(getattr(widgets, name).__module__) for name in widgets.__all__}
    return {name: module.demo() for name, module in modules.items() if module is not None and hasattr(module, "demo")}


def unasked(name: str) -> str:
    """The call that shows a demo without the question that comes first."""
    return f"{name}({'predict=False' if 'predict' in inspect.signature(getattr(widgets, name)).parameters else ''})"


def measured(page: Any, root: Any, actions: list[Callable[[], None]], part: str = ".ma-canvas") -> list[float]:
    """Do the actions in turn, and measure how long each takes to show in a part of the widget ("": in any part).

    The first round is not counted. The widget ends as it was: every action is done the same number of times.
    """
    root.evaluate(WATCH, part)
    first = len(actions) + -TIMES % len(actions)
    found = []
    for number in range(first + TIMES):
        page.evaluate("() => { Object.assign(window.noted, { start: null, end: null, seen: false }); }")
        actions[number % len(actions)]()
        page.wait_for_function("() => window.noted.end !== null")
        page.wait_for_timeout(150)
        if number >= first:
            found.append(page.evaluate("() => window.noted.end - window.noted.start"))
    return found


def in_browser() -> Iterator[Row]:
    """Every demo, the graph explorer and a quiz, used in one notebook."""
    known = demos()
    with (
        tempfile.TemporaryDirectory() as home,
        conftest.browser(Path(home) / "profile") as profile,
        conftest.serving(Path(home)) as served,
    ):
        lab = conftest.Lab(profile.new_page(), *served)
        sources = [GRAPH, NUMBERS, GAME, *map(unasked, known), *QUIZ]
        lab.open_notebook(lab.write_notebook("widgets.ipynb", sources))
        lab.run_all()
        if lab.errors():
            raise RuntimeError(f"a cell failed: {lab.errors()}")
        yield Row("kernel", "an empty message and back", "Python", round_trips(lab.page))
        yield from explorer_rows(lab)
        yield from game_rows(lab.page, lab.cell(2))
        for index, (name, demo) in enumerate(known.items(), 3):
            yield from demo_rows(lab, index, name, demo)
        yield from quiz_rows(lab, len(sources) - 1)
        yield from on_a_page(profile.new_page(), Path(home) / "page")


def round_trips(page: Any) -> list[float]:
    """Milliseconds of an empty message to Python and back. No widget that Python answers can be quicker right now."""
    return page.evaluate(
        """async (times) => {
            const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
            const found = [];
            for (let number = 0; number < times; number += 1) {
                const start = performance.now();
                await kernel.requestExecute({ code: "", silent: true }).done;
                found.push(performance.now() - start);
            }
            return found;
        }""",
        TIMES,
    )


def explorer_rows(lab: Any) -> Iterator[Row]:
    root = lab.cell(0).locator(".ma-explorer")
    root.wait_for()
    yield Row("explore", "Step, Back", "browser", measured(lab.page, root, pressing(root, "Step", "Back")))
    yield Row("explore", "Blocks", "Python", measured(lab.page, root, pressing(root, "Blocks")))
    yield from number_rows(lab.page, lab.cell(1))


def number_rows(page: Any, place: Any) -> Iterator[Row]:
    """A leaf of a graph of numbers, dragged to and fro."""
    root = place.locator(".ma-explorer")
    box = root.locator(".ma-movable").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    moves: list[Callable[[], None]] = [partial(page.mouse.move, x + by, y) for by in (20, 40)]
    yield Row("explore", "drag a leaf", "browser", measured(page, root, moves))
    page.mouse.up()


def game_rows(page: Any, place: Any) -> Iterator[Row]:
    root = place.locator(".ma-game")
    yield Row("be_the_engine", "a node sends, Undo", "browser", measured(page, root, pressing(root, "t sends", "Undo")))


def on_a_page(page: Any, folder: Path) -> Iterator[Row]:
    """The widgets that need no Python, on a page with the website's scripts."""
    write_widgets(folder)
    shutil.copy(LIVE, folder)
    made = [widgets.explore("(a*b + a).tanh()"), widgets.be_the_engine()]
    places = "".join(live(widget.get_state(), "", "") for widget in made)
    scripts = '<script>var DOCUMENTATION_OPTIONS = {}</script><script src="widgets.js"></script><script src="live.js">'
    style = '<link rel="stylesheet" href="widgets.css">'
    (folder / "page.html").write_text(f"<!doctype html>{style}{scripts}</script><body>{places}", encoding="utf-8")
    page.goto((folder / "page.html").as_uri())
    for row in (*number_rows(page, page.locator(".live").nth(0)), *game_rows(page, page.locator(".live").nth(1))):
        yield replace(row, widget=f"{row.widget}, page")


def demo_rows(lab: Any, index: int, name: str, demo: Any) -> Iterator[Row]:
    root = lab.cell(index).locator(".ma-demo")
    root.wait_for()
    shown = demo.show(**demo.start)
    answered_by = "Matplotlib" if "figure_1" in shown.svg else "Python"
    if shown.steps:
        yield Row(name, "Step, Back", "browser", measured(lab.page, root, pressing(root, "Step", "Back"), ""))
    sliders = [control.to_json() for control in demo.controls if control.to_json()["kind"] == "slider"]
    if sliders:
        field, values = root.locator(f"[data-control='{sliders[0]['name']}']"), sliders[0]["values"]
        keys = ["ArrowRight", "ArrowLeft"]
        if demo.start[sliders[0]["name"]] == values[-1]:
            keys.reverse()
        actions: list[Callable[[], None]] = [partial(field.press, key) for key in keys]
        yield Row(name, f"slider {sliders[0]['label']}"[:28], answered_by, measured(lab.page, root, actions))
    for preset in itertools.islice(demo.presets, 1):
        yield Row(name, f"{preset}, Reset", answered_by, measured(lab.page, root, pressing(root, preset, "Reset")))


def quiz_rows(lab: Any, index: int) -> Iterator[Row]:
    root = lab.cell(index).locator(".aq-quiz")
    root.wait_for()
    options = root.locator("button")
    yield Row(
        "quiz",
        "an option, another one",
        "browser",
        measured(lab.page, root, [options.nth(0).click, options.nth(1).click], ""),
    )
    keys: list[Callable[[], None]] = [partial(options.nth(0).press, key) for key in ("a", "b")]
    yield Row("quiz", "keys a and b", "browser", measured(lab.page, root, keys, ""))


def in_python() -> Iterator[Row]:
    """The pictures that are not clicked: the training monitor, and the progress of a student."""
    watched = Monitor(range(2000), {f"layer {n}.weight": ma.ones(3, requires_grad=True) for n in range(6)}, Silent())
    for step in watched:
        for weight in watched.model.values():
            weight.grad = ma.full((3,), 1.0 + step % 7)
        watched.log(loss=1 / (1 + step))
    yield Row("monitor", "draw 2,000 steps, 6 layers", "Python", repeated(lambda: draw(watched)))
    with tempfile.TemporaryDirectory() as folder:
        texts = lesson_texts(PROJECT / "course")
        for text in texts:
            (Path(folder) / text.stem).mkdir()
            notebook = release_notebook(assemble(text))
            (Path(folder) / text.stem / f"{text.stem}.ipynb").write_text(notebook_text(notebook), encoding="utf-8")
        yield Row(
            "progress", f"table of {len(texts)} lessons", "Python", repeated(lambda: progress_of(Path(folder)).html())
        )


class Silent:
    """A display that shows nothing."""

    def show(self, monitor: Monitor, last: bool) -> None:
        return


def repeated(work: Callable[[], Any]) -> list[float]:
    work()
    found = []
    for _ in range(TIMES):
        start = time.perf_counter()
        work()
        found.append(1e3 * (time.perf_counter() - start))
    return found


def pressing(root: Any, *names: str) -> list[Callable[[], None]]:
    buttons = [root.get_by_role("button", name=name, exact=True) for name in names]
    return [button.click for button in buttons]


def network(nodes: int, shared: bool) -> Any:
    """The graph of a residual network of about `nodes` nodes, whose layers have weights of their own or share three."""
    generator = np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return ma.tensor(generator.normal(size=shape) / 2, requires_grad=True)

    common = [(weight(4, 4), weight(4)) for _ in range(3)]
    h, layer = weight(4, 4), 0
    while h.grad_fn is None or len(read_graph(h).nodes) < nodes - 4:
        matrix, bias = common[layer % 3] if shared else (weight(4, 4), weight(4))
        h, layer = (h @ matrix + bias).tanh() + h, layer + 1
    return read_graph(h.sum())


def layouts() -> Iterator[str]:
    for shared in (False, True):
        for nodes in (30, 100, 300):
            graph = network(nodes, shared)
            edges = [(edge.source, edge.target) for edge in graph.edges]
            found, worked = [], []
            for _ in range(TIMES):
                start, begun = time.perf_counter(), time.process_time()
                lay_out([(90.0, 65.0)] * len(graph.nodes), edges)
                found.append(1e3 * (time.perf_counter() - start))
                worked.append(1e3 * (time.process_time() - begun))
            kind = "shared weights" if shared else "own weights"
            yield (
                f"layout, {kind:15s} {len(graph.nodes):4d} nodes {len(edges):4d} lines   median "
                f"{statistics.median(found):6.1f} ms, processor time {statistics.median(worked):6.1f} ms"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="time layouts only")
    options = parser.parse_args()
    for line in layouts():
        print(line, flush=True)
    print(f"target: 300 nodes in less than {TARGETS['layout of 300']} ms")
    if options.quick:
        return
    print(f"\n{'widget':20s} {'action':28s} {'answered by':13s} {'median':>7s} {'min':>7s} {'max':>7s} target, in ms")
    for row in itertools.chain(in_browser(), in_python()):
        print(row.text(), flush=True)


if __name__ == "__main__":
    main()
