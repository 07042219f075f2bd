"""Mutants: which changes are made to a solution, where, and which of them a lesson's tests let through."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder import cli
from autograder.lessons.audit.mutants import listed_survivors, mutants_of, tried
from autograder.lessons.builder.lesson_files import LessonTextError

SOLUTION = '''def rule(grad, a, b):
    """The docstring stays 1."""
    grad = grad + 0
    ### BEGIN SOLUTION
    total = 0.0
    total += grad * b
    return total, -grad * a
    ### END SOLUTION'''
STUB = '''def rule(grad, a, b):
    """The docstring stays 1."""
    grad = grad + 0
    # YOUR CODE HERE
    raise NotImplementedError'''

CHANGES = {
    "a = 1 + b": {"a = 1 - b", "a = 1", "a = b", "a = 2 + b"},
    "a = b - c": {"a = b + c", "a = c - b", "a = b"},
    "a = b @ c": {"a = c @ b"},
    "a = b / c": {"a = b * c", "a = c / b", "a = b"},
    "a = b ** 2": {"a = b * 2", "a = 2 ** b", "a = b ** 3"},
    "a = -b": {"a = b"},
    "a += b": {"a = b"},
    "a = b > c": {"a = b >= c"},
    "a = b is None": {"a = b is not None"},
    "a = f(b, keepdims=True)": {"a = f(b, keepdims=False)"},
}


@pytest.mark.parametrize("source", CHANGES)
def test_every_change_of_a_line(source: str) -> None:
    assert {mutant.source for mutant in mutants_of("cell", source)} == CHANGES[source]


def test_only_what_students_write_is_changed_and_results_are_swapped() -> None:
    found = list(mutants_of("rule", SOLUTION, STUB))
    assert {mutant.line for mutant in found} == {5, 6, 7}
    assert any(mutant.what == "results swapped" for mutant in found)
    assert any(mutant.diff() == "-    total += grad * b\n+    total = grad * b" for mutant in found)
    assert all("stays 1" in mutant.source for mutant in found)


@pytest.mark.sandbox
def test_a_survivor_fails_the_command_unless_it_is_listed_with_a_reason(
    course: Path, lesson: Path, capsys: pytest.CaptureFixture
) -> None:
    command = ["audit", "01", "--mutants", "--workers", "1", "--course", str(course)]
    text = lesson.read_text()
    assert cli.main(command) == 0
    assert "01_squares: 4 of 4 mutants cost points" in capsys.readouterr().out
    lesson.write_text(text.replace("[3.0]", "[0.0]").replace("[-1.75]", "[0.0]"))
    assert cli.main(command) == 1
    output = capsys.readouterr().out
    assert "# %% slope\n-    factor = 2.0\n+    factor = 3.0\n(line 4, another number: " in output
    write_list(lesson, output.partition("\n")[2])
    assert cli.main(command) != 0, "what was printed has no reason yet"
    assert "then the reason" in capsys.readouterr().err
    write_list(lesson, re.sub(r"(?m)^\(line .*", "The slope is compared at 0 only.", output.partition("\n")[2]))
    assert cli.main(command) == 0
    assert "2 of 4 mutants cost points, 2 listed with a reason" in capsys.readouterr().out
    lesson.write_text(text)
    assert cli.main(command) == 1
    assert "this costs points" in capsys.readouterr().out


def write_list(lesson: Path, blocks: str) -> None:
    """List survivors beside a lesson."""
    path = lesson.with_name("survivors.txt")
    path.parent.mkdir(exist_ok=True)
    path.write_text(blocks, encoding="utf-8")


def test_a_list_names_only_what_can_survive_and_says_why(lesson: Path) -> None:
    write_list(lesson, "# %% slope\n-    gone = 1\n+    gone = 2\nIt was here once.\n")
    assert "no such change can be made" in tried(lesson, [], []).outdated[0]
    write_list(lesson, "# %% slope\n-    gone = 1\n+    gone = 2\n")
    with pytest.raises(LessonTextError, match="then the reason"):
        listed_survivors(lesson)
