"""Samplers: the order in which samples are taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from mini_autograd.numerics.generator import Generator, default_generator


class Sampler:
    """An order in which to visit samples: something to iterate over, with a length."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Random order, every sample once; or `num_samples` draws with replacement."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self.num_samples = len(data_source) if num_samples is None else num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator or Generator().manual_seed(draw_seed(default_generator))
        size = len(self.data_source)
        if self.replacement:
            for start in range(0, self.num_samples, 32):  # PyTorch draws 32 at a time
                count = min(32, self.num_samples - start)
                yield from generator.integers(0, size, (32 if count == 32 else count,)).tolist()
            return
        for _ in range(self.num_samples // size):
            yield from generator.permutation(size).tolist()
        yield from generator.permutation(size).tolist()[: self.num_samples % size]

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """The indices of another sampler in lists of `batch_size`; the last may be shorter, unless `drop_last`."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        size = len(self.sampler)
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)


def draw_seed(generator: Generator) -> int:
    """A seed, drawn as PyTorch draws it."""
    return int(generator.integers(0, 1 << 63, ())[()])
