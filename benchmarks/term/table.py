"""Reads `table.toml`: what each kind of student does, and what must come of it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TABLE = tomllib.loads(Path(__file__).with_name("table.toml").read_text("utf-8"))
PS1, PS2, PS3 = ASSIGNMENTS = ("ps1", "ps2", "ps3")
FIRST, LAST = ("Ada", "Zoë", "Bo", "Mary Ann"), ("Lee", "O'Fín", "Nuñez")


@dataclass(frozen=True)
class HandedIn:
    """A file that a student hands in. `at` and `zone` are about attempts in the exchange: minutes after the class hands
    in, and where the student lives. `says`: what the page about this attempt says.
    """

    answer: str = "right"
    name: str = ""
    unreadable: bool = False
    packed: bool = False
    typed: bool = False
    at: float = 0.0
    zone: str = ""
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row of the table, as its comments say."""

    what: str
    files: tuple[HandedIn, ...]
    again: tuple[HandedIn, ...] = ()
    at: str = ""
    extension: str = ""
    late: str = ""
    essay: float | None = None
    open: float = 0.0
    moved: tuple[float, float] | tuple[()] = ()
    mark: float | None = None
    says: tuple[str, ...] = ()
    comment: str = ""

    @property
    def absent(self) -> bool:
        """Whether nothing comes that could be graded."""
        return all(it.typed for it in self.files)


@dataclass(frozen=True)
class Student:
    """A student with a row for each assignment. Two have the same name, now and then."""

    number: int
    rows: dict[str, Row] = field(hash=False)

    @property
    def id(self) -> str:
        return f"s{self.number:04}"

    @property
    def first(self) -> str:
        return FIRST[self.number // 2 % len(FIRST)]

    @property
    def last(self) -> str:
        return LAST[self.number // 2 % len(LAST)]


def rows(assignment: str) -> list[Row]:
    return [_row(about) for about in TABLE[assignment]]


def class_of(count: int) -> list[Student]:
    """As many students, with each row about equally often, and with other rows together in each group."""
    table = {assignment: rows(assignment) for assignment in ASSIGNMENTS}
    return [
        Student(number, {name: _of(table[name], number, at) for at, name in enumerate(table)})
        for number in range(count)
    ]


def _of(table: list[Row], number: int, at: int) -> Row:
    return table[(number + at * (number // len(table))) % len(table)]


def _row(about: dict[str, Any]) -> Row:
    lists = {name: tuple(about.get(name, ())) for name in ("moved", "says")}
    files = {name: tuple(_file(it) for it in about.get(name, ())) for name in ("files", "again")}
    return Row(**{**about, **lists, **files})


def _file(about: dict[str, Any]) -> HandedIn:
    return HandedIn(**{**about, "says": tuple(about.get("says", ()))})
