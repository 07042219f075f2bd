"""What the exercises of lesson 03 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import math
import sys

from autograder.checks.cases import Check
from autograder.student import between

# Exercises 1 and 2

RIGHT, WRONG, NAN = "the right gradient", "a wrong gradient", "nan, which shows nothing"


def evidence(backward, expression, *numbers):
    """What a backward pass finds at the first of these numbers at which it goes wrong, and the number of operations.

    The expression is computed once for each number: it could give another graph at each call.
    """
    for number in numbers:
        leaf = MiniTensor(number)
        output = expression(leaf)
        assert isinstance(output, MiniTensor), f"the expression must give a MiniTensor, not {output!r}"
        nodes = recursive_order(output)
        every_path(output)
        right = leaf.grad
        for node in nodes:
            node.grad = 0.0
        backward(output)
        if abs(right - leaf.grad) > 1e-9:
            break
    found = NAN if math.isnan(right) else WRONG if abs(right - leaf.grad) > 1e-9 else RIGHT
    return found, sum(node.rule is not None for node in nodes)


check = Check("breaks_overwriting")
check.cases("""
# what overwriting finds, and the number of operations: up to six earn half the points
>>> evidence(overwriting, breaks_overwriting, 2.0, 1.7)
got[0] == "a wrong gradient" and got[1] <= 6

# one operation is enough
>>> evidence(overwriting, breaks_overwriting, 2.0, 1.7)
("a wrong gradient", 1)
""")

check = Check("breaks_pushing_again")
check.cases("""
# what pushing_again finds, and the number of operations: up to six earn half the points
>>> evidence(pushing_again, breaks_pushing_again, 2.0, 1.7)
got[0] == "a wrong gradient" and got[1] <= 6

# two operations are enough
>>> evidence(pushing_again, breaks_pushing_again, 2.0, 1.7)
got[0] == "a wrong gradient" and got[1] <= 2
""")

check = Check("breaks_nearest_first")
check.cases("""
# what nearest_first finds, and the number of operations: up to eight earn half the points (1.5 points)
>>> evidence(nearest_first, breaks_nearest_first, 2.0, 0.8)
got[0] == "a wrong gradient" and got[1] <= 8

# three operations are enough (1.5 points)
>>> evidence(nearest_first, breaks_nearest_first, 2.0, 0.8)
got[0] == "a wrong gradient" and got[1] <= 3
""")

# Exercise 3


def names_of(nodes, **named):
    """The names of these nodes; "another" for a node that is none of them."""
    return [next((name for name, one in named.items() if one is node), "another") for node in nodes]


check = Check("valid_order", points=3)
check.cases("""
>>> a = MiniTensor(2.0)
>>> b = -a
>>> c = -b
>>> d = b + c

# each node comes before its inputs
>>> is_topological([d, c, b, a])
True

# all inputs come before their nodes
>>> is_topological([a, b, c, d])
False

# c comes after its input b
>>> is_topological([d, b, c, a])
False

# b comes after its input a, and c is between them
>>> is_topological([d, a, c, b])
False

# d comes after c, its second input
>>> is_topological([c, d, b, a])
False

# the input a of the last node is missing
>>> is_topological([d, c, b])
False

# d alone: both inputs are missing
>>> is_topological([d])
False

# the input b is missing, and its own input is there
>>> is_topological([c, a])
False

# a node twice
>>> is_topological([d, c, c, b, a])
False

# an empty list breaks no rule
>>> is_topological([])
True

# a leaf alone
>>> is_topological([a])
True

# two leaves may come in either order
>>> x, y = MiniTensor(1.0), MiniTensor(3.0)
>>> s = x + y
>>> t = s * x
>>> is_topological([t, s, y, x]), is_topological([t, s, x, y])
(True, True)

# a node that is used twice by one operation
>>> is_topological([a + a, a])
True

# two results
>>> is_topological([b + b, c, b, a])
True

# a second call for the same list
>>> order = [d, c, b, a]
>>> is_topological(order), is_topological(order)
(True, True)

# the list after the call
>>> order = [d, c, b, a]
>>> is_topological(order)
anything
>>> names_of(order, a=a, b=b, c=c, d=d)
["d", "c", "b", "a"]
""")
check.hidden("""
# further orders
>>> x, y = MiniTensor(1.0), MiniTensor(2.0)
>>> s = x + y
>>> t = s * x
>>> is_topological([t, s, x, y]), is_topological([t, s, y, x])
(True, True)
>>> is_topological([t, x, s, y]), is_topological([s, t, x, y]), is_topological([x, y, s, t])
(False, False, False)
""")

# Exercise 4


def reused_in_between(w):
    b = -w[0]
    return b + -b


check = Check("contributions", points=3)
check.cases("""
# w[0] * w[1] + w[2] / 2 at 3
>>> contributions(lambda w: w[0] * w[1] + w[2] / 2, 3.0, 3)
[3.0, 3.0, 0.5]

# one use
>>> contributions(lambda w: 4 * w[0], 5.0, 1)
[4.0]

# a leaf that is not used
>>> contributions(lambda w: 4 * w[0] - w[1] * 2, -1.0, 3)
[4.0, -2.0, 0.0]

# a leaf that is used twice
>>> contributions(lambda w: w[0] * w[0] + w[1], 2.0, 2)
[4.0, 1.0]

# b + -b, where b = -w[0]
>>> contributions(reused_in_between, 2.0, 1)
[0.0]

# a small share in a large sum
>>> contributions(lambda w: w[0] * w[1] + 1e9, 3.0, 2)
[3.0, 3.0]

# a second call with the same expression
>>> square = lambda w: w[0] * w[1]
>>> contributions(square, 3.0, 2)
[3.0, 3.0]
>>> contributions(square, 3.0, 2)
[3.0, 3.0]

# how many leaves the expression gets
>>> seen = []
>>> contributions(lambda w: (seen.append(len(w)), w[0] * 2)[1], 1.0, 4)
anything
>>> sorted(set(seen))
[4]
""")
check.hidden("""
# a cube, exp, and a second call
>>> contributions(lambda w: (w[0] ** 3 * w[1]).exp(), 0.5, 2)
[0.375 * math.exp(0.0625), 0.125 * math.exp(0.0625)]
>>> contributions(lambda w: w[0] * w[0] + w[1], 2.0, 2)
[4.0, 1.0]
>>> contributions(lambda w: w[0] * w[0] + w[1], 2.0, 2)
[4.0, 1.0]
""")

# Exercise 5


def found_and_tried(limit, most):
    """What longest_chain finds for a backward pass that survives chains of up to `limit` operations, and the longest
    chain that it tried.
    """
    lengths = [0]

    def backward(output, gradient=1.0):
        length = 0
        while output.inputs:
            output, length = output.inputs[0], length + 1
        lengths.append(length)
        if length > limit:
            raise RecursionError("maximum recursion depth exceeded")
        output.grad += gradient * (-1) ** length

    return longest_chain(backward, most), max(lengths)


def found(limit, most):
    return found_and_tried(limit, most)[0]


def tried(limit, most):
    return found_and_tried(limit, most)[1]


def with_a_mistake(output, gradient=1.0):
    raise KeyError("a mistake")


check = Check("longest_chain", points=3, seconds=2)
check.cases("""
# chains of up to 37 operations survive
>>> found(limit=37, most=100)
37

# chains of up to 64 operations survive
>>> found(limit=64, most=100)
64

# one operation survives
>>> found(limit=1, most=100)
1

# no operation survives
>>> found(limit=0, most=100)
0

# all but the longest survive
>>> found(limit=99, most=100)
99

# every chain survives: the answer is `most`
>>> found(limit=1000, most=100), found(limit=1000, most=7)
(100, 7)

# the longest chain that is tried: not above `most`
>>> tried(limit=64, most=100), tried(limit=1000, most=100)
max(got) <= 100

# a backward pass with a mistake: its KeyError is let through
>>> longest_chain(with_a_mistake, 100)
KeyError*
""")
check.hidden("""
# further lengths
>>> found_and_tried(limit=100, most=100)
(100, 100)
""")

# Exercise 6


def doubled(x, times):
    """The result of so many additions, in each of which the previous result is added to itself."""
    for _ in range(times):
        x = x + x
    return x


def negated(x, times):
    """The result of so many negations in a row."""
    for _ in range(times):
        x = -x
    return x


def added(x, total, times):
    """The result of so many additions of x to a total."""
    for _ in range(times):
        total = x + total
    return total


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


def lines_and_depth(times):
    """How many lines run while backward goes through that many sums in a row, and how many functions are at work at
    once.
    """

    class Compared(MiniTensor):
        __hash__ = object.__hash__

        def __eq__(self, other):
            return self is other  # one line for each comparison

    node = Compared(1.0)
    for _ in range(times):
        node = Compared(1.0, (node, Compared(1.0)), "+", lambda grad: (grad, grad))
    lines = depth = deepest = 0

    def count(frame, event, argument):
        nonlocal lines, depth, deepest
        lines += event == "line"
        depth += (event == "call") - (event == "return")
        deepest = max(deepest, depth)
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        node.backward()
    finally:
        sys.settrace(before)
    return lines, deepest


def power_of_the_number_of_nodes():
    """1 if the number of lines that run grows like the number of nodes, 2 if it grows like its square."""
    (few, _), (many, _) = lines_and_depth(100), lines_and_depth(400)
    return round(math.log(many / few, 4))


def more_functions_at_once():
    """How many more functions are at work at once for 400 sums in a row than for 100."""
    return lines_and_depth(400)[1] - lines_and_depth(100)[1]


def in_order(got, *chains):
    """Whether the values of each chain come in this order, once each."""
    return all([value for value in got if value in chain] == chain for chain in chains)


check = Check("iterative_order", points=4)
check.cases("""
>>> a, b = MiniTensor(1.0), MiniTensor(2.0)
>>> c = a + b
>>> d = c + a

# a list of the nodes themselves
>>> type(topological_order(c)).__name__
"list"
>>> sorted(names_of(topological_order(c), a=a, b=b, c=c))
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

# c * c beside d
>>> [node.data for node in topological_order(c * c + d)]
len(got) == 6 and in_order(got, [13.0, 9.0, 3.0, 1.0], [13.0, 4.0, 3.0, 2.0])
>>> [node.data for node in topological_order(d + c * c)]
len(got) == 6 and in_order(got, [13.0, 9.0, 3.0, 1.0], [13.0, 4.0, 3.0, 2.0])

# a leaf alone
>>> [node.data for node in topological_order(a)]
[1.0]

# nodes of equal value are still different nodes
>>> [node.data for node in topological_order(MiniTensor(1.0) * MiniTensor(1.0))]
[1.0, 1.0, 1.0]

# how many nodes the orders of c, of a, and of c again have
>>> len(topological_order(c)), len(topological_order(a)), len(topological_order(c))
(3, 1, 3)

# how often it looks at inputs, in a graph of 11 nodes
>>> looks(doublings=10)
got < 1000

# 40 doublings
>>> [node.data for node in topological_order(doubled(a, 40))]
[2.0**number for number in range(40, -1, -1)]

# the number of lines that run in backward grows with a power of the number of nodes: the first
>>> power_of_the_number_of_nodes()
1

# how many more functions are at work at once for 400 sums in a row than for 100
>>> more_functions_at_once()
got < 100
""")
check.hidden("""
# a larger graph, and small ones
>>> e = d + c * 10
>>> f = e * d + a
>>> [node.data for node in topological_order(f * e)]
len(got) == 10 and in_order(got, [4658.0, 137.0, 136.0, 34.0, 30.0, 3.0, 1.0], [34.0, 4.0, 3.0, 2.0], [30.0, 10.0])
>>> [node.data for node in topological_order(e * f)]
len(got) == 10 and in_order(got, [4658.0, 137.0, 136.0, 34.0, 30.0, 3.0, 1.0], [34.0, 4.0, 3.0, 2.0], [30.0, 10.0])
>>> [node.data for node in topological_order(MiniTensor(0.0).exp())]
[1.0, 0.0]
""")

check = Check("new_backward", points=1)


def used_early_and_late(a, b):
    c = a * b
    d = -c
    return c.tanh() + d * c


def used_at_every_step(a, b):
    h = a
    for _ in range(3):
        h = (h * b + h).tanh() - b
    return h * h


check.cases("""
# c + d * c, where c = a * b and d = -c
>>> a, b = MiniTensor(3.0), MiniTensor(2.0)
>>> c = a * b
>>> (c + -c * c).backward()
>>> a.grad, b.grad
(-22.0, -33.0)

# two calls for one result
>>> a, b = MiniTensor(3.0), MiniTensor(2.0)
>>> c = a * b
>>> c.backward()
>>> c.backward(10.0)
>>> a.grad, b.grad, c.grad
(22.0, 33.0, 11.0)
""")
check.gradients({"c.tanh() + d * c": used_early_and_late}, [between(-1.5, 1.5), between(-1.5, 1.5)])
check.gradients({"used at every step": used_at_every_step}, [between(-1.5, 1.5)] * 2, hidden=True)

check = Check("deep", points=2, seconds=3)
check.cases("""
# the order of 3500 negations in a row: the number of nodes, and what is first and last
>>> x = MiniTensor(1.0)
>>> y = negated(x, 3500)
>>> order = topological_order(y)
>>> len(order), order[0] is y, order[-1] is x
(3501, True, True)

# backward through 3500 negations in a row
>>> x = MiniTensor(1.0)
>>> negated(x, 3500).backward()
>>> x.grad
1.0
""")
check.hidden("""
# long sums
>>> a, b = MiniTensor(0.5), MiniTensor(0.25)
>>> total = added(b, a, 2000)
>>> total.backward()
>>> a.grad, b.grad
(1.0, 2000.0)
>>> total.backward()
>>> a.grad, b.grad
(2.0, 4000.0)
""")
