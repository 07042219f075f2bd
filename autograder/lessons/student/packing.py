"""One file with all of a student's notebooks and engines: to hand in, and to go on with on another computer.

`autograder import` and `autograder lab --from` take it. Notebooks are packed without the state of their widgets, which
is most of a large notebook; outputs stay, because `progress()` reads them.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from autograder.lessons.student.progress import lesson_notebooks
from autograder.sandbox.inside.engine_file import FILE

PACKED = "lessons.zip"
VIEW = "application/vnd.jupyter.widget-view+json"


class PackingError(Exception):
    """There is nothing to pack, or a file that `pack()` has not made. The message can be shown to a student."""


def pack(here: Path) -> bytes:
    """The zip of all lessons of the folder in which the lesson folder `here` lies (or of `here` itself), each in a
    folder of its name. Raises PackingError if there are none.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for notebook in lesson_notebooks(here):
            folder, engine = notebook.parent.name, notebook.with_name(FILE)
            archive.writestr(f"{folder}/{notebook.name}", without_widgets(notebook.read_bytes()))
            if engine.is_file():
                archive.writestr(f"{folder}/{FILE}", engine.read_bytes())
        if not archive.namelist():
            raise PackingError(f"There are no lessons in {here.parent} and in {here}.")
    return content.getvalue()


def unpack(file: Path) -> dict[str, bytes]:
    """The files in what `pack` made, by their names. Raises PackingError."""
    try:
        with zipfile.ZipFile(file) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
        raise PackingError(f"{file} cannot be read as a file from pack(): {error}") from error


def without_widgets(notebook: bytes) -> bytes:
    """A notebook's file without the state of its widgets. Their outputs keep the other forms that they have, such as
    pictures. A file that is no notebook stays as it is.
    """
    try:
        content: dict[str, Any] = json.loads(notebook)
        content["metadata"].pop("widgets", None)
        for output in (output for cell in content["cells"] for output in cell.get("outputs", ())):
            if len(output.get("data", {})) > 1:
                output["data"].pop(VIEW, None)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return notebook
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
