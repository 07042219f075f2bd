"""The quiz and the table of progress in a real JupyterLab: clicked, typed, saved, reloaded, without a kernel, graded.

The main test has several steps, and each continues where the one before ended, as a student does.
"""

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from playwright.sync_api import expect
from traitlets.config import Config

from autograder.judge.judge import judge_notebook
from autograder.lessons.builder.notebook import assemble
from autograder.lessons.release import release_notebook
from autograder.notebooks.cells import grade_id
from autograder.quizzes.sealing import SEALED_TEXT, open_answer, open_questions

pytestmark = [pytest.mark.browser, pytest.mark.sandbox]

LESSON = "02_scalar_engine"
TEXT = Path(__file__).resolve().parents[2] / "course" / "lessons" / LESSON / f"{LESSON}.py"
SETUP = "from autograder.student import progress, quiz"
MARKUP = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])")
TYPE = """([key, letter, at]) => {
    const answers = window.jupyterapp.shell.currentWidget.content.model.cells.get(at).sharedModel;
    answers.setSource(answers.getSource().replace(`"${key}": ""`, `"${key}": "${letter}"`));
}"""
GIVEN_UP = "widget model not found"
ANSWERS, CHECK, PROGRESS = 2, 3, 5  # the indices of these cells, after the setup and the questions


class Quiz:
    """The quiz in the page and what a reader sees of it."""

    def __init__(self, lab, questions, sealed):
        self.lab, self.questions, self.sealed = lab, questions, sealed
        self.root = lab.page.locator(".aq-quiz")
        self.score = self.root.locator(".aq-score")

    def option(self, question, letter):
        return self.root.locator(f"[data-question='{question.key}'] button[data-letter='{letter}']")

    def why(self, question):
        return self.root.locator(f"[data-question='{question.key}'] .aq-why:not(:empty)")

    def right(self, question):
        return next(letter for letter in question.options if open_answer(self.sealed, question.key, letter).right)

    def expect_chosen(self, question, letter):
        """Wait until the option, and no other, is marked and explained."""
        answer = open_answer(self.sealed, question.key, letter)
        expect(self.option(question, letter)).to_have_attribute("aria-checked", "true")
        expect(self.option(question, letter).locator(".aq-mark")).to_have_text("right" if answer.right else "wrong")
        expect(self.root.locator(f"[data-question='{question.key}'] [aria-checked='true']")).to_have_count(1)
        expect(self.why(question)).to_have_text(MARKUP.sub(lambda m: m[1] or m[2] or m[3], answer.explanation))

    def expect_written(self, question, letter):
        """Wait until the letter is in the cell that is graded."""
        entry = f'"{question.key}": "{letter}"'
        self.lab.page.wait_for_function("([entry, at]) => " + SOURCE + ".includes(entry)", arg=[entry, ANSWERS])


SOURCE = "window.jupyterapp.shell.currentWidget.content.model.cells.get(at).sharedModel.getSource()"


@pytest.fixture
def quiz(module_lab):
    lab = module_lab
    released = release_notebook(assemble(TEXT))
    check = next(i for i, cell in enumerate(released.cells) if grade_id(cell) == "quiz_02")
    cells = [new_code_cell(SETUP), *released.cells[check - 2 : check + 1], new_markdown_cell("# After"), "progress()"]
    lab.open_notebook(lab.write_notebook(f"{LESSON}/{LESSON}.ipynb", cells))
    lab.run_all()
    assert lab.errors() == []
    sealed = SEALED_TEXT.search(released.cells[check].source)[1]
    lab.cell(CHECK)
    yield Quiz(lab, open_questions(sealed), sealed)
    assert lab.external_requests == []


def a_click_is_explained_at_once_and_written_where_it_is_graded(quiz):
    first = quiz.questions[0]
    expect(quiz.score).to_have_text(f"0 of {len(quiz.questions)} right, {len(quiz.questions)} to answer")
    for letter in first.options:
        quiz.option(first, letter).click()
        quiz.expect_chosen(first, letter)
        quiz.expect_written(first, letter)
    quiz.option(first, quiz.right(first)).click()
    expect(quiz.score).to_have_text(f"1 of {len(quiz.questions)} right, {len(quiz.questions) - 1} to answer")


def the_keyboard_goes_through_the_options_without_choosing(quiz):
    second = quiz.questions[1]
    letters = list(second.options)
    quiz.option(second, letters[0]).focus()
    quiz.lab.page.keyboard.press("ArrowDown")
    expect(quiz.option(second, letters[1])).to_be_focused()
    expect(quiz.option(second, letters[1])).to_have_attribute("aria-checked", "false")
    quiz.lab.page.keyboard.press("Space")
    quiz.expect_chosen(second, letters[1])
    wrong = next(letter for letter in letters if letter not in (letters[1], quiz.right(second)))
    quiz.lab.page.keyboard.press(wrong)
    quiz.expect_chosen(second, wrong)
    quiz.expect_written(second, wrong)
    assert quiz.lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.mode") == "command"


def a_typed_letter_is_followed(quiz):
    third = quiz.questions[2]
    letter = quiz.right(third)
    quiz.lab.page.evaluate(TYPE, [third.key, letter, ANSWERS])
    quiz.expect_chosen(third, letter)


def focus_stays_also_after_it_has_left_the_quiz_once(quiz):
    """Leaving the quiz redraws it. Remains of the old one must not redraw it again after each answer."""
    fourth = quiz.questions[3]
    wrong = [letter for letter in fourth.options if letter != quiz.right(fourth)]
    quiz.lab.page.locator(".jp-MarkdownCell", has_text="After").click()
    quiz.lab.page.wait_for_timeout(1000)
    for letter in wrong[:2]:
        quiz.option(fourth, letter).focus()
        quiz.lab.page.keyboard.press("Enter")
        quiz.expect_chosen(fourth, letter)
        quiz.lab.page.wait_for_timeout(1500)  # the kernel sends a new card
        expect(quiz.option(fourth, letter)).to_be_focused()


def it_is_all_there_after_a_reload_and_counts_in_the_table_of_progress(quiz):
    first, _, third = quiz.questions[:3]
    quiz.lab.page.locator(".jp-MarkdownCell", has_text="After").click()  # the card is renewed when the quiz is left
    quiz.lab.page.wait_for_function(
        "at => JSON.stringify(window.jupyterapp.shell.currentWidget.content.model.cells.get(at).outputs.toJSON())"
        ".includes('2 of 8 right')",
        arg=CHECK,
    )
    quiz.lab.save_and_reload()
    quiz.lab.cell(CHECK)
    quiz.expect_chosen(first, quiz.right(first))
    quiz.expect_chosen(third, quiz.right(third))
    quiz.lab.cell(PROGRESS)
    quiz.lab.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    table = quiz.lab.page.locator(".jp-OutputArea details")
    expect(table).to_contain_text("quiz 1 of 4 points")
    expect(table.get_by_text("not yet")).to_be_visible()
    table.locator("summary").press("Enter")
    expect(table.get_by_text("not yet")).to_be_hidden()
    quiz.lab.console_errors.clear()  # from JupyterLab itself, because of the reload


def without_a_kernel_it_still_answers(quiz):
    second = quiz.questions[1]
    quiz.lab.save()
    quiz.lab.leave()
    quiz.lab.console_errors.clear()
    quiz.lab.open_notebook(f"{LESSON}/{LESSON}.ipynb")
    quiz.lab.cell(CHECK)
    quiz.expect_chosen(quiz.questions[0], quiz.right(quiz.questions[0]))
    quiz.option(second, quiz.right(second)).click()
    quiz.expect_chosen(second, quiz.right(second))
    quiz.expect_written(second, quiz.right(second))
    saved = json.loads((quiz.lab.root / LESSON / f"{LESSON}.ipynb").read_text(encoding="utf-8"))
    (kept,) = saved["metadata"]["widgets"].values()
    assert len(kept["state"]) == 2  # the quiz and its layout, however often it was run
    assert [error for error in quiz.lab.console_errors if GIVEN_UP not in error] == []


def it_is_shown_even_if_the_page_gave_up_looking_for_it(quiz):
    second = quiz.questions[1]
    quiz.lab.save()
    with quiz.lab.looking_once():
        quiz.lab.open_notebook(f"{LESSON}/{LESSON}.ipynb")
        quiz.lab.cell(CHECK)
        quiz.expect_chosen(second, quiz.right(second))
        expect(quiz.root).to_have_count(1)


def what_was_clicked_is_what_is_graded(quiz):
    """Answers to the first three questions are right: one clicked, one clicked without a kernel, and one typed."""
    quiz.lab.save()
    notebook = nbformat.read(quiz.lab.root / LESSON / f"{LESSON}.ipynb", as_version=4)
    verdict = judge_notebook(notebook, source=assemble(TEXT))
    assert [(cell.points, cell.max_points) for cell in verdict.cells] == [(1.5, 4)]


def test_a_quiz_that_is_held_back_takes_answers_and_tells_nothing(lab):
    released = release_notebook(assemble(TEXT), Config({"HoldBack": {"enabled": True}}))
    check = next(i for i, cell in enumerate(released.cells) if grade_id(cell) == "quiz_02")
    cells = [new_code_cell(SETUP), *released.cells[check - 2 : check + 1]]
    lab.open_notebook(lab.write_notebook(f"{LESSON}/{LESSON}.ipynb", cells))
    lab.run_all()
    sealed = SEALED_TEXT.search(released.cells[check].source)[1]
    quiz = Quiz(lab, open_questions(sealed), sealed)
    lab.cell(CHECK)
    for count, letter in ((1, "a"), (1, "b")):
        quiz.option(quiz.questions[0], letter).click()
        expect(quiz.score).to_have_text(f"{count} of {len(quiz.questions)} answered. Explained when it is graded.")
        expect(quiz.option(quiz.questions[0], letter)).to_have_attribute("aria-checked", "true")
        expect(quiz.option(quiz.questions[0], letter).locator(".aq-mark")).to_have_text("chosen")
        expect(quiz.root.locator("[aria-checked='true']")).to_have_count(1)
        quiz.expect_written(quiz.questions[0], letter)
    expect(quiz.why(quiz.questions[0])).to_have_count(0)


def test_a_quiz_from_the_first_click_to_the_mark(quiz):
    a_click_is_explained_at_once_and_written_where_it_is_graded(quiz)
    the_keyboard_goes_through_the_options_without_choosing(quiz)
    a_typed_letter_is_followed(quiz)
    focus_stays_also_after_it_has_left_the_quiz_once(quiz)
    it_is_all_there_after_a_reload_and_counts_in_the_table_of_progress(quiz)
    without_a_kernel_it_still_answers(quiz)
    it_is_shown_even_if_the_page_gave_up_looking_for_it(quiz)
    what_was_clicked_is_what_is_graded(quiz)
