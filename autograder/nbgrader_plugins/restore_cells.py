"""Restores test cells and their metadata as the instructor wrote them, whatever a submission did to them.

nbgrader's own preprocessors restore a changed source, but drop the whole submission when the metadata was changed
too, and do not bring back a deleted test whose solution cell is gone as well. Here the gradebook decides, and nothing
is dropped.
"""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook, Notebook
from nbgrader.preprocessors import NbGraderPreprocessor, OverwriteCells
from traitlets import default

from autograder.nbgrader_plugins.converter_context import course_directory, source_notebook
from autograder.notebooks.known_cells import KnownCell, add_missing_cells, in_order, repair_metadata


class RepairMetadata(NbGraderPreprocessor):
    """Gives each cell that the gradebook knows, once, the gradebook's metadata and cell type, and no other cell any."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            known = known_cells(gradebook.find_notebook(place["notebook"], place["assignment"]))
        repair_metadata(nb, known, self.log)
        return nb, resources


class RestoreCells(OverwriteCells):
    """nbgrader's OverwriteCells, which also puts deleted cells back, each test after its predecessor in the source."""

    @default("add_missing_cells")
    def _add_missing_cells(self) -> bool:
        return True

    def add_missing_grade_cells(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        known = known_cells(self.gradebook.find_notebook(self.notebook_id, self.assignment_id))
        source = source_notebook(course_directory(self), self.assignment_id, self.notebook_id)
        add_missing_cells(nb, known, in_order(known, source), self.missing_cell_notification, self.log)
        return nb, resources


def known_cells(notebook: Notebook) -> dict[str, KnownCell]:
    """The cells of a notebook in the gradebook, by name."""
    points = {cell.name: cell.max_score for cell in [*notebook.grade_cells, *notebook.task_cells]}
    grades, solutions, tasks = (
        {cell.name for cell in cells} for cells in (notebook.grade_cells, notebook.solution_cells, notebook.task_cells)
    )
    return {
        cell.name: KnownCell(
            name=cell.name,
            cell_type=cell.cell_type,
            source=cell.source,
            locked=bool(cell.locked),
            checksum=cell.checksum,
            grade=cell.name in grades,
            solution=cell.name in solutions,
            task=cell.name in tasks,
            points=points.get(cell.name),
        )
        for cell in notebook.source_cells
    }
