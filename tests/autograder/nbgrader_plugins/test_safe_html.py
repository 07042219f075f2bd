"""What students' HTML may not do in a browser, and what our own cards keep."""

import re

import pytest
from jinja2 import Environment

from autograder.cards.check_report import Line, Report
from autograder.nbgrader_plugins.safe_html import STYLES, clean_html, markdown2html

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "script in a drawing": "<svg><script>alert(1)</script></svg>",
    "handler": '<img src="x" onerror="alert(1)">',
    "handler on a drawing": '<svg onload="alert(1)"></svg>',
    "animation": '<svg><animate onbegin="alert(1)" attributeName="x"/></svg>',
    "foreign object": '<svg><foreignObject><iframe src="javascript:alert(1)"></iframe></foreignObject></svg>',
    "javascript address": '<a href="javascript:alert(1)">x</a>',
    "javascript address in a drawing": '<svg><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>',
    "javascript address, disguised": '<a href="  jaVa\tscript:alert(1)">x</a>',
    "page as data": '<a href="data:text/html,<script>alert(1)</script>">x</a>',
    "drawing as data in a link": '<a href="data:image/svg+xml,<svg onload=alert(1)>">x</a>',
    "frame": '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "object": '<object data="data:text/html,alert(1)"></object>',
    "form": '<form action="http://example.org/alert(1)"><input name="a"><button>Full credit</button></form>',
    "refresh": '<meta http-equiv="refresh" content="0; url=javascript:alert(1)">',
    "base": '<base href="http://alert(1)/">',
    "style sheet": "<style>@import 'http://example.org/alert(1)';</style>",
    "linked style sheet": '<link rel="stylesheet" href="http://example.org/alert(1)">',
    "mutation by formula": "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table>",
    "mutation by noscript": '<noscript><p title="</noscript><img src=x onerror=alert(1)>"></noscript>',
    "unclosed": '<img src="x" onerror="alert(1)"',
}


@pytest.mark.parametrize("fragment", HOSTILE.values(), ids=HOSTILE)
def test_nothing_that_acts_survives(fragment: str) -> None:
    cleaned = clean_html(fragment)
    for dangerous in (
        "<script",
        "onerror=alert",
        'onerror="',
        "onload=",
        "onbegin=",
        "javascript:",
        "<iframe",
        "<form",
    ):
        assert dangerous not in cleaned.replace("&lt;", "").lower()
    for element in ("<input", "<button", "<meta", "<base", "<link", "<style", "<object", "data:text", "data:image/svg"):
        assert element not in cleaned


@pytest.mark.parametrize(
    "fragment",
    [
        '<div style="position:fixed;top:0">x</div>',
        '<div style="z-index:99">x</div>',
        '<p style="background:url(http://example.org/pixel)">x</p>',
        '<p style="background:URL( //example.org/pixel)">x</p>',
        "<p style=\"background:src( 'http://example.org/pixel')\">x</p>",
        "<p style=\"background:image-set('http://example.org/pixel' 1x)\">x</p>",
        "<p style=\"background:cross-fade('http://example.org/pixel', red)\">x</p>",
        '<p style="background:\\75rl(http://example.org/pixel)">x</p>',
        '<svg><rect fill="url(http://example.org/a.svg#b)"/></svg>',
        '<img src="http://example.org/pixel">',
        '<img src="//example.org/pixel">',
        '<img src="/hub/logout?from=example.org">',
        '<img src="data:text/html,example.org">',
    ],
)
def test_nothing_lies_over_the_page_or_calls_home(fragment: str) -> None:
    cleaned = clean_html(fragment)
    assert not any(word in cleaned for word in ("position", "z-index", "example.org"))


KEPT = {
    "style": '<div style="border:1px solid #ccc;padding:4px">x</div>',
    "details": '<details open=""><summary>Why</summary>because</details>',
    "table": '<table><tbody><tr><td colspan="2">1</td></tr></tbody></table>',
    "picture": '<img src="data:image/png;base64,AAAA">',
    "drawing": '<svg viewBox="0 0 9 9" width="9"><path d="M0 0L1 1" stroke="red" stroke-width="2"></path></svg>',
    "gradient": '<svg><defs><linearGradient id="content-a"><stop offset="0"></stop></linearGradient></defs></svg>',
    "formula": "<math><mfrac><mn>1</mn><mi>x</mi></mfrac></math>",
    "comparison": "<p>a &lt; b &amp; c</p>",
}


@pytest.mark.parametrize("fragment", KEPT.values(), ids=KEPT)
def test_a_report_card_survives(fragment: str) -> None:
    expected = fragment.replace("content-", "")
    assert clean_html(expected).replace(' rel="noopener noreferrer"', "") == fragment


def test_the_card_of_a_check_keeps_its_looks() -> None:
    """Cleaning must not lose any style that the report uses: this fails when the card gets a new kind of style."""
    line = Line("a * b", "wrong", "`a.grad` is wrong", facts=(("expected", "3"),), diagnosis="operands")
    card = Report("title", (line,), 1, 2, "the operands", ("a hint",), (("inputs", "1, 2"),)).html()
    cleaned = clean_html(card)
    assert cleaned.count("<div") == card.count("<div")
    for style in re.findall(r'style="([^"]*)"', card):
        kept = {declaration.split(":")[0].strip() for declaration in style.split(";") if declaration.strip()}
        assert kept <= STYLES
    assert all(f"var({name}" in cleaned for name in re.findall(r"var\(([\w-]+)", card))


def test_names_inside_a_fragment_stay_apart_from_those_of_the_page() -> None:
    card = '<svg><marker id="tip"></marker><path d="M0 0" marker-end="url(#tip)"></path></svg><a href="#tip">x</a>'
    cleaned = clean_html(card)
    assert 'id="content-tip"' in cleaned
    assert 'marker-end="url(#content-tip)"' in cleaned
    assert 'href="#content-tip"' in cleaned


def rendered(source: str, cell: dict | None = None) -> str:
    environment = Environment()
    environment.filters["markdown2html"] = markdown2html
    return environment.from_string("{{ source | markdown2html }}").render(source=source, cell=cell or {})


def test_markdown_is_rendered_and_cleaned() -> None:
    html = rendered("# Title\n\n*a* < `b`, $x<y$ <script>alert(1)</script> [l](javascript:alert(1))")
    assert "<em>a</em> &lt; <code>b</code>" in html
    assert "$x&lt;y$" in html or "<mo>&lt;</mo>" in html
    assert "script" not in html


def test_what_follows_a_heading_is_no_link() -> None:
    assert rendered("# Words\n\nA paragraph.").split("\n")[:2] == ["<h1>Words</h1>", "<p>A paragraph.</p>"]


def test_a_missing_attachment_is_no_error() -> None:
    assert "<img" in rendered("![p](attachment:lost.png)")


def test_an_attached_picture_is_shown() -> None:
    html = rendered("![p](attachment:a.png)", {"attachments": {"a.png": {"image/png": "AAAA"}}})
    assert 'src="data:image/png;base64,AAAA"' in html


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"$\frac{1}{x}$", "<mfrac>"),
        (r"$$\sum_i x_i$$", 'display="block"'),
        ("\\begin{align}a &= b \\\\ c &= d\\end{align}", "<mtable"),
        (r"$\frac{$", r"$\frac{$"),
    ],
    ids=["inline", "block", "environment", "not a formula"],
)
def test_formulas_need_no_script(source: str, shown: str) -> None:
    assert shown in rendered(source)
