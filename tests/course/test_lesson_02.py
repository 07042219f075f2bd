"""Plants classic mistakes in the solutions of lesson 02: each costs points on the cells of its rule, and on no others.

The lesson's own test cells do the checking, in a plain namespace, without a notebook or a sandbox.
"""

from __future__ import annotations

from tests.course.planting import LessonTests, Planted

LESSON = "02_scalar_engine"

ALL_SUMS = ("test_add_and_multiply", "test_topological_order", "test_backward", "test_backward_once")
POWER = ("test_power",)
BOTH = ("test_backward", "test_backward_once")

PLANTED = [
    Planted(
        "product gives each input its own value",
        "operands_swapped",
        "return grad * b.data, grad * a.data",
        "return grad * a.data, grad * b.data",
        ("test_add_and_multiply", "test_backward"),
    ),
    Planted(
        "product ignores the incoming gradient",
        "upstream_ignored",
        "return grad * b.data, grad * a.data",
        "return b.data, a.data",
        ("test_add_and_multiply", "test_backward"),
    ),
    Planted("the sum has no operation", "", '(a, b), "+", rule', '(a, b), "", rule', ("test_add_and_multiply",)),
    Planted("tanh has no operation", "", '(a,), "tanh", rule', '(a,), "", rule', ("test_functions",)),
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
        "the exponent is always 3",
        "",
        "    def rule(grad):\n        return (grad * exponent",
        "    exponent = 3\n\n    def rule(grad):\n        return (grad * exponent",
        ("test_power",),
    ),
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
    Planted(
        "every path is followed",
        "",
        """    pending = {self: gradient}
    for node in topological_order(self):
        grad = pending.pop(node)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                pending[source] = pending.get(source, 0.0) + share
""",
        """    self.grad += gradient
    if self.rule is not None:
        for source, share in zip(self.inputs, self.rule(gradient)):
            source.backward(share)
""",
        ("test_backward_once",),
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
        "a leaf alone has no order",
        "",
        "    visit(root)\n    return order[::-1]",
        "    if not root.inputs:\n        return []\n    visit(root)\n    return order[::-1]",
        ("test_topological_order",),
    ),
    Planted(
        "nodes of equal value are one",
        "",
        "        if node in seen:\n            return\n        seen.add(node)\n",
        "        if node.data in seen:\n            return\n        seen.add(node.data)\n",
        ("test_topological_order", "test_backward", "test_backward_once"),
    ),
    Planted(
        "pending gradients are kept by value",
        "",
        """    pending = {self: gradient}
    for node in topological_order(self):
        grad = pending.pop(node)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                pending[source] = pending.get(source, 0.0) + share
""",
        """    pending = {self.data: gradient}
    for node in topological_order(self):
        grad = pending.pop(node.data)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                pending[source.data] = pending.get(source.data, 0.0) + share
""",
        ("test_backward_once",),
    ),
    Planted(
        "what is pending is kept in .grad",
        "",
        """    pending = {self: gradient}
    for node in topological_order(self):
        grad = pending.pop(node)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                pending[source] = pending.get(source, 0.0) + share
""",
        """    self.grad += gradient
    for node in topological_order(self):
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(node.grad)):
                source.grad += share
""",
        ("test_backward_once",),
    ),
    Planted(
        "each call starts with a .grad of 0 in all nodes but the leaves",
        "",
        """    pending = {self: gradient}
    for node in topological_order(self):
        grad = pending.pop(node)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                pending[source] = pending.get(source, 0.0) + share
""",
        """    order = topological_order(self)
    for node in order:
        if node.rule is not None:
            node.grad = 0.0
    self.grad += gradient
    for node in order:
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(node.grad)):
                source.grad += share
""",
        ("test_backward_once",),
    ),
    Planted(
        "a call pushes on what an earlier one left in the output",
        "",
        "pending = {self: gradient}",
        "pending = {self: self.grad + gradient}",
        ("test_backward_once",),
    ),
    Planted(
        "tanh is composed of other operations",
        "",
        '    return MiniTensor(output, (a,), "tanh", rule)',
        "    power_of_e = (a * 2).exp()\n    return (power_of_e - 1) / (power_of_e + 1)",
        ("test_functions",),
    ),
    Planted(
        "only leaves keep their gradient",
        "",
        "        node.grad += grad\n",
        "        if node.rule is None:\n            node.grad += grad\n",
        ("test_backward_once",),
    ),
    Planted(
        "the output does not keep what it was given",
        "",
        "        node.grad += grad\n",
        "        if node is not self:\n            node.grad += grad\n",
        ("test_backward_once",),
    ),
    Planted(
        "a rule is called for each input",
        "",
        "            for source, share in zip(node.inputs, node.rule(grad)):\n",
        "            for number, source in enumerate(node.inputs):\n                share = node.rule(grad)[number]\n",
        ("test_backward_once",),
    ),
    Planted("rules are not called", "", "node.rule(grad)", "(grad,) * 2", ("test_backward",)),
    Planted("the sum keeps a copy", "", '(a, b), "+", rule', '(MiniTensor(a.data), b), "+", rule', ALL_SUMS),
    Planted("the sum keeps no inputs", "", '(a, b), "+", rule', '(), "+", rule', ALL_SUMS),
    Planted(
        "the exponent is an input", "", '(a,), f"**{exponent}"', '(a, as_tensor(exponent)), f"**{exponent}"', POWER
    ),
    Planted("one input without a comma", "", '(a,), f"**{exponent}"', '(a), f"**{exponent}"', POWER),
    Planted("power returns a share for the exponent too", "", "** (exponent - 1),)", "** (exponent - 1), 0.0)", POWER),
    Planted("the exponent is made whole when it is lowered", "", "(exponent - 1)", "(int(exponent) - 1)", POWER),
    Planted("the power is divided by the base", "", "a.data ** (exponent - 1),", "a.data**exponent / a.data,", POWER),
    Planted("one is subtracted from the power", "", "a.data ** (exponent - 1),", "a.data**exponent - 1,", POWER),
    Planted("the exponent is made whole", "", "(grad * exponent * a.data", "(grad * int(exponent) * a.data", POWER),
    Planted(
        "tanh keeps its output in a global name",
        "",
        "    output = math.tanh(a.data)\n",
        "    global output\n    output = math.tanh(a.data)\n",
        ("test_functions",),
    ),
    Planted("exp keeps a copy", "", '(a,), "exp"', '(MiniTensor(a.data),), "exp"', ("test_functions",)),
    Planted(
        "inputs are looked at again and again",
        "",
        "        seen.add(node)\n",
        "        seen.add(node)\n        [node.inputs for _ in range(100)]\n",
        ("test_topological_order",),
    ),
    Planted(
        "the nodes are sorted by value",
        "",
        "return order[::-1]",
        "return sorted(order, key=lambda node: -node.data)",
        ("test_topological_order", "test_backward"),
    ),
    Planted(
        "the list and the set outlive a call",
        "",
        "    order, seen = [], set()\n",
        "    order, seen = topological_order.__dict__.setdefault('kept', ([], set()))\n",
        ("test_topological_order", "test_backward", "test_backward_once"),
    ),
    Planted("a tuple of nodes", "", "return order[::-1]", "return tuple(order[::-1])", ("test_topological_order",)),
    Planted(
        "values in place of nodes",
        "",
        "return order[::-1]",
        "return [node.data for node in order[::-1]]",
        ("test_topological_order", "test_backward", "test_backward_once"),
    ),
    Planted(
        "the inputs of the output for all",
        "",
        "zip(node.inputs",
        "zip(self.inputs",
        ("test_backward", "test_backward_once"),
    ),
    Planted(
        "each node gets the first gradient",
        "",
        "node.grad += grad\n",
        "node.grad += gradient\n",
        ("test_backward", "test_backward_once"),
    ),
    Planted(
        "all gradients land in the output",
        "",
        "node.grad += grad\n",
        "self.grad += grad\n",
        ("test_backward", "test_backward_once"),
    ),
    Planted("the rule of the output for all", "", "node.rule(grad)", "self.rule(grad)", ("test_backward",)),
    Planted(
        "backward ends after the first share",
        "",
        "                pending[source] = pending.get(source, 0.0) + share\n",
        "                pending[source] = pending.get(source, 0.0) + share\n                return\n",
        ("test_backward", "test_backward_once"),
    ),
    Planted(
        "backward ends at a leaf",
        "",
        "        if node.rule is not None:\n            for source, share",
        "        if node.rule is None:\n            break\n        else:\n            for source, share",
        ("test_backward", "test_backward_once"),
    ),
    Planted(
        "what is pending outlives an error",
        "",
        "    pending = {self: gradient}\n",
        "    pending = backward.__dict__\n    pending[self] = gradient\n",
        ("test_backward_once",),
    ),
    Planted("a second share starts from 1", "", "pending.get(source, 0.0)", "pending.get(source, 1.0)", BOTH),
    Planted(
        "the shares go to the inputs in the other order", "", "zip(node.inputs,", "zip(reversed(node.inputs),", BOTH[:1]
    ),
    Planted(
        "a gradient of 0 is taken for none",
        "",
        "pending = {self: gradient}",
        "pending = {self: gradient or 1.0}",
        BOTH[1:],
    ),
    Planted(
        "shares of 0 are left out",
        "",
        "node.rule(grad)):\n",
        "node.rule(grad)):\n                if not share:\n                    continue\n",
        BOTH,
    ),
    Planted(
        "exp changes its output in the rule",
        "",
        "        return (grad * output,)",
        "        nonlocal output\n        output = output * 1.5\n        return (grad * output / 1.5,)",
        ("test_functions",),
    ),
    Planted(
        "the rule of power uses the .grad of the input",
        "",
        "return (grad * exponent",
        "return (a.grad * exponent",
        POWER,
    ),
    Planted("nothing happens", "", "pending = {self: gradient}", "return", ("test_backward", "test_backward_once")),
]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 7
    visible = True
    examples = 5
