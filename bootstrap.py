"""Sets up what the make targets need: the virtual environment, its locked packages, and system packages.

Runs before anything is installed, so it imports the standard library alone. It is the only place that installs things.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LOCK = ROOT / "requirements.lock"
EXPORT = ROOT / "mini_autograd" / "widgets" / "jupyter_nbconvert_config.json"

# Package name to the commands that show that it is there.
PROGRAMS = {
    "bubblewrap": ("bwrap",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
}
PURPOSES = {
    "bubblewrap": "grading runs submissions in its sandbox",
    "chromium": "the browser tests drive it",
}

# jsonschema imports the first where it finds it, for a format that no schema of Jupyter uses. That compiles grammars,
# which makes 0.2 s of processor time 1.8 s in every process that reads a notebook. Nothing else here needs the two.
UNUSED = ("rfc3987-syntax", "lark")
# Newer ones refuse Python 3.11.0 to 3.11.4, and Debian 12 has 3.11.2.
LIMITS = ("soupsieve<3",)


def create_environment(directory: Path) -> None:
    """Make `directory` a virtual environment with exactly the locked versions, less what is UNUSED, and this project in
    editable form.
    """
    started = time.monotonic()
    python = directory / "bin" / "python"
    if not works(python):
        print(f"Creating {directory.name} with Python {sys.version.split()[0]} ...", flush=True)
        shutil.rmtree(directory, ignore_errors=True)
        create_bare_environment(directory)
    print("Installing the locked packages (about 1.7 GB with PyTorch; the first time takes minutes) ...", flush=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "-qq", "--no-compile", "--requirement", str(LOCK)])
    run([*pip, "uninstall", "-qq", "--yes", *UNUSED])
    compile_modules(python, directory / "lib")
    run([*pip, "install", "-qq", "--no-deps", "--editable", str(ROOT)])
    settings = directory / "etc" / "jupyter"
    settings.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXPORT, settings)  # an editable install leaves data files out
    (directory / "ready").write_text(f"Python {sys.version.split()[0]}\n")
    print(f"Environment ready after {time.monotonic() - started:.0f} s.", flush=True)


def works(python: Path) -> bool:
    """Whether the environment's interpreter still starts: the Python that it was made from may be gone."""
    if not python.exists():
        return False
    return subprocess.run([python, "-c", "import pip"], capture_output=True).returncode == 0


def compile_modules(python: Path, directory: Path) -> None:
    """Compile all modules below a folder, on all processors: pip uses one, which takes as long as all the rest.

    Some packages hold files that are no Python of this version. Nobody imports those, so failures mean nothing.
    """
    subprocess.run([python, "-m", "compileall", "-qq", "-j", "0", directory])


def create_bare_environment(directory: Path) -> None:
    completed = subprocess.run([sys.executable, "-m", "venv", str(directory)], capture_output=True, text=True)
    if completed.returncode != 0:
        sys.exit(
            f"{sys.executable} cannot create a virtual environment:\n{completed.stdout}{completed.stderr}\n"
            "On Debian and Ubuntu the missing part is installed with: sudo apt-get install python3-venv"
        )


def write_lock(directory: Path) -> None:
    """Resolve the floors of pyproject.toml in a fresh environment and write the exact versions to the lock file."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch) / "venv"
        create_bare_environment(fresh)
        pip = [str(fresh / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
        torch = next((line for line in LOCK.read_text().splitlines() if line.startswith("torch==")), "torch")
        run([*pip, "install", "--quiet", torch])  # alone and first: a range would admit builds with gigabytes of CUDA
        run([*pip, "install", "--quiet", f"{ROOT}[dev]", *LIMITS])
        frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
    header = "# Written by `make lock`. The make targets install exactly these versions.\n"
    LOCK.write_text(header + "".join(locked_lines(frozen)))
    print(f"{LOCK.name}: {len(list(locked_lines(frozen)))} packages. `make test` now installs them into {directory}.")


def locked_lines(frozen: str) -> list[str]:
    """The lines of `pip freeze` without this project, and without local version labels such as +cpu."""
    lines = [line for line in frozen.splitlines() if "==" in line and not line.startswith("mini-autograd-course")]
    return [line.split("+")[0] + "\n" for line in sorted(lines, key=str.lower)]


def install_system_packages(names: list[str]) -> None:
    """Install what is missing where that needs no question; name the command otherwise. Never fails: who needs a
    package says so again, clearly, when it is not there."""
    missing = [name for name in names if not any(shutil.which(program) for program in PROGRAMS[name])]
    if not missing:
        return
    prefix = privilege()
    if prefix is not None and shutil.which("apt-get"):
        print(f"Installing {', '.join(missing)} ...", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *missing]):
            subprocess.run([*prefix, *command], capture_output=True, env=environment, stdin=subprocess.DEVNULL)
    for name in missing:
        if not any(shutil.which(program) for program in PROGRAMS[name]):
            print(f"{name} is not installed, and {PURPOSES[name]}. Install it with: {install_command(name)}")


def privilege() -> list[str] | None:
    """What to put before a command to run it as root without a question, or None."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    return None


def install_command(name: str) -> str:
    managers = {"apt-get": "sudo apt-get install", "dnf": "sudo dnf install", "pacman": "sudo pacman -S"}
    manager = next((managers[program] for program in managers if shutil.which(program)), None)
    if manager:
        return f"{manager} {name}"
    return f"your system's package manager (the package is called {name})"


def run(command: list[str]) -> None:
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        sys.exit("Installation stopped at: " + " ".join(command) + "\nRun the same make target again to continue.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for name in ("environment", "lock"):
        actions.add_parser(name).add_argument("directory", type=Path)
    actions.add_parser("system").add_argument("packages", nargs="+", choices=sorted(PROGRAMS))
    arguments = parser.parse_args()
    if arguments.action == "environment":
        create_environment(arguments.directory.absolute())
    elif arguments.action == "lock":
        write_lock(arguments.directory)
    else:
        install_system_packages(arguments.packages)


if __name__ == "__main__":
    main()
