# %% [markdown] items="gap:where_sqrt"
# # Debugging clinic
#
# *Core: about 105 minutes; before section 3 is a good place for a break. Further: about 55 minutes, optional. You build four instruments and repair four broken pieces of training code; the optional part has four more. You need the training loop of lesson 11 and the graph of your engine.*
#
# The length of a vector has no derivative at zero. So the code below first asks whether a row is zero, and takes 0 where it is. The loss is finite, and the root of the row of zeros is not used in it. **Predict** the gradient of the second row.

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import linecache
import sys

import numpy as np

# %% tags=["demo"]
import warnings

import torch
from helpers_12 import print_alarms, print_losses, result_or_error, waves

# %% tags=["demo"] items="gap:where_sqrt"
predict("What is the gradient of the second row?")
torch.set_num_threads(1)
x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]], requires_grad=True)
squares = (x**2).sum(dim=1)
roots = torch.where(squares > 0, squares.sqrt(), torch.zeros(3))
loss = roots.sum()
print("lengths:", roots.tolist(), "  loss:", loss.item())
loss.backward()
print(x.grad)

# %% [markdown]
# The gradient is not a number, because of a branch that was not taken. After the next step of an optimizer the weight that made this row is NaN, and soon the whole network. No error is raised anywhere.
#
# Most bugs in training are like this one: the program runs, and something is wrong. An *instrument* finds them: it measures something whose right value you know. In this lesson you will
#
# 1. build anomaly mode, which names the operation and the line behind a NaN, and measure what it does not see;
# 2. log gradient norms, and read them;
# 3. find the first layer whose output is not finite, and units that are dead;
# 4. write a check that a training run must pass before it starts;
# 5. repair pieces of training code, each with a symptom. We call them *patients*. The one above is patient 4.
#
# If something breaks your engine, run the next cell again, and then every cell below it.

# %%
start_lesson()

# %% [markdown]
# ## A new operation (just run it)
#
# Run this cell. You don't need to read it. Your engine has no `where` yet. Its rule sends the gradient to the side that was taken, and zeros to the other side.

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
# ## The same NaN on your engine
#
# Here is the same loss on your engine. The zeros from `where` do not help: the rule of the square root multiplies them by its slope, which is infinite at 0, and `0 * inf` is NaN. NumPy may warn about infinite values and NaN. The lesson silences these warnings, because PyTorch does not warn either.

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
# The leaf has a NaN; which operation made it? Two things are needed. In the forward pass, each node must note *where in the program* it was recorded. And in the backward pass, each result of a rule must be checked.

# %% [markdown]
# ### The forward calls (just run it)
#
# Run this cell. You don't need to read it. `forward_calls` looks at the calls that are running. `record` and `shares_of` of lessons 09 and 10 each get an addition: in anomaly mode, `record` notes the calls in `node.calls`, and `shares_of` calls `check_shares`, which you write.

# %% tags=["engine"]
Switches.anomaly = False  # whether this thread is in anomaly mode
Function.calls = ()  # the forward calls that led to a node, outermost first, as text


def forward_calls():
    """The calls that led to the operation that is being recorded, from the notebook's cell inward."""
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
# Write the switch and the alarm. In anomaly mode, each node has its forward calls in `node.calls`, and the backward pass calls `check_shares` after each rule. As in PyTorch, the alarm is about **NaN only**, and about what the rule of a node *returns*.

# %% [markdown] tags=["hint"] exercise="anomaly"
# `__enter__` must remember what it found, so that `__exit__` can put it back. `switches.anomaly` is a plain attribute.

# %% [markdown] tags=["hint"] exercise="anomaly"
# A share is `None`, an array or a MiniTensor; `as_tensor(share).data` is an array for the latter two. `np.isnan(array).any()` tells whether there is a NaN.

# %% solution="anomaly" tags=["engine"]
class detect_anomaly:
    """Inside, nodes note where they are recorded, and backward raises at the first NaN from a rule.

    mode: detect_anomaly(False) switches it off inside
    When the block ends, even after an error, switches.anomaly is what it was when the block began.
    The error is not caught. Only the attribute of `switches` is set, so other threads keep their mode.

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
    """Raise RuntimeError if a share contains NaN; the first such share counts. Infinity is allowed.

    node: the node whose rule has run; node.name() is, say, "PowBackward0"
    shares: what the rule returned, a list with an array, a MiniTensor or None for each input
    The text of the error is, for the share with number i,
        Function 'PowBackward0' returned nan values in its {i}th output.
    and then each entry of node.calls, in a line of its own. If node.calls is empty, NO_CALLS is
    the second line.

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

# %% check="anomaly"

# %% [markdown] items="106"
# Now compute the lengths in anomaly mode. The last line of the alarm names the place in the code.

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
# Anomaly mode is often recommended as *the* method to find NaN, infinities and wrong numbers. **Predict** for each line: is there an alarm?

# %% tags=["demo"] items="F19 106"
def branch(x):
    if isinstance(x, MiniTensor):
        return where(x.data > 1, (x - 1).log(), 0.0)
    return torch.where(x > 1, (x - 1).log(), 0 * x)


predict("In how many lines is there an alarm?")
cases = {
    "log(-1)": lambda x: (x - 2).log(),
    "1 / 0": lambda x: 1 / (x - 1),
    "exp(1000)": lambda x: (x * 1000).exp(),
    "sqrt(0)": lambda x: (x - 1).sqrt(),
    "sqrt(-1)": lambda x: (x - 2).sqrt(),
    "0 / 0": lambda x: (x - 1) / (x - 1),
    "where(x > 1, log(x - 1), 0)": branch,
}
print_alarms(cases, MiniTensor, detect_anomaly)

# %% [markdown] items="F19"
# Your mode and PyTorch's agree in each line. There is no alarm for `log(-1)`: the loss itself is NaN, but the slope `1 / x` is an ordinary number. There is also none for infinite values and gradients. Here is a rule that is wrong by a factor of 2. **Predict** whether anomaly mode sees it. The last line is what `gradcheck` of lesson 08 says.

# %% tags=["demo"] items="F19"
predict("Does anomaly mode see a rule that is wrong by a factor of 2?", "yes", "no")


class WrongSquare(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * a  # should be 2 * a


leaf = MiniTensor(3.0, requires_grad=True)
with detect_anomaly():
    WrongSquare.apply(leaf).backward()
print("anomaly mode says nothing; the gradient of 3**2 is", leaf.grad.item())
print("gradcheck:", result_or_error(lambda: gradcheck(WrongSquare.apply, [leaf])))

# %% [markdown] items="F19 106"
# Anomaly mode looks for one thing only: a rule that returns NaN. It also makes training slower. Switch it on when you look for a NaN, for the one batch that shows it. Then switch it off again.

# %% [markdown] items="107 109 137"
# ## 2. Norms of gradients
#
# Each patient is a short piece of training code, with a symptom. Run the cell, and **find the cause before you read on**. You repair patients 1 to 4 in exercise 3. The repairs are short.
#
# **Patients 1 and 2** are two training loops. The loss of the first falls without end; the second does not learn. What does the first one try to do?

# %% tags=["demo"] items="137"
def small_network(seed=1):
    manual_seed(seed)
    return Sequential(LinearLayer(4, 16), ReLU(), LinearLayer(16, 16), ReLU(), LinearLayer(16, 1))


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
    print_losses(patient.__name__, losses, against=mse_loss(model(x), y).item())

# %% [markdown] items="107 109"
# The instrument for such patients is a number per parameter: the length of its gradient. It must distinguish two things that are easily confused. A gradient of **zeros** has arrived: there is a path from the loss to the parameter, and its slope is zero. A gradient of **None** has not arrived: nothing has been added to `.grad` since it was cleared.
#
# ### Exercise 2: the norms
#
# Write `grad_norms` from its docstring.

# %% [markdown] tags=["hint"] exercise="norms"
# `model.named_parameters()` gives the pairs, and `np.linalg.norm(array)` the length of an array of any shape, even of a single number.

# %% solution="norms" tags=["engine"]
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

# %% check="norms"

# %% [markdown] items="107"
# **Predict** the norms of patients 1 and 2 after three steps. Which one shows None?

# %% tags=["demo"] items="107 137"
predict("Which of the two patients shows None?", "patient 1", "patient 2", "both", "neither")
x, y = waves()
for patient in (patient_1, patient_2):
    model = small_network()
    patient(model, SGD(model.parameters(), lr=0.0002), x, y, 3)
    print(patient.__name__, {name: norm and round(norm, 1) for name, norm in grad_norms(model).items()})

# %% [markdown] items="107"
# Patient 2 clears its gradients just before the step. Patient 1 has gradients, but they are sums over all steps so far, and there is no target in its loss.
#
# Norms also show what happens during training. Here are three training runs of the same network on the same data: a healthy one; one whose first step is far too large; and one where a single target has a typo, 1000 in place of 1. **Predict** in which of them the first layer ends with a gradient of 0.

# %% tags=["demo"] items="107"
predict("Where does the first layer end with a gradient of 0?", "healthy", "huge step", "wrong target")


def norms_in_training(first_step=0.1, typing_error=False, steps=60):
    """The model, and for each step the norms of the three weights' gradients."""
    (x, y), model, log = waves(), small_network(), []
    if typing_error:
        y[82] = 1000.0
    optimizer = SGD(model.parameters(), lr=first_step)
    for step in range(steps):
        rows = slice(step % 6 * 20, step % 6 * 20 + 20)
        train_step(model, optimizer, mse_loss, MiniTensor(x[rows]), MiniTensor(y[rows]))
        optimizer.lr = 0.1 if not typing_error else 1e-5
        log.append([norm for name, norm in grad_norms(model).items() if "weight" in name])
    return model, np.array(log)


runs = {
    "healthy": norms_in_training(),
    "first step 50 in place of 0.1": norms_in_training(first_step=50.0),
    "one target 1000 (lr 1e-5)": norms_in_training(first_step=1e-5, typing_error=True),
}
for name, (_, norms) in runs.items():
    print(f"{name:29s} steps 1, 4, 30, 58, 59:", *map("{:8.3g}".format, norms[[1, 4, 30, 58, 59], 0]))

# %% [markdown] items="107"
# *A zero that stays*: after one huge step the gradients explode for a while, although the learning rate is 0.1 again. In the end the first layers get exactly 0, and nothing brings them back. *A peak that returns*: every sixth step, when the batch with the typo comes up. A norm tells you in which layer and in which step to look; it does not tell you why.
#
# Two more patients. **Patient 3** learns slowly and badly, and there is no message. **Predict** the loss that it gives for a *perfect* prediction. Then run the cell: what is wrong?

# %% tags=["demo"]
predict("Which loss does patient 3 give for a perfect prediction?")


def patient_3(prediction, target):
    return ((prediction - target) ** 2).mean()


x, y = waves()
print("shape of the difference:", (MiniTensor(y) - y[:, 0]).shape)
print("a perfect prediction:   ", round(patient_3(MiniTensor(y), y[:, 0]).item(), 3))
print("always the mean:        ", round(patient_3(MiniTensor(0 * y + y.mean()), y[:, 0]).item(), 3))

# %% [markdown] items="gap:where_sqrt"
# With this loss, always predicting the mean beats being right.
#
# **Patient 4** is the lengths from the beginning. It does not help to choose after the root: the rule of the root still makes NaN of the 0. So choose *before* it as well, and give the root a harmless number where the result is not used. In PyTorch:

# %% tags=["demo"] items="gap:where_sqrt"
x = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
squares = (x**2).sum(dim=1)
harmless = torch.where(squares > 0, squares, torch.ones(2))
torch.where(squares > 0, harmless.sqrt(), torch.zeros(2)).sum().backward()
print(x.grad)

# %% [markdown] items="137 gap:where_sqrt"
# ### Exercise 3: patients 1 to 4
#
# Complete the three repaired functions.

# %% [markdown] tags=["hint"] exercise="repair_one"
# The order of a step: clear, forward, loss against the target, backward, step. Patient 1 lacks two parts. Patient 2 has all of them, in the wrong order.

# %% [markdown] tags=["hint"] exercise="repair_one"
# Patient 3: give the target the shape of the prediction, with `reshape`. Patient 4: use `where` twice, before the root and after it.

# %% solution="repair_one" tags=["engine"]
def fit(model, optimizer, x, y, steps):
    """Patients 1 and 2, repaired: `steps` steps on one batch that reduce mse_loss(model(x), y).

    Each step, even the first, uses the gradient of its own loss only, whatever .grad was before.
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
    target, rows = as_tensor(target), prediction.shape[0]
    if target.shape not in ((rows,), (rows, 1)):
        raise ValueError(f"a target of {target.shape} does not fit a prediction of {prediction.shape}")
    ### BEGIN SOLUTION
    return mse_loss(prediction, target.reshape(rows, 1))
    ### END SOLUTION


def lengths(x):
    """Patient 4, repaired: the Euclidean length of each row. At a row of zeros, the gradient is 0.

    x: MiniTensor of shape (rows, columns); the result has shape (rows,). No NaN is made on the way.

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

# %% check="repair_one"

# %% [markdown] items="137"
# Here are the four patients again, repaired:

# %% tags=["demo"] items="137"
x, y = waves()
model = small_network()
losses = fit(model, SGD(model.parameters(), lr=0.05), x, y, 31)
print("patients 1 and 2, losses:", *(f"{loss:.3g}" for loss in losses[::10]))
print("patient 3, a perfect prediction:", column_loss(MiniTensor(y), y[:, 0]).item())
rows = MiniTensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
lengths(rows).sum().backward()
print("patient 4, the gradient:", rows.grad.data.tolist())

# %% [markdown] items="107"
# ## 3. Outputs of layers
#
# Anomaly mode looks at the backward pass. It may miss a NaN that appears in the *forward* pass, such as `log(-1)`. The third instrument looks at what each layer returns. `layer_outputs(model, x)` is given: it runs the model once and returns a list of pairs `(name, output)`, in the order in which the layers return. In PyTorch you use `register_forward_hook`.

# %% [markdown]
# ### What the layers return (just run it)
#
# Run this cell. You don't need to read it. `layer_outputs` replaces `Module.__call__` for one run of the model, and puts it back, even after an error. `dead_units` counts the units of each ReLU layer that are 0 for all rows.

# %% tags=["engine"]
def layer_outputs(model, x):
    """Run model(x) once, unrecorded, and keep what its layers return.

    Returns: list of pairs (name, output), in the order in which the layers returned. The layers are
        the modules in the model that have no modules inside (the model itself, if it has none).
    The mode stays as it is. In training mode, running statistics move, as in every forward pass.

    >>> model = Sequential(TanhLayer(), ReLU())
    >>> [(name, output.data.tolist()) for name, output in layer_outputs(model, [0.0])]
    [('0', [0.0]), ('1', [0.0])]
    """
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


def dead_units(model, x):
    """For each ReLU layer, by name: how many of its units are 0 for all rows of x, and of how many."""
    layers = dict(model.named_modules())
    return {
        name: f"{int((output.data == 0).all(axis=0).sum())} of {output.shape[-1]}"
        for name, output in layer_outputs(model, x)
        if isinstance(layers[name], ReLU)
    }

# %% [markdown]
# ### Exercise 4: the first that is not finite
#
# Write `first_bad` from its docstring. Use `layer_outputs`.

# %% [markdown] tags=["hint"] exercise="outputs"
# First look at `x` itself: `np.isfinite(as_tensor(x).data).all()`. Then go through `layer_outputs(model, x)` once.

# %% solution="outputs" tags=["engine"]
def first_bad(model, x):
    """The name of the first layer that returns a NaN or an infinity, in one run of model(x).

    x: list, array or MiniTensor; the model runs in the mode that it is in
    Returns: "input" if x has one; else the layer's name as in layer_outputs; None if all is finite

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

# %% check="outputs"

# %% [markdown] items="107"
# A ReLU unit whose input is negative for all rows sends nothing back: it is *dead*. `dead_units` counts such units in the outputs: columns that are 0 for all rows after a ReLU. **Predict** how many of the 16 units of layer 3 are dead after the training with the huge first step (section 2).

# %% tags=["demo"] items="107"
predict("How many of the 16 units are dead?")
x, y = waves()
print("before the first step        ", dead_units(small_network(), x))
for name, (model, _) in runs.items():
    print(f"{name:29s}", dead_units(model, x))

# %% [markdown]
# A dead unit stays dead while its inputs stay the same, because it blocks the gradient that could change it. After that training, all units of layer 3, the second ReLU, are dead. So the first layer gets nothing either, and only the last bias can still change.

# %% [markdown] items="109 139"
# ## 4. Before it starts
#
# **Patient 5** has three hidden layers, and learns less than you would expect. Run the cell and **find the cause before you read on**.

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


patient = Patient5()
print([name for name, _ in patient.named_parameters()])

# %% [markdown] items="109 139"
# A layer in a plain list is hard to see: `model.parameters()` does not give its weights, and nothing complains. But the graph knows them. Every leaf that takes part in the loss has an `AccumulateGrad` node there, whose `variable` is the leaf. So one batch is enough to find this patient before the first epoch. That is the fourth instrument.
#
# ### Exercise 5: the check before the start
#
# Complete `preflight`. The first finding is given; add the other three.

# %% [markdown] tags=["hint"] exercise="preflight"
# Work from top to bottom. The leaves in the graph: `[node.variable for node in topological_order(edge_to(loss)[0]) if isinstance(node, AccumulateGrad)]`. Compare tensors as objects: `any(leaf is p for p in known)`, or with a set.

# %% [markdown] tags=["hint"] exercise="preflight"
# `grad(loss, parameters, allow_unused=True)` of lesson 10 gives all gradients, with None where there is no path. It changes no `.grad`.

# %% solution="preflight" tags=["engine"]
def preflight(model, optimizer, loss_function, x, y):
    """Examine a training run with one batch and one run of the model, before it starts.

    The loss is loss_function(model(x), y): one number that requires grad, like every parameter.
    Returns: list of texts, empty if all is well, in this order
    (names of parameters in the order of model.named_parameters()):
        "not in the optimizer: NAME"      for a parameter that is not in optimizer.parameters
        "not in the model: shape SHAPE"   for each leaf in the graph of the loss that is not a parameter
            of the model, in any order; SHAPE is, say, (3, 4)
        and then, parameter by parameter, one of these two if it is true:
        "no gradient: NAME"               no path leads from the loss to it
        "zero gradient: NAME"             all entries of its gradient are 0
    No .grad and no mode changes, and there is no step. (In training mode, running statistics move.)

    >>> model = LinearLayer(2, 1)
    >>> x, y = np.ones((3, 2)), np.zeros((3, 1))
    >>> preflight(model, SGD([model.weight]), mse_loss, x, y)
    ['not in the optimizer: bias']
    >>> preflight(model, SGD(model.parameters()), lambda a, b: a.sum() * 0.0, x, y)
    ['zero gradient: weight', 'zero gradient: bias']
    """
    named = dict(model.named_parameters())
    held = set(optimizer.parameters)
    findings = [f"not in the optimizer: {name}" for name, p in named.items() if p not in held]
    loss = loss_function(model(x), y)
    ### BEGIN SOLUTION
    nodes, own = topological_order(edge_to(loss)[0]), set(named.values())
    leaves = [node.variable for node in nodes if isinstance(node, AccumulateGrad)]
    findings += [f"not in the model: shape {leaf.shape}" for leaf in leaves if leaf not in own]
    slopes = grad(loss, list(named.values()), allow_unused=True)
    for name, slope in zip(named, slopes):
        if slope is None:
            findings.append(f"no gradient: {name}")
        elif not slope.data.any():
            findings.append(f"zero gradient: {name}")
    ### END SOLUTION
    return findings

# %% check="preflight"

# %% [markdown] items="109"
# The findings about gradients go further than the assertion that every training run needs: *some parameter has received a gradient that is not zero*. In PyTorch this assertion is one line, after the first `backward`:
#
#     assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
#
# The network whose first step was too large passes this test: its last bias still moves. Your check sees more. Here are that network and patient 5:

# %% tags=["demo"] items="109"
model, _ = runs["first step 50 in place of 0.1"]
print(preflight(model, SGD(model.parameters()), mse_loss, *waves()))
patient = Patient5()
print(preflight(patient, SGD(patient.parameters()), mse_loss, *waves()))

# %% [markdown] items="110 112"
# ## 5. A sheet for the wall
#
# ### Symptoms
#
# | symptom | think of | instrument |
# | --- | --- | --- |
# | loss is NaN from some step on | step too large, missing data, `log` or a division at 0 | `first_bad`, then anomaly mode on that batch |
# | loss is finite, a gradient is NaN | an infinite slope in a branch that was not taken (patient 4) | anomaly mode |
# | loss does not move at all | step without gradients (2), detached loss, dead units | `grad_norms`, `preflight`, `dead_units` |
# | loss falls without end, below 0 | no target (1) | read the loss |
# | loss falls, then stops too high | softmax twice (8), unregistered parameters (5), shapes that are broadcast (3) | `preflight`; the loss of a perfect answer |
# | all outputs alike | weights that start at 0 or at one number, shapes that are broadcast (3), dead units | `layer_outputs` |
# | validation is worse than it should be | mode (6) | `training` of each module, `num_batches_tracked` |
# | memory grows | losses are kept with their graphs (7) | weak references; `torch.cuda.memory_allocated()` after each step |
# | the gradient norm has peaks | one batch, one row | norms by step, then the batch |
# | backward is slow | attention with a large N, anomaly mode left on | profiler |
# | gradients are wrong, and there is no message | a rule of your own | `gradcheck`, not anomaly mode |

# %% [markdown] items="111"
# ### Emergency
#
# | | at once | then | in PyTorch |
# | --- | --- | --- | --- |
# | NaN | stop; keep the batch and the weights | `first_bad(model, x)`; anomaly mode on this batch | `torch.isfinite(loss)`; `with torch.autograd.detect_anomaly():` |
# | memory | smaller batch; `.item()` for all that is kept | `no_grad` in validation; micro-batches; lesson 13 | `torch.cuda.reset_peak_memory_stats()`, one step, `torch.cuda.max_memory_allocated()` |
# | zero gradients | `grad_norms(model)`: 0 or None? | None: cleared before you looked, or no path; look for `detach`, plain numbers in between, parameters that nothing uses. 0: dead units, saturation, a constant loss | `for name, p in model.named_parameters(): print(name, p.grad if p.grad is None else p.grad.norm())` |
#
# Clipping does not repair NaN: lesson 10.

# %% [markdown] items="139"
# ### Before a training run starts
#
# * `preflight` on one batch finds nothing
# * the loss of the untrained model is about what chance gives (the log of the number of classes)
# * a few hundred steps on a *single* small batch bring its loss near 0; if not, more data does not help
# * `zero_grad` comes after `step` and before `backward`
# * validation has `eval()` and `no_grad()`, and `train()` afterward
# * what is kept is a number (`.item()`), or a copy without history (`.detach().clone()` in PyTorch)
# * the loss is tested for NaN, and the norm of the gradient is in the log
# * prediction and target have the same shape
#
# ## Quiz

# %% test="quiz_12" points=5 tags=["quiz"] items="106 F19"
question(
    "no_alarm",
    "The loss is NaN because of `log(-1)`. Anomaly mode says nothing. Why?",
    right("The rule of log returns grad / (-1), a finite number.", "The mode looks at what rules return, not at what the forward pass computes."),
    wrong("Because NaN does not reach backward.", "Backward runs as usual.", misconception="nan_stops_backward"),
    wrong("Because it was switched on too late.", "It was on, in your table.", misconception="anomaly_sees_forward"),
    wrong("It looks at leaves only.", "It looks at each node's rule.", misconception="anomaly_sees_leaves"),
)
question(
    "wrong_rule",
    "You have written a rule of your own, and a factor may be missing. What finds the mistake?",
    right("gradcheck", "It compares the rule with difference quotients."),
    wrong("Anomaly mode", "A wrong number is not NaN.", misconception="anomaly_finds_wrong_numbers"),
    wrong("The norms of the gradients", "You do not know what they should be.", misconception="norms_find_wrong_rules"),
    wrong("The loss: it would grow.", "With half the gradient the loss still falls, more slowly.", misconception="wrong_gradients_are_loud"),
)
question(
    "where",
    "`where(x > 0, x.sqrt(), 0)` at x = 0: where does the NaN come from?",
    right("The rule of sqrt multiplies the 0 from `where` by infinity.", "So choose before the root as well."),
    wrong("`where` sends the gradient to both sides.", "It sends 0 to the side that was not taken.", misconception="where_sends_to_both"),
    wrong("sqrt(0) is NaN.", "It is 0. Its slope is infinite.", misconception="sqrt_zero_is_nan"),
    wrong("The comparison has no derivative.", "It takes no part in the backward pass.", misconception="conditions_are_differentiated"),
)
question(
    "none_or_zero",
    "Right after backward, the norm of one gradient is None, of another 0.0. What does the difference say?",
    right("No path leads from the loss to the first; the path to the second has slope 0.", "The first is about the graph, the second about numbers."),
    wrong("Nothing: neither of them learns.", "That is true, but for different reasons.", misconception="none_is_zero"),
    wrong("The first was cleared by zero_grad, the second was not.", "Both have been through the same backward.", misconception="none_is_zero"),
    wrong("The first does not require grad, the second is dead.", "A parameter that requires grad also has None if nothing uses it.", misconception="none_means_frozen"),
)

# %% [markdown]
# ## Summary
#
# | instrument | sees | does not see |
# | --- | --- | --- |
# | anomaly mode | a rule that returns NaN, with its line | a NaN that no rule returns, infinities, wrong numbers |
# | gradient norms | where nothing arrives, where it is 0, peaks | why; single units |
# | outputs of layers | the first NaN or infinity of the forward pass, dead units | what the backward pass does |
# | check before the start | unregistered and unused parameters, a loss without slope | a wrong target, a wrong mode |
# | gradcheck | wrong rules | everything around them |
# | profiler | where the time goes | whether it is needed |
#
# The next lesson is about networks that do not fit into memory.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without its exercises, which only earn points. Its sections do not depend on each other.

# %% [markdown] items="110"
# ## The other patients
#
# **Patient 6** validates after each epoch. The instrument is a counter of lesson 11: `num_batches_tracked`. Each epoch has 4 batches, and each call has two epochs. **Predict** the numbers that it should show, then run the cell. Why are they smaller?

# %% tags=["demo"]
predict("How many batches should it show after the first call?")


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
# Only the batches before the first `model.eval()` count: nothing switches back to training mode before the second epoch.
#
# **Patient 7** works, but its memory grows with each step. The instruments are weak references to all nodes of the steps; a weak reference does not keep its node alive. The list holds the losses. What does a loss hold?

# %% tags=["demo"] items="110"
import weakref


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
# Some texts say that `print(loss)` in a loop has the same effect. That is wrong: `print` makes a text and keeps nothing.
#
# **Patient 8** classifies. The loss falls and then stops, far from 0, although the three points are easily told apart. The softmax at the beginning of this loss looks reasonable: cross entropy is about probabilities, after all.

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
#
# Write the repaired class and functions. Patient 5 is the one of section 4. The exercise is not part of the engine of later lessons.

# %% [markdown] tags=["hint"] exercise="repair_two"
# Patient 5: an attribute for each layer, or one `Sequential` that holds all of them. The names are free.

# %% [markdown] tags=["hint"] exercise="repair_two"
# Patient 6: `train()` belongs inside the loop over the epochs. `evaluate` of lesson 11 does the rest, and counts by samples. Patient 7: keep a plain number. Patient 8: the engine's `cross_entropy` takes scores.

# %% solution="repair_two"
class Deep(Module):
    """Patient 5, repaired: hidden layers with tanh after each, and a last layer without.

    sizes: the number of features at the input, after each hidden layer, and at the output, such as
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
    """Patients 6 and 7, repaired. Each epoch: one call of the model and one step per batch of loader,
    in training mode, with the gradient of its own loss only, then the validation loss.

    loader, validation: give pairs (x, y); validation changes nothing in the model, and records nothing
    Returns: pair of lists of floats: the training loss of each batch, over all epochs, before its
        step; and the mean loss over the samples of validation after each epoch
    Afterward the model is in training mode.
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
        the rows whose largest score is at its label, a float

    >>> loss, accuracy = classification(MiniTensor([[1000.0, 0.0], [0.0, 1000.0]]), np.array([0, 0]))
    >>> loss.item(), accuracy
    (500.0, 0.5)
    """
    ### BEGIN SOLUTION
    accuracy = float((scores.data.argmax(axis=1) == labels).mean())
    return scores.cross_entropy(labels), accuracy
    ### END SOLUTION

# %% check="repair_two"

# %% [markdown] items="110"
# Here are the four patients again, repaired:

# %% tags=["demo"] items="110"
deep = Deep([4, 8, 8, 8, 1])
print("patient 5:", preflight(deep, SGD(deep.parameters()), mse_loss, *waves()))
model = Sequential(LinearLayer(4, 16), BatchNorm1d(16), ReLU(), LinearLayer(16, 1))
loader = DataLoader(TensorDataset(*waves()), batch_size=30)
kept, _ = train_epochs(model, SGD(model.parameters(), lr=0.01), loader, loader, 2, mse_loss)
print("patient 6: batches seen in training mode:", model[1].num_batches_tracked.item())
print("patient 7 keeps", type(kept[0]).__name__, "numbers")
for size in (1.0, 10.0, 1000.0):
    loss, _ = classification(MiniTensor(size * np.eye(3)), np.array([0, 1, 2]))
    print(f"patient 8, right by {size:6.0f}: loss {abs(loss.item()):.1e}")

# %% [markdown] items="108"
# ## Bad starts and bad data
#
# Dead units are not the only bad start. **Predict** how many different units the second layer has after 20 steps, if all weights and biases start at the same number.

# %% tags=["demo"] items="110"
predict("How many different units does the second layer have after 20 steps?")
x, y = waves()
for value in (0.0, 0.1):
    model = small_network()
    for parameter in model.parameters():
        overwrite(parameter, np.full(parameter.shape, value))
    fit(model, SGD(model.parameters(), lr=0.1), x, y, 20)
    different = len(np.unique(model[2].weight.data.round(9), axis=0))
    norms = [norm and round(norm, 3) for norm in grad_norms(model).values()]
    print(f"all at {value}: different units {different}, norms {norms}")

# %% [markdown]
# All 16 units stay alike: equal weights get equal gradients. At 0 even the gradients are 0, except that of the last bias. That is why weights start at random numbers.

# %% [markdown]
# What if a NaN appears in validation? Test one number per batch, and call `first_bad` when it is not finite. In the first run row 17 has a missing value; in the second, one weight is infinite.

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

# %% [markdown] items="106"
# ## The price of anomaly mode
#
# Each node looks at the running calls, and each share is read once more. **Predict** for which networks that is expensive: narrow or wide ones?

# %% tags=["demo"] items="106"
import time

predict("For which networks is it expensive?", "narrow ones", "wide ones", "both alike")


def slowdown(step, slow, repeats=7):
    """How much longer a step takes in the mode `slow`: medians of times that are taken in turn."""
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
    for width, rows in ((8, 8), (300, 200)):
        yours, theirs = price(width, rows)
        print(f"width {width:4d}: yours x {yours:4.1f}   PyTorch x {theirs:4.1f}")

# %% [markdown] items="106"
# Most of the price is the same for every node, so it matters most where the calculation of a node is cheap. Differences of a tenth are noise.
#
# ## Dead units in training
#
# In lesson 01 three units were pushed down by 8. **Predict**, for each of the three networks, how far they can be shifted before training no longer moves them. Then find it with the second slider.

# %% tags=["demo"]
from mini_autograd.widgets import activations

activations(shift=-2.0, steps=80.0)

# %% [markdown]
# With ReLU the three units do not move if the shift is -3.5 or lower. With Leaky ReLU they always move. With GELU they move too, but at -8 only by a few millionths.

# %% [markdown] items="112"
# ## A slow patient
#
# A *profiler* measures where the time goes. The example is attention: each of N positions looks at all N, itself included, so each text has a matrix of N x N scores. **Predict:** N is multiplied by 4. By how much do the time and the bytes of the scores grow, and which operations take the time?

# %% tags=["demo"] items="112"
import os

predict("N times 4: by which factor do the bytes of the scores grow?", "4", "8", "16")
os.environ["KINETO_LOG_LEVEL"] = "99"  # the profiler writes no notes of its own


def attention(x):
    scores = x @ x.transpose(1, 2) / x.shape[-1] ** 0.5
    return scores.softmax(dim=-1) @ x


def profiled(length, width=16):
    x = torch.randn(1, length, width, requires_grad=True)
    attention(x).sum().backward()  # the first call is slower
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(3):
            attention(x).sum().backward()
    events = sorted(profile.key_averages(), key=lambda event: -event.self_cpu_time_total)
    return sum(event.self_cpu_time_total for event in events) / 3000, events


errors = os.dup(2)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the first call prints a note that is not an error
profiled(128)
os.dup2(errors, 2)
for length in (128, 512, 2048):
    total, events = profiled(length)
    print(f"N = {length:4d}: {total:7.2f} ms, scores {4 * length**2 / 1e6:6.2f} MB; mostly", end=" ")
    print(", ".join(event.key.removeprefix("aten::") for event in events[:3]))

# %% [markdown] items="112"
# From some size on, only the N x N matrix counts: its bytes grow with the square of N, and the time about as fast or faster, because a large matrix does not fit into the cache. A faster loop does not help. It helps to compute fewer entries (look at a window only), or to keep fewer at once: compute the scores in pieces, and again in the backward pass (lesson 13). *Flash attention* does the latter; in PyTorch it is behind `torch.nn.functional.scaled_dot_product_attention`. For your own engine, Python's `cProfile` names the functions:

# %% tags=["demo"] items="112"
import cProfile

x = MiniTensor(np.random.default_rng(0).normal(size=(300, 16)), requires_grad=True)
with cProfile.Profile() as profile:
    ((x @ x.T / 4).softmax(1) @ x).sum().backward()
for row in sorted(profile.getstats(), key=lambda row: -row.inlinetime)[:5]:
    name = getattr(row.code, "co_qualname", row.code)  # built-in functions have only a text
    print(f"{1000 * row.inlinetime:6.2f} ms   {row.callcount:3d} x {name[:50]}")

# %% [markdown]
# ## Questions about this part

# %% test="quiz_12_further" points=1 tags=["quiz"]
question(
    "softmax_twice",
    "A classifier calls `cross_entropy(scores.softmax(1), labels)`. Why does it stop learning?",
    right("Its scores lie between 0 and 1, so no answer can be certain, and the slope vanishes.", "The softmax inside cross_entropy gets numbers that differ by at most 1."),
    wrong("The two softmaxes cancel.", "Softmax is not its own inverse.", misconception="softmax_twice_is_identity"),
    wrong("The loss is NaN.", "It is finite, and too high.", misconception="softmax_twice_is_nan"),
    wrong("The labels are not probabilities.", "They are numbers of classes, as they should be.", misconception="labels_need_softmax"),
)
question(
    "list_of_losses",
    "`losses.append(loss)` in a training loop. What grows?",
    right("The memory: each loss holds its graph.", "Keep `loss.item()`."),
    wrong("Nothing: after backward the graph is gone.", "Saved values are freed, but the nodes live as long as the loss.", misconception="backward_deletes_the_graph"),
    wrong("The gradients.", "They are cleared in each step.", misconception="lists_accumulate_gradients"),
    wrong("The time of a step.", "A step does not look at the list.", misconception="lists_accumulate_gradients"),
)
