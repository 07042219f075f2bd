"""The graph of a student's engine whose nodes are Function objects, as in lesson 05, is read like PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.drawing import read_graph


class Tensor:
    def __init__(self, data: Any, requires_grad: bool = False, grad_fn: Any = None) -> None:
        self.data = np.asarray(data, dtype=np.float64)
        self.requires_grad, self.grad_fn, self.grad = requires_grad, grad_fn, None
        self.shape = self.data.shape


class AccumulateGrad:
    next_functions = ()

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        return "AccumulateGrad"


class Mul:
    def __init__(self, a: Tensor, b: Tensor) -> None:
        self.saved_tensors = a.data, b.data
        self.input_shapes = a.shape, b.shape
        self.next_functions = tuple((AccumulateGrad(x) if x.requires_grad else None, 0) for x in (a, b))

    def name(self) -> str:
        return "MulBackward0"

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, Any]:
        a, b = ctx.saved_tensors
        return grad * b, grad * a


def test_values_gradients_and_broadcasting_come_from_the_students_own_nodes() -> None:
    a, b = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True), Tensor([10.0, 20.0, 30.0], True)
    product = Tensor(a.data * b.data, True, Mul(a, b))
    a.grad = Tensor(np.ones((2, 3)))
    first, second, output = read_graph(product, {"a": a, "b": b}).nodes
    assert (first.name, second.name, output.formula) == ("a", "b", "a \u00d7 b")
    np.testing.assert_array_equal(first.value, a.data)
    np.testing.assert_array_equal(first.stored, np.ones((2, 3)))
    np.testing.assert_array_equal(second.incoming, [5.0, 7.0, 9.0])
    assert second.stored is None


def test_a_constant_is_known_from_what_the_node_saved_and_unknown_once_that_is_freed() -> None:
    w = Tensor(2.0, requires_grad=True)
    output = Tensor(6.0, True, Mul(w, Tensor(3.0)))
    assert [node.value for node in read_graph(output, {"w": w}).nodes] == [2.0, 3.0, 6.0]
    output.grad_fn.saved_tensors = ()
    leaf, constant, result = read_graph(output, {"w": w}).nodes
    assert (leaf.value, constant.value, result.value, leaf.incoming) == (2.0, None, 6.0, None)


class Linear:
    """A layer in one node, which saves the first two of its three inputs."""

    def __init__(self, x: Tensor, w: Tensor, b: Tensor, saved: tuple[Any, ...]) -> None:
        self.saved_tensors = saved
        self.input_shapes = x.shape, w.shape, b.shape
        self.next_functions = tuple((AccumulateGrad(i) if i.requires_grad else None, 0) for i in (x, w, b))

    def name(self) -> str:
        return "LinearBackward0"

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        return None, ctx.saved_tensors[0].T @ grad, grad


def test_data_given_to_an_operation_of_three_inputs_is_known_where_the_node_saved_its_inputs_in_order() -> None:
    x, w, b = Tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]]), Tensor([[0.5], [-0.25]], True), Tensor([0.1], True)
    result = x.data @ w.data + b.data
    in_order, others = (x.data, w.data), (result, w.data)
    for saved, value in ((in_order, x.data), (in_order[::-1], None), (others, None), ((x.data,), None), ((), None)):
        constant, *leaves, output = read_graph(Tensor(result, True, Linear(x, w, b, saved)), {"w": w, "b": b}).nodes
        assert (constant.kind, constant.shape) == ("constant", (3, 2)), "the node knows the shape in any case"
        assert (constant.value is None) == (value is None)
        if value is not None:
            np.testing.assert_array_equal(constant.value, value)
        assert [leaf.name for leaf in leaves] == ["w", "b"]
        np.testing.assert_array_equal(output.value, result)
