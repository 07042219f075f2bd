"""Builds the lab of the website: JupyterLite with the lessons as students get them. Python runs in the reader's tab.

Python is Pyodide there. Its packages and their hashes stand in `pyodide-lock.json`, a part of Pyodide's own lock file;
what Pyodide lacks comes from PyPI, in the versions of the course's lock file, and the course is a wheel of this
checkout. Notebooks need no `%pip`: the kernel loads what a cell imports.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_markdown_cell

from autograder.lessons.builder.lesson_files import lesson_texts
from autograder.lessons.student.delivery import Workspace, deliver_all
from autograder.lessons.student.lab import FRESH_KERNEL
from autograder.lessons.student.shell import RECORDED

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COURSE = ROOT / "course"
LOCK = "pyodide-lock.json"
VERSION = "0.29.3"
"""The version of Pyodide that jupyterlite-pyodide-kernel is made for."""
DISTRIBUTION_POINT = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
"""Where Pyodide is if there is no local one."""
PYODIDE = f"static/pyodide/v{VERSION}"
"""Where Pyodide's files are in the lab. The service worker keeps them for good because the version stands there."""
STANDARD_LIBRARY = "python_stdlib.zip"
INSTALLED = "/lib/python3.13/site-packages"
"""Where Pyodide puts packages."""
INTERPRETER = ("pyodide.js", "pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", STANDARD_LIBRARY)
ROOTS = ("cloudpickle", "ipython", "jedi", "matplotlib", "micropip", "numpy", "sqlite3", "typing-extensions")
"""What the course and JupyterLite's kernel take from Pyodide, without what these need."""
BESIDE = {
    "anywidget": ("ipywidgets", "psygnal", "typing-extensions"),
    "comm": ("traitlets",),
    "ipywidgets": ("comm", "ipython", "traitlets"),
    "psygnal": (),
}
"""Packages that Pyodide does not have, and what each needs."""
KERNEL_PARTS = {
    "ipykernel": (),
    "piplite": ("micropip",),
    "pyodide_kernel": ("comm", "ipykernel", "ipython", "jedi", "piplite", "sqlite3"),
}
"""Wheels inside the kernel's own wheel, and what each needs. Python loads them as it starts, with the course: the
kernel would ask for one after another once Python has started, through micropip."""
COURSE_PACKAGE = "mini-autograd-course"
STARTS_WITH = sorted({*KERNEL_PARTS, *(need for needs in KERNEL_PARTS.values() for need in needs), COURSE_PACKAGE})
DOWNLOADS = ROOT / ".build" / "wheels"
COMPILED = ROOT / ".build" / "compiled"
EXTENSIONS = ("anywidget", "@jupyter-widgets/jupyterlab-manager")
KERNEL_PACKAGE = {"jupyterlite-pyodide-kernel": "0.7.2"}
"""Not installed with the others: every JupyterLab of that environment would load its extension, and fail at it."""
KERNEL_EXTENSION = "@jupyterlite/pyodide-kernel-extension"
KERNEL = f"{KERNEL_EXTENSION}:kernel"
SETTINGS = {
    "@jupyterlab/docmanager-extension:plugin": {"autosaveInterval": 10},  # seconds: tabs are closed without a question
    "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},  # light or dark, as the system is
}
SCRIPTS = ("keep.js", "python.js", "queue.js", "narrow.js")  # of the lab's page
STYLE = "lab/lab.css"
STARTS = "await import("
"""Where the lab's page begins to load JupyterLab."""
WORKERS = ("service-worker.js", "settings.js", "kernel.js", "demos.js")
BESIDE_THE_PAGE = ("demos.py", STYLE, *(f"lab/{name}" for name in (*WORKERS, *SCRIPTS)))


class LabError(Exception):
    """The lab cannot be built. The message says what to do."""


def build_lab(folder: Path, pyodide: Path | None = None, recorded: Mapping[str, str] | None = None) -> None:
    """Build the lab in a new folder. `pyodide`: a folder or an archive with Pyodide, which then becomes a part of the
    site; without it, pages ask DISTRIBUTION_POINT for it. `recorded`: what the cells of lessons put out, for those that
    cannot run in a browser. Raises LabError.
    """
    with tempfile.TemporaryDirectory(prefix="lab-") as name:
        scratch = Path(name)
        workspace = Workspace(scratch / "lessons")
        _, problems = deliver_all(lesson_texts(COURSE), COURSE, workspace)
        if problems:
            raise LabError("\n".join(problems))
        shutil.rmtree(workspace.hidden)
        for lesson, outputs in (recorded or {}).items():
            for notebook in workspace.folder.glob(f"{lesson}*/*.ipynb"):
                notebook.with_name(RECORDED).write_text(outputs, encoding="utf-8")
        _say_what_a_browser_keeps(workspace.folder)
        _run_jupyterlite(scratch, folder, is_local=pyodide is not None)
        with_course(pyodide, folder / PYODIDE)
    # Ours keeps what the lab asks for, and leaves the rest to JupyterLite's.
    (folder / "service-worker.js").rename(folder / "jupyterlite-service-worker.js")
    for file in BESIDE_THE_PAGE:
        shutil.copy(HERE / file, folder)
    ours = "".join(f'<script src="../{file}"></script>' for file in SCRIPTS)
    ours += f'<link rel="stylesheet" href="../{Path(STYLE).name}">'
    page = folder / "lab" / "index.html"
    text = page.read_text(encoding="utf-8")
    if text.count(STARTS) != 1:
        raise LabError(f"The page of this JupyterLite does not start with {STARTS!r}: see lab/keep.js.")
    text = text.replace("<head>", f"<head>{ours}").replace(STARTS, f"await window.serviceWorkerCame; {STARTS}")
    page.write_text(text, encoding="utf-8")


def with_course(pyodide: Path | None, folder: Path) -> Path:
    """Make a folder with what the lab needs of a Pyodide (see `build_lab`), the packages that Pyodide lacks, and the
    course. Its lock file names exactly that; what is not in the folder has its address there. Raises LabError.
    """
    folder.mkdir(parents=True)
    if pyodide is None:
        lock = json.loads((HERE / LOCK).read_text(encoding="utf-8"))
        for entry in lock["packages"].values():
            entry["file_name"] = DISTRIBUTION_POINT + entry["file_name"]
    else:
        lock = _copied(pyodide, folder)
    packages = lock["packages"]
    for name, wheel in _downloaded(_locked(BESIDE)).items():
        packages[name] = _entry(name, wheel, BESIDE[name], [name], folder)
    with tempfile.TemporaryDirectory() as scratch:
        for name, wheel in _kernel_parts(Path(scratch) / "kernel").items():
            packages[plain(name)] = _entry(plain(name), wheel, KERNEL_PARTS[name], [name], folder)
        depends = [name for name in (*BESIDE, *ROOTS) if name in packages]
        wheel = _course_wheel(Path(scratch))
        packages[COURSE_PACKAGE] = _entry(COURSE_PACKAGE, wheel, depends, ["autograder", "mini_autograd"], folder)
    (folder / LOCK).write_text(json.dumps(lock), encoding="utf-8")
    if pyodide is not None:
        _compile(folder)
        for entry in packages.values():
            entry["sha256"] = _hash(folder / entry["file_name"])
        (folder / LOCK).write_text(json.dumps(lock), encoding="utf-8")
    return folder


def in_node(pyodide: Path, folder: Path, program: Path, *packages: str) -> list[str]:
    """The command that runs a program in a Pyodide under node. It works in this folder, with these packages."""
    return ["node", str(HERE / "lab" / "in_node.mjs"), *map(str, (pyodide.resolve(), folder, program)), *packages]


def needed(packages: dict[str, Any], roots: Iterable[str]) -> list[str]:
    """The names of packages and of all that they need, by the entries of a lock file."""
    found: list[str] = []
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.append(name)
            waiting += map(plain, packages[name]["depends"])
    return sorted(found)


def plain(name: str) -> str:
    """A package's name as lock files have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def run(command: list[str], folder: Path, **variables: str) -> str:
    """Run a program in a folder, with these variables in its environment, and return what it prints. Raises LabError
    with its last words if it fails.
    """
    ran = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True)
    if ran.returncode:
        raise LabError(f"{' '.join(command[:4])} failed: {(ran.stderr or ran.stdout)[-2000:]}")
    return ran.stdout


def pip_download(packages: Iterable[str], folder: Path) -> dict[str, Path]:
    """Pure wheels of these packages (`name==version`) by name, without what they need. Raises LabError."""
    for_pyodide = ["--only-binary=:all:", "--platform", "any", "--python-version", "3.13"]
    folder.mkdir(parents=True, exist_ok=True)
    run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", *for_pyodide, "-d", ".", *packages], folder)
    return {plain(path.name.partition("-")[0]): path for path in folder.glob("*.whl")}


def _run_jupyterlite(scratch: Path, folder: Path, is_local: bool) -> None:
    """Build JupyterLite with the lessons of `scratch`, and with no other extension of this environment than ours."""
    own = scratch / "kernel"
    (wheel,) = _downloaded(KERNEL_PACKAGE).values()
    run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "-t", str(own), str(wheel)], scratch)
    for name, root in {**dict.fromkeys(EXTENSIONS, Path(sys.prefix)), KERNEL_EXTENSION: own}.items():
        shutil.copytree(root / "share" / "jupyter" / "labextensions" / name, scratch / "extensions" / name)
    kernel = {
        # the module .mjs cannot be loaded in the kernel's worker
        "pyodideUrl": f"./{PYODIDE}/pyodide.js" if is_local else f"{DISTRIBUTION_POINT}pyodide.js",
        "disablePyPIFallback": True,
        "loadPyodideOptions": {
            "lockFileURL": f"./{PYODIDE}/{LOCK}",
            "packages": STARTS_WITH,
            "env": {"PYTHONSTARTUP": f"{INSTALLED}/{FRESH_KERNEL.relative_to(ROOT)}"},
        },
    }
    files = {
        "jupyter_lite_config.json": {
            "LiteBuildConfig": {
                "apps": ["lab"],
                "contents": [str(scratch / "lessons")],
                "ignore_sys_prefix": True,
                "no_sourcemaps": True,
                "no_unused_shared_packages": True,
                "output_dir": str(folder.resolve()),
            },
            "FederatedExtensionAddon": {"extra_labextensions_path": [str(scratch / "extensions")]},
        },
        "jupyter-lite.json": {
            "jupyter-lite-schema-version": 0,
            "jupyter-config-data": {
                "appName": "MiniTensor",
                "exposeAppInBrowser": True,  # to narrow.js and queue.js
                "litePluginSettings": {KERNEL: kernel},
            },
        },
        "overrides.json": SETTINGS,
    }
    (scratch / "lite").mkdir()
    for name, content in files.items():
        (scratch / "lite" / name).write_text(json.dumps(content), encoding="utf-8")
    run([sys.executable, "-m", "jupyterlite_core", "build"], scratch / "lite", PYTHONPATH=str(own))


def _say_what_a_browser_keeps(lessons: Path) -> None:
    """Put a note below the title of the first lesson. It is ours alone: grading leaves cells without a name alone."""
    notebook = next(iter(sorted(lessons.glob("*/*.ipynb"))))
    content = nbformat.read(notebook, as_version=4)
    content.cells.insert(1, new_markdown_cell((HERE / "lab" / "in_a_browser.md").read_text(encoding="utf-8"), id="tab"))
    nbformat.write(content, notebook)


def _copied(pyodide: Path, folder: Path) -> dict[str, Any]:
    """Copy what is needed of a local Pyodide. Returns its lock file, with what was copied. Raises LabError."""
    with tempfile.TemporaryDirectory() as scratch:
        if pyodide.is_file():
            shutil.unpack_archive(pyodide, scratch)
            pyodide = Path(scratch)
        there = next((file.parent for file in pyodide.rglob(LOCK)), None)
        if there is None:
            raise LabError(f"{pyodide} holds no {LOCK}: name a folder or an archive with Pyodide.")
        lock: dict[str, Any] = json.loads((there / LOCK).read_text(encoding="utf-8"))
        wanted = json.loads((HERE / LOCK).read_text(encoding="utf-8"))["info"]
        if lock["info"] != wanted:
            raise LabError(f"The lab needs Pyodide {VERSION}, for Python {wanted['python']}; this is another one.")
        known = lock["packages"]
        if missing := [name for name in ROOTS if name not in known]:
            print(f"lab: this Pyodide lacks {', '.join(missing)}: in the lab, cells that need it will fail")
        kept = needed(known, (name for name in ROOTS if name in known))
        lock["packages"] = {name: known[name] for name in kept}
        for name in (*INTERPRETER, *(known[name]["file_name"] for name in kept)):
            shutil.copy(there / name, folder)
    return lock


def _compile(pyodide: Path) -> None:
    """Let this Pyodide compile its packages and its standard library (`bytecode.py`), which takes two thirds off
    the time of imports. What it has compiled before is kept in COMPILED. Raises LabError.
    """
    if shutil.which("node") is None:
        print("lab: node is not installed, so Python's modules are compiled in each tab; it starts seconds later there")
        return
    program = HERE / "bytecode.py"
    archives = [*pyodide.glob("*.whl"), pyodide / STANDARD_LIBRARY]
    kept = {archive: COMPILED / f"{_hash(program)[:12]}-{_hash(archive)}" for archive in archives}
    COMPILED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=COMPILED) as scratch:
        missing = [archive for archive in archives if not kept[archive].is_file()]
        for archive in missing:
            shutil.copy(archive, scratch)
        if missing:
            run(in_node(pyodide, Path(scratch), program), pyodide)
        for archive in missing:
            (Path(scratch) / archive.name).replace(kept[archive])
    for archive in archives:
        shutil.copy(kept[archive], archive)


def _downloaded(versions: Mapping[str, str]) -> dict[str, Path]:
    """The wheels of packages in these versions, as they lie in DOWNLOADS; pip is asked for those that do not."""
    lying = {tuple(wheel.name.split("-")[:2]): wheel for wheel in DOWNLOADS.glob("*.whl")}
    there = {plain(name): wheel for (name, version), wheel in lying.items() if versions.get(plain(name)) == version}
    if missing := [f"{name}=={versions[name]}" for name in versions if name not in there]:
        there |= pip_download(missing, DOWNLOADS)
    return {name: there[name] for name in versions}


def _kernel_parts(folder: Path) -> dict[str, Path]:
    """The wheels of KERNEL_PARTS, written into a new folder."""
    folder.mkdir()
    (kernel,) = _downloaded(KERNEL_PACKAGE).values()
    found = {}
    with zipfile.ZipFile(kernel) as archive:
        for member in archive.namelist():
            file = member.rpartition("/")[2]
            if "/pypi/" in member and (name := file.partition("-")[0]) in KERNEL_PARTS:
                found[name] = folder / file
                found[name].write_bytes(archive.read(member))
    return found


def _locked(names: Iterable[str]) -> dict[str, str]:
    """The versions of packages in the course's lock file."""
    locked = (ROOT / "requirements" / "course.lock").read_text(encoding="utf-8")
    return {name: re.findall(rf"^{name}==(\S+)", locked, re.MULTILINE)[0] for name in names}


def _entry(name: str, wheel: Path, depends: Iterable[str], imports: list[str], folder: Path) -> dict[str, Any]:
    """Copy a wheel to the folder. Returns its entry in the lock file."""
    shutil.copy(wheel, folder)
    return {
        "name": name,
        "version": wheel.name.split("-")[1],
        "file_name": wheel.name,
        "sha256": _hash(wheel),
        "depends": [*depends],
        "imports": imports,
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
    }


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _course_wheel(folder: Path) -> Path:
    """The course's wheel, built in this folder from the files that git knows, without the sources of the lessons."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = run(listing, ROOT).split("\0")
    checkout = folder / "checkout"
    for name in filter(lambda name: name and (ROOT / name).is_file(), files):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, checkout / name)
    build = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    run([sys.executable, "-m", "pip", *build, str(checkout)], folder)
    (built,) = folder.glob("*.whl")
    light = folder / "light" / built.name
    light.parent.mkdir()
    with zipfile.ZipFile(built) as all_files, zipfile.ZipFile(light, "w", zipfile.ZIP_DEFLATED) as kept:
        for info in all_files.infolist():
            if ".data/" not in info.filename:
                kept.writestr(info, all_files.read(info))
    return light
