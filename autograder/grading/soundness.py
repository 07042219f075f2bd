"""What goes wrong most in assignments, found before anybody hands anything in. A finding is a kind with its places.

The untouched release is judged as if a student had handed it in: what it earns, nobody has to work for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.grading.course import Course
from autograder.grading.submission.assignments import Assignment, Submission
from autograder.grading.submission.worker import Workshop
from autograder.notebooks.cells import grade_id, is_solution
from autograder.notebooks.regions import LINE_END, MARK_SCHEME, SOLUTION, edges, regions

Place = tuple[str, str]  # a kind, and the cell or notebook in which it is
PASSED, PARTLY = "passed untouched", "earned untouched"
MISTYPED, NOT_CLEARED, ATTACHED = "mistyped", "not cleared", "attached"
IN_WORDS = {
    PASSED: "the untouched release already passes {}: an answer is left in the release, or the test asks for nothing "
    "that is missing. Everybody gets these points.",
    PARTLY: "the untouched release already earns some of the points of {}: everybody gets these.",
    MISTYPED: "a line looks like the edge of a region and is none, so students see what it should hide: {}. nbgrader "
    "knows ### BEGIN SOLUTION, ### BEGIN HIDDEN TESTS and ### BEGIN MARK SCHEME, and the same with END.",
    NOT_CLEARED: "the release has the same answer as the source in {}. Put it between ### BEGIN SOLUTION and ### END "
    "SOLUTION, and release again.",
    ATTACHED: "students get a picture that only a solution or a mark scheme shows, in {}: nbgrader removes the text, "
    "and not the attachment. Put the picture into a file that is not released, or into the text as data.",
}
LOOKS_LIKE_AN_EDGE = re.compile(
    r"\W*(BEGIN|END)[\W_]*(HIDDEN[\W_]*TESTS?|SOLUTIONS?|MARK(ING)?[\W_]*SCHEMES?)\W*", re.IGNORECASE
)
ATTACHMENT = re.compile(r"attachment:([^\s)\"']+)")


def in_words(found: list[Place]) -> list[str]:
    """A sentence for each kind, with all its places."""
    places = {kind: ", ".join(dict.fromkeys(where for one, where in found if one == kind)) for kind in IN_WORDS}
    return [sentence.format(places[kind]) for kind, sentence in IN_WORDS.items() if places[kind]]


def unsound(course: Course, assignment: Assignment) -> list[Place]:
    """What is wrong with the assignment and its release. `assignment` has its trials."""
    released = _released(course, assignment)
    found = list(_untouched(assignment, released))
    for name, source in _sources(assignment).items():
        found += _mistyped(name, source)
        if raw := released.get(f"{name}.ipynb"):
            found += _left_in(source, nbformat.reads(raw.decode(), as_version=4))
    return found


def _sources(assignment: Assignment) -> dict[str, NotebookNode]:
    files = ((name, assignment.files.get(f"{name}.ipynb")) for name in assignment.notebooks)
    return {name: nbformat.reads(raw.decode(), as_version=4) for name, raw in files if raw is not None}


def _released(course: Course, assignment: Assignment) -> Mapping[str, bytes]:
    folder = course.folder("release", ".", assignment.name)
    paths = (Path(folder, f"{name}.ipynb") for name in assignment.notebooks)
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def _untouched(assignment: Assignment, released: Mapping[str, bytes]) -> Iterator[Place]:
    """The tests of which the release earns points, as it is handed out."""
    if not released:
        return
    workshop = Workshop(assignment)
    try:
        result, _ = workshop.grade(Submission("untouched", released))
    finally:
        workshop.close()
    for cell in result.cells:
        if cell.points and cell.max_points:
            yield (PASSED if cell.full else PARTLY), repr(cell.grade_id)


def _mistyped(name: str, source: NotebookNode) -> Iterator[Place]:
    for cell in source.cells:
        known = {edge.line for edge in edges(cell.source)}
        for number, line in enumerate(LINE_END.split(cell.source), 1):
            if number not in known and LOOKS_LIKE_AN_EDGE.fullmatch(line):
                yield MISTYPED, f"{line.strip()!r} in {repr(grade_id(cell)) if grade_id(cell) else f'{name}.ipynb'}"


def _left_in(source: NotebookNode, released: NotebookNode) -> Iterator[Place]:
    """Answers and pictures that should not be in the release."""
    handed_out = {grade_id(cell): cell for cell in released.cells if grade_id(cell)}
    for cell in source.cells:
        given = handed_out.get(grade_id(cell))
        if given is None:
            continue
        hidden = [region for region in regions(cell.source) if region.kind in (SOLUTION, MARK_SCHEME)]
        if is_solution(cell) and hidden and given.source == cell.source:
            yield NOT_CLEARED, repr(grade_id(cell))
        shown = set(ATTACHMENT.findall(given.source))
        pictures = {picture for region in hidden for picture in ATTACHMENT.findall(region.text)} - shown
        if pictures & set(given.get("attachments", {})):
            yield ATTACHED, repr(grade_id(cell))
