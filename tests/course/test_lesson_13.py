"""Plants classic mistakes in the solutions of lesson 13: each costs points where it was made.

A wrong checkpoint may cost points on the cells that use it as well. Checkpoints in every style are tried on
networks with dropout and shared weights, also nested, and compared with PyTorch's.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from tests.course.planting import LessonTests, Planted, cells_that_define, secret_by_name, solved, styles

LESSON = "13_memory"
MEMORY, SEGMENTS = "test_checkpoint_memory", "test_in_segments"
CHECKPOINT = ("test_checkpoint", MEMORY)

PLANTED = [
    Planted(
        "a view counts with the bytes that it shows",
        "",
        "kept = [owner(array) for node in nodes for array in arrays_kept_by(node)]\n"
        "    sizes = {id(array): array.nbytes for array in kept}",
        "kept = [array for node in nodes for array in arrays_kept_by(node)]\n"
        "    sizes = {id(owner(array)): array.nbytes for array in kept}",
        ("test_saved_bytes",),
    ),
    Planted(
        "arrays count, not memory",
        "",
        "kept = [owner(array) for",
        "kept = [array for",
        ("test_saved_bytes",),
    ),
    Planted(
        "a view of a parameter is no parameter",
        "",
        "leaves = {id(owner(n.variable.data)) for",
        "leaves = {id(n.variable) for",
        ("test_saved_bytes",),
    ),
    Planted(
        "freed nodes and entries of None stop the count",
        "",
        " for array in arrays_kept_by(node)]",
        " for array in node.saved_tensors]",
        ("test_saved_bytes",),
    ),
    Planted(
        "parameters are counted among the activations too",
        "",
        "return sum(sizes.values()) - parameters, parameters",
        "return sum(sizes.values()), parameters",
        ("test_saved_bytes",),
    ),
    Planted(
        "the arrays are kept",
        "",
        "        return len(shapes) - 1\n",
        "        ready[len(shapes) - 1] = array\n        return len(shapes) - 1\n",
        (MEMORY, SEGMENTS),
    ),
    Planted(
        "the second run is not recorded when backward runs in no_grad",
        "",
        "            found = arrays_saved_in(function, inputs)\n",
        "            found = []\n"
        "            with saved_tensors_hooks(lambda array: found.append(array) or array, np.asarray):\n"
        "                function(*inputs)\n",
        (MEMORY,),
    ),
    Planted(
        "every array has a run of its own",
        "",
        "            ready.update(enumerate(found))\n",
        "            return found[number]\n",
        (MEMORY, SEGMENTS),
    ),
    Planted("what was computed again is kept", "", "return ready.pop(number)", "return ready[number]", (MEMORY,)),
    Planted(
        "another second run is not noticed",
        "",
        "            if [array.shape for array in found] != shapes:\n",
        "            if False:\n",
        (MEMORY,),
    ),
    Planted(
        "only the number of arrays is compared",
        "",
        "            if [array.shape for array in found] != shapes:\n",
        "            if len(found) != len(shapes):\n",
        (MEMORY,),
    ),
    Planted(
        "a changed input is not noticed",
        "",
        "            if versions(inputs) != before:\n",
        "            if False:\n",
        (MEMORY,),
    ),
    Planted(
        "a changed input is noticed only after the second run",
        "",
        "            if versions(inputs) != before:\n                raise RuntimeError(CHANGED_INPUT)\n",
        "            function(*inputs)\n"
        "            if versions(inputs) != before:\n                raise RuntimeError(CHANGED_INPUT)\n",
        (MEMORY,),
    ),
    Planted(
        "only inputs that require grad are watched",
        "",
        "    shapes, ready, before = [], {}, versions(inputs)\n",
        "    def versions(inputs):\n"
        "        return [x._version for x in inputs if getattr(x, 'requires_grad', False)]\n\n"
        "    shapes, ready, before = [], {}, versions(inputs)\n",
        (MEMORY,),
    ),
    Planted(
        "a refused run hands out its arrays later",
        "",
        "            if [array.shape for array in found] != shapes:\n                raise RuntimeError(OTHER_RUN)\n"
        "            ready.update(enumerate(found))\n",
        "            ready.update(enumerate(found))\n"
        "            if [array.shape for array in found] != shapes:\n                raise RuntimeError(OTHER_RUN)\n",
        (MEMORY,),
    ),
    Planted(
        "versions are compared in the first backward pass only",
        "",
        "            if versions(inputs) != before:\n                raise RuntimeError(CHANGED_INPUT)\n",
        "            if not hasattr(unpack, 'compared') and versions(inputs) != before:\n"
        "                raise RuntimeError(CHANGED_INPUT)\n"
        "            unpack.compared = True\n",
        (MEMORY,),
    ),
    Planted(
        "shapes are compared in the first backward pass only",
        "",
        "            if [array.shape for array in found] != shapes:\n                raise RuntimeError(OTHER_RUN)\n",
        "            if not hasattr(unpack, 'compared') and [array.shape for array in found] != shapes:\n"
        "                raise RuntimeError(OTHER_RUN)\n"
        "            unpack.compared = True\n",
        (MEMORY,),
    ),
    Planted(
        "copies of the inputs are kept",
        "",
        "    shapes, ready, before = [], {}, versions(inputs)\n",
        "    shapes, ready, before = [], {}, versions(inputs)\n"
        "    ready['copies'] = [x.data.copy() for x in inputs if isinstance(x, MiniTensor)]\n",
        (MEMORY,),
    ),
    Planted(
        "only one argument reaches the function",
        "",
        "    def call(*arguments):\n        now",
        "    def call(*arguments):\n        arguments = arguments[:1]\n        now",
        ("test_repeatable",),
    ),
    Planted(
        "a first call that fails does not count",
        "",
        "            first.append(now)\n            return function(*arguments)\n",
        "            result = function(*arguments)\n            first.append(now)\n            return result\n",
        ("test_repeatable",),
    ),
    Planted(
        "the function gets copies of the inputs",
        "",
        "    with saved_tensors_hooks(pack, unpack):\n        return function(*inputs)",
        "    inputs = [MiniTensor(as_tensor(x).data, requires_grad=True) for x in inputs]\n"
        "    with saved_tensors_hooks(pack, unpack):\n        return function(*inputs)",
        CHECKPOINT,
    ),
    Planted(
        "all checkpoints share one list of shapes",
        "",
        "    shapes, ready, before = [], {}, versions(inputs)\n",
        "    shapes, ready, before = vars(checkpoint).setdefault('shapes', []), {}, versions(inputs)\n",
        (*CHECKPOINT, SEGMENTS),
    ),
    Planted(
        "the second run gets copies without gradient",
        "",
        "found = arrays_saved_in(function, inputs)\n",
        "found = arrays_saved_in(function, [as_tensor(x).detach() for x in inputs])\n",
        CHECKPOINT,
    ),
    Planted(
        "the forward pass is not recorded",
        "",
        "    with saved_tensors_hooks(pack, unpack):\n        return function(*inputs)",
        "    with no_grad(), saved_tensors_hooks(pack, unpack):\n        return function(*inputs)",
        (*CHECKPOINT, SEGMENTS),
    ),
    Planted(
        "no checkpoint at all",
        "",
        "    with saved_tensors_hooks(pack, unpack):\n",
        "    if True:\n",
        (MEMORY, SEGMENTS),
    ),
    Planted(
        "all checkpoints store in one place",
        "",
        "    shapes, ready, before = [], {}, versions(inputs)\n",
        "    shapes, ready, before = [], vars(checkpoint), versions(inputs)\n",
        ("test_checkpoint",),
    ),
    Planted(
        "inputs become tensors",
        "",
        "    with saved_tensors_hooks(pack, unpack):\n        return function(*inputs)",
        "    inputs = [as_tensor(x) for x in inputs]\n"
        "    with saved_tensors_hooks(pack, unpack):\n        return function(*inputs)",
        ("test_checkpoint",),
    ),
    Planted(
        "the state is taken too early",
        "",
        "    first = []\n\n    def call(*arguments):\n",
        "    first = []\n    start = [generator.bit_generator.state for generator in generators]\n\n"
        "    def call(*arguments):\n"
        "        if first:\n            first[0] = start\n",
        ("test_repeatable",),
    ),
    Planted(
        "the start is remembered anew in every call",
        "",
        "            first.append(now)\n            return function(*arguments)\n",
        "            return function(*arguments)\n",
        ("test_repeatable",),
    ),
    Planted(
        "later numbers are repeated as well",
        "",
        "        finally:\n            move(generators, now)\n",
        "        finally:\n            pass\n",
        ("test_repeatable",),
    ),
    Planted(
        "a later call puts back only the first generator",
        "",
        "        finally:\n            move(generators, now)\n",
        "        finally:\n            move(generators[:1], now)\n",
        ("test_repeatable",),
    ),
    Planted(
        "an error leaves the generators where they are",
        "",
        "        try:\n            return function(*arguments)\n        finally:\n            move(generators, now)\n",
        "        result = function(*arguments)\n        move(generators, now)\n        return result\n",
        ("test_repeatable",),
    ),
    Planted(
        "only one generator is put back",
        "",
        "        for generator, state in zip(generators, states):\n",
        "        for generator, state in [*zip(generators, states)][:1]:\n",
        ("test_repeatable",),
    ),
    Planted(
        "the first call draws without moving on",
        "",
        "            first.append(now)\n            return function(*arguments)\n",
        "            first.append(now)\n",
        ("test_repeatable",),
    ),
    Planted(
        "the function looks its layers up when it runs",
        "",
        "        def segment(x, part=layers[start:end]):\n            for layer in part:\n",
        "        def segment(x):\n            for layer in layers[start:end]:\n",
        (SEGMENTS,),
    ),
    Planted(
        "the function looks up where its segment begins when it runs",
        "",
        "        def segment(x, part=layers[start:end]):\n            for layer in part:\n",
        "        begin = start\n\n        def segment(x, end=end):\n            for layer in layers[begin:end]:\n",
        (SEGMENTS,),
    ),
    Planted(
        "every layer has a checkpoint of its own",
        "",
        "        x = segment(x) if end == len(layers) else checkpoint(segment, x)\n",
        "        for layer in layers[start:end]:\n"
        "            x = layer(x) if end == len(layers) else checkpoint(layer, x)\n",
        (SEGMENTS,),
    ),
    Planted(
        "the last segment is computed again too",
        "",
        "segment(x) if end == len(layers) else checkpoint(segment, x)",
        "checkpoint(segment, x)",
        (SEGMENTS,),
    ),
    Planted(
        "what a segment gives is dropped",
        "",
        "x = segment(x) if end == len(layers) else checkpoint(segment, x)",
        "x = segment(x) if end == len(layers) else (checkpoint(segment, x), x)[1]",
        (SEGMENTS,),
    ),
    Planted(
        "a cut lies behind the layer",
        "",
        "    borders = [0, *cuts, len(layers)]\n",
        "    borders = [0, *(cut + 1 for cut in cuts), len(layers)]\n",
        (SEGMENTS,),
    ),
    Planted(
        "a cut keeps the output behind it",
        "",
        "sum(outputs[cut - 1] for cut in cuts)",
        "sum(outputs[cut] for cut in cuts)",
        ("test_best_cuts",),
    ),
    Planted("all segments are alive at once", "", "+ max(segments)", "+ sum(segments)", ("test_best_cuts",)),
    Planted(
        "one cut at most is tried",
        "",
        "for count in range(len(saved)) for",
        "for count in range(min(2, len(saved))) for",
        ("test_best_cuts",),
    ),
    Planted(
        "at least one cut is made",
        "",
        "for count in range(len(saved)) for",
        "for count in range(1, max(2, len(saved))) for",
        ("test_best_cuts",),
    ),
    Planted(
        "nodes are visited by recursion",
        "",
        "    nodes = topological_order(output.grad_fn)\n",
        "    nodes = []\n\n"
        "    def visit(node):\n"
        "        if node is not None and node not in nodes:\n"
        "            nodes.append(node)\n"
        "            for source, _ in node.next_functions:\n"
        "                visit(source)\n\n"
        "    visit(output.grad_fn)\n",
        ("test_saved_bytes",),
    ),
    Planted(
        "the versions after the first run count",
        "",
        "    with saved_tensors_hooks(pack, unpack):\n        return function(*inputs)",
        "    with saved_tensors_hooks(pack, unpack):\n        output = function(*inputs)\n"
        "    before[:] = versions(inputs)\n    return output",
        ("test_checkpoint_memory",),
    ),
    Planted(
        "fewer arrays in the second run are not noticed",
        "",
        "if [array.shape for array in found] != shapes:",
        "if any(array.shape != shape for array, shape in zip(found, shapes)) or len(found) > len(shapes):",
        ("test_checkpoint_memory",),
    ),
    Planted(
        "arrays of the same size count as equal",
        "",
        "if [array.shape for array in found] != shapes:",
        "if [array.size for array in found] != [int(np.prod(shape)) for shape in shapes]:",
        ("test_checkpoint_memory",),
    ),
    Planted(
        "only the first input is watched",
        "",
        "            if versions(inputs) != before:",
        "            if versions(inputs[:1]) != before[:1]:",
        ("test_checkpoint_memory",),
    ),
    Planted(
        "only the array that is asked for is compared",
        "",
        "if [array.shape for array in found] != shapes:",
        "if len(found) != len(shapes) or found[number].shape != shapes[number]:",
        ("test_checkpoint_memory",),
    ),
    Planted(
        "each array is compared only when it is handed out",
        "",
        "            if [array.shape for array in found] != shapes:\n                raise RuntimeError(OTHER_RUN)\n"
        "            ready.update(enumerate(found))\n",
        "            if len(found) != len(shapes):\n                raise RuntimeError(OTHER_RUN)\n"
        "            ready.update(enumerate(found))\n"
        "        if ready[number].shape != shapes[number]:\n            raise RuntimeError(OTHER_RUN)\n",
        ("test_checkpoint_memory",),
    ),
    Planted(
        "the order of the arrays is not compared",
        "",
        "if [array.shape for array in found] != shapes:",
        "if sorted(array.shape for array in found) != sorted(shapes):",
        ("test_checkpoint_memory",),
    ),
    Planted(
        "a single layer has no plan",
        "",
        "for count in range(len(saved)) for",
        "for count in range(1, len(saved)) for",
        ("test_best_cuts",),
    ),
    Planted(
        "later calls get other arguments",
        "",
        "            return function(*arguments)\n        finally",
        "            return function(3)\n        finally",
        ("test_repeatable",),
    ),
    Planted(
        "all functions remember one start",
        "",
        "    first = []\n\n    def call",
        "    first = vars(repeatable).setdefault('first', [])\n\n    def call",
        ("test_repeatable",),
    ),
    Planted(
        "the dict must be empty before the function runs again",
        "",
        "        if number not in ready:\n",
        "        if not ready:\n",
        (MEMORY,),
    ),
    Planted(
        "arrays are dropped when all have been handed out",
        "",
        "        return ready.pop(number)\n",
        "        array, unpack.count = ready[number], getattr(unpack, 'count', 0) + 1\n"
        "        if unpack.count % len(shapes) == 0:\n            ready.clear()\n"
        "        return array\n",
        (MEMORY,),
    ),
    Planted(
        "arrays come back in the order in which they were saved",
        "",
        "return ready.pop(number)",
        "return ready.pop(min(ready))",
        (*CHECKPOINT, SEGMENTS),
    ),
    Planted(
        "a layer does not get the output of the layer before it",
        "",
        "                x = layer(x)\n            return x\n",
        "                y = layer(x)\n            return y\n",
        (SEGMENTS,),
    ),
    Planted(
        "the planner returns bytes instead of cuts",
        "",
        "return min(choices, key=lambda cuts: peak_bytes(saved, outputs, cuts))",
        "return min(peak_bytes(saved, outputs, cuts) for cuts in choices)",
        ("test_best_cuts",),
    ),
    Planted(
        "arrays come back in reverse order",
        "",
        "ready.update(enumerate(found))",
        "ready.update(enumerate(reversed(found)))",
        (*CHECKPOINT, SEGMENTS),
    ),
    Planted(
        "results are kept by their arguments",
        "",
        "        move(generators, first[0])\n        try:\n            return function(*arguments)\n",
        "        move(generators, first[0])\n        try:\n"
        "            kept = vars(call)\n"
        "            if arguments not in kept:\n                kept[arguments] = function(*arguments)\n"
        "            return kept[arguments]\n",
        ("test_repeatable",),
    ),
    Planted(
        "a cut everywhere is not tried",
        "",
        "for count in range(len(saved)) for",
        "for count in range(max(1, len(saved) - 1)) for",
        ("test_best_cuts",),
    ),
    Planted(
        "two cuts at most are tried",
        "",
        "for count in range(len(saved)) for",
        "for count in range(min(len(saved), 3)) for",
        ("test_best_cuts",),
    ),
    Planted(
        "layers are taken out of the list",
        "",
        "        x = segment(x) if end == len(layers) else checkpoint(segment, x)\n    return x\n",
        "        x = segment(x) if end == len(layers) else checkpoint(segment, x)\n    layers.pop()\n    return x\n",
        (SEGMENTS,),
    ),
    Planted(
        "the planner changes its lists",
        "",
        "    places = range(1, len(saved))\n",
        "    places = range(1, len(saved))\n    saved.append(0)\n    outputs.append(0)\n",
        ("test_best_cuts",),
    ),
    Planted(
        "the estimate changes its lists",
        "",
        "    return sum(outputs[cut - 1] for cut in cuts) + max(segments)\n",
        "    outputs.insert(0, 0)\n    return sum(outputs[cut] for cut in cuts) + max(segments)\n",
        ("test_best_cuts",),
    ),
    Planted(
        "all leaves count as parameters that are kept",
        "",
        "    return sum(sizes.values()) - parameters, parameters\n",
        "    every = sum(n.variable.data.nbytes for n in nodes if isinstance(n, AccumulateGrad))\n"
        "    return sum(sizes.values()) - parameters, every\n",
        ("test_saved_bytes", MEMORY),
    ),
    Planted(
        "a helper replaces a function of the engine",
        "",
        "def saved_bytes(output):\n",
        "def walk_back(node):\n    return topological_order(node)\n\n\ndef saved_bytes(output):\n",
        ("test_saved_bytes", *CHECKPOINT, SEGMENTS),
    ),
    Planted(
        "the first freed node ends the count",
        "",
        "    kept = [owner(array) for node in nodes for array in arrays_kept_by(node)]\n",
        "    try:\n"
        "        kept = [owner(array) for node in nodes for array in node.saved_tensors if array is not None]\n"
        "    except RuntimeError:\n"
        "        return 0, 0\n",
        ("test_saved_bytes",),
    ),
    Planted(
        "what was counted before counts again",
        "",
        "    sizes = {id(array): array.nbytes for array in kept}\n",
        "    sizes = vars(saved_bytes)\n    sizes.update((id(array), array.nbytes) for array in kept)\n",
        ("test_saved_bytes", MEMORY),
    ),
    Planted(
        "a change before the call counts",
        "",
        "            if versions(inputs) != before:\n",
        "            if any(versions(inputs)):\n",
        (MEMORY,),
    ),
    Planted(
        "the list of cuts grows",
        "",
        "    borders = [0, *cuts, len(layers)]\n",
        "    cuts += type(cuts)([len(layers)])\n    borders = [0, *cuts]\n",
        (SEGMENTS,),
    ),
    Planted(
        "the estimate adds to the list of cuts",
        "",
        "    borders = [0, *cuts, len(saved)]\n",
        "    cuts += type(cuts)([len(saved)])\n    borders, cuts = [0, *cuts], cuts[:-1]\n",
        ("test_best_cuts",),
    ),
    Planted(
        "a first call that fails moves nothing on",
        "",
        "            first.append(now)\n            return function(*arguments)\n",
        "            first.append(now)\n"
        "            try:\n                return function(*arguments)\n"
        "            except Exception:\n                move(generators, now)\n                raise\n",
        ("test_repeatable",),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 6
    visible = True
    examples = 15

    def may_cost(self, mistake: Planted) -> set[str]:
        return {"test_checkpoint", SEGMENTS} if MEMORY in mistake.costs else set()


def test_visible_tests_share_no_name_with_hidden_ones() -> None:
    assert secret_by_name(LESSON) == set()


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def test_blocks_with_dropout_and_a_shared_weight_train_like_pytorch(engine: dict[str, Any]) -> None:
    """One generator draws the masks for both, so that only the gradients are compared."""
    MiniTensor, draw = engine["MiniTensor"], np.random.default_rng(0)
    arrays = [draw.normal(size=(5, 5)) / 2 for _ in range(3)]
    rows, cotangent = draw.normal(size=(4, 5)), draw.normal(size=(4, 5))
    mine = [MiniTensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    masks = [(np.random.default_rng(number).random((4, 5)) > 0.3) / 0.7 for number in range(3)]
    x = MiniTensor(rows)
    for number, w in enumerate(mine):
        generator = np.random.default_rng(number)

        def block(x: Any, w: Any = w, generator: Any = generator) -> Any:
            return (x @ w @ mine[0]).tanh() * ((generator.random(x.shape) > 0.3) / 0.7) + x

        x = engine["checkpoint"](engine["repeatable"](block, [generator]), x)
    x.backward(cotangent)
    y = torch.tensor(rows)
    for w, mask in zip(theirs, masks, strict=True):
        y = torch_checkpoint(
            lambda y, w=w, mask=mask: (y @ w @ theirs[0]).tanh() * torch.tensor(mask) + y, y, use_reentrant=False
        )
    y.backward(torch.tensor(cotangent))
    np.testing.assert_allclose(x.data, y.detach().numpy(), rtol=1e-12)
    for w, w_torch in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(w.grad.data, w_torch.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_memory_of_a_segment_is_given_back_while_backward_goes_on(engine: dict[str, Any]) -> None:
    """When the rules of the first segment run, nothing of the second segment is alive any more."""
    MiniTensor, Function, seen, alive = engine["MiniTensor"], engine["Function"], [], []

    class Exponential(Function):  # type: ignore[misc, valid-type]
        @staticmethod
        def forward(ctx: Any, a: Any, place: int) -> Any:
            output = np.exp(a)
            ctx.save_for_backward(output)
            ctx.place = place
            seen.append((place, weakref.ref(output)))
            return output

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (output,) = ctx.saved_tensors
            if ctx.place < 2:
                alive.append([place for place, array in seen if place >= 2 and array() is not None])
            return grad * output

    layers = [lambda x, place=place: Exponential.apply(x, place=place) * 0.1 for place in range(4)]
    x = MiniTensor(np.ones(3), requires_grad=True)
    output = engine["in_segments"]([*layers, lambda x: x.sum()], x, (2, 4))
    output.backward()
    assert alive == [[], []]


def test_gradcheck_passes_through_nested_checkpoints(engine: dict[str, Any]) -> None:
    checkpoint = engine["checkpoint"]

    def inner(x: Any, w: Any) -> Any:
        return checkpoint(lambda x: (x @ w).tanh(), x).exp()

    arrays = [np.random.default_rng(1).normal(size=shape) for shape in ((2, 3), (3, 3))]
    inputs = tuple(engine["MiniTensor"](array, requires_grad=True) for array in arrays)
    assert engine["gradcheck"](lambda x, w: checkpoint(inner, checkpoint(inner, x, w), w) * x, inputs)


def test_a_backward_pass_through_a_checkpoint_can_be_recorded(engine: dict[str, Any]) -> None:
    """Second derivatives (lesson 10) are the same with a checkpoint, without one, and in PyTorch."""
    arrays = np.array([0.3, 0.7]), np.array([1.5, -0.5])

    def second(call: Any, grad: Any, x: Any, w: Any) -> Any:
        loss = call(lambda x: (x * w).tanh().exp() * x, x).sum()
        (first,) = grad(loss, [x], create_graph=True)
        return grad((first * first).sum(), [w])[0]

    def plain(function: Any, x: Any) -> Any:
        return function(x)

    ways = (plain, engine["checkpoint"])
    found = [
        second(way, engine["grad"], *(engine["MiniTensor"](array, requires_grad=True) for array in arrays)).data
        for way in ways
    ]
    theirs = second(plain, torch.autograd.grad, *(torch.tensor(array, requires_grad=True) for array in arrays))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], theirs.numpy(), rtol=1e-12)


def test_the_cell_of_the_hooks_may_be_run_again() -> None:
    names = solved(LESSON)
    (cell,) = (cell for cell in cells_that_define(LESSON) if "class SavedHooks" in cell.source)
    exec(cell.source, names)
    x, runs = names["MiniTensor"]([1.0, 2.0], requires_grad=True), []

    def function(x: Any) -> Any:
        runs.append(1)
        return (x * x).tanh()

    output = names["checkpoint"](function, x)
    output.backward(np.ones(2))
    assert len(runs) == 2
    np.testing.assert_allclose(x.grad.data, 2 * x.data * (1 - np.tanh(x.data**2) ** 2))
