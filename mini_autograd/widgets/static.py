"""The still form of a widget, for pages without a kernel or widgets: a picture, and a text with the same meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StaticPicture:
    """An SVG with a text that means the same; notebooks show the picture, terminals the text."""

    svg: str
    text: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.text


INK, PAPER, MARGIN = "#1f1f1f", "#ffffff", 8


def on_paper(svg: str) -> str:
    """An SVG with its own text and background color, for use as an image, which cannot take the colors of the page."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if found is None:
        return svg
    width, height = (float(size) + 2 * MARGIN for size in found.groups())
    frame = f'viewBox="{-MARGIN} {-MARGIN} {width:g} {height:g}" color="{INK}"'
    paper = f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{width:g}" height="{height:g}" fill="{PAPER}"/>'
    opened = svg.index(">", found.end()) + 1
    return svg[: found.start()] + frame + svg[found.end() : opened] + paper + svg[opened:]


def with_static_picture(bundle: Any, picture: StaticPicture) -> Any:
    """A widget's mime bundle with the picture added. Live front ends prefer the widget, exporters the picture."""
    return with_forms(bundle, {"image/svg+xml": picture.svg, "text/plain": picture.text})


def with_forms(bundle: Any, forms: dict[str, str]) -> Any:
    """A widget's mime bundle with other forms of it, for front ends without widgets: mime type -> text."""
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
    data = {**data, **forms}
    return (data, metadata) if isinstance(bundle, tuple) else data
