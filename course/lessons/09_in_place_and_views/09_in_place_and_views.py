# %% [markdown]
# # Behind its back
#
# *Core: about 105 minutes; section 2 is a good place for a break. Further: about 90 minutes, optional. You build version counters, methods that write in place, and views. You need lessons 05 to 08.*
#
# A loss is `sum(w * x)`, so its slope with respect to `x` is `w`: `[2, 3, 4]`. Between the forward and the backward pass, something multiplies `w` by 10, in the same memory. Here are five ways to do that in PyTorch. **Predict** the result of each: the right slope, an error, or a wrong slope without a message?

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import collections
import weakref

import numpy as np

# %% tags=["demo"]
import torch
from helpers_09 import attempt, beside_differences, complaint, leaf

# %% tags=["demo"]
predict("How many of the five ways give a wrong slope without a message?")


def under_no_grad(w):
    with torch.no_grad():
        w.mul_(10)


ways = {
    "w.mul_(10)": lambda w: w.mul_(10),
    "the same under no_grad": under_no_grad,
    "w.detach().mul_(10)": lambda w: w.detach().mul_(10),
    "w.data.mul_(10)": lambda w: w.data.mul_(10),
    "w.detach().numpy() times 10": lambda w: w.detach().numpy().__imul__(10),
}


def slope_after(write):
    x, w = leaf([1.0, 1.0, 1.0]), leaf([2.0, 3.0, 4.0])
    loss = (w * x).sum()
    write(w)
    loss.backward()
    return x.grad.tolist()


for text, write in ways.items():
    attempt(text, lambda: slope_after(write), shown=54)

# %% [markdown]
# The same numbers are overwritten in five ways. PyTorch refuses one immediately and two in `backward`; for two it returns a wrong slope without a message. **What can it see, and what can it not see?** In this lesson you will
#
# 1. count writes to memory, and refuse a backward pass that would use overwritten values;
# 2. write methods that work in place;
# 3. let tensors share memory and its counter;
# 4. find the writes that no counter sees;
# 5. explain the errors of `.numpy()` and of mixing two devices.
#
# If something breaks your engine, run the next cell again, and then every cell below it.

# %%
start_lesson()

# %% [markdown] items="113"
# ## 1. Count the writes
#
# Start with your engine unchanged. The slope of `x**2` at 2 is 4. Between forward and backward, `x` becomes 3. **Predict** your engine's answer.

# %% items="113 F17"
predict("Which slope does your engine give?", "4", "6", "an error")
x = MiniTensor(2.0, requires_grad=True)
y = x**2
x.data += 1
y.backward()
print("slope:", x.grad.item())

# %% [markdown] items="113"
# The slope is wrong, and there is no message. A node keeps arrays for its rule, and `save_for_backward` does not copy them. After a write to such an array, the rule computes with the new numbers. So in PyTorch each piece of memory has a **write counter**. Its value is the *version*. A node that saves a value notes the version, and compares it when a rule reads the value.
#
# Tensors that share memory must share its counter. So the counter is a separate object.

# %% tags=["engine"]
class Counter:
    """How often a piece of memory has been written to. All tensors that share it hold this object."""

    def __init__(self):
        self.value = 0

# %% [markdown]
# After an operation has run, each of its saved values gets a note: **which** tensor was saved, and at what version.
#
# ### Where notes are taken (just run it)
#
# Run the next cell. You don't need to read it: it makes a counter for each new tensor, whose value is `x._version`, lets `apply` take the notes, and defines the error, `modified(node, position)`.

# %% tags=["engine"]
Note = collections.namedtuple("Note", "source counter version")
Function.notes = ()  # one per saved value, once the node is in a graph
Function.returns_view = False  # section 3: whether the output may share memory with an input


def version(self):
    """How often the memory of self has been written to."""
    if self.is_inference():
        raise RuntimeError("Inference tensors do not track version counter.")
    return self._counter.value


def initialize(self, data, requires_grad=False):
    """As before, with a counter. The array is a new object, even if the memory is shared. So
    `saved is x.data` is true only if x itself was saved."""
    self.data = np.asarray(data, dtype=np.float64).view()
    self.requires_grad = requires_grad
    self.grad = None
    self.grad_fn = None
    self._accumulate = None
    self._inference = switches.inference
    self._counter = Counter()
    self._base = None  # section 3: the tensor whose memory this one shares


def apply(cls, *inputs, **options):
    """As before, but the output has its own memory, except for views (section 3). If forward
    has saved its output, the saved array is the object output.data."""
    inputs = [as_tensor(x) for x in inputs]
    ctx = cls()
    ctx.needs_input_grad = tuple(x.requires_grad for x in inputs)
    result = cls.forward(ctx, *(x.data for x in inputs), **options)
    output = MiniTensor(result)
    if not cls.returns_view and any(np.may_share_memory(output.data, x.data) for x in inputs):
        output = MiniTensor(output.data.copy())
    if is_grad_enabled() and any(x.requires_grad for x in inputs):
        ctx.saved = tuple(output.data if saved is result else saved for saved in ctx.saved)
        record(ctx, inputs, output)
    return output


def record(ctx, inputs, output):
    """As before, and ctx.notes has a note for each saved value."""
    if switches.inference:
        return
    for x in inputs:
        if x.is_inference() and any(saved is x.data for saved in ctx.saved):
            raise RuntimeError(SAVED_INFERENCE)
    ctx.next_functions = tuple(edge_to(x) for x in inputs)
    ctx.input_shapes = tuple(x.shape for x in inputs)
    ctx.notes = tuple(note_for(saved, inputs, output) for saved in ctx.saved)
    output.requires_grad, output.grad_fn = True, ctx


def modified(node, position):
    """The error for the saved value at this position, which has been written to."""
    note = node.notes[position]
    maker = node if note.source == "output" else None
    if isinstance(note.source, int):
        maker, _ = node.next_functions[note.source]
    known = maker is not None and not isinstance(maker, AccumulateGrad)
    which = f", which is output 0 of {maker.name()}," if known else ""
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [MiniTensor {list(node.saved[position].shape)}]{which} is at version "
        f"{note.counter.value}; expected version {note.version} instead. "
        f"Hint: {node.name()} had saved it. Change a copy, or compute out of place."
    )


MiniTensor._version = property(version)
MiniTensor.__init__ = initialize
Function.apply = classmethod(apply)

# %% [markdown]
# ### Exercise 1: note and compare
#
# A note is a named tuple, `Note(source, counter, version)`. Write `note_for`, which makes one, and `saved_tensors`, which compares the versions before it returns the values. If a node never reads its values, no write can disturb it.

# %% [markdown] tags=["hint"] exercise="versions"
# Go through `[*enumerate(inputs), ("output", output)]`: pairs of a source and a tensor. If `saved is tensor.data`, the note is `Note(source, tensor._counter, tensor._counter.value)`.

# %% [markdown] tags=["hint"] exercise="versions"
# Only if no array is the same object, go through the pairs again and look for shared memory: `isinstance(saved, np.ndarray) and np.shares_memory(saved, tensor.data)`. Then the source is None.

# %% [markdown] tags=["hint"] exercise="versions"
# `saved_tensors`: first look for freed values. Then `for position, note in enumerate(self.notes):`, and if `note is not None and note.counter.value != note.version`, `raise modified(self, position)`.

# %% solution="versions" tags=["engine"]
def note_for(saved, inputs, output):
    """Which tensor a saved value is, and its current version.

    saved: what save_for_backward got: an array, a NumPy number, None, ...
    inputs: list of MiniTensors; output: MiniTensor
    Returns: Note(source, counter, version), with the counter of the tensor and its current value.
        If saved is the same object as tensor.data (`is`, not equal numbers), source is the position
        of that tensor in inputs (the first one, if it is there twice), or "output".
        If saved only shares memory with a tensor, such as its transpose, source is None.
        If saved shares memory with none of them, return None instead of a note.

    >>> a, b = MiniTensor([1.0, 2.0]), MiniTensor([3.0, 4.0])
    >>> note = note_for(b.data, [a, b], a * b)
    >>> note.source, note.counter is b._counter, note.version
    (1, True, 0)
    >>> note_for(np.ones(2), [a, b], a * b) is None
    True
    """
    ### BEGIN SOLUTION
    tensors = [*enumerate(inputs), ("output", output)]
    for source, tensor in tensors:
        if saved is tensor.data:
            return Note(source, tensor._counter, tensor._counter.value)
    for _, tensor in tensors:
        if isinstance(saved, np.ndarray) and np.shares_memory(saved, tensor.data):
            return Note(None, tensor._counter, tensor._counter.value)
    return None
    ### END SOLUTION


def saved_tensors(self):
    """The tuple of what save_for_backward got, if nothing has written to it.

    Raises RuntimeError(SECOND_BACKWARD), as in lesson 06, if the values are freed (saved is None);
        modified(self, position) for a value whose counter has moved since its note.

    >>> x = MiniTensor(2.0, requires_grad=True)
    >>> y = x**3
    >>> x._counter.value += 1
    >>> y.backward()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: one of the variables needed for gradient computation has been modified ...
    """
    ### BEGIN SOLUTION
    if self.saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    for position, note in enumerate(self.notes):
        if note is not None and note.counter.value != note.version:
            raise modified(self, position)
    return self.saved
    ### END SOLUTION


Function.saved_tensors = property(saved_tensors)

# %% check="versions"

# %% [markdown] items="113"
# Now the same program in both engines. (Yours cannot write yet: the program only moves the counter.) Compare the two messages.

# %% tags=["demo"] items="113"
x, x_torch = MiniTensor([1.0, 2.0], requires_grad=True), leaf([1.0, 2.0])
y, y_torch = x.exp(), x_torch.exp()
y._counter.value += 1
y_torch.add_(1)
attempt("yours:", lambda: y.sum().backward(), shown=400)
attempt("PyTorch:", lambda: y_torch.sum().backward(), shown=400)

# %% [markdown] items="F11"
# PyTorch's hint points to a tool that finds the operation; your message names it. What moves a counter? Some texts say that under `no_grad` *every* operation does, even one that only computes. **Predict** the four numbers in each line.

# %% tags=["demo"] items="F11"
predict("What are the four numbers under no_grad?")
for mode in (torch.enable_grad, torch.no_grad):
    with mode():
        a = torch.ones(2)
        b = a * 2
        c = b.exp() + a
        c.add_(1)
        d = c.mul_(3)
    versions = [tensor._version for tensor in (a, b, c, d)]
    print(f"{mode.__name__:12s} a, b, c, d: {versions}   d is c: {d is c}")
with torch.inference_mode():
    attempt("inference_mode", lambda: torch.ones(2)._version)

# %% [markdown] items="F11"
# Operations leave the counters alone, in every mode. A counter counts **writes in place**, and nothing else. A tensor made in inference mode has no counter.

# %% [markdown] items="113 114"
# ## 2. Methods that write
#
# In PyTorch a method whose name ends with an underscore works in place: `y.add_(1)` writes the sum into the memory of `y`, and returns `y`. But `y` is also a result with a history. After the write it is a different result, so it needs a different `grad_fn`. The trick is to split the write in two:
#
# 1. compute the new value **out of place**, by a recorded operation, from a tensor `former`. It has the old history, and the old value in its own memory;
# 2. let `y` **take over** the history of the new value, write the numbers into the memory of `y`, and count the write.

# %% [markdown] items="115 F17 F18"
# Not every tensor may be written to. While operations are recorded, a **leaf that requires grad** is refused: it would become the result of an operation, so it would no longer be a leaf, and its gradient would be lost. With recording off the write is allowed; optimizers do it.
#
# ### What change needs (just run it)
#
# Run the next cell. You don't need to read it. `take_over(self, new)` gives `self` the history of `new`. `check_writable(self)` raises an error if `self` must not be written to now: a leaf, as above, or an inference tensor (lesson 07). `Copy` is the operation behind `copy_` and `zero_`.

# %% tags=["engine"]
def set_history(tensor, node):
    """Make tensor the result of node. A retain_grad request moves to the new node."""
    old = tensor.grad_fn
    if old is not None and old.retaining is not None and old.retaining() is tensor:
        old.retaining, node.retaining = None, old.retaining
    tensor.requires_grad, tensor.grad_fn = True, node


def take_over(self, new):
    """Give self the history of new, which is recorded. (*Further* adds what views need.)"""
    set_history(self, new.grad_fn)


class Copy(Function):
    """The value, broadcast to the shape of former if it is smaller."""

    @staticmethod
    def forward(ctx, former, value):
        return np.broadcast_arrays(former, value)[1].copy()

    @staticmethod
    def backward(ctx, grad):
        return zeros_like(grad), grad


class Clone(Function):
    """A copy of the numbers, with a history."""

    @staticmethod
    def forward(ctx, a):
        return a.copy()

    @staticmethod
    def backward(ctx, grad):
        return grad


MiniTensor.clone = lambda self: Clone.apply(self)

LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
INFERENCE_WRITE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone "
    "to get a normal tensor before doing inplace update."
)
VIEW_IN_NO_GRAD = (
    "A view was created in no_grad mode and {what} modified inplace with grad mode enabled. Given "
    "that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code "
    "by moving both the view and the inplace either both inside the no_grad block (if you don't "
    "want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


def check_writable(self):
    """Raise RuntimeError if self must not be written to now. A view counts as its base."""
    if self.is_inference() and not is_inference_mode_enabled():
        raise RuntimeError(INFERENCE_WRITE)
    base = self if self._base is None else self._base
    if not (is_grad_enabled() and base.requires_grad):
        return
    if base is not self and not self._recorded:  # a view made with recording off
        raise RuntimeError(VIEW_IN_NO_GRAD.format(what="is being"))
    if base.is_leaf:
        raise RuntimeError(LEAF if base is self else "a view of " + LEAF)

# %% [markdown] items="115 F17 F18"
# ### Exercise 2: change
#
# Write `change`. All methods below call it. If `change` raises an error, **nothing** may have changed: no number, no counter, no history.

# %% [markdown] tags=["hint"] exercise="change"
# `former = MiniTensor(self.data.copy())`, then set its `requires_grad` and `grad_fn` to those of self. `new = operation(former)`.

# %% [markdown] tags=["hint"] exercise="change"
# `self.data[...] = new.data` writes into the memory of self; `self.data = new.data` would replace the array. NumPy broadcasts a smaller array, and also writes shape (1, 3) into shape (3,), so compare the shapes first.

# %% [markdown] tags=["hint"] exercise="change"
# The order: `check_writable(self)`, compute, compare shapes, `take_over(self, new)` if `new.requires_grad`, write, `self._counter.value += 1`, `return self`.

# %% solution="change" tags=["engine"]
def change(self, operation):
    """Replace the value of self by operation(former), in the same memory, and count one write.

    self: MiniTensor
    operation: takes a MiniTensor `former` and returns a MiniTensor of the shape of self. former has
        the value of self in its own memory, and the requires_grad and grad_fn of self.
    Returns: self. If the result of operation requires grad, call take_over(self, new) before
        anything is written. If it does not, requires_grad and grad_fn of self stay.
    Raises: what check_writable(self) and take_over raise; if the result has another shape,
        RuntimeError("output with shape [3] doesn't match the broadcast shape [2, 3]"), with the
        shapes as lists. Then self and its memory are as before.

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> y = x * 3
    >>> array = y.data
    >>> change(y, lambda former: former * former) is y
    True
    >>> array, y._version, y.grad_fn.name()
    (array([ 9., 36.]), 1, 'MulBackward0')
    """
    ### BEGIN SOLUTION
    check_writable(self)
    former = MiniTensor(self.data.copy())
    former.requires_grad, former.grad_fn = self.requires_grad, self.grad_fn
    new = operation(former)
    if new.shape != self.shape:
        mine, other = list(self.shape), list(new.shape)
        raise RuntimeError(f"output with shape {mine} doesn't match the broadcast shape {other}")
    if new.requires_grad:
        take_over(self, new)
    self.data[...] = new.data
    self._counter.value += 1
    return self
    ### END SOLUTION


MiniTensor.add_ = lambda self, other: change(self, lambda former: former + other)
MiniTensor.sub_ = lambda self, other: change(self, lambda former: former - other)
MiniTensor.mul_ = lambda self, other: change(self, lambda former: former * other)
MiniTensor.copy_ = lambda self, other: change(self, lambda former: Copy.apply(former, other))
MiniTensor.zero_ = lambda self: self.copy_(0.0)
MiniTensor.__iadd__ = lambda self, other: self.add_(other)
MiniTensor.__isub__ = lambda self, other: self.sub_(other)
MiniTensor.__imul__ = lambda self, other: self.mul_(other)

# %% check="change"

# %% [markdown] items="115 F17 F18"
# Some texts say that the error of `x.add_(1)` on a leaf comes from the `backward` below it. Others say that the write corrupts gradients silently. **Predict** which line complains, what `x` is afterward, and whether `backward` still works.

# %% tags=["demo"] items="115 F17 F18"
predict("Which line complains?", "x.add_(1)", "backward", "neither")


def written_leaf(x, name):
    y = x**2
    attempt(f"{name} x.add_(1)", lambda: x.add_(1), shown=90)
    attempt(f"{name} y.backward()", y.backward)
    print(f"{name} x is {x.item()}, its slope {x.grad.item()}")


written_leaf(leaf(2.0), "PyTorch:")
written_leaf(MiniTensor(2.0, requires_grad=True), "yours:  ")

# %% [markdown] items="115 F17 F18 F13"
# The line that would write is the line that complains. Nothing is written, so the graph is intact, and `backward` gives the right 4.
#
# With recording off, a leaf may be written to, in `no_grad` and in `inference_mode` alike. If a node has saved it, the backward pass notices. **Predict** which slopes you get in each line.

# %% tags=["demo"] items="F13 114"
predict("When is there an error?", "always", "if a node has saved the leaf", "never")


def write_between(x, compute, mode):
    y = compute(x)
    with mode():
        x.add_(1)
    y.backward()
    return f"slope {x.grad.item():.3f}, x is {x.item()}, version {x._version}"


for text, compute in {"x**2": lambda x: x**2, "x.exp()": lambda x: x.exp()}.items():
    for mode in (torch.no_grad, torch.inference_mode):
        name, x = f"PyTorch: {text:8s}{mode.__name__:15s}", leaf(2.0)
        attempt(name, lambda: write_between(x, compute, mode), shown=50)
    x = MiniTensor(2.0, requires_grad=True)
    attempt(f"yours:   {text:8s}no_grad", lambda: write_between(x, compute, no_grad), shown=50)

# %% [markdown] items="113 114"
# The rule of `x**2` needs `x`. The rule of `exp` needs only its output, which is unchanged. The slope 7.389 belongs to the old `x`, and that is right: the forward pass used the old `x`. The same write is harmless or fatal, depending on **what a rule has saved**. So you cannot memorize where it is safe to write. Write in place where memory matters, and rely on the counter.
#
# There are two fixes. **Compute out of place**: `x = x + 1` makes a new tensor, and what was saved stays. Or give the node a copy: `x.clone()**2`.

# %% tags=["demo"] items="114"
x = MiniTensor([2.0, 5.0], requires_grad=True)
repairs = {
    "h**2, then h.add_(1)": lambda h: (h**2, h.add_(1)),
    "h**2, then h = h + 1": lambda h: (h**2, h + 1),
    "clone**2, then h.add_(1)": lambda h: (h.clone() ** 2, h.add_(1)),
}
for text, repair in repairs.items():
    x.grad = None
    y, later = repair(x * 3)
    problem = complaint(lambda: (y + later).sum().backward())
    print(f"{text:26s} {problem[:50] if problem else x.grad.data}")

# %% [markdown]
# The right slopes are `2 * h * 3 + 3`, so 39 and 93.
#
# ### An optimizer whose steps are counted (just run it)
#
# Run the next cell. You don't need to read it: it is `SGD` as before, but a step writes with `sub_` and recording off, as in PyTorch.

# %% tags=["engine"]
class SGD:
    """As in lesson 05, but the steps are counted writes."""

    def __init__(self, parameters, lr, momentum=0.0):
        self.parameters = list(parameters)
        self.lr, self.momentum = lr, momentum
        self.buffers = [0.0 for _ in self.parameters]

    def step(self):
        with no_grad():
            for i, parameter in enumerate(self.parameters):
                if parameter.grad is not None:
                    self.buffers[i] = self.momentum * self.buffers[i] + parameter.grad.data
                    parameter.sub_(self.lr * self.buffers[i])

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters:
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = MiniTensor(np.zeros(parameter.shape))

# %% [markdown]
# ### A step too early
#
# Counted steps catch a common mistake. Two losses share a graph. The optimizer steps after the first `backward`, so the second goes through a graph whose weights have changed. **Predict** which notice it: the `SGD` of lesson 05 (its step was `parameter.data -= ...`), the new one, PyTorch's?

# %% tags=["demo"]
predict("Which notice it?", "all three", "the new one and PyTorch's", "PyTorch's alone", "none")


def steps_too_early(parameter, optimizer):
    h = parameter * parameter
    h.sum().backward(retain_graph=True)
    optimizer.step()
    h.sum().backward()
    return "no complaint"


class OldSGD(SGD):
    def step(self):
        for parameter in self.parameters:
            parameter.data -= self.lr * parameter.grad.data


for text, kind in {"the old one": OldSGD, "the new one": SGD}.items():
    w = MiniTensor([1.0, 2.0], requires_grad=True)
    attempt(text, lambda: steps_too_early(w, kind([w], lr=0.1)))
w_torch = leaf([1.0, 2.0])
attempt("PyTorch's", lambda: steps_too_early(w_torch, torch.optim.SGD([w_torch], lr=0.1)))

# %% [markdown] items="gap:views"
# ## 3. Two tensors, one memory
#
# `reshape`, `transpose` and `x[2:5]` need no new numbers. They read the old ones differently. In NumPy they return a **view**: another array object on the same memory. Your engine has made views since lesson 04. Now that memory is written to, it must know about them:
#
# * a view must hold the **counter** of the memory. Without it, one tensor would not notice a write through the other;
# * a view must know its **base**, the tensor that owns the memory. A view of a view has the same base.
#
# ### What view needs (just run it)
#
# Run the next cell. You don't need to read it. `remember(self, output, recipe)` notes how a view is made from its base; *Further* uses it. `reshape`, `transpose` and `x[...]` now call the `view` that you write next. `Index` is rewritten, because NumPy has an exception: `a[2]` of a vector is a number, not a view. With `...` added, it is a view of shape ().

# %% tags=["engine"]
def remember(self, output, recipe):
    """Note how output is made from output._base. It is recipe(self); self is the base or a view."""
    earlier = self._recipe if self._base is not None else None
    output._recipe = recipe if earlier is None else lambda base: recipe(earlier(base))
    output._recorded = is_grad_enabled()
    base = output._base
    if base._views is None:
        base._views = weakref.WeakSet()
    base._views.add(output)


MiniTensor._views = None  # none so far
MiniTensor._is_view = lambda self: self._base is not None


class Index(Function):
    """a[index]. The gradients of a repeated index add up."""

    returns_view = True

    @staticmethod
    def forward(ctx, a, index):
        part = a[index]
        if not isinstance(part, np.ndarray):
            index = (*index, ...) if isinstance(index, tuple) else (index, ...)
            part = a[index]
        ctx.shape, ctx.index = a.shape, index
        return part

    @staticmethod
    def backward(ctx, grad):
        return applied(Scatter, grad, index=ctx.index, shape=ctx.shape)


def reshape(self, *shape):
    shape = shape[0] if isinstance(shape[0], tuple) else shape
    return view(self, lambda a: Reshape.apply(a, shape=shape))


def transpose(self, dim0, dim1):
    return view(self, lambda a: Transpose.apply(a, dim0=dim0, dim1=dim1))


def getitem(self, index):
    return view(self, lambda a: Index.apply(a, index=index))


Reshape.returns_view = Transpose.returns_view = True
MiniTensor.reshape, MiniTensor.transpose, MiniTensor.__getitem__ = reshape, transpose, getitem

# %% [markdown]
# ### Exercise 3: view and detach
#
# Not every result of these operations is a view. `x[[0, 2]]` picks entries, and NumPy copies them; `reshape` of a transposed matrix copies too. So `view` checks the memory. `detach` shares memory and counter, but has no base, because no gradient goes through it.

# %% [markdown] tags=["hint"] exercise="view"
# `output = recipe(self)`. If `np.may_share_memory(output.data, self.data)`, set `output._counter` and `output._base`, then call `remember(self, output, recipe)`. Return the output in both cases.

# %% [markdown] tags=["hint"] exercise="view"
# The base is `self` if `self._base` is None, else `self._base`. `remember` needs it, so call it last.

# %% solution="view" tags=["engine"]
def view(self, recipe):
    """recipe(self), marked as a view if it shares memory with self.

    recipe: such as lambda a: Reshape.apply(a, shape=(2, 3))
    Returns: the tensor that recipe(self) returned. If its data shares memory with self.data, its
        _counter is that of self, its _base is self (or the base of self, if self is a view), and
        then remember(self, output, recipe) is called, which needs both. If not, it stays as it is.

    >>> x = MiniTensor([1.0, 2.0, 3.0, 4.0])
    >>> pair = view(x, lambda a: Index.apply(a, index=slice(0, 2)))
    >>> pair.zero_()
    MiniTensor([0. 0.])
    >>> x.data, x._version, pair._base is x
    (array([0., 0., 3., 4.]), 1, True)
    """
    ### BEGIN SOLUTION
    output = recipe(self)
    if np.may_share_memory(output.data, self.data):
        output._counter = self._counter
        output._base = self if self._base is None else self._base
        remember(self, output, recipe)
    return output
    ### END SOLUTION


def detach(self):
    """The same numbers in the same memory, as a leaf that does not require grad. It has the
    counter of self and no base, and remember is not called.

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> d = x.detach()
    >>> d.mul_(10.0)
    MiniTensor([10. 20.])
    >>> x._version, d._is_view()
    (1, False)
    """
    ### BEGIN SOLUTION
    output = MiniTensor(self.data)
    output._counter = self._counter
    return output
    ### END SOLUTION


MiniTensor.detach = detach

# %% check="view"

# %% [markdown] items="gap:views F31"
# Which results are views? **Predict** how many.

# %% tags=["demo"] items="gap:views F31"
predict("How many of the seven results are views?")


def relation(make, expression):
    x = make(np.arange(6.0).reshape(2, 3))
    y = expression(x)
    kind = ("view of x" if y._base is x else "view of another") if y._is_view() else "no view"
    y.add_(1)
    return f"{kind}, version of x: {x._version}"


for text in (
    *("x[0]", "x[[0, 1]]", "x.transpose(0, 1)", "x.transpose(0, 1).reshape(6)"),
    *("x.reshape(6)[0]", "x.clone()", "x.detach()"),
):
    expression = eval(f"lambda x: {text}")
    mine, theirs = relation(MiniTensor, expression), relation(torch.tensor, expression)
    print(f"{text:30s} {mine:25s} PyTorch: {'the same' if mine == theirs else theirs}")

# %% [markdown] items="gap:views F31 F17 113"
# Look at the last line: a detached tensor is **not a view** for autograd, but it still shares the counter. A write to it is a write to the original. A node that has saved the original will complain.
#
# A write through a view also changes the *history* of the base. PyTorch handles that; your engine does after the first section of *Further*.
#
# ## 4. What no counter sees
#
# Many tutorials say that in-place operations corrupt gradients silently. You have seen the opposite: a write by a method is counted, and a wrong version is an error. But some writes do not move the counter of the tensor, and a version that no node has noted is not compared. **Predict** for each line in PyTorch: right, error, or silently wrong? Central differences of the intended program show what is right.

# %% tags=["demo"] items="F17 113"
def data_route(x):
    h = x * 1
    y = h**2
    h.data.mul_(10)
    return y.sum()


def shared_memory_route(x):
    batch = np.array([1.0, 2.0, 3.0])
    y = x * torch.from_numpy(batch)
    batch[:] = 7.0  # the loader fills its buffer with the next batch
    return y.sum()


def unsaved_route(x):
    h = x * 3
    with torch.no_grad():
        h.clamp_(max=4.0)  # no node has saved h yet, so no node compares its version
    return (h**2).sum()


def recorded_clamp(x):
    return ((x * 3).clamp_(max=4.0) ** 2).sum()


def duplicates_route(x):
    z = torch.zeros(2, dtype=torch.float64)
    z[[0, 0, 1]] = x
    return z.sum()

# %% tags=["demo"] items="F17 113"
predict("How many of the lines are silently wrong?")
routes = {
    ".data": (data_route, lambda x: (x**2).sum()),
    "shared NumPy memory": (shared_memory_route, lambda x: (x * torch.arange(1.0, 4.0)).sum()),
    "no_grad, not yet saved": (unsaved_route, recorded_clamp),
    "the same, recorded": (recorded_clamp, recorded_clamp),
    "an index that occurs twice": (duplicates_route, duplicates_route),
}
values = np.array([1.0, 2.0, 3.0])
for text, (program, meant) in routes.items():
    print(f"{text:27s} {beside_differences(program, meant, values)}")

# %% [markdown] items="F17 113"
# Four kinds of write are silent:
#
# * **`.data`** is the same memory with its own counter. `detach()` shares the counter, so use that.
# * **Shared memory**: `torch.from_numpy` and `.numpy()` copy nothing, and NumPy knows nothing about counters.
# * **`no_grad` before the value is saved**: the write *is* counted, but the node that saves `h` afterward notes the new version. The clamp is in the values and not in the graph.
# * **An index that occurs twice**: only one entry stays, and PyTorch's rule sends gradient to both.
#
# So using a method is no guarantee. Your engine has the first three as well. The first two are the same there, because its `data` *is* a NumPy array:

# %% items="F17 113"
x, w = MiniTensor([1.0, 1.0], requires_grad=True), MiniTensor([2.0, 3.0])
y = x * w
w.data[:] = 7.0
y.sum().backward()
print("memory written:", x.grad.data, "  right: [2. 3.]")

# %% [markdown] items="113 117 F16"
# A data loader that keeps refilling the same buffer does this. The fix is a copy: `MiniTensor(buffer.copy())`.
#
# ## 5. To NumPy, and to a second device
#
# A program that continues in NumPy leaves the graph. A number from `item()` has no history, and you expect none. An *array* looks like a tensor, and you could compute with it for a long time before you miss the gradient. So PyTorch refuses `.numpy()` where a history would be lost. Yours now does the same:

# %% tags=["engine"] items="117 F16"
def array_of(self):
    """The array of self: the same memory, nothing is copied.

    Raises RuntimeError where operations are recorded and self requires grad.
    """
    if self.requires_grad and is_grad_enabled():
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    return self.data


MiniTensor.numpy = array_of

# %% [markdown] items="117 F16"
# Some texts say that `.numpy()` loses the gradient silently, others that `.detach()` is always needed before it. **Predict** for each line: an array or an error?

# %% tags=["demo"] items="117 F16"
predict("How many of the lines are errors?")
x, x_torch = MiniTensor([1.0, 2.0], requires_grad=True), leaf([1.0, 2.0])
for name, tensor in {"yours:  ": x, "PyTorch:": x_torch}.items():
    attempt(f"{name} x.numpy()", tensor.numpy, shown=90)
    with no_grad(), torch.no_grad():
        attempt(f"{name} under no_grad", tensor.numpy)
    attempt(f"{name} x.detach().numpy()", tensor.detach().numpy)
attempt("PyTorch: no grad required", torch.ones(2).numpy)
attempt("PyTorch: detach().cpu().numpy()", x_torch.detach().cpu().numpy)
attempt("PyTorch: numpy(force=True)", lambda: x_torch.numpy(force=True))
array = x_torch.detach().numpy()
array[0] = 100.0
print("after a write to the array, x is", x_torch.tolist(), "at version", x_torch._version)

# %% [markdown] items="117 F16"
# PyTorch complains only where something would be lost. You need `detach` if the tensor requires grad and operations are recorded, and `cpu` if the tensor is on another device. `detach().cpu().numpy()` is right for most tensors. `numpy(force=True)` does the same, and also works for a conjugated complex tensor. Neither helps with bfloat16, which NumPy does not have. The last line shows the second silent kind again.
#
# Each tensor lives on one **device**. As a rule, an operation needs its inputs on the same device. Your machine may have no GPU. So the next cell uses the device `meta`, which every machine has: its tensors have a shape but no numbers. **Predict** which lines complain.

# %% tags=["demo"] items="116"
predict("How many of the lines complain?")
here, there = torch.ones(3), torch.ones(3, device="meta")
attempt("one here, one there", lambda: here + there)
attempt("moved first", lambda: (here.to(there.device) + there).device)
attempt("a number", lambda: (2.0 * there).device)
attempt("a 0-dim tensor here", lambda: (torch.tensor(2.0) * there).device)
attempt("a 1-dim tensor here", lambda: torch.tensor([2.0]) * there)
attempt("a 0-dim tensor there", lambda: torch.tensor(2.0, device="meta") * here)
attempt("numpy() from there", there.numpy, shown=90)

# %% [markdown] items="116 117"
# A 0-dim tensor on the CPU counts as a number and works with any device. The opposite is an error. Move data to the device of the model, `batch.to(device)`, once per batch, and fetch results with `.cpu()` when you want arrays. But `meta` is not a GPU, and not every operation checks: `torch.ones(2, 2) @ torch.ones(2, 2, device="meta")` returns a CPU tensor with arbitrary numbers.

# %% [markdown]
# ## Quiz

# %% test="quiz_09" points=4 tags=["quiz"] items="113 115 117"
question(
    "what_counts",
    "`b = a * 2` and `b.add_(1)` run under `no_grad`. What are the versions of `a` and `b`?",
    right("0 and 1", "A counter counts writes in place, in every mode."),
    wrong(
        "1 and 2", "Computing from a tensor is not a write.", misconception="versions_count_operations"
    ),
    wrong(
        "0 and 0, nothing is recorded",
        "Recording is about graphs. The write has happened.",
        misconception="no_grad_is_invisible",
    ),
    wrong("1 and 1", "`a` has only been read.", misconception="versions_count_operations"),
)
question(
    "harmless_write",
    "`h = x * 1`, `y = h.exp()`, then `h.add_(1)`, then `y.sum().backward()`. What happens?",
    right("The right gradient", "The rule of `exp` needs its output, and that is unchanged."),
    wrong(
        "An error: `h` was modified",
        "It was, but no node has saved `h`.",
        misconception="every_write_is_an_error",
    ),
    wrong(
        "A wrong gradient, because `h` has changed",
        "The rule never looks at `h`.",
        misconception="every_write_corrupts",
    ),
    wrong(
        "The gradient at the new `h`",
        "It belongs to the `h` that the forward pass used.",
        misconception="every_write_corrupts",
    ),
)
question(
    "leaf_line",
    "`w` is a leaf that requires grad. `y = w**2`, `w.add_(1)`, `y.backward()`. Which line raises the error?",
    right(
        "`w.add_(1)`, and `w` keeps its value",
        "The method checks before it writes. A `backward` after it still works.",
    ),
    wrong(
        "`y.backward()`, because `w` was saved",
        "`w.add_(1)` has refused, so `w` is unchanged when `backward` runs.",
        misconception="errors_come_in_backward",
    ),
    wrong(
        "None; the gradient is 2 * (w + 1)",
        "That is what `.data` would give.",
        misconception="in_place_is_silent",
    ),
    wrong(
        "`w.add_(1)`, but `w` has been changed",
        "Nothing is written.",
        misconception="errors_come_late",
    ),
)
question(
    "why_leaf",
    "Why may a leaf that requires grad not be written to while operations are recorded?",
    right(
        "It would become a result, and the gradient would go past it to the old value.",
        "A leaf is a tensor that no operation has made.",
    ),
    wrong(
        "Because parameters are read-only.",
        "Every optimizer writes to them, with recording off.",
        misconception="leaves_are_constant",
    ),
    wrong(
        "Because its version counter would overflow.",
        "A counter only counts.",
        misconception="versions_are_limits",
    ),
    wrong(
        "Because in-place operations have no derivative.",
        "They have the derivative of the operation they are named after.",
        misconception="in_place_has_no_gradient",
    ),
)
question(
    "silent_one",
    "Which of these writes between forward and backward goes unnoticed, although a node has saved `h`?",
    right("`h.data.mul_(2)`", "`.data` has a counter of its own."),
    wrong(
        "`h.detach().mul_(2)`",
        "`detach` shares the counter.",
        misconception="detach_is_a_side_door",
    ),
    wrong(
        "`h.mul_(2)` under `no_grad`",
        "Writes are counted in every mode.",
        misconception="no_grad_is_invisible",
    ),
    wrong(
        "`h[0].mul_(2)`", "A view has the counter of its base.", misconception="views_have_counters"
    ),
)
question(
    "clamp_hidden",
    "`h = x * 3`; under `no_grad`: `h.clamp_(max=1)`; then `loss = (h**2).sum()`. What about the gradient?",
    right(
        "Silently wrong: the clamp is in the values and not in the graph.",
        "The square saved `h` after the write, so the versions match.",
    ),
    wrong(
        "An error, because `h` was written to.",
        "No node had saved `h` before the write: the rule of `x * 3` doesn't need its output.",
        misconception="every_write_is_an_error",
    ),
    wrong(
        "Right: `no_grad` only saves memory.",
        "It keeps the clamp out of the graph.",
        misconception="modes_save_time_only",
    ),
    wrong("`x.grad` stays `None`.", "The graph of `h` is there.", misconception="none_means_zero"),
)
question(
    "numpy_of_result",
    "When is `.detach()` needed before `.numpy()`?",
    right(
        "If the tensor requires grad and operations are being recorded",
        "A history would be lost without a message, so PyTorch makes you write it.",
    ),
    wrong(
        "Always",
        "A tensor without `requires_grad` gives its array at once.",
        misconception="detach_always",
    ),
    wrong(
        "Only on a GPU",
        "For a GPU you need `.cpu()`, and perhaps both.",
        misconception="detach_moves_devices",
    ),
    wrong(
        "Never; the gradient is lost silently",
        "It raises an error.",
        misconception="numpy_is_silent",
    ),
)

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | version | counts the writes to a piece of memory, in every mode; operations do not count |
# | the check | when a saved value is read, its version must be the one that was noted |
# | in place | compute out of place from the former value, take over the history, write, count |
# | a leaf that requires grad | the line that would write refuses, before it writes |
# | view | shares memory and counter; knows its base |
# | `detach` | shares memory and counter, but no history |
# | silent | `.data`, shared NumPy memory, a write under `no_grad` before the value is saved, a repeated index |
# | `.numpy()`, devices | an error where a history would be lost, or numbers would have to move |
#
# Autograd protects what it can see. Now you know what it cannot.
#
# So far all gradients were plain numbers: the backward pass itself was not recorded. In the next lesson it is recorded like any other computation, and can be differentiated again.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without its exercises, which only earn points.

# %% [markdown] items="gap:views"
# ## Histories that share memory
#
# A write through a view changes the base. From then on the base is a different result, and so are all its other views. An engine that forgets this computes wrong gradients, although all values are right:
#
# > `y = a * 2`, then `y[0].mul_(b)`, then `y.sum().backward()`. What are the gradients of `a` and `b`, for `a = [1, 1]` and `b = 5`?
#
# **Predict** them on paper, and for your engine as it is now.

# %% items="gap:views"
def row_scaled(a, b):
    y = a * 2
    y[0].mul_(b)
    return y


def show_gradients(make):
    a, b = make([1.0, 1.0]), make(5.0)
    y = row_scaled(a, b)
    y.sum().backward()
    found = ["None" if t.grad is None else t.grad.data.tolist() for t in (a, b)]
    return f"y is {y.data.tolist()}, gradients {found[0]} and {found[1]}"


def mini_leaf(value):
    return MiniTensor(value, requires_grad=True)


print("yours, as it is now:", show_gradients(mini_leaf))

# %% tags=["demo"] items="gap:views"
attempt("PyTorch:", lambda: show_gradients(leaf))

# %% [markdown] items="gap:views"
# The numbers in `y` are right, the gradients are not: the history of `y` does not know that its first entry is now `2 * a[0] * b`. In PyTorch, a write through a view is an operation **on the base**, `CopySlices`. Its inputs are the former base and the new part; its output is the base with the part in it. Then every view gets a new history from the base, by its recipe. Only histories change; the numbers are already right.
#
# ### Exercise 4: CopySlices
#
# `positions` says where the part goes. It is an array of integers with the shape of the part. Each says where an entry goes in the base, with the entries of the base numbered row by row. So one class handles rows, columns, single entries and lists of indices.
#
# A position may occur twice (`x[[0, 0]] = v`). NumPy writes one after the other, so the **last** one stays. The others have no effect, so their gradient is 0.

# %% [markdown] tags=["hint"] exercise="copy_slices"
# `array.put(positions, values)` writes and `array.take(positions)` reads at positions numbered row by row, for an array of any shape. `put` does not broadcast: use `np.broadcast_to(part, positions.shape)`.

# %% [markdown] tags=["hint"] exercise="copy_slices"
# The gradient of the base is a copy of `grad` with zeros at the positions: these entries of the former base are gone. The gradient of the part is `grad.take(positions)`.

# %% [markdown] tags=["hint"] exercise="copy_slices"
# Which entry stays? Write numbers instead of values: with `owner = np.zeros(grad.size, int)` and `numbers = np.arange(positions.size).reshape(positions.shape)`, after `owner.put(positions, numbers)` the entries that stayed are those where `owner.take(positions) == numbers`.

# %% solution="copy_slices" tags=["engine"]
class CopySlices(Function):
    """The base with a part replacing some of its entries.

    forward: base and part are arrays, positions an array of integers (an option, not an input).
        Entry part[i, j] goes to position positions[i, j] of the base, numbered row by row. A part
        of a smaller shape, such as (), is broadcast to that of positions. If a position occurs
        twice, the last of its entries stays. base itself must not be written to.
    backward: one gradient for base, one for part. The second may have the shape of positions: the
        engine undoes the broadcast. Entries that did not stay get 0. Do not write to grad.

    >>> base = MiniTensor(np.zeros((2, 2)), requires_grad=True)
    >>> part = MiniTensor(7.0, requires_grad=True)
    >>> result = CopySlices.apply(base, part, positions=np.array([1, 2]))
    >>> result.data
    array([[0., 7.],
           [7., 0.]])
    >>> result.backward(np.array([[1.0, 10.0], [100.0, 1000.0]]))
    >>> base.grad.data, part.grad.item()
    (array([[   1.,    0.],
           [   0., 1000.]]), 110.0)
    """

    @staticmethod
    def forward(ctx, base, part, positions):
        ### BEGIN SOLUTION
        ctx.positions = positions
        result = base.copy()
        result.put(positions, np.broadcast_to(part, positions.shape))
        return result
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        rest = grad.copy()
        rest.put(ctx.positions, 0.0)
        owner = np.zeros(grad.size, int)
        numbers = np.arange(ctx.positions.size).reshape(ctx.positions.shape)
        owner.put(ctx.positions, numbers)
        stayed = owner.take(ctx.positions) == numbers
        return rest, grad.take(ctx.positions) * stayed
        ### END SOLUTION

    @classmethod
    def name(cls):
        return "CopySlices"

# %% [markdown]
# The rest is given. Your `change` calls `take_over` for every recorded write. `take_over` asks the recipe where the view is in the base, puts `CopySlices` after the base, and gives all views a new history. (PyTorch does that only when a view is used.)
#
# A view made with recording off is a special case. Its values follow the base. Should its history follow too? PyTorch refuses to guess. Here such a view gets a history whose rule raises PyTorch's error.

# %% tags=["engine"]
class Forbidden(Function):
    """The history of a view made with recording off, if its base gets a new history."""

    @staticmethod
    def backward(ctx, grad):
        what = "its base or another view of its base has been"
        raise RuntimeError(VIEW_IN_NO_GRAD.format(what=what))


def positions_of(recipe, shape):
    """Where the entries of a view are in a base of the given shape, numbered row by row."""
    numbers = MiniTensor(np.arange(np.prod(shape, dtype=int)).reshape(shape))
    with no_grad():
        return recipe(numbers).data.astype(int)


def take_over(self, new):
    """Give self, or its base if it is a view, the history of new. Then all views follow."""
    base = self
    if self._base is not None:
        if not self._recorded:
            raise RuntimeError(VIEW_IN_NO_GRAD.format(what="is being"))
        base = self._base
        new = CopySlices.apply(base, new, positions=positions_of(self._recipe, base.shape))
    set_history(base, new.grad_fn)
    for shown in base._views or ():
        set_history(shown, shown._recipe(base).grad_fn if shown._recorded else Forbidden())

# %% [markdown]
# Now `x[i] = value` works: `x[i]` is a view, and the value is copied into it.

# %% tags=["engine"]
def setitem(self, index, value):
    """self[index] = value: for a view, a copy_ into it; for picked entries, one CopySlices."""
    part = self[index]
    if part._is_view():
        part.copy_(value)
        return
    where = positions_of(lambda a: a[index], self.shape)
    change(self, lambda former: CopySlices.apply(former, value, positions=where))


MiniTensor.__setitem__ = setitem

# %% check="copy_slices"

# %% tags=["demo"] items="gap:views"
attempt("yours:", lambda: show_gradients(mini_leaf))
attempt("PyTorch:", lambda: show_gradients(leaf))

# %% [markdown] items="gap:views"
# This is the graph after the write. Two paths lead from `a` to `y`. Which of them carries the gradient of the first entry, and where is it multiplied by 5?

# %% tags=["demo"] items="gap:views"
from mini_autograd.widgets import explore

a, b = MiniTensor([1.0, 1.0], requires_grad=True), MiniTensor(5.0, requires_grad=True)
explore(row_scaled(a, b))

# %% [markdown] items="F17"
# A repeated index is no problem for your rule. **Predict** the gradient, which PyTorch got wrong in section 4.

# %% items="F17"
predict("Which gradient does your rule give?")
x = MiniTensor([1.0, 2.0, 3.0], requires_grad=True)
z = MiniTensor([0.0, 0.0])
z[[0, 0, 1]] = x
z.sum().backward()
print("gradient:", x.grad.data, "  right: [0. 1. 1.]")

# %% [markdown] items="gap:views F17"
# Is this right in general? Test it with random programs: they make views, write through them, write to their bases, multiply and add. Your engine and PyTorch run each of them. **Predict** how many of 150 give a wrong gradient.

# %% tags=["demo"] items="gap:views F17"
def random_program(seed):
    def program(a, b):
        draw = np.random.default_rng(seed)
        tensors = [a * 1, b * 2]
        for _ in range(draw.integers(2, 9)):
            t, other = (tensors[draw.integers(len(tensors))] for _ in range(2))
            number = other.reshape(-1)[:2].sum()
            kind = draw.integers(8)
            if kind == 0:
                tensors.append(t.transpose(0, 1) if len(t.shape) == 2 else t.reshape(-1))
            elif kind == 1:
                tensors.append(t[0] if t.shape else t.reshape(-1))
            elif kind == 2:
                tensors.append(t.exp() if draw.integers(2) else t * t)
            elif kind == 3:
                t.mul_(0.5)
            elif kind == 4:
                t.mul_(number)
            elif kind == 5:
                t.sub_(other.sum())
            elif kind == 6:
                t.copy_(number)
            elif t.shape:
                t[-1] = number
        return sum((t * t).sum() + t.tanh().sum() for t in tensors)

    return program

# %% tags=["demo"] items="gap:views F17"
predict("How many of 150 programs give a wrong gradient?")


def run_program(program, make, arrays):
    inputs = [make(array) for array in arrays]
    try:
        program(*inputs).backward()
    except NotImplementedError:
        raise
    except RuntimeError:
        return None
    return np.concatenate(
        [np.zeros(9) if t.grad is None else np.ravel(t.grad.data.tolist()) for t in inputs]
    )


draw = np.random.default_rng(0)
endings, largest = collections.Counter(), 0.0
for seed in range(150):
    arrays = 0.3 * draw.normal(size=(2, 3, 3))
    mine, theirs = (run_program(random_program(seed), make, arrays) for make in (mini_leaf, leaf))
    if mine is None or theirs is None:
        endings["error in both" if mine is theirs else "error in one"] += 1
        continue
    distance = np.abs(mine - theirs).max() / max(1.0, np.abs(theirs).max())
    largest = max(largest, distance)
    endings["the same gradients" if distance < 1e-9 else "different gradients"] += 1
print(dict(endings), f"  largest relative difference: {largest:.1e}")

# %% [markdown] items="gap:views F17"
# Each program gives an error or the right gradients: here, a write through a method is handled correctly or refused. (None of them repeats an index.)

# %% [markdown] items="113"
# ## Fingerprints
#
# ### Exercise 5: fingerprints
#
# A tool can find what a counter cannot see. `fingerprints(output)` goes through all nodes behind a tensor and takes a fingerprint of every saved array. Later, `silent_changes(before)` takes them again. It names the nodes whose saved arrays have changed **although their counter has not moved**. That costs a pass over all saved memory, so use it only for debugging.

# %% [markdown] tags=["hint"] exercise="fingerprints"
# `topological_order(output.grad_fn)` lists the nodes. `node.saved` is the tuple of saved values, `()` if there are none, None if they have been freed. Read the values there: `saved_tensors` raises an error if a value was freed or written to.

# %% [markdown] tags=["hint"] exercise="fingerprints"
# A fingerprint is `hash(saved.tobytes())`, or a copy (compare with `equal_nan=True`). The key in the dict is `(node, position)`.

# %% [markdown] tags=["hint"] exercise="fingerprints"
# `silent_changes`: skip a key if `node.saved is None`. The counter has not moved if `node.notes[position]` is None or its `counter.value == version`.

# %% solution="fingerprints"
def fingerprints(output):
    """A fingerprint of every array that the nodes behind output have saved.

    output: MiniTensor; without a history, the dict is empty
    Returns: dict (node, position in node.saved) -> fingerprint, the nodes in the order of
        topological_order(output.grad_fn). A node that is freed has None as saved. Saved values
        that are not arrays, or are freed, have none. Do not read them through saved_tensors.

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> [(node.name(), position) for node, position in fingerprints((x * x).exp())]
    [('ExpBackward0', 0), ('MulBackward0', 0), ('MulBackward0', 1)]
    """
    ### BEGIN SOLUTION
    found = {}
    for node in topological_order(output.grad_fn) if output.grad_fn is not None else ():
        for position, saved in enumerate(node.saved or ()):
            if isinstance(saved, np.ndarray):
                found[node, position] = hash(saved.tobytes())
    return found
    ### END SOLUTION


def silent_changes(before):
    """Which saved arrays have changed since `before` was taken, although their counter has not moved.

    before: what fingerprints returned
    Returns: list of the names of their nodes, in the order of before, once per array. Leave out
        arrays whose note shows a counted write, and arrays that have been freed since. The smallest
        change counts, but a NaN that is still there is not a change.

    >>> x, w = MiniTensor([1.0, 2.0], requires_grad=True), MiniTensor([3.0, 4.0])
    >>> before = fingerprints((x * w).exp())
    >>> w.data[0] = 100.0
    >>> silent_changes(before)
    ['MulBackward0']
    """
    ### BEGIN SOLUTION
    names = []
    for (node, position), fingerprint in before.items():
        if node.saved is None:
            continue
        note = node.notes[position]
        counted = note is not None and note.counter.value != note.version
        if not counted and hash(node.saved[position].tobytes()) != fingerprint:
            names.append(node.name())
    return names
    ### END SOLUTION

# %% check="fingerprints"

# %% [markdown] items="113"
# Now use it. A "loader" keeps returning the same NumPy buffer. The losses of three batches are added, and `backward` comes at the end. **Predict** how many of the three products have changed.

# %% tags=["demo"] items="113"
predict("How many of the three products have changed?", "0", "1", "2", "3")


def batches(buffer):
    for number in range(3):
        buffer[:] = number + 1
        yield MiniTensor(buffer)


def total_loss(loader, w):
    return sum((batch * w).sum() for batch in loader)


w = MiniTensor([1.0, 1.0], requires_grad=True)
total = total_loss(batches(np.zeros(2)), w)
total.backward(retain_graph=True)
print("gradient:", w.grad.data, "  right:", np.array([6.0, 6.0]))

products = []
for batch in batches(np.zeros(2)):
    products.append(fingerprints(batch * w))
print("changed: ", [silent_changes(before) for before in products])

# %% [markdown] items="113"
# The first two batches were overwritten; only the last is unchanged. So the gradient is three times the last batch.

# %% [markdown] items="113 114"
# ## Which operations need their input or output?
#
# Which operations forbid a write to their input, and which to their output? **Predict** three of these lines for your engine. The last column says whether PyTorch agrees.

# %% tags=["demo"] items="113 114"
operations = {
    "x + 1": lambda x: x + 1,
    "x * 3": lambda x: x * 3,
    "x**2": lambda x: x**2,
    "x.exp()": lambda x: x.exp(),
    "x.log()": lambda x: x.log(),
    "x.tanh()": lambda x: x.tanh(),
    "x.relu()": lambda x: x.relu(),
    "x.abs()": lambda x: x.abs(),
    "x.sum()": lambda x: x.sum(),
    "x.logsumexp(0)": lambda x: x.logsumexp(0),
}


def minds(leaf_of, operation, which):
    """Whether backward complains after a write to the input or the output of an operation."""
    x = leaf_of([1.0, 2.0]) * 1
    y = operation(x)
    kept = y + 0  # a sum saves nothing
    (x if which == "input" else y).add_(1)
    return "error" if complaint(lambda: kept.sum().backward()) else "fine"


print(f"{'':16s} input  output   PyTorch")
for text, operation in operations.items():
    mine, theirs = (
        [minds(make, operation, which) for which in ("input", "output")]
        for make in (mini_leaf, leaf)
    )
    verdict = "the same" if mine == theirs else f"{theirs[0]} {theirs[1]}"
    print(f"{text:16s} {mine[0]:6s} {mine[1]:8s} {verdict}")

# %% [markdown] items="113 114"
# Where they differ, the two rules have saved different things, and both are right. Your `x * 3` turned the 3 into a tensor and saved both factors; for PyTorch's rule the 3 is enough. `abs` and `logsumexp` may keep inputs and outputs, or only a new array: a sign, a softmax.

# %% [markdown]
# ## Questions about this part

# %% test="quiz_09_further" points=1 tags=["quiz"]
question(
    "view_write",
    "In PyTorch: `y = a * 2`, `v = y[0]`, then `y.mul_(b)`. How does `v` depend on `b` now?",
    right(
        "Its value and its history contain `b`.",
        "It shares the memory, and after the write it gets a new history from its base.",
    ),
    wrong(
        "Its value contains `b`, its history does not.",
        "That is your engine before *Further*.",
        misconception="views_keep_their_history",
    ),
    wrong(
        "Not at all: `v` was made before.", "It is the same memory.", misconception="views_are_copies"
    ),
    wrong(
        "Using `v` now is an error.",
        "Only for a view made under `no_grad`, or by a function that returns several views, such as `split`.",
        misconception="views_become_invalid",
    ),
)
