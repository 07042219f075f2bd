"""Plants classic mistakes in the solutions of lesson 05: each costs points only on the cells that it concerns.

Mistakes in parts that all later cells need (recording, the loop of backward) cost points there too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, Planted, solved, styles

LESSON = "05_leaves_and_accumulation"
KEEPS = "test_backward_keeps"

PLANTED = [
    Planted(
        "buffers are counted without the parameters that have no gradient",
        "",
        "enumerate(self.parameters):",
        "enumerate(p for p in self.parameters if p.grad is not None):",
        ("test_sgd",),
    ),
    Planted(
        "the leaf holds its node itself",
        "",
        "weakref.ref(node)",
        "node",
        ("test_record", "test_backward", KEEPS, "test_sgd", "test_graph_lines"),
    ),
    Planted(
        "a difference loses its sign",
        "sign_lost",
        "return grad, -grad",
        "return grad, grad",
        ("test_rules_as_classes", "test_backward"),
    ),
    Planted(
        "tanh uses its input",
        "",
        "ctx.save_for_backward(output)",
        "ctx.save_for_backward(a)",
        ("test_rules_as_classes", "test_backward"),
    ),
    Planted(
        "tanh keeps its output on the class",
        "",
        """        output = np.tanh(a)
        ctx.save_for_backward(output)
        return output""",
        """        output = np.tanh(a)
        Tanh.saved = (output,)
        return output""",
        ("test_rules_as_classes",),
    ),
    Planted(
        "tanh keeps its input, too",
        "",
        "ctx.save_for_backward(output)",
        "ctx.save_for_backward(output, a)",
        ("test_rules_as_classes", "test_backward"),
    ),
    Planted(
        "tanh keeps its output and its input in a tuple",
        "",
        "ctx.save_for_backward(output)\n        return output",
        "ctx.save_for_backward((output, a))\n        output = ctx.saved_tensors[0][0]\n        return output",
        ("test_rules_as_classes", "test_backward"),
    ),
    Planted(
        "tanh writes into what arrives",
        "",
        "return grad * (1 - output**2)",
        "grad *= 1 - output**2\n        return grad",
        ("test_rules_as_classes",),
    ),
    Planted(
        "tanh writes into what it saved",
        "",
        "return grad * (1 - output**2)",
        "output **= 2\n        return grad * (1 - output)",
        ("test_rules_as_classes",),
    ),
    Planted(
        "tanh returns a tensor",
        "",
        "        ctx.save_for_backward(output)\n        return output",
        "        ctx.save_for_backward(output)\n        return MiniTensor(output)",
        ("test_rules_as_classes", "test_backward"),
    ),
    Planted(
        "the gradients come in a list",
        "",
        "(output,) = ctx.saved_tensors\n        return grad * (1 - output**2)",
        "(output,) = ctx.saved_tensors\n        return [grad * (1 - output**2)]",
        ("test_rules_as_classes", "test_backward"),
    ),
    Planted(
        "only a new node is returned",
        "",
        "        tensor._accumulate = weakref.ref(node)\n    return (node, 0)",
        "        tensor._accumulate = weakref.ref(node)\n        return (node, 0)",
        ("test_record", "test_backward", KEEPS, "test_sgd", "test_graph_lines"),
    ),
    Planted(
        "the edge holds the weak reference",
        "",
        "    return (node, 0)\n    ### END",
        "    return (tensor._accumulate, 0)\n    ### END",
        ("test_record", "test_accumulate", "test_backward", KEEPS, "test_sgd", "test_graph_lines"),
    ),
    Planted(
        "zeros of no shape",
        "",
        "MiniTensor(np.zeros(parameter.shape))",
        "MiniTensor(0.0)",
        ("test_sgd",),
    ),
    Planted(
        "a difference keeps its inputs",
        "",
        "return a - b\n\n    @staticmethod",
        "ctx.save_for_backward(a, b)\n        return a - b\n\n    @staticmethod",
        ("test_rules_as_classes",),
    ),
    Planted(
        "shapes are those of the output",
        "",
        "tuple(x.shape for x in inputs)",
        "tuple(output.shape for x in inputs)",
        ("test_record", "test_backward", KEEPS, "test_sgd"),
    ),
    Planted(
        "tanh ignores the incoming gradient",
        "upstream_ignored",
        "return grad * (1 - output**2)",
        "return 1 - output**2",
        ("test_rules_as_classes", "test_backward"),
    ),
    Planted(
        "a weak reference that died is kept",
        "",
        "    node = tensor._accumulate() if tensor._accumulate is not None else None\n    if node is None:\n",
        "    node = tensor._accumulate and tensor._accumulate()\n    if tensor._accumulate is None:\n",
        ("test_record", "test_sgd"),
    ),
    Planted(
        "the buffer is the gradient itself",
        "",
        "                self.buffers[i] = self.momentum * self.buffers[i] + parameter.grad.data\n",
        "                if isinstance(self.buffers[i], float):\n"
        "                    self.buffers[i] = parameter.grad.data\n"
        "                else:\n"
        "                    self.buffers[i] *= self.momentum\n"
        "                    self.buffers[i] += parameter.grad.data\n",
        ("test_sgd",),
    ),
    Planted(
        "every use of a leaf has an end of its own",
        "",
        "    if node is None:\n",
        "    if True:\n",
        ("test_record", "test_graph_lines"),
    ),
    Planted(
        "the leaf holds its end",
        "",
        "    node = tensor._accumulate() if tensor._accumulate is not None else None\n"
        "    if node is None:\n        node = AccumulateGrad(tensor)\n        tensor._accumulate = weakref.ref(node)\n",
        "    if tensor._accumulate is None:\n        tensor._accumulate = AccumulateGrad(tensor)\n"
        "    node = tensor._accumulate\n",
        ("test_record",),
    ),
    Planted(
        "a list keeps all ends",
        "",
        "        tensor._accumulate = weakref.ref(node)\n",
        "        tensor._accumulate = weakref.ref(node)\n        globals().setdefault('ENDS', []).append(node)\n",
        ("test_record",),
    ),
    Planted(
        "edges on the class",
        "",
        "ctx.next_functions = tuple(",
        "cls.next_functions = tuple(",
        ("test_record", "test_backward", KEEPS, "test_graph_lines"),
    ),
    Planted(
        "shapes on the class",
        "",
        "ctx.input_shapes = tuple(",
        "cls.input_shapes = tuple(",
        ("test_record", "test_backward"),
    ),
    Planted(
        "edges as a list",
        "",
        "tuple(edge_to(x) for x in inputs)",
        "[edge_to(x) for x in inputs]",
        ("test_record",),
    ),
    Planted(
        "shapes as a list",
        "",
        "tuple(x.shape for x in inputs)",
        "[x.shape for x in inputs]",
        ("test_record",),
    ),
    Planted(
        "sizes in place of shapes",
        "",
        "tuple(x.shape for x in inputs)",
        "tuple(x.data.size for x in inputs)",
        ("test_record", "test_backward", KEEPS, "test_sgd"),
    ),
    Planted(
        "edges as a generator",
        "",
        "tuple(edge_to(x) for x in inputs)",
        "(edge_to(x) for x in inputs)",
        ("test_record", "test_backward", KEEPS, "test_sgd"),
    ),
    Planted(
        "edges count from 1",
        "",
        "        return (tensor.grad_fn, 0)",
        "        return (tensor.grad_fn, 1)",
        ("test_record",),
    ),
    Planted(
        "constants get an edge",
        "",
        "    if not tensor.requires_grad:\n        return (None, 0)\n",
        "",
        ("test_record", "test_graph_lines", KEEPS),
    ),
    Planted(
        "recorded only if all inputs require a gradient",
        "",
        "if any(x.requires_grad for x in inputs)",
        "if all(x.requires_grad for x in inputs)",
        ("test_record", "test_backward", KEEPS, "test_graph_lines", "test_sgd"),
    ),
    Planted(
        "everything is recorded",
        "",
        "if any(x.requires_grad for x in inputs)",
        "if True",
        ("test_record",),
    ),
    Planted(
        ".grad is replaced",
        "",
        "MiniTensor(grad.copy() if leaf.grad is None else leaf.grad.data + grad)",
        "MiniTensor(grad.copy())",
        ("test_accumulate", "test_backward", KEEPS),
    ),
    Planted(
        ".grad shares the array that arrived",
        "",
        "leaf.grad = MiniTensor(grad.copy() if",
        "leaf.grad = MiniTensor(grad if",
        ("test_accumulate",),
    ),
    Planted(
        "a sum of gradients requires a gradient",
        "",
        "leaf.grad.data + grad)",
        "leaf.grad.data + grad, requires_grad=leaf.grad is not None)",
        ("test_accumulate",),
    ),
    Planted(
        "a sum of gradients is an array",
        "",
        "MiniTensor(grad.copy() if leaf.grad is None else leaf.grad.data + grad)",
        "MiniTensor(grad.copy()) if leaf.grad is None else np.add(leaf.grad.data, grad)",
        ("test_accumulate",),
    ),
    Planted(
        "the second gradient that arrives is changed",
        "",
        "    leaf.grad = MiniTensor(grad.copy() if leaf.grad is None else leaf.grad.data + grad)",
        """    if leaf.grad is None:
        leaf.grad = MiniTensor(grad.copy())
    else:
        grad += leaf.grad.data
        leaf.grad = MiniTensor(grad)""",
        ("test_accumulate",),
    ),
    Planted(
        "a sum of zero counts as no gradient",
        "",
        "leaf.grad = MiniTensor(grad.copy() if leaf.grad is None else leaf.grad.data + grad)",
        "leaf.grad = MiniTensor(leaf.grad.data + grad if leaf.grad is not None and leaf.grad.data.all() else grad + 7)",
        ("test_accumulate", "test_backward", KEEPS, "test_sgd"),
    ),
    Planted(
        "the first leaf ends the loop",
        "",
        "            node.accumulate(grad)\n            continue",
        "            node.accumulate(grad)\n            break",
        ("test_backward", KEEPS, "test_sgd"),
    ),
    Planted(
        "a single array is taken for a tuple",
        "",
        "        shares = shares if isinstance(shares, tuple) else (shares,)\n",
        "",
        ("test_backward", KEEPS, "test_sgd"),
    ),
    Planted(
        "pending is replaced",
        "",
        "pending[source] + share if source in pending else share",
        "share",
        ("test_backward", KEEPS, "test_sgd"),
    ),
    Planted(
        "broadcasting is not undone",
        "",
        "share = sum_to(share, shape)",
        "pass",
        ("test_backward", KEEPS),
    ),
    Planted(
        "None from a rule is sent on",
        "",
        "if source is not None and share is not None:",
        "if source is not None:",
        (KEEPS,),
    ),
    Planted(
        "a constant ends the loop over the inputs",
        "",
        "            if source is not None and share is not None:\n",
        "            if source is None:\n                break\n            if share is not None:\n",
        ("test_backward", KEEPS),
    ),
    Planted(
        "None from a rule ends the loop over the inputs",
        "",
        "            if source is not None and share is not None:\n",
        "            if share is None:\n                break\n            if source is not None:\n",
        (KEEPS,),
    ),
    Planted(
        "the shares of constants are added up",
        "",
        "if source is not None and share is not None:",
        "if share is not None:",
        (KEEPS,),
    ),
    Planted(
        "every result keeps its gradient",
        "",
        "        output.requires_grad, output.grad_fn = True, ctx",
        "        output.requires_grad, output.grad_fn = True, ctx\n        output.retain_grad()",
        (KEEPS,),
    ),
    Planted(
        "lines for constants",
        "",
        "            if source is not None:\n",
        "            if source is None:\n                lines.append('None')\n            else:\n",
        ("test_graph_lines",),
    ),
    Planted("PyTorch's long name", "", 'node.name().split("::")[-1]', "node.name()", ("test_graph_lines",)),
    Planted(
        "a leaf is marked, but gone through again",
        "",
        '(again)")\n            return',
        '(again)")',
        ("test_graph_lines",),
    ),
    Planted(
        "a node with inputs that is met again lists them again",
        "",
        "        if node in met:\n",
        "        if node in met and not node.next_functions:\n",
        ("test_graph_lines",),
    ),
    Planted(
        "no lines are returned",
        "",
        "    visit(node, 0)\n    return lines",
        "    visit(node, 0)\n    print(*lines, sep='\\n')",
        ("test_graph_lines",),
    ),
    Planted(
        "the nodes met in an earlier call count",
        "",
        "lines, met = [], set()",
        "lines, met = [], vars(graph_lines).setdefault('met', set())",
        ("test_graph_lines",),
    ),
    Planted(
        "a step makes a new tensor",
        "",
        "parameter.data -= self.lr * self.buffers[i]",
        "self.parameters[i] = parameter - self.lr * self.buffers[i]",
        ("test_sgd",),
    ),
    Planted("the step climbs", "", "parameter.data -=", "parameter.data +=", ("test_sgd",)),
    Planted(
        "None counts as zeros",
        "",
        "            if parameter.grad is not None:\n                self.buffers[i] =",
        "            parameter.grad = parameter.grad or MiniTensor(np.zeros(parameter.shape))\n            if True:\n"
        "                self.buffers[i] =",
        ("test_sgd",),
    ),
    Planted(
        "a parameter without a gradient ends the step",
        "",
        "            if parameter.grad is not None:\n                self.buffers[i] =",
        "            if parameter.grad is None:\n                break\n            if True:\n"
        "                self.buffers[i] =",
        ("test_sgd",),
    ),
    Planted(
        "a parameter without a gradient ends the clearing",
        "",
        "            if parameter.grad is not None:\n                parameter.grad = None if",
        "            if parameter.grad is None:\n                break\n            if True:\n"
        "                parameter.grad = None if",
        ("test_sgd",),
    ),
    Planted(
        "clearing leaves an array",
        "",
        "MiniTensor(np.zeros(parameter.shape))",
        "np.zeros(parameter.shape)",
        ("test_sgd",),
    ),
    Planted(
        "clearing leaves a tensor that requires a gradient",
        "",
        "MiniTensor(np.zeros(parameter.shape))",
        "MiniTensor(np.zeros(parameter.shape), requires_grad=True)",
        ("test_sgd",),
    ),
    Planted(
        "momentum is added into the gradient",
        "",
        "self.buffers[i] = self.momentum * self.buffers[i] + parameter.grad.data",
        "parameter.grad.data += self.momentum * self.buffers[i]\n"
        "                self.buffers[i] = parameter.grad.data.copy()",
        ("test_sgd",),
    ),
    Planted(
        "every parameter is moved twice",
        "",
        "        self.buffers = [0.0 for _ in self.parameters]",
        "        self.buffers = dict.fromkeys(range(99), 0.0)\n        self.parameters *= 2",
        ("test_sgd",),
    ),
    Planted(
        "momentum that takes a share of the new gradient only",
        "",
        "self.buffers[i] + parameter.grad.data",
        "self.buffers[i] + (1 - self.momentum) * parameter.grad.data",
        ("test_sgd",),
    ),
    Planted("the parameters are used up", "", "list(parameters)", "parameters", ("test_sgd",)),
    Planted(
        "clearing always gives None",
        "",
        "None if set_to_none else MiniTensor(np.zeros(parameter.shape))",
        "None",
        ("test_sgd",),
    ),
    Planted(
        "a step uses the buffer from before",
        "",
        """                self.buffers[i] = self.momentum * self.buffers[i] + parameter.grad.data
                parameter.data -= self.lr * self.buffers[i]
""",
        """                parameter.data -= self.lr * self.buffers[i]
                self.buffers[i] = self.momentum * self.buffers[i] + parameter.grad.data
""",
        ("test_sgd",),
    ),
    Planted(
        "a buffer fades where there is no gradient",
        "",
        """            if parameter.grad is not None:
                self.buffers[i] = self.momentum * self.buffers[i] + parameter.grad.data
""",
        """            self.buffers[i] = self.momentum * self.buffers[i]
            if parameter.grad is not None:
                self.buffers[i] = self.buffers[i] + parameter.grad.data
""",
        ("test_sgd",),
    ),
    Planted(
        "the first buffer is the gradient's array, which clearing fills with zeros",
        "",
        """                self.buffers[i] = self.momentum * self.buffers[i] + parameter.grad.data
                parameter.data -= self.lr * self.buffers[i]
        ### END SOLUTION

    def zero_grad(self, set_to_none=True):
        \"\"\"Set .grad of each parameter to None. With set_to_none=False, a .grad that is there becomes
        a MiniTensor of zeros, whatever it was, and None stays None.\"\"\"
        ### BEGIN SOLUTION
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad = None if set_to_none else MiniTensor(np.zeros(parameter.shape))
""",
        """                first, fresh = isinstance(self.buffers[i], float), parameter.grad.data
                self.buffers[i] = fresh if first else self.momentum * self.buffers[i] + fresh
                parameter.data -= self.lr * self.buffers[i]

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters:
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad.data[...] = 0.0
""",
        ("test_sgd",),
    ),
    Planted(
        "clearing multiplies by zero",
        "",
        "MiniTensor(np.zeros(parameter.shape))",
        "MiniTensor(parameter.grad.data * 0)",
        ("test_sgd",),
    ),
    Planted(
        "a step subtracts a tensor from the array",
        "",
        "parameter.data -= self.lr * self.buffers[i]",
        "parameter.data -= self.lr * parameter.grad",
        ("test_sgd",),
    ),
    Planted(
        "the gradient is summed to the shape of the first input before the rule",
        "",
        "        shares = node.backward(node, grad)\n",
        "        grad = sum_to(grad, node.input_shapes[0])\n        shares = node.backward(node, grad)\n",
        ("test_backward", KEEPS, "test_sgd"),
    ),
    Planted(
        "broadcasting is undone with the shape of the first input",
        "",
        "share = sum_to(share, shape)",
        "share = sum_to(share, node.input_shapes[0])",
        ("test_backward", KEEPS),
    ),
    Planted(
        "tanh does not save with save_for_backward",
        "",
        "ctx.save_for_backward(output)",
        "ctx.output = output",
        ("test_rules_as_classes", "test_backward"),
    ),
    Planted(
        "the shapes are not set",
        "",
        "        ctx.input_shapes = tuple(x.shape for x in inputs)\n",
        "",
        ("test_record", "test_backward", KEEPS, "test_sgd"),
    ),
    Planted(
        "a leaf gets each contribution at once",
        "",
        "                pending[source] = pending[source] + share if",
        "                if isinstance(source, AccumulateGrad):\n"
        "                    source.accumulate(share)\n                    continue\n"
        "                pending[source] = pending[source] + share if",
        (KEEPS,),
    ),
    Planted(
        "None from a rule is summed to a shape",
        "",
        "            if source is not None and share is not None:\n                share = sum_to(share, shape)\n",
        "            share = sum_to(share, shape)\n            if source is not None and share is not None:\n",
        (KEEPS,),
    ),
    Planted(
        "the edges are not from edge_to",
        "",
        "tuple(edge_to(x) for x in inputs)",
        "tuple((x.grad_fn, 0) for x in inputs)",
        ("test_record", "test_backward", KEEPS, "test_graph_lines", "test_sgd"),
    ),
]
STYLES = ["", *styles(LESSON)]


class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 7
    visible = True
    examples = 25


EXPRESSIONS = {
    "arithmetic": (lambda a, b: 2 / (a * b + 3) - (1 - a) / b, [(2, 3), (3,)]),
    "powers and functions": (lambda a, b: (a**3).exp() - (b**2 + 1).log() ** 0.5, [(2, 1), (1, 3)]),
    "reductions": (lambda a: a.sum(0) * a.mean(1, keepdim=True) + a.max(), [(3, 3)]),
    "matrix and vector": (lambda a, b: a @ b, [(4, 3), (3,)]),
    "vector and batch": (lambda a, b: a @ b, [(3,), (2, 3, 4)]),
    "two vectors": (lambda a, b: a @ b, [(3,), (3,)]),
    "batches, one of them stretched": (lambda a, b: a @ b, [(2, 1, 3, 4), (5, 4, 2)]),
    "shapes": (lambda a: a.T.reshape(2, 3).transpose(0, 1)[:, 1:].relu(), [(3, 2)]),
    "picked twice": (lambda a: a[[0, 0, 2]] * a[1], [(3, 4)]),
    "softmax": (lambda a: a.softmax(1) * a.log_softmax(0), [(3, 4)]),
}


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style or "solution")
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_engine_agrees_with_pytorch(name: str, style: str) -> None:
    expression, shapes = EXPRESSIONS[name]
    tensor: Any = solved(LESSON, style)["MiniTensor"]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.2, 1.0, shape) for shape in shapes]
    ours = [tensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    output, right = expression(*ours), expression(*theirs)
    cotangent = rng.normal(size=output.shape)
    output.backward(cotangent)
    right.backward(torch.tensor(cotangent))
    np.testing.assert_allclose(output.data, right.detach(), rtol=1e-12)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad.data, other.grad, rtol=1e-10, atol=1e-12)


def test_the_printer_runs_on_the_graph_of_pytorch() -> None:
    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    for style in STYLES:
        lines = solved(LESSON, style)["graph_lines"](((x * y + x) ** 2).grad_fn)
        assert [line.split()[0] for line in lines] == [
            "PowBackward0",
            "AddBackward0",
            "MulBackward0",
            "AccumulateGrad",
            "AccumulateGrad",
            "AccumulateGrad",
        ]
        assert lines[-1] == "        AccumulateGrad (again)"
