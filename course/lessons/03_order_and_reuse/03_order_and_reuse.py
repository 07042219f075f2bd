# %% [markdown]
# # Order and reuse
#
# *Core: about 105 minutes; section 4 is a good place for a break. Further: about 10 minutes, optional. You build the smallest programs that break three engines, a test for node orders, and a topological sort without recursion. You need the engine of lesson 02.*
#
# Four colleagues each wrote a backward pass for the engine of lesson 02. Each tested it on a neuron. You review their code, starting with two of them.

# %%
import time
import weakref

from autograder.student import check, hints, predict, quiz, start_lesson

# %%
start_lesson()

# %% [markdown]
# The line above says which engine you continue with: your own, or the course's if yours is not finished.
#
# **"What arrives is added to `.grad`, and `.grad` is pushed on."**

# %%
def pushing_again(tensor, gradient=1.0):
    tensor.grad += gradient
    if tensor.rule is not None:
        for source, share in zip(tensor.inputs, tensor.rule(tensor.grad)):
            pushing_again(source, share)

# %% [markdown]
# **"Go through the nodes in topological order, and give each input its gradient."**

# %%
def recursive_order(root):
    """The nodes, root first, each once and before its inputs."""
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for source in node.inputs:
                visit(source)
            order.append(node)

    visit(root)
    return order[::-1]


def overwriting(root, gradient=1.0):
    root.grad = gradient
    for node in recursive_order(root):
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(node.grad)):
                source.grad = share

# %% tags=["demo"]
import sys

from mini_autograd.widgets import explore

import torch
from helpers_03 import follow, in_another_process, plot_contributions
from helpers_03 import torch_order, torch_recurrent, try_all_orders

# %% [markdown]
# ### A comparison with PyTorch (just run it)
#
# Run this cell. You don't need to read it.

# %% tags=["demo"]
ENGINES = {"pushing_again": pushing_again, "overwriting": overwriting}


def beside_pytorch(expression, *numbers):
    """How far each engine's gradients are from PyTorch's."""
    theirs = [torch.tensor(number, dtype=torch.float64, requires_grad=True) for number in numbers]
    expression(*theirs).backward()
    for name, backward in ENGINES.items():
        ours = [MiniTensor(number) for number in numbers]
        backward(expression(*ours))
        difference = max(abs(our.grad - their.grad.item()) for our, their in zip(ours, theirs))
        print(f"    {name:14s} largest difference {difference:.1e}")

# %% [markdown]
# ### Their tests
#
# **Predict:** which engine fails?

# %% tags=["demo"]
predict("Which engine fails?", "pushing_again", "overwriting", "both", "neither")
beside_pytorch(lambda w, x, b, target: ((w * x + b).relu() - target) ** 2, 0.5, 4.0, -1.5, 3.0)

# %% [markdown]
# Neither fails. Yet both give wrong gradients on kinds of programs that real networks are made of. So does the third engine, and the fourth crashes. **On which programs?**
#
# By the end of this lesson, you can
#
# 1. reduce a bug report to the smallest graph that shows the bug;
# 2. tell whether gradients may flow in a given order of the nodes;
# 3. distinguish two sums: over the uses of a number, and over calls of `backward`;
# 4. sort a graph without recursion.

# %% [markdown]
# ## 1. The bug report
#
# One morning a bug report arrives: a program of ten operations, and gradients that differ from PyTorch's.

# %%
def report(a, b):
    c = a * b + a
    d = c.tanh() - b
    e = d * c + d
    return (e * e - c).exp() + a

# %% [markdown]
# The skill is to **reduce** it: remove something, check whether the bug still shows, and stop when nothing more can go. What is left usually tells you what the bug is. A tool helps: `compare` checks a suspect against the slow engine from the start of lesson 02, which follows every path and is right on every graph:

# %%
def every_path(tensor, gradient=1.0):
    """Right, but slow."""
    tensor.grad += gradient
    if tensor.rule is not None:
        for source, share in zip(tensor.inputs, tensor.rule(gradient)):
            every_path(source, share)

# %% [markdown]
# ### The tool (just run it)
#
# Run this cell. You don't need to read it. `compare(backward, expression, *numbers)` prints the number of operations, the right gradients, and those that `backward` found.

# %%
def gradients(backward, expression, *numbers):
    """The gradients of an expression at these numbers, found by this backward pass."""
    leaves = [MiniTensor(number) for number in numbers]
    output = expression(*leaves)
    assert isinstance(output, MiniTensor), f"the expression must give a MiniTensor, not {output!r}"
    backward(output)
    return [leaf.grad for leaf in leaves]


def operations(expression, *numbers):
    """How many operations the graph of an expression has."""
    nodes = recursive_order(expression(*[MiniTensor(number) for number in numbers]))
    return sum(node.rule is not None for node in nodes)


def compare(backward, expression, *numbers):
    """Print the number of operations, the right gradients, and those that a backward pass finds."""
    right = [round(grad, 6) for grad in gradients(every_path, expression, *numbers)]
    found = [round(grad, 6) for grad in gradients(backward, expression, *numbers)]
    print(f"{operations(expression, *numbers)} operations: right {right}, found {found}")

# %% [markdown]
# ### The first reductions
#
# The report, and two attempts at something smaller. **Predict** which of the two still shows the bug.

# %%
predict("Which attempt still shows the bug?", "a * b + b", "(a * b).exp()", "both", "neither")
compare(overwriting, report, 0.6, -0.4)
compare(overwriting, lambda a, b: a * b + b, 0.6, -0.4)
compare(overwriting, lambda a, b: (a * b).exp(), 0.6, -0.4)

# %% [markdown]
# ### Exercise 1: two small pieces of evidence
#
# Write the smallest expressions of one number `a` on which `overwriting` and `pushing_again` give a wrong gradient. One operation is enough for the first, two for the second. An expression that shows the bug with up to six operations earns half the points. (If your `subtract` or `divide` is made of two operations, such as a sum and a minus sign, it counts as two.)
#
# Try yours in a new cell, for example with `compare(overwriting, breaks_overwriting, 2.0)`.

# %% [markdown] tags=["hint"] exercise="small_evidence"
# In the neuron every number was used once. What happens in `overwriting` when two shares arrive at one node?

# %% [markdown] tags=["hint"] exercise="small_evidence"
# `pushing_again` goes wrong at a node that is reached twice *and* pushes something on. A leaf pushes nothing on, so `a` itself cannot be that node.

# %% [markdown] tags=["hint"] exercise="small_evidence"
# In `a + a` the leaf is used twice. For the second one, make a node first, such as `b = -a`, and use `b` twice. Try the expressions in `compare`.

# %% solution="small_evidence"
def breaks_overwriting(a):
    """An expression of a, with one operation, on which overwriting gives a wrong gradient.

    For example, `return -a` has one operation, but shows nothing: overwriting is right on it.

    >>> right = gradients(every_path, breaks_overwriting, 2.0)
    >>> gradients(overwriting, breaks_overwriting, 2.0) == right
    False
    """
    ### BEGIN SOLUTION
    return a + a
    ### END SOLUTION


def breaks_pushing_again(a):
    """An expression of a, with two operations, on which pushing_again gives a wrong gradient.

    >>> right = gradients(every_path, breaks_pushing_again, 2.0)
    >>> gradients(pushing_again, breaks_pushing_again, 2.0) == right
    False
    """
    ### BEGIN SOLUTION
    b = -a
    return b + b
    ### END SOLUTION

# %% check="breaks_overwriting"

# %% check="breaks_pushing_again"

# %% [markdown]
# Both bugs need a number that is **used twice**. Now look again at the code of `pushing_again`: it differs from `every_path`, which is right, in a single expression. It pushes on all that has arrived so far, not just the latest arrival, so the first arrival is pushed on a second time. `follow` prints a line whenever a node pushes its gradient on:

# %% tags=["demo"]
a = MiniTensor(2.0)
b = -a
c = b + b
follow(pushing_again, c, a=a, b=b, c=c)

# %% [markdown]
# ## 2. Too early
#
# The third colleague says: **"Start at the output, then its inputs, then theirs: the nearest first, and each node once."** (The list `waiting` grows while the loop goes through it.)

# %%
def nearest_first(root, gradient=1.0):
    root.grad += gradient
    waiting, seen = [root], {root}
    for node in waiting:
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(node.grad)):
                source.grad += share
                if source not in seen:
                    seen.add(source)
                    waiting.append(source)

# %% [markdown]
# The fourth: **"As in lesson 02: a topological order, and a dict of pending gradients."**

# %%
def recursing(root, gradient=1.0):
    pending = {root: gradient}
    for node in recursive_order(root):
        grad = pending.pop(node)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                pending[source] = pending.get(source, 0.0) + share

# %% [markdown]
# `nearest_first` is right on the smallest expressions for exercise 1. It adds, and it visits each node once. **Predict** whether it is right on `x**2 + 3 * x` and on a number that is used ten times in a sum.

# %%
predict("Which is nearest_first right on?", "both", "only x**2 + 3 * x", "only the ten uses", "neither")
compare(nearest_first, lambda x: x**2 + 3 * x, 2.0)
compare(nearest_first, lambda x: x + x + x + x + x + x + x + x + x + x, 2.0)

# %% [markdown]
# Ten uses, at very different distances from the output, and the result is right. Visiting a *leaf* too early does no harm, since it has nothing to push on: what arrives later is still added. So you need an intermediate node that is visited before everything has arrived there.

# %% [markdown]
# ### Exercise 2: evidence against the nearest first
#
# Three operations are enough. Up to eight earn half the points.

# %% [markdown] tags=["hint"] exercise="late_evidence"
# One node must be used twice: once close to the output, and once farther away, so that the second share arrives after the node's turn.

# %% [markdown] tags=["hint"] exercise="late_evidence"
# Make `b` from `a`, then `c` from `b`, then combine `b` and `c`. The output has two inputs, both at distance 1. `waiting` takes them in the order of `inputs`.

# %% [markdown] tags=["hint"] exercise="late_evidence"
# `b + c` and `c + b` are the same number, but not the same graph: `inputs` is `(b, c)` or `(c, b)`. `b` must come first.

# %% solution="late_evidence"
def breaks_nearest_first(a):
    """An expression of a, with three operations, on which nearest_first gives a wrong gradient.

    a: MiniTensor
    Returns: MiniTensor

    >>> right = gradients(every_path, breaks_nearest_first, 2.0)
    >>> gradients(nearest_first, breaks_nearest_first, 2.0) == right
    False
    """
    ### BEGIN SOLUTION
    b = -a
    c = -b
    return b + c
    ### END SOLUTION

# %% check="breaks_nearest_first"

# %% [markdown]
# Now write the same sum both ways. **Predict** which one comes out wrong.

# %% tags=["demo"]
predict("Which one comes out wrong?", "b + c", "c + b", "both", "neither")
for swapped in (False, True):
    a = MiniTensor(2.0)
    b = -a
    c = -b
    d = c + b if swapped else b + c
    print("c + b" if swapped else "b + c")
    follow(nearest_first, d, a=a, b=b, c=c, d=d)

# %% [markdown]
# The right gradient is 0, because `b + c` is 0 whatever `a` is. In the first version `b` pushed on its 1 before `c` had sent the rest. In the second the numbers come out right **by luck**, with the same engine and the same formula. A test suite with only `c + b` would pass for years.
#
# Here is the graph, drawn from your own objects. Step forward, then backward, and watch when `b` has received everything.

# %% tags=["demo"]
a = MiniTensor(2.0)
b = -a
c = -b
d = b + c
explore(d, names={"a": a, "b": b, "c": c, "d": d}, predict=True)

# %% [markdown]
# ### Break it yourself
#
# Here are all four side by side, on an expression that you choose. Find one on which exactly one engine is wrong, one on which two are wrong, and one on which three are. Then try to predict the result for expressions that you make up.

# %% tags=["demo"]
ENGINES |= {"nearest_first": nearest_first, "recursing": recursing}
beside_pytorch(lambda a: a.tanh() * 3 - 1, 0.5)

# %% [markdown]
# ### Are there smaller ones? (further)
#
# There are few enough small programs to try them all. The next cell runs all four engines on **every** program of one number with up to three operations (`-`, `+`, `*`) in which no result goes unused. **Predict** the first column: how many of the programs with one operation does each engine get wrong?

# %% tags=["demo"]
import itertools
import random

predict("How many programs with one operation does each of the four engines get wrong?")


def programs(length):
    """All programs of that length: each step is an operation and the positions of its inputs."""
    if length == 0:
        yield ()
        return
    for program in programs(length - 1):
        places = range(len(program) + 1)
        for place in places:
            yield (*program, ("-", place))
        for symbol, left, right in itertools.product("+*", places, places):
            yield (*program, (symbol, left, right))


def run(program, a):
    values = [a]
    for symbol, *places in program:
        inputs = [values[place] for place in places]
        if symbol == "-":
            values.append(-inputs[0])
        else:
            values.append(inputs[0] + inputs[1] if symbol == "+" else inputs[0] * inputs[1])
    return values[-1]


def wrong(backward, program, number=0.7):
    found, right = MiniTensor(number), MiniTensor(number)
    backward(run(program, found))
    every_path(run(program, right))
    return abs(found.grad - right.grad) > 1e-9


print(f"{'operations':>28s}" + "".join(f"{length:6d}" for length in (1, 2, 3)))
useful = {}
for length in (1, 2, 3):
    steps = set(range(length))
    for program in programs(length):
        used = {place for step in program for place in step[1:]}
        useful.setdefault(length, []).extend([program] if steps <= used else [])
print(f"{'programs':>28s}" + "".join(f"{len(useful[length]):6d}" for length in (1, 2, 3)))
for name, engine in ENGINES.items():
    counts = [sum(wrong(engine, program) for program in useful[length]) for length in (1, 2, 3)]
    print(f"{name:>14s} is wrong on " + "".join(f"{count:6d}" for count in counts))

# %% [markdown]
# So 1, 2 and 3 are the smallest sizes. And `recursing` has no wrong answer at all. Remember that.
#
# What about testing with random programs? Longer ones reuse more. **Predict** the length at which half of all random programs expose each of the other three engines.

# %% tags=["demo"]
import matplotlib.pyplot as plt

predict("At which length do half of all random programs expose the other three engines?")


def random_program(length, generator):
    """Like a real program: each step uses the latest value; a sum adds this or an earlier one."""
    program = []
    for step in range(length):
        symbol = generator.choice("-+t")
        earlier = [generator.randrange(step + 1)] if symbol == "+" else []
        program.append((symbol, step, *earlier))
    return program


def run_random(program, a):
    values = [a]
    for symbol, *places in program:
        first = values[places[0]]
        if symbol == "+":
            values.append(first + values[places[1]])
        else:
            values.append(-first if symbol == "-" else first.tanh())
    return values[-1]


def gradients_of_all(backward, programs):
    leaves = [MiniTensor(0.7) for _ in programs]
    for leaf, program in zip(leaves, programs):
        backward(run_random(program, leaf))
    return [leaf.grad for leaf in leaves]


generator = random.Random(3)
lengths = range(1, 13)
tests = [[random_program(length, generator) for _ in range(200)] for length in lengths]
right = [gradients_of_all(recursing, programs) for programs in tests]
fig, axis = plt.subplots(layout="constrained")
for (name, engine), marker in zip(ENGINES.items(), "osD^"):
    share = []
    for programs, wanted in zip(tests, right):
        pairs = zip(gradients_of_all(engine, programs), wanted)
        share.append(100 * sum(abs(a - b) > 1e-9 for a, b in pairs) / len(programs))
    axis.plot(lengths, share, marker + "-", markersize=4, label=name)
axis.set(xlabel="operations in a random program", ylabel="programs that expose it, in %")
axis.set(xticks=lengths, ylim=(-3, 103))
axis.legend(loc=(0.68, 0.08))
plt.show()

# %% [markdown]
# Reuse is common, so random tests find these bugs quickly, as long as they reuse something. The colleagues' neuron uses every number once, so it cannot show any of these bugs.

# %% [markdown]
# ## 3. Which orders are right?
#
# Every engine so far walked backward from the output. As you saw, that is not enough. In lesson 02 we called an order **topological** if every node comes before its inputs. Is that exactly the condition, or is it stricter than necessary?

# %% [markdown]
# ### Exercise 3: recognize a topological order
#
# Write a function that says whether a list of nodes is a topological order of their graph.

# %% [markdown] tags=["hint"] exercise="valid_order"
# First make a dict from each node to its position in the list. Every input of every node must be in that dict too.

# %% [markdown] tags=["hint"] exercise="valid_order"
# If a node appears in the list twice, the dict has fewer entries than the list.

# %% solution="valid_order"
def is_topological(order):
    """Whether each node is in the list once, and before all its inputs, which must be there too.

    order: list of MiniTensors
    Returns: bool

    >>> a = MiniTensor(1.0)
    >>> b = -a
    >>> is_topological([b, a]), is_topological([a, b]), is_topological([b])
    (True, False, False)
    """
    ### BEGIN SOLUTION
    place = {node: number for number, node in enumerate(order)}
    edges = [(node, source) for node in order for source in node.inputs]
    return len(place) == len(order) and all(place.get(source, -1) > place[node] for node, source in edges)
    ### END SOLUTION

# %% check="valid_order"

# %% [markdown]
# Now the experiment. Seven nodes can be ordered in 5040 ways. Run a backward pass in **each** order and see which ones give the right gradients. **Predict:** more than the topological ones, or exactly those?

# %% tags=["demo"]
predict("Which orders give the right gradients?", "the topological ones", "these and more", "fewer")


def backward_in(order, gradient=1.0):
    """The backward pass of lesson 02 in a given order. What comes too late is never pushed on."""
    pending = {order[0]: gradient} if order[0].rule else {}
    for node in order:
        grad = pending.pop(node, 0.0)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                pending[source] = pending.get(source, 0.0) + share


a = MiniTensor(0.3)
b, c, d = a.tanh(), a.exp(), -a
e = b * c
f = d * e
nodes = [a, b, c, d, e, f, f + a]
try_all_orders(nodes, backward_in, is_topological)

# %% [markdown]
# With a dict of pending gradients the condition is exact: a topological order gives the right gradients; any other order of the same nodes loses something. (An engine that adds straight into `.grad` also forgives a leaf that is visited too early.) There may be several topological orders. They differ only in the order of additions, so their results may differ in the last digit, as sums of rounded numbers do.

# %% [markdown] items="12 34"
# So here is the whole algorithm, for any engine:
#
# 1. the **forward** pass runs the program, and each operation records its inputs and keeps the values its rule will need;
# 2. the **backward** pass starts with the gradient 1 at the output;
# 3. it takes the nodes in a topological order; the reverse of the order in which they were made is one;
# 4. each node's rule multiplies what has arrived by its local slopes and sends the shares to its inputs, where they are **added**;
# 5. at a leaf, the sum stays in `.grad`.
#
# PyTorch does the same. Its nodes can report when their turn comes:

# %% tags=["demo"]
def early_and_late(a):
    b = -a
    c = b.tanh()
    return b + c


print(*torch_order(early_and_late, a=2.0), sep=" -> ")

# %% [markdown]
# `NegBackward0` is one step away from the output, and it waits for `TanhBackward0`. Before it starts, PyTorch counts how many shares will arrive at each node, and a node may run only when all of them have. So the order is topological. (Nodes are also numbered as they are made: of several operations that may run, the latest goes first.)
#
# A graph in which a number is used twice has one node for it, not two. Take `(x*y + x)**2`: two paths lead to `x`, and both end in the same object.

# %% tags=["demo"] items="20"
x, y = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0))
out = (x * y + x) ** 2
(mul_node, _), (through_sum, _) = out.grad_fn.next_functions[0][0].next_functions
through_product = mul_node.next_functions[0][0]
print("names:     ", *(node.name().split("::")[-1] for node in (through_sum, through_product)))
print("one object:", through_sum is through_product)

x, y = MiniTensor(2.0), MiniTensor(3.0)
total = (x * y + x).inputs
print("yours:     ", total[0].inputs[0] is total[1])

# %% [markdown]
# ## 4. Reuse
#
# Reuse is not a corner case. A recurrent network applies the same weight at every step of a sequence. Here is the smallest one: it reads numbers one by one, and multiplies its state `h` by the same `w` each time.

# %%
sequence = [0.5, -0.3, 0.8, 0.1, -0.6, 0.4, 0.9, -0.2, 0.3, 0.7]


def recurrent(weights):
    """The last state of the network, with one weight per step (they may all be the same object)."""
    h = MiniTensor(0.0)
    for w, x in zip(weights, sequence):
        h = (w * h + x).tanh()
    return h

# %%
w = MiniTensor(0.9)
recurrent([w] * len(sequence)).backward()
print("gradient of the shared weight:", w.grad)

# %% [markdown]
# One call of `backward`, one number. But it is a sum over ten uses. What did each step contribute?
#
# Here is a trick. Give each use **its own leaf** with the same value. The forward pass computes the same numbers, and each leaf receives only the share of its own use.

# %% [markdown]
# ### Exercise 4: the contribution of each use
#
# Write `contributions`. The weight is passed as a list, so that each use can have its own leaf.

# %% [markdown] tags=["hint"] exercise="contributions"
# Make a list of `uses` different MiniTensors, all with the value `number`. `[MiniTensor(number)] * uses` would hold the same MiniTensor many times.

# %% [markdown] tags=["hint"] exercise="contributions"
# Call `expression` with that list, then `.backward()` of what it returns, then collect the `.grad` of each.

# %% solution="contributions"
def contributions(expression, number, uses):
    """What each use of a number contributes to its gradient.

    expression: function of a list of MiniTensors, one per use, that returns a MiniTensor
    number: the value of all of them
    uses: how many there are
    Returns: list of floats, one per use

    >>> contributions(lambda w: w[0] * w[1] + 5 * w[2], 3.0, 3)
    [3.0, 3.0, 5.0]
    """
    ### BEGIN SOLUTION
    leaves = [MiniTensor(number) for _ in range(uses)]
    expression(leaves).backward()
    return [leaf.grad for leaf in leaves]
    ### END SOLUTION

# %% check="contributions"

# %% [markdown]
# **Predict** two things: the sum of the contributions, and which steps matter most.

# %% tags=["demo"] items="F27"
predict("Which steps matter most?", "the first", "the last", "all alike")
shares = {}
for value in (0.9, 0.4):  # two values of the weight
    first, *later = contributions(recurrent, value, len(sequence))
    w = MiniTensor(value)
    recurrent([w] * len(sequence)).backward()
    print(f"w = {value}: contributions add up to {first + sum(later):.12f}, one call {w.grad:.12f}")
    shares[f"w = {value}"] = later
plot_contributions(shares)

# %% [markdown]
# The shares add up to the gradient, to the last digit or nearly so. (The first step is left out: it contributes 0, since the state is 0 there.) On the whole, the earlier the step, the less it counts: its share has been multiplied by a slope below 1 at every later step. That is the *vanishing gradient* of recurrent networks, seen from inside.

# %% [markdown]
# ### A saying, measured
#
# *"PyTorch adds to `.grad` so that shared weights of recurrent networks work."* You can test it. Set `.grad` to zero before the call, so that nothing is left from earlier calls. If the saying is true, the gradient of the shared weight must now be wrong. **Predict.**

# %% tags=["demo"] items="F27"
predict("Is the gradient of the shared weight right?", "yes", "no, too small", "no, too large")

w_torch = torch.tensor(0.9, dtype=torch.float64, requires_grad=True)
for before in (None, 0.0, 100.0):
    w_torch.grad = None if before is None else torch.tensor(before, dtype=torch.float64)
    torch_recurrent(w_torch, sequence).backward()
    print(f".grad before the call: {before!s:5}   after: {w_torch.grad.item():.12f}")

# %% [markdown] items="F27 gap:accumulation"
# The ten uses are summed **inside** one backward pass, whatever was in `.grad` before. Adding to `.grad` from call to call is a second, separate sum. It serves a different purpose: collecting the gradients of several losses or small batches before one step of the optimizer. Lesson 05 is about that sum.
#
# | sum | where | over what | can you switch it off? |
# | --- | --- | --- | --- |
# | fan-out | in the pending gradients of one call | all uses of a number in one graph | no, it is the chain rule |
# | accumulation | in `.grad` | calls of `backward` | yes: set `.grad` to zero |

# %% [markdown] items="F27 gap:accumulation"
# ## 5. Too deep
#
# One engine is left. `recursing` gave no wrong answer so far, and it never will. What can be wrong with it?
#
# Give it a long chain, in which each operation takes the result of the one before. Here is a chain of negations:

# %%
def negations(count):
    """A leaf, and the result of that many negations in a row."""
    x = MiniTensor(1.0)
    y = x
    for _ in range(count):
        y = -y
    return x, y

# %%
for count in (10, 100, 1000, 10_000):
    x, y = negations(count)
    try:
        recursing(y)
        print(f"{count:6,d} negations: gradient {x.grad}")
    except RecursionError as error:
        print(f"{count:6,d} negations: RecursionError: {error}")

# %% [markdown]
# ### Exercise 5: the longest chain
#
# The smallest evidence against `recursing` is a chain that is one operation too long. How long is that? Write a function that finds the longest chain of negations that a backward pass survives. If it survives one chain, it survives every shorter one, so you don't have to try them all.

# %% [markdown] tags=["hint"] exercise="longest_chain"
# First a small function `survives(count)`: inside `try`, make `x, y = negations(count)`, call `backward(y)` and return True; on `except RecursionError`, return False.

# %% [markdown] tags=["hint"] exercise="longest_chain"
# Search by halving. Keep two numbers: `low`, which survives (0 always does), and `high`, which counts as failing (start at `most + 1`, which is never tried). Try the middle, `(low + high) // 2`, and move `low` or `high` there, until `high - low` is 1.

# %% solution="longest_chain"
def longest_chain(backward, most):
    """The longest chain of negations that a backward pass gets through without a RecursionError.

    backward: function of the last result of a chain
    most: the answer is at most this; longer chains are not tried
    Returns: int

    No other error means "too deep": let it through.

    >>> longest_chain(every_path, 20)
    20
    """
    ### BEGIN SOLUTION
    def survives(count):
        try:
            backward(negations(count)[1])
        except RecursionError:
            return False
        return True

    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if survives(middle) else (low, middle)
    return low
    ### END SOLUTION

# %% check="longest_chain"

# %% tags=["demo"]
limit_here = longest_chain(recursing, 5_000)
print("operations in a row:", limit_here, "; calls that Python allows:", sys.getrecursionlimit())

# %% [markdown]
# A recurrent network on a text of a few thousand characters is deeper than that. So is an optimizer whose steps are part of the graph. PyTorch has no such limit:

# %% tags=["demo"]
x_torch = torch.tensor(1.0, requires_grad=True)
y_torch = x_torch
for _ in range(20_000):
    y_torch = -y_torch
y_torch.backward()
print("after 20,000 operations:", x_torch.grad.item())

# %% [markdown]
# ### A saying, measured
#
# *"Just raise the recursion limit."* It may work, or it may do something worse than raise an error. So we try it in a separate Python process, not in the one that holds your work. Both programs below recurse 100,000 deep; the second one calls itself through `map`. **Predict** what happens to each.

# %% tags=["demo"]
predict("What happens to the one with map?", "it works", "RecursionError", "the process dies")
PLAIN = "def down(n): return 0 if n == 0 else down(n - 1)"
THROUGH_MAP = "def down(n): return 0 if n == 0 else list(map(down, [n - 1]))[0]"
for name, function in {"plain recursion": PLAIN, "through map": THROUGH_MAP}.items():
    program = f"import sys; sys.setrecursionlimit(10**6)\n{function}\nprint(down(100_000))"
    print(f"{name:16s}", in_another_process(program), "on Python", sys.version.split()[0])

# %% [markdown]
# Python 3.11 and later keep plain calls off the C stack, so the first one may well survive. The second goes through C at every step. There a process can die without any message, and in a notebook you would lose the kernel and everything in it. An engine should not depend on such details.

# %% [markdown]
# ### Exercise 6: a topological order without recursion
#
# What does recursion do for you? It remembers where to continue. Do that yourself, with a list as a stack.
#
# Write `topological_order` again, for graphs of any depth. Don't search a list, of nodes or of their ids, for each node: four times as many nodes would then take 16 times as long. The check counts the lines that run, not the time that each takes; the plot at the end of this section measures that.
#
# Below your function is the course's version of `backward` from lesson 02, so that from now on everybody has the same one. You don't need to change it: it looks up `topological_order` when it is called, so it finds your new function. A `KeyError` in its line `pending.pop(node)` means that the order is wrong: nothing had arrived when that node's turn came.

# %% [markdown] tags=["hint"] exercise="iterative_order"
# In the recursive version a node is touched twice: when it is entered, and when all its inputs are done and it is appended. Put pairs on the stack: `(node, False)` means "enter", `(node, True)` means "its inputs are done".

# %% [markdown] tags=["hint"] exercise="iterative_order"
# Take the last pair from the stack with `pop()`. If its flag is True, append the node to `finished`. Otherwise, if the node has not been seen: mark it as seen, put `(node, True)` on the stack, and on top of it `(source, False)` for each input. They will be handled before it.

# %% [markdown] tags=["hint"] exercise="iterative_order"
# Begin with `finished, seen, stack = [], set(), [(root, False)]`, loop `while stack:`, and return `finished[::-1]`. Appending and reversing once is quick; `finished.insert(0, node)` moves the whole list each time.

# %% solution="iterative_order" tags=["engine"]
def topological_order(root):
    """All nodes that root was made from, root first, each once and before its inputs; for any depth.

    root: MiniTensor
    Returns: list of MiniTensors

    >>> a = MiniTensor(3.0)
    >>> b = -a
    >>> [node.data for node in topological_order(b + b * b)]
    [6.0, 9.0, -3.0, 3.0]
    """
    ### BEGIN SOLUTION
    finished, seen, stack = [], set(), [(root, False)]
    while stack:
        node, inputs_are_done = stack.pop()
        if inputs_are_done:
            finished.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(source, False) for source in node.inputs]
    return finished[::-1]
    ### END SOLUTION


def backward(self, gradient=1.0):
    """Find the gradient of self with respect to every node it was made from; add it to their .grad."""
    pending = {self: gradient}
    for node in topological_order(self):
        grad = pending.pop(node)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                pending[source] = pending.get(source, 0.0) + share


MiniTensor.backward = backward

# %% check="iterative_order"

# %% check="new_backward"

# %% check="deep"

# %% [markdown]
# Now try 50,000 operations: run them forward and backward, then drop them. **Predict** which of the three takes longest, and whether dropping the output frees everything at once, or leaves it to Python's garbage collector.

# %% tags=["demo"]
def chain_of(count):
    start = time.perf_counter()
    x = MiniTensor(1.0)
    y = x
    for _ in range(count):
        y = -y
    forward = time.perf_counter()
    y.backward()
    backward = time.perf_counter()
    middle = weakref.ref(y.inputs[0])  # knows the node without keeping it alive
    del y
    dropped = time.perf_counter()
    return x.grad, middle() is None, (forward - start, backward - forward, dropped - backward)

# %% tags=["demo"]
predict("Which takes longest?", "forward", "backward", "dropping the output")
gradient, gone, seconds = chain_of(50_000)
print("gradient", gradient, "  freed at once:", gone)
for name, time_needed in zip(("forward", "backward", "dropped"), seconds):
    print(f"{name:9s} {1000 * time_needed:7.1f} ms")

# %% [markdown]
# The forward pass takes longest: while it makes so many objects, Python's garbage collector looks through them several times.
#
# Nothing in the graph points back to its output: a node holds its inputs and a rule, and some rules, such as that of a product, hold the inputs too. So when the output is freed, so is the node before it, then the one before that, and so on, without a collector. (Python makes sure that this chain does not become too deep for *it*.) An engine whose nodes also knew their results would have reference cycles, and would have to wait for the garbage collector; lesson 06 measures that.

# %% [markdown]
# ### Time and length (further)
#
# Is the time proportional to the length?

# %% tags=["demo"]
import gc

import matplotlib.pyplot as plt

from mini_autograd.widgets.demo import logarithmic

lengths = [300, 1000, 3000, 10_000, 50_000]


def best_times():
    """Seconds for forward, backward and dropping, at each length: each the better of two runs."""
    runs = [[chain_of(length)[2] for _ in range(2)] for length in lengths]
    return [[min(run[part] for run in of_a_length) for of_a_length in runs] for part in range(3)]


with_collector = best_times()
gc.disable()
without_collector = best_times()
gc.enable()

fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
measured = {"collector on": with_collector, "collector off": without_collector}
for axis, (title, times) in zip(axes, measured.items()):
    for name, row, marker in zip(("forward", "backward", "dropped"), times, "osD"):
        axis.plot(lengths, row, marker + "-", markersize=5, label=name)
        short, long = (1e6 * row[i] / lengths[i] for i in (0, -1))
        print(f"{title:13s} {name:8s} {short:5.2f} us per operation in a short chain", end=", ")
        print(f"{long:5.2f} in a long one")
    logarithmic(axis, "xy")
    axis.axvline(limit_here, color="gray", linestyle="--")
    axis.set(xlabel="operations in a row", title=title)
axes[0].set_ylabel("seconds")
axes[0].legend()
plt.show()

# %% [markdown]
# Single points jump on a busy machine. But with the collector off, all three run along nearly straight lines of slope 1, far beyond the dashed line at which recursion ends: the cost per operation hardly changes forward and backward, and dropping stays the cheapest of the three. With the collector on, long chains cost more: forward bends upward most, backward less. Python's garbage collector counts how many objects are made, and now and then it searches the live ones for reference cycles. Here there are none, so the whole search is wasted. PyTorch keeps its graph in C++, where this collector does not look.

# %% [markdown]
# ### The bug report, once more
#
# Here is the bug report from the start of the lesson, with all engines, including yours:

# %% tags=["demo"]
ENGINES["yours"] = MiniTensor.backward
beside_pytorch(report, 0.6, -0.4)

# %% [markdown]
# ## Quiz

# %% test="quiz_03" points=5 tags=["quiz"]
question(
    "which_engine",
    "An engine gives -3 where `b = -a; c = b + b` has the gradient -2. Which mistake fits?",
    right(
        "Each arrival at `b` pushes on the sum so far, so the first 1 is pushed on twice.",
        "First 1, then 1 + 1 is pushed on: together 3, times -1.",
    ),
    wrong("The second arrival at `b` replaces the first.", "Then only one share would reach `a`: the result would be -1.", misconception="assigned_not_accumulated"),
    wrong("`b` was visited before its second share arrived.", "Then the second share would be lost, and the result would be -1.", misconception="no_topological_order"),
    wrong("The incoming gradient was ignored.", "Then `b` would push on -1, whatever arrives.", misconception="upstream_ignored"),
)
question(
    "leaf_early",
    "An engine visits a leaf `a` before all its shares have arrived, adds into `.grad`, and visits it only once. What comes out wrong?",
    right("Nothing.", "A leaf pushes nothing on. Shares that come later are still added to its `.grad`."),
    wrong("The gradient of `a`.", "It receives its late shares too. They are added where they arrive.", misconception="leaves_last"),
    wrong("The gradients of the nodes made from `a`.", "Gradients flow from them to `a`, never back.", misconception="graph_direction"),
    wrong("Everything, because the order is not topological.", "The order matters for nodes that push on. (In an engine with a dict of pending gradients late shares would indeed stay in the dict.)", misconception="order_is_a_ritual"),
)
question(
    "operand_order",
    "`nearest_first` is right on `c + b` and wrong on `b + c`, with `b = -a` and `c = -b`. What follows for tests?",
    right(
        "A right number on one spelling proves little; test reuse in several spellings and shapes.",
        "In `c + b` the node `b` was second in the queue, and the share of `c` came just in time.",
    ),
    wrong("Addition is not commutative for gradients.", "The gradients of both spellings are equal. The engine is wrong on one of them.", misconception="order_of_operands"),
    wrong("`b + c` should be avoided in programs.", "The program is fine. The engine must be fixed.", misconception="blame_the_program"),
    wrong("The rule of the sum is wrong.", "The rule returns the incoming gradient for both inputs, which is right. The order of visits is not.", misconception="fan_out_in_the_rule"),
)
question(
    "several_orders",
    "A graph has three topological orders. How many different gradients can its leaves get?",
    right("One, apart from rounding.", "In each such order everything has arrived at a node before its turn. Only the order of additions differs."),
    wrong("Three, one per order.", "You ran all topological orders of a graph of seven nodes. All were right.", misconception="order_changes_gradient"),
    wrong("One, but only the reverse of the forward order gives it.", "That one is topological. So are others, and they give the same.", misconception="order_by_time"),
    wrong("Up to three, depending on the values.", "Values play no part in the order.", misconception="order_changes_gradient"),
)
question(
    "shared_weight",
    "A weight is used at ten steps of a sequence. Before `backward`, its `.grad` is set to None. What is its gradient after one call?",
    right("The sum over the ten uses.", "Uses are summed within the call. `.grad` then adds that sum to what was in it before."),
    wrong("The contribution of the last use.", "Then contributions within one call would replace one another.", misconception="assigned_not_accumulated"),
    wrong("The contribution of the first use; the rest needs further calls.", "One call goes through the whole graph.", misconception="one_call_per_use"),
    wrong("The mean over the ten uses.", "Nothing divides by the number of uses: the chain rule adds.", misconception="sum_or_mean"),
)
question(
    "deep",
    "A recursive engine passes every test of its author and fails on a sequence of 5,000 characters. Why?",
    right(
        "The recursion goes down once per operation on the longest path, and Python's stack of calls is limited.",
        "Depth counts, not size: a graph of a million nodes side by side would be fine.",
    ),
    wrong("Too many nodes: the set of visited nodes is full.", "Sets grow as needed. A wide graph with as many nodes passes.", misconception="size_or_depth"),
    wrong("Gradients vanish over 5,000 steps.", "They may, but a tiny number is no error.", misconception="vanishing_is_an_error"),
    wrong("The graph has a cycle.", "Results are made from what exists already, so cycles cannot arise.", misconception="cycles_in_the_graph"),
)
question(
    "quadratic",
    "Somebody builds the order with `finished.insert(0, node)`. The results are right. What would you say in a review?",
    right(
        "Each insert moves the whole list, so the time grows with the square of the number of nodes.",
        "Append and reverse once at the end: the same order in proportional time.",
    ),
    wrong("Nothing; it saves the reversal.", "It saves one pass over the list and pays with one pass per node.", misconception="constant_time_insert"),
    wrong("The order comes out the wrong way around.", "The node that finishes last comes first, as it should.", misconception="leaves_first"),
    wrong("It needs recursion.", "Building the list has nothing to do with how the graph is walked.", misconception="recursion_needed"),
)

# %% [markdown] question="why_wait" points=3
# ### Why wait?
#
# A fellow student writes a backward pass that calls a node's rule whenever a gradient arrives, and passes the result on at once. The gradients of all tests are right. **Why** are they right, and why is the program useless for deep networks all the same? Answer in one paragraph.
#
# ### BEGIN MARK SCHEME
# *A good answer:* A rule is linear in the gradient that arrives. Passing on two parts one after the other gives the same sum as passing on their sum once, so the leaves get the right total. But a node then runs once for each path from it to the output, and the number of paths doubles with each value that is used twice: 40 such steps are about 10^12 calls. An engine that waits until everything has arrived calls each rule once.
#
# * 1 point: rules are linear, so the sum of the parts gives the part of the sum
# * 1 point: each rule runs once per path to the output
# * 1 point: the number of paths can grow exponentially, while a topological order calls each rule once
#
# Wrong answers, and what they get:
#
# * *The gradients must be wrong, because the order is wrong*: no point. They are wrong only if a rule is called with a part and the rest is dropped.
# * *It is slow because recursion is slow*: at most one point. It is the number of calls.
# ### END MARK SCHEME

# %% [markdown]
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | smallest evidence | reduce a failing program until nothing more can go; what is left shows the bug |
# | reuse | a number that is used twice needs `+=`, and one push after everything has arrived |
# | topological order | the orders in which every node has its whole gradient before it pushes anything on; there may be several |
# | nearest first | wrong: what counts is the longest path from the output, not the shortest |
# | fan-out and accumulation | a sum within one call, which is the chain rule; a sum over calls, which is a convention |
# | depth | no recursion over graphs: a list as a stack has no limit |
# | dropping | without cycles a graph is freed the moment its output is |
#
# Of the four engines, three go wrong with as few as 1, 2 and 3 operations, and the fourth gives up on a long chain. Yours does neither. In the next lesson a node holds an array of numbers, not just one, and a new kind of reuse appears that no graph shows.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()
