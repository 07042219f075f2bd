"""What the exercises of lesson 14 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import numpy as np

from autograder.checks.cases import Check

# Exercise 1


class Vault:
    """An array module."""


class Convertible:
    """An array of the module Vault. NumPy could convert it; only its module says that it must not."""

    shape, ndim, size = (4,), 1, 4

    def __array_namespace__(self, api_version=None):
        return Vault

    def __array__(self, dtype=None, copy=None):
        return np.zeros(4)


check = Check("array_module", points=4)
check.cases("""
>>> a = Silent()

# the module of a NumPy array, and of numbers
>>> [array_module(value).__name__ for value in (np.ones(3), np.float64(3.0), 2.0, 7)]
["numpy"] * 4

# the module of a list, and of a tuple
>>> array_module([1.0, 2.0]).__name__, array_module((1.0, 2.0)).__name__
("numpy", "numpy")

# the module of an array from elsewhere
>>> array_module(a).__name__
"Elsewhere"

# another array answers for itself
>>> array_module(Convertible()).__name__
"Vault"

# the data of a tensor are the array from elsewhere, the same object
>>> x = MiniTensor(a)
>>> type(x.data).__name__, x.data is a
("Silent", True)

# also if NumPy could convert it
>>> b = Convertible()
>>> x = MiniTensor(b)
>>> type(x.data).__name__, x.data is b
("Convertible", True)

# requires_grad of such a tensor
>>> MiniTensor(a, requires_grad=True).requires_grad, MiniTensor(a).requires_grad
(True, False)

# such a tensor is a leaf like any other
>>> x = MiniTensor(a, requires_grad=True)
>>> x.shape, x.is_leaf, x.grad, x._version
((3,), True, None, 0)

# a list becomes a float64 array, as before
>>> x = MiniTensor([1, 2])
>>> x.data
array([1.0, 2.0])
>>> str(x.data.dtype), x.requires_grad
("float64", False)

# requires_grad of a tensor of a list, as before
>>> MiniTensor([1, 2], requires_grad=True).requires_grad
True

# a float64 array of NumPy is not copied, as before
>>> array = np.array([1.0, 2.0])
>>> np.shares_memory(MiniTensor(array).data, array)
True
""")
check.hidden("""
# other data of the host
>>> x = MiniTensor(3.5, requires_grad=True)
>>> x.requires_grad, x.item(), x.shape
(True, 3.5, ())
>>> str(MiniTensor(np.ones((2, 1), dtype=np.float32)).data.dtype)
"float64"

# another array from elsewhere, and requires_grad
>>> x = MiniTensor(Convertible(), requires_grad=True)
>>> x.requires_grad, x.shape, MiniTensor(Convertible()).requires_grad
(True, (4,), False)

# gradients on the host
>>> a, b = MiniTensor([1.0, 2.0], requires_grad=True), MiniTensor([[3.0], [4.0]], requires_grad=True)
>>> (a * b + a).backward(np.array([[1.0, 10.0], [100.0, 1000.0]]))
>>> a.grad.data
array([504.0, 5040.0])
>>> b.grad.data
array([[21.0], [2100.0]])
""")

# Exercise 2


def written(function, arrays=1):
    """The steps that a function leaves that gets so many arrays without numbers; a last line says if it is refused."""
    trace = Trace((3,))
    refused = []
    try:
        function(*[trace.array() for _ in range(arrays)])
    except Untraceable:
        refused = ["Untraceable"]
    steps = [f"{result} = {ufunc.__name__}({', '.join(map(known, names))})" for ufunc, names, result in trace.steps]
    return steps + refused


def known(name):
    """A name or a number as it is listed; of anything else, its kind."""
    return shown(name) if isinstance(name, bool | int | float | str) else type(name).__name__


check = Check("note", points=4)
check.cases("""
# a number on the right, and a function of the result
>>> written(lambda x: np.exp(x * 2.0))
["v1 = multiply(v0, 2.0)", "v2 = exp(v1)"]

# the order of two arrays
>>> written(lambda x, y: np.square(y - x), 2)
["v2 = subtract(v1, v0)", "v3 = square(v2)"]

# an int on the left
>>> written(lambda x: 1 - x)
["v1 = subtract(1, v0)"]

# True is a plain number
>>> written(lambda x: x + True)
["v1 = add(v0, True)"]

# a product of matrices is not elementwise
>>> written(lambda x: x @ x)
["Untraceable"]

# np.vecdot is not elementwise either
>>> written(lambda x: np.vecdot(x, x))
["Untraceable"]

# a sum: np.add.reduce
>>> written(lambda x: np.add.reduce(x))
["Untraceable"]

# running sums: np.add.accumulate
>>> written(lambda x: np.add.accumulate(x))
["Untraceable"]

# sums of all pairs: np.add.outer
>>> written(lambda x: np.add.outer(x, x))
["Untraceable"]

# the option out
>>> written(lambda x: np.add(x, 1.0, out=x))
["Untraceable"]

# the option dtype
>>> written(lambda x: np.exp(x, dtype=float))
["Untraceable"]

# two results: np.modf
>>> written(lambda x: np.modf(x))
["Untraceable"]

# an array of NumPy; the step before it is written down
>>> written(lambda x: np.ones(3) * (-x))
["v1 = negative(v0)", "Untraceable"]

# a number of NumPy
>>> written(lambda x: x + np.float32(2.0))
["Untraceable"]

# an array of NumPy with one entry
>>> written(lambda x: x + np.array([2.0]))
["Untraceable"]

# an array of another trace
>>> written(lambda x: x + Trace((3,)).array())
["Untraceable"]
""")
check.hidden("""
# other operations that are written down
>>> written(lambda x: x * (x > 0))
["v1 = greater(v0, 0)", "v2 = multiply(v0, v1)"]
>>> written(lambda x: x**3)
["v1 = power(v0, 3)"]
>>> written(lambda c, a, b: np.where(c, a, b) * 5.0, 3)
["v3 = select(v0, v1, v2)", "v4 = multiply(v3, 5.0)"]
>>> written(lambda x: x * x.trace.asarray(4.0))
["v1 = multiply(v0, 4.0)"]

# other operations that are refused
>>> written(lambda x: np.frexp(x)), written(lambda x: np.multiply.outer(x, x))
(["Untraceable"], ["Untraceable"])
>>> written(lambda x: np.sqrt(np.tanh(x), where=True))
["v1 = tanh(v0)", "Untraceable"]

# other inputs that are refused
>>> written(lambda x: x + np.array(2.0)), written(lambda x: Trace((3,)).array() * x)
(["Untraceable"], ["Untraceable"])
""")

# Exercise 3: which steps

SQUARES = [
    (np.multiply, ("v0", "v0"), "v2"),
    (np.exp, ("v1",), "v3"),
    (np.add, ("v2", 3.0), "v4"),
    (np.multiply, ("v2", "v0"), "v5"),
    (np.tanh, ("v3",), "v6"),
]

check = Check("needed_steps", points=2)
check.cases("""
# a whole step comes back
>>> (step,) = needed_steps([(np.exp, ("v0",), "v1")], ["v1"])
>>> step[0].__name__, step[1], step[2]
("exp", ("v0",), "v1")

# the result v4 needs v2
>>> [result for _, _, result in needed_steps(SQUARES, ["v4"])]
["v2", "v4"]

# two results, in the order of the steps
>>> [result for _, _, result in needed_steps(SQUARES, ["v5", "v4"])]
["v2", "v4", "v5"]

# the second argument counts, too
>>> steps = [(np.tanh, ("v0",), "v1"), (np.add, (2.0, "v1"), "v2")]
>>> [result for _, _, result in needed_steps(steps, ["v2"])]
["v1", "v2"]
""")
check.hidden("""
# one step, and none
>>> [result for _, _, result in needed_steps(SQUARES, ["v3"])], list(needed_steps(SQUARES, ["v0"]))
(["v3"], [])
>>> len(SQUARES)
5

# a long chain
>>> chain = [(np.add, ("v0", 1.5), "v1")] + [(np.tanh, (f"v{i}",), f"v{i + 1}") for i in range(1, 6)]
>>> [result for _, _, result in needed_steps(chain, ["v6"])]
["v1", "v2", "v3", "v4", "v5", "v6"]
>>> [result for _, _, result in needed_steps(chain, ["v3"])]
["v1", "v2", "v3"]
""")

# Exercise 3: in blocks

STEPS = [
    (np.multiply, ("v0", 2.0), "v2"),
    (np.add, ("v2", "v1"), "v3"),
    (np.tanh, ("v3",), "v4"),
    (np.subtract, ("v4", "v2"), "v5"),
]


def with_nan(function, *arguments, **options):
    """What the function returns if np.empty makes arrays of nan: what nobody writes into stays nan."""
    original = np.empty
    np.empty = lambda shape, *_, **__: np.full(shape, np.nan)
    try:
        return function(*arguments, **options)
    finally:
        np.empty = original


def arrays_of(shape):
    """The inputs v0 and v1 of STEPS."""
    size = int(np.prod(shape))
    return {"v0": np.linspace(-1.0, 2.0, size).reshape(shape), "v1": np.linspace(1.0, -1.5, size).reshape(shape)}


def computed(shape):
    """The inputs of STEPS, and its results, computed without blocks."""
    arrays = arrays_of(shape)
    double = arrays["v0"] * 2.0
    tanh = np.tanh(double + arrays["v1"])
    return {**arrays, "v4": tanh, "v5": tanh - double}


def pieces(size, block):
    """The sizes of the pieces that a step gets, in turn."""
    seen = []

    def copied(a, out):
        seen.append(a.size)
        out[...] = a

    run_in_blocks([(copied, ("v0",), "v1")], {"v0": np.zeros(size)}, ["v1"], block=block)
    return seen


def buffers(size, block):
    """How many places in memory an intermediate result has, and for how many entries there is room in each block."""
    seen = []

    def copied(a, out):
        seen.append(out)  # so that no other array can lie there
        out[...] = a

    run_in_blocks([(copied, ("v0",), "v1"), (np.add, ("v1", 0.0), "v2")], {"v0": np.zeros(size)}, ["v2"], block=block)
    places = {out.__array_interface__["data"][0] for out in seen}
    return len(places), [(out if out.base is None else out.base).size for out in seen]


check = Check("run_in_blocks", points=5)
check.cases("""
# two steps, two blocks
>>> steps = [(np.multiply, ("v0", 2.0), "v1"), (np.add, ("v1", "v0"), "v2")]
>>> with_nan(run_in_blocks, steps, {"v0": np.arange(8.0)}, ["v2"], block=4)
[array([0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0])]

# four steps, three blocks
>>> with_nan(run_in_blocks, STEPS, arrays_of(12), ["v5"], block=4)
[computed(12)["v5"]]

# two results, and a block larger than the arrays
>>> with_nan(run_in_blocks, STEPS, arrays_of(6), ["v5", "v4"], block=100)
[computed(6)["v5"], computed(6)["v4"]]

# the last block is shorter
>>> with_nan(run_in_blocks, STEPS, arrays_of(5), ["v5"], block=2)
[computed(5)["v5"]]

# the shape of the result
>>> with_nan(run_in_blocks, STEPS, arrays_of((3, 4)), ["v5"], block=4)
[computed((3, 4))["v5"]]

# the sizes of the pieces: 8 entries in blocks of 4
>>> pieces(8, 4)
[4, 4]

# the sizes of the pieces: 10 entries in blocks of 4
>>> pieces(10, 4)
[4, 4, 2]

# an intermediate result has one buffer, with room for one block
>>> buffers(10, 4)
(1, [4, 4, 4])

# an input that is asked for comes back as a copy
>>> arrays = arrays_of(4)
>>> (found,) = with_nan(run_in_blocks, [], arrays, ["v0"], block=2)
>>> found
computed(4)["v0"]
>>> np.shares_memory(found, arrays["v0"])
False

# the inputs stay unchanged
>>> arrays = arrays_of(6)
>>> found = with_nan(run_in_blocks, STEPS, arrays, ["v5"], block=3)
>>> arrays["v0"], arrays["v1"]
(computed(6)["v0"], computed(6)["v1"])
""")
check.hidden("""
# one entry, and none
>>> with_nan(run_in_blocks, STEPS, arrays_of(1), ["v5"], block=4)
[computed(1)["v5"]]
>>> with_nan(run_in_blocks, STEPS, arrays_of(()), ["v5"], block=4)
[computed(())["v5"]]
>>> with_nan(run_in_blocks, STEPS, arrays_of(0), ["v5"], block=4)
[computed(0)["v5"]]

# other sizes of arrays and blocks
>>> with_nan(run_in_blocks, STEPS, arrays_of(7), ["v4", "v5"], block=3)
[computed(7)["v4"], computed(7)["v5"]]
>>> with_nan(run_in_blocks, STEPS, arrays_of((4, 3)), ["v5"], block=1)
[computed((4, 3))["v5"]]
>>> with_nan(run_in_blocks, STEPS, arrays_of(9), ["v5"], block=9)
[computed(9)["v5"]]
>>> large = arrays_of(20_001)
>>> (found,) = with_nan(run_in_blocks, STEPS, large, ["v5"])
>>> double = 2 * large["v0"]
>>> float(abs(found - (np.tanh(double + large["v1"]) - double)).max())
got < 1e-12

# results and inputs among what is asked for
>>> with_nan(run_in_blocks, STEPS, arrays_of(5), ["v5", "v0"], block=3)
[computed(5)["v5"], computed(5)["v0"]]
>>> with_nan(run_in_blocks, STEPS, arrays_of((2, 3, 2)), ["v5", "v1"], block=5)
[computed((2, 3, 2))["v5"], computed((2, 3, 2))["v1"]]
>>> with_nan(run_in_blocks, STEPS, arrays_of(6), ["v5", "v4", "v5"], block=4)
[computed(6)["v5"], computed(6)["v4"], computed(6)["v5"]]

# an input that is a transposed array
>>> with_nan(run_in_blocks, [(np.add, ("v0", 1.0), "v1")], {"v0": np.arange(24.0).reshape(4, 6).T}, ["v1"], block=5)
[np.arange(1.0, 25.0).reshape(4, 6).T]
""")

# Exercise 4


def product_and_more(a, b):
    return (a * b + a).tanh() * 2.0 - b


def switched(x, kind):
    if kind is True:
        return x * 10.0
    return x * kind if isinstance(kind, int) else x.tanh()


def fused(function):
    """The function, compiled by the notebook of its tensors; other engines compute it as it is."""

    def run(*tensors):
        names = getattr(type(tensors[0]).__init__, "__globals__", {})
        return names["compiled"](function)(*tensors) if "compiled" in names else function(*tensors)

    return run


def seen_by(tensors):
    """What a function gets that record_chain calls: the kind of each tensor's data, its shape, and requires_grad."""
    seen = []

    def function(*stand_ins):
        seen.append([(type(x.data).__name__, x.shape, x.requires_grad) for x in stand_ins])
        return stand_ins[0] * 2.0

    record_chain(function, tensors)
    return seen


check = Check("record_chain", points=5)
check.cases("""
>>> a, b = MiniTensor([1.0, 2.0, 3.0], requires_grad=True), MiniTensor([4.0, 5.0, 6.0])
>>> x, y = MiniTensor([1.0, 2.0]), MiniTensor([3.0, 4.0])
>>> leaf = MiniTensor([1.0, 2.0], requires_grad=True)

# the function is called once, with tensors whose arrays have no numbers
>>> seen_by([a, b])
[[("Traced", (3,), True), ("Traced", (3,), False)]]

# tensors with two dimensions
>>> seen_by([MiniTensor(np.ones((2, 3)))])
[[("Traced", (2, 3), False)]]

# the inputs have the first names
>>> list(record_chain(product_and_more, [a, b]).inputs)
["v0", "v1"]

# steps make the output and the gradient of a; b has none
>>> chain = record_chain(product_and_more, [a, b])
>>> made = [result for _, _, result in chain.steps]
>>> chain.output in made, [name in made for name in chain.gradients]
(True, [True, False])
>>> chain.gradients[1]
None

# the cotangent is a name, that of one more array
>>> chain = record_chain(product_and_more, [a, b])
>>> type(chain.cotangent).__name__, chain.cotangent in (*chain.inputs, chain.output)
("str", False)

# no tensor requires grad: only the forward steps, no cotangent
>>> chain = record_chain(lambda x, y: x * y, [b, b])
>>> chain.cotangent, chain.gradients
(None, [None, None])
>>> len(chain.steps)
1

# recording is off: no cotangent
>>> with no_grad():
...     chain = record_chain(product_and_more, [a, b])
>>> chain.cotangent, chain.gradients
(None, [None, None])

# a function that returns its input: it has a gradient
>>> chain = record_chain(lambda x: x, [a])
>>> chain.output, chain.cotangent, [name is None for name in chain.gradients]
("v0", "v1", [False])

# the numbers and the gradient of a compiled function
>>> fast = compiled(lambda a, b: a * b - a)
>>> result = with_nan(fast, a, b)
>>> result.data
array([3.0, 8.0, 15.0])
>>> with_nan(result.backward, np.array([1.0, 10.0, 100.0]))
>>> a.grad.data
array([3.0, 40.0, 500.0])
>>> [chain is None for chain in fast.chains.values()]
[False]

# the guards are a tuple that can be the key of a dict
>>> type(guards((x, True))).__name__, {guards((x, True)): 1}[guards((x, True))]
("tuple", 1)

# another tensor with the same numbers: equal guards
>>> guards((x, True)) == guards((MiniTensor([1.0, 2.0]), True))
True

# other numbers in a tensor: equal guards
>>> guards((x, True)) == guards((y, True))
True

# another shape, also one with as many entries: other guards
>>> guards((x,)) == guards((MiniTensor([1.0, 2.0, 3.0]),)), guards((x,)) == guards((MiniTensor([[1.0, 2.0]]),))
(False, False)

# one tensor requires grad, the other does not: other guards
>>> guards((x,)) == guards((leaf,))
False

# a different one of the tensors requires grad: other guards
>>> guards((x, leaf)) == guards((leaf, x))
False

# the tensor is in another position: other guards
>>> guards((x, 2.0)) == guards((2.0, x)), guards((x, None)) == guards((None, x))
(False, False)

# another number: other guards
>>> guards((x, 2)) == guards((x, 3))
False

# another number with the same hash: other guards
>>> hash(-1) == hash(-2), guards((x, -1)) == guards((x, -2))
(True, False)

# equal numbers of different types: other guards
>>> guards((x, 1)) == guards((x, 1.0)), guards((x, 1)) == guards((x, True))
(False, False)

# a string that reads like the other argument: other guards
>>> guards((x, 2)) == guards((x, "2")), guards((x, None)) == guards((x, "None"))
(False, False)

# recording is on, and off: other guards
>>> with no_grad():
...     while_off = guards((x, True))
>>> while_off == guards((x, True))
False

# one tensor requires grad, and recording is off: other guards, too
>>> with no_grad():
...     equal = guards((x, True)) == guards((leaf, True))
>>> equal
False

# a compiled function is recorded once for all arguments with equal guards
>>> fast = compiled(switched)
>>> with_nan(fast, a, True).data
array([10.0, 20.0, 30.0])
>>> with_nan(fast, a, 1).data
array([1.0, 2.0, 3.0])
>>> with_nan(fast, a, None).data
np.tanh([1.0, 2.0, 3.0])
>>> with_nan(fast, a + 1, True).data
array([20.0, 30.0, 40.0])
>>> fast.traced
3
""")
check.gradients({"product_and_more, compiled": fused(product_and_more)}, [[(2, 3), (2, 3)], [(1, 1), (1, 1)]])
check.hidden("""
# when a compiled function is recorded again
>>> fast = compiled(switched)
>>> with_nan(fast, a, True).requires_grad, with_nan(fast, b, True).requires_grad
(True, False)
>>> with_nan(fast, b, True).data
array([40.0, 50.0, 60.0])
>>> with_nan(fast, leaf, True).data
array([10.0, 20.0])
>>> with_nan(fast, MiniTensor([[1.0, 2.0]], requires_grad=True), True).data
array([[10.0, 20.0]])
>>> with no_grad():
...     result = with_nan(fast, a, True)
>>> result.requires_grad, fast.traced
(False, 5)

# other numbers and strings as arguments of a compiled function
>>> fast = compiled(switched)
>>> [with_nan(fast, x, number).data.tolist() for number in (2, 3, 2, -1, -2)]
[[2.0, 4.0], [3.0, 6.0], [2.0, 4.0], [-1.0, -2.0], [-2.0, -4.0]]
>>> with_nan(fast, x, "2").data
np.tanh([1.0, 2.0])
>>> with_nan(fast, x, None).data
np.tanh([1.0, 2.0])
>>> fast.traced
6

# other positions of the arguments of a compiled function
>>> difference = compiled(lambda x, y: x - y)
>>> with_nan(difference, a, 2.0).data
array([-1.0, 0.0, 1.0])
>>> with_nan(difference, 2.0, a).data
array([1.0, 0.0, -1.0])
>>> with_nan(difference, a, b).data
array([-3.0, -3.0, -3.0])
>>> with_nan(difference, b, a).data
array([3.0, 3.0, 3.0])
>>> difference.traced
4
>>> with_nan(compiled(lambda x, factor, y: x * factor + y), a, 2.0, b).data
array([6.0, 9.0, 12.0])

# the tensors stay as they are
>>> chain = record_chain(product_and_more, [a, b])
>>> a.grad, b.grad
(None, None)
>>> a.data, b.data
(array([1.0, 2.0, 3.0]), array([4.0, 5.0, 6.0]))

# a part of the function is not recorded by the engine
>>> def without_history(a, b):
...     with no_grad():
...         double = a * 2
...     return double * b
>>> chain = record_chain(without_history, [a, a])
>>> [name is None for name in chain.gradients]
[True, False]
""")
check.gradients(
    {
        "a reused input, fused": fused(lambda a, b: a * a * a / (b * b + 1.0) + a),
        "a plus b, fused": fused(lambda a, b: a + b),
        "no way from b, fused": fused(lambda a, b: (a * 0.5).exp()),
        "between other operations": lambda a, b: fused(product_and_more)(a.exp(), b * 2).sum(dim=1),
    },
    [[(2, 3), (2, 3)], [(1, 1), (1, 1)]],
    hidden=True,
)

# Exercise 5


def there(x):
    """To the stand-in; the engines that this is compared with have none."""
    return x.to("remote") if type(x).__name__ == "MiniTensor" else x


def back(x):
    return x.to("cpu") if type(x).__name__ == "MiniTensor" else x


def devices(inputs):
    """Where on_one_device puts the inputs."""
    return [tensor.device for tensor in on_one_device(inputs)]


check = Check("to", points=5)
check.cases("""
>>> DEVICES["remote"] = remote
>>> remote.reset()
>>> x = MiniTensor([1.0, 2.0, 3.0], requires_grad=True)
>>> factor = MiniTensor(4.0, requires_grad=True)
>>> y = MiniTensor(remote.asarray([1.0, 2.0, 3.0]), requires_grad=True)
>>> number_there = MiniTensor(remote.asarray(5.0))

# a tensor is copied to another device; it stays where it is itself
>>> copy = x.to("remote")
>>> copy.device, x.device
("remote", "cpu")
>>> copy.data.get()
array([1.0, 2.0, 3.0])

# the gradient goes back to the CPU
>>> x.to("remote").sum().backward()
>>> x.grad.device
"cpu"
>>> x.grad.data
np.ones(3)

# the gradient goes back to the other device
>>> y.to("cpu").sum().backward()
>>> y.grad.device
"remote"
>>> y.grad.data.get()
np.ones(3)

# two gradients are copied to the host: 24 and 8 bytes
>>> (x.to("remote") * factor + 1).sum().backward()
>>> remote.to_host
32

# a number beside a tensor elsewhere
>>> tensor, two = on_one_device([y, 2])
>>> two.device, two.shape
("remote", ())
>>> float(two.data.get())
2.0

# a tensor without dimensions on the CPU beside a tensor elsewhere
>>> copy, tensor = on_one_device([factor, y])
>>> copy.device, factor.device
("remote", "cpu")
>>> float(copy.data.get())
4.0

# its gradient gets back
>>> (y * factor).sum().backward()
>>> factor.grad.device
"cpu"
>>> factor.grad.data
array(6.0)

# four inputs, in their order
>>> [tensor.shape for tensor in on_one_device([factor, 2, y, 3])]
[(), (), (3,), ()]
>>> devices([factor, 2, y, 3])
["remote", "remote", "remote", "remote"]

# a tensor that is in its place is itself returned
>>> on_one_device([y, 2])[0] is y, on_one_device([x, factor])[1] is factor
(True, True)

# two tensors with dimensions in two places
>>> devices([x, y])
RuntimeError: Expected all tensors to be on the same device*
>>> devices([y, y, x])
RuntimeError: Expected all tensors to be on the same device*

# a tensor of shape (1,) on the CPU has a dimension: it stays
>>> devices([y, MiniTensor([4.0])])
RuntimeError: Expected all tensors to be on the same device*

# a tensor without dimensions elsewhere stays there
>>> devices([x, number_there])
RuntimeError: Expected all tensors to be on the same device*

# only numbers: all stay on the CPU
>>> tensors = on_one_device([factor, 3])
>>> [tensor.device for tensor in tensors]
["cpu", "cpu"]
>>> [float(tensor.data) for tensor in tensors]
[4.0, 3.0]

# an array becomes a MiniTensor where it is
>>> tensor = on_one_device([x, np.ones(3)])[1]
>>> type(tensor).__name__, tensor.device
("MiniTensor", "cpu")
>>> tensor.data
np.ones(3)

# a module without a name in DEVICES is a place like any other
>>> elsewhere = Remote("elsewhere")
>>> third = MiniTensor(elsewhere.asarray(np.ones(3)))
>>> devices([third, 2.5, factor])
["elsewhere", "elsewhere", "elsewhere"]
>>> devices([y, third])
RuntimeError: Expected all tensors to be on the same device*
""")
check.gradients({"a product, elsewhere": lambda a, b: back((there(a) * there(b)).tanh())}, [(3, 3), (3, 3)])
check.hidden("""
# other inputs in two places
>>> devices([number_there, x])
RuntimeError: Expected all tensors to be on the same device*
>>> devices([y, factor, x])
RuntimeError: Expected all tensors to be on the same device*
>>> devices([MiniTensor([[4.0]]), y])
RuntimeError: Expected all tensors to be on the same device*

# inputs without dimensions
>>> devices([factor, number_there]), devices([factor, 3, True])
(["remote", "remote"], ["cpu", "cpu", "cpu"])
>>> [float(tensor.data) for tensor in on_one_device([factor, 3, True])]
[4.0, 3.0, 1.0]

# a factor that is moved still requires grad
>>> elsewhere = Remote("elsewhere")
>>> copy, third = on_one_device([factor, MiniTensor(elsewhere.asarray(np.ones(3)))])
>>> copy.device, copy.requires_grad
("elsewhere", True)
""")
check.gradients(
    {
        "a @ b, elsewhere": lambda a, b: back(there(a) @ there(b)),
        "half of it elsewhere": lambda a, b: back(there(a).exp()) * a + b.sum(),
        "a number of the host": lambda a, b: back(there(a * 2 + 1) * b.sum() - 3),
        "sum over a dim": lambda a, b: back((there(a) / 3).sum(dim=1)),
    },
    [(3, 3), (3, 3)],
    hidden=True,
)

# Exercise 6

check = Check("traffic", points=2)
check.cases("""
# a step reads an array once, even if it is named twice
>>> tuple(traffic([(np.multiply, ("v0", "v0"), "v1")], ["v1"], 10))
(80, 80)

# numbers are not read
>>> tuple(traffic([(np.add, ("v0", 3.0), "v1")], ["v1"], 10))
(80, 80)

# one operation at a time, all five steps run: they read 1, 1, 1, 2 and 1 arrays
>>> tuple(traffic(SQUARES, ["v4"], 10))
(480, 400)

# fused: v0 is read, and v4 is written
>>> tuple(traffic(SQUARES, ["v4"], 10, fused=True))
(80, 80)

# fused: v0 and v1 are read, v3 and v5 are written
>>> tuple(traffic(SQUARES, ["v3", "v5"], 10, fused=True))
(160, 160)

# fused: a result that is asked for twice is written once
>>> tuple(traffic(SQUARES, ["v4", "v5", "v4"], 10, fused=True))
(80, 160)
""")
check.hidden("""
# a long chain
>>> chain = [(np.add, ("v0", 1.5), "v1")] + [(np.tanh, (f"v{i}",), f"v{i + 1}") for i in range(1, 6)]
>>> tuple(traffic(chain, ["v6"], 7)), tuple(traffic(chain, ["v6"], 7, fused=True))
((336, 336), (56, 56))
>>> tuple(traffic(chain, ["v6", "v2"], 7, fused=True))
(56, 112)

# three inputs
>>> three = [(np.add, ("v0", "v1"), "v3"), (np.divide, ("v3", "v2"), "v4"), (np.exp, ("v2",), "v5")]
>>> tuple(traffic(three, ["v4"], 1)), tuple(traffic(three, ["v4"], 1, fused=True))
((40, 24), (24, 8))
>>> tuple(traffic(three, ["v3"], 1, fused=True))
(16, 8)
""")
