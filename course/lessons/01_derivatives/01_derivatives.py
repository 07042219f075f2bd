# %% [markdown]
# # Derivatives you can trust
#
# *About 90 minutes; a good break is before section 4. You build a gradient by moving inputs, three gradients by hand, and a measure of how far apart two gradients are. You need NumPy arrays and the slope of a function.*
#
# Run the cells below. Two programs compute the same derivative of the same function at the same place. **Predict** how many of their digits agree.

# %%
import math
import time

import numpy as np

from autograder.student import check, hints, predict, progress, quiz

# %%
progress(short=True)

# %%
def f(x):
    return x**3 / (1 + x**2)


x, h = 0.7, 1e-13
estimate = (f(x + h) - f(x)) / h
print("moving x by a tiny h:", estimate)

# %% tags=["demo"]
import warnings

from mini_autograd.widgets import activations, explore, step_size

import torch
from helpers_01 import leaf, plot_errors, plot_losses, steps_until_revival
from torch import nn
from torch.autograd import gradcheck

torch.set_num_threads(1)  # the networks are too small to share the work

# %% tags=["demo"]
predict("How many digits of the two results agree?", "3", "7", "10", "all 16")
x_torch = leaf(x)  # a PyTorch number that wants a gradient
f(x_torch).backward()
from_pytorch = x_torch.grad.item()
print("PyTorch:             ", from_pytorch)
print("difference:          ", abs(estimate - from_pytorch))

# %% [markdown]
# They disagree after three digits, although the first one is the quotient from the definition of a derivative. **Which of them is wrong?
# And how would you find out if you had only one of them?**
#
# By the end of this lesson you can answer both questions. You will be able to
#
# 1. estimate the gradient of a function by moving its inputs, with a step size that you can justify;
# 2. take a formula apart into small steps and find its gradient by hand with the chain rule;
# 3. tell a gradient that is zero by mistake from one that is zero because it should be;
# 4. count the work of going through a program forward and backward;
# 5. say what a passed gradient check proves, and what it does not.
#
# PyTorch and the plots appear only in demonstrations. Your own code needs NumPy and nothing else.

# %% [markdown]
# ## 1. What the derivative is for
#
# The smallest model there is has one weight `w` and predicts `w * x`. We have seen one example: for `x = 3` the right answer was 12.
# The loss measures how far off the prediction is.
#
# **Predict:** at `w = 2`, is the slope of the loss positive or negative?

# %%
predict("Is the slope positive or negative?", "positive", "zero", "negative")


def loss(w):
    return (w * 3 - 12) ** 2


w, h = 2.0, 1e-6
print("loss: ", loss(w))
print("slope:", (loss(w + h) - loss(w)) / h)

# %% [markdown] items="37 7"
# The **sign** of a slope says which way the loss goes when `w` grows: here down, so `w` should grow. Its **size** says how strongly
# the loss reacts. Training is a loop of four steps: predict, measure the loss, differentiate, take a small step against the slope.

# %%
w, small = 2.0, 1e-6
for step in range(6):
    prediction = w * 3
    loss_value = (prediction - 12) ** 2
    slope = (loss(w + small) - loss(w)) / small
    print(f"{step}:  w {w:.5f}   prediction {prediction:8.5f}", end="   ")
    print(f"loss {loss_value:9.6f}   slope {slope:9.5f}")
    w = w - 0.05 * slope

# %% [markdown] items="1 F34"
# One weight needed one slope. The paper about GPT-3 reports 175 billion weights, so each step of the loop needs 175 billion slopes. Nobody derives
# them on paper: the work would start over with every change to the model.

# %% [markdown] items="6 F33"
# The way out is older than deep learning. In 1964, Robert Wengert described how a program can carry derivatives along; in 1970, Seppo Linnainmaa described the
# backward order that you will build. Theano (2007) and TensorFlow (2015) made it an everyday tool; HIPS autograd, Chainer (both about 2015) and PyTorch (2016) record
# ordinary Python while it runs.

# %% [markdown]
# ## 2. Move the input and look
#
# The smaller `h` is, the closer `(f(x + h) - f(x)) / h` comes to the slope of `f` at `x`. So the textbook says.
#
# **Predict:** which `h` comes closest to the true slope: `1e-3`, `1e-8` or `1e-14`?

# %%
predict("Which h comes closest to the true slope?", "1e-3", "1e-8", "1e-14")


def slope_of_f(x):
    return (x**4 + 3 * x**2) / (1 + x**2) ** 2  # by the quotient rule, on paper


x = 0.7
for exponent in range(1, 16):
    h = 10.0**-exponent
    estimate = (f(x + h) - f(x)) / h
    error = abs(estimate - slope_of_f(x))
    print(f"h = 1e-{exponent:<2d}   estimate {estimate:.12f}   error {error:.1e}")

# %% [markdown]
# The error falls, turns around and climbs again. Two errors pull in opposite directions:
#
# * **The line is not the curve.** `f` bends between `x` and `x + h`. This error shrinks in proportion to `h`.
# * **Numbers are rounded.** `x + h`, `f(x + h)` and `f(x)` are rounded at about the 16th digit. The difference is tiny, the rounding stays, and dividing by `h` blows it up. This
#   error grows like `1 / h`.
#
# The first one can be made much smaller: step to both sides, `(f(x + h) - f(x - h)) / (2 * h)`. This is the **central difference**. The errors on the two
# sides nearly cancel, and what is left shrinks like `h**2`.

# %% [markdown]
# ### Exercise 1: the gradient of any function
#
# A smooth function that turns an array into one number has one slope for every entry. All slopes together, in the shape of the array, are its **gradient**. To find one entry of it, move that one entry of `x` to both sides and
# leave the others where they are.
#
# For `f(x) = (x**2).sum()` at `[1, 2, 3]` the gradient is `[2, 4, 6]`. The step `1e-5` is given; the end of this section measures that it is a good one.

# %% [markdown] tags=["hint"] exercise="numerical_gradient"
# `np.ndindex(x.shape)` goes through the positions of an array of any shape, one tuple after the other. For shape `()` it gives the empty tuple once, and `x[()]` works.

# %% [markdown] tags=["hint"] exercise="numerical_gradient"
# Begin with `x = np.array(x, dtype=np.float64)`. That is a copy, so the caller's array stays as it is, and whole numbers become floats: in an array of integers, a step of `1e-5` is lost.

# %% [markdown] tags=["hint"] exercise="numerical_gradient"
# For each position: keep the old entry; set `old + h` and call `f`; set `old - h` and call `f`; put the old entry back; store the difference divided by `2 * h`.

# %% solution="numerical_gradient"
def numerical_gradient(f, x, h=1e-5):
    """Estimate the gradient of f at x by central differences.

    f: function that takes an array of the shape of x and returns one number
    x: array of any shape, such as (3,) or (2, 3), or a plain number, which counts as an array
        of shape (); floats or whole numbers; it must be unchanged when the function returns
    h: the step
    Returns: float64 array of the shape of x

    >>> numerical_gradient(lambda x: (x**2).sum(), np.array([1.0, 2.0, 3.0])).round(6)
    array([2., 4., 6.])
    """
    ### BEGIN SOLUTION
    x = np.array(x, dtype=np.float64)
    gradient = np.zeros(x.shape)
    for position in np.ndindex(x.shape):
        old = x[position]
        x[position] = old + h
        above = float(f(x))
        x[position] = old - h
        below = float(f(x))
        x[position] = old
        gradient[position] = (above - below) / (2 * h)
    return gradient
    ### END SOLUTION

# %% check="numerical_gradient"

# %% [markdown]
# What does it cost? **Predict** how often your function calls `f` for an array of 1000 entries, then count.

# %% tags=["demo"]
predict("How often is f called for 1000 entries?")


def counted(x):
    counted.calls += 1
    return (x**2).sum()


for entries in (1, 10, 100, 1000):
    counted.calls = 0
    numerical_gradient(counted, np.ones(entries))
    print(f"{entries:5d} entries: f was called {counted.calls} times")

# %% [markdown]
# ### Which step is best?
#
# On logarithmic axes, an error proportional to `h**p` is a straight line of slope `p`. **Predict:** what are the slopes of the two straight lines, right of the turn? And where does the turn move when numbers carry only 7 digits (float32)?

# %% tags=["demo"]
predict("What are the slopes of the two straight lines, one-sided and central?")


def errors(dtype, central):
    steps = 10.0 ** np.linspace(-14, -0.5, 82)
    found = []
    for h in steps.astype(dtype):
        x = dtype(0.7)
        low, width = (x - h, 2 * h) if central else (x, h)
        found.append(abs(float((f(x + h) - f(low)) / width) - slope_of_f(0.7)))
    return steps, np.maximum(found, 1e-18)


plot_errors(errors)

# %% [markdown]
# Right of the turn you see straight lines, left of it a cloud: rounding errors have no pattern. In float32 even the cloud ends: below about `3e-8`, `x + h` is rounded back to `x`, the difference is zero, and the error is
# as large as the slope itself. Measure the slopes on the straight part, and the best `h` of each curve.

# %% tags=["demo"]
for dtype in (np.float64, np.float32):
    for central in (False, True):
        steps, error = errors(dtype, central)
        straight = (steps > 1e-2) & (steps < 1e-1)
        slope = np.polyfit(np.log10(steps[straight]), np.log10(error[straight]), 1)[0]
        best = np.median(steps[np.argsort(error)[:5]])
        name = "central" if central else "one-sided"
        print(f"{dtype.__name__} {name:10s} slope {slope:.2f}", end="   ")
        print(f"best h {best:.0e}   error {np.sort(error)[2]:.0e}")
print(f"PyTorch, at the start of the lesson: error {abs(from_pytorch - slope_of_f(0.7)):.0e}")

# %% [markdown]
# That answers the first question of this lesson. With `h = 1e-13` we were far to the left of the turn: the estimate was wrong, and PyTorch was right (last line). The two errors balance where `h**2` is about `1e-16 / h`, so near `h = 1e-5`: there, central differences in
# float64 are good to about ten digits. In float32 the best `h`, near `3e-3`, gives about five digits.
#
# Try other functions, and other places. Before each move, say where the turn will go.

# %% tags=["demo"]
step_size()

# %% [markdown]
# ## 3. The chain rule, one small step at a time
#
# Moving inputs is slow but simple. The other way is to work the derivative out. A *neuron* multiplies each input by a weight, adds these products and a bias, and may send the result through a curve, its *activation*. Take one with one input and no activation, with the squared error as its loss, and write it as small steps.

# %%
w, x, b, target = 2.0, 3.0, 1.0, 10.0

product = w * x
y = product + b
error = y - target
loss_value = error**2
print("y =", y, "  loss =", loss_value)

# %% [markdown] items="3"
# Now go back from the loss to the inputs. At each step ask one question: **if the input of this step moves a little, how many times as much does its output move?** Multiply these
# answers on the way back. What arrives at a step is its *incoming gradient* (also called *cotangent*): the slope of the loss with respect to the step's output.
#
# The output of the neuron is too small. **Predict** the signs of the two gradients.

# %% items="36"
predict("What are the signs of the gradients of w and b?", "+ +", "+ -", "- +", "- -")
d_loss = 1.0  # the loss moves exactly as much as the loss
d_error = d_loss * 2 * error  # error**2 has slope 2 * error
d_y = d_error * 1  # y - target moves as much as y
d_product, d_b = d_y * 1, d_y * 1  # a sum moves as much as each of its inputs
d_w, d_x = d_product * x, d_product * w  # a product: each input is multiplied by the other one
print("d loss / d w =", d_w)
print("d loss / d b =", d_b)

# %% tags=["demo"] items="8"
w_torch, x_torch, b_torch, target_torch = leaf(2.0), leaf(3.0), leaf(1.0), leaf(10.0)
product_torch = w_torch * x_torch
y_torch = product_torch + b_torch
error_torch = y_torch - target_torch
loss_torch = error_torch**2
loss_torch.backward(retain_graph=True)  # keep the record, for the picture below
for name, theirs, ours in (("w", w_torch, d_w), ("x", x_torch, d_x), ("b", b_torch, d_b)):
    difference = abs(theirs.grad.item() - ours)
    print(f"{name}:  PyTorch {theirs.grad.item():6.1f}   difference {difference}")

# %% [markdown]
# PyTorch kept a record of the small steps while they ran, and walked back along it. Step through this record with the arrow keys, first forward, then backward, and find each line of
# the calculation above.

# %% tags=["demo"]
names = {"w": w_torch, "x": x_torch, "b": b_torch, "target": target_torch}
names |= {"product": product_torch, "y": y_torch, "error": error_torch, "loss": loss_torch}
explore(loss_torch, names=names, predict=True)

# %% [markdown]
# Each step only knows its own small rule. Here are the first five (`grad` is the incoming gradient):
#
# | step | gradient for its inputs |
# | --- | --- |
# | `a + b` | `grad` for `a`, `grad` for `b` |
# | `a - b` | `grad` for `a`, `-grad` for `b` |
# | `a * b` | `grad * b` for `a`, `grad * a` for `b` |
# | `a**2` | `grad * 2 * a` |
# | `tanh(z)` | `grad * (1 - tanh(z)**2)` |
#
# What if a number is used twice? **Predict** the gradient of `(x + y)**2` at 2 and 3, and then of `x * x + x` at 2. Your own function from exercise 1 knows the answers.

# %% tags=["demo"] items="40"
predict("What is the gradient of (x + y)**2 at 2 and 3, and of x * x + x at 2?")
print(numerical_gradient(lambda v: (v[0] + v[1]) ** 2, np.array([2.0, 3.0])).round(6))
print(np.round(numerical_gradient(lambda x: x * x + x, np.array(2.0)), 6))

# %% [markdown]
# In `(x + y)**2` each input is used once, and both get `2 * 5`. In `x * x + x` the number `x` reaches the output by three paths: as the left factor, as the right factor, and as the last term. When `x` moves, all three move, so the three contributions **add up**: 2 + 2 + 1.

# %% [markdown]
# ### Exercise 2: a product, a sum and a square
#
# Find the gradient of `out = (x * y + x)**2` with respect to `x` and to `y`. Proceed as above: name the steps, walk back, add where a number was used twice.

# %% [markdown] tags=["hint"] exercise="product_and_sum"
# Name the steps: `p = x * y`, `s = p + x`, `out = s**2`. Start with the last one: `d_s = 2 * s`.

# %% [markdown] tags=["hint"] exercise="product_and_sum"
# The sum passes `d_s` on to `p` and to `x`. The product passes `d_p * y` on to `x` and `d_p * x` on to `y`.

# %% solution="product_and_sum" items="136 41"
def product_and_sum_gradient(x, y):
    """The gradient of out = (x * y + x)**2.

    x, y: floats
    Returns: (d out / d x, d out / d y), a tuple, list or array of floats

    >>> product_and_sum_gradient(2.0, 3.0)
    (64.0, 32.0)
    """
    ### BEGIN SOLUTION
    s = x * y + x
    d_s = 2 * s
    return d_s * y + d_s, d_s * x
    ### END SOLUTION

# %% check="product_and_sum"

# %% [markdown]
# As algebra: with `s = x * y + x`, the gradients are `2 * s * (y + 1)` and `2 * s * x`. The `+ 1` is the second use of `x`. Compared with PyTorch:

# %% tags=["demo"]
x_torch, y_torch = leaf(2.0), leaf(3.0)
out = (x_torch * y_torch + x_torch) ** 2
out.backward()
print("value", out.item())
for name, theirs, ours in zip("xy", (x_torch, y_torch), product_and_sum_gradient(2.0, 3.0)):
    difference = abs(theirs.grad.item() - ours)
    print(f"{name}:  PyTorch {theirs.grad.item():5.1f}   difference {difference}")

# %% [markdown]
# ### Exercise 3: a neuron
#
# Now a neuron as in a network: `a = tanh(w * x + b)`, with the loss `(a - target)**2`. Return the gradients with respect to all four inputs; the target counts as an input too.

# %% [markdown] tags=["hint"] exercise="tanh_neuron"
# Name the steps: `z = w * x + b`, `a = math.tanh(z)`, `error = a - target`. Compute these three first; you need them on the way back.

# %% [markdown] tags=["hint"] exercise="tanh_neuron"
# `d_error = 2 * error`, then `d_a = d_error`, and the target gets `-d_error`. For tanh the rule uses its output: `d_z = d_a * (1 - a**2)`.

# %% [markdown] tags=["hint"] exercise="tanh_neuron"
# From `d_z` on, everything is as in the neuron without an activation: `w` gets `d_z * x`, `x` gets `d_z * w`, `b` gets `d_z`.

# %% solution="tanh_neuron"
def tanh_neuron_gradient(w, x, b, target):
    """The gradient of loss = (tanh(w * x + b) - target)**2.

    w, x, b, target: floats
    Returns: (d loss / d w, d loss / d x, d loss / d b, d loss / d target), a tuple, list or array

    >>> tanh_neuron_gradient(2.0, 3.0, -6.0, 0.5)  # w * x + b is 0 here, and tanh(0) is 0
    (-3.0, -2.0, -1.0, 1.0)
    """
    ### BEGIN SOLUTION
    a = math.tanh(w * x + b)
    d_error = 2 * (a - target)
    d_z = d_error * (1 - a**2)
    return d_z * x, d_z * w, d_z, -d_error
    ### END SOLUTION

# %% check="tanh_neuron"

# %% [markdown] items="F44"
# ## 4. A gradient of zero
#
# Replace tanh with **ReLU**: `relu(z)` is `z` where `z` is positive, and 0 elsewhere. Its slope is 1 on the right and 0 on the left. At exactly 0 it has a corner and no slope; like PyTorch we say 0 there.
#
# A gradient written by hand can deal with an `if`: find out which branch ran, and use its slope.

# %% [markdown]
# ### Exercise 4: a neuron with ReLU
#
# The same neuron and the same loss, with `relu` in place of `tanh`.

# %% [markdown] tags=["hint"] exercise="relu_chain"
# Only one line of the previous neuron changes: `d_z` is `d_a` where `z > 0`, and `0.0` elsewhere. And `a` is `max(z, 0.0)`.

# %% solution="relu_chain" items="38"
def relu_neuron_gradient(w, x, b, target):
    """The gradient of loss = (relu(w * x + b) - target)**2.

    w, x, b, target: floats; where w * x + b is exactly 0, the slope of relu is 0
    Returns: (d loss / d w, d loss / d x, d loss / d b, d loss / d target), a tuple, list or array

    >>> relu_neuron_gradient(0.5, 4.0, -1.5, 3.0)
    (-20.0, -2.5, -5.0, 5.0)
    """
    ### BEGIN SOLUTION
    z = w * x + b
    d_error = 2 * (max(z, 0.0) - target)
    d_z = d_error if z > 0 else 0.0
    return d_z * x, d_z * w, d_z, -d_error
    ### END SOLUTION

# %% check="relu_chain"

# %% [markdown]
# Take the neuron from the docstring, with `b = -1.5` and with `b = -3`. **Predict** what training does to each.

# %% tags=["demo"]
predict("Which can training still move?", "both", "only b = -1.5", "only b = -3", "neither")


def relu_loss(w, x, b, target):
    return (max(w * x + b, 0.0) - target) ** 2


for b in (-1.5, -3.0):
    print("b =", b, "  w * x + b =", 0.5 * 4.0 + b, "  loss =", relu_loss(0.5, 4.0, b, 3.0))
    print("          gradients", relu_neuron_gradient(0.5, 4.0, b, 3.0))

# %% tags=["demo"]
curves = {}
for start in (-1.5, -3.0):
    w, x, b, target = 0.5, 4.0, start, 3.0
    losses = curves[f"starts with b = {start}"] = []
    for step in range(20):
        losses.append(relu_loss(w, x, b, target))
        d_w, _, d_b, _ = relu_neuron_gradient(w, x, b, target)
        w, b = w - 0.01 * d_w, b - 0.01 * d_b
plot_losses(curves)

# %% [markdown] items="39"
# The second neuron is far from its target and its gradients for `w`, `x` and `b` are exactly zero. No rule is broken: moving `w` a little really does not change the loss. A neuron (or *unit*) that is off for every training example (here there is only one) is called **dead**: no gradient goes through it.
#
# A zero gradient therefore has three readings: a mistake in a rule, a true slope of zero, or a slope too small for the numbers. Moving the inputs exposes the mistake.

# %% tags=["demo"]
def dead_neuron(v):
    return relu_loss(v[0], v[1], v[2], 3.0)


print(numerical_gradient(dead_neuron, np.array([0.5, 4.0, -3.0])))

# %% [markdown] items="F28 F29"
# A dead unit can come back if its inputs come from other units that go on learning. And a smooth curve is no sure remedy: GELU, often recommended, has slope zero at its lowest point. *Further* measures both.

# %% [markdown]
# ## 5. What deriving by hand costs, and what a program does instead
#
# A program can do the algebra for you. The two assignments below are the product rule for `x -> x * (1 - x)`, applied again and again. First on **text**, which gives a formula. **Predict** how long the formula is
# after 8 steps.

# %%
predict("How many characters does the formula have after 8 steps?")
value, slope = "x", "1"
for step in range(1, 9):
    value, slope = f"({value})*(1-({value}))", f"({slope})*(1-({value}))-({value})*({slope})"
    print(f"step {step}: the formula of the slope has {len(slope):6d} characters")

formula = slope

# %% [markdown]
# The same two assignments on **numbers**: value and slope travel through the program side by side.

# %%
x = 0.3
value, slope = x, 1.0
for step in range(8):
    value, slope = value * (1 - value), slope * (1 - value) - value * slope

print("by numbers:", slope)
print("by formula:", eval(formula))
print("difference:", abs(slope - eval(formula)))

# %% [markdown] items="2 F49 4"
# Formulas can be differentiated, but written out they swell, because every step repeats the text of the one before several times. Carrying numbers instead of text is **automatic differentiation**: it needs
# no formula, the cost grows in proportion to the number of steps, and the result is the exact derivative of the program that ran, up to rounding. There is no `h` in it.
#
# ### Forward or backward?
#
# The code that you just ran went **forward**: it started with the slope of one input and asked how everything after it moves. In section 3 you went **backward** (the field says *reverse mode*): you started at the loss and asked
# how it depends on everything before it. Both multiply the same local slopes. They differ in the order, and so in the work.
#
# A layer with many inputs and outputs has a table of local slopes, its *Jacobian*: one row per output, one column per input. Below are three layers with 600 inputs each and a single loss at the end.
#
# **Predict:** how much more work is forward than backward?

# %%
predict("How many times as many multiplications does forward need?")


def chain(matrices):
    """Multiply from left to right; return the product and the number of multiplications."""
    product, count = matrices[0], 0
    for matrix in matrices[1:]:
        count += product.shape[0] * product.shape[1] * matrix.shape[1]
        product = product @ matrix
    return product, count


random = np.random.default_rng(0)
first, second, third = (random.normal(size=(600, 600)) / 600**0.5 for _ in range(3))
last = random.normal(size=(1, 600))  # the loss: one output

start = time.perf_counter()
backward_row, backward_count = chain([last, third, second, first])
middle = time.perf_counter()
# Forward is third @ second @ first, from the inputs on. `chain` groups from the left, so it gets the
# transposes in reverse order; the count stays the same.
forward_row, forward_count = chain([first.T, second.T, third.T, last.T])
end = time.perf_counter()

print(f"backward: {backward_count:12,d} multiplications, {1000 * (middle - start):8.2f} ms")
print(f"forward:  {forward_count:12,d} multiplications, {1000 * (end - middle):8.2f} ms")
print(f"forward needs {forward_count / backward_count:.0f} times as many")
print("largest difference of the results:", np.abs(backward_row - forward_row.T).max())

# %% [markdown] items="35"
# Going backward, a single **row** moves through the layers: one incoming gradient times one Jacobian, layer after layer, and no two Jacobians are ever multiplied with each other. That product has a name, *vector-Jacobian product*. In real layers the Jacobian is not even
# written down; the rules in your table give the product directly.
#
# Counted in passes through the program, for one loss and a million weights:

# %%
weights = 1_000_000
print(f"central differences {2 * weights:9,d}")
print(f"forward             {weights:9,d}, one per weight")
print(f"backward            {1:9,d}, after one pass forward for the loss")

# %% [markdown] items="5 F35"
# That is why training goes backward. With one input and many outputs it is the other way around, and forward mode wins (lesson 15 measures it). PyTorch is mostly known for backward mode, but it has both:

# %% tags=["demo"]
x_torch = torch.tensor(0.7, dtype=torch.float64)
_, forward_slope = torch.func.jvp(f, (x_torch,), (torch.ones_like(x_torch),))
backward_slope = torch.func.grad(f)(x_torch)
print("forward ", forward_slope.item())
print("backward", backward_slope.item())
print("difference", abs(forward_slope.item() - backward_slope.item()))

# %% [markdown]
# ## 6. When can you trust a check?
#
# Back to the second question: how would you find out that a gradient is wrong, if you had only one? Get a second one by **an independent route**. Rules and moved inputs share only the function itself; if they agree closely at a point, a mistake in the gradient there would have to be made twice, in the
# same way. Every check of gradients in this course works like this.

# %% [markdown]
# ### Exercise 5: how far apart?
#
# Write `relative_error(a, b)` for two arrays of the same shape: the largest absolute difference between them, divided by the largest absolute entry that occurs in either. If all entries of both are zero, the answer is `0.0`.

# %% [markdown] tags=["hint"] exercise="relative_error"
# `np.abs(a - b).max()` is the first number; `max(np.abs(a).max(), np.abs(b).max())` is the second. Divide only if the second is not zero.

# %% solution="relative_error"
def relative_error(a, b):
    """The largest absolute difference of a and b, relative to their largest absolute entry.

    a, b: arrays of the same shape, which may be ()
    Returns: a float; 0.0 if all entries of both are zero

    >>> relative_error(np.array([1.0, -4.0]), np.array([1.0, -3.0]))
    0.25
    """
    ### BEGIN SOLUTION
    difference = np.abs(a - b).max()
    size = max(np.abs(a).max(), np.abs(b).max())
    return float(difference / size) if size > 0 else 0.0
    ### END SOLUTION

# %% check="relative_error"

# %% [markdown]
# A gradient for `abs(x)`, written by somebody in a hurry:

# %% tags=["demo"]
def sum_of_abs(x):
    return np.abs(x).sum()


def hasty_gradient(x):
    return np.ones_like(x)


positive_points = np.array([0.5, 1.0, 2.0, 3.5])
moved = numerical_gradient(sum_of_abs, positive_points)
print("relative error:", relative_error(hasty_gradient(positive_points), moved))

# %% [markdown]
# Agreement to ten digits. **Predict** what happens at points of both signs.

# %% tags=["demo"]
predict("Where is the hasty gradient wrong?", "nowhere", "at one point", "at the negative points")
mixed_points = np.array([0.5, -1.0, 2.0, -3.5])
moved = numerical_gradient(sum_of_abs, mixed_points)
print("relative error:", relative_error(hasty_gradient(mixed_points), moved))
print("hasty:", hasty_gradient(mixed_points), "  moved:", moved.round(6))

# %% [markdown]
# The rule was wrong all along; we had only asked where it is right. **A passed check is evidence for the points, the inputs and the tolerance that were tested.** It is not a proof. So the checks of this course try random points, of both signs,
# in awkward shapes.
#
# The opposite happens too: a correct gradient that fails. PyTorch has a checker of its own, `torch.autograd.gradcheck`. **Predict:** does it accept the built-in sine of PyTorch?

# %% tags=["demo"] items="104"
predict("Does gradcheck accept PyTorch's own sine?", "yes", "no", "only in float64")


warnings.simplefilter("ignore", UserWarning)


def verdict(function, values, dtype, **options):
    inputs = torch.tensor(values, dtype=dtype, requires_grad=True)
    try:
        return gradcheck(function, (inputs,), **options)
    except RuntimeError as error:
        return f"{type(error).__name__}: {str(error).strip()}"


print("sin, float64:     ", verdict(torch.sin, [0.3, 0.9], torch.float64))
print("sin, float32:     ", verdict(torch.sin, [0.3, 0.9], torch.float32))
print("relu at 0:        ", verdict(torch.relu, [0.0, 0.9], torch.float64))
print("relu at 0, moved: ", numerical_gradient(lambda x: np.maximum(x, 0.0).sum(), np.array([0.0])))

# %% [markdown]
# `gradcheck` refused a correct gradient and a convention. In float32 the *estimate* is wrong: you saw in section 2 how few digits are left with a step of `1e-6`, the default. At the corner of relu the two sides have slopes 0 and 1; moving both ways gives their mean, and
# PyTorch says 0.
#
# A tolerance can be too loose. The next function has a rule of its own, which throws the gradient away. Its true slope is small, about `3e-5`.

# %% tags=["demo"]
class Forgetful(torch.autograd.Function):
    """1e-5 * x**2, with a gradient of zero."""

    @staticmethod
    def forward(ctx, x):
        return 1e-5 * x**2

    @staticmethod
    def backward(ctx, grad):
        return 0 * grad


print("atol=1e-4:", verdict(Forgetful.apply, [1.2, 1.7], torch.float64, atol=1e-4))
print("atol=1e-5:", verdict(Forgetful.apply, [1.2, 1.7], torch.float64))
true_gradient = numerical_gradient(lambda x: (1e-5 * x**2).sum(), np.array([1.2, 1.7]))
print("your relative_error:", relative_error(np.zeros(2), true_gradient))

# %% [markdown]
# An absolute tolerance of `1e-4` is blind to slopes below it. A relative error is not, unless a much larger slope stands beside them.

# %% [markdown] items="9"
# ## 7. Which tool when
#
# | you want | use | because |
# | --- | --- | --- |
# | the gradient of an ordinary program | automatic differentiation, backward | exact, one pass for all inputs |
# | a different rule for one step, for stability or by design | a rule of your own (lesson 08) | the rest stays automatic |
# | only predictions | a mode that records nothing (lesson 07) | no memory for the way back |
# | to know whether a rule is right | central differences in float64 | independent of all rules |

# %% [markdown]
# ## Quiz

# %% test="quiz_01" points=4 tags=["quiz"]
question(
    "tiny_step",
    "At the start of the lesson the estimate with `h = 1e-13` was wrong in the fourth digit. Why?",
    right(
        "`x + h` and both values of `f` are rounded, and dividing by `h` makes that rounding large.",
        "All three are rounded near the 17th decimal. Divided by 1e-13 that is an error above 1e-4, as you saw. Left of the turn of the curve this error dominates.",
    ),
    wrong(
        "The step was too large: `f` bends between `x` and `x + h`.",
        "That error shrinks with `h`. At 1e-13 it is far below anything you can see.",
        misconception="step_too_large",
    ),
    wrong(
        "PyTorch also estimates, with a larger step.",
        "There is no step in automatic differentiation. It multiplies exact local slopes.",
        misconception="autodiff_is_numerical",
    ),
    wrong(
        "`f` has no derivative at 0.7.",
        "It is a quotient of polynomials whose denominator is never 0; it is smooth everywhere.",
        misconception="not_differentiable",
    ),
)
question(
    "halved_step",
    "Far to the right of the turn, you halve `h`. What happens to the error of the central difference?",
    right("It falls to about a quarter.", "The error shrinks like `h**2`: you measured a slope of 2 on the logarithmic axes."),
    wrong("It falls to about a half.", "That is the one-sided difference, whose line has slope 1.", misconception="central_like_one_sided"),
    wrong("It doubles.", "That happens left of the turn, where rounding dominates.", misconception="rounding_everywhere"),
    wrong("It stays the same.", "The two errors balance only at the bottom of the curve.", misconception="step_does_not_matter"),
)
question(
    "used_twice",
    "In `out = (x * y + x)**2` somebody finds `2 * s * y` for `x`, with `s = x * y + x`. What went wrong?",
    right(
        "The second use of `x` is missing: contributions of all uses add up.",
        "Through the product comes `2 * s * y`, through the sum another `2 * s`. Together they are `2 * s * (y + 1)`.",
    ),
    wrong(
        "Nothing; the last use of a number decides its gradient.",
        "Move `x`: both places move, and the output feels both.",
        misconception="assigned_not_accumulated",
    ),
    wrong(
        "The contributions of the two uses must be multiplied.",
        "Slopes are multiplied along one path and added over different paths.",
        misconception="paths_multiplied",
    ),
    wrong("`x` and `y` were swapped: it should be `2 * s * x`.", "For the product, `x` does get the other factor, `y`.", misconception="operands_swapped"),
)
question(
    "tanh_sign",
    "In a neuron `tanh(z)` your gradient is nearly right for small `z`, but has the wrong sign at `z = 2`. Which mistake fits?",
    right(
        "The rule uses `1 - z**2` instead of `1 - tanh(z)**2`.",
        "For small `z` both are nearly 1. At `z = 2` the first is -3; the second is positive, as a slope of tanh must be.",
    ),
    wrong(
        "The incoming gradient was not multiplied in.",
        "Then the size would be wrong for small `z` too.",
        misconception="upstream_ignored",
    ),
    wrong("A minus sign was lost.", "Then the sign would be wrong for small `z` too.", misconception="sign_lost"),
    wrong(
        "Nothing is wrong: tanh bends at 2, so its slope is negative there.",
        "tanh rises everywhere. It gets flatter, which makes its slope small, not negative.",
        misconception="slope_and_curvature",
    ),
)
question(
    "incoming",
    "For `loss = (w * x + b - target)**2` somebody returns `x` for `w` and `1` for `b`, whatever the target is. What is missing?",
    right(
        "The incoming gradient `2 * error`, by which each local slope must be multiplied.",
        "`x` is how strongly the sum reacts to `w`. How strongly the loss reacts to the sum has been left out.",
    ),
    wrong("The factors are swapped: `w` should get `w`.", "In a product each input gets the other one: `x` for `w` is the right local slope.", misconception="operands_swapped"),
    wrong("The exponent was not lowered.", "The square has not been differentiated at all here.", misconception="exponent_not_lowered"),
    wrong("Nothing: a gradient does not depend on the target.", "The further off the prediction, the steeper the square.", misconception="loss_ignored"),
)
question(
    "all_zero",
    "A ReLU neuron is far from its target on this example, and its weight and bias get the gradient 0. What do you know?",
    right(
        "The value before the ReLU was not positive for this example.",
        "Left of the corner the slope is a true 0. Other examples may well be on the other side.",
    ),
    wrong("The rule for ReLU has a bug.", "Move the inputs: the loss does not react. The rule is right.", misconception="zero_gradient_is_a_bug"),
    wrong("The loss is as small as it can be.", "You saw this neuron stay far from its target with a gradient of zero.", misconception="zero_gradient_is_a_minimum"),
    wrong("The neuron is dead forever.", "It is off for one example. Even a unit that is off for all of them can come back if weights before it move.", misconception="dead_forever"),
)
question(
    "passes",
    "One loss, a million weights, all gradients wanted. How many passes through the program?",
    right("One forward to compute the loss and one backward.", "A single incoming gradient travels back and meets every weight on its way."),
    wrong("A million backward passes, one per weight.", "That is the count for going forward. Backward needs one pass per output, and there is one loss.", misconception="one_pass_per_input"),
    wrong("Two million evaluations.", "That is what central differences cost; no rule is needed then.", misconception="autodiff_is_numerical"),
    wrong("It cannot be known before the formula has been written out.", "No formula is ever written. The cost follows the number of steps of the program.", misconception="autodiff_is_symbolic"),
)
question(
    "passed",
    "A gradient agreed with central differences at 20 random positive inputs. What may you conclude?",
    right(
        "It is right at these points, up to the tolerance; elsewhere it is untested.",
        "The hasty rule for `abs` passed on positive numbers, and a loose tolerance let a lost gradient through.",
    ),
    wrong("It is proved correct.", "Remember `abs`: right on all positive numbers, wrong on all negative ones.", misconception="check_is_a_proof"),
    wrong("Nothing, central differences are not exact.", "They are good to about ten digits, and a typical mistake is far larger than that.", misconception="numerical_is_useless"),
    wrong("It is right for positive inputs of every size.", "Twenty points are twenty points. At the corner of a function, or where numbers overflow, things change.", misconception="check_is_a_proof"),
)

# %% [markdown] question="why_backward" points=3
# ### Why backward?
#
# A network has a million weights and one loss. Training goes through it once forward and once backward. **Why** is one backward pass enough for a million slopes, while the other direction would need a million passes? And what does that saving cost? Answer in one paragraph.
#
# ### BEGIN MARK SCHEME
# *A good answer:* The slope of the loss for a weight is a product of local slopes along the way from the weight to the loss. Going backward starts at the one loss, and what has been multiplied so far, the slope of the loss for an intermediate value, is the same for everything before that value, so it is computed once and shared. Going forward starts at one weight, and what has been multiplied so far belongs to that weight alone. The price is memory: the values of the forward pass are kept until the backward pass needs them.
#
# * 1 point: the product along the way can be multiplied from either end, and backward begins at the single loss
# * 1 point: what arrives at a value is shared by all weights before it
# * 1 point: the cost: the values of the forward pass are kept in memory
#
# Wrong answers, and what they get:
#
# * *Backward is cheaper because it skips the zeros*, or *because addition is faster*: nothing for the first two points. It is the number of outputs that decides.
# * *Backward is always better*: at most two points. With one input and many outputs, forward is.
# ### END MARK SCHEME

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | gradient | how strongly the output reacts to each input: sign is direction, size is strength |
# | central difference | `(f(x + h) - f(x - h)) / (2 * h)`; `h` near `1e-5` in float64; in float32 near `3e-3`, for about five digits |
# | chain rule | multiply local slopes along a path, add over different paths |
# | incoming gradient (cotangent) | the slope of the loss with respect to a step's output; every rule multiplies by it |
# | zero gradient | a bug, a true slope of zero, or one too small; moving the inputs exposes a bug |
# | backward | one pass per output, one row at a time: why training goes this way |
# | a passed check | evidence for the points, the inputs and the tolerance that were tested |
#
# At the start you could not say which of two numbers to believe. Now you can: compare independent routes, each in the range where it works.
#
# In the next lesson you build the thing that kept the record of the small steps.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it.

# %% [markdown]
# ## Two sayings, measured
#
# *"A dead unit is dead forever."* In a network, the outputs of one group of neurons (a *layer*) are the inputs of the next. **Predict:** take two layers of 16 units, kill one unit by lowering its bias until it is off for every training example, then train. In which layer does it come back?

# %% tags=["demo"] items="F29"
predict("In which layer do dead units come back?", "none", "the first", "the second", "both")
for layer, name in enumerate(("first", "second")):
    back = [step for step in steps_until_revival(layer) if step is not None]
    print(f"{name:6s} layer: {len(back):2d} of 16 units came back in 100 steps", sorted(back))

# %% [markdown]
# The inputs of the first layer are the examples, which never change, so plain gradient descent cannot wake up a dead unit there. (Momentum, weight decay or new examples can.) In the second layer a unit's inputs come from the layer before, whose weights go on learning through other units, and some units are pushed back into life. "Forever" depends on what lies before it.
#
# *"Leaky ReLU and GELU never have slope zero."* Both are often recommended. Leaky ReLU is `z` for `z > 0` and `0.01 * z` otherwise; GELU is `z` times the probability that a standard normal number is below `z`. **Predict** the slope of GELU at -0.7518 and at -20.

# %% tags=["demo"] items="F28"
predict("What is the slope of GELU at -0.7518 and at -20?")
for name, function in (("leaky ReLU", nn.functional.leaky_relu), ("GELU", nn.functional.gelu)):
    points = torch.tensor([-20.0, -0.7518, 1.0], requires_grad=True)
    function(points).sum().backward()
    slopes = zip(points.tolist(), points.grad.tolist())
    print(f"{name:10s}", *(f"   slope at {x:7.4f}: {slope:8.1e}" for x, slope in slopes))

# %% [markdown]
# It holds for leaky ReLU. GELU is a smooth curve with its lowest point near -0.75, and a smooth curve is flat at its lowest point. Far to the left its slope is too small for float32.
#
# Here are three small networks with the same weights. The colored lines carry gradient. Move `x`, and watch which units of the first network let it through. **Predict** what *Train them* does to the three units that were pushed down, in each network. The answer is the last sentence below the picture.

# %% tags=["demo"]
activations(shift=-8.0)
