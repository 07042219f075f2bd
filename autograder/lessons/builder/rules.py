"""The rules that a lesson's text must keep before it becomes a notebook: one function each, raising `LessonTextError`.

A rule reads the cells as the author wrote them, because an error has to point at the author's line.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograder.lessons.builder.further import headings
from autograder.lessons.builder.rules_of_tests import (
    checks_exist,
    graded_cells_have_points,
    points_in_a_test_add_up,
    tests_assert,
)
from autograder.lessons.builder.text import PLAIN_TAGS, STYLE_TAG, TextCell, syntax_tree
from autograder.notebooks.giving_points import called
from autograder.notebooks.regions import HIDDEN_TESTS, MARK_SCHEME, SOLUTION, edges, regions
from autograder.notebooks.statements import bound_names

KNOWN_METADATA = {"nbgrader", "tags", "exercise", "title", "jupyter", "items", "check", "worth", "question"}
MOST_HINTS = 3
REGION_NAMES = {SOLUTION: "a solution", HIDDEN_TESTS: "hidden tests", MARK_SCHEME: "a mark scheme"}
LIKE_AN_EDGE = re.compile(r"\W*(BEGIN|END)[\W_]+(HIDDEN[\W_]*TESTS?|SOLUTIONS?|MARK[\W_]*SCHEMES?)\W*", re.IGNORECASE)
NUMBERED = re.compile(r"Exercise (\d+)\b")


@dataclass(frozen=True)
class Owner:
    """The engine cell that a name comes from, and whether it is imported there."""

    lesson: str
    cell: str
    imported: bool


def check_lesson(cells: Sequence[TextCell]) -> None:
    """Raise LessonTextError for the first broken rule."""
    for rule in RULES:
        rule(cells)


def known_words_on_the_cell_line(cells: Sequence[TextCell]) -> None:
    for cell in cells:
        if "incorrectly_encoded_metadata" in cell.metadata or "=" in str(cell.metadata.get("title", "")):
            raise cell.error('the cell line cannot be read; values must be JSON, as in tags=["demo"]')
        if unknown := sorted(set(cell.metadata) - KNOWN_METADATA):
            raise cell.error(f"unknown metadata {unknown[0]!r} on the cell line")
        for tag in cell.tags:
            if tag not in PLAIN_TAGS and not STYLE_TAG.fullmatch(str(tag)):
                raise cell.error(
                    f"unknown tag {tag!r}; the known tags are style:NAME and {', '.join(sorted(PLAIN_TAGS))}"
                )
        if cell.exercise and not (cell.style or "hint" in cell.tags):
            raise cell.error("exercise= belongs only on hint and style cells")


def ids_are_there_and_unique(cells: Sequence[TextCell]) -> None:
    seen: dict[str, int] = {}
    for cell in cells:
        if not isinstance(cell.metadata.get("nbgrader", {}), dict):
            raise cell.error("nbgrader= must be a dictionary")
        if "nbgrader" in cell.metadata and not cell.grade_id:
            raise cell.error("this cell has nbgrader metadata but no grade_id")
        names = [cell.grade_id, f"{cell.grade_id}_answers"] if "quiz" in cell.tags else [cell.grade_id]
        for name in filter(None, names):
            if not re.fullmatch(r"[A-Za-z0-9_\-]+", name):
                raise cell.error(f"grade_id {name!r} may contain only letters, digits, - and _")
            if name in seen:
                raise cell.error(f"grade_id {name!r} is used twice, first in line {seen[name]}")
            seen[name] = cell.line


def predictions_have_questions_of_their_own(cells: Sequence[TextCell]) -> None:
    """A prediction is kept under its question."""
    seen: dict[str, int] = {}
    for cell in cells:
        if cell.kind != "code" or "predict" not in cell.source or "quiz" in cell.tags:
            continue
        for node in ast.walk(syntax_tree(cell)):
            asked = node.args[0] if isinstance(node, ast.Call) and called(node) == "predict" and node.args else None
            if isinstance(asked, ast.Constant):
                question = str(asked.value)
                if question in seen:
                    raise cell.error(f"{question!r} is asked twice, first in line {seen[question]}", asked.lineno)
                seen[question] = cell.line + asked.lineno


def edges_are_spelled_right(cells: Sequence[TextCell]) -> None:
    """What looks like the edge of a region and is none would be released with all that it was to hide."""
    for cell in cells:
        right = {edge.line for edge in edges(cell.source)}
        for number, line in enumerate(cell.source.splitlines(), 1):
            if number not in right and LIKE_AN_EDGE.fullmatch(line):
                words = " or ".join(f"`### {side} {kind}`" for side in ("BEGIN", "END") for kind in REGION_NAMES)
                raise cell.error(f"{line.strip()!r} hides nothing; write {words}", number)


def regions_are_balanced(cells: Sequence[TextCell]) -> None:
    for cell in cells:
        opened = ""
        for edge in edges(cell.source):
            if edge.begins and opened:
                raise cell.error(f"{edge} inside {REGION_NAMES[opened]}", edge.line)
            if not edge.begins and opened != edge.kind:
                raise cell.error(f"{edge} without BEGIN {edge.kind}", edge.line)
            opened = edge.kind if edge.begins else ""
        if opened:
            raise cell.error(f"BEGIN {opened} without END {opened}")


def regions_stand_where_they_belong(cells: Sequence[TextCell]) -> None:
    for cell in cells:
        kinds = {edge.kind for edge in edges(cell.source)}
        if cell.is_solution and cell.kind == "code" and SOLUTION not in kinds and not cell.nbgrader.get("grade"):
            raise cell.error("a solution cell needs ### BEGIN SOLUTION and ### END SOLUTION")
        if SOLUTION in kinds and not cell.is_solution and not cell.style:
            raise cell.error("a solution region outside a solution cell would reach the students")
        if HIDDEN_TESTS in kinds and not cell.is_test:
            raise cell.error("hidden tests outside a test cell would reach the students")


def hints_and_styles_name_an_exercise(cells: Sequence[TextCell]) -> None:
    ids = {cell.grade_id for cell in cells if cell.grade_id}
    solutions = {cell.grade_id for cell in cells if cell.is_solution}
    hints = Counter[str]()
    for cell in cells:
        if "hint" in cell.tags:
            if cell.kind != "markdown" or cell.exercise not in ids:
                raise cell.error(
                    "a hint must be a Markdown cell whose exercise= is the grade_id of a cell in this lesson"
                )
            hints[cell.exercise] += 1
            if hints[cell.exercise] > MOST_HINTS:
                raise cell.error(f"exercise {cell.exercise!r} has more than {MOST_HINTS} hints")
        if cell.style and (cell.kind != "code" or cell.exercise not in solutions or cell.nbgrader):
            raise cell.error(
                "a style must be a code cell without nbgrader= whose exercise= is the grade_id of a solution cell"
            )


def exercises_have_a_lead_in(cells: Sequence[TextCell]) -> None:
    """Between a solution cell and the graded cell before it there is prose that says what to do."""
    prose = False
    for cell in cells:
        if cell.is_solution and not prose and not cell.is_question:
            raise cell.error("an exercise needs a lead-in: a Markdown cell between it and the previous exercise")
        if cell.grade_id:
            prose = False
        elif cell.kind == "markdown" and cell.source.strip() and "hint" not in cell.tags:
            prose = True


def questions_say_what_counts(cells: Sequence[TextCell]) -> None:
    """A person who grades a text reads the mark scheme below the question."""
    for cell in filter(lambda cell: cell.is_question, cells):
        found = [region for region in regions(cell.source) if region.kind == MARK_SCHEME and region.text.strip()]
        if cell.kind != "markdown" or len(found) != 1 or found[0].lines[0] == 1:
            raise cell.error("a question needs its text, and one ### BEGIN MARK SCHEME to ### END MARK SCHEME below it")


def exercises_are_numbered_in_order(cells: Sequence[TextCell]) -> None:
    """Headings such as `### Exercise 2: power` count from 1, through optional parts too; other text refers to them."""
    expected = 1
    for cell in cells:
        for _, title in headings(cell):
            if numbered := NUMBERED.match(title):
                if int(numbered[1]) != expected:
                    said = f"{numbered[0]!r} is exercise {expected} of the lesson: change the number in its heading"
                    raise cell.error(said)
                expected += 1


def names_of_the_builder_are_imported(cells: Sequence[TextCell]) -> None:
    """The builder writes calls of `quiz` and `hints`; the lesson must have imported them."""
    imported: set[str] = set()
    for cell in cells:
        if cell.kind != "code" or "quiz" in cell.tags:
            continue
        tree = syntax_tree(cell)
        for node in ast.walk(tree) if "autograder.student" in cell.source else ():
            if isinstance(node, ast.ImportFrom) and node.module == "autograder.student":
                imported |= {alias.asname or alias.name for alias in node.names}
    starts = [cell for cell in cells if re.search(r"^start_lesson\(", cell.source, re.MULTILINE)]
    tagged = {tag: [cell for cell in cells if tag in cell.tags] for tag in ("quiz", "hint")}
    for name, users in (("quiz", tagged["quiz"]), ("hints", tagged["hint"]), ("start_lesson", starts)):
        if users and name not in imported:
            raise users[0].error(f"the lesson must import {name} from autograder.student")


def engine_cells_are_code(cells: Sequence[TextCell]) -> None:
    for cell in cells:
        if "engine" in cell.tags and (cell.kind != "code" or cell.is_test or cell.style or "demo" in cell.tags):
            raise cell.error(
                "an engine cell must be a code cell, either given or a solution, not a test, demo or style"
            )


def start_lesson_stands_alone(cells: Sequence[TextCell]) -> None:
    """The builder puts the engine into this call and has to find it: once, without arguments, on its own line."""
    calls = 0
    for cell in cells:
        if cell.kind != "code" or "quiz" in cell.tags or "start_lesson" not in cell.source:
            continue
        for node in ast.walk(syntax_tree(cell)):
            if called(node) == "start_lesson":
                calls += 1
                if calls > 1 or "start_lesson()" not in (line.rstrip() for line in cell.source.splitlines()):
                    raise cell.error("call start_lesson() once, without arguments, on a line of its own")
                if cell.is_solution or cell.is_test or "demo" in cell.tags:
                    raise cell.error("start_lesson() belongs in an ordinary cell at the start")


def engine_names_are_kept(cells: Sequence[TextCell], owners: Mapping[str, Owner]) -> None:
    """A cell outside the engine binds no name of the engine (`owners`) at its top level: the engine looks its functions
    up when it calls them, and would find whatever a demo has left under that name.
    """
    for cell in cells:
        if cell.kind != "code" or "engine" in cell.tags or "quiz" in cell.tags or cell.style:
            continue
        for statement in syntax_tree(cell).body:
            importing = isinstance(statement, ast.Import | ast.ImportFrom)
            for name in sorted(bound_names([statement]) & owners.keys()):
                if not (importing and owners[name].imported):
                    owner = f"cell {owners[name].cell} of {owners[name].lesson}"
                    raise cell.error(
                        f"{name!r} belongs to the engine ({owner}), which would use this one instead; choose another "
                        "name here",
                        statement.lineno,
                    )


def items_are_numbers(cells: Sequence[TextCell]) -> None:
    for cell in cells:
        items = cell.metadata.get("items", "")
        if not isinstance(items, str) or not all(re.fullmatch(r"F?\d{1,3}|gap:\w+", item) for item in items.split()):
            raise cell.error('items= must be one string of checklist numbers, as in items="24 47 F1"')


RULES = (
    known_words_on_the_cell_line,
    ids_are_there_and_unique,
    graded_cells_have_points,
    edges_are_spelled_right,
    regions_are_balanced,
    tests_assert,
    checks_exist,
    points_in_a_test_add_up,
    regions_stand_where_they_belong,
    hints_and_styles_name_an_exercise,
    exercises_have_a_lead_in,
    questions_say_what_counts,
    exercises_are_numbered_in_order,
    names_of_the_builder_are_imported,
    engine_cells_are_code,
    start_lesson_stands_alone,
    predictions_have_questions_of_their_own,
    items_are_numbers,
)
