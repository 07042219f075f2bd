"""Transformers, with all their masks and options, and images in other sizes, beside PyTorch's.

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
d = Decoder(4, 2, 6, **first); d(y, x)
d = Decoder(4, 2, 6, **first, norm_first=True); d(y, x, hide(3), None, None, padding)
d = nn.TransformerDecoderLayer(4, 2, 6); d
e = Encoder(4, 2, 6, **first); s = nn.TransformerEncoder(e, 2, nn.LayerNorm(4)); s(x, mask=hide(5))
d = Decoder(4, 2, 6, **first); s = nn.TransformerDecoder(d, 2); s(y, x, tgt_mask=hide(3))
t = nn.Transformer(4, 2, 1, 2, 6, **first); t(x, y, tgt_mask=hide(3))
t = nn.Transformer(4, 2, 1, 1, 6, **first); [t(x, y, src_key_padding_mask=padding), t(x, y, hide(5))]
t = nn.Transformer(4, 2, 1, 1, 6, **first); t(x, y).sum().backward(); x.grad, t.encoder.layers[0].linear1.weight.grad
t = nn.Transformer(4, 2, 1, 1, 6, **first); [repr(t), len(list(t.parameters()))]
t = nn.Transformer(4, 2, 1, 1, 6, **first); t(x[..., :3], y)
nn.Transformer.generate_square_subsequent_mask(3)
"""

SIZES = """
F.interpolate(image, size=(6, 2))
F.interpolate(image, 5)
F.interpolate(image, scale_factor=2)
F.interpolate(image, scale_factor=(0.5, 1.7))
F.interpolate(image, scale_factor=1.7, recompute_scale_factor=True)
F.interpolate(image, size=(5, 7), mode="nearest-exact")
F.interpolate(image, size=(6, 7), mode="bilinear")
F.interpolate(image, size=(2, 2), mode="bilinear")
F.interpolate(image, size=(6, 7), mode="bilinear", align_corners=True)
F.interpolate(image, size=(1, 1), mode="bilinear", align_corners=True)
F.interpolate(image, scale_factor=2.5, mode="bilinear", align_corners=False)
F.interpolate(image, scale_factor=2.5, mode="bilinear", recompute_scale_factor=True)
F.interpolate(image.float(), scale_factor=3, mode="bilinear")
F.interpolate(image[0], size=7, mode="linear")
F.interpolate(image[0], scale_factor=2)
F.interpolate(lib.arange(8.0).reshape(1, 1, 2, 2, 2), scale_factor=2)
z = F.interpolate(image, scale_factor=2, mode="bilinear"); (z * z).sum().backward(); image.grad
z = F.interpolate(image, size=(3, 5)); (z * z).sum().backward(); image.grad
lib.autograd.gradgradcheck(lambda image: F.interpolate(image, 5, mode="bilinear") ** 2, image)
F.interpolate(image, size=3, scale_factor=2)
F.interpolate(image)
F.interpolate(image, size=3, align_corners=True)
up = nn.Upsample(scale_factor=2); up(image), repr(up)
up = nn.Upsample(size=(3, 3), mode="bilinear", align_corners=True); up(image), repr(up)
repr(nn.Upsample(scale_factor=(1, 2)))
"""


def names(lib: Any) -> dict[str, Any]:
    def numbers(*shape: int) -> Any:
        return lib.linspace(-2, 3, lib.zeros(shape).numel(), dtype=lib.float64).reshape(shape).sin()

    lib.manual_seed(0)
    return {
        "x": numbers(2, 5, 4).requires_grad_(),
        "y": numbers(2, 3, 4),
        "first": {"dropout": 0.0, "batch_first": True},
        "Encoder": lib.nn.TransformerEncoderLayer,
        "Decoder": lib.nn.TransformerDecoderLayer,
        "image": numbers(1, 2, 4, 3).requires_grad_(),
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


@pytest.mark.parametrize("row", lines(SIZES))
def test_sizes_of_images(row: str) -> None:
    same(script(row, names))
