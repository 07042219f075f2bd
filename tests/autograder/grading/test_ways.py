"""Our steps of grading, nbgrader's preprocessors called one by one, and nbgrader's own converter with our plugins give
the same files, notebooks, marks and comments.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import cloudpickle
import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import SubmittedAssignment
from nbgrader.converters import Autograde
from traitlets import import_item
from traitlets.config import Config

from autograder.files import write_file
from autograder.grading.converting import converted
from autograder.grading.course import generate_assignment, open_course
from autograder.grading.gradebook import assignment_reader
from autograder.grading.submission.assignments import Earlier, Submission
from autograder.grading.submission.grader import Grader
from autograder.grading.submission.own_steps import _cells
from autograder.grading.submission.result import Result
from autograder.grading.submission.worker import Workshop
from autograder.nbgrader_plugins import configure
from autograder.notebooks.reading import note_of
from tests.autograder.conftest import nbgrader_cell
from tests.autograder.grading.test_submissions import SUBMISSIONS

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore")]

SOURCE = {
    "given": ("base = 10", {"locked": True}),
    "double": ("def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION", {"solution": True}),
    "test_double": (
        "assert double(2) == 4\n### BEGIN HIDDEN TESTS\nassert double(7) == 14\n### END HIDDEN TESTS",
        {"grade": True, "points": 2},
    ),
    "test_partly": ("2.5 if double(base) == 20 else 1.5", {"grade": True, "points": 2.5}),
    "plot": ("### BEGIN SOLUTION\nprint('a plot')\n### END SOLUTION", {"grade": True, "solution": True, "points": 3}),
    "essay": ("", {"grade": True, "solution": True, "points": 4}),
    "task": ("Do something.", {"task": True, "locked": True, "points": 1}),
}
WORDS = ("essay", "task")


def source(described: dict[str, tuple[str, dict[str, Any]]] = SOURCE) -> NotebookNode:
    cells = []
    for name, (text, about) in described.items():
        cell = (new_markdown_cell if name in WORDS else nbgrader_cell_of)(text)
        kinds = dict.fromkeys(("grade", "solution", "locked", "task"), False)
        cell.metadata["nbgrader"] = {"schema_version": 3, "grade_id": name, **kinds, **about}
        cells.append(cell)
    return new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})


def nbgrader_cell_of(text: str) -> NotebookNode:
    return nbgrader_cell("x", text)


NOTHING = new_notebook()


class Ways:
    """A course with an assignment, and all ways of grading a submission of it."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        with open_course(root) as course:
            generate_assignment(course, name)
            self.assignment = assignment_reader.read_assignment(course, name)
        self.workshop = Workshop(self.assignment)

    def released(self, notebook: str) -> NotebookNode:
        return nbformat.read(self.root / "release" / self.name / f"{notebook}.ipynb", as_version=4)

    def agree(self, submission: Submission) -> tuple[dict[str, Any], dict[str, Any]]:
        """The result and the files, which are the same in all ways."""
        ours = [] if not self.assignment.usual else [self.ours(submission, own_steps=False)]
        found, *others = [*ours, self.ours(submission, own_steps=True), self.by_converter(submission)]
        for other in others:
            assert found == other
        return found

    def ours(self, submission: Submission, own_steps: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        self.workshop.folders.empty()
        with mock.patch.object(Grader, "_needs_own_steps", return_value=own_steps):
            result = self.workshop.grader.grade(submission)
        return comparable(result), files_below(self.workshop.folders.folder("autograded", submission.student))

    def by_converter(self, submission: Submission) -> tuple[dict[str, Any], dict[str, Any]]:
        folder = self.root / "submitted" / submission.student / self.name
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in submission.files.items():
            write_file(folder / name, content)
        for name in submission.links:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(self.root / "empty")
        (self.root / "empty").touch()
        with open_course(self.root) as course:
            course.app.config.JudgeNotebook.inside = {}
            course.coursedir.assignment_id, course.coursedir.student_id = self.name, submission.student
            converter = Autograde(coursedir=course.coursedir, parent=course.app)
            converter.force = True
            assert not converted(converter)
            with course.gradebook() as gradebook:
                entry = gradebook.find_submission(self.name, submission.student)
                found = self.in_gradebook(entry)
                gradebook.remove_submission(self.name, submission.student)
        return found, files_below(self.root / "autograded" / submission.student / self.name)

    def in_gradebook(self, entry: SubmittedAssignment) -> dict[str, Any]:
        folder = self.root / "autograded" / entry.student.id / self.name
        names = [own.name for own in entry.notebooks if (folder / f"{own.name}.ipynb").is_file()]
        graded = {name: nbformat.read(folder / f"{name}.ipynb", as_version=4) for name in names}
        noted = {name: note_of(notebook, "problem") for name, notebook in graded.items()}
        several = len(entry.notebooks) > 1
        problems = [f"{name}.ipynb: {it}" if several else it for name, it in noted.items() if it]
        result = Result(
            entry.student.id,
            self.name,
            "unreadable" if problems else "graded",
            reason=" ".join(problems),
            isolation=next((note_of(notebook, "isolation") for notebook in graded.values()), ""),
            timestamp=entry.timestamp.isoformat() if entry.timestamp else None,
            cells=tuple(cell for own in entry.notebooks for cell in _cells(own, graded.get(own.name, NOTHING))),
            comments=tuple((own.name, it.name, it.auto_comment) for own in entry.notebooks for it in own.comments),
            penalties=tuple((own.name, own.late_submission_penalty) for own in entry.notebooks),
            notebooks=tuple(names),
        )
        return comparable(result)


def files_below(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, content_of(path))
        for path in folder.rglob("*")
        if path.is_file()
    }


def comparable(result: Result) -> dict[str, Any]:
    """A result without an order of cells and comments, which the gradebook does not keep."""
    unordered = {"cells": result.cells, "comments": result.comments, "penalties": result.penalties}
    return vars(result) | {name: sorted(found, key=repr) for name, found in unordered.items()}


def content_of(path: Path) -> Any:
    """A file's content without random parts: the ids of new cells and the addresses of objects."""
    if path.suffix != ".ipynb":
        return path.read_bytes()
    notebook = json.loads(re.sub(r"0x[0-9a-f]+", "0x", path.read_text()))
    for cell in notebook["cells"]:
        if "id" in cell:
            cell["id"] = bool(cell["id"])
    return notebook


@pytest.fixture(scope="module")
def words(released_course: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    ways = Ways(Path(shutil.copytree(released_course, tmp_path_factory.mktemp("words") / "course")), "words")
    yield ways
    ways.workshop.close()


@pytest.fixture(scope="module")
def doubles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    root = tmp_path_factory.mktemp("doubles") / "course"
    folder = root / "source" / "doubles"
    folder.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text("c = get_config()\n")
    for name in ("one", "two"):
        nbformat.write(source(), folder / f"{name}.ipynb")
    (folder / "data.txt").write_text("of the course")
    (folder / "code.pyc").write_text("ignored")
    ways = Ways(root, "doubles")
    yield ways
    ways.workshop.close()


class Released:
    """Stands in for the course that `SUBMISSIONS` expects."""

    def __init__(self, ways: Ways) -> None:
        self.ways = ways

    def released(self) -> NotebookNode:
        return self.ways.released("strings")

    def answered(self, length: str = "return len(word)", shout: str = "return word.upper()") -> NotebookNode:
        notebook = self.released()
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in ("length", "shout"):
                cell.source = f"def {name}(word):\n    {length if name == 'length' else shout}"
        return notebook


def raw(content: NotebookNode | bytes) -> bytes:
    return content if isinstance(content, bytes) else nbformat.writes(content).encode()


@pytest.mark.parametrize("make", [entry[0] for entry in SUBMISSIONS.values()], ids=SUBMISSIONS)
def test_odd_submissions(words: Ways, make: Callable[[Any], NotebookNode | bytes]) -> None:
    words.agree(Submission("ann", {"strings.ipynb": raw(make(Released(words)))}))


def test_a_link_in_the_place_of_a_notebook(words: Ways) -> None:
    result, _ = words.agree(Submission("ann", {"mine.txt": b"1"}, ("strings.ipynb",)))
    assert result["status"] == "unreadable"


VARIANTS = {
    "given": ("from autograder.student import variant\nBASES = range(2, 10)", {"locked": True}),
    "mine": ("### BEGIN SOLUTION\nme = 'the solution'\n### END SOLUTION", {"solution": True}),
    "test_mine": ("assert variant('base', BASES, me) > 1", {"grade": True, "locked": True, "points": 1}),
}


@pytest.fixture(scope="module")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    root = tmp_path_factory.mktemp("variants") / "course"
    folder = root / "source" / "variants"
    folder.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text("c = get_config()\n")
    nbformat.write(source(VARIANTS), folder / "one.ipynb")
    ways = Ways(root, "variants")
    yield ways
    ways.workshop.close()


@pytest.mark.parametrize(("name", "points"), [("ann", 1), ("bob", 0)])
def test_all_know_who_has_handed_it_in(variants: Ways, name: str, points: int) -> None:
    result, _ = variants.agree(Submission("ann", {"one.ipynb": raw(answers(variants, mine=f"me = {name!r}"))}))
    (cell,) = result["cells"]
    assert cell.points == points
    assert ("'ann' handed this in, but it uses the variant of 'bob'" in cell.message) == (points == 0)


def answers(ways: Ways, **texts: str) -> NotebookNode:
    notebook = ways.released("one")
    for cell in notebook.cells:
        cell.source = texts.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
    return notebook


RIGHT = "def double(x):\n    return 2 * x"
ANSWERS: dict[str, dict[str, str]] = {
    "untouched": {},
    "right": {"double": RIGHT, "plot": "print('mine')", "essay": "An essay.", "task": "Done."},
    "partly right": {"double": "def double(x):\n    return 4"},
    "right where it is seen": {"double": "def double(x):\n    return x * x"},
    "given cell changed": {"double": RIGHT, "given": "base = 11"},
    "much output": {"double": RIGHT + "\nfor i in range(3000): print(i)"},
    "a long traceback": {"double": RIGHT + "\nraise ValueError('\\n'.join('abc' * 100))"},
    "stderr": {"double": RIGHT + "\nimport sys; print('careful', file=sys.stderr)"},
    "a picture and a formula": {"double": RIGHT + "\nfrom IPython.display import Math, display; display(Math('x^2'))"},
}


@pytest.mark.parametrize("texts", ANSWERS.values(), ids=ANSWERS)
def test_every_kind_of_cell(doubles: Ways, texts: dict[str, str]) -> None:
    _, files = doubles.agree(Submission("ann", {"one.ipynb": raw(answers(doubles, **texts))}))
    assert {name: mode & 0o777 for name, (mode, _) in files.items()} == {"one.ipynb": 0o444, "data.txt": 0o444}


FILES: dict[str, tuple[dict[str, bytes], tuple[str, ...]]] = {
    "files and folders": ({"mine.csv": b"1,2", "deep/er/x.txt": b"y", "deep/other.ipynb": b"{}"}, ()),
    "a file of the course": ({"data.txt": b"mine"}, ()),
    "links": ({"mine.csv": b"1"}, ("away.txt", "deep/link", "data.txt", "other.ipynb")),
    "ignored": ({"x.pyc": b"1", "__pycache__/y.txt": b"2", ".ipynb_checkpoints/z": b"3", ".hidden.pyc": b"4"}, ()),
    "hidden": ({".env": b"1", ".git/config": b"2", "feedback": b"3"}, ()),
    "other notebooks": ({"two.txt.ipynb": b"[]", "three.ipynb": b"{}"}, ()),
}


@pytest.mark.parametrize(("files", "links"), FILES.values(), ids=FILES)
def test_files(doubles: Ways, files: dict[str, bytes], links: tuple[str, ...]) -> None:
    show = "import os; print(sorted(os.listdir())); print(open('data.txt').read())"
    notebook = raw(answers(doubles, double=f"{RIGHT}\n{show}"))
    doubles.agree(Submission("ann", {"one.ipynb": notebook, **files}, links))


def old_notebook(doubles: Ways) -> bytes:
    notebook = answers(doubles, double=RIGHT)
    notebook.nbformat_minor = 2
    for cell in notebook.cells:
        cell.pop("id", None)
    del notebook.cells[2]
    return raw(notebook)


def version_3(doubles: Ways) -> bytes:
    cell = {"cell_type": "code", "language": "python", "metadata": {}, "outputs": [], "collapsed": False}
    cell |= {"input": [RIGHT], "prompt_number": 1}
    worksheet = {"cells": [cell], "metadata": {}}
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [worksheet]}).encode()


def same_ids(doubles: Ways) -> bytes:
    notebook = answers(doubles, double=RIGHT)
    notebook.cells += [new_code_cell("1", id="same"), new_code_cell("2", id="same")]
    return json.dumps(notebook).encode()


def own_metadata(doubles: Ways) -> bytes:
    notebook = answers(doubles, double=RIGHT)
    notebook.metadata.update(
        autograder={"problem": "none"}, signature="x", kernelspec={"name": "r", "display_name": "R"}
    )
    notebook.cells[0].metadata.update(trusted=True, collapsed=True, tags=["mine"], scrolled=False)
    return raw(notebook)


@pytest.mark.parametrize("make", [old_notebook, version_3, same_ids, own_metadata])
def test_formats_and_metadata(doubles: Ways, make: Callable[[Ways], bytes]) -> None:
    doubles.agree(Submission("ann", {"one.ipynb": make(doubles)}))


def test_a_notebook_of_two_that_is_not_there_is_said_to_be_missing(doubles: Ways) -> None:
    result, _ = doubles.workshop.grade(Submission("ann", {"one.ipynb": raw(doubles.released("one"))}))
    assert (result.status, result.reason) == ("graded", "No two.ipynb was handed in.")
    assert {cell.message for cell in result.cells if cell.notebook == "two"} == {result.reason}


A_MILLION_DIGITS = pytest.param(b"1" * 1_000_000, id="a million digits")


@pytest.mark.parametrize(
    "text",
    [b"yesterday", b"2026-03-01 12:00 PST", b"\xff\xfe", b"2026-13-01 12:00:00 UTC", b"1" * 400, A_MILLION_DIGITS],
)
def test_a_time_that_is_none_is_said_to_be_wrong(doubles: Ways, text: bytes) -> None:
    files = {"one.ipynb": raw(doubles.released("one")), "timestamp.txt": text}
    result, _ = doubles.workshop.grade(Submission("ann", files))
    assert result.status == "failed"
    assert "`timestamp.txt` contains no time that is certain: " in result.reason


def test_a_lost_task_waits_for_a_person(doubles: Ways) -> None:
    result, _ = doubles.workshop.grade(Submission("ann", {"one.ipynb": version_3(doubles)}))
    assert {cell.grade_id: cell.points for cell in result.cells if cell.notebook == "one"}["task"] is None


def test_a_folder_in_the_place_of_a_notebook(doubles: Ways) -> None:
    result, _ = doubles.agree(
        Submission("ann", {"one.ipynb/notes.txt": b"1", "two.ipynb": raw(doubles.released("two"))})
    )
    assert result["status"] == "unreadable"


LOS_ANGELES = "2015-02-02 15:58:23.948203 America/Los_Angeles"


def test_a_time_goes_into_the_result(doubles: Ways) -> None:
    files = {"one.ipynb": raw(answers(doubles, double=RIGHT)), "timestamp.txt": LOS_ANGELES.encode()}
    result, _ = doubles.agree(Submission("ann", files))
    assert result["timestamp"] == "2015-02-02T23:58:23.948203"


@pytest.fixture(scope="module")
def punctual(doubles: Ways) -> Iterator[Workshop]:
    """A course in Los Angeles that takes all points from what comes after noon there."""
    config = cloudpickle.loads(doubles.assignment.config)
    config.Exchange.timezone = "America/Los_Angeles"
    config.LateSubmissionPlugin.penalty_method = "zero"
    due = {**doubles.assignment.rows["assignment"][0], "duedate": datetime(2026, 3, 1, 20)}
    workshop = Workshop(
        replace(
            doubles.assignment,
            rows={**doubles.assignment.rows, "assignment": [due]},
            config=cloudpickle.dumps(config),
            settings=replace(doubles.assignment.settings, zone="America/Los_Angeles"),
            penalties=True,
        )
    )
    yield workshop
    workshop.close()


@pytest.mark.parametrize(
    ("text", "late"),
    [
        ("2026-03-01 11:59:00.000000 PST", False),
        ("2026-03-01 12:01:00.000000 PST", True),  # nbgrader's own reader takes it for UTC
        ("2026-03-01 11:59:00 -0800", False),
        ("2026-03-01 12:01:00 -0800", True),  # nbgrader's own reader takes it for 800 seconds
        ("2026-03-01 20:59:00.000000 +01", False),
        ("2026-03-01 21:01:00.000000 +01", True),
        ("2026-03-01 20:59:00 Europe/Berlin", False),
        ("2026-03-01T12:01-08:00", True),
        ("2026-03-01 20:01", True),
    ],
)
def test_all_steps_agree_on_what_is_late(punctual: Workshop, doubles: Ways, text: str, late: bool) -> None:
    files = {"one.ipynb": raw(answers(doubles, double=RIGHT)), "timestamp.txt": text.encode()}
    submission = Submission("ann", files)
    chosen, folder = punctual.grade(submission)
    assert folder is not None
    assert (folder / "timestamp.txt").read_text() == text, "nbgrader's commands look for the text as it is"
    punctual.folders.empty()
    with mock.patch.object(Grader, "_needs_own_steps", return_value=True):
        by_nbgrader = punctual.grader.grade(submission)
    assert chosen.timestamp == by_nbgrader.timestamp
    assert dict(chosen.penalties) == dict(by_nbgrader.penalties)
    assert any(penalty for _, penalty in by_nbgrader.penalties) == late


@pytest.mark.parametrize(("hours", "late"), [(0, True), (5, False)])
def test_only_late_submissions_need_the_step_for_penalties(doubles: Ways, hours: float, late: bool) -> None:
    due = {**doubles.assignment.rows["assignment"][0], "duedate": datetime(2015, 2, 2, 20)}
    rows = {**doubles.assignment.rows, "assignment": [due]}
    workshop = Workshop(replace(doubles.assignment, rows=rows, penalties=True))
    submission = Submission("ann", {}, earlier=Earlier(extension=timedelta(hours=hours)))
    assert workshop.grader._needs_own_steps(datetime(2015, 2, 2, 23), submission) is late
    workshop.close()


OWN = """
from nbgrader.preprocessors import NbGraderPreprocessor
from pathlib import Path
from autograder.nbgrader_plugins import configure
from autograder.nbgrader_plugins.configuration import AUTOGRADE

class Signs(NbGraderPreprocessor):
    def preprocess_cell(self, cell, resources, index):
        cell.metadata["signed"] = f"{resources['nbgrader']['student']} in {resources['unique_key']}"
        return cell, resources

def renames(assignment, student, notebooks):
    for path in map(Path, notebooks):
        path.write_text(path.read_text().replace("dooble", "double"))

c = get_config()
c.Autograde.autograde_preprocessors = [*AUTOGRADE[:-1], Signs, AUTOGRADE[-1]]
c.Autograde.exclude_overwriting = {"own": ["data.txt"]}
c.Autograde.pre_convert_hook = renames
c.Autograde.permissions = 600
c.LimitOutput.max_lines = 3
configure(c)
"""


def test_a_course_s_own_steps_and_settings(tmp_path: Path) -> None:
    root = tmp_path / "course"
    (root / "source" / "own").mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(OWN)
    nbformat.write(source(), root / "source" / "own" / "one.ipynb")
    (root / "source" / "own" / "data.txt").write_text("of the course")
    own = Ways(root, "own")
    answer = answers(own, double=RIGHT.replace("double", "dooble") + "\nfor i in range(9): print(i)")
    result, files = own.agree(Submission("ann", {"one.ipynb": raw(answer), "data.txt": b"mine"}))
    own.workshop.close()
    assert not own.assignment.usual
    assert {cell.grade_id: cell.points for cell in result["cells"]}["test_double"] == 2, "the hook came first"
    mode, notebook = files["one.ipynb"]
    assert mode & 0o777 == 0o600
    assert notebook["cells"][0]["metadata"]["signed"] == "ann in one"
    assert "... Output truncated ..." in str(notebook["cells"][1]["outputs"])
    assert files["data.txt"][1] == b"mine"


def configured(text: str) -> Config:
    c = Config()
    exec(text, {"c": c})
    configure(c)
    return c


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("", True),
        ("c.Execute.timeout = 5; c.ClearSolutions.code_stub = {}", True),
        ("c.CourseDirectory.course_id = 'x'; c.JudgeNotebook.query_seconds = 3", True),
        ("c.AssignLatePenalties.plugin_class = 'x.Y'", True),
        ("c.CourseDirectory.groupshared = True", False),
        ("c.LimitOutput.max_lines = 3", False),
        ("c.OverwriteCells.missing_cell_notification = ''", False),
        ("c.IgnorePattern.enabled = True", False),
        ("c.Autograde.exclude_overwriting = {'a': ['b']}", False),
        ("c.Autograde.autograde_preprocessors = ['nbgrader.preprocessors.Execute']", False),
        ("c.Autograde.pre_convert_hook = 'os.getcwd'", False),
        ("c.BaseConverter.permissions = 600", False),
        ("c.JudgeNotebook.enabled = False", False),
        ("c.Exporter.optimistic_validation = True", False),
    ],
)
def test_which_courses_are_as_usual(text: str, usual: bool) -> None:
    assert assignment_reader.is_usual(configured(text)) is usual


def test_the_settings_of_every_step_are_looked_at() -> None:
    c = configured("")
    steps = [*c.Autograde.sanitize_preprocessors, *c.Autograde.autograde_preprocessors, c.Autograde.exporter_class]
    steps += ["nbgrader.converters.Autograde", "nbgrader.plugins.LateSubmissionPlugin"]
    bases = {base.__name__ for step in steps for base in import_item(step).__mro__ if hasattr(base, "class_traits")}
    looked_at = assignment_reader.STEPS | {"JudgeNotebook"}
    assert bases - looked_at == {"HasTraits"}


def test_the_course_of_the_lessons_is_as_usual() -> None:
    config = Path(__file__).parents[3] / "course" / "nbgrader_config.py"
    c = Config()
    exec(config.read_text(), {"get_config": lambda: c, "__file__": str(config)})
    assert assignment_reader.is_usual(c)
