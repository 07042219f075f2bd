"""The class report on a phone, where its tables scroll in their own boxes and the page does not, and on paper."""

from unittest import mock

import pytest

from autograder.grading.commands import report as command
from autograder.grading.report.class_report import ClassReport
from tests.autograder.grading.test_report import record

pytestmark = pytest.mark.browser

MESSAGE = "needed: `grad * second`, and the two operands are swapped in the rule of `multiply`"


def test_the_page_does_not_scroll_sideways_and_can_be_printed(chromium, tmp_path):
    records = [
        record(f"student_{number:03}", number % 5, MESSAGE, ("operands_swapped",), seconds=3.0 + number)
        for number in range(20)
    ]
    killed = record("kim", 0, "A hidden test failed: your code stopped the notebook's process.")
    report = ClassReport([*records, killed], "02_scalar_engine", "course", "today", {})
    with mock.patch.object(command, "collected", return_value=report):
        command.write(None, "02_scalar_engine", tmp_path / "report.html")
    page = chromium.new_page()
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto((tmp_path / "report.html").as_uri())
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    assert page.locator(".people li").first.inner_text() == "need a look: 1 kim stopped its process"
    page.emulate_media(media="print")
    adjust = "bar => getComputedStyle(bar).printColorAdjust"
    assert page.locator(".bar i").first.evaluate(adjust) == "exact", "bars have no color on paper"
    page.close()
