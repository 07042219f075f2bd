"""The Python side of the widgets: the story told step by step, what is sent, and what is left without a browser."""

import json
import subprocess
import sys

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from mini_autograd.drawing import GraphTooLargeError, read_graph
from mini_autograd.widgets import explore
from mini_autograd.widgets.steps import details, story


class MiniTensor:
    def __init__(self, data, inputs=(), operation="", rule=None):
        self.data, self.grad, self.inputs, self.operation, self.rule = data, 0.0, inputs, operation, rule

    def __add__(self, other):
        return MiniTensor(self.data + other.data, (self, other), "+", lambda g: (g, g))

    def __mul__(self, other):
        return MiniTensor(self.data * other.data, (self, other), "*", lambda g: (g * other.data, g * self.data))


def example():
    a, b = MiniTensor(2.0), MiniTensor(-3.0)
    return (a + b) * a, {"a": a, "b": b}


def lines(output, names=None):
    return [line for step in story(read_graph(output, names)) for line in step.lines]


def test_the_story_of_a_graph():
    assert lines(*example()) == [
        "The graph starts with its leaves: a = 2, b = -3.",
        "Step forward to evaluate one operation after another.",
        "v1 = a + b = 2 + (-3) = -1",
        "v2 = v1 \u00d7 a = -1 \u00d7 2 = -2",
        "Backward starts at the output with the gradient 1, the gradient of v2 with respect to itself.",
        "Backward through v2 = v1 \u00d7 a. Incoming gradient: 1.",
        "v1 receives 1 \u00d7 2 = 2.",
        "a receives 1 \u00d7 (-1) = -1, sum so far -1.",
        "Backward through v1 = a + b. Incoming gradient: 2.",
        "a receives 2 \u00d7 1 = 2, sum so far 1.",
        "b receives 2 \u00d7 1 = 2.",
        "Finished. Gradients of the leaves: a: 1, b: 2.",
        "The tensors' own .grad is still 0: backward() has not been called.",
    ]


def test_leaves_without_a_name_are_leaves_too():
    a = MiniTensor(2.0)
    assert lines(a * MiniTensor(3.0), {"a": a})[0] == "The graph starts with its leaves, among them a = 2."


def test_steps_carry_what_the_picture_needs():
    steps = story(read_graph(*example()))
    assert [step.phase for step in steps] == ["start", *["forward"] * 2, *["backward"] * 3, "end"]
    assert steps[0].appear == (0, 1)
    assert steps[4].flows == ((2, "2"), (3, "-1"))
    assert steps[4].gradients == ((2, "2"), (0, "-1"))
    assert dict(steps[-1].gradients) == {0: "1", 1: "2", 2: "2", 3: "1"}


def test_a_rule_that_ignores_the_incoming_gradient_is_told():
    a, b = MiniTensor(2.0), MiniTensor(3.0)
    ignoring = MiniTensor(6.0, (a, b), "*", lambda g: (b.data, a.data))
    output = ignoring * MiniTensor(4.0)
    assert [q.name for step in story(read_graph(output)) for q in step.questions] == ["v1", "4"]  # not what a receives
    assert "a receives 3 (incoming gradient \u00d7 local derivative would be 4 \u00d7 3 = 12)." in lines(
        output, {"a": a}
    )


def test_a_stored_gradient_that_disagrees_is_told():
    output, names = example()
    names["a"].grad = 5.0
    told = [
        line for line in lines(output, names) if line.startswith("a: the contributions add up to 1, but .grad holds 5")
    ]
    assert len(told) == 1
    graph = read_graph(output, names)
    assert any("holds 5" in line for line in details(graph.nodes[0], graph)["backward"])


def test_an_operation_without_a_known_rule_says_so():
    a = MiniTensor(2.0)
    assert "The gradient that a receives here is unknown: no rule could compute it." in lines(
        MiniTensor(4.0, (a,), "mystery"), {"a": a}
    )


def test_before_a_backward_step_readers_are_asked_what_arrives():
    asked = [[(q.name, q.value) for q in step.questions] for step in story(read_graph(*example()))]
    assert asked == [[], [], [], [], [("v1", 2.0), ("a", -1.0)], [("a", 2.0), ("b", 2.0)], []]
    reason = story(read_graph(*example()))[4].questions[0].reason
    assert reason == "the incoming gradient times the local slope is 1 \u00d7 2 = 2"


def test_both_shares_of_a_square_are_asked_for_together_and_of_arrays_the_shape():
    a = torch.tensor(3.0, requires_grad=True)
    (question,) = story(read_graph(a * a, {"a": a}))[3].questions
    assert (question.value, question.reason.count("= 3")) == (6.0, 2)
    w = torch.ones(4, 5, requires_grad=True)
    (question,) = story(read_graph(w.sum(), {"w": w}))[3].questions
    assert (question.value, question.shape) == (None, "(4, 5)")


def test_tensors_are_told_by_shape_and_norm():
    w = torch.ones(4, 5, requires_grad=True)
    told = " ".join(lines((w * 2).sum(), {"w": w}))
    assert "w receives an array of shape (4, 5) with norm" in told


def test_names_are_found_in_the_calling_cell():
    a, b = MiniTensor(2.0), MiniTensor(3.0)
    widget = explore(a * b)
    assert "a = {v0}, b = {v1}" in widget.steps[0]["lines"][0]  # the browser fills the numbers in
    assert widget.numbers["v"] == [2.0, 3.0, 6.0]
    assert "leaf" in explore(a * b, {}).picture


def test_looking_for_names_gives_no_warning(recwarn):
    a = torch.tensor(2.0, requires_grad=True)
    c = a * a
    assert "c = a \u00d7 a" in explore(c * a).picture
    assert not recwarn.list


def test_what_is_sent_is_plain_json_and_small():
    widget = explore(*example())
    sent = json.dumps([widget.picture, widget.steps, widget.edges, widget.details, widget.numbers])
    assert len(sent) < 20_000
    ends = [(0, 2), (1, 2), (2, 3), (0, 3)]
    assert widget.edges == [[*each, f"{{g{each[1]}}} \u00d7 {{d{number}}}"] for number, each in enumerate(ends)]
    assert (widget.numbers["g"][2:], widget.numbers["d"]) == ([2, 1], [1, 1, 2, -1])


def test_the_mime_bundle_carries_picture_and_words():
    bundle = explore(*example())._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["image/svg+xml"].startswith("<svg")
    assert "gradient of a: 1" in data["text/plain"]
    assert "tabindex" not in data["image/svg+xml"]


def test_a_graph_too_large_is_refused_in_one_sentence():
    node = MiniTensor(1.0)
    for _ in range(1000):
        node = node + node
    with pytest.raises(GraphTooLargeError, match="1,001 nodes; a drawing shows at most 1,000"):
        explore(node)


def test_without_the_widget_library_a_still_picture_is_left():
    code = (
        "import sys; sys.modules['anywidget'] = None\n"
        "from mini_autograd.widgets import explore\n"
        "class T:\n"
        "    data, grad, inputs, operation = 2.0, 0.0, (), ''\n"
        "shown = explore(T())\n"
        "print(shown._repr_svg_()[:4], repr(shown))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("<svg")


def test_no_torch_is_imported():
    code = "import sys, mini_autograd.widgets; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_a_notebook_shows_the_widget():
    source = (
        "import torch\nfrom mini_autograd.widgets import explore\n"
        "a = torch.tensor(3.0, requires_grad=True)\nexplore(a * a)"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(notebook, kernel_name="python3", timeout=600).execute()
    data = notebook.cells[0].outputs[0]["data"]
    assert {"application/vnd.jupyter.widget-view+json", "image/svg+xml", "text/plain"} <= set(data)
    assert "gradient of a: 6" in data["text/plain"]
