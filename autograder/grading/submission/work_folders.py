"""The folders in which a worker grades, for both ways of grading."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WorkFolders:
    """Folders as nbgrader names them, below a root of the worker's own."""

    root: Path
    assignment: str

    def folder(self, step: str, student: str) -> Path:
        return self.root / step / student / self.assignment

    def empty(self) -> None:
        """Remove what the last submission has left."""
        for step in ("submitted", "autograded"):
            shutil.rmtree(self.root / step, ignore_errors=True)
