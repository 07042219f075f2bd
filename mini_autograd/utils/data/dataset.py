"""Data sets: samples by index."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from mini_autograd.numerics.generator import Generator, default_generator
from mini_autograd.tensors.tensor import Tensor


class Dataset:
    """Samples by index. A subclass gives `__getitem__` and, as a rule, `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")


class TensorDataset(Dataset):
    """Sample i is row i of each tensor."""

    def __init__(self, *tensors: Tensor) -> None:
        assert all(len(tensors[0]) == len(x) for x in tensors), "Size mismatch between tensors"
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(x[index] for x in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """Some samples of a data set."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[[self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """Cut a data set into random parts of those lengths, or of those fractions of the whole.

    Raises ValueError if they do not sum to the whole.
    """
    size = len(dataset)
    counts = [int(length) for length in lengths]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        counts = [math.floor(size * fraction) for fraction in lengths]
        for extra in range(size - sum(counts)):
            counts[extra % len(counts)] += 1
    if sum(counts) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = (generator or default_generator).permutation(size).tolist()
    return [
        Subset(dataset, order[end - count : end])
        for end, count in zip(itertools.accumulate(counts), counts, strict=True)
    ]
