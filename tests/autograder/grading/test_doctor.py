"""`autograder doctor` says whether each test can be trusted, and how stock nbgrader grades the same solution."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from autograder.cli import main
from autograder.grading.course import open_course, released_apart
from tests.autograder.grading.here import ASSIGNMENT, in_this_process
from tests.autograder.grading.test_notices import change_source, release

pytestmark = pytest.mark.sandbox

LOOKS_AT_CODE = "import inspect\nassert 'return' in inspect.getsource(length)\nassert length('abc') == 3"


def test_it_says_where_each_test_is_judged(small_course: Any, capsys: Any) -> None:
    change_source(small_course, "test_length", LOOKS_AT_CODE)
    release(small_course)
    assert main(["doctor", "--course", str(small_course.root)]) == 0
    said = capsys.readouterr().out
    lines = {line.split()[1]: line for line in said.splitlines() if line.startswith("│ test_")}
    assert "inside" in lines["test_length"]
    assert "outside" in lines["test_shout"]
    assert "2 of 5 points are judged inside" in said
    assert not (small_course.root / "autograded").exists()


def test_it_releases_nothing(small_course: Any, capsys: Any) -> None:
    before = {path.relative_to(small_course.root) for path in small_course.root.rglob("*")}
    assert main(["doctor", "--course", str(small_course.root)]) == 0
    assert "test_length" in capsys.readouterr().out
    after = {path.relative_to(small_course.root) for path in small_course.root.rglob("*")}
    assert {path.name for path in after - before} <= {".autograder_secret"}


def test_a_solution_that_fails_is_named(small_course: Any, capsys: Any) -> None:
    change_source(small_course, "test_shout", "assert shout('a') == 'B'")
    release(small_course)
    assert main(["doctor", ASSIGNMENT, "--course", str(small_course.root)]) == 1
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("│ test_shout")]
    assert "fails" in line
    assert "This is not true" in line


def test_a_test_that_asserts_nothing_is_not_called_sound(small_course: Any, capsys: Any) -> None:
    change_source(small_course, "test_shout", "if '%(' not in _i:\n    print('fine')")
    release(small_course)
    assert main(["doctor", ASSIGNMENT, "--course", str(small_course.root)]) == 1
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("│ test_shout")]
    assert "asks nothing" in line
    assert "It asserts nothing" in line


def test_the_same_reason_is_given_once(small_course: Any, capsys: Any) -> None:
    for name in ("test_length", "test_shout"):
        change_source(small_course, name, f"assert lost_{name}() == 4")
    release(small_course)
    assert main(["doctor", ASSIGNMENT, "--course", str(small_course.root)]) == 1
    said = capsys.readouterr().out
    assert said.count("is not defined") == 2, "outside and inside"
    assert "As in 'test_length'." in said


def test_it_compares_with_stock_nbgrader_cell_by_cell(small_course: Any, capsys: Any) -> None:
    """nbgrader takes all points from a test that writes a warning to stderr. The solution's other cell, and both of the
    release, earn the same."""
    change_source(small_course, "test_shout", "import sys\nprint('careful', file=sys.stderr)\nassert shout('a') == 'A'")
    before = {path.name for path in small_course.root.rglob("*")}
    with in_this_process():
        assert main(["doctor", "--course", str(small_course.root), "--compare-with-nbgrader"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    differs = "nbgrader gives the solution 0 points for the cell 'test_shout' of strings.ipynb, and the judge gives 3."
    assert differs in said
    assert said.count("nbgrader gives") == 1
    after = {path.name for path in small_course.root.rglob("*")} - before
    assert after <= {".autograder_secret"}


ELSEWHERE = {
    # what the configuration adds, and where the header and the source are, from the folder above the course
    "a header in source": ("IncludeHeaderFooter.header = 'source/header.ipynb'", "course/source", ""),
    "a header beside the course": ("IncludeHeaderFooter.header = '../shared/header.ipynb'", "shared", ""),
    "a header by its whole path": ("IncludeHeaderFooter.header = '{above}/shared/header.ipynb'", "shared", ""),
    "another name for source": ("CourseDirectory.source_directory = 'mine'", "", "course/mine/words"),
    "source by its whole path": ("CourseDirectory.source_directory = '{above}/mine'", "", "mine/words"),
    "another structure": (
        "CourseDirectory.directory_structure = '{{assignment_id}}/{{nbgrader_step}}/{{student_id}}'",
        "",
        "course/words/source",
    ),
    "every folder by its whole path": (
        "CourseDirectory.directory_structure = '{above}/course/{{nbgrader_step}}/{{student_id}}/{{assignment_id}}'",
        "",
        "",
    ),
}


@pytest.mark.parametrize("place", ELSEWHERE)
@pytest.mark.parametrize("configured", ["in the course", "above it", "for the user"])
def test_an_assignment_is_released_apart_whatever_the_configuration_names(
    place: str, configured: str, small_course: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, header, source = ELSEWHERE[place]
    root = small_course.root
    text = (root / "nbgrader_config.py").read_text() + f"c.{line.format(above=tmp_path)}\n"
    (root / "nbgrader_config.py").unlink()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "migrated").touch()  # or Jupyter would make it
    folder = {"in the course": root, "above it": tmp_path, "for the user": tmp_path / "config"}[configured]
    (folder / "nbgrader_config.py").write_text(f"{text}c.CourseDirectory.root = {str(root)!r}\n")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    if header:
        (tmp_path / header).mkdir(exist_ok=True)
        nbformat.write(new_notebook(cells=[new_markdown_cell("The header")]), tmp_path / header / "header.ipynb")
    if source:
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (root / "source" / ASSIGNMENT).rename(tmp_path / source)
    before = sorted(tmp_path.rglob("*"))
    with open_course(tmp_path if configured == "above it" else root) as course:
        with released_apart(course, ASSIGNMENT) as apart:
            notebook = nbformat.read(course.folder("release", ".", ASSIGNMENT) / "strings.ipynb", as_version=4)
            assert apart in course.folder("release", ".", ASSIGNMENT).parents
            assert ("The header" in {cell.source for cell in notebook.cells}) == bool(header)
        assert course.folder("source", ".", ASSIGNMENT).is_dir()
    assert sorted(tmp_path.rglob("*")) == before


def test_it_says_that_stock_nbgrader_gives_the_same(small_course: Any, capsys: Any) -> None:
    with mock.patch("autograder.grading.comparing.differences", return_value=[]):
        assert main(["doctor", "--course", str(small_course.root), "--compare-with-nbgrader"]) == 0
    assert "the same points, cell by cell" in capsys.readouterr().out


def test_an_assignment_that_is_not_there(small_course: Any, capsys: Any) -> None:
    assert main(["doctor", "numbers", "--course", str(small_course.root)]) == 2
    assert "The course has no assignment 'numbers'. It has: words." in capsys.readouterr().err


def test_a_course_without_notebooks_says_how_they_are_made(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    download = tmp_path / "submissions.zip"
    with zipfile.ZipFile(download, "w") as archive:
        archive.writestr("doejane_101_11_words.ipynb", "{}")
    for command in (["doctor"], ["doctor", "words"], ["import", "words", str(download)]):
        assert main([*command, "--course", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert ("The course has no assignment 'words'" in said) == ("words" in command)
        assert f"run `autograder build` in {tmp_path}" in said


def edit(course: Any, change: Any) -> None:
    path = course.root / "source" / ASSIGNMENT / "strings.ipynb"
    notebook = nbformat.read(path, as_version=4)
    change(notebook)
    nbformat.write(notebook, path)


def add_task(notebook: Any) -> None:
    """A task whose mark scheme shows a picture, under an old nbgrader that lets it through."""
    scheme = (
        "Draw it.\n\n### BEGIN MARK SCHEME\n![](attachment:right.png)\n### END MARK SCHEME\n![](attachment:mine.png)"
    )
    marks = {"grade_id": "drawing", "points": 1, "task": True, "grade": False, "solution": False, "locked": True}
    cell = new_markdown_cell(scheme, metadata={"nbgrader": {"schema_version": 3, **marks}})
    cell.attachments = {name: {"image/png": "aGVsbG8="} for name in ("right.png", "mine.png")}
    notebook.cells.append(cell)


def answer_left(notebook: Any) -> None:
    cell = next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "length")
    cell.source = cell.source.replace("### BEGIN SOLUTION", "# begin").replace("### END SOLUTION", "# end")
    cell.source += "\n### BEGIN SOLUTION\n### END SOLUTION"


def in_test(name: str, source: str) -> Any:
    def change(notebook: Any) -> None:
        cell = next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)
        cell.source = source

    return change


KINDS = {
    "assert True": (in_test("test_shout", "assert True"), "the untouched release already passes 'test_shout':"),
    "an answer is left in": (answer_left, "the untouched release already passes 'test_length':"),
    "some points": (
        in_test(
            "test_shout", "try:\n    points = 1 + 2 * (shout('a') == 'A')\nexcept Exception:\n    points = 1\npoints"
        ),
        "the untouched release already earns some of the points of 'test_shout':",
    ),
    "a mistyped region": (
        in_test("test_shout", "assert shout('a') == 'A'\n### BEGIN HIDDEN TEST\nassert shout('b') == 'B'"),
        "so students see what it should hide: '### BEGIN HIDDEN TEST' in 'test_shout'.",
    ),
    "a picture in a mark scheme": (add_task, "students get a picture that only a solution or a mark scheme shows, in"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_wrong_most_is_said_once(kind: str, small_course: Any, capsys: Any) -> None:
    change, sentence = KINDS[kind]
    edit(small_course, change)
    config = small_course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.ClearMarkScheme.check_attachment_leakage = False\n")
    release(small_course)
    assert main(["doctor", ASSIGNMENT, "--course", str(small_course.root)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert said.count(f"{ASSIGNMENT}: ") == 1
    assert sentence in said


def test_a_notebook_for_another_language_is_not_judged(small_course: Any, capsys: Any) -> None:
    edit(small_course, lambda it: it.metadata.update(kernelspec={"name": "ir", "display_name": "R", "language": "R"}))
    release(small_course)
    assert main(["doctor", ASSIGNMENT, "--course", str(small_course.root)]) == 1
    said = capsys.readouterr().out
    sentence = "strings.ipynb is for R, and the judge runs Python only. Grade this assignment with nbgrader itself.\n"
    assert said == f"words: {sentence}"
    change_source(small_course, "test_shout", "library(testthat)\nexpect <- function(x) x")
    release(small_course)
    small_course.submit("ann", small_course.answered())
    with in_this_process():
        assert main(["grade", ASSIGNMENT, "--course", str(small_course.root)]) == 2
    assert sentence in capsys.readouterr().err
