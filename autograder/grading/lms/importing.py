"""Puts the submissions of an archive into `submitted/`: each student's as a whole, or not at all."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from nbgrader.api import Gradebook

from autograder.files import is_litter, swap_folders
from autograder.grading.course import Course, has_gradebook, notebooks_of, require_usable_name, what_there_is
from autograder.grading.errors import CourseError
from autograder.grading.lms.archives import Archive, archive_in, reason_against
from autograder.grading.lms.names import CANVAS_ANONYMOUS, Upload, platform_of, readings, without_copy
from autograder.grading.lms.roster import Roster, roster_of
from autograder.grading.watching.copying import Notebooks, RefusedError, WhatCounts
from autograder.notebooks.reading import problem_of

REPLACED = "replaced"  # beside `submitted`: submissions that an import has replaced
NOTEBOOK = ".ipynb"
UNCLEAR = "its name fits more than one student. Look in the LMS whose it is, and put it into submitted/ by hand"
TIMESTAMP = "timestamp.txt"  # nbgrader's: when it was handed in
TIME_OF_THE_ONE_BEFORE = (
    "{}: the time of the submission before does not count for this one. Write its own into {}, or it counts as in time"
)


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
    course: Course,
    assignment: str,
    archive: Archive,
    platform: str | None,
    table: Path | None,
    replace: bool,
    student: str = "",
) -> Imported:
    """Import all submissions whose student is certain, or those of a `student` whose own archive it is. Raises
    CourseError if the archive is not from an LMS, or holds nothing of the assignment.
    """
    done = Imported("" if student else required_platform(archive.names, platform, "--from"))
    done.remarks += [f"left out {name}: {reason}" for name, reason in archive.refused.items()]
    notebooks = required_notebooks(course, assignment)
    if archive.litter:
        count = f"{len(archive.litter)} file" + "s" * (len(archive.litter) > 1)
        done.remarks.append(f"left out {count} that an operating system has added, such as {archive.litter[0]}")
    limits = WhatCounts.of(course.coursedir)
    if student:
        found: Iterable[tuple[str, list[Upload]]] = [(student, uploads_of(student, assignment, archive))]
    else:
        found = uploads_by_student(archive.names, roster_for(course, done.platform, table), done)
    for owner, uploads in found:
        handed_in = HandedIn(archive, assignment, notebooks, uploads, limits)
        _import_student(course, assignment, owner, handed_in, replace, done)
    return done


def uploads_of(student: str, assignment: str, archive: Archive) -> list[Upload]:
    """The files of the assignment in a student's own archive, which has a folder for each. Raises CourseError."""
    if reason_against(student) or "/" in student or student.startswith("."):
        raise CourseError(f"{student!r} cannot be the name of a student's folder.")
    found = [name for name in archive.names if name.startswith(f"{assignment}/")]
    if not found:
        raise CourseError(f"The archive has no folder {assignment}, as a file from pack() has it.")
    return [Upload(name, "", "", student, name.partition("/")[2]) for name in found]


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
    """What one student has handed in, under the names that nbgrader expects.

    An uploaded archive with a folder of the assignment's name, such as that of `autograder.student.pack`, stands for
    the files in this folder.
    """

    def __init__(
        self, archive: Archive, assignment: str, notebooks: set[str], uploads: Sequence[Upload], limits: WhatCounts
    ) -> None:
        self.archive, self.notebooks, self.limits = archive, notebooks, limits
        self._known = {_folded(name): name for name in notebooks}
        self._problems: dict[Upload, str] = {}
        self._uploaded_archives: dict[str, Archive] = {}
        self.uploads = [part for upload in uploads for part in self._unpacked(upload, assignment)]

    def _unpacked(self, upload: Upload, assignment: str) -> list[Upload]:
        """The files of the assignment in an uploaded archive, or the upload itself if it is no such archive."""
        if not upload.file.casefold().endswith(".zip"):
            return [upload]
        try:
            content = self.archive.read(upload.member, self.limits.folder_size)
        except RefusedError:
            return [upload]
        uploaded = archive_in(content)
        names = uploaded.names if uploaded else []
        found = [dataclasses.replace(upload, inside=name) for name in names if name.startswith(f"{assignment}/")]
        if uploaded and found:
            self._uploaded_archives[upload.member] = uploaded
        return found or [upload]

    def _read(self, upload: Upload, most: float) -> bytes:
        """The bytes of an upload. Raises RefusedError."""
        if upload.inside:
            return self._uploaded_archives[upload.member].read(upload.inside, most)
        return self.archive.read(upload.member, most)

    def chosen(self, student: str, remarks: list[str]) -> dict[str, Upload]:
        """The upload for each name: the newest one, but a notebook before anything else. A student's only notebook gets
        the name of the assignment's only one.
        """
        claims: dict[str, list[Upload]] = defaultdict(list)
        for upload in sorted(self.uploads, key=lambda one: one.version):
            parts = PurePosixPath(upload.path).parts
            if not upload.file:
                where = upload.platform.capitalize()
                remarks.append(f"{student}: left out {upload.member}: text typed in {where} is not a notebook")
            elif self.limits.wants(parts[-1]) and not any(map(self.limits.ignores, parts)):
                claims[self._expected(upload.path)].append(upload)
        own = [name for name in claims if name.endswith(NOTEBOOK)]
        if len(own) > 1:
            own = [name for name in own if not all(map(self._problem, claims[name]))] or own
        if len(own) == len(self.notebooks) == 1 and own[0] != (wanted := f"{next(iter(self.notebooks))}{NOTEBOOK}"):
            remarks.append(f"{student}: {own[0]} is used as {wanted}")
            claims[wanted] = claims.pop(wanted, []) + claims.pop(own[0])
        if any(upload.late for upload in self.uploads):
            remarks.append(f"{student}: Canvas marks this as late; the archive does not say when it was submitted")
        return {name: self._best(name, uploads, student, remarks) for name, uploads in claims.items()}

    def _best(self, name: str, uploads: list[Upload], student: str, remarks: list[str]) -> Upload:
        """The last of these uploads that is a notebook, or else the last. The others are named in `remarks`."""
        judged = name.endswith(NOTEBOOK) and len(uploads) > 1
        problems = [self._problem(upload) if judged else "" for upload in uploads]
        best = max(range(len(uploads)), key=lambda at: (not problems[at], at))
        for at, upload in enumerate(uploads):
            if at != best:
                worse = problems[at] and not problems[best]
                why = f"it is not a notebook. {problems[at]}" if worse else "the later one is taken"
                remarks.append(f"{student}: there are {len(uploads)} files for {name}; left out {upload.member}: {why}")
        return uploads[best]

    def _problem(self, upload: Upload) -> str:
        """Why an upload cannot be read as a notebook, or nothing."""
        if upload not in self._problems:
            try:
                problem = problem_of(self._read(upload, self.limits.file_size))
            except RefusedError as error:
                problem = str(error)
            self._problems[upload] = problem
        return self._problems[upload]

    def _expected(self, file: str) -> str:
        path = PurePosixPath(file)
        if path.suffix != NOTEBOOK or path.stem in self.notebooks:
            return file
        known = self._known.get(_folded(path.stem)) or self._known.get(_folded(without_copy(path.stem)))
        return str(path.with_name(f"{known}{NOTEBOOK}")) if known else file

    def contents(self, chosen: Mapping[str, Upload]) -> dict[str, bytes]:
        """The bytes of each file. Raises RefusedError if there are too many."""
        found, room = {}, self.limits.folder_size
        for name, upload in chosen.items():
            found[name] = self._read(upload, min(self.limits.file_size, room))
            room -= len(found[name])
        return found


def _folded(name: str) -> str:
    """A name as it is compared: a system may have changed its case, or how its accents are stored."""
    return unicodedata.normalize("NFC", name).casefold()


def _import_student(
    course: Course, assignment: str, student: str, files: HandedIn, replace: bool, done: Imported
) -> None:
    target = course.folder("submitted", student, assignment)
    try:
        contents = files.contents(files.chosen(student, done.remarks))
    except RefusedError as error:
        done.unknown.append(f"{student}: {error}")
        return
    handed_in = Notebooks.among(files.notebooks, contents.get)
    if not any(name.endswith(NOTEBOOK) for name in contents):
        done.unknown.append(f"{student}: there is no notebook among the files")
    elif target.is_dir() and _same(target, contents):
        done.unchanged.append(student)
    elif harm := handed_in.harm_to(Notebooks.inside(target, files.notebooks)):
        done.unknown.append(f"{student}: {harm}. The existing submission stays")
    elif target.exists() and not replace:
        done.kept.append(student)
    else:
        timed = (target / TIMESTAMP).is_file() and TIMESTAMP not in contents
        try:
            _place(course, assignment, student, target, contents)
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:  # one file is another's folder
            done.unknown.append(f"{student}: two of its files need the same path: {error.strerror}")
        else:
            done.taken.append(student)
            if timed:
                done.remarks.append(TIME_OF_THE_ONE_BEFORE.format(student, target / TIMESTAMP))


def _same(folder: Path, contents: Mapping[str, bytes]) -> bool:
    """Whether a folder has these files. A timestamp that an instructor added makes no difference."""
    files = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    there = {name for name in files if not is_litter(name)}
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
