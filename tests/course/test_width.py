"""No line of code that a student sees is so long that its cell scrolls sideways in a JupyterLab 1280 pixels wide."""

import re
from pathlib import Path

import pytest

from autograder.lessons.builder.notebook import assemble
from autograder.lessons.builder.text import read_lesson

LESSONS = sorted((Path(__file__).parents[2] / "course" / "lessons").glob("*/[0-9]*.py"))
LONGEST = 104  # with the file browser open, a cell shows 105 characters of the usual font
NOT_SHOWN = re.compile(r"^ *### BEGIN (SOLUTION|HIDDEN TESTS).*?^ *### END \1", re.DOTALL | re.MULTILINE)
SEALED = re.compile(r"\"(hints|quiz|engine)\d\.")


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_code_fits_the_page(lesson: Path) -> None:
    wide = []
    for cell in read_lesson(lesson):
        if cell.kind == "code" and "quiz" not in cell.tags and not cell.style:
            wide += [line for line in NOT_SHOWN.sub("", cell.source).splitlines() if len(line) > LONGEST]
    assert not wide


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_cells_with_a_sealed_text_are_folded_to_their_first_line(lesson: Path) -> None:
    code = [cell for cell in assemble(lesson).cells if cell.cell_type == "code"]
    sealed = [cell for cell in code if SEALED.search(cell.source)]
    assert sealed
    assert all(cell.metadata.get("jupyter", {}).get("source_hidden") for cell in sealed)
    assert max(len(cell.source.splitlines()[0]) for cell in sealed) <= LONGEST, "a folded cell is as wide as that line"
