"""The file of cases beside a lesson's text, `checks_NN.py`, from which the notebook's test cells are made."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from autograder.checks.beside import load
from autograder.checks.cases import REGISTER, Check
from autograder.lessons.builder.case_files import cases_file, hidden_statements
from autograder.lessons.builder.lesson_files import LessonTextError
from autograder.lessons.builder.shares import ALL, APART

_LOADED: dict[Path, tuple[int, Mapping[str, Check]]] = {}


def checks_of(text: Path) -> Mapping[str, Check]:
    """The checks in the file of cases beside a lesson's text, by their names; none if there is no such file. Raises
    LessonTextError if it cannot be read.
    """
    path = cases_file(text)
    if not path.is_file():
        return {}
    changed = path.stat().st_mtime_ns
    if path not in _LOADED or _LOADED[path][0] != changed:
        try:
            module = load(path.stem, path)
        except Exception as error:
            raise LessonTextError(f"{path.name}: {type(error).__name__}: {error}") from error
        _LOADED[path] = changed, dict(getattr(module, REGISTER, {}))
    return _LOADED[path][1]


def test_source(text: Path, check: Check) -> str:
    """The source of a test cell: one call, with what adds the hidden cases in a hidden region."""
    name = f'"{text.stem[:2]}.{check.name}"'
    source = cases_file(text).read_text(encoding="utf-8")
    hidden = [each for each in hidden_statements(source) if each.check == check.name]
    if not hidden:
        return f"check({name})"
    statements = "".join(f"{each.source},\n" for each in hidden)
    # IPython takes `>>>` for the prompt of pasted code, unless it stands in a text that begins its line.
    added = textwrap.indent(statements.replace('("""\n', '(\n"""\n'), 8 * " ")
    edges = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
    start = f"    {edges[0]}\n    lambda {hidden[0].variable}: (\n"
    return f"check(\n    {name},\n{start}{added}    ),\n    {edges[1]}\n)"


test_source.__test__ = False  # type: ignore[attr-defined]  # nothing for pytest to collect


def points_in_words(check: Check) -> str:
    """The points of a check, and how many of them hidden cases decide about, for the first line of its cell."""
    hidden = sum(case.points for case in check.written if case.hidden)
    hidden += sum(each.points for each in check.drawn if each.hidden)
    points = f"{check.most:g} point" + "s" * (check.most != 1)
    if check.points:
        return points + (ALL if hidden else ", all or none")
    return points + (APART.format(check.most - hidden, hidden) if hidden else "")
