"""Does each lesson use the demos that the syllabus names for it?"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from autograder.lessons.builder.text import read_lesson
from mini_autograd import widgets

LESSONS = Path(__file__).resolve().parents[3] / "course" / "lessons"
NAMED = {
    "00_start_here": {"explore", "progress", "quiz"},
    "01_derivatives": {"step_size", "activations", "explore"},
    "02_scalar_engine": {"explore"},
    "03_order_and_reuse": {"explore"},
    "04_arrays": {"broadcast", "explore"},
    "05_leaves_and_accumulation": {"accumulation", "explore"},
    "06_lifetime": {"lifetime"},
    "07_grad_modes": {"explore"},
    "08_custom_functions": {"explore"},
    "09_in_place_and_views": {"explore"},
    "11_training": {"monitor"},
    "12_debugging_clinic": {"activations"},
    "13_memory": {"checkpoint_planner"},
    "15_forward_mode": {"forward_or_reverse"},
}
"""What the syllabus names, by lesson. Lessons for which it names nothing are left out."""


def called(lesson: Path) -> set[str]:
    """The names of the functions that a lesson's code calls, and `quiz` if it has one."""
    cells = [cell for cell in read_lesson(lesson) if cell.kind == "code"]
    calls = [node for cell in cells for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
    names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    return names | {"quiz" for cell in cells if "quiz" in cell.tags}


@pytest.mark.parametrize("lesson", sorted(path.name for path in LESSONS.iterdir() if path.is_dir()))
def test_a_lesson_uses_the_widgets_that_the_syllabus_names(lesson: str) -> None:
    found = called(LESSONS / lesson / f"{lesson}.py")
    assert NAMED.get(lesson, set()) <= found
    assert found & ({*widgets.__all__} | {"quiz"}), "every lesson has a demo or a quiz"
    assert lesson == "00_start_here" or "quiz" in found
