"""`python -m benchmarks.grading`: the same submissions graded by nbgrader, otter-grader and us, in one run.

Seconds depend on the machine and on what else it does; the processor time of a submission, beside nbgrader's in the
same run, says more. Both include start-up; `further` does not: it is the processor time of one more submission, from
the difference between a class of one and the whole class. "The cells alone" is the limit: the same cells, executed once
in forks of a warm Python, with nothing judged. otter-grader is measured if it is installed (extra `peers`), or with
`--otter` from an environment of its own. `--dask` grades with us alone, in two processes and on a Dask cluster of two
workers in turn (extra `cluster`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.grading import cluster, foreign
from benchmarks.grading.assignment import NAME, make_course, make_otter, right_points
from benchmarks.grading.course import ALONE, CELLS_ALONE, OURS, STOCK, count_right, grade_with_us, make_released_course
from benchmarks.grading.measuring import Cost, cost_of


@dataclass
class Result:
    """One way of grading: how many submissions, what they cost, and how many got the mark that they deserve.

    `first` is what a class of one costs, if that was measured.
    """

    way: str
    submissions: int
    cost: Cost
    right: int
    first: Cost | None = None

    @property
    def further(self) -> float | None:
        """Processor time of one more submission."""
        if self.first is None or self.submissions < 2:
            return None
        return (self.cost.cpu - self.first.cpu) / (self.submissions - 1)


def nbgrader(folder: Path, submissions: int, way: str, command: list[str], configuration: str) -> Result:
    """A course graded by a command that leaves its marks in nbgrader's gradebook."""
    root = folder / "course"
    make_released_course(root, submissions, configuration)
    cost = cost_of([part.replace("COURSE", str(root)) for part in command], root)
    return Result(way, submissions, cost, count_right(root))


def otter(folder: Path, submissions: int, program: list[str]) -> Result:
    """`otter run` takes one submission at a time."""
    archive, notebooks = make_otter(folder / "otter", submissions)
    total, right = Cost(), 0
    for number, path in enumerate(notebooks):
        out = folder / f"out{number}"
        out.mkdir()
        total.add(cost_of([*program, "run", str(path), "-a", str(archive), "-o", str(out)], folder))
        tests = json.loads((out / "results.json").read_text())["tests"]
        right += sum(test.get("score", 0.0) for test in tests) == right_points(number)
    return Result("otter run", submissions, total, right)


def compare_on_other_subjects(students: int) -> list[foreign.Graded]:
    """Every way in turn, on a class of this many students in each assignment."""
    results: list[foreign.Graded] = []
    print(f"{students} students in each of {len(foreign.NAMES)} assignments of other courses")
    print(f"{'':28}{'n':>5}{'same':>7}{'s each':>9}{'times':>7}{'cpu s each':>12}{'times':>7}")
    for way, command, configuration in foreign.ways():
        with tempfile.TemporaryDirectory() as folder:
            results.append(foreign.grade(Path(folder), way, students, command, configuration))
        print(line_beside(results[-1], results[0]), flush=True)
    return results


def line_beside(result: foreign.Graded, base: foreign.Graded) -> str:
    """A line of the table. `same`: the percentage of cells with nbgrader's points."""
    each = result.cost.wall / result.submissions, result.cost.cpu / result.submissions
    times = base.cost.wall / result.cost.wall, base.cost.cpu / result.cost.cpu
    same = 100 * sum(result.marks.get(cell) == points for cell, points in base.marks.items()) / len(base.marks)
    right = "-" if result.way == ALONE else f"{same:.1f}"
    return f"{result.way:28}{result.submissions:5}{right:>7}{each[0]:9.3f}{times[0]:7.1f}{each[1]:12.3f}{times[1]:7.1f}"


def otter_program(asked: str | None) -> list[str] | None:
    if asked:
        return [asked]
    return [sys.executable, "-m", "otter"] if importlib.util.find_spec("otter") else None


def compare(arguments: argparse.Namespace) -> list[Result]:
    """Every way in turn, each with submissions of its own."""
    count = arguments.submissions or 40
    stock = [sys.executable, "-m", "nbgrader", "autograde", NAME, "--course-dir=COURSE"]
    ways = [("nbgrader autograde", stock, STOCK), (ALONE, [*CELLS_ALONE, NAME], STOCK)]
    for workers in (1, 2):
        command = grade_with_us(Path("COURSE"), "--workers", str(workers))
        ways.append((f"autograder grade, {workers} worker{'s' * (workers > 1)}", command, OURS))
    results = []
    for way, command, configuration in ways:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as folder:
            first = nbgrader(Path(one), 1, way, command, configuration).cost
            results.append(nbgrader(Path(folder), count, way, command, configuration))
            results[-1].first = first
            print(line(results[-1], results[0]), flush=True)
    program = otter_program(arguments.otter)
    if program is None:
        print("otter run: not measured, because otter-grader is not installed here (extra `peers`, or --otter PROGRAM)")
        return results
    with tempfile.TemporaryDirectory() as folder:
        results.append(otter(Path(folder), min(count, arguments.otter_submissions or count), program))
        print(line(results[-1], results[0]), flush=True)
    return results


HEAD = f"{'':28}{'n':>5}{'right':>7}{'s each':>9}{'times':>7}{'cpu s each':>12}{'times':>7}{'further':>9}{'peak MB':>9}"


def line(result: Result, base: Result) -> str:
    wall, cpu = result.cost.wall / result.submissions, result.cost.cpu / result.submissions
    further = "" if result.further is None else f"{result.further:.3f}"
    faster = base.cost.wall / base.submissions / wall, base.cost.cpu / base.submissions / cpu
    right = "-" if result.way == ALONE else str(result.right)
    return (
        f"{result.way:28}{result.submissions:5}{right:>7}{wall:9.3f}{faster[0]:7.1f}{cpu:12.3f}{faster[1]:7.1f}"
        f"{further:>9}{result.cost.peak:9.0f}"
    )


def simulate(count: int, workers: int) -> Cost:
    """A large class: the memory over time, and how long the same command takes when nothing has changed."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "course"
        make_course(root, count, OURS)
        cost = cost_of(grade_with_us(root, "--workers", str(workers)), root)
        print(f"{count} submissions, {workers} workers: {cost.wall:.0f} s, {cost.cpu / count:.3f} cpu s each")
        print(f"  right marks: {count_right(root)}")
        print("  memory in MB over the run: " + " ".join(f"{size:.0f}" for size in profile(cost)))
        again = cost_of(grade_with_us(root, "--workers", str(workers)), root)
        print(f"  the same command again: {again.wall:.1f} s")
        shutil.rmtree(root)
    return cost


def profile(cost: Cost, parts: int = 12) -> list[float]:
    """The largest memory in each of this many equal parts of the run."""
    step = cost.wall / parts
    return [max((s for t, s in cost.memory if i * step <= t < (i + 1) * step), default=0.0) for i in range(parts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, help="the number of submissions (default: 40; 300 with --dask)")
    parser.add_argument("--simulate", type=int, metavar="N", help="grade N submissions with us alone, using 2 workers")
    parser.add_argument(
        "--foreign", type=int, metavar="N", help="grade N students in assignments of other courses; also with nbgrader"
    )
    parser.add_argument("--dask", action="store_true", help="grade with us alone: two processes, then a Dask cluster")
    parser.add_argument("--rounds", type=int, default=3, help="how many times --dask does both")
    parser.add_argument("--otter", metavar="PROGRAM", help="the program of otter-grader, if it is not installed here")
    parser.add_argument("--otter-submissions", type=int, metavar="N", help="give otter-grader only the first N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    arguments = parser.parse_args()
    if arguments.foreign:
        record: object = [
            {"way": result.way, "submissions": result.submissions, "cost": asdict(result.cost)}
            for result in compare_on_other_subjects(arguments.foreign)
        ]
    elif arguments.simulate:
        record = asdict(simulate(arguments.simulate, workers=2))
    elif arguments.dask:
        record = [asdict(found) for found in cluster.compare(arguments.submissions or 300, arguments.rounds)]
    else:
        print(HEAD)
        record = [asdict(result) for result in compare(arguments)]
    if arguments.json:
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
