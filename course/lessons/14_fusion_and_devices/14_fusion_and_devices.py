# %% [markdown]
# # Fewer trips to memory, and other places to compute
#
# *Core: about 110 minutes; after exercise 2 is a good place for a break. Further: about 110 minutes, optional. You build a tracer that records a chain of operations, and a compiler that runs it in blocks; in the optional part, devices. You need lessons 08 and 11.*
#
# Take a polynomial of degree six at two million points: eleven NumPy operations. The first program does them one by one, each for all points. The second takes a piece of 16,384 points through all eleven operations, then the next 16,384. Both do the same 22 million multiplications and additions, in the same order for every point.
#
# **Predict** which is faster, and by what factor. Are the results the same, to the last bit?

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import collections
import contextlib
import functools

import numpy as np

# %%
import time
import types

from mini_autograd.widgets.demos.stopwatch import now

# %% [markdown]
# ### The two programs and a clock (just run it)
#
# Run this cell. You don't need to read it.

# %%
def horner(x):
    """A polynomial of degree six; x may be anything that can be multiplied and added."""
    y = x * 0.1
    for coefficient in (0.3, -0.5, 0.2, -0.7, 0.4):
        y = (y + coefficient) * x
    return y


def in_pieces(x, y, piece):
    """The same, into the array y, piece by piece of x."""
    for start in range(0, len(x), piece):
        part, out = x[start : start + piece], y[start : start + piece]
        np.multiply(part, 0.1, out=out)
        for coefficient in (0.3, -0.5, 0.2, -0.7, 0.4):
            np.add(out, coefficient, out=out)
            np.multiply(out, part, out=out)
    return y


def milliseconds(compute, rounds=7):
    """The shortest time of several calls, in which this thread computed."""
    found = []
    for _ in range(rounds):
        start = now()
        compute()
        found.append(1000 * (now() - start))
    return min(found)

# %% [markdown]
# ### The race
#
# Make your prediction, then run the cell.

# %% tags=["demo"]
import torch  # the checks load it in the background, which would slow the race down

from mini_autograd import allocator

allocator.keep_freed_memory()  # or page faults would hide what is measured here
predict("How many times as fast are pieces of 16,384 points?")
many, existing = np.random.default_rng(0).normal(size=2_000_000), np.ones(2_000_000)
whole = milliseconds(lambda: horner(many), 5)
print(f"whole                   {whole:6.1f} ms")
for piece in (2_000_000, 262_144, 16_384, 1024, 64):
    ms = milliseconds(lambda: in_pieces(many, existing, piece), 2)
    print(f"pieces of {piece:9,d}     {ms:6.1f} ms   {whole / ms:.1f} times as fast as whole")
print("same bits:", np.array_equal(horner(many), in_pieces(many, existing, 16_384)))

# %% [markdown]
# **If a program does not wait for its arithmetic, what does it wait for? And what could cut a program into pieces for us?** In this lesson you will
#
# 1. let your engine work with arrays that are not NumPy's;
# 2. record a chain of operations without computing it, and run it in blocks, forward and backward, with the same bits as before;
# 3. say what such a trace forgets, and write the guards that make it safe;
# 4. say what `torch.compile` does with a model, and what it cannot do.
#
# If something breaks your engine, run the next cell again, and then every cell below it.

# %%
start_lesson()

# %% tags=["engine"]
if not hasattr(MiniTensor, "on_host"):  # only once, even if this cell runs again
    MiniTensor.on_host = MiniTensor.__init__
    MiniTensor.backward_from = MiniTensor.backward
    Function.apply_together = Function.__dict__["apply"]

# %% tags=["demo"]
import warnings

import torch

torch.set_num_threads(1)  # steadier times on a busy machine

# %% [markdown] items="129"
# ## 1. What the time is spent on
#
# Between the processor and the memory are caches: small, fast memories that hold what was used last. A piece that fits into a cache stays there for all eleven operations. A large array does not: each operation fetches it and writes it back. (Even one large piece gains: no new arrays.) For small pieces, most time goes into the calls.
#
# A program whose processor waits for bytes is **memory bound**. Taking a piece of an array through several operations while it is in the cache is called **fusing** them. Then a multiplication and an addition need one pass over the memory instead of two.
#
# To fuse a chain, a program must know the chain *before* it computes anything. Your engine computes each operation immediately. This lesson uses one trick: your engine runs on arrays that contain no numbers and only write down each operation.
#
# ## 2. Arrays that are not NumPy's
#
# NumPy's functions do not insist on NumPy's arrays. `np.exp(a)` checks whether its argument has a method `__array_ufunc__`, and if so leaves the work to it. So rules such as `grad * output` work on other arrays without changes. **Predict** the four lines.

# %%
class Elsewhere:
    """An array module, like NumPy."""

    name = "elsewhere"


class Silent(np.lib.mixins.NDArrayOperatorsMixin):
    """An array without numbers: it says what it is asked for, and returns another such array."""

    shape, ndim, size = (3,), 1, 3

    def __array_namespace__(self, api_version=None):
        return Elsewhere

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        print("asked for", ufunc.__name__)
        return Silent()

    def __array__(self, *arguments, **options):
        raise TypeError("these numbers cannot be read")

# %%
a = Silent()
2 * np.exp(a)
for attempt in (lambda: np.zeros(3) + a, lambda: MiniTensor(a)):
    try:
        attempt()
    except TypeError as error:
        print("TypeError:", error)

# %% [markdown]
# Your engine fails in the constructor, which wants a NumPy array. It must ask an array for its module. Arrays answer that themselves: `array.__array_namespace__()` is a standard, and NumPy's arrays answer `np`. (In *Further* the same question lets your engine compute on another device.)
#
# ### Exercise 1: the module of an array
#
# Write `array_module`, and a constructor that leaves arrays of other modules alone. You can call the constructor that your engine had until now as `MiniTensor.on_host(self, data, requires_grad)`. It prepares everything else that a tensor of your engine has. Always use it: for an array of another module, call it with some number, and put the array in afterward.

# %% [markdown] tags=["hint"] exercise="array_module"
# `hasattr(value, "__array_namespace__")` says whether the value can answer. Numbers and lists cannot; their module is `np`.

# %% [markdown] tags=["hint"] exercise="array_module"
# In `initialize`: if `array_module(data) is np`, just call `MiniTensor.on_host(self, data, requires_grad)`. Otherwise call it with `0.0` instead of the data, then set `self.data = data`.

# %% solution="array_module" tags=["engine"]
def array_module(value):
    """The module that makes arrays of the same kind: what value.__array_namespace__() returns, if
    it has this method, else np. value is an array of any module, a number, or a nested list.

    >>> array_module(np.ones(3)) is np, array_module(2.0) is np, array_module([1.0, 2.0]) is np
    (True, True, True)
    """
    ### BEGIN SOLUTION
    ask = getattr(value, "__array_namespace__", None)
    return np if ask is None else ask()
    ### END SOLUTION


def initialize(self, data, requires_grad=False):
    """As before for a number, a list or a NumPy array. An array of another module becomes self.data
    unchanged: the same object, not copied or converted.

    >>> MiniTensor([1, 2], requires_grad=True)
    MiniTensor([1. 2.], requires_grad=True)
    """
    ### BEGIN SOLUTION
    if array_module(data) is np:
        MiniTensor.on_host(self, data, requires_grad)
    else:
        MiniTensor.on_host(self, 0.0, requires_grad)
        self.data = data
    ### END SOLUTION


MiniTensor.__init__ = initialize

# %% check="array_module"

# %% [markdown]
# ## 3. Arrays without numbers
#
# Here is an array module that computes **nothing**. Each operation on its arrays is written down as a **step**: the function, its arguments, and the name of the result. Your engine does not notice the difference: it asks for `exp` or `*`, and gets an array back. You need these names:
#
# * `trace = Trace(shape)` is such a module, and `trace.steps` is its list of steps;
# * `trace.array()` makes a new array, called `v0`, `v1` and so on;
# * an array is a `Traced`, with attributes `trace` and `name`;
# * `raise Untraceable("why")` says that something cannot be written down.

# %% [markdown]
# ### The module (just run it)
#
# Run the next cell. You don't need to read it. At its end, numbers among the inputs of an operation become arrays of the other inputs' module, and `sum_to` calls no NumPy function.

# %% tags=["engine"]
class Untraceable(Exception):
    """Something was asked of an array without numbers that cannot be written down as a step."""


def shown(argument):
    """A name as it is, and anything else as Python writes it: the text '2.0' is not the number 2.0."""
    return argument if isinstance(argument, str) and argument.startswith("v") else repr(argument)


def listing(steps):
    """Steps as lines."""
    return [
        f"{result} = {function.__name__}({', '.join(map(shown, arguments))})"
        for function, arguments, result in steps
    ]


class Trace:
    """An array module whose arrays have no numbers. What is asked of them is kept in `steps`.

    A step is (function, arguments, result): a function of NumPy such as np.multiply, a tuple of
    names and Python numbers, and the name of the result. All arrays have the same shape.
    """

    name = "trace"

    def __init__(self, shape):
        self.shape, self.steps, self.made = tuple(shape), [], 0

    def array(self):
        """A new array, called v0, v1, and so on."""
        self.made += 1
        return Traced(self, f"v{self.made - 1}", self.shape)

    def asarray(self, value):
        """A number as an array without dimensions. An array from elsewhere may change: refused."""
        if not isinstance(value, (bool, int, float)):
            raise Untraceable("an array from outside")
        return Traced(self, value, ())


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array without numbers. Its name is a text, or a number for a constant."""

    def __init__(self, trace, name, shape):
        self.trace, self.name, self.shape = trace, name, shape
        self.ndim, self.size, self.dtype = len(shape), int(np.prod(shape)), np.dtype(np.float64)

    __hash__ = object.__hash__

    def __array_namespace__(self, api_version=None):
        return self.trace

    def __array_function__(self, function, types, arguments, options):
        if function in (np.may_share_memory, np.shares_memory):
            return arguments[0] is arguments[1]
        if function is not np.where or options:
            raise Untraceable(function.__name__)
        return note(self, select, "__call__", *arguments)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return note(self, ufunc, method, *inputs, **options)

    def copy(self):
        return self

    def sum(self, axis=None, keepdims=False):
        if axis != ():  # a sum over no axis is the array itself; undoing a broadcast asks for it
            raise Untraceable("sum")
        return self

    def refuse(self, *arguments, **options):
        raise Untraceable("the numbers themselves")

    __array__ = __bool__ = __float__ = __int__ = __iter__ = get = item = refuse


def select(condition, a, b, out):
    """np.where into an array that exists."""
    out[...] = np.where(condition, a, b)


select.nout, select.signature = 1, None  # as NumPy's functions have them


def of_one_module(inputs):
    """The inputs; if one is an array of another module, numbers become arrays of that module."""
    modules = [array_module(x.data) for x in inputs if isinstance(x, MiniTensor)]
    module = next((module for module in modules if module is not np), np)
    if module is np:
        return inputs
    return [x if isinstance(x, MiniTensor) else MiniTensor(module.asarray(x)) for x in inputs]


def apply(cls, *inputs, **options):
    """As before, for arrays of any module."""
    return cls.apply_together(*of_one_module(inputs), **options)


def sum_to(grad, shape):
    """As in lesson 04, with methods of grad alone, whatever its array module is."""
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    stretched = [axis for axis, size in enumerate(shape) if size == 1 and grad.shape[axis] != 1]
    return grad.sum(axis=tuple(stretched), keepdims=True)


Function.apply = Function.__dict__.get("with_devices", classmethod(apply))  # of Further, if it has run

# %% [markdown]
# ### Exercise 2: write it down
#
# `note` is called for every operation on such arrays. It adds one step to `self.trace.steps` and returns a new array of the trace; this part is given. Write what comes before. Make the list `names`: the name of each input that is an array, the number itself for a plain number. If the operation cannot be run later, block by block, raise `Untraceable`; then no step is added. Refuse
#
# * a `method` other than `"__call__"`: `np.add.reduce` is a sum, not an addition;
# * any `options`: with `out=` an array would be changed in place;
# * functions with several results (`ufunc.nout`), and those that are not elementwise: `np.matmul` has a `ufunc.signature`, which is None for the others;
# * inputs other than arrays of *this* trace and plain numbers (bool, int, float): an array with numbers in it could be a different one next time.

# %% [markdown] tags=["hint"] exercise="note"
# For each input: `x.name` if it is a `Traced` with `x.trace is self.trace`, the number itself if it is a number, otherwise `raise Untraceable(...)`.

# %% [markdown] tags=["hint"] exercise="note"
# The first three refusals fit into one condition: `if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature is not None:`.

# %% solution="note" tags=["engine"]
def note(self, ufunc, method, *inputs, **options):
    """Write an operation down. self is a Traced; ufunc and method are, say, np.add and "__call__".

    >>> trace = Trace((3,))
    >>> y = np.exp(trace.array() * 2.0)
    >>> [(function.__name__, arguments, result) for function, arguments, result in trace.steps]
    [('multiply', ('v0', 2.0), 'v1'), ('exp', ('v1',), 'v2')]
    """
    ### BEGIN SOLUTION
    if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature is not None:
        raise Untraceable(f"{ufunc.__name__} is not a plain elementwise operation")
    names = []
    for x in inputs:
        if isinstance(x, Traced) and x.trace is self.trace:
            names.append(x.name)
        elif isinstance(x, (bool, int, float)):
            names.append(x)
        else:
            raise Untraceable(f"{type(x).__name__} from outside")
    ### END SOLUTION
    result = self.trace.array()
    self.trace.steps.append((ufunc, tuple(names), result.name))
    return result

# %% check="note"

# %% [markdown]
# Now run the engine on such an array. It is the polynomial again, forward and then backward, and nothing is computed. **Predict** how many steps the backward pass has.

# %%
predict("How many steps does the backward pass have?")
trace = Trace((1_000_000,))
x = MiniTensor(trace.array(), requires_grad=True)
y = horner(x)
forward_steps = len(trace.steps)
cotangent = trace.array()
y.backward(cotangent)
print("forward: ", *listing(trace.steps[:3]), "...", sep="   ")
print("backward:", *listing(trace.steps[forward_steps:][:3]), "...", sep="   ")
print(f"{forward_steps} steps forward, {len(trace.steps) - forward_steps} backward", end="; ")
print(f"the gradient of x is {x.grad.data.name}")

# %% [markdown]
# Nobody wrote a rule for the gradient of the polynomial. The engine's own rules wrote it, as a program, when they ran on arrays that take notes.
#
# One of the backward steps has an unused result: the rule of `Mul` computes two gradients, even if one factor is a constant, such as the 0.1 of the first step. In a list you can see the unneeded step in advance, and leave it out.
#
# ## 4. In blocks
#
# ### Exercise 3: run the list
#
# In `needed_steps`, go through the steps from the last to the first. A step whose result is in `needed` is kept, and then its arguments are needed too.
#
# `run_in_blocks` takes one block of all inputs through all the steps, then the next block. The code that makes the arrays is given: each result has a full-size array; each intermediate result has **one** block-size array, which is reused for every block. Write the loop over the blocks. Every step writes straight into its array, with `out=`.

# %% [markdown] tags=["hint"] exercise="run_in_blocks"
# In `needed_steps`: `for step in reversed(steps):`, and for a step that is kept, `needed.update(step[1])`.

# %% [markdown] tags=["hint"] exercise="run_in_blocks"
# Inside the loop over `start`, build a dict from names to arrays: slices `[start:stop]` of `whole`, and slices `[: stop - start]` of the buffers, because the last block may be shorter.

# %% [markdown] tags=["hint"] exercise="run_in_blocks"
# Then `function(*[values.get(a, a) for a in arguments], out=values[result])` for each step: a name becomes its array, a number stays a number.

# %% tags=["engine"]
BLOCK = 16384  # entries

# %% solution="run_in_blocks" tags=["engine"]
def needed_steps(steps, results):
    """The steps (function, arguments, result) that the results, a list of names, need, in order.

    >>> steps = [(np.exp, ("v0",), "v1"), (np.add, ("v0", 1.0), "v2"), (np.sin, ("v1",), "v3")]
    >>> [result for _, _, result in needed_steps(steps, ["v3"])]
    ['v1', 'v3']
    """
    needed, kept = set(results), []
    ### BEGIN SOLUTION
    for step in reversed(steps):
        if step[2] in needed:
            kept.append(step)
            needed.update(step[1])
    ### END SOLUTION
    return kept[::-1]


def run_in_blocks(steps, arrays, results, block=BLOCK):
    """Compute results, block by block; the last block may be shorter.

    arrays: dict from the names of the inputs to float64 arrays of one shape; they stay unchanged
    results: list of names of step results or inputs; for each of them, one array of that shape is
        returned, for an input a copy

    >>> steps = [(np.multiply, ("v0", 2.0), "v1"), (np.add, ("v1", "v0"), "v2")]
    >>> run_in_blocks(steps, {"v0": np.array([1.0, 2.0, 3.0])}, ["v2"], block=2)
    [array([3., 6., 9.])]
    """
    first = next(iter(arrays.values()))
    shape, size = first.shape, first.size
    made = [result for _, _, result in steps]
    outputs = {name: np.empty(size) for name in made if name in results}
    buffers = {name: np.empty(min(block, size)) for name in made if name not in results}
    whole = {name: array.reshape(-1) for name, array in arrays.items()} | outputs
    ### BEGIN SOLUTION
    for start in range(0, size, block):
        stop = min(start + block, size)
        values = {name: array[start:stop] for name, array in whole.items()}
        values |= {name: buffer[: stop - start] for name, buffer in buffers.items()}
        for function, arguments, result in steps:
            function(*[values.get(a, a) for a in arguments], out=values[result])
    ### END SOLUTION
    return [
        outputs[name].reshape(shape) if name in outputs else arrays[name].copy() for name in results
    ]

# %% check="needed_steps"

# %% check="run_in_blocks"

# %% [markdown] items="129"
# The backward pass needs the forward *steps* again, because no intermediate value was stored. In the cache that is cheap. You know this from checkpointing: computing instead of storing.
#
# ## 5. The branch that ran
#
# A recording can be used again for other numbers. Is that always right? Here is a function with a switch, with the same trace used for both settings. **Predict** the two lines.

# %%
predict(
    "Is the trace right for both settings?",
    "for both",
    "only for the one it was recorded with",
    "for neither",
)


def bent(x, steep):
    if steep:
        return x.tanh() * 10.0
    return x.tanh()


trace = Trace((4,))
name = bent(MiniTensor(trace.array()), True).data.name  # recorded once, with steep=True
four = np.array([-1.0, 0.0, 0.5, 2.0])
for steep in (True, False):
    (found,) = run_in_blocks(trace.steps, {"v0": four}, [name])
    print(f"steep={steep!s:5s}  the function: {bent(MiniTensor(four), steep).data.round(2)}", end="")
    print(f"  the trace: {found.round(2)}")

# %% [markdown]
# **A trace keeps only the branch that ran.** Python made the `if` decision. No array saw it, so it is not in the list. The result is wrong, without an error.
#
# If the decision depends on *numbers in the array*, your arrays without numbers are an advantage: they raise `Untraceable`. A tracer that runs on real numbers decides, and keeps one branch. PyTorch has had such a tool for years, and now warns about it. **Predict** the second line.

# %% tags=["demo"]
predict("What does the recording give for -1, -1, -1?", "[-3, -3, -3]", "[-2, -2, -2]", "an error")


def by_its_mean(x):
    return x * 3 if x.mean() > 0 else x - 1


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    recorded = torch.jit.trace(by_its_mean, (torch.ones(3),))
print("the numbers that it was recorded for:", recorded(torch.ones(3)).tolist())
print("other numbers:", recorded(-torch.ones(3)).tolist(), end="  ")
print("  the right result:", by_its_mean(-torch.ones(3)).tolist())
print(*sorted({f"{w.category.__name__}: {str(w.message)[:70]} ..." for w in caught}), sep="\n")

# %% [markdown]
# The solution has two parts. A function that cannot be recorded is not fused: it runs as usual. And each recording carries **guards**: what must be the same for the recording to be valid. They are compared before each use. If they differ, the function is recorded again, and both recordings are kept.
#
# ### Exercise 4: the chain as one operation
#
# In `record_chain`, run the function on the arrays without numbers, and then, if the output requires grad, the engine's backward pass. In that case `cotangent` is the name of one more array of the trace; otherwise it is None. Then write `guards`: its docstring says what counts.

# %% tags=["engine"]
Chain = collections.namedtuple("Chain", "steps inputs output cotangent gradients")

# %% [markdown] tags=["hint"] exercise="record_chain"
# Call the function with `*stand_ins`. If the output requires grad, make one more array of the trace, remember its name, and call `output.backward(array)`.

# %% [markdown] tags=["hint"] exercise="record_chain"
# `guards`: `kinds` has one entry per argument, `(MiniTensor, x.shape, x.requires_grad)` or `(type(x), x)`. The type matters: in Python `True == 1 == 1.0`.

# %% solution="record_chain" tags=["engine"]
def record_chain(function, tensors):
    """The steps of function, and those of the engine's backward pass after it.

    function: takes as many MiniTensors as there are tensors, returns one MiniTensor
    tensors: list of MiniTensors of one shape; only their shape and requires_grad are used
    Returns: Chain: its steps, and the names of the inputs, the output, the cotangent and the
        gradients; None for those that do not exist

    >>> chain = record_chain(lambda a, b: a * b, [MiniTensor([1.0, 2.0])] * 2)
    >>> chain.inputs, chain.output, chain.cotangent, chain.gradients
    (['v0', 'v1'], 'v2', None, [None, None])
    """
    trace = Trace(tensors[0].shape)
    stand_ins = [MiniTensor(trace.array(), requires_grad=x.requires_grad) for x in tensors]
    inputs = [x.data.name for x in stand_ins]
    ### BEGIN SOLUTION
    output = function(*stand_ins)
    cotangent = None
    if output.requires_grad:
        array = trace.array()
        cotangent = array.name
        output.backward(array)
    ### END SOLUTION
    if not isinstance(output.data, Traced):
        raise Untraceable("the result does not depend on the inputs")
    gradients = [None if x.grad is None else x.grad.data.name for x in stand_ins]
    return Chain(trace.steps, inputs, output.data.name, cotangent, gradients)


def guards(inputs):
    """What must be the same for a recording to be valid, as a tuple that can be the key of a dict.

    inputs: the arguments of a function: MiniTensors, and numbers, strings or None
    Two tuples are equal if and only if: MiniTensors are in the same positions, with the same shape
        and requires_grad; all other arguments are equal and of the same type (-0.0 and nan
        do not occur); and recording is on (is_grad_enabled) for both or for neither.

    >>> x, y = MiniTensor([1.0, 2.0]), MiniTensor([3.0, 4.0])
    >>> guards((x, True)) == guards((y, True)), guards((x, True)) == guards((x, 1))
    (True, False)
    """
    ### BEGIN SOLUTION
    kinds = [
        (MiniTensor, x.shape, x.requires_grad) if isinstance(x, MiniTensor) else (type(x), x)
        for x in inputs
    ]
    ### END SOLUTION
    return (*kinds, is_grad_enabled())

# %% [markdown]
# ### What uses them (just run it)
#
# Run the next cell. You don't need to read it. `Fused` is one operation, one node; it saves only its inputs. `compiled(function)` keeps the recordings by their guards, and counts them in `traced`.

# %% tags=["engine"]
class Fused(Function):
    """A recorded chain as one operation; its rule is what the engine's rules asked for."""

    @staticmethod
    def forward(ctx, *arrays, chain):
        ctx.chain = chain
        ctx.save_for_backward(*arrays)
        steps = needed_steps(chain.steps, [chain.output])
        return run_in_blocks(steps, dict(zip(chain.inputs, arrays)), [chain.output])[0]

    @staticmethod
    def backward(ctx, grad):
        if isinstance(grad, MiniTensor):
            raise RuntimeError("a fused chain has no second derivative; call the function itself")
        chain = ctx.chain
        arrays = dict(zip(chain.inputs, ctx.saved_tensors)) | {chain.cotangent: grad}
        wanted = [name for name in chain.gradients if name is not None]
        steps = needed_steps(chain.steps, wanted)
        found = dict(zip(wanted, run_in_blocks(steps, arrays, wanted)))
        return tuple(found.get(name) for name in chain.gradients)


def can_be_fused(inputs):
    """Whether there are MiniTensors, all of one shape on the CPU, and otherwise only simple values."""
    tensors = [x for x in inputs if isinstance(x, MiniTensor)]
    others = [x for x in inputs if not isinstance(x, MiniTensor)]
    return (
        len({x.shape for x in tensors}) == 1
        and all(array_module(x.data) is np for x in tensors)
        and all(x is None or isinstance(x, (bool, int, float, str)) for x in others)
    )


def try_to_record(function, inputs):
    """The chain of the function for these inputs; None if it cannot be recorded."""
    places = [i for i, x in enumerate(inputs) if isinstance(x, MiniTensor)]

    def of_tensors(*tensors):
        chosen = dict(zip(places, tensors))
        return function(*[chosen.get(i, x) for i, x in enumerate(inputs)])

    try:
        return record_chain(of_tensors, [inputs[i] for i in places])
    except NotImplementedError:
        raise
    except Exception:  # if the mistake is in the function, running it will show it
        return None


def compiled(function):
    """The function, fused where possible. `traced` counts recordings, `chains` keeps them."""

    @functools.wraps(function)
    def run(*inputs):
        if not can_be_fused(inputs):
            return function(*inputs)
        key = guards(inputs)
        if key not in run.chains:
            run.traced += 1
            run.chains[key] = try_to_record(function, inputs)
        chain = run.chains[key]
        if chain is None:
            return function(*inputs)
        with set_grad_enabled(is_grad_enabled() and chain.cotangent is not None):
            return Fused.apply(*[x for x in inputs if isinstance(x, MiniTensor)], chain=chain)

    run.traced, run.chains = 0, {}
    return run

# %% [markdown]
# ### Your compiler at work
#
# First the check:

# %% check="record_chain"

# %% [markdown] items="129"
# Now compare the gradient with the engine's and PyTorch's, then the time, and what is kept between forward and backward. **Predict** how much is kept.

# %% tags=["demo"] items="129"
predict("How many times as much does the engine keep for the backward pass?")
points, cotangents = np.random.default_rng(4).normal(size=(2, 1_000_000))


def once(function, make=MiniTensor):
    """The gradient, and the node of the last operation."""
    x = make(points, requires_grad=True)
    y = function(x)
    node = y.grad_fn
    y.backward(make(cotangents))
    return np.asarray(x.grad.data), node


fast = compiled(horner)
print("same bits as the engine:", np.array_equal(once(horner)[0], once(fast)[0]))
print(f"difference from PyTorch: {np.abs(once(fast)[0] - once(horner, torch.tensor)[0]).max():.1e}")
for name, function in (("engine", horner), ("fused", fast)):
    waiting, saved = [function(MiniTensor(points, requires_grad=True)).grad_fn], {}
    while waiting:
        node = waiting.pop()
        saved |= {id(array): array.nbytes for array in getattr(node, "saved_tensors", ())}
        waiting += [source for source, _ in node.next_functions if source is not None]
    print(f"{name:7s} {milliseconds(lambda: once(function)):4.0f} ms", end="")
    print(f"   keeps {sum(saved.values()) / 1e6:5.1f} MB for the backward pass")

# %% [markdown] items="129"
# Only the input is kept. The backward pass recomputes the intermediate values, block by block, in the cache, where they cost no trip to memory.
#
# ## 6. What fusing cannot do
#
# Your compiler now gets four functions of a million numbers. **Predict** how many are recorded. Which become faster?

# %% tags=["demo"]
predict("How many of the four functions are recorded?", "0", "1", "2", "3", "4")
functions = {
    "a polynomial": lambda x: 1.0 + x + x * x * 0.5 + x * x * x * 0.125,
    "five tanh": lambda x: x.tanh().tanh().tanh().tanh().tanh(),
    "x minus its mean": lambda x: x - x.mean(),
    "a matrix product": lambda x: (x.reshape(1000, 1000) @ x.reshape(1000, 1000)).tanh(),
}
x = MiniTensor(points)
for name, function in functions.items():
    fast = compiled(function)
    fast(x)
    text = "not recorded"
    if None not in fast.chains.values():
        ratio = milliseconds(lambda: fast(x), 5) / milliseconds(lambda: function(x), 5)
        text = f"time {ratio:.2f} of before"
    print(f"{name:17s} {text}")

# %% [markdown]
# Where memory is fast, the polynomial gains little. A `tanh` takes a lot of arithmetic, and the arithmetic is the same; only the trips were saved. A **reduction** such as a mean needs every entry before it has a result, so a block cannot go on alone. (Compilers can fuse the operations *before* a reduction into it; yours then fuses nothing.) A **matrix product** needs whole rows and columns for each entry of its result. It also needs fusing least: in a product of matrices with 1000 rows, each number is used 1000 times.
#
# Two weaknesses of your guards remain. `0.0 == -0.0`: one recording may serve both. And if the function finds a number *outside* itself, as in `lambda x: x * strength`, the number is a constant in the trace, and no guard watches it. (*Further* has a compiler that does.)

# %% [markdown] items="130"
# ## 7. torch.compile
#
# PyTorch's compiler does the same three things: it **captures** the operations, it sets **guards**, and it hands the captured graph to a **backend** that writes one program for several operations. The usual backend needs a C++ compiler or a graphics card, and time; any function can be a backend, though. The next one prints the graph it gets and runs it unchanged. You can compile a model without changing it. **Predict** how often the cell prints "captured", and whether the results are right.

# %% tags=["demo"] items="130"
predict("How often is \"captured\" printed?")


def show(graph, example_inputs):
    """A backend that only prints the graph."""
    nodes = [node for node in graph.graph.nodes if node.op not in ("placeholder", "output")]
    print("   captured:", ", ".join(getattr(node.target, "__name__", node.target) for node in nodes))
    return graph.forward


def with_compiler(text, function, *inputs):
    """Run a compiled function; say so if PyTorch's compiler does not run on this computer."""
    print(text)
    try:
        print("   right:", torch.equal(compiled_ones[function](*inputs), function(*inputs)))
    except Exception as error:
        print(f"   not possible here: {type(error).__name__}")


torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
ones = torch.ones(1, 3)
compiled_ones = {f: torch.compile(f, backend=show) for f in (model, bent, by_its_mean)}
with_compiler("a model", model, ones)
for steep in (True, False, True):
    with_compiler(f"steep={steep}", bent, ones, steep)
for sign in (1, -1):
    with_compiler(f"mean {sign}", by_its_mean, sign * ones)

# %% [markdown] items="130"
# The third call of `bent` captured nothing: the guards of the first recording held. Shapes are guarded too, but not each by itself: for a second shape PyTorch captures once more, and leaves open the sizes that have changed. Other sizes need no third recording, except 0 and 1. (This is called *dynamic shapes*.) Where a decision needs the numbers, the compiler cuts the graph in two: it computes the first part, lets Python decide, and captures what comes after. This is a **graph break**. The result is right, but less is fused.

# %% [markdown]
# ## Quiz

# %% test="quiz_14" points=4 tags=["quiz"] items="116 129 130"
question(
    "what_is_saved",
    "Ten elementwise operations on a large array are fused. What is saved?",
    right("Trips to memory: the intermediate values stay in the cache.", "The operations are the same, and so are the bits of the result."),
    wrong("Arithmetic: the compiler simplifies the formula.", "Yours changed no operation. The time went into moving bytes.", misconception="fusing_saves_arithmetic"),
    wrong("Accuracy, because fewer roundings happen.", "The same operations round in the same way; the results were equal to the last bit.", misconception="fusing_changes_results"),
    wrong("Gradients: a fused chain needs no backward pass.", "It has one, recorded from the same rules.", misconception="fused_has_no_backward"),
)
question(
    "what_gains",
    "Which of these gains most from being fused as in this lesson?",
    right("Ten additions and multiplications of arrays with ten million entries", "Little arithmetic for each byte: the processor waits for memory."),
    wrong("A product of two matrices with 2000 rows", "Each number is used 2000 times. It is bound by arithmetic.", misconception="everything_is_memory_bound"),
    wrong("Ten additions of arrays with ten entries", "They are in the cache anyway. The calls cost the time, and yours makes as many as before. (A compiler that writes one program for all of them saves calls too.)", misconception="everything_is_memory_bound"),
    wrong("One addition of arrays with ten million entries", "There is nothing to fuse it with: it must read and write once.", misconception="fusing_needs_a_chain"),
)
question(
    "branch",
    "A function asks `if flag:`. It is recorded with `flag=True`, without guards, and used with `flag=False`. What happens?",
    right("The result for `flag=True`, without a message", "The trace holds the operations of the branch that ran. The decision is not in it."),
    wrong("An error, because the other branch is missing", "Nothing in the list knows that there was another branch.", misconception="traces_hold_branches"),
    wrong("The right result: the trace contains both branches", "Python ran one of them, so one was written down.", misconception="traces_hold_branches"),
    wrong("It is recorded again", "That is what guards are for.", misconception="tracing_is_dynamic"),
)
question(
    "guards",
    "Which change need **not** lead to a new recording by your `compiled`?",
    right("Other numbers in a tensor of the same shape", "They go through the same steps. That is what a recording is for."),
    wrong("Another shape of a tensor", "The steps of the backward pass may differ, and buffers do. (PyTorch leaves the size open after the second shape.)", misconception="guards_watch_values"),
    wrong("Another value of a flag", "It may choose another branch.", misconception="numbers_are_inputs"),
    wrong("An input that requires grad now and did not before", "The backward pass of the recording has no gradient for it.", misconception="guards_watch_values"),
)
question(
    "graph_break",
    "`torch.compile` meets `if x.mean() > 0:`. What does it do?",
    right("It captures what comes before, lets Python decide, and captures what comes after.", "A graph break. The first call captured two graphs, and the results were right for both signs."),
    wrong("It keeps the branch that ran, and is wrong for other numbers.", "That was `torch.jit.trace`.", misconception="compile_is_trace"),
    wrong("It computes both branches and selects.", "It does not need both. You saw one branch captured per call.", misconception="traces_hold_branches"),
    wrong("It refuses to compile the function.", "It compiles the parts.", misconception="compile_is_all_or_nothing"),
)
question(
    "backward_of_fused",
    "Your fused chain saves only its inputs. How can its backward pass know the intermediate values?",
    right("It computes them again, block by block.", "The forward steps that it needs are in the list of the backward pass. They are cheap in bytes."),
    wrong("They are in the buffers.", "A buffer holds only the last block, and is reused.", misconception="buffers_keep_everything"),
    wrong("It does not need them.", "The rule of a product needs both factors.", misconception="fused_has_no_backward"),
    wrong("NumPy keeps them in its cache.", "Nothing is kept from one call to the next.", misconception="buffers_keep_everything"),
)

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | memory bound | little arithmetic per byte: the processor waits for memory |
# | fusing | a block goes through the whole chain while it is in the cache; same operations, same bits |
# | traffic | before: every step reads and writes; after: inputs once, results once (*Further* counts) |
# | array module | ask the array, `array_module(x)`, wherever an array is made from nothing |
# | devices (*Further*) | no silent copies, no mixing, except for numbers; `.to` is an operation whose gradient goes back |
# | trace | arrays without numbers write down what is asked of them, the backward pass too |
# | guards | what must be the same: shapes, `requires_grad`, flags, the grad mode; in PyTorch also numbers from outside, while sizes are left open once a second shape has come |
# | limits | reductions, matrix products, decisions on numbers end a chain |
# | `torch.compile` | capture, guards, a backend; graph breaks where Python must decide |
#
# You have run your engine on arrays that only take notes. The next lesson runs it on numbers that carry their own derivative, and reverses the direction: forward mode.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it, and your engine works without its exercises, which only earn points. *Trips, counted* needs the stand-in of *Arrays that live elsewhere*; otherwise its sections do not depend on each other.

# %% [markdown] items="116"
# ## Arrays that live elsewhere
#
# A graphics card has its own memory. CuPy is a module like NumPy for arrays there, with the same functions and names. PyTorch has `device="cuda"`. You need neither here. The next cell makes a stand-in: an array module whose numbers your program cannot see, unless it asks for a copy with `.get()`. It behaves like such a library in three ways: arrays from two places cannot be mixed, nothing is copied to the host silently, and a number that an operation returns is an array there as well. It also counts operations and bytes.
#
# You don't need to read it; what matters is what it refuses.

# %%
class Remote:
    """An array module that makes arrays only it can read, and counts what happens there."""

    def __init__(self, name):
        self.name, self.add = name, types.SimpleNamespace(at=self.add_at)
        self.reset()

    def reset(self):
        self.operations = self.bytes_read = self.bytes_written = self.to_host = self.to_device = 0

    def asarray(self, array):
        """A copy of a host array, or of a number, in this place."""
        if isinstance(array, RemoteArray):
            return self.run(np.copy, (array,), {})
        self.to_device += np.asarray(array).nbytes
        return RemoteArray(self, np.array(array, dtype=np.float64))

    def ones(self, shape):
        return RemoteArray(self, np.ones(shape))

    def zeros(self, shape):
        return RemoteArray(self, np.zeros(shape))

    def add_at(self, array, index, values):
        """What `remote.add.at` does: like np.add.at, in this place."""
        self.run(np.add.at, (array, index, values), {})

    def inside(self, value):
        """What an argument is in this place; an array from another place is refused."""
        if isinstance(value, (tuple, list)):
            return type(value)(map(self.inside, value))
        if isinstance(value, RemoteArray) and value.module is self:
            return value.hidden
        if isinstance(value, (np.ndarray, RemoteArray)):
            raise TypeError(f"an array from elsewhere beside an array on {self.name}")
        return value

    def run(self, function, arguments, options):
        arguments = [self.inside(x) for x in arguments]
        result = function(*arguments, **{name: self.inside(x) for name, x in options.items()})
        if result is None:
            return None
        result = np.asarray(result)
        arrays = {id(x): x for x in arguments if isinstance(x, np.ndarray) and x.ndim > 0}
        if "out" in options or not any(np.may_share_memory(result, x) for x in arrays.values()):
            self.operations += 1  # another view of the same memory is not an operation
            self.bytes_read += sum(x.nbytes for x in arrays.values())
            self.bytes_written += result.nbytes if result.ndim > 0 else 0
        return RemoteArray(self, result)


def method_of(name):
    """A method of NumPy's arrays, run there."""

    def run(self, *arguments, **options):
        def call(array, *arguments, **options):
            return getattr(array, name)(*arguments, **options)

        return self.module.run(call, (self, *arguments), options)

    return run


class RemoteArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array in another place. NumPy hands over to __array_ufunc__ and __array_function__."""

    def __init__(self, module, hidden):
        self.module, self.hidden = module, hidden

    shape = property(lambda self: self.hidden.shape)
    ndim = property(lambda self: self.hidden.ndim)
    size = property(lambda self: self.hidden.size)
    dtype = property(lambda self: self.hidden.dtype)

    def __array_namespace__(self, api_version=None):
        return self.module

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method != "__call__":
            return NotImplemented  # as in CuPy
        if "out" in options:
            options["out"] = options["out"][0]
        return self.module.run(ufunc, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        if function in (np.may_share_memory, np.shares_memory):
            hidden = [x.hidden for x in arguments if isinstance(x, RemoteArray)]
            return len(hidden) == 2 and function(*hidden)
        return self.module.run(function, arguments, options)

    def __getitem__(self, index):
        return self.module.run(lambda array, index: array[index], (self, index), {})

    sum, mean, max, min = map(method_of, ("sum", "mean", "max", "min"))
    reshape, swapaxes, squeeze = map(method_of, ("reshape", "swapaxes", "squeeze"))
    copy, astype, argmax = map(method_of, ("copy", "astype", "argmax"))

    def get(self):
        """A copy on the host, made on request."""
        self.module.to_host += self.hidden.nbytes
        return self.hidden.copy()

    def item(self):
        return self.get().item()

    def silent(self, *arguments, **options):
        raise TypeError("no silent copy to the host: ask for it with .get()")

    __array__ = __bool__ = __float__ = __int__ = silent

    def __repr__(self):
        return f"RemoteArray({self.shape} on {self.module.name})"


remote = Remote("remote")

# %%
a = remote.asarray(np.array([1.0, 2.0, 3.0]))
print(np.exp(a) * 2, "and back:", (np.exp(a) * 2).get().round(2))
for attempt in (lambda: a + np.ones(3), lambda: np.asarray(a), lambda: bool(a[0] > 0)):
    try:
        attempt()
    except TypeError as error:
        print("TypeError:", error)

# %% [markdown]
# Since exercise 1, your engine keeps such arrays. But a function that makes an array **from nothing**, such as `np.zeros(3)`, has no argument that could say where. There, too, the engine must ask an array for its module.

# %% [markdown] items="116"
# ### To another device, and back
#
# Each place has a name: `"cpu"` is NumPy, `"remote"` the stand-in. For CuPy 14, one more line in the table is not enough: its arrays have no `__array_namespace__`, so `array_module` would have to know them, and its `may_share_memory` refuses NumPy's arrays.
#
# The function `moved` copies an array. For the engine, the copy is an operation like any other: its output depends on its input. **Predict:** the gradient of the output arrives on the other device. What is the rule?

# %% tags=["engine"]
DEVICES = {"cpu": np}  # names of array modules


def device_of(array):
    """The name of the place where an array is."""
    module = array_module(array)
    names = [name for name, known in DEVICES.items() if known is module]
    return names[0] if names else getattr(module, "name", "unknown")


def moved(array, module):
    """A copy of an array in another module; the array itself if it is already there."""
    if array_module(array) is module:
        return array
    return module.asarray(array if array_module(array) is np else array.get())


MiniTensor.device = property(lambda self: device_of(self.data))

# %%
DEVICES["remote"] = remote
print(device_of(np.ones(3)), device_of(a), moved(np.ones(3), remote), moved(a, np))

# %% [markdown] items="116"
# And what if the inputs of an operation are in different places? A library *could* copy silently. That would be a trap: a copy between devices often costs more than the operation. So PyTorch usually refuses. **Predict** which of these lines fail. (`meta` is a device of PyTorch that every computer has: its tensors have a shape but no numbers.)

# %% tags=["demo"] items="116"
predict("How many of the lines fail?")


def result_of(text):
    values = {"here": torch.ones(3), "there": torch.ones(3, device="meta")}
    values |= {"number_here": torch.tensor(2.0), "number_there": torch.tensor(2.0, device="meta")}
    try:
        return f"on {eval(text, values).device}"
    except RuntimeError as error:
        return f"RuntimeError: {error}"


for text in (
    "here + there",
    "2 * there",
    "number_here * there",
    "number_there * here",
    "number_here * number_there",
    "here.to('meta') + there",
):
    print(f"{text:27s} {result_of(text)}")

# %% [markdown] items="116"
# Only tensors **without dimensions, on the CPU**, may be mixed with others: a learning rate or a factor. A single number on the other device is no exception. Each operation has to check this itself, and not every one does: in PyTorch 2.13 `torch.ones(2, 2) @ torch.ones(2, 2, device="meta")` gives a tensor on the CPU, with numbers that were never computed. (For graphics cards PyTorch's message is *Expected all tensors to be on the same device*; your engine will say that.)
#
# ### Exercise 5: to, and one device per operation
#
# Write the operation `To`, and `on_one_device`, which `apply` calls before it computes. The places are given as **modules**, because not all of them have a name in `DEVICES`. `MiniTensor(module.asarray(number))` turns a number into a tensor. `To.apply(x, module=module)` moves a tensor without dimensions from the CPU, so that its gradient gets back.

# %% [markdown] tags=["hint"] exercise="to"
# `To.forward` remembers `array_module(a)` on `ctx` and returns `moved(a, module)`. `To.backward` moves the gradient to the module that it remembers.

# %% [markdown] tags=["hint"] exercise="to"
# In `on_one_device`, first turn arrays into tensors with `as_tensor`, but leave plain numbers for later. Then collect the modules that decide: those of every tensor that has dimensions or is not on the CPU. If there is more than one, raise the error. If there is none, everything stays on the CPU.

# %% [markdown] tags=["hint"] exercise="to"
# With the one `module`, go through the inputs again. A number becomes `MiniTensor(module.asarray(float(x)))`. A tensor whose `array_module(x.data)` is the module stays. Any other becomes `To.apply(x, module=module)`.

# %% solution="to" tags=["engine"]
class To(Function):
    """A copy of a in another array module. The gradient goes back to where a is.

    >>> x = MiniTensor([1.0, 2.0], requires_grad=True)
    >>> To.apply(x, module=np).data
    array([1., 2.])
    """

    @staticmethod
    def forward(ctx, a, module):
        ### BEGIN SOLUTION
        ctx.source = array_module(a)
        return moved(a, module)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, grad):
        ### BEGIN SOLUTION
        return moved(grad, ctx.source)
        ### END SOLUTION


def on_one_device(inputs):
    """The inputs of an operation as MiniTensors, in order, all of one array module: a list or a tuple.

    inputs: MiniTensors, arrays and plain numbers
    An input with dimensions stays where it is, and so does an input without dimensions that is not
        on the CPU. Numbers, and MiniTensors without dimensions on the CPU, go where the others
        are; if there are only these, all stay on the CPU. A MiniTensor that is already in its place
        is itself returned, not a copy.
    Raises: RuntimeError if inputs that stay are in different places; the text begins with
        "Expected all tensors to be on the same device"

    >>> x = MiniTensor([1.0, 2.0])
    >>> tensors = on_one_device([x, 3])
    >>> tensors[0] is x, tensors[1]
    (True, MiniTensor(3.0))
    """
    ### BEGIN SOLUTION
    inputs = [x if isinstance(x, (bool, int, float)) else as_tensor(x) for x in inputs]
    module = np
    deciding = []
    for x in inputs:
        if isinstance(x, MiniTensor) and (x.ndim > 0 or array_module(x.data) is not np):
            deciding.append(x)
            module = array_module(deciding[0].data)
            if array_module(x.data) is not module:
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two devices, "
                    f"{deciding[0].device} and {x.device}!"
                )
    tensors = []
    for x in inputs:
        if not isinstance(x, MiniTensor):
            x = MiniTensor(module.asarray(float(x)))
        elif array_module(x.data) is not module:
            x = To.apply(x, module=module)
        tensors.append(x)
    return tensors
    ### END SOLUTION

# %% [markdown]
# Three parts of the engine change. `apply` checks its inputs, `.to` returns the tensor itself if there is nothing to do, and `backward` makes its 1 where the output is. On the CPU all three work as before.

# %% tags=["engine"]
def apply(cls, *inputs, **options):
    """As before; arrays with numbers must all be on one device."""
    modules = [array_module(getattr(x, "data", x)) for x in inputs]
    if cls is not To and any(m is not np and not isinstance(m, Trace) for m in modules):
        with contextlib.suppress(NotImplementedError):  # without exercise 5 nothing is checked or moved
            inputs = on_one_device(inputs)
    return cls.apply_together(*of_one_module(inputs), **options)


def backward(self, gradient=None, *options, **named):
    """As before; a missing gradient is made in the array module of self."""
    if gradient is None and self.data.size == 1 and array_module(self.data) is not np:
        gradient = array_module(self.data).ones(self.shape)
    return self.backward_from(gradient, *options, **named)


def to(self, device):
    """This tensor on another device, such as "cpu"; itself, if it is already there."""
    if device not in DEVICES:
        raise RuntimeError(f"Expected one of {', '.join(DEVICES)} as a device, not {device!r}")
    return self if self.device == device else To.apply(self, module=DEVICES[device])


Function.apply = Function.with_devices = classmethod(apply)
MiniTensor.backward = backward
MiniTensor.to = to

# %% check="to"

# %% [markdown] items="116"
# Here are the same lines on your engine and in PyTorch (on `meta`), and a trap: `w` is a leaf. **Predict:** is `w.to(...)` one?

# %% tags=["demo"] items="116"
predict("Is w.to(...) a leaf?", "yes", "no")
w, w_torch = MiniTensor(np.ones(3), requires_grad=True), torch.ones(3, requires_grad=True)
for name, tensor, place in (("yours", w, "remote"), ("PyTorch", w_torch, "meta")):
    node, is_leaf = tensor.to(place).grad_fn.name(), tensor.to(place).is_leaf
    print(f"{name:8s} {node:18s} leaf: {is_leaf!s:6s}", end="")
    print("to('cpu') is itself:", tensor.to("cpu") is tensor)

# %% [markdown] items="116"
# The copy is the result of an operation, so an optimizer that gets *the copy* sees a `.grad` of None forever. First move, then make it a leaf: `MiniTensor(array_there, requires_grad=True)`, or in PyTorch `torch.ones(3, device=..., requires_grad=True)`.
#
# Which of your operations work there? The next cell tries each of them, forward and backward.

# %% items="116"
def tried(operation):
    x = MiniTensor(remote.asarray([[0.5, 2.0, 1.0], [3.0, 0.3, 0.7]]), requires_grad=True)
    try:
        where = "forward"
        y = operation(x).sum()
        where = "backward"
        y.backward()
        return "works"
    except NotImplementedError:
        raise
    except Exception as error:
        return f"{where}: {type(error).__name__}: {str(error)[:60]}"


for name, operation in {
    "arithmetic": lambda x: (x * 2 - 1) / (x + 3) ** 2,
    "exp log tanh relu": lambda x: x.exp() + x.log() + x.tanh() + x.relu(),
    "matmul, T": lambda x: x @ x.T,
    "reshape": lambda x: x.reshape(3, 2),
    "sum, mean": lambda x: x.sum(dim=1) + x.mean(dim=1),
    "log_softmax": lambda x: x.log_softmax(1),
    "max": lambda x: x.max(),
    "max over a dim": lambda x: x.max(dim=1),
    "index": lambda x: x[0],
}.items():
    print(f"{name:18s} {tried(operation)}")

# %% [markdown]
# The operations that fail make an array with `np.zeros`, or ask a number on the other device for its value, as Python's `max` does. The fix is small. Here is the rule of indexing, for any module:

# %%
class Pick(Function):
    """a[index], in any array module."""

    @staticmethod
    def forward(ctx, a, index):
        ctx.shape, ctx.index = a.shape, index
        return a[index]

    @staticmethod
    def backward(ctx, grad):
        module = array_module(grad)
        whole = module.zeros(ctx.shape)  # and not np.zeros
        module.add.at(whole, ctx.index, grad)  # np.add.at refuses the arrays of CuPy
        return whole


print("index", tried(lambda x: Pick.apply(x, index=(0, slice(None)))))

# %% [markdown]
# Here is a whole training run on the other device: 200 steps of a regression. **Predict** how many bytes are copied to the host.

# %% tags=["demo"]
predict("How many bytes are copied to the host?")
generator = np.random.default_rng(3)
inputs = generator.normal(size=(50, 4))
goals = inputs @ np.array([[1.0], [-2.0], [0.5], [3.0]])


def regression(place):
    x, goal = MiniTensor(place(inputs)), MiniTensor(place(goals))
    w = MiniTensor(place(np.zeros((4, 1))), requires_grad=True)
    for _ in range(200):
        loss = ((x @ w - goal) ** 2).mean()
        loss.backward()
        w.data = w.data - 0.1 * w.grad.data
        w.grad = None
    return w


remote.reset()
w_there = regression(remote.asarray)
print(f"{remote.operations} operations there, {remote.to_host} bytes copied to the host")
w_here = regression(np.asarray)
print("same numbers as on the host:", np.array_equal(w_there.data.get(), w_here.data))
print("weights", w_here.data.ravel().round(3), "  now copied:", remote.to_host, "bytes")

# %% [markdown]
# A `print(loss.item())` in every step would have copied, and on a real device the host would have *waited* for it each time.

# %% [markdown]
# ## Trips, counted
#
# The stand-in also counts bytes. How much does your engine move for the polynomial at a million points?

# %%
points = np.random.default_rng(0).normal(size=1_000_000)
x = MiniTensor(remote.asarray(points), requires_grad=True)
remote.reset()
y = horner(x)
forward_bytes = remote.bytes_read + remote.bytes_written
print(f"forward:  {remote.operations:3d} operations, {forward_bytes / 1e6:4.0f} MB through memory")
remote.reset()
y.backward(remote.ones(y.shape))
backward_bytes = remote.bytes_read + remote.bytes_written
print(f"backward: {remote.operations:3d} operations, {backward_bytes / 1e6:4.0f} MB through memory")
print(f"x, y, the gradient and the cotangent together: {4 * 8 * len(points) / 1e6:.0f} MB")

# %% [markdown] items="129"
# The last line is what has to come in or go out. The rest is intermediate results, written and read again later, and `x`, which every product reads again, because the engine does one operation at a time.
#
# ### Exercise 6: what a list moves
#
# Count the same bytes from the list of steps, for arrays of `size` entries of 8 bytes; numbers do not count. **One operation at a time**: each step reads each *different* array among its arguments once and writes its result, and all the steps run. **Fused**: only the needed steps run; each *different* input that they use is read once, each result is written once, and everything else stays in the cache. An input is a name that no step makes.

# %% [markdown] tags=["hint"] exercise="traffic"
# The different arrays of a step: `{a for a in arguments if isinstance(a, str)}`.

# %% [markdown] tags=["hint"] exercise="traffic"
# Fused: with `steps = needed_steps(steps, results)`, the names read are those of all arguments, minus those of all step results. The number written is `len(set(results))`.

# %% solution="traffic" tags=["engine"]
def traffic(steps, results, size, fused=False):
    """Bytes read and bytes written for arrays of size entries.

    steps: list of (function, arguments, result)
    results: names that steps make; one that appears twice is written once
    fused: False for one operation at a time, all of them; True for the needed ones in one pass
    Returns: (read, written)

    >>> steps = [(np.multiply, ("v0", 2.0), "v1"), (np.add, ("v1", "v0"), "v2")]
    >>> traffic(steps, ["v2"], 100), traffic(steps, ["v2"], 100, fused=True)
    ((2400, 1600), (800, 800))
    """
    ### BEGIN SOLUTION
    if not fused:
        reads = sum(len({a for a in arguments if isinstance(a, str)}) for _, arguments, _ in steps)
        return 8 * size * reads, 8 * size * len(steps)
    kept = needed_steps(steps, results)
    used = {a for _, arguments, _ in kept for a in arguments if isinstance(a, str)}
    inputs = used - {result for _, _, result in kept}
    return 8 * size * len(inputs), 8 * size * len(set(results))
    ### END SOLUTION

# %% check="traffic"

# %% [markdown]
# Compare two counts of the same thing: what the stand-in saw go through its memory, and what your function finds from the list.

# %% items="129"
trace = Trace(points.shape)
x = MiniTensor(trace.array(), requires_grad=True)
y = horner(x)
forward, result = list(trace.steps), y.data.name
y.backward(trace.array())
backward_only, gradient = trace.steps[len(forward) :], x.grad.data.name
size = len(points)
print("forward,  seen by the stand-in:", forward_bytes, "  from the list:", end=" ")
print(sum(traffic(forward, [result], size)))
print("backward, seen by the stand-in:", backward_bytes, "  from the list:", end=" ")
print(sum(traffic(backward_only, [gradient], size)))
print("fused, forward: ", sum(traffic(forward, [result], size, fused=True)))
print("fused, backward:", sum(traffic(trace.steps, [gradient], size, fused=True)))

# %% [markdown] items="129"
# Both routes give the same number. (If yours differ, your engine has made copies, which arrays without numbers do not need.) With fusing, the traffic falls to 6 or 7 percent. The time falls less, as you saw in section 5: the arithmetic and the calls are still there, and the fused backward pass runs more steps. Counting bytes tells you the limit, not the result.

# %% [markdown]
# ## A number from outside
#
# A function may find a number *outside* itself. **Predict** the two results of each compiler.

# %% tags=["demo"] items="130"
import mini_autograd
from mini_autograd import fusion

compilers = {
    "yours": (compiled, MiniTensor),
    "mini_autograd": (mini_autograd.compile, mini_autograd.tensor),
    "PyTorch": (lambda function: torch.compile(function, backend="eager"), torch.tensor),
}
for name, (compiler, make) in compilers.items():
    strength = 2.0
    fast = compiler(lambda x: x * strength)
    try:
        first = fast(make([1.0])).item()
        strength = 5.0
        print(f"{name:14s} {first} then {fast(make([1.0])).item()}")
    except Exception as error:
        print(f"{name:14s} not possible here: {type(error).__name__}")

# %% [markdown]
# A real compiler checks the names that the function uses and guards them too. `mini_autograd`, the reference engine of this course, also reuses a buffer as soon as its value is no longer needed. For a small chain, here is the program that it writes for one block, forward and backward (`i` are inputs, and in the second program the last one is the cotangent; `r` are results, `b` buffers):

# %% tags=["demo"]
example = mini_autograd.tensor([1.0, 2.0], dtype=mini_autograd.float64, requires_grad=True)
kernel = fusion.build(lambda x: (x * x + 1.0).tanh() * x, [example], block=16384)
print(kernel.forward.source, kernel.backward.source, sep="\n\n")

# %% [markdown] items="130"
# ## What torch.compile costs
#
# In daily work you leave `backend` out: `fast = torch.compile(model)`. PyTorch then writes C++ for each part that it captured, and compiles it at the **first** call. **Predict** for which array a later call is much faster. The cell needs a C++ compiler and up to a minute, so it waits for you: set `measure = True`.

# %% tags=["demo"] items="130"
measure = False
predict(
    "A chain of 24 operations and its backward pass: where is a later call at least twice as fast?",
    "for 10 numbers", "for 1,000,000", "for both", "for neither",
)


def eight_times(x):
    for _ in range(8):
        x = torch.relu(x * 1.01 + 0.1)
    return x.sum()


for size in (10, 1_000_000) if measure else ():
    x, fast = torch.randn(size, requires_grad=True), torch.compile(eight_times)
    start = time.perf_counter()
    fast(x).backward()
    first = time.perf_counter() - start
    later, plain = (milliseconds(lambda: function(x).backward()) for function in (fast, eight_times))
    print(f"{size:9,} numbers: first {first:.1f} s, later {later:.3f} ms, not compiled {plain:.3f} ms")

# %% [markdown] items="130"
# `python -m benchmarks.torch_compile`, in the course's repository, prints such a table for one thread. On the machine on which this was written (two AMD processors, sometimes busy), the first calls took seconds, or more than a minute. In ten runs, a later call was 1.5 to 2 times as fast for ten numbers, and 5 to 10 times for a million. What PyTorch gains there is section 1: a product, a sum and a `relu` do little arithmetic per byte, and fused they need far fewer trips to memory. With `tanh` in place of `relu`, where the arithmetic takes the time, a million numbers gained **nothing**: 0.8 to 1.1 times as fast. So compile what runs often, and measure.

# %% [markdown]
# ## Questions about this part

# %% test="quiz_14_further" points=1 tags=["quiz"]
question(
    "mixed_devices",
    "`x` has shape (3,) and is on another device. Which operand on the CPU may be multiplied with it?",
    right("A tensor without dimensions", "A factor may be mixed; it is moved."),
    wrong("A tensor of shape (3,)", "Copying it silently would cost more than the product. It is an error.", misconception="devices_copy_silently"),
    wrong("A tensor of shape (1,), because it has only one entry", "The number of dimensions counts, not the number of entries.", misconception="one_entry_is_a_number"),
    wrong("None at all", "A number, and a tensor without dimensions, may.", misconception="nothing_may_be_mixed"),
)
question(
    "leaf_there",
    "`w = torch.ones(3, requires_grad=True).to(device)` on another device. What is `w.grad` after the backward pass?",
    right("None: `w` is the result of a copy, not a leaf.", "The gradient went back through the copy to the tensor on the CPU, which has no name anymore."),
    wrong("A tensor on the device", "Only leaves keep a gradient, and `.to` is an operation.", misconception="to_keeps_leaves"),
    wrong("A tensor on the CPU", "The leaf on the CPU gets one. `w` is not that leaf.", misconception="to_keeps_leaves"),
    wrong("An error: a copy has no derivative", "It has one: the gradient is moved back.", misconception="copies_cut_the_graph"),
)
