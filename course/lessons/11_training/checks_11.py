"""What the exercises of lesson 11 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import numpy as np

from autograder.checks.cases import Check

# Exercise 1


def affine(weight):
    """A module with two parameters and a buffer."""
    module = Module()
    module.weight, module.bias = Parameter([weight, weight]), Parameter([0.0, 0.0])
    module.register_buffer("calls", MiniTensor(1.0))
    return module


def two_affine(shared=False):
    """A parameter, and two modules in one; or one module twice."""
    module = Module()
    module.scale, module.first = Parameter(2.0), affine(3.0)
    module.second = module.first if shared else affine(4.0)
    return module


def numbers_in(state):
    return {name: tensor.data for name, tensor in state.items()}


check = Check("module", points=5)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> model = two_affine()

# the state of one module is a dict: its parameters and its buffer
>>> state = affine(3.0).state_dict()
>>> isinstance(state, dict), isinstance(state["calls"], MiniTensor)
(True, True)
>>> numbers_in(state)
{"weight": array([3.0, 3.0]), "bias": array([0.0, 0.0]), "calls": array(1.0)}

# names in a module that holds others
>>> sorted(model.state_dict())
["first.bias", "first.calls", "first.weight", "scale", "second.bias", "second.calls", "second.weight"]

# names one level further out
>>> outer = Module()
>>> outer.inner = Module()
>>> outer.inner.first = affine(3.0)
>>> sorted(outer.state_dict())
["inner.first.bias", "inner.first.calls", "inner.first.weight"]

# a parameter that two modules share has two names
>>> model.second.weight = model.first.weight
>>> [name for name in model.state_dict() if "weight" in name]
got in (["first.weight", "second.weight"], ["second.weight", "first.weight"])

# what is in a module that is found in two places has two names
>>> sorted(two_affine(shared=True).state_dict())
["first.bias", "first.calls", "first.weight", "scale", "second.bias", "second.calls", "second.weight"]

# a later call for another module
>>> first = model.state_dict()
>>> sorted(affine(3.0).state_dict()), len(first)
(["bias", "calls", "weight"], 7)

# the tensors are detached: which of them require a gradient
>>> [name for name, tensor in model.state_dict().items() if tensor.requires_grad]
[]

# the parameters stay as they are
>>> state = model.state_dict()
>>> [parameter.requires_grad for parameter in model.parameters()]
[True] * 5

# a buffer is detached as well: the tensor in the state is another one
>>> state = model.state_dict()
>>> state["first.calls"] is model.first.calls
False

# a state shows the memory of the module: a parameter and a buffer that change later
>>> state = model.state_dict()
>>> overwrite(model.first.weight, np.array([7.0, 8.0]))
>>> overwrite(model.first.calls, np.array(5.0))
>>> state["first.weight"].data, state["first.calls"].data
(array([7.0, 8.0]), array(5.0))

# a write into a state is counted by the version counter of the parameter (lesson 09), as after detach()
>>> before = model.scale._version
>>> overwrite(model.state_dict()["scale"], np.array(5.0))
>>> model.scale._version - before
1

# loading: the values arrive, and a parameter stays the same object
>>> other = two_affine()
>>> held = other.scale
>>> overwrite(model.scale, np.array(9.0))
>>> other.load_state_dict(model.state_dict())
>>> other.scale is held, held.data
(True, array(9.0))
""")
check.hidden("""
# loading a changed state into a model with a shared module
>>> state = model.state_dict()
>>> tied = two_affine(shared=True)
>>> tied.load_state_dict({**state, "scale": MiniTensor(9.0)})
>>> tied.scale.data, tied.scale.requires_grad, state["scale"].data
(array(9.0), True, array(2.0))

# loading a buffer
>>> counted, fresh = affine(1.0), affine(5.0)
>>> overwrite(counted.calls, np.array(6.0))
>>> fresh.load_state_dict(counted.state_dict())
>>> numbers_in(fresh.state_dict())
{"weight": array([1.0, 1.0]), "bias": array([0.0, 0.0]), "calls": array(6.0)}
""")

# Exercise 2


def factors(layer, shape=(400, 500), sign=1.0):
    """By what a layer multiplies the entries of an array, and by what it multiplies a gradient."""
    array = sign * np.random.default_rng(9).uniform(1.0, 2.0, size=shape)
    x = MiniTensor(array.copy(), requires_grad=True)
    y = layer(x)
    y.backward(np.full(shape, 2.0))
    return y.data / array, x.grad.data / 2


def different(array):
    """The different numbers in an array, or how many there are."""
    found = np.unique(np.round(array, 9))
    return found if found.size < 6 else f"{found.size} different numbers"


def share(mask):
    return round(float(np.mean(mask)), 2)


def whole(mask):
    """How many rows, and how many columns, of a mask have one value only."""
    return tuple(int(np.sum(mask.all(axis=axis) | ~mask.any(axis=axis))) for axis in (1, 0))


def kept_after_seed(seed):
    manual_seed(seed)
    return factors(Dropout(0.5))[0] != 0


check = Check("dropout", points=4)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> manual_seed(1)

# the result for x of shape (2, 3)
>>> y = Dropout(0.5)(MiniTensor(np.ones((2, 3)), requires_grad=True))
>>> isinstance(y, MiniTensor), y.shape, y.requires_grad
(True, (2, 3), True)

# p = 0.75: an entry is multiplied by 0 or by 4
>>> different(factors(Dropout(0.75))[0])
array([0.0, 4.0])

# p = 0.75: the share of 200000 entries that is kept
>>> share(factors(Dropout(0.75))[0] != 0)
0.25

# the gradient is multiplied by the same factors: the differences
>>> entries, gradient = factors(Dropout(0.75))
>>> different(gradient - entries)
array([0.0])

# entries are dropped one by one: how many of 400 rows, and of 500 columns, are kept or dropped as a whole
>>> whole(factors(Dropout(0.5))[0] != 0)
(0, 0)

# p = 0.5, two calls: the share of the entries that only one of them keeps
>>> layer = Dropout(0.5)
>>> share((factors(layer)[0] != 0) != (factors(layer)[0] != 0))
0.5

# how many of 100 entries are kept in six calls with p = 0.5: each is drawn independently, so the number varies
>>> [int(np.sum(factors(Dropout(0.5), (10, 10))[0] != 0)) for call in range(6)]
len(set(got)) > 1

# default_generator draws: after the same seed, the share of the entries that only one of two calls keeps
>>> share(kept_after_seed(3) != kept_after_seed(3))
0.0

# the input stays as it is
>>> x = MiniTensor([1.0, 2.0, 3.0])
>>> y = Dropout(0.5)(x)
>>> x.data
array([1.0, 2.0, 3.0])

# in evaluation, entries and gradients are multiplied by 1
>>> [different(found) for found in factors(Dropout(0.75).eval())]
[array([1.0]), array([1.0])]

# p = 1: entries and gradients are multiplied by 0
>>> [different(found) for found in factors(Dropout(1.0))]
[array([0.0]), array([0.0])]
""")
check.hidden("""
# other probabilities and shapes
>>> [different(found) for found in factors(Dropout(0.2), (3000,))]
[array([0.0, 1.25])] * 2
>>> [different(found) for found in factors(Dropout(0.9), (100, 1, 600))]
[array([0.0, 10.0])] * 2
>>> share(factors(Dropout(0.2), (20000, 10))[0] != 0), share(factors(Dropout(0.9), (100, 20, 100))[0] != 0)
(0.8, 0.1)

# p = 0 keeps everything
>>> [different(found) for found in factors(Dropout(0.0))]
[array([1.0])] * 2

# negative entries
>>> entries, gradient = factors(Dropout(0.5), sign=-1.0)
>>> different(entries), share(entries != 0), different(gradient - entries)
(array([0.0, 2.0]), 0.5, array([0.0]))
""")

# Exercise 3

BATCH = np.array([[2.0, 10.0], [2.0, 4.0], [5.0, 1.0]])
COTANGENT = np.array([[1.0, 2.0], [2.0, -1.0], [3.0, 5.0]])


def normalization(weight, bias, **options):
    """A BatchNorm1d with these parameters."""
    layer = BatchNorm1d(len(weight), **options)
    layer.weight.data[...], layer.bias.data[...] = weight, bias
    return layer


def buffers(layer):
    return layer.running_mean.data.copy(), layer.running_var.data.copy(), layer.num_batches_tracked.data.copy()


def drawn(seed, rows, columns=3):
    return np.random.default_rng(seed).normal(size=(rows, columns))


check = Check("batchnorm", points=6)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> layer = normalization([2.0, -4.0], [1.0, 3.0], eps=2.0)
>>> x = MiniTensor(BATCH, requires_grad=True)

# the columns (1, 3) and (10, 30), with eps = 0: means 2 and 20, roots of the variances 1 and 10
>>> y = BatchNorm1d(2, eps=0.0)(MiniTensor([[1.0, 10.0], [3.0, 30.0]]))
>>> isinstance(y, MiniTensor), y.data
(True, array([[-1.0, -1.0], [1.0, 1.0]]))

# eps = 2: the columns of BATCH have means 3 and 5, variances 2 and 14, so they are divided by 2 and 4
>>> normalization([1.0, 1.0], [0.0, 0.0], eps=2.0)(x).data
array([[-0.5, 1.25], [-0.5, -0.25], [1.0, -1.0]])

# with the weight (2, -4) and the bias (1, 3)
>>> layer(x).data
array([[0.0, -2.0], [0.0, 4.0], [3.0, 7.0]])

# the gradient of x, which also flows through mean and variance
>>> layer(x).backward(COTANGENT)
>>> None if x.grad is None else x.grad.data
array([[-0.75, -0.9375], [0.25, 3.1875], [0.5, -2.25]])

# the gradients of weight and bias
>>> layer(x).backward(COTANGENT)
>>> [None if each.grad is None else each.grad.data for each in (layer.weight, layer.bias)]
[array([1.5, -2.25]), array([6.0, 6.0])]

# running_mean: a tenth of the way from 0 to the means 3 and 5
>>> y = layer(x)
>>> layer.running_mean.data
array([0.3, 0.5])

# running_var: a tenth of the way from 1 to 3 and 21, the variances divided by rows - 1
>>> y = layer(x)
>>> layer.running_var.data
array([1.2, 3.0])

# num_batches_tracked after two batches
>>> y, z = layer(x), layer(x)
>>> layer.num_batches_tracked.data
array(2.0)

# the buffers after another batch
>>> y, z = layer(x), layer(MiniTensor([[1.0, 2.0], [3.0, 4.0]]))
>>> buffers(layer)[:2]
(array([0.47, 0.75]), array([1.28, 2.9]))

# the buffers stay the same objects
>>> held = layer.running_mean, layer.running_var, layer.num_batches_tracked
>>> y = layer(x)
>>> [layer.running_mean is held[0], layer.running_var is held[1], layer.num_batches_tracked is held[2]]
[True, True, True]

# the buffers are written in place: what shares their memory shows it
>>> mean, variance = layer.running_mean.detach(), layer.running_var.detach()
>>> y = layer(x)
>>> mean.data, variance.data
(array([0.3, 0.5]), array([1.2, 3.0]))

# the buffers hold numbers without a history
>>> y = layer(x)
>>> layer.running_mean.requires_grad, layer.running_var.requires_grad
(False, False)

# in training mode the buffers change also under no_grad
>>> with no_grad():
...     y = layer(x)
>>> y.requires_grad, buffers(layer)
(False, (array([0.3, 0.5]), array([1.2, 3.0]), array(1.0)))

# in evaluation, one row with the running means 3 and 5 and the running variances 2 and 14
>>> overwrite(layer.running_mean, np.array([3.0, 5.0]))
>>> overwrite(layer.running_var, np.array([2.0, 14.0]))
>>> layer.eval()(MiniTensor([[5.0, 1.0]])).data
array([[3.0, 7.0]])

# in evaluation the buffers stay as they are
>>> y = layer.eval()(x)
>>> buffers(layer)
(array([0.0, 0.0]), array([1.0, 1.0]), array(0.0))
""")
check.hidden("""
# the gradients in evaluation
>>> overwrite(layer.running_mean, np.array([3.0, 5.0]))
>>> overwrite(layer.running_var, np.array([2.0, 14.0]))
>>> layer.eval()(x).backward(COTANGENT)
>>> x.grad.data, layer.bias.grad.data
(array([[1.0, -2.0], [2.0, 1.0], [3.0, -5.0]]), array([6.0, 6.0]))

# a single row in training is an error, after which the buffers are as before
>>> y = layer(x)
>>> layer(MiniTensor([[50.0, 60.0]]))
ValueError: Expected more than 1 value per channel when training*
>>> buffers(layer)
(array([0.3, 0.5]), array([1.2, 3.0]), array(1.0))

# another momentum, and batches of several sizes
>>> layer = BatchNorm1d(3, eps=0.5, momentum=0.25)
>>> first, second, third = (layer(MiniTensor(drawn(rows, rows))).data for rows in (4, 2, 7))
>>> third
(lambda r: (r - r.mean(axis=0)) / np.sqrt(r.var(axis=0) + 0.5))(drawn(7, 7))
>>> layer.running_mean.data
sum(share * drawn(rows, rows).mean(axis=0) for share, rows in ((0.140625, 4), (0.1875, 2), (0.25, 7)))
>>> layer.running_var.data
0.421875 + sum(w * drawn(n, n).var(axis=0, ddof=1) for w, n in ((0.140625, 4), (0.1875, 2), (0.25, 7)))

# small numbers, with the usual eps
>>> BatchNorm1d(2)(x * 1e-3).data
(BATCH - [3.0, 5.0]) * 1e-3 / np.sqrt(np.array([2.0, 14.0]) * 1e-6 + 1e-5)

# parameters and buffers
>>> sorted(name for name, _ in layer.named_parameters()), sorted(layer._buffers)
(["bias", "weight"], ["num_batches_tracked", "running_mean", "running_var"])

# x is used once more
>>> (layer(x) * x).backward(COTANGENT)
>>> x.grad.data
array([[-3.0, -8.25], [-1.0, 5.25], [13.0, 30.0]])
""")

# Exercise 4


def changes(adam, *gradients):
    """What `change` gives for one gradient after the other, with one state."""
    state = {}
    return [adam.change(np.array(gradient), state) for gradient in gradients]


check = Check("adam", points=5)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> u, v = (MiniTensor([3.0], requires_grad=True) for each in range(2))
>>> adam = Adam([u, v], lr=1.0, betas=(0.5, 0.75), eps=1.0)

# the first change for gradients of 1000 and -0.001, with lr = 0.1 and eps = 0
>>> Adam([u], lr=0.1, eps=0.0).change(np.array([1000.0, -0.001]), {})
array([0.1, -0.1])

# the first change for a gradient of 2, with lr = 1 and eps = 1: corrected mean 2, corrected square 4
>>> changes(adam, [2.0])[0]
array([2 / (2 + 1)])

# gradients of 2 and 4, betas 0.5 and 0.75: mean 2.5 (corrected by 0.75), square 4.75 (corrected by 0.4375)
>>> changes(adam, [2.0], [4.0])[1]
array([(2.5 / 0.75) / (np.sqrt(4.75 / 0.4375) + 1)])

# and then one of -6: mean -1.75 (corrected by 0.875), square 12.5625 (corrected by 0.578125)
>>> changes(adam, [2.0], [4.0], [-6.0])[2]
array([-2 / (np.sqrt(12.5625 / 0.578125) + 1)])

# betas 0.9 and 0.8, lr = 0.1, eps = 0.5, gradients of 1 and 3: mean 0.39, square 1.96
>>> changes(Adam([u], lr=0.1, betas=(0.9, 0.8), eps=0.5), [1.0], [3.0])[1]
array([0.1 * (0.39 / 0.19) / (1.4 / 0.6 + 0.5)])

# each entry has a mean and a square of its own
>>> changes(adam, [[2.0, 4.0], [-6.0, 0.0]])[0]
array([[2 / 3, 4 / 5], [-6 / 7, 0.0]])

# a scalar
>>> changes(adam, 2.0)[0]
array(2 / 3)

# another state knows nothing of earlier calls
>>> first = changes(adam, [2.0], [4.0])
>>> changes(adam, [2.0])[0]
array([2 / 3])

# the gradient stays as it is
>>> gradient = np.array([3.0, -4.0])
>>> change = adam.change(gradient, {})
>>> gradient
array([3.0, -4.0])

# step subtracts the change
>>> u.grad = MiniTensor([2.0])
>>> adam.step()
>>> u.data, u.grad.data
(array([3 - 2 / 3]), array([2.0]))

# u moves twice; v, whose .grad is None at first, moves once, with a count, a mean and a square of its own
>>> u.grad = MiniTensor([2.0])
>>> adam.step()
>>> v.grad = MiniTensor([4.0])
>>> adam.step()
>>> u.data, v.data
(array([3 - 4 / 3]), array([3 - 4 / 5]))

# two optimizers remember nothing of each other
>>> other = Adam([u], lr=1.0, betas=(0.5, 0.75), eps=1.0)
>>> u.grad = MiniTensor([2.0])
>>> adam.step()
>>> u.grad = MiniTensor([4.0])
>>> other.step()
>>> u.data
array([3 - 2 / 3 - 4 / 5])

# weight_decay = 0.5: step adds 1.5 to the gradient 0.5, so change gets 2
>>> u.grad = MiniTensor([0.5])
>>> Adam([u], lr=1.0, betas=(0.5, 0.75), eps=1.0, weight_decay=0.5).step()
>>> u.data
array([3 - 2 / 3])
""")
check.hidden("""
# many steps with the usual settings
>>> changes(Adam([u]), *([[np.sin(t), 100 * np.cos(t)]] for t in range(30)))[-1]
array([[4.6761090634364e-05, -0.00015151224905814]])

# zeros, and then a small gradient
>>> changes(Adam([u], lr=0.1), [0.0], [0.0], [1e-6])[1:]
[array([0.0]), array([0.06279427496229])]

# a step writes in place
>>> alias = u.detach()
>>> u.grad = MiniTensor([2.0])
>>> adam.step()
>>> alias.data
array([3 - 2 / 3])
""")

# Exercise 5

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [1.0, 2.0]])
Y = np.array([[0.0], [3.0], [-1.0], [1.0], [4.0]])


def watched(fails=False):
    """The model x @ weight, with another module in it, which notes for each call: the rows, the two modes, whether it
    is recorded, the gradient that the weight has by then, and its output.
    """

    class Watched(Module):
        def __init__(self):
            super().__init__()
            self.weight, self.inner = Parameter([[1.0], [2.0]]), Module()
            self.rows, self.modes, self.recorded, self.gradients, self.outputs = [], [], [], [], []

        def forward(self, x):
            self.rows.append(x.shape[0])
            self.modes.append((self.training, self.inner.training))
            self.recorded.append(is_grad_enabled())
            self.gradients.append(None if self.weight.grad is None else self.weight.grad.data.tolist())
            if fails:
                raise RuntimeError("this model fails")
            self.outputs.append(x @ self.weight)
            return self.outputs[-1]

    return Watched()


def noting(model, arguments):
    """The mean squared error, which notes the numbers of its two arguments, once for each output of the model."""

    def loss(first, second):
        numbers = [np.ravel(as_tensor(each).data).tolist() for each in (first, second)]
        arguments[len(model.outputs) - 1 :] = [tuple(numbers)]
        return mse_loss(first, second)

    return loss


def triple(output, target):
    return mse_loss(output, target) * 3


def picked(output, signs):
    """A loss of labels that are no MiniTensor: a mean over the rows."""
    return (output.reshape(-1) * MiniTensor(signs * 1.0)).mean()


OUTPUTS_AND_TARGETS = [([1.0, 2.0], [0.0, 3.0]), ([3.0, 0.0], [-1.0, 1.0]), ([5.0], [4.0])]

check = Check("loop", points=6)
check.cases("""
>>> switches.recording, switches.inference = True, False
>>> model, x, y = watched(), MiniTensor(X), MiniTensor(Y)
>>> optimizer = SGD([model.weight], lr=0.5)
>>> loader = DataLoader(TensorDataset(X, Y), batch_size=2)

# train_step, all five rows at once: the errors are 1, -1, 4, -1, 1, so the mean of their squares is 4
>>> train_step(model, optimizer, mse_loss, x, y)
4.0

# train_step, all rows at once: the weight (1, 2) moves by 0.5 times its gradient (1.6, 2.4)
>>> loss = train_step(model, optimizer, mse_loss, x, y)
>>> model.weight.data
array([[0.2], [0.8]])

# train_step, micro_batch=2: how many rows go through the model in each call
>>> loss = train_step(model, optimizer, mse_loss, x, y, 2)
>>> model.rows
[2, 2, 1]

# train_step, micro_batch=4: how many rows go through the model in each call
>>> loss = train_step(model, optimizer, mse_loss, x, y, 4)
>>> model.rows
[4, 1]

# train_step, micro_batch=2: the same loss; the means of the parts are 1, 8.5 and 1
>>> train_step(model, optimizer, mse_loss, x, y, 2)
4.0

# train_step, micro_batch=2: the same step
>>> loss = train_step(model, optimizer, mse_loss, x, y, 2)
>>> model.weight.data
array([[0.2], [0.8]])

# train_step, parts of equal size, 1: the same loss and the same step
>>> train_step(model, optimizer, mse_loss, x, y, 1)
4.0
>>> model.weight.data
array([[0.2], [0.8]])

# train_step clears a gradient that is left from before
>>> model.weight.grad = MiniTensor([[100.0], [100.0]])
>>> loss = train_step(model, optimizer, mse_loss, x, y)
>>> model.weight.data
array([[0.2], [0.8]])

# train_step, micro_batch=2: each part adds to .grad before the next begins, so all three begin with another one
>>> loss = train_step(model, optimizer, mse_loss, x, y, 2)
>>> len(set(map(str, model.gradients)))
3

# train_step, micro_batch=2: what the graphs still hold (their backward passes free it)
>>> loss = train_step(model, optimizer, mse_loss, x, y, 2)
>>> [output.grad_fn.saved for output in model.outputs]
[None, None, None]

# train_step, micro_batch=2: the two arguments of the loss function, the output first
>>> arguments = []
>>> loss = train_step(model, optimizer, noting(model, arguments), x, Y, 2)
>>> arguments
OUTPUTS_AND_TARGETS

# train_step with three times that loss
>>> train_step(model, optimizer, triple, x, y, 2)
12.0

# train_step in training mode: the modes of the two modules in each call, and afterward
>>> loss = train_step(model, optimizer, mse_loss, x, y, 3)
>>> model.modes, model.training
([(True, True), (True, True)], True)

# train_step in evaluation mode, which stays
>>> loss = train_step(model.eval(), optimizer, mse_loss, x, y, 3)
>>> model.modes, model.training
([(False, False), (False, False)], False)

# evaluate, batches of 2, 2 and 1 rows: the mean over the five samples
>>> evaluate(model, loader, mse_loss)
4.0

# evaluate with drop_last=True, which gives only four of the five samples
>>> evaluate(model, DataLoader(TensorDataset(X, Y), batch_size=2, drop_last=True), mse_loss)
4.75

# evaluate: how many rows go through the model in each call
>>> loss = evaluate(model, loader, mse_loss)
>>> model.rows
[2, 2, 1]

# evaluate: the modes of the two modules in each call
>>> loss = evaluate(model, loader, mse_loss)
>>> model.modes
[(False, False)] * 3

# evaluate: which calls are recorded
>>> loss = evaluate(model, loader, mse_loss)
>>> model.recorded
[False, False, False]

# evaluate: both modes, and recording, afterward
>>> loss = evaluate(model, loader, mse_loss)
>>> model.training, model.inner.training, is_grad_enabled()
(True, True, True)

# evaluate: a model that was in evaluation mode stays in it
>>> loss = evaluate(model.eval(), loader, mse_loss)
>>> model.training, model.inner.training
(False, False)

# evaluate: the weight and its gradient stay as they are
>>> model.weight.grad = MiniTensor([[5.0], [6.0]])
>>> loss = evaluate(model, loader, mse_loss)
>>> model.weight.data, None if model.weight.grad is None else model.weight.grad.data
(array([[1.0], [2.0]]), array([[5.0], [6.0]]))

# evaluate: the two arguments of the loss function, the output first
>>> arguments = []
>>> loss = evaluate(model, loader, noting(model, arguments))
>>> arguments
OUTPUTS_AND_TARGETS

# evaluate with three times that loss
>>> evaluate(model, loader, triple)
12.0

# evaluate a model that fails: its error comes through; the modes and recording are as before
>>> failing = watched(fails=True)
>>> evaluate(failing, loader, mse_loss)
RuntimeError: this model fails
>>> failing.training, failing.inner.training, is_grad_enabled()
(True, True, True)
""")
check.hidden("""
# train_step: other sizes of parts
>>> train_step(model, optimizer, mse_loss, x, y, 100), model.rows, model.weight.data
(4.0, [5], array([[0.2], [0.8]]))
>>> model = watched()
>>> optimizer = SGD([model.weight], lr=0.5)
>>> train_step(model, optimizer, mse_loss, x, y, 3), model.rows, model.weight.data
(4.0, [3, 2], array([[0.2], [0.8]]))

# train_step: a single row
>>> train_step(model, optimizer, mse_loss, x[2:3], y[2:3]), model.weight.data
(16.0, array([[-3.0], [-2.0]]))

# train_step: labels that are no MiniTensor
>>> signs = np.array([1, -1, 1, 1, -1])
>>> train_step(model, optimizer, picked, x, signs, 2), model.weight.data
(-0.6, array([[0.7], [2.3]]))

# train_step: an optimizer with momentum
>>> optimizer = SGD([model.weight], lr=0.5, momentum=0.5)
>>> for _ in range(2):
...     loss = train_step(model, optimizer, picked, x, np.array([1, -1, 1, 1, -1]), 3)
>>> model.weight.data
array([[0.25], [2.75]])

# evaluate: no gradient is left
>>> loss = evaluate(model, loader, mse_loss)
>>> model.weight.grad
None

# evaluate: a plain list of pairs, of 1 and of 4 rows
>>> evaluate(model, [(x[:1], y[:1]), (x[1:], y[1:])], triple)
12.0

# evaluate: a model in evaluation mode that fails
>>> failing = watched(fails=True).eval()
>>> evaluate(failing, loader, mse_loss)
RuntimeError: this model fails
>>> failing.training, failing.inner.training, is_grad_enabled()
(False, False, True)
""")
