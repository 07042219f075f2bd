"""What the lessons hold and how they run: one line per lesson, counted from the texts and measured now.

`python -m benchmarks.lessons` counts exercises, points, quiz questions, lines and minutes (by the formula of
benchmarks/reading_time.py, also for the paths of course/paths.toml), runs each solved notebook in a real kernel, and
runs the lesson's own test cells on every mistake that is listed beside it: where it costs points, and what the first
card says. `--quick` only counts. `--mutants` also tries the mutants that `autograder audit --mutants` makes of the
solutions, which takes five minutes more.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from rich.table import Table

from autograder.lessons.builder.lesson_files import lesson_texts, place_files
from autograder.lessons.builder.paths import paths_of
from autograder.lessons.builder.text import read_lesson
from autograder.lessons.mistakes.listed import KnownMistake, mistakes_of
from autograder.lessons.mistakes.signatures import told_apart
from benchmarks.reading_time import (
    FIRST,
    GIVEN,
    MUCH,
    ONLY_RUN,
    STRETCH,
    minutes_of_week,
    only_run,
    reading,
    reading_ease,
)

PROJECT = Path(__file__).resolve().parents[1]
COURSE, TESTS = PROJECT / "course", PROJECT / "tests" / "course"
MUTANTS = 60  # of a lesson


@dataclass(frozen=True)
class Figures:
    """One line of the tables. `given` and `written` count lines of code in the core, `only_run` its definitions that
    nobody need read. `core`, `further`, `first` (before
    the first exercise) and `stretch` (the longest between two exercises) are minutes. `ease` is Flesch's reading ease.
    `statements` about PyTorch and NumPy are run by tests/course. `styles` counts the other right solutions of the
    exercise that has the fewest. `bugs` counts the listed mistakes, and `caught` those that cost points on every test
    cell where they should. `cases` counts the visible ones. `alone`: mistakes with outcomes of their own in the cases;
    `unseen`: those that no case shows. `named`: the first card has the mistake's own words, or its bug's; `misnamed`:
    it is certain of something else. `kept` is the share of points that mistakes keep where they cost some.
    `asked`: how often the judge asks the sandbox in the test cells of the solved notebook, cells included that it runs
    there; `check_seconds` is the median of what a test cell takes.
    `test_words` are those of test cells as students get them. Of the `mutants`, `listed` keep full marks for a listed
    reason, `survivors` without one. None: not run.
    """

    lesson: str
    exercises: int
    points: float
    questions: int
    words: int
    given: int
    written: int
    core: float
    further: float
    only_run: int
    first: float
    stretch: float
    ease: float
    statements: int
    styles: int
    bugs: int
    cases: int
    alone: int
    unseen: int
    test_words: int
    caught: int | None = None
    named: int | None = None
    misnamed: int | None = None
    kept: float | None = None
    mutants: int | None = None
    listed: int | None = None
    survivors: int | None = None
    seconds: float | None = None
    failed_cells: int | None = None
    asked: int | None = None
    check_seconds: float | None = None


def figures(text: Path, quick: bool, mutants: bool) -> Figures:
    """Count one lesson, and run it unless `quick`, with its mutants if asked."""
    from autograder.lessons.builder.notebook import assemble
    from autograder.lessons.builder.quiz_cells import read_questions

    cells = read_lesson(text)
    counts = reading(cells)
    quizzes = [cell for cell in cells if "quiz" in cell.tags]
    bugs, apart = mistakes_of(text), told_apart(text)
    counted = Figures(
        lesson=text.stem,
        exercises=sum(cell.is_solution for cell in cells),
        points=sum(cell.nbgrader.get("points", 0) for cell in cells),
        questions=sum(len(read_questions(cell)) for cell in quizzes),
        words=counts.core.words,
        given=counts.core.given,
        written=counts.core.written,
        core=counts.core.minutes,
        further=counts.further.minutes,
        only_run=len(only_run(cells)),
        first=next(iter(counts.stretches), 0.0),
        stretch=counts.longest_stretch,
        ease=reading_ease(cells),
        statements=statements(text),
        styles=fewest_styles(text),
        bugs=len(bugs),
        cases=apart.cases,
        alone=apart.own if apart.cases else 0,
        unseen=len(apart.unseen) if apart.cases else len(bugs),
        test_words=test_words(text),
    )
    if quick:
        return counted
    ran = mutants_of(text) if mutants else {}
    seconds, failed = run_solved(assemble(text), text)
    ran |= {"seconds": seconds, "failed_cells": failed, **judged(assemble(text), text), **tried_mistakes(text, bugs)}
    return Figures(**{**asdict(counted), **ran})


def mutants_of(text: Path) -> dict[str, Any]:
    """How many mutants of the solutions were tried, and how many keep full marks, as fields of `Figures`."""
    from autograder.lessons.commands.audit import try_mutants

    tried = try_mutants(text, MUTANTS)
    return {"mutants": tried.count, "listed": len(tried.listed), "survivors": len(tried.unlisted)}


def fewest_styles(text: Path) -> int:
    """The number of other solutions of the exercise that has the fewest."""
    from autograder.lessons.builder.notebook import assemble, styles
    from autograder.notebooks.cells import grade_id, is_code_solution

    given = styles(text).values()
    exercises = {grade_id(cell) for cell in assemble(text).cells if is_code_solution(cell)}
    return min(sum(name in style for style in given) for name in exercises if not name.startswith("quiz"))


def statements(text: Path) -> int:
    """The number of a lesson's statements that tests/course runs."""
    listed = text.with_name("statements.txt")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    return sum(line.startswith("# %% ") for line in lines)


def test_words(text: Path) -> int:
    """The number of words in the test cells of a lesson as students get them, quizzes left out."""
    from autograder.lessons.builder.notebook import assemble
    from autograder.lessons.release import release_notebook
    from autograder.notebooks.cells import is_code, is_test

    cells = [cell for cell in release_notebook(assemble(text)).cells if is_test(cell) and is_code(cell)]
    return sum(len(cell.source.split()) for cell in cells if "quiz(" not in cell.source)


def tried_mistakes(text: Path, mistakes: list[KnownMistake]) -> dict[str, Any]:
    """What came of planting each mistake, as fields of `Figures`."""
    from autograder.cards.check_report import SEVERAL
    from autograder.lessons.mistakes.planting import marks

    caught = named = misnamed = 0
    kept = []
    for mistake in mistakes:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = marks(text, mistake)
        caught += bool(found.lost) and set(mistake.costs) <= found.lost
        is_named = mistake.said in found.said or (bool(mistake.bug) and mistake.bug in found.bugs)
        named += is_named
        misnamed += bool(found.said) and not is_named and not found.said.startswith(SEVERAL)
        parts = [found.points[name] for name in mistake.costs if name in found.points]
        kept.append(sum(earned for earned, _ in parts) / max(sum(most for _, most in parts), 1e-9))
    share = sum(kept) / len(kept) if kept else 0.0
    return {"caught": caught, "named": named, "misnamed": misnamed, "kept": share}


def judged(source: Any, text: Path) -> dict[str, Any]:
    """How the solved notebook fares with the judge, as fields of `Figures`."""
    from autograder.lessons.commands.audit import isolated_judge
    from autograder.sandbox.sandbox import Sandbox

    counting = patch.object(Sandbox, "_exchange", autospec=True, side_effect=Sandbox._exchange)
    with tempfile.TemporaryDirectory(prefix="lesson-") as name, counting as exchange:
        place_files(text, COURSE, Path(name))
        verdict = isolated_judge()(source, source, Path(name), b"", points_only=True)
    return {"asked": exchange.call_count, "check_seconds": median(verdict.test_seconds)}


def run_solved(source: Any, text: Path) -> tuple[float, int]:
    """Seconds that a student's solved notebook takes from top to bottom in a new kernel, and cells that failed."""
    from autograder.lessons.audit.kernel_run import failures, run_in_kernel
    from autograder.lessons.audit.variants import solved_release

    with tempfile.TemporaryDirectory(prefix="lesson-") as name:
        place_files(text, COURSE, Path(name))
        began = time.perf_counter()
        notebook = run_in_kernel(solved_release(source), Path(name), forked=False)
        return time.perf_counter() - began, len(failures(notebook))


def show(lines: list[Figures]) -> None:
    """Print the tables: what a lesson asks of a student, what was counted and run, what its cases tell apart."""
    from rich.console import Console

    console = Console(width=120)
    console.print(length_table(lines), highlight=False)
    print(
        "\nMinutes: 180 words or 12 given lines of code per minute, 1.5 minutes per written line of the reference and\n"
        "40 % of that again for finding one's mistakes, half a minute per question of a quiz.\n"
        f"! marks a core over {MUCH} minutes or {GIVEN} given lines, with more than {ONLY_RUN} definitions that are\n"
        f"only run, {FIRST} minutes before the first exercise, or {STRETCH} between two.\n"
        "Ease: Flesch's reading ease of the prose; plain English has 60 to 70, and higher is easier. Syllables are\n"
        "counted by hyphenation, which misses some, so compare lessons with each other.\n"
    )
    console.print(run_table(lines), highlight=False)
    print("\nStatements: claims of a lesson about PyTorch or NumPy that tests/course checks by running them.")
    print("Styles: how many other right solutions, which get full marks, the exercise with the fewest of them has.")
    print("Bugs: the mistakes that are listed beside the lesson, caught by the lesson's own test cells.")
    print("Mutants: automatic changes to the solutions. A listed one keeps full marks for a reason that is given in")
    print("the lesson's survivors.txt. A survivor keeps them without such a reason: no test has caught it.")
    print("Asked: questions of the judge to the sandbox for the solved notebook; check s: the median test cell.")
    print("Seconds: the solved notebook in a new kernel, demonstrations included.\n")
    console.print(case_table(lines), highlight=False)
    print("\nAlone: mistakes with outcomes of their own in the visible cases. Unseen: no visible case shows them.")
    print("Named: the first card has the mistake's own words, or those of its bug. Misnamed: it is certain of another.")
    print("Kept: the share of points that a mistake keeps on the test cells where it costs some.")
    print(f"Lines of Python: course/lessons {python_lines(COURSE / 'lessons')}, tests/course {python_lines(TESTS)}.")


def length_table(lines: list[Figures]) -> Table:
    """How long the lessons are."""
    names = ("words", "given", "written", "core", "further", "only run", "first", "stretch", "ease")
    table = table_of(names)
    for line in lines:
        counts = (str(line.words), marked(line.given, GIVEN), str(line.written))
        times = (
            marked(line.core, MUCH),
            f"{line.further:.0f}",
            marked(line.only_run, ONLY_RUN),
            marked(line.first, FIRST),
            marked(line.stretch, STRETCH),
        )
        table.add_row(line.lesson, *counts, *times, f"{line.ease:.0f}")
    table.add_row("all", *(f"{sum(getattr(line, name) for line in lines):.0f}" for name in names[:5]), "", "", "", "")
    return table


def show_paths(texts: list[Path]) -> None:
    """Print the hours of each path through the course, and its minutes week by week."""
    cores = {text.stem[:2]: read_lesson(text) for text in texts}
    print("\nPaths (course/paths.toml): hours, of at most so many; minutes of each week")
    for path in paths_of(COURSE).values():
        weeks = [minutes_of_week(week, cores) for week in path.weeks]
        hours = (sum(weeks) + path.demos) / 60
        demos = f", demos {path.demos:.0f}" if path.demos else ""
        print(f"{path.name:10} {hours:5.1f} of {path.hours:g}: {', '.join(f'{week:.0f}' for week in weeks)}{demos}")


def marked(count: float, limit: float) -> str:
    """Minutes or lines, with a mark if they are over the limit."""
    return f"{count:.0f}{'!' if round(count) > limit else ' '}"


def run_table(lines: list[Figures]) -> Table:
    """What lessons hold, and what happened when they were run."""
    names = ("exercises", "points", "questions", "statements", "styles")
    mutants = ("mutants", "listed", "survivors")
    table = table_of((*names, "bugs caught", *mutants, "asked", "check s", "seconds"))
    for line in lines:
        caught = f"{shown(line.caught)} of {line.bugs}"
        seconds = "-" if line.seconds is None else f"{line.seconds:.1f}"
        seconds += f" ({line.failed_cells} cells failed)" if line.failed_cells else ""
        tried = (shown(getattr(line, name)) for name in mutants)
        check = "-" if line.check_seconds is None else f"{line.check_seconds:.2f}"
        asked = (shown(line.asked), check)
        table.add_row(line.lesson, *(f"{getattr(line, name):g}" for name in names), caught, *tried, *asked, seconds)
    sums = (f"{sum(getattr(line, name) for line in lines):g}" for name in names[:-1])
    caught = f"{sum(line.caught or 0 for line in lines)} of {sum(line.bugs for line in lines)}"
    run = [line for line in lines if line.mutants is not None]
    tried = (shown(sum(getattr(line, name) for line in run) if run else None) for name in mutants)
    table.add_row(
        "all",
        *sums,
        f"{min(line.styles for line in lines)}",
        caught,
        *tried,
        f"{sum(line.asked or 0 for line in lines)}",
        "",
        "",
    )
    return table


def case_table(lines: list[Figures]) -> Table:
    """What the cases of the lessons tell apart, and what cards said of the listed mistakes."""
    counts = ("test_words", "cases", "bugs", "alone", "unseen", "named", "misnamed")
    table = table_of(("words of tests", "cases", "mistakes", *counts[3:], "kept"))
    for line in lines:
        share = "-" if line.kept is None else f"{line.kept:.0%}"
        table.add_row(line.lesson, *(shown(getattr(line, name)) for name in counts), share)
    sums = [sum(getattr(line, name) or 0 for line in lines) for name in counts]
    kept = [line.kept * line.bugs for line in lines if line.kept is not None]
    table.add_row("all", *map(str, sums), f"{sum(kept) / max(1, sums[2]):.0%}" if kept else "-")
    return table


def python_lines(folder: Path) -> int:
    """The number of lines of the Python files in a folder."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))


def shown(count: int | None) -> str:
    """A count, or a dash for what was not run."""
    return "-" if count is None else str(count)


def table_of(names: tuple[str, ...]) -> Table:
    """An empty table with a column for the lesson and one for each figure."""
    table = Table("lesson", box=None, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Count and run the lessons.")
    parser.add_argument("lessons", nargs="*", help="such as 02; all by default")
    parser.add_argument("--quick", action="store_true", help="only count, run nothing")
    parser.add_argument("--mutants", action="store_true", help="also try mutants of the solutions (five minutes more)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="lessons at a time")
    parser.add_argument("--json", type=Path, help="write the figures to a file as well")
    arguments = parser.parse_args()
    texts = lesson_texts(COURSE, arguments.lessons)
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        lines = list(pool.map(figures, texts, repeat(arguments.quick), repeat(arguments.mutants)))
    show(lines)
    if not arguments.lessons:
        show_paths(texts)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
