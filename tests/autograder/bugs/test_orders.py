"""Is an order of visits the same on every graph of the same shape, including a second one over the same leaves?"""

import numpy as np
import pytest

import mini_autograd as ma
from autograder.bugs import orders
from autograder.runs.reference_patch import engine_changed
from mini_autograd.graph.function import GraphRoot


def gate(a, b):
    c = a.relu() + b
    return (c + a.relu()) + c


def gradients_of_two_calls(order):
    leaves = [ma.tensor(np.array(value), requires_grad=True) for value in (1.7, 2.9)]
    found = []
    with engine_changed(topological_order=order):
        kept = [gate(*leaves)]  # keeps the nodes of the leaves alive
        kept[0].backward()
        found += [float(leaf.grad.data) for leaf in leaves]
        gate(*leaves).backward()
    return found + [float(leaf.grad.data) for leaf in leaves]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("family", ["DEPTH_FIRST", "BREADTH_FIRST"])
def test_a_kept_order_does_what_the_original_does(family, number):
    order = getattr(orders, family)[number]
    leaves = [ma.tensor(np.array(value), requires_grad=True) for value in (1.7, 2.9)]
    (kept,) = orders.distinct(GraphRoot((gate(*leaves).gradient_edge,)), [order])
    assert gradients_of_two_calls(kept) == gradients_of_two_calls(order)
