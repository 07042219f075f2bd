# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: nbgrader,tags,exercise,items,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Leaves and accumulation
#
# Two programs train the same network.

# %%
import numpy as np

from autograder.student import check_gradients, hints, positive, quiz, start_lesson

start_lesson()

# %% [markdown]
# ## The tensor

# %% tags=["engine"]
import weakref

import numpy as np


class MiniTensor:
    """An array, and what the engine needs to know about it."""

    __array_ufunc__ = None  # array * tensor is our business, not NumPy's

    def __init__(self, data, requires_grad=False):
        self.data = np.asarray(data, dtype=np.float64)
        self.requires_grad = requires_grad
        self.grad = None  # a MiniTensor of the same shape, once a gradient has arrived
        self.grad_fn = None  # the node that made this tensor; None for a leaf
        self._accumulate = None  # a leaf's AccumulateGrad node, held weakly

    @property
    def is_leaf(self):
        return self.grad_fn is None

    @property
    def shape(self):
        return self.data.shape

    @property
    def ndim(self):
        return self.data.ndim

    def item(self):
        return self.data.item()

    def __repr__(self):
        if self.grad_fn is not None:
            return f"MiniTensor({self.data}, grad_fn=<{self.grad_fn.name()}>)"
        return f"MiniTensor({self.data}, requires_grad=True)" if self.requires_grad else f"MiniTensor({self.data})"


def as_tensor(value):
    """A MiniTensor stays what it is; a number or an array becomes one, without gradient."""
    return value if isinstance(value, MiniTensor) else MiniTensor(value)

# %% [markdown]
# ## The node

# %% tags=["engine"]
class Function:
    """One operation. An instance of it is one call: a node of the graph, and the `ctx` of its rules."""

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


class AccumulateGrad(Function):
    """The end of a way: it adds what arrives into `.grad` of its leaf."""

    def __init__(self, variable):
        self.variable = variable

    @classmethod
    def name(cls):
        return "AccumulateGrad"

# %% tags=["engine"]
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
# ### Exercise 1: two rules as classes

# %% nbgrader={"grade": false, "grade_id": "rules_as_classes", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["engine"]
class Sub(Function):
    """a - b. Its rule needs no saved array.

    >>> ctx = Sub()
    >>> float(Sub.forward(ctx, np.array(5.0), np.array(2.0)))
    3.0
    >>> [float(share) for share in Sub.backward(ctx, np.array(10.0))]
    [10.0, -10.0]
    """

    @staticmethod
    def forward(ctx, a, b):
        ### BEGIN SOLUTION
        return a - b
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        return grad, -grad
        ### END SOLUTION


class Tanh(Function):
    """The hyperbolic tangent of a (np.tanh). Its rule needs the output: 1 - output**2.

    >>> ctx = Tanh()
    >>> float(Tanh.forward(ctx, np.array(0.0)))
    0.0
    >>> len(ctx.saved_tensors)
    1
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

# %% [markdown]
# ### Exercise 2: record

# %% nbgrader={"grade": false, "grade_id": "record", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["engine"]
def edge_to(tensor):
    """Where a gradient for this tensor must be sent: a pair (node, 0).

    tensor: MiniTensor
    Returns: (None, 0) for a tensor that requires no gradient,
        (its grad_fn, 0) for the result of an operation,
        (its AccumulateGrad, 0) for a leaf: always the same node while anybody holds it.

    >>> edge_to(MiniTensor(1.0))
    (None, 0)
    >>> w = MiniTensor(1.0, requires_grad=True)
    >>> edge_to(w)[0].variable is w
    True
    """
    ### BEGIN SOLUTION
    if not tensor.requires_grad:
        return (None, 0)
    if tensor.grad_fn is not None:
        return (tensor.grad_fn, 0)
    node = tensor._accumulate() if tensor._accumulate is not None else None
    if node is None:
        node = AccumulateGrad(tensor)
        tensor._accumulate = weakref.ref(node)
    return (node, 0)
    ### END SOLUTION


def apply(cls, *inputs, **options):
    """Compute an operation, and record it if an input requires a gradient.

    cls: the Function, such as Mul
    inputs: MiniTensors, numbers or arrays; options: passed on to forward
    Returns: MiniTensor

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

# %% tags=["engine"]
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

# %% tags=["engine"]
def spread(array, shape, dim, keepdim):
    """Bring what a reduction over dim has left back to the shape before it."""
    if dim is not None and not keepdim:
        array = np.expand_dims(array, dim)
    return np.broadcast_to(array, shape)


class Sum(Function):
    @staticmethod
    def forward(ctx, a, dim=None, keepdim=False):
        ctx.shape, ctx.dim, ctx.keepdim = a.shape, dim, keepdim
        return a.sum(axis=dim, keepdims=keepdim)

    @staticmethod
    def backward(ctx, grad):
        return spread(grad, ctx.shape, ctx.dim, ctx.keepdim)


class Mean(Function):
    @staticmethod
    def forward(ctx, a, dim=None, keepdim=False):
        ctx.shape, ctx.dim, ctx.keepdim = a.shape, dim, keepdim
        output = a.mean(axis=dim, keepdims=keepdim)
        ctx.count = a.size / max(output.size, 1)
        return output

    @staticmethod
    def backward(ctx, grad):
        return spread(grad, ctx.shape, ctx.dim, ctx.keepdim) / ctx.count


class Max(Function):
    """Over everything, equal maxima share the gradient; along a dim, the first of them gets it all, as in PyTorch."""

    @staticmethod
    def forward(ctx, a, dim=None, keepdim=False):
        ctx.shape, ctx.dim, ctx.keepdim = a.shape, dim, keepdim
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
        return spread(grad, ctx.shape, ctx.dim, ctx.keepdim) * chosen


MiniTensor.sum = lambda self, dim=None, keepdim=False: Sum.apply(self, dim=dim, keepdim=keepdim)
MiniTensor.mean = lambda self, dim=None, keepdim=False: Mean.apply(self, dim=dim, keepdim=keepdim)
MiniTensor.max = lambda self, dim=None, keepdim=False: Max.apply(self, dim=dim, keepdim=keepdim)

# %% tags=["engine"]
class MatMul(Function):
    """a @ b for matrices, batches of them, and vectors. A vector counts as a matrix with one row or one column."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        left = a if a.ndim > 1 else a[None, :]
        right = b if b.ndim > 1 else b[:, None]
        grad = grad if b.ndim > 1 else np.expand_dims(grad, -1)
        grad = grad if a.ndim > 1 else np.expand_dims(grad, -2)
        for_a = grad @ np.swapaxes(right, -1, -2)
        for_b = np.swapaxes(left, -1, -2) @ grad
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
        return np.swapaxes(grad, *ctx.dims)


class Index(Function):
    """a[index]. Where an index is repeated, its gradients add up."""

    @staticmethod
    def forward(ctx, a, index):
        ctx.shape, ctx.index = a.shape, index
        return a[index]

    @staticmethod
    def backward(ctx, grad):
        whole = np.zeros(ctx.shape)
        np.add.at(whole, ctx.index, grad)
        return whole


def reshape(self, *shape):
    """As in PyTorch: a.reshape(2, 3) or a.reshape((2, 3))."""
    return Reshape.apply(self, shape=shape[0] if isinstance(shape[0], tuple) else shape)


MiniTensor.__matmul__ = lambda a, b: MatMul.apply(a, b)
MiniTensor.__rmatmul__ = lambda a, b: MatMul.apply(b, a)
MiniTensor.__getitem__ = lambda self, index: Index.apply(self, index=index)
MiniTensor.reshape = reshape
MiniTensor.transpose = lambda self, dim0, dim1: Transpose.apply(self, dim0=dim0, dim1=dim1)
MiniTensor.T = property(lambda self: self.transpose(0, 1))

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
        return grad - np.exp(output) * grad.sum(axis=ctx.dim, keepdims=True)


def cross_entropy(logits, labels):
    """The mean over the rows of minus the log probability of the label; labels is an array of whole numbers."""
    rows = np.arange(len(labels))
    return -logits.log_softmax(1)[rows, labels].mean()


MiniTensor.log_softmax = lambda self, dim: LogSoftmax.apply(self, dim=dim)
MiniTensor.softmax = lambda self, dim: LogSoftmax.apply(self, dim=dim).exp()

# %% [markdown]
# ### Exercise 3: accumulate and retain_grad

# %% nbgrader={"grade": false, "grade_id": "accumulate", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["engine"]
def accumulate(self, grad):
    """Add what arrives into `.grad` of the leaf of this node.

    self: AccumulateGrad; its leaf is self.variable
    grad: array of the leaf's shape; it may belong to somebody else, so `.grad` never shares memory with it
    Returns: None. Afterwards `.grad` of the leaf is a MiniTensor that requires no gradient.

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


def retain_grad(self):
    """Ask that backward keeps the gradient of this result of an operation too. Nothing happens for a leaf.

    self: MiniTensor

    >>> y = MiniTensor(2.0, requires_grad=True) * 3.0
    >>> y.retain_grad()
    >>> y.grad_fn.retaining() is y
    True
    """
    ### BEGIN SOLUTION
    if self.grad_fn is not None:
        self.grad_fn.retaining = weakref.ref(self)
    ### END SOLUTION


AccumulateGrad.accumulate = accumulate
MiniTensor.retain_grad = retain_grad

# %% tags=["engine"]
def topological_order(root):
    """All nodes from which gradients of root can flow on, root first, each node before the nodes of its inputs."""
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
# ### Exercise 4: backward

# %% nbgrader={"grade": false, "grade_id": "backward", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["engine"]
def backward(self, gradient=None):
    """Find the gradient of self with respect to every leaf that requires one, and add it to the leaf's .grad.

    self: MiniTensor that requires a gradient
    gradient: array or MiniTensor of the shape of self; may be left out when self is a single number, and is 1 then
    Returns: None

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
    ### BEGIN SOLUTION
    for node in topological_order(root):
        grad = pending.pop(node, None)
        if grad is None:
            continue
        if isinstance(node, AccumulateGrad):
            node.accumulate(grad)
            continue
        tensor = node.retaining() if node.retaining is not None else None
        if tensor is not None:
            tensor.grad = MiniTensor(grad.copy() if tensor.grad is None else tensor.grad.data + grad)
        shares = node.backward(node, grad)
        shares = shares if isinstance(shares, tuple) else (shares,)
        for (source, _), share, shape in zip(node.next_functions, shares, node.input_shapes):
            if source is not None and share is not None:
                share = sum_to(share, shape)
                pending[source] = pending[source] + share if source in pending else share
    ### END SOLUTION


MiniTensor.backward = backward

# %% [markdown]
# ### Exercise 6: an optimizer

# %% nbgrader={"grade": false, "grade_id": "sgd", "locked": false, "schema_version": 3, "solution": true, "task": false} tags=["engine"]
class SGD:
    """Gradient descent, with momentum if wanted; used like torch.optim.SGD.

    SGD(parameters, lr, momentum=0.0): parameters is a list or other iterable of leaves.
    step(): for each parameter whose .grad is not None, buffer = momentum * buffer + gradient (the buffer of a parameter
        starts at zero), then lr * buffer is subtracted from its data. Nothing of this is recorded: the parameter stays
        the same object and a leaf. .grad is only read.
    zero_grad(set_to_none=True): sets .grad of each parameter to None; with set_to_none=False, a .grad that is there
        becomes a MiniTensor of zeros, and None stays None.

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

    ### BEGIN SOLUTION
    def __init__(self, parameters, lr, momentum=0.0):
        self.parameters = list(parameters)
        self.lr, self.momentum = lr, momentum
        self.buffers = [0.0 for _ in self.parameters]

    def step(self):
        for i, parameter in enumerate(self.parameters):
            if parameter.grad is not None:
                self.buffers[i] = self.momentum * self.buffers[i] + parameter.grad.data
                parameter.data -= self.lr * self.buffers[i]

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters:
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = MiniTensor(np.zeros(parameter.shape))
    ### END SOLUTION
