"""Marks that changed although the submission did not: what a corrected test, another due date or a rule has moved.

They are written to a file of the assignment as soon as the marks are, one JSON object per line: the run that a killed
one is continued by says all of them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from autograder.grading.submission.class_records import Move, SubmissionRecord

NAME = "moved.jsonl"


def move(before: SubmissionRecord, after: SubmissionRecord, version: str) -> Move | None:
    """What another grading of the same submission has moved, or None if its mark is the same."""
    points = {cell.place: cell.points or 0.0 for cell in before.cells}
    cells = tuple(
        (cell.grade_id, points.get(cell.place, 0.0), cell.points or 0.0)
        for cell in after.cells
        if points.get(cell.place, 0.0) != (cell.points or 0.0)
    )
    if before.counts == after.counts and not cells:
        return None
    penalty = before.late_penalty, after.late_penalty
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Move(after.student, before.counts, after.counts, after.max_points or 0.0, cells, penalty, version, at)


def add(path: Path, moves: Sequence[Move]) -> None:
    """Write moves to the end of the file."""
    if moves:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(one)) + "\n" for one in moves)


def read(path: Path) -> list[Move]:
    """The moves in the file, each once, by version and student. A line that broke off is left out."""
    found: dict[tuple[str, str], Move] = {}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        with contextlib.suppress(ValueError, TypeError, KeyError):
            about = json.loads(line)
            cells = tuple((name, before, after) for name, before, after in about.pop("cells"))
            before, after = about.pop("penalty")
            one = Move(**about, cells=cells, penalty=(before, after))
            found[one.version, one.student] = one
    return list(found.values())


def announcement(lesson: str, moves: Iterable[Move], titles: Mapping[str, str]) -> str:
    """A text about these moves: first what can be told to everybody, then whose marks they are."""
    moved = sorted(moves, key=lambda it: it.student)
    up, down = [it for it in moved if it.after > it.before], [it for it in moved if it.after < it.before]
    exercises = dict.fromkeys(titles.get(name, name) for it in moved for name, _, _ in it.cells)
    lines = [f"{lesson} was graded again. {_count(up, 'went up')}, {_count(down, 'went down')}."]
    lines += [f"What was graded differently: {', '.join(exercises)}."] if exercises else []
    marks = ((it.student, f"{it.before:g} -> {it.after:g} of {it.of_points:g}", it.why(titles)) for it in moved)
    return "\n".join([*lines, "", *(f"{student}: {mark} ({why})" for student, mark, why in marks)]) + "\n"


def _count(moves: Sequence[Move], how: str) -> str:
    return f"{len(moves)} mark{'s' * (len(moves) != 1)} {how}"
