"""The first screen of a feedback page: every exercise by its name, a line per lost point, the lesson's text folded."""

from copy import deepcopy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.nbgrader_plugins.first_screen import FOLD, FirstScreen, exercises
from autograder.notebooks.reading import NOT_ISOLATED, UNPROTECTED

SWAPPED = "a * b: `a.grad` is wrong. Likely: the operands are swapped."


def answer(name, comment=None):
    return new_code_cell("pass", metadata={"nbgrader": {"grade_id": name, "solution": True, "comment": comment}})


def graded(name, score, points, message=""):
    note = {"autograder": {"message": message, "points": score}} if message else {}
    marks = {"grade_id": name, "grade": True, "points": points, "score": score}
    outputs = [new_output("display_data", {"text/plain": ""}, metadata=note)]
    return new_code_cell("credit", metadata={"nbgrader": marks}, outputs=outputs)


def notebook():
    return new_notebook(
        cells=[
            new_markdown_cell("# Numbers"),
            new_code_cell("import math"),
            new_markdown_cell("### Exercise 1: <product>\nWrite it."),
            answer("product", SWAPPED + "\n\na**2: `a.grad` is wrong."),
            graded("test_product", 1.0, 2.0, SWAPPED),
            graded("test_square", 0.0, 1.0, "a**2: `a.grad` is wrong. Likely: the operands are swapped."),
            new_markdown_cell("### Exercise 2: essay"),
            answer("essay", "Nicely said."),
            graded("test_essay", 3.0, 3.0),
            new_markdown_cell("The end."),
        ]
    )


def shown(given):
    return FirstScreen().preprocess(deepcopy(given), {"nbgrader": {"notebook": "numbers"}})


def test_exercises_have_their_names_and_what_cost_points_is_said_once():
    _, resources = shown(notebook())
    assert resources["autograder"]["title"] == "Numbers"
    first, second = resources["autograder"]["exercises"]
    assert (first.title, first.anchor, first.earned, first.points) == ("Exercise 1: <product>", "product", 1, 3)
    assert [loss.anchor for loss in first.losses] == ["product", "product"]
    assert "the operands are swapped" in first.losses[0].message
    assert "the operands are swapped" not in first.losses[1].message
    assert (second.title, second.losses, second.comments) == ("Exercise 2: essay", [], {"essay": "Nicely said."})


def test_of_a_file_that_could_not_be_read_nothing_is_said_but_why_and_what_a_person_wrote():
    given = notebook()
    given.metadata["autograder"] = {"problem": "The file is empty."}
    page, resources = shown(given)
    assert resources["autograder"]["problem"] == "The file is empty."
    assert [cell.metadata.nbgrader.comment for cell in page.cells] == ["Nicely said."]
    assert SWAPPED not in str(resources)
    assert [row.earned for row in resources["autograder"]["exercises"]] == [1, 3]


@pytest.mark.parametrize(("isolation", "warning"), [(NOT_ISOLATED, UNPROTECTED), ("bubblewrap", ""), ("", "")])
def test_a_page_says_that_submissions_were_not_isolated(isolation, warning):
    given = notebook()
    given.metadata["autograder"] = {"isolation": isolation}
    _, resources = shown(given)
    assert resources["autograder"]["warning"] == warning


def test_what_a_person_wrote_stays_and_what_the_tests_say_anyway_goes():
    page, _ = shown(notebook())
    comments = {
        cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.comment
        for cell in page.cells
        if "nbgrader" in cell.metadata and "comment" in cell.metadata.nbgrader
    }
    assert comments == {"product": None, "essay": "Nicely said."}


def test_text_is_folded_but_what_asks_for_an_answer():
    given = notebook()
    given.cells[4].metadata[FOLD] = {"opens": True, "summary": "<b>forged</b>"}
    page, _ = shown(given)
    folds = [cell.metadata.get(FOLD) for cell in page.cells]
    assert folds[0] == {"opens": True, "closes": False, "summary": "Numbers"}
    assert folds[1] == {"opens": False, "closes": True, "summary": "Numbers"}
    assert folds[2:6] == [None] * 4
    opened = [fold for fold in folds if fold and fold["opens"]]
    assert len(opened) == len([fold for fold in folds if fold and fold["closes"]])


def test_a_test_without_a_message_and_names_without_headings_still_have_a_row():
    cells = [answer("first"), graded("test_first", 0.0, 1.0)]
    (row,) = exercises(nbformat.v4.new_notebook(cells=cells))
    assert (row.title, [loss.message for loss in row.losses]) == ("test_first", ["This cell cost points."])
    assert row.anchor == "test_first", "nothing says which answer belongs to it"


def test_one_mistake_that_costs_in_several_exercises_is_said_once_with_its_sum():
    given = notebook()
    for at, message in ((4, SWAPPED), (5, "a**2: wrong. Likely: the operands are swapped."), (8, "x: Likely: <swap>.")):
        given.cells[at].outputs = graded("any", 0, 1, message).outputs
        given.cells[at].outputs[0].metadata["autograder"]["bugs"] = ["operands_swapped"]
    _, resources = shown(given)
    assert resources["autograder"]["mistakes"] == [], "the second exercise has lost nothing"
    given.cells[8].metadata.nbgrader.score = 1.5
    _, resources = shown(given)
    (mistake,) = resources["autograder"]["mistakes"]
    assert (mistake.lost, list(mistake.exercises)) == (3.5, ["Exercise 1: <product>", "Exercise 2: essay"])
    assert mistake.cause == "Likely: the operands are swapped."
    rows = resources["autograder"]["exercises"]
    assert not any(mistake.cause in loss.message for row in rows for loss in row.losses)


def test_a_heading_of_a_part_is_no_title_of_a_page():
    given = notebook()
    given.cells[0].source = "## Part A (2 points)"
    _, resources = shown(given)
    assert resources["autograder"]["title"] == "numbers"
