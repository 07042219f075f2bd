"""Recurrent layers: RNN, LSTM, GRU, which read whole sequences.

The one idea to know: a layer runs the step of its kind in a Python loop over time; what depends only on the inputs is
computed before the loop, for all times in one product.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from mini_autograd.graph.views import forget_source
from mini_autograd.nn import functional, init
from mini_autograd.nn.modules.module import Module
from mini_autograd.nn.parameter import empty_parameter
from mini_autograd.operations.pointwise.elementwise import relu
from mini_autograd.operations.pointwise.mathematical import tanh
from mini_autograd.operations.shapes.joining import cat, chunk, stack
from mini_autograd.tensors.creation import zeros
from mini_autograd.tensors.tensor import Tensor

States = tuple[Tensor, ...]
"""What one time step passes to the next: the hidden state h, and for an LSTM the cell state c."""

Step = Callable[[Tensor, Tensor, States], States]
"""(W_ih x + b_ih, W_hh h + b_hh, the old states) -> the new states, of which the first is the output."""


def tanh_step(inputs: Tensor, hidden: Tensor, states: States) -> States:
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh)."""
    return (tanh(inputs + hidden),)


def relu_step(inputs: Tensor, hidden: Tensor, states: States) -> States:
    """As `tanh_step`, with relu."""
    return (relu(inputs + hidden),)


def lstm_step(inputs: Tensor, hidden: Tensor, states: States) -> States:
    """With gates i, f, o and candidates g: c' = f c + i g, and h' = o tanh(c')."""
    i, f, g, o = chunk(inputs + hidden, 4, -1)
    c = f.sigmoid() * states[1] + i.sigmoid() * tanh(g)
    return o.sigmoid() * tanh(c), c


def gru_step(inputs: Tensor, hidden: Tensor, states: States) -> States:
    """With gates r and z and candidates n = tanh(input_n + r hidden_n): h' = (1 - z) n + z h."""
    (input_r, input_z, input_n), (hidden_r, hidden_z, hidden_n) = chunk(inputs, 3, -1), chunk(hidden, 3, -1)
    r, z = (input_r + hidden_r).sigmoid(), (input_z + hidden_z).sigmoid()
    n = tanh(input_n + r * hidden_n)
    return ((states[0] - n) * z + n,)


STEPS: dict[str, Step] = {"tanh": tanh_step, "relu": relu_step, "lstm": lstm_step, "gru": gru_step}
GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}


class Layers(Module):
    """A stack of `num_layers` layers, each of which also runs backward in time if `bidirectional`.

    PyTorch's `proj_size` and packed sequences are left out.
    """

    def __init__(
        self,
        kind: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_options(input_size, hidden_size, num_layers, dropout)
        super().__init__()
        self.kind = kind
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.num_layers, self.batch_first = num_layers, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        for layer in range(num_layers):
            size = hidden_size * len(self.directions) if layer else input_size
            for direction in self.directions:
                self.add_weights(f"_l{layer}{direction}", size, device=device, dtype=dtype)
        self.reset_parameters()

    @property
    def directions(self) -> tuple[str, ...]:
        """The suffixes of the parameters' names, one per direction."""
        return ("", "_reverse") if self.bidirectional else ("",)

    def add_weights(self, suffix: str, input_size: int, **options: Any) -> None:
        """Add the weights and biases of one step, with rows for all gates."""
        rows = GATES[self.kind] * self.hidden_size
        for name, columns in (("weight_ih", input_size), ("weight_hh", self.hidden_size)):
            self.register_parameter(name + suffix, empty_parameter(rows, columns, **options))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name + suffix, empty_parameter(rows, **options) if self.bias else None)

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly between -1 and 1 over the square root of hidden_size."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def weights(self, suffix: str) -> list[Any]:
        """Weights and biases of one step: W_ih, W_hh, b_ih, b_hh."""
        return [getattr(self, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def first_states(self, like: Tensor, *shape: int) -> States:
        """The initial states if none are given: zeros."""
        count = 2 if self.kind == "lstm" else 1
        return (zeros(*shape, self.hidden_size, dtype=like.dtype, device=like.device),) * count

    def flatten_parameters(self) -> None:
        """Does nothing: in PyTorch it speeds up GPUs."""

    def read(self, input: Tensor, states: Sequence[Tensor] | None) -> tuple[Tensor, States]:
        """The outputs of the last layer at all times, and the last states of all layers and directions.

        The input is (T, N, input_size), or (N, T, input_size) with batch_first, or (T, input_size). States are
        (layers * directions, N, hidden_size), without the N if the input has none.
        """
        name = type(self).__name__
        if input.ndim not in (2, 3):
            tensor = " tensor" if name == "RNN" else ""
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.ndim}D{tensor} instead")
        batched = input.ndim == 3
        check_rank(states, batched)
        if not batched:
            input = input.unsqueeze(1)
            states = None if states is None else [state.unsqueeze(1) for state in states]
        elif self.batch_first:
            input = input.transpose(0, 1)
        count = self.num_layers * len(self.directions)
        states = self.first_states(input, count, input.shape[1]) if states is None else tuple(states)
        self.check_shapes(input, states, count)
        output, last = self.read_all(input, states)
        if not batched:
            return output.squeeze(1), tuple([state.squeeze(1) for state in last])
        if self.batch_first:
            output = output.transpose(0, 1)
            forget_source(output)
        return output, last

    def read_all(self, x: Tensor, states: States) -> tuple[Tensor, States]:
        """The outputs and last states, as in `read`, for an input (T, N, input_size) and given states."""
        ends: list[States] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = functional.dropout(x, self.dropout, self.training)
            outputs = []
            for direction in self.directions:
                start = tuple([state[len(ends)] for state in states])
                output, end = self.read_one(x, start, f"_l{layer}{direction}")
                outputs.append(output)
                ends.append(end)
            x = cat(outputs, -1) if self.bidirectional else outputs[0]
        return x, tuple([stack(parts) for parts in zip(*ends, strict=True)])

    def read_one(self, x: Tensor, states: States, suffix: str) -> tuple[Tensor, States]:
        """Run one layer in one direction: its outputs in the order of time, and its last states."""
        weight_ih, weight_hh, bias_ih, bias_hh = self.weights(suffix)
        step, backwards = STEPS[self.kind], suffix.endswith("_reverse")
        times = functional.linear(x, weight_ih, bias_ih).unbind(0)
        outputs = []
        for inputs in reversed(times) if backwards else times:
            states = step(inputs, functional.linear(states[0], weight_hh, bias_hh), states)
            outputs.append(states[0])
        return stack(outputs[::-1] if backwards else outputs), states

    def check_shapes(self, input: Tensor, states: States, count: int) -> None:
        """Raise PyTorch's errors for an input (T, N, ...) of the wrong dtype or shape, or states of the wrong shape."""
        own = self.weight_ih_l0.dtype
        if input.dtype != own:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({own}). Convert input: input.to({own}), "
                f"or convert model: model.to({input.dtype})"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )
        if not len(input):
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        expected = (count, input.shape[1], self.hidden_size)
        for number, state in enumerate(states):
            if state.shape != expected:
                which = f"hidden[{number}]" if self.kind == "lstm" else "hidden"
                raise RuntimeError(f"Expected {which} size {expected}, got {list(state.shape)}")

    def extra_repr(self) -> str:
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        options = [f", {name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return f"{self.input_size}, {self.hidden_size}{''.join(options)}"


class RNN(Layers):
    """An Elman network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        options = (num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(nonlinearity, input_size, hidden_size, *options)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        output, (h,) = self.read(input, None if hx is None else (hx,))
        return output, h


class GRU(Layers):
    """Gated recurrent units."""

    def __init__(self, input_size: int, hidden_size: int, *args: Any, **options: Any) -> None:
        super().__init__("gru", input_size, hidden_size, *args, **options)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        output, (h,) = self.read(input, None if hx is None else (hx,))
        return output, h


class LSTM(Layers):
    """Long short-term memory. The states are a pair (h, c)."""

    def __init__(self, input_size: int, hidden_size: int, *args: Any, **options: Any) -> None:
        super().__init__("lstm", input_size, hidden_size, *args, **options)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, States]:
        return self.read(input, hx)


def check_options(input_size: int, hidden_size: int, num_layers: int, dropout: float) -> None:
    """Raise PyTorch's errors for invalid sizes or dropout, and give its warning for a dropout without effect."""
    if isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")


def check_rank(states: Sequence[Tensor] | None, batched: bool) -> None:
    """Raise PyTorch's error unless the states have a batch if, and only if, the input has one."""
    if states is None or all(state.ndim == 2 + batched for state in states):
        return
    kind, rank = ("batched 3-D", "3-D") if batched else ("unbatched 2-D", "2-D")
    if len(states) == 1:
        raise RuntimeError(f"For {kind} input, hx should also be {rank} but got {states[0].ndim}-D tensor")
    got = ", ".join(f"{state.ndim}-D" for state in states)
    raise RuntimeError(f"For {kind} input, hx and cx should also be {rank} but got ({got}) tensors")
