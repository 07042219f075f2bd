# %% tags=["style:compact"] exercise="linear"
class Linear(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return np.einsum("ri,io->ro", x, w) + b

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        rules = (lambda: np.einsum("ro,io->ri", grad, w), lambda: np.einsum("ri,ro->io", x, grad), lambda: grad)
        return tuple(rule() if needed else None for rule, needed in zip(rules, ctx.needs_input_grad))


MiniTensor.linear = lambda self, w, b: Linear.apply(self, w, b)

# %% tags=["style:compact"] exercise="abs"
class Abs(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a > 0, a < 0)
        return np.where(a < 0, -a, a)

    @staticmethod
    def backward(ctx, grad):
        positive, negative = ctx.saved_tensors
        return np.where(positive, grad, np.where(negative, -grad, 0.0))


MiniTensor.abs = lambda self: Abs.apply(self)

# %% tags=["style:compact"] exercise="logsumexp"
class LogSumExp(Function):
    @staticmethod
    def forward(ctx, a, dim):
        ctx.dim, output = dim, np.logaddexp.reduce(a, axis=dim)
        ctx.save_for_backward(a, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        a, output = (ctx.saved_tensors[0], np.expand_dims(ctx.saved_tensors[1], ctx.dim))
        return np.exp(a - output) * np.expand_dims(grad, ctx.dim)


MiniTensor.logsumexp = lambda self, dim: LogSumExp.apply(self, dim=dim)

# %% tags=["style:compact"] exercise="jacobians"
def analytical_jacobian(function, inputs, number):
    def row(k):
        twins = [MiniTensor(x.data, requires_grad=x.requires_grad) for x in inputs]
        output = function(*twins)
        output.backward(np.eye(output.data.size)[k].reshape(output.shape))
        grad = twins[number].grad
        return np.zeros(twins[number].data.size) if grad is None else grad.data.ravel()

    return np.stack([row(k) for k in range(function(*inputs).data.size)], axis=1)

# %% tags=["style:compact"] exercise="gradcheck"
def gradcheck(function, inputs, eps=1e-6, atol=1e-5, rtol=1e-3):
    checked = [i for i, x in enumerate(inputs) if x.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient")
    for i in checked:
        a, n = analytical_jacobian(function, inputs, i), numerical_jacobian(function, inputs, i, eps)
        if not (np.abs(a - n) <= atol + rtol * np.abs(n)).all():
            raise GradcheckError(f"Jacobian mismatch for output 0 with respect to input {i}:\n{n}\nagainst\n{a}")
    return True

# %% tags=["style:compact"] exercise="quantize"
Quantize = type(
    "Quantize",
    (Function,),
    {
        "forward": staticmethod(lambda ctx, a, step: step * np.rint(a / step)),
        "backward": staticmethod(lambda ctx, grad: 1.0 * grad),
    },
)
MiniTensor.quantize = lambda self, step: Quantize.apply(self, step=step)

# %% tags=["style:composed"] exercise="linear"
class Linear(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        needs = ctx.needs_input_grad
        ctx.save_for_backward(x if needs[1] else None, w if needs[0] else None)  # keep no more than the rule will need
        return np.add(np.matmul(x, w), b)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        shares = [None, None, None]
        if ctx.needs_input_grad[0]:
            shares[0] = (w @ grad.T).T
        if ctx.needs_input_grad[1]:
            shares[1] = (grad.T @ x).T
        if ctx.needs_input_grad[2]:
            shares[2] = np.ones(len(grad)) @ grad
        return tuple(shares)


MiniTensor.linear = lambda self, w, b: Linear.apply(self, w, b)

# %% tags=["style:composed"] exercise="abs"
MiniTensor.abs = lambda self: self.relu() + (-self).relu()  # no rule of its own: relu has slope 0 at 0

# %% tags=["style:composed"] exercise="logsumexp"
def logsumexp(self, dim):
    largest = self.detach().max(dim=dim, keepdim=True)
    total = (self - largest).exp().sum(dim=dim)
    return total.log() + largest.reshape(*total.shape)


MiniTensor.logsumexp = logsumexp

# %% tags=["style:composed"] exercise="jacobians"
def analytical_jacobian(function, inputs, number):
    x, kept = inputs[number], [tensor.grad for tensor in inputs]
    output = function(*inputs)
    table = np.zeros((x.data.size, output.data.size))
    for column, index in enumerate(np.ndindex(output.shape)):
        cotangent = np.zeros(output.shape)
        cotangent[index] = 1.0
        for tensor in inputs:
            tensor.grad = None
        output.backward(cotangent, retain_graph=True)
        if x.grad is not None:
            table[:, column] = x.grad.data.ravel()
    for tensor, grad in zip(inputs, kept):
        tensor.grad = grad
    return table

# %% tags=["style:composed"] exercise="gradcheck"
def disagreement(function, inputs, number, eps):
    numerical = numerical_jacobian(function, inputs, number, eps)
    analytical = analytical_jacobian(function, inputs, number)
    return analytical, numerical, np.abs(analytical - numerical)


def gradcheck(function, inputs, eps=1e-6, atol=1e-5, rtol=1e-3):
    asked = 0
    for number, x in enumerate(inputs):
        if x.requires_grad:
            asked += 1
            analytical, numerical, distance = disagreement(function, inputs, number, eps)
            excess = distance - atol - rtol * np.abs(numerical)
            if np.isnan(excess).any() or (excess > 0).any():
                message = f"Jacobian mismatch for output 0 with respect to input {number}"
                raise GradcheckError(f"{message}\nnumerical {numerical}\nanalytical {analytical}")
    if asked == 0:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, none does")
    return True

# %% tags=["style:composed"] exercise="quantize"
def quantize(self, step):
    return self + (np.round(self.data / step) * step - self.detach())


MiniTensor.quantize = quantize

# %% tags=["style:plain"] exercise="linear"
class Linear(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x.T, w.T)
        return x.dot(w) + b

    @staticmethod
    def backward(ctx, grad):
        x_turned, w_turned = ctx.saved_tensors
        needed = dict(zip("xwb", ctx.needs_input_grad))
        shares = {}
        if needed["x"]:
            shares["x"] = grad.dot(w_turned)
        if needed["w"]:
            shares["w"] = x_turned.dot(grad)
        if needed["b"]:
            shares["b"] = sum(grad)
        return shares.get("x"), shares.get("w"), shares.get("b")


MiniTensor.linear = lambda self, w, b: Linear.apply(self, w, b)

# %% tags=["style:plain"] exercise="abs"
class Abs(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return np.maximum(a, -a)

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        share = np.array(grad)
        share[a < 0] *= -1
        share[a == 0] = 0
        return share


def absolute(self):
    return Abs.apply(self)


MiniTensor.abs = absolute

# %% tags=["style:plain"] exercise="logsumexp"
class LogSumExp(Function):
    @staticmethod
    def forward(ctx, a, dim):
        largest = np.max(a, axis=dim, keepdims=True)
        raised = np.exp(a - largest)
        total = np.sum(raised, axis=dim, keepdims=True)
        ctx.save_for_backward(raised, total)
        return np.squeeze(largest + np.log(total), axis=dim)

    @staticmethod
    def backward(ctx, grad):
        raised, total = ctx.saved_tensors
        return raised * (np.reshape(grad, total.shape) / total)


def logsumexp(self, dim):
    return LogSumExp.apply(self, dim=dim)


MiniTensor.logsumexp = logsumexp

# %% tags=["style:plain"] exercise="jacobians"
def analytical_jacobian(function, inputs, number):
    copies = [MiniTensor(x.data.copy(), requires_grad=x.requires_grad) for x in inputs]
    x = copies[number]
    output = function(*copies)
    columns = []
    for index in np.ndindex(output.shape):
        chosen = np.zeros(output.shape)
        chosen[index] = 1.0
        x.grad = MiniTensor(np.zeros(x.shape))
        (output * chosen).sum().backward(retain_graph=True)
        columns.append(x.grad.data.flatten())
    return np.stack(columns, axis=-1)

# %% tags=["style:plain"] exercise="gradcheck"
def gradcheck(function, inputs, eps=1e-6, atol=1e-5, rtol=1e-3):
    numbers = [i for i in range(len(inputs)) if inputs[i].requires_grad]
    if len(numbers) == 0:
        raise ValueError("gradcheck expects at least one input tensor to require gradient")
    for i in numbers:
        wanted = numerical_jacobian(function, inputs, i, eps)
        found = analytical_jacobian(function, inputs, i)
        try:
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, equal_nan=False)
        except AssertionError as error:
            lines = [f"Jacobian mismatch for output 0 with respect to input {i}", f"{wanted}", f"{found}"]
            raise GradcheckError("\n".join(lines)) from error
    return True

# %% tags=["style:plain"] exercise="quantize"
class Quantize(Function):
    @staticmethod
    def forward(ctx, a, step):
        return step * np.floor(a / step + 0.5)

    @staticmethod
    def backward(ctx, grad):
        return grad.copy()


def quantize(self, step):
    return Quantize.apply(self, step=step)


MiniTensor.quantize = quantize
