# %% [markdown]
# # The gradient of a gradient
#
# *Core: about 105 minutes; section 4 is a good place for a break. Further: about 80 minutes, optional. You build a backward pass that records itself, `grad` and a Hessian-vector product. You need the nodes and notes of lessons 05 to 09.*
#
# The slope of `x**3` at 3 is 27. The slope of that slope is 18. Three programs ask PyTorch for both numbers: one without options, one with `retain_graph=True` and one with `create_graph=True`.

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import math

import numpy as np

# %% tags=["demo"]
import timeit
import warnings

import torch
from helpers_10 import asked_twice, leaf

torch.set_num_threads(1)  # steadier times on a busy machine

# %% [markdown]
# ### The three answers
#
# **Predict** which of the three programs get the second number.

# %% tags=["demo"]
predict(
    "Which programs get the second number?",
    "all three",
    "the two with an option",
    "only the one with retain_graph",
    "only the one with create_graph",
)
for options in ({}, {"retain_graph": True}, {"create_graph": True}):
    print(f"{options!s:22s} {asked_twice(3.0, **options)}")

# %% [markdown] items="121 F8"
# Many texts say that `retain_graph=True` gives you second derivatives. The middle line shows that it does not. **What does `retain_graph` keep, and what does `create_graph` make?** You will be able to
#
# 1. let the backward pass record itself, and say what a rule needs for that;
# 2. take second and third derivatives, and multiply by a matrix of second derivatives without building it;
# 3. say what second derivatives are good for, and what they cost.
#
# If something breaks your engine, run the next cell again, and then every cell below it.

# %%
start_lesson()

# %% [markdown] items="121 F8"
# ## 1. What a gradient has forgotten
#
# Ask your engine the same question, with `retain_graph=True`. **Predict** what it says about the gradient.

# %% items="121 F8"
predict("Does the gradient have a grad_fn?", "yes", "no")
x = MiniTensor(3.0, requires_grad=True)
y = x**3
y.backward(retain_graph=True)
print("gradient", x.grad.item(), "  its grad_fn", x.grad.grad_fn)
try:
    x.grad.backward()
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown] items="121"
# `retain_graph` keeps the **old** graph, from `x` to `y`. What is missing is a **new** graph, from `x` to the gradient. It was not recorded, because your rules compute with arrays.
#
# But look at a rule: `grad * exponent * a ** (exponent - 1)`. With MiniTensors for `grad` and `a`, `apply` records each of these operations. Try it with a handmade `ctx`.

# %%
class HandMade:
    def __init__(self, exponent, *saved):
        self.exponent, self.saved_tensors = exponent, saved


x = MiniTensor(3.0, requires_grad=True)
slope = Pow.backward(HandMade(3, x), MiniTensor(1.0))
print("the slope is", slope.item(), "and was made by", slope.grad_fn.name())
slope.backward()
print("the slope of the slope is", x.grad.item())

# %% [markdown]
# What if this `ctx` holds `MiniTensor(3.0)`, a constant with the same value?

# %%
slope = Pow.backward(HandMade(3, MiniTensor(3.0)), MiniTensor(1.0))
print("the slope is", slope.item(), "  requires_grad:", slope.requires_grad)

# %% [markdown]
# The value is right, but the path back to `x` is gone. Saved values have to **lead back to where they came from**. There are three cases.
#
# | what was saved | for example | where it came from |
# | --- | --- | --- |
# | an input | both factors of `Mul` | where that input's edge leads |
# | the output | `Exp`, `Tanh` | the node itself |
# | anything else | a mask, a sign | nowhere: it is a constant |
#
# The notes of lesson 09 tell you which case it is. `node.notes` has one entry for each saved value, a note or None. The `source` of a note is the number of an input, `"output"`, or None.

# %%
x = MiniTensor([1.0, 2.0], requires_grad=True)
for y in (x * 3, x / x.detach(), x.exp(), x.max(), x + 1):
    sources = [note and note.source for note in y.grad_fn.notes]
    print(f"{y.grad_fn.name():14s} where the saved values came from: {sources}")

# %% [markdown]
# ### Exercise 1: saved values that remember
#
# The product and the quotient saved both inputs (no edge leads on from `3` and `x.detach()`), `exp` its output. The mask of `max` came from nowhere, and `+` saved nothing.
#
# Complete `reconnected(node)`. It makes a new `MiniTensor` for each saved value. Two attributes make a tensor lead somewhere, and you may set both: `requires_grad` is True, and `grad_fn` is the node that its gradient goes to.
#
# * An input gets the node at the end of its edge as its `grad_fn`. If the input was a leaf, that node is an `AccumulateGrad`, which works like any other. If there is no node at the end, the value is a constant.
# * The output gets `node` itself.
# * All other values are constants.
#
# The counters are copied for you. They let the second walk notice that `x` was overwritten after the first.

# %% [markdown] tags=["hint"] exercise="reconnected"
# You need the node that the gradient goes to: `node` itself for `"output"`, `node.next_functions[note.source][0]` for a number, and none otherwise.

# %% [markdown] tags=["hint"] exercise="reconnected"
# If there is such a node, call it `end`: `tensor.requires_grad, tensor.grad_fn = True, end`. Be careful: `note.source` may be the number 0, which counts as false in an `if`.

# %% solution="reconnected" tags=["engine"]
def reconnected(node):
    """What a node has saved, as MiniTensors that lead back to where the values came from.

    node: a node that apply has recorded, with saved_tensors (arrays), notes and next_functions
    Returns: tuple with one new MiniTensor per saved value, with the same numbers.
        The output has requires_grad True and node as its grad_fn. An input whose edge leads to a
        node has requires_grad True and that node as its grad_fn. All others are constants, with
        requires_grad False and grad_fn None. A saved None stays None.
        If there is a note, _counter is the counter of the note. The node is not changed.
    Raises what node.saved_tensors raises.

    >>> w = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> node = (w * [3.0, 4.0]).grad_fn
    >>> first, second = reconnected(node)
    >>> first.grad_fn is edge_to(w)[0], second.requires_grad, first._counter is w._counter
    (True, False, True)
    """
    tensors = []
    for value, note in zip(node.saved_tensors, node.notes):
        tensor = None if value is None else MiniTensor(value)
        if note is not None:
            tensor._counter = note.counter
            ### BEGIN SOLUTION
            source = None
            if note.source == "output":
                source = node
            elif note.source is not None:
                source, _ = node.next_functions[note.source]
            if source is not None:
                tensor.requires_grad, tensor.grad_fn = True, source
            ### END SOLUTION
        tensors.append(tensor)
    return tuple(tensors)


class AsTensors:
    """A node as its rule sees it when the rule is recorded: saved_tensors are MiniTensors."""

    def __init__(self, node):
        self.node = node

    def __getattr__(self, name):
        return getattr(self.node, name)  # everything else comes from the node

    @property
    def saved_tensors(self):
        return reconnected(self.node)

# %% check="reconnected"

# %% [markdown]
# From now on, to record a rule, the engine passes it `AsTensors(node)` as its `ctx`. Every attribute is the node's, except `saved_tensors`:

# %%
x = MiniTensor(3.0, requires_grad=True)
node = (x**3).grad_fn
slope = node.backward(AsTensors(node), MiniTensor(1.0))
slope.backward()
print("slope", slope.item(), "  slope of the slope", x.grad.item())

# %% [markdown]
# ## 2. Rules made of operators
#
# Does every rule work on MiniTensors? Those that compute with `*`, `/` and `-` do. The next cell runs four rules: those of `tanh`, `sum`, `x @ w` and your `logsumexp`. **Predict** which of them return a MiniTensor.

# %%
predict("Which of the four rules return a MiniTensor?")
x, w = MiniTensor([[1.0, 2.0, 3.0]], requires_grad=True), MiniTensor(np.ones((3, 2)))
for name, y in {"tanh": x.tanh(), "sum": x.sum(), "@": x @ w, "logsumexp": x.logsumexp(dim=1)}.items():
    node = y.grad_fn
    try:
        share = node.backward(AsTensors(node), MiniTensor(np.ones(y.shape)))
        share = share[0] if isinstance(share, tuple) else share
        print(f"{name:10s} returned: {type(share).__name__}")
    except Exception as error:
        print(f"{name:10s} {type(error).__name__}: {str(error)[:70]}")

# %% [markdown]
# `logsumexp` uses `np.exp` and `np.expand_dims`, which do not know MiniTensors. (Written with operators, it works.) But the rule of a sum has to repeat numbers, and that of `@` has to transpose a matrix. For that they use operations of your engine, which have rules of their own (lesson 05). They come in **pairs**: the rule of each applies the other. (`Transpose` and `Reshape` apply themselves.)
#
# | operation | what it does | its rule |
# | --- | --- | --- |
# | `Expand` | repeats entries, up to a shape | adds up the repeated entries: `SumTo` |
# | `SumTo` | undoes a broadcast | repeats: `Expand` |
# | `Index` | takes entries out | puts them back among zeros: `Scatter` |
# | `Scatter` | puts entries among zeros, and adds where an index is repeated | takes them out: `Index` |
# | `Transpose`, `Reshape` | move entries | move them back |
#
# All of them are linear, so they save only shapes and indices. Here is one of the first pair. `applied` lets one line serve both kinds of backward pass: an operation on a MiniTensor is recorded, one on an array only computed.
#
# ```python
# class SumTo(Function):
#     @staticmethod
#     def forward(ctx, a, shape):
#         ctx.shape = a.shape
#         return sum_to(a, shape)
#
#     @staticmethod
#     def backward(ctx, grad):
#         return applied(Expand, grad, shape=ctx.shape)
# ```
#
# So a rule is written once, and serves derivatives of every order. Here are five of yours; `logsumexp` follows in *Further*.
#
# ### Five of your rules in operators (just run it)
#
# Run the next cell. You don't need to read it. It has versions of your operations that use no NumPy functions in their rules.

# %% tags=["engine"]
class Sub(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a - b

    @staticmethod
    def backward(ctx, grad):
        return grad, -grad


class Tanh(Function):
    @staticmethod
    def forward(ctx, a):
        output = np.tanh(a)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad * (1 - output * output)


class Abs(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(np.sign(a))
        return np.abs(a)

    @staticmethod
    def backward(ctx, grad):
        (sign,) = ctx.saved_tensors
        return grad * sign


class CopySlices(Function):
    """The base with a part replacing some of its entries, as in lesson 09."""

    @staticmethod
    def forward(ctx, base, part, positions):
        result, owner = base.copy(), np.full(base.shape, -1)
        numbers = np.arange(positions.size).reshape(positions.shape)
        result.put(positions, np.broadcast_to(part, positions.shape))
        owner.put(positions, numbers)
        ctx.positions = positions
        ctx.rest, ctx.stayed = owner < 0, owner.take(positions) == numbers
        return result

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.rest, grad.reshape(-1)[ctx.positions] * ctx.stayed

    @classmethod
    def name(cls):
        return "CopySlices"


class Linear(Function):
    """x @ w + b, and only the gradients that are needed."""

    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        needs_x, needs_w, needs_b = ctx.needs_input_grad
        for_x = grad @ turned(w) if needs_x else None
        for_w = turned(x) @ grad if needs_w else None
        return for_x, for_w, grad if needs_b else None


MiniTensor.abs = lambda self: Abs.apply(self)
MiniTensor.linear = lambda self, w, b: Linear.apply(self, w, b)

# %% [markdown]
# ## 3. A backward pass that is recorded
#
# Now put the pieces together. A backward pass is a **walk** through the graph. Four functions for it are given.
#
# * `cotangent_of(output, gradient)` returns the cotangent that the walk begins with, as a MiniTensor: `gradient`, or 1 for a single number. It raises PyTorch's errors.
# * `shares_of(node, grad)` runs one rule. If `grad` is a MiniTensor, the rule gets `AsTensors(node)` and is recorded; for an array it gets `node`. `shares_of` returns one gradient or None for each edge. It raises an error if a rule returns the wrong number of gradients, as PyTorch does.
# * `after_hooks(node, grad)` lets hooks (see *Further*) look at the gradient or replace it, and returns what is passed on.
# * `retained(node, grad)` adds the gradient to `.grad` of a result that asked for it with `retain_grad`. (For a leaf, `accumulate` does that.)
#
# ### The four functions (just run it)
#
# Run the next two cells. You don't need to read them.

# %% tags=["engine"]
ARRAYS_ONLY = (
    "the rule of {name} computes with arrays and cannot be recorded, so create_graph=True does not "
    "work here. Write it in operators and functions of MiniTensors. For rules that you wrote, "
    "lesson 10, section 2, has a cell that does: has it run? Those given in lesson 05 do, if its "
    "notebook is not an old one; start_lesson(own=False) takes the reference engine."
)
WRONG_NUMBER = "function {name} returned an incorrect number of gradients (expected {due}, got {got})"


def shares_of(node, grad):
    """What the rule of node sends along its edges, one gradient or None for each: arrays if grad is
    an array, MiniTensors if grad is one. Broadcasting is undone. Raises RuntimeError if there are
    too few gradients, or too many; extra values of None are allowed."""
    if isinstance(grad, MiniTensor):
        shares = recorded_shares(node, grad)
    else:
        shares = node.backward(node, grad)
        shares = shares if isinstance(shares, tuple) else (shares,)
    due = len(node.next_functions)
    if len(shares) < due or any(share is not None for share in shares[due:]):
        raise RuntimeError(WRONG_NUMBER.format(name=node.name(), due=due, got=len(shares)))
    fitting = []
    for (source, _), share, shape in zip(node.next_functions, shares, node.input_shapes):
        wanted = source is not None and share is not None
        if wanted and share.shape != shape:
            share = applied(SumTo, share, shape=shape)
        fitting.append(share if wanted else None)
    return fitting


def recorded_shares(node, grad):
    """The shares as MiniTensors. Raises RuntimeError if the rule works only on arrays."""
    try:
        shares = node.backward(AsTensors(node), grad)
    except (TypeError, AttributeError, ValueError) as error:
        found = f" ({type(error).__name__}: {error})"
        raise RuntimeError(ARRAYS_ONLY.format(name=node.name()) + found) from error
    shares = shares if isinstance(shares, tuple) else (shares,)
    if not all(share is None or isinstance(share, MiniTensor) for share in shares):
        raise RuntimeError(ARRAYS_ONLY.format(name=node.name()))
    return shares


def cotangent_of(output, gradient=None):
    """The cotangent of a walk from output, as a MiniTensor; 1 for a single number if none is given."""
    if not output.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    if gradient is None:
        if output.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones(output.shape)
    gradient = as_tensor(gradient)
    if gradient.shape != output.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {gradient.shape} "
            f"and output[0] has a shape of {output.shape}."
        )
    return gradient


def add_to_grad(tensor, grad):
    """Add grad to tensor.grad, which never shares memory with it. A MiniTensor keeps its history."""
    if not isinstance(grad, MiniTensor):
        before = 0.0 if tensor.grad is None else tensor.grad.data
        tensor.grad = MiniTensor(before + grad)
    else:
        tensor.grad = grad + (0.0 if tensor.grad is None else tensor.grad)


def retained(node, grad):
    """Keep grad if the tensor that node made has asked for it."""
    tensor = node.retaining() if node.retaining is not None else None
    if tensor is not None:
        add_to_grad(tensor, grad)


AccumulateGrad.accumulate = lambda self, grad: add_to_grad(self.variable, grad)

# %% tags=["engine"]
Function.hooks = None
MiniTensor.hooks = None


class RemovableHandle:
    """Puts a hook into a dict under its own number; remove() takes it out again."""

    numbers = 0

    def __init__(self, hooks, hook):
        RemovableHandle.numbers += 1
        self.hooks, self.number = hooks, RemovableHandle.numbers
        hooks[self.number] = hook

    def remove(self):
        self.hooks.pop(self.number, None)


def register_hook(self, hook):
    """Call hook with the gradient of self in every walk that visits it. Returns a handle.

    hook: function of one MiniTensor, which it must not change. Returns None, or a replacement of
        the same shape: a MiniTensor, array or number. It may remove itself while it runs.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    owner = self if self.is_leaf else self.grad_fn
    if owner.hooks is None:
        owner.hooks = {}
    return RemovableHandle(owner.hooks, hook)


MiniTensor.register_hook = register_hook


def after_hooks(node, grad):
    """The gradient that a node passes on, after all hooks of the tensor it belongs to.

    For an AccumulateGrad that tensor is node.variable, else the node's result. grad is an array or a
    MiniTensor, and so is the result. Raises RuntimeError if a replacement has another shape.

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> (x * x).sum().backward()
    >>> x.grad.data
    array([20., 40.])
    """
    owner = node.variable if isinstance(node, AccumulateGrad) else node
    for hook in list((owner.hooks or {}).values()):
        result = hook(as_tensor(grad))
        if result is None:
            continue
        result = as_tensor(result)
        if result.shape != grad.shape:
            name = getattr(hook, "__name__", "<unknown>")
            raise RuntimeError(f"hook '{name}' has changed the size of value")
        grad = result if isinstance(grad, MiniTensor) else result.data
    return grad

# %% [markdown]
# ### The plan of a walk
#
# `grad` (section 4) will walk the graph too. It wants only the gradients of certain tensors, and changes no `.grad` of a leaf. So the walk gets an argument `wanted`. `visits` plans it. Without wanted nodes, all *work*: their rules run. With them, a node works only if it leads to a wanted one, and any other is visited only if it is wanted.

# %% tags=["engine"]
def visits(root, wanted=()):
    """The nodes of a walk from root, in order, as pairs (node, works).

    works: whether the rule of the node runs or, for an AccumulateGrad, .grad is added to
    """
    order, ends, leading = topological_order(root), set(wanted), set()
    if not ends:
        return [(node, True) for node in order]
    for node in reversed(order):
        if any(source in ends or source in leading for source, _ in node.next_functions):
            leading.add(node)
    return [(node, node in leading) for node in order if node in ends or node in leading]

# %%
x, w = MiniTensor(2.0, requires_grad=True), MiniTensor(3.0, requires_grad=True)
hidden = x * w
loss = hidden.tanh() + w
for wanted in (), [hidden.grad_fn]:
    print(", ".join(node.name() + works * " works" for node, works in visits(loss.grad_fn, wanted)))

# %% [markdown]
# The second walk ends at the product: its gradient is wanted, but its rule need not run.
#
# ### Exercise 2: the walk
#
# Complete `walk_back`. It is `backward` of lesson 06 with four changes. The first two are given.
#
# * It goes through `visits(root, wanted)`.
# * With `create_graph`, the gradients are MiniTensors, and recording is on. Without it they are arrays, and recording is off. PyTorch does the same: `create_graph` decides whether *the rules run with recording on or off*. The mode of the caller does not matter.
# * At each node, when its gradient is complete, three things happen in this order. First `grad = after_hooks(node, grad)`; then `retained(node, grad)`; then, if the node is wanted, its gradient goes into `found`, as a MiniTensor (`as_tensor`). They happen at every visited node, even an `AccumulateGrad`.
# * Only nodes that work do more: for those that do not, `continue`. For an `AccumulateGrad`, the walk calls `node.accumulate(grad)`; that line is given. For every other node the rule runs (`shares_of`), the node is released, as in lesson 06, unless `retain_graph` is set, and the shares are sent along the edges.

# %% [markdown] tags=["hint"] exercise="walk"
# After the three lines for every node: `if not works: continue`. `found[node] = as_tensor(grad)` makes a MiniTensor of either kind.

# %% [markdown] tags=["hint"] exercise="walk"
# `shares = shares_of(node, grad)` comes before `node.release()`: a released node has nothing left for its rule.

# %% [markdown] tags=["hint"] exercise="walk"
# The end of the loop: `for (source, _), share in zip(node.next_functions, shares):` and, if `share is not None`, `pending[source] = pending[source] + share if source in pending else share`. Do not use `+=` on an array: the same array may be on its way to another node.

# %% solution="walk" tags=["engine"]
def walk_back(root, cotangent, retain_graph, create_graph, wanted=()):
    """Send a cotangent from root through the graph.

    root: node; cotangent: MiniTensor of the shape of root's output
    retain_graph: if False, each node whose rule has run is released
    create_graph: if True, the rules run on MiniTensors with recording on, and their results have
        a history; if False they run on arrays, with recording off
    wanted: list of nodes. If it is empty, gradients are added to .grad of the leaves. Otherwise no
        .grad of a leaf is changed, and only nodes that lead to a wanted one work: see visits.
    Returns: dict from each wanted node that a gradient has reached to its gradient: a MiniTensor,
        complete, after after_hooks

    >>> x = MiniTensor(2.0, requires_grad=True)
    >>> end, _ = edge_to(x)
    >>> slope = walk_back((x**3).grad_fn, MiniTensor(1.0), True, True, [end])[end]
    >>> slope.item(), slope.requires_grad, x.grad is None
    (12.0, True, True)
    >>> walk_back(slope.grad_fn, MiniTensor(1.0), False, False)
    {}
    >>> x.grad.item(), x.grad.requires_grad
    (12.0, False)
    """
    found = {}
    pending = {root: cotangent if create_graph else cotangent.data}
    with set_grad_enabled(create_graph):
        for node, works in visits(root, wanted):
            grad = pending.pop(node, None)
            if grad is None:
                continue
            ### BEGIN SOLUTION
            grad = after_hooks(node, grad)
            retained(node, grad)
            if node in wanted:
                found[node] = as_tensor(grad)
            if not works:
                continue
            ### END SOLUTION
            if isinstance(node, AccumulateGrad):
                node.accumulate(grad)
                continue
            ### BEGIN SOLUTION
            shares = shares_of(node, grad)
            if not retain_graph:
                node.release()
            for (source, _), share in zip(node.next_functions, shares):
                if share is not None:
                    pending[source] = pending[source] + share if source in pending else share
            ### END SOLUTION
    return found

# %% [markdown]
# `backward` is now short. `retain_graph=None` means: the same as `create_graph`. The new graph leads into the old one, so a second walk may need both.

# %% tags=["engine"]
def backward(self, gradient=None, retain_graph=None, create_graph=False):
    """Add the gradient of self to .grad of every leaf behind it.

    gradient: cotangent, array or MiniTensor of the shape of self; may be left out for one number
    retain_graph: whether the graph can be walked again; None means: as create_graph
    create_graph: whether the gradients themselves can be differentiated

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> (x**3).sum().backward(create_graph=True)
    >>> x.grad.data, x.grad.requires_grad
    (array([ 3., 12.]), True)
    """
    cotangent, (root, _) = cotangent_of(self, gradient), edge_to(self)
    walk_back(root, cotangent, create_graph if retain_graph is None else retain_graph, create_graph)


MiniTensor.backward = backward

# %% check="walk"

# %% [markdown] items="118"
# **Predict** what these lines print. Which attribute does `x.grad.backward()` add to?

# %% items="118"
predict("Which two numbers are printed for your engine?")


def both(x):
    (x**3).backward(create_graph=True)
    first = x.grad.item()
    x.grad.backward()
    return np.array([first, x.grad.item()])


print(both(MiniTensor(3.0, requires_grad=True)))

# %% [markdown] items="118"
# First 27, then 45 instead of 18: the second derivative was *added* to `.grad`, which held the first. PyTorch gives the same numbers, and a warning:

# %% tags=["demo"] items="118"
torch.set_warn_always(True)  # otherwise PyTorch warns once, and not if you run this cell again
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(both(leaf(3.0)))
print(str(caught[0].message).split(". ")[0] + ".")
torch.set_warn_always(False)

# %% [markdown] items="43"
# The warning speaks of a reference cycle: the gradient holds its history, the history holds the leaf, and the leaf holds the gradient. In PyTorch the cycle stays in memory until you set `x.grad = None`. Both the sum of 45 and the cycle call for a function that changes no `.grad` of a leaf.
#
# ## 4. grad, and a matrix that is never built
#
# `torch.autograd.grad(outputs, inputs)` is that function: it **returns** one gradient per input. Inputs need not be leaves.
#
# Second derivatives with respect to `n` numbers form a matrix with `n * n` entries, the **Hessian** `H`. For a million weights it does not fit in memory. But the next section needs products `H v`, the change of the gradient in a direction `v`. Each costs a recorded backward pass, and one through it. For the gradient `g` and a constant `v`, since `H` is symmetric,
#
# > `d/dx sum(g * v) = H v`.
#
# ### Exercise 3: grad and hvp
#
# Complete `grad`: it needs `wanted`, the list of the inputs' nodes, and `found`, what `walk_back` returns. The error messages are PyTorch's. Then write `hvp`, the Hessian-vector product. It must also handle a function whose gradient does not depend on `x`, such as a sum: its Hessian is zero. There are two cases: the gradient of `x.sum()` has no history at all; that of `(x * w).sum()` has one, which leads only to `w`.

# %% [markdown] tags=["hint"] exercise="grad"
# If `retain_graph` is None, use `create_graph`. The wanted nodes are `[edge_to(x)[0] for x in inputs]`. `cotangent_of`, `edge_to(outputs)` and `walk_back` do the rest.

# %% [markdown] tags=["hint"] exercise="grad"
# `hvp`: `(slope,) = grad(function(x), x, create_graph=True)`. If `slope.requires_grad` is False, the result is zeros. Otherwise `grad((slope * v).sum(), x, allow_unused=True)`, and zeros if that is `(None,)`.

# %% solution="grad" tags=["engine"]
def grad(
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False
):
    """The gradients of outputs with respect to inputs, returned; no .grad of a leaf is changed.

    outputs: MiniTensor; inputs: MiniTensor, or a list or tuple of them, leaves or results
    grad_outputs: cotangent, an array or MiniTensor of the shape of outputs; may be left out for one
        number. With create_graph the gradients can be differentiated with respect to it as well.
    retain_graph: None means: as create_graph
    Returns: tuple with one MiniTensor per input, in order
    Raises: RuntimeError if there are no inputs, or one that does not require grad;
        RuntimeError for the first input that outputs does not depend on, with its position:
        "The differentiated Tensor at index 1 appears to not have been used in the graph. Set
        allow_unused=True if this is the desired behavior." With allow_unused=True it gives None.

    >>> x = MiniTensor(2.0, requires_grad=True)
    >>> (first,) = grad(x**3, x, create_graph=True)
    >>> (second,) = grad(first, x)
    >>> first.item(), second.item(), x.grad
    (12.0, 12.0, None)
    """
    inputs = [inputs] if isinstance(inputs, MiniTensor) else list(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if not all(x.requires_grad for x in inputs):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    ### BEGIN SOLUTION
    retain_graph = create_graph if retain_graph is None else retain_graph
    cotangent, wanted = cotangent_of(outputs, grad_outputs), [edge_to(x)[0] for x in inputs]
    found = walk_back(edge_to(outputs)[0], cotangent, retain_graph, create_graph, wanted)
    ### END SOLUTION
    for number, node in enumerate(wanted):
        if node not in found and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {number} appears to not have been used in the "
                "graph. Set allow_unused=True if this is the desired behavior."
            )
    return tuple(found.get(node) for node in wanted)


def hvp(function, x, v):
    """The Hessian of function at x, times v, without the Hessian.

    function: takes a MiniTensor of the shape of x, uses it and returns a MiniTensor of shape ()
    x: MiniTensor that requires grad; it and its .grad stay unchanged
    v: array, list or MiniTensor of the shape of x
    Returns: MiniTensor of the shape of x; zeros if the gradient does not depend on x
    Raises: what function raises

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> hvp(lambda x: (x**3).sum(), x, [1.0, 10.0]).data
    array([  6., 120.])
    """
    ### BEGIN SOLUTION
    (slope,) = grad(function(x), x, create_graph=True)
    product = None
    if slope.requires_grad:
        (product,) = grad((slope * v).sum(), x, allow_unused=True)
    return MiniTensor(np.zeros(x.shape)) if product is None else product
    ### END SOLUTION

# %% check="grad"

# %% [markdown] items="118 120 121 F8"
# Ask both engines for three derivatives of `x**4 + exp(2 * x)` at 1. On paper they are `4 + 2 * e**2`, `12 + 4 * e**2` and `24 + 8 * e**2`. **Predict** how well the engines agree with each other and with these values.

# %% tags=["demo"] items="118 120"
predict("How far apart are the engines?", "15 equal digits", "6 equal digits", "the third is wrong")


def three_derivatives(x, grad):
    found, value = [], x**4 + (2 * x).exp()
    for _ in range(3):
        (value,) = grad(value, x, create_graph=True)
        found.append(value.item())
    return np.array(found)


mine = three_derivatives(MiniTensor(1.0, requires_grad=True), grad)
theirs = three_derivatives(leaf(1.0), torch.autograd.grad)
print("yours:  ", mine)
print("PyTorch:", theirs)
print("on paper", np.array([4, 12, 24]) + np.array([2, 4, 8]) * math.e**2)
print("largest difference", np.abs(mine - theirs).max())

# %% [markdown] items="121 F8"
# Now try the two switches in all combinations. **Predict** the table: do you get the second derivative, and can the graph of `y` be walked again?

# %% items="121 F8"
predict("Which switches give a second derivative?", "retain", "create", "only both", "either")


def tried(action):
    try:
        return f"{action()[0].item():.0f}"
    except RuntimeError as error:
        return str(error)[:27] + " ..."


print("retain  create   second derivative                y once more")
for retain in (False, True):
    for create in (False, True):
        x = MiniTensor(3.0, requires_grad=True)
        y = x**3
        (first,) = grad(y, x, retain_graph=retain, create_graph=create)
        second = tried(lambda: grad(first, x))
        print(f"{retain!s:7s} {create!s:7s}  {second:31s}  {tried(lambda: grad(y, x))}")

# %% [markdown] items="121 F8"
# For `x**3`, whether `y` can be walked again depends on `retain_graph`; whether there is a second derivative, on `create_graph`. They look like one switch because `create_graph` sets the default of `retain_graph`. But `x**3` is one node, which saved a leaf. The slope of `(2 * x)**3` leads back through the node of `2 * x`, which the first walk has released: there a second derivative needs both.
#
# Here your engine draws the graph of the slope of `y = tanh(x * w)`, which is `(1 - y * y) * w`. Which two operations belong to the forward pass? Which arrows lead from them, or from the leaves, into the rules?

# %% tags=["demo"]
from mini_autograd.widgets import explore

x, w = MiniTensor(0.4, requires_grad=True), MiniTensor(2.0, requires_grad=True)
(slope,) = grad((x * w).tanh(), x, create_graph=True)
explore(slope)

# %% [markdown]
# The product `x * w` and its `tanh` belong to the forward pass. Arrows lead into the rules from `y` (here `v2`) and `w`.

# %% [markdown] items="119"
# ## 5. What second derivatives are good for
#
# In a long curved valley gradient descent is slow: the slope is steep across the valley and almost zero along it. Newton's method also uses the curvature. Near `x` a function looks like a parabola. If it opens upward in every direction, its lowest point is at
#
# > `x - H**-1 g`,
#
# where `g` is the gradient and `H` the Hessian. The columns of `H` are its products with the vectors `(1, 0, ...)`, `(0, 1, ...)`: `n` calls of your `hvp`, here 2.
#
# ### Exercise 4: a step of Newton's method
#
# Write `newton_step`. `np.linalg.solve(H, g)` is `H**-1 g`.

# %% [markdown] tags=["hint"] exercise="newton"
# Make a leaf from `x` first. `grad` gives `g`, and `for v in np.eye(n)` loops over the vectors.

# %% [markdown] tags=["hint"] exercise="newton"
# `np.stack([...], axis=1)` puts arrays beside each other, as columns. `solve` takes arrays, so use `.data`.

# %% solution="newton"
def newton_step(function, x):
    """Where Newton's method goes from x: x - H**-1 g.

    function: takes a MiniTensor of the shape of x, and returns a MiniTensor of shape ()
    x: array of shape (n,); it stays unchanged
    Returns: array of shape (n,)
    Raises numpy.linalg.LinAlgError, as np.linalg.solve does, if H has no inverse (in a browser: NaN)

    >>> newton_step(lambda x: ((x - [1.0, 2.0]) ** 2).sum(), np.array([5.0, -7.0]))
    array([1., 2.])
    """
    ### BEGIN SOLUTION
    x = MiniTensor(x, requires_grad=True)
    (g,) = grad(function(x), x)
    hessian = np.stack([hvp(function, x, v).data for v in np.eye(x.data.size)], axis=1)
    return x.data - np.linalg.solve(hessian, g.data)
    ### END SOLUTION

# %% check="newton"

# %% [markdown] items="119"
# Try it in Rosenbrock's valley, whose lowest point is (1, 1). **Predict** how many steps Newton's method takes to come within 0.000001, and whether descent gets there in 1000.

# %% tags=["demo"] items="119"
predict("How many steps does Newton's method take, and does descent get there in 1000?")


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def descent_step(function, x):
    x = MiniTensor(x, requires_grad=True)
    return x.data - 0.001 * grad(function(x), x)[0].data


def visited(step, function, start, steps):
    path = [np.array(start)]
    for _ in range(steps):
        path.append(step(function, path[-1]))
    return np.array(path)


by_newton = visited(newton_step, rosenbrock, [-1.2, 1.0], 7)
by_descent = visited(descent_step, rosenbrock, [-1.2, 1.0], 1000)
print("distance, by Newton:", [f"{each:.0e}" for each in np.abs(by_newton - 1).max(axis=1)])
print(f"distance, by descent: {np.abs(by_descent[-1] - 1).max():.0e} after 1000 steps")

# %% [markdown] items="119"
# Six steps are enough. From the fifth on, the number of right digits roughly doubles with every step.
#
# What is the price? Here is a layer with 400 weights. **Predict** how much longer a product `H v` takes than a gradient.

# %% tags=["demo"] items="119"
predict("How many times as long as a gradient does H v take?")
inputs, direction = np.random.default_rng(4).normal(size=(2, 200, 20))
weights = MiniTensor(0.2 * direction[:20], requires_grad=True)


def network_loss(weights):
    return ((inputs @ weights).tanh() ** 2).mean()


def milliseconds(action):
    return 1000 * min(timeit.repeat(action, number=1, repeat=15))


gradient_ms = milliseconds(lambda: grad(network_loss(weights), weights))
hvp_ms = milliseconds(lambda: hvp(network_loss, weights, direction[20:40]))
print(f"gradient {gradient_ms:.2f} ms, H v {hvp_ms:.2f} ms: {hvp_ms / gradient_ms:.1f} times as long")

# %% [markdown]
# One product costs a few gradients, and all 400 columns of `H` cost 400 such products. Solving adds operations of the order `n**3`. That is one reason why large networks are not trained like this. Another: the function `x**3 - 3 * x` has a maximum at -1 and a minimum at 1. **Predict** where Newton's method goes from 0.2.

# %% tags=["demo"]
predict("Where does Newton's method go from 0.2?", "to the minimum", "to the maximum", "to 0")
for begin in (-2.0, 0.2, 2.0):
    points = visited(newton_step, lambda x: (x**3 - 3 * x).sum(), [begin], 6)
    print(f"from {begin:4.1f}:", points.reshape(-1).round(4))

# %% [markdown]
# From -2, Newton's method climbs to the maximum: it looks only for a slope of zero, at a minimum, a maximum or a saddle point. Second-order methods for networks use cheap parts of the curvature, such as a product `H v`.

# %% [markdown]
# ## Quiz

# %% test="quiz_10" points=5 tags=["quiz"] items="121 122 123 F8 F22 F23"
question(
    "retain_only",
    "`g, = grad(x**3, x, retain_graph=True)`, then `grad(g, x)`. What happens?",
    right("An error: `g` has no history.", "`retain_graph` keeps the graph of `x**3`. The computation of `g` was not recorded."),
    wrong("The second derivative, `6 * x`.", "For that the backward pass itself must be recorded: `create_graph=True`.", misconception="retain_means_create"),
    wrong("Zero: a gradient is a constant.", "It is a constant for autograd, and a constant has no gradient at all: you get an error, not zero.", misconception="none_means_zero"),
    wrong("The first derivative once more.", "That would be `grad` of the same output again.", misconception="retain_means_create"),
)
question(
    "quiet_mix_up",
    "A loss is `(u - 1)**2 + slope**2`, where `slope` came from `grad` with `retain_graph=True`, but without `create_graph`. What does training do?",
    right("It runs, and ignores the second term.", "The first term has a history, so `backward` finds a path. The contribution of `slope` is silently missing."),
    wrong("`backward` raises an error.", "Only if there were no other path to the weights.", misconception="missing_history_is_loud"),
    wrong("It is right, only slower.", "A whole term has no gradient.", misconception="retain_means_create"),
    wrong("The gradient of the second term is added twice.", "It is not there at all.", misconception="missing_history_is_loud"),
)
question(
    "grad_twenty_four",
    "`y = x**3` at 2, `y.backward(create_graph=True)`, then `x.grad.backward()`. What is `x.grad`?",
    right("24", "12 from the first call, and 12, the second derivative, added to it."),
    wrong("12", "The second derivative is 12, but `.grad` is added to.", misconception="grad_is_overwritten"),
    wrong("6", "That is the third derivative.", misconception="order_of_derivative"),
    wrong("None", "`backward` fills `.grad` of a leaf.", misconception="create_graph_skips_grad"),
)
question(
    "saved_intermediate",
    "A rule uses a value that `forward` has computed and saved. It is neither input nor output. What about second derivatives?",
    right("They lack the part that goes through this value: it counts as a constant.", "Only inputs and the output lead back. If there is no other path, you get an error; beside another path the part is silently missing. `gradgradcheck`, in *Further*, finds the mistake."),
    wrong("They are right: saved values keep their history.", "Inside `forward` nothing is recorded, so there is no history.", misconception="saving_makes_edges"),
    wrong("An error in the first backward pass.", "For first derivatives the rule is fine.", misconception="missing_history_is_loud"),
    wrong("They are right, if `retain_graph=True`.", "That keeps the saved value alive. It does not give it a history.", misconception="retain_means_create"),
)
question(
    "hessian_vector",
    "A model has a million weights. What does a product of the Hessian with one vector cost?",
    right("A few times as much as a gradient.", "One recorded backward pass, and a second one through it. The matrix is never built."),
    wrong("A million gradients.", "That is the whole matrix, one column per product.", misconception="hessian_must_be_built"),
    wrong("It is impossible: the matrix has 10**12 entries.", "The matrix is not needed for its product with a vector.", misconception="hessian_must_be_built"),
    wrong("Less than a gradient.", "The gradient has to be computed and recorded first.", misconception="second_order_is_free"),
)

# %% [markdown]
# ## Looking back: twelve questions
#
# They are about lessons 02 to 10. Do not scroll up.

# %% test="quiz_02_to_10" points=6 tags=["quiz"] items="51 54 131 132"
question(
    "back_flags",
    "`a = torch.ones(3)`, `b = torch.ones(3, requires_grad=True)`, `c = a * b`, `d = a * 2`. Which of them require grad?",
    right("`b` and `c`", "A result requires grad if recording is on and at least one input requires grad."),
    wrong("only `b`", "Then no gradient could come back through `c`.", misconception="flag_only_on_leaves"),
    wrong("`a`, `b` and `c`", "An operation changes no flag of its inputs.", misconception="flag_spreads_backward"),
    wrong("all four", "`d` comes from `a` and a number, and neither requires grad.", misconception="flag_spreads_backward"),
)
question(
    "back_leaf",
    "A weight is made by `w = 0.1 * torch.randn(3, requires_grad=True)`, and a loss is computed from it. What is `w.grad` after `loss.backward()`?",
    right("None: `w` is the result of a product, not a leaf.", "The leaf is the tensor that `randn` made, and it has no name. Write `(0.1 * torch.randn(3)).requires_grad_()`."),
    wrong("the gradient of the loss", "Gradients are kept on leaves. A result keeps its gradient only after `retain_grad()`.", misconception="leaf_and_grad_fn"),
    wrong("a tensor of zeros", "Zero would be a gradient that arrived.", misconception="none_means_zero"),
    wrong("0.1 times the gradient of the loss", "That is what arrives at the leaf behind `w`.", misconception="leaf_and_grad_fn"),
)
question(
    "back_slope",
    "At `w = 2` the slope of the loss is `dL/dw = -18`. What happens if `w` becomes 2.001?",
    right("The loss falls by about 0.018.", "A slope is the change of the output per small change of the input: -18 times 0.001."),
    wrong("The loss becomes -18.", "A slope is not a value of the loss.", misconception="slope_is_value"),
    wrong("The loss rises by about 0.018.", "The sign is negative: a larger `w` gives a smaller loss here.", misconception="sign_of_slope"),
    wrong("The loss falls by 18.", "That would be a step of 1, and far away the slope may be different.", misconception="slope_is_change"),
)
question(
    "back_twice",
    "The same loss is computed twice from `w`, and each time `loss.backward()` is called. Nothing is cleared. What is `w.grad`?",
    right("twice the gradient", "`backward` adds to `.grad`."),
    wrong("the gradient", "The second call does not replace what is there.", misconception="backward_overwrites"),
    wrong("the mean of both gradients", "Nothing is divided.", misconception="backward_averages"),
    wrong("There is none: the second call raises an error.", "The second loss has a graph of its own.", misconception="backward_once_only"),
)
question(
    "back_micro",
    "A batch of 64 rows does not fit in memory. You take four parts of 16 rows, and each loss is a mean. How do you get the gradient of the whole batch?",
    right("Divide each loss by 4, call `backward` on each, and clear only before the first.", "The four contributions add up to the gradient of the mean, and only one part's graph is alive at a time."),
    wrong("Call `backward` on each, and clear before each.", "Then only the last part is left.", misconception="clear_every_backward"),
    wrong("Add the four losses and call `backward` once.", "The graphs of all parts would be alive together, and the sum is four times the mean.", misconception="sum_needs_less_memory"),
    wrong("Call `backward` on each, with `retain_graph=True`.", "It keeps memory that nobody needs, and the gradient is four times as large.", misconception="retain_accumulates"),
)
question(
    "back_order",
    "`h` is used by two operations. When does `backward` call the rule of the operation that made `h`?",
    right("once, when both contributions have arrived", "The rule needs the complete gradient of `h`. The topological order sees to that."),
    wrong("twice, once for each contribution", "That gives the right sums at the end, but repeats everything behind `h`.", misconception="rule_per_use"),
    wrong("once, when the first contribution arrives", "The second one would come too late.", misconception="first_contribution_is_enough"),
    wrong("before the operations that use `h`, as in the forward pass", "The order is the opposite one.", misconception="forward_order"),
)
question(
    "back_retain",
    "`h = (x @ w).tanh()`. First `h.sum().backward()`, then `(h * h).sum().backward()`. What happens?",
    right("The second call raises an error.", "It needs what `tanh` and the product had saved, and the first call has freed that. Add the losses, or retain in the first call."),
    wrong("Both work: the two losses have separate graphs.", "Only their last operations are separate. The part behind `h` is shared.", misconception="heads_are_independent"),
    wrong("Both work, and the second replaces the gradient of the first.", "If it worked, it would add.", misconception="backward_overwrites"),
    wrong("The first call raises an error, because `h` is used twice.", "Nothing is missing yet.", misconception="two_losses_need_retain"),
)
question(
    "back_modes",
    "A validation loop runs after `model.eval()`, but without `no_grad`. What is wrong with it?",
    right("Its numbers are right, but it records graphs that nobody uses.", "`eval` changes what some layers compute. Recording is another switch."),
    wrong("Dropout is still active.", "That is what `eval` switches off.", misconception="eval_is_no_grad"),
    wrong("The weights change.", "`step` is never called.", misconception="recording_changes_weights"),
    wrong("Nothing: `eval` switches recording off.", "It does not. Ask `output.requires_grad`.", misconception="eval_is_no_grad"),
)
question(
    "back_detach",
    "`h = x * w` and `y = h.detach() * v`; all three leaves require grad. What does `y.backward()` give?",
    right("`v.grad` is right; `x.grad` and `w.grad` are None.", "Behind the detached tensor there is no history."),
    wrong("All three are right: `detach` only copies.", "It copies nothing, and cuts the history.", misconception="detach_copies"),
    wrong("`v.grad` is right; the other two are zero.", "Nothing arrives there, so there is no zero either.", misconception="none_means_zero"),
    wrong("an error: a detached tensor may not be used", "It is an ordinary tensor and counts as a constant.", misconception="mixing_is_forbidden"),
)
question(
    "back_in_place",
    "`y = x.exp()`, then `y.add_(1)`, then `y.sum().backward()`. What happens?",
    right("`backward` raises an error.", "`exp` had saved its output, and that has been written to. The version counter shows it."),
    wrong("The gradient is silently wrong.", "A write by a method is counted.", misconception="in_place_is_silent"),
    wrong("`y.add_(1)` raises an error.", "`y` is not a leaf, so it may be written to. Only the rule of `exp` minds.", misconception="every_write_is_an_error"),
    wrong("The gradient is right: adding 1 changes no slope.", "It would be, if the rule of `exp` did not need the old output.", misconception="every_write_is_harmless"),
)
question(
    "back_none",
    "After the first `loss.backward()`, `p.grad` is None for one parameter. What does that say?",
    right("No recorded path leads from the loss to `p`.", "It is unused, or there is a `detach`, `item()` or `no_grad` on the path."),
    wrong("Its gradient is zero.", "Then it would be a tensor of zeros.", misconception="none_means_zero"),
    wrong("Its learning rate is zero.", "The optimizer comes after `backward`.", misconception="optimizer_sets_grad"),
    wrong("It will be filled by the next `backward`.", "The same graph gives the same None.", misconception="grad_comes_late"),
)
question(
    "back_create",
    "A loss contains the norm of a gradient. How must this gradient be computed, so that training takes the norm into account?",
    right("by `grad(..., create_graph=True)`", "Then it has a history, and `backward` finds its way through it."),
    wrong("by `grad(..., retain_graph=True)`", "That keeps the old graph. The gradient is still a constant.", misconception="retain_means_create"),
    wrong("by `backward()`, and then read from `.grad`", "Without `create_graph` it is a constant there, too.", misconception="grad_has_history"),
    wrong("under `no_grad`, so that nothing is counted twice", "Then nothing of it is recorded.", misconception="modes_know_the_purpose"),
)

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | `create_graph` | the rules run on tensors, with recording on; the gradient gets a history |
# | `retain_graph` | the old graph stays; it makes nothing new |
# | a rule for all orders | saves inputs and outputs, and computes everything else from them with operators |
# | `grad` | returns gradients, of any tensors, and changes no `.grad` of a leaf |
# | Newton's method | uses the curvature: few steps, each of which costs a Hessian |
# | Hessian-vector product | the gradient of `sum(g * v)`: costs a few gradients, and builds no matrix |
#
# Your engine now differentiates everything that training needs. The next lesson builds a library on it.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without its exercises, which only earn points. Its sections do not depend on each other.

# %% [markdown] items="123"
# ## Hooks
#
# A **hook** is called with the gradient of a tensor as soon as it is complete. A tensor that it returns is passed on instead. If it returns None, the gradient is passed on unchanged. **Predict** the printed lines, and the gradient of `x`, which is not cleared.

# %% tags=["demo"] items="123"
predict("What is the gradient of x after the first backward, and after the second?")


def look(grad):
    print(f"shape {tuple(grad.shape)}, mean {grad.mean().item():.3f}")


x_torch = leaf([1.0, 2.0, 3.0])
hidden_torch = x_torch * 2
hidden_torch.register_hook(look)
hidden_torch.register_hook(lambda grad: grad * 10)
handle = hidden_torch.register_hook(look)
hidden_torch.sum().backward(retain_graph=True)
print("gradient of x:", x_torch.grad.tolist())
handle.remove()
hidden_torch.sum().backward()
print("gradient of x:", x_torch.grad.tolist())

# %% [markdown] items="123"
# Hooks are called in the order in which you registered them. Each sees what the previous one returned. `register_hook` returns a handle that can remove the hook. The hooks of a result are kept on its **node**, because the program may drop the result before the backward pass. The hooks of a leaf are kept on the **tensor**.

# %% [markdown] items="123"
# One use is **gradient reversal**. Suppose a network's features should not tell a classifier which camera a picture came from. Then the classifier gets the true gradient, and the features get it with a minus sign. One hook does that in both engines.

# %% tags=["demo"] items="123"
def reversed_features(make, array):
    features = make(array)
    hidden = features * 2
    hidden.register_hook(lambda grad: print("mean of the gradient:", grad.mean().item()))
    hidden.register_hook(lambda grad: -grad)
    (hidden * hidden).sum().backward()
    return np.array(features.grad.data.tolist())


array = np.array([0.5, -1.5])
mine = reversed_features(lambda a: MiniTensor(a, requires_grad=True), array)
theirs = reversed_features(leaf, array)
print("yours", mine, "  PyTorch", theirs, "  difference", np.abs(mine - theirs).max())

# %% [markdown] items="123 121"
# A hook runs in the middle of the walk, so it can tell which mode the rules run in. **Predict** the three answers of each engine: with `create_graph`, with `create_graph` inside `no_grad`, and without.

# %% tags=["demo"] items="123 121"
predict("Is recording on inside the hook: with create_graph, with it inside no_grad, and without?")


def modes(x, no_grad, is_grad_enabled):
    found, y = [], x**3
    x.register_hook(lambda grad: found.append(is_grad_enabled()))
    y.backward(create_graph=True)
    with no_grad():
        y.backward(create_graph=True)
    x.grad = None
    y.backward()
    return found


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print("yours:  ", modes(MiniTensor(2.0, requires_grad=True), no_grad, is_grad_enabled))
    print("PyTorch:", modes(leaf(2.0), torch.no_grad, torch.is_grad_enabled))

# %% [markdown] items="123"
# A hook must not *change* its argument. This one sets the gradient of `a` to zero in place. **Predict** the gradient of `b`, which should be 3.

# %% tags=["demo"] items="123"
predict("What is the gradient of b?", "3", "0")


def erase(grad):
    grad.zero_()


def careless(a, b):
    a.register_hook(erase)
    ((a + b) * 3).sum().backward()
    return [x.grad.data.tolist() for x in (a, b)]


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print("yours:  ", careless(*[MiniTensor([1.0, 2.0], requires_grad=True) for _ in range(2)]))
    print("PyTorch:", careless(leaf([1.0, 2.0]), leaf([1.0, 2.0])))

# %% [markdown] items="123 gap:saved_tensor_hooks"
# The rule of `+` sends the same array to both sides, and no counter guards gradients on their path. Return a new tensor instead of writing.
#
# PyTorch has a second kind of hook, for **saved values**. Inside a block `saved_tensors_hooks(pack, unpack)`, each value that a node wants to save goes through `pack`. It comes back through `unpack` when a rule reads it. So you can count or shrink what is saved. **Predict** how the gradient changes if the saved values are kept in half precision.

# %% tags=["demo"] items="gap:saved_tensor_hooks"
predict(
    "By what fraction does the gradient change in half precision?",
    "not at all",
    "about 1e-4",
    "about 0.1",
)


def trained_gradient(pack, unpack):
    torch.manual_seed(0)
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(64, 64), torch.nn.Tanh())]
    model = torch.nn.Sequential(*layers).double()
    rows = torch.randn(200, 64, dtype=torch.float64)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = (model(rows) ** 2).mean()
    loss.backward()
    return torch.cat([p.grad.reshape(-1) for p in model.parameters()])


def counted(tensor):
    sizes.append(tensor.numel() * tensor.element_size())
    return tensor


def halved(tensor):
    small = tensor.half()
    sizes.append(small.numel() * small.element_size())
    return small


sizes = []
exact = trained_gradient(counted, lambda tensor: tensor)
print(f"as they are:    {len(sizes)} values, {sum(sizes) / 1024:.0f} KiB")
sizes = []
rough = trained_gradient(halved, lambda tensor: tensor.double())
print(f"half precision: {len(sizes)} values, {sum(sizes) / 1024:.0f} KiB", end="")
print(f"   relative change of the gradient {(rough - exact).norm() / exact.norm():.1e}")

# %% [markdown] items="122"
# ## Clipping
#
# One step with a huge gradient can ruin a network. So gradients are often *clipped* before `step`. **By value**: every entry is moved into a range. **By norm**: all gradients together count as one long vector; if it is too long, it is shortened as a whole. **Predict** which of them keeps the direction.

# %% tags=["demo"] items="122"
predict("Which of the two keeps the direction?", "by value", "by norm", "both", "neither")


def angle(a, b):
    return np.degrees(np.arccos(min(1.0, (a @ b) / np.linalg.norm(a) / np.linalg.norm(b))))


gradient = torch.tensor([3.0, -4.0, 0.1], dtype=torch.float64)
for name, clip in (
    ("by norm", lambda p: torch.nn.utils.clip_grad_norm_(p, 1.0)),
    ("by value", lambda p: torch.nn.utils.clip_grad_value_(p, 1.0)),
):
    p = leaf([0.0, 0.0, 0.0])
    p.grad = gradient.clone()
    returned = clip(p)
    degrees = angle(p.grad.numpy(), gradient.numpy())
    print(f"{name:9s} {p.grad.numpy().round(4)}   turned by {degrees:.1f} degrees", end="")
    print("" if returned is None else f", returned {returned:.4f}")

# %% [markdown] items="122"
# PyTorch's formulas, for gradients `g` of several parameters:
#
# > norm of order `p`: the `p`-th root of the sum of `|g|**p` over all entries of all gradients; for `p = inf`, the largest `|g|`
#
# > every `g` is multiplied by `max_norm / (norm + 1e-6)`, if that is less than 1, and by 1 otherwise
#
# ### Exercise 5: clip by norm
#
# Complete `clip_grad_norm_`. It works **in place**: `p.grad` stays the same object, and the write is counted (use `mul_` of lesson 09). Nothing is recorded. `clip_grad_value_` is given, as an example.

# %%
def clip_grad_value_(parameters, clip_value):
    """Move every entry of the gradients into the range from -clip_value to clip_value, in place.

    parameters: as for clip_grad_norm_. A NaN stays NaN.
    Returns: None

    >>> w = MiniTensor([0.0, 0.0], requires_grad=True)
    >>> w.grad = MiniTensor([3.0, -0.5])
    >>> clip_grad_value_([w], 1.0)
    >>> w.grad.data
    array([ 1. , -0.5])
    """
    parameters = [parameters] if isinstance(parameters, MiniTensor) else parameters
    with no_grad():
        for p in parameters:
            if p.grad is not None:
                p.grad.copy_(np.clip(p.grad.data, -clip_value, clip_value))

# %% [markdown] tags=["hint"] exercise="clip"
# Put all entries into one array: `np.concatenate([g.data.reshape(-1) for g in grads])`. If there are no gradients, the norm is 0.

# %% [markdown] tags=["hint"] exercise="clip"
# `np.minimum(max_norm / (norm + 1e-6), 1.0)` keeps a NaN, as PyTorch does. Python's `min(1.0, nan)` is 1.0.

# %% solution="clip"
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """Shorten the gradients of parameters, all together, to a norm of at most max_norm.

    parameters: MiniTensor, or an iterable of them; those whose .grad is None are left out
    max_norm, norm_type: numbers; norm_type may be math.inf
    Returns: MiniTensor of shape (), the norm before clipping; 0 if there are no gradients.
    Each p.grad stays the same object. Its numbers are multiplied in place, even by 1 or NaN.
    Raises RuntimeError whose text begins with "The total norm of order 2.0 for gradients from
        `parameters` is non-finite" (with norm_type instead of 2.0) if error_if_nonfinite and the
        norm is infinite or NaN; then no gradient is changed.

    >>> w = MiniTensor([0.0, 0.0], requires_grad=True)
    >>> w.grad = MiniTensor([3.0, 4.0])
    >>> clip_grad_norm_(w, 1.0).item(), w.grad.data.round(5)
    (5.0, array([0.6, 0.8]))
    """
    parameters = [parameters] if isinstance(parameters, MiniTensor) else parameters
    grads = [p.grad for p in parameters if p.grad is not None]
    ### BEGIN SOLUTION
    sizes = np.abs(np.concatenate([g.data.reshape(-1) for g in grads] or [np.zeros(1)]))
    norm = sizes.max() if norm_type == math.inf else (sizes**norm_type).sum() ** (1 / norm_type)
    ### END SOLUTION
    if error_if_nonfinite and not np.isfinite(norm):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
            "anyway, set `error_if_nonfinite=False`"
        )
    ### BEGIN SOLUTION
    factor = np.minimum(max_norm / (norm + 1e-6), 1.0)
    with no_grad():
        for g in grads:
            g.mul_(factor)
    ### END SOLUTION
    return MiniTensor(norm)

# %% check="clip"

# %% [markdown] items="F22"
# Clipping is often recommended **against NaN**. A gradient has overflowed: one entry is infinite, another is 1. **Predict** what clipping to norm 1 does to it. Then predict the same for a model of three parameters, one of which has a NaN in its gradient.

# %% items="F22"
predict("What does clipping to norm 1 turn [inf, 1] into?", "[1, 0]", "[nan, 0]", "[inf, 1]")


def clipped(*gradients):
    parameters = [MiniTensor(np.zeros(len(g)), requires_grad=True) for g in gradients]
    for parameter, gradient in zip(parameters, gradients):
        parameter.grad = MiniTensor(gradient)
    with np.errstate(invalid="ignore"):
        norm = clip_grad_norm_(parameters, 1.0)
    return norm.item(), [p.grad.data.tolist() for p in parameters]


print("yours:", *clipped([math.inf, 1.0]))
print("yours:", *clipped([math.nan, 1.0], [2.0], [3.0]))

# %% tags=["demo"] items="F22"
p = leaf([0.0, 0.0])
p.grad = torch.tensor([math.inf, 1.0], dtype=torch.float64)
norm = torch.nn.utils.clip_grad_norm_(p, 1.0)
print("PyTorch:", norm.item(), p.grad.tolist())
try:
    torch.nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
except RuntimeError as error:
    print("RuntimeError:", str(error)[:88])

# %% [markdown] items="F22"
# Clipping makes it worse. The infinite entry becomes NaN (the factor is `1 / inf = 0`, and `0 * inf` is NaN), and the rest becomes 0. One NaN anywhere makes the norm NaN, and then *every* gradient of the model. Clipping shortens gradients that are too long; it cannot fix one that is not a number. What helps: check the returned norm, and **skip the step** if it is not finite. Or set `error_if_nonfinite=True`, which stops at once.
#
# "Clip at 1.0" is often given as a rule. But the norm of a gradient changes with the unit of the targets, with the size of the model, and with sum or mean. The next cell fits a line to lengths, once in meters and once in millimeters. **Predict** what the limit of 1.0 does in each.

# %% items="F23"
predict("How many of 60 steps are shortened in millimeters?")
positions = np.linspace(-1, 1, 30)
lengths = 1.5 * positions + 0.2 * np.random.default_rng(7).normal(size=30)


def fitted_slope(unit, limit, steps=60):
    """The slope, in meters, and how many steps were shortened."""
    w, shortened = MiniTensor(0.0, requires_grad=True), 0
    for _ in range(steps):
        w.grad = None
        ((w * positions - unit * lengths) ** 2).mean().backward()
        shortened += clip_grad_norm_(w, limit).item() > limit
        with no_grad():
            w.sub_(0.3 * w.grad.data)
    return w.item() / unit, shortened


for unit, name in ((1, "meters"), (1000, "millimeters")):
    for limit in (math.inf, 1.0):
        slope, shortened = fitted_slope(unit, limit)
        print(f"{name:12s} limit {limit!s:4s} slope {slope:.4f}   {shortened} of 60 steps shortened")

# %% [markdown] items="F23 122"
# In meters the limit shortens a single step; in millimeters it shortens every step, and there is almost no progress. The limit is a setting, like the learning rate. To choose it, log the norm that `clip_grad_norm_` returns, the norm **before** clipping.

# %% [markdown] items="105"
# ## Is every rule right twice?
#
# You can check second derivatives with `gradcheck` from lesson 08, applied to the *gradient*. PyTorch calls it `gradgradcheck`. The gradients of all inputs are added up with random weights. Each input times 0 is added too, so there is a path back to it even if a gradient is constant.

# %% tags=["demo"] items="105"
draw = np.random.default_rng(0)


def random_leaf(*shape):
    return MiniTensor(draw.uniform(0.5, 1.5, size=shape), requires_grad=True)


def twice_right(function, *inputs):
    """Whether gradcheck passes for the first derivatives of a function; or why not."""
    cotangent = draw.normal(size=function(*inputs).shape)
    weights = [draw.normal(size=x.shape) for x in inputs]

    def gradients(*inputs):
        inputs = [x if x.requires_grad else MiniTensor(x.data, requires_grad=True) for x in inputs]
        found = grad(function(*inputs), inputs, cotangent, create_graph=True)
        return sum(((g * w).sum() + (0 * x).sum() for g, w, x in zip(found, weights, inputs)), 0.0)

    try:
        return gradcheck(gradients, inputs)
    except RuntimeError as error:
        return f"{type(error).__name__}: {str(error)[:76]} ..."


a, b, c = random_leaf(2, 3), random_leaf(3, 2), random_leaf(3)
rules = {
    "* / - **": lambda a, b: (a * a.exp() - b.T / a) ** 3,
    "exp log tanh": lambda a, b: (a.log() * b.T).tanh().exp(),
    "relu abs": lambda a, b: (a - 1).relu() ** 2 * (b.T - 1).abs() ** 2,
    "@ T": lambda a, b: (a @ b) @ (a @ b).T,
    "sum mean max": lambda a, b: a.sum(dim=1) * (b * b).mean() + a.max(dim=1) ** 2 * b.max(),
    "index reshape": lambda a, b: a[[0, 0, 1], 1:] * b.reshape(2, 3)[1, 2] * b,
    "log_softmax": lambda a, b: a.log_softmax(1) * b.T,
    "written in place": lambda a, b: (a * b.T).mul_(a).add_(b[0, 0]),
    "logsumexp": lambda a, b: a.logsumexp(dim=1) * b.logsumexp(dim=0),
}
for name, rule in rules.items():
    print(f"{name:17s} {twice_right(rule, a, b)}")
print(f"{'linear':17s} {twice_right(lambda x, w, c: x.linear(w, c[:2]).tanh(), a, b, c)}")

# %% [markdown] items="105"
# All given rules pass. Your `logsumexp` of lesson 08 was written for arrays, and the error says so. (Written with operators, it already passes.)
#
# A class that saves the softmax is right for one derivative and wrong for two: a softmax is neither an input nor the output, so it comes back as a **constant**. PyTorch treats such a value in the same way. Here is `exp(-x)` at 0, with three rules. Both derivatives have size 1. (`x**3` is added as another path from the gradient to `x`. Its first two derivatives are 0 here.) **Predict** the second ones.

# %% tags=["demo"] items="105"
predict("How many of the three second derivatives have size 1?", "1", "2", "3")


def decay(save, rule):
    class Decay(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = (-x).exp()
            ctx.save_for_backward({"input": x, "output": y, "something else": y * 1}[save])
            return y

        @staticmethod
        def backward(ctx, grad):
            return rule(grad, *ctx.saved_tensors)

    return Decay.apply


for save, rule in {
    "input": lambda grad, x: -grad * (-x).exp(),
    "output": lambda grad, y: -grad * y,
    "something else": lambda grad, z: -grad * z,
}.items():
    x_torch = leaf(0.0)
    y_torch = decay(save, rule)(x_torch) + x_torch**3
    (first,) = torch.autograd.grad(y_torch, x_torch, create_graph=True)
    (second,) = torch.autograd.grad(first, x_torch)
    print(f"saved: {save:15s} first {first.item():4.0f}   second {second.item():4.0f}")

# %% [markdown] items="105"
# The last rule gives 0 instead of 1, without a message. Without the `+ x**3`, the gradient would be a constant, and asking for its derivative an error: that would be better. So: **save inputs and outputs, and compute everything else from them with operators.**
#
# ### Exercise 6: a rule that can be differentiated
#
# Write `LogSumExp` again, as `SmoothLogSumExp`. Save what leads back, and let the rule compute the softmax from it, `exp(a - output)`, in a form that works for arrays and for MiniTensors. You can use operators and `reshape`. `applied(Exp, x)` is the exponential of either, `applied(Sum, x, dim=1)` the sum.
#
# If you save the output, save the same array object that `forward` returns, not a copy or another shape of it. Later lessons do not use this exercise.

# %% [markdown] tags=["hint"] exercise="logsumexp"
# Write `forward` as in lesson 08: `largest`, then the sum with `keepdims=True`. Keep the shape with the 1 in `ctx.kept`. Then set `output = output.squeeze(axis=dim)`, save `a` and this `output`, and return it.

# %% [markdown] tags=["hint"] exercise="logsumexp"
# In `backward`, `output.reshape(ctx.kept)` and `grad.reshape(ctx.kept)` have the axis again. The rule is `grad * exp(a - output)`.

# %% solution="logsumexp"
class SmoothLogSumExp(Function):
    """log(sum(exp(a))) along dim, which disappears from the shape; finite for finite a of any size.

    forward: a an array of shape such as (3, 4), dim an integer such as 1 or -1; returns (3,)
    backward: grad of shape (3,), an array or a MiniTensor; returns the same kind, of shape (3, 4).
        All derivatives are right, not only the first.

    >>> a = MiniTensor([1000.0, 1000.0], requires_grad=True)
    >>> (first,) = grad(a.logsumexp(dim=0), a, create_graph=True)
    >>> (second,) = grad(first[0], a)
    >>> first.data, second.data
    (array([0.5, 0.5]), array([ 0.25, -0.25]))
    """

    @staticmethod
    def forward(ctx, a, dim):
        ### BEGIN SOLUTION
        largest = a.max(axis=dim, keepdims=True)
        output = largest + np.log(np.exp(a - largest).sum(axis=dim, keepdims=True))
        ctx.kept = output.shape
        output = output.squeeze(axis=dim)
        ctx.save_for_backward(a, output)
        return output
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        a, output = ctx.saved_tensors
        softmax = applied(Exp, a - output.reshape(ctx.kept))
        return grad.reshape(ctx.kept) * softmax
        ### END SOLUTION


MiniTensor.logsumexp = lambda self, dim: SmoothLogSumExp.apply(self, dim=dim)

# %% check="logsumexp"

# %% [markdown] items="119"
# ## Gradients inside a loss
#
# **Equations.** A network `u(t)` should satisfy `u' = cos(t)` and `u(0) = 0`. The loss contains the network's own derivative, so training needs the derivative of a derivative. Such networks are called *physics-informed*. Take the inner derivative first with `retain_graph=True`, then with `create_graph=True`. **Predict:** does the first run stop with an error?

# %% tags=["demo"] items="119 F8"
import matplotlib.pyplot as plt

from mini_autograd.widgets.demo import logarithmic

plt.rcParams.update({"figure.figsize": (7, 4), "figure.facecolor": "white", "font.size": 11})
plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.3})

predict("Does the first run stop with an error?", "yes", "no")
times = MiniTensor(np.linspace(0, 4, 20).reshape(-1, 1), requires_grad=True)


def solved_equation(steps=250, **options):
    random = np.random.default_rng(1)
    arrays = random.normal(size=(1, 12)), random.normal(size=12), 0.3 * random.normal(size=(12, 1))
    w1, b1, w2 = parameters = [MiniTensor(array, requires_grad=True) for array in arrays]
    optimizer, losses = SGD(parameters, lr=0.02, momentum=0.9), []
    for _ in range(steps):
        u = (times * w1 + b1).tanh() @ w2
        (slope,) = grad(u.sum(), times, **options)
        loss = ((slope - np.cos(times.data)) ** 2).mean() + (u[0] ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return u.data, losses


fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for name in ("retain_graph", "create_graph"):
    u, losses = solved_equation(**{name: True})
    axes[0].plot(losses, label=f"{name}=True")
    axes[1].plot(times.data, u, "o-", markersize=4, label=f"{name}=True")
    error = np.abs(u - np.sin(times.data)).max()
    print(f"{name}: loss {losses[-1]:.5f}, largest error of u {error:.3f}")
axes[1].plot(times.data, np.sin(times.data), "k--", label="sin(t)")
axes[0].set(xlabel="step", ylabel="loss")
logarithmic(axes[0])
axes[1].set(xlabel="t", ylabel="u", ylim=(-1.2, 1.9))  # space for the legend
axes[0].legend()
axes[1].legend(loc="upper right")
plt.show()

# %% [markdown] items="119 F8"
# There is no error. The loss also depends on the weights through `u[0]`, so `backward` finds a path. The contribution of `slope` is silently missing.
#
# **Learning to learn.** A step of gradient descent, `w1 = w0 - 0.1 * g(w0)`, is a function of `w0`. How does the loss *after* the step depend on `w0`? Should the gradient be a constant, or keep its history? Finite differences give the answer.

# %% tags=["demo"] items="119"
def loss_of(w):
    return ((w**2 - 2) ** 2).sum()


def after_a_step(w, **options):
    (g,) = grad(loss_of(w), w, **options)
    return loss_of(w - 0.1 * g)


w = MiniTensor([0.8, -1.7], requires_grad=True)
for options in ({}, {"create_graph": True}):
    print(f"{options!s:22s}", grad(after_a_step(w, **options), w)[0].data)
print("differences           ", numerical_jacobian(lambda w: after_a_step(w), (w,), 0)[:, 0])

# %% [markdown]
# The gradient must keep its history.

# %% [markdown]
# ## The cycle of create_graph
#
# A loop makes ten leaves with the cycle of section 3, and drops them. **Predict** how many are still in memory before and after Python's garbage collector runs.

# %% tags=["demo"]
import gc
import weakref

predict("How many of ten are alive before and after the collection?")


def alive(make, recording):
    """How many of ten dropped leaves are alive: before and after the garbage collector ran."""
    born = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            x = make([1.0, 2.0])
            born.append(weakref.ref(x))
            (x**3).sum().backward(create_graph=recording)
        del x
        before = sum(reference() is not None for reference in born)
    finally:
        gc.enable()
    gc.collect()
    return before, sum(reference() is not None for reference in born)


def leaf_of_mine(value):
    return MiniTensor(value, requires_grad=True)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for recording in (False, True):
        mine, theirs = alive(leaf_of_mine, recording), alive(leaf, recording)
        print(f"create_graph={recording!s:5s}  yours: {mine}   PyTorch: {theirs}")

# %% [markdown]
# Your cycle is made of Python objects, so Python's garbage collector finds it. PyTorch's runs through C++, where that collector does not look.

# %% [markdown]
# ## Questions about this part

# %% test="quiz_10_further" points=2 tags=["quiz"]
question(
    "hook_returns",
    "A hook prints the norm of the gradient and ends without `return`. Which gradient is passed on?",
    right("The gradient, unchanged.", "Returning nothing is returning None, and None keeps it."),
    wrong("None: the gradient is lost.", "None means: no replacement.", misconception="hook_must_return"),
    wrong("Zero.", "A hook that wants zeros has to return them.", misconception="none_means_zero"),
    wrong("An error is raised.", "Most hooks only look.", misconception="hook_must_return"),
)
question(
    "hook_when",
    "`x` is used three times. How often is its hook called in one backward pass, and with what?",
    right("Once, with the sum of the three contributions.", "It is called when the gradient is complete."),
    wrong("Three times, with each contribution.", "That would be hooks at the edges.", misconception="hook_per_use"),
    wrong("Once, with the sum of the contributions and the old `.grad`.", "A hook sees what arrives in this backward pass. Only the leaf adds it to `.grad`.", misconception="hook_sees_grad"),
    wrong("Once, with the last contribution.", "The node waits until all have arrived.", misconception="hook_per_use"),
)
question(
    "clip_nan",
    "Clipping to norm 1 multiplies all gradients by `np.minimum(1 / norm, 1)`. The norm is that of one long vector with all their entries. One entry is NaN. What is true afterward?",
    right("All entries of all gradients are NaN.", "The norm is NaN, so the factor is NaN too."),
    wrong("The NaN has become 0.", "No comparison with NaN is true, and no multiplication removes it.", misconception="clipping_cures_nan"),
    wrong("Only this entry is NaN.", "All gradients get the same factor. Only clipping by *value* treats each entry by itself.", misconception="clip_by_value_or_norm"),
    wrong("An error is raised.", "NaN in a formula raises no error. PyTorch checks only with `error_if_nonfinite=True`.", misconception="clipping_checks"),
)
question(
    "clip_limit",
    "A recipe says: always clip at 1.0. You change the loss from mean to sum over 64 rows. What then?",
    right("The gradients are 64 times as long, so the same limit now shortens steps that it let pass before.", "The norm has a unit. The limit is a setting, like the learning rate."),
    wrong("Nothing: clipping is relative.", "It compares with a fixed number.", misconception="clipping_is_relative"),
    wrong("Clipping at 1.0 is needed in both cases.", "It may be useful in both, in one, or in neither. Look at the norms.", misconception="clipping_is_a_law"),
    wrong("The direction of each step changes.", "Clipping by norm keeps the direction.", misconception="clip_by_value_or_norm"),
)
