"""A real JupyterLab in a real Chromium, for every test in this folder.

One server on a temporary folder and one browser serve the whole session. `lab` opens one notebook after another in one
page, as a reader does, because loading JupyterLab takes longer than many tests. It notes console errors and requests to
other hosts. All pages share the browser's profile. Without Chromium the tests are skipped with a message that names the
command to install it.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "no Chromium found; install one with `apt-get install chromium` (or Google Chrome, or your system's package)"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
OFTEN = 50  # milliseconds between two checks of a condition; a check in each frame of a page costs more than the page
PATIENCE = 180_000  # milliseconds; a loaded machine is slow, and a high limit costs nothing on a fast one
# `_ensureFocus`: JupyterLab still activates a notebook that a test has closed.
HARMLESS = ("favicon", "ResizeObserver loop", "_ensureFocus")

# JupyterLab looks for a model every tenth of a second for two seconds. This imitates a page too busy to look again:
LOOKS_ONCE = """() => {
    const wait = window.setTimeout;
    window.setTimeout = (done, time, ...more) =>
        wait(done, time === 100 && new Error().stack.includes("get_model") ? 2100 : time, ...more);
    window.lookAgain = () => { window.setTimeout = wait; };
}"""

# Close everything without asking whether to save it, and open a notebook.
INSTEAD = """async name => {
    for (const widget of [...window.jupyterapp.shell.widgets('main')]) {
        if (widget.context) widget.context.model.dirty = false;
        widget.close();
    }
    await window.jupyterapp.commands.execute('docmanager:open', {path: name});
}"""
# axe does not judge the contrast of a text that is cut off, as by the body of JupyterLab, which has no height, and of
# one that has no place yet.
UNCUT = "body, #main { overflow: visible !important; } .jp-Cell { content-visibility: visible !important; }"
VIEWPORT = {"width": 1400, "height": 1000}


class Lab:
    """The page of one test, and the means to drive JupyterLab through its own commands."""

    def __init__(self, page, root: Path, url: str, token: str) -> None:
        self.page, self.root, self.url, self.token = page, root, url, token
        self.console_errors: list[str] = []
        self.external_requests: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.set_viewport_size(VIEWPORT)
        self._listeners = {
            "console": self._note_console,
            "pageerror": lambda error: self._note_error(str(error)),
            "request": self._note_request,
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)

    def write_notebook(self, name: str, cells: list[str | nbformat.NotebookNode]) -> Path:
        """Write a notebook with these cells into the served folder; a string is the source of a code cell."""
        made = [nbformat.v4.new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        notebook = nbformat.v4.new_notebook(cells=made)
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        return path

    def open_notebook(self, path: Path | str) -> None:
        """Open a notebook of the served folder (other files are copied there) and wait for its kernel."""
        path = Path(path)
        if path.is_absolute() and not path.is_relative_to(self.root):
            path = Path(shutil.copy(path, self.root / path.name))
        name = path.relative_to(self.root).as_posix() if path.is_absolute() else path.as_posix()
        if self.shows_jupyterlab():
            shut_down_kernels(self.url, self.token)
            self.page.evaluate(INSTEAD, name)
        else:
            self.load(f"tree/{name}")
        self.wait_open()

    def shows_jupyterlab(self) -> bool:
        return self.page.evaluate("() => Boolean(window.jupyterapp) && location.pathname.startsWith('/lab')")

    def load(self, place: str = "") -> None:
        """Load JupyterLab at this place, in a workspace of its own."""
        self.page.goto(f"{self.url}/lab/workspaces/{uuid.uuid4().hex}/{place}?token={self.token}&reset")

    def wait_open(self) -> None:
        """Wait until a notebook is open and its kernel has nothing to do."""
        self.wait_until("() => window.jupyterapp?.shell?.currentWidget?.sessionContext !== undefined")
        self.wait_idle()

    def save(self) -> None:
        """Save the notebook and wait until it is in its file."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        self.wait_until("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")

    def save_and_reload(self) -> None:
        """Save and reload, like a reader who comes back the next day, but with the kernel still alive."""
        self.save()
        self.page.reload()
        self.wait_open()

    def end(self) -> None:
        """Shut the kernels down, and stop listening to a page that another test may use."""
        shut_down_kernels(self.url, self.token)
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def leave(self) -> None:
        """Close the notebook and shut its kernel down."""
        self.page.goto("about:blank")
        shut_down_kernels(self.url, self.token)

    @contextmanager
    def looking_once(self) -> Iterator[None]:
        """Imitate a page too busy to look for a model again: this page, and what is loaded into it meanwhile."""
        with self.page.add_init_script(f"({LOOKS_ONCE})()"):
            self.page.evaluate(LOOKS_ONCE)
            yield
        self.page.evaluate("() => window.lookAgain()")

    def run_all(self) -> None:
        """Run all cells and wait until the last one is done."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.wait_idle()

    def wait_idle(self) -> None:
        """Wait until the kernel has nothing to do and no cell waits for it."""
        self.wait_until(
            """() => {
                const panel = window.jupyterapp.shell.currentWidget;
                const kernel = panel?.sessionContext?.session?.kernel;
                const waiting = [...panel.node.querySelectorAll('.jp-InputPrompt')].some(p => p.textContent === '[*]:');
                return kernel?.status === 'idle' && !waiting;
            }"""
        )

    def outputs(self) -> list[list[dict]]:
        """The outputs of every code cell as JSON, as JupyterLab holds them."""
        return self.page.evaluate(
            """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
                .filter(cell => cell.type === 'code').map(cell => cell.outputs.toJSON())"""
        )

    def errors(self) -> list[str]:
        """The error outputs of the notebook, as "Name: message"."""
        found = [output for cell in self.outputs() for output in cell if output["output_type"] == "error"]
        return [f"{output['ename']}: {output['evalue']}" for output in found]

    def cell(self, index: int):
        """The element of the cell with this index, scrolled into view."""
        self.page.evaluate(
            """index => { const notebook = window.jupyterapp.shell.currentWidget.content;
                          notebook.activeCellIndex = index; return notebook.scrollToItem(index); }""",
            index,
        )
        return self.page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{index}']")

    def use_theme(self, name: str) -> None:
        """Switch to "JupyterLab Light" or "JupyterLab Dark" and wait for it."""
        self.page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
        self.wait_until("name => document.body.dataset.jpThemeName === name", name)

    def wait_until(self, condition: str, argument: object = None) -> None:
        """Wait until a JavaScript function returns something true."""
        self.page.wait_for_function(condition, arg=argument, polling=OFTEN)

    def _note_console(self, message) -> None:
        if message.type == "error":
            self._note_error(message.text)

    def _note_error(self, text: str) -> None:
        if not any(word in text for word in HARMLESS):
            self.console_errors.append(text)

    def _note_request(self, request) -> None:
        if not request.url.startswith((self.url, self.url.replace("http", "ws", 1), "data:", "blob:")):
            self.external_requests.append(request.url)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory) -> Iterator:
    """One browser for the session: the context of its profile, which makes pages."""
    with browser(tmp_path_factory.mktemp("profile")) as profile:
        yield profile


@contextmanager
def browser(folder: Path) -> Iterator:
    """A headless Chromium that keeps its profile in this folder."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(INSTALL)
    from playwright import sync_api as playwright

    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as driver:
        profile = driver.chromium.launch_persistent_context(
            folder, executable_path=path, args=ARGUMENTS, timeout=PATIENCE, viewport=VIEWPORT
        )
        yield profile
        profile.close()


@pytest.fixture(scope="session")
def lab_server(chromium, tmp_path_factory) -> Iterator[tuple[Path, str, str]]:
    """One JupyterLab for the session: (folder, URL, token)."""
    with serving(tmp_path_factory.mktemp("lab")) as served:
        yield served


def violations(page, part: str | None = None) -> list[tuple[str, list[str]]]:
    """The WCAG 2.1 A and AA violations that axe-core finds in a page or a part of it: rules with the first elements."""
    from axe_playwright_python.sync_playwright import Axe

    options = {
        "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
        "preload": False,  # it cannot read other files
        "resultTypes": ["violations"],  # to describe what is in order takes longer than to check it
    }
    uncut = page.add_style_tag(content=UNCUT)
    found = Axe().run(page, context=part, options=options).response["violations"]
    uncut.evaluate("style => style.remove()")
    return [(rule["id"], [node["html"][:200] for node in rule["nodes"][:5]]) for rule in found]


@contextmanager
def serving(home: Path) -> Iterator[tuple[Path, str, str]]:
    """A JupyterLab on an empty folder of `home`, with settings of its own: (folder, URL, token)."""
    root, token, port = home / "served", uuid.uuid4().hex, free_port()
    root.mkdir()
    settings = home / "settings"
    settings.mkdir()
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    for name, values in quiet.items():
        file = settings / (name.replace(":", "/") + ".jupyterlab-settings")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),  # for forked_kernels.py
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--allow-root", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}",
        "--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly", "--LabApp.news_url=None",
        f"--LabApp.user_settings_dir={settings}", f"--LabApp.workspaces_dir={home / 'workspaces'}",
        "--AsyncMappingKernelManager.kernel_manager_class=tests.browser.forked_kernels.ForkedKernelManager",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    log = (home / "server.log").open("w")
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=root)
    try:
        wait_for_server(f"{url}/api/status?token={token}", process, home / "server.log")
        yield root, url, token
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
        log.close()


@pytest.fixture(scope="session")
def reader_page(chromium) -> Iterator:
    """The page for all tests that need none of their own."""
    page = chromium.new_page()
    yield page
    page.close()


@pytest.fixture
def lab(reader_page, lab_server) -> Iterator[Lab]:
    """The session's JupyterLab, in a page that other tests have used before."""
    lab = Lab(reader_page, *lab_server)
    yield lab
    lab.end()


@pytest.fixture(scope="module")
def module_lab(reader_page, lab_server) -> Iterator[Lab]:
    """The same for all tests of a file, which open one notebook once and then each use a part of it."""
    lab = Lab(reader_page, *lab_server)
    yield lab
    lab.end()


@contextmanager
def fresh_page(chromium, lab_server) -> Iterator[Lab]:
    """A new page; the kernels are shut down afterwards."""
    root, url, token = lab_server
    page = chromium.new_page()
    lab = Lab(page, root, url, token)
    yield lab
    lab.end()
    page.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_server(url: str, process: subprocess.Popen, log: Path, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")


def shut_down_kernels(url: str, token: str) -> None:
    headers = {"Authorization": f"token {token}"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/api/sessions", headers=headers), timeout=180) as reply:
        sessions = json.load(reply)
    for session in sessions:
        request = urllib.request.Request(f"{url}/api/sessions/{session['id']}", headers=headers, method="DELETE")
        urllib.request.urlopen(request, timeout=180).close()
