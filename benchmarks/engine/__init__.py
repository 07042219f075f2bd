"""How fast mini_autograd is beside PyTorch, HIPS autograd, tinygrad and micrograd: `python -m benchmarks.engine`.

Seconds on a shared machine say little, so every figure is a ratio to PyTorch in the same run: each library has a worker
process of its own, the workers take turns, and a figure is the median of the ratios of the rounds. With one thread it
is a ratio of CPU times, with two threads a ratio of wall times.
"""
