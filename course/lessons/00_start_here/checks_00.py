"""What the exercise of lesson 00 must do, case by case.

A case is a few steps, each after `>>>`, and what is right after them. This is a file to read: a copy that you change
changes no points. For instructors, docs/authors.md says more, under "Cases".
"""

from autograder.checks.cases import Check
from autograder.student import between

check = Check("product_rule", points=1)
check.cases("""
# the shares in 2 * 3, where 1 arrives
>>> share_of_a, share_of_b = product_rule(2.0, 3.0, 1.0)
>>> share_of_a, share_of_b
(3.0, 2.0)

# the shares in 2 * 3, where 10 arrives
>>> share_of_a, share_of_b = product_rule(2.0, 3.0, 10.0)
>>> share_of_a, share_of_b
(30.0, 20.0)

# a negative factor
>>> share_of_a, share_of_b = product_rule(-2.0, 3.0, 1.0)
>>> share_of_a, share_of_b
(3.0, -2.0)

# a factor that is 0
>>> share_of_a, share_of_b = product_rule(0.0, 3.0, 1.0)
>>> share_of_a, share_of_b
(3.0, 0.0)

# the gradients of a product of MiniTensors
>>> a, b = MiniTensor(2.0), MiniTensor(3.0)
>>> (a * b).backward()
>>> a.grad, b.grad
(3.0, 2.0)
""")
check.gradients({"a * b": lambda a, b: a * b}, [between(-3.0, 3.0), between(-3.0, 3.0)])
check.gradients(
    {"a * (b * a)": lambda a, b: a * (b * a)},
    [between(-3.0, 3.0), between(-3.0, 3.0)],
    hidden=True,
)
