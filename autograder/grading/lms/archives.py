"""Reads a zip archive from any source: no name leads out of its folder, and no member has more bytes than allowed."""

from __future__ import annotations

import io
import re
import stat
import unicodedata
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from autograder.files import is_litter
from autograder.grading.errors import CourseError
from autograder.grading.watching.copying import RefusedError
from autograder.notebooks.reading import problem_of

MOST_MEMBERS = 50_000
LONGEST = 200  # characters of a name
CHUNK = 1 << 20
DRIVE = re.compile(r"[A-Za-z]:")


NO_ARCHIVE = (zipfile.BadZipFile, OSError, ValueError, NotImplementedError)
"""What zipfile raises for a file that it cannot read."""


class Archive:
    """An open archive. `names` are the members that may be read, `refused` the others, each with the reason, except for
    the `litter` of operating systems.
    """

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        self.refused: dict[str, str] = {}
        self.litter: list[str] = []
        self._infos: dict[str, list[zipfile.ZipInfo]] = {}
        seen: dict[str, str] = {}  # names by their lowercase: not every file system distinguishes case
        for info in file.infolist():
            name = unicodedata.normalize("NFC", info.filename)
            if "/" not in name:
                name = name.replace("\\", "/")  # as some programs for Windows write it
            if name.endswith("/"):
                continue
            if is_litter(name):
                self.litter.append(name)
            elif reason := _reason_to_refuse(info, name):
                self.refused[name] = reason
            else:
                first = seen.setdefault(name.casefold(), name)
                self._infos.setdefault(first, []).append(info)
                if len(self._infos[first]) > 1:
                    self.refused[name] = "another file has the same name"

    @property
    def names(self) -> list[str]:
        return list(self._infos)

    def read(self, name: str, most: float) -> bytes:
        """The bytes of a member; of several with one name, the first notebook, or else the first. Raises RefusedError
        if it is damaged or has more than `most`, whatever it claims.
        """
        first, *others = (self._content(info, most) for info in self._infos[name])
        return next((copy for copy in (first, *others) if not problem_of(copy)), first) if others else first

    def _content(self, info: zipfile.ZipInfo, most: float) -> bytes:
        parts: list[bytes] = []
        left = most
        try:
            with self._file.open(info) as file:
                for part in _parts(file):
                    left -= len(part)
                    if left < 0:
                        raise RefusedError(f"it is larger than {most / 1e6:.0f} MB (CourseDirectory.max_file_size)")
                    parts.append(part)
        except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError, ValueError) as error:
            raise RefusedError(f"it cannot be unpacked: {error}") from error
        return b"".join(parts)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a downloaded archive. Raises CourseError if there is none, or if it is not a zip archive."""
    if path.is_dir():
        raise CourseError(f"{path} is a folder: give the zip archive as you downloaded it.")
    if not path.is_file():
        raise CourseError(f"There is no file {path}.")
    try:
        file = zipfile.ZipFile(path)
    except NO_ARCHIVE as error:
        raise CourseError(f"{path} cannot be read as a zip archive: {error}. Download it again.") from error
    with file:  # outside the `try`, which would blame the archive for errors of those who use it
        if len(file.infolist()) > MOST_MEMBERS:
            raise CourseError(f"{path} has more than {MOST_MEMBERS} files.")
        yield Archive(file)


def archive_in(content: bytes) -> Archive | None:
    """The archive that a file's bytes are. None if they are none, or if it has too many files."""
    try:
        file = zipfile.ZipFile(io.BytesIO(content))
    except NO_ARCHIVE:
        return None
    return Archive(file) if len(file.infolist()) <= MOST_MEMBERS else None


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    while part := file.read(CHUNK):
        yield part


def _reason_to_refuse(info: zipfile.ZipInfo, name: str) -> str:
    """Why a member is not read; empty if it may be read."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if info.flag_bits & 1:
        return "it is encrypted"
    if kind not in (0, stat.S_IFREG):
        return "it is not a regular file"
    return reason_against(name)


def reason_against(name: str) -> str:
    """Why a path from outside must not be used below a folder; empty if it can be."""
    parts = name.split("/")
    if len(name) > 5 * LONGEST or any(len(part) > LONGEST for part in parts):
        return "its name is too long"
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        return "its name has control characters"
    if name.startswith("/") or "\\" in name or DRIVE.match(name) or any(part in ("", ".", "..") for part in parts):
        return "its name points outside its folder"
    return ""
