"""Plants classic mistakes in the solutions of lesson 04, and compares its engine, in every style, with PyTorch.

The lesson's own test cells do the checking, in a plain namespace, without a notebook or a sandbox. The small set of
digits must be what its script makes.
"""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LESSONS, LessonTests, Planted, solved, styles

LESSON = "04_arrays"
DATA = LESSONS.parent / "data"

SUM_TO = """    grad = grad.sum(axis=tuple(range(extra)))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and grad.shape[axis] != 1)
    return grad.sum(axis=stretched, keepdims=True)"""
LARGEST = """        np.put_along_axis(chosen, np.expand_dims(a.data.argmax(dim), dim), 1.0, dim)"""
PUT_BACK = """        if dim is not None and not keepdim:
            grad = np.expand_dims(grad, dim)
"""
RETURNED_SUM, RETURNED_MAX = "        return (np.broadcast_to(grad, a.shape),)", "        return (chosen * grad,)"
ALL_THAT_WALK = (
    "backward",
    "cotangent",
    "elementwise",
    "reductions",
    "maximum",
    "ties",
    "rearranging",
    "matmul",
    "softmax",
)
KEPT_SUM, KEPT_MAX = PUT_BACK + RETURNED_SUM, PUT_BACK + RETURNED_MAX


def planted(name: str, right: str, wrong: str, *costs: str, bug: str = "") -> Planted:
    return Planted(name, bug, right, wrong, tuple(f"test_{cost}" for cost in costs))


PLANTED = [
    planted(
        "a share is added in place",
        "pending[source] + share",
        "np.add(pending[source], share, out=pending[source])",
        *("backward", "elementwise"),
    ),
    planted("all axes exchanged", "a.data.swapaxes(dim0, dim1)", "a.data.T", "rearranging"),
    planted(
        "the last two axes exchanged back", "(grad.swapaxes(dim0, dim1),)", "(grad.swapaxes(-1, -2),)", "rearranging"
    ),
    planted(
        "relu writes into the cotangent",
        "        return (grad * (a.data > 0),)",
        "        grad[a.data <= 0] = 0\n        return (grad,)",
        "elementwise",
    ),
    planted(
        "the output alone and the leaves keep a gradient",
        "        node.grad = grad if node.grad is None else node.grad + grad\n",
        "        if node.rule is None or node is self:\n"
        "            node.grad = grad if node.grad is None else node.grad + grad\n",
        "cotangent",
    ),
    planted(
        "a gradient is summed only where it is kept",
        """        node.grad = grad if node.grad is None else node.grad + grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                share = sum_to(share, source.shape)
""",
        """        node.grad = sum_to(grad, node.shape) + (0 if node.grad is None else node.grad)
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
""",
        *("cotangent", "reductions", "softmax"),
    ),
    planted(
        "a rule is called for each input",
        "            for source, share in zip(node.inputs, node.rule(grad)):\n",
        "            for number, source in enumerate(node.inputs):\n                share = node.rule(grad)[number]\n",
        "cotangent",
    ),
    planted(
        "a rule is called for each use of its output",
        """    for node in topological_order(self):
        grad = pending.pop(node)
        node.grad = grad if node.grad is None else node.grad + grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                share = sum_to(share, source.shape)
                pending[source] = pending[source] + share if source in pending else share
""",
        """    def visit(node, grad):
        node.grad = grad if node.grad is None else node.grad + grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                visit(source, sum_to(share, source.shape))

    visit(self, pending[self])
""",
        "cotangent",
    ),
    planted(
        "a plain number for shape ()",
        "return grad.sum(axis=stretched, keepdims=True)",
        "return grad.sum(axis=stretched, keepdims=True) if shape else float(grad.sum())",
        *("backward", "softmax"),
    ),
    planted(
        "a stretch in front and one behind are not both summed",
        SUM_TO,
        "    if extra:\n        return grad.sum(axis=tuple(range(extra)))\n" + SUM_TO,
        *("sum_to", "backward"),
    ),
    planted(
        "only the first axis of size 1 is summed",
        SUM_TO,
        """    grad = grad.sum(axis=tuple(range(extra)))
    if 1 in shape:
        grad = grad.sum(shape.index(1), keepdims=True)
    return grad""",
        "sum_to",
        "backward",
    ),
    planted("a mean that is never kept", "total = sum_over(a, dim, keepdim)", "total = sum_over(a, dim)", "reductions"),
    planted(
        "stretch not summed",
        SUM_TO,
        "    return grad",
        *("sum_to", "backward", "cotangent", "elementwise", "matmul", "reductions", "softmax"),
        bug="broadcast_not_summed",
    ),
    planted(
        "mean for sum",
        SUM_TO,
        SUM_TO.replace(".sum(", ".mean("),
        *("sum_to", "backward", "cotangent", "elementwise", "matmul", "reductions", "softmax"),
        bug="broadcast_averaged",
    ),
    planted(
        "axes in front only",
        "return grad.sum(axis=stretched, keepdims=True)",
        "return grad",
        *("sum_to", "backward", "cotangent", "elementwise", "matmul", "reductions"),
        bug="broadcast_stretched_axes_forgotten",
    ),
    planted(
        "summed axis does not stay",
        "return grad.sum(axis=stretched, keepdims=True)",
        "return grad.sum(axis=stretched)",
        *("sum_to", "backward", "cotangent", "elementwise", "matmul", "reductions"),
        bug="broadcast_axis_dropped",
    ),
    planted(
        "axes added behind",
        "grad = grad.sum(axis=tuple(range(extra)))",
        "grad = grad.sum(axis=tuple(range(-extra, 0)))",
        *("sum_to", "backward", "elementwise", "matmul"),
        bug="broadcast_wrong_axis",
    ),
    planted(
        "pending is replaced",
        "pending[source] + share if source in pending else share",
        "share",
        *("backward", "cotangent", "elementwise", "reductions", "rearranging", "matmul", "softmax"),
        bug="assigned_not_accumulated",
    ),
    planted(
        "gradient is replaced",
        "node.grad = grad if node.grad is None else node.grad + grad",
        "node.grad = grad",
        *("backward", "cotangent", "elementwise", "reductions", "maximum", "rearranging", "matmul", "softmax"),
        bug="leaf_overwritten",
    ),
    planted(
        "gradient is changed in place",
        "node.grad = grad if node.grad is None else node.grad + grad",
        """if node.grad is None:
            node.grad = grad
        else:
            node.grad += grad""",
        "cotangent",
    ),
    planted(
        "gradient is copied once, then changed in place",
        "node.grad = grad if node.grad is None else node.grad + grad",
        """if node.grad is None:
            node.grad = grad.copy()
        else:
            node.grad += grad""",
        "cotangent",
    ),
    planted(
        "leaves are skipped",
        "        node.grad = grad if node.grad is None else node.grad + grad\n",
        "        if node.rule is None:\n            continue\n"
        "        node.grad = grad if node.grad is None else node.grad + grad\n",
        *ALL_THAT_WALK,
    ),
    planted(
        "the first leaf ends the loop",
        "        if node.rule is not None:\n",
        "        if node.rule is None:\n            return\n        if True:\n",
        *("backward", "cotangent", "elementwise", "matmul", "softmax"),
    ),
    planted(
        "the loop ends after its first node",
        "                pending[source] = pending[source] + share if source in pending else share\n",
        "                pending[source] = pending[source] + share if source in pending else share\n        return\n",
        *ALL_THAT_WALK,
    ),
    planted(
        "cotangent ignored",
        "pending = {self: np.asarray(gradient, dtype=np.float64)}",
        "pending = {self: np.ones(self.shape)}",
        *("backward", "cotangent", "elementwise", "reductions", "maximum", "ties", "rearranging", "matmul", "softmax"),
        bug="seed_ignored",
    ),
    planted(
        "ones for any output",
        """        if self.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
""",
        "",
        "cotangent",
    ),
    planted("only shape () starts alone", "if self.data.size != 1:", "if self.ndim != 0:", "cotangent"),
    planted(
        "quotient loses its sign",
        "-grad * a.data / b.data**2",
        "grad * a.data / b.data**2",
        "elementwise",
        bug="sign_lost",
    ),
    planted(
        "quotient ignores the cotangent",
        "-grad * a.data / b.data**2",
        "-a.data / b.data**2",
        "elementwise",
    ),
    planted("relu has slope 1 at 0", "(grad * (a.data > 0),)", "(grad * (a.data >= 0),)", "elementwise"),
    planted("relu lets everything through", "(grad * (a.data > 0),)", "(grad,)", "elementwise", bug="relu_mask_lost"),
    planted("kept axis dropped", KEPT_SUM, RETURNED_SUM, "reductions", bug="reduction_expanded_wrongly"),
    planted(
        "axis added although it stayed",
        KEPT_SUM,
        KEPT_SUM.replace(" and not keepdim", ""),
        "reductions",
    ),
    planted(
        "a negative axis is not put back",
        KEPT_SUM,
        KEPT_SUM.replace("np.expand_dims(grad, dim)", "grad.reshape(a.shape[:dim] + (1,) + a.shape[dim + 1 :])"),
        "reductions",
    ),
    planted(
        "an axis is put back in front or behind",
        KEPT_SUM,
        KEPT_SUM.replace("np.expand_dims(grad, dim)", "grad[None] if dim == 0 else grad[..., None]"),
        "reductions",
    ),
    planted(
        "a mean of everything that is never kept",
        "total = sum_over(a, dim, keepdim)",
        "total = sum_over(a, dim, keepdim and dim is not None)",
        "reductions",
    ),
    planted("largest without its axis", KEPT_MAX, RETURNED_MAX, "maximum", "ties"),
    planted(
        "sum shares as a mean does",
        "(np.broadcast_to(grad, a.shape),)",
        "(np.broadcast_to(grad, a.shape) / a.data.size,)",
        "reductions",
        "softmax",
        bug="sum_divided",
    ),
    planted(
        "mean divides by all entries",
        "total / (a.data.size / total.data.size)",
        "total / a.data.size",
        "reductions",
    ),
    planted(
        "largest along axis 1 for any axis",
        LARGEST,
        LARGEST.replace("(dim), dim), 1.0, dim)", "(1), 1), 1.0, 1)"),
        "maximum",
        "ties",
    ),
    planted(
        "axis of the largest added although it stayed",
        KEPT_MAX,
        KEPT_MAX.replace(" and not keepdim", ""),
        "maximum",
    ),
    planted("each tie gets everything", " / (a.data == a.data.max()).sum()", " * 1.0", "ties"),
    planted(
        "ties in a row share",
        LARGEST,
        """        chosen = 1.0 * (a.data == a.data.max(dim, keepdims=True))
        chosen = chosen / chosen.sum(dim, keepdims=True)""",
        "ties",
    ),
    planted(
        "largest of all in place of largest of the row",
        LARGEST,
        """        chosen = 1.0 * (a.data == a.data.max())""",
        "maximum",
        "ties",
    ),
    planted(
        "last of equals",
        LARGEST,
        """        last = a.shape[dim] - 1 - np.flip(a.data, dim).argmax(dim)
        np.put_along_axis(chosen, np.expand_dims(last, dim), 1.0, dim)""",
        "ties",
    ),
    planted(
        "last of equals along axis 0",
        LARGEST,
        """        place = a.shape[0] - 1 - a.data[::-1].argmax(0) if dim == 0 else a.data.argmax(dim)
        np.put_along_axis(chosen, np.expand_dims(place, dim), 1.0, dim)""",
        "ties",
    ),
    planted(
        "transpose not transposed back",
        "(grad.swapaxes(dim0, dim1),)",
        "(grad.reshape(a.shape),)",
        "rearranging",
        bug="transpose_not_undone",
    ),
    planted(
        "reshape not undone", "(grad.reshape(a.shape),)", "(grad,)", "rearranging", "matmul", bug="reshape_not_undone"
    ),
    planted(
        "repeated index overwritten",
        "np.add.at(total, index, grad)",
        "total[index] += grad",
        "rearranging",
        bug="index_overwritten",
    ),
    planted(
        "all calls of the rule of an index fill the same zeros",
        "        total = np.zeros(a.shape)\n        np.add.at(total, index, grad)\n",
        "        total = vars(rule).setdefault('total', np.zeros(a.shape))\n        np.add.at(total, index, grad)\n",
        "rearranging",
    ),
    planted(
        "picked entries are not carried back",
        "np.add.at(total, index, grad)",
        "total.flat[: grad.size] = grad.ravel()",
        *("rearranging", "softmax"),
        bug="index_at_the_front",
    ),
    planted(
        "matrix product not transposed",
        "return grad @ b.data.swapaxes(-1, -2), a.data.swapaxes(-1, -2) @ grad",
        "return grad @ b.data, a.data @ grad",
        "matmul",
        bug="matmul_not_transposed",
    ),
    planted(
        "all axes of a stack reversed",
        "return grad @ b.data.swapaxes(-1, -2), a.data.swapaxes(-1, -2) @ grad",
        "return grad @ b.data.T, a.data.T @ grad",
        "matmul",
    ),
    planted(
        "factors of the matrix product exchanged",
        "return grad @ b.data.swapaxes(-1, -2), a.data.swapaxes(-1, -2) @ grad",
        "return a.data.swapaxes(-1, -2) @ grad, grad @ b.data.swapaxes(-1, -2)",
        "matmul",
        bug="matmul_gradients_exchanged",
    ),
    planted(
        "softmax without coupling",
        "output * (grad - (grad * output).sum(axis=dim, keepdims=True))",
        "grad * output * (1 - output)",
        "softmax",
        bug="softmax_without_coupling",
    ),
    planted(
        "softmax returns zeros",
        "output * (grad - (grad * output).sum(axis=dim, keepdims=True))",
        "0 * grad",
        "softmax",
        bug="softmax_zero",
    ),
    planted(
        "softmax always along the last axis",
        "output * (grad - (grad * output).sum(axis=dim, keepdims=True))",
        "output * (grad - (grad * output).sum(axis=-1, keepdims=True))",
        "softmax",
        bug="softmax_wrong_axis",
    ),
    planted("softmax overflows", "np.exp(a.data - a.data.max(axis=dim, keepdims=True))", "np.exp(a.data)", "softmax"),
    planted(
        "softmax shifted by the largest entry of all rows",
        "np.exp(a.data - a.data.max(axis=dim, keepdims=True))",
        "np.exp(a.data - a.data.max())",
        "softmax",
    ),
    planted(
        "log_softmax overflows",
        "shifted = a.data - a.data.max(axis=dim, keepdims=True)",
        "shifted = a.data",
        "softmax",
    ),
    planted(
        "log_softmax takes the cotangent for 1",
        "grad - np.exp(output) * grad.sum(axis=dim, keepdims=True)",
        "grad - np.exp(output)",
        "softmax",
        bug="log_softmax_gradient_not_summed",
    ),
    planted("1/N lost", "return -chosen.mean()", "return -chosen.sum()", "softmax"),
    planted(
        "1/N lost in the rule only",
        "return -chosen.mean()",
        """probabilities = np.exp(logits.log_softmax(1).data)
    slope = probabilities - np.eye(logits.shape[1])[labels]
    return MiniTensor(-chosen.mean().data, (logits,), "cross_entropy", lambda grad: (grad * slope,))""",
        "softmax",
        bug="cross_entropy_not_averaged",
    ),
    planted(
        "the loss is cut off from the logits",
        "    chosen = logits.log_softmax(1)[np.arange(len(labels)), labels]\n    return -chosen.mean()",
        "    chosen = logits.log_softmax(1).data[np.arange(len(labels)), labels]\n"
        "    return MiniTensor(-chosen.mean())",
        "softmax",
    ),
    planted("loss loses its sign", "return -chosen.mean()", "return chosen.mean()", "softmax"),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some of the mistakes overflow
class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 10
    visible = True
    examples = 15


# name, expression, shapes
EXPRESSIONS = [
    ("stretched", lambda a, b: (a * b - a / b) ** 2, [(3, 1), (4,)]),
    ("reversed", lambda a: 1 - (2 / a - 3 * a), [(2, 3)]),
    ("elementwise", lambda a: (a.log().tanh() + a.exp()).relu(), [(2, 3)]),
    ("reductions", lambda a: a.sum(0) * a.mean(1, keepdim=True) + a.max(), [(3, 3)]),
    ("rearranged", lambda a: a.reshape(2, 6).T[[0, 5, 5]].transpose(0, 1), [(3, 4)]),
    ("stacks", lambda a, b: (a @ b).tanh() @ b.T, [(2, 3, 4), (4, 5)]),
    ("vectors", lambda a, b: (a @ b) * a, [(3,), (3, 3)]),
    ("probabilities", lambda a: a.softmax(1) * a.log_softmax(0), [(3, 4)]),
]


@pytest.mark.parametrize("style", ["", *styles(LESSON)], ids=lambda style: style or "solution")
@pytest.mark.parametrize(("expression", "shapes"), [e[1:] for e in EXPRESSIONS], ids=[e[0] for e in EXPRESSIONS])
def test_engine_beside_pytorch(style: str, expression: Any, shapes: list[tuple[int, ...]]) -> None:
    engine = solved(LESSON, style)["MiniTensor"]
    generator = np.random.default_rng(1)
    arrays = [generator.uniform(0.5, 2.0, shape) for shape in shapes]
    ours: list[Any] = [engine(array) for array in arrays]
    theirs: list[Any] = [torch.tensor(array, requires_grad=True) for array in arrays]
    output, right = expression(*ours), expression(*theirs)
    np.testing.assert_allclose(output.data, right.detach().numpy(), rtol=1e-12, atol=1e-14)
    for cotangent in generator.normal(size=(2, *right.shape)):
        expression(*ours).backward(cotangent)
        expression(*theirs).backward(torch.tensor(cotangent))
    for tensor, other in zip(ours, theirs, strict=True):
        assert tensor.grad.shape == tensor.shape
        np.testing.assert_allclose(tensor.grad, other.grad.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("style", ["", *styles(LESSON)], ids=lambda style: style or "solution")
def test_classifier_has_the_curve_of_pytorch(style: str) -> None:
    names = solved(LESSON, style)
    with np.load(DATA / "digits.npz") as file:
        pixels, labels = file["images"][:100].reshape(100, 64) / 16, file["labels"][:100].astype(int)
    weights, bias = names["MiniTensor"](np.zeros((64, 10))), names["MiniTensor"](np.zeros(10))
    their_weights, their_bias = (torch.zeros(s, dtype=torch.float64, requires_grad=True) for s in ((64, 10), (10,)))
    optimizer = torch.optim.SGD([their_weights, their_bias], lr=0.5)
    for _ in range(20):
        loss = names["cross_entropy"](pixels @ weights + bias, labels)
        weights.grad = bias.grad = None
        loss.backward()
        weights.data, bias.data = weights.data - 0.5 * weights.grad, bias.data - 0.5 * bias.grad
        their_loss = torch.nn.functional.cross_entropy(
            torch.tensor(pixels) @ their_weights + their_bias, torch.tensor(labels)
        )
        optimizer.zero_grad()
        their_loss.backward()
        optimizer.step()
        assert loss.item() == pytest.approx(their_loss.item(), abs=1e-12)
    assert loss.item() < 1.5


def test_digits_are_what_their_script_makes() -> None:
    images, labels = runpy.run_path(str(DATA / "make_digits.py"))["digits"]()
    with np.load(DATA / "digits.npz") as file:
        assert np.array_equal(file["images"], images)
        assert np.array_equal(file["labels"], labels)
    assert images.shape == (800, 8, 8)
    assert np.array_equal(np.bincount(labels), [80] * 10)
