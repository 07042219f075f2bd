"""The files around the code agree with each other: dependency floors, the lock file, the direction of imports."""

from __future__ import annotations

import ast
import contextlib
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# Where a package has another name on conda-forge.
CONDA_NAMES = {"torch": "pytorch"}


def split_requirement(requirement: str) -> tuple[str, str]:
    """Name and version range, without the marker that says on which platform it is needed."""
    match = re.match(r"([A-Za-z0-9_.-]+)(\[[^\]]*\])?([^;]*)", requirement)
    assert match, requirement
    return match[1].lower(), match[3].strip()


def conda_requirements() -> dict[str, str]:
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    plain = [entry for entry in dependencies if isinstance(entry, str)]
    through_pip = next(entry["pip"] for entry in dependencies if isinstance(entry, dict))
    return dict(split_requirement(entry) for entry in [*plain, *through_pip] if not entry.startswith("--"))


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


# A package and what nothing in it may import.
FORBIDDEN = {
    "mini_autograd": ("autograder", "course", "torch"),
    "autograder": ("course",),
    "autograder/sandbox": ("autograder.judge", "autograder.grading", "autograder.checks", "autograder.bugs"),
    "autograder/checks": ("autograder.judge", "autograder.sandbox", "autograder.grading"),
    "autograder/judge": ("autograder.grading", "autograder.nbgrader_plugins", "autograder.lessons"),
}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_point_one_way(package: str) -> None:
    for path in sorted((ROOT / package).rglob("*.py")):
        for name in imported_modules(path):
            for forbidden in FORBIDDEN[package]:
                assert not f"{name}.".startswith(f"{forbidden}."), f"{path.name} imports {name}"


def test_no_import_circles() -> None:
    """At module level: an import inside a function cannot bite."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for package in ("mini_autograd", "autograder")
        for path in (ROOT / package).rglob("*.py")
    }
    edges = {name: top_level_imports(path, name, set(files)) & set(files) - {name} for name, path in files.items()}
    while removable := [name for name, targets in edges.items() if not targets & set(edges)]:
        for name in removable:
            del edges[name]
    assert not edges, f"modules that import each other: {sorted(edges)}"


def top_level_imports(path: Path, module: str, known: set[str]) -> set[str]:
    found: set[str] = set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            full_names = {alias.name: f"{origin}.{alias.name}" for alias in node.names}
            found |= {full if full in known else origin for full in full_names.values()}
    return found
