# %% [markdown]
# # The other direction
#
# *Core: about 90 minutes; before section 3 is a good place for a break. Further: about 80 minutes, optional. You build dual numbers, products with the Jacobian, and Jacobians from both sides. You need lessons 08 and 10.*
#
# Since lesson 01 one count has decided everything: a loss with a million weights needs one pass backward, or a million passes forward. Here are two functions. One has 100 inputs and a single output, like a loss. The other has a single input and 100 outputs: a curve, and one knob that bends it.
#
# PyTorch computes all 100 derivatives of each function, with passes backward, then forward. **Predict** the four numbers of passes, and which direction is faster for the second function.

# %% tags=["demo"]
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # steadier times; NumPy is not loaded yet

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import numpy as np

# %% tags=["demo"]
import torch
from helpers_15 import backward_passes, bumpy_slope, forward_passes, peak, plot_errors, plot_peaks
from helpers_15 import seconds, small_network, with_dual_numbers

from mini_autograd.widgets import explore, forward_or_reverse

# %% tags=["demo"] items="4 5 F35"
torch.set_num_threads(1)
predict("Which direction is faster for the second function?", "backward", "forward", "both alike")
places = torch.linspace(0, 6, 100, dtype=torch.float64)


def loss(weights):
    """100 inputs, one output."""
    return (weights * places).tanh().sum()


def curve(knob):
    """One input, 100 outputs."""
    return (knob * places).tanh() * torch.exp(-knob)


for function, x in ((loss, torch.ones(100).double() / 3), (curve, torch.tensor(0.7).double())):
    for passes in (backward_passes, forward_passes):
        count, time = len(passes(function, x)), seconds(lambda: passes(function, x), rounds=3)
        print(f"{function.__name__:6s} {passes.__name__:16s} {count:4d} {1000 * time:8.2f} ms")

# %% [markdown] items="4 5 F35"
# Each direction wins once. Training is the first case, so people usually speak of going backward. Some even say that PyTorch *is* reverse mode, but you have just seen its forward mode. In this lesson you will
#
# 1. compute with dual numbers, by hand and in code;
# 2. build forward mode beside your engine: no graph, nothing saved, no second pass;
# 3. fill a Jacobian from either side, and say which side is cheaper.
#
# If something breaks your engine, run the next cell again, and then every cell below it. After running a class again, run the cells below it too.

# %%
start_lesson()

# %% [markdown]
# ## 1. Numbers with a direction
#
# Take `5 + ε`, a 5 that is about to move. `ε` is a symbol, as `x` is in a polynomial, so NumPy can compute with it. **Predict** the coefficients of `(5 + ε)³`. Which of them do you know from calculus?

# %%
from numpy.polynomial import Polynomial

predict("What are the coefficients of (5 + ε)³?")
moving = Polynomial([5.0, 1.0])  # 5 + 1 ε
print("(5 + ε)**3       ", (moving**3).coef)
print("(5 + ε)*(5 + ε)  ", (moving * moving).coef)
print("(3 + 2ε)*(5 + ε) ", (Polynomial([3.0, 2.0]) * moving).coef)

# %% [markdown] items="4"
# The first coefficient is the value, the second the slope: 125 and `3 * 5² = 75`. The others belong to `ε²` and `ε³`. If you set **`ε² = 0`**, only two numbers are left. Such a pair is a *dual number*:
#
# > `value + tangent * ε`
#
# The **tangent** says how fast the value moves when the input moves. No limit is taken and no step is chosen: `ε` never becomes a number. Each operation knows how its result moves when its inputs move:
#
# > the tangent of `f(a, b)` is (slope of `f` with respect to `a`) times (tangent of `a`), plus (slope of `f` with respect to `b`) times (tangent of `b`).
#
# It is the chain rule, with the same local slopes as in your rules for `backward`. But it starts **at the inputs**, while the values are computed.

# %% tags=["engine"]
class Dual:
    """An array and its tangent: how it moves when the inputs move.

    value: array, in double precision
    tangent: array of the same shape; None for a constant, which does not move
    """

    __array_ufunc__ = None  # array * dual is for Dual to compute, not for NumPy
    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: self.value.ndim)

    def __init__(self, value, tangent=None):
        self.value = np.asarray(value, dtype=np.float64)
        self.tangent = None if tangent is None else np.asarray(tangent, dtype=np.float64)

    def __repr__(self):
        return f"Dual({self.value}, tangent={self.tangent})"


def as_dual(x):
    """A Dual stays what it is; a number or an array becomes a constant."""
    return x if isinstance(x, Dual) else Dual(x)

# %% [markdown]
# ### Exercise 1: push forward
#
# Everything but the slopes is the same for all operations, so it goes into one function. Write `push_forward`. It gets the value of a result and, for each input of the operation, a pair: the local slope, and the `Dual` itself. It returns the `Dual` of the result.
#
# A constant has no tangent: leave its pair out. If all inputs are constants, the result is a constant. Shapes are broadcast, as always: `[1, 2, 3] + a` has three entries even if `a` has one, so its tangent must have **three as well**.

# %% [markdown] tags=["hint"] exercise="push_forward"
# Add up `slope * dual.tangent` over the pairs whose tangent is not None. Starting with `total = 0.0` is fine, if you remember whether any pair took part.

# %% [markdown] tags=["hint"] exercise="push_forward"
# `np.broadcast_to(total, np.shape(value))` gives the sum the shape of the value.

# %% solution="push_forward" tags=["engine"]
def push_forward(value, *pairs):
    """The Dual of a result, whose tangent is the sum of slope * tangent over the inputs.

    value: array or number, the result of an operation
    pairs: one (slope, dual) per input; slope is a number, or an array that broadcasts with dual.value
    Returns: Dual; its tangent has the shape of value, and is None if no input has a tangent

    >>> x = Dual(3.0, 1.0)
    >>> push_forward(9.0, (3.0, x), (3.0, x))
    Dual(9.0, tangent=6.0)
    >>> push_forward([4.0, 5.0], (1.0, x), (1.0, Dual([1.0, 2.0])))
    Dual([4. 5.], tangent=[1. 1.])
    >>> push_forward(4.0, (1.0, Dual(4.0)))
    Dual(4.0, tangent=None)
    """
    ### BEGIN SOLUTION
    terms = [slope * dual.tangent for slope, dual in pairs if dual.tangent is not None]
    if not terms:
        return Dual(value)
    return Dual(value, np.broadcast_to(sum(terms), np.shape(value)))
    ### END SOLUTION

# %% check="push_forward"

# %% [markdown]
# Sums, differences and signs have the slopes 1 and -1. They are given, and show how to use `push_forward`.

# %% tags=["engine"]
def dual_add(a, b):
    a, b = as_dual(a), as_dual(b)
    return push_forward(a.value + b.value, (1.0, a), (1.0, b))


def dual_sub(a, b):
    a, b = as_dual(a), as_dual(b)
    return push_forward(a.value - b.value, (1.0, a), (-1.0, b))


Dual.__add__ = Dual.__radd__ = dual_add
Dual.__sub__ = dual_sub
Dual.__rsub__ = lambda a, other: dual_sub(other, a)  # for other - a
Dual.__neg__ = lambda a: push_forward(-a.value, (-1.0, a))

# %% [markdown]
# ### Exercise 2: the slopes
#
# You have written these rules three times already. `dual_exp` and `dual_log` are given. Write the other five. It is best if each calls `push_forward`: the optional exercise 5 replaces it, and rules that do without it fail there.

# %% [markdown] tags=["hint"] exercise="slopes"
# `a * b` moves with `a` by the slope `b.value`, and with `b` by the slope `a.value`: `push_forward(a.value * b.value, (b.value, a), (a.value, b))`.

# %% [markdown] tags=["hint"] exercise="slopes"
# `a / b` has the slopes `1 / b.value` and `-a.value / b.value**2`. For `tanh`, compute the value first: its slope is `1 - value**2`. For `relu` the slope is `a.value > 0`, as a number: `1.0 * (a.value > 0)`.

# %% solution="slopes" tags=["engine"]
def dual_exp(a):
    """The exponential, entry by entry.

    >>> dual_exp(Dual(0.0, 2.0))
    Dual(1.0, tangent=2.0)
    """
    value = np.exp(a.value)
    return push_forward(value, (value, a))


def dual_log(a):
    """The natural logarithm, entry by entry.

    >>> dual_log(Dual([1.0, 1.0], [2.0, 4.0]))
    Dual([0. 0.], tangent=[2. 4.])
    """
    return push_forward(np.log(a.value), (1 / a.value, a))


def dual_mul(a, b):
    """a * b, entry by entry; a and b are Duals, arrays or numbers, stretched where needed.

    >>> dual_mul(Dual(3.0, 1.0), Dual(5.0, 2.0))
    Dual(15.0, tangent=11.0)
    """
    a, b = as_dual(a), as_dual(b)
    ### BEGIN SOLUTION
    return push_forward(a.value * b.value, (b.value, a), (a.value, b))
    ### END SOLUTION


def dual_div(a, b):
    """a / b, entry by entry.

    >>> dual_div(Dual(3.0, 1.0), 2.0)
    Dual(1.5, tangent=0.5)
    """
    a, b = as_dual(a), as_dual(b)
    ### BEGIN SOLUTION
    return push_forward(a.value / b.value, (1 / b.value, a), (-a.value / b.value**2, b))
    ### END SOLUTION


def dual_pow(a, exponent):
    """a ** exponent, entry by entry; the exponent is a plain number.

    >>> dual_pow(Dual(5.0, 1.0), 3)
    Dual(125.0, tangent=75.0)
    """
    ### BEGIN SOLUTION
    return push_forward(a.value**exponent, (exponent * a.value ** (exponent - 1), a))
    ### END SOLUTION


def dual_tanh(a):
    """The hyperbolic tangent, entry by entry.

    >>> dual_tanh(Dual(0.0, 2.0))
    Dual(0.0, tangent=2.0)
    """
    ### BEGIN SOLUTION
    value = np.tanh(a.value)
    return push_forward(value, (1 - value**2, a))
    ### END SOLUTION


def dual_relu(a):
    """Each entry where it is positive, else 0. The slope at 0 is 0.

    >>> dual_relu(Dual([-1.0, 0.0, 2.0], [5.0, 5.0, 5.0]))
    Dual([0. 0. 2.], tangent=[0. 0. 5.])
    """
    ### BEGIN SOLUTION
    return push_forward(np.maximum(a.value, 0.0), (1.0 * (a.value > 0), a))
    ### END SOLUTION


Dual.__mul__ = Dual.__rmul__ = dual_mul
Dual.__truediv__ = dual_div
Dual.__rtruediv__ = lambda a, other: dual_div(other, a)  # for other / a
Dual.__pow__ = dual_pow
Dual.exp = dual_exp
Dual.log = dual_log
Dual.tanh = dual_tanh
Dual.relu = dual_relu

# %% check="slopes"

# %% [markdown]
# Here is the slope of one function, computed by your `Dual` and by central differences for many step sizes, as in lesson 01. The exact slope is computed with more digits. **Predict** where the horizontal line of the `Dual` lies.

# %% tags=["demo"]
def bumpy(x):
    return (x * x).tanh() * x.exp() / (x + 2)


predict(
    "How large is the error of the dual number?",
    "about 1e-8",
    "about 1e-12",
    "about 1e-16 or 0",
)
point = 0.7
right = bumpy_slope(point)
steps = np.logspace(-14, 0, 57)
ends = [[bumpy(Dual(point + sign * h)).value for h in steps] for sign in (1, -1)]
errors = np.abs((np.array(ends[0]) - np.array(ends[1])) / (2 * steps) - right)
of_dual = max(abs(float(bumpy(Dual(point, 1.0)).tangent - right)), 1e-17)
plot_errors(steps, errors.astype(float), of_dual)
print(f"best difference {errors.min():.1e} at h = {steps[errors.argmin()]:.0e}", end="   ")
print(f"dual number {of_dual:.1e}")

# %% [markdown] items="4"
# Differences have an error for every step: from the formula on the right, from rounding on the left. The dual number has no step. Its error is the rounding of a few products, as with `backward`. Forward mode is **not** a numerical derivative.

# %% [markdown] items="4"
# ## 2. A derivative in a direction
#
# With arrays, the inputs can move in many directions. A tangent picks one: how fast does *each entry* of the input move? The tangent of the output says how fast each entry of the output then moves. In terms of the Jacobian `J`, whose rows belong to outputs and columns to inputs, a pass forward computes `J` times the tangent: a **Jacobian-vector product**, `jvp` for short. A pass backward computes the cotangent times `J`, a vector-Jacobian product.

# %% [markdown] items="4"
# ### Exercise 3: a matrix product, and jvp
#
# A sum is linear: its tangent is the same sum of the tangents. `dual_sum` is given. A matrix product is a product: `d(ab) = da b + a db`, in this order. Write `dual_matmul`. Then complete `jvp`, which makes Duals of its inputs, calls the function, and takes the result apart again.
#
# NumPy would stretch a tangent of shape `(1,)` beside an input of shape `(3,)`, and the result would be wrong without an error. So `jvp` insists on equal shapes. That part is given.

# %% tags=["engine"]
DIFFERENT_SIZE = (
    "Trying to set a forward gradient that has a different size than that of the original Tensor, "
    "this is not supported."
)

# %% [markdown] tags=["hint"] exercise="jvp"
# The product rule does not fit into `push_forward`, which multiplies entry by entry. Compute the two terms yourself where there is a tangent: `a.tangent @ b.value` and `a.value @ b.tangent`, then `Dual(value, their sum)`.

# %% [markdown] tags=["hint"] exercise="jvp"
# In `jvp`: `output = as_dual(function(*[Dual(x, t) for x, t in zip(inputs, tangents)]))`. A function that ignores its inputs gives a constant: return `np.zeros(output.shape)` in place of its None.

# %% solution="jvp" tags=["engine"]
def dual_sum(a, dim=None, keepdim=False):
    """The sum over an axis, which may be negative, or of all entries; arguments as for MiniTensor.

    >>> dual_sum(Dual([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 5.0]]), dim=0)
    Dual([4. 6.], tangent=[1. 5.])
    """
    value = a.value.sum(axis=dim, keepdims=keepdim)
    if a.tangent is None:
        return Dual(value)
    return Dual(value, a.tangent.sum(axis=dim, keepdims=keepdim))


def dual_matmul(a, b):
    """a @ b; a and b are Duals or arrays, a with one or two axes, b with two.

    >>> dual_matmul(Dual([1.0, 2.0], [0.0, 1.0]), np.array([[1.0, 0.0], [5.0, 3.0]]))
    Dual([11.  6.], tangent=[5. 3.])
    """
    a, b = as_dual(a), as_dual(b)
    ### BEGIN SOLUTION
    terms = []
    if a.tangent is not None:
        terms.append(a.tangent @ b.value)
    if b.tangent is not None:
        terms.append(a.value @ b.tangent)
    return Dual(a.value @ b.value, sum(terms) if terms else None)
    ### END SOLUTION


def jvp(function, inputs, tangents):
    """The value of a function, and its derivative in the direction of the tangents: one pass.

    function: takes one Dual per input; returns a Dual, or a constant array or number
    inputs, tangents: tuples of arrays or numbers, of the same length
    Returns: two arrays of the same shape, the value and its tangent (zeros for a constant)
    Raises: RuntimeError if a tangent does not have the shape of its input, or if there are more or
        fewer tangents than inputs

    >>> value, tangent = jvp(lambda a, b: a * b, (3.0, [1.0, 2.0]), (1.0, [0.0, 10.0]))
    >>> value, tangent
    (array([3., 6.]), array([ 1., 32.]))
    """
    if len(inputs) != len(tangents):
        raise RuntimeError(f"jvp: {len(inputs)} inputs need as many tangents, not {len(tangents)}")
    for x, tangent in zip(inputs, tangents):
        if np.shape(x) != np.shape(tangent):
            sizes = f" The input has the shape {np.shape(x)}, the tangent {np.shape(tangent)}."
            raise RuntimeError(DIFFERENT_SIZE + sizes)
    ### BEGIN SOLUTION
    output = as_dual(function(*[Dual(x, tangent) for x, tangent in zip(inputs, tangents)]))
    tangent = np.zeros(output.shape) if output.tangent is None else output.tangent
    return output.value, tangent
    ### END SOLUTION


Dual.sum = dual_sum
Dual.__matmul__ = dual_matmul
Dual.__rmatmul__ = lambda a, other: dual_matmul(other, a)  # for other @ a

# %% check="jvp"

# %% [markdown] items="F35"
# PyTorch has the same function in two places. `torch.func.jvp` is called like yours. `torch.autograd.forward_ad` shows the dual numbers themselves: they live inside a *level*, and end with it. A function that uses only operators and common methods runs on all three.

# %% tags=["demo"] items="F35 gap:jvp_vmap"
def layer(x, w):
    return (x @ w).tanh().sum(dim=0) / (1 + (x * x).sum())


draw = np.random.default_rng(2)
arrays, directions = (tuple(draw.normal(size=s) for s in ((5, 3), (3, 4))) for _ in range(2))
mine = jvp(layer, arrays, directions)

inputs_torch, tangents_torch = (tuple(map(torch.tensor, part)) for part in (arrays, directions))
theirs = torch.func.jvp(layer, inputs_torch, tangents_torch)
primal, tangent = with_dual_numbers(layer, inputs_torch, tangents_torch)
print("your tangent          ", mine[1])
print("torch.func.jvp differs by", np.abs(mine[1] - theirs[1].numpy()).max())
print("forward_ad differs by    ", np.abs(mine[1] - tangent.numpy()).max())
print("graphs in PyTorch:", theirs[1].grad_fn, primal.grad_fn)

# %% [markdown] items="F35"
# "PyTorch is reverse mode" is half the truth: it is what `backward` does.

# %% [markdown] items="F35"
# ### Two routes, one number
#
# Forward and backward share no code in your notebook, only the mathematics. For a direction `v` and a cotangent `w`, the numbers `w · (J v)` and `(w J) · v` are equal. The left one takes a pass forward, the right one a pass backward. **Predict** the difference, and write down which mistake in a rule could make both wrong in the same way.

# %% tags=["demo"]
predict(
    "How large is the difference of the two numbers?",
    "0 or about 1e-16",
    "about 1e-8",
    "about 1e-4",
)
weights_of_sum = draw.normal(size=4)
forward_number = (weights_of_sum * mine[1]).sum()

leaves = [MiniTensor(array, requires_grad=True) for array in arrays]
layer(*leaves).backward(weights_of_sum)
backward_number = sum((leaf.grad.data * v).sum() for leaf, v in zip(leaves, directions))
print(f"w . (J v), forward:  {forward_number:.15f}")
print(f"(w J) . v, backward: {backward_number:.15f}")
print(f"difference {abs(forward_number - backward_number):.1e}")

# %% [markdown]
# It is a strong test of all rules that the function uses. Only a slope that is wrong in both modes, in the same way, would pass it: `1 - value` for `tanh`, for instance.

# %% [markdown]
# ### Nothing is kept
#
# A graph is the price of going backward: every value that a rule needs must be kept until the rule runs. Here is the graph of a small network on your engine. **Predict** what the picture would be for a `Dual`.

# %% tags=["demo"]
x = MiniTensor([0.5, -1.0], requires_grad=True)
w = np.array([[1.0, 0.5], [-0.3, 2.0]])
explore((x @ w).tanh().sum())

# %% tags=["demo"]
dual = (Dual([0.5, -1.0], [1.0, 0.0]) @ w).tanh().sum()
print(dual, "keeps:", list(vars(dual)))

# %% [markdown]
# There is nothing to draw: a `Dual` knows its two arrays, and not where they came from. What does that mean for memory, as a program gets longer? **Predict** the three curves.

# %% tags=["demo"]
def deep(x, depth):
    for _ in range(depth):
        x = (x * 1.01).tanh()
    return x


predict(
    "Which curve grows with the number of layers?",
    "backward's",
    "the Dual's",
    "both",
    "neither",
)
entries = np.linspace(-1, 1, 50_000)
depths = (1, 2, 4, 8, 16, 32)


def values_only(depth):
    with no_grad():
        return deep(MiniTensor(entries, requires_grad=True), depth)


ways = {
    "values only": values_only,
    "forward mode": lambda depth: deep(Dual(entries, entries), depth),
    "recorded for backward": lambda depth: deep(MiniTensor(entries, requires_grad=True), depth),
}
peaks = {name: [peak(lambda: way(depth)) for depth in depths] for name, way in ways.items()}
plot_peaks(peaks, depths)

# %% [markdown] items="4"
# Forward mode needs a tangent beside each value that is alive, and room for a slope while an operation runs: the same from two layers on. Recording keeps everything that the rules will need, and that grows with the depth.

# %% [markdown] items="4 5"
# ## 3. Jacobians, from both sides
#
# Sometimes you need the whole Jacobian: for a robot's arm, a sensor, or Newton's method for several equations. A tangent with a single 1 gives a **column**: how all outputs move with that input. A cotangent with a single 1 gives a **row**: how that output moves with all inputs. For 3 inputs and 2 outputs that means 3 passes forward, or 2 backward.

# %% [markdown] items="4 5"
# ### Exercise 4: column by column, row by row
#
# `jacobian_reverse` is given: it calls the function **once**, and goes backward once for each entry of the output, so it keeps the graph. Write `jacobian_forward`, and `jacobian`, which chooses. The input and the output may be arrays of any shape, so the Jacobian has the shape of the output followed by the shape of the input. Both may be numbers, of shape `()`, so give NumPy's `reshape` one tuple, as `jacobian_reverse` does: `reshape()` is an error.
#
# The function gets a `Dual` in one case and a `MiniTensor` in the other; it uses only what both have. It may also return a constant, a plain array or number: then all slopes are 0.

# %% [markdown] tags=["hint"] exercise="jacobians"
# For each position make `direction = np.zeros(x.shape); direction.reshape(-1)[position] = 1.0` and collect `jvp(function, (x,), (direction,))[1]`. `np.stack(columns, axis=-1)` puts them side by side; then `reshape` to one tuple, `(*columns[0].shape, *x.shape)`.

# %% [markdown] tags=["hint"] exercise="jacobians"
# To choose, the number of outputs must be known: `as_dual(function(Dual(x))).value.size` computes values only.

# %% solution="jacobians" tags=["engine"]
def jacobian_reverse(function, x):
    """The Jacobian by reverse mode: one call of the function, and one row per entry of the output.

    function: takes a Dual or a MiniTensor, returns one of the same kind, or a constant
    x: array with at least one entry, which stays as it is
    Returns: array of shape (*shape of the output, *shape of x)

    >>> jacobian_reverse(lambda x: (x * x).sum(), np.array([1.0, 3.0]))
    array([2., 6.])
    """
    leaf = MiniTensor(x, requires_grad=True)
    output = as_tensor(function(leaf))
    rows = []
    for position in range(output.data.size):
        cotangent = np.zeros(output.shape)
        cotangent.reshape(-1)[position] = 1.0
        leaf.grad = None
        if output.requires_grad:
            output.backward(cotangent, retain_graph=True)
        rows.append(np.zeros(x.shape) if leaf.grad is None else leaf.grad.data.copy())
    return np.stack(rows).reshape((*output.shape, *x.shape))


def jacobian_forward(function, x):
    """The same array by forward mode: one pass, and one column, per entry of the input.

    >>> jacobian_forward(lambda x: x * x, np.array([1.0, 3.0]))
    array([[2., 0.],
           [0., 6.]])
    """
    ### BEGIN SOLUTION
    columns = []
    for position in range(x.size):
        direction = np.zeros(x.shape)
        direction.reshape(-1)[position] = 1.0
        columns.append(jvp(function, (x,), (direction,))[1])
    return np.stack(columns, axis=-1).reshape((*columns[0].shape, *x.shape))
    ### END SOLUTION


def jacobian(function, x):
    """The same array by the mode that needs fewer passes; if both need equally many, by reverse mode.

    >>> jacobian(lambda x: x * np.array([2.0, 3.0]), np.array(5.0))
    array([2., 3.])
    """
    ### BEGIN SOLUTION
    outputs = as_dual(function(Dual(x))).value.size
    way = jacobian_forward if x.size < outputs else jacobian_reverse
    return way(function, x)
    ### END SOLUTION

# %% check="jacobians"

# %% [markdown] items="4 5"
# Which mode is faster? Here are five networks whose Jacobians have equally many entries, from 1 input and 256 outputs to 256 inputs and 1 output. **Predict** the faster mode in each line.

# %% tags=["demo"] items="4 5"
predict(
    "Which mode is faster for 16 inputs and 16 outputs?",
    "forward",
    "reverse",
    "they are alike",
)
for inputs, outputs in ((1, 256), (4, 64), (16, 16), (64, 4), (256, 1)):
    function, point = small_network(inputs, outputs)
    forward = 1000 * seconds(lambda: jacobian_forward(function, point), rounds=3)
    reverse = 1000 * seconds(lambda: jacobian_reverse(function, point), rounds=3)
    far = np.abs(jacobian_forward(function, point) - jacobian_reverse(function, point)).max()
    print(f"{inputs:3d} in, {outputs:3d} out, differ by {far:.0e}", end="   ")
    print(f"forward {forward:6.2f} ms (passes: {inputs:3d})", end="   ")
    print(f"reverse {reverse:6.2f} ms (passes: {outputs:3d})")

# %% [markdown] items="4 5"
# Away from the middle the number of passes decides. In the middle the numbers of passes are equal, and the price of a single pass decides. That price depends on the implementation, not on the mode. Try other shapes, measured on the reference engine while you move the sliders:

# %% tags=["demo"] items="4 5"
forward_or_reverse(inputs=64, outputs=1)

# %% [markdown] items="5"
# Before you choose, ask **what is wanted**. Most often it is not the Jacobian. **Predict** how the running times of three computations compare, for 256 inputs and 256 outputs: the whole Jacobian, one `J v`, one `w J`.

# %% tags=["demo"] items="5"
predict("How many times as long as `J v` does the whole Jacobian take?")
function, point = small_network(256, 256)
v, leaf = np.ones(256), MiniTensor(point, requires_grad=True)
for name, action in (
    ("the Jacobian, 256 passes forward", lambda: jacobian_forward(function, point)),
    ("J v, one pass forward", lambda: jvp(function, (point,), (v,))),
    ("w J, one pass backward", lambda: function(leaf).backward(np.ones(256))),
):
    print(f"{name:33s} {1000 * seconds(action, rounds=3):8.3f} ms")

# %% [markdown] items="5"
# | what is wanted | mode | passes |
# | --- | --- | --- |
# | the gradient of a loss, any number of weights | reverse | 1 |
# | how everything reacts to one setting | forward | 1 |
# | `J v`, the change in one direction | forward | 1 |
# | `w J`, a weighted sum of the outputs' gradients | reverse | 1 |
# | the whole Jacobian, `n` inputs and `m` outputs | the smaller number | `n` or `m` |

# %% [markdown]
# ## Quiz

# %% test="quiz_15" points=4 tags=["quiz"] items="4 5 F35 gap:jvp_vmap"
question(
    "by_hand",
    "`x` is the dual number `2 + 3ε`. What is `x * x`?",
    right("`4 + 12ε`", "`2*2`, and `3*2 + 2*3` from the product rule; the `9ε²` counts as 0."),
    wrong("`4 + 9ε`", "That multiplies the two tangents. Their product belongs to `ε²`.", misconception="tangents_multiplied"),
    wrong("`4 + 6ε`", "Only one of the two factors was allowed to move.", misconception="one_factor_constant"),
    wrong("`4 + 4ε`", "4 is the slope of `x²` at 2. The tangent is the slope times the tangent of `x`, and that is 3.", misconception="tangent_ignored"),
)
question(
    "sensitivity",
    "A simulation has 2 settings and 10,000 outputs. All derivatives are wanted. Which mode?",
    right("Forward: 2 passes", "One per input, and nothing is stored on the way."),
    wrong("Reverse: 2 passes", "Reverse needs one pass per *output*.", misconception="modes_swapped"),
    wrong("Reverse, because it is always the faster one", "It is the faster one for a single output. Here it would take 10,000 passes.", misconception="reverse_always_wins"),
    wrong("Neither: numerical differences, because forward mode is the same", "Differences need a step and lose digits. Dual numbers do neither.", misconception="forward_is_numerical"),
)
question(
    "training",
    "Why is a network with a million weights not trained with forward mode?",
    right("The gradient of one loss takes a million passes, or one stack of a million tangents", "Reverse mode gets it in one pass backward."),
    wrong("Forward mode is less exact", "Both are exact to rounding; you measured it.", misconception="forward_is_numerical"),
    wrong("PyTorch has no forward mode", "`torch.func.jvp` and `torch.autograd.forward_ad`.", misconception="pytorch_is_reverse_only"),
    wrong("Forward mode needs more memory for the graph", "It has no graph.", misconception="forward_keeps_a_graph"),
)
question(
    "memory",
    "A program of 10,000 operations, one after the other. What does one forward-mode pass keep until its end?",
    right("Nothing but what is alive anyway: a value, and its tangent beside it", "The curve you measured was flat."),
    wrong("10,000 tangents, as reverse mode keeps 10,000 values", "A tangent is used at once and then forgotten.", misconception="forward_keeps_a_graph"),
    wrong("The graph, but without saved values", "There are no nodes at all.", misconception="forward_keeps_a_graph"),
    wrong("The whole Jacobian of each operation", "Only its product with the tangent is computed.", misconception="jacobians_are_built"),
)
question(
    "one_direction",
    "256 inputs, 256 outputs. You need `J v` for one `v`. How many passes?",
    right("1, forward", "That is exactly what one pass computes."),
    wrong("256, forward or reverse", "That is the number for the whole `J`, which you do not need.", misconception="jacobians_are_built"),
    wrong("1, backward", "A pass backward gives `w J`, a sum over rows.", misconception="modes_swapped"),
    wrong("2: one forward, one backward", "The tangent travels with the values. There is no second pass.", misconception="forward_keeps_a_graph"),
)
question(
    "duality",
    "For random `v` and `w`, `w · (J v)` from forward mode and `(w J) · v` from reverse mode differ by 0.3. What follows?",
    right("At least one of the two modes has a wrong rule for this function", "They are the same number, computed in two modes."),
    wrong("Nothing: the modes approximate differently", "Neither approximates.", misconception="forward_is_numerical"),
    wrong("Reverse mode is right, as it is the usual one", "Only a third route could say which.", misconception="reverse_always_wins"),
    wrong("`J` is not square", "The identity holds for any shape.", misconception="jacobians_are_square"),
)

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | dual number | `value + tangent * ε` with `ε² = 0`: exact, no step |
# | forward mode | the tangent of a result is the sum of slope times tangent over its inputs, computed with the values |
# | what it keeps | nothing; memory does not grow with the length of the program |
# | `jvp` | one pass: `J v`. `backward`, one pass: `w J` |
# | Jacobian | forward a column per pass, reverse a row per pass: take the smaller number, if you need it at all |
# | `w · (J v) = (w J) · v` | the best test of two modes |
# | stack of tangents, `vmap` | one more axis and a rule per operation: fewer calls, the same arithmetic |
# | perturbation confusion | two derivatives, one `ε`; tags, or levels, keep them apart |
#
# Training has one loss and many weights, so it goes backward. That is what the last lesson does, with everything you have built: a small Transformer, trained on your engine.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without its exercises, which only earn points. Run its sections in order.

# %% [markdown] items="5"
# ## Many tangents at once
#
# The passes of `jacobian_forward` repeat work. Each of them computes the same values again; only the tangents differ. And every operation is called once per column. Count the operations that PyTorch runs for the 64 columns of a network with 64 inputs. **Predict** the second number.

# %% tags=["demo"] items="gap:jvp_vmap"
from torch.utils._python_dispatch import TorchDispatchMode

predict("How many operations run when all 64 columns go at once?")


class CountOperations(TorchDispatchMode):
    """Counts the operations that PyTorch runs inside the block."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


first, second = (torch.tensor(np.random.default_rng(5).normal(size=s)) for s in ((64, 32), (32, 5)))
x64, basis = torch.ones(64, dtype=torch.float64) / 9, torch.eye(64, dtype=torch.float64)


def network64(x):
    return (x @ first).tanh() @ second


def column64(tangent):
    return torch.func.jvp(network64, (x64,), (tangent,))[1]


def looped():
    return torch.stack([column64(e) for e in basis], dim=-1)


def batched():
    return torch.func.vmap(column64, in_dims=-1, out_dims=-1)(basis)


def counted(action):
    with CountOperations() as counting:
        action()
    return counting.count


for name, action in (("64 passes in a loop", looped), ("vmap of one pass", batched)):
    print(f"{name:20s} {counted(action):5d} operations  {1000 * seconds(action):7.2f} ms")
print("difference", (looped() - batched()).abs().max().item())

# %% [markdown] items="gap:jvp_vmap"
# `torch.func.vmap` takes a function of one tangent and makes one that takes a whole stack of them. It does not loop. Each operation runs **once**, on tensors with one more axis. For that, every operation needs a rule that says what the extra axis means for it. You write three such rules now, and that is all your `Dual` needs.
#
# A stack of `k` tangents lies in a new axis at the **end**: for a value of shape `(2, 3)` the tangents have shape `(2, 3, k)`. What would happen if you did nothing? **Predict.**

# %%
predict(
    "What happens with 3 tangents if you do nothing?",
    "the right result",
    "a wrong result without a message",
    "an error",
)
for count in (1, 3):
    try:
        print(Dual([1.0, 2.0, 3.0], np.ones((3, count))) * np.array([1.0, 10.0, 100.0]))
    except ValueError as error:
        print(f"tangents: {count}, ValueError: {str(error)[:60]} ...")

# %% [markdown] items="gap:jvp_vmap"
# Depending on how your `push_forward` ends, that is an error or nonsense. The reason is the same: slopes of shape `(3,)` and a stack of three tangents, of shape `(3, 3)`, fit together, but each slope is multiplied by the wrong entries. So:
#
# * **entry by entry**: the slope needs a 1 at the end, `(3, 1)` beside `(3, k)`. Shapes are aligned at the end, so everything else falls into place;
# * **sums**: over the axes of the *value* only. All of them if `dim` is None; and `dim=-1` means the last axis of the value;
# * **matrix products**: NumPy's `@` goes over stacks that lie in *front*. `on_stack` below moves the stack there and back.

# %% [markdown] items="gap:jvp_vmap"
# ### Exercise 5: a stack of tangents
#
# Write the three rules again. They must still do what they did for single tangents, and a constant stays a constant. If several Duals in one operation have tangents, they have the same number of them. Then `jacobian_stacked` starts with the identity: the tangents of the input are *all* directions at once, and the tangent of the output **is** the Jacobian, after one call of the function.

# %% tags=["engine"]
def on_stack(product, tangent, axes):
    """product(tangent), for a single tangent or for each one of a stack that lies at the end.

    product: a function of an array with `axes` axes, or of a stack of them that lies in front
    """
    if tangent.ndim == axes:
        return product(tangent)
    return np.moveaxis(product(np.moveaxis(tangent, -1, 0)), 0, -1)

# %% [markdown] tags=["hint"] exercise="stack"
# A Dual carries a stack if `dual.tangent.ndim > dual.value.ndim`. Then use `np.expand_dims(slope, -1)`, and the result has the shape `(*np.shape(value), k)` with `k = dual.tangent.shape[-1]`.

# %% [markdown] tags=["hint"] exercise="stack"
# In `dual_sum`, the axes for both arrays are `tuple(range(a.ndim))` if `dim` is None, else `dim % a.ndim`. In `dual_matmul`, the first term is `on_stack(lambda tangent: tangent @ b.value, a.tangent, a.ndim)`.

# %% [markdown] tags=["hint"] exercise="stack"
# `np.eye(x.size).reshape(*x.shape, x.size)` holds all directions. The tangent of the output has the shape `(*output.shape, x.size)`; reshape it to the tuple `(*output.shape, *x.shape)`.

# %% solution="stack" tags=["engine"]
def push_forward(value, *pairs):
    """As before; and where the inputs carry k tangents, so does the result.

    >>> x = Dual([1.0, 2.0], [[1.0, 0.0, 3.0], [0.0, 1.0, 3.0]])
    >>> (x * x).tangent
    array([[ 2.,  0.,  6.],
           [ 0.,  4., 12.]])
    """
    ### BEGIN SOLUTION
    terms, shape = [], np.shape(value)
    for slope, dual in pairs:
        if dual.tangent is None:
            continue
        stack = dual.tangent.shape[dual.ndim :]  # () or (k,)
        terms.append((np.expand_dims(slope, -1) if stack else slope) * dual.tangent)
        shape = np.shape(value) + stack
    return Dual(value, np.broadcast_to(sum(terms), shape) if terms else None)
    ### END SOLUTION


def dual_sum(a, dim=None, keepdim=False):
    """As before; also for a stack of tangents.

    >>> dual_sum(Dual([1.0, 2.0], [[1.0, 0.0, 3.0], [0.0, 1.0, 3.0]])).tangent
    array([1., 1., 6.])
    """
    ### BEGIN SOLUTION
    axes = tuple(range(a.ndim)) if dim is None else dim % a.ndim
    value = a.value.sum(axis=axes, keepdims=keepdim)
    return Dual(value, None if a.tangent is None else a.tangent.sum(axis=axes, keepdims=keepdim))
    ### END SOLUTION


def dual_matmul(a, b):
    """As before; also for a stack of tangents.

    >>> x = Dual([1.0, 2.0], np.eye(2))
    >>> (x @ np.array([[1.0, 0.0, 4.0], [5.0, 3.0, 0.0]])).tangent
    array([[1., 5.],
           [0., 3.],
           [4., 0.]])
    """
    a, b = as_dual(a), as_dual(b)
    ### BEGIN SOLUTION
    terms = []
    if a.tangent is not None:
        terms.append(on_stack(lambda tangent: tangent @ b.value, a.tangent, a.ndim))
    if b.tangent is not None:
        terms.append(on_stack(lambda tangent: a.value @ tangent, b.tangent, b.ndim))
    return Dual(a.value @ b.value, sum(terms) if terms else None)
    ### END SOLUTION


Dual.sum = dual_sum
Dual.__matmul__ = dual_matmul


def jacobian_stacked(function, x):
    """The same array as jacobian_forward, with a single call of the function.

    >>> jacobian_stacked(lambda x: x * x, np.array([1.0, 3.0]))
    array([[2., 0.],
           [0., 6.]])
    """
    ### BEGIN SOLUTION
    output = as_dual(function(Dual(x, np.eye(x.size).reshape(*x.shape, x.size))))
    if output.tangent is None:
        return np.zeros((*output.shape, *x.shape))
    return output.tangent.reshape((*output.shape, *x.shape))
    ### END SOLUTION

# %% check="stack"

# %% [markdown] items="gap:jvp_vmap"
# Now take a loss with 256 inputs. Compare three methods on your engine with two of PyTorch: `jacfwd` is `vmap` over passes forward, `jacrev` is `vmap` over passes backward. **Predict** the order.

# %% tags=["demo"] items="5 F35 gap:jvp_vmap"
predict("Which method is the fastest?")
function, point = small_network(256, 1)
function_torch, point_torch = small_network(256, 1, torch.tensor)
tables = []
for name, action in (
    ("yours, 256 passes forward", lambda: jacobian_forward(function, point)),
    ("yours, one stack of 256", lambda: jacobian_stacked(function, point)),
    ("yours, one pass backward", lambda: jacobian_reverse(function, point)),
    ("torch.func.jacfwd", lambda: torch.func.jacfwd(function_torch)(point_torch).numpy()),
    ("torch.func.jacrev", lambda: torch.func.jacrev(function_torch)(point_torch).numpy()),
):
    tables.append(action())
    print(f"{name:26s} {1000 * seconds(action):8.3f} ms")
print(f"largest difference {max(np.abs(table - tables[0]).max() for table in tables):.1e}")
stack_peak, pass_peak, single_peak = (
    peak(action)
    for action in (
        lambda: jacobian_stacked(function, point),
        lambda: jacobian_reverse(function, point),
        lambda: jvp(function, (point,), (point,)),
    )
)
print(f"peak of memory: stack {1000 * stack_peak:.0f} kB", end=", ")
print(f"one pass backward {1000 * pass_peak:.0f} kB, one forward {1000 * single_peak:.0f} kB")

# %% [markdown] items="5 gap:jvp_vmap"
# The stack saves what the loop wastes: the repeated values, and the 256 calls of each operation. It does not save the arithmetic. 256 tangents are pushed through the layers where the backward pass carries a single row, and 256 tangents need memory. For a gradient, reverse mode remains the better choice.

# %% [markdown] items="5 gap:jvp_vmap"
# ## A derivative inside a derivative
#
# One trap is left, and many libraries have fallen into it. You can see it with plain numbers, `+` and `*`. Here is the smallest class of dual numbers that can be used inside itself: its value and its tangent may be `Pair`s again.

# %%
class Pair:
    """A dual number, of plain numbers or of other Pairs."""

    def __init__(self, value, tangent):
        self.value, self.tangent = value, tangent

    def __add__(self, other):
        other = other if isinstance(other, Pair) else Pair(other, 0.0)
        return Pair(self.value + other.value, self.tangent + other.tangent)

    def __mul__(self, other):
        other = other if isinstance(other, Pair) else Pair(other, 0.0)
        tangent = self.tangent * other.value + self.value * other.tangent
        return Pair(self.value * other.value, tangent)

    __radd__, __rmul__ = __add__, __mul__


def slope_with_pairs(function, x):
    output = function(Pair(x, 1.0))
    return output.tangent if isinstance(output, Pair) else 0.0


print("slope of x**3 at 5:       ", slope_with_pairs(lambda x: x * x * x, 5.0))
print(
    "slope of its slope at 5:  ",
    slope_with_pairs(lambda x: slope_with_pairs(lambda y: y * y * y, x), 5.0),
)

# %% [markdown]
# Both are right: 75 and 30. Second derivatives seem to work. Now a function that contains a slope and **uses its own input inside**:
#
# > `f(x) = x * (slope of x + y with respect to y, at y = 1)`
#
# **Predict** on paper: what is the inner slope? So what is `f(x)`, and its slope at 1? Then run it.

# %%
predict("What is the slope of f at 1?")
print("f(1):          ", 1.0 * slope_with_pairs(lambda y: 1.0 + y, 1.0))
print(
    "slope of f at 1:", slope_with_pairs(lambda x: x * slope_with_pairs(lambda y: x + y, 1.0), 1.0)
)

# %% [markdown]
# On paper the inner slope is 1 for every `x`, so `f(x) = x` and its slope is 1. The code says 2, without a warning. `x` and `y` both carry a tangent of 1, one for the outer derivative and one for the inner, and in `x + y` they were **added as if they belonged together**. There were two different `ε`, and the code has only one. This is called *perturbation confusion*.
#
# The cure: every derivative gets its own `ε`, marked by a *tag*. For one tag, a number that carries another tag is a constant.

# %% [markdown]
# ### Exercise 6: tags
#
# Of two tags the larger one is newer, so it belongs to the inner derivative, and wraps the other: a `Tagged` with tag 2 may hold numbers with tag 1, never the other way around. `tagged_add` is given. Write the other three.

# %% [markdown] tags=["hint"] exercise="tags"
# `parts_of`: if `tag_of(x) == tag`, the pair is `x.value, x.tangent`. Else all of `x` is constant: `x, 0.0`.

# %% [markdown] tags=["hint"] exercise="tags"
# `derivative`: take `tag = next(tags)` once, call the function with `Tagged(x, 1.0, tag)`, and return the tangent that `parts_of(output, tag)` gives. If the output has another tag, or is a plain number, that is 0.0.

# %%
import itertools

tags = itertools.count(1)  # next(tags) gives 1, 2, 3, ...


class Tagged:
    """value + tangent * ε, where ε belongs to the tag; both may be Tagged with a smaller tag."""

    def __init__(self, value, tangent, tag):
        self.value, self.tangent, self.tag = value, tangent, tag

    def __add__(self, other):
        return tagged_add(self, other)

    def __mul__(self, other):
        return tagged_mul(self, other)

    __radd__, __rmul__ = __add__, __mul__


def tag_of(x):
    """The tag of a Tagged; 0 for a plain number."""
    return x.tag if isinstance(x, Tagged) else 0


def tagged_add(a, b):
    tag = max(tag_of(a), tag_of(b))
    (a, da), (b, db) = parts_of(a, tag), parts_of(b, tag)
    return Tagged(a + b, da + db, tag)

# %% solution="tags"
def parts_of(x, tag):
    """The value and the tangent of x, seen from a tag.

    x: Tagged or number; with another tag, or none, it is a constant
    Returns: tuple of two

    >>> parts_of(Tagged(3.0, 5.0, 7), 7), parts_of(4.0, 7)
    ((3.0, 5.0), (4.0, 0.0))
    """
    ### BEGIN SOLUTION
    return (x.value, x.tangent) if tag_of(x) == tag else (x, 0.0)
    ### END SOLUTION


def tagged_mul(a, b):
    """a * b, with the larger tag of the two.

    >>> product = tagged_mul(Tagged(3.0, 5.0, 7), 2.0)
    >>> product.value, product.tangent, product.tag
    (6.0, 10.0, 7)
    """
    ### BEGIN SOLUTION
    tag = max(tag_of(a), tag_of(b))
    (a, da), (b, db) = parts_of(a, tag), parts_of(b, tag)
    return Tagged(a * b, da * b + a * db, tag)
    ### END SOLUTION


def derivative(function, x):
    """The slope of a function at x, with a tag that no other running call uses.

    function: takes a Tagged, returns a Tagged or a number; made of + and *
    x: number or Tagged
    Returns: number; a Tagged inside an outer derivative

    >>> derivative(lambda x: x * x * x, 5.0)
    75.0
    >>> derivative(lambda x: x * derivative(lambda y: x + y, 1.0), 1.0)
    1.0
    """
    ### BEGIN SOLUTION
    tag = next(tags)
    return parts_of(function(Tagged(x, 1.0, tag)), tag)[1]
    ### END SOLUTION

# %% check="tags"

# %% [markdown] items="gap:jvp_vmap"
# PyTorch has two answers to the same question. **Predict** which of its two interfaces gives 1, and what the other one does.

# %% tags=["demo"] items="F35 gap:jvp_vmap"
import torch.autograd.forward_ad as forward_ad

predict("Which of the two interfaces gives 1?", "the functions (jvp)", "forward_ad, nested", "both")
unit = torch.tensor(1.0, dtype=torch.float64)


def slope_torch(function, x):
    return torch.func.jvp(function, (x,), (torch.ones_like(x),))[1]


nested = slope_torch(lambda x: x * slope_torch(lambda y: x + y, unit), unit)
mine = derivative(lambda x: x * derivative(lambda y: x + y, 1.0), 1.0)
print(
    "torch.func.jvp, nested:", nested.item(), "  difference from yours:", abs(nested.item() - mine)
)
try:
    with forward_ad.dual_level():
        with forward_ad.dual_level():
            pass
except RuntimeError as error:
    print("forward_ad, nested:    ", error)

# %% [markdown] items="gap:jvp_vmap"
# `torch.func` counts levels, which are your tags. `forward_ad` has one level, and refuses a second one: an error instead of a wrong number.
#
# Nesting the two *modes* is very useful. The second derivatives of a loss with `n` weights form an `n` by `n` table. Often its product with one direction is enough: how does the **gradient** change when the weights move along `v`? That takes one pass forward through the program that computes the gradient, and no table is needed. **Predict**, for 400 weights, how much more the table costs: in operations, and in time.

# %% tags=["demo"] items="4 gap:jvp_vmap"
predict("The table needs how many times the operations of one product?")


def bent_loss(w):
    return ((w * w).tanh() * w.roll(1)).sum()


weights = torch.linspace(-1, 1, 400, dtype=torch.float64)
direction_torch = torch.linspace(1, 2, 400, dtype=torch.float64)
ways = {
    "forward over the gradient": lambda: torch.func.jvp(
        torch.func.grad(bent_loss), (weights,), (direction_torch,)
    )[1],
    "the whole table times v": lambda: torch.func.hessian(bent_loss)(weights) @ direction_torch,
    "the gradient alone": lambda: torch.func.grad(bent_loss)(weights),
}
for name, way in ways.items():
    print(f"{name:26s} {counted(way):4d} operations {1000 * seconds(way):8.2f} ms")
first_way, second_way, _ = (way() for way in ways.values())
print(f"difference {(first_way - second_way).abs().max().item():.1e}")

# %% [markdown] items="gap:jvp_vmap"
# The table takes about as many operations as the product: `hessian` pushes all 400 directions at once, with `vmap`. But each operation carries 400 tangents in place of one.

# %% [markdown]
# ## Questions about this part

# %% test="quiz_15_further" points=1 tags=["quiz"]
question(
    "vmap",
    "What does `vmap` save when it pushes 64 tangents at once?",
    right("The repeated values, and 63 of 64 calls of each operation", "The arithmetic on the tangents stays, and so does their memory."),
    wrong("Nothing: it is a loop in a nicer form", "You counted the operations.", misconception="vmap_is_a_loop"),
    wrong("63 of 64 parts of the arithmetic", "Every tangent still has to be multiplied by every slope.", misconception="vmap_is_free"),
    wrong("Memory: one tangent is kept for all", "It keeps 64 of them.", misconception="vmap_is_free"),
)
question(
    "confusion",
    "When does forward mode without tags give a wrong number?",
    right("When an inner derivative uses a variable that an outer one is moving", "Two different `ε` are added as if they were one."),
    wrong("For every second derivative", "The second derivative of `x**3` was right even without tags.", misconception="nesting_always_fails"),
    wrong("When a variable is used twice", "`x * x * x` is no problem for one `ε`.", misconception="reuse_breaks"),
    wrong("Never; it raises an error", "It printed 2 without a warning. An error is what PyTorch's `forward_ad` raises.", misconception="wrong_means_error"),
)
