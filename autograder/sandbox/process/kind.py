"""What a confined process is for: what is visible in it besides Python and its packages, and what serves in it.

All kinds are confined in the same way. The kind of a submission's process is here; the judge's own is in
`autograder/judge/apart.py`, because nothing here knows of judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.sandbox.inside.absent import OURS, WITHHELD
from autograder.sandbox.process.limits import Limits

INSIDE = Path(__file__).parents[1] / "inside"
CODE = "/opt/sandbox"


@dataclass(frozen=True)
class Kind:
    """One kind of confined process.

    `code`: the folders with our code that it needs, each with the place where it is visible. `start`: the Python text
    that imports and calls `main` of `inside/main.py`; the next argument is the folder in which it is to be found.
    `serves`: the class whose object loads libraries and serves connections, as `module:name`. `withholds`: the packages
    that are covered up. `sacrificed`: whether the kernel should end it first when memory
    runs out. `limits`: those of the process that forks them, and of its control group.
    """

    name: str
    code: Mapping[str, str]
    start: str
    serves: str
    withholds: tuple[str, ...]
    sacrificed: bool
    limits: Limits

    def path(self, confined: bool) -> str:
        """The folder in which `start` finds the first of these folders."""
        folder, place = next(iter(self.code.items()))
        return str(Path(place if confined else folder).parent)


STUDENT = Kind(
    name="student",
    code={str(INSIDE): f"{CODE}/inside"},
    start="import sys; sys.path.insert(0, sys.argv.pop(1)); from inside.main import main; del sys.path[0]; main()",
    serves="inside.server:Server",
    withholds=WITHHELD,
    sacrificed=True,
    limits=Limits(),
)
"""A submission's process. It sees nothing of ours but the code that serves in it, and no engine like ours."""

OF_OTHER_COURSES = replace(STUDENT, name="student of another course", withholds=OURS)
"""The same, but PyTorch and other engines are there."""
