"""Plants classic mistakes in the solutions of lesson 11: each costs points where it was made, and on no other cell.

The code that the lesson provides is compared with PyTorch as well, and so are whole trainings, in every style.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from autograder.checks.cases import wrong_outcomes
from autograder.lessons.builder.cases import checks_of
from tests.course.planting import LessonTests, solved, styles, text_of

LESSON = "11_training"


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 5
    visible = True
    examples = 15


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


@pytest.fixture(scope="module")
def solution() -> dict[str, Any]:
    return solved(LESSON)


def test_recording_that_a_wrong_try_left_off_costs_nothing(engine: dict[str, Any]) -> None:
    checks = checks_of(text_of(LESSON))
    assert len(checks) == 5
    for check in checks.values():
        engine["switches"].recording = False
        assert wrong_outcomes(check, engine) == {}


def state_for_torch(model: Any) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(tensor.data) for name, tensor in model.state_dict().items()}


def step_of_torch(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: Any, y: Any) -> float:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(y))
    loss.backward()
    optimizer.step()
    return loss.item()


def test_a_training_with_all_parts_gives_the_numbers_of_pytorch(engine: dict[str, Any]) -> None:
    points = np.random.default_rng(1).normal(size=(50, 5))
    labels = points[:, :3].argmax(axis=1)
    engine["manual_seed"](2)
    model = engine["Sequential"](
        engine["LinearLayer"](5, 8), engine["BatchNorm1d"](8), engine["GELU"](), engine["LinearLayer"](8, 3)
    )
    theirs: Any = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 3)
    ).double()
    theirs.load_state_dict(state_for_torch(model))
    options: dict[str, Any] = {"lr": 0.02, "betas": (0.8, 0.99), "weight_decay": 0.01}
    optimizer = engine["Adam"](model.parameters(), **options)
    theirs_optimizer = torch.optim.Adam(theirs.parameters(), **options)
    loader = engine["DataLoader"](engine["TensorDataset"](points, labels), batch_size=16, shuffle=True)
    ours, expected = [], []
    for _ in range(5):
        for x, y in loader:
            ours.append(engine["train_step"](model, optimizer, engine["cross_entropy"], x, y))
            expected.append(step_of_torch(theirs, theirs_optimizer, x.data, y))
    assert len(ours) == 20
    assert np.mean(ours[-4:]) < 0.9 * np.mean(ours[:4]), "this training gets nowhere"
    np.testing.assert_allclose(ours, expected, rtol=1e-6)
    for name, tensor in theirs.state_dict().items():
        np.testing.assert_allclose(model.state_dict()[name].data, tensor.numpy(), rtol=1e-6, atol=1e-9)
    theirs.eval()
    held_out = engine["evaluate"](model, loader, engine["cross_entropy"])
    right = torch.nn.functional.cross_entropy(theirs(torch.tensor(points)), torch.tensor(labels)).item()
    assert held_out == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize("options", [{"momentum": 0.9}, {"weight_decay": 0.1}, {"momentum": 0.5, "weight_decay": 0.2}])
def test_the_given_sgd_is_that_of_pytorch(solution: dict[str, Any], options: dict[str, float]) -> None:
    start, random = np.array([1.0, -2.0, 0.5]), np.random.default_rng(2)
    w, theirs = solution["Parameter"](start.copy()), torch.tensor(start, requires_grad=True)
    optimizer, theirs_optimizer = solution["SGD"]([w], lr=0.1, **options), torch.optim.SGD([theirs], lr=0.1, **options)
    for _ in range(5):
        gradient = random.normal(size=3)
        w.grad, theirs.grad = solution["MiniTensor"](gradient), torch.tensor(gradient)
        optimizer.step()
        theirs_optimizer.step()
    np.testing.assert_allclose(w.data, theirs.detach().numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_takes_what_that_of_pytorch_takes(
    solution: dict[str, Any], shape: tuple[int, ...], bias: bool
) -> None:
    layer, theirs = solution["LinearLayer"](4, 2, bias=bias), torch.nn.Linear(4, 2, bias=bias).double()
    theirs.load_state_dict(state_for_torch(layer))
    values = np.random.default_rng(3).normal(size=shape)
    x, x_theirs = solution["MiniTensor"](values, requires_grad=True), torch.tensor(values, requires_grad=True)
    y, y_theirs = layer(x), theirs(x_theirs)
    cotangent = np.random.default_rng(4).normal(size=tuple(y_theirs.shape))
    y.backward(cotangent)
    y_theirs.backward(torch.tensor(cotangent))
    assert x_theirs.grad is not None
    np.testing.assert_allclose(y.data, y_theirs.detach().numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(x.grad.data, x_theirs.grad.numpy(), rtol=1e-12, atol=1e-14)
    for ours, parameter in zip(layer.parameters(), theirs.parameters(), strict=True):
        assert parameter.grad is not None
        np.testing.assert_allclose(ours.grad.data, parameter.grad.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_that_of_pytorch(solution: dict[str, Any], approximate: str) -> None:
    values = np.linspace(-6, 6, 25)
    x, theirs = solution["MiniTensor"](values, requires_grad=True), torch.tensor(values, requires_grad=True)
    y, y_theirs = solution["GELU"](approximate)(x), torch.nn.functional.gelu(theirs, approximate=approximate)
    y.backward(values)
    y_theirs.backward(torch.tensor(values))
    assert theirs.grad is not None
    np.testing.assert_allclose(y.data, y_theirs.detach().numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(x.grad.data, theirs.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_a_loss_of_two_shapes_warns_as_in_pytorch(solution: dict[str, Any]) -> None:
    column, row = np.arange(3.0).reshape(3, 1), np.arange(3.0)
    with pytest.warns(UserWarning, match="different to the input size"):
        ours = solution["mse_loss"](solution["MiniTensor"](column), row).item()
    with pytest.warns(UserWarning, match="different to the input size"):
        theirs = torch.nn.functional.mse_loss(torch.tensor(column), torch.tensor(row)).item()
    assert ours == pytest.approx(theirs)


def test_a_module_refuses_what_that_of_pytorch_refuses(solution: dict[str, Any]) -> None:
    module, parameter = solution["Module"], solution["Parameter"]

    class TooEarly(module):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self.weight = parameter(1.0)

    with pytest.raises(AttributeError, match=r"cannot assign parameter before Module.__init__\(\) call"):
        TooEarly()
    layer = solution["LinearLayer"](2, 1)
    with pytest.raises(TypeError, match="cannot assign 'MiniTensor' as parameter 'weight'"):
        layer.weight = layer.weight * 2
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        module()(1.0)
    layer.bias = None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


def test_a_deep_copy_of_a_model_learns_by_itself(solution: dict[str, Any]) -> None:
    layer = solution["LinearLayer"](2, 1)
    loss = layer(np.ones((3, 2))).sum()
    twin = copy.deepcopy(layer)
    twin(np.ones((3, 2))).sum().backward()
    assert layer.weight.grad is None
    np.testing.assert_allclose(twin.weight.grad.data, 3.0)
    loss.backward()
    np.testing.assert_allclose(layer.weight.grad.data, 3.0)


def test_a_step_between_forward_and_backward_is_noticed(engine: dict[str, Any]) -> None:
    """Optimizers write in a way that the version counters of lesson 09 notice, as PyTorch's do."""
    weight = engine["Parameter"]([2.0, 3.0])
    loss = (weight * weight).sum()
    weight.grad = engine["MiniTensor"]([1.0, 1.0])
    engine["Adam"]([weight], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
