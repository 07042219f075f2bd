"""`autograder build`: writes the instructor's notebooks of a course, which nbgrader then releases and grades."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autograder.course_folder import COURSE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 02 or 02_scalar_engine; all by default")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="the course's folder")


def run(arguments: argparse.Namespace) -> int:
    """Build the lessons. Every lesson is tried; the exit status is 1 when one could not be built."""
    from autograder.lessons.builder.lesson_files import FURTHER, LessonTextError
    from autograder.lessons.builder.notebook import build_lesson
    from autograder.lessons.builder.paths import texts_asked_for
    from autograder.lessons.mistakes.signatures import are_current, build_signatures

    failed = False
    try:
        texts = texts_asked_for(arguments.course, arguments.lessons)
    except LessonTextError as error:
        print(error, file=sys.stderr)
        return 1
    for text in texts:
        try:
            if not are_current(text):
                print(f"{text.stem}: trying its mistakes, so that cards can name them ...", flush=True)
                build_signatures(text)
            built = build_lesson(text, arguments.course)
            further = built.parents[1] / f"{text.stem}{FURTHER}" / f"{text.stem}{FURTHER}.ipynb"
            print(built, *([further] if further.is_file() else []), sep="\n")
        except LessonTextError as error:
            failed = True
            print(error, file=sys.stderr)
        except OSError as error:
            print(f"autograder build: {error.filename}: {error.strerror}.", file=sys.stderr)
            return 1
    return int(failed)
