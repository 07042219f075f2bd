"""The website: it builds without a warning, works from files alone, asks no other host, and gives no solution away."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from autograder.lessons.build.lesson_files import lesson_texts
from autograder.lessons.build.notebook import assemble
from autograder.lessons.release import ReleaseError, verify_release
from autograder.notebooks.regions import regions
from autograder.quizzes.sealing import SEALED_TEXT
from tests.browser.conftest import violations

ROOT = Path(__file__).resolve().parents[2]
TEXTS = lesson_texts(ROOT / "course")
PAGES = [
    *("index", "README", "CONTRIBUTING", "CHANGELOG", "gallery", "search", "genindex"),
    *(f"docs/{path.stem}" for path in ROOT.glob("docs/*.md")),
    *(f"docs/decisions/{path.stem}" for path in ROOT.glob("docs/decisions/*.md")),
    *(f"lessons/{path.stem}" for path in TEXTS),
    *(f"api/{name}" for name in ("student", "engine", "tensor", "nn", "autograd")),
]
LOOKED_AT = ["index", "lessons/00_start_here", "api/student", "gallery"]
SCRIPTED = ["search"]  # filled in by a script

BUILD = [sys.executable, str(ROOT / "docs" / "site" / "build.py")]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it. A warning of Sphinx fails the build."""
    folder = tmp_path_factory.mktemp("site") / "site"
    built = subprocess.run([*BUILD, str(folder)], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    return folder


class Page(HTMLParser):
    """What the tests read from a page: its text, including that of scripts, its links, and its tags."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.links: list[tuple[str, str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.links += [(tag, value) for name, value in attrs if name in ("src", "href", "action") and value]

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def ids(self) -> set[str | None]:
        return {attributes.get("id") for _, attributes in self.tags}


def test_every_page_is_there_with_a_language_a_title_and_a_main_part(site: Path) -> None:
    for name in PAGES:
        page = Page(site / f"{name}.html")
        assert ("html", "en") in [(tag, attributes.get("lang")) for tag, attributes in page.tags], name
        assert name in SCRIPTED or [tag for tag, _ in page.tags].count("h1") == 1, name
        assert any(attributes.get("role") == "main" for _, attributes in page.tags), name


def test_a_folder_that_holds_something_else_is_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years of work", encoding="utf-8")
    refused = subprocess.run([*BUILD, str(tmp_path)], capture_output=True, text=True)
    assert refused.returncode == 2
    assert "Name another folder" in refused.stderr
    assert (tmp_path / "thesis.txt").exists()


def test_every_link_leads_somewhere_and_nothing_comes_from_another_host(site: Path) -> None:
    pages = {file: Page(file) for file in site.rglob("*.html")}
    for file, page in pages.items():
        for tag, link in page.links:
            if re.match(r"\w+:|//", link):
                assert tag == "a" or link.startswith("data:"), f"{file}: {link}"
                continue
            path, _, fragment = re.sub(r"\?[^#]*", "", link).partition("#")
            target = (file.parent / unquote(path)).resolve() if path else file
            assert target.is_file(), f"{file}: {link}"
            scripted = target.stem in SCRIPTED or target not in pages
            assert scripted or not fragment or unquote(fragment) in pages[target].ids, f"{file}: {link}"
    for file in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:|//)", file.read_text(encoding="utf-8")), file


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.stem)
def test_no_page_of_a_lesson_shows_a_solution_a_hidden_test_a_hint_or_an_answer(site: Path, text: Path) -> None:
    shown = Page(site / "lessons" / f"{text.stem}.html").text
    shown = shown.replace("\\n", "\n").replace('\\"', '"')  # data of widgets is JSON
    assert not SEALED_TEXT.search(shown), "a quiz or hints, which a page cannot ask"
    source = assemble(text)
    verify_release(source, new_notebook(cells=[new_markdown_cell(shown)]))
    solution = max((region.text for cell in source.cells for region in regions(cell.source)), key=len, default="")
    if solution:
        with pytest.raises(ReleaseError, match="shows"):
            verify_release(source, new_notebook(cells=[new_markdown_cell(f"{shown}\n{solution}")]))


def test_a_formula_is_shown_without_a_script(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# Formulas\n\nIn a line $x^2$, and\n\n$$\\sum_i x_i$$\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-c",
        str(ROOT / "docs" / "site"),
        str(tmp_path),
        str(tmp_path / "out"),
    ]
    subprocess.run(command, check=True)
    page = Page(tmp_path / "out" / "index.html")
    assert [attributes.get("display") for tag, attributes in page.tags if tag == "math"] == ["inline", "block"]
    assert not any("mathjax" in link.lower() for _, link in page.links)


@pytest.fixture(scope="module")
def opened(chromium: Any) -> Iterator[Any]:
    """A page of a browser that may open only files. It notes script errors and other requests, and tests check both."""
    page = chromium.new_page()
    page.troubles = []
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("console", lambda said: said.type == "error" and page.troubles.append(said.text))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(("file:", "data:")) else page.troubles.append(asked.url),
    )
    yield page
    page.close()


@pytest.mark.browser
def test_search_finds_a_word_from_a_file(site: Path, opened: Any) -> None:
    opened.goto((site / "search.html").as_uri() + "?q=checkpoint")
    opened.locator("#search-results li a", has_text="13. ").first.wait_for()
    assert opened.troubles == []


@pytest.mark.browser
def test_demos_live_without_python(site: Path, opened: Any) -> None:
    opened.goto((site / "gallery.html").as_uri())
    explorer = opened.locator(".ma-explorer").first
    explorer.get_by_role("button", name="Step", exact=True).click()
    explorer.locator(".ma-words", has_text="a + b").wait_for()
    explorer.get_by_role("button", name="End", exact=True).click()
    explorer.locator(".ma-words", has_text="Gradients of the leaves: a: 1").wait_for()
    demo = opened.get_by_role("group", name="A gradient that is never cleared")
    demo.get_by_role("button", name="The same as momentum 1.0").click()
    demo.get_by_text("momentum 1.0 (dotted", exact=False).wait_for()
    demo.get_by_role("button", name="Reset").click()
    assert opened.locator(".live > img").count() == 0, "a still in place of a demo"
    assert opened.troubles == []


@pytest.mark.browser
@pytest.mark.parametrize("name", ["index", "gallery", "lessons/04_arrays"])
def test_an_explorer_offers_nothing_that_needs_python(site: Path, opened: Any, name: str) -> None:
    opened.goto((site / f"{name}.html").as_uri())
    for explorer in opened.locator(".ma-explorer").all():
        explorer.get_by_text("Python does not answer here. Run the cell in a notebook to change this graph.").wait_for()
        assert explorer.locator(":is(.ma-bench, .ma-bench *, .ma-movable):visible").count() == 0
        assert explorer.get_by_role("button", name="Expression").count() == 0
    assert opened.locator(".ma-explorer").count() > 0
    assert opened.troubles == []


@pytest.mark.browser
@pytest.mark.parametrize("name", LOOKED_AT)
def test_no_page_scrolls_sideways(site: Path, opened: Any, name: str) -> None:
    opened.goto((site / f"{name}.html").as_uri())
    size = opened.viewport_size
    for width in (400, 800, 1010, 1024, 1080, 1160, 1280, 1312, 1320, 1366, 1400, 1440):
        opened.set_viewport_size({"width": width, "height": 900})
        page = opened.evaluate("() => document.documentElement.scrollWidth")
        assert page <= width, f"at {width} pixels, the page is {page} wide"
    opened.set_viewport_size(size)


SMALLEST = """() => Math.min(...[...document.querySelectorAll(".ma-demo svg text")].map((text) => {
    const place = text.getScreenCTM();
    return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(place.a, place.b);
}))"""


@pytest.mark.browser
def test_the_type_in_demos_can_be_read_on_a_narrow_page(site: Path, opened: Any) -> None:
    opened.goto((site / "gallery.html").as_uri())
    size = opened.viewport_size
    opened.set_viewport_size({"width": 400, "height": 900})
    for button in opened.get_by_role("button", name="Larger picture").all():
        button.click()
    assert opened.evaluate(SMALLEST) >= 10.9
    assert opened.evaluate("() => document.documentElement.scrollWidth") <= 400, "a picture scrolls in its own box"
    assert violations(opened) == []
    opened.set_viewport_size(size)


SIDEWAYS = """() => [...document.querySelectorAll(".ma-canvas")]
    .filter((canvas) => canvas.scrollWidth > canvas.clientWidth).map((canvas) => canvas.parentElement.ariaLabel)"""


@pytest.mark.browser
@pytest.mark.parametrize("name", ["index", "gallery", "lessons/02_scalar_engine"])
def test_no_picture_scrolls_sideways_on_a_phone(site: Path, opened: Any, name: str) -> None:
    opened.goto((site / f"{name}.html").as_uri())
    size = opened.viewport_size
    opened.set_viewport_size({"width": 390, "height": 800})
    assert opened.locator(".ma-canvas").count() > 0
    assert opened.evaluate(SIDEWAYS) == []
    opened.set_viewport_size(size)


ASKING = re.compile(r"\b(drag|type|click the|your guess above|run this cell|slider moves|audience)\b", re.IGNORECASE)


@pytest.mark.browser
def test_the_gallery_asks_for_nothing_that_needs_python(site: Path, opened: Any) -> None:
    opened.goto((site / "gallery.html").as_uri())
    opened.locator(".ma-demo").first.wait_for()
    assert opened.locator(".ma-demo .ma-canvas :is([role=button], [data-press], .ma-press)").count() == 0
    for part in (".ma-words", "article p"):
        asking = [text for text in opened.locator(part).all_inner_texts() if ASKING.search(text)]
        assert asking == [], part
    for demo in opened.locator(".ma-demo").all():
        for button in demo.locator(".ma-presets button").all():
            button.click()
            assert not ASKING.search(demo.locator(".ma-words").inner_text())


@pytest.mark.browser
@pytest.mark.parametrize("name", LOOKED_AT)
def test_pages_are_accessible_in_both_themes(site: Path, opened: Any, name: str) -> None:
    opened.goto((site / f"{name}.html").as_uri())
    backgrounds = set()
    for theme in ("light", "dark"):
        opened.emulate_media(color_scheme=theme)
        backgrounds.add(opened.evaluate("() => getComputedStyle(document.body).backgroundColor"))
        assert violations(opened) == [], theme
    assert len(backgrounds) == 2, "the themes differ"
    assert opened.troubles == []
