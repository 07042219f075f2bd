"""Data sets and loaders, as `torch.utils.data`.

The one idea to know: a loader asks a sampler for indices, a data set for the samples at these, and a collate function
to make a batch of them. With the same seed the order is PyTorch's. There are no worker processes: options for these are
accepted and ignored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mini_autograd.numerics.generator import Generator, default_generator
from mini_autograd.operations.shapes.joining import stack
from mini_autograd.tensors.creation import tensor
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


class DataLoader:
    """Batches of a data set. With `batch_size=None` single samples."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        self.dataset, self.batch_size, self.drop_last, self.generator = dataset, batch_size, drop_last, generator
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)

    def __iter__(self) -> Iterator[Any]:
        draw_seed(self.generator or default_generator)  # for worker processes in PyTorch: here to stay in step with it
        source = self.sampler if self.batch_sampler is None else self.batch_sampler
        return map(self._fetch, source)

    def _fetch(self, index: Any) -> Any:
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[index])
        return self.collate_fn([self.dataset[i] for i in index])

    def __len__(self) -> int:
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


def draw_seed(generator: Generator) -> int:
    """A seed, drawn as PyTorch draws it."""
    return int(generator.integers(0, 1 << 63, ())[()])


def default_convert(data: Any) -> Any:
    """NumPy arrays as tensors; anything else as it is."""
    return tensor(data) if isinstance(data, np.ndarray | np.generic) else data


def default_collate(batch: list[Any]) -> Any:
    """A batch of samples: tensors, arrays and numbers are stacked, in tuples and dicts part by part.

    Raises RuntimeError if samples differ in length or shape, and TypeError for samples of another kind.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch)
    if isinstance(first, np.ndarray | np.generic):
        return stack([tensor(sample) for sample in batch])
    if isinstance(first, float):
        return tensor(np.array(batch, np.float64))
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(list(part)) for part in zip(*batch, strict=True)]
        return parts if isinstance(first, tuple | list) else type(first)(parts)  # type: ignore[call-arg]
    raise TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}"
    )
