# %% [markdown]
# # Training
#
# *Core: about 90 minutes; before section 4 is a good place for a break. Further: about 40 minutes, optional. You build modules, Dropout, batch normalization, Adam and the training loop. You need lesson 05; what lessons 06 to 10 add to the engine is loaded for you.*
#
# A network is trained in PyTorch on a few noisy points, for far too many epochs. After each epoch its loss on other points is measured. Whenever this loss is the lowest so far, the weights are kept: `best = model.state_dict()`. At the end the best weights are loaded again.

# %%
from autograder.student import check, hints, predict, quiz, start_lesson

# %% tags=["engine"]
import math
import warnings

import numpy as np

# %% tags=["demo"]
import copy

from mini_autograd.widgets import monitor

import torch
from helpers_11 import kept_megabytes, noisy_wave, print_epochs, to_torch, try_update, wave_training
from torch.nn.functional import mse_loss as mse

torch.set_num_threads(1)

# %% tags=["demo"]
def best_of_training(keep):
    """The losses on the other points after each epoch, and the one after `best` was loaded."""
    model, epoch, other_loss = wave_training()
    losses = []
    for _ in range(250):
        epoch()
        losses.append(other_loss())
        if losses[-1] == min(losses):
            best = keep(model)
    model.load_state_dict(best)
    return losses, other_loss()


losses, loaded = best_of_training(keep=lambda model: model.state_dict())
print(f"loss on the other points: lowest {min(losses):.3f}, after the last epoch {losses[-1]:.3f}")

# %% [markdown]
# **Predict** the loss on the other points with the best weights loaded: the lowest, the last, or something else?

# %% tags=["demo"]
predict(
    "Which loss do the best weights give on the other points?",
    "the lowest of all",
    "the last one",
    "something else",
)
print(f"with the best weights loaded: {loaded:.3f}")

# %% [markdown]
# Nothing was kept. `state_dict` does not copy: it shows the memory of the weights, and the optimizer goes on writing into that memory, **in place**. There is no error: each part does what it promises. You will
#
# 1. build modules, which know their parameters by name, and copy and load them;
# 2. write layers that behave differently in training and in evaluation, and say what `eval()` does and what `no_grad` does;
# 3. write Adam, with its correction;
# 4. cut batches into micro-batches without changing the gradient;
# 5. run a whole training loop, and watch it live.
#
# If something breaks your engine, run the next cell again, and then every cell below it.

# %%
start_lesson()

# %% [markdown] items="61"
# ## 1. Modules
#
# So far the weights of a network were a list. With twenty layers you lose track. PyTorch's answer is a class, `Module`. If you assign a parameter or another module to `self.something`, the module registers it. Each parameter then has a name: the path that leads to it, such as `encoder.0.weight`.

# %% [markdown]
# ### What every module can do (just run it)
#
# Run this cell. You don't need to read it. A `Parameter` is a leaf like any other: the class is only a mark for modules. `named_parameters` gives each parameter **once**, even if two modules share it. `load_state_dict` copies a state into the module, and refuses a state that does not fit.

# %% tags=["engine"]
class Parameter(MiniTensor):
    """A leaf that a module registers when it is assigned to one of its attributes."""

    def __init__(self, data, requires_grad=True):
        super().__init__(data.data if isinstance(data, MiniTensor) else data, requires_grad)

    def __repr__(self):
        return f"Parameter containing:\n{super().__repr__()}"

    def __deepcopy__(self, memo):
        return Parameter(self.data.copy(), self.requires_grad)


def overwrite(tensor, values):
    """Write values into the memory of a tensor. Nothing is recorded; the tensor stays a leaf."""
    with no_grad():
        tensor.copy_(values)  # a write that is counted (lesson 09)


class ModuleTools:
    """What a module can do with what it has registered."""

    def refuse(self, name, value):
        """Raise an error like PyTorch's if value cannot become the attribute `name` of this module."""
        families = {"parameter": (Parameter, "_parameters"), "module": (Module, "_modules")}
        for word, (kind, place) in families.items():
            family = vars(self).get(place)
            if isinstance(value, kind):
                if family is None:
                    raise AttributeError(f"cannot assign {word} before Module.__init__() call")
            elif family and name in family and value is not None:
                given = type(value).__name__
                raise TypeError(
                    f"cannot assign '{given}' as {word} '{name}' ({kind.__name__} or None expected)"
                )

    def forward(self, *inputs):
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *inputs, **options):
        return self.forward(*inputs, **options)

    def named_modules(self, prefix="", remove_duplicate=True):
        """Pairs (name, module): this module, whose name is prefix, and all modules in it.

        A module that is found in two places comes once, or twice with remove_duplicate=False.
        """
        seen, stack = set(), [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if remove_duplicate and module in seen:
                continue
            seen.add(module)
            yield name, module
            for child, inner in reversed(module._modules.items()):
                stack.append((f"{name}.{child}" if name else child, inner))

    def named_parameters(self, prefix=""):
        """Pairs (name, parameter) of the module and of all in it; a shared parameter comes once.

        >>> pair = Module()
        >>> pair.first, pair.inner = Parameter([1.0]), Module()
        >>> pair.inner.second, pair.inner.again = Parameter([2.0]), pair.first
        >>> [name for name, _ in pair.named_parameters()]
        ['first', 'inner.second']
        """
        seen = set()
        for path, module in self.named_modules(prefix):
            for name, parameter in module._parameters.items():
                if parameter not in seen:
                    seen.add(parameter)
                    yield (f"{path}.{name}" if path else name), parameter

    def modules(self):
        return (module for _, module in self.named_modules())

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode=True):
        """Set `training` of the module and of all in it. Returns the module itself."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def load_state_dict(self, state):
        """Copy a state into the parameters and buffers, which stay the same objects."""
        own, problems = self.state_dict(), []
        missing, unexpected = own.keys() - state.keys(), state.keys() - own.keys()
        for word, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names:
                listed = ", ".join(f'"{name}"' for name in sorted(names))
                problems.append(f"{word} key(s) in state_dict: {listed}.")
        for name in own.keys() & state.keys():
            shapes = state[name].shape, own[name].shape
            if shapes[0] != shapes[1]:
                problems.append(f"size mismatch for {name}: {shapes[0]} into {shapes[1]}.")
        if problems:  # nothing has changed yet
            start = f"Error(s) in loading state_dict for {type(self).__name__}:"
            raise RuntimeError("\n\t".join([start, *problems]))
        for name, tensor in own.items():
            overwrite(tensor, state[name].data)

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __repr__(self):
        lines = [f"({name}): {inner!r}" for name, inner in self._modules.items()]
        inside = "".join("\n" + line for line in lines).replace("\n", "\n  ")
        return f"{type(self).__name__}({inside}\n)" if lines else f"{type(self).__name__}()"

# %% [markdown]
# ### The registration
#
# Read `__setattr__`: Python calls it for each assignment to an attribute. A *buffer* is a tensor that belongs to the state of a module, but is not trained. Section 3 needs some.

# %% tags=["engine"]
class Module(ModuleTools):
    """The base of all models and layers. A subclass calls super().__init__() and defines forward.

    training: whether the module is in training mode
    """

    def __init__(self):
        vars(self).update(training=True, _parameters={}, _buffers={}, _modules={})

    def __setattr__(self, name, value):
        self.refuse(name, value)  # raises the usual errors of PyTorch
        for kind, place in ((Parameter, "_parameters"), (Module, "_modules")):
            family = vars(self).get(place, {})
            if isinstance(value, kind):
                family[name] = value
            else:
                family.pop(name, None)  # only None gets here for a registered name
        if name in vars(self).get("_buffers", ()):
            self._buffers[name] = value
        super().__setattr__(name, value)

    def register_buffer(self, name, tensor):
        """Add a tensor that is state, but not trained."""
        self._buffers[name] = tensor
        super().__setattr__(name, tensor)

# %% [markdown] items="61"
# ### Exercise 1: the state of a module
#
# `module.named_modules()` walks through a module and all modules in it. It gives pairs `(name, module)`; the outermost has the name `""`. A module that is found in two places comes once, or each time with `remove_duplicate=False`. A module keeps what it owns in two dictionaries, by name: `module._parameters` and `module._buffers`.
#
# Write `state_dict`. It returns a dictionary of all parameters *and* buffers by name, each through `detach()`, which gives a tensor in the same memory, without history. A shared tensor is listed under each of its names.

# %% [markdown] tags=["hint"] exercise="module"
# Compare `named_parameters` of `ModuleTools`, which makes the names in the same form: `f"{path}.{name}" if path else name`.

# %% [markdown] tags=["hint"] exercise="module"
# `state_dict` visits a shared module under each of its names: `self.named_modules(remove_duplicate=False)`. The entries are `tensor.detach()`.

# %% solution="module" tags=["engine"]
def state_dict(self):
    """All parameters and buffers of the module and of all in it, as a dict from name to MiniTensor.

    The tensors are detached, in the memory of the module. A shared one is under each of its names.

    >>> layer = Module()
    >>> layer.weight = Parameter([1.0, 2.0])
    >>> layer.register_buffer("seen", MiniTensor(5.0))
    >>> layer.state_dict()
    {'weight': MiniTensor([1. 2.]), 'seen': MiniTensor(5.0)}
    """
    ### BEGIN SOLUTION
    state = {}
    for path, module in self.named_modules(remove_duplicate=False):
        for name, tensor in {**module._parameters, **module._buffers}.items():
            state[f"{path}.{name}" if path else name] = tensor.detach()
    return state
    ### END SOLUTION


Module.state_dict = state_dict

# %% check="module"

# %% [markdown]
# Back to the beginning: which of these keeps the best weights? Here is the same training run three times.

# %% tags=["demo"]
keepers = {
    "state_dict()": lambda model: model.state_dict(),
    "dict(state_dict())": lambda model: dict(model.state_dict()),
    "copy.deepcopy(state_dict())": lambda model: copy.deepcopy(model.state_dict()),
}
for name, keep in keepers.items():
    run, after = best_of_training(keep)
    print(f"{name:28s} lowest {min(run):.3f}   after loading {after:.3f}")

# %% [markdown]
# A new dictionary with the old tensors is not a copy either. In your engine you can write `{name: MiniTensor(tensor.data.copy()) for name, tensor in model.state_dict().items()}`.
#
# Another mistake is often silent. A parameter or a module is registered when you assign it; a list of modules is neither of the two, so nothing is registered. The next cell shows two PyTorch models: one keeps its layers in a list, the other in a `ModuleList`. **Predict** what an optimizer does with the first one.

# %% tags=["demo"]
predict("What does the optimizer do?", "it trains the layers", "it trains nothing", "it complains")


class Chain(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = kind([torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)])


for kind in (list, torch.nn.ModuleList):
    print(f"{kind.__name__:10s}", [name for name, _ in Chain(kind).named_parameters()])
try:
    torch.optim.SGD(Chain(list).parameters(), lr=0.1)
except ValueError as error:
    print("ValueError:", error)

# %% [markdown] items="61"
# Here the optimizer noticed the mistake, because the list of parameters was empty. With one registered layer beside the list it would not: the layers in the list keep their random starting weights. In PyTorch, `ModuleList` and `Sequential` register what they hold.
#
# ## 2. Layers
#
# Most layers are short. `LinearLayer` is PyTorch's `nn.Linear` (your engine already has a Function called `Linear`). Its weight has PyTorch's shape, `(outputs, inputs)`, and its starting values come from PyTorch's range, up to `1 / sqrt(inputs)`. All random numbers of the engine come from one generator, `default_generator`. `manual_seed` sets it.

# %% [markdown]
# ### LinearLayer, Sequential, activations and a loss (just run it)
#
# Run this cell. You don't need to read it. `Sequential` runs modules one after the other, and names them "0", "1" and so on. GELU, the activations as modules, and `mse_loss` are as in PyTorch.

# %% tags=["engine"] items="61"
default_generator = np.random.default_rng()


def manual_seed(seed):
    """Restart the random numbers of layers and loaders from a seed."""
    default_generator.bit_generator.state = np.random.default_rng(seed).bit_generator.state


class LinearLayer(Module):
    """x @ weight.T + bias, for x of shape (..., in_features); the result is (..., out_features).

    weight: Parameter of shape (out_features, in_features); bias: (out_features,), or None
    """

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / in_features**0.5
        shape = (out_features, in_features)
        self.weight = Parameter(default_generator.uniform(-bound, bound, size=shape))
        offset = default_generator.uniform(-bound, bound, size=out_features)
        self.bias = Parameter(offset) if bias else None

    def forward(self, x):
        x = as_tensor(x)
        if self.bias is None:
            return x @ self.weight.T
        if x.ndim == 2:
            return x.linear(self.weight.T, self.bias)
        rows = x.reshape(-1, self.in_features).linear(self.weight.T, self.bias)
        return rows.reshape(*x.shape[:-1], self.out_features)

    def __repr__(self):
        bias = self.bias is not None
        return f"LinearLayer({self.in_features}, {self.out_features}, bias={bias})"


class Sequential(Module):
    """Modules one after the other, with the names "0", "1", and so on."""

    def __init__(self, *modules):
        super().__init__()
        for number, module in enumerate(modules):
            setattr(self, str(number), module)

    def forward(self, x):
        for module in self._modules.values():
            x = module(x)
        return x

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __getitem__(self, number):
        return list(self._modules.values())[number]


class Gelu(Function):
    """a * P(a), where P(a) is the share of a standard normal distribution that lies below a."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * normal_share(a)

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        density = np.exp(-(a**2) / 2) / math.sqrt(2 * math.pi)
        return grad * (normal_share(a) + a * density)


def normal_share(a):
    return 0.5 * (1 + np.frompyfunc(math.erf, 1, 1)(a / math.sqrt(2)).astype(np.float64))


def gelu(self, approximate="none"):
    """As in PyTorch: exact, or with approximate="tanh" the usual approximation."""
    if approximate == "none":
        return Gelu.apply(self)
    inner = (self + self**3 * 0.044715) * math.sqrt(2 / math.pi)
    return self * (inner.tanh() + 1) * 0.5


MiniTensor.gelu = gelu


class ReLU(Module):
    def forward(self, x):
        return as_tensor(x).relu()


class TanhLayer(Module):
    def forward(self, x):
        return as_tensor(x).tanh()


class GELU(Module):
    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, x):
        return as_tensor(x).gelu(self.approximate)


def mse_loss(prediction, target, reduction="mean"):
    """The mean of the squared differences, or their sum, or (with "none") all of them."""
    target = as_tensor(target)
    if prediction.shape != target.shape:
        warnings.warn(
            f"Using a target size {target.shape} that is different to the input size "
            f"{prediction.shape}. This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=2,
        )
    squares = (prediction - target) ** 2
    return {"mean": squares.mean, "sum": squares.sum, "none": lambda: squares}[reduction]()

# %% [markdown]
# ### A loss in use
#
# `mse_loss` should get two tensors of the same shape. Predictions often have the shape `(8, 1)` and targets `(8,)`. **Predict** the loss of predictions that are all correct.

# %% tags=["demo"]
predict("What is the loss of predictions that are all correct?")
target = np.arange(8.0)
right_predictions = MiniTensor(target.reshape(8, 1))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print("yours:  ", mse_loss(right_predictions, target).item())
    print("PyTorch:", mse(torch.tensor(target.reshape(8, 1)), torch.tensor(target)).item())
    print("shape of the differences:", (right_predictions - target).shape)
    print(len(caught), "warnings, such as:", str(caught[0].message)[:68], "...")
print("shaped alike:", mse_loss(right_predictions, target.reshape(8, 1)).item())

# %% [markdown]
# All predictions are correct, and the loss is 10.5. A column and a row are broadcast to a square: each prediction is compared with every target. You get only a warning, in PyTorch and here. Do not ignore it.
#
# ### Exercise 2: Dropout
#
# A network can learn a small data set by heart. Dropout makes that harder: the network cannot rely on any single entry. In training, `Dropout(p)` sets each entry to 0 with probability `p`, with new random numbers in every call. It multiplies the others by one factor, so that the *expected* output equals the input. In evaluation it returns its input. **Which factor is that?** Think of 100 entries of 1 and `p = 0.75`: how many are left on average, and what must they be?
#
# Complete `forward`. Take the random numbers from `default_generator`.

# %% [markdown] tags=["hint"] exercise="dropout"
# The rest is multiplied by `1 / (1 - p)`. `default_generator.random(x.shape) >= p` is True for a share of `1 - p` of the entries.

# %% [markdown] tags=["hint"] exercise="dropout"
# Multiply the tensor by an array that holds 0 or `1 / (1 - p)`. Then the rule of the product gives the gradient.

# %% solution="dropout" tags=["engine"]
class Dropout(Module):
    """In training, sets entries to 0 with probability p and scales the rest; in evaluation, returns x.

    x: MiniTensor of any shape; the result has the same shape. Each call takes new random
        numbers from default_generator, and each entry is kept or dropped independently.
    p: 0 keeps all; 1 keeps none: all entries are 0, and so is the gradient
    The gradient is 0 where the entry was dropped; elsewhere it is scaled by the same factor.

    >>> layer = Dropout(0.5)
    >>> set(layer(MiniTensor(np.ones(1000))).data.tolist()) == {0.0, 2.0}
    True
    >>> layer.eval()(MiniTensor([1.0, 2.0])).data
    array([1., 2.])
    """

    def __init__(self, p=0.5):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p

    def forward(self, x):
        x = as_tensor(x)
        if not self.training:
            return x
        if self.p == 1:
            return x * 0.0
        ### BEGIN SOLUTION
        kept = default_generator.random(x.shape) >= self.p
        return x * (kept / (1 - self.p))
        ### END SOLUTION

# %% check="dropout"

# %% [markdown] items="84"
# ## 3. A layer with a memory
#
# While weights move, the numbers that the next layer gets grow or shrink. Batch normalization gives each column of a batch mean 0 and variance 1. Then it scales and shifts the column by parameters. In practice this often allows a larger learning rate. Mean and variance are those of the batch, so the result of each row depends on the other rows. In evaluation the answer for a row must not, so the layer then uses *running* statistics, which it has gathered in training.
#
# ### Exercise 3: BatchNorm1d
#
# Complete `forward` for `x` of shape `(rows, features)`. The branch for evaluation is given: there the running statistics replace mean and variance, and nothing is updated. In training:
#
# * `mean` and `variance` are taken over the rows, the variance divided by `rows`;
# * `self.track(mean.data, variance.data, rows)` updates the buffers. It is given, and takes plain arrays of shape `(features,)`;
# * the result is `(x - mean) / sqrt(variance + eps) * weight + bias`. Mean and variance are computed from `x`, so the gradient must flow through them as well: use operations of your engine.
#
# As in PyTorch, the variance of the batch is divided by `rows`, but the running one by `rows - 1` (see `track`).
#
# Your engine's operations take `dim` and `keepdim`, as in `x.mean(dim=0)`. NumPy's names `axis` and `keepdims` do not work. The square root is `** 0.5`.

# %% [markdown] tags=["hint"] exercise="batchnorm"
# `mean = x.mean(dim=0)` has shape (features,) and is stretched over the rows. `centered = x - mean`, `variance = (centered * centered).mean(dim=0)`.

# %% [markdown] tags=["hint"] exercise="batchnorm"
# `self.track(mean.data, variance.data, x.shape[0])`. The buffers need only numbers.

# %% solution="batchnorm" tags=["engine"]
class BatchNorm1d(Module):
    """Normalizes each column over the rows of a batch, then scales and shifts it.

    x: MiniTensor of shape (rows, features); the result has the same shape
    weight, bias: Parameters of shape (features,), ones and zeros at first
    running_mean, running_var, num_batches_tracked: buffers of shape (features,), (features,), ()
    A single row in training raises the ValueError of track.

    >>> layer = BatchNorm1d(2)
    >>> layer(MiniTensor([[1.0, 10.0], [3.0, 30.0]])).data.round(3)
    array([[-1., -1.],
           [ 1.,  1.]])
    >>> layer.running_mean.data, layer.running_var.data
    (array([0.2, 2. ]), array([ 1.1, 20.9]))
    >>> layer.eval()(MiniTensor([[0.2, 2.0]])).data
    array([[0., 0.]])
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = Parameter(np.ones(num_features))
        self.bias = Parameter(np.zeros(num_features))
        self.register_buffer("running_mean", MiniTensor(np.zeros(num_features)))
        self.register_buffer("running_var", MiniTensor(np.ones(num_features)))
        self.register_buffer("num_batches_tracked", MiniTensor(0.0))

    def track(self, mean, variance, rows):
        """Update the buffers, in place, by the mean and variance of one batch, of shape (features,)."""
        if rows == 1:
            raise ValueError("Expected more than 1 value per channel when training")
        unbiased = variance * rows / (rows - 1)
        for running, new in ((self.running_mean, mean), (self.running_var, unbiased)):
            overwrite(running, (1 - self.momentum) * running.data + self.momentum * new)
        overwrite(self.num_batches_tracked, self.num_batches_tracked.data + 1)

    def forward(self, x):
        x = as_tensor(x)
        if not self.training:
            mean, variance = self.running_mean, self.running_var
            return (x - mean) / (variance + self.eps) ** 0.5 * self.weight + self.bias
        ### BEGIN SOLUTION
        mean = x.mean(dim=0)
        centered = x - mean
        variance = (centered * centered).mean(dim=0)
        self.track(mean.data, variance.data, x.shape[0])
        return centered / (variance + self.eps) ** 0.5 * self.weight + self.bias
        ### END SOLUTION

# %% check="batchnorm"

# %% [markdown] items="84"
# ### eval() and no_grad, once more
#
# `eval()` sets `training` to False in all modules; `no_grad` stops recording (lesson 07). Now the model also remembers earlier batches. **Predict** the four lines, above all the column `changed`: does a forward pass change the model?

# %% tags=["demo"] items="84"
predict("In how many of the four lines does a forward pass change the model?")
x = MiniTensor(np.random.default_rng(3).normal(size=(500, 50)))
for training, recording in ((True, True), (True, False), (False, True), (False, False)):
    manual_seed(2)
    model = Sequential(LinearLayer(50, 400), BatchNorm1d(400), ReLU(), Dropout(0.5)).train(training)
    before = {name: tensor.data.copy() for name, tensor in model.state_dict().items()}
    with set_grad_enabled(recording):
        outputs, again = model(x), model(x)
    same = np.array_equal(outputs.data, again.data)
    after = model.state_dict()
    changed = [name for name in after if not np.array_equal(after[name].data, before[name])]
    print("train()" if training else "eval() ", "       " if recording else "no_grad", end="   ")
    megabytes = kept_megabytes(outputs)
    print(f"twice the same {same!s:5s}   changed {len(changed)}   saved {megabytes:5.2f} MB")

# %% [markdown] items="84"
# `no_grad` decides what is recorded and saved. The mode decides what is computed, and whether the three buffers change. The mode also affects memory: in evaluation, your Dropout and BatchNorm save less (PyTorch's Dropout too, its BatchNorm hardly). Only the last line saves nothing *and* gives the answer that you want.
#
# Look at the second line, too: a forward pass in training mode changes the buffers, and so the model, even under `no_grad`.

# %% [markdown] items="62 F47"
# ## 4. Optimizers
#
# A base class does what all optimizers share: it skips parameters without a gradient, keeps a `state` for each parameter, adds the *weight decay* to the gradient (which Adam then rescales, unlike AdamW), and writes the result in place. A subclass adds only one formula.
#
# ### The base class (just run it)
#
# Run this cell. You need to read only the four lines of `step`: it calls `change(gradient, state)` and subtracts what it returns.

# %% tags=["engine"] items="62"
class Optimizer:
    """Moves parameters. A subclass defines change(gradient, state): what is to be subtracted.

    parameters: leaves, such as model.parameters(); one whose .grad is None does not move
    weight_decay: this share of the parameter is added to its gradient (an L2 penalty)
    """

    def __init__(self, parameters, lr, weight_decay=0.0):
        self.parameters = list(parameters)
        if not self.parameters:
            raise ValueError("optimizer got an empty parameter list")
        self.lr, self.weight_decay = lr, weight_decay
        self.states = [{} for _ in self.parameters]

    def step(self):
        for parameter, state in zip(self.parameters, self.states):
            if parameter.grad is not None:
                gradient = parameter.grad.data + self.weight_decay * parameter.data
                overwrite(parameter, parameter.data - self.change(gradient, state))

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters:
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = MiniTensor(np.zeros(parameter.shape))

# %% [markdown] items="62"
# ### One formula
#
# Read `SGD`, gradient descent with momentum:

# %% tags=["engine"] items="62"
class SGD(Optimizer):
    """Gradient descent, with momentum if wanted."""

    def __init__(self, parameters, lr=1e-3, momentum=0.0, *, weight_decay=0.0):
        super().__init__(parameters, lr, weight_decay)
        self.momentum = momentum

    def change(self, gradient, state):
        state["buffer"] = self.momentum * state.get("buffer", 0.0) + gradient
        return self.lr * state["buffer"]

# %% [markdown] items="62 F47"
# ### Exercise 4: Adam
#
# In SGD with `lr=0.1`, a gradient of 1000 moves its entry by 100, and one of 0.001 by 0.0001. Adam divides each entry by its usual size. It keeps two running means for each parameter, entry by entry: `mean`, of the gradient, and `square`, of the squared gradient. Both start at 0.
#
# > `mean = beta1 * mean + (1 - beta1) * gradient`
# >
# > `square = beta2 * square + (1 - beta2) * gradient**2`
#
# Because they start at 0, both are too close to 0 in the beginning. After `t` steps the factors of the past gradients in `mean` add up to `1 - beta1**t`. So the *corrected* mean is `mean / (1 - beta1**t)`, and the corrected square is `square / (1 - beta2**t)`. The change is
#
# > `lr * corrected mean / (sqrt(corrected square) + eps)`.
#
# How large is the very first change, for a gradient of 1000 and for one of 0.001? Work it out, then complete `change`. It gets an array, and the `state` of this parameter: a dictionary, empty at first, which nothing else uses. Keep in it everything that you must remember. The given line keeps `t` in it, as `state["step"]`.

# %% [markdown] tags=["hint"] exercise="adam"
# `t` is `state["step"]`. A missing entry counts as 0: `state.get("mean", 0.0)`.

# %% [markdown] tags=["hint"] exercise="adam"
# `state["mean"] = beta1 * state.get("mean", 0.0) + (1 - beta1) * gradient`, and `"square"` in the same form. The corrected mean is `state["mean"] / (1 - beta1 ** state["step"])`; do not put it back into the state.

# %% solution="adam" tags=["engine"]
class Adam(Optimizer):
    """Adam: how far an entry moves is set by lr, not by the size of its gradient.

    change(gradient, state): the array that step subtracts from the parameter; gradient is an array
        of the parameter's shape, which must stay as it is. `step` has added the weight decay.

    >>> w = MiniTensor([1.0, 1.0], requires_grad=True)
    >>> (w * np.array([1000.0, -0.001])).sum().backward()
    >>> Adam([w], lr=0.1).step()
    >>> w.data.round(4)
    array([0.9, 1.1])
    """

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(parameters, lr, weight_decay)
        self.betas, self.eps = betas, eps

    def change(self, gradient, state):
        beta1, beta2 = self.betas
        state["step"] = state.get("step", 0) + 1
        ### BEGIN SOLUTION
        state["mean"] = beta1 * state.get("mean", 0.0) + (1 - beta1) * gradient
        state["square"] = beta2 * state.get("square", 0.0) + (1 - beta2) * gradient**2
        mean = state["mean"] / (1 - beta1 ** state["step"])
        square = state["square"] / (1 - beta2 ** state["step"])
        return self.lr * mean / (np.sqrt(square) + self.eps)
        ### END SOLUTION

# %% check="adam"

# %% [markdown]
# ## 5. Batches
#
# A data set has `len(dataset)`, and `dataset[i]` is one sample: a tuple such as `(picture, label)`. A loader makes batches of it: it *collates* a list of samples into arrays. Floating point numbers become a MiniTensor; other numbers, such as labels, stay an array. `for x, y in loader` gives one batch after the other. Each such loop starts again, and with `shuffle=True` it draws a new order.

# %% [markdown]
# ### A data set, a loader and clipping (just run it)
#
# Run these two cells. You don't need to read them. `clip_grad_norm_` shortens the gradients of all parameters together if their norm is above a limit, as in PyTorch (lesson 10, part *Further*).

# %% tags=["engine"]
class TensorDataset:
    """Sample i is row i of each array."""

    def __init__(self, *arrays):
        if len({len(array) for array in arrays}) != 1:
            raise ValueError(f"arrays of one length are needed, not {[len(a) for a in arrays]}")
        self.arrays = arrays

    def __len__(self):
        return len(self.arrays[0])

    def __getitem__(self, number):
        return tuple(array[number] for array in self.arrays)


def collate(samples):
    """One batch from a list of samples: a tuple with one MiniTensor or array per part."""
    stacked = [np.stack(parts) for parts in zip(*samples)]
    return tuple(MiniTensor(part) if part.dtype.kind == "f" else part for part in stacked)


def clip_grad_norm_(parameters, max_norm):
    """Shorten the gradients of parameters, all together, to a norm of max_norm at most, in place.

    Returns: MiniTensor of shape (), the norm before clipping

    >>> w = Parameter([0.0, 0.0])
    >>> w.grad = MiniTensor([3.0, 4.0])
    >>> clip_grad_norm_([w], 1.0).item(), w.grad.data.round(5)
    (5.0, array([0.6, 0.8]))
    """
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = np.sqrt(sum((g.data**2).sum() for g in grads))
    for g in grads:
        overwrite(g, g.data * np.minimum(max_norm / (norm + 1e-6), 1.0))
    return MiniTensor(norm)

# %% tags=["engine"]
class DataLoader:
    """The batches of a data set: for x, y in loader. Each gives collate(list of samples).

    batch_size: samples per batch; the last batch may be smaller
    shuffle: whether the order is random, a new one in each loop; otherwise it is 0, 1, 2, ...
    drop_last: whether a last batch that is too small is left out
    generator: a NumPy generator that draws the order; default_generator if None

    >>> loader = DataLoader(TensorDataset(np.arange(5)), batch_size=2)
    >>> len(loader), [batch.tolist() for (batch,) in loader]
    (3, [[0, 1], [2, 3], [4]])
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, drop_last=False, generator=None):
        if batch_size < 1:
            raise ValueError(f"batch_size should be a positive integer value, but got {batch_size=}")
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.drop_last, self.generator = drop_last, generator or default_generator

    def __len__(self):
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self):
        count = len(self.dataset)
        order = self.generator.permutation(count) if self.shuffle else np.arange(count)
        for number in range(len(self)):
            chosen = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield collate([self.dataset[int(i)] for i in chosen])

# %% [markdown]
# ### The last batch
#
# The last batch is often smaller. The next cell cuts ten losses into batches of 4, 4 and 2. **Predict** whether the mean of the three batch means is the mean of all ten.

# %%
predict("Is the mean of the batch losses that of all samples?", "yes", "no, too small", "no, too large")
losses = [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 8.0, 8.0]
batches = DataLoader(TensorDataset(np.array(losses)), batch_size=4)
means = [(batch.mean().item(), batch.shape[0]) for (batch,) in batches]
print("batches:", means)
print("mean of the means:    ", round(sum(mean for mean, _ in means) / len(means), 4))
print("weighted by the rows: ", sum(mean * rows for mean, rows in means) / len(losses))
print("mean over the samples:", np.mean(losses))

# %% [markdown] items="60 84 53 F46"
# It is not: the two rows of the last batch count twice as much as the others. If you weight each batch by its number of rows, you get the mean over the samples. The next exercise needs this.
#
# ## 6. The loop
#
# ### Exercise 5: one step, and an evaluation
#
# `train_step` makes **one** step of the optimizer for one batch. If the batch does not fit into memory, it is cut into micro-batches. The cutting is given. Complete what happens with one part:
#
# * It runs forward and backward before the next part begins, so that only one part's saved values take up memory (`backward` frees them, lesson 06).
# * The step must be the same as for the whole batch, if each row is treated alone. (With batch normalization it cannot be: see *Further*.) The loss function gives a *mean* over the rows that it gets. By what must you multiply the loss of a part, if the last part is smaller?
# * Add up `total`: it must become the mean loss over the batch, a plain number.
#
# `evaluate` gives the mean loss over all *samples* of a loader. It changes no weight, no gradient and no running statistics. Complete it: add up `total` and `rows`. At the end all modules get the mode that the outermost one had, even after an error: that part is given.

# %% [markdown] tags=["hint"] exercise="loop"
# The loss of each part counts by its share: `loss * (rows of the part / rows of the batch)`. The batch has `rows` rows, the part has `part_x.shape[0]`. The backward pass starts at this weighted loss.

# %% [markdown] tags=["hint"] exercise="loop"
# In `evaluate`: call `model.eval()`, then go through the loader under `no_grad()`. Weight each loss by its number of rows.

# %% solution="loop" tags=["engine"]
def train_step(model, optimizer, loss_function, x, y, micro_batch=None):
    """Clear the gradients, find those of the mean loss over the batch, and make one step.

    x: MiniTensor; y: MiniTensor or array with as many rows: x.shape[0] (a MiniTensor has no len)
    loss_function: loss_function(model(x), y) is a mean over the rows, a MiniTensor of shape ()
    micro_batch: how many rows the model gets at a time, in their order; the last part may be
        smaller; None for all rows. Each part runs backward before the next one runs forward
    The mode of the model stays as it is.
    Returns: the mean loss over the rows of the batch, a float (with the weights before the step)

    >>> w = Module()
    >>> w.value = Parameter(0.0)
    >>> w.forward = lambda x: x * w.value
    >>> x, y = MiniTensor([1.0, 1.0]), MiniTensor([2.0, 4.0])
    >>> train_step(w, SGD([w.value], lr=0.25), mse_loss, x, y, micro_batch=1)
    10.0
    >>> w.value.data
    array(1.5)
    """
    rows = x.shape[0]
    size = rows if micro_batch is None else micro_batch
    optimizer.zero_grad()
    total = 0.0
    for begin in range(0, rows, size):
        part_x, part_y = x[begin : begin + size], y[begin : begin + size]
        ### BEGIN SOLUTION
        loss = loss_function(model(part_x), part_y) * (part_x.shape[0] / rows)
        loss.backward()
        total += loss.item()
        ### END SOLUTION
    optimizer.step()
    return total


def evaluate(model, loader, loss_function):
    """The mean loss over all samples that a loader gives, in evaluation mode, unrecorded; a float.

    loader: gives pairs (x, y) of x.shape[0] rows each; this number may differ from pair to pair.
        It may be a plain list of pairs
    The model's parameters, gradients and buffers stay as they are, and model.training is what it
    was, even if an error is raised.
    """
    before = model.training
    total, rows = 0.0, 0
    try:
        ### BEGIN SOLUTION
        model.eval()
        with no_grad():
            for x, y in loader:
                total += loss_function(model(x), y).item() * x.shape[0]
                rows += x.shape[0]
        ### END SOLUTION
        return total / rows
    finally:
        model.train(before)

# %% check="loop"

# %% [markdown]
# ### Everything together
#
# Train on small pictures of digits, with all the parts. The loop writes out what `train_step` does, because clipping goes between `backward` and `step`. The comments say why each line is where it is. `monitor` goes through the batches, and draws what is logged and the norm of the gradient of each layer.

# %% tags=["demo"] items="60"
with np.load("data/digits.npz") as file:
    pixels, labels = file["images"].reshape(-1, 64) / 16.0, file["labels"].astype(int)
known = TensorDataset(pixels[:600], labels[:600])
held_out = TensorDataset(pixels[600:], labels[600:])

manual_seed(6)
# the normalization would cancel a bias of the first layer
layers = LinearLayer(64, 48, bias=False), BatchNorm1d(48), GELU(), Dropout(0.2)
model = Sequential(*layers, LinearLayer(48, 10))
optimizer = Adam(model.parameters(), lr=0.01)  # holds these objects, and writes into them
loader = DataLoader(known, batch_size=50, shuffle=True)  # a new order in each epoch
test_loader = DataLoader(held_out, batch_size=128)  # no need to shuffle
watch = monitor(loader, model=model)
history, lowest, best = [], float("inf"), None
for epoch in range(8):
    model.train()  # dropout is on, the running statistics change
    norms = []
    for x, y in watch:
        optimizer.zero_grad()  # anywhere after step and before backward
        loss = cross_entropy(model(x), y)  # records a graph; it lives as long as `loss`
        loss.backward()  # adds into .grad, and frees what the graph has saved
        norm = clip_grad_norm_(model.parameters(), max_norm=1.0)  # returns the norm before
        norms.append(norm.item())
        watch.log(loss=loss, norm=norm)  # keeps plain numbers; a list of losses would keep graphs
        optimizer.step()  # unrecorded, in place
    test_loss = evaluate(model, test_loader, cross_entropy)  # eval mode, no_grad, by samples
    history.append((epoch, loss.item(), max(norms), sum(norm > 1.0 for norm in norms), test_loss))
    if test_loss < lowest:  # a copy, since the weights move on
        lowest = test_loss
        best = {name: MiniTensor(t.data.copy()) for name, t in model.state_dict().items()}

# %% tags=["demo"] items="60"
print_epochs(history, len(loader))
model.load_state_dict(best)
with no_grad():
    answers = model.eval()(MiniTensor(pixels[600:])).data.argmax(axis=1)
print(f"best weights: loss {evaluate(model, test_loader, cross_entropy):.4f}", end=", ")
print(f"{(answers == labels[600:]).mean():.1%} of {len(answers)} held-out digits right")

# %% [markdown] items="60"
# `best` is a copy, so the lowest loss is back. But these digits have also chosen the best epoch, so the percentage may be a little too good. In the table, the loss on the held-out digits falls fast, then hardly. The norm shrinks, so clipping matters only at first. `last batch` is the loss of one batch, with dropout on.
#
# But is the training *right*? *Further* trains such a network in PyTorch beside yours, measures what cutting a batch changes, and tries three ways to update a parameter.
#
# ## Quiz

# %% test="quiz_11" points=5 tags=["quiz"] items="84"
question(
    "eval_or_no_grad",
    "A model is tested on other data under `no_grad()`, without `model.eval()`. What happens?",
    right("Dropout drops, and batch normalization updates its running statistics.", "`no_grad` only stops the recording. What layers compute is a matter of the mode."),
    wrong("The same as with `eval()`, only slower.", "The numbers differ, and the model has changed afterward.", misconception="no_grad_is_eval"),
    wrong("The weights may change.", "Only an optimizer changes weights. Forward passes change buffers.", misconception="buffers_are_parameters"),
    wrong("An error: batch normalization needs gradients.", "It computes as usual.", misconception="no_grad_is_eval"),
)
question(
    "snapshot",
    "`best = model.state_dict()`, then 100 more epochs. What does `best` hold?",
    right("The weights after the 100 epochs", "A state shows the memory of the model, and optimizers write in place. So copy it."),
    wrong("The weights of that moment", "Nothing was copied.", misconception="state_is_a_copy"),
    wrong("Nothing: the optimizer has made new parameters.", "It changes numbers in place; the parameter objects stay.", misconception="step_makes_new_tensors"),
    wrong("The weights of that moment, and the current buffers", "Neither was copied.", misconception="state_is_a_copy"),
)
question(
    "uneven",
    "Three micro-batches of 12, 12 and 8 rows; each loss is a mean over its rows. By what must the third be multiplied?",
    right("8 / 32", "Each part counts by its share of the rows."),
    wrong("1 / 3", "Then a row of the third part counts more than a row of the first.", misconception="divide_by_parts"),
    wrong("1", "Then the gradient is about three times too long.", misconception="accumulation_needs_no_scale"),
    wrong("1 / 8", "The mean has divided by 8 already.", misconception="divide_by_parts"),
)
question(
    "split_and_normalize",
    "A network with batch normalization is trained in micro-batches, each weighted by its share of the rows. Is the gradient that of the whole batch?",
    right("No: each part is normalized by its own mean and variance.", "A different function is differentiated. *Further* measures the error."),
    wrong("Yes, the weighting takes care of that.", "That is true if the rows do not depend on each other. Here they do.", misconception="weights_cure_batchnorm"),
    wrong("Yes, if all parts have the same size.", "Equal parts still have different means.", misconception="weights_cure_batchnorm"),
    wrong("Only if the running statistics are switched off.", "They take no part in the gradient in training mode.", misconception="running_statistics_in_training"),
)
question(
    "first_step",
    "Adam with lr = 0.01. How far does an entry with gradient 500 move in the first step?",
    right("By about 0.01", "The corrected mean is 500, the root of the corrected square is 500."),
    wrong("By 5", "That is plain gradient descent.", misconception="adam_is_sgd"),
    wrong("By about 0.001, because the mean starts at 0", "The correction divides by 1 - 0.9.", misconception="no_bias_correction"),
    wrong("It depends on the other entries.", "Every entry has its own means.", misconception="adam_normalizes_the_vector"),
)
question(
    "dropout_factor",
    "Dropout with p = 0.8 in training: an entry of 3 is kept. What does the layer return for it?",
    right("15", "It is multiplied by 1 / (1 - 0.8), so that the mean over many draws is 3."),
    wrong("3", "Then the next layer would get a fifth on average, and five times as much in evaluation.", misconception="dropout_scales_in_evaluation"),
    wrong("3.75", "That is 3 / 0.8. Four out of five are dropped, one is kept.", misconception="p_is_kept"),
    wrong("0.6", "It must become larger, not smaller, to make up for the others.", misconception="p_is_kept"),
)
question(
    "in_a_list",
    "A module keeps its three hidden layers in a plain Python list, and its output layer in an attribute. What does training do?",
    right("It moves only the output layer, without a message.", "A list is neither a parameter nor a module, so what it holds is not registered. Use Sequential or ModuleList."),
    wrong("It raises an error, because parameters are missing.", "PyTorch cannot know how many there should be. It notices only an empty list of parameters.", misconception="lists_register"),
    wrong("It moves all four layers.", "`parameters()` does not look into lists.", misconception="lists_register"),
    wrong("It moves none of them.", "The output layer is registered.", misconception="lists_register"),
)
question(
    "in_place",
    "Why does an optimizer write into the parameter, in place?",
    right("So that the model and the optimizer keep holding the same object.", "They would not know of a new tensor."),
    wrong("So that the graph of the parameter is kept.", "A parameter has no history that could be kept.", misconception="in_place_keeps_the_graph"),
    wrong("So that the step is recorded.", "It is not recorded, on purpose.", misconception="steps_are_recorded"),
    wrong("Because a new array would have wrong numbers.", "The numbers would be the same. *Further* shows a new Parameter: right numbers, wrong object.", misconception="in_place_keeps_the_graph"),
)

# %% [markdown] items="142"
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | Module | a parameter or module that you assign to an attribute is registered; a name is the path to a parameter; a shared parameter counts once |
# | `state_dict` | shows parameters and buffers, and copies nothing: copy what you want to keep |
# | `eval()`, `no_grad` | the first changes what layers compute, the second what is recorded; an evaluation needs both |
# | Dropout | drops each entry with probability p and scales the rest, so that the expected value stays the same |
# | BatchNorm | the batch's statistics in training, running ones in evaluation; a forward pass changes the model |
# | optimizer | reads `.grad`, writes in place, unrecorded; keeps a state for each parameter |
# | Adam | lr sets the scale of a step, not the size of the gradient; steps are smaller where gradients change sign; the correction keeps the first steps from being too large |
# | loader | each sample once per epoch, in a new order with `shuffle`; the last batch may be smaller, or left out |
# | means of means | weight each part by its rows: in micro-batches, and in an evaluation |
#
# This training run worked. The next lesson is about eight pieces of training code that do not. Lesson 13 trains what does not fit into memory, and in lesson 16 your modules become a Transformer.

# %% tags=["demo"]
# Save the notebook, then run this cell: it shows how far you have come, and what comes next.
from autograder.student import progress

progress()

# %% [markdown]
# # Further
#
# This part is optional. No later lesson needs it. Its sections do not depend on each other.
#
# ## The factor of Dropout
#
# **Predict** the last column: what is the mean in training if nothing is scaled?

# %% tags=["demo"]
predict("p = 0.5: what is the mean without the factor?")
manual_seed(1)
torch.manual_seed(1)
ones = MiniTensor(np.ones((400, 500)))
print("  p    yours, mean   PyTorch, mean   yours in evaluation   mean without the factor")
for p in (0.2, 0.5, 0.9):
    own, own_torch = Dropout(p), torch.nn.Dropout(p)
    means = own(ones).data.mean(), own_torch(torch.ones(400, 500)).mean().item()
    quiet = own.eval()(ones).data.mean()
    print(f"{p:4}    {means[0]:8.3f} {means[1]:14.3f} {quiet:18.3f} {means[0] * (1 - p):22.3f}")

# %% [markdown]
# Without the factor, the next layer is trained on small numbers and then gets large ones.

# %% [markdown] items="84"
# ## Looking changes a model
#
# How bad is `no_grad` without `eval()`? A model is trained, then run on other data ten times. No optimizer runs. **Predict** whether the model is the same afterward.

# %% tags=["demo"] items="84"
predict("Is the model the same afterward?", "yes", "no")


def trained_model():
    manual_seed(3)
    x, y = noisy_wave(200, seed=4)
    model = Sequential(LinearLayer(1, 32), BatchNorm1d(32), GELU(), LinearLayer(32, 1))
    optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(60):
        optimizer.zero_grad()
        mse_loss(model(x), y).backward()
        optimizer.step()
    return model, x, y


def loss_in_evaluation(model, x, y):
    model.eval()
    with no_grad():
        return mse_loss(model(x), y).item()


model, x, y = trained_model()
print(f"loss before: {loss_in_evaluation(model, x, y):.3f}")
model.train()
with no_grad():
    for _ in range(10):
        model(x[x[:, 0] > 1])  # other data: only points on the right
print(f"loss after:  {loss_in_evaluation(model, x, y):.3f}")

# %% [markdown]
# Ten forward passes in training mode have made the model much worse.
#
# ## The correction of Adam
#
# Both running means start too close to 0. **Predict**: without the correction, are the first steps too small or too large?

# %%
predict(
    "Without the correction, are the first steps too small or too large?",
    "too small",
    "too large",
)


def own_steps(count):
    """The sizes of the steps of your Adam, with lr = 1, for a gradient that is always 1."""
    w, places = MiniTensor(0.0, requires_grad=True), [0.0]
    optimizer = Adam([w], lr=1.0)
    w.grad = MiniTensor(1.0)
    for _ in range(count):
        optimizer.step()
        places.append(w.item())
    return -np.diff(places)


t = np.arange(1, 1001)
with_correction = own_steps(1000)
without = (1 - 0.9**t) / np.sqrt(1 - 0.999**t)  # mean and square of a gradient of 1, as they are
print("first steps, yours:                 ", with_correction[:5].round(2), "times lr")
print("first steps, without the correction:", without[:5].round(2), "times lr")
print(f"largest: {without.max():.2f} times lr, in step {t[without.argmax()]};", end=" ")
print(f"step 1000: {without[-1]:.2f} times lr")

# %% tags=["demo"]
import matplotlib.pyplot as plt

from mini_autograd.widgets.demo import logarithmic

fig, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(t, without, label="without the correction")
axis.plot(t, with_correction, label="yours")
axis.set(xlabel="step", ylabel="size of the step, in units of lr", ylim=(0, None))
logarithmic(axis, "x")
axis.grid(alpha=0.3)
axis.legend()
plt.show()

# %% [markdown]
# They are too large. The running mean of the square builds up a hundred times more slowly than that of the gradient, so at first it is much further below its true size, and the change is divided by its square root. With a constant gradient, as here, the first steps are three to six and a half times the learning rate.

# %% [markdown]
# ## The paths through a batch normalization
#
# First compare your layer with PyTorch's, on five batches of different sizes.

# %% tags=["demo"]
generator = np.random.default_rng(21)
own, own_torch = BatchNorm1d(3), torch.nn.BatchNorm1d(3).double()
largest = 0.0
for rows in (8, 3, 20, 2, 9):
    batch = 3 + 2 * generator.normal(size=(rows, 3))
    result, result_torch = own(MiniTensor(batch)), own_torch(torch.tensor(batch))
    result.tanh().sum().backward()
    result_torch.tanh().sum().backward()
    largest = max(largest, np.abs(result.data - result_torch.detach().numpy()).max())
print(f"results   {largest:.1e}")
print(f"gradients {np.abs(own.weight.grad.data - own_torch.weight.grad.numpy()).max():.1e}")
for name, buffer in own_torch.named_buffers():
    difference = np.abs(getattr(own, name).data - buffer.numpy()).max()
    print(f"{name:19s} {difference:.1e}   now", getattr(own, name).data.round(3))

# %% [markdown]
# The gradient of one row reaches the others. In the picture, go backward from the first row of the result, and find the paths to `x`.

# %% tags=["demo"]
from mini_autograd.widgets import explore

x = MiniTensor([[1.0, 5.0], [3.0, 4.0], [8.0, 0.0]], requires_grad=True)
explore(BatchNorm1d(2)(x)[0].sum())

# %% [markdown]
# There are three kinds: the direct one, one through the mean, and one through the variance. The last one splits again, because the variance is itself computed from `x` and the mean.
#
# Now a layer with a bias stands in front of the normalization. **Predict** the gradient of that bias.

# %%
predict("What is the gradient of that bias?")
manual_seed(1)
layer = LinearLayer(4, 3)
(BatchNorm1d(3)(layer(np.random.default_rng(2).normal(size=(6, 4)))).tanh() ** 2).sum().backward()
print("gradient of the weight:", np.abs(layer.weight.grad.data).max().round(3), "at most")
print("gradient of the bias:  ", np.abs(layer.bias.grad.data).max().round(12))

# %% [markdown]
# Up to rounding it is 0: subtracting the mean removes what the bias adds. That is why such layers are often made with `bias=False`.
#
# ## Adam beside PyTorch
#
# Compare 100 steps on the same network, from the same weights. The batch is fixed, so nothing is random.

# %% tags=["demo"] items="61"
def curves(make, make_torch, steps=100):
    """The losses of both, step by step, and how far apart the weights are in the end."""
    manual_seed(4)
    model = Sequential(LinearLayer(1, 16), GELU(), LinearLayer(16, 1))
    model_torch = torch.nn.Sequential(
        torch.nn.Linear(1, 16), torch.nn.GELU(), torch.nn.Linear(16, 1)
    ).double()
    model_torch.load_state_dict(to_torch(model))
    x, y = noisy_wave(40, seed=5)
    losses = []
    for network, optimizer, tensor, loss_function in (
        (model, make(model.parameters()), MiniTensor, mse_loss),
        (model_torch, make_torch(model_torch.parameters()), torch.tensor, mse),
    ):
        losses.append([])
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_function(network(tensor(x)), tensor(y))
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    pairs = zip(model.parameters(), model_torch.parameters())
    return losses, max(np.abs(p.data - q.detach().numpy()).max() for p, q in pairs)


pairs = {
    "SGD": (SGD, torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    "Adam": (Adam, torch.optim.Adam, {"lr": 0.01}),
    "Adam, other settings": (
        Adam,
        torch.optim.Adam,
        {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1},
    ),
}
for name, (kind, kind_torch, options) in pairs.items():
    found, apart = curves(
        lambda parameters: kind(parameters, **options),
        lambda parameters: kind_torch(parameters, **options),
    )
    difference = np.abs(np.subtract(*found)).max()
    print(f"{name:21s} loss {found[0][0]:.3f} -> {found[0][-1]:.4f}", end="   ")
    print(f"largest difference of the losses {difference:.1e}, of the weights {apart:.1e}")
    assert difference < 1e-6, f"this is not the training of PyTorch's {kind_torch.__name__}"

# %% [markdown]
# ## Your weights in PyTorch
#
# The names and shapes are PyTorch's, so PyTorch can load your state. **Predict** the difference between the outputs.

# %% tags=["demo"]
predict("How large is the difference between the outputs?", "1e-16 or 0", "about 1e-7", "about 0.01")
manual_seed(0)
mine = Sequential(LinearLayer(3, 16), GELU(), LinearLayer(16, 2))
theirs = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
theirs = theirs.double()

print(mine)
print(theirs.load_state_dict(to_torch(mine)))
x = np.random.default_rng(0).normal(size=(5, 3))
difference = mine(x).data - theirs(torch.tensor(x)).detach().numpy()
print(f"largest difference of the outputs: {np.abs(difference).max():.1e}")

# %% [markdown] items="62 F47"
# ## Three ways to update
#
# You can often read that *the update is made in place so that the graph of the parameter survives*. But a leaf has no graph. **Predict** what happens in each of the three updates, in your engine and in PyTorch.

# %% tags=["demo"] items="62 F47"
def by_optimizer(layer):
    kind = SGD if isinstance(layer, Module) else torch.optim.SGD
    kind(layer.parameters(), lr=0.1).step()


def by_formula(layer):
    layer.weight = layer.weight - 0.1 * layer.weight.grad


def by_new_parameter(layer):
    kind = Parameter if isinstance(layer, Module) else torch.nn.Parameter
    layer.weight = kind(layer.weight.data - 0.1 * layer.weight.grad.data)


predict("How many of the three updates leave the parameter a leaf in the same memory?")
for update in (by_optimizer, by_formula, by_new_parameter):
    print(update.__name__)
    print("   yours:  ", try_update(LinearLayer(2, 1), np.ones((1, 2)), update))
    print("   PyTorch:", try_update(torch.nn.Linear(2, 1), torch.ones(1, 2), update))

# %% [markdown] items="62 F47"
# An update in place keeps the **object**. The module and the optimizer hold this one object, and every `state_dict` shares its memory. The formula gives a plain tensor with a history. For a registered parameter, a module accepts only another `Parameter` (or None). A new parameter is accepted, but the optimizer goes on moving the old one.

# %% [markdown]
# ## What cutting a batch changes
#
# Does cutting a batch change the step? Here are 32 rows in one piece, and in micro-batches of 12, 12 and 8. The measure is the error of the gradient, relative to its length. **Predict** the first three lines. The last line is the reason for micro-batches: what the graph of the loss keeps in memory.

# %% tags=["demo"]
def split_error(middle, divide_by_parts=False):
    """How far the gradient of micro-batches is from that of the whole batch."""
    generator = np.random.default_rng(6)
    x, y = MiniTensor(generator.normal(size=(32, 6))), MiniTensor(generator.normal(size=(32, 1)))
    gradients = []
    for micro_batch in (None, 12):
        manual_seed(5)
        model = Sequential(LinearLayer(6, 8), middle(), TanhLayer(), LinearLayer(8, 1))
        optimizer = SGD(model.parameters(), lr=0.0)
        if micro_batch and divide_by_parts:
            for rows in (slice(0, 12), slice(12, 24), slice(24, 32)):
                (mse_loss(model(x[rows]), y[rows]) / 3).backward()
        else:
            train_step(model, optimizer, mse_loss, x, y, micro_batch)
        parts = [parameter.grad.data.ravel() for parameter in model.parameters()]
        gradients.append(np.concatenate(parts))
    whole, cut = gradients
    return np.linalg.norm(cut - whole) / np.linalg.norm(whole)


predict("Each loss divided by 3: what is the relative error?")
print(f"each loss divided by 3:             {split_error(GELU, divide_by_parts=True):.1e}")
print(f"each loss by its share of the rows: {split_error(GELU):.1e}")
print(f"the same, with BatchNorm1d:         {split_error(lambda: BatchNorm1d(8)):.1e}")
wide = Sequential(LinearLayer(64, 256), GELU(), LinearLayer(256, 10))
kept = [kept_megabytes(wide(MiniTensor(np.ones((rows, 64))))) for rows in (1024, 128)]
print("kept by a graph of 1024 rows: {:.2f} MB; of 128 rows: {:.2f} MB".format(*kept))

# %% [markdown]
# With each part counted by its rows, you get the gradient of the whole batch, up to rounding. With batch normalization this is impossible: each part is normalized by its own mean and variance, so a different function is differentiated. No factor repairs that.

# %% [markdown]
# ## A whole training run beside PyTorch
#
# This comparison has batches in random order, normalization, GELU and weight decay. Clipping is left out, and dropout too: PyTorch draws other random numbers. Both get the same batches.

# %% tags=["demo"]
def networks():
    """The same network twice, with the same starting weights."""
    manual_seed(7)
    model = Sequential(LinearLayer(64, 32), BatchNorm1d(32), GELU(), LinearLayer(32, 10))
    model_torch = torch.nn.Sequential(
        torch.nn.Linear(64, 32), torch.nn.BatchNorm1d(32), torch.nn.GELU(), torch.nn.Linear(32, 10)
    ).double()
    model_torch.load_state_dict(to_torch(model))
    return model, model_torch


def torch_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


model, model_torch = networks()
optimizer = Adam(model.parameters(), lr=0.005, weight_decay=1e-3)
optimizer_torch = torch.optim.Adam(model_torch.parameters(), lr=0.005, weight_decay=1e-3)
losses, losses_torch = [], []
for _ in range(5):
    for x, y in loader:
        losses.append(train_step(model, optimizer, cross_entropy, x, y))
        x_torch, y_torch = torch.tensor(x.data), torch.tensor(y)
        losses_torch.append(torch_step(model_torch, optimizer_torch, x_torch, y_torch))

difference = np.abs(np.subtract(losses, losses_torch))
print(f"{len(losses)} steps, loss {losses[0]:.4f} -> {losses[-1]:.6f}", end="   ")
print(f"largest difference of the losses {difference.max():.1e}")
state_torch = model_torch.state_dict()
for name, tensor in model.state_dict().items():
    print(f"   {name:22s} {np.abs(tensor.data - state_torch[name].numpy()).max():.1e}")
assert difference.max() < 1e-6, "not PyTorch's training: look at Adam, BatchNorm1d, train_step"

# %% [markdown]
# The differences are rounding errors, in the running statistics too.
