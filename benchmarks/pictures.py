"""The pictures of demos in README and docs, taken of the live widgets: `python -m benchmarks.pictures [FOLDER]`.

Writes them to `course/pictures`, or to a folder. The demos run in a real JupyterLab, in the light theme.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from tests.browser import conftest

PROJECT = Path(__file__).resolve().parents[1]
WIDTH, SETTLED = 1230, 700  # CSS pixels of the window; milliseconds until a picture has its size
GRAPH = """import mini_autograd as ma
from mini_autograd.widgets import explore, lifetime, optimizer_paths
a, b, c = (ma.tensor(value, requires_grad=True) for value in (2.0, -3.0, 0.5))
d = (a + b) * a
e = d.tanh() + c * a
explore(e)"""
LEAK = 'lifetime(retain_graph=True, kept="losses.append(loss)", delete=True, predict=False)'
VALLEY = 'optimizer_paths(landscape="curved valley", lr=0.01, predict=False)'
DEMOS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "graph_explorer": (GRAPH, ".ma-explorer", ("End", "Back", "Back")),
    "lifetime": (LEAK, ".ma-demo", ("End",)),
    "optimizer_paths": (VALLEY, ".ma-demo", ("End",)),
}
"""Name of the file -> the cell, the part of it in the picture, and the buttons that are pressed first."""


def take(lab: Any, folder: Path) -> None:
    """Write a picture of each demo."""
    lab.page.set_viewport_size({"width": WIDTH, "height": 1000})
    lab.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    for index, (name, (_, part, buttons)) in enumerate(DEMOS.items()):
        root = lab.cell(index).locator(part)
        root.wait_for()
        for button in buttons:
            root.get_by_role("button", name=button, exact=True).click()
        lab.page.mouse.move(0, 0)
        lab.page.wait_for_timeout(SETTLED)
        root.screenshot(path=folder / f"{name}.png")
        print(folder / f"{name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=PROJECT / "course" / "pictures")
    folder = parser.parse_args().folder
    with (
        tempfile.TemporaryDirectory() as home,
        conftest.browser(Path(home) / "profile") as profile,
        conftest.serving(Path(home)) as served,
    ):
        lab = conftest.Lab(profile.new_page(), *served)
        lab.open_notebook(lab.write_notebook("pictures.ipynb", [cell for cell, _, _ in DEMOS.values()]))
        lab.run_all()
        if lab.errors():
            raise RuntimeError(f"a cell failed: {lab.errors()}")
        take(lab, folder)


if __name__ == "__main__":
    main()
