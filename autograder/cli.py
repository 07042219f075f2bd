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
from types import ModuleType

from autograder.files import DISTRIBUTION


@dataclass(frozen=True)
class Command:
    """One subcommand: the module has `add_arguments(parser)` and `run(arguments) -> exit status`."""

    name: str
    module: str
    help: str

    def load(self) -> ModuleType:
        return importlib.import_module(self.module)


COMMANDS = (
    Command("check", "autograder.checks.commands.check", "try an engine of your own on a list of operations"),
    Command("course", "autograder.lessons.commands.course", "copy the course to a folder of your own, for a class"),
    Command("new", "autograder.lessons.commands.new", "write a small lesson as a starting point for your own"),
    Command("build", "autograder.lessons.commands.build", "make the instructor's notebooks from the lesson texts"),
    Command("lab", "autograder.lessons.commands.lab", "open JupyterLab on the lessons as a student sees them"),
    Command("demos", "autograder.lessons.commands.demos", "open all demos on one full page, for an audience"),
    Command("audit", "autograder.lessons.commands.audit", "check that lessons are sound and their tests strict"),
    Command("coverage", "autograder.lessons.commands.coverage", "show which cell teaches each topic of the checklist"),
    Command(
        "reference", "autograder.lessons.commands.reference", "give a class the reference engine that was held back"
    ),
    Command("grade", "autograder.grading.commands.grade", "grade the submissions of a class"),
    Command("import", "autograder.grading.commands.import_lms", "import submissions downloaded from Canvas or Moodle"),
    Command("watch", "autograder.grading.commands.watch", "grade what arrives and release its feedback at once"),
    Command(
        "doctor", "autograder.grading.commands.doctor", "say which tests of an assignment can be trusted, and how far"
    ),
    Command("report", "autograder.grading.commands.report", "make a page about a graded lesson for the instructor"),
    Command("export", "autograder.grading.commands.export", "write the marks for Canvas, Moodle or nbgrader"),
    Command("class", "autograder.grading.commands.class_run", "run the whole loop on a pretend class"),
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
            module = command.load()
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    parsed = parser.parse_args(arguments)
    return int(parsed.run(parsed))


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
