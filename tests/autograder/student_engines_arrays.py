"""Two array engines as students write them, right or with one mistake of the bank.

`closures`: one class, a closure per operation that adds to `.grad`, which starts as zeros; recursion for the order.
`functions`: a Function object per operation with a context, gradients waiting in a dict, `.grad` None until something
arrives, uses counted for the order; differences and quotients are made of other operations; recording can be off and
saved values are freed. `mistake` is a pair (name of the bug, operation or form), `more` are further wrong rules.
"""

import numpy as np

from tests.autograder.student_engines_operations import RIGHT, WRONG


def axes_of(dim, x):
    if dim is None:
        return None
    return tuple(sorted(axis % x.data.ndim for axis in ([dim] if isinstance(dim, int) else dim)))


class Methods:
    """What both engines offer. `self.call(name, options, *inputs)` computes and records an operation."""

    def __add__(self, other):
        return self.call("add", {}, self, other)

    def __mul__(self, other):
        return self.call("mul", {}, self, other)

    def __sub__(self, other):
        return self.call("sub", {}, self, other)

    def __truediv__(self, other):
        return self.call("div", {}, self, other)

    def __neg__(self):
        return self.call("neg", {}, self)

    def __pow__(self, n):
        return self.call("pow", {"n": n}, self)

    def __matmul__(self, other):
        return self.call("matmul", {}, self, other)

    def __getitem__(self, index):
        return self.call("index", {"index": index}, self)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        return -self + other

    def __rtruediv__(self, other):
        return self**-1 * other

    def __gt__(self, other):
        return self.data > other

    def maximum(self, other):
        return self.call("maximum", {}, self, other)

    def where(self, condition, other):
        return self.call("where", {"condition": condition}, self, other)

    def sum(self, dim=None, keepdim=False):
        return self.call("sum", {"dim": axes_of(dim, self), "keepdim": keepdim}, self)

    def mean(self, dim=None, keepdim=False):
        return self.call("mean", {"dim": axes_of(dim, self), "keepdim": keepdim}, self)

    def amax(self, dim=None, keepdim=False):
        return self.call("amax", {"dim": axes_of(dim, self), "keepdim": keepdim}, self)

    def amin(self, dim=None, keepdim=False):
        return self.call("amin", {"dim": axes_of(dim, self), "keepdim": keepdim}, self)

    def reshape(self, *shape):
        return self.call("reshape", {"shape": shape[0] if isinstance(shape[0], tuple) else shape}, self)

    def transpose(self, first, second):
        return self.call("transpose", {"dims": (first, second)}, self)

    def permute(self, *dims):
        return self.call("permute", {"dims": dims}, self)

    @property
    def T(self):  # noqa: N802
        return self.permute(*reversed(range(self.data.ndim)))

    def flip(self, dim):
        return self.call("flip", {"dims": dim}, self)

    def roll(self, shift, dim):
        return self.call("roll", {"shift": shift, "dim": dim}, self)

    def cat(self, other, dim=0):
        return self.call("cat", {"dim": dim}, self, other)

    def sort(self, dim):
        return self.call("sort", {"dim": dim}, self), np.argsort(self.data, dim)

    def cumsum(self, dim):
        return self.call("cumsum", {"dim": dim}, self)

    def softmax(self, dim):
        return self.call("softmax", {"dim": dim}, self)

    def log_softmax(self, dim):
        return self.call("log_softmax", {"dim": dim}, self)

    def leaky_relu(self, slope=0.01):
        return self.call("leaky_relu", {"slope": slope}, self)

    def cross_entropy(self, targets):
        return self.call("cross_entropy", {"targets": targets}, self)

    def mse_loss(self, target):
        return self.call("mse_loss", {}, self, target)

    def embedding(self, indices):
        return self.call("embedding", {"index": np.asarray(indices)}, self)

    def dropout(self, mask, p):
        return self.call("dropout", {"mask": np.asarray(mask, dtype=float), "p": p}, self)


for _name in ("exp", "log", "tanh", "relu", "sigmoid", "sqrt", "abs", "sin", "cos", "layer_norm", "batch_norm"):
    setattr(Methods, _name, lambda self, name=_name: self.call(name, {}, self))


def added(g, shape):
    return tuple(range(g.ndim - len(shape)))


def stretched(g, shape):
    return tuple(axis for axis, size in enumerate(shape, g.ndim - len(shape)) if size == 1 < g.shape[axis])


def first_of(g, shape):
    while g.ndim > len(shape):
        g = g[0]
    for axis in stretched(g, shape):
        g = np.moveaxis(np.moveaxis(g, axis, 0)[:1], 0, axis)
    return g


def trailing(g, shape):
    return g.sum(tuple(range(len(shape), g.ndim))) if g.ndim > len(shape) else summed(g, shape)


def dropped(g, shape):
    return g.sum(added(g, shape) + stretched(g, shape))


def summed(g, shape):
    g = g.sum(added(g, shape))
    return g.sum(stretched(g, shape), keepdims=True)


UNDO = {
    "broadcast_not_summed": lambda g, shape: g,
    "broadcast_averaged": lambda g, shape: summed(g, shape) * np.prod(shape) / g.size,
    "broadcast_wrong_axis": trailing,
    "broadcast_first_kept": first_of,
    "broadcast_axis_dropped": dropped,
    "broadcast_stretched_axes_forgotten": lambda g, shape: g.sum(added(g, shape)),
    "broadcast_added_axes_forgotten": lambda g, shape: g.sum(stretched(g, shape), keepdims=True),
    "broadcast_all_summed": lambda g, shape: np.full(shape, g.sum()),
}


def undone(bug, g, shape, number):
    """A gradient brought to the shape of an input, correctly or not."""
    g = np.asarray(g)
    if g.shape == shape or (bug == "broadcast_one_operand_only" and number != 1):
        return g
    try:
        fits = np.broadcast_shapes(g.shape, shape) == g.shape
    except ValueError:
        fits = False
    return UNDO.get(bug, summed)(g, shape) if fits else g


def computed(bug, where, name, options, arrays):
    """The value of an operation, which may write into its input."""
    value = np.asarray(RIGHT[name][0](options, *arrays), dtype=np.float64)
    if bug == "input_mutated" and where == name and arrays[0].shape == value.shape:
        arrays[0][...] = value
    return value


def rule_of(mistakes, name):
    for bug, where in mistakes:
        if where in (name, "all") and (bug, name) in WRONG:
            return WRONG[bug, name]
    return RIGHT[name][1]


def spoil(bug, where, name, g, y, options, arrays):
    """Mistakes that change, in place, what others still need."""
    if bug == "saved_value_changed" and where == name:
        arrays[0][...] = RIGHT[name][1](np.ones(y.shape), y, options, *arrays)[0]


def closures(mistake=("", ""), *more):
    bug, where = mistake

    class MiniTensor(Methods):
        def __init__(self, data, _inputs=()):
            self.data = np.asarray(data, dtype=np.float64)
            self.grad = None if bug == "gradient_aliased" else np.zeros(self.data.shape, kind)
            self._inputs = _inputs
            self._backward = lambda: None

        def call(self, name, options, *inputs):
            inputs = tuple(x if isinstance(x, MiniTensor) else MiniTensor(x) for x in inputs)
            arrays = [x.data for x in inputs]
            out = MiniTensor(computed(bug, where, name, options, arrays), inputs)
            rule = rule_of((mistake, *more), name)

            def backward():
                g = out.grad
                if bug == "incoming_changed_in_place" and where == name:
                    shares = list(rule(g, out.data, options, *arrays))
                    shares[1:] = rule(shares[0], out.data, options, *arrays)[1:]
                else:
                    shares = rule(g, out.data, options, *arrays)
                spoil(bug, where, name, g, out.data, options, arrays)
                for number, (source, share) in enumerate(zip(inputs, shares, strict=True)):
                    source.receive(name, undone(bug, share, source.data.shape, number))

            out._backward = backward
            return out

        def receive(self, name, share):
            assigns = bug == "assigned_not_accumulated" and where in (name, "all")
            if assigns or self.grad is None:
                self.grad = share
            else:
                self.grad += share

        def backward(self, gradient=None):
            given = gradient is not None and bug != "seed_ignored"
            self.grad = np.array(gradient, dtype=np.float64) if given else np.ones(self.data.shape)
            order = orders.get(where, postorder)(self)
            if bug == "leaf_overwritten":
                for node in order[1:]:
                    node.grad = np.zeros(node.data.shape)
            for node in order:
                node._backward()

    kind = np.float32 if bug == "dtype_narrowed" else np.float64
    return MiniTensor


def postorder(root):
    """Every node before its inputs."""
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for source in node._inputs:
                visit(source)
            order.append(node)

    visit(root)
    return order[::-1]


def preorder(root):
    order = []

    def visit(node):
        if node not in order:
            order.append(node)
            for source in node._inputs:
                visit(source)

    visit(root)
    return order


def level_order(root):
    order = [root]
    for node in order:
        order.extend(source for source in node._inputs if source not in order)
    return order


def along_every_path(root):
    return [root, *(node for source in dict.fromkeys(root._inputs) for node in along_every_path(source))]


def from_the_inputs(root):
    return postorder(root)[::-1]


orders = {
    "depth first": preorder,
    "breadth first": level_order,
    "every path": along_every_path,
    "not reversed": from_the_inputs,
}


def functions(mistake=("", ""), *more):
    bug, where = mistake

    class Function:
        def __init__(self, name, options, inputs):
            self.name, self.options, self.inputs = name, options, inputs

        def forward(self, *arrays):
            self.saved = arrays
            self.output = computed(bug, where, self.name, self.options, arrays)
            return self.output

        def backward(self, g):
            if self.saved is None:
                raise RuntimeError("the saved values have been freed")
            rule = rule_of((mistake, *more), self.name)
            shares = rule(g, self.output, self.options, *self.saved)
            if bug == "incoming_changed_in_place" and where == self.name and np.shape(shares[0]) == np.shape(g):
                np.copyto(g, shares[0])
                shares = (g, *shares[1:])
            spoil(bug, where, self.name, g, self.output, self.options, self.saved)
            return [
                undone(bug, share, x.data.shape, number)
                for number, (x, share) in enumerate(zip(self.inputs, shares, strict=True))
            ]

    class MiniTensor(Methods):
        def __init__(self, data, requires_grad=False):
            self.data = np.asarray(data, dtype=np.float64)
            self.requires_grad = requires_grad
            self.grad = None
            self.function = None

        def call(self, name, options, *inputs):
            inputs = tuple(x if isinstance(x, MiniTensor) else MiniTensor(x) for x in inputs)
            function = Function(name, options, inputs)
            out = MiniTensor(function.forward(*(x.data for x in inputs)))
            if any(x.requires_grad for x in inputs):
                out.requires_grad, out.function = True, function
            return out

        def __sub__(self, other):
            return self + -(other if isinstance(other, MiniTensor) else MiniTensor(other))

        def __truediv__(self, other):
            return self * (other if isinstance(other, MiniTensor) else MiniTensor(other)) ** -1

        def store(self, g):
            if bug == "gradient_aliased":
                if self.grad is None:
                    self.grad = g
                else:
                    self.grad += g
            elif self.grad is None or bug == "leaf_overwritten":
                self.grad = np.array(g, dtype=np.float32 if bug == "dtype_narrowed" else np.float64)
            else:
                self.grad = self.grad + g

        def backward(self, gradient=None, retain_graph=False):
            given = gradient is not None and bug != "seed_ignored"
            pending = {self: np.array(gradient, dtype=np.float64) if given else np.ones(self.data.shape)}
            uses, ready, visited = counted(self), [self], []
            while ready:
                node = ready.pop()
                if node not in pending:
                    continue
                g = pending.pop(node)
                if node.function is None:
                    node.store(g)
                    continue
                visited.append(node.function)
                for source, share in zip(node.function.inputs, node.function.backward(g), strict=True):
                    if not source.requires_grad:
                        continue
                    waits = source in pending and not (
                        bug == "assigned_not_accumulated" and where in (node.function.name, "all")
                    )
                    pending[source] = pending[source] + share if waits else share
                    uses[source] -= 1
                    if uses[source] == 0 or (bug == "no_topological_order" and source not in ready):
                        ready.append(source)
            if not retain_graph:
                for function in visited:
                    function.saved = None

    def counted(root):
        uses, stack, seen = {}, [root], set()
        while stack:
            node = stack.pop()
            if node in seen or node.function is None:
                continue
            seen.add(node)
            for source in node.function.inputs:
                uses[source] = uses.get(source, 0) + 1
                stack.append(source)
        return uses

    return MiniTensor


BOTH = ("closures", "functions")
ENGINE = {
    **{("assigned_not_accumulated", where): ("engine", BOTH) for where in ("mul", "add", "all")},
    ("no_topological_order", "depth first"): ("engine", ("closures",)),
    ("no_topological_order", "breadth first"): ("engine", ("closures",)),
    ("visited_twice", "every path"): ("engine", ("closures",)),
    ("order_not_reversed", "not reversed"): ("engine", ("closures",)),
    ("leaf_overwritten", ""): ("engine", BOTH),
    ("gradient_aliased", ""): ("engine", BOTH),
    ("incoming_changed_in_place", "mul"): ("branches", BOTH),
    ("incoming_changed_in_place", "tanh"): ("branches", ("functions",)),
    **{("saved_value_changed", where): ("kept", BOTH) for where in ("relu", "log", "pow")},
    **{("input_mutated", where): ("in place", BOTH) for where in ("relu", "exp", "tanh")},
    ("dtype_narrowed", ""): ("engine", BOTH),
    ("seed_ignored", ""): ("engine", BOTH),
    **{(name, ""): ("broadcast", BOTH) for name in (*UNDO, "broadcast_one_operand_only")},
}
"""The mistakes outside the rules that these engines can make: the check that shows each (see `bugs/planted.py`), and
the engines in which it does."""
