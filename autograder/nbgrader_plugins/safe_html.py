"""Makes HTML from students harmless before a browser of ours shows it.

`clean_html` and `markdown2html` replace nbconvert's filters of the same names. nbconvert's own cleaner escapes inline
styles, details and drawings, which our report cards consist of; this one keeps what is only shown and drops what can
act.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import nh3
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from autograder.nbgrader_plugins.formulas import formula


def words(text: str) -> set[str]:
    return set(text.split())


SHAPES = words("""
    circle defs desc ellipse g line linearGradient marker path polygon polyline rect stop svg text title tspan
""")
FORMULAS = words("""
    annotation math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup msup
    mtable mtd mtext mtr munder munderover semantics
""")
TAGS = nh3.ALLOWED_TAGS | SHAPES | FORMULAS

EVERYWHERE = words("aria-hidden aria-label class dir id lang role style title")
SHAPE_ATTRIBUTES = words("""
    cx cy d dominant-baseline dx dy fill fill-opacity font-family font-size font-style font-weight gradientUnits height
    marker-end marker-start markerHeight markerUnits markerWidth offset opacity orient paint-order points
    preserveAspectRatio r refX refY rx ry stop-color stroke stroke-dasharray stroke-linecap stroke-linejoin
    stroke-opacity stroke-width text-anchor transform viewBox width x x1 x2 xmlns y y1 y2
""")
FORMULA_ATTRIBUTES = words("""
    accent columnalign columnspacing display displaystyle fence form height linethickness lspace mathvariant maxsize
    minsize movablelimits rowspacing rspace scriptlevel stretchy symmetric voffset width xmlns
""")
ATTRIBUTES: dict[str, set[str]] = {
    **{tag: set(names) for tag, names in nh3.ALLOWED_ATTRIBUTES.items()},
    "*": EVERYWHERE,
    "details": {"open"},
    "td": {"align", "colspan", "rowspan"},
    "th": {"align", "colspan", "rowspan", "scope"},
    **dict.fromkeys(SHAPES, SHAPE_ATTRIBUTES),
    **dict.fromkeys(FORMULAS, FORMULA_ATTRIBUTES),
}
# No position, z-index or the like: nothing may lie over the page around it.
STYLES = words("""
    align-items background background-color border border-bottom border-collapse border-color border-left
    border-left-color border-left-style border-left-width border-radius border-right border-spacing border-style
    border-top border-width box-sizing color cursor display fill flex flex-direction flex-wrap font font-family
    font-size font-style font-variant-numeric font-weight gap grid-template-columns height justify-content
    letter-spacing line-height list-style margin margin-bottom margin-left margin-right margin-top max-width min-width
    opacity overflow overflow-x padding padding-bottom padding-left padding-right padding-top stroke stroke-width
    text-align text-decoration text-transform vertical-align white-space width word-break
""")
TEXTS = words("title aria-label alt")  # attributes that a browser shows and does not interpret
LOCAL = "content-"
LOCAL_REFERENCE = re.compile(r"url\(\s*['\"]?#([\w.-]+)['\"]?\s*\)")
# Functions of CSS that fetch nothing. Any other may, in some browser, and an escape may hide one.
HARMLESS_CALL = re.compile(
    r"(rgb|hsl)a?|hwb|lab|lch|oklab|oklch|color|color-mix|var|calc|min|max|clamp|minmax|repeat|fit-content"
    r"|(repeating-)?(linear|radial|conic)-gradient|translate[XY3]?d?|rotate|scale[XY]?|skew[XY]|matrix|cubic-bezier|steps",
    re.IGNORECASE,
)
CALL = re.compile(r"([\w-]*)\s*\(")


def clean_html(element: Any) -> str:
    """The harmless part of an HTML fragment: no script, no frame, no form, no address that acts."""
    text = element.decode(errors="replace") if isinstance(element, bytes) else str(element)
    return _cleaner().clean(text)


@cache  # making one takes longer than cleaning an ordinary text
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=TAGS,
        clean_content_tags={"script", "style"},
        attributes=ATTRIBUTES,
        attribute_filter=_safe_attribute,
        filter_style_properties=STYLES,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer",
    )


@pass_context
def markdown2html(context: Context, source: str) -> str:
    """Markdown rendered as nbconvert does, then cleaned. A missing attachment leaves a broken picture, not an error."""
    _renderer().attachments = context.get("cell", {}).get("attachments", {})
    return clean_html(_markdown().render(str(source)))


@cache  # making one takes longer than rendering an ordinary text
def _markdown() -> MarkdownWithMath:
    return MarkdownWithMath(renderer=_renderer())


@cache
def _renderer() -> SafeRenderer:
    return SafeRenderer(escape=False, exclude_anchor_links=True)


class SafeRenderer(IPythonRenderer):
    """nbconvert's renderer with formulas drawn, for text whose author may have made mistakes on purpose."""

    def inline_math(self, body: str) -> str:
        return formula(body, "inline")

    def block_math(self, body: str) -> str:
        return formula(body, "block")

    def latex_environment(self, name: str, body: str) -> str:
        return formula(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")

    def _embed_image_or_attachment(self, src: str) -> str:
        name = src.removeprefix("attachment:")
        return src if name != src and not self.attachments.get(name) else super()._embed_image_or_attachment(src)


def _safe_attribute(tag: str, name: str, value: str) -> str | None:
    """Return a harmless value, or None to drop the attribute. Ids get a prefix, so that none passes for one of the
    page's own. Addresses that could act are dropped, and so are those of pictures that a browser would fetch.
    """
    if name == "id":
        return LOCAL + value
    if name in ("href", "src"):
        return _safe_address(tag, value)
    local = LOCAL_REFERENCE.sub(rf"url(#{LOCAL}\1)", value)
    return local if name in TEXTS or _fetches_nothing(LOCAL_REFERENCE.sub("", value)) else None


def _fetches_nothing(style: str) -> bool:
    """Whether a value of CSS names no function that could fetch something."""
    return "\\" not in style and "@" not in style and all(map(HARMLESS_CALL.fullmatch, CALL.findall(style)))


def _safe_address(tag: str, value: str) -> str | None:
    if value.startswith("#"):
        return f"#{LOCAL}{value[1:]}"
    is_data = value.lower().lstrip().startswith("data:")
    is_picture = is_data and value.lstrip()[5:].startswith("image/")
    return value if (is_picture if tag == "img" else not is_data) else None
