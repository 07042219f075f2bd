"""`python alone.py COURSE ASSIGNMENT`: the cells of all submissions, executed once, and nothing else.

No way of grading that runs each submission in a process of its own can take much less: there is one warm Python, which
has run the solution once, a fork of it for each submission, and no isolation, no messages and no verdict. The test
cells are those of the source.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from pathlib import Path

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from autograder.notebooks.cells import code_cells


def main(course: Path, assignment: str) -> None:
    sources = {path.name: nbformat.read(path, 4) for path in (course / "source" / assignment).glob("*.ipynb")}
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    os.chdir(course / "source" / assignment)
    for source in sources.values():
        execute(shell, [cell.source for _, cell in code_cells(source)])
    gc.freeze()
    for folder in sorted((course / "submitted").glob(f"*/{assignment}")):
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            for name, source in sources.items():
                execute(shell, cells(folder / name, source))
            os._exit(0)
        os.waitpid(child, 0)


def cells(submitted: Path, source: nbformat.NotebookNode) -> list[str]:
    """The texts of a submission's cells, with the source's tests."""
    tests = {cell.grade_id: cell.source for _, cell in code_cells(source) if cell.is_test}
    return [tests.get(cell.grade_id, cell.source) for _, cell in code_cells(nbformat.read(submitted, 4))]


def execute(shell: InteractiveShell, texts: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for text in texts:
            shell.run_cell(text)


if __name__ == "__main__":
    # No thread may run when the submissions are forked.
    os.environ.update({"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    main(Path(sys.argv[1]), sys.argv[2])
