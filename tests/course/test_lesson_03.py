"""Plants classic mistakes in the solutions of lesson 03: each costs points on its own test cells, and on no others."""

from __future__ import annotations

from tests.course.planting import LessonTests, Planted

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
    Planted(
        "only neighbors are compared",
        "",
        "    return len(place) == len(order) and all(place.get(source, -1) > place[node] for node, source in edges)",
        "    late = any(node in following.inputs for node, following in zip(order, order[1:]))\n"
        "    return len(place) == len(order) and not late and all(source in place for _, source in edges)",
        ("test_valid_order",),
    ),
    Planted("duplicates are overlooked", "", "len(place) == len(order) and all", "all", ("test_valid_order",)),
    Planted(
        "the list is reversed",
        "",
        "    place = {node: number for number, node in enumerate(order)}\n",
        "    order, given = list(order), order\n    given.reverse()\n"
        "    place = {node: number for number, node in enumerate(order)}\n",
        ("test_valid_order",),
    ),
    Planted(
        "the list is emptied",
        "",
        "    place = {node: number for number, node in enumerate(order)}\n",
        "    order, given = list(order), order\n    given.clear()\n"
        "    place = {node: number for number, node in enumerate(order)}\n",
        ("test_valid_order",),
    ),
    Planted(
        "inputs first",
        "",
        "place.get(source, -1) > place[node]",
        "0 <= place.get(source, -1) < place[node]",
        ("test_valid_order",),
    ),
    Planted(
        "shares by differences",
        "",
        "[leaf.grad for leaf in leaves]",
        "[\n"
        "        sum(\n"
        "            sign * expression([MiniTensor(number + sign * 1e-5 * (use == k)) for k in range(uses)]).data\n"
        "            for sign in (1, -1)\n"
        "        ) / 2e-5\n"
        "        for use in range(uses)\n"
        "    ]",
        ("test_contributions",),
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
        "every error counts as too deep",
        "",
        "        except RecursionError:\n            return False\n        return True\n",
        "        except Exception:\n            return False\n        return True\n",
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
        "no node is remembered",
        "",
        ORDER,
        """        else:
            stack.append((node, True))
            stack += [(source, False) for source in node.inputs]
    return list(dict.fromkeys(finished))[::-1]""",
        ("test_iterative_order", "test_deep"),
    ),
    Planted(
        "an operation that uses a node twice counts as one use",
        "",
        "    finished, seen, stack = [], set(), [(root, False)]\n",
        """    uses, found = {}, [root]
    for node in found:
        for source in set(node.inputs):
            found += [source] * (source not in uses)
            uses[source] = uses.get(source, 0) + 1
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for source in node.inputs:
            uses[source] -= 1
            ready += [source] * (uses[source] == 0)
    return order
    finished, seen, stack = [], set(), [(root, False)]
""",
        ("test_iterative_order",),
    ),
    Planted(
        "an input may come only once",
        "",
        "    place = {node: number for number, node in enumerate(order)}\n",
        "    place = {node: number for number, node in enumerate(order)}\n"
        "    if any(len(set(node.inputs)) < len(node.inputs) for node in order):\n        return False\n",
        ("test_valid_order",),
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
        "a list is searched for each node, by identity",
        "",
        "elif node not in seen:",
        "elif not any(node is other for other in list(seen)):",
        ("test_iterative_order",),
    ),
    Planted(
        "an empty list is no order",
        "",
        "    place = {node: number for number, node in enumerate(order)}\n",
        "    if not order:\n        return False\n    place = {node: number for number, node in enumerate(order)}\n",
        ("test_valid_order",),
    ),
    Planted(
        "one operation always survives", "", "    return low\n", "    return max(low, 1)\n", ("test_longest_chain",)
    ),
    Planted("evidence that is nan", "", "return a + a", 'return a * float("nan")', ("test_breaks_overwriting",)),
    Planted(
        "a missing input that would be last",
        "",
        "place.get(source, -1)",
        "place.get(source, 1)",
        ("test_valid_order",),
    ),
    Planted(
        "longer chains than asked for",
        "",
        "    low, high = 0, most + 1\n",
        "    low, high = 0, 1\n"
        "    while survives(high):\n"
        "        low, high = high, 2 * high\n"
        "        if low > most:\n"
        "            return most\n",
        ("test_longest_chain",),
    ),
    Planted(
        "a list is searched for each node",
        "",
        "elif node not in seen:",
        "elif node not in list(seen):",
        ("test_iterative_order",),
    ),
    Planted(
        "what was seen is kept from call to call",
        "",
        "    finished, seen, stack = [], set(), [(root, False)]\n",
        '    seen = topological_order.__dict__.setdefault("seen", set())\n    finished, stack = [], [(root, False)]\n',
        ("test_iterative_order", "test_new_backward", "test_deep"),
    ),
    Planted(
        "nodes of equal value are one",
        "",
        """        elif node not in seen:
            seen.add(node)""",
        """        elif node.data not in seen:
            seen.add(node.data)""",
        ("test_iterative_order", "test_deep"),
    ),
    Planted(
        "a tuple of nodes",
        "",
        "return finished[::-1]",
        "return tuple(finished[::-1])",
        ("test_iterative_order",),
    ),
    Planted(
        "values in place of nodes",
        "",
        "return finished[::-1]",
        "return [node.data for node in finished[::-1]]",
        ("test_iterative_order", "test_new_backward", "test_deep"),
    ),
    Planted(
        "the right order, once",
        "",
        "    place = {node: number for number, node in enumerate(order)}\n",
        "    known = is_topological.__dict__\n"
        "    if any(node in known for node in order):\n        return False\n"
        "    known |= dict.fromkeys(order)\n"
        "    place = {node: number for number, node in enumerate(order)}\n",
        ("test_valid_order",),
    ),
    Planted(
        "the engine that goes wrong",
        "",
        "expression(leaves).backward()",
        "nearest_first(expression(leaves))",
        ("test_contributions",),
    ),
    Planted(
        "the last length is not tried",
        "",
        "    return low\n",
        "    return most if low == most - 1 else low\n",
        ("test_longest_chain",),
    ),
    Planted(
        "longer chains, and every error is caught",
        "",
        """        except RecursionError:
            return False
        return True

    low, high = 0, most + 1
""",
        """        except Exception:
            return False
        return True

    low, high = 0, 1
    while survives(high):
        low, high = high, 2 * high
    if high > most:
        high = most + 1
""",
        ("test_longest_chain",),
    ),
    Planted(
        "a search that never ends",
        "",
        """    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if survives(middle) else (low, middle)
""",
        """    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (middle, high) if survives(middle) else (low, middle - 1)
""",
        ("test_longest_chain",),
    ),
    Planted(
        "seen is what has been put on the stack",
        "",
        ORDER,
        """        if inputs_are_done:
            finished.append(node)
        else:
            stack.append((node, True))
            for source in node.inputs:
                if source not in seen:
                    seen.add(source)
                    stack.append((source, False))
    return finished[::-1]""",
        ("test_iterative_order", "test_deep"),
    ),
    Planted(
        "recursion again",
        "",
        "    finished, seen, stack = [], set(), [(root, False)]\n",
        "    return recursive_order(root)\n    finished, seen, stack = [], set(), [(root, False)]\n",
        ("test_iterative_order", "test_deep"),
    ),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 9
    visible = True
    examples = 12
