# %% tags=["style:compact"] exercise="embedding"
class Lookup(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = len(table)
        return np.take(table, ids, axis=0)

    @staticmethod
    def backward(ctx, grad):
        (ids,) = ctx.saved_tensors
        ones = np.eye(ctx.rows)[ids.reshape(-1)]
        return ones.T @ grad.reshape(len(ones), grad.shape[-1])

# %% tags=["style:compact"] exercise="layer_norm"
class LayerNorm(Module):
    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = Parameter(np.ones(size)), Parameter(np.zeros(size))

    def forward(self, x):
        x, n = as_tensor(x), self.weight.shape[0]
        x = x - x.sum(-1, True) / n
        return x * ((x**2).sum(-1, True) / n + self.eps) ** -0.5 * self.weight + self.bias

# %% tags=["style:compact"] exercise="attention"
def attention(q, k, v):
    n = q.shape[-2]
    future = np.triu(np.full((n, n), -np.inf), 1)
    w = ((q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1) + future).softmax(-1)
    return w @ v, w

# %% tags=["style:compact"] exercise="heads"
class CausalSelfAttention(Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} cannot be cut into {heads} heads of one size")
        self.width, self.heads, self.pattern = width, heads, None
        self.qkv, self.project = LinearLayer(width, 3 * width), LinearLayer(width, width)

    def forward(self, x):
        b, n, c = x.shape
        all_three = self.qkv(x)
        cut = [all_three[..., i * c : (i + 1) * c].reshape(b, n, self.heads, -1).transpose(1, 2) for i in range(3)]
        y, w = attention(*cut)
        self.pattern = np.array(w.data)
        return self.project(y.transpose(2, 1).reshape(b, n, c))

# %% tags=["style:compact"] exercise="model"
class Block(Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = LayerNorm(width), CausalSelfAttention(width, heads)
        self.norm2 = LayerNorm(width)
        self.mlp = Sequential(LinearLayer(width, 4 * width), GELU("tanh"), LinearLayer(4 * width, width))

    def forward(self, x):
        for norm, part in ((self.norm1, self.attention), (self.norm2, self.mlp)):
            x = part(norm(x)) + x
        return x


class CharTransformer(Module):
    def __init__(self, vocabulary, context, width, heads, depth):
        super().__init__()
        self.context = context
        self.token, self.place = Embedding(vocabulary, width), Embedding(context, width)
        self.blocks = Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = LayerNorm(width), LinearLayer(width, vocabulary)

    def forward(self, ids):
        if ids.shape[-1] > self.context:
            raise ValueError("too long")
        x = self.place.weight[: ids.shape[-1]] + self.token(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def next_letter_loss(scores, targets):
    count = targets.size
    chosen = scores.log_softmax(-1).reshape(count, -1)[np.arange(count), targets.ravel()]
    return chosen.sum() / -count

# %% tags=["style:compact"] exercise="generate"
def choose(scores, generator, temperature=1.0):
    if temperature < 0:
        raise ValueError("negative")
    best = np.flatnonzero(scores == scores.max())
    if not temperature:
        return int(best[0])
    heights = np.cumsum(np.exp((scores - scores[best[0]]) / temperature))
    return int(np.searchsorted(heights, generator.random() * heights[-1], side="right"))


@no_grad()
def generate(model, ids, count, generator, temperature=1.0):
    was = model.training
    try:
        model.train(False)
        found = np.array(ids, dtype=int)
        for _ in range(count):
            window = found[max(0, len(found) - model.context) :]
            found = np.append(found, choose(model(window[None]).data[0][-1], generator, temperature))
    finally:
        model.train(was)
    return found.tolist()

# %% tags=["style:composed"] exercise="embedding"
class Lookup(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ids = np.array(ids)
        ctx.save_for_backward(ids, table)
        return np.array([table[i] for i in ids.ravel()]).reshape(*ids.shape, table.shape[1])

    @staticmethod
    def backward(ctx, grad):
        ids, table = ctx.saved_tensors
        total = [np.zeros(table.shape[1]) for _ in table]
        for number, row in zip(ids.ravel(), grad.reshape(-1, table.shape[1])):
            total[number] = total[number] + row
        return np.array(total)

# %% tags=["style:composed"] exercise="layer_norm"
class Normalize(Function):
    """The rows to mean 0 and variance 1, with a rule of its own."""

    @staticmethod
    def forward(ctx, x, eps):
        scale = 1 / np.sqrt(x.var(axis=-1, keepdims=True) + eps)
        output = (x - x.mean(axis=-1, keepdims=True)) * scale
        ctx.save_for_backward(output, scale)
        return output

    @staticmethod
    def backward(ctx, grad):
        output, scale = ctx.saved_tensors
        along = (grad * output).mean(axis=-1, keepdims=True)
        return (grad - grad.mean(axis=-1, keepdims=True) - output * along) * scale


class LayerNorm(Module):
    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = Parameter(np.ones(size)), Parameter(np.zeros(size))

    def forward(self, x):
        return Normalize.apply(x, eps=self.eps) * self.weight + self.bias

# %% tags=["style:composed"] exercise="attention"
class CausalSoftmax(Function):
    """The softmax of row t over its first t + 1 entries, and zeros after them."""

    @staticmethod
    def forward(ctx, scores):
        output = np.zeros(scores.shape)
        for t in range(scores.shape[-2]):
            seen = scores[..., t, : t + 1]
            raised = np.exp(seen - seen.max(axis=-1, keepdims=True))
            output[..., t, : t + 1] = raised / raised.sum(axis=-1, keepdims=True)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return output * (grad - (grad * output).sum(axis=-1, keepdims=True))


def attention(q, k, v):
    weights = CausalSoftmax.apply((q @ k.transpose(-1, -2)) / np.sqrt(q.shape[-1]))
    return weights @ v, weights

# %% tags=["style:composed"] exercise="heads"
class CausalSelfAttention(Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} cannot be cut into {heads} heads of one size")
        self.width, self.heads, self.pattern = width, heads, None
        self.qkv, self.project = LinearLayer(width, 3 * width), LinearLayer(width, width)

    def forward(self, x):
        """Head by head; each adds its share of the projection."""
        everything, size, patterns = self.qkv(x), self.width // self.heads, []
        total = self.project.bias
        for head in range(self.heads):
            starts = [part * self.width + head * size for part in range(3)]
            found, weights = attention(*[everything[:, :, s : s + size] for s in starts])
            total = total + found @ self.project.weight[:, head * size : (head + 1) * size].T
            patterns.append(weights.data)
        self.pattern = np.stack(patterns, axis=1)
        return total

# %% tags=["style:composed"] exercise="model"
import functools


def residual(norm, part):
    return lambda x: x + part(norm(x))


class Block(Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = LayerNorm(width), CausalSelfAttention(width, heads)
        self.norm2 = LayerNorm(width)
        self.mlp = Sequential(LinearLayer(width, 4 * width), GELU("tanh"), LinearLayer(4 * width, width))

    def forward(self, x):
        return residual(self.norm2, self.mlp)(residual(self.norm1, self.attention)(x))


class CharTransformer(Module):
    def __init__(self, vocabulary, context, width, heads, depth):
        super().__init__()
        self.context = context
        self.token, self.place = Embedding(vocabulary, width), Embedding(context, width)
        self.blocks = Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = LayerNorm(width), LinearLayer(width, vocabulary)

    def letters(self, ids):
        if ids.shape[1] > self.context:
            raise ValueError("the text is longer than the context")
        place = Lookup.apply(self.place.weight, ids=np.arange(ids.shape[1]))
        return Lookup.apply(self.token.weight, ids=ids) + place

    def forward(self, ids):
        parts = [*self.blocks, self.norm, self.head]
        return functools.reduce(lambda x, part: part(x), parts, self.letters(ids))


def next_letter_loss(scores, targets):
    right = np.eye(scores.shape[-1])[targets]
    return -(scores.log_softmax(-1) * right).sum() / targets.size

# %% tags=["style:composed"] exercise="generate"
import contextlib
from collections import deque


def choose(scores, generator, temperature=1.0):
    """The largest of the scores plus Gumbel noise falls on each number with its softmax probability."""
    if temperature < 0:
        raise ValueError("a negative temperature")
    if temperature == 0:
        return int(np.argmax(scores))
    return int(np.argmax((scores - np.max(scores)) / temperature + generator.gumbel(size=len(scores))))


@contextlib.contextmanager
def writing(model):
    mode = model.training
    try:
        with no_grad():
            yield model.eval()
    finally:
        model.train(mode)


def generate(model, ids, count, generator, temperature=1.0):
    text, window = [*map(int, ids)], deque(map(int, ids), maxlen=model.context)
    with writing(model):
        for _ in range(count):
            scores = model(np.array([list(window)]))
            window.append(choose(scores.data[0, -1, :], generator, temperature))
            text.append(window[-1])
    return text

# %% tags=["style:plain"] exercise="embedding"
class Lookup(Function):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.ids, ctx.rows = ids.flatten(), table.shape[0]
        return table[ids, :]

    @staticmethod
    def backward(ctx, grad):
        columns = grad.reshape(ctx.ids.size, grad.shape[-1]).T
        return np.stack([np.bincount(ctx.ids, weights=column, minlength=ctx.rows) for column in columns], axis=1)

# %% tags=["style:plain"] exercise="layer_norm"
class LayerNorm(Module):
    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = Parameter(np.ones(size)), Parameter(np.zeros(size))

    def forward(self, x):
        x = as_tensor(x)
        near_zero = x - x.data[..., :1]  # a constant per row changes neither the result nor the gradient
        mean = near_zero.mean(-1, True)
        variance = (near_zero * near_zero).mean(-1, True) - mean * mean
        return (near_zero - mean) / (variance + self.eps) ** 0.5 * self.weight + self.bias

# %% tags=["style:plain"] exercise="attention"
def attention(q, k, v):
    length, size = q.shape[-2], q.shape[-1]
    places = np.arange(length)
    allowed = places[:, None] >= places[None, :]
    scores = q @ k.transpose(-2, -1) * size**-0.5
    largest = np.where(allowed, scores.data, -np.inf).max(axis=-1, keepdims=True)
    raised = where(allowed, scores - largest, -np.inf).exp()
    weights = raised / raised.sum(-1, True)
    return weights @ v, weights

# %% tags=["style:plain"] exercise="heads"
class CausalSelfAttention(Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} cannot be cut into {heads} heads of one size")
        self.width, self.heads, self.pattern = width, heads, None
        self.qkv, self.project = LinearLayer(width, 3 * width), LinearLayer(width, width)

    def part(self, x, number):
        """The queries, keys or values, of shape (rows, heads, length, size)."""
        own = slice(number * self.width, (number + 1) * self.width)
        result = x @ self.qkv.weight[own].transpose(0, 1) + self.qkv.bias[own]
        rows, length, _ = x.shape
        return result.reshape(rows, length, self.heads, self.width // self.heads).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.part(x, 0), self.part(x, 1), self.part(x, 2)
        found, weights = attention(q, k, v)
        self.pattern = weights.data
        side_by_side = found.transpose(1, 2).reshape(*x.shape)
        return self.project(side_by_side)

# %% tags=["style:plain"] exercise="model"
class Block(Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = LayerNorm(width), CausalSelfAttention(width, heads)
        self.norm2 = LayerNorm(width)
        self.mlp = Sequential(LinearLayer(width, 4 * width), GELU("tanh"), LinearLayer(4 * width, width))

    def forward(self, x):
        attended = self.attention(self.norm1(x))
        y = x + attended
        thought = self.mlp(self.norm2(y))
        return y + thought


class CharTransformer(Module):
    def __init__(self, vocabulary, context, width, heads, depth):
        super().__init__()
        self.context = context
        self.token, self.place = Embedding(vocabulary, width), Embedding(context, width)
        self.blocks = Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = LayerNorm(width), LinearLayer(width, vocabulary)

    def forward(self, ids):
        rows, length = ids.shape
        if length > self.context:
            raise ValueError(f"{length} letters are more than {self.context}")
        places = np.array([list(range(length))] * rows, dtype=int).reshape(rows, length)
        x = self.token(ids) + self.place(places)
        for i in range(len(self.blocks)):
            x = getattr(self.blocks, str(i))(x)
        return self.head(self.norm(x))


def next_letter_loss(scores, targets):
    rows = scores.reshape(targets.size, scores.shape[-1])
    return cross_entropy(rows, targets.flatten())

# %% tags=["style:plain"] exercise="generate"
def choose(scores, generator, temperature=1.0):
    if temperature < 0:
        raise ValueError(f"the temperature is {temperature}")
    if temperature == 0:
        return scores.tolist().index(max(scores.tolist()))
    divided = scores / temperature
    raised = np.exp(divided - np.max(divided))
    drawn = generator.multinomial(1, raised / np.sum(raised))
    return int(np.argmax(drawn))


def generate(model, ids, count, generator, temperature=1.0):
    text = [int(number) for number in ids]
    was_training = model.training
    try:
        model.eval()
        while len(text) < len(ids) + count:
            seen = np.array(text[-model.context :]).reshape(1, -1)
            with no_grad():
                scores = model(seen)
            text.append(choose(scores.data[0, seen.size - 1], generator, temperature))
    finally:
        model.train(was_training)
    return text
