"""What the exercises of lesson 06 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import weakref

import numpy as np

from autograder.checks.cases import Check
from autograder.checks.steps import Calls

# Exercise 1

check = Check("held", points=3)
check.cases("""
>>> x = MiniTensor(np.ones((2, 5)), requires_grad=True)

# nodes and bytes of small graphs
>>> held((x + 1.0).grad_fn)
(2, 0)
>>> held((x**2).grad_fn)
(2, 80)
>>> held((x**2).sum().grad_fn)
(3, 80)
>>> held(x.sum().exp().grad_fn)
(3, 8)

# an array that is saved twice counts once
>>> held((x * x).sum().grad_fn)
(3, 80)
>>> h = x.relu()
>>> held((h * h).grad_fn)
(3, 80)

# two arrays with equal entries or sizes are still two
>>> y, z = MiniTensor(np.ones((2, 5)), requires_grad=True), MiniTensor(np.full((2, 5), 4.0), requires_grad=True)
>>> held((x * z).grad_fn)
(3, 160)
>>> held((x * y).grad_fn)
(3, 160)

# a node that is used twice counts once
>>> y = MiniTensor(np.full((2, 5), 4.0), requires_grad=True)
>>> u = (x * y).relu()
>>> held((u + u).sum().grad_fn)
(6, 240)

# each call starts from zero
>>> square, other = x**2, MiniTensor([3.0], requires_grad=True) ** 2
>>> held(square.grad_fn), held(other.grad_fn), held(square.grad_fn)
((2, 80), (2, 8), (2, 80))

# a freed node counts, and holds 0 bytes
>>> square = x**2
>>> square.grad_fn.saved = None
>>> held(square.grad_fn)
(2, 0)
>>> chain = x.exp().tanh()
>>> chain.grad_fn.saved = None
>>> held(chain.grad_fn)
(3, 80)
""")
check.hidden("""
# a deep graph
>>> for _ in range(50):
...     x = x.relu()
>>> held(x.grad_fn)
(51, 4000)
""")

# Exercise 2

check = Check("release", points=4)
check.cases("""
>>> x = MiniTensor([1.0, 2.0], requires_grad=True)

# release frees the array
>>> node = (x * 2.0 + 1.0).exp().grad_fn
>>> array = weakref.ref(node.saved[0])
>>> node.release()
>>> node.saved
None
>>> array() is None
True

# a second release changes nothing
>>> cube = x**3
>>> cube.grad_fn.release()
>>> cube.grad_fn.release()
>>> cube.grad_fn.saved
None

# nodes before it, and edges, stay
>>> cube = x**3
>>> outer = cube.exp()
>>> outer.grad_fn.release()
>>> len(cube.grad_fn.saved_tensors), len(outer.grad_fn.next_functions)
(1, 1)

# a node that saved nothing stays as it is
>>> moved = x + 1.0
>>> moved.grad_fn.release()
>>> moved.grad_fn.saved_tensors
()

# saved_tensors before release
>>> cube, moved = x**3, x + 1.0
>>> type(cube.grad_fn.saved_tensors).__name__, len(cube.grad_fn.saved_tensors)
("tuple", 1)
>>> moved.grad_fn.saved_tensors
()

# saved_tensors of a freed node
>>> cube = x**3
>>> cube.grad_fn.saved = None
>>> cube.grad_fn.saved_tensors
RuntimeError*

# the text of that error
>>> cube, text = x**3, "no RuntimeError"
>>> cube.grad_fn.saved = None
>>> try:
...     cube.grad_fn.saved_tensors
... except RuntimeError as error:
...     text = str(error)
>>> text == SECOND_BACKWARD
True
""")
check.hidden("""
# releasing one node
>>> one, other = x**3, x**3
>>> one.grad_fn.release()
>>> len(other.grad_fn.saved_tensors), held(one.grad_fn)[1], held(other.grad_fn)[1]
(1, 0, 16)
""")

# Exercise 3

check = Check("backward_frees", points=4)
check.cases("""
>>> x = MiniTensor(2.0, requires_grad=True)
>>> y = x**3

# what is left after backward
>>> y.backward()
>>> held(y.grad_fn)
(2, 0)
>>> len(y.grad_fn.next_functions)
1

# a second call
>>> y.backward()
>>> y.backward()
RuntimeError: Trying to backward*
>>> x.grad.item()
12.0

# every node of a longer chain
>>> chain = ((x * x).tanh() * x).exp()
>>> chain.backward()
>>> held(chain.grad_fn)
(5, 0)

# retain_graph=True, and then a call without it
>>> y.backward(retain_graph=True)
>>> held(y.grad_fn)[1] > 0
True
>>> y.backward()
>>> x.grad.item()
24.0
>>> held(y.grad_fn)[1]
0

# a node that saved nothing runs as often as you like
>>> moved = x + 1.0
>>> moved.backward()
>>> moved.backward()
>>> x.grad.item()
2.0
>>> len(moved.grad_fn.saved_tensors)
0

# values go at once, node by node: also if a later node fails
>>> outer = (x * x).tanh()
>>> outer.grad_fn.next_functions[0][0].release()
>>> outer.backward()
RuntimeError*
>>> held(outer.grad_fn)[1]
0
""")
check.hidden("""
# two losses on one trunk
>>> trunk = x.tanh()
>>> one, two = trunk * 2.0, trunk.exp()
>>> one.backward()
>>> two.backward()
RuntimeError*
>>> held(two.grad_fn)[1]
0
>>> trunk = x.tanh()
>>> one, two = trunk * 2.0, trunk.exp()
>>> one.backward(retain_graph=True)
>>> held(one.grad_fn)[1] > 0
True
>>> two.backward()
>>> one.backward()
RuntimeError*

# a graph that backward does not pass through
>>> kept = MiniTensor(3.0, requires_grad=True) ** 2
>>> (x * 1.0).backward()
>>> held(kept.grad_fn)[1] > 0
True
""")

# Exercise 4

check = Check("backward_each", points=3)
check.cases("""
>>> x = MiniTensor([1.0, 2.0], requires_grad=True)

# which loss backward is called on, and how
>>> losses = [MiniTensor(1.0, requires_grad=True) * number for number in (0.0, 1.0, 2.0)]
>>> given = list(losses)
>>> with Calls(MiniTensor, "backward", backward_each.__globals__, run=False) as calls:
...     backward_each(losses)
>>> [next((i for i, loss in enumerate(given) if loss is one), "another") for one, *_ in calls]
[0, 1, 2]
>>> retained(calls)
[True, True, False]
>>> list(map(id, losses)) == list(map(id, given))
True

# two losses on one trunk
>>> trunk = x * x
>>> backward_each([(trunk * 3.0).sum(), (trunk * trunk).sum()])
>>> x.grad.data
array([10.0, 44.0])
>>> held(trunk.grad_fn)[1]
0

# one loss, and none
>>> alone = (x * x).sum()
>>> backward_each([alone])
None
>>> held(alone.grad_fn)[1]
0
>>> backward_each([])
None
""")
check.hidden("""
# five losses on one trunk
>>> x = MiniTensor(1.0, requires_grad=True)
>>> trunk = x.exp()
>>> backward_each([trunk * float(i) for i in range(5)])
>>> x.grad.data
array(10.0 * np.exp(1.0))
>>> trunk.backward()
RuntimeError*
""")


def retained(calls):
    """Whether each call of backward retains the graph."""
    return [bool((arguments[1:] or [options.get("retain_graph")])[0]) for _, arguments, options in calls]


# Exercise 5


def by_hand(weights, inputs, targets):
    """The losses, the gradient and the last state, computed with NumPy."""
    state, gradient, history = np.zeros(targets[0].shape), np.zeros(weights.shape), []
    for x, target in zip(inputs, targets, strict=True):
        before, state = state, np.tanh(state @ weights + x)
        history.append(((state - target) ** 2).mean())
        gradient += before.T @ ((1 - state**2) * 2 * (state - target) / state.size)
    return history, gradient, state


def data():
    draw = np.random.default_rng(5).normal
    return draw(size=(3, 3)), list(draw(size=(6, 2, 3))), list(draw(size=(6, 2, 3)))


def at_each_backward(weights, inputs, targets):
    """How often backward is called; how many of the calls retain; the largest number of graphs of earlier calls that
    are still there at a call; the largest number of leaves that a call reaches.
    """
    graphs, reached = [], []

    def look(loss):
        nodes = topological_order(loss.grad_fn)
        leaf = [type(node).__name__ == "AccumulateGrad" for node in nodes]
        reached.append((sum(any(node() for node in graph) for graph in graphs), sum(leaf)))
        graphs.append([weakref.ref(node) for node, is_leaf in zip(nodes, leaf, strict=True) if not is_leaf])

    with Calls(MiniTensor, "backward", run_sequence.__globals__, look) as calls:
        run_sequence(MiniTensor(weights, requires_grad=True), inputs, targets)
    most = [max(numbers, default=0) for numbers in zip(*reached, strict=True)] or [0, 0]
    return len(calls), sum(retained(calls)), *most


start, inputs, targets = data()
losses, gradient, last = by_hand(start, inputs, targets)
check = Check("run_sequence", points=4)
check.cases("""
>>> start, inputs, targets = data()
>>> w = MiniTensor(start.copy(), requires_grad=True)

# the losses, and the last state, which has no history
>>> history, state = run_sequence(w, inputs, targets)
>>> isinstance(history, MiniTensor)
False
>>> [type(loss).__name__ for loss in history]
["float"] * 6
>>> list(history)
[float(loss) for loss in losses]
>>> type(state).__name__, state.grad_fn is None, state.requires_grad
("MiniTensor", True, False)
>>> np.array(state.data)
last

# the gradient: each step's goes through this step only, and all are added up
>>> history, state = run_sequence(w, inputs, targets)
>>> w.grad is None
False
>>> w.grad.data
gradient

# calls of backward, how many retain, earlier graphs that are still there, leaves that get a gradient
>>> at_each_backward(start, inputs, targets)
got[0] == 6 and got[1] == 0 and got[2] <= 1 and got[3] == 1

# a second run starts from zeros, and adds to w.grad
>>> first, second = run_sequence(w, inputs, targets)[0], run_sequence(w, inputs, targets)[0]
>>> list(second)
[float(loss) for loss in losses]
>>> w.grad.data
2 * gradient

# what belongs to the caller does not change
>>> before = repr((inputs, targets))
>>> history, state = run_sequence(w, inputs, targets)
>>> repr((inputs, targets)) == before
True
>>> np.array(w.data)
start
""")
check.hidden("""
# one step
>>> history, state = run_sequence(w, inputs[:1], targets[:1])
>>> w.grad.data
0 * gradient

# a long sequence
>>> history, state = run_sequence(w, inputs * 40, targets * 40)
>>> len(history), {type(value).__name__ for value in history} == {"float"}
(240, True)
>>> list(history)
[float(loss) for loss in by_hand(start, inputs * 40, targets * 40)[0]]
""")
