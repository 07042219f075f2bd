"""What the exercises of lesson 04 must do, case by case, and on random inputs.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import numpy as np

from autograder.checks.cases import Check
from autograder.runs.inputs import between, positive

# Exercise 1

check = Check("sum_to", points=4)
check.cases("""
>>> grad = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])

# axes that were added in front
>>> sum_to(grad, (3,))
array([11.0, 22.0, 33.0])
>>> sum_to(grad, ())
array(66.0)
>>> sum_to(grad, ()).shape
()

# axes that were stretched from size 1 stay, with size 1
>>> sum_to(grad, (2, 1))
array([[6.0], [60.0]])
>>> sum_to(grad, (1, 3))
array([[11.0, 22.0, 33.0]])

# several axes of size 1
>>> sum_to(grad, (1, 1))
array([[66.0]])

# nothing was stretched
>>> sum_to(grad, (2, 3))
array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
>>> sum_to(grad[:1], (1, 3))
array([[1.0, 2.0, 3.0]])

# both: an axis in front, and one of size 1
>>> sum_to(np.arange(24.0).reshape(2, 3, 4), (3, 1))
array([[60.0], [92.0], [124.0]])
>>> sum_to(np.ones((5, 3, 3)), (3, 1))
array([[15.0], [15.0], [15.0]])
""")
check.hidden("""
# three and four axes
>>> sum_to(np.arange(30.0).reshape(5, 2, 3), (2, 1))
array([[195.0], [240.0]])
>>> sum_to(np.arange(24.0).reshape(2, 3, 2, 2), (1, 3, 1, 2))
array([[[[28.0, 32.0]], [[44.0, 48.0]], [[60.0, 64.0]]]])
>>> sum_to(np.ones((4, 4, 4)), (1,))
array([64.0])

# axes that have size 1 already
>>> sum_to(np.array([[1.0, 2.0, 4.0]]), (1, 1))
array([[7.0]])
>>> sum_to(np.array([[5.0]]), (1,)), sum_to(np.array([[5.0]]), (1, 1))
(array([5.0]), array([[5.0]]))
""")

# Exercise 2

check = Check("backward", points=4)
check.cases("""
# a product of two numbers
>>> a, b = MiniTensor(2.0), MiniTensor(3.0)
>>> (a * b).backward()
>>> a.grad, b.grad
(array(3.0), array(2.0))

# a longer chain
>>> a, b = MiniTensor([2.0, 3.0]), MiniTensor([5.0, 7.0])
>>> (-(a * b)).backward([1.0, 10.0])
>>> a.grad, b.grad
(array([-5.0, -70.0]), array([-2.0, -30.0]))

# a second call adds to what the first has found
>>> a, b = MiniTensor([2.0, 3.0]), MiniTensor([5.0, 7.0])
>>> (a * b).backward([1.0, 10.0])
>>> (a * b).backward([1.0, 10.0])
>>> a.grad, b.grad
(array([10.0, 140.0]), array([4.0, 60.0]))

# inputs that are stretched
>>> a, b = MiniTensor([[1.0], [2.0]]), MiniTensor([10.0, 20.0, 30.0])
>>> (a * b).backward([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
>>> a.grad
array([[140.0], [1400.0]])
>>> b.grad
array([21.0, 42.0, 63.0])

# a number that is stretched, and used again
>>> a, b = MiniTensor([1.0, 2.0, 3.0]), MiniTensor(5.0)
>>> (a * b + b).backward([1.0, 10.0, 100.0])
>>> a.grad, b.grad
(array([5.0, 50.0, 500.0]), array(432.0))

# a leaf that is used several times
>>> a, b = MiniTensor([2.0, 3.0]), MiniTensor([5.0, 7.0])
>>> (a * a + (a + b)).backward([1.0, 10.0])
>>> a.grad, b.grad
(array([5.0, 70.0]), array([1.0, 10.0]))

# the leaves of a sum, used again
>>> a, b = MiniTensor([2.0, 3.0]), MiniTensor([5.0, 7.0])
>>> (a + b + a * a).backward([1.0, 10.0])
>>> a.grad, b.grad
(array([5.0, 70.0]), array([1.0, 10.0]))

# a result that is used early and late
>>> a, b = MiniTensor([2.0, 3.0]), MiniTensor([5.0, 7.0])
>>> c = a * b
>>> (c + c * a).backward([1.0, 10.0])
>>> a.grad, b.grad
(array([25.0, 490.0]), array([6.0, 120.0]))
""")
check.gradients(
    {
        "a * b": lambda a, b: a * b,
        "a * -b + a + b": lambda a, b: a * -b + a + b,
        "(a + b) + a * a": lambda a, b: (a + b) + a * a,
        "a * a + (a + b)": lambda a, b: a * a + (a + b),
        "c + c * a where c = a * b": lambda a, b: (lambda c: c + c * a)(a * b),
    },
    [[(3, 4), (3, 4)], [(3, 4), (4,)], [(3, 1), (1, 4)], [(2, 3), ()]],
)
check.gradients(
    {
        "early and late": lambda a, b: (lambda c: c + (a + c).exp() * b)(a * b),
        "twice": lambda a, b: a * a + b + b,
        "in front": lambda a, b: b * -b * a,
    },
    [[(2, 1, 3), (4, 1)], [(3,), (2, 2, 3)], [(1, 1), (2, 2)], [(1,), ()]],
    hidden=True,
)


def counted(*inputs, shape=(2,)):
    """A MiniTensor made from inputs, and a list of what its rule gets. The rule is right at its first call only."""
    given = []

    def rule(grad):
        given.append(np.array(grad))
        return (grad * len(given),) * len(inputs)

    return MiniTensor(np.ones(shape), inputs, "counted", rule), given


check = Check("cotangent", points=2)
check.cases("""
>>> a, b = MiniTensor([1.0, 2.0]), MiniTensor([3.0, 4.0])

# several outputs need a cotangent
>>> (a * a).backward()
RuntimeError: grad can be implicitly created only for scalar outputs
>>> a.grad
None

# one output needs none, whatever its shape
>>> one = MiniTensor([[4.0]])
>>> (one * 5.0).backward()
>>> one.grad
array([[5.0]])

# the cotangent says how much each output counts
>>> (a * 2.0).backward([1.0, 10.0])
>>> a.grad
array([2.0, 20.0])

# a second call adds to .grad
>>> (a * 2.0).backward([1.0, 10.0])
>>> (a * 3.0).backward([1.0, 1.0])
>>> a.grad
array([5.0, 23.0])

# the output and the nodes between have a .grad too
>>> between_them = a * 2.0
>>> output = between_them + b
>>> output.backward([1.0, 10.0])
>>> between_them.grad, output.grad
(array([1.0, 10.0]), array([1.0, 10.0]))

# a second call on the same output: rules get what has arrived in this call
>>> d = a + a
>>> e = d * 1.0
>>> e.backward([3.0, 4.0])
>>> e.backward([3.0, 4.0])
>>> d.grad, a.grad
(array([6.0, 8.0]), array([12.0, 16.0]))

# the cotangent that was passed does not change
>>> d, v = a * 2.0, np.array([3.0, 4.0])
>>> d.backward(v)
>>> d.backward(v)
>>> v
array([3.0, 4.0])

# the array that was .grad after the first call does not change
>>> d = a * 2.0
>>> d.backward([3.0, 4.0])
>>> held = a.grad
>>> d.backward([3.0, 4.0])
>>> held
array([6.0, 8.0])

# a rule is called once, for all inputs
>>> c, given = counted(a, b)
>>> c.backward([1.0, 10.0])
>>> len(given)
1
>>> a.grad, b.grad
(array([1.0, 10.0]), array([1.0, 10.0]))

# a rule is called once, when all shares have arrived
>>> c, given = counted(a)
>>> (c + c).backward([1.0, 10.0])
>>> given
[array([2.0, 20.0])]

# a result is stretched: its rule gets a gradient of its own shape
>>> c, given = counted(MiniTensor([[1.0], [2.0]]), shape=(2, 1))
>>> (c + MiniTensor(np.zeros(3))).backward(np.ones((2, 3)))
>>> c.grad
array([[3.0], [3.0]])
>>> given
[array([[3.0], [3.0]])]
""")
check.hidden("""
# two outputs in a column
>>> (MiniTensor(np.ones((2, 1))) * 2.0).backward()
RuntimeError: grad can be implicitly created only for scalar outputs

# two graphs on one leaf
>>> f = a + b
>>> f.backward([1.0, 1.0])
>>> (a + a).backward([1.0, 1.0])
>>> f.grad, a.grad
(array([1.0, 1.0]), array([3.0, 3.0]))
""")

# Exercise 3

check = Check("elementwise", points=5)
check.cases("""
# the gradients of a quotient
>>> a, b = MiniTensor([2.0, 9.0]), MiniTensor([4.0, 2.0])
>>> (a / b).backward([1.0, 10.0])
>>> a.grad
array([0.25, 5.0])
>>> b.grad
array([-0.125, -22.5])

# a quotient with a plain number
>>> a = MiniTensor([2.0, 4.0])
>>> (8.0 / a).backward([1.0, 10.0])
>>> a.grad
array([-2.0, -5.0])

# relu
>>> a = MiniTensor([-2.0, 3.0])
>>> y = a.relu()
>>> y.data
array([0.0, 3.0])
>>> y.backward([1.0, 10.0])
>>> a.grad
array([0.0, 10.0])

# relu of a negative cotangent
>>> a = MiniTensor([-2.0, 3.0])
>>> a.relu().backward([-1.0, -10.0])
>>> a.grad
array([0.0, -10.0])

# relu where an entry is 0
>>> a = MiniTensor([0.0, 3.0])
>>> a.relu().backward([1.0, 10.0])
>>> a.grad
array([0.0, 10.0])

# the cotangent that relu was given stays as it is
>>> a, v = MiniTensor([-2.0, 3.0]), np.array([1.0, 10.0])
>>> a.relu().backward(v)
>>> v
array([1.0, 10.0])
""")
check.gradients(
    {"a / b": lambda a, b: a / b, "b / 2 - a / b.log()": lambda a, b: b / 2 - a / b.log()},
    [[(3, 4), between(1.5, 2.5, (3, 4))], [(3, 1), between(1.5, 2.5, (4,))]],
)
check.gradients({"a.relu()": lambda a: a.relu(), "a.relu() + a": lambda a: a.relu() + a}, [(3, 4)])
check.gradients({"a.relu() where an entry is 0": lambda a: a.relu()}, [np.array([0.0, -1.0, 2.0])], at_kinks="PyTorch")
check.gradients(
    {"1 / a - a**0.5 / 3": lambda a: 1 / a - a**0.5 / 3, "3 - a.log() / 2": lambda a: 3 - a.log() / 2},
    [[positive((2, 3))], [positive()]],
    hidden=True,
)
check.gradients({"(a + b).relu() * b": lambda a, b: (a + b).relu() * b}, [(2, 3, 1), (2, 1, 2)], hidden=True)
check.gradients({"large arrays": lambda a, b: b / a}, [(150, 1), (90,)], hidden=True)

# Exercise 4

check = Check("reductions", points=4)
check.cases("""
>>> a = MiniTensor([[1.0, 2.0, 6.0], [4.0, 5.0, 9.0]])

# the sum of all entries
>>> a.sum().backward(10.0)
>>> a.grad
np.full((2, 3), 10.0)

# a sum over an axis
>>> a.sum(1).backward([1.0, 10.0])
>>> a.grad
array([[1.0, 1.0, 1.0], [10.0, 10.0, 10.0]])
>>> a.grad = None
>>> a.sum(0).backward([1.0, 10.0, 100.0])
>>> a.grad
array([[1.0, 10.0, 100.0], [1.0, 10.0, 100.0]])

# the middle axis, and a negative one
>>> cube = MiniTensor(np.ones((2, 2, 2)))
>>> cube.sum(1).backward([[1.0, 2.0], [3.0, 4.0]])
>>> cube.grad
array([[[1.0, 2.0], [1.0, 2.0]], [[3.0, 4.0], [3.0, 4.0]]])
>>> a.sum(-1).backward([1.0, 10.0])
>>> a.grad
array([[1.0, 1.0, 1.0], [10.0, 10.0, 10.0]])

# a sum that keeps its axis
>>> a.sum(1, keepdim=True).backward([[1.0], [10.0]])
>>> a.grad
array([[1.0, 1.0, 1.0], [10.0, 10.0, 10.0]])

# the mean of all entries
>>> a.mean().data
array(4.5)
>>> a.mean().backward(12.0)
>>> a.grad
np.full((2, 3), 2.0)

# a mean over an axis
>>> a.mean(0).data
array([2.5, 3.5, 7.5])
>>> a.mean(1).data
array([3.0, 6.0])
>>> a.mean(1).backward([3.0, 30.0])
>>> a.grad
array([[1.0, 1.0, 1.0], [10.0, 10.0, 10.0]])

# a mean that keeps its axis
>>> a.mean(1, keepdim=True).data
array([[3.0], [6.0]])

# a mean of all entries that keeps both axes
>>> a.mean(None, keepdim=True).data
array([[4.5]])
""")
check.gradients(
    {
        "a.sum()": lambda a: a.sum(),
        "a.sum(1)": lambda a: a.sum(1),
        "a.sum(0)": lambda a: a.sum(0),
        "a.sum(-1)": lambda a: a.sum(-1),
        "a.mean()": lambda a: a.mean(),
        "a.mean(0)": lambda a: a.mean(0),
        "a * a.mean(-1, keepdim=True)": lambda a: a * a.mean(-1, keepdim=True),
        "a.mean(None, keepdim=True)": lambda a: a.mean(None, keepdim=True),
    },
    [[(3, 4)], [(3, 3)], [(2, 2, 2)]],
)
check.gradients(
    {
        "sum, kept": lambda a: a * a.sum(1, keepdim=True),
        "sum, last axis": lambda a: a.sum(-1) * 2.0,
        "mean, kept": lambda a: a * a.mean(0, keepdim=True),
        "mean, middle axis": lambda a: a.mean(1),
    },
    [[(2, 3, 4)], [(2, 2, 2)], [(3, 1, 2)]],
    hidden=True,
)

# Exercise 5

check = Check("rearranging", points=4)
check.cases("""
>>> a = MiniTensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

# reshape
>>> a.reshape(3, 2).backward([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
>>> a.grad
array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

# transpose
>>> a.transpose(0, 1).backward([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
>>> a.grad
array([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]])

# two of three axes swapped
>>> cube = MiniTensor(np.ones((2, 2, 3)))
>>> y = cube.transpose(0, 2)
>>> y.shape
(3, 2, 2)
>>> y.backward(np.arange(12.0).reshape(3, 2, 2))
>>> cube.grad
np.arange(12.0).reshape(3, 2, 2).swapaxes(0, 2)
>>> MiniTensor(np.ones((2, 3, 4))).transpose(1, 2).shape
(2, 4, 3)

# one row, picked by a number
>>> a[1].backward([1.0, 10.0, 100.0])
>>> a.grad
array([[0.0, 0.0, 0.0], [1.0, 10.0, 100.0]])

# a slice
>>> a[:, 1:3].backward([[1.0, 2.0], [3.0, 4.0]])
>>> a.grad
array([[0.0, 1.0, 2.0], [0.0, 3.0, 4.0]])

# an entry that is picked twice
>>> b = MiniTensor([5.0, 6.0, 7.0])
>>> b[[0, 2, 2]].backward([1.0, 10.0, 100.0])
>>> b.grad
array([1.0, 0.0, 110.0])
>>> a[[0, 1, 1], [2, 0, 0]].backward([1.0, 10.0, 100.0])
>>> a.grad
array([[0.0, 0.0, 1.0], [110.0, 0.0, 0.0]])

# backward twice, with a.grad = None in between
>>> b = MiniTensor([5.0, 6.0, 7.0])
>>> y = b[[0, 2]]
>>> y.backward([1.0, 10.0])
>>> b.grad = None
>>> y.backward([1.0, 10.0])
>>> b.grad
array([1.0, 0.0, 10.0])
""")
check.gradients(
    {
        "a.reshape(2, 6)": lambda a: a.reshape(2, 6),
        "a.transpose(0, 1)": lambda a: a.transpose(0, 1),
        "a.reshape(2, 2, 3).transpose(1, 2)": lambda a: a.reshape(2, 2, 3).transpose(1, 2),
        "a.reshape(2, 3, 2).transpose(0, 2)": lambda a: a.reshape(2, 3, 2).transpose(0, 2),
        "a[1]": lambda a: a[1],
        "a[:, 1:3]": lambda a: a[:, 1:3],
        "a[[0, 2, 2]]": lambda a: a[[0, 2, 2]],
        "a[[0, 1, 1], [3, 2, 2]]": lambda a: a[[0, 1, 1], [3, 2, 2]],
    },
    [(3, 4)],
)
check.gradients(
    {
        "transposed": lambda a: a.T * 2.0,
        "three axes": lambda a: a.reshape(2, -1, 3).transpose(0, 2),
        "one row": lambda a: a.reshape(-1),
        "pairs": lambda a: a[[0, 1, 1, 2, 1], [3, 3, 0, 0, 3]],
        "table of rows": lambda a: a[np.array([[0, 1], [1, 1], [2, 0]])],
        "one entry": lambda a: a[2, 1] * a[-1, 1],
    },
    [(3, 4)],
    hidden=True,
)

check = Check("matmul", points=4)
check.cases("""
# the matrices of the text
>>> a = MiniTensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
>>> b = MiniTensor([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
>>> (a @ b).backward([[1.0, 10.0], [2.0, 20.0]])
>>> a.grad
array([[1.0, 20.0, 13.0], [2.0, 40.0, 26.0]])
>>> b.grad
array([[9.0, 90.0], [12.0, 120.0], [15.0, 150.0]])

# square matrices
>>> a, b = MiniTensor([[1.0, 2.0], [3.0, 4.0]]), MiniTensor([[5.0, 6.0], [7.0, 8.0]])
>>> (a @ b).backward([[1.0, 10.0], [100.0, 1000.0]])
>>> a.grad
array([[65.0, 87.0], [6500.0, 8700.0]])
>>> b.grad
array([[301.0, 3010.0], [402.0, 4020.0]])

# a stack of matrices
>>> a = MiniTensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
>>> b = MiniTensor([[[1.0, 0.0], [2.0, 1.0]], [[0.0, 1.0], [1.0, 3.0]]])
>>> (a @ b).backward([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]])
>>> a.grad
array([[[1.0, 4.0], [3.0, 10.0]], [[0.0, 1.0], [1.0, 3.0]]])
>>> b.grad
array([[[10.0, 14.0], [14.0, 20.0]], [[5.0, 7.0], [6.0, 8.0]]])
""")
check.gradients({"a @ b": lambda a, b: a @ b}, [[(3, 4), (4, 2)], [(3, 3), (3, 3)]])
check.gradients(
    {"a @ b, stacks": lambda a, b: a @ b, "(a @ b).exp() @ b, stacks": lambda a, b: (a @ b).exp() @ b},
    [[(2, 3, 3), (3, 3)], [(2, 3, 3), (2, 3, 3)]],
)
check.gradients({"stacks": lambda a, b: a @ b}, [[(2, 1, 3, 4), (5, 4, 2)], [(3, 4), (2, 4, 1)]], hidden=True)
check.gradients({"vectors": lambda a, b: a @ b}, [[(4,), (4, 3)], [(3, 4), (4,)], [(4,), (4,)]], hidden=True)

# Exercise 6

LOGITS = np.array([[0.5, -1.0, 2.0], [1.0, 3.0, 0.0], [-2.0, 0.0, 1.5], [2.0, 1.0, -1.0]])
WEIGHTS = np.array([[1.0, 5.0, -2.0], [3.0, 0.0, 2.0], [4.0, -1.0, 1.0], [2.0, 2.0, 7.0]])
LARGE = np.array([[1000.0, 998.0, 0.0], [-1000.0, -999.0, -1001.0], [0.0, 0.0, 1.0], [900.0, 900.0, -900.0]])
CLASSES = np.array([2, 0, 2, 1])


def log_of_p(logits, axis=1):
    """The logarithms of the probabilities."""
    shifted = logits - logits.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def p_of(logits, axis=1):
    return np.exp(log_of_p(logits, axis))


def softmax_slopes(logits, axis=1):
    p = p_of(logits, axis)
    return p * (WEIGHTS - (WEIGHTS * p).sum(axis, keepdims=True))


def log_softmax_slopes(logits, axis=1):
    return WEIGHTS - p_of(logits, axis) * WEIGHTS.sum(axis, keepdims=True)


def loss_of(logits):
    return -log_of_p(logits)[np.arange(4), CLASSES].mean()


def loss_slopes(logits):
    return (p_of(logits) - np.eye(3)[CLASSES]) / 4


check = Check("softmax", points=6)
check.cases("""
>>> x, large = MiniTensor(LOGITS), MiniTensor(LARGE)
>>> v, labels = WEIGHTS.copy(), CLASSES.copy()

# softmax along each row
>>> y = x.softmax(1)
>>> y.backward(v)
>>> x.grad
softmax_slopes(LOGITS)

# softmax along each column
>>> x.softmax(0).backward(v)
>>> x.grad
softmax_slopes(LOGITS, 0)

# log_softmax along each row: its value
>>> x.log_softmax(1).data
log_of_p(LOGITS)

# log_softmax along each row: its gradient
>>> x.log_softmax(1).backward(v)
>>> x.grad
log_softmax_slopes(LOGITS)

# log_softmax along each column
>>> y = x.log_softmax(0)
>>> y.data
log_of_p(LOGITS, 0)
>>> y.backward(v)
>>> x.grad
log_softmax_slopes(LOGITS, 0)

# cross_entropy: its value
>>> x.cross_entropy(labels).data
loss_of(LOGITS)

# cross_entropy: its gradient
>>> x.cross_entropy(labels).backward()
>>> x.grad
loss_slopes(LOGITS)

# softmax of large logits
>>> y = large.softmax(1)
>>> y.data
p_of(LARGE)
>>> y.backward(v)
>>> large.grad
softmax_slopes(LARGE)

# log_softmax of large logits
>>> y = large.log_softmax(1)
>>> y.data
log_of_p(LARGE)
>>> y.backward(v)
>>> large.grad
log_softmax_slopes(LARGE)

# cross_entropy of large logits
>>> loss = large.cross_entropy(labels)
>>> loss.data
loss_of(LARGE)
>>> loss.backward()
>>> large.grad
loss_slopes(LARGE)
""")
check.gradients(
    {
        "a.softmax(1)": lambda a: a.softmax(1),
        "a.softmax(0)": lambda a: a.softmax(0),
        "a.log_softmax(1)": lambda a: a.log_softmax(1),
        "a.log_softmax(0)": lambda a: a.log_softmax(0),
        "a.cross_entropy(labels)": lambda a: a.cross_entropy(CLASSES),
    },
    [(4, 3)],
)
check.gradients(
    {"first axis": lambda a: a.softmax(0) * a.log_softmax(0), "last axis": lambda a: a.softmax(-1) + a.log_softmax(-1)},
    [[(2, 3)], [(2, 3, 4)]],
    hidden=True,
)
check.gradients(
    {"eight rows": lambda a: a.cross_entropy(np.array([0, 0, 4, 1, 0, 4, 4, 2])) * a}, [(8, 5)], hidden=True
)
check.gradients(
    {"large logits": lambda a: a.log_softmax(1) + a.softmax(1)}, [between(-900.0, 900.0, (4, 3))], hidden=True
)

# Exercise 7


def values_of(found):
    """PyTorch's max with an axis returns values and places; yours returns the values."""
    return found[0] if isinstance(found, tuple) else found


check = Check("maximum", points=2)
check.cases("""
>>> a = MiniTensor([[1.0, 5.0, 3.0], [6.0, 4.0, 2.0]])

# the largest of all entries
>>> a.max().backward(10.0)
>>> a.grad
array([[0.0, 0.0, 0.0], [10.0, 0.0, 0.0]])

# the largest of each row
>>> a.max(1).backward([1.0, 10.0])
>>> a.grad
array([[0.0, 1.0, 0.0], [10.0, 0.0, 0.0]])

# the largest of each column
>>> a.max(0).backward([1.0, 10.0, 100.0])
>>> a.grad
array([[0.0, 10.0, 100.0], [1.0, 0.0, 0.0]])

# the axis stays
>>> a.max(-1, keepdim=True).backward([[1.0], [10.0]])
>>> a.grad
array([[0.0, 1.0, 0.0], [10.0, 0.0, 0.0]])
""")
check.gradients(
    {
        "a.max()": lambda a: a.max(),
        "a.max(1)": lambda a: values_of(a.max(1)),
        "a.max(0)": lambda a: values_of(a.max(0)),
        "a.max(-1, keepdim=True)": lambda a: values_of(a.max(-1, keepdim=True)),
    },
    [[(2, 3, 2)], [(3, 4)], [(3, 3)]],
)
check.gradients(
    {
        "max, first axis": lambda a: values_of(a.max(0)) * 3.0,
        "max, kept": lambda a: values_of(a.max(-1, keepdim=True)) * 3.0,
    },
    [[(2, 3, 4)], [(2, 2, 2)], [(3, 1, 2)]],
    hidden=True,
)

check = Check("ties", points=2)
check.cases("""
>>> a = MiniTensor([[3.0, 1.0, 3.0], [0.0, 2.0, 2.0]])

# a.max(): equal entries share the cotangent
>>> a.max().backward(8.0)
>>> a.grad
array([[4.0, 0.0, 4.0], [0.0, 0.0, 0.0]])

# a.max(1): the first in each row gets it
>>> a.max(1).backward([8.0, 16.0])
>>> a.grad
array([[8.0, 0.0, 0.0], [0.0, 16.0, 0.0]])

# a.max(0): the first in each column gets it
>>> a = MiniTensor([[3.0, 1.0], [3.0, 2.0]])
>>> a.max(0).backward([8.0, 16.0])
>>> a.grad
array([[8.0, 0.0], [0.0, 16.0]])
""")
check.hidden("""
# three that are equal
>>> a = MiniTensor([[-2.0, -2.0], [-2.0, -5.0]])
>>> a.max().backward()
>>> a.grad
array([[1 / 3, 1 / 3], [1 / 3, 0.0]])

# the axis stays
>>> a = MiniTensor([[-2.0, -2.0], [-2.0, -5.0]])
>>> a.max(0, keepdim=True).backward([[1.0, 2.0]])
>>> a.grad
array([[1.0, 2.0], [0.0, 0.0]])
""")
