"""Does the picture of a wrong gradient show what is wrong, where, and how?"""

import re

import numpy as np
import pytest

from autograder.cards.heat_map import MOST_COLUMNS, MOST_ROWS, heat_map
from autograder.nbgrader_plugins.safe_html import clean_html

RIGHT = np.arange(1.0, 13.0).reshape(3, 4)


def picture(got, expected=RIGHT):
    return heat_map("a.grad", np.asarray(got, dtype=float), expected, np.asarray(1e-12))


def changed(**elements):
    got = RIGHT.copy()
    for place, value in elements.items():
        got[int(place[1]), int(place[2])] = value
    return got


PATTERNS = {
    "twice": (RIGHT * 2, "every element is 2 times what it should be"),
    "sign": (-RIGHT, "every element is -1 times what it should be"),
    "zeros": (RIGHT * 0, "every element is 0"),
    "rounded zeros": (RIGHT * 1e-17, "every element is 0"),
    "nearly right": (RIGHT * (1 + 1e-7), "every element is wrong"),
    "wrong in its last digits": (RIGHT + 3e-12, "every element is wrong"),
    "flipped": (RIGHT[::-1], "the right numbers, in the wrong places"),
    "row": (RIGHT * np.array([[1.0], [3.0], [1.0]]), "wrong in row 1, right elsewhere"),
    "columns": (RIGHT + np.array([0.0, 1.0, 0.0, 2.0]), "wrong in columns 1, 3, right elsewhere"),
    "two elements": (changed(e00=7.0, e23=0.0), "2 of 12 elements are wrong"),
    "NaN": (changed(e00=np.nan), "1 of 12 elements are NaN"),
    "NaN and infinity": (changed(e00=np.nan, e11=np.inf), "2 of 12 elements are NaN or infinite"),
    "everything": (RIGHT + np.linspace(0.1, 0.7, 12).reshape(3, 4) ** 2, "every element is wrong"),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_what_stands_out_is_said(name):
    got, said = PATTERNS[name]
    assert picture(got).pattern == said


def test_signs_say_too_small_and_too_large():
    shown = picture(changed(e01=0.0, e12=70.0, e20=np.nan))
    assert [line.split() for line in shown.text()[1:4]] == [list(".-.."), list("..+."), list("?...")]
    html = shown.html()
    assert html.count("<rect") == 12 + 4, "the cells and the legend"
    assert len(re.findall("fill-opacity", html)) == 3 + 3
    assert clean_html(html).count("<rect") == 16
    assert "aria-label" in clean_html(html)


def test_the_sign_of_a_number_that_is_not_finite_is_explained_where_there_is_one():
    assert re.search(r">\?</text></svg> not a finite number<", picture(changed(e00=np.nan)).html())
    assert "finite" not in picture(changed(e00=7.0)).html()


@pytest.mark.parametrize(
    "got", [RIGHT, RIGHT + 1e-14, np.ones((4, 3)), np.ones(12)], ids=["right", "near", "shape", "flat"]
)
def test_no_picture_where_there_is_nothing_to_see(got):
    assert picture(got) is None


def test_a_number_has_no_picture():
    assert heat_map("a.grad", np.array(2.0), np.array(1.0), np.array(1e-12)) is None


@pytest.mark.parametrize("shape", [(500,), (40, 60), (1000, 3), (2, 3, 50, 70)], ids=str)
def test_large_arrays_become_small_pictures(shape):
    right = np.ones(shape)
    got = right.copy()
    got[(-1,) * len(shape)] = 5.0
    shown = heat_map("a.grad", got, right, np.asarray(1e-12))
    assert len(shown.errors) <= MOST_ROWS
    assert len(shown.errors[0]) <= MOST_COLUMNS
    assert sum(error != 0 for row in shown.errors for error in row) == 1
    assert len(shown.html()) < 60_000
    if len(shape) == 4:
        assert shown.name == "a.grad[1, 2, :, :]"
