"""Makes the student's version of a lesson in this process, with nbgrader's own preprocessors and without a gradebook.

`nbgrader generate_assignment` gives the same notebook; this module takes milliseconds and needs no course folder. It
searches the result for anything that a student must not see, and refuses it if something is found.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from typing import Any

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearSolutions, SaveCells
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from autograder.lessons.builder.case_files import without_hidden_cases
from autograder.nbgrader_plugins.configuration import RELEASE
from autograder.nbgrader_plugins.release import QuizStubs, ReleaseError
from autograder.notebooks.cells import grade_id
from autograder.notebooks.regions import edges, regions
from autograder.quizzes import sealing

SHORTEST_SECRET = 20


def release_notebook(source: NotebookNode, config: Config | None = None) -> NotebookNode:
    """The student's version of an instructor's notebook. Raises ReleaseError when it would give something away."""
    steps = [step for step in map(import_item, RELEASE) if step is not SaveCells]
    released = _processed(source, steps, config)
    released.metadata.pop("jupytext", None)
    verify_release(source, released)
    return released


def without_solutions(source: NotebookNode, config: Config | None = None) -> NotebookNode:
    """The instructor's notebook with its solutions replaced by stubs and its hidden tests kept."""
    return _processed(source, [ClearSolutions, QuizStubs], config)


def verify_release(source: NotebookNode, released: NotebookNode) -> None:
    """Raise ReleaseError if a release shows a solution, a hidden test, a hint, a quiz's answer or an output."""
    secrets = list(_secrets(source))  # gathered once: opening the sealed texts costs more than the search
    for cell in released.cells:
        name = grade_id(cell) or cell.id
        if edge := next(edges(cell.source), None):
            raise ReleaseError(f"cell {name!r} still has {str(edge)!r}")
        for tag in cell.metadata.get("tags", []):
            if tag in ("quiz", "hint") or tag.startswith("style:"):
                raise ReleaseError(f"cell {name!r} is for the builder only (tag {tag!r})")
        if cell.get("outputs"):
            raise ReleaseError(f"cell {name!r} has outputs")
        text = _squeezed(cell.source)
        for kind, secret in secrets:
            if secret in text:
                raise ReleaseError(f"cell {name!r} shows {kind}: {secret[:60]!r}")


def verify_helpers(source: NotebookNode, files: Mapping[str, bytes]) -> None:
    """Raise ReleaseError if a module beside a lesson's notebook shows what the release hides."""
    secrets = list(_secrets(source))
    for name, content in files.items():
        text = _squeezed(content.decode("utf-8")) if name.endswith(".py") else ""
        if name.startswith("checks_") and text != _squeezed(without_hidden_cases(content.decode("utf-8"))):
            raise ReleaseError(f"{name} shows hidden cases")
        for kind, secret in secrets:
            if secret in text:
                raise ReleaseError(f"{name} shows {kind}: {secret[:60]!r}")


def _secrets(source: NotebookNode) -> Iterator[tuple[str, str]]:
    """Texts that must not be readable in a release; short ones are left out, since they could occur anywhere."""
    for cell in source.cells:
        for region in regions(cell.source):
            yield from _long_enough(region.kind.lower(), region.text)
        for sealed in sealing.SEALED_TEXT.findall(cell.source):
            if sealed.startswith("hints"):
                for hint in sealing.open_hints(sealed):
                    yield from _long_enough("a hint", hint)
            else:
                for key in sealing.question_keys(sealed):
                    for letter in sealing.option_letters(sealed, key):
                        answer = sealing.open_answer(sealed, key, letter)
                        yield from _long_enough("an explanation of the quiz", answer.explanation)


def _long_enough(kind: str, text: str) -> Iterator[tuple[str, str]]:
    squeezed = _squeezed(text)
    if len(squeezed) >= SHORTEST_SECRET:
        yield kind, squeezed


def _squeezed(text: str) -> str:
    """The text with every run of whitespace as one space, so that indentation does not hide a copy."""
    return " ".join(cleandoc(text).split())


def _processed(source: NotebookNode, steps: list[type], config: Config | None) -> NotebookNode:
    notebook = copy.deepcopy(source)
    resources: dict[str, Any] = ResourcesDict(nbgrader={}, metadata={})
    for step in steps:
        notebook, resources = step(config=config or Config())(notebook, resources)
    return notebook
