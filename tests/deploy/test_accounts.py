"""The class list and the passwords of the hub: what cannot be read is named, and no password is lost or replaced."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pwd = pytest.importorskip("pwd", reason="the hub runs on Linux")

from deploy.jupyterhub import accounts  # noqa: E402


def test_empty_lines_and_a_mark_at_the_beginning_are_fine(tmp_path: Path) -> None:
    (tmp_path / "class.csv").write_text("name, role\n\nalice,student\n , \nprof ,instructor\n", encoding="utf-8-sig")
    people = accounts.class_list(tmp_path)
    assert [(person.name, person.role) for person in people] == [("alice", "student"), ("prof", "instructor")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the first line is '', but has to be name,role"),
        (b"alice,student\n", "the first line is 'alice,student', but has to be name,role"),
        (b"name;role\nalice;student\n", "the first line is 'name;role', but has to be name,role"),
        (b"name,role\n\n\nAlice,student\n", "line 4: 'Alice' cannot be an account"),
        (b"name,role\nalice;student\n", "line 2: 'alice;student' is not a name, a comma and a role"),
        (b"name,role\nalice,teacher\n", "line 2: the role is 'teacher'"),
        (b"name,role\nalice,student\nalice,student\n", "line 3: alice is listed twice"),
        (b"name,role\n", "lists nobody"),
        ("name,role\nzoë,student\n".encode("latin-1"), "is not in UTF-8"),
    ],
)
def test_a_class_list_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "class.csv").write_bytes(content)
    with pytest.raises(accounts.ClassListError, match=said):
        accounts.class_list(tmp_path)


def test_new_passwords_are_added_and_old_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "passwords.csv"
    path.write_text('bob,abcdefgh1\ncem,"my,pass"')  # no line end, as some editors leave it
    found = accounts.choose_passwords(tmp_path, ["bob", "cem", "new-person-of-a-test"])
    assert (found["bob"], found["cem"], len(found)) == ("abcdefgh1", "my,pass", 3)
    assert list(csv.reader(path.read_text().splitlines())) == [[name, found[name]] for name in found]
    assert path.stat().st_mode & 0o777 == 0o600
    assert accounts.choose_passwords(tmp_path, list(found)) == found


def test_somebody_who_had_an_account_before_keeps_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(accounts, "has_account", lambda name: name == "alice")
    assert list(accounts.choose_passwords(tmp_path, ["alice", "bob"])) == ["bob"]
    assert "keep its password: alice." in capsys.readouterr().out


@pytest.mark.parametrize("line", ["alice,my,pass", "bob;abcdefgh1", "alice,", ",abcdefgh1"])
def test_a_password_that_cannot_be_read_is_not_replaced(tmp_path: Path, line: str) -> None:
    path = tmp_path / "passwords.csv"
    path.write_text(f"zoe,abcdefgh1\n{line}\n")
    with pytest.raises(accounts.ClassListError, match="line 2 is not a name, a comma and a password"):
        accounts.choose_passwords(tmp_path, ["alice", "bob"])
    assert path.read_text() == f"zoe,abcdefgh1\n{line}\n"


def test_accounts_of_the_system_are_refused(tmp_path: Path) -> None:
    for name in [entry.pw_name for entry in pwd.getpwall() if entry.pw_uid in (0, 65_534)]:
        with pytest.raises(accounts.ClassListError, match=f"{name} is a system account"):
            accounts.choose_passwords(tmp_path, [name])


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("tests/", 0o755, 0o750),
        (".env", 0o644, 0o640),
        (".env", 0o600, 0o600),
        ("notes.txt", 0o666, 0o660),
        ("autograder/", 0o755, 0o755),
        ("course/", 0o755, 0o755),
        ("course/data/", 0o755, 0o755),
        ("course/lessons/", 0o755, 0o750),
        ("course/data.csv", 0o644, 0o640),
        ("class/", 0o755, 0o755),  # the class folder, which this test has in the checkout
        ("class/exchange/", 0o1777, 0o1777),
    ],
)
def test_of_the_checkout_only_what_students_need_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, before: int, after: int
) -> None:
    monkeypatch.setattr(accounts.shutil, "chown", lambda path, group: None)
    for folder in ("autograder", "course/data"):
        (tmp_path / folder).mkdir(parents=True)
    there = tmp_path / path
    there.mkdir(parents=True, exist_ok=True) if path.endswith("/") else there.touch()
    there.chmod(before)
    accounts.close_checkout(tmp_path, [tmp_path / "class", *(tmp_path / name for name in accounts.OPEN)])
    assert there.stat().st_mode & 0o7777 == after
