"""The gallery shows every demo, and each of its cells runs."""

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import mini_autograd.widgets
from autograder.cli import main
from autograder.lessons.commands.demos import gallery
from autograder.lessons.student import lab

pytestmark = pytest.mark.slow

COURSE = Path(__file__).resolve().parents[2] / "course"


@pytest.fixture(scope="module")
def executed():
    notebook = nbformat.reads(json.dumps(gallery(COURSE)), as_version=4)
    NotebookClient(notebook, timeout=600).execute()
    return notebook


def test_every_widget_is_in_the_gallery():
    source = "\n".join(cell["source"] for cell in gallery(COURSE)["cells"] if cell["cell_type"] == "code")
    assert [name for name in mini_autograd.widgets.__all__ if f"{name}(" not in source] == []


def test_every_demo_runs_and_leaves_a_picture(executed):
    shown = [cell for cell in executed.cells if cell.cell_type == "code" and "import" not in cell.source]
    bundles = [next(output.data for output in cell.outputs if "data" in output) for cell in shown]
    assert len(bundles) >= 11
    assert all("<svg" in bundle["image/svg+xml"] for bundle in bundles)
    live = [bundle for bundle in bundles if "application/vnd.jupyter.widget-view+json" in bundle]
    assert len(live) == len(bundles) - 1  # the monitor is a picture only


def test_the_command_makes_the_notebook(tmp_path, capsys):
    assert main(["demos", "--folder", str(tmp_path), "--prepare-only"]) == 0
    notebook = nbformat.read(tmp_path / "gallery.ipynb", as_version=4)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "jupytext" not in notebook.metadata
    assert all("outputs" not in cell or cell.outputs == [] for cell in notebook.cells)
    assert str(tmp_path / "gallery.ipynb") in capsys.readouterr().out


def test_the_page_is_the_notebook_alone(tmp_path):
    command = lab.server_command(tmp_path, tmp_path, tmp_path / "gallery.ipynb", None, False, page="/doc")
    assert "--LabApp.default_url=/doc/tree/gallery.ipynb" in command
