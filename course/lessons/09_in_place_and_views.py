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
# # Behind its back
#
# *About 170 minutes; after section 2 is a good place for a break. You build version counters, methods that write in place, and views. You need lessons 05 to 08.*
#
# A loss is `sum(w * x)`, so its slope with respect to `x` is `w`: `[2, 3, 4]`. Between the forward and the backward pass, somebody multiplies `w` by 10, in the same memory. Five ways to do it in PyTorch. **Predict** for each: the right slope, an error, or a wrong slope without a word?

# %%
from autograder.student import check_gradients, hints, quiz, start_lesson

# %% tags=["engine"]
import collections
import weakref

import numpy as np

# %% tags=["demo"]
import torch

torch.set_num_threads(1)


def leaf(value):
    """A number or an array whose gradient PyTorch is to find."""
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def attempt(text, action, shown=60):
    """Print what an action returns, or the beginning of its error."""
    try:
        print(f"{text:34s} {action()}")
    except NotImplementedError as error:
        if type(error) is NotImplementedError and not str(error):
            raise  # an exercise that is still empty
        print(f"{text:34s} {type(error).__name__}: {str(error)[:shown]}")
    except (RuntimeError, TypeError) as error:
        print(f"{text:34s} {type(error).__name__}: {str(error)[:shown]}")

# %% tags=["demo"]
def under_no_grad(w):
    with torch.no_grad():
        w.mul_(10)


def through_numpy(w):
    array = w.detach().numpy()
    array *= 10


ways = {
    "w.mul_(10)": lambda w: w.mul_(10),
    "the same under no_grad": under_no_grad,
    "w.detach().mul_(10)": lambda w: w.detach().mul_(10),
    "w.data.mul_(10)": lambda w: w.data.mul_(10),
    "w.detach().numpy() times 10": through_numpy,
}


def slope_after(tamper):
    x_torch, w_torch = leaf([1.0, 1.0, 1.0]), leaf([2.0, 3.0, 4.0])
    loss = (w_torch * x_torch).sum()
    tamper(w_torch)
    loss.backward()
    return x_torch.grad.tolist()


for text, tamper in ways.items():
    attempt(text, lambda: slope_after(tamper), shown=54)

# %% [markdown]
# The same numbers are destroyed five times. Once PyTorch refuses on the spot, twice it refuses in `backward`, and twice it returns a wrong slope and says nothing. **What does it see, and what can it not see?** In this lesson you will
#
# 1. count the writes to a piece of memory, and refuse a backward pass whose saved values have been written to;
# 2. write methods that work in place, and say which line raises which error, and why;
# 3. let tensors share memory, and keep gradients right when one of them is written to;
# 4. find the writes that no counter sees;
# 5. explain the errors of `.numpy()` and of two devices.
#
# If something breaks your engine, run the next cell again, and then every cell below it: it puts the engine back as it was.

# %%
start_lesson()

# %% [markdown] items="113"
# ## 1. Count the writes
#
# First your own engine as it is. The slope of `x**2` at 2 is 4. Between forward and backward, `x` becomes 3. **Predict** what your engine answers.

# %% items="113 F17"
x = MiniTensor(2.0, requires_grad=True)
y = x**2
x.data += 1
y.backward()
print("slope:", x.grad.item())

# %% [markdown] items="113"
# A wrong slope, and not a word. A node keeps arrays for its rule, and `save_for_backward` copies nothing. If somebody writes to such an array, the rule computes with the new numbers. A check against that has to be cheap. PyTorch's answer: every piece of memory has a **counter of writes**, its *version*. A node that saves a value notes the version, and a rule that
# uses it looks whether the version is still the same.
#
# The counter is an object of its own, because several tensors can show the same memory, and must then hold the same counter.

# %% tags=["engine"]
class Counter:
    """How often a piece of memory has been written to. All tensors that show it hold this object."""

    def __init__(self):
        self.value = 0


def initialise(self, data, requires_grad=False):
    """As before, and the new tensor has a counter. Its array is an object of its own, even where
    the memory is not: then `saved is x.data` says that x was saved and no other tensor."""
    self.data = np.asarray(data, dtype=np.float64).view()
    self.requires_grad = requires_grad
    self.grad = None
    self.grad_fn = None
    self._accumulate = None
    self._inference = switches.inference
    self._counter = Counter()
    self._base = None  # from section 3: the tensor whose memory this one shows


def version(self):
    """How often the memory of self has been written to."""
    if self.is_inference():
        raise RuntimeError("Inference tensors do not track version counter.")
    return self._counter.value


MiniTensor.__init__ = initialise
MiniTensor._version = property(version)

# %% [markdown]
# When an operation has run, each of its saved values gets a note: **which** of the tensors was saved, and which version it had.

# %% tags=["engine"]
Note = collections.namedtuple("Note", "source counter version")
Function.notes = ()  # one per saved value, once the node is in a graph
Function.returns_view = False  # whether forward may return a part of the memory it was given


def apply(cls, *inputs, **options):
    """As before, with two additions: an output has memory of its own, except for views (section 3),
    and a saved output is the very array of the output."""
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
    """The error for a saved value, given by its position, that has been written to."""
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


Function.apply = classmethod(apply)

# %% [markdown]
# ### Exercise 1: note and compare
#
# Write `note_for`, which makes one note, and `saved_tensors`, which compares before it gives anything out. The comparison stands there, where a saved value is *read*, and not in `backward`: a node that is never asked for its values never complains.

# %% [markdown] tags=["hint"] exercise="versions"
# Go through `[*enumerate(inputs), ("output", output)]`: pairs of a source and a tensor. If `saved is tensor.data`, the note is `Note(source, tensor._counter, tensor._counter.value)`.

# %% [markdown] tags=["hint"] exercise="versions"
# Only when no tensor is the very one, go through the pairs again and look for shared memory: `isinstance(saved, np.ndarray) and np.shares_memory(saved, tensor.data)`. The source is None then.

# %% [markdown] tags=["hint"] exercise="versions"
# `saved_tensors`: `for position, note in enumerate(self.notes):`, and if `note is not None and note.counter.value != note.version`, `raise modified(self, position)`. Freed values come first.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "versions", "locked": false, "schema_version": 3, "solution": true, "task": false}
def note_for(saved, inputs, output):
    """Which tensor a saved value is, and the version that it has now.

    saved: what save_for_backward got: an array, a NumPy number, None, ...
    inputs: list of MiniTensors; output: MiniTensor
    Returns: Note(source, counter, version). If saved is the very object tensor.data, source is the
        position of that tensor in inputs (the first, if it stands there twice), or "output".
        If it is not, but shares memory with one of them, such as its transpose, source is None.
        counter is the counter of the tensor, version what it says now.
        None instead of a note, if saved shares memory with none of them.

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
    """What save_for_backward was given, if nobody has written to it.

    self: Function
    Returns: tuple
    Raises RuntimeError(SECOND_BACKWARD) if the values have been freed;
        modified(self, position) for the first value whose counter has moved since its note.

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

# %% tags=["style:compact"] exercise="versions"
def note_for(saved, inputs, output):
    named = {**dict(enumerate(inputs)), "output": output}
    same = [source for source, tensor in named.items() if tensor.data is saved]
    near = [
        t for t in named.values() if hasattr(saved, "dtype") and np.may_share_memory(t.data, saved)
    ]
    if not same and not near:
        return None
    tensor = named[same[0]] if same else near[0]
    return Note(same[0] if same else None, tensor._counter, tensor._counter.value)


def saved_tensors(self):
    if self.saved is None:
        raise RuntimeError(SECOND_BACKWARD)
    moved = (i for i, note in enumerate(self.notes) if note and note.counter.value > note.version)
    for position in moved:
        raise modified(self, position)
    return self.saved


Function.saved_tensors = property(saved_tensors)

# %% tags=["style:composed"] exercise="versions"
def note_for(saved, inputs, output):
    tensors, names = [*inputs, output], [*range(len(inputs)), "output"]
    if not isinstance(saved, np.ndarray):
        return None
    places = [tensor.data is saved for tensor in tensors]
    if True in places:
        place = places.index(True)
        return Note(names[place], tensors[place]._counter, tensors[place]._counter.value)
    for tensor in tensors:
        if np.shares_memory(tensor.data, saved):
            return Note(None, tensor._counter, tensor._counter.value)


class Guarded:
    """A descriptor in place of a property."""

    def __get__(self, node, kind=None):
        if node.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        now = [None if note is None else note.counter.value for note in node.notes]
        then = [None if note is None else note.version for note in node.notes]
        if now != then:
            raise modified(
                node, next(i for i, pair in enumerate(zip(now, then)) if pair[0] != pair[1])
            )
        return node.saved


Function.saved_tensors = Guarded()

# %% nbgrader={"grade": true, "grade_id": "test_versions", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
def written(tensor):
    """Count a write, as the methods of section 2 will do."""
    tensor._counter.value += 1


def complaint(action):
    """The text of the RuntimeError that an action raises; nothing if it runs."""
    try:
        action()
    except NotImplementedError:
        raise
    except RuntimeError as error:
        return str(error)
    return ""


MiniTensor.written = written
MODIFIED = "one of the variables needed for gradient computation has been modified"

x, w = MiniTensor([1.0, 2.0, 3.0], requires_grad=True), MiniTensor([4.0, 5.0, 6.0])
product = (x * w).grad_fn
assert [note.source for note in product.notes] == [0, 1], "x is input 0, w is input 1"
assert [note.version for note in product.notes] == [0, 0], "nobody has written yet"
w.written()
assert (x * w).grad_fn.notes[1].version == 1, "the note has the version at the time of saving"
text = complaint(lambda: product.saved_tensors)
assert text.startswith(MODIFIED), "w was saved at version 0, and is at version 1"
assert "[MiniTensor [3]] is at version 1; expected version 0 instead" in text, text

y = x.exp()
assert y.grad_fn.notes[0].source == "output", "exp saves its output"
y.written()
text = complaint(lambda: y.sum().backward())
assert "which is output 0 of ExpBackward0, is at version 1" in text, text
z = x + w
x.written()
assert complaint(lambda: z.sum().backward()) == "", "a sum saves nothing, so nothing is wrong"
### BEGIN HIDDEN TESTS
scalar = MiniTensor(0.5, requires_grad=True)
y = scalar.exp()
assert y.grad_fn.notes[0].source == "output", "shape () too"
y.written()
assert complaint(lambda: y.backward()).startswith(MODIFIED)
both = x * x.detach()
assert [note.source for note in both.grad_fn.notes] == [0, 1], "twins are two tensors"
square = x * x
assert square.grad_fn.notes[1].source == 0, "the first of two places"
masked = x.max()
x.written()
assert complaint(lambda: masked.backward()) == "", "what max saved is no part of x"
assert complaint(lambda: square.sum().backward()).startswith(MODIFIED)

cube = x**3
cube.sum().backward(retain_graph=True)
x.written()
assert complaint(lambda: cube.sum().backward()).startswith(MODIFIED), "every reading is checked"
cube = x**3
cube.sum().backward()
x.written()
assert complaint(lambda: cube.sum().backward()).startswith("Trying to backward"), (
    "freed comes first"
)

MiniTensor.note_of = lambda self, part, others: note_for(part(self.data), [*others, self], self * 1)
note = x.note_of(lambda array: array[1:], [w])
assert note is not None and note.source is None and note.version == x._version, "a part of x"
assert x.note_of(lambda array: array, [w, w]).source == 2
assert MiniTensor([[1.0, 2.0], [3.0, 4.0]]).note_of(lambda array: array.T, []).source is None
assert x.note_of(lambda array: array.copy(), [w]) is None
assert x.note_of(lambda array: None, []) is None and x.note_of(lambda array: 2.5, []) is None
middle = x * w
late = middle * middle
middle.written()
assert "which is output 0 of MulBackward0" in complaint(lambda: late.sum().backward())
### END HIDDEN TESTS
credit = check_gradients({"(a * b).exp()": lambda a, b: (a * b).exp()}, [(3,), (3,)], points=5)
credit

# %% [markdown] items="113"
# The same program in both engines. Compare the two messages.

# %% tags=["demo"] items="113"
x, x_torch = MiniTensor([1.0, 2.0], requires_grad=True), leaf([1.0, 2.0])
y, y_torch = x.exp(), x_torch.exp()
y.written()
y_torch.add_(1)
attempt("yours:", lambda: y.sum().backward(), shown=400)
attempt("PyTorch:", lambda: y_torch.sum().backward(), shown=400)

# %% [markdown] items="F11"
# PyTorch's hint is about a tool for finding the operation; yours names it. What moves a counter? You may read that `no_grad` counts a version for *every* operation, or that computing does. **Predict** the four numbers in each line.

# %% tags=["demo"] items="F11"
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
# Operations leave the counters alone, in every mode. A counter counts **writes in place**, and nothing else; a tensor made in inference mode has none.

# %% [markdown] items="113 114"
# ## 2. Methods that write
#
# In PyTorch a name that ends with an underscore works in place: `y.add_(1)` writes the sum into the memory of `y`, and returns `y`. But `y` is also a result with a history. After the write it is another result, so it needs another `grad_fn`. The trick is to split the operation in two:
#
# 1. compute the new value **out of place**, by a recorded operation, from a tensor `former`, which has the old value in memory of its own and the old history;
# 2. let `y` **take over** the history of the new value, write the numbers into the memory of `y`, and count the write.

# %% tags=["engine"]
def set_history(tensor, node):
    """Make tensor the result of node. What retain_grad asked for goes along."""
    old = tensor.grad_fn
    if old is not None and old.retaining is not None and old.retaining() is tensor:
        old.retaining, node.retaining = None, old.retaining
    tensor.requires_grad, tensor.grad_fn = True, node


def take_over(self, new):
    """Give self the history of new, which is recorded. Section 4 has more to do here."""
    set_history(self, new.grad_fn)


class Copy(Function):
    """The value, in the shape of former if it is smaller. Of former itself nothing is left."""

    @staticmethod
    def forward(ctx, former, value):
        return np.broadcast_arrays(former, value)[1].copy()

    @staticmethod
    def backward(ctx, grad):
        return np.zeros(grad.shape), grad


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

# %% [markdown] items="115 F17 F18"
# One kind of tensor must not be written to while operations are recorded: a **leaf that requires grad**. It would become the result of an operation, so it would be no leaf any more, and nobody would ever find its gradient. With recording off the write is fine; that is how optimizers work.
#
# ### Exercise 2: change
#
# Write `check_writable`, which refuses such a leaf, and `change`, the core of all methods below. Whenever `change` raises an error, **nothing** may have changed before: no number, no counter, no history.

# %% [markdown] tags=["hint"] exercise="change"
# `former = MiniTensor(self.data.copy())`, then set its `requires_grad` and `grad_fn` to those of self. `new = operation(former)`.

# %% [markdown] tags=["hint"] exercise="change"
# `self.data[...] = new.data` writes into the memory that is there; `self.data = new.data` would exchange it. A write of a smaller array would be stretched by NumPy, and one of shape (1, 3) into (3,) passes as well, so compare the shapes first.

# %% [markdown] tags=["hint"] exercise="change"
# The order: `check_writable(self)`, compute, compare shapes, `take_over(self, new)` if `new.requires_grad`, write, `self._counter.value += 1`, `return self`.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "change", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_writable(self):
    """Raise RuntimeError(LEAF) if operations are recorded and self is a leaf that requires grad.

    >>> check_writable(MiniTensor(1.0, requires_grad=True))
    Traceback (most recent call last):
    RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.
    >>> with no_grad():
    ...     check_writable(MiniTensor(1.0, requires_grad=True))
    """
    ### BEGIN SOLUTION
    if is_grad_enabled() and self.requires_grad and self.is_leaf:
        raise RuntimeError(LEAF)
    ### END SOLUTION


def change(self, operation):
    """Replace the value of self by operation(former), in the same memory, and count one write.

    self: MiniTensor
    operation: takes a MiniTensor `former` and returns a MiniTensor of the shape of self. former has
        the value of self in memory of its own, and the requires_grad and grad_fn of self.
    Returns: self. If what operation returned requires grad, take_over(self, new) gives self its
        history, before anything is written. Otherwise requires_grad and grad_fn of self stay.
    Raises: what check_writable(self) raises, before anything is computed;
        RuntimeError such as "output with shape [3] doesn't match the broadcast shape [2, 3]" if the
        result has another shape; what take_over raises. Self and its memory are as before then.

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
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape "
            f"{list(new.shape)}"
        )
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

# %% tags=["style:compact"] exercise="change"
def check_writable(self):
    if switches.recording and self.requires_grad and self.grad_fn is None:
        raise RuntimeError(LEAF)


def change(self, operation):
    check_writable(self)
    past = as_tensor(np.array(self.data))
    vars(past).update(requires_grad=self.requires_grad, grad_fn=self.grad_fn)
    new = operation(past)
    mine, found = list(self.shape), list(new.shape)
    if mine != found:
        raise RuntimeError(f"output with shape {mine} doesn't match the broadcast shape {found}")
    new.requires_grad and take_over(self, new)
    np.copyto(self.data, new.data)
    self._counter.value += 1
    return self


for name, operation in {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "copy": lambda a, b: Copy.apply(a, b),
}.items():

    def method(self, other, operation=operation):
        return change(self, lambda former: operation(former, other))

    setattr(MiniTensor, f"{name}_", method)
    setattr(MiniTensor, f"__i{name}__", method)
MiniTensor.zero_ = lambda self: self.copy_(0.0)

# %% tags=["style:composed"] exercise="change"
def check_writable(self):
    must_stay_a_leaf = self.is_leaf and self.requires_grad
    if must_stay_a_leaf and is_grad_enabled():
        raise RuntimeError(LEAF)


class Changing:
    """Puts the numbers back if the operation or the shapes do not allow the change."""

    def __init__(self, tensor):
        self.tensor, self.former = tensor, MiniTensor(tensor.data.copy())
        self.former.grad_fn, self.former.requires_grad = tensor.grad_fn, tensor.requires_grad

    def finish(self, new):
        shape = self.tensor.data.shape
        if new.data.shape != shape:
            text = f"output with shape {[*shape]} doesn't match the broadcast shape {[*new.shape]}"
            raise RuntimeError(text)
        if new.grad_fn is not None:
            take_over(self.tensor, new)
        self.tensor.data.flat = new.data.flat
        self.tensor._counter.value = self.tensor._counter.value + 1
        return self.tensor


def change(self, operation):
    check_writable(self)
    changing = Changing(self)
    return changing.finish(operation(changing.former))


MiniTensor.add_ = lambda self, other: change(self, lambda former: former + other)
MiniTensor.sub_ = lambda self, other: change(self, lambda former: former - other)
MiniTensor.mul_ = lambda self, other: change(self, lambda former: former * other)
MiniTensor.copy_ = lambda self, other: change(self, lambda former: Copy.apply(former, other))
MiniTensor.zero_ = lambda self: self.copy_(0.0)
MiniTensor.__iadd__ = lambda self, other: self.add_(other)
MiniTensor.__isub__ = lambda self, other: self.sub_(other)
MiniTensor.__imul__ = lambda self, other: self.mul_(other)

# %% nbgrader={"grade": true, "grade_id": "test_change", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
MiniTensor.add_and_tell = lambda self, other: (
    self.data is self.add_(other).data,
    self.add_(0) is self,
)

x = MiniTensor([1.0, 2.0, 3.0], requires_grad=True)
assert complaint(lambda: x.add_(1.0)) == LEAF, "a leaf that requires grad is refused"
assert x.data.tolist() == [1.0, 2.0, 3.0] and x._version == 0, "refused means: nothing has changed"
with no_grad():
    x.mul_(2.0)
assert x.data.tolist() == [2.0, 4.0, 6.0] and x._version == 1, "allowed with recording off"
assert x.is_leaf and x.requires_grad, "and x stays the leaf that it was"

y = x * 1
assert y.add_and_tell(1.0) == (True, True), "the same array, and the method returns the tensor"
assert y.data.tolist() == [3.0, 5.0, 7.0] and y._version == 2, "two methods, two writes"
assert y.grad_fn.name() == "AddBackward0", (
    "y is the result of add_ now: operation gets a former with the history of y, and take_over gives y "
    "the history of what came back"
)
text = complaint(lambda: y.add_(MiniTensor(np.ones((2, 3)))))
assert text == "output with shape [3] doesn't match the broadcast shape [2, 3]", text
assert y._version == 2 and y.grad_fn.name() == "AddBackward0", "refused means: nothing has changed"
assert MiniTensor([1.0]).add_(1.0).is_leaf, "nothing requires grad: nothing is recorded"


def changed(a, b):
    y = a * 2
    y.mul_(b)
    y.add_(a)
    return y * b


def filled(a, b):
    y = a.detach() * 0
    y.copy_(b)
    y.sub_(a)
    return y * y


credit = check_gradients({"mul_, add_": changed, "copy_, sub_": filled}, [(3,), (3,)], points=4)
### BEGIN HIDDEN TESTS
text = complaint(lambda: y.copy_(MiniTensor(np.ones((1, 3)))))
assert text == "output with shape [3] doesn't match the broadcast shape [1, 3]", text
plain = MiniTensor([1.0, 2.0])
plain.mul_(MiniTensor([3.0, 4.0], requires_grad=True))
assert plain.requires_grad and not plain.is_leaf, "a plain tensor becomes a result"
y = x * 5
before = y.grad_fn
with no_grad():
    y.mul_(7.0)
assert y.requires_grad and y.grad_fn is before, "with recording off the history stays"
assert y._version == 1, "and the write is counted"
x.grad = None
y = x * 3
y.retain_grad()
y.mul_(10.0)
y.backward(np.array([1.0, 2.0, 3.0]))
assert y.grad.data.tolist() == [1.0, 2.0, 3.0] and x.grad.data.tolist() == [30.0, 60.0, 90.0]
y = x.exp()
y.add_(1.0)
assert complaint(lambda: y.sum().backward()).startswith(MODIFIED), "exp had saved its output"
y = x * 2
z = y * y
y.zero_()
assert complaint(lambda: z.sum().backward()).startswith(MODIFIED), "the product had saved y"
assert y.data.tolist() == [0.0, 0.0, 0.0]


def twice(a, b):
    y = a * b
    y.mul_(b)
    y.mul_(a.sum())
    y.sub_(y)
    y.add_(b * a)
    return y


def stretched(a, b):
    y = a * b
    y.copy_(b.sum())
    y.mul_(a)
    return y


credit = credit + check_gradients(
    {"a chain": twice, "stretched": stretched}, [(2, 3), (3,)], points=1
)
### END HIDDEN TESTS
credit

# %% [markdown] items="115 F17 F18"
# A tutorial shows `x.add_(1)` on a leaf and says that the error comes from the `backward` below it. Another one says that writing to a leaf corrupts gradients in silence. **Predict** which line complains, what `x` is afterwards, and whether `backward` still works.

# %% tags=["demo"] items="115 F17 F18"
def written_leaf(x, name):
    y = x**2
    attempt(f"{name} x.add_(1)", lambda: x.add_(1), shown=90)
    attempt(f"{name} y.backward()", y.backward)
    print(f"{name} x is {x.item()}, its slope {x.grad.item()}")


written_leaf(leaf(2.0), "PyTorch:")
written_leaf(MiniTensor(2.0, requires_grad=True), "yours:  ")

# %% [markdown] items="115 F17 F18 F13"
# The line that would write is the line that complains. Nothing is written, so the graph is whole, and `backward` gives the right 4.
#
# With recording off, a leaf may be written to, in `no_grad` and in `inference_mode` alike. If a node has saved it, that is noticed too, later. **Predict** for each line which slopes you get.

# %% tags=["demo"] items="F13 114"
def write_between(x, compute, mode):
    y = compute(x)
    with mode():
        x.add_(1)
    y.backward()
    return f"slope {x.grad.item():.3f}, x is {x.item()}, version {x._version}"


for text, compute in {"x**2": lambda x: x**2, "x.exp()": lambda x: x.exp()}.items():
    for mode in (torch.no_grad, torch.inference_mode):
        attempt(
            f"PyTorch: {text:8s}{mode.__name__:15s}",
            lambda: write_between(leaf(2.0), compute, mode),
            shown=50,
        )
    mine = MiniTensor(2.0, requires_grad=True)
    attempt(f"yours:   {text:8s}no_grad", lambda: write_between(mine, compute, no_grad), shown=50)

# %% [markdown] items="114"
# The rule of `x**2` needs `x`, the rule of `exp` needs only its output, which nobody has touched: the slope 7.389 belongs to the old `x`, and that is right, because the old `x` was what ran. So the same write is harmless or fatal, depending on **what a rule has saved**.
#
# Which operations mind a write to their input, and which a write to their output? **Predict** your own engine for three of these lines. The last column says whether PyTorch agrees.

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


def mini_leaf(value):
    return MiniTensor(value, requires_grad=True)


print(f"{'':16s} input  output   PyTorch")
for text, operation in operations.items():
    mine, theirs = (
        [minds(make, operation, which) for which in ("input", "output")]
        for make in (mini_leaf, leaf)
    )
    verdict = "the same" if mine == theirs else f"{theirs[0]} {theirs[1]}"
    print(f"{text:16s} {mine[0]:6s} {mine[1]:8s} {verdict}")

# %% [markdown] items="113 114"
# Where the two differ, the two rules have saved different things; each is right about its own. Your `x * 3` made a tensor of the 3 and saved both factors; for PyTorch's rule the 3 is enough. An `abs` may keep its input, or only a sign that is nobody else's memory. So "is it safe to write here?" has no answer that you could learn by heart. Write in place where memory matters, and let the counter be the judge.
#
# The repair is always one of two: **compute out of place** (`x = x + 1` makes a new tensor, and what was saved stays), or give the node a copy nobody writes to (`x.clone()**2`).

# %% items="114"
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
# An optimizer can now do what PyTorch's does: write in place, with recording off, so that the counter of each parameter tells everybody.

# %% tags=["engine"]
class SGD:
    """Gradient descent, with momentum if wanted, as in lesson 05. The steps are counted writes."""

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
# That catches a well-known slip. Two losses share a graph; the optimizer steps after the first, and the second `backward` then walks a graph whose weights have moved. **Predict:** who notices, the old `SGD` of lesson 05 (its step was a plain `parameter.data -= ...`), the new one, PyTorch's?

# %% tags=["demo"]
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


w = MiniTensor([1.0, 2.0], requires_grad=True)
attempt("the old one", lambda: steps_too_early(w, OldSGD([w], lr=0.1)))
w = MiniTensor([1.0, 2.0], requires_grad=True)
attempt("the new one", lambda: steps_too_early(w, SGD([w], lr=0.1)))
w_torch = leaf([1.0, 2.0])
attempt("PyTorch's", lambda: steps_too_early(w_torch, torch.optim.SGD([w_torch], lr=0.1)))

# %% [markdown] items="gap:views"
# ## 3. Two tensors, one memory
#
# `reshape`, `transpose` and `x[2:5]` need no new numbers, only another way to read the old ones. In NumPy they return a **view**: another array object on the same memory. Your engine has made views since lesson 04, without knowing it. Now that memory is written to, it has to know:
#
# * a view must hold the **counter** of the memory, else a write through one tensor would not be seen by the other;
# * a view must know its **base**, the tensor that owns the memory. The base of a view of a view is the first one: there is one owner.
#
# Two more things it remembers for section 4: its **recipe**, which makes it from the base, and whether operations were recorded when it was made. The base remembers its views, weakly: a view that nobody holds may go.

# %% tags=["engine"]
def remember(self, output, recipe):
    """Note how output came from its base: as recipe(self), where self is the base or a view."""
    earlier = self._recipe if self._base is not None else None
    output._recipe = recipe if earlier is None else lambda base: recipe(earlier(base))
    output._recorded = is_grad_enabled()
    base = output._base
    if base._views is None:
        base._views = weakref.WeakSet()
    base._views.add(output)


MiniTensor._views = None  # none so far
MiniTensor._is_view = lambda self: self._base is not None

# %% [markdown]
# The three operations say that what they return may be a view. `Index` is written anew, because NumPy makes an exception: `a[2]` of a vector is a number, and no view. With `...` added, it is a view of shape ().

# %% tags=["engine"]
class Index(Function):
    """a[index]. Where an index is repeated, its gradients add up."""

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
        whole = np.zeros(ctx.shape)
        np.add.at(whole, ctx.index, grad)
        return whole


Reshape.returns_view = Transpose.returns_view = True

# %% [markdown]
# ### Exercise 3: view and detach
#
# Not every result of these operations is a view: `x[[0, 2]]` picks entries, and NumPy has to copy them; `reshape` of a transposed matrix has to copy too. So `view` looks at the memory. `detach` shares memory as well. It has the same counter, and yet it is no view: it has no base, because no gradient ever goes that way.

# %% [markdown] tags=["hint"] exercise="view"
# `output = recipe(self)`. If `np.may_share_memory(output.data, self.data)`, set `output._counter` and `output._base`, then call `remember(self, output, recipe)`. Return the output in any case.

# %% [markdown] tags=["hint"] exercise="view"
# The base is `self` if `self._base` is None, else `self._base`. `remember` needs it, so it comes last.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "view", "locked": false, "schema_version": 3, "solution": true, "task": false}
def view(self, recipe):
    """recipe(self), marked as a view if it shows the memory of self.

    recipe: takes a MiniTensor, returns a MiniTensor; such as
        lambda a: Reshape.apply(a, shape=(2, 3))
    Returns: what recipe(self) returned. If its data shares memory with that of self, its _counter
        is that of self, its _base is self, or the base of self if self is itself a view, and
        remember(self, output, recipe) has been called. Otherwise it stays as it is.

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
    """As before: the same numbers in the same memory, as a leaf that does not require grad. It has
    the counter of self, and no base.

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


def reshape(self, *shape):
    shape = shape[0] if isinstance(shape[0], tuple) else shape
    return view(self, lambda a: Reshape.apply(a, shape=shape))


def transpose(self, dim0, dim1):
    return view(self, lambda a: Transpose.apply(a, dim0=dim0, dim1=dim1))


def getitem(self, index):
    return view(self, lambda a: Index.apply(a, index=index))


MiniTensor.detach = detach
MiniTensor.reshape, MiniTensor.transpose, MiniTensor.__getitem__ = reshape, transpose, getitem

# %% tags=["style:compact"] exercise="view"
def view(self, recipe):
    output = recipe(self)
    if output.data.size and np.shares_memory(output.data, self.data):
        vars(output).update(_counter=self._counter, _base=self._base or self)
        remember(self, output, recipe)
    return output


def detach(self):
    twin = as_tensor(self.data[...])
    twin._counter = self._counter
    return twin


MiniTensor.detach = detach
MiniTensor.reshape = lambda self, *shape: view(
    self, lambda a: Reshape.apply(a, shape=shape[0] if isinstance(shape[0], tuple) else shape)
)
MiniTensor.transpose = lambda self, i, j: view(self, lambda a: Transpose.apply(a, dim0=i, dim1=j))
MiniTensor.__getitem__ = lambda self, index: view(self, lambda a: Index.apply(a, index=index))

# %% tags=["style:composed"] exercise="view"
class Viewing:
    """Both ways to show the memory of a tensor, in one place."""

    def __init__(self, tensor):
        self.tensor = tensor

    def share(self, output):
        output._counter = self.tensor._counter
        return output

    def through(self, recipe):
        output = recipe(self.tensor)
        if not np.may_share_memory(self.tensor.data, output.data):
            return output
        base = self.tensor
        while base._base is not None:
            base = base._base
        self.share(output)._base = base
        remember(self.tensor, output, recipe)
        return output


def view(self, recipe):
    return Viewing(self).through(recipe)


def detach(self):
    return Viewing(self).share(MiniTensor(self.data, requires_grad=False))


def reshape(self, *shape):
    return view(self, lambda a: Reshape.apply(a, shape=shape if len(shape) != 1 else shape[0]))


def transpose(self, dim0, dim1):
    return view(self, lambda a: Transpose.apply(a, dim0=dim0, dim1=dim1))


def getitem(self, index):
    return view(self, lambda a: Index.apply(a, index=index))


MiniTensor.detach, MiniTensor.reshape, MiniTensor.transpose = detach, reshape, transpose
MiniTensor.__getitem__ = getitem

# %% nbgrader={"grade": true, "grade_id": "test_view", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
x = MiniTensor(np.arange(6.0))
table = x.reshape(2, 3)
assert isinstance(table, MiniTensor), f"view must return what recipe(self) returned, not {table!r}"
turned = table.T
row = table[1]
for shown in (table, turned, row, x[2], x[::2]):
    assert shown._base is x, "the base is the tensor that owns the memory"
    assert shown._counter is x._counter, "one memory, one counter"
assert not x._is_view() and x._base is None, "x owns its memory"
turned[0].mul_(10.0)
assert x.data.tolist() == [0.0, 1.0, 2.0, 30.0, 4.0, 5.0], "a write through a view of a view"
assert (x._version, row._version) == (1, 1), "everybody who shows the memory knows"
assert hasattr(row, "_recipe"), "remember(self, output, recipe) is missing"
assert row._recipe(x).data.tolist() == [30.0, 4.0, 5.0], "the recipe makes the view from its base"
picked = x[[0, 2]]
assert picked._base is None and picked._counter is not x._counter, "picked entries are a copy"

w = MiniTensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
twin = w.detach()
assert twin._counter is w._counter and not twin._is_view(), "the same counter, and no view"
square = w * w
twin.add_(1.0)
assert w.data.tolist() == [[2.0, 3.0], [4.0, 5.0]], "the same memory"
assert complaint(lambda: square.sum().backward()).startswith(MODIFIED), "w was saved, twin wrote"
credit = check_gradients(
    {
        "a.T.reshape(2, -1)[1:]": lambda a: a.T.reshape(2, -1)[1:],
        "a[1] * a.reshape(-1)[0]": lambda a: a[1] * a.reshape(-1)[0],
    },
    [(3, 4)],
    points=3,
)
### BEGIN HIDDEN TESTS
copied = x.reshape(2, 3).T.reshape(-1)
assert copied._base is None and copied._version == 0, "this reshape has to copy"
total = x + 0
assert total._base is None and total._counter is not x._counter
point = x[3]
assert point.shape == () and point._is_view()
point.zero_()
assert x.data[3] == 0.0 and x._version == 2
matrix = MiniTensor(np.zeros((2, 2)))
matrix[1, 0].add_(5.0)
matrix[..., 1].add_(7.0)
assert matrix.data.tolist() == [[0.0, 7.0], [5.0, 7.0]]
with no_grad():
    assert w[0]._base is w and w[0]._counter is w._counter, "with recording off too"
part = twin[0]
assert part._base is twin and part._counter is w._counter, "a view of a detached tensor"
assert twin.data.tolist() == [[2.0, 3.0], [4.0, 5.0]] and twin.is_leaf
y = w * 2
assert y.detach()._base is None and not y.detach().requires_grad and y.requires_grad
credit = credit + check_gradients(
    {"a.T[0]": lambda a: a.T[0] * 2, "a[[0, 0, 1], 1]": lambda a: a[[0, 0, 1], 1]},
    [(2, 3)],
    points=1,
)
### END HIDDEN TESTS
credit

# %% [markdown] items="gap:views F31"
# Which results are views? **Predict** the column for your engine before you run.

# %% tags=["demo"] items="gap:views F31"
shown = {
    "x[0]": lambda x: x[0],
    "x[1:, ::2]": lambda x: x[1:, ::2],
    "x[[0, 1]]": lambda x: x[[0, 1]],
    "x.transpose(0, 1)": lambda x: x.transpose(0, 1),
    "x.reshape(6)": lambda x: x.reshape(6),
    "x.transpose(0, 1).reshape(6)": lambda x: x.transpose(0, 1).reshape(6),
    "x.reshape(6)[0]": lambda x: x.reshape(6)[0],
    "x.clone()": lambda x: x.clone(),
    "x.detach()": lambda x: x.detach(),
}


def relation(make, expression):
    x = make(np.arange(6.0).reshape(2, 3))
    y = expression(x)
    if y._is_view():
        kind = "view of x" if y._base is x else "view of something else"
    else:
        kind = "no view"
    y.add_(1)
    return f"{kind}, version of x: {x._version}"


different = 0
for text, expression in shown.items():
    mine, theirs = relation(MiniTensor, expression), relation(torch.tensor, expression)
    different += mine != theirs
    print(f"{text:30s} {mine}")
print("lines in which PyTorch differs:", different)

# %% [markdown] items="gap:views F31"
# The base of a view of a view is the first tensor. And the last line is the odd one: a detached tensor is **no view** for autograd, and shares the counter all the same. "Just a view of the data", as it is often called, would miss the point: a write to the detached tensor is a write to the original, and a node that has saved the original will complain.
#
# ## 4. Histories that share memory
#
# A write through a view changes the base. So the base is another result from now on, and so are all its other views. Who forgets that computes wrong gradients, although all numbers are right:
#
# > `y = a * 2`, then `y[0].mul_(b)`, then `y.sum().backward()`. What are the gradients of `a` and `b`, for `a = [1, 1]` and `b = 5`?
#
# Your engine as it is now. **Predict** both, on paper and for the engine.

# %% items="gap:views"
def row_scaled(a, b):
    y = a * 2
    y[0].mul_(b)
    return y


def show_gradients(make):
    a, b = make([1.0, 1.0]), make(5.0)
    y = row_scaled(a, b)
    y.sum().backward()
    found = ["None" if t.grad is None else np.array(t.grad.data).tolist() for t in (a, b)]
    return f"y is {y.data.tolist()}, gradients {found[0]} and {found[1]}"


print("yours, before section 4:", show_gradients(lambda v: MiniTensor(v, requires_grad=True)))

# %% tags=["demo"] items="gap:views"
attempt("PyTorch:", lambda: show_gradients(leaf))

# %% [markdown] items="gap:views"
# The numbers in `y` are right, the gradients are not: the history of `y` does not know that its first entry is `2 * a[0] * b` now. PyTorch handles it in this way, and so will you: the write through the view is an operation **on the base**, `CopySlices`. It takes the former base and the new part, and gives the base with the part in its place. Afterwards every view is made anew from the base, by its recipe. Only
# histories change hands; the numbers are in place already.
#
# ### Exercise 4: CopySlices
#
# The part is described by its `positions`: an array of whole numbers, of the shape of the part, which says where in the base each entry stands, if the base is counted row by row. So one class serves rows, columns, single entries and lists of indices.
#
# A position may occur twice (`x[[0, 0]] = v`). NumPy writes one after the other, so the **last** one stays, and the others have no effect on anything.

# %% [markdown] tags=["hint"] exercise="copy_slices"
# `array.put(positions, values)` writes and `array.take(positions)` reads at positions that are counted row by row, whatever the shape of the array.

# %% [markdown] tags=["hint"] exercise="copy_slices"
# The gradient of the base is a copy of `grad` with zeros at the positions: these entries of the former base are gone. The gradient of the part is `grad.take(positions)`.

# %% [markdown] tags=["hint"] exercise="copy_slices"
# Who stays? Write numbers instead of values: with `owner = np.zeros(grad.size, int)` and `numbers = np.arange(positions.size).reshape(positions.shape)`, after `owner.put(positions, numbers)` the entry that stayed is the one for which `owner.take(positions) == numbers`.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "copy_slices", "locked": false, "schema_version": 3, "solution": true, "task": false}
class CopySlices(Function):
    """The base with a part in place of some of its entries.

    forward: base and part are arrays, positions an array of whole numbers (an option, no input).
        Entry part[i, j] goes to the place positions[i, j] of the base, counted row by row. A part
        of another shape, such as (), is stretched to that of positions. Where a position is
        repeated, the last of its entries stays. base itself must not be written to.
    backward: one gradient for base, one for part. Entries that did not stay get 0.

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

# %% tags=["style:compact"] exercise="copy_slices"
class CopySlices(Function):
    @staticmethod
    def forward(ctx, base, part, positions):
        flat = base.ravel().copy()
        flat[positions] = part
        source = np.full(base.size, -1)
        source[positions] = np.arange(positions.size).reshape(positions.shape)
        ctx.source, ctx.shape = source.reshape(base.shape), positions.shape
        return flat.reshape(base.shape)

    @staticmethod
    def backward(ctx, grad):
        kept = ctx.source < 0
        part = np.zeros(ctx.shape)
        part.put(ctx.source[~kept], grad[~kept])
        return np.where(kept, grad, 0.0), part

    name = classmethod(lambda cls: "CopySlices")

# %% tags=["style:loops"] exercise="copy_slices"
class CopySlices(Function):
    @staticmethod
    def forward(ctx, base, part, positions):
        part = part + np.zeros(positions.shape)
        ctx.last = {}  # place in the base -> place in the part
        result = base.copy()
        for place, position in np.ndenumerate(positions):
            ctx.last[int(position)] = place
            result[np.unravel_index(position, base.shape)] = part[place]
        ctx.shape = positions.shape
        return result

    @staticmethod
    def backward(ctx, grad):
        for_base, for_part = np.array(grad), np.zeros(ctx.shape)
        for position, place in ctx.last.items():
            where = np.unravel_index(position, grad.shape)
            for_part[place], for_base[where] = grad[where], 0.0
        return for_base, for_part

    @classmethod
    def name(cls):
        return "CopySlices"

# %% [markdown]
# The rest is given, and worth reading. `take_over` is called by your `change` for every write that is recorded. It asks the recipe where the view stands, hangs `CopySlices` behind the base, and makes all views anew. (PyTorch waits with that until somebody uses a view; the result is the same.)
#
# A view that was made with recording off is a special case: its values follow the base, but was its history meant to follow too? Nobody can know, so PyTorch refuses to guess. Here such a view gets a history whose rule raises that error.

# %% tags=["engine"]
VIEW_IN_NO_GRAD = (
    "A view was created in no_grad mode and {what} modified inplace with grad mode enabled. Given "
    "that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code "
    "by moving both the view and the inplace either both inside the no_grad block (if you don't "
    "want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


class Forbidden(Function):
    """The history of a view made with recording off, whose base has a new history: ambiguous."""

    @staticmethod
    def backward(ctx, grad):
        what = "its base or another view of its base has been"
        raise RuntimeError(VIEW_IN_NO_GRAD.format(what=what))


def positions_of(recipe, shape):
    """Where the entries of a view stand in a base of the given shape, counted row by row."""
    numbers = MiniTensor(np.arange(np.prod(shape, dtype=int)).reshape(shape))
    with no_grad():
        return recipe(numbers).data.astype(int)


def take_over(self, new):
    """Give self the history of new. If self is a view, its base gets it; then all views follow."""
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
# With views, more writes must be refused: a write to a *view* of a leaf is a write to the leaf. And `x[i] = value` can now be said in words that you have: `x[i]` is a view, and the value is copied into it.

# %% tags=["engine"]
INFERENCE_WRITE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone "
    "to get a normal tensor before doing inplace update."
)


def check_writable(self):
    """As before, and a view counts as its base. Two more refusals: tensors that are marked (lesson
    07), and views made with recording off, if the write would concern the history of the base."""
    if self.is_inference() and not is_inference_mode_enabled():
        raise RuntimeError(INFERENCE_WRITE)
    base = self if self._base is None else self._base
    if not (is_grad_enabled() and base.requires_grad):
        return
    if base is not self and not self._recorded:
        raise RuntimeError(VIEW_IN_NO_GRAD.format(what="is being"))
    if base.is_leaf:
        raise RuntimeError(LEAF if base is self else "a view of " + LEAF)


def setitem(self, index, value):
    """self[index] = value: for a view, a copy_ into it; for picked entries, one CopySlices."""
    part = self[index]
    if part._is_view():
        part.copy_(value)
        return
    where = positions_of(lambda a: a[index], self.shape)
    change(self, lambda former: CopySlices.apply(former, value, positions=where))


MiniTensor.__setitem__ = setitem

# %% nbgrader={"grade": true, "grade_id": "test_copy_slices", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
def row_written(a, b):
    y = a * 2
    y[0].mul_(b)
    return y * y


def column_assigned(a, b):
    y = a * 2
    column = y.T[1]
    y[:, 1] = b.sum() * a[:, 0]
    return y * column.sum()


credit = check_gradients(
    {"y[0].mul_(b)": row_written, "y[:, 1] = ...": column_assigned}, [(2, 3), (3,)], points=3
)
if credit:  # otherwise the card says what is wrong
    x, v = (
        MiniTensor(np.zeros(3), requires_grad=True),
        MiniTensor([5.0, 6.0, 7.0], requires_grad=True),
    )
    y = x * 1
    y[[0, 0, 1]] = v
    assert y.data.tolist() == [6.0, 7.0, 0.0], "the last of the entries stays"
    y.backward(np.array([1.0, 10.0, 100.0]))
    assert x.grad.data.tolist() == [0.0, 0.0, 100.0], "what was replaced has no effect"
    assert v.grad.data.tolist() == [0.0, 1.0, 10.0], "what did not stay has no effect"
    shared = MiniTensor(np.zeros(3))
    with no_grad():
        quiet = shared[:2]
    text = complaint(lambda: quiet.add_(v[:2]))
    assert text.startswith("A view was created in no_grad mode and is being modified"), text
    assert shared.data.tolist() == [0.0, 0.0, 0.0] and shared._version == 0, (
        "in change, take_over comes before the write: it may refuse"
    )
    assert complaint(lambda: x[:2].mul_(2.0)).startswith("a view of a leaf Variable")
### BEGIN HIDDEN TESTS
base = MiniTensor(np.ones((2, 2)), requires_grad=True)
CopySlices.apply(base, 3.0, positions=np.array([[3]]))
assert base.data.tolist() == [[1.0, 1.0], [1.0, 1.0]], "the base must not be written to"


def filled_in(a, b):
    y = (a * 0).detach()
    for i in range(2):
        y[i, i] = a[i, 0] * b[i]
    y[1, 2:] = a[0, :1]
    return y * a


def block_of_a_view(a, b):
    y = (a * b).T
    block = y[1:, :1]
    first = y.reshape(-1)[0]
    block.add_(b.sum())
    block.mul_(a.sum())
    return y.T * a + block.sum() * first


def picked(a, b):
    y = a * b
    y[[1, 0], [2, 0]] = b[:2] * b[1:]
    y[1, [0, 1]] = a.sum()
    return y * y


credit = credit + check_gradients(
    {"filled": filled_in, "a block": block_of_a_view, "picked": picked}, [(2, 3), (3,)], points=2
)
### END HIDDEN TESTS
credit

# %% tags=["demo"] items="gap:views"
attempt("yours:", lambda: show_gradients(mini_leaf))
attempt("PyTorch:", lambda: show_gradients(leaf))

# %% [markdown] items="gap:views"
# The graph after the write. Two paths lead from `a` to `y`. Which of them brings the gradient of the first entry, and where is it multiplied by 5?

# %% tags=["demo"] items="gap:views"
from mini_autograd.widgets import explore

a, b = MiniTensor([1.0, 1.0], requires_grad=True), MiniTensor(5.0, requires_grad=True)
explore(row_scaled(a, b))

# %% [markdown] items="gap:views F17"
# Is this right in general, and not only in a few hand-made cases? "Operations in place can silently corrupt gradients, so avoid them" is a rule that you find in many tutorials. Put it to the test with programs that nobody has designed: at random they make views, write through them, write to their bases, multiply, add. Each is run by your engine and by PyTorch. **Predict** how many of 150 give an error, and how many a wrong gradient.

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
def run_program(program, make, arrays):
    inputs = [make(array) for array in arrays]
    try:
        program(*inputs).backward()
    except NotImplementedError:
        raise
    except RuntimeError:
        return None
    return np.concatenate(
        [np.zeros(9) if t.grad is None else np.ravel(t.grad.data) for t in inputs]
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
# Errors, right gradients, and nothing in between: in these programs a write through a method is either done right or refused. The next section looks for writes that are silent all the same.
#
# ## 5. What no counter sees
#
# A write is counted by the *method* that writes. A write that reaches the memory without a method is not counted, and a version that nobody noted is not compared. **Predict** for each line in PyTorch: right, error, or silently wrong? "Right" is measured, by central differences of the same program without the tampering.

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
        h.clamp_(max=4.0)  # nobody has saved h, so nobody will look at its counter
    return (h**2).sum()


def recorded_clamp(x):
    return ((x * 3).clamp_(max=4.0) ** 2).sum()


def duplicates_route(x):
    z = torch.zeros(2, dtype=torch.float64)
    z[[0, 0, 1]] = x
    return z.sum()

# %% tags=["demo"] items="F17 113"
def central_differences(function, values, step=1e-6):
    with torch.no_grad():
        moved = [
            [function(torch.tensor(values + sign * step * row)).item() for sign in (1, -1)]
            for row in np.eye(len(values))
        ]
    return np.array([(up - down) / (2 * step) for up, down in moved])


routes = {
    ".data": (data_route, lambda x: (x**2).sum()),
    "shared NumPy memory": (shared_memory_route, lambda x: (x * torch.arange(1.0, 4.0)).sum()),
    "no_grad, not yet saved": (unsaved_route, recorded_clamp),
    "the same, recorded": (recorded_clamp, recorded_clamp),
    "an index that occurs twice": (duplicates_route, duplicates_route),
}
values = np.array([1.0, 2.0, 3.0])
for text, (program, meant) in routes.items():
    right = central_differences(meant, values)
    x_torch = leaf(values)
    try:
        program(x_torch).backward()
        found = x_torch.grad.numpy()
        verdict = "right" if np.allclose(found, right) else "silently wrong"
        print(f"{text:27s} {found}   right: {right.round(6)}   {verdict}")
    except RuntimeError as error:
        print(f"{text:27s} RuntimeError: {str(error)[:40]}")

# %% [markdown] items="F17 113"
# Four silent routes:
#
# * **`.data`** is the same memory with a counter of its own. `detach()` does the same and shares the counter, so use that.
# * **Shared memory**: `torch.from_numpy` and `.numpy()` copy nothing, and NumPy knows nothing of counters.
# * **`no_grad` before the value is saved**: the write *is* counted, but the node that saves `h` afterwards notes the new version. The forward pass has the clamp, the graph has not.
# * **An index that occurs twice**: only one entry survives, and the rule sends gradient to both.
#
# Your engine has the first three as well (its `data` *is* a NumPy array), and not the fourth. **Predict** the two lines.

# %% items="F17 113"
x, w = MiniTensor([1.0, 1.0], requires_grad=True), MiniTensor([2.0, 3.0])
y = x * w
w.data[:] = 7.0
y.sum().backward()
print("memory written:", x.grad.data, "  right: [2. 3.]")

x = MiniTensor([1.0, 2.0, 3.0], requires_grad=True)
z = MiniTensor([0.0, 0.0])
z[[0, 0, 1]] = x
z.sum().backward()
print("index twice:   ", x.grad.data, "  right: [0. 1. 1.]")

# %% [markdown] items="113"
# ### Exercise 5: fingerprints
#
# What a counter cannot see, a detective can. Write a tool in two parts. `fingerprints(output)` goes through all nodes behind a tensor and takes a fingerprint of every saved array. Later, `silent_changes(before)` takes them again, and names the nodes whose saved arrays have changed **although their counter stands still**. It costs a pass over all saved memory, so it is an instrument for a debugging session, not for training.

# %% [markdown] tags=["hint"] exercise="fingerprints"
# `topological_order(output.grad_fn)` lists the nodes. `node.saved` is the tuple of saved values, `()` if there are none, None if they have been freed. Read it there: `saved_tensors` would raise.

# %% [markdown] tags=["hint"] exercise="fingerprints"
# A fingerprint: `hash(saved.tobytes())`, or simply a copy. The key of the dict: `(node, position)`.

# %% [markdown] tags=["hint"] exercise="fingerprints"
# `silent_changes`: for each key, skip it if `node.saved is None`; the counter stands still if `node.notes[position]` is None or its `counter.value == version`.

# %% nbgrader={"grade": false, "grade_id": "fingerprints", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fingerprints(output):
    """A fingerprint of every array that the nodes behind output have saved.

    output: MiniTensor, possibly without a history
    Returns: dict (node, position in node.saved) -> fingerprint, in topological order. Saved values
        that are no arrays, and freed ones, have none. Nothing is read through saved_tensors.

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
    """Which saved arrays have changed since then, although their counter has not moved.

    before: what fingerprints returned
    Returns: list of the names of their nodes, in the order of before, once per array. Arrays whose
        note shows a counted write are left out, and so are arrays that have been freed since.

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

# %% tags=["style:compact"] exercise="fingerprints"
def fingerprints(output):
    nodes = topological_order(output.grad_fn) if output.grad_fn else []
    saved = [(node, i, array) for node in nodes for i, array in enumerate(node.saved or ())]
    return {
        (node, i): array.copy()
        for node, i, array in saved
        if hasattr(array, "dtype") and hasattr(array, "copy")
    }


def stands_still(note):
    return note is None or note.counter.value == note.version


def silent_changes(before):
    return [
        node.name()
        for (node, i), copy in before.items()
        if node.saved
        and stands_still(node.notes[i])
        and not np.array_equal(node.saved[i], copy, equal_nan=True)
    ]

# %% tags=["style:composed"] exercise="fingerprints"
import zlib


def checksum(array):
    return array.shape, zlib.crc32(np.ascontiguousarray(array).tobytes())


def fingerprints(output):
    found, waiting, seen = {}, [], set()
    if output.grad_fn is not None:
        waiting = list(topological_order(output.grad_fn))
    for node in waiting:
        if node.saved is None or node in seen:
            continue
        seen.add(node)
        for position in range(len(node.saved)):
            if isinstance(node.saved[position], np.ndarray):
                found[(node, position)] = checksum(node.saved[position])
    return found


def silent_changes(before):
    names = []
    for key in before:
        node, position = key
        if node.saved is not None:
            note = node.notes[position]
            moved = note.counter.value - note.version if note is not None else 0
            if moved == 0 and checksum(node.saved[position]) != before[key]:
                names.append(node.name())
    return names

# %% nbgrader={"grade": true, "grade_id": "test_fingerprints", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
def poke(self, place, value):
    """Write to the memory of a tensor as NumPy does, without a count."""
    self.data.reshape(-1)[place] = value


MiniTensor.poke = poke
x = MiniTensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
w = MiniTensor([[5.0, 6.0]])
h = x * w
y = h.exp() + h**3
before = fingerprints(y)
assert [position for _, position in before].count(1) == 1, "the product has saved two arrays"
assert silent_changes(before) == [], "nobody has written"
w.poke(0, 50.0)
assert silent_changes(before) == ["MulBackward0"], "w was saved by the product, and changed"
h.mul_(2.0)
x.poke(3, -1.0)
assert silent_changes(before) == ["MulBackward0", "MulBackward0"], "now both of its factors"

x, w = MiniTensor([1.0, 2.0], requires_grad=True), MiniTensor([3.0, 4.0])
y = x * w
before = fingerprints(y)
w.mul_(2.0)
assert silent_changes(before) == [], "a counted write is not silent: the counter tells"
### BEGIN HIDDEN TESTS
assert complaint(lambda: y.sum().backward()).startswith(MODIFIED)
assert len(fingerprints(x)) == 0 and len(fingerprints(w)) == 0, "no history, no fingerprints"
y = (x * 2).max()
before = fingerprints(y)
MiniTensor.poke_saved = lambda self: self.grad_fn.saved[0].__setitem__(0, 9.0)
y.poke_saved()
assert silent_changes(before) == ["MaxBackward0"], "an array that is nobody's memory can change too"
y = (x * x).tanh() * 1
before = fingerprints(y)
y.sum().backward()
assert silent_changes(before) == [], "freed"
assert len(fingerprints(y)) == 0, "freed values have no fingerprints"
q = x.exp()
z = (q * 2).log()
before = fingerprints(z)
q.poke(1, 0.5)
found = silent_changes(before)
assert sorted(found) == ["ExpBackward0", "MulBackward0"], found
def plus_ones(self, count):
    for _ in range(count):
        self = self + 1
    return self


MiniTensor.plus_ones = plus_ones
chain = x.plus_ones(3000)
before = fingerprints(chain * chain)
chain.poke(0, 0.25)
assert silent_changes(before) == ["MulBackward0", "MulBackward0"]
### END HIDDEN TESTS

# %% [markdown] items="113"
# The detective at work. A "loader" hands out the same NumPy buffer again and again; the losses of three batches are added, and `backward` comes at the end. **Predict** how many of the three products have been changed.

# %% tags=["demo"] items="113"
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
# The first two batches have been overwritten; only the last is still itself. The gradient is three times the last batch. The repair stands in one line: hand out a copy, `MiniTensor(buffer.copy())`.
#
# ## 6. Leaving for NumPy, and a second device
#
# A program that leaves for NumPy leaves the graph. With `item()` you get a number, and nobody expects a number to have a history. An *array* looks like a tensor and could be computed with for pages before anybody wonders where the gradient has gone. So PyTorch refuses `.numpy()` where a history would be lost. Yours can do the same:

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
# **Predict** each line: an array or an error? Some tutorials list `.numpy()` among the ways to lose a gradient in silence, others say that `.detach()` before it is always needed.

# %% tags=["demo"] items="117 F16"
x, x_torch = MiniTensor([1.0, 2.0], requires_grad=True), leaf([1.0, 2.0])
attempt("yours:   x.numpy()", x.numpy, shown=90)
attempt("PyTorch: x.numpy()", x_torch.numpy, shown=90)
with no_grad(), torch.no_grad():
    attempt("yours:   under no_grad", x.numpy)
    attempt("PyTorch: under no_grad", x_torch.numpy)
attempt("yours:   x.detach().numpy()", x.detach().numpy)
attempt("PyTorch: x.detach().numpy()", x_torch.detach().numpy)
attempt("PyTorch: no grad required", torch.ones(2).numpy)
attempt("PyTorch: detach().cpu().numpy()", x_torch.detach().cpu().numpy)
attempt("PyTorch: numpy(force=True)", lambda: x_torch.numpy(force=True))
array = x_torch.detach().numpy()
array[0] = 100.0
print("after a write to the array, x is", x_torch.tolist(), "at version", x_torch._version)

# %% [markdown] items="117 F16"
# It is loud, and only where something would be lost: `detach` is needed for what requires grad while operations are recorded, `cpu` for what lives on another device; `detach().cpu().numpy()` does it for real numbers of every dtype that NumPy has (it has no bfloat16), and `numpy(force=True)` does it in one word. The last line is the second silent route again.
#
# A tensor lives on one **device**, and an operation needs its inputs on the same one. This machine may have no GPU. PyTorch has a device for such cases that every machine has: `meta`, whose tensors have a shape and no numbers. **Predict** which lines complain.

# %% tags=["demo"] items="116"
here, there = torch.ones(3), torch.ones(3, device="meta")
attempt("both on meta", lambda: (there + there).device)
attempt("one here, one there", lambda: here + there)
attempt("moved first", lambda: (here.to(there.device) + there).device)
attempt("a number", lambda: (2.0 * there).device)
attempt("a 0-dim tensor here", lambda: (torch.tensor(2.0) * there).device)
attempt("a 1-dim tensor here", lambda: torch.tensor([2.0]) * there)
attempt("a 0-dim tensor there", lambda: torch.tensor(2.0, device="meta") * here)
attempt("numpy() from there", there.numpy, shown=90)

# %% [markdown] items="116 117"
# A 0-dim tensor of the CPU counts as a number and may meet any device. The other way round it may not. The repair is to move data to where the model is, `batch.to(device)`, once per batch; and to fetch results with `.cpu()` when they are wanted as arrays.

# %% [markdown]
# ## Quiz

# %% tags=["quiz"] nbgrader={"grade": true, "grade_id": "quiz_09", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false} items="113 115 117"
question(
    "what_counts",
    "`b = a * 2` and `b.add_(1)` run under `no_grad`. What are the versions of `a` and `b`?",
    right("0 and 1", "A counter counts writes in place, in every mode."),
    wrong(
        "1 and 2", "Computing from a tensor is no write.", misconception="versions_count_operations"
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
    right("The right gradient", "The rule of `exp` needs its output, and nobody has touched that."),
    wrong(
        "An error: `h` was modified",
        "It was, but no node has saved it.",
        misconception="every_write_is_an_error",
    ),
    wrong(
        "A wrong gradient, because `h` has changed",
        "The rule never looks at `h`.",
        misconception="every_write_corrupts",
    ),
    wrong(
        "The gradient at the new `h`",
        "It belongs to what ran, and that was the old `h`.",
        misconception="every_write_corrupts",
    ),
)
question(
    "leaf_line",
    "`w` is a leaf that requires grad. `y = w**2`, `w.add_(1)`, `y.backward()`. Which line raises the error?",
    right(
        "`w.add_(1)`, and `w` keeps its value",
        "The method looks before it writes. A `backward` after it still works.",
    ),
    wrong(
        "`y.backward()`, because `w` was saved",
        "It never comes to a write.",
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
        "A leaf is what no operation has made.",
    ),
    wrong(
        "Because parameters are read-only.",
        "Every optimizer writes to them, with recording off.",
        misconception="leaves_are_constant",
    ),
    wrong(
        "Because its version counter would overflow.",
        "It counts, that is all.",
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
    "view_write",
    "`y = a * 2`, `v = y[0]`, then `y.mul_(b)`. What does `v` know of `b`?",
    right(
        "Its value and its history contain `b`.",
        "It shares the memory, and after the write it is made anew from its base.",
    ),
    wrong(
        "Its value contains `b`, its history does not.",
        "That was your engine before section 4.",
        misconception="views_keep_their_history",
    ),
    wrong(
        "Nothing: `v` was made before.", "It is the same memory.", misconception="views_are_copies"
    ),
    wrong(
        "Using `v` now is an error.",
        "Only for a view made under `no_grad`.",
        misconception="views_become_invalid",
    ),
)
question(
    "clamp_hidden",
    "`h = model(x)`; under `no_grad`: `h.clamp_(max=1)`; then `loss = (h**2).sum()`. What about the gradients?",
    right(
        "Silently wrong: the clamp is in the values and not in the graph.",
        "The square saved `h` after the write, so its version fits.",
    ),
    wrong(
        "An error, because `h` was written to.",
        "The counter has moved before anybody noted it.",
        misconception="every_write_is_an_error",
    ),
    wrong(
        "Right: `no_grad` only saves memory.",
        "It keeps an operation out of the graph, and this one mattered.",
        misconception="modes_save_time_only",
    ),
    wrong("None for all parameters", "The graph of `h` is there.", misconception="none_means_zero"),
)
question(
    "numpy_of_result",
    "When is `.detach()` needed before `.numpy()`?",
    right(
        "If the tensor requires grad and operations are being recorded",
        "Then a history would be lost without a word, so PyTorch asks you to say it.",
    ),
    wrong(
        "Always",
        "A tensor without `requires_grad` gives its array at once.",
        misconception="detach_always",
    ),
    wrong(
        "Only on a GPU",
        "There it is `.cpu()` that is needed, and perhaps both.",
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
# | version | counts the writes to a memory, in every mode; operations do not count |
# | the check | a saved value is compared when it is read: the version must be the one that was noted |
# | in place | compute out of place from the former value, write, take over the history |
# | a leaf that requires grad | refused by the line that would write, before it writes |
# | view | shares memory, counter and, through its base, the history |
# | `detach` | shares memory and counter, and no history |
# | `CopySlices` | what a write through a view does to its base |
# | silent | `.data`, shared NumPy memory, a write under `no_grad` before the value is saved, an index twice |
# | `.numpy()`, devices | loud, where a history or a number would travel unseen |
#
# Autograd protects what it can see: writes that go through its methods. You know the doors that it cannot see, and have an instrument for them.
#
# All gradients so far were plain numbers: the backward pass itself leaves no trace. In the next lesson it is recorded like any other computation, and can be differentiated again.
