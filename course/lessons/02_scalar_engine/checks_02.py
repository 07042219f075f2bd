"""What the exercises of lesson 02 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

from autograder.checks.cases import Check
from autograder.student import between


def names_of(nodes, **named):
    """The names of these nodes, in alphabetical order; "another" for a node that is none of them."""
    return sorted(next((name for name, one in named.items() if one is node), "another") for node in nodes)


# Exercise 1

check = Check("add_and_multiply", points=4)
check.cases("""
>>> a, b = MiniTensor(2.0), MiniTensor(3.0)

# the values
>>> (a + b).data
5.0
>>> (a * b).data
6.0

# the inputs are a and b themselves
>>> names_of((a + b).inputs, a=a, b=b)
["a", "b"]
>>> names_of((a * b).inputs, a=a, b=b)
["a", "b"]

# the operations, which pictures show
>>> (a + b).operation, (a * b).operation
("+", "*")

# the gradients of a sum
>>> (a + b).backward()
>>> a.grad, b.grad
(1.0, 1.0)

# the gradients of a product
>>> (a * b).backward()
>>> a.grad, b.grad
(3.0, 2.0)

# 10 arrives at a sum
>>> (a + b).backward(10.0)
>>> a.grad, b.grad
(10.0, 10.0)

# 10 arrives at a product
>>> (a * b).backward(10.0)
>>> a.grad, b.grad
(30.0, 20.0)

# a number that is used twice
>>> (a + a).backward()
>>> a.grad
2.0
>>> (b * b).backward()
>>> b.grad
6.0

# a product with 0
>>> zero = MiniTensor(0.0)
>>> (a * zero).backward()
>>> a.grad, zero.grad
(0.0, 2.0)

# plain numbers
>>> (a + 1).data, (1 + a).data, (a * 4).data, (4 * a).data
(3.0, 3.0, 8.0, 8.0)
>>> (4 * a).backward()
>>> a.grad
4.0
""")
check.gradients(
    {"a + b": lambda a, b: a + b, "a * b": lambda a, b: a * b},
    [between(-3.0, 3.0), between(-3.0, 3.0)],
)
check.gradients(
    {
        "1 + a + (b + 2) + a": lambda a, b: 1 + a + (b + 2) + a,
        "2 * a * (b * 3) * a": lambda a, b: 2 * a * (b * 3) * a,
    },
    [between(-3.0, 3.0), between(-3.0, 3.0)],
    hidden=True,
)

# Exercise 2

check = Check("subtract_and_divide", points=6)
check.cases("""
>>> a, b = MiniTensor(6.0), MiniTensor(3.0)

# the values
>>> (a - b).data
3.0
>>> (a / b).data
2.0

# the gradients of a difference
>>> (a - b).backward()
>>> a.grad, b.grad
(1.0, -1.0)

# the gradients of a quotient
>>> (a / b).backward()
>>> a.grad, b.grad
(1 / 3, -2 / 3)

# 10 arrives at a difference
>>> (a - b).backward(10.0)
>>> a.grad, b.grad
(10.0, -10.0)

# 10 arrives at a quotient
>>> (a / b).backward(10.0)
>>> a.grad, b.grad
(10 / 3, -20 / 3)

# 2 - a
>>> (2 - a).data
-4.0
>>> (2 - a).backward()
>>> a.grad
-1.0

# 12 / a
>>> (12 / a).data
2.0
>>> (12 / a).backward()
>>> a.grad
-1 / 3
""")
check.gradients(
    {"a - b": lambda a, b: a - b, "a / b": lambda a, b: a / b},
    [between(-3.0, 3.0), between(0.5, 3.0)],
)
check.gradients({"2 - a": lambda a: 2 - a, "1 / a": lambda a: 1 / a}, [between(0.5, 3.0)])
check.gradients(
    {
        "5 - (a - b - 1)": lambda a, b: 5 - (a - b - 1),
        "3 / (a / b / 2)": lambda a, b: 3 / (a / b / 2),
    },
    [between(-3.0, -0.5), between(-3.0, -0.5)],
    hidden=True,
)

# Exercise 3

check = Check("power", points=3)
check.cases("""
>>> a = MiniTensor(4.0)

# the values
>>> (a**3).data, (a**0.5).data
(64.0, 2.0)

# the only input is a itself: the exponent is a plain number
>>> names_of((a**3).inputs, a=a)
["a"]

# one input, one share
>>> len((a**3).rule(1.0))
1

# a whole exponent
>>> (a**3).backward()
>>> a.grad
48.0

# another exponent
>>> (a**2).backward()
>>> a.grad
8.0

# a negative exponent
>>> (a**-1).backward()
>>> a.grad
-1 / 16

# exponents that are not whole
>>> (a**0.5).backward()
>>> a.grad
0.25
>>> b = MiniTensor(4.0)
>>> (b**1.5).backward()
>>> b.grad
3.0

# a negative number
>>> a = MiniTensor(-2.0)
>>> (a**2).backward()
>>> a.grad
-4.0

# 10 arrives at a power
>>> (a**2).backward(10.0)
>>> a.grad
80.0

# a**1 where a is 0
>>> a = MiniTensor(0.0)
>>> (a**1).backward()
>>> a.grad
1.0
""")
check.gradients(
    {"a**3": lambda a: a**3, "a**-2": lambda a: a**-2},
    [[between(-3.0, -0.5)], [between(0.5, 3.0)]],
)
check.gradients({"a**0.5": lambda a: a**0.5}, [between(0.5, 3.0)])
check.gradients({"a**-1.5": lambda a: a**-1.5}, [between(0.5, 3.0)], hidden=True)

# Exercise 4

TANH = 0.46211715726000975  # of 0.5
EXP = 1.6487212707001282  # of 0.5
check = Check("functions", points=6)
check.cases("""
>>> a = MiniTensor(0.5)

# the values
>>> a.tanh().data
TANH
>>> a.exp().data
EXP

# one operation each, with the input a itself
>>> names_of(a.tanh().inputs, a=a)
["a"]
>>> names_of(a.exp().inputs, a=a)
["a"]

# the names of the operations, which pictures show
>>> a.tanh().operation, a.exp().operation
("tanh", "exp")

# the gradient of tanh
>>> a.tanh().backward()
>>> a.grad
1 - TANH**2

# the gradient of exp
>>> a.exp().backward()
>>> a.grad
EXP

# 10 arrives
>>> a.tanh().backward(10.0)
>>> a.grad
10 * (1 - TANH**2)
>>> b = MiniTensor(0.5)
>>> b.exp().backward(10.0)
>>> b.grad
10 * EXP

# a rule that is called twice
>>> result = a.tanh()
>>> result.backward()
>>> result.backward()
>>> a.grad
2 * (1 - TANH**2)
>>> b = MiniTensor(0.5)
>>> result = b.exp()
>>> result.backward()
>>> result.backward()
>>> b.grad
2 * EXP

# a rule belongs to one result
>>> one, later = a.tanh(), MiniTensor(-1.0).tanh()
>>> one.backward()
>>> a.grad
1 - TANH**2
>>> b = MiniTensor(0.5)
>>> one, later = b.exp(), MiniTensor(-1.0).exp()
>>> one.backward()
>>> b.grad
EXP
""")
check.gradients(
    {"a.tanh()": lambda a: a.tanh(), "a.exp()": lambda a: a.exp()},
    [[between(0.3, 2.0)], [between(-2.0, -0.3)]],
)
check.gradients(
    {"tanh, larger inputs": lambda a: a.tanh(), "exp, larger inputs": lambda a: a.exp()},
    [[between(2.0, 4.0)], [between(-4.0, -2.0)]],
    hidden=True,
)

# Exercise 5


def doubled(x, times):
    """The result of so many additions, in each of which the previous result is added to itself."""
    for _ in range(times):
        x = x + x
    return x


def looks(doublings):
    """How often topological_order looks at the inputs of a node, in a graph of that many doublings."""
    counted = []

    class Counted(MiniTensor):
        @property
        def inputs(self):
            counted.append(self)
            return self.__dict__["sources"]

        @inputs.setter
        def inputs(self, sources):
            self.__dict__["sources"] = sources

    node = Counted(1.0)
    for number in range(doublings):
        node = Counted(2.0 ** (number + 1), (node, node), "+")
    topological_order(node)
    return len(counted)


check = Check("topological_order", points=3)
check.cases("""
>>> a, b = MiniTensor(1.0), MiniTensor(2.0)
>>> c = a + b
>>> d = c + a

# a list of the nodes themselves
>>> type(topological_order(c)).__name__
"list"
>>> names_of(topological_order(c), a=a, b=b, c=c)
["a", "b", "c"]

# a chain
>>> [node.data for node in topological_order(-(-c))]
got in ([3.0, -3.0, 3.0, 1.0, 2.0], [3.0, -3.0, 3.0, 2.0, 1.0])

# c + d, where c = a + b and d = c + a
>>> [node.data for node in topological_order(c + d)]
got in ([7.0, 4.0, 3.0, 1.0, 2.0], [7.0, 4.0, 3.0, 2.0, 1.0])

# d + c, where c = a + b and d = c + a
>>> [node.data for node in topological_order(d + c)]
got in ([7.0, 4.0, 3.0, 1.0, 2.0], [7.0, 4.0, 3.0, 2.0, 1.0])

# a leaf alone
>>> [node.data for node in topological_order(a)]
[1.0]

# nodes of equal value are still different nodes
>>> [node.data for node in topological_order(MiniTensor(1.0) * MiniTensor(1.0))]
[1.0, 1.0, 1.0]

# how many nodes the orders of a, of b, and of a again have
>>> len(topological_order(a)), len(topological_order(b)), len(topological_order(a))
(1, 1, 1)

# how often it looks at inputs, in a graph of 11 nodes
>>> looks(doublings=10)
got < 1000

# 16 doublings
>>> [node.data for node in topological_order(doubled(a, 16))]
[2.0**number for number in range(16, -1, -1)]
""")
check.hidden("""
# a larger graph
>>> e = d + b
>>> [node.data for node in topological_order(a + (c + (d + e)))]
got[:6] == [14.0, 13.0, 10.0, 6.0, 4.0, 3.0] and sorted(got[6:]) == [1.0, 2.0]
>>> [node.data for node in topological_order(((e + d) + c) + a)]
got[:6] == [14.0, 13.0, 10.0, 6.0, 4.0, 3.0] and sorted(got[6:]) == [1.0, 2.0]

# 200 doublings
>>> len(topological_order(doubled(a, 200)))
201
""")

# Exercise 6


def shared_early(a, b):
    c = a + b
    d = c + a
    return c + d


def shared_late(a, b):
    c = a + b
    d = c + a
    return d + c


check = Check("backward", points=5)
check.cases("""
>>> a, b = MiniTensor(2.0), MiniTensor(3.0)

# a sum and a product
>>> ((a + b) * a).backward()
>>> a.grad, b.grad
(7.0, 2.0)

# u is made from w, w from v, and v from the leaves x and y
>>> x, y = MiniTensor(1.0), MiniTensor(2.0)
>>> v = MiniTensor(3.0, (x, y), "v", lambda grad: (5 * grad, 11 * grad))
>>> w = MiniTensor(4.0, (v,), "w", lambda grad: (7 * grad,))
>>> u = MiniTensor(5.0, (w,), "u", lambda grad: (3 * grad,))
>>> u.backward()
>>> x.grad, y.grad
(105.0, 231.0)

# 3 arrives at -(a * b)
>>> (-(a * b)).backward(3.0)
>>> a.grad, b.grad
(-9.0, -6.0)

# a is used twice
>>> (a + a + b).backward()
>>> a.grad, b.grad
(2.0, 1.0)

# c + d, where c = a + b and d = c + a
>>> shared_early(a, b).backward()
>>> a.grad, b.grad
(3.0, 2.0)

# d + c, where c = a + b and d = c + a
>>> shared_late(a, b).backward()
>>> a.grad, b.grad
(3.0, 2.0)

# the gradients are added to .grad, whatever it was
>>> a.grad = 100.0
>>> (a * b).backward()
>>> a.grad, b.grad
(103.0, 2.0)

# a share of 0
>>> x = MiniTensor(-1.0)
>>> x.relu().backward()
>>> x.grad
0.0
""")
check.gradients(
    {
        "a + a + b": lambda a, b: a + a + b,
        "(a * b + a) * b": lambda a, b: (a * b + a) * b,
        "c + d, where c = a + b and d = c + a": shared_early,
        "d + c, where c = a + b and d = c + a": shared_late,
    },
    [between(-3.0, 3.0), between(-3.0, 3.0)],
)
check.gradients(
    {
        "c + relu(a) + c, where c = relu(a) + b": lambda a, b: (lambda c: (c + a.relu()) + c)(a.relu() + b),
        "(a + b) / a + b": lambda a, b: (a + b) / a + b,
    },
    [[between(0.5, 3.0), between(0.5, 3.0)], [between(-3.0, -0.5), between(0.5, 3.0)]],
    hidden=True,
)


def noting(arrived):
    """A rule of a sum that notes what arrives."""

    def rule(grad):
        arrived.append(grad)
        return grad, grad

    return rule


check = Check("backward_once", points=2, seconds=2)
check.cases("""
>>> a, b = MiniTensor(2.0), MiniTensor(2.0)

# a rule is called once, for all its inputs together
>>> arrived = []
>>> MiniTensor(4.0, (a, b), "+", noting(arrived)).backward()
>>> arrived
[1.0]
>>> a.grad, b.grad
(1.0, 1.0)

# what arrives at c in (c + c).backward(), all at once
>>> arrived = []
>>> c = MiniTensor(4.0, (a, b), "+", noting(arrived))
>>> (c + c).backward()
>>> arrived
[2.0]
>>> a.grad, b.grad
(2.0, 2.0)

# two nodes with the value 2 are still two nodes
>>> (a + b + a).backward(3.0)
>>> a.grad, b.grad
(6.0, 3.0)

# the .grad of a node in between and of the output
>>> c = a + b
>>> d = c + a
>>> d.backward(3.0)
>>> c.grad, d.grad
(3.0, 3.0)

# a second call adds the same once more
>>> c = a + b
>>> d = c + a
>>> d.backward(3.0)
>>> d.backward(3.0)
>>> a.grad, b.grad
(12.0, 6.0)
>>> c.grad, d.grad
(6.0, 6.0)

# an incoming gradient of 0
>>> (a + a).backward(0.0)
>>> a.grad
0.0

# what a call adds after another one that ended in an error
>>> broken = MiniTensor(1.0, (a,), "broken", lambda grad: (1 / 0,))
>>> (a + broken).backward()
ZeroDivisionError
>>> a.grad = 0.0
>>> (a + a).backward()
>>> a.grad
2.0

# sixty doublings
>>> doubled(a, 60).backward()
>>> a.grad
2.0**60
""")
check.hidden("""
# further calls
>>> y = doubled(a, 60)
>>> y.backward()
>>> y.backward()
>>> a.grad
2.0**61
>>> y.backward(gradient=-2.0)
>>> a.grad
0.0
""")
