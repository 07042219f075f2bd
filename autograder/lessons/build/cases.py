"""The file of cases beside a lesson's text, `checks_NN.py`, from which the notebook's test cells are made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autograder.checks.beside import load
from autograder.checks.cases import REGISTER, Check
from autograder.lessons.build.lesson_files import LessonTextError, cases_file
from autograder.lessons.build.shares import ALL, APART

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
    """The source of a test cell: one call, with the hidden cases in a hidden region."""
    name = f'"{text.stem[:2]}.{check.name}"'
    hidden = [case for case in check.cases if case.hidden]
    if not hidden:
        return f"check({name})"
    lines = ["check(", f"    {name},", "    ### BEGIN HIDDEN TESTS"]
    for case in hidden:
        script = "\n".join(_written(step.source, step.right) for step in case.steps)
        lines.append(f"    ({case.title!r}, {script!r}, {case.points:g}),")
    return "\n".join([*lines, "    ### END HIDDEN TESTS", ")"])


test_source.__test__ = False  # type: ignore[attr-defined]  # nothing for pytest to collect


def _written(source: str, right: str) -> str:
    return "\n".join([">>> " + source.replace("\n", "\n... "), *([right] if right else [])])


def points_in_words(check: Check) -> str:
    """The points of a check, and how many of them hidden cases decide about, for the first line of its cell."""
    hidden = sum(case.points for case in check.cases if case.hidden)
    points = f"{check.most:g} point" + "s" * (check.most != 1)
    if check.points:
        return points + (ALL if hidden else ", all or none")
    return points + (APART.format(check.most - hidden, hidden) if hidden else "")
