"""What the exercises of lesson 15 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import numpy as np

from autograder.checks.cases import Check


def parts(dual):
    """The value and the tangent of a Dual; the name of its type for anything else."""
    return (dual.value, dual.tangent) if hasattr(dual, "tangent") else type(dual).__name__


# Exercise 1

check = Check("push_forward", points=3)
check.cases("""
>>> x = Dual(3.0, 1.0)
>>> y = Dual([1.0, 2.0], [0.5, -1.0])

# one input: slope times tangent
>>> parts(push_forward(6.0, (2.0, x)))
(6.0, 2.0)

# two terms are added, also for one input
>>> parts(push_forward(9.0, (3.0, x), (3.0, x)))
(9.0, 6.0)

# slopes that are arrays
>>> parts(push_forward([3.0, 6.0], (np.array([1.0, 2.0]), x), (np.array([3.0, 2.0]), y)))
(array([3.0, 6.0]), array([2.5, 0.0]))

# a constant is left out, wherever it stands
>>> parts(push_forward(-1.0, (1.0, Dual(2.0)), (-1.0, x)))
(-1.0, -1.0)
>>> parts(push_forward(1.0, (1.0, x), (-1.0, Dual(2.0))))
(1.0, 1.0)

# a result of constants is a constant
>>> parts(push_forward([2.0, 3.0], (2.0, Dual([1.0, 1.5]))))
(array([2.0, 3.0]), None)

# a tangent of 0 is a tangent
>>> parts(push_forward(4.0, (2.0, Dual(2.0, 0.0))))
(4.0, 0.0)

# the tangent has the shape of the value: a number beside an array
>>> parts(push_forward([4.0, 5.0], (1.0, x), (1.0, Dual([1.0, 2.0]))))
(array([4.0, 5.0]), array([1.0, 1.0]))

# the tangent has the shape of the value: a column
>>> column = Dual([[1.0], [2.0]], [[10.0], [20.0]])
>>> parts(push_forward([[1.0, 1.0], [2.0, 2.0]], (1.0, column)))
(array([[1.0, 1.0], [2.0, 2.0]]), array([[10.0, 10.0], [20.0, 20.0]]))

# the inputs after a call
>>> push_forward([3.0, 6.0], (np.array([1.0, 2.0]), x), (np.array([3.0, 2.0]), y))
anything
>>> parts(x), parts(y)
((3.0, 1.0), (array([1.0, 2.0]), array([0.5, -1.0])))
""")
check.hidden("""
# further shapes, and no inputs
>>> column = Dual([[1.0], [2.0]], [[10.0], [20.0]])
>>> parts(push_forward(np.zeros((2, 3)), (np.array([1.0, 2.0, 3.0]), column), (1.0, Dual(np.ones(3)))))
(np.zeros((2, 3)), array([[10.0, 20.0, 30.0], [20.0, 40.0, 60.0]]))
>>> parts(push_forward(np.ones((2, 2)), (0.0, y)))
(np.ones((2, 2)), np.zeros((2, 2)))
>>> parts(push_forward(np.zeros((2, 3)), (2.0, column)))
(np.zeros((2, 3)), array([[20.0] * 3, [40.0] * 3]))
>>> parts(push_forward([4.0, 4.0], (2.0, Dual([2.0, 2.0], [0.0, 0.0]))))
(array([4.0, 4.0]), array([0.0, 0.0]))
>>> parts(push_forward(1.0))
(1.0, None)
>>> parts(push_forward(7.0, (2.0, x), (0.25, x), (-1.0, Dual(1.0, 4.0))))
(7.0, -1.75)
""")

# Exercise 2


def by_rules(a, da, b, db):
    """What the rules give for positive arrays with these tangents: rule -> (value, tangent)."""
    x, y = Dual(a, da), Dual(b, db)
    return {
        "a * b": parts(x * y),
        "a / b": parts(x / y),
        "2 * a": parts(2.0 * x),
        "a / array": parts(x / b),
        "array / a": parts(b / x),
        "a ** 3": parts(x**3),
        "a ** -0.5": parts(x**-0.5),
        "exp": parts(x.exp()),
        "log": parts(x.log()),
        "tanh": parts(x.tanh()),
        "relu": parts(Dual(a - 1, da).relu()),
    }


def on_paper(a, da, b, db):
    """The same, with NumPy."""
    return {
        "a * b": (a * b, da * b + a * db),
        "a / b": (a / b, da / b - a * db / b**2),
        "2 * a": (2 * a, 2 * da),
        "a / array": (a / b, da / b),
        "array / a": (b / a, -b / a**2 * da),
        "a ** 3": (a**3, 3 * a**2 * da),
        "a ** -0.5": (a**-0.5, -0.5 * a**-1.5 * da),
        "exp": (np.exp(a), np.exp(a) * da),
        "log": (np.log(a), da / a),
        "tanh": (np.tanh(a), (1 - np.tanh(a) ** 2) * da),
        "relu": (np.maximum(a - 1, 0), (a > 1) * da),
    }


def drawn(first, second):
    """Two positive arrays of these shapes, each followed by a tangent."""
    draw = np.random.default_rng(0)
    pairs = [(draw.uniform(0.3, 2.0, shape), draw.normal(size=shape)) for shape in (first, second)]
    return [array for pair in pairs for array in pair]


def drawn_normal(first, second):
    """Two arrays of these shapes, each followed by a tangent."""
    draw = np.random.default_rng(1)
    return [draw.normal(size=shape) for shape in (first, first, second, second)]


TANH = np.tanh(0.5)
check = Check("slopes", points=5)
check.cases("""
# a * b, where a moves
>>> parts(Dual(3.0, 1.0) * Dual(5.0, 0.0))
(15.0, 5.0)

# a * b, where b moves
>>> parts(Dual(3.0, 0.0) * Dual(5.0, 1.0))
(15.0, 3.0)

# a / b, where a moves
>>> parts(Dual(3.0, 1.0) / Dual(4.0, 0.0))
(0.75, 0.25)

# a / b, where b moves
>>> parts(Dual(3.0, 0.0) / Dual(4.0, 1.0))
(0.75, -3 / 16)

# a ** 3
>>> parts(Dual(5.0, 1.0) ** 3)
(125.0, 75.0)

# a ** -0.5, where a moves at the rate 10
>>> parts(Dual(4.0, 10.0) ** -0.5)
(0.5, -0.625)

# a ** 2, where a is 0 or negative
>>> parts(Dual([0.0, -3.0], [1.0, 0.5]) ** 2)
(array([0.0, 9.0]), array([0.0, -3.0]))

# tanh
>>> parts(Dual(0.5, 10.0).tanh())
(TANH, 10 * (1 - TANH**2))

# relu below and above 0
>>> parts(Dual([-2.0, 3.0], [5.0, 5.0]).relu())
(array([0.0, 3.0]), array([0.0, 5.0]))

# relu at 0
>>> parts(Dual(0.0, 5.0).relu())
(0.0, 0.0)

# exp and log, which are given
>>> parts(Dual(0.5, 10.0).exp())
(np.exp(0.5), 10 * np.exp(0.5))
>>> parts(Dual(0.5, 10.0).log())
(np.log(0.5), 20.0)

# a * b at 0 and -2, where both move
>>> parts(Dual([0.0], [1.0]) * Dual([-2.0], [3.0]))
(array([0.0]), array([-2.0]))

# a / b at 0 and -2, where both move
>>> parts(Dual([0.0], [1.0]) / Dual([-2.0], [3.0]))
(array([0.0]), array([-0.5]))

# a column and a row, which are stretched
>>> a, b = Dual([[1.0], [2.0]], [[0.5], [-1.0]]), Dual([4.0, 5.0], [1.0, 2.0])
>>> parts(a * b)
(array([[4.0, 5.0], [8.0, 10.0]]), array([[3.0, 4.5], [-2.0, -1.0]]))
>>> parts(a / b)
(array([[0.25, 0.2], [0.5, 0.4]]), array([[0.0625, 0.02], [-0.375, -0.36]]))

# beside numbers and arrays
>>> a = Dual([1.0, 2.0], [3.0, -1.0])
>>> parts(2.0 * a), parts(a * np.array([10.0, 100.0]))
((array([2.0, 4.0]), array([6.0, -2.0])), (array([10.0, 200.0]), array([30.0, -100.0])))
>>> parts(a / np.array([2.0, 4.0])), parts(np.array([2.0, 4.0]) / a)
((array([0.5, 0.5]), array([1.5, -0.25])), (array([2.0, 2.0]), array([-6.0, 1.0])))

# constants stay constants
>>> constant = Dual([1.0, 2.0])
>>> parts(constant * 3), parts(2 / constant)
((array([3.0, 6.0]), None), (array([2.0, 1.0]), None))
>>> (constant**2).tangent, constant.tanh().tangent, constant.relu().tangent
(None, None, None)

# the inputs after a call of each rule
>>> a, b = Dual([-1.0, 2.0], [0.5, 1.0]), Dual([4.0, 5.0], [3.0, -1.0])
>>> results = a * b, a / b, a**3, a.tanh(), a.relu()
>>> parts(a), parts(b)
((array([-1.0, 2.0]), array([0.5, 1.0])), (array([4.0, 5.0]), array([3.0, -1.0])))
""")
check.hidden("""
# arrays of other shapes
>>> by_rules(*drawn((4,), (4,)))
on_paper(*drawn((4,), (4,)))
>>> by_rules(*drawn((3, 1), (4,)))
on_paper(*drawn((3, 1), (4,)))
>>> by_rules(*drawn((), (2, 2)))
on_paper(*drawn((), (2, 2)))
>>> by_rules(*drawn((2, 1, 2), (3, 1)))
on_paper(*drawn((2, 1, 2), (3, 1)))

# a number that is used twice
>>> both = Dual([2.0, -3.0], [1.0, 0.5])
>>> parts(both * both), parts(both / both)
((array([4.0, 9.0]), array([4.0, -3.0])), (array([1.0, 1.0]), array([0.0, 0.0])))
>>> parts(both**2), parts((both * 3) ** 1)
((array([4.0, 9.0]), array([4.0, -3.0])), (array([6.0, -9.0]), array([3.0, 1.5])))
>>> parts(np.array([1.0, 2.0]) * both)
(array([2.0, -6.0]), array([1.0, 1.0]))
""")

# Exercise 3

LEFT, DLEFT = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [2.0, 5.0]])
RIGHT, DRIGHT = np.array([[5.0, 1.0], [2.0, 3.0]]), np.array([[0.0, 3.0], [1.0, 4.0]])
WIDE, DWIDE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 10.0]])


def pushed(function, inputs, tangents):
    """What jvp returns; a list counts as a tuple."""
    found = jvp(function, inputs, tangents)
    return tuple(found) if isinstance(found, list) else found


def calls_of(way, function, *more):
    """How often a way to find derivatives calls the function, which must be its first argument."""
    calls = []
    way(lambda *inputs: (calls.append(inputs), function(*inputs))[1], *more)
    return len(calls)


check = Check("jvp", points=5)
check.cases("""
# a @ b, where a moves
>>> parts(Dual(LEFT, DLEFT) @ RIGHT)
(LEFT @ RIGHT, DLEFT @ RIGHT)

# a @ b, where b moves
>>> parts(LEFT @ Dual(RIGHT, DRIGHT))
(LEFT @ RIGHT, LEFT @ DRIGHT)

# a @ b, where both move
>>> parts(Dual(LEFT, DLEFT) @ Dual(RIGHT, DRIGHT))
(LEFT @ RIGHT, DLEFT @ RIGHT + LEFT @ DRIGHT)

# a @ b, where a has one axis
>>> parts(Dual(LEFT[0], DLEFT[0]) @ Dual(RIGHT, DRIGHT))
(LEFT[0] @ RIGHT, DLEFT[0] @ RIGHT + LEFT[0] @ DRIGHT)

# a @ b, where a has three columns
>>> parts(Dual(LEFT, DLEFT) @ Dual(WIDE, DWIDE))
(LEFT @ WIDE, DLEFT @ WIDE + LEFT @ DWIDE)

# sums, which are given
>>> a = Dual(WIDE, DWIDE)
>>> parts(a.sum()), parts(a.sum(dim=-1)), parts(a.sum(0, True))
((21.0, 11.0), (array([6.0, 15.0]), array([1.0, 10.0])), (array([[5.0, 7.0, 9.0]]), array([[1.0, 0.0, 10.0]])))

# constants stay constants
>>> (Dual(LEFT) @ RIGHT).tangent, (LEFT @ Dual(RIGHT)).tangent, Dual(LEFT).sum().tangent
(None, None, None)

# jvp: the value, then the tangent
>>> pushed(lambda a: a * a, (3.0,), (1.0,))
(9.0, 6.0)

# jvp: a number and an array
>>> pushed(lambda a, b: a * b, (3.0, [1.0, 2.0]), (1.0, [0.0, 10.0]))
(array([3.0, 6.0]), array([1.0, 32.0]))

# jvp: a function that returns a constant
>>> pushed(lambda a: [1.0, 2.0], (3.0,), (1.0,))
(array([1.0, 2.0]), array([0.0, 0.0]))

# jvp: how often the function is called, for three inputs
>>> calls_of(jvp, lambda a, b, c: a * b + c, (3.0, 2.0, 1.0), (1.0, 1.0, 1.0))
1

# jvp: a tangent of shape (1,) beside an input of shape (3,)
>>> jvp(lambda a: a.sum(), (np.ones(3),), (np.ones(1),))
RuntimeError: Trying to set a forward gradient*

# jvp: a tangent of shape (3,) beside an input of shape (1,)
>>> jvp(lambda a: a.sum(), (np.ones(1),), (np.ones(3),))
RuntimeError: Trying to set a forward gradient*

# jvp: a tangent of shape (3,) beside a number
>>> jvp(lambda a: a.sum(), (2.0,), (np.ones(3),))
RuntimeError: Trying to set a forward gradient*

# jvp: more inputs than tangents, and fewer
>>> jvp(lambda a, b=0.0: a + b, (2.0, 3.0), (1.0,))
RuntimeError*
>>> jvp(lambda a: a * 2.0, (2.0,), (1.0, 1.0))
RuntimeError*
""")
check.tangents("jvp", {"a * b": lambda a, b: a * b}, [(3,), (3,)])
check.tangents(
    "jvp",
    {"a @ b": lambda a, b: a @ b, "a layer, summed": lambda a, b: (a @ b).tanh().sum(dim=0)},
    [(2, 3), (3, 4)],
)
check.hidden("""
# jvp: further shapes
>>> jvp(lambda a, b: a.sum() + b.sum(), (np.ones(3), 2.0), (np.ones(3), np.ones(3)))
RuntimeError: Trying to set a forward gradient*
>>> jvp(lambda a: a.sum(), (np.ones((3, 1)),), (np.ones(3),))
RuntimeError: Trying to set a forward gradient*
>>> pushed(lambda a: 4.0, (LEFT,), (DLEFT,))
(4.0, 0.0)
>>> pushed(lambda a, b: a - b, (3.0, [1.0, 2.0]), (1.0, [0.0, 0.0]))
(array([2.0, 1.0]), array([1.0, 1.0]))

# products of other matrices
>>> parts(Dual(LEFT, DLEFT) @ Dual(LEFT, DLEFT))
(LEFT @ LEFT, DLEFT @ LEFT + LEFT @ DLEFT)
>>> a, da, b, db = drawn_normal((2, 3), (3, 4))
>>> parts(Dual(a, da) @ Dual(b, db))[1] - (da @ b + a @ db)
np.zeros((2, 4))
>>> parts(Dual(a[0], da[0]) @ Dual(b, db))[1] - (da[0] @ b + a[0] @ db)
np.zeros(4)
""")
check.tangents(
    "jvp",
    {
        "b used twice": lambda a, b: ((a @ b) @ b - b).sum(1, True),
        "both axes": lambda a, b: (a.sum(-1) - b.sum(0)).tanh(),
    },
    [(3, 3), (3, 3)],
    hidden=True,
)

# Exercise 4

TABLE = np.array([[1.0, 2.0], [3.0, 5.0]])
THREE_BY_TWO = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
CUBE = np.stack([np.eye(3)] * 2, axis=1)  # the Jacobian of x.sum(dim=0), where x is 2 by 3


def told_apart(x):
    """Three times x for a Dual, five times x for a MiniTensor: shows which of them was used."""
    return x * 3.0 if hasattr(x, "tangent") else x * 5.0


def mode_of(function, x):
    """In which mode the result of jacobian was computed, for a function whose slopes are 0 and 1."""
    found = jacobian(lambda x: function(told_apart(x)), x)
    largest = None if found is None else float(np.max(found))
    return {3.0: "forward", 5.0: "reverse"}.get(largest, found)


def passes_backward(x):
    """How many passes backward jacobian makes for a function with more outputs than inputs."""
    passes = []

    def function(x):
        result = x * np.ones((2, 1))
        if not hasattr(x, "tangent"):
            go_back = result.backward
            result.backward = lambda *given, **named: passes.append(go_back(*given, **named))
        return result

    jacobian(function, x)
    return len(passes)


check = Check("jacobians", points=5)
check.cases("""
>>> pair = np.array([1.0, -2.0])

# entry by entry
>>> jacobian_forward(lambda x: x * x, pair)
array([[2.0, 0.0], [0.0, -4.0]])
>>> jacobian_reverse(lambda x: x * x, pair)
array([[2.0, 0.0], [0.0, -4.0]])
>>> jacobian(lambda x: x * x, pair)
array([[2.0, 0.0], [0.0, -4.0]])

# 3 inputs, 2 outputs
>>> jacobian_forward(lambda x: x @ THREE_BY_TWO, np.ones(3))
THREE_BY_TWO.T
>>> jacobian_reverse(lambda x: x @ THREE_BY_TWO, np.ones(3))
THREE_BY_TWO.T
>>> jacobian(lambda x: x @ THREE_BY_TWO, np.ones(3))
THREE_BY_TWO.T

# the output is a number
>>> jacobian_forward(lambda x: (x * x).sum(), pair)
array([2.0, -4.0])
>>> jacobian_reverse(lambda x: (x * x).sum(), pair)
array([2.0, -4.0])
>>> jacobian(lambda x: (x * x).sum(), pair)
array([2.0, -4.0])

# x is a number
>>> jacobian_forward(lambda x: x * x * x, np.array(5.0))
75.0
>>> jacobian_reverse(lambda x: x * x * x, np.array(5.0))
75.0
>>> jacobian(lambda x: x * x * x, np.array(5.0))
75.0

# x has two axes
>>> jacobian_forward(lambda x: x.sum(dim=0), np.ones((2, 3)))
CUBE
>>> jacobian_reverse(lambda x: x.sum(dim=0), np.ones((2, 3)))
CUBE
>>> jacobian(lambda x: x.sum(dim=0), np.ones((2, 3)))
CUBE

# the output has two axes
>>> jacobian_forward(lambda x: x.sum() * TABLE, pair)
np.stack([TABLE, TABLE], axis=-1)
>>> jacobian_reverse(lambda x: x.sum() * TABLE, pair)
np.stack([TABLE, TABLE], axis=-1)
>>> jacobian(lambda x: x.sum() * TABLE, pair)
np.stack([TABLE, TABLE], axis=-1)

# the function returns a constant
>>> jacobian_forward(lambda x: np.array([1.0, 2.0]), np.ones(3))
np.zeros((2, 3))
>>> jacobian_reverse(lambda x: np.array([1.0, 2.0]), np.ones(3))
np.zeros((2, 3))
>>> jacobian(lambda x: np.array([1.0, 2.0]), np.ones(3))
np.zeros((2, 3))

# small slopes beside a large constant
>>> jacobian_forward(lambda x: x * x + 1e6, pair)
array([[2.0, 0.0], [0.0, -4.0]])
>>> jacobian_reverse(lambda x: x * x + 1e6, pair)
array([[2.0, 0.0], [0.0, -4.0]])

# a function that multiplies Duals by 3 and MiniTensors by 5
>>> jacobian_forward(told_apart, pair)
3 * np.eye(2)
>>> jacobian_reverse(told_apart, pair)
5 * np.eye(2)

# jacobian: the mode for 2 inputs and 5 outputs
>>> mode_of(lambda x: x @ np.ones((2, 5)), pair)
"forward"

# jacobian: the mode for 2 inputs and 2 by 2 outputs
>>> mode_of(lambda x: x * np.ones((2, 1)), pair)
"forward"

# jacobian: the mode for 2 by 3 inputs and 3 outputs
>>> mode_of(lambda x: x.sum(dim=0), np.ones((2, 3)))
"reverse"

# jacobian: the mode for 2 inputs and 1 by 1 outputs
>>> mode_of(lambda x: x.sum() * np.ones((1, 1)), pair)
"reverse"

# jacobian: the mode for 2 inputs and 2 outputs
>>> mode_of(lambda x: x, pair)
"reverse"

# jacobian_reverse: how often the function is called
>>> calls_of(jacobian_reverse, lambda x: x * 2.0, pair)
1

# jacobian: how often a function of 3 inputs with 1 output is called; once to count the outputs
>>> calls_of(jacobian, lambda x: x.sum(), np.ones(3))
got <= 2

# jacobian: how many passes backward it makes for 2 inputs and 4 outputs
>>> passes_backward(pair)
0

# x after the calls
>>> jacobian_forward(lambda x: x * x, pair)
anything
>>> jacobian_reverse(lambda x: x * x, pair)
anything
>>> pair
array([1.0, -2.0])
""")
check.hidden("""
# the mode of jacobian for further shapes
>>> mode_of(lambda x: x.sum(), pair)
"reverse"
>>> jacobian(lambda x: told_apart(x) * pair, np.array(2.0))
array([3.0, -6.0])
>>> mode_of(lambda x: x, np.array(2.0))
"reverse"

# further Jacobians
>>> jacobian_forward(lambda x: 4.0, np.ones(3)), jacobian(lambda x: 4.0, np.ones(3))
(np.zeros(3), np.zeros(3))
>>> jacobian_forward(lambda x: x @ THREE_BY_TWO, WIDE)
np.einsum("ai,kj->ajik", np.eye(2), THREE_BY_TWO)
>>> jacobian(lambda x: x @ THREE_BY_TWO, WIDE)
np.einsum("ai,kj->ajik", np.eye(2), THREE_BY_TWO)
>>> jacobian_forward(lambda x: x * x.sum(), WIDE[0])
6 * np.eye(3) + WIDE[0][:, None]
>>> jacobian(lambda x: x * x.sum(), WIDE[0])
6 * np.eye(3) + WIDE[0][:, None]
""")

# Exercise 5

SQUARE = np.array([[1.0, 0.5, 2.0], [1.5, 1.0, 0.5], [2.0, 0.5, 1.5]])
COLUMN, ROW = np.array([[0.5], [1.0], [2.0]]), np.array([2.0, 0.5, 1.5])


def stack_of(array, count):
    """An array with that many tangents, all of them different."""
    array = np.array(array)
    return Dual(array, np.sin(np.arange(1.0, array.size * count + 1)).reshape(*array.shape, count))


def apart(function, *arrays, count=4):
    """How far the tangents of a stack are from those that are pushed one by one. If the shape of either is another
    than that of the value with the number of tangents behind it: both shapes.
    """
    stacks = [stack_of(array, count) for array in arrays]
    result = function(*stacks)
    singles = [function(*[Dual(s.value, s.tangent[..., number]) for s in stacks]).tangent for number in range(count)]
    one_by_one, needed = np.stack(singles, axis=-1), (*np.shape(result.value), count)
    for tangents in (one_by_one, result.tangent):
        if np.shape(tangents) != needed:
            return f"tangents of shape {np.shape(tangents)}, not {needed}"
    return float(np.abs(result.tangent - one_by_one).max())


check = Check("stack", points=6)
check.cases("""
>>> a = Dual([1.0, 2.0], [[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]])
>>> single = Dual([1.0, 2.0], [0.5, -1.0])

# push_forward: slopes of shape (2,), three tangents
>>> parts(push_forward([2.0, 6.0], (np.array([2.0, 3.0]), a)))
(array([2.0, 6.0]), array([[2.0, 0.0, 4.0], [0.0, 3.0, 9.0]]))

# push_forward: slopes of shape (2, 2), three tangents
>>> parts(push_forward(np.ones((2, 2)), (np.array([[2.0, 3.0], [4.0, 5.0]]), a)))[1]
array([[[2.0, 0.0, 4.0], [0.0, 3.0, 9.0]], [[4.0, 0.0, 8.0], [0.0, 5.0, 15.0]]])

# push_forward: three tangents are stretched with the value
>>> parts(push_forward(np.ones((2, 2)), (1.0, a)))[1]
array([[[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]], [[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]]])

# push_forward: one tangent, as before
>>> parts(push_forward([3.0, 6.0], (np.array([1.0, 2.0]), Dual(3.0, 1.0)), (3.0, single)))
(array([3.0, 6.0]), array([2.5, -1.0]))
>>> parts(push_forward(np.ones((2, 2)), (2.0, single)))[1]
array([[1.0, -2.0], [1.0, -2.0]])

# a * b, apart from one by one
>>> apart(lambda a, b: a * b, SQUARE, ROW)
0.0

# a * array, apart from one by one
>>> apart(lambda a: a * ROW, COLUMN)
0.0

# a.tanh() / b, apart from one by one
>>> apart(lambda a, b: a.tanh() / b, ROW, COLUMN, count=2)
0.0

# a.exp(), apart from one by one
>>> apart(lambda a: a.exp(), ROW, count=2)
0.0

# a.log(), apart from one by one
>>> apart(lambda a: a.log(), ROW, count=2)
0.0

# (a - 1).relu(), apart from one by one
>>> apart(lambda a: (a - 1).relu(), ROW, count=2)
0.0

# a**2, apart from one by one
>>> apart(lambda a: a**2, SQUARE)
0.0

# the sum of all entries: three tangents, and one
>>> parts(a.sum()), parts(single.sum())
((3.0, array([1.0, 1.0, 5.0])), (3.0, -0.5))

# sums over an axis: many tangents, apart from one by one
>>> apart(lambda a: a.sum(dim=0), SQUARE)
0.0
>>> apart(lambda a: a.sum(dim=-1), SQUARE)
0.0

# sums with keepdim: many tangents, apart from one by one
>>> apart(lambda a: a.sum(0, True), SQUARE)
0.0

# sums with keepdim: one tangent
>>> parts(Dual(WIDE, DWIDE).sum(1, True))
(array([[6.0], [15.0]]), array([[1.0], [10.0]]))

# a @ array and array @ b, apart from one by one
>>> apart(lambda a: a @ SQUARE, SQUARE[:2])
0.0
>>> apart(lambda b: SQUARE @ b, SQUARE[:, :2])
0.0

# a @ b, apart from one by one
>>> apart(lambda a, b: a @ b, SQUARE, SQUARE[:, :2])
0.0

# a @ b, where a has one axis, apart from one by one
>>> apart(lambda a, b: a @ b, ROW, SQUARE, count=3)
0.0

# a @ b: one tangent
>>> parts(Dual(LEFT, DLEFT) @ Dual(RIGHT, DRIGHT))
(LEFT @ RIGHT, DLEFT @ RIGHT + LEFT @ DRIGHT)

# constants stay constants
>>> (Dual(LEFT) * 2.0).tangent, (Dual(LEFT) @ RIGHT).tangent, Dual(LEFT).sum().tangent
(None, None, None)

# jacobian_stacked: entry by entry
>>> jacobian_stacked(lambda x: x * x, np.array([1.0, 3.0]))
array([[2.0, 0.0], [0.0, 6.0]])

# jacobian_stacked: x has two axes
>>> jacobian_stacked(lambda x: x @ THREE_BY_TWO, WIDE)
np.einsum("ai,kj->ajik", np.eye(2), THREE_BY_TWO)

# jacobian_stacked: x is a number
>>> jacobian_stacked(lambda x: x * x, np.array(3.0))
6.0

# jacobian_stacked: the function returns a constant
>>> jacobian_stacked(lambda x: np.ones(2), ROW)
np.zeros((2, 3))

# jacobian_stacked: a function that multiplies Duals by 3 and MiniTensors by 5
>>> jacobian_stacked(told_apart, ROW)
3 * np.eye(3)

# jacobian_stacked: how often the function is called
>>> calls_of(jacobian_stacked, lambda x: x * 2.0, ROW)
1
""")
check.hidden("""
# further rules
>>> apart(lambda a: a / a.sum(), SQUARE, count=1), apart(lambda a: a.sum(dim=0, keepdim=True) * a, SQUARE, count=3)
(0.0, 0.0)
>>> apart(lambda a: (a + 1) * Dual(ROW) - 2 / a, COLUMN, count=3)
0.0
>>> apart(lambda a, b: (a * b).log() ** 2, 2.0, 3.0, count=5)
0.0
>>> parts(push_forward([1.0, 2.0], (3.0, Dual([1.0, 2.0]))))
(array([1.0, 2.0]), None)

# further sums and products
>>> parts(Dual(WIDE, DWIDE).sum(dim=-2))
(array([5.0, 7.0, 9.0]), array([1.0, 0.0, 10.0]))
>>> jacobian_stacked(lambda x: x.sum(dim=1), WIDE)
np.stack([np.outer(e, np.ones(3)) for e in np.eye(2)])
>>> parts(single @ Dual(RIGHT, DRIGHT))
(array([9.0, 7.0]), array([2.5, 8.5]))
""")

# Exercise 6


def described(x):
    """A number as it is, and the value, the tangent and the tag of a Tagged."""
    return (described(x.value), described(x.tangent), x.tag) if isinstance(x, Tagged) else x


check = Check("tags", points=4)
check.cases("""
# parts_of, with this tag, and of a number
>>> tuple(parts_of(Tagged(3.0, 5.0, 7), 7)), tuple(parts_of(4.0, 7))
((3.0, 5.0), (4.0, 0.0))

# parts_of a Tagged with an older tag
>>> whole, moves = parts_of(Tagged(3.0, 4.0, 7), 9)
>>> described(whole), moves
((3.0, 4.0, 7), 0.0)

# parts_of a Tagged with a newer tag
>>> whole, moves = parts_of(Tagged(3.0, 4.0, 7), 5)
>>> described(whole), moves
((3.0, 4.0, 7), 0.0)

# a product with a number
>>> described(tagged_mul(Tagged(3.0, 5.0, 7), 2.0)), described(tagged_mul(2.0, Tagged(3.0, 5.0, 7)))
((6.0, 10.0, 7), (6.0, 10.0, 7))

# a product of two with one tag
>>> described(tagged_mul(Tagged(3.0, 5.0, 7), Tagged(2.0, 1.0, 7)))
(6.0, 13.0, 7)

# the tag of a product of tags 7 and 9
>>> tag_of(tagged_mul(Tagged(3.0, 5.0, 7), Tagged(2.0, 1.0, 9)))
9
>>> tag_of(tagged_mul(Tagged(3.0, 5.0, 9), Tagged(2.0, 1.0, 7)))
9

# the slope of x
>>> derivative(lambda x: x, 5.0)
1.0

# the slope of x * x * x at 5
>>> derivative(lambda x: x * x * x, 5.0)
75.0

# the slope of 2 * x + 5
>>> derivative(lambda x: 2.0 * x + 5.0, 3.0)
2.0

# the slope of a constant
>>> derivative(lambda x: 4.0, 3.0)
0.0

# the slope of the slope of x * x * x at 5
>>> derivative(lambda x: derivative(lambda y: y * y * y, x), 5.0)
30.0

# the slope of x * (slope of x + y with respect to y)
>>> derivative(lambda x: x * derivative(lambda y: x + y, 1.0), 1.0)
1.0

# the slope of x * (slope of x * x with respect to y)
>>> derivative(lambda x: x * derivative(lambda y: x * x, 1.0), 3.0)
0.0

# the slope of x * (slope of x * y with respect to y) at 5
>>> derivative(lambda x: x * derivative(lambda y: x * y, 2.0), 5.0)
10.0

# the slope of (slope of y * y at y = x * x) at 3
>>> derivative(lambda x: derivative(lambda y: y * y, x * x), 3.0)
12.0

# the slope of x * (slope of x * y at y = x) at 5
>>> derivative(lambda x: x * derivative(lambda y: x * y, x), 5.0)
10.0
""")
check.hidden("""
# further nested slopes
>>> derivative(lambda x: x * x + derivative(lambda y: x * x, x), 3.0)
6.0
>>> derivative(lambda x: derivative(lambda y: derivative(lambda z: x * y * z * z, y), x), 2.0)
16.0
>>> derivative(lambda x: derivative(lambda y: x * y, x) * derivative(lambda y: x * y * y, 1.0 + x), 2.0)
32.0
>>> derivative(lambda x: derivative(lambda y: x * y * y, x), 3.0)
12.0
>>> derivative(lambda x: (x + 1.0) * (x * x), 2.0)
16.0
""")
