"""The secret of a course: random bytes that students do not have, kept in a file beside the gradebook.

Graded checks draw their inputs from it, so that a student cannot prepare answers for the very numbers used.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from urllib.parse import unquote

from nbgrader.coursedir import CourseDirectory

FILE_NAME = ".autograder_secret"
SQLITE = "sqlite:///"
SHORTEST = 16  # bytes
TOO_SHORT = (
    "{} holds the secret that hides the inputs of graded checks, and it is empty or too short. Put your copy of it "
    "back, or delete it: the next run makes a new one and grades with other inputs."
)


def course_secret(coursedir: CourseDirectory) -> bytes:
    """Read the course's secret; make it on first use, readable only by its owner. Raises ValueError for a secret that
    is too short and could be guessed.
    """
    path = secret_path(coursedir)
    if not path.exists():
        _make(path)
    secret = path.read_bytes()
    if len(secret) < SHORTEST:
        raise ValueError(TOO_SHORT.format(path))
    return secret


def secret_path(coursedir: CourseDirectory) -> Path:
    """The file beside the gradebook, or in the course's root if the gradebook is on a database server."""
    gradebook = gradebook_file(coursedir)
    return (Path(coursedir.root) if gradebook is None else gradebook.parent) / FILE_NAME


def gradebook_file(coursedir: CourseDirectory) -> Path | None:
    """The path of the gradebook file, which need not exist; None if the gradebook is on a database server."""
    database = coursedir.db_url.partition("?")[0]
    name = database.removeprefix(SQLITE)
    if name in (database, ""):
        return None
    if name.startswith("file:"):  # SQLite's own kind of URL
        name = unquote(name.removeprefix("file:").removeprefix("//"))
    return Path(coursedir.root, name)


def _make(path: Path) -> None:
    """Write a complete file under another name first: of several workers at once, one wins and all agree."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(32))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
