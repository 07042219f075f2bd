"""Optimizers and schedules against PyTorch's: values and state after several steps, layout of state_dict, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma
from mini_autograd.numerics.blocks import LARGE_BLOCK

# name: optimizer(optim, params)
OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda optim, params: optim.SGD(params, lr=0.1),
    "SGD momentum": lambda optim, params: optim.SGD(params, 0.05, 0.9),
    "SGD dampening": lambda optim, params: optim.SGD(params, 0.05, momentum=0.9, dampening=0.3),
    "SGD nesterov": lambda optim, params: optim.SGD(params, 0.05, momentum=0.8, nesterov=True, weight_decay=0.1),
    "SGD maximize": lambda optim, params: optim.SGD(params, 0.05, weight_decay=0.1, maximize=True),
    "SGD foreach": lambda optim, params: optim.SGD(params, 0.05, foreach=False),
    "Adam": lambda optim, params: optim.Adam(params, lr=0.05),
    "Adam options": lambda optim, params: optim.Adam(params, 0.05, (0.8, 0.9), 1e-3, weight_decay=0.1, maximize=True),
    "Adam amsgrad": lambda optim, params: optim.Adam(params, 0.05, amsgrad=True),
    "AdamW": lambda optim, params: optim.AdamW(params, 0.05, weight_decay=0.2),
    "AdamW amsgrad": lambda optim, params: optim.AdamW(params, 0.05, amsgrad=True, betas=(0.7, 0.8)),
    "RMSprop": lambda optim, params: optim.RMSprop(params, 0.05),
    "RMSprop all": lambda optim, params: optim.RMSprop(
        params, 0.02, alpha=0.8, momentum=0.7, centered=True, weight_decay=0.1
    ),
    "Adadelta": lambda optim, params: optim.Adadelta(params),
    "Adadelta all": lambda optim, params: optim.Adadelta(params, 0.5, 0.8, 1e-3, 0.1, maximize=True),
}
SHAPES = ((3, 2), (), (4,), (2,))


def start(lib: Any) -> list[Any]:
    generator = np.random.default_rng(2)
    return [lib.nn.Parameter(lib.tensor(np.array(generator.standard_normal(shape)))) for shape in SHAPES]


def loss_of(lib: Any, params: list[Any], step: int) -> Any:
    """The last parameter gets no gradient, and the one before it only in every second step."""
    total = ((params[0] - step) ** 2).sum() + params[1].tanh() * step
    return total + (params[2] * params[0].sum()).exp().sum().log() if step % 2 == 0 else total


def train(lib: Any, optimizer: Any, params: list[Any], steps: int) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(lib, params, step).backward()
        optimizer.step()


def plain(value: Any) -> Any:
    """A state dict as plain Python."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.detach().tolist() if hasattr(value, "detach") else value


def assert_close(expected: Any, got: Any) -> None:
    if isinstance(expected, dict):
        assert set(got) == set(expected)
        for key in expected:
            assert_close(expected[key], got[key])
    elif isinstance(expected, list):
        assert len(got) == len(expected)
        for a, b in zip(expected, got, strict=True):
            assert_close(a, b)
    else:
        assert got == (pytest.approx(expected, rel=1e-9, abs=1e-12) if isinstance(expected, float) else expected)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_and_state_are_pytorchs(name: str) -> None:
    found = []
    for lib in (torch, ma):
        params = start(lib)
        optimizer = OPTIMIZERS[name](lib.optim, params)
        train(lib, optimizer, params, 5)
        found.append((plain(params), plain(optimizer.state_dict()), repr(optimizer)))
    assert_close(found[0][0], found[1][0])
    assert_close(found[0][1], found[1][1])
    assert found[0][2] == found[1][2]


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if "SGD" in name])
def test_a_large_parameter_is_stepped_block_by_block(name: str, by_columns: bool) -> None:
    """The parameter has more than two blocks and a partial one; stored column by column, it is stepped as a whole."""
    numbers, stepped = np.random.default_rng(3).standard_normal((3, 1801, 300)), []
    for lib in (ma, torch):
        start, *grads = (lib.tensor(part).T if by_columns else lib.tensor(part) for part in numbers)
        param = lib.nn.Parameter(start)
        assert param.is_contiguous() is not by_columns
        optimizer = OPTIMIZERS[name](lib.optim, [param])
        for grad in grads:
            param.grad = grad
            optimizer.step()
        stepped.append(param.detach().numpy())
    assert stepped[0].size > 2 * LARGE_BLOCK
    np.testing.assert_allclose(stepped[0], stepped[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loaded_state_goes_on_as_before(name: str) -> None:
    params = start(ma)
    optimizer = OPTIMIZERS[name](ma.optim, params)
    train(ma, optimizer, params, 3)
    copies = [ma.nn.Parameter(param.detach().clone()) for param in params]
    twin = OPTIMIZERS[name](ma.optim, copies)
    twin.load_state_dict(optimizer.state_dict())
    train(ma, optimizer, params, 3)
    train(ma, twin, copies, 3)
    assert plain(copies) == plain(params)


def test_the_state_of_pytorch_can_be_taken_over() -> None:
    theirs, ours = start(torch), start(ma)
    optimizer = torch.optim.Adam(theirs, 0.1)
    train(torch, optimizer, theirs, 3)
    state = optimizer.state_dict()
    state["state"] = {n: {k: ma.tensor(v.numpy()) for k, v in kept.items()} for n, kept in state["state"].items()}
    twin = ma.optim.Adam(ours, 0.1)
    twin.load_state_dict(state)
    for param, other in zip(ours, theirs, strict=True):
        param.data = ma.tensor(other.detach().numpy())
    train(torch, optimizer, theirs, 3)
    train(ma, twin, ours, 3)
    assert_close(plain(theirs), plain(ours))


def test_groups_have_their_own_options() -> None:
    found = []
    for lib in (torch, ma):
        params = start(lib)
        optimizer = lib.optim.SGD([{"params": params[:1]}, {"params": params[1], "lr": 0.5}], lr=0.1, momentum=0.5)
        optimizer.add_param_group({"params": params[2:], "momentum": 0.0})
        train(lib, optimizer, params, 3)
        closure_value = optimizer.step(lambda params=params, lib=lib: loss_of(lib, params, 0))
        found.append((plain(params), plain(optimizer.state_dict()), closure_value.item()))
    assert_close(list(found[0]), list(found[1]))


def test_zero_grad_in_place_or_to_none() -> None:
    params = start(ma)
    optimizer = ma.optim.SGD(params)
    loss_of(ma, params, 0).backward()
    grad = params[0].grad
    optimizer.zero_grad(set_to_none=False)
    assert params[0].grad is grad
    assert not grad.numpy().any()
    optimizer.zero_grad()
    assert params[0].grad is None


def test_a_step_allocates_nothing_and_keeps_the_memory_of_the_parameters() -> None:
    params = start(ma)
    optimizer = ma.optim.Adam(params)
    loss_of(ma, params, 0).backward()
    memory = params[0].array
    optimizer.step()
    assert params[0].array is memory
    assert optimizer.scratch(memory).base is optimizer.scratch(params[2].array).base


# name: schedule(lr_scheduler, optimizer)
SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda s, optimizer: s.StepLR(optimizer, 3, gamma=0.5),
    "ExponentialLR": lambda s, optimizer: s.ExponentialLR(optimizer, 0.9),
    "CosineAnnealingLR": lambda s, optimizer: s.CosineAnnealingLR(optimizer, 4, eta_min=0.01),
    "LambdaLR": lambda s, optimizer: s.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1)),
    "LambdaLR per group": lambda s, optimizer: s.LambdaLR(optimizer, [lambda epoch: 0.9**epoch, lambda epoch: epoch]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_pytorchs(name: str) -> None:
    rates = []
    for lib in (torch, ma):
        params = start(lib)
        optimizer = lib.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}], lr=0.1)
        schedule = SCHEDULES[name](lib.optim.lr_scheduler, optimizer)
        seen = [schedule.get_last_lr()]
        for _ in range(14):
            schedule.step()
            seen.append(schedule.get_last_lr() + [group["lr"] for group in optimizer.param_groups])
        rates.append([seen, getattr(schedule, "last_epoch", None), getattr(schedule, "base_lrs", None)])
    assert_close(rates[0], rates[1])


@pytest.mark.filterwarnings("ignore")
def test_schedules_can_be_chained() -> None:
    rates = []
    for lib in (torch, ma):
        optimizer = lib.optim.SGD(start(lib), lr=0.1)
        s = lib.optim.lr_scheduler
        schedules = [s.CosineAnnealingLR(optimizer, 4), s.ExponentialLR(optimizer, 0.8), s.StepLR(optimizer, 4)]
        seen = []
        for _ in range(9):
            for schedule in schedules:
                schedule.step()
            seen.append(optimizer.param_groups[0]["lr"])
        rates.append(seen)
    assert_close(*rates)


def test_a_schedule_goes_on_from_its_state() -> None:
    optimizers = [ma.optim.SGD(start(ma), lr=0.1) for _ in range(2)]
    first, second = (ma.optim.lr_scheduler.StepLR(optimizer, 2) for optimizer in optimizers)
    for _ in range(3):
        first.step()
    optimizers[1].load_state_dict(optimizers[0].state_dict())
    second.load_state_dict(first.state_dict())
    for schedule in (first, second):
        schedule.step()
    assert first.get_last_lr() == second.get_last_lr()


ERRORS: dict[str, Callable[[Any], Any]] = {
    "no parameters": lambda lib: lib.optim.SGD([], 0.1),
    "a tensor": lambda lib: lib.optim.SGD(lib.ones(2), 0.1),
    "no leaf": lambda lib: lib.optim.SGD([lib.ones(2, requires_grad=True) * 2], 0.1),
    "rate": lambda lib: lib.optim.SGD([lib.ones(2)], -0.1),
    "momentum": lambda lib: lib.optim.SGD([lib.ones(2)], 0.1, momentum=-1),
    "nesterov": lambda lib: lib.optim.SGD([lib.ones(2)], 0.1, nesterov=True),
    "betas": lambda lib: lib.optim.Adam([lib.ones(2)], betas=(0.9, 1.0)),
    "eps": lambda lib: lib.optim.Adam([lib.ones(2)], eps=-1.0),
    "decay": lambda lib: lib.optim.AdamW([lib.ones(2)], weight_decay=-1.0),
    "alpha": lambda lib: lib.optim.RMSprop([lib.ones(2)], alpha=-1.0),
    "a set": lambda lib: lib.optim.SGD([{"params": {lib.ones(2)}}]),
    "groups": lambda lib: lib.optim.SGD([lib.ones(2)]).load_state_dict({"state": {}, "param_groups": []}),
    "no optimizer": lambda lib: lib.optim.lr_scheduler.StepLR(3, 1),
    "lambdas": lambda lib: lib.optim.lr_scheduler.LambdaLR(lib.optim.SGD([lib.ones(2)]), [abs, abs]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011
        ERRORS[name](torch)
    with pytest.raises(type(expected.value)) as got:
        ERRORS[name](ma)
    assert str(got.value) == str(expected.value)


def test_changing_a_parameter_between_forward_and_backward_is_noticed() -> None:
    texts = []
    for lib in (torch, ma):
        x = lib.nn.Parameter(lib.ones(2))
        loss = (x * x).sum()
        loss.backward(retain_graph=True)
        lib.optim.SGD([x], lr=0.1).step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
            loss.backward()
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
