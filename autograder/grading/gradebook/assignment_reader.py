"""Reads from a course what workers have to know about an assignment, and whether it leaves nbgrader's steps as usual.

Only this module reads an assignment's rows from the gradebook, once, in the process that starts a run.
"""

from __future__ import annotations

import json
from typing import Any

import cloudpickle
from nbgrader.api import Base
from sqlalchemy import Connection, select
from traitlets.config import Config

from autograder.files import files_below
from autograder.grading.course import Course, CourseError
from autograder.grading.grader_version import grader_version
from autograder.grading.submission.assignments import Assignment
from autograder.nbgrader_plugins import configure
from autograder.nbgrader_plugins.configuration import Settings, cell_seconds, query_seconds
from autograder.nbgrader_plugins.course_secret import course_secret
from autograder.nbgrader_plugins.times import zone_of

TABLES = Base.metadata.tables
# Classes whose settings the usual steps would not see: everything that nbgrader's converter runs, with its bases.
STEPS = {
    *("AssignLatePenalties", "AutoComments", "Autograde", "BaseConverter", "BasePlugin", "CheckCellMetadata"),
    *("ClearMetadataPreprocessor", "ClearOutput", "ClearOutputPreprocessor", "Configurable", "Exporter"),
    *("IgnorePattern", "LateSubmissionPlugin", "LimitOutput", "LoggingConfigurable", "NbConvertBase"),
    *("NbGraderPreprocessor", "NotebookExporter", "OverwriteCells", "OverwriteKernelspec", "Preprocessor"),
    *("RepairMetadata", "RestoreCells", "SaveAutoGrades", "SubmissionExporter", "SubmissionTime"),
}
PENALTIES = {"AssignLatePenalties", "LateSubmissionPlugin", "BasePlugin"}
JUDGED_BY = {"unsafe", "cell_seconds", "query_seconds", "enabled"}


def read_assignment(course: Course, name: str, *, unsafe: bool = False) -> Assignment:
    """Everything that grading needs, read once per run."""
    folder = course.folder("source", ".", name)
    files = files_below(folder)
    with course.connection() as connection:
        rows = rows_of(connection, name)
    try:
        config = cloudpickle.dumps(course.app.config)
    except Exception as error:
        raise CourseError(f"The course's configuration cannot be handed to the workers: {error}") from error
    return Assignment(
        name,
        rows,
        files,
        config,
        described(course),
        grader_version(),
        settings_of(course, unsafe),
        ignored=tuple(course.coursedir.ignore),
        usual=is_usual(course.app.config),
        penalties=any(course.app.config.get(name) for name in PENALTIES),
    )


def settings_of(course: Course, unsafe: bool) -> Settings:
    """How the judge is set up in this course. Raises `CourseError` if its secret cannot be used."""
    config = course.app.config
    try:
        secret = course_secret(course.coursedir)
    except ValueError as error:
        raise CourseError(str(error)) from error
    return Settings(secret, cell_seconds(config), query_seconds(config), unsafe, zone_of(config))


def is_usual(config: Config) -> bool:
    """Whether a course leaves the steps of grading as `configure` sets them up."""
    plain = Config()
    configure(plain)
    as_usual = all(not config.get(name) or config[name] == plain.get(name) for name in STEPS - PENALTIES)
    judge = config.get("JudgeNotebook") or {}
    return (
        as_usual
        and config.get("Autograde") == plain.Autograde
        and set(judge) <= JUDGED_BY
        and judge.get("enabled", True) is True
        and not (config.get("CourseDirectory") or {}).get("groupshared", False)
    )


def is_released_as_usual(config: Config) -> bool:
    """Whether a release leaves the text of test cells as the instructor wrote it."""
    plain = Config()
    configure(plain)
    return bool(config.get("GenerateAssignment") == plain.GenerateAssignment)


def described(course: Course) -> str:
    """The configuration as text: its values, and its file, because of the code of functions in it."""
    values = {name: value for name, value in course.app.config.items() if name != "CourseDirectory"}
    text = json.dumps(values, sort_keys=True, default=lambda value: getattr(value, "__qualname__", str(type(value))))
    path = course.root / "nbgrader_config.py"
    return text + (path.read_text(errors="replace") if path.is_file() else "")


def rows_of(connection: Connection, name: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of the gradebook that define an assignment."""

    def rows(table: str, column: str, values: list[Any]) -> list[dict[str, Any]]:
        query = select(TABLES[table]).where(TABLES[table].c[column].in_(values))
        return [dict(row._mapping) for row in connection.execute(query)]

    found = {"assignment": rows("assignment", "name", [name])}
    found["course"] = rows("course", "id", [row["course_id"] for row in found["assignment"]])
    found["notebook"] = rows("notebook", "assignment_id", [row["id"] for row in found["assignment"]])
    notebooks = [row["id"] for row in found["notebook"]]
    for table in ("source_cell", "base_cell"):
        found[table] = rows(table, "notebook_id", notebooks)
    cells = [row["id"] for row in found["base_cell"]]
    for table in ("grade_cells", "solution_cells", "task_cells"):
        found[table] = rows(table, "id", cells)
    return found
