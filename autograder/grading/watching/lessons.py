"""`autograder watch` without a lesson: each assignment for which something arrives is watched by its own process, which
ends when nothing more arrives. So a hub can watch a whole course, and only the lessons of the day cost memory.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event, Thread

from autograder.grading.course import Course, assignments_of, submitted_students
from autograder.grading.errors import CourseError
from autograder.grading.journal import day, now
from autograder.grading.watching.inbound import inbound_folder

AT_ONCE = 3  # processes; each holds workers with the libraries of its course
EVERY = 1.0  # seconds between two looks
QUIET = 120.0  # seconds without a submission after which a lesson's process ends
AFTER_A_FAULT = 300.0  # seconds until a lesson whose process failed is tried again
AGAIN = f"trying again when something arrives for it, or in {AFTER_A_FAULT / 60:.0f} minutes"
Arrivals = frozenset[tuple[str, int]]


@dataclass
class Lessons:
    """The watched lessons of a course. `command` gives the command that watches one of them until it is quiet. `say`
    prints a line, and never raises: a process whose lines nobody takes stands still.
    """

    course: Course
    command: Callable[[str], list[str]]
    say: Callable[[str], None]
    seen: dict[str, tuple[str, Arrivals]] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    again: dict[str, float] = field(default_factory=dict)
    readers: dict[str, Thread] = field(default_factory=dict)

    def until(self, stop: Event, quiet: float | None = None) -> None:
        """Keep looking until told to stop or, with `quiet`, until nothing has arrived or been graded for that many
        seconds. At the end, every process finishes what it is grading. If a second signal raises KeyboardInterrupt
        meanwhile, they stop at once.
        """
        try:
            self._keep_looking(stop, quiet)
        finally:
            try:
                self._end_processes()
            except KeyboardInterrupt:
                self._end_processes()  # this is the second signal for them too
                raise

    def _keep_looking(self, stop: Event, quiet: float | None) -> None:
        last = time.monotonic()
        self.look()
        while not stop.wait(EVERY):
            before = dict(self.seen)
            self.look()
            if self.running or self.seen != before:
                last = time.monotonic()
            elif quiet is not None and time.monotonic() - last > quiet:
                return

    def _end_processes(self) -> None:
        for process in self.running.values():
            process.terminate()
        for lesson, process in self.running.items():
            process.wait()
            self.readers[lesson].join(timeout=1.0)  # its last lines say how it ended

    def look(self) -> None:
        """Note which processes have ended, and start those that are needed: the newest arrivals first."""
        for lesson in [lesson for lesson, process in self.running.items() if process.poll() is not None]:
            if self.running.pop(lesson).returncode != 0:
                self.again[lesson] = time.monotonic() + AFTER_A_FAULT
                self.readers[lesson].join(timeout=1.0)  # its last lines come first
                self.say(f"{lesson}  {AGAIN}")
        today, arrivals = day(now()), self._arrivals()
        waiting = [lesson for lesson, found in arrivals.items() if self._has_news(lesson, (today, found))]
        for lesson in sorted(waiting, key=lambda it: max(when for _, when in arrivals[it]), reverse=True):
            if len(self.running) == AT_ONCE:
                break
            self._start(lesson)
            self.seen[lesson] = today, arrivals[lesson]

    def _has_news(self, lesson: str, state: tuple[str, Arrivals]) -> bool:
        """Whether a lesson without a process needs one: something arrived, or a new day allows new attempts."""
        if lesson in self.running:
            return False
        return self.seen.get(lesson) != state or self.again.get(lesson, float("inf")) < time.monotonic()

    def _arrivals(self) -> dict[str, Arrivals]:
        """The names and modification times of what has arrived for each lesson that has a submission."""
        found: dict[str, set[tuple[str, int]]] = {}
        lessons = assignments_of(self.course)
        for name, changed in self._attempts():
            for lesson in lessons:
                if f"+{lesson}+" in name:
                    found.setdefault(lesson, set()).add((name, changed))
        for lesson in lessons:
            for student in submitted_students(self.course, lesson):
                changed = _changed(str(self.course.folder("submitted", student, lesson)))
                found.setdefault(lesson, set()).add((student, changed))
        for lesson, arrivals in found.items():
            arrivals.add(("release", _changed(str(self.course.folder("release", ".", lesson)))))
        return {lesson: frozenset(arrivals) for lesson, arrivals in found.items()}

    def _attempts(self) -> Iterator[tuple[str, int]]:
        try:
            with os.scandir(inbound_folder(self.course)) as entries:
                yield from [(entry.name, _changed(entry.path)) for entry in entries]
        except (CourseError, OSError):
            return  # nothing was released yet, or the course uses no exchange; the lesson's own watch says so

    def _start(self, lesson: str) -> None:
        self.again.pop(lesson, None)
        process = subprocess.Popen(
            self.command(lesson),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,  # otherwise Ctrl-C in a terminal would reach it, and `terminate` be its second signal
        )
        self.running[lesson] = process
        self.readers[lesson] = Thread(target=self._pass_on, args=(lesson, process), daemon=True)
        self.readers[lesson].start()

    def _pass_on(self, lesson: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.say(f"{lesson}  {line.rstrip()}")


def _changed(path: str) -> int:
    """When a file or folder was last changed, in nanoseconds; 0 if there is none."""
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0
