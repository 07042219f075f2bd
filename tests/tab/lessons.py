"""Solved lessons, with a mistake in each exercise, in a tab and on Linux: what every cell showed, side by side.

`python -m tests.tab.lessons` runs all lessons, or those named, and prints a table: a row for each lesson, and what
differs. Both sides run the same program, `inside.py`, on the notebooks that students get, one kernel for each lesson.
On Linux what a tab does not have is hidden, so that the same cards are due.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import product
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.lessons.audit.variants import solved_release
from autograder.lessons.builder.lesson_files import lesson_texts, place_files
from autograder.lessons.builder.notebook import assemble
from autograder.lessons.mistakes.listed import KnownMistake, mistakes_of
from autograder.lessons.student.shell import CANNOT_RUN
from autograder.notebooks.cells import grade_id, has_tag, is_code, is_code_solution, is_test
from docs.site.lab import in_node, with_course
from tests.tab.assemble import assembled

HERE = Path(__file__).parent
COURSE = HERE.parents[1] / "course"
NOT_HERE = re.compile(r"not here   (.*)\n +a browser tab has no \w+$", re.MULTILINE)
RIGHT = re.compile(r": (\d+) of (?=\d+ right)")
MISSING = ("torch",)
MEANT = "raises-exception"
PATIENCE = 900  # seconds for a lesson
ROUNDING = re.compile(r"(?<=: )(?:0|\d\.\de-1[0-9])$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A cell to run. `name` says which; `kind` is "cell", "meant" (it shall raise an error), "test", "wrong" (a mistake
    goes in), "card" (its test) or "again"."""

    name: str
    kind: str
    source: str


def steps_of(text: Path, notebook: NotebookNode) -> list[Step]:
    """The cells of a solved notebook. After the first test cell that must notice the first listed mistake of an
    exercise, the exercise runs with it, and that test again; then everything between runs once more as it was.
    """
    cells = [cell for cell in notebook.cells if is_code(cell)]
    names = [grade_id(cell) or f"cell {number}" for number, cell in enumerate(cells)]
    wrong = {noticed: (place, mistake) for place, noticed, mistake in mistakes_in(text, cells)}
    steps = []
    for number, (name, cell) in enumerate(zip(names, cells, strict=True)):
        kind = "test" if is_test(cell) else "meant" if has_tag(cell, MEANT) else "cell"
        steps.append(Step(name, kind, cell.source))
        for place, mistake in [wrong[number]] if number in wrong else []:
            between = [Step(f"{names[k]} again", "again", cells[k].source) for k in range(place, number)]
            steps.append(Step(f"{names[place]}: {mistake.name}", "wrong", mistake.into(cells[place].source)[0]))
            steps += [*between[1:], Step(f"{name} on {names[place]}", "card", cell.source), *between]
    return steps


def mistakes_in(text: Path, cells: Sequence[NotebookNode]) -> Iterator[tuple[int, int, KnownMistake]]:
    """The first mistake of each exercise: the number of its cell, that of the test that must notice it, the mistake."""
    tests = {grade_id(cell): number for number, cell in enumerate(cells) if is_test(cell)}
    seen = set()
    for mistake in mistakes_of(text):
        places = [k for k, cell in enumerate(cells) if is_code_solution(cell) and mistake.into(cell.source)[1]]
        if places and places[0] not in seen and mistake.costs:
            seen.add(places[0])
            yield places[0], tests[mistake.costs[0]], mistake


def deliver(texts: Sequence[Path], folders: Sequence[Path]) -> dict[str, NotebookNode]:
    """The solved notebooks of lessons, by lesson; written into each of these folders as students have them."""
    notebooks = {text.stem: solved_release(assemble(text)) for text in texts}
    for folder, text in product(folders, texts):
        (folder / text.stem).mkdir(parents=True)
        place_files(text, COURSE, folder / text.stem)
        nbformat.write(notebooks[text.stem], folder / text.stem / f"{text.stem}.ipynb")
    return notebooks


def run_in_tab(pyodide: Path, folder: Path, job: dict[str, Any]) -> list[dict[str, Any]]:
    """What the steps of a job showed in a Pyodide in node."""
    return _answers(in_node(pyodide, folder, HERE / "inside.py", "mini-autograd-course"), folder, job)


def run_here(folder: Path, job: dict[str, Any]) -> list[dict[str, Any]]:
    """What the steps of a job showed in this Python, in a process of its own."""
    return _answers([sys.executable, str(HERE / "inside.py")], folder, job | {"missing": MISSING})


def _answers(command: list[str], folder: Path, job: dict[str, Any]) -> list[dict[str, Any]]:
    (folder / "job.json").write_text(json.dumps({"missing": [], **job}), encoding="utf-8")
    variables = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE)
    answers = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    done = [answer for answer in answers if "begins" not in answer]
    if ran.returncode or len(done) < len(job["steps"]):
        died = f"the kernel died: {ran.stderr[-1500:]}"
        done.append(
            {"name": answers[-1].get("begins", "") if answers else "", "shown": [], "printed": "", "error": died}
        )
    return done


@dataclass(frozen=True)
class Compared:
    """What came out in both worlds, for each step that ran."""

    lesson: str
    steps: list[Step]
    tab: list[dict[str, Any]]
    here: list[dict[str, Any]]

    def of(self, kind: str) -> list[tuple[Step, dict[str, Any], dict[str, Any]]]:
        found = zip(self.steps, self.tab, self.here, strict=False)
        return [(step, tab, here) for step, tab, here in found if step.kind == kind]

    @property
    def died(self) -> bool:
        return len(self.tab) < len(self.steps) or any(said["error"].startswith("the kernel died") for said in self.tab)

    @property
    def failures(self) -> list[str]:
        """What a solved lesson must not show, and where the cards differ, each in a line."""
        found = [f"{self.tab[-1]['name']}: {self.tab[-1]['error']}"] if self.died else []
        for step, tab, _ in self.of("test"):
            if not passed(tab):
                found.append(f"{step.name} fails: {tab['error'] or tab['shown']}")
        for step, tab, here in self.of("meant"):
            if tab["error"] != here["error"]:
                found.append(f"{step.name} should raise {here['error']!r}, and raises {tab['error']!r}")
        for step, tab, _ in self.of("cell"):
            if tab["error"] and not says_why(tab):
                found.append(f"{step.name} raises {tab['error']!r}, and does not say why")
            if not tab["error"] and "PyTorch" in tab["printed"]:
                found.append(f"{step.name} prints what is not PyTorch's under its name: {tab['printed']}")
        for step, tab, here in self.of("card"):
            if card(tab) != card(here):
                lines = unified_diff(
                    "\n".join(card(here)).split("\n"), "\n".join(card(tab)).split("\n"), lineterm="", n=0
                )
                found.append("\n    ".join([f"{step.name} differs here (-) and in the tab (+):", *[*lines][2:]]))
        return found

    @property
    def row(self) -> str:
        cells, tests, cards = self.of("cell") + self.of("meant"), self.of("test"), self.of("card")
        answered = sum(says_why(tab) for _, tab, _ in cells)
        right = sum(passed(tab) for _, tab, _ in tests)
        same = sum(card(tab) == card(here) for _, tab, here in cards)
        wrong = sum(not passed(here) for _, _, here in cards)
        expected = {kind: sum(step.kind == kind for step in self.steps) for kind in ("cell", "meant", "test", "card")}
        seconds = [sum(said.get("seconds", 0) for said in side) for side in (self.tab, self.here)]
        return (
            f"| {self.lesson} | {len(cells) - answered} of {expected['cell'] + expected['meant']} | {answered} | "
            f"{right} of {expected['test']} | {same} of {expected['card']} | {wrong} | "
            f"{seconds[0]:.0f} | {seconds[1]:.0f} |"
        )


HEAD = """| lesson | other cells that run | say why not | tests passed | cards the same | wrong here | s | s here |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def says_why(said: dict[str, Any]) -> bool:
    """Whether a cell said in a sentence why it cannot run."""
    return bool(said["error"]) and CANNOT_RUN.partition("{")[0] in said["printed"]


def passed(said: dict[str, Any]) -> bool:
    """Whether a test cell gave all its points, as far as it shows."""
    return not said["error"] and not any(re.search(r"^  wrong ", text, re.MULTILINE) for text in said["shown"])


def card(said: dict[str, Any]) -> list[str]:
    """What a test cell says to a learner: the error, and the texts that it displays. Differences that are rounding are
    alike: exp and the like may differ in their last bit from system to system. A case that a tab cannot run costs
    nothing there, as if it were right."""
    return [_as_if_right(ROUNDING.sub("rounding", text)) for text in (said["error"], *said["shown"])]


def _as_if_right(text: str) -> str:
    text, lacking = NOT_HERE.subn(r"right      \1", text)
    return RIGHT.sub(lambda found: f": {int(found[1]) + lacking} of ", text, count=1)


def compared(text: Path, notebook: NotebookNode, pyodide: Path, places: tuple[Path, Path]) -> Compared:
    """A lesson in both worlds; each has delivered lessons in a place of its own."""
    steps = steps_of(text, notebook)
    job = {"folder": text.stem, "steps": [vars(step) for step in steps]}
    return Compared(text.stem, steps, run_in_tab(pyodide, places[0], job), run_here(places[1], job))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.tab.lessons", description=__doc__)
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="like 02; without a name, all lessons")
    parser.add_argument("--cells", action="store_true", help="also name the cells that say why they cannot run")
    asked = parser.parse_args()
    texts = lesson_texts(COURSE)
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        pyodide = with_course(assembled(), Path(scratch) / "pyodide")
        places = Path(scratch) / "tab", Path(scratch) / "here"
        notebooks = deliver(texts, places)
        print(HEAD, flush=True)
        for text in lesson_texts(COURSE, asked.lessons):
            found = compared(text, notebooks[text.stem], pyodide, places)
            print(found.row, flush=True)
            failed |= bool(found.failures)
            for failure in found.failures:
                print(f"FAILED: {failure}", flush=True)
            for step, tab, _ in found.of("cell") if asked.cells else []:
                if says_why(tab):
                    print(f"  {step.name}: {tab['error'][:200]}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
