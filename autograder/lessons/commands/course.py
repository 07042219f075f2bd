"""`autograder course DIR`: copies the course for a class, to a folder where submissions and marks will be kept."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from autograder.course_folder import BUILT_IN

OURS = ("*.py", "*.toml", "lessons/*/*", "data/*", "pictures/*")
"""The files of a course before anything is built."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that does not exist yet")
    parser.add_argument(
        "--path", default="", metavar="NAME", help="build and show only this path of paths.toml, such as short"
    )


def run(arguments: argparse.Namespace) -> int:
    """Copy the course. Returns 2 if the folder has something in it or cannot be written, or for an unknown path."""
    from autograder.lessons.builder.lesson_files import LessonTextError
    from autograder.lessons.builder.paths import CHOSEN, PATHS, texts_asked_for

    folder = arguments.folder.resolve()
    try:
        texts_asked_for(BUILT_IN, path=arguments.path)
    except LessonTextError as error:
        print(f"autograder course: {error}", file=sys.stderr)
        return 2
    try:
        if folder.exists() and any(folder.iterdir()):
            print(f"autograder course: {folder} has something in it already. Name a new folder.", file=sys.stderr)
            return 2
        for pattern in OURS:
            for file in filter(Path.is_file, sorted(BUILT_IN.glob(pattern))):
                target = folder / file.relative_to(BUILT_IN)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        if arguments.path:  # the other lessons stay: the reference engine is made from them
            paths = folder / PATHS
            paths.write_text(CHOSEN.format(arguments.path) + paths.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        print(f"autograder course: {folder} cannot be written: {error.strerror}.", file=sys.stderr)
        return 2
    enter = "" if folder == Path.cwd() else f"cd {arguments.folder}, and "
    print(f"The course is in {folder}. Next: {enter}autograder build")
    return 0
