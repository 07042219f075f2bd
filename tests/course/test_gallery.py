"""The gallery shows every demo. Its cells run in the browser's test and for the website."""

from pathlib import Path

import nbformat

import mini_autograd.widgets
from autograder.cli import main
from autograder.lessons.commands.demos import gallery
from autograder.lessons.student import lab

COURSE = Path(__file__).resolve().parents[2] / "course"


def test_every_widget_is_in_the_gallery():
    source = "\n".join(cell["source"] for cell in gallery(COURSE)["cells"] if cell["cell_type"] == "code")
    assert [name for name in mini_autograd.widgets.__all__ if f"{name}(" not in source] == []


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
