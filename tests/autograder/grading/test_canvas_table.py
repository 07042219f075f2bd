"""Uploading what is filled in changes marks in Canvas and nothing else, and what it changes is said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.grading.errors import CourseError
from autograder.grading.gradebook.canvas_table import CanvasTable
from autograder.grading.gradebook.exporters import CanvasExportPlugin, MoodleExportPlugin
from autograder.grading.gradebook.tables import Change, Entries

HEAD = "Student,ID,SIS User ID,SIS Login ID,Section"


def student(name: str, number: str | None = None, email: str | None = None) -> Any:
    return SimpleNamespace(id=name, lms_user_id=number, email=email, first_name=None, last_name=None)


def filled(
    path: Path, text: str, marks: dict[str, dict[str, float]], *students: Any, maximum: float = 5
) -> tuple[list[list[str]], Entries, list[str]]:
    """The rows of a gradebook with these marks, what that changes, and the remarks."""
    path.write_text(text)
    table, entries = CanvasTable(path, dict.fromkeys(marks, maximum)), Entries()
    names = {name for own in marks.values() for name in own}
    rows = list(table.filled(students or [student(name) for name in sorted(names)], marks, entries))
    return rows, entries, table.remarks


@pytest.mark.parametrize(
    ("before", "mark", "after"),
    [
        ("", 4.0, "4"),
        ("-", 4.0, "4"),
        ("3.00", 4.0, "4"),
        ("0.00", 4.0, "4"),
        ("4.00", 4.0, "4.00"),
        ('"4,00"', 4.0, "4,00"),
        ("3.33", 10 / 3, "3.33"),  # as Canvas rounds it
        ("3.33", 3.34, "3.34"),
        ("0.00", 0.0, "0.00"),
        ("-1.00", 0.0, "0"),
        ("EX", 4.0, "EX"),
        (" ex ", 4.0, " ex "),
        ("N/A", 4.0, "N/A"),
        ("complete", 4.0, "complete"),
        ("80%", 4.0, "80%"),
        ("nan", 4.0, "nan"),
        ("EX", None, "EX"),
        ("3.00", None, "3.00"),
        ("", None, ""),
    ],
)
def test_an_entry_gets_a_mark_only_where_there_is_a_number_or_nothing(
    before: str, mark: float | None, after: str, tmp_path: Path
) -> None:
    text = f"{HEAD},ps1 (7)\nPoints Possible,,,,,5.00\nA,1,,ann,,{before}\nZ,2,,zoe,,2.00\n"
    marks = {"ps1": {name: value for name, value in (("ann", mark), ("zoe", 1.0)) if value is not None}}
    rows, entries, remarks = filled(tmp_path / "gradebook.csv", text, marks, student("ann"), student("zoe"))
    assert [row[-1] for row in rows] == ["ps1 (7)", "5.00", after, "1"]
    changed = [change for change in entries.changes if change.student == "ann"]
    assert changed == ([Change("ann", "ps1 (7)", before, after)] if before.strip('"') != after else [])
    words = ("EX", " ex ", "N/A", "complete", "80%", "nan")
    assert entries.kept == ([Change("ann", "ps1 (7)", before.strip(), "4")] if before in words and mark else [])
    assert remarks == []


@pytest.mark.parametrize(
    ("titles", "column", "said"),
    [
        ("ps1 (7)", "ps1 (7)", []),
        ("ps1", "ps1", []),
        ("PS1 (7)", "PS1 (7)", ["ps1: taken to be Canvas's column 'PS1 (7)'."]),
        ("PS1 (7),ps1 (8)", "ps1 (8)", []),
        (
            "ps10 (7),ps1 (bonus) (9)",
            "ps1",
            ["ps1: Canvas has no column of this name, so it will make a new assignment."],
        ),
        ("Final Score", "ps1", ["ps1: Canvas has no column of this name, so it will make a new assignment."]),
    ],
)
def test_the_column_of_a_lesson_is_found_by_its_name(titles: str, column: str, said: list[str], tmp_path: Path) -> None:
    possible = ",5" * len(titles.split(","))
    text = f"{HEAD},{titles}\nPoints Possible,,,,{possible}\nA,1,,ann,{',1' * len(titles.split(','))}\n"
    rows, _, remarks = filled(tmp_path / "gradebook.csv", text, {"ps1": {"ann": 4}})
    assert [row[5:] for row in rows] == [[column], ["5"], ["4"]]
    assert remarks == said


@pytest.mark.parametrize(
    ("titles", "lessons", "said"),
    [
        ("ps1 (7),ps1 (8)", ["ps1"], "has several columns for ps1: 'ps1 (7)', 'ps1 (8)'. Delete all but one"),
        ("ps1 (7),ps1 (7)", ["ps1"], "has several columns for ps1: 'ps1 (7)', 'ps1 (7)'. Delete all but one"),
        ("PS1 (7),Ps1 (8)", ["ps1"], "has several columns for ps1: 'PS1 (7)', 'Ps1 (8)'. Delete all but one"),
        ("Ps1 (7)", ["ps1", "PS1"], "column 'Ps1 (7)' would get the marks of ps1 and PS1. Name one of these lessons"),
    ],
)
def test_a_column_that_is_not_certain_is_refused(titles: str, lessons: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(CourseError) as raised:
        filled(tmp_path / "gradebook.csv", f"{HEAD},{titles}\n", {name: {"ann": 4} for name in lessons})
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("possible", "mark", "said"),
    [
        ("10.00", "8", "ps1: marks are scaled from the lesson's 5 points to the 10 points possible in Canvas."),
        (
            '"1.000,00"',
            "800",
            "ps1: marks are scaled from the lesson's 5 points to the 1000 points possible in Canvas.",
        ),
        ("0.00", "4", "ps1: Canvas has no points possible for 'ps1 (7)', so marks are not scaled: they are out of 5."),
        ("", "4", "ps1: Canvas has no points possible for 'ps1 (7)', so marks are not scaled: they are out of 5."),
        ("5.00", "4", ""),
    ],
)
def test_points_possible_stay_as_they_are(possible: str, mark: str, said: str, tmp_path: Path) -> None:
    text = f"{HEAD},ps1 (7)\n,,,,,Manual Posting\n    Points Possible,,,,,{possible}\nA,1,,ann,,\n"
    rows, _, remarks = filled(tmp_path / "gradebook.csv", text, {"ps1": {"ann": 4}})
    assert [row[-1] for row in rows] == ["ps1 (7)", "Manual Posting", possible.strip('"'), mark]
    assert remarks == [said] * bool(said)


ANN, BOB = student("ann", "101", "a@uni"), student("101", "102")
PEOPLE = [
    # the rows' columns ID, SIS User ID, SIS Login ID, and whose they are
    ("by login", ["1,,ann", "2,,101"], ["ann", "101"]),
    ("by SIS id", ["1,ann,x", "2,101,y"], ["ann", "101"]),
    ("by e-mail", ["1,,a@uni", "2,,101"], ["ann", "101"]),
    ("by number, which looks like another student's name", ["101,,", "102,,"], ["ann", "101"]),
    ("a login says more than a number that looks like a name", ["7,,ann", "9,101,"], ["ann", "101"]),
    ("two columns that disagree", ["7,ann,101", "8,,zoe"], ["", ""]),
    ("two rows of one student", ["7,,ann", "8,,ann"], ["", ""]),
    ("nobody's", ["7,,yan", "8,,"], ["", ""]),
]


@pytest.mark.parametrize(("rows", "owners"), [row[1:] for row in PEOPLE], ids=[row[0] for row in PEOPLE])
def test_a_row_that_is_not_certainly_a_student_s_stays_as_it_is(
    rows: list[str], owners: list[str], tmp_path: Path
) -> None:
    text = f"{HEAD},ps1 (7)\nPoints Possible,,,,,5\n" + "".join(f"N,{row},,3\n" for row in rows)
    marks = {"ann": 4.0, "101": 5.0}
    table, entries, _ = filled(tmp_path / "gradebook.csv", text, {"ps1": marks}, ANN, BOB)
    assert [row[-1] for row in table[2:]] == [f"{marks[name]:g}" if name else "3" for name in owners]
    assert entries.without_row == {"ann", "101"} - set(owners)
    assert [change.student for change in entries.changes] == [name for name in owners if name]


def test_a_new_column_has_the_lesson_s_points_and_leaves_nobody_else_a_mark(tmp_path: Path) -> None:
    text = f"{HEAD},other (1)\nPoints Possible,,,,,9\nA,1,,ann,,8\nB,2,,bob,,7\n"
    rows, entries, _ = filled(tmp_path / "gradebook.csv", text, {"ps1": {"ann": 4}}, student("ann"), student("bob"))
    assert [row[5:] for row in rows] == [["ps1"], ["5"], ["4"], [""]]
    assert entries.changes == [Change("ann", "ps1", "", "4")]


@pytest.mark.parametrize("exporter", [CanvasExportPlugin, MoodleExportPlugin])
def test_a_table_without_the_platform_s_own_has_no_row_without_a_mark(exporter: type) -> None:
    plugin, people = exporter(), [student("ann"), student("bob"), student("zoe")]
    rows = list(plugin.rows(people, {"ps1": {"ann": 4.0, "bob": 3.0}}, {"ps1": 5.0}))
    assert [row[-1] for row in rows if row[-1] not in ("ps1", "5")] == ["4", "3"]
    assert not any("empty entries" in remark for remark in plugin.remarks)
    rows = list(plugin.rows(people, {"ps1": {"ann": 4.0}, "ps2": {"bob": 3.0}}, {"ps1": 5.0, "ps2": 5.0}))
    assert [row[-2:] for row in rows if row[-1] not in ("ps2", "5")] == [["4", ""], ["", "3"]]
    (said,) = (remark for remark in plugin.remarks if "empty entries" in remark)
    assert said.startswith(f"2 empty entries, of students who have other marks: {plugin.platform} would remove what")
