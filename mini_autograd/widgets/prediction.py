"""A question before an answer: a reader commits to a prediction, and only then sees the output of the cell.

The cell runs as a whole; the browser covers the output below the question until there is a prediction. So a run of all
cells does not wait for a reader, and a page without a kernel or widgets shows everything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mini_autograd.widgets.scripts import SET_BY_READERS, script
from mini_autograd.widgets.static import with_forms

try:
    import anywidget
    import traitlets
except ImportError:  # without the widget library the question is shown, and nothing is covered
    anywidget = None  # type: ignore[assignment]

HERE = Path(__file__).parent


class QuestionText:
    """The question alone, as text."""

    def __init__(self, question: str) -> None:
        self.question = question

    def __repr__(self) -> str:
        return f"Predict: {self.question}"


if anywidget is not None:

    class Prediction(anywidget.AnyWidget):
        """The live question. The browser keeps the answer in the notebook, under its question; it is never graded."""

        _esm = script(HERE / "prediction.js")
        _css = (HERE / "demo.css").read_text(encoding="utf-8") + (HERE / "prediction.css").read_text(encoding="utf-8")

        question = traitlets.Unicode().tag(sync=True)
        options: Any = traitlets.List().tag(sync=True)  # empty: the reader types
        answer: Any = traitlets.Unicode(None, allow_none=True).tag(**SET_BY_READERS)  # "" if skipped
        outcome = traitlets.Unicode("").tag(sync=True)  # what came out, once it is known
        own_id = traitlets.Unicode().tag(sync=True)

        def __init__(self, question: str, options: tuple[str, ...]) -> None:
            super().__init__(question=question, options=list(options))
            self.own_id = self.model_id

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            return with_forms(super()._repr_mimebundle_(**kwargs), {"text/plain": repr(QuestionText(self.question))})


def prediction(question: str, *options: str) -> Any:
    """A question for a notebook to show: with `options` to choose from, else with an entry for a number or a text."""
    return QuestionText(question) if anywidget is None else Prediction(question, options)
