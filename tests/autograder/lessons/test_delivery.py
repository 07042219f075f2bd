"""A student's folder gets every lesson and every update, and nothing that the student has touched is ever lost."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder import cli
from autograder.lessons.student.delivery import BUILDER, HIDDEN_FOLDER, PACKAGE, STATE_FILE, Workspace
from autograder.lessons.student.packing import pack

Deliver = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def notebook(folder: Path) -> Path:
    return folder / "01_squares" / "01_squares.ipynb"


@pytest.fixture
def deliver(course: Path, lesson: Path, folder: Path) -> Deliver:
    """Deliver the lesson on a day of November; returns (what, file name) for each file."""

    def run(day: int = 20) -> list[tuple[str, str]]:
        workspace = Workspace(folder, datetime.date(2026, 11, day))
        return [(file.what, file.path.name) for file in workspace.deliver(lesson, course)]

    return run


def edit(path: Path, old: str = "Squares", new: str = "Squares, once more") -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_first_delivery_brings_the_release_and_its_data(deliver: Deliver, notebook: Path) -> None:
    assert deliver() == [("new", "01_squares.ipynb"), ("new", "points.csv")]
    assert "factor" not in notebook.read_text()
    assert "raise NotImplementedError()" in notebook.read_text()
    assert (notebook.parent / "data" / "points.csv").exists()


def test_nothing_is_done_when_nothing_has_changed(deliver: Deliver, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver()
    monkeypatch.setattr("autograder.lessons.student.delivery._files", lambda *_: pytest.fail("was built again"))
    assert deliver() == [("unchanged", "01_squares.ipynb"), ("unchanged", "points.csv")]


def test_an_untouched_notebook_is_replaced(deliver: Deliver, lesson: Path, notebook: Path) -> None:
    deliver()
    edit(lesson)
    assert deliver()[0] == ("updated", "01_squares.ipynb")
    assert "once more" in notebook.read_text()
    assert [path.name for path in notebook.parent.glob("*.ipynb")] == ["01_squares.ipynb"]


def test_a_touched_notebook_survives_three_updates(deliver: Deliver, lesson: Path, notebook: Path) -> None:
    deliver()
    edit(notebook, "raise NotImplementedError()", "return 2 * x")
    mine = notebook.read_bytes()
    assert deliver()[0] == ("kept", "01_squares.ipynb")
    found = []
    for number, day in enumerate((21, 22, 22)):
        edit(lesson, "# # Squares", f"# # Squares {number},")
        found.append(deliver(day)[0])
        assert deliver(day)[0] == ("kept", "01_squares.ipynb")
    assert found == [
        ("beside", "01_squares (update 2026-11-21).ipynb"),
        ("beside", "01_squares (update 2026-11-22).ipynb"),
        ("beside", "01_squares (update 2026-11-22, 2).ipynb"),
    ]
    assert notebook.read_bytes() == mine
    for number, (_, name) in enumerate(found):
        assert f"# Squares {number}" in (notebook.parent / name).read_text()


def test_a_notebook_that_was_only_looked_at_is_replaced(deliver: Deliver, lesson: Path, notebook: Path) -> None:
    deliver()
    looked_at = json.loads(notebook.read_text())
    looked_at["metadata"]["language_info"] = {"name": "python", "version": "3.99", "file_extension": ".py"}
    for cell in looked_at["cells"]:
        cell["source"] = "".join(cell["source"])
        cell["metadata"]["trusted"] = True
    notebook.write_text(json.dumps(looked_at))
    edit(lesson)
    assert deliver()[0] == ("updated", "01_squares.ipynb")


TOUCHES = {
    "a source": lambda cells: cells[0].update(source="mine"),
    "an output": lambda cells: cells[1].update(outputs=[{"output_type": "stream", "name": "stdout", "text": "4"}]),
    "a count": lambda cells: cells[1].update(execution_count=3),
    "metadata": lambda cells: cells[1]["metadata"].update(tags=["mine"]),
    "an attachment": lambda cells: cells[0].update(attachments={"photo.png": {"image/png": "AAAA"}}),
    "another cell": lambda cells: cells.append(dict(cells[0])),
    "a cell less": lambda cells: cells.pop(),
    "the order": lambda cells: cells.reverse(),
}


@pytest.mark.parametrize("name", TOUCHES)
def test_whatever_a_student_can_change_in_a_notebook_counts(
    name: str, deliver: Deliver, lesson: Path, notebook: Path
) -> None:
    deliver()
    touched = json.loads(notebook.read_text())
    TOUCHES[name](touched["cells"])
    notebook.write_text(json.dumps(touched))
    mine = notebook.read_bytes()
    edit(lesson)
    assert deliver()[0][0] == "beside"
    assert notebook.read_bytes() == mine


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', '{"cells": [3]}', '{"cells": [{}]}', "[" * 9999])
def test_a_notebook_that_is_none_any_more_is_kept(text: str, deliver: Deliver, lesson: Path, notebook: Path) -> None:
    deliver()
    notebook.write_text(text)
    edit(lesson)
    assert deliver()[0][0] == "beside"
    assert notebook.read_text() == text


def test_a_touched_update_is_not_overwritten_either(deliver: Deliver, lesson: Path, notebook: Path) -> None:
    deliver()
    edit(notebook, "slope", "my slope")
    edit(lesson)
    update = notebook.parent / deliver()[0][1]
    update.write_text("my notes")
    edit(lesson)
    assert deliver()[0] == ("beside", "01_squares (update 2026-11-20, 2).ipynb")
    assert update.read_text() == "my notes"


@pytest.mark.parametrize(
    "state",
    ["", "{", "[]", "null", "3", '{"01_squares": 1}', '{"01_squares": {"fingerprint": 1}}', "\x00\xff", "[" * 9999],
)
def test_a_corrupt_state_file_loses_nothing(
    state: str, deliver: Deliver, lesson: Path, notebook: Path, folder: Path
) -> None:
    deliver()
    edit(notebook, "raise NotImplementedError()", "return 2 * x")
    mine = notebook.read_bytes()
    (folder / HIDDEN_FOLDER / STATE_FILE).write_text(state)
    edit(lesson)
    assert deliver()[0] == ("beside", "01_squares (update 2026-11-20).ipynb")
    assert notebook.read_bytes() == mine
    assert deliver()[0] == ("kept", "01_squares.ipynb")


def test_a_lost_state_file_brings_no_copy_of_what_is_there(deliver: Deliver, lesson: Path, folder: Path) -> None:
    deliver()
    edit(folder / "01_squares" / "01_squares.ipynb", "slope", "my slope")
    edit(lesson)
    deliver()
    (folder / HIDDEN_FOLDER / STATE_FILE).unlink()
    assert [what for what, _ in deliver()] == ["kept", "unchanged"]


def test_a_state_file_from_elsewhere_cannot_make_a_notebook_ours(
    deliver: Deliver, lesson: Path, notebook: Path, folder: Path
) -> None:
    deliver()
    edit(notebook, "slope", "my slope")
    state = json.loads((folder / HIDDEN_FOLDER / STATE_FILE).read_text())
    state["01_squares"]["delivered"] = {}
    (folder / HIDDEN_FOLDER / STATE_FILE).write_text(json.dumps(state))
    edit(lesson)
    assert deliver()[0][0] == "beside"


def test_a_deleted_notebook_is_delivered_anew_and_a_deleted_update_is_not(
    deliver: Deliver, lesson: Path, notebook: Path
) -> None:
    deliver()
    notebook.unlink()
    assert deliver()[0] == ("new", "01_squares.ipynb")
    edit(notebook, "slope", "my slope")
    edit(lesson)
    (notebook.parent / deliver()[0][1]).unlink()
    assert deliver()[0] == ("kept", "01_squares.ipynb")


def test_touched_data_is_kept_too(deliver: Deliver, course: Path, folder: Path) -> None:
    deliver()
    mine = folder / "01_squares" / "data" / "points.csv"
    mine.write_text("7,8\n")
    (course / "data" / "points.csv").write_text("1,2\n3,5\n")
    assert deliver()[1] == ("beside", "points (update 2026-11-20).csv")
    assert mine.read_text() == "7,8\n"


@pytest.mark.parametrize("pattern", BUILDER)
def test_the_builder_is_where_it_is_looked_for(pattern: str) -> None:
    assert list(PACKAGE.glob(pattern))


def test_a_changed_builder_delivers_again(deliver: Deliver, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver()
    monkeypatch.setattr("autograder.lessons.student.delivery.version", lambda name: "another")
    monkeypatch.setattr("autograder.lessons.builder.expansion.HINT_COMMENT", "# Hints.")
    assert deliver() == [("updated", "01_squares.ipynb"), ("unchanged", "points.csv")]


def test_the_command_tells_what_it_did_and_leaves_a_broken_lesson_out(
    course: Path, lesson: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = lesson.parents[1] / "02_broken" / "02_broken.py"
    broken.parent.mkdir()
    broken.write_text('# %% tags=["nonsense"]\n1\n')
    arguments = ["lab", "--course", str(course), "--workspace", str(folder), "--prepare-only"]
    assert cli.main(arguments) == 1
    output = capsys.readouterr()
    assert "01_squares/01_squares.ipynb: delivered" in output.out
    assert "02_broken.py:1" in output.err
    broken.unlink()
    edit(folder / "01_squares" / "01_squares.ipynb", "slope", "my slope")
    edit(lesson)
    assert cli.main(arguments) == 0
    assert "you have worked on it, so the newer version is beside it: 01_squares (update" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_named(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "workspace"
    assert cli.main(["lab", "--course", str(course), "--workspace", str(target), "--prepare-only"]) == 1
    assert str(target) in capsys.readouterr().err


def brought(notebook: bytes) -> dict[str, bytes]:
    return {"01_squares/01_squares.ipynb": notebook, "01_squares/engine.py": b"# mine", "../x/01_squares.ipynb": b"x"}


def test_a_notebook_from_elsewhere_takes_the_place_of_an_untouched_one(
    deliver: Deliver, lesson: Path, notebook: Path, folder: Path
) -> None:
    deliver()
    mine = notebook.read_bytes().replace(b"raise NotImplementedError()", b"return 2 * x")
    taken = Workspace(folder).take(lesson, brought(mine))
    assert taken is not None
    assert taken.what == "taken"
    assert (notebook.read_bytes(), notebook.with_name("engine.py").read_bytes()) == (mine, b"# mine")
    assert deliver() == [("kept", "01_squares.ipynb"), ("unchanged", "points.csv")]
    again = Workspace(folder).take(lesson, brought(mine))
    assert again is not None
    assert again.what == "unchanged"


def test_a_notebook_from_elsewhere_goes_beside_one_that_was_worked_on(
    deliver: Deliver, lesson: Path, notebook: Path, folder: Path
) -> None:
    deliver()
    edit(notebook, "raise NotImplementedError()", "return x + x")
    mine = notebook.read_bytes()
    taken = Workspace(folder, datetime.date(2026, 11, 21)).take(lesson, brought(b"{}"))
    assert taken is not None
    assert (taken.what, taken.path.name) == ("other", "01_squares (from the file 2026-11-21).ipynb")
    assert (notebook.read_bytes(), taken.path.read_bytes()) == (mine, b"{}")
    assert not notebook.with_name("engine.py").exists()


def test_a_lesson_that_was_not_brought_along_stays(deliver: Deliver, lesson: Path, folder: Path) -> None:
    deliver()
    assert Workspace(folder).take(lesson, {"02_other/02_other.ipynb": b"{}"}) is None


def test_the_command_takes_a_packed_file_and_refuses_others(
    course: Path, folder: Path, notebook: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["lab", "--course", str(course), "--workspace", str(folder), "--prepare-only"]
    file = tmp_path / "lessons.zip"
    file.write_bytes(b"x")
    assert cli.main([*command, "--from", str(file)]) == 1
    assert "cannot be read as a file from pack()" in capsys.readouterr().err
    assert cli.main(command) == 0
    mine = notebook.read_bytes().replace(b"raise NotImplementedError()", b"return 2 * x")
    notebook.write_bytes(mine)
    file.write_bytes(pack(notebook.parent))
    shutil.rmtree(folder)
    assert cli.main([*command, "--from", str(file)]) == 0
    assert "01_squares/01_squares.ipynb: taken from the file" in capsys.readouterr().out
    assert json.loads(notebook.read_bytes()) == json.loads(mine)
