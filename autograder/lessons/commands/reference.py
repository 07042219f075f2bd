"""`autograder reference LESSON`: gives a class the reference engine that was held back from a lesson's release."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autograder.course_folder import COURSE
from autograder.files import write_if_changed
from autograder.sandbox.inside.engine_file import REFERENCE_FILE, SEALED_ENGINE, open_engine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", help="the lesson that starts from this engine, as nbgrader names it")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="an nbgrader course directory")


def run(arguments: argparse.Namespace) -> int:
    """Write the engine beside the released notebook. Returns 2 if there is no release or no engine."""
    name, course = arguments.lesson, arguments.course
    source, released = course / "source" / name / f"{name}.ipynb", course / "release" / name
    try:
        if not source.is_file():
            there = sorted(path.name for path in (course / "source").glob("*/"))
            raise FileNotFoundError(f"{course} has no lesson {name!r}. It has: {', '.join(there) or 'none'}")
        if not released.is_dir():
            raise FileNotFoundError(f"{released} does not exist: generate the lesson's release first")
        found = _sealed(source)
        write_if_changed(released / REFERENCE_FILE, found + "\n")
    except (OSError, ValueError) as error:
        print(f"autograder reference: {error}", file=sys.stderr)
        return 2
    print(
        f"{released / REFERENCE_FILE} holds the reference engine after lesson {open_engine(found).number}. Release "
        f"{name} again, or hand the file out: students put it beside their notebook."
    )
    return 0


def _sealed(source: Path) -> str:
    """The engine in the call of `start_lesson` of an instructor's notebook. Raises ValueError, OSError."""
    import nbformat

    for cell in nbformat.read(source, as_version=4).cells:
        if call := SEALED_ENGINE.search(cell.source):
            return call[1]
    raise ValueError(f"{source.name} starts its own engine: it does not call start_lesson")
