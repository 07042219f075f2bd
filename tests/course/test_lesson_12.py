"""Plants classic mistakes in the solutions of lesson 12: each costs points where it was made, and on no other cell.

Anomaly mode, and the derivatives of `where` and `lengths`, are compared with PyTorch as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, Planted, secret_by_name, solved, styles

LESSON = "12_debugging_clinic"
TRAINING = """    for _ in range(epochs):
        model.train()
        for x, y in loader:
            losses.append(train_step(model, optimizer, loss_function, x, y))
        validated.append(evaluate(model, validation, loss_function))
    model.train()
"""

PLANTED = [
    Planted("the mode is switched off, not put back", "", "= self.before\n", "= False\n", ("test_anomaly",)),
    Planted(
        "the mode cannot be switched off inside",
        "",
        "        switches.anomaly = self.mode\n",
        "        switches.anomaly = True\n",
        ("test_anomaly",),
    ),
    Planted("infinity is an alarm", "", "np.isnan(as_tensor", "~np.isfinite(as_tensor", ("test_anomaly",)),
    Planted(
        "only the first share is looked at",
        "",
        "in enumerate(shares):\n",
        "in enumerate(shares[:1]):\n",
        ("test_anomaly",),
    ),
    Planted("a share must be NaN everywhere", "", "(share).data).any():", "(share).data).all():", ("test_anomaly",)),
    Planted("the calls are forgotten", "", "*(node.calls or [NO_CALLS])", "NO_CALLS", ("test_anomaly",)),
    Planted(
        "only the last call is named",
        "",
        "*(node.calls or [NO_CALLS])",
        "*(node.calls[-1:] or [NO_CALLS])",
        ("test_anomaly",),
    ),
    Planted(
        "errors are swallowed",
        "",
        "        switches.anomaly = self.before\n",
        "        switches.anomaly = self.before\n        return True\n",
        ("test_anomaly",),
    ),
    Planted(
        "all threads are in the mode",
        "",
        "        switches.anomaly = self.mode\n",
        "        Switches.anomaly = self.mode\n        vars(switches).clear()\n",
        ("test_anomaly",),
    ),
    Planted(
        "all blocks remember in one place",
        "",
        "        self.before = switches.anomaly\n",
        "        detect_anomaly.before = switches.anomaly\n",
        ("test_anomaly",),
    ),
    Planted(
        "None is taken for zero",
        "",
        "None if grad is None else float(",
        "0.0 if grad is None else float(",
        ("test_norms",),
    ),
    Planted(
        "zero is taken for None",
        "",
        "None if grad is None else float(",
        "None if grad is None or not grad.data.any() else float(",
        ("test_norms",),
    ),
    Planted(
        "the largest entry is the norm",
        "",
        "float(np.linalg.norm(grad.data))",
        "float(np.abs(grad.data).max())",
        ("test_norms",),
    ),
    Planted(
        "the norm of matrices is another",
        "",
        "linalg.norm(grad.data)",
        "linalg.norm(grad.data, 2 if grad.ndim == 2 else None)",
        ("test_norms",),
    ),
    Planted(
        "NaN only",
        "",
        "        if not np.isfinite(output.data).all():\n",
        "        if np.isnan(output.data).any():\n",
        ("test_outputs",),
    ),
    Planted(
        "the name of the outermost counts as none",
        "",
        "            return name\n    return None\n",
        "            return name or None\n    return None\n",
        ("test_outputs",),
    ),
    Planted(
        "the input is not looked at",
        "",
        "    if not np.isfinite(as_tensor(x).data).all():\n",
        "    if False:\n",
        ("test_outputs",),
    ),
    Planted("zero and None are one", "", "elif not slope.data.any():", "elif False:", ("test_preflight",)),
    Planted(
        "some zeros are enough",
        "",
        "not slope.data.any():",
        "not slope.data.all():",
        ("test_preflight",),
    ),
    Planted(
        "entries that add up to zero are zero",
        "",
        "not slope.data.any():",
        "slope.data.sum() == 0:",
        ("test_preflight",),
    ),
    Planted(
        "small gradients are zero",
        "",
        "not slope.data.any():",
        "np.allclose(slope.data, 0.0):",
        ("test_preflight",),
    ),
    Planted(
        "leaves outside are not looked for",
        "",
        "for leaf in leaves if leaf not in own]",
        "for leaf in ()]",
        ("test_preflight",),
    ),
    Planted(
        "what the optimizer has counts as known",
        "",
        "for leaf in leaves if leaf not in own]",
        "for leaf in leaves if leaf not in own | held]",
        ("test_preflight",),
    ),
    Planted(
        "the findings begin anew",
        "",
        '    findings += [f"not in the model',
        '    findings = [f"not in the model',
        ("test_preflight",),
    ),
    Planted(
        "the gradients go into .grad",
        "",
        "    slopes = grad(loss, list(named.values()), allow_unused=True)\n",
        "    loss.backward()\n    slopes = [p.grad for p in named.values()]\n",
        ("test_preflight",),
    ),
    Planted(
        "what the optimizer lacks is not looked for",
        "",
        "for name, p in named.items() if p not in held]",
        "for name, p in ()]",
        ("test_preflight",),
    ),
    Planted(
        "the model runs again for each layer",
        "",
        "    for name, output in layer_outputs(model, x):\n        if",
        "    for number in range(len(layer_outputs(model, x))):\n"
        "        name, output = layer_outputs(model, x)[number]\n        if",
        ("test_outputs",),
    ),
    Planted(
        "the gradients are never cleared",
        "",
        "        optimizer.zero_grad()\n        loss = mse_loss(model(x), y)\n        loss.backward()\n",
        "        loss = mse_loss(model(x), y)\n        loss.backward()\n",
        ("test_repair_one",),
    ),
    Planted(
        "the gradients are cleared after the step only",
        "",
        "        optimizer.zero_grad()\n        loss = mse_loss(model(x), y)\n        loss.backward()\n"
        "        optimizer.step()\n",
        "        loss = mse_loss(model(x), y)\n        loss.backward()\n        optimizer.step()\n"
        "        optimizer.zero_grad()\n",
        ("test_repair_one",),
    ),
    Planted(
        "the step comes too early",
        "",
        "        loss.backward()\n        optimizer.step()\n        ###",
        "        optimizer.step()\n        loss.backward()\n        ###",
        ("test_repair_one",),
    ),
    Planted(
        "the target is stretched",
        "",
        "mse_loss(prediction, target.reshape(rows, 1))",
        "mse_loss(prediction, target)",
        ("test_repair_one",),
    ),
    Planted(
        "any shape will do",
        "",
        "    if target.shape not in ((rows,), (rows, 1)):\n",
        "    if False:\n",
        ("test_repair_one",),
    ),
    Planted(
        "an infinite input is no alarm",
        "",
        "if not np.isfinite(as_tensor(x).data).all():",
        "if np.isnan(as_tensor(x).data).any():",
        ("test_outputs",),
    ),
    Planted("the root sees the zero", "", "where(some, squares, 1.0)", "squares", ("test_repair_one",)),
    Planted("a small number under the root", "", "where(some, squares, 1.0)", "squares + 1e-6", ("test_repair_one",)),
    Planted("a tiny number under the root", "", "where(some, squares, 1.0)", "squares + 1e-12", ("test_repair_one",)),
    Planted(
        "the choice is only after the root",
        "",
        "return where(some, harmless.sqrt(), 0.0)",
        "return where(some, squares.sqrt(), 0.0)",
        ("test_repair_one",),
    ),
    Planted(
        "the layers stay in a list",
        "",
        "Sequential(*(LinearLayer(a, b) for a, b in zip(sizes, sizes[1:])))",
        "[LinearLayer(a, b) for a, b in zip(sizes, sizes[1:])]",
        ("test_repair_two",),
    ),
    Planted(
        "tanh behind the last layer",
        "",
        "        return last(x)\n",
        "        return last(x).tanh()\n",
        ("test_repair_two",),
    ),
    Planted(
        "validation looks at the training batches",
        "",
        "evaluate(model, validation, loss_function)",
        "evaluate(model, loader, loss_function)",
        ("test_repair_two",),
    ),
    Planted(
        "train() once",
        "",
        "        model.train()\n        for x, y in loader:\n            losses.append(train_step",
        "        for x, y in loader:\n            losses.append(train_step",
        ("test_repair_two",),
    ),
    Planted(
        "validation in training mode",
        "",
        "evaluate(model, validation, loss_function)",
        "float(np.mean([loss_function(model(x), y).item() for x, y in validation]))",
        ("test_repair_two",),
    ),
    Planted(
        "the mode is put back in the end",
        "",
        TRAINING,
        "    before = model.training\n" + TRAINING.removesuffix("model.train()\n") + "model.train(before)\n",
        ("test_repair_two",),
    ),
    Planted(
        "another loss than the one that was given",
        "",
        "train_step(model, optimizer, loss_function, x, y)",
        "train_step(model, optimizer, mse_loss, x, y)",
        ("test_repair_two",),
    ),
    Planted(
        "layers of one size share their weights",
        "",
        "Sequential(*(LinearLayer(a, b) for a, b in zip(sizes, sizes[1:])))",
        "Sequential(*map({pair: LinearLayer(*pair) for pair in zip(sizes, sizes[1:])}.get, zip(sizes, sizes[1:])))",
        ("test_repair_two",),
    ),
    Planted(
        "the logarithm of a softmax that is 0",
        "",
        "return scores.cross_entropy(labels), accuracy",
        "return -scores.softmax(1)[np.arange(len(labels)), labels].log().mean(), accuracy",
        ("test_repair_two",),
    ),
    Planted(
        "softmax twice",
        "",
        "return scores.cross_entropy(labels), accuracy",
        "return scores.softmax(1).cross_entropy(labels), accuracy",
        ("test_repair_two",),
    ),
    Planted(
        "the scores are detached",
        "",
        "return scores.cross_entropy(labels), accuracy",
        "return scores.detach().cross_entropy(labels), accuracy",
        ("test_repair_two",),
    ),
    Planted(
        "the mode of the time when the object was made",
        "",
        "        self.mode = mode\n\n    def __enter__(self):\n        ### BEGIN SOLUTION\n"
        "        self.before = switches.anomaly\n",
        "        self.mode = mode\n        self.before = switches.anomaly\n\n    def __enter__(self):\n"
        "        ### BEGIN SOLUTION\n",
        ("test_anomaly",),
    ),
    Planted(
        "shares are taken for arrays",
        "",
        "np.isnan(as_tensor(share).data).any()",
        "np.isnan(share).any()",
        ("test_anomaly",),
    ),
    Planted(
        "the last share with a NaN counts",
        "",
        "in enumerate(shares):\n",
        "in reversed([*enumerate(shares)]):\n",
        ("test_anomaly",),
    ),
    Planted(
        "the gradients are cleared",
        "",
        "    return norms\n",
        "    model.zero_grad()\n    return norms\n",
        ("test_norms",),
    ),
    Planted(
        "NaN becomes zero",
        "",
        "float(np.linalg.norm(grad.data))",
        "float(np.nan_to_num(np.linalg.norm(grad.data)))",
        ("test_norms",),
    ),
    Planted(
        "what is shared comes twice",
        "",
        "in model.named_parameters():",
        "in ((name, model.state_dict()[name]) for name in model.state_dict()):",
        ("test_norms",),
    ),
    Planted(
        "the prediction becomes a row",
        "",
        "mse_loss(prediction, target.reshape(rows, 1))",
        "mse_loss(prediction.reshape(rows), target)",
        ("test_repair_one",),
    ),
    Planted(
        "the model runs in training mode",
        "",
        "    for name, output in layer_outputs(model, x):\n        if",
        "    model.train()\n    for name, output in layer_outputs(model, x):\n        if",
        ("test_outputs",),
    ),
    Planted(
        "what was left in .grad counts",
        "",
        "    slopes = grad(loss, list(named.values()), allow_unused=True)\n",
        "    kept = [p.grad for p in named.values()]\n"
        "    loss.backward()\n"
        "    slopes = [p.grad for p in named.values()]\n"
        "    for p, former in zip(named.values(), kept):\n        p.grad = former\n",
        ("test_preflight",),
    ),
    Planted(
        "the optimizer makes a step",
        "",
        "    return findings",
        "    optimizer.step()\n    return findings",
        ("test_preflight",),
    ),
    Planted(
        "zeros come before what is missing",
        "",
        "    for name, slope in zip(named, slopes):\n",
        "    for name, slope in sorted(zip(named, slopes), key=lambda pair: pair[1] is None):\n",
        ("test_preflight",),
    ),
    Planted(
        "the last bad layer",
        "",
        "            return name\n    return None\n",
        "            bad = name\n    return locals().get('bad')\n",
        ("test_outputs",),
    ),
    Planted(
        "an output must be bad everywhere",
        "",
        "np.isfinite(output.data).all()",
        "np.isfinite(output.data).any()",
        ("test_outputs",),
    ),
    Planted(
        "only the last output tells whether something is wrong",
        "",
        "    for name, output in layer_outputs(model, x):\n        if",
        "    pairs = layer_outputs(model, x)\n"
        "    if np.isfinite(pairs[-1][1].data).all():\n        return None\n"
        "    for name, output in pairs:\n        if",
        ("test_outputs",),
    ),
    Planted(
        "a bad batch runs twice",
        "",
        "            return name\n    return None\n",
        "            layer_outputs(model, x)\n            return name\n    return None\n",
        ("test_outputs",),
    ),
    Planted("the largest entry tells", "", "not slope.data.any():", "slope.data.max() == 0:", ("test_preflight",)),
    Planted("the smallest entry tells", "", "not slope.data.any():", "slope.data.min() == 0:", ("test_preflight",)),
    Planted(
        "leaves outside come last",
        "",
        '            findings.append(f"zero gradient: {name}")\n',
        '            findings.append(f"zero gradient: {name}")\n'
        "    findings.sort(key=lambda text: text.startswith('not in the model'))\n",
        ("test_preflight",),
    ),
    Planted(
        "leaves of one shape count once",
        "",
        '    findings += [f"not in the model: shape {leaf.shape}" for leaf in leaves if leaf not in own]\n',
        '    findings += {f"not in the model: shape {leaf.shape}" for leaf in leaves if leaf not in own}\n',
        ("test_preflight",),
    ),
    Planted(
        "losses come after their steps",
        "",
        "        optimizer.step()\n        ### END SOLUTION\n        losses",
        "        optimizer.step()\n        loss = mse_loss(model(x), y)\n        ### END SOLUTION\n        losses",
        ("test_repair_one",),
    ),
    Planted(
        "the gradients are cleared before the first step only",
        "",
        "        optimizer.zero_grad()\n        loss = mse_loss(model(x), y)\n        loss.backward()\n",
        "        losses or optimizer.zero_grad()\n        loss = mse_loss(model(x), y)\n        loss.backward()\n",
        ("test_repair_one",),
    ),
    Planted(
        "each loss comes from a second call, after the step",
        "",
        "            losses.append(train_step(model, optimizer, loss_function, x, y))\n",
        "            train_step(model, optimizer, loss_function, x, y)\n"
        "            losses.append(loss_function(model(x), y).item())\n",
        ("test_repair_two",),
    ),
    Planted(
        "another loss in validation",
        "",
        "evaluate(model, validation, loss_function)",
        "evaluate(model, validation, mse_loss)",
        ("test_repair_two",),
    ),
    Planted(
        "training mode is put back in each epoch only",
        "",
        TRAINING,
        TRAINING.removesuffix("    model.train()\n") + "        model.train()\n",
        ("test_repair_two",),
    ),
    Planted(
        "validation is recorded",
        "",
        "        validated.append(evaluate(model, validation, loss_function))\n",
        "        model.eval()\n"
        "        pairs = [(loss_function(model(x), y).item(), len(x.data)) for x, y in validation]\n"
        "        validated.append(sum(loss * rows for loss, rows in pairs) / sum(rows for _, rows in pairs))\n",
        ("test_repair_two",),
    ),
    Planted(
        "the opposite mode is put back",
        "",
        "        switches.anomaly = self.before\n",
        "        switches.anomaly = not self.mode\n",
        ("test_anomaly",),
    ),
    Planted("another error", "", 'raise RuntimeError("', 'raise ValueError("', ("test_anomaly",)),
    Planted(
        "None is not counted",
        "",
        "in enumerate(shares):\n",
        "in enumerate(share for share in shares if share is not None):\n",
        ("test_anomaly",),
    ),
    Planted("None counts as NaN", "", "share is not None and np.isnan", "np.isnan", ("test_anomaly",)),
    Planted(
        "outputs are counted from 1", "", "in enumerate(shares):\n", "in enumerate(shares, 1):\n", ("test_anomaly",)
    ),
    Planted(
        "a NaN is looked for with ==",
        "",
        "np.isnan(as_tensor(share).data)",
        "(as_tensor(share).data == np.nan)",
        ("test_anomaly",),
    ),
    Planted(
        "the root still sees a zero, and its NaN is replaced",
        "",
        "where(some, squares, 1.0)",
        "where(some, squares, 0.0)",
        ("test_repair_one",),
    ),
    Planted(
        "x is no MiniTensor", "", "np.isfinite(as_tensor(x).data).all()", "np.isfinite(x).all()", ("test_outputs",)
    ),
    Planted(
        "evaluation mode stays on",
        "",
        "    for name, output in layer_outputs(model, x):\n        if",
        "    model.eval()\n    for name, output in layer_outputs(model, x):\n        if",
        ("test_outputs",),
    ),
    Planted(
        "the layers run as a chain",
        "",
        "    for name, output in layer_outputs(model, x):\n        if",
        "    output, chain = as_tensor(x), [pair for pair in model.named_modules() if not pair[1]._modules]\n"
        "    for name, layer in chain:\n        output = layer(output)\n        if",
        ("test_outputs",),
    ),
    Planted(
        "only the parameters of the optimizer are examined",
        "",
        "    for name, slope in zip(named, slopes):\n        if slope is None:\n",
        "    for name, slope in zip(named, slopes):\n        if named[name] not in held:\n            continue\n"
        "        if slope is None:\n",
        ("test_preflight",),
    ),
    Planted(
        "the check leaves the model in evaluation mode",
        "",
        "    loss = loss_function(model(x), y)\n    ### BEGIN SOLUTION\n    nodes",
        "    model.eval()\n    loss = loss_function(model(x), y)\n    ### BEGIN SOLUTION\n    nodes",
        ("test_preflight",),
    ),
    Planted(
        "what is missing comes before zeros",
        "",
        "    for name, slope in zip(named, slopes):\n",
        "    for name, slope in sorted(zip(named, slopes), key=lambda pair: pair[1] is not None):\n",
        ("test_preflight",),
    ),
    Planted(
        "three layers at most",
        "",
        "Sequential(*(LinearLayer(a, b) for a, b in zip(sizes, sizes[1:])))",
        "Sequential(*(LinearLayer(a, b) for a, b in zip(sizes[:4], sizes[1:4])))",
        ("test_repair_two",),
    ),
    Planted(
        "a hidden layer is always there",
        "",
        "Sequential(*(LinearLayer(a, b) for a, b in zip(sizes, sizes[1:])))",
        "Sequential(LinearLayer(sizes[0], sizes[1]), *(LinearLayer(a, b) for a, b in zip(sizes[1:-1], sizes[2:-1])), "
        "LinearLayer(sizes[-2], sizes[-1]))",
        ("test_repair_two",),
    ),
    Planted(
        "the largest score of a column",
        "",
        "(scores.data.argmax(axis=1) == labels)",
        "(scores.data.argmax(axis=0)[: len(labels)] == labels)",
        ("test_repair_two",),
    ),
    Planted(
        "the model runs in evaluation mode, which is put back",
        "",
        "    for name, output in layer_outputs(model, x):\n        if",
        "    training = model.training\n    model.eval()\n    pairs = layer_outputs(model, x)\n"
        "    model.train(training)\n    for name, output in pairs:\n        if",
        ("test_outputs",),
    ),
    Planted(
        "the model runs in training mode, and its mode is put back",
        "",
        "    for name, output in layer_outputs(model, x):\n        if",
        "    training = model.training\n    model.train()\n    pairs = layer_outputs(model, x)\n"
        "    model.train(training)\n    for name, output in pairs:\n        if",
        ("test_outputs",),
    ),
    Planted(
        "the gradients are those of a second run",
        "",
        "    slopes = grad(loss, list(named.values()), allow_unused=True)\n",
        "    slopes = grad(loss_function(model(x), y), list(named.values()), allow_unused=True)\n",
        ("test_preflight",),
    ),
    Planted(
        "the leaves are those of a second run",
        "",
        "topological_order(edge_to(loss)[0])",
        "topological_order(edge_to(loss_function(model(x), y))[0])",
        ("test_preflight",),
    ),
    Planted(
        "the norms are rounded",
        "",
        "float(np.linalg.norm(grad.data))",
        "round(float(np.linalg.norm(grad.data)), 4)",
        ("test_norms",),
    ),
    Planted(
        "the norms switch to evaluation mode",
        "",
        "    norms = {}\n",
        "    norms = {}\n    model.eval()\n",
        ("test_norms",),
    ),
    Planted(
        "every share with a NaN is named",
        "",
        '            raise RuntimeError("\\n".join([first, *(node.calls or [NO_CALLS])]))\n',
        "            bad = [*locals().get('bad', []), first]\n"
        "    if 'bad' in locals():\n"
        "        raise RuntimeError('\\n'.join([*bad, *(node.calls or [NO_CALLS])]))\n",
        ("test_anomaly",),
    ),
    Planted(
        "the target itself gets another shape",
        "",
        "    return mse_loss(prediction, target.reshape(rows, 1))\n",
        "    target.data = target.data.reshape(rows, 1)\n    return mse_loss(prediction, target)\n",
        ("test_repair_one",),
    ),
    Planted(
        "the harmless number is 0",
        "",
        "    harmless = where(some, squares, 1.0)\n    return where(some, harmless.sqrt(), 0.0)\n",
        "    return where(some, squares, 0.0).sqrt()\n",
        ("test_repair_one",),
    ),
    Planted(
        "leaves are compared by their numbers",
        "",
        "for leaf in leaves if leaf not in own]",
        "for leaf in leaves if not any(np.array_equal(leaf.data, p.data) for p in own)]",
        ("test_preflight",),
    ),
    Planted(
        "the gradients of an epoch are cleared after each step only",
        "",
        "            losses.append(train_step(model, optimizer, loss_function, x, y))\n",
        "            loss = loss_function(model(x), y)\n"
        "            loss.backward()\n"
        "            optimizer.step()\n"
        "            optimizer.zero_grad()\n"
        "            losses.append(loss.item())\n",
        ("test_repair_two",),
    ),
    Planted(
        "the share of the wrong rows",
        "",
        "(scores.data.argmax(axis=1) == labels)",
        "(scores.data.argmax(axis=1) != labels)",
        ("test_repair_two",),
    ),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 6
    visible = True
    examples = 19


def test_visible_tests_share_no_name_with_hidden_ones() -> None:
    assert secret_by_name(LESSON) == set()


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def raises(step: Callable[[], Any]) -> str:
    try:
        step()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""


CASES: dict[str, Callable[[Any], Any]] = {
    "log(-1)": lambda x: (x - 2).log().sum(),
    "1 / 0": lambda x: (1 / (x - 1)).sum(),
    "overflow": lambda x: (x * 1000).exp().sum(),
    "sqrt(0)": lambda x: (x - 1).sqrt().sum(),
    "sqrt(-1)": lambda x: (x - 2).sqrt().sum(),
    "0 / 0": lambda x: ((x - 1) / (x - 1)).sum(),
    "the logarithm of an overflow": lambda x: (x * 1000).exp().log().sum(),
    "nothing": lambda x: (x * x).sum(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_the_alarm_is_raised_where_that_of_pytorch_is(engine: dict[str, Any], case: str) -> None:
    leaf = engine["MiniTensor"]([1.0, 1.0], requires_grad=True)
    theirs = torch.ones(2, dtype=torch.double, requires_grad=True)
    with engine["detect_anomaly"]():
        found = raises(lambda: CASES[case](leaf).backward())
    with torch.autograd.set_detect_anomaly(True):
        expected = raises(lambda: CASES[case](theirs).backward())
    assert bool(found) == bool(expected), (found, expected)
    assert found.partition("' ")[2] == expected.partition("' ")[2]  # except for the names of operations


def test_the_alarm_names_the_line_that_recorded_the_operation(engine: dict[str, Any]) -> None:
    def culprit(x: Any) -> Any:
        return x.sqrt()

    leaf = engine["MiniTensor"]([0.0, 1.0], requires_grad=True)
    with np.errstate(all="ignore"), engine["detect_anomaly"](), pytest.raises(RuntimeError) as caught:
        engine["where"](leaf.data > 0, culprit(leaf * 2), 0.0).sum().backward()
    last = str(caught.value).splitlines()[-1]
    assert last.endswith("in culprit: return x.sqrt()"), last
    assert engine["is_grad_enabled"]()
    assert not engine["switches"].anomaly


def test_where_has_right_first_and_second_derivatives(engine: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    condition, a, b = random.random((2, 3)) > 0.5, random.normal(size=3), random.normal(size=(2, 1))
    ours = [engine["MiniTensor"](value, requires_grad=True) for value in (a, b)]
    theirs = [torch.tensor(value, requires_grad=True) for value in (a, b)]
    cube = (engine["where"](condition, ours[0] ** 3, ours[1] ** 2)).sum()
    cube_torch = torch.where(torch.tensor(condition), theirs[0] ** 3, theirs[1] ** 2).sum()
    first = engine["grad"](cube, ours, create_graph=True)
    first_torch = torch.autograd.grad(cube_torch, theirs, create_graph=True)
    for slope, slope_torch, leaf, leaf_torch in zip(first, first_torch, ours, theirs, strict=True):
        np.testing.assert_allclose(slope.data, slope_torch.detach().numpy())
        (second,) = engine["grad"]((slope * slope).sum(), leaf, retain_graph=True)
        (second_torch,) = torch.autograd.grad((slope_torch * slope_torch).sum(), leaf_torch, retain_graph=True)
        np.testing.assert_allclose(second.data, second_torch.numpy())


def test_lengths_have_the_gradient_of_the_norm_in_pytorch(engine: dict[str, Any]) -> None:
    values = np.array([[3.0, 4.0], [0.0, 0.0], [1e-4, -1e-4], [1e6, 1.0]])
    x, theirs = engine["MiniTensor"](values, requires_grad=True), torch.tensor(values, requires_grad=True)
    cotangent = np.array([1.0, -2.0, 3.0, 0.5])
    engine["lengths"](x).backward(cotangent)
    theirs.norm(dim=1).backward(torch.tensor(cotangent))
    assert theirs.grad is not None
    np.testing.assert_allclose(x.grad.data, theirs.grad.numpy(), rtol=1e-6)


def test_a_second_run_of_the_given_cell_does_not_stack_up(engine: dict[str, Any]) -> None:
    record, shares_of = engine["record_alone"], engine["shares_alone"]
    assert engine["record"].alone is record
    assert engine["shares_of"].alone is shares_of
