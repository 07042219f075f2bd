"""Does a card say what it must, hide what it must, and stay harmless whatever a student puts on it?"""

import pickle
import re
from dataclasses import replace
from types import SimpleNamespace

import IPython
import pytest

from autograder.cards.check_report import LONGEST, Line, Report, escaped
from autograder.cards.credit import Credit
from autograder.quizzes.sealing import Answer, seal_hints, seal_quiz
from autograder.quizzes.typed_quiz import Hints
from autograder.runs.context import check_context, current
from autograder.student import LessonError, check_gradients, hints, quiz

HOSTILE = '<img src=x onerror="alert(1)"> `</code><script>` *<b>* \x1b[31m ' + "x" * 5000

SEALED = seal_quiz(
    {
        "sum_rule": {
            "a": Answer(False, "It is not *split*: each input gets all of it.", "gradient_is_split", "It is split."),
            "b": Answer(True, "The slope of `a + b` in `a` is 1.", "", "Each gets all of it."),
        },
        "power_rule": {"a": Answer(True, "Right.", "", "3 * x**2"), "b": Answer(False, "No.", "", "3 * x**3")},
        "third": {"a": Answer(True, "Because.", "", "yes"), "b": Answer(False, "No.", "", "no")},
    }
)


def test_everything_from_students_is_escaped_and_cut():
    line = Line(HOSTILE, "wrong", HOSTILE, ((HOSTILE, HOSTILE),), HOSTILE)
    report = Report(HOSTILE, (line,) * 500, 0.0, 1.0, HOSTILE, (HOSTILE,) * 3, ((HOSTILE, HOSTILE),))
    card = report.html()
    assert "<script" not in card
    assert "<img" not in card
    assert "\x1b" not in card + report.text()
    assert len(card) < 60 * 10 * LONGEST * 3
    assert set(re.findall(r"<(\w+)", card)) <= {"div", "span", "code", "em", "strong", "details", "summary", "br"}
    assert not re.search(r"url\(|https?:|<style|<link", card)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a * b * c", "a * b * c"),
        ("x*y*z", "x*y*z"),
        ("the *other* factor", "the <em>other</em> factor"),
        ("**whole**", "<strong>whole</strong>"),
        ("odd ` quote", "odd ` quote"),
        ("*before `a * b` and after*", "<em>before <code>a * b</code> and after</em>"),
        ("*`x[i] += y` adds* `a`*b", "<em><code>x[i] += y</code> adds</em> <code>a</code>*b"),
    ],
)
def test_emphasis_is_not_confused_with_products(text, html):
    assert re.sub(r"<code [^>]*>", "<code>", escaped(text)) == html


def test_credit_is_a_number_with_reports():
    first, second = Credit(1.5, (Report("one", ()),)), Credit(1, (Report("two", ()),))
    total = sum([first, second])
    assert repr(first) == "1.5"
    assert float(repr(total)) == 2.5
    assert [report.title for report in total.reports] == ["one", "two"]
    assert (0.5 + first).reports == first.reports
    assert repr(Credit(0.1) + Credit(0.2)) == "0.3"
    assert pickle.loads(pickle.dumps(total)).reports == total.reports
    assert total._repr_mimebundle_()["text/plain"] == "2.5"


def test_a_card_says_as_much_in_a_terminal_and_the_number_for_nbgrader_follows(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    credit = Credit(0.5, (Report("sums", (Line("a + b", "wrong", "too large"),), earned=0.5, points=2),))
    with pytest.raises(NotImplementedError):  # then IPython shows the value itself
        credit._ipython_display_()
    (card,) = shown
    assert "too large" in card["text/plain"]
    assert "too large" in card["text/html"]
    assert credit._repr_mimebundle_() == {"text/plain": "0.5", "text/html": "<small>0.5 of 2 points</small>"}


def test_context_collects_reports_and_is_left_behind():
    with check_context(3, graded=True, hidden=True) as context:
        assert current() is context
        quiz({"sum_rule": "b"}, SEALED, points=3)
    assert len(context.reports) == 1
    assert current().seed is None


def test_quiz_gives_credit_per_question_and_explains_what_was_chosen():
    credit = quiz({"sum_rule": " B ", "power_rule": "b", "third": ""}, SEALED, points=3)
    assert credit == 1
    text = credit.reports[0].text()
    assert "The slope of `a + b` in `a` is 1." in text
    assert "3 * x**3" in text
    assert "3 * x**2" not in text, "the right option of a wrong answer is shown"
    assert "Right." not in text
    assert "unanswered" in text
    assert quiz({"sum_rule": "b", "power_rule": "a", "third": "a"}, SEALED, points=3) == 3


@pytest.mark.parametrize(
    "answers",
    [None, {}, [], "b", {"sum_rule": None}, {"sum_rule": 1}, {"sum_rule": ["b"]}, {"sum_rule": "z" * 10_000}, {1: "a"}],
    ids=repr,
)
def test_quiz_survives_anything_as_an_answer(answers):
    credit = quiz(answers, SEALED, points=3)
    assert credit == 0
    assert len(credit.reports[0].html()) < 10_000


def test_unanswered_is_not_called_wrong():
    report = quiz({}, SEALED, points=3).reports[0]
    assert {line.status for line in report.lines} == {"unanswered"}
    assert quiz({}, SEALED) is None


def test_hints_are_folded_into_each_other(capsys):
    html = Hints(seal_hints(["Look.", "Look *again*.", "`a + b`"]))._repr_html_()
    assert html.count("<details") == 3
    assert html.index("Look.") < html.index("again") < html.index("a + b")
    hints(seal_hints(["Look."]))
    with pytest.raises(LessonError):
        hints("damaged")


def test_on_a_first_try_the_question_comes_before_the_diagnosis():
    report = Report(
        "Gradients",
        (Line("a * b", "wrong", diagnosis="its sign is lost"),),
        diagnosis="swapped",
        hints=("Which one?", "A belief.", "Look."),
    )
    asking = replace(report, asks_first=True)
    assert asking.text().index("Which one?") < asking.text().index("swapped")
    assert report.text().index("swapped") < report.text().index("Which one?")
    question, _, rest = asking.html().partition("<details")
    assert "A question first" in question
    assert "Which one?" in question
    assert "swapped" not in question
    assert rest.count("Likely bug</summary>") == 2, "that of the line is folded too"
    assert "swapped" not in asking.error
    assert "swapped" in report.error
    assert "Likely bug:</span> swapped" in report.html()
    assert "Likely bug</summary>" not in report.html()
    without = replace(asking, hints=())
    assert "Likely bug</summary>" not in without.html()
    assert "Likely bug:</span> swapped" in without.html()  # there is nothing to ask


def test_all_cards_of_a_cell_ask_on_its_first_run_and_none_on_the_second(monkeypatch):
    cells = [""]
    shell = SimpleNamespace(kernel=None, user_ns={"In": cells})
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    asked = []
    for _ in range(2):
        cells.append("the source of a cell with two checks")
        with check_context(0, graded=False) as context:
            for _ in range(2):
                check_gradients(lambda a: a * 2, [()], points=1, engine=None)
        asked.append([report.asks_first for report in context.reports])
    assert asked == [[True, True], [False, False]]
