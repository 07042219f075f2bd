"""Makes what a class needs on this machine: an account for everybody on the class list, an account that owns the
course, the course, and nbgrader's exchange. Run it as root, and again whenever the list has changed:

    python deploy/jupyterhub/accounts.py

The class list is `class.csv` in the class folder, with a header `name,role`; a role is student or instructor. New
passwords are added to `passwords.csv` beside it, which root alone can read. Nobody is taken away: an account whose name
has left the list stays, and the hub does not let it in.
"""

from __future__ import annotations

import csv
import os
import pwd
import re
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GRADER, COURSE, EXCHANGE, COURSE_ID = "grader", "course", "exchange", "mini-autograd"
LIST, PASSWORDS = "class.csv", "passwords.csv"
ROLES = ("student", "instructor")
NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
FIRST_ID = 20_000  # accounts of people; a home that is there already keeps its owner's number


class ClassListError(Exception):
    """The class list cannot be used. The message names the line."""


@dataclass(frozen=True)
class Person:
    """One line of the class list."""

    name: str
    role: str


def class_folder() -> Path:
    """Where the class list, the course and the exchange are."""
    return Path(os.environ.get("CLASS_FOLDER", "/srv/class")).resolve()


def class_list(folder: Path) -> list[Person]:
    """Everybody in the class. Raises `ClassListError`."""
    path = folder / LIST
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    except FileNotFoundError:
        raise ClassListError(f"There is no class list {path}. Write one with a header name,role.") from None
    people: dict[str, Person] = {}
    for number, row in enumerate(rows, start=2):
        name, role = (str(row.get(column) or "").strip() for column in ("name", "role"))
        if not NAME.fullmatch(name) or name == GRADER:
            raise ClassListError(
                f"{path}, line {number}: {name!r} cannot be an account. Use at most 31 of a-z, 0-9, - and _, beginning "
                f"with a letter; {GRADER} is taken."
            )
        if role not in ROLES:
            raise ClassListError(f"{path}, line {number}: the role is {role!r}. It is student or instructor.")
        if name in people:
            raise ClassListError(f"{path}, line {number}: {name} is listed twice.")
        people[name] = Person(name, role)
    if not people:
        raise ClassListError(f"{path} lists nobody.")
    return list(people.values())


def make_account(name: str) -> None:
    """Make an account with a private home, or leave it as it is. Raises `ClassListError` for one of the system."""
    home = Path("/home", name)
    try:
        if pwd.getpwnam(name).pw_uid < 1000:
            raise ClassListError(f"{name} is a system account. Give this person another name.")
    except KeyError:
        taken = {entry.pw_uid for entry in pwd.getpwall()} | {path.stat().st_uid for path in home.parent.iterdir()}
        number = home.stat().st_uid if home.exists() else max([FIRST_ID, *(uid + 1 for uid in taken if uid < 60_000)])
        command = ["useradd", "--create-home", "--home-dir", str(home), "--shell", "/bin/bash", "--uid", str(number)]
        subprocess.run([*command, name], check=True, stderr=subprocess.DEVNULL if home.exists() else None)
    home.chmod(0o700)


def set_passwords(folder: Path, names: list[str]) -> None:
    """Give everybody without a password one, and set those that are in the file: there an instructor may change one."""
    path = folder / PASSWORDS
    path.touch(mode=0o600)
    path.chmod(0o600)
    known = dict(row for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) if len(row) == 2)
    new = {name: secrets.token_urlsafe(9) for name in names if name not in known}
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(new.items())
    lines = [f"{name}:{password}" for name, password in (known | new).items() if name in names]
    subprocess.run(["chpasswd"], input="\n".join(lines), text=True, check=True)
    if new:
        print(f"{len(new)} new passwords are in {path}.")


def make_course(folder: Path) -> None:
    """The course and the exchange, which belong to the account of the course."""
    for name in (EXCHANGE, f"{EXCHANGE}/{COURSE_ID}"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    # nbgrader demands that everybody may write to the exchange's first folder; nobody may move what others have there.
    (folder / EXCHANGE).chmod(0o1777)
    (folder / EXCHANGE / COURSE_ID).chmod(0o755)
    shutil.chown(folder / EXCHANGE / COURSE_ID, GRADER, GRADER)
    course = folder / COURSE
    if not course.exists():
        course.mkdir(mode=0o700)
        shutil.chown(course, GRADER, GRADER)
        program = str(Path(sys.executable).with_name("autograder"))
        for command in (["course", str(course)], ["build", "--course", str(course)]):
            subprocess.run(["runuser", "-u", GRADER, "--", program, *command], check=True, cwd=course)


def main() -> int:
    folder = class_folder()
    try:
        people = class_list(folder)
        if os.geteuid() != 0:
            raise ClassListError("Only root can make accounts. Put sudo before the command.")
        for name in [GRADER, *(person.name for person in people)]:
            make_account(name)
    except ClassListError as error:
        print(error, file=sys.stderr)
        return 2
    set_passwords(folder, [person.name for person in people])
    make_course(folder)
    print(f"{len(people)} people, {sum(person.role == 'instructor' for person in people)} of them instructors.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
