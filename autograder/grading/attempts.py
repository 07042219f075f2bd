"""Which of a student's attempts counts, as the course's configuration says, and the better one while another is tried.

A new attempt takes its place in `submitted/` to be graded as everything is. If the best one counts, the one before is
kept meanwhile, with what it has earned, and comes back if the new one earns less. That one is kept lies on the disk, so
a run that is killed in between goes on with it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from traitlets import Bool
from traitlets.config import Configurable

from autograder.files import swap_folders

FILES, EARNED = "files", "earned"


class Attempts(Configurable):
    """Set in `nbgrader_config.py` as `c.Attempts.best = True`."""

    best = Bool(False, help="The best attempt counts, and not the last one.").tag(config=True)
    late_replaces = Bool(
        False, help="An attempt after the due date takes the place of one that was in time, with its late penalty."
    ).tag(config=True)


@dataclass(frozen=True)
class Kept:
    """The submission that was the best before the one in `submitted/`, in a folder of its own."""

    folder: Path

    @property
    def there(self) -> bool:
        return (self.folder / FILES).is_dir()

    @property
    def earned(self) -> float:
        """The points that count for it, after a late penalty."""
        return float((self.folder / EARNED).read_text())

    @contextlib.contextmanager
    def place_for(self, earned: float) -> Iterator[Path]:
        """The path to which the submission is to be moved. Only when it is there does it count as kept."""
        self.forget()
        self.folder.mkdir(parents=True)
        (self.folder / EARNED).write_text(repr(earned))
        yield self.folder / FILES

    def put_back(self, target: Path) -> None:
        """Let it take the place of the submission in `target` again."""
        swap_folders(self.folder / FILES, target, self.folder / "tried")
        self.forget()

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def kept_in(folder: Path) -> dict[str, Kept]:
    """The kept submissions below a folder, by student."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return {name: kept for name in names if (kept := Kept(folder / name)).there}
