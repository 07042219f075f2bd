"""The scripts of our widgets: each is preceded by common code that connects it to the notebook."""

from __future__ import annotations

from pathlib import Path

COMMON = Path(__file__).parent / "notebook.js"

SET_BY_READERS = {"sync": True, "echo_update": False}
"""The metadata of a trait that the browser sets. By default, ipywidgets sends the value of such a trait back to the
browser. If the kernel was busy in between, that would undo what the reader has done since."""


def script(file: Path) -> str:
    """The browser code of a widget: the common code, then its own, which exports `initialize` and its `render`."""
    return COMMON.read_text(encoding="utf-8") + "\n" + file.read_text(encoding="utf-8")
