"""Every operation on arrays that are not NumPy's: forward, backward and forward mode with no copy to the host.

The samples are PyTorch's (see test_opinfo). The tests run on a stand-in for a GPU, and also on a GPU if there is one
(`pytest -m gpu tests/mini_autograd`).
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma
from mini_autograd.graph.function import tensor_of
from mini_autograd.numerics.arrays import on_device, on_host
from mini_autograd.widgets import explore
from tests.mini_autograd.same_as_torch import same
from tests.mini_autograd.test_opinfo import NAMES, OPS, Call, differentiable, flat, ours, samples

TOLERANCE = 1e-12  # in double precision; a GPU adds in another order


class OnDevice(Call):
    """A sample whose tensors are all on the device."""

    def translated(self, value: Any) -> Any:
        tensor = super().translated(value)
        if isinstance(tensor, ma.Tensor):
            tensor.array = on_device(np.array(tensor.array), "cuda")
        return tensor


def numbers(values: list[Any]) -> list[np.ndarray]:
    arrays = [value.detach().array if isinstance(value, ma.Tensor) else value for value in values]
    return [on_host(0.0 if array is None else array) for array in arrays]


def results(call: Call, place: Any) -> list[Any]:
    outputs = call.run()
    recorded = differentiable(outputs)
    if not recorded:
        return flat(outputs)
    cotangents = [tensor_of(place(np.array(array))) for array in random_like_shapes(recorded)]
    grads = ma.autograd.grad(recorded, call.leaves, cotangents, allow_unused=True)
    return [*flat(outputs), *grads]


def random_like_shapes(tensors: list[Any]) -> list[np.ndarray]:
    generator = np.random.default_rng(1)
    return [generator.standard_normal(t.shape).astype(t.dtype) for t in tensors]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_operation_stays_on_the_device(name: str, gpu: None) -> None:
    op = OPS[name]
    for sample in samples(name)[0]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = results(Call(ma, ours(op), op, sample), lambda array: array)
            found = results(OnDevice(ma, ours(op), op, sample), lambda array: on_device(array, "cuda"))
        for got, wanted in zip(numbers(found), numbers(expected), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=TOLERANCE, atol=TOLERANCE)
        for value in found:
            assert not isinstance(value, ma.Tensor) or on_gpu(value), "left the device"


def on_gpu(tensor: ma.Tensor) -> bool:
    """Whether the numbers are in an array of the GPU or of its stand-in, which have no scalars outside arrays."""
    return isinstance(tensor.detach().array, sys.modules["cupy"].ndarray)


def test_moving_there_and_back(gpu: None) -> None:
    x = ma.tensor([1.0, 2.0], requires_grad=True)
    y = x.to("cuda")
    assert on_gpu(y)
    assert y.is_cuda
    assert y.device == ma.device("cuda", 0)
    assert not y.is_leaf
    assert y.to("cuda") is y
    assert y.cuda() is y
    assert x.cpu() is x
    assert repr(y.detach()) == "tensor([1., 2.], device='cuda:0')"
    (y * y).sum().backward()
    assert not on_gpu(x.grad)
    assert x.grad.tolist() == [2.0, 4.0]
    assert not on_gpu(y.cpu())
    both = y.to("cpu", ma.float64)
    assert both.dtype == ma.float64
    assert not on_gpu(both)
    assert on_gpu(x.to(y))
    assert on_gpu(x.to(device="cuda", dtype=ma.float16))


def test_numpy_of_a_tensor_on_a_gpu_says_what_to_do(gpu: None) -> None:
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\)"):
        ma.ones(2, device="cuda").numpy()


MIXED = {
    "add": lambda a, b: a + b,
    "matmul": lambda a, b: a @ b,
    "cat": lambda a, b: ma.cat([a, b]),
    "where": lambda a, b: ma.where(a > 0, a, b),
    "linear": lambda a, b: ma.nn.functional.linear(a, b),
}


@pytest.mark.parametrize("operation", MIXED.values(), ids=MIXED.keys())
@pytest.mark.parametrize("swapped", [False, True], ids=["gpu first", "cpu first"])
def test_tensors_on_different_devices_are_refused_in_pytorchs_words(gpu: None, operation: Any, swapped: bool) -> None:
    tensors = [ma.ones(2, 2, device="cuda", requires_grad=True), ma.ones(2, 2)]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two dev"):
        operation(*(tensors[::-1] if swapped else tensors))


def test_a_number_of_the_host_may_stand_beside_a_tensor_of_a_gpu(gpu: None) -> None:
    scale = ma.tensor(2.0)
    assert (ma.ones(2, device="cuda") * scale).tolist() == [2.0, 2.0]
    assert (ma.ones(2, device="cuda") * 2).tolist() == [2.0, 2.0]


def test_new_tensors_on_a_device(gpu: None) -> None:
    x = ma.zeros(2, 2, device="cuda")
    made = [ma.tensor([1.0], device="cuda"), ma.arange(3, device="cuda"), ma.eye(2, device="cuda"), ma.ones_like(x)]
    made += [ma.full((2,), 3.0, device="cuda"), ma.linspace(0, 1, 3, device="cuda"), x.new_zeros(2), ma.full_like(x, 3)]
    made += [ma.rand(2, device="cuda"), ma.randint(3, (2,), device="cuda"), ma.as_tensor([1.0], device="cuda")]
    assert all(map(on_gpu, made))
    assert all(tensor.is_leaf for tensor in made)


def in_place(lib_x: ma.Tensor) -> ma.Tensor:
    y = lib_x * 1
    y[0] = 3.0
    y[1:].mul_(2)
    y[ma.tensor([0, 2], device=y.device)] += 1
    y.masked_fill_(y > 100, 0.0)
    y.add_(y).clamp_(max=50)
    z = y.clone().zero_() + y
    return z.clone().copy_(z * y)


def test_in_place_operations_stay_on_the_device(gpu: None) -> None:
    results = []
    for device in ("cpu", "cuda"):
        x = ma.tensor([1.0, 2.0, 3.0], requires_grad=True, device=device)
        y = in_place(x)
        y.sum().backward()
        assert on_gpu(y) == on_gpu(x.grad) == (device == "cuda")
        results.append((y.tolist(), x.grad.tolist()))
    assert results[0] == results[1]


def test_derivatives_of_derivatives_stay_on_the_device(gpu: None) -> None:
    x = ma.tensor([1.0, 2.0], requires_grad=True, device="cuda")
    (slope,) = ma.autograd.grad((x**3 * x.tanh()).sum(), x, create_graph=True)
    (curvature,) = ma.autograd.grad(slope.sum(), x)
    assert on_gpu(slope)
    assert on_gpu(curvature)
    x_cpu = x.detach().cpu().requires_grad_()
    (slope_cpu,) = ma.autograd.grad((x_cpu**3 * x_cpu.tanh()).sum(), x_cpu, create_graph=True)
    assert curvature.tolist() == ma.autograd.grad(slope_cpu.sum(), x_cpu)[0].tolist()


def small_network() -> ma.nn.Module:
    nn = ma.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16, 8),
        nn.LayerNorm(8),
        nn.GELU(),
        nn.Dropout(0.2),
        nn.Linear(8, 3),
    )


OPTIMIZERS = {
    "SGD": lambda parameters: ma.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda parameters: ma.optim.Adam(parameters, lr=0.01),
    "AdamW": lambda parameters: ma.optim.AdamW(parameters, lr=0.01),
    "RMSprop": lambda parameters: ma.optim.RMSprop(parameters, lr=0.01),
}


def losses(device: str, optimizer: Any, steps: int = 4) -> list[float]:
    """The losses of a small network from a seed, trained on that device."""
    ma.manual_seed(0)
    images, labels = ma.randn(6, 1, 4, 4).to(device), ma.randint(3, (6,)).to(device)
    model = small_network().to(device)
    chosen = optimizer(model.parameters())
    found = []
    for _ in range(steps):
        chosen.zero_grad()
        loss = ma.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        ma.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        chosen.step()
        found.append(loss.item())
    assert all(p.device.type == ma.device(device).type for p in [*model.parameters(), *model.buffers()])
    return found


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_training_stays_on_the_device(gpu: None, optimizer: Any) -> None:
    np.testing.assert_allclose(losses("cuda", optimizer), losses("cpu", optimizer), rtol=1e-5)


def attention_step(device: str) -> list[float]:
    ma.manual_seed(0)
    tokens = ma.randint(5, (2, 4)).to(device)
    embedding = ma.nn.Embedding(5, 8).to(device)
    attention = ma.nn.MultiheadAttention(8, 2, batch_first=True).to(device)
    x = embedding(tokens)
    y, _ = attention(x, x, x)
    causal = ma.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    (y * causal).sum().backward()
    assert embedding.weight.grad.device.type == ma.device(device).type
    return embedding.weight.grad.cpu().flatten().tolist()


def test_attention_stays_on_the_device(gpu: None) -> None:
    np.testing.assert_allclose(attention_step("cuda"), attention_step("cpu"), rtol=1e-4, atol=1e-6)


def without_a_gpu(lib: Any) -> Any:
    return lib.ones(2).cuda()


def devices_by_name(lib: Any) -> Any:
    found = [lib.device("cpu"), lib.device("cuda"), lib.device("cuda:1"), lib.device("cuda", 1)]
    found.append(lib.device(found[2]))
    return [(str(d), repr(d), d.type, d.index) for d in found], found[2] == found[3], found[0] == found[1]


def device_that_does_not_exist(lib: Any) -> Any:
    return lib.device("gpu")


def the_usual_choice_of_a_device(lib: Any) -> Any:
    device = lib.device("cuda" if lib.cuda.is_available() else "cpu")
    x = lib.ones(2, device=device).to(device)
    model = lib.nn.Linear(2, 2).to(device)
    return str(x.device), str(model.weight.device), x.to("cpu") is x, x.is_cuda


def test_devices_by_name() -> None:
    same(devices_by_name)


def test_the_usual_choice_of_a_device() -> None:
    if torch.cuda.is_available() != ma.cuda.is_available():
        pytest.skip("only one of the two finds a GPU")
    same(the_usual_choice_of_a_device)


def test_errors_about_devices() -> None:
    if torch.cuda.is_available() or ma.cuda.is_available():
        pytest.skip("there is a GPU")
    same(without_a_gpu)
    with pytest.raises(RuntimeError, match="at start of device string: gpu"):
        device_that_does_not_exist(ma)
    with pytest.raises(RuntimeError, match="at start of device string: gpu"):
        device_that_does_not_exist(torch)


USES = {
    "a leaf": lambda: ma.randn(3, device="cuda", requires_grad=True).sum().backward(),
    "attention": lambda: attend(is_causal=True),
    "a row in place": lambda: twice_a_row(ma.ones(3, 2, device="cuda", requires_grad=True) * 1),
    "addresses": lambda: ma.ones(2, device="cuda")[1:].storage_offset() + ma.ones(2, device="cuda").data_ptr(),
    "multinomial": lambda: ma.multinomial(ma.ones(2, 5, device="cuda"), 3),
    "multinomial with replacement": lambda: ma.multinomial(ma.ones(5, device="cuda"), 30, replacement=True),
    "bernoulli": lambda: ma.bernoulli(ma.full((5,), 0.5, device="cuda")),
    "one_hot": lambda: ma.nn.functional.one_hot(ma.tensor([0, 2], device="cuda")),
    "an embedding of few words": lambda: embed(ma.zeros(40, dtype=ma.int64, device="cuda")),
    "integers added at indices": lambda: added_at(ma.int64, [-3, 5, 7, 2**40]),
    "bytes added at indices": lambda: added_at(ma.int8, [-3, 5, 100, 100]),
    "bools added at indices": lambda: added_at(ma.bool, [False, True, True, False]),
    "products at indices": lambda: products_at(ma.tensor([2.0, 3.0, 4.0, 5.0], device="cuda")),
    "gradcheck": lambda: ma.autograd.gradcheck(curve, on_gpu_in_double(), check_forward_ad=True),
    "gradcheck, batched": lambda: ma.autograd.gradcheck(curve, on_gpu_in_double(), check_batched_grad=True),
    "gradgradcheck": lambda: ma.autograd.gradgradcheck(curve, on_gpu_in_double()),
    "jacobian": lambda: ma.autograd.functional.jacobian(curve, ma.randn(2, 3, device="cuda")),
    "hessian": lambda: ma.autograd.functional.hessian(lambda x: curve(x).sum(), ma.randn(3, device="cuda")),
    "vhp": lambda: ma.autograd.functional.vhp(lambda x: curve(x).sum(), *(ma.randn(3, device="cuda"),) * 2)[1],
    "an explorer": lambda: explore(curve(ma.randn(2, 3, device="cuda", requires_grad=True)).sum()),
}
"""Uses that the operations' own samples do not cover."""


def curve(x: ma.Tensor) -> ma.Tensor:
    return (x * x).tanh()


def on_gpu_in_double() -> ma.Tensor:
    return ma.randn(2, 3, dtype=ma.float64, device="cuda", requires_grad=True)


def embed(words: ma.Tensor) -> ma.Tensor:
    weight = ma.ones(3, 2, device="cuda", requires_grad=True)
    ma.nn.functional.embedding(words, weight).sum().backward()
    assert weight.grad.tolist() == [[40.0, 40.0], [0.0, 0.0], [0.0, 0.0]]
    return weight.grad


def added_at(dtype: Any, values: list[int]) -> ma.Tensor:
    """The same sums on the device and on the host, some of them at one place."""
    index = ma.tensor([0, 2, 2, 2])
    here = ma.zeros(3, dtype=dtype).scatter_add(0, index, ma.tensor(values, dtype=dtype))
    there = ma.zeros(3, dtype=dtype, device="cuda").scatter_add(
        0, index.cuda(), ma.tensor(values, dtype=dtype, device="cuda")
    )
    assert there.dtype == dtype
    assert there.tolist() == here.tolist()
    return there


def products_at(values: ma.Tensor) -> ma.Tensor:
    index = ma.tensor([0, 2, 2, 2], device="cuda")
    found = ma.full((3,), 2.0, device="cuda").scatter(0, index, values, reduce="multiply")
    assert found.tolist() == [4.0, 2.0, 120.0]
    return found


def attend(**options: Any) -> None:
    x = ma.randn(2, 3, 4, 8, device="cuda", requires_grad=True)
    ma.nn.functional.scaled_dot_product_attention(x, x, x, **options).sum().backward()


def twice_a_row(x: ma.Tensor) -> None:
    x[1] *= 2
    x.sum().backward()


@pytest.mark.parametrize("name", USES)
def test_what_programs_do_besides_runs_on_the_device(gpu: None, name: str) -> None:
    result = USES[name]()
    for tensor in flat(result):
        assert not isinstance(tensor, ma.Tensor) or on_gpu(tensor), "left the device"


def test_tensors_that_are_made_on_the_device_are_leaves(gpu: None) -> None:
    makers = (ma.zeros, ma.ones, ma.empty, ma.rand, ma.randn)
    made = [make(3, device="cuda", requires_grad=True) for make in makers]
    made.append(ma.randn_like(ma.zeros(3, device="cuda"), requires_grad=True))
    assert all(tensor.is_leaf and on_gpu(tensor) for tensor in made)


def test_the_state_of_an_optimizer_comes_to_the_device_of_its_parameters(gpu: None) -> None:
    model = ma.nn.Linear(3, 2)
    first = ma.optim.Adam(model.parameters())
    model(ma.ones(1, 3)).sum().backward()
    first.step()
    saved = first.state_dict()
    model.to("cuda")
    second = ma.optim.Adam(model.parameters())
    second.load_state_dict(saved)
    model(ma.ones(1, 3, device="cuda")).sum().backward()
    second.step()
    state = [value for kept in second.state_dict()["state"].values() for value in kept.items()]
    assert {name for name, value in state if isinstance(value, ma.Tensor) and on_gpu(value)} == {
        "exp_avg",
        "exp_avg_sq",
    }
