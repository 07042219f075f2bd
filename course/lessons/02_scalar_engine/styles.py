# %% tags=["style:compact"] exercise="add_and_multiply"
def add(a, b):
    b = as_tensor(b)
    return MiniTensor(a.data + b.data, (a, b), "+", lambda grad: (grad, grad))


def multiply(a, b):
    b = as_tensor(b)
    return MiniTensor(a.data * b.data, (a, b), "*", lambda grad: (b.data * grad, a.data * grad))


MiniTensor.__add__ = MiniTensor.__radd__ = add
MiniTensor.__mul__ = MiniTensor.__rmul__ = multiply

# %% tags=["style:compact"] exercise="subtract_and_divide"
def reciprocal(a):
    return MiniTensor(1 / a.data, (a,), "1/", lambda grad: (-grad / (a.data * a.data),))


MiniTensor.__sub__ = lambda self, other: self + -as_tensor(other)
MiniTensor.__rsub__ = lambda self, other: -self + other
MiniTensor.__truediv__ = lambda self, other: self * reciprocal(as_tensor(other))
MiniTensor.__rtruediv__ = lambda self, other: reciprocal(self) * other

# %% tags=["style:compact"] exercise="power"
MiniTensor.__pow__ = lambda a, n: MiniTensor(a.data**n, (a,), f"**{n}", lambda grad: (n * a.data ** (n - 1) * grad,))

# %% tags=["style:compact"] exercise="functions"
def recorded(operation, value, slope):
    def method(self):
        output = value(self.data)
        return MiniTensor(output, (self,), operation, lambda grad: (grad * slope(self.data, output),))

    return method


MiniTensor.tanh = recorded("tanh", math.tanh, lambda x, y: 1 / math.cosh(x) ** 2)
MiniTensor.exp = recorded("exp", math.exp, lambda x, y: y)

# %% tags=["style:compact"] exercise="topological_order"
def topological_order(root):
    uses, waiting = {root: 0}, [root]
    while waiting:
        for source in waiting.pop().inputs:
            if source not in uses:
                uses[source] = 0
                waiting.append(source)
            uses[source] += 1
    order = [root]
    for node in order:
        for source in node.inputs:
            uses[source] -= 1
            if uses[source] == 0:
                order.append(source)
    return order

# %% tags=["style:compact"] exercise="backward"
def backward(self, gradient=1.0):
    arrived = dict.fromkeys(topological_order(self), 0.0)
    arrived[self] = gradient
    for node, grad in arrived.items():
        grad = arrived[node]
        node.grad = node.grad + grad
        for source, share in zip(node.inputs, node.rule(grad) if node.rule else ()):
            arrived[source] += share


MiniTensor.backward = backward

# %% tags=["style:classes"] exercise="add_and_multiply"
class AddRule:
    def __call__(self, grad):
        return [grad, grad]


class MultiplyRule:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def __call__(self, grad):
        return [grad * self.right, grad * self.left]


class Arithmetic:
    def __add__(self, other):
        other = as_tensor(other)
        return MiniTensor(self.data + other.data, (self, other), "+", AddRule())

    def __mul__(self, other):
        other = as_tensor(other)
        return MiniTensor(self.data * other.data, (self, other), "*", MultiplyRule(self.data, other.data))


MiniTensor.__add__ = MiniTensor.__radd__ = add = Arithmetic.__add__
MiniTensor.__mul__ = MiniTensor.__rmul__ = multiply = Arithmetic.__mul__

# %% tags=["style:classes"] exercise="subtract_and_divide"
class SubtractRule:
    def __call__(self, grad):
        return [grad, -grad]


class DivideRule:
    def __init__(self, above, below):
        self.above, self.below = above, below

    def __call__(self, grad):
        share = grad / self.below
        return [share, -share * self.above / self.below]


def subtract(a, b):
    a, b = as_tensor(a), as_tensor(b)
    return MiniTensor(a.data - b.data, (a, b), "-", SubtractRule())


def divide(a, b):
    a, b = as_tensor(a), as_tensor(b)
    return MiniTensor(a.data / b.data, (a, b), "/", DivideRule(a.data, b.data))


MiniTensor.__sub__, MiniTensor.__rsub__ = subtract, lambda a, number: subtract(number, a)
MiniTensor.__truediv__, MiniTensor.__rtruediv__ = divide, lambda a, number: divide(number, a)

# %% tags=["style:classes"] exercise="power"
class PowerRule:
    def __init__(self, base, exponent):
        self.base, self.exponent = base, exponent

    def __call__(self, grad):
        return [grad * self.exponent * math.pow(self.base, self.exponent - 1)]


def power(a, exponent):
    return MiniTensor(math.pow(a.data, exponent), (a,), "**", PowerRule(a.data, exponent))


MiniTensor.__pow__ = power

# %% tags=["style:classes"] exercise="functions"
class Tanh:
    def forward(self, x):
        y = 1 - 2 / (math.exp(2 * x) + 1)
        self.slope = 1 - y * y
        return y


class Exp:
    def forward(self, x):
        self.slope = math.exp(x)
        return self.slope


def method_of(kind):
    def method(self):
        function = kind()
        output = function.forward(self.data)
        return MiniTensor(output, (self,), kind.__name__.lower(), lambda grad: [grad * function.slope])

    return method


MiniTensor.tanh, MiniTensor.exp = method_of(Tanh), method_of(Exp)

# %% tags=["style:classes"] exercise="topological_order"
def topological_order(root):
    finished, entered, stack = [], {id(root)}, [(root, iter(root.inputs))]
    while stack:
        node, remaining = stack[-1]
        source = next(remaining, None)
        if source is None:
            finished.insert(0, node)
            stack.pop()
        elif id(source) not in entered:
            entered.add(id(source))
            stack.append((source, iter(source.inputs)))
    return finished

# %% tags=["style:classes"] exercise="backward"
class BackwardPass:
    """Counts the uses of each node, and runs a node when its last use has been dealt with; needs no order made beforehand."""

    def __init__(self, root):
        self.uses = {root: 0}
        self.pending = {}
        waiting = [root]
        while waiting:
            for source in waiting.pop().inputs:
                if source not in self.uses:
                    self.uses[source] = 0
                    waiting.append(source)
                self.uses[source] += 1

    def run(self, root, gradient):
        self.pending[root] = gradient
        ready = [root]
        while ready:
            node = ready.pop()
            grad = self.pending.pop(node)
            node.grad += grad
            for source, share in zip(node.inputs, node.rule(grad) if node.rule else ()):
                self.pending[source] = self.pending.get(source, 0.0) + share
                self.uses[source] -= 1
                if self.uses[source] == 0:
                    ready.append(source)


MiniTensor.backward = lambda self, gradient=1.0: BackwardPass(self).run(self, gradient)

# %% tags=["style:plain"] exercise="add_and_multiply"
def add(a, b):
    b = as_tensor(b)
    result = MiniTensor(a.data + b.data, (a, b), "+")

    def push(grad):
        return tuple(grad for _ in result.inputs)

    result.rule = push
    return result


def multiply(a, b):
    b = as_tensor(b)
    slopes = b.data, a.data
    result = MiniTensor(a.data * b.data, (a, b), "*")
    result.rule = lambda grad: tuple(slope * grad for slope in slopes)
    return result


MiniTensor.__add__ = add
MiniTensor.__radd__ = add
MiniTensor.__mul__ = multiply
MiniTensor.__rmul__ = multiply

# %% tags=["style:plain"] exercise="subtract_and_divide"
def subtract(a, b):
    b = as_tensor(b)
    slopes = 1.0, -1.0
    return MiniTensor(a.data - b.data, (a, b), "-", lambda grad: tuple(grad * slope for slope in slopes))


def divide(a, b):
    b = as_tensor(b)
    result = MiniTensor(a.data / b.data, (a, b), "/")
    inverse = 1 / b.data

    def push(grad):
        share = grad * inverse
        return share, -share * result.data

    result.rule = push
    return result


MiniTensor.__sub__ = subtract
MiniTensor.__rsub__ = lambda a, number: as_tensor(number) - a
MiniTensor.__truediv__ = divide
MiniTensor.__rtruediv__ = lambda a, number: as_tensor(number) / a

# %% tags=["style:plain"] exercise="power"
def power(a, exponent):
    slope = exponent * pow(a.data, exponent - 1)

    def push(grad):
        return [slope * grad]

    return MiniTensor(pow(a.data, exponent), [a], "**" + str(exponent), push)


MiniTensor.__pow__ = power

# %% tags=["style:plain"] exercise="functions"
def tanh(a):
    result = MiniTensor(math.tanh(a.data), (a,), "tanh")

    def push(grad):
        return (grad * (1 - result.data) * (1 + result.data),)

    result.rule = push
    return result


def exp(a):
    result = MiniTensor(math.exp(a.data), (a,), "exp")
    result.rule = lambda grad: (grad * result.data,)
    return result


MiniTensor.tanh = tanh
MiniTensor.exp = exp

# %% tags=["style:plain"] exercise="topological_order"
def topological_order(root):
    depths = {}

    def depth(node):
        """The number of operations on the longest path from a leaf to the node."""
        if node not in depths:
            depths[node] = 1 + max(map(depth, node.inputs), default=0)
        return depths[node]

    depth(root)
    return sorted(depths, key=depths.get, reverse=True)

# %% tags=["style:plain"] exercise="backward"
from collections import defaultdict


def backward(self, gradient=1.0):
    arrived = defaultdict(list)
    arrived[self].append(gradient)
    for node in topological_order(self):
        total = sum(arrived[node])
        node.grad += total
        if not node.rule:
            continue
        shares = node.rule(total)
        for i in range(len(node.inputs)):
            arrived[node.inputs[i]].append(shares[i])


MiniTensor.backward = backward
