"""The tables that a learning management system exports, as CSV, and what is written into them.

Uploading a table must change nothing but marks. So an entry that is no number, such as `EX` for an excused student,
stays as it is, and so does the entry of a student who has no mark here.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.grading.errors import CourseError

ZIP = b"PK\x03\x04"  # how zip archives begin, and with them Excel's workbooks
FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # the last four are full-width forms of the first four
ROUNDING = 0.005  # both platforms show two decimals, and export what they show
AGAIN = 'Export it from the LMS again, as CSV. If you change it in Excel, save it as "CSV UTF-8".'


def read_table(table: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The columns and the rows of a CSV file in UTF-8, with or without a byte-order mark, and with commas or (as Canvas
    writes in some languages) semicolons. Raises CourseError.
    """
    text = _text_of(table)
    try:
        head = text.partition("\n")[0]
        delimiter = ";" if head.count(";") > head.count(",") else ","
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        return list(reader.fieldnames or ()), list(reader)
    except (ValueError, csv.Error) as error:
        raise CourseError(f"{table} cannot be read as CSV: {error}. {AGAIN}") from error


def _text_of(table: Path) -> str:
    """The text of a CSV file. Raises CourseError if it is empty, or if it is not text in UTF-8."""
    if table.is_dir():
        raise CourseError(f"{table} is a folder: name the CSV file in it.")
    try:
        content = table.read_bytes()
    except FileNotFoundError as error:
        raise CourseError(f"There is no file {table}.") from error
    if content.startswith(ZIP):
        raise CourseError(f"{table} is an Excel workbook or a zip archive, not a CSV file. {AGAIN}")
    try:
        text = content.decode("utf-8-sig").lstrip("\r\n")
    except UnicodeDecodeError as error:
        raise CourseError(f"{table} is not in UTF-8, as Excel may have saved it. {AGAIN}") from error
    if not text.strip():
        raise CourseError(f"{table} is empty. {AGAIN}")
    return text


def require_columns(table: Path, head: Sequence[str], columns: Sequence[str], kind: str, more: str = "") -> None:
    """Raise CourseError if the table lacks a column that every table of this kind has. `more` is said after that."""
    if missing := [name for name in columns if name not in head]:
        advice = " ".join(filter(None, ("Export it from the LMS, and leave its columns as they are.", more)))
        raise CourseError(f"{table} is not a {kind}: it has no column {missing[0]}. {advice}")


@dataclass(frozen=True)
class Change:
    """An entry of a table that is not what the LMS has now."""

    student: str
    column: str
    before: str
    after: str


@dataclass
class Entries:
    """The entries that are written into a table. `changes`: those that are new or different. `kept`: those that stay
    because they are no number, each with the mark that it does not get. `without_row`: the students with a mark and
    without a row that is certainly theirs.
    """

    changes: list[Change] = field(default_factory=list)
    kept: list[Change] = field(default_factory=list)
    without_row: set[str] = field(default_factory=set)

    def entry(self, student: str, column: str, before: str, mark: float | None) -> str:
        """What to write for a student. `before`: the entry as it is."""
        known = number_in(before)
        after = number(mark)
        if mark is None or (known is not None and abs(known - mark) <= ROUNDING):
            return before
        if known is None and before.strip() not in ("", "-"):
            self.kept.append(Change(student, column, before.strip(), after))
            return before
        self.changes.append(Change(student, column, before.strip(), after))
        return after


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def number_in(text: str | None) -> float | None:
    """The number in a cell of an LMS's table; None if there is none. The last point or comma is the decimal mark: both
    platforms write numbers in the user's locale, such as 1,000.00 or 1.000,00. Neither writes three decimals, so 1,000
    is a thousand.
    """
    whole, mark, decimals = "".join((text or "").split()).replace(",", ".").rpartition(".")
    if len(decimals) == 3 and not whole.startswith("0"):
        mark = ""
    try:
        found = float(whole.replace(".", "") + mark + decimals)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def points_in(text: str | None) -> float | None:
    """The points that are possible, from a cell of an LMS's table; None if there are none."""
    points = number_in(text)
    return points if points is not None and points > 0 else None


def scaled(mark: float | None, maximum: float, scale: float) -> float | None:
    """Convert a mark out of `maximum` points to one out of `scale`, to the two decimals that both platforms show. If
    there is nothing to scale by, it stays.
    """
    return mark if mark is None or not maximum or scale == maximum else round(mark / maximum * scale, 2)


def harmless(text: str) -> str:
    """Mark a name as text if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.lstrip().startswith(FORMULA) or text[:1] in ("\t", "\r", "\n") else text
