"""Plants classic mistakes in the solutions of lesson 11: each costs points where it was made, and on no other cell."""

from __future__ import annotations

import pytest

from tests.course.planting import Planted, marks, untrue_examples

LESSON = "11_training"

PLANTED = [
    Planted(
        "a shared parameter comes twice",
        "",
        "            if parameter not in seen:\n",
        "            if True:\n",
        ("test_module",),
    ),
    Planted(
        "the mode does not reach the modules inside",
        "",
        "    for module in self.modules():\n        module.training = mode\n",
        "    self.training = mode\n",
        ("test_module", "test_loop"),
    ),
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
    Planted(
        "a state is loaded by putting its tensors in",
        "",
        "        overwrite(tensor, state[name].data)\n",
        "        tensor.data = state[name].data\n",
        ("test_module",),
    ),
    Planted(
        "a shape that differs is stretched",
        "",
        "        if own[name].shape != state[name].shape:\n",
        "        if own[name].ndim != state[name].ndim:\n",
        ("test_module",),
    ),
    Planted("dropout does not scale", "", "x * (kept / (1 - self.p))", "x * (kept * 1.0)", ("test_dropout",)),
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
        "one variance for both purposes",
        "",
        "variance.data * rows / (rows - 1)",
        "variance.data",
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
        "the last batch is lost",
        "",
        "        return whole + (rest > 0 and not self.drop_last)\n",
        "        return whole\n",
        ("test_loader", "test_loop"),
    ),
    Planted(
        "the last batch is never dropped",
        "",
        "        return whole + (rest > 0 and not self.drop_last)\n",
        "        return whole + (rest > 0)\n",
        ("test_loader",),
    ),
    Planted(
        "one order for all loops",
        "",
        "        order = self.generator.permutation(count) if self.shuffle else np.arange(count)\n",
        '        if "order" not in vars(self):\n'
        "            self.order = self.generator.permutation(count) if self.shuffle else np.arange(count)\n"
        "        order = self.order\n",
        ("test_loader",),
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
        "        total += loss.item()\n    optimizer.step()\n",
        "        total += loss.item()\n        optimizer.step()\n",
        ("test_loop",),
    ),
    Planted(
        "the mean of the means",
        "",
        "loss_function(model(x), y).item() * x.shape[0]\n                rows += x.shape[0]\n",
        "loss_function(model(x), y).item()\n                rows += 1\n",
        ("test_loop",),
    ),
    Planted("evaluation in training mode", "", "    model.eval()\n    try", "    try", ("test_loop",)),
    Planted(
        "evaluation is recorded",
        "",
        "        with no_grad():\n            for x, y in loader",
        "        if True:\n            for x, y in loader",
        ("test_loop",),
    ),
    Planted(
        "training goes on in any case", "", "        model.train(before)\n", "        model.train()\n", ("test_loop",)
    ),
]


def test_the_solution_has_full_marks() -> None:
    points = marks(LESSON).points
    assert len(points) == 6
    assert all(earned == most for earned, most in points.values())


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_mistake_costs_points_where_it_was_made(planted: Planted) -> None:
    assert marks(LESSON, planted).lost == set(planted.costs)


def test_examples_in_the_docstrings_are_true() -> None:
    wrong, tried = untrue_examples(LESSON)
    assert wrong == []
    assert tried >= 20
