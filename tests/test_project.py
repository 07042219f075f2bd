"""The files around the code agree with each other: dependency floors, the lock file, the direction of imports."""

from __future__ import annotations

import ast
import contextlib
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Where a package has another name on conda-forge.
THIS_PROJECT = "-e ."
CONDA_NAMES = {"torch": "pytorch"}


def split_requirement(requirement: str) -> tuple[str, str]:
    """Name and version range, without the marker that says on which platform it is needed."""
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


def test_pip_understands_environment_yml() -> None:
    """conda hands these lines to pip as a requirements file, which may hold few options."""
    found = [Requirement(line) for line in pip_lines() if line != THIS_PROJECT]
    assert THIS_PROJECT in pip_lines()
    needed = {wanted.name: wanted for wanted in map(Requirement, PROJECT["dependencies"])}
    for requirement in found:
        assert requirement.marker == needed[requirement.name].marker


def test_environment_yml_has_the_floors_of_pyproject() -> None:
    wanted = {"python": PROJECT["requires-python"], "pip": ""}
    for requirement in PROJECT["dependencies"]:
        name, versions = split_requirement(requirement)
        wanted[CONDA_NAMES.get(name, name)] = versions
    assert conda_requirements() == wanted


def test_lock_file_pins_every_dependency_at_or_above_its_floor() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    locked = dict(line.lower().split("==") for line in lines if "==" in line)
    for requirement in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]:
        name, versions = split_requirement(requirement)
        assert name in locked, f"{name} is not in requirements.lock: run make lock"
        floor = re.match(r">=([\d.]+)", versions)
        assert floor, requirement
        assert as_tuple(locked[name]) >= as_tuple(floor[1]), f"{name}: locked {locked[name]}, floor {floor[1]}"


def test_locked_packages_accept_every_python_that_the_project_does() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    promised = SpecifierSet(PROJECT["requires-python"])
    assert "3.11.0" in promised
    for name in (line.split("==")[0] for line in lines if "==" in line):
        with contextlib.suppress(PackageNotFoundError):  # taken out of the environment, or for another platform
            accepted = SpecifierSet(metadata(name).get("Requires-Python", ""))  # type: ignore[attr-defined]
            refused = [python for python in ("3.11.0", "3.12.0", "3.13.0", "3.14.0") if python not in accepted]
            assert not refused, f"{name} refuses Python {refused}: give bootstrap.py a limit, and run make lock"


def as_tuple(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def imported_modules(path: Path) -> set[str]:
    """Every absolute module name that a file imports, at any level."""
    found: set[str] = set()
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            found |= {origin} | {f"{origin}.{alias.name}" for alias in node.names}
    return found


PICTURES = ("mini_autograd.drawing", "mini_autograd.widgets")
NOTEBOOKS = ("ipywidgets", "anywidget", "IPython")

# Files, and what none of them may import, at any level: the layers of docs/architecture.md.
FORBIDDEN = {
    "mini_autograd/**/*.py": ("autograder", "course", "torch"),
    "mini_autograd/*.py": ("mini_autograd.nn", "mini_autograd.optim", *PICTURES, *NOTEBOOKS),
    "mini_autograd/operations/*.py": (
        *(
            "mini_autograd.tensor",
            "mini_autograd.tensors.creation",
            "mini_autograd.tensors.gradients",
            "mini_autograd.graph.backward",
        ),
        *("mini_autograd.nn", "mini_autograd.optim", *PICTURES),
    ),
    "mini_autograd/nn/*.py": ("mini_autograd.optim", "mini_autograd.utils.data", *PICTURES),
    "mini_autograd/optim/*.py": ("mini_autograd.nn", "mini_autograd.utils.data", *PICTURES),
    "mini_autograd/drawing/*.py": ("mini_autograd.tensor", "mini_autograd.nn", "mini_autograd.widgets", *NOTEBOOKS),
    "autograder/**/*.py": ("course",),
    "autograder/sandbox/**/*.py": (
        *("autograder.judge", "autograder.grading", "autograder.checks", "autograder.bugs", "autograder.lessons"),
        *("mini_autograd", "torch"),
    ),
    "autograder/notebooks/**/*.py": (
        *("autograder.checks", "autograder.bugs", "autograder.judge", "autograder.lessons", "autograder.sandbox"),
        *("autograder.nbgrader_plugins", "autograder.grading", "mini_autograd"),
    ),
    "autograder/checks/**/*.py": ("autograder.judge", "autograder.sandbox", "autograder.grading"),
    "autograder/bugs/**/*.py": ("autograder.judge", "autograder.sandbox", "autograder.grading", "autograder.lessons"),
    "autograder/judge/**/*.py": ("autograder.grading", "autograder.nbgrader_plugins", "autograder.lessons"),
}


@pytest.mark.parametrize("files", FORBIDDEN)
def test_imports_point_one_way(files: str) -> None:
    paths = sorted(ROOT.glob(files))
    assert paths
    for path in paths:
        for name in imported_modules(path):
            for forbidden in FORBIDDEN[files]:
                assert not f"{name}.".startswith(f"{forbidden}."), f"{path.name} imports {name}"


def test_no_import_circles() -> None:
    """At module level: an import inside a function cannot bite."""
    assert not in_circles(modules_below(ROOT, "mini_autograd", "autograder", "benchmarks"))


CIRCLES = {
    "at the top": "from pack import first\n",
    "of a name": "from pack.first import name\n",
    "relative": "from . import first\n",
    "where it may fail": "try:\n    import pack.first\nexcept ImportError:\n    pass\n",
    "under a condition": "import sys\nif sys.platform:\n    from pack import first\n",
    "in a class": "class Here:\n    from pack.first import name\n",
}
NO_CIRCLES = {
    "in a function": "def later():\n    from pack import first\n",
    "for types only": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack import first\n",
}


@pytest.mark.parametrize("text", [*CIRCLES.values(), *NO_CIRCLES.values()], ids=[*CIRCLES, *NO_CIRCLES])
def test_a_circle_would_be_found(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    folder.mkdir()
    files = {"__init__": "", "first": "import pack.second\nname = 1\n", "second": text, "third": "import pack.first\n"}
    for name, lines in files.items():
        (folder / f"{name}.py").write_text(lines)
    expected = {"pack.first", "pack.second"} if text in CIRCLES.values() else set()
    assert in_circles(modules_below(tmp_path, "pack")) == expected


NAMES_OF_PYTORCH = {
    # the class that users derive from, and its base
    "mini_autograd": {"Function", "RemovableHandle"}
    # a module, and the operation after which a node of the graph is called
    | {"BatchNorm", "Dropout", "Embedding", "HuberLoss", "L1Loss", "LayerNorm", "Linear", "LogSigmoid", "LogSoftmax"}
    | {"MaxPool", "Sigmoid", "SmoothL1Loss", "Softmax", "Softplus", "Tanh"},
    "autograder": set(),
}
"""Names that PyTorch gives to two classes."""


@pytest.mark.parametrize("package", NAMES_OF_PYTORCH)
def test_no_two_public_classes_of_a_package_share_a_name(package: str) -> None:
    found: dict[str, list[str]] = {}
    for module, path in modules_below(ROOT, package).items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in found.items() if len(modules) > 1}.keys() == NAMES_OF_PYTORCH[package]


def modules_below(root: Path, *packages: str) -> dict[str, Path]:
    """The modules of some packages, by name."""
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for package in packages
        for path in (root / package).rglob("*.py")
    }


def in_circles(files: dict[str, Path]) -> set[str]:
    """The modules that import each other, directly or by way of others."""
    imports = {name: top_level_imports(path, name, set(files)) & set(files) - {name} for name, path in files.items()}
    while free := {name for name, found in imports.items() if not found or name not in set().union(*imports.values())}:
        imports = {name: found - free for name, found in imports.items() if name not in free}
    return set(imports)


def top_level_imports(path: Path, module: str, known: set[str]) -> set[str]:
    """What a module imports of those known while it is itself being imported."""
    found: set[str] = set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in run_on_import(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            full_names = {alias.name: f"{origin}.{alias.name}" for alias in node.names}
            found |= {full if full in known else origin for full in full_names.values()}
    return found


def run_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that run when a module is imported: all but functions, and what only type checkers read."""
    for part in ast.iter_child_nodes(node):
        types_only = isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING"
        if not types_only and not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield part
            yield from run_on_import(part)


LISTED = re.compile(r"Imports ((?:\w+, )*\w+(?: and (?:many of )?(?:the )?\w+)?)")
"""The sentence with which the docstring of a module begins its list: "Imports arrays, function and the operations"."""


def modules_said(docstring: str, known: set[str]) -> set[str]:
    """The modules that a docstring says are imported, by the last part of their names."""
    said = LISTED.search(docstring)
    return set(re.findall(r"\w+", said[1])) & known if said else set()


def short_name(module: str, summed_up: bool) -> str:
    """The last part of a name; `operations` for every family of operations, if a docstring sums them up so."""
    return "operations" if summed_up and ".operations" in module else module.rpartition(".")[2]


def test_the_engine_s_modules_import_what_their_docstrings_say() -> None:
    files = modules_below(ROOT, "mini_autograd")
    checked, known = 0, {name.rpartition(".")[2] for name in files} | {"operations"}
    for module, path in files.items():
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        if said := modules_said(docstring, known):
            imported = top_level_imports(path, module, set(files)) & set(files) - {module}
            expected = {short_name(name, "operations" in said) for name in imported}
            assert said == expected, f"{module} says {sorted(said - expected)} too, and not {sorted(expected - said)}"
            checked += 1
    assert checked > 60


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")])
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")
FOLDERS = "mini_autograd|autograder|course|tests|benchmarks|docs|\\.github|\\.ci"
NAMED_PATH = re.compile(rf"(?<![\w./-])(?:{FOLDERS})/[\w./-]*\w")
NAMED_MODULE = re.compile(r"python -m ((?:benchmarks|tests)[\w.]+)")
PLACEHOLDER = re.compile(r"\b(?:NN|NAME|FAMILY)(?=_|\b)|(?<=_)(?:NN|NAME|FAMILY)\b")
MADE_BY_COMMANDS = tuple(line for line in (ROOT / ".gitignore").read_text().splitlines() if line.startswith("course/"))


def not_found(document: Path, text: str) -> list[str]:
    """What a page names and nobody can find: relative links, paths of files and folders, modules to be run."""
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
