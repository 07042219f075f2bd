"""Exported pages without a kernel: a still picture in place of each widget that has one.

nbconvert prefers the live widget to the picture in the same output, and then shows nothing if no script can be loaded.
`StillPictures` takes that choice away. `jupyter_nbconvert_config.json`, which is installed with this package, makes
`jupyter nbconvert --to html` use it. Otherwise, pass that file with `--config`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from nbconvert.preprocessors import Preprocessor

VIEW, STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
PICTURES = ("image/svg+xml", "image/png", "text/html")
REFERENCE = re.compile(r"IPY_MODEL_(\w+)")


class StillPictures(Preprocessor):
    """Drops the live view from outputs that also have a picture, and the state of widgets that are no longer shown."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        outputs = [output for cell in nb.cells for output in cell.get("outputs", ())]
        shown = set()
        for data in [output.data for output in outputs if "data" in output]:
            if VIEW in data and any(kind in data for kind in PICTURES):
                del data[VIEW]
            elif VIEW in data:
                shown.add(data[VIEW]["model_id"])
        keep_state(nb, shown)
        return nb, resources


def keep_state(nb: Any, shown: set[str]) -> None:
    """Keep only the state of the widgets with these ids, and of those they refer to, in the notebook's metadata."""
    states = nb.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    wanted, waiting = set(), list(shown)
    while waiting:
        model = waiting.pop()
        if model in states and model not in wanted:
            wanted.add(model)
            waiting += REFERENCE.findall(json.dumps(states[model]))
    for model in states.keys() - wanted:
        del states[model]
    if not states:
        nb.metadata.pop("widgets", None)
