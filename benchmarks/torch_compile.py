"""`python -m benchmarks.torch_compile`: what `torch.compile` costs at the first call and gives at later ones.

A chain of sixteen elementwise operations and its backward pass, on a tiny array and on a large one, with one thread.
Lesson 14 and `docs/from_minitensor_to_pytorch.md` speak of it. It needs a C++ compiler.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

import torch

SIZES = {"tiny": 10, "large": 1_000_000}
ROUNDS = 5  # by turns; the quickest counts


def chain(x: torch.Tensor) -> torch.Tensor:
    """Eight times a product, a sum and a tanh, and the sum of all."""
    for _ in range(8):
        x = torch.tanh(x * 1.01 + 0.1)
    return x.sum()


def seconds(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, times: int = 1) -> float:
    """Of a call and its backward pass, on average."""
    began = time.perf_counter()
    for _ in range(times):
        function(x).backward()
    return (time.perf_counter() - began) / times


def main() -> None:
    if not shutil.which("c++"):
        sys.exit("torch.compile needs a C++ compiler, and there is no c++ on this machine. Install one, such as g++.")
    torch.set_num_threads(1)
    print(f"{'array':8}{'first call':>14}{'later':>14}{'not compiled':>14}{'times as fast':>15}{'calls to pay':>14}")
    for name, size in SIZES.items():
        x = torch.randn(size, requires_grad=True)
        compiled = torch.compile(chain)
        first = seconds(compiled, x)
        times = max(1, 20_000 // size)
        pairs = [(seconds(chain, x, times), seconds(compiled, x, times)) for _ in range(ROUNDS)]
        plain, later = (min(column) for column in zip(*pairs, strict=True))
        pays = f"{first / (plain - later):,.0f}" if later < plain else "never"
        figures = (f"{first:.2f} s", f"{1e6 * later:,.0f} us", f"{1e6 * plain:,.0f} us", f"{plain / later:.1f}", pays)
        print(f"{name:8}{figures[0]:>14}{figures[1]:>14}{figures[2]:>14}{figures[3]:>15}{figures[4]:>14}")


if __name__ == "__main__":
    main()
