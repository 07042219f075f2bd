"""`autograder lab`: delivers the lessons to a student's folder and opens JupyterLab on the first that is not done."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autograder.course_folder import BUILT_IN, HOME


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--course", type=Path, default=BUILT_IN, metavar="DIR", help="the course's folder")
    parser.add_argument("--path", default="", metavar="NAME", help="only this path of paths.toml, such as short")
    parser.add_argument("--workspace", type=Path, default=HOME / "workspace", metavar="DIR", help="your folder")
    parser.add_argument("--port", type=int, metavar="N", help="the port to listen on (the first free one from 8888)")
    parser.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    parser.add_argument(
        "--from", dest="packed", type=Path, metavar="FILE.zip", help="go on with the lessons in a file from pack()"
    )
    parser.add_argument("--prepare-only", action="store_true", help="deliver the lessons and stop")


def run(arguments: argparse.Namespace) -> int:
    """Deliver, then become the server. The exit status is 1 when there is nothing to show."""
    from autograder.lessons.builder.lesson_files import LessonTextError
    from autograder.lessons.builder.paths import texts_asked_for
    from autograder.lessons.student import lab
    from autograder.lessons.student.delivery import Workspace, deliver_all
    from autograder.lessons.student.packing import PackingError, unpack

    workspace = Workspace(arguments.workspace.resolve())
    if workspace.folder.is_file():
        print(f"{workspace.folder} is a file. Name a folder with --workspace.", file=sys.stderr)
        return 1
    try:
        texts = texts_asked_for(arguments.course, path=arguments.path)
    except LessonTextError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        brought = unpack(arguments.packed) if arguments.packed else {}
        delivered, problems = deliver_all(texts, arguments.course, workspace)
        parts = [(text, further) for text in texts for further in (False, True)]
        taken = [file for text, further in parts if (file := workspace.take(text, brought, further))]
        lab.write_configuration(workspace.folder, workspace.hidden)
    except PackingError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"The lessons cannot be written to {workspace.folder}: {error}", file=sys.stderr)
        return 1
    for file in delivered:
        if arguments.prepare_only or file.what in ("new", "updated", "beside"):
            print(file.message)
    for file in taken:
        print(file.message)
    if arguments.packed and not taken:
        print(f"{arguments.packed} holds no lesson of this course.", file=sys.stderr)
        return 1
    for problem in problems:
        print(f"This lesson is left out: {problem}", file=sys.stderr)
    if not delivered:
        return 1
    if arguments.prepare_only:
        return int(bool(problems))
    first = lab.first_to_open([path for path in map(workspace.notebook, texts) if path.is_file()])
    browser = lab.has_screen() and not arguments.no_browser
    print(f"Your notebooks are in {workspace.folder}. Stop JupyterLab with Ctrl-C.")
    command = lab.server_command(workspace.folder, workspace.hidden, first, arguments.port, browser)
    return lab.start(command, lab.server_environment(workspace.hidden), workspace.hidden / "nbgrader")
