"""Puts the lessons into a student's folder, and never overwrites a file that the student has touched.

A hidden state file remembers the hash of every file as it was delivered. A file that still has that hash is ours and is
replaced by a newer version; any other file is the student's: a newer version then goes beside it under a name with the
date. Without the state file (lost, damaged) every file counts as touched, so losing it never loses work. For a notebook
the cells and their outputs count, not the bytes of the file: JupyterLab rewrites a file that was only opened.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import autograder
from autograder.files import write_file
from autograder.lessons.builder.lesson_files import FURTHER, LessonTextError, files_beside, lesson_texts
from autograder.sandbox.inside import engine_file

HIDDEN_FOLDER = ".course"
STATE_FILE = "delivered.json"
PACKAGE = Path(autograder.__file__).parent
BUILDER = (
    *("lessons/builder/*.py", "lessons/release.py", "nbgrader_plugins/configuration.py", "nbgrader_plugins/release.py"),
    *("notebooks/cells.py", "notebooks/regions.py", "notebooks/giving_points.py", "quizzes/sealing.py"),
    "sandbox/inside/engine_file.py",
)
"""The code below PACKAGE that decides what a built lesson looks like."""

MESSAGES = {
    "new": "{name}: delivered",
    "updated": "{name}: replaced by a newer version (you had not changed it)",
    "beside": "{name}: you have worked on it, so the newer version is beside it: {path}",
    "kept": "{name}: yours is kept as it is",
    "taken": "{name}: taken from the file",
    "other": "{name}: you have worked on it here, too, so the one from the file is beside it: {path}",
}


@dataclass(frozen=True)
class Delivered:
    """What became of one file: new, updated, beside (a newer version beside a touched one), kept or unchanged;
    for a file that a student has brought along, taken, other (beside a touched one) or unchanged.
    """

    what: str
    name: str
    path: Path

    @property
    def message(self) -> str:
        return MESSAGES.get(self.what, "{name}").format(name=self.name, path=self.path.name)


@dataclass
class DeliveredLesson:
    """What the state file records about a lesson: what it was made from, and the hash of each file as delivered."""

    fingerprint: str = ""
    newest: dict[str, str] = field(default_factory=dict)
    delivered: dict[str, str] = field(default_factory=dict)


class Workspace:
    """A student's folder of lessons."""

    def __init__(self, folder: Path, today: datetime.date | None = None) -> None:
        self.folder = folder
        self.today = today or datetime.date.today()
        self.hidden = folder / HIDDEN_FOLDER
        self.lessons = _read_state(self.hidden / STATE_FILE)

    def notebook(self, text: Path, further: bool = False) -> Path:
        name = f"{text.stem}{FURTHER * further}"
        return self.folder / name / f"{name}.ipynb"

    def deliver(self, text: Path, course_dir: Path) -> list[Delivered]:
        """Deliver one lesson. Quick when neither the lesson nor the builder has changed. Raises LessonTextError."""
        lesson = self.lessons.setdefault(text.stem, DeliveredLesson())
        fingerprint = _fingerprint(text, course_dir)
        if lesson.fingerprint == fingerprint and all((self.folder / name).exists() for name in lesson.newest):
            return [self._unchanged(lesson, name) for name in lesson.newest]
        result = [self._place(lesson, name, data) for name, data in _files(text, course_dir)]
        lesson.fingerprint = fingerprint
        self._save()
        return result

    def _unchanged(self, lesson: DeliveredLesson, name: str) -> Delivered:
        path = self.folder / name
        touched = _content_hash(path) != lesson.delivered.get(name)
        return Delivered("kept" if touched else "unchanged", name, path)

    def _place(self, lesson: DeliveredLesson, name: str, data: bytes) -> Delivered:
        path = self.folder / name
        newest = _content_hash(path, data)
        there = _content_hash(path) if path.exists() else ""
        if there == newest:
            what = "unchanged"
        elif not there or there == lesson.delivered.get(name):
            write_file(path, data)
            what = "updated" if there else "new"
        elif lesson.newest.get(name) == newest or newest in map(_content_hash, _updates(path)):
            what = "kept"
        else:
            path = _write_beside(path, data, self.today)
            what = "beside"
        lesson.newest[name] = newest
        if what not in ("kept", "beside"):
            lesson.delivered[name] = newest
        return Delivered(what, name, path)

    def take(self, text: Path, files: Mapping[str, bytes], further: bool = False) -> Delivered | None:
        """Take a student's notebook of a lesson, or of its optional part, and its engine, from files by their names in
        a workspace; None if they are not among them. Call it after the lesson was delivered.
        """
        path = self.notebook(text, further)
        name, engine = (f"{path.stem}/{file}" for file in (path.name, engine_file.FILE))
        if name not in files:
            return None
        there = _content_hash(path) if path.exists() else ""
        if there == _content_hash(path, files[name]):
            what = "unchanged"
        elif there in ("", self.lessons.setdefault(text.stem, DeliveredLesson()).delivered.get(name)):
            write_file(path, files[name])
            what = "taken"
        else:
            return Delivered("other", name, _write_beside(path, files[name], self.today, "from the file"))
        if engine in files:
            write_file(self.folder / engine, files[engine])
        return Delivered(what, name, path)

    def _save(self) -> None:
        state = {
            name: {"fingerprint": lesson.fingerprint, "newest": lesson.newest, "delivered": lesson.delivered}
            for name, lesson in self.lessons.items()
        }
        write_file(self.hidden / STATE_FILE, (json.dumps(state, indent=1, sort_keys=True) + "\n").encode())


def deliver_all(texts: Sequence[Path], course_dir: Path, workspace: Workspace) -> tuple[list[Delivered], list[str]]:
    """Deliver every lesson; a lesson that cannot be built does not keep the others from being delivered."""
    delivered: list[Delivered] = []
    problems: list[str] = []
    for text in texts:
        try:
            delivered += workspace.deliver(text, course_dir)
        except LessonTextError as error:
            problems.append(str(error))
    return delivered, problems


def _files(text: Path, course_dir: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a lesson as students get them: name in the workspace, content."""
    # Slow to import, and needed after a change only.
    from autograder.lessons.builder.notebook import assignments, notebook_text
    from autograder.lessons.release import ReleaseError, release_notebook

    for assignment, source in assignments(text).items():
        try:
            released = release_notebook(source)
        except ReleaseError as error:
            raise LessonTextError(f"{text.name}: {error}") from error
        yield f"{assignment}/{assignment}.ipynb", notebook_text(released).encode()
        for name, content in files_beside(text, course_dir).items():
            yield f"{assignment}/{name}", content


def _fingerprint(text: Path, course_dir: Path) -> str:
    """A hash that changes with everything on which a delivered lesson depends."""
    parts = [file.read_bytes() for pattern in BUILDER for file in sorted(PACKAGE.glob(pattern))]
    if b"start_lesson()" in text.read_bytes():  # then it carries the engine of the lessons before it
        parts += [earlier.read_bytes() for earlier in lesson_texts(course_dir) if earlier.name < text.name]
    parts += [text.read_bytes(), *files_beside(text, course_dir).values()]
    parts += [f"{name} {version(name)}".encode() for name in ("nbgrader", "jupytext", "nbformat")]
    return _hash(b"".join(_hash(part).encode() for part in parts))


def _read_state(file: Path) -> dict[str, DeliveredLesson]:
    """The state file's content; empty if it is missing or makes no sense."""
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        return {name: _lesson(entry) for name, entry in state.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
        print(f"{file} could not be read; every notebook counts as yours and is kept.", file=sys.stderr)
        return {}


def _lesson(entry: dict[str, Any]) -> DeliveredLesson:
    def hashes(name: str) -> dict[str, str]:
        return {str(file): str(value) for file, value in entry[name].items()}

    return DeliveredLesson(str(entry["fingerprint"]), hashes("newest"), hashes("delivered"))


def _updates(path: Path) -> list[Path]:
    """The newer versions that were put beside a file."""
    start = f"{path.stem} (update "
    return [file for file in path.parent.iterdir() if file.name.startswith(start) and file.is_file()]


def _write_beside(path: Path, data: bytes, today: datetime.date, why: str = "update") -> Path:
    """Write to `NAME (WHY DATE)`, or with a number after the date if that name is taken."""
    number = 1
    while True:
        suffix = f" ({why} {today.isoformat()}{f', {number}' if number > 1 else ''})"
        beside = path.with_name(f"{path.stem}{suffix}{path.suffix}")
        try:
            with beside.open("xb") as file:
                file.write(data)
        except FileExistsError:
            number += 1
        else:
            return beside


def _content_hash(path: Path, data: bytes | None = None) -> str:
    """The hash of what a student could have changed in a file: a notebook's cells, or all of any other file."""
    data = path.read_bytes() if data is None else data
    if path.suffix == ".ipynb":
        try:
            data = json.dumps([_cell_content(cell) for cell in json.loads(data)["cells"]], sort_keys=True).encode()
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return _hash(data)  # no longer a notebook, so not as delivered
    return _hash(data)


def _cell_content(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell without the details that differ between two ways of writing the same cell."""
    content = {**cell, "source": "".join(cell["source"])}
    content["metadata"] = {name: value for name, value in cell["metadata"].items() if name != "trusted"}
    return content


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
