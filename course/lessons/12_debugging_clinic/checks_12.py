"""What the exercises of lesson 12 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import itertools

import numpy as np

from autograder.checks.cases import Check

NAN = np.array([np.nan, 1.0])
ONE = np.array([1.0, 1.0])
ENDLESS = np.array([np.inf, -np.inf])

# Exercise 1


def endless_layer():
    """A linear layer of two inputs with infinite weights. The rule of (layer(x) * 0.0).sum() returns NaN."""
    layer = LinearLayer(2, 1)
    overwrite(layer.weight, np.full((1, 2), np.inf))
    return layer


check = Check("anomaly", points=6)
check.cases("""
>>> Switches.anomaly = switches.anomaly = False
>>> a = MiniTensor([0.0, 4.0], requires_grad=True)
>>> rows = MiniTensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
>>> node = (a * 2.0).grad_fn

# nodes note their calls (otherwise run the cell below the heading 'The forward calls')
>>> switches.anomaly = True
>>> len((a * 2.0).grad_fn.calls)
1

# the mode inside a block, of this thread and of the others, and after the block
>>> with detect_anomaly():
...     inside = switches.anomaly, Switches.anomaly
>>> inside, switches.anomaly
((True, False), False)

# detect_anomaly(False): the mode inside, and after it
>>> with detect_anomaly():
...     with detect_anomaly(False):
...         inner = switches.anomaly
...     after = switches.anomaly
>>> inner, after
(False, True)

# after an inner block of the same mode
>>> with detect_anomaly():
...     with detect_anomaly():
...         inner = switches.anomaly
...     after = switches.anomaly
>>> inner, after, switches.anomaly
(True, True, False)

# a block that an error leaves
>>> with detect_anomaly():
...     raise KeyError("left by an error")
KeyError: *left by an error*
>>> switches.anomaly
False

# a block puts back what was there when it began
>>> with detect_anomaly():
...     later = detect_anomaly()
>>> with later:
...     inside = switches.anomaly
>>> inside, switches.anomaly
(True, False)

# shares without NaN
>>> check_shares(node, [ONE, ONE])
None

# infinity is not NaN
>>> check_shares(node, [ONE, ENDLESS])
None

# a share that is None
>>> check_shares(node, [ONE, None])
None

# one of the entries of share 0 is NaN; the node has no calls
>>> check_shares(node, [NAN, ONE])
RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.
No forward pass information available: it was recorded outside of detect_anomaly.

# all entries of share 1 are NaN
>>> check_shares(node, [ONE, NAN * np.nan])
RuntimeError: Function 'MulBackward0' returned nan values in its 1th output.
No forward pass information available: it was recorded outside of detect_anomaly.

# None is counted, too
>>> check_shares(node, [ONE, None, NAN])
RuntimeError: Function 'MulBackward0' returned nan values in its 2th output.
No forward pass information available: it was recorded outside of detect_anomaly.

# the first of two shares with a NaN
>>> check_shares(node, [NAN, NAN])
RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.
No forward pass information available: it was recorded outside of detect_anomaly.

# shares that are MiniTensors
>>> check_shares(node, [MiniTensor(ONE), MiniTensor(NAN)])
RuntimeError: Function 'MulBackward0' returned nan values in its 1th output.
No forward pass information available: it was recorded outside of detect_anomaly.

# the calls of a node, each in a line of its own
>>> node.calls = ("line 3", "line 8")
>>> check_shares(node, [NAN])
RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.
line 3
line 8

# backward in the mode: the root of 0 in a branch that is not taken
>>> with detect_anomaly():
...     where([True, False], (rows * rows).sum(1).sqrt(), 0.0).sum().backward()
RuntimeError: Function 'PowBackward0' returned nan values in its 0th output.*

# backward in the mode: the last line is the call in the layer's forward
>>> layer = endless_layer()
>>> with detect_anomaly():
...     (layer(rows) * 0.0).sum().backward()
RuntimeError: Function 'LinearBackward0' returned nan values in its 0th output.*in forward*

# backward in the mode, of what was recorded outside of it
>>> output = (endless_layer()(rows) * 0.0).sum()
>>> with detect_anomaly():
...     output.backward()
RuntimeError: Function 'LinearBackward0' returned nan values in its 0th output.
No forward pass information available: it was recorded outside of detect_anomaly.

# backward in the mode: an infinite gradient
>>> with detect_anomaly():
...     a.sqrt().sum().backward()
>>> a.grad.data
array([inf, 0.25])

# backward after a block
>>> with detect_anomaly():
...     pass
>>> (endless_layer()(rows) * 0.0).sum().backward()
""")
check.hidden("""
# an error in a block within a block
>>> with detect_anomaly():
...     try:
...         with detect_anomaly(False):
...             raise KeyError("inside")
...     except KeyError:
...         after = switches.anomaly
>>> after, switches.anomaly, is_grad_enabled()
(True, False, True)

# no alarm
>>> for shares in ([ENDLESS, None], [None, ONE], [MiniTensor(ONE), MiniTensor(ENDLESS)]): check_shares(node, shares)
>>> with detect_anomaly(False):
...     (endless_layer()(rows) * 0.0).sum().backward()
>>> x = MiniTensor([1.0, 2.0], requires_grad=True)
>>> with detect_anomaly():
...     (x.log() * x.sqrt()).sum().backward()
>>> x.grad.data
np.log([1.0, 2.0]) / (2 * np.sqrt([1.0, 2.0])) + 1 / np.sqrt([1.0, 2.0])

# other shares
>>> check_shares(node, [None, NAN])
RuntimeError: Function 'MulBackward0' returned nan values in its 1th output.*
>>> check_shares(node, [ENDLESS, NAN])
RuntimeError: Function 'MulBackward0' returned nan values in its 1th output.*
>>> check_shares(node, [ONE, ONE, NAN])
RuntimeError: Function 'MulBackward0' returned nan values in its 2th output.*
>>> check_shares(node, [np.array(np.nan), ONE])
RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.*
""")

# Exercise 2


def with_gradients(**gradients):
    """A module with one parameter per argument, whose gradient is the argument."""
    module = Module()
    for name, value in gradients.items():
        setattr(module, name, Parameter(np.zeros(np.shape(value)) if value is not None else 0.0))
        getattr(module, name).grad = None if value is None else MiniTensor(value)
    return module


def two_parts():
    module = Module()
    module.first = with_gradients(weight=[[1.0, 2.0], [4.0, 2.0]], bias=None)
    module.second = with_gradients(weight=[0.0, 0.0], scale=-7.0)
    return module


def twice_the_same():
    module = Module()
    module.one = with_gradients(weight=[3.0, 4.0])
    module.two = module.one
    return module


check = Check("norms", points=3)
check.cases("""
# a vector
>>> grad_norms(with_gradients(weight=[3.0, -4.0]))
{"weight": 5.0}

# a matrix
>>> grad_norms(with_gradients(weight=[[1.0, 2.0], [4.0, 2.0]]))
{"weight": 5.0}

# a single number
>>> grad_norms(with_gradients(scale=-7.0))
{"scale": 7.0}

# no gradient has arrived at a parameter
>>> grad_norms(with_gradients(bias=None))
{"bias": None}

# a gradient of zeros has arrived
>>> grad_norms(with_gradients(weight=[0.0, 0.0]))
{"weight": 0.0}

# a very short gradient
>>> grad_norms(with_gradients(weight=[3e-9, 4e-9]))
{"weight": 5e-9}

# NaN and infinity
>>> grad_norms(with_gradients(a=[np.nan, 1.0], b=[-np.inf, 1.0]))
{"a": nan, "b": inf}

# the names of a model with parts, in their order
>>> list(grad_norms(two_parts()))
["first.weight", "first.bias", "second.weight", "second.scale"]

# a parameter that two parts share comes once
>>> grad_norms(twice_the_same())
{"one.weight": 5.0}

# the gradients and the modes stay
>>> model = two_parts()
>>> norms = grad_norms(model)
>>> model.first.weight.grad.data, model.first.bias.grad
(array([[1.0, 2.0], [4.0, 2.0]]), None)
>>> model.training, model.first.training
(True, True)
""")
check.hidden("""
# other shapes
>>> grad_norms(with_gradients(c=np.full((2, 3, 4), -0.5))), grad_norms(Module())
({"c": 6.0**0.5}, {})
>>> grad_norms(with_gradients(w=np.arange(12.0).reshape(4, 3)))
{"w": 506.0**0.5}
""")

# Exercise 3

INPUTS = np.array([[1.0], [2.0], [-0.5]])
TARGETS = np.array([[2.0], [1.0], [3.0]])


def line(slope, left=None):
    """A module that multiplies by its slope. `left`: the gradient that is left over from before."""
    module = Module()
    module.slope = Parameter([[slope]])
    module.slope.grad = None if left is None else MiniTensor([[left]])
    module.forward = lambda x: as_tensor(x) * module.slope
    return module


def fitted(slope, lr, steps):
    """The right losses of fit, and the slope in the end."""
    losses = []
    for _ in range(steps):
        errors = INPUTS * slope - TARGETS
        losses.append(float((errors**2).mean()))
        slope -= lr * (2 * errors * INPUTS).mean()
    return losses, slope


def value_error(function, *inputs):
    """The text of the ValueError that a function raises."""
    try:
        function(*inputs)
    except ValueError as error:
        return str(error)
    return "no ValueError"


check = Check("repair_one", points=5)
check.cases("""
>>> model = line(3.0)
>>> optimizer = SGD(model.parameters(), lr=0.1)

# fit: the loss of one step, with the weight before it
>>> fit(model, optimizer, INPUTS, TARGETS, 1)
fitted(3.0, 0.1, 1)[0]

# fit: the weight after one step
>>> losses = fit(model, optimizer, INPUTS, TARGETS, 1)
>>> model.slope.item()
fitted(3.0, 0.1, 1)[1]

# fit: six steps
>>> fit(model, optimizer, INPUTS, TARGETS, 6)
fitted(3.0, 0.1, 6)[0]
>>> model.slope.item()
fitted(3.0, 0.1, 6)[1]

# fit: two steps; .grad held 1000 before the first
>>> model = line(3.0, left=1000.0)
>>> fit(model, SGD(model.parameters(), lr=0.1), INPUTS, TARGETS, 2)
fitted(3.0, 0.1, 2)[0]

# column_loss: a target of shape (3,), squares of 1, 0 and 3
>>> loss = column_loss(MiniTensor([[1.0], [2.0], [4.0]]), np.array([0.0, 2.0, 1.0]))
>>> loss.shape, loss.item()
((), 10 / 3)

# column_loss: the gradient
>>> prediction = MiniTensor([[1.0], [2.0], [4.0]], requires_grad=True)
>>> column_loss(prediction, np.array([0.0, 2.0, 1.0])).backward()
>>> prediction.grad.data
array([[2 / 3], [0.0], [2.0]])

# column_loss: a target of shape (3, 1)
>>> column_loss(MiniTensor([[1.0], [2.0], [4.0]]), np.array([[0.0], [2.0], [1.0]])).item()
10 / 3

# column_loss: a target that is a MiniTensor, which keeps its shape
>>> target = MiniTensor([0.0, 2.0, 1.0])
>>> column_loss(MiniTensor([[1.0], [2.0], [4.0]]), target).item()
10 / 3
>>> target.shape
(3,)

# column_loss: a target of shape (1, 3) raises a ValueError that names both shapes
>>> value_error(column_loss, MiniTensor([[1.0], [2.0], [4.0]]), np.zeros((1, 3)))
"(3, 1)" in got and "(1, 3)" in got

# lengths: the values
>>> lengths(MiniTensor([[3.0, 4.0], [5.0, -12.0]])).data
array([5.0, 13.0])

# lengths: a row of zeros
>>> abs(lengths(MiniTensor([[0.0, 0.0]])).item())
got < 1e-100

# lengths: a very short row
>>> lengths(MiniTensor([[3e-9, 4e-9]])).data
array([5e-9])

# lengths: the gradient, also at a row of zeros
>>> x = MiniTensor([[0.0, 0.0], [5.0, -12.0]], requires_grad=True)
>>> lengths(x).backward([3.0, 13.0])
>>> x.grad.data
array([[0.0, 0.0], [5.0, -12.0]])

# lengths: no NaN is made on the way back
>>> x = MiniTensor([[0.0, 0.0]], requires_grad=True)
>>> with np.errstate(invalid="raise"):
...     lengths(x).sum().backward()

# lengths: no NaN is made on the way back, also if the loss ignores the row of zeros
>>> x = MiniTensor([[0.0, 0.0]], requires_grad=True)
>>> with np.errstate(invalid="raise"):
...     (lengths(x) * 0.0).sum().backward()
""")
check.hidden("""
# fit: another line
>>> model = line(-1.0, left=1000.0)
>>> fit(model, SGD(model.parameters(), lr=0.05), MiniTensor(INPUTS), MiniTensor(TARGETS), 4)
fitted(-1.0, 0.05, 4)[0]
>>> model.slope.item()
fitted(-1.0, 0.05, 4)[1]
>>> fit(model, optimizer, INPUTS, TARGETS, 0)
[]

# column_loss: other shapes
>>> column_loss(MiniTensor([[1.0], [2.0], [4.0]]), MiniTensor([[0.0], [2.0], [1.0]])).item()
10 / 3
>>> column_loss(MiniTensor([[2.0]]), np.array([5.0])).item()
9.0
>>> [value_error(column_loss, MiniTensor(np.ones((3, 1))), np.zeros(shape)) for shape in ((4,), (1,), (3, 3), ())]
all("(3, 1)" in text and shape in text for text, shape in zip(got, ("(4,)", "(1,)", "(3, 3)", "()")))

# lengths: many rows
>>> rows = np.random.default_rng(8).normal(size=(7, 3)) * np.array([0, 1, 1, 0, 1, 1e-12, 1e3])[:, None]
>>> x = MiniTensor(rows, requires_grad=True)
>>> found = lengths(x)
>>> found.backward(np.arange(1.0, 8.0))
>>> norms = np.linalg.norm(rows, axis=1)
>>> np.allclose(found.data, norms, rtol=1e-6, atol=1e-100)
True
>>> slopes = np.arange(1.0, 8.0)[:, None] * rows / np.where(norms, norms, 1.0)[:, None]
>>> np.allclose(x.grad.data, slopes, rtol=1e-6, atol=1e-100)
True
""")

# Exercise 4


def computing(function):
    """A layer that computes what the function says."""
    module = Module()
    module.forward = lambda x: function(as_tensor(x))
    return module


def nested_layers():
    """Layer 0.0 doubles, 0.1 subtracts 4, 1 takes the logarithm, and then 0.0 runs again."""
    double = computing(lambda x: x * 2)
    return Sequential(Sequential(double, computing(lambda x: x - 4)), computing(lambda x: x.log()), double)


def last_before_first():
    """Two layers that run in another order than that of named_modules."""
    module = Module()
    module.last, module.first = computing(lambda x: x.log()), computing(lambda x: x - 4)
    module.forward = lambda x: module.last(module.first(x))
    return module


def covered():
    """BatchNorm1d, a layer that divides by the 0 which it returns for equal rows, and one that hides the infinity."""
    return Sequential(BatchNorm1d(2), computing(lambda x: 1 / x), TanhLayer())


check = Check("outputs", points=5)
check.cases("""
>>> model = nested_layers()

# all outputs are finite
>>> first_bad(model, [3.0, 2.5])
None

# layer 1 returns [0.69, nan], and layer 0.0, which runs again after it, [1.39, nan]
>>> first_bad(model, [3.0, 1.0])
"1"

# layer 1 returns [0.69, -inf], and layer 0.0, which runs again after it, [1.39, -inf]
>>> first_bad(model, [3.0, 2.0])
"1"

# the input has a NaN
>>> first_bad(model, [3.0, np.nan])
"input"

# the input has an infinity
>>> first_bad(model, [3.0, np.inf])
"input"

# the input is a MiniTensor with a NaN
>>> first_bad(model, MiniTensor([3.0, np.nan]))
"input"

# forward runs `first`, 3 - 4, and then `last`, the logarithm of -1
>>> first_bad(last_before_first(), [3.0])
"last"

# layer 1 returns 1 / 0, and layer 2 makes a finite number of it
>>> first_bad(covered(), np.ones((3, 2)))
"1"

# a model that is a layer itself has the name '', as in named_modules
>>> first_bad(computing(lambda x: x / 0), [1.0])
""

# one run, in training mode: BatchNorm1d counts a batch
>>> normal = BatchNorm1d(2)
>>> first_bad(Sequential(normal), np.ones((3, 2)))
None
>>> normal.num_batches_tracked.item()
1.0

# one run also if a layer is bad
>>> model = covered()
>>> name = first_bad(model, np.ones((3, 2)))
>>> model[0].num_batches_tracked.item()
1.0

# one run, in evaluation mode: BatchNorm1d counts no batch
>>> model = covered()
>>> model.eval()
anything
>>> name = first_bad(model, np.ones((3, 2)))
>>> model[0].num_batches_tracked.item()
0.0

# the mode stays
>>> name = first_bad(model, [3.0, 2.5])
>>> before = model.training
>>> model.eval()
anything
>>> name = first_bad(model, [3.0, 2.5])
>>> before, model.training, is_grad_enabled()
(True, False, True)
""")
check.hidden("""
# other models
>>> first_bad(Sequential(computing(lambda x: x / 0), computing(lambda x: x * 0)), [1.0])
"0"
>>> first_bad(Sequential(computing(lambda x: x + 1)), MiniTensor([[1.0, -np.inf]]))
"input"
""")

# Exercise 5

BATCH = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
ANSWERS = np.array([[1.0], [2.0], [-1.0]])


def healthy():
    manual_seed(3)
    return Sequential(LinearLayer(2, 3), TanhLayer(), LinearLayer(3, 1))


def with_spare():
    """x @ weight + bias, and a parameter that nothing uses."""
    module = Module()
    module.spare = Parameter([[1.0, 2.0, 3.0]])
    module.weight, module.bias = Parameter([[1.0], [-2.0]]), Parameter([0.5])
    module.forward = lambda x: as_tensor(x) @ module.weight + module.bias
    return module


def changing():
    """Like with_spare, but only the first run uses the bias."""
    module, runs = with_spare(), []

    def forward(x):
        runs.append(1)
        y = as_tensor(x) @ module.weight
        return y + module.bias if len(runs) == 1 else y

    module.forward = forward
    return module


def listed():
    """Has a layer in a plain list."""
    manual_seed(3)
    module = Module()
    module.hidden = [LinearLayer(2, 4)]
    module.last = LinearLayer(4, 1)
    module.forward = lambda x: module.last(module.hidden[0](x).tanh())
    return module


def two_factors(first):
    """A loss with two leaves that are not in the model, and the leaves."""
    leaves = [MiniTensor([number], requires_grad=True) for number in (first, 3.0)]
    return lambda a, b: a.sum() * leaves[0] * leaves[1], leaves


def examined(model, loss_function, x=BATCH, optimizer=None):
    """The findings of preflight; by default the optimizer has the parameters of the model."""
    return preflight(model, optimizer or SGD(model.parameters()), loss_function, x, ANSWERS)


check = Check("preflight", points=6)
check.cases("""
>>> switches.anomaly = False
>>> model = with_spare()

# a healthy training run
>>> examined(healthy(), mse_loss)
[]

# a parameter that nothing uses
>>> examined(model, mse_loss)
["no gradient: spare"]

# a loss whose slope is 0
>>> examined(model, lambda a, b: (a - 1e9).relu().sum())
["no gradient: spare", "zero gradient: weight", "zero gradient: bias"]

# slope 0, and the first and the last parameter are not used
>>> model.unused = Parameter([1.0])
>>> examined(model, lambda a, b: a.sum() * 0.0)
["no gradient: spare", "zero gradient: weight", "zero gradient: bias", "no gradient: unused"]

# the rows cancel, in the last bias only
>>> examined(healthy(), lambda a, b: (a * np.array([[1.0], [-1.0], [0.0]])).sum())
["zero gradient: 2.bias"]

# a small gradient is not zero
>>> examined(model, lambda a, b: a.sum() * 1e-12)
["no gradient: spare"]

# a gradient with a positive entry and a 0 is not zero
>>> examined(model, lambda a, b: a.sum(), np.abs(BATCH) * [1.0, 0.0])
["no gradient: spare"]

# a gradient with a negative entry and a 0 is not zero
>>> examined(model, lambda a, b: -a.sum(), np.abs(BATCH) * [1.0, 0.0])
["no gradient: spare"]

# a gradient whose entries add up to 0 is not zero
>>> examined(model, lambda a, b: a.sum(), 0.0 * BATCH + [1.0, -1.0])
["no gradient: spare"]

# a layer in a plain list
>>> sorted(examined(listed(), mse_loss))
["not in the model: shape (4, 2)", "not in the model: shape (4,)"]

# two leaves of one shape that are not in the model
>>> loss_function, leaves = two_factors(2.0)
>>> examined(model, loss_function)
["not in the model: shape (1,)", "not in the model: shape (1,)", "no gradient: spare"]

# two such leaves, one of them equal to the bias
>>> loss_function, leaves = two_factors(0.5)
>>> examined(model, loss_function)
["not in the model: shape (1,)", "not in the model: shape (1,)", "no gradient: spare"]

# two such leaves, which the optimizer has
>>> loss_function, leaves = two_factors(2.0)
>>> examined(model, loss_function, optimizer=SGD([*model.parameters(), *leaves]))
["not in the model: shape (1,)", "not in the model: shape (1,)", "no gradient: spare"]

# a parameter that the optimizer does not have
>>> examined(model, mse_loss, optimizer=SGD([model.bias, model.spare]))
["not in the optimizer: weight", "no gradient: spare"]

# a parameter that neither the optimizer nor the loss has
>>> examined(model, mse_loss, optimizer=SGD([model.weight, model.bias]))
["not in the optimizer: spare", "no gradient: spare"]

# the list begins with what the optimizer does not have
>>> model = listed()
>>> examined(model, mse_loss, optimizer=SGD([model.last.weight]))[:1]
["not in the optimizer: last.bias"]

# a .grad that is left over from before is no gradient
>>> model.spare.grad = MiniTensor([[1.0, 1.0, 1.0]])
>>> examined(model, mse_loss)
["no gradient: spare"]

# each .grad stays what it was
>>> model.bias.grad = kept = MiniTensor([7.0])
>>> findings = examined(model, mse_loss)
>>> model.bias.grad is kept, kept.data, model.weight.grad
(True, array([7.0]), None)

# the .grad of leaves outside of the model stays, too
>>> model = listed()
>>> findings = examined(model, mse_loss)
>>> model.hidden[0].weight.grad
None

# there is no step
>>> model.weight.grad = MiniTensor([[1.0], [1.0]])
>>> optimizer = Adam(model.parameters(), lr=1.0)
>>> findings = examined(model, mse_loss, optimizer=optimizer)
>>> model.weight.data, any(optimizer.states)
(array([[1.0], [-2.0]]), False)

# the modes stay
>>> model = healthy()
>>> findings = examined(model, mse_loss)
>>> before = [module.training for _, module in model.named_modules()]
>>> model.eval()
anything
>>> findings = examined(model, mse_loss)
>>> before, [module.training for _, module in model.named_modules()]
([True] * 4, [False] * 4)

# one run of the model: BatchNorm1d counts a batch
>>> normal = BatchNorm1d(2)
>>> findings = examined(Sequential(normal, LinearLayer(2, 1)), mse_loss)
>>> normal.num_batches_tracked.item()
1.0

# all findings are about one run: only in the first one the bias is used
>>> examined(changing(), mse_loss)
["no gradient: spare"]
""")
check.hidden("""
# other losses
>>> examined(model, lambda a, b: a.sum().reshape(1, 1))
["no gradient: spare"]
>>> examined(model, lambda a, b: a.sum() * MiniTensor([2.0], requires_grad=True))
["not in the model: shape (1,)", "no gradient: spare"]

# several findings, and a .grad from before
>>> model.spare.grad = left = MiniTensor([[1.0, 1.0, 1.0]])
>>> examined(model, mse_loss, optimizer=SGD([model.bias]))
["not in the optimizer: spare", "not in the optimizer: weight", "no gradient: spare"]
>>> model.spare.grad is left
True
""")

# Exercise 6


def shapes_of(sizes):
    return [parameter.shape for parameter in Deep(sizes).parameters()]


def right_shapes(sizes):
    return [shape for a, b in itertools.pairwise(sizes) for shape in ((b, a), (b,))]


def off_by(sizes):
    """The largest difference between what Deep computes with known parameters and what NumPy computes with them."""
    deep, x = Deep(sizes), np.random.default_rng(1).normal(size=(5, sizes[0]))
    for parameter in deep.parameters():
        overwrite(parameter, np.linspace(-1.0, 1.5, parameter.data.size).reshape(parameter.shape))
    arrays, right = [parameter.data for parameter in deep.parameters()], x
    for number in range(0, len(arrays), 2):
        right = (np.tanh(right) if number else right) @ arrays[number].T + arrays[number + 1]
    return float(np.abs(deep(MiniTensor(x)).data - right).max()) if arrays else "there are no parameters"


def counting():
    """x * weight in training, and 2 * x * weight in evaluation. `modes` of its calls; those in evaluation mode that
    follow each other count as one, so batches may be joined. `recorded`: how many of these are recorded.
    """
    module = Module()
    module.weight, module.modes, module.recorded = Parameter([[0.0]]), [], []

    def forward(x):
        if module.training or module.modes[-1:] != ["eval"]:
            module.modes.append("train" if module.training else "eval")
        if not module.training:
            module.recorded.append(is_grad_enabled())
        return as_tensor(x) * module.weight * (1 if module.training else 2)

    module.forward = forward
    return module


def pairs_of(*numbers):
    """Batches of two rows x with the targets 2, 4, 6."""
    x = np.array(numbers)[:, None]
    return DataLoader(TensorDataset(x, np.array([[2.0], [4.0], [6.0]])), batch_size=2)


def trained(epochs, lr):
    """The right losses of train_epochs: of each batch, and of validation after each epoch."""
    weight, losses, validated = 0.0, [], []
    for _ in range(epochs):
        for x in (np.array([1.0, 2.0]), np.array([3.0])):
            losses.append(float((((weight - 2) * x) ** 2).mean()))
            weight -= lr * (2 * (weight - 2) * x**2).mean()
        validated.append(float(((2 * weight * np.array([1.0, 2.0, 5.0]) - [2.0, 4.0, 6.0]) ** 2).mean()))
    return losses, validated


check = Check("repair_two", points=5)
check.cases("""
>>> model, loader, validation = counting(), pairs_of(1.0, 2.0, 3.0), pairs_of(1.0, 2.0, 5.0)
>>> optimizer = SGD(model.parameters(), lr=0.05)

# Deep: the shapes of the parameters of three layers
>>> shapes_of([4, 8, 6, 1])
right_shapes([4, 8, 6, 1])

# Deep: four layers, two of them of one size, have weights of their own
>>> shapes_of([4, 8, 8, 8, 1])
right_shapes([4, 8, 8, 8, 1])

# Deep: one layer
>>> shapes_of([4, 1])
right_shapes([4, 1])

# Deep: tanh comes after each layer but the last; the largest difference in the output
>>> off_by([4, 8, 6, 1])
0.0

# Deep: the same with one layer
>>> off_by([4, 1])
0.0

# train_epochs: the modes of the calls of a model that was in evaluation mode
>>> model.eval()
anything
>>> result = train_epochs(model, optimizer, loader, validation, 2, mse_loss)
>>> model.modes
["train", "train", "eval"] * 2

# train_epochs: calls in validation that are recorded
>>> result = train_epochs(model, optimizer, loader, validation, 2, mse_loss)
>>> sum(model.recorded)
0

# train_epochs: the training losses of two epochs
>>> losses, validated = train_epochs(model, optimizer, loader, validation, 2, mse_loss)
>>> losses
trained(2, 0.05)[0]

# train_epochs: the losses over the three samples of validation
>>> losses, validated = train_epochs(model, optimizer, loader, validation, 2, mse_loss)
>>> validated
trained(2, 0.05)[1]

# train_epochs: .grad held 99 before the first step
>>> model.weight.grad = MiniTensor([[99.0]])
>>> losses, validated = train_epochs(model, optimizer, loader, validation, 1, mse_loss)
>>> losses
trained(1, 0.05)[0]

# train_epochs: the model is in training mode afterward
>>> model.eval()
anything
>>> result = train_epochs(model, optimizer, loader, validation, 1, mse_loss)
>>> model.training
True

# train_epochs: after 0 epochs, too
>>> model.eval()
anything
>>> train_epochs(model, optimizer, loader, validation, 0, mse_loss)
([], [])
>>> model.training
True

# train_epochs: another loss function, in training
>>> losses, validated = train_epochs(model, optimizer, loader, validation, 1, lambda a, b: mse_loss(a, b) * 2.0)
>>> losses[0]
20.0

# train_epochs: another loss function, in validation
>>> still = SGD(counting().parameters())
>>> losses, validated = train_epochs(model, still, loader, validation, 1, lambda a, b: mse_loss(a, b) * 2.0)
>>> validated
[112 / 3]

# classification: the loss
>>> loss, accuracy = classification(MiniTensor([[2.0, 0.0, 1.0], [3.0, 0.0, 4.0]]), np.array([0, 1]))
>>> loss.shape, loss.item()
((), float((np.log(1 + np.exp(-2) + np.exp(-1)) + np.log(1 + np.exp(3) + np.exp(4))) / 2))

# classification: the gradient
>>> scores = MiniTensor([[0.0, 0.0], [0.0, 0.0]], requires_grad=True)
>>> loss, accuracy = classification(scores, np.array([0, 1]))
>>> loss.backward()
>>> scores.grad.data
array([[-0.25, 0.25], [0.25, -0.25]])

# classification: one of two rows is right
>>> loss, accuracy = classification(MiniTensor([[2.0, 0.0, 1.0], [3.0, 0.0, 4.0]]), np.array([0, 1]))
>>> accuracy
0.5

# classification: both rows are right
>>> loss, accuracy = classification(MiniTensor([[2.0, 0.0, 1.0], [3.0, 0.0, 4.0]]), np.array([0, 2]))
>>> accuracy
1.0

# classification: large scores
>>> loss, accuracy = classification(MiniTensor([[1000.0, 0.0], [0.0, 1000.0]]), np.array([0, 0]))
>>> loss.item()
500.0
""")
check.hidden("""
# Deep: other sizes
>>> [shapes_of(sizes) for sizes in ([3, 2], [2, 5, 4, 3, 1], [3, 3, 3, 3], [2, 3, 2])]
[right_shapes(sizes) for sizes in ([3, 2], [2, 5, 4, 3, 1], [3, 3, 3, 3], [2, 3, 2])]
>>> [off_by(sizes) for sizes in ([3, 2], [2, 5, 4, 3, 1], [3, 3, 3, 3], [2, 3, 2])]
[0.0, 0.0, 0.0, 0.0]
>>> deep = Deep([3, 3, 3, 3])
>>> deep(MiniTensor(np.ones((2, 3)))).sum().backward()
>>> sum(parameter.grad is None for parameter in deep.parameters())
0

# train_epochs: the weight in the end
>>> result = train_epochs(model, optimizer, loader, validation, 2, mse_loss)
>>> model.weight.item()
1.98875

# classification: many rows
>>> scores = MiniTensor(np.random.default_rng(3).normal(size=(6, 4)) * 100, requires_grad=True)
>>> loss, accuracy = classification(scores, scores.data.argmax(axis=1))
>>> accuracy, loss.requires_grad, loss.item() < 0.5
(1.0, True, True)
""")
