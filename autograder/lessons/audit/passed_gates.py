"""A record of passed gates, kept in a folder: a gate need not run again while nothing that decides it has changed.

Only passed gates are kept, each with a fingerprint of the lesson as it was built, of the code that gates run, and of
the packages. If `CI` is set in the environment, or with `autograder audit --all`, every gate runs again. Solved
notebooks are kept with their outputs, for the website.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

import autograder
import mini_autograd
from autograder.files import write_if_changed
from autograder.lessons.audit.finding import Finding
from autograder.lessons.builder.lesson_files import LessonTextError, files_beside
from autograder.sandbox.process.isolation import isolation_available

NOT_RUN = {"grading", "__pycache__"}
"""Folders without code that a gate runs."""


@dataclass(frozen=True)
class PassedGates:
    """The gates that passed, one file per lesson in a folder. If not `trusted`, all gates run again and are kept."""

    folder: Path
    trusted: bool = True

    def note(self, lesson: str, gate: str, fingerprint: str) -> str | None:
        """The note of a gate that passed with this fingerprint; None if it did not."""
        kept = self._read(lesson)["gates"].get(gate, {})
        return kept["note"] if self.trusted and kept.get("fingerprint") == fingerprint else None

    def unchanged(self, text: Path, course: Path) -> bool:
        """Whether all gates passed the last time, and the lesson's own text and files are as they were then."""
        return self._read(text.stem)["text"] == text_hash(text, course) != ""

    def keep(self, text: Path, course: Path, findings: Sequence[Finding]) -> None:
        """Keep the gates of a lesson that passed, and no others."""
        gates = {f.gate: {"fingerprint": f.fingerprint, "note": f.note} for f in findings if f.passed and f.fingerprint}
        whole = all(finding.passed for finding in findings)
        record = {"text": text_hash(text, course) if whole else "", "gates": gates}
        write_if_changed(self._file(text.stem), json.dumps(record, indent=1) + "\n")

    def keep_run(self, lesson: str, fingerprint: str, ran: NotebookNode) -> None:
        """Keep the solved notebook with its outputs."""
        record = {"fingerprint": fingerprint, "notebook": ran}
        write_if_changed(self.folder / f"{lesson}-run.json", json.dumps(record) + "\n")

    def kept_run(self, lesson: str, fingerprint: str) -> NotebookNode | None:
        """The solved notebook with its outputs, if it ran with this fingerprint."""
        with suppress(OSError, ValueError):
            record = json.loads((self.folder / f"{lesson}-run.json").read_text(encoding="utf-8"))
            if record["fingerprint"] == fingerprint:
                return nbformat.from_dict(record["notebook"])
        return None

    def _read(self, lesson: str) -> dict[str, Any]:
        try:
            record = json.loads(self._file(lesson).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            record = {}
        return {"text": "", "gates": {}, **record}

    def _file(self, lesson: str) -> Path:
        return self.folder / f"{lesson}.json"


def fingerprint_of(text: Path, course: Path, source: NotebookNode) -> str:
    """The fingerprint of everything that decides a lesson's gates: its text, its files, its notebook with the engine of
    the lessons before it, the code, and the installed packages."""
    return _hash([text_hash(text, course).encode(), json.dumps(source, sort_keys=True).encode(), _surroundings()])


def text_hash(text: Path, course: Path) -> str:
    """The hash of all files of a lesson and of those that it needs; empty if a file is missing."""
    try:
        own = sorted(file for file in text.parent.iterdir() if file.is_file())
        return _hash([*(file.read_bytes() for file in own), *files_beside(text, course).values()])
    except LessonTextError:
        return ""


@cache
def _surroundings() -> bytes:
    """A hash of the code that gates run, of every package, and of the machine's system."""
    installed = sorted({f"{package.name} {package.version}" for package in importlib.metadata.distributions()})
    system = [platform.python_version(), platform.platform(), isolation_available().description]
    return _hash([*_code(), "\n".join(installed + system).encode()]).encode()


def _code() -> Iterator[bytes]:
    for package in (autograder, mini_autograd):
        root = Path(next(iter(package.__path__)))
        for file in sorted(root.rglob("*")):
            place = file.relative_to(root)
            if file.is_file() and NOT_RUN.isdisjoint(place.parts):
                yield place.as_posix().encode()
                yield file.read_bytes()


def _hash(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} ".encode() + part)
    return digest.hexdigest()
