"""The files around the code agree with each other: dependency floors, the lock file, the pages."""

from __future__ import annotations

import ast
import contextlib
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from benchmarks.house import picture

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Where a package has another name on conda-forge.
THIS_PROJECT = "-e .[grading]"
CONDA_NAMES = {"torch": "pytorch"}


def split_requirement(requirement: str) -> tuple[str, str]:
    """The name and the version range, without the marker for the platforms that need it."""
    match = re.match(r"([A-Za-z0-9_.-]+)(\[[^\]]*\])?([^;]*)", requirement)
    assert match, requirement
    return match[1].lower(), match[3].strip()


def conda_requirements() -> dict[str, str]:
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    plain = [entry for entry in dependencies if isinstance(entry, str)]
    return dict(split_requirement(entry) for entry in [*plain, *pip_lines()] if entry != THIS_PROJECT)


def pip_lines() -> list[str]:
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    return next(entry["pip"] for entry in dependencies if isinstance(entry, dict))


def asked_for(extra: str) -> list[str]:
    """The requirements that an extra comes to: its own, those of the extra that it holds, and the project's."""
    requirements = PROJECT["optional-dependencies"][extra]
    held = [Requirement(line) for line in requirements if line.startswith(PROJECT["name"])]
    below = [line for requirement in held for inner in requirement.extras for line in asked_for(inner)]
    own = [line for line in requirements if not line.startswith(PROJECT["name"])]
    return [*own, *(below or PROJECT["dependencies"])]


def locked(extra: str) -> dict[str, str]:
    """The versions in an extra's lock file and in those that it includes, by name in lowercase."""
    versions: dict[str, str] = {}
    for line in (ROOT / "requirements" / f"{extra}.lock").read_text().splitlines():
        if line.startswith("-r "):
            versions |= locked(line.removeprefix("-r ").removesuffix(".lock"))
        elif "==" in line:
            name, _, version = line.partition(";")[0].strip().lower().partition("==")
            assert name not in versions, f"{extra}.lock repeats {name}"
            versions[name] = version
    return versions


def test_pip_understands_environment_yml() -> None:
    """conda passes these lines to pip as a requirements file, which allows only a few options."""
    found = [Requirement(line) for line in pip_lines() if line != THIS_PROJECT]
    assert THIS_PROJECT in pip_lines()
    needed = {wanted.name: wanted for wanted in map(Requirement, asked_for("grading"))}
    for requirement in found:
        assert requirement.marker == needed[requirement.name].marker


def test_environment_yml_has_the_floors_of_pyproject() -> None:
    wanted = {"python": PROJECT["requires-python"], "pip": ""}
    for requirement in asked_for("grading"):
        name, versions = split_requirement(requirement)
        wanted[CONDA_NAMES.get(name, name)] = versions
    assert conda_requirements() == wanted


@pytest.mark.parametrize("extra", ["course", "grading", "hub", "dev"])
def test_lock_files_pin_every_dependency_at_or_above_its_floor(extra: str) -> None:
    versions = locked(extra)
    for requirement in asked_for(extra):
        name, range_of_versions = split_requirement(requirement)
        assert name in versions, f"{name} is not in requirements/{extra}.lock: run make lock"
        floor = re.match(r">=([\d.]+)", range_of_versions)
        assert floor, requirement
        assert as_tuple(versions[name]) >= as_tuple(floor[1]), f"{name}: locked {versions[name]}, floor {floor[1]}"


def test_each_set_holds_the_one_before_it() -> None:
    smaller: dict[str, str] = {}
    for extra in ("course", "grading", "hub", "dev"):
        assert smaller.items() < locked(extra).items()
        smaller = locked(extra)


def test_locked_packages_accept_every_python_that_the_project_does() -> None:
    promised = SpecifierSet(PROJECT["requires-python"])
    assert "3.11.0" in promised
    for name in locked("dev"):
        with contextlib.suppress(PackageNotFoundError):  # removed from the environment, or for another platform
            accepted = SpecifierSet(metadata(name).get("Requires-Python", ""))  # type: ignore[attr-defined]
            refused = [python for python in ("3.11.0", "3.12.0", "3.13.0", "3.14.0") if python not in accepted]
            assert not refused, f"{name} refuses Python {refused}: give bootstrap.py a limit, and run make lock"


def as_tuple(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


NAMES_OF_PYTORCH = {
    # the class that users derive from, and its base
    "mini_autograd": {"Function"}
    # a module, and the operation after which a node of the graph is named
    | {"BatchNorm", "Dropout", "Embedding", "L1Loss", "LayerNorm", "Linear", "LogSoftmax"}
    | {"MaxPool", "Sigmoid", "SmoothL1Loss", "Softmax", "Softplus", "Tanh"},
    "autograder": set(),
}
"""Names that PyTorch gives to two classes."""


@pytest.mark.parametrize("package", NAMES_OF_PYTORCH)
def test_no_two_public_classes_of_a_package_share_a_name(package: str) -> None:
    found: dict[str, list[Path]] = {}
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path)
    shared = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert shared.keys() <= NAMES_OF_PYTORCH[package], shared


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")])
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")
FOLDERS = "mini_autograd|autograder|course|tests|benchmarks|docs|\\.github|\\.ci"
NAMED_PATH = re.compile(rf"(?<![\w./-])(?:{FOLDERS})/[\w./-]*\w")
NAMED_MODULE = re.compile(r"python -m ((?:benchmarks|tests)[\w.]+)")
PLACEHOLDER = re.compile(r"\b(?:NN|NAME|FAMILY)(?=_|\b)|(?<=_)(?:NN|NAME|FAMILY)\b")
MADE_BY_COMMANDS = tuple(line for line in (ROOT / ".gitignore").read_text().splitlines() if line.startswith("course/"))


def not_found(document: Path, text: str) -> list[str]:
    """What a page names that does not exist: relative links, paths of files and folders, modules to run."""
    links = [name for name in LINK.findall(text) if not (document.parent / name).exists()]
    named = [path for path in NAMED_PATH.findall(text) if not f"{path}/".startswith(MADE_BY_COMMANDS)]
    modules = [name.replace(".", "/") for name in NAMED_MODULE.findall(text)]
    paths = [path for path in named if not list(ROOT.glob(PLACEHOLDER.sub("*", path)))]
    return [*links, *paths, *(name for name in modules if not list(ROOT.glob(f"{name}*")))]


@pytest.mark.parametrize("document", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_name_what_is_there(document: Path) -> None:
    assert not_found(document, document.read_text()) == []


NAMED = {
    "[here](docs/security.md#threat-model), [there](https://example.org/a.md)": [],
    "[here](docs/nowhere.md)": ["docs/nowhere.md", "docs/nowhere.md"],
    "![](course/pictures/none.png)": ["course/pictures/none.png", "course/pictures/none.png"],
    "in `autograder/student.py`, `tests/browser`, and course/submitted/STUDENT/02/02.ipynb": [],
    "a family, `autograder/bugs/families/FAMILY.py`, or tests/course/test_lesson_NN.py": [],
    "in `autograder/nobody.py`; course/lessons/NN_nothing_of_this_name.py": [
        *("autograder/nobody.py", "course/lessons/NN_nothing_of_this_name.py"),
    ],
    "python -m benchmarks.engine, python -m benchmarks.nothing": ["benchmarks/nothing"],
}


@pytest.mark.parametrize("text", NAMED)
def test_what_is_not_there_would_be_found(text: str) -> None:
    assert not_found(ROOT / "README.md", text) == NAMED[text]


def test_the_architecture_page_shows_the_rooms_as_they_are() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert picture() in page, "run `python -m benchmarks.house --picture` and paste its output into the page"


def test_the_figures_in_short_are_those_of_the_table_of_the_bug_bank() -> None:
    page = (ROOT / "docs/benchmarks.md").read_text()
    found = re.search(r"^\| family \| bugs \| engines \|.*\n.*\n\| all \|(.*)\|$", page, re.MULTILINE)
    assert found, "the table of the bug bank is not in docs/benchmarks.md"
    _, engines, detected, named_first, *_ = (cell.strip() for cell in found[1].split("|"))
    assert f"| bugs planted in other people's engines: noticed | {detected} of {engines} |" in page
    assert f"| the same: named first, by the right name | {named_first} |" in page


@pytest.mark.parametrize(("row", "step"), [("W4 Adam", "an MLP with Adam"), ("W5", "a small Transformer")])
def test_the_figures_of_training_are_those_of_the_engine_s_table(row: str, step: str) -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    (line,) = re.findall(rf"^\| {row} \| a step of .*$", page, re.MULTILINE)
    cells = [cell.strip() for cell in line.split("|")]
    ours, two_threads = cells[5], cells[10]
    assert re.search(rf"{step}, .* \| {ours} \| with two threads {two_threads} \|", page)


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) < 1200
