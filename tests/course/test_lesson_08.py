"""Plants classic mistakes in the solutions of lesson 08: each costs points where it was made, and on no other cell.

The engine is finished here, so the whole of it is tried as well, in every style: it trains two networks like PyTorch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, Planted, solved, styles

LESSON = "08_custom_functions"
DIGITS = Path(__file__).parents[2] / "course" / "data" / "digits.npz"

PLANTED = [
    Planted(
        "the gradient of data is computed all the same",
        "",
        "for_x = grad @ w.T if needs_x else None",
        "for_x = grad @ w.T",
        ("test_linear",),
    ),
    Planted(
        "the weights are not transposed",
        "",
        "for_x = grad @ w.T if needs_x else None",
        "for_x = grad @ w if needs_x else None",
        ("test_linear",),
    ),
    Planted(
        "the offset gets the mean over the rows",
        "",
        "grad.sum(axis=0) if needs_b",
        "grad.mean(axis=0) if needs_b",
        ("test_linear",),
    ),
    Planted(
        "the condition of w is turned around",
        "",
        "for_w = x.T @ grad if needs_w else None",
        "for_w = x.T @ grad if not needs_w else None",
        ("test_linear",),
    ),
    Planted(
        "b never gets a gradient",
        "",
        "for_b = grad.sum(axis=0) if needs_b else None",
        "for_b = None",
        ("test_linear",),
    ),
    Planted("the offset gets nothing", "", "return for_x, for_w, for_b", "return for_x, for_w", ("test_linear",)),
    Planted(
        "the rule of linear returns a list",
        "",
        "return for_x, for_w, for_b",
        "return [for_x, for_w, for_b]",
        ("test_linear",),
    ),
    Planted(
        "the rule of linear returns nothing",
        "",
        "return for_x, for_w, for_b",
        "shares = for_x, for_w, for_b",
        ("test_linear",),
    ),
    Planted(
        "the gradients of x and w change places",
        "",
        "return for_x, for_w, for_b",
        "return for_w, for_x, for_b",
        ("test_linear",),
    ),
    Planted(
        "the offset gets the number of rows",
        "",
        "grad.sum(axis=0) if needs_b",
        "np.full(grad.shape[1], len(grad)) if needs_b",
        ("test_linear",),
    ),
    Planted(
        "the class keeps what the rule of linear needs",
        "",
        "        ctx.save_for_backward(x, w)\n        return x @ w + b\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n        x, w = ctx.saved_tensors\n",
        "        Linear.x, Linear.w = x, w\n        return x @ w + b\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n        x, w = Linear.x, Linear.w\n",
        ("test_linear",),
    ),
    Planted(
        "the table is that of the first input",
        "",
        "    x, columns = twins[number], []",
        "    x, columns = twins[0], []",
        ("test_jacobians", "test_gradcheck"),
    ),
    Planted(
        "the table is found by differences",
        "",
        "    return np.array(columns).T\n    ### END SOLUTION",
        "    return numerical_jacobian(function, inputs, number)\n    ### END SOLUTION",
        ("test_jacobians", "test_gradcheck"),
    ),
    Planted(
        "abs has slope 1 everywhere",
        "",
        "        return grad * sign\n",
        "        return grad\n",
        ("test_abs",),
    ),
    Planted(
        "b asks for the flag of w",
        "",
        "grad.sum(axis=0) if needs_b",
        "grad.sum(axis=0) if needs_w",
        ("test_linear",),
    ),
    Planted(
        "one 0 makes every gradient 0",
        "",
        "        return grad * sign",
        "        return grad * sign * np.all(sign != 0)",
        ("test_abs",),
    ),
    Planted(
        "the gradient is quantized, too",
        "",
        "        return grad\n        ### END SOLUTION",
        "        return np.round(grad * 2) / 2\n        ### END SOLUTION",
        ("test_quantize",),
    ),
    Planted(
        "abs ignores the incoming gradient",
        "upstream_ignored",
        "        return grad * sign\n",
        "        return sign\n",
        ("test_abs",),
    ),
    Planted(
        "abs has slope 1 at 0",
        "",
        "ctx.save_for_backward(np.sign(a))",
        "ctx.save_for_backward(np.where(a < 0, -1.0, 1.0))",
        ("test_abs",),
    ),
    Planted(
        "abs keeps the sign in its class",
        "",
        "ctx.save_for_backward(np.sign(a))\n        return np.abs(a)\n        ### END SOLUTION\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n        (sign,) = ctx.saved_tensors\n",
        "Abs.sign = np.sign(a)\n        return np.abs(a)\n        ### END SOLUTION\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n        sign = Abs.sign\n",
        ("test_abs",),
    ),
    Planted(
        "what abs has saved is not unpacked",
        "",
        "        (sign,) = ctx.saved_tensors\n",
        "        sign = ctx.saved_tensors\n",
        ("test_abs",),
    ),
    Planted(
        "log-sum-exp keeps the softmax in its class",
        "",
        "        ctx.save_for_backward(np.exp(a - output))\n        ctx.dim = dim\n"
        "        return output.squeeze(axis=dim)\n        ### END SOLUTION\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n        (softmax,) = ctx.saved_tensors\n",
        "        LogSumExp.softmax = np.exp(a - output)\n        ctx.dim = dim\n"
        "        return output.squeeze(axis=dim)\n        ### END SOLUTION\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n        softmax = LogSumExp.softmax\n",
        ("test_logsumexp",),
    ),
    Planted(
        "log-sum-exp keeps the dimension in its class",
        "",
        "        ctx.dim = dim\n        return output.squeeze(axis=dim)",
        "        LogSumExp.dim = dim\n        return output.squeeze(axis=dim)",
        ("test_logsumexp",),
    ),
    Planted(
        "the rule is that of log_softmax",
        "",
        "return np.expand_dims(grad, ctx.dim) * softmax",
        "g = np.expand_dims(grad, ctx.dim)\n        return g - softmax * g.sum(axis=ctx.dim, keepdims=True)",
        ("test_logsumexp", "test_gradcheck"),
    ),
    Planted(
        "the rule writes into the softmax that is saved",
        "",
        "        return np.expand_dims(grad, ctx.dim) * softmax",
        "        softmax *= np.expand_dims(grad, ctx.dim)\n        return softmax",
        ("test_logsumexp", "test_gradcheck"),
    ),
    Planted(
        "every dimension of size 1 disappears",
        "",
        "        return output.squeeze(axis=dim)",
        "        return output.squeeze()",
        ("test_logsumexp",),
    ),
    Planted(
        "an axis that is counted from the end is taken as counted from the front",
        "",
        "        ctx.dim = dim\n        return output.squeeze(axis=dim)",
        "        ctx.dim = abs(dim)\n        return output.squeeze(axis=dim)",
        ("test_logsumexp",),
    ),
    Planted(
        "the rows are meant",
        "",
        "        largest = a.max(axis=dim, keepdims=True)\n",
        "        dim = 1\n        largest = a.max(axis=dim, keepdims=True)\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the largest entry is not subtracted",
        "",
        "        largest = a.max(axis=dim, keepdims=True)\n",
        "        largest = 0.0 * a.max(axis=dim, keepdims=True)\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the first entry is subtracted",
        "",
        "        largest = a.max(axis=dim, keepdims=True)\n",
        "        largest = np.take(a, [0], axis=dim)\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the dimension stays",
        "",
        "        return output.squeeze(axis=dim)\n        ### END SOLUTION\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n        (softmax,) = ctx.saved_tensors\n"
        "        return np.expand_dims(grad, ctx.dim) * softmax",
        "        return output\n        ### END SOLUTION\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n        (softmax,) = ctx.saved_tensors\n"
        "        return grad * softmax",
        ("test_logsumexp",),
    ),
    Planted(
        "the largest entry of all is subtracted",
        "",
        "        largest = a.max(axis=dim, keepdims=True)\n",
        "        largest = a.max() + 0.0 * a.max(axis=dim, keepdims=True)\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the largest entry is not added again",
        "",
        "        output = largest + np.log(",
        "        output = np.log(",
        ("test_logsumexp", "test_gradcheck"),
    ),
    Planted(
        "the rule is not the softmax but the exponential",
        "",
        "ctx.save_for_backward(np.exp(a - output))",
        "ctx.save_for_backward(np.exp(a - largest))",
        ("test_logsumexp", "test_gradcheck"),
    ),
    Planted(
        "the dimension is always the last",
        "",
        "return np.expand_dims(grad, ctx.dim) * softmax",
        "return np.expand_dims(grad, -1) * softmax",
        ("test_logsumexp", "test_gradcheck"),
    ),
    Planted(
        "the table is not returned",
        "",
        "    return np.array(columns).T\n    ### END SOLUTION",
        "    table = np.array(columns).T\n    ### END SOLUTION",
        ("test_jacobians", "test_gradcheck"),
    ),
    Planted(
        "the table is turned around",
        "",
        "    return np.array(columns).T",
        "    return np.array(columns)",
        ("test_jacobians", "test_gradcheck"),
    ),
    Planted(
        "the inputs themselves get the gradients",
        "",
        "    twins = [MiniTensor(x.data, requires_grad=x.requires_grad) for x in inputs]\n",
        "    twins = inputs\n",
        ("test_jacobians", "test_gradcheck"),
    ),
    Planted(
        "a gradient that was None is zeros afterward",
        "",
        "    return np.array(columns).T\n    ### END SOLUTION",
        "    for tensor in inputs:\n        if tensor.grad is None:\n"
        "            tensor.grad = MiniTensor(np.zeros(tensor.shape))\n"
        "    return np.array(columns).T\n    ### END SOLUTION",
        ("test_jacobians",),
    ),
    Planted(
        "gradients add up from column to column",
        "",
        "        x.grad = None\n        output.backward",
        "        output.backward",
        ("test_jacobians", "test_gradcheck"),
    ),
    Planted(
        "where nothing arrives there is no column",
        "",
        "np.zeros(x.data.size) if x.grad is None else x.grad",
        "x.grad",
        ("test_jacobians",),
    ),
    Planted(
        "all outputs at once",
        "",
        "        cotangent = np.zeros(output.shape)\n",
        "        cotangent = np.ones(output.shape)\n",
        ("test_jacobians", "test_gradcheck"),
    ),
    Planted(
        "the step of the argument is not used",
        "",
        "numerical_jacobian(function, inputs, number, eps)",
        "numerical_jacobian(function, inputs, number)",
        ("test_gradcheck",),
    ),
    Planted(
        "the tables are not shown",
        "",
        'raise GradcheckError(f"Jacobian mismatch {place},\\n{tables}")',
        'raise GradcheckError(f"Jacobian mismatch {place}")',
        ("test_gradcheck",),
    ),
    Planted(
        "a disagreement is returned, not raised",
        "",
        "            raise GradcheckError(f",
        "            return str(f",
        ("test_gradcheck",),
    ),
    Planted(
        "NaN agrees",
        "",
        "        if not np.allclose(analytical, numerical, rtol=rtol, atol=atol):",
        "        if (np.abs(analytical - numerical) > atol + rtol * np.abs(numerical)).any():",
        ("test_gradcheck",),
    ),
    Planted(
        "a wrong entry is averaged away",
        "",
        "if not np.allclose(analytical, numerical, rtol=rtol, atol=atol):",
        "if not np.allclose(analytical.mean(), numerical.mean(), rtol=rtol, atol=atol):",
        ("test_gradcheck",),
    ),
    Planted(
        "the tolerances are ignored",
        "",
        "np.allclose(analytical, numerical, rtol=rtol, atol=atol)",
        "np.allclose(analytical, numerical, rtol=1e-3, atol=1e-5)",
        ("test_gradcheck",),
    ),
    Planted(
        "the tolerance is a part of the analytical number",
        "",
        "np.allclose(analytical, numerical, rtol=rtol, atol=atol)",
        "np.allclose(numerical, analytical, rtol=rtol, atol=atol)",
        ("test_gradcheck",),
    ),
    Planted(
        "the tolerances change places",
        "",
        "np.allclose(analytical, numerical, rtol=rtol, atol=atol)",
        "np.allclose(analytical, numerical, atol, rtol)",
        ("test_gradcheck",),
    ),
    Planted(
        "analytical numbers that are too small agree",
        "",
        "if not np.allclose(analytical, numerical, rtol=rtol, atol=atol):",
        "if not ((analytical - numerical) <= atol + rtol * np.abs(numerical)).all():",
        ("test_gradcheck",),
    ),
    Planted(
        "analytical numbers that are too large agree",
        "",
        "if not np.allclose(analytical, numerical, rtol=rtol, atol=atol):",
        "if not ((numerical - analytical) <= atol + rtol * np.abs(numerical)).all():",
        ("test_gradcheck",),
    ),
    Planted(
        "nothing is allowed for a negative slope",
        "",
        "if not np.allclose(analytical, numerical, rtol=rtol, atol=atol):",
        "if not (np.abs(analytical - numerical) <= atol + rtol * numerical).all():",
        ("test_gradcheck",),
    ),
    Planted(
        "only the absolute tolerance is used",
        "",
        "np.allclose(analytical, numerical, rtol=rtol, atol=atol)",
        "np.allclose(analytical, numerical, rtol=1e-3, atol=atol)",
        ("test_gradcheck",),
    ),
    Planted(
        "the larger of the two tolerances is used",
        "",
        "if not np.allclose(analytical, numerical, rtol=rtol, atol=atol):",
        "if not (np.abs(analytical - numerical) <= np.maximum(atol, rtol * np.abs(numerical))).all():",
        ("test_gradcheck",),
    ),
    Planted(
        "fixed inputs are checked too",
        "",
        "    for number in checked:\n        numerical = numerical_jacobian(function, inputs, number, eps)\n",
        "    for number in range(len(inputs)):\n"
        "        numerical = numerical_jacobian(function, inputs, number, eps)\n"
        "        inputs = [MiniTensor(x.data, requires_grad=True) for x in inputs]\n",
        ("test_gradcheck",),
    ),
    Planted(
        "only the first input is checked",
        "",
        "    for number in checked:\n",
        "    for number in [number for number in checked if number == 0]:\n",
        ("test_gradcheck",),
    ),
    Planted(
        "the last input is named first",
        "",
        "    for number in checked:\n",
        "    for number in reversed(checked):\n",
        ("test_gradcheck",),
    ),
    Planted(
        "nothing to check counts as a pass",
        "",
        "    if not checked:\n        raise",
        "    if False:\n        raise",
        ("test_gradcheck",),
    ),
    Planted(
        "rounding down",
        "",
        "        return np.round(a / step) * step\n",
        "        return np.floor(a / step) * step\n",
        ("test_quantize",),
    ),
    Planted(
        "the step is always 0.5",
        "",
        "        return np.round(a / step) * step\n",
        "        return np.round(a / 0.5) * 0.5\n",
        ("test_quantize",),
    ),
    Planted(
        "rounding to whole numbers",
        "",
        "        return np.round(a / step) * step\n",
        "        return np.round(a)\n",
        ("test_quantize",),
    ),
    Planted(
        "the gradient of rounding is clipped",
        "",
        "    def backward(ctx, grad):\n        return grad\n\n    ### END",
        "    def backward(ctx, grad):\n        return np.clip(grad, -100, 100)\n\n    ### END",
        ("test_quantize",),
    ),
    Planted(
        "the true derivative of rounding",
        "",
        "    def backward(ctx, grad):\n        return grad\n\n    ### END",
        "    def backward(ctx, grad):\n        return 0 * grad\n\n    ### END",
        ("test_quantize",),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 6
    visible = True
    examples = 20


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def trained_by_torch(points: Any, labels: Any, arrays: Any, lr: float, momentum: float, steps: int) -> Any:
    parameters = [torch.tensor(array, requires_grad=True) for array in arrays]
    optimizer = torch.optim.SGD(parameters, lr=lr, momentum=momentum)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        h = torch.tensor(points)
        for w, b in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
            h = torch.tanh(h @ w + b)
        loss = torch.nn.functional.cross_entropy(h @ parameters[-2] + parameters[-1], torch.tensor(labels))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_the_engine_learns_two_moons_like_pytorch(engine: dict[str, Any]) -> None:
    points, labels = engine["two_moons"](100, seed=3)
    arrays = engine["starting_weights"]((2, 16, 2), seed=4)
    settings: Any = {"lr": 0.2, "momentum": 0.9, "steps": 200}
    parameters, losses = engine["train"](points, labels, arrays, **settings)
    np.testing.assert_allclose(losses, trained_by_torch(points, labels, arrays, **settings), rtol=1e-9)
    answers = engine["logits"](engine["MiniTensor"](points), parameters).data.argmax(axis=1)
    assert (answers == labels).mean() > 0.95


def test_the_engine_learns_digits_like_pytorch(engine: dict[str, Any]) -> None:
    with np.load(DIGITS) as file:
        pixels, labels = file["images"].reshape(-1, 64) / 16.0, file["labels"].astype(int)
    arrays = [0.01 * np.random.default_rng(5).normal(size=(64, 10)), np.zeros(10)]
    settings: Any = {"lr": 0.5, "momentum": 0.9, "steps": 100}
    parameters, losses = engine["train"](pixels[:600], labels[:600], arrays, **settings)
    np.testing.assert_allclose(losses, trained_by_torch(pixels[:600], labels[:600], arrays, **settings), rtol=1e-9)
    answers = engine["logits"](engine["MiniTensor"](pixels[600:]), parameters).data.argmax(axis=1)
    assert (answers == labels[600:]).mean() > 0.9


def test_gradcheck_agrees_with_pytorch_about_every_operation(engine: dict[str, Any]) -> None:
    generator = np.random.default_rng(6)
    for expression in (
        lambda a, b: (a @ b).tanh() / 3,
        lambda a, b: (a * 2 - b.T).abs(),
        lambda a, b: a.logsumexp(dim=1) * b.exp().sum(dim=0),
        lambda a, b: (a[1] * b[:, 0]).log_softmax(0).mean(),
    ):
        arrays = generator.normal(size=(3, 2)), generator.normal(size=(2, 3))
        inputs = [engine["MiniTensor"](array, requires_grad=True) for array in arrays]
        assert engine["gradcheck"](expression, tuple(inputs))
        assert torch.autograd.gradcheck(expression, [torch.tensor(array, requires_grad=True) for array in arrays])
