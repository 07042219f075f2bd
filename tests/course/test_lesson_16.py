"""Plants classic mistakes in the solutions of lesson 16: each costs points where it was made.

Some cost points in later cells too, because the model is built from the layers. Every style trains like PyTorch
from the same weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, solved, styles

LESSON = "16_capstone"


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 6
    visible = True
    examples = 20
    own_examples = True


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
