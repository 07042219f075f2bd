"""Notebook files as accidents and attackers leave them: each gets the mark that its answers are worth, and no feedback
page acts, loads anything or reveals a hidden test. All are graded in one run, so none may disturb another.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.autograder.conftest import SmallCourse
from tests.autograder.grading.here import ASSIGNMENT, grade_all

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore")]

ACTS = '"><script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)></svg>'
PAGE = f'{ACTS}<meta http-equiv="refresh" content="0;url=http://example.org"><base href="http://example.org/">'
PAGE += '<form action="http://example.org"><input name="a"></form><iframe srcdoc="x"></iframe><img src="http://example.org/p">'
PAGE += (
    '<link rel="stylesheet" href="http://example.org/s"><a href="javascript:alert(1)">x</a><style>@import "x"</style>'
)

Notebook = dict[str, Any]
Change = Callable[[Notebook], Any]


def answered(course: SmallCourse, **answers: str) -> Notebook:
    return json.loads(json.dumps(course.answered(**answers)))


def cell(notebook: Notebook, name: str) -> Notebook:
    return next(c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == name)


def changed(change: Change, **answers: str) -> Callable[[SmallCourse], bytes]:
    """A notebook with the right answers, after `change`. A text that `change` returns is handed in instead."""

    def submission(course: SmallCourse) -> bytes:
        notebook = answered(course, **answers)
        found = change(notebook)
        text = found if isinstance(found, (str, bytes)) else json.dumps(notebook)
        return text.encode() if isinstance(text, str) else text

    return submission


def everywhere(**metadata: Any) -> Change:
    """This metadata for the notebook and each of its cells."""

    def change(notebook: Notebook) -> None:
        notebook["metadata"].update(metadata)
        for one in notebook["cells"]:
            one["metadata"].update(metadata)

    return change


def with_cell(position: int = 0, **content: Any) -> Change:
    def change(notebook: Notebook) -> None:
        made = {"cell_type": "code", "metadata": {}, "source": "", "id": "added"} | content
        if made["cell_type"] == "code":
            made = {"outputs": [], "execution_count": None} | made
        notebook["cells"].insert(position, made)

    return change


def with_windows_newlines(notebook: Notebook) -> str:
    for one in notebook["cells"]:
        one["source"] = one["source"].replace("\n", "\r\n")
    return json.dumps(notebook, indent=1).replace("\n", "\r\n")


def without_fields(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        for field in ("outputs", "execution_count", "id"):
            one.pop(field, None)
    notebook["metadata"].clear()


def split_in_two(notebook: Notebook) -> None:
    cell(notebook, "length")["source"] = "def length(word):\n    return counted(word)"
    with_cell(source="def counted(word):\n    return len(word)")(notebook)


def renamed(notebook: Notebook) -> None:
    cell(notebook, "length")["metadata"]["nbgrader"]["grade_id"] = "my answer"


def metadata_lost(notebook: Notebook) -> None:
    cell(notebook, "length")["metadata"].clear()


def text_moved(notebook: Notebook) -> None:
    notebook["cells"].append(notebook["cells"].pop(0))


def ids(value: Any) -> Change:
    return lambda notebook: [one.update(id=value) for one in notebook["cells"]] and None


def as_lines(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        one["source"] = one["source"].splitlines(keepends=True)


def twice_the_key(notebook: Notebook) -> str:
    text = json.dumps(notebook)
    return '{"cells": "none", "cells": ' + json.dumps(notebook["cells"]) + ", " + text[1:]


def with_outputs(notebook: Notebook) -> None:
    output = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"text/html": PAGE, "application/javascript": "alert(1)"},
    }
    points = {"output_type": "execute_result", "metadata": {}, "execution_count": 1, "data": {"text/plain": "2.0"}}
    for one in notebook["cells"]:
        if one["cell_type"] == "code":
            one["outputs"] = [output, points]


def deep(levels: int) -> Change:
    return lambda notebook: json.dumps(notebook)[:-1] + ', "deep": ' + "[" * levels + "]" * levels + "}"


def with_text(text: str) -> Change:
    return lambda notebook: f'{json.dumps(notebook)[:-1]}, "odd": {text}}}'


def widget_state(notebook: Notebook) -> None:
    model = {"model_name": "HTMLModel", "model_module": PAGE, "model_module_version": "1", "state": {"value": PAGE}}
    state = {"version_major": 2, "version_minor": 0, "state": {PAGE: model}}
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": state}


def attached(notebook: Notebook) -> None:
    evil = {'image/svg+xml"><script>alert(1)</script>': "x", "text/html": PAGE, "image/png": '"onerror="alert(1)'}
    source = (
        f"![a](attachment:a) ![b](attachment:{ACTS}) ![c](http://example.org/p.png)\n\n[d]: javascript:alert(1)\n[d]"
    )
    with_cell(cell_type="markdown", source=source, attachments={"a": evil, ACTS: evil})(notebook)


def indices(notebook: Notebook) -> None:
    """Add cells whose nbgrader metadata are of the wrong kind or lack the fields that nbgrader needs."""
    for number, odd in enumerate(
        [None, 3, [], {"grade": True}, {"grade_id": None}, {"grade_id": ["x"]}, {"points": -1}]
    ):
        with_cell(source="x = 1", id=f"odd{number}", metadata={"nbgrader": odd})(notebook)


def many_cells(notebook: Notebook) -> None:
    notebook["cells"] += [{"cell_type": "markdown", "metadata": {}, "source": "x"}] * 10_000


RAW = {"cell_type": "raw", "source": PAGE, "metadata": {"format": "text/html", "raw_mimetype": "text/html"}}
TITLES = {"title": PAGE, "tags": [ACTS, "x y"], "name": ACTS, "authors": [{"name": PAGE}]}
LANGUAGE = {"name": ACTS, "pygments_lexer": ACTS, "codemirror_mode": ACTS}
CODE = {"pygments_lexer": "../../x", "file_extension": "/../../x.py", "nbconvert_exporter": "os.system"}
HIDING = {"slideshow": {"slide_type": ACTS}, "jupyter": {"source_hidden": ACTS}, "collapsed": ACTS, "toc": PAGE}
FORMULA = r"$\href{javascript:alert(1)}{x} \text{<script>alert(1)</script>}$ $$\class{x" + ACTS + "}$$"
WRONG = "return 3"
ROWS: dict[str, tuple[Callable[[SmallCourse], bytes], list[float]]] = {
    # Accidents
    "windows newlines": (changed(with_windows_newlines), [2, 3]),
    "outputs, counts, ids and metadata lost": (changed(without_fields), [2, 3]),
    "an answer in two cells": (changed(split_in_two), [2, 3]),
    "answer renamed": (changed(renamed), [2, 3]),
    "metadata of an answer lost": (changed(metadata_lost), [2, 3]),
    "text moved to the end": (changed(text_moved), [2, 3]),
    "source as lines": (changed(as_lines), [2, 3]),
    "another kernel": (changed(everywhere(kernelspec={"name": "ir", "display_name": "R", "language": "R"})), [2, 3]),
    "no language": (changed(everywhere(language_info=None, kernelspec=None)), [2, 3]),
    "all ids alike": (changed(ids("same")), [2, 3]),
    "ids that are none": (changed(ids(None)), [2, 3]),
    "a cell that fails before": (changed(with_cell(source="1 / 0")), [2, 3]),
    "a cell that is not Python": (changed(with_cell(source="def f(:\n  'x")), [2, 3]),
    "half a character": (changed(with_cell(source="# \ud83d\nx = '\udcff'")), [2, 3]),
    "a magic of another kernel": (changed(with_cell(source="%%javascript\nalert(1)")), [2, 3]),
    # Tampering with the file
    "a key twice": (changed(twice_the_key), [2, 3]),
    "ids that act": (changed(ids(ACTS)), [2, 3]),
    "minor version from far away": (changed(lambda n: n.update(nbformat_minor=10**6)), [2, 3]),
    "no number where one belongs": (changed(with_text("NaN")), [2, 3]),
    "deeper than a stack": (changed(deep(100_000)), [0, 0]),
    "a number of ten thousand digits": (changed(with_text("9" * 10_000)), [0, 0]),
    "a line of five million characters": (changed(with_cell(source="#" + "x" * 5_000_000)), [2, 3]),
    "ten thousand cells": (changed(many_cells), [2, 3]),
    "metadata of cells of every kind": (changed(indices), [2, 3]),
    # Acting in the page
    "outputs that were there": (changed(with_outputs, length=WRONG), [0, 3]),
    "raw HTML": (changed(with_cell(**RAW)), [2, 3]),
    "a cell of no one kind": (changed(with_cell(cell_type=["code"])), [2, 3]),
    "HTML in a text": (changed(with_cell(cell_type="markdown", source=PAGE)), [2, 3]),
    "HTML after a heading": (changed(with_cell(cell_type="markdown", source=f"# {PAGE}\n\n<div>\n{PAGE}")), [2, 3]),
    "attachments": (changed(attached), [2, 3]),
    "tags and titles": (changed(everywhere(**TITLES)), [2, 3]),
    "language that acts": (changed(everywhere(language_info=LANGUAGE)), [2, 3]),
    "language that is code": (changed(everywhere(language_info=CODE)), [2, 3]),
    "widgets": (changed(widget_state), [2, 3]),
    "metadata of the page": (changed(everywhere(**HIDING)), [2, 3]),
    "formulas": (changed(with_cell(cell_type="markdown", source=FORMULA)), [2, 3]),
}


def with_files(folder: Path) -> None:
    """Put troublesome names, links and kinds of file beside a right notebook."""
    for name in (
        "a\nb.txt",
        "\u202egpj.exe",
        "x" * 250,
        "=cmd()",
        "-rf",
        "$(touch acted)",
        "numpy.py",
        "sitecustomize.py",
        "a b'\"c",
    ):
        (folder / name).write_text("raise SystemExit")
    (folder / os.fsdecode(b"\xff\xfe.txt")).write_text("x")
    (folder / "scratch.ipynb").write_text("{}")
    (folder / "STRINGS.IPYNB").write_text("[]")
    (folder / "to the system").symlink_to("/etc")
    (folder / "round").symlink_to(folder)
    (folder / "nowhere").symlink_to(folder / "gone")
    os.mkfifo(folder / "pipe")
    with open(folder / "huge.bin", "wb") as file:
        file.truncate(1 << 40)
    deepest = folder
    for _ in range(60):
        deepest = deepest / "deeper"
    deepest.mkdir(parents=True)
    (deepest / "x.txt").write_text("x")


@pytest.fixture(scope="module")
def graded(released_course: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallCourse, dict[str, Any]]:
    course = SmallCourse(Path(shutil.copytree(released_course, tmp_path_factory.mktemp("tampered") / "course")))
    for name, (make, _) in ROWS.items():
        course.submit(name, make(course))
    with_files(course.submit("troublesome files", changed(lambda notebook: None)(course)).parent)
    return course, grade_all(course, feedback=True)


@pytest.mark.parametrize("name", ROWS)
def test_a_file_earns_what_its_answers_are_worth(graded: tuple[SmallCourse, dict[str, Any]], name: str) -> None:
    record = graded[1][name]
    assert {cell.grade_id: cell.points for cell in record.cells} == dict(
        zip(("test_length", "test_shout"), ROWS[name][1], strict=True)
    ), (record.status, record.reason)
    assert record.status == ("graded" if any(ROWS[name][1]) else "unreadable")


def test_other_files_are_no_trouble(graded: tuple[SmallCourse, dict[str, Any]]) -> None:
    course, records = graded
    record = records["troublesome files"]
    assert (record.status, record.points) in {("graded", 5), ("failed", 0)}
    assert record.reason or record.points
    left = course.root / "autograded" / "troublesome files" / ASSIGNMENT
    assert not any(path.is_symlink() for path in left.rglob("*"))


class Acting(HTMLParser):
    """Finds what would act or load something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: (value or "") for name, value in attrs}
        if tag in ("script", "iframe", "object", "embed", "form", "input", "base", "link"):
            self.found.append(tag)
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            self.found.append("refresh")
        for name, value in values.items():
            scheme = "".join(value.split()).lower().partition(":")[0]
            loads = name in ("src", "poster", "background") and scheme != "data"
            if name.startswith("on") or name == "srcdoc" or scheme in ("javascript", "vbscript") or loads:
                self.found.append(f"{tag} {name}={value[:40]}")


@pytest.mark.parametrize("name", ROWS)
def test_no_feedback_page_acts(graded: tuple[SmallCourse, dict[str, Any]], name: str) -> None:
    page = graded[0].feedback(name)
    acting = Acting()
    acting.feed(page)
    assert not acting.found
    assert "Content-Security-Policy" in page
    assert "hiddenword" not in page
