"""`autograder audit`: runs the gates on lessons and prints what failed and where."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.lessons.build_command import COURSE

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from autograder.lessons.gates import Finding, Judge


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 02 or 02_scalar_engine; all by default")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="the course's folder")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="lessons at a time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings to a file as well")


def run(arguments: argparse.Namespace) -> int:
    """Audit the lessons. The exit status is 1 when a gate failed."""
    from rich.console import Console

    from autograder.lessons.places import LessonError, lesson_texts

    try:
        texts = lesson_texts(arguments.course, arguments.lessons)
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1
    if not texts:
        print(f"There are no lessons in {arguments.course / 'lessons'}.", file=sys.stderr)
        return 1
    workers = min(arguments.workers, len(texts))
    with Console(stderr=True).status(f"auditing {len(texts)} lessons"):
        findings = [finding for found in audits(texts, arguments.course, workers) for finding in found]
    if arguments.json:
        arguments.json.write_text(json.dumps([finding.as_record() for finding in findings], indent=1) + "\n")
    show(findings)
    return int(not all(finding.passed for finding in findings))


def audits(texts: Sequence[Path], course: Path, workers: int) -> Iterator[list[Finding]]:
    """The findings of each lesson, in order. Lessons are audited side by side, each in a process of its own."""
    if workers < 2:
        yield from (audit(text, course) for text in texts)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(audit, texts, repeat(course))


def audit(text: Path, course: Path) -> list[Finding]:
    """The findings of one lesson."""
    from autograder.lessons.gates import audit_lesson

    return list(audit_lesson(text, course, isolated_judge()))


def isolated_judge() -> Judge:
    """The judge, in a sandbox where the machine has one. Lessons are our own, so they may be judged without as well."""
    from autograder.judge import judge_notebook
    from autograder.sandbox import isolation_available

    unsafe = not isolation_available()
    if unsafe:
        print("No sandbox on this machine: the lessons' own solutions are judged without isolation.", file=sys.stderr)

    def judge(notebook: NotebookNode, source: NotebookNode, folder: Path, secret: bytes) -> Any:
        return judge_notebook(notebook, source=source, secret=secret, files=folder, unsafe=unsafe)

    return judge


def show(findings: list[Finding]) -> None:
    """Print a table of the gates, and below it everything that failed."""
    from rich.console import Console
    from rich.table import Table

    table = Table("lesson", "gate", "result", "seconds", "note", box=None, pad_edge=False)
    for finding in findings:
        result = "passed" if finding.passed else "[bold red]FAILED[/bold red]"
        table.add_row(finding.lesson, finding.gate, result, f"{finding.seconds:.1f}", finding.note)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    failed = [finding for finding in findings if not finding.passed]
    for finding in failed:
        console.print(f"\n{finding.lesson}, {finding.gate}:", style="bold", markup=False, highlight=False)
        for problem in finding.problems:
            console.print(f"  {problem}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"\n{len(findings) - len(failed)} of {len(findings)} gates passed.", highlight=False)
