"""What the exercises of lesson 16 must do, case by case.

A case is a title (`# ...`), its steps (`>>> ...`), and what is right below each. The steps above the first title begin
every case of the exercise, with names of its own. For instructors, docs/authors.md says more, under "Cases".
"""

import numpy as np

from autograder.checks.cases import Check


def fixed(number, *shape):
    """An array of this shape with entries between -1 and 1, the same in each run; another one for each number."""
    return np.sin((number + 1.3) * np.arange(1.0, np.prod(shape) + 1)).reshape(shape)


def filled(module):
    """The module, whose parameters have become fixed(0, ...), fixed(1, ...), in order."""
    for number, parameter in enumerate(module.parameters()):
        overwrite(parameter, fixed(number, *parameter.shape))
    return module


def leaf_with(array):
    return MiniTensor(array, requires_grad=True)


def arrived(x):
    """The array of x.grad, or None."""
    return None if x.grad is None else x.grad.data


def slopes(function, arrays, number, cotangent):
    """The gradient of sum(function(arrays) * cotangent) in one of the arrays, all digits of it: by steps along the
    imaginary axis.
    """
    found = np.zeros(arrays[number].shape)
    for place in np.ndindex(found.shape):
        moved = [array.astype(complex) for array in arrays]
        moved[number][place] += 1e-30j
        found[place] = (function(moved) * cotangent).sum().imag / 1e-30
    return found


# Exercise 1

check = Check("embedding", points=4)
check.cases("""
>>> table = MiniTensor(np.arange(10.0).reshape(5, 2), requires_grad=True)

# the rows
>>> Lookup.apply(table, ids=np.array([2, 0, 2, 2])).data
array([[4.0, 5.0], [0.0, 1.0], [4.0, 5.0], [4.0, 5.0]])

# ids with two axes
>>> Lookup.apply(table, ids=np.array([[0, 3], [3, 3]])).data
array([[[0.0, 1.0], [6.0, 7.0]], [[6.0, 7.0], [6.0, 7.0]]])

# the gradient: a row that is looked up three times gets the sum
>>> rows = Lookup.apply(table, ids=np.array([2, 0, 2, 2]))
>>> rows.backward(np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]]))
>>> arrived(table)
array([[2.0, 20.0], [0.0, 0.0], [8.0, 80.0], [0.0, 0.0], [0.0, 0.0]])

# the gradient for ids with two axes
>>> rows = Lookup.apply(table, ids=np.array([[0, 3], [3, 3]]))
>>> rows.backward(np.array([[[1.0, 10.0], [2.0, 20.0]], [[3.0, 30.0], [4.0, 40.0]]]))
>>> arrived(table)
array([[1.0, 10.0], [0.0, 0.0], [0.0, 0.0], [9.0, 90.0], [0.0, 0.0]])

# two lookups of one table: each has its own ids
>>> x = MiniTensor(np.zeros((3, 1)), requires_grad=True)
>>> one, two = (Lookup.apply(x, ids=np.array(ids)) for ids in ([0, 1, 1], [2, 2, 1]))
>>> (one * 2.0 + two).backward(np.array([[1.0], [10.0], [100.0]]))
>>> arrived(x)
array([[2.0], [320.0], [11.0]])

# a second backward gives the same gradient
>>> rows = Lookup.apply(table, ids=np.array([2, 2, 1]))
>>> rows.backward(np.ones((3, 2)), retain_graph=True)
>>> table.grad = None
>>> rows.backward(np.ones((3, 2)))
>>> arrived(table)
array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]])

# no ids at all
>>> rows = Lookup.apply(table, ids=np.zeros((0, 2), dtype=int))
>>> rows.shape
(0, 2, 2)
>>> rows.backward(np.zeros((0, 2, 2)))
>>> arrived(table)
np.zeros((5, 2))
""")
check.hidden("""
# ids of other shapes and integer types
>>> rows = Lookup.apply(table, ids=np.array(3))
>>> rows.data
array([6.0, 7.0])
>>> rows.backward(np.array([1.0, 10.0]))
>>> rows = Lookup.apply(table, ids=np.zeros((2, 3, 4), dtype=np.int32))
>>> rows.backward(np.ones((2, 3, 4, 2)))
>>> rows = Lookup.apply(table, ids=np.array([[4], [2], [4]], dtype=np.uint8))
>>> rows.shape
(3, 1, 2)
>>> rows.backward(np.ones((3, 1, 2)))
>>> arrived(table)
array([[24.0, 24.0], [0.0, 0.0], [1.0, 1.0], [1.0, 10.0], [2.0, 2.0]])

# a table that is a result
>>> x = MiniTensor([[2.0, 3.0]], requires_grad=True)
>>> (Lookup.apply(x * 5.0, ids=np.array([0, 0])) * [[1.0, 2.0], [4.0, 8.0]]).sum().backward()
>>> arrived(x)
array([[25.0, 50.0]])
""")

# Exercise 2


def norm_by_hand(arrays, eps=1e-5):
    """The rows of x, normalized, times weight, plus bias. arrays: x, weight, bias."""
    x, weight, bias = arrays
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + eps) * weight + bias


def norm_with(weight, bias, eps=1e-5):
    """A LayerNorm with these parameters."""
    layer = LayerNorm(len(weight), eps)
    overwrite(layer.weight, weight)
    overwrite(layer.bias, bias)
    return layer


def norm_of(arrays, eps=1e-5):
    """What LayerNorm gives. arrays: x, weight, bias."""
    x, weight, bias = arrays
    return norm_with(weight, bias, eps)(MiniTensor(x)).data


def gradients_of_norm(arrays, eps=1e-5):
    """The gradients of x, weight and bias, where fixed(9, ...) arrives at the output. arrays: x, weight, bias."""
    x, layer = leaf_with(arrays[0]), norm_with(*arrays[1:], eps)
    layer(x).backward(fixed(9, *x.shape))
    return [arrived(each) for each in (x, layer.weight, layer.bias)]


def right_gradients_of_norm(arrays, eps=1e-5):
    """The same by hand."""
    arriving = fixed(9, *arrays[0].shape)
    return [slopes(lambda moved: norm_by_hand(moved, eps), arrays, number, arriving) for number in range(3)]


two_rows = [np.array([[1.0, 2.0, 6.0], [0.0, -1.0, 1.0]]), np.array([1.0, 2.0, -3.0]), np.array([0.5, 0.0, 4.0])]
deep = [fixed(1, 2, 3, 4), fixed(2, 4), fixed(3, 4)]
far = [1e6 + fixed(4, 2, 4), fixed(2, 4), fixed(3, 4)]
check = Check("layer_norm", points=4)
check.cases("""
>>> x, weight, bias = two_rows

# with the parameters of a new layer
>>> output = LayerNorm(3)(MiniTensor(x))
>>> type(output).__name__, output.shape
("MiniTensor", (2, 3))
>>> output.data
norm_by_hand([two_rows[0], np.ones(3), np.zeros(3)])

# with weight 1, 2, -3, and bias 0.5, 0, 4
>>> norm_of(two_rows)
norm_by_hand(two_rows)

# eps=0.5
>>> norm_of(two_rows, eps=0.5)
norm_by_hand(two_rows, eps=0.5)

# a row of equal entries becomes bias
>>> norm_of([np.full((2, 3), 7.0), weight, bias])
array([[0.5, 0.0, 4.0], [0.5, 0.0, 4.0]])

# three axes
>>> norm_of(deep)
norm_by_hand(deep)

# one axis
>>> norm_of([x[0], weight, bias])
norm_by_hand([two_rows[0][0], *two_rows[1:]])

# entries near a million: six digits after the point
>>> norm_of(far)
np.abs(got - norm_by_hand(far)).max() < 1e-6

# in evaluation, after a call in training
>>> layer = norm_with(weight, bias)
>>> output = layer(MiniTensor([[0.0, 5.0, 1.0], [2.0, 0.0, 9.0]]))
>>> layer.eval()(MiniTensor(x)).data
norm_by_hand(two_rows)

# the parameters are weight and bias, and x does not change
>>> layer, rows = norm_with(weight, bias), MiniTensor(x.copy())
>>> output = layer(rows)
>>> [name for name, _ in layer.named_parameters()]
["weight", "bias"]
>>> rows.data
two_rows[0]

# the gradient of x
>>> gradients_of_norm(two_rows)[0]
right_gradients_of_norm(two_rows)[0]

# the gradients of weight and bias
>>> gradients_of_norm(two_rows)[1:]
right_gradients_of_norm(two_rows)[1:]
""")
check.hidden("""
# other shapes, sizes and eps
>>> norm_of([100 * fixed(5, 3, 1, 2, 6), fixed(2, 6), fixed(3, 6)])
norm_by_hand([100 * fixed(5, 3, 1, 2, 6), fixed(2, 6), fixed(3, 6)])
>>> norm_of([0.01 * fixed(6, 3, 4), fixed(2, 4), fixed(3, 4)], eps=0.1)
norm_by_hand([0.01 * fixed(6, 3, 4), fixed(2, 4), fixed(3, 4)], eps=0.1)
>>> norm_of([fixed(7, 3, 1), fixed(2, 1), fixed(3, 1)])
norm_by_hand([fixed(7, 3, 1), fixed(2, 1), fixed(3, 1)])
>>> norm_of([fixed(8, 5, 5), fixed(2, 5), fixed(3, 5)])
norm_by_hand([fixed(8, 5, 5), fixed(2, 5), fixed(3, 5)])

# other gradients
>>> gradients_of_norm(deep)
right_gradients_of_norm(deep)
>>> gradients_of_norm([0.01 * fixed(6, 3, 4), fixed(2, 4), fixed(3, 4)], eps=0.1)
right_gradients_of_norm([0.01 * fixed(6, 3, 4), fixed(2, 4), fixed(3, 4)], eps=0.1)
""")

# Exercise 3


def weights_by_hand(q, k):
    """The weights of causal attention, for scores of moderate size."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    raised = np.exp(scores - scores.real.max(axis=-1, keepdims=True)) * np.tril(np.ones(scores.shape[-2:]))
    return raised / raised.sum(axis=-1, keepdims=True)


def attention_by_hand(arrays):
    """Output and weights. arrays: q, k, v."""
    q, k, v = arrays
    return weights_by_hand(q, k) @ v, weights_by_hand(q, k)


def attention_of(arrays):
    """The arrays of the output and the weights that attention gives. arrays: q, k, v."""
    output, weights = attention(*map(MiniTensor, arrays))
    return np.asarray(output.data), np.asarray(weights.data)  # the data of an array cannot be compared


def gradients_of_attention(arrays, number=0):
    """The gradients of q, k and v, where fixed(9, ...) arrives at the output, or at the weights: number 0 or 1."""
    leaves = [leaf_with(array) for array in arrays]
    result = attention(*leaves)[number]
    result.backward(fixed(9, *result.shape))
    return [arrived(leaf) for leaf in leaves]


def right_gradients_of_attention(arrays, number=0):
    """The same by hand."""
    arriving = fixed(9, *attention_by_hand(arrays)[number].shape)
    return [slopes(lambda moved: attention_by_hand(moved)[number], arrays, each, arriving) for each in range(3)]


pair = [
    np.array([[2.0, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]]),
    np.array([[0.0, -1.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]]),
    np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]]),
]
four = [3 * fixed(1, 4, 3), 3 * fixed(2, 4, 3), fixed(3, 4, 2)]
stack = [2 * fixed(1, 2, 3, 5, 4), 2 * fixed(2, 2, 3, 5, 4), fixed(3, 2, 3, 5, 4)]
check = Check("attention", points=5)
check.cases("""
# two results, both MiniTensors, and their shapes
>>> q, v = MiniTensor(np.ones((4, 3))), MiniTensor(np.ones((4, 2)))
>>> output, weights = attention(q, q, v)
>>> (type(output).__name__, output.shape), (type(weights).__name__, weights.shape)
(("MiniTensor", (4, 2)), ("MiniTensor", (4, 4)))

# the scores of position 1 are -4 / root(4) and 0
>>> attention_of(pair)[1]
array([[1, 0], [1 / (1 + np.exp(2)), 1 / (1 + np.exp(-2))]])

# the output is weights @ v
>>> output, weights = attention_of(four)
>>> np.abs(output - weights @ four[2]).max()
got < 1e-12

# equal scores give equal weights to all that a position may see
>>> attention_of([np.zeros((3, 2)), fixed(4, 3, 2), fixed(5, 3, 2)])[1]
array([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])

# four positions
>>> attention_of(four)[1]
weights_by_hand(*four[:2])

# a stack of six problems: each gets the weights that it gets alone
>>> attention_of(stack)[1][1, 2]
weights_by_hand(stack[0][1, 2], stack[1][1, 2])

# scores of a million
>>> q = np.array([[1e3, 0.0, 0.0, 0.0], [0.0, 1e3, 0.0, 0.0]])
>>> attention_of([q, np.array([[2e3, 2e3, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]), np.ones((2, 1))])[1]
array([[1.0, 0.0], [1.0, 0.0]])

# scores of -1e30, and a large one in the future
>>> keys = np.array([[-1e15], [-1e15], [1e15]])
>>> attention_of([np.full((3, 1), 1e15), keys, np.ones((3, 1))])[1]
array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])

# the gradients of q, k and v from the output
>>> gradients_of_attention(four)
right_gradients_of_attention(four)

# the gradients of q and k from the weights
>>> gradients_of_attention(four, 1)[:2]
right_gradients_of_attention(four, 1)[:2]
""")
check.hidden("""
# other shapes
>>> attention_of([fixed(1, 1, 4), fixed(2, 1, 4), fixed(3, 1, 4)])
attention_by_hand([fixed(1, 1, 4), fixed(2, 1, 4), fixed(3, 1, 4)])
>>> attention_of([fixed(1, 5, 2), fixed(2, 5, 2), fixed(3, 5, 7)])
attention_by_hand([fixed(1, 5, 2), fixed(2, 5, 2), fixed(3, 5, 7)])
>>> attention_of([fixed(1, 2, 1, 6, 3), fixed(2, 2, 1, 6, 3), fixed(3, 2, 1, 6, 1)])
attention_by_hand([fixed(1, 2, 1, 6, 3), fixed(2, 2, 1, 6, 3), fixed(3, 2, 1, 6, 1)])

# equal scores that are very small
>>> attention_of([np.full((3, 2), 1e4), np.full((3, 2), -1e4), np.ones((3, 1))])[1]
array([[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])

# gradients of a stack, and of one tensor in three places
>>> gradients_of_attention([fixed(1, 2, 3, 4), fixed(2, 2, 3, 4), fixed(3, 2, 3, 5)])
right_gradients_of_attention([fixed(1, 2, 3, 4), fixed(2, 2, 3, 4), fixed(3, 2, 3, 5)])
>>> x = leaf_with(fixed(4, 3, 4))
>>> attention(x, x, x)[0].backward(fixed(9, 3, 4))
>>> arrived(x)
sum(right_gradients_of_attention([fixed(4, 3, 4)] * 3))
""")

# Exercise 4


def heads_by_hand(arrays, heads):
    """Output and pattern of causal self-attention. arrays: x, and the weights and biases of qkv and project."""
    x, weight, bias, last_weight, last_bias = arrays
    parts = np.split(x @ weight.T + bias, 3, axis=-1)
    q, k, v = (part.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2) for part in parts)
    pattern = weights_by_hand(q, k)
    return (pattern @ v).swapaxes(1, 2).reshape(x.shape) @ last_weight.T + last_bias, pattern


def arrays_for(x):
    """x, and the arrays that `filled` gives a layer of its width."""
    width = x.shape[-1]
    shapes = (3 * width, width), (3 * width,), (width, width), (width,)
    return [x, *(fixed(number, *shape) for number, shape in enumerate(shapes))]


def heads_of(x, heads):
    """The arrays of output and pattern that a filled layer gives."""
    layer = filled(CausalSelfAttention(x.shape[-1], heads))
    return layer(MiniTensor(x)).data, layer.pattern


def gradients_of_heads(x, heads):
    """The gradients of x and the four parameters of a filled layer, where fixed(9, ...) arrives at the output."""
    layer, leaf = filled(CausalSelfAttention(x.shape[-1], heads)), leaf_with(x)
    layer(leaf).backward(fixed(9, *x.shape))
    return [arrived(each) for each in (leaf, *layer.parameters())]


def right_gradients_of_heads(x, heads):
    """The same by hand."""
    arriving, arrays = fixed(9, *x.shape), arrays_for(x)
    return [slopes(lambda moved: heads_by_hand(moved, heads)[0], arrays, number, arriving) for number in range(5)]


short, texts = fixed(6, 1, 3, 4), fixed(6, 3, 4, 6)
check = Check("heads", points=5)
check.cases("""
# one head: the pattern
>>> heads_of(short, heads=1)[1]
heads_by_hand(arrays_for(short), heads=1)[1]

# one head: the output
>>> heads_of(short, heads=1)[0]
heads_by_hand(arrays_for(short), heads=1)[0]

# two heads, three texts: the shape of the pattern, which is an array
>>> pattern = heads_of(texts, heads=2)[1]
>>> type(pattern).__name__, pattern.shape
("ndarray", (3, 2, 4, 4))

# two heads: the pattern of the first text
>>> heads_of(texts[:1], heads=2)[1]
heads_by_hand(arrays_for(texts[:1]), heads=2)[1]

# two heads, three texts: the output
>>> output = heads_of(texts, heads=2)[0]
>>> output.shape
(3, 4, 6)
>>> output[2]
heads_by_hand(arrays_for(texts), heads=2)[0][2]

# the pattern is that of the last call
>>> layer = CausalSelfAttention(4, heads=2)
>>> output = layer(MiniTensor(np.ones((1, 5, 4))))
>>> output = layer(MiniTensor(np.ones((1, 3, 4))))
>>> layer.pattern.shape
(1, 2, 3, 3)

# two heads: the gradient of x
>>> gradients_of_heads(short, heads=2)[0]
right_gradients_of_heads(short, heads=2)[0]

# two heads: the gradients of the weight and bias of qkv
>>> gradients_of_heads(short, heads=2)[1:3]
right_gradients_of_heads(short, heads=2)[1:3]

# two heads: the gradients of the weight and bias of project
>>> gradients_of_heads(short, heads=2)[3:]
right_gradients_of_heads(short, heads=2)[3:]
""")
check.hidden("""
# other numbers of heads, lengths and widths
>>> heads_of(fixed(6, 1, 2, 6), heads=3)
heads_by_hand(arrays_for(fixed(6, 1, 2, 6)), heads=3)
>>> heads_of(fixed(6, 3, 1, 4), heads=4)
heads_by_hand(arrays_for(fixed(6, 3, 1, 4)), heads=4)
>>> heads_of(fixed(6, 2, 7, 8), heads=2)
heads_by_hand(arrays_for(fixed(6, 2, 7, 8)), heads=2)

# other gradients
>>> gradients_of_heads(fixed(6, 2, 3, 4), heads=4)
right_gradients_of_heads(fixed(6, 2, 3, 4), heads=4)
""")

# Exercise 5


def simple(factor, shift):
    """A layer that gives factor * x + shift: it stands in for another, so that each number shows where it was used."""

    class Simple(Module):
        def forward(self, x):
            return as_tensor(x) * factor + shift

    return Simple()


def simple_block():
    """A Block with simple layers in place of its own: norm1, attention, norm2, mlp."""
    block = Block(2, heads=1)
    block.norm1, block.attention = simple(2.0, 1.0), simple(3.0, -1.0)
    block.norm2, block.mlp = simple(5.0, 2.0), simple(7.0, 3.0)
    return block


def simple_model(*blocks):
    """A model of 5 letters with context 4, and simple layers behind the tables: these blocks, norm and head."""
    model = CharTransformer(vocabulary=5, context=4, width=2, heads=1, depth=len(blocks))
    overwrite(model.token.weight, np.arange(10.0).reshape(5, 2))
    overwrite(model.place.weight, 100.0 * np.arange(8.0).reshape(4, 2))
    model.blocks, model.norm, model.head = Sequential(*blocks), simple(2.0, 1.0), simple(3.0, -1.0)
    return model


check = Check("model", points=4)
check.cases("""
# a block whose layers are 2 x + 1, 3 x - 1, 5 x + 2 and 7 x + 3
>>> block, x = simple_block(), MiniTensor([[[1.0, -2.0], [10.0, 0.0]]])
>>> output = block(x)
>>> type(output).__name__, output.shape
("MiniTensor", (1, 2, 2))
>>> output.data
array([[[341.0, -415.0], [2609.0, 89.0]]])

# the gradient of the block at x
>>> x = MiniTensor([[[1.0, -2.0]]], requires_grad=True)
>>> simple_block()(x).sum().backward()
>>> arrived(x)
array([[[252.0, 252.0]]])

# the block does not change x
>>> x = MiniTensor([[[1.0, -2.0]]])
>>> output = simple_block()(x)
>>> x.data
array([[[1.0, -2.0]]])

# the shapes of a block and of a model with their own layers
>>> Block(6, heads=2)(MiniTensor(np.ones((2, 3, 6)))).shape
(2, 3, 6)
>>> CharTransformer(vocabulary=7, context=5, width=6, heads=2, depth=2)(np.array([[0, 3, 3], [1, 0, 3]])).shape
(2, 3, 7)

# the rows of letters and places, through norm and head, without a block
>>> model = simple_model()
>>> model(np.array([[4, 0, 0]])).data
6 * array([[[8.0, 109.0], [200.0, 301.0], [400.0, 501.0]]]) + 2

# a text of one letter
>>> model = simple_model()
>>> model(np.array([[2]])).data
6 * array([[[4.0, 105.0]]]) + 2

# a model whose blocks are 5 x + 2 and 7 x + 3
>>> model = simple_model(simple(5.0, 2.0), simple(7.0, 3.0))
>>> model(np.array([[4, 0], [1, 2]])).data[1]
6 * (35 * array([[2.0, 103.0], [204.0, 305.0]]) + 17) + 2

# the gradients of the two tables
>>> model = simple_model(simple(5.0, 2.0))
>>> model(np.array([[4, 0, 2]])).sum().backward()
>>> arrived(model.token.weight)
30 * array([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
>>> arrived(model.place.weight)
30 * array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.0]])

# a text as long as the context, and a longer one
>>> model = simple_model(simple(5.0, 2.0))
>>> model(np.array([[4, 1, 2, 0]])).shape
(1, 4, 2)
>>> model(np.zeros((1, 5), dtype=int))
ValueError
""")
check.hidden("""
# other texts and blocks
>>> model = simple_model(simple(2.0, -1.0), simple(-3.0, 0.5), simple(1.0, 4.0))
>>> model(np.array([[2], [0]])).data
6 * (-6 * array([[[4.0, 105.0]], [[0.0, 101.0]]]) + 7.5) + 2
>>> model(np.array([[0, 1, 2, 4]])).data
6 * (-6 * array([[[0.0, 101.0], [202.0, 303.0], [404.0, 505.0], [608.0, 709.0]]]) + 7.5) + 2

# the number of parameters
>>> model = CharTransformer(vocabulary=3, context=6, width=4, heads=1, depth=3)
>>> len(list(model.named_parameters()))
42
""")

# Exercise 6


def draws(scores, temperature, count, seed=12):
    """What choose draws, with one generator for all draws."""
    generator = np.random.default_rng(seed)
    return [choose(np.array(scores), generator, temperature) for _ in range(count)]


def shares(scores, temperature, count=800):
    """How often choose draws each number, as a share of all draws."""
    return np.bincount(draws(scores, temperature, count), minlength=len(scores)) / count


def right_chances(scores, temperature):
    """The right probabilities."""
    raised = np.exp((np.array(scores) - max(scores)) / temperature)
    return raised / raised.sum()


def counting(fails=False, height=40.0):
    """A model of 6 numbers that guesses the one after the last, and nothing sensible at other positions. It notes what
    it sees, whether it and the layer in it are in training mode, and whether recording is on. height: the score of its
    guess; the others get 0.
    """

    class Counting(Module):
        context = 4

        def __init__(self):
            super().__init__()
            self.seen, self.modes, self.inner = [], [], Dropout(0.5)

        def forward(self, ids):
            if not isinstance(ids, np.ndarray) or ids.ndim != 2:
                raise TypeError(f"the model gets an array of shape (1, length), not {ids!r}")
            self.seen.append(ids.tolist())
            self.modes.append((self.training, self.inner.training, is_grad_enabled()))
            if fails:
                raise RuntimeError("this model fails")
            scores, places = np.zeros((*ids.shape, 6)), range(ids.shape[1])
            scores[0, places, places] = 90.0
            scores[0, -1] = height * (np.arange(6) == (ids[0, -1] + 1) % 6)
            return MiniTensor(scores)

    return Counting()


def continued(count=20, seed=1, temperature=1000.0, ids=(3, 4), height=40.0):
    """What generate writes for the counting model."""
    return generate(counting(height=height), list(ids), count, np.random.default_rng(seed), temperature)


check = Check("generate", points=5)
check.cases("""
# choose: 800 draws at temperature 1
>>> shares([2.0, 1.0, 0.0], 1.0)
np.abs(got - right_chances([2.0, 1.0, 0.0], 1.0)).max() < 0.1

# choose: 800 draws at temperature 4
>>> shares([2.0, 1.0, 0.0], 4.0)
np.abs(got - right_chances([2.0, 1.0, 0.0], 4.0)).max() < 0.1

# choose: 800 draws at temperature 0.5, scores near a million
>>> shares([1e6, 1e6 - 0.5, -1e6], 0.5)
np.abs(got - right_chances([1e6, 1e6 - 0.5, -1e6], 0.5)).max() < 0.1

# choose: 800 draws at temperature 1, scores near a thousand
>>> shares([1000.0, 999.0], 1.0)
np.abs(got - right_chances([1000.0, 999.0], 1.0)).max() < 0.1

# choose: temperature 0 gives the first of the largest scores
>>> draws([4.0, 7.0, 7.0, 1.0], 0, 6)
[1, 1, 1, 1, 1, 1]
>>> type(draws([4.0, 7.0, 7.0, 1.0], 0, 1)[0]).__name__
"int"

# choose: a draw is an int, and the scores stay unchanged
>>> scores = np.array([4.0, 7.0, 1.0])
>>> type(choose(scores, np.random.default_rng(0), 0.5)).__name__
"int"
>>> scores
array([4.0, 7.0, 1.0])

# choose: a negative temperature
>>> choose(np.array([4.0, 7.0, 1.0]), np.random.default_rng(0), -1.0)
ValueError

# choose: two generators with one seed give the same draws
>>> draws([0.0] * 50, 1.0, 20) == draws([0.0] * 50, 1.0, 20)
True

# choose: different numbers in 20 draws from 50
>>> len(set(draws([0.0] * 50, 1.0, 20)))
got > 5

# generate: 3, 4, and five more
>>> found = generate(counting(), [3, 4], 5, np.random.default_rng(1))
>>> type(found).__name__, sorted({type(number).__name__ for number in found})
("list", ["int"])
>>> found
[3, 4, 5, 0, 1, 2, 3]

# generate: what the model sees in each round
>>> model = counting()
>>> found = generate(model, [3, 4], 5, np.random.default_rng(1))
>>> model.seen
[[[3, 4]], [[3, 4, 5]], [[3, 4, 5, 0]], [[4, 5, 0, 1]], [[5, 0, 1, 2]]]

# generate: the given list stays unchanged
>>> given = [3, 4]
>>> found = generate(counting(), given, 2, np.random.default_rng(1))
>>> given
[3, 4]

# generate: the ids may be an array
>>> found = generate(counting(), np.array([3, 4]), 2, np.random.default_rng(1))
>>> list(found)
[3, 4, 5, 0]
>>> sorted({type(number).__name__ for number in found})
["int"]

# generate: while it writes, is the model in training mode, the layer in it, and is recording on?
>>> model = counting()
>>> found = generate(model, [3, 4], 2, np.random.default_rng(1))
>>> model.modes
[(False, False, False), (False, False, False)]

# generate: training and recording are on again afterward
>>> model = counting()
>>> found = generate(model, [3, 4], 2, np.random.default_rng(1))
>>> model.training, model.inner.training, is_grad_enabled()
(True, True, True)

# generate: a model in evaluation mode stays in it
>>> model = counting().eval()
>>> found = generate(model, [3, 4], 2, np.random.default_rng(1))
>>> model.training
False

# generate: after an error of the model
>>> model = counting(fails=True)
>>> generate(model, [3], 2, np.random.default_rng(1))
RuntimeError: this model fails
>>> model.training, is_grad_enabled()
(True, True)

# generate: a high temperature reaches choose, so the model does not just count on
>>> continued(20) == [(3 + number) % 6 for number in range(22)]
False

# generate: at temperature 5 a score of 80 is far ahead, so the model counts on
>>> continued(40, temperature=5.0, height=80.0) == [(3 + number) % 6 for number in range(42)]
True

# generate: at temperature 1 a score of 1 is not, so another seed gives another text
>>> continued(20, seed=1, temperature=1.0, height=1.0) == continued(20, seed=2, temperature=1.0, height=1.0)
False

# generate: the same text with the same seed
>>> continued(20, seed=1) == continued(20, seed=1)
True

# generate: another text with another seed
>>> continued(20, seed=1) == continued(20, seed=2)
False
""")
check.hidden("""
# choose at other temperatures
>>> shares([0.0, 0.5, 0.2, -1.0], 0.5)
np.abs(got - right_chances([0.0, 0.5, 0.2, -1.0], 0.5)).max() < 0.1
>>> draws([1.0, 1.2, 1.1], 0.001, 20)
[1] * 20
>>> draws([-1e6, 1e6], 0.01, 5)
[1] * 5

# choose with other generators
>>> draws([0.0] * 60, 0.5, 20) == draws([0.0] * 60, 0.5, 20)
True
>>> draws([0.0] * 60, 0.5, 20) == draws([0.0] * 60, 0.5, 20, seed=13)
False

# other numbers of rounds
>>> continued(0, ids=[1])
[1]
>>> continued(8, temperature=0, ids=[5, 4, 3, 2, 1, 0])
[5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 0, 1, 2]
""")
