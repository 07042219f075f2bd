"""The assignments that a lesson becomes: its core and, if it gives points, its part *Further*.

The text stays one: gates, mistakes and signatures see it whole. *Further* begins as the next lesson would, with the
engine that the core leaves behind; what else it uses of the core, its first cells define.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.checks.cases import Check
from autograder.lessons.builder.cases import checks_of
from autograder.lessons.builder.expansion import only_imports
from autograder.lessons.builder.further import start_of_further
from autograder.lessons.builder.lesson_engines import FIRST_LINE, engine_after, owners_of_names, with_engine
from autograder.lessons.builder.lesson_files import FURTHER, LessonTextError
from autograder.lessons.builder.names import completed, missing_names
from autograder.lessons.builder.text import TextCell
from autograder.notebooks.cells import DEMO, grade_id, has_tag, is_code, is_code_solution, is_grade, is_test
from autograder.notebooks.headings import headings
from autograder.notebooks.magics import plain_python
from autograder.notebooks.statements import bound_names, parse

FOLDED = {"jupyter": {"source_hidden": True}}
WHERE = (
    "*Further*, the optional part of this lesson, is a notebook and an assignment of its own: [{0}](../{0}/{0}.ipynb)."
)
INTRODUCTION = """\
# {title}: further

The optional part of lesson {number}, an assignment of its own. It starts with the engine that you have at the end of \
`{core}`. Run the next cells first."""
START = f"{FIRST_LINE}\nfrom autograder.student import start_lesson\n\nstart_lesson()"
GIVEN = "# Run this cell: it defines what this part uses from the lesson's core{}."


def parted(whole: NotebookNode, text: Path) -> dict[str, NotebookNode]:
    """The notebooks of the assignments that a lesson's whole notebook becomes, by their names. Raises LessonTextError
    if *Further* needs a solution of the core that is no part of the engine.
    """
    cells = whole.cells
    cut = start_of_further([(cell.cell_type, cell.source) for cell in cells])
    core, further = cells[:cut], cells[cut:]
    if not any(map(is_test, further)):
        return {text.stem: whole}
    name = f"{text.stem}{FURTHER}"
    title = next(title for cell in core for title in headings(cell.source))
    introduction = INTRODUCTION.format(title=title, number=text.stem[:2], core=text.stem)
    return {
        text.stem: _like(whole, [*core, _markdown("further", WHERE.format(name))]),
        name: _like(whole, [_markdown("introduction", introduction), *_taken_over(core, further, text), *further]),
    }


def _taken_over(core: Sequence[NotebookNode], further: Sequence[NotebookNode], text: Path) -> Iterator[NotebookNode]:
    """The cells with which *Further* begins: the imports of the core, its engine, and the definitions that are used."""
    engine = engine_after(text)
    known: set[str] = set()
    yield from (cell for cell in core if _is_given(cell) and only_imports(cell.source))
    if engine is not None:
        own = {cell.id for cell in further}
        parts = tuple(part for part in engine.cells if part.lesson != text.stem or part.cell not in own)
        engine = replace(engine, start_of=f"{text.stem}{FURTHER}", cells=parts)
        known |= owners_of_names(engine).keys()
        start = with_engine(TextCell(text.name, 0, "code", START), text, engine)
        yield _code(start.grade_id, start.source, {**start.metadata, **FOLDED})
    parts_of_engine = {part.cell for part in engine.cells} if engine else set()
    given = [cell for cell in core if _is_given(cell) and not is_code_solution(cell) and cell.id not in parts_of_engine]
    checks = checks_of(text)
    for is_demo in (False, True):  # grading runs no demonstrations, so the other cells may need nothing of them
        offered = [plain_python(cell.source)[0] for cell in given if is_demo or not has_tag(cell, DEMO)]
        used = _used([cell for cell in further if is_code(cell) and has_tag(cell, DEMO) == is_demo], checks)
        imported = bound_names(statement for source in offered if only_imports(source) for statement in parse(source))
        script = completed("", offered, known | imported, used).strip()
        known |= imported | bound_names(parse(script))
        if withheld := {*used, *missing_names(script)} & _solved(core) - known:
            raise LessonTextError(
                f"{text.name}: Further uses {min(withheld)!r}, a solution of the core; tag its cell engine"
            )
        if script:
            tags = {"tags": [DEMO]} if is_demo else {}
            source = f"{GIVEN.format(' in demonstrations' * is_demo)}\n{script}"
            yield _code("given_demo" if is_demo else "given", source, {**FOLDED, **tags})


def _used(cells: Sequence[NotebookNode], checks: Mapping[str, Check]) -> list[str]:
    """The names that cells use before they define them, in their order."""
    used: dict[str, None] = {}
    defined: set[str] = set()
    for cell in cells:
        source = plain_python(cell.source)[0]
        used |= dict.fromkeys(name for name in missing_names(source) if name not in defined)
        defined |= bound_names(parse(source))
        check = checks.get(grade_id(cell).removeprefix("test_"))
        used |= dict.fromkeys(sorted(check.needed() - defined) if check else ())
    return [*used]


def _solved(core: Sequence[NotebookNode]) -> set[str]:
    return bound_names(statement for cell in core if is_code_solution(cell) for statement in parse(cell.source))


def _is_given(cell: NotebookNode) -> bool:
    return is_code(cell) and not is_grade(cell)


def _like(whole: NotebookNode, cells: Sequence[NotebookNode]) -> NotebookNode:
    """A notebook with other cells and the rest of this one."""
    notebook = nbformat.from_dict({**whole, "cells": list(cells)})
    nbformat.validate(notebook)
    return notebook


def _markdown(name: str, source: str) -> NotebookNode:
    return nbformat.from_dict({"cell_type": "markdown", "id": name, "metadata": {}, "source": source})


def _code(name: str, source: str, metadata: dict[str, object]) -> NotebookNode:
    content = {"cell_type": "code", "id": name, "metadata": metadata, "source": source}
    return nbformat.from_dict(content | {"execution_count": None, "outputs": []})
