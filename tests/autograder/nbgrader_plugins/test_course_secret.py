"""The secret of a course is made once, is private to its owner, and is the same for all workers."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from nbgrader.coursedir import CourseDirectory

from autograder.nbgrader_plugins.course_secret import course_secret, secret_path


def test_it_is_made_at_first_use_for_its_owner_only(tmp_path: Path) -> None:
    coursedir = CourseDirectory(root=str(tmp_path))
    secret = course_secret(coursedir)
    assert len(secret) == 32
    assert course_secret(coursedir) == secret
    assert stat.S_IMODE(secret_path(coursedir).stat().st_mode) == 0o600


def test_two_courses_differ(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    secrets = {course_secret(CourseDirectory(root=str(tmp_path / name))) for name in "ab"}
    assert len(secrets) == 2


def test_workers_that_make_it_at_once_agree(tmp_path: Path) -> None:
    coursedir = CourseDirectory(root=str(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: course_secret(coursedir), range(32)))
    assert len(secrets) == 1
    assert [path.name for path in tmp_path.iterdir()] == [secret_path(coursedir).name]


def test_it_lies_beside_the_gradebook(tmp_path: Path) -> None:
    for url, folder in (
        (f"sqlite:///{tmp_path}/data/gradebook.db", tmp_path / "data"),
        (f"sqlite:///{tmp_path}/gradebook.db?timeout=60", tmp_path),
        ("sqlite:///gradebook.db", tmp_path),
        (f"sqlite:///file:{tmp_path}/my%20data/gradebook.db?mode=rw&uri=true", tmp_path / "my data"),
        (f"sqlite:///file://{tmp_path}/gradebook.db?uri=true", tmp_path),
        ("sqlite:///file:data/gradebook.db?uri=true", tmp_path / "data"),
        ("postgresql+psycopg://user@host/grades", tmp_path),
    ):
        assert secret_path(CourseDirectory(root=str(tmp_path), db_url=url)).parent == folder


def test_one_that_anybody_could_guess_is_refused(tmp_path: Path) -> None:
    coursedir = CourseDirectory(root=str(tmp_path))
    secret_path(coursedir).write_bytes(b"")
    with pytest.raises(ValueError, match="empty or too short"):
        course_secret(coursedir)
