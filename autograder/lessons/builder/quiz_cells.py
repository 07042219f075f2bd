"""Turns a quiz, written as `question(...)` calls, into the cells of a notebook: questions, answers, locked check.

An author only writes text, so the calls are parsed and never run: only literals and these three names may appear.

    question("sum_rule", "Two paths lead from `a` to the output. Its gradient is ...",
        right("the sum over both paths", "Each path contributes."),
        wrong("the last one", "An assignment forgets the first.", misconception="assigned_not_accumulated"))

Options are shuffled, always in the same way for the same key, so that rebuilding a lesson does not move the answers.
"""

from __future__ import annotations

import ast
import json
import random
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import cleandoc

from autograder.lessons.builder.text import TextCell
from autograder.quizzes.sealing import Answer, seal_quiz

FIRST_LINE = "# Run this cell to answer the quiz with clicks."
"""The first line of a check. The cell is folded, so JupyterLab shows only this line, however long it is."""

# The first line is all that JupyterLab shows once the click widget has folded the cell, so it must fit the page.
INSTRUCTION = (
    "Run the next two cells and answer with a click.\n"
    "Or write the letter of your answer between the quotes in the next cell, then run it and the check below it. "
    "Both ways count the same."
)


@dataclass(frozen=True)
class Question:
    """One question. `options` are in the order in which they are shown; exactly one is right."""

    key: str
    text: str
    options: tuple[Answer, ...]

    @property
    def letters(self) -> dict[str, Answer]:
        return dict(zip(string.ascii_lowercase, self.options, strict=False))

    @property
    def right_letter(self) -> str:
        return next(letter for letter, answer in self.letters.items() if answer.right)


def read_questions(cell: TextCell) -> list[Question]:
    """The questions in a quiz cell. Raises LessonTextError unless they are literal, with one right option each."""
    try:
        statements = ast.parse(cell.source).body
    except SyntaxError as error:
        raise cell.error(f"the quiz is not valid Python: {error.msg}", error.lineno or 0) from error
    questions = [_question(cell, statement) for statement in statements]
    keys = [question.key for question in questions]
    if repeated := sorted({key for key in keys if keys.count(key) > 1}):
        raise cell.error(f"question key {repeated[0]!r} is used twice")
    if not questions:
        raise cell.error("a quiz needs at least one question")
    return questions


def expand_quiz(cell: TextCell) -> list[TextCell]:
    """The three cells that a quiz cell becomes: Markdown questions, a solution cell for the letters, a locked check."""
    if not cell.is_test or not cell.grade_id:
        raise cell.error('a quiz needs test="NAME" and points=2')
    questions = read_questions(cell)
    answers = re.sub(r"\W", "_", cell.grade_id) + "_answers"
    sealed = seal_quiz({q.key: q.letters for q in questions}, {q.key: q.text for q in questions})
    points = cell.nbgrader.get("points")
    check = f"{FIRST_LINE}\nquiz({answers}, points={points!r}, sealed={json.dumps(sealed)})"
    marks = {**cell.nbgrader, "grade": False, "solution": True, "locked": False, "grade_id": f"{cell.grade_id}_answers"}
    marks.pop("points", None)
    rest = {name: value for name, value in cell.metadata.items() if name != "tags"}
    return [
        replace(cell, kind="markdown", source=_markdown(questions), metadata={}),
        replace(cell, kind="code", source=_answers(answers, questions), metadata={**rest, "nbgrader": marks}),
        replace(cell, kind="code", source=check, metadata=rest),
    ]


def _markdown(questions: Sequence[Question]) -> str:
    parts = [INSTRUCTION]
    for number, question in enumerate(questions, 1):
        parts.append(f"**Question {number}.** {question.text}")
        parts.append("\n".join(f"- **{letter})** {_indented(answer)}" for letter, answer in question.letters.items()))
    return "\n\n".join(parts)


def _indented(answer: Answer) -> str:
    return answer.text.replace("\n", "\n  ")


def _answers(name: str, questions: Sequence[Question]) -> str:
    empty = [f'    {json.dumps(q.key, ensure_ascii=False)}: "",  # question {n}' for n, q in enumerate(questions, 1)]
    letters = {question.key: question.right_letter for question in questions}
    solution = f"{name} = {json.dumps(letters, ensure_ascii=False)}"
    return "\n".join([f"{name} = {{", *empty, "}", "### BEGIN SOLUTION", solution, "### END SOLUTION"])


def _question(cell: TextCell, statement: ast.stmt) -> Question:
    call = statement.value if isinstance(statement, ast.Expr) else None
    arguments = _arguments(cell, call, statement, "question", ())
    texts = [argument for argument in arguments if isinstance(argument, str)]
    options = [argument for argument in arguments if isinstance(argument, Answer)]
    if len(texts) != 2 or arguments[:2] != texts or not all(text.strip() for text in texts):
        raise cell.error("a question has the form question(key, text, right(...), wrong(...), ...)", statement.lineno)
    key, text = texts
    right = sum(option.right for option in options)
    if right != 1:
        raise cell.error(f"question {key!r} has {right} right options; it needs exactly one", statement.lineno)
    if not 2 <= len(options) <= len(string.ascii_lowercase):
        raise cell.error(f"question {key!r} needs at least one wrong option", statement.lineno)
    random.Random(key).shuffle(options)
    return Question(key, text, tuple(options))


def _option(cell: TextCell, call: ast.expr) -> Answer:
    name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
    if name not in ("right", "wrong"):
        raise cell.error("a question may contain only texts, right(...) and wrong(...)", call.lineno)
    arguments = _arguments(cell, call, call, name, ("misconception",) if name == "wrong" else ())
    if len(arguments) not in (2, 3) or not all(isinstance(text, str) and text.strip() for text in arguments[:2]):
        raise cell.error(
            f"an option has the form {name}(text, why): what the student reads, and why it is {name}", call.lineno
        )
    text, why, misconception = [*arguments, ""][:3]
    return Answer(name == "right", str(why), str(misconception), str(text))


def _arguments(
    cell: TextCell, call: ast.expr | None, place: ast.stmt | ast.expr, name: str, keywords: tuple[str, ...]
) -> list[str | Answer]:
    """The arguments of a call to `name`: texts, options, and the allowed keywords (texts too) last."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name):
        raise cell.error("a quiz cell may contain only question(...) calls", place.lineno)
    for keyword in call.keywords:
        if keyword.arg not in keywords:
            raise cell.error(f"{name}(...) does not know {keyword.arg or '**'!r}", call.lineno)
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return [_text(value) if _is_text(value) else _nested(cell, name, value) for value in values]


def _nested(cell: TextCell, name: str, value: ast.expr) -> Answer:
    if name != "question":
        raise cell.error(f"{name}(...) takes only literal strings", value.lineno)
    return _option(cell, value)


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _text(value: ast.expr) -> str:
    return cleandoc(str(ast.literal_eval(value)))
