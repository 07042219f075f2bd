"""Formgrader and the feedback page in a real browser: marks, partial credit, cards, no hidden test, no script run."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_notebook

from autograder.grading.course import generate_assignment, open_course
from tests.autograder.conftest import nbgrader_cell, released_course, small_course  # noqa: F401  (fixtures)
from tests.autograder.grading.here import grade_all
from tests.autograder.grading.test_formgrader import server  # noqa: F401  (a fixture)
from tests.browser.conftest import violations

pytestmark = [pytest.mark.sandbox, pytest.mark.browser]

ATTACK = """
from IPython.display import HTML, Markdown, display
for kind in (HTML, Markdown):
    display(kind('<b>seen</b><script>window.caught = 1</script><img src=x onerror="window.caught = 2">'))
"""
CHECK = """from autograder.student import check_gradients
check_gradients({"a * b": lambda a, b: a * b, "a + b": lambda a, b: a + b}, [(), ()], points=2)
### BEGIN HIDDEN TESTS
+ check_gradients({"hiddenexpression": lambda a: a * a * a}, [()], points=2)
### END HIDDEN TESTS"""
ENGINE = '''class MiniTensor:
    """Only what the check needs."""

    def __init__(self, data, inputs=()):
        self.data, self.inputs, self.grad = float(data), inputs, 0.0

    def __add__(self, other):
        return MiniTensor(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        ### BEGIN SOLUTION
        return MiniTensor(self.data * other.data, ((self, other.data), (other, self.data)))
        ### END SOLUTION

    def backward(self, gradient=1.0):
        self.grad += gradient
        for tensor, slope in self.inputs:
            tensor.backward(gradient * slope)'''


@pytest.fixture
def gradient_course(small_course: Any) -> Any:  # noqa: F811
    """The small course with one gradient check, half of it hidden, and operands swapped in the submission."""
    path = small_course.root / "source" / "words" / "strings.ipynb"
    source = nbformat.read(path, as_version=4)
    tests = CHECK.replace('\ncheck_gradients({"a * b"', '\ncredit = check_gradients({"a * b"').replace(
        "\n+ check_gradients", "\ncredit = credit + check_gradients"
    )
    cells = [*source.cells, nbgrader_cell("engine", ENGINE), nbgrader_cell("test_engine", f"{tests}\ncredit", points=4)]
    nbformat.write(new_notebook(cells=cells, metadata=source.metadata), path)
    with open_course(small_course.root) as course:
        generate_assignment(course, "words")
    submission = small_course.answered(shout="return word")
    for cell in submission.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "engine":
            cell.source = ENGINE.replace(
                "(self, other.data), (other, self.data)", "(self, self.data), (other, other.data)"
            )
            cell.source = cell.source.replace("        ### BEGIN SOLUTION\n", "").replace(
                "        ### END SOLUTION\n", ""
            )
            cell.source += ATTACK
    small_course.submit("ann", submission)
    assert grade_all(small_course, feedback=True)["ann"].points == 3
    return small_course


def test_formgrader_and_feedback_show_marks_and_cards_and_run_nothing(
    gradient_course: Any,
    server: Any,  # noqa: F811
    chromium: Any,
) -> None:
    size = {"width": 1300, "height": 1000}
    context = chromium.browser.new_context(viewport=size, extra_http_headers=server._headers)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    feedback = gradient_course.root / "feedback" / "ann" / "words" / "strings.html"
    page.goto(f"{server.address}/formgrader/gradebook/words/strings")
    page.locator("tbody a", has_text="Submission").first.click()
    page.wait_for_function(
        "() => { const boxes = [...document.querySelectorAll('input.score')];"
        " return boxes.length === 3 && boxes.every(box => box.value || box.placeholder); }"
    )
    scores = page.locator("input.score").evaluate_all("boxes => boxes.map(box => box.value || box.placeholder)")
    assert sorted(map(float, scores)) == [0, 1, 2], "of 3, of 4 and of 2"
    look(page)
    page.goto(feedback.as_uri())
    assert "3 of 9 points" in page.inner_text("body")
    page.evaluate("() => document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert violations(page) == []
    look(page)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    page.emulate_media(media="print")
    assert not page.get_by_text("Back to the top").first.is_visible(), "a link on paper"
    page.emulate_media(media="screen")
    html = page.content()  # graders see hidden tests, students do not
    assert [secret for secret in ("hiddenexpression", "hiddenword", "HIDDEN TESTS") if secret in html] == []
    outside = [url for url in asked if not url.startswith((server.address, "file:", "data:"))]
    assert outside == []
    context.close()


def look(page: Any) -> None:
    """Check what must be on both pages, and that no script of the submission has run."""
    text = page.inner_text("body")
    assert "swapped" in text, "the card names the bug"
    assert page.locator("b", has_text="seen").count() == 2
    assert page.evaluate("window.caught") is None
