"""Plants classic mistakes in the solutions of lesson 10: each costs points where it was made, and where it spreads to.

Also compares the second derivatives of every operation with PyTorch's, in every style, and trains with
recorded gradients.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from autograder.notebooks.regions import without_hidden_tests
from autograder.runs.context import check_context
from tests.course.planting import LessonTests, Planted, cells_that_define, solved, styles

LESSON = "10_higher_order_and_hooks"
LATER = ("test_walk", "test_grad", "test_logsumexp")  # cells to which a wrong part of the walk spreads

PLANTED = [
    Planted(
        "saved values come back as constants",
        "",
        "                tensor.requires_grad, tensor.grad_fn = True, source\n",
        "                pass\n",
        ("test_reconnected", "test_walk", "test_grad", "test_logsumexp"),
    ),
    Planted(
        "input 0 counts as no input",
        "",
        "            elif note.source is not None:\n",
        "            elif note.source:\n",
        ("test_reconnected", "test_walk", "test_grad", "test_logsumexp"),
    ),
    Planted(
        "the output is a constant",
        "",
        '            if note.source == "output":\n                source = node\n',
        '            if note.source == "output":\n                source = None\n',
        ("test_reconnected", "test_walk", "test_grad", "test_logsumexp"),
    ),
    Planted(
        "the new tensors have counters of their own",
        "",
        "            tensor._counter = note.counter\n",
        "",
        ("test_reconnected", "test_walk"),
    ),
    Planted(
        "the node loses what it had saved",
        "",
        "        tensors.append(tensor)\n    return tuple(tensors)",
        "        tensors.append(tensor)\n    node.saved = ()\n    return tuple(tensors)",
        ("test_reconnected", "test_walk", "test_grad", "test_logsumexp"),
    ),
    Planted(
        "None becomes a tensor",
        "",
        "        tensor = None if value is None else MiniTensor(value)\n",
        "        tensor = MiniTensor(value)\n",
        ("test_reconnected",),
    ),
    Planted(
        "the place among the saved values counts as the input",
        "",
        "                source, _ = node.next_functions[note.source]\n",
        "                source, _ = node.next_functions[len(tensors)]\n",
        ("test_reconnected",),
    ),
    Planted(
        "create_graph sends arrays",
        "",
        "    pending = {root: cotangent if create_graph else cotangent.data}\n",
        "    pending = {root: cotangent.data}\n",
        LATER,
    ),
    Planted(
        "the mode of the caller decides",
        "",
        "    with set_grad_enabled(create_graph):\n",
        "    with set_grad_enabled(is_grad_enabled()):\n",
        ("test_walk",),
    ),
    Planted(
        "recording is always on",
        "",
        "    with set_grad_enabled(create_graph):\n",
        "    with enable_grad():\n",
        ("test_walk",),
    ),
    Planted(
        "hooks are not called",
        "",
        "            grad = after_hooks(node, grad)\n            retained",
        "            retained",
        ("test_walk",),
    ),
    Planted(
        "what was retained is from before the hooks",
        "",
        "            grad = after_hooks(node, grad)\n            retained(node, grad)\n",
        "            retained(node, grad)\n            grad = after_hooks(node, grad)\n",
        ("test_walk",),
    ),
    Planted(
        "retain_grad is forgotten",
        "",
        "            retained(node, grad)\n            if node in wanted",
        "            if node in wanted",
        ("test_walk",),
    ),
    Planted(
        "retain_grad is forgotten at nodes that do not work",
        "",
        "            retained(node, grad)\n            if node in wanted",
        "            if works:\n                retained(node, grad)\n            if node in wanted",
        ("test_walk",),
    ),
    Planted(
        "nodes that do not work are freed too",
        "",
        "            if not works:\n                continue\n            ### END",
        "            if not works:\n                retain_graph or node.release()\n                continue\n"
        "            ### END",
        ("test_walk", "test_grad"),
    ),
    Planted(
        "grad fills .grad",
        "",
        "            if not works:\n                continue\n            ### END",
        "            ### END",
        ("test_walk", "test_grad"),
    ),
    Planted(
        "nothing is freed",
        "",
        "            if not retain_graph:\n                node.release()\n",
        "",
        ("test_walk", "test_grad"),
    ),
    Planted(
        "create_graph keeps the graph in the walk too",
        "",
        "            if not retain_graph:\n                node.release()\n",
        "            if not retain_graph and not create_graph:\n                node.release()\n",
        ("test_walk", "test_grad"),
    ),
    Planted(
        "what should be kept is freed, and the other way round",
        "",
        "            if not retain_graph:\n                node.release()\n",
        "            if retain_graph:\n                node.release()\n",
        ("test_walk", "test_grad", "test_logsumexp"),
    ),
    Planted(
        "rules get MiniTensors without create_graph too",
        "",
        "            shares = shares_of(node, grad)\n",
        "            shares = shares_of(node, as_tensor(grad))\n",
        ("test_walk",),
    ),
    Planted(
        "everything is freed",
        "",
        "            if not retain_graph:\n                node.release()\n",
        "            node.release()\n",
        ("test_walk", "test_grad", "test_logsumexp"),
    ),
    Planted(
        "the second contribution replaces the first",
        "assigned_not_accumulated",
        "pending[source] = pending[source] + share if source in pending else share\n            ### END",
        "pending[source] = share\n            ### END",
        LATER,
    ),
    Planted(
        "what has arrived is sent on in place of the share",
        "",
        "pending[source] = pending[source] + share if source in pending else share\n            ### END",
        "pending[source] = pending[source] + grad if source in pending else grad\n            ### END",
        LATER,
    ),
    Planted(
        "what has arrived is added in place of the second share",
        "",
        "pending[source] = pending[source] + share if source in pending else share\n            ### END",
        "pending[source] = pending[source] + grad if source in pending else share\n            ### END",
        LATER,
    ),
    Planted(
        "the first share for a node gets lost",
        "",
        "                    pending[source] = pending[source] + share if source in pending else share\n",
        "                    if source in pending:\n"
        "                        pending[source] = pending[source] + share\n",
        (*LATER, "test_clip"),
    ),
    Planted(
        "each rule gets the first cotangent",
        "",
        "            shares = shares_of(node, grad)\n",
        "            shares = shares_of(node, cotangent if create_graph else cotangent.data)\n",
        LATER,
    ),
    Planted(
        "a share of None ends the loop",
        "",
        "                if share is not None:\n",
        "                if share is None:\n                    break\n                if True:\n",
        LATER,
    ),
    Planted(
        "None is sent along an edge",
        "",
        "                if share is not None:\n",
        "                if source is not None:\n",
        ("test_walk",),
    ),
    Planted(
        "the result has no history",
        "",
        "found[node] = as_tensor(grad)",
        "found[node] = MiniTensor(as_tensor(grad).data)",
        ("test_walk", "test_grad", "test_logsumexp"),
    ),
    Planted(
        "the result is made from an array or a MiniTensor",
        "",
        "found[node] = as_tensor(grad)",
        "found[node] = MiniTensor(grad)",
        ("test_walk", "test_grad", "test_logsumexp"),
    ),
    Planted(
        "a second contribution is added in place",
        "",
        "                    pending[source] = pending[source] + share if source in pending else share\n",
        "                    if source in pending:\n                        pending[source] += share\n"
        "                    else:\n                        pending[source] = share\n",
        ("test_walk",),
    ),
    Planted(
        "the walk ends at a wanted node",
        "",
        "                found[node] = as_tensor(grad)\n",
        "                found[node] = as_tensor(grad)\n                continue\n",
        ("test_walk", "test_grad"),
    ),
    Planted(
        "only nodes that do not work are in the result",
        "",
        "            if node in wanted:\n                found[node] = as_tensor(grad)\n            if not works:\n"
        "                continue\n",
        "            if not works:\n                found[node] = as_tensor(grad)\n                continue\n",
        ("test_walk", "test_grad"),
    ),
    Planted(
        "the cotangent of grad is ignored",
        "",
        "cotangent_of(outputs, grad_outputs), [edge",
        "cotangent_of(outputs, np.ones(outputs.shape)), [edge",
        ("test_grad",),
    ),
    Planted(
        "the cotangent of grad has no history",
        "",
        "cotangent_of(outputs, grad_outputs), [edge",
        "MiniTensor(cotangent_of(outputs, grad_outputs).data), [edge",
        ("test_grad",),
    ),
    Planted(
        "grad_fn in place of the nodes that inputs lead to",
        "",
        "[edge_to(x)[0] for x in inputs]\n    found = walk",
        "[x.grad_fn for x in inputs]\n    found = walk",
        ("test_grad", "test_logsumexp"),
    ),
    Planted(
        "the error of grad names another input",
        "",
        "at index {number} appears",
        "at index {len(wanted)} appears",
        ("test_grad",),
    ),
    Planted(
        "the result is from before the hooks",
        "",
        "            grad = after_hooks(node, grad)\n            retained(node, grad)\n            if node in wanted:\n"
        "                found[node] = as_tensor(grad)\n",
        "            if node in wanted:\n                found[node] = as_tensor(grad)\n"
        "            grad = after_hooks(node, grad)\n            retained(node, grad)\n",
        ("test_walk",),
    ),
    Planted(
        "the walk of grad begins at grad_fn",
        "",
        "walk_back(edge_to(outputs)[0], cotangent,",
        "walk_back(outputs.grad_fn, cotangent,",
        ("test_grad",),
    ),
    Planted(
        "a cotangent is made up for many numbers",
        "",
        "cotangent_of(outputs, grad_outputs), [edge",
        "as_tensor(np.ones(outputs.shape) if grad_outputs is None else grad_outputs), [edge",
        ("test_grad",),
    ),
    Planted(
        "create_graph does not keep the graph",
        "",
        "    retain_graph = create_graph if retain_graph is None else retain_graph\n",
        "    retain_graph = bool(retain_graph)\n",
        ("test_grad", "test_logsumexp"),
    ),
    Planted(
        "create_graph overrules retain_graph",
        "",
        "    retain_graph = create_graph if retain_graph is None else retain_graph\n",
        "    retain_graph = create_graph or retain_graph\n",
        ("test_grad",),
    ),
    Planted(
        "an input that was not used is None without a word",
        "",
        "        if node not in found and not allow_unused:\n",
        "        if False:\n",
        ("test_grad",),
    ),
    Planted(
        "an unused input is zero",
        "",
        "    return tuple(found.get(node) for node in wanted)\n",
        "    return tuple(found.get(n, MiniTensor(np.zeros(x.shape))) for n, x in zip(wanted, inputs))\n",
        ("test_grad",),
    ),
    Planted(
        "gradients in the order of the walk",
        "",
        "    return tuple(found.get(node) for node in wanted)\n",
        "    return tuple([*found.values(), *[None for node in wanted if node not in found]])\n",
        ("test_grad",),
    ),
    Planted(
        "hvp of a linear function is an array",
        "",
        "    return MiniTensor(np.zeros(x.shape)) if product is None else product",
        "    return np.zeros(x.shape) if product is None else product",
        ("test_grad",),
    ),
    Planted(
        "hvp clears .grad",
        "",
        "    (slope,) = grad(function(x), x, create_graph=True)\n    product = None\n",
        "    x.grad = None\n    function(x).backward(create_graph=True)\n"
        "    slope, x.grad = x.grad, None\n    product = None\n",
        ("test_grad",),
    ),
    Planted(
        "hvp without the direction",
        "",
        "grad((slope * v).sum(), x, allow_unused=True)",
        "grad(slope.sum(), x, allow_unused=True)",
        ("test_grad", "test_logsumexp"),
    ),
    Planted(
        "hvp multiplies by the direction with @",
        "",
        "grad((slope * v).sum(), x, allow_unused=True)",
        "grad(slope @ v, x, allow_unused=True)",
        ("test_grad", "test_logsumexp"),
    ),
    Planted(
        "hvp multiplies by the direction too late",
        "",
        "        (product,) = grad((slope * v).sum(), x, allow_unused=True)\n"
        "    return MiniTensor(np.zeros(x.shape)) if product is None else product\n",
        "        (product,) = grad(slope.sum(), x, allow_unused=True)\n"
        "    return MiniTensor(np.zeros(x.shape)) if product is None else product * v\n",
        ("test_grad", "test_logsumexp"),
    ),
    Planted(
        "hvp keeps the graph in place of recording",
        "",
        "    (slope,) = grad(function(x), x, create_graph=True)\n    product = None\n",
        "    (slope,) = grad(function(x), x, retain_graph=True)\n    product = None\n",
        ("test_grad", "test_logsumexp"),
    ),
    Planted(
        "hvp fails where the gradient depends on something else",
        "",
        "grad((slope * v).sum(), x, allow_unused=True)",
        "grad((slope * v).sum(), x)",
        ("test_grad",),
    ),
    Planted(
        "hvp refuses a vector that is a MiniTensor",
        "",
        "grad((slope * v).sum(), x, allow_unused=True)",
        "grad((slope * MiniTensor(v)).sum(), x, allow_unused=True)",
        ("test_grad",),
    ),
    Planted(
        "the zeros of hvp have the shape of a MiniTensor that NumPy does not see",
        "",
        "    return MiniTensor(np.zeros(x.shape)) if product is None else product",
        "    return MiniTensor(np.zeros_like(v, dtype=float)) if product is None else product",
        ("test_grad",),
    ),
    Planted(
        "hvp of a linear function is one zero",
        "",
        "    return MiniTensor(np.zeros(x.shape)) if product is None else product",
        "    return MiniTensor(0.0) if product is None else product",
        ("test_grad",),
    ),
    Planted(
        "hvp keeps the graph and does not ask for a history",
        "",
        "    (slope,) = grad(function(x), x, create_graph=True)\n    product = None\n    if slope.requires_grad:\n"
        "        (product,)",
        "    (slope,) = grad(function(x), x, retain_graph=True)\n    product = None\n    if True:\n        (product,)",
        ("test_grad", "test_logsumexp"),
    ),
    Planted(
        "hvp of a linear function fails",
        "",
        "    if slope.requires_grad:\n        (product,)",
        "    if True:\n        (product,)",
        ("test_grad",),
    ),
    Planted(
        "hvp builds the Hessian row by row",
        "",
        "        (product,) = grad((slope * v).sum(), x, allow_unused=True)\n",
        "        product, entries = MiniTensor(np.zeros(x.shape)), slope.reshape(-1)\n"
        "        for number, weight in enumerate(as_tensor(v).data.reshape(-1)):\n"
        "            (row,) = grad(entries[number], x, retain_graph=True, allow_unused=True)\n"
        "            product = product if row is None else product + row * weight\n",
        ("test_grad",),
    ),
    Planted(
        "hvp swallows errors of the function",
        "",
        "    (slope,) = grad(function(x), x, create_graph=True)\n",
        "    try:\n        (slope,) = grad(function(x), x, create_graph=True)\n"
        "    except RuntimeError:\n        return MiniTensor(np.zeros(x.shape))\n",
        ("test_grad",),
    ),
    Planted(
        "the shape is kept on the class",
        "",
        "        ctx.kept = output.shape\n",
        "        SmoothLogSumExp.kept = output.shape\n",
        ("test_logsumexp",),
    ),
    Planted(
        "forward returns nothing",
        "",
        "        ctx.save_for_backward(a, output)\n        return output\n",
        "        ctx.save_for_backward(a, output)\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the softmax is saved, and used",
        "",
        "        ctx.save_for_backward(a, output)\n        return output\n        ### END SOLUTION\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n"
        "        a, output = ctx.saved_tensors\n"
        "        softmax = applied(Exp, a - output.reshape(ctx.kept))\n",
        "        ctx.save_for_backward(np.exp(a - output.reshape(ctx.kept)))\n        return output\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n"
        "        (softmax,) = ctx.saved_tensors\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the output is an attribute of ctx",
        "",
        "        ctx.save_for_backward(a, output)\n        return output\n        ### END SOLUTION\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n"
        "        a, output = ctx.saved_tensors\n",
        "        ctx.output = output\n        ctx.save_for_backward(a)\n        return output\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n"
        "        (a,), output = ctx.saved_tensors, ctx.output\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the input is an attribute of ctx",
        "",
        "        ctx.save_for_backward(a, output)\n        return output\n        ### END SOLUTION\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n"
        "        a, output = ctx.saved_tensors\n",
        "        ctx.a = a\n        ctx.save_for_backward(output)\n        return output\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n"
        "        a, (output,) = ctx.a, ctx.saved_tensors\n",
        ("test_logsumexp",),
    ),
    Planted(
        "all rows share one largest number",
        "",
        "        largest = a.max(axis=dim, keepdims=True)\n",
        "        largest = a.max()\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the rule always returns a MiniTensor",
        "",
        "        return grad.reshape(ctx.kept) * softmax\n",
        "        return as_tensor(grad.reshape(ctx.kept) * softmax)\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the softmax is saved",
        "",
        "        ctx.save_for_backward(a, output)\n        return output\n",
        "        ctx.save_for_backward(a, np.exp(a - output.reshape(ctx.kept)))\n        return output\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the rule takes exp of large numbers",
        "",
        "        softmax = applied(Exp, a - output.reshape(ctx.kept))\n",
        "        softmax = applied(Exp, a) / applied(Exp, output.reshape(ctx.kept))\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the output is saved as a copy",
        "",
        "        ctx.save_for_backward(a, output)\n        return output\n",
        "        ctx.save_for_backward(a, output.copy())\n        return output\n",
        ("test_logsumexp",),
    ),
    Planted(
        "the rule calls NumPy",
        "",
        "        softmax = applied(Exp, a - output.reshape(ctx.kept))\n",
        "        softmax = np.exp(a - output.reshape(ctx.kept))\n",
        ("test_logsumexp",),
    ),
    Planted(
        "each gradient is clipped by itself",
        "",
        "            g.mul_(factor)\n",
        "            g.mul_(min(1.0, max_norm / (np.sqrt((g.data**2).sum()) + 1e-6)))\n",
        ("test_clip",),
    ),
    Planted(
        "a matrix counts with its matrix norm",
        "",
        "    sizes = np.abs(np.concatenate([g.data.reshape(-1) for g in grads] or [np.zeros(1)]))\n"
        "    norm = sizes.max() if norm_type == math.inf else (sizes**norm_type).sum() ** (1 / norm_type)\n",
        "    norms = [np.linalg.norm(g.data, norm_type) for g in grads]\n"
        "    norm = np.linalg.norm(norms, norm_type) if norms else 0.0\n",
        ("test_clip",),
    ),
    Planted(
        "the norm of order inf needs a gradient",
        "",
        "    norm = sizes.max() if norm_type",
        "    norm = np.max([np.abs(g.data).max() for g in grads]) if norm_type",
        ("test_clip",),
    ),
    Planted(
        "the norm of order inf uses the formula of the others",
        "",
        "    norm = sizes.max() if norm_type == math.inf else (sizes**norm_type).sum() ** (1 / norm_type)\n",
        "    norm = (sizes**norm_type).sum() ** (1 / norm_type)\n",
        ("test_clip",),
    ),
    Planted(
        "NaN is swallowed by max",
        "",
        "    norm = sizes.max() if norm_type",
        "    norm = max(sizes) if norm_type",
        ("test_clip",),
    ),
    Planted(
        "short gradients are made longer",
        "",
        "    factor = np.minimum(max_norm / (norm + 1e-6), 1.0)\n",
        "    factor = max_norm / (norm + 1e-6)\n",
        ("test_clip",),
    ),
    Planted(
        "NaN is swallowed by min",
        "",
        "    factor = np.minimum(max_norm / (norm + 1e-6), 1.0)\n",
        "    factor = min(1.0, max_norm / (norm + 1e-6))\n",
        ("test_clip",),
    ),
    Planted(
        "clipping is recorded",
        "",
        "    with no_grad():\n        for g in grads:\n            g.mul_(factor)\n",
        "    for g in grads:\n        g.mul_(factor)\n",
        ("test_clip",),
    ),
    Planted(
        "the 1e-6 is forgotten",
        "",
        "    factor = np.minimum(max_norm / (norm + 1e-6), 1.0)\n",
        "    factor = np.minimum(max_norm / (norm or 1.0), 1.0)\n",
        ("test_clip",),
    ),
    Planted(
        "the norm after clipping is returned",
        "",
        "    return MiniTensor(norm)",
        "    return MiniTensor(norm * factor)",
        ("test_clip",),
    ),
    Planted(
        "a norm that is not finite is never refused",
        "",
        "    if error_if_nonfinite and not np.isfinite(norm):\n",
        "    if False:\n",
        ("test_clip",),
    ),
    Planted(
        "a norm that is not finite is always refused",
        "",
        "    if error_if_nonfinite and not np.isfinite(norm):\n",
        "    if not np.isfinite(norm):\n",
        ("test_clip",),
    ),
    Planted(
        "only leaves lead back",
        "",
        "                source, _ = node.next_functions[note.source]\n",
        "                source, _ = node.next_functions[note.source]\n"
        "                source = source if isinstance(source, AccumulateGrad) else None\n",
        ("test_reconnected", "test_walk", "test_grad"),
    ),
    Planted(
        "the walk ends at a node that does not work",
        "",
        "            if not works:\n                continue\n            ### END",
        "            if not works:\n                break\n            ### END",
        ("test_walk", "test_grad"),
    ),
    Planted(
        "one walk for each input",
        "",
        "    found = walk_back(edge_to(outputs)[0], cotangent, retain_graph, create_graph, wanted)\n",
        "    found = {}\n"
        "    for node in wanted:\n"
        "        found |= walk_back(edge_to(outputs)[0], cotangent, retain_graph, create_graph, [node])\n",
        ("test_grad",),
    ),
    Planted(
        "the parameters are gone through twice",
        "",
        "    sizes = np.abs(np.concatenate([g.data.reshape(-1) for g in grads] or [np.zeros(1)]))\n",
        "    again = [p.grad.data.reshape(-1) for p in parameters if p.grad is not None]\n"
        "    sizes = np.abs(np.concatenate(again or [np.zeros(1)]))\n",
        ("test_clip",),
    ),
    Planted(
        "the rule works for two axes only",
        "",
        "        ctx.kept = output.shape\n",
        "        ctx.kept = (1, -1) if dim == 0 else (-1, 1)\n",
        ("test_logsumexp",),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 5
    examples = 20
    visible = True


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "operators": lambda a, b: (a * a.exp() - b.T / a) ** 3 - 2 / a,
    "a power at zero": lambda a, b: ((a - a.detach()) ** 2 * b.T) + a * b.T,
    "functions": lambda a, b: (a.log() * b.T).tanh().exp(),
    "kinks": lambda a, b: (a - 1).relu() ** 2 * (b.T - 1).abs() ** 3,
    "matrices": lambda a, b: (a @ b) @ (b.T @ a.T),
    "vectors": lambda a, b: (a[0] @ b) * (a[1] @ b[:, 0]),
    "batches": lambda a, b: (a.reshape(2, 1, 3) @ b.reshape(1, 3, 2)) ** 2,
    "sums and means": lambda a, b: a.sum(1) ** 2 * (b * b).mean(0) + a.sum() * b.mean(),
    "kept dimensions": lambda a, b: a.sum(1, True) ** 2 * a * b.T.mean(0, True) ** 2,
    "the largest": lambda a, b: (a * a).max() * b.T,
    "indices": lambda a, b: (a[[0, 0, 1], 1:] ** 2).T * b.reshape(2, 3)[1, 2] ** 2,
    "softmax": lambda a, b: a.softmax(1) * (b.T * a).log_softmax(0),
    "log-sum-exp": lambda a, b: a.logsumexp(dim=1) * b.logsumexp(dim=0),
    "written in place": lambda a, b: (a * b.T).mul_(a).add_(b[0, 0] ** 2),
    "linear in both": lambda a, b: a * 2 - b.T,
}


def second_derivatives(expression: Callable[..., Any], inputs: Any, grad: Any, cotangent: Any, weights: Any) -> Any:
    """Gradients of the weighted first gradients; zeros if there is no path."""
    first = grad(expression(*inputs), inputs, cotangent, create_graph=True)
    total = sum((g * w).sum() + (0 * x).sum() for g, w, x in zip(first, weights, inputs, strict=True))
    return grad(total, inputs)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_second_derivatives_agree_with_pytorch(name: str, engine: dict[str, Any]) -> None:
    generator, expression = np.random.default_rng(6), EXPRESSIONS[name]
    arrays = [generator.uniform(0.5, 2.0, size=shape) for shape in ((2, 3), (3, 2))]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    cotangent = generator.normal(size=tuple(expression(*theirs).shape))
    weights = [generator.normal(size=array.shape) for array in arrays]
    ours = [engine["MiniTensor"](array, requires_grad=True) for array in arrays]
    found = second_derivatives(expression, ours, engine["grad"], cotangent, weights)
    tensors = [torch.tensor(weight) for weight in weights]
    expected = second_derivatives(expression, theirs, torch.autograd.grad, torch.tensor(cotangent), tensors)
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.data, right.numpy(), rtol=1e-9, atol=1e-9)


def test_derivatives_of_any_order_at_zero(engine: dict[str, Any]) -> None:
    x = engine["MiniTensor"](0.0, requires_grad=True)
    value, found = x**2 + x.exp(), []
    for _ in range(4):
        (value,) = engine["grad"](value, x, create_graph=True)
        found.append(value.item())
    np.testing.assert_allclose(found, [1.0, 3.0, 1.0, 1.0])


def test_a_rule_on_arrays_is_refused_by_name(engine: dict[str, Any]) -> None:
    class Doubled(engine["Function"]):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return 2 * a

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return np.add(grad, grad)

    x = engine["MiniTensor"]([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="rule of DoubledBackward0 computes with arrays"):
        engine["grad"](Doubled.apply(x).sum(), x, create_graph=True)
    np.testing.assert_array_equal(engine["grad"](Doubled.apply(x).sum(), x)[0].data, [2.0, 2.0])


OTHER_ABS = """
class Abs(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return np.abs(a)

    @staticmethod
    def backward(ctx, grad):
        (a,) = ctx.saved_tensors
        return grad * np.sign(a)


MiniTensor.abs = lambda self: Abs.apply(self)
"""


def test_what_abs_of_lesson_08_saves_makes_no_difference_to_exercise_1() -> None:
    names: dict[str, Any] = {"__name__": LESSON}
    for cell in cells_that_define(LESSON, tests=True):
        if cell.grade_id == "reconnected":
            exec(OTHER_ABS, names)
        exec(cell.source, names)
        if cell.grade_id == "test_reconnected":
            return
    raise AssertionError("there is no such test cell")


@pytest.mark.parametrize(
    ("skipped", "said"),
    [
        ("class Scatter(Function):", "the cells of lesson 10, section 2, do that"),
        ("    walk_back(root, cotangent, create_graph if", "run the cell between your answer and this check"),
    ],
)
def test_the_check_of_the_walk_names_a_given_cell_that_has_not_run(skipped: str, said: str) -> None:
    names: dict[str, Any] = {"__name__": LESSON}
    for cell in cells_that_define(LESSON, tests=True):
        if cell.grade_id == "test_walk":
            with pytest.raises((AssertionError, RuntimeError), match=said), check_context(explained=False):
                exec(without_hidden_tests(cell.source), names)
            return
        if skipped not in cell.source and not cell.nbgrader.get("grade"):
            exec(cell.source, names)
    raise AssertionError("there is no such test cell")


def test_hooks_are_those_of_pytorch(engine: dict[str, Any]) -> None:
    def seen_by_hooks(x: Any) -> list[Any]:
        seen: list[Any] = []
        y = x * 3
        y.register_hook(lambda grad: seen.append(grad.tolist() if hasattr(grad, "tolist") else grad.data.tolist()))
        y.register_hook(lambda grad: grad * 10)
        handle = y.register_hook(lambda grad: seen.append(grad.sum().item()))
        once: Any = x.register_hook(lambda grad: (once.remove(), grad + 1)[1])
        (y * y).sum().backward(retain_graph=True)
        handle.remove()
        handle.remove()
        (y * y).sum().backward()
        return [*seen, x.grad.data.tolist()]

    ours = seen_by_hooks(engine["MiniTensor"]([1.0, 2.0], requires_grad=True))
    assert ours == seen_by_hooks(torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True))


def test_a_hook_keeps_history_and_shape(engine: dict[str, Any]) -> None:
    x = engine["MiniTensor"]([3.0, 4.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda grad: grad * x)
    (first,) = engine["grad"](y.sum(), x, create_graph=True)
    np.testing.assert_allclose(engine["grad"](first.sum(), x)[0].data, 4 * x.data)

    def shortened(grad: Any) -> Any:
        return grad[:1]

    x.register_hook(shortened)
    with pytest.raises(RuntimeError, match="hook 'shortened' has changed the size of value"):
        (x * 2).sum().backward()
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        engine["MiniTensor"]([1.0]).register_hook(shortened)


def test_grad_makes_no_circle(engine: dict[str, Any]) -> None:
    """What `grad` has recorded is freed with its last reference; Python's collector has nothing to do."""
    gc.collect()
    gc.disable()
    try:
        x = engine["MiniTensor"]([0.5, 1.5], requires_grad=True)
        (first,) = engine["grad"]((x.exp() * x.tanh() / x).sum(), x, create_graph=True)
        (second,) = engine["grad"](first.sum(), x, create_graph=True)
        found = [weakref.ref(thing) for thing in (x, first.grad_fn, second.grad_fn)]
        del x, first, second
        assert [reference() for reference in found] == [None, None, None]
    finally:
        gc.enable()


def test_a_gradient_penalty_trains_like_pytorch(engine: dict[str, Any]) -> None:
    """A loss that contains a gradient, trained with clipping: after some steps the weights are PyTorch's."""
    generator = np.random.default_rng(2)
    arrays = [generator.normal(size=shape) for shape in ((2, 5), (5,), (5, 1))]
    points = generator.normal(size=(6, 2))

    def trained(leaf: Any, grad: Any, clip: Any, step: Any) -> Any:
        parameters, x = [leaf(array) for array in arrays], leaf(points)
        for _ in range(10):
            w1, b1, w2 = parameters
            output = (x @ w1 + b1).tanh() @ w2
            (slope,) = grad(output.sum(), x, create_graph=True)
            loss = ((output - 1) ** 2).mean() + ((slope * slope).sum(1) - 1).abs().mean()
            for parameter in parameters:
                parameter.grad = None
            loss.backward()
            clip(parameters, 0.5)
            step(parameters)
        return parameters

    def our_step(parameters: Any) -> None:
        engine["SGD"](parameters, lr=0.1).step()

    def their_step(parameters: Any) -> None:
        torch.optim.SGD(parameters, lr=0.1).step()

    ours = trained(
        lambda array: engine["MiniTensor"](array.copy(), requires_grad=True),
        engine["grad"],
        engine["clip_grad_norm_"],
        our_step,
    )
    theirs = trained(
        lambda array: torch.tensor(array, requires_grad=True),
        torch.autograd.grad,
        torch.nn.utils.clip_grad_norm_,
        their_step,
    )
    for mine, right in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.data, right.detach().numpy(), rtol=1e-9, atol=1e-12)
