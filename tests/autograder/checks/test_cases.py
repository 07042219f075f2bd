"""Checks as tables of cases: what is right, what a card shows, what stays hidden, and which mistake it names."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autograder.checks import steps
from autograder.checks.cases import Case, CaseStep, Check, run_check, wrong_outcomes
from autograder.checks.known import Signatures, passed_checks
from autograder.checks.outcomes import difference, same, short_name
from autograder.lessons.builder.case_files import without_hidden_cases
from autograder.lessons.builder.cases import checks_of, points_in_words, test_source
from autograder.notebooks.regions import without_hidden_tests
from autograder.runs import alarm
from autograder.runs.context import CheckContext
from autograder.runs.errors import LessonError
from autograder.runs.inputs import between
from autograder.student import check
from tests.autograder.judge.notebooks import notebook

NONE = Signatures()


@pytest.fixture(autouse=True)
def no_checks_yet() -> None:
    """The checks of the tests before."""
    globals().pop("CHECKS", None)


def made(script: str, points: float = 1.0) -> Check:
    found = Check("total", points)
    found.cases(f"# the case\n{script}")
    return found


def run(found: Check, hidden: str = "", signatures: Signatures = NONE, **names: Any) -> Any:
    add = eval(f"lambda check: check.hidden({hidden!r})")
    return run_check(found, names, CheckContext(), signatures, add)


RIGHT = {
    "a number": ("total([1, 2])", "3.0"),
    "an array": ("np.array(total([1, 2]))", "array(3.0)"),
    "a tuple": ("(total([1]), 'a')", "(1.0, 'a')"),
    "the beginning of an error": ("total(None)", "TypeError"),
    "an error with a text": ("total(None)", "TypeError: *iterable"),
    "an error with brackets in its text": ("int('[3]?')", "ValueError: *'[3]?'"),
    "a condition": ("total([1])", "got > 0 and got < 2"),
    "a condition over two lines": ("total([1])", "got > 0 and (\n    got < 2\n)"),
    "anything": ("total(None)", "anything"),
    "nothing": ("value = total([1])", ""),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_what_is_right(kind: str) -> None:
    step, right = RIGHT[kind]
    assert run(made(f">>> {step}\n{right}"), total=sum) == 1.0


WRONG = {
    "a value": ("total([1, 2])", "4", "`total([1, 2])` is `3`, not `4`"),
    "a list for a tuple": ("[1, 2]", "(1, 2)", "this is a list; a tuple is expected"),
    "too many": ("(1, 2, 3)", "(1, 2)", "3 entries came back; 2 are expected"),
    "another shape": ("np.ones((2, 1))", "np.ones(2)", "the shape is (2, 1); (2,) is expected"),
    "late digits of an array": ("np.array([0.1, 0.12345678])", "array([0.1, 0.12345679])", "12345678]`, not `[0.1"),
    "late digits of a number": ("1.00000001", "1.0", "is `1.00000001`, not `1`"),
    "what a step cannot do": ("memoryview(np.ones((2, 2)))[0]", "1", "raises NotImplementedError: "),
    "one factor": ("np.array([2.0, 4.0, 6.0])", "np.array([1.0, 2.0, 3.0])", "twice the right size"),
    "another error": ("1 / 0", "ValueError", "`1 / 0` raises ZeroDivisionError: division by zero"),
    "no error": ("total([])", "ValueError: empty*", "must raise ValueError: empty; it gives `0`"),
    "a statement without error": ("value = 1", "ValueError", "must raise ValueError; it raises nothing"),
    "a condition": ("total([1])", "got > 1", "is `1`; right would be: `total([1]) > 1`"),
    "a condition on another kind": ("[1]", "got > 1", "is `[1]`; right would be: `it > 1`"),
    "a truth for a number": ("True", "1", "is `True`, not `1`"),
    "a name that is not there": ("another([1])", "1", "`another` is not defined: run the cell that defines it"),
    "an object": ("object()", "1", "is `a object`, not `1`"),
    "the values of an array's buffer": ("np.array([1.5, 2.0]).data", "1", "is `a memoryview of [1.5 2. ]`, not `1`"),
    "bytes": ("b'ab'", "1", "is `the bytes b'ab'`, not `1`"),
    "nan has no size": (
        "np.array([np.nan, 1.0, 2.0])",
        "array([1.0, 2.0, 3.0])",
        "is `[nan  1.  2.]`, not `[1. 2. 3.]`",
    ),
    "the text of an error": (
        "int('x')",
        "ValueError: a * number*",
        "raises ValueError: invalid literal for int() with base 10: 'x'; right would be: `ValueError: a ... number`",
    ),
    "the text of an error in a line": (
        "fails()",
        "ValueError: a number*",
        'in the line `raise ValueError("no")`; right would be: `ValueError: a number`',
    ),
}


def fails() -> None:
    raise ValueError("no")


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_said(kind: str) -> None:
    step, right, said = WRONG[kind]
    (report,) = run(made(f">>> {step}\n{right}"), total=sum, fails=fails).reports
    (line,) = report.lines
    assert line.status == "wrong"
    assert said in line.explanation
    assert "nan times" not in line.explanation


def test_every_case_runs_and_each_shows_the_steps_that_reproduce_it() -> None:
    found = Check("total")
    found.cases("""
    >>> numbers = [1, 2]

    # first
    >>> total(numbers)
    4

    # second (2 points)
    >>> total([1])
    1

    # third
    >>> more = [*numbers, 3]
    >>> total(more)
    7
    >>> total(more)
    6
    """)
    credit = run(found, total=sum)
    (report,) = credit.reports
    assert [line.status for line in report.lines] == ["wrong", "right", "wrong"]
    assert (credit, report.earned, report.points) == (2.0, 2.0, 4.0)
    assert report.lines[2].facts == (("steps", "numbers = [1, 2]\nmore = [*numbers, 3]\ntotal(more)"),)


def test_stars_and_backquotes_in_a_value_are_shown_as_they_are() -> None:
    (report,) = run(made(">>> ('+', '*', '*', '`')\n('', '', '', '')")).reports
    page = report.html()
    assert "<em>" not in page
    assert page.count("*") == 6  # in the step twice, and in what the code gave


def test_cases_do_not_see_each_other_s_names() -> None:
    found = Check("total", points=1)
    found.cases("# first\n>>> kept = 5\n>>> kept\n5\n\n# second\n>>> kept\nNameError")
    assert run(found) == 1.0


def helper(numbers: Any) -> Any:
    """A function of a file of cases: it sees the notebook's names, and the other functions of the file."""
    return total(inner(numbers))  # noqa: F821


def inner(numbers: Any) -> list[int]:
    return [2 * number for number in numbers]


def times(factor: int) -> Any:
    return lambda numbers: factor * total(numbers)  # noqa: F821


thrice = times(3)


def kind_of_total() -> Any:
    """A class whose body reads a name of the notebook."""

    class Kind:
        total = staticmethod(total)  # noqa: F821

    return Kind.total


def test_what_a_failed_step_should_have_assigned_is_not_looked_for_in_the_notebook() -> None:
    names = {"total": sum, "two": 3}
    later = made(">>> (two,) = total([None])\n>>> two\n3")
    assert "raises TypeError" in run(later, **names).reports[0].text()
    (wrong,) = wrong_outcomes(later, names).values()
    assert (wrong,) == tuple(wrong_outcomes(later, {"total": sum}).values())


def test_the_parameters_of_a_function_in_a_step_are_no_names_of_the_notebook() -> None:
    check = Check("applied", points=1)
    check.cases("""
        # a sum
        >>> apply(lambda x, *, y=start: x + y)
        3
    """)
    assert check.needed() == {"apply", "start"}


def test_a_step_uses_functions_of_its_file_which_see_the_notebook() -> None:
    assert run(made(">>> helper([1, 2])\n6"), total=sum) == 1.0
    globals().pop("CHECKS", None)
    assert run(made(">>> thrice([1, 2])\n9"), total=sum) == 1.0


@pytest.mark.parametrize("step", ["kind_of_total()([1, 2])", "class A: got = max([1, 2])\n>>> A.got"])
def test_the_body_of_a_class_sees_the_notebook(step: str) -> None:
    assert run(made(f">>> {step}\n3"), total=sum, max=sum) == 1.0


def test_what_is_not_written_yet_is_not_wrong() -> None:
    def total(numbers: Any) -> Any:
        raise NotImplementedError

    (report,) = run(made(">>> total([1])\n1"), total=total).reports
    assert report.lines[0].status == "not yet"


def test_a_loop_without_end_is_named_with_its_line_and_the_other_cases_run() -> None:
    def total(numbers: Any) -> Any:
        while len(numbers) > 1:
            numbers = list(numbers)
        return 1

    found = Check("total", points=1, seconds=0.3)
    found.cases("# two\n>>> total([1, 2])\n3\n\n# one\n>>> total([1])\n1")
    (report,) = run(found, total=total).reports
    assert [line.status for line in report.lines] == ["wrong", "right"]
    assert "does not end, or takes longer than 0.3 seconds; it was in the line `" in report.lines[0].explanation


def test_the_limit_of_a_case_ends_before_its_outcome_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """It rings again if the student's code swallows the first time; on a busy machine that may be long after."""

    def slowly(error: BaseException) -> dict[str, str]:
        time.sleep(1.5 * alarm.AGAIN)
        return {"type": type(error).__name__}

    monkeypatch.setattr(steps, "described", slowly)
    assert steps.run_steps({}, {}, ["1", "while True: pass", "2"], 0.1) == [
        {"value": 1},
        {"error": {"type": "TookTooLong"}},
    ]


def test_of_a_hidden_case_only_its_public_words_are_shown() -> None:
    hidden = "# a secret sum\n>>> total([1917, 4])\n1921"
    credit = run(made(">>> total([1])\n1"), hidden, total=lambda numbers: numbers[0])
    assert credit == 0.0  # all or none
    shown, secret = credit.reports
    assert (shown.passed, secret.passed, secret.hidden) == (True, False, True)
    assert secret.lines[0].name == "a secret sum"
    for text in (credit._repr_html_(), secret.text(), shown.text()):
        assert "1917" not in text
        assert "1921" not in text


def test_with_points_of_their_own_hidden_cases_give_theirs() -> None:
    found = Check("total")
    found.cases("# shown (2 points)\n>>> total([1])\n1")
    assert run(found, "# secret (1.5 points)\n>>> total([2])\n3", total=sum) == 2.0
    assert run(found, "# secret (1.5 points)\n>>> total([2])\n2", total=sum) == 3.5


def outcomes(step: str, **names: Any) -> str:
    globals().pop("CHECKS", None)
    return wrong_outcomes(made(f">>> {step}\n'right'"), names)["the case"]


def known(**mistakes: str) -> Signatures:
    return Signatures({"total": {name.replace("_", " "): {"the case": what} for name, what in mistakes.items()}})


def test_a_listed_mistake_is_named_by_its_outcomes() -> None:
    found = made(">>> total([1, 2])\n3", points=1)
    first, last = outcomes("1"), outcomes("2")
    signatures = known(only_the_first=first, only_the_last=last)
    (report,) = run(found, signatures=signatures, total=lambda numbers: numbers[0]).reports
    assert (report.diagnosis, report.bugs, report.certain) == ("only the first.", ("only the first",), True)
    counted = Signatures(signatures.checks, {"only the first": "a_bug"})
    (report,) = run(found, signatures=counted, total=lambda numbers: numbers[0]).reports
    assert (report.diagnosis, report.bugs) == ("only the first.", ("a_bug",))
    (report,) = run(found, signatures=known(a=first, b=first), total=lambda numbers: numbers[0]).reports
    assert (report.diagnosis, report.certain) == ("one of these: a; or b.", False)
    (report,) = run(found, signatures=signatures, total=lambda numbers: 7).reports
    assert report.diagnosis == ""
    assert run(found, signatures=signatures, total=sum).reports[0].diagnosis == ""


def test_of_many_mistakes_with_the_same_outcomes_the_first_are_named() -> None:
    """Those in the exercise that is checked are the first."""
    listed = {name: {"one": "x"} for name in ("a", "b", "c?", "d", "e")}
    found = Signatures({"total": listed}).explain("total", {"one": "x"})
    assert found.sentence == "one of these: a; or b; or c?; or another mistake with the same results."
    found = Signatures({"total": listed}, {}, {"total": ["a", "b", "e"]}).explain("total", {"one": "x"})
    assert found.names == ("c?", "d", "a")
    assert Signatures({"total": {"c?": {"one": "x"}}}).explain("total", {"one": "x"}).sentence == "c?"


def test_two_forms_of_a_mistake_have_one_sentence() -> None:
    forms = {"the sum stops": {"one": "x"}, "the sum ends": {"one": "x"}, "another form": {"one": "y"}}
    signatures = Signatures({"total": forms}, says=dict.fromkeys(forms, "only the first entry counts"))
    for outcome in "xy":
        assert signatures.explain("total", {"one": outcome}).sentence == "only the first entry counts."


def test_a_mistake_that_two_cards_know_is_named_once() -> None:
    def slopes(w: float, x: float) -> tuple[float, float]:
        return x * (1 - (w * x) ** 2), w * (1 - (w * x) ** 2)  # for the slope of tanh, of its input

    found = Check("slopes", points=2)
    found.cases("# at 1 and 2\n>>> slopes(1.0, 2.0)\n(0.14, 0.07)")
    found.handwritten("slopes", lambda w, x: (w * x).tanh(), [between(1.0, 2.0), between(1.0, 2.0)])
    said, bug = "the slope is that of the input", "input_used_for_output"
    signatures = Signatures({"slopes": {said: wrong_outcomes(found, {"slopes": slopes})}}, {said: bug})
    cases, drawn = run(found, signatures=signatures, slopes=slopes).reports
    assert (cases.diagnosis, cases.bugs, len(cases.hints)) == (f"{said}.", (bug,), 2)
    assert (drawn.diagnosis, drawn.bugs, drawn.hints) == ("", (), ())
    assert run(found, slopes=slopes).reports[1].bugs == (bug,)


def test_where_the_cases_name_a_mistake_no_other_card_guesses() -> None:
    def slopes(w: float, x: float) -> tuple[float, float]:
        return x * (1 - (w * x) ** 2), w * (1 - (w * x) ** 2)

    found = Check("slopes", points=2)
    found.cases("# at 1 and 2\n>>> slopes(1.0, 2.0)\n(0.14, 0.07)")
    found.handwritten("slopes", lambda w, x: (w * x).tanh(), [between(1.0, 2.0), between(1.0, 2.0)])
    outcomes = wrong_outcomes(found, {"slopes": slopes})
    listed = Signatures({"slopes": {"tanh is left out": outcomes}})
    cases, drawn = run(found, signatures=listed, slopes=slopes).reports
    assert (cases.diagnosis, drawn.diagnosis) == ("tanh is left out.", "")
    several = Signatures({"slopes": {"tanh is left out": outcomes, "it is a line": outcomes}})
    assert run(found, signatures=several, slopes=slopes).reports[1].diagnosis


def test_a_mistake_that_explains_a_part_is_only_likely() -> None:
    sign, order = {"one": "a", "two": "b", "three": "c", "four": "d"}, {"one": "a", "two": "b"}
    explain = Signatures({"total": {"the sign": sign, "the order": order}}).explain
    assert explain("total", {**sign, "four": "e"}).sentence == "something like this: the sign."
    assert explain("total", {**sign, "three": "e", "four": "e"}).sentence == ""  # half of them says little
    assert explain("total", {"one": "a"}).sentence == ""  # the second case is right: it is neither
    assert explain("another", sign).sentence == ""
    alike = Signatures({"total": {"the sign": sign, "the factor": sign}}).explain
    assert alike("total", {**sign, "four": "e"}).sentence == "something like one of these: the sign; or the factor."


def test_a_mistake_that_a_passed_check_would_have_shown_is_ruled_out_while_its_code_is_there() -> None:
    signatures = Signatures({"sum": {"no start": {"one": "x"}}, "mean": {"no start": {"two": "y"}, "n": {"two": "y"}}})

    def define(source: str) -> dict[str, Any]:
        exec(source, names)
        return names

    names: dict[str, Any] = {}
    first, second = "def total(x): return sum(x)", "class Mean:\n    def of(self, x): return sum(x)"
    define(first)
    passed_checks("98.sum", names).note(True)
    define(second)
    assert passed_checks("98.mean", names).others() == ["sum"]
    ruled = signatures.ruled_out_by(passed_checks("98.mean", names).others())
    assert ruled.explain("mean", {"two": "y"}).names == ("n",)
    assert signatures.explain("mean", {"two": "y"}).names == ("no start", "n")
    define(first)  # the same again
    assert passed_checks("98.mean", names).others() == ["sum"]
    assert passed_checks("97.mean", names).others() == []  # another lesson
    define("def total(x): return 0")
    assert passed_checks("98.mean", names).others() == []
    define(first)
    passed_checks("98.sum", names).note(False)
    assert passed_checks("98.mean", names).others() == []


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    checks = {"total": {"the sign": {"one": "a", "two": "b"}, 'a "quote"': {"two": "c"}}, "empty": {}}
    written = Signatures(checks, {"the sign": "sign_lost"}, {"total": ["the sign"], "empty": []}, {"the sign": "-"})
    (tmp_path / "signatures.json").write_text(written.text("made from this"))
    assert Signatures.read(tmp_path / "signatures.json") == written
    assert json.loads(written.text("made from this"))["made_from"] == "made from this"


def test_signatures_that_cannot_be_read_name_nothing(tmp_path: Path) -> None:
    assert Signatures.read(tmp_path / "none.json") == NONE
    (tmp_path / "bad.json").write_text('{"checks": {"total": 1}}')
    assert Signatures.read(tmp_path / "bad.json") == NONE


def test_equal_outcomes_have_equal_names_on_other_machines() -> None:
    array = np.array([0.1 + 0.2, 1e-17])
    assert short_name([{"value": array}]) == short_name([{"value": np.array([0.3, 0.0])}])
    assert short_name([{"value": (1, 2)}]) != short_name([{"value": [1, 2]}])
    assert short_name([{"value": True}]) != short_name([{"value": 1}])
    error = {"type": "TypeError", "message": "<A object at 0x7f7da7d0b4c0>", "line": "x"}
    other = {"type": "TypeError", "message": "<A object at 0x7f7da7d0b555>", "line": "y"}
    assert short_name([{"error": error}]) == short_name([{"error": other}])
    guessed = error | {"message": error["message"] + ". Did you mean `data`?"}  # by the names in one notebook
    assert short_name([{"error": error}]) == short_name([{"error": guessed}])
    unbound = "cannot access local variable '{}' where it is not associated with a value"
    one, other = ({"type": "UnboundLocalError", "message": unbound.format(name)} for name in ("total", "result"))
    assert short_name([{"error": one}]) == short_name([{"error": other}])
    by_object = {"<A object at 0x7f7da7d0b4c0>": 0.1 + 0.2, "b": 1}
    assert short_name([{"value": by_object}]) == short_name([{"value": {"<A object at 0x7f7da7d0b555>": 0.3, "b": 1}}])
    assert short_name([{"value": "about 0.30000000000000004"}]) == short_name([{"value": "about 0.3"}])


def test_the_end_of_a_long_error_counts() -> None:
    one, other = ({"type": "ValueError", "message": 80 * "a" + last} for last in "bc")
    assert short_name([{"error": one}]) != short_name([{"error": other}])


def test_same_means_the_same_kind() -> None:
    assert same(np.array([1.0]), np.array([1.0 + 1e-12]))
    assert not same(np.array([1.0]), 1.0)
    assert not same([1], (1,))
    assert not same({"a": 1}, {"b": 1})
    assert difference((1.0, [2]), (1.0, (2,))) == "this is a list; a tuple is expected"


def test_a_text_of_cases_is_read_line_by_line() -> None:
    found = Check("total")
    found.cases("""
    >>> numbers = [1]
    >>> more = [2]
    # no empty line is needed before a title
    >>> for number in numbers:
    ...     more.append(number)
    ...
    ...     # a comment in a step

    >>> total(more) == [
    ...     "# no title"
    ... ]
    got is (
        False
    )

    # a vector (2 entries) (0.5 points)
    >>> total()
    TypeError: *# of arguments*
    """)
    loop = "for number in numbers:\n    more.append(number)\n\n    # a comment in a step"
    compared = CaseStep('total(more) == [\n    "# no title"\n]', "got is (\n    False\n)")
    assert found.given == (CaseStep("numbers = [1]"), CaseStep("more = [2]"))
    assert found.written == [
        Case("no empty line is needed before a title", (CaseStep(loop), compared), 1.0),
        Case("a vector (2 entries)", (CaseStep("total()", "TypeError: *# of arguments*"),), 0.5),
    ]


REFUSED = {
    "a title without its sign": ("first\n>>> total([1])", "a step with `>>> `: `first`"),
    "the second title without its sign": ("# one\n>>> a = 1\n\ntwo\n>>> a", "after an empty line comes .*: `two`"),
    "a step without its sign": ("# one\ntotal([1])\n1", "a step with `>>> `: `total"),
    "a title alone": ("# one\n\n# two\n>>> 1", "the case 'one' has no step"),
    "a step that is not Python": ("# one\n>>> total(\n1", r"`total\(` is not Python: '\(' was never closed"),
    "what is right is not Python": ("# one\n>>> total([1])\n1 1", "`1 1` is not Python: invalid syntax"),
    "a title twice": ("# one\n>>> 1\n\n# one\n>>> 2", "two cases of .* the title 'one'"),
    "given steps below a case": (">>> a = 1", "above the first one, not at `a = 1`"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_wrong_text_of_cases_is_refused_with_its_line(kind: str) -> None:
    text, said = REFUSED[kind]
    with pytest.raises(SyntaxError, match=said):
        made(">>> total([1])").cases(text)


def test_a_hidden_text_gives_no_steps_to_every_case() -> None:
    with pytest.raises(SyntaxError, match="a hidden case begins with its title"):
        made(">>> total([1])").hidden(">>> a = 1\n# one\n>>> a")


def test_a_name_belongs_to_one_check() -> None:
    Check("total")
    with pytest.raises(LessonError, match="two checks"):
        Check("total")


@pytest.mark.parametrize("answer", [None, [], [{}], [None, None], "forged"])
def test_an_answer_that_does_not_come_is_not_right(answer: Any) -> None:
    class Names(dict[str, Any]):
        sandbox = SimpleNamespace(run=lambda *asked: answer)

    found = made(">>> total([1])\nanything\n>>> total([2])", points=1)
    assert run_check(found, Names(), CheckContext(), NONE) == 0.0


FILE = '''"""Cases."""

from autograder.checks.cases import Check

check = Check("total", points=2)
check.cases("""
# one number
>>> total([1])
1
""")
check.hidden("""
# two numbers
>>> total([1917, 4])
1921
""")
'''


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of cases as students get it, in the folder where Python looks for modules."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "checks_77", raising=False)
    path = tmp_path / "checks_77.py"
    path.write_text(without_hidden_cases(FILE))
    return path


def test_students_get_no_hidden_case(beside: Path) -> None:
    assert "1917" not in beside.read_text()
    assert "two numbers" not in beside.read_text()
    assert "# one number" in beside.read_text()


def test_check_finds_the_cases_beside_the_notebook_and_reads_a_changed_file_again(beside: Path) -> None:
    names = {"check": check, "total": sum}
    assert eval('check("77.total")', names) == 2.0
    beside.write_text(beside.read_text().replace("\n1\n", "\n2.5\n"))
    assert eval('check("77.total")', names) == 0.0
    with pytest.raises(LessonError, match=r"checks_77.py has no check 'other'; it has total"):
        eval('check("77.other")', names)
    with pytest.raises(LessonError, match=r"no checks_78.py beside this notebook"):
        eval('check("78.total")', names)


def cell_of(folder: Path, text: str) -> tuple[str, str]:
    """The source of the test cell of a lesson with this file of cases, and its points in words."""
    (folder / "lesson").mkdir()
    (folder / "lesson" / "checks_77.py").write_text(text)
    lesson = folder / "lesson" / "77_sums.py"
    found = checks_of(lesson)["total"]
    return test_source(lesson, found), points_in_words(found)


def test_the_cell_of_a_check_has_the_hidden_cases_in_a_hidden_region(tmp_path: Path) -> None:
    source, points = cell_of(tmp_path, FILE)
    assert source.splitlines()[:3] == ["check(", '    "77.total",', "    ### BEGIN HIDDEN TESTS"]
    assert "1917" in source
    assert "1917" not in without_hidden_tests(source)
    assert points == "2 points, all or none; hidden tests count too"


WITH_FUNCTIONS = (
    FILE
    + '''

def seen(numbers):
    return base(numbers)


def base(numbers):
    return sum(numbers)


OFFSET = 1896


def marked(function):
    return function


@marked
def secret(numbers):
    return total(secret_too(numbers))


def secret_too(numbers):
    return [each + OFFSET for each in numbers]


check.cases("""
# what secret means is said
>>> total([seen([1, 0])])
1
""")
check.hidden("""
# moved
>>> secret([4, 5]), seen([1])
(3801, 1)

# again
>>> secret([0])
OFFSET
""")
'''
)


def test_what_only_hidden_cases_use_reaches_no_student(tmp_path: Path) -> None:
    visible = without_hidden_cases(WITH_FUNCTIONS)
    assert "1896" not in visible
    assert "secret_too" not in visible
    assert "marked" not in visible
    assert "def seen" in visible
    assert "def base" in visible
    assert without_hidden_cases(visible) == visible
    source, _ = cell_of(tmp_path, WITH_FUNCTIONS)
    assert "1896" not in without_hidden_tests(source)
    names = {"check": check, "total": sum}
    (tmp_path / "checks_77.py").write_text(visible)
    sys.path.insert(0, str(tmp_path))
    sys.modules.pop("checks_77", None)
    try:
        assert eval(source, names) == 2.0
        assert eval(source, names | {"total": lambda numbers: numbers[0]}) == 0.0
        assert eval(without_hidden_tests(source), names) == 2.0
    finally:
        sys.path.remove(str(tmp_path))


DRAWN = """
from autograder.runs.inputs import between

check = Check("double")
check.function("double", lambda x: 2 * x, [3.0], points=1)
check.function("double", lambda x: 2 * x, [between(-1917.0, -1916.0)], points=2, hidden=True)
"""


def test_checks_on_random_inputs_stand_beside_the_cases(tmp_path: Path) -> None:
    source, _ = cell_of(tmp_path, FILE + DRAWN)
    assert "1917.0" not in source  # it belongs to the other check
    assert "1917" not in without_hidden_cases(FILE + DRAWN)
    found = checks_of(tmp_path / "lesson" / "77_sums.py")["double"]
    assert points_in_words(found) == "3 points: 1 here, 2 in hidden tests"
    assert run_check(found, {"double": lambda x: x + x}, CheckContext(), NONE) == 1.0
    add = eval(
        "lambda check: (check.function('double', lambda x: 2 * x, [between(-1917.0, -1916.0)], points=2, hidden=True),)"
    )
    credit = run_check(found, {"double": lambda x: abs(x + x)}, CheckContext(), NONE, add)
    assert (credit, [report.hidden for report in credit.reports]) == (1.0, [False, True])
    assert "1917" not in credit._repr_html_()
    (report,) = run_check(found, {}, CheckContext(), NONE).reports
    assert report.lines[0].explanation == "`double` is not defined: run the cell that defines it, and then this one"


def twice(x: Any) -> Any:
    """A function of a file of cases, for the reference of a hidden check."""
    return 2 * x


@pytest.mark.parametrize(("double", "points"), [(lambda x: x + x, 3.0), (lambda x: abs(x + x), 0.0), (abs, 0.0)])
def test_all_or_none_of_the_points_with_checks_on_random_inputs(double: Any, points: float) -> None:
    found = Check("double", points=3)
    found.cases("# one\n>>> double(1)\n2")
    found.function("double", lambda x: 2 * x, [3.0])
    add = eval("lambda check: (check.function('double', lambda x: twice(x), [-3.0], hidden=True),)", {})
    credit = run_check(found, {"double": double}, CheckContext(), NONE, add)
    assert (credit, credit.whole, credit.is_whole) == (points, 3.0, points == 3.0)
    assert [report.points for report in credit.reports] == [3.0, None, None]


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("answer", "points", "said"),
    [
        ("def total(numbers):\n    return sum(numbers)", 2, ""),
        ("def total(numbers):\n    return numbers[0]", 0, "two numbers: another result than expected"),
        ("def total(numbers):\n    return 7", 0, "`total([1])` is `7`, not `1`"),
        ("def total(numbers):\n    while True: pass", 0, "does not end"),
        ("def total(numbers):\n    raise ValueError('no')", 0, "your code raised ValueError: no"),
        ("class Total(int): pass\ntotal = lambda numbers: Total(sum(numbers))", 0, "is `a Total`, not `1`"),
        ("import os\ntotal = lambda numbers: os._exit(0)", 0, "Your code stopped the notebook's process"),
    ],
)
def test_the_judge_runs_cases_in_the_sandbox_and_shows_nothing_hidden(
    tmp_path: Path, answer: str, points: float, said: str
) -> None:
    from autograder.judge.judge import judge_notebook

    text = FILE.replace("points=2)", "points=2, seconds=1)")
    source, _ = cell_of(tmp_path, text)
    (tmp_path / "checks_77.py").write_text(without_hidden_cases(text))
    node = notebook(answer, f"# test\nfrom autograder.student import check\n{source}")
    (cell,) = judge_notebook(node, helpers=tmp_path).cells
    assert (cell.points, said in cell.message) == (points, True), cell.message
    shown = json.dumps(node.cells[1].outputs) + cell.message
    assert "1917" not in shown
    assert "1921" not in shown
