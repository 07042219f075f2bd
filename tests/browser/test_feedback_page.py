"""A feedback page on a phone and in a dark theme, and on paper."""

from __future__ import annotations

from typing import Any

import pytest

from tests.autograder.conftest import released_course, small_course  # noqa: F401  (fixtures)
from tests.autograder.grading.here import grade_all

pytestmark = [pytest.mark.sandbox, pytest.mark.browser, pytest.mark.filterwarnings("ignore")]

CONTRAST = """element => {
    const light = color => color.match(/[\\d.]+/g).slice(0, 3).map(part => {
        const share = part / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    }).reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    let ground = element;
    while (getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)') ground = ground.parentElement;
    const [low, high] = [getComputedStyle(element).color, getComputedStyle(ground).backgroundColor]
        .map(light).sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}"""


def test_a_page_says_whose_it_is_and_is_read_in_one_column_in_any_theme(
    chromium: Any,
    small_course: Any,  # noqa: F811
) -> None:
    path = small_course.submit("ann", small_course.answered(shout="return word"))
    (path.parent / "timestamp.txt").write_text("2026-11-03 12:00 UTC")
    grade_all(small_course, feedback=True)
    (page_file,) = (small_course.root / "feedback" / "ann").rglob("*.html")
    page = chromium.new_page()
    page.goto(page_file.as_uri())
    assert page.locator(".whose").inner_text() == "ann, handed in 2026-11-03 12:00:00 UTC"
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for name in ("h1", ".whose", ".overview .lost", ".overview a", ".source .k", ".source .nf", ".source .n"):
            assert page.locator(name).first.evaluate(CONTRAST) >= 4.5, (scheme, name)
    points = page.locator(".overview td.points").first
    assert points.evaluate("cell => getComputedStyle(cell).display") == "table-cell"
    page.set_viewport_size({"width": 390, "height": 800})
    assert points.evaluate("cell => getComputedStyle(cell).display") == "block"
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    page.emulate_media(media="print")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)", "a dark theme is not printed"
    page.close()
