"""The clickable quiz, from Python's side: what it shows, what a click changes, and where it does not appear."""

import copy
import json

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from autograder.quizzes.quiz_widget import QuizWidget, letter_of
from autograder.quizzes.sealing import (
    Answer,
    OpenQuestion,
    SealError,
    held_back,
    is_held_back,
    open_questions,
    seal_quiz,
)
from autograder.runs.context import check_context
from autograder.runs.errors import LessonError
from autograder.student import quiz
from mini_autograd.widgets.export import StillPictures

QUIZ = {
    "sum_rule": {"a": Answer(False, "It is not split.", "", "Half"), "b": Answer(True, "Slope 1.", "", "All of it")},
    "power_rule": {"a": Answer(True, "One power less.", "", "`3 * x**2`"), "b": Answer(False, "No.", "", "`x**3`")},
}
TEXTS = {"sum_rule": "What does each input of `a + b` get?", "power_rule": "The derivative of `x**3`?"}
SEALED = seal_quiz(QUIZ, TEXTS)
VIEW = "application/vnd.jupyter.widget-view+json"

SETUP = f"""
import os, ipywidgets
from autograder.student import quiz
from autograder.runs.context import check_context
sealed, old = {SEALED!r}, {seal_quiz(QUIZ)!r}
answers = {{"sum_rule": "b", "power_rule": ""}}
def live():
    return [w for w in ipywidgets.Widget.widgets.values() if type(w).__name__ == "QuizWidget"]
"""
CELLS = [
    SETUP,
    "quiz(answers, sealed, points=4)",
    "(widget,) = live()\nwidget.answers = {**answers, 'power_rule': 'a'}\nprint(answers, widget.still['text/plain'])",
    "quiz(answers, sealed, points=4)",
    "quiz(answers, sealed)",
    "widget.answers = {'sum_rule': 'a', 'power_rule': 'a'}\nprint(widget.still['text/plain'])",
    "quiz(answers, old, points=4)",
    "with check_context(3, graded=True):\n    credit = quiz(answers, sealed, points=4)\ncredit",
]


@pytest.fixture(scope="module")
def executed():
    notebook = new_notebook(cells=[new_code_cell(source) for source in CELLS])
    NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
    return notebook


@pytest.fixture
def outputs(executed):
    return [cell.outputs for cell in executed.cells]


def test_an_exported_page_shows_the_card(executed):
    exported, _ = StillPictures().preprocess(copy.deepcopy(executed), {})
    shown = [output.data for cell in exported.cells for output in cell.outputs if "data" in output]
    assert not [data for data in shown if VIEW in data]
    assert sum("autograder-card" in data.get("text/html", "") for data in shown) == 5


def test_a_quiz_in_a_notebook_is_live_and_still_nbgraders_partial_credit(outputs):
    (output,) = outputs[1]
    assert output.output_type == "execute_result"
    assert output.data["text/plain"] == "2.0"
    assert VIEW in output.data
    assert "autograder-card" in output.data["text/html"]


def test_a_click_changes_the_answers_in_the_kernel_and_the_card(outputs):
    assert "{'sum_rule': 'b', 'power_rule': 'a'} 4 of 4 points" in outputs[2][0].text
    (whole,) = outputs[3]
    assert (whole.output_type, whole.data["text/plain"]) == ("display_data", "4 of 4 points")
    assert VIEW in whole.data
    assert outputs[5][0].text.strip() == "2.0"


def test_a_quiz_without_points_is_live_too(outputs):
    (output,) = outputs[4]
    assert VIEW in output.data
    assert "2 of 2 right" in output.data["text/plain"]


@pytest.mark.parametrize("cell", [6, 7], ids=["sealed without its texts", "graded"])
def test_where_it_cannot_or_must_not_be_clicked_the_card_alone_is_shown(outputs, cell):
    card, value = outputs[cell]
    assert VIEW not in {**card.data, **value.data}
    assert "autograder-card" in card.data["text/html"]


def test_the_browser_gets_no_answer_in_the_open():
    widget = QuizWidget(open_questions(SEALED), {}, dict)
    sent = json.dumps(widget.get_state())
    assert TEXTS["sum_rule"] in sent
    assert not [a.explanation for options in QUIZ.values() for a in options.values() if a.explanation in sent]
    assert '"right"' not in json.dumps(widget.questions)


@pytest.mark.parametrize(
    ("answer", "letter"),
    [("b", "b"), (" B ", "b"), ("b) ", "b"), ("c", ""), ("", ""), (None, ""), (1, ""), ("b" * 1000, "")],
)
def test_only_letters_of_the_question_are_shown_as_chosen(answer, letter):
    assert letter_of(OpenQuestion("key", "text", {"a": "one", "b": "two"}, {}), answer) == letter


def test_texts_are_shown_before_answering_and_their_damage_is_noticed():
    first, second = open_questions(SEALED)
    assert (first.key, first.text, first.options) == ("sum_rule", TEXTS["sum_rule"], {"a": "Half", "b": "All of it"})
    assert set(second.records) == {"a", "b"}
    assert open_questions(seal_quiz(QUIZ)) == []


def test_answers_that_are_held_back_cannot_be_opened():
    without = held_back(SEALED)
    assert is_held_back(without)
    assert not is_held_back(SEALED)
    assert [q.options for q in open_questions(without)] == [q.options for q in open_questions(SEALED)]
    assert [q.records for q in open_questions(without)] == [{}, {}]
    with pytest.raises(SealError, match="without its texts"):
        held_back(seal_quiz(QUIZ))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"sum_rule": "", "power_rule": ""}, "0 of 2 answered"),
        ({"sum_rule": " B ", "power_rule": ""}, "1 of 2 answered"),
        ({"sum_rule": "b", "power_rule": "a"}, "2 of 2 answered"),
        ({"sum_rule": "z", "power_rule": 3}, "0 of 2 answered"),
        (None, "0 of 2 answered"),
    ],
)
def test_a_quiz_that_is_held_back_says_what_is_recorded(answers, said, capsys):
    assert quiz(answers, held_back(SEALED), points=4) is None
    card = capsys.readouterr().out
    assert card.startswith(f"Quiz, explained when it is graded: {said}\n")
    assert "Slope 1." not in card


def test_a_quiz_that_is_held_back_is_not_graded():
    with check_context(3, graded=True), pytest.raises(LessonError, match="held back"):
        quiz({}, held_back(SEALED), points=4)
