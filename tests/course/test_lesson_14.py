"""Plants classic mistakes in the solutions of lesson 14: each costs points where it was made, and on no other cell.

Also compares chains in every style with PyTorch and, to the last bit, with the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, Planted, cells_that_define, solved, styles

LESSON = "14_fusion_and_devices"

PLANTED = [
    Planted(
        "every array is NumPy's",
        "",
        "    return np if ask is None else ask()",
        "    return np",
        ("test_array_module", "test_to", "test_record_chain"),
    ),
    Planted(
        "the constructor converts every array",
        "",
        "    if array_module(data) is np:\n",
        "    if True:\n",
        ("test_array_module", "test_to", "test_record_chain"),
    ),
    Planted(
        "an array from elsewhere loses requires_grad",
        "",
        "        MiniTensor.on_host(self, 0.0, requires_grad)\n",
        "        MiniTensor.on_host(self, 0.0)\n",
        ("test_array_module", "test_record_chain", "test_to"),
    ),
    Planted(
        "an array of the host loses requires_grad",
        "",
        "        MiniTensor.on_host(self, data, requires_grad)\n",
        "        MiniTensor.on_host(self, data)\n",
        ("test_array_module", "test_record_chain", "test_to"),
    ),
    Planted(
        "an array from elsewhere is copied there",
        "",
        "        self.data = data\n    ### END",
        "        self.data = data + 0.0\n    ### END",
        ("test_array_module", "test_record_chain"),
    ),
    Planted(
        "an array of the host is copied",
        "",
        "        MiniTensor.on_host(self, data, requires_grad)\n",
        "        MiniTensor.on_host(self, np.array(data), requires_grad)\n",
        ("test_array_module",),
    ),
    Planted(
        "the gradient stays on the other device",
        "",
        "        return moved(grad, ctx.source)\n",
        "        return grad\n",
        ("test_to",),
    ),
    Planted(
        "the gradient always goes to the CPU",
        "",
        "        return moved(grad, ctx.source)\n",
        "        return moved(grad, np)\n",
        ("test_to",),
    ),
    Planted(
        "the copy has no gradient",
        "",
        "        return moved(grad, ctx.source)\n",
        "        return None\n",
        ("test_to",),
    ),
    Planted(
        "one entry counts as a number",
        "",
        "if isinstance(x, MiniTensor) and (x.ndim > 0 or",
        "if isinstance(x, MiniTensor) and (x.data.size > 1 or",
        ("test_to",),
    ),
    Planted(
        "a single number elsewhere may be mixed too",
        "",
        "(x.ndim > 0 or array_module(x.data) is not np)",
        "(x.ndim > 0)",
        ("test_to",),
    ),
    Planted(
        "devices are mixed without a word",
        "",
        "            if array_module(x.data) is not module:\n                raise",
        "            if False:\n                raise",
        ("test_to",),
    ),
    Planted(
        "what is moved loses its history",
        "",
        "            x = To.apply(x, module=module)\n",
        "            x = MiniTensor(moved(x.data, module))\n",
        ("test_to",),
    ),
    Planted(
        "numbers stay on the CPU",
        "",
        "            x = MiniTensor(module.asarray(float(x)))\n",
        "            x = MiniTensor(float(x))\n",
        ("test_to",),
    ),
    Planted(
        "reductions are written down as if they were operations",
        "",
        'if method != "__call__" or options or',
        "if options or",
        ("test_note",),
    ),
    Planted(
        "a tuple is asked for its module",
        "",
        """    ask = getattr(value, "__array_namespace__", None)
    return np if ask is None else ask()
""",
        """    if isinstance(value, (np.ndarray, np.generic, float, int, list, MiniTensor)):
        return np
    return value.__array_namespace__()
""",
        ("test_array_module",),
    ),
    Planted(
        "NotImplemented is returned",
        "",
        """        raise Untraceable(f"{ufunc.__name__} is not a plain elementwise operation")
""",
        """        return NotImplemented
""",
        ("test_note",),
    ),
    Planted(
        "a TypeError in place of Untraceable",
        "",
        'raise Untraceable(f"{type(x).__name__} from outside")',
        'raise TypeError(f"{type(x).__name__} from outside")',
        ("test_note",),
    ),
    Planted("options are dropped", "", '"__call__" or options or', '"__call__" or', ("test_note",)),
    Planted(
        "the second of two results is forgotten",
        "",
        "options or ufunc.nout != 1 or",
        "options or",
        ("test_note",),
    ),
    Planted(
        "matrix products are written down",
        "",
        " or ufunc.signature is not None:",
        ":",
        ("test_note",),
    ),
    Planted(
        "only matmul is known not to be elementwise",
        "",
        "ufunc.signature is not None:",
        "ufunc is np.matmul:",
        ("test_note",),
    ),
    Planted(
        "arrays of another trace are let in",
        "",
        "        if isinstance(x, Traced) and x.trace is self.trace:",
        "        if isinstance(x, Traced):",
        ("test_note",),
    ),
    Planted(
        "an array from outside becomes a constant",
        "",
        '        else:\n            raise Untraceable(f"{type(x).__name__} from outside")',
        "        else:\n            names.append(float(np.sum(x)))",
        ("test_note",),
    ),
    Planted(
        "True and False are no numbers",
        "",
        "        elif isinstance(x, (bool, int, float)):",
        "        elif isinstance(x, (int, float)) and not isinstance(x, bool):",
        ("test_note",),
    ),
    Planted(
        "the arguments stand the wrong way round",
        "",
        "self.trace.steps.append((ufunc, tuple(names), result.name))",
        "self.trace.steps.append((ufunc, tuple(names[::-1]), result.name))",
        ("test_note", "test_record_chain"),
    ),
    Planted(
        "steps from the last to the first",
        "",
        "    return kept[::-1]",
        "    return kept",
        ("test_needed_steps", "test_record_chain"),
    ),
    Planted(
        "all steps are needed",
        "",
        "        if step[2] in needed:\n",
        "        if True:\n",
        ("test_needed_steps", "test_record_chain", "test_traffic"),
    ),
    Planted(
        "only what the results need themselves",
        "",
        "            needed.update(step[1])\n",
        "            pass\n",
        ("test_needed_steps", "test_record_chain", "test_traffic"),
    ),
    Planted(
        "an array is read once for each time it is named",
        "",
        "len({a for a in arguments if isinstance(a, str)})",
        "len([a for a in arguments if isinstance(a, str)])",
        ("test_traffic",),
    ),
    Planted(
        "numbers are read from memory",
        "",
        "{a for a in arguments if isinstance(a, str)}",
        "{*arguments}",
        ("test_traffic",),
    ),
    Planted(
        "what is in the cache is read again",
        "",
        "    inputs = used - {result for _, _, result in kept}\n",
        "    inputs = used\n",
        ("test_traffic",),
    ),
    Planted(
        "a result that is asked for twice is written twice",
        "",
        "8 * size * len(set(results))",
        "8 * size * len(results)",
        ("test_traffic",),
    ),
    Planted(
        "fused, every step still writes",
        "",
        "8 * size * len(inputs), 8 * size * len(set(results))",
        "8 * size * len(inputs), 8 * size * len(kept)",
        ("test_traffic",),
    ),
    Planted(
        "the whole array at once",
        "",
        "    for start in range(0, size, block):\n        stop = min(start + block, size)\n",
        "    block = max(size, 1)\n    buffers = {name: np.empty(size) for name in buffers}\n"
        "    for start in range(0, size, block):\n        stop = min(start + block, size)\n",
        ("test_run_in_blocks",),
    ),
    Planted(
        "the last block is left out if it is shorter",
        "",
        "    for start in range(0, size, block):",
        "    for start in range(0, size - block + 1, block):",
        ("test_run_in_blocks", "test_record_chain"),
    ),
    Planted(
        "an empty block at the end",
        "",
        "    for start in range(0, size, block):",
        "    for start in range(0, size + 1, block):",
        ("test_run_in_blocks",),
    ),
    Planted(
        "new buffers for every block",
        "",
        "        values |= {name: buffer[: stop - start] for name, buffer in buffers.items()}\n",
        "        kept_alive = [*buffers.values(), *locals().get('kept_alive', [])]\n"
        "        buffers = {name: np.empty(min(block, size)) for name in buffers}\n"
        "        values |= {name: buffer[: stop - start] for name, buffer in buffers.items()}\n",
        ("test_run_in_blocks",),
    ),
    Planted(
        "results are flat",
        "",
        "        outputs[name].reshape(shape) if",
        "        outputs[name] if",
        ("test_run_in_blocks", "test_record_chain"),
    ),
    Planted(
        "an input that is asked for comes back itself",
        "",
        "else arrays[name].copy() for name in results",
        "else arrays[name] for name in results",
        ("test_run_in_blocks",),
    ),
    Planted(
        "buffers of the size of the whole",
        "",
        "np.empty(min(block, size)) for name in made",
        "np.empty(size) for name in made",
        ("test_run_in_blocks",),
    ),
    Planted(
        "one buffer for all",
        "",
        "    buffers = {name: np.empty(min(block, size)) for name in made if name not in results}\n",
        "    shared = np.empty(min(block, size))\n"
        "    buffers = {name: shared for name in made if name not in results}\n",
        ("test_run_in_blocks", "test_record_chain"),
    ),
    Planted(
        "every step gets its arguments the wrong way round",
        "",
        "for a in arguments], out=",
        "for a in arguments[::-1]], out=",
        ("test_run_in_blocks", "test_record_chain"),
    ),
    Planted(
        "an input is the cotangent",
        "",
        "        array = trace.array()\n",
        "        array = stand_ins[0].data\n",
        ("test_record_chain",),
    ),
    Planted(
        "the inputs say whether there is a backward pass",
        "",
        "    if output.requires_grad:\n        array = trace.array()",
        "    if any(x.requires_grad for x in tensors):\n        array = trace.array()",
        ("test_record_chain",),
    ),
    Planted(
        "the backward pass is not recorded",
        "",
        "    if output.requires_grad:\n        array = trace.array()",
        "    if False:\n        array = trace.array()",
        ("test_record_chain",),
    ),
    Planted(
        "one tensor is not enough",
        "",
        "    trace = Trace(tensors[0].shape)\n    stand_ins",
        "    trace = Trace(tensors[1].shape)\n    stand_ins",
        ("test_record_chain",),
    ),
    Planted(
        "all stand-ins require grad",
        "",
        "MiniTensor(trace.array(), requires_grad=x.requires_grad) for x in tensors",
        "MiniTensor(trace.array(), requires_grad=True) for x in tensors",
        ("test_record_chain",),
    ),
    Planted(
        "the tensors themselves are recorded",
        "",
        "    output = function(*stand_ins)\n    cotangent",
        "    output = function(*tensors)\n    cotangent",
        ("test_record_chain",),
    ),
    Planted(
        "backward without the cotangent",
        "",
        "        output.backward(array)\n",
        "        output.backward()\n",
        ("test_record_chain",),
    ),
    Planted(
        "guards forget the shape",
        "",
        "        (MiniTensor, x.shape, x.requires_grad) if",
        "        (MiniTensor, x.requires_grad) if",
        ("test_record_chain",),
    ),
    Planted(
        "guards know the number of entries only",
        "",
        "        (MiniTensor, x.shape, x.requires_grad) if",
        "        (MiniTensor, x.data.size, x.requires_grad) if",
        ("test_record_chain",),
    ),
    Planted(
        "guards forget requires_grad",
        "",
        "        (MiniTensor, x.shape, x.requires_grad) if",
        "        (MiniTensor, x.shape) if",
        ("test_record_chain",),
    ),
    Planted(
        "guards look at the numbers",
        "",
        "        (MiniTensor, x.shape, x.requires_grad) if",
        "        (x.data.tobytes(), x.shape, x.requires_grad) if",
        ("test_record_chain",),
    ),
    Planted(
        "guards look at the types of other arguments only",
        "",
        "else (type(x), x)\n",
        "else (type(x),)\n",
        ("test_record_chain",),
    ),
    Planted("True and 1 are the same", "", "else (type(x), x)\n", "else (x,)\n", ("test_record_chain",)),
    Planted(
        "guards forget where the tensors stand",
        "",
        "    return (*kinds, is_grad_enabled())",
        "    kinds.sort(key=lambda kind: kind[0] is not MiniTensor)\n    return (*kinds, is_grad_enabled())",
        ("test_record_chain",),
    ),
    Planted(
        "guards ask whether any tensor requires grad",
        "",
        "        (MiniTensor, x.shape, x.requires_grad) if",
        "        (MiniTensor, x.shape, any(getattr(t, 'requires_grad', False) for t in inputs)) if",
        ("test_record_chain",),
    ),
    Planted("a number and its text are the same", "", "else (type(x), x)\n", "else str(x)\n", ("test_record_chain",)),
    Planted(
        "guards are hashed, and -1 and -2 have one hash",
        "",
        "    return (*kinds, is_grad_enabled())",
        "    return hash((*kinds, is_grad_enabled()))",
        ("test_record_chain",),
    ),
    Planted(
        "stand-ins are flat",
        "",
        "    trace = Trace(tensors[0].shape)\n    stand_ins",
        "    trace = Trace((tensors[0].data.size,))\n    stand_ins",
        ("test_record_chain",),
    ),
    Planted(
        "guards forget the grad mode",
        "",
        "    return (*kinds, is_grad_enabled())",
        "    return (*kinds, True)",
        ("test_record_chain",),
    ),
    Planted(
        "every foreign array has the same module",
        "",
        "    return np if ask is None else ask()",
        "    return Elsewhere if isinstance(value, Silent) else np",
        ("test_array_module", "test_to", "test_record_chain"),
    ),
    Planted(
        "an array from elsewhere gets a tensor that nothing prepared",
        "",
        "        MiniTensor.on_host(self, 0.0, requires_grad)\n        self.data = data\n",
        "        self.data, self.requires_grad, self.grad, self.grad_fn = data, requires_grad, None, None\n",
        ("test_array_module", "test_to", "test_record_chain"),
    ),
    Planted(
        "only one option is refused",
        "",
        '"__call__" or options or',
        '"__call__" or "out" in options or',
        ("test_note",),
    ),
    Planted(
        "a step that is left out needs its arguments too",
        "",
        "        if step[2] in needed:\n            kept.append(step)\n            needed.update(step[1])\n",
        "        if step[2] in needed:\n            kept.append(step)\n        needed.update(step[1])\n",
        ("test_needed_steps", "test_record_chain"),
    ),
    Planted(
        "blocks overlap",
        "",
        "    for start in range(0, size, block):\n        stop",
        "    for start in range(size):\n        stop",
        ("test_run_in_blocks",),
    ),
    Planted(
        "NumPy's numbers are let in",
        "",
        "(bool, int, float)):\n            names",
        "(bool, int, float, np.generic)):\n            names",
        ("test_note",),
    ),
    Planted(
        "every block frees its buffers",
        "",
        "buffer[: stop - start] for name, buffer in buffers.items()}",
        "np.empty(stop - start) for name in buffers}",
        ("test_run_in_blocks",),
    ),
    Planted(
        "arrays count as numbers",
        "",
        "    inputs = [x if isinstance(x, (bool, int, float)) else as_tensor(x) for x in inputs]\n    module = np\n",
        "    module = np\n",
        ("test_to",),
    ),
    Planted(
        "numbers alone have no place",
        "",
        "    module = np\n    deciding = []\n",
        "    module = None\n    deciding = []\n",
        ("test_to",),
    ),
    Planted(
        "what is in its place is copied",
        "",
        "        elif array_module(x.data) is not module:\n            x = To",
        "        else:\n            x = To",
        ("test_to",),
    ),
    Planted(
        "the constructor tries to convert, and keeps what cannot be converted",
        "",
        "    if array_module(data) is np:\n        MiniTensor.on_host(self, data, requires_grad)\n    else:\n",
        "    try:\n        MiniTensor.on_host(self, data, requires_grad)\n    except TypeError:\n",
        ("test_array_module", "test_record_chain"),
    ),
    Planted(
        "only sums and running sums are refused",
        "",
        'if method != "__call__" or',
        'if method in ("reduce", "accumulate", "at") or',
        ("test_note",),
    ),
    Planted(
        "only reductions are refused",
        "",
        'if method != "__call__" or',
        'if method in ("reduce", "outer", "at") or',
        ("test_note",),
    ),
    Planted(
        "each step goes through all blocks before the next step",
        "",
        """        for function, arguments, result in steps:
            function(*[values""",
        """        pass
    for function, arguments, result in steps:
        for start in range(0, size, block):
            stop = min(start + block, size)
            values = {name: array[start:stop] for name, array in whole.items()}
            values |= {name: buffer[: stop - start] for name, buffer in buffers.items()}
            function(*[values""",
        ("test_run_in_blocks",),
    ),
    Planted(
        "guards leave None out",
        "",
        "else (type(x), x)\n        for x in inputs\n",
        "else (type(x), x)\n        for x in inputs if x is not None\n",
        ("test_record_chain",),
    ),
    Planted(
        "while recording is off, guards forget requires_grad",
        "",
        "        (MiniTensor, x.shape, x.requires_grad) if",
        "        (MiniTensor, x.shape, x.requires_grad and is_grad_enabled()) if",
        ("test_record_chain",),
    ),
    Planted(
        "what is in its place becomes another tensor",
        "",
        "            x = To.apply(x, module=module)\n        tensors.append(x)\n",
        "            x = To.apply(x, module=module)\n"
        "        else:\n            x = MiniTensor(x.data, requires_grad=x.requires_grad)\n"
        "        tensors.append(x)\n",
        ("test_to",),
    ),
    Planted(
        "inputs come back in another order",
        "",
        "    return tensors\n    ### END",
        "    return sorted(tensors, key=lambda t: t.ndim)\n    ### END",
        ("test_to",),
    ),
    Planted(
        "only an output with a node requires grad",
        "",
        "    if output.requires_grad:\n",
        "    if output.grad_fn is not None:\n",
        ("test_record_chain",),
    ),
    Planted(
        "a factor is moved itself, not a copy",
        "",
        "            x = To.apply(x, module=module)\n        tensors.append(x)\n",
        "            x.data = moved(x.data, module)\n        tensors.append(x)\n",
        ("test_to",),
    ),
    Planted(
        "what is moved goes to the name of the place",
        "",
        "            x = To.apply(x, module=module)\n        tensors.append(x)\n",
        "            x = x.to(module.name)\n        tensors.append(x)\n",
        ("test_to",),
    ),
    Planted(
        "numbers come back last",
        "",
        "    tensors = []\n    for x in inputs:\n",
        "    tensors = []\n    for x in sorted(inputs, key=lambda x: not isinstance(x, MiniTensor)):\n",
        ("test_to",),
    ),
    Planted(
        "fused, read and written stand the wrong way round",
        "",
        "return 8 * size * len(inputs), 8 * size * len(set(results))",
        "return 8 * size * len(set(results)), 8 * size * len(inputs)",
        ("test_traffic",),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 7
    visible = True
    examples = 20


@pytest.fixture(scope="module", params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


CHAINS: dict[str, Callable[..., Any]] = {
    "a polynomial": lambda a, b: ((a * 0.5 + 1.0) * a - 2.0) * a + b,
    "functions": lambda a, b: (a * b).tanh() - (b * 0.1).exp() / (a * a + 1.0),
    "kinks and powers": lambda a, b: a.relu() ** 2 + (b * b + 0.5) ** -1 + (a * a + 0.1).log(),
    "an input is the result": lambda a, b: a,
    "a sum alone": lambda a, b: a + b,
    "a part without gradient": lambda a, b: (a * 3.0).detach() * b - a,
}


def leaves(make: Callable[..., Any], shape: tuple[int, ...]) -> list[Any]:
    generator = np.random.default_rng(7)
    return [make(generator.normal(size=shape), requires_grad=True) for _ in range(2)]


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (9001,), (130, 131)])
def test_a_compiled_chain_has_the_bits_of_the_engine(
    engine: dict[str, Any], chain: Callable[..., Any], shape: tuple[int, ...]
) -> None:
    compiled = engine["compiled"](chain)
    cotangent = np.random.default_rng(8).normal(size=shape)
    found = []
    for function in (chain, compiled, compiled):
        a, b = leaves(engine["MiniTensor"], shape)
        output = function(a, b)
        output.backward(cotangent)
        found.append([output.data, *(None if x.grad is None else x.grad.data for x in (a, b))])
    assert compiled.traced == 1
    assert None not in compiled.chains.values()
    for again in found[1:]:
        for mine, right in zip(again, found[0], strict=True):
            assert (mine is None) == (right is None)
            assert mine is None or np.array_equal(mine, right)


def test_a_compiled_chain_agrees_with_pytorch(engine: dict[str, Any]) -> None:
    chain = CHAINS["functions"]
    a, b = leaves(engine["MiniTensor"], (40, 250))
    engine["compiled"](chain)(a, b).backward(np.ones((40, 250)))
    a_torch, b_torch = leaves(lambda value, requires_grad: torch.tensor(value, requires_grad=requires_grad), (40, 250))
    chain(a_torch, b_torch).backward(torch.ones(40, 250, dtype=torch.float64))
    np.testing.assert_allclose(a.grad.data, a_torch.grad.numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(b.grad.data, b_torch.grad.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2.0).sum(),
        lambda x: x @ x,
        lambda x: x * 3.0 if x.sum().item() > 0 else x - 1.0,
        lambda x: x[0] * 2.0,
        lambda x: x * np.full((2, 2), 3.0),
    ],
    ids=["a sum", "a product of matrices", "a decision on the numbers", "an index", "an array from outside"],
)
def test_what_cannot_be_recorded_runs_as_it_is(engine: dict[str, Any], function: Callable[..., Any]) -> None:
    compiled = engine["compiled"](function)
    for sign in (1.0, -1.0):
        x = engine["MiniTensor"](sign * np.array([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
        assert np.array_equal(compiled(x).data, function(x).data)
    assert [*compiled.chains.values()] == [None]


@pytest.mark.parametrize("style", ["", *styles(LESSON)], ids=lambda style: style or "solution")
def test_a_cell_may_run_again(style: str) -> None:
    names = solved(LESSON, style)
    cells = [cell.source for cell in cells_that_define(LESSON) if "engine" in cell.tags]
    saved = next(source for source in cells if "MiniTensor.on_host = " in source)
    module = next(source for source in cells if "class Trace:" in source)
    exec(saved, names)
    exec(module, names)
    tensor = names["MiniTensor"]
    assert tensor([1, 2]).data.tolist() == [1.0, 2.0]
    there = tensor(names["remote"].asarray(np.ones(3)), requires_grad=True)
    (there * tensor(2.0)).sum().backward()
    assert there.grad.data.get().tolist() == [2.0, 2.0, 2.0]


def test_without_exercise_5_the_sections_after_it_work() -> None:
    names = solved(LESSON)

    def unwritten(inputs: object) -> None:
        raise NotImplementedError

    names["on_one_device"] = unwritten
    there = names["MiniTensor"](names["remote"].asarray(np.ones(3)), requires_grad=True)
    (2 * there + 1).tanh().sum().backward()
    np.testing.assert_allclose(there.grad.data.get(), 2 * (1 - np.tanh(3.0) ** 2))


def test_a_tensor_from_outside_is_no_constant(engine: dict[str, Any]) -> None:
    factor = engine["MiniTensor"](2.0, requires_grad=True)
    compiled = engine["compiled"](lambda x: x * factor)
    x = engine["MiniTensor"](np.ones(3))
    assert np.array_equal(compiled(x).data, [2.0, 2.0, 2.0])
    factor.data = np.array(5.0)
    output = compiled(x)
    assert np.array_equal(output.data, [5.0, 5.0, 5.0])
    output.backward(np.ones(3))
    assert factor.grad.item() == 3.0
