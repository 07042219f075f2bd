"""Plants classic mistakes in the solutions of lesson 15: each costs points where it was made.

Some cost points in later cells too, which build on the earlier ones. Forward mode itself is compared with PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, Planted, secret_by_name, solved, styles

LESSON = "15_forward_mode"

SINGLE = "terms = [slope * dual.tangent for slope, dual in pairs if dual.tangent is not None]"
BOTH_PARTS = "    (a, da), (b, db) = parts_of(a, tag), parts_of(b, tag)\n    return Tagged(a * b"
PLANTED = [
    Planted(
        "only the last input counts",
        "",
        SINGLE,
        SINGLE + "[-1:]",
        ("test_push_forward", "test_slopes", "test_jvp", "test_jacobians"),
    ),
    Planted(
        "the slope is forgotten",
        "",
        SINGLE,
        SINGLE.replace("slope * dual.tangent", "dual.tangent"),
        ("test_push_forward", "test_slopes", "test_jvp", "test_jacobians"),
    ),
    Planted(
        "the tangent is not stretched",
        "",
        "    return Dual(value, np.broadcast_to(sum(terms), np.shape(value)))",
        "    return Dual(value, sum(terms))",
        ("test_push_forward",),
    ),
    Planted(
        "a tangent of 0 counts as none",
        "",
        SINGLE,
        SINGLE.replace("dual.tangent is not None", "np.any(dual.tangent)"),
        ("test_push_forward",),
    ),
    Planted(
        "a constant gets a tangent of zeros",
        "",
        "    if not terms:\n        return Dual(value)\n",
        "    if not terms:\n        return Dual(value, np.zeros(np.shape(value)))\n",
        ("test_push_forward", "test_slopes"),
    ),
    Planted(
        "the tangent is repeated, not stretched",
        "",
        "    return Dual(value, np.broadcast_to(sum(terms), np.shape(value)))",
        "    return Dual(value, np.resize(sum(terms), np.shape(value)))",
        ("test_push_forward",),
    ),
    Planted(
        "the slope of a product is a quotient, which 0 has not",
        "",
        "(b.value, a), (a.value, b))\n    ### END",
        "(a.value * b.value / a.value, a), (a.value, b))\n    ### END",
        ("test_slopes",),
    ),
    Planted(
        "the Jacobian comes from differences",
        "",
        "        columns.append(jvp(function, (x,), (direction,))[1])\n",
        "        ends = [as_dual(function(Dual(x + step * direction))).value for step in (1e-6, -1e-6)]\n"
        "        columns.append((ends[0] - ends[1]) / 2e-6)\n",
        ("test_jacobians",),
    ),
    Planted(
        "each input has a pass of its own",
        "",
        "    output = as_dual(function(*[Dual(x, tangent) for x, tangent in zip(inputs, tangents)]))\n",
        "    passes = [\n"
        "        as_dual(function(*[Dual(x, tangents[i] if i == k else None) for i, x in enumerate(inputs)]))\n"
        "        for k in range(len(inputs))\n"
        "    ]\n"
        "    moved = [output.tangent for output in passes if output.tangent is not None]\n"
        "    output = Dual(passes[-1].value, sum(moved) if moved else None)\n",
        ("test_jvp",),
    ),
    Planted(
        "an outer derivative counts as the inner one",
        "",
        "    return parts_of(function(Tagged(x, 1.0, tag)), tag)[1]\n    ### END",
        "    output = function(Tagged(x, 1.0, tag))\n    return output.tangent if tag_of(output) else 0.0\n    ### END",
        ("test_tags",),
    ),
    Planted(
        "the factors keep their own values as slopes",
        "",
        "(b.value, a), (a.value, b))\n    ### END",
        "(a.value, a), (b.value, b))\n    ### END",
        ("test_slopes", "test_jvp", "test_jacobians", "test_stack"),
    ),
    Planted(
        "only the first factor moves",
        "",
        "(b.value, a), (a.value, b))\n    ### END",
        "(b.value, a))\n    ### END",
        ("test_slopes", "test_jvp", "test_jacobians", "test_stack"),
    ),
    Planted(
        "the divisor moves with the wrong sign",
        "",
        "(-a.value / b.value**2, b)",
        "(a.value / b.value**2, b)",
        ("test_slopes",),
    ),
    Planted(
        "the divisor is not squared",
        "",
        "(-a.value / b.value**2, b)",
        "(-a.value / b.value, b)",
        ("test_slopes",),
    ),
    Planted(
        "the exponent is not lowered",
        "",
        "exponent * a.value ** (exponent - 1)",
        "exponent * a.value**exponent",
        ("test_slopes",),
    ),
    Planted(
        "the slope of a power is divided by the base",
        "",
        "exponent * a.value ** (exponent - 1)",
        "exponent * a.value**exponent / a.value",
        ("test_slopes",),
    ),
    Planted(
        "exp does without push_forward",
        "",
        "return push_forward(value, (value, a))",
        "return Dual(value, None if a.tangent is None else value * a.tangent)",
        ("test_stack",),
    ),
    Planted(
        "exp moves like its input",
        "",
        "return push_forward(value, (value, a))",
        "return push_forward(value, (a.value, a))",
        ("test_slopes",),
    ),
    Planted("log has its reciprocal forgotten", "", "(1 / a.value, a))", "(a.value, a))", ("test_slopes",)),
    Planted(
        "the slope of tanh is not squared",
        "",
        "(1 - value**2, a)",
        "(1 - value, a)",
        ("test_slopes", "test_jvp"),
    ),
    Planted("relu has slope 1 at 0", "", "1.0 * (a.value > 0)", "1.0 * (a.value >= 0)", ("test_slopes",)),
    Planted("relu has slope -1 below 0", "", "1.0 * (a.value > 0)", "np.sign(a.value)", ("test_slopes",)),
    Planted("relu lets everything pass", "", "1.0 * (a.value > 0)", "1.0", ("test_slopes",)),
    Planted(
        "a sum keeps its tangents apart",
        "",
        "    return Dual(value, a.tangent.sum(axis=dim, keepdims=keepdim))",
        "    return Dual(value, np.broadcast_to(a.tangent.sum(), value.shape))",
        ("test_jvp", "test_jacobians"),
    ),
    Planted(
        "keepdim is ignored",
        "",
        "    value = a.value.sum(axis=dim, keepdims=keepdim)\n    if a.tangent is None:\n        return Dual(value)\n"
        "    return Dual(value, a.tangent.sum(axis=dim, keepdims=keepdim))",
        "    value = a.value.sum(axis=dim)\n    if a.tangent is None:\n        return Dual(value)\n"
        "    return Dual(value, a.tangent.sum(axis=dim))",
        ("test_jvp",),
    ),
    Planted(
        "the matrix product rule is the wrong way round",
        "",
        "        terms.append(a.tangent @ b.value)\n",
        "        terms.append(b.value @ a.tangent)\n",
        ("test_jvp", "test_jacobians"),
    ),
    Planted(
        "the matrix product is pushed entry by entry",
        "",
        "    terms = []\n    if a.tangent is not None:\n        terms.append(a.tangent @ b.value)\n",
        "    return push_forward(a.value @ b.value, (b.value, a), (a.value, b))\n",
        ("test_jvp", "test_jacobians"),
    ),
    Planted(
        "the right term of a matrix product is the wrong way round",
        "",
        "        terms.append(a.value @ b.tangent)\n",
        "        terms.append(b.tangent @ a.value)\n",
        ("test_jvp",),
    ),
    Planted(
        "only the left matrix moves",
        "",
        "        terms.append(a.value @ b.tangent)\n",
        "        pass\n",
        ("test_jvp",),
    ),
    Planted(
        "a tangent of another shape is stretched in silence",
        "",
        "        if np.shape(x) != np.shape(tangent):\n",
        "        if np.size(x) < np.size(tangent):\n",
        ("test_jvp",),
    ),
    Planted(
        "only the number of axes is compared",
        "",
        "        if np.shape(x) != np.shape(tangent):\n",
        "        if np.ndim(x) != np.ndim(tangent):\n",
        ("test_jvp",),
    ),
    Planted(
        "missing tangents are not noticed",
        "",
        "    if len(inputs) != len(tangents):\n",
        "    if False:\n",
        ("test_jvp",),
    ),
    Planted(
        "a constant has the tangent None",
        "",
        "    tangent = np.zeros(output.shape) if output.tangent is None else output.tangent\n",
        "    tangent = output.tangent\n",
        ("test_jvp", "test_jacobians"),
    ),
    Planted(
        "columns are put where rows belong",
        "",
        "np.stack(columns, axis=-1).reshape(",
        "np.stack(columns, axis=0).reshape(",
        ("test_jacobians",),
    ),
    Planted(
        "a product does without push_forward, unless an input is a constant",
        "",
        "    return push_forward(a.value * b.value, (b.value, a), (a.value, b))\n    ### END",
        "    if a.tangent is None or b.tangent is None:\n"
        "        return push_forward(a.value * b.value, (b.value, a), (a.value, b))\n"
        "    return Dual(a.value * b.value, a.tangent * b.value + a.value * b.tangent)\n    ### END",
        ("test_stack",),
    ),
    Planted(
        "there are as many columns as the input has rows",
        "",
        "    for position in range(x.size):\n",
        "    for position in range(len(x) if x.ndim else 1):\n",
        ("test_jacobians",),
    ),
    Planted(
        "forward mode runs, but its result is not returned",
        "",
        "    return way(function, x)\n    ### END",
        "    way(function, x)\n    return jacobian_reverse(function, x)\n    ### END",
        ("test_jacobians",),
    ),
    Planted(
        "columns are turned, which fails for an output with two axes",
        "",
        "np.stack(columns, axis=-1).reshape(",
        "np.array(columns).T.reshape(",
        ("test_jacobians",),
    ),
    Planted(
        "columns of an output with two axes are put in a row",
        "",
        "np.stack(columns, axis=-1).reshape(",
        "np.column_stack(columns).reshape(",
        ("test_jacobians",),
    ),
    Planted(
        "gradients add up from row to row",
        "",
        "        leaf.grad = None\n        if output.requires_grad:",
        "        if output.requires_grad:",
        ("test_jacobians",),
    ),
    Planted(
        "the graph is not kept",
        "",
        "output.backward(cotangent, retain_graph=True)",
        "output.backward(cotangent)",
        ("test_jacobians",),
    ),
    Planted(
        "a constant output stops reverse mode",
        "",
        "        if output.requires_grad:\n",
        "        if True:\n",
        ("test_jacobians",),
    ),
    Planted(
        "forward mode does the work of both",
        "",
        "    leaf = MiniTensor(x, requires_grad=True)\n    output = as_tensor(function(leaf))\n",
        "    return jacobian_forward(function, x)\n",
        ("test_jacobians",),
    ),
    Planted(
        "the function is called for each row",
        "",
        "        leaf.grad = None\n        if output.requires_grad:",
        "        leaf = MiniTensor(x, requires_grad=True)\n        output = as_tensor(function(leaf))\n"
        "        if output.requires_grad:",
        ("test_jacobians",),
    ),
    Planted(
        "the rows of the input are counted",
        "",
        "jacobian_forward if x.size < outputs else",
        "jacobian_forward if (len(x) if x.ndim else 1) < outputs else",
        ("test_jacobians",),
    ),
    Planted(
        "a tie goes to forward mode",
        "",
        "jacobian_forward if x.size < outputs else",
        "jacobian_forward if x.size <= outputs else",
        ("test_jacobians",),
    ),
    Planted(
        "the modes are swapped",
        "",
        "jacobian_forward if x.size < outputs else jacobian_reverse",
        "jacobian_reverse if x.size < outputs else jacobian_forward",
        ("test_jacobians",),
    ),
    Planted(
        "the slope has no place for the stack",
        "",
        "(np.expand_dims(slope, -1) if stack else slope) * dual.tangent",
        "slope * dual.tangent",
        ("test_stack",),
    ),
    Planted(
        "single tangents are no longer allowed",
        "",
        "(np.expand_dims(slope, -1) if stack else slope) * dual.tangent",
        "np.expand_dims(slope, -1) * dual.tangent",
        ("test_stack",),
    ),
    Planted(
        "the stack is not stretched with the value",
        "",
        "    return Dual(value, np.broadcast_to(sum(terms), shape) if terms else None)",
        "    return Dual(value, sum(terms) if terms else None)",
        ("test_stack",),
    ),
    Planted(
        "a sum goes over the stack",
        "",
        "    axes = tuple(range(a.ndim)) if dim is None else dim % a.ndim\n",
        "    axes = dim\n",
        ("test_stack",),
    ),
    Planted(
        "keepdim is ignored with a stack",
        "",
        "    value = a.value.sum(axis=axes, keepdims=keepdim)\n"
        "    return Dual(value, None if a.tangent is None else a.tangent.sum(axis=axes, keepdims=keepdim))",
        "    value = a.value.sum(axis=axes)\n"
        "    return Dual(value, None if a.tangent is None else a.tangent.sum(axis=axes))",
        ("test_stack",),
    ),
    Planted(
        "a negative dim counts from the stack",
        "",
        "    axes = tuple(range(a.ndim)) if dim is None else dim % a.ndim\n",
        "    axes = tuple(range(a.ndim)) if dim is None else dim\n",
        ("test_stack",),
    ),
    Planted(
        "the left stack stays at the end",
        "",
        "on_stack(lambda tangent: tangent @ b.value, a.tangent, a.ndim)",
        "a.tangent @ b.value",
        ("test_stack",),
    ),
    Planted(
        "only the left matrix moves with a stack",
        "",
        "        terms.append(on_stack(lambda tangent: a.value @ tangent, b.tangent, b.ndim))\n",
        "        pass\n",
        ("test_stack",),
    ),
    Planted(
        "the right stack stays at the end",
        "",
        "on_stack(lambda tangent: a.value @ tangent, b.tangent, b.ndim)",
        "a.value @ b.tangent",
        ("test_stack",),
    ),
    Planted(
        "the directions are in front",
        "",
        "np.eye(x.size).reshape(*x.shape, x.size)",
        "np.eye(x.size).reshape(x.size, *x.shape)",
        ("test_stack",),
    ),
    Planted(
        "one pass for each direction",
        "",
        "    output = as_dual(function(Dual(x, np.eye(x.size).reshape(*x.shape, x.size))))\n",
        "    return jacobian_forward(function, x)\n",
        ("test_stack",),
    ),
    Planted("a newer tag counts too", "", "if tag_of(x) == tag else", "if tag_of(x) >= tag else", ("test_tags",)),
    Planted(
        "the inner derivative moves as its point does",
        "",
        "Tagged(x, 1.0, tag)), tag)[1]",
        "Tagged(x, getattr(x, 'tangent', 1.0), tag)), tag)[1]",
        ("test_tags",),
    ),
    Planted(
        "another tag counts too",
        "",
        "if tag_of(x) == tag else (x, 0.0)",
        "if tag_of(x) else (x, 0.0)",
        ("test_tags",),
    ),
    Planted(
        "only one factor moves under a tag",
        "",
        "    return Tagged(a * b, da * b + a * db, tag)",
        "    return Tagged(a * b, da * b, tag)",
        ("test_tags",),
    ),
    Planted(
        "the older tag wins",
        "",
        f"    tag = max(tag_of(a), tag_of(b))\n{BOTH_PARTS}",
        f"    tag = min(tag_of(a), tag_of(b))\n{BOTH_PARTS}",
        ("test_tags",),
    ),
    Planted(
        "the tag is that of the point plus 1", "", "    tag = next(tags)\n", "    tag = tag_of(x) + 1\n", ("test_tags",)
    ),
    Planted("all derivatives share a tag", "", "    tag = next(tags)\n", "    tag = 1\n", ("test_tags",)),
    Planted(
        "whatever comes out has a tangent",
        "",
        "    return parts_of(function(Tagged(x, 1.0, tag)), tag)[1]",
        "    return function(Tagged(x, 1.0, tag)).tangent",
        ("test_tags",),
    ),
    Planted(
        "the slope of a power takes the base for positive",
        "",
        "(exponent * a.value ** (exponent - 1), a)",
        "(exponent * abs(a.value) ** (exponent - 1), a)",
        ("test_slopes",),
    ),
    Planted(
        "the first input decides for all",
        "",
        "    if not terms:\n        return Dual(value)\n",
        "    if not terms or pairs[0][1].tangent is None:\n        return Dual(value)\n",
        ("test_push_forward", "test_slopes"),
    ),
    Planted(
        "relu writes into its input",
        "",
        "    return push_forward(np.maximum(a.value, 0.0), (1.0 * (a.value > 0), a))",
        "    slope = 1.0 * (a.value > 0)\n"
        "    a.value[...] = a.value * slope\n"
        "    return push_forward(a.value.copy(), (slope, a))",
        ("test_slopes",),
    ),
    Planted(
        "value and tangent change places",
        "",
        "    return output.value, tangent\n    ### END",
        "    return tangent, output.value\n    ### END",
        ("test_jvp", "test_jacobians"),
    ),
    Planted(
        "the tangent comes from a second call",
        "",
        "    tangent = np.zeros(output.shape) if output.tangent is None else output.tangent\n",
        "    tangent = as_dual(function(*map(Dual, inputs, tangents))).tangent\n"
        "    tangent = np.zeros(output.shape) if tangent is None else tangent\n",
        ("test_jvp",),
    ),
    Planted(
        "the axes are counted",
        "",
        "as_dual(function(Dual(x))).value.size\n    way = jacobian_forward if x.size < outputs",
        "as_dual(function(Dual(x))).value.ndim\n    way = jacobian_forward if x.ndim < outputs",
        ("test_jacobians",),
    ),
    Planted(
        "the rule of exercise 1 is used for a stack",
        "",
        "(np.expand_dims(slope, -1) if stack else slope) * dual.tangent)\n",
        "slope * dual.tangent)\n",
        ("test_stack",),
    ),
    Planted(
        "the whole table comes from reverse mode",
        "",
        "    output = as_dual(function(Dual(x, np.eye(x.size).reshape(*x.shape, x.size))))\n",
        "    return jacobian_reverse(function, x)\n",
        ("test_stack",),
    ),
    Planted(
        "the slopes are multiplied into the tangents of the inputs",
        "",
        SINGLE,
        "for slope, dual in pairs:\n"
        "        if dual.tangent is not None:\n"
        "            dual.tangent *= slope\n"
        "    terms = [dual.tangent for _, dual in pairs if dual.tangent is not None]",
        ("test_push_forward", "test_slopes", "test_jvp", "test_jacobians"),
    ),
    Planted(
        "reverse mode runs first, and counts the outputs",
        "",
        "    outputs = as_dual(function(Dual(x))).value.size\n",
        "    outputs = jacobian_reverse(function, x).size // x.size\n",
        ("test_jacobians",),
    ),
    Planted(
        "a direction keeps the 1 of the pass before",
        "",
        "    for position in range(x.size):\n        direction = np.zeros(x.shape)\n",
        "    direction = np.zeros(x.shape)\n    for position in range(x.size):\n",
        ("test_jacobians",),
    ),
    Planted(
        "a stack is looked for in the result",
        "",
        "        stack = dual.tangent.shape[dual.ndim :]",
        "        stack = dual.tangent.shape[np.ndim(value) :]",
        ("test_stack",),
    ),
    Planted(
        "the tag of the left factor",
        "",
        f"    tag = max(tag_of(a), tag_of(b))\n{BOTH_PARTS}",
        f"    tag = tag_of(a)\n{BOTH_PARTS}",
        ("test_tags",),
    ),
    Planted(
        "two tags in a call",
        "",
        "    return parts_of(function(Tagged(x, 1.0, tag)), tag)[1]\n    ### END",
        "    return parts_of(function(Tagged(x, 1.0, next(tags))), tag)[1]\n    ### END",
        ("test_tags",),
    ),
    Planted(
        "relu does without push_forward",
        "",
        "return push_forward(np.maximum(a.value, 0.0), (1.0 * (a.value > 0), a))",
        "slope = 1.0 * (a.value > 0)\n"
        "    return Dual(a.value * slope, None if a.tangent is None else slope * a.tangent)",
        ("test_stack",),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    replaced_later = frozenset({"push_forward", "jvp"})
    test_cells = 6
    visible = True
    examples = 20
    own_examples = True


def test_visible_tests_share_no_name_with_hidden_ones() -> None:
    assert secret_by_name(LESSON) == set()


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def lesson(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


FUNCTIONS: dict[str, Any] = {
    "a layer": lambda x: (x @ np.linspace(-1, 1, 12).reshape(3, 4)).tanh().sum(dim=-1),
    "softmax by hand": lambda x: x.exp() / x.exp().sum(dim=1, keepdim=True),
    "stretched": lambda x: (x.sum(dim=0) - x) * np.array([[2.0], [-3.0]]) / (x**2 + 1),
    "logarithms": lambda x: ((x * x + 0.5).log() + (-x).relu()).sum(),
}


def in_torch(function: Any) -> Any:
    """The same function for PyTorch, where its constants must be tensors."""
    names = {**function.__globals__, "np": type("Tensors", (), {"linspace": linspace, "array": tensor})}
    return type(function)(function.__code__, names)


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def linspace(*arguments: Any) -> torch.Tensor:
    return torch.linspace(*arguments, dtype=torch.float64)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode_and_all_jacobians_agree_with_pytorch(lesson: dict[str, Any], name: str) -> None:
    function, theirs = FUNCTIONS[name], in_torch(FUNCTIONS[name])
    x, direction = np.random.default_rng(7).normal(size=(2, 2, 3))
    value, tangent = lesson["jvp"](function, (x,), (direction,))
    expected = torch.func.jvp(theirs, (tensor(x),), (tensor(direction),))
    np.testing.assert_allclose(value, expected[0].numpy(), atol=1e-12)
    np.testing.assert_allclose(tangent, expected[1].numpy(), atol=1e-12)
    table = torch.func.jacrev(theirs)(tensor(x)).numpy()
    for way in ("jacobian_forward", "jacobian_reverse", "jacobian", "jacobian_stacked"):
        np.testing.assert_allclose(lesson[way](function, x), table, atol=1e-12, err_msg=way)


def test_nested_derivatives_agree_with_pytorch(lesson: dict[str, Any]) -> None:
    def slope(function: Any, x: Any) -> Any:
        return torch.func.jvp(function, (x,), (torch.ones_like(x),))[1]

    def nested(derivative: Any) -> Any:
        inner = lambda x: derivative(lambda y: x * y * y + derivative(lambda z: x * z * y, y * y), x)  # noqa: E731
        return lambda x: x * inner(x) + derivative(inner, x)

    for x in (-1.5, 0.0, 2.0):
        found = lesson["derivative"](nested(lesson["derivative"]), x)
        assert found == pytest.approx(slope(nested(slope), tensor(x)).item(), abs=1e-12)
