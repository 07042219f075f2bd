"""What the exercises of lesson 01 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import numpy as np

from autograder.checks.cases import Check
from autograder.student import between

# Exercise 1


def sum_of_squares(x):
    return (x**2).sum()


def square_of_sum(x):
    return x.sum() ** 2


def two_sums(x):
    return x.sum() * (x**2).sum()  # each slope depends on all entries


def half_of_two_sums(x):
    return two_sums(x) / 2


def product_of_rows(x):
    return (x[0] * x[1]).sum()  # needs the shape of x


def cube_and_squares(x):
    return x.sum() ** 3 + (x**2).sum()


check = Check("numerical_gradient", points=4)
check.cases("""
# a sum of squares
>>> np.round(numerical_gradient(sum_of_squares, np.array([1.0, 2.0, 3.0])), 6)
array([2.0, 4.0, 6.0])

# the shape of the result is that of x
>>> np.shape(numerical_gradient(sum_of_squares, np.ones((2, 3))))
(2, 3)
>>> np.shape(numerical_gradient(sum_of_squares, np.array(2.0)))
()

# the square of a sum of six ones, with the step 0.5: all slopes are 12
>>> np.round(numerical_gradient(square_of_sum, np.ones((2, 3)), 0.5), 6)
np.full((2, 3), 12.0)

# the product of two sums: each slope depends on all entries
>>> np.round(numerical_gradient(two_sums, np.array([1.0, 2.0, -1.0])), 6)
array([10.0, 14.0, 2.0])

# a plain number
>>> np.round(numerical_gradient(two_sums, 2.0), 6)
12.0

# a transposed array; f is called with an array of the shape of x
>>> x = np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]).T
>>> np.round(numerical_gradient(product_of_rows, x), 6)
array([[4.0, 5.0, 6.0], [1.0, 2.0, 3.0]])

# whole numbers, whose array cannot hold x + h or a slope of 5.5
>>> np.round(numerical_gradient(half_of_two_sums, np.array([1, 2, -2])), 6)
array([5.5, 6.5, 2.5])

# the large step 0.5
>>> np.round(numerical_gradient(cube_and_squares, np.array([[1.0, 2.0], [-1.0, 0.5]]), h=0.5), 6)
array([[21.0, 23.0], [17.0, 20.0]])

# x is unchanged when the function returns
>>> x = np.array([1.0, 2.0, 3.0])
>>> gradient = numerical_gradient(sum_of_squares, x)
>>> x
array([1.0, 2.0, 3.0])
""")
check.function(
    "numerical_gradient",
    lambda f, x: np.sum(x**2) + 2 * x * np.sum(x),
    [[two_sums, (3,)], [two_sums, (2, 3)], [two_sums, ()]],
    tolerance=1e-7,
)
check.function(
    "numerical_gradient",
    lambda f, x, h: 3 * np.sum(x) ** 2 + h**2 + 2 * x,
    [[cube_and_squares, (2, 2), 0.5]],
    tolerance=1e-9,
)
check.function(
    "numerical_gradient",
    lambda f, x, h: 3 * np.sum(x) ** 2 + h**2 + 2 * x,
    [[cube_and_squares, (1, 3, 1), 0.25]],
    tolerance=1e-9,
    hidden=True,
)
check.function(
    "numerical_gradient",
    lambda f, x: np.array([x[1] ** 2, 2.0 * x[0] * x[1], 1.0]),
    [[lambda x: x[0] * x[1] ** 2 + x[2], values] for values in ((3,), np.array([2, -3, 5]))],
    tolerance=1e-7,
    hidden=True,
)

# Exercise 2

check = Check("product_and_sum", points=3)
check.cases("""
# at x = 2 and y = 3
>>> np.array(product_and_sum_gradient(2.0, 3.0))
array([64.0, 32.0])

# at x = 1 and y = 0
>>> np.array(product_and_sum_gradient(1.0, 0.0))
array([2.0, 2.0])

# at x = -1 and y = 2
>>> np.array(product_and_sum_gradient(-1.0, 2.0))
array([-18.0, 6.0])
""")
check.handwritten(
    "product_and_sum_gradient",
    lambda x, y: (x * y + x) ** 2,
    [between(0.5, 3.0), between(0.5, 3.0)],
)
check.handwritten(
    "product_and_sum_gradient",
    lambda x, y: (x * y + x) ** 2,
    [between(-3.0, -0.5), between(-5.0, -2.0)],
    hidden=True,
)

# Exercise 3

check = Check("tanh_neuron", points=4)
check.cases("""
# where w * x + b is 0
>>> np.array(tanh_neuron_gradient(2.0, 3.0, -6.0, 0.5))
array([-3.0, -2.0, -1.0, 1.0])

# where w * x + b is 0.75
>>> np.array(tanh_neuron_gradient(0.5, 2.0, -0.25, -1.0))
array([3.902026637681, 0.975506659420, 1.951013318841, -3.270297904775])

# where w * x + b is 1.5
>>> np.array(tanh_neuron_gradient(1.0, 0.5, 1.0, 0.25))
array([0.118389638913, 0.236779277826, 0.236779277826, -1.310296507290])
""")
check.handwritten(
    "tanh_neuron_gradient",
    lambda w, x, b, target: ((w * x + b).tanh() - target) ** 2,
    [between(-1.0, 1.0), between(-1.0, 1.0), between(-0.5, 0.5), between(-2.0, 2.0)],
)
check.handwritten(
    "tanh_neuron_gradient",
    lambda w, x, b, target: ((w * x + b).tanh() - target) ** 2,
    [between(0.5, 1.5), between(1.0, 1.5), between(0.2, 0.6), between(-1.0, 1.0)],
    hidden=True,
)

# Exercise 4

check = Check("relu_chain", points=4)
check.cases("""
# where w * x + b is 0.5, below the target
>>> np.array(relu_neuron_gradient(0.5, 4.0, -1.5, 3.0))
array([-20.0, -2.5, -5.0, 5.0])

# where w * x + b is 2.5, above the target
>>> np.array(relu_neuron_gradient(0.5, 4.0, 0.5, 1.0))
array([12.0, 1.5, 3.0, -3.0])

# where w and x are negative, and w * x + b is 2.5
>>> np.array(relu_neuron_gradient(-1.0, -2.0, 0.5, 1.0))
array([-6.0, -3.0, 3.0, -3.0])

# where w * x + b is -2
>>> np.array(relu_neuron_gradient(0.5, 2.0, -3.0, 1.5))
array([0.0, 0.0, 0.0, 3.0])

# where w * x + b is -2, and the target is negative
>>> np.array(relu_neuron_gradient(0.5, 2.0, -3.0, -1.0))
array([0.0, 0.0, 0.0, -2.0])

# at the corner, where w * x + b is exactly 0
>>> np.array(relu_neuron_gradient(0.5, 4.0, -2.0, 3.0))
array([0.0, 0.0, 0.0, 6.0])
""")
check.handwritten(
    "relu_neuron_gradient",
    lambda w, x, b, target: ((w * x + b).relu() - target) ** 2,
    [
        [between(0.5, 1.5), between(1.0, 3.0), between(0.1, 1.0), between(-4.0, -1.0)],
        [between(0.5, 1.5), between(1.0, 3.0), between(0.1, 1.0), between(6.0, 9.0)],
        [between(0.1, 0.3), between(0.5, 1.0), between(0.1, 0.4), between(2.0, 3.0)],
        [between(0.5, 1.5), between(1.0, 3.0), between(-9.0, -6.0), between(1.0, 4.0)],
    ],
)
check.handwritten(
    "relu_neuron_gradient",
    lambda w, x, b, target: ((w * x + b).relu() - target) ** 2,
    [
        [between(-1.5, -0.5), between(-3.0, -1.0), between(-0.2, 0.2), between(5.0, 9.0)],
        [between(-1.5, -0.5), between(1.0, 3.0), between(-1.0, 0.2), between(-4.0, -1.0)],
    ],
    hidden=True,
)

# Exercise 5

check = Check("relative_error", points=2)
check.cases("""
# the difference is 1, the largest entry 4
>>> relative_error(np.array([1.0, -4.0]), np.array([1.0, -3.0]))
0.25

# the same with the arrays swapped
>>> relative_error(np.array([1.0, -3.0]), np.array([1.0, -4.0]))
0.25

# the difference is 1, the largest entry 8, elsewhere
>>> relative_error(np.array([0.5, 8.0]), np.array([1.5, 8.0]))
0.125

# of the differences 1 and 2 the larger one counts
>>> relative_error(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
0.5

# two zero gradients agree
>>> relative_error(np.array([0.0, 0.0]), np.array([0.0, 0.0]))
0.0

# a gradient that was lost
>>> relative_error(np.array([0.0, 0.0]), np.array([3.0, 0.0]))
1.0

# arrays of the shape ()
>>> relative_error(np.array(2.0), np.array(-2.0))
2.0

# arrays of the shape (2, 2)
>>> relative_error(np.array([[1.0, 2.0], [4.0, 0.0]]), np.array([[1.0, 3.0], [4.0, 0.0]]))
0.25

# a small difference
>>> relative_error(np.array([8.0, 1.0]), np.array([8.0, 1 + 2**-20]))
2**-23

# tiny entries: only the ratio counts
>>> relative_error(np.array([2.0**-200]), np.array([2.0**-199]))
0.5
>>> relative_error(np.array([2.0**-40]), np.array([2.0**-39]))
0.5

# the result is a number, not an array
>>> isinstance(relative_error(np.array([1.0, -4.0]), np.array([1.0, -3.0])), (int, float))
True

# the arrays are left as they are
>>> one, other = np.array([1.0, -4.0]), np.array([1.0, -3.0])
>>> found = relative_error(one, other)
>>> one.tolist(), other.tolist()
([1.0, -4.0], [1.0, -3.0])
""")
check.hidden("""
# small gradients
>>> relative_error(np.array([[1e-6, -8e-6], [2e-6, 0.0]]), np.array([[1e-6, -8e-6], [4e-6, 0.0]]))
0.25

# equal arrays
>>> relative_error(np.array([5.0, 1.0]), np.array([5.0, 1.0]))
0.0
""")
