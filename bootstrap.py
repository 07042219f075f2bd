"""The one entry to the project: `python bootstrap.py lab`, and the same for demos, site, class, quick, test, lint, lock
and environment.

Each makes the virtual environment and installs the set of packages that it needs, the first time and whenever the lock
files have changed. A larger set is added to what is there, and nothing is taken away. Works on Linux, macOS and
Windows; `make lab` and the like only call it. It runs before anything is installed, so it imports the standard library
alone. It is the only place that installs things.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent
OLDEST = (3, 11)
WINDOWS = platform.system() == "Windows"
VENV = ROOT / ".venv"
PROGRAMS_OF = "Scripts" if WINDOWS else "bin"  # where an environment has its programs
LOCKS = ROOT / "requirements"
# The extras of pyproject.toml that have a lock file, each with all that is before it, and the gigabytes they take.
SETS = {"course": 1.1, "grading": 1.3, "hub": 1.4, "dev": 1.8}
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PATIENCE = 4  # seconds in which that index must answer
EXPORT = ROOT / "mini_autograd" / "widgets" / "jupyter_nbconvert_config.json"

# Every processor already runs a test or a lesson; threads that libraries start beside them only make these wait.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
LESS_URGENT = 5  # niceness: runs while tests wait, and still gets a turn if other programs are busy
TEST_WORKERS = os.environ.get("TEST_WORKERS", "3")
LINT = [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"], ["lint-imports", "--no-logo"]]
# Tests of one file share a server or a sandbox, so they stay together. tests/conftest.py orders the files.
# A worker that replaced a dead one would wait forever for a second file.
UNIT = ["pytest", "-q", "-n", TEST_WORKERS, "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0"]
QUICK = ["-m", "not slow and not sandbox and not browser and not gpu"]

# Package name -> commands; if one of them exists, the package is installed.
PROGRAMS = {
    "bubblewrap": ("bwrap",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "npm": ("npm",),
    "postgresql": ("initdb", "pg_createcluster"),
}
PURPOSES = {
    "bubblewrap": "grading runs submissions in its sandbox",
    "chromium": "the browser tests drive it",
    "npm": "the tests of the hub install its proxy with it",
    "postgresql": "tests keep a gradebook in it",
}

# jsonschema imports the first if it is installed, for a format that no Jupyter schema uses. The import compiles
# grammars, which raises the processor time of every process that reads a notebook from 0.2 s to 1.8 s. Nothing else
# here needs the two packages.
UNUSED = ("rfc3987-syntax", "lark")
# Packages that only one system has or needs, with their markers in the lock file.
MARKERS = {"pyseccomp": "sys_platform == 'linux'"}
# Newer versions refuse Python 3.11 (soupsieve: 3.11.0 to 3.11.4), and Debian 12 has 3.11.2.
LIMITS = ("soupsieve<3", "sphinx<9.1")


def create_environment(directory: Path, packages: str) -> None:
    """Make `directory` a virtual environment with exactly the locked versions of a set, except UNUSED, and with this
    project in editable form. Packages that are there in these versions stay as they are.
    """
    started = time.monotonic()
    python = directory / PROGRAMS_OF / "python"
    if not works(python):
        print(f"Creating {directory.name} with Python {sys.version.split()[0]} ...", flush=True)
        shutil.rmtree(directory, ignore_errors=True)
        if free_gigabytes() < SETS[packages]:  # pip would find out after minutes
            sys.exit(f"The disk is full ({free_gigabytes():.1f} GB free). Make room, about 4 GB in all.")
        create_bare_environment(directory)
    size = f"{SETS[packages]} GB in all"
    print(f"Installing the set {packages!r} ({size}; the first time takes minutes) ...", flush=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    options = [*index_of_torch(directory), "--requirement", str(lock_file(packages))]
    run([*pip, "install", "-qq", "--no-compile", *options])
    run([*pip, "uninstall", "-qq", "--yes", *UNUSED])
    if packages != "course":  # a lesson uses few modules, and Python keeps what it compiles; a class has many processes
        compile_modules(python, directory / ("Lib" if WINDOWS else "lib"))
    # setuptools is locked too, so nothing is downloaded to build with
    run([*pip, "install", "-qq", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    settings = directory / "etc" / "jupyter"
    settings.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXPORT, settings)  # an editable install leaves data files out
    (directory / "ready").write_text(packages, encoding="utf-8")
    print(f"Environment ready after {time.monotonic() - started:.0f} s.", flush=True)


def lock_file(packages: str) -> Path:
    return LOCKS / f"{packages}.lock"


def locked_torch() -> str:
    """The locked version of PyTorch, "" if there is no lock file yet."""
    lines = lock_file("course").read_text(encoding="utf-8").splitlines() if lock_file("course").is_file() else []
    return next((line.partition("==")[2] for line in lines if line.startswith("torch==")), "")


def index_of_torch(directory: Path) -> list[str]:
    """The options with which pip finds PyTorch's CPU build for this environment. On Linux pip itself would choose the
    CUDA build, which is of no use without an NVIDIA GPU. Whoever has told pip where else to look has chosen.
    """
    if platform.system() != "Linux" or has_nvidia() or "PIP_EXTRA_INDEX_URL" in os.environ:
        return []
    if any(directory.glob(f"lib/python*/site-packages/torch-{locked_torch()}*.dist-info")):
        return []
    if answers(CPU_INDEX + "/torch/"):
        return ["--extra-index-url", CPU_INDEX]
    print(
        f"{CPU_INDEX} does not answer, so pip may take PyTorch's CUDA build, several gigabytes more. To avoid that, "
        "stop now (Ctrl-C), and set PIP_EXTRA_INDEX_URL to an index that has the CPU build.",
        flush=True,
    )
    return []


def has_nvidia() -> bool:
    """Whether there is an NVIDIA GPU that PyTorch could use."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def answers(address: str) -> bool:
    """Whether a page is there within PATIENCE. In a thread, because a name server that is silent has no time limit."""
    found: list[int] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as page:
                found.append(page.status)
        except (OSError, ValueError):
            return

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    return found == [200]


def works(python: Path) -> bool:
    """Whether the environment's interpreter still starts: the Python that it was made from may be gone."""
    if not python.with_suffix(".exe" if WINDOWS else "").exists():
        return False
    return subprocess.run([str(python), "-c", "import pip"], capture_output=True).returncode == 0


def compile_modules(python: Path, directory: Path) -> None:
    """Compile the modules below a folder on all processors: pip uses one, which takes as long as everything else. The
    packages' own tests, a fifth of everything, are left out.

    Some packages contain files that are not valid in this version of Python. Nothing imports them, so failures mean
    nothing.
    """
    subprocess.run([str(python), "-m", "compileall", "-qq", "-j", "0", "-x", r"[/\\]tests?[/\\]", str(directory)])


def create_bare_environment(directory: Path) -> None:
    completed = subprocess.run([sys.executable, "-m", "venv", str(directory)], capture_output=True, text=True)
    if completed.returncode != 0:
        sys.exit(
            f"{sys.executable} cannot create a virtual environment:\n{completed.stdout}{completed.stderr}\n"
            "On Debian and Ubuntu, install the missing part with: sudo apt-get install python3-venv"
        )


def write_locks() -> None:
    """Resolve the floors of pyproject.toml, for all sets together, and write the exact versions into the lock files.
    Nothing is installed. A file names only what its set adds to the set before it.
    """
    with tempfile.TemporaryDirectory() as scratch:
        create_bare_environment(Path(scratch) / "venv")
        # A range would admit builds of PyTorch with gigabytes of CUDA.
        torch = [f"torch=={locked_torch()}"] if locked_torch() else []
        index = index_of_torch(Path(scratch) / "venv")
        everything = resolved(Path(scratch), "dev", [*torch, *LIMITS, *index])
        versions = Path(scratch) / "versions.txt"
        versions.write_text("\n".join(everything), encoding="utf-8")
        smaller, before = "", set()
        LOCKS.mkdir(exist_ok=True)
        for packages in SETS:
            found = resolved(Path(scratch), packages, ["--constraint", str(versions), *index])
            lock_file(packages).write_text(
                "# Written by `python bootstrap.py lock`. bootstrap.py installs exactly these versions.\n"
                + (f"-r {smaller}.lock\n" if smaller else "")
                + "".join(f"{_marked(line.partition('+')[0])}\n" for line in found if line not in before),
                encoding="utf-8",
            )
            smaller, before = packages, {*found}
            print(f"{lock_file(packages).relative_to(ROOT)}: {len(found)} packages")


def resolved(scratch: Path, packages: str, options: list[str]) -> list[str]:
    """The packages that a set consists of, `name==version` each, with local labels such as +cpu."""
    report = scratch / "report.json"
    pip = [str(scratch / "venv" / PROGRAMS_OF / "python"), "-m", "pip", "--disable-pip-version-check"]
    dry = ["install", "-qq", "--dry-run", "--ignore-installed", "--report", str(report)]
    run([*pip, *dry, f"{ROOT}[{packages}]", *options])
    entries = [entry["metadata"] for entry in json.loads(report.read_text(encoding="utf-8"))["install"]]
    lines = [f"{entry['name']}=={entry['version']}" for entry in entries if entry["name"] != "mini-autograd-course"]
    return sorted(lines, key=str.lower)


def _marked(line: str) -> str:
    """A line of the lock file, with a marker if the package is for one system only."""
    marker = MARKERS.get(line.partition("==")[0])
    return f"{line}; {marker}" if marker else line


def install_system_packages(names: list[str]) -> None:
    """Install the missing packages if that needs no password; otherwise print the command. Never fails: code that needs
    a missing package says so clearly when it runs."""
    missing = [name for name in names if not any(shutil.which(program) for program in PROGRAMS[name])]
    if not missing:
        return
    prefix = privilege()
    if prefix is not None and shutil.which("apt-get"):
        print(f"Installing {', '.join(missing)} ...", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = ["apt-get", "install", "-y", "--no-install-recommends"]
        for command in (["apt-get", "update"], *([*install, name] for name in missing)):
            subprocess.run([*prefix, *command], capture_output=True, env=environment, stdin=subprocess.DEVNULL)
    for name in missing:
        if not any(shutil.which(program) for program in PROGRAMS[name]):
            print(f"{name} is not installed, and {PURPOSES[name]}. Install it with: {install_command(name)}")


def privilege() -> list[str] | None:
    """The words to put before a command to run it as root without a password prompt, or None."""
    if WINDOWS:
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    return None


def install_command(name: str) -> str:
    managers = {"apt-get": "sudo apt-get install", "dnf": "sudo dnf install", "pacman": "sudo pacman -S"}
    manager = next((managers[program] for program in managers if shutil.which(program)), None)
    if manager == managers["dnf"] and name == "postgresql":
        name = "postgresql-server"  # the other package is its client
    if manager:
        return f"{manager} {name}"
    return f"your system's package manager (the package is called {name})"


def run(command: list[str]) -> None:
    """Run a step of the installation. If the step fails, exit and say what to do."""
    if subprocess.run(command, cwd=ROOT).returncode == 0:
        return
    free = free_gigabytes()
    if free < 0.5:
        remedy = f"The disk is full ({free:.1f} GB free). Make room, about 4 GB in all"
    else:
        remedy = "The first run needs the internet, or a package index that PIP_INDEX_URL names. Fix that"
    sys.exit(
        f"Installation stopped at: {' '.join(command)}\n{remedy}, and run the same command again: "
        "it continues from this step."
    )


def free_gigabytes() -> float:
    return shutil.disk_usage(ROOT).free / 1e9


def grow(packages: str) -> None:
    """Let the environment have this set. A larger one that is there stays, and is brought up to date with it."""
    there = installed()
    order = [*SETS]
    wanted = max(packages, there or packages, key=order.index)
    if wanted != there or stale():
        create_environment(VENV, wanted)


def installed() -> str:
    """The set that the environment has, "" for none."""
    made = VENV / "ready"
    there = made.read_text(encoding="utf-8").strip() if made.is_file() else ""
    return there if there in SETS else ""


def stale() -> bool:
    """Whether a file that the environment is made from is newer than it."""
    sources = (*map(lock_file, SETS), ROOT / "pyproject.toml", Path(__file__))
    return any(source.stat().st_mtime > (VENV / "ready").stat().st_mtime for source in sources)


def environment() -> dict[str, str]:
    """The environment variables of the programs we run: the environment's programs come first on PATH, and bytecode is
    stored, because hundreds of processes use it.
    """
    path = os.pathsep.join([str(VENV / PROGRAMS_OF), os.environ.get("PATH", "")])
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"PATH": path}


def program(command: list[str]) -> list[str]:
    """The command with the full path of its program. Windows would look for it on the PATH of this process."""
    return [str(VENV / PROGRAMS_OF / command[0]), *command[1:]]


def start(command: list[str]) -> int:
    """Run a program of the environment until it ends. The program handles Ctrl-C; this process ignores it."""
    if not WINDOWS:
        os.chdir(ROOT)
        sys.stdout.flush()
        os.execve(program(command)[0], command, environment())
    process = subprocess.Popen(program(command), cwd=ROOT, env=environment())
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def steps(*lists: list[list[str]]) -> int:
    """Run these lists of commands in parallel, each list until one of its commands fails. Returns 1 if any failed.

    The last list holds the tests and has priority if processors are short: tests often wait for a browser or a time
    limit, and the other lists compute meanwhile.
    """
    with ThreadPoolExecutor(len(lists)) as threads:
        return int(not all(threads.map(_in_order, lists, [LESS_URGENT] * (len(lists) - 1) + [0])))


def _in_order(commands: list[list[str]], niceness: int) -> bool:
    variables = environment() | (ONE_THREAD if commands is not LINT else {})
    for command in commands:
        process = subprocess.Popen(program(command), cwd=ROOT, env=variables)
        if niceness and hasattr(os, "setpriority"):
            os.setpriority(os.PRIO_PROCESS, process.pid, niceness)
        if process.wait() != 0:
            print(f"Failed: {' '.join(command)}", flush=True)
            return False
    return True


def test(arguments: list[str]) -> int:
    """Everything that CI checks: style, types, tests, and the gates of the lessons, such as that solutions pass, and
    stubs and zeros earn nothing.
    """
    install_system_packages([*PROGRAMS])
    return steps(LINT, [["autograder", "build"], ["autograder", "audit"]], [[*UNIT, *arguments]])


def quick(arguments: list[str]) -> int:
    """What an edit is most likely to break, in two minutes: no sandbox, no browser, no slow test."""
    return steps(LINT, [["autograder", "audit", "--changed"]], [[*UNIT, *QUICK, *arguments]])


def lint(arguments: list[str]) -> int:
    """Style, types and the contracts of imports."""
    return steps(LINT)


def pretend_class(arguments: list[str]) -> int:
    """The instructor's whole loop on a pretend class."""
    install_system_packages(["bubblewrap"])
    return start(["autograder", "class", *arguments])


def lab(arguments: list[str]) -> int:
    """Open the lessons in JupyterLab, as a student sees them."""
    return start(["autograder", "lab", *arguments])


def demos(arguments: list[str]) -> int:
    """Open all demos on one full page, for an audience."""
    return start(["autograder", "demos", *arguments])


def site(arguments: list[str]) -> int:
    """Build the website into .build/site, or into a folder that is named."""
    return start(["python", "docs/site/build.py", *arguments])


def lock(arguments: list[str]) -> int:
    """Resolve the dependencies again from the minimum versions in pyproject.toml, to get newer versions."""
    write_locks()
    return 0


def prepare(arguments: list[str]) -> int:
    """Make the environment with a set (course, grading, hub or dev; by default dev), and nothing else."""
    (packages,) = arguments or ["dev"]
    if packages not in SETS:
        sys.exit(f"There is no set {packages!r}. The sets are {', '.join(SETS)}.")
    grow(packages)
    return 0


class Target(NamedTuple):
    """What a command does, and the set that it needs, "" if it sees to that itself."""

    function: Callable[[list[str]], int]
    packages: str


COMMANDS = {
    "lab": Target(lab, "course"),
    "demos": Target(demos, "course"),
    "class": Target(pretend_class, "grading"),
    "site": Target(site, "dev"),
    "test": Target(test, "dev"),
    "quick": Target(quick, "dev"),
    "lint": Target(lint, "dev"),
    "lock": Target(lock, ""),
    "environment": Target(prepare, ""),
}


def main() -> int:
    if sys.version_info < OLDEST:
        here = ".".join(map(str, sys.version_info[:3]))
        sys.exit(
            f"This needs Python {OLDEST[0]}.{OLDEST[1]} or newer, and {sys.executable} is {here}. Install a newer one."
        )
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, target in COMMANDS.items():
        said = (target.function.__doc__ or "").split("\n\n")[0].strip()
        actions.add_parser(name, help=said, description=said, add_help=False)
    arguments, rest = parser.parse_known_args()
    target = COMMANDS[arguments.command]
    if target.packages:
        grow(target.packages)
    return target.function(rest)


if __name__ == "__main__":
    sys.exit(main())
