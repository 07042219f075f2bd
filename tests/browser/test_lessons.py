"""The lessons in a real JupyterLab, as a student meets them: solved, with a mistake, and the graph stepped.

One student types everything into the page of lesson 02, as delivered, makes a mistake and corrects it, and continues
with that engine in lesson 03.
"""

import re
from pathlib import Path
from textwrap import indent

import nbformat
import pytest
from playwright.sync_api import expect

from autograder.lessons.audit.variants import solved_release
from autograder.lessons.builder.lesson_files import place_files
from autograder.lessons.builder.notebook import assemble
from autograder.lessons.student.delivery import Workspace
from autograder.notebooks.cells import grade_id
from tests.browser.student_answers import ANSWERS, CHOSEN, OWN_CELL

pytestmark = pytest.mark.browser

LESSONS = Path(__file__).resolve().parents[2] / "course" / "lessons"


def text_of(lesson: str) -> Path:
    return LESSONS / lesson / f"{lesson}.py"


RIGHT_PRODUCT = "(a, b.data), (b, a.data)"
SWAPPED_PRODUCT = "(a, a.data), (b, b.data)"


def place(lab, text, notebook, name):
    """Write the notebook of a lesson into the served folder, with the files that the lesson needs."""
    path = lab.root / name
    nbformat.write(notebook, path)
    place_files(text, text.parents[2], lab.root)
    return path


def shown_html(lab):
    """The HTML of every output of the notebook."""
    outputs = [output for cell in lab.outputs() for output in cell]
    return ["".join(output["data"].get("text/html", "")) for output in outputs if "data" in output]


def cells(lab):
    """(grade_id, source) of every cell, as the page holds them."""
    return lab.page.evaluate(
        """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
            .map(cell => [cell.getMetadata('nbgrader')?.grade_id ?? '', cell.sharedModel.getSource()])"""
    )


def index_of(lab, text):
    """The position of the first cell with this grade_id, or with this text in its source."""
    return next(i for i, (name, source) in enumerate(cells(lab)) if name == text or text in source)


def run_cell(lab, index):
    lab.cell(index)
    lab.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    lab.wait_idle()


def type_into(lab, index, text):
    """Click into a cell's editor and replace all of its text from the keyboard."""
    lab.cell(index).locator(".cm-content").first.click()
    lab.page.keyboard.press("ControlOrMeta+a")
    lab.page.keyboard.press("Delete")
    lab.page.keyboard.insert_text(text)
    assert cells(lab)[index][1] == text


def filled(source, bodies):
    """The source of an exercise with each of its gaps filled by an answer."""
    parts = re.split(r" *# YOUR CODE HERE\n *raise NotImplementedError\(\)", source)
    return parts[0] + "".join(
        indent(body.strip("\n"), "    ") + rest for body, rest in zip(bodies, parts[1:], strict=True)
    )


def letters(questions, chosen):
    """The letter of the option that begins with each text, one per question of the page."""
    parts = questions.split("**Question ")[1:]
    pattern = r"\*\*(\w)\)\*\* "
    return [re.search(pattern + re.escape(text), part)[1] for text, part in zip(chosen, parts, strict=True)]


def solve(lab):
    """Type the answers to exercises and quiz into the open notebook, and a helper into a new cell above them."""
    first = next(i for i, (name, _) in enumerate(cells(lab)) if name in ANSWERS)
    lab.cell(first)
    lab.page.evaluate("() => window.jupyterapp.commands.execute('notebook:insert-cell-above')")
    type_into(lab, first, OWN_CELL)
    for i, (name, source) in enumerate(cells(lab)):
        if name in ANSWERS:
            type_into(lab, i, filled(source, ANSWERS[name]))
        elif name.endswith("_answers"):
            options = next(text for _, text in cells(lab) if "**Question 1.**" in text)
            for letter in letters(options, CHOSEN):
                source = source.replace('""', f'"{letter}"', 1)
            type_into(lab, i, source)


def assert_all_right(lab, at_least):
    """Assert that there are no errors, at least this many cards, and nothing wrong on any card."""
    assert lab.errors() == []
    cards = [html for html in shown_html(lab) if "autograder-card" in html]
    assert len(cards) >= at_least
    assert not [html for html in cards if "Likely bug" in html or ">wrong<" in html or ">not written yet<" in html]
    assert lab.external_requests == []
    assert lab.console_errors == []


def graded_by_cards(notebook):
    return sum(grade_id(cell).startswith("test_") for cell in notebook.cells)


def test_solved_lesson_runs_from_top_to_bottom(lab):
    text = text_of("01_derivatives")
    notebook = solved_release(assemble(text))
    lab.open_notebook(place(lab, text, notebook, "01_solved.ipynb"))
    lab.run_all()
    assert_all_right(lab, graded_by_cards(notebook))


def test_a_student_types_the_engine_into_the_page_and_goes_on_with_it(lab):
    student = Workspace(lab.root / "student")
    course = LESSONS.parent
    for lesson in ("02_scalar_engine", "03_order_and_reuse"):
        student.deliver(text_of(lesson), course)
    notebook = student.notebook(text_of("02_scalar_engine"))
    lab.open_notebook(notebook)
    solve(lab)
    lab.run_all()
    assert_all_right(lab, graded_by_cards(nbformat.read(notebook, 4)))
    assert "8 of 8 right" in "".join(shown_html(lab))
    the_explorer_steps(lab)
    a_wrong_product_gets_a_card_that_names_it(lab)
    lab.save()
    lesson_03_goes_on_with_it(lab, student)
    assert lab.external_requests == []


def the_explorer_steps(lab):
    explorer = lab.cell(index_of(lab, "explore(d")).locator(".ma-explorer")
    expect(explorer.locator(".ma-words")).to_contain_text("The graph starts with its leaves")
    explorer.get_by_role("button", name="Step", exact=True).click()
    expect(explorer.locator(".ma-words")).not_to_contain_text("The graph starts with its leaves")


def a_wrong_product_gets_a_card_that_names_it(lab):
    """And is corrected again."""
    solution, test = index_of(lab, "add_and_multiply"), index_of(lab, "test_add_and_multiply")
    right = cells(lab)[solution][1]
    assert RIGHT_PRODUCT in right
    type_into(lab, solution, right.replace(RIGHT_PRODUCT, SWAPPED_PRODUCT))
    run_cell(lab, solution)
    run_cell(lab, test)
    card = lab.cell(test).locator(".autograder-card").first  # that of the cases; that of the gradients repeats no name
    expect(card).to_contain_text("A question first: Write d(output)/d(first input) on paper")
    swapped = "each factor gets its own value, not that of the other one"
    named = card.get_by_text(swapped)
    expect(named).to_be_hidden()
    card.get_by_text("Likely bug").click()
    expect(named).to_be_visible()
    run_cell(lab, test)  # a second try
    expect(card).to_contain_text(f"Likely bug: {swapped}")
    type_into(lab, solution, right)
    run_cell(lab, solution)
    run_cell(lab, test)
    expect(card).not_to_contain_text("Likely bug")


def lesson_03_goes_on_with_it(lab, student):
    lab.open_notebook(student.notebook(text_of("03_order_and_reuse")))
    start = index_of(lab, "start_lesson(")
    lab.cell(start)
    lab.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-above')")
    run_cell(lab, start)
    said = "".join(output.get("text", "") for cell in lab.outputs() for output in cell)
    assert said == "Using your own engine of lesson 02.\n"
