"""Forked kernels are like any others: they have their own folder, names and random numbers, and can be stopped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograder.lessons.audit import forked_kernel, kernel_run
from autograder.lessons.audit.kernel_run import failures, run_in_kernel

pytestmark = [
    pytest.mark.slow,  # they start kernels
    pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only"),
]
LAUNCH = ["-m", "ipykernel_launcher", "-f", "connection.json"]


def run(folder: Path, *sources: str, forked: bool = True) -> NotebookNode:
    return run_in_kernel(new_notebook(cells=[new_code_cell(source) for source in sources]), folder, forked)


def printed(notebook: NotebookNode) -> list[str]:
    """What each cell printed, if anything. The kernel's threads decide in how many pieces a stream arrives."""
    texts = [[o.get("text", o.get("evalue", "")) for o in cell.outputs] for cell in notebook.cells if cell.outputs]
    return ["".join(text).strip() for text in texts]


LOOKS = (
    "print(sorted(globals()))",
    "import gc, os, signal, subprocess, sys\nprint(os.getcwd(), sys.path, sys.argv[:2], sys.flags)",
    "print(__name__, sys.modules['__main__'].__dict__ is globals(), os.getpgid(0) == os.getpid())",
    "print(sorted((name, value) for name, value in os.environ.items() if name != 'JPY_PARENT_PID'))",
    "print([signal.getsignal(number) for number in signal.valid_signals()], gc.isenabled(), gc.get_threshold())",
    "print(type(get_ipython()).__name__, get_ipython().InteractiveTB.mode, sys.getrecursionlimit())",
    "print(subprocess.run(['true']).returncode, repr(sys.stdin.read()))",
    "import matplotlib\nprint(matplotlib.get_backend())",
)


def test_a_forked_kernel_looks_like_one_that_was_started(tmp_path: Path) -> None:
    forked = printed(run(tmp_path, *LOOKS))
    assert forked == printed(run(tmp_path, *LOOKS, forked=False))
    assert len(forked) == len(LOOKS)
    assert str(tmp_path) in forked[1]


def test_what_a_lesson_does_not_import_is_not_there(tmp_path: Path) -> None:
    (problem,) = failures(run(tmp_path, "torch.ones(3)"))
    assert "NameError: name 'torch' is not defined" in problem


def test_figures_are_pictures_in_the_notebook(tmp_path: Path) -> None:
    notebook = run(tmp_path, "import matplotlib.pyplot as plt\n_ = plt.plot([1, 3])")
    assert "image/png" in notebook.cells[0].outputs[0].data


def test_two_kernels_share_neither_names_nor_random_numbers(tmp_path: Path) -> None:
    imports = "import random\nimport numpy as np"
    source = "print('kept' in globals(), random.random(), np.random.random())\nkept = 1"
    first, second = (printed(run(tmp_path, imports, source))[0].split() for _ in range(2))
    assert first[0] == second[0] == "False"
    assert first[1] != second[1]
    assert first[2] != second[2]


def test_a_cell_without_end_is_interrupted_and_the_rest_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_run, "SECONDS_PER_CELL", 1)
    notebook = run(tmp_path, "while True:\n    pass", "print('after it')")
    assert notebook.cells[0].outputs[0].ename == "KeyboardInterrupt"
    assert printed(notebook)[-1] == "after it"


def test_a_kernel_that_dies_is_reported_and_the_next_one_runs(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the kernel died"):
        run(tmp_path, "import os\nos._exit(3)")
    assert printed(run(tmp_path, "print(1)")) == ["1"]


def test_what_a_cell_leaves_to_the_end_is_done_before_a_kernel_ends(tmp_path: Path) -> None:
    at_exit = "import atexit\nfrom pathlib import Path\n_ = atexit.register(Path('at_exit').write_text, 'done')"
    thread = "import threading\nthreading.Timer(0.5, Path('by_thread').write_text, ('done',)).start()"
    assert failures(run(tmp_path, at_exit, thread)) == []
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"at_exit": "done", "by_thread": "done"}


def test_a_new_process_forks_when_the_old_one_has_ended(tmp_path: Path) -> None:
    forked_kernel.fork_server().close()
    assert printed(run(tmp_path, "print(2)")) == ["2"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([sys.executable, *LAUNCH], ["-f", "connection.json"]),
        ([sys.executable, "-Xfrozen_modules=off", *LAUNCH], ["-f", "connection.json"]),
        (["/opt/another/python", *LAUNCH], None),
        ([sys.executable, "-m", "another_kernel", "-f", "connection.json"], None),
    ],
)
def test_only_the_usual_command_is_replaced(command: list[str], expected: list[str] | None) -> None:
    assert forked_kernel.usual_arguments(command) == expected
