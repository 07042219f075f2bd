"""The gallery in a real JupyterLab: presets and reset of every demo, a slider by keyboard, steps, and a reload."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from autograder.lessons.demos_command import gallery

pytestmark = pytest.mark.browser

COURSE = Path(__file__).resolve().parents[2] / "course"


class Shown:
    """One demo in the page and what a reader sees of it."""

    def __init__(self, lab, call):
        index = next(i for i, cell in enumerate(gallery(COURSE)["cells"]) if cell["source"] == call)
        self.page = lab.page
        self.root = lab.cell(index).locator(".ma-demo")
        self.root.wait_for()

    @property
    def words(self):
        return self.root.locator(".ma-words")

    def until_changed(self, action):
        before = self.root.locator(".ma-canvas").inner_html()
        action()
        self.page.wait_for_function(
            "([element, before]) => element.innerHTML !== before",
            arg=[self.root.locator(".ma-canvas").element_handle(), before],
        )

    def press(self, name):
        self.root.get_by_role("button", name=name, exact=True).click()


@pytest.fixture
def opened(lab):
    path = lab.root / "gallery.ipynb"
    path.write_text(json.dumps(gallery(COURSE)), encoding="utf-8")
    lab.open_notebook(path)
    lab.page.set_default_timeout(60_000)
    lab.run_all()
    assert lab.errors() == []
    yield lab
    assert lab.console_errors == []
    assert lab.external_requests == []


def test_the_gallery_is_used_with_mouse_and_keyboard_and_reloaded(opened):
    demo = Shown(opened, "accumulation()")
    demo.until_changed(lambda: demo.press("The same as momentum 1.0"))
    expect(demo.words).to_contain_text("momentum 1.0 (dotted, with its buffer): 0.")
    slider = demo.root.get_by_role("slider", name="learning rate")  # by its label, which belongs to this demo alone
    slider.focus()
    demo.until_changed(lambda: slider.press("ArrowRight"))
    expect(slider).to_have_attribute("aria-valuetext", "0.1")
    demo.until_changed(lambda: demo.press("Reset"))
    expect(demo.words).not_to_contain_text("never cleared")

    demo = Shown(opened, "optimizer_paths()")
    expect(demo.root).to_contain_text("step 60: loss SGD")
    demo.press("Start")
    expect(demo.root).to_contain_text("step 0: loss SGD")
    way = demo.root.locator("[data-way='ground SGD']")
    expect(way).to_have_attribute("d", re.compile(r"^M[^L]+$"))  # the start alone
    demo.press("Step")
    expect(way).to_have_attribute("d", re.compile(r"^M[^L]+L[^L]+$"))
    expect(demo.root).to_contain_text("step 1: loss SGD")

    demo = Shown(opened, "activations()")
    demo.until_changed(lambda: demo.press("Kill three units"))
    expect(demo.words).to_contain_text("ReLU: 5 of 12 units pass gradient at x = 0.5; 3 at no x at all.")
    opened.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    opened.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    opened.page.reload()
    opened.page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.sessionContext !== undefined")
    opened.wait_idle()
    demo = Shown(opened, "activations()")
    expect(demo.words).to_contain_text("3 at no x at all.")
    expect(demo.root.get_by_role("slider", name="added to the biases")).to_have_attribute("aria-valuetext", "-8")
    opened.console_errors.clear()


def test_the_monitor_leaves_its_curves(opened):
    opened.cell(len(gallery(COURSE)["cells"]) - 1)
    picture = opened.page.locator(".ma-monitor svg[aria-label^='Training monitor']")
    expect(picture).to_contain_text("step 3000 of 3000: finished")
    expect(picture).to_contain_text("length of the gradient, by layer")
    opened.use_theme("JupyterLab Dark")
    expect(picture).not_to_have_css("color", "rgb(0, 0, 0)")
