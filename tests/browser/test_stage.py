"""The stage of a notebook whose cells have not run: it runs them by itself."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

CELLS = [
    "from mini_autograd.widgets import nudge, on_stage, step_size\non_stage()",
    "kept = 1",
    "nudge()",
    "step_size()",
    "kept += 1\nprint(kept)",
]


@pytest.mark.parametrize("by_key", [True, False])
def test_the_stage_runs_what_has_not_run_and_only_that(lab, by_key):
    lab.open_notebook(lab.write_notebook(f"stage_{by_key}.ipynb", CELLS))
    run = "() => window.jupyterapp.commands.execute('notebook:run-cell-and-select-next')"
    for number in (0, 1):
        lab.cell(number).focus()
        lab.page.evaluate(run)
    open_it = lab.page.get_by_role("button", name="One demonstration per screen")
    expect(open_it).to_be_visible()
    if by_key:
        lab.page.keyboard.press("Alt+p")
    else:
        open_it.click()
    bar = lab.page.locator(".ma-deck-bar")
    expect(bar).to_contain_text("1 of 1")
    expect(lab.page.locator(".ma-demo .ma-canvas > svg")).to_have_count(2)
    assert lab.page.evaluate("() => document.fullscreenElement?.matches('.jp-Notebook')")
    lab.page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    expect(lab.cell(4)).to_contain_text("2")
    lab.page.keyboard.press("Alt+p")
    expect(bar).to_contain_text("1 of 1")
    lab.page.keyboard.press("Escape")
    expect(lab.cell(0).locator(".jp-InputPrompt")).to_have_text("[1]:")
    expect(lab.cell(4).locator(".jp-InputPrompt")).to_have_text("[5]:")
    assert lab.errors() == []
