"""Lessons ask for each prediction below a text that says so, with a question of its own, and an expression for its
verdict; the audit runs the cells."""

import ast
import tomllib

import pytest

from autograder.lessons.builder.lesson_files import OUTCOMES
from autograder.lessons.builder.text import read_lesson
from autograder.lessons.student.outcomes import outcome
from tests.course.planting import LESSONS, text_of

ASKING = [path.stem for path in sorted(LESSONS.glob("*/[0-9]*.py")) if "\npredict(" in path.read_text(encoding="utf-8")]


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
