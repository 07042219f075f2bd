"""Plants classic mistakes in the solutions of lesson 02: each costs points on the cells of its rule, and on no others.

The lesson's own test cells do the checking, in a plain namespace, without a notebook or a sandbox.
"""

from __future__ import annotations

from tests.course.planting import LessonTests

LESSON = "02_scalar_engine"


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 7
    visible = True
    examples = 5
