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
for text, tamper in ways.items():
    x_torch, w_torch = leaf([1.0, 1.0, 1.0]), leaf([2.0, 3.0, 4.0])
    loss = (w_torch * x_torch).sum()
    try:
        tamper(w_torch)
        loss.backward()
        print(f"{text:28s} slope {x_torch.grad.tolist()}")
    except RuntimeError as error:
        print(f"{text:28s} RuntimeError: {str(error)[:50]} ...")

# %% [markdown]
# The same damage, and three different endings. **What does PyTorch see, and what not?** In this lesson you will
#
# 1. count the writes to a piece of memory, and refuse a backward pass whose saved values have been written to;
# 2. write methods that work in place, and the two errors that belong to them;
# 3. let tensors share memory on purpose, and keep the gradients right when one of them is written to;
# 4. find the writes that no counter sees.
#
# Should an attempt break your engine, run the next cell again: it puts the engine back as it was.

# %%
start_lesson()

# %% [markdown] items="113"
# ## 1. Count the writes
#
# A node keeps arrays for its rule, and `save_for_backward` copies nothing. If somebody writes to such an array, the rule computes with the new numbers. A check against that has to be cheap. PyTorch's answer: every piece of memory has a **counter of writes**, its *version*. Whoever saves a value notes the version; whoever
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

# %% tags=["style:guarded"] exercise="versions"
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
    """A descriptor in the place of a property."""

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
assert x.tanh().grad_fn.notes[0].source == "output"
masked = x.abs()
x.written()
assert complaint(lambda: masked.sum().backward()) == "", "what abs saved is no part of x"
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
chain = (x * w).tanh()
middle = x * w
late = middle * middle
middle.written()
assert "which is output 0 of MulBackward0" in complaint(lambda: late.sum().backward())
assert complaint(lambda: chain.sum().backward()) == ""
### END HIDDEN TESTS
credit = check_gradients({"(a * b).exp()": lambda a, b: (a * b).exp()}, [(3,), (3,)], points=5)
credit

# %% [markdown] items="113 114"
# ## 2. Methods that write
#
# In PyTorch a name that ends with an underscore works in place: `y.add_(1)` writes the sum into the memory of `y`, and returns `y`. But `y` is also a result with a history. After the write it is another result, so it needs another `grad_fn`. The trick is to split the operation in two:
#
# 1. compute the new value **out of place**, by a recorded operation, from a tensor `former`, which has the old value in memory of its own and the old history;
# 2. write the numbers into the memory of `y`, count the write, and let `y` **take over** the history of the new value.

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

# %% tags=["style:exchanged"] exercise="change"
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

# %% [markdown]
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

# %% tags=["style:methods"] exercise="view"
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
turned = table.T
row = table[1]
for shown in (table, turned, row, x[2], x[::2]):
    assert shown._base is x, "the base is the tensor that owns the memory"
    assert shown._counter is x._counter, "one memory, one counter"
assert not x._is_view() and x._base is None, "x owns its memory"
turned[0].mul_(10.0)
assert x.data.tolist() == [0.0, 1.0, 2.0, 30.0, 4.0, 5.0], "a write through a view of a view"
assert (x._version, row._version) == (1, 1), "everybody who shows the memory knows"
picked = x[[0, 2]]
assert picked._base is None and picked._counter is not x._counter, "picked entries are a copy"

w = MiniTensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
twin = w.detach()
assert twin._counter is w._counter and not twin._is_view(), "the same counter, and no view"
square = w * w
twin.add_(1.0)
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

# %% [markdown] items="gap:views"
# ## 4. Histories that share memory
#
# A write through a view changes the base. So the base is another result from now on, and so are all its other views. Who forgets that computes wrong gradients, although all numbers are right:
#
# > `y = a * 2`, then `y[0].mul_(b)`, then `y.sum().backward()`. What is the gradient of `a`?
#
# The first entry of `y` is now `2 * a[0] * b`. PyTorch and your engine handle it in this way: the write through the view is an operation **on the base**, `CopySlices`. It takes the former base and the new part, and gives the base with the part in its place. Afterwards every view is made anew from the base, by its recipe. Only
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
    """The base with a part in the place of some of its entries.

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
# The rest is given. `take_over` is called by your `change`, whenever a recorded value has been written. It asks the recipe where the view stands, hangs `CopySlices` behind the base, and makes the views anew.

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


INFERENCE_WRITE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone "
    "to get a normal tensor before doing inplace update."
)


def check_writable(self):
    """As before, and a view of a leaf counts as the leaf. Marked tensors are refused too."""
    if self.is_inference() and not is_inference_mode_enabled():
        raise RuntimeError(INFERENCE_WRITE)
    base = self if self._base is None else self._base
    if is_grad_enabled() and base.requires_grad and base.is_leaf:
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
