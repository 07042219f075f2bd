"""The instructor's notebooks say what is loaded for submissions, and what these may not use."""

from __future__ import annotations

import site
from pathlib import Path
from typing import Any

import pytest

from autograder.notebooks.libraries import kind_for, libraries_in
from autograder.sandbox.process.kind import OF_OTHER_COURSES, STUDENT
from tests.autograder.judge.notebooks import notebook

BUILDS_AN_ENGINE = {
    "import torch": False,
    "from autograder.student import variant": False,
    "from autograder.student import check_gradients, variant": True,
    "%matplotlib inline\nfrom autograder.student import start_lesson": True,
    "import autograder.student as student": True,
    "def demo():\n    from mini_autograd import nn": True,
    "text = 'from autograder.student import check_gradients'": False,
    "# test\nimport autograder": True,
}


@pytest.mark.parametrize("text", BUILDS_AN_ENGINE)
def test_other_engines_are_withheld_where_a_notebook_uses_our_checks(text: str) -> None:
    assert kind_for(notebook("y = 2", text)) is (STUDENT if BUILDS_AN_ENGINE[text] else OF_OTHER_COURSES)


@pytest.mark.parametrize("source", [None, notebook()], ids=["no source", "no cells"])
def test_without_the_instructor_s_notebook_they_are_withheld(source: Any) -> None:
    assert kind_for(source) is STUDENT


@pytest.mark.parametrize(("of_base", "found"), [(True, ["only_in_base"]), (False, [])])
def test_a_library_of_the_base_python_counts_if_the_environment_uses_it(
    of_base: bool, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_in_base.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    if of_base:
        monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path)])
    assert libraries_in([notebook("import only_in_base")]) == found
