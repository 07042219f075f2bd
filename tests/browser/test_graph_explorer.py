"""The graph explorer in a real JupyterLab: stepped with mouse and keyboard, read from the page, and exported."""

import base64
import re
import subprocess
import sys

import nbformat
import pytest

pytestmark = pytest.mark.browser

ENGINE = """
class MiniTensor:
    def __init__(self, data, inputs=(), operation="", rule=None):
        self.data, self.grad, self.inputs, self.operation, self.rule = data, 0.0, inputs, operation, rule

    def __add__(self, other):
        return MiniTensor(self.data + other.data, (self, other), "+", lambda g: (g, g))

    def __mul__(self, other):
        return MiniTensor(self.data * other.data, (self, other), "*", lambda g: (g * other.data, g * self.data))
"""
STUDENT = (
    "from mini_autograd.widgets import explore\na, b = MiniTensor(2.0), MiniTensor(3.0)\nd = (a + b) * a\nexplore(d)"
)
PYTORCH = """
import torch
x = torch.tensor(-1.5, requires_grad=True)
y = x**2 + 3 * x
explore(y, {"x": x, "y": y})
"""


LARGE = """
import mini_autograd as ma
from mini_autograd.widgets import explore
net = ma.nn.Sequential(*[layer for _ in range(40) for layer in (ma.nn.Linear(3, 3), ma.nn.Tanh())])
x = ma.ones(2, 3)
hidden = net[:2](x)
hidden.register_hook(print)
loss = net[2:](hidden).sum()
explore(loss)
"""
FREED = "loss.backward()\nexplore(loss, fold=False)"


class Explorer:
    """One explorer in the page and what a reader sees of it."""

    def __init__(self, cell):
        self.root = cell.locator(".ma-explorer")
        self.root.wait_for()

    def press(self, button):
        self.root.get_by_role("button", name=button, exact=True).click()

    def key(self, name):
        self.root.press(name)

    def node(self, start):
        return self.root.locator(f".ma-node[aria-label^='{start}']")

    def number(self, start, row):
        return self.node(start).locator(f".ma-{row}").text_content()

    @property
    def words(self):
        return self.root.locator(".ma-words").inner_text()

    @property
    def counter(self):
        return self.root.locator(".ma-counter").inner_text()


@pytest.fixture
def opened(lab):
    lab.open_notebook(lab.write_notebook("explorer.ipynb", [ENGINE, STUDENT, PYTORCH]))
    lab.run_all()
    assert lab.errors() == []
    yield lab
    assert lab.console_errors == []
    assert lab.external_requests == []


def test_students_graph_is_stepped_with_the_mouse(opened):
    explorer = Explorer(opened.cell(1))
    assert explorer.counter == "Leaves, step 0 of 6"
    assert explorer.number("a", "value") == "2"
    assert explorer.number("a", "grad") == ""
    explorer.press("Step")
    assert "v1 = a + b = 2 + 3 = 5" in explorer.words
    for _ in range(3):
        explorer.press("Step")
    assert "a receives 1 \u00d7 5 = 5, sum so far 5." in explorer.words
    assert explorer.number("a", "grad") == "5"
    explorer.press("Step")
    assert "a receives 2 \u00d7 1 = 2, sum so far 7." in explorer.words
    assert explorer.number("a", "grad") == "7"
    explorer.press("Back")
    assert explorer.number("a", "grad") == "5"
    explorer.press("End")
    assert (explorer.number("a", "grad"), explorer.number("b", "grad")) == ("7", "2")
    explorer.press("Start")
    assert explorer.number("a", "grad") == ""


def test_pytorch_graph_is_stepped_with_the_keyboard(opened):
    explorer = Explorer(opened.cell(2))
    explorer.root.focus()
    explorer.key("End")
    assert explorer.number("x", "grad") == "0"
    explorer.key("ArrowLeft")
    assert explorer.counter.startswith("Backward")
    explorer.key("Home")
    explorer.key("ArrowRight")
    assert explorer.counter == "Forward, step 1 of 8"
    assert "2.25" in explorer.words
    explorer.node("x").focus()
    explorer.node("x").press("Enter")
    assert "x: value -1.5" in explorer.words
    assert opened.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.mode") == "command"


def test_a_click_on_a_node_shows_its_details_and_tells_nothing_early(opened):
    explorer = Explorer(opened.cell(1))
    explorer.node("d").click()
    assert explorer.words == "d = v1 \u00d7 a: not evaluated yet."
    explorer.press("End")
    explorer.node("d").click()
    assert "Local derivative with respect to a: 5." in explorer.words
    explorer.node("d").click()
    assert explorer.words.startswith("Finished.")


def test_a_click_shows_the_two_factors_on_the_lines(opened):
    explorer = Explorer(opened.cell(1))
    explorer.press("End")
    explorer.node("d").click()
    flows = explorer.root.locator(".ma-flow")
    assert [text for text in flows.all_text_contents() if text] == ["1 \u00d7 2", "1 \u00d7 5"]
    assert "v1 receives 1 \u00d7 2 = 2." in explorer.words
    explorer.node("d").click()
    assert not any(flows.all_text_contents())


def test_play_runs_to_the_end_and_pause_stops(opened):
    explorer = Explorer(opened.cell(1))
    explorer.press("Play")
    explorer.press("Pause")
    before = explorer.counter
    opened.page.wait_for_timeout(1500)
    assert explorer.counter == before
    explorer.press("Play")
    opened.page.wait_for_function(
        "root => root.querySelector('.ma-counter').textContent.startsWith('Finished')",
        arg=explorer.root.element_handle(),
    )
    explorer.root.get_by_role("button", name="Play", exact=True).wait_for()


def test_a_large_graph_is_folded_zoomed_and_saved(lab, tmp_path):
    lab.open_notebook(lab.write_notebook("explorer_large.ipynb", [LARGE, FREED]))
    lab.run_all()
    assert lab.errors() == []
    explorer = Explorer(lab.cell(0))
    folded = explorer.root.locator(".ma-node").count()
    assert folded < 60
    explorer.press("Blocks")
    lab.page.wait_for_function(
        "([root, few]) => root.querySelectorAll('.ma-node').length > 3 * few",
        arg=[explorer.root.element_handle(), folded],
    )
    assert explorer.root.locator(".ma-hook").count() == 1
    width = "root => root.querySelector('svg').getBoundingClientRect().width"
    before = explorer.root.evaluate(width)
    explorer.press("Larger")
    assert explorer.root.evaluate(width) == pytest.approx(1.25 * before, rel=0.02)
    explorer.key("0")
    explorer.press("Fit")
    assert explorer.root.evaluate(width) <= 1400
    explorer.press("Blocks")
    lab.page.wait_for_function(
        "([root, few]) => root.querySelectorAll('.ma-node').length === few",
        arg=[explorer.root.element_handle(), folded],
    )
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with lab.page.expect_download() as download:
            explorer.press(f"Save {kind}")
        download.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(start)
    assert "var(" not in (tmp_path / "SVG").read_text(encoding="utf-8").partition("ma-node")[2]
    freed = Explorer(lab.cell(1))
    assert freed.root.locator(".ma-freed").count() > 40
    assert not freed.root.locator(".ma-saved").first.is_visible()
    freed.press("Memory")
    assert freed.root.locator(".ma-saved").first.is_visible()
    assert lab.console_errors == []
    assert lab.external_requests == []


def test_exported_html_shows_the_finished_picture(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (ENGINE, STUDENT)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "explorer.ipynb")
    options = ["--to", "html", "--execute"]
    command = [sys.executable, "-m", "nbconvert", *options, "explorer.ipynb"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    page = (tmp_path / "explorer.html").read_text(encoding="utf-8")
    embedded = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", page)
    pictures = " ".join(base64.b64decode(text).decode() for text in embedded)
    assert ">d = v1 \u00d7 a</text>" in pictures
    assert re.search(r'class="ma-grad"[^>]*>7</text>', pictures)
