"""Recurrent layers against PyTorch's: the pairs of states of an LSTM, last states, errors. More in test_modules.py."""

from typing import Any

import numpy as np
import pytest

import mini_autograd as ma
from tests.mini_autograd.nn.test_modules import assert_same, both
from tests.mini_autograd.same_as_torch import same, script, usual_names

OPTIONS: dict[str, tuple[dict[str, Any], tuple[int, ...], tuple[int, ...] | None]] = {
    "usual": ({}, (5, 2, 3), None),
    "given states": ({}, (5, 2, 3), (1, 2, 4)),
    "no bias": ({"bias": False}, (5, 2, 3), None),
    "unbatched": ({"num_layers": 2}, (5, 3), (2, 4)),
    "batch first": ({"batch_first": True}, (2, 5, 3), (1, 2, 4)),
    "all": (
        {"num_layers": 2, "batch_first": True, "dropout": 0.3, "bidirectional": True},
        (2, 5, 3),
        (4, 2, 4),
    ),
}


def results(lib: Any, module: Any, shape: tuple[int, ...], state: tuple[int, ...] | None) -> dict[str, np.ndarray]:
    """Outputs, last states and all gradients for random cotangents."""
    generator = np.random.default_rng(4)
    leaves = [lib.tensor(generator.standard_normal(size), requires_grad=True) for size in (shape, state, state) if size]
    lib.manual_seed(11)
    output, (h, c) = module(leaves[0], tuple(leaves[1:]) if state else None)
    total = sum((x * lib.tensor(generator.standard_normal(tuple(x.shape)))).sum() for x in (output, h, c))
    parameters = dict(module.named_parameters())
    grads = lib.autograd.grad(total, [*leaves, *parameters.values()])
    values = [output, h, c, *grads]
    return {str(number): value.detach().numpy() for number, value in enumerate(values)}


@pytest.mark.parametrize("name", OPTIONS)
def test_lstm_is_pytorchs(name: str) -> None:
    options, shape, state = OPTIONS[name]
    made = both(lambda nn, lib: nn.LSTM(3, 4, **options))
    assert repr(made[0][1]) == repr(made[1][1])
    for training in (True, False):
        assert_same(*[results(lib, module.train(training), shape, state) for lib, module in made], rtol=1e-6)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_gradients_of_a_layer_agree_with_finite_differences(kind: str) -> None:
    ma.manual_seed(1)
    module = getattr(ma.nn, kind)(2, 3, 2, bidirectional=True).double()
    sequence = ma.tensor(np.random.default_rng(2).standard_normal((3, 2, 2)), requires_grad=True)
    assert ma.autograd.gradcheck(lambda x: module(x)[0], (sequence,))
    assert ma.autograd.gradgradcheck(lambda x: module(x)[0].sum(), (sequence,))
    assert ma.autograd.gradcheck(lambda x: module(x)[0], (sequence,), check_forward_ad=True)


ERRORS = """
nn.RNN(3, 4, nonlinearity="selu")
nn.LSTM(3, 4, dropout=2)
nn.LSTM(3, 4, dropout=0.5).dropout
nn.GRU(0, 4)
nn.GRU(3, 0)
nn.GRU(3, 4, 0)
nn.RNN(3, 4)(f)
nn.LSTM(3, 4)(f)
nn.GRU(3, 4)(f)
nn.RNN(3, 4)(lib.ones(2, 3, 4, 5))
nn.RNN(3, 4)(lib.ones(5, 2, 2))
nn.RNN(3, 4)(lib.ones(5, 2))
nn.RNN(3, 4)(lib.ones(0, 2, 3))
nn.RNN(3, 4)(lib.ones(5, 2, 3), lib.ones(1, 4))
nn.RNN(3, 4)(lib.ones(5, 3), lib.ones(1, 2, 4))
nn.GRU(3, 4)(lib.ones(5, 2, 3), lib.ones(1, 3, 4))
nn.GRU(3, 4)(lib.ones(5, 2, 3), lib.ones(2, 4))
nn.LSTM(3, 4)(lib.ones(5, 2, 3), (lib.ones(1, 2, 4), lib.ones(1, 2, 3)))
nn.LSTM(3, 4)(lib.ones(5, 2, 3), (lib.ones(1, 3, 4), lib.ones(1, 2, 4)))
nn.LSTM(3, 4)(lib.ones(5, 2, 3), (lib.ones(2, 4), lib.ones(1, 2, 4)))
nn.LSTM(3, 4)(lib.ones(5, 3), (lib.ones(1, 2, 4), lib.ones(1, 2, 4)))
"""


@pytest.mark.parametrize("text", ERRORS.strip().split("\n"))
def test_errors_are_pytorchs(text: str) -> None:
    same(script(text, usual_names))
