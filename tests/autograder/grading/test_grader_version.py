"""A changed grader grades every submission again; a changed display grades none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import pytest

from autograder.grading import grader_version
from autograder.grading.grader_version import ROOTS, deciding_modules, hash_of_code

ROOT = Path(__file__).resolve().parents[3]
LOADED = """
import importlib, json, pkgutil, sys
import autograder.grading.submission.own_steps, autograder.grading.workers.preloaded
import autograder.grading.workers.preloaded_checks, autograder.judge.service
import autograder.nbgrader_plugins, autograder.student
import autograder.lessons.student.progress, autograder.quizzes.sealing, autograder.lessons.student.starting
import autograder.sandbox.inside
for package in (autograder.nbgrader_plugins, autograder.sandbox.inside):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if not module.name.endswith(".main"):
            importlib.import_module(module.name)
print(json.dumps([name for name in sys.modules if name.partition(".")[0] in ("autograder", "mini_autograd")]))
"""
"""What a worker has in memory when it grades: all steps of grading, what lessons import, and the sandbox's side."""
ONE_LINE = "\nchanged = True\n"


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    found = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(found.stdout))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages that tests may change."""
    root = tmp_path_factory.mktemp("tree")
    for package in ("autograder", "mini_autograd"):
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def file_of(name: str, tree: Path) -> Path:
    path = tree.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@contextmanager
def one_line_more(path: Path) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(before + ONE_LINE.encode())
    try:
        yield
    finally:
        path.write_bytes(before)


@pytest.mark.slow
def test_every_module_that_a_worker_has_loaded_is_of_the_grader(loaded: set[str]) -> None:
    assert len(loaded) > 150
    assert not {*loaded, *ROOTS} - deciding_modules(ROOT).keys()


@pytest.mark.slow
def test_a_changed_line_of_any_module_of_the_grader_shows(tree: Path) -> None:
    before = hash_of_code(tree)
    modules = deciding_modules(tree)
    assert "autograder.quizzes.sealing" in modules  # it marks quizzes
    unseen = []
    for name, text in modules.items():
        with mock.patch.object(grader_version, "deciding_modules", return_value=modules | {name: text + ONE_LINE}):
            if hash_of_code(tree) == before:
                unseen.append(name)
    assert not unseen
    with ExitStack() as changed:
        for name in modules:
            changed.enter_context(one_line_more(file_of(name, tree)))
        assert deciding_modules(tree) == {name: text + ONE_LINE for name, text in modules.items()}
    assert hash_of_code(tree) == before


@pytest.mark.parametrize(
    "name",
    [
        *("autograder.cli", "autograder.grading.report.progress_display", "autograder.grading.commands.grade"),
        *(
            "autograder.grading.report.class_report",
            "autograder.lessons.audit.gates",
            "autograder.lessons.commands.audit",
        ),
        "mini_autograd.widgets.demo",
    ],
)
def test_what_cannot_decide_a_mark_may_change(name: str, tree: Path) -> None:
    before = hash_of_code(tree)
    with one_line_more(file_of(name, tree)):
        assert hash_of_code(tree) == before


def test_a_name_in_a_text_is_followed(tmp_path: Path) -> None:
    """nbgrader's configuration names our classes in strings, and an import in parentheses names several modules."""
    package = tmp_path / "autograder"
    (package / "grading").mkdir(parents=True)
    texts = {
        "grading/run.py": 'CLASSES = ["autograder.named.Class"]\n',
        "named.py": "from autograder import (\n    first,\n    second,\n)\n",
        "first.py": "def later():\n    from autograder.third import rule\n",
        **dict.fromkeys(("second.py", "third.py", "fourth.py"), ""),
    }
    for name, text in texts.items():
        (package / name).write_text(text)
    names = [f"autograder.{name}" for name in ("first", "grading.run", "named", "second", "third")]
    assert sorted(deciding_modules(tmp_path)) == names
