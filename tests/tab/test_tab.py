"""The course in a browser tab, as far as Pyodide in node shows it: lessons solved and with mistakes, and what would end
a kernel there. `python -m tests.tab.lessons` runs all lessons.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from autograder.lessons.builder.lesson_files import lesson_texts
from docs.site.lab import HERE, LOCK, ROOTS, LabError, needed, with_course
from tests.tab.assemble import assembled, published_lock
from tests.tab.lessons import COURSE, compared, deliver, run_in_tab

pytestmark = pytest.mark.slow

DEFINITIONS = """
import functools, threading, time
import numpy as np
from autograder.checks import limits
from autograder.student import check_gradients

class Node:
    def __init__(self, data=0.0, inputs=()):
        self.data, self.inputs, self.grad = data, inputs, 0.0
    def __mul__(self, other):
        return self * other
    def __repr__(self):
        return repr(self)
    def __eq__(self, other):
        return self == other
    def __getattr__(self, name):
        return getattr(self, name + "_")
    def __iter__(self):
        yield from self
    @property
    def shape(self):
        return self.shape
    def backward(self):
        return sorted([1, 2], key=lambda number: self.backward())

node = Node()

def calls():
    return calls()

def folds():
    return functools.reduce(lambda a, b: folds(), [1, 2, 3])

def maps():
    return np.vectorize(lambda number: maps())(np.ones(2))

def chained(make, first=None):
    for _ in range(100_000):
        first = make(first)
    del first
"""
ENDLESS_CALLS = {
    "a function": "calls()",
    "an operator": "node * node",
    "repr": "repr(node)",
    "a comparison": "node == 1",
    "an attribute": "node.gradient",
    "a property": "node.shape",
    "an iterator": "list(node)",
    "a key of sorted": "node.backward()",
    "reduce": "folds()",
    "a function of NumPy": "maps()",
    "exec": "again = 'exec(again)'; exec(again)",
}
CHAINS = {
    "objects": "chained(lambda last: Node(inputs=(last,)))",
    "tuples": "chained(lambda last: (last, [1]))",
    "closures": "chained(lambda last: lambda: last)",
    "dicts": "chained(lambda last: {'a': {'b': last}})",
}
ENDLESS_LOOPS = {
    "a loop": "while True: pass",
    "a loop that swallows errors": "while True:\n        try: sum([1])\n        except Exception: pass",
    "sleep": "while True: time.sleep(0.05)",
}
CARDS = {
    "the card of an operator": "check_gradients(lambda a, b: a * b, [(), ()], engine=Node, points=1)",
    "the card of a loop": """
class Busy(Node):
    def __mul__(self, other):
        while True: other = self
limits.SECONDS = 0.5
check_gradients(lambda a, b: a * b, [(), ()], engine=Busy, points=1)""",
}


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("there is no node, in which Pyodide runs, or no npm, which has it")
    folder = tmp_path_factory.mktemp("tab")
    archive = shutil.make_archive(str(folder / "release"), "tar", assembled())  # as Pyodide publishes it
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        made = with_course(Path(archive), folder / "pyodide")
    assert "lacks matplotlib" in told.getvalue()  # who builds a site learns what will fail in it
    return made


@pytest.mark.parametrize(
    ("lock", "said"),
    [(None, "holds no pyodide-lock.json"), ({"info": {"python": "3.12.7"}, "packages": {}}, r"needs Pyodide 0\.29\.3")],
    ids=["another folder", "another version"],
)
def test_a_folder_that_is_not_the_pyodide_that_the_lab_needs_is_refused(lock: Any, said: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    if lock is not None:
        (tmp_path / "there" / LOCK).write_text(json.dumps(lock), encoding="utf-8")
    with pytest.raises(LabError, match=said):
        with_course(tmp_path / "there", tmp_path / "pyodide")


def test_the_site_takes_from_pyodide_what_pyodide_publishes(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("there is no npm, which has Pyodide")
    ours, published = json.loads((HERE / LOCK).read_text(encoding="utf-8")), published_lock(tmp_path)
    kept = {name: published["packages"][name] for name in needed(published["packages"], ROOTS)}
    assert ours == published | {"packages": kept}


def test_a_lesson_passes_in_a_tab_and_its_mistakes_give_the_cards_that_they_give_here(
    pyodide: Path, tmp_path: Path
) -> None:
    texts = lesson_texts(COURSE, ["02"])
    places = tmp_path / "tab", tmp_path / "here"
    notebooks = deliver(texts, places)
    found = compared(texts[0], notebooks[texts[0].stem], pyodide, places)
    assert not found.failures
    assert len(found.of("test")) == 8
    assert len(found.of("card")) == 6


AN_HOUR_LATER = """
from pyodide.code import run_js

run_js("const now = performance.now.bind(performance); performance.now = () => now() + 3_600_000;")
with limits.limited(5.0):
    assert time.process_time_ns() <= time.process_time_ns()
"""


def test_no_chain_no_recursion_and_no_loop_ends_a_kernel(pyodide: Path, tmp_path: Path) -> None:
    loops = {name: f"with limits.limited(0.5):\n    {loop}" for name, loop in ENDLESS_LOOPS.items()}
    last = {"an hour later": AN_HOUR_LATER, "still there": "1 + 1"}
    sources = {"definitions": DEFINITIONS, **ENDLESS_CALLS, **CHAINS, **loops, **CARDS, **last}
    steps = [{"name": name, "source": source} for name, source in sources.items()]
    said = {answer["name"]: answer for answer in run_in_tab(pyodide, tmp_path, {"folder": ".", "steps": steps})}

    def errors(names: Any) -> dict[str, str]:
        return {name: said[name]["error"].partition(":")[0] for name in names}

    assert list(said) == list(sources)
    assert errors(ENDLESS_CALLS) == dict.fromkeys(ENDLESS_CALLS, "RecursionError")
    assert all("calls itself too often" in said[name]["printed"] for name in ENDLESS_CALLS)
    assert errors(loops) == dict.fromkeys(loops, "TookTooMuch")
    goes_on = ["definitions", *CHAINS, *CARDS, *last]
    assert errors(goes_on) == dict.fromkeys(goes_on, "")
    cards = ["\n".join([*said[name]["shown"], said[name]["printed"]]) for name in CARDS]
    assert "calls itself" in cards[0] or "RecursionError" in cards[0]
    assert "stopped after 0.5 seconds" in cards[1]
    assert "`while True: other = self`" in cards[1] or "`other = self`" in cards[1]


def test_only_what_draws_imports_matplotlib() -> None:
    """Then a tab without it runs all else: the rest of a lesson needs what its first cells define."""
    for text in lesson_texts(COURSE):
        for helpers in text.parent.glob("helpers_*.py"):
            assert not re.search(r"^(import|from) matplotlib", helpers.read_text(encoding="utf-8"), re.MULTILINE), (
                helpers
            )
        for cell in text.read_text(encoding="utf-8").split("# %%"):
            assert "import matplotlib" not in cell or "plt.show()" in cell, f"{text}: {cell}"
