"""A diary to train on, PyTorch's side of comparisons, and pictures for lesson 16."""

from __future__ import annotations

import numpy as np
import torch

NAMES = ["ada", "ben", "eva", "ida", "leo", "max", "tim"]
WEATHER = {"coat": "rain", "sled": "snow", "kite": "wind", "hat": "heat"}


def diary(lines, seed):
    """A text in which only the name and the thing of each line are random."""
    generator = np.random.default_rng(seed)
    text = ""
    for _ in range(lines):
        thing = generator.choice(list(WEATHER))
        text += f"{generator.choice(NAMES)} takes a {thing} in {WEATHER[thing]}.\n"
    return text


def coder(letters):
    """Two functions: from a text to an array of numbers, each the place of a letter in `letters`, and back."""
    number_of = {letter: number for number, letter in enumerate(letters)}

    def encode(string):
        return np.array([number_of[letter] for letter in string])

    def decode(numbers):
        return "".join(letters[number] for number in numbers)

    return encode, decode


def counts_of(numbers):
    """How often each number occurs, and a table of how often one follows another."""
    kinds = numbers.max() + 1
    pairs = np.zeros((kinds, kinds))
    np.add.at(pairs, (numbers[:-1], numbers[1:]), 1.0)
    return np.bincount(numbers), pairs


def line_length(numbers, line_end):
    """The mean number of letters per line."""
    return len(numbers) / (numbers == line_end).sum()


def print_guesses(known, unknown, line_end):
    """Print the share of right guesses in an unknown text, for three ways to guess without a network."""
    counts, pairs = counts_of(known)
    last, following = unknown[:-1], unknown[1:]
    two_misses = (1 - 1 / len(NAMES)) + (1 - 1 / len(WEATHER))
    shares = {
        "the most frequent letter": (following == counts.argmax()).mean(),
        "what follows the last letter": (following == pairs.argmax(axis=1)[last]).mean(),
        "a reader who knows the rules": 1 - two_misses / line_length(unknown, line_end),
    }
    for name, share in shares.items():
        print(f"{name:30s} {share:.1%}")


def baseline_losses(known, unknown, line_end):
    """The cross entropy per letter of the three ways to guess in `print_guesses`."""
    counts, pairs = counts_of(known)
    shares = counts[counts > 0] / counts.sum()
    chances = (pairs + 1e-9) / (pairs + 1e-9).sum(axis=1, keepdims=True)
    return {
        "one guess for all": -(shares * np.log(shares)).sum(),
        "pairs of letters": -np.log(chances[unknown[:-1], unknown[1:]]).mean(),
        "the rules": (np.log(len(NAMES)) + np.log(len(WEATHER))) / line_length(unknown, line_end),
    }


def batches(known, length, count, seed=1, rows=16):
    """Yield pairs (pieces, the pieces shifted by one letter) from random places of `known`, each (rows, length)."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        starts = generator.integers(0, len(known) - length, size=(rows, 1))
        yield known[starts + np.arange(length)], known[starts + np.arange(1, length + 1)]


def last_guesses(predict, unknown, length):
    """For each piece of an unknown text, the guess for the letter after it, and that letter."""
    starts = np.arange(len(unknown) - length)[:, None]
    return predict(unknown[starts + np.arange(length)])[:, -1].argmax(axis=-1), unknown[length:]


def places_after(words, text, length):
    """The positions in a text right after some words, numbered as the guesses of `last_guesses` are."""
    return np.array([i for i in range(length, len(text)) if text[:i].endswith(words)]) - length


def compare_embeddings(mine):
    """The largest difference between the gradient of an embedding of 4 rows of 2 numbers and PyTorch's."""
    theirs = torch.nn.Embedding(4, 2).double()
    theirs.load_state_dict({"weight": torch.tensor(mine.weight.data)})
    ids, cotangent = np.array([[2, 0, 2], [3, 2, 0]]), np.random.default_rng(3).normal(size=(2, 3, 2))
    mine(ids).backward(cotangent)
    theirs(torch.tensor(ids)).backward(torch.tensor(cotangent))
    return np.abs(mine.weight.grad.data - theirs.weight.grad.numpy()).max()


def compare_attention(attention, MiniTensor):
    """Print how far the output and the gradients of attention are from PyTorch's, at most."""
    arrays = np.random.default_rng(4).normal(size=(3, 2, 3, 6, 4))
    leaves = [MiniTensor(array, requires_grad=True) for array in arrays]
    leaves_torch = [torch.tensor(array, requires_grad=True) for array in arrays]
    output, _ = attention(*leaves)
    output_torch = torch.nn.functional.scaled_dot_product_attention(*leaves_torch, is_causal=True)
    cotangent = np.random.default_rng(5).normal(size=output.shape)
    output.backward(cotangent)
    output_torch.backward(torch.tensor(cotangent))
    print(f"output      {np.abs(output.data - output_torch.detach().numpy()).max():.1e}")
    for name, leaf, leaf_torch in zip("qkv", leaves, leaves_torch, strict=True):
        print(f"gradient {name}  {np.abs(leaf.grad.data - leaf_torch.grad.numpy()).max():.1e}")


def compare_heads(mine, x):
    """Print the largest differences between a self-attention and PyTorch's, for an x of shape (rows, length, 8)."""
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    names = {"in_proj_weight": mine.qkv.weight, "in_proj_bias": mine.qkv.bias}
    names |= {"out_proj.weight": mine.project.weight, "out_proj.bias": mine.project.bias}
    theirs.load_state_dict({name: torch.tensor(tensor.data) for name, tensor in names.items()})
    forbidden = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
    inputs = [torch.tensor(x)] * 3
    output_torch, pattern_torch = theirs(*inputs, attn_mask=forbidden, average_attn_weights=False)
    print(f"difference of the outputs  {np.abs(mine(x).data - output_torch.detach().numpy()).max():.1e}")
    print(f"difference of the patterns {np.abs(mine.pattern - pattern_torch.detach().numpy()).max():.1e}")


def nodes_and_paths(order, end):
    """How many nodes a graph has, and how many paths lead from its first node to `end`. `order` is topological."""
    paths_to = dict.fromkeys(order, 0)
    paths_to[order[0]] = 1
    for node in order:  # each node comes before the nodes of its inputs
        for source, _ in node.next_functions:
            if source is not None:
                paths_to[source] += paths_to[node]
    return len(order), paths_to[end]


def twin(library, vocabulary, context, width, heads, depth, look="back"):
    """The lesson's model in PyTorch, or in another library that has PyTorch's names.

    look: "back"; in the optional part also "everywhere" and "nowhere"
    """
    nn, attend = library.nn, library.nn.functional.scaled_dot_product_attention

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            rows, length, _ = x.shape
            parts = self.qkv(x).reshape(rows, length, 3, heads, width // heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            found = v if look == "nowhere" else attend(q, k, v, is_causal=look == "back")
            return self.project(found.transpose(1, 2).reshape(rows, length, width))

    class TwinBlock(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(width), Attention()
            self.norm2, gelu = nn.LayerNorm(width), nn.GELU(approximate="tanh")
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), gelu, nn.Linear(4 * width, width))

        def forward(self, x):
            middle = x + self.attention(self.norm1(x))
            return middle + self.mlp(self.norm2(middle))

    class Twin(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*[TwinBlock() for _ in range(depth)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

        def forward(self, ids):
            x = self.token(ids) + self.place.weight[: ids.shape[1]]
            return self.head(self.norm(self.blocks(x)))

    return Twin().double()


def copied(model, library):
    """A copy of the weights of a model, as tensors of another library."""
    return {name: library.tensor(tensor.data.copy()) for name, tensor in model.state_dict().items()}


def torch_step(network, optimizer, x, y):
    """`train_step` in PyTorch, for the cross entropy of the next letter."""
    optimizer.zero_grad()
    scores = network(torch.tensor(x))
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), torch.tensor(y).flatten())
    loss.backward()
    optimizer.step()
    return loss.item()


def pyplot():
    """Matplotlib's pyplot in the style of this lesson; only what draws needs it."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"figure.figsize": (7, 4), "figure.facecolor": "white", "font.size": 11})
    plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.3})
    return plt


def plot_losses(losses, losses_torch, levels):
    """Plot two curves of losses, and dotted lines at the `levels`: name -> loss."""
    plt = pyplot()
    _, axis = plt.subplots(layout="constrained")
    axis.plot(losses, linewidth=4, alpha=0.5, label="your engine")
    axis.plot(losses_torch, "--", linewidth=1.5, label="PyTorch")
    for (name, level), color in zip(levels.items(), ("C3", "C4", "black"), strict=True):
        axis.axhline(level, color=color, linewidth=1, linestyle=":", label=f"{name}, {level:.2f}")
    axis.set(xlabel="step", ylabel="cross entropy per letter", ylim=(0, None))
    axis.legend()
    plt.show()


def plot_patterns(patterns, line):
    """Plot the weights of each head in two blocks for one line. `patterns`: one array (rows, heads, ...) per block."""
    plt = pyplot()
    shown = [letter.replace("\n", "⏎").replace(" ", "_") for letter in line]
    _, axes = plt.subplots(2, 2, figsize=(8, 8), sharex=True, sharey=True, layout="constrained")
    for axis, (block, head) in zip(axes.flat, np.ndindex(2, 2), strict=True):
        axis.imshow(patterns[block][0, head], cmap="Blues", vmin=0, vmax=1)
        axis.set(title=f"block {block}, head {head}", xticks=range(len(line)), yticks=range(len(line)))
        axis.set_xticklabels(shown, fontsize=8)
        axis.set_yticklabels(shown, fontsize=8)
        axis.grid(False)
    plt.show()
