# %% tags=["style:compact"] exercise="reconnected"
def reconnected(node):
    ends = {number: source for number, (source, _) in enumerate(node.next_functions)} | {"output": node, None: None}
    return tuple(value if value is None else led(MiniTensor(value), note, ends) for value, note in zip(node.saved_tensors, node.notes))


def led(tensor, note, ends):
    if note:
        tensor.grad_fn, tensor._counter = ends[note.source], note.counter
        tensor.requires_grad = tensor.grad_fn is not None
    return tensor


class AsTensors:
    def __init__(self, node):
        self.__dict__.update(vars(node))
        self.saved_tensors = reconnected(node)

# %% tags=["style:compact"] exercise="walk"
def walk_back(root, cotangent, retain_graph, create_graph, wanted=()):
    arrived, found = {root: [cotangent if create_graph else cotangent.data]}, {}

    def work(node, grad):
        if type(node) is AccumulateGrad:
            return node.accumulate(grad)
        for edge, share in zip(node.next_functions, shares_of(node, grad)):
            share is None or arrived.setdefault(edge[0], []).append(share)
        retain_graph or node.release()

    with enable_grad() if create_graph else no_grad():
        for node, works in visits(root, wanted):
            if parts := arrived.pop(node, []):
                grad = after_hooks(node, sum(parts[1:], start=parts[0]))
                retained(node, grad)
                found |= {node: as_tensor(grad)} if node in wanted else {}
                works and work(node, grad)
    return found

# %% tags=["style:compact"] exercise="grad"
UNUSED = "The differentiated Tensor at index {} appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    if isinstance(inputs, MiniTensor):
        return grad(outputs, (inputs,), grad_outputs, retain_graph, create_graph, allow_unused)
    ends = [edge_to(x)[0] for x in inputs]
    if not ends:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if None in ends:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    keep = retain_graph or (retain_graph is None and create_graph)
    found = walk_back(edge_to(outputs)[0], cotangent_of(outputs, grad_outputs), keep, create_graph, ends)
    answers = (*map(found.get, ends),)
    missing = [] if allow_unused else [number for number, answer in enumerate(answers) if answer is None]
    if missing:
        raise RuntimeError(UNUSED.format(missing[0]))
    return answers


def hvp(function, x, v):
    slope = grad(function(x), x, create_graph=True)[0]
    along = (slope * v).sum() + (x * 0).sum()  # the second part is zero, and always leads to x
    return grad(along, x)[0]

# %% tags=["style:compact"] exercise="newton"
def newton_step(function, x):
    x = MiniTensor(x, requires_grad=True)
    H = np.vstack([hvp(function, x, v).data for v in np.eye(len(x.data))])
    return x.data - np.linalg.solve(H, grad(function(x), x)[0].data)

# %% tags=["style:compact"] exercise="clip"
def gradients_of(parameters):
    return [p.grad for p in ([parameters] if hasattr(parameters, "grad_fn") else parameters) if p.grad is not None]


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    grads = gradients_of(parameters)
    norms = [np.linalg.norm(g.data.ravel(), ord=norm_type) for g in grads]
    norm = np.linalg.norm(norms, ord=norm_type) if norms else 0.0
    if error_if_nonfinite and not math.isfinite(norm):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite")
    factor = max_norm / (norm + 1e-6)
    factor = 1.0 if factor > 1 else factor
    no_grad()(lambda: [g.mul_(factor) for g in grads])()
    return MiniTensor(norm)

# %% tags=["style:compact"] exercise="logsumexp"
class SmoothLogSumExp(Function):
    @staticmethod
    def forward(ctx, a, dim):
        ctx.save_for_backward(a)
        ctx.dim, ctx.largest = dim, a.max(axis=dim, keepdims=True)
        return np.logaddexp.reduce(a, axis=dim)

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        raised = applied(Exp, a - ctx.largest)  # a softmax stays the same when all entries move by a constant
        return grad.reshape(ctx.largest.shape) * raised / applied(Sum, raised, dim=ctx.dim, keepdim=True)


MiniTensor.logsumexp = lambda self, dim: SmoothLogSumExp.apply(self, dim=dim)

# %% tags=["style:composed"] exercise="reconnected"
class Returning:
    """Finds the node that the gradient of a saved value has to go to."""

    def __init__(self, node):
        self.node = node

    def __call__(self, source):
        if isinstance(source, str):
            return self.node
        return None if source is None else self.node.next_functions[source][0]


def reconnected(node):
    back, found = Returning(node), []
    for position, value in enumerate(node.saved_tensors):
        note = node.notes[position]
        if value is not None:
            end = None if note is None else back(note.source)
            value = MiniTensor(value, requires_grad=end is not None)
            value.grad_fn = end
            value._counter = value._counter if note is None else note.counter
        found.append(value)
    return (*found,)


class AsTensors:
    def __init__(self, node):
        self.node = node

    def __getattr__(self, name):
        return reconnected(self.node) if name == "saved_tensors" else getattr(self.node, name)

# %% tags=["style:composed"] exercise="walk"
class Walk:
    """One backward pass: what is on its way, and what has been found."""

    def __init__(self, root, cotangent, retain_graph, wanted):
        self.retain_graph, self.wanted = retain_graph, wanted
        self.waiting, self.found = {root: cotangent}, {}

    def send(self, node, share):
        if node in self.waiting:
            share = self.waiting[node] + share
        self.waiting[node] = share

    def visit(self, node, works):
        grad = after_hooks(node, self.waiting.pop(node))
        if node in self.wanted:
            self.found[node] = grad if isinstance(grad, MiniTensor) else MiniTensor(grad)
        retained(node, grad)
        if works and isinstance(node, AccumulateGrad):
            node.accumulate(grad)
        elif works:
            shares = shares_of(node, grad)
            self.retain_graph or node.release()
            [self.send(edge[0], share) for edge, share in zip(node.next_functions, shares) if share is not None]


def walk_back(root, cotangent, retain_graph, create_graph, wanted=()):
    before, switches.recording = switches.recording, bool(create_graph)
    try:
        start = cotangent if create_graph else cotangent.data
        walking = Walk(root, start, retain_graph, wanted)
        for node, works in visits(root, wanted):
            if node in walking.waiting:
                walking.visit(node, works)
    finally:
        switches.recording = before
    return walking.found

# %% tags=["style:composed"] exercise="grad"
def listed(inputs):
    inputs = (inputs,) if hasattr(inputs, "grad_fn") else tuple(inputs)
    if len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    for x in inputs:
        if not x.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    return inputs


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    places = [edge_to(x)[0] for x in listed(inputs)]
    root, start = edge_to(outputs)[0], cotangent_of(outputs, grad_outputs)
    if retain_graph is None:
        retain_graph = create_graph
    found = walk_back(root, start, retain_graph, create_graph, list(dict.fromkeys(places)))
    gradients = []
    for index, place in enumerate(places):
        if place not in found and not allow_unused:
            text = "The differentiated Tensor at index %d appears to not have been used in the graph. Set allow_unused=True"
            raise RuntimeError(text % index + " if this is the desired behavior.")
        gradients.append(found.get(place, None))
    return tuple(gradients)


def hvp(function, x, v):
    point = x * 1  # any tensor will do, so there need not be a leaf
    (slope,) = grad(function(point), point, create_graph=True)
    if not slope.requires_grad:
        return MiniTensor(0 * x.data)
    (product,) = grad(slope, point, v, allow_unused=True)
    return MiniTensor(0 * x.data) if product is None else product

# %% tags=["style:composed"] exercise="newton"
def columns(function, x):
    for number in range(len(x)):
        yield hvp(function, MiniTensor(x, requires_grad=True), np.arange(len(x)) == number).data


def newton_step(function, x):
    leaf = MiniTensor(np.array(x), requires_grad=True)
    return x - np.linalg.inv(np.array(list(columns(function, x)))) @ grad(function(leaf), [leaf])[0].data

# %% tags=["style:composed"] exercise="clip"
def each_gradient(parameters):
    if isinstance(parameters, MiniTensor):
        parameters = (parameters,)
    for p in parameters:
        if p.grad is not None:
            yield p.grad


def overall(arrays, order):
    total = 0.0
    for array in arrays:
        if order == math.inf:
            total = np.maximum(total, np.abs(array).max(initial=0.0))
        else:
            total = total + np.sum(np.abs(array) ** order)
    return total if order == math.inf else total ** (1.0 / order)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    found = tuple(each_gradient(parameters))
    norm = overall((g.data for g in found), norm_type)
    if error_if_nonfinite and (np.isnan(norm) or np.isinf(norm)):
        text = "The total norm of order {} for gradients from `parameters` is non-finite, it cannot be clipped"
        raise RuntimeError(text.format(norm_type))
    with no_grad():
        for g in found:
            g.mul_(np.clip(max_norm / (norm + 1e-6), None, 1.0))
    return MiniTensor(norm)

# %% tags=["style:composed"] exercise="logsumexp"
def logsumexp(self, dim):
    largest = self.detach().max(dim=dim, keepdim=True)
    total = (self - largest).exp().sum(dim=dim)
    return total.log() + largest.reshape(total.shape)


MiniTensor.logsumexp = logsumexp

# %% tags=["style:plain"] exercise="reconnected"
def target_of(node, note):
    """The node that the gradient of a saved value goes to, or None for a constant."""
    if note is None or note.source is None:
        return None
    if note.source == "output":
        return node
    return node.next_functions[note.source][0]


def reconnected(node):
    values = node.saved_tensors
    tensors = [None] * len(values)
    for i in range(len(values)):
        if values[i] is None:
            continue
        target = target_of(node, node.notes[i])
        tensors[i] = MiniTensor(values[i])
        tensors[i].grad_fn = target
        tensors[i].requires_grad = target is not None
        if node.notes[i] is not None:
            tensors[i]._counter = node.notes[i].counter
    return tuple(tensors)


class AsTensors:
    def __init__(self, node):
        self.node = node
        self.saved_tensors = reconnected(node)

    def __getattr__(self, name):
        return getattr(self.node, name)

# %% tags=["style:plain"] exercise="walk"
import functools
import operator
from collections import defaultdict


def walk_back(root, cotangent, retain_graph, create_graph, wanted=()):
    arrived, found = defaultdict(list), {}
    arrived[root].append(cotangent if create_graph else cotangent.data)
    with set_grad_enabled(create_graph):
        for node, works in visits(root, wanted):
            if node not in arrived:
                continue
            grad = after_hooks(node, functools.reduce(operator.add, arrived.pop(node)))
            retained(node, grad)
            if any(node is other for other in wanted):
                found[node] = as_tensor(grad)
            if not works:
                continue
            if isinstance(node, AccumulateGrad):
                node.accumulate(grad)
                continue
            shares = shares_of(node, grad)
            if not retain_graph:
                node.release()
            for i, share in enumerate(shares):
                if share is not None:
                    arrived[node.next_functions[i][0]].append(share)
    return found

# %% tags=["style:plain"] exercise="grad"
def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    if isinstance(inputs, MiniTensor):
        inputs = [inputs]
    if len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if any(not x.requires_grad for x in inputs):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    if retain_graph is None:
        retain_graph = create_graph
    nodes = [edge_to(x)[0] for x in inputs]
    root, start = edge_to(outputs)[0], cotangent_of(outputs, grad_outputs)
    found = walk_back(root, start, retain_graph, create_graph, nodes)
    for i, node in enumerate(nodes):
        if not allow_unused and node not in found:
            text = f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
            raise RuntimeError(text + "Set allow_unused=True if this is the desired behavior.")
    return tuple(found[node] if node in found else None for node in nodes)


def hvp(function, x, v):
    copy = MiniTensor(x.data.copy(), requires_grad=True)
    (slope,) = grad(function(copy), copy, create_graph=True)
    if slope.requires_grad:
        (product,) = grad(slope, copy, grad_outputs=v, allow_unused=True)
        if product is not None:
            return product
    return MiniTensor(np.zeros_like(x.data))

# %% tags=["style:plain"] exercise="newton"
def newton_step(function, x):
    n = x.size
    point = MiniTensor(x, requires_grad=True)
    (slope,) = grad(function(point), [point])
    hessian = np.zeros((n, n))
    for number in range(n):
        unit = np.zeros(n)
        unit[number] = 1.0
        column = hvp(function, point, unit)
        hessian[:, number] = column.data
    step = np.linalg.solve(hessian, slope.data)
    return x - step

# %% tags=["style:plain"] exercise="clip"
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    if isinstance(parameters, MiniTensor):
        parameters = [parameters]
    grads = [p.grad for p in parameters if p.grad is not None]
    if not grads:
        return MiniTensor(0.0)
    entries = np.concatenate([g.data.flatten() for g in grads])
    norm = float(np.linalg.norm(entries, ord=norm_type))
    if error_if_nonfinite and not math.isfinite(norm):
        start = f"The total norm of order {norm_type} for gradients from `parameters` is non-finite"
        raise RuntimeError(start + ", so it cannot be clipped.")
    factor = min(max_norm / (norm + 1e-6), 1.0)
    with no_grad():
        for g in grads:
            g.copy_(g.data * factor)
    return MiniTensor(norm)

# %% tags=["style:plain"] exercise="logsumexp"
class SmoothLogSumExp(Function):
    @staticmethod
    def forward(ctx, a, dim):
        ctx.save_for_backward(a)
        ctx.dim = dim
        largest = np.max(a, axis=dim)
        return largest + np.log(np.sum(np.exp(a - np.expand_dims(largest, dim)), axis=dim))

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        kept = list(a.shape)
        kept[ctx.dim] = 1
        output = applied(SmoothLogSumExp, a, dim=ctx.dim)  # again, so only the input need be saved
        return applied(Exp, a - output.reshape(tuple(kept))) * grad.reshape(tuple(kept))


def logsumexp(self, dim):
    return SmoothLogSumExp.apply(self, dim=dim)


MiniTensor.logsumexp = logsumexp
