"""Demos of shapes, memory and modes in a real JupyterLab: typed into, stepped, slid, and found again after a reload."""

import re

import pytest

pytestmark = pytest.mark.browser

DEMOS = "from mini_autograd.widgets import *\nbroadcast(step=3)"
OTHERS = ("lifetime()", "forward_or_reverse(inputs=2, outputs=1)", "checkpoint_planner(length=0)")


class Page:
    """One demo in the page and what a reader sees of it."""

    def __init__(self, lab, cell):
        self.lab, self.root = lab, lab.cell(cell).locator(".ma-demo")
        self.root.wait_for()

    def control(self, name):
        return self.root.locator(f"[data-control='{name}']")

    def press(self, button):
        self.root.get_by_role("button", name=button, exact=True).click()

    def text(self, part):
        return self.root.locator(f".ma-{part}").inner_text()

    def wait_for(self, text):
        self.root.locator(".ma-words", has_text=re.compile(text)).wait_for()

    def visible(self, text):
        return self.root.locator("svg text", has_text=re.compile(f"^{re.escape(text)}$")).first.is_visible()


@pytest.fixture
def opened(lab):
    lab.open_notebook(lab.write_notebook("shapes_and_memory.ipynb", [DEMOS, *OTHERS]))
    lab.run_all()
    assert lab.errors() == []
    yield lab
    assert lab.console_errors == []
    assert lab.external_requests == []


def test_every_demo_is_used_as_a_reader_would(opened):
    shapes = Page(opened, 0)
    assert not shapes.visible("26")  # a gradient, which comes later
    for _ in range(3):
        shapes.press("Step")
    assert shapes.visible("26")
    assert "a: sum over axis 1" not in shapes.text("step")
    shapes.control("b").fill("(2, 1, 4)")
    shapes.control("b").press("Enter")
    shapes.wait_for(r"are stretched to \(2, 3, 4\)")
    shapes.press("Do not fit")
    shapes.wait_for("4 meets 3, and neither is 1")
    shapes.control("a").fill("three")
    shapes.control("a").press("Enter")
    shapes.wait_for("is no shape")

    memory = Page(opened, 1)
    memory.wait_for("8, 8, 8 nodes and 0 kB, 0 kB, 0 kB")
    memory.press("Start")
    assert memory.text("step").startswith("Step 1: Mm is recorded. Alive: 1 nodes")
    memory.press("End")
    memory.press("Both: a leak")
    memory.wait_for("8, 16, 24 nodes and 33 kB, 67 kB, 100 kB")

    modes = Page(opened, 2)
    modes.wait_for("2 inputs, 1 output")
    modes.control("inputs").focus()
    modes.control("inputs").press("End")
    modes.wait_for("64 inputs, 1 output: .* Reverse mode is")

    planner = Page(opened, 3)
    planner.wait_for("Without checkpoints: 16 layer outputs")
    before = planner.root.locator("svg").inner_html()
    planner.control("length").focus()
    planner.control("length").press("ArrowRight")
    planner.wait_for("Segments of 1: 16 layer outputs")
    assert planner.root.locator("svg").inner_html() != before


def test_a_reload_shows_the_setting_again(opened):
    shapes = Page(opened, 0)
    shapes.press("Number")
    shapes.wait_for(r"are stretched to \(2, 3\)")
    opened.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    opened.page.reload()
    opened.page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext !== undefined")
    opened.wait_idle()
    again = Page(opened, 0)
    again.wait_for(r"are stretched to \(2, 3\)")
    assert again.control("b").input_value() == "()"
