# %% [markdown]
# # When not to record
#
# *Core: about 95 minutes; section 4 is a good place for a break. Further: about 30 minutes, optional. You build `no_grad`, `enable_grad`, `inference_mode` and `detach`. You need lessons 05 and 06.*
#
# The same model is trained three times. It has one weight, a squared error, and a penalty that keeps the weight small. The second program takes the penalty out of its tensor as a number, with `.item()`. The third computes the loss with recording off. Each mistake is in one line. **Predict** which mistakes are noticed.

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import copy
import functools
import threading

import numpy as np

# %% tags=["demo"]
import math

from mini_autograd.widgets import explore

import torch
from helpers_07 import attempt, gradient_of, in_another_thread, layers
from helpers_07 import leaf, saved_kibibytes, set_or_none, verdict

# %% tags=["demo"]
predict("Which mistakes are noticed?", "item()", "recording off", "both", "neither")


def trained(slip):
    w = leaf(2.0)
    for _ in range(200):
        with torch.set_grad_enabled(slip != "recording off"):
            error, penalty = (3 * w - 12) ** 2, 10 * w**2
            loss = error + (penalty.item() if slip == "item()" else penalty)
        w.grad = None
        loss.backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
    return f"w = {w.item():.4f}"


for slip in ("none", "item()", "recording off"):
    attempt(slip, lambda: trained(slip))

# %% [markdown]
# The smallest loss is at `72 / 38 = 1.8947`. One mistake stops the program in the first step, with a message. With the other, the program trains to the end and gives a wrong model, without a message.
#
# **Which mistakes does autograd notice, and why?** In this lesson you will
#
# 1. turn recording off and on for a piece of code, and always restore the switch;
# 2. cut a single tensor off from its history, and say what it still shares with the original;
# 3. say what `inference_mode` forbids that `no_grad` allows, and when the error comes;
# 4. choose between them for a task.
#
# If something breaks your engine, run the next cell again (it "loads the engine" with `start_lesson`), and then every cell below it.

# %%
start_lesson()

# %% [markdown]
# ## 1. One place to ask
#
# To evaluate a model you need no gradients. Yet your engine keeps everything that a backward pass would use. How much is that? The next cell sends 200 rows through eight layers and adds up the sizes of the arrays that the nodes have saved.

# %% tags=["demo"]
def network(x, weights):
    for w in weights:
        x = (x @ w).tanh()
    return x


rows = MiniTensor(np.random.default_rng(1).normal(size=(200, 64)))
output = network(rows, layers(MiniTensor, 8, 64))
nodes = list(topological_order(output.grad_fn))
print(f"{len(nodes)} nodes keep {saved_kibibytes(nodes):.0f} KiB", end=", ")
print(f"the result itself needs {output.data.nbytes / 1024:.0f} KiB")

# %% [markdown] items="75"
# The weights, the rows and the result exist anyway (456 KiB). If you want nothing else, the rest is waste. You need a switch: *recording on* or *off*. A single place can check it, because every operation goes through `apply`.
#
# The switch belongs to the **thread**, not to the program. A thread that evaluates a model must not turn off recording in another thread that trains. With `threading.local`, each thread has its own attributes, and begins with the values of the class. `record` does what the second half of `apply` did in lesson 05.

# %% tags=["engine"]
class Switches(threading.local):
    """The switches of one thread."""

    recording = True
    inference = False  # for section 5


switches = Switches()


def is_grad_enabled():
    """Whether this thread records operations."""
    return switches.recording


def record(ctx, inputs, output):
    """Make ctx a node of the graph, with an edge for each input. Its result is output."""
    if isinstance(ctx, type):  # what is written into the class would stay there
        raise TypeError(f"record needs the new node ctx, not its class {ctx.__name__}")
    ctx.next_functions = tuple(edge_to(x) for x in inputs)
    ctx.input_shapes = tuple(x.shape for x in inputs)
    output.requires_grad, output.grad_fn = True, ctx

# %% [markdown]
# ### Exercise 1: ask before you record
#
# Complete `apply`. If recording is on **and** some input requires grad, call `record`, which makes the edges (exercise 5 replaces `record`). If not, the output stays a plain tensor. Return the output in both cases.

# %% [markdown] tags=["hint"] exercise="apply"
# Put both conditions in one `if`: `is_grad_enabled()` and `any(x.requires_grad for x in inputs)`.

# %% [markdown] tags=["hint"] exercise="apply"
# Inside the `if`, call `record(ctx, inputs, output)`. It changes `output` and returns nothing. `return output` comes after the `if`, not inside it.

# %% solution="apply" tags=["engine"]
def apply(cls, *inputs, **options):
    """Compute one operation, and record it if recording is on and some input requires grad.

    cls: the operation, a subclass of Function
    inputs: MiniTensors, numbers or arrays; options are passed to forward unchanged
    Returns: MiniTensor; if it was not recorded, its requires_grad is False and its grad_fn None

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> switches.recording = False
    >>> y = x * 3
    >>> switches.recording = True
    >>> y.requires_grad, (x * 3).requires_grad
    (False, True)
    """
    inputs = [as_tensor(x) for x in inputs]
    ctx = cls()
    output = MiniTensor(cls.forward(ctx, *(x.data for x in inputs), **options))
    ### BEGIN SOLUTION
    if is_grad_enabled() and any(x.requires_grad for x in inputs):
        record(ctx, inputs, output)
    return output
    ### END SOLUTION


Function.apply = classmethod(apply)

# %% check="apply"

# %% [markdown] items="27"
# `requires_grad` of a result now depends on the switch. What about a leaf that is made while it is off? **Predict** the three answers.

# %%
predict("Which three answers are printed?")
switches.recording = False
made_meanwhile = MiniTensor(2.0, requires_grad=True)
result = made_meanwhile * 3
switches.recording = True
print("the leaf:  ", made_meanwhile.requires_grad)
print("its triple:", result.requires_grad)
print("now:       ", (made_meanwhile * 3).requires_grad)

# %% [markdown]
# ## 2. Always put it back
#
# Setting the switch by hand is dangerous. If a line between the two settings fails, recording stays off. Python has a statement for this: `with`. It works with an object that has two methods. `__enter__` runs at the beginning of the block. `__exit__` runs at the end, **even if the block ends with an error**.

# %%
class Announce:
    def __enter__(self):
        print("enter")

    def __exit__(self, kind, error, traceback):
        print("exit, because of", kind)


with Announce():
    print("inside")
try:
    with Announce():
        raise KeyError("lost")
except KeyError:
    print("the error went on")

# %% [markdown]
# The three arguments of `__exit__` describe the error. Without an error they are all None. If `__exit__` returns something true, Python swallows the error. If it returns nothing, the error propagates.
#
# ### Exercise 2: no_grad and enable_grad
#
# Blocks can be nested in any order. Leaving a block does not mean "on again". It means **as it was when this block was entered**. Meanwhile, another thread may enter blocks of its own. Write the two methods. The class attribute `recording` says what holds inside. (`__call__` is for exercise 3.)
#
# If an attempt leaves the switch off, run `switches.recording = True`.

# %% [markdown] tags=["hint"] exercise="no_grad"
# `__enter__` does two things: it keeps `switches.recording` in an attribute of `self`, then it sets the switch to `self.recording`.

# %% [markdown] tags=["hint"] exercise="no_grad"
# `self.before = switches.recording` in `__enter__`, and `switches.recording = self.before` in `__exit__`. Return nothing.

# %% solution="no_grad" tags=["engine"]
class GradMode:
    """A context manager: it sets switches.recording, and restores at the end what it found, even
    after an error. The error propagates.

    >>> with no_grad():
    ...     with enable_grad():
    ...         inner = is_grad_enabled()
    ...     outer = is_grad_enabled()
    >>> inner, outer, is_grad_enabled()
    (True, False, True)
    """

    recording = True

    def __enter__(self):
        ### BEGIN SOLUTION
        self.before = switches.recording
        switches.recording = self.recording
        ### END SOLUTION

    def __exit__(self, kind, error, traceback):
        ### BEGIN SOLUTION
        switches.recording = self.before
        ### END SOLUTION

    def __call__(self, function):
        return decorated(self, function)  # exercise 3


class no_grad(GradMode):
    """Nothing is recorded inside."""

    recording = False


class enable_grad(GradMode):
    """Recording is on inside, even within no_grad."""

    recording = True

# %% check="no_grad"

# %% [markdown] items="75 77"
# PyTorch has the same classes under the same names, and gives the same answers:

# %% tags=["demo"]
yours, theirs = (no_grad, enable_grad), (torch.no_grad, torch.enable_grad)
for x, (off, on) in ((MiniTensor(2.0, requires_grad=True), yours), (leaf(2.0), theirs)):
    with off():
        outer = x * 3
        with on():
            inner = x * 3
    print(outer.requires_grad, inner.requires_grad, (x * 3).requires_grad)

# %% [markdown]
# The switch belongs to the thread. Ask a second thread while the first is inside `no_grad`:

# %% tags=["demo"]
with no_grad():
    print("this thread:", is_grad_enabled(), "  the other:", in_another_thread(is_grad_enabled))

# %% [markdown] items="F12 85"
# Some texts say that `no_grad` turns off the backward pass. Record `y = x**3` at `x = 2`. **Predict:** does `y.backward()` *inside* `no_grad` raise an error, give None, or 12?

# %% tags=["demo"] items="F12"
predict(
    "What does backward inside no_grad do?",
    "it raises an error",
    "it gives None",
    "it gives 12",
)
for x in (MiniTensor(2.0, requires_grad=True), leaf(2.0)):
    y = x**3
    with no_grad(), torch.no_grad():
        y.backward()
    print(type(x).__name__, x.grad.item())

# %% [markdown] items="F12 85 F15"
# It works: `apply` checks the switch when it runs an operation. `backward` walks a graph that exists, and does not check.
#
# What happens to a program that trains inside `no_grad` by accident? There are three cases: nothing is inside, the whole step is inside, or only the first part of the model. **Predict** for each whether there is an error.

# %% tags=["demo"] items="85 F15"
def one_step(inside, tensor, set_recording):
    first, second = layers(tensor, 2, 3)
    with set_recording(inside != "the whole step"):
        with set_recording(inside == "nothing"):
            hidden = (tensor(np.ones((4, 3))) @ first).tanh()
        ((hidden @ second) ** 2).mean().backward()
    return set_or_none(first, second)


predict(
    "In which cases is there an error?",
    "in none",
    "whole step inside",
    "first part inside",
    "both of these",
)
yours = MiniTensor, lambda recording: enable_grad() if recording else no_grad()
for inside in ("nothing", "the whole step", "the first layer"):
    attempt(f"{inside}, yours", lambda: one_step(inside, *yours))
    attempt(f"{inside}, PyTorch", lambda: one_step(inside, torch.tensor, torch.set_grad_enabled))

# %% [markdown] items="85 F15"
# If the whole step is inside, the mistake is **loud**: there is no graph, and `backward` raises an error. If only a part is inside, the mistake is **quiet**: that part has become a constant. Its `.grad` is not zero. It is `None`, because no gradient arrived. A check for zero norms would miss it; a check for `w.grad is None` finds it.

# %% [markdown] items="75"
# ## 3. A whole function
#
# Often a whole function should run without recording: an evaluation, or the update of an average. `@no_grad()` above the function says that in one line. A decorator is called with the function and returns another function, which replaces it. So your class has a third method, `__call__`. It calls the function that you write now.
#
# ### Exercise 3: the decorator
#
# Write `decorated(self, function)`. It returns a function that takes any arguments, positional and named, runs `function` inside the mode of `self`, and returns its result. Remember:
#
# * the mode holds while the function **runs**, not while you decorate it;
# * if the function fails, the switch is restored and the error propagates;
# * if the function calls itself, the mode is entered twice before it is left, and the switch must still be restored;
# * `functools.wraps(function)` above the new function keeps the name and docstring.

# %% [markdown] tags=["hint"] exercise="decorated"
# Inside `decorated`, define `def call(*arguments, **named):` and return `call`, not `call()`.

# %% [markdown] tags=["hint"] exercise="decorated"
# If the function calls itself, the block is entered twice before it is left once. With a single object, the second `__enter__` overwrites what the first one kept. Enter a new object in each call, a copy: `with copy.copy(self):`.

# %% [markdown] tags=["hint"] exercise="decorated"
# The body of `call` is `with copy.copy(self):` and below it `return function(*arguments, **named)`. `@functools.wraps(function)` goes above `def call`.

# %% solution="decorated" tags=["engine"]
def decorated(self, function):
    """A function that does what `function` does, in the mode of self.

    self: an object such as no_grad() or enable_grad()
    function: any function
    Returns: function with the same name, arguments and result

    >>> @no_grad()
    ... def tripled(x):
    ...     return x * 3
    >>> tripled(MiniTensor(2.0, requires_grad=True)).requires_grad
    False
    >>> tripled.__name__
    'tripled'
    """
    ### BEGIN SOLUTION
    @functools.wraps(function)
    def call(*arguments, **named):
        with copy.copy(self):
            return function(*arguments, **named)

    return call
    ### END SOLUTION

# %% check="decorated"

# %% [markdown] items="75"
# In PyTorch you may leave out the parentheses: `@torch.no_grad` works too. With your class that is an error.
#
# A third form takes the mode as an argument. That helps when training and validation share the same code.

# %% tags=["engine"]
def set_grad_enabled(recording):
    """enable_grad() or no_grad(), depending on the argument: a context manager and a decorator."""
    return enable_grad() if recording else no_grad()

# %% [markdown] items="78"
# PyTorch's `set_grad_enabled` can do more: called without `with`, it sets the switch at once, and does not put it back.
#
# ## 4. One tensor: detach
#
# A mode applies to a piece of *code*. `detach` works on a single *tensor*: it returns a new tensor with the same numbers, no `grad_fn` and no `requires_grad`. The memory is the same too: nothing is copied.
#
# ### Exercise 4: detach
#
# Write `detach`. It must work whether recording is on or off, and leave the original unchanged.

# %% [markdown] tags=["hint"] exercise="detach"
# A new MiniTensor around `self.data` is a leaf that does not require grad. The constructor calls `np.asarray`, which does not copy an array that is already float64.

# %% solution="detach" tags=["engine"]
def detach(self):
    """The same numbers in the same memory, as a leaf that does not require grad.

    self: MiniTensor of any shape, which stays unchanged. Returns: MiniTensor of the same shape

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> y = (x * 3).detach()
    >>> y.requires_grad, y.is_leaf, np.shares_memory(x.detach().data, x.data)
    (False, True, True)
    """
    ### BEGIN SOLUTION
    return MiniTensor(self.data)
    ### END SOLUTION


MiniTensor.detach = detach

# %% check="detach"

# %% [markdown] items="78 F31"
# Shared memory can be dangerous. The right gradient of `x**2` at 3 is 6. **Predict** which one your engine finds after 100 is written to the detached twin of `x`.

# %%
predict("Which gradient does your engine find?")
x = MiniTensor([3.0], requires_grad=True)
y, twin = x**2, x.detach()
twin.data[0] = 100.0
y.backward()
print("x is now", x.data, "  gradient", x.grad.data, "  right: [6.]")

# %% tags=["demo"] items="78 F31"
x_torch = leaf([3.0])
y_torch = x_torch**2
x_torch.detach()[0] = 100.0
attempt("PyTorch: backward", lambda: y_torch.backward())

# %% [markdown] items="78 F31 79"
# The node of `x**2` had saved the array, and the write through the twin changed it. Your engine computes a wrong gradient without a message. PyTorch counts the writes to a piece of memory, and original and twin share the counter. You build that in lesson 09.
#
# Where does the gradient go if a tensor is detached inside a model? An **autoencoder** turns its input into a short code and reconstructs the input from that code. Here the code is detached between the two halves. **Predict** which of the gradients are None.

# %% tags=["demo"] items="79 80"
predict("With the code detached, whose gradient is None?", "the encoder's", "the decoder's", "both")
generator = np.random.default_rng(3)
for name, tensor in {"yours": MiniTensor, "PyTorch": torch.tensor}.items():
    for form in ("attached", "detached"):
        rows = tensor(generator.normal(size=(5, 4)))
        encoder = tensor(generator.normal(size=(4, 2)), requires_grad=True)
        decoder = tensor(generator.normal(size=(2, 4)), requires_grad=True)
        code = (rows @ encoder).tanh()
        rebuilt = (code.detach() if form == "detached" else code) @ decoder
        ((rebuilt - rows) ** 2).mean().backward()
        print(f"{name}, {form}: encoder, decoder", set_or_none(encoder, decoder))

# %% [markdown]
# Here is the graph of a result with one factor detached. The detached tensor `cut` is a leaf: no edge leads from it to `x`, so `x` and `tanh` are not in the picture.

# %% tags=["demo"]
x, w = MiniTensor(0.5, requires_grad=True), MiniTensor(0.8, requires_grad=True)
cut = (x * w).tanh().detach()
out = cut * w + w
explore(out)

# %% [markdown] items="82"
# | | `no_grad` | `detach` |
# | --- | --- | --- |
# | applies to | a piece of code | one tensor |
# | the operations | run, and make no node | were recorded before; the gradient stops here |
# | memory of the result | new, except for views | shared with the original |
# | memory of the history | never kept | kept as long as something holds the original |
# | ends with | the block, or `enable_grad` | nothing: the twin has no history |
#
# Some texts say that `no_grad` allocates no memory. It does: each result needs its own memory, unless it is a view such as `x.T`.
#
# ### Loud or quiet
#
# Let `y = g(x) + x`, where `g(x)` should be the cube of `x`. At 2 the right slope is 13. If the path through `g` is lost, the gradient is 1. Here are twelve forms of `g` in PyTorch. Each is right, loud, quiet, or lost with a warning. **Predict** how many are right.

# %% tags=["demo"] items="F16 73 82"
predict("How many of the twelve are right?")
ways = (
    *("x**3", "(torch.stack([x])**3).sum()", "(torch.tensor([x])**3).sum()", "x.item()**3"),
    *("float(x)**3", "math.pow(x, 3)", "x.detach()**3", "x.data**3", "x.long()**3"),
    *("(x > 1) * 8.0", "torch.as_tensor(np.power(x, 3))", "torch.as_tensor(x.numpy()**3)"),
)
torch.set_warn_always(True)  # otherwise this warning comes only once in a session
for text in ways:
    print(f"{text:32s}", verdict(lambda x: eval(text)))
torch.set_warn_always(False)

# %% [markdown] items="F16 73"
# The pattern: **autograd sees operations on tensors, and nothing else.** `item()` gives you a plain number, and that is allowed, because logging a loss needs it. (PyTorch warns when `float(x)`, `math.pow` or `torch.tensor([x])` turns a tensor into a number, and continues. It says nothing about `int(x)` and `bool(x)`.) `.numpy()` is loud because you could compute with an array for a long time before you notice. `detach()` does what it says, so its silence is right.

# %% [markdown] items="76"
# ## 5. inference_mode
#
# `no_grad` is not strict: its results are ordinary tensors, and you may use them anywhere later. PyTorch has a stricter mode for code that will *never* need gradients. In `inference_mode` nothing is recorded either, and new tensors made inside are **marked permanently**. PyTorch then skips some work: such a tensor has no version counter, for example. The price is an error if a gradient needs such a tensor later. (PyTorch does not mark a view of an ordinary tensor, such as `w.detach()`. Your engine does, because `detach` makes a new MiniTensor.)
#
# Marking is easy, because every tensor goes through one constructor.

# %% tags=["engine"]
def marked(self, data, requires_grad=False):
    """A new leaf that knows whether it was made in inference mode."""
    self.data = np.asarray(data, dtype=np.float64)
    self.requires_grad = requires_grad
    self.grad = None
    self.grad_fn = None
    self._accumulate = None
    self._inference = switches.inference


MiniTensor.__init__ = marked
MiniTensor.is_inference = lambda self: self._inference


def is_inference_mode_enabled():
    """Whether tensors made now are marked."""
    return switches.inference


SAVED_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
    "inference mode in computation tracked by autograd. To work around this, you can make a clone "
    "to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
    "`torch.inference_mode()`."
)

# %% [markdown] items="F14 89"
# When should the error come? "An inference tensor must never meet a recorded one" would be too strict. **Predict** how many lines PyTorch refuses.

# %% tags=["demo"] items="F14 89"
predict("How many of the lines does PyTorch refuse?")
with torch.inference_mode():
    t_torch = torch.ones(3) * 2
q_torch = torch.ones(3, requires_grad=True)
attempt("t + q, backward", lambda: gradient_of(t_torch + q_torch, q_torch))
attempt("t * q", lambda: t_torch * q_torch)
attempt("t.clone() * q, backward", lambda: gradient_of(t_torch.clone() * q_torch, q_torch))
attempt("t + 1, made outside: marked?", lambda: (t_torch + 1).is_inference())
attempt("t.detach(): marked?", lambda: t_torch.detach().is_inference())
attempt("t.requires_grad_()", lambda: t_torch.requires_grad_())
attempt("t.add_(1) outside", lambda: t_torch.add_(1))
attempt("t after the error", lambda: t_torch.tolist())

# %% [markdown] items="F14 89"
# The sum is allowed, the product is not. A sum saves nothing. The product must **save** `t` for the gradient of `q`. That is forbidden, and the error comes at the moment of saving: in the forward pass, not in `backward`. A clone made outside is an ordinary tensor.
#
# Look at the last line again. The write was refused, and still it has happened: PyTorch computes first and checks the mark afterward.
#
# ### Exercise 5: inference_mode
#
# This exercise has two parts. First write a class `inference_mode(mode=True)`. Inside, `switches.recording` is off and `switches.inference` is on. At the end **both** are restored, in nested blocks and after errors too. It is a context manager and a decorator, so it needs four methods: `__init__`, `__enter__`, `__exit__` and `__call__`. `inference_mode(False)` inside another does the opposite: recording on, marking off.
#
# Second, complete the new `record`. It checks what the operation has saved. If one of the arrays in `ctx.saved_tensors` is the `data` of a marked input (not only equal to it), raise `RuntimeError(SAVED_INFERENCE)`. (The first two lines are given: in inference mode nothing is recorded, not even inside `enable_grad`.)

# %% [markdown] tags=["hint"] exercise="inference_mode"
# Keep both switches as a pair, `self.before = switches.recording, switches.inference`, and restore both from it. The class needs an `__init__` that keeps its argument.

# %% [markdown] tags=["hint"] exercise="inference_mode"
# `__call__` can return `decorated(self, function)`, if that enters `copy.copy(self)`, which keeps the argument. `type(self)()` has no argument: then write a `__call__` that enters `inference_mode(self.mode)` in each call.

# %% [markdown] tags=["hint"] exercise="inference_mode"
# Check for the same object, not the same numbers: `any(saved is x.data for saved in ctx.saved_tensors)` for each `x` in `inputs` with `x.is_inference()`. (`x.data in ctx.saved_tensors` compares numbers.)

# %% solution="inference_mode" tags=["engine"]
class inference_mode:
    """Inside, nothing is recorded, and new tensors are marked.

    mode: True, or False to leave inference mode for a block: recording is on, and no mark is set
    A context manager and a decorator. At the end both switches are restored, even after an error.

    >>> with inference_mode():
    ...     t = MiniTensor([1.0, 2.0]) * 2
    >>> t.is_inference(), t.requires_grad, is_grad_enabled()
    (True, False, True)
    """

    ### BEGIN SOLUTION
    def __init__(self, mode=True):
        self.mode = mode

    def __enter__(self):
        self.before = switches.recording, switches.inference
        switches.recording, switches.inference = not self.mode, self.mode

    def __exit__(self, kind, error, traceback):
        switches.recording, switches.inference = self.before

    def __call__(self, function):
        @functools.wraps(function)
        def call(*arguments, **named):
            with inference_mode(self.mode):
                return function(*arguments, **named)

        return call

    ### END SOLUTION


def record(ctx, inputs, output):
    """Make ctx a node of the graph, with the result output, unless this thread is in inference mode.

    Raises RuntimeError(SAVED_INFERENCE) if ctx saved the very array that is x.data of a marked x.

    >>> with inference_mode():
    ...     t = MiniTensor(2.0)
    >>> w = MiniTensor(3.0, requires_grad=True)
    >>> (t + w).requires_grad
    True
    """
    if switches.inference:
        return
    ### BEGIN SOLUTION
    for x in inputs:
        if x.is_inference() and any(saved is x.data for saved in ctx.saved_tensors):
            raise RuntimeError(SAVED_INFERENCE)
    ### END SOLUTION
    ctx.next_functions = tuple(edge_to(x) for x in inputs)
    ctx.input_shapes = tuple(x.shape for x in inputs)
    output.requires_grad, output.grad_fn = True, ctx

# %% check="inference_mode"

# %% [markdown] items="88"
# Four attempts, with your engine and with PyTorch:

# %% tags=["demo"] items="88 89"
yours, theirs = (MiniTensor, inference_mode), (torch.tensor, torch.inference_mode)
for name, (tensor, mode) in {"yours": yours, "PyTorch": theirs}.items():
    with mode():
        t = tensor([1.0, 1.0, 1.0]) * 2
    q = tensor([1.0, 1.0, 1.0], requires_grad=True)
    attempt(f"{name}: t + q, backward", lambda: gradient_of(t + q, q))
    attempt(f"{name}: t * q", lambda: t * q)
    with mode(), enable_grad(), torch.enable_grad():
        attempt(f"{name}: enable_grad inside", lambda: (q * 2).requires_grad)
    attempt(f"{name}: (t + 0) * q, backward", lambda: gradient_of((t + 0) * q, q))

# %% [markdown] items="81 83 F51"
# ## 6. What to use when
#
# Stopping a gradient is not only about cost. Some methods need it to be **correct**. They learn from their own predictions, or have two networks with opposite aims (*Further*).
#
# | you want to | use | because |
# | --- | --- | --- |
# | validate during training | `no_grad` | results may be used anywhere afterward |
# | serve a finished model | `inference_mode`, or `no_grad` | the stricter mode is safe here and sometimes a little faster |
# | log a loss | `item()` | a number keeps no graph alive |
# | keep a tensor for later | `detach`, and a copy (`.detach().clone()` in PyTorch) | the history can go, and the values stay, even if the original is written to |
# | stop a gradient inside a loss | `detach` | it cuts one edge, the rest is recorded |
# | update weights by hand | `no_grad` | the update is not part of the function |
# | train only part of a model | `requires_grad = False` on the rest | the rest gets no `.grad`; frozen layers before the trained ones save nothing |
#
# The rule "never use `no_grad` for serving" is a preference: except for tiny operations, the times differ little (*Further*).
#
# `model.eval()` is something else. It does not change recording. It changes what some layers **compute**: Dropout stops dropping, BatchNorm uses its stored statistics. **Predict** in which mode the same answer comes twice.

# %% tags=["demo"] items="84"
predict(
    "In which mode is the same answer given twice?",
    "training",
    "evaluation",
    "both",
    "neither",
)
model = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Dropout(0.5))
ones = torch.ones(1, 4)

for training in (True, False):
    for recording in (True, False):
        model.train(training)
        with torch.set_grad_enabled(recording):
            first, second = model(ones), model(ones)
        print("train()" if training else "eval()", end=": " if recording else " and no_grad: ")
        print(f"recorded {first.requires_grad}, twice the same {torch.equal(first, second)}")

# %% [markdown] items="84"
# The third line is right but wasteful, the second is fast but wrong. An evaluation needs both.

# %% [markdown]
# ## Quiz

# %% test="quiz_07" points=4 tags=["quiz"] items="85 88"
question(
    "whole_step",
    "A colleague has put `with no_grad():` around the whole training step, `backward` included. What happens?",
    right("`backward` raises an error in the first step.", "The loss has no `grad_fn`, so there is no graph to walk."),
    wrong("The loss stays constant, without any message.", "For that, `backward` would have to succeed. Only a *part* of the model under `no_grad` is quiet.", misconception="no_grad_is_silent"),
    wrong("All gradients are zero.", "Where nothing arrives, `.grad` stays None. Zeros are not written.", misconception="none_means_zero"),
    wrong("It trains as usual: `no_grad` affects inference only.", "The switch does not know what the code is for.", misconception="modes_know_the_purpose"),
)
question(
    "encoder_only",
    "Only the encoder runs under `no_grad`; the decoder is recorded. After `backward`, what is `.grad` of an encoder weight?",
    right("None", "Its operations left no nodes, so no gradient is ever sent there."),
    wrong("A tensor of zeros", "Zero is a gradient that arrived. Here none does, and a test for zero norms would miss it.", misconception="none_means_zero"),
    wrong("The right gradient: recording is on again in the decoder", "The decoder's graph ends at the encoder's output, which is a plain tensor.", misconception="modes_are_retroactive"),
    wrong("An error is raised at the boundary", "A plain tensor may enter any operation. That is why this case is quiet.", misconception="mixing_is_forbidden"),
)
question(
    "backward_inside",
    "`y = x**3` is computed normally. Then, inside `no_grad`, `y.backward()`. Result?",
    right("`x.grad` is right.", "The graph exists already. The switch is checked when an operation runs, not when the graph is walked."),
    wrong("An error: backward is switched off.", "It is *recording* that is switched off.", misconception="no_grad_disables_backward"),
    wrong("`x.grad` stays None.", "The nodes are there and pass the gradient on.", misconception="modes_are_retroactive"),
    wrong("`x.grad` is zero.", "No rule is changed by the mode.", misconception="none_means_zero"),
)
question(
    "inference_sum",
    "`t` was made in `inference_mode`, `w` requires grad. Which line raises an error?",
    right("`t * w`, when it is computed", "The gradient of `w` is `t` times what arrives, so `t` must be saved, and that is refused."),
    wrong("`t + w`, when it is computed", "The rule of a sum needs no saved value, so this one passes.", misconception="inference_tensors_cannot_be_used"),
    wrong("`t * w`, but only when `backward` is called", "The refusal comes at the moment of saving, in the forward pass.", misconception="errors_come_in_backward"),
    wrong("Both `t + w` and `t * w`, when they are computed", "Only what must be saved is refused.", misconception="inference_tensors_cannot_be_used"),
)
question(
    "restore",
    "A `no_grad` sets recording to True in `__exit__` instead of putting back what was there. When does it go wrong?",
    right("When it is inside another `no_grad`.", "After the inner block, the rest of the outer one is recorded."),
    wrong("When the block ends with an error.", "`__exit__` runs then as well.", misconception="exit_skipped_on_error"),
    wrong("Never: recording is on by default.", "By default, but not everywhere.", misconception="modes_do_not_nest"),
    wrong("When the block is left by `return`.", "`__exit__` runs then too.", misconception="exit_skipped_on_error"),
)
question(
    "detach_copy",
    "`d = x.detach()`, then the memory of `d` is written to. What about `x`?",
    right("It changes too.", "Nothing is copied. If a rule had saved `x`, its gradient is in danger."),
    wrong("It keeps its values: `detach` makes a copy.", "A copy would be `x.detach().clone()`.", misconception="detach_copies"),
    wrong("It changes, but its gradients stay right.", "A rule that saved `x` reads the new numbers.", misconception="saved_values_are_copies"),
    wrong("An error: `d` may only be read.", "It is an ordinary tensor.", misconception="detach_is_read_only"),
)

# %% [markdown] question="why_detach_is_not_a_copy" points=3
# ### Why is a snapshot not safe?
#
# A program keeps `snapshot = w.detach()` before each step of the optimizer. In the end, all snapshots are equal. **Why**? And why is `detach` made like this, if it is so easy to be caught? Answer in one paragraph, and repair the line.
#
# ### BEGIN MARK SCHEME
# *A good answer:* `detach` gives a new tensor without history on the same memory. The optimizer writes into that memory in place, so each snapshot shows the newest values. It copies nothing because its usual purpose, to stop a gradient, needs no copy, and a copy of every such tensor would cost time and memory. `w.detach().clone()` keeps the values.
#
# * 1 point: the snapshot shares its memory with `w`
# * 1 point: the optimizer writes in place
# * 1 point: the repair: `w.detach().clone()`, and why a copy is not the default
#
# Wrong answers, and what they get:
#
# * *Because `w` still requires grad*, or *because the graph is the same*: no point. A snapshot has no history; it is about memory.
# * *Use `.item()`* or *`torch.no_grad()`*: no third point. The first is for one number, the second copies nothing either.
# ### END MARK SCHEME

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | the switch | one flag per thread, checked in one place: `apply` |
# | `no_grad`, `enable_grad` | set it for a block or a function, and restore what was there before |
# | `inference_mode` | records nothing and marks what it makes; a marked tensor cannot be saved for backward |
# | `detach` | same memory, no history |
# | loud | no graph at all: `backward` raises an error. `.numpy()` of a recorded tensor |
# | quiet | a part without a graph: `.grad` is None. `item()`, `.data`, comparisons |
#
# Now you can answer the opening question. Autograd notices a mistake when `backward` finds no graph, or when a program asks for something that does not exist. Once you have taken a plain number out, autograd cannot notice.
#
# In the next lesson you write operations with your own rules.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without exercise 6. Run the next cell first. After that, the sections do not depend on each other.

# %% tags=["demo"]
import time
import tracemalloc
import weakref

from torch.utils._python_dispatch import TorchDispatchMode

from mini_autograd.widgets.demos.stopwatch import now

torch.set_num_threads(1)  # steadier times on a busy machine

# %% [markdown] items="81"
# ## A target that must stand still
#
# An agent gets a reward of 1 in every step, and a reward one step later counts 0.9 as much. The value `v` of its situation should satisfy `v = 1 + 0.9 * v`, so `v = 10`. To learn it, lower `(v - target)**2` with `target = 1 + 0.9 * v`. The target is computed with the same `v`. Should the gradient go through it? **Predict** where the two trainings are after 300 steps.

# %% items="81"
predict("Where is v after 300 steps with the target detached, and where without?")


def values(stop, steps=300):
    v = MiniTensor(0.0, requires_grad=True)
    path = []
    for _ in range(steps):
        target = 1 + 0.9 * v
        loss = (v - (target.detach() if stop else target)) ** 2
        v.grad = None
        loss.backward()
        v.data = v.data - 0.1 * v.grad.data
        path.append(v.item())
    return path


stopped, through = values(stop=True), values(stop=False)
print(f"after 300 steps, with the target detached: {stopped[-1]:5.2f}")
print(f"                 without:                  {through[-1]:5.2f}   right: 10")

# %% [markdown] items="81"
# Without the stop, the gradient moves both sides at once: raising `v` raises the target by 0.9 as much, so only a tenth of the gradient is left. The way to 10 takes ten times as many steps. (If the next situation is random, it can even end at a wrong value.) With the stop, the target is a goal, and the prediction moves toward it. So methods that learn from their own predictions stop the gradient at the target. Examples are target networks in reinforcement learning, and momentum encoders, which keep a slowly moving average of a network, updated under `no_grad`.

# %% [markdown] items="81 F30"
# ## Two networks with opposite aims
#
# In a **GAN** a generator `G` turns noise into samples, and a discriminator `D` says how real a sample looks. `D` is trained to tell real samples from generated ones, and `G` is trained to fool `D`. They have separate optimizers and take turns. Where does a `detach` belong? A tutorial says: *stop the gradient in the discriminator while training the generator.* Try three variants of the loss of `G`.

# %% items="81 F30"
noise = MiniTensor([[0.5], [-1.0], [2.0]])


def gan_step(variant):
    g = MiniTensor([[1.5]], requires_grad=True)
    d = MiniTensor([[0.7]], requires_grad=True)
    made = noise @ g
    if variant == "D's verdict detached":
        loss = (((made @ d).tanh().detach() - 1) ** 2).mean()
    elif variant == "sample detached":
        loss = (((made.detach() @ d).tanh() - 1) ** 2).mean()
    else:
        loss = (((made @ d).tanh() - 1) ** 2).mean()
    loss.backward()
    return ["None" if p.grad is None else "set" for p in (g, d)]


for variant in ("nothing detached", "D's verdict detached", "sample detached"):
    try:
        print(f"{variant:22s} G {gan_step(variant)[0]:5s} D {gan_step(variant)[1]}")
    except NotImplementedError:
        raise
    except RuntimeError as error:
        print(f"{variant:22s} RuntimeError: {error}")

# %% [markdown] items="F30"
# With the tutorial's advice, nothing is trained. `G` learns *through* `D`: the gradient of the verdict with respect to the sample is all that `G` gets. The stop belongs in the other turn. When `D` is trained, the samples are only examples, so detach them: `D` gets its gradient, and you save the work of going back through `G`.
#
# ### Exercise 6: the two losses of a GAN
#
# The docstrings say what to write. The squared errors compare the scores with 1 for real and 0 for generated samples.

# %% [markdown] tags=["hint"] exercise="gan_losses"
# The loss of the discriminator has two means: of `(discriminator(real) - 1) ** 2`, and of `discriminator(made) ** 2`, where `made` comes from the generator and is detached.

# %% [markdown] tags=["hint"] exercise="gan_losses"
# The loss of the generator compares the scores of generated samples with 1, and detaches nothing.

# %% solution="gan_losses"
def discriminator_loss(generator, discriminator, real, noise):
    """Mean of (score - 1)**2 over real samples, plus mean of score**2 over generated ones.

    generator, discriminator: functions from a MiniTensor to a MiniTensor
    real, noise: MiniTensors; generator(noise) returns the generated samples, and the discriminator
        returns scores
    Returns: MiniTensor of shape (). Its backward reaches the parameters of the discriminator, and
        not those of the generator
    """
    ### BEGIN SOLUTION
    made = generator(noise).detach()
    return ((discriminator(real) - 1) ** 2).mean() + (discriminator(made) ** 2).mean()
    ### END SOLUTION


def generator_loss(generator, discriminator, noise):
    """Mean of (score - 1)**2 over generated samples.

    generator, discriminator, noise: as for discriminator_loss
    Returns: MiniTensor of shape (). Its backward reaches the parameters of the generator
    """
    ### BEGIN SOLUTION
    return ((discriminator(generator(noise)) - 1) ** 2).mean()
    ### END SOLUTION

# %% check="gan_losses"

# %% [markdown] items="F30"
# Your two functions work on PyTorch's networks too, if they use only operators and `detach`. (If your loss uses your own `no_grad` in place of `detach`, the first line says "set" for `G`. If it makes a `MiniTensor`, you get a TypeError.) **Predict:** in the turn of `G`, do the parameters of `D` get a gradient?

# %% tags=["demo"] items="F30"
predict("In the turn of G, do the parameters of D get a gradient?", "yes", "no")
G, D = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
z, real_torch = torch.randn(5, 2), torch.randn(5, 3)


def who_has_a_gradient(text, loss):
    loss.backward()
    found = ["None" if net.weight.grad is None else "set" for net in (G, D)]
    print(f"{text:27s} G {found[0]:4s}  D {found[1]}")
    G.zero_grad()
    D.zero_grad()


who_has_a_gradient("turn of D, sample detached:", discriminator_loss(G, D, real_torch, z))
who_has_a_gradient("turn of G, nothing frozen:", generator_loss(G, D, z))
for parameter in D.parameters():
    parameter.requires_grad = False
who_has_a_gradient("turn of G, D frozen:", generator_loss(G, D, z))

# %% [markdown] items="F30"
# In the turn of `G` the discriminator gets a gradient too. No optimizer uses it in this turn, but the next backward pass would add to it. So clear it before the turn of `D`, or freeze `D` while `G` learns.

# %% [markdown] items="F10"
# ## What recording costs: time
#
# "Inference mode is 10 to 34 percent faster" is a claim from a tutorial. Its program timed the three modes one after the other, without a warm-up, in one order. Do the same here, with one difference: the three candidates are **the same code**. **Predict** which of the three runs is slowest.

# %% tags=["demo"] items="F10"
predict(
    "Which of the three runs of the same code is slowest?",
    "the first",
    "the second",
    "the third",
    "all alike",
)
cold_rows = torch.randn(256, 512)
cold = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
for name in ("first", "second", "third"):
    start = time.perf_counter()
    for _ in range(3):
        cold(cold_rows)
    print(f"{name:7s} {1000 * (time.perf_counter() - start) / 3:6.2f} ms")

# %% [markdown] items="F10 86"
# The code is the same, but the times differ: the first may pay for a cold start, and the machine does other work. Measure properly: warm up, take turns, change the order from round to round, and compare **within** each round, so that other work disturbs all three equally. The clock is `now`, which counts only the time of this thread, where the system has such a clock.
#
# **Predict** for forty tiny operations: the time under `no_grad`, divided by the time with recording.

# %% tags=["demo"] items="F10 86"
predict("Forty tiny operations: time under no_grad / time with recording?")


def ratios(action, modes, inner, rounds=41):
    """Median microseconds of the first mode, and median ratio of each mode to the one before it."""
    times = [[] for _ in modes]

    def run(mode):
        with mode():
            start = now()
            for _ in range(inner):
                action()
            return (now() - start) / inner

    for mode in modes:
        run(mode)  # warm up
    for number in range(rounds):
        for shift in range(len(modes)):
            which = (number + shift) % len(modes)
            times[which].append(run(modes[which]))
    steps = [np.median(np.divide(after, before)) for before, after in zip(times, times[1:])]
    return 1e6 * np.median(times[0]), steps


def perceptron(*sizes):
    parts = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        parts += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


vector, weight = torch.ones(8), torch.ones(8, requires_grad=True)


def forty_tiny():
    x = vector
    for _ in range(10):
        x = (x * weight).view(8).view(8) + weight
    return x


small, small_rows = perceptron(64, 64, 64, 10), torch.randn(32, 64)
large, large_rows = perceptron(512, 512, 512, 10), torch.randn(128, 512)
torch_modes = (torch.enable_grad, torch.no_grad, torch.inference_mode)
workloads = {
    "forty tiny operations": (forty_tiny, 5),
    "small network, 32 rows": (lambda: small(small_rows), 8),
    "large network, 128 rows": (lambda: large(large_rows), 1),
}
measured = {}
for name, (action, inner) in workloads.items():
    microseconds, (without, inference) = ratios(action, torch_modes, inner)
    measured[name] = without, inference
    print(f"{name:24s} recording {microseconds:8.1f} us", end="   ")
    print(f"no_grad/recording {without:.2f}   inference/no_grad {inference:.2f}")

# %% tags=["demo"] items="F10"
import matplotlib.pyplot as plt

plt.rcParams.update({"figure.figsize": (7, 4), "figure.facecolor": "white", "font.size": 11})
plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.3})

one, ten = MiniTensor(np.ones(8), requires_grad=True), MiniTensor(np.ones(8))


def forty_tiny_mine():
    x = ten
    for _ in range(20):
        x = x * one + one
    return x


microseconds, (without, inference) = ratios(
    forty_tiny_mine, (enable_grad, no_grad, inference_mode), 3
)
measured["your engine, forty tiny"] = without, inference

fig, axis = plt.subplots(layout="constrained")
places = np.arange(len(measured))
for shift, (label, which) in enumerate(
    (("no_grad / recording", 0), ("inference_mode / no_grad", 1))
):
    axis.barh(places + 0.36 * shift, [pair[which] for pair in measured.values()], 0.34, label=label)
axis.axvline(1, color="gray", linewidth=1)
axis.set_yticks(places + 0.18, list(measured))
axis.set(xlabel="ratio of times (less than 1: faster)", xlim=(0, 1.4))
axis.invert_yaxis()
fig.legend(loc="outside upper center", ncols=2, fontsize=9)
plt.show()

# %% [markdown] items="F10 86"
# The modes save a small amount **per operation**: a node that is not made, a counter that is not kept. With tiny operations you can see it. With large matrices the arithmetic takes nearly all the time, and the ratio between `no_grad` and `inference_mode` is 1, apart from timing noise. In your engine `no_grad` saves the node; `inference_mode` saves nothing more.

# %% [markdown] items="87 F36"
# ## What recording costs: memory
#
# A node keeps what its rule needs. Under `no_grad` nothing is kept, so each activation is freed as soon as the next one exists. Some texts say "two to three times less". **Predict:** how does the ratio depend on the number of layers?

# %% tags=["demo"] items="87 F36"
import matplotlib.pyplot as plt

predict(
    "How does the ratio depend on the number of layers?",
    "not at all",
    "it grows with it",
    "it falls with it",
)


class LiveBytes(TorchDispatchMode):
    """Counts the bytes of all tensors that operations have made and that are still alive."""

    def __init__(self):
        super().__init__()
        self.sizes, self.peak = {}, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            storage = tensor.untyped_storage()
            if storage._cdata not in self.sizes:
                self.sizes[storage._cdata] = storage.nbytes()
                weakref.finalize(storage, self.sizes.pop, storage._cdata)
        self.peak = max(self.peak, sum(self.sizes.values()))
        return result


def peak_torch(mode, rows, weights):
    with LiveBytes() as live, mode():
        output = network(rows, weights)
    del output
    return live.peak


def peak_mine(mode, rows, weights):
    """NumPy tells tracemalloc what it allocates. PyTorch does not."""
    tracemalloc.start()
    try:
        with mode():
            output = network(rows, weights)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    del output
    return peak


width, depths = 128, (1, 2, 4, 8, 16, 32)
rows_mine = MiniTensor(np.ones((100, width)))
rows_torch = torch.ones(100, width, dtype=torch.float64)
curves = {"your engine": [], "PyTorch": []}
for depth in depths:
    mine, theirs = layers(MiniTensor, depth, width), layers(torch.tensor, depth, width)
    peaks = [peak_mine(mode, rows_mine, mine) for mode in (enable_grad, no_grad)]
    curves["your engine"].append(peaks[0] / peaks[1])
    peaks = [peak_torch(mode, rows_torch, theirs) for mode in (torch.enable_grad, torch.no_grad)]
    curves["PyTorch"].append(peaks[0] / peaks[1])

fig, axis = plt.subplots(layout="constrained")
for (name, values), marker, size in zip(curves.items(), "os", (11, 6)):
    axis.plot(depths, values, f"{marker}-", markersize=size, label=name)
axis.axhspan(2, 3, color="gray", alpha=0.25)
axis.text(30, 2.5, '"two to three times"', color="gray", ha="right", va="center")
axis.set(xlabel="number of layers", ylabel="peak with recording / peak without", ylim=(0, None))
axis.legend()
plt.show()
for name, values in curves.items():
    print(f"{name:12s}", "  ".join(f"{depth}: {value:.1f}" for depth, value in zip(depths, values)))

# %% [markdown] items="87 F36"
# There is no fixed factor. With recording, memory grows with the depth; without, it does not. One layer saves nothing, 32 layers save a lot. Both peaks count only activations. The weights are there in any case, so the saving is a smaller part of the total.
#
# Freezing does the same as `no_grad` here: if no weight requires grad, `apply` records nothing.

# %% [markdown] items="F11 F13"
# ## Two myths about the modes
#
# Some texts say that *the modes differ because `no_grad` counts a version for every operation*, and that *only `no_grad` allows writing to a leaf*. **Predict** how many of the two writes fail.

# %% tags=["demo"] items="F11 F13"
predict("How many of the two writes to a leaf fail?", "0", "1", "2")
with torch.no_grad():
    a = torch.ones(2)
    b = a * 2
    c = b + 1
    print("under no_grad, after two operations:", a._version, b._version, c._version)
    c.add_(1)
    print("       and one that writes in place:", a._version, b._version, c._version)

for mode in (torch.no_grad, torch.inference_mode):
    w_torch = torch.ones(2, requires_grad=True)
    with mode():
        w_torch.add_(1)
    print(f"writing to a leaf inside {mode.__name__:15s}", w_torch.tolist(), end=" ")
    print("version", w_torch._version)

with torch.inference_mode():
    attempt("version of an inference tensor", lambda: torch.ones(2)._version)

# %% [markdown] items="F11 F13 88"
# Both statements are wrong. A version counts **writes**, not operations, and writing to a leaf is allowed in both modes. (Outside them it is an error. So an optimizer's step runs under `no_grad`.) The modes differ in what you may do with the tensors *afterward*.

# %% [markdown]
# ## Decorated generators
#
# A **generator** function, with `yield` in its body, is a trap for a decorator. **Predict** whether yours records its results.

# %% tags=["demo"]
predict("Does your decorated generator record its results?", "yes", "no")


def batches(x):
    for factor in (1, 2):
        yield (x * factor).requires_grad


x, x_torch = MiniTensor(2.0, requires_grad=True), leaf(2.0)
print("yours:  ", list(no_grad()(batches)(x)))
print("PyTorch:", list(torch.no_grad()(batches)(x_torch)))

# %% [markdown]
# Calling a generator function does not run its body. It returns at once and your `with` block ends. The body runs later, in the caller's mode. PyTorch asks whether the function is a generator function. If so, it enters the mode for each step and leaves it at each `yield`.

# %% [markdown]
# ## Questions about this part

# %% test="quiz_07_further" points=1 tags=["quiz"]
question(
    "memory_factor",
    "How much memory does `no_grad` save in a forward pass?",
    right("It depends: nothing for one or two layers, more with every further one.", "Recording keeps about one activation per layer. Without it, only a few are alive at a time."),
    wrong("About half.", "At some depth it is half, but not in general.", misconception="fixed_factor"),
    wrong("Two to three times, whatever the model.", "For one layer it is nothing, for 32 layers much more.", misconception="fixed_factor"),
    wrong("None; it only saves time.", "The opposite is true: in a large model the time hardly changes.", misconception="modes_save_time_only"),
)
question(
    "gan_generator",
    "While a GAN's generator is trained, where does a `detach` belong?",
    right("Nowhere between the noise and the loss.", "The generator learns only through the discriminator."),
    wrong("On the discriminator's verdict.", "Then there is no path back, and `backward` raises an error.", misconception="detach_the_critic"),
    wrong("On the generated sample.", "That belongs in the discriminator's turn. Here it would cut the generator off.", misconception="detach_the_sample"),
    wrong("On the noise.", "It would change nothing: noise does not require grad.", misconception="inputs_need_detach"),
)
