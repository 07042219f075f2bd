"""Puts the submissions of an archive into `submitted/`: each student's as a whole, or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from nbgrader.api import Gradebook

from autograder.files import swap_folders
from autograder.grading.course import Course, has_gradebook, notebooks_of, require_usable_name, what_there_is
from autograder.grading.errors import CourseError
from autograder.grading.lms.archives import Archive, reason_against
from autograder.grading.lms.names import CANVAS_ANONYMOUS, Upload, platform_of, readings, without_copy
from autograder.grading.lms.roster import Roster, roster_of
from autograder.grading.watching.copying import RefusedError, WhatCounts

REPLACED = "replaced"  # beside `submitted`: submissions that an import has replaced
NOTEBOOK = ".ipynb"
UNCLEAR = "its name fits more than one student. Look in the LMS whose it is, and put it into submitted/ by hand"
TIMESTAMP = "timestamp.txt"  # nbgrader's: when it was handed in


@dataclass
class Imported:
    """The outcome of an import. A person has to look at `kept` and `unknown`. `unlisted`: the roster lacks some of the
    unknown.
    """

    platform: str
    taken: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unlisted: bool = False
    remarks: list[str] = field(default_factory=list)


def import_archive(
    course: Course, assignment: str, archive: Archive, platform: str | None, table: Path | None, replace: bool
) -> Imported:
    """Import all submissions whose student is certain. Raises CourseError if the archive is not from an LMS."""
    platform = required_platform(archive.names, platform, "--from")
    roster = roster_for(course, platform, table)
    done = Imported(platform)
    done.remarks += [f"left out {name}: {reason}" for name, reason in archive.refused.items()]
    notebooks = required_notebooks(course, assignment)
    for student, uploads in uploads_by_student(archive.names, roster, done):
        _import_student(course, assignment, student, HandedIn(archive, notebooks, uploads), replace, done)
    return done


def required_platform(names: Sequence[str], wanted: str | None, option: str) -> str:
    """The platform that an archive is from. `wanted`: what `option` says. Raises CourseError if the names disagree."""
    found = platform_of(names)
    if found is None:
        why = "Canvas does not say whose they are while grading is anonymous."
        more = f" {why}" if any(map(CANVAS_ANONYMOUS.fullmatch, names)) else ""
        raise CourseError(f"No file in the archive is named the way Canvas or Moodle names submissions.{more}")
    if wanted and not any(readings(name, wanted) for name in names):
        raise CourseError(
            f"By the names of its files, the archive is from {found.capitalize()}, so {option} {wanted} does not fit."
        )
    return wanted or found


def roster_for(course: Course, platform: str, table: Path | None) -> Roster:
    """The roster of the course's gradebook, if there is one, and of a table of the LMS. Raises CourseError."""
    with course.gradebook() if has_gradebook(course) else Gradebook("sqlite:///:memory:") as gradebook:
        return roster_of(gradebook, platform, table)


def required_notebooks(course: Course, assignment: str) -> set[str]:
    """`notebooks_of` the assignment. Raises CourseError if it has none, or if nbgrader cannot grade it."""
    found = set(notebooks_of(course, assignment))
    if not found:
        raise CourseError(f"The course has no assignment {assignment!r} with a notebook. {what_there_is(course)}")
    require_usable_name(assignment)
    return found


def uploads_by_student(names: Sequence[str], roster: Roster, done: Imported) -> Iterator[tuple[str, list[Upload]]]:
    """Yield the uploads of each known student. The other uploads are noted in `done`."""
    found: dict[str, list[Upload]] = defaultdict(list)
    keys: dict[str, set[str]] = defaultdict(set)
    unknown: dict[str, str] = {}
    for name in names:
        possible = readings(name, done.platform)
        if not possible:
            done.remarks.append(f"left out {name}: the LMS does not name submissions this way")
            continue
        upload = roster.reading_of(possible)
        if upload is None:
            done.unknown.append(f"{name}: {UNCLEAR}")
            continue
        student = roster.student_of(upload)
        if student is None or reason_against(student) or "/" in student or student.startswith("."):
            unknown[upload.key] = f"{upload.name or 'a student without a name'} (number {upload.key})"
            continue
        found[student].append(upload)
        keys[student].add(upload.key)
    for student, numbers in keys.items():
        if len(numbers) > 1:
            done.unknown.append(f"{student}: the numbers {', '.join(sorted(numbers))} all match this student")
            del found[student]
    done.unknown += unknown.values()
    done.unlisted = bool(unknown)
    yield from sorted(found.items())


class HandedIn:
    """What one student has handed in, under the names that nbgrader expects."""

    def __init__(self, archive: Archive, notebooks: set[str], uploads: Sequence[Upload]) -> None:
        self.archive, self.notebooks, self.uploads = archive, notebooks, uploads

    def chosen(self, student: str, remarks: list[str]) -> dict[str, Upload]:
        """The newest upload for each name. A student's only notebook gets the name of the assignment's only one."""
        found: dict[str, Upload] = {}
        for upload in sorted(self.uploads, key=lambda one: one.version):
            if not upload.file:
                where = upload.platform.capitalize()
                remarks.append(f"{student}: left out {upload.member}: text typed in {where} is not a notebook")
                continue
            name = self._expected(upload.file)
            if name in found:
                remarks.append(f"{student}: there are two files for {name}; the later one is taken")
            found[name] = upload
        own = [name for name in found if name.endswith(NOTEBOOK)]
        if len(own) == len(self.notebooks) == 1 and own[0] != (wanted := f"{next(iter(self.notebooks))}{NOTEBOOK}"):
            remarks.append(f"{student}: {own[0]} is used as {wanted}")
            found[wanted] = found.pop(own[0])
        if any(upload.late for upload in self.uploads):
            remarks.append(f"{student}: Canvas marks this as late; the archive does not say when it was submitted")
        return found

    def _expected(self, file: str) -> str:
        path = PurePosixPath(file)
        stem = without_copy(path.stem)
        is_copy = path.suffix == NOTEBOOK and path.stem not in self.notebooks and stem in self.notebooks
        return str(path.with_name(f"{stem}{NOTEBOOK}")) if is_copy else str(path)

    def contents(self, chosen: Mapping[str, Upload], limits: WhatCounts) -> dict[str, bytes]:
        """The bytes of each file that counts. Raises RefusedError if there are too many."""
        found, room = {}, limits.folder_size
        for name, upload in chosen.items():
            path = PurePosixPath(name)
            if limits.wants(path.name) and not any(map(limits.ignores, path.parts)):
                found[name] = self.archive.read(upload.member, min(limits.file_size, room))
                room -= len(found[name])
        return found


def _import_student(
    course: Course, assignment: str, student: str, files: HandedIn, replace: bool, done: Imported
) -> None:
    target = course.folder("submitted", student, assignment)
    try:
        contents = files.contents(files.chosen(student, done.remarks), WhatCounts.of(course.coursedir))
    except RefusedError as error:
        done.unknown.append(f"{student}: {error}")
        return
    if not any(name.endswith(NOTEBOOK) for name in contents):
        done.unknown.append(f"{student}: there is no notebook among the files")
    elif target.is_dir() and _same(target, contents):
        done.unchanged.append(student)
    elif target.exists() and not replace:
        done.kept.append(student)
    else:
        try:
            _place(course, assignment, student, target, contents)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:  # one file is another's folder
            done.unknown.append(f"{student}: two of its files need the same path: {error.strerror}")
        else:
            done.taken.append(student)


def _same(folder: Path, contents: Mapping[str, bytes]) -> bool:
    """Whether a folder has these files. A timestamp that an instructor added makes no difference."""
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    there -= {TIMESTAMP} - set(contents)
    return there == set(contents) and all((folder / name).read_bytes() == data for name, data in contents.items())


def _place(course: Course, assignment: str, student: str, target: Path, contents: Mapping[str, bytes]) -> None:
    """Replace the student's earlier submission by these files, and keep it in a folder beside `submitted`."""
    part = Path(tempfile.mkdtemp(prefix=".import-", dir=course.root))
    try:
        for name, data in contents.items():
            file = part / "new" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        target.parent.mkdir(parents=True, exist_ok=True)
        before = _free(course.root / REPLACED / assignment / student) if target.exists() else part / "before"
        swap_folders(part / "new", target, before)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _free(folder: Path) -> Path:
    """A folder that does not exist yet: 1, 2, 3 and so on inside this one, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return next(path for number in range(1, 10**6) if not (path := folder / str(number)).exists())
