"""The pretend class: how its notebooks are made, what counts as a fault in its results, and the whole loop once."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.cli import main
from autograder.course_folder import COURSE
from autograder.grading.commands.class_run import loaded
from autograder.grading.pretend_class.pretend_course import changed, disagreements, files_of
from autograder.grading.pretend_class.students import Edit, Pretender, faults, notebook_of
from autograder.grading.submission.class_records import SubmissionRecord
from autograder.notebooks.verdicts import CellVerdict, verdict


def record(*points: float, bugs: tuple[str, ...] = (), status: Any = "graded") -> SubmissionRecord:
    cells = tuple(
        CellVerdict(f"test_{n}", value, 2, "", bugs=bugs if value < 2 else ()) for n, value in enumerate(points)
    )
    return SubmissionRecord("ann", "lesson", status, sum(points), 2.0 * len(points), cells=cells)


@pytest.mark.parametrize(
    ("pretender", "result", "said"),
    [
        (Pretender("ann", "right"), record(2, 2), ""),
        (Pretender("ann", "right"), record(2, 1), "lost marks on test_1"),
        (Pretender("ann", "bug", touches=("test_1",)), record(2, 2), "lost no marks on test_1"),
        (Pretender("ann", "bug", touches=("test_1",)), record(0, 0), "lost marks on test_0"),
        (
            Pretender("ann", "bug", touches=("test_1",), bug="operands_swapped"),
            record(2, 1, bugs=("operands_swapped",)),
            "",
        ),
        (
            Pretender("ann", "bug", touches=("test_1",), bug="sign_lost"),
            record(2, 1, bugs=("operands_swapped",)),
            "named operands_swapped",
        ),
        (Pretender("ann", "bug", touches=("test_1",), bug="sign_lost"), record(2, 1), "named no bug"),
        (Pretender("ann", "attack", solved=False), record(0, 0), ""),
        (Pretender("ann", "attack", solved=False), record(0, 2), "got 2 points for nothing"),
        (Pretender("ann", "right"), record(status="died"), "status died"),
    ],
)
def test_a_result_that_is_not_as_it_must_be_is_a_fault(
    pretender: Pretender, result: SubmissionRecord, said: str
) -> None:
    found = "; ".join(faults(pretender, result))
    assert said in found
    assert bool(said) == bool(found)


NOTES: list[tuple[Any, tuple[str, ...]]] = [
    ({"message": "", "points": 2.0, "bugs": []}, ()),
    ({"bugs": ["operands_swapped", "sign_lost"]}, ("operands_swapped", "sign_lost")),
    ({"message": "Likely: something", "points": 0.0}, ()),
    ({"bugs": "operands_swapped"}, ()),
    ({"bugs": ["sign_lost", 3]}, ("sign_lost",)),
]


@pytest.mark.parametrize(("note", "names"), NOTES)
def test_bugs_are_read_from_the_data_of_a_note(note: Any, names: tuple[str, ...]) -> None:
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", metadata={"autograder": note})])
    assert verdict(cell).bugs == names


def test_an_edit_that_fits_nowhere_is_noticed(small_course: Any) -> None:
    source = nbformat.read(small_course.root / "source" / "words" / "strings.ipynb", as_version=4)
    for edit, said in (
        (Edit("length", "return size", "x"), "0 times"),
        (Edit("nowhere", "", "x"), "no solution cell 'nowhere'"),
    ):
        with pytest.raises(ValueError, match=said):
            notebook_of(Pretender("ann", "bug", edits=(edit,)), small_course.released(), source, {}, small_course.root)


def test_a_notebook_is_the_released_one_with_answers(small_course: Any) -> None:
    source = nbformat.read(small_course.root / "source" / "words" / "strings.ipynb", as_version=4)
    edit = Edit("length", "len(word)", "len(word) + 1")
    notebook = notebook_of(Pretender("ann", "bug", edits=(edit,)), small_course.released(), source, {}, Path())
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "return len(word) + 1" in text
    assert "return word.upper()" in text
    assert "SOLUTION" not in text
    assert "HIDDEN" not in text


def test_a_change_on_disk_or_in_the_gradebook_is_seen(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.ipynb").write_text("a")
    (tmp_path / "gradebook.db").write_text("grading writes here")
    before = files_of(tmp_path)
    (tmp_path / "source" / "a.ipynb").write_text("b")
    (tmp_path / "grades.csv").write_text("mine")
    assert changed(before, files_of(tmp_path)) == ["grades.csv", "source/a.ipynb"]
    assert disagreements([record(2, 1)], {"ann": 3}) == []
    assert len(disagreements([record(2, 1)], {"ann": 4})) == 1


@pytest.mark.sandbox
def test_the_whole_loop_ends_as_it_must(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    status = main(["class", "--build", str(tmp_path / "class"), "--workers", "2"])
    printed = capfd.readouterr().out
    assert status == 0, printed
    members = loaded(COURSE / "pretend_class.py")
    with (tmp_path / "class" / "course" / "grades.csv").open() as file:
        exported = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert exported.keys() == {member.student for member in members.CLASS}
    for student in exported:
        page = tmp_path / "class" / "course" / "feedback" / student / members.LESSON / f"{members.LESSON}.html"
        assert "HIDDEN TESTS" not in page.read_text()
