"""What stands in for PyTorch in a notebook where there is none, in a real kernel."""

from __future__ import annotations

import pytest
from nbclient import NotebookClient
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograder.lessons.student.shell import STANDS_IN

HELPERS = '''"""Helpers."""

import torch


def square_of(x):
    """Print the gradient of a square."""
    x = torch.tensor(x, requires_grad=True)
    (x * x).backward()
    print("PyTorch:", x.grad.item())
'''
CELLS = {
    "imports": "import torch\nimport torch.nn.functional as F\nfrom torch import nn",
    "the names": "print(torch.__name__, F.__name__, nn.Linear(2, 1).weight.is_leaf)",
    "a label": "x = torch.tensor(3.0, requires_grad=True)\n(x * x).backward()\nprint(f'PyTorch: {x.grad}')",
    "a name of PyTorch's": "print('torch.func.grad:', torch.func.grad(lambda x: x * x)(x).item())",
    "code in a text": "print(eval('torch.ones(3).sum().item()', vars(sys.modules['__main__'])))",
    "a tensor": "print(x.grad)",
    "a function of the notebook": "def doubled():\n    return 2 * x",
    "calls it": "print(doubled().item())",
    "a helper": "from helpers_99 import square_of\n\nsquare_of(2.0)",
    "an exercise": 'def square(x, leaf=None):\n    """As in PyTorch."""\n    return x * x',
    "a label alone": "print('difference from PyTorch:', 0.0)",
    "numbers": "numbers = [1.0]\nprint(numbers)",
    "what the engine lacks, beside another name": (
        "import math\nfrom torch.utils._python_dispatch import TorchDispatchMode\nprint(math.sqrt(4))"
    ),
    "uses it": "class Counting(TorchDispatchMode):\n    pass",
    "needs what uses it": "Counting()",
    "a function that the engine lacks": "torch.jit.trace(doubled, ())",
    "an option that the engine lacks": "torch.compile(doubled, backend='eager')",
    "a misspelled name": "print(nubmers)",
    "a picture": "from mini_autograd.widgets import explore\n\nexplore(lambda: (x * x).detach() * x)",
    "a check": (
        "# Run this cell to check your answer (1 point).\n"
        "check_gradients(lambda a: a.relu(), [()], engine=lambda *a, **k: torch.tensor(*a, **k), "
        "at_kinks='PyTorch')"
    ),
    "for checks": "from autograder.runs import engines\n\nprint(engines.has_torch())",
}
CELLS |= {
    "a prediction": (
        "from autograder.student import predict\n"
        "predict('Which does PyTorch refuse?', 'only that of PyTorch', 'neither')\nprint('PyTorch: refused')"
    ),
    "its verdict": (
        "from ipywidgets.widgets.widget import _instances\n"
        "print([asked.outcome for asked in _instances.values() if hasattr(asked, 'outcome')])"
    ),
}
OUTCOMES = """\"Which does PyTorch refuse?\" = '("neither", "only that of PyTorch")["refused" in line("PyTorch:")]'\n"""
HIDE = "import sys\nsys.modules['torch'] = None  # as where there is no build of it\n"
NOTED = {"imports", "the names", "a label", "a name of PyTorch's", "a tensor", "a function of the notebook", "calls it"}
NOTED |= {"a helper", "a label alone", "what the engine lacks, beside another name", "a picture", "a prediction"}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("lesson")
    (folder / "helpers_99.py").write_text(HELPERS, encoding="utf-8")
    (folder / "outcomes_99.toml").write_text(OUTCOMES, encoding="utf-8")
    start = new_code_cell(f"{HIDE}from autograder.student import check_gradients")
    notebook = new_notebook(cells=[start, *map(new_code_cell, CELLS.values())])
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, kernel_name="python3", allow_errors=True, resources=place).execute()
    assert not (folder / "__pycache__").exists()
    shown = ("\n".join(map(_told, cell.outputs)) for cell in notebook.cells[1:])
    return dict(zip(CELLS, shown, strict=True))


def _told(output: NotebookNode) -> str:
    if output.output_type == "error":
        return strip_ansi("\n".join(output.traceback))
    return str(output.get("text") or output.data["text/plain"])


def test_the_engine_has_its_own_name(said: dict[str, str]) -> None:
    assert said["the names"].startswith("mini_autograd mini_autograd.nn.functional True")
    assert said["a label"].startswith("mini_autograd: 6.0")
    assert said["a helper"].startswith("mini_autograd: 4.0")
    assert said["a name of PyTorch's"].startswith("mini_autograd.func.grad: 6.0")
    assert said["code in a text"].startswith("3.0")


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_that_uses_it_says_so_once_and_no_other(name: str, said: dict[str, str]) -> None:
    assert said[name].count(STANDS_IN) == (name in NOTED)


def test_what_cannot_run_says_why_in_a_sentence(said: dict[str, str]) -> None:
    why = {
        "uses it": "(torch.utils._python_dispatch.TorchDispatchMode)",
        "needs what uses it": "`Counting` comes from a cell that could not run",
        "a function that the engine lacks": "torch.jit is left out on purpose",
        "an option that the engine lacks": "(compile() got an unexpected keyword argument 'backend')",
    }
    assert said["what the engine lacks, beside another name"].startswith("2.0")
    for name, part in why.items():
        assert said[name].startswith("This cell cannot run here: ")
        assert part in said[name]
        assert "skip it" in said[name]
    assert "NameError: name 'nubmers' is not defined" in said["a misspelled name"]


def test_checks_take_it_for_nothing(said: dict[str, str]) -> None:
    assert "PyTorch: not installed here" in said["a check"]
    assert said["for checks"].strip() == "False"


def test_a_prediction_gets_its_verdict_in_the_same_words(said: dict[str, str]) -> None:
    assert said["its verdict"].strip() == "['only that of mini_autograd']"


def test_a_graph_can_be_drawn(said: dict[str, str]) -> None:
    assert "gradient of x: 9" in said["a picture"]
