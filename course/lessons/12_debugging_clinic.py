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

# %% [markdown] items="gap:where_sqrt"
# # Debugging clinic
#
# The length of a vector has no derivative at zero. So the code below asks first whether there is a length, and takes 0 where there is none. The loss is a plain number, and the row of zeros does not even take part in it.

# %%
from autograder.student import hints, quiz, start_lesson

# %% tags=["engine"]
import linecache
import sys

import numpy as np

# %% tags=["demo"]
import time
import warnings
import weakref

import matplotlib.pyplot as plt
import torch

plt.rcParams.update({"figure.figsize": (7, 4), "figure.facecolor": "white", "font.size": 11})
plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.3})
torch.set_num_threads(1)  # steadier times on a busy machine

x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]], requires_grad=True)
squares = (x**2).sum(dim=1)
roots = torch.where(squares > 0, squares.sqrt(), torch.zeros(3))
loss = roots.sum()
print("lengths:", roots.tolist(), "  loss:", loss.item())

# %% [markdown] items="gap:where_sqrt"
# **Predict** the gradient of the second row.

# %% tags=["demo"] items="gap:where_sqrt"
loss.backward()
print(x.grad)

# %% [markdown]
# Not a number, from a branch that was not taken. After the next step of an optimizer the whole weight that made this row is NaN, then the whole network. No error is raised anywhere.
#
# Most bugs of trainings are like this one: the program runs, and something is not right. Staring at the code rarely finds them. What finds them is an *instrument*: something that measures, at a place where the right answer is known. In this lesson you will
#
# 1. build anomaly mode, which names the operation and the line behind a NaN, and measure what it does not see;
# 2. log gradient norms, and read them;
# 3. find the first layer whose output is not finite, and units that are dead;
# 4. write an examination that a training must pass before it starts;
# 5. repair eight trainings, each with a symptom.
#
# Should an attempt break your engine, run the next cell again: it puts the engine back as it was.

# %%
start_lesson()

# %% [markdown]
# Your engine has no `where` yet. Here it is, with a square root. Its rule sends the gradient to the one side or the other, and zeros to the side that was not taken.

# %% tags=["engine"]
class Where(Function):
    """a where the condition holds, and b elsewhere. The condition is a plain array of truth values."""

    @staticmethod
    def forward(ctx, a, b, condition):
        ctx.condition = np.asarray(condition)
        return np.where(ctx.condition, a, b)

    @staticmethod
    def backward(ctx, grad):
        choose = where if isinstance(grad, MiniTensor) else np.where
        return choose(ctx.condition, grad, 0.0), choose(ctx.condition, 0.0, grad)


def where(condition, a, b):
    """Entry by entry a or b, stretched where needed. condition: array of truth values."""
    return Where.apply(a, b, condition=condition)


MiniTensor.sqrt = lambda self: self**0.5

# %% [markdown] items="gap:where_sqrt"
# The same loss on your engine: the same NaN. The zeros that `where` sends are innocent: the rule of the square root multiplies them by its slope, which is infinite at 0, and `0 * inf` is NaN. NumPy may warn when a result is infinite or NaN; the lesson silences that, since PyTorch does not warn either.

# %% items="gap:where_sqrt"
np.seterr(all="ignore")


def careless_lengths(x):
    squares = (x * x).sum(1)
    return where(squares.data > 0, squares.sqrt(), 0.0)


x = MiniTensor([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]], requires_grad=True)
careless_lengths(x).sum().backward()
print(x.grad.data)

# %% [markdown] items="106"
# ## 1. Anomaly mode
#
# The leaf has a NaN; which operation made it? Two things are needed. In the forward pass each node must note *where in the program* it was recorded, since in the backward pass that is long past. And in the backward pass somebody must look at what each rule returns.
#
# The first part is given. `forward_calls` looks at the calls that are running, as an error message does. `record` and `shares_of`, which you know from lessons 09 and 10, get an addition each.

# %% tags=["engine"]
Switches.anomaly = False  # whether this thread is in anomaly mode
Function.calls = ()  # the forward calls that led to a node, outermost first, as text


def forward_calls():
    """The calls that led to the operation that is being recorded, from the notebook's cell inwards."""
    frame, lines = sys._getframe(1), []
    while frame is not None and frame.f_code.co_name in ("record", "apply", "<lambda>"):
        frame = frame.f_back  # the engine's own
    while frame is not None:
        name, number = frame.f_code.co_name, frame.f_lineno
        text = linecache.getline(frame.f_code.co_filename, number).strip()
        lines.append(f"line {number}, in {name}" + (f": {text}" if text else ""))
        if name == "<module>":  # the cell
            break
        frame = frame.f_back
    return tuple(reversed(lines))


record_alone = getattr(record, "alone", record)  # the same if this cell runs twice
shares_alone = getattr(shares_of, "alone", shares_of)


def record(ctx, inputs, output):
    record_alone(ctx, inputs, output)
    if switches.anomaly:
        ctx.calls = forward_calls()


def shares_of(node, grad):
    shares = shares_alone(node, grad)
    if switches.anomaly:
        check_shares(node, shares)
    return shares


record.alone, shares_of.alone = record_alone, shares_alone
NO_CALLS = "No forward pass information available: it was recorded outside of detect_anomaly."

# %% [markdown] items="106"
# ### Exercise 1: the alarm
#
# Write the rest: the switch, and the alarm. As in PyTorch, the alarm is about **NaN only**, and about what the rule of a node *returns*.

# %% [markdown] tags=["hint"] exercise="anomaly"
# `__enter__` must remember what it found, so that `__exit__` can put it back. `switches.anomaly` is a plain attribute.

# %% [markdown] tags=["hint"] exercise="anomaly"
# A share is `None`, an array or a MiniTensor; `as_tensor(share).data` is an array for the latter two. `np.isnan(array).any()` tells whether there is a NaN.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "anomaly", "locked": false, "schema_version": 3, "solution": true, "task": false}
class detect_anomaly:
    """Inside, nodes note where they are recorded, and backward raises at the first NaN from a rule.

    mode: detect_anomaly(False) switches it off inside
    In the end, also after an error, switches.anomaly is again what it was when the block began. The
    error goes on. Other threads notice nothing: only the attribute of `switches` is set.

    >>> with detect_anomaly():
    ...     with detect_anomaly(False):
    ...         inner = switches.anomaly
    ...     outer = switches.anomaly
    >>> inner, outer, switches.anomaly
    (False, True, False)
    """

    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        ### BEGIN SOLUTION
        self.before = switches.anomaly
        switches.anomaly = self.mode
        ### END SOLUTION

    def __exit__(self, kind, error, traceback):
        ### BEGIN SOLUTION
        switches.anomaly = self.before
        ### END SOLUTION


def check_shares(node, shares):
    """Raise RuntimeError if a share contains NaN; the first such share counts. Infinity is no alarm.

    node: the node whose rule has run; node.name() is such as "PowBackward0"
    shares: what the rule returned, a list with an array, a MiniTensor or None for each input
    The text of the error is, for the share with number i,
        Function 'PowBackward0' returned nan values in its {i}th output.
    and then each entry of node.calls, in a line of its own. If node.calls is empty, NO_CALLS stands
    in the second line.

    >>> node = (MiniTensor(1.0, requires_grad=True) * 2).grad_fn
    >>> check_shares(node, [np.array([1.0, np.inf]), None])
    >>> check_shares(node, [None, np.array([1.0, np.nan])])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: Function 'MulBackward0' returned nan values in its 1th output.
    No forward pass information available: it was recorded outside of detect_anomaly.
    """
    ### BEGIN SOLUTION
    for number, share in enumerate(shares):
        if share is not None and np.isnan(as_tensor(share).data).any():
            first = f"Function '{node.name()}' returned nan values in its {number}th output."
            raise RuntimeError("\n".join([first, *(node.calls or [NO_CALLS])]))
    ### END SOLUTION

# %% tags=["style:compact"] exercise="anomaly"
import contextlib


@contextlib.contextmanager
def detect_anomaly(mode=True):
    found, switches.anomaly = switches.anomaly, mode
    try:
        yield
    finally:
        switches.anomaly = found


def check_shares(node, shares):
    arrays = [0.0 if share is None else as_tensor(share).data for share in shares]
    bad = [number for number, array in enumerate(arrays) if np.any(array != array)]  # only NaN differs from itself
    if bad:
        where_from = "\n".join(node.calls) if node.calls else NO_CALLS
        raise RuntimeError(f"Function '{node.name()}' returned nan values in its {bad[0]}th output.\n{where_from}")

# %% nbgrader={"grade": true, "grade_id": "test_anomaly", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
def alarm_of(output):
    """The text of the error of output.backward(), or "" if there is none."""
    try:
        output.backward()
    except RuntimeError as error:
        return str(error)
    return ""


a, b = MiniTensor([0.0, 4.0], requires_grad=True), MiniTensor([1.0, 2.0], requires_grad=True)
rows = MiniTensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
with detect_anomaly():
    text = alarm_of(where([True, False], (rows * rows).sum(1).sqrt(), 0.0).sum())
alarm = "returned nan values in its 0th output."
assert text.startswith(f"Function 'PowBackward0' {alarm}"), f"the rule of the root, not: {text!r}"
layer = LinearLayer(2, 1)
overwrite(layer.weight, np.full((1, 2), np.inf))
with detect_anomaly():
    blamed = alarm_of((layer(rows) * 0.0).sum())
assert blamed.startswith(f"Function 'LinearBackward0' {alarm}"), f"the layer's rule, not: {blamed!r}"
assert "in forward" in blamed.splitlines()[-1], "the last line is the one in the layer's forward"
assert not switches.anomaly, "after the block the mode is off again"
assert alarm_of((layer(rows) * 0.0).sum()) == "", "no alarm outside of the mode"
with detect_anomaly():
    assert alarm_of(a.sqrt().sum()) == "", "an infinite gradient is no alarm"

came_out = False
try:
    with detect_anomaly():
        raise KeyError("left by an error")
except KeyError:
    came_out = True
assert came_out, "an error inside of the block goes on"
assert switches.anomaly is False, "a block that is left by an error puts the mode back"
### BEGIN HIDDEN TESTS
for outer in (True, False):
    with detect_anomaly(outer):
        for nested in (False, True):
            with detect_anomaly(nested):
                assert switches.anomaly is nested, "detect_anomaly(False) switches the mode off inside"
            assert switches.anomaly is outer, "an inner block puts back what the outer one has set"
        try:
            with detect_anomaly(not outer):
                raise KeyError("inside")
        except KeyError:
            assert switches.anomaly is outer, "also after an error"
    assert switches.anomaly is False, "and the outer block what was there before"
with detect_anomaly():
    assert not Switches.anomaly, "the mode of other threads stays off"
    later = detect_anomaly()
with later:
    pass
assert switches.anomaly is False, "what was there when the block began, not when the object was made"


def said_about(node, *shares):
    """The text of the error of check_shares, or "" if there is none."""
    try:
        check_shares(node, list(shares))
    except RuntimeError as error:
        return str(error)
    return ""


nan, one, infinite = np.array([np.nan, 1.0]), np.ones(2), np.array([np.inf, -np.inf])
node = (a * b).grad_fn
for shares in ((one, infinite), (one, None), (None, one), (infinite, None)):
    assert said_about(node, *shares) == "", f"there is no NaN in {shares}"
for shares, number in (((one, nan), 1), ((nan, one), 0), ((nan, nan), 0), ((None, nan), 1), ((infinite, nan), 1),
                       ((MiniTensor(one), MiniTensor(nan)), 1), ((one, one, nan), 2), ((np.array(np.nan), one), 0)):
    text = said_about(node, *shares)
    assert text == f"Function 'MulBackward0' returned nan values in its {number}th output.\n{NO_CALLS}", text
assert said_about(node, MiniTensor(one), MiniTensor(infinite)) == ""
late = (layer(rows) * 0.0).sum()
with detect_anomaly():
    text = alarm_of(late)
assert text == f"Function 'LinearBackward0' returned nan values in its 0th output.\n{NO_CALLS}", text
with detect_anomaly(False):
    assert alarm_of((layer(rows) * 0.0).sum()) == ""
with detect_anomaly():
    healthy = MiniTensor([1.0, 2.0], requires_grad=True)
    (healthy.log() * healthy.sqrt()).sum().backward()
assert np.isfinite(healthy.grad.data).all() and is_grad_enabled()
with detect_anomaly():
    node = (a * b).grad_fn
    inside = layer(rows).grad_fn  # recorded within calls of calls
assert len(inside.calls) > 1
for node, rule in ((node, "Mul"), (inside, "Linear")):
    text = said_about(node, one, None, nan)
    lines = [f"Function '{rule}Backward0' returned nan values in its 2th output.", *node.calls]
    assert text.splitlines() == lines, f"the calls follow, a line each: {lines}, not {text}"
### END HIDDEN TESTS

# %% [markdown] items="106"
# The alarm on the careless lengths. The line to look at is the last one.

# %% items="106"
x = MiniTensor([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]], requires_grad=True)
try:
    with detect_anomaly():
        careless_lengths(x).sum().backward()
except RuntimeError as error:
    print(error)

# %% [markdown] items="F19"
# ### What it does not see
#
# Anomaly mode is often recommended as *the* way to find NaN, infinities and wrong numbers. **Predict**, for each line: is there an alarm? The last line has a rule that is wrong by a factor of 2.

# %% tags=["demo"] items="F19 106"
class WrongSquare(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * a  # should be 2 * a


class WrongSquareTorch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * a


def branch(x):
    if isinstance(x, MiniTensor):
        return where(x.data > 1, (x - 1).log(), 0.0)
    return torch.where(x > 1, (x - 1).log(), 0 * x)


def wrong_square(x):
    return (WrongSquare if isinstance(x, MiniTensor) else WrongSquareTorch).apply(x)


def alarm(function, leaf, mode):
    """Value and gradient without the mode, and whether the mode raises."""
    output = function(leaf)
    output.backward()
    value, slope = output.item(), leaf.grad.item()
    try:
        with mode():
            function(leaf).backward()
        return value, slope, "-"
    except RuntimeError:
        return value, slope, "alarm"


cases = {
    "log(-1)": lambda x: (x - 2).log(),
    "1 / 0": lambda x: 1 / (x - 1),
    "exp(1000)": lambda x: (x * 1000).exp(),
    "sqrt(0)": lambda x: (x - 1).sqrt(),
    "sqrt(-1)": lambda x: (x - 2).sqrt(),
    "0 / 0": lambda x: (x - 1) / (x - 1),
    "where(x > 1, log(x - 1), 0)": branch,
    "a wrong rule for 1**2": wrong_square,
}
print(f"{'':29s} value  gradient   yours   PyTorch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch prints the forward call as a warning
    for name, function in cases.items():
        value, slope, yours = alarm(function, MiniTensor(1.0, requires_grad=True), detect_anomaly)
        leaf = torch.tensor(1.0, dtype=torch.double, requires_grad=True)
        *_, theirs = alarm(function, leaf, torch.autograd.detect_anomaly)
        print(f"{name:29s} {value:5.0f} {slope:9.0f}   {yours:7s} {theirs}")

# %% [markdown] items="F19"
# Both modes agree in each line. There is no alarm for `log(-1)`, where the loss itself is NaN, because the slope `1 / x` is a fine number. None for infinite values and gradients. And none for the wrong rule: anomaly mode looks for one thing only, a rule that returns NaN. Whether a rule is *right*, `gradcheck` of lesson 08 tells:

# %% tags=["demo"] items="F19"
try:
    print(gradcheck(WrongSquare.apply, [MiniTensor(3.0, requires_grad=True)]))
except RuntimeError as error:
    print(type(error).__name__, "-", str(error).splitlines()[0])

# %% [markdown] items="106"
# And its price? Each node looks at the running calls, and each share is read once more. **Predict** for which networks that is expensive: narrow or wide ones?

# %% tags=["demo"] items="106"
def slowdown(step, slow, repeats=9):
    """How much longer a step takes in the mode `slow`: the middle of the times, taken in turn."""
    times = {slow: [], off: []}
    for _ in range(repeats):
        for mode in times:
            with mode():
                start = time.perf_counter()
                step()
                times[mode].append(time.perf_counter() - start)
    return np.median(times[slow]) / np.median(times[off])


def off():
    return detect_anomaly(False)


def price(width, rows):
    """The times of a step in anomaly mode, relative to the same step without: yours, PyTorch's."""
    model = Sequential(*(part for _ in range(3) for part in (LinearLayer(width, width), TanhLayer())))
    layers = [part for _ in range(3) for part in (torch.nn.Linear(width, width), torch.nn.Tanh())]
    model_torch, batch = torch.nn.Sequential(*layers), np.ones((rows, width))
    batch_torch = torch.ones(rows, width)
    yours = slowdown(lambda: model(batch).sum().backward(), detect_anomaly)
    theirs = slowdown(lambda: model_torch(batch_torch).sum().backward(), torch.autograd.detect_anomaly)
    return yours, theirs


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyTorch warns that the mode is slow
    for width, rows in ((8, 8), (400, 200)):
        yours, theirs = price(width, rows)
        print(f"width {width:4d}: yours x {yours:4.1f}   PyTorch x {theirs:4.1f}")

# %% [markdown] items="106"
# The price is per node, so it weighs where the nodes are cheap. In either case: switch it on when there is a NaN to find, on the one batch that shows it, and off again.

# %% [markdown] items="107 109"
# ## 2. Norms of gradients
#
# The second instrument is a number per parameter: the length of its gradient. It must tell apart two things that are easily mixed up. A gradient of **zeros** has arrived: there is a way from the loss to the parameter, and its slope is zero. A gradient of **None** has not: there is no way.
#
# ### Exercise 2: the norms

# %% [markdown] tags=["hint"] exercise="norms"
# `model.named_parameters()` gives the pairs, and `np.linalg.norm(array)` the length of an array of any shape; of a single number too.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "norms", "locked": false, "schema_version": 3, "solution": true, "task": false}
def grad_norms(model):
    """The Euclidean norm of the gradient of each parameter.

    model: Module, which stays as it is
    Returns: dict from the name of each parameter, in their order, to a float, or to None if its
        .grad is None. The norm is over all entries; NaN and infinity stay what they are.

    >>> layer = Module()
    >>> layer.weight, layer.unused = Parameter([[1.0, 2.0]]), Parameter(5.0)
    >>> (layer.weight * [[3.0, 4.0]]).sum().backward()
    >>> grad_norms(layer)
    {'weight': 5.0, 'unused': None}
    """
    ### BEGIN SOLUTION
    norms = {}
    for name, parameter in model.named_parameters():
        grad = parameter.grad
        norms[name] = None if grad is None else float(np.linalg.norm(grad.data))
    return norms
    ### END SOLUTION

# %% tags=["style:compact"] exercise="norms"
def grad_norms(model):
    return {n: p.grad if p.grad is None else (p.grad.data**2).sum().item() ** 0.5 for n, p in model.named_parameters()}

# %% nbgrader={"grade": true, "grade_id": "test_norms", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
def with_gradients(**gradients):
    """A module with one parameter per argument, whose gradient is the argument."""
    module = Module()
    for name, value in gradients.items():
        setattr(module, name, Parameter(np.zeros(np.shape(value)) if value is not None else 0.0))
        getattr(module, name).grad = None if value is None else MiniTensor(value)
    return module


model = Module()
model.first = with_gradients(weight=[[1.0, 2.0], [2.0, 4.0]], bias=None)
model.second = with_gradients(weight=[0.0, 0.0], scale=-7.0)
norms = grad_norms(model)
right = ["first.weight", "first.bias", "second.weight", "second.scale"]
assert list(norms) == right, f"the names should be {right}, not {list(norms)}"
assert norms["first.bias"] is None, "where no gradient has arrived, the value is None"
assert norms["second.weight"] is not None, "a gradient of zeros has arrived: it is 0, not None"
assert all(norm is None or isinstance(norm, float) for norm in norms.values()), "plain floats"
assert norms["second.weight"] == 0.0, f"the norm of zeros is 0, not {norms['second.weight']}"
for name, norm in (("first.weight", 5.0), ("second.scale", 7.0)):
    assert np.isclose(norms[name], norm), f"{name}: the Euclidean norm is {norm}, not {norms[name]}"
### BEGIN HIDDEN TESTS
assert model.first.bias.grad is None and model.first.weight.grad is not None, "the model stays as it is"
assert np.array_equal(model.first.weight.grad.data, [[1.0, 2.0], [2.0, 4.0]])
odd = grad_norms(with_gradients(a=[np.nan, 1.0], b=[-np.inf, 1.0], c=np.full((2, 3, 4), -0.5)))
assert np.isnan(odd["a"]) and odd["b"] == np.inf, odd
assert np.isclose(odd["c"], 6.0**0.5), odd
assert grad_norms(Module()) == {}
matrix = np.random.default_rng(3).normal(size=(4, 3))
assert np.isclose(grad_norms(with_gradients(w=matrix))["w"], np.sqrt((matrix**2).sum())), "not the matrix norm"
shared = Module()
shared.one = with_gradients(weight=[3.0, 4.0])
shared.two = shared.one
assert grad_norms(shared) == {"one.weight": 5.0}
### END HIDDEN TESTS

# %% [markdown] items="107"
# Three trainings of the same network on the same data: a healthy one; one whose step is far too large at first; one where a single target is a typing error, 1000 instead of 1. **Predict** what the norms show.

# %% tags=["demo"] items="107"
def waves(rows=120, seed=1):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 4))
    return x, np.sin(x.sum(axis=1, keepdims=True))


def small_network(seed=1):
    manual_seed(seed)
    return Sequential(LinearLayer(4, 16), ReLU(), LinearLayer(16, 16), ReLU(), LinearLayer(16, 1))


def norms_in_training(first_step=0.1, typing_error=False, steps=60):
    """The model, and for each step the norms of the three weights' gradients."""
    (x, y), model, log = waves(), small_network(), []
    if typing_error:
        y[95] = 1000.0
    optimizer = SGD(model.parameters(), lr=first_step)
    for step in range(steps):
        rows = slice(step % 6 * 20, step % 6 * 20 + 20)
        train_step(model, optimizer, mse_loss, MiniTensor(x[rows]), MiniTensor(y[rows]))
        optimizer.lr = 0.1 if not typing_error else 1e-5
        log.append([norm for name, norm in grad_norms(model).items() if "weight" in name])
    return model, np.array(log)


runs = {
    "healthy": norms_in_training(),
    "first step 50 instead of 0.1": norms_in_training(first_step=50.0),
    "one target 1000 (lr 1e-5)": norms_in_training(first_step=1e-5, typing_error=True),
}
for name, (_, norms) in runs.items():
    print(f"{name:30s} first layer, steps 0, 1, 30, 58, 59:", norms[[0, 1, 30, 58, 59], 0].round(4))

# %% tags=["demo"] items="107"
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3), layout="constrained")
for axis, (name, (_, norms)) in zip(axes, runs.items()):
    for column, label in enumerate(("first layer", "second", "third")):
        axis.plot(np.maximum(norms[:, column], 1e-12), label=label, alpha=0.8)
    axis.set(title=name, xlabel="step", yscale="log")
    axis.title.set_fontsize(10)
axes[0].set_ylabel("norm of the gradient")
axes[0].legend(fontsize=8)
plt.show()

# %% [markdown] items="107"
# *A zero that stays*: after one huge step the gradients explode for a while, at a learning rate that is harmless otherwise; then the first layers get exactly 0, and nothing brings them back. (The lowest line of the picture stands for 0.) *A spike that returns*: every sixth step, whenever the batch with the typing error comes. A norm says in which layer and in which step to look; it does not say why.
#
# Why zero? A ReLU unit that is negative for all rows sends nothing back. A norm of a whole layer does not show single units. For that you must look at the outputs of layers.
#
# ## 3. Outputs of layers
#
# Anomaly mode looks at the backward pass. A NaN that appears in the *forward* pass, `log(-1)`, it may miss. The third instrument looks at what each layer returns.
#
# ### Exercise 3: the first that is not finite
#
# A model calls its layers by `Module.__call__`. Whoever replaces that method for a while sees them all; whoever forgets to put it back has broken all models of the program. PyTorch has `register_forward_hook` for this purpose.

# %% [markdown] tags=["hint"] exercise="outputs"
# Keep `Module.__call__` in a variable, assign a function of your own that calls the kept one and notes its result, and put the kept one back in a `finally`.

# %% [markdown] tags=["hint"] exercise="outputs"
# A dict from module to name: `{module: name for name, module in model.named_modules()}`. A module without modules inside has an empty `_modules`.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "outputs", "locked": false, "schema_version": 3, "solution": true, "task": false}
def layer_outputs(model, x):
    """Run model(x) once, unrecorded, and keep what its layers return.

    model: Module. Its layers are the modules in it that have no modules inside (the model itself, if
        it has none). A module that model.named_modules() does not know is no layer.
    x: array or MiniTensor
    Returns: list of pairs (name, output), in the order in which the layers returned; output is the
        MiniTensor that the layer returned. A layer that is called twice comes twice.
    The mode of the model stays as it is. Module.__call__ is put back, also after an error. (In
    training mode, running statistics move, as in every forward pass.)

    >>> model = Sequential(TanhLayer(), ReLU())
    >>> [(name, output.data.tolist()) for name, output in layer_outputs(model, [0.0])]
    [('0', [0.0]), ('1', [0.0])]
    """
    ### BEGIN SOLUTION
    names = {module: name for name, module in model.named_modules() if not module._modules}
    found, call = [], Module.__call__

    def watched(self, *inputs, **options):
        output = call(self, *inputs, **options)
        if self in names:
            found.append((names[self], output))
        return output

    Module.__call__ = watched
    try:
        with no_grad():
            model(x)
    finally:
        Module.__call__ = call
    return found
    ### END SOLUTION


def first_bad(model, x):
    """The name of the first layer that returns a NaN or an infinity, in one run of model(x).

    Returns: "input" if x itself has one; else the name of the layer, as in layer_outputs; None if
        the outputs of all layers are finite

    >>> model = Sequential(TanhLayer(), ReLU())
    >>> first_bad(model, [1.0, 2.0]) is None, first_bad(model, [np.inf])
    (True, 'input')
    """
    ### BEGIN SOLUTION
    if not np.isfinite(as_tensor(x).data).all():
        return "input"
    for name, output in layer_outputs(model, x):
        if not np.isfinite(output.data).all():
            return name
    return None
    ### END SOLUTION

# %% tags=["style:compact"] exercise="outputs"
def layer_outputs(model, x):
    found, layers = [], [(name, part) for name, part in model.named_modules() if len(part._modules) == 0]
    try:
        for name, part in layers:
            def noted(*inputs, name=name, forward=part.forward, **options):
                found.append([name, None])
                place = found[-1]
                place[1] = forward(*inputs, **options)
                return place[1]

            noted.own = vars(part).get("forward")
            vars(part)["forward"] = noted
        with no_grad():
            model(x)
    finally:
        for _, part in layers:
            own = vars(part).pop("forward").own
            if own is not None:
                vars(part)["forward"] = own
    return [tuple(pair) for pair in found]


def first_bad(model, x):
    pairs = [("input", as_tensor(x)), *layer_outputs(model, x)]
    return next((name for name, value in pairs if np.isnan(value.data * 0.0).any()), None)

# %% nbgrader={"grade": true, "grade_id": "test_outputs", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
class Step(Module):
    """Computes what the function says."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(as_tensor(x))


class Fails(Module):
    def forward(self, x):
        raise RuntimeError("this layer fails")


call = Module.__call__
double = Step(lambda x: x * 2)
inner = Sequential(double, Step(lambda x: x - 4))
model = Sequential(inner, Step(lambda x: x.log()), double)
pairs = layer_outputs(model, [3.0, 2.5])
assert Module.__call__ is call, "Module.__call__ is to be put back"
found, right = [name for name, _ in pairs], ["0.0", "0.1", "1", "0.0"]
assert found == right, f"the layers that return are {right}, not {found}"
assert all(isinstance(output, MiniTensor) for _, output in pairs), "outputs as the layers returned them"
values = [np.array(output.data) for _, output in pairs]
assert np.allclose(values[1], [2.0, 1.0]), f"layer 0.1 returns [2, 1], not {values[1]}"
right = 2 * np.log([2.0, 1.0])
assert np.allclose(values[3], right), f"the last layer returns {right}, not {values[3]}"
for entry, right, why in (
    (2.5, None, "all outputs are finite"),
    (1.0, "1", "layer 1 returns log(-2), which is NaN"),
    (2.0, "1", "layer 1 returns log(0), which is minus infinity"),
    (np.nan, "input", "the input has a NaN"),
):
    found = first_bad(model, [3.0, entry])
    assert found == right, f"first_bad(model, [3.0, {entry}]): {why}; {right!r}, not {found!r}"
try:
    layer_outputs(Sequential(double, Fails()), [1.0])
    said = "no error"
except RuntimeError as error:
    said = str(error)
assert said == "this layer fails", "the error of the layer comes through"
assert Module.__call__ is call, "Module.__call__ is to be put back after an error"
### BEGIN HIDDEN TESTS
assert np.allclose(model(MiniTensor([3.0])).data, 2 * np.log(2.0)), "the model computes as before"
assert "forward" not in vars(double), "the layers stay as they are"
recorded = Sequential(LinearLayer(2, 3), ReLU())
for mode in (True, False):
    recorded.train(mode)
    pairs = layer_outputs(recorded, np.ones((2, 2)))
    assert not pairs[0][1].requires_grad, "unrecorded"
    assert recorded.training is mode and recorded[1].training is mode, "the mode stays"
assert is_grad_enabled()
try:
    layer_outputs(Sequential(Fails()), [1.0])
except RuntimeError:
    pass
assert is_grad_enabled(), "recording is on again after an error"


class Hidden(Module):
    """Keeps a layer in a list."""

    def __init__(self):
        super().__init__()
        self.layers = [Step(lambda x: x * np.inf)]
        self.last = Step(lambda x: x.tanh())

    def forward(self, x):
        return self.last(self.layers[0](x))


assert [name for name, _ in layer_outputs(Hidden(), [1.0])] == ["last"], "the list is not known"
assert first_bad(Hidden(), [1.0]) is None and first_bad(Hidden(), [0.0]) == "last"
alone = layer_outputs(double, [1.0])
assert [name for name, _ in alone] == [""] and np.allclose(alone[0][1].data, [2.0]), "a model that is a layer"
own = Module()
own.forward = lambda x: as_tensor(x) + 1
assert np.allclose(layer_outputs(Sequential(own), [1.0])[0][1].data, [2.0])
assert np.allclose(own(MiniTensor(1.0)).data, 2.0), "a forward of its own is still there"
assert first_bad(Sequential(Step(lambda x: x / 0), Step(lambda x: x * 0)), [1.0]) == "0", "the first"
assert first_bad(Sequential(Step(lambda x: x + 1)), MiniTensor([[1.0, -np.inf]])) == "input"
normal = BatchNorm1d(2)
normal.eval()
layer_outputs(Sequential(normal), np.ones((3, 2)))
assert normal.num_batches_tracked.item() == 0
normal.train()
layer_outputs(Sequential(normal), np.ones((3, 2)))
assert normal.num_batches_tracked.item() == 1, "the model runs once"
first_bad(Sequential(normal), np.ones((3, 2)))
assert normal.num_batches_tracked.item() == 2, "first_bad needs one run of the model"
assert first_bad(Step(lambda x: x / 0), [1.0]) == "", "a model that is a layer has the name of the outermost"


class Plus(Module):
    def forward(self, x, amount=1.0):
        return as_tensor(x) + amount


class Repeated(Module):
    """Calls its layer with an option."""

    def __init__(self):
        super().__init__()
        self.layer = Plus()

    def forward(self, x):
        return self.layer(x, amount=3.0)


assert np.allclose(layer_outputs(Repeated(), [1.0])[0][1].data, [4.0]), "options reach the layers"
### END HIDDEN TESTS

# %% [markdown] items="107"
# With the outputs, dead units can be counted: columns that are 0 for all rows behind a ReLU. The network whose first step was too large, and the healthy one:

# %% tags=["engine"]
def dead_units(model, x):
    """For each ReLU layer, by name: how many of its units are 0 for all rows of x, and of how many."""
    layers = dict(model.named_modules())
    return {
        name: f"{int((output.data == 0).all(axis=0).sum())} of {output.shape[-1]}"
        for name, output in layer_outputs(model, x)
        if isinstance(layers[name], ReLU)
    }

# %% tags=["demo"] items="107"
x, y = waves()
print("before the first step:       ", dead_units(small_network(), x))
for name, (model, _) in runs.items():
    print(f"{name:29s}", dead_units(model, x))

# %% [markdown]
# A unit that is 0 for all rows stays dead as long as its inputs stay: the gradient that could revive it is the one that it does not let through. Here all units of the second layer are dead, so the first layer gets nothing either, and only the last bias can still change.
#
# In lesson 01 three units were pushed down by 8. **Predict** from which shift on training moves them no more, in each of the three networks; then find it with the second and the third slider.

# %% tags=["demo"]
from mini_autograd.widgets import activations

activations(shift=-2.0, steps=80.0)

# %% [markdown]
# And a NaN in validation? Test for it where it costs little: one number per batch, and `first_bad` once the number is not finite. The data are from a sensor, and row 17 has a hole.

# %% tags=["demo"] items="108"
def checked_validation(model, batches, loss_function):
    """The loss of each batch; stops at the first that is not finite, and says where it comes from."""
    losses = []
    model.eval()
    with no_grad():
        for number, (x, y) in enumerate(batches):
            losses.append(loss_function(model(x), y).item())
            if not np.isfinite(losses[-1]):
                source = first_bad(model, x)
                raise RuntimeError(f"loss {losses[-1]} in validation batch {number}, from: {source}")
    return losses


x, y = waves()
x[17, 2] = np.nan
batches = DataLoader(TensorDataset(x, y), batch_size=10)
try:
    checked_validation(small_network(), batches, mse_loss)
except RuntimeError as error:
    print(error)
model = small_network()
model[2].weight.data[3, 5] = np.inf
try:
    checked_validation(model, DataLoader(TensorDataset(*waves()), batch_size=10), mse_loss)
except RuntimeError as error:
    print(error)

# %% [markdown] items="109 139"
# ## 4. Before it starts
#
# Some patients can be recognized before the first epoch, with one batch: layers that nobody knows, dead units, a loss that is cut off from the model. That is the fourth instrument: an examination that runs forward and backward once, looks, and leaves everything as it was.
#
# ### Exercise 4: the examination
#
# A layer in a plain list is the hardest to see: `model.parameters()` does not know its weights, so nobody misses them. But the graph knows them. Every leaf that takes part in the loss has an `AccumulateGrad` node there: `edge_to(leaf)[0]`, whose `variable` is the leaf.

# %% [markdown] tags=["hint"] exercise="preflight"
# Work through the list of findings from above to below. Before `backward`, keep what you change: the `.grad` of each leaf, and `{name: tensor.data.copy() ...}` of the state. Then set all `.grad` to `None`.

# %% [markdown] tags=["hint"] exercise="preflight"
# The leaves in the graph: `[node.variable for node in topological_order(loss.grad_fn) if isinstance(node, AccumulateGrad)]`. Tensors are compared as objects: `any(leaf is p for p in known)`, or by a set.

# %% [markdown] tags=["hint"] exercise="preflight"
# To put values back: `overwrite(tensor, array)` for the state, in a `finally`; assign `.grad` its former object. A weight that is written between forward and backward makes backward raise (lesson 09): put back the buffers only, or everything after backward.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "preflight", "locked": false, "schema_version": 3, "solution": true, "task": false}
def preflight(model, optimizer, loss_function, x, y):
    """Examine a training with one batch, before it starts.

    The loss is loss_function(model(x), y). Returns: list of texts, empty if all is well, in this order
    (names of parameters in the order of model.named_parameters()):
        "model is in evaluation mode"       if some module in it is
        "gradient from before: NAME"        for a parameter whose .grad is not None at the start
        "not in the optimizer: NAME"        for a parameter that optimizer.parameters does not have
        "loss has shape SHAPE"              if it has more or fewer entries than one; nothing more then
        "loss is VALUE"                     if it is nan, inf or -inf; VALUE is f"{loss.item()}"
        "loss does not require grad"        if so; nothing more then
        "not in the model: shape SHAPE"     for each leaf in the graph of the loss that is no parameter
            of the model, in any order
        and after backward, one for each parameter, the first that is true:
        "no gradient: NAME"                 .grad is still None
        "gradient is not finite: NAME"      it has a NaN or an infinity
        "zero gradient: NAME"               all its entries are 0
    Afterwards parameters, buffers, modes and .grad are what they were, also after an error (random
    numbers have been drawn, and the optimizer has made no step). SHAPE is such as (3, 4).

    >>> model = LinearLayer(2, 1)
    >>> x, y = np.ones((3, 2)), np.zeros((3, 1))
    >>> preflight(model, SGD([model.weight]), mse_loss, x, y)
    ['not in the optimizer: bias']
    >>> preflight(model.eval(), SGD(model.parameters()), lambda a, b: a.relu().sum() * 0.0, x, y)
    ['model is in evaluation mode', 'zero gradient: weight', 'zero gradient: bias']
    """
    ### BEGIN SOLUTION
    named = dict(model.named_parameters())
    findings = [] if all(part.training for part in model.modules()) else ["model is in evaluation mode"]
    findings += [f"gradient from before: {name}" for name, p in named.items() if p.grad is not None]
    held = set(optimizer.parameters)
    findings += [f"not in the optimizer: {name}" for name, p in named.items() if p not in held]
    state = {name: tensor.data.copy() for name, tensor in model.state_dict().items()}
    try:
        loss = loss_function(model(x), y)
    finally:
        for name, tensor in model.state_dict().items():
            if not np.array_equal(tensor.data, state[name], equal_nan=True):  # a buffer that has moved
                overwrite(tensor, state[name])
    if loss.data.size != 1:
        return [*findings, f"loss has shape {loss.shape}"]
    if not np.isfinite(loss.item()):
        findings.append(f"loss is {loss.item()}")
    if not loss.requires_grad:
        return [*findings, "loss does not require grad"]
    nodes = topological_order(edge_to(loss)[0])
    leaves = [node.variable for node in nodes if isinstance(node, AccumulateGrad)]
    own = set(named.values())
    findings += [f"not in the model: shape {leaf.shape}" for leaf in leaves if leaf not in own]
    touched = own | set(leaves)
    before = {tensor: tensor.grad for tensor in touched}
    try:
        for tensor in touched:
            tensor.grad = None
        loss.backward(np.ones(loss.shape))
        for name, parameter in named.items():
            if parameter.grad is None:
                findings.append(f"no gradient: {name}")
            elif not np.isfinite(parameter.grad.data).all():
                findings.append(f"gradient is not finite: {name}")
            elif not parameter.grad.data.any():
                findings.append(f"zero gradient: {name}")
    finally:
        for tensor, grad in before.items():
            tensor.grad = grad
    return findings
    ### END SOLUTION

# %% tags=["style:compact"] exercise="preflight"
def gradient_finding(grad):
    if grad is None:
        return "no gradient"
    values = np.abs(grad.data).sum()
    return "gradient is not finite" if not values < np.inf else "zero gradient" if values == 0 else ""


def preflight(model, optimizer, loss_function, x, y):
    names, parameters = zip(*model.named_parameters())
    say = []
    if not min(module.training for module in model.modules()):
        say.append("model is in evaluation mode")
    say += ["gradient from before: " + name for name, p in zip(names, parameters) if p.grad is not None]
    known = {id(p) for p in optimizer.parameters}
    say += ["not in the optimizer: " + name for name, p in zip(names, parameters) if id(p) not in known]
    saved, kept = {name: t.data.copy() for name, t in model.state_dict().items()}, []
    try:
        loss = loss_function(model(x), y)
        for name, tensor in model.state_dict().items():
            tensor.data[...] = saved[name]
        if loss.data.size != 1:
            return say + [f"loss has shape {loss.shape}"]
        if np.isnan(loss.item() * 0.0):
            say.append(f"loss is {loss.item()}")
        if not loss.requires_grad:
            return say + ["loss does not require grad"]
        graph = topological_order(edge_to(loss)[0])
        leaves = [node.variable for node in graph if isinstance(node, AccumulateGrad)]
        foreign = [leaf for leaf in leaves if not any(leaf is p for p in parameters)]
        say += [f"not in the model: shape {leaf.shape}" for leaf in foreign]
        kept = [(leaf, leaf.grad) for leaf in (*parameters, *foreign)]
        for leaf, _ in kept:
            leaf.grad = None
        loss.backward(np.ones_like(loss.data))
        texts = [(gradient_finding(p.grad), name) for name, p in zip(names, parameters)]
        return say + [f"{text}: {name}" for text, name in texts if text]
    finally:
        for name, tensor in model.state_dict().items():
            tensor.data[...] = saved[name]
        for leaf, former in kept:
            leaf.grad = former

# %% nbgrader={"grade": true, "grade_id": "test_preflight", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
class Patient(Module):
    """x @ weight + bias, and a parameter that nothing uses."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = Parameter([[1.0], [-2.0]]), Parameter([0.5])
        self.spare = Parameter([[1.0, 2.0, 3.0]])

    def forward(self, x):
        return as_tensor(x) @ self.weight + self.bias


def same(found, wanted, what):
    assert list(found) == wanted, f"{what}: found {found}, expected {wanted}"


switches.anomaly = False  # should exercise 1 have left the mode on
x, y = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]]), np.array([[1.0], [2.0], [-1.0]])
model = Sequential(LinearLayer(2, 3), TanhLayer(), LinearLayer(3, 1))
same(preflight(model, SGD(model.parameters()), mse_loss, x, y), [], "a healthy training")
assert all(parameter.grad is None for parameter in model.parameters()), "every .grad is None again"
patient = Patient()
found = preflight(patient, SGD(patient.parameters()), mse_loss, x, y)
same(found, ["no gradient: spare"], "a spare parameter")
patient.bias.grad = kept = MiniTensor([7.0])
patient.spare.grad = spare_kept = MiniTensor([[1.0, 1.0, 1.0]])
patient.eval()
wanted = ["model is in evaluation mode", "gradient from before: bias", "gradient from before: spare"]
wanted += ["not in the optimizer: weight"]
found = preflight(patient, SGD([patient.bias, patient.spare]), mse_loss, x, y)
same(found, [*wanted, "no gradient: spare"], "several findings")
assert patient.bias.grad is kept and patient.spare.grad is spare_kept, ".grad is the object that it was"
assert np.allclose(kept.data, 7.0), "and has the same numbers"
assert patient.weight.grad is None, "a .grad that was None is None again"
assert not patient.training, "the mode stays"
### BEGIN HIDDEN TESTS
def examined(loss_function, model, x=x):
    return preflight(model, SGD(model.parameters()), loss_function, x, y)


fresh = Patient()
spare = "no gradient: spare"
same(examined(lambda a, b: a, fresh), ["loss has shape (3, 1)"], "a loss with three entries")
same(examined(lambda a, b: a.detach().sum(), fresh), ["loss does not require grad"], "detached")
same(examined(lambda a, b: a.detach().sum() * np.nan, fresh), ["loss is nan", "loss does not require grad"], "both")
same(examined(lambda a, b: a.sum().reshape(1, 1), fresh), [spare], "one entry of shape (1, 1)")
same(examined(lambda a, b: a.sum() * 0.0, fresh), ["zero gradient: weight", "zero gradient: bias", spare], "zeros")
same(examined(lambda a, b: (a - 1e9).relu().sum(), fresh), ["zero gradient: weight", "zero gradient: bias", spare], "dead")
bad = ["gradient is not finite: weight", "gradient is not finite: bias", spare]
same(examined(lambda a, b: a.sum() * np.inf, fresh), ["loss is -inf" if fresh(x).sum().item() < 0 else "loss is inf", *bad], "infinite")
same(examined(lambda a, b: a.sum() * np.nan, fresh), ["loss is nan", *bad], "NaN")
same(examined(lambda a, b: ((a - a) ** 0.5).sum(), fresh), bad, "a finite loss with an infinite gradient")
same(examined(lambda a, b: a.sum() * MiniTensor([2.0], requires_grad=True), fresh), ["not in the model: shape (1,)", spare], "a leaf outside")
partly = examined(lambda a, b: (a * np.array([[1.0], [0.0], [0.0]])).sum(), fresh, x * [[1.0, 0.0]])
same(partly, [spare], "some entries are zero, not all")
opposite = examined(lambda a, b: (a * np.array([[1.0], [0.0], [0.0]])).sum(), fresh, x * 0 + [[1.0, -1.0]])
same(opposite, [spare], "entries that add up to zero are not zero")
same(examined(lambda a, b: a.sum() * 1e-12, fresh), [spare], "a small gradient is not zero")
fresh.spare.grad = kept = MiniTensor([[1.0, 1.0, 1.0]])
seen = preflight(fresh, SGD([fresh.bias]), mse_loss, x, y)
outside = ["not in the optimizer: weight", "not in the optimizer: spare"]
same(seen, ["gradient from before: spare", *outside, spare], "a leftover that the optimizer does not know")
assert fresh.spare.grad is kept
fresh.spare.grad = None


class Listed(Module):
    def __init__(self):
        super().__init__()
        self.hidden = [LinearLayer(2, 4)]
        self.last = LinearLayer(4, 1)

    def forward(self, x):
        return self.last(self.hidden[0](x).tanh())


listed = Listed()
seen = examined(mse_loss, listed)
same(sorted(seen), ["not in the model: shape (4, 2)", "not in the model: shape (4,)"], "a layer in a list")
assert listed.hidden[0].weight.grad is None, "the leaves outside of the model get their .grad back too"
mixed = Sequential(BatchNorm1d(2), Dropout(0.5), LinearLayer(2, 1))
before = {name: tensor.data.copy() for name, tensor in mixed.state_dict().items()}
mixed[1].eval()
assert "model is in evaluation mode" in examined(mse_loss, mixed), "one module in evaluation mode"
assert mixed.training and not mixed[1].training and mixed[0].training, "the modes stay"
for name, tensor in mixed.state_dict().items():
    assert np.array_equal(tensor.data, before[name]), f"{name} has changed"


class Fragile(Function):
    @staticmethod
    def forward(ctx, a):
        return a * 1.0

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("the rule fails")


def fails(prediction, target):
    raise RuntimeError("the loss fails")


mixed[2].weight.grad = kept = MiniTensor([[1.0, 2.0]])
buffers = {name: tensor for name, tensor in mixed.state_dict().items()}
for loss_function, wanted in ((fails, "the loss fails"), (lambda a, b: Fragile.apply(a).sum(), "the rule fails")):
    try:
        examined(loss_function, mixed)
        said = "no error"
    except RuntimeError as error:
        said = str(error)
    assert said == wanted, f"the error should come through: {wanted}, not {said}"
    assert mixed[2].weight.grad is kept and mixed[2].bias.grad is None, ".grad after an error"
    for name, tensor in mixed.state_dict().items():
        assert np.array_equal(tensor.data, before[name]), f"{name} has changed, after an error"
    assert np.array_equal(buffers["0.running_mean"].data, before["0.running_mean"]), "put back in place"
adam = Adam(model.parameters(), lr=1.0)
weights = model[0].weight.data.copy()
preflight(model, adam, mse_loss, x, y)
assert np.array_equal(model[0].weight.data, weights) and not any(adam.states), "no step is made"
### END HIDDEN TESTS

# %% [markdown] items="109"
# The last three findings are the assertion that every training deserves: *some parameter has received a gradient that is not zero*. In PyTorch it is one line, after the first `backward`:
#
#     assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
#
# The network whose first step was too large passes it: the last bias still moves. Your examination is sharper.

# %% tags=["demo"] items="109"
model, _ = runs["first step 50 instead of 0.1"]
model.zero_grad()
x, y = waves()
for finding in preflight(model, SGD(model.parameters()), mse_loss, x, y):
    print(finding)

# %% [markdown] items="137 110"
# ## 5. Eight patients
#
# Each patient is a short piece of a training, with a symptom. For each: run the cell, **find the cause before you read on**, and repair it in the exercise. The repairs are short, one to three lines.
#
# **Patients 1 and 2** train. The loss of the first falls without end; the second does not learn at all. What does the first one *want*?

# %% tags=["demo"] items="137"
def patient_1(model, optimizer, x, y, steps):
    losses = []
    for _ in range(steps):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def patient_2(model, optimizer, x, y, steps):
    losses = []
    for _ in range(steps):
        loss = mse_loss(model(x), y)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses


x, y = waves()
for patient in (patient_1, patient_2):
    model = small_network()
    losses = patient(model, SGD(model.parameters(), lr=0.0002), x, y, 31)
    print(patient.__name__, "losses:", *(f"{loss:10.3g}" for loss in losses[::10]))
    print(f"   against the target: {mse_loss(model(x), y).item():.3g}", end="   ")
    print("norm of the first gradient:", grad_norms(model)["0.weight"])

# %% [markdown]
# **Patient 3** learns, slowly and badly, and nobody complains; `mse_loss` would at least have warned. The target has shape `(120,)`, the prediction `(120, 1)`. **Predict** the shape of their difference, and the loss of a *perfect* prediction.

# %% tags=["demo"]
def patient_3(prediction, target):
    return ((prediction - target) ** 2).mean()


x, y = waves()
print("shape of the difference:", (MiniTensor(y) - y[:, 0]).shape)
print("a perfect prediction:   ", round(patient_3(MiniTensor(y), y[:, 0]).item(), 3))
print("always the mean:        ", round(patient_3(MiniTensor(0 * y + y.mean()), y[:, 0]).item(), 3))

# %% [markdown] items="gap:where_sqrt"
# For this loss it is better to say the mean always than to be right.
#
# **Patient 4** you know: the lengths from the beginning of the lesson. It is of no use to choose after the root; the root must not see the zero. Choose *before* it as well, so that it gets some harmless number where the result will not be used. With PyTorch:

# %% tags=["demo"] items="gap:where_sqrt"
x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
squares = (x**2).sum(dim=1)
harmless = torch.where(squares > 0, squares, torch.ones(2))
torch.where(squares > 0, harmless.sqrt(), torch.zeros(2)).sum().backward()
print(x.grad)

# %% [markdown] items="137 gap:where_sqrt"
# ### Exercise 5: patients 1 to 4

# %% [markdown] tags=["hint"] exercise="repair_one"
# The order of a step: clear, forward, loss against the target, backward, step. Patient 1 lacks two parts; patient 2 has all of them, in the wrong order.

# %% [markdown] tags=["hint"] exercise="repair_one"
# Patient 3: give the target the shape of the prediction, if it has as many entries: `as_tensor(target).reshape(*prediction.shape)`.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "repair_one", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fit(model, optimizer, x, y, steps):
    """Patients 1 and 2, repaired: so many steps on one batch, for the smallest mse_loss(model(x), y).

    Each step uses the gradient of its own loss only, whatever .grad was before, also before the first.
    Returns: list of the losses as floats, each with the weights before its step

    >>> w = Module()
    >>> w.value = Parameter([1.0])
    >>> w.forward = lambda x: x * w.value
    >>> fit(w, SGD([w.value], lr=0.25), MiniTensor([1.0]), MiniTensor([3.0]), 3)
    [4.0, 1.0, 0.25]
    """
    losses = []
    for _ in range(steps):
        ### BEGIN SOLUTION
        optimizer.zero_grad()
        loss = mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        ### END SOLUTION
        losses.append(loss.item())
    return losses


def column_loss(prediction, target):
    """Patient 3, repaired: the mean of the squared differences, row by row.

    prediction: MiniTensor of shape (rows, 1)
    target: array or MiniTensor of shape (rows,) or (rows, 1)
    Returns: MiniTensor of shape ()
    Raises: ValueError, with both shapes in its text, if the target has another shape

    >>> column_loss(MiniTensor([[1.0], [2.0]]), np.array([1.0, 4.0])).item()
    2.0
    """
    ### BEGIN SOLUTION
    target, rows = as_tensor(target), prediction.shape[0]
    if target.shape not in ((rows,), (rows, 1)):
        raise ValueError(f"a target of shape {target.shape} does not fit a prediction of {prediction.shape}")
    return mse_loss(prediction, target.reshape(rows, 1))
    ### END SOLUTION


def lengths(x):
    """Patient 4, repaired: the Euclidean length of each row. At a row of zeros, the gradient is 0.

    x: MiniTensor of shape (rows, columns); the result has shape (rows,)

    >>> x = MiniTensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    >>> lengths(x).sum().backward()
    >>> x.grad.data
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    squares = (x * x).sum(1)
    some = squares.data > 0
    ### BEGIN SOLUTION
    harmless = where(some, squares, 1.0)
    return where(some, harmless.sqrt(), 0.0)
    ### END SOLUTION

# %% tags=["style:compact"] exercise="repair_one"
def fit(model, optimizer, x, y, steps):
    losses = []
    while len(losses) < steps:
        loss = ((model(x) - y) ** 2).mean()
        for parameter in optimizer.parameters:
            parameter.grad = None
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


def column_loss(prediction, target):
    values = target.data if isinstance(target, MiniTensor) else np.asarray(target)
    if values.ndim not in (1, 2) or len(values) != len(prediction.data) or values.size != len(values):
        raise ValueError(f"{prediction.shape} and {values.shape} do not fit")
    differences = prediction.reshape(-1) - as_tensor(target).reshape(-1)
    return (differences * differences).mean()


def lengths(x):
    squares = (x * x).sum(1)
    empty = (squares.data == 0) * 1.0
    return (squares + empty).sqrt() - empty

# %% nbgrader={"grade": true, "grade_id": "test_repair_one", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
def line(slope):
    module = Module()
    module.slope = Parameter([[float(slope)]])
    module.forward = lambda x: as_tensor(x) * module.slope
    return module


def expected_fit(slope, x, y, lr, steps):
    losses = []
    for _ in range(steps):
        losses.append(float(((x * slope - y) ** 2).mean()))
        slope -= lr * (2 * (x * slope - y) * x).mean()
    return losses, slope


x, y = np.array([[1.0], [2.0], [-0.5]]), np.array([[2.0], [1.0], [3.0]])
model = line(3.0)
losses, slope = expected_fit(3.0, x, y, 0.1, 6)
found = fit(model, SGD(model.parameters(), lr=0.1), x, y, 6)
assert len(found) == 6, f"one loss per step: 6, not {len(found)}"
assert np.allclose(found, losses), f"the losses should be\n{losses}\nnot\n{found}"
assert np.isclose(model.slope.item(), slope), "the weights after the last step"

prediction = MiniTensor([[1.0], [2.0], [4.0]], requires_grad=True)
loss = column_loss(prediction, np.array([0.0, 2.0, 1.0]))
loss.backward()
assert loss.shape == () and np.isclose(loss.item(), 10 / 3), f"the mean of 1, 0 and 9, not {loss}"
right = [[2 / 3], [0.0], [2.0]]
assert np.allclose(prediction.grad.data, right), f"the gradient is {right}, not {prediction.grad.data}"

x = MiniTensor([[0.0, 0.0], [5.0, -12.0]], requires_grad=True)
result = lengths(x)
result.backward([3.0, 13.0])
assert np.allclose(result.data, [0.0, 13.0]), f"the lengths are 0 and 13, not {result.data}"
right = np.array([[0.0, 0.0], [5.0, -12.0]])
assert np.allclose(x.grad.data, right), f"the gradient is\n{right}\nnot\n{x.grad.data}"
### BEGIN HIDDEN TESTS
trained = line(-1.0)
trained.slope.grad = MiniTensor([[1000.0]])
given, y = np.array([[1.0], [2.0], [-0.5]]), np.array([[2.0], [1.0], [3.0]])
falling, slope = expected_fit(-1.0, given, y, 0.05, 4)
fitted = fit(trained, SGD(trained.parameters(), lr=0.05), MiniTensor(given), MiniTensor(y), 4)
assert np.allclose(fitted, falling) and np.isclose(trained.slope.item(), slope), "a gradient from before does not count"
assert all(isinstance(loss, float) for loss in fitted)
assert fit(trained, SGD(trained.parameters()), given, y, 0) == []
for target in ([[0.0], [2.0], [1.0]], MiniTensor([0.0, 2.0, 1.0]), MiniTensor([[0.0], [2.0], [1.0]])):
    assert np.isclose(column_loss(prediction, target if isinstance(target, MiniTensor) else np.array(target)).item(), 10 / 3)
for wrong in (np.zeros(4), np.zeros((1, 3)), np.zeros(1), np.zeros((3, 3)), np.zeros(())):
    try:
        column_loss(prediction, wrong)
        said = "no ValueError"
    except ValueError as error:
        said = str(error)
    assert "(3, 1)" in said and str(wrong.shape) in said, f"a target of shape {wrong.shape}: {said}"
assert np.isclose(column_loss(MiniTensor([[2.0]]), np.array([5.0])).item(), 9.0), "one row"
values = np.random.default_rng(8).normal(size=(7, 3)) * np.array([0, 1, 1, 0, 1, 1e-12, 1e3])[:, None]
cotangent = np.random.default_rng(9).normal(size=7)
given = MiniTensor(values, requires_grad=True)
result = lengths(given)
result.backward(cotangent)
norm = np.sqrt((values**2).sum(axis=1))
assert np.allclose(result.data, norm, rtol=1e-6, atol=0.0)
assert np.allclose(given.grad.data, cotangent[:, None] * values / np.where(norm > 0, norm, 1.0)[:, None], rtol=1e-6), "the lengths are exact, without a small number under the root"
given = MiniTensor(np.zeros((2, 2)), requires_grad=True)
lengths(given).sum().backward()
assert np.array_equal(given.grad.data, np.zeros((2, 2)))
### END HIDDEN TESTS

# %% [markdown]
# **Patient 5** has three hidden layers and learns less well than one should think. Its optimizer knows two parameters.

# %% tags=["demo"] items="139"
class Patient5(Module):
    def __init__(self, width=8):
        super().__init__()
        self.hidden = [LinearLayer(4, width), LinearLayer(width, width), LinearLayer(width, width)]
        self.last = LinearLayer(width, 1)

    def forward(self, x):
        for layer in self.hidden:
            x = layer(x).tanh()
        return self.last(x)


x, y = waves()
patient = Patient5()
print([name for name, _ in patient.named_parameters()])
print(preflight(patient, SGD(patient.parameters()), mse_loss, x, y))

# %% [markdown]
# **Patient 6** validates after each epoch. The instrument is a counter that lesson 11 has built in: `num_batches_tracked`. Each epoch has 4 batches. **Predict** the numbers that it should show, then run the cell.

# %% tags=["demo"]
def patient_6(model, optimizer, loader, validation, epochs):
    losses = []
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            mse_loss(model(x), y).backward()
            optimizer.step()
        model.eval()
        with no_grad():
            losses += [np.mean([mse_loss(model(x), y).item() for x, y in validation])]
    return losses


manual_seed(4)
model = Sequential(LinearLayer(4, 16), BatchNorm1d(16), ReLU(), LinearLayer(16, 1))
loader = DataLoader(TensorDataset(*waves()), batch_size=30)
for _ in range(3):
    patient_6(model, SGD(model.parameters(), lr=0.01), loader, loader, epochs=2)
    print("batches seen in training mode:", model[1].num_batches_tracked.item())

# %% [markdown]
# Two epochs in each call, and only the first of the two is in training mode. Nobody calls `train()` again.
#
# **Patient 7** works, but its memory grows with each step until the program dies. The instruments are weak references to all nodes of the steps: they tell which are alive, and keep none alive. The list holds the losses; what does a loss hold?

# %% tags=["demo"] items="110"
def patient_7(model, optimizer, loader, loss_function):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses


model, nodes = small_network(), set()
loader = DataLoader(TensorDataset(*waves()), batch_size=10)
losses = patient_7(model, SGD(model.parameters(), lr=0.01), loader, mse_loss)
for loss in losses:
    nodes |= {weakref.ref(node) for node in topological_order(loss.grad_fn)}
print("nodes alive while the list lives:", sum(node() is not None for node in nodes))
del losses, loss
print("nodes alive without it:          ", sum(node() is not None for node in nodes))

# %% [markdown]
# **Patient 8** classifies. The loss falls and stops falling, far from 0, although three points are easily told apart. Its first line seems polite: cross entropy is about probabilities, after all.

# %% tags=["demo"] items="110"
def patient_8(scores, labels):
    return scores.softmax(1).cross_entropy(labels)


labels = np.array([0, 1, 2])
for size in (1.0, 10.0, 1000.0):
    scores = MiniTensor(size * np.eye(3), requires_grad=True)
    loss = patient_8(scores, labels)
    loss.backward()
    right = MiniTensor(size * np.eye(3)).cross_entropy(labels).item()
    norm = np.linalg.norm(scores.grad.data)
    print(f"right by {size:6.0f}: loss {loss.item():.4f}, gradient {norm:.1e}", end="   ")
    print(f"the loss should be {abs(right):.1e}")

# %% [markdown]
# ### Exercise 6: patients 5 to 8

# %% [markdown] tags=["hint"] exercise="repair_two"
# Patient 5: an attribute for each layer, or one `Sequential` that holds all of them. The names are free, since nobody but you must know them.

# %% [markdown] tags=["hint"] exercise="repair_two"
# Patient 6: `train()` belongs inside the loop over the epochs. `evaluate` of lesson 11 does the rest, and counts by samples. Patient 7: keep a plain number. Patient 8: the engine's `cross_entropy` takes scores.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "repair_two", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Deep(Module):
    """Patient 5, repaired: hidden layers with tanh behind each, and a last layer without.

    sizes: the number of features at the input, behind each layer, and at the output, such as
        [4, 8, 8, 1] for two hidden layers and the last one; at least two numbers
    All weights and biases are known to parameters(), from the first layer to the last, weight first.

    >>> [parameter.shape for parameter in Deep([4, 8, 1]).parameters()]
    [(8, 4), (8,), (1, 8), (1,)]
    """

    def __init__(self, sizes):
        super().__init__()
        ### BEGIN SOLUTION
        self.layers = Sequential(*(LinearLayer(a, b) for a, b in zip(sizes, sizes[1:])))
        ### END SOLUTION

    def forward(self, x):
        ### BEGIN SOLUTION
        *hidden, last = self.layers
        for layer in hidden:
            x = layer(x).tanh()
        return last(x)
        ### END SOLUTION


def train_epochs(model, optimizer, loader, validation, epochs, loss_function):
    """Patients 6 and 7, repaired. Each epoch: a step per batch of loader in training mode, then the
    validation loss.

    loader, validation: give pairs (x, y); validation changes nothing in the model, and records nothing
    Returns: pair of lists of floats: the training loss of each batch, over all epochs, before its
        step; and the mean loss over the samples of validation after each epoch
    Afterwards the model is in training mode.
    """
    losses, validated = [], []
    ### BEGIN SOLUTION
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            losses.append(train_step(model, optimizer, loss_function, x, y))
        validated.append(evaluate(model, validation, loss_function))
    model.train()
    ### END SOLUTION
    return losses, validated


def classification(scores, labels):
    """Patient 8, repaired: cross entropy and accuracy of a batch.

    scores: MiniTensor of shape (rows, classes), not normalized; labels: whole numbers, shape (rows,)
    Returns: (loss, accuracy): a MiniTensor of shape (), which can be differentiated, and the share of
        the rows whose largest score is at its label, a plain float

    >>> loss, accuracy = classification(MiniTensor([[1000.0, 0.0], [0.0, 1000.0]]), np.array([0, 0]))
    >>> loss.item(), accuracy
    (500.0, 0.5)
    """
    ### BEGIN SOLUTION
    accuracy = float((scores.data.argmax(axis=1) == labels).mean())
    return scores.cross_entropy(labels), accuracy
    ### END SOLUTION

# %% tags=["style:compact"] exercise="repair_two"
class Deep(Module):
    def __init__(self, sizes):
        super().__init__()
        self.count = len(sizes) - 1
        for number in range(self.count):
            setattr(self, f"layer{number}", LinearLayer(sizes[number], sizes[number + 1]))

    def forward(self, x):
        for number in range(self.count):
            x = getattr(self, f"layer{number}")(x)
            if number + 1 < self.count:
                x = x.tanh()
        return x


def train_epochs(model, optimizer, loader, validation, epochs, loss_function):
    losses, validated = [], []
    for _ in range(epochs):
        model.train(True)
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_function(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        total, count = 0.0, 0
        model.eval()
        with no_grad():
            for x, y in validation:
                total, count = total + len(x.data) * loss_function(model(x), y).item(), count + len(x.data)
        validated.append(total / count)
        model.train()
    model.train()
    return losses, validated


def classification(scores, labels):
    rows = np.arange(len(labels))
    loss = -scores.log_softmax(dim=1)[rows, labels].mean()
    return loss, sum(int(np.argmax(row) == label) for row, label in zip(scores.data, labels)) / len(rows)

# %% nbgrader={"grade": true, "grade_id": "test_repair_two", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
for sizes, right in (
    ([4, 8, 6, 1], [(8, 4), (8,), (6, 8), (6,), (1, 6), (1,)]),
    ([2, 3, 2], [(3, 2), (3,), (2, 3), (2,)]),
):
    deep = Deep(sizes)
    shapes = [parameter.shape for parameter in deep.parameters()]
    assert shapes == right, f"Deep({sizes}): parameters of shapes {right}, not {shapes}"
x = np.random.default_rng(1).normal(size=(5, 2))
first, offset, second, last = (parameter.data for parameter in deep.parameters())
hidden = np.tanh(x @ first.T + offset)
assert np.allclose(deep(MiniTensor(x)).data, hidden @ second.T + last), (
    "x @ weight.T + bias in each layer, with tanh behind the hidden ones and none behind the last"
)


class Counting(Module):
    """x * weight in training and 2 * x * weight in evaluation; notes the mode of each call."""

    def __init__(self):
        super().__init__()
        self.weight = Parameter([[0.0]])
        self.modes = []

    def forward(self, x):
        self.modes.append("train" if self.training else "eval")
        assert self.training == is_grad_enabled(), "training is recorded, validation is not"
        return x * self.weight * (1 if self.training else 2)


points = TensorDataset(np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [4.0], [6.0]]))
model = Counting()
loader = DataLoader(points, batch_size=2)
losses, validated = train_epochs(model, SGD(model.parameters(), lr=0.05), loader, loader, 2, mse_loss)
right = ["train", "train", "eval", "eval"] * 2
assert model.modes == right, f"the modes of the calls are {right}, not {model.modes}"
assert len(losses) == 4, f"one training loss per batch and epoch: 4, not {len(losses)}"
assert len(validated) == 2, f"one validation loss per epoch: 2, not {len(validated)}"
assert all(isinstance(loss, float) for loss in losses + validated), "plain numbers, which hold no graph"
assert np.allclose(losses[:2], [10.0, 20.25]), f"the first losses are 10.0 and 20.25, not {losses[:2]}"

scores = MiniTensor([[2.0, 0.0, 1.0], [0.0, 0.0, 3.0]], requires_grad=True)
loss, accuracy = classification(scores, np.array([0, 1]))
loss.backward()
share = np.exp(scores.data) / np.exp(scores.data).sum(axis=1, keepdims=True)
right = -np.log([share[0, 0], share[1, 1]]).mean()
assert np.isclose(loss.item(), right), f"the cross entropy of the scores is {right}, not {loss}"
right = (share - [[1, 0, 0], [0, 1, 0]]) / 2
assert np.allclose(scores.grad.data, right), f"the gradient is\n{right}\nnot\n{scores.grad.data}"
assert accuracy == 0.5, f"one of two rows is right: 0.5, not {accuracy}"
loss, _ = classification(MiniTensor([[1000.0, 0.0], [0.0, 1000.0]]), np.array([0, 0]))
assert np.isclose(loss.item(), 500.0), f"large scores: the loss is 500, not {loss}"
### BEGIN HIDDEN TESTS
for sizes in ([3, 2], [2, 5, 4, 3, 1], [3, 3, 3, 3]):
    deep, x = Deep(sizes), np.random.default_rng(2).normal(size=(4, sizes[0]))
    values = x
    weights = [parameter.data for parameter in deep.parameters()]
    assert [w.shape for w in weights[::2]] == list(zip(sizes[1:], sizes)), "one weight per layer"
    for number in range(0, len(weights), 2):
        values = values @ weights[number].T + weights[number + 1]
        values = np.tanh(values) if number + 2 < len(weights) else values
    output = deep(MiniTensor(x))
    assert np.allclose(output.data, values)
    output.sum().backward()
    assert all(parameter.grad is not None for parameter in deep.parameters())
w, seen, after = 0.0, [], []
for _ in range(2):
    for rows in (slice(0, 2), slice(2, 3)):
        px, py = points.arrays[0][rows], points.arrays[1][rows]
        seen.append(((px * w - py) ** 2).mean())
        w -= 0.05 * (2 * (px * w - py) * px).mean()
    after.append(((points.arrays[0] * 2 * w - points.arrays[1]) ** 2).mean())
assert np.allclose(losses, seen), f"training losses {seen}, not {losses}"
assert np.allclose(validated, after), f"validation by samples {after}, not {validated}"
assert np.isclose(model.weight.item(), w) and model.training, "training mode afterwards"
model = Counting()
model.eval()
model.weight.grad = MiniTensor([[99.0]])
train_epochs(model, SGD(model.parameters(), lr=0.05), loader, [(MiniTensor([[1.0]]), MiniTensor([[2.0]]))], 1, mse_loss)
assert model.modes == ["train", "train", "eval"], "a model that comes in evaluation mode is trained all the same"
assert np.isclose(model.weight.item(), 0.5 + 0.05 * 2 * 3 * (6 - 3 * 0.5)), "gradients from before do not count"
assert model.training, "afterwards it is in training mode, whatever it was"
double = lambda prediction, target: mse_loss(prediction, target) * 2.0
model = Counting()
losses, validated = train_epochs(model, SGD(model.parameters(), lr=0.0), loader, loader, 1, double)
assert np.allclose(losses, [20.0, 72.0]) and np.allclose(validated, [112 / 3]), "the loss function that was given"
first = MiniTensor(np.random.default_rng(3).normal(size=(6, 4)) * 100, requires_grad=True)
loss, accuracy = classification(first, first.data.argmax(axis=1))
assert accuracy == 1.0 and isinstance(accuracy, float) and loss.requires_grad and loss.item() < 0.5
### END HIDDEN TESTS

# %% [markdown] items="112"
# ## 6. A slow patient
#
# Not every patient is wrong. Some are slow, and where the time goes can be measured too: by a *profiler*. The example is attention: each of N positions looks at each other, so there is a matrix of N x N scores, per text. **Predict:** N is multiplied by 4. By how much do the time and the bytes of the scores grow, and which operations take the time?

# %% tags=["demo"] items="112"
def attention(x):
    scores = x @ x.transpose(1, 2) / x.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ x


def profiled(length, width=16):
    x = torch.randn(1, length, width, requires_grad=True)
    attention(x).sum().backward()  # the first call is slower
    with torch.autograd.profiler.profile() as profile:
        attention(x).sum().backward()
    events = sorted(profile.key_averages(), key=lambda event: -event.self_cpu_time_total)
    return sum(event.self_cpu_time_total for event in events) / 1000, events


for length in (128, 512, 2048):
    total, events = profiled(length)
    print(f"N = {length:4d}: {total:7.2f} ms, scores {4 * length**2 / 1e6:6.2f} MB; mostly", end=" ")
    print(", ".join(event.key.removeprefix("aten::") for event in events[:3]))

# %% [markdown] items="112"
# From some size on, the N x N matrix is all that counts: its bytes grow by the square, and the time roughly with them. The cure is not a faster loop but fewer entries or none at all: look at a window only, or compute the scores in pieces and again in the backward pass (lesson 13; PyTorch has `scaled_dot_product_attention`). For your own engine, Python's `cProfile` names the functions:

# %% tags=["demo"] items="112"
import cProfile
import pstats

x = MiniTensor(np.random.default_rng(0).normal(size=(300, 16)), requires_grad=True)
with cProfile.Profile() as profile:
    ((x @ x.T / 4).softmax(1) @ x).sum().backward()
rows = sorted(pstats.Stats(profile).stats.items(), key=lambda row: -row[1][2])[:5]
for (_, line_number, name), (_, calls, own_time, *_) in rows:
    print(f"{1000 * own_time:6.2f} ms in {calls:3d} calls of {name[:50]}")

# %% [markdown] items="110"
# ## 7. On the wall
#
# ### Symptoms
#
# | symptom | think of | instrument |
# | --- | --- | --- |
# | loss is NaN from some step on | step too large, a hole in the data, `log` or a division at 0 | `first_bad`, then anomaly mode on that batch |
# | loss is finite, a gradient is NaN | an infinite slope in a branch not taken (patient 4) | anomaly mode |
# | loss does not move at all | step without gradients (2), detached loss, dead units | `preflight`, `dead_units` |
# | loss falls without end, below 0 | no target (1) | read the loss |
# | loss falls, then stops too high | softmax twice (8), parameters unknown (5), shapes that stretch (3) | `preflight`; the loss of a perfect answer |
# | all outputs alike | shapes that stretch (3), dead units | `layer_outputs` |
# | worse in validation than it can be | mode (6) | `training` of each module, `num_batches_tracked` |
# | memory grows | losses are kept with their graphs (7), graphs retained | weak references; `saved_tensors` |
# | gradient norm spikes | one batch, one row | norms by step, then the batch |
# | backward is slow | attention with a large N, anomaly mode left on | profiler |
# | gradients are wrong, nothing complains | a rule of your own | `gradcheck`, not anomaly mode |

# %% [markdown] items="111"
# ### Emergency
#
# | | at once | then |
# | --- | --- | --- |
# | NaN | stop, and keep the batch and the weights; no further step | `first_bad(model, x)`; `with detect_anomaly():` on this batch. In PyTorch `torch.autograd.detect_anomaly()` |
# | memory | smaller batch; `.item()` for all that is kept | `with no_grad():` in validation; accumulate micro-batches; lesson 13 |
# | zero gradients | `print(grad_norms(model))`: 0 or `None`? | `None`: there is no way, look for `detach`, numbers in between, parameters that nothing uses. 0: dead units, saturation, a constant loss |
#
# Clipping is no cure for NaN. **Predict** what is left of two gradients, one of which has a single NaN:

# %% items="111"
a, b = Parameter([1.0, 2.0]), Parameter([3.0])
a.grad, b.grad = MiniTensor([np.nan, 1.0]), MiniTensor([4.0])
clip_grad_norm_([a, b], max_norm=1.0)
print(a.grad.data, b.grad.data)

# %% [markdown] items="139"
# The norm of all gradients together is NaN, so the factor is NaN, and each gradient is multiplied by it.
#
# ### Before a training starts
#
# * one batch through `preflight`: no finding
# * the loss of the untrained model is about what chance would give (log of the number of classes)
# * some hundred steps on a *single* small batch bring its loss near 0; if not, more data will not help
# * `zero_grad` after `step` and before `backward`; no `retain_graph` that nobody needs
# * validation: `eval()` and `no_grad()`, and `train()` afterwards
# * what is kept is a number (`.item()`) or detached, before it goes to NumPy
# * a NaN test on the loss, and the norm of the gradient in the log
# * shapes of prediction and target are equal
#
# ## Quiz

# %% tags=["quiz"] nbgrader={"grade": true, "grade_id": "quiz_12", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} items="106 F19"
question(
    "no_alarm",
    "The loss is NaN, because of `log(-1)`. Anomaly mode says nothing. Why?",
    right("The rule of log returns grad / (-1), a finite number.", "The mode looks at what rules return, not at what the forward pass computes."),
    wrong("Because NaN does not reach backward.", "Backward runs as always.", misconception="nan_stops_backward"),
    wrong("Because it was switched on too late.", "It was on, in your table.", misconception="anomaly_sees_forward"),
    wrong("It looks at leaves only.", "It looks at each node's rule.", misconception="anomaly_sees_leaves"),
)
question(
    "wrong_rule",
    "You have written a rule of your own, and fear that a factor is missing. What finds it?",
    right("gradcheck", "It compares the rule with difference quotients."),
    wrong("Anomaly mode", "A wrong number is not NaN.", misconception="anomaly_finds_wrong_numbers"),
    wrong("The norms of the gradients", "Nobody knows what they should be.", misconception="norms_find_wrong_rules"),
    wrong("The loss: it would grow.", "With half the gradient it falls as well, more slowly.", misconception="wrong_gradients_are_loud"),
)
question(
    "where",
    "`where(x > 0, x.sqrt(), 0)` at x = 0: where does the NaN come from?",
    right("The rule of sqrt multiplies the 0 from `where` by infinity.", "So the root must not see the 0: choose before it as well."),
    wrong("`where` sends the gradient to both sides.", "It sends 0 to the side that was not taken.", misconception="where_sends_to_both"),
    wrong("sqrt(0) is NaN.", "It is 0. Its slope is infinite.", misconception="sqrt_zero_is_nan"),
    wrong("The comparison has no derivative.", "It takes no part in the backward pass.", misconception="conditions_are_differentiated"),
)
question(
    "none_or_zero",
    "After backward, the norm of one gradient is None, of another 0.0. What does the difference say?",
    right("No way leads from the loss to the first; the way to the second has slope 0.", "The first is a matter of the graph, the second of numbers."),
    wrong("Nothing: both do not learn.", "They do not, for different reasons.", misconception="none_is_zero"),
    wrong("The first was cleared by zero_grad, the second was not.", "Both have been through the same backward.", misconception="none_is_zero"),
    wrong("The first does not require grad, the second is dead.", "A parameter that requires grad can have None as well: if nothing uses it.", misconception="none_means_frozen"),
)
question(
    "softmax_twice",
    "Why does patient 8 stop learning?",
    right("Its scores lie between 0 and 1, so no answer can be certain, and the slope vanishes.", "The softmax inside of cross_entropy gets numbers that differ by 1 at most."),
    wrong("The two softmaxes cancel.", "Softmax is not its own inverse.", misconception="softmax_twice_is_identity"),
    wrong("The loss is NaN.", "It is finite, and too high.", misconception="softmax_twice_is_nan"),
    wrong("The labels are not probabilities.", "They are numbers of classes, as they should be.", misconception="labels_need_softmax"),
)
question(
    "list_of_losses",
    "`losses.append(loss)` in a training loop. What grows?",
    right("The memory: each loss holds its graph.", "Keep `loss.item()`."),
    wrong("Nothing: after backward the graph is gone.", "Saved values are freed; the nodes live as long as somebody holds them.", misconception="backward_deletes_the_graph"),
    wrong("The gradients.", "They are cleared in each step.", misconception="lists_accumulate_gradients"),
    wrong("The time of a step.", "A step does not look at the list.", misconception="lists_accumulate_gradients"),
)

# %% [markdown]
# ## Summary
#
# | instrument | sees | does not see |
# | --- | --- | --- |
# | anomaly mode | a rule that returns NaN, with its line | NaN of the forward pass, infinities, wrong numbers |
# | gradient norms | where nothing arrives, where it is 0, spikes | why; single units |
# | outputs of layers | the first NaN or infinity of the forward pass, dead units | what the backward pass does |
# | examination before the start | unknown and unused parameters, modes, leftovers, a loss without slope | a wrong target |
# | gradcheck | wrong rules | everything around them |
# | profiler | where the time goes | whether it is needed |
#
# What these patients had in common: the numbers were small enough to keep. The next lesson is about networks for which the memory is the illness.
