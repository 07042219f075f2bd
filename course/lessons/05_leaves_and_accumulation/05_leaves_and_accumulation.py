# %% [markdown]
# # Leaves and accumulation
#
# *Core: about 105 minutes; after exercise 3 is a good place for a break. Further: about 70 minutes, optional. You build leaves, nodes, `AccumulateGrad` and an optimizer. You need lessons 02 to 04.*
#
# Two programs train the same small network on the same data, from the same weights. They differ in one line: the second passes `forget=True`, and so skips `optimizer.zero_grad()`. **Predict** which one ends with the lower loss.

# %% tags=["engine"]
import weakref

import numpy as np

# %%
from autograder.student import check, hints, predict, progress, quiz, start_lesson

# %% tags=["demo"]
import warnings

import torch
from helpers_05 import distances, heights, layers, network, plot_balls, plot_losses, points
from helpers_05 import print_flags, train

from mini_autograd.widgets import accumulation, explore

torch.set_num_threads(1)
warnings.simplefilter("ignore", UserWarning)  # PyTorch warns when .grad of a result is read

# %% tags=["demo"]
predict("Which run ends with the lower loss?", "with zero_grad", "without zero_grad", "it is the same")
with_zeroing = train(torch.tensor, torch.optim.SGD)
without_zeroing = train(torch.tensor, torch.optim.SGD, forget=True)
plot_losses(with_zero_grad=with_zeroing, the_line_forgotten=without_zeroing)
print(f"after 500 steps: {with_zeroing[-1]:.3f} with zero_grad, {without_zeroing[-1]:.3f} without")

# %% [markdown]
# The program with the mistake ends with a lower loss. **What exactly does the forgotten line do, why can leaving it out help, and when does it end badly?**
#
# To answer, you have to know what writes into `.grad`, what reads it and what clears it. By the end, you can
#
# 1. tell whether any given tensor is a leaf, and whether it keeps its `.grad`;
# 2. build a graph of nodes, and write a `backward` that adds only into the leaves;
# 3. write an optimizer, and name the one place in a training loop where clearing is wrong;
# 4. predict what happens in a training run that never clears.

# %% [markdown]
# ## 1. The node
#
# You start with your engine from lesson 04. There, a rule is a function inside a function. It is hard to look into, and to make release what it holds (lesson 06 needs that). So a node becomes an object of a class called `Function`, with attributes that you can read.
#
# If something breaks your engine, run the next cell again, and then every cell below it.

# %%
start_lesson()

# %% tags=["engine"]
class Function:
    """One operation. An instance is one call: a node of the graph, and the `ctx` of its rules."""

    next_functions = ()  # one pair (node, 0) per input; (None, 0) where no gradient is wanted
    input_shapes = ()  # the shapes of the inputs, to undo broadcasting
    retaining = None  # the tensor that asked with retain_grad, held weakly
    saved = ()  # what forward kept for backward

    def save_for_backward(self, *arrays):
        self.saved = arrays

    @property
    def saved_tensors(self):
        return self.saved

    @classmethod
    def name(cls):
        return cls.__name__ + "Backward0"


class Mul(Function):
    """a * b. Both factors are needed later."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a
# %% [markdown]
# An operation is a subclass with two static methods. `forward` computes with plain arrays, and passes what the rule will need to `ctx.save_for_backward`. `backward` takes the incoming gradient and returns one gradient per input, in a tuple if there are several. The `ctx` that both get **is the node**. (They are static, as in PyTorch: you pass the node yourself.) The other attributes of `Function` come in exercises 2 and 4. Try `Mul` without a graph, and **predict** the last line.

# %%
predict("What does the last line print?")
ctx = Mul()
print(Mul.forward(ctx, np.array(2.0), np.array(3.0)))
print(ctx.name(), ctx.saved_tensors)
print(Mul.backward(ctx, np.array(10.0)))

# %% [markdown]
# ### Exercise 1: two rules as classes
#
# Translate the difference and tanh from lesson 04. For the difference only the rule is missing. Save only what a rule needs. A rule may return `grad` itself, but must not change `grad` or what was saved. `saved_tensors` is always a tuple, also for one array. For `tanh`, save the output: the next operation often keeps that array anyway (lesson 06). Saving the input counts as right too.

# %% [markdown] tags=["hint"] exercise="rules_as_classes"
# The rule of a difference needs neither of its inputs. It returns two gradients, in a tuple.

# %% [markdown] tags=["hint"] exercise="rules_as_classes"
# `Tanh.forward` computes the output, saves it with `ctx.save_for_backward(output)`, and returns it. `Tanh.backward` starts with `(output,) = ctx.saved_tensors`; the parentheses and the comma unpack a tuple of one.

# %% solution="rules_as_classes" tags=["engine"]
class Sub(Function):
    """a - b. Its rule needs no saved array."""

    @staticmethod
    def forward(ctx, a, b):
        return a - b

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        return grad, -grad
        ### END SOLUTION


class Tanh(Function):
    """The hyperbolic tangent of a (np.tanh). Its slope is 1 - output**2.

    >>> float(Tanh.forward(Tanh(), np.array(0.0)))
    0.0
    """

    @staticmethod
    def forward(ctx, a):
        ### BEGIN SOLUTION
        output = np.tanh(a)
        ctx.save_for_backward(output)
        return output
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        (output,) = ctx.saved_tensors
        return grad * (1 - output**2)
        ### END SOLUTION
# %% check="rules_as_classes"

# %% [markdown]
# ## 2. Which tensors keep a gradient?
#
# The engine of lesson 04 puts a `.grad` on every tensor of the graph. Of all the gradients in a chain of 30 steps, an optimizer reads only that of the parameter. All others should only pass through, from one rule to the next. That is one reason why PyTorch keeps `.grad` for **leaves** alone. But what is a leaf? **Predict** which of the five tensors below have a `.grad`.

# %% tags=["demo"] items="28 30 F41 F48"
predict("Which of the five have a .grad after backward?")
w, data = torch.ones(3, requires_grad=True), torch.ones(3)
result, moved = w * data, w.to(torch.float64)
(result.sum() + moved.sum()).backward()

print_flags({"w": w, "data": data, "w * data": result, "data * 2": data * 2, "w.to(float64)": moved})

# %% [markdown] items="27 28 32"
# | | `requires_grad` | `is_leaf` | `grad_fn` | keeps `.grad` |
# | --- | --- | --- | --- | --- |
# | you made it, with `requires_grad=True`: a parameter | True | True | None | yes |
# | you made it without: data, labels | False | True | None | there is none |
# | an operation made it, and an input requires a gradient | True | False | its node | only if you call `retain_grad` |
# | an operation made it from tensors that require none | False | True | None | there is none |
#
# The flag **propagates**: if one input requires a gradient, the result does too. A leaf need not require a gradient: `data` does not, since nobody updates a data set. And "requires a gradient" does not mean "keeps one": `w.to(float64)` looks like a parameter, but it is the result of an operation, and its gradient goes through to `w`.

# %% [markdown]
# ## 3. The new tensor
#
# So the class changes. A tensor no longer holds its inputs and its rule. It holds only `grad_fn`, the **node** that made it. Leaves have none.

# %% tags=["engine"]
class MiniTensor:
    """An array, and what the engine needs to know about it."""

    __array_ufunc__ = None  # we handle array * tensor, not NumPy

    def __init__(self, data, requires_grad=False):
        self.data = np.asarray(data, dtype=np.float64)  # not copied if it is such an array already
        self.requires_grad = requires_grad
        self.grad = None  # a MiniTensor of the same shape, once a gradient has arrived
        self.grad_fn = None  # the node that made this tensor; None for a leaf
        self._accumulate = None  # a leaf's AccumulateGrad node, held weakly

    @property
    def is_leaf(self):
        return self.grad_fn is None

    def __repr__(self):
        if self.grad_fn is not None:
            return f"MiniTensor({self.data}, grad_fn=<{self.grad_fn.name()}>)"
        return f"MiniTensor({self.data}{', requires_grad=True' if self.requires_grad else ''})"


class AccumulateGrad(Function):
    """The end of a path: it adds what arrives into the `.grad` of its leaf."""

    def __init__(self, variable):
        self.variable = variable

    @classmethod
    def name(cls):
        return "AccumulateGrad"
# %% [markdown] items="22"
# A leaf has no `grad_fn`, yet the gradients of a parameter have to end there. So an `AccumulateGrad` is at the end of every path: it holds the leaf (`variable`) and adds what arrives into the leaf's `.grad`.

# %% [markdown]
# ### The other operations of lesson 04 (just run it)
#
# Run the next eight cells, up to exercise 2. You don't need to read them; for a sample, look at `Exp`. The first removes the old functions, the next five contain the operations of lesson 04 as classes, and the last two what `backward` needs. The rules are written with operators, so that in lesson 10 they also work on tensors.

# %% tags=["engine"]
for old_name in (
    "negate add subtract multiply divide power exp log tanh relu sum_over mean_over max_over "
    "reshape transpose getitem matmul matrix_product softmax log_softmax cross_entropy"
).split():
    globals().pop(old_name, None)

# %% tags=["engine"]
def as_tensor(value):
    """A MiniTensor stays what it is; a number or an array becomes one that requires no gradient."""
    return value if isinstance(value, MiniTensor) else MiniTensor(value)


MiniTensor.shape = property(lambda self: self.data.shape)
MiniTensor.ndim = property(lambda self: self.data.ndim)
MiniTensor.item = lambda self: self.data.item()
MiniTensor.__gt__ = lambda self, number: self.data > number  # an array: a comparison has no gradient


def zeros_like(grad):
    """Zeros of the shape and the kind of grad, which is an array or a MiniTensor."""
    zeros = np.zeros(grad.shape)
    return MiniTensor(zeros) if isinstance(grad, MiniTensor) else zeros


class Add(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


class Div(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad / b, -grad * a / b**2


class Neg(Function):
    @staticmethod
    def forward(ctx, a):
        return -a

    @staticmethod
    def backward(ctx, grad):
        return -grad


class Pow(Function):
    """a ** exponent, where the exponent is a plain number: an option, not an input."""

    @staticmethod
    def forward(ctx, a, exponent):
        ctx.save_for_backward(a)
        ctx.exponent = exponent
        return a**exponent

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        if ctx.exponent == 0:
            return zeros_like(grad)  # the formula below says 0 * a**-1, which is NaN where a is 0
        return grad * ctx.exponent * a ** (ctx.exponent - 1)


MiniTensor.__add__ = lambda a, b: Add.apply(a, b)
MiniTensor.__sub__ = lambda a, b: Sub.apply(a, b)
MiniTensor.__mul__ = lambda a, b: Mul.apply(a, b)
MiniTensor.__truediv__ = lambda a, b: Div.apply(a, b)
MiniTensor.__radd__ = lambda a, b: Add.apply(b, a)
MiniTensor.__rsub__ = lambda a, b: Sub.apply(b, a)
MiniTensor.__rmul__ = lambda a, b: Mul.apply(b, a)
MiniTensor.__rtruediv__ = lambda a, b: Div.apply(b, a)
MiniTensor.__neg__ = lambda a: Neg.apply(a)
MiniTensor.__pow__ = lambda a, exponent: Pow.apply(a, exponent=exponent)

# %% [markdown]
# Functions of one array:

# %% tags=["engine"]
class Exp(Function):
    @staticmethod
    def forward(ctx, a):
        output = np.exp(a)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad * output


class Log(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return np.log(a)

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad / a


class Relu(Function):
    @staticmethod
    def forward(ctx, a):
        output = np.maximum(a, 0.0)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad * (output > 0)


MiniTensor.exp = lambda self: Exp.apply(self)
MiniTensor.log = lambda self: Log.apply(self)
MiniTensor.tanh = lambda self: Tanh.apply(self)
MiniTensor.relu = lambda self: Relu.apply(self)

# %% [markdown]
# Reductions. Their rules bring the gradient back to the shape before the reduction:

# %% tags=["engine"]
def applied(operation, x, **options):
    """An operation on an array, which is only computed, or on a MiniTensor, which is recorded."""
    if isinstance(x, MiniTensor):
        return operation.apply(x, **options)
    return operation.forward(operation(), x, **options)


class Expand(Function):
    """a, repeated up to a shape as in broadcasting."""

    @staticmethod
    def forward(ctx, a, shape):
        ctx.shape = a.shape
        return np.broadcast_to(a, shape)

    @staticmethod
    def backward(ctx, grad):
        return applied(SumTo, grad, shape=ctx.shape)


class SumTo(Function):
    """a, summed back to the shape that broadcasting started from."""

    @staticmethod
    def forward(ctx, a, shape):
        ctx.shape = a.shape
        return sum_to(a, shape)

    @staticmethod
    def backward(ctx, grad):
        return applied(Expand, grad, shape=ctx.shape)


def spread(grad, shape, dim):
    """Bring the gradient of a reduction over dim back to the shape before it."""
    reduced = range(len(shape)) if dim is None else (dim % len(shape),)
    kept = tuple(1 if axis in reduced else size for axis, size in enumerate(shape))
    return applied(Expand, grad.reshape(kept), shape=shape)


class Sum(Function):
    @staticmethod
    def forward(ctx, a, dim=None, keepdim=False):
        ctx.shape, ctx.dim = a.shape, dim
        return a.sum(axis=dim, keepdims=keepdim)

    @staticmethod
    def backward(ctx, grad):
        return spread(grad, ctx.shape, ctx.dim)


class Mean(Function):
    @staticmethod
    def forward(ctx, a, dim=None, keepdim=False):
        ctx.shape, ctx.dim = a.shape, dim
        output = a.mean(axis=dim, keepdims=keepdim)
        ctx.count = a.size / max(output.size, 1)
        return output

    @staticmethod
    def backward(ctx, grad):
        return spread(grad, ctx.shape, ctx.dim) / ctx.count


class Max(Function):
    """Without dim, equal maxima share the gradient; along a dim, the first of them gets it all."""

    @staticmethod
    def forward(ctx, a, dim=None, keepdim=False):
        ctx.shape, ctx.dim = a.shape, dim
        output = a.max(axis=dim, keepdims=keepdim)
        if dim is None:
            chosen = (a == output) / max((a == output).sum(), 1)
        else:
            chosen = np.zeros(a.shape)
            np.put_along_axis(chosen, np.expand_dims(a.argmax(axis=dim), dim), 1.0, axis=dim)
        ctx.save_for_backward(chosen)
        return output

    @staticmethod
    def backward(ctx, grad):
        (chosen,) = ctx.saved_tensors
        return spread(grad, ctx.shape, ctx.dim) * chosen


MiniTensor.sum = lambda self, dim=None, keepdim=False: Sum.apply(self, dim=dim, keepdim=keepdim)
MiniTensor.mean = lambda self, dim=None, keepdim=False: Mean.apply(self, dim=dim, keepdim=keepdim)
MiniTensor.max = lambda self, dim=None, keepdim=False: Max.apply(self, dim=dim, keepdim=keepdim)

# %% [markdown]
# Matrices, shapes and indices:

# %% tags=["engine"]
def turned(x, dim0=-1, dim1=-2):
    """An array or a MiniTensor with two axes swapped."""
    return applied(Transpose, x, dim0=dim0, dim1=dim1)


class MatMul(Function):
    """a @ b for matrices, batches of them, and vectors, which count as one row or one column."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        left = a if a.ndim > 1 else a[None, :]
        right = b if b.ndim > 1 else b[:, None]
        grad = grad if b.ndim > 1 else grad[..., None]
        grad = grad if a.ndim > 1 else grad[..., None, :]
        for_a, for_b = grad @ turned(right), turned(left) @ grad
        return for_a if a.ndim > 1 else for_a[..., 0, :], for_b if b.ndim > 1 else for_b[..., 0]


class Reshape(Function):
    @staticmethod
    def forward(ctx, a, shape):
        ctx.shape = a.shape
        return a.reshape(shape)

    @staticmethod
    def backward(ctx, grad):
        return grad.reshape(ctx.shape)


class Transpose(Function):
    @staticmethod
    def forward(ctx, a, dim0, dim1):
        ctx.dims = dim0, dim1
        return np.swapaxes(a, dim0, dim1)

    @staticmethod
    def backward(ctx, grad):
        return turned(grad, *ctx.dims)


class Index(Function):
    """a[index]. Where an index is repeated, its gradients add up."""

    @staticmethod
    def forward(ctx, a, index):
        ctx.shape, ctx.index = a.shape, index
        return a[index]

    @staticmethod
    def backward(ctx, grad):
        return applied(Scatter, grad, index=ctx.index, shape=ctx.shape)


class Scatter(Function):
    """Zeros of a shape, with a added at index."""

    @staticmethod
    def forward(ctx, a, index, shape):
        ctx.index = index
        whole = np.zeros(shape)
        np.add.at(whole, index, a)
        return whole

    @staticmethod
    def backward(ctx, grad):
        return grad[ctx.index]


def reshape(self, *shape):
    """As in PyTorch: a.reshape(2, 3) or a.reshape((2, 3))."""
    return Reshape.apply(self, shape=shape[0] if isinstance(shape[0], tuple) else shape)


MiniTensor.__matmul__ = lambda a, b: MatMul.apply(a, b)
MiniTensor.__rmatmul__ = lambda a, b: MatMul.apply(b, a)
MiniTensor.__getitem__ = lambda self, index: Index.apply(self, index=index)
MiniTensor.reshape = reshape
MiniTensor.transpose = lambda self, dim0, dim1: Transpose.apply(self, dim0=dim0, dim1=dim1)
MiniTensor.T = property(lambda self: self.transpose(0, 1))

# %% [markdown]
# And what a classifier needs:

# %% tags=["engine"]
class LogSoftmax(Function):
    @staticmethod
    def forward(ctx, a, dim):
        ctx.dim = dim
        shifted = a - a.max(axis=dim, keepdims=True)
        output = shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad - applied(Exp, output) * applied(Sum, grad, dim=ctx.dim, keepdim=True)


def cross_entropy(logits, labels):
    """Minus the log-probability of the label, averaged over the rows; labels are integers."""
    rows = np.arange(len(labels))
    return -logits.log_softmax(1)[rows, labels].mean()


MiniTensor.log_softmax = lambda self, dim: LogSoftmax.apply(self, dim=dim)
MiniTensor.softmax = lambda self, dim: LogSoftmax.apply(self, dim=dim).exp()
MiniTensor.cross_entropy = cross_entropy
# %% [markdown]
# Then the order of lesson 03, now over nodes and their edges:

# %% tags=["engine"]
def topological_order(root):
    """All nodes behind root, root first, and each node before the nodes of its inputs."""
    finished, seen, stack = [], set(), [(root, False)]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            finished.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(source, False) for source, _ in node.next_functions if source is not None]
    return finished[::-1]

# %% [markdown]
# Last, `retain_grad`, which exercise 4 explains:

# %% tags=["engine"]
def retain_grad(self):
    """Ask backward to keep the gradient of this result too. Does nothing for a leaf."""
    if self.grad_fn is not None:
        self.grad_fn.retaining = weakref.ref(self)


MiniTensor.retain_grad = retain_grad


def keep_if_asked(node, grad):
    """Add grad to the .grad of a node's result, if the result has asked for it and still exists."""
    tensor = node.retaining() if node.retaining is not None else None
    if tensor is not None:
        before = 0.0 if tensor.grad is None else tensor.grad.data
        tensor.grad = MiniTensor(before + grad)

# %% [markdown] items="17 18 F53"
# ### Exercise 2: record
#
# All the rules are there, but none of them runs yet: every operator calls `apply`, which you still have to write. `apply` turns the calls into a graph. An edge leads from a node to where the gradient of one of its **inputs** must be sent. As in PyTorch, it is a pair: a node, and which output of its operation is meant. Your operations have one output, so the number is always 0.
#
# | the input is | its edge |
# | --- | --- |
# | a tensor that requires no gradient | `(None, 0)` |
# | the result of an operation | `(tensor.grad_fn, 0)` |
# | a leaf that requires a gradient | `(its AccumulateGrad, 0)` |
#
# The code for the first two rows is given. For the last row, a leaf that is used twice needs **one** AccumulateGrad: its contributions then meet in `pending`, and the leaf is added to once per call, as in PyTorch. So remember the node in `tensor._accumulate`, but *weakly*. The node already holds the leaf, and two objects that hold each other stay alive until Python's garbage collector finds them. `reference = weakref.ref(node)` does not keep the node alive, and `reference()` gives the node, or None once it is gone.
#
# Finish `edge_to`. Then write what is missing in `apply`: if at least one input requires a gradient, fill in `ctx.next_functions` and `ctx.input_shapes` (both are tuples with one entry per input), and give the output `requires_grad` and `grad_fn`.

# %% [markdown] tags=["hint"] exercise="record"
# First check whether there is a node: `node = tensor._accumulate() if tensor._accumulate is not None else None`.

# %% [markdown] tags=["hint"] exercise="record"
# If there is none, make one with `AccumulateGrad(tensor)` and remember it with `tensor._accumulate = weakref.ref(node)`. Then return `(node, 0)`.

# %% [markdown] tags=["hint"] exercise="record"
# In `apply`: `if any(x.requires_grad for x in inputs):`, then `ctx.next_functions = tuple(edge_to(x) for x in inputs)`, the shapes likewise, and `output.requires_grad, output.grad_fn = True, ctx`.

# %% solution="record" tags=["engine"]
def edge_to(tensor):
    """Where a gradient for this tensor must be sent: a pair (node, 0). See the table above.

    >>> edge_to(MiniTensor(1.0))
    (None, 0)
    >>> w = MiniTensor(1.0, requires_grad=True)
    >>> edge_to(w)[0].variable is w
    True
    """
    if not tensor.requires_grad:
        return (None, 0)
    if tensor.grad_fn is not None:
        return (tensor.grad_fn, 0)
    ### BEGIN SOLUTION
    node = tensor._accumulate() if tensor._accumulate is not None else None
    if node is None:
        node = AccumulateGrad(tensor)
        tensor._accumulate = weakref.ref(node)
    return (node, 0)
    ### END SOLUTION


def apply(cls, *inputs, **options):
    """Compute an operation, and record it if an input requires a gradient.

    >>> y = apply(Mul, MiniTensor(3.0, requires_grad=True), 2.0)
    >>> y.requires_grad, y.grad_fn.name(), y.item()
    (True, 'MulBackward0', 6.0)
    """
    inputs = [as_tensor(x) for x in inputs]
    ctx = cls()
    output = MiniTensor(cls.forward(ctx, *(x.data for x in inputs), **options))
    ### BEGIN SOLUTION
    if any(x.requires_grad for x in inputs):
        ctx.next_functions = tuple(edge_to(x) for x in inputs)
        ctx.input_shapes = tuple(x.shape for x in inputs)
        output.requires_grad, output.grad_fn = True, ctx
    ### END SOLUTION
    return output


Function.apply = classmethod(apply)
# %% check="record"

# %% [markdown] items="17 23"
# Each result now names the operation that made it. **Predict** the four lines.

# %%
predict("Which four lines are printed?")
w, b = MiniTensor([[1.0], [2.0]], requires_grad=True), MiniTensor(0.5, requires_grad=True)
hidden = np.ones((3, 2)) @ w
shifted = hidden + b
for tensor in (w, hidden, shifted, (shifted**2).mean()):
    print(tensor.grad_fn and tensor.grad_fn.name())

# %% [markdown]
# PyTorch calls the product of two matrices `MmBackward0` (yours says `MatMul`, because it also takes vectors and batches). The other two names are the same. The 0 distinguishes several forms of one operation. *Further* prints whole graphs.

# %% [markdown] items="47"
# ## 4. Where gradients end
#
# ### Exercise 3: accumulate
#
# When a gradient arrives at a leaf, it is **added**. If `.grad` is None, the gradient becomes `.grad`; otherwise `.grad` becomes the sum. As in PyTorch, `.grad` is a tensor itself, one that requires no gradient.
#
# The rule of `+` sends one array to both inputs. If two leaves kept that array itself, changing one `.grad` would change the other. Keep a copy.

# %% [markdown] tags=["hint"] exercise="accumulate"
# The leaf is `self.variable`. There are two cases: `leaf.grad` is None, or there is something to add to, whose array is `leaf.grad.data`.

# %% [markdown] tags=["hint"] exercise="accumulate"
# In the first case use `MiniTensor(grad.copy())`, in the second `MiniTensor(leaf.grad.data + grad)`; a sum is a new array anyway.

# %% solution="accumulate" tags=["engine"]
def accumulate(self, grad):
    """Add what arrives into the `.grad` of this node's leaf. `.grad` never shares memory with it.

    self: AccumulateGrad; its leaf is self.variable
    grad: array of the leaf's shape

    >>> w = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> node, _ = edge_to(w)
    >>> accumulate(node, np.array([3.0, 4.0]))
    >>> accumulate(node, np.array([1.0, 1.0]))
    >>> w.grad
    MiniTensor([4. 5.])
    """
    ### BEGIN SOLUTION
    leaf = self.variable
    leaf.grad = MiniTensor(grad.copy() if leaf.grad is None else leaf.grad.data + grad)
    ### END SOLUTION


AccumulateGrad.accumulate = accumulate
# %% check="accumulate"

# %% [markdown]
# ### Exercise 4: backward over nodes
#
# Sometimes you do want to see the gradient of an intermediate result. `retain_grad` is for that. It was in the last of the cells that you did not need to read: the result puts a weak reference to itself into `grad_fn.retaining`, and `keep_if_asked` adds the gradient to its `.grad`.

# %% [markdown] items="30"
# Write the loop of `backward`. It goes over nodes, not tensors. The start is given. For each node that a gradient `grad` has reached:
#
# * An `AccumulateGrad` is the end: call its `accumulate`.
# * For any other node, call the rule, `node.backward(node, grad)`. It returns a tuple, or a single array for one input. Undo broadcasting with `sum_to(share, shape)` from lesson 04; the shapes are in `node.input_shapes`. Add the result to the pending gradient of the node at the end of the edge. If the edge leads to None, or the rule returns None for an input, send nothing.

# %% [markdown] tags=["hint"] exercise="backward"
# `isinstance(node, AccumulateGrad)` tells the ends apart. After `node.accumulate(grad)`, `continue`.

# %% [markdown] tags=["hint"] exercise="backward"
# A single array is not a tuple yet: `shares = shares if isinstance(shares, tuple) else (shares,)`.

# %% [markdown] tags=["hint"] exercise="backward"
# The inner loop: `for (source, _), share, shape in zip(node.next_functions, shares, node.input_shapes):`. If `source` and `share` are not None, `share = sum_to(share, shape)`, and then `pending[source] = pending[source] + share if source in pending else share`.

# %% solution="backward" tags=["engine"]
def backward(self, gradient=None):
    """Find the gradient of self for every leaf that requires one, and add it to .grad there.

    self: MiniTensor that requires a gradient
    gradient: array or MiniTensor of the shape of self; may be left out for a single number

    >>> w = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> w.grad
    MiniTensor([2. 4.])
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
        keep_if_asked(node, grad)
        ### BEGIN SOLUTION
        if isinstance(node, AccumulateGrad):
            node.accumulate(grad)
            continue
        shares = node.backward(node, grad)
        shares = shares if isinstance(shares, tuple) else (shares,)
        for (source, _), share, shape in zip(node.next_functions, shares, node.input_shapes):
            if source is not None and share is not None:
                share = sum_to(share, shape)
                pending[source] = pending[source] + share if source in pending else share
        ### END SOLUTION


MiniTensor.backward = backward
# %% check="backward"

# %% [markdown]
# The numbers are one half of the job. The other half is what is kept where.

# %% check="backward_keeps"

# %% [markdown] items="33"
# Compare with PyTorch: the mean of `3 * (m + 2)**2` for a matrix of ones, with the node of each step.

# %% tags=["demo"] items="33"
def steps_of(m):
    moved = m + 2
    scaled = 3 * moved**2
    return m, moved, scaled, scaled.mean()


for leaf in (MiniTensor(np.ones((2, 2)), requires_grad=True), torch.ones(2, 2, requires_grad=True)):
    steps = steps_of(leaf)
    print(*(step.grad_fn and step.grad_fn.name() for step in steps))
    steps[-1].backward()
    print("value", steps[-1].item(), "  gradient", leaf.grad)

# %% [markdown] items="29"
# Now the question of lesson 02 again: `x = 2; y = x**2; z = y + 1; z.backward()`. Lesson 02's engine put a gradient on all three. **Predict** what yours does now, without and with `y.retain_grad()`.

# %% tags=["demo"] items="29 30"
predict(
    "Without retain_grad: which of x, y and z have a gradient in your engine?",
    "x",
    "x and y",
    "x and z",
    "all three",
)
for retain in (False, True):
    for make in (MiniTensor, torch.tensor):
        x = make(2.0, requires_grad=True)
        y = x**2
        z = y + 1
        if retain:
            y.retain_grad()
        z.backward()
        print(make.__name__, [tensor.grad and tensor.grad.item() for tensor in (x, y, z)])

# %% [markdown] items="47 48"
# ## 5. A sum that you own
#
# Only `x` has a gradient; after `y.retain_grad()`, `y` too, as in PyTorch. `backward` adds into `.grad`, and only you clear it. **Predict** the three numbers, then those of the loop, where the slopes are 1, 2 and 3.

# %% items="47 48 49"
predict("Which three numbers are printed before the loop?")
x = MiniTensor(2.0, requires_grad=True)
(x**2).backward()
print("x**2 differentiated once:", x.grad)
(x**2).backward()
print("a second time:           ", x.grad)
x.grad = None
(x**2).backward()
print("cleared, and once more:  ", x.grad)

x.grad = None
for i in range(3):
    (x * (i + 1)).backward()
    print(f"x * {i + 1}:", x.grad)

# %% [markdown] items="50 52 F27"
# What does this do to a training step? In lesson 01, the slopes of the first two steps were -36 and -3.6. Without clearing, the second step uses -39.6, and goes eleven times as far as it should.
#
# Still, adding is the default. It helps with a batch that is too big for memory: split it into micro-batches, let their gradients add up, and take **one** step (*Further*). It also helps when there are several losses, each with its own call of `backward`. (A weight that is used many times in *one* loss is not the reason. Those contributions are summed in `pending`, before they reach `.grad`.)
#
# A rumor says that repeated backward calls make gradients grow *exponentially*. **Predict** the factor after 1, 2, 4 and 8 calls on one graph. (For this function, PyTorch needs `retain_graph=True` for more than one call; lesson 06 explains why.)

# %% tags=["demo"] items="F4"
predict("What is the factor after 8 calls?")
for calls in (1, 2, 4, 8):
    x = torch.tensor(2.0, requires_grad=True)
    y = x**3
    for _ in range(calls):
        y.backward(retain_graph=True)
    print(calls, "calls: gradient", x.grad.item(), "which is", x.grad.item() / 12, "times 12")

# %% [markdown]
# Linear. Each call adds one more copy of the same gradient.

# %% [markdown] items="62"
# ### Exercise 5: an optimizer
#
# Something has to read `.grad`, move the parameters, and clear `.grad`. Write `step` and `zero_grad` of `SGD`. It works like PyTorch's, and it supports momentum: then it steps along a running sum, the *buffer*, in which older gradients fade.
#
# Work on `parameter.data`, the plain array, and change it with `-=`. That way nothing is recorded, and the parameter stays the same object, a leaf. (An array that it was made from shares its memory, and so changes too.)

# %% [markdown] tags=["hint"] exercise="sgd"
# In `step`, go through `enumerate(self.parameters)`. Skip a parameter whose `.grad` is None.

# %% [markdown] tags=["hint"] exercise="sgd"
# The buffer of parameter `i` is `self.buffers[i]`. It becomes `self.momentum * self.buffers[i] + parameter.grad.data`, and then `parameter.data -= self.lr * self.buffers[i]`.

# %% solution="sgd" tags=["engine"]
class SGD:
    """Gradient descent, with optional momentum; used like torch.optim.SGD.

    >>> w = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = SGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w
    MiniTensor([0.8 1.6], requires_grad=True)
    >>> optimizer.zero_grad()
    >>> w.grad is None
    True
    """

    def __init__(self, parameters, lr, momentum=0.0):
        self.parameters = list(parameters)  # any iterable may be given
        self.lr, self.momentum = lr, momentum
        self.buffers = [0.0 for _ in self.parameters]

    def step(self):
        """For each parameter whose .grad is not None: buffer = momentum * buffer + gradient; then
        lr * buffer is subtracted from its data. .grad is only read."""
        ### BEGIN SOLUTION
        for i, parameter in enumerate(self.parameters):
            if parameter.grad is not None:
                self.buffers[i] = self.momentum * self.buffers[i] + parameter.grad.data
                parameter.data -= self.lr * self.buffers[i]
        ### END SOLUTION

    def zero_grad(self, set_to_none=True):
        """Set .grad of each parameter to None. With set_to_none=False, a .grad that is there becomes
        a MiniTensor of zeros, whatever it was, and None stays None."""
        ### BEGIN SOLUTION
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad = None if set_to_none else MiniTensor(np.zeros(parameter.shape))
        ### END SOLUTION
# %% check="sgd"

# %% [markdown] items="62"
# PyTorch's step does the same: it is not recorded, and it changes the numbers **in place**. Why not write the update as an ordinary formula? **Predict** `is_leaf` in the three cases.

# %% tags=["demo"] items="62 F47"
predict("What is is_leaf in the three cases?")
w = torch.tensor([1.0, -2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
(w * w).sum().backward()
memory = w.data_ptr()
optimizer.step()
print("optimizer.step():      leaf", w.is_leaf, "  same memory", w.data_ptr() == memory)
by_formula = w - 0.1 * w.grad
print("w - lr * w.grad:       leaf", by_formula.is_leaf, "  grad_fn", by_formula.grad_fn.name())
with torch.no_grad():
    untracked = w - 0.1 * w.grad
print("the same, not tracked: leaf", untracked.is_leaf, "  requires_grad", untracked.requires_grad)

# %% [markdown] items="61"
# The formula gives a new tensor: without `no_grad`, a result whose history leads to the old `w`; with it, a constant. The optimizer would keep moving the old `w`, not the new tensor. A change in place keeps the **object** that everything else refers to. The smallest training loop around it has five lines, in your engine as in PyTorch: clear, forward, loss, backward, step.

# %% [markdown] items="57 58"
# ## 6. Clearing: how, and where
#
# There are several ways to clear gradients in PyTorch. Two of the five below write zeros, and the others remove the gradient. Which are which?

# %% tags=["demo"] items="57 58 F25"
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for line in (
    *("optimizer.zero_grad()", "model.zero_grad()", "model.weight.grad = None"),
    *("model.weight.grad.zero_()", "optimizer.zero_grad(set_to_none=False)"),
):
    model(torch.ones(1, 2)).sum().backward()
    exec(line)
    print(f"{line:40s} .grad is {model.weight.grad}")

# %% [markdown] items="58 F25"
# `set_to_none=True` is the default, so after `zero_grad` expect `.grad` to be None. None and zeros differ. None means "no gradient", and the optimizer skips the parameter. Zeros mean "a gradient of zero", and momentum keeps the parameter moving. You have written both cases.

# %% [markdown] items="31"
# That is also how a part of a network is **frozen**: without `requires_grad` a parameter gets no gradient, and the optimizer skips it once its `.grad` is None. **Predict** in which of the two steps the frozen weight moves.

# %% tags=["demo"] items="31"
predict(
    "In which of the two steps does the frozen weight move?",
    "in neither",
    "in the first",
    "in both",
)
model(torch.ones(1, 2)).sum().backward()
model.weight.requires_grad_(False)
for line in ("pass", "optimizer.step()", "optimizer.zero_grad()", "optimizer.step()"):
    exec(line)
    print(f"{line:22s} frozen weight {model.weight.tolist()}")

# %% [markdown] items="31"
# In the first: a gradient that is left over moves the weight once more. Clear when you freeze.

# %% [markdown] items="59"
# **Where** to clear? Many tutorials insist on one place, before the forward pass. **Predict** which of the four places in a step give the same weight.

# %% tags=["demo"] items="59 F24"
predict("Which places give the same weight?")
places = "before forward", "between forward and backward", "between backward and step", "after step"
lines = "loss = (w * 3.0 - 5.0) ** 2", "loss.backward()", "optimizer.step()", ""
for chosen in places:
    w = MiniTensor(1.0, requires_grad=True)
    optimizer = SGD([w], lr=0.05)
    for place, line in [*zip(places, lines)] * 10:
        if place == chosen:
            optimizer.zero_grad()
        exec(line)
    print(f"{chosen:30s} w = {w.item()}")

# %% [markdown]
# Three places give the same weight, to the last bit. The one forbidden place is between `backward` and `step`: there the gradient is thrown away before it is read. Anywhere after `step` and before the next `backward` is right.

# %% [markdown] items="55"
# ## 7. What forgetting does
#
# Back to the two programs. In the second one, `.grad` at step *t* is the sum of all gradients so far, and the step follows that sum. Your own `SGD` steps along a running sum, too: `buffer = momentum * buffer + gradient`. With momentum 1, nothing fades.
#
# So here is a prediction that can fail: **forgetting to clear is exactly momentum 1.0.** Test it with two runs of your engine.

# %% tags=["demo"] items="55 F1"
forgotten = train(MiniTensor, SGD, 300, forget=True)
momentum = train(MiniTensor, SGD, 300, momentum=1.0)
print("never cleared:        ", forgotten[-1])
print("cleared, momentum 1.0:", momentum[-1])
print("largest difference:                   ", np.abs(forgotten - momentum).max())
print(f"never cleared, difference from PyTorch: {np.abs(forgotten - without_zeroing[:300]).max():.1e}")

# %% [markdown] items="55 F1"
# They are equal, to the last bit. The parameters roll down the loss like a ball that nothing slows down. With a small learning rate the ball falls faster at first than a careful walker, but then it swings. In the first picture the walker has not arrived after 500 steps, so even the swinging ball is lower. By itself the ball only keeps its energy, so the claim "without zeroing, gradients grow exponentially" is false as stated.
#
# Then why does everybody fear this mistake? Because in real training something keeps **pushing** the ball. With mini-batches the landscape changes at each step. With momentum in the optimizer there are two running sums, one inside the other. **Predict** which runs explode. It is a linear regression with noise-free targets: the best loss is 0. The helper `distances` trains it by hand and says how far the weights are from the best ones. With `forget=False` it clears; otherwise it adds each gradient to all earlier ones.

# %% tags=["demo"] items="F1 55"
predict("Which of the four runs explode?")
for name, run in {
    "full batch": distances(None),
    "batches of 16": distances(16),
    "full batch, momentum 0.9": distances(None, momentum=0.9),
    "batches of 16, cleared": distances(16, forget=False),
}.items():
    print(f"{name:26s} largest distance, first 100 steps {max(run[:100]):8.2g}", end="")
    print(f"   last 100 of {len(run)}: {max(run[-100:]):8.2g}")

# %% [markdown]
# The correct statement is: **never clearing is momentum without friction. At best, the weights swing. The swings grow exponentially in three cases:**
#
# 1. mini-batch noise that grows with the swing, as here, where it is zero at the best weights;
# 2. a momentum in the optimizer, which delays the force;
# 3. learning rate times curvature (the slope of the slope) above 4.
#
# Noise of constant size makes them grow, too, but only like the square root of the number of steps. (*Further* looks at the ball, and at a run that ends badly.)

# %% [markdown]
# ## Quiz

# %% test="quiz_05" points=4 tags=["quiz"]
question(
    "which_leaf",
    "`a = MiniTensor(1.0, requires_grad=True)`, `b = a * 2.0`, `c = MiniTensor(3.0)`. Which of them are leaves?",
    right("`a` and `c`", "Neither was made by a recorded operation. `c` is a leaf that requires no gradient."),
    wrong("`a` only", "A leaf need not require a gradient: `c` has no `grad_fn` either.", misconception="leaves_require_grad"),
    wrong("`a` and `b`, since both require a gradient", "`b` requires one because the flag propagates. But it has a `grad_fn`, so it is not a leaf.", misconception="requires_grad_means_leaf"),
    wrong("`c` only, since it is a constant", "`a` has no `grad_fn` either: nothing made it.", misconception="leaf_and_grad_fn"),
)
question(
    "where_kept",
    "`h = x * w`, `loss = (h * h).sum()`, `loss.backward()`; `x` is data, `w` a parameter. Where is a gradient kept?",
    right("in `w.grad` only", "The gradient of `h` passed through `pending` and was dropped; `x` requires none."),
    wrong("in `w.grad` and `h.grad`", "`h` is a result. It keeps its gradient only after `h.retain_grad()`.", misconception="every_node_keeps_grad"),
    wrong("in `x.grad` and `w.grad`: both are leaves", "Leaves, yes. But `x` requires no gradient, and none was computed for it.", misconception="leaves_require_grad"),
    wrong("nowhere, until an optimizer is made", "`backward` writes into `.grad`; the optimizer only reads it.", misconception="optimizer_computes_gradients"),
)
question(
    "two_ends",
    "Somebody's `edge_to` makes a new AccumulateGrad for every use of a leaf. What goes wrong for `x * x`?",
    right("No gradient is wrong, but the graph has two ends for one leaf, and `accumulate` runs twice.", "Both ends add into the same `.grad`, so the sum is right. But each call of `accumulate` gets only one contribution, not the whole gradient of the leaf. That matters in lesson 10."),
    wrong("`x.grad` is half of what it should be, since each end gets only one of the two contributions.", "Each end adds what it gets; together that is everything.", misconception="assigned_not_accumulated"),
    wrong("`x.grad` is twice what it should be, since both contributions reach both ends.", "Each contribution still arrives once.", misconception="follows_every_path"),
    wrong("The topological order does not exist.", "Two ends instead of one are still a graph without cycles.", misconception="no_topological_order"),
)
question(
    "equals",
    "Your `accumulate` sets `leaf.grad` with `=` instead of adding. One loss, one backward call per step, `zero_grad` in every step, and `x + x` in the loss. What is wrong with the training?",
    right("Nothing, as long as there is one call per step.", "Contributions within one call are summed in `pending`. Only sums over several calls need the addition in `.grad`: micro-batches, several losses."),
    wrong("`x.grad` is 1 instead of 2.", "That sum is made in `pending`, before `.grad` sees it.", misconception="assigned_not_accumulated"),
    wrong("The gradients vanish.", "They arrive, and replace a None.", misconception="none_means_no_flow"),
    wrong("It explodes.", "Overwriting cannot make anything larger.", misconception="missing_zero_explodes"),
)
question(
    "forgotten",
    "Full batch, small learning rate, plain SGD, `zero_grad` forgotten. What does the loss do?",
    right("It falls faster at first, then swings without settling.", "The sum of all gradients is momentum 1.0: no friction, and no energy from outside either."),
    wrong("It grows exponentially from the first steps on.", "Exponential growth needs something that feeds energy in: mini-batches, the optimizer's momentum, or a learning rate times curvature above 4.", misconception="missing_zero_explodes"),
    wrong("It falls faster at first, and then becomes NaN.", "Not here: what the loss gives up, the sum of gradients takes, and vice versa.", misconception="missing_zero_explodes"),
    wrong("Nothing changes: `backward` overwrites `.grad`.", "It adds. You measured it.", misconception="backward_overwrites"),
)
question(
    "forbidden_place",
    "Which position of `optimizer.zero_grad()` in the loop is a mistake?",
    right("between `backward` and `step`", "The gradient is cleared before anything has read it, and the parameters never move."),
    wrong("between the forward pass and `backward`", "The forward pass does not look at `.grad`.", misconception="zero_before_forward"),
    wrong("right after `step`", "Then `.grad` is empty when the next backward begins, which is all that is needed.", misconception="zero_before_forward"),
    wrong("none: only the number of calls counts", "Three of the four positions are equivalent; the fourth stops training.", misconception="zero_anywhere"),
)
question(
    "none_or_zero",
    "After `zero_grad()` a parameter takes no part in the next loss. SGD with momentum takes a step. Does the parameter move?",
    right("No: its `.grad` is None, and the optimizer skips it.", "Clearing to None is the default. With `set_to_none=False` the parameter would slide on."),
    wrong("Yes, momentum always goes on.", "Only for parameters with a gradient, even if it is zero. None means that there is none.", misconception="none_is_zero"),
    wrong("No: its gradient is zero, so the step is zero.", "A gradient of zeros would let the buffer move it.", misconception="none_is_zero"),
    wrong("It raises an error.", "`.grad` being None is an ordinary state.", misconception="none_is_error"),
)

# %% [markdown] question="why_accumulate" points=3
# ### Why does PyTorch add?
#
# `backward` adds to `.grad`, and every training loop has to clear it. Forgetting that is a common mistake. **Why** did the authors choose adding all the same? Give one program that needs it, and say what it would have to do if `backward` replaced `.grad`. Answer in one paragraph.
#
# ### BEGIN MARK SCHEME
# *A good answer:* A batch that does not fit into memory is cut into parts. Each part runs forward and backward, its graph is released, and the gradients add up to that of the whole batch; then comes one step. If `backward` replaced `.grad`, the program would have to copy and add the gradients of all parameters by itself, after each part. (Several losses, each with its own `backward`, are as good an example.) Adding can be turned into replacing with one line; the other way needs a second set of arrays.
#
# * 1 point: a program that needs it: parts of a batch, or several losses with a call each
# * 1 point: what it would have to do otherwise: keep copies of all gradients, and add them itself
# * 1 point: several calls are meant, not several uses of a weight in one loss
#
# Wrong answers, and what they get:
#
# * *Because a weight is used many times*: no point for the third item. Those contributions are summed within one pass, before they reach `.grad`.
# * *Because it is faster*: no point by itself.
# ### END MARK SCHEME

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | leaf | a tensor without `grad_fn`; it may or may not require a gradient |
# | `requires_grad` | starts the recording, and propagates to every result |
# | `Function` | one operation; an instance is one call, the node of the graph and the `ctx` of its rule |
# | `next_functions` | the edges of a node, toward where gradients go; `(None, 0)` for constants |
# | `AccumulateGrad` | the end of every path, one per leaf: adds into the leaf's `.grad` |
# | `retain_grad` | asks an intermediate result to keep its gradient |
# | `.grad` | a sum that you own: `backward` adds, the optimizer reads, you clear |
# | clearing | anywhere after `step` and before the next `backward`; None is the default, and not the same as zeros |
# | micro-batches (*Further*) | each part's mean is weighted by its share of the rows |
# | never clearing | momentum 1.0: a ball without friction, until something pushes it |

# %% [markdown]
# Every node still holds what it saved, even after `backward`, when it is no longer needed. In the next lesson you release it, and find out why PyTorch then refuses a second backward.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without exercise 6, which only earns points. Its sections do not depend on each other.

# %% [markdown] items="18"
# ## Look at the graph
#
# ### Exercise 6: a graph printer
#
# Write a function that walks over `next_functions` and gives one line per node it meets: its name, with four spaces in front for each step away from the root. It uses only `node.name()` and `node.next_functions`, so it also works on PyTorch's graph. Note three things:
#
# * `(None, 0)` has no line.
# * PyTorch says `torch::autograd::AccumulateGrad`. Show what comes after the last `::`.
# * A node that is reached a second time gets a line with ` (again)` after the name, and its inputs are not listed again. Otherwise, the sixty doublings of lesson 02 would print for centuries.

# %% [markdown] tags=["hint"] exercise="graph_lines"
# Write an inner function `visit(node, depth)` that appends one line to a list and then visits the inputs with `depth + 1`. Keep a set of the nodes already met, to know when to add `(again)`.

# %% [markdown] tags=["hint"] exercise="graph_lines"
# The line is `"    " * depth + node.name().split("::")[-1]`. If the node is in the set, append the line with `" (again)"` and return.

# %% solution="graph_lines" items="19" tags=["engine"]
def graph_lines(node):
    """The graph behind a node as lines: node first, then what its edges lead to, in their order.

    node: a node of your graph, or of PyTorch's
    Returns: list of str

    >>> x = MiniTensor(2.0, requires_grad=True)
    >>> for line in graph_lines((x * x + 1.0).grad_fn):
    ...     print(line)
    AddBackward0
        MulBackward0
            AccumulateGrad
            AccumulateGrad (again)
    """
    ### BEGIN SOLUTION
    lines, met = [], set()

    def visit(node, depth):
        line = "    " * depth + node.name().split("::")[-1]
        if node in met:
            lines.append(line + " (again)")
            return
        met.add(node)
        lines.append(line)
        for source, _ in node.next_functions:
            if source is not None:
                visit(source, depth + 1)

    visit(node, 0)
    return lines
    ### END SOLUTION

# %% check="graph_lines"

# %% [markdown] items="19"
# One function, two graphs:

# %% tags=["demo"] items="19 22"
def side_by_side(expression, *numbers):
    ours = expression(*(MiniTensor(number, requires_grad=True) for number in numbers)).grad_fn
    theirs = expression(*(torch.tensor(number, requires_grad=True) for number in numbers)).grad_fn
    for left, right in zip(graph_lines(ours), graph_lines(theirs), strict=True):
        print(f"{left:42s}{right}")
    print()


side_by_side(lambda x, y: (x * y) ** 2, 2.0, 3.0)

# %% [markdown] items="20"
# In `(x*y + x)**2` the leaf `x` is used twice. **Predict** the lines, then run.

# %% tags=["demo"] items="20"
predict("How many lines does your graph have?")
side_by_side(lambda x, y: (x * y + x) ** 2, 2.0, 3.0)

# %% [markdown]
# Here is the same graph as a picture, drawn from your own nodes. Its arrows point where the values go, opposite to your edges. `x` is used twice, so two arrows leave it.

# %% tags=["demo"]
x, y = MiniTensor(2.0, requires_grad=True), MiniTensor(3.0, requires_grad=True)
explore((x * y + x) ** 2, names={"x": x, "y": y}, predict=True)

# %% [markdown] items="21"
# Since edges are ordinary attributes, you can walk along them by hand, down to the leaf and from there to the tensor:

# %% tags=["demo"] items="21 22"
for v in (MiniTensor(np.ones(3), requires_grad=True), torch.ones(3, requires_grad=True)):
    node = (v * 2).sum().grad_fn
    middle = node.next_functions[0][0]
    end = middle.next_functions[0][0]
    names = [node.name(), middle.name(), end.name().split("::")[-1]]
    print(" -> ".join(names), "of v:", end.variable is v)
    print("    edges of the product:", len(middle.next_functions))

# %% [markdown] items="18"
# The number in an edge is always 0 in your engine. PyTorch's `split` has several outputs. **Predict** the two edges of the product.

# %% tags=["demo"] items="18"
predict("What are the two edges of the product?")
first, second = torch.arange(4.0, requires_grad=True).split(2)
for node, number in (first * second).grad_fn.next_functions:
    print(node.name(), number)

# %% [markdown]
# Both edges lead to one node, with the numbers 0 and 1. Its rule gets two incoming gradients, one for each part, and puts them back side by side.

# %% [markdown] items="23"
# The names of nodes are worth reading. If a graph has a `MulBackward0` where you expected an `MmBackward0`, you have found a bug before training starts. Six root names:

# %% tags=["demo"] items="23"
m = torch.ones(2, 2, requires_grad=True)
for expression in (m + m, m * m, m @ m, m**2, m.sum(), m.mean()):
    print(expression.grad_fn.name())

# %% [markdown] items="51 53 54"
# ## Micro-batches that add up
#
# If a batch is too big for memory, split it into micro-batches, such as 32 rows into four parts of 8: four forward and backward passes, gradients summed in `.grad`, one step. Does this *equal* the big batch? If the gradients of the parts are -5, -3, -7 and -1, their sum is -16, and their average is -4. **Predict** the error of the gradient for these five versions. The loss is a mean over the rows it gets.

# %% items="53 54 F46"
predict("Which of the five versions have no error?")


def big_batch_gradient(x, y, start):
    w = MiniTensor(start, requires_grad=True)
    ((x @ w - y) ** 2).mean().backward()
    return w.grad.data


def micro_batch_gradient(x, y, start, sizes, weight):
    w = MiniTensor(start, requires_grad=True)
    begin = 0
    for size in sizes:
        rows = slice(begin, begin + size)
        loss = ((x[rows] @ w - y[rows]) ** 2).mean()
        (loss * weight(size)).backward()
        begin += size
    return w.grad.data


rng = np.random.default_rng(7)
x, y, start = rng.normal(size=(32, 6)), rng.normal(size=(32, 1)), rng.normal(size=(6, 1))
right = big_batch_gradient(x, y, start)
for name, sizes, weight in (
    ("4 x 8, not divided", (8, 8, 8, 8), lambda size: 1),
    ("4 x 8, divided by 4", (8, 8, 8, 8), lambda size: 1 / 4),
    ("12 + 12 + 8, divided by 3", (12, 12, 8), lambda size: 1 / 3),
    ("12 + 12 + 8, times size / 32", (12, 12, 8), lambda size: size / 32),
    ("8 + 24, divided by 2", (8, 24), lambda size: 1 / 2),
):
    found = micro_batch_gradient(x, y, start, sizes, weight)
    error = np.linalg.norm(found - right) / np.linalg.norm(right)
    ratio = np.linalg.norm(found) / np.linalg.norm(right)
    print(f"{name:30s} relative error {error:.1e}   length {ratio:.2f} of the right one")

# %% [markdown]
# Without dividing, the gradient is four times too long: with SGD that is a learning rate four times too large. Dividing by the number of parts is right only if they have equal sizes; in general each part's mean must be weighted by its share of the rows.
#
# Even then there is a condition: the loss must be a plain average over rows that do not affect each other. Layers that normalize over the batch break it. The next cell splits 32 rows into 4 x 8, divided by 4, for three networks in PyTorch:

# %% tags=["demo"] items="F46"
def split_error(middle):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(6, 8), middle, torch.nn.Tanh(), torch.nn.Linear(8, 1)
    ).double()
    x, y = torch.randn(32, 6, dtype=torch.float64), torch.randn(32, 1, dtype=torch.float64)

    def gradient(parts):
        net.zero_grad()
        for rows in torch.arange(32).chunk(parts):
            (((net(x[rows]) - y[rows]) ** 2).mean() / parts).backward()
        return torch.cat([parameter.grad.flatten() for parameter in net.parameters()])

    whole, parts = gradient(1), gradient(4)
    return ((parts - whole).norm() / whole.norm()).item()


for middle in (torch.nn.Identity(), torch.nn.LayerNorm(8), torch.nn.BatchNorm1d(8)):
    print(f"{type(middle).__name__:12s} relative error {split_error(middle):.1e}")

# %% [markdown] items="53"
# In a loop it looks like this: divide each loss by the number of parts, and step and clear only after every fourth part.

# %% tags=["demo"] items="53"
parameters = [MiniTensor(array.copy(), requires_grad=True) for array in layers]
optimizer = SGD(parameters, lr=0.1)
for number in range(4 * 5):
    rows = slice(16 * (number % 4), 16 * (number % 4) + 16)
    loss = ((network(points[rows], parameters) - heights[rows]) ** 2).mean() / 4
    loss.backward()
    if (number + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
whole = ((network(points[:64], parameters) - heights[:64]) ** 2).mean().item()
print(f"after 5 steps of 4 x 16 = 64 rows: loss {whole:.4f}")

# %% [markdown] items="60"
# Here is a whole loop in PyTorch. Its comments say why each line is there.

# %% tags=["demo"] items="60"
torch.manual_seed(0)
inputs, targets = torch.randn(64, 10), torch.randn(64, 1)
model = torch.nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)  # reads .grad, writes the parameters
history = []
for step in range(100):
    optimizer.zero_grad()  # anywhere after step and before backward
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()  # adds into .grad
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # gives the norm before clipping
    optimizer.step()  # not recorded, in place
    history.append(loss.item())  # a float; the tensor would keep its graph
    if step % 10 == 0:
        print(f"step {step:3d}   loss {history[-1]:.4f}   gradient norm {norm.item():.4f}")

# %% [markdown] items="31"
# ## Frozen parameters
#
# When you fine-tune a network, you often freeze most of its parameters. That saves work and memory, but how much depends on **which** layers are frozen. Take eight layers, four of them frozen. **Predict** the number of nodes: with the first four frozen, and with the last four.

# %% tags=["demo"] items="31 F26"
predict("How many nodes does the graph have with the first four frozen, and with the last four?")


def chain_of_layers(frozen, count=8):
    rng = np.random.default_rng(4)
    weights = [
        MiniTensor(rng.normal(size=(64, 64)) / 8, requires_grad=i not in frozen)
        for i in range(count)
    ]
    h = MiniTensor(rng.normal(size=(256, 64)))
    for w in weights:
        h = (h @ w).tanh()
    loss = h.sum()
    nodes = topological_order(loss.grad_fn)
    loss.backward()
    saved = {id(array): array.nbytes for node in nodes for array in node.saved_tensors}
    with_grad = sum(w.grad is not None for w in weights)
    megabytes = sum(saved.values()) / 1e6
    print(
        f"frozen {list(frozen)!s:13s} nodes {len(nodes):3d}   saved {megabytes:.1f} MB", end="   "
    )
    print(f"weights with .grad {with_grad}")


for frozen in (range(0), range(4), range(4, 8)):
    chain_of_layers(frozen)

# %% [markdown]
# If the first layers are frozen, the graph is shorter: nothing before layer 5 is recorded at all. If the last layers are frozen, only four ends are missing, because the gradient has to pass through these layers on its way to the first ones. (In your engine that saves no work yet; in lesson 08 a rule can check first.)
#
# A frozen parameter is still a parameter. What does `parameters()` of a PyTorch module return?

# %% tags=["demo"] items="F26"
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
model[0].requires_grad_(False)
print([parameter.requires_grad for parameter in model.parameters()])

# %% [markdown]
# All of them, frozen or not. An optimizer skips the frozen ones because their `.grad` is None.

# %% [markdown]
# ## The ball
#
# Never clearing is momentum 1: a ball that rolls without friction. **Predict:** the loss is `w**2 / 2`, the start is 1, nothing is cleared. What does `w` do?

# %% tags=["demo"] items="F1"
predict(
    "What does w do at a learning rate of 0.1, never cleared?",
    "it comes to rest",
    "it swings forever",
    "it explodes",
)


def roll(lr, steps, forget):
    w = MiniTensor(np.array(1.0), requires_grad=True)
    optimizer = SGD([w], lr)
    places = []
    for _ in range(steps):
        if not forget:
            optimizer.zero_grad()
        (w * w * 0.5).backward()
        optimizer.step()
        places.append(w.data.item())
        if abs(places[-1]) > 1e6:
            break
    return places


plot_balls(roll)

# %% [markdown]
# At the two smaller learning rates `w`, never cleared, swings forever, like a spring without friction. Measure it over a long time, and look for the learning rates at which each method breaks down. (The curvature of this loss is 1; in general, what counts is learning rate times curvature.)

# %% items="F1"
def swing(lr, steps=5000):
    """By hand, without an engine: the largest |w| in the first and in the last 500 steps."""
    w, buffer, places = 1.0, 0.0, []
    for _ in range(steps):
        buffer += w
        w -= lr * buffer
        places.append(abs(w))
        if places[-1] > 1e100:
            break
    return len(places), max(places[:500]), max(places[-500:])


print("lr     cleared, after 200 steps   never cleared: largest |w|, first and last 500 steps")
for lr in (0.01, 0.5, 1.9, 2.1, 3.9, 4.1):
    steps, early, late = swing(lr)
    stopped = "" if steps == 5000 else f"   stopped after {steps} steps"
    print(f"{lr:<4}   {abs(1 - lr) ** 200:24.2g}   {early:8.3g} {late:8.3g}{stopped}")

# %% [markdown] items="55"
# If you clear correctly, gradient descent breaks down above a learning rate of 2. With the mistake, it holds out until 4.
#
# A ball that rolls without friction keeps its energy. With the loss as height and the buffer as speed, `loss + lr / 2 * norm**2` should stay nearly the same. So the buffer can hardly exceed `sqrt(2 * first loss / lr)`.

# %% tags=["demo"] items="56"
accumulation(forget=True)

# %% [markdown] items="56"
# The norm of `.grad` climbs toward this length and is often near it: what the loss gives up, the buffer takes. Nothing grows much beyond that, so an alarm for exploding gradients does not find this mistake. Switch on *compare with momentum 1.0*, change the learning rate, and look again. The button *A spring* shows the ball from before.

# %% [markdown] items="63"
# ## A post-mortem that you can replay
#
# Here is a run that ends badly: the network of the first picture, never cleared, with mini-batches of 16.

# %% tags=["demo"] items="63 F2"
import matplotlib.pyplot as plt

from mini_autograd.widgets.demo import logarithmic

window = 100
for forget, name in ((False, "cleared"), (True, "never cleared")):
    losses = train(torch.tensor, torch.optim.SGD, 1200, forget, batch=16)
    middle = [np.median(losses[i : i + window]) for i in range(0, len(losses), window)]
    plt.plot(np.arange(1, 13) * window, middle, "o-", markersize=3, label=name)
    print(f"{name:14s} median loss of steps 500 to 600: {middle[5]:.3f}", end="")
    print(f"   of steps 1100 to 1200: {middle[-1]:.3f}")
logarithmic(plt.gca())
plt.gca().set(xlabel="step", ylabel="median loss of 100 steps")
plt.legend()
plt.show()

# %% [markdown] items="63"
# | | |
# | --- | --- |
# | symptom | better than the correct run from step 300 to 700, then worse and worse |
# | assumption | "the learning rate is too high for the end of the training" |
# | cause | `zero_grad` was lost when the loop was rewritten; the sum of all gradients acts as momentum without friction, and the batches feed it |
# | fix | one line |
# | what would have found it | `assert all(p.grad is None for p in parameters)` before `backward`, or a comparison: `.grad` must equal what this one `backward` has added |
#
# Does clipping help? **Predict** the result for the regression with batches of 16, with the gradient clipped to length 1 and never cleared.

# %% tags=["demo"] items="63"
predict(
    "Clipped and never cleared: how far from the best weights is the last step?",
    "it arrives",
    "near, but it never arrives",
    "it explodes",
)
print("never cleared:         ", distances(16)[-1])
print("never cleared, clipped:", distances(16, clip=1.0)[-1])

# %% [markdown]
# Clipping hides the mistake. Nothing explodes, no number looks alarming, and the run never arrives.

# %% [markdown]
# ## Questions about this part

# %% test="quiz_05_further" points=1 tags=["quiz"]
question(
    "uneven",
    "Three micro-batches of 20, 20 and 24 rows, each with a mean loss, should give the same gradient as one batch of 64. What is each loss multiplied by?",
    right("its number of rows divided by 64", "Then each row counts 1/64, as in the big batch."),
    wrong("1/3", "Then a row in the last part counts 1/72 and the others 1/60.", misconception="divide_by_parts"),
    wrong("1: adding is what accumulation is for", "The sum of three means is about three times the mean.", misconception="accumulation_equals_batch"),
    wrong("1/64", "A mean over 20 rows times 1/64 lets each row count 1/1280.", misconception="divide_twice"),
)
