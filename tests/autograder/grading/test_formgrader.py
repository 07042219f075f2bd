"""Formgrader in a real Jupyter server: its buttons use our judge, and its pages run no student's script."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from nbformat.v4 import new_markdown_cell, new_output

pytestmark = pytest.mark.sandbox

CONFIGURATION = """from autograder.nbgrader_plugins import configure

c = get_config()
c.CourseDirectory.course_id = 'small'
configure(c)
"""
OF_NO_USE = ("jupyterlab", "jupyterlab_jupytext", "jupyter_lsp", "notebook")  # on by default, and slow to start
EXTENSIONS = {"nbgrader.server_extensions.formgrader": True, **dict.fromkeys(OF_NO_USE, False)}


@dataclass(frozen=True)
class Server:
    """A running Jupyter server whose root is a course."""

    address: str

    def get(self, path: str) -> str:
        return self._ask(urllib.request.Request(f"{self.address}/{path}", headers=self._headers))

    def post(self, path: str) -> Any:
        request = urllib.request.Request(f"{self.address}/{path}", data=b"{}", headers=self._headers, method="POST")
        return json.loads(self._ask(request))

    _headers = {"Authorization": "token secret"}  # noqa: RUF012

    @staticmethod
    def _ask(request: urllib.request.Request) -> str:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()


@pytest.fixture
def server(small_course: Any) -> Iterator[Server]:
    (small_course.root / "nbgrader_config.py").write_text(CONFIGURATION)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyter_server", f"--port={port}", "--no-browser", "--allow-root"]
    command += ["--IdentityProvider.token=secret", "--ServerApp.disable_check_xsrf=True"]
    command += [f"--ServerApp.jpserver_extensions={EXTENSIONS}", f"--ServerApp.root_dir={small_course.root}"]
    log = (small_course.root.parent / "server.log").open("w")
    process = subprocess.Popen(command, cwd=small_course.root, stdout=log, stderr=log)
    running = Server(f"http://127.0.0.1:{port}")
    try:
        for _ in range(3000):
            try:
                running.get("api/status")
                break
            except URLError:
                assert process.poll() is None, Path(log.name).read_text()
                time.sleep(0.1)
        yield running
    finally:
        process.terminate()
        process.wait()
        log.close()


def test_its_buttons_and_its_page(small_course: Any, server: Server) -> None:
    notebook = small_course.answered(shout="return word")
    notebook.cells.insert(0, new_markdown_cell("mine <script>alert('markdown')</script><b>bold</b>"))
    notebook.cells[1].metadata["tags"] = ["<script>alert('tag')</script>"]
    notebook.cells[3].outputs = [new_output("display_data", {"text/html": "<script>alert('kept output')</script>"})]
    display = "from IPython.display import HTML, display; display(HTML('<i>seen</i><script>alert(1)</script>'))"
    notebook.cells[2].source += f"\n\n{display}"
    small_course.submit("ann", notebook)

    graded = server.post("formgrader/api/submission/words/ann/autograde")
    assert graded["success"], graded
    assert "hiddenword" not in graded.get("log", "")
    feedback = server.post("formgrader/api/assignment/words/generate_feedback")
    assert feedback["success"], feedback
    assert "2 of 5 points" in small_course.feedback("ann")

    students = json.loads(server.get("formgrader/api/submissions/words"))
    assert [(entry["student"], entry["score"]) for entry in students] == [("ann", 2.0)]
    entries = json.loads(server.get("formgrader/api/submitted_notebooks/words/strings"))
    for page in (server.get(f"formgrader/submissions/{entries[0]['id']}/"), small_course.feedback("ann")):
        assert "<b>bold</b>" in page
        assert "<i>seen</i>" in page
        assert not re.search(r"<script[^>]*>\s*alert", page)
        assert "autograder-card" in page or "AssertionError" in page
