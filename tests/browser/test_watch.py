"""A class of thirty whose submissions are watched: one student works in JupyterLab, submits with nbgrader's button and
fetches the feedback there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.autograder.conftest import nbgrader, released_course, small_course  # noqa: F401  (fixtures)
from tests.autograder.grading.test_watch import Exchange, exchange  # noqa: F401  (a fixture)
from tests.autograder.nbgrader_commands import NbgraderCommands

pytestmark = [pytest.mark.sandbox, pytest.mark.browser]

OTHERS, PATIENCE = 29, 120.0  # students besides the one in the page; seconds


@contextmanager
def watching(course: Any, log: Path) -> Iterator[None]:
    """Run `autograder watch` beside the test, which continues once the command says that it watches."""
    command = [sys.executable, "-m", "autograder.cli", "watch", "words", "--course", str(course.root)]
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    try:
        while "watching words" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        status = process.wait(timeout=60)
    assert status == 0, log.read_text()


@pytest.fixture
def student_lab(lab: Any, exchange: Exchange, nbgrader: NbgraderCommands, tmp_path: Path) -> Iterator[Any]:  # noqa: F811
    """JupyterLab for a student who uses the course's exchange. nbgrader reads its settings anew for each request."""
    nbgrader("release_assignment", "words", cwd=exchange.course.root)
    settings = lab.root / "nbgrader_config.py"
    settings.write_text(f"""c = get_config()
c.CourseDirectory.course_id = 'small'
c.Exchange.root = {str(exchange.root)!r}
c.Exchange.cache = {str(tmp_path / "cache")!r}
""")
    if not lab.shows_jupyterlab():
        lab.load()
    yield lab
    settings.unlink()
    shutil.rmtree(lab.root / "words")


def test_a_student_hands_in_by_the_button_and_has_feedback_in_the_page(
    student_lab: Any,
    exchange: Exchange,  # noqa: F811
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    for number in range(OTHERS):
        exchange.hand_in(f"s{number:02}", shout="return word" if number % 2 else "return word.upper()")
    page = student_lab.page
    with watching(exchange.course, tmp_path / "log"):
        student_lab.wait_until("() => window.jupyterapp?.commands?.hasCommand('nbgrader:open-assignment-list')")
        page.evaluate("() => window.jupyterapp.commands.execute('nbgrader:open-assignment-list')")
        page.locator("#released_assignments_list button", has_text="Fetch").click()
        page.locator("#fetched_assignments_list button", has_text="Submit").wait_for()
        nbformat.write(exchange.course.answered(shout="return word"), student_lab.root / "words" / "strings.ipynb")
        clicked = time.monotonic()
        page.locator("#fetched_assignments_list button", has_text="Submit").click()
        fetch = page.locator("#submitted_assignments_list button", has_text="Fetch Feedback")
        link = page.locator("#submitted_assignments_list a", has_text="view feedback")
        fetch.wait_for()
        while not link.count() and time.monotonic() - clicked < PATIENCE:
            fetch.click()
            page.wait_for_timeout(500)
        seconds = time.monotonic() - clicked
    fetched = list((student_lab.root / "words" / "feedback").glob("*/strings.html"))
    assert ["2 of 5 points" in path.read_text() for path in fetched] == [True]
    record_property("seconds from the click to the feedback", round(seconds, 1))
    link.click()
    student_lab.wait_until("() => document.body.innerText.includes('strings.html')")
