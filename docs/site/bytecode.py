"""Compiles the packages in the working directory; Pyodide runs it, because bytecode belongs to one version of Python.

Without bytecode a tab compiles everything that it imports, at each start. Packages have bytecode in place of their
sources, as Pyodide's own tool does it, except for the course: students read its code, and errors quote it.
"""

import importlib.util
import marshal
import os
import zipfile
from pathlib import Path

COURSE = "mini_autograd_course"
WITHOUT_USE = ("/tests/", "/django-stubs/")


def compiled(source: bytes, place: str) -> bytes:
    """The content of a `.pyc` file that is taken without a look at the source (PEP 552: hash-based, not checked)."""
    code = compile(source, place, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
    return head + marshal.dumps(code)


def compile_archive(path: Path) -> None:
    """Compile the modules in a wheel, or in the archive of the standard library."""
    root = "/lib/python313.zip/" if path.suffix == ".zip" else "/lib/python3.13/site-packages/"
    new = path.with_suffix(".new")
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            if any(part in f"/{name}" for part in WITHOUT_USE):
                continue
            content = before.read(name)
            is_course = path.name.startswith(COURSE)
            if is_course or not name.endswith(".py"):
                after.writestr(name, content)
            if name.endswith(".py"):
                place = importlib.util.cache_from_source(name) if is_course else f"{name}c"
                after.writestr(place, compiled(content, root + name))
    os.replace(new, path)


for archive in (*Path().glob("*.whl"), *Path().glob("*.zip")):
    compile_archive(archive)
