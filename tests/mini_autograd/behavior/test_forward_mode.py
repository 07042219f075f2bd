"""Forward mode through in-place changes: the tangent follows the memory, as in PyTorch.

A row holds the statements to run inside a level, with a dual number `d` and zeros `z`, and the tensors to look at
afterwards.
"""

from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import same

STEPS = {
    "arithmetic": ("d.mul_(2)", "d"),
    "by itself": ("y = d + 1; y.mul_(d); y += d; y /= 2; y **= 2", "d, y"),
    "functions": ("y = d.clone(); y.clamp_(1.5, 2.5); y.relu_(); y.exp_()", "y"),
    "an element": ("d[0] = 5.0", "d"),
    "a part, through a view": ("v = d[:2]; v.mul_(3)", "d, v"),
    "the whole, seen by a view": ("v = d[:2]; d.mul_(3)", "d, v"),
    "zeros that a view shows": ("v = z[1:]; z.copy_(d)", "z, v"),
    "parts of zeros": ("z[1:] = d[:2] * d[:2]; z[0] = d[1]", "z"),
    "elements picked by a list": ("z[[0, 2]] = d[:2]", "z"),
    "elements picked by a mask": ("d[d > 1] = 0.0", "d"),
    "a view of a view": ("y = d.clone(); y.view(3, 1)[1].mul_(d[0])", "y"),
    "a transposed matrix": ("y = lib.ones(2, 3, dtype=lib.float64); y.t()[1].copy_(d[:2])", "y, y.t(), y.t()[1]"),
    "zero_": ("d.zero_()", "d"),
    "fill_": ("y = d.clone(); y.fill_(d[0])", "y"),
    "masked_fill_": ("y = d.clone(); y.masked_fill_(d > 2, 7.0)", "y"),
    "into integers": ("y = lib.zeros(3, dtype=lib.int64); y.copy_(d)", "y"),
    "through detach": ("y = d.clone(); y.detach().mul_(2)", "y"),
    "the memory it was made from": ("d.mul_(3); d.exp_()", "p, d"),
    "what it shows without the tangent": ("q = d.clone(); u = forward_ad.unpack_dual(q).primal; q.mul_(2)", "u, q"),
    "an option": ("y = d.cumsum(0); y.cumsum_(0); y.sub_(1, alpha=2)", "y"),
}


@pytest.mark.parametrize("name", STEPS)
def test_tangent_after_a_change_in_place(name: str) -> None:
    steps, shown = STEPS[name]

    def program(lib: Any) -> Any:
        forward_ad = lib.autograd.forward_ad
        primal = lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64)
        with forward_ad.dual_level():
            d = forward_ad.make_dual(primal, lib.tensor([1.0, -2.0, 0.5], dtype=lib.float64))
            known = {"lib": lib, "forward_ad": forward_ad, "p": primal, "d": d, "z": lib.zeros(3, dtype=lib.float64)}
            exec(steps, known)
            return [tuple(forward_ad.unpack_dual(tensor)) for tensor in eval(f"({shown},)", known)]

    same(program)
