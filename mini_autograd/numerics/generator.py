"""Random numbers: PyTorch's generator on a CPU, so that the same seed gives the same numbers.

The one idea to know: PyTorch draws 32-bit words from the Mersenne Twister, which NumPy has too; this file turns them
into floats, normal numbers and permutations as PyTorch does. The results are equal to the last bit or two (PyTorch's
cosine is not NumPy's).
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from mini_autograd.numerics import arrays

WORD, LONG = 1 << 32, 1 << 64
BLOCK = 16


class Generator:
    """A stream of random numbers with its own seed, like `torch.Generator`."""

    def __init__(self, device: Any = "cpu") -> None:
        self._seed = 67280421310721  # PyTorch's default
        self._stream: Any = None
        self._next_normal: float | None = None

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from `seed`."""
        self._seed, self._stream, self._next_normal = int(seed), None, None
        return self

    def seed(self) -> int:
        """Restart the stream from an unpredictable seed, and return the seed."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little") >> 1)._seed

    def initial_seed(self) -> int:
        """The seed from which the stream started."""
        return self._seed

    def get_state(self) -> Any:
        """The position of the stream, for `set_state`."""
        return self._seed, self._words().get_state(), self._next_normal

    def set_state(self, state: Any) -> Generator:
        """Go back to a position that `get_state` returned."""
        self._seed, position, self._next_normal = state
        self._words().set_state(position)
        return self

    def _words(self) -> Any:
        if self._stream is None:
            self._stream = np.random.RandomState(self._seed % WORD)
        return self._stream

    def words(self, count: int) -> np.ndarray:
        """The next 32-bit numbers of the stream."""
        return self._words().randint(0, WORD, count, dtype=np.uint32)

    def long_words(self, count: int) -> np.ndarray:
        """64-bit numbers, each made of the next two words."""
        pairs = self.words(2 * count).astype(np.uint64)
        return pairs[::2] << np.uint64(32) | pairs[1::2]

    def uniform(self, shape: tuple[int, ...], dtype: np.dtype = arrays.float32) -> np.ndarray:
        """Numbers in [0, 1): the last 53 bits of 64 for float64, the last 24 of 32 for float32."""
        count = math.prod(shape)
        if dtype == arrays.float64:
            return ((self.long_words(count) & np.uint64((1 << 53) - 1)) * 2.0**-53).reshape(shape)
        return ((self.words(count) & np.uint32((1 << 24) - 1)) * 2.0**-24).astype(dtype).reshape(shape)

    def normal(self, shape: tuple[int, ...], dtype: np.dtype = arrays.float32) -> np.ndarray:
        """Normal numbers of mean 0 and variance 1, by Box and Muller's method.

        As in PyTorch, 16 or more numbers are drawn in blocks of 16; if the last block is not full, the last 16 numbers
        are drawn again. Fewer numbers are drawn one by one, in pairs.
        """
        count = math.prod(shape)
        if count < BLOCK:
            return np.array([self._one_normal() for _ in range(count)], dtype).reshape(shape)
        numbers = self.uniform((count,), dtype)
        full = count - count % BLOCK
        numbers[:full] = normal_blocks(numbers[:full])
        if full < count:
            numbers[-BLOCK:] = normal_blocks(self.uniform((BLOCK,), dtype))
        return numbers.reshape(shape)

    def _one_normal(self) -> float:
        if self._next_normal is not None:
            number, self._next_normal = self._next_normal, None
            return number
        first, second = self.uniform((2,), arrays.float64).tolist()
        radius, angle = math.sqrt(-2.0 * math.log1p(-second)), 2.0 * math.pi * first
        self._next_normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
        """Whole numbers from `low` to `high - 1`."""
        count, span = math.prod(shape), high - low
        drawn = self.long_words(count) if span >= 1 << 28 else self.words(count)
        return ((drawn.astype(np.uint64) % np.uint64(span)).astype(np.int64) + low).reshape(shape)

    def permutation(self, count: int) -> np.ndarray:
        """The numbers from 0 to `count - 1` in random order: each is swapped with itself or a later one."""
        order = list(range(count))
        steps = self.words(max(count - 1, 0)).tolist()
        for place, word in enumerate(steps):
            other = place + word % (count - place)
            order[place], order[other] = order[other], order[place]
        return np.array(order, np.int64)


def normal_blocks(numbers: np.ndarray) -> np.ndarray:
    """Blocks of 16 uniform numbers as normal ones: 8 radii and 8 angles make 8 cosines and 8 sines."""
    radii, angles = numbers.reshape(-1, 2, BLOCK // 2).swapaxes(0, 1)
    radius = np.sqrt(-2.0 * np.log(1 - radii))
    angle = angles * numbers.dtype.type(2.0 * math.pi)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(numbers.shape)


default_generator = Generator()
