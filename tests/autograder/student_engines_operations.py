"""Operations of the students' array engines: the value and the rule of each, in NumPy, written independently of the
reference and often with another formula; and the same rules with a classic mistake.

A rule is `rule(g, y, o, *xs)`: the incoming gradient, the output, the options, the inputs. It returns one array per
input, in the shape of the output if broadcasting has to be undone. `RIGHT` holds (forward, rule) per operation,
`WRONG` a rule per (bug, operation).
"""

import math

import numpy as np

OPERATIONS = {
    "add": "Add", "sub": "Subtract", "mul": "Multiply", "div": "Divide", "neg": "Negate", "pow": "Power",
    "exp": "Exp", "log": "Log", "tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid", "sqrt": "Sqrt", "abs": "Abs",
    "sin": "Sin", "cos": "Cos", "leaky_relu": "LeakyRelu", "maximum": "Maximum", "where": "Where",
    "matmul": "MatMul", "sum": "Sum", "mean": "Mean", "amax": "Amax", "amin": "Amin", "reshape": "Reshape",
    "transpose": "Transpose", "permute": "Permute", "flip": "Flip", "roll": "Roll", "index": "Index", "cat": "Cat",
    "sort": "Sort", "cumsum": "CumulativeSum", "softmax": "Softmax", "log_softmax": "LogSoftmax",
    "cross_entropy": "CrossEntropy", "mse_loss": "MseLoss", "layer_norm": "LayerNorm", "batch_norm": "BatchNorm",
    "dropout": "Dropout", "embedding": "Embedding",
}  # fmt: skip
"""The bank's name for each operation."""


def back(g, x, o):
    """A gradient with the reduced axes put back, of length 1."""
    axes = range(x.ndim) if o["dim"] is None else o["dim"]
    return np.reshape(g, [1 if axis in axes else length for axis, length in enumerate(x.shape)])


def length(x, o):
    return x.size if o["dim"] is None else math.prod(x.shape[axis] for axis in o["dim"])


def matrices(a, b, g):
    """Both factors and the gradient of a product, with vectors made into matrices."""
    if b.ndim == 1:
        b, g = b.reshape(-1, 1), np.reshape(g, (*np.shape(g), 1))
    if a.ndim == 1:
        a, g = a.reshape(1, -1), np.reshape(g, (*np.shape(g)[:-1], 1, np.shape(g)[-1]))
    return a, b, g


def swapped(x):
    return np.swapaxes(x, -1, -2)


def product(g, y, o, a, b):
    left, right, g = matrices(a, b, g)
    first, second = g @ swapped(right), swapped(left) @ g
    return first.reshape(first.shape[:-2] + a.shape[-1:]) if a.ndim == 1 else first, (
        second[..., 0] if b.ndim == 1 else second
    )


def probabilities(x, axis):
    powers = np.exp(x - np.max(x, axis, keepdims=True))
    return powers / np.sum(powers, axis, keepdims=True)


def one_hot(x, targets):
    return np.eye(x.shape[1])[np.asarray(targets)]


def standard(x, axis):
    centered = x - np.mean(x, axis, keepdims=True)
    return centered, np.sqrt(np.mean(centered**2, axis, keepdims=True) + 1e-5)


def norm_rule(g, x, axis, mean_term=True, variance_term=True, scale=True):
    centered, std = standard(x, axis)
    share = np.array(g, dtype=float)
    if mean_term:
        share = share - np.mean(g, axis, keepdims=True)
    if variance_term:
        share = share - centered * np.mean(g * centered, axis, keepdims=True) / std**2
    return share / std if scale else share


def scattered(g, x, index):
    share = np.zeros(x.shape)
    np.add.at(share, index, g)
    return share


def unsorted(g, x, axis):
    share = np.empty(x.shape)
    np.put_along_axis(share, np.argsort(x, axis, kind="stable"), g, axis)
    return share


def halves(g, a, b, o):
    cut = a.shape[o["dim"]]
    return np.take(g, range(cut), o["dim"]), np.take(g, range(cut, cut + b.shape[o["dim"]]), o["dim"])


def shared_among_ties(extreme):
    def rule(g, y, o, x):
        chosen = x == back(y, x, o)
        axes = tuple(range(x.ndim)) if o["dim"] is None else o["dim"]
        return (back(g, x, o) * chosen / chosen.sum(axes, keepdims=True),)

    return (lambda o, x: extreme(x, axis=o["dim"], keepdims=o["keepdim"])), rule


def one(derivative):
    """The rule of an elementwise operation with one input."""
    return lambda g, y, o, x: (g * derivative(x, y, o),)


RIGHT = {
    "add": (lambda o, a, b: a + b, lambda g, y, o, a, b: (g, g)),
    "sub": (lambda o, a, b: a - b, lambda g, y, o, a, b: (g, -g)),
    "mul": (lambda o, a, b: a * b, lambda g, y, o, a, b: (b * g, a * g)),
    "div": (lambda o, a, b: a / b, lambda g, y, o, a, b: (g / b, -g * y / b)),
    "neg": (lambda o, x: -x, lambda g, y, o, x: (-g,)),
    "pow": (lambda o, x: x ** o["n"], one(lambda x, y, o: o["n"] * x ** (o["n"] - 1))),
    "exp": (lambda o, x: np.exp(x), one(lambda x, y, o: np.exp(x))),
    "log": (lambda o, x: np.log(x), one(lambda x, y, o: 1 / x)),
    "tanh": (lambda o, x: np.tanh(x), one(lambda x, y, o: 1 / np.cosh(x) ** 2)),
    "relu": (lambda o, x: np.where(x > 0, x, 0.0), one(lambda x, y, o: np.where(x > 0, 1.0, 0.0))),
    "sigmoid": (lambda o, x: 0.5 + 0.5 * np.tanh(x / 2), one(lambda x, y, o: y - y * y)),
    "sqrt": (lambda o, x: np.sqrt(x), one(lambda x, y, o: 0.5 / y)),
    "abs": (lambda o, x: np.abs(x), one(lambda x, y, o: np.sign(x))),
    "sin": (lambda o, x: np.sin(x), one(lambda x, y, o: np.cos(x))),
    "cos": (lambda o, x: np.cos(x), one(lambda x, y, o: -np.sin(x))),
    "leaky_relu": (
        lambda o, x: np.where(x > 0, x, o["slope"] * x),
        one(lambda x, y, o: np.where(x > 0, 1.0, o["slope"])),
    ),
    "maximum": (
        lambda o, a, b: np.maximum(a, b),
        lambda g, y, o, a, b: (g * ((a > b) + 0.5 * (a == b)), g * ((b > a) + 0.5 * (a == b))),
    ),
    "where": (
        lambda o, a, b: np.where(o["condition"], a, b),
        lambda g, y, o, a, b: (g * o["condition"], g * ~o["condition"]),
    ),
    "matmul": (lambda o, a, b: a @ b, product),
    "sum": (
        lambda o, x: x.sum(axis=o["dim"], keepdims=o["keepdim"]),
        lambda g, y, o, x: (back(g, x, o) * np.ones(x.shape),),
    ),
    "mean": (
        lambda o, x: x.mean(axis=o["dim"], keepdims=o["keepdim"]),
        lambda g, y, o, x: (back(g, x, o) * np.full(x.shape, 1 / length(x, o)),),
    ),
    "amax": shared_among_ties(np.max),
    "amin": shared_among_ties(np.min),
    "reshape": (lambda o, x: x.reshape(o["shape"]), lambda g, y, o, x: (g.reshape(x.shape),)),
    "transpose": (lambda o, x: np.swapaxes(x, *o["dims"]), lambda g, y, o, x: (np.swapaxes(g, *o["dims"]),)),
    "permute": (lambda o, x: x.transpose(o["dims"]), lambda g, y, o, x: (g.transpose(np.argsort(o["dims"])),)),
    "flip": (lambda o, x: np.flip(x, o["dims"]), lambda g, y, o, x: (np.flip(g, o["dims"]),)),
    "roll": (
        lambda o, x: np.roll(x, o["shift"], o["dim"]),
        lambda g, y, o, x: (np.roll(g, -o["shift"], o["dim"]),),
    ),
    "index": (lambda o, x: x[o["index"]], lambda g, y, o, x: (scattered(g, x, o["index"]),)),
    "cat": (lambda o, a, b: np.concatenate([a, b], o["dim"]), lambda g, y, o, a, b: halves(g, a, b, o)),
    "sort": (lambda o, x: np.sort(x, o["dim"]), lambda g, y, o, x: (unsorted(g, x, o["dim"]),)),
    "cumsum": (
        lambda o, x: np.cumsum(x, o["dim"]),
        lambda g, y, o, x: (np.flip(np.cumsum(np.flip(g, o["dim"]), o["dim"]), o["dim"]),),
    ),
    "softmax": (
        lambda o, x: probabilities(x, o["dim"]),
        lambda g, y, o, x: (y * (g - (g * y).sum(o["dim"], keepdims=True)),),
    ),
    "log_softmax": (
        lambda o, x: np.log(probabilities(x, o["dim"])),
        lambda g, y, o, x: (g - probabilities(x, o["dim"]) * g.sum(o["dim"], keepdims=True),),
    ),
    "cross_entropy": (
        lambda o, x: -np.mean(np.log((probabilities(x, 1) * one_hot(x, o["targets"])).sum(1))),
        lambda g, y, o, x: (g * (probabilities(x, 1) - one_hot(x, o["targets"])) / len(x),),
    ),
    "mse_loss": (
        lambda o, a, b: np.mean((a - b) ** 2),
        lambda g, y, o, a, b: (2 * g * (a - b) / a.size, 2 * g * (b - a) / a.size),
    ),
    "layer_norm": (
        lambda o, x: standard(x, -1)[0] / standard(x, -1)[1],
        lambda g, y, o, x: (norm_rule(g, x, -1),),
    ),
    "batch_norm": (lambda o, x: standard(x, 0)[0] / standard(x, 0)[1], lambda g, y, o, x: (norm_rule(g, x, 0),)),
    "dropout": (
        lambda o, x: x * o["mask"] / (1 - o["p"]),
        lambda g, y, o, x: (g * o["mask"] / (1 - o["p"]),),
    ),
    "embedding": (lambda o, x: x[o["index"]], lambda g, y, o, x: (scattered(g, x, o["index"]),)),
}


def last_gradient_wins(g, y, o, x):
    share = np.zeros(x.shape)
    share[o["index"]] = g
    return (share,)


def to_one_place(find):
    """The gradient of an extreme goes to one place along the axis, or in the flat array if there is no axis."""

    def rule(g, y, o, x):
        share = np.zeros(x.shape)
        if o["dim"] is None:
            share.reshape(-1)[find(x.reshape(-1), 0)] = np.sum(g)
            return (share,)
        (axis,) = o["dim"]
        np.put_along_axis(share, np.expand_dims(find(x, axis), axis), back(g, x, o), axis)
        return (share,)

    return rule


def first_place(x, axis):
    return np.zeros(np.delete(x.shape, axis), dtype=int)


def lookups_averaged(g, y, o, x):
    share = scattered(g, x, o["index"])
    for row in set(np.ravel(o["index"])):
        share[row] /= np.sum(np.asarray(o["index"]) == row)
    return (share,)


def at_the_front(g, y, o, x):
    share = np.zeros(x.size)
    share[: g.size] = g.ravel()[: x.size]
    return (share.reshape(x.shape),)


WRONG = {
    ("operands_swapped", "mul"): lambda g, y, o, a, b: (a * g, b * g),
    ("operands_swapped", "sub"): lambda g, y, o, a, b: (-g, g),
    ("operands_swapped", "div"): lambda g, y, o, a, b: (-g * a / b**2, g / b),
    ("operands_swapped", "pow"): one(lambda x, y, o: x * np.power(float(o["n"]), x - 1)),
    ("matmul_factors_exchanged", "matmul"): lambda g, y, o, a, b: (swapped(b) @ g, g @ swapped(a)),
    ("sign_lost", "sub"): lambda g, y, o, a, b: (g, g),
    ("sign_lost", "neg"): lambda g, y, o, x: (g,),
    ("sign_lost", "div"): lambda g, y, o, a, b: (g / b, g * a / b**2),
    ("sign_lost", "cos"): one(lambda x, y, o: np.sin(x)),
    ("plus_for_minus", "tanh"): one(lambda x, y, o: 1 + y**2),
    ("plus_for_minus", "sigmoid"): one(lambda x, y, o: y + y**2),
    ("exponent_not_lowered", "pow"): one(lambda x, y, o: o["n"] * y),
    ("exponent_not_in_front", "pow"): one(lambda x, y, o: x ** (o["n"] - 1)),
    ("exponent_lowered_first", "pow"): one(lambda x, y, o: (o["n"] - 1) * x ** (o["n"] - 1)),
    ("rule_of_the_square", "pow"): one(lambda x, y, o: x + x),
    ("input_used_for_output", "tanh"): one(lambda x, y, o: 1 - x**2),
    ("input_used_for_output", "exp"): one(lambda x, y, o: x),
    ("input_used_for_output", "sigmoid"): one(lambda x, y, o: x - x**2),
    ("input_used_for_output", "sqrt"): one(lambda x, y, o: 1 / (2 * x)),
    ("output_used_for_input", "log"): one(lambda x, y, o: 1 / y),
    ("output_used_for_input", "pow"): one(lambda x, y, o: o["n"] * y ** (o["n"] - 1)),
    ("output_used_for_input", "sin"): one(lambda x, y, o: np.cos(y)),
    **{
        ("derivative_forgotten", name): lambda g, y, o, x: (g,)
        for name in ("exp", "log", "tanh", "pow", "sigmoid", "sqrt", "sin", "cos", "abs")
    },
    ("product_like_sum", "mul"): lambda g, y, o, a, b: (g, g),
    ("product_like_sum", "div"): lambda g, y, o, a, b: (g, -g),
    ("square_forgotten", "div"): lambda g, y, o, a, b: (g / b, -g * a / b),
    ("square_forgotten", "tanh"): one(lambda x, y, o: 1 - y),
    ("square_misplaced", "tanh"): one(lambda x, y, o: (1 - y) * (1 - y)),
    ("square_misplaced", "sigmoid"): one(lambda x, y, o: (1 - y) * (1 - y)),
    ("factor_lost", "sigmoid"): one(lambda x, y, o: y),
    ("factor_lost", "sqrt"): one(lambda x, y, o: x**-0.5),
    ("factor_lost", "div"): lambda g, y, o, a, b: (g / b, -g / b**2),
    ("factor_squared", "mul"): lambda g, y, o, a, b: (g * b * b, g * a * a),
    ("factor_squared", "exp"): one(lambda x, y, o: np.exp(2 * x)),
    ("factor_squared", "log"): one(lambda x, y, o: x**-2.0),
    ("factor_squared", "tanh"): one(lambda x, y, o: np.cosh(x) ** -4.0),
    ("factor_squared", "pow"): one(lambda x, y, o: (o["n"] * x ** (o["n"] - 1)) ** 2),
    ("multiplied_not_divided", "log"): one(lambda x, y, o: x),
    ("multiplied_not_divided", "div"): lambda g, y, o, a, b: (g * b, -g * a / b**2),
    ("multiplied_not_divided", "sqrt"): one(lambda x, y, o: y / 2),
    ("power_rule_for_exp", "exp"): one(lambda x, y, o: x * np.exp(x - 1)),
    ("log_of_base_ten", "log"): one(lambda x, y, o: 1 / x / math.log(10)),
    ("relu_mask_lost", "relu"): lambda g, y, o, x: (g,),
    ("relu_mask_of_gradient", "relu"): lambda g, y, o, x: (np.maximum(g, 0),),
    ("relu_mask_inverted", "relu"): one(lambda x, y, o: np.where(x > 0, 0.0, 1.0)),
    ("relu_gives_value", "relu"): one(lambda x, y, o: np.maximum(x, 0)),
    ("constant_mistyped", "tanh"): one(lambda x, y, o: 1 - y * y * y),
    ("constant_mistyped", "leaky_relu"): one(lambda x, y, o: np.where(x > 0, 1.0, 10 * o["slope"])),
    ("constant_mistyped", "sqrt"): one(lambda x, y, o: 2 / y),
    ("upstream_added", "mul"): lambda g, y, o, a, b: (b + g, a + g),
    ("upstream_added", "tanh"): lambda g, y, o, x: (1 - y * y + g,),
    ("upstream_added", "exp"): lambda g, y, o, x: (y + g,),
    ("upstream_added", "pow"): lambda g, y, o, x: (o["n"] * x ** (o["n"] - 1) + g,),
    ("matmul_not_transposed", "matmul"): lambda g, y, o, a, b: (g @ b, a @ g),
    ("matmul_gradients_exchanged", "matmul"): lambda g, y, o, a, b: product(g, y, o, a, b)[::-1],
    ("matmul_result_transposed", "matmul"): lambda g, y, o, a, b: tuple(map(swapped, product(g, y, o, a, b))),
    ("matmul_elementwise", "matmul"): lambda g, y, o, a, b: (g * b, g * a),
    ("matmul_all_axes_reversed", "matmul"): lambda g, y, o, a, b: (g @ b.T, a.T @ g),
    ("matmul_batch_mixed", "matmul"): lambda g, y, o, a, b: tuple(
        np.repeat(s.sum(0, keepdims=True), len(s), 0) if s.ndim > 2 else s for s in product(g, y, o, a, b)
    ),
    ("matmul_outer_forgotten", "matmul"): lambda g, y, o, a, b: (
        product(g, y, o, a, b) if a.ndim == b.ndim == 2 else (np.dot(g, b.T), np.dot(a.T, g))
    ),
    ("mean_not_divided", "mean"): lambda g, y, o, x: (back(g, x, o) * np.ones(x.shape),),
    ("mean_divided_by_all", "mean"): lambda g, y, o, x: (back(g, x, o) * np.ones(x.shape) / x.size,),
    ("mean_divided_by_results", "mean"): lambda g, y, o, x: (back(g, x, o) * np.ones(x.shape) / np.size(y),),
    ("sum_divided", "sum"): lambda g, y, o, x: (back(g, x, o) * np.ones(x.shape) / length(x, o),),
    ("reduction_not_expanded", "sum"): lambda g, y, o, x: (g,),
    ("reduction_not_expanded", "mean"): lambda g, y, o, x: (g / length(x, o),),
    ("reduction_expanded_wrongly", "sum"): lambda g, y, o, x: (g * np.ones(x.shape),),
    ("reduction_expanded_wrongly", "mean"): lambda g, y, o, x: (g * np.ones(x.shape) / length(x, o),),
    **{("max_to_all", name): lambda g, y, o, x: (back(g, x, o) + np.zeros(x.shape),) for name in ("amax", "amin")},
    ("max_ties_all", "amax"): lambda g, y, o, x: (back(g, x, o) * (x == back(y, x, o)),),
    **{("max_first_element", name): to_one_place(first_place) for name in ("amax", "amin")},
    ("max_wrong_extreme", "amax"): to_one_place(np.argmin),
    ("max_wrong_extreme", "amin"): to_one_place(np.argmax),
    ("max_times_value", "amax"): lambda g, y, o, x: (back(g * y, x, o) * (x == back(y, x, o)),),
    ("max_over_everything", "amax"): lambda g, y, o, x: (back(g, x, o) * (x == x.max()),),
    ("transpose_not_undone", "transpose"): lambda g, y, o, x: (g.reshape(x.shape),),
    ("transpose_not_undone", "permute"): lambda g, y, o, x: (g,),
    ("permutation_not_inverted", "permute"): lambda g, y, o, x: (g.transpose(o["dims"]),),
    ("flip_not_undone", "flip"): lambda g, y, o, x: (g,),
    ("roll_not_undone", "roll"): lambda g, y, o, x: (np.roll(g, o["shift"], o["dim"]),),
    ("reshape_not_undone", "reshape"): lambda g, y, o, x: (g,),
    ("reshape_in_other_order", "reshape"): lambda g, y, o, x: (g.reshape(x.shape, order="F"),),
    ("index_overwritten", "index"): last_gradient_wins,
    ("index_not_put_back", "index"): lambda g, y, o, x: (g,),
    ("index_at_the_front", "index"): at_the_front,
    ("concatenation_swapped", "cat"): lambda g, y, o, a, b: halves(g, b, a, o)[::-1],
    ("concatenation_offset_lost", "cat"): lambda g, y, o, a, b: (
        np.take(g, range(a.shape[o["dim"]]), o["dim"]),
        np.take(g, range(b.shape[o["dim"]]), o["dim"]),
    ),
    ("sort_not_undone", "sort"): lambda g, y, o, x: (g,),
    ("where_condition_ignored", "where"): lambda g, y, o, a, b: (g, g),
    ("where_condition_ignored", "maximum"): lambda g, y, o, a, b: (g, g),
    ("where_branches_swapped", "where"): lambda g, y, o, a, b: (np.where(o["condition"], 0, g), g * o["condition"]),
    ("where_branches_swapped", "maximum"): lambda g, y, o, a, b: (g * (a < b), g * (a > b)),
    ("cumulative_sum_not_reversed", "cumsum"): lambda g, y, o, x: (np.cumsum(g, o["dim"]),),
    ("softmax_without_coupling", "softmax"): lambda g, y, o, x: (g * (y - y * y),),
    ("softmax_zero", "softmax"): lambda g, y, o, x: (np.zeros(x.shape),),
    ("softmax_like_exp", "softmax"): lambda g, y, o, x: (g * y,),
    ("softmax_sum_not_weighted", "softmax"): lambda g, y, o, x: (g * y - y * g.sum(o["dim"], keepdims=True),),
    ("softmax_wrong_axis", "softmax"): lambda g, y, o, x: (y * (g - (g * y).sum(1 - o["dim"], keepdims=True)),),
    ("softmax_wrong_axis", "log_softmax"): lambda g, y, o, x: (g - np.exp(y) * g.sum(1 - o["dim"], keepdims=True),),
    ("log_softmax_coupling_lost", "log_softmax"): lambda g, y, o, x: (g,),
    ("log_softmax_gradient_not_summed", "log_softmax"): lambda g, y, o, x: (g - np.exp(y),),
    ("log_softmax_like_softmax", "log_softmax"): lambda g, y, o, x: (
        np.exp(y) * (g - (g * np.exp(y)).sum(o["dim"], keepdims=True)),
    ),
    ("cross_entropy_not_averaged", "cross_entropy"): lambda g, y, o, x: (
        g * (probabilities(x, 1) - one_hot(x, o["targets"])),
    ),
    ("cross_entropy_divided_by_classes", "cross_entropy"): lambda g, y, o, x: (
        g * (probabilities(x, 1) - one_hot(x, o["targets"])) / x.shape[1],
    ),
    ("cross_entropy_sign_flipped", "cross_entropy"): lambda g, y, o, x: (
        g * (one_hot(x, o["targets"]) - probabilities(x, 1)) / len(x),
    ),
    ("cross_entropy_target_forgotten", "cross_entropy"): lambda g, y, o, x: (g * probabilities(x, 1) / len(x),),
    **{
        (bug, name): lambda g, y, o, x, axis=axis, missing=missing: (norm_rule(g, x, axis, **missing),)
        for name, axis in (("layer_norm", -1), ("batch_norm", 0))
        for bug, missing in (
            ("norm_mean_term_missing", {"mean_term": False}),
            ("norm_variance_term_missing", {"variance_term": False}),
            ("norm_statistics_constant", {"mean_term": False, "variance_term": False}),
            ("norm_scale_lost", {"scale": False}),
        )
    },
    ("dropout_scale_lost", "dropout"): lambda g, y, o, x: (g * o["mask"],),
    ("dropout_mask_lost", "dropout"): lambda g, y, o, x: (g / (1 - o["p"]),),
    ("embedding_rows_overwritten", "embedding"): last_gradient_wins,
    ("embedding_rows_averaged", "embedding"): lookups_averaged,
    ("squared_error_two_lost", "mse_loss"): lambda g, y, o, a, b: (g * (a - b) / a.size, g * (b - a) / a.size),
    ("squared_error_not_averaged", "mse_loss"): lambda g, y, o, a, b: (2 * g * (a - b), 2 * g * (b - a)),
}
SHOWN_BY = {
    "matmul_all_axes_reversed": "batches",
    "matmul_batch_mixed": "batches",
    "matmul_outer_forgotten": "vectors",
    "max_ties_all": "ties",
    "reduction_not_expanded": "rows",
    "reduction_expanded_wrongly": "rows",
}
"""The check that shows a mistake (see `bugs/planted.py`), if that is not the one of its operation."""
STYLES_OF = {"reduction_not_expanded": ("functions",)}
"""The engines that show a mistake, if not both: with gradients that start as zeros, it is another one."""


def with_upstream(change):
    """A mistake that changes the incoming gradient before the right rule sees it."""
    return lambda right: lambda g, y, o, *xs: right(change(g, y), y, o, *xs)


UPSTREAM = {
    "upstream_ignored": with_upstream(lambda g, y: np.ones(np.shape(g))),
    "upstream_used_twice": with_upstream(lambda g, y: g**2),
    "output_for_upstream": with_upstream(lambda g, y: y),
    "upstream_collapsed": with_upstream(lambda g, y: np.full(np.shape(g), np.sum(g))),
    "rule_not_connected": with_upstream(lambda g, y: np.zeros(np.shape(g))),
}
for _bug, _wrong in UPSTREAM.items():
    for _name in ("add", "mul", "tanh", "exp", "pow", "relu"):
        WRONG[_bug, _name] = _wrong(RIGHT[_name][1])
    if _bug != "upstream_collapsed":
        for _name in ("matmul", "sum", "mean"):
            WRONG[_bug, _name] = _wrong(RIGHT[_name][1])


def without_one(number):
    def wrong(right):
        def rule(g, y, o, *xs):
            shares = list(right(g, y, o, *xs))
            shares[number] = np.zeros(np.shape(shares[number]))
            return tuple(shares)

        return rule

    return wrong


for _name, _number in (("add", 1), ("mul", 0), ("div", 1), ("matmul", 1)):
    WRONG["operand_forgotten", _name] = without_one(_number)(RIGHT[_name][1])
