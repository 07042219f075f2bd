"""`torch.nn.utils.rnn`: sequences of different lengths as one tensor. Packed sequences are left out."""

from __future__ import annotations

from collections.abc import Sequence

from mini_autograd.operations.shapes.joining import cat, stack
from mini_autograd.tensors.creation import full
from mini_autograd.tensors.tensor import Tensor


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences (T_i, *) as one tensor (T, N, *), or (N, T, *) if `batch_first`, with T the longest T_i.

    Shorter ones are padded with `padding_value` at the end or, with `padding_side="left"`, at the start. Raises
    RuntimeError if there are no sequences, if they differ in more than length, or for an unknown side.
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if len(sequences) == 0:
        raise RuntimeError("received an empty list of sequences")
    for sequence in sequences:
        if not isinstance(sequence, Tensor):
            raise TypeError(f"expected Tensor as element 0 in argument 0, but got {type(sequence).__name__}")
    longest = max(len(sequence) for sequence in sequences)
    padded = [lengthened(sequence, longest, padding_value, padding_side) for sequence in sequences]
    return stack(padded, 0 if batch_first else 1)


def lengthened(sequence: Tensor, length: int, value: float, side: str) -> Tensor:
    """A sequence padded to a length."""
    missing = (length - len(sequence), *sequence.shape[1:])
    filling = full(missing, value, dtype=sequence.dtype, device=sequence.device)
    return cat([filling, sequence] if side == "left" else [sequence, filling])
