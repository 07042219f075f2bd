"""Copies what a student has handed in, without following links or trusting the folder.

The folder in the exchange belongs to the student, who can change it at any moment: a link in it, or another person's
file, would bring files that the instructor can read into the submission, and from there into the feedback.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from nbgrader.coursedir import CourseDirectory

from autograder.files import is_litter
from autograder.notebooks.reading import problem_of

MOST_FILES, DEEPEST, KILO, CHUNK = 10_000, 20, 1000, 1 << 20


class RefusedError(Exception):
    """A submission that is not taken over, and why."""


@dataclass(frozen=True)
class WhatCounts:
    """Which files of a submission count, by the course's nbgrader settings. Sizes are in bytes."""

    ignore: tuple[str, ...]
    include: tuple[str, ...]
    file_size: float
    folder_size: float

    @classmethod
    def of(cls, coursedir: CourseDirectory) -> WhatCounts:
        sizes = (KILO * coursedir.max_file_size, KILO * coursedir.max_dir_size)
        return cls(tuple(coursedir.ignore), tuple(coursedir.include), *sizes)

    def ignores(self, name: str) -> bool:
        return is_litter(name) or any(fnmatch.fnmatch(name, pattern) for pattern in self.ignore)

    def wants(self, name: str) -> bool:
        """Whether a file of this name counts."""
        return not self.ignores(name) and any(fnmatch.fnmatch(name, pattern) for pattern in self.include)


@dataclass(frozen=True)
class Notebooks:
    """The notebooks of an assignment in a submission: those that can be read, and why the others cannot."""

    readable: frozenset[str]
    problems: Mapping[str, str]

    @classmethod
    def among(cls, names: Iterable[str], read: Callable[[str], bytes | None]) -> Notebooks:
        """`read` gives the content of a file, or None if there is no such file."""
        files = [f"{name}.ipynb" for name in names]
        problems = {name: problem_of(raw) for name in files if (raw := read(name)) is not None}
        return cls(frozenset(name for name in problems if not problems[name]), {k: v for k, v in problems.items() if v})

    @classmethod
    def inside(cls, folder: Path, names: Iterable[str]) -> Notebooks:
        """Those in a folder that nobody else writes to."""
        return cls.among(names, lambda name: path.read_bytes() if (path := folder / name).is_file() else None)

    def harm_to(self, other: Notebooks) -> str:
        """Why a submission with these must not take the place of another one, or nothing."""
        worse = sorted(other.readable - self.readable)
        if not worse:
            return ""
        if worse[0] not in self.problems:
            return f"{worse[0]} is not among its files, and was among those of the one before"
        return f"{worse[0]} is not a notebook, and the one before is ({self.problems[worse[0]].rstrip('.')})"


def copy_submission(source: Path, target: Path, limits: WhatCounts) -> tuple[list[str], float]:
    """Copy the plain files that belong to the owner of `source` into the new folder `target`.

    Returns the names that were left out, and when what was copied last changed, in seconds since 1970. Raises
    `RefusedError` for a folder that is too large, and OSError.
    """
    if not stat.S_ISDIR(os.lstat(source).st_mode):
        raise RefusedError("it is not a folder")
    left_out: list[str] = []
    room, files, owner, changed = limits.folder_size, 0, os.lstat(source).st_uid, 0.0
    for folder, names, descriptor in _folders(source, limits):
        (target / folder).mkdir()
        for name in names:
            files += 1
            if files > MOST_FILES:
                raise RefusedError(f"it has more than {MOST_FILES} files")
            copied = _copy(descriptor, name, target / folder / name, owner, limits.file_size)
            if copied is None:
                left_out.append(str(folder / name))
            else:
                room -= copied[0]
                changed = max(changed, copied[1])
            if room < 0:
                raise RefusedError(
                    f"it is larger than {limits.folder_size / 1e6:.0f} MB (CourseDirectory.max_dir_size)"
                )
        changed = max(changed, os.fstat(descriptor).st_ctime)
    if not target.is_dir():
        raise RefusedError("it disappeared")
    return left_out, changed


def _folders(source: Path, limits: WhatCounts) -> Iterator[tuple[Path, list[str], int]]:
    """The folders from `source` down that count, the names in each that count, and its descriptor. Follows no links."""
    for folder, folders, names, descriptor in os.fwalk(source, follow_symlinks=False):
        relative = Path(folder).relative_to(source)
        links = [name for name in folders if stat.S_ISLNK(os.lstat(name, dir_fd=descriptor).st_mode)]
        deeper = len(relative.parts) < DEEPEST
        folders[:] = [name for name in folders if deeper and name not in links and not limits.ignores(name)]
        yield relative, sorted(filter(limits.wants, [*names, *links])), descriptor


def _copy(folder: int, name: str, target: Path, owner: int, most: float) -> tuple[int, float] | None:
    """Copy one file. Returns its size and when it last changed, or None if it has more than `most` bytes or is not a
    plain file of the owner.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != owner or about.st_size > most:
            return None
        with open(target, "wb") as copy:
            left = about.st_size  # its owner may still be writing
            while left > 0 and (part := file.read(min(left, CHUNK))):
                left -= copy.write(part)
        return about.st_size, os.fstat(descriptor).st_ctime
