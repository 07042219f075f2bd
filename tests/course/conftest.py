"""For the tests of the lessons: a failing assertion of the tests that all lessons share shows its values."""

import pytest

pytest.register_assert_rewrite("tests.course.planting")
