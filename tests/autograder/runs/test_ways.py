"""Does a check find out how an engine works, whatever its names and options, and blame no right one?"""

import numpy as np
import pytest

from autograder.student import Adapter, check_gradients, how_it_works


def engine(numbers="data", gradient="grad", backward="def backward(self): start(self, 1.0)", kind="float", sums="+ *"):
    """A right engine of numbers whose `backward` and names are given as text."""
    source = f"""
class Value:
    def __init__(self, numbers):
        self.{numbers}, self.{gradient}, self.rule, self.order = {kind}(numbers), {kind}(0.0), None, [self]

    {backward}

    def binary(self, other, value, first, second):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(value(self.{numbers}, other.{numbers}))
        out.order = list(dict.fromkeys(self.order + other.order)) + [out]
        def rule(grad):
            self.{gradient} = self.{gradient} + grad * first(self.{numbers}, other.{numbers})
            other.{gradient} = other.{gradient} + grad * second(self.{numbers}, other.{numbers})
        out.rule = rule
        return out

def start(out, seed):
    out.{gradient} = {kind}(seed)
    for node in reversed(out.order):
        if node.rule:
            node.rule(node.{gradient})
"""
    if "+" in sums:
        source += "Value.__add__ = lambda a, b: a.binary(b, lambda x, y: x + y, lambda x, y: 1, lambda x, y: 1)\n"
    if "*" in sums:
        source += "Value.__mul__ = lambda a, b: a.binary(b, lambda x, y: x * y, lambda x, y: y, lambda x, y: x)\n"
    namespace = {"np": np}
    exec(source, namespace)
    return namespace["Value"]


OPTIONS = {
    "retain_graph": "def backward(self, retain_graph=False): start(self, 1.0)",
    "verbose": "def backward(self, verbose=False): start(self, 1.0)",
    "retain_grad, create_graph": "def backward(self, retain_grad=False, create_graph=False): start(self, 1.0)",
    "retain_grad without a default that says so": "def backward(self, retain_grad=None): start(self, 1.0)",
    "an annotated switch": "def backward(self, gradients_too: bool = None): start(self, 1.0)",
    "zero_grad": "def backward(self, zero_grad=None): start(self, 1.0)",
    "a set of visited nodes": "def backward(self, visited=None): start(self, 1.0)",
}
SEEDS = {
    "gradient": "def backward(self, gradient=1.0): start(self, gradient)",
    "after a switch": "def backward(self, retain_graph=False, grad_output=None): start(self, grad_output or 1.0)",
    "by name": "def backward(self, *, seed=None): start(self, 1.0 if seed is None else seed)",
    "of an unknown name": "def backward(self, arriving): start(self, arriving)",
    "a tensor": "def backward(self, out_grad=None): start(self, 1.0 if out_grad is None else out_grad.data)",
    "a tensor that has to be there": "def backward(self, grad: 'Value'): start(self, grad.data)",
    "another method": "def backprop(self): start(self, 1.0)",
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_of_backward_is_no_gradient(name):
    found = engine(backward=OPTIONS[name])
    assert check_gradients(lambda a, b: a * b + a, [(), ()], points=1, engine=found) == 1
    assert how_it_works(found).endswith(".backward() takes no gradient, so the check calls it on (output * number)")


@pytest.mark.parametrize("name", SEEDS)
def test_the_gradient_of_backward_is_found(name):
    assert check_gradients(lambda a, b: a * b + a, [(), ()], points=1, engine=engine(backward=SEEDS[name])) == 1


@pytest.mark.parametrize("numbers", ["data", "value", "val"])
@pytest.mark.parametrize("gradient", ["grad", "gradient", "derivative"])
def test_names_of_numbers_and_gradients_are_found(numbers, gradient):
    found = engine(numbers, gradient)
    assert check_gradients(lambda a, b: a * b + a, [(), ()], points=1, engine=found) == 1
    assert f"numbers are in .{numbers}; its gradient is in .{gradient};" in how_it_works(found)


def test_float32_is_recognized_and_the_card_says_so():
    found = engine("value", kind="np.float32")
    credit = check_gradients(lambda a, b: a * b + a, [(), ()], points=1, engine=found)
    assert credit == 1
    assert "in float32, as the engine keeps its numbers: seven digits count" in credit.reports[0].text()
    assert "its numbers are in .value, in float32;" in how_it_works(found)


def test_an_engine_without_products_starts_with_one():
    found = engine(sums="+")
    assert check_gradients(lambda a, b: a + b + a, [(), ()], points=1, engine=found) == 1
    assert how_it_works(found).endswith("so it begins with 1")


class Arrays:
    """Sums of arrays, of which `backward` begins at numbers only, and nothing that could make a number."""

    def __init__(self, data, inputs=()):
        self.data, self.grad, self.inputs = np.asarray(data), 0.0, inputs

    def __add__(self, other):
        return Arrays(self.data + other.data, (self, other))

    def backward(self):
        if self.data.ndim:
            raise RuntimeError("backward begins at a number")
        self.push(np.ones(()))

    def push(self, grad):
        self.grad = self.grad + grad
        for source in self.inputs:
            source.push(grad)


def test_where_backward_cannot_be_started_the_check_says_what_it_asked_for():
    expressions = {"numbers": lambda a, b: a + b}
    assert check_gradients(expressions, [(), ()], points=1, engine=Arrays) == 1
    credit = check_gradients(expressions, [(3,), (3,)], points=1, engine=Arrays)
    (line,) = credit.reports[0].lines
    assert (credit, line.status) == (0, "not checked")
    assert "the check cannot start `backward` here: it needs `backward(gradient)`" in line.explanation
    assert not credit.reports[0].place
    assert not credit.reports[0].diagnosis


def test_a_wrong_rule_is_still_wrong_where_backward_starts_with_one():
    found = engine(sums="+")
    found.__add__ = lambda a, b: a.binary(b, lambda x, y: x + y, lambda x, y: 1, lambda x, y: -1)
    credit = check_gradients(lambda a, b: a + b, [(), ()], points=1, engine=found)
    assert credit == 0
    assert "its second input" in credit.reports[0].message


class Odd:
    """Nothing in it has a name that could be guessed."""

    def __init__(self, number):
        self.inside, self.sensitivity, self.why = number, 0.0, lambda upstream: None

    def __mul__(self, other):
        out = Odd(self.inside * other.inside)

        def why(upstream):
            for one, share in ((self, other.inside), (other, self.inside)):
                one.sensitivity += upstream * share
                one.why(upstream * share)

        out.why = why
        return out


def test_an_adapter_tells_what_cannot_be_found():
    adapter = Adapter(Odd, lambda t: t.inside, lambda leaf: leaf.sensitivity, lambda out, seed: out.why(seed))
    assert check_gradients(lambda a, b: a * b * a, [(), ()], points=1, engine=adapter) == 1
    assert how_it_works(adapter) == "an Adapter with leaf, numbers, gradient, backward"
    assert check_gradients(lambda a, b: a * b, [(), ()], points=1, engine=Odd) == 0


class Lists:
    """Numbers and gradients in lists, as engines without NumPy keep them."""

    def __init__(self, numbers, inputs=()):
        self.data, self.inputs = [float(number) for number in numbers], inputs
        self.grad = [0.0] * len(self.data)

    def __mul__(self, other):
        return Lists([a * b for a, b in zip(self.data, other.data, strict=True)], (self, other))

    def backward(self, grad=None):
        grad = [1.0] * len(self.data) if grad is None else list(grad)
        self.grad = [a + b for a, b in zip(self.grad, grad, strict=True)]
        if self.inputs:
            first, second = self.inputs
            first.backward([g * b for g, b in zip(grad, second.data, strict=True)])
            second.backward([g * a for g, a in zip(grad, first.data, strict=True)])


@pytest.mark.parametrize("shape", [(), (3,)])
def test_numbers_in_lists(shape):
    assert check_gradients(lambda a, b: a * b * a, [shape, shape], points=1, engine=Lists) == 1


def test_a_gradient_in_a_list_of_one():
    found = engine(gradient="grad[0]")
    found.__init__ = lambda self, numbers: vars(self).update(data=numbers, grad=[0.0], rule=None, order=[self])
    assert check_gradients(lambda a, b: a * b + a, [(), ()], points=1, engine=found) == 1
