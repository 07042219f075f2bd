# %% [markdown]
# # A Transformer on your own engine
#
# *Core: about 95 minutes, and some time for training; before section 4 is a good place for a break. Further: about 60 minutes, optional. You build attention and a small Transformer, and train it alongside PyTorch. You need lessons 11 and 14.*
#
# Here is a diary. Each line has a name, a thing, and the weather. The name and the thing are random. The weather is not: it follows from the thing, so a reader who has seen the thing knows the weather.

# %% tags=["demo"]
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for NumPy, which is not loaded yet: see *Further*

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import math

import numpy as np

# %% tags=["demo"]
import time
import tracemalloc

import mini_autograd
from mini_autograd.widgets import explore

import torch
from helpers_16 import (
    baseline_losses,
    batches,
    coder,
    compare_attention,
    compare_embeddings,
    compare_heads,
    copied,
    diary,
    last_guesses,
    nodes_and_paths,
    places_after,
    plot_losses,
    plot_patterns,
    print_guesses,
    torch_step,
    twin,
)

torch.set_num_threads(1)  # steadier times on a busy machine

# %% tags=["demo"]
mini_autograd.allocator.keep_freed_memory()  # a training step reuses what the last one freed
text, held_out = diary(120, seed=0), diary(25, seed=9)
letters = sorted(set(text))
print(text[: text.index("\n", 80)])
print(f"\n{len(text)} letters, {len(letters)} different ones: {''.join(letters)!r}")

# %% [markdown]
# The task: guess the next letter. You can guess without a network. You can always guess the most frequent letter. A table of pairs tells you which letter follows the *last* one most often. And a reader who knows the rules can be wrong in only two places per line. **Predict** the share of right guesses for each of the three on a new diary.

# %% tags=["demo"]
predict("What share, in percent, does the table of pairs guess right?")
encode, decode = coder(letters)  # from a text to an array of numbers, and back
known, unknown, line_end = encode(text), encode(held_out), encode("\n")[0]
print_guesses(known, unknown, line_end)

# %% [markdown]
# To get from the second line to the third, you must remember more than one letter: how a word continues, where in the line you are, and which thing came before. A small Transformer learns this in a few seconds, on **your** engine. You
#
# 1. build what is still missing: the lookup of an embedding, layer norm, and causal self-attention;
# 2. put them together, from the heads of one layer up to a model;
# 3. train it alongside PyTorch from the same weights, and compare the two curves.
#
# In the optional part at the end, your model writes by drawing random letters, and you measure where time and memory go.
#
# If something breaks your engine, run the next cell again, which restores the engine, and then every cell below it.

# %%
start_lesson()

# %% [markdown] items="gap:repeated_indices"
# ## 1. Letters become rows
#
# A network needs numbers that training can change a little, and a letter is not such a number. So each letter gets a row of a table, and training changes the row. An *embedding* looks up rows. A batch contains most letters many times. **Predict** two gradients of a row that is looked up three times: the one from your engine, and the one from the tempting `gradient[ids] += ...`.

# %%
predict(
    "What does the tempting line give for a row that is looked up three times?",
    "the sum of the three gradients",
    "the last of the three",
    "an error",
)
table = MiniTensor(np.zeros((4, 2)), requires_grad=True)
ids = np.array([2, 0, 2, 2])
arriving = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])
table[ids].backward(arriving)
print("yours:   ", table.grad.data.tolist())
tempting = np.zeros((4, 2))
tempting[ids] += arriving
print("tempting:", tempting.tolist())

# %% [markdown] items="gap:repeated_indices"
# The tempting line keeps the last of the three. You know this from lesson 04: looking up a row is a *gather*, and its gradient is a *scatter-add*.

# %% [markdown]
# ### Exercise 1: Lookup
#
# Write `Lookup`, an operation on one MiniTensor. `np.add.at(array, ids, values)` adds every value at its position, even if a position occurs several times.

# %% [markdown] tags=["hint"] exercise="embedding"
# `Lookup` gets `ids` as an option: `Lookup.apply(table, ids=ids)`. In `forward`, keep on `ctx` what `backward` needs: the ids and the shape of the table.

# %% [markdown] tags=["hint"] exercise="embedding"
# The gradient starts as zeros in the shape of the table: `gradient = np.zeros(ctx.shape)`. Then use `np.add.at(gradient, ctx.ids, grad)`.

# %% solution="embedding" tags=["engine"]
class Lookup(Function):
    """Rows of a table.

    forward: table of shape (rows, width), ids an array of integers of any shape, even an empty
        one; the result has the shape (*ids.shape, width)
    backward: grad of that shape; returns an array of the shape of the table. A row that was looked
        up several times gets the sum, one that was not gets zeros.

    >>> table = MiniTensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> rows = Lookup.apply(table, ids=np.array([1, 1]))
    >>> rows.backward(np.array([[1.0, 10.0], [2.0, 20.0]]))
    >>> rows.data.tolist(), table.grad.data.tolist()
    ([[3.0, 4.0], [3.0, 4.0]], [[0.0, 0.0], [3.0, 30.0]])
    """

    @staticmethod
    def forward(ctx, table, ids):
        ### BEGIN SOLUTION
        ctx.ids, ctx.shape = ids, table.shape
        return table[ids]
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        gradient = np.zeros(ctx.shape)
        np.add.at(gradient, ctx.ids, grad)
        return gradient
        ### END SOLUTION

# %% check="embedding"

# %% [markdown]
# ### The layer around it (just run it)
#
# Run this cell. You don't need to read it. The layer around `Lookup` checks its numbers first. NumPy reads the index -1 as *the last row*. A data set that marks missing letters with -1 would train the last letter's row, without an error. PyTorch refuses: `IndexError: index out of range in self`. So does this layer.

# %% tags=["engine"]
class Embedding(Module):
    """A trained row for each of the numbers 0 to num_embeddings - 1.

    weight: Parameter of shape (num_embeddings, embedding_dim), initially standard normal
    forward(ids): ids is an array or list of integers of any shape, even an empty array; the
        result is a MiniTensor of shape (*ids.shape, embedding_dim)
    Raises: IndexError("index out of range in self") if a number is negative or too large;
        TypeError, with any text, if the dtype of the numbers is not an integer dtype

    >>> layer = Embedding(5, 3)
    >>> layer([[0, 4], [4, 4]]).shape
    (2, 2, 3)
    """

    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Parameter(default_generator.normal(size=(num_embeddings, embedding_dim)))

    def forward(self, ids):
        ids = np.asarray(ids)
        if ids.dtype.kind not in "iu":
            raise TypeError(f"an embedding looks up whole numbers, not {ids.dtype}")
        if (ids < 0).any() or (ids >= self.num_embeddings).any():
            raise IndexError("index out of range in self")
        return Lookup.apply(self.weight, ids=ids)

# %% [markdown]
# ### The layer in use
#
# Compare the layer with PyTorch's. Then train it: in the first step all letters occur, in the second only letter 0. **Predict** for SGD and Adam which rows the *second* step moves.

# %% tags=["demo"]
predict(
    "Which optimizer moves rows other than 0 in the second step?",
    "SGD",
    "Adam",
    "both",
    "neither",
)
print(f"difference of the gradients: {compare_embeddings(Embedding(4, 2)):.1e}")

for kind in (SGD, Adam):
    layer = Embedding(4, 2)
    optimizer = kind(layer.parameters(), lr=0.1)
    for ids in ([0, 1, 2, 3], [0, 0, 0, 0]):
        before = layer.weight.data.copy()
        optimizer.zero_grad()
        (layer(ids) ** 2).sum().backward()
        optimizer.step()
    rows_moved = np.abs(layer.weight.data - before).max(axis=1) > 0
    print(f"{kind.__name__:5s} the second step moves the rows {np.flatnonzero(rows_moved).tolist()}")

# %% [markdown]
# The gradient of the other rows was 0 for both optimizers. But Adam moves by a *running mean* of gradients, and the gradient of the first step is still in it. So Adam also moves the row of a letter that does not occur.

# %% [markdown]
# ## 2. Keep the numbers in range
#
# Batch normalization, in lesson 11, took the mean and the variance of each column over the rows of a batch. *Layer normalization* takes them for each row over its own entries. **Predict** for both: how does the result for the first row change when **another** row changes, in training and in evaluation?

# %%
predict(
    "For which norm does row 0 change when another row changes?",
    "batch norm",
    "layer norm",
    "both",
    "neither",
)


class RowNorm(Module):
    """What layer normalization does, in plain NumPy and without parameters."""

    def forward(self, x):
        x = as_tensor(x).data
        return MiniTensor((x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True))


rows = np.random.default_rng(2).normal(size=(4, 5))
changed = rows.copy()
changed[3] *= 10.0
for name, layer in (("BatchNorm1d", BatchNorm1d(5)), ("by rows", RowNorm())):
    for mode in (True, False):
        layer.train(mode)
        difference = np.abs(layer(MiniTensor(rows)).data[0] - layer(MiniTensor(changed)).data[0]).max()
        print(f"{name:11s} {'training  ' if mode else 'evaluation'}  row 0 changes by {difference:.3f}")

# %% [markdown]
# A row that is normalized by itself does not depend on the rest of the batch. So there is nothing to remember for evaluation: no buffers, and no difference between the modes. A text gets the same answer alone and in a batch.

# %% [markdown]
# ### Exercise 2: LayerNorm
#
# Write `forward`: over the **last axis**, for inputs with any number of axes, `(x - mean) / sqrt(variance + eps) * weight + bias`. The variance is divided by the number of entries, as PyTorch does here in both modes. The gradient flows through both. Your `mean` takes `dim` and `keepdim`, not NumPy's names.
#
# The mean of the squares minus the square of the mean is the variance on paper; but for entries like 1,000,000.5 both are near 10¹², and their difference has few correct digits left.

# %% [markdown] tags=["hint"] exercise="layer_norm"
# `centered = x - x.mean(-1, True)`, and the variance is the mean of `centered * centered`, again with `keepdim`.

# %% [markdown] tags=["hint"] exercise="layer_norm"
# `.sqrt()` has been there since lesson 12. `weight` and `bias` have the shape of the last axis and are stretched over the others.

# %% solution="layer_norm" tags=["engine"]
class LayerNorm(Module):
    """Brings each row to mean 0 and variance 1, then scales and shifts it by parameters.

    weight, bias: Parameters of shape (size,), initially ones and zeros
    forward(x): x of shape (..., size), at least one axis; the result has the same shape. A row of
        equal entries becomes bias. Entries may have a large offset, such as 1e6; about ten digits
        are then right. The same in training and in evaluation.

    >>> LayerNorm(2)(MiniTensor([[1.0, 3.0], [5.0, 5.0]])).data.round(3) + 0.0
    array([[-1.,  1.],
           [ 0.,  0.]])
    """

    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = Parameter(np.ones(size)), Parameter(np.zeros(size))

    def forward(self, x):
        x = as_tensor(x)
        ### BEGIN SOLUTION
        centered = x - x.mean(-1, True)
        variance = (centered * centered).mean(-1, True)
        return centered / (variance + self.eps).sqrt() * self.weight + self.bias
        ### END SOLUTION

# %% check="layer_norm"

# %% [markdown]
# Compare it with PyTorch's layer, with and without an offset of a million. Also **predict** the sum of the gradient over the entries of one row, for a random cotangent.

# %% tags=["demo"]
predict("What is the sum of the gradient over a row?")
for offset in (0.0, 1e6):
    x = offset + np.random.default_rng(1).normal(size=(2, 3, 8))
    cotangent = np.random.default_rng(2).normal(size=x.shape)
    leaf, leaf_torch = MiniTensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    mine, theirs = LayerNorm(8), torch.nn.LayerNorm(8).double()
    mine(leaf).backward(cotangent)
    theirs(leaf_torch).backward(torch.tensor(cotangent))
    difference = np.abs(leaf.grad.data - leaf_torch.grad.numpy()).max()
    print(f"offset {offset:9.0f}   difference of the gradients {difference:.1e}", end="   ")
    print(f"largest sum of a row {np.abs(leaf.grad.data.sum(axis=-1)).max():.1e}")

# %% [markdown]
# The sum is 0: adding the same number to all entries of a row does not change the output, so the gradient has no component in that direction.

# %% [markdown]
# ## 3. Attention
#
# Every position of a text gets three vectors, each computed by a linear layer from its row. A **query** says what the position looks for. A **key** says what it offers. A **value** is what it hands over when it is found. The query of one position is multiplied with the keys of all positions. Softmax turns the products into weights, and the result is the mean of the values with these weights. This is a soft lookup: it takes every row, with a weight that training can change.
#
# There are two problems. The first is size. **Predict** how the largest of 20 weights changes as the queries and keys get longer. Their entries are random, of size 1.

# %%
predict("What does the largest of 20 weights tend to as the keys get longer?", "1/20", "1/2", "1")


def softmax_of(scores):
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


random = np.random.default_rng(0)
print("length   size of the products   largest weight   the same, products divided by root(length)")
for length in (4, 64, 1024, 16384):
    queries, keys = random.normal(size=(2, 20, length))
    products = queries @ keys.T
    largest = softmax_of(products).max(axis=1).mean()
    divided = softmax_of(products / np.sqrt(length)).max(axis=1).mean()
    print(f"{length:6d} {products.std():16.1f} {largest:20.2f} {divided:16.2f}")

# %% [markdown]
# The size of a product of two random vectors grows as the square root of their length. For large products the largest weight tends to 1: softmax takes nearly everything from one row, and its gradient is nearly 0, so the layer learns little. So attention divides the products by the square root of the length.
#
# The second problem is time. Position 3 is trained to guess letter 4. If it can look at position 4, it does not have to guess. So position `t` may look only at the positions up to `t`: attention is **causal**. **Predict** which of two ways to enforce this is right: set the forbidden *weights* to 0, or set the forbidden *scores* to minus infinity before the softmax?

# %%
predict("Which way is right?", "weights to 0", "scores to minus infinity", "both")
scores = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 5.0], [1.0, 1.0, 1.0]])
allowed = np.tril(np.ones((3, 3), dtype=bool))
for name, weights in (
    ("weights set to 0", softmax_of(scores) * allowed),
    ("scores set to -inf", softmax_of(np.where(allowed, scores, -np.inf))),
):
    print(name, weights.round(3).tolist(), "  sums of the rows", weights.sum(axis=1).round(3).tolist())

# %% [markdown]
# With the first way only the last row sums to 1, and the others depend on the future: a larger last score in the second row makes its other weights smaller. With the second way, `exp(-inf)` is 0, exactly, in value and gradient.

# %% [markdown]
# ### Exercise 3: attention
#
# Write `attention(q, k, v)`. Your engine has what you need: `@` for stacks of matrices, `transpose`, `where` from lesson 12, and a `softmax` that does not overflow. The axes before the last two are a stack of independent problems.

# %% [markdown] tags=["hint"] exercise="attention"
# The scores are `q @ k.transpose(-1, -2)`, divided by the square root of the size of `q`'s last axis. They have the shape `(..., length, length)`; row `t` belongs to the query of position `t`.

# %% [markdown] tags=["hint"] exercise="attention"
# `np.tril(np.ones((length, length), dtype=bool))` is True on the diagonal and below. `where(allowed, scores, -np.inf)` stretches it over the other axes.

# %% solution="attention" tags=["engine"]
def attention(q, k, v):
    """Causal attention: softmax(q k^T / root(size)) v, where position t sees the positions 0 to t.

    q, k: MiniTensors of shape (..., length, size)
    v: MiniTensor of shape (..., length, width)
    Returns: tuple of two MiniTensors: the output, of shape (..., length, width), and the weights, of
        shape (..., length, length). weights[..., t, s] says how much position t takes from position
        s; it is exactly 0 for s > t, and each row sums to 1. Scores of any size are fine, such as
        1e30 or -1e30.

    >>> same = MiniTensor(np.ones((3, 2)))
    >>> output, weights = attention(same, same, MiniTensor([[1.0], [3.0], [8.0]]))
    >>> output.data.round(6).tolist()
    [[1.0], [2.0], [4.0]]
    >>> weights.data.round(2).tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.33, 0.33, 0.33]]
    """
    ### BEGIN SOLUTION
    length, size = q.shape[-2:]
    scores = q @ k.transpose(-1, -2) / math.sqrt(size)
    allowed = np.tril(np.ones((length, length), dtype=bool))
    weights = where(allowed, scores, -np.inf).softmax(-1)
    return weights @ v, weights
    ### END SOLUTION

# %% check="attention"

# %% [markdown]
# PyTorch has attention as a single operation. Compare:

# %% tags=["demo"]
compare_attention(attention, MiniTensor)

# %% [markdown]
# Here is the graph of attention for three positions (*Fit* shows all of it). **Predict** which of `q`, `k` and `v` gets its gradient without a path through the softmax.

# %% tags=["demo"]
predict("Which of them gets its gradient without a path through the softmax?", "q", "k", "v")
q, k, v = (MiniTensor(array, requires_grad=True) for array in random.normal(size=(3, 3, 2)))
explore(attention(q, k, v)[0].sum())

# %% [markdown]
# ### Heads
#
# One weighted mean looks at one thing at a time. So the vectors are split into parts, called *heads*: head 0 uses the first entries of all queries, keys and values, head 1 the next. Each head computes its own attention. A linear layer then mixes the results.
#
# Splitting changes the axes: from `(rows, length, heads * size)` to `(rows, heads, length, size)`. `reshape` alone can make an array of that shape. **Predict** what it puts into head 0.

# %%
predict("Does reshape alone put only entries of head 0 into head 0?", "yes", "no")
marks = np.array([[["p0 h0", "p0 h1"], ["p1 h0", "p1 h1"], ["p2 h0", "p2 h1"]]])  # position, head
print("reshape alone:", marks.reshape(2, 3).tolist())
print("reshape, then transpose:", marks.reshape(3, 2).T.tolist())

# %% [markdown]
# `reshape` keeps the entries in order, so head 0 would get both halves of position 0 and half of position 1. All shapes fit, and there is no error. First split the axis so that the heads have their own axis, then move it.

# %% [markdown]
# ### Exercise 4: causal self-attention
#
# Write `forward`. One linear layer computes queries, keys and values at once: the first `width` columns of its result are the queries, the next the keys, the last the values. Head `h` has the columns `h * size` to `(h + 1) * size` of each, where `size = width / heads`. The results of the heads are put side by side again, in this order, and go through `project`.

# %% [markdown] tags=["hint"] exercise="heads"
# `self.qkv(x).reshape(rows, length, 3, heads, size)` has an axis for queries, keys and values, and one for the heads. Index the first of these, then `transpose(1, 2)`.

# %% [markdown] tags=["hint"] exercise="heads"
# To go back: `output.transpose(1, 2).reshape(rows, length, width)`.

# %% solution="heads" tags=["engine"]
class CausalSelfAttention(Module):
    """Attention of a text to itself, in several heads.

    qkv: LinearLayer(width, 3 * width); project: LinearLayer(width, width)
    forward(x): x of shape (rows, length, width), any length; the result has the same shape. Position
        t of the result depends on the positions 0 to t of x. Afterward `pattern` is the array of
        the weights, of shape (rows, heads, length, length).
    Raises: ValueError if width is not a multiple of heads

    >>> layer = CausalSelfAttention(6, heads=2)
    >>> layer(MiniTensor(np.ones((1, 3, 6)))).shape, layer.pattern.shape
    ((1, 3, 6), (1, 2, 3, 3))
    """

    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} cannot be cut into {heads} heads of one size")
        self.width, self.heads, self.pattern = width, heads, None
        self.qkv, self.project = LinearLayer(width, 3 * width), LinearLayer(width, width)

    def forward(self, x):
        ### BEGIN SOLUTION
        rows, length, _ = x.shape
        parts = self.qkv(x).reshape(rows, length, 3, self.heads, self.width // self.heads)
        q, k, v = (parts[:, :, number].transpose(1, 2) for number in range(3))
        output, weights = attention(q, k, v)
        self.pattern = weights.data
        return self.project(output.transpose(1, 2).reshape(rows, length, self.width))
        ### END SOLUTION

# %% check="heads"

# %% [markdown]
# PyTorch's `MultiheadAttention` has the same parameters under other names. The gradient can show which positions an output depends on. For one text of six letters, **predict** the picture: positions of the output go down, positions of the input across.

# %% tags=["demo"]
manual_seed(2)
mine, x = CausalSelfAttention(8, 2), np.random.default_rng(8).normal(size=(3, 6, 8))
compare_heads(mine, x)
for position in range(6):
    leaf, cotangent = MiniTensor(x[:1], requires_grad=True), np.zeros((1, 6, 8))
    cotangent[0, position] = np.random.default_rng(9).normal(size=8)
    mine(leaf).backward(cotangent)
    print(position, "".join(" x" if size else " ." for size in np.abs(leaf.grad.data[0]).max(axis=1)))

# %% [markdown]
# On and below the diagonal there is a gradient; above, it is exactly 0. It is a picture of the mask, found without looking into the layer.

# %% [markdown]
# ## 4. Blocks, and a model
#
# A Transformer block has two halves. Attention moves information between positions; a small network of two linear layers then works on each position separately. Each half gets the normalized `x`, and its result is **added** to `x`. So there is a path around each half. **Predict** the size of the gradient at the input of 30 layers, with the path around each layer and without.

# %%
predict(
    "How large is the gradient at the input without the path?",
    "about 1",
    "about 1e-3",
    "below 1e-6",
)
manual_seed(3)
layers = [Sequential(LinearLayer(16, 16), GELU("tanh")) for _ in range(30)]
for name, way in (("around", lambda x, layer: x + layer(x)), ("through", lambda x, layer: layer(x))):
    x = start = MiniTensor(np.random.default_rng(0).normal(size=(4, 16)), requires_grad=True)
    for layer in layers:
        x = way(x, layer)
    x.backward(np.random.default_rng(1).normal(size=x.shape))
    print(f"{name:8s} size of the gradient at the input: {np.linalg.norm(start.grad.data):.1e}")

# %% [markdown]
# A sum hands the cotangent to both branches unchanged. One path goes around all 30 layers, and along it the cotangent arrives unchanged. The gradient is larger, because what arrives along the other paths, through one layer or several, is added.

# %% [markdown]
# ### Exercise 5: the model
#
# Write `forward` twice. The block: `y` is `x` plus attention of the first norm; the result is `y` plus `mlp` of the second norm of `y`. The model: add to the row of each letter the row of its *place* (attention scores do not know where a letter is); then come the blocks, the last norm, and a linear layer, which gives one score per letter of the alphabet.
#
# At position `t` the scores are the guess for letter `t + 1`. So one text of 24 letters gives 24 tasks at once, and the mask hides the answers.

# %% [markdown] tags=["hint"] exercise="model"
# In the block: `x = x + self.attention(self.norm1(x))`, and then the same with `mlp` and `norm2`.

# %% [markdown] tags=["hint"] exercise="model"
# `self.place(np.arange(length))` has the shape `(length, width)` and is stretched over the rows. `self.blocks` is a Sequential.

# %% solution="model" tags=["engine"]
class Block(Module):
    """One block: y = x + attention(norm1(x)), and the result is y + mlp(norm2(y)).

    forward(x): x of shape (rows, length, width); the result has the same shape

    >>> Block(4, heads=2)(MiniTensor(np.ones((2, 3, 4)))).shape
    (2, 3, 4)
    """

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = LayerNorm(width), CausalSelfAttention(width, heads)
        self.norm2 = LayerNorm(width)
        self.mlp = Sequential(
            LinearLayer(width, 4 * width), GELU("tanh"), LinearLayer(4 * width, width)
        )

    def forward(self, x):
        ### BEGIN SOLUTION
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))
        ### END SOLUTION


class CharTransformer(Module):
    """Scores for the next letter at every position of a text.

    vocabulary: how many letters there are; context: how many positions a text may have
    forward(ids): ids is an array of integers of shape (rows, length), length at most context;
        the result has the shape (rows, length, vocabulary): head(norm(blocks(rows of the letters +
        rows of the places 0 to length - 1)))
    Raises: ValueError, with any text, if length is larger than context

    >>> model = CharTransformer(vocabulary=5, context=4, width=6, heads=2, depth=1)
    >>> model(np.array([[0, 4, 4]])).shape
    (1, 3, 5)
    """

    def __init__(self, vocabulary, context, width, heads, depth):
        super().__init__()
        self.context = context
        self.token, self.place = Embedding(vocabulary, width), Embedding(context, width)
        self.blocks = Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = LayerNorm(width), LinearLayer(width, vocabulary)

    def forward(self, ids):
        ### BEGIN SOLUTION
        length = ids.shape[1]
        if length > self.context:
            raise ValueError(f"a text of {length} letters is longer than the context, {self.context}")
        x = self.token(ids) + self.place(np.arange(length))
        return self.head(self.norm(self.blocks(x)))
        ### END SOLUTION


def next_letter_loss(scores, targets):
    """The cross entropy over all rows and positions.

    scores: MiniTensor of shape (rows, length, vocabulary); targets: array of shape (rows, length)
    """
    return cross_entropy(scores.reshape(-1, scores.shape[-1]), targets.reshape(-1))

# %% check="model"

# %% [markdown]
# Here is the graph of one small block, for 2 positions of width 3. **Predict** how many paths lead from the result back to `x`; the second cell counts them.

# %% tags=["demo"]
manual_seed(4)
x = MiniTensor([[[0.5, -1.0, 2.0], [2.0, 1.0, -1.0]]], requires_grad=True)
result = Block(3, heads=1)(x).sum()
explore(result)

# %% tags=["demo"]
nodes, paths = nodes_and_paths(topological_order(result.grad_fn), edge_to(x)[0])
print(f"{nodes} nodes, {paths} paths from the result to x")

# %% [markdown]
# The gradient of `x` is a sum over all these paths, and each additional block multiplies their number. `backward` still runs every rule only once, because it follows the topological order.

# %% [markdown]
# ## 5. The training
#
# `twin` in `helpers_16.py` makes the same model in PyTorch, with PyTorch's own layers and its fused attention. Its parameters have the same names, so it can load your starting weights.

# %% tags=["demo"]
sizes = {"vocabulary": len(letters), "context": 24, "width": 28, "heads": 2, "depth": 2}
manual_seed(5)
model, model_torch = CharTransformer(**sizes), twin(torch, **sizes)
print(model_torch.load_state_dict(copied(model, torch)))
print(sum(parameter.data.size for parameter in model.parameters()), "numbers to train")
ids = known[: 3 * sizes["context"]].reshape(3, -1)
difference = model(ids).data - model_torch(torch.tensor(ids)).detach().numpy()
print(f"scores of the two models before training: difference {np.abs(difference).max():.1e}")

# %% [markdown]
# A batch of `batches` is 16 pieces of the diary, each 24 letters long, from random places. The targets are the same pieces, shifted by one letter. Before training, `preflight` from lesson 12 checks the model; an empty list means no complaints. And `greedy_text` lets the model write: it guesses the next letter, appends it, and asks again. **Predict** what the untrained model writes.

# %% tags=["demo"]
def greedy_text(start, count):
    """What the model writes after a start if it always takes the most likely letter."""
    ids = list(encode(start))
    with no_grad():
        for _ in range(count):
            ids.append(model(np.array([ids[-24:]])).data[0, -1].argmax())
    return decode(ids)


x, y = next(batches(known, 24, count=1))
print("preflight:", preflight(model, Adam(model.parameters(), lr=0.02), next_letter_loss, x, y))
print("a text before training:", repr(greedy_text("\n", 40)))

# %% [markdown]
# Now both models get the same 90 batches. Two libraries round differently, and each step depends on the one before. **Predict** the largest relative difference of the two curves after 90 steps: below 1e-15, between 1e-15 and 1e-9, or about 1e-3?

# %% tags=["demo"]
predict(
    "What is the largest relative difference after 90 steps?",
    "below 1e-15",
    "between 1e-15 and 1e-9",
    "about 1e-3",
)
model_torch.load_state_dict(copied(model, torch))  # this cell may run again, and train on from there
optimizer = Adam(model.parameters(), lr=0.02)
optimizer_torch = torch.optim.Adam(model_torch.parameters(), lr=0.02)
losses, losses_torch = [], []
for x, y in batches(known, 24, count=90):
    losses.append(train_step(model, optimizer, next_letter_loss, x, y))
    losses_torch.append(torch_step(model_torch, optimizer_torch, x, y))
relative = np.abs(np.subtract(losses, losses_torch)) / np.array(losses_torch)
print(f"loss {losses[0]:.3f} -> {np.mean(losses[-10:]):.3f} (mean of the last ten)")
print(f"largest relative difference from PyTorch: {relative.max():.1e}")
assert relative.max() < 1e-6, "the curves differ by more than rounding: look for a mistake above"

# %% tags=["demo"]
plot_losses(losses, losses_torch, baseline_losses(known, unknown, line_end))

# %% [markdown]
# The two curves coincide. The dotted lines show the three ways of guessing at the top of this lesson. The model cannot reach the lowest one: for the first letters of a piece it does not know what came before. What did it learn? Look at two places in the new diary: the first letter of the weather, which follows from the thing, and the first letter of the thing, which is random, one of four. **Predict** the share of right guesses at both.

# %% tags=["demo"]
predict("What share of the first letters of the thing is guessed right, in percent?")


def trained(ids):
    with no_grad():
        return model(ids).data


hits = np.equal(*last_guesses(trained, unknown, 24))
print(f"all letters                    {hits.mean():.1%}")
for words in (" in ", " a "):
    print(f"first letter after {words!r:11s} {hits[places_after(words, held_out, 24)].mean():.1%}")
print(greedy_text("\n", 60))

# %% [markdown]
# If the share for all letters is a little above that of the rules, it is luck: a guess at a random letter may be right. Greedy writing repeats itself: it always takes the most likely name and thing.
#
# How does the model know the weather? `pattern` shows it. Take one line up to where the model must guess the weather. **Predict** where the last row looks, in the head that found the thing.

# %% tags=["demo"]
line = "\nleo takes a kite in "
with no_grad():
    scores = model(encode(line)[None]).data[0, -1]
print("next letter:", repr(letters[scores.argmax()]))
plot_patterns([block.attention.pattern for block in model.blocks], line)
every = np.concatenate([block.attention.pattern[0] for block in model.blocks])
for head, row in enumerate(every[:, -1]):
    looked = ", ".join(f"{line[i]!r} at {i}: {row[i]:.2f}" for i in np.argsort(-row)[:3])
    print(f"block {head // 2}, head {head % 2}: the last position looks at {looked}")

# %% [markdown]
# No code tells a head to look for the thing. The head learned it from the gradient of one letter, which flowed back through softmax, products and norms to three small matrices.

# %% [markdown]
# ## 6. What you have built
#
# Apart from NumPy, you built every part of this training run. Lesson by lesson:
#
# | lesson | what you built | what it does in this model |
# | --- | --- | --- |
# | 01 | numerical gradients, the chain rule by hand | the tests above compare slopes with differences |
# | 02 | operations that remember, `backward` | one call, and every parameter has a gradient |
# | 03 | an order for the graph, without recursion | all contributions to a value arrive before its rule runs |
# | 04 | arrays, broadcasting, products, softmax | scores, patterns, the rows of the places that are stretched over the batch |
# | 05 | leaves and accumulation | rows that are looked up many times |
# | 06 | freeing what is saved | no step leaves anything behind for the next |
# | 07 | `no_grad`, `detach` | writing, the optimizer's step |
# | 08 | operations with your own rules, `gradcheck` | `Lookup`, `LogSoftmax`, the linear layers |
# | 09 | versions and views | heads are views; the optimizer writes in place, and a late backward would be noticed |
# | 10 | derivatives of derivatives, hooks | a question about a gradient of a gradient, if one comes up |
# | 11 | modules, Adam, the step | all of section 5 |
# | 12 | instruments | `preflight`, `where`, `sqrt` |
# | 13 | checkpoints | less memory, for one more pass through the blocks |
# | 14 | a compiler | the activation in one pass |
# | 15 | forward mode | not used here: there is one loss and many weights. It shows how the loss moves along one direction |

# %% [markdown]
# ## Quiz

# %% test="quiz_16" points=5 tags=["quiz"] items="gap:repeated_indices"
question(
    "repeated_rows",
    "The letter e occurs 40 times in a batch. What is the gradient of its row in the table?",
    right("The sum of the 40 gradients that arrive at its places", "A value that is used often gets the sum over its uses, here as in lesson 02."),
    wrong("Their mean", "Only the loss may divide, by the number of letters. A rule of backward adds.", misconception="embedding_rows_averaged"),
    wrong("The last of them", "That is `gradient[ids] += ...`, which you ran in section 1.", misconception="repeated_indices_overwrite"),
    wrong("40 separate gradients, one per place", "There is one row, and it has one gradient of its own shape.", misconception="one_gradient_per_use"),
)
question(
    "eval_of_layer_norm",
    "A Transformer without dropout runs under `no_grad()` and without `eval()`. What comes out?",
    right("The same as with `eval()`", "Layer norm does the same in both modes. Only what depends on the mode, such as dropout or batch norm, would differ."),
    wrong("Other values: the norms take the statistics of the batch", "That is batch norm. Layer norm looks at one row at a time.", misconception="layer_norm_is_batch_norm"),
    wrong("An error, because the mode is wrong", "No layer complains about a mode.", misconception="no_grad_is_eval"),
    wrong("The same, because `no_grad` switches to evaluation", "It is the same here, but not for that reason: the two switches are independent.", misconception="no_grad_is_eval"),
)
question(
    "mask_after",
    "You compute the softmax over all scores and then set the weights above the diagonal to 0. What is wrong?",
    right("Only the last row sums to 1, and in the others the future shows through what is missing.", "The denominator has seen the scores of later positions."),
    wrong("Nothing, the forbidden weights are 0 either way.", "The allowed ones differ, and they depend on what comes later.", misconception="mask_after_softmax_is_equal"),
    wrong("The gradient of the forbidden scores is infinite.", "It is finite, and not 0: that is the leak.", misconception="masks_break_gradients"),
    wrong("It works in training, but not when writing.", "It trains as well, on weights that have looked ahead.", misconception="mask_after_softmax_is_equal"),
)
question(
    "reshape_heads",
    "`x.reshape(rows, heads, length, size)` in place of a reshape and a transpose; the way back is as before. How do you notice?",
    right("By comparing with an independent computation, or by asking which inputs an output depends on.", "All shapes fit, and no error is raised. But a head gets its rows from other positions, so the mask no longer keeps the future out."),
    wrong("By an error, since the number of entries differs", "It is the same.", misconception="shapes_prove_correctness"),
    wrong("The gradient check fails.", "It compares the layer with itself: a wrong function has right gradients too.", misconception="gradcheck_proves_the_function"),
    wrong("The loss becomes NaN.", "All numbers stay finite.", misconception="wrong_means_error"),
)
question(
    "path_around",
    "In `y = x + f(x)`, the cotangent of `y` is `g`. What arrives at `x`?",
    right("`g`, plus what the rule of `f` sends for `g`", "The rule of the sum hands `g` to both branches, and at `x` they are added."),
    wrong("Half of `g` from each branch", "A sum does not divide: both slopes are 1.", misconception="sum_divides_gradient"),
    wrong("What the rule of `f` sends for `g`", "That is the network without the path around `f`.", misconception="residual_forgotten"),
    wrong("`g` times what the rule of `f` sends", "Along one path slopes are multiplied, over several paths they are added.", misconception="paths_multiplied"),
)
question(
    "saved_for_attention",
    "The context becomes twice as long. What happens to the memory that attention keeps for its patterns?",
    right("It becomes four times as large.", "A pattern has length times length entries, for each head and each text."),
    wrong("It doubles.", "So do the rows of queries, keys and values. The pattern grows along both axes.", misconception="attention_is_linear"),
    wrong("It stays the same, since the parameters do.", "Activations are not parameters. They take most of the memory of a step.", misconception="memory_is_parameters"),
    wrong("It grows by half, as half of the pattern is masked.", "The zeros above the diagonal are kept like all others.", misconception="zeros_are_free"),
)
question(
    "agreement",
    "Two engines train the same model from the same weights; the curves differ by 1e-12 in the beginning and 1e-9 in the end. What does it mean?",
    right("Rounding differs, and training makes small differences larger.", "They add in a different order. Equal to the last bit is what you get from the same operations in the same order, as with checkpoints."),
    wrong("One of the two has a wrong rule.", "A wrong rule shows in the first step, and by far more.", misconception="rounding_is_a_bug"),
    wrong("One of them computes in float32.", "Then they would differ by about 1e-7 at once.", misconception="rounding_is_a_bug"),
    wrong("The random numbers differ.", "Weights and batches were the same. The first losses would be different otherwise.", misconception="randomness_explains_all"),
)

# %% [markdown] items="142"
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | embedding | a gather; its gradient is a scatter-add, and repeated rows get the sum |
# | layer norm | each row separately, over its own entries: no modes, no buffers |
# | attention | a soft lookup: softmax of query times key, divided by the square root of the size, times values |
# | causal | scores of later positions are set to minus infinity **before** the softmax |
# | heads | split off an axis for them, then move it; `reshape` alone mixes positions |
# | block | `x` plus the result of its layers: the gradient has a path around them |
# | writing | guess, append, ask again; greedy takes the most likely letter |
# | is it right? | same weights, same batches, another library: the curves agree to rounding |
# | is it real? | baselines first, new text afterward; a loss that is too good is a symptom |
# | is it fast? | a stopwatch first |

# %% [markdown] items="142"
# ## Where to go next
#
# The course ends here, but your engine can grow. Each of these takes an evening:
#
# * Give the model your own text: replace `text`, and use its last tenth as `held_out`. You will need a longer context and more width; *Further* shows how to measure what they cost.
# * Writing recomputes everything for each letter, although the keys and values of the earlier letters are the same. Keep them, and measure.
# * `mini_autograd` is this engine, finished, with PyTorch's names. Read `graph/function.py`, `graph/backward.py` and `operations/neural/attention.py`, and compare them with what you wrote.
# * PyTorch's own rules are in one file of its source, `derivatives.yaml`. Look up `tanh`, `mul` and `embedding`: you can read it now.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. Its exercise only earns points, and its sections do not depend on each other.

# %% [markdown]
# ## Writing
#
# `greedy_text` always takes the most likely letter. A model's text is more varied if you **draw** the letter, with the probabilities that the scores give. The **temperature** divides the scores before the softmax. **Predict** the three rows: what does a low temperature do, and a high one?

# %%
predict(
    "What does a low temperature do?",
    "always the most likely letter",
    "all letters alike",
    "nothing",
)
print("scores              ", [2.0, 1.0, 0.0])
for temperature in (0.1, 1.0, 10.0):
    chances = softmax_of(np.array([2.0, 1.0, 0.0]) / temperature)
    print(f"temperature {temperature:4.1f}    ", chances.round(3).tolist())

# %% [markdown]
# Near 0 the best letter gets all the probability. So let temperature 0 mean greedy, instead of a division by zero.

# %% [markdown]
# ### Exercise 6: generate
#
# Write `choose`, which draws one letter, and `generate`, which writes. Nothing is recorded, and the model is in evaluation mode while it writes. Afterward it is back in its previous mode, even after an error. The model sees at most the last `model.context` letters.

# %% [markdown] tags=["hint"] exercise="generate"
# For temperature 0, return `int(np.argmax(scores))`. Otherwise divide by the temperature, and subtract the maximum before `np.exp`, so that nothing overflows. `int(generator.choice(len(chances), p=chances))` draws.

# %% [markdown] tags=["hint"] exercise="generate"
# In `generate`, `ids = [int(i) for i in ids]` makes a new list, so the given one stays unchanged. In each round, call `model(np.array([ids[-model.context :]]))`; its `.data[0, -1]` holds the scores after the last letter. Handle the mode as in `evaluate` of lesson 11, with `try` and `finally`.

# %% solution="generate" tags=["engine"]
def choose(scores, generator, temperature=1.0):
    """Draw a number with the probabilities softmax(scores / temperature).

    scores: array of shape (vocabulary,), entries may be large, such as 1e6; it stays unchanged
    generator: a NumPy generator; no other random numbers are used
    temperature: at least 0; 0 gives the number of the largest score, the first one of several
    Returns: an int. Raises: ValueError, with any text, for a negative temperature

    >>> choose(np.array([0.0, 3.0, 1.0]), np.random.default_rng(0), temperature=0)
    1
    """
    ### BEGIN SOLUTION
    if temperature < 0:
        raise ValueError(f"a temperature cannot be negative: {temperature}")
    if temperature == 0:
        return int(np.argmax(scores))
    raised = np.exp((scores - scores.max()) / temperature)
    return int(generator.choice(len(scores), p=raised / raised.sum()))
    ### END SOLUTION


def generate(model, ids, count, generator, temperature=1.0):
    """Let a model continue a text: choose draws each number from the scores at the last position.

    model: has context, and model(array of shape (1, length)) gives scores of shape
        (1, length, vocabulary). In each round it gets all numbers so far, but at most the last
        model.context.
    ids: list or array of at least one integer, which stays unchanged
    generator: for choose
    Returns: list of ints: ids, and count new ones
    The model runs in evaluation mode and unrecorded. Afterward model.training is what it was, even
    if the model raises an error.

    >>> model = CharTransformer(vocabulary=5, context=4, width=6, heads=2, depth=1)
    >>> len(generate(model, [1, 2], 10, np.random.default_rng(0)))
    12
    """
    ### BEGIN SOLUTION
    ids, before = [int(number) for number in ids], model.training
    model.eval()
    try:
        with no_grad():
            for _ in range(count):
                scores = model(np.array([ids[-model.context :]])).data[0, -1]
                ids.append(choose(scores, generator, temperature))
    finally:
        model.train(before)
    return ids
    ### END SOLUTION

# %% check="generate"

# %% tags=["demo"]
for temperature in (0, 1.0, 3.0):
    written = generate(model, encode("\n"), 60, np.random.default_rng(6), temperature)
    print(f"--- temperature {temperature}")
    print(decode(written).strip("\n"))

# %% [markdown]
# At a high temperature the model makes spelling mistakes, because every letter gets a chance.

# %% [markdown]
# ## A loss that is too good
#
# Does attention really do the guessing? Train three more models in PyTorch, with a single block, in float32. In the first, each position looks back, as in yours. In the second it may look **everywhere**, in the third **nowhere** but at itself. **Predict** for each the training loss, and the share of right guesses after the last letter of a piece, where there is nothing more to look at.

# %% tags=["demo"]
predict("Which of the three has the lowest training loss?", "back", "everywhere", "nowhere")
print("looks          loss in training   right guesses at the end of a piece")
for look in ("back", "everywhere", "nowhere"):
    torch.manual_seed(2)
    network = twin(torch, **sizes | {"width": 32, "depth": 1}, look=look).float()
    optimizer_torch = torch.optim.Adam(network.parameters(), lr=0.03)
    found = [torch_step(network, optimizer_torch, x, y) for x, y in batches(known, 24, count=80)]
    with torch.no_grad():
        guess = lambda ids: network(torch.tensor(ids)).numpy()
        guessed, right_letters = last_guesses(guess, unknown, 24)
    print(f"{look:12s} {np.mean(found[-10:]):14.3f} {(guessed == right_letters).mean():24.1%}")

# %% [markdown]
# The model that may look everywhere has a lower training loss than a reader who knows the rules: it copies the letter to the right. Where there is no such letter, it guesses worse than the model that may only look back. A loss that is too good is a symptom. The model that looks nowhere else knows one letter and its place, and ends near the table of pairs.

# %% [markdown]
# ## One table for both ends
#
# The first layer and the last both have a row for each letter, and many models use one parameter for both. Then two gradients arrive at it: a scatter-add from the lookup, and a matrix from the product at the end. **Predict** what your engine does with them.

# %% tags=["demo"]
predict(
    "What does your engine do with the two gradients?",
    "it adds them",
    "it keeps the last",
    "it raises an error",
)


def tables(tied):
    """A small model after one backward: its number of parameters, and the gradients of both tables."""
    manual_seed(5)
    model = CharTransformer(vocabulary=6, context=4, width=4, heads=2, depth=1)
    overwrite(model.head.weight, model.token.weight.data)  # equal numbers, in two places
    if tied:
        model.head.weight = model.token.weight  # one parameter
    ids = np.array([[0, 3, 3, 5], [1, 0, 0, 2]])
    next_letter_loss(model(ids), np.roll(ids, -1, axis=1)).backward()
    count = sum(parameter.data.size for parameter in model.parameters())
    return count, model.token.weight.grad.data, model.head.weight.grad.data


count, of_token, of_head = tables(tied=False)
count_tied, of_both, _ = tables(tied=True)
print(f"parameters {count}, tied {count_tied}")
print(f"sum of the two gradients, minus the tied one: {np.abs(of_token + of_head - of_both).max():.1e}")

# %% [markdown]
# They add up: this is the rule of lesson 02 for a value that is used twice.

# %% [markdown]
# ## What it costs
#
# The next cell times one training step of this model in three libraries: your engine, `mini_autograd`, and PyTorch, each on one thread, taking turns, in processor time. **Predict** the ratios.

# %% tags=["demo"]
def shortest(action, rounds=3):
    """Milliseconds of processor time: a busy machine only adds to it."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        action()
        found.append(1000 * (time.process_time() - start))
    return min(found)


def step_of(library):
    """One training step of the twin, as a function without arguments."""
    network, cross_entropy_of = twin(library, **sizes), library.nn.functional.cross_entropy
    network.load_state_dict(copied(model, library))
    optimizer = library.optim.Adam(network.parameters(), lr=0.0)
    pieces, targets = library.tensor(x), library.tensor(y).reshape(-1)

    def step():
        optimizer.zero_grad()
        cross_entropy_of(network(pieces).reshape(-1, len(letters)), targets).backward()
        optimizer.step()

    return step


def by_turns(actions, rounds=7):
    """The median processor time of each action in milliseconds; one round runs all of them."""
    found = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            start = time.process_time()
            action()
            found[name].append(1000 * (time.process_time() - start))
    return {name: float(np.median(times)) for name, times in found.items()}


def your_step():
    train_step(model, still, next_letter_loss, x, y)


still = Adam(model.parameters(), lr=0.0)  # steps that move nothing
x, y = next(batches(known, 24, count=1))
one_step = {"yours": your_step, "mini_autograd": step_of(mini_autograd), "PyTorch": step_of(torch)}
medians = by_turns(one_step)
for name, milliseconds in medians.items():
    ratio = milliseconds / medians["PyTorch"]
    print(f"{name:14s} {milliseconds:7.2f} ms per step   {ratio:5.2f} times PyTorch")

# %% [markdown]
# Where does your time go? Put a stopwatch around every rule of your engine. **Predict** the share of the matrix products, and which operation costs most.

# %% tags=["demo"] items="112"
def kinds_below(kind):
    for inner in kind.__subclasses__():
        yield inner
        yield from kinds_below(inner)


class Stopwatch:
    """Inside, the processor time of each rule is added up, without that of rules that it calls."""

    def __enter__(self):
        self.milliseconds, self.calls, self.inside, self.before = {}, {}, [0.0], []
        for kind in set(kinds_below(Function)):
            for part in ("forward", "backward"):
                if part in vars(kind):
                    self.before.append((kind, part, vars(kind)[part]))
                    timed = self.timed(getattr(kind, part), (kind.__name__, part))
                    setattr(kind, part, staticmethod(timed))
        return self

    def __exit__(self, *error):
        for kind, part, rule in self.before:
            setattr(kind, part, rule)

    def timed(self, rule, key):
        def run(*arguments, **options):
            self.inside.append(0.0)
            start = time.process_time()
            try:
                return rule(*arguments, **options)
            finally:
                passed = 1000 * (time.process_time() - start)
                own = passed - self.inside.pop()
                self.inside[-1] += passed
                self.milliseconds[key] = self.milliseconds.get(key, 0.0) + own
                self.calls[key] = self.calls.get(key, 0) + 1

        return run


def by_operation(action, rounds=5):
    """Pairs (operation, [calls, forward, backward]), slowest first: one action, in milliseconds."""
    with Stopwatch() as watch:
        for _ in range(rounds):
            action()
    table = {}
    for (name, part), milliseconds in watch.milliseconds.items():
        row = table.setdefault(name, [0, 0.0, 0.0])
        row[1 if part == "forward" else 2] += milliseconds / rounds
        if part == "forward":
            row[0] += watch.calls[name, part] // rounds
    return sorted(table.items(), key=lambda item: -sum(item[1][1:]))


rules = by_operation(your_step)
whole = sum(sum(times[1:]) for _, times in rules)
print("operation      calls   forward   backward   share of the rules")
for name, (calls, *times) in rules[:9]:
    print(f"{name:12s} {calls:7d} {times[0]:9.2f} {times[1]:10.2f} {sum(times) / whole:12.0%}")
products = sum(sum(times[1:]) for name, times in rules if name in ("MatMul", "Linear"))
print(f"all rules {whole:.1f} ms, of which matrix products {products / whole:.0%}")

# %% tags=["demo"]
loss = next_letter_loss(model(x), y)
nodes = [node for node in topological_order(loss.grad_fn) if not isinstance(node, AccumulateGrad)]
parts = {
    "forward": lambda: next_letter_loss(model(x), y),
    "forward and backward": lambda: next_letter_loss(model(x), y).backward(),
    "the optimizer": still.step,
}
times = by_turns(parts, rounds=5)
backward_time = times["forward and backward"] - times["forward"]
print(f"forward {times['forward']:.1f} ms, backward {backward_time:.1f} ms", end=", ")
print(f"optimizer {times['the optimizer']:.1f} ms, {len(nodes)} nodes")

# %% [markdown]
# Look at `Pow`. Two of its calls are the `self**3` in the tanh form of GELU. The others are in the norms: the square roots, and the squares if you wrote them as `**2`. Take the third power of as many numbers as the activation gets. **Predict** how much longer it takes than a square, and whether the signs matter.

# %% tags=["demo"]
predict("How many times as long as a square does the third power take?")
hidden = np.random.default_rng(0).normal(size=(16 * 24, 112))
print("          both signs   positive only")
for name, compute in (
    ("a**2", lambda a: a**2),
    ("a**3", lambda a: a**3),
    ("a*a*a", lambda a: a * a * a),
):
    found = [shortest(lambda: compute(a), rounds=9) for a in (hidden, np.abs(hidden))]
    print(f"{name:7s} {found[0]:9.3f} ms {found[1]:12.3f} ms")

# %% [markdown] items="129"
# For a square NumPy takes a shortcut; for a third power it does not. Where the second column is much smaller, NumPy has a fast method for powers of positive numbers; but an activation gets both signs.
#
# Here are three ways to compute the same activation: as it is; with products instead of the power; and fused, with the compiler of lesson 14. **Predict** the times for one activation of this model, forward and backward, and for the whole step.

# %% tags=["demo"]
def gelu_as_product(a):
    inner = (a + a * a * a * 0.044715) * math.sqrt(2 / math.pi)
    return a * (inner.tanh() + 1) * 0.5


class Activation(Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


ways = {
    "with a power": lambda a: a.gelu("tanh"),
    "with products": gelu_as_product,
    "products, fused": compiled(gelu_as_product),
}
results, actions, whole_steps = {}, {}, {}
for name, way in ways.items():
    layer = Activation(way)

    def activate(layer=layer):
        leaf = MiniTensor(hidden, requires_grad=True)
        layer(leaf).backward(hidden)
        return leaf.grad.data

    def step_with(layer=layer):
        for block in model.blocks:
            setattr(block.mlp, "1", layer)
        your_step()

    results[name], actions[name], whole_steps[name] = activate(), activate, step_with
whole_steps["PyTorch"] = one_step["PyTorch"]
alone, steps = by_turns(actions), by_turns(whole_steps)
for name in ways:
    difference = np.abs(results[name] - results["with a power"]).max()
    print(f"{name:16s} alone {alone[name]:6.2f} ms   step {steps[name]:6.2f} ms", end="   ")
    print(f"difference {difference:.0e}")
best = min(steps[name] for name in ways)
print(f"the step is {steps['with a power'] / best:.2f} times as fast as it was", end=", ")
print(f"and takes {best / steps['PyTorch']:.2f} times as long as PyTorch's")

# %% [markdown]
# A stopwatch showed what is worth changing. The model keeps the last way, so the cells above would now measure that.

# %% [markdown] items="124 126"
# And memory? Measure what the graph keeps for its rules (lesson 13), and the peak with a checkpoint around each block. **Predict** the share that is left, and the price in time.

# %% tags=["demo"] items="124 126"
def peak(action):
    """Most memory that NumPy used at one time, in megabytes, beyond what was there before."""
    tracemalloc.start()
    action()
    found = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return found


def forward_of(blocks):
    """The loss of the model, with another path through its blocks."""
    rows = model.token(x) + model.place(np.arange(x.shape[1]))
    scores = model.head(model.norm(blocks(rows)))
    return next_letter_loss(scores, y)


def in_checkpoints(rows):
    for block in model.blocks:
        rows = checkpoint(block, rows)
    return rows


activations, parameters = saved_bytes(forward_of(model.blocks))
print(f"kept by the graph: activations {activations / 1e6:.2f} MB", end=", ")
print(f"parameters {parameters / 1e6:.2f} MB")
ways = {
    "all kept": lambda: forward_of(model.blocks).backward(),
    "checkpoints": lambda: forward_of(in_checkpoints).backward(),
}
times, gradients = by_turns(ways, rounds=5), []
for name, action in ways.items():
    model.zero_grad()
    megabytes = peak(action)
    gradients.append([parameter.grad.data for parameter in model.parameters()])
    print(f"{name:12s} peak {megabytes:5.2f} MB, {times[name]:6.2f} ms forward and backward")
same = all(np.array_equal(a, b) for a, b in zip(*gradients))
print("the gradients are equal to the last bit:", same)

# %% [markdown]
# ## Questions about this part

# %% test="quiz_16_further" points=1 tags=["quiz"]
question(
    "too_good",
    "A character model reaches a training loss of 0.01, where the best possible is 0.13. What do you check first?",
    right("Whether a position can see its own target", "The mask may be missing, or the targets are not shifted. The best possible loss comes from the random letters. A model that knows them has seen them."),
    wrong("Whether the learning rate is too high", "Then the loss would be high, or NaN.", misconception="low_loss_is_good"),
    wrong("Nothing: the lower the better", "A loss below the best possible one is a symptom: something in the task is wrong.", misconception="low_loss_is_good"),
    wrong("Whether PyTorch says the same", "The mistake is in the task, so it would.", misconception="agreement_is_correctness"),
)
question(
    "where_to_begin",
    "Your step is three times slower than PyTorch's. What do you do first?",
    right("Measure which operation takes the time.", "Here it was a power that nobody suspected."),
    wrong("Rewrite the matrix products.", "NumPy calls the same kind of library as PyTorch does.", misconception="products_dominate"),
    wrong("Rewrite the walk over the graph in C.", "You can read off its share once you have measured.", misconception="python_is_the_cause"),
    wrong("Use forward mode, which needs no graph.", "One pass per weight: some 21,000 of them.", misconception="forward_mode_for_training"),
)
