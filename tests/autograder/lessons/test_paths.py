"""A course may be set to a path: then its commands build and show the lessons of that path."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from autograder.course_folder import BUILT_IN
from autograder.lessons.builder.lesson_files import LessonTextError, lesson_texts
from autograder.lessons.builder.paths import PATHS, LessonPart, paths_of, texts_asked_for
from autograder.lessons.commands import course

SHORT = ["00_start_here", "02_scalar_engine", "04_arrays", "05_leaves_and_accumulation", "11_training"]


def test_a_course_that_is_set_to_a_path_has_its_lessons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    assert course.run(Namespace(folder=folder, path="short")) == 0
    assert [text.stem for text in texts_asked_for(folder)] == SHORT
    assert [text.stem for text in texts_asked_for(folder, ["03"])] == ["03_order_and_reuse"], "the others can be named"
    assert lesson_texts(folder)[6].stem == "06_lifetime", "the reference engine is made of all"
    assert paths_of(folder) == paths_of(BUILT_IN)


def test_a_path_that_is_not_there_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert course.run(Namespace(folder=tmp_path / "mine", path="long")) == 2
    assert "there is no path 'long'" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


def test_a_lesson_may_be_split_or_chosen_from(tmp_path: Path) -> None:
    written = '[p]\ntitle = "P"\nhours = 2\nweeks = [["02:1-4"], ["02:5-", "13|14"]]\n'
    (tmp_path / PATHS).write_text(written)
    (path,) = paths_of(tmp_path).values()
    assert path.weeks == (
        ((LessonPart("02", 1, 4),),),
        ((LessonPart("02", 5),), (LessonPart("13"), LessonPart("14"))),
    )
    assert path.lessons == ["02", "13", "14"]
    (tmp_path / PATHS).write_text(written.replace("02:5-", "2nd"))
    with pytest.raises(LessonTextError, match="'2nd' is no part of a lesson"):
        paths_of(tmp_path)
