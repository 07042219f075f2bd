"""After a correction an instructor reads whose marks moved, and before one, that a changed text was not built."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from autograder.cli import main
from autograder.grading import moves
from autograder.grading.course import open_course
from autograder.grading.submission.class_records import Move
from autograder.grading.text_ahead import text_ahead
from tests.autograder.grading.here import in_this_process
from tests.autograder.grading.test_notices import change_source, release

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore")]


def grade(course: Any, capsys: pytest.CaptureFixture, *more: str) -> str:
    with in_this_process():
        assert main(["grade", "words", "--course", str(course.root), *more]) == 0
    return capsys.readouterr().out


def test_whose_marks_a_corrected_test_moved_is_said_and_written(
    small_course: Any, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    small_course.submit("ann", small_course.answered(length="return min(len(word), 6)"))
    small_course.submit("bob", small_course.answered())
    small_course.submit("cem", small_course.answered(length="return 10 * bool(word)"))
    assert "moved" not in grade(small_course, capsys)
    change_source(small_course, "test_length", "assert length('hidden') == 6")
    release(small_course)
    small_course.submit("cem", small_course.answered())  # a new attempt moves nothing
    said = grade(small_course, capsys, "--json", str(tmp_path / "marks.json"))
    about = "words was graded again. 1 mark went up, 0 marks went down.\nWhat was graded differently: Words.\n"
    assert about + "ann: 3 -> 5 of 5 (Words: 0 -> 2)\n" in said
    target = small_course.root / "reports" / "words-moved.txt"
    assert f"All of this, for an announcement: {target}" in said.replace("\n", " ")
    assert target.read_text() == about + "\nann: 3 -> 5 of 5 (Words: 0 -> 2)\n"
    records = {record["student"]: record["move"] for record in json.loads((tmp_path / "marks.json").read_text())}
    assert [records[name] and records[name]["after"] for name in ("ann", "bob", "cem")] == [5, None, None]
    assert "moved" not in grade(small_course, capsys)
    assert main(["report", "words", "--course", str(small_course.root), "--to", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert '<td class="number">3</td><td class="number">5</td><td>Words: 0 -&gt; 2</td>' in page


def test_a_late_penalty_that_moves_a_mark_is_the_reason(small_course: Any, capsys: pytest.CaptureFixture) -> None:
    config = small_course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    path = small_course.submit("ann", small_course.answered())
    (path.parent / "timestamp.txt").write_text("2026-11-03 12:00 UTC")
    grade(small_course, capsys)
    with open_course(small_course.root) as course, course.gradebook() as gradebook:
        gradebook.update_or_create_assignment("words", duedate="2026-11-02 12:00 UTC")
    assert "ann: 5 -> 0 of 5 (late penalty: 0 -> 5)" in grade(small_course, capsys)


def test_a_line_that_broke_off_hides_no_other(tmp_path: Path) -> None:
    one = Move("ann", 1, 2, 5, (("test_a", 0, 1),), (0, 0), "first")
    moves.add(tmp_path / "moved", [one])
    with (tmp_path / "moved").open("a") as file:
        file.write('{"student": "bob", "bef\n')
    moves.add(tmp_path / "moved", [one])
    assert moves.read(tmp_path / "moved") == [one]


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Path:
    """A course with one built lesson. Returns its text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    assert main(["new", "strings", "--course", str(tmp_path)]) == 0
    assert main(["build", "--course", str(tmp_path)]) == 0, capsys.readouterr()
    (text,) = (tmp_path / "lessons").glob("*/*_strings.py")
    return text


def test_a_text_that_was_not_built_again_is_named(lesson: Path) -> None:
    with open_course(lesson.parents[2]) as course:
        assert text_ahead(course, lesson.stem) == []
        os.utime(lesson, (4e9, 4e9))
        assert text_ahead(course, lesson.stem) == [], "touched, but the same"
        lesson.write_text(lesson.read_text().replace("# %% [markdown]\n", "# %% [markdown]\n# Corrected.\n#\n", 1))
        os.utime(lesson, (4e9, 4e9))
        (said,) = text_ahead(course, lesson.stem)
        assert f"lessons/{lesson.stem}/{lesson.name} has changed since source/{lesson.stem} was built" in said
        assert f"Run `autograder build {lesson.stem}`" in said
        lesson.write_text("# %% [nonsense\n" + lesson.read_text())
        os.utime(lesson, (4e9, 4e9))
        assert len(text_ahead(course, lesson.stem)) == 1


def test_grade_says_first_that_a_text_was_not_built(
    small_course: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("autograder.grading.run.text_ahead", lambda course, name: [f"{name} is behind."])
    small_course.submit("ann", small_course.answered())
    with in_this_process():
        assert main(["grade", "words", "--course", str(small_course.root)]) == 1
    assert capsys.readouterr().out.startswith("words is behind.\n")
