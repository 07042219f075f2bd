"""Errors of a class run as a whole, rather than of one submission."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator

MACHINE_FAULTS = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EIO),
    errno.EAGAIN,  # no more processes
}
"""Error numbers that no submission is to blame for."""

LOCKED = "database is locked"  # how SQLite says that another program has not finished writing
IN_USE = (
    "Another program is using it, such as Formgrader, nbgrader or a database viewer: close it or wait, and run the "
    "command again."
)

SOCKET_PATH = "AF_UNIX path too long"  # how Python says that the socket of the process for workers cannot be made


class CourseError(Exception):
    """A request that cannot be met, explained to the instructor in one sentence."""


@contextlib.contextmanager
def faults_said() -> Iterator[None]:
    """Turn errors of the machine or the gradebook into a `CourseError`. Anything else is a bug of ours."""
    try:
        yield
    except OSError as error:
        raise CourseError(f"{in_words(error)}.") from error
    except Exception as error:
        if not type(error).__module__.startswith("sqlalchemy"):  # by name: it may not be imported
            raise
        reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        advice = IN_USE if reason == LOCKED else "Check CourseDirectory.db_url (default: gradebook.db)."
        raise CourseError(f"The gradebook cannot be used: {reason}. {advice}") from error


def in_words(error: OSError) -> str:
    """The system's reason, and the file that it concerns."""
    reason = error.strerror or str(error)
    if reason == SOCKET_PATH:
        return f"The path for temporary files is too long: {tempfile.gettempdir()}. Set TMPDIR to a short one (/tmp)"
    return f"{reason}: {error.filename}" if error.filename and str(error.filename) not in reason else reason
