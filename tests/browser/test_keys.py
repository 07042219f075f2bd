"""Keys pressed in a widget: those it does not use are JupyterLab's. So an answer is saved from where it was given."""

import contextlib
import json
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from autograder.quizzes.sealing import seal_quiz
from tests.autograder.quizzes.test_quiz_widget import QUIZ, TEXTS
from tests.mini_autograd.widgets.test_demo import DEMOS

pytestmark = pytest.mark.browser

STATE = "application/vnd.jupyter.widget-state+json"
ANSWERS = f"answers = {dict.fromkeys(QUIZ, '')}".replace("'", '"')
CELLS = [
    ANSWERS,
    f"from autograder.student import predict, quiz\nquiz(answers, {seal_quiz(QUIZ, TEXTS)!r})",
    'predict("Which is larger?", "0.1 + 0.2", "0.3", "neither")\n0.1 + 0.2',
    'predict("What is 2 to the power of 10?")\n2**10',
    "import mini_autograd\nfrom mini_autograd.widgets import *\n"
    "a = mini_autograd.tensor(2.0, requires_grad=True)\nexplore(a * a)",
    *(f"{name}()" for name in DEMOS),
]
QUIZ_CELL, CHOICE, ENTRY, GRAPH = 1, 2, 3, 4
DEMO = {name: CELLS.index(f"{name}()") for name in DEMOS}


@pytest.fixture(scope="module")
def opened(module_lab):
    module_lab.open_notebook(module_lab.write_notebook("keys.ipynb", CELLS))
    module_lab.run_all()
    assert module_lab.errors() == []
    yield module_lab
    assert module_lab.console_errors == []


def states(notebook: dict) -> list[dict]:
    """The traits of each widget of a notebook on disk."""
    found = notebook["metadata"].get("widgets", {}).get(STATE, {}).get("state", {})
    return [entry["state"] for entry in found.values()]


def save_from(opened, element, found: Callable[[dict], bool]) -> None:
    """Press Ctrl+S in an element until the notebook on disk has something. JupyterLab saves once at a time."""
    end = time.monotonic() + 60
    while True:
        element.press("Control+s")
        with contextlib.suppress(ValueError):  # it is just being written
            if found(json.loads((opened.root / "keys.ipynb").read_text(encoding="utf-8"))):
                return
        assert time.monotonic() < end, "what was answered is not on disk"
        time.sleep(0.5)


def test_ctrl_s_in_a_quiz_saves_the_answer(opened):
    key = next(iter(QUIZ))
    option = opened.cell(QUIZ_CELL).locator(f"[data-question='{key}'] button").nth(1)
    option.click()
    written = f'"{key}": "{option.get_attribute("data-letter")}"'
    save_from(opened, option, lambda notebook: written in "".join(notebook["cells"][0]["source"]))


@pytest.mark.parametrize(("index", "answer"), [(CHOICE, "neither"), (ENTRY, "1000")])
def test_ctrl_s_in_a_prediction_saves_it(opened, index, answer):
    cell = opened.cell(index)
    if index == CHOICE:
        cell.get_by_role("button", name=answer, exact=True).click()
    else:
        cell.get_by_role("textbox", name="Your prediction").fill(answer)
        opened.page.keyboard.press("Enter")
    again = cell.get_by_role("button", name="Predict again")
    save_from(opened, again, lambda notebook: answer in notebook["metadata"].get("predictions", {}).values())


def test_ctrl_s_in_the_graph_explorer_saves_what_was_predicted(opened):
    root = opened.cell(GRAPH).locator(".ma-explorer")
    root.get_by_role("button", name="Predict", exact=True).click()
    step = root.get_by_role("button", name="Step", exact=True)
    while root.locator(".ma-predict").count() == 0:
        step.click()
    root.locator(".ma-predict input").first.fill("4")
    opened.page.keyboard.press("Enter")
    expect(root.locator(".ma-words")).to_contain_text("You predicted 4")
    save_from(opened, step, lambda notebook: any(["4"] in s.get("predictions", {}).values() for s in states(notebook)))


@pytest.mark.parametrize("name", DEMOS)
def test_ctrl_s_in_a_demo_saves_its_setting(opened, name):
    cell = opened.cell(DEMO[name])
    control = cell.locator(".ma-controls .ma-field:not([hidden]) [data-control]").first
    control.wait_for()
    match control.evaluate("input => input.type"):
        case "range":
            control.press("ArrowRight")
        case "checkbox":
            control.press("Space")
        case "text":
            control.fill("(2, 3)")  # without Enter
        case _:
            control.select_option(index=control.evaluate("input => (input.selectedIndex + 1) % input.length"))
    demo, own = DEMOS[name], control.get_attribute("data-control")
    save_from(
        opened,
        control,
        lambda notebook: any(
            state.get("title") == demo.title and state["state"][own] != demo.start[own] for state in states(notebook)
        ),
    )


def execution_count(opened, index: int) -> int:
    return opened.page.evaluate(
        "index => window.jupyterapp.shell.currentWidget.content.model.cells.get(index).executionCount", index
    )


def test_shift_enter_runs_the_cell_and_the_palette_opens(opened):
    index = DEMO["nudge"]
    button = opened.cell(index).get_by_role("button", name="Reset", exact=True)
    button.press("Control+Shift+c")
    opened.page.locator(".lm-CommandPalette-input").wait_for()
    opened.page.keyboard.press("Escape")
    before = execution_count(opened, index)
    opened.cell(index).get_by_role("button", name="Reset", exact=True).press("Shift+Enter")
    opened.wait_until(
        "([at, last]) => window.jupyterapp.shell.currentWidget.content.model.cells.get(at).executionCount > last",
        [index, before],
    )
    opened.wait_idle()


@pytest.mark.parametrize(
    ("index", "part"),
    [
        (QUIZ_CELL, "button"),
        (CHOICE, "button"),
        (GRAPH, "button"),
        (DEMO["nudge"], "select"),
        (DEMO["broadcast"], "input[type=text]"),
    ],
)
def test_plain_keys_stay_in_the_widget_and_escape_leads_back_to_the_cell(opened, index, part):
    element = opened.cell(index).locator(f":is(.ma-demo, .ma-explorer, .aq-quiz) {part}:visible").first
    element.focus()
    for key in ("x", "ArrowDown"):  # JupyterLab would cut the cell, or leave it
        opened.page.keyboard.press(key)
    count = "() => window.jupyterapp.shell.currentWidget.content.model.cells.length"
    assert opened.page.evaluate(count) == len(CELLS)
    inside = "() => document.activeElement.closest('.ma-demo, .ma-explorer, .aq-quiz') !== null"
    assert opened.page.evaluate(inside)
    opened.page.keyboard.press("Escape")
    active = "() => document.activeElement.matches('.jp-Cell') && document.activeElement.dataset.windowedListIndex"
    assert opened.page.evaluate(active) == str(index)
    assert opened.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.mode") == "command"
