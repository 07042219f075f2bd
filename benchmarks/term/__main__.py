"""`python -m benchmarks.term`: a term of 60 students, three assignments, and what does not agree with the table.

The class hands in by Canvas, Moodle and nbgrader's exchange, from two time zones: late, twice, under another name,
unreadable, or not at all. A test is corrected after it was graded, people mark essays, and the grading is killed at
random moments. The exit status is 1 if a mark, a page or a line differs from `table.toml`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.term.beside import beside_nbgrader
from benchmarks.term.comparing import differences
from benchmarks.term.handing_in import Term, injected
from benchmarks.term.running import Weeks
from benchmarks.term.table import ASSIGNMENTS, class_of


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=60, metavar="N", help="the size of the class (default: 60)")
    parser.add_argument(
        "--kills", type=int, default=4, metavar="N", help="of each grading and of the watch (default: 4)"
    )
    parser.add_argument(
        "--beside-nbgrader",
        type=int,
        metavar="N",
        help="at the end, grade N submissions with `nbgrader autograde`, too",
    )
    arguments = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        weeks = Weeks(Term(Path(folder) / "course", class_of(arguments.students)), arguments.kills, print)
        weeks.live()
        found = differences(weeks)
        beside = beside_nbgrader(weeks.term, arguments.beside_nbgrader) if arguments.beside_nbgrader else ""
    print("\ninjected:", *injected(weeks.term.students), *(f"killed: {kill}" for kill in weeks.kills), sep="\n  ")
    print(
        f"\n{arguments.students} students, {len(ASSIGNMENTS)} assignments: {time.perf_counter() - began:.0f} s in all"
    )
    cost = weeks.cost
    print(f"the runs that came to their end: {cost.wall:.0f} s, {cost.cpu:.0f} s of processor time, {cost.peak:.0f} MB")
    print(*filter(None, [beside]))
    print(f"differences: {len(found)}", *found, sep="\n  ")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
