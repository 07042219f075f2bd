"""`python -m benchmarks.torch_compile`: what `torch.compile` costs at the first call and gives at later ones.

Two chains of 24 elementwise operations with their backward pass, on a tiny array and on a large one, with one thread:
with `relu` memory takes the time, with `tanh` arithmetic does. Lesson 14 and `docs/from_minitensor_to_pytorch.md` give
its ratios. It needs a C++ compiler.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import time
import warnings
from collections.abc import Callable

import torch

SIZES = {"tiny": 10, "large": 1_000_000}
ROUNDS = 5  # in alternation; the quickest counts


Chain = Callable[[torch.Tensor], torch.Tensor]


def chain(function: Chain) -> Chain:
    """Eight times a product, a sum and the function, and the sum of all."""

    def run(x: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            x = function(x * 1.01 + 0.1)
        return x.sum()

    return run


CHAINS = {"relu": chain(torch.relu), "tanh": chain(torch.tanh)}


def seconds(function: Chain, x: torch.Tensor, times: int) -> float:
    """The seconds of a call and its backward pass, on average. Only this thread's time counts, not other programs'."""
    began = time.thread_time()
    for _ in range(times):
        function(x).backward()
    return (time.thread_time() - began) / times


def main() -> None:
    if not shutil.which("c++"):
        sys.exit("torch.compile needs a C++ compiler, and there is no c++ on this machine. Install one, such as g++.")
    torch.set_num_threads(1)
    torch.compiler.config.force_disable_caches = True  # or a second run would find the first one's programs
    warnings.filterwarnings("ignore", message="dynamo_pgo")  # it says once per program that they are disabled
    titles = ("first call", "later", "not compiled", "times as fast", "calls to pay")
    print(f"{'chain':16}" + "".join(f"{title:>15}" for title in titles))
    for (kind, function), (name, size) in itertools.product(CHAINS.items(), SIZES.items()):
        torch.compiler.reset()
        x = torch.randn(size, requires_grad=True)
        compiled = torch.compile(function)
        began = time.perf_counter()  # the C++ compiler is another process
        compiled(x).backward()
        first = time.perf_counter() - began
        times = max(1, 20_000 // size)
        pairs = [(seconds(function, x, times), seconds(compiled, x, times)) for _ in range(ROUNDS)]
        plain, later = (min(column) for column in zip(*pairs, strict=True))
        pays = f"{first / (plain - later):,.0f}" if later < plain else "never"
        figures = (f"{first:.1f} s", f"{1e6 * later:,.0f} us", f"{1e6 * plain:,.0f} us", f"{plain / later:.1f}", pays)
        print(f"{kind + ', ' + name:16}" + "".join(f"{figure:>15}" for figure in figures))


if __name__ == "__main__":
    main()
