"""Neural: softmax and its relatives, cross entropy, normalization, dropout and embedding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.bugs.bug import Bug
from autograder.bugs.families.shape import overwritten
from autograder.runs.reference_patch import Call, Rule


def of_probabilities(change: Callable[[Any, Any, int], Any]) -> Any:
    """A wrong softmax rule in terms of the probabilities p, the gradient g and the axis."""
    return lambda right, call, grad: change(call.output, grad, call.options["dim"])


def of_log_probabilities(change: Callable[[Any, Any, int], Any]) -> Any:
    return lambda right, call, grad: change(np.exp(call.output), grad, call.options["dim"])


def total(array: Any, dim: int) -> Any:
    return array.sum(dim, keepdims=True)


def other_axis(array: Any, dim: int) -> int:
    return (dim - 1) % np.ndim(array)


softmax_without_coupling = Bug(
    explanation="the softmax rule is p * (1 - p), as if every probability depended on its own input alone",
    hint="Raise one input. What happens to the probabilities of all the others?",
    misconception="Softmax acts on every element by itself, like a sigmoid.",
    rules={"Softmax": of_probabilities(lambda p, g, dim: g * p * (1.0 - p))},
)

softmax_zero = Bug(
    explanation="the softmax passes nothing on: its gradient is 0, which is right only if all outputs matter equally",
    hint="Probabilities add up to 1. What, then, is the gradient of their sum, and which test cannot see your mistake?",
    misconception="The outputs add up to 1, so the gradient is 0.",
    rules={"Softmax": of_probabilities(lambda p, g, dim: g * 0.0)},
)

softmax_like_exp = Bug(
    explanation="the softmax rule is p * gradient: the part that comes from the common denominator is missing",
    hint="The denominator of every output contains every input. Which term of the rule comes from it?",
    misconception="Softmax is exp(x) with a constant factor.",
    rules={"Softmax": of_probabilities(lambda p, g, dim: g * p)},
)

softmax_sum_not_weighted = Bug(
    explanation="the gradients are summed without their weights: p * (g - sum(g)) instead of p * (g - sum(g * p))",
    hint="Which average of the gradients makes the rule 0 when all gradients are equal?",
    misconception="Subtracting the sum of the gradients is enough.",
    rules={"Softmax": of_probabilities(lambda p, g, dim: p * (g - total(g, dim)))},
)

softmax_wrong_axis = Bug(
    explanation="the rule does not sum along the axis along which the probabilities add up to 1",
    hint="Along which axis is the sum of the outputs 1? Along which does your rule sum?",
    misconception="The rule of softmax sums along the last axis, whatever `dim` is.",
    rules={
        "Softmax": of_probabilities(lambda p, g, dim: p * (g - total(g * p, other_axis(p, dim)))),
        "LogSoftmax": of_log_probabilities(lambda p, g, dim: g - p * total(g, other_axis(p, dim))),
    },
)

log_softmax_coupling_lost = Bug(
    explanation="the rule passes the gradient on unchanged: the part that comes from log(sum(exp(x))) is missing",
    hint="log_softmax(x) = x - log(sum(exp(x))). Your rule differentiates the first term. What about the second?",
    misconception="Subtracting log(sum(exp(x))) subtracts a constant.",
    rules={"LogSoftmax": of_log_probabilities(lambda p, g, dim: g)},
)

log_softmax_gradient_not_summed = Bug(
    explanation="the rule subtracts p (or p times its own gradient) instead of p times the sum of all gradients",
    hint="Every output contains log(sum(exp(x))). Whose gradients does it pass on to an input?",
    misconception="The incoming gradients of log_softmax add up to 1.",
    rules={"LogSoftmax": of_log_probabilities(lambda p, g, dim: g - p)},
    forms=({"LogSoftmax": of_log_probabilities(lambda p, g, dim: g - p * g)},),
)

log_softmax_like_softmax = Bug(
    explanation="the rule is the one for softmax",
    hint="Differentiate x - log(sum(exp(x))) by hand for two inputs, and compare.",
    misconception="The logarithm changes the numbers, not the rule.",
    rules={"LogSoftmax": of_log_probabilities(lambda p, g, dim: p * (g - total(g * p, dim)))},
)


def samples(call: Call) -> int:
    """The number by which the loss of one sample is divided: the number of samples for a mean, else 1."""
    classes = np.shape(call.inputs[0])[call.options["axis"]]
    return np.size(call.inputs[0]) // classes if call.options["reduction"] == "mean" else 1


def by_samples(change: Callable[[Any, Any], Any]) -> Any:
    """A wrong rule of cross entropy in terms of the probabilities and the target's distribution q."""

    def wrong(right: Rule, call: Call, grad: Any) -> Any:
        x, q = call.inputs
        shifted = np.exp(x - x.max(axis=call.options["axis"], keepdims=True))
        p = shifted / shifted.sum(axis=call.options["axis"], keepdims=True)
        return grad / samples(call) * change(p, q), None

    return wrong


def times_samples(right: Rule, call: Call, grad: Any) -> Any:
    return right(grad)[0] * samples(call), None


def over_classes(right: Rule, call: Call, grad: Any) -> Any:
    return right(grad)[0] * samples(call) / np.shape(call.inputs[0])[call.options["axis"]], None


cross_entropy_not_averaged = Bug(
    explanation="the 1/N of the mean over the batch is missing from the gradient of cross entropy",
    hint="Put every sample into the batch twice. Does the loss change, and should the gradient of a sample?",
    misconception="p - y is the gradient of the whole loss.",
    rules={"CrossEntropy": times_samples},
)

cross_entropy_divided_by_classes = Bug(
    explanation="the gradient of cross entropy is divided by the number of classes, not by the number of samples",
    hint="Which axis of the logits is the batch?",
    misconception="The mean is taken over the classes.",
    rules={"CrossEntropy": over_classes},
)

cross_entropy_sign_flipped = Bug(
    explanation="the gradient of cross entropy has the wrong sign: it is p - y, not y - p",
    hint="Raise the logit of the right class. Does the loss rise or fall?",
    misconception="The gradient points from the prediction to the target.",
    rules={"CrossEntropy": by_samples(lambda p, q: q - p)},
)

cross_entropy_target_forgotten = Bug(
    explanation="the gradient of cross entropy is the probabilities alone: 1 must be subtracted at the right class",
    hint="What is the gradient when the prediction is perfect, and what does your rule give?",
    misconception="Only the predicted probabilities matter for the gradient.",
    rules={"CrossEntropy": by_samples(lambda p, q: p)},
)


def standardizing(change: Callable[[Any, Any, Callable[[Any], Any]], Any]) -> Any:
    """A wrong rule of normalization, before scaling, in terms of g, the normalized input n and the mean over axes."""

    def wrong(right: Rule, call: Call, grad: Any) -> Any:
        x, weight, _ = call.inputs
        axes = call.options["axes"]

        def mean(array: Any) -> Any:
            return array.mean(axis=axes, keepdims=True)

        std = np.sqrt(mean((x - mean(x)) ** 2) + call.options["eps"])
        g = grad if weight is None else grad * weight
        return change(g, (x - mean(x)) / std, mean) / std, *right(grad)[1:]

    return wrong


NORMS = ("LayerNorm", "BatchNorm")
norm_mean_term_missing = Bug(
    explanation="the mean is treated as a constant: the rule of the normalization lacks the term mean(g)",
    hint="Add 1 to all inputs. The output does not change; does your gradient, summed over the inputs, say so?",
    misconception="The mean is a constant.",
    rules={name: standardizing(lambda g, n, mean: g - n * mean(g * n)) for name in NORMS},
)

norm_variance_term_missing = Bug(
    explanation="the variance is treated as a constant: the rule of the normalization lacks the term n * mean(g * n)",
    hint="Double all inputs. The output hardly changes; does your gradient say so?",
    misconception="The variance is a constant.",
    rules={name: standardizing(lambda g, n, mean: g - mean(g)) for name in NORMS},
)

norm_statistics_constant = Bug(
    explanation="the mean and the variance are treated as constants, but every input influences both",
    hint="Change one input. Which numbers in the formula change with it?",
    misconception="Statistics of a batch or layer are given numbers.",
    rules={name: standardizing(lambda g, n, mean: g) for name in NORMS},
)


def unscaled(right: Rule, call: Call, grad: Any) -> Any:
    x, axes = call.inputs[0], call.options["axes"]
    std = np.sqrt(x.var(axis=axes, keepdims=True) + call.options["eps"])
    first, *others = right(grad)
    return first * std, *others


norm_scale_lost = Bug(
    explanation="the gradient of a normalization is not divided by the standard deviation",
    hint="Make the inputs ten times as large. How far must an input now move to move the output as far as before?",
    misconception="After normalizing, the scale of the inputs plays no role.",
    rules=dict.fromkeys(NORMS, unscaled),
)


def without_scale(right: Rule, call: Call, grad: Any) -> Any:
    return grad * (call.options["mask"] != 0)


dropout_scale_lost = Bug(
    explanation="the backward pass of dropout lacks the factor 1 / (1 - p) of the forward pass",
    hint="The elements that were kept were multiplied in the forward pass. What is the derivative of that?",
    misconception="The scale of dropout only matters in the forward pass.",
    rules={"Dropout": without_scale},
)


def without_mask(right: Rule, call: Call, grad: Any) -> Any:
    return grad * np.max(call.options["mask"])


dropout_mask_lost = Bug(
    explanation="the backward pass of dropout lets gradients through where the forward pass had put zeros",
    hint="Change an element that was dropped. Does the output change?",
    misconception="Dropout only acts in the forward pass.",
    rules={"Dropout": lambda right, call, grad: grad},
    forms=({"Dropout": without_mask},),
)

embedding_rows_overwritten = Bug(
    explanation="a row of the embedding that was looked up several times kept only its last gradient",
    hint="The same word occurs twice in a sentence. How many gradients does its row get, and what happens to them?",
    misconception="`table[index] += gradient` adds for every repetition in `index`.",
    rules={"Embedding": overwritten},
)


def divided_by_rows(right: Rule, call: Call, grad: Any) -> Any:
    index = np.asarray(call.options["index"])
    counts = np.bincount(index.reshape(-1), minlength=len(call.inputs[0]))
    return right(grad) / np.maximum(counts, 1)[:, None]


embedding_rows_averaged = Bug(
    explanation="a row of the embedding that was looked up several times got the mean of its gradients, not their sum",
    hint="Two uses of a row pull it in the same direction. Does it move as far as for one use, or twice as far?",
    misconception="Several gradients for one row are averaged.",
    rules={"Embedding": divided_by_rows},
)


def half_of(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return first * 0.5, second * 0.5


squared_error_two_lost = Bug(
    explanation="the factor 2 of the squared error is missing from its gradient",
    hint="What is the derivative of d**2?",
    misconception="The gradient of the squared error is the error.",
    rules={"MseLoss": half_of},
)


def error_not_averaged(right: Rule, call: Call, grad: Any) -> Any:
    number = math.prod(np.shape(call.inputs[0])) if call.options["reduction"] == "mean" else 1
    first, second = right(grad)
    return first * number, second * number


squared_error_not_averaged = Bug(
    explanation="the 1/N of the mean is missing from the gradient of the squared error",
    hint="Twice as many samples of the same kind: does the loss change, and should the gradient of one sample?",
    misconception="The loss is a mean, but its gradient is not.",
    rules={"MseLoss": error_not_averaged},
)
