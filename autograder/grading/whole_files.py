"""Files that are there as a whole or not at all: half a table of marks would be imported like a whole one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole(target: Path) -> Iterator[Path]:
    """Where to write what is to be `target`: it takes that name when all is written. Raises OSError."""
    draft = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
    try:
        yield draft
        os.replace(draft, target)
    except OSError as error:
        if error.filename in (None, str(draft)):
            error.filename = str(target)
        raise
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
