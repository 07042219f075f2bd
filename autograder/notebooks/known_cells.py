"""The cells that the gradebook knows, and how to restore the instructor's part of a submission.

Plain data and functions on notebooks. Our preprocessors for nbgrader call them with rows of a gradebook, and so does
the grading of a class, which reads those rows once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.notebooks.cells import checksum, grade_id
from autograder.notebooks.verdicts import NOTICE

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # else Python prints warnings to the terminal


@dataclass(frozen=True)
class KnownCell:
    """One cell of the instructor's notebook, as generate_assignment has put it into the gradebook."""

    name: str
    cell_type: str
    source: str
    locked: bool
    checksum: str | None
    grade: bool
    solution: bool
    task: bool
    points: float | None

    def metadata(self) -> NotebookNode:
        """nbgrader's metadata of the cell, as generate_assignment would write it."""
        metadata = NotebookNode(
            schema_version=3,
            grade_id=self.name,
            grade=self.grade,
            solution=self.solution,
            task=self.task,
            locked=self.locked,
            cell_type=self.cell_type,
            checksum=self.checksum,
        )
        if self.points is not None:
            metadata["points"] = self.points
        return metadata


Known = Mapping[str, KnownCell]


def repair_metadata(nb: NotebookNode, known: Known, warn: logging.Logger | None = None) -> None:
    """Give every known cell its metadata and cell type back, once; take nbgrader's metadata from all other cells."""
    seen: set[str] = set()
    for index in reversed(range(len(nb.cells))):  # of several copies the last one counts, as in nbgrader
        nb.cells[index] = _repaired(nb.cells[index], known, seen, warn or log)


def _repaired(cell: NotebookNode, known: Known, seen: set[str], warn: logging.Logger) -> NotebookNode:
    name = grade_id(cell)
    if name not in known or name in seen:
        if cell.metadata.pop("nbgrader", None) is not None:
            warn.warning("Cell '%s' is a copy or does not exist in the gradebook", name)
        return cell
    seen.add(name)
    if cell.cell_type != known[name].cell_type:
        make = new_code_cell if known[name].cell_type == "code" else new_markdown_cell
        cell = make(cell.source, metadata=cell.metadata)
    cell.metadata["nbgrader"] = known[name].metadata()
    return cell


def restore_sources(nb: NotebookNode, known: Known) -> None:
    """Give locked cells their text back, after their metadata. Raises ValueError if the checksum still differs."""
    for cell in nb.cells:
        name = grade_id(cell)
        if name and known[name].locked and checksum(cell) != known[name].checksum:
            cell.source = known[name].source
            if checksum(cell) != known[name].checksum:
                raise ValueError(f"Inconsistent checksums for cell {name}")


def in_order(known: Known, source: NotebookNode | None) -> list[str]:
    """The names of the cells in the order of the instructor's notebook; the gradebook keeps no order."""
    names = [name for name in map(grade_id, source.cells) if name in known] if source else []
    return names + [name for name in known if name not in names]


def add_missing_cells(
    nb: NotebookNode, known: Known, order: Iterable[str], notice: str = NOTICE, warn: logging.Logger | None = None
) -> None:
    """Put deleted graded cells back, each after the cell that precedes it in the source, and deleted tasks at the end,
    where nbgrader puts them.
    """
    order = list(order)
    there = _positions(nb)
    for name in order:
        if known[name].grade and name not in there:
            (warn or log).warning("Missing grade cell %s encountered, adding to notebook", name)
            nb.cells.insert(_place(nb, order, name), _added(known[name], notice))
    nb.cells += [_added(known[name], notice) for name in order if known[name].task and name not in there]
    if nb.nbformat_minor < 5:  # cells have no ids in older formats
        for cell in nb.cells:
            cell.pop("id", None)


def _added(known: KnownCell, notice: str) -> NotebookNode:
    text = notice.format(cell_id=known.name) + known.source
    cell = new_code_cell(f"# {text}") if known.cell_type == "code" else new_markdown_cell(text)
    cell.metadata = NotebookNode(nbgrader=known.metadata(), deletable=False)
    return cell


def _positions(nb: NotebookNode) -> dict[str, int]:
    return {name: index for index, cell in enumerate(nb.cells) if (name := grade_id(cell))}


def _place(nb: NotebookNode, order: list[str], name: str) -> int:
    """After the nearest cell that precedes `name` in the source; at the end if none of them is left."""
    positions = _positions(nb)
    before = [positions[other] for other in order[: order.index(name)] if other in positions]
    return before[-1] + 1 if before else len(nb.cells)


def cells_in_rows(rows: Mapping[str, list[dict[str, Any]]], notebook: str) -> dict[str, KnownCell]:
    """The known cells of one notebook, by its id, from an assignment's rows of the gradebook."""
    names = {row["id"]: row["name"] for row in rows["base_cell"] if row["notebook_id"] == notebook}
    grades, solutions, tasks = (
        {names[row["id"]]: row for row in rows[table] if row["id"] in names}
        for table in ("grade_cells", "solution_cells", "task_cells")
    )
    points = {name: row["max_score"] for name, row in [*grades.items(), *tasks.items()]}
    return {
        row["name"]: KnownCell(
            name=row["name"],
            cell_type=row["cell_type"],
            source=row["source"],
            locked=bool(row["locked"]),
            checksum=row["checksum"],
            grade=row["name"] in grades,
            solution=row["name"] in solutions,
            task=row["name"] in tasks,
            points=points.get(row["name"]),
        )
        for row in rows["source_cell"]
        if row["notebook_id"] == notebook
    }
