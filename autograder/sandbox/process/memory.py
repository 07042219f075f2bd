"""A limit on the total memory of everything that a submission runs, if this process may make a control group.

A limit per process (an rlimit) exists everywhere, but sixty processes below it can still fill a machine. Control groups
come in two versions; in both, a group is a folder, and a limit is a number written into a file. If none can be made (no
right to write there, no memory controller), only the rlimits apply.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NAME = re.compile(r"autograder-(\d+)-(\d+)-\d+")
VERSIONS = {"cgroup": "memory.limit_in_bytes", "cgroup2": "memory.max"}
ENDING_SECONDS = 1.0
_numbers = itertools.count()


@dataclass
class MemoryGroup:
    """A control group for the submissions of one process, which runs one at a time; without a folder it does nothing.
    The process that made it removes it; its forks, which judge, only use it.
    """

    folder: Path | None = None
    limit_file: str = ""
    limit: int = 0
    owner: int = field(default_factory=os.getpid)

    @classmethod
    def make(cls, limit: int) -> MemoryGroup:
        """A new group below this process's own with a limit in bytes, or one that does nothing."""
        for version, parent in _parents():
            folder = parent / f"autograder-{_process_namespace()}-{os.getpid()}-{next(_numbers)}"
            with contextlib.suppress(OSError):
                _remove_abandoned(parent)
                folder.mkdir()
                group = cls(folder, VERSIONS[version])
                if group.set_limit(limit):
                    return group
                group.remove()
        return cls()

    def __bool__(self) -> bool:
        return self.folder is not None

    def admit(self, process: int) -> None:
        """Put a process, and with it whatever it will start, into the group."""
        if self.folder is not None:
            with contextlib.suppress(OSError):
                (self.folder / "cgroup.procs").write_text(str(process))

    def remove(self) -> None:
        """End the processes that are left in the group, and remove it."""
        if self.folder is not None and self.owner == os.getpid():
            _remove(self.folder)

    def counts(self) -> tuple[int, int]:
        """How many of its processes the kernel has killed because memory ran out, here or on the whole machine, and how
        often its own limit was reached.
        """
        if self.folder is None:
            return 0, 0
        try:
            if self.limit_file == VERSIONS["cgroup2"]:
                events = _numbers_in(self.folder / "memory.events")
                return events["oom_kill"], events["max"]
            reached = int((self.folder / "memory.failcnt").read_text())
            return _numbers_in(self.folder / "memory.oom_control").get("oom_kill", 0), reached
        except (OSError, ValueError, KeyError):  # a kernel that does not count
            return 0, 0

    def set_limit(self, limit: int) -> bool:
        """Set the limit in bytes. Returns whether it is in force."""
        if self.folder is None or limit == self.limit:
            return self.folder is not None
        try:
            (self.folder / self.limit_file).write_text(str(limit))
        except OSError:
            return False
        self.limit = limit
        return True


def _numbers_in(file: Path) -> dict[str, int]:
    """The lines of a file, each a name and a number."""
    return {name: int(number) for name, number in (line.split() for line in file.read_text().splitlines())}


def _parents() -> list[tuple[str, Path]]:
    """The folders of this process's own groups that have a memory controller, with the version of each."""
    found = []
    with contextlib.suppress(OSError, ValueError):
        own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            version, _, options = after.split(" ")[:3]
            root, mounted_on = before.split(" ")[3:5]
            for number, controllers, path in own:
                one = version == "cgroup" and "memory" in controllers.split(",") and "memory" in options.split(",")
                two = version == "cgroup2" and number == "0"
                if one or two:
                    inner = path if root == "/" else path.removeprefix(root)
                    found.append((version, Path(mounted_on) / inner.lstrip("/")))
    return found


def _remove_abandoned(parent: Path) -> None:
    """Remove groups whose owners were killed before they could remove them. A process of another container may have the
    same groups: whether it still runs cannot be seen from here.
    """
    for folder in parent.glob("autograder-*"):
        owner = NAME.fullmatch(folder.name)
        if owner and int(owner[1]) == _process_namespace() and not Path("/proc", owner[2]).exists():
            _remove(folder)


def _process_namespace() -> int:
    """The number of the namespace that gives this process its id."""
    return os.stat("/proc/self/ns/pid").st_ino


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < deadline:
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                return
            _end(folder)
            time.sleep(0.001)
        else:
            return


def _end(folder: Path) -> None:
    """Kill the processes of a group. Another process may have the number of one that has just ended: it is looked up
    again once it cannot change any more.
    """
    members = folder / "cgroup.procs"
    with contextlib.suppress(OSError):
        for number in members.read_text().split():
            with contextlib.suppress(OSError), _descriptor(int(number)) as process:
                if number in members.read_text().split():
                    signal.pidfd_send_signal(process, signal.SIGKILL)


@contextlib.contextmanager
def _descriptor(number: int) -> Iterator[int]:
    process = os.pidfd_open(number)
    try:
        yield process
    finally:
        os.close(process)
