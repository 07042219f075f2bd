"""The instructor's page and the exports say what the gradebook and the judge say, and nothing in them is active."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from autograder.cli import main
from autograder.files import atomic_write
from autograder.grading.errors import in_words
from autograder.grading.gradebook.tables import harmless, points_in
from autograder.grading.report.class_report import ClassReport
from autograder.grading.report.progress_display import results_table, summary
from autograder.grading.report.similarity import as_reference, groups, own_part, plain
from autograder.grading.submission.class_records import SubmissionRecord
from autograder.notebooks.reading import UNPROTECTED
from autograder.notebooks.verdicts import CellVerdict
from tests.autograder.conftest import SmallCourse
from tests.autograder.grading.here import grade_all

AGAIN = "autograder grade words says why."
LONG = "\n".join(f"value_{number} = {number} * other_{number}" for number in range(12))


def record(student: str, points: float | None, message: str = "", bugs: tuple[str, ...] = (), **more: Any) -> Any:
    cell = CellVerdict("test_a", points, 4, message, "lesson", bugs)
    return SubmissionRecord(student, "lesson", more.pop("status", "graded"), points, 4, cells=(cell,), **more)


def test_what_is_counted() -> None:
    records = [
        record("ann", 4),
        record("bob", 2, "swapped", ("operands_swapped",)),
        record("cem", 0, "swapped", ("operands_swapped",)),
        record("dan", 0, "sign", ("sign_lost",), seconds=9.0),
        record("eve", 0, "took too long"),
        record("fay", 1, "took too long", reason="No second.ipynb was handed in."),
        record("gus", 0, status="died", reason="killed"),
        record("hal", None),
        record("ida", 0, "The cell is missing.", status="unreadable", reason="The file is empty."),
        record("jan", 0, "The cell is missing.", status="missing", reason="No lesson.ipynb was handed in."),
    ]
    report = ClassReport(records, "lesson", "course", "today", {})
    assert [(mistake.title, mistake.students) for mistake in report.mistakes] == [
        ("operands swapped", ("bob", "cem")),
        ("sign lost", ("dan",)),
    ]
    (exercise,) = report.exercises
    assert (exercise.full, exercise.partial, exercise.none, exercise.ungraded) == (1, 2, 3, 1)
    assert [len(bar.students) for bar in report.bars] == [4, 0, 1, 0, 0, 1, 0, 0, 0, 1]
    assert report.other_messages == [("test_a", "took too long", 2)]
    assert [entry.student for entry in report.troubled] == ["fay", "gus", "ida", "jan"]
    assert report.slowest[0].student == "dan"
    assert (report.mean, report.median, report.full_marks) == (1, 0, 1)
    (stuck,) = report.stuck
    assert (stuck.name, stuck.students) == ("test_a", ("bob", "cem", "dan", "eve", "fay"))


@pytest.mark.parametrize(
    "message",
    [
        "The cell `add` was stopped: The cell stopped the notebook's process: it was killed.",
        "Your code stopped the notebook's process: it was killed.",
        "A hidden test failed: your code stopped the notebook's process.",
    ],
)
def test_a_submission_that_ended_its_process_needs_a_look(message: str) -> None:
    report = ClassReport([record("ann", 4), record("bob", 0, message)], "lesson", "course", "today", {})
    assert [(entry.student, entry.stopped) for entry in report.troubled] == [("bob", message)]


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (LONG, True),
        ("# mine\n" + LONG.replace(" = ", "=").replace("\n", "\n\n"), True),
        (LONG.replace("value_3", "x3"), True),
        (LONG.replace("value", "mine").replace("other", "second"), False),
        ("def f(): pass", False),
    ],
    ids=["same", "layout and comments", "one name", "all names", "short"],
)
def test_near_identical_answers_are_grouped(other: str, alike: bool) -> None:
    found, complete = groups({"ann": plain(LONG), "bob": plain(other), "cem": plain(LONG[::-1])})
    assert [group.students for group in found] == ([("ann", "bob")] if alike else [])
    assert complete


STUB = "def mean(values):\n    raise NotImplementedError"
SOLUTION = f"def mean(values):\n    # one after another\n{LONG}\n    return value_1".replace("\nvalue", "\n    value")


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (SOLUTION, True),
        (SOLUTION.replace("# one after another", "# mine").replace(" = ", "="), True),
        (SOLUTION.replace("value_3", "x3"), True),
        (SOLUTION.replace("value", "mine").replace("other", "second"), False),
        (STUB, False),
        ("def mean(values):\n    return sum(values) / len(values)", False),
    ],
    ids=["same", "layout and comments", "one name", "all names", "untouched", "short"],
)
def test_answers_like_the_reference_are_listed(answer: str, named: bool) -> None:
    answers = {"ann": {"mean": own_part(answer, STUB), "other": own_part("x = 1", "")}, "bob": {}}
    found = as_reference(answers, {"mean": own_part(SOLUTION, STUB), "other": "x = 1"})
    assert [(answer.student, answer.exercise) for answer in found] == [("ann", "mean")] * named


def test_what_was_given_makes_no_likeness() -> None:
    """Two one-line solutions in a cell with many given lines."""
    given = f"{LONG}\nraise NotImplementedError"
    answers = {"ann": {"sum": own_part(f"{LONG}\nresult = value_1 + value_2", given)}}
    assert as_reference(answers, {"sum": own_part(f"{LONG}\nresult = value_2 + value_1", given)}) == []


@pytest.fixture(scope="module")
def graded_once(released_course: Path, tmp_path_factory: pytest.TempPathFactory) -> SmallCourse:
    course = SmallCourse(released_course).copy(tmp_path_factory.mktemp("graded") / "course")
    course.submit("ann", course.answered())
    course.submit("bob", course.answered(shout="raise ValueError('<script>alert(1)</script><b>x</b>')"))
    course.submit("<img src=x onerror=alert(2)>", course.answered(shout="return word"))
    course.submit("eve", b"no notebook")
    grade_all(course, feedback=True)
    return course


@pytest.fixture
def graded(graded_once: SmallCourse, tmp_path: Path) -> SmallCourse:
    """A copy of a course with graded submissions, for one test."""
    return graded_once.copy(tmp_path / "course")


@pytest.mark.sandbox
def test_the_page_needs_nothing_and_runs_nothing(graded: Any, capsys: pytest.CaptureFixture) -> None:
    assert main(["report", "words", "--course", str(graded.root)]) == 0
    path = Path(capsys.readouterr().out.strip())
    page = path.read_text()
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src 'none'" in page
    assert "hiddenword" not in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    links = re.findall(r'href="([^"]+)"', page)
    assert any(link.endswith("ann/words/strings.html") for link in links)
    assert all((path.parent / link).resolve().is_file() for link in links if "%" not in link)
    assert "The file is not valid JSON" in page


def test_every_page_says_that_submissions_were_not_isolated(
    small_course: SmallCourse, capsys: pytest.CaptureFixture
) -> None:
    small_course.submit("ann", small_course.answered())
    grade_all(small_course, unsafe=True, feedback=True)
    assert main(["report", "words", "--course", str(small_course.root)]) == 0
    report = Path(capsys.readouterr().out.strip())
    (feedback,) = (small_course.root / "feedback" / "ann").rglob("*.html")
    for page in (report, feedback):
        assert page.read_text().count(UNPROTECTED) == 1


@pytest.mark.sandbox
def test_canvas_moodle_and_nbgrader_get_the_same_marks(
    graded: Any, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with sqlite3.connect(graded.root / "gradebook.db") as connection:
        connection.execute("insert into student (id, last_name) values ('zoe', '=1+1')")
        connection.execute("update submitted_notebook set late_submission_penalty = 0.5")
        connection.execute(
            "update student set lms_user_id = '71', first_name = 'Ann', last_name = 'A' where id = 'ann'"
        )
    marks = {"ann": "4.5", "bob": "1.5", "eve": "0", "zoe": ""}

    def table(*arguments: str) -> list[list[str]]:
        target = tmp_path / "out.csv"
        assert main(["export", "--course", str(graded.root), "--to", str(target), *arguments]) == 1
        assert f"it counts 0: 1 submission (eve). {AGAIN}" in capsys.readouterr().err
        with target.open(newline="") as file:
            return list(csv.reader(file))

    canvas = table("--for", "canvas", "words")
    assert canvas[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "words"]
    assert canvas[1] == ["Points Possible", "", "", "", "", "5"]
    given = {student: mark for student, mark in marks.items() if mark}  # an empty entry removes what is there
    assert {row[3]: row[5] for row in canvas[2:] if row[3] in marks} == given
    assert ["A, Ann", "71", "", "ann", "", "4.5"] in canvas
    moodle = table("--for", "moodle")
    assert {row[0]: row[5] for row in moodle[1:] if row[0] in marks} == given
    nbgrader = table("words")
    assert [row[4] for row in nbgrader if row[3] == "zoe"] == ["'=1+1"]
    score = nbgrader[0].index("score")
    found = {row[3]: float(row[score]) for row in nbgrader[1:] if row[3] in marks}
    assert found == {student: float(mark or 0) for student, mark in marks.items()}

    roster = tmp_path / "from_canvas.csv"
    roster.write_text(
        "Student,ID,SIS Login ID,Section,words (881),Final Score\n    Points Possible,,,,5,\n"
        '"A, Ann",71,a.a@uni,S1,,90\n"=B, Bob",72,bob,S1,,80\n"N, Nobody",73,nobody,S1,,\n'
    )
    filled = table("--for", "canvas", "--canvas-gradebook", str(roster), "words")
    assert filled[0] == ["Student", "ID", "SIS Login ID", "Section", "words (881)"]
    assert [row[0] for row in filled[2:]] == ["A, Ann", "'=B, Bob", "N, Nobody"]
    assert [row[-1] for row in filled[1:]] == ["5", "4.5", "1.5", ""]


def test_a_mark_of_a_person_is_not_named_as_a_zero(graded: Any, tmp_path: Path) -> None:
    export = ["export", "words", "--course", str(graded.root), "--to", str(tmp_path / "out.csv")]
    with sqlite3.connect(graded.root / "gradebook.db") as connection:
        connection.execute("update grade set manual_score = 1 where auto_score = 0")
    assert main(export) == 0


@pytest.mark.sandbox
@pytest.mark.parametrize("by", ["autograder", "nbgrader"])
def test_students_who_have_a_zero_without_a_notebook_are_named(
    by: str, small_course: Any, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    small_course.submit("ann", small_course.answered("return 0", "return 0"))
    small_course.submit("bob", b"no notebook")
    small_course.submit("cleo", small_course.answered(), "other.ipynb")
    grade_all(small_course)
    if by == "nbgrader":  # it keeps none of our results, and makes a folder for every submission
        with sqlite3.connect(small_course.root / "gradebook.db") as connection:
            connection.execute("drop table autograder_result")
        (small_course.root / "autograded" / "cleo" / "words").mkdir(parents=True)
    capsys.readouterr()
    for platform in ("canvas", "moodle", "nbgrader"):
        export = ["--for", platform, "--course", str(small_course.root), "--to", str(tmp_path / "out.csv")]
        assert main(["export", *export]) == 1
        assert f"it counts 0: 2 submissions (bob, cleo). {AGAIN}" in capsys.readouterr().err


@pytest.mark.sandbox
def test_a_failed_submission_gets_no_mark_until_somebody_gives_one(
    small_course: Any, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered()).with_name("timestamp.txt").write_text("yesterday")
    grade_all(small_course)
    target = tmp_path / "out.csv"

    def exported(platform: str) -> tuple[int, list[str]]:
        options = ["--for", platform, "--course", str(small_course.root), "--to", str(target)]
        status = main(["export", "words", *options])
        with target.open(newline="") as file:
            return status, next((row for row in csv.reader(file) if "bob" in row), [])

    capsys.readouterr()
    for platform, marks in (("canvas", []), ("moodle", []), ("nbgrader", ["", "", "", "5.0"])):
        status, row = exported(platform)
        assert (status, row[-4:]) == (1, marks)
        *_, line = capsys.readouterr().err.splitlines()
        assert "words: grading failed, so there is no mark and no feedback page: 1 submission (bob). Run auto" in line
    with sqlite3.connect(small_course.root / "gradebook.db") as connection:
        connection.execute("update grade set manual_score = 1, needs_manual_grade = 0 where needs_manual_grade")
    assert exported("canvas") == (0, ["bob", "", "", "bob", "", "2"])


GRADEBOOK = 'Student,ID,SIS Login ID,Section,words (881)\nPoints Possible,,,,{}\n"A, Ann",71,ann,bob,\n'


@pytest.fixture(scope="module")
def ann_and_bob(released_course: Path, tmp_path_factory: pytest.TempPathFactory) -> SmallCourse:
    """A course in which these two are graded. Exports change nothing in it."""
    course = SmallCourse(released_course).copy(tmp_path_factory.mktemp("ann_and_bob") / "course")
    course.submit("ann", course.answered(shout="return word"))
    course.submit("bob", course.answered())
    grade_all(course)
    return course


@pytest.fixture
def exported(ann_and_bob: SmallCourse, tmp_path: Path) -> Callable[[str], tuple[int, list[list[str]]]]:
    """Export to a Canvas gradebook with the given text: the exit status and the table. Ann and bob are graded."""
    target, gradebook = tmp_path / "canvas.csv", tmp_path / "gradebook.csv"

    def export(text: str) -> tuple[int, list[list[str]]]:
        gradebook.write_text(text)
        options = ["--for", "canvas", "--canvas-gradebook", str(gradebook), "--to", str(target)]
        status = main(["export", "words", *options, "--course", str(ann_and_bob.root)])
        with target.open(newline="") as file:
            return status, list(csv.reader(file))

    return export


@pytest.mark.sandbox
def test_a_mark_without_a_row_in_canvas_is_named(exported: Any, capsys: pytest.CaptureFixture) -> None:
    assert exported(GRADEBOOK.format(5))[0] == 1
    assert "Canvas's gradebook has no row for 1 student (bob), or more than one that fits, so their marks are not" in (
        capsys.readouterr().err
    )
    status, table = exported(GRADEBOOK.format(5) + '"R, Bob",72,bob,,\n')
    assert (status, [row[-1] for row in table]) == (0, ["words (881)", "5", "2", "5"])
    assert capsys.readouterr().err == ""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("possible", "column"),
    [
        ("100", ["100", "40"]),
        ('"2,5"', ["2,5", "1"]),
        ("5.00", ["5.00", "2"]),
        ("", ["", "2"]),
        ("0", ["0", "2"]),
        ("(read only)", ["(read only)", "2"]),
    ],
)
def test_marks_are_on_the_scale_that_canvas_has(
    possible: str, column: list[str], exported: Any, capsys: pytest.CaptureFixture
) -> None:
    _, table = exported(GRADEBOOK.format(possible))
    assert [row[-1] for row in table[1:]] == column
    said = capsys.readouterr().err
    points = column[0].replace(",", ".")
    assert (f"scaled from the lesson's 5 points to the {points} points possible in Canvas.\n" in said) == (
        column[1] != "2"
    )
    assert ("Canvas has no points possible for 'words (881)'" in said) == (points in ("", "0", "(read only)"))


@pytest.mark.sandbox
def test_what_an_upload_to_canvas_changes_is_shown_and_nobody_s_excuse_is_lost(
    exported: Any, capsys: pytest.CaptureFixture
) -> None:
    rows = '"A, Ann",71,ann,,EX\n"B, Bob",72,bob,,3.00\n"C, Cem",73,cem,,1.50\n'
    status, table = exported(f"Student,ID,SIS Login ID,Section,words (881)\nPoints Possible,,,,5.00\n{rows}")
    assert (status, [row[-1] for row in table[1:]]) == (0, ["5.00", "EX", "5", "1.50"])
    printed = capsys.readouterr()
    assert re.search(r"bob\W+words \(881\)\W+3\.00\W+5 ", printed.out)
    assert "ann" not in printed.out
    assert "Canvas: 0 new, 1 changed; everything else stays as it is." in printed.out
    assert "entries that are no number stay as they are in Canvas: ann (EX, not 2)." in printed.err
    status, _ = exported('Student,ID,SIS Login ID,Section,words (881),Words (9),words (12)\n"A, Ann",71,ann,,1,2,3\n')
    assert status == 2
    assert "has several columns for words: 'words (881)', 'words (12)'. Delete" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["1000", "1,000", "1.000", "1000.0", "1000,0", "1,000.00", "1.000,00", "1\u202f000,00"]
)
def test_points_are_read_in_the_users_language(text: str) -> None:
    assert points_in(text) == 1000


@pytest.mark.sandbox
def test_a_gradebook_of_canvas_may_have_semicolons_and_no_other_table_is_taken(
    exported: Any, capsys: pytest.CaptureFixture
) -> None:
    wanted = exported(GRADEBOOK.format('"5,0"'))[1]
    assert exported('Student;ID;SIS Login ID;Section;words (881)\nPoints Possible;;;;5,0\n"A, Ann";71;ann;bob;\n')[
        1
    ] == (wanted)
    for text in ("a,b\n1,2\n", "Identifier,Full name,Grade\nParticipant 1,Ann,\n", "Student,words\nAnn,\n"):
        capsys.readouterr()
        assert exported(text) == (2, wanted)
        assert "gradebook.csv is not a Canvas gradebook: it has no column " in capsys.readouterr().err


@pytest.mark.sandbox
def test_marks_that_are_not_final_are_named_when_they_are_exported(
    small_course: Any, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    export = ["export", "--course", str(small_course.root), "--to", str(tmp_path / "out.csv")]
    small_course.submit("ann", small_course.answered())
    grade_all(small_course)
    assert main(export) == 0
    assert capsys.readouterr().err == ""
    small_course.submit("zoe", small_course.answered())
    with sqlite3.connect(small_course.root / "gradebook.db") as connection:
        connection.execute("update grade set needs_manual_grade = 1")
    assert main([*export, "words"]) == 0
    said = capsys.readouterr().err
    assert "words: not graded yet: 1 submission (zoe). Run autograder grade words, and export again." in said
    assert "not final, because a person has to look at them in Formgrader: 1 submission (ann)." in said


def test_a_long_name_leaves_room_for_the_points() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(results_table([record("x" * 120, 3, "because")], "lesson"))
    shown = console.export_text()
    assert shown.count("x") == 120
    assert "3 / 4" in shown
    assert "because" in shown


def test_the_table_says_what_lateness_takes_from_the_points() -> None:
    late = record("ann", 3, "a * b: wrong", late_penalty=2, handed_in="2026-03-01 12:00:00 UTC")
    assert "3 / 4" in summary(late)
    assert summary(late).endswith("  late: 2 taken off, 1 left. a * b: wrong")
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(results_table([late, record("bob", 4)], "lesson"))
    shown = console.export_text()
    assert shown.count("late: 2 taken off, 1 left. a * b: wrong") == 1
    assert shown.count("handed in (UTC)") == shown.count("2026-03-01 12:00:00") == 1


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\n=1", "\r", "\uff1dcmd()", "\uff20x"]
)
def test_no_name_is_a_formula_in_a_spreadsheet(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert harmless(f"Ann {text}") == f"Ann {text}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "words"], "Nothing of 'words' has been graded in {root}: "),
        (["report", "wrods"], "has no assignment 'wrods'"),
        (["export", "wrods"], "no assignment wrods"),
        (["export", "--canvas-gradebook", "nowhere.csv"], "--for canvas"),
        (["export", "--to", "/nowhere/marks.csv"], "No such file or directory: /nowhere/marks.csv."),
    ],
)
def test_what_cannot_be_done_is_said(
    small_course: Any, arguments: list[str], said: str, capsys: pytest.CaptureFixture
) -> None:
    assert main([*arguments, "--course", str(small_course.root)]) == 2
    assert said.format(root=small_course.root) in capsys.readouterr().err


@pytest.mark.parametrize(("command", "there"), [("export", True), ("export", False), ("report", False)])
def test_a_course_in_which_nothing_is_graded_is_named(
    command: str, there: bool, small_course: Any, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    if not there:
        (small_course.root / "gradebook.db").unlink()
    options = ["--to", str(tmp_path / "out"), "--course", str(small_course.root)]
    assert main([command, "words", *options]) == (1 if there else 2)
    said = capsys.readouterr().err
    assert f"graded in {small_course.root}" in said
    assert "--course" in said
    assert (small_course.root / "gradebook.db").exists() == there


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("c = get_config(\n", "nbgrader_config.py, line 1, cannot be used: SyntaxError"),
        ("c = get_config()\nc.Late.x = late", "nbgrader_config.py, line 2, cannot be used: NameError"),
        ("c = get_config()\nc.CourseDirectory.ignore = 3", "nbgrader_config.py cannot be used: TraitError"),
    ],
    ids=["syntax", "name", "type"],
)
def test_a_configuration_with_a_mistake_is_not_passed_over(
    small_course: Any, text: str, said: str, capsys: pytest.CaptureFixture
) -> None:
    (small_course.root / "nbgrader_config.py").write_text(text)
    assert main(["export", "words", "--course", str(small_course.root)]) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize("command", ["export", "report"])
def test_a_gradebook_that_is_none_is_said_to_be_one(
    small_course: Any, command: str, capsys: pytest.CaptureFixture
) -> None:
    (small_course.root / "gradebook.db").write_bytes(b"not a database" * 100)
    assert main([command, "words", "--course", str(small_course.root)]) == 2
    assert "The gradebook cannot be used: file is not a database." in capsys.readouterr().err


@pytest.mark.parametrize("command", ["export", "report"])
def test_a_gradebook_in_use_is_said_to_be_in_use(
    small_course: Any, command: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.grading.course.WAIT_FOR_LOCK", 0)
    with contextlib.closing(sqlite3.connect(small_course.root / "gradebook.db")) as connection:
        connection.execute("begin exclusive")
        assert main([command, "words", "--course", str(small_course.root)]) == 2
    said = capsys.readouterr().err
    assert "The gradebook cannot be used: database is locked. Another program is using it" in said
    assert "db_url" not in said


def written_on_a_full_disk(target: Path) -> None:
    with atomic_write(target) as draft:
        draft.write_text("half a")
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "marks.csv"
    target.write_text("of yesterday")
    with pytest.raises(OSError, match="No space") as raised:
        written_on_a_full_disk(target)
    assert in_words(raised.value) == f"No space left on device: {target}"
    with atomic_write(target) as draft:
        assert target.read_text() == "of yesterday"
        draft.write_text("of today")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("marks.csv", "of today")]
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "nowhere" / "marks.csv") as draft:
        draft.write_text("")
