# %% [markdown]
# # Rules of your own
#
# *Core: about 110 minutes; before section 3 is a good place for a break. Further: about 55 minutes, optional. You build operations with your own rules, and the check that tests such rules. You need lessons 05 to 07.*
#
# Two people have each written an operation for PyTorch, with their own gradient rule. One operation is the absolute value. The other rounds to whole numbers. Both rules return the gradient unchanged. Both authors run PyTorch's test for such rules, `gradcheck`. (`custom_operation` is a helper: it makes an operation from a function and a rule. Section 1 shows how.)

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import numpy as np

# %% tags=["demo"]
import torch
from helpers_08 import custom_operation, leaf, passes

# %% tags=["demo"]
def unchanged(grad, x):
    """The rule of both: return the gradient unchanged."""
    return grad


their_abs = custom_operation(torch.autograd.Function, torch.abs, unchanged)
their_round = custom_operation(torch.autograd.Function, torch.round, unchanged)

points = leaf([0.3, 0.8, 1.4, 2.2])
print("gradcheck of their_abs:  ", passes(their_abs, points))
print("gradcheck of their_round:", passes(their_round, points))

# %% [markdown]
# One passes, the other fails. Now use both. A weight starts at 0 and should come close to 3: once with the loss `|w - 3|`, once with `(round(w) - 3)**2`. **Predict** where the two weights end up.

# %% tags=["demo"]
predict("Where do the two weights end?")


def trained(loss, steps=200):
    w = leaf(0.0)
    for _ in range(steps):
        w.grad = None
        loss(w).backward()
        with torch.no_grad():
            w -= 0.02 * w.grad
    return w.item()


print(f"with their_abs:   w = {trained(lambda w: their_abs(w - 3)):.2f}")
w = trained(lambda w: (their_round(w) - 3) ** 2)
print(f"with their_round: w = {w:.2f}, which rounds to {round(w)}")

# %% [markdown]
# The rule that passed drives the weight away from its goal. The rule that failed brings it there. **What does a gradient check prove, and what makes a rule right?** In this lesson you will
#
# 1. write rules, and choose what they keep;
# 2. decide what the gradient is where there is no derivative;
# 3. write a rule that stays finite where the formula overflows;
# 4. build `gradcheck`, and say what a pass proves and what it cannot see.
#
# In the optional part, you train with rounded weights, and your engine trains two networks step for step like PyTorch.
#
# If something breaks your engine, run the next cell again, and then every cell below it.

# %%
start_lesson()

# %% [markdown] items="90 91"
# ## 1. Forward and backward
#
# Your operations already have the form of PyTorch's. A `Function` is a class with two static methods, and you call it through `apply`:
#
# * `forward(ctx, ...)` computes the output. What the rule needs goes to `ctx.save_for_backward`, which frees it after use. Attributes of `ctx` work too, but they stay: use them for plain numbers such as a `dim` or a shape.
# * `backward(ctx, grad)` gets the gradient of the output. It returns one gradient per input tensor, in order, and `None` where there is none.
#
# Here are a relu with a mask, and a square. What does the square save? Why does the relu save the *mask* and not the input?

# %% items="93 94"
class MaskedRelu(Function):
    @staticmethod
    def forward(ctx, a):
        mask = a > 0  # where the input passes
        ctx.save_for_backward(mask)  # one byte per entry, where a would need eight
        return np.where(mask, a, 0.0)

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask  # the same entries pass, whatever arrives


class Square(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * 2 * a


x = MiniTensor([3.0, -2.0, 0.5], requires_grad=True)
y = MaskedRelu.apply(Square.apply(x) - 1)
y.backward(np.array([1.0, 10.0, 100.0]))
print(y.data, x.grad.data, y.grad_fn.name())

# %% [markdown] items="98"
# Why write a rule, when the engine differentiates every program? There are four reasons: **stability** (section 3), **speed**, **memory**, and a gradient that **differs on purpose** from the true one (*Further*). Begin with speed.
#
# A layer computes `x @ w + b`. In the first layer `x` is data, and its gradient is not needed. Yet the rule of `MatMul` computes it: a whole matrix product for nothing. So in PyTorch, a rule can check `ctx.needs_input_grad`, a tuple with one True or False per input.
#
# ### The new apply (just run it)
#
# Run the next cell. You don't need to read it: it sets `ctx.needs_input_grad`.

# %% tags=["engine"]
def apply(cls, *inputs, **options):
    """As in lesson 07, but ctx.needs_input_grad says which inputs require grad."""
    inputs = [as_tensor(x) for x in inputs]
    ctx = cls()
    ctx.needs_input_grad = tuple(x.requires_grad for x in inputs)
    output = MiniTensor(cls.forward(ctx, *(x.data for x in inputs), **options))
    if is_grad_enabled() and any(x.requires_grad for x in inputs):
        record(ctx, inputs, output)
    return output


Function.apply = classmethod(apply)

# %% [markdown]
# ### Exercise 1: only what is needed
#
# Write the rule of `Linear`. In place of a gradient that is not needed, it returns `None`; this is checked. Skip the product, too: no check sees whether you compute it, but *What Linear saves* (*Further*) measures the time.

# %% [markdown] tags=["hint"] exercise="linear"
# The gradient of `x` is `grad @ w.T`, that of `w` is `x.T @ grad`, that of `b` is `grad` summed over the rows. `b` was broadcast over the rows, so the engine would sum `grad` itself; you may also return `grad`.

# %% [markdown] tags=["hint"] exercise="linear"
# `for_x = grad @ w.T if ctx.needs_input_grad[0] else None`, and so on. Then the product is computed only if it is needed.

# %% solution="linear" tags=["engine"]
class Linear(Function):
    """x @ w + b for x of shape (rows, inputs), w of shape (inputs, outputs), b of shape (outputs,).

    backward returns a tuple of three: the gradients of x, w and b. In place of a gradient that
    ctx.needs_input_grad says is not needed, it returns None.

    >>> w = MiniTensor([[1.0], [10.0]], requires_grad=True)
    >>> y = Linear.apply([[1.0, 2.0]], w, [5.0])
    >>> y.data, y.grad_fn.needs_input_grad
    (array([[26.]]), (False, True, False))
    """

    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        x, w = ctx.saved_tensors
        needs_x, needs_w, needs_b = ctx.needs_input_grad
        for_x = grad @ w.T if needs_x else None
        for_w = x.T @ grad if needs_w else None
        for_b = grad.sum(axis=0) if needs_b else None
        return for_x, for_w, for_b
        ### END SOLUTION


MiniTensor.linear = lambda self, w, b: Linear.apply(self, w, b)

# %% check="linear"

# %% [markdown]
# In the picture, which gradient of `Linear` is missing?

# %% tags=["demo"]
from mini_autograd.widgets import explore

x = MiniTensor([[1.0, 2.0], [3.0, -1.0]])
w, b = MiniTensor([[0.5], [-0.25]], requires_grad=True), MiniTensor([0.1], requires_grad=True)
explore(x.linear(w, b).tanh().sum())

# %% [markdown] items="92"
# In PyTorch the base class is `torch.autograd.Function`, and its `forward` gets tensors. Two more differences: `save_for_backward` takes only tensors, and `backward` returns one gradient per argument of `forward`. So an argument that is not a tensor gets `None`; section 3 shows one.

# %% tags=["demo"] items="90 94"
class SquareTorch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * 2 * a


x_torch = leaf(3.0)
y_torch = SquareTorch.apply(x_torch)
y_torch.backward()
print("value", y_torch.item(), "  gradient", x_torch.grad.item())

# %% [markdown] items="102 92"
# PyTorch does not check what a rule computes. It checks the *form*: the number of gradients, and their shapes, as far as a broadcast does not explain them: a gradient of shape (2, 3) for an input of shape (3,) is summed to (3,), without a message. **Predict** which of these three wrong rules for a matrix product it notices.

# %% tags=["demo"] items="102 92"
predict("Which of the three wrong rules does PyTorch notice?")
rules = {
    "one missing": lambda grad, a, b: grad @ b.T,
    "transposed": lambda grad, a, b: (grad @ b.T, grad.T @ a),
    "twice too large": lambda grad, a, b: (grad @ b.T, 2 * a.T @ grad),
}
for name, rule in rules.items():
    inputs = [leaf(np.ones(shape)) for shape in ((3, 2), (2, 4))]
    try:
        product = custom_operation(torch.autograd.Function, torch.matmul, rule)
        product(*inputs).sum().backward()
        print(f"{name:16s} no complaint")
    except RuntimeError as error:
        print(f"{name:16s}", str(error).split("CustomBackward ")[-1])

# %% [markdown] items="102"
# A wrong **number** raises no error. That is the reason for the rest of this lesson.

# %% [markdown] items="101"
# ## 2. Where there is no derivative
#
# `|a|` has slope -1 to the left of 0, slope 1 to the right, and no slope at 0. Training can still reach 0, and the rule has to return *something*. Any number between the two slopes is a *subgradient* and does no harm; PyTorch chose 0. The author of a rule decides, and should document the choice.
#
# ### Exercise 2: abs
#
# Write `Abs`. At 0 the gradient is **0**, no matter which finite number arrives.

# %% [markdown] tags=["hint"] exercise="abs"
# `np.sign` is -1, 0 or 1. It is exactly the factor that you need, and you can save it instead of the input.

# %% solution="abs" tags=["engine"]
class Abs(Function):
    """The absolute value of a, entry by entry. At 0 the gradient is 0, as in PyTorch. Keep what
    the rule needs in ctx, not in the class. backward returns an array of the shape of a.

    >>> a = MiniTensor([-2.0, 0.0, 3.0], requires_grad=True)
    >>> y = a.abs()
    >>> y.backward(np.array([1.0, 10.0, 100.0]))
    >>> a.grad.data + 0.0
    array([ -1.,   0., 100.])
    """

    @staticmethod
    def forward(ctx, a):
        ### BEGIN SOLUTION
        ctx.save_for_backward(np.sign(a))
        return np.abs(a)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        (sign,) = ctx.saved_tensors
        return grad * sign
        ### END SOLUTION


MiniTensor.abs = lambda self: Abs.apply(self)

# %% check="abs"

# %% tags=["demo"] items="101"
a, a_torch = MiniTensor([-2.0, 0.0, 3.0], requires_grad=True), leaf([-2.0, 0.0, 3.0])
a.abs().sum().backward()
a_torch.abs().sum().backward()
print("yours  ", (a.grad.data + 0.0).tolist())
print("PyTorch", a_torch.grad.tolist())
for name, function in (("relu", torch.relu), ("clamp(min=0)", lambda x: x.clamp(min=0))):
    zero = leaf(0.0)
    function(zero).backward()
    print(f"{name:13s} is the same function. Slope at 0: {zero.grad.item()}")

# %% [markdown] items="101 97"
# The last two lines show that this is a choice: `relu` and `clamp(min=0)` compute the same values, and PyTorch gives them different slopes at 0.
#
# ## 3. A rule that stays finite
#
# `log(sum(exp(a)))` is a soft maximum. Every classifier with cross entropy computes it. For a row like `[1000, 999]` the answer is about 1000.3. **Predict** what the formula and its gradient give.

# %% items="97"
predict("What does the formula give for [1000, 999]?", "about 1000.3", "inf", "nan", "an error")
a = MiniTensor([[1000.0, 999.0]], requires_grad=True)
with np.errstate(over="ignore", invalid="ignore"):
    naive = a.exp().sum(dim=1).log()
    naive.backward(np.ones(1))
print("value", naive.data, "  gradient", a.grad.data)

# %% tags=["demo"] items="97"
for dtype in (torch.float16, torch.float32, torch.float64):
    largest = torch.finfo(dtype).max
    print(f"{dtype!s:14s} exp overflows above {np.log(float(largest)):8.3f}")

# %% [markdown] items="97 95"
# The true result is an ordinary number, but an intermediate value is too large. Subtract `m`, the largest entry of the row:
#
# > `log(sum(exp(a))) = m + log(sum(exp(a - m)))`.
#
# Now the largest exponent is 0. The gradient is `exp(a - result)`, a row of positive numbers that sum to 1: the softmax. It is finite too.
#
# ### Exercise 3: log-sum-exp
#
# Write `LogSumExp` along one dimension. What do you save: the input, the output, or the softmax?

# %% [markdown] tags=["hint"] exercise="logsumexp"
# With `keepdims=True`: `m = a.max(axis=dim, keepdims=True)`, then `output = m + np.log(np.exp(a - m).sum(axis=dim, keepdims=True))`. It keeps `dim` with size 1, so it fits `a`.

# %% [markdown] tags=["hint"] exercise="logsumexp"
# Save `np.exp(a - output)`, the softmax. The function returns `output.squeeze(axis=dim)`, so the incoming gradient lacks the dimension: `np.expand_dims(grad, ctx.dim)` adds it again.

# %% solution="logsumexp" tags=["engine"]
class LogSumExp(Function):
    """log(sum(exp(a))) along dim, which disappears from the shape; finite for finite a of any size.

    forward: a of any shape, such as (3, 4); dim: any of its axes, such as 0, 1 or -1.
        For dim=1, forward returns shape (3,)
    backward: grad of shape (3,); returns shape (3, 4)

    >>> a = MiniTensor([[1000.0, 1000.0], [0.0, -2000.0]], requires_grad=True)
    >>> y = a.logsumexp(dim=1)
    >>> y.data.round(2)
    array([1000.69,    0.  ])
    >>> y.backward(np.array([10.0, 1.0]))
    >>> a.grad.data
    array([[5., 5.],
           [1., 0.]])
    """

    @staticmethod
    def forward(ctx, a, dim):
        ### BEGIN SOLUTION
        largest = a.max(axis=dim, keepdims=True)
        output = largest + np.log(np.exp(a - largest).sum(axis=dim, keepdims=True))
        ctx.save_for_backward(np.exp(a - output))
        ctx.dim = dim
        return output.squeeze(axis=dim)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        (softmax,) = ctx.saved_tensors
        return np.expand_dims(grad, ctx.dim) * softmax
        ### END SOLUTION


MiniTensor.logsumexp = lambda self, dim: LogSumExp.apply(self, dim=dim)

# %% check="logsumexp"

# %% [markdown] items="95 F42 F52"
# Compare with PyTorch: with the formula, with the trick in plain operations, and with PyTorch's own function. **Predict** which of the three versions are right for `[1000, 999]`.

# %% tags=["demo"] items="95 F42 F52"
predict("How many of the three versions are right for [1000, 999]?", "1", "2", "3")
rows = np.random.default_rng(4).normal(size=(4, 8))
mine, theirs = MiniTensor(rows, requires_grad=True), leaf(rows)
mine.logsumexp(dim=1).sum().backward()
theirs.logsumexp(dim=1).sum().backward()
print(f"difference of the gradients: {np.abs(mine.grad.data - theirs.grad.numpy()).max():.1e}")
print("sum of each row:", mine.grad.data.sum(axis=1).round(12))
print("grad_fn of that sum in PyTorch:", theirs.grad.sum(dim=1).grad_fn)

ways = {
    "log(sum(exp))": lambda a: a.exp().sum(1).log(),
    "shifted by the maximum": lambda a: (
        (a - a.max(1, keepdim=True).values).exp().sum(1).log() + a.max(1).values
    ),
    "torch.logsumexp": lambda a: a.logsumexp(1),
}
for name, way in ways.items():
    a_torch = leaf([[1000.0, 999.0]])
    way(a_torch).backward()
    print(f"{name:23s} gradient {a_torch.grad.numpy().round(4)}")

# %% [markdown] items="F42 F52"
# It is the *formula* that overflows, not autograd: the second version has no special rule, and its gradient is right. Your rule saves work: one node and one saved array, instead of seven and four. And a gradient is plain data: its sum has no `grad_fn`, unless the backward pass itself is recorded (lesson 10).

# %% [markdown] items="104"
# ## 4. The check
#
# In lesson 01 you moved inputs and looked at one number. Here the output may have any shape. So there is a whole table of slopes, the **Jacobian** of lesson 04. `gradcheck` in PyTorch transposes it, and so do we: one row per entry of the *input*, one column per entry of the *output*. There are two ways to fill the table:
#
# * **numerically**, row by row: move one entry of the input in both directions, and see how *all* outputs move. This function is given;
# * **analytically**, column by column: send a cotangent backward that is 1 at one output and 0 elsewhere, and read the gradient of *all* entries of the input.

# %% tags=["engine"]
def numerical_jacobian(function, inputs, number, eps=1e-6):
    """How each entry of the output moves with each entry of inputs[number]: central differences.

    Returns: array of shape (entries of the input, entries of the output)
    """
    x, rows = inputs[number], []
    kept = x.data
    for position in range(kept.size):
        ends = []
        for step in (eps, -eps):
            x.data = kept.copy()  # and restored afterward: x + eps - eps is not always x
            x.data.reshape(-1)[position] += step
            ends.append(function(*inputs).data.reshape(-1).copy())
        rows.append((ends[0] - ends[1]) / (2 * eps))
    x.data = kept
    return np.array(rows)

# %% [markdown]
# ### Exercise 4: the analytical Jacobian
#
# Write `analytical_jacobian`. It must leave `.grad` of all inputs unchanged.

# %% [markdown] tags=["hint"] exercise="jacobians"
# Call the function once, with new tensors `MiniTensor(x.data, requires_grad=x.requires_grad)` instead of the inputs: then `.grad` of the inputs is safe. For each column, set `x.grad = None`, run `backward` with the cotangent and `retain_graph=True`, and read `x.grad`.

# %% [markdown] tags=["hint"] exercise="jacobians"
# A cotangent with a single 1: `one = np.zeros(output.shape); one.reshape(-1)[column] = 1.0`. If `x.grad` is None after `backward`, no gradient arrived: that column is zero.

# %% [markdown] tags=["hint"] exercise="jacobians"
# `array.reshape(-1)` turns an array of any shape into a row. You collect columns, so the table is `np.array(columns).T`.

# %% solution="jacobians" tags=["engine"]
def analytical_jacobian(function, inputs, number):
    """The same table, found by backward: one backward pass per entry of the output.

    function: computes a MiniTensor of any shape from the MiniTensors that it gets as arguments
    inputs: tuple of MiniTensors; their .grad is the same afterward
    Returns: array of shape (entries of inputs[number], entries of the output); zeros where the
        output depends only on other inputs that require grad

    >>> x = MiniTensor([1.0, 3.0], requires_grad=True)
    >>> analytical_jacobian(lambda x: x * x, (x,), 0)
    array([[2., 0.],
           [0., 6.]])
    """
    ### BEGIN SOLUTION
    twins = [MiniTensor(x.data, requires_grad=x.requires_grad) for x in inputs]
    x, columns = twins[number], []
    output = function(*twins)
    for position in range(output.data.size):
        cotangent = np.zeros(output.shape)
        cotangent.reshape(-1)[position] = 1.0
        x.grad = None
        output.backward(cotangent, retain_graph=True)
        columns.append(np.zeros(x.data.size) if x.grad is None else x.grad.data.reshape(-1).copy())
    return np.array(columns).T
    ### END SOLUTION

# %% check="jacobians"

# %% [markdown] items="104"
# ### Exercise 5: gradcheck
#
# Now write the test itself, with PyTorch's name and defaults. Two numbers agree if `|analytical - numerical| <= atol + rtol * |numerical|`. A NaN agrees with nothing. The docstring says the rest.

# %% [markdown] tags=["hint"] exercise="gradcheck"
# `np.allclose(analytical, numerical, rtol=rtol, atol=atol)` uses this formula, and NaN fails. The second argument is the one on the right side of the formula.

# %% [markdown] tags=["hint"] exercise="gradcheck"
# Inputs that do not require grad are arguments of the function, but their tables are not checked: skip them in the loop over `enumerate(inputs)`.

# %% tags=["engine"]
class GradcheckError(RuntimeError):
    """A gradient disagrees with the differences."""

# %% solution="gradcheck" tags=["engine"]
def gradcheck(function, inputs, eps=1e-6, atol=1e-5, rtol=1e-3):
    """Whether backward agrees with central differences of step eps, for every input that requires
    grad.

    function: computes a MiniTensor of any shape from the MiniTensors that it gets as arguments
    inputs: tuple of MiniTensors, some of which require grad
    Returns: True
    Raises: ValueError if no input requires grad; its text begins with
            "gradcheck expects at least one input tensor to require gradient";
        GradcheckError for the first input whose tables disagree; its text begins with
            "Jacobian mismatch for output 0 with respect to input 1" (the position of the input
            in inputs) and contains both tables

    >>> x, w = MiniTensor([1.0, 2.0]), MiniTensor([3.0, -1.0], requires_grad=True)
    >>> gradcheck(lambda x, w: (x * w).tanh(), (x, w))
    True
    """
    ### BEGIN SOLUTION
    checked = [number for number, x in enumerate(inputs) if x.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, none does")
    for number in checked:
        numerical = numerical_jacobian(function, inputs, number, eps)
        analytical = analytical_jacobian(function, inputs, number)
        if not np.allclose(analytical, numerical, rtol=rtol, atol=atol):
            tables = f"numerical:{numerical}\nanalytical:{analytical}"
            place = f"for output 0 with respect to input {number}"
            raise GradcheckError(f"Jacobian mismatch {place},\n{tables}")
    return True
    ### END SOLUTION

# %% check="gradcheck"

# %% [markdown] items="104"
# Use it on the three rules of this lesson, and on a mix of earlier operations.

# %% items="104"
generator = np.random.default_rng(5)


def random_leaf(*shape):
    return MiniTensor(generator.normal(size=shape), requires_grad=True)


x, w, b = random_leaf(3, 2), random_leaf(2, 4), random_leaf(4)
print("Linear:   ", gradcheck(lambda x, w, b: x.linear(w, b), (x, w, b)))
print("Abs:      ", gradcheck(lambda a: a.abs(), (x,)))
print("LogSumExp:", gradcheck(lambda a: a.logsumexp(dim=1), (random_leaf(4, 8),)))
print("together: ", gradcheck(lambda x, w: (x @ w).relu().log_softmax(1) * w.max(), (x, w)))

# %% [markdown] items="104 F21"
# ## 5. What a pass proves
#
# The check compares two tables: at the points that you gave it, with the tolerance that you allowed, for the inputs that you marked, and with cotangents that it chooses. A mistake can hide behind each of these four. Here are three rules that pass and are wrong. They are made by `custom_operation` again, but for your engine, and checked by your `gradcheck`.

# %% tags=["demo"] items="F21 102"
def verdict(function, array, **options):
    try:
        return str(gradcheck(function, (MiniTensor(array, requires_grad=True),), **options))
    except GradcheckError:
        return "GradcheckError"


one_branch = custom_operation(Function, np.abs, lambda grad, a: grad)
print("abs with slope 1 everywhere, at positive points:  ", verdict(one_branch, [0.3, 0.8, 1.4]))
print("                             at points of all signs:", verdict(one_branch, [0.3, -0.8, 1.4]))

forgotten = custom_operation(Function, lambda a: 1e-5 * a**2, lambda grad, a: 0 * grad)
said = verdict(forgotten, [1.2, 1.5], atol=1e-4)
print("gradient thrown away, true size 3e-5, atol=1e-4:  ", said)
print("                                      atol=1e-5:  ", verdict(forgotten, [1.2, 1.5]))

unsigned = custom_operation(Function, np.sin, lambda grad, a: np.abs(grad) * np.cos(a))
print("sin whose rule takes |grad| instead of grad:      ", verdict(unsigned, [0.3, -0.8, 1.4]))

# %% [markdown] items="F21"
# The last one is special. A rule has to be **linear** in the incoming gradient: twice as much in, twice as much out; minus in, minus out. This one is not. If the loss *falls* as the output grows, the gradient has the wrong sign. The check cannot see it, because its cotangents contain only 0 and 1. That is why the checks in this course use random cotangents of both signs. You can do the same with any rule: put a random factor after the operation.

# %% tags=["demo"]
factor = MiniTensor([1.3, -0.7, -2.1])
print("times a factor of both signs:", verdict(lambda a: unsigned(a) * factor, [0.3, -0.8, 1.4]))

# %% [markdown] items="F21"
# **A failure proves nothing either.** `relu` at 0 has a good rule, but the differences average both sides. **Predict** both numbers.

# %% tags=["demo"] items="F21"
predict("What are the numerical and the analytical slope of relu at 0?")
zero = MiniTensor([0.0], requires_grad=True)
print("numerical ", numerical_jacobian(lambda a: a.relu(), (zero,), 0))
print("analytical", analytical_jacobian(lambda a: a.relu(), (zero,), 0))
print("yours:  ", verdict(lambda a: a.relu(), [0.0]), "  PyTorch:", passes(torch.relu, leaf([0.0])))

# %% [markdown] items="98 F21"
# Back to the two rules from the start. `their_abs` is wrong, and passed because no point was negative. `their_round` fails because it differs from the true derivative, as its author intended (*Further*). **A pass is evidence for the points, the tolerance, the cotangents and the inputs that you tried. A rule is right if it returns, for every incoming gradient, that gradient times the Jacobian. If a rule differs on purpose, its docstring must say so.**

# %% [markdown] items="100"
# ## Quiz

# %% test="quiz_08" points=5 tags=["quiz"] items="100 134"
question(
    "requires_grad",
    "`x = torch.tensor(2.0, requires_grad=True)`. What has happened so far?",
    right("A flag is set. From now on, operations on `x` are recorded.", "Nothing is computed until an operation runs, and no gradient until `backward`."),
    wrong("`x.grad` has been set to 0.", "It is None until something arrives.", misconception="none_means_zero"),
    wrong("A graph with one node has been made.", "A leaf has no `grad_fn`. Its `AccumulateGrad` appears with the first recorded operation.", misconception="leaf_and_grad_fn"),
    wrong("`x` has become a parameter that an optimizer will find.", "An optimizer knows only what it is given.", misconception="optimizer_finds_leaves"),
)
question(
    "which_none",
    "In PyTorch, `forward(ctx, scores, labels)` takes integer labels. What does `backward` return?",
    right("A gradient for the scores, and None", "One entry per argument of forward, and None for what has no gradient."),
    wrong("Only the gradient for the scores", "PyTorch complains: incorrect number of gradients (expected 2, got 1).", misconception="gradients_for_tensors_only"),
    wrong("A gradient for the scores, and zeros in the shape of the labels", "Zeros would claim that there is a slope. Labels have none.", misconception="none_means_zero"),
    wrong("Whatever it likes; extra values are ignored", "PyTorch ignores extra values only if they are None.", misconception="form_is_not_checked"),
)
question(
    "wrong_rule",
    "A rule returns twice the right gradient for one input. What does PyTorch say at the first training step?",
    right("Nothing", "The number of gradients is right, and their shapes fit. PyTorch does not check values."),
    wrong("An error in `backward`", "It checks the form, not the numbers.", misconception="autograd_checks_values"),
    wrong("A warning that the gradient is inconsistent", "There is nothing it could compare with.", misconception="autograd_checks_values"),
    wrong("NaN in the loss", "Twice a gradient is a larger step. It may even seem to train well.", misconception="wrong_means_nan"),
)
question(
    "what_a_pass_proves",
    "`gradcheck(f, (x,))` passes in float64. What is certain?",
    right("At this `x`, the rule agrees with differences within the tolerance, for cotangents with a single 1.", "The sentence has all four restrictions, and each can let a wrong rule pass."),
    wrong("The rule is right.", "`abs` with slope 1 passed at positive points.", misconception="gradcheck_proves"),
    wrong("The rule is right for all inputs of this size.", "Other points may lie on another branch.", misconception="gradcheck_proves"),
    wrong("The parameters inside `f` get right gradients too.", "Only inputs in the tuple that require grad are checked.", misconception="gradcheck_sees_parameters"),
)
question(
    "at_zero",
    "Two libraries give `abs` the gradients 0 and 1 at 0. Which of them is wrong?",
    right("Neither", "Every number from -1 to 1 is a subgradient there. It is a decision, and it belongs in the docstring."),
    wrong("The one with 1: the curve is symmetric, so it must be 0.", "Symmetry makes 0 a nice choice, no more.", misconception="kinks_have_a_slope"),
    wrong("The one with 0: zero stops training.", "At 0 the smallest value is reached. And training rarely hits it exactly.", misconception="kinks_have_a_slope"),
    wrong("Both: there is no derivative, so it must be NaN.", "NaN would destroy all weights for the sake of one point.", misconception="kinks_must_be_nan"),
)
question(
    "why_nan",
    "`a.exp().sum().log()` at `a = [1000, 999]` gives a gradient of NaN. Where does it come from?",
    right("`exp` overflows to infinity, and the rule of `exp` then multiplies 0 by infinity.", "Autograd differentiates the program that ran, and that program left the range."),
    wrong("Autograd cannot differentiate log-sum-exp.", "With the largest entry subtracted, the same operations give the right gradient.", misconception="autograd_is_unstable"),
    wrong("The true gradient does not exist there.", "It is the softmax, about [0.73, 0.27].", misconception="nan_means_undefined"),
    wrong("float64 has too few digits.", "It is the range, not the precision.", misconception="range_and_precision"),
)
question(
    "why_needed",
    "What is `ctx.needs_input_grad` for?",
    right("To skip work for gradients that nobody will use.", "In `Linear` it saves one product of matrices out of two."),
    wrong("To switch recording off.", "That is the grad mode.", misconception="flags_mixed_up"),
    wrong("To tell the engine which gradients were computed.", "It is the other way around: the engine tells the rule.", misconception="flags_mixed_up"),
    wrong("To check that the number of returned gradients is right.", "It has one entry per input, but nothing is checked with it.", misconception="form_is_not_checked"),
)

# %% [markdown] question="why_a_pass_is_no_proof" points=3
# ### What does a pass prove?
#
# `gradcheck` passes for your rule, and the model that uses it trains badly. Your colleague says that the rule cannot be the reason. **Why** is that wrong? Name two things that a rule may do wrong although the check passes, and say for each what you would try. Answer in one paragraph.
#
# ### BEGIN MARK SCHEME
# *A good answer:* The check compares two tables at the points that it was given. A rule that is wrong for negative numbers passes if no point is negative, so try points of both signs, and some near kinks. A rule that is right in float64 may overflow in float32 or for large inputs, so try the sizes that training has. Others: inputs that do not require grad are not looked at; the tolerance hides small errors; second derivatives need `gradgradcheck`.
#
# * 1 point: a pass is about the points, inputs and tolerances that were tried
# * 1 point: one thing that goes unseen, with what to try
# * 1 point: a second one, with what to try
#
# Wrong answers, and what they get:
#
# * *gradcheck only checks the forward pass*: no point.
# * *The numerical derivative may be wrong, too*: at most one point. Then the check would fail, not pass.
# ### END MARK SCHEME

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | Function | forward computes and saves; backward returns one gradient per input, or None |
# | `needs_input_grad` | which gradients are needed |
# | no slope | choose a value between the slopes, and say which |
# | stability | a rule, or a better formula: the program overflows, not autograd |
# | gradcheck | two tables, at your points, with your tolerance, for your inputs, with cotangents of 0 and 1 |
# | a right rule | for every incoming gradient: that gradient times the Jacobian |
#
# In lesson 07 you saw a weakness of your engine: if saved memory is written to, it silently computes a wrong gradient. The next lesson fixes that.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without exercise 6. Run the next cell first. After that, the sections do not depend on each other.

# %% tags=["demo"]
import gc
import time
import warnings
import weakref

from mini_autograd.widgets.demo import logarithmic

torch.set_num_threads(1)  # steadier times on a busy machine

# %% [markdown]
# ## Your rule in PyTorch
#
# In PyTorch the class `LogSumExp` of section 3 needs one addition. Its `forward` has the argument `dim`, so `backward` must return something for it: `None`. Your engine ignores such an extra value. The class below also saves the input and the output, in place of the softmax: only through these can a second derivative find its way back (lesson 10).

# %% tags=["demo"] items="92"
class LogSumExpTorch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, dim):
        largest = a.amax(dim, keepdim=True)
        output = (largest + (a - largest).exp().sum(dim, keepdim=True).log()).squeeze(dim)
        ctx.save_for_backward(a, output)
        ctx.dim = dim
        return output

    @staticmethod
    def backward(ctx, grad):
        a, output = ctx.saved_tensors
        softmax = (a - output.unsqueeze(ctx.dim)).exp()
        return grad.unsqueeze(ctx.dim) * softmax, None


ported, built_in = leaf([[1.0, 2.0, 4.0]]), leaf([[1.0, 2.0, 4.0]])
LogSumExpTorch.apply(ported, 1).sum().backward()
built_in.logsumexp(1).sum().backward()
print("yours, ported:", ported.grad.numpy().round(4), "   PyTorch:", built_in.grad.numpy().round(4))

# %% [markdown]
# ## The two tables as pictures
#
# Here are the tables of section 4 for `log_softmax` of two rows with three entries each. **Predict** where the zeros are.

# %% tags=["demo"] items="104"
import matplotlib.pyplot as plt

plt.rcParams.update({"figure.figsize": (7, 4), "figure.facecolor": "white", "font.size": 11})
plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.3})

predict(
    "Where are the zeros in the table of log_softmax?",
    "on the diagonal",
    "where input and output are in different rows of x",
    "nowhere",
)
x = MiniTensor(np.array([[0.2, 1.0, -0.5], [2.0, 0.3, 0.1]]), requires_grad=True)
tables = {
    "numerical: row by row": numerical_jacobian(lambda x: x.log_softmax(1), (x,), 0),
    "analytical: column by column": analytical_jacobian(lambda x: x.log_softmax(1), (x,), 0),
}
fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for axis, (title, table) in zip(axes, tables.items()):
    shown = axis.imshow(table, cmap="RdBu", vmin=-1, vmax=1)
    axis.set(title=title, xlabel="entry of the output", ylabel="entry of the input")
    axis.grid(False)
fig.colorbar(shown, ax=axes, label="slope")
plt.show()
numerical, analytical = tables.values()
print(f"largest difference: {np.abs(numerical - analytical).max():.1e}")

# %% [markdown] items="91 100"
# ## Where to keep a value
#
# `save_for_backward` has three benefits: the value is freed after the backward pass, a second backward pass gets a clear error, and PyTorch notices a change in between. An attribute of `ctx` has none of them. Does that make it unsafe? Here are four ways to keep a 1 MB tensor on `ctx`, with ten calls each, in PyTorch. **Predict** which of them still hold memory afterward.

# %% tags=["demo"] items="91 F43"
predict("Which of the four ways still hold memory afterward?")


def keeping(way):
    class Exponential(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            born.append(weakref.ref(y.untyped_storage()))
            if way == "save_for_backward(y)":
                ctx.save_for_backward(y)
            else:
                ctx.kept = {
                    "ctx.kept = y": y,
                    "ctx.kept = y.detach()": y.detach(),
                    "ctx.kept = x": x,
                }[way]
            return y

        @staticmethod
        def backward(ctx, grad):
            kept = ctx.saved_tensors[0] if way.startswith("save") else ctx.kept
            return grad * (kept.exp() if way.endswith("x") else kept)

    return Exponential.apply


large = torch.zeros(250_000, requires_grad=True)
gc.collect()
for way in ("save_for_backward(y)", "ctx.kept = y", "ctx.kept = y.detach()", "ctx.kept = x"):
    born, function = [], keeping(way)
    gc.disable()
    for _ in range(10):
        large.grad = None
        function(large).sum().backward()
    alive = sum(reference() is not None for reference in born)
    gc.enable()
    gc.collect()
    late = sum(reference() is not None for reference in born)
    print(f"{way:22s} of 10 outputs {alive:2d} are alive, {late} after a collection of cycles")

# %% [markdown] items="91 F43"
# Only the **output** as an attribute leaks: the output holds its node, the node holds its output, and such a cycle waits for Python's collector. Plain numbers, shapes and flags belong on `ctx`; your `Sum` keeps its `dim` there. Inputs and outputs belong in `save_for_backward`, which in PyTorch takes only tensors:

# %% tags=["demo"] items="91 F43"
class SavesANumber(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3)
        return 3 * x


try:
    SavesANumber.apply(leaf(1.0))
except TypeError as error:
    print("TypeError:", error)

# %% [markdown] items="98"
# ## What Linear saves
#
# Take one layer with data as input and a gradient for the weights. **Predict** the ratio of the times of the two backward passes.

# %% tags=["demo"] items="98"
predict("What is the ratio of the times of the two backward passes?")


def backward_seconds(compute, rounds=9):
    """Median time of one backward pass; the forward passes are not counted."""
    found = []
    for _ in range(rounds):
        output = compute()
        cotangent = np.ones(output.shape)
        start = time.perf_counter()
        output.backward(cotangent)
        found.append(time.perf_counter() - start)
    return np.median(found)


data = MiniTensor(np.random.default_rng(0).normal(size=(400, 600)))
weight = MiniTensor(np.random.default_rng(1).normal(size=(600, 300)), requires_grad=True)
bias = MiniTensor(np.zeros(300), requires_grad=True)
separate = backward_seconds(lambda: data @ weight + bias)
fused = backward_seconds(lambda: data.linear(weight, bias))
print(f"data @ weight + bias  {1000 * separate:5.1f} ms")
print(f"Linear                {1000 * fused:5.1f} ms   ratio {fused / separate:.2f}")

# %% [markdown] items="98"
# The backward pass of the first version has two products of the same size, and one of them is not needed. Writing its result, as large as the data, takes time too.

# %% [markdown] items="103 F32"
# ## How PyTorch's own operations are made
#
# Some texts say that *every* operation in PyTorch is a class like yours. **Predict** the four answers.

# %% tags=["demo"] items="103 F32"
predict("Is the built-in node made in Python?", "yes", "no")
built_in, custom = (x_torch**2).grad_fn, SquareTorch.apply(x_torch).grad_fn
for name, node in (("built in", built_in), ("custom", custom)):
    python = isinstance(node, torch.autograd.function.BackwardCFunction)
    saves = hasattr(node, "save_for_backward")
    print(f"{name:9s} {type(node).__name__:22s} made in Python: {python!s:5s}", end="  ")
    print("has save_for_backward:", saves)

# %% [markdown] items="103 F32"
# PyTorch's own operations are nodes written in C++, generated from a table of formulas. `Function` is for users. In your engine both are the same, which is easier to read but slower.

# %% [markdown] items="104 F20"
# ## Checking a model
#
# A manual suggests `gradcheck(model, inputs)`. **Predict** the four results.

# %% tags=["demo"] items="104 F20"
predict("How many of the four calls say that all is right?")


def result_of(function, inputs, **options):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return str(torch.autograd.gradcheck(function, inputs, **options))
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error)[:46]} ..."


torch.manual_seed(0)
model = torch.nn.Linear(3, 2)
print("as written:                    ", result_of(model, (torch.randn(4, 3),)))
print("inputs require grad:           ", result_of(model, (torch.randn(4, 3, requires_grad=True),)))
model = model.double()
inputs = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
print("and everything in float64:     ", result_of(model, (inputs,)))


class BlindLinear(torch.autograd.Function):
    """x @ w.T + b, with no gradient at all for w and b."""

    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(w)
        return x @ w.T + b

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return grad @ w, None, None


def blind(x):
    return BlindLinear.apply(x, model.weight, model.bias)


print("no gradient for the parameters:", result_of(blind, (inputs,)))

# %% [markdown] items="104 F20"
# As written it cannot run. In float32 the differences are too noisy. And when it does run, it ignores the parameters, because they are not among the inputs: a model that cannot learn passes. So pass the parameters as inputs:

# %% tags=["demo"] items="104 F20"
names = [name for name, _ in model.named_parameters()]


def as_function(x, *parameters):
    return torch.func.functional_call(model, dict(zip(names, parameters)), (x,))


everything = inputs, *model.parameters()
print("model with its parameters:", result_of(as_function, everything))
print("BlindLinear with them:    ", result_of(BlindLinear.apply, everything))

# %% [markdown] items="104 F20"
# ## Precision
#
# Here are a right rule for `sin` and a rule that is half a percent too large, with 10 random inputs each. **Predict** the eight counts.

# %% tags=["demo"] items="F20 104"
predict("In float64: for how many of 10 inputs does the wrong rule pass?")


class SineAlmost(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * 1.005


def count(function, dtype, **options):
    torch.manual_seed(0)
    return sum(
        passes(function, torch.randn(6, dtype=dtype, requires_grad=True), **options)
        for _ in range(10)
    )


loose = {"eps": 1e-3, "atol": 1e-2}
print("gradcheck passes for      right rule   0.5 percent off")
for label, dtype, options in (
    ("float64, defaults", torch.float64, {}),
    ("float32, defaults", torch.float32, {}),
    ("float32, loose", torch.float32, loose),
    ("float32, in between", torch.float32, {"eps": 1e-2, "atol": 1e-3}),
):
    right, wrong = count(torch.sin, dtype, **options), count(SineAlmost.apply, dtype, **options)
    print(f"{label:25s} {right:3d} of 10    {wrong:3d} of 10")

# %% [markdown] items="F20 F21"
# In float32 the defaults refuse even the right rule. A loose tolerance lets the wrong one pass. A larger step with a tolerance in between tells them apart, but only if both fit the size of your numbers. In float64 the defaults tell them apart.

# %% [markdown] items="F21"
# ## PyTorch and the rule that is not linear
#
# **Predict** whether PyTorch's `gradcheck` catches the rule with `|grad|` from section 5.

# %% tags=["demo"] items="F21"
predict(
    "Does gradcheck catch the rule with |grad|?",
    "in both modes",
    "only in slow mode",
    "only in fast mode",
    "in neither",
)


class Unsigned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.abs() * x.cos()


points = leaf([0.3, -0.8, 1.4])
print("PyTorch, slow mode:", passes(Unsigned.apply, points))
print("PyTorch, fast mode:", passes(Unsigned.apply, points, fast_mode=True))
(-Unsigned.apply(points)).sum().backward()
print("gradient of -sin:", points.grad.numpy().round(4))
print("right:           ", (-points.detach().cos()).numpy().round(4))

# %% [markdown] items="F21"
# It passes in both modes.

# %% [markdown] items="105"
# ## Second derivatives
#
# `gradcheck` looks at first derivatives. To be differentiated again (lesson 10), a rule must consist of recorded operations. `gradgradcheck` tests that. Here is `x**3` in PyTorch with three rules that give the same number. **Predict** which rules pass which test.

# %% tags=["demo"] items="105 134"
predict("How many of the three rules pass gradgradcheck?", "0", "1", "2", "3")


def cube(rule):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        backward = staticmethod(rule)

    return Cube.apply


rules = {
    "grad * 3 * x**2": lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2,
    "the same with x.detach()": lambda ctx, grad: grad * 3 * ctx.saved_tensors[0].detach() ** 2,
    "once_differentiable": torch.autograd.function.once_differentiable(
        lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2
    ),
}
for name, rule in rules.items():
    x_torch = leaf([2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = torch.autograd.gradcheck(cube(rule), x_torch, raise_exception=False)
        second = torch.autograd.gradgradcheck(cube(rule), x_torch, raise_exception=False)
        (grad,) = torch.autograd.grad(cube(rule)(x_torch), x_torch, create_graph=True)
        out = grad + x_torch**2
        found = []
        for second_derivative in (
            lambda: torch.autograd.grad(grad, x_torch, retain_graph=True)[0],
            lambda: torch.autograd.grad(out, x_torch, retain_graph=True)[0],
        ):
            try:
                found.append(f"{second_derivative().item():.0f}")
            except RuntimeError:
                found.append("error")
    print(f"{name:25s} gradcheck {first!s:5s}  gradgradcheck {second!s:5s}", end="  ")
    print(f"alone: {found[0]:5s}  in a sum: {found[1]}")

# %% [markdown] items="105"
# At 2 the second derivative is 12, and 16 if `x**2` is added to the gradient first. Alone, the second and third rules raise an error. In the sum, where something else can be differentiated, their part is **silently missing**: 4 instead of 16. The decorator `once_differentiable` should forbid a second derivative. Here it stays quiet: it acts only if the *incoming* gradient requires grad, and here that is the constant 1.

# %% [markdown] items="96"
# ## A rule that is wrong on purpose
#
# Rounding has slope 0 nearly everywhere. That is the true derivative, and with it nothing trains, because no gradient passes. So we pretend: forward rounds, and backward passes the gradient on **unchanged**. This rule is the *straight-through estimator* (Bengio and others, 2013). It is a *surrogate*: chosen because it trains, not because it is the derivative.
#
# ### Exercise 6: straight-through rounding
#
# 8-bit weights are whole multiples of a step. Write `Quantize`: forward rounds to the nearest multiple of `step`, backward is straight-through.

# %% [markdown] tags=["hint"] exercise="quantize"
# Use `np.round(a / step) * step`. `step` is an option, as `dim` was. You don't have to save anything.

# %% solution="quantize"
MiniTensor.quantize = lambda self, step: Quantize.apply(self, step=step)


class Quantize(Function):
    """a, rounded to the nearest multiple of step; the gradient passes unchanged.

    >>> a = MiniTensor([0.3, -0.9, 1.2], requires_grad=True)
    >>> y = a.quantize(0.5)
    >>> y.data
    array([ 0.5, -1. ,  1. ])
    >>> y.backward(np.array([1.0, 10.0, 100.0]))
    >>> a.grad.data
    array([  1.,  10., 100.])
    """

    ### BEGIN SOLUTION
    @staticmethod
    def forward(ctx, a, step):
        return np.round(a / step) * step

    @staticmethod
    def backward(ctx, grad):
        return grad

    ### END SOLUTION

# %% check="quantize"

# %% [markdown] items="96 F21"
# `gradcheck` compares with the true derivative, so this rule must fail. **Predict** the four lines: the check, then the gradients of straight-through as a class, of straight-through as a formula with `detach`, which needs no class, and of PyTorch's own `round`.

# %% tags=["demo"] items="96 F21"
predict("What gradient does torch.round give?", "1", "0", "an error")
print("gradcheck of quantize:", verdict(lambda a: a.quantize(0.5), [0.3, -0.9, 1.2]))
a = MiniTensor([0.3, -0.9, 1.2], requires_grad=True)
a.quantize(2 / 255).sum().backward()
print("8 bits between -1 and 1, gradient:", a.grad.data)
a_torch = leaf([0.3, -0.9, 1.2])
(a_torch + (a_torch.round() - a_torch).detach()).sum().backward()
print("x + (round(x) - x).detach():      ", a_torch.grad.numpy())
a_torch.grad = None
a_torch.round().sum().backward()
print("torch.round, the true derivative: ", a_torch.grad.numpy())

# %% [markdown] items="96"
# A **choice** can be straight-through, too. The largest of some scores, as a vector with a single 1, has slope 0 nearly everywhere. Forward takes that vector, and backward pretends that `softmax` had run. (`torch.nn.functional.gumbel_softmax(scores, hard=True)` has this formula inside, with noise.) **Predict** which scores get a gradient.

# %% tags=["demo"] items="96"
predict("Which scores get a gradient?", "none", "the chosen one", "all")
scores = leaf([1.0, 2.0, 0.5])
soft = torch.softmax(scores, 0)
hard = torch.nn.functional.one_hot(soft.argmax(), 3)
chosen = soft + (hard - soft).detach()
(chosen * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
print("forward: ", chosen.detach().numpy().round(3))
print("backward:", scores.grad.numpy().round(3))

# %% [markdown] items="96"
# All: how much the loss would change with another choice reaches every score, so a choice that did badly can lose to another one.

# %% [markdown] items="96"
# Does it train? The next cell fits a line whose slope and offset may only be multiples of 0.25. The exact weights are kept, and rounded in each forward pass.

# %% tags=["demo"] items="96"
import matplotlib.pyplot as plt

x_data = np.linspace(-1, 1, 40)
y_data = 1.4 * x_data - 0.6 + 0.1 * np.random.default_rng(6).normal(size=40)
exact = np.polyfit(x_data, y_data, 1)


def fitted(round_weights, steps=120):
    weights = MiniTensor([0.0, 0.0], requires_grad=True)
    losses = []
    for _ in range(steps):
        used = round_weights(weights)
        loss = ((used[0] * x_data + used[1] - y_data) ** 2).mean()
        weights.grad = None
        loss.backward()
        losses.append(loss.item())
        if weights.grad is not None:
            weights.data = weights.data - 0.05 * weights.grad.data
    return losses, used.data


true_slope = custom_operation(
    Function, lambda a: np.round(a / 0.25) * 0.25, lambda grad, a: 0 * grad
)
fig, axis = plt.subplots(layout="constrained")
ways = {
    "straight-through": lambda w: w.quantize(0.25),
    "true derivative (0)": true_slope,
    "no rounding": lambda w: w * 1,
}
for label, way in ways.items():
    losses, used = fitted(way)
    axis.plot(losses, label=f"{label}: ends at {used.round(2).tolist()}")
axis.set(xlabel="step", ylabel="mean squared error")
logarithmic(axis)
axis.legend()
plt.show()
print("least squares without rounding:", exact.round(3).tolist())

# %% [markdown] items="96"
# Straight-through training comes close. Then both weights jump between neighboring multiples; the legend shows the last step. With the true derivative nothing moves at all.

# %% [markdown] items="98 99"
# ## Memory
#
# A rule can save memory: a mask instead of an array. It may even save only its **input** and recompute the rest in `backward`. That is *checkpointing*; you build it in lesson 13. PyTorch has it twice, once as a custom Function and once without:

# %% tags=["demo"] items="99"
from torch.utils.checkpoint import checkpoint

x_torch = leaf([1.0, 2.0])
for reentrant in (True, False):
    node = checkpoint(torch.sin, x_torch, use_reentrant=reentrant).grad_fn
    print(f"use_reentrant={reentrant!s:5s}: {type(node).__name__}")

# %% [markdown]
# ## Your engine trains
#
# Since the first `MiniTensor` in lesson 02, you have built every part: the rules, the order, the broadcasting, the leaves, the freeing, the switch, the check. Now train with it.
#
# **Two moons** are two interleaved half circles that no straight line separates.

# %%
def two_moons(count, seed):
    """Points on two half circles, with noise: an array (2 * count, 2), and their labels 0 and 1."""
    generator = np.random.default_rng(seed)
    angle = generator.uniform(0, np.pi, size=(2, count))
    upper = np.stack([np.cos(angle[0]), np.sin(angle[0])], axis=1)
    lower = np.stack([1 - np.cos(angle[1]), 0.5 - np.sin(angle[1])], axis=1)
    points = np.concatenate([upper, lower]) + generator.normal(scale=0.1, size=(2 * count, 2))
    return points, np.repeat([0, 1], count)


def starting_weights(sizes, seed):
    """Weights and biases for each layer, as arrays."""
    generator = np.random.default_rng(seed)
    arrays = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        arrays += [generator.normal(size=(inputs, outputs)) / inputs**0.5, np.zeros(outputs)]
    return arrays


def logits(x, parameters):
    """Layers of x @ w + b with tanh between them."""
    *hidden, w, b = parameters
    for weight, offset in zip(hidden[::2], hidden[1::2]):
        x = x.linear(weight, offset).tanh()
    return x.linear(w, b)


def train(points, labels, arrays, lr, momentum, steps):
    """Full-batch gradient descent with your engine: the parameters, and the loss of each step."""
    parameters = [MiniTensor(array.copy(), requires_grad=True) for array in arrays]
    optimizer = SGD(parameters, lr=lr, momentum=momentum)
    x, losses = MiniTensor(points), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = cross_entropy(logits(x, parameters), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return parameters, losses

# %% tags=["demo"]
def train_torch(points, labels, arrays, lr, momentum, steps):
    """The same in PyTorch."""
    parameters = [leaf(array) for array in arrays]
    optimizer = torch.optim.SGD(parameters, lr=lr, momentum=momentum)
    x, targets, losses = torch.tensor(points), torch.tensor(labels, dtype=torch.long), []
    for _ in range(steps):
        optimizer.zero_grad()
        h = x
        for w, b in zip(parameters[:-2:2], parameters[1:-2:2]):
            h = torch.tanh(h @ w + b)
        loss = torch.nn.functional.cross_entropy(h @ parameters[-2] + parameters[-1], targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return parameters, losses


def compare(losses, losses_torch, accuracy):
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.6f}", end="   ")
    print(f"PyTorch {losses_torch[-1]:.6f}   accuracy {accuracy:.1%}")
    difference = np.abs(np.subtract(losses, losses_torch)).max()
    print(f"largest difference of the two curves: {difference:.1e}")


moons, sides = two_moons(100, seed=0)
arrays = starting_weights((2, 16, 2), seed=1)
start = time.perf_counter()
parameters, losses = train(moons, sides, arrays, lr=0.2, momentum=0.9, steps=300)
mine_seconds = time.perf_counter() - start
_, losses_torch = train_torch(moons, sides, arrays, lr=0.2, momentum=0.9, steps=300)
with no_grad():
    accuracy = (logits(MiniTensor(moons), parameters).data.argmax(axis=1) == sides).mean()
compare(losses, losses_torch, accuracy)
print(f"{1000 * mine_seconds / len(losses):.2f} ms per step")

# %% tags=["demo"]
import matplotlib.pyplot as plt

across, up = np.meshgrid(np.linspace(-1.6, 2.6, 120), np.linspace(-1.2, 1.6, 100))
grid = np.stack([across.ravel(), up.ravel()], axis=1)
with no_grad():
    share = logits(MiniTensor(grid), parameters).softmax(1).data[:, 1].reshape(across.shape)

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].plot(losses, linewidth=4, alpha=0.5, label="your engine")
axes[0].plot(losses_torch, "--", linewidth=1.5, label="PyTorch")
axes[0].set(xlabel="step", ylabel="cross entropy")
logarithmic(axes[0])
axes[0].legend()
axes[1].contourf(across, up, share, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.5)
axes[1].contour(across, up, share, levels=[0.5], colors="black")
axes[1].scatter(*moons.T, c=sides, cmap="coolwarm", s=14, edgecolors="black", linewidths=0.3)
axes[1].set(
    xlabel="first coordinate",
    ylabel="second coordinate",
    title="where the network changes its mind",
)
axes[1].grid(False)
plt.show()

# %% [markdown]
# **Digits** are small pictures, 8 by 8, drawn by a program with shifts, slants and noise. The network has one layer and a softmax. The first 600 are for training, the rest for testing.

# %% tags=["demo"]
with np.load("data/digits.npz") as file:
    images, labels = file["images"] / 16.0, file["labels"].astype(int)
pixels = images.reshape(len(images), 64)
arrays = [0.01 * np.random.default_rng(2).normal(size=(64, 10)), np.zeros(10)]
parameters, losses = train(pixels[:600], labels[:600], arrays, lr=0.5, momentum=0.9, steps=150)
_, losses_torch = train_torch(pixels[:600], labels[:600], arrays, lr=0.5, momentum=0.9, steps=150)
with no_grad():
    answers = logits(MiniTensor(pixels[600:]), parameters).data.argmax(axis=1)
compare(losses, losses_torch, (answers == labels[600:]).mean())

# %% tags=["demo"]
import matplotlib.pyplot as plt

wrong = np.flatnonzero(answers != labels[600:])[:4]
shown = np.concatenate([np.arange(8 - len(wrong)), wrong])
fig, axes = plt.subplots(1, 8, figsize=(10, 1.8), layout="constrained")
for axis, number in zip(axes, shown):
    axis.imshow(images[600 + number], cmap="gray_r")
    axis.set_title(f"{labels[600 + number]}, said {answers[number]}", fontsize=9)
    axis.axis("off")
plt.show()

fig, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
axis.plot(losses, linewidth=4, alpha=0.5, label="your engine")
axis.plot(losses_torch, "--", linewidth=1.5, label="PyTorch")
axis.set(xlabel="step", ylabel="cross entropy")
logarithmic(axis)
axis.legend()
plt.show()

# %% [markdown]
# The curves agree up to rounding. The two runs share only the starting weights: all rules, the order of the backward pass and the optimizer are yours.

# %% [markdown] items="131 133 134 135"
# ## Say it aloud
#
# Here are thirteen questions from interviews and forums. You have built most of the answers. Answer each in two sentences, then open it.
#
# <details><summary>What is automatic differentiation, and what is its graph?</summary>
#
# It applies the chain rule to the program that ran, operation by operation. The graph is the record of these operations; PyTorch makes a new one in every forward pass, so an `if` simply decides what is recorded. A static graph is described once and run often.
# </details>
# <details><summary>What does <code>backward</code> do, in terms of the chain rule?</summary>
#
# It visits the nodes in topological order, the output first, gives each rule the sum of what has arrived, and sends the results on. Each rule multiplies a vector by its Jacobian, and no Jacobian is ever built.
# </details>
# <details><summary>Forward mode or reverse mode?</summary>
#
# Reverse mode costs one sweep per output, forward mode one per input. A loss has one output and millions of inputs.
# </details>
# <details><summary>What is a leaf?</summary>
#
# A tensor that no recorded operation made. Gradients are kept on leaves that require grad; not every leaf does.
# </details>
# <details><summary>What does <code>dL/dw</code> mean? For example, <code>w.grad = -18</code>.</summary>
#
# If `w` grows a little, the loss falls about 18 times as much. The sign says in which direction the loss falls, and the size says how strongly it reacts here; far away both may be different.
# </details>
# <details><summary>What does <code>requires_grad=True</code> mean, and when is False better?</summary>
#
# Operations on this tensor and on their results are recorded. For data, labels and frozen weights, False is better: it saves memory and work.
# </details>
# <details><summary>Why does <code>.grad</code> add up, and when do you want that?</summary>
#
# So that several backward passes can feed one step: micro-batches of a batch that does not fit in memory, or several losses. Otherwise, clear it between steps.
# </details>
# <details><summary><code>backward</code> or <code>autograd.grad</code>?</summary>
#
# The first adds into `.grad` of the leaves, where an optimizer looks. The second returns the gradients you ask for and leaves `.grad` alone.
# </details>
# <details><summary>What happens when <code>backward</code> is called twice?</summary>
#
# If some node had saved a value, an error: it was freed. Where nothing was saved, as in `x + 1`, it works and adds once more. With `retain_graph=True` it works, unless a saved value was changed in place since: after an optimizer's step that is an error, too (lesson 09).
# </details>
# <details><summary>What is <code>save_for_backward</code> for?</summary>
#
# It keeps what a rule will need between the forward and the backward pass. The value is freed after use, a change to it is noticed, and there is no reference cycle.
# </details>
# <details><summary><code>no_grad</code> or <code>inference_mode</code>?</summary>
#
# Both record nothing. What is made under `no_grad` may be used anywhere later; what is made in `inference_mode` can never be saved for a backward pass, and tiny operations are a little faster.
# </details>
# <details><summary>How do you verify a rule?</summary>
#
# `gradcheck` in float64, at points of all signs and away from points without a slope, with all tensors that matter as inputs, and with a random factor after the operation. Then say for which points it was tested.
# </details>
# <details><summary><code>gradcheck</code> or <code>gradgradcheck</code>?</summary>
#
# The first compares first derivatives with differences of values. The second compares second derivatives with differences of first ones; it is needed when a rule will itself be differentiated.
# </details>

# %% [markdown]
# ## Questions about this part

# %% test="quiz_08_further" points=2 tags=["quiz"]
question(
    "save",
    "What does `ctx.save_for_backward(y)` do that `ctx.y = y` does not?",
    right("The value is freed after backward, changes to it are noticed, and there is no reference cycle.", "These are the three services. The value itself would be the same."),
    wrong("It makes a copy, so that `y` may be changed.", "Nothing is copied. In PyTorch a change is *noticed* (lesson 09).", misconception="saved_values_are_copies"),
    wrong("It makes the gradient flow through `y`.", "What is saved is data for the rule. Edges come from the inputs.", misconception="saving_makes_edges"),
    wrong("Nothing. It is only tidier.", "An output that is kept as an attribute leaks.", misconception="ctx_attributes_are_equal"),
)
question(
    "float32_check",
    "A right rule fails `gradcheck` in float32 with the defaults. Why?",
    right("The differences are wrong: with eps = 1e-6 rounding destroys them.", "A float32 has about seven digits. The rule is innocent."),
    wrong("The rule is less exact in float32.", "It is, by about 1e-7. That would pass.", misconception="range_and_precision"),
    wrong("Because float32 has no gradients.", "It is the usual type in training.", misconception="float32_has_no_gradients"),
    wrong("Only because atol is too small: with 1e-2 the check is as good.", "Then a rule that is half a percent off passes as well.", misconception="tolerance_cures"),
)
question(
    "check_fails",
    "A straight-through rounding fails `gradcheck`. What follows?",
    right("Nothing new: it differs from the true derivative on purpose.", "Test it another way: the values of forward, and that the gradient passes unchanged."),
    wrong("It must be fixed.", "The true derivative, zero, does not train.", misconception="surrogates_must_pass"),
    wrong("The tolerance must be larger.", "1 and 0 are not a matter of tolerance.", misconception="tolerance_cures"),
    wrong("The step eps was too small.", "With a larger step the differences would give another wrong number.", misconception="tolerance_cures"),
)
