"""How long the loop takes: one check on a student's machine, and one submission graded by us and by nbgrader.

`python -m benchmarks.first_loop` measures all of it in one run, on the same submissions, and prints ratios, since
seconds alone depend on the machine. nbgrader runs with its own settings: one kernel per notebook and no isolation.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat

PROJECT = Path(__file__).resolve().parents[1]
LESSON = PROJECT / "course" / "lessons" / "02_scalar_engine" / "02_scalar_engine.py"
STOCK = "c = get_config()\nc.CourseDirectory.course_id = 'stock'\n"
ONE_CHECK = """
import json, time
from autograder.student import between, check_gradients

class MiniTensor:
    def __init__(self, data, inputs=(), rule=None):
        self.data, self.grad, self.inputs, self.rule = float(data), 0.0, inputs, rule
    def __mul__(self, other):
        return MiniTensor(self.data * other.data, (self, other), lambda grad: (grad * FIRST, grad * self.data))
    def backward(self, gradient=1.0):
        self.grad += gradient
        for source, share in zip(self.inputs, self.rule(gradient) if self.rule else ()):
            source.backward(share)

times = []
for _ in range(20):
    start = time.perf_counter()
    check_gradients({"a * b": lambda a, b: a * b}, [between(-3.0, 3.0), between(-3.0, 3.0)], points=2)
    times.append(1000 * (time.perf_counter() - start))
print(json.dumps(times))
"""


@dataclass(frozen=True)
class Graded:
    """One way of grading the same submissions: what it took in all, and the marks that it gave."""

    way: str
    submissions: int
    wall: float
    marks: dict[str, float]

    @property
    def per_submission(self) -> float:
        return self.wall / self.submissions


def one_check(right: bool) -> list[float]:
    """Milliseconds of twenty checks, one after the other, in a fresh process."""
    program = ONE_CHECK.replace("FIRST", "other.data" if right else "self.data")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PROJECT)
    return json.loads(done.stdout.splitlines()[-1])


def sandbox_times() -> tuple[float, float]:
    """Milliseconds to start a sandbox with its IPython, and for one question to it; medians."""
    from autograder.sandbox.sandbox import Sandbox

    starts, questions = [], []
    for _ in range(5):
        began = time.perf_counter()
        with Sandbox() as sandbox:
            sandbox.execute("def same(x): return x")
            function = sandbox.lookup("same")
            starts.append(1000 * (time.perf_counter() - began))
            for _ in range(100):
                began = time.perf_counter()
                function(1)
                questions.append(1000 * (time.perf_counter() - began))
    return statistics.median(starts), statistics.median(questions)


def make_course(root: Path, submissions: int) -> None:
    """Make a course of lesson 02 with honest submissions of the pretend class, repeated as often as needed."""
    from autograder.grading.commands.class_run import loaded
    from autograder.grading.pretend_class import pretend_course
    from autograder.grading.pretend_class.students import notebook_of
    from autograder.lessons.builder.notebook import styles

    pretend_course.make_course(root, LESSON)
    honest = [member for member in loaded(PROJECT / "course" / "pretend_class.py").CLASS if not member.hostile]
    name = LESSON.stem
    released, source = (
        nbformat.read(root / step / name / f"{name}.ipynb", as_version=4) for step in ("release", "source")
    )
    for number in range(submissions):
        member = honest[number % len(honest)]
        folder = root / "submitted" / f"{member.student}{number}" / name
        folder.mkdir(parents=True)
        nbformat.write(notebook_of(member, released, source, styles(LESSON), root), folder / f"{name}.ipynb")


def graded(way: str, command: list[str], course: Path) -> Graded:
    """Run a command in a copy of the course, and read the marks it left in the gradebook."""
    from nbgrader.api import Gradebook

    with tempfile.TemporaryDirectory() as folder:
        root = Path(shutil.copytree(course, Path(folder) / "course"))
        if "nbgrader" in command:
            (root / "nbgrader_config.py").write_text(STOCK)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        started = time.perf_counter()
        done = subprocess.run(command, cwd=root, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        wall = time.perf_counter() - started
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
            marks = {entry.student_id: entry.score for entry in gradebook.assignment_submissions(LESSON.stem)}
    return Graded(way, len(marks), wall, marks)


def ways() -> dict[str, list[str]]:
    name = LESSON.stem
    ours = [sys.executable, "-m", "autograder.cli", "grade", name, "--course", "."]
    return {
        "nbgrader autograde": [sys.executable, "-m", "nbgrader", "autograde", name],
        "autograder grade, 1 worker": [*ours, "--workers", "1"],
        "autograder grade, 2 workers": [*ours, "--workers", "2"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()

    checks = {"right": one_check(right=True), "wrong": one_check(right=False)}
    print("one local check, milliseconds (a fresh process; the first includes importing PyTorch)")
    for name, times in checks.items():
        print(f"  {name} gradient: first {times[0]:8.1f}   later {statistics.median(times[1:]):6.1f}")

    start, question = sandbox_times()
    print(f"\none sandbox, milliseconds\n  start {start:.0f}   a question {question:.3f}")

    with tempfile.TemporaryDirectory() as folder:
        make_course(Path(folder) / "course", arguments.submissions)
        results = [graded(way, command, Path(folder) / "course") for way, command in ways().items()]
    base = results[0]
    print(f"\n{base.submissions} submissions of {LESSON.stem}, start of the command included")
    print(f"  {'':30}{'s each':>8}{'times faster':>14}")
    for result in results:
        ratio = base.per_submission / result.per_submission
        print(f"  {result.way:30}{result.per_submission:8.2f}{ratio:14.1f}")
    same = all(result.marks == results[-1].marks for result in results[1:])
    print(f"  marks with one and with two workers are {'the same' if same else 'DIFFERENT'}")
    if arguments.json:
        record = {"checks": checks, "sandbox": [start, question], "grading": [asdict(result) for result in results]}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
