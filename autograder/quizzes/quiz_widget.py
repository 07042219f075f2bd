"""A quiz that is answered with clicks: the same questions, answers and points as the typed form, kept in step with it.

The browser opens the sealed record of the chosen option without Python, and writes its letter into the cell of the
answers, which is what gets graded. Python puts the letter into the dictionary of answers, so that the kernel knows it
too, and renews the card in the output for pages without a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from autograder.quizzes.sealing import OpenQuestion, letter_in
from mini_autograd.widgets.scripts import SET_BY_READERS, script

HERE = Path(__file__).parent


class QuizWidget(anywidget.AnyWidget):
    """The live quiz. `renewed` gives the current mime bundle of the quiz, for pages without widgets."""

    _esm = script(HERE / "quiz.js")
    _css = (HERE / "quiz.css").read_text(encoding="utf-8")

    questions: Any = traitlets.List().tag(sync=True)
    answers: Any = traitlets.Dict().tag(**SET_BY_READERS)
    still: Any = traitlets.Dict().tag(sync=True)
    own_id = traitlets.Unicode().tag(sync=True)
    folds = traitlets.Bool(True).tag(sync=True)

    def __init__(
        self, questions: list[OpenQuestion], typed: dict[str, Any], renewed: Callable[[], dict[str, str]]
    ) -> None:
        self._typed, self._renewed = typed, renewed
        super().__init__(
            questions=[vars(question) for question in questions],
            answers={question.key: letter_of(question, typed.get(question.key)) for question in questions},
        )
        self.own_id = self.model_id
        self.observe(self._take, "answers")

    def _take(self, change: Any) -> None:
        for question in self.questions:
            self._typed[question["key"]] = str(change["new"].get(question["key"], ""))
        self.still = self._renewed()

    def bundle(self) -> dict[str, Any]:
        """The part of a mime bundle that makes a notebook show the widget; the bundle also holds the card."""
        shown: Any = self._repr_mimebundle_()
        data = shown[0] if isinstance(shown, tuple) else shown or {}
        return {kind: value for kind, value in data.items() if kind != "text/plain"}


def letter_of(question: OpenQuestion, answer: Any) -> str:
    """An answer as the letter of one of the question's options, or nothing."""
    letter = letter_in(answer)
    return letter if letter in question.options else ""
