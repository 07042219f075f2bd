# %% tags=["style:compact"] exercise="rules_as_classes"
class Sub(Function):
    forward = staticmethod(lambda ctx, a, b: a - b)
    backward = staticmethod(lambda ctx, grad: (grad, -1.0 * grad))


class Tanh(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return np.tanh(a)

    backward = staticmethod(lambda ctx, grad: grad / np.cosh(ctx.saved_tensors[0]) ** 2)

# %% tags=["style:compact"] exercise="record"
ENDS = weakref.WeakValueDictionary()  # a leaf's id -> its AccumulateGrad, which keeps the leaf, and so the id, alive


def edge_to(tensor):
    if not tensor.requires_grad:
        return None, 0
    return tensor.grad_fn or ENDS.setdefault(id(tensor), AccumulateGrad(tensor)), 0


def apply(cls, *inputs, **options):
    ctx, inputs = cls(), [*map(as_tensor, inputs)]
    output = MiniTensor(cls.forward(ctx, *[x.data for x in inputs], **options))
    output.requires_grad = any([x.requires_grad for x in inputs])
    if output.requires_grad:
        output.grad_fn = ctx
        ctx.next_functions, ctx.input_shapes = zip(*[(edge_to(x), x.shape) for x in inputs])
    return output


Function.apply = classmethod(apply)

# %% tags=["style:compact"] exercise="accumulate"
def accumulate(self, grad):
    before = 0.0 if self.variable.grad is None else self.variable.grad.data
    self.variable.grad = MiniTensor(before + grad)


AccumulateGrad.accumulate = accumulate

# %% tags=["style:compact"] exercise="backward"
def backward(self, gradient=None):
    if not self.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    if gradient is None:
        if self.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones_like(self.data)
    root = edge_to(self)[0]
    arrived = {node: [] for node in topological_order(root)}
    arrived[root].append(as_tensor(gradient).data)
    for node, parts in arrived.items():
        if not parts:
            continue
        grad = sum(parts[1:], parts[0])
        parts.clear()
        if isinstance(node, AccumulateGrad):
            node.accumulate(grad)
            continue
        if node.retaining is not None and node.retaining() is not None:
            before = node.retaining().grad
            node.retaining().grad = MiniTensor(grad + (0.0 if before is None else before.data))
        shares = node.backward(node, grad)
        for (source, _), share, shape in zip(node.next_functions, shares if type(shares) is tuple else [shares], node.input_shapes):
            if source and share is not None:
                arrived[source].append(sum_to(share, shape))


MiniTensor.backward = backward

# %% tags=["style:compact"] exercise="sgd"
class SGD:
    def __init__(self, parameters, lr, momentum=0.0):
        self.lr, self.momentum, self.velocity = lr, momentum, {p: np.zeros(p.shape) for p in parameters}

    def step(self):
        for p, v in self.velocity.items():
            if p.grad is not None:
                self.velocity[p] = v = self.momentum * v + p.grad.data
                p.data = p.data - self.lr * v

    def zero_grad(self, set_to_none=True):
        for p in self.velocity:
            p.grad = None if set_to_none or p.grad is None else MiniTensor(0.0 * p.data)

# %% tags=["style:compact"] exercise="graph_lines"
def graph_lines(node, depth=0, met=None):
    met = [] if met is None else met
    again = any(node is other for other in met)
    met.append(node)
    line = depth * 4 * " " + node.name().rpartition("::")[2] + again * " (again)"
    inputs = [source for source, _ in node.next_functions if source is not None and not again]
    return [line] + [entry for source in inputs for entry in graph_lines(source, depth + 1, met)]

# %% tags=["style:torch"] exercise="rules_as_classes"
class Sub(Function):
    @staticmethod
    def forward(ctx, first, second):
        return np.subtract(first, second)

    @staticmethod
    def backward(ctx, upstream):
        return upstream, np.negative(upstream)


class Tanh(Function):
    @staticmethod
    def forward(ctx, argument):
        output = np.tanh(argument)
        ctx.save_for_backward(1 - output * output)
        return output

    @staticmethod
    def backward(ctx, upstream):
        (slope,) = ctx.saved_tensors
        return (upstream * slope,)

# %% tags=["style:torch"] exercise="record"
import itertools

count_nodes = itertools.count(1).__next__


def edge_to(tensor):
    if tensor.grad_fn is None and tensor.requires_grad:
        node = getattr(tensor, "_end", lambda: None)()
        if node is None:
            node = AccumulateGrad(tensor)
            node.sequence_nr = float("inf")
            tensor._end = weakref.ref(node)
    else:
        node = tensor.grad_fn
    return node, 0


def apply(cls, *inputs, **options):
    tensors = tuple(as_tensor(value) for value in inputs)
    node = cls()
    node.sequence_nr = count_nodes()
    output = MiniTensor(cls.forward(node, *(tensor.data for tensor in tensors), **options))
    edges = tuple(edge_to(tensor) for tensor in tensors)
    if edges != ((None, 0),) * len(edges):
        node.next_functions = edges
        node.input_shapes = tuple(tensor.data.shape for tensor in tensors)
        output.grad_fn = node
        output.requires_grad = True
    return output


Function.apply = classmethod(apply)

# %% tags=["style:torch"] exercise="accumulate"
def accumulate(self, grad):
    if self.variable.grad is None:
        self.variable.grad = MiniTensor(np.zeros(self.variable.shape))
    self.variable.grad.data += grad


AccumulateGrad.accumulate = accumulate

# %% tags=["style:torch"] exercise="backward"
import heapq


class BackwardPass:
    """As PyTorch's engine does it: of the nodes that are ready, the one made last goes first; ends go at once."""

    def __init__(self, root):
        self.uses, waiting = {root: 0}, [root]
        while waiting:
            for source, _ in waiting.pop().next_functions:
                if source is not None:
                    if source not in self.uses:
                        self.uses[source] = 0
                        waiting.append(source)
                    self.uses[source] += 1
        self.pending, self.ready = {}, []

    def send(self, node, grad):
        if grad is not None:
            self.pending[node] = self.pending[node] + grad if node in self.pending else grad

    def use(self, node):
        self.uses[node] -= 1
        if self.uses[node] <= 0:
            heapq.heappush(self.ready, (-node.sequence_nr, id(node), node))

    def run(self):
        while self.ready:
            *_, node = heapq.heappop(self.ready)
            grad = self.pending.pop(node, None)
            if isinstance(node, AccumulateGrad):
                if grad is not None:
                    node.accumulate(grad)
                continue
            shares = (None,) * len(node.next_functions) if grad is None else self.shares(node, grad)
            for (source, _), share, shape in zip(node.next_functions, shares, node.input_shapes):
                if source is not None:
                    self.send(source, None if share is None else sum_to(share, shape))
                    self.use(source)

    def shares(self, node, grad):
        tensor = node.retaining and node.retaining()
        if tensor is not None:
            tensor.grad = MiniTensor(grad.copy() if tensor.grad is None else tensor.grad.data + grad)
        shares = node.backward(node, grad)
        return shares if isinstance(shares, tuple) else (shares,)


def backward(self, gradient=None):
    if not self.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    if gradient is None and self.data.size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    root, _ = edge_to(self)
    walk = BackwardPass(root)
    walk.send(root, np.ones(self.shape) if gradient is None else as_tensor(gradient).data)
    walk.use(root)
    walk.run()


MiniTensor.backward = backward

# %% tags=["style:torch"] exercise="sgd"
class SGD:
    def __init__(self, parameters, lr, momentum=0.0):
        self.groups = [{"parameter": parameter, "buffer": None} for parameter in parameters]
        self.lr = lr
        self.momentum = momentum

    def step(self):
        for group in self.groups:
            parameter = group["parameter"]
            if parameter.grad is None:
                continue
            gradient = parameter.grad.data
            group["buffer"] = gradient.copy() if group["buffer"] is None else group["buffer"] * self.momentum + gradient
            np.subtract(parameter.data, self.lr * group["buffer"], out=parameter.data)

    def zero_grad(self, set_to_none=True):
        for group in self.groups:
            gradient = group["parameter"].grad
            if set_to_none:
                group["parameter"].grad = None
            elif gradient is not None:
                gradient.data[...] = 0.0

# %% tags=["style:torch"] exercise="graph_lines"
def graph_lines(node):
    lines, known, stack = [], {}, [(node, 0)]
    while stack:
        node, depth = stack.pop()
        name = node.name()[node.name().rfind(":") + 1 :]
        lines.append(" " * (4 * depth) + name + (" (again)" if id(node) in known else ""))
        if known.setdefault(id(node), node) is node and not lines[-1].endswith("(again)"):
            stack.extend((source, depth + 1) for source, _ in reversed(node.next_functions) if source)
    return lines

# %% tags=["style:plain"] exercise="rules_as_classes"
class Sub(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a - b

    @staticmethod
    def backward(ctx, grad):
        for_a = grad
        for_b = np.zeros_like(grad) - grad
        return for_a, for_b


class Tanh(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(np.tanh(a))
        return ctx.saved_tensors[0]

    @staticmethod
    def backward(ctx, grad):
        output = ctx.saved_tensors[0]
        return grad - grad * output * output

# %% tags=["style:plain"] exercise="record"
def end_of(leaf):
    """The AccumulateGrad of a leaf, made anew if there is none or it is gone."""
    node = None
    if leaf._accumulate is not None:
        node = leaf._accumulate()
    if node is None:
        node = AccumulateGrad(leaf)
        leaf._accumulate = weakref.ref(node)
    return node


def edge_to(tensor):
    if tensor.grad_fn is not None:
        return (tensor.grad_fn, 0)
    return (end_of(tensor), 0) if tensor.requires_grad else (None, 0)


def apply(cls, *inputs, **options):
    node, arrays, edges, shapes = cls(), [], [], []
    for value in inputs:
        tensor = as_tensor(value)
        arrays.append(tensor.data)
        edges.append(edge_to(tensor))
        shapes.append(tensor.shape)
    output = MiniTensor(cls.forward(node, *arrays, **options))
    for target, _ in edges:
        if target is not None:
            node.next_functions, node.input_shapes = tuple(edges), tuple(shapes)
            output.grad_fn = node
            output.requires_grad = True
    return output


Function.apply = classmethod(apply)

# %% tags=["style:plain"] exercise="accumulate"
def accumulate(self, grad):
    parts = [grad]
    if self.variable.grad is not None:
        parts.append(self.variable.grad.data)
    self.variable.grad = MiniTensor(np.sum(parts, axis=0))


AccumulateGrad.accumulate = accumulate

# %% tags=["style:plain"] exercise="backward"
from collections import defaultdict


def shares_of(node, grad):
    """What each input of a node gets: pairs of the node to send it to and the array."""
    shares = type(node).backward(ctx=node, grad=grad)
    if not isinstance(shares, tuple):
        shares = (shares,)
    for edge, share, shape in zip(node.next_functions, shares, node.input_shapes):
        if edge[0] is not None and share is not None:
            yield edge[0], sum_to(share, shape)


def backward(self, gradient=None):
    if not self.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    if gradient is None:
        if self.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones(self.shape)
    root, _ = edge_to(self)
    arrived = defaultdict(list)
    arrived[root].append(as_tensor(gradient).data)
    for node in topological_order(root):
        if node not in arrived:
            continue
        grad = sum(arrived.pop(node))
        keep_if_asked(node, grad)
        if type(node) is AccumulateGrad:
            node.accumulate(grad)
        else:
            for target, share in shares_of(node, grad):
                arrived[target].append(share)


MiniTensor.backward = backward

# %% tags=["style:plain"] exercise="sgd"
class SGD:
    def __init__(self, parameters, lr, momentum=0.0):
        self.parameters = list(parameters)
        self.lr = lr
        self.momentum = momentum
        self.buffers = {}  # id of a parameter -> its buffer, from the first step on

    def with_gradient(self):
        return [parameter for parameter in self.parameters if parameter.grad is not None]

    def step(self):
        for parameter in self.with_gradient():
            buffer = self.buffers.setdefault(id(parameter), np.zeros(parameter.shape))
            buffer *= self.momentum
            buffer += parameter.grad.data
            parameter.data[...] = parameter.data - self.lr * buffer

    def zero_grad(self, set_to_none=True):
        for parameter in self.with_gradient():
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = MiniTensor(np.zeros_like(parameter.grad.data))

# %% tags=["style:plain"] exercise="graph_lines"
def graph_lines(node):
    times_met = {}

    def lines(node, indent):
        name = node.name().split(":")[-1]
        times_met[node] = times_met.get(node, 0) + 1
        if times_met[node] > 1:
            yield f"{indent}{name} (again)"
            return
        yield indent + name
        for source, _ in node.next_functions:
            if source is not None:
                yield from lines(source, indent + "    ")

    return list(lines(node, ""))
