"""A listed mistake that tests nothing is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.lessons.builder.lesson_files import MISTAKES, LessonTextError
from autograder.lessons.mistakes.listed import KnownMistake, mistakes_of
from autograder.lessons.mistakes.planting import run_lesson

TEXT = Path(__file__).parents[3] / "course" / "lessons" / "00_start_here" / "00_start_here.py"
RIGHT = "return gradient * b, gradient * a"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [(RIGHT, "return (", "is not Python"), ("no such line", "return None", "stands 0 times")],
    ids=["not Python", "fits nowhere"],
)
def test_a_mistake_that_cannot_be_planted_is_refused(right: str, wrong: str, said: str) -> None:
    with pytest.raises(LessonTextError, match=said):
        run_lesson(TEXT, lambda cell, names: None, KnownMistake("a mistake", right, wrong))


@pytest.mark.parametrize("costs", ["", "costs: product_rule\n"], ids=["none", "not a test cell"])
def test_a_listed_mistake_names_the_test_cells_that_it_costs(costs: str, tmp_path: Path) -> None:
    shutil.copytree(TEXT.parent, tmp_path / TEXT.stem)
    (tmp_path / TEXT.stem / MISTAKES).write_text(f"# %% a mistake\n{costs}-{RIGHT}\n+return 0, 0\n")
    with pytest.raises(LessonTextError, match=r"mistakes\.txt:1: `costs:` .* test cells of test_product_rule"):
        mistakes_of(tmp_path / TEXT.stem / TEXT.name)


def test_only_test_cells_that_a_mistake_reaches_run() -> None:
    text = TEXT.parents[1] / "15_forward_mode" / "15_forward_mode.py"
    mistake = mistakes_of(text)[-1]
    reached: list[str] = []
    run_lesson(text, lambda cell, names: reached.append(cell.grade_id), mistake)
    assert set(mistake.costs) <= set(reached)
    every: list[str] = []
    run_lesson(text, lambda cell, names: every.append(cell.grade_id))
    assert 0 < len(reached) < len(every)
