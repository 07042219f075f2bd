"""`autograder grade` as an instructor sees it: results, the JSON file, and one clear sentence for what cannot be
done.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
import pytest

from autograder.cli import main
from autograder.sandbox.process.isolation import Isolation
from tests.autograder.grading.here import in_this_process

pytestmark = pytest.mark.sandbox


def test_a_class_is_graded_and_written_as_json(small_course: Any, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", b"no notebook")
    small_course.submit("cem", small_course.answered(shout="return word"))
    small_course.submit("eve", small_course.answered(length="import os; os._exit(1)"))
    result = tmp_path / "marks.json"
    status = main(["grade", "words", "--course", str(small_course.root), "--json", str(result)])
    printed = capfd.readouterr().out
    records = {record["student"]: record for record in json.loads(result.read_text())}
    assert status == 0
    assert {name: (record["status"], record["points"]) for name, record in records.items()} == {
        "ann": ("graded", 5),
        "bob": ("unreadable", 0),
        "cem": ("graded", 2),
        "eve": ("graded", 3),
    }
    assert records["cem"]["max_points"] == 5
    assert records["cem"]["seconds"] > 0
    assert records["cem"]["cells"][0] | {"message": ""} == {
        "grade_id": "test_length",
        "points": 2,
        "max_points": 2,
        "message": "",
        "notebook": "strings",
        "bugs": [],
        "inside": False,
        "by_hand": False,
    }
    assert all(name in printed for name in records)


def test_a_pattern_selects_students(small_course: Any, tmp_path: Path) -> None:
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered())
    result = tmp_path / "marks.json"
    main(["grade", "words", "--course", str(small_course.root), "--student", "b*", "--json", str(result)])
    assert [record["student"] for record in json.loads(result.read_text())] == ["bob"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["words", "--course", "nowhere"], "no course directory nowhere"),
        (["words", "--course", "empty"], "not an nbgrader course"),
        (["wrods", "--course", "course"], "has no assignment 'wrods'. It has: words."),
        (["words", "--course", "course"], "no submissions of 'words'"),
        (["words", "--course", "course", "--student", "z*"], "nothing matches"),
        (["words", "--course", "course", "--workers", "0"], "at least 1"),
        (["words", "--course", "course", "--json", "nowhere/marks.json"], "no folder nowhere"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    small_course: Any, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(small_course.root.parent)
    Path("empty").mkdir()
    assert main(["grade", *arguments]) == 2
    printed = capfd.readouterr()
    assert said in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert not list(Path("empty").iterdir())


def test_without_submissions_nothing_is_released(small_course: Any) -> None:
    gradebook, release = small_course.root / "gradebook.db", small_course.root / "release"
    gradebook.unlink()
    shutil.rmtree(release)
    assert main(["grade", "words", "--course", str(small_course.root)]) == 2
    assert not gradebook.exists()
    assert not release.exists()


def test_without_a_sandbox_it_refuses(
    small_course: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    small_course.submit("ann", small_course.answered())
    missing = Isolation(False, "bubblewrap may not mount /proc.")
    monkeypatch.setattr("autograder.grading.run.isolation_available", lambda: missing)
    assert main(["grade", "words", "--course", str(small_course.root)]) == 2
    said = capfd.readouterr().err
    assert "bubblewrap may not mount /proc. Or pass --unsafe-no-sandbox" in said
    assert not (small_course.root / "autograded").exists()


def test_a_temporary_folder_with_too_long_a_path_is_named(small_course: Any, tmp_path: Path) -> None:
    small_course.submit("ann", small_course.answered())
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    command = [sys.executable, "-m", "autograder.cli", "grade", "words", "--course", str(small_course.root)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = f"The path for temporary files is too long: {folder}. Set TMPDIR to a short one (/tmp)."
    assert (done.returncode, done.stderr) == (2, f"autograder grade: {said}\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_class_is_graded_whatever_stream_the_shell_has_closed(small_course: Any, tmp_path: Path, closed: str) -> None:
    small_course.submit("ann", small_course.answered())
    result = tmp_path / "results.json"
    command = [sys.executable, "-m", "autograder.cli", "grade", "words", "--course", str(small_course.root)]
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *command, "--json", str(result)]
    assert subprocess.run(shell, timeout=300, check=False).returncode == 0
    assert [record["points"] for record in json.loads(result.read_text())] == [5]


def test_after_ctrl_c_it_says_how_to_go_on(
    small_course: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr("autograder.grading.run.open_course", mock.Mock(side_effect=KeyboardInterrupt))
    assert main(["grade", "words", "--course", str(small_course.root)]) == 130
    said = capfd.readouterr().err
    assert said == "autograder grade: stopped. What was graded is kept; run the same command again to continue.\n"


def test_a_folder_whose_name_is_no_text_is_left_out_and_named(small_course: Any, capfd: pytest.CaptureFixture) -> None:
    path = small_course.submit("ann", small_course.answered())
    other = os.fsencode(small_course.root / "submitted") + b"/J\xfcrgen"  # as unpacked from another system's archive
    try:
        shutil.copytree(os.fsencode(path.parents[1]), other)
    except OSError:
        pytest.skip("this file system has only names that are texts")
    with in_this_process():
        assert main(["grade", "words", "--course", str(small_course.root)]) == 1
    printed = capfd.readouterr().out
    assert "│ ann     │  5 / 5 │" in printed
    assert r"words: the folder b'J\xfcrgen' is left out, because its name is not UTF-8." in printed


def test_a_folder_that_begins_with_a_dot_is_left_out_and_named(small_course: Any, capfd: pytest.CaptureFixture) -> None:
    small_course.submit("ann", small_course.answered())
    small_course.submit(".bob", small_course.answered())
    small_course.submit(".ipynb_checkpoints", small_course.answered())
    with in_this_process():
        assert main(["grade", "words", "--course", str(small_course.root)]) == 1
    printed = capfd.readouterr().out
    assert "words: the folder .bob is left out, because its name begins with a dot." in printed
    assert "checkpoints" not in printed


def put(course: Any, path: str) -> None:
    """Put a notebook at this path of `submitted/`."""
    (course.root / "submitted" / path).parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(course.answered(), course.root / "submitted" / path)


def test_a_notebook_that_lies_where_nobody_looks_is_named(small_course: Any, capfd: pytest.CaptureFixture) -> None:
    small_course.submit("ann", small_course.answered())
    (small_course.root / "source" / "other").mkdir()
    for path in ("ann/other/strings.ipynb", "ann/notes.ipynb", "words/strings.ipynb", "ann/strings.ipynb"):
        put(small_course, path)
    for path in ("gina/strings.ipynb", "hal/wrods/strings.ipynb", "ivy.ipynb"):
        put(small_course, path)
    with in_this_process():
        assert main(["grade", "words", "--course", str(small_course.root)]) == 1
    said = [line for line in capfd.readouterr().out.splitlines() if "not graded" in line]
    move = ". Move it there to have it graded."
    assert said == [
        "words: not graded: submitted/ann/strings.ipynb, because the one in submitted/ann/words/ is graded. If "
        "this is the right one, move it there; otherwise delete it.",
        f"words: not graded: submitted/gina/strings.ipynb belongs in submitted/gina/words/{move}",
        f"words: not graded: submitted/hal/wrods/strings.ipynb belongs in submitted/hal/words/{move}",
        f"words: not graded: submitted/ivy.ipynb belongs in submitted/STUDENT/words/{move}",
    ]


def test_where_all_notebooks_lie_elsewhere_the_refusal_says_so(small_course: Any, capfd: pytest.CaptureFixture) -> None:
    put(small_course, "gina/strings.ipynb")
    with in_this_process():
        assert main(["grade", "words", "--course", str(small_course.root)]) == 2
    assert "submitted/gina/strings.ipynb belongs in submitted/gina/words/" in capfd.readouterr().err


def test_a_name_cannot_steer_the_terminal(small_course: Any, capfd: pytest.CaptureFixture) -> None:
    small_course.submit("an\x1bcn\x07", small_course.answered())
    with in_this_process():
        main(["grade", "words", "--course", str(small_course.root)])
    said = "".join(capfd.readouterr())
    assert "│ an?cn?  │  5 / 5 │" in said
    assert "\x1bc" not in said


@pytest.mark.parametrize("letter", "[*?")
def test_a_course_in_whose_path_nbgrader_sees_a_pattern_is_not_opened(
    small_course: Any, capfd: pytest.CaptureFixture, letter: str
) -> None:
    small_course.submit("ann", small_course.answered())
    course = small_course.root.rename(small_course.root.with_name(f"my {letter}course] 1"))
    for command in (["grade", "words"], ["watch"], ["report", "words"], ["doctor", "words"]):
        assert main([*command, "--course", str(course)]) == 2
        said = (
            f"nbgrader reads {letter} in the path of a course as a pattern, and so finds no submissions in {course}: "
        )
        assert f"{said}rename the folder." in capfd.readouterr().err


def test_a_gradebook_without_content_is_no_new_one(small_course: Any, capfd: pytest.CaptureFixture) -> None:
    small_course.submit("ann", small_course.answered())
    gradebook = small_course.root / "gradebook.db"
    gradebook.write_bytes(b"")
    assert main(["grade", "words", "--course", str(small_course.root)]) == 2
    assert "gradebook.db is empty. Restore it from a copy" in capfd.readouterr().err
    assert gradebook.stat().st_size == 0


@pytest.mark.parametrize("table", ["task_cells", "grade", "course"])
def test_a_table_that_is_missing_is_made_again(small_course: Any, table: str) -> None:
    small_course.submit("ann", small_course.answered())
    with contextlib.closing(sqlite3.connect(small_course.root / "gradebook.db")) as gradebook:
        gradebook.execute(f"DROP TABLE {table}")
    assert main(["grade", "words", "--course", str(small_course.root)]) == 0


def test_pages_that_cannot_be_made_are_named(small_course: Any, capfd: pytest.CaptureFixture) -> None:
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered(), name="other.ipynb")  # has no page to make
    (small_course.root / "feedback").write_text("in the way of the folder")
    with in_this_process():
        assert main(["grade", "words", "--course", str(small_course.root), "--feedback"]) == 1
    printed = capfd.readouterr().out
    assert "│ ann     │  5 / 5 │" in printed
    assert "words: the feedback for ann could not be made: [Errno 20] Not a directory" in printed
    assert "feedback for bob" not in printed


def test_the_course_may_be_named_from_where_one_is(small_course: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small_course.submit("ann", small_course.answered())
    monkeypatch.chdir(small_course.root.parent)
    with in_this_process():
        assert main(["grade", "words", "--course", small_course.root.name, "--feedback"]) == 0
    assert list((small_course.root / "feedback" / "ann" / "words").glob("*.html"))


def test_which_isolation_is_in_force_is_said(capfd: pytest.CaptureFixture) -> None:
    assert main(["grade", "--sandbox"]) == 0
    assert capfd.readouterr().out.startswith("sandbox: bubblewrap")
    assert main(["grade", "--sandbox", "--unsafe-no-sandbox"]) == 0
    assert "none" in capfd.readouterr().out
    assert main(["grade"]) == 2
    assert "Name the assignment" in capfd.readouterr().err


def test_a_lesson_may_be_named_by_its_number(small_course: Any, capfd: pytest.CaptureFixture) -> None:
    """`autograder build 02` takes it."""
    course = ["--course", str(small_course.root)]
    for name in ("02_strings", "02_words", "03_words"):
        assert main(["report", name[:2], *course]) == 2
        (small_course.root / "source" / name).mkdir()
        assert main(["report", name[:2], *course]) == 2
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("autograder report")]
    named = ["'02'", "'02_strings'", "'02_strings'", "'02'", "'03'", "'03_words'"]
    assert [name for line, name in zip(said, named, strict=True) if name in line] == named
