"""How much a submission may use, and the errors of a sandbox that could not do its work."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1 << 20


class SandboxUnavailable(RuntimeError):  # noqa: N818
    """Student code cannot be isolated on this machine; the message names the command that changes that."""


class SandboxLost(SandboxUnavailable):
    """This machine, and not the submission, ended a submission's process. Another try may succeed."""


class SandboxError(RuntimeError):
    """A question to the sandbox has no answer, for a reason that lies with the submission."""


class SandboxDied(SandboxError):  # noqa: N818
    """The submission's process ended, or had to be stopped, while it was asked something."""


class StaleHandle(SandboxError):  # noqa: N818
    """An object was lost when the submission's process was restarted."""


class NotAnswered(SandboxError):  # noqa: N818
    """The submission did not answer a question in time and was interrupted."""


class NotRebuilt(SandboxError):  # noqa: N818
    """A function, class or object of a test uses something that does not exist where the submission's code runs."""


class Refused(TypeError):  # noqa: N818
    """An operation was refused because the student's object, not its value, would have decided a comparison."""


@dataclass(frozen=True)
class Limits:
    """Limits of one sandbox. Times are seconds of processor time (see `allowance.py`), but `start_seconds` by the
    clock.
    """

    cell_seconds: float = 30.0
    query_seconds: float = 10.0
    start_seconds: float = 120.0
    total_seconds: float = 600.0
    grace_seconds: float = 2.0
    restarts: int = 25
    memory: int = 4096 * MEGABYTE
    processes: int = 64
    open_files: int = 256
    file_size: int = 64 * MEGABYTE
    disk: int = 256 * MEGABYTE
    inodes: int = 50_000  # files and folders in each writable folder
    message_bytes: int = 128 * MEGABYTE
    header_bytes: int = 16 * MEGABYTE
    output_bytes: int = 1 * MEGABYTE
    outputs: int = 200
    files_bytes: int = 100 * MEGABYTE

    def rlimits(self) -> dict[str, int]:
        """Names of `resource` constants and their values, as the process inside sets them."""
        return {
            "RLIMIT_AS": self.memory,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_FSIZE": self.file_size,
            "RLIMIT_CPU": int(self.total_seconds) + 1,
            "RLIMIT_CORE": 0,
        }
