"""What a class run says about submissions without the notebook, and what it does not print."""

from __future__ import annotations

import subprocess
import sys

import pytest
from nbformat.v4 import new_notebook

from autograder.grading.submission.assignments import Submission
from autograder.grading.submission.worker import missing
from autograder.notebooks.known_cells import KnownCell, add_missing_cells


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "No notebook of this assignment was handed in."),
        (("timestamp.txt",), "No notebook of this assignment was handed in."),
        (
            ("ps1 (1).ipynb", "notes.txt"),
            "No ps1.ipynb was handed in, only ps1 (1).ipynb. If that is it, rename it to ps1.ipynb to have it graded.",
        ),
        (("ps1.py",), "No ps1.ipynb was handed in, only ps1.py."),
        (("a\x1b[2Jb.py", "b", "c", "d", "e"), "No ps1.ipynb was handed in, only a?[2Jb.py, b, c and 2 more."),
    ],
)
def test_a_notebook_under_another_name_is_mentioned(names: tuple[str, ...], said: str) -> None:
    assert missing(["ps1"], Submission("ada", dict.fromkeys(names, b""))) == said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("data.txt", "No two.ipynb was handed in."),
        (
            "two (1).ipynb",
            "No two.ipynb was handed in, but two (1).ipynb. If that is it, rename it to two.ipynb to have it graded.",
        ),
    ],
)
def test_one_notebook_of_several_is_not_missing_without_a_word(name: str, said: str) -> None:
    assert missing(["two"], Submission("ada", {"one.ipynb": b"", name: b""}), ["one"]) == said


def test_putting_cells_back_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    known = KnownCell("t", "code", "assert True", True, None, grade=True, solution=False, task=False, points=1.0)
    notebook = new_notebook()
    program = (
        "from nbformat.v4 import new_notebook\n"
        "from autograder.notebooks.known_cells import KnownCell, add_missing_cells\n"
        f"add_missing_cells(new_notebook(), {{'t': {known!r}}}, ['t'])\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    add_missing_cells(notebook, {"t": known}, ["t"])
    assert [cell.metadata.nbgrader.grade_id for cell in notebook.cells] == ["t"]
    assert capfd.readouterr() == ("", "")
