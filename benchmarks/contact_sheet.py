"""Pictures of every demo of the gallery, at four sizes and for three eyes, and one sheet of them per size and eye.

`python -m benchmarks.contact_sheet FOLDER` shows the gallery in a real JupyterLab, one demo per screen, in the light
and the dark theme, and as a reader with deuteranopia sees the light one. It writes `WIDTHxHEIGHT-EYE-NUMBER.png` for
each screen and `sheet-WIDTHxHEIGHT-EYE.png` for all of them.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from autograder.lessons.commands.demos import gallery
from tests.browser import conftest

PROJECT = Path(__file__).resolve().parents[1]
SIZES = ((390, 844), (820, 1180), (1280, 720), (1920, 1080))
EYES = {"light": ("Light", "none"), "dark": ("Dark", "none"), "deuteranopia": ("Light", "deuteranopia")}
"""The theme, and the color vision that the browser imitates."""
COLUMNS, THUMBNAIL = 4, 480
SETTLED = 700  # milliseconds until a picture has its new size


def screens(lab: Any, folder: Path) -> Iterator[tuple[str, Path]]:
    """The picture of each screen, with the size and eye that it belongs to."""
    page, bar = lab.page, lab.page.locator(".ma-deck-bar")
    session = page.context.new_cdp_session(page)
    for eye, (theme, vision) in EYES.items():
        lab.use_theme(f"JupyterLab {theme}")
        session.send("Emulation.setEmulatedVisionDeficiency", {"type": vision})
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            lab.cell(0)
            page.get_by_role("button", name="One demonstration per screen").click()
            bar.wait_for()
            page.mouse.move(0, 0)  # an element under the pointer would look selected
            name = f"{width}x{height}-{eye}"
            count = int(re.findall(r"of (\d+)", bar.inner_text())[0])
            for number in range(1, count + 1):
                page.wait_for_timeout(SETTLED)
                file = folder / f"{name}-{number:02}.png"
                page.screenshot(path=file)
                yield name, file
                page.keyboard.press("PageDown")
            bar.get_by_role("button", name="Leave").click()
            bar.wait_for(state="detached")


def sheet(files: list[Path], path: Path) -> None:
    """Write one picture that shows all pictures side by side, made smaller."""
    pictures = [Image.open(file).convert("RGB") for file in files]
    height = round(THUMBNAIL * pictures[0].height / pictures[0].width)
    rows = -(-len(pictures) // COLUMNS)
    whole = Image.new("RGB", (COLUMNS * (THUMBNAIL + 6), rows * (height + 6)), "gray")
    for number, picture in enumerate(pictures):
        row, column = divmod(number, COLUMNS)
        whole.paste(picture.resize((THUMBNAIL, height)), (column * (THUMBNAIL + 6), row * (height + 6)))
    whole.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Path]] = {}
    with (
        tempfile.TemporaryDirectory() as home,
        conftest.browser(Path(home) / "profile") as profile,
        conftest.serving(Path(home)) as served,
    ):
        lab = conftest.Lab(profile.new_page(), *served)
        path = lab.root / "gallery.ipynb"
        path.write_text(json.dumps(gallery(PROJECT / "course")), encoding="utf-8")
        lab.open_notebook(path)
        lab.run_all()
        if lab.errors():
            raise RuntimeError(f"a cell failed: {lab.errors()}")
        for name, file in screens(lab, folder):
            found.setdefault(name, []).append(file)
    for name, files in found.items():
        sheet(files, folder / f"sheet-{name}.png")
        print(f"sheet-{name}.png  {len(files)} screens")


if __name__ == "__main__":
    main()
