"""The minutes of a lesson: those of a lesson of a few lines, counted by hand, and those at the top of each lesson."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.lessons.builder.paths import LessonPart, paths_of
from autograder.lessons.builder.text import read_lesson
from benchmarks.reading_time import (
    FIRST,
    GIVEN,
    MUCH,
    STRETCH,
    minutes_of_week,
    only_run,
    part_of,
    reading,
    reading_ease,
    syllables,
)

MARKS = '"schema_version": 3, "task": false'
LESSON = f'''# %% [markdown]
# # A title
#
# Four words of prose.

# %%
import math

# %% nbgrader={{"grade": false, "grade_id": "f", "locked": false, "solution": true, {MARKS}}}
def f(x):
    """The square."""
    ### BEGIN SOLUTION
    # a comment
    square = x * x

    return square
    ### END SOLUTION

# %% nbgrader={{"grade": true, "grade_id": "test_f", "locked": true, "points": 1, "solution": false, {MARKS}}}
assert f(2) == 4

# %% tags=["style:short"] exercise="f"
def f(x):
    return x**2

# %% [markdown]
# ## Aside (further)
#
# One two three.

# %%
further = 1

# %% [markdown]
# ## Back

# %%
predict("Which sign?", "plus", "minus")
core = 2

# %% test="quiz_20" points=1 tags=["quiz"]
question("why", "Why?", right("so", "So."), wrong("not so", "No.", misconception="none"))

# %% [markdown]
# # Further

# %%
more = 3
'''


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "20_lesson.py"
    path.write_text(LESSON, encoding="utf-8")
    return read_lesson(path)


def test_words_and_lines_are_counted_apart_for_the_core_and_what_is_further(cells):
    counted = reading(cells)
    assert (counted.core.words, counted.core.given, counted.core.written) == (11, 3, 2), "a question counts as words"
    assert (counted.further.words, counted.further.given, counted.further.written) == (6, 2, 0)
    assert counted.core.minutes == pytest.approx(11 / 180 + 3 / 12 + 2 * 1.5 * 1.4 + 0.5)


def test_definitions_that_are_only_run_are_counted_in_the_core(tmp_path):
    parts = ("Read (just run it)", "def a():\n    b = 1"), ("Read", "def c(): ..."), ("Aside (further)", "def d(): ...")
    parts += (("Again (just run it)", "class E:\n    def f(self): ..."), ("Further", "# %%\ndef g(): ..."))
    text = "".join(f"# %% [markdown]\n# # {title}\n\n# %%\n{code}\n\n" for title, code in parts)
    path = tmp_path / "20_lesson.py"
    path.write_text(text, encoding="utf-8")
    assert only_run(read_lesson(path)) == ["a", "E"]


def test_a_stretch_ends_at_an_exercise_and_holds_no_writing(cells):
    assert reading(cells).stretches == [pytest.approx(6 / 180 + 2 / 12)]


def test_short_words_read_easily_and_long_ones_do_not(tmp_path):
    def ease(prose):
        path = tmp_path / "20_lesson.py"
        path.write_text(f"# %% [markdown]\n# {prose}\n", encoding="utf-8")
        return reading_ease(read_lesson(path))

    long = "Differentiability notwithstanding, computation."
    assert ease("The cat sat on the mat. It was wet.") > 90 > 30 > ease(long)
    assert [syllables(word) for word in ("tape", "gradient", "computation")] == [1, 3, 4]


LESSONS = sorted((Path(__file__).parents[2] / "course" / "lessons").glob("*/[0-9]*.py"))
TOP = re.compile(r"^\*(?:Core: a|A)bout (\d+) minutes\b(?:.* Further: about (\d+) minutes, optional\.)?", re.MULTILINE)
NOT_WORTH_SAYING = 5  # minutes of a further part


def told(minutes):
    """Minutes as the top of a lesson gives them: to the nearest five."""
    return 5 * round(minutes / 5)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_the_top_of_a_lesson_tells_its_minutes(lesson):
    cells = read_lesson(lesson)
    counted = reading(cells)
    top = TOP.search(cells[0].source)
    assert top, "the first cell says about how many minutes the lesson takes"
    assert int(top[1]) == told(counted.core.minutes)
    if top[2] or counted.further.minutes >= NOT_WORTH_SAYING:
        assert int(top[2] or 0) == told(counted.further.minutes)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_keeps_its_limits(lesson):
    counted = reading(read_lesson(lesson))
    assert round(counted.core.minutes) <= MUCH
    assert counted.core.given <= GIVEN
    assert round(counted.stretches[0]) <= FIRST, "the first exercise comes early"
    assert round(counted.longest_stretch) <= STRETCH


COURSE = Path(__file__).parents[2] / "course"
CORES = {path.stem[:2]: read_lesson(path) for path in LESSONS}


@pytest.mark.parametrize("path", paths_of(COURSE).values(), ids=lambda path: path.name)
def test_a_path_takes_no_more_hours_than_it_says(path):
    hours = (sum(minutes_of_week(week, CORES) for week in path.weeks) + path.demos) / 60
    assert path.hours - 2 < hours <= path.hours
    start = (COURSE.parent / "README.md").read_text(encoding="utf-8").partition("##")[0]
    assert f" {round(hours)}" in start[start.index("An afternoon") :], "README says how long it takes"


def test_the_parts_of_a_lesson_are_the_whole_lesson():
    cells = CORES["02"]
    assert part_of(cells, LessonPart("02", 1, 4)) + part_of(cells, LessonPart("02", 5)) == cells
