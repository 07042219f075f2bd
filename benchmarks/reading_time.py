"""How long a lesson takes, by counting: words at 180 a minute, given lines of code at 12 a minute, a minute and a half
for each line of the reference solution, 40 % of that again for finding one's mistakes, and half a minute for each
question of a quiz.

Optional parts (see autograder/lessons/builder/further.py) do not count as core.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import pyphen

from autograder.lessons.builder.expansion import only_imports
from autograder.lessons.builder.further import JUST_RUN, headings, start_of_further, with_parts
from autograder.lessons.builder.paths import LessonPart
from autograder.lessons.builder.quiz_cells import read_questions
from autograder.lessons.builder.rules import NUMBERED
from autograder.lessons.builder.text import TextCell
from autograder.notebooks.statements import parse

WORDS_A_MINUTE = 180
GIVEN_LINES_A_MINUTE = 12
MINUTES_A_WRITTEN_LINE = 1.5
FINDING_MISTAKES = 0.4  # of the time for writing
MINUTES_A_QUESTION = 0.5

# the limits of a lesson
MUCH = 110  # minutes of a core
FIRST = 8  # minutes before the first exercise
STRETCH = 15  # minutes between two
GIVEN = 250  # lines of given code in a core
ONLY_RUN = 8  # definitions below "just run it" in a core

WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
CODE = re.compile(r"```.*?```|\$\$.*?\$\$|\$[^$\n]*\$|`[^`\n]*`|https?://\S+", re.DOTALL)
SENTENCE = re.compile(r"[.!?:](?:\s|$)|\n\s*\n|\n(?=\s*(?:[*|#]|\d+\.))")


@dataclass
class Amount:
    """What a part of a lesson holds: `words` of prose, `given` lines of code, `written` lines of reference solution,
    `questions` of quizzes.
    """

    words: int = 0
    given: int = 0
    written: int = 0
    questions: int = 0

    @property
    def read(self) -> float:
        """Minutes for reading the prose and the given code."""
        return self.words / WORDS_A_MINUTE + self.given / GIVEN_LINES_A_MINUTE

    @property
    def minutes(self) -> float:
        writing = self.written * MINUTES_A_WRITTEN_LINE
        return self.read + writing * (1 + FINDING_MISTAKES) + self.questions * MINUTES_A_QUESTION

    def add(self, other: Amount) -> None:
        self.words += other.words
        self.given += other.given
        self.written += other.written
        self.questions += other.questions


@dataclass
class Reading:
    """A lesson. `stretches` are the minutes of reading before each exercise of the core, from the one before it."""

    core: Amount
    further: Amount
    stretches: list[float]

    @property
    def longest_stretch(self) -> float:
        """The longest time between two exercises, in minutes."""
        return max(self.stretches[1:], default=0.0)


def reading(cells: list[TextCell]) -> Reading:
    """Count a lesson, without hints, tests and the solutions in other styles."""
    found = Reading(Amount(), Amount(), [])
    since = Amount()
    for cell, is_further in with_parts([cell for cell in cells if is_read(cell)]):
        amount = amount_of(cell)
        if is_further:
            found.further.add(amount)
            continue
        found.core.add(amount)
        since.add(amount)
        if cell.is_solution:
            found.stretches.append(since.read)
            since = Amount()
    return found


def only_run(cells: list[TextCell]) -> list[str]:
    """The functions and classes of a core that a student runs and need not read: those below *just run it*."""
    core = cells[: start_of_further([(cell.kind, cell.source) for cell in cells])]
    given = [cell for cell, is_run in with_parts(core, JUST_RUN) if is_run and cell.kind == "code" and is_read(cell)]
    defined = (statement for cell in given if not cell.is_solution for statement in parse(cell.source))
    return [each.name for each in defined if isinstance(each, ast.FunctionDef | ast.ClassDef)]


def part_of(cells: list[TextCell], part: LessonPart) -> list[TextCell]:
    """The cells of a lesson that belong to a part of it. An exercise ends with its last test cell; the next part begins
    after it.
    """
    ends: dict[int, int] = {}
    exercise = 0
    for place, cell in enumerate(cells):
        for _, title in headings(cell):
            exercise = int(found[1]) if (found := NUMBERED.match(title)) else exercise
        if cell.is_test and "quiz" not in cell.tags:
            ends[exercise] = place + 1
    return cells[ends[part.first - 1] if part.first > 1 else 0 : ends[part.last] if part.last else len(cells)]


def minutes_of_week(week: tuple[tuple[LessonPart, ...], ...], cores: Mapping[str, list[TextCell]]) -> float:
    """The minutes of a week of a path; of parts to choose from, those of the longest. `cores`: number -> cells."""
    times = [[reading(part_of(cores[part.number], part)).core.minutes for part in choice] for choice in week]
    return sum(map(max, times))


def is_read(cell: TextCell) -> bool:
    """Whether a student has to read a cell. Imports and tests are folded to one line."""
    if "quiz" in cell.tags:
        return True
    folded = cell.is_test or (cell.kind == "code" and only_imports(cell.source))
    return not (folded or cell.style or {"hint", "visible"} & set(cell.tags))


def amount_of(cell: TextCell) -> Amount:
    """What one cell holds. A question that asks for a prediction counts as words."""
    if "quiz" in cell.tags:
        return Amount(questions=len(read_questions(cell)))
    if cell.kind == "markdown":
        return Amount(words=len(WORD.findall(cell.source)))
    questions = predictions(cell.source)
    asked = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in questions)
    words = [word for node in questions for text in _strings(node) for word in WORD.findall(text)]
    written = solution_lines(cell.source)
    return Amount(len(words), len(code_lines(cell.source)) - written - asked, written)


def predictions(source: str) -> list[ast.Call]:
    """The calls that ask for a prediction. Their text is read as a question, not understood as code."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return []
    called = [node.value for node in statements if isinstance(node, ast.Expr)]
    return [call for call in called if isinstance(call, ast.Call) and ast.unparse(call.func) == "predict"]


def _strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def solution_lines(source: str) -> int:
    """Lines of code between the marks of a solution."""
    parts = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", source, re.DOTALL)
    return sum(len(code_lines(part)) for part in parts)


def code_lines(source: str) -> list[str]:
    """The lines of a source that are neither blank nor only a comment."""
    return [line for line in source.splitlines() if line.strip() and not line.strip().startswith("#")]


def reading_ease(cells: list[TextCell]) -> float:
    """Flesch's reading ease of the prose: 206.835 - 1.015 words per sentence - 84.6 syllables per word. 60 to 70 is
    plain English. Code, formulas and addresses in the prose are one word each, of one syllable. Hyphenation misses some
    syllables, so the figure is a few points too high, but good for comparing lessons.
    """
    text = "\n\n".join(CODE.sub(" x ", cell.source) for cell in cells if cell.kind == "markdown" and is_read(cell))
    words = WORD.findall(text)
    sentences = [part for part in SENTENCE.split(text) if WORD.search(part)]
    if not words:
        return float("nan")
    return 206.835 - 1.015 * len(words) / len(sentences) - 84.6 * sum(map(syllables, words)) / len(words)


def syllables(word: str) -> int:
    """The number of places where a word can be hyphenated, plus one."""
    return len(_dictionary().positions(word.lower())) + 1


@cache
def _dictionary() -> pyphen.Pyphen:
    return pyphen.Pyphen(lang="en_US")
