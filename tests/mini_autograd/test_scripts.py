"""Training scripts written for PyTorch: they run unchanged with `mini_autograd` in place of `torch`.

From the same weights, which come from the same seed, the losses of 100 steps in float64 must be PyTorch's.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma
import mini_autograd.func
import mini_autograd.nn.functional
import mini_autograd.nn.utils.rnn
import mini_autograd.optim.lr_scheduler
import mini_autograd.utils

pytestmark = pytest.mark.slow

NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]\d+)?")
SCRIPTS = Path(__file__).parent / "scripts"

MODULES = {
    "torch": ma,
    "torch.autograd": ma.autograd,
    "torch.distributed": ma.distributed,
    "torch.func": ma.func,
    "torch.nn": ma.nn,
    "torch.nn.functional": ma.nn.functional,
    "torch.nn.parallel": ma.nn.parallel,
    "torch.nn.utils": ma.nn.utils,
    "torch.nn.utils.rnn": ma.nn.utils.rnn,
    "torch.optim": ma.optim,
    "torch.optim.lr_scheduler": ma.optim.lr_scheduler,
    "torch.utils": ma.utils,
    "torch.utils.data": ma.utils.data,
    "torch.utils.data.dataloader": ma.utils.data.dataloader,
    "torch.utils.data.dataset": ma.utils.data.dataset,
}


@pytest.mark.parametrize("name", ["mlp_on_digits", "small_cnn", "character_transformer"])
def test_script_follows_pytorch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = runpy.run_path(str(SCRIPTS / f"{name}.py"))
    for module, ours in MODULES.items():
        monkeypatch.setitem(sys.modules, module, ours)
    got = runpy.run_path(str(SCRIPTS / f"{name}.py"))
    assert isinstance(next(got["model"].parameters()), ma.Tensor)
    assert len(got["losses"]) == 100
    assert got["losses"][-1] < 0.7 * got["losses"][0]
    np.testing.assert_allclose(got["losses"], expected["losses"], rtol=1e-5)
    for result in ("accuracy", "text"):
        assert got.get(result) == expected.get(result)
    assert_same_weights(got["model"], expected["model"])


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts take a GPU if there is one. There, PyTorch draws other random numbers than on the CPU."""
    for lib in (torch, ma):
        monkeypatch.setattr(lib.cuda, "is_available", lambda: False)


PRINTED = "contrastive_pairs learning_to_learn gpt_training variational_autoencoder forward_forward rows_as_time"


@pytest.mark.parametrize("name", PRINTED.split())
def test_script_prints_what_it_prints_under_pytorch(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Losses, modules, sizes, results of several parts, and errors."""
    try:
        runpy.run_path(str(SCRIPTS / f"{name}.py"))
        expected = capsys.readouterr().out
        with monkeypatch.context() as replaced:
            for module, ours in MODULES.items():
                replaced.setitem(sys.modules, module, ours)
            runpy.run_path(str(SCRIPTS / f"{name}.py"))
    finally:
        torch.set_default_dtype(torch.float32)
        ma.set_default_dtype(ma.float32)
    got = capsys.readouterr().out
    assert expected.count("\n") > 20
    assert NUMBER.split(got) == NUMBER.split(expected)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (got, expected)]
    np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-4)  # the digits that are printed


def assert_same_weights(ours: Any, theirs: Any) -> None:
    """Assert that the weights after the training are the same, too."""
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    for name, value in ours.state_dict().items():
        np.testing.assert_allclose(value.numpy(), state[name].numpy(), rtol=1e-5, atol=1e-7, err_msg=name)
