"""What the exercises of lesson 09 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

from autograder.checks.cases import Check

# Exercise 1


def sources(node):
    """The sources in the notes of a node. What is not a Note is shown as it is."""
    return ["no note" if note is None else getattr(note, "source", note) for note in node.notes]


def saves_none_and_a_transpose(tensor):
    """The result of an operation that saves None, and the memory of its input in another object."""

    class Transposed(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(None, a.T)
            return a.T * 2.0

        @staticmethod
        def backward(ctx, grad):
            _, turned = ctx.saved_tensors
            return 2.0 * grad.T + 0.0 * turned.T

    return Transposed.apply(tensor)


check = Check("versions", points=5)
check.cases("""
>>> x = MiniTensor([1.0, 2.0, 3.0], requires_grad=True)
>>> w = MiniTensor([4.0, 5.0, 6.0])

# the source: positions of inputs
>>> sources((x * w).grad_fn)
[0, 1]

# the source: the output, which exp saves
>>> sources(x.exp().grad_fn)
["output"]

# the counter, and the version before any write
>>> first, second = (x * w).grad_fn.notes
>>> first.counter is x._counter, second.counter is w._counter
(True, True)
>>> first.version, second.version
(0, 0)

# the version after a write to w
>>> w._counter.value += 1
>>> (x * w).grad_fn.notes[1].version, note_for(w.data[1:], [x, w], x * w).version
(1, 1)

# equal numbers in another tensor
>>> twin = MiniTensor([1.0, 2.0, 3.0])
>>> sources((x * twin).grad_fn)
[0, 1]

# a tensor that is there twice
>>> sources((x * x).grad_fn)
[0, 0]

# another tensor with the same memory: first the same object among all, then shared memory
>>> sources((x * x.detach()).grad_fn)
[0, 1]

# a part of an input
>>> note = note_for(x.data[1:], [w, x], x * w)
>>> note.source, note.counter is x._counter
(None, True)

# a part of the output
>>> y = x * 1
>>> note = note_for(y.data[1:], [x], y)
>>> note.source, note.counter is y._counter
(None, True)

# a copy shares no memory
>>> note_for(x.data.copy() + 1, [x, w], x * w)
None

# saved_tensors without a write
>>> (x * w).grad_fn.saved_tensors
(array([1.0, 2.0, 3.0]), array([4.0, 5.0, 6.0]))
>>> (x + 1.0).grad_fn.saved_tensors
()

# a write to w, the second value that x * w saved
>>> node = (x * w).grad_fn
>>> w._counter.value += 1
>>> node.saved_tensors
RuntimeError: one of the variables needed for *[MiniTensor [3]] is at version 1; expected version 0 instead*

# a write to x, the first input
>>> y = x**3
>>> x._counter.value += 1
>>> y.sum().backward()
RuntimeError: one of the variables needed for gradient computation has been modified*

# a write to the output
>>> y = x.exp()
>>> y._counter.value += 1
>>> y.sum().backward()
RuntimeError: one of the variables *which is output 0 of ExpBackward0, is at version 1; expected version 0*

# a value without a note, and then one that was written to
>>> h = MiniTensor([[1.0, 2.0]], requires_grad=True) * 1.0
>>> y = saves_none_and_a_transpose(h)
>>> sources(y.grad_fn)
["no note", None]
>>> h._counter.value += 1
>>> y.sum().backward()
RuntimeError: one of the variables needed for gradient computation has been modified*

# a write to what no node has saved
>>> y = x + w
>>> x._counter.value += 1
>>> y.sum().backward()
>>> x.max().backward()
>>> x.grad.data
array([1.0, 1.0, 2.0])

# a write before the value is saved
>>> x._counter.value += 2
>>> (x**3).sum().backward()
>>> x.grad.data
array([3.0, 12.0, 27.0])

# freed values
>>> y = (x**3).sum()
>>> y.backward()
>>> y.backward()
RuntimeError: Trying to backward through the graph a second time*

# freed values, and a write
>>> y = (x**3).sum()
>>> y.backward()
>>> x._counter.value += 1
>>> y.backward()
RuntimeError: Trying to backward through the graph a second time*
""")
check.gradients({"(a * b).exp()": lambda a, b: (a * b).exp()}, [(3,), (3,)])
check.hidden("""
# scalars
>>> y = MiniTensor(0.5, requires_grad=True).exp()
>>> sources(y.grad_fn)
["output"]
>>> y._counter.value += 1
>>> y.backward()
RuntimeError: one of the variables needed*

# a write that concerns one of two nodes
>>> square, largest = x * x, x.max()
>>> x._counter.value += 1
>>> largest.backward()
>>> square.sum().backward()
RuntimeError: one of the variables needed*

# a second backward pass after a write
>>> y = x**3
>>> y.sum().backward(retain_graph=True)
>>> x._counter.value += 1
>>> y.sum().backward()
RuntimeError: one of the variables needed*

# notes of further values
>>> x._counter.value += 3
>>> note_for(x.data[1:], [w, x], x * 1).version, note_for(x.data, [w, w, x], x * 1).source
(3, 2)
>>> table = MiniTensor([[1.0, 2.0], [3.0, 4.0]])
>>> note_for(table.data.T, [table], table * 1).source
None
>>> note_for(None, [x], x * 1), note_for(2.5, [x], x * 1)
(None, None)

# a result that another node has saved
>>> middle = x * w
>>> late = middle * middle
>>> middle._counter.value += 1
>>> late.sum().backward()
RuntimeError: *which is output 0 of MulBackward0*
""")
check.gradients({"(a / b).tanh() * a": lambda a, b: (a / b).tanh() * a}, [(3,), (3,)], hidden=True)

# Exercise 2


def at_take_over(tensor):
    """What add_(1) passes to take_over: whether it is the tensor, and the new numbers; and the numbers and the version
    of the tensor by then.
    """
    names, seen = change.__globals__, []
    original = names["take_over"]

    def noted(target, new):
        seen.append((target is tensor, new.data.tolist(), tensor.data.tolist(), tensor._version))
        return original(target, new)

    names["take_over"] = noted
    try:
        tensor.add_(1.0)
    finally:
        names["take_over"] = original
    return seen


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


def changed_often(a, b):
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


check = Check("change", points=5)
check.cases("""
>>> x = MiniTensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = x * 3

# the numbers; the same tensor, array and counter
>>> array, counter = y.data, y._counter
>>> y.add_(1.0) is y
True
>>> y.data
array([4.0, 7.0, 10.0])
>>> y.data is array, y._counter is counter
(True, True)

# two writes
>>> y.add_(1.0)
>>> y.add_(0.0)
>>> y._version
2

# the new history
>>> y.add_(1.0)
>>> y.requires_grad, y.grad_fn.name()
(True, "AddBackward0")

# the gradient goes through a write
>>> y.mul_(MiniTensor([1.0, 10.0, 100.0]))
>>> y.sum().backward()
>>> x.grad.data
array([3.0, 30.0, 300.0])

# former: the old value in its own memory, with a counter of its own, and the history of y
>>> formers, node = [], y.grad_fn
>>> change(y, lambda former: formers.append(former) or former * 2)
>>> formers[0].data
array([3.0, 6.0, 9.0])
>>> formers[0].requires_grad, formers[0].grad_fn is node, formers[0]._counter is y._counter
(True, True, False)

# take_over is called once with y and the new value, before anything is written or counted
>>> at_take_over(y)
[(True, [4.0, 7.0, 10.0], [3.0, 6.0, 9.0], 0)]

# retain_grad asks for the gradient of the new y
>>> y.retain_grad()
>>> y.mul_(10.0)
>>> y.backward(np.array([1.0, 2.0, 3.0]))
>>> y.grad.data
array([1.0, 2.0, 3.0])

# a leaf that requires grad is refused
>>> x.add_(1.0)
RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.
>>> x.data
array([1.0, 2.0, 3.0])
>>> x._version
0

# with recording off, it is written to and stays a leaf
>>> with no_grad():
...     x.mul_(2.0)
>>> x.data
array([2.0, 4.0, 6.0])
>>> x._version, x.is_leaf, x.requires_grad
(1, True, True)

# with recording off, a result keeps its history
>>> before = y.grad_fn
>>> with no_grad():
...     y.mul_(7.0)
>>> y.data
array([21.0, 42.0, 63.0])
>>> y._version, y.requires_grad, y.grad_fn is before
(1, True, True)

# an inference tensor is refused
>>> with inference_mode():
...     sealed = MiniTensor([1.0])
>>> sealed.add_(1.0)
RuntimeError: Inplace update to inference tensor outside InferenceMode is not allowed.*

# a result with more entries is refused
>>> y.add_(MiniTensor(np.ones((2, 3))))
RuntimeError: output with shape [3] doesn't match the broadcast shape [2, 3]
>>> MiniTensor(np.ones((1, 3))).add_(MiniTensor(np.ones((2, 3))))
RuntimeError: output with shape [1, 3] doesn't match the broadcast shape [2, 3]

# a result with as many entries and another shape is refused
>>> y.copy_(MiniTensor(np.ones((1, 3))))
RuntimeError: output with shape [3] doesn't match the broadcast shape [1, 3]

# a result with fewer entries is refused
>>> change(y, lambda former: former[:1])
RuntimeError: output with shape [3] doesn't match the broadcast shape [1]

# after a refusal, nothing has changed
>>> y.add_(MiniTensor(np.ones((2, 3))))
anything
>>> y.data
array([3.0, 6.0, 9.0])
>>> y._version, y.grad_fn.name()
(0, "MulBackward0")

# nothing requires grad
>>> plain = MiniTensor([1.0]).add_(1.0)
>>> plain.data
array([2.0])
>>> plain.requires_grad, plain.grad_fn
(False, None)

# a plain tensor times one that requires grad
>>> plain = MiniTensor([2.0]).mul_(MiniTensor([3.0], requires_grad=True))
>>> plain.requires_grad, plain.is_leaf
(True, False)

# a scalar
>>> MiniTensor(2.0).mul_(3.0).data
array(6.0)

# a transposed array
>>> MiniTensor(np.array([[1.0, 2.0], [3.0, 4.0]]).T).mul_(2.0).data
array([[2.0, 6.0], [4.0, 8.0]])
""")
check.gradients({"mul_, add_": changed, "copy_, sub_": filled}, [(3,), (3,)])
check.hidden("""
# retain_grad, and the gradient before it
>>> y.retain_grad()
>>> y.mul_(10.0)
>>> y.backward(np.array([1.0, 2.0, 3.0]))
>>> y.grad.data
array([1.0, 2.0, 3.0])
>>> x.grad.data
array([30.0, 60.0, 90.0])

# a write to what was saved
>>> y = x.exp()
>>> y.add_(1.0)
>>> y.sum().backward()
RuntimeError: one of the variables needed*
>>> y = x * 2
>>> z = y * y
>>> y.zero_()
>>> z.sum().backward()
RuntimeError: one of the variables needed*
>>> y.data
array([0.0, 0.0, 0.0])
""")
check.gradients({"a chain": changed_often, "stretched": stretched}, [(2, 3), (3,)], hidden=True)

# Exercise 3

check = Check("view", points=4)
check.cases("""
>>> x = MiniTensor(np.arange(6.0))
>>> w = MiniTensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

# view: calls the recipe with self, and returns what it returned
>>> calls = []
>>> output = view(x, lambda a: calls.append((a, Index.apply(a, index=slice(0, 2)))) or calls[-1][1])
>>> [(a is x, made is output) for a, made in calls]
[(True, True)]

# view: a result that shares the memory
>>> table = x.reshape(2, 3)
>>> table.data
array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
>>> table._counter is x._counter, table._base is x, x._base
(True, True, None)

# view: a view of a view
>>> row = x.reshape(2, 3).T[1]
>>> row._counter is x._counter, row._base is x
(True, True)

# view: a write through a view of a view
>>> table = x.reshape(2, 3)
>>> table.T[0].mul_(10.0)
>>> x.data
array([0.0, 1.0, 2.0, 30.0, 4.0, 5.0])
>>> x._version, table._version
(1, 1)

# view: remember is called
>>> table = x.reshape(2, 3)
>>> table in (x._views or ())
True
>>> table._recipe(x + 1).data
array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

# view: remember is called with the tensor whose view it is, also if that is a view
>>> row = x.reshape(2, 3)[1]
>>> row in (x._views or ())
True
>>> row._recipe(x + 1).data
array([4.0, 5.0, 6.0])

# view: picked entries are a copy
>>> picked = x[[0, 2]]
>>> picked.data
array([0.0, 2.0])
>>> picked._base, picked._counter is x._counter, hasattr(picked, "_recipe")
(None, False, False)

# view: a view has the history of its tensor
>>> w[0].requires_grad, w[0].is_leaf
(True, False)

# view: with recording off
>>> with no_grad():
...     quiet = w[0]
>>> quiet._base is w, quiet._counter is w._counter, quiet.requires_grad
(True, True, False)

# detach: a leaf with the same numbers
>>> free = (w * 2).detach()
>>> free.data
array([[2.0, 4.0], [6.0, 8.0]])
>>> free.requires_grad, free.grad_fn
(False, None)

# detach: the memory and the counter of w, to which nothing is written
>>> counter, twin = w._counter, w.detach()
>>> np.shares_memory(twin.data, w.data), twin._counter is counter
(True, True)
>>> w._counter is counter, w._version, w.requires_grad
(True, 0, True)

# detach: no base, and not remembered
>>> twin, other = w.detach(), x.reshape(2, 3).detach()
>>> twin._base, other._base, twin in (w._views or ())
(None, None, False)

# detach: a new tensor, also of one that requires no grad, and without its gradient
>>> x.detach() is x
False
>>> w.grad = MiniTensor(np.ones((2, 2)))
>>> w.detach().grad
None

# detach: a write through it
>>> square = w * w
>>> w.detach().add_(1.0)
>>> w.data
array([[2.0, 3.0], [4.0, 5.0]])
>>> square.sum().backward()
RuntimeError: one of the variables needed for gradient computation has been modified*
""")
check.gradients(
    {
        "a.T.reshape(2, -1)[1:]": lambda a: a.T.reshape(2, -1)[1:],
        "a[1] * a.reshape(-1)[0]": lambda a: a[1] * a.reshape(-1)[0],
    },
    [(3, 4)],
)
check.hidden("""
# results with memory of their own
>>> copied, total = x.reshape(2, 3).T.reshape(-1), x + 0
>>> copied._base, copied._version, total._base, total._counter is x._counter
(None, 0, None, False)

# writes to single entries and to a column
>>> x[1].add_(1.0)
>>> point = x[3]
>>> point.shape, point._base is x
((), True)
>>> point.zero_()
>>> x.data[3].item(), x._version
(0.0, 2)
>>> matrix = MiniTensor(np.zeros((2, 2)))
>>> matrix[1, 0].add_(5.0)
>>> matrix[..., 1].add_(7.0)
>>> matrix.data
array([[0.0, 7.0], [5.0, 7.0]])

# a view of a detached tensor
>>> twin = w.detach()
>>> part = twin[0]
>>> part._base is twin, part._counter is w._counter
(True, True)

# a result that is detached
>>> y = w * 2
>>> free = y.detach()
>>> free._base, free.requires_grad, y.requires_grad
(None, False, True)
""")
check.gradients({"a.T[0]": lambda a: a.T[0] * 2, "a[[0, 0, 1], 1]": lambda a: a[[0, 0, 1], 1]}, [(2, 3)], hidden=True)

# Exercise 4


def row_written(a, b):
    y = a * 2
    y[0].mul_(b)
    return y * y


def column_assigned(a, b):
    y = a * 2
    column = y.T[1]
    y[:, 1] = b.sum() * a[:, 0]
    return y * column.sum()


def block_written(a, b):
    y = a * 2
    y[:, 1:].mul_(b[1:])
    return y * y


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


check = Check("copy_slices", points=5)
check.cases("""
>>> base = MiniTensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

# the two cells above have run: they connect CopySlices with the engine
>>> "CopySlices" in take_over.__code__.co_names, callable(setitem)
(True, True)

# forward: a part at two positions
>>> CopySlices.apply([1.0, 2.0, 3.0], [5.0, 6.0], positions=np.array([2, 0])).data
array([6.0, 2.0, 5.0])

# forward: positions are numbered row by row, and a smaller part is broadcast
>>> CopySlices.apply(base, 9.0, positions=np.array([[2, 3]])).data
array([[1.0, 2.0], [9.0, 9.0]])
>>> CopySlices.apply(base, [[5.0], [6.0]], positions=np.array([[0, 1], [2, 3]])).data
array([[5.0, 5.0], [6.0, 6.0]])

# forward: base stays as it is
>>> result = CopySlices.apply(base, 9.0, positions=np.array([1, 2]))
>>> base.data
array([[1.0, 2.0], [3.0, 4.0]])

# forward: a base that is stored column by column
>>> turned = MiniTensor(np.array([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]).T)
>>> CopySlices.apply(turned, 9.0, positions=np.array([1, 2])).data
array([[1.0, 9.0], [9.0, 4.0], [5.0, 6.0]])

# forward: of equal positions the last stays
>>> CopySlices.apply([0.0, 0.0, 0.0], [5.0, 6.0, 7.0], positions=np.array([0, 0, 1])).data
array([6.0, 7.0, 0.0])

# backward: one gradient for base and one for the part; grad stays as it is
>>> x, grad = MiniTensor(np.zeros(3), requires_grad=True), np.array([1.0, 10.0, 100.0])
>>> node = CopySlices.apply(x, np.ones(2), positions=np.array([2, 0])).grad_fn
>>> node.backward(node, grad)
(array([0.0, 10.0, 0.0]), array([100.0, 1.0]))
>>> grad
array([1.0, 10.0, 100.0])

# backward: two nodes keep their values apart
>>> x, part = MiniTensor(np.zeros(3), requires_grad=True), MiniTensor(np.ones(2), requires_grad=True)
>>> first = CopySlices.apply(x, part, positions=np.array([2, 0]))
>>> second = CopySlices.apply(x, part, positions=np.array([0, 1]))
>>> first.backward(np.array([1.0, 10.0, 100.0]))
>>> part.grad.data
array([100.0, 1.0])

# backward: of equal positions the last gets the gradient
>>> x, v = MiniTensor(np.zeros(3), requires_grad=True), MiniTensor([5.0, 6.0, 7.0], requires_grad=True)
>>> CopySlices.apply(x, v, positions=np.array([0, 0, 1])).backward(np.array([1.0, 10.0, 100.0]))
>>> x.grad.data
array([0.0, 0.0, 100.0])
>>> v.grad.data
array([0.0, 1.0, 10.0])

# backward: a part of shape () gets a sum
>>> part = MiniTensor(9.0, requires_grad=True)
>>> CopySlices.apply(base, part, positions=np.array([2, 3])).sum().backward()
>>> part.grad.data
array(2.0)

# backward: a part with two axes
>>> part = MiniTensor(np.ones((2, 2)), requires_grad=True)
>>> y = CopySlices.apply(base, part, positions=np.array([[0, 1], [2, 3]]))
>>> y.backward(np.array([[1.0, 10.0], [100.0, 1000.0]]))
>>> part.grad.data
array([[1.0, 10.0], [100.0, 1000.0]])

# backward: a gradient that is stored column by column
>>> result = CopySlices.apply(base, 9.0, positions=np.array([1, 2]))
>>> (result.T * MiniTensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
>>> base.grad.data
array([[1.0, 0.0], [0.0, 4.0]])

# y[0].mul_(b): the program above
>>> a, b = MiniTensor([1.0, 1.0], requires_grad=True), MiniTensor(5.0, requires_grad=True)
>>> y = a * 2
>>> y[0].mul_(b)
>>> y.sum().backward()
>>> a.grad.data, b.grad.data
(array([10.0, 2.0]), array(2.0))

# y[:, 1] = v, with a view that was made before
>>> y, v = base * 2, MiniTensor([5.0, 6.0], requires_grad=True)
>>> column = y.T[1]
>>> y[:, 1] = v
>>> column.backward(np.array([1.0, 10.0]))
>>> v.grad.data
array([1.0, 10.0])
>>> base.grad.data
array([[0.0, 0.0], [0.0, 0.0]])

# y[[0, 0, 1]] = v
>>> y, v = MiniTensor(np.zeros(3), requires_grad=True) * 1, MiniTensor([5.0, 6.0, 7.0], requires_grad=True)
>>> y[[0, 0, 1]] = v
>>> y.data
array([6.0, 7.0, 0.0])
>>> y.sum().backward()
>>> v.grad.data
array([0.0, 1.0, 1.0])

# take_over refuses a view that was made with recording off: nothing is written
>>> shared = MiniTensor(np.zeros(3))
>>> with no_grad():
...     quiet = shared[:2]
>>> shared._version
0
>>> quiet.add_(MiniTensor([5.0, 6.0], requires_grad=True))
RuntimeError: A view was created in no_grad mode and is being modified*
>>> shared.data
array([0.0, 0.0, 0.0])
>>> shared._version
0

# a view of a leaf that requires grad is refused
>>> base[:1].mul_(2.0)
RuntimeError: a view of a leaf Variable*
""")
check.gradients(
    {"y[0].mul_(b)": row_written, "y[:, 1] = ...": column_assigned, "y[:, 1:].mul_(b)": block_written},
    [(2, 3), (3,)],
)
check.gradients({"filled": filled_in, "a block": block_of_a_view, "picked": picked}, [(2, 3), (3,)], hidden=True)

# Exercise 5


def saves_several(tensor):
    """The result of an operation that saves None, a Python number and an array."""

    class Several(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(None, 3, a)
            return a * 3

    return Several.apply(tensor)


def keys(found):
    """The keys of what fingerprints returned, with names of nodes in place of nodes."""
    return [(node.name(), position) for node, position in found]


def plus_ones(tensor, count):
    """The tensor plus one, and so on."""
    for _ in range(count):
        tensor = tensor + 1
    return tensor


check = Check("fingerprints", points=4)
check.cases("""
>>> x = MiniTensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
>>> w = MiniTensor([[5.0, 6.0]])

# fingerprints: nodes and positions
>>> keys(fingerprints((x * w).exp()))
[("ExpBackward0", 0), ("MulBackward0", 0), ("MulBackward0", 1)]

# fingerprints: the topological order
>>> h = x.tanh()
>>> [name for name, _ in keys(fingerprints(h * h.exp() * h))]
["MulBackward0"] * 4 + ["ExpBackward0", "TanhBackward0"]

# fingerprints: a tensor without a history
>>> fingerprints(w)
{}

# fingerprints: only arrays have one
>>> [position for _, position in fingerprints(saves_several(x))]
[2]

# fingerprints: freed values have none
>>> y = (x * x).sum()
>>> y.backward()
>>> keys(fingerprints(y))
[]

# fingerprints: a value that was written to has one, too
>>> h = x * w
>>> y = h**3
>>> h.mul_(2.0)
>>> keys(fingerprints(y))
[("PowBackward0", 0), ("MulBackward0", 0), ("MulBackward0", 1)]

# nothing is written
>>> before = fingerprints((x * w).exp())
>>> silent_changes(before)
[]

# one array is written to
>>> y = (x * w).exp()
>>> before = fingerprints(y)
>>> w.data[0, 0] = 50.0
>>> silent_changes(before)
["MulBackward0"]

# both arrays of a node are written to
>>> y = x * w
>>> before = fingerprints(y)
>>> w.data[0, 0], x.data[1, 1] = 50.0, -1.0
>>> silent_changes(before)
["MulBackward0", "MulBackward0"]

# three nodes, in the order of before
>>> h = (x * w).tanh()
>>> y = h.exp()
>>> before = fingerprints(y)
>>> x.data[0, 0], h.data[0, 0], y.data[0, 0] = 7.0, -1.0, -1.0
>>> silent_changes(before)
["ExpBackward0", "TanhBackward0", "MulBackward0"]

# a counted write is not silent
>>> h = x * w
>>> y = h.exp() + h**3
>>> before, counter = fingerprints(y), h._counter
>>> h.mul_(2.0)
>>> h._version, h._counter is counter
(1, True)
>>> silent_changes(before)
[]

# a counted write to w, and a silent one to x
>>> y = x * w
>>> before = fingerprints(y)
>>> w.mul_(2.0)
>>> x.data[0, 0] = 5.0
>>> silent_changes(before)
["MulBackward0"]

# a counted write before the note
>>> w.mul_(2.0)
>>> y = x * w
>>> before = fingerprints(y)
>>> w.data[0, 0] = 50.0
>>> silent_changes(before)
["MulBackward0"]

# an array that belongs to no tensor
>>> largest = (x * 2).max()
>>> before = fingerprints(largest)
>>> silent_changes(before)
[]
>>> largest.grad_fn.saved[0][0] = 9.0
>>> silent_changes(before)
["MaxBackward0"]

# all is freed
>>> y = x * x
>>> before = fingerprints(y)
>>> y.sum().backward()
>>> silent_changes(before)
[]

# one node is freed, and another has changed
>>> y = (x * w).exp()
>>> before = fingerprints(y)
>>> w.data[0, 0] = 9.0
>>> y.grad_fn.release()
>>> silent_changes(before)
["MulBackward0"]

# later fingerprints leave the earlier ones alone
>>> y, z = x * w, x.exp()
>>> first, second = fingerprints(y), fingerprints(z)
>>> w.data[0, 0] = 8.0
>>> silent_changes(first), silent_changes(second)
(["MulBackward0"], [])

# one entry of 2000
>>> y = MiniTensor(np.zeros(2000), requires_grad=True).exp()
>>> before = fingerprints(y)
>>> y.data[1000] = 5.0
>>> silent_changes(before)
["ExpBackward0"]

# two entries are swapped
>>> y = x * w
>>> before = fingerprints(y)
>>> w.data[...] = [[6.0, 5.0]]
>>> silent_changes(before)
["MulBackward0"]

# a tiny change
>>> w.data[0, 0] = 1e-9
>>> y = x * w
>>> before = fingerprints(y)
>>> w.data[0, 0] = 2e-9
>>> silent_changes(before)
["MulBackward0"]

# a NaN that is still there
>>> x.data[0, 0] = np.nan
>>> y = x * w
>>> before = fingerprints(y)
>>> silent_changes(before)
[]
""")
check.hidden("""
# a leaf
>>> len(fingerprints(x))
0

# freed values
>>> y = (x * x).tanh() * 1
>>> before = fingerprints(y)
>>> y.sum().backward()
>>> silent_changes(before), len(fingerprints(y))
([], 0)

# an array that two nodes have saved
>>> q = x.exp()
>>> y = (q * 2).log()
>>> before = fingerprints(y)
>>> q.data[0, 1] = 0.5
>>> sorted(silent_changes(before))
["ExpBackward0", "MulBackward0"]

# a deep graph
>>> chain = plus_ones(x, 3000)
>>> y = chain * chain
>>> before = fingerprints(y)
>>> chain.data[0, 0] = 0.25
>>> silent_changes(before)
["MulBackward0", "MulBackward0"]
""")
