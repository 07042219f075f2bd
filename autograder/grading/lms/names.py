"""Parses the names that Canvas and Moodle give the files in a download of submissions.

Canvas (*Download Submissions*) has one flat folder: `lastnamefirstname_USERID_FILEID_lesson.ipynb`, with `LATE_` before
the user's id if the file was late, and without the name if grading is anonymous. A file that was uploaded again has
`-1`, `-2` and so on after its name. Moodle (*Download all submissions*) has a folder for each person,
`First Last_PARTICIPANT_assignsubmission_file/lesson.ipynb`, or the same as one flat name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CANVAS, MOODLE = "canvas", "moodle"
NAMED = {
    CANVAS: re.compile(r"(?P<name>.*?)_?(?P<late>LATE_)?(?P<key>\d+)_(?P<version>\d+)_(?P<file>[^/]+)"),
    MOODLE: re.compile(r"(?P<name>[^/]+)_(?P<key>\d+)_assignsubmission_file(_/|/|_)(?P<file>.+)"),
}
MOODLE_TEXT = re.compile(r"[^/]+_\d+_assignsubmission_onlinetext.*")
COPY = re.compile(r"(-\d+| ?\(\d+\))$")


@dataclass(frozen=True)
class Upload:
    """One file of a download. `key` is the user's number in the LMS, `name` the person's name there, `version` larger
    for a later upload, `file` the path that the student gave it.
    """

    member: str
    platform: str
    key: str
    name: str
    file: str
    version: int = 0
    late: bool = False


def upload_of(member: str, platform: str) -> Upload | None:
    """Parse the name of an archive's member; None if it is not a name of that platform."""
    match = NAMED[platform].fullmatch(member)
    if match is None:
        return None
    found = match.groupdict()
    version, late = int(found.get("version") or 0), bool(found.get("late"))
    return Upload(member, platform, match["key"], match["name"], match["file"], version, late)


def platform_of(members: list[str]) -> str | None:
    """The platform whose names most members have; None if no member has such a name."""
    counts = {platform: sum(bool(named.fullmatch(name)) for name in members) for platform, named in NAMED.items()}
    best = max(counts, key=lambda platform: counts[platform])
    return best if counts[best] else None


def without_copy(stem: str) -> str:
    """A file's name without the number that browsers and Canvas append: `lesson` for `lesson-1` and `lesson (2)`."""
    return COPY.sub("", stem)
