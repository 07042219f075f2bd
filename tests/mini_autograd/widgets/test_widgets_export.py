"""Exported pages: every widget leaves a picture in them, with the plain command and with the state of widgets saved."""

import base64
import re
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

import mini_autograd.widgets
from mini_autograd.widgets.export import STATE, VIEW, StillPictures

EXAMPLE = "import mini_autograd as ma\nx = ma.tensor([1.0, 2.0], requires_grad=True)\ny = (x * 3.0).sum()"
MONITORED = "for loss in monitor([3.0, 2.0, 1.0]):\n    monitor.log(loss=loss)"


def calls():
    """One cell per widget of the package: every demo, and the widgets that need something to show."""
    functions = [getattr(mini_autograd.widgets, name) for name in mini_autograd.widgets.__all__]
    demos = [f"{f.__name__}()" for f in functions if hasattr(sys.modules[f.__module__], "demo")]
    assert len(demos) >= 8
    return ["explore(y)", MONITORED, *demos]


@pytest.fixture(scope="module")
def executed():
    sources = [
        f"from mini_autograd.widgets import *\n{EXAMPLE}",
        *calls(),
        "import ipywidgets\nipywidgets.IntSlider(7)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, kernel_name="python3", store_widget_state=True).execute()
    return notebook


def labels_of(page):
    """The labels of the pictures in a page, which say what the pictures show."""
    embedded = re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", page)
    pictures = " ".join(base64.b64decode(text).decode() for text in embedded) + page
    return re.findall(r'<svg[^>]*aria-label="([^"]+)"', pictures)


@pytest.mark.slow
def test_plain_nbconvert_shows_a_picture_for_each_widget(executed, tmp_path):
    nbformat.write(executed, tmp_path / "all.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "all.ipynb"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    assert len(labels_of(page)) == len(calls())
    assert page.count(f'<script type="{VIEW}">') == 1  # the slider, which has no picture


def test_a_picture_that_is_shown_as_an_image_brings_its_own_paper_and_ink(executed):
    stills = [output.data["image/svg+xml"] for cell in executed.cells for output in cell.outputs if "data" in output
              and "image/svg+xml" in output.data]  # fmt: skip
    assert len(stills) == len(calls())
    for still in stills:
        graph = 'class="ma-page"' in still  # a graph follows the reader's system, with the paper that belongs to it
        assert graph or ' color="#1f1f1f"' in still.partition(">")[0]
        assert graph or 'fill="#ffffff"' in still.split("<rect", 1)[1].partition("/>")[0]


def test_only_what_is_not_shown_loses_its_state(executed):
    notebook, _ = StillPictures().preprocess(nbformat.from_dict(executed), {})
    kinds = {state["model_name"] for state in notebook.metadata.widgets[STATE]["state"].values()}
    assert kinds == {"IntSliderModel", "LayoutModel", "SliderStyleModel"}
    views = [VIEW in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    assert views.count(True) == 1


def test_a_notebook_without_widgets_is_left_as_it_is():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title")])
    before = nbformat.writes(notebook)
    StillPictures().preprocess(notebook, {})
    assert nbformat.writes(notebook) == before


def test_feedback_pages_show_the_picture_without_a_script(executed):
    from traitlets.config import Config

    from autograder.nbgrader_plugins.configuration import configure
    from autograder.nbgrader_plugins.feedback import FeedbackExporter
    from autograder.nbgrader_plugins.first_screen import FirstScreen

    config = Config()
    configure(config)
    marks = {"notebook": "widgets", "score": 0.0, "max_score": 0.0, "late_penalty": 0.0}
    resources = FirstScreen().preprocess(executed, {"nbgrader": marks})[1]
    page, _ = FeedbackExporter(config=config).from_notebook_node(executed, resources)
    assert len(labels_of(page)) == len(calls())
    assert "<script" not in page
