"""The gradients that a benchmark computes by hand are the engine's: a limit for the engine must do the same work."""

from typing import Any

import numpy as np
import pytest

import mini_autograd as ma
from benchmarks.engine import by_hand, measuring, workloads


def leaves(number: int, *shape: int) -> list[Any]:
    return [ma.tensor(workloads.uniform(*shape, seed=seed), requires_grad=True) for seed in range(number)]


@pytest.mark.parametrize("shape", [(), (32, 32)], ids=str)
def test_small_chain(shape: tuple[int, ...]) -> None:
    x, w, b = leaves(3, *shape)
    y = x
    for _ in range(workloads.CHAIN):
        y = (y * w + b).tanh()
    y.sum().backward()
    for found, leaf in zip(by_hand.small_chain(*shape).step(), (x, w, b), strict=True):
        np.testing.assert_allclose(found, leaf.grad.numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["transcendental_chain", "arithmetic_chain"])
def test_large_chain(name: str) -> None:
    x, w = leaves(2, workloads.LARGE)
    getattr(workloads, name)(x, w).backward(ma.tensor(workloads.normal(workloads.LARGE, seed=2)))
    for found, leaf in zip(by_hand.large_chain(getattr(by_hand, name)).step(), (x, w), strict=True):
        np.testing.assert_allclose(found, leaf.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_perceptron() -> None:
    layers = [layer for pair in ((784, 256), (256, 128), (128, 10)) for layer in (ma.nn.Linear(*pair), ma.nn.ReLU())]
    model = ma.nn.Sequential(*layers[:-1])
    with ma.no_grad():
        for layer in model[::2]:
            layer.weight.copy_(ma.tensor(0.05 * workloads.normal(*layer.weight.shape, seed=len(layer.weight))))
            layer.bias.zero_()
    images, labels = ma.tensor(workloads.normal(128, 784)), ma.tensor(workloads.choices(10, 128))
    ma.nn.functional.cross_entropy(model(images), labels).backward()
    expected = [layer.weight.grad for layer in model[::2]] + [layer.bias.grad for layer in model[::2]]
    for found, grad in zip(by_hand.perceptron().step(), expected, strict=True):
        np.testing.assert_allclose(found, grad.numpy(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["transformer", "convolutional"])
def test_a_training_step(name: str) -> None:
    """By hand, the job starts from the parameters of a model of the engine, made from the same seed."""
    ma.manual_seed(0)
    job = getattr(by_hand, name)()
    ma.manual_seed(0)
    same = getattr(workloads, name)(ma)
    for _ in range(2):  # the second step sees what the first has changed
        grads = job.step()
        same.step()
        expected = {name: x.grad.numpy() for name, x in same.model.named_parameters()}
        assert grads.keys() == expected.keys()
        for name, grad in grads.items():
            np.testing.assert_allclose(grad, expected[name], rtol=1e-3, atol=2e-5, err_msg=name)


def test_gradient_check_of_a_layer() -> None:
    measured, by_rules = by_hand.gradient_check_of_a_layer().step()
    assert measured.shape == (136, 64)
    np.testing.assert_allclose(measured, by_rules, atol=1e-6)


@pytest.mark.parametrize("name", ["silu", "softmax"])
def test_an_operation(name: str) -> None:
    x = ma.tensor(workloads.normal(256, 512), requires_grad=True)
    y = x.softmax(-1) if name == "softmax" else ma.nn.functional.silu(x)
    y.sum().backward()
    for found, expected in zip(getattr(by_hand, name)().step(), (y.detach(), x.grad), strict=True):
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-6)


def test_long_chain() -> None:
    (x,) = leaves(1)
    y = x
    for _ in range(workloads.LONG_CHAIN // 2):
        y = y * 0.999 + 0.001
    y.backward()
    np.testing.assert_allclose(by_hand.long_chain().step(), x.grad.numpy(), rtol=1e-5)


def test_the_whole_run_asks_for_every_one() -> None:
    assert set(measuring.BY_HAND) == set(by_hand.BY_HAND)
