"""The tables that a learning management system exports, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from autograder.grading.errors import CourseError

ZIP = b"PK\x03\x04"  # how zip archives begin, and with them Excel's workbooks
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
