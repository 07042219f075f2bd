"""Starts JupyterLab on a student's folder, with nbgrader's extensions configured, without asking anything.

All configuration lives in the hidden part of that folder and is found through environment variables and the command
line, so neither the machine nor the user's own Jupyter settings are changed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from autograder.files import write_if_changed
from autograder.lessons.student.progress import Progress, read_progress

COURSE_ID = "mini-autograd"  # as in course/nbgrader_config.py
NO_NEWS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
INSTRUCTORS = ("create-assignment", "formgrader", "course-list", "assignment-list", "menu")
"""Parts of nbgrader's extension that are disabled on a student's page; *Validate* stays."""
FRESH_KERNEL = Path(__file__).with_name("fresh_kernel.py")
NBGRADER_CONFIG = """\
# Written by `autograder lab`: lets nbgrader's parts of JupyterLab work in this folder.
c = get_config()
c.CourseDirectory.course_id = {course!r}
c.CourseDirectory.root = {root!r}
c.Exchange.root = {exchange!r}
c.Exchange.cache = {cache!r}
c.Exchange.assignment_dir = {workspace!r}
"""


def has_screen(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether a browser could be shown on this machine."""
    return platform in ("darwin", "win32") or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def write_configuration(workspace: Path, hidden: Path) -> None:
    """Write nbgrader's and JupyterLab's configuration and make the folders that they name."""
    nbgrader, jupyter = hidden / "nbgrader", hidden / "jupyter"
    folders = {"exchange": nbgrader / "exchange", "cache": nbgrader / "cache"}
    for folder in (*folders.values(), hidden / "workspaces", hidden / "settings"):
        folder.mkdir(parents=True, exist_ok=True)
    names = {name: str(folder) for name, folder in folders.items()}
    config = NBGRADER_CONFIG.format(course=COURSE_ID, root=str(nbgrader), workspace=str(workspace), **names)
    write_if_changed(jupyter / "nbgrader_config.py", config)
    write_if_changed(jupyter / "labconfig" / "default_setting_overrides.json", json.dumps(NO_NEWS))
    disabled = {"disabledExtensions": {f"@jupyter/nbgrader:{part}": True for part in INSTRUCTORS}}
    write_if_changed(jupyter / "labconfig" / "page_config.json", json.dumps(disabled))


def server_environment(hidden: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of the server and its kernels: our configuration first, our interpreter's programs first.

    nbgrader calls `alembic` by its bare name, so the environment's folder of programs must be on PATH.
    """
    paths = {"PATH": Path(sys.executable).parent, "JUPYTER_CONFIG_PATH": hidden / "jupyter"}
    added = {name: os.pathsep.join(filter(None, (str(path), environment.get(name)))) for name, path in paths.items()}
    return {"PYTHONSTARTUP": str(FRESH_KERNEL), **environment, **added, "JUPYTER_PREFER_ENV_PATH": "1"}


def first_to_open(notebooks: Sequence[Path]) -> Path | None:
    """The notebook to begin with: the first one in which something is not done, else the first; None if there is none.
    Optional exercises do not count.
    """
    found = Progress([lesson for path in notebooks if (lesson := read_progress(path)) is not None])
    link = found.next_lesson.link if found.next_lesson else ""
    return next((path for path in notebooks if link == f"{path.parent.name}/{path.name}"), next(iter(notebooks), None))


def refuse_busy(port: int) -> None:
    """Exit and say what to do if another program listens on this port, or if the number is no port. Jupyter's own
    message does not say what to do.
    """
    if not 0 < port < 65536:
        raise SystemExit(f"--port {port}: a port is a number from 1 to 65535, such as 8888.")
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise SystemExit(
                f"Port {port} is in use, perhaps by a JupyterLab that is still running. Name another with --port, or "
                "leave --port out to get the first free one from 8888."
            )


def server_command(
    workspace: Path, hidden: Path, first: Path | None, port: int | None, browser: bool, page: str = "/lab"
) -> list[str]:
    """The command that starts JupyterLab on a notebook of the workspace; the page "/doc" shows only the notebook."""
    opened = f"{page}/tree/{quote(first.relative_to(workspace).as_posix())}" if first else page
    options = [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={workspace}",
        "--ServerApp.answer_yes=True",  # Ctrl-C stops at once instead of asking
        f"--ServerApp.open_browser={browser}",
        f"--LabApp.default_url={opened}",
        f"--LabApp.workspaces_dir={hidden / 'workspaces'}",
        f"--LabApp.user_settings_dir={hidden / 'settings'}",  # what a student chooses here, such as a theme, stays here
        "--LabApp.expose_app_in_browser=True",  # the stage runs cells
        "--LabApp.news_url=None",
        "--LabApp.extension_manager=readonly",  # the other extension manager asks the internet
        "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
        # With a token set by the user, Jupyter shows the server's address only in messages of level INFO.
        f"--Application.log_level={'INFO' if os.environ.get('JUPYTER_TOKEN') else 'WARN'}",
    ]
    if port is not None:
        refuse_busy(port)
        options += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")
    return [sys.executable, "-m", "jupyterlab", *options]


def start(command: list[str], environment: dict[str, str], folder: Path) -> int:
    """Run the server in `folder` until it is stopped. If the system allows it, this process becomes the server."""
    sys.stdout.flush()
    if os.name == "posix":
        os.chdir(folder)
        os.execve(command[0], command, environment)
    server = subprocess.Popen(command, env=environment, cwd=folder)
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:
            continue  # the server got the same Ctrl-C and is stopping
