"""The tables that a learning management system exports, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from autograder.grading.errors import CourseError


def read_table(table: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The columns and the rows of a CSV file in UTF-8, with or without a byte-order mark, and with commas or (as Canvas
    writes in some languages) semicolons. Raises CourseError.
    """
    try:
        with open(table, newline="", encoding="utf-8-sig") as file:
            text = file.read().lstrip("\r\n")
        head = text.partition("\n")[0]
        delimiter = ";" if head.count(";") > head.count(",") else ","
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        return list(reader.fieldnames or ()), list(reader)
    except FileNotFoundError as error:
        raise CourseError(f"There is no file {table}.") from error
    except (OSError, ValueError, csv.Error) as error:
        raise CourseError(f"{table} cannot be read as CSV: {error}.") from error


def require_columns(table: Path, head: Sequence[str], columns: Sequence[str], kind: str) -> None:
    """Raise CourseError if the table lacks a column that every table of this kind has."""
    if missing := [name for name in columns if name not in head]:
        advice = "Export it from the LMS, and leave its columns as they are."
        raise CourseError(f"{table} is not a {kind}: it has no column {missing[0]}. {advice}")
