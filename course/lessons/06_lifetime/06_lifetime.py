# %% [markdown]
# # Lifetime
#
# *About 75 minutes. You build a `backward` that frees saved values, and fix a loop that leaks. You need lesson 05.*
#
# Here are three functions of one number, in PyTorch. `backward` is called twice on each. **Predict** which second calls succeed.

# %%
import weakref

import numpy as np

from autograder.student import check, check_gradients, hints, predict, quiz, start_lesson

# %% tags=["demo"]
import gc
import textwrap
import tracemalloc

from mini_autograd.widgets import lifetime

import torch
from helpers_06 import Census, World, plot_steps, rules_called, show_growth

torch.set_num_threads(1)

# %% tags=["demo"] items="65 F7"
def backward_twice(loss):
    """Call backward twice, and return what the second call says."""
    loss.backward()
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error)
    return "works"


predict("Which second calls succeed?")
for text in ("x**3", "x + 1", "x * 3"):
    x = torch.tensor(2.0, requires_grad=True)
    message = backward_twice(eval(text))
    print(f"{text:6s} gradient {x.grad.item():4.1f}   second call: {message[:40]}")
print("\nthe message in full:", textwrap.fill(message, 90), sep="\n")

# %% [markdown]
# One works, and two do not, although their slopes have not changed. The message speaks of *saved intermediate values* that have been freed. **What does PyTorch throw away, and why only sometimes? What stays alive, and for how long?**
#
# In training this is a question of gigabytes. At the end of the lesson you can
#
# 1. measure which arrays a graph keeps alive;
# 2. let your engine free them at the right moment, and say for which operations a second `backward` then fails;
# 3. say when `retain_graph` is needed, when it is not, and what it costs;
# 4. look at a training loop and tell whether it leaks, and what it leaks: values, or only nodes;
# 5. fix one that does.

# %% [markdown]
# ## 1. What a graph holds

# %%
start_lesson()

# %% [markdown] items="26"
# A node keeps two kinds of things: its edges, which are small, and the values given to `save_for_backward`, which may be large. Each operation decides how much it saves. **Predict** which of these save nothing, for a matrix of 8,000 bytes.

# %% items="26"
predict("Which operations save nothing?")
a = MiniTensor(np.full((10, 100), 0.5), requires_grad=True)
for text in ("a + a", "a.sum()", "a.reshape(1000)", "a.tanh()", "a ** 3", "a * 2.0", "a * (a + 1)"):
    node = eval(text).grad_fn
    size = sum(array.nbytes for array in node.saved)
    print(f"{text:16s} {node.name():18s} saved arrays {len(node.saved)}   bytes {size:6d}")

# %% [markdown]
# A sum needs only the shape; `tanh` needs its output; a product needs both factors. (For `a * 2` PyTorch saves only the 2: the 2 needs no gradient, so the rule does not need `a`. Your engine keeps `a` as well; in lesson 08 a rule can ask what is needed.)

# %% [markdown]
# ### Exercise 1: what is held
#
# Write a function that measures a whole graph: how many nodes, and how many bytes of saved arrays. One array may be saved by several nodes (the output of `tanh` is also the input of the next layer), but it occupies memory only once. Two arrays are the same if they are the same object: compare `id(array)`.
#
# `node.saved` is the tuple that `save_for_backward` got. Later in this lesson it becomes None when the saved values are freed; such a node holds 0 bytes.

# %% [markdown] tags=["hint"] exercise="held"
# A dict from `id(array)` to `array.nbytes` counts each array once. Its values are summed at the end.

# %% [markdown] tags=["hint"] exercise="held"
# `for array in node.saved or ():` loops over nothing if `node.saved` is None.

# %% solution="held"
def held(node):
    """How much the graph behind a node holds.

    node: a node of your graph, such as loss.grad_fn
    Returns: (number of nodes, bytes of the saved arrays, each array counted once)

    >>> x = MiniTensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> held((x * x).sum().grad_fn)  # Sum, Mul, AccumulateGrad; x * x saves one array of 24 bytes
    (3, 24)
    """
    nodes = topological_order(node)
    ### BEGIN SOLUTION
    sizes = {id(array): array.nbytes for node in nodes for array in node.saved or ()}
    return len(nodes), sum(sizes.values())
    ### END SOLUTION

# %% check="held"

# %% [markdown] items="26"
# Where does the memory go in training? Here is a network of eight layers: the size of its weights, and what one forward pass holds for two batch sizes. **Predict:** which is larger, the weights or the saved arrays?

# %% items="26"
predict("Which is larger?", "the weights, always", "the saved arrays, always", "it depends")


def layers(count=8, size=64):
    rng = np.random.default_rng(0)
    return [MiniTensor(rng.normal(size=(size, size)) / 8, requires_grad=True) for _ in range(count)]


def forward(weights, x):
    for w in weights:
        x = (x @ w).tanh()
    return (x * x).mean()


weights = layers()
own = sum(w.data.nbytes for w in weights)
for rows in (16, 1024):
    x = MiniTensor(np.random.default_rng(1).normal(size=(rows, 64)))
    _, total = held(forward(weights, x).grad_fn)
    print(f"{rows:4d} rows: weights {own / 1e3:.0f} kB, saved besides {(total - own) / 1e3:5.0f} kB")

# %% [markdown]
# There is one copy of the weights, whatever the batch size. The values saved in the forward pass grow with the batch, and soon outweigh everything else. (Saved weights cost nothing extra; they are alive anyway.)
#
# A widespread claim is that the graph keeps *every* intermediate result. Check it with weak references to two results, after all tensors but the last are gone. **Predict** which of them is still alive.

# %%
predict("Which result is alive?", "both", "the summed one", "the squared one", "neither")


def result_alive(second_step):
    x = MiniTensor(np.ones(1000), requires_grad=True)
    middle = x * 2.0
    seen = weakref.ref(middle.data)
    last = second_step(middle)
    del middle
    return seen() is not None


print("x * 2, then sum:   ", result_alive(lambda middle: middle.sum()))
print("x * 2, then square:", result_alive(lambda middle: middle**2))

# %% [markdown]
# A graph keeps what its operations save, and nothing else. The sum needs no entry of `middle`, so `middle` disappears before `backward` has begun.

# %% [markdown] items="64"
# ## 2. Let go
#
# When `backward` has called the rule of a node, the values that the node saved have done their work. Usually `backward` is not called on this graph again, so a good engine frees them **at once**, node by node.
#
# And if `backward` is called again? Then the values are gone, and the error must say so clearly. This is PyTorch's message:

# %% tags=["engine"]
SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you "
    "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors after calling backward."
)
# %% [markdown]
# ### Exercise 2: release
#
# Two small functions of a node. `release` frees what is saved; a node that saved nothing must not change, since it can run again. `saved_tensors` returns what was saved, or raises the error.

# %% [markdown] tags=["hint"] exercise="release"
# `self.saved` is a tuple; an empty one counts as false. Freed is not the same as empty: use None for freed.

# %% [markdown] tags=["hint"] exercise="release"
# `release`: `if self.saved: self.saved = None`. `saved_tensors`: if `self.saved is None`, `raise RuntimeError(SECOND_BACKWARD)`; otherwise return it.

# %% solution="release" tags=["engine"]
def release(self):
    """Free what the node has saved: `saved` becomes None. The node itself stays. A node that saved
    nothing does not change.

    self: Function

    >>> y = MiniTensor(2.0, requires_grad=True) + 1.0
    >>> y.grad_fn.release()
    >>> y.grad_fn.saved_tensors
    ()
    """
    ### BEGIN SOLUTION
    if self.saved:
        self.saved = None
    ### END SOLUTION


def saved_tensors(self):
    """What save_for_backward was given.

    self: Function
    Returns: tuple of arrays
    Raises RuntimeError(SECOND_BACKWARD) if they have been freed.

    >>> y = MiniTensor(2.0, requires_grad=True) ** 3
    >>> len(saved_tensors(y.grad_fn))
    1
    """
    ### BEGIN SOLUTION
    if self.saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    return self.saved
    ### END SOLUTION


Function.release = release
Function.saved_tensors = property(saved_tensors)
# %% check="release"

# %% [markdown] items="64"
# ### Exercise 3: backward with retain_graph
#
# Here is the `backward` of lesson 05 with one more argument. Where must a node be released, and when must it not be? Fill in the missing lines. The order matters: the rule still needs the saved values, and nothing needs them afterward.

# %% [markdown] tags=["hint"] exercise="backward"
# It is one `if` and one call, right after the rule.

# %% solution="backward" tags=["engine"]
def backward(self, gradient=None, retain_graph=False):
    """As before, but release each node as soon as its rule has run, unless retain_graph is True.

    >>> x = MiniTensor(2.0, requires_grad=True)
    >>> y = x**2
    >>> y.backward(retain_graph=True)
    >>> y.backward()
    >>> x.grad
    MiniTensor(8.0)
    """
    if not self.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    if gradient is None:
        if self.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones(self.shape)
    root, _ = edge_to(self)
    pending = {root: as_tensor(gradient).data}
    for node in topological_order(root):
        grad = pending.pop(node, None)
        if grad is None:
            continue
        if isinstance(node, AccumulateGrad):
            node.accumulate(grad)
            continue
        tensor = node.retaining() if node.retaining is not None else None
        if tensor is not None:
            before = 0.0 if tensor.grad is None else tensor.grad.data
            tensor.grad = MiniTensor(before + grad)
        shares = node.backward(node, grad)
        ### BEGIN SOLUTION
        if not retain_graph:
            node.release()
        ### END SOLUTION
        shares = shares if isinstance(shares, tuple) else (shares,)
        for (source, _), share, shape in zip(node.next_functions, shares, node.input_shapes):
            if source is not None and share is not None:
                share = sum_to(share, shape)
                pending[source] = pending[source] + share if source in pending else share


MiniTensor.backward = backward
# %% test="test_backward" points=2
from contextlib import suppress

x = MiniTensor(2.0, requires_grad=True)
y = x**3
with suppress(RuntimeError):  # the check below shows errors
    y.backward()
assert x.grad is not None or y.grad_fn.next_functions, (
    "after backward the node of x**3 has no edges, and no gradient has arrived at x: free what the "
    "node has saved, and leave its next_functions as they are"
)
credit = check_gradients(
    {"(a @ b).tanh().sum(1)": lambda a, b: (a @ b).tanh().sum(1)},
    [(2, 3), (3, 4)],
    points=1,
)
### BEGIN HIDDEN TESTS


def twice(a, b):
    h = a @ b
    return (h * h + h).log_softmax(1)


credit = credit + check_gradients(
    {"a product that is used three times": twice}, [(2, 3), (3, 4)], points=1
)
### END HIDDEN TESTS
credit

# %% check="backward_frees"

# %% [markdown] items="65"
# Here is the first experiment again. Does your engine say the same, to the letter?

# %% tags=["demo"] items="65 68"
ours = backward_twice(MiniTensor(2.0, requires_grad=True) ** 3)
theirs = backward_twice(torch.tensor(2.0, requires_grad=True) ** 3)
print(ours, "\nequal to PyTorch's:", ours == theirs)

# %% [markdown] items="68"
# So which operations survive a second call? Those that saved nothing. **Predict** both columns.

# %% tags=["demo"] items="68 F7"
operations = ["x + 1", "-x", "x.mean()", "x.reshape(2, 2)", "x[1:]", "x * 2", "x * x", "x / 2"]
operations += ["x ** 2", "x.exp()", "x.relu()", "x.max()", "x @ x"]
predict("How many of the 13 operations work a second time?")
print("                  yours   PyTorch")
for text in operations:
    said = []
    for tensor in (MiniTensor, torch.tensor):
        x = tensor(np.array([0.3, 0.9, 0.5, 0.7]), requires_grad=True)
        said.append(backward_twice(eval(text).sum()))
    print(f"{text:16s}  " + "   ".join("works" if words == "works" else "error" for words in said))

# %% [markdown] items="25 64"
# Many texts say that `backward` *destroys the graph*. **Predict** what `graph_lines`, the graph printer of lesson 05, prints after `backward`.

# %% tags=["demo"] items="25 F6"
predict("What does the printer show?", "the same nodes", "the last node alone", "nothing")
for tensor in (MiniTensor, torch.tensor):
    x = tensor(np.full(1000, 0.5), requires_grad=True)
    loss = (x.exp() * 3.0).sum()
    before = graph_lines(loss.grad_fn)
    loss.backward()
    print("\n".join(graph_lines(loss.grad_fn)))
    print("the same lines as before:", graph_lines(loss.grad_fn) == before)

# %% [markdown]
# **Values are freed, nodes stay.** Nodes live as long as something points at them: the loss, or a later node. When the last reference goes, the whole chain goes with it:

# %% items="25"
x = MiniTensor(2.0, requires_grad=True)
loss = (x * 3.0).tanh()
node, before = weakref.ref(loss.grad_fn.next_functions[0][0]), held(loss.grad_fn)
loss.backward()
print("nodes and bytes", before, "and after backward", held(loss.grad_fn))
del loss
print("after `del loss`, the product's node is", "gone" if node() is None else "alive")

# %% [markdown] items="65"
# One warning about the error. It may come **late**. In `loss = a + c.exp()` the second call passes through the sum, which works, and then meets `exp`, which has been freed. **Predict** `a.grad` after the failed call; after the first one it was 1.

# %% tags=["demo"] items="68"
predict("What is a.grad after the failed call?")
for tensor in (MiniTensor, torch.tensor):
    a, c = tensor(1.0, requires_grad=True), tensor(1.0, requires_grad=True)
    backward_twice(a + c.exp())
    print(f"{tensor.__name__:10s} a.grad {a.grad.item()}, c.grad {c.grad.item():.3f}")

# %% [markdown]
# The failed call has changed `a.grad`, in both engines. After this error, clear all gradients before you go on.

# %% [markdown] items="25"
# ## 3. A training step, watched
#
# Weak references can watch objects without keeping them alive. A *census* counts the nodes and the saved arrays that exist, after each operation. It leaves out the batch, the weights and their `AccumulateGrad` nodes, which are alive anyway, and changes no line of your engine. `Census` is in `helpers_06.py`, beside this notebook; you don't need to read it.

# %% [markdown]
# ### One step, with and without retain_graph
#
# **Predict** the two curves: how many megabytes of saved values are alive after each operation?

# %% tags=["demo"]
predict("Without retain_graph: when is most alive?", "at the start", "where forward ends", "at the end")


def one_step(retain_graph):
    weights, x = layers(), MiniTensor(np.random.default_rng(1).normal(size=(1024, 64)))
    with Census(Function, x, *weights) as census:
        loss = forward(weights, x)
        loss.backward(retain_graph=retain_graph)
        census.sample("after")
        del loss
        census.sample("del loss")
    return census.samples


plot_steps({f"retain_graph={retain}": one_step(retain) for retain in (False, True)})

# %% [markdown]
# In the forward pass, each layer adds its saved output. After the gray line the values go, one node after the other, while the number of nodes stays. With `retain_graph=True` the values stay too. The last point is `del loss`: then everything goes, retained or not.
#
# So retaining is not a leak. It postpones the freeing from `backward` to the moment when the graph itself goes.

# %% [markdown] items="66 67 70"
# ## 4. When to retain
#
# Sometimes you need to use one graph twice. **Predict** the gradients of `x**2` at 2 after two calls, with `.grad` cleared in between, and without.

# %% items="66 67"
predict("What are the gradients of x**2 at 2, cleared in between and not?")
for cleared in (True, False):
    x = MiniTensor(2.0, requires_grad=True)
    y = x**2
    y.backward(retain_graph=True)
    first = x.grad.item()
    x.grad = None if cleared else x.grad
    y.backward()
    print("cleared in between:" if cleared else "not cleared:       ", first, x.grad.item())

# %% [markdown]
# Retaining and accumulating are two different things. The first decides whether a second call is possible, the second what it does to `.grad`.
#
# The usual case is **two losses on a shared trunk**: an encoder and two heads, each with its own loss. If you call `backward` on one loss and then on the other, you get the error.

# %% items="69"
def two_heads(seed=2):
    rng = np.random.default_rng(seed)
    shapes = (10, 5), (5, 2), (5, 3)
    encoder, head_a, head_b = (MiniTensor(rng.normal(size=s) / 2, requires_grad=True) for s in shapes)
    x = MiniTensor(rng.normal(size=(16, 10)))
    code = (x @ encoder).tanh()
    return encoder, [((code @ head_a) ** 2).mean(), ((code @ head_b) ** 2).mean()]


encoder, (loss_a, loss_b) = two_heads()
loss_a.backward()
try:
    loss_b.backward()
except RuntimeError as error:
    print("RuntimeError:", str(error)[:58], "...")

# %% [markdown] items="70"
# ### Exercise 4: several losses
#
# If several calls are needed, all but the last must retain; the last one should not, so that it frees the values it reaches. Write that for any number of losses.

# %% [markdown] tags=["hint"] exercise="backward_each"
# The call for loss number `i` must retain if another one follows: `i < len(losses) - 1`. `enumerate` gives the number and the loss.

# %% solution="backward_each"
def backward_each(losses):
    """Call backward once on each loss, in order. The losses may share parts of their graphs.

    losses: list of different MiniTensors with one entry each; may be empty
    Returns: None. The last call frees the saved values that it reaches; no other call frees any.

    >>> x = MiniTensor(2.0, requires_grad=True)
    >>> shared = x * x
    >>> backward_each([shared * 3.0, shared.exp() * 0.0, shared * 1.0])
    >>> x.grad
    MiniTensor(16.0)
    """
    ### BEGIN SOLUTION
    for i, loss in enumerate(losses):
        loss.backward(retain_graph=i < len(losses) - 1)
    ### END SOLUTION

# %% check="backward_each"

# %% [markdown] items="69 70"
# But were two calls needed at all? The gradient of a sum is the sum of the gradients. **Predict:** how often does each version call the rules of the encoder, and do the gradients differ?

# %% tags=["demo"] items="69 F9"
predict("How often are rules of the encoder called, for each loss and for the sum?")
encoder_each, losses = two_heads()
print("each loss, retaining: ", rules_called(losses, backward_each))
encoder_sum, losses = two_heads()
print("one call for the sum: ", rules_called(losses, lambda two: (two[0] + two[1]).backward()))
difference = np.abs(encoder_each.grad.data - encoder_sum.grad.data).max()
print(f"largest difference of the encoder's gradient: {difference:.1e}")

# %% [markdown]
# The same gradients. One call for the sum goes through the trunk once and needs no `retain_graph`. Separate calls are needed only if something has to happen in between, for example to look at the gradient of one loss alone.

# %% [markdown] items="71 72"
# ## 5. Leak detective
#
# Memory that grows with each iteration is a leak. Below are five ways to write the body of a training loop. They run for twenty iterations on a `World`: a small network whose loss is `world.loss()`, and a recurrent cell whose next state is `world.next_state(state)`. `keep` holds everything that survives from one iteration to the next. Does it grow, and what grows: saved values, nodes, or nothing?

# %% tags=["demo"] items="71 72"
def plain(world, keep):
    """A: the ordinary loop."""
    keep["loss"] = world.loss()
    keep["loss"].backward()


def retaining(world, keep):
    """B: retain_graph=True, left in by mistake."""
    keep["loss"] = world.loss()
    keep["loss"].backward(retain_graph=True)


def remembering(world, keep):
    """C: losses.append(loss) for a plot, after backward."""
    loss = world.loss()
    loss.backward()
    keep.setdefault("losses", []).append(loss)


def validating(world, keep):
    """D: losses.append(loss) in validation, so without backward."""
    keep.setdefault("losses", []).append(world.loss())


def carrying(world, keep):
    """E: a state goes from step to step, with retain_graph=True to silence the error."""
    keep["state"] = world.next_state(keep.get("state", world.x))
    (keep["state"] ** 2).mean().backward(retain_graph=True)

# %% [markdown]
# In your engine the census counts. In PyTorch a pair of *hooks* counts: two functions that PyTorch calls for every saved tensor. **Predict** for each loop what grows in it.

# %% tags=["demo"] items="F3 F5 71 72"
predict("Which loops grow, and what grows in them?")
show_growth((plain, retaining, remembering, validating, carrying), MiniTensor, Function)

# %% [markdown] items="71 72 73"
# Where two loops hold the same amount, the thin line lies on the wide one: C on A on the left, B on A and D on C on the right.
#
# | loop | what grows | why |
# | --- | --- | --- |
# | A | nothing | the values are freed by `backward`, and the nodes when `keep["loss"]` gets its next value |
# | B | **nothing**: the values of one graph instead of none; always the same amount | the old graph goes when the name is bound to the new loss. `retain_graph` by itself does not leak |
# | C | **nodes only** | the values are freed, but each remembered loss holds its chain of nodes |
# | D | **everything** | `backward` was never called, so nothing was ever freed |
# | E | **everything, and time** | each state holds the one before it. Every `backward` runs through all steps since the start |
#
# So the rule is not "never write `retain_graph`". It is: **a loop leaks if something that is alive refers to the graph of an earlier iteration.** `retain_graph=True` decides only whether that graph still has its values.
#
# In C and D the fix is one word: remember a number, not a tensor. (In D, the next lesson does better still: a validation that is not recorded makes no graph at all.) `loss.item()` is a Python float, which knows nothing of graphs. For whole tensors, in PyTorch, use `.detach().clone()`: cut the history off, and copy the numbers. `detach` alone copies nothing, and neither does `.cpu()` on a CPU: a "snapshot" of a weight would change with each step of the optimizer.

# %% [markdown] items="73"
# Here it is in slow motion, for three steps of a small network. **Predict** before you press a button: what is alive at the end of each step if the losses are kept in a list, with and without `retain_graph=True`, and what does `.item()` change? Then press *Start*, and find out when each node goes. The batch, the weights and their `AccumulateGrad` nodes are not counted.

# %% tags=["demo"]
lifetime()

# %% [markdown] items="71"
# ### Exercise 5: fix a loop
#
# This function runs a recurrent cell over a sequence, and after each step adds the gradient of that step's loss to `w.grad`. It is loop E, and it remembers its losses like loop C.

# %%
def leaking_sequence(w, inputs, targets):
    state, history = MiniTensor(np.zeros(targets[0].shape)), []
    for x, target in zip(inputs, targets):
        state = (state @ w + x).tanh()
        loss = ((state - target) ** 2).mean()
        loss.backward(retain_graph=True)
        history.append(loss)
    return history, state


inputs, targets = np.random.default_rng(4).normal(size=(2, 25, 2, 4))
for steps in (1, 10, 25):
    w = MiniTensor(np.eye(4) * 0.5, requires_grad=True)
    _, state = leaking_sequence(w, inputs[:steps], targets[:steps])
    print(f"after {steps:2d} steps (nodes, bytes) behind the state:", held(state.grad_fn))

# %% [markdown]
# Write a version that does not leak. The state enters each step as a **constant**: a new leaf, with no edge to the step before. The losses and the states stay the same, but the gradient changes: it is cut off at each step. (In PyTorch you write `state.detach()`; your engine gets this method in lesson 07. Until then, make a MiniTensor of the array.) `retain_graph` is not needed.

# %% [markdown] tags=["hint"] exercise="run_sequence"
# A MiniTensor made of `state.data` has the same numbers and no `grad_fn`. Do it once per step, before the state is used again.

# %% [markdown] tags=["hint"] exercise="run_sequence"
# After `loss.backward()`: `history.append(loss.item())` and `state = MiniTensor(state.data)`.

# %% solution="run_sequence"
def run_sequence(w, inputs, targets):
    """Run state = tanh(state @ w + x) over a sequence; add each step's gradient to w.grad.

    w: MiniTensor of shape (size, size) that requires a gradient
    inputs, targets: lists of arrays of shape (rows, size), equally long, at least one each
    The state starts with zeros of shape (rows, size). The loss of a step is the mean of
    (state - target)**2, and backward is called in each step. The gradient goes through this step
    only: the state of the step before counts as a constant. Nothing is cleared, and w itself does
    not change.
    Returns: (history, state): the list of losses as Python floats, and the last state as a
        MiniTensor with requires_grad False and no grad_fn

    >>> w = MiniTensor([[0.0]], requires_grad=True)
    >>> history, state = run_sequence(w, [np.zeros((1, 1))], [np.ones((1, 1))])
    >>> history, state.requires_grad
    ([1.0], False)
    """
    ### BEGIN SOLUTION
    state, history = MiniTensor(np.zeros(targets[0].shape)), []
    for x, target in zip(inputs, targets):
        state = (state @ w + x).tanh()
        loss = ((state - target) ** 2).mean()
        loss.backward()
        history.append(loss.item())
        state = MiniTensor(state.data)
    return history, state
    ### END SOLUTION

# %% check="run_sequence"

# %% [markdown] items="74"
# ## 6. When memory grows
#
# A procedure, from cheap to thorough:
#
# 1. **Look at what survives an iteration.** Lists, running sums, states, attributes, closures. `total += loss` is a list in disguise: the sum holds all losses.
# 2. **Look at every `retain_graph=True`.** Which second call needs it? If there is none, remove it.
# 3. **Count tensors with a history**, and read the memory itself. The next section, which is optional, shows how.

# %% [markdown] items="74"
# ### Counting tensors (further)
#
# Python can list all objects that its garbage collector tracks, and PyTorch's tensors are among them. Twenty scalars with a `grad_fn` are twenty losses that something keeps alive, and the collector also knows what:

# %% tags=["demo"] items="74"
def tensors_with_history():
    return [
        thing
        for thing in gc.get_objects()
        if type(thing) is torch.Tensor and thing.grad_fn is not None
    ]


gc.collect()
before = {id(tensor) for tensor in tensors_with_history()}
world, curve = World(torch.tensor), []
for _ in range(20):
    loss = world.loss()
    loss.backward()
    curve.append(loss)
found = [tensor for tensor in tensors_with_history() if id(tensor) not in before]
print(len(found), "new tensors with a history; their shapes:", {tuple(t.shape) for t in found})
lists = [thing for thing in gc.get_referrers(found[0]) if type(thing) is list]
(holder,) = (thing for thing in lists if thing is not found)
print("held by a list of", len(holder), "entries, which is `curve`:", holder is curve)

# %% [markdown] items="74"
# To read the memory itself, choose an instrument that can see it. On a GPU that is `torch.cuda.memory_summary()`. On the CPU, Python's own `tracemalloc` seems to be made for it. **Predict** what it reports for 80 MB of tensors, and for 80 MB of NumPy arrays.

# %% tags=["demo"] items="74"
predict("How many MB does tracemalloc see of 80 MB of tensors, and of 80 MB of NumPy arrays?")
for name, make in {
    "PyTorch": lambda: torch.zeros(1_000_000, dtype=torch.float64),
    "NumPy": lambda: np.zeros(1_000_000),
}.items():
    tracemalloc.start()
    arrays = [make() for _ in range(10)]
    traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{name:8s} tracemalloc sees {traced / 1e6:9.4f} MB of 80")

# %% [markdown]
# PyTorch does not allocate its memory through Python, so `tracemalloc` cannot see it. A measurement that shows nothing may be measuring nothing.

# %% [markdown]
# ## Quiz

# %% tags=["quiz"] items="68" test="quiz_06" points=4
question(
    "second_call",
    "What does a second `backward()` on the same graph do, if nothing was retained?",
    right("It raises an error if any node it reaches had saved something, and otherwise works and adds to `.grad`.", "The error comes from a node whose values are gone. `x + 1` saved none."),
    wrong("It always raises an error: the graph is gone.", "The nodes are still there. Only saved values are freed.", misconception="backward_destroys_graph"),
    wrong("It gives the same `.grad` again.", "If it works at all, it adds.", misconception="backward_overwrites"),
    wrong("It does nothing, since all gradients have been found.", "`backward` keeps no record of earlier calls.", misconception="backward_once_only"),
)
question(
    "what_is_freed",
    "After `loss.backward()`, and while `loss` exists, what is left of the graph?",
    right("all nodes and edges, without the saved values", "The printer showed the same lines before and after."),
    wrong("nothing", "Then `loss.grad_fn` could not be walked along.", misconception="backward_destroys_graph"),
    wrong("everything, until `loss` is deleted", "The nodes, yes. The values go at once, node by node.", misconception="freed_with_loss"),
    wrong("only the leaves", "Leaves are not even part of it; the nodes refer to them.", misconception="only_leaves_stay"),
)
question(
    "sum_saves",
    "`h = x.exp(); z = h.sum()`. Which arrays does the graph behind `z` keep before `backward`?",
    right("the output of `exp`", "The rule of exp needs its output. The sum needs only the shape, and x is not needed at all by these rules."),
    wrong("x, the output of `exp`, and the sum", "A node keeps what its rule needs, not all that passed through.", misconception="graph_keeps_everything"),
    wrong("x and the output of `exp`", "exp is its own slope, so x is not needed.", misconception="input_used_for_output"),
    wrong("none: values live in tensors, not in nodes", "After `del h` the output would be gone, and the rule of exp could not run.", misconception="values_live_in_tensors"),
)
question(
    "retained_loop",
    "A loop with `loss = net(x)`, `loss.backward(retain_graph=True)` and a step runs for a thousand iterations. How much memory does it hold?",
    right("one graph with its values, and two for a moment, while the next one is built", "The old graph goes when `loss` gets its next value. Until then the new forward pass has already built the next one."),
    wrong("a thousand graphs", "What would hold the other 999?", misconception="retain_leaks"),
    wrong("none: retained graphs are freed at the next backward", "The next `backward` runs on another graph. The old one goes when `loss` gets its next value.", misconception="retain_until_next"),
    wrong("a graph that doubles with each iteration", "k calls on one graph add k copies of the gradient. That has nothing to do with memory, and nothing doubles.", misconception="retain_is_exponential"),
)
question(
    "list_of_losses",
    "`curve.append(loss)` after `loss.backward()`, for a network with 500 MB of activations. What does the list cost per iteration?",
    right("the nodes without their arrays: kilobytes, more for a deeper network", "The activations were freed by `backward`. It is still a leak, but a slow one."),
    wrong("500 MB", "That is what it would cost without `backward`, as in a validation loop.", misconception="list_keeps_activations"),
    wrong("8 bytes", "That would be `loss.item()`. The tensor holds its `grad_fn`, which holds the rest of the chain.", misconception="loss_is_a_number"),
    wrong("nothing, if it was called with `retain_graph=False`", "Values are freed then, nodes are not.", misconception="backward_destroys_graph"),
)
question(
    "running_sum",
    "For the mean loss of an epoch, a colleague writes `total = total + loss` in the loop, after `loss.backward()`. Does it leak?",
    right("Yes: `total` is a result whose graph contains the graph of every loss.", "Nodes only, since the values are freed. `total += loss.item()` fixes it."),
    wrong("No: a sum saves nothing.", "It saves no values, but it has edges to its inputs' nodes.", misconception="sum_saves_nothing"),
    wrong("No: `total` is one number.", "A number with a `grad_fn`.", misconception="loss_is_a_number"),
    wrong("Only with `retain_graph=True`.", "Then it would leak the values as well. The nodes leak in any case.", misconception="retain_leaks"),
)
question(
    "shared_trunk",
    "Two losses share an encoder, and you want the gradient of both together. Which way is best?",
    right("`(loss_a + loss_b).backward()`", "Each node once, no retaining."),
    wrong("`loss_a.backward(retain_graph=True)`, then `loss_b.backward()`", "The same gradients, but the encoder is walked twice, and its values live longer.", misconception="two_losses_need_retain"),
    wrong("`loss_a.backward()`, then `loss_b.backward()`", "The second call meets an encoder that has been freed.", misconception="heads_are_independent"),
    wrong("both with `retain_graph=True`, to be safe", "The last call has no reason to retain.", misconception="two_losses_need_retain"),
)

# %% [markdown] question="why_freed" points=3
# ### Why is it freed?
#
# After `y = x**3`, a second `y.backward()` raises an error. After `y = x + 1`, it does not. **Why** does PyTorch free anything at all, and why is there no error in the second case? Answer in one paragraph.
#
# ### BEGIN MARK SCHEME
# *A good answer:* Nodes keep the values that their rules need, and in a deep network these are most of the memory. After the backward pass nobody needs them as a rule, so they are dropped at once, even if the program still holds the loss. The rule of a power needs its input, so the second pass finds it gone. The rule of an addition needs no value: nothing was saved, nothing is gone, and it runs again. The nodes themselves live as long as the output.
#
# * 1 point: what is freed are saved values, because they take much memory
# * 1 point: a power needs its input for its rule, and an addition needs nothing
# * 1 point: nodes and edges are still there; the error comes from the missing value
#
# Wrong answers, and what they get:
#
# * *backward deletes the graph*: at most two points. Then `x + 1` would fail too.
# * *PyTorch counts the calls*: no point.
# ### END MARK SCHEME

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | saved values | what rules need; they grow with the batch, and are most of a training step's memory if the batch is large |
# | freeing | as soon as a node's rule has run; the nodes stay |
# | second backward | fails at the first node that had saved something; what came before it has already changed `.grad` |
# | `retain_graph` | postpones the freeing until the graph itself goes; not a leak by itself |
# | several losses | add them and call once; if you need separate calls, retain on all but the last |
# | leak | something alive refers to the graph of an earlier iteration: a list, a sum, a state |
# | remembering | `.item()` for a number; for tensors, cut the history and copy |
#
# Back to the three functions from the beginning. `x**3` and `x * 3` had **saved** a value, which `backward` threw away as soon as its rule had run; `x + 1` had saved nothing, so there was nothing to miss. The nodes stayed in all three cases, and stay for as long as something points at them.
#
# The fix for the state was to make a new leaf from its numbers. That is one of several ways to say "do not record this". The next lesson builds them all, and measures what each of them really saves.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()
