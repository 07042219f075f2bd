# %% tags=["style:compact"] exercise="module"
def members(module, families, again, prefix=""):
    for path, part in module.named_modules(prefix, again):
        for family in families:
            yield from ((".".join(filter(None, (path, name))), tensor) for name, tensor in vars(part)[family].items())


def state_dict(self):
    return {name: tensor.detach() for name, tensor in members(self, ["_parameters", "_buffers"], False)}


Module.state_dict = state_dict

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

# %% tags=["style:composed"] exercise="module"
def state_dict(self):
    state = {name: tensor.detach() for name, tensor in self._parameters.items()}
    state.update({name: tensor.detach() for name, tensor in self._buffers.items()})
    for name, inner in self._modules.items():
        state.update({f"{name}.{rest}": tensor for rest, tensor in inner.state_dict().items()})
    return state


Module.state_dict = state_dict

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
        output = model(x[begin:end])
        (loss_function(output, y[begin:end]) * share).backward()
        losses.append(share * loss_function(output, y[begin:end]).item())
    optimizer.step()
    return float(np.sum(losses))


def evaluate(model, loader, loss_function):
    losses, counts = [], []
    with Evaluating(model):
        for x, y in loader:
            losses.append(loss_function(model(x), y).item())
            counts.append(x.shape[0])
    return float(np.average(losses, weights=counts))

# %% tags=["style:plain"] exercise="module"
def state_dict(self):
    state, waiting = {}, [("", self)]
    while waiting:
        prefix, module = waiting.pop()
        for owned in (module._parameters, module._buffers):
            for name in owned:
                state[prefix + name] = owned[name].detach()
        inner = [(f"{prefix}{name}.", part) for name, part in module._modules.items()]
        waiting.extend(reversed(inner))
    return state


Module.state_dict = state_dict

# %% tags=["style:plain"] exercise="dropout"
class Dropout(Module):
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
            return x * np.zeros(x.shape)
        factors = default_generator.choice([0.0, 1 / (1 - self.p)], size=x.shape, p=[self.p, 1 - self.p])
        return x * factors

# %% tags=["style:plain"] exercise="batchnorm"
class BatchNorm1d(Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = Parameter(np.ones(num_features))
        self.bias = Parameter(np.zeros(num_features))
        self.register_buffer("running_mean", MiniTensor(np.zeros(num_features)))
        self.register_buffer("running_var", MiniTensor(np.ones(num_features)))
        self.register_buffer("num_batches_tracked", MiniTensor(0.0))

    def track(self, x):
        if x.shape[0] == 1:
            raise ValueError("Expected more than 1 value per channel when training")
        new = {"running_mean": x.mean(axis=0), "running_var": x.var(axis=0, ddof=1)}
        for name, value in new.items():
            running = self._buffers[name]
            overwrite(running, running.data + self.momentum * (value - running.data))
        overwrite(self.num_batches_tracked, self.num_batches_tracked.data + 1)

    def forward(self, x):
        x = as_tensor(x)
        mean, variance = self.running_mean, self.running_var
        if self.training:
            self.track(x.data)
            mean = x.sum(0) / x.shape[0]
            variance = ((x - mean) ** 2).sum(0) / x.shape[0]
        scale = self.weight / (variance + self.eps) ** 0.5
        return x * scale + (self.bias - mean * scale)

# %% tags=["style:plain"] exercise="adam"
class Adam(Optimizer):
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(parameters, lr, weight_decay)
        self.betas, self.eps = betas, eps

    def change(self, gradient, state):
        if not state:
            state.update(t=0, mean=np.zeros_like(gradient), square=np.zeros_like(gradient))
        beta1, beta2 = self.betas
        state["t"] += 1
        state["mean"] *= beta1
        state["mean"] += (1 - beta1) * gradient
        state["square"] *= beta2
        state["square"] += (1 - beta2) * gradient * gradient
        step_size = self.lr / (1 - beta1 ** state["t"])
        denominator = np.sqrt(state["square"]) / np.sqrt(1 - beta2 ** state["t"]) + self.eps
        return step_size * state["mean"] / denominator

# %% tags=["style:plain"] exercise="loop"
def train_step(model, optimizer, loss_function, x, y, micro_batch=None):
    """Add up the gradients of sums over rows, and divide by the number of rows at the end."""
    rows, begin, total = x.shape[0], 0, 0.0
    optimizer.zero_grad()
    while begin < rows:
        end = rows if micro_batch is None else min(begin + micro_batch, rows)
        loss = loss_function(model(x[begin:end]), y[begin:end]) * (end - begin)
        loss.backward()
        total += loss.item()
        begin = end
    with no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(1 / rows)
    optimizer.step()
    return total / rows


def evaluate(model, loader, loss_function):
    before = model.training
    model.eval()
    try:
        total = count = 0
        for x, y in loader:
            with no_grad():
                mean = loss_function(model(x), y)
            total += float(mean.data) * len(x.data)
            count += len(x.data)
    finally:
        model.train(before)
    return total / count
