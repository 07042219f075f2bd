"""Data, PyTorch's side of comparisons, and tables for lesson 11."""

from __future__ import annotations

import numpy as np
import torch


def noisy_wave(count, seed):
    """Points on a sine, with noise: two arrays of shape (count, 1)."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2, 2, size=(count, 1))
    return x, np.sin(3 * x) + 0.5 * generator.normal(size=(count, 1))


def wave_training():
    """Make a PyTorch network for a few noisy points. Returns the model, a function that trains it for one epoch, and a
    function that returns its loss on other points.
    """
    x, y = (torch.tensor(array) for array in noisy_wave(20, seed=2))
    other_x, other_y = (torch.tensor(array) for array in noisy_wave(200, seed=9))
    torch.manual_seed(0)
    layers = torch.nn.Linear(1, 40), torch.nn.ReLU(), torch.nn.Linear(40, 40), torch.nn.Tanh()
    model = torch.nn.Sequential(*layers, torch.nn.Linear(40, 1)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)

    def epoch():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    def other_loss():
        with torch.no_grad():
            return torch.nn.functional.mse_loss(model(other_x), other_y).item()

    return model, epoch, other_loss


def to_torch(model):
    """A copy of a model's state, with PyTorch tensors."""
    return {name: torch.tensor(tensor.data) for name, tensor in model.state_dict().items()}


def kept_megabytes(output):
    """The megabytes that the graph behind an output has saved; each array counts once."""
    sizes, seen = {}, set()
    waiting = [output.grad_fn] if output.requires_grad else []
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting += [source for source, _ in node.next_functions]
        for array in node.saved_tensors:
            owner = array if array.base is None else array.base
            sizes[id(owner)] = owner.nbytes
    return sum(sizes.values()) / 1e6


def try_update(layer, x, update):
    """Say whether a layer's weight is the same object after an update, in the same memory, and a leaf."""
    before = layer.weight, layer.weight.detach()
    layer(x).sum().backward()
    try:
        update(layer)
    except TypeError as error:
        return f"TypeError: {error}"
    same_memory = bool((layer.weight.detach().data == before[1].data).all())
    return f"same object {layer.weight is before[0]}, same memory {same_memory}, leaf {layer.weight.is_leaf}"


def print_epochs(history, batches):
    """Print a line per epoch. `history`: tuples (epoch, last loss, largest norm, steps shortened, held-out loss)."""
    print("epoch   last batch   largest norm   steps shortened   held out")
    for epoch, last, norm, shortened, held_out in history:
        print(f"{epoch:5d} {last:12.4f} {norm:14.3f} {shortened:11d} of {batches} {held_out:10.4f}")
