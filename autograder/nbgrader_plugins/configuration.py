"""Everything that makes an nbgrader course use our judge, as configuration and nothing else.

Classes are named by dotted strings, so that reading the configuration costs nothing and Formgrader can show it as JSON.
nbgrader's own lists are restated here because traitlets has no way to say "the default, but with this one replaced".
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from traitlets.config import Config

PLUGINS = "autograder.nbgrader_plugins"
TEMPLATES = Path(__file__).parent / "templates"
NBGRADER = find_spec("nbgrader")  # where it is, without importing it
FORMGRADER = Path(NBGRADER.origin or "" if NBGRADER else "").parent / "server_extensions" / "formgrader"
FORMGRADER_TEMPLATES = FORMGRADER / "templates"
JUDGE = f"{PLUGINS}.judge_notebook.JudgeNotebook"
COMMENTS = f"{PLUGINS}.auto_comments.AutoComments"
SUBMISSION_TIME = f"{PLUGINS}.submission_time.SubmissionTime"
QUIZ_STUBS = f"{PLUGINS}.release.QuizStubs"
GET_GRADES = f"{PLUGINS}.grades.GetGrades"
HOLD_BACK = f"{PLUGINS}.release.HoldBack"
MARK_SCHEMES = f"{PLUGINS}.release.ClearMarkSchemes"

SANITIZE = [
    "nbgrader.preprocessors.ClearOutput",
    f"{PLUGINS}.restore_cells.RepairMetadata",
    "nbgrader.preprocessors.OverwriteKernelspec",
    f"{PLUGINS}.restore_cells.RestoreCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
AUTOGRADE = [
    JUDGE,
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    COMMENTS,
    SUBMISSION_TIME,
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# lessons.release runs these too, except SaveCells.
RELEASE = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.InstantiateTests",
    "nbgrader.preprocessors.LockCells",
    "nbgrader.preprocessors.ClearSolutions",
    QUIZ_STUBS,
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    HOLD_BACK,
    "nbgrader.preprocessors.ClearHiddenTests",
    MARK_SCHEMES,
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
]
FEEDBACK = [
    GET_GRADES,
    f"{PLUGINS}.first_screen.FirstScreen",
    f"{PLUGINS}.feedback.HideHiddenTests",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
# How a cell output is shown, first match wins: nbconvert's list without the two kinds that need a script.
DISPLAYED = [
    "text/html",
    "text/markdown",
    "image/svg+xml",
    "text/latex",
    "image/png",
    "image/jpeg",
    "text/plain",
]


@dataclass(frozen=True)
class Settings:
    """How submissions of a course are judged. `zone`: the zone in which nbgrader writes when they were handed in."""

    secret: bytes
    cell_seconds: float
    query_seconds: float
    unsafe: bool = False
    zone: str = ""


def configure(c: Config) -> None:
    """Make the nbgrader course that `c` configures use our judge, comments and feedback.

    Call it last in an `nbgrader_config.py`: preprocessors that the course itself lists stay, in their places.
    """
    c.GenerateAssignment.preprocessors = _adapted(c.GenerateAssignment.get("preprocessors"), RELEASE)
    c.Autograde.sanitize_preprocessors = _adapted(c.Autograde.get("sanitize_preprocessors"), SANITIZE)
    c.Autograde.autograde_preprocessors = _adapted(c.Autograde.get("autograde_preprocessors"), AUTOGRADE)
    c.Autograde.exporter_class = f"{PLUGINS}.submission_exporter.SubmissionExporter"
    c.GenerateFeedback.preprocessors = _adapted(c.GenerateFeedback.get("preprocessors"), FEEDBACK)
    c.GenerateFeedback.exporter_class = f"{PLUGINS}.feedback.FeedbackExporter"
    c.FeedbackExporter.template_name = "graded_pages"
    # These reach Formgrader's page too, which always uses nbconvert's own HTML exporter.
    c.HTMLExporter.sanitize_html = True
    c.HTMLExporter.filters = {
        **_given(c.HTMLExporter.get("filters"), {}),
        "clean_html": f"{PLUGINS}.safe_html.clean_html",
        "markdown2html": f"{PLUGINS}.safe_html.markdown2html",
    }
    c.HTMLExporter.extra_template_basedirs = [str(TEMPLATES), str(FORMGRADER_TEMPLATES)]
    # Set only for the filters: set for their base class, it makes every nbgrader preprocessor warn of an unknown trait.
    for name in ("DataTypeFilter", "WidgetsDataTypeFilter"):
        c[name].display_data_priority = DISPLAYED


REPLACED = {
    "Execute": JUDGE,
    "DeduplicateIds": f"{PLUGINS}.restore_cells.RepairMetadata",
    "OverwriteCells": f"{PLUGINS}.restore_cells.RestoreCells",
    "ClearHiddenTests": f"{PLUGINS}.feedback.HideHiddenTests",
    "GetGrades": GET_GRADES,
    "ClearMarkScheme": MARK_SCHEMES,
}
NEIGHBORS = (
    # (ours, the class it must directly precede or follow, where)
    (f"{PLUGINS}.restore_cells.RepairMetadata", "RestoreCells", "before"),
    (COMMENTS, "SaveAutoGrades", "after"),
    (SUBMISSION_TIME, "AssignLatePenalties", "before"),
    (QUIZ_STUBS, "ClearSolutions", "after"),
    (HOLD_BACK, "SaveCells", "after"),
    (f"{PLUGINS}.feedback.HideHiddenTests", "GetGrades", "after"),
    (f"{PLUGINS}.first_screen.FirstScreen", "GetGrades", "after"),
)


def _adapted(given: Any, default: list[str]) -> list[Any]:
    """The course's own list of preprocessors with ours in their places, or the default if it has none."""
    course_list = _given(given, None)
    if course_list is None:
        return list(default)
    replaced = {name: ours for name, ours in REPLACED.items() if ours in default}
    adapted = [replaced.get(_class_name(item), item) for item in course_list]
    for ours, neighbor, side in NEIGHBORS:
        names = [_class_name(item) for item in adapted]
        if ours in default and neighbor in names and _class_name(ours) not in names:
            adapted.insert(names.index(neighbor) + (side == "after"), ours)
    return adapted


def _given(value: Any, default: Any) -> Any:
    """A value that the course has set, or the default. traitlets leaves a placeholder for one that was only read."""
    return value if isinstance(value, (list, dict)) and value is not None else default


def _class_name(item: Any) -> str:
    return item.rsplit(".", 1)[-1] if isinstance(item, str) else item.__name__


def cell_seconds(config: Config) -> float:
    """How long one cell may run in a course: the judge's own setting, else nbgrader's, else half a minute."""
    for section, name in (("JudgeNotebook", "cell_seconds"), ("Execute", "timeout")):
        seconds = (config.get(section) or {}).get(name)
        if isinstance(seconds, int | float) and (seconds > 0 or section == "JudgeNotebook"):
            return float(seconds)
    return 30.0


def query_seconds(config: Config) -> float:
    """How long the answer to one question of a test may take."""
    seconds = (config.get("JudgeNotebook") or {}).get("query_seconds")
    return float(seconds) if isinstance(seconds, int | float) else 10.0
