"""Exports to Canvas and Moodle: feedback pages and comments reach the students who handed in, and no others."""

from __future__ import annotations

import csv
import functools
import io
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell

from autograder.cli import main
from tests.autograder.conftest import SmallCourse
from tests.autograder.grading.here import in_this_process

pytestmark = pytest.mark.sandbox

WORKSHEET = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Feedback comments\n"
    "Participant 556,Ann Lee,ann,Submitted,,100.00,Yes,\n"
    "Participant 557,Bob Ray,bob,Submitted,,100.00,Yes,\n"
    "Participant 558,Cy Poe,cy,No submission,,100.00,Yes,\n"
)
GRADEBOOK = 'Student,ID,SIS Login ID,Section\nPoints Possible,,,\n"Lee, Ann",101,ann,A\n"Ray, Bob",102,bob,A\n'
NAMES = {
    "canvas": ["leeann_101_7001_strings.ipynb", "raybob_LATE_102_7002_strings-1.ipynb"],
    "moodle": ["Ann Lee_556_assignsubmission_file/strings.ipynb", "Bob Ray_557_assignsubmission_file/strings.ipynb"],
}
PAGES = {
    "canvas": ["leeann_101_7001_strings.html", "raybob_LATE_102_7002_strings.html"],
    "moodle": ["Ann Lee_556_assignsubmission_file/strings.html", "Bob Ray_557_assignsubmission_file/strings.html"],
}
TABLES = {"canvas": ("--canvas-gradebook", GRADEBOOK), "moodle": ("--moodle-worksheet", WORKSHEET)}


@pytest.fixture(scope="module")
def graded(released_course: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Per platform, a folder with its download, its table and a course that imported and graded them; made once."""

    @functools.cache
    def folder_of(platform: str) -> Path:
        folder = tmp_path_factory.mktemp(platform)
        small_course = SmallCourse(released_course).copy(folder / "course")
        answers = small_course.answered(), small_course.answered(shout="return word")
        (folder / "table.csv").write_text(TABLES[platform][1], encoding="utf-8")
        with zipfile.ZipFile(folder / "download.zip", "w") as file:
            for name, notebook in zip(NAMES[platform], answers, strict=True):
                file.writestr(name, nbformat.writes(notebook))
        course = ["--course", str(small_course.root)]
        download, table = str(folder / "download.zip"), str(folder / "table.csv")
        assert main(["import", "words", download, "--roster", table, *course]) == 0
        with in_this_process():
            assert main(["grade", "words", "--feedback", *course]) == 0
        return folder

    return folder_of


@pytest.fixture
def taken_over(request: pytest.FixtureRequest, graded: Callable[[str], Path], tmp_path: Path) -> tuple[Path, list[str]]:
    """A course with the imported and graded submissions of a platform, and the options of an export to it."""
    platform = request.param
    shutil.copytree(graded(platform), tmp_path, dirs_exist_ok=True)
    download, table, course = (str(tmp_path / name) for name in ("download.zip", "table.csv", "course"))
    options = ["--for", platform, TABLES[platform][0], table, "--feedback", download, "--course", course]
    return Path(course), ["export", "words", "--to", str(tmp_path / "marks.csv"), *options]


@pytest.mark.parametrize("taken_over", NAMES, indirect=True)
def test_each_page_has_the_name_of_the_notebook_it_is_about(
    taken_over: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture, request: pytest.FixtureRequest
) -> None:
    platform = request.node.callspec.params["taken_over"]
    root, export = taken_over
    assert main(export) == 0, capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "words-feedback.zip") as file:
        pages = {name: file.read(name).decode() for name in file.namelist()}
    assert list(pages) == PAGES[platform]
    assert [next(points for points in ("5", "2") if f"{points} of 5 points" in page) for page in pages.values()] == [
        "5",
        "2",
    ]
    (root / "feedback" / "bob" / "words" / "strings.html").unlink()
    assert main(export) == 1
    assert "no feedback page: 1 submission (bob)" in capsys.readouterr().err


@pytest.mark.parametrize("taken_over", NAMES, indirect=True)
def test_a_download_that_was_packed_again_is_answered_as_it_came(
    taken_over: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture, request: pytest.FixtureRequest
) -> None:
    platform = request.node.callspec.params["taken_over"]
    _, export = taken_over
    with zipfile.ZipFile(tmp_path / "download.zip") as file:
        handed_in = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as file:
        for name, content in handed_in.items():
            file.writestr(f"submissions/{name}", content)
            folder, _, last = f"submissions/{name}".rpartition("/")
            file.writestr(f"__MACOSX/{folder}/._{last}", b"\0\5\x16\7")
    assert main(export) == 0, capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "words-feedback.zip") as file:
        assert file.namelist() == PAGES[platform]


@pytest.mark.parametrize("taken_over", NAMES, indirect=True)
def test_a_student_without_a_notebook_is_not_to_be_graded_again_for_a_page(
    taken_over: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture, request: pytest.FixtureRequest
) -> None:
    platform = request.node.callspec.params["taken_over"]
    _, export = taken_over
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as file:
        file.writestr(NAMES[platform][0].replace("strings.ipynb", "strings.pdf"), b"no notebook")
        file.writestr(NAMES[platform][1].replace("raybob", "nobody").replace("102", "999").replace("557", "999"), b"")
    assert main(export) == 1
    said = capsys.readouterr().err
    assert "no notebook of words handed in, so there is no feedback page: 1 submission (ann)." in said
    assert "--feedback, and export again" not in said
    option = TABLES[platform][0]
    if platform == "canvas":
        assert f"The file given with {option} does not say who they are" in said
        at = export.index(option)
        assert main([*export[:at], *export[at + 2 :]]) == 1
        assert f"Add {option} FILE.csv, the gradebook that Canvas exports" in capsys.readouterr().err


@pytest.mark.parametrize("taken_over", ["moodle"], indirect=True)
def test_moodles_worksheet_is_filled_with_marks_and_comments(
    taken_over: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    _, export = taken_over
    assert main(export) == 0
    before, after = (
        list(csv.DictReader(io.StringIO(text))) for text in (WORKSHEET, (tmp_path / "marks.csv").read_text())
    )
    assert [row["Grade"] for row in after] == ["100", "40", ""]
    assert "Moodle: 2 new, 0 changed; everything else stays as it is." in capsys.readouterr().out
    assert after[0]["Feedback comments"] == "5 of 5 points."
    reason = 'This is not true: `assert shout("abc") == "ABC"`.'
    assert after[1]["Feedback comments"] == f"2 of 5 points. Words: 2 of 5. {reason}"
    assert after[2] == before[2]
    for row, old in zip(after, before, strict=True):
        assert {name: row[name] for name in row if name not in ("Grade", "Feedback comments")} == {
            name: old[name] for name in old if name not in ("Grade", "Feedback comments")
        }
    (tmp_path / "table.csv").write_text("".join(WORKSHEET.splitlines(keepends=True)[:2]), encoding="utf-8")
    assert main(export) == 1
    assert "no row of the worksheet could be matched with certainty: 1 student (bob)" in capsys.readouterr().err


@pytest.mark.parametrize("taken_over", ["moodle"], indirect=True)
def test_a_comment_follows_the_lesson_and_says_what_was_not_found(
    taken_over: tuple[Path, list[str]], tmp_path: Path
) -> None:
    root, export = taken_over
    path = root / "release" / "words" / "strings.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for at, title in ((3, "## Upper & lower"), (1, "## Length")):
        notebook.cells.insert(at, new_markdown_cell(title))
    path.chmod(0o644)
    nbformat.write(notebook, path)
    with sqlite3.connect(root / "gradebook.db") as connection:
        first = connection.execute("select id from base_cell where name = 'test_length'").fetchone()
        connection.execute("update grade set auto_score = 0")
        connection.execute("update grade set rowid = rowid + 1000, id = 'z' || id where cell_id = ?", first)
    kept = sqlite3.connect(root / "gradebook.db")
    (text,) = kept.execute("select result from autograder_result where student = 'bob'").fetchone()
    kept.execute(
        "update autograder_result set result = ? where student = 'bob'", (text.replace('"graded"', '"missing"'),)
    )
    kept.commit()
    kept.close()
    main(export)
    with (tmp_path / "marks.csv").open() as file:
        ann, bob, _ = (row["Feedback comments"] for row in csv.DictReader(file))
    assert ann == "0 of 5 points. Length: 0 of 2. Upper &amp; lower: 0 of 3."
    assert bob == "0 of 5 points. No notebook had the name strings.ipynb, so none was graded."


@pytest.mark.parametrize("taken_over", NAMES, indirect=True)
def test_where_grading_failed_there_is_no_page(
    taken_over: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture, request: pytest.FixtureRequest
) -> None:
    root, export = taken_over
    (root / "submitted" / "bob" / "words" / "timestamp.txt").write_text("yesterday")
    with in_this_process():
        assert main(["grade", "words", "--feedback", "--course", str(root)]) == 1
    capsys.readouterr()
    assert main(export) == 1
    *_, line = capsys.readouterr().err.splitlines()
    assert "grading failed, so there is no mark and no feedback page: 1 submission (bob)." in line
    with zipfile.ZipFile(tmp_path / "words-feedback.zip") as file:
        assert file.namelist() == PAGES[request.node.callspec.params["taken_over"]][:1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["words", "--for", "canvas", "--moodle-worksheet", __file__], "goes with --for moodle, not with canvas"),
        (["words", "--for", "moodle", "--moodle-worksheet", "nowhere.csv"], "--moodle-worksheet: there is no file"),
        (["words", "--feedback", "nowhere.zip"], "--feedback goes with --for canvas or moodle"),
        (["--for", "moodle", "--feedback", __file__], "--feedback is about one assignment"),
        (["words", "--for", "canvas", "--feedback", "{download}"], "is from Moodle, so --for canvas does not fit"),
        (
            ["words", "--for", "moodle", "--moodle-worksheet", "{spanish}"],
            "its columns have other names: set Moodle to",
        ),
        (["words", "--for", "moodle", "--feedback", __file__], "cannot be read as a zip archive"),
        (["words", "--for", "moodle", "--moodle-worksheet", __file__], "is not a Moodle grading worksheet"),
    ],
)
def test_what_does_not_go_together_is_said(
    options: list[str], said: str, graded: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    course, download, spanish = graded("moodle") / "course", graded("moodle") / "download.zip", tmp_path / "es.csv"
    spanish.write_text("Identificador,Nombre completo\nParticipante 556,Ann Lee\n")
    options = [option.format(download=download, spanish=spanish) for option in options]
    capsys.readouterr()
    assert main(["export", *options, "--to", str(tmp_path / "x.csv"), "--course", str(course)]) == 2
    assert said in capsys.readouterr().err
