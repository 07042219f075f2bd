"""The scripts of our widgets: each is preceded by what all of them need of the notebook around them."""

from __future__ import annotations

from pathlib import Path

COMMON = Path(__file__).parent / "notebook.js"

SET_BY_READERS = {"sync": True, "echo_update": False}
"""The metadata of a trait that the browser sets. ipywidgets sends such a trait back to the browser unless told not to,
and where the kernel was busy meanwhile, that would undo what a reader did since."""


def script(file: Path) -> str:
    """The code of a widget in the browser: what is common, then its own. That exports `initialize` and its `render`."""
    return COMMON.read_text(encoding="utf-8") + "\n" + file.read_text(encoding="utf-8")
