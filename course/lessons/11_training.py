# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: nbgrader,tags,exercise,items,-all
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Training
#
# A network is trained in PyTorch on a few noisy points, far too long. After each epoch it is tried on other points. Whenever it does better there than ever before, its weights are kept: `best = model.state_dict()`. At the end the best weights are loaded again.

# %%
from autograder.student import hints, quiz, start_lesson

# %% tags=["engine"]
import math
import warnings

import numpy as np

# %% tags=["demo"]
import copy
import time

import matplotlib.pyplot as plt
import torch

plt.rcParams.update({"figure.figsize": (7, 4), "figure.facecolor": "white", "font.size": 11})
plt.rcParams.update({"axes.grid": True, "grid.alpha": 0.3})
torch.set_num_threads(1)  # steadier times on a busy machine


def noisy_wave(count, seed):
    """Points on a sine, with noise: two arrays of shape (count, 1)."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-2, 2, size=(count, 1))
    return x, np.sin(3 * x) + 0.5 * generator.normal(size=(count, 1))


def mse(prediction, target):
    return torch.nn.functional.mse_loss(prediction, target)


def best_of_training(keep, epochs=400):
    """The losses on the other points after each epoch, and the one after `best` was loaded."""
    x, y = (torch.tensor(array) for array in noisy_wave(20, seed=2))
    other_x, other_y = (torch.tensor(array) for array in noisy_wave(200, seed=9))
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(1, 40),
        torch.nn.ReLU(),
        torch.nn.Linear(40, 40),
        torch.nn.Tanh(),
        torch.nn.Linear(40, 1),
    ).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    losses, best = [], None
    for _ in range(epochs):
        optimizer.zero_grad()
        mse(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(mse(model(other_x), other_y).item())
        if losses[-1] == min(losses):
            best = keep(model)
    model.load_state_dict(best)
    with torch.no_grad():
        return losses, mse(model(other_x), other_y).item()


losses, loaded = best_of_training(keep=lambda model: model.state_dict())
print(f"loss on the other points: lowest {min(losses):.3f}, in epoch {np.argmin(losses)}", end="; ")
print(f"after the last epoch {losses[-1]:.3f}")

# %% [markdown]
# **Predict** the loss on the other points with the best weights loaded: the lowest, the last, or something else?

# %% tags=["demo"]
print(f"with the best weights loaded: {loaded:.3f}")

# %% [markdown]
# Nothing was kept. `state_dict` does not copy: it shows the memory of the weights, and the optimizer went on writing into it, **in place**. Nobody complains, because each part does what it says. Lesson 05 had a training loop of five lines. What stands behind the five lines is this lesson: what the parts promise each other, and what they do not. You will
#
# 1. build modules, which know their parameters by name, and save and load them;
# 2. write layers that behave differently in training and in evaluation, and tell `eval()` from `no_grad`;
# 3. write Adam, and see what its correction is for;
# 4. cut data into batches and batches into micro-batches without changing the gradient;
# 5. run a whole training, watch it live, and compare it with PyTorch step by step.
#
# Should an attempt break your engine, run the next cell again: it puts the engine back as it was.

# %%
start_lesson()

# %% [markdown] items="61"
# ## 1. Modules
#
# So far the weights of a network were a list, and the network a function that takes them one by one. With twenty layers nobody can keep track of that. PyTorch's answer is a class, `Module`: whoever assigns a parameter or another module to `self.something` has registered it. Then *all parameters* is a walk, and each has a name: the way that leads to it, such as
# `encoder.0.weight`.
#
# A `Parameter` is a leaf like any other. The class is only a mark, by which a module tells parameters from other tensors.

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
        if hasattr(tensor, "copy_"):  # from lesson 09 on: a write that is counted
            tensor.copy_(values)
        else:
            tensor.data[...] = values

# %% [markdown]
# The module itself. Read `__setattr__`: that is the whole registration. A *buffer* is a tensor that belongs to the state of a module, but is not trained; you will need some in section 3.

# %% tags=["engine"]
class Module:
    """The base of all models and layers. A subclass calls super().__init__() and defines forward.

    training: whether the module is in training mode
    """

    def __init__(self):
        vars(self).update(training=True, _parameters={}, _buffers={}, _modules={})

    def __setattr__(self, name, value):
        families = {"parameter": (Parameter, "_parameters"), "module": (Module, "_modules")}
        for word, (kind, place) in families.items():
            family = vars(self).get(place)
            if isinstance(value, kind):
                if family is None:
                    raise AttributeError(f"cannot assign {word} before Module.__init__() call")
                family[name] = value
            elif family and name in family:
                if value is not None:
                    given = type(value).__name__
                    raise TypeError(
                        f"cannot assign '{given}' as {word} '{name}' ({kind.__name__} or None expected)"
                    )
                del family[name]
        if name in vars(self).get("_buffers", ()):
            self._buffers[name] = value
        super().__setattr__(name, value)

    def register_buffer(self, name, tensor):
        """Add a tensor that is state, but not trained."""
        self._buffers[name] = tensor
        super().__setattr__(name, tensor)

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

    def modules(self):
        return (module for _, module in self.named_modules())

    def parameters(self):
        return (parameter for _, parameter in self.named_parameters())

    def eval(self):
        return self.train(False)

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def __repr__(self):
        lines = [f"({name}): {inner!r}" for name, inner in self._modules.items()]
        inside = "".join("\n" + line for line in lines).replace("\n", "\n  ")
        return f"{type(self).__name__}({inside}\n)" if lines else f"{type(self).__name__}()"

# %% [markdown] items="61"
# ### Exercise 1: what a module knows
#
# `module.named_modules()` walks through a module and all that is in it, and gives pairs `(name, module)`; the outermost has the name `""`. What a module owns itself stands in two dictionaries, by name: `module._parameters` and `module._buffers`. Write four methods:
#
# * `named_parameters` gives pairs of name and parameter, each parameter **once**, even if two modules share it;
# * `train` sets `training` everywhere;
# * `state_dict` gives all parameters *and* buffers by name, as detached tensors in the same memory;
# * `load_state_dict` writes values into the memory of the module, and refuses what does not fit.

# %% [markdown] tags=["hint"] exercise="module"
# The full name of a parameter: `f"{path}.{name}" if path else name`. Remember the parameters that you have met, in a set; two tensors are the same if they are the same object.

# %% [markdown] tags=["hint"] exercise="module"
# `state_dict` visits a shared module under each of its names: `self.named_modules(remove_duplicate=False)`. The entries are `tensor.detach()`.

# %% [markdown] tags=["hint"] exercise="module"
# `load_state_dict` needs no walk of its own: `self.state_dict()` shows the memory of the module, and `overwrite(tensor, values)` writes into it. Compare the two sets of names first, then the shapes, and write only when nothing is wrong.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "module", "locked": false, "schema_version": 3, "solution": true, "task": false}
def named_parameters(self, prefix=""):
    """Pairs (name, parameter) of the module and of all in it; a parameter that is shared comes once.

    They come in the order of named_modules() and, in each module, in that of _parameters.
    prefix: stands before each name, with a dot between; nothing does if it is ""

    >>> pair = Module()
    >>> pair.first, pair.inner = Parameter([1.0]), Module()
    >>> pair.inner.second = Parameter([2.0])
    >>> pair.inner.again = pair.first
    >>> [name for name, _ in pair.named_parameters()]
    ['first', 'inner.second']
    """
    ### BEGIN SOLUTION
    seen = set()
    for path, module in self.named_modules(prefix):
        for name, parameter in module._parameters.items():
            if parameter not in seen:
                seen.add(parameter)
                yield (f"{path}.{name}" if path else name), parameter
    ### END SOLUTION


def train(self, mode=True):
    """Set `training` of the module and of all in it to mode. Returns the module itself.

    >>> Module().train(False).training
    False
    """
    ### BEGIN SOLUTION
    for module in self.modules():
        module.training = mode
    return self
    ### END SOLUTION


def state_dict(self):
    """All parameters and buffers of the module and of all in it, as a dict from name to MiniTensor.

    The tensors are detached, in the memory of the module. What is shared stands under each name.

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


def load_state_dict(self, state):
    """Copy a state into the parameters and buffers of the module, which stay the same objects.

    state: dict from name to MiniTensor, such as state_dict() returns; it is not changed, and
        shares no memory with the module afterwards (unless it did before)
    Raises: RuntimeError, before anything is changed, if something does not fit. Its one text names
        all that does not fit, in any order:
        'Missing key(s) in state_dict: "a", "b"' with all names that state lacks,
        'Unexpected key(s) in state_dict: "c"' with all names that the module lacks, and
        'size mismatch for d' for each shape that differs.

    >>> layer = Module()
    >>> layer.weight = Parameter([1.0, 2.0])
    >>> layer.load_state_dict({"weight": MiniTensor([3.0, 4.0])})
    >>> layer.weight.data
    array([3., 4.])
    """
    ### BEGIN SOLUTION
    own, problems = self.state_dict(), []
    for words, names in (("Missing", own.keys() - state.keys()), ("Unexpected", state.keys() - own.keys())):
        if names:
            listed = ", ".join(f'"{name}"' for name in sorted(names))
            problems.append(f"{words} key(s) in state_dict: {listed}.")
    for name in own.keys() & state.keys():
        if own[name].shape != state[name].shape:
            problems.append(f"size mismatch for {name}: {state[name].shape} into {own[name].shape}.")
    if problems:
        raise RuntimeError("\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *problems]))
    for name, tensor in own.items():
        overwrite(tensor, state[name].data)
    ### END SOLUTION


Module.named_parameters = named_parameters
Module.train = train
Module.state_dict = state_dict
Module.load_state_dict = load_state_dict

# %% tags=["style:compact"] exercise="module"
def members(module, families, again, prefix=""):
    for path, part in module.named_modules(prefix, again):
        for family in families:
            yield from ((".".join(filter(None, (path, name))), tensor) for name, tensor in vars(part)[family].items())


def named_parameters(self, prefix=""):
    found = {}
    for name, parameter in members(self, ["_parameters"], True, prefix):
        found.setdefault(id(parameter), (name, parameter))
    return iter(found.values())


def train(self, mode=True):
    self.training = mode
    for inner in self._modules.values():
        inner.train(mode)
    return self


def state_dict(self):
    return {name: tensor.detach() for name, tensor in members(self, ["_parameters", "_buffers"], False)}


def load_state_dict(self, state):
    own = dict(members(self, ["_parameters", "_buffers"], False))
    missing, unexpected = [n for n in own if n not in state], [n for n in state if n not in own]
    text = 'Missing key(s) in state_dict: "' + '", "'.join(missing) + '". ' if missing else ""
    text += 'Unexpected key(s) in state_dict: "' + '", "'.join(unexpected) + '". ' if unexpected else ""
    text += " ".join(f"size mismatch for {n}" for n in own if n in state and own[n].shape != state[n].shape)
    if text:
        raise RuntimeError(text)
    for name in own:
        own[name].data[...] = state[name].data


Module.named_parameters, Module.train = named_parameters, train
Module.state_dict, Module.load_state_dict = state_dict, load_state_dict

# %% tags=["style:composed"] exercise="module"
def named_parameters(self, prefix=""):
    met = []

    def visit(module, before):
        pairs = [(before + name, parameter) for name, parameter in module._parameters.items()]
        for name, inner in module._modules.items():
            pairs += visit(inner, f"{before}{name}.")
        return pairs

    for name, parameter in visit(self, f"{prefix}." if prefix else ""):
        if not any(parameter is other for other in met):
            met.append(parameter)
            yield name, parameter


def train(self, mode=True):
    for _, module in self.named_modules():
        module.training = mode
    return self


def state_dict(self):
    state = {name: MiniTensor(tensor.data) for name, tensor in self._parameters.items()}
    state.update({name: MiniTensor(tensor.data) for name, tensor in self._buffers.items()})
    for name, inner in self._modules.items():
        state.update({f"{name}.{rest}": tensor for rest, tensor in inner.state_dict().items()})
    return state


def load_state_dict(self, state):
    own = self.state_dict()
    problems = []
    missing, unexpected = sorted(set(own) - set(state)), sorted(set(state) - set(own))
    if missing:
        problems.append("Missing key(s) in state_dict: " + ", ".join('"' + name + '"' for name in missing))
    if unexpected:
        problems.append("Unexpected key(s) in state_dict: " + ", ".join('"' + name + '"' for name in unexpected))
    problems += [f"size mismatch for {n}" for n in own if n in state and state[n].data.shape != own[n].data.shape]
    if problems:
        raise RuntimeError("; ".join(problems))
    for name, tensor in own.items():
        np.copyto(tensor.data, state[name].data)


Module.named_parameters = named_parameters
Module.train = train
Module.state_dict = state_dict
Module.load_state_dict = load_state_dict

# %% [markdown]
# Two small modules to try it on: a scale and an offset with a count of its calls, and two of them one after the other.

# %%
class Affine(Module):
    """weight * x + bias, and how often it was used."""

    def __init__(self, size, weight=1.0):
        super().__init__()
        self.weight = Parameter(np.full(size, weight))
        self.bias = Parameter(np.zeros(size))
        self.register_buffer("calls", MiniTensor(0.0))

    def forward(self, x):
        self.calls = MiniTensor(self.calls.data + 1)
        return self.weight * x + self.bias


class Twice(Module):
    """Two of them, or one of them two times."""

    def __init__(self, size, shared=False):
        super().__init__()
        self.scale = Parameter(2.0)
        self.first = Affine(size, 3.0)
        self.second = self.first if shared else Affine(size, 4.0)

    def forward(self, x):
        return self.second(self.first(x)) * self.scale

# %%
print(Twice(2))

# %% nbgrader={"grade": true, "grade_id": "test_module", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
def names_of(module, **options):
    return [name for name, _ in module.named_parameters(**options)]


def complaint_of(module, state):
    """What load_state_dict says."""
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        return str(error)
    return "no RuntimeError"


MiniTensor.put = lambda self, values: self.data.__setitem__(..., values)

model = Twice(2)
right = ["scale", "first.weight", "first.bias", "second.weight", "second.bias"]
assert names_of(model) == right, f"the names should be {right}, not {names_of(model)}"
assert all(isinstance(parameter, Parameter) for parameter in model.parameters())
assert names_of(Twice(2, shared=True)) == right[:3], "a parameter that is shared comes once"

assert model.train(False) is model, "train returns the module"
assert not model.training, "train(False) sets training to False"
assert not (model.first.training or model.second.training), "train(False) reaches the modules inside"
model.train()
model.train()
assert model.training and model.second.training, "train() sets training to True everywhere"

state = model.state_dict()
both = {*right, "first.calls", "second.calls"}
assert set(state) == both, f"parameters and buffers, by their names: {sorted(both)}"
assert all(isinstance(tensor, MiniTensor) for tensor in state.values()), "the values are MiniTensors"
model(MiniTensor([1.0, 1.0])).sum().backward()
assert not state["scale"].requires_grad, "the tensors of a state are detached"
model.first.weight.put([7.0, 8.0])
assert np.allclose(state["first.weight"].data, [7.0, 8.0]), "a state shows the memory of the module"

other = Twice(2)
kept = other.first.weight
other.load_state_dict(model.state_dict())
assert np.allclose(other.first.weight.data, [7.0, 8.0]), "the values must arrive in the parameters"
assert other.first.weight is kept, "a parameter stays the same object"
model.first.weight.put([0.0, 0.0])
assert np.allclose(other.first.weight.data, [7.0, 8.0]), "loading copies: no memory is shared"
less = {name: tensor for name, tensor in state.items() if name != "first.bias"}
said = complaint_of(other, less)
assert 'Missing key(s) in state_dict: "first.bias"' in said, f"first.bias is missing, but: {said}"
more = {**state, "old": MiniTensor(1.0)}
said = complaint_of(other, more)
assert 'Unexpected key(s) in state_dict: "old"' in said, f"the module has no `old`, but: {said}"
long = {**state, "second.weight": MiniTensor([1.0, 2.0, 3.0])}
said = complaint_of(other, long)
assert "size mismatch for second.weight" in said, f"(3,) does not fit into (2,), but: {said}"
### BEGIN HIDDEN TESTS
assert names_of(model, prefix="net") == [f"net.{name}" for name in right]
outer = Module()
outer.a, outer.b = Twice(3), Parameter([1.0])
outer.a.first.bias = outer.b
assert names_of(outer) == ["b", "a.scale", "a.first.weight", "a.second.weight", "a.second.bias"]
outer.eval()
assert not outer.a.second.training and outer.a.first.train().training and not outer.a.training
tied = Twice(2, shared=True)
assert set(tied.state_dict()) == set(state), "what is shared stands under each of its names"
given = {**state, "scale": MiniTensor(9.0)}
tied.load_state_dict(given)
assert set(given) == set(state) and given["scale"].item() == 9.0, "the state that is given is only read"
assert np.allclose(tied.scale.data, 9.0) and tied.scale.shape == () and tied.scale.requires_grad
assert np.allclose(state["scale"].data, 2.0), "the state that is loaded must stay as it is"
before = np.array(other.scale.data)
for wrong in (less, more, long, {**state, "scale": MiniTensor([5.0])}, {}):
    text = complaint_of(other, {name: MiniTensor(t.data + 50) for name, t in wrong.items()})
    assert text != "no RuntimeError", "a state that does not fit must be refused"
    assert np.allclose(other.scale.data, before), "nothing may be changed by a state that does not fit"
assert "size mismatch for scale" in complaint_of(other, {**state, "scale": MiniTensor([5.0])})
said = complaint_of(other, {"older": MiniTensor(1.0), **less, "scale": MiniTensor([5.0])})
for phrase in ('"first.bias"', '"older"', "size mismatch for scale"):
    assert phrase in said, "the text names all that does not fit"
said = complaint_of(other, {})
assert said.count("Missing key(s)") == 1 and all(f'"{name}"' in said for name in state), "one list of all names"
alone = Affine(2)
alone(MiniTensor([1.0, 2.0]))
fresh = Affine(2, 5.0)
fresh.load_state_dict(alone.state_dict())
assert np.allclose(fresh.calls.data, 1.0) and np.allclose(fresh.weight.data, 1.0), "buffers too"
### END HIDDEN TESTS

# %% [markdown]
# Back to the beginning: what would have kept the best weights? The same training three times.

# %% tags=["demo"]
ways = {
    "state_dict()": lambda model: model.state_dict(),
    "dict(state_dict())": lambda model: dict(model.state_dict()),
    "copy.deepcopy(state_dict())": lambda model: copy.deepcopy(model.state_dict()),
}
for name, keep in ways.items():
    losses, loaded = best_of_training(keep)
    print(f"{name:28s} lowest {min(losses):.3f}   after loading {loaded:.3f}")

# %% [markdown]
# A new dictionary with the old tensors is no copy either. In your engine: `{name: MiniTensor(tensor.data.copy()) for name, tensor in model.state_dict().items()}`.
#
# There is another quiet mistake. Only a parameter or a module is registered when it is assigned; a list of modules is neither. **Predict** which of these two models in PyTorch has parameters, and what training does with the other.

# %% tags=["demo"]
class InAList(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)]


class InAModuleList(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)])


for kind in (InAList, InAModuleList):
    print(f"{kind.__name__:14s}", [name for name, _ in kind().named_parameters()])
try:
    torch.optim.SGD(InAList().parameters(), lr=0.1)
except ValueError as error:
    print("ValueError:", error)

# %% [markdown] items="61"
# Here the optimizer noticed, since the list of parameters was empty. With one registered layer beside the list it would not: the layers in the list would keep their random starting weights for ever. In PyTorch a `ModuleList` or a `Sequential` registers what it holds.
#
# ## 2. Layers
#
# Most layers are short. `LinearLayer` is PyTorch's `nn.Linear` (your engine already has a Function called `Linear`). Its weight has PyTorch's shape, `(outputs, inputs)`, and its starting values come from PyTorch's range. All random numbers of the engine come from one generator, which `manual_seed` sets.

# %% tags=["engine"]
default_generator = np.random.default_rng()


def manual_seed(seed):
    """Let the random numbers of layers and loaders start anew."""
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

# %% tags=["engine"] items="61"
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
    """As in PyTorch: exact, or with approximate="tanh" the usual shortcut."""
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
# Since the names and shapes are PyTorch's, a state can be loaded on the other side. **Predict** the difference of the outputs.

# %% tags=["demo"]
manual_seed(0)
mine = Sequential(LinearLayer(3, 16), GELU(), LinearLayer(16, 2))
theirs = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
theirs = theirs.double()


def to_torch(model):
    """A state for PyTorch, copied."""
    return {name: torch.tensor(tensor.data) for name, tensor in model.state_dict().items()}


print(mine)
print(theirs.load_state_dict(to_torch(mine)))
x = np.random.default_rng(0).normal(size=(5, 3))
difference = mine(x).data - theirs(torch.tensor(x)).detach().numpy()
print(f"largest difference of the outputs: {np.abs(difference).max():.1e}")

# %% [markdown]
# `mse_loss` needs two tensors of one shape. Predictions often have the shape `(8, 1)` and targets `(8,)`. **Predict** the loss of predictions that are right in every entry.

# %% tags=["demo"]
target = np.arange(8.0)
right_predictions = MiniTensor(target.reshape(8, 1))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print("yours:  ", mse_loss(right_predictions, target).item())
    print("PyTorch:", mse(torch.tensor(target.reshape(8, 1)), torch.tensor(target)).item())
    print("shape of the differences:", (right_predictions - target).shape)
    print(len(caught), "warnings, such as:", str(caught[0].message)[:68], "...")
    guess = MiniTensor(np.full((8, 1), target.mean()), requires_grad=True)
    mse_loss(guess, target).backward()
print("shaped alike:", mse_loss(right_predictions, target.reshape(8, 1)).item())
print("gradient of the wrong loss where all predictions are the mean:", np.abs(guess.grad.data).max())

# %% [markdown]
# All predictions are right, and the loss is 10.5. A column and a row are broadcast to a square: each prediction is compared with every target. The lowest point of that loss is where all predictions are the mean of the targets. It is only a warning, in PyTorch and here; read it when you see it.
#
# ### Exercise 2: Dropout
#
# In training, `Dropout(p)` sets each entry to 0 with probability `p`, anew in every call, and multiplies the rest so that the *expected* output is the input. In evaluation it returns its input. **Which factor is that?** Think of 100 entries of 1 and `p = 0.75`: how many are left, and what must they be?
#
# Write `forward`. Random numbers come from `default_generator`.

# %% [markdown] tags=["hint"] exercise="dropout"
# The rest is multiplied by `1 / (1 - p)`. `default_generator.random(x.shape) >= p` is True for a share of `1 - p` of the entries.

# %% [markdown] tags=["hint"] exercise="dropout"
# Multiply the tensor by an array that holds 0 or `1 / (1 - p)`. Then the rule of the product takes care of the gradient. With `p = 1` the factor does not exist: return zeros that are still recorded, such as `x * 0.0`.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
class Dropout(Module):
    """In training, each entry is 0 with probability p, and x / (1 - p) otherwise; in evaluation x.

    x: MiniTensor of any shape; the result has the same shape. Which entries are kept is drawn
        from default_generator, in each call anew and for each entry by itself.
    p: 0 keeps all; 1 keeps none: all entries are 0, and so is the gradient
    The gradient is 0 where the entry was dropped, and 1 / (1 - p) times what arrives elsewhere.

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
        ### BEGIN SOLUTION
        if not self.training:
            return x
        if self.p == 1:
            return x * 0.0
        kept = default_generator.random(x.shape) >= self.p
        return x * (kept / (1 - self.p))
        ### END SOLUTION

# %% tags=["style:compact"] exercise="dropout"
class Dropout(Module):
    def __init__(self, p=0.5):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p

    def forward(self, x):
        x, share = as_tensor(x), 1 - self.p
        scale = 1 / share if share else 0.0
        return x * np.where(default_generator.uniform(size=x.shape) < share, scale, 0.0) if self.training else x

# %% tags=["style:composed"] exercise="dropout"
class DropEntries(Function):
    @staticmethod
    def forward(ctx, a, p):
        ctx.factor = default_generator.binomial(1, 1 - p, size=a.shape) / max(1 - p, 1e-300)
        return a * ctx.factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor


class Dropout(Module):
    def __init__(self, p=0.5):
        super().__init__()
        if not (p >= 0 and p <= 1):
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p

    def forward(self, x):
        if self.training and self.p:
            return DropEntries.apply(x, p=self.p)
        return as_tensor(x)

# %% nbgrader={"grade": true, "grade_id": "test_dropout", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
def try_dropout(layer, array):
    """The output for an array and the gradient for a random cotangent, both as factors."""
    x = MiniTensor(array.copy(), requires_grad=True)
    y = layer(x)
    assert y.shape == array.shape, f"the shape should stay {array.shape}, not become {y.shape}"
    assert np.array_equal(x.data, array), "the input must not be changed"
    cotangent = np.random.default_rng(8).uniform(1, 2, size=array.shape)
    y.backward(cotangent)
    assert x.grad is not None, "a gradient must arrive at the input"
    return y.data / array, x.grad.data / cotangent


array = np.random.default_rng(9).uniform(1, 2, size=(50, 40))
layer = Dropout(0.75)
factors, slopes = try_dropout(layer, array)
kept = np.abs(factors) > 0
for axis in (0, 1):  # the shares that are kept of each column, then of each row
    assert kept.mean(axis=axis).std() < 0.2, "entries are dropped one by one, not by rows or columns"
assert abs(kept.mean() - 0.25) < 0.06, f"a quarter should be kept, not {kept.mean():.2f}"
assert np.allclose(factors[kept], 4.0), "with p = 0.75, what is kept is multiplied by 4"
assert np.allclose(slopes, factors), "the gradient is dropped and scaled like the entries themselves"
again, _ = try_dropout(layer, array)
assert not np.allclose(again, factors), "each call draws anew"
layer.eval()
assert np.allclose(try_dropout(layer, array), 1.0), "in evaluation nothing is dropped or scaled"
### BEGIN HIDDEN TESTS
layer.train()
for p, shape in ((0.2, (3000,)), (0.5, (10, 20, 15)), (0.9, (100, 1, 60))):
    factors, slopes = try_dropout(Dropout(p), np.full(shape, 3.0))
    left = np.abs(factors) > 0
    assert np.allclose(factors[left], 1 / (1 - p)) and np.allclose(slopes, factors)
    assert abs(left.mean() - (1 - p)) < 0.06, "p is the share that is dropped"
grid, _ = try_dropout(Dropout(0.5), np.ones((60, 60)))
shares = np.concatenate([grid.mean(axis=0), grid.mean(axis=1)])
assert 0.02 < shares.std() < 0.3, "entries are dropped one by one, not by rows or columns"
assert np.allclose(try_dropout(Dropout(0.0), array), 1.0), "p = 0 keeps everything"
assert np.allclose(try_dropout(Dropout(1.0), array), 0.0), "p = 1: zeros, with a gradient of 0"
negative, _ = try_dropout(Dropout(0.5), -array)
assert 0.4 < (negative == 0).mean() < 0.6 and np.allclose(negative[negative > 0], 2.0)
drawn = []
for _ in range(2):
    manual_seed(3)
    drawn.append(try_dropout(Dropout(0.5), array)[0])
assert np.array_equal(*drawn), "the random numbers should come from default_generator"
### END HIDDEN TESTS

# %% [markdown]
# Why the factor? **Predict** the last column: what would the next layer get in evaluation, compared with training, if nothing were scaled?

# %% tags=["demo"]
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
# In training and in evaluation the next layer gets numbers of the same size on average. Without the factor it would be trained on small numbers and asked about large ones.

# %% [markdown] items="84"
# ## 3. A layer with a memory
#
# Batch normalization gives each column of a batch mean 0 and variance 1, then scales and shifts it by parameters. Mean and variance are those of the batch, so each row's result depends on the other rows. In evaluation that will not do: an answer must not depend on who else is asked. There the layer uses *running* statistics, which it has gathered in
# training.
#
# ### Exercise 3: BatchNorm1d
#
# Write `forward` for `x` of shape `(rows, features)`. In training:
#
# * `mean` and `variance` over the rows, the variance divided by `rows`;
# * the result is `(x - mean) / sqrt(variance + eps) * weight + bias`. Mean and variance are computed from `x`, so the gradient flows through them as well: use operations of your engine;
# * then the buffers are updated, in place and unrecorded: `running = (1 - momentum) * running + momentum * new`, where `new` is the mean for `running_mean`, and for `running_var` the variance divided by `rows - 1`; `num_batches_tracked` grows by 1. (`overwrite` does what is wanted.)
#
# In evaluation the running statistics take the place of mean and variance, and nothing is updated. The numbers should be PyTorch's. That the variance is divided by `rows` in one place and by `rows - 1` in the other is no misprint: PyTorch does both.

# %% [markdown] tags=["hint"] exercise="batchnorm"
# `mean = x.mean(dim=0)` has shape (features,) and is stretched over the rows. `centered = x - mean`, `variance = (centered * centered).mean(dim=0)`.

# %% [markdown] tags=["hint"] exercise="batchnorm"
# There is no `sqrt`: `(variance + self.eps) ** 0.5`.

# %% [markdown] tags=["hint"] exercise="batchnorm"
# For the buffers use plain arrays: `mean.data`, and `variance.data * rows / (rows - 1)`. For example `overwrite(self.running_mean, (1 - m) * self.running_mean.data + m * mean.data)`.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "batchnorm", "locked": false, "schema_version": 3, "solution": true, "task": false}
class BatchNorm1d(Module):
    """Normalizes each column over the rows of a batch, then scales and shifts it.

    x: MiniTensor of shape (rows, features); the result has the same shape
    weight, bias: Parameters of shape (features,), ones and zeros at first
    running_mean, running_var, num_batches_tracked: buffers of shape (features,), (features,), ()
    Raises: ValueError for a single row in training; its text begins with
        "Expected more than 1 value per channel when training". Nothing is updated then.

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

    def forward(self, x):
        x = as_tensor(x)
        ### BEGIN SOLUTION
        if not self.training:
            mean, variance = self.running_mean, self.running_var
            return (x - mean) / (variance + self.eps) ** 0.5 * self.weight + self.bias
        rows = x.shape[0]
        if rows == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {x.shape}")
        mean = x.mean(dim=0)
        centered = x - mean
        variance = (centered * centered).mean(dim=0)
        unbiased = variance.data * rows / (rows - 1)
        for running, new in ((self.running_mean, mean.data), (self.running_var, unbiased)):
            overwrite(running, (1 - self.momentum) * running.data + self.momentum * new)
        overwrite(self.num_batches_tracked, self.num_batches_tracked.data + 1)
        return centered / (variance + self.eps) ** 0.5 * self.weight + self.bias
        ### END SOLUTION

# %% tags=["style:compact"] exercise="batchnorm"
class BatchNorm1d(Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight, self.bias = Parameter(np.ones(num_features)), Parameter(np.zeros(num_features))
        for name, value in (("mean", np.zeros(num_features)), ("var", np.ones(num_features))):
            self.register_buffer(f"running_{name}", MiniTensor(value))
        self.register_buffer("num_batches_tracked", MiniTensor(0.0))

    def forward(self, x):
        x = as_tensor(x)
        mean, var = self.running_mean.data, self.running_var.data
        if self.training:
            if len(x.data) < 2:
                raise ValueError("Expected more than 1 value per channel when training")
            mean, m = x.mean(0), self.momentum
            var = (x * x).mean(0) - mean * mean
            self.running_mean.data[...] += m * (mean.data - self.running_mean.data)
            self.running_var.data[...] += m * (x.data.var(axis=0, ddof=1) - self.running_var.data)
            self.num_batches_tracked.data += 1
        return (x - mean) * (var + self.eps) ** -0.5 * self.weight + self.bias

# %% tags=["style:composed"] exercise="batchnorm"
class Normalize(Function):
    """With a rule of its own."""

    @staticmethod
    def forward(ctx, x, eps):
        deviation = np.sqrt(x.var(axis=0) + eps)
        output = (x - x.mean(axis=0)) / deviation
        ctx.save_for_backward(output, deviation)
        return output

    @staticmethod
    def backward(ctx, grad):
        output, deviation = ctx.saved_tensors
        return (grad - grad.mean(axis=0) - output * (grad * output).mean(axis=0)) / deviation


class BatchNorm1d(Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = Parameter(np.ones(num_features))
        self.bias = Parameter(np.zeros(num_features))
        self.register_buffer("running_mean", MiniTensor(np.zeros(num_features)))
        self.register_buffer("running_var", MiniTensor(np.ones(num_features)))
        self.register_buffer("num_batches_tracked", MiniTensor(0.0))

    def update(self, x):
        count = x.shape[0]
        if count <= 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {x.shape}")
        old, new = 1 - self.momentum, self.momentum
        overwrite(self.running_mean, old * self.running_mean.data + new * np.mean(x, axis=0))
        overwrite(self.running_var, old * self.running_var.data + new * np.var(x, axis=0, ddof=1))
        overwrite(self.num_batches_tracked, self.num_batches_tracked.data + 1)

    def forward(self, x):
        x = as_tensor(x)
        if self.training:
            self.update(x.data)
            normal = Normalize.apply(x, eps=self.eps)
        else:
            normal = (x - self.running_mean) / MiniTensor(np.sqrt(self.running_var.data + self.eps))
        return normal * self.weight + self.bias

# %% nbgrader={"grade": true, "grade_id": "test_batchnorm", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
MiniTensor.put = lambda self, values: self.data.__setitem__(..., values)


def close(found, wanted, what):
    found = None if found is None else found.data
    assert found is not None, f"{what}: nothing has arrived"
    assert np.shape(found) == np.shape(wanted), f"{what}: the shape should be {np.shape(wanted)}"
    assert np.allclose(found, wanted), f"{what} should be\n{np.array(wanted)}\nnot\n{found}"


def try_training(layer, rows, weight, bias, eps=1e-5, momentum=0.1):
    """One batch in training: the result, all gradients for a random cotangent, all buffers."""
    layer.weight.put(weight)
    layer.bias.put(bias)
    buffers = "running_mean", "running_var", "num_batches_tracked"
    mean, variance, count = [np.array(getattr(layer, name).data) for name in buffers]
    x = MiniTensor(rows, requires_grad=True)
    y = layer(x)
    deviation = np.sqrt(rows.var(axis=0) + eps)
    normal = (rows - rows.mean(axis=0)) / deviation
    close(y, normal * weight + bias, "the result in training")

    grad = np.random.default_rng(12).normal(size=rows.shape)
    y.backward(grad)
    inner = grad * weight
    inner = inner - inner.mean(axis=0) - normal * (inner * normal).mean(axis=0)
    close(x.grad, inner / deviation, "the gradient of x, also through mean and variance,")
    close(layer.weight.grad, (grad * normal).sum(axis=0), "the gradient of weight")
    close(layer.bias.grad, grad.sum(axis=0), "the gradient of bias")
    layer.zero_grad()

    kept = 1 - momentum
    new = rows.var(axis=0, ddof=1)
    close(layer.running_mean, kept * mean + momentum * rows.mean(axis=0), "running_mean")
    close(layer.running_var, kept * variance + momentum * new, "running_var")
    close(layer.num_batches_tracked, count + 1, "num_batches_tracked")
    for buffer in (layer.running_mean, layer.running_var):
        assert not buffer.requires_grad, "the buffers are updated unrecorded, by plain numbers"


layer = BatchNorm1d(2, eps=0.5)
rows = np.array([[1.0, 10.0], [3.0, 30.0], [8.0, -10.0]])
try_training(layer, rows, [2.0, -3.0], [5.0, -5.0], eps=0.5)
try_training(layer, rows[1:] * 2, [1.0, 0.5], [0.0, 1.0], eps=0.5)

mean, variance = np.array(layer.running_mean.data), np.array(layer.running_var.data)
wanted = (rows[:1] - mean) / np.sqrt(variance + 0.5) * [1.0, 0.5] + [0.0, 1.0]
found = layer.eval()(MiniTensor(rows[:1]))
close(layer.running_mean, mean, "running_mean, which evaluation must not change,")
close(found, wanted, "the result for one row in evaluation")
### BEGIN HIDDEN TESTS
close(layer.running_var, variance, "running_var after evaluation")
close(layer.num_batches_tracked, 2.0, "num_batches_tracked after evaluation")
leaf = MiniTensor(rows, requires_grad=True)
cotangent = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
layer(leaf).backward(cotangent)
close(leaf.grad, cotangent * [1.0, 0.5] / np.sqrt(variance + 0.5), "the gradient of x in evaluation")
close(layer.bias.grad, [9.0, 12.0], "the gradient of bias in evaluation")
shown = layer.state_dict()["running_mean"], layer.state_dict()["running_var"]
layer.train()
with no_grad():
    assert not layer(MiniTensor(rows[:2])).requires_grad
close(layer.running_mean, 0.9 * mean + 0.1 * rows[:2].mean(axis=0), "running_mean, unrecorded")
close(shown[0], layer.running_mean.data, "running_mean, updated in place: a state shows it; it")
close(shown[1], layer.running_var.data, "running_var, updated in place: a state shows it; it")
before = np.array(layer.running_mean.data)
try:
    layer(MiniTensor(rows[:1] + 50))
    said = "no ValueError"
except ValueError as error:
    said = str(error)
assert said.startswith("Expected more than 1 value per channel when training"), said
close(layer.num_batches_tracked, 3.0, "num_batches_tracked after an error")
close(layer.running_mean, before, "running_mean after an error")
draws = np.random.default_rng(13)
slow = BatchNorm1d(3, eps=0.5, momentum=0.25)
for count in (4, 2, 7):
    weight, bias = draws.normal(size=(2, 3))
    try_training(slow, draws.normal(size=(count, 3)), weight, bias, eps=0.5, momentum=0.25)
means, variances = np.array(slow.running_mean.data), np.array(slow.running_var.data)
wanted = (rows[:, [0, 0, 1]] - means) / np.sqrt(variances + 0.5) * weight + bias
close(slow.eval()(MiniTensor(rows[:, [0, 0, 1]])), wanted, "the result in evaluation, with eps 0.5")
try_training(BatchNorm1d(1), draws.normal(size=(5, 1)), [1.5], [-2.0])
try_training(BatchNorm1d(2), rows * 1e-3, [1.0, 2.0], [0.0, 1.0])  # eps is 1e-5 if nothing is said
assert sorted(name for name, _ in slow.named_parameters()) == ["bias", "weight"]
assert len(slow.state_dict()) == 5
leaf = MiniTensor(rows, requires_grad=True)
(BatchNorm1d(2)(leaf) * leaf).backward(cotangent)
normal = (rows - rows.mean(axis=0)) / np.sqrt(rows.var(axis=0) + 1e-5)
inner = cotangent * rows
inner = inner - inner.mean(axis=0) - normal * (inner * normal).mean(axis=0)
close(leaf.grad, inner / np.sqrt(rows.var(axis=0) + 1e-5) + cotangent * normal, "x with another use")
### END HIDDEN TESTS

# %% [markdown]
# Beside PyTorch: five batches of different sizes.

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
# The gradient of one row reaches the others. In the picture, find the ways by which it comes from the result to `x`.

# %% tags=["demo"]
from mini_autograd.widgets import explore, monitor

x = MiniTensor([[1.0, 5.0], [3.0, 4.0], [8.0, 0.0]], requires_grad=True)
explore(BatchNorm1d(2)(x))

# %% [markdown]
# There are three: straight ahead, through the mean, and through the variance, which itself was made of `x` and of the mean. (If you follow single arrows you will find more, depending on how you wrote it.)
#
# A puzzle: a layer with a bias stands in front of the normalization. **Predict** the gradient of that bias.

# %%
manual_seed(1)
layer = LinearLayer(4, 3)
(BatchNorm1d(3)(layer(np.random.default_rng(2).normal(size=(6, 4)))).tanh() ** 2).sum().backward()
print("gradient of the weight:", np.abs(layer.weight.grad.data).max().round(3), "at most")
print("gradient of the bias:  ", np.abs(layer.bias.grad.data).max().round(12))

# %% [markdown] items="84"
# The mean takes away what the bias adds. That is why such layers are often made with `bias=False`.
#
# ### eval() and no_grad, once more
#
# In lesson 07 you saw that `eval()` and `no_grad` are two things, on a model with Dropout. Now the model remembers as well. **Predict** the four lines before you run the cell, above all the column `changed`: does a forward pass change the model?

# %% tags=["demo"] items="84"
def kept_arrays(output):
    """The megabytes that the graph behind an output has saved; each array counts once."""
    sizes = {}
    for node in topological_order(output.grad_fn) if output.requires_grad else []:
        for array in node.saved_tensors:
            owner = array if array.base is None else array.base
            sizes[id(owner)] = owner.nbytes
    return sum(sizes.values()) / 1e6


def try_mode(label, training, recording, x):
    manual_seed(2)
    model = Sequential(LinearLayer(50, 400), BatchNorm1d(400), ReLU(), Dropout(0.5))
    model.train(training)
    before = {name: tensor.data.copy() for name, tensor in model.state_dict().items()}
    times = []
    with set_grad_enabled(recording):
        for _ in range(7):
            start = time.perf_counter()
            outputs = model(x)
            times.append(time.perf_counter() - start)
        same = np.array_equal(outputs.data, model(x).data)
    after = model.state_dict()
    changed = [name for name in after if not np.array_equal(after[name].data, before[name])]
    print(f"{label:20s} recorded {outputs.requires_grad!s:5s} twice the same {same!s:5s}", end=" ")
    print(f"changed: {len(changed)}   saved {kept_arrays(outputs):5.2f} MB", end="   ")
    print(f"{1000 * np.median(times):4.1f} ms")


x = MiniTensor(np.random.default_rng(3).normal(size=(500, 50)))
try_mode("train()", True, True, x)
try_mode("train() and no_grad", True, False, x)
try_mode("eval()", False, True, x)
try_mode("eval() and no_grad", False, False, x)

# %% [markdown] items="84"
# `no_grad` decides what is recorded and saved. The mode decides what is computed, and whether the three buffers move. It also has a part in the memory: in evaluation, Dropout and BatchNorm have less to save. But only the last line saves nothing *and* gives the answer that you want. (The times depend on the mode, which does more or less work; what recording costs is too little to be seen beside it.)
#
# How bad is the second line? A model is trained, then tried on other data ten times, with `no_grad` and without `eval()`. No optimizer runs. **Predict** whether the model is the same afterwards.

# %% tags=["demo"] items="84"
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

# %% [markdown] items="84"
# Ten forward passes have spoiled the model. No gradient was needed for that; a buffer is changed by looking.

# %% [markdown] items="62 F47"
# ## 4. Optimizers
#
# In lesson 05 your optimizer did everything itself. Here what all optimizers share stands in a base class: it passes over parameters without gradient, keeps a `state` for each, adds the *weight decay* to the gradient, and writes the result in place. What is left to an optimizer is one formula. Read `SGD`:

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


class SGD(Optimizer):
    """Gradient descent, with momentum if wanted."""

    def __init__(self, parameters, lr=1e-3, momentum=0.0, *, weight_decay=0.0):
        super().__init__(parameters, lr, weight_decay)
        self.momentum = momentum

    def change(self, gradient, state):
        state["buffer"] = self.momentum * state.get("buffer", 0.0) + gradient
        return self.lr * state["buffer"]

# %% [markdown] items="62 F47"
# One sentence that is often read: *the update is made in place so that the graph of the parameter survives*. A leaf has no graph. **Predict** what happens in each of the three updates, in your engine and in PyTorch.

# %% tags=["demo"] items="62 F47"
def try_update(layer, update):
    """Whether the layer has the same parameter afterwards, as a leaf in the same memory."""
    before = layer.weight, layer.weight.detach()
    (layer(np.ones((1, 2))) if isinstance(layer, Module) else layer(torch.ones(1, 2))).sum().backward()
    try:
        update(layer)
    except TypeError as error:
        return f"TypeError: {error}"
    same_memory = bool((layer.weight.detach().data == before[1].data).all())
    after = layer.weight
    return f"same object {after is before[0]}, same memory {same_memory}, leaf {after.is_leaf}"


def by_optimizer(layer):
    kind = SGD if isinstance(layer, Module) else torch.optim.SGD
    kind(layer.parameters(), lr=0.1).step()


def by_formula(layer):
    layer.weight = layer.weight - 0.1 * layer.weight.grad


def by_new_parameter(layer):
    kind = Parameter if isinstance(layer, Module) else torch.nn.Parameter
    layer.weight = kind(layer.weight.data - 0.1 * layer.weight.grad.data)


for update in (by_optimizer, by_formula, by_new_parameter):
    print(update.__name__)
    print("   yours:  ", try_update(LinearLayer(2, 1), update))
    print("   PyTorch:", try_update(torch.nn.Linear(2, 1), update))

# %% [markdown] items="62 F47"
# What is preserved is the **object**: the module, the optimizer and its state, whoever holds a `state_dict`, they all know this one tensor. The formula gives a result with a history, which a module refuses. A new parameter would be accepted, and the optimizer would go on moving the old one.
#
# ### Exercise 4: Adam
#
# Adam keeps two running means for each parameter, both of which start at 0: `mean` of the gradient, and `square` of its square, entry by entry.
#
# > `mean = beta1 * mean + (1 - beta1) * gradient`
# >
# > `square = beta2 * square + (1 - beta2) * gradient**2`
#
# Since they start at 0, both are too small in the beginning. After `t` steps the weights in `mean` sum to `1 - beta1**t`, so dividing by that repairs it; the same with `beta2` for `square`. The change is
#
# > `lr * corrected mean / (sqrt(corrected square) + eps)`.
#
# **Predict** the size of the very first change, for a gradient of 1000 and for one of 0.001. Then write `change`. It gets an array and the parameter's own `state`, a dictionary, empty at first. Only your method uses it.

# %% [markdown] tags=["hint"] exercise="adam"
# `t` counts the steps of this parameter: `state["step"] = state.get("step", 0) + 1`.

# %% [markdown] tags=["hint"] exercise="adam"
# `state["mean"] = beta1 * state.get("mean", 0.0) + (1 - beta1) * gradient`. The corrected mean is `state["mean"] / (1 - beta1 ** state["step"])`; do not put it back into the state.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "adam", "locked": false, "schema_version": 3, "solution": true, "task": false}
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
        ### BEGIN SOLUTION
        beta1, beta2 = self.betas
        state["step"] = state.get("step", 0) + 1
        state["mean"] = beta1 * state.get("mean", 0.0) + (1 - beta1) * gradient
        state["square"] = beta2 * state.get("square", 0.0) + (1 - beta2) * gradient**2
        mean = state["mean"] / (1 - beta1 ** state["step"])
        square = state["square"] / (1 - beta2 ** state["step"])
        return self.lr * mean / (np.sqrt(square) + self.eps)
        ### END SOLUTION

# %% tags=["style:compact"] exercise="adam"
class Adam(Optimizer):
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(parameters, lr, weight_decay)
        self.betas, self.eps = betas, eps

    def change(self, gradient, state):
        (b, c), (t, m, v) = self.betas, state.get("all", (0, 0.0, 0.0))
        t, m, v = t + 1, m + (1 - b) * (gradient - m), v + (1 - c) * (gradient * gradient - v)
        state["all"] = t, m, v
        return self.lr / (1 - b**t) * m / ((v / (1 - c**t)) ** 0.5 + self.eps)

# %% tags=["style:composed"] exercise="adam"
class RunningMean:
    def __init__(self, beta, shape):
        self.beta, self.total, self.weight = beta, np.zeros(shape), 0.0

    def after(self, value):
        self.total = self.beta * self.total + (1 - self.beta) * value
        self.weight = self.beta * self.weight + (1 - self.beta)
        return self.total / self.weight


class Adam(Optimizer):
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(parameters, lr, weight_decay)
        self.betas, self.eps = betas, eps

    def change(self, gradient, state):
        if not state:
            state["means"] = [RunningMean(beta, gradient.shape) for beta in self.betas]
        first, second = state["means"]
        return self.lr * first.after(gradient) / (np.sqrt(second.after(np.square(gradient))) + self.eps)

# %% nbgrader={"grade": true, "grade_id": "test_adam", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
def formula(gradients, lr, betas, eps):
    """All changes from the definition: the running means as weighted sums over the past."""
    changes = []
    for t in range(1, len(gradients) + 1):
        past = np.array(gradients[:t])
        mean, square = (
            np.tensordot(beta ** np.arange(t - 1, -1, -1.0), values, 1) * (1 - beta) / (1 - beta**t)
            for beta, values in ((betas[0], past), (betas[1], past**2))
        )
        changes.append(lr * mean / (np.sqrt(square) + eps))
    return changes


def try_adam(gradients, start, lr=0.001, betas=(0.9, 0.999), eps=1e-8, **options):
    """Steps with given gradients; the parameter must go where the formula says."""
    w = MiniTensor(np.array(start), requires_grad=True)
    optimizer = Adam([w], lr=lr, betas=betas, eps=eps, **options)
    place = np.array(start)
    seen = []
    for number in range(len(gradients)):
        w.grad = MiniTensor(np.array(gradients[number]))
        optimizer.step()
        assert np.array_equal(w.grad.data, gradients[number]), "step only reads .grad"
        seen.append(gradients[number] + options.get("weight_decay", 0.0) * place)
        place = place - formula(seen, lr, betas, eps)[-1]
        assert np.shape(w.data) == np.shape(start), f"the shape should stay {np.shape(start)}"
        assert np.allclose(w.data, place, rtol=1e-9, atol=1e-12), (
            f"after step {number + 1} the parameter should be {place}, not {w.data}"
        )
    assert w.is_leaf and w.requires_grad, "the parameter is still a leaf that requires a gradient"


random = np.random.default_rng(11)
try_adam([np.array([1000.0, -0.001])], [1.0, 1.0], lr=0.1)
try_adam(list(random.normal(size=(4, 3))), [1.0, 2.0, 3.0], lr=0.1)
try_adam(list(random.normal(size=(5, 2))), [0.0, 0.0], lr=0.1, betas=(0.5, 0.8), eps=0.1)
### BEGIN HIDDEN TESTS
try_adam(list(random.normal(size=(30, 2, 3))), np.ones((2, 3)))
try_adam(list(random.normal(size=12)), 5.0, lr=0.2, betas=(0.3, 0.9), eps=1.0)
try_adam(list(random.normal(size=(6, 2))), [3.0, -2.0], lr=0.1, weight_decay=0.5)
try_adam([np.zeros(2), np.zeros(2), np.array([1.0, 0.0])], [1.0, 1.0], lr=0.1)
try_adam([np.full(2, 1e-6), np.full(2, -2e-6)], [1.0, 1.0], lr=0.1)
u, v = (MiniTensor([1.0, 2.0], requires_grad=True) for _ in range(2))
adam = Adam((p for p in (u, v)), lr=0.1)
(u * 3).sum().backward()
adam.step()
assert np.allclose(v.data, [1.0, 2.0]), "a parameter whose .grad is None does not move"
(v * 5).sum().backward()
adam.step()
assert np.allclose(v.data, [0.9, 1.9]), "each parameter counts its own steps"
assert np.allclose(u.data, [0.8, 1.8]), "each parameter has means of its own"
alias = u.detach()
adam.step()
assert np.allclose(alias.data, u.data), "a step writes in place"
MiniTensor.changed_by = lambda self, adam: adam.change(self.data, adam.states[0])
for _ in range(2):
    gradient = MiniTensor([3.0, -4.0])
    gradient.changed_by(adam)
    assert np.array_equal(gradient.data, [3.0, -4.0]), "change must leave the gradient as it is"
other = Adam([u], lr=0.1)
u.grad = MiniTensor([-1.0, -1.0])
before = np.array(u.data)
other.step()
assert np.allclose(u.data, before + 0.1), "two optimizers must not share what they remember"
### END HIDDEN TESTS

# %% [markdown]
# Beside PyTorch: 200 steps on the same network, from the same weights. The batch is fixed, so nothing is random.

# %% tags=["demo"] items="61"
def curves(make, make_torch, steps=200):
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

# %% [markdown]
# What is the correction for? Both running means start too small. **Predict**: without the correction, would the first steps be too small, or too large?

# %%
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
fig, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(t, without, label="without the correction")
axis.plot(t, with_correction, label="yours")
axis.set(xlabel="step", ylabel="size of the step, in units of lr", xscale="log", ylim=(0, None))
axis.legend()
plt.show()

# %% [markdown]
# Too large. The square gathers a hundred times more slowly, so it starts much further below its true size, and it stands under the fraction bar. With a gradient that stays the same, as here, a training without the correction would begin with steps of three to more than six times the learning rate, at weights that are still random.

# %% [markdown]
# ## 5. Batches
#
# A data set answers two questions: `len(dataset)`, and `dataset[i]`, which is one sample: a tuple such as `(picture, label)`. A loader makes batches of it. Turning a list of samples into arrays is called *collating*; that part is given. Floating point numbers become a MiniTensor, others (such as labels) stay an array.

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
    """A list of samples to one batch: a tuple with one MiniTensor or array per part."""
    stacked = [np.stack(parts) for parts in zip(*samples)]
    return tuple(MiniTensor(part) if part.dtype.kind == "f" else part for part in stacked)

# %% [markdown]
# ### Exercise 5: DataLoader
#
# Write the loader from its docstring. **Think first:** ten samples in batches of four make how many batches? What should happen if two loops go over the same loader at the same time?

# %% [markdown] tags=["hint"] exercise="loader"
# Let `__iter__` be a generator: with `yield` in it, each call begins a walk of its own, and draws an order of its own.

# %% [markdown] tags=["hint"] exercise="loader"
# `order = self.generator.permutation(n) if self.shuffle else range(n)`; then `order[start : start + self.batch_size]` for `start` in `range(0, n, self.batch_size)`.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "loader", "locked": false, "schema_version": 3, "solution": true, "task": false}
class DataLoader:
    """The batches of a data set: for x, y in loader.

    dataset: has len(dataset), and dataset[i] for i from 0 to len - 1; each sample is a tuple
    batch_size: samples per batch; the last batch may be smaller
    shuffle: whether the order is random, and another one in each loop over the loader; otherwise
        it is 0, 1, 2, ...
    drop_last: whether a last batch that is too small is left out
    generator: a NumPy generator that draws the order; default_generator if None
    len(loader): the number of batches
    Iterating gives collate(list of samples) for each batch. Each sample comes once per loop (or
    never, if its batch is dropped). Several loops over one loader may run at the same time.
    Raises: ValueError("batch_size should be a positive integer value, but got batch_size=0"), or
        whatever number below 1 was given

    >>> loader = DataLoader(TensorDataset(np.arange(5)), batch_size=2)
    >>> len(loader), [batch.tolist() for (batch,) in loader]
    (3, [[0, 1], [2, 3], [4]])
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, drop_last=False, generator=None):
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.drop_last, self.generator = drop_last, generator or default_generator
        ### BEGIN SOLUTION
        if batch_size < 1:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        ### END SOLUTION

    def __len__(self):
        ### BEGIN SOLUTION
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
        ### END SOLUTION

    def __iter__(self):
        ### BEGIN SOLUTION
        count = len(self.dataset)
        order = self.generator.permutation(count) if self.shuffle else np.arange(count)
        for number in range(len(self)):
            chosen = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield collate([self.dataset[int(i)] for i in chosen])
        ### END SOLUTION

# %% tags=["style:compact"] exercise="loader"
class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=False, drop_last=False, generator=None):
        if batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got {batch_size=}")
        self.dataset, self.size, self.shuffle = dataset, batch_size, shuffle
        self.full, self.generator = drop_last, generator or default_generator

    def __len__(self):
        return len(self.dataset) // self.size if self.full else -(-len(self.dataset) // self.size)

    def __iter__(self):
        order = list(range(len(self.dataset)))
        if self.shuffle:
            self.generator.shuffle(order)
        parts = [order[k * self.size :][: self.size] for k in range(len(self))]
        return map(collate, [[self.dataset[i] for i in part] for part in parts])

# %% tags=["style:composed"] exercise="loader"
class Batches:
    """One walk."""

    def __init__(self, loader, order):
        self.loader, self.order = loader, order

    def __iter__(self):
        return self

    def __next__(self):
        size = self.loader.batch_size
        now, self.order = self.order[:size], self.order[size:]
        if not now or (len(now) < size and self.loader.drop_last):
            raise StopIteration
        return collate([self.loader.dataset[i] for i in now])


class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=False, drop_last=False, generator=None):
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.drop_last, self.generator = drop_last, generator or default_generator
        if batch_size < 1:
            raise ValueError("batch_size should be a positive integer value, but got batch_size=%d" % batch_size)

    def __len__(self):
        return sum(1 for start in range(0, len(self.dataset), self.batch_size)
                   if not self.drop_last or start + self.batch_size <= len(self.dataset))

    def __iter__(self):
        keys = self.generator.random(len(self.dataset)) if self.shuffle else np.arange(len(self.dataset))
        return Batches(self, [int(i) for i in np.argsort(keys)])

# %%
class Numbered:
    """Sample i is a pair: the number i as a row, and ten times i."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if not 0 <= i < self.count:
            raise IndexError(f"there is no sample {i}")
        return np.array([float(i), 1.0]), 10 * i

# %% nbgrader={"grade": true, "grade_id": "test_loader", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
def numbers_of(batches):
    """The numbers of the samples, batch by batch."""
    found = []
    for batch in batches:
        assert isinstance(batch, tuple) and len(batch) == 2, "a batch is what collate returns: (x, y)"
        x, y = batch
        assert x.data.shape == (len(y), 2), f"a batch of {len(y)} should have shape ({len(y)}, 2)"
        assert np.array_equal(10 * x.data[:, 0], y), "the parts of a sample belong together"
        found.append(x.data[:, 0].astype(int).tolist())
    return found


loader = DataLoader(Numbered(10), batch_size=4)
found, right = numbers_of(loader), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
assert found == right, f"10 samples in batches of 4 should be {right}, not {found}"
assert numbers_of(loader) == right, "a second loop starts from the beginning"
assert len(loader) == 3, f"these are 3 batches, and len says {len(loader)}"
loader = DataLoader(Numbered(10), batch_size=4, drop_last=True)
found = numbers_of(loader)
assert found == right[:2], f"with drop_last the batches should be {right[:2]}, not {found}"
assert len(loader) == 2, f"with drop_last these are 2 batches, and len says {len(loader)}"
for drop_last in (True, False):
    loader = DataLoader(Numbered(8), batch_size=4, drop_last=drop_last)
    assert len(loader) == len(numbers_of(loader)) == 2, "8 samples in batches of 4: two full batches"
loader = DataLoader(Numbered(100), batch_size=30, shuffle=True)
orders = [sum(numbers_of(loader), []) for _ in range(2)]
found = [len(part) for part in numbers_of(loader)]
assert found == [30, 30, 30, 10], f"shuffled batches have the same sizes, not {found}"
assert all(sorted(order) == list(range(100)) for order in orders), "each sample comes once"
assert orders[0] != sorted(orders[0]), "shuffle: the order should be random"
assert sorted(orders[0][:30]) != list(range(30)), "any sample can come in any batch"
assert orders[0] != orders[1], "each loop has an order of its own"
### BEGIN HIDDEN TESTS
def seeded(seed, **options):
    generator = np.random.default_rng(seed)
    tour = DataLoader(Numbered(40), batch_size=8, shuffle=True, generator=generator, **options)
    return [numbers_of(tour), numbers_of(tour)]


assert seeded(3) == seeded(3), "the same seed, the same orders"
assert seeded(3) != seeded(4), "another seed, another order"
manual_seed(5)
first = numbers_of(DataLoader(Numbered(40), batch_size=8, shuffle=True))
manual_seed(5)
assert numbers_of(DataLoader(Numbered(40), batch_size=8, shuffle=True)) == first, "default_generator"
tour = DataLoader(Numbered(6), batch_size=2)
assert [numbers_of([a])[0] + numbers_of([b])[0] for a, b in zip(tour, tour)] == [[0, 1] * 2, [2, 3] * 2, [4, 5] * 2]
tour = DataLoader(Numbered(24), batch_size=8, shuffle=True)
for one_loop in zip(*zip(tour, tour)):
    assert sorted(sum(numbers_of(one_loop), [])) == list(range(24)), "two loops, each in an order of its own"
assert numbers_of(DataLoader(Numbered(3), batch_size=7)) == [[0, 1, 2]]
assert numbers_of(DataLoader(Numbered(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
assert len(DataLoader(Numbered(5), batch_size=2)) == 3, "a single sample makes a batch too"
assert numbers_of(DataLoader(Numbered(3), batch_size=7, drop_last=True)) == []
assert len(DataLoader(Numbered(3), batch_size=7)) == 1 and len(DataLoader(Numbered(3), 7, drop_last=True)) == 0
assert numbers_of(DataLoader(Numbered(2))) == [[0], [1]], "batch_size is 1 if nothing is said"
assert numbers_of(DataLoader(Numbered(6), batch_size=3)) == [[0, 1, 2], [3, 4, 5]]
dropped = DataLoader(Numbered(10), batch_size=4, shuffle=True, drop_last=True)
assert [len(set(part)) for part in numbers_of(dropped)] == [4, 4]
tour = DataLoader(Numbered(20), batch_size=20, shuffle=True)
half = iter(tour)
next(half)
assert len(numbers_of(tour)) == 1, "a loop that was broken off does not disturb the next one"
for wrong in (0, -3):
    try:
        DataLoader(Numbered(3), batch_size=wrong)
        said = "no ValueError"
    except ValueError as error:
        said = str(error)
    assert said == f"batch_size should be a positive integer value, but got batch_size={wrong}", said
### END HIDDEN TESTS

# %% [markdown]
# The last batch is often smaller. **Predict** whether the mean of the three batch losses is the mean over the ten samples.

# %%
losses = [3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 8.0, 8.0]
loader = DataLoader(TensorDataset(np.array(losses)), batch_size=4)
means = [(batch.mean().item(), batch.shape[0]) for (batch,) in loader]
print("batches:", means)
print("mean of the means:    ", round(sum(mean for mean, _ in means) / len(means), 4))
print("weighted by the rows: ", sum(mean * rows for mean, rows in means) / len(losses))
print("mean over the samples:", np.mean(losses))

# %% [markdown] items="60 84"
# It is not: the two rows of the last batch count twice as much as the others. Weighted by their numbers of rows, the batches give the mean over the samples. Keep this in mind for the next exercise.
#
# ## 6. The loop
#
# Everything is there. What remains are two functions: the step, and the evaluation.
#
# ### Exercise 6: one step, and an evaluation
#
# `train_step` makes **one** step of the optimizer for one batch. If the batch does not fit into memory, it is cut into micro-batches: each runs forward and backward before the next one begins, so that only the graph of one part is alive. The step must be that of the whole batch. The loss function gives a *mean* over the rows that it gets. How must the parts count, if the last one may be smaller? Lesson 05 has shown it.
#
# `evaluate` gives the mean loss over all *samples* of a loader. It must change nothing: no weight, no gradient, no running statistics; and afterwards the model is in the mode in which it was, even if the model fails on the way.

# %% [markdown] tags=["hint"] exercise="loop"
# Each part's loss counts by its share: `loss * (rows of the part / rows of the batch)`. The batch has `x.shape[0]` rows; `x[begin:end]` are some of them, also if `x` is a MiniTensor. The last part may be smaller.

# %% [markdown] tags=["hint"] exercise="loop"
# In `evaluate`: remember `model.training`, call `model.eval()`, then `try:` with the loop under `no_grad()`, and `finally:` call `model.train(before)`.

# %% tags=["engine"] nbgrader={"grade": false, "grade_id": "loop", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train_step(model, optimizer, loss_function, x, y, micro_batch=None):
    """Clear the gradients, find those of the mean loss over the batch, and make one step.

    x, y: MiniTensors or arrays with the same number of rows
    loss_function: loss_function(model(x), y) is a mean over the rows, a MiniTensor of shape ()
    micro_batch: the model gets so many rows at a time, in their order, and in the end what is left;
        the backward pass of a part comes before the forward pass of the next. None for all rows
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
    ### BEGIN SOLUTION
    rows = x.shape[0]
    size = rows if micro_batch is None else micro_batch
    optimizer.zero_grad()
    total = 0.0
    for begin in range(0, rows, size):
        part_x, part_y = x[begin : begin + size], y[begin : begin + size]
        loss = loss_function(model(part_x), part_y) * (part_x.shape[0] / rows)
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total
    ### END SOLUTION


def evaluate(model, loader, loss_function):
    """The mean loss over all samples of a loader, in evaluation mode, unrecorded; a float.

    loader: gives pairs (x, y), whose numbers of rows may differ
    The model's parameters, gradients and buffers stay as they are, and model.training is what it
    was, also if an error is raised.
    """
    ### BEGIN SOLUTION
    before = model.training
    total, rows = 0.0, 0
    model.eval()
    try:
        with no_grad():
            for x, y in loader:
                total += loss_function(model(x), y).item() * x.shape[0]
                rows += x.shape[0]
    finally:
        model.train(before)
    return total / rows
    ### END SOLUTION

# %% tags=["style:compact"] exercise="loop"
def train_step(model, optimizer, loss_function, x, y, micro_batch=None):
    optimizer.zero_grad()
    n, total = x.shape[0], 0.0
    for k in range(0, n, micro_batch or n):
        rows = slice(k, min(k + (micro_batch or n), n))
        loss = loss_function(model(x[rows]), y[rows])
        loss.backward(np.array((rows.stop - rows.start) / n))
        total += loss.item() * (rows.stop - rows.start) / n
    optimizer.step()
    return total


@no_grad()
def evaluate(model, loader, loss_function):
    was = model.training
    try:
        model.train(False)
        pairs = [(loss_function(model(x), y).item(), x.shape[0]) for x, y in loader]
    finally:
        model.train(was)
    return sum(loss * rows for loss, rows in pairs) / sum(rows for _, rows in pairs)

# %% tags=["style:composed"] exercise="loop"
class Evaluating:
    def __init__(self, model):
        self.model, self.before, self.quiet = model, [(m, m.training) for m in model.modules()], no_grad()

    def __enter__(self):
        self.model.eval()
        self.quiet.__enter__()

    def __exit__(self, *error):
        self.quiet.__exit__(*error)
        for module, mode in self.before:
            module.training = mode


def train_step(model, optimizer, loss_function, x, y, micro_batch=None):
    optimizer.zero_grad()
    rows = x.shape[0]
    losses = []
    for part in np.array_split(np.arange(rows), range(micro_batch or rows, rows, micro_batch or rows)):
        begin, end = int(part[0]), int(part[-1]) + 1
        share = len(part) / rows
        loss = loss_function(model(x[begin:end]), y[begin:end])
        (loss * share).backward()
        losses.append(share * loss.item())
    optimizer.step()
    return float(np.sum(losses))


def evaluate(model, loader, loss_function):
    losses, counts = [], []
    with Evaluating(model):
        for x, y in loader:
            losses.append(loss_function(model(x), y).item())
            counts.append(x.shape[0])
    return float(np.average(losses, weights=counts))

# %%
class Observed(Module):
    """x @ weight, which notes for each call: the rows, the modes of the model and of the module in
    it, whether recording is on, and the gradient that the weight has by then."""

    def __init__(self, weight, fails=False):
        super().__init__()
        self.weight, self.inner = Parameter(weight), BatchNorm1d(2)
        self.calls, self.gradients, self.fails = [], [], fails

    def forward(self, x):
        self.calls.append((x.shape[0], {self.training, self.inner.training}, is_grad_enabled()))
        grad = self.weight.grad
        self.gradients.append(0.0 if grad is None else grad.data.sum().item())
        if self.fails:
            raise RuntimeError("this model fails")
        return x @ self.weight


class Counted(SGD):
    """Notes the gradient of its first parameter at each step."""

    def __init__(self, parameters, **options):
        super().__init__(parameters, **options)
        self.seen = []

    def step(self):
        self.seen.append(np.array(self.parameters[0].grad.data))
        super().step()

# %% nbgrader={"grade": true, "grade_id": "test_loop", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
def step_of(rows, micro_batch, start, lr=0.1):
    """One step on a mean squared error, beside the same in plain NumPy."""
    random = np.random.default_rng(rows)
    x, y = random.normal(size=(rows, 2)), random.normal(size=(rows, 1))
    model = Observed(np.array(start))
    optimizer = Counted([model.weight], lr=lr)
    model.weight.grad = MiniTensor(np.full((2, 1), 1e6))  # left over from before
    loss = train_step(model, optimizer, mse_loss, MiniTensor(x), MiniTensor(y), micro_batch)
    error = x @ np.array(start) - y
    right = 2 * x.T @ error / rows
    assert len(optimizer.seen) == 1, f"one step of the optimizer is wanted, not {len(optimizer.seen)}"
    assert len(set(model.gradients)) == len(model.calls), (
        "each part's backward pass comes before the forward pass of the next"
    )
    assert np.allclose(optimizer.seen[0], right), (
        f"{rows} rows, micro_batch={micro_batch}: the gradient should be {right.ravel()}, "
        f"not {optimizer.seen[0].ravel()}"
    )
    assert np.allclose(model.weight.data, start - lr * right), "the step should be made"
    assert isinstance(loss, float), f"the loss should be returned as a float, not {loss}"
    assert np.isclose(loss, (error**2).mean()), f"the loss should be {(error**2).mean()}, not {loss}"
    return [rows for rows, _, _ in model.calls]


for rows, micro_batch, right in ((6, None, [6]), (8, 4, [4, 4]), (9, 4, [4, 4, 1])):
    parts = step_of(rows, micro_batch, [[1.0], [2.0]])
    assert parts == right, f"{rows} rows, micro_batch={micro_batch}: parts of {right} rows, not {parts}"

x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [1.0, 2.0]])
y = np.array([[1.0], [2.0], [-1.0], [0.0], [2.0]])
loader = DataLoader(TensorDataset(x, y), batch_size=2)
model = Observed(np.array([[1.0], [2.0]]))
found = evaluate(model, loader, mse_loss)
for _, modes, recording in model.calls:
    assert modes == {False}, "the model, and all modules in it, should be in evaluation mode"
    assert not recording, "nothing should be recorded"
assert isinstance(found, float), f"the loss should be returned as a float, not {found}"
assert np.isclose(found, 5.0), f"the mean over the five samples is 5.0, not {found}"
assert [rows for rows, _, _ in model.calls] == [2, 2, 1], "each batch goes through the model once"
assert model.training and model.inner.training, "afterwards the model is in training mode as before"
assert model.weight.grad is None, "an evaluation leaves no gradient"
assert np.allclose(model.weight.data, [[1.0], [2.0]]), "an evaluation changes no weight"
### BEGIN HIDDEN TESTS
assert step_of(5, 1, [[0.5], [0.0]]) == [1] * 5
assert step_of(7, 100, [[0.5], [0.0]]) == [7], "a micro-batch may be larger than the batch"
assert step_of(7, 6, [[0.5], [0.0]]) == [6, 1] and step_of(1, None, [[0.5], [0.0]]) == [1]
model = Observed(np.array([[1.0], [2.0]]))
optimizer = SGD([model.weight], lr=0.1, momentum=0.5)
labels = np.array([1, 0, 1])
pick = lambda output, numbers: (output.reshape(-1) * MiniTensor(numbers * 2.0 - 1)).mean()
pair = x[:3], labels
first = train_step(model, optimizer, pick, MiniTensor(pair[0]), pair[1], 2)
assert np.isclose(first, (1 - 2 + 3) / 3), "the loss function gets the rows of y that belong to x"
assert [modes for _, modes, _ in model.calls] == [{True}] * 2, "train_step leaves the mode as it is"
model.eval()
train_step(model, optimizer, pick, MiniTensor(pair[0]), pair[1])
assert not model.training, "train_step leaves the mode as it is"
model.weight.grad = MiniTensor([[5.0], [6.0]])
evaluate(model, loader, mse_loss)
assert not model.training, "a model that was in evaluation mode stays in it"
assert np.allclose(model.weight.grad.data, [[5.0], [6.0]]), "gradients stay as they are"
model = Observed(np.array([[1.0], [2.0]]), fails=True)
assert is_grad_enabled()
for mode in (True, False):
    model.train(mode)
    try:
        evaluate(model, loader, mse_loss)
        said = "no error"
    except RuntimeError as error:
        said = str(error)
    assert said == "this model fails", f"the error of the model should come through, not {said!r}"
    assert model.training is mode and model.inner.training is mode, "the mode is put back after an error"
    assert is_grad_enabled(), "recording is on again after an error"
single = [(MiniTensor(x[:1]), MiniTensor(y[:1])), (MiniTensor(x[1:]), MiniTensor(y[1:]))]
assert np.isclose(evaluate(Observed(np.array([[1.0], [2.0]])), single, mse_loss), 5.0), "1 row, then 4"
### END HIDDEN TESTS

# %% [markdown]
# Does cutting a batch change the step? 32 rows in one piece, and in micro-batches of 12, so of 12, 12 and 8. The measure is the error of the gradient, relative to its length. **Predict** the three lines.

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


print(f"each loss divided by 3:             {split_error(GELU, divide_by_parts=True):.1e}")
print(f"each loss by its share of the rows: {split_error(GELU):.1e}")
print(f"the same, with BatchNorm1d:         {split_error(lambda: BatchNorm1d(8)):.1e}")

# %% [markdown]
# Counted by rows, the parts give the gradient of the whole, up to rounding. With batch normalization they cannot: each part is normalized by its own mean and variance, so it is another function that is differentiated. No factor repairs that.
#
# ### Everything together
#
# The digits of lesson 08, with all the parts. Each line says why it stands where it stands. `monitor` goes through the batches, draws what is logged, and the norm of the gradient of each layer.

# %% tags=["demo"] items="60"
with np.load("data/digits.npz") as file:
    pixels, labels = file["images"].reshape(-1, 64) / 16.0, file["labels"].astype(int)
known = TensorDataset(pixels[:600], labels[:600])
held_out = TensorDataset(pixels[600:], labels[600:])

manual_seed(6)
model = Sequential(
    LinearLayer(64, 48, bias=False),  # the normalization would take a bias away
    BatchNorm1d(48),
    GELU(),
    Dropout(0.2),
    LinearLayer(48, 10),
)
optimizer = Adam(model.parameters(), lr=0.01)  # knows these objects, and writes into them
loader = DataLoader(known, batch_size=50, shuffle=True)  # another order in each epoch
test_loader = DataLoader(held_out, batch_size=128)  # no need to shuffle
watch = monitor(loader, model=model)
history, lowest, best = [], float("inf"), None
for epoch in range(8):
    model.train()  # dropout drops, the statistics run
    for x, y in watch:
        optimizer.zero_grad()  # anywhere after step and before backward
        loss = cross_entropy(model(x), y)  # records a graph; it lives as long as `loss`
        loss.backward()  # adds into .grad, and frees what the graph has saved
        norm = clip_grad_norm_(model.parameters(), max_norm=1.0)  # returns the norm before
        watch.log(loss=loss, norm=norm)  # keeps plain numbers; a list of losses would keep graphs
        optimizer.step()  # unrecorded, in place
    test_loss = evaluate(model, test_loader, cross_entropy)  # eval mode, no_grad, by samples
    history.append((epoch, loss.item(), norm.item(), test_loss))
    if test_loss < lowest:  # a copy, since the weights move on
        lowest = test_loss
        best = {name: MiniTensor(t.data.copy()) for name, t in model.state_dict().items()}

# %% tags=["demo"] items="60"
print("epoch   last batch   norm of its gradient   held out")
for epoch, last, norm, test_loss in history:
    print(f"{epoch:5d} {last:12.4f} {norm:22.3f} {test_loss:10.4f}")
model.load_state_dict(best)
with no_grad():
    answers = model.eval()(MiniTensor(pixels[600:])).data.argmax(axis=1)
print(f"best weights: loss {evaluate(model, test_loader, cross_entropy):.4f}", end=", ")
print(f"{(answers == labels[600:]).mean():.1%} of {len(answers)} held-out digits right")

# %% [markdown] items="60"
# The lowest loss is there again: this time it was a copy. Read the table as one reads such a table: is the loss on the held-out digits still falling? Does the norm of the gradient stay of one size, or does it grow? Has clipping ever acted?
#
# And is it *right*? The last comparison has everything but dropout, whose random numbers nobody else has: batches in random order, normalization, GELU, weight decay. The same batches go through PyTorch.

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
for _ in range(8):
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

# %% tags=["demo"]
fig, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].plot(losses, linewidth=4, alpha=0.5, label="your engine")
axes[0].plot(losses_torch, "--", linewidth=1.5, label="PyTorch")
axes[0].set(xlabel="step", ylabel="cross entropy", yscale="log")
axes[0].legend()
axes[1].plot(np.maximum(difference, 1e-17))
axes[1].axhline(1e-6, color="black", linewidth=1, linestyle=":")
axes[1].set(xlabel="step", ylabel="difference", yscale="log", title="dotted: one millionth")
plt.show()

# %% [markdown]
# The differences are rounding errors. Every number of this training, the running statistics included, is PyTorch's.
#
# ## Quiz

# %% tags=["quiz"] nbgrader={"grade": true, "grade_id": "quiz_11", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} items="84"
question(
    "eval_or_no_grad",
    "A model is tried on other data under `no_grad()`, without `model.eval()`. What happens?",
    right("Dropout drops, and batch normalization updates its running statistics.", "`no_grad` only stops the recording. What layers compute is a matter of the mode."),
    wrong("The same as with `eval()`, only slower.", "The numbers are others, and the model is another one afterwards.", misconception="no_grad_is_eval"),
    wrong("The weights may change.", "Weights are changed by an optimizer only. Buffers are changed by forward passes.", misconception="buffers_are_parameters"),
    wrong("An error: batch normalization needs gradients.", "It computes as always.", misconception="no_grad_is_eval"),
)
question(
    "snapshot",
    "`best = model.state_dict()`, then 100 more epochs. What does `best` hold?",
    right("The weights after the 100 epochs", "A state shows the memory of the model, and optimizers write in place. Copy it."),
    wrong("The weights of that moment", "Nothing was copied.", misconception="state_is_a_copy"),
    wrong("Nothing: the optimizer has made new parameters.", "It changes numbers in place; the parameter objects stay.", misconception="step_makes_new_tensors"),
    wrong("The weights of that moment, and the buffers of now", "Both are shown, not copied.", misconception="state_is_a_copy"),
)
question(
    "uneven",
    "Three micro-batches of 12, 12 and 8 rows; each loss is a mean over its rows. By what must the third be multiplied?",
    right("8 / 32", "Each part counts by its share of the rows."),
    wrong("1 / 3", "Then a row of the third part counts more than a row of the first.", misconception="divide_by_parts"),
    wrong("1", "Then the gradient is three times too long.", misconception="accumulation_needs_no_scale"),
    wrong("1 / 8", "The mean has divided by 8 already.", misconception="divide_by_parts"),
)
question(
    "split_and_normalize",
    "A network with batch normalization is trained in micro-batches, each weighted by its share of the rows. Is the gradient that of the whole batch?",
    right("No: each part is normalized by its own mean and variance.", "It is another function that is differentiated. In your measurement the error was large."),
    wrong("Yes, the weights take care of that.", "They do for losses that are means over rows that know nothing of each other.", misconception="weights_cure_batchnorm"),
    wrong("Yes, if all parts have the same size.", "Equal parts have different means all the same.", misconception="weights_cure_batchnorm"),
    wrong("Only if the running statistics are switched off.", "They take no part in the gradient in training mode.", misconception="running_statistics_in_training"),
)
question(
    "first_step",
    "Adam with lr = 0.01. How far does an entry with gradient 500 move in the first step?",
    right("By about 0.01", "The corrected mean is 500, the root of the corrected square is 500."),
    wrong("By 5", "That is plain gradient descent.", misconception="adam_is_sgd"),
    wrong("By about 0.001, because the mean starts at 0", "The correction divides by 1 - 0.9.", misconception="no_bias_correction"),
    wrong("It depends on the other entries.", "Every entry has means of its own.", misconception="adam_normalizes_the_vector"),
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
    right("It moves the output layer only, and says nothing.", "A list is neither a parameter nor a module, so what it holds is not registered. Use Sequential or ModuleList."),
    wrong("It raises an error, because parameters are missing.", "Nobody knows how many there should be. Only an empty list of parameters is noticed.", misconception="lists_register"),
    wrong("It moves all four layers.", "`parameters()` does not look into lists.", misconception="lists_register"),
    wrong("It moves none of them.", "The output layer is registered.", misconception="lists_register"),
)
question(
    "in_place",
    "Why does an optimizer write into the parameter, in place?",
    right("So that the model, the optimizer and everybody else keep holding the same object.", "A new tensor would be one that nobody knows."),
    wrong("So that the graph of the parameter is kept.", "A parameter has no history that could be kept.", misconception="in_place_keeps_the_graph"),
    wrong("So that the step is recorded.", "It is not recorded, on purpose.", misconception="steps_are_recorded"),
    wrong("Because a new array would be wrong in its numbers.", "The numbers would be the same. You have seen a new Parameter: right numbers, wrong object.", misconception="in_place_keeps_the_graph"),
)

# %% [markdown] items="142"
# ## What comes next
#
# | if you want to | then |
# | --- | --- |
# | build larger networks | a module is made of modules; in lesson 16 it is a Transformer |
# | see what goes wrong in a training loop | lesson 12: instruments, and eight trainings that do not work |
# | train what does not fit into memory | micro-batches, and lesson 13 |
# | write layers with rules of their own | a `Function` of lesson 08 inside a `Module` |
# | load data faster | PyTorch's `DataLoader` has `num_workers`: other processes fetch and collate the next batches meanwhile; `collate_fn` takes the place of `collate` |
#
# ## Summary
#
# | idea | in one line |
# | --- | --- |
# | Module | assigning to an attribute registers; a name is the way to a parameter; a shared parameter counts once |
# | `state_dict` | parameters and buffers, shown and not copied: copy what you want to keep |
# | `eval()`, `no_grad` | the first changes what layers compute, the second what is recorded; an evaluation needs both |
# | Dropout | a share of p is dropped, the rest is scaled, so that the mean stays |
# | BatchNorm | the batch's statistics in training, running ones in evaluation; a forward pass changes the model |
# | optimizer | reads `.grad`, writes in place, unrecorded; keeps a state for each parameter |
# | Adam | lr sets the size of a step, not the size of the gradient; the correction keeps the first ones from being too large |
# | loader | each sample once per epoch, in a new order; the last batch may be smaller |
# | means of means | weight each part by its rows: in micro-batches, and in an evaluation |
#
# This training worked. The next lesson is about eight that do not.
