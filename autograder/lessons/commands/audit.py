"""`autograder audit`: runs the gates on lessons and prints what failed and where."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.course_folder import COURSE
from autograder.lessons.garbage_collection import collect_seldom
from autograder.sandbox.process.limits import Limits

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from autograder.lessons.audit.finding import Finding
    from autograder.lessons.audit.gates import Judge
    from autograder.lessons.audit.mutants import Tried
    from autograder.lessons.audit.passed_gates import PassedGates

PASSED = COURSE.parent / ".build" / "gates"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 02 or 02_scalar_engine; all by default")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="the course's folder")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at a time")
    parser.add_argument(
        "--mutants",
        action="store_true",
        help="change the solutions in small ways, and list the changes that no test notices",
    )
    parser.add_argument(
        "--most", type=int, default=60, metavar="N", help="mutants per lesson, chosen at random (default: 60)"
    )
    parser.add_argument(
        "--all", action="store_true", help="run every gate, including those that unchanged lessons have passed"
    )
    parser.add_argument(
        "--changed", action="store_true", help="only lessons whose own text has changed since they passed all gates"
    )
    parser.add_argument("--passed", type=Path, default=PASSED, metavar="DIR", help="where passed gates are kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the findings to a file as well")


def run(arguments: argparse.Namespace) -> int:
    """Audit the lessons. The exit status is 1 when a gate failed."""
    from rich.console import Console

    from autograder.lessons.audit.passed_gates import PassedGates
    from autograder.lessons.builder.lesson_files import LessonTextError
    from autograder.lessons.builder.paths import texts_asked_for

    try:
        texts = texts_asked_for(arguments.course, arguments.lessons)
    except LessonTextError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.json and not arguments.json.resolve().parent.is_dir():
        print(f"There is no folder {arguments.json.parent} to write {arguments.json.name} into.", file=sys.stderr)
        return 1
    workers = arguments.workers
    if arguments.mutants:
        try:
            return run_mutants(texts, arguments.most, min(workers, len(texts)), arguments.json)
        except LessonTextError as error:
            print(error, file=sys.stderr)
            return 1
    passed = PassedGates(arguments.passed, trusted=not (arguments.all or os.environ.get("CI")))
    if arguments.changed:
        texts = [text for text in texts if not passed.unchanged(text, arguments.course)]
    if not texts:
        print("No lesson has changed since it passed all gates.")
        return 0
    findings = []
    progress = Console(stderr=True)
    with progress.status(f"auditing {len(texts)} lessons"):
        for text, found in zip(texts, audits(texts, arguments.course, workers, passed), strict=True):
            passed.keep(text, arguments.course, found)
            findings += found
            good = sum(finding.passed for finding in found)
            progress.print(f"{text.stem}: {good} of {len(found)} gates passed", highlight=False)
    if arguments.json:
        arguments.json.write_text(json.dumps([finding.as_record() for finding in findings], indent=1) + "\n")
    show(findings)
    return int(not all(finding.passed for finding in findings))


def audits(
    texts: Sequence[Path], course: Path, workers: int, passed: PassedGates | None = None
) -> Iterator[list[Finding]]:
    """The findings of each lesson, in order. Kernel runs start first, because the website waits for them. In each part
    the longest lessons start first, so that no worker is left alone with one of them at the end.
    """
    if workers < 2:
        yield from (audit(text, course, passed=passed) for text in texts)
        return
    with ProcessPoolExecutor(min(workers, 2 * len(texts)), get_context("spawn"), collect_seldom) as pool:
        longest_first = sorted(texts, key=lambda text: text.stat().st_size, reverse=True)
        ran = {text: pool.submit(audit, text, course, "run", passed) for text in longest_first}
        judged = {text: pool.submit(audit, text, course, "judged", passed) for text in longest_first}
        for text in texts:
            build, *others = ran[text].result()
            yield [build, *others, *judged[text].result()[1:]]


def run_mutants(texts: Sequence[Path], most: int, workers: int, report: Path | None) -> int:
    """Make mutants of the solutions of each lesson. The exit status is 1 if a mutant keeps full marks and is not listed
    with a reason, or if the list is wrong."""
    from autograder.lessons.audit.mutants import NO_REASON, as_listed

    if workers < 2:
        found = [try_mutants(text, most) for text in texts]
    else:
        with ProcessPoolExecutor(workers, get_context("spawn"), collect_seldom) as pool:
            found = list(pool.map(try_mutants, texts, repeat(most)))
    for lesson in found:
        survivors = len(lesson.unlisted) + len(lesson.listed)
        print(f"{lesson.lesson}: {lesson.count - survivors} of {lesson.count} mutants cost points", end="")
        print(f", {len(lesson.listed)} listed with a reason" if lesson.listed else "")
        for mutant in lesson.unlisted:
            print(as_listed(mutant, f"(line {mutant.line}, {mutant.what}: {NO_REASON})"))
        for outdated in lesson.outdated:
            print(f"Listed, but {outdated}\n")
    if report:
        report.write_text(json.dumps([asdict(m) for lesson in found for m in lesson.unlisted], indent=1) + "\n")
    return int(not all(lesson.passed for lesson in found))


def try_mutants(text: Path, most: int) -> Tried:
    """Try the mutants of one lesson."""
    from autograder.lessons.audit.gates import SECRETS, points_of_tests
    from autograder.lessons.audit.mutants import chosen_among, mutants_in, survivors_among, tried
    from autograder.lessons.builder.lesson_files import place_files
    from autograder.lessons.builder.notebook import assemble

    source = assemble(text)
    judge = isolated_judge(Limits(cell_seconds=5.0, query_seconds=3.0))
    every = mutants_in(source)
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        place_files(text, text.parents[2], folder)

        def marks(notebook: NotebookNode) -> dict[str, float]:
            verdict = judge(notebook, source, folder, SECRETS[0], points_only=True)
            return {cell.grade_id: cell.points for cell in verdict.cells}

        chosen = chosen_among(every, most)
        return tried(text, every, list(survivors_among(chosen, source, points_of_tests(source), marks)))


def audit(text: Path, course: Path, part: str = "", passed: PassedGates | None = None) -> list[Finding]:
    """The findings of one lesson, or of the gates of one part: "judged" or "run"."""
    from autograder.lessons.audit import forked_kernel

    if part != "judged" and not (passed and passed.trusted and passed.unchanged(text, course)):
        forked_kernel.prepare()  # its imports and ours overlap
    from autograder.lessons.audit import gates

    parts = {"judged": [gates.judged], "run": [gates.run]}.get(part)
    return list(gates.audit_lesson(text, course, isolated_judge(), parts, passed))


def isolated_judge(limits: Limits | None = None) -> Judge:
    """The judge, in a sandbox if the machine has one. Lessons are our own, so they may be judged without one, too."""
    from autograder.files import files_below
    from autograder.judge.judge import judge_notebook
    from autograder.judge.seeds import seed_of
    from autograder.sandbox.files import readable
    from autograder.sandbox.process.isolation import isolation_available
    from autograder.sandbox.process.process import start_confined, start_unsafe

    unsafe = not isolation_available()
    if unsafe:
        print("No sandbox on this machine: the lessons' own solutions are judged without isolation.", file=sys.stderr)

    def judge(notebook: NotebookNode, source: NotebookNode, folder: Path, secret: bytes, **options: Any) -> Any:
        files = readable(files_below(folder), Limits().files_bytes)
        start = start_unsafe if unsafe else start_confined
        options |= {"files": files, "helpers": folder, "limits": limits, "start": start}
        return judge_notebook(notebook, source=source, seed=partial(seed_of, secret), **options)

    return judge


def show(findings: list[Finding]) -> None:
    """Print a table of the gates, and below it everything that failed."""
    from rich.console import Console
    from rich.table import Table

    table = Table("lesson", "gate", "result", "seconds", "note", box=None, pad_edge=False)
    for finding in findings:
        result = "passed" if finding.passed else "[bold red]FAILED[/bold red]"
        seconds = "kept" if finding.kept else f"{finding.seconds:.1f}"
        table.add_row(finding.lesson, finding.gate, result, seconds, finding.note)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    failed = [finding for finding in findings if not finding.passed]
    for finding in failed:
        console.print(f"\n{finding.lesson}, {finding.gate}:", style="bold", markup=False, highlight=False)
        for problem in finding.problems:
            console.print(f"  {problem}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"\n{len(findings) - len(failed)} of {len(findings)} gates passed.", highlight=False)
