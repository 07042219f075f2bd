"""The training monitor: what it keeps, on every engine, and that nothing is lost no matter how a loop ends."""

import io
import math
import re
import sys
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient
from rich.console import Console

import mini_autograd
from mini_autograd.widgets import monitor
from mini_autograd.widgets.demos.monitor import ALWAYS, InTerminal, Monitor, gradient_norms
from mini_autograd.widgets.demos.monitor_picture import BINS, MOST, draw, some, thinned
from mini_autograd.widgets.static import on_paper


class Recorder:
    """A display that notes when it was asked to draw."""

    def __init__(self):
        self.states = []

    def show(self, monitor, last):
        self.states.append((monitor.state, last))


class MiniTensor:
    """A student's tensor: an array, and a gradient that is also a tensor."""

    def __init__(self, data, grad=None):
        self.data, self.grad = np.asarray(data), grad

    def item(self):
        return self.data.item()


def torch_model(library):
    model = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.Tanh(), library.nn.Linear(3, 1))
    model(library.ones(4, 2)).sum().backward()
    return model


def expected(model):
    return {
        name: math.sqrt(sum(float((np.asarray(p.grad.numpy(), dtype=float) ** 2).sum()) for p in layer))
        for name, layer in (("0", list(model[0].parameters())), ("2", list(model[2].parameters())))
    }


@pytest.mark.parametrize("library", [torch, mini_autograd])
def test_norms_of_a_models_layers(library):
    model = torch_model(library)
    norms = gradient_norms(model)
    assert norms == pytest.approx(expected(model), rel=1e-5)
    assert list(norms) == ["0", "2"]


@pytest.mark.parametrize(
    ("model", "norms"),
    [
        ([MiniTensor([1.0, 2.0], MiniTensor([3.0, 4.0]))], {"parameter 0": 5.0}),
        ([MiniTensor([1.0], np.array([2.0])), MiniTensor([1.0])], {"parameter 0": 2.0}),
        ([MiniTensor(1.0, 2.5)], {"parameter 0": 2.5}),
        ({"a.weight": MiniTensor(1.0, 3.0), "a.bias": MiniTensor(1.0, 4.0)}, {"a": 5.0}),
        ({"w": torch.ones(2)}, {}),
    ],
)
def test_norms_of_what_else_has_gradients(model, norms):
    assert gradient_norms(model) == norms


@pytest.mark.parametrize("loss", [2.5, np.float32(2.5), torch.tensor(2.5), mini_autograd.tensor(2.5), MiniTensor(2.5)])
def test_losses_of_every_kind_are_kept_as_numbers(loss):
    watched = Monitor([1], display=Recorder())
    for _ in watched:
        watched.log(loss=loss)
    assert watched.history["loss"].values == [2.5]
    assert type(watched.history["loss"].values[0]) is float


def test_a_loss_that_is_no_number_is_refused_in_words():
    with pytest.raises(ValueError, match="takes numbers and tensors of one element"):
        Monitor([1], display=Recorder()).log(loss=torch.ones(2))


def test_it_yields_the_batches_and_remembers_over_passes():
    watched = Monitor(["a", "b", "c"], display=Recorder())
    for _ in range(2):
        assert [batch for batch in watched if watched.log(loss=1.0) is None] == ["a", "b", "c"]
    assert watched.history["loss"].steps == [1, 2, 3, 4, 5, 6]
    assert (watched.step, watched.passes, watched.total) == (6, 2, 3)
    assert watched.describe() == "step 3 of 3, pass 2: finished; loss 1"


@pytest.mark.parametrize("ending", ["break", "error"])
def test_nothing_is_lost_when_the_loop_does_not_end_by_itself(ending):
    display = Recorder()
    watched = Monitor(range(10), display=display)

    def loop():
        for i in watched:
            watched.log(loss=float(i))
            if i == 4 and ending == "error":
                raise KeyError(i)
            if i == 4:
                break

    if ending == "error":
        with pytest.raises(KeyError):
            loop()
        watched.finish()  # what the end of a cell or of the program does
    else:
        loop()
    assert display.states[-1] == ("stopped in step 5", True)
    assert watched.history["loss"].values == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert sum(last for _, last in display.states) == 1


def test_a_loader_of_a_stream_has_no_length():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    watched = Monitor(torch.utils.data.DataLoader(Stream()), display=Recorder())
    assert len(list(watched)) == 5
    assert watched.total is None
    assert "step 5: finished" in watched.describe()


def test_measuring_and_drawing_take_a_small_part_of_the_time(monkeypatch):
    """With a clock that only moves when gradients are measured, the loop has no time of its own: measuring stops."""
    now = [0.0]
    module = sys.modules["mini_autograd.widgets.demos.monitor"]
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def costly(model):
        now[0] += 1.0
        return {"layer": 1.0}

    monkeypatch.setattr(module, "gradient_norms", costly)
    display = Recorder()
    watched = Monitor(range(300), model=object(), display=display)
    for _ in watched:
        watched.log(loss=1.0)
    assert len(watched.norms["layer"].steps) == ALWAYS
    assert len(watched.history["loss"].steps) == 300


def test_a_loss_that_becomes_nan_is_told_and_marked():
    watched = Monitor(range(5), display=Recorder())
    for i in watched:
        watched.log(loss=1.0 / (i + 1) if i < 3 else math.nan)
    assert "loss has been nan since step 4" in watched.describe()
    assert ">loss: nan</text>" in draw(watched)


def test_a_long_curve_keeps_its_spikes():
    watched = Monitor(range(5000), display=Recorder())
    for i in watched:
        watched.log(loss=100.0 if i == 2345 else 1.0 + i % 2)
    points = thinned(watched.history["loss"])
    assert (2346, 100.0) in points
    assert len(points) <= 2 * BINS
    assert [step for step, _ in points] == sorted(step for step, _ in points)


def test_of_many_layers_the_first_and_the_last_are_drawn():
    names = list(some({f"layer{i}": i for i in range(20)}))
    assert names == ["layer0", "layer1", "layer2", "layer3", "layer16", "layer17", "layer18", "layer19"]
    assert len(names) == MOST


@pytest.mark.parametrize("values", [[1.0], [0.0, 0.0], [-1.0, 2.0], [1e-9, 1e9], [math.inf, math.nan], [5.0, 5.0, 5.0]])
def test_any_numbers_can_be_drawn(values):
    watched = Monitor(values, display=Recorder())
    for value in watched:
        watched.log(loss=value)
    places = re.findall(r'(?:d|x|y|x1|y1|width|height|transform)="([^"]*)"', draw(watched))
    assert places
    assert not any("nan" in place or "inf" in place for place in places)


def test_a_plain_progress_bar_outside_notebooks():
    text = io.StringIO()
    watched = Monitor(range(8), display=InTerminal(Console(file=text, force_terminal=True, width=100)))
    for i in watched:
        watched.log(loss=0.5)
        if i == 5:
            break
    assert "5/8" in text.getvalue()
    assert "loss 0.5" in text.getvalue()
    assert "step 5 of 8: stopped in step 6; loss 0.5" in text.getvalue()
    assert "\x1b[?25h" in text.getvalue()  # the cursor is back


def test_log_needs_a_loop(monkeypatch):
    monkeypatch.setattr(sys.modules["mini_autograd.widgets.demos.monitor"], "running", [])
    with pytest.raises(RuntimeError, match="before any loop"):
        monitor.log(loss=1.0)


CELLS = (
    """
from mini_autograd.widgets import monitor
import torch
model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
for i in monitor(range(20), model=model):
    loss = model(torch.ones(3, 2)).pow(2).mean()
    loss.backward()
    monitor.log(loss=loss)
""",
    "for i in monitor(20):\n    monitor.log(loss=i)\n    if i == 7: break",
    "for i in monitor(20):\n    monitor.log(loss=i)\n    if i == 9: raise KeyError(i)",
)


@pytest.mark.slow
def test_in_a_notebook_the_last_picture_stays():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    NotebookClient(notebook, timeout=300, allow_errors=True).execute()
    pictures = [
        [output.data for output in cell.outputs if output.output_type == "display_data"] for cell in notebook.cells
    ]
    assert [len(cell) for cell in pictures] == [1, 1, 1]
    (finished,), (broken,), (failed,) = pictures
    assert "step 20 of 20: finished; loss" in finished["text/plain"]
    assert "length of the gradient, by layer" in finished["image/svg+xml"]
    live = finished["text/html"].partition(">")[2].removesuffix("</div>")
    assert 'style="max-width: 100%; height: auto;' in live  # it shrinks with a narrow page
    assert finished["image/svg+xml"] == on_paper(live)  # only the HTML takes the page's colors
    assert broken["text/plain"] == "step 7 of 20: stopped in step 8; loss 7"
    assert failed["text/plain"] == "step 9 of 20: stopped in step 10; loss 9"
