"""Plants classic mistakes in the solutions of lesson 11: each costs points where it was made, and on no other cell.

The code that the lesson provides is compared with PyTorch as well, and so are whole trainings, in every style.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, Planted, cells_that_define, secret_by_name, solved, styles

pytestmark = pytest.mark.usefixtures("one_thread")

LESSON = "11_training"

PLANTED = [
    Planted(
        "buffers are not part of the state",
        "",
        "in {**module._parameters, **module._buffers}.items():",
        "in module._parameters.items():",
        ("test_module", "test_batchnorm"),
    ),
    Planted(
        "a state is a copy",
        "",
        '            state[f"{path}.{name}" if path else name] = tensor.detach()\n',
        '            state[f"{path}.{name}" if path else name] = MiniTensor(tensor.data.copy())\n',
        ("test_module", "test_batchnorm"),
    ),
    Planted("dropout does not scale", "", "x * (kept / (1 - self.p))", "x * (kept * 1.0)", ("test_dropout",)),
    Planted(
        "dropout draws from a bell curve",
        "",
        "default_generator.random(x.shape)",
        "default_generator.normal(size=x.shape)",
        ("test_dropout",),
    ),
    Planted("dropout keeps a share of p", "", ">= self.p\n", "< self.p\n", ("test_dropout",)),
    Planted(
        "dropout scales in evaluation, and not in training",
        "",
        "        if not self.training:\n            return x\n        if self.p == 1",
        "        if not self.training:\n            return x * (1 - self.p)\n        if self.p == 1",
        ("test_dropout",),
    ),
    Planted(
        "dropout drops whole rows",
        "",
        "default_generator.random(x.shape) >=",
        "default_generator.random((x.shape[0],) + (1,) * (x.ndim - 1)) >=",
        ("test_dropout",),
    ),
    Planted(
        "dropout writes into its input",
        "",
        "        return x * (kept / (1 - self.p))\n",
        "        x.data *= kept / (1 - self.p)\n        return x * (kept / (1 - self.p)) / (1 - self.p)\n",
        ("test_dropout",),
    ),
    Planted(
        "one variance for both purposes",
        "",
        "unbiased = variance * rows / (rows - 1)",
        "unbiased = variance",
        ("test_batchnorm",),
    ),
    Planted(
        "the unbiased variance normalizes",
        "",
        "centered).mean(dim=0)\n",
        "centered).sum(dim=0) / (rows - 1)\n",
        ("test_batchnorm",),
    ),
    Planted(
        "momentum the wrong way round",
        "",
        "(1 - self.momentum) * running.data + self.momentum * new",
        "self.momentum * running.data + (1 - self.momentum) * new",
        ("test_batchnorm",),
    ),
    Planted(
        "no gradient through the statistics",
        "",
        "        mean = x.mean(dim=0)\n",
        "        mean = x.detach().mean(dim=0)\n",
        ("test_batchnorm",),
    ),
    Planted(
        "evaluation uses the batch",
        "",
        "        if not self.training:\n            mean, variance = self.running_mean, self.running_var\n",
        "        if not self.training:\n            mean, variance = x.mean(dim=0), self.running_var\n",
        ("test_batchnorm",),
    ),
    Planted(
        "eps outside of the root",
        "",
        "        return centered / (variance + self.eps) ** 0.5",
        "        return centered / (variance**0.5 + self.eps)",
        ("test_batchnorm",),
    ),
    Planted(
        "what is shared has one name in the state",
        "",
        "in self.named_modules(remove_duplicate=False):",
        "in self.named_modules():",
        ("test_module",),
    ),
    Planted(
        "buffers are replaced",
        "",
        "            overwrite(running, (1 - self.momentum) * running.data + self.momentum * new)\n",
        "            running.data = (1 - self.momentum) * running.data + self.momentum * new\n",
        ("test_batchnorm",),
    ),
    Planted(
        "dropout draws from NumPy's own generator",
        "",
        "default_generator.random(x.shape) >=",
        "np.random.default_rng().random(x.shape) >=",
        ("test_dropout",),
    ),
    Planted(
        "dropout divides by zero",
        "",
        "        if self.p == 1:\n            return x * 0.0\n",
        "",
        ("test_dropout",),
    ),
    Planted(
        "one state for all parameters",
        "",
        "        beta1, beta2 = self.betas\n",
        "        beta1, beta2 = self.betas\n        state = vars(self).setdefault('state', {})\n",
        ("test_adam",),
    ),
    Planted(
        "a step switches the mode",
        "",
        "    optimizer.zero_grad()\n    total = 0.0\n",
        "    optimizer.zero_grad()\n    model.eval()\n    total = 0.0\n",
        ("test_loop",),
    ),
    Planted("the mean is not corrected", "", '["mean"] / (1 - beta1 ** state["step"])', '["mean"]', ("test_adam",)),
    Planted(
        "the square is not corrected", "", '["square"] / (1 - beta2 ** state["step"])', '["square"]', ("test_adam",)
    ),
    Planted("eps under the root", "", "(np.sqrt(square) + self.eps)", "np.sqrt(square + self.eps)", ("test_adam",)),
    Planted("the size is lost", "", "(1 - beta2) * gradient**2", "(1 - beta2) * np.abs(gradient)", ("test_adam",)),
    Planted(
        "steps are counted for all parameters together",
        "",
        '        state["step"] = state.get("step", 0) + 1\n',
        '        self.count = getattr(self, "count", 0) + 1\n        state["step"] = self.count\n',
        ("test_adam",),
    ),
    Planted(
        "the gradient is squared in place",
        "",
        "        return self.lr * mean / (np.sqrt(square) + self.eps)\n",
        "        gradient **= 2\n        return self.lr * mean / (np.sqrt(square) + self.eps)\n",
        ("test_adam",),
    ),
    Planted(
        "micro-batches add up to a multiple",
        "",
        " * (part_x.shape[0] / rows)\n",
        "\n",
        ("test_loop",),
    ),
    Planted(
        "micro-batches are divided by their number",
        "",
        " * (part_x.shape[0] / rows)\n",
        " * (1 / -(-rows // size))\n",
        ("test_loop",),
    ),
    Planted("gradients are never cleared", "", "    optimizer.zero_grad()\n    total", "    total", ("test_loop",)),
    Planted(
        "a step for each micro-batch",
        "",
        "        total += loss.item()\n        ### END SOLUTION\n    optimizer.step()\n",
        "        total += loss.item()\n        optimizer.step()\n",
        ("test_loop",),
    ),
    Planted(
        "one backward pass for all parts",
        "",
        "        loss.backward()\n        total += loss.item()\n        ### END SOLUTION\n"
        "    optimizer.step()\n    return total\n",
        "        total = total + loss\n    total.backward()\n    optimizer.step()\n    return total.item()\n",
        ("test_loop",),
    ),
    Planted(
        "parts of equal size",
        "",
        "rows if micro_batch is None else micro_batch\n",
        "rows if micro_batch is None else -(-rows // -(-rows // micro_batch))\n",
        ("test_loop",),
    ),
    Planted(
        "evaluation mode for the outermost module only",
        "",
        "        model.eval()\n        with no_grad():",
        "        model.training = False\n        with no_grad():",
        ("test_loop",),
    ),
    Planted(
        "the mean of the means",
        "",
        "loss_function(model(x), y).item() * x.shape[0]\n                rows += x.shape[0]\n",
        "loss_function(model(x), y).item()\n                rows += 1\n",
        ("test_loop",),
    ),
    Planted(
        "evaluation in training mode",
        "",
        "        model.eval()\n        with no_grad():",
        "        with no_grad():",
        ("test_loop",),
    ),
    Planted(
        "evaluation is recorded",
        "",
        "        with no_grad():\n            for x, y in loader",
        "        if True:\n            for x, y in loader",
        ("test_loop",),
    ),
    Planted(
        "a step puts the model into training mode",
        "",
        "        loss.backward()\n        total += loss.item()\n",
        "        loss.backward()\n        model.train()\n        total += loss.item()\n",
        ("test_loop",),
    ),
    Planted(
        "an evaluation clears the gradients",
        "",
        "        model.eval()\n        with no_grad():",
        "        model.eval()\n        model.zero_grad()\n        with no_grad():",
        ("test_loop",),
    ),
    Planted(
        "evaluation leaves the mode after an error",
        "",
        "        return total / rows\n    finally:\n        model.train(before)",
        "    except ZeroDivisionError:\n        pass\n    model.train(before)\n    return total / rows",
        ("test_loop",),
    ),
    Planted("evaluation ends in training mode", "", "model.train(before)", "model.train()", ("test_loop",)),
    Planted(
        "the state holds the parameters, which no longer require a gradient",
        "",
        '            state[f"{path}.{name}" if path else name] = tensor.detach()\n',
        '            tensor.requires_grad = False\n            state[f"{path}.{name}" if path else name] = tensor\n',
        ("test_module", "test_batchnorm"),
    ),
    Planted(
        "loading a state is not counted as a write",
        "",
        '            state[f"{path}.{name}" if path else name] = tensor.detach()\n',
        '            state[f"{path}.{name}" if path else name] = MiniTensor(tensor.data)\n',
        ("test_module",),
    ),
    Planted(
        "the normalized batch is not returned",
        "",
        "        return centered / (variance + self.eps) ** 0.5",
        "        result = centered / (variance + self.eps) ** 0.5",
        ("test_batchnorm",),
    ),
    Planted(
        "one batch is tracked twice",
        "",
        "        self.track(mean.data, variance.data, x.shape[0])\n",
        "        self.track(mean.data, variance.data, x.shape[0])\n" * 2,
        ("test_batchnorm",),
    ),
    Planted(
        "a buffer is a new object",
        "",
        "        self.track(mean.data, variance.data, x.shape[0])\n",
        "        self.running_mean = MiniTensor(self.running_mean.data.copy())\n"
        "        self.track(mean.data, variance.data, x.shape[0])\n",
        ("test_batchnorm",),
    ),
    Planted(
        "nothing is tracked under no_grad",
        "",
        "        self.track(mean.data, variance.data, x.shape[0])\n",
        "        if is_grad_enabled():\n            self.track(mean.data, variance.data, x.shape[0])\n",
        ("test_batchnorm",),
    ),
    Planted("the mean has no factor, as in SGD", "", "+ (1 - beta1) * gradient", "+ gradient", ("test_adam",)),
    Planted(
        "the corrected mean becomes the state",
        "",
        "        return self.lr * mean / (np.sqrt(square) + self.eps)\n",
        '        state["mean"] = mean\n        return self.lr * mean / (np.sqrt(square) + self.eps)\n',
        ("test_adam",),
    ),
    Planted("the square forgets", "", 'state.get("square", 0.0)', 'state.get("squares", 0.0)', ("test_adam",)),
    Planted("one beta for both", "", "beta1, beta2 = self.betas\n", "beta1 = beta2 = self.betas[0]\n", ("test_adam",)),
    Planted("the mean is squared", "", "* gradient**2", '* state["mean"] ** 2', ("test_adam",)),
    Planted(
        "the weight decay is added twice",
        "",
        "        beta1, beta2 = self.betas\n",
        "        beta1, beta2 = self.betas\n"
        "        gradient = gradient + self.weight_decay * self.parameters[0].data\n",
        ("test_adam",),
    ),
    Planted(
        "one random number for all entries",
        "",
        "default_generator.random(x.shape) >=",
        "default_generator.random() >=",
        ("test_dropout",),
    ),
    Planted(
        "the arguments of the loss are swapped in a step",
        "",
        "loss_function(model(part_x), part_y)",
        "loss_function(part_y, model(part_x))",
        ("test_loop",),
    ),
    Planted(
        "the arguments of the loss are swapped in an evaluation",
        "",
        "total += loss_function(model(x), y)",
        "total += loss_function(y, model(x))",
        ("test_loop",),
    ),
    Planted(
        "a step always takes the squared error",
        "",
        "loss_function(model(part_x), part_y)",
        "mse_loss(model(part_x), part_y)",
        ("test_loop",),
    ),
    Planted(
        "an evaluation always takes the squared error",
        "",
        "total += loss_function(model(x), y)",
        "total += mse_loss(model(x), y)",
        ("test_loop",),
    ),
    Planted(
        "the rows of the data set are counted",
        "",
        "                rows += x.shape[0]\n",
        "            rows = len(loader.dataset)\n",
        ("test_loop",),
    ),
    Planted(
        "the loop ends after the first part",
        "",
        "        total += loss.item()\n",
        "        total += loss.item()\n        break\n",
        ("test_loop",),
    ),
    Planted(
        "each part gets the first rows of y", "", "model(part_x), part_y)", "model(part_x), y[:size])", ("test_loop",)
    ),
    Planted(
        "the variance is corrected twice",
        "",
        "self.track(mean.data, variance.data, x.shape[0])",
        "self.track(mean.data, variance.data * x.shape[0] / (x.shape[0] - 1), x.shape[0])",
        ("test_batchnorm",),
    ),
    Planted(
        "the saved values of all parts are kept",
        "",
        "        loss.backward()\n        total",
        "        loss.backward(retain_graph=True)\n        total",
        ("test_loop",),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 5
    visible = True
    examples = 15


def test_visible_tests_share_no_name_with_hidden_ones() -> None:
    assert secret_by_name(LESSON) == set()


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


@pytest.fixture(scope="module")
def solution() -> dict[str, Any]:
    return solved(LESSON)


def test_recording_that_a_wrong_try_left_off_costs_nothing(engine: dict[str, Any]) -> None:
    tests = [cell for cell in cells_that_define(LESSON, tests=True) if cell.nbgrader.get("grade")]
    assert len(tests) == 5
    for cell in tests:
        engine["switches"].recording = False
        exec(cell.source, engine)


ADAM = {
    "the square is corrected with beta1": ('square"] / (1 - beta2 **', 'square"] / (1 - beta1 **'),
    "(1 - beta) is missing in the square": ("(1 - beta2) * gradient**2", "gradient**2"),
    "(1 - beta) is missing in the mean": ("(1 - beta1) * gradient", "gradient"),
    "the square is corrected after the root": (
        'square = state["square"] / (1 - beta2 ** state["step"])\n'
        "        return self.lr * mean / (np.sqrt(square) + self.eps)",
        "return self.lr * mean / (np.sqrt(state['square']) / (1 - beta2 ** state['step']) + self.eps)",
    ),
    "the mean does not start at 0": ('"mean", 0.0)', '"mean", gradient)'),
    "the square is not corrected": ('state["square"] / (1 - beta2 ** state["step"])', 'state["square"]'),
    "the mean is squared, not the gradient": ("* gradient**2", '* state["mean"] ** 2'),
    "the root is missing": ("np.sqrt(square)", "square"),
    "the new square gets (1 - beta1)": ("(1 - beta2) *", "(1 - beta1) *"),
    "beta and (1 - beta) are swapped in the mean": (
        'beta1 * state.get("mean", 0.0) + (1 - beta1) * gradient',
        '(1 - beta1) * state.get("mean", 0.0) + beta1 * gradient',
    ),
    "eps is added to the quotient": ("(np.sqrt(square) + self.eps)", "np.sqrt(square) + self.eps"),
    'state["step"] grows by 2 in each step, the given line adds 1 already': (
        'state.get("step", 0) + 1\n',
        'state.get("step", 0) + 1\n        state["step"] += 1\n',
    ),
    "the gradient is not squared in the square": ("* gradient**2", "* gradient"),
    "the gradient is used in place of the corrected mean": ("self.lr * mean /", "self.lr * gradient /"),
    "eps is always 1e-8": ("+ self.eps)", "+ 1e-8)"),
    "betas are always 0.9 and 0.999": ("beta1, beta2 = self.betas", "beta1, beta2 = 0.9, 0.999"),
    "change returned None: it should return what step subtracts": (
        "        return self.lr * mean",
        "        self.lr * mean",
    ),
}


@pytest.mark.parametrize("reason", list(ADAM))
def test_the_reason_is_the_mistake_that_fits_all_steps(reason: str) -> None:
    """The first step alone gives the same numbers for several mistakes."""
    names = solved(LESSON)
    cells = {cell.grade_id: cell.source for cell in cells_that_define(LESSON, tests=True) if cell.nbgrader}
    right, wrong = ADAM[reason]
    assert cells["adam"].count(right) == 1
    exec(cells["adam"].replace(right, wrong), names)
    with pytest.raises(AssertionError) as caught:
        exec(cells["test_adam"], names)
    assert str(caught.value).split("]: ")[-1] == reason


MESSAGES = {
    "here each name begins with inner.": (
        "module",
        "in self.named_modules(remove_duplicate=False):",
        "in [(path, part) for path, part in self.named_modules('', False) if path.count('.') < 1]:",
    ),
    "self.eps is missing": ("batchnorm", "centered / (variance + self.eps)", "centered / (variance + 1e-5)"),
    "is .grad cleared after it?": (
        "loop",
        "        loss.backward()\n        total",
        "        loss.backward()\n        optimizer.zero_grad()\n        total",
    ),
    "is the loss multiplied by 0?": ("loop", "(part_x.shape[0] / rows)", "(part_x.shape[0] // rows)"),
    "each loss seems to be multiplied by 1 / rows": ("loop", "(part_x.shape[0] / rows)", "(1 / rows)"),
    "the argument loss_function is never called": (
        "loop",
        "total += loss_function(model(x), y)",
        "total += mse_loss(model(x), y)",
    ),
    "no gradient arrives at x": (
        "batchnorm",
        "mean = x.mean(dim=0)\n",
        "x = x.detach()\n        mean = x.mean(dim=0)\n",
    ),
    "(dim=0 is over the rows)": (
        "batchnorm",
        """mean = x.mean(dim=0)
        centered = x - mean
        variance = (centered * centered).mean(dim=0)
""",
        """mean = x.mean(dim=1, keepdim=True)
        centered = x - mean
        variance = (centered * centered).mean(dim=1, keepdim=True)
""",
    ),
    "(each batch counts the same, whatever its number of rows)": (
        "loop",
        """.item() * x.shape[0]
                rows += x.shape[0]
""",
        """.item() * loader.batch_size
                rows += loader.batch_size
""",
    ),
    "not divided by the number of all rows": ("loop", "rows += x.shape[0]", "rows = x.shape[0]"),
    "multiplied by rows of the part / micro_batch": ("loop", "(part_x.shape[0] / rows)", "(part_x.shape[0] / size)"),
}


@pytest.mark.parametrize("message", list(MESSAGES))
def test_a_message_names_the_mistake(message: str) -> None:
    names = solved(LESSON)
    cells = {cell.grade_id: cell.source for cell in cells_that_define(LESSON, tests=True) if cell.nbgrader}
    answer, right, wrong = MESSAGES[message]
    assert cells[answer].count(right) == 1
    exec(cells[answer].replace(right, wrong), names)
    with pytest.raises(AssertionError) as caught:
        exec(cells[f"test_{answer}"], names)
    assert message in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_loss_that_is_computed_twice_for_a_part_costs_nothing() -> None:
    names = solved(LESSON)
    cells = {cell.grade_id: cell.source for cell in cells_that_define(LESSON, tests=True) if cell.nbgrader}
    right = (
        "loss = loss_function(model(part_x), part_y) * (part_x.shape[0] / rows)",
        "total += loss.item()",
    )
    other = (
        "output, share = model(part_x), part_x.shape[0] / rows\n        loss = loss_function(output, part_y) * share",
        "total += loss_function(output, part_y).item() * share",
    )
    source = cells["loop"]
    for line, instead in zip(right, other, strict=True):
        assert source.count(line) == 1
        source = source.replace(line, instead)
    exec(source, names)
    exec(cells["test_loop"], names)


def state_for_torch(model: Any) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(tensor.data) for name, tensor in model.state_dict().items()}


def step_of_torch(model: torch.nn.Module, optimizer: torch.optim.Optimizer, x: Any, y: Any) -> float:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(y))
    loss.backward()
    optimizer.step()
    return loss.item()


def test_a_training_with_all_parts_gives_the_numbers_of_pytorch(engine: dict[str, Any]) -> None:
    points = np.random.default_rng(1).normal(size=(50, 5))
    labels = points[:, :3].argmax(axis=1)
    engine["manual_seed"](2)
    model = engine["Sequential"](
        engine["LinearLayer"](5, 8), engine["BatchNorm1d"](8), engine["GELU"](), engine["LinearLayer"](8, 3)
    )
    theirs: Any = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Linear(8, 3)
    ).double()
    theirs.load_state_dict(state_for_torch(model))
    options: dict[str, Any] = {"lr": 0.02, "betas": (0.8, 0.99), "weight_decay": 0.01}
    optimizer = engine["Adam"](model.parameters(), **options)
    theirs_optimizer = torch.optim.Adam(theirs.parameters(), **options)
    loader = engine["DataLoader"](engine["TensorDataset"](points, labels), batch_size=16, shuffle=True)
    ours, expected = [], []
    for _ in range(5):
        for x, y in loader:
            ours.append(engine["train_step"](model, optimizer, engine["cross_entropy"], x, y))
            expected.append(step_of_torch(theirs, theirs_optimizer, x.data, y))
    assert len(ours) == 20
    assert np.mean(ours[-4:]) < 0.9 * np.mean(ours[:4]), "this training gets nowhere"
    np.testing.assert_allclose(ours, expected, rtol=1e-6)
    for name, tensor in theirs.state_dict().items():
        np.testing.assert_allclose(model.state_dict()[name].data, tensor.numpy(), rtol=1e-6, atol=1e-9)
    theirs.eval()
    held_out = engine["evaluate"](model, loader, engine["cross_entropy"])
    right = torch.nn.functional.cross_entropy(theirs(torch.tensor(points)), torch.tensor(labels)).item()
    assert held_out == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize("options", [{"momentum": 0.9}, {"weight_decay": 0.1}, {"momentum": 0.5, "weight_decay": 0.2}])
def test_the_given_sgd_is_that_of_pytorch(solution: dict[str, Any], options: dict[str, float]) -> None:
    start, random = np.array([1.0, -2.0, 0.5]), np.random.default_rng(2)
    w, theirs = solution["Parameter"](start.copy()), torch.tensor(start, requires_grad=True)
    optimizer, theirs_optimizer = solution["SGD"]([w], lr=0.1, **options), torch.optim.SGD([theirs], lr=0.1, **options)
    for _ in range(5):
        gradient = random.normal(size=3)
        w.grad, theirs.grad = solution["MiniTensor"](gradient), torch.tensor(gradient)
        optimizer.step()
        theirs_optimizer.step()
    np.testing.assert_allclose(w.data, theirs.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_takes_what_that_of_pytorch_takes(
    solution: dict[str, Any], shape: tuple[int, ...], bias: bool
) -> None:
    layer, theirs = solution["LinearLayer"](4, 2, bias=bias), torch.nn.Linear(4, 2, bias=bias).double()
    theirs.load_state_dict(state_for_torch(layer))
    values = np.random.default_rng(3).normal(size=shape)
    x, x_theirs = solution["MiniTensor"](values, requires_grad=True), torch.tensor(values, requires_grad=True)
    y, y_theirs = layer(x), theirs(x_theirs)
    cotangent = np.random.default_rng(4).normal(size=tuple(y_theirs.shape))
    y.backward(cotangent)
    y_theirs.backward(torch.tensor(cotangent))
    assert x_theirs.grad is not None
    np.testing.assert_allclose(y.data, y_theirs.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(x.grad.data, x_theirs.grad.numpy(), rtol=1e-12)
    for ours, parameter in zip(layer.parameters(), theirs.parameters(), strict=True):
        assert parameter.grad is not None
        np.testing.assert_allclose(ours.grad.data, parameter.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_that_of_pytorch(solution: dict[str, Any], approximate: str) -> None:
    values = np.linspace(-6, 6, 25)
    x, theirs = solution["MiniTensor"](values, requires_grad=True), torch.tensor(values, requires_grad=True)
    y, y_theirs = solution["GELU"](approximate)(x), torch.nn.functional.gelu(theirs, approximate=approximate)
    y.backward(values)
    y_theirs.backward(torch.tensor(values))
    assert theirs.grad is not None
    np.testing.assert_allclose(y.data, y_theirs.detach().numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(x.grad.data, theirs.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_a_loss_of_two_shapes_warns_as_in_pytorch(solution: dict[str, Any]) -> None:
    column, row = np.arange(3.0).reshape(3, 1), np.arange(3.0)
    with pytest.warns(UserWarning, match="different to the input size"):
        ours = solution["mse_loss"](solution["MiniTensor"](column), row).item()
    with pytest.warns(UserWarning, match="different to the input size"):
        theirs = torch.nn.functional.mse_loss(torch.tensor(column), torch.tensor(row)).item()
    assert ours == pytest.approx(theirs)


def test_a_module_refuses_what_that_of_pytorch_refuses(solution: dict[str, Any]) -> None:
    module, parameter = solution["Module"], solution["Parameter"]

    class TooEarly(module):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self.weight = parameter(1.0)

    with pytest.raises(AttributeError, match=r"cannot assign parameter before Module.__init__\(\) call"):
        TooEarly()
    layer = solution["LinearLayer"](2, 1)
    with pytest.raises(TypeError, match="cannot assign 'MiniTensor' as parameter 'weight'"):
        layer.weight = layer.weight * 2
    with pytest.raises(NotImplementedError, match='missing the required "forward" function'):
        module()(1.0)
    layer.bias = None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


def test_a_deep_copy_of_a_model_learns_by_itself(solution: dict[str, Any]) -> None:
    layer = solution["LinearLayer"](2, 1)
    loss = layer(np.ones((3, 2))).sum()
    twin = copy.deepcopy(layer)
    twin(np.ones((3, 2))).sum().backward()
    assert layer.weight.grad is None
    np.testing.assert_allclose(twin.weight.grad.data, 3.0)
    loss.backward()
    np.testing.assert_allclose(layer.weight.grad.data, 3.0)


def test_a_step_between_forward_and_backward_is_noticed(engine: dict[str, Any]) -> None:
    """Optimizers write in a way that the version counters of lesson 09 notice, as PyTorch's do."""
    weight = engine["Parameter"]([2.0, 3.0])
    loss = (weight * weight).sum()
    weight.grad = engine["MiniTensor"]([1.0, 1.0])
    engine["Adam"]([weight], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
