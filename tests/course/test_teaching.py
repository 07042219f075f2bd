"""The pages for teachers are those of the lessons as they are, and only teachers get them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from autograder.lessons.builder.lesson_files import files_beside, lesson_texts
from benchmarks import teaching
from benchmarks.teaching import COURSE, PAGES, PROJECT, TEACHING, lesson_page

TEXTS = lesson_texts(COURSE)


@pytest.mark.slow
def test_the_pages_are_current() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in PAGES.iterdir()}
    assert written == teaching.pages(), "run `python -m benchmarks.teaching`"


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.stem)
def test_a_lesson_has_all_that_its_page_needs(text: Path) -> None:
    lesson = lesson_page(text)
    assert len(lesson.goals) >= 3
    assert len(lesson.notes["prompts"]) >= 3
    assert lesson.notes["read"]
    assert len(lesson.notes["exam"]) == 2
    for question in lesson.notes["exam"]:
        assert len(question["rubric"]) >= 2
        assert len(question["answer"].split()) > 10
    assert len(teaching.expected(text)) == teaching.MISTAKES


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.stem)
def test_students_get_no_answer_of_an_exam(text: Path) -> None:
    delivered = files_beside(text, COURSE)
    assert delivered
    assert TEACHING not in delivered


def test_the_website_has_no_page_for_teachers() -> None:
    tree = ast.parse((PROJECT / "docs" / "site" / "build.py").read_text(encoding="utf-8"))
    (copied,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COPIED"
    )
    files = [file for pattern in copied for file in PROJECT.glob(pattern)]
    assert PROJECT / "docs" / "instructors.md" in files
    assert not [file for file in files if PAGES in file.parents]
