"""The hub of deploy/jupyterhub, started with its proxy on a machine of its own: two instructors release a lesson;
students fetch it, submit it and get their feedback, all over HTTP and with system accounts.
"""

from __future__ import annotations

import contextlib
import csv
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import pytest
import requests
from sqlalchemy import create_engine, text
from traitlets.config import PyFileConfigLoader

from tests.autograder.grading.test_faults import postgresql  # noqa: F401  (a fixture)

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
HUB = ROOT / "deploy" / "jupyterhub"
LESSON = "00_start_here"
PEOPLE = {"alice": "student", "bob": "student", "prof": "instructor", "tutor": "instructor"}
EARLIER = "jupyterhub.sqlite.2026-01-01"  # a copy where earlier versions left it, for all to read
ONE_ORIGIN = "All servers of this hub have one origin"
PATIENCE = 180.0  # seconds; most of it is for a busy machine


@dataclass
class Hub:
    """A running hub, as its users see it. With `subdomains`, each server has an address of its own."""

    url: str
    subdomains: bool
    folder: Path
    log: Path
    process: int  # the first one of the hub's machine
    sessions: dict[str, requests.Session] = field(default_factory=dict)

    def login(self, name: str) -> requests.Session:
        """Log in on the page, as a person does."""
        passwords = dict(csv.reader((self.folder / "passwords.csv").read_text().splitlines()))
        session = self.sessions[name] = requests.Session()
        session.get(f"{self.url}/hub/login")
        form = {"username": name, "password": passwords[name], "_xsrf": session.cookies["_xsrf"]}
        assert session.post(f"{self.url}/hub/login", data=form).status_code == 200
        return session

    def server(self, name: str) -> Server:
        """A person's own JupyterLab, which this starts."""
        session = self.login(name)
        base = f"{self.origin(name)}/user/{name}"
        session.get(f"{self.url}/hub/spawn/{name}")
        self.wait(lambda: session.get(f"{base}/lab").url.startswith(f"{base}/lab"), f"{name}'s server")
        return Server(session, base)

    def course(self, name: str) -> Server:
        """The instructors' JupyterLab."""
        session, base = self.login(name), f"{self.origin('course--service')}/services/course"
        self.wait(lambda: session.get(f"{base}/lab").status_code == 200, "the instructors' server")
        return Server(session, base)

    def origin(self, label: str) -> str:
        """The origin of a server."""
        return self.url.replace("://", f"://{label}.") if self.subdomains else self.url

    def readable_by(self, account: str, folder: Path) -> set[str]:
        """The files in a folder of the hub's machine that an account can read, without the environment's packages."""
        there = ["nsenter", f"--target={self.process}", "--mount", "--pid", "runuser", "-u", account, "--"]
        found = ["find", str(folder), "-name", ".venv", "-prune", "-o", "-type", "f", "-readable", "-printf", r"%P\n"]
        return set(subprocess.run([*there, *found], capture_output=True, text=True, cwd="/").stdout.split("\n")) - {""}

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := condition():
                return found
            time.sleep(1)  # every question costs the hub, its proxy and a server some work
        pytest.fail(f"timed out waiting for {what}:\n{self.log.read_text()[-6000:]}")


@dataclass
class Server:
    """One JupyterLab behind the hub, with requests like those of its page."""

    session: requests.Session
    base: str

    def ask(self, method: str, path: str, **more: Any) -> requests.Response:
        cookies = {cookie.path: cookie.value for cookie in self.session.cookies if cookie.name == "_xsrf"}
        own = cookies.get(self.base[self.base.index("/", 8) :] + "/", "")
        reply = self.session.request(method, f"{self.base}/{path}", headers={"X-XSRFToken": own or ""}, **more)
        assert reply.ok, (reply.status_code, reply.url, reply.text[:2000])
        return reply

    def assignments(self, action: str) -> Any:
        """The reply to a button of nbgrader's Assignment List."""
        form = {"course_id": "mini-autograd", "assignment_id": LESSON}
        found = self.ask("POST", f"assignments/{action}", data=form).json()
        assert found["success"], found
        return found["value"]


@pytest.fixture(scope="module")
def proxy() -> None:
    """Install the proxy, at the versions of package-lock.json."""
    if not shutil.which("npm"):
        pytest.skip("there is no npm, which installs the hub's proxy")
    if not (HUB / "node_modules" / ".package-lock.json").exists():
        subprocess.run(["npm", "ci", "--silent"], cwd=HUB, check=True)


@pytest.fixture(scope="module")
def hub(proxy: None, postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:  # noqa: F811
    with started(tmp_path_factory.mktemp("hub"), GRADEBOOK=postgresql) as running:
        yield running


@contextlib.contextmanager
def started(folder: Path, name: str = "127.0.0.1", before: Hub | None = None, **settings: str) -> Iterator[Hub]:
    """A hub with the people of this test, on a machine of its own, with the course of one that ran before."""
    if os.geteuid() != 0 or not shutil.which("useradd"):
        pytest.skip("the accounts of the test need root, on a Linux with useradd")
    machine, log = folder / "machine", folder / "log"
    (folder / "class.csv").write_text("name,role\n" + "".join(f"{name},{role}\n" for name, role in PEOPLE.items()))
    port = ports_in_a_row(4)
    url = f"http://{name}:{port}"
    copied = f"cp -a {before.folder}/course /srv/class && " if before else ""
    script = (
        f"mkdir /srv/class && cp {folder}/class.csv /srv/class && echo tokens > /srv/class/{EARLIER} && "
        f"echo password > {ROOT}/deploy/.env && {copied}umask 077 && exec {HUB}/start.sh"
    )
    isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = [*isolated, sys.executable, str(Path(__file__).with_name("own_machine.py")), str(machine), "sh", "-c"]
    settings |= {"HUB_PORT": str(port), "HUB_ADDRESS": "127.0.0.1"}
    settings |= {"SUBDOMAIN_HOST": url} if name != "127.0.0.1" else {}
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, script], stdout=file, stderr=subprocess.STDOUT, env=os.environ | settings, start_new_session=True
        )
    hub = Hub(url, name != "127.0.0.1", machine / "srv" / "class", log, process.pid)
    try:
        hub.wait(lambda: process.poll() is not None or answers(url), "the hub")
        assert process.poll() is None, log.read_text()
        hub.process = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
        yield hub
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with the first process of its machine, all others end
        process.wait()


def ports_in_a_row(count: int) -> int:
    """The first of `count` consecutive free ports."""
    for first in range(20_000 + os.getpid() % 10_000, 60_000, count):
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no free ports")


def answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/hub/health", timeout=5).ok
    except requests.RequestException:
        return False


def test_a_lesson_goes_out_comes_back_and_is_answered(hub: Hub, postgresql: str) -> None:  # noqa: F811
    prof = hub.course("prof")
    assert prof.session.get(f"{hub.url}/hub/").url.startswith(prof.base), "an instructor begins at the course"
    for action in ("assign", "release"):
        done = prof.ask("POST", f"formgrader/api/assignment/{LESSON}/{action}").json()
        assert done["success"], done
    page = prof.ask("GET", "formgrader")
    assert page.headers["Content-Security-Policy"] == "frame-ancestors 'self'", "JupyterLab shows it in a frame"

    alice, bob = hub.server("alice"), hub.server("bob")
    for student in (alice, bob):
        student.assignments("fetch")
    solved = nbformat.read(hub.folder / "course" / "source" / LESSON / f"{LESSON}.ipynb", as_version=4)
    path = f"api/contents/{LESSON}/{LESSON}.ipynb"
    notebook = alice.ask("GET", path).json()["content"]
    answers = {cell.metadata.nbgrader.grade_id: cell.source for cell in solved.cells if "nbgrader" in cell.metadata}
    for cell in notebook["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        if about.get("solution"):
            cell["source"] = answers[about["grade_id"]]
    alice.ask("PUT", path, json={"type": "notebook", "content": notebook})
    for student in (alice, bob):
        student.assignments("submit")

    def feedback(student: Server) -> bool:
        student.assignments("fetch_feedback")
        files = student.ask("GET", f"api/contents/{LESSON}").json()["content"]
        return any(file["name"] == "feedback" for file in files)

    for student in (alice, bob):
        hub.wait(lambda student=student: feedback(student), "the feedback")
    tutor = hub.course("tutor")
    marks = {entry["student"]: entry for entry in tutor.ask("GET", f"formgrader/api/submissions/{LESSON}").json()}
    assert marks["alice"]["score"] == marks["alice"]["max_score"] > marks["bob"]["score"]
    with create_engine(postgresql).connect() as gradebook:
        assert gradebook.execute(text("select count(*) from submitted_assignment")).scalar() == 2
    assert "says that it was handed in" not in hub.log.read_text(), "the time of an honest attempt is doubted"


def test_students_see_neither_the_course_nor_each_other(hub: Hub) -> None:
    alice = hub.login("alice")
    assert alice.get(f"{hub.url}/services/course/lab").status_code == 403
    assert alice.get(f"{hub.url}/user/bob/lab").status_code == 403
    stranger = requests.Session()
    assert "/hub/login" in stranger.get(f"{hub.url}/services/course/lab").url
    form = {"username": "alice", "password": "guess", "_xsrf": ""}
    assert stranger.post(f"{hub.url}/hub/login", data=form).status_code == 403
    inbound = hub.folder / "exchange" / "mini-autograd" / "inbound"
    assert inbound.stat().st_mode & 0o004 == 0, "a student could list what others handed in"


def test_students_can_read_what_their_servers_run_and_nothing_else(hub: Hub) -> None:
    opened = {str(HUB.relative_to(ROOT) / part) for part in ("everybody", "student")}
    opened |= {"autograder", "mini_autograd", "course/gallery.py", "course/data", "course/pictures"}
    for student in ("alice", "prof"):
        checkout = hub.readable_by(student, ROOT)
        assert {path for path in checkout if not any(Path(path).is_relative_to(part) for part in opened)} == set()
        assert {"autograder/student.py", "deploy/jupyterhub/student/labconfig/page_config.json"} <= checkout
        assert {path for path in hub.readable_by(student, Path("/srv/class")) if "exchange/" not in path} == {
            "class.csv"
        }
    assert "course/lessons/00_start_here/00_start_here.py" in hub.readable_by("grader", ROOT)
    assert {path.name for path in (hub.folder / "hub").glob("*.sqlite*")} >= {"jupyterhub.sqlite", EARLIER}


@pytest.fixture
def localhosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find names that end in .localhost on this machine, as browsers do."""
    ask = socket.getaddrinfo

    def find(name: str, *more: Any, **options: Any) -> Any:
        return ask("127.0.0.1" if name.endswith(".localhost") else name, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", find)


def test_with_subdomains_each_server_has_an_origin_of_its_own(
    hub: Hub, localhosts: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with started(tmp_path_factory.mktemp("subdomains"), "hub.localhost", hub) as other:
        prof, alice = other.course("prof"), other.server("alice")
        assert prof.session.get(f"{other.url}/hub/").url.startswith(prof.base), "an instructor begins at the course"
        assert prof.ask("GET", "formgrader").ok
        assert alice.ask("GET", "api/contents").ok
        assert alice.session.get(f"{prof.base}/lab").status_code == 403
        for server, path in ((alice, "/user/alice"), (prof, "/services/course")):
            origins = [other.origin("alice"), other.origin("course--service"), other.url]
            replies = [(origin, server.session.get(f"{origin}{path}/api/status")) for origin in origins]
            answering = [origin + path for origin, reply in replies if reply.ok and reply.url.startswith(origin)]
            assert answering == [server.base]
        assert ONE_ORIGIN in hub.log.read_text()
        assert ONE_ORIGIN not in other.log.read_text()


@pytest.mark.parametrize("address", ["hub.example.edu", "https://hub.example.edu/hub", "ftp://hub"])
def test_an_address_that_has_no_subdomains_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    (tmp_path / "class.csv").write_text("name,role\nann,student\n")
    monkeypatch.setenv("CLASS_FOLDER", str(tmp_path))
    monkeypatch.setenv("SUBDOMAIN_HOST", address)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(SystemExit, match=f"SUBDOMAIN_HOST is {address!r}. It has to be like https"):
        PyFileConfigLoader("jupyterhub_config.py", HUB).load_config()
