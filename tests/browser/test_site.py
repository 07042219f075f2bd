"""The website: it builds without a warning, works from files alone, asks no other host, and gives no solution away.
Its lab works from a server, and once opened without one.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from autograder.cli import main
from autograder.grading.pretend_class.pretend_course import make_course
from autograder.grading.run import Request, grade_class
from autograder.lessons.audit.variants import solved_release
from autograder.lessons.builder.lesson_files import files_beside, lesson_texts
from autograder.lessons.builder.notebook import assemble, assignments
from autograder.lessons.release import ReleaseError, verify_release
from autograder.lessons.student.shell import RECORDED
from autograder.notebooks.cells import grade_id, is_code, is_test, points_of
from autograder.notebooks.regions import regions
from autograder.quizzes.sealing import SEALED_TEXT
from benchmarks.teaching import GALLERY_PAGE
from docs.site.game import told, wrong_rules
from docs.site.lab import BESIDE, COURSE_PACKAGE, DISTRIBUTION_POINT, KERNEL, KERNEL_PARTS, LOCK, plain, with_course
from docs.site.lesson_pages import page_name
from tests.autograder.grading.here import in_this_process
from tests.browser.conftest import PATIENCE, Lab, violations
from tests.tab.assemble import assembled
from tests.tab.inside import mock_matplotlib
from tests.tab.lessons import COURSE, mistakes_in

ROOT = Path(__file__).resolve().parents[2]
TEXTS = lesson_texts(COURSE)
LESSON = next(text for text in TEXTS if text.stem == "02_scalar_engine")
DEMOS = [f"demos/{page_name(title)}" for title in GALLERY_PAGE.findall((COURSE / "gallery.py").read_text("utf-8"))]
EXPLORER = "demos/a_gradient_arrives"
PAGES = [
    *("index", "README", "CONTRIBUTING", "CHANGELOG", "gallery", "search", "genindex"),
    *(f"docs/{path.stem}" for path in ROOT.glob("docs/*.md")),
    *(f"docs/decisions/{path.stem}" for path in ROOT.glob("docs/decisions/*.md")),
    *(f"lessons/{path.stem}" for path in TEXTS),
    *DEMOS,
    *(f"api/{name}" for name in ("student", "engine", "tensor", "nn", "autograd")),
]
LOOKED_AT = ["index", "lessons/00_start_here", "api/student", "gallery", *DEMOS]
SCRIPTED = ["search"]  # filled in by a script

BUILD = [sys.executable, str(ROOT / "docs" / "site" / "build.py")]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` builds it, with a local Pyodide if there is npm, which has it. A warning of Sphinx
    fails the build.
    """
    folder = tmp_path_factory.mktemp("site") / "site"
    pyodide = ["--pyodide", str(assembled())] if shutil.which("npm") else []
    built = subprocess.run([*BUILD, str(folder), *pyodide], capture_output=True, text=True)
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
    shown += (site / "lab" / "files" / text.stem / RECORDED).read_text(encoding="utf-8")
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


def switch_questions(page: Any) -> None:
    """Have every demo of a page ask first, or show its words at once: those below an open question are hidden."""
    for button in page.locator(".ma-demo .ma-presets").get_by_role("button", name="Predict", exact=True).all():
        button.click()


@pytest.mark.browser
def test_search_finds_a_word_from_a_file(site: Path, opened: Any) -> None:
    opened.goto((site / "search.html").as_uri() + "?q=checkpoint")
    opened.locator("#search-results li a", has_text="13. ").first.wait_for()
    assert opened.troubles == []


@pytest.mark.browser
def test_demos_live_without_python(site: Path, opened: Any) -> None:
    opened.goto((site / f"{EXPLORER}.html").as_uri())
    explorer = opened.locator(".ma-explorer").first
    explorer.get_by_role("button", name="Step", exact=True).click()
    explorer.locator(".ma-words", has_text="a + b").wait_for()
    explorer.get_by_role("button", name="End", exact=True).click()
    explorer.locator(".ma-words", has_text="Gradients of the leaves: a: 1").wait_for()
    opened.goto((site / "gallery.html").as_uri())
    opened.get_by_role("link", name="Nobody cleared the gradient").first.click()
    demo = opened.get_by_role("group", name="A gradient that is never cleared")
    demo.get_by_role("button", name="The same as momentum 1.0").click()
    demo.get_by_role("group", name="Your prediction").get_by_role("button", name="lower", exact=True).click()
    demo.get_by_text("You predicted lower, ").wait_for()
    demo.get_by_text("momentum 1.0 (dotted", exact=False).wait_for()
    demo.get_by_role("button", name="Reset").click()
    assert opened.locator(".live > img").count() == 0, "a still in place of a demo"
    assert opened.troubles == []


@pytest.mark.browser
def test_the_bug_in_the_engine_of_the_front_page_is_found_and_its_round_can_be_passed_on(
    site: Path, opened: Any
) -> None:
    opened.goto((site / "index.html").as_uri())
    place = opened.locator(".find-the-bug")
    gradient = place.locator(".ma-grad").first
    before = gradient.text_content()
    place.get_by_label("a", exact=True).fill("-0.5")
    assert gradient.text_content() != before, "at once"
    for part in place.get_by_role("button", name="Is its rule wrong?").all():
        if place.get_by_role("button", name="Next engine").count() == 0:
            part.press("Enter")
    said = place.locator(".ma-words").inner_text()
    bugs = [told(*each) for each in wrong_rules()]
    assert any(bug["sentence"].replace("`", "") in said and bug["misconception"] in said for bug in bugs)
    place.get_by_role("button", name="Next engine").click()
    place.get_by_role("button", name="Show me").wait_for()
    shown = place.locator(".ma-canvas").text_content()
    opened.goto("about:blank")
    opened.goto((site / "index.html").as_uri() + "#round=2")
    assert place.locator(".ma-canvas").text_content() == shown
    assert opened.troubles == []


@pytest.mark.browser
@pytest.mark.parametrize("name", ["index", *DEMOS[:4], "lessons/04_arrays"])
def test_an_explorer_offers_nothing_that_needs_python(site: Path, opened: Any, name: str) -> None:
    opened.goto((site / f"{name}.html").as_uri())
    for place in opened.locator(".live[data-kind=explorer]").all():
        place.scroll_into_view_if_needed()
        place.get_by_text("This is a recording").locator("visible=true").wait_for()
        assert place.get_by_role("button", name="Expression").count() == 0
        offered = place.locator(".ma-numbers input:visible").all()
        assert place.locator(".ma-movable").count() == len(offered)
        for entry in offered:
            entry.fill("3.25")
            assert "3.25" in place.locator(".ma-movable .ma-value").all_text_contents()
    assert opened.locator(".ma-explorer").count() > 0
    assert opened.troubles == []


@pytest.mark.browser
def test_the_page_computes_a_graph_of_numbers_by_itself(site: Path, opened: Any) -> None:
    opened.goto((site / f"{EXPLORER}.html").as_uri())
    explorer = opened.locator(".ma-explorer").first
    explorer.get_by_label("a", exact=True).fill("4")
    explorer.get_by_role("button", name="End", exact=True).click()
    explorer.locator(".ma-words", has_text="Gradients of the leaves: a: 5, b: 4.").wait_for()
    node = explorer.locator(".ma-movable").first.bounding_box()
    opened.mouse.move(node["x"] + 20, node["y"] + 30)
    opened.mouse.down()
    opened.mouse.move(node["x"] + 20 - 50, node["y"] + 30, steps=5)
    opened.mouse.up()
    explorer.locator(".ma-words", has_text="Gradients of the leaves: a: 3, b: 3.").wait_for()
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


SMALLEST = """(kind) => Math.min(...[...document.querySelectorAll(`${kind} svg text`)].map((text) => {
    const place = text.getScreenCTM();
    return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(place.a, place.b);
}))"""


@pytest.mark.browser
@pytest.mark.parametrize("name", DEMOS)
def test_the_type_in_demos_can_be_read_on_a_narrow_page(site: Path, opened: Any, name: str) -> None:
    opened.goto((site / f"{name}.html").as_uri())
    size = opened.viewport_size
    opened.set_viewport_size({"width": 400, "height": 900})
    for button in opened.locator(".ma-demo").get_by_role("button", name="Larger picture").all():
        button.click()
        assert opened.evaluate(SMALLEST, ".ma-demo") >= 10.9
    assert opened.evaluate("() => document.documentElement.scrollWidth") <= 400, "a picture scrolls in its own box"
    assert violations(opened) == []
    opened.set_viewport_size(size)


SIDEWAYS = """() => [...document.querySelectorAll(".ma-canvas")]
    .filter((canvas) => canvas.scrollWidth > canvas.clientWidth).map((canvas) => canvas.parentElement.ariaLabel)"""


@pytest.mark.browser
@pytest.mark.parametrize("name", ["index", *DEMOS[:-1], "lessons/02_scalar_engine"])
def test_no_picture_scrolls_sideways_on_a_phone(site: Path, opened: Any, name: str) -> None:
    opened.goto((site / f"{name}.html").as_uri())
    size = opened.viewport_size
    opened.set_viewport_size({"width": 390, "height": 800})
    opened.evaluate("() => document.querySelectorAll('details').forEach((part) => (part.open = true))")
    for place in opened.locator(".live").all():
        place.scroll_into_view_if_needed()
        place.locator(".ma-canvas").wait_for()
    assert opened.locator(".ma-canvas").count() > 0
    opened.wait_for_function(f"() => ({SIDEWAYS})().length === 0")
    assert name != "index" or opened.evaluate(SMALLEST, ".ma-explorer") >= 8.5, "small graphs stand upright"
    opened.set_viewport_size(size)


ASKING = re.compile(
    r"\b(drag(?! a to the left)|type|click the|your guess above|run this cell|slider moves|audience)\b", re.IGNORECASE
)


@pytest.mark.browser
@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_asks_for_nothing_that_needs_python(site: Path, opened: Any, name: str) -> None:
    opened.goto((site / f"{name}.html").as_uri())
    opened.locator("article h1").wait_for()
    pressed = opened.locator(".ma-demo .ma-canvas [data-press]")
    if name.endswith("/break_the_engine"):
        pressed.first.click()
        opened.locator(".ma-words", has_text=re.compile(r"Right: |No\. ")).wait_for()
    assert opened.locator(".ma-demo .ma-canvas :is([role=button], [data-press], .ma-press)").count() == 0
    for part in (":not(.ma-game) > .ma-words", "article :not(.ma-words) > p"):
        asking = [text for text in opened.locator(part).all_inner_texts() if ASKING.search(text)]
        assert asking == [], part
    opened.locator(".ma-more").evaluate_all("parts => parts.forEach((part) => (part.open = true))")
    for _ in ("with questions", "without"):
        for demo in opened.locator(".ma-demo").all():
            end = demo.get_by_role("button", name="End", exact=True)
            for button in demo.locator(".ma-presets button:not([aria-pressed])").all():
                button.click()
                opened.evaluate("() => new Promise((done) => setTimeout(done))")  # until the recording has answered
                if end.is_visible():
                    end.click()
                said = "".join(demo.locator(":is(.ma-bet, .ma-words):visible").all_inner_texts())
                assert said
                assert not ASKING.search(said)
        switch_questions(opened)


@pytest.mark.browser
def test_be_the_engine_is_played_without_python(site: Path, opened: Any) -> None:
    opened.goto((site / "demos" / "be_the_engine.html").as_uri())
    game = opened.locator(".live[data-kind=game]")
    for name in ("t sends", "It sends 2", "s sends"):
        game.get_by_role("button", name=name, exact=True).click()
    game.locator(".ma-words", has_text="All gradients are right (a: 1, b: 2).").wait_for()


@pytest.mark.browser
@pytest.mark.parametrize("name", LOOKED_AT)
def test_pages_are_accessible_in_both_themes(site: Path, opened: Any, name: str) -> None:
    opened.goto((site / f"{name}.html").as_uri())
    backgrounds = set()
    for theme in ("light", "dark"):
        opened.emulate_media(color_scheme=theme)
        backgrounds.add(opened.evaluate("() => getComputedStyle(document.body).backgroundColor"))
        assert violations(opened) == [], theme
        if opened.locator(".ma-waits").count() > 0:
            switch_questions(opened)
            assert violations(opened) == [], f"{theme}, without questions"
            switch_questions(opened)
    assert len(backgrounds) == 2, "the themes differ"
    assert opened.troubles == []


def settings_of_kernel(site: Path) -> Any:
    found = json.loads((site / "lab" / "jupyter-lite.json").read_text(encoding="utf-8"))
    return found["jupyter-config-data"]["litePluginSettings"][KERNEL]


def test_the_lab_has_the_lessons_as_students_get_them(site: Path) -> None:
    delivered = site / "lab" / "files"
    assert {file.name for file in delivered.iterdir()} == {name for text in TEXTS for name in assignments(text)}
    beside = files_beside(LESSON, COURSE)
    assert {file.name for file in (delivered / LESSON.stem).iterdir()} == {
        f"{LESSON.stem}.ipynb",
        RECORDED,
        *beside,
    }
    verify_release(assemble(LESSON), nbformat.read(delivered / LESSON.stem / f"{LESSON.stem}.ipynb", as_version=4))
    assert list(delivered.rglob(".*")) == []


def test_without_a_local_pyodide_the_lab_asks_pyodide_s_distribution_point_alone(tmp_path: Path) -> None:
    lock = json.loads((with_course(None, tmp_path / "pyodide") / LOCK).read_text(encoding="utf-8"))
    addresses = {name: entry["file_name"] for name, entry in lock["packages"].items()}
    there = {name for name, address in addresses.items() if address.startswith(DISTRIBUTION_POINT)}
    here = {name for name, address in addresses.items() if (tmp_path / "pyodide" / address).is_file()}
    assert here == {*BESIDE, *map(plain, KERNEL_PARTS), COURSE_PACKAGE}
    assert there == {*addresses} - here
    assert DISTRIBUTION_POINT.split("/")[2] in (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")


@pytest.fixture
def served(site: Path) -> Iterator[ThreadingHTTPServer]:
    """A server of the site, on this machine alone, as a web host would be."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm, which has Pyodide")
    Late.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Late, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *said: Any) -> None:
        """Say nothing."""


class Late(Quiet):
    """Sends the service worker a second late, as to a busy machine, and notes what was asked for before."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        if "/lab/service-worker.js" in self.path:
            time.sleep(1)
            self.asked.append("came")
        self.asked.append(self.path.partition("?")[0])
        super().do_GET()


RECORDING = "This is a recording: its steps and buttons work, and the numbers of a graph that can be dragged. "
ANSWERS = "Python runs in this page and answers."


@pytest.mark.browser
def test_python_answers_on_a_page_once_it_is_asked_for(chromium: Any, served: ThreadingHTTPServer) -> None:
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE)
    address = f"http://127.0.0.1:{served.server_port}"
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/demos/shapes_that_stretch.html")
    place = page.locator(".live[data-python^=broadcast]")
    place.get_by_role("button", name="Row and column").click()
    place.get_by_role("button", name="(3, 4)", exact=True).click()  # the answer to its question
    place.get_by_role("button", name="End", exact=True).click()
    assert not any("/lab/" in url for url in asked)
    place.get_by_role("button", name="Start Python here").click()
    place.get_by_text("Until then this is a recording.").wait_for()
    place.get_by_role("button", name="Stop", exact=True).click()
    place.get_by_text(RECORDING).wait_for()

    place.get_by_role("button", name="Start Python here").click()
    place.get_by_text(ANSWERS).wait_for()
    assert violations(page, ".live[data-python^=broadcast]") == []
    place.get_by_text("You predicted (3, 4), and that is right: (3, 1) and (1, 4) are stretched").wait_for()  # stays
    page.get_by_text("Type two shapes.").wait_for()
    place.get_by_label("shape of a").fill("(5, 1)")
    place.get_by_label("shape of a").press("Enter")
    place.get_by_role("button", name="(5, 4)", exact=True).click()
    place.get_by_role("button", name="End", exact=True).click()
    place.get_by_text("(5, 1) and (1, 4) are stretched to (5, 4).").wait_for()
    place.get_by_role("button", name="Stop Python").click()
    place.get_by_text(RECORDING).wait_for()
    assert page.locator(":is(.ma-controls, .needs-python):visible").count() == 0

    page.goto(f"{address}/{EXPLORER}.html")
    page.get_by_role("button", name="Start Python here").click()
    page.get_by_text(ANSWERS).wait_for()
    page.get_by_label("a", exact=True).fill("5")
    page.get_by_text("The graph starts with its leaves: a = 5, b = -3.").wait_for()
    page.get_by_role("button", name="Expression").click()
    page.get_by_label("Expression", exact=True).fill("a.tanh()")
    page.get_by_label("Expression", exact=True).press("Enter")
    page.get_by_text("The graph starts with its leaves: a = 5.").wait_for()
    page.get_by_role("button", name="Stop Python").click()
    assert page.locator(".ma-expression:visible").count() == page.get_by_role("button", name="Expression").count() == 0

    page.goto(f"{address}/lessons/01_derivatives.html")
    page.evaluate("() => document.querySelectorAll('details').forEach((part) => (part.open = true))")
    for call in ("step_size", "activations"):  # each gets its turn
        place = page.locator(f".live[data-python^={call}]")
        place.scroll_into_view_if_needed()  # it is drawn when a reader comes near
        if call == "step_size":
            place.get_by_role("button", name="Start Python here").click()
        place.get_by_text(ANSWERS).wait_for()
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("missing", ["**/lab/demos.js", "**/lab/**/pyodide.js", "**/*.whl", "Worker"])
def test_where_python_cannot_start_the_page_says_so(chromium: Any, served: ThreadingHTTPServer, missing: str) -> None:
    page = chromium.new_page()
    page.add_init_script(f"delete window.{missing}" if missing.isidentifier() else "")
    page.route(missing, lambda route: route.abort())
    page.goto(f"http://127.0.0.1:{served.server_port}/index.html")
    page.get_by_role("button", name="Start Python here").click()
    page.get_by_text(re.compile(f"^Python does not run here: .*\\. {RECORDING}")).wait_for()
    page.get_by_role("button", name="Step", exact=True).click()
    page.locator(".ma-words", has_text="a + b").wait_for()
    page.close()


RUN = """async ([index, source]) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    notebook.model.cells.get(index).sharedModel.setSource(source);
    notebook.activeCellIndex = index;
    await window.jupyterapp.commands.execute('notebook:run-cell');
    const shown = notebook.model.cells.get(index).outputs.toJSON();
    return shown.map(output => output.data?.['text/plain'] ?? output.traceback?.join('\\n'));
}"""
ENDING = """
def holding(inner):
    yield inner
chain = None
for _ in range(100_000):  # freed from one end, this overflows the browser's stack
    chain = holding(chain)
    next(chain)
del chain
"""
RIGHT = re.compile(r"^(\d+) of \1 points$|^right: every assertion", re.MULTILINE)
# The numbers of two cells once they were run at once, and the first raised an error; whether that was `meant`.
BEHIND_AN_ERROR = """async ([places, meant]) => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    const ran = places.map((place, number) => {
        notebook.model.cells.get(place).sharedModel.setSource(number ? '1 + 1' : '1 / 0');
        notebook.model.cells.get(place).setMetadata('tags', meant ? ['raises-exception'] : []);
        notebook.activeCellIndex = place;
        return window.jupyterapp.commands.execute('notebook:run-cell').catch(() => null);
    });
    await Promise.all(ran);
    const cells = places.map(place => notebook.model.cells.get(place));
    return cells.map(cell => cell.executionState === 'idle' ? cell.executionCount : '*');
}"""
KEPT = """async urls => {
    const kept = new Set((await (await caches.open("lab")).keys()).map(request => request.url));
    return urls.every(url => kept.has(url));
}"""
NOT_KEPT = re.compile(r"/service-worker|-service-worker|/lab/index\.html\?")
SOURCE = "index => window.jupyterapp.shell.currentWidget.content.model.cells.get(index).sharedModel.getSource()"


LESSONS = ["02", "03", *(pytest.param(name, marks=pytest.mark.all_browsers) for name in ("00", "05", "13"))]
MOCK = "\n".join(["import sys", "from typing import Any", "from unittest.mock import MagicMock", "import numpy as np"])
MOCK += f"\n{inspect.getsource(mock_matplotlib)}mock_matplotlib()"


@pytest.mark.browser
@pytest.mark.sandbox
@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_in_the_lab_with_a_wrong_answer_then_without_a_server_with_the_right_one(
    name: str, site: Path, chromium: Any, served: ThreadingHTTPServer, tmp_path: Path
) -> None:
    (text,) = lesson_texts(COURSE, [name])
    file = f"{text.stem}/{text.stem}.ipynb"
    solved = solved_release(assemble(text))
    solutions = {grade_id(cell): cell for cell in solved.cells if grade_id(cell)}
    delivered = nbformat.read(site / "lab" / "files" / file, as_version=4)  # the lab's first lesson has a note
    cells = [solutions.get(grade_id(cell), cell) for cell in delivered.cells]
    exercise, test, mistake = min(mistakes_in(text, cells), key=lambda found: found[1])
    code = [index for index, cell in enumerate(cells) if is_code(cell)]
    before, wrong = [index for index in code if index < exercise], mistake.into(cells[exercise].source)[0]

    page = chromium.new_page()
    lab = Lab(page, Path(), f"http://127.0.0.1:{served.server_port}", "")
    asked: list[str] = []  # by the page, its workers and its service worker
    page.context.on("request", lambda request: asked.append(request.url))
    got: list[str] = []
    page.context.on("response", lambda answer: got.append(answer.url) if answer.ok else None)

    def ran(index: int, source: str = "") -> str:
        return "\n".join(map(str, page.evaluate(RUN, [index, source or cells[index].source])))

    page.goto(f"{lab.url}/lessons/{text.stem}.html")
    page.get_by_role("link", name="open it in the browser").click()
    lab.wait_open()
    assert "/lab/config-utils.js" in Late.asked[Late.asked.index("came") :], "with this, JupyterLab starts"
    assert "/lab/config-utils.js" not in Late.asked[: Late.asked.index("came")]
    assert [worker.url for worker in page.workers] == [f"{lab.url}/lab/kernel.js"], "Python starts with the page"
    ran(code[0], MOCK)
    for index in before:
        ran(index)
    assert ran(exercise, wrong) == ""
    card = ran(test)
    assert re.search(r"\d of \d", card)
    assert not RIGHT.search(card)
    page.evaluate(f"given => {{ ({RUN})(given); }}", [code[-1], ENDING])  # it has no end to wait for
    told = page.get_by_role("dialog", name="Python has stopped")
    told.get_by_text("Your notebook is safe. ").wait_for()
    assert violations(page, "#python-has-ended") == []
    told.get_by_role("button", name="OK").click()
    lab.save()

    lab.wait_until(KEPT, [url for url in got if url.startswith(f"{lab.url}/lab/") and not NOT_KEPT.search(url)])
    served.shutdown()
    served.server_close()
    page.reload()
    lab.wait_open()
    assert page.evaluate(SOURCE, exercise) == wrong
    assert "has not run since Python started" in ran(test)
    assert page.evaluate(BEHIND_AN_ERROR, [code[:2], True]) == [2, 3]
    assert page.evaluate(BEHIND_AN_ERROR, [code[:2], False]) == [4, None]
    ran(code[0], MOCK)
    said = {index: ran(index) for index in code}
    assert [said[index] for index in code if is_test(cells[index]) and not RIGHT.search(said[index])] == []
    ran(code[0], f"{cells[code[0]].source}\nfrom autograder.student import pack\npack()")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save my work as one file").first.click()
    packed = tmp_path / download.value.suggested_filename
    download.value.save_as(packed)
    here = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")  # other tests have pages of other servers open
    assert [url for url in asked if not url.startswith(here)] == []
    page.close()

    make_course(tmp_path / "course", text)
    command = ["import", text.stem, str(packed), "--course", str(tmp_path / "course"), "--student", "browser"]
    assert main(command) == 0
    linux = tmp_path / "course" / "submitted" / "linux" / file
    linux.parent.mkdir(parents=True)
    nbformat.write(solved, linux)
    with in_this_process():
        records: Any = {record.student: record for record in grade_class(Request(text.stem, tmp_path / "course"))}
    assert records["browser"].points == records["linux"].points == sum(map(points_of, cells))
