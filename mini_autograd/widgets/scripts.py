"""The scripts of our widgets: each is preceded by common code that connects it to the notebook."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
COMMON, EVALUATOR = HERE / "notebook.js", HERE / "evaluator.js"

SET_BY_READERS = {"sync": True, "echo_update": False}
"""The metadata of a trait that the browser sets. By default, ipywidgets sends the value of such a trait back to the
browser. If the kernel was busy in between, that would undo what the reader has done since."""


def in_words(error: BaseException) -> str:
    """What a reader is told in place of an answer. A ValueError already says what to do."""
    if isinstance(error, KeyboardInterrupt):
        return "You interrupted Python before it was done. Choose the setting again."
    if isinstance(error, ValueError):
        return str(error)
    return f"Python could not compute this: {type(error).__name__}: {error}. Choose another setting, or Reset."


def script(*files: Path) -> str:
    """The browser code of a widget: the common code, then its own, which exports `initialize` and its `render`."""
    return "\n".join(file.read_text(encoding="utf-8") for file in (COMMON, *files))
