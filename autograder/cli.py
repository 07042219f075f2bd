"""The `autograder` command. Each subcommand lives in the package that does its work; this file only finds it.

A subcommand's module is imported when that subcommand runs, so that `autograder --help` does not wait for nbgrader or
PyTorch.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType

from autograder.course_folder import DISTRIBUTION

# The packages of the extras of pyproject.toml. Without PyTorch: where a Python has no build of it, the rest works.
COURSE = ("anywidget", "ipywidgets", "jupyterlab", "jupytext", "matplotlib", "nbgrader", "rich")
EXTRAS = {
    "": (),
    "course": COURSE,
    "grading": (*COURSE, "latex2mathml", "nbclient", "nh3", "rapidfuzz"),
}
WHERE = "`autograder {}` needs {}, which is not installed. Install it with: pip install '{}[{}]'"


@dataclass(frozen=True)
class Command:
    """One subcommand: the module has `add_arguments(parser)` and `run(arguments) -> exit status`. `extra` is what
    it needs of EXTRAS.
    """

    name: str
    module: str
    help: str
    extra: str = ""

    @property
    def missing(self) -> str:
        """A package that the command needs and that is not installed, or ""."""
        return next((package for package in EXTRAS[self.extra] if find_spec(package) is None), "")

    def load(self) -> ModuleType:
        return importlib.import_module(self.module)


COMMANDS = (
    Command("check", "autograder.checks.commands.check", "try an engine of your own on a list of operations"),
    Command("course", "autograder.lessons.commands.course", "copy the course to a folder of your own, for a class"),
    Command("new", "autograder.lessons.commands.new", "write a small lesson as a starting point for your own"),
    Command(
        "build", "autograder.lessons.commands.build", "make the instructor's notebooks from the lesson texts", "course"
    ),
    Command(
        "lab", "autograder.lessons.commands.lab", "open JupyterLab on the lessons as a student sees them", "course"
    ),
    Command("demos", "autograder.lessons.commands.demos", "open all demos on one full page, for an audience", "course"),
    Command(
        "audit", "autograder.lessons.commands.audit", "check that lessons are sound and their tests strict", "grading"
    ),
    Command(
        "coverage",
        "autograder.lessons.commands.coverage",
        "show which cell teaches each topic of the checklist",
        "course",
    ),
    Command(
        "reference",
        "autograder.lessons.commands.reference",
        "give a class the reference engine that was held back",
        "course",
    ),
    Command("grade", "autograder.grading.commands.grade", "grade the submissions of a class", "grading"),
    Command(
        "extension", "autograder.grading.commands.extension", "give a student more time, or show who has it", "grading"
    ),
    Command(
        "import",
        "autograder.grading.commands.import_lms",
        "import submissions downloaded from Canvas or Moodle",
        "grading",
    ),
    Command(
        "watch", "autograder.grading.commands.watch", "grade what arrives and release its feedback at once", "grading"
    ),
    Command(
        "doctor",
        "autograder.grading.commands.doctor",
        "say which tests of an assignment can be trusted, and how far",
        "grading",
    ),
    Command(
        "report",
        "autograder.grading.commands.report",
        "make a page about a graded lesson for the instructor",
        "grading",
    ),
    Command(
        "export", "autograder.grading.commands.export", "write the marks for Canvas, Moodle or nbgrader", "grading"
    ),
    Command("class", "autograder.grading.commands.class_run", "run the whole loop on a pretend class", "grading"),
)

STREAMS = {"stdin": "r", "stdout": "w", "stderr": "w"}


def main(argv: list[str] | None = None) -> int:
    """Parse the command line and run one subcommand. Returns the exit status."""
    _open_standard_streams()
    arguments = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog="autograder", description="Check gradients, grade classes, build lessons.")
    parser.add_argument("--version", action="version", version=_version() if "--version" in arguments[:1] else "")
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        subparser = subparsers.add_parser(command.name, help=command.help, description=command.help)
        if command.name in arguments[:1]:
            if command.missing:
                print(WHERE.format(command.name, command.missing, DISTRIBUTION, command.extra), file=sys.stderr)
                return 1
            module = command.load()
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    parsed = parser.parse_args(arguments)
    if parsed.run.__module__.startswith("autograder.grading"):
        _name_lessons(parsed)
    return int(parsed.run(parsed))


def _name_lessons(parsed: argparse.Namespace) -> None:
    """Let the commands about a class take a lesson's number, as those about its text do."""
    from autograder.course_folder import lesson_name

    if getattr(parsed, "lesson", None):
        parsed.lesson = lesson_name(parsed.course, parsed.lesson)
    if getattr(parsed, "lessons", None):
        parsed.lessons = [lesson_name(parsed.course, name) for name in parsed.lessons]


def _open_standard_streams() -> None:
    """Connect a stream that the shell has closed to nothing: otherwise the next file would take its number, and be
    written to.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) < len(STREAMS):
        os.set_inheritable(number, True)
    os.close(number)
    for number, (name, mode) in enumerate(STREAMS.items()):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _version() -> str:
    from importlib.metadata import version

    return f"autograder {version(DISTRIBUTION)}"


if __name__ == "__main__":
    sys.exit(main())
