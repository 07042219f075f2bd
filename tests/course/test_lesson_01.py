"""Plants classic mistakes in the solutions of lesson 01: each costs points on its own test cell, and on no other."""

from __future__ import annotations

import pytest

from tests.course.planting import LessonTests

LESSON = "01_derivatives"


@pytest.mark.filterwarnings("ignore:invalid value encountered")
class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 5
    visible = True
    examples = 5
