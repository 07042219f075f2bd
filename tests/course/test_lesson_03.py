"""Plants classic mistakes in the solutions of lesson 03: each costs points on its own test cells, and on no others."""

from __future__ import annotations

from tests.course.planting import LessonTests

LESSON = "03_order_and_reuse"


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 9
    visible = True
    examples = 12
