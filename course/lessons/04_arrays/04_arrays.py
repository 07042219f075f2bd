# %% [markdown]
# # One rule, a million numbers
#
# *Core: about 105 minutes; good breaks are after section 5 and before section 9. Further: about 30 minutes, optional. You build the engine for arrays: sums, matrix products, indexing, softmax, and a function that undoes broadcasts. You need the engine of lessons 02 and 03 and NumPy's arrays.*
#
# Take one layer of a network: 100 examples with 1000 numbers each, and 1000 times 1000 weights. The matrix product in it has 100 times 1000 outputs, and a slope for each pair of an output and a weight. **Predict** how large a table of all these slopes is.

# %% tags=["engine"]
import numpy as np

# %%
import time

from autograder.student import check, hints, predict, progress, quiz

# %%
progress(short=True)

# %% tags=["demo"]
import torch
from helpers_04 import error_of_rule, jacobian, leaf, probabilities
from helpers_04 import show_classifier, show_zeros, try_backward

from mini_autograd.widgets import broadcast, explore

# %% tags=["demo"]
predict("How large is a table of all slopes?", "8 MB", "800 MB", "8 GB", "800 GB")
generator = np.random.default_rng(4)
examples = generator.normal(size=(100, 1000))
weights = generator.normal(size=(1000, 1000)) / 30
weights_torch = leaf(weights)
start = time.perf_counter()
(torch.tensor(examples) @ weights_torch).tanh().sum().backward()
print(f"{weights_torch.grad.numel():,} gradients in {1000 * (time.perf_counter() - start):.0f} ms")
print(f"{100 * 1000 * weights.size:,} slopes are {8e5 * weights.size / 1e9:,.0f} GB in float64")

# %% [markdown]
# In lesson 02 every step had one or two slopes. Your computer could not hold the table of this step, and PyTorch needed milliseconds. **How can PyTorch multiply by a table that does not exist?**
#
# To find out, you build `MiniTensor` a second time, now for whole arrays. It is the engine for the rest of the course. You will be able to
#
# 1. write rules that turn arrays of incoming gradients into arrays of gradients, without a table of slopes;
# 2. undo the stretching of small arrays in a single place;
# 3. start `backward` at an output of any shape;
# 4. write the rules of sums, matrix products, repeated indices and softmax;
# 5. explain why checks draw their incoming gradients at random.

# %% [markdown]
# ## 1. A rule without a table
#
# Take the smallest example, `exp` of three numbers. The helper `jacobian` builds the table of slopes as in lesson 01: it moves each input a little, and watches every output. The table has one row per output and one column per input. It is called the **Jacobian**.

# %% tags=["demo"]
x = np.array([0.0, 0.5, 1.0])
J = jacobian(np.exp, x)
print(J.round(4))

# %% [markdown]
# Suppose that a loss depends on the three outputs, with the slopes `v = [1, 10, 100]`. This is the incoming gradient; the field calls it the **cotangent**. What is the slope of the loss with respect to input `j`? Sum over the outputs: `v[0] * J[0, j] + v[1] * J[1, j] + v[2] * J[2, j]`. For all `j` at once this is a row times a matrix, `v @ J`.
#
# The rule of `exp` from lesson 02 is `grad * output`. **Predict:** given the array `v`, how does it compare with `v @ J`?

# %% tags=["demo"] items="35"
predict("How does the rule compare with v @ J?", "equal", "only the sums are equal", "different")
v = np.array([1.0, 10.0, 100.0])
print("v @ J:    ", (v @ J).round(4))
print("the rule: ", (v * np.exp(x)).round(4))

# %% [markdown] items="35"
# The same, but the rule never had the table. It knows what the table *does to a row*: for `exp`, one multiplication per entry. So a rule is a **vector-Jacobian product**: cotangent in, cotangent out, no Jacobian in between. For a million numbers the table takes eight terabytes, the array of slopes only eight megabytes. For `exp` the rule skips exactly the zeros off the diagonal.

# %% [markdown]
# ## 2. Small arrays are stretched
#
# NumPy adds arrays of different shapes if they can be stretched to a common shape. This is called **broadcasting**. It has two rules. Shapes are lined up at their *last* axis, and missing axes in front are added with size 1. Then every axis of size 1 is repeated as often as needed. All other sizes must be equal.
#
# **Predict** the shape of the sum of a `(3, 1)` and a `(4,)`.

# %% tags=["demo"]
broadcast(np.ones((3, 1)), np.ones(4), predict=True, step=3)

# %% [markdown]
# Entries of the same color are the same number. Nothing is copied in memory; NumPy only reads the same number several times. Step back to see how the shapes are lined up; the steps forward come below. Try other shapes, including some that do not fit.

# %% [markdown]
# Now the slopes. In `c = a + b` with the shapes `(3, 1)` and `(4,)`, the cotangent `v` has shape `(3, 4)`. The rule of the sum returns it unchanged, for both inputs. **Predict:** how do you get the gradient of `a` from it?

# %% tags=["demo"] items="gap:broadcasting"
predict("How do you get the gradient of a from v?", "it is v", "sum over axis 0", "sum over axis 1")
a, b = np.array([[1.0], [2.0], [3.0]]), np.array([10.0, 20.0, 30.0, 40.0])
v = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0], [100.0, 200.0, 300.0, 400.0]])
print("for a:", (v.ravel() @ jacobian(lambda a: a + b, a)).round(4))
print("for b:", (v.ravel() @ jacobian(lambda b: a + b, b)).round(4))

# %% [markdown]
# The first number of `a` is used four times, in a whole row. So it gets four contributions, and contributions add up: 1 + 2 + 3 + 4. The first number of `b` is used in a whole column. This is `x + x` from lesson 02 in disguise.
#
# **To undo a stretch, sum over what was stretched.** Now step forward in the picture above: it shows, sum by sum, how each gradient gets back to the shape of its array.

# %% [markdown]
# ### Exercise 1: undo a stretch
#
# `sum_to(grad, shape)` takes a gradient in the stretched shape and returns it in the original shape of the array. For example, from `(5, 3, 4)` to `(3, 1)`:
#
# 1. The axes that were added in front disappear: sum over the first one, which leaves `(3, 4)`.
# 2. The axes that were stretched from size 1 are summed too, but stay, with size 1: `(3, 1)`.
#
# The first line is given. Write the other three. NumPy's `sum` takes a tuple of axes; over an empty tuple it sums nothing.

# %% [markdown] tags=["hint"] exercise="sum_to"
# `grad.sum(axis=(0, 1))` sums over the first two axes at once. `tuple(range(extra))` is the tuple that you need, even if `extra` is 0: an empty tuple means that no axis is summed.

# %% [markdown] tags=["hint"] exercise="sum_to"
# For the second step collect the axes in a tuple: those where `shape` says 1 and `grad.shape` says something else. Then `grad.sum(axis=..., keepdims=True)`, which leaves summed axes in place with size 1.

# %% [markdown] tags=["hint"] exercise="sum_to"
# `stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and grad.shape[axis] != 1)`

# %% solution="sum_to" tags=["engine"]
def sum_to(grad, shape):
    """Undo a broadcast: sum the gradient of the stretched array back to the original shape.

    grad: array whose shape came from stretching an array of the given shape
    shape: tuple, such as (3, 1) or (); it may be grad.shape itself
    Returns: array of the given shape

    >>> sum_to(np.array([[1.0, 2.0], [10.0, 20.0]]), (2,))
    array([11., 22.])
    >>> sum_to(np.array([[1.0, 2.0], [10.0, 20.0]]), (2, 1))
    array([[ 3.],
           [30.]])
    """
    extra = grad.ndim - len(shape)
    ### BEGIN SOLUTION
    grad = grad.sum(axis=tuple(range(extra)))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and grad.shape[axis] != 1)
    return grad.sum(axis=stretched, keepdims=True)
    ### END SOLUTION

# %% check="sum_to"

# %% [markdown]
# ## 3. One object for an array
#
# The engine of lesson 02 could handle the layer from the start of this lesson: a matrix product consists of sums and products. But with one object per number, it would need two objects for each of 100 times 1000 times 1000 products. With arrays there are five objects, whatever the size: two leaves, one product, one `tanh`, one sum.
#
# `data` is now an array, and `.grad` starts as `None`, as in PyTorch: nothing has arrived yet.

# %% tags=["engine"]
class MiniTensor:
    """An array that remembers how it was made."""

    __array_ufunc__ = None  # for `array * tensor`: tells NumPy to leave the product to us

    def __init__(self, data, inputs=(), operation="", rule=None):
        copy = rule is None  # a leaf gets its own array
        self.data = np.array(data, dtype=np.float64) if copy else data
        self.grad = None  # an array of the same shape, once a gradient has arrived
        self.inputs = inputs  # the MiniTensors it was made from
        self.operation = operation  # what made it, such as "+"
        self.rule = rule  # takes the incoming gradient, returns one gradient per input

    @property
    def shape(self):
        return self.data.shape

    def __repr__(self):
        return f"MiniTensor({self.data}, operation={self.operation!r})"

# %% [markdown]
# Compare two operations with those of lesson 02: `math.exp` has become `np.exp`, and `multiply` converts `a`, too. (`as_tensor` makes a MiniTensor of a number or an array.)

# %% tags=["engine"]
def multiply(a, b):
    a, b = as_tensor(a), as_tensor(b)

    def rule(grad):
        return grad * b.data, grad * a.data

    return MiniTensor(a.data * b.data, (a, b), "*", rule)


def exp(a):
    output = np.exp(a.data)

    def rule(grad):
        return (grad * output,)

    return MiniTensor(output, (a,), "exp", rule)


MiniTensor.__mul__ = MiniTensor.__rmul__ = multiply
MiniTensor.exp = exp

# %% [markdown]
# ### More operations, and the order of lesson 03 (just run it)
#
# Run the next two cells. You don't need to read them. The first contains sum, negation, difference, power, logarithm and `tanh`, in the same form, and `topological_order`. The second is for the operator `@`, whose rule you write in exercise 5. A vector is a matrix with one row or one column, so vectors need no extra rule: they are reshaped before and after, and both steps are recorded.

# %% tags=["engine"]
def as_tensor(value):
    """A MiniTensor stays what it is; a number or an array becomes one."""
    return value if isinstance(value, MiniTensor) else MiniTensor(value)


def topological_order(root):
    """All nodes that root was made from, root first, each node once and before its inputs."""
    finished, seen, stack = [], set(), [(root, False)]
    while stack:
        node, inputs_are_done = stack.pop()
        if inputs_are_done:
            finished.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(source, False) for source in node.inputs]
    return finished[::-1]


def add(a, b):
    a, b = as_tensor(a), as_tensor(b)

    def rule(grad):
        return grad, grad

    return MiniTensor(a.data + b.data, (a, b), "+", rule)


def negate(a):
    def rule(grad):
        return (-grad,)

    return MiniTensor(-a.data, (a,), "neg", rule)


def subtract(a, b):
    a, b = as_tensor(a), as_tensor(b)

    def rule(grad):
        return grad, -grad

    return MiniTensor(a.data - b.data, (a, b), "-", rule)


def power(a, exponent):
    """a ** exponent, entry by entry; the exponent is a plain number."""

    def rule(grad):
        return (grad * exponent * a.data ** (exponent - 1),)

    return MiniTensor(a.data**exponent, (a,), f"**{exponent}", rule)


def log(a):
    def rule(grad):
        return (grad / a.data,)

    return MiniTensor(np.log(a.data), (a,), "log", rule)


def tanh(a):
    output = np.tanh(a.data)

    def rule(grad):
        return (grad * (1 - output**2),)

    return MiniTensor(output, (a,), "tanh", rule)


MiniTensor.ndim = property(lambda self: self.data.ndim)
MiniTensor.item = lambda self: self.data.item()  # the only entry, as a plain number
MiniTensor.__add__ = MiniTensor.__radd__ = add
MiniTensor.__neg__ = negate
MiniTensor.__sub__ = subtract
MiniTensor.__rsub__ = lambda a, other: subtract(other, a)  # for other - a
MiniTensor.__pow__ = power
MiniTensor.log = log
MiniTensor.tanh = tanh

# %% tags=["engine"]
def matrix_product(a, b):
    """a @ b for vectors, matrices and stacks of matrices, as in NumPy."""
    a, b = as_tensor(a), as_tensor(b)
    row, column = a.ndim == 1, b.ndim == 1
    product = matmul(a.reshape(1, -1) if row else a, b.reshape(-1, 1) if column else b)
    if not (row or column):
        return product
    rows, columns = product.shape[-2:]
    kept = ([] if row else [rows]) + ([] if column else [columns])
    return product.reshape(*product.shape[:-2], *kept)


MiniTensor.__matmul__ = matrix_product
MiniTensor.__rmatmul__ = lambda a, other: matrix_product(other, a)  # for other @ a
MiniTensor.T = property(lambda a: a.transpose(0, 1))  # of a matrix

# %% [markdown]
# ## 4. Backward from any output
#
# In lesson 02, `backward` began with the gradient 1. With arrays the output may have many entries. **Predict** what PyTorch says to the second call.

# %% tags=["demo"] items="42"
predict("What does the second call do?", "sum the entries", "return an array", "raise an error")
x = leaf([1.0, 2.0, 3.0])
try_backward(x, (x * x).sum())
try_backward(x, x * x)
try_backward(x, x * x, torch.tensor([1.0, 10.0, 100.0]))
try_backward(x, (x * x).sum(0, keepdim=True), torch.tensor(1.0))

# %% [markdown] items="42"
# With three outputs there is no obvious cotangent, so PyTorch asks for one. Either reduce the output to one number, with `sum` or `mean`, or say with a cotangent how much each output matters. It must have the shape of the output: the last line fails, because `()` is not `(1,)`. Where the output has a single entry, whatever its shape, `backward()` alone is enough: the cotangent is then a 1 in the shape of the output.
#
# `y.backward(v)` gives the same gradients as `(y * v).sum().backward()`: a cotangent gives each output a weight.

# %% [markdown]
# ### Exercise 2: backward
#
# You wrote this in lesson 02: pending gradients in a dict, nodes in topological order, each rule called once. Write the loop again for arrays. The start is given: without an argument, an output with exactly one entry gets the cotangent 1; otherwise `backward` raises an error with PyTorch's wording. Two things are new:
#
# * **The stretch.** What a rule returns may have the stretched shape. Bring it to the shape of the input with `sum_to`, here, for all rules. Then no rule has to handle it.
# * **The result.** A node's `.grad` is `None` until the first gradient arrives; a later call adds to it. Never use `+=` on arrays, here or in the dict: `add` returns the same array for both inputs, so changing one would change the other.

# %% [markdown] tags=["hint"] exercise="backward"
# `pending` begins with the output and its cotangent. Walk through `topological_order(self)`. When a node's turn comes, everything for it has arrived.

# %% [markdown] tags=["hint"] exercise="backward"
# In the inner loop, first `share = sum_to(share, source.shape)`. Then put it into the dict, or add it to what is already pending there: `pending[source] = pending[source] + share if source in pending else share`.

# %% [markdown] tags=["hint"] exercise="backward"
# For each node: `grad = pending.pop(node)`; then `node.grad = grad if node.grad is None else node.grad + grad`; then, if it has a rule, the inner loop over `zip(node.inputs, node.rule(grad))`.

# %% solution="backward" tags=["engine"]
def backward(self, gradient=None):
    """Find the gradient of self with respect to every node it was made from; add it to their .grad.

    self: MiniTensor of any shape; its own .grad gets the cotangent added
    gradient: the cotangent, of the shape of self (not checked); may be left out if self has one entry
    Returns: None. Afterward each .grad is an array of the shape of its node.

    >>> a, b = MiniTensor([[1.0], [2.0]]), MiniTensor([10.0, 20.0, 30.0])
    >>> (a * b).backward(np.ones((2, 3)))
    >>> a.grad.tolist(), b.grad.tolist()
    ([[60.0], [60.0]], [3.0, 3.0, 3.0])
    """
    if gradient is None:
        if self.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones(self.shape)
    pending = {self: np.asarray(gradient, dtype=np.float64)}
    ### BEGIN SOLUTION
    for node in topological_order(self):
        grad = pending.pop(node)
        node.grad = grad if node.grad is None else node.grad + grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                share = sum_to(share, source.shape)
                pending[source] = pending[source] + share if source in pending else share
    ### END SOLUTION


MiniTensor.backward = backward

# %% check="backward"

# %% [markdown]
# Next, how the pass begins:

# %% check="cotangent"

# %% [markdown]
# Here is a small layer with a bias, and the same lines in PyTorch. Each row of the output uses the bias once.

# %% tags=["demo"]
x, bias = MiniTensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), MiniTensor([0.5, -0.5])
y = x * 2.0 + bias
v = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
y.backward(v)
bias_torch = leaf([0.5, -0.5])
(torch.tensor(x.data) * 2.0 + bias_torch).backward(torch.tensor(v))
print("yours:  ", bias.grad, "  PyTorch:", bias_torch.grad.numpy())
explore(y, names={"x": x, "bias": bias, "y": y})

# %% [markdown]
# There are now three different sums. **Predict** the three lines.

# %% items="gap:accumulation"
predict("Which three gradients of w are printed?")
w = MiniTensor(2.0)
(w * np.ones(5)).backward(np.ones(5))
print("stretched to five entries:   ", w.grad)

w = MiniTensor(2.0)
(w + w + w).backward()
print("used three times:            ", w.grad)

(w + w + w).backward()
print("and a second call of backward:", w.grad)

# %% [markdown]
# The first two belong to the chain rule: **within one call**, all uses of a number are summed, in `sum_to` and in the dict. The third is a design decision: **from call to call**, `.grad` keeps a running total until you set it to `None`. Lesson 05 is about the third.

# %% [markdown]
# ## 5. No rule has to undo a stretch
#
# With `sum_to` in one place, the rules of lesson 02 carry over. Only relu's `if` does not: it needs one answer, and `a.data > 0` gives one per entry. You can multiply by these answers: `(x > 0) * grad` keeps `grad` where `x` is positive.
#
# ### Exercise 3: quotient and relu
#
# Follow the example of `multiply` and `exp`. For the quotient only the rule is missing. You need no loops, no `if`, and nothing about shapes.

# %% [markdown] tags=["hint"] exercise="elementwise"
# The rule of the quotient is that of lesson 02: `grad / b.data` and `-grad * a.data / b.data**2`.

# %% [markdown] tags=["hint"] exercise="elementwise"
# `np.maximum(a.data, 0.0)` compares entry by entry. Its rule is `grad * (a.data > 0)`.

# %% solution="elementwise" tags=["engine"]
def divide(a, b):
    """a / b, entry by entry, stretched where needed.

    >>> divide(MiniTensor([2.0, 9.0]), 2.0).data
    array([1. , 4.5])
    """
    a, b = as_tensor(a), as_tensor(b)

    def rule(grad):
        ### BEGIN SOLUTION
        return grad / b.data, -grad * a.data / b.data**2
        ### END SOLUTION

    return MiniTensor(a.data / b.data, (a, b), "/", rule)


def relu(a):
    """Each entry where it is positive, else 0. The slope at 0 is 0.

    >>> relu(MiniTensor([-2.0, 3.0])).data
    array([0., 3.])
    """
    ### BEGIN SOLUTION
    def rule(grad):
        return (grad * (a.data > 0),)

    return MiniTensor(np.maximum(a.data, 0.0), (a,), "relu", rule)
    ### END SOLUTION


MiniTensor.__truediv__ = divide
MiniTensor.__rtruediv__ = lambda a, other: divide(other, a)  # for other / a
MiniTensor.relu = relu

# %% check="elementwise"

# %% [markdown]
# ## 6. Sums and means
#
# The rule of a stretch is a sum. And the rule of a sum? **Predict** the first row of the gradient of `x`. Here `x` has the shape `(2, 3)`, its sum over axis 1 has the shape `(2,)`, and so has the cotangent.

# %% tags=["demo"]
predict("What is the first row of the gradient?")
x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
v = np.array([1.0, 10.0])
print((v @ jacobian(lambda x: x.sum(axis=1), x)).reshape(x.shape).round(4))

# %% [markdown]
# It is a stretch. Every entry of a row moves the sum of that row by as much as it moves itself, so each gets the cotangent of its row: **the rule of a stretch is a sum, and the rule of a sum is a stretch.**
#
# There is a trap: `v` has the shape `(2,)`, and NumPy lines shapes up at the end. It refuses to stretch `(2,)` to `(2, 3)`. It does stretch it to `(2, 2)`, but then rows and columns are exchanged.

# %% tags=["demo"]
print("no error, but rows and columns are exchanged:", np.broadcast_to(v, (2, 2)).tolist())
print(np.broadcast_to(np.expand_dims(v, 1), (2, 3)))

# %% [markdown]
# Before stretching, put the summed axis back with size 1. `np.expand_dims` does that.
#
# ### Exercise 4: sum and mean
#
# These are methods with PyTorch's arguments: `a.sum()` sums everything, `a.sum(1)` sums over axis 1, and with `keepdim=True` the summed axis stays with size 1. An axis may be negative, as in NumPy. A mean is a sum divided by the number of entries that went into *each* result.

# %% [markdown] tags=["hint"] exercise="reductions"
# There are three cases. Without `dim`, `grad` has the shape `()` and already fits. With `keepdim=True` the axis is still there. Otherwise put it back: `np.expand_dims(grad, dim)`.

# %% [markdown] tags=["hint"] exercise="reductions"
# In the rule of the sum, `np.broadcast_to(grad, a.shape)` does the rest. A rule returns a tuple.

# %% [markdown] tags=["hint"] exercise="reductions"
# `mean_over` needs no rule: it is `sum_over` divided by `a.data.size / result.data.size`, the number of entries per result.

# %% solution="reductions" tags=["engine"]
def sum_over(a, dim=None, keepdim=False):
    """The sum over an axis, or of all entries.

    dim: axis, an integer, may be negative; None for all entries
    keepdim: whether each summed axis stays, with size 1; if not, a sum of all entries has shape ()

    >>> sum_over(MiniTensor([[1.0, 2.0], [3.0, 4.0]]), 1).data
    array([3., 7.])
    """

    def rule(grad):
        ### BEGIN SOLUTION
        if dim is not None and not keepdim:
            grad = np.expand_dims(grad, dim)
        return (np.broadcast_to(grad, a.shape),)
        ### END SOLUTION

    return MiniTensor(a.data.sum(axis=dim, keepdims=keepdim), (a,), "sum", rule)


def mean_over(a, dim=None, keepdim=False):
    """The mean over an axis, or of all entries. Arguments as in sum_over.

    >>> mean_over(MiniTensor([[1.0, 2.0], [3.0, 4.0]]), 0).data
    array([2., 3.])
    """
    ### BEGIN SOLUTION
    total = sum_over(a, dim, keepdim)
    return total / (a.data.size / total.data.size)
    ### END SOLUTION


MiniTensor.sum = sum_over
MiniTensor.mean = mean_over

# %% check="reductions"

# %% [markdown]
# ## 7. Rearranging and multiplying
#
# `reshape` and `transpose` move entries to other places; their rules carry the cotangent back. Indexing, `a[index]`, picks entries, and may pick one **twice**. **Predict** both results.

# %% tags=["demo"] items="gap:repeated_indices"
predict("What is the last entry of the two results, with += and with np.add.at?")
index, cotangent = [0, 2, 2], np.array([1.0, 10.0, 100.0])
grad, added = np.zeros(3), np.zeros(3)
grad[index] += cotangent
np.add.at(added, index, cotangent)
print("grad[index] += cotangent:           ", grad)
print("np.add.at(added, index, cotangent): ", added)

# %% [markdown]
# The first line reads the entries at all three indices, adds, and writes all three back. Entry 2 is written twice, and the 10 is lost. No error, no warning. `np.add.at` adds one after the other. An entry that was picked twice was *used* twice, so its contributions add up, as always.
#
# Now the matrix product, `out[i, j] = sum over k of A[i, k] * B[k, j]`. `A[i, k]` is used in row `i` of the output, once in each column `j`, with the factor `B[k, j]`. So its gradient is the sum over `j` of `v[i, j] * B[k, j]`. **Predict:** which matrix product is that?

# %% tags=["demo"]
predict("Which matrix product is the gradient of A?", "v @ B", "v @ B.T", "B.T @ v", "A.T @ v")
A, B = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
v = np.array([[1.0, 10.0], [2.0, 20.0]])
print("moved inputs:\n", (v.ravel() @ jacobian(lambda A: A @ B, A)).reshape(A.shape).round(3))
print("v @ B.T:\n", v @ B.T)

# %% [markdown]
# ### Exercise 5: reshape, transpose, index, matmul
#
# The values are given. Write the four rules. `matmul` takes matrices, or stacks of matrices: in the shape `(..., rows, columns)` only the last two axes are multiplied. `(5, 2, 3) @ (3, 4)` gives `(5, 2, 4)`: the second matrix is used five times, its share has the shape `(5, 3, 4)`, and `sum_to` adds up the five. NumPy's `.T` reverses all axes, which is right for a matrix, but not for a stack. Find the rule for `B` as we found the one for `A`, or from its shape.

# %% [markdown] tags=["hint"] exercise="rearranging"
# The rule of `reshape` is `grad.reshape(a.shape)`. The rule of `transpose` swaps the same two axes again.

# %% [markdown] tags=["hint"] exercise="rearranging"
# The rule of an index: begin with zeros in the shape of `a`, then `np.add.at(zeros, index, grad)`.

# %% [markdown] tags=["hint"] exercise="rearranging"
# For matrices: `grad @ b.data.T` and `a.data.T @ grad`. For stacks, `.T` would reverse all axes; `x.swapaxes(-1, -2)` swaps only the last two.

# %% solution="rearranging" tags=["engine"]
def reshape(a, *shape):
    """The same entries in another shape, as in a.reshape(3, 4); a.reshape() makes the shape ().

    >>> reshape(MiniTensor([1.0, 2.0, 3.0, 4.0]), 2, 2).shape
    (2, 2)
    """

    def rule(grad):
        ### BEGIN SOLUTION
        return (grad.reshape(a.shape),)
        ### END SOLUTION

    return MiniTensor(a.data.reshape(shape), (a,), "reshape", rule)


def transpose(a, dim0, dim1):
    """Two axes swapped.

    >>> transpose(MiniTensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 0, 1).shape
    (3, 2)
    """

    def rule(grad):
        ### BEGIN SOLUTION
        return (grad.swapaxes(dim0, dim1),)
        ### END SOLUTION

    return MiniTensor(a.data.swapaxes(dim0, dim1), (a,), "transpose", rule)


def getitem(a, index):
    """a[index], where index is whatever NumPy allows.

    >>> getitem(MiniTensor([5.0, 6.0, 7.0]), [0, 2, 2]).data
    array([5., 7., 7.])
    """

    def rule(grad):
        ### BEGIN SOLUTION
        total = np.zeros(a.shape)
        np.add.at(total, index, grad)
        return (total,)
        ### END SOLUTION

    return MiniTensor(a.data[index], (a,), "index", rule)


def matmul(a, b):
    """The matrix product of the last two axes; both inputs have two axes or more.

    >>> matmul(MiniTensor(np.ones((5, 2, 3))), MiniTensor(np.ones((3, 4)))).shape
    (5, 2, 4)
    """

    def rule(grad):
        ### BEGIN SOLUTION
        return grad @ b.data.swapaxes(-1, -2), a.data.swapaxes(-1, -2) @ grad
        ### END SOLUTION

    return MiniTensor(a.data @ b.data, (a, b), "@", rule)


MiniTensor.reshape = reshape
MiniTensor.transpose = transpose
MiniTensor.__getitem__ = getitem

# %% check="rearranging"

# %% check="matmul"

# %% [markdown]
# Now your engine answers the opening question, with the same weights.

# %% tags=["demo"]
W = MiniTensor(weights)
start = time.perf_counter()
(MiniTensor(examples) @ W).tanh().sum().backward()
print(f"{W.grad.size:,} gradients in {1000 * (time.perf_counter() - start):.0f} ms")
print(f"largest difference from PyTorch {np.abs(W.grad - weights_torch.grad.numpy()).max():.0e}")

# %% [markdown]
# One matrix product, `examples.T @ grad`, did the work of the 800 GB table. In that table 999 of 1000 entries are zeros, and the rest are the entries of `examples`, each repeated a thousand times. **A rule is the product with such a table, worked out on paper, so that the table is never built.**

# %% [markdown]
# ## 8. What a check can and cannot see
#
# The checks of gradients draw their cotangents at random. The obvious check is simpler: sum the output to one number, call `backward()`, compare with moved inputs. Summing means a cotangent of ones.
#
# Here are two wrong rules. The first, for the transpose, does not transpose the cotangent back. The second, for softmax, which turns a row of numbers into probabilities, returns zeros. (The helper `probabilities` calculates the value.)

# %% tags=["demo"]
def careless_transpose(a):
    return MiniTensor(a.data.T, (a,), "transpose", lambda grad: (grad.reshape(a.shape),))


def lazy_softmax(a):
    return MiniTensor(probabilities(a.data), (a,), "softmax", lambda grad: (np.zeros(a.shape),))

# %% [markdown]
# **Predict** for each of the four lines: does the check notice the mistake?

# %% tags=["demo"] items="gap:random_cotangent"
predict("In which of the four lines does the check notice the mistake?")
random = np.random.default_rng(7)
x = random.normal(size=(2, 3))
for function in (careless_transpose, lazy_softmax):
    for name, draw in (("ones", np.ones), ("random", random.random)):
        cotangent = draw(function(MiniTensor(x)).shape)
        error = error_of_rule(MiniTensor, function, x, cotangent)
        print(f"{function.__name__:19s}{name:7s}{error:.0e}  {'noticed' if error > 1e-6 else 'passed'}")

# %% [markdown]
# With ones, both pass. An array of ones looks the same wherever its entries are moved. And the probabilities of a row always sum to 1, so their sum does not react to anything: with ones, zero *is* the right gradient of softmax. The check asks a question that the wrong rule answers correctly.
#
# A random cotangent gives each output its own weight, and no two are alike. With random numbers, a mistake practically never cancels. So a loss that only sums the outputs is a bad test for a layer. Still, a passed check is no proof: a mistake may be smaller than the tolerance, and one like that of `abs` in lesson 01 shows up only with other *inputs*.

# %% [markdown]
# ## 9. Softmax and cross entropy
#
# A classifier gives each class a number, the *logit*, and softmax turns the logits into probabilities `p`. What is the right rule? Since `p[i]` is `exp(x[i])` divided by the sum of all `exp`, the rule of the quotient gives the slopes below. If logit `j` rises, `p[j]` rises, and all others in the row fall, because their denominator grows:
#
# * `p[i]` reacts to logit `i` with the slope `p[i] * (1 - p[i])`,
# * `p[i]` reacts to another logit `j` with the slope `-p[i] * p[j]`.
#
# Put both into the sum over the outputs, `sum of v[i] * J[i, j]`: logit `j` gets `v[j] * p[j] * (1 - p[j])`, minus `v[i] * p[i] * p[j]` for each other `i`. Its part `-v[j] * p[j]**2` completes the sum over `i`, and the table disappears: `p[j] * (v[j] - s)`, where `s` is the sum of `v[i] * p[i]` over the row. Check it:

# %% tags=["demo"]
x, v = np.array([[0.5, -1.0, 2.0]]), np.array([[1.0, 10.0, 100.0]])
p = probabilities(x)
print("moved inputs:", (v.ravel() @ jacobian(probabilities, x)).round(4))
print("p * (v - s): ", (p * (v - (v * p).sum())).ravel().round(4))

# %% [markdown]
# The loss of a classifier, **cross entropy**, is minus the logarithm of the probability of the right class, averaged over the examples. It seems to need a softmax and then a logarithm. **Predict** what happens when one logit is far above the other.

# %% tags=["demo"]
predict("What does softmax followed by log give for the smaller logit?", "-1000", "-inf", "nan", "0")
for name in ("softmax(1).log()", "log_softmax(1)"):
    logits = leaf([[0.0, 1000.0]])
    result = logits.softmax(1).log() if "log()" in name else logits.log_softmax(1)
    result[0, 0].backward()
    print(f"{name:17s} {result.tolist()}   gradient {logits.grad.tolist()}")

# %% [markdown]
# The small probability, `exp(-1000)`, is rounded to 0. Its logarithm is lost, and with it the gradient. You can compute the logarithm of a softmax safely: with `m` the largest logit of the row, it is `x - m - log(sum(exp(x - m)))`. Subtracting `m` changes nothing in exact arithmetic, no `exp` can overflow, and the sum is at least 1, so its logarithm is safe.
#
# And its rule? Entry `i` of the result is `x[i] - log(sum(exp(x)))`. The first part reacts to logit `j` with the slope 1 if `i` is `j`, and with 0 otherwise; the second part with `p[j]`, whatever `i` is. Summed over the outputs, logit `j` gets `v[j] - p[j] * (sum of v over the row)`.

# %% [markdown]
# ### Exercise 6: softmax, log_softmax, cross_entropy
#
# In `softmax` only the rule is missing. `log_softmax` needs its value, called `output`, and its rule. Build `cross_entropy` from operations that you already have. (To pick one entry from each row, give two lists: `a[[0, 1], [2, 0]]` picks `a[0, 2]` and `a[1, 0]`.) All three must work for logits such as 1000.

# %% [markdown] tags=["hint"] exercise="softmax"
# `a.data.max(axis=dim, keepdims=True)` is `m` for every row at once. All sums in the rules are over `axis=dim` with `keepdims=True`, so that they can be stretched again.

# %% [markdown] tags=["hint"] exercise="softmax"
# In `log_softmax` compute `shifted = a.data - m`, then `output = shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))`. The rule needs `p`, which is `np.exp(output)`.

# %% [markdown] tags=["hint"] exercise="softmax"
# Build `cross_entropy` from what you have: `logits.log_softmax(1)[np.arange(len(labels)), labels]` picks from each row the entry of its label. Then take the mean, with a minus sign.

# %% solution="softmax" tags=["engine"]
def softmax(a, dim):
    """Probabilities along an axis: exp(a), divided by its sum over that axis, without overflow.

    >>> softmax(MiniTensor([[0.0, 0.0], [0.0, 1000.0]]), 1).data
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    raised = np.exp(a.data - a.data.max(axis=dim, keepdims=True))
    output = raised / raised.sum(axis=dim, keepdims=True)

    def rule(grad):
        ### BEGIN SOLUTION
        return (output * (grad - (grad * output).sum(axis=dim, keepdims=True)),)
        ### END SOLUTION

    return MiniTensor(output, (a,), "softmax", rule)


def log_softmax(a, dim):
    """The logarithm of softmax(a, dim), exact for entries of any size.

    >>> log_softmax(MiniTensor([[0.0, 1000.0]]), 1).data
    array([[-1000.,     0.]])
    """
    ### BEGIN SOLUTION
    shifted = a.data - a.data.max(axis=dim, keepdims=True)
    output = shifted - np.log(np.exp(shifted).sum(axis=dim, keepdims=True))
    ### END SOLUTION

    def rule(grad):
        ### BEGIN SOLUTION
        return (grad - np.exp(output) * grad.sum(axis=dim, keepdims=True),)
        ### END SOLUTION

    return MiniTensor(output, (a,), "log_softmax", rule)


def cross_entropy(logits, labels):
    """Minus the log-probability of the right class, averaged over the rows.

    logits: MiniTensor of shape (rows, classes)
    labels: array of integers, of shape (rows,): the right class of each row

    >>> round(cross_entropy(MiniTensor([[0.0, 1000.0], [0.0, 0.0]]), np.array([0, 1])).item(), 4)
    500.3466
    """
    ### BEGIN SOLUTION
    chosen = logits.log_softmax(1)[np.arange(len(labels)), labels]
    return -chosen.mean()
    ### END SOLUTION


MiniTensor.softmax = softmax
MiniTensor.log_softmax = log_softmax
MiniTensor.cross_entropy = cross_entropy

# %% check="softmax"

# %% [markdown]
# What do the logits of a classifier get? Let `onehot` be a row with 1 at the right class and 0 elsewhere. For one row the loss is minus the log-probability of the right class, so `-onehot` arrives at the log-softmax, and its sum over the row is -1. The rule turns it into `-onehot + p`. With the mean over the rows, **the gradient is `(p - onehot) / rows`: what the model believes, minus what is true.** Check it:

# %% tags=["demo"]
logits, labels = MiniTensor([[2.0, 0.5, -1.0], [0.0, 1.0, 3.0]]), np.array([0, 1])
cross_entropy(logits, labels).backward()
believed_minus_true = (probabilities(logits.data) - np.eye(3)[labels]) / 2
print(f"difference of the gradients: {np.abs(logits.grad - believed_minus_true).max():.0e}")

# %% [markdown]
# ## 10. A classifier
#
# The file `digits.npz` holds 800 pictures of 8 times 8 pixels, drawn by a program that shifts, rotates and smears the strokes of the ten digits. 600 are for training, 200 for testing. The model has one layer: 64 pixels in, 10 logits out. The loop is that of lesson 01. The bias of shape `(10,)` is stretched over 600 rows, and `sum_to` brings its gradient back.
#
# **Predict** the first value of the loss. All weights start at zero, so all ten classes look equally likely.

# %% tags=["demo"]
predict("What is the first value of the loss?")
with np.load("data/digits.npz") as file:
    images, labels = file["images"], file["labels"].astype(int)
x, y = images[:600].reshape(600, 64) / 16, labels[:600]


def train(tensor, x, y, loss_of):
    """200 steps of gradient descent: the parameters and the losses."""
    W, b, losses = tensor(np.zeros((64, 10))), tensor(np.zeros(10)), []
    for _ in range(200):
        loss = loss_of(x @ W + b, y)
        W.grad = b.grad = None
        loss.backward()
        for parameter in (W, b):
            parameter.data -= parameter.grad  # a rate of 1
        losses.append(loss.item())
    return W.data, b.data, losses


W, b, ours = train(MiniTensor, x, y, cross_entropy)
print(f"first loss {ours[0]:.4f}, last {ours[-1]:.4f}")
_, _, theirs = train(leaf, torch.tensor(x), torch.tensor(y), torch.nn.functional.cross_entropy)
print(f"largest difference from PyTorch's losses: {np.abs(np.subtract(ours, theirs)).max():.0e}")
show_classifier(images, labels, W, b)

# %% [markdown]
# The first loss is `log(10)`. Below each digit you see the weights of its class: blue pixels count for it, red ones against.

# %% [markdown]
# ## Quiz

# %% test="quiz_04" points=4 tags=["quiz"]
question(
    "tanh_of_a_matrix",
    "`tanh` of an array of shape (64, 512). What does its rule compute for a cotangent of shape (64, 512)?",
    right(
        "64 times 512 products, one per entry.",
        "Each entry of the cotangent is multiplied by the slope of its own entry, because each output reacts to one input only. The Jacobian is a table with 32768 rows that is zero off its diagonal, so the product with it is entrywise.",
    ),
    wrong("A product with a table of 32768 times 32768 slopes.", "That table is what the rule avoids. It would take more than 8 GB.", misconception="jacobian_is_built"),
    wrong("64 matrix products, one per row.", "The entries of a row do not influence each other here. For softmax they would.", misconception="jacobian_is_built"),
    wrong("One number, because the loss is one number.", "The loss is one number, but a rule returns one gradient for each entry of its input.", misconception="gradient_is_a_number"),
)
question(
    "bias",
    "A bias of shape (10,) is added to logits of shape (64, 10), and the cotangent `v` of the sum has shape (64, 10). What is the gradient of the bias?",
    right("`v.sum(axis=0)`", "Each entry of the bias is used in 64 rows, and contributions of all uses add up."),
    wrong("`v.mean(axis=0)`", "Uses add up. If the loss is a mean, the factor 1/64 is in `v` already, and dividing again would count it twice.", misconception="broadcast_averaged"),
    wrong("`v[0]`", "Then 63 of the 64 uses would be forgotten.", misconception="broadcast_first_kept"),
    wrong("`v`", "A gradient has the shape of the thing it belongs to, here (10,).", misconception="broadcast_not_summed"),
)
question(
    "ones",
    "`y` has shape (3,). What does `y.backward(np.ones(3))` find?",
    right("The gradient of `y.sum()`.", "The cotangent says how much each output counts. Ones count each of them once."),
    wrong("The Jacobian of `y`.", "It finds one row times the Jacobian. For the whole table you would need three calls, one per output.", misconception="jacobian_is_built"),
    wrong("The gradient of `y.mean()`.", "For the mean each cotangent is 1/3.", misconception="sum_divided"),
    wrong("The same as `y.backward()`, where ones are the default.", "The default exists only for an output with a single entry. Here `y.backward()` raises an error.", misconception="ones_by_default"),
)
question(
    "weak_check",
    "Somebody checks every operation by summing its output and comparing with moved inputs. Which wrong rule passes?",
    right(
        "The rule of softmax returns zeros.",
        "Each row of probabilities sums to 1 whatever the logits are, so the sum has slope zero. Only unequal cotangents show the mistake.",
    ),
    wrong("The rule of `exp` multiplies by the input.", "The sum of exp(x) has the slopes exp(x), and x is something else.", misconception="input_used_for_output"),
    wrong("The rule of the product gives each input its own value.", "The slope of the sum of a * b with respect to a is b, which is not a.", misconception="operands_swapped"),
    wrong("None: a sum depends on all outputs, so every mistake shows.", "It depends on all of them in the same way. That is the weakness.", misconception="ones_see_everything"),
)
question(
    "picked_twice",
    "`y = a[[1, 1, 0]]`, and `y.backward([1.0, 2.0, 4.0])`. What is `a.grad` for an `a` of three entries?",
    right("[4, 3, 0]", "Entry 1 was picked twice, so it gets 1 + 2. Entry 0 was picked once, entry 2 never."),
    wrong("[4, 2, 0]", "That is what `grad[index] += v` gives: the second write to entry 1 loses the first.", misconception="index_overwritten"),
    wrong("[1, 2, 4]", "The cotangent belongs to the entries of `y`. They have to be carried back to the places that they came from.", misconception="index_not_put_back"),
    wrong("[4, 1.5, 0]", "Contributions are added, not averaged.", misconception="embedding_rows_averaged"),
)
question(
    "square_matrices",
    "A rule for `a @ b` returns `grad @ b.data` for `a`, without the transpose. It is tried on 3 by 3 matrices. What happens?",
    right(
        "It runs. The shape is right and the numbers are wrong.",
        "With square matrices every product fits. For (2, 3) and (3, 4) the shapes would not fit and NumPy would complain, which is why checks use awkward shapes as well as numbers.",
    ),
    wrong("NumPy raises an error, because shapes do not fit.", "(3, 3) times (3, 3) always fits.", misconception="shapes_prove_rules"),
    wrong("Nothing is wrong: for square matrices the transpose does not matter.", "It does unless the matrix is symmetric.", misconception="matmul_not_transposed"),
    wrong("`sum_to` repairs it.", "`sum_to` sums over stretched axes. There are none here.", misconception="sum_to_repairs"),
)
question(
    "lost_factor",
    "In somebody's `cross_entropy` the value is right, but the rule has lost the factor 1/N. What do you see, with N = 64 rows?",
    right(
        "The first loss is right, then the curve leaves PyTorch's.",
        "The loss before the first step does not depend on any rule. After that every step is 64 times too long. A loss that looks right says nothing about its gradient.",
    ),
    wrong("The loss is 64 times too large from the start.", "The value was computed correctly. Only the gradient is wrong.", misconception="value_shows_gradient"),
    wrong("Nothing: the factor cancels in training.", "It acts like a learning rate that is 64 times larger, and that is not nothing.", misconception="cross_entropy_not_averaged"),
    wrong("`backward` raises an error about shapes.", "A factor does not change a shape.", misconception="shapes_prove_rules"),
)

# %% [markdown] question="why_sum_over_broadcasts" points=3
# ### Why sum?
#
# In `examples + bias`, the bias has one number per column, and it is stretched over all rows. **Why** does its gradient sum over the rows, although nothing in `+` looks like a sum? And what would be wrong with the mean? Answer in one paragraph.
#
# ### BEGIN MARK SCHEME
# *A good answer:* Stretching uses each number of the bias once in each row. A move of that number moves all rows, and each contributes its own share to the change of the output; shares add up, as for any value that is used several times. The mean would be too small by the number of rows. If a loss takes a mean, that factor is already in the gradient that arrives.
#
# * 1 point: a broadcast is a use of the same number in several places
# * 1 point: contributions of several uses add up
# * 1 point: a mean would divide by the number of rows; dividing is the business of the loss
#
# Wrong answers, and what they get:
#
# * *Because the shapes must fit*: at most one point. A mean or a single row would fit as well.
# * *Because a sum is the derivative of a mean*: no point.
# ### END MARK SCHEME

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | one node per array | the number of nodes depends on the operations, not on the size of the arrays |
# | Jacobian | the table of all slopes: a row per output, a column per input; never built |
# | rule | a vector-Jacobian product: cotangent of the output in, cotangents of the inputs out |
# | stretch and sum | the rule of a stretch is a sum, the rule of a sum is a stretch |
# | `sum_to` | undoes every stretch, in one place; no rule has to |
# | cotangent | how much each output counts; left out only if the output has one entry |
# | used several times | stretched, picked twice, used in two places: contributions add up |
# | ties and kinks | no slope, only conventions; know which one you have (*Further*) |
# | random cotangents | a sum of outputs cannot see a transpose, nor a softmax rule that returns zeros |
#
# Your engine trains a classifier, and its loss curve matches PyTorch's. It does not behave like PyTorch in everything yet: it keeps `.grad` on every node, has no `requires_grad`, and its graph is made of the tensors themselves. That changes in lesson 05.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without exercise 7, which only earns points. The sections do not depend on each other.

# %% [markdown]
# ## The largest
#
# PyTorch's `max` comes in two forms: `x.max()` over everything and `x.max(dim=0)` along an axis. Both pass the cotangent to the entry that was largest. **Predict** the gradients if two entries are equally large. And which form is right? Check by moving an input, once up and once down.

# %% tags=["demo"] items="gap:ties"
predict(
    "What gradient do the two equal entries get from x.max()?",
    "0.5 and 0.5",
    "1 and 0",
    "1 and 1",
)
maxima = {"x.max()     ": lambda x: x.max(), "x.max(dim=0)": lambda x: x.max(dim=0).values}
for name, largest in maxima.items():
    x_torch = leaf([1.0, 3.0, 3.0])
    largest(x_torch).backward()
    print(name, x_torch.grad.tolist())

x, h = np.array([1.0, 3.0, 3.0]), 1e-6
up, down = np.array([0.0, h, 0.0]), np.array([0.0, -h, 0.0])
print("moving one of the two up:  ", round((np.max(x + up) - np.max(x)) / h, 3))
print("moving one of the two down:", round((np.max(x) - np.max(x + down)) / h, 3))

# %% [markdown]
# At a tie the slope is 1 on one side and 0 on the other, like relu at 0: there is no slope, only a choice, and any shares from 0 to 1 that add up to 1 are defensible. PyTorch chose differently in the two functions.

# %% [markdown]
# ### Exercise 7: the maximum
#
# If several entries are equally large, follow PyTorch: `a.max()` shares the cotangent equally among them; `a.max(1)` gives it to the first in each row, as PyTorch does on the CPU. The value is given. Make an array `chosen` in the shape of `a`: it says what fraction of the cotangent each entry gets.

# %% [markdown] tags=["hint"] exercise="maximum"
# Without `dim`: `a.data == a.data.max()` is True where an entry is largest. Divide it by its sum.

# %% [markdown] tags=["hint"] exercise="maximum"
# With `dim`: zeros, then `np.put_along_axis(chosen, np.expand_dims(a.data.argmax(dim), dim), 1.0, dim)`.

# %% [markdown] tags=["hint"] exercise="maximum"
# The rule is `chosen` times the cotangent. If the axis is gone, put it back first, as in the rule of the sum.

# %% solution="maximum" tags=["engine"]
def max_over(a, dim=None, keepdim=False):
    """The largest entry along an axis, or overall. Arguments as in sum_over; keepdim needs a dim.

    Equal largest entries: without dim they share the cotangent equally; with dim the first gets it.

    >>> max_over(MiniTensor([[1.0, 2.0], [4.0, 3.0]]), 1).data
    array([2., 4.])
    """
    ### BEGIN SOLUTION
    if dim is None:
        chosen = (a.data == a.data.max()) / (a.data == a.data.max()).sum()
    else:
        chosen = np.zeros(a.shape)
        np.put_along_axis(chosen, np.expand_dims(a.data.argmax(dim), dim), 1.0, dim)

    def rule(grad):
        if dim is not None and not keepdim:
            grad = np.expand_dims(grad, dim)
        return (chosen * grad,)

    ### END SOLUTION
    return MiniTensor(a.data.max(axis=dim, keepdims=keepdim), (a,), "max", rule)


MiniTensor.max = max_over

# %% check="maximum"

# %% check="ties"

# %% [markdown]
# ## Which product is it?
#
# Some texts say that `backward` computes Jacobian-vector products, `J @ v`. A table that is not square shows which it is. Here is PyTorch, with two outputs and three inputs:

# %% tags=["demo"]
table, v = np.arange(6.0).reshape(2, 3), np.array([1.0, 10.0])
x_torch = leaf([1.0, 1.0, 1.0])
(torch.tensor(table) @ x_torch).backward(torch.tensor(v))
print("x.grad:", x_torch.grad.tolist())
print("v @ J: ", (v @ table).tolist())

# %% [markdown]
# `J @ v` would not even fit: `v` has one entry per output. (Products `J @ v` exist too. They go forward, in lesson 15.)

# %% [markdown]
# ## Where the zeros are
#
# A rule is the product with a table that is never built. Here are three layers small enough to build their tables. **Predict** where the zeros are.

# %% tags=["demo"]
predict("Which of the three tables has the most zeros?")
small, W_small = generator.normal(size=(3, 4)), generator.normal(size=(4, 2))
tables = {
    "tanh of a (3, 4)": jacobian(np.tanh, small),
    "sum over axis 1 of a (3, 4)": jacobian(lambda x: x.sum(axis=1), small),
    "(3, 4) @ (4, 2), for the second": jacobian(lambda W: small @ W, W_small),
}
show_zeros(tables)

# %% [markdown]
# Gray is zero, blue is positive, red is negative. The closer a number is to zero, the paler its color, down to almost white. The nonzero entries form a pattern: a diagonal, rows of ones, and in the matrix product the three rows of `small`, repeated once per column of weights.

# %% [markdown]
# ## Find the wrong rule
#
# Section 8 compared checks. Now the check is fixed: the cotangent is always an array of ones. You choose the expression. In the engine below one rule has a mistake, and all others are right. The first two lines are examples that do not show it; their two cards stay red. **Change** the third line until it shows the mistake, with as few operations as you can.

# %% tags=["demo"]
from autograder.student import CheckFailed, broken_engine, expose

somebodys = broken_engine("transpose_not_undone")
a, b = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
expressions = {
    "a * b": lambda a, b: a * b,
    "a.transpose(0, 1) + b": lambda a, b: a.transpose(0, 1) + b,
    "yours": lambda a, b: a + b,
}
for name, expression in expressions.items():
    print(name)
    try:
        expose(somebodys, expression, [a, b])
    except CheckFailed:
        pass  # the card has already said it

# %% [markdown]
# <details><summary>One that shows it</summary>
#
# In the second line the cotangent of ones reaches the transpose unchanged, and hides the mistake as above. `a.transpose(0, 1) * b` exposes it, with two operations; one is not enough. The product gives every entry of the transpose its own weight, as a random cotangent would.
#
# </details>

# %% [markdown]
# ## Questions about this part

# %% test="quiz_04_further" points=1 tags=["quiz"]
question(
    "tie",
    "At a tie, `x.max()` of PyTorch gives two entries 0.5 each, and `x.max(dim=0)` gives 1 and 0. Which is wrong?",
    right("Neither. There is no slope at a tie, and both are conventions.", "Moving one of the two up changes the maximum, moving it down does not. Anything from 0 to 1 can be defended."),
    wrong("The first: a maximum has one winner.", "Here there are two, and nothing distinguishes them.", misconception="one_winner"),
    wrong("The second: the central difference gives 0.5.", "The central difference takes the mean of the slopes on both sides. That does not make it the slope.", misconception="central_difference_decides"),
    wrong("Both: the gradient must be zero at a tie.", "If both entries rise together, the maximum rises with them, so the two cannot both get 0.", misconception="zero_at_a_kink"),
)
