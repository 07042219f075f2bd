"""`autograder demos`: makes the gallery of all demos and opens JupyterLab on it, full page, for an audience."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from autograder.course_folder import BUILT_IN, HOME

NAME = "gallery"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--course", type=Path, default=BUILT_IN, metavar="DIR", help="the course's folder")
    parser.add_argument(
        "--folder",
        type=Path,
        default=HOME / ".build" / "demos",
        metavar="DIR",
        help="where the notebook of demos is made",
    )
    parser.add_argument("--port", type=int, metavar="N", help="the port to listen on (the first free one from 8888)")
    parser.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    parser.add_argument("--prepare-only", action="store_true", help="make the notebook and stop")


def gallery(course_dir: Path) -> dict[str, object]:
    """The gallery as a notebook, in the JSON of its file, made from course/gallery.py."""
    import jupytext
    import nbformat

    notebook = jupytext.read(course_dir / f"{NAME}.py")
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{NAME}-{number}"
    nbformat.validate(notebook)
    return dict(notebook)


def run(arguments: argparse.Namespace) -> int:
    """Make the notebook again, then become the server. The exit status is 1 if the notebook cannot be written."""
    from autograder.files import write_if_changed
    from autograder.lessons.student import lab

    folder = arguments.folder.resolve()
    notebook = folder / f"{NAME}.ipynb"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_if_changed(notebook, json.dumps(gallery(arguments.course), indent=1) + "\n")
        lab.write_configuration(folder, folder / ".course")
    except OSError as error:
        print(f"The gallery cannot be made in {folder}: {error}", file=sys.stderr)
        return 1
    print(f"The gallery is {notebook}. It is rebuilt each time. Stop JupyterLab with Ctrl-C.")
    if arguments.prepare_only:
        return 0
    browser = lab.has_screen() and not arguments.no_browser
    command = lab.server_command(folder, folder / ".course", notebook, arguments.port, browser, page="/doc")
    return lab.start(command, lab.server_environment(folder / ".course"), folder)
