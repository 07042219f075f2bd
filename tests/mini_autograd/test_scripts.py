"""Training scripts that know nothing of us: they run unchanged with `mini_autograd` in the place of `torch`.

From the same weights, which come from the same seed, the losses of 100 steps in float64 must be PyTorch's.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mini_autograd as ma
import mini_autograd.nn.functional
import mini_autograd.optim.lr_scheduler
import mini_autograd.utils

SCRIPTS = Path(__file__).parent / "scripts"

MODULES = {
    "torch": ma,
    "torch.nn": ma.nn,
    "torch.nn.functional": ma.nn.functional,
    "torch.optim": ma.optim,
    "torch.optim.lr_scheduler": ma.optim.lr_scheduler,
    "torch.utils": ma.utils,
    "torch.utils.data": ma.utils.data,
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


def assert_same_weights(ours: Any, theirs: Any) -> None:
    """After the training, too."""
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    for name, value in ours.state_dict().items():
        np.testing.assert_allclose(value.numpy(), state[name].numpy(), rtol=1e-5, atol=1e-7, err_msg=name)
