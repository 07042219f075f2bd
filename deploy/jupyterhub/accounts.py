"""Makes what a class needs on this machine: an account for everybody on the class list, an account that owns the
course, the course, and nbgrader's exchange. It also closes the checkout to students, except for what their servers run.
Run it as root, and again whenever the list has changed:

    python deploy/jupyterhub/accounts.py

The class list is `class.csv` in the class folder, with a header `name,role`; a role is student or instructor. New
passwords are added to `passwords.csv` beside it, which root alone can read. Nobody is taken away: an account whose name
has left the list stays, and the hub does not let it in. Somebody who had an account on the machine before keeps its
password.
"""

from __future__ import annotations

import csv
import os
import pwd
import re
import secrets
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GRADER, COURSE, EXCHANGE, COURSE_ID = "grader", "course", "exchange", "mini-autograd"
LIST, PASSWORDS = "class.csv", "passwords.csv"
ROLES = ("student", "instructor")
NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}")
CHECKOUT = Path(__file__).resolve().parents[2]
OPEN = (
    *(".venv", "autograder", "mini_autograd", "course/gallery.py", "course/data", "course/pictures"),
    *("deploy/jupyterhub/everybody", "deploy/jupyterhub/student"),
)
"""What students' servers use of the checkout. Everything else there may hold solutions, hidden tests, marks or
passwords."""
FIRST_ID = 20_000  # accounts of people; a home that is there already keeps its owner's number
LAST_ID = 60_000
FIRST_OF_PEOPLE, NOBODY = 1000, 65_534  # a directory of the university may give people any higher number


class ClassListError(Exception):
    """The class list or the passwords cannot be used. The message names the line."""


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
    if not path.exists():
        raise ClassListError(f"There is no class list {path}. Write one with a header name,role.")
    header, *rows = [*rows_of(path)] or [(1, [""])]
    if header[1] != ["name", "role"]:
        raise ClassListError(f"{path}: the first line is {','.join(header[1])!r}, but has to be name,role.")
    people: dict[str, Person] = {}
    for number, row in rows:
        if len(row) != 2:
            raise ClassListError(f"{path}, line {number}: {','.join(row)!r} is not a name, a comma and a role.")
        name, role = row
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


def rows_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file that are not empty, with their numbers. Raises `ClassListError`."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ClassListError(f"{path} is not in UTF-8. Save it as CSV with this encoding.") from None
    reader = csv.reader(text.splitlines())
    for row in reader:
        if any(cell.strip() for cell in row):
            yield reader.line_num, [cell.strip() for cell in row]


def known_passwords(path: Path) -> dict[str, str]:
    """The passwords by name. Raises `ClassListError`: one that was passed over would be replaced by another one."""
    known = {}
    for number, row in rows_of(path):
        if len(row) != 2 or not all(row):
            raise ClassListError(
                f"{path}, line {number} is not a name, a comma and a password. A password with a comma belongs in "
                "quotation marks."
            )
        known[row[0]] = row[1]
    return known


def has_account(name: str) -> bool:
    """Whether the machine has this account. Raises `ClassListError` for one of the system."""
    try:
        number = pwd.getpwnam(name).pw_uid
    except KeyError:
        return False
    if number < FIRST_OF_PEOPLE or number == NOBODY:
        raise ClassListError(f"{name} is a system account. Give this person another name.")
    return True


def make_account(name: str) -> None:
    """Make an account with a private home, or leave it as it is."""
    home = Path("/home", name)
    if not has_account(name):
        taken = {entry.pw_uid for entry in pwd.getpwall()} | {path.stat().st_uid for path in home.parent.iterdir()}
        used = [uid + 1 for uid in taken if uid < LAST_ID]
        number = home.stat().st_uid if home.exists() else max([FIRST_ID, *used])
        command = ["useradd", "--create-home", "--home-dir", str(home), "--shell", "/bin/bash", "--uid", str(number)]
        subprocess.run([*command, name], check=True, stderr=subprocess.DEVNULL if home.exists() else None)
    Path(pwd.getpwnam(name).pw_dir).chmod(0o700)


def choose_passwords(folder: Path, names: list[str]) -> dict[str, str]:
    """The passwords of these people. Those with neither a password in the file nor an account yet get a new one, which
    is added to the file; there an instructor may change it. Raises `ClassListError`.
    """
    path = folder / PASSWORDS
    path.touch(mode=0o600)
    path.chmod(0o600)
    known = known_passwords(path)
    there = {name for name in (GRADER, *names) if has_account(name)}
    others = [name for name in names if name not in known]
    new = {name: secrets.token_urlsafe(9) for name in others if name not in there}
    text = path.read_text(encoding="utf-8")
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write("\n" if text and not text.endswith("\n") else "")
        csv.writer(file, lineterminator="\n").writerows(new.items())
    if new:
        print(f"{len(new)} new passwords are in {path}.")
    if kept := [name for name in others if name in there]:
        print(f"These had an account before and keep its password: {', '.join(kept)}.")
    return {name: password for name, password in (known | new).items() if name in names}


def make_course(folder: Path) -> None:
    """The course and the exchange, which belong to the account of the course."""
    for name in (EXCHANGE, f"{EXCHANGE}/{COURSE_ID}"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    # nbgrader demands that everybody may write to the exchange's first folder; nobody may move what others have there.
    (folder / EXCHANGE).chmod(0o1777)
    (folder / EXCHANGE / COURSE_ID).chmod(0o755)
    shutil.chown(folder / EXCHANGE / COURSE_ID, GRADER, GRADER)
    course = folder / COURSE
    if course.exists():
        course.chmod(stat.S_IMODE(course.stat().st_mode) & ~0o007)
    else:
        course.mkdir(mode=0o700)
        shutil.chown(course, GRADER, GRADER)
        program = str(Path(sys.executable).with_name("autograder"))
        for command in (["course", str(course)], ["build", "--course", str(course)]):
            subprocess.run(["runuser", "-u", GRADER, "--", program, *command], check=True, cwd=course)


def close_checkout(folder: Path, opened: list[Path]) -> None:
    """Close to students what lies in this folder, except for what is `opened`. The course's account may read it."""
    for path in folder.iterdir():
        if any(path in wanted.parents for wanted in opened):
            close_checkout(path, opened)
        elif path not in opened and not path.is_symlink():
            mode = stat.S_IMODE(path.stat().st_mode)
            shutil.chown(path, group=GRADER)
            path.chmod(mode & ~0o007 | (mode & 0o005) << 3)


def main() -> int:
    folder = class_folder()
    try:
        people = class_list(folder)
        if os.geteuid() != 0:
            raise ClassListError("Only root can make accounts. Put sudo before the command.")
        passwords = choose_passwords(folder, [person.name for person in people])
    except ClassListError as error:
        print(error, file=sys.stderr)
        return 2
    for name in [GRADER, *(person.name for person in people)]:
        make_account(name)
    lines = [f"{name}:{password}" for name, password in passwords.items()]
    subprocess.run(["chpasswd"], input="\n".join(lines), text=True, check=True)
    make_course(folder)
    close_checkout(CHECKOUT, [folder, *(CHECKOUT / name for name in OPEN)])
    print(f"{len(people)} people, {sum(person.role == 'instructor' for person in people)} of them instructors.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
