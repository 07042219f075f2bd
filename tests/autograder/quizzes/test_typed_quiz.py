"""What a quiz says of answers: every wrong one, by its question."""

from autograder.quizzes.sealing import Answer, seal_quiz
from autograder.quizzes.typed_quiz import quiz_report

LONG = "Which of these is true of a sum? " * 6


def sealed():
    options = {"a": Answer(False, "A sum copies its gradient.", text="one"), "b": Answer(True, "Right.", text="two")}
    questions = dict.fromkeys(("sum_rule", "max_rule", "long_one"), options)
    return seal_quiz(
        questions, {"sum_rule": "What does `sum`\ndo?", "max_rule": "Does *max* split `2 * x * y`", "long_one": LONG}
    )


def test_every_wrong_answer_is_named_by_its_question():
    report = quiz_report({"sum_rule": "a", "max_rule": "a", "long_one": "b"}, sealed(), 3)
    assert (
        report.message
        == "What does sum do? A sum copies its gradient. Does max split 2 * x * y: A sum copies its gradient."
    )
    assert (report.earned, "max_rule" in report.message) == (1, False)
    assert quiz_report({}, sealed(), 3).message.count("no answer yet.") == 3
    assert max(len(line.name) for line in report.lines) == 120
