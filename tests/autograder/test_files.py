"""Which course a command uses if none is named, and which files are litter."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course_folder import BUILT_IN, PROJECT, course_around
from autograder.files import is_litter


def test_a_folder_of_a_course_belongs_to_that_course(tmp_path: Path) -> None:
    submitted = tmp_path / "class" / "submitted" / "ann"
    submitted.mkdir(parents=True)
    assert course_around(submitted) == BUILT_IN
    (tmp_path / "class" / "nbgrader_config.py").touch()
    assert course_around(submitted) == course_around(tmp_path / "class") == tmp_path / "class"


def test_a_folder_of_the_checkout_belongs_to_the_course_in_it() -> None:
    assert course_around(PROJECT / "docs") == course_around(BUILT_IN / "lessons") == BUILT_IN


@pytest.mark.parametrize(
    "path",
    [
        *("__MACOSX/a/ps1.ipynb", "a/._ps1.ipynb", ".DS_Store", "a/.ds_store", "Icon\r", ".AppleDouble/ps1.ipynb"),
        *("Thumbs.db", "ehthumbs_vista.db", "DESKTOP.INI", "ps1.ipynb:Zone.Identifier", "$RECYCLE.BIN/ps1.ipynb"),
        *("~$notes.docx", ".~lock.notes.odt#", ".~ps1.ipynb", "@eaDir/ps1.ipynb", ".nfs0001", ".Trash-1000/ps1.ipynb"),
    ],
)
def test_what_systems_make_is_litter(path: str) -> None:
    assert is_litter(path)


@pytest.mark.parametrize(
    "path",
    [
        *("ps1.ipynb", "_ps1.ipynb", ".hidden", ".ps1.ipynb", "~ps1.ipynb", "MACOSX/ps1.ipynb", "__MACOSX.ipynb"),
        *("data/thumbs.csv", "desktop.ipynb", "Icon", "Zone.Identifier", "ps1.ipynb~", ".._ps1", "$ps1", "a.~b"),
    ],
)
def test_what_a_person_may_have_made_is_none(path: str) -> None:
    assert not is_litter(path)
