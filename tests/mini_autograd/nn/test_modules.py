"""Every module against PyTorch's: first values from the same seed, names, printing, results, gradients, evaluation."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import Program, same

Build = Callable[[Any], Any]


def attention_with_added_keys(nn: Any) -> Any:
    """Set the learned key and value: they start with normal numbers, which match PyTorch's only to some digits."""
    module = nn.MultiheadAttention(6, 2, 0.0, True, True, True, vdim=6)
    for row in (module.bias_k, module.bias_v):
        nn.init.constant_(row, 0.5)
    return module


# name: constructor(nn, lib), shapes of the inputs
MODULES: dict[str, tuple[Callable[[Any, Any], Any], tuple[tuple[int, ...], ...]]] = {
    "Linear": (lambda nn, lib: nn.Linear(4, 3), ((2, 5, 4),)),
    "Linear no bias": (lambda nn, lib: nn.Linear(4, 3, bias=False), ((2, 4),)),
    "Conv1d": (lambda nn, lib: nn.Conv1d(3, 4, 3, padding=1, dilation=2), ((2, 3, 8),)),
    "Conv2d": (lambda nn, lib: nn.Conv2d(4, 6, (3, 2), stride=2, padding=(1, 0), groups=2), ((2, 4, 6, 5),)),
    "Conv2d no bias": (lambda nn, lib: nn.Conv2d(4, 6, 3, bias=False, padding="same"), ((4, 6, 5),)),
    "Conv2d reflect": (lambda nn, lib: nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode="reflect"), ((2, 2, 6, 5),)),
    "Conv2d circular": (lambda nn, lib: nn.Conv2d(2, 3, 2, padding="same", padding_mode="circular"), ((2, 2, 6, 5),)),
    "ConvTranspose1d": (lambda nn, lib: nn.ConvTranspose1d(3, 4, 3, 2, 1, 1), ((2, 3, 5),)),
    "ConvTranspose2d": (lambda nn, lib: nn.ConvTranspose2d(4, 6, 3, 2, output_padding=1, groups=2), ((2, 4, 3, 3),)),
    "LayerNorm": (lambda nn, lib: nn.LayerNorm(4), ((2, 3, 4),)),
    "LayerNorm 2 axes": (lambda nn, lib: nn.LayerNorm((3, 4), bias=False), ((2, 3, 4),)),
    "LayerNorm plain": (lambda nn, lib: nn.LayerNorm(4, elementwise_affine=False), ((2, 3, 4),)),
    "BatchNorm1d": (lambda nn, lib: nn.BatchNorm1d(3), ((4, 3),)),
    "BatchNorm1d 3-D": (lambda nn, lib: nn.BatchNorm1d(3, momentum=None), ((4, 3, 2),)),
    "BatchNorm2d": (lambda nn, lib: nn.BatchNorm2d(3, momentum=0.3), ((2, 3, 4, 5),)),
    "BatchNorm2d untracked": (lambda nn, lib: nn.BatchNorm2d(3, track_running_stats=False), ((2, 3, 4, 5),)),
    "BatchNorm2d plain": (lambda nn, lib: nn.BatchNorm2d(3, affine=False), ((2, 3, 4, 5),)),
    "Dropout": (lambda nn, lib: nn.Dropout(0.3), ((20, 5),)),
    "Dropout2d": (lambda nn, lib: nn.Dropout2d(0.3), ((4, 5, 2, 2),)),
    "MaxPool1d": (lambda nn, lib: nn.MaxPool1d(2), ((2, 3, 6),)),
    "MaxPool2d": (lambda nn, lib: nn.MaxPool2d(2, stride=1, padding=1), ((2, 3, 6, 5),)),
    "AvgPool1d": (lambda nn, lib: nn.AvgPool1d(2), ((2, 3, 6),)),
    "AvgPool2d": (lambda nn, lib: nn.AvgPool2d((2, 3), padding=1), ((2, 3, 6, 5),)),
    "AdaptiveAvgPool2d": (lambda nn, lib: nn.AdaptiveAvgPool2d((3, 2)), ((2, 3, 7, 5),)),
    "AdaptiveAvgPool2d one": (lambda nn, lib: nn.AdaptiveAvgPool2d(1), ((2, 3, 7, 5),)),
    "Flatten": (lambda nn, lib: nn.Flatten(), ((2, 3, 4),)),
    "Identity": (lambda nn, lib: nn.Identity(7), ((2,),)),
    "ReLU": (lambda nn, lib: nn.ReLU(), ((4, 5),)),
    "SiLU": (lambda nn, lib: nn.SiLU(), ((4, 5),)),
    "Tanh": (lambda nn, lib: nn.Tanh(), ((4, 5),)),
    "Sigmoid": (lambda nn, lib: nn.Sigmoid(), ((4, 5),)),
    "GELU": (lambda nn, lib: nn.GELU(), ((4, 5),)),
    "GELU tanh": (lambda nn, lib: nn.GELU("tanh"), ((4, 5),)),
    "LeakyReLU": (lambda nn, lib: nn.LeakyReLU(0.2), ((4, 5),)),
    "Softplus": (lambda nn, lib: nn.Softplus(2.0), ((4, 5),)),
    "Softmax": (lambda nn, lib: nn.Softmax(dim=-1), ((4, 5),)),
    "LogSoftmax": (lambda nn, lib: nn.LogSoftmax(dim=0), ((4, 5),)),
    "MSELoss": (lambda nn, lib: nn.MSELoss(), ((4, 5), (4, 5))),
    "L1Loss": (lambda nn, lib: nn.L1Loss(reduction="sum"), ((4, 5), (4, 5))),
    "SmoothL1Loss": (lambda nn, lib: nn.SmoothL1Loss(beta=0.5), ((4, 5), (4, 5))),
    "BCEWithLogitsLoss": (
        lambda nn, lib: nn.BCEWithLogitsLoss(pos_weight=lib.tensor([1.0, 2.0, 3.0, 4.0, 5.0])),
        ((4, 5), (4, 5)),
    ),
    "CrossEntropyLoss": (lambda nn, lib: nn.CrossEntropyLoss(label_smoothing=0.1), ((4, 5), (4, 5))),
    "RNN": (lambda nn, lib: nn.RNN(3, 4), ((5, 2, 3),)),
    "RNN relu": (lambda nn, lib: nn.RNN(3, 4, nonlinearity="relu", bias=False), ((5, 2, 3), (1, 2, 4))),
    "RNN unbatched": (lambda nn, lib: nn.RNN(3, 4, 2), ((5, 3), (2, 4))),
    "RNN all options": (
        lambda nn, lib: nn.RNN(3, 4, 2, batch_first=True, dropout=0.4, bidirectional=True),
        ((2, 5, 3), (4, 2, 4)),
    ),
    "GRU": (lambda nn, lib: nn.GRU(3, 4), ((5, 2, 3),)),
    "GRU all options": (
        lambda nn, lib: nn.GRU(3, 4, 3, False, True, 0.2, bidirectional=True),
        ((2, 5, 3), (6, 2, 4)),
    ),
    "Sequential": (lambda nn, lib: nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)), ((5, 4),)),
    "MultiheadAttention": (lambda nn, lib: nn.MultiheadAttention(6, 2), ((4, 2, 6), (5, 2, 6), (5, 2, 6))),
    "MultiheadAttention batch first": (
        lambda nn, lib: nn.MultiheadAttention(6, 3, bias=False, batch_first=True),
        ((2, 4, 6), (2, 5, 6), (2, 5, 6)),
    ),
    "MultiheadAttention unbatched": (lambda nn, lib: nn.MultiheadAttention(6, 3), ((4, 6), (5, 6), (5, 6))),
    "MultiheadAttention of other keys and values": (
        lambda nn, lib: nn.MultiheadAttention(6, 2, kdim=3, vdim=4, batch_first=True),
        ((2, 4, 6), (2, 5, 3), (2, 5, 4)),
    ),
    "MultiheadAttention with added keys": (
        lambda nn, lib: attention_with_added_keys(nn),
        ((4, 2, 6), (5, 2, 6), (5, 2, 6)),
    ),
}


def both(build: Callable[[Any, Any], Any], seed: int = 3) -> list[tuple[Any, Any]]:
    """The module under each library, from the same seed, in float64."""
    made = []
    for lib in (torch, ma):
        lib.manual_seed(seed)
        made.append((lib, build(lib.nn, lib).double()))
    return made


def run(lib: Any, module: Any, shapes: tuple[tuple[int, ...], ...]) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(5)
    inputs = [lib.tensor(generator.standard_normal(shape), requires_grad=True) for shape in shapes]
    lib.manual_seed(11)
    outputs = module(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    found = {}
    for number, output in enumerate(outputs):
        found[f"output {number}"] = output.detach().numpy()
    outputs[0].backward(lib.tensor(generator.standard_normal(tuple(outputs[0].shape))))
    found |= {f"input {number}": x.grad.numpy() for number, x in enumerate(inputs) if x.grad is not None}
    found |= {name: parameter.grad.numpy() for name, parameter in module.named_parameters()}
    return found | {f"state {name}": value.numpy() for name, value in module.state_dict().items()}


def assert_same(expected: dict[str, np.ndarray], got: dict[str, np.ndarray], rtol: float = 1e-9) -> None:
    assert list(got) == list(expected)
    for name, value in expected.items():
        assert got[name].dtype == value.dtype, name
        np.testing.assert_allclose(got[name], value, rtol=rtol, atol=1e-11, err_msg=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_module_is_pytorchs(name: str) -> None:
    build, shapes = MODULES[name]
    (_, theirs), (_, ours) = both(build)
    assert_same(*[{key: x.numpy() for key, x in module.state_dict().items()} for module in (theirs, ours)], rtol=1e-6)
    if "MultiheadAttention" not in name:
        assert repr(ours) == repr(theirs)
    for mode in (True, True, False):
        theirs.train(mode)
        ours.train(mode)
        theirs.zero_grad()
        ours.zero_grad()
        assert_same(run(torch, theirs, shapes), run(ma, ours, shapes))


EMBEDDINGS: dict[str, dict[str, Any]] = {
    "padding": {"padding_idx": 2},
    "padding from the end": {"padding_idx": -1},
    "short rows": {"max_norm": 1.5},
    "short rows in the first norm": {"max_norm": 2.0, "norm_type": 1.0},
    "mean of lookups": {"padding_idx": 6, "scale_grad_by_freq": True},
}


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embedding(name: str) -> None:
    results, texts = [], []
    for lib, module in both(lambda nn, lib: nn.Embedding(7, 3, **EMBEDDINGS[name])):
        output = module(lib.tensor([[1, 2, 2], [6, 1, 1]]))
        output.backward(lib.tensor(np.random.default_rng(1).standard_normal((2, 3, 3))))
        found = {"output": output, "weight": module.weight, "grad": module.weight.grad}
        results.append({key: x.detach().numpy() for key, x in found.items()})
        texts.append((repr(module), module.weight._version))
    assert_same(*results, rtol=1e-6)
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("rows", "lookups"), [(7, 0), (300, 200), (300, 4000), (7, 4000), (70_000, 200)])
def test_rows_looked_up_often_and_rarely_get_the_sum(rows: int, lookups: int) -> None:
    rng = np.random.default_rng(0)
    index, grad = rng.integers(0, rows, (lookups, 2)), rng.standard_normal((lookups, 2, 3))
    expected = np.zeros((rows, 3))
    np.add.at(expected, index, grad)
    for lib in (ma, torch):
        weight = lib.zeros(rows, 3, dtype=lib.float64, requires_grad=True)
        lib.nn.functional.embedding(lib.tensor(index), weight).backward(lib.tensor(grad))
        np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-12, atol=1e-12)
    x = ma.zeros(rows, 3, dtype=ma.float64, requires_grad=True)
    x[ma.tensor(index - rows)].backward(ma.tensor(grad))  # indices from the end
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_embedding_that_shortens_rows_in_use() -> None:
    """The second lookup changes the rows that the first product saved."""

    def program(lib: Any) -> None:
        lib.manual_seed(1)
        module = lib.nn.Embedding(4, 3, max_norm=0.5)
        product = module.weight @ lib.ones(3, 1, requires_grad=True)
        (module(lib.tensor([1, 2])).sum() + product.sum()).backward()

    same(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda lib: lib.nn.Embedding(4, 3, padding_idx=4),
        lambda lib: lib.nn.Embedding(4, 3, -5),
        lambda lib: lib.nn.Embedding.from_pretrained(lib.ones(3)),
        lambda lib: lib.nn.Embedding.from_pretrained(lib.ones(3, 2), padding_idx=3),
        lambda lib: lib.nn.functional.embedding(lib.tensor([1]), lib.ones(3, 2), padding_idx=3),
        lambda lib: lib.nn.Embedding.from_pretrained(lib.ones(3, 2), max_norm=1.0)(lib.tensor([0, 2])),
    ],
)
def test_embedding_options(program: Program) -> None:
    same(program)


LOSSES_OF_CLASSES: dict[str, Callable[[Any, Any], Any]] = {
    "CrossEntropyLoss": lambda nn, lib: nn.CrossEntropyLoss(),
    "CrossEntropyLoss weight": lambda nn, lib: nn.CrossEntropyLoss(lib.tensor([1.0, 2.0, 0.5]), ignore_index=1),
    "NLLLoss": lambda nn, lib: nn.NLLLoss(reduction="sum"),
}


@pytest.mark.parametrize("name", LOSSES_OF_CLASSES)
def test_losses_of_classes(name: str) -> None:
    results = []
    for lib, module in both(LOSSES_OF_CLASSES[name]):
        x = lib.tensor(np.random.default_rng(1).standard_normal((4, 3)), requires_grad=True)
        loss = module(x, lib.tensor([0, 2, 1, 2]))
        loss.backward()
        results.append({"loss": loss.detach().numpy(), "grad": x.grad.numpy()})
    assert_same(*results)


MASKS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "bool": lambda lib: {"attn_mask": lib.tensor(np.triu(np.ones((4, 5)), 2) > 0)},
    "added": lambda lib: {"attn_mask": lib.tensor(np.arange(20.0).reshape(4, 5) / 10)},
    "per head": lambda lib: {"attn_mask": lib.tensor(np.arange(80.0).reshape(4, 4, 5) / 10)},
    "padding": lambda lib: {"key_padding_mask": lib.tensor(np.arange(10).reshape(2, 5) > 7)},
    "both, no weights": lambda lib: {
        "attn_mask": lib.tensor(np.triu(np.ones((4, 5)), 2) > 0),
        "key_padding_mask": lib.tensor(np.arange(10).reshape(2, 5) > 7),
        "need_weights": False,
    },
    "all heads": lambda lib: {"average_attn_weights": False},
}


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_attention_masks(name: str, added: bool) -> None:
    results = []
    options = {"batch_first": True, "add_zero_attn": added}
    for lib, module in both(lambda nn, lib: nn.MultiheadAttention(6, 2, **options)):
        generator = np.random.default_rng(1)
        q, k, v = (lib.tensor(generator.standard_normal(shape)) for shape in ((2, 4, 6), (2, 5, 6), (2, 5, 6)))
        output, weights = module(q, k, v, **MASKS[name](lib))
        output.sum().backward()
        found = {"output": output.detach().numpy(), "grad": module.in_proj_weight.grad.numpy()}
        results.append(found | ({} if weights is None else {"weights": weights.detach().numpy()}))
    assert_same(*results)


def build_nested(nn: Any, lib: Any) -> Any:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
            self.norm = nn.BatchNorm1d(3)
            self.scale = nn.Parameter(lib.ones(3))
            self.by_name = nn.ModuleDict({"a": nn.Identity(), "b": nn.Linear(3, 1, bias=False)})
            self.register_buffer("steps", lib.tensor([1.0, 2.0]))
            self.register_buffer("hidden", lib.tensor([1.0]), persistent=False)
            self.register_parameter("nothing", None)
            self.shared = self.layers[0]

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return self.by_name["b"](self.norm(x) * self.scale)

    return Block()


def test_walks_through_a_module() -> None:
    found = []
    for lib, module in both(build_nested):
        names: dict[str, Any] = {
            "parameters": [name for name, _ in module.named_parameters()],
            "own": [name for name, _ in module.named_parameters(recurse=False)],
            "buffers": [name for name, _ in module.named_buffers()],
            "modules": [name for name, _ in module.named_modules()],
            "children": [name for name, _ in module.named_children()],
            "state": list(module.state_dict()),
            "repr": "".join(repr(module).split()),  # PyTorch forgets a line break in a ParameterList
            "part": repr(module.get_submodule("layers.1")),
            "count": sum(parameter.numel() for parameter in module.parameters()),
            "training": [m.training for m in module.eval().modules()],
            "dtype": {str(x.dtype).split(".")[-1] for x in module.float().state_dict().values()},
            "frozen": [p.requires_grad for p in module.requires_grad_(False).parameters()],
        }
        del module.shared, module.scale
        names["deleted"] = list(module.state_dict())
        order: list[str] = []
        module.apply(lambda m, order=order: order.append(type(m).__name__))
        names["applied"] = order
        found.append(names)
        assert lib.nn.Module() != module
    assert found[1] == found[0]


def test_hooks() -> None:
    found = []
    for lib, module in both(lambda nn, lib: nn.Sequential(nn.Identity(), nn.Identity())):
        seen: list[str] = []
        module.register_forward_pre_hook(lambda m, args, seen=seen: seen.append("pre") or (args[0] + 1,))
        handle = module.register_forward_hook(lambda m, args, out, seen=seen: seen.append("post") or out * 2)
        module.register_forward_hook(lambda m, args, out, seen=seen: seen.append("first"), prepend=True)
        results = [module(lib.tensor(3.0)).item()]
        handle.remove()
        results.append(module(lib.tensor(3.0)).item())
        found.append((results, seen))
    assert found[1] == found[0] == ([8.0, 4.0], ["pre", "first", "post", "pre", "first"])


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "missing and unexpected keys": lambda nn, lib: nn.Linear(2, 2).load_state_dict({"w": lib.ones(2)}),
    "sizes": lambda nn, lib: nn.Sequential(nn.Linear(2, 2)).load_state_dict(
        {"0.weight": lib.ones(2, 3), "0.bias": lib.ones(2)}
    ),
    "no tensor": lambda nn, lib: nn.Linear(1, 1).load_state_dict({"weight": 3, "bias": lib.ones(1)}),
    "no dict": lambda nn, lib: nn.Linear(2, 2).load_state_dict([]),
    "before init": lambda nn, lib: setattr(object.__new__(nn.Module), "a", nn.Parameter(lib.ones(1))),
    "module before init": lambda nn, lib: setattr(object.__new__(nn.Module), "a", nn.Linear(1, 1)),
    "no parameter": lambda nn, lib: setattr(nn.Linear(1, 1), "weight", 3.0),
    "tensor for parameter": lambda nn, lib: setattr(nn.Linear(1, 1), "weight", lib.ones(1)),
    "no module": lambda nn, lib: setattr(nn.Sequential(nn.Linear(1, 1)), "0", 3),
    "attribute": lambda nn, lib: nn.Linear(1, 1).wieght,
    "dot": lambda nn, lib: nn.Module().register_buffer("a.b", None),
    "empty": lambda nn, lib: nn.Module().register_buffer("", None),
    "exists": lambda nn, lib: nn.Module().register_buffer("forward", None),
    "to int": lambda nn, lib: nn.Linear(1, 1).to(lib.int64),
    "train": lambda nn, lib: nn.Linear(1, 1).train("yes"),
    "forward": lambda nn, lib: type("Mine", (nn.Module,), {})()(1),
    "dropout": lambda nn, lib: nn.Dropout(2),
    "groups": lambda nn, lib: nn.Conv2d(3, 4, 3, groups=2),
    "batch norm rank": lambda nn, lib: nn.BatchNorm1d(3)(lib.ones(3)),
    "batch norm 2d rank": lambda nn, lib: nn.BatchNorm2d(3)(lib.ones(2, 3)),
    "list index": lambda nn, lib: nn.ModuleList([nn.Identity()])[3],
    "fans": lambda nn, lib: nn.init.kaiming_uniform_(lib.ones(3)),
    "mode": lambda nn, lib: nn.init.kaiming_uniform_(lib.ones(3, 3), mode="fan"),
    "gain": lambda nn, lib: nn.init.calculate_gain("swish"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011
        ERRORS[name](torch.nn, torch)
    with pytest.raises(type(expected.value)) as got:
        ERRORS[name](ma.nn, ma)
    theirs = str(expected.value).replace("torch.nn.modules.linear.Linear", "Linear")
    assert str(got.value) == theirs


def test_load_state_dict_reports_keys() -> None:
    reports = []
    for lib, module in both(lambda nn, lib: nn.Linear(2, 1)):
        loose = module.load_state_dict({"weight": lib.ones(1, 2), "other": lib.ones(1)}, strict=False)
        reports.append(
            (repr(loose), repr(module.load_state_dict(module.state_dict())), module.weight.detach().tolist())
        )
    assert reports[0] == reports[1]


def test_a_copy_has_its_own_memory_and_gradients() -> None:
    module = ma.nn.Linear(2, 1)
    module(ma.ones(1, 2)).sum().backward()
    twin = copy.deepcopy(module)
    twin(ma.ones(1, 2)).sum().backward()
    module.weight.array[...] = 0
    assert twin.weight.array.all()
    np.testing.assert_array_equal(module.weight.grad.numpy(), np.ones((1, 2)))


INITIALIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "uniform_": lambda init, x: init.uniform_(x, -0.3, 2.0),
    "normal_": lambda init, x: init.normal_(x, 0.5, 0.2),
    "constant_": lambda init, x: init.constant_(x, 0.3),
    "xavier_uniform_": lambda init, x: init.xavier_uniform_(x, 1.5),
    "xavier_normal_": lambda init, x: init.xavier_normal_(x),
    "kaiming_uniform_": lambda init, x: init.kaiming_uniform_(x, mode="fan_out", nonlinearity="relu"),
    "kaiming_normal_": lambda init, x: init.kaiming_normal_(x, 0.2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", INITIALIZERS)
def test_initializers_give_pytorchs_numbers(name: str, dtype: str) -> None:
    for shape in ((6, 5), (3, 2), (4, 9)):
        values = []
        for lib in (torch, ma):
            lib.manual_seed(9)
            x = lib.zeros(*shape, dtype=getattr(lib, dtype))
            values.append(INITIALIZERS[name](lib.nn.init, x).numpy())
        exact = name.endswith("uniform_") and dtype == "float32"
        rtol, atol = (0, 0) if exact else (1e-4, 1e-7) if dtype == "float32" else (1e-12, 1e-14)
        np.testing.assert_allclose(values[1], values[0], rtol=rtol, atol=atol)


CLIPPED = (np.array([3.0, -4.0]), np.array([[1.0], [12.0]]))


@pytest.mark.parametrize("order", [2.0, 1.0, 3.0, float("inf")])
@pytest.mark.parametrize("limit", [1.0, 100.0])
def test_clip_grad_norm(order: float, limit: float) -> None:
    results = []
    for lib in (torch, ma):
        parameters = [lib.nn.Parameter(lib.tensor(values)) for values in CLIPPED]
        for parameter, values in zip(parameters, CLIPPED, strict=True):
            parameter.grad = lib.tensor(values)
        norm = lib.nn.utils.clip_grad_norm_([*parameters, lib.nn.Parameter(lib.ones(2))], limit, order)
        grads = [parameter.grad.numpy() for parameter in parameters]
        lib.nn.utils.clip_grad_value_(parameters, 0.3)
        results.append([norm.numpy(), *grads, *[parameter.grad.numpy() for parameter in parameters]])
    for expected, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_clip_grad_norm_may_refuse_what_is_not_finite() -> None:
    texts = []
    for lib in (torch, ma):
        parameter = lib.nn.Parameter(lib.ones(2))
        parameter.grad = lib.tensor([1.0, float("inf")])
        with pytest.raises(RuntimeError) as caught:
            lib.nn.utils.clip_grad_norm_(parameter, 1.0, error_if_nonfinite=True)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
