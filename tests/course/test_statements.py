"""Runs what lessons say about PyTorch and NumPy: `statements.txt` beside its text has one block per
statement.

A block begins with `# %%` and the exact words of the lesson. Then comes the code, which can use `torch`, `np` and
`error(f)`; `error` calls `f` and returns the error's type and first line. Last, after `#> `, come the lines that the
code prints. The code runs a second time with our engine as `torch` and must print the same, unless `[PyTorch]` stands
before the words: our engine lacks it, or does it in another way.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import mini_autograd
from autograder.lessons.builder.coverage import statements_beside
from autograder.lessons.builder.lesson_files import lesson_texts
from autograder.lessons.builder.text import read_lesson

LESSONS = {path.name[:2]: path for path in lesson_texts(Path(__file__).parents[2] / "course")}
ENOUGH = 10
"""The minimum number of statements of a lesson."""


@dataclass(frozen=True)
class Statement:
    """One statement of a lesson, the code that tries it, and what that prints."""

    lesson: str
    words: str
    code: str
    printed: str
    engines: tuple[ModuleType, ...]


def statements_of(text: Path) -> list[Statement]:
    """The blocks of the file beside a lesson, in order."""
    found = []
    for words, alone, rest in statements_beside(text):
        lines = rest.splitlines()
        code = "\n".join(line for line in lines if not line.startswith("#>"))
        printed = "\n".join(line.removeprefix("#>").strip() for line in lines if line.startswith("#>"))
        engines = (torch, mini_autograd) if "torch" in code and not alone else (torch,)
        found.append(Statement(text.stem[:2], words, code, printed, engines))
    return found


STATEMENTS = [statement for text in LESSONS.values() for statement in statements_of(text)]


def error(function: Callable[[], object]) -> str:
    """The type and the first line of what `function` raises."""
    try:
        function()
    except Exception as raised:
        return f"{type(raised).__name__}: {str(raised).splitlines()[0]}"
    return "no error"


@pytest.mark.parametrize(
    ("statement", "engine"),
    [(statement, engine) for statement in STATEMENTS for engine in statement.engines],
    ids=lambda it: f"{it.lesson}: {it.words[:60]}" if isinstance(it, Statement) else it.__name__,
)
def test_a_statement_is_what_running_shows(statement: Statement, engine: ModuleType) -> None:
    assert statement.printed, "a statement that prints nothing shows nothing"
    code = re.sub(r"\b(import|from) torch\b", rf"\1 {engine.__name__}", statement.code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore")
        exec(compile(code, f"statement of lesson {statement.lesson}", "exec"), _names(engine))
    assert [line.strip() for line in printed.getvalue().strip().splitlines()] == statement.printed.splitlines()


@pytest.mark.parametrize("lesson", sorted({statement.lesson for statement in STATEMENTS}))
def test_the_words_stand_in_the_lesson(lesson: str) -> None:
    text = " ".join(" ".join(cell.source for cell in read_lesson(LESSONS[lesson])).split())
    missing = [it.words for it in STATEMENTS if it.lesson == lesson and " ".join(it.words.split()) not in text]
    assert missing == []


@pytest.mark.parametrize("lesson", sorted({statement.lesson for statement in STATEMENTS}))
def test_each_lesson_has_enough_statements(lesson: str) -> None:
    assert sum(it.lesson == lesson for it in STATEMENTS) >= ENOUGH


def _names(engine: ModuleType) -> dict[str, object]:
    return {"__name__": "statement", "torch": engine, "np": np, "error": error}


PAGES = [
    page for page in sorted((Path(__file__).parents[2] / "docs").glob("*.md")) if "    >>> " in page.read_text("utf-8")
]


@pytest.mark.filterwarnings("ignore:Error detected in SqrtBackward0")  # an example of anomaly mode
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_on_a_page_give_what_it_shows(page: Path) -> None:
    shown = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    tried = doctest.testfile(str(page), module_relative=False, optionflags=shown, encoding="utf-8")
    assert tried.attempted > 0
    assert tried.failed == 0
