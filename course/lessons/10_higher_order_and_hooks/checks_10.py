"""What the exercises of lesson 10 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import numpy as np

from autograder.checks.cases import Check


def arrived(x):
    """The array of x.grad, or None."""
    return None if x.grad is None else x.grad.data


# Exercise 1


def leads_to(node):
    """For each value of reconnected(node): whether it requires grad, and where it leads: to the node of an input, with
    this number, to "output", or nowhere, None. A value that is no tensor stays as it is.
    """
    places = {source: number for number, (source, _) in reversed(list(enumerate(node.next_functions)))}
    places |= {node: "output", None: None}
    return [
        (value.requires_grad, places.get(value.grad_fn, "somewhere else")) if isinstance(value, MiniTensor) else value
        for value in reconnected(node)
    ]


def saves_four(a, w):
    """The node of an operation that saves its input 1, None, a part of its input 1, and sign(a)."""

    class SavesFour(Function):
        @staticmethod
        def forward(ctx, a, w, *unused):
            sign = np.sign(a)
            ctx.save_for_backward(w, None, w[1:], sign)
            return w * sign

    return SavesFour.apply(a, w, a, w).grad_fn


check = Check("reconnected", points=4)
check.cases("""
>>> w, data = MiniTensor([1.0, -2.0], requires_grad=True), MiniTensor([3.0, 4.0])
>>> node = (w * data).grad_fn

# a new tensor for each saved value, with the same numbers
>>> tensors = reconnected(node)
>>> type(tensors).__name__, [type(tensor).__name__ for tensor in tensors]
("tuple", ["MiniTensor", "MiniTensor"])
>>> tensors[0].data
array([1.0, -2.0])
>>> tensors[1].data
array([3.0, 4.0])

# a leaf as input 0 leads to the node at the end of its edge; data that needs no gradient is a constant
>>> leads_to(node)
[(True, 0), (False, None)]

# an input that is a result leads to the node that made it
>>> made = w * 2.0
>>> leads_to((made * data).grad_fn)
[(True, 0), (False, None)]

# a saved output leads to its own node
>>> leads_to(w.exp().grad_fn)
[(True, "output")]

# input 1, None, a part of an input, and a sign
>>> leads_to(saves_four(data, w))
[(True, 1), None, (False, None), (False, None)]

# each tensor has the counter of its note
>>> tensors = reconnected(node)
>>> [tensor._counter is other._counter for tensor, other in zip(tensors, [w, data])]
[True, True]

# the node is not changed
>>> tensors = reconnected(node)
>>> [array.tolist() for array in node.saved_tensors]
[[1.0, -2.0], [3.0, 4.0]]
>>> [note.source for note in node.notes]
[0, 1]
""")
check.hidden("""
# other nodes
>>> leads_to((data / w).grad_fn)
[(False, None), (True, 1)]
>>> inner = w * 2.0
>>> leads_to((inner / inner.detach()).grad_fn)
[(True, 0), (False, None)]
>>> leads_to((w + 1.0).grad_fn)
[]

# a gradient of a new tensor reaches the leaf
>>> inner = w * 2.0
>>> tensors = reconnected((inner / inner.detach()).grad_fn)
>>> tensors[0].backward(np.array([5.0, 7.0]), retain_graph=True)
>>> arrived(w)
array([10.0, 14.0])

# a rule on MiniTensors
>>> x = MiniTensor(2.0, requires_grad=True)
>>> node = (x**3).grad_fn
>>> slope = Pow.backward(AsTensors(node), MiniTensor(1.0))
>>> slope.item(), slope.requires_grad
(12.0, True)
>>> slope.backward()
>>> arrived(x)
12.0
""")

# Exercise 2


def told(create_graph):
    """What a rule finds in a backward: whether recording is on, and the type of the gradient that it gets."""
    seen = []

    class Tells(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1.0

        @staticmethod
        def backward(ctx, grad):
            seen.append((is_grad_enabled(), type(grad).__name__))
            return grad

    Tells.apply(MiniTensor([0.5, 1.0], requires_grad=True)).sum().backward(create_graph=create_graph)
    return seen


def without_share(*inputs):
    """The sum of the inputs, by an operation whose rule returns None for the first input and grad for all others."""

    class SendsNone(Function):
        @staticmethod
        def forward(ctx, *arrays):
            return sum(arrays[1:], arrays[0] * 1.0)

        @staticmethod
        def backward(ctx, grad):
            return None, *[grad] * (len(inputs) - 1)

    return SendsNone.apply(*inputs)


def entries(found, nodes):
    """The gradient of each node in a dict, as a list; None if it is not there."""
    return [found[node].data.tolist() if node in found else None for node in nodes]


check = Check("walk", points=7)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> x, w = MiniTensor([2.0, 3.0], requires_grad=True), MiniTensor([1.0, 2.0], requires_grad=True)

# the new `backward`, of the cell between your answer and this check, calls your walk
>>> x = MiniTensor(1.0, requires_grad=True)
>>> (x * 10.0).backward(create_graph=False)
>>> arrived(x)
10.0

# one operation after the other
>>> x = MiniTensor(1.0, requires_grad=True)
>>> (x * 10.0 * 10.0).backward()
>>> arrived(x)
100.0

# two paths to one node
>>> x = MiniTensor(1.0, requires_grad=True)
>>> (x * 10.0 + x * 5.0).backward()
>>> arrived(x)
15.0

# one array on its way to two nodes
>>> (x + w + x).backward(np.ones(2))
>>> arrived(x)
array([2.0, 2.0])
>>> arrived(w)
array([1.0, 1.0])

# the gradient of a broadcast input has the shape of the input
>>> x = MiniTensor(2.0, requires_grad=True)
>>> (x * [1.0, 10.0]).sum().backward()
>>> arrived(x)
11.0

# a result that asked for its gradient
>>> hidden = x * w
>>> hidden.retain_grad()
>>> (hidden * hidden).sum().backward()
>>> arrived(hidden)
array([4.0, 12.0])

# retain_graph=True: a second backward adds the same gradients again
>>> loss = (x * w).sum()
>>> loss.backward(retain_graph=True)
>>> loss.backward()
>>> arrived(x)
array([2.0, 4.0])

# retain_graph=False: each node is released when its rule has run
>>> loss = (x * w).sum()
>>> loss.backward(retain_graph=False)
>>> loss.backward()
RuntimeError: Trying to backward*

# retain_graph=False with create_graph=True: the same
>>> loss = (x * w).sum()
>>> loss.backward(retain_graph=False, create_graph=True)
>>> loss.backward()
RuntimeError: Trying to backward*

# a share of None is not sent; the next one is
>>> without_share(x * 1.0, x).sum().backward()
>>> arrived(x)
array([1.0, 1.0])

# a share of None, beside another path
>>> (without_share(x) + x * 3.0).sum().backward()
>>> (x * 3.0 + without_share(x)).sum().backward()
>>> arrived(x)
array([6.0, 6.0])

# hooks see the complete gradient, once, and what they return goes on
>>> seen, hidden = [], x * 3.0
>>> hidden.register_hook(lambda grad: seen.append(grad.data.tolist()))
>>> hidden.register_hook(lambda grad: grad * 10.0)
>>> x.register_hook(lambda grad: seen.append(grad.data.tolist()))
>>> (hidden * [1.0, 2.0] + hidden).sum().backward()
>>> seen
[[2.0, 3.0], [60.0, 90.0]]
>>> arrived(x)
array([60.0, 90.0])

# what is retained has gone through the hooks
>>> hidden = x * 3.0
>>> hidden.retain_grad()
>>> hidden.register_hook(lambda grad: grad * 10.0)
>>> hidden.sum().backward()
>>> arrived(hidden)
array([10.0, 10.0])

# what is found has gone through the hooks
>>> hidden = x * 3.0
>>> hidden.register_hook(lambda grad: grad * 10.0)
>>> found = walk_back(hidden.sum().grad_fn, MiniTensor(1.0), False, False, [hidden.grad_fn])
>>> entries(found, [hidden.grad_fn])
[[10.0, 10.0]]

# create_graph=False: rules run on arrays, with recording off
>>> told(create_graph=False)
[(False, "ndarray")]
>>> is_grad_enabled()
True

# create_graph=True: rules run on MiniTensors, with recording on
>>> told(create_graph=True)
[(True, "MiniTensor")]

# create_graph=True, called within no_grad
>>> loss = (x * x).sum()
>>> with no_grad():
...     loss.backward(create_graph=True)
>>> x.grad.requires_grad, is_grad_enabled()
(True, True)

# the gradient of a gradient
>>> (x**3).sum().backward(create_graph=True)
>>> first, x.grad = x.grad, None
>>> first.data
array([12.0, 27.0])
>>> first.requires_grad
True
>>> first.backward(np.array([1.0, 10.0]))
>>> arrived(x)
array([12.0, 180.0])
>>> x.grad.requires_grad
False

# a wanted node, which leads to no other: its complete gradient, and no .grad of a leaf
>>> hidden = x * w
>>> found = walk_back((hidden * hidden).sum().grad_fn, MiniTensor(1.0), True, False, [hidden.grad_fn])
>>> len(found), entries(found, [hidden.grad_fn])
(1, [[4.0, 12.0]])
>>> x.grad, w.grad
(None, None)

# a gradient in the result is a MiniTensor, without a history
>>> hidden = x * w
>>> found = walk_back((hidden * hidden).sum().grad_fn, MiniTensor(1.0), True, False, [hidden.grad_fn])
>>> [(type(gradient).__name__, gradient.requires_grad) for gradient in found.values()]
[("MiniTensor", False)]

# a gradient in the result with create_graph is a MiniTensor, with a history
>>> hidden = x * w
>>> found = walk_back((hidden * hidden).sum().grad_fn, MiniTensor(1.0), True, True, [hidden.grad_fn])
>>> [(type(gradient).__name__, gradient.requires_grad) for gradient in found.values()]
[("MiniTensor", True)]

# the gradient of a leaf in the result with create_graph is a MiniTensor, with a history
>>> found = walk_back((x**3).sum().grad_fn, MiniTensor(1.0), True, True, [edge_to(x)[0]])
>>> [(type(gradient).__name__, gradient.requires_grad) for gradient in found.values()]
[("MiniTensor", True)]

# three wanted nodes: two leaves, and a result that leads to them
>>> hidden = x * w
>>> nodes = [edge_to(x)[0], hidden.grad_fn, edge_to(w)[0]]
>>> found = walk_back((hidden * hidden).sum().grad_fn, MiniTensor(1.0), False, False, nodes)
>>> entries(found, nodes)
[[4.0, 24.0], [4.0, 12.0], [8.0, 36.0]]
>>> x.grad, w.grad
(None, None)

# no wanted nodes: an empty dict
>>> walk_back((x * w).sum().grad_fn, MiniTensor(1.0), False, False)
{}

# a node that does not work keeps the gradient of a result that asked for it
>>> hidden = x * w
>>> hidden.retain_grad()
>>> found = walk_back((hidden * hidden).sum().grad_fn, MiniTensor(1.0), False, False, [hidden.grad_fn])
>>> arrived(hidden)
array([4.0, 12.0])

# a node that does not work is not released
>>> hidden = x * w
>>> found = walk_back((hidden * hidden).sum().grad_fn, MiniTensor(1.0), False, False, [hidden.grad_fn])
>>> hidden.sum().backward()
>>> arrived(x)
array([1.0, 2.0])

# with wanted nodes, the ones that work are released, and no others
>>> hidden = x * w
>>> loss = (hidden * hidden).sum()
>>> square = loss.grad_fn.next_functions[0][0]
>>> found = walk_back(loss.grad_fn, MiniTensor(1.0), False, False, [hidden.grad_fn])
>>> len(hidden.grad_fn.saved_tensors)
2
>>> square.saved_tensors
RuntimeError: Trying to backward*
""")
check.gradients(
    {
        "(a @ b).tanh() * a.sum()": lambda a, b: (a @ b).tanh() * a.sum(),
        "a value with many uses": lambda a, b: (a * a + a) * (a * b.T) + a[0],
        "a.sum(dim=1) * b.mean()": lambda a, b: a.sum(dim=1) * b.mean(),
    },
    [(2, 3), (3, 2)],
)
check.hidden("""
# create_graph=True without retain_graph
>>> u, v = MiniTensor([1.0, 2.0], requires_grad=True), MiniTensor([0.5, -1.0], requires_grad=True)
>>> product = u * v
>>> loss = (product.exp() + product).sum()
>>> product.retain_grad()
>>> loss.backward(create_graph=True, retain_graph=False)
>>> arrived(product)
np.exp([0.5, -2.0]) + 1
>>> product.grad.requires_grad, u.grad.requires_grad
(True, True)
>>> product.grad_fn.saved_tensors
RuntimeError: Trying to backward*

# second derivatives
>>> u, v = MiniTensor([1.0, 2.0], requires_grad=True), MiniTensor([0.5, -1.0], requires_grad=True)
>>> loss = ((u * v).tanh() / (u + 2)).sum()
>>> nodes = [edge_to(u)[0], edge_to(v)[0]]
>>> found = walk_back(loss.grad_fn, MiniTensor(1.0), True, True, nodes)
>>> len(found), u.grad
(2, None)
>>> (found[nodes[0]] * MiniTensor([0.3, -0.7])).sum().backward()
>>> arrived(u)
array([-0.03411720380545, -0.00893211416024])
>>> arrived(v)
array([0.01608674979522, 0.04149459342484])

# a write between two derivatives
>>> (x**3).sum().backward(create_graph=True)
>>> first = x.grad
>>> with no_grad():
...     x.mul_(2.0)
>>> first.sum().backward()
RuntimeError: *modified by an inplace operation*

# a rule on arrays
>>> class OnArrays(Function):
...     @staticmethod
...     def forward(ctx, a):
...         ctx.save_for_backward(np.cos(a))
...         return np.sin(a)
...
...     @staticmethod
...     def backward(ctx, grad):
...         return np.multiply(grad, ctx.saved_tensors[0])
>>> OnArrays.apply(x).sum().backward()
>>> arrived(x)
np.cos([2.0, 3.0])
""")
check.gradients(
    {
        "written in place": lambda a, b: (a * b.T).mul_(b.sum()).add_(a),
        "max, mean, index, softmax": lambda a, b: a[[0, 0]].mean() * a.max() + b.T.softmax(1) * a,
    },
    [(2, 3), (3, 2)],
    hidden=True,
)

# Exercise 3


def visits_of_hvp(size):
    """How often hvp visits a node of its function, for x with that many entries."""
    seen = []

    def function(x):
        y = x * 1.0
        y.register_hook(lambda grad: seen.append(1))
        return (y**3).sum()

    hvp(function, MiniTensor(np.ones(size), requires_grad=True), np.ones(size))
    return len(seen)


check = Check("grad", points=7)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> x, w = MiniTensor([1.0, 2.0], requires_grad=True), MiniTensor([3.0, -1.0], requires_grad=True)

# the gradients of a leaf and of a result, in the order of the inputs
>>> hidden = x * w
>>> found = grad((hidden * hidden).sum(), [w, hidden])
>>> type(found).__name__, [type(gradient).__name__ for gradient in found]
("tuple", ["MiniTensor", "MiniTensor"])
>>> [gradient.data.tolist() for gradient in found]
[[6.0, -8.0], [6.0, -4.0]]

# the gradient of a result alone
>>> hidden = x * w
>>> grad((hidden * hidden).sum(), hidden)[0].data
array([6.0, -4.0])

# no .grad is changed, and without create_graph a gradient has no history
>>> gradients = grad((x * w).sum(), [x])
>>> x.grad, w.grad, gradients[0].requires_grad
(None, None, False)

# no .grad is changed, with allow_unused=True
>>> found = grad((x * w).sum(), [x], allow_unused=True)
>>> x.grad, w.grad
(None, None)

# a single MiniTensor counts as a list of one
>>> [gradient.data.tolist() for gradient in grad((x * w).sum(), x)]
[[3.0, -1.0]]

# retain_graph=True makes no history; then a call without it
>>> loss = (x * w).sum()
>>> found = grad(loss, x, retain_graph=True)
>>> [gradient.requires_grad for gradient in found]
[False]
>>> grad(loss, x)[0].data
array([3.0, -1.0])
>>> grad(loss, x)
RuntimeError: Trying to backward*

# create_graph=True keeps the graph
>>> loss = (x**3).sum()
>>> found = grad(loss, x, create_graph=True)
>>> grad(loss, x)[0].data
array([3.0, 12.0])

# create_graph=True with retain_graph=False frees it, and the gradient has a history
>>> loss = (x**3).sum()
>>> found = grad(loss, x, retain_graph=False, create_graph=True)
>>> [gradient.requires_grad for gradient in found]
[True]
>>> grad(loss, x)
RuntimeError: Trying to backward*

# three derivatives of x**3 at 3
>>> cube = MiniTensor(3.0, requires_grad=True)
>>> (once,) = grad(cube**3, cube, create_graph=True)
>>> once.item(), once.requires_grad
(27.0, True)
>>> (twice,) = grad(once, cube, create_graph=True)
>>> twice.item(), twice.requires_grad
(18.0, True)
>>> grad(twice, cube)[0].item()
6.0

# an input that was not used
>>> other = MiniTensor([1.0], requires_grad=True)
>>> grad((x * w).sum(), [x, other])
RuntimeError: The differentiated Tensor at index 1 appears to not have been used in the graph*

# allow_unused=True
>>> other = MiniTensor([1.0], requires_grad=True)
>>> found = grad((x * w).sum(), [x, other, w], allow_unused=True)
>>> [None if gradient is None else gradient.data.tolist() for gradient in found]
[[3.0, -1.0], None, [1.0, 2.0]]

# grad_outputs is the cotangent
>>> grad(x**3, x, grad_outputs=MiniTensor([0.5, 2.0]))[0].data
array([1.5, 24.0])

# with create_graph the gradient depends on grad_outputs, too
>>> v = MiniTensor([0.5, 2.0], requires_grad=True)
>>> (weighted,) = grad(x**3, x, grad_outputs=v, create_graph=True)
>>> grad(weighted, v, grad_outputs=np.array([1.0, 100.0]))[0].data
array([3.0, 1200.0])

# two numbers without grad_outputs: PyTorch's error
>>> grad(x**3, x)
RuntimeError: grad can be implicitly created only for scalar outputs

# a leaf with respect to itself
>>> cube = MiniTensor(3.0, requires_grad=True)
>>> grad(cube, cube)[0].item()
1.0

# hvp: H is [[6, 0], [0, 12]], v is [1, 10]
>>> product = hvp(lambda x: (x**3).sum(), x, [1.0, 10.0])
>>> type(product).__name__
"MiniTensor"
>>> product.data
array([6.0, 120.0])

# hvp: H is [[4, 2], [2, 0]], v is [1, 0]
>>> hvp(lambda x: x[0] * x[0] * x[1], x, [1.0, 0.0]).data
array([4.0, 2.0])

# hvp: v is a MiniTensor
>>> hvp(lambda x: (x**3).sum(), x, MiniTensor([1.0, 10.0])).data
array([6.0, 120.0])

# hvp: x and v are matrices
>>> wide = MiniTensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
>>> hvp(lambda a: (a**3).sum(), wide, np.ones((2, 3))).data
array([[6.0, 12.0, 18.0], [24.0, 30.0, 36.0]])

# hvp: right to the last digits, as difference quotients are not
>>> hvp(lambda x: x.exp().sum(), x, [1.0, 10.0]).data
np.abs(got - np.exp([1.0, 2.0]) * [1.0, 10.0]).max() < 1e-12

# hvp: x.grad and x stay as they are
>>> x.grad = MiniTensor([7.0, 7.0])
>>> product = hvp(lambda x: (x**3).sum(), x, [1.0, 10.0])
>>> arrived(x)
array([7.0, 7.0])
>>> x.data
array([1.0, 2.0])

# hvp: visits to a node of the function, for 9 entries
>>> visits_of_hvp(9)
got < 9

# hvp: zeros for a linear function
>>> product = hvp(lambda x: (x * [5.0, 7.0]).sum(), x, np.ones(2))
>>> type(product).__name__
"MiniTensor"
>>> product.data
array([0.0, 0.0])

# hvp: zeros for a linear function, v is a MiniTensor
>>> hvp(lambda x: (x * [5.0, 7.0]).sum(), x, MiniTensor([1.0, 1.0])).data
array([0.0, 0.0])

# hvp: zeros where the gradient depends on another tensor, and not on x
>>> product = hvp(lambda x: (x * w).sum(), x, [1.0, 1.0])
>>> type(product).__name__
"MiniTensor"
>>> product.data
array([0.0, 0.0])

# hvp: raises what the function raises
>>> hvp(lambda x: grad(x * x, x)[0].sum(), x, [1.0, 1.0])
RuntimeError: grad can be implicitly created only for scalar outputs
""")
check.hidden("""
# errors of grad
>>> grad((x * w).sum(), [])
RuntimeError: `inputs` argument to `grad()` cannot be empty.
>>> grad((x * w).sum(), MiniTensor([1.0]))
RuntimeError: One of the differentiated Tensors does not require grad
>>> grad((x * w).sum(), [x, MiniTensor([1.0])], allow_unused=True)
RuntimeError: One of the differentiated Tensors does not require grad

# other inputs
>>> [gradient.data.tolist() for gradient in grad((x * w).sum(), (x, x, w))]
[[3.0, -1.0], [3.0, -1.0], [1.0, 2.0]]

# what lies behind the inputs
>>> hidden = x * w
>>> found = grad((hidden * hidden).sum(), hidden)
>>> hidden.sum().backward()
>>> arrived(x)
array([3.0, -1.0])

# hvp of other functions
>>> matrix = np.array([[2.0, -1.0, 0.5], [0.3, 1.0, 4.0], [-2.0, 0.7, 3.0]])
>>> point = MiniTensor([0.5, -1.0, 2.0], requires_grad=True)
>>> point.grad = MiniTensor(np.ones(3))
>>> hvp(lambda x: (x @ (x @ matrix)) * 0.5 + (x**4).sum(), point, MiniTensor([1.0, -2.0, 3.0])).data
array([3.45, -19.3, 147.55])
>>> hvp(lambda x: (x @ (x @ matrix)) * 0.5 + (x**4).sum(), point, [1.0, -2.0, 3.0]).data
array([3.45, -19.3, 147.55])
>>> arrived(point)
array([1.0, 1.0, 1.0])
>>> point.requires_grad, point.is_leaf
(True, True)

# hvp of matrices
>>> wide = MiniTensor([[1.0, 2.0], [3.0, -4.0]], requires_grad=True)
>>> hvp(lambda a: (a.T @ a)[0, 1], wide, np.ones((2, 2))).data
np.ones((2, 2))
>>> hvp(lambda a: (a * 2).sum() + 0 * w.sum(), wide, np.ones((2, 2))).data
np.zeros((2, 2))
""")

# Exercise 4


def has_no_step(function, x):
    """Whether newton_step finds none: it raises NumPy's error or, in a browser tab, where NumPy has none, gives NaN."""
    try:
        return bool(np.isnan(newton_step(function, x)).all())
    except np.linalg.LinAlgError:
        return True


check = Check("newton", points=3)
check.cases("""
# a parabola: one step leads to its lowest point
>>> step = newton_step(lambda x: ((x - [1.0, 2.0]) ** 2).sum(), np.array([5.0, -7.0]))
>>> type(step).__name__
"ndarray"
>>> step
array([1.0, 2.0])

# H is [[2, 1], [1, 4]]
>>> newton_step(lambda x: x[0] ** 2 + x[0] * x[1] + 2 * x[1] ** 2 - 7 * x[0], np.array([1.0, 3.0]))
array([4.0, -1.0])

# the sum of x**4: a third of the way
>>> newton_step(lambda x: (x**4).sum(), np.array([3.0, -1.5]))
array([2.0, -1.0])

# right to the last digits, as difference quotients are not
>>> newton_step(lambda x: (x**4).sum(), np.array([3.0, -1.5]))
np.abs(got - [2.0, -1.0]).max() < 1e-12

# a hill: the step leads to its top
>>> newton_step(lambda x: -((x - 3.0) ** 2).sum(), np.array([1.0]))
array([3.0])

# x stays as it is
>>> start = np.array([5.0, -7.0])
>>> step = newton_step(lambda x: (x**2).sum(), start)
>>> start
array([5.0, -7.0])

# a plane has no lowest point
>>> has_no_step(lambda x: (x * [5.0, 7.0]).sum(), np.array([1.0, 2.0]))
True
""")
check.hidden("""
# three numbers
>>> matrix = np.array([[4.0, 1.0, -1.0], [0.0, 3.0, 0.5], [1.0, 0.0, 5.0]])
>>> newton_step(lambda x: (x @ (x @ matrix)) - (x * [4.0, 14.0, 63.0]).sum(), np.array([0.5, -2.0, 3.0]))
np.linalg.solve([[8.0, 1.0, 0.0], [1.0, 6.0, 0.5], [0.0, 0.5, 10.0]], [4.0, 14.0, 63.0])

# Rosenbrock's valley
>>> newton_step(lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, np.array([-1.2, 1.0]))
np.array([-1.2, 1.0]) - np.linalg.solve([[1330.0, 480.0], [480.0, 200.0]], [-215.6, -88.0])
""")

# Exercise 5


def with_gradients(*gradients):
    """Parameters with these gradients; None is one without a gradient."""
    parameters = [MiniTensor(np.zeros(np.shape(gradient or 0.0)), requires_grad=True) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = None if gradient is None else MiniTensor(gradient)
    return parameters


check = Check("clip", points=5)
check.cases("""
>>> switches.recording, switches.inference = True, False

# the norm before clipping, of all entries of all gradients
>>> length = clip_grad_norm_(with_gradients([[2.0, 1.0], [-2.0, 0.0]], None, [-4.0]), 2.0)
>>> type(length).__name__, length.shape
("MiniTensor", ())
>>> length.item()
5.0

# all gradients are multiplied by max_norm / (norm + 1e-6)
>>> a, none, b = parameters = with_gradients([[2.0, 1.0], [-2.0, 0.0]], None, [-4.0])
>>> norm = clip_grad_norm_(parameters, 2.0)
>>> a.grad.data
array([[2.0, 1.0], [-2.0, 0.0]]) * 2 / (5 + 1e-6)
>>> b.grad.data
array([-4.0]) * 2 / (5 + 1e-6)
>>> none.grad
None

# p.grad stays the same object, and one write is counted
>>> parameters = with_gradients([2.0, -1.0])
>>> before = parameters[0].grad
>>> norm = clip_grad_norm_(parameters, 2.0)
>>> parameters[0].grad is before, before._version
(True, 1)

# short gradients are multiplied by 1
>>> (p,) = with_gradients([0.3, 0.4])
>>> norm = clip_grad_norm_([p], 10.0)
>>> p.grad.data
array([0.3, 0.4])
>>> p.grad._version
1

# parameters may be a generator, or one MiniTensor
>>> parameters = with_gradients([3.0], [4.0])
>>> clip_grad_norm_((p for p in parameters), 1.0).item()
5.0
>>> [p.grad.item() for p in parameters]
[3 / (5 + 1e-6), 4 / (5 + 1e-6)]
>>> clip_grad_norm_(with_gradients([3.0, -4.0])[0], 1.0).item()
5.0

# norms of order inf and 1
>>> (p,) = with_gradients([[3.0, -4.0], [-12.0, 1.0]])
>>> clip_grad_norm_(p, 100.0, norm_type=math.inf).item()
12.0
>>> clip_grad_norm_(p, 100.0, norm_type=1.0).item()
20.0

# no gradients: the norm of order 2 is 0
>>> clip_grad_norm_(with_gradients(None), 1.0).item()
0.0

# no gradients: the norm of order inf is 0
>>> clip_grad_norm_(with_gradients(None), 1.0, norm_type=math.inf).item()
0.0

# error_if_nonfinite and an infinite norm: an error, and nothing changes
>>> (p,) = with_gradients([math.inf, 1.0])
>>> clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite*
>>> p.grad.data
array([inf, 1.0])

# a NaN makes the norm NaN, and then all gradients
>>> parameters = with_gradients([math.nan, 1.0], [2.0])
>>> clip_grad_norm_(parameters, 1.0).item()
nan
>>> [p.grad.data.tolist() for p in parameters]
[[nan, nan], [nan]]

# a NaN in the second gradient makes the norm of order inf NaN
>>> clip_grad_norm_(with_gradients([2.0], [math.nan]), 1.0, norm_type=math.inf).item()
nan

# nothing is recorded
>>> x = MiniTensor([1.0, 2.0], requires_grad=True)
>>> (x**3).sum().backward(create_graph=True)
>>> node = x.grad.grad_fn
>>> norm = clip_grad_norm_(x, 1.0)
>>> x.grad.grad_fn is node, x.grad._version
(True, 1)
""")
check.hidden("""
# clipping to norms of other orders
>>> (p,) = with_gradients([3.0, -4.0, 12.0])
>>> norm = clip_grad_norm_(p, 6.0, norm_type=math.inf)
>>> p.grad.data
array([3.0, -4.0, 12.0]) * 6 / (12 + 1e-6)
>>> norm = clip_grad_norm_(p, 3.0, norm_type=3)
>>> (np.abs(p.grad.data) ** 3).sum() ** (1 / 3)
np.abs(got - 3.0) < 1e-5

# gradients that are not finite
>>> (p,) = with_gradients([math.inf, 1.0])
>>> norm = clip_grad_norm_(p, 1.0)
>>> p.grad.data
array([nan, 0.0])
>>> clip_grad_norm_(with_gradients([math.nan]), 1.0, math.inf, error_if_nonfinite=True)
RuntimeError: The total norm of order inf for gradients*

# no parameters
>>> clip_grad_norm_([], 1.0).item()
0.0
""")

# Exercise 6


def softmax_of(array, dim):
    """exp(array), divided by its sum along dim."""
    raised = np.exp(array - np.max(array, axis=dim, keepdims=True))
    return raised / raised.sum(axis=dim, keepdims=True)


def log_of_sum(array, dim):
    """log(sum(exp(array))) along dim."""
    array = np.array(array)
    largest = array.max(axis=dim)
    return largest + np.log(np.exp(array - np.expand_dims(largest, dim)).sum(axis=dim))


def vector_for(array):
    """A vector for the Hessian, of the shape of the array."""
    return np.cos(np.arange(np.size(array))).reshape(np.shape(array))


def curvature(array, dim):
    """Hessian of the sum of logsumexp along dim, times the vector, as the engine finds it."""
    return hvp(lambda a: a.logsumexp(dim=dim).sum(), MiniTensor(array, requires_grad=True), vector_for(array)).data


def right_curvature(array, dim):
    """The same by its formula."""
    s, v = softmax_of(array, dim), vector_for(array)
    return s * (v - (s * v).sum(axis=dim, keepdims=True))


small = np.array([[1.0, 2.0, -0.5], [0.0, 0.3, 0.1]])
deep = np.sin(np.arange(12.0)).reshape(2, 3, 2)
check = Check("logsumexp", points=4)
check.cases("""
>>> switches.recording, switches.inference = True, False

# shape and value along dim 1
>>> MiniTensor([[1.0, 2.0]]).logsumexp(dim=1).data
log_of_sum([[1.0, 2.0]], 1)

# large numbers, and small ones beside them
>>> MiniTensor([[1000.0, 999.0], [0.0, 0.5]]).logsumexp(dim=1).data
log_of_sum([[1000.0, 999.0], [0.0, 0.5]], 1)
>>> MiniTensor([[1000.0, 0.0], [1000.0, -1000.0]]).logsumexp(dim=0).data
log_of_sum([[1000.0, 0.0], [1000.0, -1000.0]], 0)

# the gradient along dim 1 and 0
>>> a = MiniTensor(small, requires_grad=True)
>>> grad(a.logsumexp(dim=1).sum(), a)[0].data
softmax_of(small, 1)
>>> grad(a.logsumexp(dim=0).sum(), a)[0].data
softmax_of(small, 0)

# the gradient along the last dim, counted from the end
>>> a = MiniTensor(small, requires_grad=True)
>>> grad(a.logsumexp(dim=-1).sum(), a)[0].data
softmax_of(small, 1)

# the gradient along the middle of three dims
>>> a = MiniTensor(deep, requires_grad=True)
>>> grad(a.logsumexp(dim=1).sum(), a)[0].data
softmax_of(deep, 1)

# the rule gives no MiniTensor if it gets an array
>>> result = MiniTensor(small, requires_grad=True).logsumexp(dim=1)
>>> [type(share).__name__ for share in shares_of(result.grad_fn, np.ones(2)) if isinstance(share, MiniTensor)]
[]

# two calls with other dims, and then the gradient of the first
>>> a = MiniTensor(small, requires_grad=True)
>>> one = a.logsumexp(dim=1).sum()
>>> last = a.logsumexp(dim=0)
>>> grad(one, a)[0].data
softmax_of(small, 1)

# with create_graph the gradient has a history
>>> a = MiniTensor(small, requires_grad=True)
>>> grad(a.logsumexp(dim=1).sum(), a, create_graph=True)[0].requires_grad
True

# your hvp without logsumexp: if it is wrong, begin with exercises 1 to 3
>>> x = MiniTensor([0.5, -1.0], requires_grad=True)
>>> hvp(lambda x: (x * x + x.exp()).sum(), x, [1.0, 10.0]).data
(2 + np.exp([0.5, -1.0])) * [1.0, 10.0]

# second derivatives: the Hessian times a vector
>>> curvature(small, 1)
right_curvature(small, 1)

# second derivatives for large numbers
>>> curvature([[1000.0, 999.0], [0.0, 0.5]], 1)
right_curvature([[1000.0, 999.0], [0.0, 0.5]], 1)
""")
check.gradients(
    {
        "a.logsumexp(dim=1)": lambda a: a.logsumexp(dim=1),
        "a.logsumexp(dim=0)": lambda a: a.logsumexp(dim=0),
    },
    [[(2, 3)], [(4, 1)], [(1, 3)], [(2, 3, 2)]],
)
check.hidden("""
# second derivatives along other dims
>>> curvature(deep, 0)
right_curvature(deep, 0)
>>> curvature(deep, 1)
right_curvature(deep, 1)
>>> curvature(deep, -1)
right_curvature(deep, -1)
>>> curvature([[-5000.0], [-5001.0]], 0)
right_curvature([[-5000.0], [-5001.0]], 0)

# a third derivative
>>> x = MiniTensor([0.5, 1.0], requires_grad=True)
>>> value = x.logsumexp(dim=0)
>>> for _ in range(3):
...     value = grad(value, x, create_graph=True)[0][0]
>>> p = np.exp(0.5) / (np.exp(0.5) + np.exp(1.0))
>>> value.item() / (p * (1 - p) * (1 - 2 * p))
1.0
""")
check.gradients(
    {
        "dim 0": lambda a: a.logsumexp(dim=0),
        "the middle of three": lambda a: a.logsumexp(dim=1) * 2,
    },
    [(2, 3, 2)],
    hidden=True,
)
