# %% tags=["style:compact"] exercise="push_forward"
def push_forward(value, *pairs):
    moving = [pair for pair in pairs if pair[1].tangent is not None]
    zero = np.zeros_like(value, dtype=float)
    return Dual(value, sum((s * d.tangent for s, d in moving), zero) if moving else None)

# %% tags=["style:compact"] exercise="slopes"
def of_one(value, slope):
    """A rule of one input from two functions of numbers."""
    return lambda a: push_forward(value(a.value), (slope(a.value), a))


def dual_mul(a, b):
    a, b = as_dual(a), as_dual(b)
    return push_forward(np.multiply(a.value, b.value), (a.value, b), (b.value, a))


def dual_div(a, b):
    return dual_mul(a, dual_pow(as_dual(b), -1))


def dual_pow(a, exponent):
    return of_one(lambda x: x**exponent, lambda x: exponent * x ** (exponent - 1))(a)


dual_exp = of_one(np.exp, np.exp)
dual_log = of_one(np.log, np.reciprocal)
dual_tanh = of_one(np.tanh, lambda x: np.cosh(x) ** -2)
dual_relu = of_one(lambda x: np.where(x > 0, x, 0.0), lambda x: np.where(x > 0, 1.0, 0.0))

Dual.__mul__, Dual.__rmul__ = dual_mul, dual_mul
Dual.__truediv__, Dual.__rtruediv__ = dual_div, lambda a, b: dual_div(b, a)
Dual.__pow__, Dual.exp, Dual.log, Dual.tanh, Dual.relu = dual_pow, dual_exp, dual_log, dual_tanh, dual_relu

# %% tags=["style:compact"] exercise="jvp"
def dual_sum(a, dim=None, keepdim=False):
    add = lambda x: None if x is None else np.sum(x, axis=dim, keepdims=keepdim)
    return Dual(add(a.value), add(a.tangent))


def dual_matmul(a, b):
    a, b = as_dual(a), as_dual(b)
    if a.tangent is None and b.tangent is None:
        return Dual(a.value @ b.value)
    still = lambda x: np.zeros(x.shape) if x.tangent is None else x.tangent
    return Dual(a.value @ b.value, still(a) @ b.value + a.value @ still(b))


def jvp(function, inputs, tangents):
    if len(inputs) != len(tangents):
        raise RuntimeError("one tangent per input")
    if [np.shape(x) for x in inputs] != [np.shape(t) for t in tangents]:
        raise RuntimeError(DIFFERENT_SIZE)
    result = as_dual(function(*map(Dual, inputs, tangents)))
    return result.value, result.value * 0.0 if result.tangent is None else result.tangent


Dual.sum = dual_sum
Dual.__matmul__, Dual.__rmatmul__ = dual_matmul, lambda a, b: dual_matmul(b, a)

# %% tags=["style:compact"] exercise="jacobians"
def ones_of(shape):
    """All arrays of a shape with a single 1."""
    size = int(np.prod(shape))
    return np.eye(size).reshape(size, *shape)


def jacobian_forward(function, x):
    return np.moveaxis([jvp(function, [x], [one])[1] for one in ones_of(x.shape)], 0, -1).reshape(
        np.shape(jvp(function, [x], [x])[0]) + x.shape
    )


def jacobian_reverse(function, x):
    leaf = MiniTensor(x.copy(), requires_grad=True)
    output = function(leaf)
    if not getattr(output, "requires_grad", False):
        return np.zeros((*np.shape(getattr(output, "data", output)), *x.shape))

    def row(one):
        leaf.grad = None
        output.backward(one, retain_graph=True)
        return 0 * x if leaf.grad is None else 1 * leaf.grad.data

    return np.array([row(one) for one in ones_of(output.shape)]).reshape(output.shape + x.shape)


def jacobian(function, x):
    with no_grad():
        outputs = as_tensor(function(MiniTensor(x))).data.size
    return jacobian_reverse(function, x) if outputs <= x.size else jacobian_forward(function, x)

# %% tags=["style:compact"] exercise="stack"
def push_forward(value, *pairs):
    value, total = np.asarray(value, dtype=float), None
    for slope, dual in pairs:
        if dual.tangent is not None:
            stacked = dual.tangent.ndim > dual.value.ndim
            slope = np.asarray(slope)[..., None] if stacked else slope
            total = (0.0 if total is None else total) + slope * dual.tangent
            zeros = np.zeros(value.shape + dual.tangent.shape[-1:] * stacked)
    return Dual(value, None if total is None else total + zeros)


def dual_sum(a, dim=None, keepdim=False):
    places = [*range(a.value.ndim)] if dim is None else [range(a.value.ndim)[dim]]
    add = lambda x: None if x is None else x.sum(tuple(places), keepdims=keepdim)
    return Dual(add(a.value), add(a.tangent))


def dual_matmul(a, b):
    a, b = as_dual(a), as_dual(b)
    total = None
    if a.tangent is not None:
        rule = "...nk,np->...pk" if a.tangent.ndim > a.value.ndim else "...n,np->...p"
        total = np.einsum(rule, a.tangent, b.value)
    if b.tangent is not None:
        rule = "...n,npk->...pk" if b.tangent.ndim > 2 else "...n,np->...p"
        total = np.einsum(rule, a.value, b.tangent) + (0.0 if total is None else total)
    return Dual(a.value @ b.value, total)


Dual.sum = dual_sum
Dual.__matmul__, Dual.__rmatmul__ = dual_matmul, lambda a, b: dual_matmul(b, a)


def jacobian_stacked(function, x):
    everywhere = Dual(x, np.identity(x.size).reshape(x.shape + (x.size,)))
    output = as_dual(function(everywhere))
    table = np.zeros(output.value.shape + (x.size,)) if output.tangent is None else output.tangent
    return table.reshape(output.value.shape + x.shape)

# %% tags=["style:compact"] exercise="tags"
def parts_of(x, tag):
    if not isinstance(x, Tagged) or x.tag != tag:
        return x, 0.0
    return x.value, x.tangent


def tagged_mul(a, b):
    newest = max(tag_of(a), tag_of(b))
    value_a, tangent_a = parts_of(a, newest)
    value_b, tangent_b = parts_of(b, newest)
    return Tagged(value_a * value_b, value_a * tangent_b + value_b * tangent_a, newest)


def derivative(function, x):
    (tag,) = itertools.islice(tags, 1)
    output = function(Tagged(x, 1.0, tag))
    return output.tangent if tag_of(output) == tag else 0.0

# %% tags=["style:stack"] exercise="push_forward"
def push_forward(value, *pairs):
    result = Dual(value)
    for slope, dual in pairs:
        if dual.tangent is None:
            continue
        if result.tangent is None:
            result.tangent = np.zeros(result.shape)
        result.tangent = result.tangent + slope * dual.tangent
    return result

# %% tags=["style:stack"] exercise="slopes"
def dual_mul(a, b):
    (a, b) = (as_dual(a), as_dual(b))
    for_a = push_forward(a.value * b.value, (b.value, a))
    for_b = push_forward(a.value * b.value, (a.value, b))
    return push_forward(a.value * b.value, (1.0, for_a), (1.0, for_b))


def dual_div(a, b):
    a, b = as_dual(a), as_dual(b)
    value = a.value / b.value
    return push_forward(value, (1.0 / b.value, a), (-value / b.value, b))


def dual_pow(a, exponent):
    return push_forward(np.power(a.value, exponent), (np.power(a.value, exponent - 1) * exponent, a))


def dual_exp(a):
    return push_forward(np.exp(a.value), (np.exp(a.value), a))


def dual_log(a):
    return push_forward(np.log(a.value), (a.value**-1, a))


def dual_tanh(a):
    value = np.tanh(a.value)
    return push_forward(value, ((1 + value) * (1 - value), a))


def dual_relu(a):
    return push_forward(a.value * (a.value > 0), (a.value > 0, a))


class Operators:
    def __mul__(self, other):
        return dual_mul(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return dual_div(self, other)

    def __rtruediv__(self, other):
        return dual_div(other, self)

    def __pow__(self, exponent):
        return dual_pow(self, exponent)


for name in ("__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__pow__"):
    setattr(Dual, name, vars(Operators)[name])
for name, function in zip(("exp", "log", "tanh", "relu"), (dual_exp, dual_log, dual_tanh, dual_relu)):
    setattr(Dual, name, function)

# %% tags=["style:stack"] exercise="jvp"
def dual_sum(a, dim=None, keepdim=False):
    result = Dual(a.value.sum(axis=dim, keepdims=keepdim))
    if a.tangent is not None:
        result.tangent = np.asarray(a.tangent.sum(axis=dim, keepdims=keepdim))
    return result


def dual_matmul(a, b):
    a, b = as_dual(a), as_dual(b)
    value = a.value @ b.value
    left = Dual(value, None if a.tangent is None else a.tangent @ b.value)
    right = Dual(value, None if b.tangent is None else a.value @ b.tangent)
    return push_forward(value, (1.0, left), (1.0, right))


def jvp(function, inputs, tangents):
    duals = []
    for x, tangent in zip(inputs, tangents, strict=False):
        dual = Dual(x, tangent)
        if dual.tangent.shape != dual.value.shape:
            raise RuntimeError(f"{DIFFERENT_SIZE} {dual.value.shape} against {dual.tangent.shape}")
        duals.append(dual)
    if not len(inputs) == len(tangents) == len(duals):
        raise RuntimeError("inputs and tangents must be equally many")
    output = push_forward(0.0, (0.0, Dual(0.0, 0.0))) + function(*duals)
    return output.value, output.tangent


for name in ("sum", "__matmul__"):
    setattr(Dual, name, {"sum": dual_sum, "__matmul__": dual_matmul}[name])
Dual.__rmatmul__ = lambda self, other: dual_matmul(other, self)

# %% tags=["style:stack"] exercise="jacobians"
def jacobian_forward(function, x):
    table = None
    for place in np.ndindex(*x.shape):
        direction = np.zeros_like(x, dtype=float)
        direction[place] = 1.0
        value, tangent = jvp(function, (x,), (direction,))
        table = np.zeros((*np.shape(value), *x.shape)) if table is None else table
        table[(..., *place)] = tangent
    return table


def jacobian_reverse(function, x):
    leaf = MiniTensor(x, requires_grad=True)
    output = as_tensor(function(leaf))
    table = np.zeros((*output.shape, *x.shape))
    for place in np.ndindex(*output.shape):
        before = 0.0 if leaf.grad is None else leaf.grad.data.copy()
        one = np.zeros(output.shape)
        one[place] = 1.0
        if output.requires_grad:
            output.backward(one, retain_graph=True)
            table[place] = 0.0 if leaf.grad is None else leaf.grad.data - before
    return table


def jacobian(function, x):
    value, _ = jvp(function, (x,), (np.zeros(x.shape),))
    ways = {True: jacobian_forward, False: jacobian_reverse}
    return ways[bool(np.size(value) > np.size(x))](function, x)

# %% tags=["style:stack"] exercise="stack"
def one_by_one(rule, *duals):
    """A rule for single tangents, used on each tangent of a stack."""
    stacks = {d.tangent.shape[-1] for d in duals if d.tangent is not None and d.tangent.ndim > d.value.ndim}
    if not stacks:
        return rule(*duals)
    (count,) = stacks
    single = lambda d, i: Dual(d.value, None if d.tangent is None else d.tangent[..., i])
    results = [rule(*[single(d, i) for d in duals]) for i in range(count)]
    return Dual(results[0].value, np.stack([result.tangent for result in results], axis=-1))


def push_forward(value, *pairs):
    def rule(*duals):
        terms = [slope * dual.tangent for (slope, _), dual in zip(pairs, duals) if dual.tangent is not None]
        return Dual(value, np.zeros(np.shape(value)) + sum(terms) if terms else None)

    return one_by_one(rule, *[dual for _, dual in pairs])


single_sum, single_matmul = dual_sum, dual_matmul


def dual_sum(a, dim=None, keepdim=False):
    return one_by_one(lambda a: single_sum(a, dim, keepdim), a)


def dual_matmul(a, b):
    return one_by_one(single_matmul, as_dual(a), as_dual(b))


Dual.sum = dual_sum
Dual.__matmul__, Dual.__rmatmul__ = dual_matmul, lambda a, b: dual_matmul(b, a)


def jacobian_stacked(function, x):
    directions = np.moveaxis(np.eye(x.size).reshape(x.size, *x.shape), 0, -1)
    output = 0.0 * Dual(np.zeros(()), np.zeros(x.size)) + function(Dual(x, directions))
    return output.tangent.reshape((*output.shape, *x.shape))

# %% tags=["style:stack"] exercise="tags"
def parts_of(x, tag):
    return {True: lambda: (x.value, x.tangent), False: lambda: (x, 0.0)}[tag_of(x) == tag]()


def tagged_mul(a, b):
    if tag_of(a) > tag_of(b):
        return Tagged(a.value * b, a.tangent * b, a.tag)
    if tag_of(a) < tag_of(b):
        return Tagged(a * b.value, a * b.tangent, b.tag)
    return Tagged(a.value * b.value, a.tangent * b.value + a.value * b.tangent, a.tag)


def derivative(function, x):
    mine = next(tags)
    _, slope = parts_of(function(Tagged(x, 1.0, mine)), mine)
    return slope

# %% tags=["style:plain"] exercise="push_forward"
def push_forward(value, *pairs):
    shape, terms = np.shape(value), []
    for slope, dual in pairs:
        if dual.tangent is not None:
            terms.append(np.broadcast_to(np.multiply(slope, dual.tangent), shape))
    if len(terms) == 0:
        return Dual(value)
    return Dual(value, np.sum(terms, axis=0))

# %% tags=["style:plain"] exercise="slopes"
def dual_exp(a):
    e = np.exp(a.value)
    return push_forward(e, (e, a))


def dual_log(a):
    return push_forward(np.log(a.value), (1 / a.value, a))


def dual_mul(a, b):
    a, b = as_dual(a), as_dual(b)
    x, y = a.value, b.value
    return push_forward(x * y, (y, a), (x, b))


def dual_div(a, b):
    a, b = as_dual(a), as_dual(b)
    x, y = a.value, b.value
    numerator = dual_mul(y, a) - dual_mul(x, b)  # its tangent is that of the quotient, times y**2
    return push_forward(x / y, (1 / (y * y), numerator))


def dual_pow(a, exponent):
    value = a.value**exponent
    if exponent == 0:
        return push_forward(value, (0.0, a))
    return push_forward(value, (a.value ** (exponent - 1) * exponent, a))


def dual_tanh(a):
    return push_forward(np.tanh(a.value), (2 / (1 + np.cosh(2 * a.value)), a))


def dual_relu(a):
    return push_forward(np.clip(a.value, 0.0, None), (np.heaviside(a.value, 0.0), a))


Dual.__mul__ = Dual.__rmul__ = dual_mul
Dual.__truediv__ = dual_div
Dual.__rtruediv__ = lambda a, other: dual_div(other, a)
Dual.__pow__ = dual_pow
Dual.exp, Dual.log = dual_exp, dual_log
Dual.tanh, Dual.relu = dual_tanh, dual_relu

# %% tags=["style:plain"] exercise="jvp"
def dual_sum(a, dim=None, keepdim=False):
    parts = [a.value] if a.tangent is None else [a.value, a.tangent]
    return Dual(*[np.sum(part, axis=dim, keepdims=keepdim) for part in parts])


def dual_matmul(a, b):
    a, b = as_dual(a), as_dual(b)
    value = a.value @ b.value
    if a.tangent is None and b.tangent is None:
        return Dual(value)
    if a.tangent is None:
        return Dual(value, a.value @ b.tangent)
    if b.tangent is None:
        return Dual(value, a.tangent @ b.value)
    return Dual(value, a.tangent @ b.value + a.value @ b.tangent)


def jvp(function, inputs, tangents):
    if len(inputs) != len(tangents):
        raise RuntimeError("jvp needs one tangent for each input")
    duals = []
    for i in range(len(inputs)):
        x, tangent = np.array(inputs[i], dtype=float), np.array(tangents[i], dtype=float)
        if x.shape != tangent.shape:
            raise RuntimeError(DIFFERENT_SIZE + f" Input {i}: {x.shape} and {tangent.shape}.")
        duals.append(Dual(x, tangent))
    output = function(*duals)
    if not isinstance(output, Dual) or output.tangent is None:
        value = as_dual(output).value
        return value, np.zeros_like(value)
    return output.value, output.tangent


Dual.sum = dual_sum
Dual.__matmul__ = dual_matmul
Dual.__rmatmul__ = lambda a, other: dual_matmul(other, a)

# %% tags=["style:plain"] exercise="jacobians"
def jacobian_reverse(function, x):
    leaf = MiniTensor(x, requires_grad=True)
    output = as_tensor(function(leaf))
    table = np.zeros((output.data.size, x.size))
    for number, cotangent in enumerate(np.eye(output.data.size)):
        if output.requires_grad:
            leaf.grad = None
            output.backward(cotangent.reshape(output.shape), retain_graph=True)
            if leaf.grad is not None:
                table[number] = leaf.grad.data.ravel()
    return table.reshape(output.shape + x.shape)


def jacobian_forward(function, x):
    columns = {}
    for number, direction in enumerate(np.eye(x.size)):
        value, columns[number] = jvp(function, (x,), (direction.reshape(x.shape),))
    table = np.array([columns[number].ravel() for number in range(x.size)])
    return table.T.reshape(value.shape + x.shape)


def jacobian(function, x):
    with no_grad():
        output = function(MiniTensor(x))
    passes = {"reverse": np.size(output.data if isinstance(output, MiniTensor) else output), "forward": x.size}
    if passes["forward"] < passes["reverse"]:
        return jacobian_forward(function, x)
    return jacobian_reverse(function, x)

# %% tags=["style:plain"] exercise="stack"
def for_each(product, tangent, axes):
    """product of a single tangent, or of each of a stack that lies at the end."""
    if np.ndim(tangent) == axes:
        return product(tangent)
    return np.stack([product(tangent[..., i]) for i in range(tangent.shape[-1])], axis=-1)


def push_forward(value, *pairs):
    shape, total = np.shape(value), None
    for slope, dual in pairs:
        if dual.tangent is not None:
            part = for_each(lambda t: np.broadcast_to(slope * t, shape), dual.tangent, dual.ndim)
            total = part if total is None else total + part
    return Dual(value, total)


def dual_sum(a, dim=None, keepdim=False):
    def add(x):
        return x.sum(axis=dim, keepdims=keepdim)

    return Dual(add(a.value), None if a.tangent is None else for_each(add, a.tangent, a.ndim))


def dual_matmul(a, b):
    a, b = as_dual(a), as_dual(b)
    parts = []
    if a.tangent is not None:
        parts += [for_each(lambda t: np.dot(t, b.value), a.tangent, a.ndim)]
    if b.tangent is not None:
        parts += [for_each(lambda t: np.dot(a.value, t), b.tangent, b.ndim)]
    return Dual(np.dot(a.value, b.value), sum(parts) if parts else None)


Dual.sum = dual_sum
Dual.__matmul__ = dual_matmul
Dual.__rmatmul__ = lambda a, other: dual_matmul(other, a)


def jacobian_stacked(function, x):
    tangents = np.zeros((*x.shape, x.size))
    for number, place in enumerate(np.ndindex(x.shape)):
        tangents[place][number] = 1.0
    output = function(Dual(x, tangents))
    if isinstance(output, Dual) and output.tangent is not None:
        return output.tangent.reshape(output.shape + x.shape)
    return np.zeros(as_dual(output).shape + x.shape)

# %% tags=["style:plain"] exercise="tags"
def parts_of(x, tag):
    if isinstance(x, Tagged):
        if x.tag == tag:
            return x.value, x.tangent
    return x, 0.0


def tagged_mul(a, b):
    newer, other = (a, b) if tag_of(a) >= tag_of(b) else (b, a)
    value, tangent = parts_of(other, newer.tag)
    return Tagged(newer.value * value, newer.tangent * value + newer.value * tangent, newer.tag)


def derivative(function, x):
    variable = Tagged(x, 1.0, next(tags))
    result = function(variable)
    if isinstance(result, Tagged) and result.tag == variable.tag:
        return result.tangent
    return 0.0
