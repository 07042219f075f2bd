"""What the exercises of lesson 13 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import tracemalloc
import weakref

import numpy as np

from autograder.checks.cases import Check

# Exercise 1


def tanh_in_a_row(x, times):
    for _ in range(times):
        x = x.tanh()
    return x


def halved(x):
    """x / 2, by a node that saves None and a mask."""

    class Halved(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(None, a > 0)
            return a / 2

    return Halved.apply(x)


check = Check("saved_bytes", points=4)
check.cases("""
>>> w = MiniTensor(np.ones((3, 2)), requires_grad=True)
>>> x = MiniTensor(np.ones((5, 3)))
>>> h = (x @ w).tanh()

# the data x has 120 bytes, the output of tanh 80, the parameter w 48
>>> saved_bytes(h)
(200, 48)

# h * h saves h, which counts once; no node saves h * h itself
>>> saved_bytes(h * h)
(200, 48)

# sums save nothing
>>> saved_bytes(x @ w + w.sum())
(120, 48)

# a parameter that no node saves
>>> bias = MiniTensor(np.ones(2), requires_grad=True)
>>> saved_bytes(x @ w + bias)
(120, 48)

# a tensor without a grad_fn: data, and a leaf
>>> saved_bytes(x), saved_bytes(w)
((0, 0), (0, 0))

# v.T is a view of the parameter v
>>> v = MiniTensor(np.ones((4, 3)), requires_grad=True)
>>> saved_bytes(x @ v.T)
(120, 96)

# two products of equal numbers are two arrays
>>> saved_bytes((x @ w) * (x @ w))
(280, 48)

# two views of 32 bytes keep an array of 3200 bytes alive, which is no leaf
>>> big = MiniTensor(np.ones((100, 4)), requires_grad=True) * 2
>>> saved_bytes(big[0:1] * big[1:2])[0]
3200 <= got < 6400

# after backward all nodes have been freed
>>> h.backward(np.ones((5, 2)))
>>> saved_bytes(h)
(0, 0)

# exp has not run backward: of these nodes it alone keeps its output
>>> behind = h.exp()
>>> h.backward(np.ones((5, 2)))
>>> saved_bytes(behind)
(80, 0)

# 3000 outputs of tanh, 48 bytes each
>>> saved_bytes(tanh_in_a_row(w, 3000))
(144000, 0)

# an entry that is None keeps nothing, and a mask one byte for each entry
>>> saved_bytes(halved(MiniTensor(np.ones(7), requires_grad=True)))
(7, 0)

# one and the same graph in a later call
>>> one, other = w.exp(), w.tanh()
>>> first, second, third = saved_bytes(one), saved_bytes(other), saved_bytes(one)
>>> [after - before for before, after in zip(first, third)]
[0, 0]
""")
check.hidden("""
# a parameter that is saved twice
>>> saved_bytes(w * w)
(0, 48)

# two memories with equal entries
>>> saved_bytes(h * (x @ w).tanh())
(280, 48)

# views of one memory
>>> flat = (x @ w).reshape(10)
>>> saved_bytes(flat * flat.reshape(2, 5).reshape(10))
(200, 48)

# one freed node among others
>>> behind = h.exp()
>>> h.grad_fn.release()
>>> saved_bytes(behind)
(200, 48)
""")

# Exercise 2: values and gradients


def noting(runs, expected):
    """The function exp, noting at each run: is it recorded, does the input require grad, is it the expected one?"""

    def function(x):
        runs.append((is_grad_enabled(), x.requires_grad, x is expected))
        return x.exp()

    return function


def summed_times(x, w):
    return x.exp().sum(0) * w


def saved_shapes(output):
    return [array.shape for array in output.grad_fn.saved_tensors]


def with_checkpoint(function, x, *others):
    """function(x, *others) in the checkpoint of the notebook of x; other engines compute the same without one."""
    names = getattr(type(x).__init__, "__globals__", {})
    return names["checkpoint"](function, x, *others) if "checkpoint" in names else function(x, *others)


def unequal(program, x_requires_grad=True, w_requires_grad=True):
    """How many entries of the value and of the two gradients differ with and without checkpoints."""
    draw, found = np.random.default_rng(13), []
    a, b = draw.normal(size=(3, 4)), draw.normal(size=(4, 4))
    for call in (lambda function, *inputs: function(*inputs), checkpoint):
        x, w = MiniTensor(a, requires_grad=x_requires_grad), MiniTensor(b, requires_grad=w_requires_grad)
        y = program(call, x, w)
        y.backward(np.linspace(1.0, 2.0, y.data.size).reshape(y.shape))
        found.append([y.data, *(None if t.grad is None else t.grad.data for t in (x, w))])
    return [unequal_entries(*pair) for pair in zip(*found, strict=True)]


def unequal_entries(right, mine):
    if right is None or mine is None:
        return 0 if right is mine else "one of two gradients is None"
    return int(np.sum(right != mine)) if np.shape(right) == np.shape(mine) else "another shape"


def one_block(call, x, w):
    return call(lambda x, w: (x @ w).tanh() * x, x, w)


def through_closure(call, x, w):
    return call(lambda x: (x @ w).tanh(), x)


def side_by_side(call, x, w):
    """Two checkpoints whose rules run in turn; each has arrays of its own."""
    (a, b), (c, d) = (call(lambda s: (s.exp(), s.tanh()), s) for s in (x, x * 2))
    return (a * c) @ w + (b * d) @ w


def nested(call, x, w):
    return call(lambda x, w: call(lambda x: (x @ w).tanh(), x).exp() * w[0], x, w)


check = Check("checkpoint", points=5)
check.cases("""
>>> x, runs = MiniTensor([0.5, 1.0], requires_grad=True), []

# forward the function runs once, recorded, and gets the input itself
>>> y = checkpoint(noting(runs, x), x)
>>> runs
[(True, True, True)]
>>> y.data, y.requires_grad
(np.exp([0.5, 1.0]), True)

# in backward it runs once more, recorded, and gets the input itself
>>> checkpoint(noting(runs, x), x).backward(np.array([1.0, 10.0]))
>>> runs[1:]
[(True, True, True)]

# the gradient of exp
>>> checkpoint(lambda x: x.exp(), x).backward(np.array([1.0, 10.0]))
>>> x.grad.data
np.exp([0.5, 1.0]) * [1.0, 10.0]

# two calls, one after the other
>>> for _ in range(2):
...     checkpoint(lambda x: x.exp(), x).backward(np.ones(2))
>>> x.grad.data
2 * np.exp([0.5, 1.0])

# the product in x.exp().sum(0) * w gets back arrays of the shapes that it saves
>>> x, w = MiniTensor(np.ones((3, 4)), requires_grad=True), MiniTensor(np.ones((4, 4)), requires_grad=True)
>>> saved_shapes(summed_times(x, w)), saved_shapes(checkpoint(summed_times, x, w))
got[0] == got[1]

# inputs that are no tensors
>>> checkpoint(lambda x, number: type(number).__name__, x, 1)
"int"
>>> y = checkpoint(lambda x, power, name: x**power if name == "cube" else x, x, 3, "cube")
>>> y.backward(np.ones(2))
>>> x.grad.data
array([0.75, 3.0])

# (x @ w).tanh() * x: how many entries of the value and of the gradients differ without a checkpoint
>>> unequal(one_block)
[0, 0, 0]

# the same with x as data
>>> unequal(one_block, x_requires_grad=False)
[0, 0, 0]

# x is data, and the function finds w through its closure
>>> unequal(through_closure, x_requires_grad=False)
[0, 0, 0]

# two checkpoints whose rules run in turn
>>> unequal(side_by_side)
[0, 0, 0]

# a checkpoint that uses a checkpoint
>>> unequal(nested)
[0, 0, 0]
""")
check.gradients(
    {"a checkpoint around (a @ b).tanh()": lambda a, b: with_checkpoint(lambda a, b: (a @ b).tanh(), a, b)},
    [(2, 3), (3, 4)],
)
check.hidden("""
# values and gradients of larger networks, bit by bit
>>> def three_blocks(call, x, w):
...     for _ in range(3):
...         x = x + call(lambda x: ((x @ w).tanh() @ w).exp() * 0.1, x)
...     return x * w[0]
>>> def deeper(call, x, w):
...     def inner(x):
...         return (x @ w).tanh().exp()
...     return call(lambda x, w: call(inner, call(inner, x).tanh()) * w[1], x, w)
>>> def two_results(call, x, w):
...     first, second = call(lambda x, w: ((x @ w).tanh(), x.exp()), x, w)
...     return first * second + first
>>> programs = three_blocks, deeper, two_results
>>> [unequal(program) for program in programs]
[[0, 0, 0]] * 3
>>> [unequal(program, x_requires_grad=False) for program in programs]
[[0, 0, 0]] * 3
>>> [unequal(program, w_requires_grad=False) for program in programs]
[[0, 0, 0]] * 3

# other inputs that are no tensors
>>> checkpoint(lambda x, scale, shift: (x * scale + shift).tanh(), x, 3, np.ones(2)).data
np.tanh([2.5, 4.0])
""")
check.gradients(
    {
        "a checkpoint within a checkpoint": lambda a, b: with_checkpoint(
            lambda a, b: with_checkpoint(lambda a: a.exp() * b, a).tanh() @ b.T, a, b
        ),
        "a checkpoint whose result is used twice": lambda a, b: (
            with_checkpoint(lambda a, b: (a * b).tanh(), a, b) * with_checkpoint(lambda a: a.exp(), a)
        ),
    },
    [[(2, 3), (2, 3)], [(1, 4), (1, 4)]],
    hidden=True,
)

# Exercise 2: runs and memory


def watching():
    """A function for a checkpoint; weak references to the two arrays of each run; and, for each backward pass, how many
    arrays are alive when the rule of exp, the last one, is about to run.
    """
    arrays, left = [], []

    def function(x):
        first = x.exp()
        second = first.tanh()
        third = first * second
        if first.requires_grad:
            first.register_hook(lambda grad: left.append(alive(arrays)))
        arrays.append([weakref.ref(tensor.data) for tensor in (first, second)])
        return third.sum()

    return function, arrays, left


def alive(arrays):
    return sum(array() is not None for run in arrays for array in run)


def gradient_of_watched(x):
    once, twice = np.exp(x), np.tanh(np.exp(x))
    return once * (twice + once * (1 - twice**2))


def counted(function, *later):
    """A function that runs `function` the first time and the others the next times, and the list of its runs."""
    runs = []

    def run(*inputs):
        runs.append(len(inputs))
        return (function, *later)[min(len(runs) - 1, len(later))](*inputs)

    return run, runs


def sums_of_parts(handed_out, *runs):
    """A function whose runs save arrays of these sizes. Its last rule, which needs one array of the same shape in all
    runs, notes that it has run.
    """
    waiting = list(runs)

    def function(x):
        total = sum(x[:size].exp().sum() for size in waiting.pop(0))
        total.register_hook(lambda grad: handed_out.append(1))
        return total.tanh()

    return function


def inputs_kept():
    """What a checkpoint adds to the memory in use, as a multiple of its input."""
    x = MiniTensor(np.ones(100_000), requires_grad=True)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        y = checkpoint(lambda x: x.exp().sum(), x)
        return round((tracemalloc.get_traced_memory()[0] - before) / x.data.nbytes) if y.requires_grad else 0
    finally:
        tracemalloc.stop()


check = Check("checkpoint_memory", points=5)
check.cases("""
>>> x = MiniTensor([0.1, 0.2, 0.3], requires_grad=True)
>>> function, arrays, left = watching()

# the hooks work (otherwise run the cell with `class SavedHooks`, and every cell below it)
>>> packed = []
>>> with saved_tensors_hooks(packed.append, np.array):
...     y = x.exp()
>>> len(packed)
1

# after forward: runs, and arrays of the function that are alive
>>> y = checkpoint(function, x)
>>> len(arrays), alive(arrays)
(1, 0)

# after backward with retain_graph=True: runs, and arrays that are alive
>>> y = checkpoint(function, x)
>>> y.backward(retain_graph=True)
>>> len(arrays), alive(arrays)
(2, 0)

# during backward: arrays that are alive before the last rule, which needs one of the two
>>> y = checkpoint(function, x)
>>> y.backward()
>>> left
[1]

# a second backward, in no_grad: runs, and the gradient
>>> y = checkpoint(function, x)
>>> y.backward(retain_graph=True)
>>> with no_grad():
...     y.backward()
>>> len(arrays)
3
>>> x.grad.data
2 * gradient_of_watched(np.array([0.1, 0.2, 0.3]))

# backward through a graph that has been freed
>>> y = checkpoint(function, x)
>>> y.backward()
>>> y.backward()
RuntimeError: Trying to backward*

# backward twice from one of two results, and never from the other
>>> first, second = checkpoint(lambda x: (x.exp(), x.tanh()), x)
>>> first.backward(np.ones(3), retain_graph=True)
>>> first.backward(np.ones(3))
>>> x.grad.data
2 * np.exp([0.1, 0.2, 0.3])

# the second run and the third save one array more
>>> function, runs = counted(lambda x: x.exp(), lambda x: x.exp().tanh())
>>> y = checkpoint(function, x).sum()
>>> y.backward(retain_graph=True)
RuntimeError: checkpoint: the second run of the function*
>>> y.backward()
RuntimeError: checkpoint: the second run of the function*
>>> len(runs)
3

# the second run and the third save one array fewer
>>> function, runs = counted(lambda x: x.exp().tanh(), lambda x: x.exp())
>>> y = checkpoint(function, x).sum()
>>> y.backward(retain_graph=True)
RuntimeError: checkpoint: the second run of the function*
>>> y.backward()
RuntimeError: checkpoint: the second run of the function*

# the second run saves an array of another shape
>>> function, runs = counted(lambda x: x.exp().sum(), lambda x: x.reshape(3, 1).exp().sum())
>>> checkpoint(function, x).backward()
RuntimeError: checkpoint: the second run of the function*

# the second run saves the shapes in another order: no rule gets an array
>>> handed_out = []
>>> y = checkpoint(sums_of_parts(handed_out, (3, 2), (2, 3), (2, 3)), x)
>>> y.backward(retain_graph=True)
RuntimeError: checkpoint: the second run of the function*
>>> y.backward()
RuntimeError: checkpoint: the second run of the function*
>>> len(handed_out)
0

# one of the second run's arrays has another shape, but not the first that is asked for: no rule gets an array
>>> handed_out = []
>>> y = checkpoint(sums_of_parts(handed_out, (3, 2), (3, 1)), x)
>>> y.backward()
RuntimeError: checkpoint: the second run of the function*
>>> len(handed_out)
0

# only the third run saves one array more
>>> function, runs = counted(lambda x: x.exp(), lambda x: x.exp(), lambda x: x.exp().tanh())
>>> y = checkpoint(function, x).sum()
>>> y.backward(retain_graph=True)
>>> y.backward()
RuntimeError: checkpoint: the second run of the function*

# the first input has been changed in place: the function does not run again
>>> function, runs = counted(lambda a, b: (a * b).sum())
>>> first, data = x * 1, MiniTensor([1.0, 2.0, 3.0])
>>> y = checkpoint(function, first, data)
>>> changed = first.mul_(2.0)
>>> y.backward()
RuntimeError: checkpoint: an input has been changed in place*
>>> len(runs)
1

# the second input, which is data, has been changed in place
>>> first, data = x * 1, MiniTensor([1.0, 2.0, 3.0])
>>> y = checkpoint(lambda a, b: (a * b).sum(), first, data)
>>> changed = data.mul_(2.0)
>>> y.backward()
RuntimeError: checkpoint: an input has been changed in place*

# the second input, which requires a gradient, has been changed in place
>>> data, second = MiniTensor([1.0, 2.0, 3.0]), x * 1
>>> y = checkpoint(lambda a, b: (a * b).sum(), data, second)
>>> changed = second.mul_(2.0)
>>> y.backward()
RuntimeError: checkpoint: an input has been changed in place*

# the function itself changes its input in place
>>> y = checkpoint(lambda z: z.mul_(2.0).exp(), x * 1).sum()
>>> y.backward()
RuntimeError: checkpoint: an input has been changed in place*

# an input was changed in place before checkpoint was called, which is fine
>>> data = MiniTensor([1.0, 2.0, 3.0]).mul_(2.0)
>>> checkpoint(lambda a, b: (a * b).sum(), x, data).backward()
>>> x.grad.data
array([2.0, 4.0, 6.0])

# an input is changed in place between two backward passes
>>> data = MiniTensor([1.0, 2.0, 3.0])
>>> y = checkpoint(lambda a, b: (a * b).sum(), x, data)
>>> y.backward(retain_graph=True)
>>> changed = data.mul_(2.0)
>>> y.backward()
RuntimeError: checkpoint: an input has been changed in place*

# copies of a large input that are in use after forward
>>> inputs_kept()
0
""")
check.hidden("""
# recording is off, or nothing requires grad
>>> with no_grad():
...     y = checkpoint(function, x)
>>> y.requires_grad, len(arrays), alive(arrays), is_grad_enabled()
(False, 1, 0, True)
>>> checkpoint(function, MiniTensor([1.0])).requires_grad, len(arrays)
(False, 2)

# after backward nothing is alive
>>> y = checkpoint(function, x)
>>> x.grad
None
>>> y.backward()
>>> alive(arrays)
0

# an error of the function goes on, and the hooks are as before
>>> checkpoint(lambda x: {}["a mistake in the function"], x)
KeyError*
>>> saved_bytes(x.exp())
(24, 0)

# two results
>>> first, second = checkpoint(lambda x: (x.exp(), x.tanh()), x)
>>> first.sum().backward()
>>> second.sum().backward()
>>> x.grad.data
np.exp([0.1, 0.2, 0.3]) + 1 - np.tanh([0.1, 0.2, 0.3]) ** 2

# inputs of several kinds, one of them changed
>>> first, second = x * 1, x * 2
>>> y = checkpoint(lambda first, number, second: first.exp() * number * second, first, 3, second)
>>> changed = second.add_(1.0)
>>> y.sum().backward()
RuntimeError: checkpoint: an input has been changed in place*
""")

# Exercise 3

ROW = np.array([1.0, -0.5, 2.0])
INCOMING = np.array([1.0, 10.0, 100.0])


def factors(count):
    return np.random.default_rng(count).uniform(0.5, 1.5, size=(count, 3))


def noted_layers(count, order):
    """Weights, and layers that multiply by them, apply tanh, and note their numbers when they run."""
    weights = [MiniTensor(array, requires_grad=True) for array in factors(count)]

    def layer(number):
        def run(x):
            order.append(number)
            return (x * weights[number]).tanh()

        return run

    return weights, [layer(number) for number in range(count)]


def by_hand(count):
    """The result of such layers, and the gradients of their weights, computed with NumPy."""
    values = [ROW]
    for factor in factors(count):
        values.append(np.tanh(values[-1] * factor))
    grad, gradients = INCOMING, []
    for factor, before, after in zip(factors(count)[::-1], values[-2::-1], values[::-1], strict=False):
        grad = grad * (1 - after**2)
        gradients.insert(0, grad * before)
        grad = grad * factor
    return values[-1], gradients


def gradients_of(weights):
    return [None if w.grad is None else w.grad.data for w in weights]


check = Check("in_segments", points=3)
check.cases("""
>>> order = []
>>> weights, layers = noted_layers(6, order)
>>> x = MiniTensor(ROW)

# forward, with the cuts (2, 4): each layer runs once, on the output of the one before it
>>> y = in_segments(layers, x, (2, 4))
>>> order
[0, 1, 2, 3, 4, 5]
>>> y.data
by_hand(6)[0]

# backward, with the cuts (2, 4): the layers that run again
>>> y = in_segments(layers, x, (2, 4))
>>> y.backward(INCOMING)
>>> order[6:]
[2, 3, 0, 1]

# the gradients of the weights, with the cuts (2, 4)
>>> y = in_segments(layers, x, (2, 4))
>>> y.backward(INCOMING)
>>> gradients_of(weights)
by_hand(6)[1]

# without cuts no layer runs again
>>> y = in_segments(layers, x, ())
>>> y.backward(INCOMING)
>>> order
[0, 1, 2, 3, 4, 5]
>>> gradients_of(weights)
by_hand(6)[1]

# the lists of layers and cuts stay as they are
>>> cuts = [1]
>>> y = in_segments(layers, x, cuts)
>>> len(layers), cuts
(6, [1])
>>> y.backward(INCOMING)
>>> order[6:]
[0]
""")
check.hidden("""
# a cut before every layer
>>> y = in_segments(layers, x, (1, 2, 3, 4, 5))
>>> y.backward(INCOMING)
>>> order
[0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0]
>>> gradients_of(weights)
by_hand(6)[1]

# one cut, and other layers
>>> order = []
>>> weights, layers = noted_layers(5, order)
>>> y = in_segments(layers, x, [3])
>>> y.backward(INCOMING)
>>> order[5:]
[0, 1, 2]
>>> gradients_of(weights)
by_hand(5)[1]

# a single layer
>>> in_segments(layers[:1], x, ()).backward(INCOMING)
>>> order
[0]

# the layers run in the order of the list
>>> x = MiniTensor([2.0], requires_grad=True)
>>> y = in_segments([lambda x: x * 2, lambda x: x**2, lambda x: x + 1], x, (1, 2))
>>> y.backward(np.array([10.0]))
>>> y.data, x.grad.data
(array([17.0]), array([160.0]))
""")

# Exercise 4

check = Check("best_cuts", points=4)
check.cases("""
>>> saved, outputs = [10, 10, 30, 10], [5, 1, 5, 7]

# peak_bytes: a cut at 2 keeps 1 byte, and the larger segment 40
>>> peak_bytes(saved, outputs, (2,))
41

# peak_bytes without cuts
>>> peak_bytes(saved, outputs, ())
60

# peak_bytes: two cuts keep two outputs, 10, and the largest segment 40
>>> peak_bytes(saved, outputs, [1, 3])
50

# the three lists after peak_bytes
>>> cuts = [1, 3]
>>> peak = peak_bytes(saved, outputs, cuts)
>>> saved, outputs, cuts
([10, 10, 30, 10], [5, 1, 5, 7], [1, 3])

# a cut after a small output
>>> list(best_cuts([10, 10, 30, 10], [5, 1, 50, 5]))
[2]

# nine equal layers
>>> list(best_cuts([1] * 9, [1] * 9))
[3, 6]

# not at equal distances
>>> list(best_cuts([30, 10, 10, 10], [5, 50, 50, 50]))
[1]

# a cut at every place is best if outputs are small
>>> list(best_cuts([10] * 6, [1] * 6))
[1, 2, 3, 4, 5]

# a cut at three of four places
>>> list(best_cuts([30, 30, 30, 30, 1], [1, 1, 1, 50, 1]))
[1, 2, 3]

# the best single cut, 2, is not part of the best plan
>>> list(best_cuts([10, 10, 10, 20], [5, 9, 9, 5]))
[1, 3]

# no cut is better than one
>>> list(best_cuts([5, 5], [9, 9]))
[]

# a single layer
>>> list(best_cuts([7], [3]))
[]

# the two lists after best_cuts
>>> cuts = best_cuts(saved, outputs)
>>> saved, outputs
([10, 10, 30, 10], [5, 1, 5, 7])
""")
check.hidden("""
# small networks
>>> list(best_cuts([5, 5, 5], [9, 9, 9])), list(best_cuts([5, 5], [0, 9]))
([], [1])

# larger networks, and other plans
>>> saved, outputs = [88, 92, 32, 9, 87, 97, 30, 64], [24, 9, 25, 5, 36, 12, 18, 33]
>>> list(best_cuts(saved, outputs))
[1, 2, 4, 5, 6]
>>> [peak_bytes(saved, outputs, cuts) for cuts in ([], [1], [1, 2], [7], [2, 4, 6])]
[499, 435, 352, 453, 210]
>>> peak_bytes([1] * 12, [1] * 12, best_cuts([1] * 12, [1] * 12))
6
""")

# Exercise 5


def places(*generators):
    """How many numbers each of two generators, made with the seeds 1 and 2, has given; -1 if more than 40."""
    found = []
    for seed, generator in enumerate(generators, 1):
        fresh, count = np.random.default_rng(seed), 0
        while fresh.bit_generator.state != generator.bit_generator.state and count <= 40:
            fresh.random()
            count += 1
        found.append(count if count <= 40 else -1)
    return tuple(found)


def places_before_drawing(*generators):
    """A function that draws 3 numbers of each generator, and returns how many they had given before."""

    def draw(count=3, fail=False):
        found = places(*generators)
        for generator in generators:
            generator.random(count)
        if fail:
            raise KeyError(count)
        return found

    return draw


def others_draw(one, two):
    one.random(5)
    two.random(4)


check = Check("repeatable", points=4)
check.cases("""
>>> one, two = np.random.default_rng(1), np.random.default_rng(2)
>>> draw = places_before_drawing(one, two)
>>> call = repeatable(draw, [one, two])

# the first call draws as usual
>>> call()
(0, 0)
>>> places(one, two)
(3, 3)

# the second call gets the numbers of the first
>>> first = call()
>>> others_draw(one, two)
>>> call()
(0, 0)

# after the second call, both generators are as before it
>>> first = call()
>>> others_draw(one, two)
>>> second = call()
>>> places(one, two)
(8, 7)

# the third call gets the numbers of the first, too
>>> first = call()
>>> others_draw(one, two)
>>> second = call()
>>> others_draw(one, two)
>>> call(), places(one, two)
((0, 0), (13, 11))

# what counts is the state at the first call
>>> others_draw(one, two)
>>> call(), call()
((5, 4), (5, 4))

# each function that repeatable returns remembers its own first call
>>> first, other = call(), repeatable(draw, [one, two])
>>> other(), other(), call()
((3, 3), (3, 3), (0, 0))

# the function runs anew in each call
>>> runs = []
>>> call = repeatable(lambda: runs.append(1) or len(runs), [])
>>> call(), call(), call()
(1, 2, 3)

# arguments and result stay unchanged
>>> call = repeatable(lambda *arguments: arguments, [])
>>> call(5, 3), call(5, 3), call(7)
((5, 3), (5, 3), (7,))

# an error in a later call
>>> first = call()
>>> others_draw(one, two)
>>> call(3, True)
KeyError*
>>> places(one, two)
(8, 7)

# an error in the first call, which moves the generators on as usual
>>> call(3, True)
KeyError*
>>> places(one, two)
(3, 3)

# a first call that raises an error is the first
>>> call(3, True)
KeyError*
>>> others_draw(one, two)
>>> call(), places(one, two)
((0, 0), (8, 7))
""")
check.hidden("""
# a later call with another argument
>>> first = call()
>>> others_draw(one, two)
>>> call(1), places(one, two)
((0, 0), (8, 7))

# a list of one generator
>>> call = repeatable(draw, [one])
>>> call(2), call(2), places(one, two)
((0, 0), (0, 2), (2, 4))
""")
