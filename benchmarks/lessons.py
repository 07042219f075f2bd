"""What the lessons hold and how they run: one line per lesson, counted from the texts and measured now.

`python -m benchmarks.lessons` counts exercises, points, quiz questions and words of prose, runs each solved notebook in
a real kernel, and gives every mistake that the tests in tests/course plant in the solutions to the lesson's own test
cells. `--quick` only counts.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import re
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from autograder.lessons.build.lesson_files import data_files, lesson_texts

PROJECT = Path(__file__).resolve().parents[1]
COURSE = PROJECT / "course"
TESTS = PROJECT / "tests" / "course"
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


@dataclass(frozen=True)
class Figures:
    """One line. `bugs` are the planted mistakes, `caught` those that cost points on every test cell that they should;
    None where nothing was run.
    """

    lesson: str
    exercises: int
    points: float
    questions: int
    words: int
    bugs: int
    caught: int | None = None
    seconds: float | None = None
    failed_cells: int | None = None


def figures(text: Path, quick: bool) -> Figures:
    """Count one lesson, and run it unless `quick`."""
    from autograder.lessons.build.notebook import assemble
    from autograder.lessons.build.quiz_cells import read_questions
    from autograder.lessons.build.text import read_lesson

    cells = read_lesson(text)
    prose = [c.source for c in cells if c.kind == "markdown" and "hint" not in c.tags]
    quizzes = [cell for cell in cells if "quiz" in cell.tags]
    bugs = planted(text.stem)
    counted = Figures(
        lesson=text.stem,
        exercises=sum(cell.is_solution for cell in cells),
        points=sum(cell.nbgrader.get("points", 0) for cell in cells),
        questions=sum(len(read_questions(cell)) for cell in quizzes),
        words=sum(len(WORD.findall(source)) for source in prose),
        bugs=len(bugs),
    )
    if quick:
        return counted
    seconds, failed = run_solved(assemble(text), text)
    caught = sum(is_caught(text.stem, bug) for bug in bugs)
    return Figures(**{**asdict(counted), "caught": caught, "seconds": seconds, "failed_cells": failed})


def planted(lesson: str) -> list[Any]:
    """The mistakes that the tests of a lesson plant in its solutions."""
    found: list[Any] = []
    for path in sorted(TESTS.glob("test_*.py")):
        if f'LESSON = "{lesson}"' in path.read_text(encoding="utf-8"):
            found += getattr(importlib.import_module(f"tests.course.{path.stem}"), "PLANTED", [])
    return found


def is_caught(lesson: str, bug: Any) -> bool:
    """Whether a planted mistake costs points on all test cells that ought to notice it."""
    planting = importlib.import_module("tests.course.planting")
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lost = planting.marks(lesson, bug).lost
    return bool(lost) and set(bug.costs) <= lost


def run_solved(source: Any, text: Path) -> tuple[float, int]:
    """Seconds that a student's solved notebook takes from top to bottom in a new kernel, and cells that failed."""
    from autograder.lessons.audit.kernel_run import failures, run_in_kernel
    from autograder.lessons.audit.variants import solved_release

    with tempfile.TemporaryDirectory(prefix="lesson-") as name:
        for file in data_files(text, COURSE):
            target = Path(name, "data", file.name)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes())
        began = time.perf_counter()
        notebook = run_in_kernel(solved_release(source), Path(name), forked=False)
        return time.perf_counter() - began, len(failures(notebook))


def total(lines: list[Figures]) -> Figures:
    """All lessons together."""
    columns = {name: [getattr(line, name) for line in lines] for name in list(asdict(lines[0]))[1:]}
    sums: dict[str, Any] = {name: None if None in column else sum(column) for name, column in columns.items()}
    return Figures("all", **sums)


def show(lines: list[Figures]) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table("lesson", box=None, pad_edge=False)
    for name in ("exercises", "points", "questions", "bugs caught", "seconds", "words"):
        table.add_column(name, justify="right")
    for line in [*lines, total(lines)]:
        caught = f"{'-' if line.caught is None else line.caught} of {line.bugs}"
        seconds = "-" if line.seconds is None else f"{line.seconds:.1f}"
        seconds += f" ({line.failed_cells} cells failed)" if line.failed_cells else ""
        counted = (line.exercises, f"{line.points:g}", line.questions, caught, seconds, line.words)
        table.add_row(line.lesson, *map(str, counted))
    Console(width=120).print(table, highlight=False)
    print("\nBugs: mistakes that tests/course plants in the solutions as text, caught by the lesson's own test cells.")
    print("Seconds: the solved notebook in a new kernel, demonstrations included. Words: prose without hints.")


def main() -> None:
    parser = argparse.ArgumentParser(description="Count and run the lessons.")
    parser.add_argument("lessons", nargs="*", help="such as 02; all by default")
    parser.add_argument("--quick", action="store_true", help="only count, run nothing")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="lessons at a time")
    parser.add_argument("--json", type=Path, help="write the figures to a file as well")
    arguments = parser.parse_args()
    texts = lesson_texts(COURSE, arguments.lessons)
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        lines = list(pool.map(figures, texts, [arguments.quick] * len(texts)))
    show(lines)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
