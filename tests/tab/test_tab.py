"""The course in a browser tab, as far as Pyodide in node shows it: lessons solved and with mistakes.

`python -m tests.tab.lessons` runs all lessons.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.lessons.build.lesson_files import lesson_texts
from tests.tab.assemble import with_course
from tests.tab.lessons import COURSE, compared, deliver

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node, in which Pyodide runs, or no npm, which has it")
    return with_course(tmp_path_factory.mktemp("tab"))


def test_a_lesson_passes_in_a_tab_and_its_mistakes_give_the_cards_that_they_give_here(
    pyodide: Path, tmp_path: Path
) -> None:
    texts = lesson_texts(COURSE, ["02"])
    places = tmp_path / "tab", tmp_path / "here"
    notebooks = deliver(texts, places)
    found = compared(texts[0], notebooks[texts[0].stem], pyodide, places)
    assert not found.failures
    assert len(found.of("test")) == 8
    assert len(found.of("card")) == 6
