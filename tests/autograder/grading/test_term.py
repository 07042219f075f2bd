"""A term in small, from the first download to the last export, beside a table that was written by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.term.comparing import differences
from benchmarks.term.handing_in import Term
from benchmarks.term.running import Weeks
from benchmarks.term.table import ASSIGNMENTS, class_of, rows


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.filterwarnings("ignore")
def test_a_term_in_small_ends_as_the_table_says(tmp_path: Path) -> None:
    """Each row once, and each command that grades killed once. `python -m benchmarks.term` takes a class of 60."""
    students = class_of(max(len(rows(name)) for name in ASSIGNMENTS))
    weeks = Weeks(Term(tmp_path / "course", students), kills=1)
    weeks.live()
    assert differences(weeks) == []
    late, *others = students[4:]
    wrong = dataclasses.replace(late.rows["ps2"], mark=3, late="1 h", says=("3 of 5",), moved=(3, 0))
    weeks.term.students = [*students[:4], dataclasses.replace(late, rows={**late.rows, "ps2": wrong}), *others]
    assert len(differences(weeks)) == 7, "a difference in a mark, a page or a line would not be seen"
