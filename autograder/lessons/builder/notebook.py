"""Makes the instructor's notebook of a lesson from its text: `assemble` in memory, `build_lesson` as files, one for
each assignment.

The result depends on the text alone: cell ids come from the grade_id or from the source, so building twice gives the
same bytes, and students' notebooks can be compared cell by cell after an update.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from autograder.files import write_if_changed
from autograder.lessons.builder.assignments import parted
from autograder.lessons.builder.case_files import cases_file
from autograder.lessons.builder.expansion import CHECK_COMMENT, IMPORT_COMMENT, expanded
from autograder.lessons.builder.lesson_engines import calls_start, engine_after, owners_of_names, with_engine
from autograder.lessons.builder.lesson_files import place_files
from autograder.lessons.builder.paths import asks_questions
from autograder.lessons.builder.rules import Owner, check_lesson, engine_names_are_kept
from autograder.lessons.builder.rules_of_tests import cases_hide_no_names
from autograder.lessons.builder.text import TextCell, read_lesson
from autograder.notebooks.cells import TESTED, defined_names, grade_id, is_code_solution, is_test
from autograder.notebooks.regions import given_lines

# Only the first line of a cell with a sealed text is shown: the rest means nothing to a reader.
FOLDED = tuple(comment.partition("{")[0] for comment in (CHECK_COMMENT, IMPORT_COMMENT))
SEALED_CALL = re.compile(r"^(hints|quiz|start_lesson)\(.{100}", re.MULTILINE)
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
TAGS_OF_NOTEBOOKS = {"demo", "visible", "raises-exception"}


def assemble(path: Path, questions: bool = False) -> NotebookNode:
    """The instructor's notebook of a text: hints and engine sealed, no styles, and the `questions` that a person grades
    only if asked for. Raises LessonTextError.
    """
    cells = read_lesson(path, questions)
    check_lesson(cells)
    owners: dict[str, Owner] = {}
    if any("engine" in cell.tags or calls_start(cell) for cell in cells):
        engine = engine_after(path)  # a bad one is refused here, not only by the lesson that starts with it
        owners = owners_of_names(engine) if engine else {}
        engine_names_are_kept(cells, owners)
    cases_hide_no_names(cells, cases_file(path), owners)
    notebook = new_notebook(metadata={"kernelspec": dict(KERNEL), "language_info": {"name": "python"}})
    notebook.nbformat_minor = 5
    for text_cell, name in expanded(cells):
        notebook.cells.append(_notebook_cell(with_engine(text_cell, path), name))
    _name_exercises(notebook.cells)
    nbformat.validate(notebook)
    return notebook


def assignments(path: Path, questions: bool = False) -> dict[str, NotebookNode]:
    """The instructor's notebooks of a lesson's core and, if it gives points, of *Further*, by the names of the
    assignments. Raises LessonTextError.
    """
    return parted(assemble(path, questions), path)


def _name_exercises(cells: Sequence[NotebookNode]) -> None:
    """Write into each test cell which exercises it is about, the last ones before it, and what these have to define:
    a student may delete or rename anything else.
    """
    exercises: dict[str, list[str]] = {}
    begun = False
    for cell in cells:
        if is_code_solution(cell):
            exercises = exercises if begun else {}
            exercises[grade_id(cell)] = defined_names(given_lines(cell.source))
            begun = True
        elif is_test(cell):
            if exercises:
                cell.metadata[TESTED] = exercises
            begun = False


def _notebook_cell(cell: TextCell, name: str) -> NotebookNode:
    """The cell as nbformat has it, not yet validated, which takes longer for each cell than for the whole notebook."""
    content = {"cell_type": cell.kind, "id": name, "metadata": _metadata(cell), "source": cell.source}
    return nbformat.from_dict(content | ({"execution_count": None, "outputs": []} if cell.kind == "code" else {}))


def styles(path: Path) -> dict[str, dict[str, str]]:
    """The alternative solutions in a lesson's text: name of the style -> grade_id of the solution cell -> source."""
    found: dict[str, dict[str, str]] = {}
    for cell in read_lesson(path):
        if cell.style:
            sources = found.setdefault(cell.style, {})
            if cell.exercise in sources:
                raise cell.error(f"style {cell.style!r} of {cell.exercise!r} is given twice")
            sources[cell.exercise] = cell.source
    return found


def build_lesson(path: Path, course_dir: Path, files_of: Path | None = None) -> Path:
    """Write course_dir/source/NAME/NAME.ipynb for each of the lesson's assignments, and the files that they need, from
    that course or from the course `files_of`. Returns the path of the core's notebook. The course's setting decides
    about questions.
    """
    path, source = Path(path), Path(course_dir) / "source"
    for name, notebook in assignments(path, asks_questions(Path(course_dir))).items():
        place_files(path, Path(files_of or course_dir), source / name)
        write_if_changed(source / name / f"{name}.ipynb", notebook_text(notebook))
    return source / path.stem / f"{path.stem}.ipynb"


def notebook_text(notebook: NotebookNode) -> str:
    """A notebook as the text of its file."""
    return nbformat.writes(notebook) + "\n"


def _metadata(cell: TextCell) -> dict[str, object]:
    metadata = {name: value for name, value in cell.metadata.items() if name in ("nbgrader", "jupyter")}
    if cell.kind == "code" and (SEALED_CALL.search(cell.source) or cell.source.startswith(FOLDED)):
        metadata["jupyter"] = {**metadata.get("jupyter", {}), "source_hidden": True}
    tags = [tag for tag in cell.tags if tag in TAGS_OF_NOTEBOOKS]
    return {**metadata, "tags": tags} if tags else metadata
