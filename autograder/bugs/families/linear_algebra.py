"""Linear algebra: the matrix product, whose two gradients are G transpose(B) and transpose(A) G."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.bugs.bug import KEPT_OR_ADDED, Bug
from autograder.bugs.families.local_rule import exchange
from autograder.runs.reference_patch import Call, Rule


def vectors_as_matrices(right: Rule, call: Call, grad: Any) -> Any:
    a, b = call.inputs
    if a.ndim > 1 and b.ndim > 1:
        return right(grad)
    return np.dot(grad, b.T), np.dot(a.T, grad)


def without_outer_product(right: Rule, call: Call, grad: Any) -> Any:
    a, b = call.inputs
    first, second = right(grad)
    return (grad * b if a.ndim > b.ndim else first), (a * grad if b.ndim > a.ndim else second)


matmul_outer_forgotten = Bug(
    explanation=(
        "the rule for two matrices was used for a vector, whose `.T` is the vector itself: the gradient of the matrix "
        "is an outer product"
    ),
    hint="For A @ x, what is the shape of the gradient of A, and which two vectors is it made of?",
    misconception="`.T` turns a vector of shape (n,) into a row.",
    rules={"MatMul": vectors_as_matrices},
    forms=({"MatMul": without_outer_product},),
    shapes=KEPT_OR_ADDED,
)


def without_transposes(right: Rule, call: Call, grad: Any) -> Any:
    a, b = call.inputs
    return grad @ b, a @ grad


def first_without_transpose(right: Rule, call: Call, grad: Any) -> Any:
    _, second = right(grad)
    return grad @ call.inputs[1], second


def second_without_transpose(right: Rule, call: Call, grad: Any) -> Any:
    first, _ = right(grad)
    return first, call.inputs[0] @ grad


matmul_not_transposed = Bug(
    explanation="a factor of the matrix product is not transposed in the rule (G @ B instead of G @ B.T)",
    hint="Write down the shapes of A, B and A @ B. With non-square matrices only one arrangement fits.",
    misconception="The matrix product is differentiated like a product of numbers.",
    rules={"MatMul": without_transposes},
    forms=({"MatMul": first_without_transpose}, {"MatMul": second_without_transpose}),
    shapes=KEPT_OR_ADDED,
)

matmul_gradients_exchanged = Bug(
    explanation="both gradients of the matrix product are right, but each went to the other factor",
    hint="Check a product of non-square matrices: does each gradient have the shape of its factor?",
    misconception="The order in which a rule returns its gradients does not matter.",
    rules={"MatMul": exchange},
    shapes=KEPT_OR_ADDED,
)


def factors_exchanged(right: Rule, call: Call, grad: Any) -> Any:
    a, b = call.inputs
    return b.mT @ grad, grad @ a.mT


matmul_factors_exchanged = Bug(
    explanation="the incoming gradient and the other matrix are multiplied in the wrong order",
    hint="Write down the shapes of both factors for matrices that are not square. In which order do they fit?",
    misconception="The order of the factors in a matrix product does not matter.",
    rules={"MatMul": factors_exchanged},
    examples={"MatMul": "grad @ B.T for the gradient of A, not B.T @ grad"},
)


def transposed(right: Rule, call: Call, grad: Any) -> Any:
    return tuple(share.mT if np.ndim(share) > 1 else share for share in right(grad))


matmul_result_transposed = Bug(
    explanation="the gradients of the matrix product are transposed: rows and columns are swapped",
    hint="Does gradient[i, j] belong to element [i, j] of the factor? Try a product of non-square matrices.",
    misconception="A transpose in the formula means transposing the result.",
    rules={"MatMul": transposed},
    shapes=KEPT_OR_ADDED,
)


def elementwise(right: Rule, call: Call, grad: Any) -> Any:
    a, b = call.inputs
    return grad * b, grad * a


matmul_elementwise = Bug(
    explanation="the rule multiplies the matrices element by element (`*`), as if it were the rule of `a * b`",
    hint="One element of A takes part in a whole row of the result. Where does your rule collect that row?",
    misconception="`@` is differentiated like `*`.",
    rules={"MatMul": elementwise},
    shapes=KEPT_OR_ADDED,
)


def all_axes_reversed(right: Rule, call: Call, grad: Any) -> Any:
    a, b = call.inputs
    return grad @ b.T, a.T @ grad


matmul_all_axes_reversed = Bug(
    explanation="`.T` reverses all axes of a batch of matrices, but only the last two must be swapped",
    hint="Print the shape of x.T for x of shape (2, 3, 4). Which axis is the batch now?",
    misconception="`.T` transposes every matrix of a batch.",
    rules={"MatMul": all_axes_reversed},
    shapes=KEPT_OR_ADDED,
)


def batch_mixed(right: Rule, call: Call, grad: Any) -> Any:
    def mixed(share: Any) -> Any:
        return share * 0.0 + share.sum(0, keepdims=True) if np.ndim(share) > 2 else share

    return tuple(mixed(share) for share in right(grad))


matmul_batch_mixed = Bug(
    explanation="each matrix of a batch got the sum of all gradients, but it needs only its own",
    hint="Suppose that only the first matrix of the result matters. Which matrices of the batch should get a gradient?",
    misconception="Gradients are always summed over a batch.",
    rules={"MatMul": batch_mixed},
)
