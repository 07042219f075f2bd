"""`autograder coverage`: prints which cell teaches each topic of the checklist, in the core or in *Further*, what of it
is run, which exercise or question tests it, and what is missing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course_folder import COURSE

if TYPE_CHECKING:
    from autograder.lessons.builder.coverage import Coverage, Topic


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 02: show only their topics")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="the course's folder")
    parser.add_argument("--gaps", action="store_true", help="show only what is missing")


def run(arguments: argparse.Namespace) -> int:
    """Print the table. The exit status is 1 when a lesson that exists leaves a topic out, or claims an unknown one."""
    from autograder.lessons.builder.coverage import CHECKLIST, coverage
    from autograder.lessons.builder.lesson_files import LessonTextError

    try:
        found = coverage(arguments.course)
    except LessonTextError as error:
        print(error, file=sys.stderr)
        return 1
    wanted = {name[:2] for name in arguments.lessons}
    topics = [topic for topic in found.topics.values() if not wanted or wanted & set(topic.lessons)]
    gaps = [topic for topic in topics if topic in found.gaps()]
    show(found, gaps if arguments.gaps else topics)
    for claim in found.unknown():
        print(f"{claim.place}: the checklist has no topic {claim.topic!r}", file=sys.stderr)
    for said in found.wrong():
        print(f"{CHECKLIST}, {said}", file=sys.stderr)
    later = [topic for topic in topics if not set(topic.lessons) & set(found.lessons)]
    covered = len(topics) - len(gaps) - len(later)
    print(f"\n{covered} of {len(topics)} topics covered, {len(gaps)} gaps, {len(later)} in lessons to come.")
    optional = [topic for topic in topics if topic in found.optional()]
    tested = sum(bool(topic.tested) for topic in topics)
    print(f"{tested} tested by an exercise or a question; {len(optional)} only in optional parts, for these reasons:")
    for topic in optional:
        print(f"  {topic.name}: {topic.further}")
    return int(bool(gaps or found.unknown() or found.wrong()))


def show(found: Coverage, topics: list[Topic]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    gaps = found.gaps()
    table = Table("topic", "what", "taught in", "part", "run", "tested by", box=None, pad_edge=False)
    for topic in topics:
        claims = found.claims_of(topic)
        places = "\n".join(escape(claim.place) for claim in claims)
        missing = "[bold red]GAP[/bold red]" if topic in gaps else "lesson to come"
        part = "" if not claims else "further" if topic in found.optional() else "core"
        run = str(sum(claim.run for claim in claims)) if claims else ""
        tests = "\n".join(f"{name}{' (further)' * found.tests.get(name, False)}" for name in topic.tested)
        table.add_row(topic.name, escape(topic.title), places or missing, part, run, tests or "-")
    Console(width=None if sys.stdout.isatty() else 160).print(table)
