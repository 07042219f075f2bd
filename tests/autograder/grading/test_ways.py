"""The quick way of grading and nbgrader's own converter give the same files, notebooks, marks and comments."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import cloudpickle
import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from traitlets import import_item
from traitlets.config import Config

from autograder.grading.course import generate_assignment, open_course
from autograder.grading.gradebook import assignment_reader
from autograder.grading.submission.assignments import Earlier, Submission
from autograder.grading.submission.result import Result
from autograder.grading.submission.worker import Workshop
from autograder.nbgrader_plugins import configure
from autograder.nbgrader_plugins.direct import Unusual
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


class Ways:
    """A course with an assignment, and both ways of grading a submission of it."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.name = root, name
        with open_course(root) as course:
            generate_assignment(course, name)
            self.assignment = assignment_reader.read_assignment(course, name)
        self.workshop = Workshop(self.assignment)

    def released(self, notebook: str) -> NotebookNode:
        return nbformat.read(self.root / "release" / self.name / f"{notebook}.ipynb", as_version=4)

    def both(self, submission: Submission) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        directly = self.workshop.directly
        assert directly is not None
        return [self.outcome(way, submission) for way in (directly, self.workshop.by_nbgrader)]

    def outcome(self, way: Any, submission: Submission) -> tuple[dict[str, Any], dict[str, Any]]:
        """The result and the files, without anything random."""
        self.workshop.folders.empty()
        result: Result = way.grade(submission)
        folder = self.workshop.folders.folder("autograded", submission.student)
        return comparable(result), {
            str(path.relative_to(folder)): (path.stat().st_mode, content_of(path))
            for path in folder.rglob("*")
            if path.is_file()
        }


def comparable(result: Result) -> dict[str, Any]:
    cells = [(cell.notebook, cell.name, cell.auto, cell.max_points, cell.message, cell.bugs) for cell in result.cells]
    found = vars(replace(result, cells=(), comments=()))
    return found | {"cells": sorted(cells, key=repr), "comments": sorted(result.comments, key=repr)}


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
    quick, slow = words.both(Submission("ann", {"strings.ipynb": raw(make(Released(words)))}))
    assert quick == slow


def test_a_link_in_the_place_of_a_notebook(words: Ways) -> None:
    quick, slow = words.both(Submission("ann", {"mine.txt": b"1"}, ("strings.ipynb",)))
    assert quick == slow
    assert quick[0]["status"] == "unreadable"


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
def test_both_know_who_has_handed_it_in(variants: Ways, name: str, points: int) -> None:
    quick, slow = variants.both(Submission("ann", {"one.ipynb": raw(answers(variants, mine=f"me = {name!r}"))}))
    assert quick == slow
    ((*_, earned, _, said, _),) = quick[0]["cells"]
    assert (earned, "'ann' handed this in, but it uses the variant of 'bob'" in said) == (points, points == 0)


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
    quick, slow = doubles.both(Submission("ann", {"one.ipynb": raw(answers(doubles, **texts))}))
    assert quick == slow
    assert {name: mode & 0o777 for name, (mode, _) in quick[1].items()} == {"one.ipynb": 0o444, "data.txt": 0o444}


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
    quick, slow = doubles.both(Submission("ann", {"one.ipynb": notebook, **files}, links))
    assert quick == slow


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


@pytest.mark.parametrize("make", [old_notebook, same_ids, own_metadata])
def test_formats_and_metadata(doubles: Ways, make: Callable[[Ways], bytes]) -> None:
    quick, slow = doubles.both(Submission("ann", {"one.ipynb": make(doubles)}))
    assert quick == slow


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


def test_a_lost_task_is_left_to_nbgrader(doubles: Ways) -> None:
    submission = Submission("ann", {"one.ipynb": version_3(doubles)})
    assert doubles.workshop.directly is not None
    with pytest.raises(Unusual):
        doubles.outcome(doubles.workshop.directly, submission)
    result, _ = doubles.workshop.grade(submission)
    assert {cell.name: cell.auto for cell in result.cells if cell.notebook == "one"}["task"] is None


LOS_ANGELES = "2015-02-02 15:58:23.948203 America/Los_Angeles"


def test_a_time_goes_into_the_result(doubles: Ways) -> None:
    files = {"one.ipynb": raw(answers(doubles, double=RIGHT)), "timestamp.txt": LOS_ANGELES.encode()}
    quick, slow = doubles.both(Submission("ann", files))
    assert quick == slow
    assert quick[0]["timestamp"] == "2015-02-02T23:58:23.948203"


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
def test_both_ways_agree_on_what_is_late(punctual: Workshop, doubles: Ways, text: str, late: bool) -> None:
    files = {"one.ipynb": raw(answers(doubles, double=RIGHT)), "timestamp.txt": text.encode()}
    submission = Submission("ann", files)
    chosen, folder = punctual.grade(submission)
    assert folder is not None
    assert (folder / "timestamp.txt").read_text() == text, "nbgrader's commands look for the text as it is"
    punctual.folders.empty()
    slow = punctual.by_nbgrader.grade(submission)
    assert chosen.timestamp == slow.timestamp
    assert chosen.penalties == slow.penalties
    assert any(penalty for _, penalty in slow.penalties) == late


@pytest.mark.parametrize(("hours", "late"), [(0, True), (5, False)])
def test_only_late_submissions_with_a_penalty_are_left_to_nbgrader(doubles: Ways, hours: float, late: bool) -> None:
    due = {**doubles.assignment.rows["assignment"][0], "duedate": datetime(2015, 2, 2, 20)}
    rows = {**doubles.assignment.rows, "assignment": [due]}
    workshop = Workshop(replace(doubles.assignment, rows=rows, penalties=True))
    files = {"one.ipynb": raw(answers(doubles)), "timestamp.txt": LOS_ANGELES.encode()}
    submission = Submission("ann", files, earlier=Earlier(extension=timedelta(hours=hours)))
    assert workshop.directly is not None
    if late:
        with pytest.raises(Unusual):
            workshop.directly.grade(submission)
    else:
        assert workshop.directly.grade(submission).timestamp is not None
    workshop.close()


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
    steps += ["nbgrader.converters.Autograde", "nbgrader.plugins.LateSubmissionPlugin", "nbconvert.writers.FilesWriter"]
    bases = {base.__name__ for step in steps for base in import_item(step).__mro__ if hasattr(base, "class_traits")}
    looked_at = assignment_reader.STEPS | {"JudgeNotebook"}
    assert bases - looked_at == {"HasTraits"}


def test_the_course_of_the_lessons_is_as_usual() -> None:
    config = Path(__file__).parents[3] / "course" / "nbgrader_config.py"
    c = Config()
    exec(config.read_text(), {"get_config": lambda: c, "__file__": str(config)})
    assert assignment_reader.is_usual(c)
