"""The weeks of the term, with the commands of docs/instructors.md; some are killed at random moments and run again."""

from __future__ import annotations

import contextlib
import io
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from autograder.cli import main
from autograder.grading.workers.spool import Spool
from benchmarks.grading.measuring import Cost, cost_of
from benchmarks.term.handing_in import Term
from benchmarks.term.table import PS1, PS2, PS3

A_START = 4.0  # seconds until the first is graded, about
QUIET = 4  # seconds without an attempt, after which the watch ends


class Weeks:
    """Lives through the term. `said`: what each command printed. `cost`: of the commands that grade, but for those that
    were killed. `kills`: how many submissions of how many had been graded at each kill.
    """

    def __init__(self, term: Term, kills: int, tell: Callable[[str], None] = lambda line: None) -> None:
        self.term, self.to_kill, self.tell = term, kills, tell
        self.random = random.Random(len(term.students))
        self.said: dict[str, str] = {}
        self.cost = Cost()
        self.kills: list[str] = []
        self.files = term.root.parent

    def live(self) -> None:
        self.term.make()
        self._first_week()
        self._second_week()
        self._third_week()
        for name in (PS1, PS2, PS3):
            self._run(f"grade {name} again", name, 0, "grade", name)
        self.here("export", "export", "--for", "nbgrader", "--to", str(self.files / "grades.csv"))

    def _first_week(self) -> None:
        table = self.term.canvas_gradebook(self.files / "canvas_gradebook.csv")
        download = self.files / "canvas.zip"
        self.term.from_canvas(download)
        self.here("import ps1", "import", PS1, str(download), "--roster", str(table))
        self.term.write_times(PS1)
        self._extend(PS1)
        self._grade("grade ps1", PS1, self.to_kill)
        self._export(PS1, "canvas", "--canvas-gradebook", table, download)

    def _second_week(self) -> None:
        table = self.term.moodle_worksheet(self.files / "moodle_worksheet.csv")
        download, second = self.files / "moodle.zip", self.files / "moodle_again.zip"
        self.term.from_moodle(download)
        self.here("import ps2", "import", PS2, str(download), "--roster", str(table))
        self.term.write_times(PS2)
        self._extend(PS2)
        self._grade("grade ps2 with the first test", PS2, self.to_kill)
        self.term.mark_essays()
        self.term.from_moodle(second, again=True)
        self.here("import ps2 again", "import", PS2, str(second), "--roster", str(table), "--replace")
        self.term.write_times(PS2)
        self.term.release(PS2)
        self._grade("grade ps2", PS2, self.to_kill)
        self._export(PS2, "moodle", "--moodle-worksheet", table, second)

    def _third_week(self) -> None:
        self.term.hand_in_by_exchange()
        self._extend(PS3)
        self._run("watch", PS3, self.to_kill, "watch", PS3, "--attempts-per-day", "2", "--until-quiet", str(QUIET))

    def here(self, name: str, *command: str) -> None:
        """Run a command in this process, and keep what it says."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            status = main([*command, "--course", str(self.term.root)])
        self.said[name] = printed.getvalue()
        if status == 2:
            raise SystemExit(f"{name}: {printed.getvalue()}")

    def _extend(self, assignment: str) -> None:
        for student in self.term.students:
            if until := student.rows[assignment].extension:
                self.here("extension", "extension", assignment, student.id, until)

    def _export(self, assignment: str, platform: str, option: str, table: Path, download: Path) -> None:
        more = ["--feedback", str(download), "--to", str(self.files / f"{platform}.csv")]
        self.here(f"export {assignment}", "export", assignment, "--for", platform, option, str(table), *more)

    def _grade(self, name: str, assignment: str, kills: int) -> None:
        self._run(name, assignment, kills, "grade", assignment, "--feedback")

    def _run(self, name: str, assignment: str, kills: int, *arguments: str) -> None:
        """Run a command that grades: first to be killed some times, then to its end."""
        command = [
            sys.executable,
            "-m",
            "autograder.cli",
            *arguments,
            "--course",
            str(self.term.root),
            "--workers",
            "2",
        ]
        began, there = time.time(), sum(not student.rows[assignment].absent for student in self.term.students)
        for graded in sorted(self.random.randrange(there) for _ in range(kills)):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            moment = time.time() + self.random.uniform(0, A_START)
            while process.poll() is None and (time.time() < moment or self._graded(assignment, began) < graded):
                time.sleep(0.02)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                self.kills.append(f"{name}, with {self._graded(assignment, began)} of {there} graded")
            process.wait()
        # A status of 1 says that something needs a look, which it does.
        whole = ["sh", "-c", '"$@" || [ $? -eq 1 ]', "sh", *command]
        cost = cost_of(whole, self.files)
        self.cost.add(cost)
        self.said[name] = (self.files / "log.txt").read_text()
        self.tell(f"{name}: {cost.wall:.1f} s, {cost.cpu:.1f} s of processor time, {cost.peak:.0f} MB at most")

    def _graded(self, assignment: str, since: float) -> int:
        """How many submissions have been graded since a time, whether or not their marks are written yet."""
        spool = Spool.of(self.term.root, assignment)
        places = self.term.root.glob(f"autograded/*/{assignment}/*.ipynb")
        return sum(_changed(path) >= since for path in [*spool.done.glob("*/result.json"), *places])


def _changed(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):  # it has just come to its place
        return path.stat().st_mtime
    return 0.0
