"""The code and the style of the widgets for pages without a notebook."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from mini_autograd.widgets.demo import DemoWidget
from mini_autograd.widgets.demos.be_the_engine import EngineGame
from mini_autograd.widgets.graph_explorer import GraphExplorer
from mini_autograd.widgets.scripts import EVALUATOR


def write_widgets(folder: Path) -> None:
    """Write the code and the style of the widgets as a script and a style sheet, which a page may load from a file."""
    folder.mkdir()
    kinds: dict[str, Any] = {"demo": DemoWidget, "explorer": GraphExplorer, "game": EngineGame}
    scripts = [f"liveWidgets.{kind} = (() => {{\n{as_script(widget._esm)}\n}})();" for kind, widget in kinds.items()]
    (folder / "widgets.js").write_text("\n".join(["const liveWidgets = {};", *scripts]), encoding="utf-8")
    shutil.copy(EVALUATOR, folder)  # for the game of the front page
    styles = dict.fromkeys(str(widget._css) for widget in kinds.values())
    (folder / "widgets.css").write_text("\n".join(styles), encoding="utf-8")


def as_script(module: object) -> str:
    """A module of JavaScript as the body of a function: browsers load no module from a file."""
    return str(module).replace("export default", "return")
