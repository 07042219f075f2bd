"""What the exercises of lesson 05 must do, case by case; for `backward`, on random inputs too.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import gc
import weakref

import numpy as np

from autograder.checks.cases import Check
from autograder.checks.steps import Calls

# Exercise 1

FIRST = np.array([[1.0, -2.0], [0.5, 3.0]])
SECOND = np.array([[4.0, 1.0], [2.0, -1.0]])
ARRIVED = np.array([[1.0, 10.0], [-2.0, 0.5]])
SLOPES = 1 - np.tanh(FIRST) ** 2


def one_array(shares):
    """What a rule returns for one input: an array, or a tuple with one."""
    return shares[0] if isinstance(shares, tuple) and len(shares) == 1 else shares


check = Check("rules_as_classes", points=3)
check.cases("""
>>> a, b, grad = FIRST.copy(), SECOND.copy(), ARRIVED.copy()

# Sub.forward
>>> Sub.forward(Sub(), a, b)
FIRST - SECOND

# Sub saves nothing: its rule needs no array
>>> ctx = Sub()
>>> difference = Sub.forward(ctx, a, b)
>>> len(ctx.saved_tensors)
0

# Sub.backward: two gradients, in a tuple
>>> Sub.backward(Sub(), grad)
(ARRIVED, -ARRIVED)

# Sub.backward does not change what arrives
>>> shares = Sub.backward(Sub(), grad)
>>> grad
ARRIVED

# Tanh.forward
>>> Tanh.forward(Tanh(), a)
np.tanh(FIRST)

# Tanh saves the one array that its rule needs
>>> ctx = Tanh()
>>> output = Tanh.forward(ctx, a)
>>> [np.shape(array) for array in ctx.saved_tensors]
[(2, 2)]

# Tanh.backward: one gradient
>>> ctx = Tanh()
>>> output = Tanh.forward(ctx, a)
>>> one_array(Tanh.backward(ctx, grad))
ARRIVED * SLOPES

# Tanh.backward does not change what arrives
>>> ctx = Tanh()
>>> output = Tanh.forward(ctx, a)
>>> share = Tanh.backward(ctx, grad)
>>> grad
ARRIVED

# Tanh.backward does not change what forward saved
>>> ctx = Tanh()
>>> output = Tanh.forward(ctx, a)
>>> saved = np.copy(ctx.saved_tensors[0])
>>> share = Tanh.backward(ctx, grad)
>>> ctx.saved_tensors[0] - saved
np.zeros((2, 2))

# two calls of Tanh do not share what they saved
>>> first, second = Tanh(), Tanh()
>>> outputs = Tanh.forward(first, a), Tanh.forward(second, b)
>>> one_array(Tanh.backward(first, grad))
ARRIVED * SLOPES
""")
check.hidden("""
# a rule that is called twice
>>> ctx = Tanh()
>>> output = Tanh.forward(ctx, a)
>>> one_array(Tanh.backward(ctx, grad))
ARRIVED * SLOPES
>>> one_array(Tanh.backward(ctx, 2 * grad))
2 * ARRIVED * SLOPES
""")

# Exercise 2


def edges_of(result):
    """The edges of a result's node: the names of the nodes that they lead to (or None), and the numbers."""
    return [(end and end.name(), number) for end, number in result.grad_fn.next_functions]


def leaves_left():
    """How many leaves are left once nothing holds a leaf and its graph: at once, and after Python's collector ran."""
    collects = gc.isenabled()
    gc.disable()
    try:
        leaf = MiniTensor(2.0, requires_grad=True)
        square = Mul.apply(leaf, leaf)
        alive = weakref.ref(leaf)
        del leaf, square
        at_once = int(alive() is not None)
    finally:
        if collects:
            gc.enable()
    gc.collect()
    return at_once, int(alive() is not None)


check = Check("record", points=4)
check.cases("""
>>> w, data = MiniTensor([[1.0, 2.0, 3.0]], requires_grad=True), MiniTensor([[4.0], [5.0]])

# edge_to gives a pair
>>> edge_to(data)
(None, 0)
>>> end, number = edge_to(w)
>>> end.name(), number, end.variable is w
("AccumulateGrad", 0, True)

# no input requires a gradient: nothing is recorded
>>> plain = Mul.apply(data, 2.0)
>>> plain.data
array([[8.0], [10.0]])
>>> plain.requires_grad, plain.grad_fn
(False, None)

# one input that requires a gradient is enough, whichever it is
>>> Mul.apply(w, data).requires_grad, Mul.apply(data, w).requires_grad
(True, True)

# grad_fn is the node of this call
>>> type(Mul.apply(w, data).grad_fn).__name__
"Mul"

# the edges, one pair per input, in a tuple
>>> product = Mul.apply(w, data)
>>> type(product.grad_fn.next_functions).__name__
"tuple"
>>> edges_of(product)
[("AccumulateGrad", 0), (None, 0)]

# the edge of a leaf leads back to it
>>> product = Mul.apply(w, data)
>>> product.grad_fn.next_functions[0][0].variable is w
True

# the edge of a result
>>> product = Mul.apply(w, data)
>>> outer = Mul.apply(product, data)
>>> edges_of(outer)
[("MulBackward0", 0), (None, 0)]
>>> outer.grad_fn.next_functions[0][0] is product.grad_fn
True

# the shapes of the inputs, in a tuple
>>> Mul.apply(w, data).grad_fn.input_shapes
((1, 3), (2, 1))

# edges belong to one call
>>> first, second = Mul.apply(w, data), Mul.apply(data, w)
>>> edges_of(first)
[("AccumulateGrad", 0), (None, 0)]

# shapes belong to one call
>>> first, second = Mul.apply(w, data), Mul.apply(data, w)
>>> first.grad_fn.input_shapes
((1, 3), (2, 1))

# a leaf that is used twice has one AccumulateGrad
>>> square = Mul.apply(w, w)
>>> (first, _), (second, _) = square.grad_fn.next_functions
>>> first.name(), first is second
("AccumulateGrad", True)

# a leaf has a new AccumulateGrad once its first graph is gone
>>> first = Mul.apply(w, 2.0)
>>> del first
>>> edges_of(Mul.apply(w, 2.0))
[("AccumulateGrad", 0), (None, 0)]

# leaves that are left when nothing holds a leaf and its graph: at once, and after Python's collector ran
>>> leaves_left()
(0, 0)
""")
check.hidden("""
# two graphs of one leaf, and another leaf
>>> other = MiniTensor([[1.0, 2.0, 3.0]], requires_grad=True)
>>> first, second, third = (Mul.apply(leaf, data) for leaf in (w, w, other))
>>> ends = [result.grad_fn.next_functions[0][0] for result in (first, second, third)]
>>> ends[0] is ends[1], ends[0] is ends[2]
(True, False)

# which tensors are leaves
>>> product = Mul.apply(w, data)
>>> product.data
array([[4.0, 8.0, 12.0], [5.0, 10.0, 15.0]])
>>> w.is_leaf, product.is_leaf, Mul.apply(data, 2.0).is_leaf
(True, False, True)
""")

# Exercise 3

check = Check("accumulate", points=3)
check.cases("""
>>> w = MiniTensor([1.0, 2.0], requires_grad=True)
>>> node = AccumulateGrad(w)

# the first gradient
>>> node.accumulate(np.array([3.0, 4.0]))
>>> type(w.grad).__name__, w.grad.requires_grad
("MiniTensor", False)
>>> w.grad.data
array([3.0, 4.0])

# the second is added to the first
>>> node.accumulate(np.array([3.0, 4.0]))
>>> node.accumulate(np.array([10.0, 20.0]))
>>> type(w.grad).__name__, w.grad.requires_grad
("MiniTensor", False)
>>> w.grad.data
array([13.0, 24.0])

# a sum that happens to be zero is a sum
>>> for arriving in ([3.0, 4.0], [-3.0, 1.0], [5.0, 1.0]):
...     node.accumulate(np.array(arriving))
>>> w.grad.data
array([5.0, 6.0])

# .grad does not share its memory with what arrived
>>> arriving = np.array([3.0, 4.0])
>>> node.accumulate(arriving)
>>> arriving[0] = 100.0
>>> w.grad.data
array([3.0, 4.0])

# what arrives does not change
>>> first, second = np.array([3.0, 4.0]), np.array([10.0, 20.0])
>>> node.accumulate(first)
>>> node.accumulate(second)
>>> first, second
(array([3.0, 4.0]), array([10.0, 20.0]))
""")
check.hidden("""
# a leaf of shape ()
>>> other = MiniTensor(5.0, requires_grad=True)
>>> AccumulateGrad(other).accumulate(np.array(2.0))
>>> other.grad.shape, other.grad.item(), other.item()
((), 2.0, 5.0)
""")

# Exercise 4

check = Check("backward", points=5)
check.cases("""
>>> a, b = MiniTensor([2.0, 3.0], requires_grad=True), MiniTensor([5.0, 7.0], requires_grad=True)

# a product of two leaves
>>> (a * b).backward([1.0, 10.0])
>>> a.grad.data
array([5.0, 70.0])
>>> b.grad.data
array([2.0, 30.0])

# a sum of squares
>>> (a * a).sum().backward()
>>> a.grad.data
array([4.0, 6.0])

# a result that is used early and late
>>> c = a * b
>>> (c + c * a).backward([1.0, 10.0])
>>> a.grad.data
array([25.0, 490.0])
>>> b.grad.data
array([6.0, 120.0])

# inputs that are stretched
>>> p, q = MiniTensor([[1.0], [2.0]], requires_grad=True), MiniTensor([10.0, 20.0, 30.0], requires_grad=True)
>>> (p * q).backward([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
>>> p.grad.data
array([[140.0], [1400.0]])
>>> q.grad.data
array([21.0, 42.0, 63.0])

# an input that is stretched twice
>>> p = MiniTensor([[1.0], [2.0]], requires_grad=True)
>>> (p * [10.0, 20.0] + p * [1.0, 2.0]).backward([[1.0, 1.0], [10.0, 10.0]])
>>> p.grad.data
array([[33.0], [330.0]])

# a constant before a leaf
>>> (MiniTensor([2.0, 3.0]) * a).backward([1.0, 10.0])
>>> a.grad.data
array([2.0, 30.0])
""")
check.gradients(
    {
        "c = a * b, then tanh(c + a) - c * c": lambda a, b: (lambda c: (c + a).tanh() - c * c)(a * b),
        "a.sum(0) - b - b.sum(0), with broadcasting": lambda a, b: a.sum(0) - b - b.sum(0),
        "the mean of squares, row by row": lambda a, b: ((a - b) ** 2).mean(1),
    },
    [(2, 3), (2, 3)],
)
check.gradients(
    {"a layer, used twice": lambda a, b: (lambda c: (c * a[:, :1] + c).sum(1) / (1 + (c * c).mean()))((a @ b).tanh())},
    [(4, 3), (3, 2)],
    hidden=True,
)
check.gradients({"rows picked, some twice": lambda a: a[[0, 2, 2, 1]].log_softmax(1) * a[0]}, [(3, 4)], hidden=True)


def operation(rule):
    """An operation a * b with another rule."""
    methods = {"forward": lambda ctx, a, b: a * b, "backward": rule}
    return type("Operation", (Function,), {name: staticmethod(method) for name, method in methods.items()})


def most_arrivals(loss):
    """How often `accumulate` is called for one node in a backward pass, at most."""
    with Calls(AccumulateGrad, "accumulate", run=False) as calls:
        loss.backward()
    nodes = [id(node) for node, *_ in calls]
    return max(map(nodes.count, nodes), default=0)


check = Check("backward_keeps", points=4)
check.cases("""
>>> x, data = MiniTensor([2.0, 3.0], requires_grad=True), MiniTensor([5.0, 7.0])

# the leaf that requires a gradient has one, and nothing else has
>>> y = x * data
>>> total = (y * y).sum()
>>> total.backward()
>>> x.grad.data
array([100.0, 294.0])
>>> data.grad, y.grad, total.grad
(None, None, None)

# a second call adds to the leaf's .grad
>>> y = x * data
>>> total = (y * y).sum()
>>> total.backward()
>>> total.backward()
>>> x.grad.data
array([200.0, 588.0])

# a result that called retain_grad keeps its gradient
>>> z = x * data
>>> z.retain_grad()
>>> z.sum().backward()
>>> z.grad.data
array([1.0, 1.0])

# a constant comes first
>>> (2.0 * x).sum().backward()
>>> x.grad.data
array([2.0, 2.0])

# constants of different shapes
>>> wide = MiniTensor(np.ones((2, 3)), requires_grad=True)
>>> ((wide * np.ones(3)).sum(1) * np.ones(2)).sum().backward()
>>> wide.grad.data
np.ones((2, 3))

# a rule returns None for its second input
>>> q = MiniTensor(3.0, requires_grad=True)
>>> operation(lambda ctx, grad: (7.0 * grad, None)).apply(x, q).sum().backward()
>>> x.grad.data, q.grad
(array([7.0, 7.0]), None)

# a rule returns None for its first input
>>> q = MiniTensor(3.0, requires_grad=True)
>>> operation(lambda ctx, grad: (None, 7.0 * grad)).apply(q, x).sum().backward()
>>> x.grad.data, q.grad
(array([7.0, 7.0]), None)

# a rule returns None for a constant
>>> operation(lambda ctx, grad: (7.0 * grad, None)).apply(x, 3.0).sum().backward()
>>> x.grad.data
array([7.0, 7.0])

# zeros are sent on like any other gradient
>>> (x * 0.0).sum().backward()
>>> x.grad.data
array([0.0, 0.0])

# accumulate is called once for a leaf, when everything has arrived
>>> most_arrivals((x * x + x).sum())
1
""")
check.hidden("""
# retain_grad, and a second call
>>> z = x * data
>>> z.retain_grad()
>>> total = z.sum()
>>> total.backward()
>>> total.backward()
>>> z.grad.data
array([2.0, 2.0])

# sixty doublings
>>> y = leaf = MiniTensor(1.0, requires_grad=True)
>>> for _ in range(60):
...     y = y + y
>>> y.backward()
>>> leaf.grad.item()
2.0**60
>>> y.backward(np.array(-1.0))
>>> leaf.grad.item()
0.0

# a leaf is the root itself
>>> x.backward(np.array([1.0, 10.0]))
>>> x.grad.data
array([1.0, 10.0])

# a gradient has the shape of its tensor
>>> a, b = MiniTensor([[1.0, 2.0]], requires_grad=True), MiniTensor(3.0, requires_grad=True)
>>> (a * b).sum().backward()
>>> a.grad.shape, b.grad.shape, b.grad.item()
((1, 2), (), 3.0)
""")

# Exercise 5


def leaf_with(numbers, gradient=None):
    """A leaf whose .grad is set; None: nothing has arrived."""
    leaf = MiniTensor(np.array(numbers), requires_grad=True)
    leaf.grad = None if gradient is None else MiniTensor(np.array(gradient))
    return leaf


check = Check("sgd", points=4)
check.cases("""
>>> w = leaf_with([1.0, -2.0], [2.0, -4.0])
>>> empty, last = leaf_with([5.0]), leaf_with(3.0, 1.0)

# a step subtracts lr times the gradient
>>> SGD([w], lr=0.1).step()
>>> type(w.data).__name__
"ndarray"
>>> w.data
array([0.8, -1.6])

# after a step
>>> SGD([w], lr=0.1).step()
>>> w.is_leaf, w.requires_grad
(True, True)
>>> w.grad.data
array([2.0, -4.0])

# several parameters, of which one has no .grad
>>> SGD([w, empty, last], lr=0.1).step()
>>> w.data, empty.data, last.data
(array([0.8, -1.6]), array([5.0]), array(2.9))

# any iterable of parameters
>>> optimizer = SGD((one for one in (w, last)), lr=0.1)
>>> optimizer.step()
>>> w.data, last.data
(array([0.8, -1.6]), array(2.9))
>>> optimizer.zero_grad()
>>> w.grad, last.grad
(None, None)

# zero_grad()
>>> SGD([w, empty, last], lr=0.1).zero_grad()
>>> w.grad, empty.grad, last.grad
(None, None, None)

# zero_grad(set_to_none=False)
>>> SGD([w, empty, last], lr=0.1).zero_grad(set_to_none=False)
>>> type(w.grad).__name__
"MiniTensor"
>>> w.grad.requires_grad
False
>>> w.grad.data, empty.grad, last.grad.data
(array([0.0, 0.0]), None, array(0.0))

# zero_grad(set_to_none=False) where .grad is inf and nan
>>> w.grad = MiniTensor([np.inf, np.nan])
>>> SGD([w], lr=0.1).zero_grad(set_to_none=False)
>>> w.grad.data
array([0.0, 0.0])

# momentum: older gradients fade in the buffer
>>> u = leaf_with(5.0, 1.0)
>>> optimizer = SGD([u], lr=1.0, momentum=0.5)
>>> optimizer.step()
>>> u.data
array(4.0)
>>> optimizer.step()
>>> u.data
array(2.5)
>>> optimizer.step()
>>> u.data
array(0.75)

# momentum: each parameter has its own buffer
>>> u, v = leaf_with(5.0, 1.0), leaf_with(5.0, 2.0)
>>> optimizer = SGD([u, v], lr=1.0, momentum=0.5)
>>> optimizer.step()
>>> u.grad = None
>>> optimizer.step()
>>> u.data, v.data
(array(4.0), array(0.0))

# momentum: .grad is only read
>>> u = leaf_with([5.0], [2.0])
>>> optimizer = SGD([u], lr=1.0, momentum=0.25)
>>> for _ in range(3):
...     optimizer.step()
>>> u.grad.data
array([2.0])

# momentum: where .grad is None, nothing moves, and the buffer does not fade
>>> u = leaf_with(5.0, 1.0)
>>> optimizer = SGD([u], lr=1.0, momentum=0.5)
>>> optimizer.step()
>>> u.grad = None
>>> optimizer.step()
>>> u.data
array(4.0)
>>> u.grad = MiniTensor(1.0)
>>> optimizer.step()
>>> u.data
array(2.5)

# momentum: a .grad of zeros lets the parameter go on
>>> u = leaf_with(5.0, 1.0)
>>> optimizer = SGD([u], lr=1.0, momentum=0.5)
>>> optimizer.step()
>>> u.grad = MiniTensor(0.0)
>>> optimizer.step()
>>> u.data
array(3.5)

# momentum: zero_grad(set_to_none=False) leaves the buffer alone
>>> u = leaf_with(5.0, 1.0)
>>> optimizer = SGD([u], lr=1.0, momentum=0.5)
>>> optimizer.step()
>>> optimizer.zero_grad(set_to_none=False)
>>> u.grad = MiniTensor(1.0)
>>> optimizer.step()
>>> u.data
array(2.5)

# momentum: lr counts when the step is taken
>>> u = leaf_with(5.0, 1.0)
>>> optimizer = SGD([u], lr=1.0, momentum=0.5)
>>> optimizer.step()
>>> optimizer.lr = 2.0
>>> optimizer.step()
>>> u.data
array(1.0)
""")
check.hidden("""
# three steps, two parameters
>>> w, b = leaf_with([[1.0, 2.0]], [[1.0, 1.0]]), leaf_with(3.0, 2.0)
>>> optimizer = SGD((one for one in (w, b)), lr=0.5, momentum=0.5)
>>> for _ in range(3):
...     optimizer.step()
>>> w.data, b.data
(array([[-1.125, -0.125]]), array(-1.25))

# two optimizers
>>> u = leaf_with(5.0, 1.0)
>>> SGD([u], lr=1.0, momentum=0.5).step()
>>> SGD([u], lr=1.0, momentum=0.5).step()
>>> u.data
array(3.0)
""")

# Exercise 6


class StandIn:
    """A node with a name, and edges to other nodes."""

    def __init__(self, name, *inputs):
        self._name, self.next_functions = name, tuple((node, 0) for node in inputs)

    def name(self):
        return self._name


check = Check("graph_lines", points=3)
check.cases("""
>>> x, y = StandIn('AccumulateGrad'), StandIn('AccumulateGrad')

# four spaces for each step away from the root
>>> product = StandIn("MulBackward0", x, y)
>>> graph_lines(StandIn("PowBackward0", product))
["PowBackward0", "    MulBackward0", "        AccumulateGrad", "        AccumulateGrad"]

# an edge that leads to None has no line
>>> graph_lines(StandIn("MulBackward0", None, x))
["MulBackward0", "    AccumulateGrad"]

# a leaf that is reached again
>>> graph_lines(StandIn("AddBackward0", StandIn("NegBackward0", x), x))
["AddBackward0", "    NegBackward0", "        AccumulateGrad", "    AccumulateGrad (again)"]

# a node with inputs that is reached again: they are not listed again
>>> negative = StandIn("NegBackward0", x)
>>> graph_lines(StandIn("AddBackward0", negative, negative))
["AddBackward0", "    NegBackward0", "        AccumulateGrad", "    NegBackward0 (again)"]

# PyTorch's long name
>>> graph_lines(StandIn("torch::autograd::AccumulateGrad"))
["AccumulateGrad"]

# a second call on the same graph
>>> root = StandIn("NegBackward0", x)
>>> first, second = graph_lines(root), graph_lines(root)
>>> second
["NegBackward0", "    AccumulateGrad"]

# your own graph
>>> graph_lines(AccumulateGrad(MiniTensor(2.0, requires_grad=True)))
["AccumulateGrad"]
""")
check.hidden("""
# a graph of PyTorch
>>> sine = StandIn("SinBackward0", StandIn("torch::autograd::AccumulateGrad"))
>>> graph_lines(StandIn("AddBackward0", StandIn("MulBackward0", sine, None), sine))
["AddBackward0", "    MulBackward0", "        SinBackward0", "            AccumulateGrad", "    SinBackward0 (again)"]

# sixty doublings
>>> node = x
>>> for _ in range(60):
...     node = StandIn("AddBackward0", node, node)
>>> len(graph_lines(node))
121
""")
