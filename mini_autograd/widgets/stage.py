"""Large type and pictures that fit the screen for all demos of a notebook, for use in front of an audience."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mini_autograd.widgets.scripts import script
from mini_autograd.widgets.static import with_forms

try:
    import anywidget
    import traitlets
except ImportError:  # without the widget library there is only the large type
    anywidget = None  # type: ignore[assignment]

HERE = Path(__file__).parent
WORDS = "Large type for demos."


class StageStyle:
    """Style rules that apply to a notebook once it shows them."""

    def _repr_html_(self) -> str:
        return f"<style>{(HERE / 'stage.css').read_text(encoding='utf-8')}</style>"

    def __repr__(self) -> str:
        return WORDS


if anywidget is not None:

    class Stage(anywidget.AnyWidget):
        """The live form of `StageStyle`, which also fits the pictures of the notebook to the screen."""

        _esm = script(HERE / "stage.js")
        _css = (HERE / "stage.css").read_text(encoding="utf-8")

        own_id = traitlets.Unicode().tag(sync=True)

        def __init__(self) -> None:
            super().__init__()
            self.own_id = self.model_id

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            return with_forms(
                super()._repr_mimebundle_(**kwargs), {"text/html": StageStyle()._repr_html_(), "text/plain": WORDS}
            )


def on_stage() -> Any:
    """An object that, shown in a notebook, sets all its demos in large type and fits them to the screen."""
    return StageStyle() if anywidget is None else Stage()
