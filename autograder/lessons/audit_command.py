"""`autograder audit`: runs the gates on lessons and prints what failed and where."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.lessons.build_command import COURSE

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from autograder.lessons.gates import Finding, Judge


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 02 or 02_scalar_engine; all by default")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="the course's folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings to a file as well")


def run(arguments: argparse.Namespace) -> int:
    """Audit the lessons. The exit status is 1 when a gate failed."""
    from rich.console import Console

    from autograder.lessons.gates import audit_lesson
    from autograder.lessons.places import LessonError, lesson_texts

    try:
        texts = lesson_texts(arguments.course, arguments.lessons)
    except LessonError as error:
        print(error, file=sys.stderr)
        return 1
    if not texts:
        print(f"There are no lessons in {arguments.course / 'lessons'}.", file=sys.stderr)
        return 1
    judge = isolated_judge()
    findings: list[Finding] = []
    with Console(stderr=True).status("") as status:
        for text in texts:
            status.update(text.stem)
            for finding in audit_lesson(text, arguments.course, judge):
                findings.append(finding)
                status.update(f"{text.stem}: {finding.gate}")
    if arguments.json:
        arguments.json.write_text(json.dumps([finding.as_record() for finding in findings], indent=1) + "\n")
    show(findings)
    return int(not all(finding.passed for finding in findings))


def isolated_judge() -> Judge:
    """The judge, in a sandbox where the machine has one. Lessons are our own, so they may be judged without as well."""
    from autograder.judge import judge_notebook
    from autograder.sandbox import isolation_available

    unsafe = not isolation_available()
    if unsafe:
        print("No sandbox on this machine: the lessons' own solutions are judged without isolation.", file=sys.stderr)

    def judge(notebook: NotebookNode, source: NotebookNode, folder: Path) -> Any:
        return judge_notebook(notebook, source=source, secret=b"audit", files=folder, unsafe=unsafe)

    return judge


def show(findings: list[Finding]) -> None:
    """Print a table of the gates, and below it everything that failed."""
    from rich.console import Console
    from rich.table import Table

    table = Table("lesson", "gate", "result", "seconds", "note", box=None, pad_edge=False)
    for finding in findings:
        result = "passed" if finding.passed else "[bold red]FAILED[/bold red]"
        table.add_row(finding.lesson, finding.gate, result, f"{finding.seconds:.1f}", finding.note)
    console = Console()
    console.print(table)
    failed = [finding for finding in findings if not finding.passed]
    for finding in failed:
        console.print(f"\n{finding.lesson}, {finding.gate}:", style="bold", markup=False, highlight=False)
        for problem in finding.problems:
            console.print(f"  {problem}", markup=False, highlight=False)
    console.print(f"\n{len(findings) - len(failed)} of {len(findings)} gates passed.", highlight=False)
