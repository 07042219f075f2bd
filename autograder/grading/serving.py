"""A process that grades what it is asked to on its standard input.

A worker of a cluster starts it. Both ends are ours, so they speak pickle; what students have written is data in it.
"""

from __future__ import annotations

import importlib
import os
import pickle
import shutil
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from autograder.grading.assignments import Assignment, Submission, grader_version
from autograder.grading.local import MACHINE_FAULTS
from autograder.grading.places import failure
from autograder.grading.results import Result
from autograder.grading.worker import Workshop

LENGTH = struct.Struct(">Q")


@dataclass(frozen=True)
class Question:
    """Grade this."""

    submission: Submission


@dataclass(frozen=True)
class Answer:
    """The result and the files of the autograded folder, and which version of the grader made them."""

    grader: str
    result: Result | None
    files: dict[str, bytes] = field(default_factory=dict)
    fault: str = ""


def write_message(stream: Any, message: Any) -> None:
    content = pickle.dumps(message)
    stream.write(LENGTH.pack(len(content)) + content)
    stream.flush()


def read_message(stream: Any) -> Any:
    """Raises EOFError where the other side has gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    content = stream.read(LENGTH.unpack(head)[0])
    return pickle.loads(content)


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer until nobody asks any more."""
    assignment: Assignment = read_message(questions)
    importlib.import_module("autograder.grading.preloaded")
    workshop = Workshop(assignment)
    try:
        while True:
            write_message(answers, answered(workshop, assignment, read_message(questions).submission))
    except EOFError:
        return
    finally:
        workshop.close()


def answered(workshop: Workshop, assignment: Assignment, submission: Submission) -> Answer:
    try:
        result, folder = workshop.grade(submission)
        return Answer(grader_version(), result, files_of(folder) if folder else {})
    except OSError as error:
        reason = f"{type(error).__name__}: {error}"[:300]
        if error.errno in MACHINE_FAULTS:
            return Answer(grader_version(), None, fault=reason)
        return Answer(grader_version(), failure(assignment, submission.student, "failed", reason))


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder, which is removed."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    shutil.rmtree(folder)
    return files


def main() -> None:
    """Keep standard output for answers: whatever else is printed goes where errors go."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, answers)
