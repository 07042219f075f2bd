"""Small networks, and functions that try something and print what happened, for lesson 07."""

from __future__ import annotations

import re
import threading
import warnings

import numpy as np
import torch


def leaf(value):
    """A PyTorch tensor in double precision that requires grad."""
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def layers(tensor, count, width):
    """Square weights for a network of tanh layers, as `tensor` makes them: MiniTensor or torch.tensor."""
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=(width, width)) / width**0.5 for _ in range(count)]
    return [tensor(array, requires_grad=True) for array in arrays]


def saved_kibibytes(nodes):
    """The kibibytes of the arrays that nodes have saved; each array counts once."""
    saved = {id(array): array.nbytes for node in nodes for array in node.saved_tensors}
    return sum(saved.values()) / 1024


def set_or_none(*tensors):
    """For each tensor, whether its `.grad` is "None" or "set"."""
    return ["None" if tensor.grad is None else "set" for tensor in tensors]


def said_by(error):
    """The first two sentences of an error message, up to a colon: what happened, and what to do."""
    return " ".join(re.split(r"(?<=[.])\s", str(error).partition(": ")[0])[:2])


def attempt(text, action):
    """Print what an action returns, or the RuntimeError that it raises. An exercise that is empty still raises."""
    try:
        print(f"{text:32s} ok: {action()}")
    except NotImplementedError:
        raise
    except RuntimeError as error:
        print(f"{text:32s} RuntimeError: {said_by(error)}")


def gradient_of(output, tensor):
    """The gradient of the sum of an output with respect to a tensor, as a list."""
    tensor.grad = None
    output.sum().backward()
    return tensor.grad.data.tolist()


def in_another_thread(function):
    """What a function returns if a second thread calls it."""
    answers = []
    other = threading.Thread(target=lambda: answers.append(function()))
    other.start()
    other.join()
    return answers[0]


def verdict(way):
    """Say whether PyTorch finds the gradient of `way(x) + x` at 2. It is 13, since `way` should be the cube."""
    x = torch.tensor(2.0, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            (way(x) + x).backward()
        except RuntimeError as error:
            return f"loud: {said_by(error)}"
    quiet = "lost, with a warning" if caught else "quiet"
    return f"dy/dx = {x.grad.item():4.0f}   {'right' if x.grad.item() == 13 else quiet}"
