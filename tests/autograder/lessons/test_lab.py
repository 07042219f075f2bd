"""JupyterLab starts in the student's folder without asking anything, and its nbgrader extensions work."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.lessons.student import lab

pytestmark = pytest.mark.slow

TOKEN = "a-token-for-the-test"
NOTEBOOK = "01_squares/01_squares.ipynb"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A running `autograder lab`, queried over HTTP and stopped by its own process id."""

    def __init__(self, course: Path, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.port = folder, free_port()
        self.log = folder.parent / "server.log"
        self.terminal, terminal_end = pty.openpty()
        command = [sys.executable, "-m", "autograder.cli", "lab", "--course", str(course), "--workspace", str(folder)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), "--no-browser"],
                env={name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")} | environment,
                stdin=terminal_end,
                stdout=log,
                stderr=log,
            )
        os.close(terminal_end)

    def request(self, address: str, **fields: str) -> Any:
        data = urllib.parse.urlencode(fields).encode() if fields else None
        headers = {"Authorization": f"token {TOKEN}"}
        with urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{self.port}{address}", data, headers), timeout=120
        ) as answer:
            return answer.read().decode()

    def json(self, address: str, **fields: str) -> Any:
        return json.loads(self.request(address, **fields))

    def wait(self) -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                self.request("/api/status")
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.2)
            else:
                return
        pytest.fail(f"the server did not start:\n{self.log.read_text()}")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)
        os.close(self.terminal)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests of this file. Its user's own Jupyter folders are empty."""
    place = tmp_path_factory.mktemp("lab")
    for name in ("01_squares", "02_plain"):
        (place / "course" / "lessons" / name).mkdir(parents=True)
    (place / "course" / "data").mkdir()
    (place / "course" / "data" / "points.csv").write_text("1,2\n")
    text = (Path(__file__).parent / "squares_lesson.txt").read_text()
    (place / "course" / "lessons" / "01_squares" / "01_squares.py").write_text(text)
    (place / "course" / "lessons" / "02_plain" / "02_plain.py").write_text(PLAIN)
    home = {"HOME": str(place / "home"), "PATH": "/usr/bin:/bin", "JUPYTER_TOKEN": TOKEN}
    running = Server(place / "course", place / "my workspace", home)
    try:
        running.wait()
        yield running
    finally:
        running.stop()


PLAIN = """
# %% [markdown]
# # A lesson that needs nothing of ours
#
# Return the number two.

# %% nbgrader={"grade_id": "two", "solution": true}
def two():
    ### BEGIN SOLUTION
    return 2
    ### END SOLUTION

# %% nbgrader={"grade_id": "test_two", "grade": true, "points": 1}
assert two() == 2
"""


def test_it_answers_on_this_machine_only(server: Server) -> None:
    assert "started" in server.json("/api/status")
    assert server.json(f"/api/contents/{NOTEBOOK}?content=0")["type"] == "notebook"
    assert server.request("/lab/tree/" + NOTEBOOK).lower().startswith("<!doctype html>")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/api/contents/{NOTEBOOK}", timeout=120)
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)} - {"127.0.0.1", "::1"}
    for address in others:
        with pytest.raises(OSError, match=r"refused|unreachable|timed out|assign"):
            socket.create_connection((address, server.port), timeout=5)


def test_the_student_sees_lessons_only(server: Server) -> None:
    assert [entry["name"] for entry in server.json("/api/contents/")["content"]] == ["01_squares", "02_plain"]


def test_it_opens_the_first_lesson_and_says_where(server: Server) -> None:
    log = server.log.read_text()
    assert f"http://127.0.0.1:{server.port}/lab/tree/{NOTEBOOK}?token=" in log
    assert f"Your notebooks are in {server.folder}" in log


def page_config(server: Server) -> dict[str, Any]:
    page = server.request("/lab/tree/" + NOTEBOOK)
    text = page.partition('id="jupyter-config-data" type="application/json">')[2].partition("</script>")[0]
    return dict(json.loads(text))


def test_tools_of_instructors_are_off_and_validate_is_on(server: Server) -> None:
    disabled = page_config(server)["disabledExtensions"]
    assert {"@jupyter/nbgrader:create-assignment", "@jupyter/nbgrader:formgrader"} <= set(disabled)
    assert "@jupyter/nbgrader:validate-assignment" not in disabled


def test_there_is_no_news_pop_up(server: Server) -> None:
    assert page_config(server)["news"] == {"disabled": True}
    schema = server.json("/lab/api/settings/@jupyterlab/apputils-extension:notification")["schema"]["properties"]
    assert schema["fetchNews"]["default"] == "false"
    assert schema["checkForUpdates"]["default"] is False


def test_the_kernel_is_the_environments_own(server: Server) -> None:
    spec = server.json("/api/kernelspecs")["kernelspecs"]["python3"]["spec"]
    assert spec["argv"][0] in ("python", sys.executable)


def test_nbgraders_extensions_load_without_error(server: Server) -> None:
    for path in ("/assignments?course_id=mini-autograd", "/courses"):
        assert server.json(path) == {"success": True, "value": []}
    assert "formgrader" in server.request("/formgrader/manage_assignments").lower()
    log = server.log.read_text()
    assert [line for line in log.splitlines() if line.startswith("[E ") or "Traceback" in line] == []


def test_validate_works_on_a_notebook(server: Server) -> None:
    stub = server.json("/assignments/validate", path="02_plain/02_plain.ipynb")
    assert stub["success"], stub
    assert "NotImplementedError" in json.dumps(stub["value"])
    notebook = server.folder / "02_plain" / "02_plain.ipynb"
    delivered = notebook.read_text()
    try:
        notebook.write_text(delivered.replace("raise NotImplementedError()", "return 2"))
        assert server.json("/assignments/validate", path="02_plain/02_plain.ipynb") == {"success": True, "value": {}}
    finally:
        notebook.write_text(delivered)


def test_a_theme_chosen_here_stays_here(server: Server) -> None:
    """As JupyterLab saves what is chosen in its menu."""
    themes = "@jupyterlab/apputils-extension:themes"
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/lab/api/settings/{themes}",
        json.dumps({"raw": '{"theme": "JupyterLab Dark"}'}).encode(),
        {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"},
        method="PUT",
    )
    urllib.request.urlopen(request, timeout=120).close()
    assert server.json(f"/lab/api/settings/{themes}")["settings"] == {"theme": "JupyterLab Dark"}
    assert list(server.folder.rglob("themes.jupyterlab-settings")) != []
    assert list((server.folder.parent / "home").rglob("*.jupyterlab-settings")) == []


def test_nothing_of_ours_is_written_to_the_users_own_folders(server: Server) -> None:
    written = [str(path) for path in (server.folder.parent / "home").rglob("*")]
    assert [path for path in written if "nbgrader" in path or "overrides" in path or ".jupyter/lab" in path] == []


def test_ctrl_c_stops_it_cleanly_without_a_question(course: Path, tmp_path: Path) -> None:
    running = Server(course, tmp_path / "workspace", {"JUPYTER_TOKEN": TOKEN})
    try:
        running.wait()
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(30) == 0, running.log.read_text()
        assert "y/[n]" not in running.log.read_text()
    finally:
        running.stop()


def test_a_taken_port_is_refused_with_its_number(course: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        arguments = ["--course", str(course), "--workspace", str(tmp_path / "ws"), "--port", port, "--no-browser"]
        command = [sys.executable, "-m", "autograder.cli", "lab", *arguments]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert finished.returncode != 0
    assert port in finished.stdout + finished.stderr


SCREENS = {
    "X11": ({"DISPLAY": ":0"}, "linux", True),
    "Wayland": ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
    "a server": ({}, "linux", False),
    "an empty variable": ({"DISPLAY": ""}, "linux", False),
    "macOS": ({}, "darwin", True),
    "Windows": ({}, "win32", True),
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_browser_is_opened_where_there_is_a_screen(name: str) -> None:
    environment, platform, expected = SCREENS[name]
    assert lab.has_screen(environment, platform) is expected


def test_root_is_allowed_only_for_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for user, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert ("--allow-root" in lab.server_command(tmp_path, tmp_path, None, None, browser=False)) is expected


def test_the_environment_finds_our_programs_and_configuration_first(tmp_path: Path) -> None:
    changed = lab.server_environment(tmp_path, {"PATH": "/bin", "JUPYTER_CONFIG_PATH": "/theirs"})
    assert changed["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/bin"
    assert changed["JUPYTER_CONFIG_PATH"] == f"{tmp_path / 'jupyter'}{os.pathsep}/theirs"
    assert lab.server_environment(tmp_path, {})["JUPYTER_CONFIG_PATH"] == str(tmp_path / "jupyter")


def test_a_port_in_use_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SystemExit, match=f"Port {port} is in use.* Name another with --port"):
            lab.server_command(tmp_path, tmp_path / ".course", None, port, browser=False)
