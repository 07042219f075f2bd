"""Pretend students: submissions made from a lesson's own solutions, each with one thing done wrong (or something
hostile).

A course's `pretend_class.py` describes them as data; this module makes their notebooks and checks their results.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from autograder.grading.submission.class_records import SubmissionRecord
from autograder.notebooks.cells import grade_id, is_solution

MARKER = re.compile(r"^[^\n]*(BEGIN|END) SOLUTION[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in the solution cell `cell`. An empty `old` puts `new` at the end of the cell.

    `{course}` in `new` becomes the folder of the course, for a student who knows where it is.
    """

    cell: str
    old: str
    new: str

    def applied(self, source: str, course: Path) -> str:
        new = self.new.replace("{course}", str(course))
        if not self.old:
            return f"{source}\n\n{new}"
        if source.count(self.old) != 1:
            raise ValueError(f"{self.old!r} occurs {source.count(self.old)} times in the cell {self.cell!r}, not once")
        return source.replace(self.old, new)


@dataclass(frozen=True)
class Pretender:
    """One pretend student and the expected result of the submission.

    `style`: one of the lesson's alternative solutions. `bug`: the entry of the bug bank that has to be named.
    `touches`: the test cells that must lose marks; no other cell may. `solved`: False leaves the stubs in.
    """

    student: str
    what: str
    edits: tuple[Edit, ...] = ()
    style: str = ""
    bug: str = ""
    touches: tuple[str, ...] = ()
    solved: bool = True
    hostile: bool = False


def notebook_of(
    pretender: Pretender,
    released: NotebookNode,
    source: NotebookNode,
    styles: Mapping[str, Mapping[str, str]],
    course: Path,
) -> NotebookNode:
    """The notebook that this student hands in: the released one, with answers in its solution cells."""
    answers = {name: MARKER.sub("", cell.source) for cell in source.cells if (name := grade_id(cell))}
    answers |= styles[pretender.style] if pretender.style else {}
    notebook = copy.deepcopy(released)
    edits = list(pretender.edits)
    for cell in notebook.cells:
        name = grade_id(cell)
        if not name or not is_solution(cell):
            continue
        if pretender.solved:
            cell.source = answers[name].strip("\n")
        for edit in [edit for edit in edits if edit.cell == name]:
            cell.source = edit.applied(cell.source, course)
            edits.remove(edit)
    if edits:
        raise ValueError(f"{pretender.student}: the lesson has no solution cell {edits[0].cell!r}")
    return notebook


def faults(pretender: Pretender, record: SubmissionRecord) -> list[str]:
    """How the result of a pretend student differs from the expected one; empty if all is well."""
    if record.status != "graded":
        return [f"status {record.status}: {record.reason}"]
    wrong = []
    lost = {cell.grade_id for cell in record.cells if (cell.points or 0.0) < cell.max_points}
    if pretender.solved and lost != set(pretender.touches):
        wrong += [f"lost no marks on {name}" for name in sorted(set(pretender.touches) - lost)]
        wrong += [f"lost marks on {name}" for name in sorted(lost - set(pretender.touches))]
    if not pretender.solved and record.points:
        wrong.append(f"got {record.points:g} points for nothing")
    named = diagnoses(record)
    if set(named) != ({pretender.bug} if pretender.bug else set()):
        wrong.append(f"named {', '.join(named) or 'no bug'}")
    return wrong


def diagnoses(record: SubmissionRecord) -> list[str]:
    """The bugs that the messages of a submission name, each once, in the order of the cells."""
    return list(dict.fromkeys(bug for cell in record.cells for bug in cell.bugs))
