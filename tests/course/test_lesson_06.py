"""Plants classic mistakes in the solutions of lesson 06: each costs points only on the cells that it concerns."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, Planted, solved, styles

LESSON = "06_lifetime"
FREES = "test_backward_frees"

PLANTED = [
    Planted(
        "states with a history are kept",
        "",
        "        history.append(",
        '        kept = [*globals().get("kept", []), state]\n        globals()["kept"] = kept\n        history.append(',
        ("test_run_sequence",),
    ),
    Planted(
        "an array counts as often as it is saved",
        "",
        """    sizes = {id(array): array.nbytes for node in nodes for array in node.saved or ()}
    return len(nodes), sum(sizes.values())""",
        "    return len(nodes), sum(array.nbytes for node in nodes for array in node.saved or ())",
        ("test_held",),
    ),
    Planted(
        "arrays with equal sizes count once",
        "",
        "{id(array): array.nbytes",
        "{array.size: array.nbytes",
        ("test_held",),
    ),
    Planted(
        "only the first node is measured",
        "",
        "for node in nodes for array",
        "for node in nodes[:1] for array",
        ("test_held",),
    ),
    Planted("entries are counted, not bytes", "", "array.nbytes", "array.size", ("test_held", "test_release")),
    Planted(
        "freed nodes are not expected",
        "",
        "in node.saved or ()}",
        "in node.saved}",
        ("test_held", "test_release", FREES, "test_backward_each"),
    ),
    Planted(
        "the search ends at a freed node",
        "",
        "    return len(nodes), sum(sizes.values())",
        "    return len(nodes), sum(sizes.values()) if node.saved is not None else 0",
        ("test_held",),
    ),
    Planted(
        "arrays with equal entries count once",
        "",
        "{id(array): array.nbytes",
        "{(array.tobytes(), array.shape): array.nbytes",
        ("test_held",),
    ),
    Planted(
        "release frees the nodes before it, too",
        "",
        "    if self.saved:\n        self.saved = None",
        "    if self.saved:\n        self.saved = None\n"
        "    for before, _ in self.next_functions:\n        if before is not None:\n            before.release()",
        ("test_release", "test_backward", FREES, "test_backward_each", "test_run_sequence"),
    ),
    Planted(
        "the weights are changed in place",
        "",
        "    return history, state\n    ### END",
        "    w.data -= 0.1 * w.grad.data\n    return history, state\n    ### END",
        ("test_run_sequence",),
    ),
    Planted(
        "release forgets quietly",
        "",
        "    if self.saved:\n        self.saved = None",
        "    self.saved = ()",
        ("test_release", FREES, "test_backward_each"),
    ),
    Planted(
        "release frees what is empty too",
        "",
        "    if self.saved:\n        self.saved = None",
        "    self.saved = None",
        ("test_release", FREES),
    ),
    Planted(
        "releasing twice gives everything back",
        "",
        "    if self.saved:\n        self.saved = None",
        "    self.saved = None if self.saved else ()",
        ("test_release",),
    ),
    Planted(
        "what was never saved counts as freed",
        "",
        "    if self.saved is None:\n        raise",
        "    if not self.saved:\n        raise",
        ("test_release", FREES),
    ),
    Planted(
        "another kind of error",
        "",
        "raise RuntimeError(SECOND_BACKWARD)",
        "raise ValueError(SECOND_BACKWARD)",
        ("test_release", FREES, "test_backward_each"),
    ),
    Planted(
        "freed values are an empty tuple",
        "",
        "        raise RuntimeError(SECOND_BACKWARD)\n    return self.saved",
        "        return ()\n    return self.saved",
        ("test_release", FREES, "test_backward_each"),
    ),
    Planted(
        "what was saved is a list",
        "",
        "        raise RuntimeError(SECOND_BACKWARD)\n    return self.saved",
        "        raise RuntimeError(SECOND_BACKWARD)\n    return list(self.saved)",
        ("test_release",),
    ),
    Planted(
        "another text",
        "",
        "        raise RuntimeError(SECOND_BACKWARD)\n    return self.saved",
        "        raise RuntimeError('freed')\n    return self.saved",
        ("test_release", FREES),
    ),
    Planted(
        "nothing is ever freed",
        "",
        "        if not retain_graph:\n",
        "        if False:\n",
        (FREES, "test_backward_each"),
    ),
    Planted(
        "retain_graph is ignored",
        "",
        "        if not retain_graph:\n",
        "        if True:\n",
        (FREES, "test_backward_each"),
    ),
    Planted(
        "retain_graph the other way round",
        "",
        "        if not retain_graph:\n",
        "        if retain_graph:\n",
        (FREES, "test_backward_each"),
    ),
    Planted(
        "every call retains",
        "",
        "retain_graph=i < len(losses) - 1",
        "retain_graph=True",
        ("test_backward_each",),
    ),
    Planted(
        "one call for the sum of all losses",
        "",
        "    for i, loss in enumerate(losses):\n        loss.backward(retain_graph=i < len(losses) - 1)\n",
        "    if losses:\n        sum(losses).backward()\n",
        ("test_backward_each",),
    ),
    Planted(
        "the last loss comes first",
        "",
        "    for i, loss in enumerate(losses):\n",
        "    for i, loss in enumerate(reversed(losses)):\n",
        ("test_backward_each",),
    ),
    Planted(
        "the list of losses is emptied",
        "",
        """    for i, loss in enumerate(losses):
        loss.backward(retain_graph=i < len(losses) - 1)""",
        """    while losses:
        loss = losses.pop(0)
        loss.backward(retain_graph=bool(losses))""",
        ("test_backward_each",),
    ),
    Planted(
        "one call for all steps",
        "",
        """        loss.backward()
        history.append(loss.item())
        state = MiniTensor(state.data)
    return history, state""",
        """        history.append(loss)
        state = MiniTensor(state.data)
    sum(history[1:], history[0]).backward()
    return [loss.item() for loss in history], state""",
        ("test_run_sequence",),
    ),
    Planted(
        "the last state is an array",
        "",
        "        state = MiniTensor(state.data)\n    return history, state",
        "        state = MiniTensor(state.data)\n    return history, state.data",
        ("test_run_sequence",),
    ),
    Planted("no call retains", "", "retain_graph=i < len(losses) - 1", "retain_graph=False", ("test_backward_each",)),
    Planted(
        "only the first call retains",
        "",
        "retain_graph=i < len(losses) - 1",
        "retain_graph=i == 0 < len(losses) - 1",
        ("test_backward_each",),
    ),
    Planted(
        "losses are remembered as tensors",
        "",
        "history.append(loss.item())",
        "history.append(loss)",
        ("test_run_sequence",),
    ),
    Planted(
        "the state keeps its history",
        "",
        "        loss.backward()\n        history.append(loss.item())\n        state = MiniTensor(state.data)",
        "        loss.backward(retain_graph=True)\n        history.append(loss.item())",
        ("test_run_sequence",),
    ),
    Planted(
        "the gradient is cleared at the start",
        "",
        "    state, history = MiniTensor(np.zeros(targets[0].shape)), []\n    for",
        "    w.grad, state, history = None, MiniTensor(np.zeros(targets[0].shape)), []\n    for",
        ("test_run_sequence",),
    ),
    Planted(
        "the weights change",
        "",
        "        state = MiniTensor(state.data)\n    return",
        "        state = MiniTensor(state.data)\n    w.data = 2 * w.data\n    return",
        ("test_run_sequence",),
    ),
    Planted(
        "the state is not carried on",
        "",
        "        state = MiniTensor(state.data)\n    return",
        "        state = MiniTensor(0 * state.data)\n    return",
        ("test_run_sequence",),
    ),
    Planted(
        "one backward call for everything",
        "",
        "        loss.backward()\n        history.append(loss.item())\n        state = MiniTensor(state.data)",
        "        total = total + loss if history else loss\n        history.append(loss.item())\n    total.backward()",
        ("test_run_sequence",),
    ),
    Planted(
        "sizes are kept between calls",
        "",
        """    sizes = {id(array): array.nbytes for node in nodes for array in node.saved or ()}
    return""",
        """    sizes = held.__dict__
    sizes.update({str(id(array)): array.nbytes for node in nodes for array in node.saved or ()})
    return""",
        ("test_held", "test_release", FREES, "test_backward_each"),
    ),
    Planted(
        "measuring frees",
        "",
        "    return len(nodes), sum(sizes.values())",
        """    for node in nodes:
        node.saved = None
    return len(nodes), sum(sizes.values())""",
        ("test_held", FREES),
    ),
    Planted(
        "scalars are left out",
        "",
        "for array in node.saved or ()}",
        "for array in node.saved or () if isinstance(array, np.ndarray)}",
        ("test_held",),
    ),
    Planted(
        "release sets a mark and frees nothing",
        "",
        "    if self.saved:\n        self.saved = None",
        "    if self.saved:\n        self.freed = True",
        ("test_release", FREES, "test_backward_each"),
    ),
    Planted(
        "release keeps the values under another name",
        "",
        "    if self.saved:\n        self.saved = None",
        "    if self.saved:\n        self.old, self.saved = self.saved, None",
        ("test_release",),
    ),
    Planted(
        "releasing twice is an error",
        "",
        "    if self.saved:\n        self.saved = None",
        "    if len(self.saved) > 0:\n        self.saved = None",
        ("test_release",),
    ),
    Planted(
        "half of the text",
        "",
        "raise RuntimeError(SECOND_BACKWARD)",
        "raise RuntimeError('Trying to backward through the graph a second time')",
        ("test_release",),
    ),
    Planted("backward frees by itself", "", "node.release()\n", "node.saved = None\n", (FREES,)),
    Planted(
        "a running sum of all losses",
        "",
        "    for i, loss in enumerate(losses):\n        loss.backward(retain_graph=i < len(losses) - 1)\n",
        """    total = losses[0] if losses else None
    for loss in losses[1:]:
        total = total + loss
    if losses:
        total.backward()
""",
        ("test_backward_each",),
    ),
    Planted(
        "the list of losses is turned around",
        "",
        "    for i, loss in enumerate(losses):\n",
        "    losses.reverse()\n    for i, loss in enumerate(losses):\n",
        ("test_backward_each",),
    ),
    Planted(
        "backward is forgotten",
        "",
        "        loss.backward()\n        history",
        "        history",
        ("test_run_sequence",),
    ),
    Planted(
        "a copy of the weights is trained",
        "",
        "    state, history = MiniTensor(np.zeros(targets[0].shape)), []\n    for",
        """    w = MiniTensor(w.data, requires_grad=True)
    state, history = MiniTensor(np.zeros(targets[0].shape)), []
    for""",
        ("test_run_sequence",),
    ),
    Planted(
        "the state goes on into the next run",
        "",
        """    state, history = MiniTensor(np.zeros(targets[0].shape)), []
    for x, target in zip(inputs, targets):
        state = (state @ w + x).tanh()""",
        """    kept, history = run_sequence.__dict__, []
    state = MiniTensor(kept.get("state", np.zeros(targets[0].shape)))
    for x, target in zip(inputs, targets):
        state = (state @ w + x).tanh()
        kept["state"] = state.data""",
        ("test_run_sequence",),
    ),
    Planted(
        "the state is written into the inputs",
        "",
        "        state = MiniTensor(state.data)\n    return",
        "        x[...] = state.data\n        state = MiniTensor(x)\n    return",
        ("test_run_sequence",),
    ),
    Planted(
        "the inputs are emptied",
        "",
        "    for x, target in zip(inputs, targets):\n        state = (state @ w + x)",
        "    for target in targets:\n        state = (state @ w + inputs.pop(0))",
        ("test_run_sequence",),
    ),
    Planted(
        "the state requires a gradient",
        "",
        "        state = MiniTensor(state.data)\n    return",
        "        state = MiniTensor(state.data, requires_grad=True)\n    return",
        ("test_run_sequence",),
    ),
    Planted(
        "the history goes on into the next run",
        "",
        "    state, history = MiniTensor(np.zeros(targets[0].shape)), []\n    for",
        """    state, history = MiniTensor(np.zeros(targets[0].shape)), run_sequence.__dict__.setdefault("old", [])
    for""",
        ("test_run_sequence",),
    ),
    Planted(
        "backward takes the edges of a node away",
        "",
        "            node.release()\n",
        "            node.release()\n            node.next_functions = ()\n",
        ("test_backward", FREES, "test_backward_each", "test_run_sequence"),
    ),
    Planted(
        "the losses are returned",
        "",
        "        loss.backward(retain_graph=i < len(losses) - 1)\n",
        "        loss.backward(retain_graph=i < len(losses) - 1)\n    return losses\n",
        ("test_backward_each",),
    ),
    Planted(
        "only the last loss runs backward",
        "",
        "        loss.backward()\n        history.append(loss.item())\n"
        "        state = MiniTensor(state.data)\n    return",
        "        history.append(loss.item())\n        state = MiniTensor(state.data)\n    loss.backward()\n    return",
        ("test_run_sequence",),
    ),
    Planted(
        "the state comes first",
        "",
        "    return history, state\n    ### END",
        "    return state, history\n    ### END",
        ("test_run_sequence",),
    ),
    Planted(
        "each state is a leaf that gets a gradient",
        "",
        "        state = MiniTensor(state.data)\n    return history, state\n",
        "        state = MiniTensor(state.data, requires_grad=True)\n    return history, MiniTensor(state.data)\n",
        ("test_run_sequence",),
    ),
    Planted(
        "retain_graph is left in",
        "",
        "        loss.backward()\n        history",
        "        loss.backward(retain_graph=True)\n        history",
        ("test_run_sequence",),
    ),
]
STYLES = ["", *styles(LESSON)]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 6
    visible = True
    examples = 36


@pytest.fixture(params=STYLES, ids=lambda style: style or "solution")
def lesson(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def test_a_second_backward_says_what_pytorch_says(lesson: dict[str, Any]) -> None:
    texts = []
    for x in (lesson["MiniTensor"](2.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)):
        y = x**3
        y.backward()
        with pytest.raises(RuntimeError) as caught:
            y.backward()
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_values_go_with_backward_and_nodes_with_the_loss(lesson: dict[str, Any]) -> None:
    x = lesson["MiniTensor"](np.ones(100), requires_grad=True)
    h = x.exp()
    saved, node = weakref.ref(h.data), weakref.ref(h.grad_fn)
    loss = (h * 2.0).sum()
    del h
    assert saved() is not None
    loss.backward()
    assert saved() is None
    assert node() is not None
    del loss
    assert node() is None
