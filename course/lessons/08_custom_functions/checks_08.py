"""What the exercises of lesson 08 must do, case by case, and on random inputs.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import re

import numpy as np

from autograder.checks.cases import Check

# Exercise 1

ROWS = np.array([[1.0, 2.0], [3.0, 5.0], [0.0, 4.0]])
ARRIVING = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 30.0]])


def gradients_after(output, *leaves):
    """The gradients of leaves after a backward pass from the output of a layer."""
    output.backward(ARRIVING)
    return [None if leaf.grad is None else leaf.grad.data for leaf in leaves]


def left_out(x, w, b):
    """Which of the three gradients the rule of Linear leaves out."""
    node = x.linear(w, b).grad_fn
    return [share is None for share in node.backward(node, ARRIVING)]


def linear_of(x, w, b):
    """Other engines have no `linear`; they compute the same from two operations."""
    return x.linear(w, b) if hasattr(x, "linear") else x @ w + b


check = Check("linear", points=5)
check.cases("""
>>> data, x = MiniTensor(ROWS), MiniTensor(ROWS, requires_grad=True)
>>> frozen = MiniTensor([[1.0, 3.0], [0.5, -2.0]])
>>> w = MiniTensor([[1.0, 3.0], [0.5, -2.0]], requires_grad=True)
>>> b = MiniTensor([1.0, 2.0], requires_grad=True)

# apply sets needs_input_grad (otherwise run the cell above the exercise)
>>> data.linear(w, b).grad_fn.needs_input_grad
(False, True, True)

# the gradient of w, if x is data: x.T @ grad
>>> gradients_after(data.linear(w, b), w)
[ROWS.T @ ARRIVING]

# the gradient of b: a sum over the rows
>>> gradients_after(data.linear(w, b), b)
[array([7.0, 60.0])]

# the gradient of x: grad @ w.T
>>> gradients_after(x.linear(frozen, [0.0, 1.0]), x)
[array([[31.0, -19.5], [62.0, -39.0], [94.0, -58.0]])]

# all three
>>> gradients_after(x.linear(w, b), x, w, b)
[array([[31.0, -19.5], [62.0, -39.0], [94.0, -58.0]]), ROWS.T @ ARRIVING, array([7.0, 60.0])]

# the rule returns a tuple of three
>>> node = x.linear(w, b).grad_fn
>>> shares = node.backward(node, ARRIVING)
>>> type(shares).__name__, len(shares)
("tuple", 3)

# x is data: which of the three are None
>>> left_out(data, w, b)
[True, False, False]

# w and b are data: which of the three are None
>>> left_out(x, frozen, MiniTensor([0.0, 1.0]))
[False, True, True]

# only b requires grad: which of the three are None
>>> left_out(data, frozen, b)
[True, True, False]

# a second call leaves the rule of the first as it is
>>> earlier, later = x.linear(w, b), data.linear(frozen, b)
>>> second = MiniTensor([[7.0, 7.0]]).linear(MiniTensor(np.ones((2, 2)), requires_grad=True), b)
>>> gradients_after(earlier, x, w)
[array([[31.0, -19.5], [62.0, -39.0], [94.0, -58.0]]), ROWS.T @ ARRIVING]
""")
check.gradients({"x.linear(w, b)": linear_of}, [[(4, 3), (3, 2), (2,)], [(1, 2), (2, 5), (5,)]])
check.hidden("""
# where nothing is recorded
>>> with no_grad():
...     y = x.linear(w, b)
>>> y.grad_fn, data.linear(frozen, [0.0, 1.0]).grad_fn
(None, None)
""")
check.gradients(
    {"linear, tanh, linear": lambda x, w, b: linear_of(linear_of(x, w, b).tanh(), w, b)},
    [[(3, 2), (2, 2), (2,)]],
    hidden=True,
)

# Exercise 2


def shape_from_rule(output, shape):
    """The shape of the array that the rule of an output returns; `shape` if it has no rule of its own."""
    share = output.grad_fn.backward(output.grad_fn, np.ones(shape))
    return share.shape if isinstance(share, np.ndarray) else shape


check = Check("abs", points=3)
check.cases("""
# the values
>>> MiniTensor([-2.0, 0.0, 3.0]).abs().data
array([2.0, 0.0, 3.0])

# the gradients of a negative and of a positive number
>>> a = MiniTensor([-2.0, 3.0], requires_grad=True)
>>> a.abs().backward(np.array([1.0, 100.0]))
>>> a.grad.data
array([-1.0, 100.0])

# at 0 the gradient is 0
>>> a = MiniTensor([0.0, 0.0], requires_grad=True)
>>> a.abs().backward(np.array([10.0, -5.0]))
>>> a.grad.data
array([0.0, 0.0])

# a 0 among other numbers
>>> a = MiniTensor([-2.0, 0.0, 3.0], requires_grad=True)
>>> a.abs().backward(np.array([1.0, 10.0, 100.0]))
>>> a.grad.data
array([-1.0, 0.0, 100.0])

# the shape of the gradient that backward returns
>>> shape_from_rule(MiniTensor([-2.0, 0.0, 3.0], requires_grad=True).abs(), (3,))
(3,)

# a second call leaves the rule of the first as it is
>>> a = MiniTensor([-2.0], requires_grad=True)
>>> earlier, later = a.abs(), MiniTensor([3.0], requires_grad=True).abs()
>>> earlier.backward(np.ones(1))
>>> a.grad.data
array([-1.0])
""")
check.gradients({"a.abs()": lambda a: a.abs()}, [[(3,)], [(2, 3)]])
check.hidden("""
# other zeros, and a scalar
>>> zeros, number = MiniTensor(np.zeros((2, 2)), requires_grad=True), MiniTensor(-2.0, requires_grad=True)
>>> zeros.abs().backward(np.array([[-3.0, 2.0], [1.0, 5.0]]))
>>> zeros.grad.data
np.zeros((2, 2))
>>> number.abs().backward(np.array(1.0))
>>> number.grad.data
array(-1.0)
""")
check.gradients({"(a * b).abs() * b": lambda a, b: (a * b).abs() * b}, [[(1,), (1,)], [(2, 1), (3,)]], hidden=True)

# Exercise 3

check = Check("logsumexp", points=5)
check.cases("""
>>> a = MiniTensor([[0.0, 0.0], [np.log(3.0), 0.0]], requires_grad=True)
>>> large = MiniTensor([[1000.0, 1000.0], [0.0, -2000.0]], requires_grad=True)

# dim=1: the logarithms of 1 + 1 and 3 + 1
>>> a.logsumexp(dim=1).data
np.log([2.0, 4.0])

# dim=1, the gradient: the incoming 1 and 10 in shares of 1/2 and 1/2, and of 3/4 and 1/4
>>> a.logsumexp(dim=1).backward(np.array([1.0, 10.0]))
>>> a.grad.data
array([[0.5, 0.5], [7.5, 2.5]])

# dim=0: the logarithms of 1 + 3 and 1 + 1, and the gradient
>>> y = a.logsumexp(dim=0)
>>> y.data
np.log([4.0, 2.0])
>>> y.backward(np.array([1.0, 10.0]))
>>> a.grad.data
array([[0.25, 5.0], [0.75, 5.0]])

# dim=-1 of three dimensions
>>> y = a.reshape(1, 2, 2).logsumexp(dim=-1)
>>> y.data
np.log([[2.0, 4.0]])
>>> y.backward(np.array([[1.0, 10.0]]))
>>> a.grad.data
array([[0.5, 0.5], [7.5, 2.5]])

# shapes: (2, 3) without dim 1, and (4, 1) without dim 0
>>> MiniTensor(np.ones((2, 3))).logsumexp(dim=1).shape, MiniTensor(np.ones((4, 1))).logsumexp(dim=0).shape
((2,), (1,))

# rows of large numbers, (1000, 1000) and (0, -2000): each needs a largest entry of its own
>>> large.logsumexp(dim=1).data
array([1000 + np.log(2.0), 0.0])

# the gradient for these rows
>>> large.logsumexp(dim=1).backward(np.array([10.0, 1.0]))
>>> large.grad.data
array([[5.0, 5.0], [1.0, 0.0]])

# the largest entry along dim=0, and along dim=1, wherever it stands
>>> late = MiniTensor([[0.0, 1000.0], [1000.0, 3000.0]])
>>> late.logsumexp(dim=0).data, late.logsumexp(dim=1).data
(array([1000.0, 3000.0]), array([1000.0, 3000.0]))

# a second call leaves the rule of the first as it is
>>> earlier = a.logsumexp(dim=1)
>>> later = MiniTensor([[5.0, 5.0], [7.0, 8.0]], requires_grad=True).logsumexp(dim=0)
>>> earlier.backward(np.array([1.0, 10.0]))
>>> a.grad.data
array([[0.5, 0.5], [7.5, 2.5]])

# a second backward pass adds the same gradient
>>> y = a.logsumexp(dim=1)
>>> y.backward(np.array([1.0, 10.0]), retain_graph=True)
>>> y.backward(np.array([1.0, 10.0]))
>>> a.grad.data
array([[1.0, 1.0], [15.0, 5.0]])
""")
check.gradients(
    {
        "a.logsumexp(dim=1)": lambda a: a.logsumexp(dim=1),
        "a.logsumexp(dim=0)": lambda a: a.logsumexp(dim=0),
        "a.logsumexp(dim=-1)": lambda a: a.logsumexp(dim=-1),
    },
    [[(2, 3)], [(4, 2)], [(2, 3, 2)]],
)
check.gradients(
    {
        "dim 0 of three": lambda a: a.logsumexp(dim=0),
        "dim -1 of three": lambda a: a.logsumexp(dim=-1),
        "the middle of three": lambda a: a.logsumexp(dim=1) * 2,
    },
    [(2, 3, 2)],
    hidden=True,
)
check.hidden("""
# numbers far below 0
>>> low = MiniTensor([[-5000.0], [-5001.0]], requires_grad=True)
>>> y = low.logsumexp(dim=0)
>>> y.data
array([-5000 + np.log1p(np.exp(-1.0))])
>>> y.backward(np.array([2.0]))
>>> low.grad.data.sum()
2.0
""")

# Exercise 4


def straight_through(x):
    """x, rounded; its rule returns the gradient unchanged, where the slope is 0."""

    class Rounded(Function):
        @staticmethod
        def forward(ctx, a):
            return np.round(a)

        @staticmethod
        def backward(ctx, grad):
            return grad

    return Rounded.apply(x)


check = Check("jacobians", points=5)
check.cases("""
>>> x = MiniTensor([1.0, 3.0], requires_grad=True)
>>> a = MiniTensor([[1.0, 2.0]], requires_grad=True)
>>> b = MiniTensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]], requires_grad=True)

# x * x
>>> analytical_jacobian(lambda x: x * x, (x,), 0)
array([[2.0, 0.0], [0.0, 6.0]])

# a @ b, for the 2 entries of a and the 3 of the output: a row for each entry of the input
>>> analytical_jacobian(lambda a, b: a @ b, (a, b), 0)
array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])

# a @ b, for the 6 entries of b
>>> analytical_jacobian(lambda a, b: a @ b, (a, b), 1)
np.concatenate([1.0 * np.eye(3), 2.0 * np.eye(3)])

# x.T of shape (2, 2): the entries in the order of a flat array
>>> analytical_jacobian(lambda x: x.T, (MiniTensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),), 0)
array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])

# the output depends only on another input: zeros
>>> analytical_jacobian(lambda x, s: s * 2, (x, MiniTensor(3.0, requires_grad=True)), 0)
array([[0.0], [0.0]])

# one of the inputs does not require grad
>>> analytical_jacobian(lambda f, x: f * x, (MiniTensor([5.0, 7.0]), x), 1)
array([[5.0, 0.0], [0.0, 7.0]])

# it is what backward says, not the slope: rounding, whose rule returns the gradient unchanged
>>> analytical_jacobian(straight_through, (x,), 0)
array([[1.0, 0.0], [0.0, 1.0]])

# gradients that the inputs have already stay as they are
>>> a.grad, b.grad = MiniTensor([[5.0, 6.0]]), MiniTensor(np.ones((2, 3)))
>>> table = analytical_jacobian(lambda a, b: a @ b, (a, b), 0)
>>> [None if each.grad is None else each.grad.data for each in (a, b)]
[array([[5.0, 6.0]]), np.ones((2, 3))]

# a .grad that is None stays None
>>> table = analytical_jacobian(lambda a, b: a @ b, (a, b), 0)
>>> [None if each.grad is None else each.grad.data for each in (a, b)]
[None, None]

# the numbers of the inputs stay as they are
>>> table = analytical_jacobian(lambda x: x * x, (x,), 0)
>>> x.data
array([1.0, 3.0])
""")
check.hidden("""
# sums, and scalars
>>> analytical_jacobian(lambda x: x.sum(dim=1), (MiniTensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),), 0)
array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
>>> analytical_jacobian(lambda x: x**3, (MiniTensor(2.0, requires_grad=True),), 0)
array([[12.0]])
>>> analytical_jacobian(lambda x, s: s * 2, (x, MiniTensor([3.0], requires_grad=True)), 0)
array([[0.0], [0.0]])
""")

# Exercise 5


def with_rule(rule):
    """tanh, with the rule rule(grad, output)."""

    def function(x):
        class Tanh(Function):
            @staticmethod
            def forward(ctx, a):
                ctx.save_for_backward(np.tanh(a))
                return np.tanh(a)

            @staticmethod
            def backward(ctx, grad):
                (output,) = ctx.saved_tensors
                return rule(grad, output)

        return Tanh.apply(x)

    return function


def exact_rule(x):
    return with_rule(lambda grad, output: grad * (1 - output**2))(x)


def negative(x):
    return with_rule(lambda grad, output: -grad * (1 - output**2))(x)


def unchanged_gradient(x):
    return with_rule(lambda grad, output: grad)(x)


def half_right(x):
    """0 in place of the slope where x is negative."""
    return with_rule(lambda grad, output: np.where(output > 0, grad * (1 - output**2), 0.0))(x)


def canceling(x):
    """The first slope is too large by 0.1, the second too small."""
    return with_rule(lambda grad, output: grad * (1 - output**2 + np.array([0.1, -0.1, 0.0])))(x)


def not_a_number(x):
    return with_rule(lambda grad, output: grad * np.nan)(x)


def too_large_by(factor):
    return with_rule(lambda grad, output: grad * (1 - output**2) * factor)


def with_slopes(slopes, rule_slopes):
    """A function a * slopes, whose rule multiplies by rule_slopes."""

    def function(a):
        class Scaled(Function):
            @staticmethod
            def forward(ctx, a):
                return a * np.array(slopes)

            @staticmethod
            def backward(ctx, grad):
                return grad * np.array(rule_slopes)

        return Scaled.apply(a)

    return function


def slopes_told(slopes, function, inputs):
    """Those of the slopes that are found in the text of the error."""
    try:
        gradcheck(function, inputs)
    except GradcheckError as error:
        told = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", str(error))]
        return [slope for slope in slopes if any(abs(number - slope) < 1e-3 for number in told)]
    return "no GradcheckError"


check = Check("gradcheck", points=5)
check.cases("""
>>> x = MiniTensor([[0.5, -1.0, 2.0]], requires_grad=True)
>>> w = MiniTensor([[1.5], [0.2], [-0.7]], requires_grad=True)
>>> fixed, other = MiniTensor([[2.0, 3.0, 4.0]]), MiniTensor([[2.0, 3.0, 4.0]], requires_grad=True)
>>> one = MiniTensor([1.0], requires_grad=True)

# a right rule
>>> gradcheck(exact_rule, (x,))
True

# a slope of -2, which is right
>>> gradcheck(lambda x: x * -2, (x,))
True

# two inputs that require grad
>>> gradcheck(lambda x, w: (x @ w).tanh(), (x, w))
True

# no input requires grad
>>> gradcheck(lambda x: x * 2, (fixed,))
ValueError: gradcheck expects at least one input tensor to require gradient*

# numbers that are too large
>>> gradcheck(unchanged_gradient, (x,))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# numbers that are too small
>>> gradcheck(negative, (x,))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# only one of three entries is wrong
>>> gradcheck(half_right, (x,))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# one entry is too large, and another too small by as much
>>> gradcheck(canceling, (x,))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# slopes of 1000 and 1, of which the second is 1.5 for the rule: each entry has a tolerance of its own
>>> gradcheck(with_slopes([1000.0, 1.0], [1000.0, 1.5]), (MiniTensor([1.0, 2.0], requires_grad=True),))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# the second of two inputs is wrong
>>> gradcheck(lambda x, w: x @ unchanged_gradient(w), (x, w))
GradcheckError: Jacobian mismatch for output 0 with respect to input 1*

# the first of two wrong inputs is named
>>> gradcheck(lambda a, b: negative(a) * negative(b), (x, other))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# an input that does not require grad is not checked
>>> gradcheck(lambda f, x: negative(f) * x, (fixed, x))
True

# but it counts: the wrong input stands at position 1
>>> gradcheck(lambda f, x: negative(x) * f, (fixed, x))
GradcheckError: Jacobian mismatch for output 0 with respect to input 1*

# NaN in the analytical table
>>> gradcheck(not_a_number, (x,))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# NaN in both tables
>>> gradcheck(lambda x: x * np.nan, (x,))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# atol=1.0 allows it
>>> gradcheck(half_right, (x,), atol=1.0)
True

# 1.0005 for a slope of 1: the defaults allow 1e-5 + 1e-3
>>> gradcheck(with_slopes([1.0], [1.0005]), (one,))
True

# rtol=0.01 allows half a percent
>>> gradcheck(too_large_by(1.005), (x,), rtol=0.01)
True

# rtol=0.6 and a rule that is twice too large: the tolerance belongs to the numerical number, not to the analytical
>>> gradcheck(too_large_by(2), (x,), rtol=0.6)
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# 1.15 for a slope of 1, with atol=0.1 and rtol=0.1: the tolerances add up
>>> gradcheck(with_slopes([1.0], [1.15]), (one,), atol=0.1, rtol=0.1)
True

# 0 for a slope of 3e-5: the tolerance is 1e-5 + 1e-3 * 3e-5
>>> gradcheck(with_slopes([3e-5], [0.0]), (one,))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# eps=0.5: the numerical slope of x**3 at 1 is then 3.25
>>> gradcheck(lambda x: x**3, (one,), eps=0.5)
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# the text of the error holds both tables: the slopes 1 and 5
>>> slopes_told([1.0, 5.0], with_slopes([1.0], [5.0]), (one,))
[1.0, 5.0]
""")
check.hidden("""
# other tolerances
>>> gradcheck(too_large_by(1.005), (x,))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*
>>> gradcheck(with_rule(lambda grad, output: grad * (1 - output**2) + 1e-3), (x,), atol=0.01)
True

# NaN in a part of a table
>>> gradcheck(with_rule(lambda grad, output: grad * np.where(output > 0.9, np.nan, 1 - output**2)), (x,))
GradcheckError: Jacobian mismatch for output 0 with respect to input 0*

# other inputs
>>> gradcheck(lambda f, y: f * unchanged_gradient(y), (fixed, x))
GradcheckError: Jacobian mismatch for output 0 with respect to input 1*
>>> gradcheck(lambda a: a.exp().sum(dim=0).log(), (MiniTensor([[0.5, 1.0], [2.0, -1.0]], requires_grad=True),))
True

# the inputs stay as they were
>>> x.grad = MiniTensor([[1.0, 2.0, 3.0]])
>>> gradcheck(lambda x: x * 2, (x,))
True
>>> x.grad.data, x.data
(array([[1.0, 2.0, 3.0]]), array([[0.5, -1.0, 2.0]]))
""")

# Exercise 6

check = Check("quantize", points=3)
check.cases("""
>>> a = MiniTensor([0.3, -0.9, 1.2], requires_grad=True)

# the nearest multiples of 0.5
>>> a.quantize(0.5).data
array([0.5, -1.0, 1.0])

# the nearest multiples of 0.25
>>> a.quantize(0.25).data
array([0.25, -1.0, 1.25])

# the input stays as it is
>>> y = a.quantize(0.5)
>>> a.data
array([0.3, -0.9, 1.2])

# the gradient passes unchanged, however large it is
>>> a.quantize(0.5).backward(np.array([0.3, -10.0, 1e9]))
>>> None if a.grad is None else a.grad.data
array([0.3, -10.0, 1e9])
""")
check.hidden("""
# another step, and other numbers
>>> a = MiniTensor([[0.26, -7.4], [31.2, 0.0]], requires_grad=True)
>>> y = a.quantize(0.125)
>>> y.data
array([[0.25, -7.375], [31.25, 0.0]])
>>> (y * y).backward(np.array([[1.0, -2.0], [0.5, 3.0]]))
>>> a.grad.data
array([[0.5, 29.5], [31.25, 0.0]])

# a second path to the input
>>> (a.quantize(0.5) * a).sum().backward()
>>> a.grad.data
array([0.8, -1.9, 2.2])
""")
