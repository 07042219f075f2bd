"""Other systems, as far as they can be imitated here: no POSIX, no UTF-8, no make."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.lessons.audit.variants import solved_release
from autograder.lessons.builder.lesson_files import place_files
from autograder.lessons.builder.notebook import assemble
from autograder.lessons.student.shell import CANNOT_RUN, RECORDED, SHOWED, STANDS_IN
from autograder.notebooks.cells import has_tag, is_test
from autograder.student import check_gradients
from tests.autograder import student_engines

MEANT = "raises-exception"
ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_a_student_needs_neither_posix_nor_utf_8(tmp_path: Path) -> None:
    """Run in a folder whose name has a space and a letter that ASCII lacks."""
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONWARNDEFAULTENCODING": "1"}
    command = [sys.executable, "-m", "tests.without_posix", str(tmp_path / "my lessöns"), "02", "05"]
    ran = subprocess.run(command, cwd=ROOT, env={**os.environ, **ascii_only}, capture_output=True, encoding="utf-8")
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    assert "lesson 02: 0 errors" in ran.stdout
    assert "lesson 05: 0 errors" in ran.stdout
    delivered = {path.stem for path in (tmp_path / "my lessöns").glob("[0-9]*/*.ipynb")}
    assert len({name.removesuffix("_further") for name in delivered}) == 17


@pytest.mark.slow
@pytest.mark.parametrize("lesson", ["02_scalar_engine", "05_leaves_and_accumulation", "07_grad_modes"])
def test_exercises_and_checks_do_without_pytorch(lesson: str, tmp_path: Path) -> None:
    text = ROOT / "course" / "lessons" / lesson / f"{lesson}.py"
    notebook = solved_release(assemble(text))
    place_files(text, ROOT / "course", tmp_path)
    recorded = {cell.source: [{"text/plain": f"recorded of {n}"}] for n, cell in enumerate(notebook.cells, 1)}
    (tmp_path / RECORDED).write_text(json.dumps(recorded), encoding="utf-8")
    notebook.cells.insert(
        0, new_code_cell("import sys\nsys.modules['torch'] = None  # as where there is no build of it")
    )
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=300, resources=place).execute()
    said = {index: "\n".join(map(_told, cell.get("outputs", []))) for index, cell in enumerate(notebook.cells)}
    tests = [index for index, cell in enumerate(notebook.cells) if is_test(cell)]
    assert len(tests) > 5
    assert [said[index] for index in tests if "Error" in said[index] or "wrong" in said[index]] == []
    assert "points" in said[tests[0]] or "right" in said[tests[0]]
    uses = [index for index, cell in enumerate(notebook.cells) if "import torch" in cell.source and index]
    assert all(STANDS_IN in said[index] for index in uses)
    errors = [index for index, cell in enumerate(notebook.cells) if _failed(cell) and not has_tag(cell, MEANT)]
    assert [said[index] for index in errors if CANNOT_RUN.partition("{")[0] not in said[index]] == []
    assert len(errors) < 3
    shown = [index for index in said if f"{SHOWED}\nrecorded of {index}" in said[index]]
    assert shown == errors
    assert "PyTorch:" not in "".join(said[index] for index in said if index not in tests)


def test_a_card_says_that_nothing_was_compared_with_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    for user in ("autograder.checks.gradients", "autograder.runs.expected"):
        monkeypatch.setattr(f"{user}.has_torch", lambda: False)
    engine = student_engines.closures(("operands_swapped", "*"))
    card = check_gradients(lambda a, b: a * b + b * 0.25, [(), ()], engine=engine, points=1).reports[0].text()
    assert "PyTorch: not installed here" in card
    assert "swapped" in card
    assert card.count("PyTorch") == 1


def _failed(cell: NotebookNode) -> bool:
    return any(output.output_type == "error" for output in cell.get("outputs", []))


def _told(output: NotebookNode) -> str:
    if output.output_type == "error":
        return "\n".join((output.ename, *output.traceback))
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))


def bootstrap(name: str) -> ModuleType:
    """bootstrap.py, imported as on a system of this name."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "bootstrap.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with mock.patch("platform.system", return_value=name):
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("system", "programs", "python"), [("Darwin", "bin", "bin/python"), ("Windows", "Scripts", "Scripts/python")]
)
def test_the_environment_is_made_where_the_system_has_it(
    tmp_path: Path, system: str, programs: str, python: str
) -> None:
    module, commands = bootstrap(system), []

    def note(command: list[str], **more: Any) -> subprocess.CompletedProcess:
        commands.append([str(part) for part in command])
        return subprocess.CompletedProcess(command, 0, "", "")

    with mock.patch.object(subprocess, "run", note):
        module.create_environment(tmp_path / "venv", "course")
    assert commands[0][1:3] == ["-m", "venv"]
    assert {command[0] for command in commands[1:]} == {str(tmp_path / "venv" / python)}
    assert (tmp_path / "venv" / "ready").read_text() == "course"
    assert module.program(["autograder", "lab"]) == [str(module.VENV / programs / "autograder"), "lab"]


@pytest.mark.parametrize(("free", "said"), [(0.1e9, "disk is full"), (80e9, "needs the internet")])
def test_an_installation_that_fails_says_what_to_do(free: float, said: str) -> None:
    module = bootstrap("Linux")
    with (
        mock.patch.object(module.shutil, "disk_usage", return_value=mock.Mock(free=free)),
        pytest.raises(SystemExit, match=said) as stopped,
    ):
        module.run([sys.executable, "-c", "raise SystemExit(1)"])
    assert "run the same command again" in str(stopped.value)


def test_a_full_disk_is_named_before_anything_is_installed(tmp_path: Path) -> None:
    module = bootstrap("Linux")
    with (
        mock.patch.object(module.shutil, "disk_usage", return_value=mock.Mock(free=0.1e9)),
        mock.patch.object(module, "create_bare_environment") as created,
        pytest.raises(SystemExit, match=r"disk is full \(0\.1 GB free\)\. Make room"),
    ):
        module.create_environment(tmp_path / "venv", "course")
    created.assert_not_called()


def test_an_old_python_is_named_with_what_to_do() -> None:
    module = bootstrap("Linux")
    with (
        mock.patch.object(module.sys, "version_info", (3, 10, 2)),
        pytest.raises(SystemExit, match=r"needs Python 3\.11"),
    ):
        module.main()


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize(
    ("version", "said"), [("", "python3 is not installed."), ("Python 3.9.2", "python3 is Python 3.9.2.")]
)
def test_make_says_which_python_it_needs_and_which_it_found(tmp_path: Path, version: str, said: str) -> None:
    for program in ("make", "sh", "bash"):
        if found := shutil.which(program):
            (tmp_path / program).symlink_to(found)
    if version:
        python = tmp_path / "python3"
        python.write_text(f'#!/bin/sh\n[ "$1" = "-c" ] && exit 1\necho {version}\n')
        python.chmod(0o755)
    command = [str(tmp_path / "make"), "quick", "-C", str(ROOT)]
    made = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert made.returncode != 0
    assert f"This needs Python 3.11 or newer. {said}\n" in made.stdout


@pytest.mark.parametrize("command", ["lab", "demos", "site", "class", "test", "quick", "lint", "lock", "environment"])
def test_make_and_bootstrap_know_the_same_commands(command: str) -> None:
    assert command in bootstrap("Linux").COMMANDS
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert command == "environment" or f" {command}" in f" {rules.split('.PHONY:')[1]}"


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_step_that_fails_fails_the_tests(failing: int) -> None:
    module = bootstrap("Linux")
    lists = [[[sys.executable, "-c", f"raise SystemExit({int(number == failing)})"]] for number in range(3)]
    with mock.patch.object(module, "program", lambda command: command):
        assert module.steps(*lists) == 1
        assert module.steps(*(steps for number, steps in enumerate(lists) if number != failing)) == 0
