"""The layers of a transformer, with all their masks and options, against PyTorch's.

A row is a script of `lib`, nn, F and the tensors below; it gives the same under PyTorch: values, dtype, shape, or error
type and text. Weights come from the same seed.
"""

from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import lines, same, script

TRANSFORMERS = """
e = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0); e(x)
e = Encoder(4, 2, 6, **first, norm_first=True, activation="gelu"); e(x)
e = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, activation=lib.tanh, bias=False, layer_norm_eps=0.1); e(x)
e = Encoder(4, 2, 6, **first); e(x, hide(5) != 0, padding)
e = Encoder(4, 2, 6, **first); e(x, hide(5), is_causal=True)
e = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0); e(x, is_causal=True)
e = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True); lib.manual_seed(1); e(x).shape, e
e = nn.TransformerEncoderLayer(4, 2, 6); sorted(e.state_dict())
nn.TransformerEncoderLayer(4, 2, activation="tanh")
"""


def names(lib: Any) -> dict[str, Any]:
    def numbers(*shape: int) -> Any:
        return lib.linspace(-2, 3, lib.zeros(shape).numel(), dtype=lib.float64).reshape(shape).sin()

    lib.manual_seed(0)
    return {
        "x": numbers(2, 5, 4).requires_grad_(),
        "first": {"dropout": 0.0, "batch_first": True},
        "Encoder": lib.nn.TransformerEncoderLayer,
        "padding": lib.tensor([[False, False, False, False, True], [False, False, True, True, True]]),
        "hide": lambda n: lib.full((n, n), -lib.inf).double().triu(1),
    }


@pytest.mark.parametrize("row", lines(TRANSFORMERS))
def test_transformers(row: str) -> None:
    program = script(row, names)

    def in_float64(lib: Any) -> Any:
        lib.set_default_dtype(lib.float64)
        try:
            result = program(lib)
        finally:
            lib.set_default_dtype(lib.float32)
        return texts_of_modules(result, lib)

    same(in_float64)


def texts_of_modules(result: Any, lib: Any) -> Any:
    if isinstance(result, tuple | list):
        return [texts_of_modules(part, lib) for part in result]
    return repr(result) if isinstance(result, lib.nn.Module) else result
