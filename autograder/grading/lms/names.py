"""Parses the names that Canvas and Moodle give the files in a download of submissions.

Canvas (*Download Submissions*) has one flat folder: `lastnamefirstname_USERID_FILEID_lesson.ipynb`, with `LATE_` before
the user's id if the file was late, and without the name if grading is anonymous. A file that was uploaded again has
`-1`, `-2` and so on after its name. Text typed in Canvas is `lastnamefirstname_USERID_text.html`. Moodle (*Download all
submissions*) has a folder for each person, `First Last_PARTICIPANT_assignsubmission_file/lesson.ipynb`, or the same as
one flat name; the folder of typed text ends in `onlinetext`. An archive that somebody has packed again may have a
folder around all that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CANVAS, MOODLE = "canvas", "moodle"
ID = re.compile(r"[1-9][0-9]*")  # Canvas writes no zeros before a number, but lessons do: 02_scalar_engine
CANVAS_TYPED = (["text.html"], ["link.html"])
CANVAS_ANONYMOUS = re.compile(r"(.*/)?(LATE_)?anon_[^/]+")  # has a code in place of the user's id
MOODLE_NAME = re.compile(
    r"(?P<outer>((?![^/]*_assignsubmission_)[^/]+/)*?)"
    r"(?P<name>[^/]+?)_(?P<key>\d+)_assignsubmission_(file(_/|/|_)(?P<file>.+)|onlinetext.*)"
)  # the first number counts: a student may have put another one into the name of a file
COPY = re.compile(r"(-\d+| ?\(\d+\))$")


@dataclass(frozen=True)
class Upload:
    """One file of a download. `key` is the user's number in the LMS, `name` the person's name there, `version` larger
    for a later upload, `file` the path that the student gave it, or empty for text that was typed in the LMS. `outer`
    is the folder around what the LMS named. `inside` is its name in an archive that the student uploaded, below the
    folder of the assignment.
    """

    member: str
    platform: str
    key: str
    name: str
    file: str
    version: int = 0
    late: bool = False
    outer: str = ""
    inside: str = ""

    @property
    def path(self) -> str:
        """The path of the file in a submission."""
        return self.inside.partition("/")[2] or self.file


def readings(member: str, platform: str) -> list[Upload]:
    """The ways to parse the name of an archive's member, the one with the shortest name of a person first. There are
    none if it is not a name of that platform.
    """
    return list(_canvas_readings(member) if platform == CANVAS else _moodle_readings(member))


def _canvas_readings(member: str) -> Iterator[Upload]:
    """The ways to read what follows the last slash, and then those by which a student has put the slash there."""
    if CANVAS_ANONYMOUS.fullmatch(member):
        return
    outer, slash, flat = member.rpartition("/")
    found = list(_in_canvas_name(flat, member, outer + slash))
    yield from found
    if found and slash:
        yield from (upload for upload in _in_canvas_name(member, member) if "/" in upload.file)


def _in_canvas_name(text: str, member: str, outer: str = "") -> Iterator[Upload]:
    """Any number between two underscores may be the user's id, because names of people and files have both, too."""
    parts = text.split("_")
    for at, part in enumerate(parts):
        before, after = parts[:at], parts[at + 1 :]
        late = before[-1:] == ["LATE"]
        name, file = "_".join(before[:-1] if late else before), "_".join(after[1:])
        if not ID.fullmatch(part):
            continue
        if file and ID.fullmatch(after[0]):
            yield Upload(member, CANVAS, part, name, file, int(after[0]), late, outer)
        elif after in CANVAS_TYPED:
            yield Upload(member, CANVAS, part, name, "", late=late)


def _moodle_readings(member: str) -> Iterator[Upload]:
    if match := MOODLE_NAME.fullmatch(member):
        yield Upload(member, MOODLE, match["key"], match["name"], match["file"] or "", outer=match["outer"])


def platform_of(members: Sequence[str]) -> str | None:
    """The platform whose names most members have; None if no member has such a name."""
    counts = {platform: sum(bool(readings(name, platform)) for name in members) for platform in (CANVAS, MOODLE)}
    best = max(counts, key=lambda platform: counts[platform])
    return best if counts[best] else None


def without_copy(stem: str) -> str:
    """A file's name without the number that browsers and Canvas append: `lesson` for `lesson-1` and `lesson (2)`."""
    return COPY.sub("", stem)
