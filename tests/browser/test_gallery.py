"""The gallery in a real JupyterLab: every demo in it used with mouse and keyboard, all presets, and a reload.

The notebook is opened and run once. Each test uses demos of its own, and waits for what it expects instead of reading
the page at once, because a slow machine draws later.
"""

import json
import re
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from autograder.lessons.commands.demos import gallery
from mini_autograd import widgets
from tests.browser.conftest import violations

pytestmark = pytest.mark.browser

COURSE = Path(__file__).resolve().parents[2] / "course"
CELLS = gallery(COURSE)["cells"]
GAME = "be_the_engine()"  # a widget of its own: it has no controls, and plays without Python
DEMOS = [cell["source"] for cell in CELLS if re.fullmatch(r"\w+\(\)", cell["source"]) and cell["source"] != GAME]


def cell_of(lab, call):
    return lab.cell(next(i for i, cell in enumerate(CELLS) if cell["source"] == call))


class Shown:
    """One demo in the page and what a reader sees of it."""

    def __init__(self, lab, call):
        self.root = cell_of(lab, call).locator(".ma-demo")
        self.words = self.root.locator(".ma-words")
        self.step = self.root.locator(".ma-step")
        self.picture = self.root.locator(".ma-canvas > svg")
        self.root.wait_for()
        self.root.locator("details").evaluate_all("parts => parts.forEach((part) => (part.open = true))")
        predict = self.root.get_by_role("button", name="Predict", exact=True)
        if predict.count() and predict.get_attribute("aria-pressed") == "true":
            predict.click()  # no question before each picture
        expect(self.picture).to_be_visible()

    def press(self, name):
        self.root.get_by_role("button", name=name, exact=True).click()

    def control(self, name):
        return self.root.locator(f"[data-control='{name}']")

    def type(self, name, text):
        self.control(name).fill(text)
        self.control(name).press("Enter")

    def text(self, words):
        """The text element of the picture that has exactly these words."""
        return self.picture.locator("text", has_text=re.compile(f"^{re.escape(words)}$")).first


@pytest.fixture(scope="module")
def opened(module_lab):
    path = module_lab.root / "gallery.ipynb"
    path.write_text(json.dumps(gallery(COURSE)), encoding="utf-8")
    module_lab.open_notebook(path)
    module_lab.run_all()
    assert module_lab.errors() == []
    yield module_lab
    assert module_lab.console_errors == []
    assert module_lab.external_requests == []


def test_every_demo_leaves_a_picture(opened):
    sources = [cell["source"] for cell in CELLS if cell["cell_type"] == "code"]
    shown = [outputs for source, outputs in zip(sources, opened.outputs(), strict=True) if "import" not in source]
    bundles = [next(output["data"] for output in outputs if "data" in output) for outputs in shown]
    assert len(bundles) >= 11
    assert all("<svg" in "".join(bundle["image/svg+xml"]) for bundle in bundles)
    live = [bundle for bundle in bundles if "application/vnd.jupyter.widget-view+json" in bundle]
    assert len(live) == len(bundles) - 1  # the monitor is a picture only


def test_accumulation_answers_to_a_preset_a_slider_and_reset(opened):
    demo = Shown(opened, "accumulation()")
    demo.press("The same as momentum 1.0")
    expect(demo.words).to_contain_text("momentum 1.0 (dotted, with the length of its buffer): 0.")
    slider = demo.root.get_by_role("slider", name="learning rate")  # by its label, which only this demo has
    slider.focus()
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "0.1")
    demo.press("Reset")
    expect(demo.words).not_to_contain_text("never cleared")


def drag(demo, share):
    """Drag in the plot of a demo, to a place between its left and right edges."""
    demo.picture.scroll_into_view_if_needed()
    area = demo.root.locator("[data-drag]").bounding_box()
    mouse = demo.root.page.mouse
    mouse.move(area["x"] + area["width"] * (1 - share), area["y"] + 40)
    mouse.down()
    mouse.move(area["x"] + area["width"] * share, area["y"] + 40, steps=4)
    mouse.up()


def test_a_pointer_walks_along_the_curves_of_step_size(opened):
    demo = Shown(opened, "step_size()")
    expect(demo.step).to_contain_text("h = 1e+00: relative error one-sided 8.7e-01")
    expect(demo.words).to_have_text("The last step shows how it ends.")
    drag(demo, 2 / 3)
    expect(demo.step).to_contain_text("h = 1e-05")
    demo.press("End")
    expect(demo.words).to_contain_text("at h = 1e-08")
    demo.press("float32")
    expect(demo.control("precision")).to_have_value("float32")
    expect(demo.words).to_contain_text("at h = 6e-03")
    demo.press("Start")
    demo.press("Reset")


def test_optimizer_paths_are_walked_step_by_step(opened):
    demo = Shown(opened, "optimizer_paths()")
    expect(demo.step).to_contain_text("step 0: loss SGD")  # the page asks which one arrives first
    expect(demo.words).to_have_text("The last step shows how it ends.")
    way = demo.root.locator("[data-way='ground SGD']")
    expect(way).to_have_attribute("d", re.compile(r"^M[^L]+$"))  # only the start
    demo.press("Step")
    expect(way).to_have_attribute("d", re.compile(r"^M[^L]+L[^L]+$"))
    expect(demo.step).to_contain_text("step 1: loss SGD")
    demo.press("Play")
    expect(demo.step).not_to_contain_text("step 1: loss SGD")
    demo.press("Pause")
    demo.root.get_by_role("button", name="Play", exact=True).wait_for()
    demo.press("End")
    expect(demo.step).to_contain_text("step 60: loss SGD")
    expect(demo.words).to_contain_text("SGD: loss 0.")
    demo.press("SGD too fast")
    expect(demo.words).to_contain_text("SGD: diverged")  # the last step stays the last step


def test_broadcast_is_typed_into_and_stepped(opened):
    demo = Shown(opened, "broadcast()")
    demo.press("End")
    demo.type("a", "(2, 3)")
    demo.type("b", "(2, 1)")
    expect(demo.words).to_contain_text("are stretched to (2, 3)")
    demo.press("Start")
    expect(demo.text("b.grad (2, 1)")).to_be_hidden()
    demo.press("End")
    expect(demo.text("b.grad (2, 1)")).to_be_visible()
    demo.type("b", "(2, 1, 4)")
    expect(demo.words).to_contain_text("3 meets 4, and neither is 1")
    demo.type("b", "three")
    expect(demo.words).to_contain_text("is not a shape")


def test_lifetime_counts_what_is_alive(opened):
    demo = Shown(opened, "lifetime()")
    demo.press("End")
    expect(demo.words).to_contain_text("8, 8, 8 nodes and 0 kB, 0 kB, 0 kB")
    demo.press("Start")
    expect(demo.step).to_contain_text("Step 1: Mm is recorded. Alive: 1 node,")
    demo.press("End")
    demo.press("Both: a leak")
    expect(demo.words).to_contain_text("8, 16, 24 nodes and 33 kB, 67 kB, 100 kB")


def test_forward_or_reverse_and_the_planner_measure_anew(opened):
    modes = Shown(opened, "forward_or_reverse()")
    modes.press("A loss")
    expect(modes.words).to_contain_text(
        re.compile("64 inputs, 1 output: .* Forward mode needs 64 passes, reverse mode 1 pass")
    )
    modes.control("inputs").press("Home")
    expect(modes.words).to_contain_text("1 input, 1 output")
    planner = Shown(opened, "checkpoint_planner()")
    planner.press("No checkpoints")
    expect(planner.words).to_contain_text("Without checkpoints: 16 layer outputs")
    planner.control("length").press("ArrowRight")
    expect(planner.words).to_contain_text("Segments of 1: 16 layer outputs")


def test_what_ran_without_recording_is_marked_in_the_graph(opened):
    index = next(i for i, cell in enumerate(CELLS) if "explore(loss_with_target" in cell["source"])
    explorer = opened.cell(index).locator(".ma-explorer")
    explorer.get_by_role("button", name="End", exact=True).click()
    expect(explorer.locator(".ma-unrecorded .ma-grad")).to_have_text(["not recorded"] * 3)
    expect(explorer.locator(".ma-words")).to_contain_text("Gradients of the leaves: w: 16.")
    expect(explorer.locator(".ma-edge.ma-carried")).not_to_have_count(0)  # the path of the gradient stays marked
    expect(explorer.locator(".ma-edge.ma-silent.ma-carried")).to_have_count(0)


@pytest.mark.parametrize("call", DEMOS)
def test_every_preset_is_shown_and_reset_leads_back(opened, call):
    shown = Shown(opened, call)
    demo = sys.modules[getattr(widgets, call.removesuffix("()")).__module__].demo()
    for name, state in [*demo.presets.items(), ("Reset", demo.start)]:
        shown.press(name)
        for control in demo.controls:
            if control.name in state:
                expect_setting(shown.control(control.name), control.to_json(), state[control.name])
        expect(shown.words).not_to_have_class(re.compile("ma-wrong"))
        expect(shown.picture).to_be_visible()


def expect_setting(element, control, value):
    """Wait until a control shows a value of the demo's state."""
    if control["kind"] == "slider":
        expect(element).to_have_attribute("aria-valuetext", control["texts"][control["values"].index(value)])
    elif control["kind"] == "switch":
        expect(element).to_be_checked(checked=value)
    else:
        expect(element).to_have_value(value)


def test_the_monitor_leaves_its_curves(opened):
    opened.cell(len(CELLS) - 1)
    picture = opened.page.locator(".ma-monitor svg[aria-label^='Training monitor']")
    expect(picture).to_contain_text("step 3000 of 3000: finished")
    expect(picture).to_contain_text("length of the gradient, by layer")
    opened.use_theme("JupyterLab Dark")
    expect(picture).not_to_have_css("color", "rgb(0, 0, 0)")
    opened.use_theme("JupyterLab Light")


FINEST = """root => Math.min(...[...root.querySelectorAll("svg text")]
    .filter(text => text.textContent.trim() && text.getClientRects().length)
    .map(text => { const place = text.getScreenCTM();
                   return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(place.a, place.b); }))"""
PICTURES = ".ma-demo, .ma-explorer, .ma-monitor"


def test_on_a_small_screen_all_type_can_be_read_and_zoom_enlarges_every_picture(opened):
    """Zoom as with Ctrl and +: the window has fewer CSS pixels, and each of them is larger. A graph that stands upright
    then is another picture, whose type can be read."""
    readable = f"""() => [...document.querySelectorAll("{PICTURES}")].map({FINEST}).every(px => px > 13.9)"""
    sizes = f"""[...document.querySelectorAll("{PICTURES}")].map(root => root.querySelector("svg")).map(
        svg => [svg.getAttribute("viewBox"), svg.getBoundingClientRect().width])"""
    opened.page.set_viewport_size({"width": 1000, "height": 700})
    session = opened.page.context.new_cdp_session(opened.page)
    try:
        opened.wait_until(readable)
        before = opened.page.evaluate(f"() => {sizes}")
        zoomed = {"width": 667, "height": 467, "deviceScaleFactor": 1.5, "mobile": False}
        session.send("Emulation.setDeviceMetricsOverride", zoomed)
        opened.wait_until("() => window.devicePixelRatio === 1.5")
        opened.wait_until(
            f"""before => {sizes}.every(([box, width], number) =>
                box !== before[number][0] || 1.5 * width > 1.3 * before[number][1])""",
            before,
        )
        opened.wait_until(readable)
    finally:  # other tests use the same page
        session.send("Emulation.clearDeviceMetricsOverride")
        session.detach()
        opened.page.set_viewport_size({"width": 1400, "height": 1000})


HELD = """
import time
from pathlib import Path
from mini_autograd.widgets import demo

def held(shown):
    while not Path("seen").exists():
        time.sleep(0.05)
    return as_json(shown)

as_json, demo.as_json = demo.as_json, held
"""


def test_controls_are_large_and_a_sign_tells_that_python_is_at_work(opened):
    demo = Shown(opened, "activations()")
    sizes = opened.page.locator(".ma-demo input:is([type=range], [type=checkbox])").evaluate_all(
        "inputs => inputs.map(input => input.getBoundingClientRect()).filter(box => box.width).map(box => box.height)"
    )
    assert min(sizes) >= 24
    sign = demo.root.locator(".ma-busy")
    expect(sign).to_have_text("")
    run = "code => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute({code}).done"
    opened.page.evaluate(f"async code => {{ await ({run})(code); }}", HELD)
    demo.press("Train them")
    expect(sign).to_have_text("Python is computing\u2026")
    (opened.root / "seen").touch()
    expect(demo.words).to_contain_text("80 steps of SGD")
    expect(sign).to_have_text("")
    opened.page.evaluate(f"async code => {{ await ({run})(code); }}", "demo.as_json = as_json")
    demo.press("Reset")


def test_one_demonstration_fills_the_screen_and_keys_turn_the_pages(opened):
    page = opened.page
    opened.cell(0)
    page.get_by_role("button", name="One demonstration per screen").click()
    bar = page.locator(".ma-deck-bar")
    shown = page.locator(f":is({PICTURES}):visible")
    expect(bar).to_contain_text("1 of 15")
    expect(shown).to_have_count(1)
    opened.wait_until("() => document.fullscreenElement?.matches('.jp-Notebook')")
    page.keyboard.press("ArrowRight")
    expect(bar).to_contain_text("2 of 15")
    for number in (3, 4, 5, 6, 7, 8):
        page.keyboard.press("PageDown")
        expect(bar).to_contain_text(f"{number} of 15")
    expect(shown).to_have_attribute("aria-label", "Broadcasting, and how the gradient undoes it")
    shown.locator("[data-control='a']").focus()
    page.keyboard.press("ArrowLeft")  # goes to the control
    expect(bar).to_contain_text("8 of 15")
    page.keyboard.press("PageUp")
    expect(bar).to_contain_text("7 of 15")
    place = "document.querySelector('.ma-deck .jp-Cell:not(.ma-offstage) %s').getBoundingClientRect()"
    words, picture = place % ".ma-words", place % ".ma-canvas > svg"
    opened.wait_until(f"() => {words}.bottom < window.innerHeight")  # the whole demo fits
    beside = f"() => {words}.left > {picture}.right"
    assert not page.evaluate(beside)
    page.set_viewport_size({"width": 1700, "height": 768})  # wide and low
    opened.wait_until(beside)
    page.set_viewport_size({"width": 1400, "height": 1000})
    bar.get_by_role("button", name="Leave").click()
    expect(bar).to_have_count(0)
    expect(shown).to_have_count(15)
    assert page.evaluate("() => document.fullscreenElement") is None


def test_a_key_starts_and_ends_the_stage(opened):
    opened.cell(0)
    bar = opened.page.locator(".ma-deck-bar")
    opened.page.keyboard.press("Alt+p")
    expect(bar).to_contain_text("1 of 15")
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("ArrowRight")
    expect(bar).to_contain_text("3 of 15")
    graph = opened.page.locator(".ma-explorer:visible .ma-canvas")
    assert graph.evaluate("canvas => canvas.scrollWidth - canvas.clientWidth") <= 0  # six columns, and none is cut off
    graph.locator(".ma-node").first.click()
    opened.page.keyboard.press("Escape")  # goes to the explorer: nothing is selected any more
    expect(bar).to_contain_text("3 of 15")
    opened.page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    opened.page.keyboard.press("Alt+p")  # goes on where it was left
    expect(bar).to_contain_text("3 of 15")
    opened.page.keyboard.press("Escape")
    expect(bar).to_have_count(0)


TYPE = "() => parseFloat(getComputedStyle(document.querySelector('.ma-deck .ma-demo')).fontSize)"


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1366, 768), (1920, 1080), (2560, 1440)])
def test_pictures_and_type_grow_with_the_screen(opened, width, height):
    page = opened.page
    page.set_viewport_size({"width": width, "height": height})
    try:
        opened.cell(0)
        page.keyboard.press("Alt+p")
        bar = page.locator(".ma-deck-bar")
        for number in (1, 2, 3):
            expect(bar).to_contain_text(f"{number} of 15")
            opened.wait_until(WHOLE)
            page.keyboard.press("PageDown")
        opened.wait_until(f"size => ({TYPE})() >= size", max(16, min(width / 70, height / 40)) - 0.1)
        page.keyboard.press("Escape")
        expect(bar).to_have_count(0)
    finally:
        page.set_viewport_size({"width": 1400, "height": 1000})


WHOLE = """() => [...document.querySelectorAll(".ma-deck .jp-Cell:not(.ma-offstage) .ma-canvas")]
    .every((canvas) => canvas.scrollWidth <= canvas.clientWidth)"""


def test_the_bar_of_the_stage_works_by_keyboard_after_a_demo_was_used(opened):
    """JupyterLab's notebook moves the focus into a cell at each key that comes from no cell."""
    page = opened.page
    opened.cell(0)
    bar = page.locator(".ma-deck-bar")
    page.keyboard.press("Alt+p")
    expect(bar).to_contain_text("1 of 15")
    page.keyboard.press("PageDown")
    expect(bar).to_contain_text("2 of 15")
    page.locator(".ma-game:visible").get_by_role("button", name="a chain", exact=True).click()
    previous, following, leave = (bar.get_by_role("button", name=name) for name in ("Previous", "Next", "Leave"))
    following.focus()
    for number in (3, 4):
        page.keyboard.press("Enter")
        expect(bar).to_contain_text(f"{number} of 15")
    page.keyboard.press("ArrowRight")
    expect(bar).to_contain_text("5 of 15")
    page.locator(":is(.ma-demo, .ma-explorer):visible .ma-canvas").click()
    previous.focus()
    page.keyboard.press("Space")
    expect(bar).to_contain_text("4 of 15")
    page.keyboard.press("Tab")
    expect(following).to_be_focused()
    page.keyboard.press("Tab")
    expect(leave).to_be_focused()
    page.keyboard.press("Enter")
    expect(bar).to_have_count(0)


def test_on_a_narrow_screen_the_bar_covers_no_heading(opened):
    page = opened.page
    page.set_viewport_size({"width": 400, "height": 900})
    try:
        opened.cell(0)
        page.keyboard.press("Alt+p")
        bar = page.locator(".ma-deck-bar")
        for number in range(1, 16):
            expect(bar).to_contain_text(f"{number} of 15")
            opened.wait_until(UNCOVERED)
            page.keyboard.press("PageDown")
        page.keyboard.press("Escape")
        expect(bar).to_have_count(0)
    finally:
        page.set_viewport_size({"width": 1400, "height": 1000})


UNCOVERED = """() => {
    const bar = document.querySelector(".ma-deck-bar").getBoundingClientRect();
    const words = document.createRange();
    words.selectNodeContents(document.querySelector(".ma-deck .jp-Cell:not(.ma-offstage) :is(h1, h2)"));
    return bar.left >= 0 && words.getBoundingClientRect().top >= bar.bottom;
}"""


def test_every_demonstration_fits_on_a_small_screen(opened):
    page = opened.page
    page.set_viewport_size({"width": 1000, "height": 700})
    opened.cell(0)
    page.get_by_role("button", name="One demonstration per screen").click()
    bar = page.locator(".ma-deck-bar")
    for number in range(1, 16):
        expect(bar).to_contain_text(f"{number} of 15")
        opened.wait_until(FITS)
        if number == 12:
            bet_and_walk(page)  # the longest text that is ever below a picture
            opened.wait_until(FITS)
            page.get_by_role("button", name="Predict", exact=True).locator("visible=true").click()
            bar.get_by_role("button", name="Next").click()
        else:
            page.keyboard.press("PageDown")
    code = page.locator(".jp-Cell:not(.ma-offstage) .cm-line").last
    assert code.evaluate("line => parseFloat(getComputedStyle(line).fontSize)") >= 14
    bar.get_by_role("button", name="Leave").click()
    page.set_viewport_size({"width": 1400, "height": 1000})


FITS = """() => [document.querySelector(".ma-deck .jp-WindowedPanel-outer"),
    ...document.querySelectorAll(".ma-deck .ma-demo .ma-canvas")]
    .every(part => part.scrollHeight <= part.clientHeight)"""


WALK = ("Predict", "Adam", "End")


def bet_and_walk(page):
    visible = {name: page.get_by_role("button", name=name, exact=True).locator("visible=true") for name in WALK}
    for name in WALK:
        if name != "Predict" or visible["Adam"].count() == 0:
            visible[name].click()
    expect(page.locator(".ma-bet:visible")).to_contain_text("You predicted Adam, but it is SGD")


def test_a_slider_runs_by_itself_and_is_stopped(opened):
    shown = Shown(opened, "activations()")
    run = shown.root.get_by_role("button", name="Play: x")
    before = shown.control("x").get_attribute("aria-valuetext")
    run.click()
    expect(shown.control("x")).not_to_have_attribute("aria-valuetext", before)
    shown.root.get_by_role("button", name="Pause: x").click()
    expect(run).to_be_visible()
    shown.press("Reset")


def test_the_reader_is_the_engine(opened):
    """With the mouse, and then with the keyboard alone."""
    game = cell_of(opened, GAME).locator(".ma-game")
    words = game.locator(".ma-words")

    def press(name):
        game.get_by_role("button", name=name, exact=True).click()

    press("a leaf used twice")
    press("t sends")
    expect(words).to_have_text("1 has arrived at t. What does t send to s?")
    press("It sends 1")
    expect(words).to_contain_text("Not 1. That is what arrived.")
    expect(words).to_contain_text("Which node sends next?")
    game.get_by_role("button", name="a diamond", exact=True).press("Enter")
    expect(game.get_by_role("button", name="a diamond", exact=True)).to_be_focused()
    expect(words).to_contain_text("Click the node that sends first")
    press("p sends")
    expect(words).to_have_text("Nothing has arrived at p yet, so it has nothing to send.")
    for label in ("r sends", "p sends", "d sends", "q sends"):
        button = game.get_by_role("button", name=label, exact=True)
        button.focus()
        button.press("Enter")
        expect(button).to_have_count(0)
        expect(game.locator("button:focus")).to_have_count(1)
    expect(words).to_contain_text("d sent when 1 of its 2 shares had arrived: the share from q came too late.")
    press("Next graph")
    expect(game.get_by_role("button", name="k sends", exact=True)).to_be_visible()


def test_a_nudge_is_guessed_before_it_is_shown(opened):
    shown = Shown(opened, "nudge()")
    bet = shown.root.get_by_role("group", name="Your prediction")
    true = shown.root.locator("text", has_text="true:")
    shown.press("End")
    shown.press("Predict")  # the walk begins again
    bet.get_by_role("button", name="below it").click()
    expect(true).to_be_hidden()
    drag(shown, 0.25)
    expect(shown.text("predicted: 0.235")).to_be_visible()
    expect(shown.text("true: 0.217")).to_be_visible()
    expect(shown.text("0.5 \u2192 1")).to_be_visible()
    shown.press("End")
    expect(shown.root.locator(".ma-bet")).to_contain_text(
        "You predicted below it, and that is right: the slope changes"
    )
    shown.press("A curve")  # another question, at the last step
    expect(bet).to_contain_text("a * a * b")
    bet.get_by_role("button", name="above the prediction").click()
    expect(true).to_be_hidden()
    shown.press("Reset")
    shown.press("Predict")


def test_a_broken_engine_is_found_round_by_round(opened):
    shown = Shown(opened, "break_the_engine()")
    expect(shown.text("Round 1 of 10. Right so far: 0 of 0")).to_be_visible()
    shown.root.get_by_role("button", name="the second use of w2 overwrites the first", exact=True).click()
    expect(shown.words).to_contain_text("Right: the second use of w2 overwrites the first.")
    shown.root.get_by_role("button", name="Next round", exact=True).press("Enter")
    expect(shown.text("Round 2 of 10. Right so far: 1 of 1")).to_be_visible()
    shown.root.get_by_role("button", name=".grad is never set to zero", exact=True).click()
    expect(shown.words).to_contain_text("No. It is another bug: the gradient of b comes from one row only.")
    expect(shown.text("Round 2 of 10. Right so far: 1 of 2")).to_be_visible()
    shown.press("Reset")


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_demos_are_accessible_in_both_themes(opened, theme):
    opened.use_theme(theme)
    expect(opened.page.locator(".ma-demo .ma-canvas > svg")).to_have_count(len(DEMOS))  # axe sees them all at once
    assert violations(opened.page, ".ma-demo") == []
    assert violations(opened.page, ".ma-game") == []


def test_a_reload_shows_the_settings_again(opened):
    demo = Shown(opened, "activations()")
    demo.press("Kill three units")
    expect(demo.words).to_contain_text("ReLU: 5 of 12 units pass gradient at x = 0.5; 3 dead (no gradient at any x).")
    demo = Shown(opened, "broadcast()")
    demo.press("Reset")
    demo.press("End")
    demo.press("Number")
    expect(demo.words).to_contain_text("are stretched to (2, 3)")
    opened.save_and_reload()
    demo = Shown(opened, "activations()")
    expect(demo.words).to_contain_text("3 dead (no gradient at any x).")
    expect(demo.root.get_by_role("slider", name="added to the biases")).to_have_attribute("aria-valuetext", "-8")
    demo = Shown(opened, "broadcast()")
    demo.press("End")
    expect(demo.words).to_contain_text("are stretched to (2, 3)")
    expect(demo.control("b")).to_have_value("()")
    opened.console_errors.clear()


def test_without_a_kernel_the_demos_are_still_there(opened):
    """As on the next day: the kernel is gone, and the page is so slow that JupyterLab gives up looking for widgets."""
    opened.save()
    opened.leave()
    with opened.looking_once():
        opened.open_notebook("gallery.ipynb")
        demo = Shown(opened, "broadcast()")
        expect(demo.control("a")).to_be_disabled()
        expect(demo.root.get_by_role("button", name="Reset", exact=True)).to_be_disabled()
        expect(demo.root).to_contain_text("This demo has no kernel. Run the cell to use its controls.")
        demo.press("Start")
        expect(demo.step).not_to_contain_text("which gives")  # its steps need no kernel
        index = next(i for i, cell in enumerate(CELLS) if "explore(loss_with_target" in cell["source"])
        explorer = opened.cell(index).locator(".ma-explorer")
        explorer.get_by_role("button", name="End", exact=True).click()
        expect(explorer.locator(".ma-words")).to_contain_text("Gradients of the leaves: w: 16.")
        expect(explorer.locator(".ma-asleep")).to_be_visible()
    opened.console_errors.clear()  # JupyterLab's own: model not found


def test_what_is_run_again_is_kept_once_and_answers_again(opened):
    opened.save()
    before = kept(opened)
    opened.cell(len(CELLS) - 1)  # the monitor is no widget, and trains for seconds
    opened.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-above')")
    opened.wait_idle()
    demo = Shown(opened, "broadcast()")
    expect(demo.control("a")).to_be_enabled()
    expect(demo.root.locator(".ma-asleep")).to_be_hidden()
    opened.save()
    after = kept(opened)
    assert len(after) == len(before)
    assert not after & before
    opened.console_errors.clear()


def kept(opened):
    """The ids of the widgets in the notebook's file, and of their layouts."""
    saved = json.loads((opened.root / "gallery.ipynb").read_text(encoding="utf-8"))
    return set(saved["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"])


def test_a_picture_waits_for_a_bet_and_compares_it(opened):
    for call, question, chosen, told in (
        (
            "step_size()",
            "best one-sided derivative in float64",
            "1e-4",
            "You predicted 1e-4, but it is 1e-8: a larger step",
        ),
        ("broadcast()", "What is the shape of the result", "(3, 4)", "You predicted (3, 4), and that is right"),
        ("optimizer_paths()", "Which method has the lowest loss", "Adam", "You predicted Adam"),
        ("forward_or_reverse()", "Which mode is quicker", "reverse mode", "You predicted reverse mode"),
        ("accumulation()", "where does the loss end", "lower", "You predicted lower, and that is right"),
    ):
        demo = Shown(opened, call)
        demo.press("Predict")
        bet = demo.root.get_by_role("group", name="Your prediction")
        expect(bet).to_contain_text(question)
        expect(demo.words).to_be_hidden()
        bet.get_by_role("button", name=chosen, exact=True).press("Enter")
        expect(bet.locator("p")).to_be_focused()  # a reader with a keyboard goes on from there
        expect(demo.picture).to_be_visible()
        if call == "accumulation()":
            expect(demo.text("never cleared")).to_be_visible()  # the curve that was asked about
        if call in ("optimizer_paths()", "step_size()", "broadcast()"):
            expect(bet).to_have_text(f"You predicted {chosen}.")  # the result comes at the last step
            demo.press("End")
        expect(bet).to_contain_text(told)
        expect(demo.words).to_be_visible(visible=call != "broadcast()")  # there the comparison has said it all
        if call == "step_size()":
            bet.get_by_role("button", name="Next question").click()
            expect(bet).to_contain_text("best one-sided derivative in float32")
            expect(demo.words).to_be_hidden()
        demo.press("Reset")
        demo.press("Predict")
        expect(bet).to_be_hidden()
        demo.press("Predict")
        bet.get_by_role("button", name="Skip").click()
        expect(bet).to_be_hidden()
        expect(demo.picture).to_be_visible()
        demo.press("Predict")
