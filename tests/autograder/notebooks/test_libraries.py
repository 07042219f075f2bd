"""The instructor's notebooks say what is loaded for submissions, and what these may not use."""

from __future__ import annotations

import site
from pathlib import Path

import pytest

from autograder.notebooks.libraries import libraries_in, withheld_from
from autograder.sandbox.inside.absent import ENGINES, OURS, WITHHELD
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
    withheld = withheld_from(notebook("x = 1"), notebook("y = 2", text))
    assert withheld == (WITHHELD if BUILDS_AN_ENGINE[text] else OURS)
    assert not set(OURS) & set(ENGINES)


@pytest.mark.parametrize("sources", [(), (None,), (notebook(),)], ids=["none", "no source", "no cells"])
def test_without_the_instructor_s_notebooks_they_are_withheld(sources: tuple) -> None:
    assert withheld_from(*sources) == WITHHELD


@pytest.mark.parametrize(("of_base", "found"), [(True, ["only_in_base"]), (False, [])])
def test_a_library_of_the_base_python_counts_if_the_environment_uses_it(
    of_base: bool, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_in_base.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    if of_base:
        monkeypatch.setattr(site, "getsitepackages", lambda: [str(tmp_path)])
    assert libraries_in([notebook("import only_in_base")]) == found
