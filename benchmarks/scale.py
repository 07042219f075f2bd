"""`python -m benchmarks.scale`: where a large class meets a limit. docs/scale.md quotes what it prints.

`machine` grades here, and makes the feedback pages: the processor time of each. `gradebook` writes the marks of many
submissions into SQLite and into PostgreSQL, as a run does. `cluster` grades on Dask workers of this machine, splits the
processor time into what each submission costs a worker and what it costs the process that writes the marks, and
simulates larger clusters from these two parts. A simulation knows no network and no slow worker, so it is a bound.
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.grading.course import generate_assignment, open_course
from autograder.grading.gradebook.assignment_reader import read_assignment
from autograder.grading.gradebook.mark_writer import Marks
from autograder.grading.run import BATCH
from autograder.grading.submission.assignments import Assignment
from autograder.grading.submission.result import Result, ungraded
from benchmarks.grading.assignment import NAME, make_course
from benchmarks.grading.cluster import fresh_cluster
from benchmarks.grading.course import OURS, count_right, grade_with_us, make_released_course
from benchmarks.grading.measuring import cost_of, processor_time_of
from tests.autograder.grading.postgresql import own_server, server_programs

CLUSTERS = (1, 2, 8, 32, 128)
HOUR, RUSH = 3600.0, 100_000  # seconds, and submissions in the last hour before a deadline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--submissions", type=int, metavar="N", help="default: 3000 for the gradebook, 80 otherwise")
    parser.add_argument(
        "--parts", type=float, nargs=2, metavar="S", help="simulate from these seconds of a worker and of the writer"
    )
    arguments = parser.parse_args()
    if arguments.parts:
        simulate(Parts(*arguments.parts))
        return
    measure, usual = MEASURES[arguments.what]
    measure(arguments.submissions or usual)


def measure_machine(submissions: int) -> None:
    """Print what one more submission takes here, and one more page."""
    few = max(4, submissions // 10)
    costs = []
    for count in (few, submissions):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "course"
            make_released_course(root, count, OURS)
            graded, pages = cost_of(grade_with_us(root), root), cost_of(grade_with_us(root, "--feedback"), root)
            costs.append((graded.cpu, pages.cpu, graded.peak))
    each, page = ((costs[1][kind] - costs[0][kind]) / (submissions - few) for kind in (0, 1))
    rate = f"{each:.3f} s of processor time, {HOUR / each:,.0f} an hour and processor"
    print(f"one more of {submissions} submissions with PyTorch's tests: {rate}")
    print(f"one more page: {page:.3f} s; start: {costs[0][0] - few * each:.1f} s")
    print(f"at most {costs[1][2]:.0f} MB, with {os.cpu_count()} workers")


def measure_gradebooks(submissions: int) -> None:
    """Print what each database makes of new submissions (the first and the last third of them), and of the same ones
    with other points: milliseconds of processor time of the writing process, and submissions per second, which depend
    on what else the machine does.
    """
    programs = server_programs()
    print(f"{submissions} submissions of 16 marks, {BATCH} at a time")
    print(f"{'':12}{'first third':>24}{'last third':>24}{'again':>24}")
    for name in ("SQLite", "PostgreSQL") if programs else ("SQLite",):
        server = own_server(programs, fsync=True) if name == "PostgreSQL" else nullcontext("")
        with server as address, tempfile.TemporaryDirectory() as folder:
            db_url, assignment = _gradebook_in(Path(folder) / "course", address)
            marks = Marks(db_url, assignment)
            new = _written(marks, [_result(assignment, number, 0.0) for number in range(submissions)])
            again = _written(marks, [_result(assignment, number, 2.5) for number in range(submissions)])
            marks.close()
        third = len(new) // 3
        print(f"{name:12}{_rate(new[:third])}{_rate(new[-third:])}{_rate(again)}", flush=True)


def _rate(batches: Sequence[tuple[float, float]]) -> str:
    """Batches in words, from the seconds and the processor seconds that each took."""
    wall, cpu = (sum(batch[kind] for batch in batches) / (BATCH * len(batches)) for kind in (0, 1))
    return f"{1000 * cpu:11.1f} ms {1 / wall:6.0f} /s"


def _gradebook_in(root: Path, address: str) -> tuple[str, Assignment]:
    """A released assignment in a database, which is SQLite if no address is given."""
    name = "c.CourseDirectory.course_id = 'scale'\n"  # PostgreSQL refuses a course without a name
    make_course(root, 0, OURS + name + (f"c.CourseDirectory.db_url = {address!r}\n" if address else ""))
    with open_course(root) as course:
        generate_assignment(course, NAME)
        return course.coursedir.db_url, read_assignment(course, NAME)


def _result(assignment: Assignment, number: int, points: float) -> Result:
    """A graded submission, with a message at each cell, as long as usual ones."""
    result = ungraded(assignment, f"student{number:06}", "graded", "")
    message = "This is not true: `assert np.allclose(relu(x), torch.relu(t(x)).numpy())`. " * 2
    cells = tuple(replace(cell, points=points, message=message) for cell in result.cells)
    return replace(result, fingerprint=f"{number}", cells=cells, timestamp="2026-11-30T12:00:00")


def _written(marks: Marks, results: Sequence[Result]) -> list[tuple[float, float]]:
    """The seconds and the processor seconds of this process that each batch took."""
    found = []
    for start in range(0, len(results), BATCH):
        began, used = time.perf_counter(), time.process_time()
        marks.write(results[start : start + BATCH])
        found.append((time.perf_counter() - began, time.process_time() - used))
    return found


@dataclass(frozen=True)
class Parts:
    """Seconds of one more submission: of a worker, and of the process that hands out and writes."""

    worker: float
    writer: float


def measure_clusters(submissions: int) -> None:
    """Print what this machine does with one and two workers, and what the simulation makes of the parts."""
    few, found = max(4, submissions // 10), []
    print(f"measured here, {os.cpu_count()} processors, {submissions} submissions with PyTorch's tests")
    for workers in (1, 2):
        small, large = (_on_dask(count, workers) for count in (few, submissions))
        each = [(after - before) / (submissions - few) for before, after in zip(small, large, strict=True)]
        wall, writer, worker = each
        found.append(Parts(worker, writer))
        said = f"a submission costs a worker {worker:.3f} s of processor time, and the writing process {writer:.3f} s"
        print(f"  {workers} worker{'s' * (workers > 1)}: {HOUR / wall:8,.0f} an hour; {said}", flush=True)
    # What else the machine does only adds to them.
    simulate(Parts(min(it.worker for it in found), min(it.writer for it in found)))


def simulate(parts: Parts) -> None:
    """Print what clusters do if a submission takes them this, and nothing else takes time."""
    print(f"simulated from {parts.worker:.3f} s of a worker and {parts.writer:.3f} s of the writing process")
    for workers in CLUSTERS:
        rate = RUSH / finish([0.0] * RUSH, workers, parts)[-1]
        print(f"  {workers:4} workers: {HOUR * rate:9,.0f} an hour, a class of 1,000 in {1000 / rate:.0f} s")
    print(f"  the writing process alone: at most {HOUR / parts.writer:,.0f} an hour")
    draws = random.Random(1)
    arrivals = sorted(HOUR * draws.random() ** 0.5 for _ in range(RUSH))
    print(f"simulated: {RUSH:,} submissions in the last hour, ever more of them until its end")
    for workers, writers in ((2, 1), (8, 1), (32, 1), (32, 4), (128, 1), (128, 4)):
        done = finish(arrivals, workers, replace(parts, writer=parts.writer / writers))
        waits = sorted(end - came for came, end in zip(arrivals, done, strict=True))
        last = f"the last answer {(done[-1] - HOUR) / 60:.1f} min after the deadline"
        print(f"  {workers:4} workers, {writers} writing: {last}, half of them within {waits[RUSH // 2]:.1f} s")


def _on_dask(submissions: int, workers: int) -> tuple[float, float, float]:
    """Seconds, processor seconds of the command, and processor seconds of the cluster."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "course"
        make_released_course(root, submissions, OURS)
        with fresh_cluster(workers) as (address, process):
            before = processor_time_of(process.pid)
            cost = cost_of(grade_with_us(root, "--cluster", address), root)
            cluster = processor_time_of(process.pid) - before
        if count_right(root) != submissions:
            raise SystemExit("Some marks are wrong.")
    return cost.wall, cost.cpu, cluster


def finish(arrivals: Sequence[float], workers: int, parts: Parts) -> list[float]:
    """When each submission's marks are written, in the order of arrival. The times that a worker takes vary by half."""
    noise = random.Random(2)
    free = [0.0] * workers
    written, done = 0.0, []
    for came in arrivals:
        end = max(came, heapq.heappop(free)) + parts.worker * noise.uniform(0.5, 1.5)
        heapq.heappush(free, end)
        written = max(written, end) + parts.writer
        done.append(written)
    return done


MEASURES = {
    "machine": (measure_machine, 80),
    "gradebook": (measure_gradebooks, 3000),
    "cluster": (measure_clusters, 80),
}


if __name__ == "__main__":
    main()
