"""A released lesson in plain Notebook 7, without JupyterLab around it: its widgets and its quiz draw and respond."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import Locator, expect

from autograder.lessons.audit.variants import solved_release
from autograder.lessons.builder.lesson_files import place_files
from autograder.lessons.builder.notebook import assemble
from tests.browser.conftest import fresh_page

pytestmark = pytest.mark.browser

LESSON = "02_scalar_engine"
TEXT = Path(__file__).resolve().parents[2] / "course" / "lessons" / LESSON / f"{LESSON}.py"


@pytest.fixture
def seven(chromium: Any, lab_server: Any) -> Iterator[Any]:
    """A page of its own: the tests that follow go on with JupyterLab in the common one."""
    with fresh_page(chromium, lab_server) as page:
        yield page


def test_a_lesson_works_in_notebook_seven(seven: Any) -> None:
    lab = seven
    path = lab.root / "seven" / f"{LESSON}.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(solved_release(assemble(TEXT)), path)
    place_files(TEXT, TEXT.parents[2], path.parent)
    page = lab.page
    page.goto(f"{lab.url}/notebooks/seven/{LESSON}.ipynb?token={lab.token}")
    lab.wait_open()
    lab.run_all()
    assert lab.errors() == []
    explorer, quiz = page.locator(".ma-explorer").first, page.locator(".aq-quiz")
    go_to(lab, explorer)
    before = explorer.locator(".ma-counter").inner_text()
    explorer.press("End")
    expect(explorer.locator(".ma-counter")).not_to_have_text(before)
    go_to(lab, quiz)
    question = quiz.locator("[data-question]").first
    wrong = question.locator("button[data-letter]:not([aria-checked='true'])").first
    key, letter = question.get_attribute("data-question"), wrong.get_attribute("data-letter")
    option = question.locator(f"button[data-letter='{letter}']")
    option.click()
    expect(option).to_have_attribute("aria-checked", "true")
    expect(option.locator(".aq-mark")).to_have_text("wrong")
    sources = (
        "() => [...window.jupyterapp.shell.currentWidget.content.model.cells].map(it => it.sharedModel.getSource())"
    )
    assert any(f'"{key}": "{letter}"' in source for source in page.evaluate(sources)), "the answer is kept"
    assert lab.external_requests == []


def go_to(lab: Any, output: Locator) -> None:
    """Scroll to the cell of an output and make it active, as a reader does. A click into a cell that is not active
    would first make it active, and the page could move between pressing and releasing the mouse button.
    """
    lab.cell(int(output.evaluate("element => element.closest('.jp-Cell').dataset.windowedListIndex")))
