"""Plants classic mistakes in the solutions of lesson 03: each costs points on its own test cells, and on no others."""

from __future__ import annotations

import pytest

from tests.course.planting import Planted, marks, untrue_examples

LESSON = "03_order_and_reuse"

ORDER = """        if inputs_are_done:
            finished.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(source, False) for source in node.inputs]
    return finished[::-1]"""

PLANTED = [
    Planted("everything used once", "", "return a + a", "return -a", ("test_breaks_overwriting",)),
    Planted("evidence larger than needed", "", "return a + a", "return -(a + a)", ("test_breaks_overwriting",)),
    Planted(
        "a leaf used twice, then a node used once",
        "",
        "    b = -a\n    return b + b",
        "    b = a + a\n    return -b",
        ("test_breaks_pushing_again",),
    ),
    Planted("the reused node comes second", "", "return b + c\n", "return c + b\n", ("test_breaks_nearest_first",)),
    Planted(
        "only a leaf is early", "", "    c = -b\n    return b + c", "    return b + a", ("test_breaks_nearest_first",)
    ),
    Planted(
        "missing inputs are overlooked", "", "place.get(source, -1)", "place.get(source, 10**6)", ("test_valid_order",)
    ),
    Planted("duplicates are overlooked", "", "len(place) == len(order) and all", "all", ("test_valid_order",)),
    Planted(
        "inputs first",
        "",
        "place.get(source, -1) > place[node]",
        "0 <= place.get(source, -1) < place[node]",
        ("test_valid_order",),
    ),
    Planted(
        "one leaf for all uses",
        "",
        "[MiniTensor(number) for _ in range(uses)]",
        "[MiniTensor(number)] * uses",
        ("test_contributions",),
    ),
    Planted(
        "values in place of gradients",
        "",
        "[leaf.grad for leaf in leaves]",
        "[leaf.data for leaf in leaves]",
        ("test_contributions",),
    ),
    Planted(
        "the first failure in place of the last success",
        "",
        "    return low\n",
        "    return high\n",
        ("test_longest_chain",),
    ),
    Planted(
        "the last chain is not tried", "", "low, high = 0, most + 1", "low, high = 0, most", ("test_longest_chain",)
    ),
    Planted(
        "leaves first",
        "",
        "return finished[::-1]",
        "return finished",
        ("test_iterative_order", "test_new_backward", "test_deep"),
    ),
    Planted(
        "inputs follow at once",
        "no_topological_order",
        ORDER,
        """        if node not in seen:
            seen.add(node)
            finished.append(node)
            stack += [(source, False) for source in node.inputs]
    return finished""",
        ("test_iterative_order", "test_new_backward"),
    ),
    Planted(
        "nearest first",
        "",
        ORDER,
        """        if node not in seen:
            seen.add(node)
            finished.append(node)
            stack = [(source, False) for source in node.inputs][::-1] + stack
    return finished""",
        ("test_iterative_order", "test_new_backward", "test_deep"),
    ),
    Planted(
        "recursion again",
        "",
        "    finished, seen, stack = [], set(), [(root, False)]\n",
        "    return recursive_order(root)\n    finished, seen, stack = [], set(), [(root, False)]\n",
        ("test_deep",),
    ),
]


def test_the_solution_has_full_marks() -> None:
    found = marks(LESSON)
    assert len(found.points) == 9
    assert not found.lost


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_mistake_costs_points_where_it_was_made(planted: Planted) -> None:
    found = marks(LESSON, planted)
    assert found.lost == set(planted.costs)
    assert not planted.bug or planted.bug in found.bugs


def test_examples_in_the_docstrings_are_true() -> None:
    wrong, tried = untrue_examples(LESSON)
    assert not wrong
    assert tried >= 12
