"""What an installation takes: packages, megabytes and seconds, each in an environment that is made for it.

`python -m benchmarks.install` clones the last commit into a temporary folder and installs it from nothing: the base as
somebody gets it who installs a wheel, and each set as `bootstrap.py` makes it. Megabytes and packages are those that an
empty environment does not have. It needs a package index, room for the largest set, and minutes. It fails if the base
or a student's set is larger than promised, or if a student gets a developer's tool.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PROGRAMS = "Scripts" if sys.platform == "win32" else "bin"
MOST = {"base": 100, "course": 1200}  # megabytes
WHO = {
    "base": "`pip install` of the wheel",
    "course": "`make lab`",
    "grading": "`make class`",
    "hub": "`deploy/install.sh hub`",
    "dev": "`make test`",
}
DEVELOPERS_TOOLS = {
    *("axe-playwright-python", "furo", "hypothesis", "import-linter", "lxml", "mypy", "myst-parser", "pandas"),
    *("playwright", "pyphen", "pytest", "pytest-xdist", "ruff", "sphinx"),
}


@dataclass(frozen=True)
class Installed:
    """What was in one environment afterwards; the megabytes include compiled files of Python."""

    name: str
    packages: set[str]
    megabytes: float
    seconds: float

    @property
    def failures(self) -> list[str]:
        """What is wrong with it, in sentences."""
        found = []
        if self.megabytes > MOST.get(self.name, float("inf")):
            found.append(f"{self.name} takes {self.megabytes:.0f} MB, and at most {MOST[self.name]} were promised")
        if self.name in ("base", "course", "grading") and (tools := sorted(self.packages & DEVELOPERS_TOOLS)):
            found.append(f"{self.name} holds tools of developers: {', '.join(tools)}")
        return found


def measured(name: str) -> Installed:
    """Install a set from nothing into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(clone)], check=True)
        environment = clone / ".venv"
        python = str(environment / PROGRAMS / "python")
        subprocess.run([sys.executable, "-m", "venv", str(Path(folder) / "empty")], check=True)
        commands = [[sys.executable, "bootstrap.py", "environment", name]]
        if name == "base":
            commands = [[sys.executable, "-m", "venv", ".venv"], [python, "-m", "pip", "install", "--quiet", "."]]
        started = time.monotonic()
        for command in commands:
            subprocess.run(command, cwd=clone, check=True, stdout=sys.stderr)
        seconds = time.monotonic() - started
        packages = _packages(environment) - _packages(Path(folder) / "empty") - {"mini-autograd-course"}
        return Installed(name, packages, _megabytes(environment) - _megabytes(Path(folder) / "empty"), seconds)


def _packages(environment: Path) -> set[str]:
    listing = [str(environment / PROGRAMS / "python"), "-m", "pip", "list", "--format", "json"]
    listed = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
    return {package["name"].lower() for package in json.loads(listed)}


def _megabytes(environment: Path) -> float:
    files = [path for path in environment.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum(path.stat().st_size for path in files) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.install", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(WHO)}; without a name, all of them")
    sets = parser.parse_args().sets or [*WHO]
    if unknown := [name for name in sets if name not in WHO]:
        parser.error(f"there is no set {unknown[0]!r}")
    if shutil.which("git") is None:
        parser.error("git is not installed")
    print("| set | who | packages | MB | seconds |\n| --- | --- | ---: | ---: | ---: |", flush=True)
    failures: list[str] = []
    for name in sets:
        found = measured(name)
        row = f"| {name} | {WHO[name]} | {len(found.packages)} | {found.megabytes:,.0f} | {found.seconds:.0f} |"
        print(row, flush=True)
        failures += found.failures
    for failure in failures:
        print(f"MISSED: {failure}.")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
