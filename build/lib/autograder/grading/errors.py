"""What goes wrong with a class run as a whole, rather than with one submission."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

MACHINE_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EIO)
"""What no submission is to blame for."""


class CourseError(Exception):
    """A request that cannot be met, said in one sentence for the instructor."""


@contextlib.contextmanager
def faults_said() -> Iterator[None]:
    """Turns what the machine or the gradebook refuses into a `CourseError`. Anything else is a fault of ours."""
    try:
        yield
    except OSError as error:
        raise CourseError(f"{in_words(error)}.") from error
    except Exception as error:
        if not type(error).__module__.startswith("sqlalchemy"):  # which is not imported where nothing needs it
            raise
        reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        raise CourseError(
            f"The gradebook cannot be used: {reason}. Look at CourseDirectory.db_url, gradebook.db if it is not set."
        ) from error


def in_words(error: OSError) -> str:
    """What the system refused, and where."""
    reason = error.strerror or str(error)
    return f"{reason}: {error.filename}" if error.filename and str(error.filename) not in reason else reason
