"""Test cells and their metadata put back as the instructor wrote them, whatever a submission did to them.

nbgrader's own preprocessors restore a changed source, but drop the whole submission when the metadata was changed
too, and do not bring back a deleted test whose solution cell is gone as well. Here the gradebook decides, and nothing
is dropped.
"""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook, Notebook, SourceCell
from nbgrader.preprocessors import NbGraderPreprocessor, OverwriteCells
from traitlets import default

from autograder.nbgrader_plugins.context import course_directory, grade_id, source_notebook


class RepairMetadata(NbGraderPreprocessor):
    """Every cell that the gradebook knows has the gradebook's metadata and cell type, once; no other cell has any."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            notebook = gradebook.find_notebook(place["notebook"], place["assignment"])
            known = {cell.name: cell for cell in notebook.source_cells}
            wanted = metadata_by_name(notebook)
            seen: set[str] = set()
            for index in reversed(range(len(nb.cells))):  # of several copies the last one counts, as in nbgrader
                nb.cells[index] = self._repaired(nb.cells[index], known, wanted, seen)
        return nb, resources

    def _repaired(
        self, cell: NotebookNode, known: dict[str, SourceCell], wanted: dict[str, dict[str, Any]], seen: set[str]
    ) -> NotebookNode:
        name = grade_id(cell)
        if name is None or name not in known or name in seen:
            if cell.metadata.pop("nbgrader", None) is not None:
                self.log.warning("Cell '%s' is a copy or does not exist in the gradebook", name)
            return cell
        seen.add(name)
        if cell.cell_type != known[name].cell_type:
            make = new_code_cell if known[name].cell_type == "code" else new_markdown_cell
            cell = make(cell.source, metadata=cell.metadata)
        cell.metadata["nbgrader"] = NotebookNode(wanted[name])
        return cell


class RestoreCells(OverwriteCells):
    """nbgrader's OverwriteCells, which also puts deleted test cells back, each after what precedes it in the source."""

    @default("add_missing_cells")
    def _add_missing_cells(self) -> bool:
        return True

    def add_missing_grade_cells(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        notebook = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        sources = {cell.name: cell for cell in notebook.source_cells}
        wanted = metadata_by_name(notebook)
        order = self._order(list(sources))
        for name in order:
            if wanted[name]["grade"] and name not in _positions(nb):
                self.log.warning("Missing grade cell %s encountered, adding to notebook", name)
                nb.cells.insert(_place(nb, order, name), self._cell(sources[name], wanted[name]))
        if nb.nbformat_minor < 5:  # cells had no ids then
            for cell in nb.cells:
                cell.pop("id", None)
        return nb, resources

    def _order(self, names: list[str]) -> list[str]:
        """The cells in the order of the instructor's notebook; the gradebook keeps none."""
        source = source_notebook(course_directory(self), self.assignment_id, self.notebook_id)
        in_source = [name for name in map(grade_id, source.cells) if name in names] if source else []
        return in_source + [name for name in names if name not in in_source]

    def _cell(self, source: SourceCell, metadata: dict[str, Any]) -> NotebookNode:
        notice = self.missing_cell_notification.format(cell_id=source.name)
        if source.cell_type == "code":
            cell = new_code_cell(f"# {notice}{source.source}")
        else:
            cell = new_markdown_cell(notice + source.source)
        cell.metadata = NotebookNode(nbgrader=NotebookNode(metadata), deletable=False)
        return cell


def metadata_by_name(notebook: Notebook) -> dict[str, dict[str, Any]]:
    """nbgrader's metadata of every cell that the gradebook knows, as generate_assignment would write it."""
    points = {cell.name: cell.max_score for cell in [*notebook.grade_cells, *notebook.task_cells]}
    grades, solutions, tasks = (
        {cell.name for cell in cells} for cells in (notebook.grade_cells, notebook.solution_cells, notebook.task_cells)
    )
    metadata = {}
    for cell in notebook.source_cells:
        name = cell.name
        metadata[name] = {
            "schema_version": 3,
            "grade_id": name,
            "grade": name in grades,
            "solution": name in solutions,
            "task": name in tasks,
            "locked": bool(cell.locked),
            "cell_type": cell.cell_type,
            "checksum": cell.checksum,
        }
        if name in points:
            metadata[name]["points"] = points[name]
    return metadata


def _positions(nb: NotebookNode) -> dict[str, int]:
    return {name: index for index, cell in enumerate(nb.cells) if (name := grade_id(cell)) is not None}


def _place(nb: NotebookNode, order: list[str], name: str) -> int:
    """After the nearest cell that precedes `name` in the source; at the end where none of them is left."""
    positions = _positions(nb)
    before = [positions[other] for other in order[: order.index(name)] if other in positions]
    return before[-1] + 1 if before else len(nb.cells)
