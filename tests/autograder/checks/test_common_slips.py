"""Does a card name the cause of slips that stop the student's code, and does it lead to the right place?"""

import itertools
import re
import signal
import threading
import time
from _thread import interrupt_main

import numpy as np
import pytest

from autograder.checks.beside import load
from autograder.lessons.builder.notebook import assemble
from autograder.lessons.release import release_notebook
from autograder.notebooks.cells import grade_id
from autograder.runs.context import check_context
from autograder.runs.errors import Interrupted
from autograder.runs.plain_values import described
from autograder.student import check_function, check_gradients, check_handwritten_gradient, positive
from tests.course.planting import solved, text_of

NO_RETURN = "is a `return` missing?"


def report_on(slip):
    """The report on a product by the engine of lesson 02 after a student's cell has run."""
    names = solved("02_scalar_engine")
    exec(slip, names)
    credit = check_gradients(lambda a, b: a * b, [(), ()], points=1, engine=names["MiniTensor"])
    assert credit == 0
    return credit.reports[0]


def multiply(ending):
    return f"def multiply(a, b):\n    def rule(grad):\n        return grad * b.data, grad * a.data\n    {ending}\n"


ASSIGN = "MiniTensor.__mul__ = multiply\n"
NO_TENSOR = {
    "return forgotten": (multiply("MiniTensor(a.data * b.data, (a, b), '*', rule)") + ASSIGN, NO_RETURN),
    "a plain number": (
        multiply("return a.data * b.data") + ASSIGN,
        "the result of the expression is a float, which has no",
    ),
}


@pytest.mark.parametrize("name", NO_TENSOR)
def test_an_operation_without_a_tensor_is_named_and_its_rule_is_not_blamed(name):
    slip, said = NO_TENSOR[name]
    report = report_on(slip)
    assert said in report.lines[0].explanation
    assert report.place == "`*` does not return a tensor, so no gradient can come back through it."
    assert "rule" not in report.hints[-1]


PARTS = {"value": "a.data * b.data", "inputs": "(a, b)", "name": "'*'", "rule": "rule"}
ORDERS = [order for order in itertools.permutations(PARTS) if order != tuple(PARTS)]


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_arguments_in_another_order_are_named(order):
    made = ", ".join(PARTS[part] for part in order)
    explanation = report_on(multiply(f"return MiniTensor({made})") + ASSIGN).lines[0].explanation
    assert re.search("order (of the arguments, .*with|than in) the definition", explanation)


@pytest.mark.parametrize(("file", "line"), [("checks_02.py", ""), ("helpers_02.py", ""), ("mine.py", "return len(x)")])
def test_a_line_is_quoted_from_the_student_s_code_and_not_from_the_lesson_s_files(file, line, tmp_path):
    (tmp_path / file).write_text("def size(x):\n    return len(x)\n")
    size = load("a_module", tmp_path / file).size
    with pytest.raises(TypeError) as raised:
        size(3)
    (traceback,) = [part for part in raised.traceback if part.path.name == file]
    assert described(raised.value.with_traceback(traceback._rawentry))["line"] == line


FORGOTTEN_RETURNS = {
    "in forward": (
        "return output",
        "output",
        "a single nan, which is what None becomes in an array (is a `return` missing?)",
    ),
    "in backward": ("return grad *", "grad *", "returned nothing for its one input: is a `return`"),
}


@pytest.mark.parametrize("place", FORGOTTEN_RETURNS)
def test_a_forgotten_return_in_a_function_class_is_among_the_causes(place):
    right, slip, said = FORGOTTEN_RETURNS[place]
    tanh = """
class Tanh(Function):
    @staticmethod
    def forward(ctx, a):
        output = np.tanh(a)
        ctx.save_for_backward(output)
        return output
    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad * (1 - output**2)
MiniTensor.tanh = lambda self: Tanh.apply(self)
"""
    names = solved("05_leaves_and_accumulation")
    exec(tanh.replace(right, slip), names)
    expressions = {"tanh": lambda a: a.tanh(), "tanh * a": lambda a: a.tanh() * a}
    report = check_gradients(expressions, [(3, 4)], points=1, engine=names["MiniTensor"]).reports[0]
    assert said in report.text()


ARRAYS = {
    "max, without a mask": """
def max_over(a, dim=None, keepdim=False):
    def rule(grad):
        return (np.full(a.shape, 0.25) * np.expand_dims(grad, dim),)
    return MiniTensor(a.data.max(axis=dim, keepdims=keepdim), (a,), "max", rule)
MiniTensor.max = max_over
""",
    "relu, the largest of all": """
def relu(a):
    return MiniTensor(np.max(a.data), (a,), "relu", lambda grad: (grad * (a.data > 0),))
MiniTensor.relu = relu
""",
    "relu, an array and no tuple": """
def relu(a):
    return MiniTensor(np.maximum(a.data, 0.0), (a,), "relu", lambda grad: grad * (a.data > 0))
MiniTensor.relu = relu
""",
    "sum, keepdim ignored": """
def sum_over(a, dim=None, keepdim=False):
    def rule(grad):
        return (np.ones(a.shape) * np.expand_dims(grad, dim),)
    return MiniTensor(a.data.sum(axis=dim), (a,), "sum", rule)
MiniTensor.sum = sum_over
""",
    "cross entropy, a plain number": """
def cross_entropy(logits, labels):
    return -logits.log_softmax(1)[np.arange(len(labels)), labels].mean().data
MiniTensor.cross_entropy = cross_entropy
""",
    "the gradient forgotten for one operand": """
def divide(a, b):
    a, b = as_tensor(a), as_tensor(b)
    def rule(grad):
        return grad / b.data, -a.data / b.data**2
    return MiniTensor(a.data / b.data, (a, b), "/", rule)
MiniTensor.__truediv__ = divide
""",
    "the gradient forgotten in a sum that a mean is made of": """
def sum_over(a, dim=None, keepdim=False):
    return MiniTensor(a.data.sum(axis=dim, keepdims=keepdim), (a,), "sum", lambda grad: (np.ones(a.shape),))
MiniTensor.sum = sum_over
""",
    "log_softmax, p times its own gradient": """
def log_softmax(a, dim):
    output = a.data - np.logaddexp.reduce(a.data, axis=dim, keepdims=True)
    return MiniTensor(output, (a,), "log_softmax", lambda grad: (grad - np.exp(output) * grad,))
MiniTensor.log_softmax = log_softmax
""",
}


def test_the_first_number_of_an_array_is_not_taken_for_a_gradient_of_zeros():
    report = report_on_arrays("relu, an array and no tuple", lambda a: a.relu(), [np.array([0.0, -1.0, 2.0])])
    assert "returned a single array for its one input" in report.place
    assert report.bugs == ()


def report_on_arrays(slip, expressions, inputs):
    """The report on some expressions by the engine of lesson 04 after a student's cell has run."""
    names = solved("04_arrays")
    exec(ARRAYS[slip], names)
    return check_gradients(expressions, inputs, points=1, engine=names["MiniTensor"]).reports[0]


def largest(a):
    """The largest of each row. PyTorch gives values and places, the lesson's engine only the values."""
    found = a.max(1)
    return found[0] if isinstance(found, tuple) else found


def test_an_engine_whose_maximum_gives_only_values_is_not_blamed_for_that():
    report = report_on_arrays("max, without a mask", {"a.max(1)": largest}, [(3, 4)])
    assert "`max` is the first operation, going backwards, whose gradient is wrong" in report.place
    assert "TypeError" not in report.text()


@pytest.mark.parametrize(
    ("slip", "expression", "said"),
    [
        ("relu, the largest of all", lambda a: a.relu() * 2, "first operation whose value is wrong"),
        ("sum, keepdim ignored", lambda a: a * a.sum(1, keepdim=True), "`sum` gives a wrong value when it is tried"),
    ],
    ids=["in the value of the whole", "where the whole raises an error"],
)
def test_a_value_of_a_wrong_shape_is_no_wrong_gradient(slip, expression, said):
    report = report_on_arrays(slip, {"expression": expression}, [(3, 4)])
    assert said in report.place
    assert "backwards" not in report.place
    assert report.hints[0].startswith("Work out")


def test_beside_an_operation_without_a_tensor_no_other_cause_is_offered():
    labels = [0, 2, 1]
    expression = {"times a": lambda a: a.cross_entropy(labels) * a}
    report = report_on_arrays("cross entropy, a plain number", expression, [(3, 4)])
    assert report.place.startswith("`cross_entropy` does not return a tensor")
    assert not report.diagnosis


def test_a_gradient_that_is_forgotten_for_one_operand_is_named():
    expressions = {"a / b": lambda a, b: a / b, "a - b": lambda a, b: a - b}
    report = report_on_arrays("the gradient forgotten for one operand", expressions, [(3, 4), positive((3, 4))])
    assert report.bugs == ("upstream_ignored",), report.text()
    assert "in the rule of `/`" in report.diagnosis


def test_a_gradient_that_is_forgotten_in_a_sum_is_named_though_the_mean_is_made_of_it():
    expressions = {"sum": lambda a: a.sum(), "mean": lambda a: a.mean(0), "exp": lambda a: a.exp()}
    slip = "the gradient forgotten in a sum that a mean is made of"
    report = report_on_arrays(slip, expressions, [[(3, 4)], [(2, 2)]])
    assert report.bugs == ("upstream_ignored",), report.text()


def test_an_operation_is_called_as_students_call_it():
    expressions = {"exp": lambda a: a.exp(), "log_softmax": lambda a: a.log_softmax(1)}
    report = report_on_arrays("log_softmax, p times its own gradient", expressions, [(3, 4)])
    assert report.diagnosis.startswith("the rule of `log_softmax` subtracts")


def test_where_an_operation_is_in_no_list_a_known_bug_is_only_one_of_several_possible_ones():
    names = solved("09_in_place_and_views")
    exec("CopySlices.backward = staticmethod(lambda ctx, grad: (grad * 0.0, grad.take(ctx.positions)))", names)

    def row_written(a, b):
        y = a * 2
        y[0].mul_(b)
        return y * y

    check = check_gradients({"a row": row_written}, [(2, 3), (3,)], points=1, engine=names["MiniTensor"])
    report = check.reports[0]
    assert not report.passed
    assert not report.diagnosis or "not certain" in report.diagnosis, report.text()


RAISED = {
    "None where a number is due": (
        "MiniTensor.__mul__ = lambda a, b: as_tensor(a.data * print(b.data))\n",
        NO_RETURN,
    ),
    "None where an axis is due": (
        "MiniTensor.__mul__ = lambda a, b, axis=None: as_tensor([a.data * b.data][axis])\n",
        "is None used as a number, such as an axis",
    ),
    "the cell of the class ran again": (
        "del MiniTensor.__mul__\n",
        "did you not run the cell that defines this operator after",
    ),
    "a rule that was called": (
        "MiniTensor.__mul__ = lambda a, b: MiniTensor(a.data * b.data, (a, b), '*', (b.data, a.data))\n",
        "was a rule called where the rule itself",
    ),
    "a misspelt attribute": ("MiniTensor.__mul__ = lambda a, b: a.dta\n", "is it misspelled"),
}


@pytest.mark.parametrize("name", RAISED)
def test_an_error_is_followed_by_its_usual_cause(name):
    slip, said = RAISED[name]
    assert said in report_on(slip).lines[0].explanation


TANH = """
class Tanh(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(np.tanh(a))
        return np.tanh(a)
    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad * (1 - output**2)
"""
RULE = "        return grad * (1 - output**2)\n"
IN_THE_RUN = {
    "a node is released before its own rule": (
        "rule = Function.saved_tensors.fget\n"
        "Function.saved_tensors = property(lambda node: (node.release(), rule(node))[1])\n",
        "was a node released before its own rule ran?",
        "the node was released before its own rule ran",
        "and not after that",
    ),
    "a node releases the nodes behind it": (
        "def release(node):\n    for later in topological_order(node):\n        later.saved = later.saved and None\n"
        "Function.release = release\n",
        "was a node released before its own rule ran?",
        "the node was released before its own rule ran",
        "and not after that",
    ),
    "a rule calls itself": (
        TANH.replace(RULE, "        return Tanh.backward(ctx, grad)\n"),
        "does a function call itself without end, or once for each node of a long graph?",
        "`tanh` raises an error when it is tried alone",
        "may call itself only if",
    ),
    "shapes do not fit": (
        TANH.replace(RULE, "        return grad * np.ones(7)\n"),
        "could not be broadcast together",
        "`tanh` raises an error when it is tried alone",
        "the gradient that arrives has the shape of the output",
    ),
    "recording is off": (
        "switches.recording = False\n",
        "was recording switched off and never switched back on",
        "raises the same error",
        "to restore the state from before",
    ),
}


@pytest.mark.parametrize("name", IN_THE_RUN)
def test_an_idea_fits_the_error(name):
    slip, explained, placed, idea = IN_THE_RUN[name]
    names = solved("07_grad_modes")
    exec(slip, names)
    expression = {"(a @ b).tanh().sum(1)": lambda a, b: (a @ b).tanh().sum(1)}
    report = check_gradients(expression, [(2, 3), (3, 4)], points=1, engine=names["MiniTensor"]).reports[0]
    assert explained in report.lines[0].explanation
    assert placed in report.place
    assert not report.diagnosis
    assert idea in report.hints[1]


@pytest.mark.parametrize("error", ["[] + 1", "(1.0).dta", "len(3)"])
def test_other_errors_get_no_cause(error):
    text = report_on(f"MiniTensor.__mul__ = lambda a, b: {error}\n").lines[0].explanation
    assert "your code raised" in text
    assert "?" not in text


def test_a_function_without_return_is_told_so():
    by_hand = check_handwritten_gradient(lambda x, y: None, lambda x, y: x * y, [(), ()], points=1)
    function = check_function(lambda x: None, lambda x: 2 * x, [(3,)], points=1)
    for credit in (by_hand, function):
        assert credit == 0
        assert NO_RETURN in credit.reports[0].text()


def endless(*inputs):
    waiting.set()
    while waiting.is_set():
        time.sleep(0.01)


waiting = threading.Event()


AROUND = {
    "the inputs are copied": "self.wrapped = lambda self, f: f(MiniTensor(self.data, requires_grad=True))",
    "the result is copied": "self.wrapped = lambda self, f: MiniTensor(f(self).data, requires_grad=True)",
    "one way is lost": "self.wrapped = lambda self, f: f(self) + MiniTensor(f(self).data) - f(self)",
    "it does not run": "self.wrapped = lambda self, f: f(self, self)",
}


def around(function, x):
    """Call a function through what a student has built around it, or directly on other engines."""
    return x.wrapped(function) if hasattr(x, "wrapped") else function(x)


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize("hidden", [False, True])
def test_a_function_around_right_operations_is_named_and_no_rule_is_blamed(name, hidden):
    names = solved("05_leaves_and_accumulation")
    exec(AROUND[name].replace("self.wrapped", "MiniTensor.wrapped"), names)
    with check_context(seed=1, graded=True, hidden=hidden):
        credit = check_gradients(
            {"in a function": lambda a: around(lambda x: (x * x).tanh(), a)},
            [(3,)],
            points=1,
            engine=names["MiniTensor"],
        )
    report = credit.reports[0]
    assert credit == 0
    assert report.place.startswith("Every operation is right when it is tried alone, and so are all of them together")
    assert ("`around`" in report.place) != hidden
    assert report.diagnosis == ""
    assert report.bugs == ()


@pytest.fixture
def interrupted_soon():
    """Interrupt like the stop button once the endless loop has begun, even in the background, which ignores SIGINT."""
    waiting.clear()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def stop():
        waiting.wait()
        interrupt_main()
        time.sleep(60)
        waiting.clear()  # no test hangs, whatever becomes of the interrupt

    threading.Thread(target=stop, daemon=True).start()
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_check_leads_to_the_loop_and_not_through_the_check(interrupted_soon):
    with pytest.raises(Interrupted) as stopped:
        check_function(endless, lambda x: 2 * x, [(3,)])
    (shown,) = stopped.value._render_traceback_()
    assert shown.startswith("KeyboardInterrupt: stopped while the check ran your code, in the line `")
    assert "time.sleep(0.01)" in shown or "while waiting" in shown


def test_an_interrupted_run_of_the_grader_is_left_as_it_is(interrupted_soon):
    with check_context(seed=1, graded=True), pytest.raises(KeyboardInterrupt) as stopped:
        check_function(endless, lambda x: 2 * x, [(3,)], points=1)
    assert type(stopped.value) is KeyboardInterrupt


def test_the_first_exercise_shows_a_card_before_anything_is_written(monkeypatch):
    """Nothing outside the check calls the student's function, so no error takes the place of the card."""
    text = text_of("01_derivatives")
    monkeypatch.syspath_prepend(str(text.parent))
    cells = {grade_id(cell): cell.source for cell in release_notebook(assemble(text)).cells}
    names = solved("01_derivatives")
    exec(cells["numerical_gradient"], names)
    credit = eval(cells["test_numerical_gradient"], names)
    assert credit == 0
    assert "not written yet" in credit.reports[0].text()
