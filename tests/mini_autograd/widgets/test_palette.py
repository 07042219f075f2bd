"""The colors of lines in demos: red-green color-blind readers can tell them apart, and they stand out on any page."""

import itertools

import numpy as np
import pytest

from mini_autograd.widgets.demo import COLORS
from mini_autograd.widgets.sketch import TEXT_SHARE, words

# What a reader sees who lacks one kind of cones, in linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
SIMULATED = {
    "all cones": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE_POINT = np.array([0.9505, 1.0, 1.089])
PAGES = {"light": "#ffffff", "dark": "#111111"}
APART = 20  # in CIELAB; 2 is the smallest difference that is visible side by side


def linear(color):
    shares = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE_POINT
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def brightness(color):
    return TO_XYZ[1] @ linear(color) + 0.05


@pytest.mark.parametrize("eyes", SIMULATED)
def test_no_two_colors_look_alike(eyes):
    seen = {color: lab(SIMULATED[eyes] @ linear(color)) for color in COLORS}
    for one, other in itertools.combinations(COLORS, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= APART, f"{one} and {other}"


@pytest.mark.parametrize("theme", PAGES)
def test_every_color_stands_out_from_the_page(theme):
    page = brightness(PAGES[theme])
    for color in COLORS:
        low, high = sorted((brightness(color), page))
        assert high / low >= 3, color


INK = {"light": "#1f1f1f", "dark": "#e0e0e0"}
BOX = {"light": "#e9e9e9", "dark": "#343434"}


@pytest.mark.parametrize("theme", INK)
def test_texts_in_the_first_colors_can_be_read_on_a_box(theme):
    """The colors that demos write in: mixed with ink, they have the contrast that small type needs."""
    assert f"{COLORS[0]} {TEXT_SHARE}%, currentColor" in words(0, 0, "text", fill=COLORS[0])
    for color in COLORS[:3]:
        pairs = zip(shares_of(color), shares_of(INK[theme]), strict=True)
        mixed = [TEXT_SHARE / 100 * one + (1 - TEXT_SHARE / 100) * ink for one, ink in pairs]
        written = "#" + "".join(f"{round(255 * share):02x}" for share in mixed)
        low, high = sorted((brightness(written), brightness(BOX[theme])))
        assert high / low >= 4.5, color


def shares_of(color):
    return [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
