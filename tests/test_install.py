"""Who installs what: the sets of packages, how an environment grows from one to the next, which build of PyTorch it
gets, and that what a command imports is in the set that it installs.
"""

from __future__ import annotations

import ast
import http.server
import os
import re
import socket
import sys
import threading
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

import pytest

from autograder import cli
from benchmarks.install import DEVELOPERS_TOOLS
from tests.test_platforms import bootstrap
from tests.test_project import PROJECT, asked_for, locked, split_requirement

ROOT = Path(__file__).resolve().parents[1]


def test_no_developer_s_tool_is_installed_for_students_or_instructors() -> None:
    assert DEVELOPERS_TOOLS & locked("grading").keys() == set()
    assert locked("dev").keys() >= DEVELOPERS_TOOLS, "a tool that is not used any more"


@pytest.mark.parametrize("file", ["course", "grading"])
def test_the_command_line_looks_for_what_an_extra_asks_for(file: str) -> None:
    base = {split_requirement(line)[0] for line in PROJECT["dependencies"]}
    asked = {split_requirement(line)[0] for line in asked_for(file) if ";" not in line}
    assert {*cli.EXTRAS[file]} == asked - base - {"torch"}


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_a_command_says_which_extra_it_needs(
    command: cli.Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda package: None)
    if not command.extra:
        assert command.missing == ""
        return
    assert cli.main([command.name]) == 1
    said = (
        f"`autograder {command.name}` needs {cli.EXTRAS[command.extra][0]}, which is not installed. Install it with: "
    )
    assert capsys.readouterr().err == said + f"pip install 'mini-autograd-course[{command.extra}]'\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """bootstrap.py of a project whose environment and lock files lie in tmp_path."""
    found = bootstrap("Linux")
    for name in found.SETS:
        (tmp_path / f"{name}.lock").write_text("torch==2.13.0\n")
    monkeypatch.setattr(found, "LOCKS", tmp_path)
    monkeypatch.setattr(found, "VENV", tmp_path / "venv")
    monkeypatch.setattr(found.platform, "system", lambda: "Linux")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    (tmp_path / "venv").mkdir()
    return found


GROWTH = [
    # what is there, whether a lock file has changed since, what is asked for, what is installed
    ("", False, "course", ["course"]),
    ("course", False, "course", []),
    ("course", False, "grading", ["grading"]),
    ("course", True, "course", ["course"]),
    ("grading", False, "course", []),
    ("dev", False, "course", []),
    ("dev", True, "course", ["dev"]),
    ("Python 3.11.7", False, "course", ["course"]),  # as earlier versions of bootstrap.py left it
]


@pytest.mark.parametrize(("there", "changed", "wanted", "installed"), GROWTH)
def test_an_environment_grows_and_never_shrinks(
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    there: str,
    changed: bool,
    wanted: str,
    installed: list[str],
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(module, "create_environment", lambda directory, packages: calls.append(packages))
    if there:
        (module.VENV / "ready").write_text(there)
    newest = max(
        path.stat().st_mtime for path in (ROOT / "pyproject.toml", ROOT / "bootstrap.py", *_lock_files(module))
    )
    for path in (*_lock_files(module), *module.VENV.iterdir()):
        os.utime(path, (newest + 1, newest + 1))
    if changed:
        os.utime(module.lock_file("hub"), (newest + 2, newest + 2))
    module.grow(wanted)
    assert calls == installed


def _lock_files(module: ModuleType) -> list[Path]:
    return [module.lock_file(name) for name in module.SETS]


def test_each_command_installs_its_own_set(module: ModuleType) -> None:
    needed = {name: target.packages for name, target in module.COMMANDS.items()}
    assert (needed["lab"], needed["demos"], needed["class"], needed["test"]) == ("course", "course", "grading", "dev")
    for command in cli.COMMANDS:
        if command.name in needed:
            assert needed[command.name] == command.extra
    with pytest.raises(SystemExit, match=r"no set 'everything'\. The sets are course, grading, hub, dev\."):
        module.prepare(["everything"])


BUILDS = [
    # system, a GPU, what pip was told, whether the index answers, PyTorch that is there; the options, what is said
    ("Linux", False, "", True, "", True, ""),
    ("Linux", False, "", False, "", False, "does not answer, so pip may take PyTorch's CUDA build"),
    ("Linux", True, "", True, "", False, ""),
    ("Linux", False, "an index", True, "", False, ""),
    ("Linux", False, "", True, "2.13.0+cpu", False, ""),
    ("Linux", False, "", True, "2.12.1+cpu", True, ""),
    ("Darwin", False, "", True, "", False, ""),
]


@pytest.mark.parametrize(("system", "gpu", "told", "answers", "there", "named", "said"), BUILDS)
def test_pytorch_s_small_build_is_taken_where_there_is_no_gpu(
    module: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    system: str,
    gpu: bool,
    told: str,
    answers: bool,
    there: str,
    named: bool,
    said: str,
) -> None:
    monkeypatch.setattr(module.platform, "system", lambda: system)
    monkeypatch.setattr(module, "has_nvidia", lambda: gpu)
    monkeypatch.setattr(module, "answers", lambda address: answers)
    if told:
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", told)
    if there:
        (module.VENV / f"lib/python3.11/site-packages/torch-{there}.dist-info").mkdir(parents=True)
    options = module.index_of_torch(module.VENV)
    assert options == (["--extra-index-url", module.CPU_INDEX] if named else [])
    printed = capsys.readouterr().out
    assert said in printed
    assert printed.count("\n") == bool(said)


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/torch/" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_an_index_that_is_silent_is_not_waited_for(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.HTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = f"http://127.0.0.1:{server.server_port}"
        assert module.answers(f"{page}/torch/")
        assert not module.answers(f"{page}/nothing/")
        server.shutdown()
    assert not module.answers(f"{page}/torch/"), "nobody listens there any more"
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert not module.answers(f"http://127.0.0.1:{silent.getsockname()[1]}/torch/")


# Imports that stand where an optional package may be missing, and say so.
OPTIONAL = {
    "cupy": "gpu",
    "distributed": "cluster",
    "autograd": "peers",
    "micrograd": "peers",
    "tinygrad": "peers",
}
OURS = {"autograder", "mini_autograd", "benchmarks", "tests", "course", "deploy", "docs"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PACKAGES = {
    module_name(path): path for package in ("autograder", "mini_autograd") for path in (ROOT / package).rglob("*.py")
}


@cache
def imports(path: Path, at_once: bool = False) -> frozenset[str]:
    """The full names that a file imports, also lazily by the name of one of our modules as text; `at_once`: only what
    runs when the file itself is imported. What only type checkers read is left out.
    """
    found: set[str] = set()
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.FunctionDef) and at_once:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = path.parents[node.level - 1].relative_to(ROOT).parts if node.level else ()
            module = ".".join([*above, *filter(None, [node.module])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and not at_once and node.value in PACKAGES:
            found.add(node.value)
        nodes += ast.iter_child_nodes(node)
    return frozenset(found)


def reached(starts: list[str], at_once: bool = False) -> dict[str, str]:
    """The packages that these modules of ours import, themselves and through others, and a module that does."""
    seen: set[str] = set()
    found: dict[str, str] = {}
    names = [*starts]
    while names:
        parts = names.pop().split(".")
        for name in (".".join(parts[:length]) for length in range(1, len(parts) + 1)):
            if name in PACKAGES and name not in seen:
                seen.add(name)
                for imported in imports(PACKAGES[name], at_once):
                    names.append(imported)
                    found[imported.split(".")[0]] = name
    return found


distributions = cache(packages_distributions)


def unserved(found: dict[str, str], served: set[str]) -> dict[str, str]:
    """The imported packages that belong to none of these distributions, and where they are imported."""
    foreign = {name: place for name, place in found.items() if name not in {*sys.stdlib_module_names, *OURS}}
    return {
        name: place
        for name, place in foreign.items()
        if name not in OPTIONAL and not {_plain(known) for known in distributions().get(name, [])} & served
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def packages_of(extra: str) -> set[str]:
    base = {_plain(split_requirement(line)[0]) for line in PROJECT["dependencies"]}
    return {_plain(name) for name in locked(extra)} if extra else base


def test_the_engine_and_the_checks_need_the_base_alone() -> None:
    assert unserved(reached(["mini_autograd", "autograder.student"], at_once=True), packages_of("")) == {}


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_what_a_command_imports_is_in_its_extra(command: cli.Command) -> None:
    """Of what the base's commands call, only what runs at once counts: the rest is for notebooks."""
    starts = [command.module, *imports(PACKAGES[command.module])]
    assert unserved(reached(starts, at_once=not command.extra), packages_of(command.extra)) == {}


def test_what_a_lesson_s_imports_lead_to_is_in_the_course() -> None:
    found = reached(["mini_autograd", "mini_autograd.widgets", "autograder.student"])
    assert unserved(found, packages_of("course")) == {}


FOLDERS = {"course": "course", "autograder": "grading", "mini_autograd": "grading", "deploy": "hub"}
FOLDERS |= {"benchmarks": "dev", "docs": "dev", "tests": "dev"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_a_folder_imports_is_in_its_set(folder: str) -> None:
    paths = [path for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts]
    beside = {path.stem for path in paths}
    found = {name.split(".")[0]: str(path) for path in paths for name in imports(path)}
    foreign = {name: place for name, place in found.items() if name not in beside}
    assert unserved(foreign, packages_of(FOLDERS[folder])) == {}


def test_an_import_that_no_set_serves_is_found() -> None:
    found = {"numpy": "a", "torch": "b", "os": "c", "mini_autograd": "d", "no_such_package": "e"}
    assert unserved(found, packages_of("")) == {"torch": "b", "no_such_package": "e"}
    assert unserved(found, packages_of("course")) == {"no_such_package": "e"}


WHO = {
    ".binder/requirements.txt": ["course"],
    ".devcontainer/devcontainer.json": ["dev"],
    ".github/workflows/ci.yml": ["grading"],
    "deploy/Dockerfile": ["hub"],
    "environment.yml": ["grading"],
}
SET_NAMED = re.compile(r"(?:-r \.\./requirements/|install\.sh |bootstrap\.py environment |-e \.\[)([\w-]+)")


@pytest.mark.parametrize("file", WHO)
def test_containers_and_ci_name_a_set(file: str) -> None:
    assert SET_NAMED.findall((ROOT / file).read_text(encoding="utf-8")) == WHO[file]
