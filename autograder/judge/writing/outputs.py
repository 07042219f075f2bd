"""What is written into a graded notebook: a student's outputs made harmless, and a test cell's verdict in the form
nbgrader reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import nh3

from autograder.judge.writing.messages import cut
from autograder.notebooks.verdicts import CellVerdict

INSIDE = "This test ran in the process of the submission."
BELIEVED = "This test used {}, which the submission has changed in a cell that is not locked."
MAX_CELL_TEXT = 200_000
MAX_OUTPUTS = 100
MAX_IMAGE = 8_000_000


def words(text: str) -> set[str]:
    return set(text.split())


TEXT_KINDS = ("text/plain", "text/markdown", "text/latex")
IMAGE_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
STYLE = words("""
    color background-color font-weight font-style text-align border border-collapse padding margin width height
    font-family font-size display border-radius border-left overflow-x white-space max-width
""")


def new_output(kind: str, **fields: Any) -> dict[str, Any]:
    """An output in nbformat's form. nbformat's own function validates each one against a schema; here the notebook is
    validated as a whole when it is written.
    """
    if kind in ("display_data", "execute_result"):
        fields.setdefault("metadata", {})
    return {"output_type": kind, **fields}


def clean_student_outputs(outputs: list[dict[str, Any]]) -> list[Any]:
    """A student cell's outputs in nbformat's form: only known kinds, markup sanitized, everything bounded."""
    cleaned, room = [], MAX_CELL_TEXT
    for output in outputs[:MAX_OUTPUTS]:
        node, size = _clean_output(output, room)
        if node is not None:
            cleaned.append(node)
            room -= size
        if room <= 0:
            cleaned.append(
                new_output("stream", name="stdout", text="[the rest of the output was dropped: it is too long]\n")
            )
            break
    return cleaned


def _clean_output(output: dict[str, Any], room: int) -> tuple[Any, int]:
    kind = output.get("output_type")
    if kind == "stream" and output.get("name") in ("stdout", "stderr") and isinstance(output.get("text"), str):
        text = printable(output["text"])[:room]
        return new_output("stream", name=output["name"], text=text), len(text)
    if kind in ("display_data", "execute_result") and isinstance(output.get("data"), Mapping):
        data = clean_data(output["data"], room)
        extra = {"execution_count": None} if kind == "execute_result" else {}
        return (
            (new_output(kind, data=data, **extra), sum(len(v) for k, v in data.items() if k not in IMAGE_KINDS))
            if data
            else (None, 0)
        )
    if kind == "error":
        lines = output.get("traceback")
        lines = [printable(line) for line in lines if isinstance(line, str)] if isinstance(lines, list) else []
        text = "\n".join(lines)[: min(room, 20_000)]
        name, value = cut(str(output.get("ename", "")), 100), cut(str(output.get("evalue", "")), 1000)
        return new_output("error", ename=name, evalue=value, traceback=text.split("\n")), len(text)
    return None, 0


def clean_data(data: Mapping[Any, Any], room: int) -> dict[str, str]:
    """The parts of a MIME bundle that cannot act in a browser. Scripts and everything unknown are left out."""
    found: dict[str, str] = {}
    for kind, value in data.items():
        if not isinstance(kind, str) or not isinstance(value, str):
            continue
        if kind in TEXT_KINDS:
            found[kind] = HARMLESS.get(kind, str)(printable(value)[:room])
        elif kind == "text/html" and len(value) <= room:
            found[kind] = clean_html(value)
        elif kind in IMAGE_KINDS and len(value) <= MAX_IMAGE and BASE64.fullmatch(value):
            found[kind] = value
        elif kind == "image/svg+xml" and len(value) <= room:
            found["text/html"] = clean_html(value)
    return found


def no_tags(text: str) -> str:
    """A formula in which no `<` can begin a tag; to TeX the space means nothing."""
    return re.sub(r"<(?=[A-Za-z/!?])", "< ", text)


HARMLESS: dict[str, Callable[[str], str]] = {"text/markdown": nh3.clean, "text/latex": no_tags}


def clean_html(text: str) -> str:
    """HTML and SVG without anything that runs, loads or overlays."""
    return nh3.clean(
        text,
        tags=HTML_TAGS,
        attributes=HTML_ATTRIBUTES,
        attribute_filter=_no_fetching,
        filter_style_properties=STYLE,
        url_schemes={"http", "https", "mailto", "data"},
    )


def _no_fetching(tag: str, name: str, value: str) -> str | None:
    """Drop pictures from elsewhere: fetching one would reveal who looks at a submission, and when."""
    return None if name == "src" and not value.lstrip().lower().startswith("data:image/") else value


def printable(text: str) -> str:
    """Text that can be written as UTF-8 JSON."""
    return text.encode("utf-8", "replace").decode()


def verdict_outputs(
    verdict: CellVerdict, *, name: str, printed: str, cards: str, cards_text: str, weak: str = ""
) -> list[Any]:
    """The outputs of a test cell, from which nbgrader's `determine_grade` reads exactly these points. `weak`: why the
    submission could have forged the result, if it could.
    """
    outputs, message, points = [], verdict.message, verdict.points or 0.0
    if printed.strip():
        outputs.append(new_output("stream", name="stdout", text=printable(printed)))
    metadata = {"autograder": verdict.note}
    if cards or message or weak:
        said = message or weak
        text = cards_text or said
        html = cards or f"<p>{escape(said)}</p>"
        outputs.append(
            new_output("display_data", data={"text/plain": printable(text), "text/html": html}, metadata=metadata)
        )
    if verdict.full:
        return outputs
    if points > 0:
        outputs.append(
            new_output(
                "execute_result",
                data={"text/plain": repr(float(points))},
                metadata=metadata,
                execution_count=None,
            )
        )
    else:
        lines = [f"{name}: {line}" if i == 0 else line for i, line in enumerate(message.splitlines())]
        outputs.append(new_output("error", ename=name, evalue=message, traceback=lines or [name]))
    return outputs


def said_of_believed(names: Sequence[str]) -> str:
    """Why a test that used these names, whose values the submission has chosen, proves less; empty without any."""
    return BELIEVED.format(", ".join(f"`{name}`" for name in names)) if names else ""


_SHAPES = words("""
    svg g path rect circle ellipse line polyline polygon text tspan defs title desc marker linearGradient radialGradient
    stop clipPath
""")
_SHAPE_ATTRIBUTES = words("""
    viewBox width height x y x1 x2 y1 y2 cx cy r rx ry d points fill stroke opacity stroke-width stroke-linecap
    stroke-linejoin stroke-dasharray fill-opacity stroke-opacity transform dx dy font-size font-family font-weight
    text-anchor dominant-baseline id offset stop-color preserveAspectRatio xmlns version orient refX refY markerWidth
    markerHeight fill-rule style class role aria-label
""")
HTML_TAGS = set(nh3.ALLOWED_TAGS) | _SHAPES
HTML_ATTRIBUTES: dict[str, set[str]] = {
    **{tag: set(names) for tag, names in nh3.ALLOWED_ATTRIBUTES.items()},
    **{tag: set(_SHAPE_ATTRIBUTES) for tag in _SHAPES},
    "*": {"style", "class", "title", "lang", "dir", "align"},
    "details": {"open"},
}
