"""Predictions in a lesson's cell: made before its output is shown, kept with the notebook, and shown beside it."""

import json

import pytest

from tests.browser.conftest import violations

pytestmark = pytest.mark.browser

CELLS = [
    'from autograder.student import predict\npredict("What is 2 to the power of 10?")\nprint("it is", 2**10)\n2**10',
    'predict("Which is larger?", "0.1 + 0.2", "0.3", "neither")\nprint("difference", 0.1 + 0.2 - 0.3)',
    'print("not asked")',
]


def shown(cell) -> str:
    return cell.locator(".jp-Cell-outputArea").inner_text()


@pytest.fixture
def asked(lab):
    lab.open_notebook(lab.write_notebook("predictions.ipynb", CELLS))
    lab.run_all()
    assert lab.errors() == []
    return lab


def test_what_a_cell_shows_is_covered_until_there_is_a_prediction(asked):
    cell = asked.cell(0)
    entry = cell.get_by_role("textbox", name="Your prediction")
    entry.wait_for()
    assert "1024" not in shown(cell)
    assert "not asked" in shown(asked.cell(2)), "a cell that asks nothing is covered"
    asked.cell(0)
    entry.fill("1000")
    entry.press("Enter")
    cell.get_by_text("You predicted: 1000").wait_for()
    assert "it is 1024" in shown(cell)
    choice = asked.cell(1)
    assert "difference" not in shown(choice)
    choice.get_by_role("button", name="neither", exact=True).click()
    choice.get_by_text("You predicted: neither").wait_for()
    assert "difference" in shown(choice)
    assert violations(asked.page, ".ma-prediction") == []


def test_a_long_word_stays_within_its_card(asked):
    cell = asked.cell(0)
    entry = cell.get_by_role("textbox", name="Your prediction")
    entry.fill("x" * 200)
    entry.press("Enter")
    cell.get_by_text("You predicted: xxx").wait_for()
    card = cell.locator(".ma-prediction")
    assert card.evaluate("card => card.scrollWidth <= card.clientWidth")


def test_a_prediction_is_kept_with_the_notebook_and_can_be_made_again(asked):
    cell = asked.cell(0)
    cell.get_by_role("textbox", name="Your prediction").fill("2 * 10")
    cell.get_by_role("button", name="Predict", exact=True).click()
    asked.cell(1).get_by_role("button", name="Skip").click()
    asked.save()
    kept = json.loads((asked.root / "predictions.ipynb").read_text())["metadata"]["predictions"]
    assert kept == {"What is 2 to the power of 10?": "2 * 10", "Which is larger?": ""}
    asked.run_all()
    asked.cell(0).get_by_text("You predicted: 2 * 10").wait_for()
    assert "1024" in shown(asked.cell(0)), "a second run asks again"
    assert "difference" in shown(asked.cell(1)), "what was skipped is asked again"
    asked.leave()
    asked.open_notebook("predictions.ipynb")
    asked.cell(0).get_by_text("You predicted: 2 * 10").wait_for()
    asked.cell(0).get_by_role("button", name="Predict again").click()
    asked.cell(0).get_by_role("textbox", name="Your prediction").wait_for()
    assert "1024" not in shown(asked.cell(0))


OUTCOMES = """
"Paths?" = 'f"2**{len(paths)}"'
"Slope?" = "0.1 + 0.2"
"Which numbers?" = "numbers()"
"Milliseconds?" = "about(130)"
"Who?" = "['w', 'b']"
"""


def test_a_prediction_gets_a_verdict_from_what_its_cell_computed(lab):
    cells = [
        'from autograder.student import predict\npredict("Paths?", "60", "2**60")\npaths = 60 * [0]',
        'predict("Slope?")',
        'predict("Which numbers?")\nprint("first 5.0, then 8")',
        'predict("Milliseconds?")',
        'predict("Who?")',
        'predict("Nobody says?")',
    ]
    notebook = lab.write_notebook("verdicts.ipynb", cells)
    (lab.root / "outcomes_99.toml").write_text(OUTCOMES)
    lab.open_notebook(notebook)
    lab.run_all()
    lab.cell(0).get_by_role("button", name="60", exact=True).click()
    lab.cell(0).get_by_text("You predicted: 60, but it is 2**60.").wait_for()
    for number, guess, verdict in (
        (1, "0.3", ", and that is right."),
        (2, "5 and 8", ", and that is right."),
        (2, "8, 5", ", but it is 5, 8."),
        (3, "100", ", and that is right."),
        (3, "20", ", but it is about 130."),
        (4, "b and w", ", and that is right."),
        (4, "the weight", ". It is w, b."),
        (5, "7", ". Compare it with the output below."),
    ):
        cell = lab.cell(number)
        entry = cell.get_by_role("textbox", name="Your prediction")
        if not entry.is_visible():
            cell.get_by_role("button", name="Predict again").click()
        entry.fill(guess)
        entry.press("Enter")
        cell.get_by_text(f"You predicted: {guess}{verdict}").wait_for()
    assert lab.errors() == []
