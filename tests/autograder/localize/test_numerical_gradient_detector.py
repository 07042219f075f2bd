"""Right gradients that were found by means other than the chain rule do not count, and the report says why."""

import _thread
import asyncio
import contextlib
import itertools
import logging
import math
import os
import queue
import signal
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from numpy import tanh as tanh_by_another_name

from autograder.localize import numerical_gradient_detector
from autograder.runs.context import check_context
from autograder.runs.engines import Draw
from autograder.student import between, check_gradients

COMPLEX = 1e-30j


def weights(points):
    """Weights of the difference quotient through these points (in steps from the middle), computed exactly."""
    found = []
    for p in points:
        total = Fraction(0)  # the slope at 0 of the polynomial that is 1 at p and 0 at the others
        for q in points:
            if q != p:
                product = Fraction(1, p - q)
                for other in points:
                    if other not in (p, q):
                        product *= Fraction(-other, p - other)
                total += product
        found.append(float(total))
    return found


def quotient(points, step):
    """A difference quotient through these points; `step` makes the step of x."""
    factors = weights(points)

    def rule(f, derivative, x):
        h = step(x)
        return sum(w * f(x + p * h) for p, w in zip(points, factors, strict=True)) / h

    return rule


CENTRAL = {order: [p for p in range(-order // 2, order // 2 + 1) if p] for order in (4, 8, 12, 20)}
TABLE = np.linspace(-4, 4, 40_001)


def looked_up(f, derivative, x):
    """Cubic interpolation in a table of slopes."""
    step = TABLE[1] - TABLE[0]
    place = np.clip(((x - TABLE[0]) / step).astype(int), 1, len(TABLE) - 3)
    t = (x - TABLE[place]) / step
    y = [derivative(TABLE[place + k]) for k in (-1, 0, 1, 2)]
    return (
        -t * (t - 1) * (t - 2) / 6 * y[0]
        + (t + 1) * (t - 1) * (t - 2) / 2 * y[1]
        - (t + 1) * t * (t - 2) / 2 * y[2]
        + (t + 1) * t * (t - 1) / 6 * y[3]
    )


def extrapolated(f, derivative, x):
    table = [(f(x + h) - f(x - h)) / (2 * h) for h in (0.1, 0.05, 0.025, 0.0125, 0.00625)]
    for power in range(1, len(table)):
        table = [(4**power * b - a) / (4**power - 1) for a, b in itertools.pairwise(table)]
    return table[0]


def around_a_circle(f, derivative, x):
    roots = np.exp(2j * np.pi * np.arange(32) / 32)
    return np.mean([(f(x + 0.5 * root) / (0.5 * root)) for root in roots], axis=0).real


RULES = {
    "chain rule": lambda f, derivative, x: derivative(x),
    "forward once more": lambda f, derivative, x: derivative(x) + 0 * f(x),
    "from the value": lambda f, derivative, x: (1 - f(x)) * (1 + f(x)),
    "central differences": lambda f, derivative, x: (f(x + 1e-5) - f(x - 1e-5)) / 2e-5,
    "differences of fourth order": quotient(CENTRAL[4], lambda x: 1e-3),
    "differences of eighth order": quotient(CENTRAL[8], lambda x: 1e-2),
    "differences of twelfth order": quotient(CENTRAL[12], lambda x: 5e-2),
    "differences of twentieth order": quotient(CENTRAL[20], lambda x: 5e-2),
    "differences with relative steps": quotient(CENTRAL[8], lambda x: 1e-2 * x),
    "differences with the smaller step": quotient(CENTRAL[12], lambda x: np.minimum(0.05, 0.05 * np.abs(x))),
    "differences to one side": quotient(range(9), lambda x: 1e-2),
    "extrapolated differences": extrapolated,
    "looked up in a table": looked_up,
    "the mean around a circle": around_a_circle,
    "complex step": lambda f, derivative, x: f(x + 1e-30j).imag / 1e-30,
    "complex step, by its name": lambda f, derivative, x: np.imag(f(np.asarray(x, np.complex128) + COMPLEX)) / 1e-30,
    "forward once more for every number": lambda f, derivative, x: np.reshape(
        [derivative(number) + 0 * f(number) for number in np.repeat(np.ravel(x), 3)][::3], np.shape(x)
    ),
}
FORWARDS = {
    "a function": lambda x: np.tanh(x),
    "imported by name": lambda x: tanh_by_another_name(x),
    "exponentials": lambda x: 1 - 2 / (np.exp(2 * x) + 1),
}
PASSES = {"chain rule", "forward once more", "from the value"}
REASONS = {
    "forward once more for every number": "a difference quotient",
    "complex step": "complex numbers",
    "complex step, by its name": "complex numbers",
    "the mean around a circle": "complex numbers",
    "differences of twentieth order": "20 points around the point where forward evaluated it",
    "looked up in a table": "lose digits when numbers of very different sizes are combined",
}


def engine_with(rule, forward=FORWARDS["a function"], in_forward=False):
    """An engine of arrays that finds the slope of tanh with this rule."""

    class MiniTensor:
        def __init__(self, data, requires_grad=False, inputs=()):
            self.data, self.grad, self.inputs = np.asarray(data, dtype=float), None, inputs

        def tanh(self):
            x = self.data

            def slope():
                return rule(forward, lambda x: 1 - np.tanh(x) ** 2, x)

            known = slope() if in_forward else None
            return MiniTensor(forward(x), inputs=[(self, lambda g: g * (slope() if known is None else known))])

        def __mul__(self, other):
            a, b = self.data, other.data
            return MiniTensor(a * b, inputs=[(self, lambda g: g * b), (other, lambda g: g * a)])

        def backward(self, gradient=1.0):
            self.grad = gradient if self.grad is None else self.grad + gradient
            for source, share in self.inputs:
                source.backward(share(np.asarray(gradient)))

    return MiniTensor


def checked(engine, expressions=None, inputs=((5, 3), (5, 3))):
    reports = []
    expressions = expressions or {"tanh": lambda a, b: a.tanh() * b}
    with check_context(12345, graded=True, hidden=False, reports=reports):
        credit = check_gradients(expressions, list(inputs), points=2, engine=engine)
    return float(credit), reports[0].message


@pytest.mark.parametrize("forward", FORWARDS)
@pytest.mark.parametrize("name", RULES)
def test_only_the_chain_rule_counts(name, forward):
    with np.errstate(all="ignore"):
        points, message = checked(engine_with(RULES[name], FORWARDS[forward]))
    assert points == (2 if name in PASSES else 0), message
    assert REASONS.get(name, "") in message
    if name in REASONS:
        assert "they do not come from the chain rule with a formula for each slope" in message


@pytest.mark.parametrize("name", [name for name in RULES if "order" in name])
def test_differences_taken_in_forward_do_not_count_either(name):
    with np.errstate(all="ignore"):
        assert checked(engine_with(RULES[name], in_forward=True))[0] == 0


def numeric_engine(order, step):
    """An engine of arrays or numbers whose every rule is a difference quotient of the operation itself."""
    rule = quotient(CENTRAL[order], step)

    class MiniTensor:
        def __init__(self, data, inputs=()):
            self.data, self.grad, self.inputs = data, 0.0, inputs

        def of(self, f, *others):
            values = [self.data, *(other.data for other in others)]

            def share(n):
                return lambda g: g * rule(lambda x: f(*values[:n], x, *values[n + 1 :]), None, values[n])

            return type(self)(f(*values), [(x, share(n)) for n, x in enumerate((self, *others))])

        def __add__(self, other):
            return self.of(lambda a, b: a + b, other)

        def __mul__(self, other):
            return self.of(lambda a, b: a * b, other)

        def __truediv__(self, other):
            return self.of(lambda a, b: a / b, other)

        def __pow__(self, n):
            return self.of(lambda a: a**n)

        def exp(self):
            return self.of(lambda a: np.exp(a))

        def tanh(self):
            return self.of(lambda a: math.tanh(a) if isinstance(a, float) else np.tanh(a))

        def backward(self, gradient=1.0):
            self.grad = self.grad + gradient
            for source, share in self.inputs:
                source.backward(share(gradient))

    return MiniTensor


EXPRESSIONS = {
    "(a + b) * a": lambda a, b: (a + b) * a,
    "a / b + a": lambda a, b: a / b + a,
    "a**3 + b": lambda a, b: a**3 + b,
    "a.exp() * b": lambda a, b: a.exp() * b,
    "a.tanh() * b": lambda a, b: a.tanh() * b,
}
STEPS = {"fixed": lambda x: 1e-2, "relative": lambda x: 1e-2 * np.abs(x)}
# For a / b of two single numbers, relative steps lose no digit, and nothing can be seen from outside.
WAYS = [
    (name, step, shape)
    for name in EXPRESSIONS
    for step in STEPS
    for shape in ((), (4, 3))
    if (name, step, shape) != ("a / b + a", "relative", ())
]


@pytest.mark.parametrize(("name", "step", "shape"), WAYS)
def test_operators_and_single_numbers_are_no_way_round(name, step, shape):
    with np.errstate(all="ignore"):
        points, message = checked(numeric_engine(8, STEPS[step]), {name: EXPRESSIONS[name]}, [shape, shape])
    assert points == 0, message


RIGHT = numerical_gradient_detector.WatchedDraw(Draw((np.ones((5, 6)),), None))


@pytest.mark.parametrize("entry", [None, [], {}, {"forward": "x"}, {"forward": 1, "repeated": None}, {"forward": -1}])
def test_what_the_student_s_process_says_of_itself_may_be_anything(entry):
    assert numerical_gradient_detector.reason(entry, RIGHT, ["a"]) == ""


@pytest.mark.parametrize("value", [None, 1, "x", [], np.ones(2), np.array(["x"]), np.nan, {"odd": "x"}])
def test_numbers_of_a_trial_may_be_anything(value):
    expected = numerical_gradient_detector.trial_of(*trial_parts())
    assert expected.reference is not None
    assert numerical_gradient_detector.reason({"forward": 1, "value": value, "gradients": value}, expected, ["a"]) == ""
    right = {"forward": 1, "value": expected.reference.value}
    assert numerical_gradient_detector.reason({**right, "gradients": [value]}, expected, ["a"]) == ""


def trial_parts():
    from autograder.runs.expected import expected_of
    from autograder.runs.inputs import cases_of
    from autograder.runs.programs import programs_of

    cases = cases_of([(5, 6)])
    (program,) = programs_of(lambda a: (a * a).sum(), 1)
    return program, expected_of(program, cases, 1), cases


def test_a_trial_stretches_numbers_of_any_size_and_leaves_others_as_they_are():
    from autograder.runs.expected import expected_of
    from autograder.runs.inputs import cases_of
    from autograder.runs.programs import programs_of

    cases = cases_of([(50,), between(0.5, 0.9, (50,))])
    (program,) = programs_of(lambda a, b: a * b.log(), 2)
    a, b = numerical_gradient_detector.trial_of(program, expected_of(program, cases, 1), cases).draw.inputs
    assert np.ptp(np.log2(np.abs(a))) > 10
    assert np.all((b >= 0.5) & (b <= 0.9))


def test_nothing_is_left_in_place_of_what_was_watched():
    before = math.tanh, np.tanh, np.array, np.asarray, sys.getprofile()
    checked(engine_with(RULES["chain rule"]))
    assert (math.tanh, np.tanh, np.array, np.asarray, sys.getprofile()) == before


def test_an_engine_that_takes_the_profiler_away_is_refused():
    kind = engine_with(RULES["chain rule"])
    before = kind.backward

    def backward(self, gradient=1.0):
        sys.setprofile(None)
        before(self, gradient)

    kind.backward = backward
    points, message = checked(kind)
    assert points == 0
    assert "cannot be seen" in message
    assert "profiler" in message


@pytest.mark.parametrize("call", [lambda function, value: function(value), lambda *pair: list(map(pair[0], pair[1:]))])
def test_an_engine_that_puts_the_profiler_back_is_refused_too(call):
    kind = engine_with(RULES["chain rule"])
    before = kind.backward

    def backward(self, gradient=1.0):
        looking = sys.getprofile()
        call(sys.setprofile, None)
        before(self, gradient)
        call(sys.setprofile, looking)

    kind.backward = backward
    points, message = checked(kind)
    assert points == 0
    assert "profiler" in message


def test_differences_that_are_taken_when_the_gradient_is_read_do_not_count_either():
    """For products, where the quotient is exact: only how often forward runs betrays it."""

    def product(a, b):
        return a * b

    def slopes(a, b):
        return np.reshape([product(x + 1, y) - product(x, y) for x, y in zip(a.flat, b.flat, strict=True)], a.shape)

    class MiniTensor:
        def __init__(self, data, inputs=()):
            self.data, self.inputs, self.later = np.asarray(data, dtype=float), inputs, []

        def __mul__(self, other):
            return MiniTensor(product(self.data, other.data), [(self, other), (other, self)])

        def backward(self, gradient=1.0):
            self.later.append(lambda: gradient)
            for one, other in self.inputs:
                one.later.append(lambda one=one, other=other: slopes(one.data, other.data) * gradient)

        @property
        def grad(self):
            return sum(share() for share in self.later) if self.later else None

    points, message = checked(MiniTensor, {"a * b": lambda a, b: a * b})
    assert points == 0
    assert "as in a difference quotient" in message


def backward_by(way):
    """A right engine whose backward pass runs in this way; `way` calls the function that it is given."""
    kind = engine_with(RULES["chain rule"])
    before = kind.backward

    def backward(self, gradient=1.0):
        kind.backward = before  # it calls itself
        way(lambda: before(self, gradient))
        kind.backward = backward

    kind.backward = backward
    return kind


def in_a_thread(run):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def in_a_thread_of_its_own(run):
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(lambda: (run(), done.release()), ())
    done.acquire()


def in_a_process(run):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    run()


def in_a_new_pool(run):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result()


def in_an_event_loop(run):
    async def main():
        await asyncio.to_thread(run)

    running = asyncio._get_running_loop()  # the browser's tests leave theirs, if they ran in this process before
    asyncio._set_running_loop(None)
    try:
        asyncio.run(main())
    finally:
        asyncio._set_running_loop(running)


def after(function, seconds=0.05):
    """Call the function late: another thread was faster, and there is nothing to wait for."""
    time.sleep(seconds)
    return function()


@pytest.fixture(scope="module")
def ways_begun_before():
    """Ways that use a thread or a process which is there before anything is watched."""
    pool, asked, answered = ThreadPoolExecutor(1), queue.SimpleQueue(), queue.SimpleQueue()
    pool.submit(int).result()
    threading.Thread(target=lambda: [answered.put(run()) for run in iter(asked.get, None)], daemon=True).start()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            while True:
                os.write(writing, b"x")
        os._exit(0)
    yield {
        "a pool": lambda run: pool.submit(run).result(),
        "queues": lambda run: (asked.put(run), answered.get()),
        "a pipe": lambda run: (os.read(reading, 1), run()),
        "a pool that is faster": lambda run: after(pool.submit(run).result),
        "queues that are faster": lambda run: (asked.put(run), after(answered.get)),
    }
    asked.put(None)
    pool.shutdown()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    "way",
    [in_a_thread, in_a_thread_of_its_own, in_a_process, in_a_new_pool, in_an_event_loop],
    ids=lambda way: way.__name__,
)
def test_what_another_thread_or_process_calculates_does_not_count(way):
    points, message = checked(backward_by(way))
    assert points == 0
    assert "it cannot be seen whether they come from the chain rule: something is calculated in another" in message


@pytest.mark.parametrize("name", ["a pool", "queues", "a pipe", "a pool that is faster", "queues that are faster"])
def test_nor_does_it_if_that_was_there_before(ways_begun_before, name):
    points, message = checked(backward_by(ways_begun_before[name]))
    assert points == 0
    assert "it cannot be seen whether they come from the chain rule: something is calculated in another" in message


def by_a_queue(run):
    waiting = queue.Queue()
    waiting.put(run)
    while not waiting.empty():
        waiting.get()()


def by_a_simple_queue(run):
    waiting = queue.SimpleQueue()
    waiting.put(run)
    waiting.get()()


def by_asking_until_it_is_empty(run):
    waiting = queue.SimpleQueue()
    waiting.put(run)
    with contextlib.suppress(queue.Empty):
        while True:
            waiting.get_nowait()()


def with_a_lock(run):
    with threading.Lock(), threading.RLock(), threading.Condition():
        run()


def with_output(run):
    print("backward", flush=True)
    logging.getLogger("engine").warning("backward")
    warnings.warn("backward", stacklevel=1)
    run()


def with_an_import(run):
    sys.modules.pop("colorsys", None)
    import colorsys  # noqa: F401

    run()


def by_generators(run):
    for step in (function for function in [run]):
        step()


def test_an_engine_may_fill_a_queue_when_leaves_are_made():
    made = queue.SimpleQueue()

    def way(run):
        while not made.empty():
            made.get()
        run()

    kind = backward_by(way)
    original = kind.__init__

    def noting(self, *arguments, **options):
        made.put(self)
        original(self, *arguments, **options)

    kind.__init__ = noting
    assert checked(kind, {"a tanh": lambda a: a.tanh()}, [(5, 3)]) == (2, "")


@pytest.mark.parametrize(
    "way",
    [
        by_a_queue,
        by_a_simple_queue,
        by_asking_until_it_is_empty,
        with_a_lock,
        with_output,
        with_an_import,
        by_generators,
    ],
    ids=lambda way: way.__name__,
)
@pytest.mark.filterwarnings("ignore:backward")
def test_an_engine_may_do_in_its_own_thread_what_it_likes(way):
    assert checked(backward_by(way)) == (2, "")
