"""Plants classic mistakes in the solutions of lesson 02: each costs points on the cells of its rule, and on no others.

The lesson's own test cells do the checking, in a plain namespace, without a notebook or a sandbox.
"""

from __future__ import annotations

from tests.course.planting import LessonTests, Planted

LESSON = "02_scalar_engine"

PLANTED = [
    Planted(
        "product gives each input its own value",
        "operands_swapped",
        "return grad * b.data, grad * a.data",
        "return grad * a.data, grad * b.data",
        ("test_add_and_multiply",),
    ),
    Planted(
        "product ignores the incoming gradient",
        "upstream_ignored",
        "return grad * b.data, grad * a.data",
        "return b.data, a.data",
        ("test_add_and_multiply",),
    ),
    Planted(
        "difference loses its sign",
        "sign_lost",
        "return grad, -grad",
        "return grad, grad",
        ("test_subtract_and_divide",),
    ),
    Planted(
        "quotient loses its sign",
        "sign_lost",
        "-grad * a.data / b.data**2",
        "grad * a.data / b.data**2",
        ("test_subtract_and_divide", "test_backward"),
    ),
    Planted("exponent stays", "exponent_not_lowered", "** (exponent - 1)", "**exponent", ("test_power",)),
    Planted(
        "power ignores the incoming gradient", "upstream_ignored", "(grad * exponent", "(exponent", ("test_power",)
    ),
    Planted("tanh uses its input", "input_used_for_output", "1 - output**2", "1 - a.data**2", ("test_functions",)),
    Planted("exp uses its input", "input_used_for_output", "(grad * output,)", "(grad * a.data,)", ("test_functions",)),
    Planted(
        "pending is replaced",
        "assigned_not_accumulated",
        "pending.get(source, 0.0) + share",
        "share",
        ("test_backward", "test_backward_once"),
    ),
    Planted("grad is replaced", "", "node.grad += grad", "node.grad = grad", ("test_backward", "test_backward_once")),
    Planted(
        "inputs follow at once",
        "no_topological_order",
        """            return
        seen.add(node)
        for source in node.inputs:
            visit(source)
        order.append(node)

    visit(root)
    return order[::-1]""",
        """            return
        seen.add(node)
        order.append(node)
        for source in node.inputs:
            visit(source)

    visit(root)
    return order""",
        ("test_topological_order", "test_backward"),
    ),
    Planted(
        "leaves first",
        "",
        "return order[::-1]",
        "return order",
        ("test_topological_order", "test_backward", "test_backward_once"),
    ),
    Planted(
        "relu lets everything through",
        "",
        "(grad if a.data > 0 else 0.0,)",
        "(grad,)",
        ("test_functions", "test_backward"),
    ),
    Planted("rules are not called", "", "node.rule(grad)", "(grad,) * 2", ("test_backward",)),
    Planted("nothing happens", "", "pending = {self: gradient}", "return", ("test_backward", "test_backward_once")),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 7
    examples = 5
