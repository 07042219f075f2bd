# %% tags=["style:compact"] exercise="sum_to"
def sum_to(grad, shape):
    padded = (1,) * (grad.ndim - len(shape)) + tuple(shape)
    for axis, size in enumerate(padded):
        if size == 1:
            grad = grad.sum(axis=axis, keepdims=True)
    return grad.reshape(shape)

# %% tags=["style:compact"] exercise="backward"
def backward(self, gradient=None):
    if gradient is None and self.data.size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    start = np.ones(self.shape) if gradient is None else np.array(gradient, dtype=float)
    arrived = {node: np.zeros(node.shape) for node in topological_order(self)}
    arrived[self] = start.reshape(self.shape)
    for node in arrived:
        for source, share in zip(node.inputs, node.rule(arrived[node]) if node.rule else ()):
            arrived[source] = arrived[source] + sum_to(share, source.shape)
    for node, grad in arrived.items():
        node.grad = grad + (0 if node.grad is None else node.grad)


MiniTensor.backward = backward

# %% tags=["style:compact"] exercise="elementwise"
def entrywise(operation, value, slope):
    return lambda a: MiniTensor(value(a.data), (a,), operation, lambda grad: (grad * slope(a.data),))


reciprocal = entrywise("1/", lambda x: 1 / x, lambda x: -1 / (x * x))
relu = entrywise("relu", lambda x: np.where(x > 0, x, 0.0), lambda x: np.where(x > 0, 1.0, 0.0))


def divide(a, b):
    return as_tensor(a) * reciprocal(as_tensor(b))


MiniTensor.__truediv__, MiniTensor.__rtruediv__ = divide, lambda a, other: divide(other, a)
MiniTensor.relu = relu

# %% tags=["style:compact"] exercise="reductions"
def sum_over(a, dim=None, keepdim=False):
    kept = a.data.sum(axis=dim, keepdims=True)
    output = kept if keepdim else kept.sum(axis=dim)
    return MiniTensor(output, (a,), "sum", lambda grad: (np.ones(a.shape) * np.reshape(grad, kept.shape),))


def mean_over(a, dim=None, keepdim=False):
    count = a.data.size if dim is None else a.shape[dim]
    return sum_over(a, dim, keepdim) * (1 / count)


MiniTensor.sum, MiniTensor.mean = sum_over, mean_over

# %% tags=["style:compact"] exercise="rearranging"
def moved(operation, there, back):
    def method(a, *places):
        return MiniTensor(there(a.data, places), (a,), operation, lambda grad: (back(grad, a.data, places),))

    return method


reshape = moved("reshape", lambda x, shape: x.reshape(shape), lambda g, x, shape: g.reshape(x.shape))
transpose = moved("transpose", lambda x, d: np.swapaxes(x, *d), lambda g, x, d: np.swapaxes(g, *d))


def getitem(a, index):
    places = np.arange(a.data.size).reshape(a.shape)[index]

    def rule(grad):
        return (np.bincount(np.ravel(places), np.ravel(grad), a.data.size).reshape(a.shape),)

    return MiniTensor(a.data[index], (a,), "index", rule)


def matmul(a, b):
    def rule(grad):
        return np.einsum("...ij,...kj->...ik", grad, b.data), np.einsum("...ki,...kj->...ij", a.data, grad)

    return MiniTensor(np.einsum("...ij,...jk->...ik", a.data, b.data), (a, b), "@", rule)


MiniTensor.reshape, MiniTensor.transpose, MiniTensor.__getitem__ = reshape, transpose, getitem

# %% tags=["style:compact"] exercise="softmax"
def log_softmax(a, dim):
    shifted = a - a.data.max(axis=dim, keepdims=True)
    return shifted - shifted.exp().sum(dim, keepdim=True).log()


def softmax(a, dim):
    return log_softmax(a, dim).exp()


def cross_entropy(logits, labels):
    rows, classes = logits.shape
    return -(log_softmax(logits, -1) * np.eye(classes)[labels]).sum() / rows


MiniTensor.softmax, MiniTensor.log_softmax, MiniTensor.cross_entropy = softmax, log_softmax, cross_entropy

# %% tags=["style:compact"] exercise="maximum"
def max_over(a, dim=None, keepdim=False):
    kept = a.data.max(axis=dim, keepdims=True)
    hit = a.data == kept
    share = hit / hit.sum() if dim is None else hit & (hit.cumsum(axis=dim) == 1)
    output = kept if keepdim else kept.max(axis=dim)
    return MiniTensor(output, (a,), "max", lambda grad: (share * np.reshape(grad, kept.shape),))


MiniTensor.max = max_over

# %% tags=["style:classes"] exercise="sum_to"
class Stretch:
    """Remembers which entry of the small array stands where in the large one, and adds up accordingly."""

    def __init__(self, shape, result):
        self.shape, self.size = shape, int(np.prod(shape))
        self.places = np.broadcast_to(np.arange(self.size).reshape(shape), result)

    def undo(self, grad):
        total = np.zeros(self.size)
        np.add.at(total, self.places, grad)
        return total.reshape(self.shape)


def sum_to(grad, shape):
    return Stretch(tuple(shape), grad.shape).undo(grad)

# %% tags=["style:classes"] exercise="backward"
class BackwardPass:
    """Counts the uses of each node, and runs a node when its last use has been dealt with; needs no order made beforehand."""

    def __init__(self, root):
        self.uses, self.pending, waiting = {root: 0}, {}, [root]
        while waiting:
            for source in waiting.pop().inputs:
                if source not in self.uses:
                    self.uses[source] = 0
                    waiting.append(source)
                self.uses[source] += 1

    def receive(self, node, grad):
        grad = sum_to(np.asarray(grad), node.shape)
        self.pending[node] = grad + self.pending.get(node, 0.0)

    def run(self, root, gradient):
        self.receive(root, gradient)
        ready = [root]
        while ready:
            node = ready.pop()
            grad = self.pending.pop(node)
            node.grad = grad.copy() if node.grad is None else node.grad + grad
            for source, share in zip(node.inputs, node.rule(grad) if node.rule else ()):
                self.receive(source, share)
                self.uses[source] -= 1
                if self.uses[source] == 0:
                    ready.append(source)


def backward(self, gradient=None):
    if gradient is None:
        if np.prod(self.shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones(self.shape)
    BackwardPass(self).run(self, np.array(gradient, dtype=np.float64))


MiniTensor.backward = backward

# %% tags=["style:classes"] exercise="elementwise"
class Recorded:
    """An operation as an object: `forward` keeps what `__call__`, the rule, needs."""

    @classmethod
    def apply(cls, *inputs):
        operation = cls()
        inputs = tuple(as_tensor(x) for x in inputs)
        output = operation.forward(*(x.data for x in inputs))
        return MiniTensor(output, inputs, cls.__name__.lower(), operation)


class Div(Recorded):
    def forward(self, a, b):
        self.output, self.below = a / b, b
        return self.output

    def __call__(self, grad):
        share = grad / self.below
        return share, -share * self.output


class Relu(Recorded):
    def forward(self, a):
        self.off = a <= 0
        return np.where(self.off, 0.0, a)

    def __call__(self, grad):
        return [np.where(self.off, 0.0, grad)]


divide, relu = Div.apply, Relu.apply
MiniTensor.__truediv__ = lambda a, other: Div.apply(a, other)
MiniTensor.__rtruediv__ = lambda a, other: Div.apply(other, a)
MiniTensor.relu = lambda a: Relu.apply(a)

# %% tags=["style:classes"] exercise="reductions"
class Reduction:
    def __init__(self, a, dim, keepdim):
        self.a, self.dim, self.keepdim = a, dim, keepdim
        self.kept_shape = a.data.sum(axis=dim, keepdims=True).shape

    def recorded(self):
        output = self.forward(self.a.data)
        return MiniTensor(output, (self.a,), type(self).__name__.lower(), self)

    def __call__(self, grad):
        return (self.weights() * grad.reshape(self.kept_shape),)


class Sum(Reduction):
    def forward(self, x):
        axes = tuple(range(x.ndim)) if self.dim is None else self.dim
        return np.add.reduce(x, axis=axes, keepdims=self.keepdim)

    def weights(self):
        return np.ones(self.a.shape)


class Mean(Reduction):
    def forward(self, x):
        return x.mean(axis=self.dim, keepdims=self.keepdim)

    def weights(self):
        return np.full(self.a.shape, np.prod(self.kept_shape) / self.a.data.size)


def sum_over(a, dim=None, keepdim=False):
    return Sum(a, dim, keepdim).recorded()


def mean_over(a, dim=None, keepdim=False):
    return Mean(a, dim, keepdim).recorded()


MiniTensor.sum, MiniTensor.mean = sum_over, mean_over

# %% tags=["style:classes"] exercise="rearranging"
class Reshape:
    def __init__(self, before):
        self.before = before

    def __call__(self, grad):
        return [np.reshape(grad, self.before)]


class Transpose:
    def __init__(self, axes):
        self.axes = axes

    def __call__(self, grad):
        return [np.transpose(grad, np.argsort(self.axes))]


class Index:
    def __init__(self, shape, index):
        self.shape, self.index = shape, index

    def __call__(self, grad):
        places = np.arange(int(np.prod(self.shape))).reshape(self.shape)[self.index].ravel()
        total = np.zeros(int(np.prod(self.shape)))
        for place, share in zip(places, np.ravel(grad)):
            total[place] += share
        return [total.reshape(self.shape)]


class MatMul:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __call__(self, grad):
        turned = [np.moveaxis(x, -1, -2) for x in (self.a, self.b)]
        return [np.matmul(grad, turned[1]), np.matmul(turned[0], grad)]


def reshape(a, *shape):
    return MiniTensor(np.reshape(a.data, shape), (a,), "reshape", Reshape(a.shape))


def transpose(a, dim0, dim1):
    axes = list(range(a.ndim))
    axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    return MiniTensor(np.transpose(a.data, axes), (a,), "transpose", Transpose(axes))


def getitem(a, index):
    return MiniTensor(a.data[index], (a,), "index", Index(a.shape, index))


def matmul(a, b):
    return MiniTensor(np.matmul(a.data, b.data), (a, b), "@", MatMul(a.data, b.data))


MiniTensor.reshape, MiniTensor.transpose, MiniTensor.__getitem__ = reshape, transpose, getitem

# %% tags=["style:classes"] exercise="softmax"
class Softmax:
    def __init__(self, x, dim):
        self.dim = dim
        self.p = np.exp(x - np.max(x, axis=dim, keepdims=True))
        self.p /= self.p.sum(axis=dim, keepdims=True)

    def __call__(self, grad):
        weighted = self.p * grad
        return [weighted - self.p * weighted.sum(axis=self.dim, keepdims=True)]


class LogSoftmax(Softmax):
    def __init__(self, x, dim):
        super().__init__(x, dim)
        self.output = x - np.logaddexp.reduce(x, axis=dim, keepdims=True)

    def __call__(self, grad):
        return [grad - self.p * grad.sum(axis=self.dim, keepdims=True)]


class CrossEntropy(LogSoftmax):
    def __init__(self, x, labels):
        super().__init__(x, 1)
        self.places = (np.arange(len(labels)), labels)

    def value(self):
        return -np.mean(self.output[self.places])

    def __call__(self, grad):
        slope = self.p.copy()
        slope[self.places] -= 1
        return [slope * (grad / len(slope))]


def softmax(a, dim):
    rule = Softmax(a.data, dim)
    return MiniTensor(rule.p, (a,), "softmax", rule)


def log_softmax(a, dim):
    rule = LogSoftmax(a.data, dim)
    return MiniTensor(rule.output, (a,), "log_softmax", rule)


def cross_entropy(logits, labels):
    rule = CrossEntropy(logits.data, labels)
    return MiniTensor(rule.value(), (logits,), "cross_entropy", rule)


MiniTensor.softmax, MiniTensor.log_softmax, MiniTensor.cross_entropy = softmax, log_softmax, cross_entropy

# %% tags=["style:classes"] exercise="maximum"
class Max:
    def __init__(self, x, dim):
        self.x, self.dim = x, dim
        self.kept_shape = x.max(axis=dim, keepdims=True).shape

    def weights(self):
        if self.dim is None:
            return np.where(self.x == self.x.max(), 1 / np.count_nonzero(self.x == self.x.max()), 0.0)
        size = self.x.shape[self.dim]
        return np.moveaxis(np.eye(size)[self.x.argmax(self.dim)], -1, self.dim)

    def __call__(self, grad):
        return (self.weights() * grad.reshape(self.kept_shape),)


def max_over(a, dim=None, keepdim=False):
    return MiniTensor(a.data.max(axis=dim, keepdims=keepdim), (a,), "max", Max(a.data, dim))


MiniTensor.max = max_over

# %% tags=["style:plain"] exercise="sum_to"
def sum_to(grad, shape):
    extra = grad.ndim - len(shape)
    stretched = [extra + axis for axis in range(len(shape)) if shape[axis] < grad.shape[extra + axis]]
    return grad.sum(axis=(*range(extra), *stretched)).reshape(shape)

# %% tags=["style:plain"] exercise="backward"
from collections import defaultdict


def backward(self, gradient=None):
    if gradient is None:
        if self.data.size > 1 or self.data.size == 0:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones_like(self.data)
    arrived = defaultdict(list)
    arrived[self].append(np.asarray(gradient, dtype=float))
    for node in topological_order(self):
        total = sum(sum_to(share, node.shape) for share in arrived.pop(node))
        if node.grad is None:
            node.grad = total
        else:
            node.grad = total + node.grad
        if node.rule:
            for source, share in zip(node.inputs, node.rule(total)):
                arrived[source].append(share)


MiniTensor.backward = backward

# %% tags=["style:plain"] exercise="elementwise"
def divide(a, b):
    a, b = as_tensor(a), as_tensor(b)
    quotient, inverse = a.data / b.data, 1 / b.data

    def rule(grad):
        share = grad * inverse
        return share, -share * quotient

    return MiniTensor(quotient, (a, b), "/", rule)


def relu(a):
    positive = np.clip(a.data, 0.0, None)

    def rule(grad):
        share = grad.copy()
        share[positive == 0] = 0.0
        return (share,)

    return MiniTensor(positive, (a,), "relu", rule)


MiniTensor.__truediv__ = divide
MiniTensor.__rtruediv__ = lambda a, other: divide(other, a)
MiniTensor.relu = relu

# %% tags=["style:plain"] exercise="reductions"
def spread(grad, shape, dim, keepdim):
    """Give each entry of an array the gradient of the result that it went into."""
    if dim is None:
        return np.full(shape, grad)
    if not keepdim:
        grad = np.expand_dims(grad, dim)
    return np.repeat(grad, shape[dim], axis=dim)


def sum_over(a, dim=None, keepdim=False):
    shape = a.shape
    total = np.sum(a.data, axis=dim, keepdims=keepdim)
    return MiniTensor(total, (a,), "sum", lambda grad: (spread(grad, shape, dim, keepdim),))


def mean_over(a, dim=None, keepdim=False):
    shape = a.shape
    average = np.mean(a.data, axis=dim, keepdims=keepdim)
    count = np.prod(shape) if dim is None else shape[dim]
    return MiniTensor(average, (a,), "mean", lambda grad: (spread(grad / count, shape, dim, keepdim),))


MiniTensor.sum = sum_over
MiniTensor.mean = mean_over

# %% tags=["style:plain"] exercise="rearranging"
def reshape(a, *shape):
    before = a.data.shape
    return MiniTensor(a.data.reshape(shape), (a,), "reshape", lambda grad: [np.ravel(grad).reshape(before)])


def transpose(a, dim0, dim1):
    swapped = np.swapaxes(a.data, dim0, dim1)
    return MiniTensor(swapped, (a,), "transpose", lambda grad: [np.swapaxes(grad, dim1, dim0)])


def getitem(a, index):
    numbers = np.arange(a.data.size).reshape(a.shape)

    def rule(grad):
        taken = np.asarray(numbers[index])
        total = np.zeros(a.data.size)
        for number in np.unique(taken):
            total[number] = grad[taken == number].sum()
        return (total.reshape(a.shape),)

    return MiniTensor(a.data[index], (a,), "index", rule)


def matmul(a, b):
    left, right = a.data, b.data

    def rule(grad):
        turned = np.swapaxes(grad, -2, -1)
        return np.swapaxes(right @ turned, -2, -1), np.swapaxes(turned @ left, -2, -1)

    return MiniTensor(left @ right, (a, b), "@", rule)


MiniTensor.reshape = reshape
MiniTensor.transpose = transpose
MiniTensor.__getitem__ = getitem

# %% tags=["style:plain"] exercise="softmax"
def softmax(a, dim):
    raised = np.exp(a.data - a.data.max(axis=dim, keepdims=True))
    output = raised / raised.sum(axis=dim, keepdims=True)

    def rule(grad):
        p, g = np.moveaxis(output, dim, -1), np.moveaxis(grad, dim, -1)
        jacobian = p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :])
        return (np.moveaxis(np.einsum("...i,...ij->...j", g, jacobian), -1, dim),)

    return MiniTensor(output, (a,), "softmax", rule)


def log_softmax(a, dim):
    largest = a.data.max(axis=dim, keepdims=True)
    total = np.exp(a.data - largest).sum(axis=dim, keepdims=True)
    probabilities = np.exp(a.data - largest) / total

    def rule(grad):
        return (grad - probabilities * grad.sum(axis=dim, keepdims=True),)

    return MiniTensor(a.data - largest - np.log(total), (a,), "log_softmax", rule)


def cross_entropy(logits, labels):
    rows = log_softmax(logits, 1)
    return sum(-rows[number, label] for number, label in enumerate(labels)) / len(labels)


MiniTensor.softmax = softmax
MiniTensor.log_softmax = log_softmax
MiniTensor.cross_entropy = cross_entropy

# %% tags=["style:plain"] exercise="maximum"
def max_over(a, dim=None, keepdim=False):
    largest = a.data.max(axis=dim, keepdims=True)
    weights = (a.data == largest).astype(float)
    if dim is None:
        weights /= weights.sum()
    else:
        rows = np.moveaxis(weights, dim, -1)  # a view: what is written here stands in weights
        for place in np.ndindex(rows.shape[:-1]):
            first = rows[place].tolist().index(1.0)
            rows[place][first + 1 :] = 0.0

    def rule(grad):
        return (weights * grad.reshape(largest.shape),)

    return MiniTensor(largest if keepdim else a.data.max(axis=dim), (a,), "max", rule)


MiniTensor.max = max_over
