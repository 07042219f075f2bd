"""What is left of a widget where no kernel runs and no widget can live: a picture, and the same in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StaticPicture:
    """An SVG with a text of the same meaning; notebooks show the picture, terminals the text."""

    svg: str
    text: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.text


def with_static_picture(bundle: Any, picture: StaticPicture) -> Any:
    """A widget's mime bundle with the picture added. Live front ends prefer the widget, exporters take the picture."""
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
    data = {**data, "image/svg+xml": picture.svg, "text/plain": picture.text}
    return (data, metadata) if isinstance(bundle, tuple) else data
