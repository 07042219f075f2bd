# %% [markdown] items="124"
# # Compute it again
#
# *Core: about 100 minutes; before exercise 2 is a good place for a break. Further: about 75 minutes, optional. You build a counter of saved bytes and a checkpoint; in the optional part, a planner for where to cut. You need lessons 06, 08 and 10.*
#
# Take a Transformer with 12 blocks of width 512 and a vocabulary of 50,000 words. One training step, in float32, gets 32 texts of 512 words each. The forward pass keeps values for the backward pass. **Predict** how much memory these values need, as a multiple of the memory of the weights. And with only one text?
#
# On PyTorch's `meta` device tensors have a shape but no numbers. All operations run, gradients included, and nothing is stored. So you can count the bytes that *would* be alive.

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import threading

import numpy as np

# %% tags=["demo"]
import tracemalloc
import weakref

import torch
from helpers_13 import again, counting_product, plot_hills, traced_memory
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from mini_autograd.widgets import checkpoint_planner

# %% [markdown]
# ### The counting (just run it)
#
# Run these two cells. You don't need to read them.

# %% tags=["demo"]
GiB = 2**30


def plain(function, *inputs):
    return function(*inputs)


class Transformer(nn.Module):
    """Scores for the next word. `run` says how a block is called, for later."""

    def __init__(self, depth, width, words):
        super().__init__()
        heads = max(1, width // 64)
        self.embedding, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True)
            for _ in range(depth)
        )

    def forward(self, tokens, run=plain):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = run(block, x)
        return self.head(x)

# %% tags=["demo"] items="124 127"
class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all tensors that are alive, except those known beforehand."""

    def __init__(self, known):
        super().__init__()
        self.known = {tensor.untyped_storage()._cdata for tensor in known}
        self.alive, self.peak = weakref.WeakValueDictionary(), 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.known and storage._cdata not in self.alive:
                    self.alive[storage._cdata] = storage
                    self.peak = max(self.peak, self.now())
        return result

    def now(self):
        return sum(storage.nbytes() for storage in self.alive.values())


def step_bytes(depth, width, texts, length, words=50_000, run=plain, classify=True):
    """GiB of the weights, GiB held between forward and backward, and GiB at the peak."""
    with torch.device("meta"):
        model = Transformer(depth, width, words)
        tokens = torch.empty(texts, length, dtype=torch.long)
        parameters = list(model.parameters())
        for parameter in parameters:
            parameter.grad = torch.empty_like(parameter)
        with LiveBytes([tokens, *parameters, *(p.grad for p in parameters)]) as live:
            scores = model(tokens, run).view(-1, words)
            loss = nn.functional.cross_entropy(scores, tokens.view(-1)) if classify else scores.sum()
            del scores
            held = live.now()
            loss.backward()
    return 4 * sum(p.numel() for p in parameters) / GiB, held / GiB, live.peak / GiB

# %% [markdown]
# ### The bytes of one step
#
# Make your prediction, then run the cell.

# %% tags=["demo"]
predict("How many times as much memory as the weights do the kept values of 32 texts need?")
print("GiB         weights   with gradients and moments   activations   peak of the rest")
for texts in (1, 8, 32):
    own, held, peak = step_bytes(12, 512, texts, length=512)
    print(f"{texts:3d} texts {own:9.2f} {4 * own:28.2f} {held:13.2f} {peak:18.2f}")

# %% [markdown] items="124"
# The values that the forward pass keeps are the **activations**. For 32 texts they need more than thirty times the memory of the weights. But this factor is not fixed: activations grow with the batch and the length of the texts, weights do not. For one text the weights, their gradients and the two moments of Adam need more than the activations.
#
# A rule needs its saved values **once**, long after they were made. **Must you keep them all that time?** The input of a block is enough to compute them again. In this lesson you
#
# 1. measure which bytes a graph keeps;
# 2. build `checkpoint`, which keeps only the inputs of a function and gives the same gradients to the last bit;
# 3. cut a network into segments, and measure what that saves and costs.
#
# If something breaks your engine, run the next cell again, which restores the engine, and then every cell below it.

# %%
start_lesson()

# %% [markdown]
# ## 1. Which bytes a graph keeps
#
# In lesson 06 you added up what the nodes had saved, and told arrays apart by `id`. That is not enough. Two different arrays can share the same memory: `w.T` is a view of `w`. And even a small view keeps the **whole** array alive. **Predict** the bytes in each line.

# %% tags=["engine"]
def owner(array):
    """The array whose memory an array uses: itself, unless it is a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def arrays_kept_by(node):
    """The arrays that a node has saved, as a list; empty if the node has been freed."""
    try:
        return [array for array in node.saved_tensors if array is not None]
    except RuntimeError:
        return []

# %%
whole = np.zeros((100, 10))
for name, array in {"whole": whole, "whole.T": whole.T, "whole[0]": whole[0]}.items():
    print(f"{name:9s} shows {array.nbytes:5d} bytes and keeps {owner(array).nbytes:5d} alive", end="")
    print(", the same memory" if owner(array) is whole else "")

# %% [markdown]
# ### Exercise 1: saved bytes, parameters apart
#
# Write `saved_bytes(output)`: the bytes that the graph behind a tensor keeps for its rules.
#
# * Go through all nodes that can be reached from `output.grad_fn`. `arrays_kept_by(node)`, given above, returns the arrays that a node has saved.
# * Count **memory**, not arrays: each `owner` once, with all its bytes, even if many nodes and views use it.
# * **Separate the parameters**: the memory of the `data` of a leaf is alive anyway. Such a leaf is the `variable` of an `AccumulateGrad` node. Count this memory in a second number, and only if some node has saved it.

# %% [markdown] tags=["hint"] exercise="saved_bytes"
# `topological_order(output.grad_fn)` is a list of all nodes. A tensor that was not recorded has no `grad_fn`: return `(0, 0)` at once.

# %% [markdown] tags=["hint"] exercise="saved_bytes"
# First find the owners of the leaves: `{id(owner(node.variable.data)) for node in nodes if isinstance(node, AccumulateGrad)}`. Then make a dict from `id(owner(array))` to `owner(array).nbytes`, over all arrays of all nodes.

# %% [markdown] tags=["hint"] exercise="saved_bytes"
# At the end, add up the dict twice: the ids that are not among the leaves, and those that are.

# %% solution="saved_bytes" tags=["engine"]
def saved_bytes(output):
    """The memory that the graph behind output keeps for its rules, each piece counted once.

    output: MiniTensor of any shape
    Returns: (bytes of activations, bytes of parameters). Parameters: memory of the data of leaves
        that require grad. Activations: all other memory that a node has saved, including data
        without gradient. (0, 0) for a tensor without a grad_fn.

    >>> w = MiniTensor(np.ones((3, 2)), requires_grad=True)
    >>> x = MiniTensor(np.ones((5, 3)))
    >>> saved_bytes((x @ w).tanh())  # x has 15 entries, the output of tanh 10, and w 6
    (200, 48)
    """
    ### BEGIN SOLUTION
    if output.grad_fn is None:
        return 0, 0
    nodes = topological_order(output.grad_fn)
    leaves = {id(owner(n.variable.data)) for n in nodes if isinstance(n, AccumulateGrad)}
    kept = [owner(array) for node in nodes for array in arrays_kept_by(node)]
    sizes = {id(array): array.nbytes for array in kept}
    parameters = sum(size for key, size in sizes.items() if key in leaves)
    return sum(sizes.values()) - parameters, parameters
    ### END SOLUTION

# %% check="saved_bytes"

# %% [markdown] items="124"
# Now count what one forward pass of your own network keeps: eight layers of width 64, for several batch sizes. **Predict** the first of the batch sizes 1, 16, 64, 256 and 4096 at which the activations need more than the weights.

# %% items="124"
predict("What is the first of these batch sizes at which the activations need more?")


def tanh_layers(count, width):
    """Square weights, and one function per layer."""
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=(width, width)) / width**0.5 for _ in range(count)]
    weights = [MiniTensor(array, requires_grad=True) for array in arrays]
    return weights, [lambda x, w=w: (x @ w).tanh() for w in weights]


def chained(layers, x):
    for layer in layers:
        x = layer(x)
    return x


weights, layers = tanh_layers(8, 64)
for rows in (1, 16, 64, 256, 4096):
    output = chained(layers, MiniTensor(np.ones((rows, 64))))
    activations, parameters = saved_bytes(output)
    print(f"{rows:5d} rows: activations {activations / 1e6:7.3f} MB", end="   ")
    print(f"parameters {parameters / 1e6:.3f} MB   ratio {activations / parameters:6.2f}")

# %% [markdown] items="gap:saved_tensor_hooks"
# ## 2. Give the array away
#
# To keep less, you must act when a node saves an array. PyTorch has hooks for this, `torch.autograd.graph.saved_tensors_hooks(pack, unpack)`. Inside the block, each array that is saved is given to `pack`, and the node keeps **what pack returns**. When a rule asks for the array, `unpack` gets what `pack` returned and has to return an array.
#
# Your engine gets the same hooks. In the next cell, `record` packs the saved arrays, and `saved_tensors` unpacks them when a rule asks. In nested blocks, the inner one is used.

# %% tags=["engine"]
class SavedHooks(threading.local):
    """The pairs (pack, unpack) of the blocks that this thread is in, the innermost last."""

    pairs = ()


saved_hooks = SavedHooks()


class saved_tensors_hooks:
    """Inside, nodes keep pack(array) for each array that is saved, and rules get unpack of that."""

    def __init__(self, pack, unpack):
        self.pair = pack, unpack

    def __enter__(self):
        saved_hooks.pairs += (self.pair,)

    def __exit__(self, kind, error, traceback):
        saved_hooks.pairs = saved_hooks.pairs[:-1]


# The three originals; a second run of this cell must not find its own versions here.
record_before = getattr(record, "before", record)
release_before = getattr(Function.release, "before", Function.release)
saved_before = getattr(Function, "saved_before", Function.__dict__["saved_tensors"])


def record(ctx, inputs, output):
    """As before, but inside saved_tensors_hooks the node packs what it has saved."""
    record_before(ctx, inputs, output)
    if saved_hooks.pairs and output.grad_fn is ctx and ctx.saved_tensors:
        pack, unpack = saved_hooks.pairs[-1]
        arrays = ctx.saved_tensors
        release_before(ctx)
        ctx.packed = [None if array is None else pack(array) for array in arrays]
        ctx.unpack = unpack


def saved_tensors(self):
    """What was saved, from the node itself, or unpacked."""
    if self.packed is None:
        return saved_before.__get__(self, type(self))
    return tuple(None if thing is None else self.unpack(thing) for thing in self.packed)


def release(self):
    """As before; what pack returned is released as well."""
    self.packed = self.unpack = None
    release_before(self)


record.before, release.before = record_before, release_before
Function.packed = Function.unpack = None
Function.release, Function.saved_before = release, saved_before
Function.saved_tensors = property(saved_tensors)

# %% [markdown] items="gap:saved_tensor_hooks"
# The first two hooks only print. **Predict** the order in which the arrays come back.

# %% items="gap:saved_tensor_hooks"
predict(
    "In which order do the arrays come back?",
    "exactly as they were packed",
    "the last array first",
    "the last node first, its arrays as they were packed",
)


def look_in(array):
    print("  pack  ", array)
    return array


def look_out(array):
    print("  unpack", array)
    return array


x = MiniTensor([1.0, 2.0], requires_grad=True)
with saved_tensors_hooks(look_in, look_out):
    y = (x * 3).tanh().sum()
print("now backward")
y.backward()

# %% [markdown] items="gap:saved_tensor_hooks"
# The last node comes first, and within a node the arrays come as they were packed. The block had already ended when `backward` ran: a node remembers its own `unpack`.
#
# `pack` can return anything from which `unpack` can make the array: a smaller copy, a file name, or **a number**, if your program knows how to compute, say, array number 7 again.

# %% [markdown] items="125"
# ## 3. Checkpoint
#
# A first idea is one node for a whole function. Its `forward` runs the function without recording and saves the inputs. Its `backward` runs the function again, recorded, and calls `backward` inside. PyTorch's first checkpoints worked like this. **Predict** the gradient of the weight in two cases: the input of the block requires grad, or it is data, as in the first block of every network.

# %% tags=["demo"] items="125 F40"
class OneNode(Function):
    @staticmethod
    def forward(ctx, *arrays, function):
        ctx.save_for_backward(*arrays)
        ctx.function = function
        with no_grad():
            return function(*[MiniTensor(array) for array in arrays]).data

    @staticmethod
    def backward(ctx, grad):
        inputs = [MiniTensor(array, requires_grad=True) for array in ctx.saved_tensors]
        with enable_grad():
            ctx.function(*inputs).backward(grad)
        return tuple(x.grad.data for x in inputs)


def weight_gradient(way, input_requires_grad):
    first, head = MiniTensor([2.0], requires_grad=True), MiniTensor([3.0], requires_grad=True)
    x = MiniTensor([0.5], requires_grad=input_requires_grad)
    loss = (way(lambda x: (x * first).tanh(), x) * head).sum()
    loss.backward()
    return None if first.grad is None else first.grad.data


def in_one_node(function, x):
    return OneNode.apply(x, function=function)


predict(
    "What is the gradient of the weight if the input is data?",
    "the right one",
    "None",
    "an error",
)
for way in (plain, in_one_node):
    found = [weight_gradient(way, answer) for answer in (True, False)]
    print(f"input requires grad: {found[0]}   input is data: {found[1]}")

# %% [markdown] items="125 F40"
# With data as input, no input of the node requires grad. So the node is not recorded, and the weight gets **no gradient and no error**. The weight came in through the closure, not as an input.
#
# The hooks avoid this. The function runs **recorded**, as always, so the graph has all its nodes and edges. Only the saved arrays are given away: `pack` returns a number and drops the array. When the first rule asks, the function runs again, and other hooks collect what it saves this time.

# %% [markdown] items="125 F40 99"
# ### Exercise 2: checkpoint
#
# Write `checkpoint(function, *inputs)` with `saved_tensors_hooks`. It returns what the function returns. In the forward pass the function runs once, and none of the arrays it saves is kept. In the backward pass:
#
# * When the first array is asked for, the function runs **once** more, with the same inputs. `arrays_saved_in(function, inputs)` does this: it returns all arrays that the run saves, in order. It turns recording on, because `backward` may be called inside `no_grad`.
# * Each array is handed out once and then dropped, so that the backward pass frees memory step by step. If the array is asked for again (a second `backward` after `retain_graph=True`), the function runs again.
# * Each of these runs must save as many arrays as the first, of the same shapes, in the same order. Otherwise raise `RuntimeError(OTHER_RUN)`, and hand out none of its arrays, not even in a later backward pass.
# * An input may have been changed in place since then (lesson 09). `versions(inputs)` gives the versions of all tensors among the inputs, data included. Before each new run, compare them with those before the first run. If they differ, do not run the function but raise `RuntimeError(CHANGED_INPUT)`.
#
# The graph and the function keep the inputs alive, so copy no input.

# %% tags=["engine"]
OTHER_RUN = (
    "checkpoint: the second run of the function has saved different arrays from the first one. "
    "The function must do the same each time it is called with the same inputs."
)
CHANGED_INPUT = (
    "checkpoint: an input has been changed in place since the forward pass, so the function cannot "
    "be run again with the same inputs."
)


def versions(inputs):
    """The versions of the inputs that are MiniTensors."""
    return [x._version for x in inputs if isinstance(x, MiniTensor)]


def arrays_saved_in(function, inputs):
    """Run function(*inputs), recorded, and return the list of all arrays that its nodes save."""
    found = []

    def keep(array):
        found.append(array)
        return array

    with enable_grad(), saved_tensors_hooks(keep, lambda array: array):
        function(*inputs)
    return found

# %% [markdown] tags=["hint"] exercise="checkpoint"
# `pack` in the forward pass: call `shapes.append(array.shape)`, and return the number `len(shapes) - 1`. The list lives in `checkpoint`, and `pack` and `unpack` are functions inside it.

# %% [markdown] tags=["hint"] exercise="checkpoint"
# `unpack(number)` looks into a dict `ready`. If the number is not there, compare the versions, call `arrays_saved_in(function, inputs)`, compare the shapes, and only then fill the dict: `ready.update(enumerate(found))`. Store the initial versions in the first line of `checkpoint`.

# %% [markdown] tags=["hint"] exercise="checkpoint"
# `return ready.pop(number)` hands out an array and drops it. The forward pass is `with saved_tensors_hooks(pack, unpack): return function(*inputs)`.

# %% solution="checkpoint" tags=["engine"]
def checkpoint(function, *inputs):
    """function(*inputs), without saving anything; the backward pass runs the function again.

    function: takes the inputs; it may use other tensors too, such as weights, and other checkpoints
    inputs: MiniTensors or anything else; function gets them unchanged
    Returns: what function returns. Values and gradients are those of function(*inputs), bit by bit.
    Raises: in the backward pass, RuntimeError(OTHER_RUN) if a new run saves a different number
        of arrays, or arrays of other shapes; RuntimeError(CHANGED_INPUT) if an input that is a
        MiniTensor has been changed in place since checkpoint was called

    >>> x = MiniTensor([0.5, 1.0], requires_grad=True)
    >>> y = checkpoint(lambda x: (x * 3).tanh(), x)
    >>> y.backward(np.array([1.0, 10.0]))
    >>> x.grad.data.round(3)
    array([0.542, 0.296])
    """
    ### BEGIN SOLUTION
    shapes, ready, before = [], {}, versions(inputs)

    def pack(array):
        shapes.append(array.shape)
        return len(shapes) - 1

    def unpack(number):
        if number not in ready:
            if versions(inputs) != before:
                raise RuntimeError(CHANGED_INPUT)
            found = arrays_saved_in(function, inputs)
            if [array.shape for array in found] != shapes:
                raise RuntimeError(OTHER_RUN)
            ready.update(enumerate(found))
        return ready.pop(number)

    with saved_tensors_hooks(pack, unpack):
        return function(*inputs)
    ### END SOLUTION

# %% check="checkpoint"

# %% [markdown]
# The next cell checks the other half of the promise: when the function runs, and what is alive in between.

# %% check="checkpoint_memory"

# %% [markdown] items="125"
# Now run the first experiment again, with data as input. Then compare a network like that of section 1 with PyTorch, with each layer in its own checkpoint.

# %% tags=["demo"] items="125"
print("input is data, plain:        ", weight_gradient(plain, False))
print("input is data, checkpoint:   ", weight_gradient(checkpoint, False))

weights, layers = tanh_layers(8, 16)
rows = np.random.default_rng(5).normal(size=(20, 16))
x = MiniTensor(rows)
for layer in layers:
    x = checkpoint(layer, x)
x.sum().backward()

weights_torch = [torch.tensor(w.data, requires_grad=True) for w in weights]
x = torch.tensor(rows)
for w in weights_torch:
    x = torch_checkpoint(lambda x, w=w: (x @ w).tanh(), x, use_reentrant=False)
x.sum().backward()
difference = max(np.abs(w.grad.data - t.grad.numpy()).max() for w, t in zip(weights, weights_torch))
print(f"gradients, difference from PyTorch's: {difference:.1e}")

# %% [markdown]
# How much memory is really in use? `saved_bytes` cannot say: it reads `saved_tensors`, and reading makes the checkpoint recompute everything. So measure from outside: NumPy tells Python's `tracemalloc` about all its memory. In the next cell every layer takes a sample when it runs, and when its rule runs. The gray line marks the start of the backward pass. **Predict** the three curves: no checkpoints, four segments of four layers, and one checkpoint around all sixteen.

# %% tags=["demo"]
class WatchedTanh(Function):
    """tanh that notes how much memory is in use, forward and backward."""

    @staticmethod
    def forward(ctx, a):
        output = np.tanh(a)
        ctx.save_for_backward(output)
        samples.append(tracemalloc.get_traced_memory()[0])
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        samples.append(tracemalloc.get_traced_memory()[0])
        return grad * (1 - output**2)


def watched_step(length, depth=16):
    """Bytes in use during a step with checkpoints around segments of this length; 0: none."""
    weights, _ = tanh_layers(depth, 32)
    x = MiniTensor(np.ones((1000, 32)))
    samples.clear()
    with traced_memory():
        for start in range(0, depth, length or depth):
            part = weights[start : start + (length or depth)]

            def segment(x, part=part):
                for w in part:
                    x = WatchedTanh.apply(x @ w)
                return x

            x = checkpoint(segment, x) if length else segment(x)
        loss = (x * x).sum()
        del x
        turn = len(samples)
        loss.backward()
    return turn, np.array(samples) / 1e6


predict(
    "How high is the hill with one checkpoint around everything?",
    "as high as without checkpoints",
    "half as high",
    "almost flat",
)
samples = []
segments = {"no checkpoints": 0, "four segments of four": 4, "all in one checkpoint": 16}
plot_hills({title: watched_step(length) for title, length in segments.items()})

# %% [markdown] items="F39"
# Without checkpoints there is one hill. With four segments there are small hills: each segment is recomputed, used, and freed. With **one** checkpoint around everything the hill is at least as high as before, only later: at the end of the second run all arrays are there. A single checkpoint saves nothing.

# %% [markdown] items="127"
# ## 4. Where to cut
#
# Sixteen layers each save one array of the same size. How many arrays are alive at the peak, if the segments have `k` layers each? The input of each segment is kept until backward has passed it, except that of the first, which is data. The `k` arrays of one segment are alive for a while. **Predict** the best `k`.

# %% items="F39"
predict("Sixteen layers: what is the best length of a segment?")


def most_alive(depth, length):
    """Arrays alive at the peak: the borders, and one segment."""
    borders = -(-depth // length) - 1
    return borders + length


for depth in (16, 36, 100):
    counts = {length: most_alive(depth, length) for length in range(1, depth + 1)}
    least = min(counts.values())
    best = [length for length, count in counts.items() if count == least]
    print(f"depth {depth:3d}: every layer {counts[1]:3d}, all in one {counts[depth]:3d}", end=", ")
    print(f"best {least:2d} with segments of {best}, square root {depth**0.5:.0f}")

# %% [markdown] items="F39"
# Both longer and shorter segments need more. A checkpoint around **each** layer keeps as much as no checkpoint at all: the input of every layer. The sum `n / k + k` is smallest for `k` near the square root of `n`. Then about `2 * sqrt(n)` arrays are alive instead of `n`.
#
# The planner measures real steps on your computer, once for each position of the slider "measurement", and shows the prediction beside them.

# %% tags=["demo"] items="F39"
checkpoint_planner(depth="36", length=6)

# %% [markdown]
# ### Exercise 3: in segments
#
# Write `in_segments(layers, x, cuts)`: run a list of layers in order, cut into segments. `cuts` are the layers before which a cut is made: with six layers and cuts `(2, 4)` the segments are layers 0 and 1, layers 2 and 3, layers 4 and 5.
#
# Each segment runs in a `checkpoint`, **except the last**: the backward pass begins with it and would recompute its arrays at once, so dropping them saves nothing. Without cuts there is one segment, the last.
#
# The functions run a second time after your loop has ended. A function that looks up a loop variable then finds its last value.

# %% [markdown] tags=["hint"] exercise="in_segments"
# The borders are `[0, *cuts, len(layers)]`, and the segments lie between neighbors: `zip(borders, borders[1:])`.

# %% [markdown] tags=["hint"] exercise="in_segments"
# Call a helper with the layers of one segment and let it return a function: it has its own variables. Or use a default value, which is computed at once: `def segment(x, part=layers[start:end]):`.

# %% tags=["engine"] solution="in_segments"
def in_segments(layers, x, cuts):
    """The layers applied to x in turn, each segment but the last in a checkpoint.

    layers: list of functions from a MiniTensor to a MiniTensor
    x: MiniTensor
    cuts: increasing integers from 1 to len(layers) - 1, or none; a segment begins at each
    Returns: MiniTensor. Both `layers` and `cuts` stay as they are

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> in_segments([lambda x: x * 2, lambda x: x + 1, lambda x: x * 10], x, (2,)).data
    array([30., 50.])
    """
    ### BEGIN SOLUTION
    borders = [0, *cuts, len(layers)]
    for start, end in zip(borders, borders[1:]):

        def segment(x, part=layers[start:end]):
            for layer in part:
                x = layer(x)
            return x

        x = segment(x) if end == len(layers) else checkpoint(segment, x)
    return x
    ### END SOLUTION

# %% check="in_segments"

# %% [markdown] items="F39"
# ## 5. What it costs
#
# Some texts say that checkpoints need "about 30% more forward time". **Predict** two ratios for a network in which every layer is in some checkpoint: how often the layers run, and how many multiplications a whole step needs.

# %% tags=["demo"] items="125 F37"
def one_step(length, depth=16, width=48, rows=100):
    """Runs of layers, and multiplications in matrix products, of a step of your engine."""
    weights, _ = tanh_layers(depth, width)
    counts = {"layers": 0, "multiplications": 0}
    product = counting_product(Function, counts)
    layers = [lambda x, w=w: product(x, w).tanh() for w in weights]
    x = MiniTensor(np.ones((rows, width)), requires_grad=True)
    for first in range(0, depth, length or depth):
        part = layers[first : first + (length or depth)]
        x = checkpoint(chained, part, x) if length else chained(part, x)
    x.sum().backward()
    return counts


predict("How many times as many multiplications does a whole step need with checkpoints?")
without, with_checkpoints = one_step(0), one_step(4)
for name, count in without.items():
    print(f"{name:15s} {count:9d} and {with_checkpoints[name]:9d}", end="   ")
    print(f"ratio {with_checkpoints[name] / count:.2f}")

# %% [markdown] items="125 F37"
# The forward work **doubles**: every layer runs twice, +100%. But the forward pass is only a third of a whole step, because the backward pass needs two products where the forward pass needs one. So the "30%" belongs to the step, not to the forward pass. The time need not follow this ratio, since not all of it goes into products: in the planner a step with checkpoints may take twice as long.
#
# And how much memory does it save? Put a checkpoint around each block of a Transformer in PyTorch, with 1, 2, 4 and 8 blocks. **Predict** the first number.

# %% tags=["demo"] items="125 126 F37"
predict("With one block, how much of the peak does its checkpoint save?", "nothing", "half", "most")
for depth in (1, 2, 4, 8):
    peaks = [step_bytes(depth, 128, 8, 128, words=100, run=run)[2] for run in (plain, again)]
    print(f"{depth} blocks: saving {1 - peaks[1] / peaks[0]:4.0%}")

# %% [markdown] items="125 F37"
# There is no fixed factor here either. One block saves nothing; it even needs a little more. Some texts say that checkpoints save "60%". Here two blocks save less than that, and four blocks more.

# %% [markdown] items="126 F37"
# Now return to the model from the start: 12 blocks, 32 texts, 50,000 words. **Predict** what `meta` says with a checkpoint around each block, and what is left when most of the activations are gone.

# %% tags=["demo"] items="126 F37 F38"
print(f"{'GiB':29s} {'held':>6s} {'peak':>6s}   with checkpoints {'held':>6s} {'peak':>6s}")
for name, classify in (("cross entropy", True), ("sum of the scores", False)):
    _, *one = step_bytes(12, 512, 32, 512, classify=classify)
    _, *two = step_bytes(12, 512, 32, 512, run=again, classify=classify)
    print(f"{name:29s} {one[0]:6.2f} {one[1]:6.2f}   {'':16s} {two[0]:6.2f} {two[1]:6.2f}")
print(f"one table of scores, 32 * 512 * 50000 numbers: {32 * 512 * 50_000 * 4 / GiB:.2f} GiB")

# %% [markdown] items="126 F37 F38"
# With the cross entropy, what is left is mostly **three tables of scores**: the logarithms that are kept, the gradient of the logarithms, and the gradient of the scores. A checkpoint around a block cannot remove them. The plain sum needs none of them: its gradient is one number, stretched.

# %% [markdown] items="128"
# ## Quiz

# %% test="quiz_13" points=5 tags=["quiz"] items="124 125 127"
question(
    "what_dominates",
    "What needs the most memory in training?",
    right("It depends: activations grow with the batch, weights and moments do not.", "In your table a batch of one was dominated by the weights and what belongs to them, a batch of 32 by the activations."),
    wrong("Always the weights", "With 32 texts the activations were more than thirty times the weights.", misconception="weights_dominate"),
    wrong("Always the activations", "For one text it was the other way around.", misconception="fixed_factor"),
    wrong("The gradients of the activations", "They live for a moment: each is dropped when the next node has run.", misconception="all_gradients_are_kept"),
)
question(
    "how_often",
    "Every layer of a network is in a checkpoint. How much more forward work is done?",
    right("100%: every layer runs twice.", "You counted the runs."),
    wrong("About 30%", "That is the extra work in a whole step: the forward pass is about a third of it.", misconception="thirty_percent_of_forward"),
    wrong("About 60%", "Such a number is quoted for memory, but it is not a law there either.", misconception="fixed_factor"),
    wrong("None: the values are taken from the backward pass", "The backward pass needs them; it does not make them.", misconception="backward_computes_values"),
)
question(
    "one_block",
    "A whole network is put into one checkpoint. What happens to the peak memory?",
    right("Nothing is saved: at the end of the second run all arrays are there.", "The hill comes later, and is no lower."),
    wrong("It falls to the size of the input.", "Between forward and backward, yes. The peak comes during the backward pass.", misconception="peak_is_after_forward"),
    wrong("It is halved.", "All arrays of the second run are needed at once.", misconception="fixed_factor"),
    wrong("It falls to the square root.", "That needs several segments, about as many as they are long.", misconception="one_cut_is_enough"),
)
question(
    "every_layer",
    "100 equal layers, each of which saves its output. Which plan needs the least memory?",
    right("Segments of about 10 layers", "9 borders and 10 layers: 19 arrays instead of 100."),
    wrong("A checkpoint around every layer", "Then the inputs of all layers are kept, as many arrays as without checkpoints.", misconception="finer_is_better"),
    wrong("Two segments of 50", "Then 50 arrays of one segment are alive at a time, and the border.", misconception="one_cut_is_enough"),
    wrong("All plans need the same; only the time differs.", "You measured a curve with its minimum in the middle.", misconception="plans_are_equal"),
)
question(
    "why_none",
    "If a checkpoint is one node (in PyTorch: `use_reentrant=True`), the first block of a network gets no gradient. Why?",
    right("Its input is data: no input of the one node requires grad, so the node is not recorded.", "The weights came in through the closure, which the node does not see."),
    wrong("Its gradient is too small.", "It is None, not small.", misconception="none_means_zero"),
    wrong("The first block is never computed again.", "It is not even recorded.", misconception="modes_are_retroactive"),
    wrong("The memory of the first block is freed too early.", "Freed values raise an error. Here nothing asks for them.", misconception="freed_means_none"),
)
question(
    "saved_hooks",
    "What may `pack` of saved-tensor hooks return?",
    right("Anything from which `unpack` can get the array: a smaller copy, a file name, a number", "The node keeps it without looking at it."),
    wrong("Only a tensor of the same shape", "Yours returned a number.", misconception="pack_returns_tensors"),
    wrong("Nothing; it is for looking only", "Then `unpack` would get None.", misconception="hooks_only_look"),
    wrong("A gradient", "Hooks of tensors get gradients. These hooks get values of the forward pass.", misconception="hooks_mixed_up"),
)

# %% [markdown] question="why_one_checkpoint_saves_nothing" points=3
# ### Why not one big checkpoint?
#
# Somebody puts a whole network into one checkpoint. Between forward and backward nearly nothing is held, but the peak of memory is as high as before. **Why**? And why do several segments help? Answer in one paragraph.
#
# ### BEGIN MARK SCHEME
# *A good answer:* The backward pass needs the saved values of the whole network, so the checkpoint runs all of it again, and then all values are there at once: the peak has only moved to the beginning of the backward pass. With several segments, only the borders are kept, and each segment is computed again, used and released before the one before it. The peak is the borders plus the largest segment.
#
# * 1 point: the backward pass needs the values, and computing them again brings all of them back
# * 1 point: the peak moves to the beginning of the backward pass
# * 1 point: with segments only one segment's values are there at a time, beside the borders
#
# Wrong answers, and what they get:
#
# * *Because computing again takes memory for the program*: no point.
# * *It saves memory, since nothing is held after forward*: no point. That is not the peak.
# ### END MARK SCHEME

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | activations | what rules need; they grow with the batch and with the network; weights grow only with the network |
# | saved bytes | count memory, not arrays: views share it, parameters are alive anyway |
# | saved-tensor hooks | a node keeps what `pack` returns; `unpack` must turn it back into the array |
# | checkpoint | keep the inputs; when the first rule asks, run the function again, recorded |
# | the condition | the second run does the same: random numbers, counters, closures |
# | the cost | forward work +100%, a whole step about +33% in multiplications |
# | where to cut | near the square root for equal layers; after small outputs for others |
# | one block | saves nothing; look at the peak, not at what is held after forward |
# | `use_reentrant=False` | the hooks; True is one node that does not see closures |
#
# You have saved memory by computing more. The next lesson shows that computing is the cheap part: a chain of small operations spends most of its time moving arrays. Your engine learns to run such a chain as one operation.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without its exercises, which only earn points. Its sections do not depend on each other.

# %% [markdown] items="gap:saved_tensor_hooks"
# ## Smaller copies
#
# Hooks can also keep each array in float16: a quarter of the bytes. **Predict** how the gradient changes. PyTorch runs the same two hooks.

# %% tags=["demo"] items="gap:saved_tensor_hooks"
def small(array):
    return array.astype(np.float16)


def large(array):
    return array.astype(np.float64)


def gradient_of_weights(hooks, pack, unpack, make):
    arrays = np.random.default_rng(3).normal(size=(2, 40, 40)) / 6
    first, second = make(arrays[0], requires_grad=True), make(arrays[1], requires_grad=True)
    with hooks(pack, unpack):
        loss = ((first @ second).tanh() @ second).sum()
    loss.backward()
    grad = first.grad
    return grad.data if isinstance(grad, MiniTensor) else grad.numpy()


def unchanged(array):
    return array


torch_hooks = torch.autograd.graph.saved_tensors_hooks
exact = gradient_of_weights(saved_tensors_hooks, unchanged, unchanged, MiniTensor)
mine = gradient_of_weights(saved_tensors_hooks, small, large, MiniTensor)
theirs = gradient_of_weights(torch_hooks, lambda t: t.half(), lambda t: t.double(), torch.tensor)
print(f"size of the gradient            {np.abs(exact).max():.2f}")
print(f"error through float16           {np.abs(mine - exact).max():.1e}")
print(f"difference from PyTorch's float16 {np.abs(mine - theirs).max():.1e}")

# %% [markdown] items="gap:saved_tensor_hooks"
# The forward pass is exact, and the gradient has a small error.

# %% [markdown] items="F38 F39"
# ## Plan the cuts
#
# Real layers differ. Some save a lot and have a small output. So do not cut at equal distances, but after a **small output**. A planner needs two numbers per layer, in bytes: `saved[i]`, what the graph of layer `i` keeps, and `outputs[i]`, the size of its output, which a cut after it keeps until backward has passed it. Our estimate of the peak is:
#
# > the output of the layer before each cut, plus `saved` of the segment with the largest sum.
#
# It is too high if backward has already passed some cuts by then.

# %% [markdown] items="F38 F39"
# ### Exercise 4: a planner
#
# Write both functions. `best_cuts` may try everything: for `n` layers there are `2 ** (n - 1)` ways to cut, and the checks use at most 12 layers. If several plans are equally good, any is right.

# %% [markdown] tags=["hint"] exercise="best_cuts"
# `peak_bytes`: a cut at `c` keeps `outputs[c - 1]`. The segments lie between neighbors of `[0, *cuts, len(saved)]`; the largest `sum(saved[start:end])` counts.

# %% [markdown] tags=["hint"] exercise="best_cuts"
# `itertools.combinations(range(1, n), count)` gives all choices of `count` cuts, in increasing order. Go through all counts from 0 to `n - 1`, and take the choice with the smallest `peak_bytes`: `min(choices, key=...)`.

# %% solution="best_cuts"
import itertools


def peak_bytes(saved, outputs, cuts):
    """Estimated bytes at the peak of a step: outputs before the cuts, plus the largest segment.

    saved, outputs: lists of integers, one per layer
    cuts: increasing integers from 1 to len(saved) - 1, or none. All three stay as they are
    Returns: an integer

    >>> peak_bytes([10, 10, 30, 10], [5, 1, 5, 5], (2,))
    41
    """
    ### BEGIN SOLUTION
    borders = [0, *cuts, len(saved)]
    segments = [sum(saved[start:end]) for start, end in zip(borders, borders[1:])]
    return sum(outputs[cut - 1] for cut in cuts) + max(segments)
    ### END SOLUTION


def best_cuts(saved, outputs):
    """The cuts with the smallest peak_bytes, in increasing order.

    saved, outputs: lists of integers, one per layer, 1 to 12 layers; they stay as they are

    >>> best_cuts([10, 10, 30, 10], [5, 1, 50, 5])
    (2,)
    """
    ### BEGIN SOLUTION
    places = range(1, len(saved))
    choices = [c for count in range(len(saved)) for c in itertools.combinations(places, count)]
    return min(choices, key=lambda cuts: peak_bytes(saved, outputs, cuts))
    ### END SOLUTION

# %% check="best_cuts"

# %% [markdown] items="F39"
# Try your planner on a network whose width goes up and down. `saved_bytes` gives one number for each layer; the other is the size of its output. **Predict** where it cuts. Then `tracemalloc` measures the peak of a real step.

# %% items="F39 127"
widths = [32, 32, 128, 128, 8, 128, 128, 8, 128, 128, 32]
generator = np.random.default_rng(7)
weights = [
    MiniTensor(generator.normal(size=shape) / shape[0] ** 0.5, requires_grad=True)
    for shape in zip(widths, widths[1:])
]


def gated(w):
    def layer(x):
        x = x @ w
        return x * x.tanh()

    return layer


layers = [gated(w) for w in weights]
data = MiniTensor(np.random.default_rng(8).normal(size=(1000, widths[0])))
totals, outputs, x = [0], [], data
for layer in layers:
    x = layer(x)
    totals.append(saved_bytes(x)[0])
    outputs.append(x.data.nbytes)
saved = [after - before for before, after in zip(totals, totals[1:])]
del x
plan = best_cuts(saved, outputs)
print("MB saved per layer:", [round(size / 1e6, 2) for size in saved])
print("the planner cuts before layers", plan)

# %% tags=["demo"] items="127 F39"
def measured_step(cuts):
    """The most bytes in use during a step, beyond those at its start, and the gradients."""
    for w in weights:
        w.grad = None
    with traced_memory():
        before = tracemalloc.get_traced_memory()[0]
        loss = (in_segments(layers, data, cuts) ** 2).mean()
        loss.backward()
        most = tracemalloc.get_traced_memory()[1] - before
    return most, [w.grad.data for w in weights]


whole, right = measured_step(())
print(f"{'no cuts':22s} predicted {peak_bytes(saved, outputs, ()) / 1e6:5.2f} MB", end="   ")
print(f"measured {whole / 1e6:5.2f} MB")
plans = {"the plan": plan, "equal, every 3": (3, 6, 9), "every layer": tuple(range(1, 10))}
for name, cuts in plans.items():
    most, gradients = measured_step(cuts)
    same = all(map(np.array_equal, gradients, right))
    print(f"{name:22s} predicted {peak_bytes(saved, outputs, cuts) / 1e6:5.2f} MB", end="   ")
    print(f"measured {most / 1e6:5.2f} MB   {most / whole:4.0%}   same gradients: {same}")

# %% [markdown] items="F39"
# The measured values are higher than predicted, because some gradients and unsaved products need memory too. Here the order is as predicted.

# %% [markdown] items="125 F37"
# ## A Transformer with checkpoints
#
# A small Transformer runs once without checkpoints, and once with one around each block. **Predict** the difference between the gradients, and how many parameters get none.

# %% tags=["demo"] items="126"
torch.manual_seed(0)
small_model = Transformer(4, 32, words=50)
tokens = torch.randint(50, (2, 12))
found = []
for way in (plain, again):
    small_model.zero_grad()
    scores = small_model(tokens, way).view(-1, 50)
    nn.functional.cross_entropy(scores, tokens.view(-1)).backward()
    found.append([parameter.grad for parameter in small_model.parameters()])
print("parameters:", len(found[1]), "  without gradient:", sum(g is None for g in found[1]))
difference = max((a - b).abs().max().item() for a, b in zip(*found))
print("largest difference of the gradients:", difference)

# %% [markdown] items="F38"
# Next, some published advice: "checkpoint the attention, but not the output projection, it is cheap to store". Measure what is alive after each kind of layer, its output included, and what it costs to recompute: multiplications and additions in matrix products, as PyTorch counts them. **Predict** which layer gives back the most memory for the work.

# %% tags=["demo"] items="F38 127"
from torch.utils.flop_counter import FlopCounterMode

predict(
    "Which layer gives back the most memory for the work?",
    "attention",
    "wide layer",
    "output projection",
)
with torch.device("meta"):
    x, ids = torch.empty(32, 512, 512, requires_grad=True), torch.empty(32, 512, dtype=torch.long)
    wider = torch.empty(32, 512, 2048, requires_grad=True)
    attention = nn.MultiheadAttention(512, 8, batch_first=True)
    head, scores = nn.Linear(512, 50_000), torch.empty(32 * 512, 50_000, requires_grad=True)
    kinds = {
        "embedding": (embedding := nn.Embedding(50_000, 512), lambda: embedding(ids)),
        "attention": (attention, lambda: attention(x, x, x)[0]),
        "wide layer": (wide := nn.Linear(512, 2048), lambda: wide(x)),
        "GELU": (None, lambda: nn.functional.gelu(wider)),
        "layer norm": (norm := nn.LayerNorm(512), lambda: norm(x)),
        "output projection": (head, lambda: head(x)),
        "cross entropy": (None, lambda: nn.functional.cross_entropy(scores, ids.view(-1))),
    }
    for name, (module, compute) in kinds.items():
        known = [x, wider, ids, scores, *(module.parameters() if module else ())]
        with FlopCounterMode(display=False) as counter, LiveBytes(known) as live:
            result = compute()
        flops, mebibytes = counter.get_total_flops() / 1e9, live.now() / 2**20
        print(f"{name:18s} alive afterward {mebibytes:5.0f} MiB", end="   ")
        print(f"to compute again {flops:5.1f} GFLOP", end="   ")
        print(f"{mebibytes / flops:3.1f} MiB per GFLOP" if flops else "")
        del result

# %% [markdown] items="F38"
# The output projection is neither cheap to store nor cheap to repeat, and the cross entropy after it keeps just as much. An embedding is a lookup without any product. Norms and GELU are nearly free to repeat. Of the layers with products, attention gives back the most memory for the work.

# %% [markdown] items="127"
# ## What runs twice
#
# The promise rests on one condition: **the second run does the same as the first.** Dropout draws random numbers. **Predict** which of the two gradients is right.

# %% tags=["demo"]
def dropout(x, p, generator):
    """Each entry becomes 0 with probability p, and is divided by 1 - p otherwise."""
    return x * ((generator.random(x.shape) >= p) / (1 - p))


def dropped_gradient(way):
    generator = np.random.default_rng(8)
    x = MiniTensor(np.ones(8), requires_grad=True)
    y = way(lambda x: dropout(x, 0.5, generator).exp(), x)
    y.backward(np.ones(8))
    return y.data, x.grad.data


predict("Which of the two gradients is right?", "plain", "checkpoint", "both", "neither")
for name, way in (("plain", plain), ("checkpoint", checkpoint)):
    value, gradient = dropped_gradient(way)
    print(f"{name:11s} dropped {(value == 1).astype(int)}   gradient {gradient.round(1)}")

# %% [markdown] items="127"
# In the plain run the gradient is 0 exactly where an entry was dropped. In the checkpoint the second run dropped others, and all shapes fit, so there is no error: **the gradient belongs to a different network** than the value. PyTorch keeps the state of its generator for this reason (`preserve_rng_state=True`).
#
# A NumPy generator has a state that you can read and set: `generator.bit_generator.state`. Reading gives a separate dict, which does not change when numbers are drawn.

# %% [markdown] items="127"
# ### Exercise 5: repeatable
#
# Write `repeatable(function, generators)`. It returns a function that does what `function` does, with one difference. In its **first** call, which may come much later, the generators advance as usual. In **each later** call the function gets the same random numbers as in the first, and afterward the generators are back in their state before this call, even if the function raises an error. A first call that raises an error also counts as the first.
#
# Then `checkpoint(repeatable(function, [generator]), x)` is right, with a new `repeatable` for each forward pass.

# %% [markdown] tags=["hint"] exercise="repeatable"
# At the first call, remember `[g.bit_generator.state for g in generators]` before the function runs. How do you know that it is the first call? Nothing has been stored yet.

# %% [markdown] tags=["hint"] exercise="repeatable"
# In a later call: remember the current states, set the states of the first call, run the function inside `try:`, and restore the remembered states in `finally:`.

# %% solution="repeatable" tags=["engine"]
def repeatable(function, generators):
    """A function that draws the same random numbers in every call as in its first one.

    function: any function of positional arguments; arguments and result stay unchanged
    generators: list of np.random.Generator, those that function draws from
    Returns: the function. After each call but the first, the generators are as before the call.

    >>> generator = np.random.default_rng(0)
    >>> draw = repeatable(lambda: generator.integers(100, size=3).tolist(), [generator])
    >>> first, other = draw(), generator.integers(100, size=3).tolist()
    >>> draw() == first, first == other
    (True, False)
    """
    ### BEGIN SOLUTION
    first = []

    def call(*arguments):
        now = [generator.bit_generator.state for generator in generators]
        if not first:
            first.append(now)
            return function(*arguments)
        move(generators, first[0])
        try:
            return function(*arguments)
        finally:
            move(generators, now)

    def move(generators, states):
        for generator, state in zip(generators, states):
            generator.bit_generator.state = state

    return call
    ### END SOLUTION

# %% check="repeatable"

# %% tags=["demo"] items="127"
def dropped_gradient_again(way):
    generator = np.random.default_rng(8)
    x = MiniTensor(np.ones(8), requires_grad=True)
    block = repeatable(lambda x: dropout(x, 0.5, generator).exp(), [generator])
    way(block, x).backward(np.ones(8))
    return x.grad.data


same = np.array_equal(dropped_gradient_again(plain), dropped_gradient_again(checkpoint))
print("plain and checkpoint, equal to the last bit:", same)

# %% [markdown] items="127"
# Two runs can also differ because of a **side effect** or a **changed variable**. As a side effect, PyTorch's BatchNorm counts the batches it has seen. Here it is inside a checkpoint. **Predict** the counts after one training step.

# %% tags=["demo"] items="127"
predict("How many batches has the BatchNorm in the checkpoint counted after the step?")
for name, way in (("plain", plain), ("checkpoint", again)):
    norm = nn.BatchNorm1d(3)
    x = torch.randn(5, 3, requires_grad=True)
    y = way(norm, x)
    before = norm.num_batches_tracked.item()
    y.sum().backward()
    print(f"{name:11s} after forward {before}, after backward {norm.num_batches_tracked.item()}")

# %% [markdown] items="127"
# Some texts say: "Side effects run twice during backward." In fact they run once in each pass: once forward, and once more during backward. (PyTorch ends the second run as soon as it has what the rules need. So a line after the last saved value runs only once.) Anything that must happen once per step (counters, running statistics, a line in a log) does not belong in a checkpoint.
#
# Next, a weight that the function finds through its closure is changed **between** forward and backward. **Predict** which of the four lines give an error.

# %% tags=["demo"] items="127"
def changed_in_between(way, as_argument):
    w = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    if as_argument:
        y = way(lambda x, w: (x * w).tanh(), x, w)
    else:
        y = way(lambda x: (x * w).tanh(), x)
    loss = (y**2).sum()
    with torch.no_grad():
        w.mul_(3)
    loss.backward()
    return [round(value, 4) for value in x.grad.tolist()]


predict("Which of the four lines give an error?", "none", "all but one", "those of plain", "all")
for name, way in (("plain", plain), ("checkpoint", again)):
    for as_argument in (True, False):
        try:
            found = changed_in_between(way, as_argument)
        except RuntimeError as error:
            found = "RuntimeError: " + str(error)[:46] + " ..."
        print(f"{name:11s} {'argument' if as_argument else 'closure ':8s} {found}")
x = np.array([1.0, 2.0])
for name, w in (("old", np.array([0.5, 1.0])), ("new", np.array([1.5, 3.0]))):
    y = np.tanh(x * w)
    print(f"right for the {name} weight: {(2 * y * (1 - y**2) * w).round(4)}")

# %% [markdown] items="127"
# If the weight is an argument, the change is noticed, because PyTorch compares the versions of the arguments, as you do. Through a closure it is **silently wrong**. The gradient fits neither weight: the checkpoint used the new one, the square after it the old. So pass what may change as an argument, and call `optimizer.step()` after `backward`.

# %% [markdown] items="F38"
# ## Two variants in PyTorch
#
# `torch.utils.checkpoint` has an argument `use_reentrant`. True selects the old version, the one node of section 3; False selects the hooks, which you have built. **Predict** what each does with a block whose input is data, and with `torch.autograd.grad`.

# %% tags=["demo"] items="F40"
import warnings


def try_variant(action, **options):
    w = torch.tensor([2.0], requires_grad=True)
    head = torch.tensor([3.0], requires_grad=True)
    x = torch.tensor([0.5], requires_grad=action == "grad of x")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            y = torch_checkpoint(lambda x: (x * w).tanh(), x, **options)
            node = y.grad_fn.name() if y.grad_fn else "no node"
            if action == "grad of x":
                found = [g.item() for g in torch.autograd.grad((y * head).sum(), (x,))]
            else:
                (y * head).sum().backward()
                found = None if w.grad is None else [w.grad.item()]
        except RuntimeError as error:
            found = "RuntimeError: " + str(error)[:24] + " ..."
    return f"{node:26s} {found}   warnings: {len(caught)}"


for action in ("backward", "grad of x"):
    for options in ({"use_reentrant": True}, {"use_reentrant": False}, {}):
        said = str(options.get("use_reentrant", "not said"))
        print(f"{action:9s} {said:8s} {try_variant(action, **options)}")

# %% [markdown] items="F40"
# The old variant loses the gradient of the first block, and refuses `autograd.grad`. The new one leaves the nodes of the function in the graph; it has no node of its own. If you do not choose, you get the old variant and a warning in this version of PyTorch: so say `use_reentrant=False`.

# %% [markdown] items="F40"
# ## Beyond one device
#
# Checkpoints shrink activations. When the batch is small and the model large, the rest is the problem: weights, gradients and the two moments of Adam, 16 bytes per parameter in float32. Several devices can share that. Each keeps only a part, and parts are sent around. **Predict** which of the three saves the most memory per device when it is split: the moments, the gradients or the weights.

# %% items="128"
def gib_per_device(parameters, devices, shared):
    """float32: 4 bytes each for weight and gradient, 8 for the two moments; shared ones are split."""
    sizes = {"moments": 8, "gradients": 4, "weights": 4}
    split = {name: size / devices if name in shared else size for name, size in sizes.items()}
    return parameters * sum(split.values()) / 2**30


for shared in ((), ("moments",), ("moments", "gradients"), ("moments", "gradients", "weights")):
    sizes = "  ".join(f"{gib_per_device(7e9, devices, shared):6.1f}" for devices in (1, 8, 64))
    print(f"shared: {', '.join(shared) or 'nothing':29s} {sizes}")
print("GiB per device for 7e9 parameters on 1, 8 and 64 devices")

# %% [markdown] items="128"
# The optimizer state is half of it, and it is used only once per step, so it is split first. These three steps are called ZeRO 1, 2 and 3; PyTorch's fully sharded data parallel (FSDP) does the last one. None of them divides activations: those belong to each device's part of the batch, and checkpoints come on top. The price is the traffic between the devices.

# %% [markdown]
# ## Questions about this part

# %% test="quiz_13_further" points=1 tags=["quiz"]
question(
    "closure",
    "A checkpointed function in the middle of a network reads a weight through its closure. Between forward and backward an optimizer changes the weight. In PyTorch, with `use_reentrant=False`:",
    right("The gradients are wrong, without a message.", "The second run uses the new weight, and only arguments are compared."),
    wrong("An error is raised: the version of the weight has changed.", "That is so for an argument, and for a plain saved tensor. Here nothing was saved.", misconception="versions_see_everything"),
    wrong("Nothing happens: the weight was saved.", "Not saving is the point of a checkpoint.", misconception="checkpoint_saves_weights"),
    wrong("The gradients belong to the new weight, and are right for it.", "They mix both: the checkpoint uses the new weight, but the later layers and the loss belong to the old one.", misconception="recomputing_is_always_right"),
)
question(
    "dropout",
    "Dropout in a checkpoint that does not restore the generator's state. What is wrong?",
    right("The gradient belongs to a different mask from the value.", "All shapes fit, so there is no error."),
    wrong("Nothing: the mean over many steps is the same.", "The gradient of one network is applied to the loss of another. Even its mean is wrong if the rest is not linear.", misconception="noise_cancels"),
    wrong("The second run raises an error.", "Only a different number of arrays, or other shapes, would.", misconception="wrong_means_error"),
    wrong("The gradient is zero.", "It is nonzero, but in the wrong places.", misconception="wrong_means_zero"),
)
