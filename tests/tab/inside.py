"""Runs the cells of notebooks in an IPython shell, and prints what each showed: the same program in a tab and on Linux.

It reads job.json in the working directory: the folder of the lesson, the cells, and modules to hide. Each line that it
prints is an answer, in JSON. Plots are drawn by a mock of Matplotlib, which no registry has for a local Pyodide.
"""

import json
import os
import sys
import time
import zlib
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

OUT = sys.stdout  # what cells print is captured


class Shell(InteractiveShell):
    """A shell as kernels have it: `autograder.student` asks whether there is a kernel."""

    kernel = None


def say(answer: dict) -> None:
    OUT.write(json.dumps(answer) + "\n")
    OUT.flush()


def ran(shell: InteractiveShell, source: str) -> dict:
    """What a cell showed: displayed texts, the error, and what its checks said of its points."""
    began = time.perf_counter()
    with capture_output() as captured:
        result = shell.run_cell(source, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    return {
        "shown": [output.data.get("text/plain", "") for output in captured.outputs],
        "printed": captured.stdout,
        "error": f"{type(error).__name__}: {error}" if error is not None else "",
        "seconds": time.perf_counter() - began,
    }


def mock_matplotlib() -> None:
    """Put a mock in Matplotlib's place whose figures have as many axes, and whose axes as many lines, as are asked."""

    def figure(**options: object) -> MagicMock:
        return MagicMock(subplots=axes, savefig=lambda file, **options: file.write("<svg ></svg>"))

    def axes(rows: int = 1, columns: int = 1, **options: object) -> Any:
        found = np.empty((rows, columns), dtype=object)
        for place in np.ndindex(rows, columns):
            found[place] = MagicMock(plot=MagicMock(return_value=[MagicMock()]), get_figure=figure)
        return found.squeeze()[()]

    pyplot = axes()
    pyplot.subplots = lambda *sizes, **options: (figure(), axes(*sizes))
    parts = {"pyplot": pyplot, "figure": MagicMock(Figure=figure), "ticker": MagicMock(LogLocator=MagicMock)}
    sys.modules |= {"matplotlib": MagicMock(**parts)} | {f"matplotlib.{name}": part for name, part in parts.items()}
    sys.modules["cycler"] = MagicMock()


def draw_alike() -> None:
    """Let checks draw the same inputs under every version of Python: a seed depends on Python's bytecode."""
    from autograder.runs.programs import Program

    Program.seed = lambda program: zlib.crc32(program.name.encode())


def main() -> None:
    job = json.loads(Path("job.json").read_text(encoding="utf-8"))
    for name in job["missing"]:
        sys.modules[name] = None  # on Linux: what a tab does not have
    mock_matplotlib()
    draw_alike()
    os.chdir(job["folder"])
    sys.path.insert(0, "")
    shell = Shell.instance()
    for step in job["steps"]:
        say({"begins": step["name"]})
        say({"name": step["name"], **ran(shell, step["source"])})


if __name__ == "__main__":
    main()
