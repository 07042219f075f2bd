"""The button that `pack()` shows: it saves the open notebook, and downloads one file with all lessons.

The file travels in a message, not in the state of the widget, which is saved with the notebook.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from autograder.lessons.student.packing import PACKED, PackingError, pack
from mini_autograd.widgets.scripts import script
from mini_autograd.widgets.static import with_forms

WITHOUT_PYTHON = "Run this cell to get a button that saves all your lessons as one file."


class PackButton(anywidget.AnyWidget):
    """The button for the lessons around a folder."""

    _esm = script(Path(__file__).with_name("pack_button.js"))

    own_id = traitlets.Unicode().tag(sync=True)

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.own_id = self.model_id
        self.on_msg(self._answer)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return with_forms(super()._repr_mimebundle_(**kwargs), {"text/plain": WITHOUT_PYTHON})

    def _answer(self, *_: Any) -> None:
        try:
            zipped = pack(self.folder)
        except (PackingError, OSError) as error:
            self.send({"said": str(error)})
        else:
            said = f"{PACKED} is among your downloads."
            self.send({"name": PACKED, "zip": base64.b64encode(zipped).decode(), "said": said})
