"""The Python half of the demos of a web page, without a kernel: widgets tell the page what changes, and are told.
`demos.js` runs this in a worker.
"""

import json
from collections.abc import Callable
from typing import Any

import comm
from comm.base_comm import BaseComm
from ipywidgets import Widget

widgets: dict[str, Widget] = {}


def connect(tell: Callable[[str, str], None]) -> None:
    """Have `tell` called with the id of a widget, and in JSON what changes in it, in place of a message of a kernel."""

    class Wire(BaseComm):
        def publish_msg(self, msg_type: str, data: Any = None, *others: Any, **options: Any) -> None:
            if data and data.get("method") == "update":
                tell(self.comm_id, json.dumps(data["state"]))

    comm.create_comm = Wire


def opened(widget: Widget) -> str:
    """Keep a widget for the page. Returns its state in JSON."""
    widgets[widget.model_id] = widget
    return json.dumps(widget.get_state())


def changed(widget_id: str, state: str) -> None:
    """Take what a reader has changed."""
    widgets[widget_id].set_state(json.loads(state))
