# %% [markdown]
# # An engine for numbers
#
# *Core: about 110 minutes; a good break is before section 2. Further: about 10 minutes, optional. You build an engine that records numbers and finds their gradients. You need the rules for sums, products and tanh of lesson 01.*
#
# Sixty additions. In each, the previous result is added to itself.

# %% tags=["engine"]
import math
import time

import numpy as np

from autograder.student import check, hints, predict, progress, quiz

# %% tags=["demo"]
import warnings

from mini_autograd.widgets import explore

import torch
from helpers_02 import beside_pytorch, leaf, plot_doublings, seconds_for

# %% tags=["demo"]
x = leaf(1.0)
start = time.perf_counter()
y = x
for _ in range(60):
    y = y + y
y.backward()
print(f"gradient {x.grad.item():.0f}, found in {1000 * (time.perf_counter() - start):.1f} ms")

# %% [markdown]
# In lesson 01 the contributions of different paths added up. **Predict** how many paths lead from `y` back to `x`.

# %% tags=["demo"]
predict("How many paths lead from y back to x?", "60", "120", "60**2", "2**60")
paths = round(x.grad.item())  # each path contributes 1 to the gradient
years = paths / 1e9 / 3600 / 24 / 365
print(f"{paths:,} paths; at a billion per second that takes {years:.1f} years")

# %% [markdown]
# Each addition doubles the paths. PyTorch needed milliseconds, and its answer is exact. **How can it add up more terms than it has time to look at?**
#
# To find out, you build the engine yourself: `MiniTensor`, for single numbers. You will be able to
#
# 1. record a computation as a graph while it runs;
# 2. give each operation a small rule that knows nothing about the rest;
# 3. put the nodes of a graph in an order in which gradients can flow;
# 4. write `backward`, which visits every node exactly once;
# 5. read PyTorch's graph.

# %% [markdown]
# ## 1. Record what happens
#
# A number has to collect its gradient, and remember where it came from. It carries four things besides its value:

# %% tags=["engine"]
class MiniTensor:
    """A number that remembers how it was made."""

    def __init__(self, data, inputs=(), operation="", rule=None):
        self.data = float(data)  # the value
        self.grad = 0.0  # the gradient; backward adds to it
        self.inputs = inputs  # the MiniTensors it was made from
        self.operation = operation  # what made it, such as "+"
        self.rule = rule  # takes the incoming gradient, returns one gradient per input

    def __repr__(self):
        return f"MiniTensor({self.data:g}, grad={self.grad:g})"


def as_tensor(value):
    """A MiniTensor stays what it is; a plain number becomes one."""
    return value if isinstance(value, MiniTensor) else MiniTensor(value)

# %% [markdown]
# A MiniTensor that no operation made has no inputs and no rule: it is a **leaf**. (If you run the cell above again, you get a *new* class without operations. Then run the cells below again too.)

# %% [markdown]
# The smallest operation is the minus sign. Its slope is -1, so its rule multiplies the incoming gradient by -1. A rule always returns a tuple (or a list), with one entry per input.

# %% tags=["engine"]
def negate(a):
    def rule(grad):
        return (-grad,)

    return MiniTensor(-a.data, (a,), "neg", rule)


MiniTensor.__neg__ = negate

# %% [markdown]
# The rule is a function made inside another one; it can use `a` even after `negate` has returned. The last line tells Python what `-a` means for a MiniTensor. **Predict** what `b` keeps of `a`.

# %%
predict("What does `b` keep of `a`?", "its value", "a copy", "`a` itself")
a = MiniTensor(3.0)
b = -a
print(b, b.operation, b.inputs)
print(b.inputs[0] is a)
print(b.rule(10.0))

# %% [markdown] items="10 11"
# `b` holds the object `a` itself, not a copy. Objects that hold their inputs form a **graph**: one node per number, one edge for each use of an input (`y + y` has two). Going from results to their inputs never leads back to the start, because a result can only
# be made from numbers that already exist. Such a graph is called a directed acyclic graph, or DAG.

# %% [markdown]
# The values were computed on the way forward. Now something must go backward. The simplest idea: follow **every path** back, multiply along it, and add at every node.

# %%
def push_along_every_path(tensor, gradient=1.0):
    """Add the gradient here, then push each input's share to that input."""
    tensor.grad += gradient
    if tensor.rule is not None:
        for source, share in zip(tensor.inputs, tensor.rule(gradient)):
            push_along_every_path(source, share)


MiniTensor.backward = push_along_every_path

# %% [markdown]
# Six lines, and they find the right gradients. You replace them later.

# %% [markdown]
# ### Exercise 1: sum and product
#
# Write `add` and `multiply` like `negate`: compute the value, write the rule, return a MiniTensor that knows its inputs. The rules are those of lesson 01:
#
# | operation | share of `a` | share of `b` | the rule returns |
# | --- | --- | --- | --- |
# | `-a` | `-grad` | | `(-grad,)` |
# | `a + b` | `grad` | `grad` | a tuple of two |
# | `a * b` | `grad` times the value of `b` | `grad` times the value of `a` | a tuple of two |
#
# `b = as_tensor(b)` makes `a + 1` work, where `b` is a plain number.

# %% [markdown] tags=["hint"] exercise="add_and_multiply"
# Both have two inputs, so `inputs` is `(a, b)` and the rule returns a tuple of two numbers, in the same order.

# %% [markdown] tags=["hint"] exercise="add_and_multiply"
# A sum moves as much as each of its inputs, so each gets `grad`. A product moves by the *other* factor.

# %% [markdown] tags=["hint"] exercise="add_and_multiply"
# The rule of `multiply` returns `grad * b.data, grad * a.data`. The last line is `return MiniTensor(a.data * b.data, (a, b), "*", rule)`.

# %% solution="add_and_multiply" tags=["engine"]
def add(a, b):
    """a + b; pictures show its operation, "+". b: a MiniTensor or a plain number.

    >>> add(MiniTensor(2.0), MiniTensor(3.0)).data
    5.0
    """
    b = as_tensor(b)
    ### BEGIN SOLUTION
    def rule(grad):
        return grad, grad

    return MiniTensor(a.data + b.data, (a, b), "+", rule)
    ### END SOLUTION


def multiply(a, b):
    """a * b; pictures show its operation, "*". b: a MiniTensor or a plain number.

    >>> multiply(MiniTensor(2.0), MiniTensor(3.0)).rule(10.0)
    (30.0, 20.0)
    """
    b = as_tensor(b)
    ### BEGIN SOLUTION
    def rule(grad):
        return grad * b.data, grad * a.data

    return MiniTensor(a.data * b.data, (a, b), "*", rule)
    ### END SOLUTION


MiniTensor.__add__ = add
MiniTensor.__radd__ = add  # Python calls this for 1 + a, as add(a, 1)
MiniTensor.__mul__ = multiply
MiniTensor.__rmul__ = multiply

# %% check="add_and_multiply"

# %% [markdown]
# In this graph `a` is used twice. Which paths lead from `d` back to `a`, and what does each contribute? Choose *Step*. Before each backward step, the picture asks for your **prediction**; leave it empty to skip it.

# %% tags=["demo"]
a, b = MiniTensor(2.0), MiniTensor(3.0)
c = a + b
d = c * a
explore(d, predict=True)

# %% [markdown] items="46"
# This picture is drawn from your own objects. Values travel along the edges to the result; gradients travel back along the same edges.

# %% items="138"
a, b = MiniTensor(2.0), MiniTensor(3.0)
d = (a + b) * a
d.backward()
print("d =", d.data, "  a.grad =", a.grad, "  b.grad =", b.grad)

# %% [markdown]
# Two paths lead to `a`: through the product alone, with the factor `c = 5`, and through the sum, with the factor `a = 2`. Together 7.

# %% [markdown]
# ### Exercise 2: difference and quotient
#
# Only the rules are missing. (Inside a rule you calculate with plain numbers, where `**` works; `**` of MiniTensors comes in exercise 3.) The slope of a quotient `a / b` is `1 / b` with respect to `a`, and `-a / b**2` with respect to `b`.
#
# Order matters here. For `2 - a` Python first asks the number 2, which knows nothing about MiniTensors; then it calls `MiniTensor.__rsub__(a, 2)`, the *reversed* difference. The last lines of the cell handle this for you, and likewise `1 / a`.

# %% [markdown] tags=["hint"] exercise="subtract_and_divide"
# `a - b` grows when `b` falls: the second entry of the rule needs a minus sign.

# %% [markdown] tags=["hint"] exercise="subtract_and_divide"
# The rule of `divide` returns `grad / b.data, -grad * a.data / b.data**2`.

# %% solution="subtract_and_divide" tags=["engine"]
def subtract(a, b):
    """The difference a - b.

    a: MiniTensor
    b: MiniTensor or plain number

    >>> subtract(MiniTensor(2.0), 3.0).data
    -1.0
    """
    b = as_tensor(b)
    ### BEGIN SOLUTION
    def rule(grad):
        return grad, -grad
    ### END SOLUTION

    return MiniTensor(a.data - b.data, (a, b), "-", rule)


def divide(a, b):
    """The quotient a / b.

    a: MiniTensor
    b: MiniTensor or plain number

    >>> divide(MiniTensor(6.0), 3.0).data
    2.0
    """
    b = as_tensor(b)
    ### BEGIN SOLUTION
    def rule(grad):
        return grad / b.data, -grad * a.data / b.data**2
    ### END SOLUTION

    return MiniTensor(a.data / b.data, (a, b), "/", rule)


MiniTensor.__sub__ = subtract
MiniTensor.__rsub__ = lambda a, number: subtract(as_tensor(number), a)  # for number - a
MiniTensor.__truediv__ = divide
MiniTensor.__rtruediv__ = lambda a, number: divide(as_tensor(number), a)  # for number / a

# %% check="subtract_and_divide"

# %% [markdown]
# ### Exercise 3: power
#
# Write the rule of `a**n`, where the exponent `n` is a plain number other than 0, whole or not. The slope of `a**3` is `3 * a**2`.

# %% [markdown] tags=["hint"] exercise="power"
# The exponent comes down as a factor, and the new exponent is one less: `exponent * a.data ** (exponent - 1)`. The rule has one input, so it returns a tuple with one entry and a comma.

# %% solution="power" tags=["engine"]
def power(a, exponent):
    """a ** exponent, recorded with the single input a and an operation such as "**3".

    a: MiniTensor
    exponent: plain number
    Returns: MiniTensor

    >>> power(MiniTensor(2.0), 3).rule(1.0)
    (12.0,)
    """
    ### BEGIN SOLUTION
    def rule(grad):
        return (grad * exponent * a.data ** (exponent - 1),)
    ### END SOLUTION

    return MiniTensor(a.data**exponent, (a,), f"**{exponent}", rule)


MiniTensor.__pow__ = power

# %% check="power"

# %% [markdown]
# Functions of one number are methods: `a.relu()`, `a.tanh()`, `a.exp()`. Here is relu. Its slope is 1 where `a` is positive and 0 elsewhere.

# %% tags=["engine"]
def relu(a):
    def rule(grad):
        return (grad if a.data > 0 else 0.0,)

    return MiniTensor(max(a.data, 0.0), (a,), "relu", rule)


MiniTensor.relu = relu

# %% [markdown]
# ### Exercise 4: tanh and exp
#
# The slope of tanh is `1 - tanh(a)**2`. The slope of `exp` at `a` is `exp(a)` itself. Both rules need the **output**, which you have already computed.

# %% [markdown] tags=["hint"] exercise="functions"
# Keep the output in a variable: `output = math.tanh(a.data)`. The rule can use it: `1 - output**2`.

# %% [markdown] tags=["hint"] exercise="functions"
# The rule of exp multiplies `grad` by the output.

# %% solution="functions" tags=["engine"]
def tanh(a):
    """The hyperbolic tangent (math.tanh), recorded as one operation, "tanh", with the input a.

    >>> tanh(MiniTensor(0.0)).rule(1.0)
    (1.0,)
    """
    ### BEGIN SOLUTION
    output = math.tanh(a.data)

    def rule(grad):
        return (grad * (1 - output**2),)

    return MiniTensor(output, (a,), "tanh", rule)
    ### END SOLUTION


def exp(a):
    """The exponential function (math.exp), recorded as one operation, "exp", with the input a.

    >>> exp(MiniTensor(0.0)).data
    1.0
    """
    ### BEGIN SOLUTION
    output = math.exp(a.data)

    def rule(grad):
        return (grad * output,)

    return MiniTensor(output, (a,), "exp", rule)
    ### END SOLUTION


MiniTensor.tanh = tanh
MiniTensor.exp = exp

# %% check="functions"

# %% [markdown]
# Here are the hand calculations of lesson 01, done by your engine and by PyTorch:

# %% tags=["demo"] items="36 38 39 40 41"
def relu_neuron(w, x, b):
    return ((w * x + b).relu() - 3) ** 2


beside_pytorch(MiniTensor, "(w*x + b - 10)**2", lambda w, x, b: (w * x + b - 10) ** 2, 2.0, 3.0, 1.0)
beside_pytorch(MiniTensor, "(relu(w*x + b) - 3)**2", relu_neuron, 0.5, 4.0, -1.5)
beside_pytorch(MiniTensor, "(x*y + x)**2", lambda x, y: (x * y + x) ** 2, 2.0, 3.0)

# %% [markdown] items="44"
# One call of `backward` filled in the gradient of every leaf, and each operation needed to know only its own rule.

# %% [markdown]
# ## 2. The sixty additions
#
# Your engine is right, so let it try: first 1 doubling, then 2, then more. **Predict** how long sixty would take.

# %% tags=["demo"]
predict("How long would sixty doublings take?", "an hour", "a month", "40 years", "over 1000 years")


def doublings(count):
    x = MiniTensor(1.0)
    y = x
    for _ in range(count):
        y = y + y
    return x, y


counts = list(range(1, 18))
every_path = [seconds_for(push_along_every_path, doublings, count) for count in counts]
growth = (every_path[-1] / every_path[-6]) ** (1 / 5)
years = every_path[-1] * 2 ** (60 - counts[-1]) / 3600 / 24 / 365
print(f"each doubling multiplies the time by about {growth:.2f}")
print(f"sixty doublings would take about {years:,.0f} years")

# %% [markdown]
# The time doubles with each addition, although the graph grows by only one node. The graph of sixty doublings has 61 nodes. There are many paths, but few nodes.
#
# When two paths meet at a node, both contributions are pushed on separately, over the same edges. That is the waste. The rule is linear in the incoming gradient: entry by entry, `rule(g1)` plus `rule(g2)` is `rule(g1 + g2)`. So wait until everything has arrived:
# **add first, then push once**.
#
# When has everything arrived at a node? When all nodes made *from* it on the way to the output are done. **Predict:** in which orders can `c`, `d` and `e` be processed?

# %% tags=["demo"]
a, b = MiniTensor(1.0), MiniTensor(2.0)
c = a + b
d = c + a
e = c + d
predict("In which orders can they be processed?", "e, c, d", "e, d, c", "both")
explore(e)

# %% [markdown]
# `c` is an input of `e`, but it has to wait for `d`, which also sends something to `c`. The order must be `e`, `d`, `c`, and then the leaves. An order in which **every node comes before its inputs** is called a *topological order*.

# %% [markdown]
# ### Exercise 5: topological order
#
# Write a function that returns such an order for any graph. It may be recursive or use a loop. Each node must appear once, however many paths lead to it.
#
# Nor may the function follow every path again; the check below counts how often it looks at inputs. Idea: finish a node's inputs, then append the node to a list; skip nodes already seen. At the end, reverse the list. Try it by hand on `e`.

# %% [markdown] tags=["hint"] exercise="topological_order"
# Keep a set of the nodes that you have already visited. A set can hold MiniTensors, and tells them apart by object, not by value.

# %% [markdown] tags=["hint"] exercise="topological_order"
# It is easier the other way around, inputs first: to visit a node, visit all its inputs, and only *then* append the node itself to a list. At the end the root is last; reverse the list.

# %% [markdown] tags=["hint"] exercise="topological_order"
# Inside the function, define `visit(node)`: return at once if `node` is in `seen`; add it to `seen`; call `visit` for each of `node.inputs`; append `node` to `order`. Then call `visit(root)` and return `order[::-1]`.

# %% solution="topological_order" tags=["engine"]
def topological_order(root):
    """All nodes that root was made from, root first, each node once and before its inputs.

    root: MiniTensor
    Returns: list of MiniTensors

    >>> a = MiniTensor(3.0)
    >>> [node.data for node in topological_order(-(-a))]
    [3.0, -3.0, 3.0]
    """
    ### BEGIN SOLUTION
    order, seen = [], set()

    def visit(node):
        if node in seen:
            return
        seen.add(node)
        for source in node.inputs:
            visit(source)
        order.append(node)

    visit(root)
    return order[::-1]
    ### END SOLUTION

# %% check="topological_order"

# %% [markdown] items="34"
# ### Exercise 6: backward
#
# Gradients that have arrived at a node, but have not been pushed on yet, are **pending**. Keep them in a dict from node to number (a key is the object, not its value):
#
# * at the start, only the output is pending, with the gradient that `backward` was given;
# * go through the nodes in topological order. Take the node's pending gradient out of the dict and add it to the node's `.grad`. If the node has a rule, call it once, and add what it returns to the pending gradients of the inputs.

# %% [markdown] tags=["hint"] exercise="backward"
# The dict starts as `pending = {self: gradient}`. A node's turn begins with `grad = pending.pop(node)`: by then everything for it has arrived. If that is a `KeyError`, nothing had: check exercise 5 first. If the order is right, a share was added to the wrong key, or not at all.

# %% [markdown] tags=["hint"] exercise="backward"
# An input may be pending already, from another node or from the same one (`x + x`). So add: `pending[source] = pending.get(source, 0.0) + share`.

# %% [markdown] tags=["hint"] exercise="backward"
# The inner loop is the one in `push_along_every_path`: `for source, share in zip(node.inputs, node.rule(grad))`. Leaves have no rule (`None`) and push nothing on.

# %% solution="backward" tags=["engine"]
def backward(self, gradient=1.0):
    """Find the gradient of self with respect to every node it was made from; add it to their .grad.

    self: MiniTensor; its own .grad gets the incoming gradient added
    gradient: the incoming gradient of self, a number; all results are proportional to it
    Each rule is called once. A second call adds the same gradients once more, whatever `.grad` was.

    >>> a, b = MiniTensor(2.0), MiniTensor(3.0)
    >>> ((a + b) * a).backward()
    >>> a.grad, b.grad
    (7.0, 2.0)
    """
    ### BEGIN SOLUTION
    pending = {self: gradient}
    for node in topological_order(self):
        grad = pending.pop(node)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                pending[source] = pending.get(source, 0.0) + share
    ### END SOLUTION


MiniTensor.backward = backward

# %% check="backward"

# %% [markdown]
# The values are right. Now the speed: each rule may run only once. Then the nodes in between, and a second call.

# %% check="backward_once"

# %% [markdown]
# Here is `x**2 + 3 * x` at 2. Step backward and predict what `x` receives. Then drag the box of `x` to the right or left, or choose *Expression* and type another one: your engine computes both.

# %% tags=["demo"] items="24"
x = MiniTensor(2.0)
explore(x**2 + 3 * x, names={"x": x}, predict=True)

# %% [markdown]
# And that answers the question at the start. The sum over 1,152,921,504,606,846,976 paths takes 61 visits, because everything that meets at a node is added up before it goes on.

# %% tags=["demo"]
x, y = doublings(60)
start = time.perf_counter()
y.backward()
milliseconds = 1000 * (time.perf_counter() - start)
nodes = len(topological_order(y))
print(f"gradient {x.grad:.0f}, found in {milliseconds:.2f} ms, in {nodes} nodes")

# %% tags=["demo"]
each_node_once = [seconds_for(MiniTensor.backward, doublings, count) for count in range(1, 61)]
plot_doublings(every_path, each_node_once)

# %% [markdown]
# Both methods find the right gradient at every point. The lower curve is nearly flat here: from 30 to 60 doublings the work doubles only once.
#
# ## 3. Two different sums
#
# Gradients are added in two places. **Predict** the two numbers.

# %%
predict("Which two numbers are printed?")
w = MiniTensor(2.0)
(w * w + w).backward()
print("w is used three times in one expression:", w.grad)

(3 * w).backward()
print("then a second call, for 3 * w:          ", w.grad)

# %% [markdown] items="gap:accumulation"
# Within one call, the contributions of all uses are summed **in the dict**: that is the chain rule, and there is no choice. From call to call, results are summed **in `.grad`**: that is a design decision. You can add up several examples before one step, but set `.grad` back to zero yourself. PyTorch made the same decision.

# %% tags=["demo"]
w_torch = leaf(2.0)
(w_torch * w_torch + w_torch).backward()
(3 * w_torch).backward()
print(w_torch.grad.item())

# %% [markdown]
# ## 4. The graph is made while the program runs
#
# **Predict** the two graphs.

# %% items="14"
predict("Which operations does the graph hold for x = 3 and for x = 0.25?")


def bend(x):
    doubled = x * 2
    if doubled.data > 1:
        return doubled.relu()
    return doubled.tanh()


for start_value in (3.0, 0.25):
    x = MiniTensor(start_value)
    y = bend(x)
    y.backward()
    operations = [node.operation or "leaf" for node in topological_order(y)]
    print(f"x = {start_value}:  {operations}   gradient {x.grad:.4f}")

# %% [markdown] items="13"
# The same function gave two graphs. The engine never saw the `if`; it saw the operations that ran. This is *define-by-run*, as in PyTorch. The alternative is *define-then-run*: first describe the whole graph, then send numbers through it.
#
# | | define-by-run | define-then-run |
# | --- | --- | --- |
# | the graph is built | in every forward pass | once, in advance |
# | `if` and loops | Python's own | special nodes, or one fixed branch |
# | debugging | stop and print anywhere | inside a graph that runs later |
# | the finished graph | new for each input | fixed, so it can be saved and moved |
# | optimization | sees one operation at a time | sees everything, can merge operations |

# %% [markdown]
# ## 5. The same thing in PyTorch
#
# First your graph of `z = x * y; loss = z**2`:

# %% tags=["demo"] items="16"
x, y = MiniTensor(2.0), MiniTensor(3.0)
z = x * y
loss = z**2
explore(loss, predict=True)

# %% [markdown] items="17 18 23"
# In PyTorch a node is not the tensor but an object of its own, `grad_fn`, named after its operation, as in `MulBackward0`. Its inputs are in `next_functions`. Walk over both graphs with the same few lines:

# %% tags=["demo"] items="19"
def show(node, depth=0):
    print("    " * depth + (node.operation or f"leaf {node.data:g}"))
    for source in node.inputs:
        show(source, depth + 1)


def short_name(node):
    return node.name().split("::")[-1]  # AccumulateGrad lives in a C++ namespace


def show_torch(node, depth=0):
    print("    " * depth + short_name(node))
    for source, _ in node.next_functions:
        if source is not None:  # a constant has no node
            show_torch(source, depth + 1)


show(loss)
x_torch, y_torch = (torch.tensor(v, requires_grad=True) for v in (2.0, 3.0))
show_torch(((x_torch * y_torch) ** 2).grad_fn)

# %% [markdown] items="22 F53"
# Where you have a leaf, PyTorch has a node called `AccumulateGrad`, which adds the total to the `.grad` of the leaf. Some sources call the inputs of a node its parents, others its children. In this course they are *inputs*.

# %% [markdown]
# There is another difference. **Predict** PyTorch's gradients of `x`, `y` and `z`.

# %% tags=["demo"] items="29"
predict("PyTorch's gradients of x, y and z: which numbers, or None?")
warnings.simplefilter("ignore")  # PyTorch warns when .grad of an intermediate node is read
for x in (MiniTensor(2.0), leaf(2.0)):
    y = x**2
    z = y + 1
    z.backward()
    print(type(x).__name__, x.grad, y.grad, z.grad)

# %% [markdown] items="30"
# PyTorch keeps `.grad` only on leaves that require a gradient, to save memory. To keep it for an intermediate node, call `y.retain_grad()` first. In lesson 05 your engine does the same.

# %% [markdown] items="45 37"
# ## 6. Use it
#
# Here is the training loop of lesson 01, with your engine finding the slope. Set `.grad` to zero first, or all slopes add up.

# %%
w = MiniTensor(2.0)
for step in range(6):
    loss = (w * 3 - 12) ** 2
    w.grad = 0.0
    loss.backward()
    print(f"{step}:  w {w.data:.5f}   loss {loss.data:9.6f}   gradient {w.grad:9.5f}")
    w.data = w.data - 0.05 * w.grad

# %% [markdown]
# ## Quiz

# %% test="quiz_02" points=4 tags=["quiz"]
question(
    "few_nodes",
    "Thirty doublings, `y = y + y`. How many rules does your `backward` call?",
    right("30", "One per node that has a rule. The leaf has none."),
    wrong("2**30", "That is the number of paths. Contributions are added before they are pushed on, so each rule runs once.", misconception="follows_every_path"),
    wrong("60, one per edge", "A rule serves all inputs of its node in one call.", misconception="rule_per_edge"),
    wrong("1, the rule of the output", "Then nothing would get past the last addition.", misconception="stops_at_output"),
)
question(
    "wrong_b",
    "For `d = (a + b) * a` at 2 and 3 somebody's engine gives `a.grad = 7` and `b.grad = 5`. The right values are 7 and 2. Which mistake fits?",
    right(
        "The product gives each input its own value instead of the other one.",
        "The sum then gets 5 instead of 2, and passes it on to `a` and `b`; `a` gets another 2. For `a` the two mistakes happen to cancel: 5 + 2 = 2 + 5.",
    ),
    wrong("`.grad` is set with `=` instead of `+=`.", "Then `a` would keep only one of its two contributions.", misconception="assigned_not_accumulated"),
    wrong("The rules ignore the incoming gradient.", "Then the sum would pass on 1, and `b.grad` would be 1.", misconception="upstream_ignored"),
    wrong("The nodes were visited in a wrong order.", "In this graph the sum has a single use, so it has nothing to wait for.", misconception="no_topological_order"),
)
question(
    "waiting",
    "In `e = c + d` with `c = a + b` and `d = c + a`, why can `c` not come right after `e`?",
    right("`d` will still send something to `c`.", "`c` would push on a gradient that is not complete yet, and what comes later would be lost or would need a second visit."),
    wrong("Leaves must come last.", "`c` is not a leaf here. Leaves may come as soon as all their uses are done.", misconception="leaves_last"),
    wrong("`d` was computed later, and the latest always goes first.", "Reversing the order of computation does give a valid order. But the reason is that `c` is an input of `d`; otherwise any order would do.", misconception="order_by_time"),
    wrong("It may: the sum does not depend on the order.", "The sum does not, but the moment when it is complete does.", misconception="no_topological_order"),
)
question(
    "x_plus_x",
    "`y = x + x`, and after `y.backward()` the engine says `x.grad = 1`. Where is the mistake?",
    right("The second contribution replaced the first one in the dict.", "Both inputs of the sum are the same object. Its contributions must be added: `pending.get(x, 0.0) + share`."),
    wrong("In the rule of the sum, which should return `2 * grad`.", "The rule is right for any two inputs. That they are one object is the business of `backward`.", misconception="fan_out_in_the_rule"),
    wrong("The incoming gradient was lost.", "It is 1 here, so losing it would not show.", misconception="upstream_ignored"),
    wrong("Nowhere: the slope of a sum is 1.", "It is 1 for each input, and `x` is both.", misconception="assigned_not_accumulated"),
)
question(
    "two_sums",
    "`w = 2`. First `(w * w + w).backward()`, then `(3 * w).backward()`. What is `w.grad`?",
    right("8", "5 in the first call, summed over three uses in the dict; then 3 more, summed in `.grad`."),
    wrong("3", "A second call adds to `.grad`; it does not replace it.", misconception="assigned_not_accumulated"),
    wrong("13", "That would need the 5 to be counted twice. What is pending belongs to one call and starts empty.", misconception="pending_kept"),
    wrong("15", "Slopes are multiplied along a path. Calls are added.", misconception="paths_multiplied"),
)
question(
    "output_or_input",
    "Somebody writes the rule of `exp` as `grad * a.data`. For which inputs does the check notice?",
    right("For all, since `exp(a)` never equals `a`.", "The rule needs the output. There is no number with `exp(a) = a`, so every input shows it."),
    wrong("Only for negative ones.", "At 1 the right slope is about 2.7, and this rule says 1.", misconception="input_used_for_output"),
    wrong("For none: input and output are on the same node.", "They are two different numbers, one before and one after the operation.", misconception="input_used_for_output"),
    wrong("Only if the incoming gradient is not 1.", "The incoming gradient is multiplied in correctly here.", misconception="upstream_ignored"),
)
question(
    "other_branch",
    "A function has an `if`. You call it once, and then call `backward`. Which gradient do you get?",
    right("That of the branch that ran.", "Only operations that ran were recorded."),
    wrong("The mean of both branches.", "The other branch left no trace in the graph.", misconception="both_branches"),
    wrong("None: an `if` breaks the graph.", "The graph never sees the `if`.", misconception="branches_break_autodiff"),
    wrong("That of the first branch in the source text.", "The source text is not looked at. What runs is recorded.", misconception="autodiff_is_symbolic"),
)
question(
    "no_grad_in_between",
    "In PyTorch, `y = x**2; z = y + 1; z.backward()`. Why is `y.grad` None?",
    right("`y` is not a leaf, and only leaves keep their gradient unless `retain_grad` was called.", "The gradient did pass through `y`, on its way to `x`."),
    wrong("No gradient flows through `y`.", "Then `x.grad` could not be 4.", misconception="none_means_no_flow"),
    wrong("The slope of `y + 1` is 0.", "It is 1: your engine showed that number.", misconception="constant_kills_gradient"),
    wrong("`y` has no `grad_fn`.", "It has one, `PowBackward0`. Leaves have none.", misconception="leaf_and_grad_fn"),
)

# %% [markdown] question="why_add" points=3
# ### Why add?
#
# In `y = x * x + x`, the value `x` is used three times, and your engine adds up three gradients. **Why** is the sum right, and not the last one, the largest one or the mean? Answer in one paragraph, with the numbers for `x = 2`.
#
# ### BEGIN MARK SCHEME
# *A good answer:* Move `x` a little. Each use of `x` changes on its own and passes its change on to `y`, and for a small move these changes add up. The slope is the total change of `y` for the move of `x`. At 2 the two uses in the product give 2 each, the third gives 1, together 5, which is `2x + 1`.
#
# * 1 point: a move of `x` reaches `y` in several ways, and their changes of `y` add up
# * 1 point: each way's share is its own slope, as if the others stood still
# * 1 point: the numbers: 2 + 2 + 1 = 5
#
# Wrong answers, and what they get:
#
# * *Because backward adds into `.grad`*: no point. That describes the code, and the question asks why it is right.
# * *4 and 1, because `x * x` has the slope `2x` as a whole*: the sum is right, so full marks if both uses in `x * x` are explained somewhere.
# ### END MARK SCHEME

# %% [markdown] items="140"
# ## Summary
#
# | idea | in one line | in the kitchen of lesson 00 |
# | --- | --- | --- |
# | graph | each result holds its inputs and its rule; the graph is made while the program runs | the slips, pinned to each other |
# | leaf | a tensor that no operation made; in PyTorch its `grad_fn` is None | what was delivered, not cooked |
# | rule | from the incoming gradient to one gradient per input, and nothing else | what a cook does with a complaint |
# | topological order | every node before its inputs: when its turn comes, everything has arrived | wait until all complaints are in |
# | pending gradients | a dict that lives for one call; contributions are added there, then pushed on once | this evening's complaints, on their way |
# | `.grad` | where results are kept, and added up from call to call | the mailbox at the supplier's door |
# | cost | one visit per node, not one per path | each cook walks once, not once for each path |
#
# One problem is left: a recursive `topological_order` gives up at `doublings(3000)`. The next lesson breaks it on purpose, and three other engines.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it.

# %% [markdown]
# ## Without the dict
#
# Could we drop the dict, and let `.grad` itself hold what is pending? The first call would be right. **Predict** the second.

# %% tags=["demo"]
predict("Without the dict: what is the gradient after the second call?")


def backward_without_pending(root):
    root.grad += 1.0
    for node in topological_order(root):
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(node.grad)):
                source.grad += share


for method in (MiniTensor.backward, backward_without_pending):
    x, y = doublings(2)
    method(y)
    first = x.grad
    method(y)
    print(f"{method.__name__:26s} first call {first}, after the second {x.grad}")

# %% [markdown]
# The second call pushed on again what the first had left in the intermediate nodes. That is why pending gradients live in a dict that belongs to one call.

# %% [markdown]
# ## A loop as long as the data says
#
# A loop can depend on the data too. This one halves its input until it is at most 1. **Predict** the number of products for 20.

# %%
predict("How many products are recorded for x = 20?")


def halved(x):
    while x.data > 1:
        x = x * 0.5
    return x.tanh()


for start_value in (0.5, 3.0, 20.0):
    x = MiniTensor(start_value)
    y = halved(x)
    y.backward()
    products = [node.operation for node in topological_order(y)].count("*")
    print(f"x = {start_value:4}:  {products} products   gradient {x.grad:.4f}")

# %% [markdown]
# Each call records one product per iteration of the loop, and then the tanh. The gradient is that of exactly these operations. A graph that is fixed in advance needs a special node for such a loop.

# %% [markdown]
# ## A captured program, and the price of recording
#
# What if a program is captured while it runs *once*, and the captured graph is used for other inputs? The function is `bend`; **predict** what the captured one gives at 3.

# %% tags=["demo"] items="F45"
predict("What does the captured bend give at 3?", "6", "about 1", "an error")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.simplefilter("ignore", DeprecationWarning)  # about torch.jit as a whole
    captured = torch.jit.trace(bend, torch.tensor(0.25))

print("bend(3)           ", bend(torch.tensor(3.0)).item())
print("captured bend at 3", captured(torch.tensor(3.0)).item())
print("warnings:", sorted({warning.category.__name__ for warning in caught}))

# %% [markdown]
# The captured graph knows only the branch that ran. Its gradients are right for *that graph*; the program is different. And PyTorch does say so: that is the `TracerWarning`. `torch.compile` captures more carefully, and notices when another branch is needed.
#
# Recording has a price. Compare a neuron on plain floats with the same neuron on MiniTensors, which builds its graph again each time:

# %% tags=["demo"] items="15"
def seconds_per_call(number, activation, repeat=20000):
    w, x, b = number(0.5), number(0.3), number(0.1)
    start = time.perf_counter()
    for _ in range(repeat):
        activation(w * x + b)
    return (time.perf_counter() - start) / repeat


plain = seconds_per_call(float, math.tanh)
recorded = seconds_per_call(MiniTensor, MiniTensor.tanh)
factor = recorded / plain
print(f"plain {1e6 * plain:.2f} us, recorded {1e6 * recorded:.2f} us, factor {factor:.0f}")

# %% [markdown]
# For single numbers, recording costs far more than the work itself. Arrays share one record among many numbers (lesson 04), and a compiler saves more of the cost by capturing the graph once (lesson 14).

# %% [markdown]
# ## More of PyTorch's graph
#
# Take `(x*y + x)**2`, where `x` is used twice, so its leaf is printed twice. **Predict:** are these two leaves one object or two?

# %% tags=["demo"] items="20"
predict("Are the leaves of x one object or two?", "one", "two", "one in your engine, two in PyTorch")
x, y = MiniTensor(2.0), MiniTensor(3.0)
s = (x * y + x) ** 2
show(s)
total = s.inputs[0]
print("one object:", total.inputs[0].inputs[0] is total.inputs[1])

s_torch = (x_torch * y_torch + x_torch) ** 2
show_torch(s_torch.grad_fn)
add_node = s_torch.grad_fn.next_functions[0][0]
mul_node = add_node.next_functions[0][0]
print("one object:", mul_node.next_functions[0][0] is add_node.next_functions[1][0])

# %% [markdown]
# One object, printed twice, because `show` follows every path. From a node you can walk to the leaf's node, and from there to the tensor itself:

# %% tags=["demo"] items="21"
v = torch.ones(3, requires_grad=True)
out = (v * 2).sum()
node = out.grad_fn
while node.next_functions:
    print(short_name(node))
    node = node.next_functions[0][0]
print(short_name(node), "for v:", node.variable is v)

# %% [markdown]
# Arrays have nodes with the same kind of names. Your engine learns arrays in lesson 04.

# %% tags=["demo"] items="33"
m = torch.ones(2, 2, requires_grad=True)
moved = m + 2
scaled = 3 * moved**2
out = scaled.mean()
for tensor in (m, moved, scaled, out):
    print(type(tensor.grad_fn).__name__)
out.backward()
print(out.item(), m.grad.tolist())

# %% [markdown] items="17"
# The first line says `NoneType`: `m` is a leaf. No operation made it, so it has no `grad_fn`, although it requires a gradient.

# %% [markdown] items="43"
# ## Gradients as values
#
# `torch.autograd.grad` leaves `.grad` alone and *returns* the gradients. Use it when you want a gradient as a value; use `backward` when an optimizer reads `.grad`.

# %% tags=["demo"]
x_torch, y_torch = (torch.tensor(v, requires_grad=True) for v in (2.0, 3.0))
print(torch.autograd.grad((x_torch + y_torch) ** 2, (x_torch, y_torch)))
print(x_torch.grad, y_torch.grad)
