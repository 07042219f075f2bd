"""The lessons in a real JupyterLab, as a student meets them: solved, with a planted mistake, and the graph stepped."""

from pathlib import Path

import nbformat
import pytest

from autograder.lessons.build import assemble
from autograder.lessons.variants import grade_id, solved_release

pytestmark = pytest.mark.browser

LESSONS = Path(__file__).resolve().parents[2] / "course" / "lessons"
RIGHT_PRODUCT = "return grad * b.data, grad * a.data"
SWAPPED_PRODUCT = "return grad * a.data, grad * b.data"


def place(lab, notebook, name):
    """Write the notebook into the served folder."""
    path = lab.root / name
    nbformat.write(notebook, path)
    return path


def index_of(notebook, name):
    """The position of the cell with this grade_id."""
    return next(i for i, cell in enumerate(notebook.cells) if grade_id(cell) == name)


def shown_html(lab):
    """The HTML of every output of the notebook."""
    outputs = [output for cell in lab.outputs() for output in cell]
    return ["".join(output["data"].get("text/html", "")) for output in outputs if "data" in output]


@pytest.mark.parametrize("lesson", ["01_derivatives", "02_scalar_engine"])
def test_solved_lesson_runs_from_top_to_bottom(lab, lesson):
    notebook = solved_release(assemble(LESSONS / f"{lesson}.py"))
    lab.open_notebook(place(lab, notebook, f"{lesson}_solved.ipynb"))
    lab.run_all()
    assert lab.errors() == []
    cards = [html for html in shown_html(lab) if "autograder-card" in html]
    assert len(cards) >= sum(grade_id(cell).startswith("test_") and "credit" in cell.source for cell in notebook.cells)
    assert not [html for html in cards if "Likely bug" in html or ">wrong<" in html or ">not written yet<" in html]
    assert lab.external_requests == []
    assert lab.console_errors == []


def test_wrong_product_gets_a_card_that_names_it_and_the_explorer_steps(lab):
    notebook = solved_release(assemble(LESSONS / "02_scalar_engine.py"))
    solution = notebook.cells[index_of(notebook, "add_and_multiply")]
    assert RIGHT_PRODUCT in solution.source
    solution.source = solution.source.replace(RIGHT_PRODUCT, SWAPPED_PRODUCT)
    lab.open_notebook(place(lab, notebook, "02_swapped.ipynb"))
    lab.run_all()
    test = index_of(notebook, "test_add_and_multiply")
    card = lab.cell(test).locator(".autograder-card").first
    card.wait_for()
    assert "Likely bug" in card.inner_text()
    assert "in the rule of * the two operands have changed places" in card.inner_text()

    explorer = lab.cell(next(i for i, cell in enumerate(notebook.cells) if "explore(d" in cell.source))
    explorer = explorer.locator(".ma-explorer")
    explorer.wait_for()
    before = explorer.locator(".ma-words").inner_text()
    explorer.get_by_role("button", name="Step", exact=True).click()
    assert explorer.locator(".ma-words").inner_text() != before
    assert lab.external_requests == []
