"""Plants classic mistakes in the solutions of lesson 16: each costs points where it was made.

Some cost points in later cells too, because the model is built from the layers. Every style trains like PyTorch
from the same weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, Planted, secret_by_name, solved, styles

pytestmark = pytest.mark.usefixtures("one_thread")

LESSON = "16_capstone"

SCORES = "q @ k.transpose(-1, -2) / math.sqrt(size)"
ALLOWED = "np.tril(np.ones((length, length), dtype=bool))"
MASKED = "where(allowed, scores, -np.inf).softmax(-1)"
RAISED = "np.exp((scores - scores.max()) / temperature)"
PLANTED = [
    Planted(
        "only the last of several gradients counts",
        "",
        "        np.add.at(gradient, ctx.ids, grad)\n",
        "        gradient[ctx.ids] += grad\n",
        ("test_embedding", "test_model"),
    ),
    Planted(
        "the gradients of a row are averaged",
        "",
        "        return gradient\n",
        "        return gradient / np.maximum(np.bincount(ctx.ids.ravel(), minlength=ctx.shape[0]), 1)[:, None]\n",
        ("test_embedding", "test_model"),
    ),
    Planted(
        "the ids of the last lookup are kept for all",
        "",
        "        ctx.ids, ctx.shape = ids, table.shape\n        return table[ids]\n        ### END SOLUTION\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n",
        "        Lookup.ids, ctx.shape = ids, table.shape\n        return table[ids]\n        ### END SOLUTION\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        ### BEGIN SOLUTION\n        ctx.ids = Lookup.ids\n",
        ("test_embedding", "test_model"),
    ),
    Planted(
        "no gradient through the mean",
        "",
        "        centered = x - x.mean(-1, True)\n",
        "        centered = x - x.detach().mean(-1, True)\n",
        ("test_layer_norm", "test_model"),
    ),
    Planted(
        "no gradient through the variance",
        "",
        "        variance = (centered * centered).mean(-1, True)\n",
        "        variance = (centered * centered).mean(-1, True).detach()\n",
        ("test_layer_norm", "test_model"),
    ),
    Planted(
        "the unbiased variance",
        "",
        "        variance = (centered * centered).mean(-1, True)\n",
        "        variance = (centered * centered).sum(-1, True) / max(x.shape[-1] - 1, 1)\n",
        ("test_layer_norm",),
    ),
    Planted(
        "the square of the mean is subtracted",
        "",
        "        variance = (centered * centered).mean(-1, True)\n",
        "        variance = (x * x).mean(-1, True) - x.mean(-1, True) ** 2\n",
        ("test_layer_norm",),
    ),
    Planted(
        "normalized over the rows",
        "",
        "        centered = x - x.mean(-1, True)\n        variance = (centered * centered).mean(-1, True)\n",
        "        centered = x - x.mean(0, True)\n        variance = (centered * centered).mean(0, True)\n",
        ("test_layer_norm", "test_model"),
    ),
    Planted(
        "eps is always the same",
        "",
        "(variance + self.eps).sqrt()",
        "(variance + 1e-5).sqrt()",
        ("test_layer_norm",),
    ),
    Planted(
        "eps beside the root",
        "",
        "(variance + self.eps).sqrt()",
        "(variance.sqrt() + self.eps)",
        ("test_layer_norm",),
    ),
    Planted("the scores are not divided", "", SCORES, "q @ k.transpose(-1, -2)", ("test_attention", "test_heads")),
    Planted(
        "the scores are divided by the size",
        "",
        SCORES,
        SCORES.replace("math.sqrt(size)", "size"),
        ("test_attention", "test_heads"),
    ),
    Planted(
        "the scores are divided by the root of the length",
        "",
        SCORES,
        SCORES.replace("size", "length"),
        ("test_attention", "test_heads"),
    ),
    Planted(
        "queries and keys change places",
        "",
        SCORES,
        "k @ q.transpose(-1, -2) / math.sqrt(size)",
        ("test_attention", "test_heads"),
    ),
    Planted("everybody sees everything", "", MASKED, "scores.softmax(-1)", ("test_attention", "test_heads")),
    Planted(
        "the mask comes after the softmax",
        "",
        MASKED,
        "where(allowed, scores.softmax(-1), 0.0)",
        ("test_attention", "test_heads"),
    ),
    Planted("the mask is only a large number", "", MASKED, MASKED.replace("-np.inf", "-1e9"), ("test_attention",)),
    Planted(
        "a large number is added to the future",
        "",
        MASKED,
        "(scores + (~allowed) * -1e9).softmax(-1)",
        ("test_attention",),
    ),
    Planted(
        "the past is masked",
        "",
        f"{ALLOWED}\n    weights",
        f"{ALLOWED.replace('tril', 'triu')}\n    weights",
        ("test_attention", "test_heads", "test_model"),
    ),
    Planted(
        "a position does not see itself",
        "",
        f"{ALLOWED}\n    weights",
        f"{ALLOWED[:-1]}, -1)\n    weights",
        ("test_attention", "test_heads", "test_model"),
    ),
    Planted(
        "softmax down the columns",
        "",
        MASKED,
        MASKED.replace("softmax(-1)", "softmax(-2)"),
        ("test_attention", "test_heads"),
    ),
    Planted(
        "the weights have no gradient",
        "",
        "    return weights @ v, weights\n",
        "    return weights.detach() @ v, weights\n",
        ("test_attention", "test_heads", "test_model"),
    ),
    Planted(
        "heads are cut by reshape alone",
        "",
        "        q, k, v = (parts[:, :, number].transpose(1, 2) for number in range(3))\n",
        "        shape = rows, self.heads, length, self.width // self.heads\n"
        "        q, k, v = (parts[:, :, number].reshape(shape) for number in range(3))\n",
        ("test_heads",),
    ),
    Planted(
        "heads are put together by reshape alone",
        "",
        "output.transpose(1, 2).reshape(rows, length, self.width)",
        "output.reshape(rows, length, self.width)",
        ("test_heads",),
    ),
    Planted(
        "queries, keys and values are interleaved",
        "",
        "reshape(rows, length, 3, self.heads, self.width // self.heads)\n",
        "reshape(rows, length, self.heads, self.width // self.heads, 3).transpose(-1, 2).transpose(-1, -2)\n",
        ("test_heads",),
    ),
    Planted(
        "keys and values change places", "", "        q, k, v = (parts", "        q, v, k = (parts", ("test_heads",)
    ),
    Planted(
        "the pattern of the first call",
        "",
        "        self.pattern = weights.data\n",
        "        self.pattern = weights.data if self.pattern is None else self.pattern\n",
        ("test_heads",),
    ),
    Planted(
        "the projection is left out",
        "",
        "return self.project(output.transpose(1, 2).reshape(rows, length, self.width))",
        "return output.transpose(1, 2).reshape(rows, length, self.width)",
        ("test_heads",),
    ),
    Planted(
        "no way around the attention",
        "",
        "        x = x + self.attention(self.norm1(x))\n",
        "        x = self.attention(self.norm1(x))\n",
        ("test_model",),
    ),
    Planted(
        "the norm comes last",
        "",
        "        x = x + self.attention(self.norm1(x))\n",
        "        x = self.norm1(x + self.attention(x))\n",
        ("test_model",),
    ),
    Planted(
        "the second half starts from the input",
        "",
        "        x = x + self.attention(self.norm1(x))\n        return x + self.mlp(self.norm2(x))\n",
        "        return x + self.attention(self.norm1(x)) + self.mlp(self.norm2(x))\n",
        ("test_model",),
    ),
    Planted(
        "the norms change places",
        "",
        "        x = x + self.attention(self.norm1(x))\n        return x + self.mlp(self.norm2(x))\n",
        "        x = x + self.attention(self.norm2(x))\n        return x + self.mlp(self.norm1(x))\n",
        ("test_model",),
    ),
    Planted("one norm for both halves", "", "self.mlp(self.norm2(x))\n", "self.mlp(self.norm1(x))\n", ("test_model",)),
    Planted(
        "places are forgotten",
        "",
        "        x = self.token(ids) + self.place(np.arange(length))\n",
        "        x = self.token(ids)\n",
        ("test_model",),
    ),
    Planted(
        "all letters stand in the first place",
        "",
        "self.place(np.arange(length))",
        "self.place(np.zeros(length, dtype=int))",
        ("test_model",),
    ),
    Planted(
        "the last norm is forgotten",
        "",
        "self.head(self.norm(self.blocks(x)))",
        "self.head(self.blocks(x))",
        ("test_model",),
    ),
    Planted(
        "the blocks are left out",
        "",
        "self.head(self.norm(self.blocks(x)))",
        "self.head(self.norm(x))",
        ("test_model",),
    ),
    Planted(
        "a full context is refused",
        "",
        "        if length > self.context:\n",
        "        if length >= self.context:\n",
        ("test_model", "test_generate"),
    ),
    Planted("the scores are multiplied", "", RAISED, RAISED.replace("/ temp", "* temp"), ("test_generate",)),
    Planted("the scores may overflow", "", RAISED, "np.exp(scores / temperature)", ("test_generate",)),
    Planted(
        "the temperature divides the chances",
        "",
        RAISED,
        "np.exp(scores - scores.max()) / temperature",
        ("test_generate",),
    ),
    Planted(
        "other random numbers", "", "int(generator.choice(", "int(np.random.default_rng().choice(", ("test_generate",)
    ),
    Planted(
        "greedy is a very low temperature",
        "",
        "    if temperature == 0:\n        return int(np.argmax(scores))\n",
        "    temperature = temperature or 1e-9\n",
        ("test_generate",),
    ),
    Planted(
        "a negative temperature is let through",
        "",
        '    if temperature < 0:\n        raise ValueError(f"a temp',
        '    if temperature < -9:\n        raise ValueError(f"a temp',
        ("test_generate",),
    ),
    Planted(
        "the scores are changed in place",
        "",
        f"    raised = {RAISED}\n",
        f"    scores -= scores.max()\n    raised = {RAISED}\n",
        ("test_generate",),
    ),
    Planted("the best score at any position", "", ".data[0, -1]", ".data[0].max(axis=0)", ("test_generate",)),
    Planted("the scores at the first position", "", ".data[0, -1]", ".data[0, 0]", ("test_generate",)),
    Planted(
        "the first letters of the context", "", "ids[-model.context :]", "ids[: model.context]", ("test_generate",)
    ),
    Planted(
        "writing in training mode",
        "",
        "    model.eval()\n    try:\n        with no_grad():\n            for _",
        "    try:\n        with no_grad():\n            for _",
        ("test_generate",),
    ),
    Planted(
        "the temperature does not reach the draw",
        "",
        "ids.append(choose(scores, generator, temperature))",
        "ids.append(choose(scores, generator))",
        ("test_generate",),
    ),
    Planted(
        "only a list can be continued",
        "",
        "    ids, before = [int(number) for number in ids], model.training",
        "    ids, before = ids[:], model.training",
        ("test_generate",),
    ),
    Planted(
        "writing is recorded",
        "",
        "        with no_grad():\n            for _",
        "        if True:\n            for _",
        ("test_generate",),
    ),
    Planted(
        "training goes on in any case",
        "",
        "        model.train(before)\n    return ids",
        "        model.train()\n    return ids",
        ("test_generate",),
    ),
    Planted(
        "an error leaves the model in evaluation mode",
        "",
        "    finally:\n        model.train(before)\n    return ids",
        "    except ZeroDivisionError:\n        pass\n    model.train(before)\n    return ids",
        ("test_generate",),
    ),
    Planted(
        "the list is written on",
        "",
        "    ids, before = [int(number) for number in ids], model.training\n",
        "    before = model.training\n",
        ("test_generate",),
    ),
    Planted(
        "a second backward adds to the first",
        "",
        "        gradient = np.zeros(ctx.shape)\n",
        "        ctx.buffer = gradient = getattr(ctx, 'buffer', np.zeros(ctx.shape))\n",
        ("test_embedding",),
    ),
    Planted(
        "the result of add.at is returned",
        "",
        "        np.add.at(gradient, ctx.ids, grad)\n        return gradient\n",
        "        return np.add.at(gradient, ctx.ids, grad)\n",
        ("test_embedding", "test_model"),
    ),
    Planted(
        "the weights are returned detached",
        "",
        "    return weights @ v, weights\n",
        "    return weights @ v, weights.detach()\n",
        ("test_attention",),
    ),
    Planted(
        "only the first block is used",
        "",
        "self.head(self.norm(self.blocks(x)))",
        "self.head(self.norm(getattr(self.blocks, '0')(x)))",
        ("test_model",),
    ),
    Planted(
        "each block starts from the letters",
        "",
        "        return self.head(self.norm(self.blocks(x)))\n",
        "        for block in self.blocks:\n            y = block(x)\n        return self.head(self.norm(y))\n",
        ("test_model",),
    ),
    Planted(
        "the scores are divided by the root of the width",
        "",
        "        q, k, v = (parts[:, :, number].transpose(1, 2) for number in range(3))\n",
        "        q, k, v = (parts[:, :, number].transpose(1, 2) for number in range(3))\n"
        "        q = q / math.sqrt(self.heads)\n",
        ("test_heads",),
    ),
    Planted(
        "the temperature is not used",
        "",
        RAISED,
        "np.exp(scores - scores.max())",
        ("test_generate",),
    ),
    Planted(
        "no case for temperature 0",
        "",
        "    if temperature == 0:\n        return int(np.argmax(scores))\n",
        "",
        ("test_generate",),
    ),
    Planted(
        "only the model itself is in evaluation mode",
        "",
        "    model.eval()\n    try:\n        with no_grad():\n            for _",
        "    model.training = False\n    try:\n        with no_grad():\n            for _",
        ("test_generate",),
    ),
    Planted(
        "a very low number in place of minus infinity",
        "",
        MASKED,
        MASKED.replace("-np.inf", "-1e30"),
        ("test_attention",),
    ),
    Planted(
        "the second sum adds to the input",
        "",
        "        x = x + self.attention(self.norm1(x))\n        return x + self.mlp(self.norm2(x))\n",
        "        return x + self.mlp(self.norm2(x + self.attention(self.norm1(x))))\n",
        ("test_model",),
    ),
    Planted(
        "the places end at the context",
        "",
        "self.place(np.arange(length))",
        "self.place(np.arange(self.context - length, self.context))",
        ("test_model",),
    ),
    Planted(
        "a NumPy number at temperature 0",
        "",
        "        return int(np.argmax(scores))\n",
        "        return np.argmax(scores)\n",
        ("test_generate",),
    ),
    Planted(
        "an array in place of a list",
        "",
        "        model.train(before)\n    return ids\n",
        "        model.train(before)\n    return np.array(ids)\n",
        ("test_generate",),
    ),
    Planted(
        "a list of NumPy numbers",
        "",
        "        model.train(before)\n    return ids\n",
        "        model.train(before)\n    return list(np.array(ids))\n",
        ("test_generate",),
    ),
    Planted(
        "an embedding wants a number at least",
        "",
        "        return table[ids]\n",
        "        return table[ids].reshape(*ids.shape[:-1], -1, table.shape[1])\n",
        ("test_embedding",),
    ),
    Planted(
        "the gradient of no ids is an error",
        "",
        "        np.add.at(gradient, ctx.ids, grad)\n",
        "        np.add.at(gradient, ctx.ids.ravel(), grad.reshape(ctx.ids.size, -1))\n",
        ("test_embedding",),
    ),
    Planted(
        "the gradient has the shape of the rows",
        "",
        "        gradient = np.zeros(ctx.shape)\n",
        "        gradient = np.zeros_like(grad)\n",
        ("test_embedding", "test_model"),
    ),
    Planted("no eps", "", "(variance + self.eps).sqrt()", "variance.sqrt()", ("test_layer_norm",)),
    Planted(
        "the bias is scaled as well",
        "",
        "(variance + self.eps).sqrt() * self.weight + self.bias\n",
        "(variance + self.eps).sqrt() * self.weight + self.bias * self.weight\n",
        ("test_layer_norm",),
    ),
    Planted(
        "normalized over axis 1",
        "",
        "        centered = x - x.mean(-1, True)\n        variance = (centered * centered).mean(-1, True)\n",
        "        axis = min(1, len(x.shape) - 1)\n"
        "        centered = x - x.mean(axis, True)\n        variance = (centered * centered).mean(axis, True)\n",
        ("test_layer_norm", "test_model"),
    ),
    Planted(
        "no gradient through both",
        "",
        "        centered = x - x.mean(-1, True)\n        variance = (centered * centered).mean(-1, True)\n",
        "        values = x.detach()\n        centered = x - values.mean(-1, True)\n"
        "        variance = ((values - values.mean(-1, True)) ** 2).mean(-1, True)\n",
        ("test_layer_norm", "test_model"),
    ),
    Planted(
        "the maximum is not subtracted",
        "",
        f"    weights = {MASKED}\n",
        "    raised = where(allowed, scores, -np.inf).exp()\n    weights = raised / raised.sum(-1, True)\n",
        ("test_attention",),
    ),
    Planted(
        "the first two axes of the pattern change places",
        "",
        "        self.pattern = weights.data\n",
        "        self.pattern = np.stack([weights.data[:, head] for head in range(self.heads)])\n",
        ("test_heads",),
    ),
    Planted(
        "the norm comes before the blocks",
        "",
        "self.head(self.norm(self.blocks(x)))",
        "self.head(self.blocks(self.norm(x)))",
        ("test_model",),
    ),
    Planted(
        "places are counted from 1",
        "",
        "self.place(np.arange(length))",
        "self.place(np.arange(1, length + 1) % self.context)",
        ("test_model",),
    ),
    Planted(
        "a letter's number is its place",
        "",
        "self.place(np.arange(length))",
        "self.place(ids % self.context)",
        ("test_model",),
    ),
    Planted(
        "chances in place of scores",
        "",
        "self.head(self.norm(self.blocks(x)))",
        "self.head(self.norm(self.blocks(x))).softmax(-1)",
        ("test_model",),
    ),
    Planted(
        "writing with other random numbers",
        "",
        "choose(scores, generator, temperature))",
        "choose(scores, np.random.default_rng(), temperature))",
        ("test_generate",),
    ),
    Planted(
        "writing with the same random numbers each time",
        "",
        "    ids, before = [int(number) for number in ids], model.training\n",
        "    ids, before = [int(number) for number in ids], model.training\n    generator = np.random.default_rng(1)\n",
        ("test_generate",),
    ),
    Planted(
        "the entries of an array stay NumPy numbers",
        "",
        "    ids, before = [int(number) for number in ids], model.training\n",
        "    ids, before = list(ids), model.training\n",
        ("test_generate",),
    ),
    Planted(
        "the size is that of axis 1",
        "",
        "    length, size = q.shape[-2:]\n",
        "    length, size = q.shape[-2], q.shape[1]\n",
        ("test_attention", "test_heads"),
    ),
    Planted(
        "no root of the variance", "", "(variance + self.eps).sqrt()", "(variance + self.eps)", ("test_layer_norm",)
    ),
    Planted(
        "no weight and no bias",
        "",
        "(variance + self.eps).sqrt() * self.weight + self.bias\n",
        "(variance + self.eps).sqrt()\n",
        ("test_layer_norm", "test_model"),
    ),
    Planted(
        "no weight",
        "",
        "(variance + self.eps).sqrt() * self.weight + self.bias\n",
        "(variance + self.eps).sqrt() + self.bias\n",
        ("test_layer_norm", "test_model"),
    ),
    Planted(
        "no bias",
        "",
        "(variance + self.eps).sqrt() * self.weight + self.bias\n",
        "(variance + self.eps).sqrt() * self.weight\n",
        ("test_layer_norm",),
    ),
    Planted("no norm before the attention", "", "self.attention(self.norm1(x))", "self.attention(x)", ("test_model",)),
    Planted("no norm before the layers", "", "self.mlp(self.norm2(x))", "self.mlp(x)", ("test_model",)),
    Planted(
        "the mode is asked too late",
        "",
        "    model.eval()\n    try:\n        with no_grad():\n            for _",
        "    model.eval()\n    before = model.training\n    try:\n        with no_grad():\n            for _",
        ("test_generate",),
    ),
    Planted("only the last letter is seen", "", "ids[-model.context :]", "ids[-1:]", ("test_generate",)),
    Planted(
        "a letter less than the context",
        "",
        "ids[-model.context :]",
        "ids[-model.context + 1 :]",
        ("test_generate",),
    ),
    Planted(
        "the statistics of training are used in evaluation",
        "",
        "        variance = (centered * centered).mean(-1, True)\n",
        "        variance = (centered * centered).mean(-1, True)\n"
        "        if self.training:\n            self.kept = variance.detach()\n"
        "        variance = variance if self.training else getattr(self, 'kept', variance)\n",
        ("test_layer_norm",),
    ),
    Planted(
        "the largest score is subtracted after the division",
        "",
        RAISED,
        "np.exp(scores / temperature - scores.max())",
        ("test_generate",),
    ),
    Planted(
        "a temperature below 1 counts as 0",
        "",
        "    if temperature == 0:\n",
        "    if int(temperature) == 0:\n",
        ("test_generate",),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 6
    visible = True
    examples = 20
    own_examples = True


def test_visible_tests_share_no_name_with_hidden_ones() -> None:
    assert secret_by_name(LESSON) == set()


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def lesson(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


class TwinBlock(torch.nn.Module):
    """PyTorch's own layers, under the names of the lesson's parameters."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.heads = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width), heads
        self.attention = torch.nn.ModuleDict(
            {"qkv": torch.nn.Linear(width, 3 * width), "project": torch.nn.Linear(width, width)}
        )
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU("tanh"), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cut = [
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.attention["qkv"](self.norm1(x)).chunk(3, dim=-1)
        ]
        found = torch.nn.functional.scaled_dot_product_attention(*cut, is_causal=True)
        x = x + self.attention["project"](found.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Twin(torch.nn.Module):
    def __init__(self, vocabulary: int, context: int, width: int, heads: int, depth: int) -> None:
        super().__init__()
        self.token, self.place = torch.nn.Embedding(vocabulary, width), torch.nn.Embedding(context, width)
        self.blocks = torch.nn.Sequential(*[TwinBlock(width, heads) for _ in range(depth)])
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.token(ids) + self.place.weight[: ids.shape[1]])))


def pair(lesson: dict[str, Any], **sizes: int) -> tuple[Any, Any]:
    """The lesson's model, and PyTorch's with the same weights."""
    lesson["manual_seed"](1)
    model, theirs = lesson["CharTransformer"](**sizes), Twin(**sizes).double()
    theirs.load_state_dict({name: torch.tensor(tensor.data) for name, tensor in model.state_dict().items()})
    return model, theirs


def test_all_gradients_of_the_model_are_those_of_pytorch(lesson: dict[str, Any]) -> None:
    model, theirs = pair(lesson, vocabulary=7, context=6, width=12, heads=3, depth=2)
    random = np.random.default_rng(2)
    ids, cotangent = random.integers(0, 7, size=(3, 5)), random.normal(size=(3, 5, 7))
    scores, expected = model(ids), theirs(torch.tensor(ids))
    np.testing.assert_allclose(scores.data, expected.detach().numpy(), atol=1e-12)
    scores.backward(cotangent)
    expected.backward(torch.tensor(cotangent))
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    assert set(gradients) == {name for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.grad.data, gradients[name].numpy(), atol=1e-11, err_msg=name)


def test_a_training_follows_that_of_pytorch(lesson: dict[str, Any]) -> None:
    """The text counts, with a mistake now and then, and is learned in forty steps."""
    model, theirs = pair(lesson, vocabulary=6, context=8, width=12, heads=2, depth=1)
    random = np.random.default_rng(3)
    text = (np.arange(400) + (random.random(400) < 0.05)) % 6
    optimizer, theirs_optimizer = (
        kind(m.parameters(), lr=0.02) for kind, m in ((lesson["Adam"], model), (torch.optim.Adam, theirs))
    )
    losses, expected = [], []
    for _ in range(40):
        starts = random.integers(0, len(text) - 8, size=(6, 1))
        x, y = text[starts + np.arange(8)], text[starts + np.arange(1, 9)]
        losses.append(lesson["train_step"](model, optimizer, lesson["next_letter_loss"], x, y))
        theirs_optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(theirs(torch.tensor(x)).flatten(0, 1), torch.tensor(y).flatten())
        loss.backward()
        theirs_optimizer.step()
        expected.append(loss.item())
    np.testing.assert_allclose(losses, expected, rtol=1e-7)
    assert np.mean(losses[-5:]) < 0.5 * losses[0], "this training gets nowhere"
    written = lesson["generate"](model, [2], 12, np.random.default_rng(0), temperature=0)
    assert np.mean(np.diff(written) % 6 == 1) > 0.8, "it should have learned to count"


def test_a_checkpoint_around_a_block_changes_no_bit(lesson: dict[str, Any]) -> None:
    lesson["manual_seed"](4)
    block, x = lesson["Block"](8, 2), np.random.default_rng(5).normal(size=(2, 5, 8))
    found = []
    for way in (block, lambda x: lesson["checkpoint"](block, x)):
        block.zero_grad()
        leaf = lesson["MiniTensor"](x, requires_grad=True)
        way(leaf).backward(np.random.default_rng(6).normal(size=x.shape))
        found.append([leaf.grad.data, *(parameter.grad.data for parameter in block.parameters())])
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))


def test_the_layers_refuse_what_those_of_pytorch_refuse(lesson: dict[str, Any]) -> None:
    layer, theirs = lesson["Embedding"](4, 2), torch.nn.Embedding(4, 2)
    for wrong in ([4], [-1]):
        with pytest.raises(IndexError, match="index out of range in self"):
            layer(wrong)
        with pytest.raises(IndexError, match="index out of range in self"):
            theirs(torch.tensor(wrong))
    with pytest.raises(ValueError, match="cannot be cut into 3 heads"):
        lesson["CausalSelfAttention"](8, 3)
