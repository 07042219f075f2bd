"""What waits for a person never looks like lost points, wherever a mark is shown, and a lost point has its reason."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook

from autograder.cli import main
from autograder.grading.course import generate_assignment, open_course
from autograder.grading.journal import NAME
from autograder.grading.run import Request
from autograder.grading.watching.watch import Events, watched
from autograder.grading.workers.spool import Spool
from tests.autograder.conftest import ASSIGNMENT, SmallCourse, nbgrader_cell, try_solution_of
from tests.autograder.grading.here import grade, in_this_process

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore")]

RIGHT, WRONG = "return min(heap)", "return heap[0]"
SOLUTION = f"def smallest(heap):\n    ### BEGIN SOLUTION\n    {RIGHT}\n    ### END SOLUTION"
TEST = """points = 0
for heap in ([7, 3], [5, 9], [8, 1]):
    if smallest(heap) == min(heap):
        points += 1
    else:
        print(f"{smallest(heap)} is not the smallest of <{heap}>")
points"""
REASON = "The test printed: 7 is not the smallest of <[7, 3]>; 8 is not the smallest of <[8, 1]>"
WAITS = "waiting for a person: "


def for_a_person(name: str, text: str, points: float, task: bool = False) -> NotebookNode:
    about = {"grade_id": name, "grade": not task, "solution": not task, "task": task, "locked": task}
    return new_markdown_cell(text, metadata={"nbgrader": {"schema_version": 3, "points": points, **about}})


def answered(course: SmallCourse, body: str, essay: str) -> bytes:
    notebook = nbformat.read(course.root / "release" / ASSIGNMENT / "heaps.ipynb", as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name == "smallest":
            cell.source = f"def smallest(heap):\n    {body}"
        if name == "essay":
            cell.source = essay or cell.source
    return nbformat.writes(notebook).encode()


def change(course: SmallCourse, statement: str, *values: Any) -> None:
    with sqlite3.connect(course.root / "gradebook.db") as connection:
        connection.execute(statement, values)


def give(course: SmallCourse, student: str, cell: str, points: float) -> None:
    """Enter a mark as Formgrader does."""
    of = "select g.id from grade g join submitted_notebook n on g.notebook_id = n.id join submitted_assignment s "
    of += "on s.id = n.assignment_id join base_cell b on b.id = g.cell_id where s.student_id = ? and b.name = ?"
    change(
        course,
        f"update grade set manual_score = ?, needs_manual_grade = 0 where id in ({of})",
        *(points, student, cell),
    )


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> SmallCourse:
    """A course with a test that counts points, an essay and a task; graded, and partly marked by a person."""
    course = SmallCourse(tmp_path_factory.mktemp("waiting") / "course")
    source = course.root / "source" / ASSIGNMENT
    source.mkdir(parents=True)
    (course.root / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'small'\n")
    cells = [
        new_markdown_cell("# Heaps"),
        new_markdown_cell("### Exercise 1: the smallest"),
        nbgrader_cell("smallest", SOLUTION),
        nbgrader_cell("test_smallest", TEST, points=3),
        new_markdown_cell("### Exercise 2: why"),
        for_a_person("essay", "Say why.", 2),
        new_markdown_cell("### Exercise 3: a drawing"),
        for_a_person("drawing", "Draw a heap.", 1, task=True),
    ]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=metadata), source / "heaps.ipynb")
    with open_course(course.root) as opened:
        generate_assignment(opened, ASSIGNMENT)
        try_solution_of(opened)
    for student, body, essay in (
        ("ann", RIGHT, "It is on top."),
        ("bob", WRONG, "It is on top."),
        ("cem", RIGHT, "It is on top."),
        ("dan", WRONG, ""),
        ("eve", WRONG, "# My heading\nIt is on top."),
    ):
        course.submit(student, answered(course, body, essay), "heaps.ipynb")
    command = ["grade", ASSIGNMENT, "--feedback", "--course", str(course.root)]
    with in_this_process():
        assert main(command) == 0
    for student, cell, points in (("cem", "essay", 1.5), ("cem", "drawing", 1), ("dan", "drawing", 1)):
        give(course, student, cell, points)
    give(course, "eve", "essay", 2)
    with in_this_process():
        assert main(command) == 0
    return course


def test_the_table_and_the_json_say_what_is_open(
    marked: SmallCourse, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.grading.report.progress_display.WIDTH_OF_FILES", 300)
    with in_this_process():
        assert main(["grade", ASSIGNMENT, "--course", str(marked.root), "--json", str(tmp_path / "marks.json")]) == 0
    said = capsys.readouterr().out
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    assert [(student, points, finding) for student, points, _, finding in rows] == [
        ("ann", "3 / 6, 3 open", f"{WAITS}essay, drawing"),
        ("bob", "1 / 6, 3 open", f"{REASON} ({WAITS}essay, drawing)"),
        ("cem", "5.5 / 6", ""),
        ("dan", "2 / 6", REASON),
        ("eve", "3 / 6, 1 open", f"{REASON} ({WAITS}drawing)"),
    ]
    assert "mean 3.8 of 6, over 2 of 5\nwaiting for a person: 3 (ann, bob, eve)\n" in said
    assert "5 of them unchanged since they were graded\n" in said
    assert said.count(REASON) == 3, "a finding is said twice"
    records = {record["student"]: record for record in json.loads((tmp_path / "marks.json").read_text())}
    assert {name: (it["points"], it["open_points"]) for name, it in records.items()} == {
        "ann": (3, 3),
        "bob": (1, 3),
        "cem": (5.5, 0),
        "dan": (2, 0),
        "eve": (3, 1),
    }
    assert [(cell["points"], cell["by_hand"]) for cell in records["eve"]["cells"]] == [
        (1, False),
        (2, False),
        (None, True),
    ]


def rows_of(page: str, table: str = "") -> list[str]:
    """The rows of the first table after a text, as text."""
    found = page[page.index(table) :]
    found = found[: found.index("</table>")]
    rows = re.findall(r"<tr>.*?</tr>", found, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]


def test_feedback_says_what_is_open_and_calls_nothing_lost_that_is_not(marked: SmallCourse) -> None:
    pages = {
        name: (marked.root / "feedback" / name / ASSIGNMENT / "heaps.html").read_text()
        for name in ("ann", "bob", "cem", "dan", "eve")
    }
    waits = [
        "2 open Waiting for a person, 2 points open. See your answer",
        "1 open Waiting for a person, 1 point open.",
    ]
    reason = REASON.replace("<", "&lt;").replace(">", "&gt;")
    rows = rows_of(pages["ann"])
    assert rows[0] == "Exercise Points What cost points, and what is open"
    assert [rows[1], rows[2], rows[3]] == [
        "Exercise 1: the smallest 3 of 3",
        f"Exercise 2: why {waits[0]}",
        f"Exercise 3: a drawing {waits[1]} See your answer",
    ]
    assert "3 of 6 points so far" in pages["ann"]
    assert "3 points are open: they wait for a person." in pages["ann"]
    assert 'class="points lost"' not in pages["ann"]
    assert pages["ann"].count("waiting for a person, 2 points open</span>") == 1
    assert rows_of(pages["bob"])[1] == f"Exercise 1: the smallest 1 of 3 {reason} See your answer"
    assert pages["bob"].count('class="points lost"') == 1
    assert rows_of(pages["cem"])[0] == "Exercise Points What cost points"
    assert "5.5 of 6 points</p>" in pages["cem"]
    assert "open" not in "".join(rows_of(pages["cem"]) + rows_of(pages["dan"]))
    assert rows_of(pages["dan"])[2] == "Exercise 2: why 0 of 2 Comment: No response. See the comment"
    assert rows_of(pages["eve"])[2:] == ["Exercise 2: why 2 of 2", f"Exercise 3: a drawing {waits[1]} See your answer"]


def test_the_report_counts_only_final_marks(marked: SmallCourse, capsys: pytest.CaptureFixture) -> None:
    assert main(["report", ASSIGNMENT, "--course", str(marked.root)]) == 0
    page = Path(capsys.readouterr().out.strip()).read_text()
    facts = [" ".join(re.sub(r"<[^>]+>", " ", fact).split()) for fact in re.findall(r'"fact[^"]*">(.*?)</div>', page)]
    assert facts == ["5 submissions", "3.8 mean of 6, over 2 of 5", "3.8 median", "0 with full marks"]
    people = re.findall(r"<li><b>(.*?)</b>(.*?)</li>", page)
    assert [re.sub(r"<[^>]+>", "", "".join(one)) for one in people] == [
        "waiting for a person: 3 ann, bob, eve",
        "first point lost most often at Exercise 1: the smallest test_smallest: 3",
    ]
    assert [row for row in rows_of(page, "Submissions that need a look") if row.startswith(("ann", "eve", "cem"))] == [
        "ann graded waiting for a person: essay, drawing 3 / 6, 3 open",
        "eve graded waiting for a person: drawing 3 / 6, 1 open",
    ]
    assert sum(int(count) for count in re.findall(r'<div class="bar"[^>]*><b>(\d+)</b>', page)) == 2
    exercises = rows_of(page, "<h2>Exercises</h2>")
    assert exercises[1] == "Exercise 1: the smallest test_smallest 3 40 % 60 %"
    assert exercises[2:] == ["Exercise 2: why essay 2 33 % 58 %", "Exercise 3: a drawing drawing 1 100 % 100 %"]
    assert REASON.replace("<", "&lt;").replace(">", "&gt;") in page


def test_an_exercise_that_nobody_has_marked_has_no_mean(marked: SmallCourse, tmp_path: Path) -> None:
    course = marked.copy(tmp_path / "course")
    change(course, "update grade set manual_score = null, needs_manual_grade = 1 where auto_score is null")
    assert main(["report", ASSIGNMENT, "--course", str(course.root), "--to", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert rows_of(page, "<h2>Exercises</h2>")[3] == "Exercise 3: a drawing drawing 1 - -"
    assert "<b>-</b>mean of 6, over 0 of 5" in page


@pytest.mark.parametrize("platform", ["canvas", "moodle", "nbgrader"])
def test_an_export_has_no_mark_that_is_not_final(
    platform: str, marked: SmallCourse, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    target = tmp_path / "marks.csv"
    assert main(["export", "--for", platform, "--course", str(marked.root), "--to", str(target)]) == 1
    assert (
        "words: waiting for a person, so these marks are left out: 3 submissions (ann, bob, eve). Grade them in "
        "Formgrader, and export again." in capsys.readouterr().err
    )
    with target.open(newline="") as file:
        rows = list(csv.reader(file))
    student, mark = {"canvas": (3, 5), "moodle": (0, 5), "nbgrader": (3, 9)}[platform]
    marks = {row[student]: row[mark] for row in rows if row[student] in ("ann", "bob", "cem", "dan", "eve")}
    assert {name: float(text) for name, text in marks.items() if text} == {"cem": 5.5, "dan": 2}
    assert set(marks) == ({"ann", "bob", "cem", "dan", "eve"} if platform == "nbgrader" else {"cem", "dan"})


def test_moodles_worksheet_stays_as_it_is_where_a_mark_is_not_final(
    marked: SmallCourse, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    head = "Identifier,Full name,Email address,Grade,Maximum Grade,Feedback comments\n"
    people = [f"Participant {n},{name},{name},2,6,earlier\n" for n, name in enumerate(("ann", "cem", "dan"))]
    (tmp_path / "sheet.csv").write_text(head + "".join(people))
    options = ["--moodle-worksheet", str(tmp_path / "sheet.csv"), "--to", str(tmp_path / "marks.csv")]
    assert main(["export", ASSIGNMENT, "--for", "moodle", *options, "--course", str(marked.root)]) == 1
    assert "waiting for a person" in capsys.readouterr().err
    with (tmp_path / "marks.csv").open(newline="") as file:
        ann, cem, dan = csv.DictReader(file)
    assert (ann["Grade"], ann["Feedback comments"]) == ("2", "earlier")
    assert (cem["Grade"], cem["Feedback comments"]) == ("5.5", "5.5 of 6 points. Exercise 2: why: 1.5 of 2.")
    reason = REASON.replace("<", "&lt;").replace(">", "&gt;")
    assert (
        dan["Feedback comments"]
        == f"2 of 6 points. Exercise 1: the smallest: 1 of 3. {reason}. Exercise 2: why: 0 of 2."
    )


def test_a_line_of_watch_and_its_journal_say_what_is_open(marked: SmallCourse, tmp_path: Path) -> None:
    course = marked.copy(tmp_path / "course")
    records = []
    events = Events(lambda record, released: records.append(record), lambda notice: None)
    with in_this_process(), watched(Request(ASSIGNMENT, course.root, "ann"), None, events) as watch:
        watch.look()
    assert [record.open_points for record in records] == [3]
    journal = (Spool.of(course.root, ASSIGNMENT).root / NAME).read_text().splitlines()
    assert json.loads(journal[-1])["open_points"] == 3
    assert main(["report", ASSIGNMENT, "--course", str(course.root), "--to", str(tmp_path / "page.html")]) == 0
    assert "<td>3 (3 open)</td>" in (tmp_path / "page.html").read_text()


def test_marks_of_a_submission_that_nobody_has_graded_are_none(marked: SmallCourse, tmp_path: Path) -> None:
    """nbgrader makes rows of a gradebook for a student who has an extension and has handed in nothing."""
    course = marked.copy(tmp_path / "course")
    change(course, "update grade set auto_score = null, manual_score = null, needs_manual_grade = 0")
    target = tmp_path / "marks.csv"
    main(["export", "--for", "moodle", "--course", str(course.root), "--to", str(target)])
    with target.open(newline="") as file:
        assert [row[-1] for row in csv.reader(file)] == ["Email address"], "neither a column nor a row"


def test_an_answer_whose_cell_is_gone_is_waited_for_with_a_reason(marked: SmallCourse, tmp_path: Path) -> None:
    course = marked.copy(tmp_path / "course")
    notebook = nbformat.reads(answered(course, RIGHT, "It is on top."), as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("nbgrader", None)
    course.submit("ann", nbformat.writes(notebook).encode(), "heaps.ipynb")
    gone = "its cell was not in the notebook, so look for the answer in another cell"
    assert grade(course, "ann").by_hand == f"{WAITS}essay ({gone}), drawing ({gone})"
