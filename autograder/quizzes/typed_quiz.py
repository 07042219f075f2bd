"""Quizzes and hints in a notebook. The right answers are sealed in the notebook; a chosen letter opens only its own
explanation, so a wrong answer never shows which letter is right. A class may hold the right answers back; the quiz
then says which letters are recorded.
"""

from __future__ import annotations

from typing import Any

from autograder.cards.check_report import Line, Report
from autograder.cards.style import EMPHASIS, SANS, STRONG, TEXT, steps
from autograder.quizzes.sealing import (
    SealError,
    UnknownLetterError,
    is_held_back,
    letter_in,
    open_answer,
    open_hints,
    open_questions,
    question_keys,
)
from autograder.runs.errors import LessonError

LONGEST_HINT = 5_000
LONGEST_QUESTION = 120
LABELS = ("First hint", "Second hint", "Third hint")


def quiz_report(answers: Any, sealed: str, points: float | None) -> Report:
    """The verdict on every question of a quiz, or the recorded answers if the right ones are held back. `answers` may
    be anything; only its plain strings count.
    """
    try:
        if is_held_back(sealed):
            return _recorded(answers, sealed)
        keys = question_keys(sealed)
    except SealError as error:
        raise LessonError(str(error)) from error
    texts = {question.key: question.text for question in open_questions(sealed)}
    lines = tuple(_question(sealed, key, _asked(texts.get(key, ""), key), answers) for key in keys)
    share = sum(line.passed for line in lines) / max(1, len(lines))
    return Report("Quiz", lines, share * (points or 0.0), points, names_all=True)


def _asked(text: str, key: str) -> str:
    """A question in one line: its text, or its key if the quiz was sealed without texts."""
    line = " ".join(EMPHASIS.sub(r"\1", STRONG.sub(r"\1", text.replace("`", ""))).split()) or key.replace("_", " ")
    return line if len(line) <= LONGEST_QUESTION else f"{line[: LONGEST_QUESTION - 3]}..."


def _question(sealed: str, key: str, name: str, answers: Any) -> Line:
    letter = _letter(answers, key)
    if letter is None:
        return Line(name, "unanswered", "no answer yet")
    try:
        answer = open_answer(sealed, key, letter)
    except UnknownLetterError as error:
        return Line(name, "wrong", str(error))
    chosen = f"{letter_in(letter)}: {answer.text or ''}".strip().replace("`", "")
    return Line(name, "right" if answer.right else "wrong", answer.explanation, (("your answer", chosen),))


def _letter(answers: Any, key: str) -> Any:
    """A student's answer to a question; None if it is missing or blank."""
    letter = answers.get(key) if type(answers) is dict else None
    return None if type(letter) is str and not letter.strip() else letter


def _recorded(answers: Any, sealed: str) -> Report:
    """The recorded answers to a quiz whose right answers are held back until it is graded."""
    lines = []
    for question in open_questions(sealed):
        letter, name = _letter(answers, question.key), _asked(question.text, question.key)
        chosen = letter_in(letter)
        if letter is None:
            lines.append(Line(name, "unanswered", "no answer yet"))
        elif chosen not in question.options:
            letters = ", ".join(sorted(question.options))
            lines.append(Line(name, "unanswered", f"answer {question.key!r} with one of the letters {letters}"))
        else:
            lines.append(Line(name, "answered", f"{chosen}: {question.options[chosen]}".replace("`", "")))
    return Report("Quiz, explained when it is graded", tuple(lines))


class Hints:
    """Up to three hints, each folded inside the one before it, as HTML and as text."""

    def __init__(self, sealed: str) -> None:
        try:
            self.hints = open_hints(sealed)[: len(LABELS)]
        except SealError as error:
            raise LessonError(str(error)) from error

    def _repr_html_(self) -> str:
        style = f"font-family:{SANS};font-size:13px;line-height:1.5;color:{TEXT}"
        return f'<div style="{style}">{steps(LABELS, self.hints, LONGEST_HINT)}</div>'

    def __repr__(self) -> str:
        return f"{len(self.hints)} hint{'s' * (len(self.hints) != 1)} (shown in a notebook)"
