"""Lessons ask for each prediction below a text that says so, with a question of its own, and each gets a verdict."""

import ast
import tomllib

import pytest
from nbclient import NotebookClient

from autograder.lessons.build.lesson_files import OUTCOMES, place_files
from autograder.lessons.build.notebook import assemble
from autograder.lessons.build.text import read_lesson
from autograder.lessons.student.outcomes import outcome
from autograder.notebooks.cells import is_test
from tests.course.planting import LESSONS, text_of

ASKING = [path.stem for path in sorted(LESSONS.glob("*/[0-9]*.py")) if "\npredict(" in path.read_text(encoding="utf-8")]
WAITS = {"A chain of 24 operations and its backward pass: where is a later call at least twice as fast?"}
"""Questions whose cells measure nothing until a learner asks for it."""
STATE = "application/vnd.jupyter.widget-state+json"


def asked_in(lesson):
    """The questions of a lesson in order, each with its options and the text above its cell."""
    text, found = "", []
    for cell in read_lesson(text_of(lesson)):
        if cell.kind == "markdown":
            text = cell.source
            continue
        for line in ast.parse(cell.source).body if "predict(" in cell.source else ():
            if isinstance(line, ast.Expr) and getattr(getattr(line.value, "func", None), "id", "") == "predict":
                question, *options = map(ast.literal_eval, line.value.args)
                found.append((question, options, text))
    return found


def test_the_first_lessons_ask():
    assert {"01", "02", "03", "04", "05", "06"} <= {lesson[:2] for lesson in ASKING}


@pytest.mark.parametrize("lesson", ASKING)
def test_predictions_are_asked_for_in_the_text_and_kept_apart(lesson):
    asked = asked_in(lesson)
    assert asked
    questions = [question for question, _, _ in asked]
    assert len(set(questions)) == len(questions), "predictions are kept by their questions"
    for question, options, text in asked:
        assert "redict" in text, f"the text above does not ask: {question}"
        assert len(options) != 1
        assert len(set(options)) == len(options)


@pytest.mark.parametrize("lesson", ASKING)
def test_each_question_has_an_expression_that_answers_it(lesson):
    expressions = tomllib.loads(text_of(lesson).with_name(OUTCOMES.format(lesson[:2])).read_text(encoding="utf-8"))
    assert list(expressions) == [question for question, _, _ in asked_in(lesson)]


@pytest.mark.slow
@pytest.mark.parametrize("lesson", ASKING)
def test_what_the_cells_compute_answers_each_question(lesson, tmp_path):
    place_files(text_of(lesson), LESSONS.parent, tmp_path)
    notebook = assemble(text_of(lesson))
    notebook.cells = [cell for cell in notebook.cells if not is_test(cell)]
    NotebookClient(notebook, timeout=300, allow_errors=True, resources={"metadata": {"path": tmp_path}}).execute()
    states = [widget["state"] for widget in notebook.metadata.widgets[STATE]["state"].values()]
    outcomes = {state["question"]: state["outcome"] for state in states if "outcome" in state}
    asked = {question: options for question, options, _ in asked_in(lesson)}
    assert outcomes.keys() == asked.keys()
    wrong = {
        question: came
        for question, came in outcomes.items()
        if question not in WAITS and (not came or (asked[question] and came not in asked[question]))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("x", "2.5"),
        ("[x, 3, True, None]", "2.5, 3, yes, None"),
        ("line('took')", " 1,200 ms"),
        ("numbers('took')", "1200"),
        ("numbers()", "1200, -1, 0.5, 2e-07"),
        ("about(1234.5)", "about 1200"),
        ("len(\nrows)", "2"),
        ("line('nowhere')", ""),
        ("missing", ""),
    ],
)
def test_an_outcome_is_worded_as_a_learner_types(expression, said):
    assert outcome(expression, {"x": 2.5}, "took 1,200 ms\nleft -1 .grad 0.5 x2 2e-7\n") == said
