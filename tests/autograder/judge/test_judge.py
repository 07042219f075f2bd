"""Hidden tests stay hidden, the instructor's names stay the instructor's, and odd notebooks get a verdict."""

import asyncio
import copy
import json
import threading
from functools import partial

import pytest
import torch  # noqa: F401  (takes a second or more, which must not count as a test's time)
from nbformat import NotebookNode

from autograder.cards.credit import Credit
from autograder.judge import judge_apart
from autograder.judge.judge import judge_notebook
from autograder.judge.outside.running import no_event_loop
from autograder.judge.seeds import seed_of
from autograder.judge.writing.outputs import clean_data, clean_student_outputs
from autograder.judge.writing.points import points_for_value
from autograder.sandbox.process import isolation
from autograder.sandbox.process.limits import Limits, SandboxUnavailable
from autograder.sandbox.sandbox import Sandbox
from tests.autograder.judge.notebooks import cell, notebook, stock_points

pytestmark = pytest.mark.sandbox

QUICK = Limits(cell_seconds=1.5, query_seconds=1, grace_seconds=1)
HIDDEN_TEST = """# test
assert add(1, 2) == 3
### BEGIN HIDDEN TESTS
secret = 7731
assert add(secret, 1) == 7732, f"add({secret}, 1) should be 7732"
### END HIDDEN TESTS
"""


def verdict_on(*cells, limits=QUICK, **options):
    judged = notebook(*cells)
    verdict = judge_notebook(judged, limits=limits, **options)
    points = [cell.points for cell in verdict.cells]
    assert stock_points(judged) == points
    return verdict, judged


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        ("def add(a, b): return 3", "A hidden test failed."),
        ("def add(a, b):\n    if a > 9: raise ValueError(f'got {a}')\n    return 3", "your code raised an error."),
        (
            "def add(a, b):\n    if a > 9: raise type(f'E{a}', (KeyError,), {})(a)\n    return 3",
            "your code raised an error.",
        ),
        ("def add(a, b):\n    print('called with', a)\n    return 3", "A hidden test failed."),
        ("def add(a, b):\n    if a > 9: import os; os._exit(1)\n    return 3", "stopped the notebook's process"),
        ("def add(a, b):\n    while a > 9: pass\n    return 3", "took too long"),
        ("class R:\n    def __eq__(s, o): raise ValueError(o)\ndef add(a, b): return R() if a > 9 else 3", "A hidden"),
        (
            "import sys\ndef add(a, b):\n    if a > 9: sys.stderr.write(f'{a}'); raise SystemExit(a)\n    return 3",
            "your code raised an error.",
        ),
        (
            "KINDS = [KeyError, ValueError, TypeError, OSError, IndexError]\n"
            "def add(a, b):\n    if a > 9: raise KINDS[a % 5]\n    return 3",
            "your code raised an error.",
        ),
    ],
)
def test_a_hidden_failure_says_nothing_of_the_hidden_test(solution, message):
    verdict, judged = verdict_on(solution, HIDDEN_TEST)
    assert verdict.points == 0
    assert message in verdict.cells[0].message
    shown = json.dumps([c.outputs for c in judged.cells]) + verdict.cells[0].message
    assert "773" not in shown
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("answer", "test"),
    [
        ("def add(a, b): return a", "### BEGIN HIDDEN TESTS\nadd(7731, 2)\n### END HIDDEN TESTS"),
        (
            "def add(a, b):\n    print('got', a)",
            "def on(n):\n    add(n, 1)\n    return lambda f: f\n"
            "### BEGIN HIDDEN TESTS\n@on(7731)\n### END HIDDEN TESTS\ndef g(): pass\nassert False",
        ),
        (
            "def add(a, b): return a",
            "s = '\x0c'\nd = 7 % 2\n### BEGIN HIDDEN TESTS\nassert add(1, 1) == 2, '7731'\n### END HIDDEN TESTS",
        ),
    ],
    ids=["a value", "a decorator", "lines that a form feed does not end"],
)
def test_no_part_of_a_hidden_test_is_taken_for_a_visible_one(answer, test):
    verdict, judged = verdict_on(answer, f"# test\n{test}")
    assert verdict.points == 0
    assert "7731" not in json.dumps([c.outputs for c in judged.cells]) + verdict.cells[0].message


def test_what_hidden_tests_asked_cannot_be_kept_and_shown_later():
    keep = "seen = []\ndef add(a, b):\n    seen.append(a)\n    open('/tmp/seen', 'a').write(f'{a} ')\n    return a + b"
    tell = "import os\nprint(seen, os.path.exists('/tmp/seen') and open('/tmp/seen').read())\nseen"
    later = "# test\nassert add(4, 4) == 8\nassert tell() == 1"
    verdict, judged = verdict_on(
        keep, HIDDEN_TEST, tell, "def tell():\n    print(seen)\n    raise KeyError(seen)", later
    )
    assert [cell.points for cell in verdict.cells] == [2, 0]
    shown = json.dumps([c.outputs for c in judged.cells]) + str(verdict.cells)
    assert "7731" not in shown
    assert "[1]" in judged.cells[2].outputs[0].text


@pytest.fixture
def started(monkeypatch):
    """The sandboxes that the judge has started."""
    sandboxes = []

    def counted(*arguments, **options):
        sandboxes.append(Sandbox(*arguments, **options))
        return sandboxes[-1]

    monkeypatch.setattr("autograder.judge.judge.Sandbox", counted)
    return sandboxes


ADDS = "def add(a, b): return a + b"
LATER_TEST = HIDDEN_TEST.replace("(1, 2) == 3", "(1, 1) == 2")


@pytest.mark.parametrize(
    ("answer", "tests", "inside", "processes"),
    [
        (ADDS, ["# test\nassert add(1, 2) == 3"], [], 1),
        (ADDS, ["# test\nassert add(1, 2) == 3"], ["cell1"], 2),
        (ADDS, [HIDDEN_TEST], [], 2),
        (ADDS, [HIDDEN_TEST], ["cell1"], 2),
        (ADDS, [HIDDEN_TEST, LATER_TEST], ["cell1"], 3),
        ("def add(a, b): return 3 if a == 1 else 0", [HIDDEN_TEST], [], 2),
        ("def add(a, b): return 2", [HIDDEN_TEST], [], 1),  # it fails before the hidden part
        ("def add(a, b): return 2", [HIDDEN_TEST, LATER_TEST], [], 2),
    ],
)
def test_what_is_shown_comes_from_processes_that_end_before_a_hidden_test_asks(
    started, monkeypatch, answer, tests, inside, processes
):
    """A process can find out what one before it has left in the caches of the kernel."""
    asked = []
    ask = Sandbox._ask

    def noted(sandbox, request, *more):
        asked.append((started.index(sandbox), "7731" in str(request)))
        return ask(sandbox, request, *more)

    monkeypatch.setattr(Sandbox, "_ask", noted)
    shows, fails = "print(add(1, 1))", "# test\nassert add(1, 1) == 0, f'{add(1, 1)} is not 0'"
    verdict, judged = verdict_on(answer, *tests, shows, fails, inside=inside)
    assert judged.cells[len(tests) + 1].outputs[0].text in ("0\n", "2\n", "3\n")
    assert "is not 0" in verdict.cells[-1].message
    assert len(started) == processes
    assert [number for number, _ in asked] == sorted(number for number, _ in asked)
    assert not any(secret for number, secret in asked if number == 0 and processes > 1)


@pytest.mark.parametrize("change", ["del np", "np = 3", "import math as np"])
def test_an_import_of_a_test_is_made_again_after_a_student_has_changed_the_name(change):
    test = "# test\nimport numpy as np\nassert True"
    _, judged = verdict_on("x = 1", test, change, test, "print(np.arange(3))", test, "np.arange(3)")
    assert judged.cells[4].outputs[0].text == "[0 1 2]\n"
    assert judged.cells[6].outputs[0].data["text/plain"] == "array([0, 1, 2])"


def test_points_count_what_hidden_tests_changed_as_in_one_notebook():
    count = "n = 0\ndef bump():\n    global n\n    n += 1\n    return n"
    hidden = "# test\nassert bump() == 1\n### BEGIN HIDDEN TESTS\nassert bump() == 2\n### END HIDDEN TESTS"
    verdict, _ = verdict_on(count, hidden, "# test\nassert n == 2")
    assert verdict.points == 4


def test_a_visible_line_that_uses_hidden_names_is_hidden_too():
    test = "# test\n### BEGIN HIDDEN TESTS\nn = 7731\n### END HIDDEN TESTS\nassert add(n, 1) == 0, f'{n}'"
    verdict, judged = verdict_on("def add(a, b): return a + b", test)
    assert "7731" not in json.dumps([c.outputs for c in judged.cells])
    assert verdict.cells[0].message == "A hidden test failed."


@pytest.mark.parametrize(
    ("visible", "shown"),
    [
        ("def visible(n): return add(n, 1) == 0\nassert visible(2), 'seen'", True),  # its own n
        ("assert all([add(n, 1) == 0 for n in [2]]), 'seen'", True),
        ("n = 2\nassert add(n, 1) == 0, 'seen'", True),  # rebound
        ("def n(): return 2\nassert add(n(), 1) == 0, 'seen'", True),
        ("class Box: n = 2\nassert add(Box.n, 1) == 0, 'seen'", True),
        ("def visible(): return add(n, 1) == 0\nassert visible(), f'{n}'", False),
        ("assert all([add(k, n) == 0 for k in [2]]), f'{n}'", False),
        ("class Box: m = n\nassert add(Box.m, 1) == 0, f'{Box.m}'", False),
        ("if add(1, 1) == 0: n = 2\nassert add(n, 1) == 0, f'{n}'", False),  # may bind n
        ("n, m = n, 2\nassert add(n, m) == 0, f'{n}'", False),
        ("n += 1\nassert add(n, 1) == 0, f'{n}'", False),
        ("box = [lambda: n]\nassert add(box[0](), 1) == 0, f'{box[0]()}'", False),
    ],
)
def test_a_visible_line_is_hidden_only_if_it_reads_what_hidden_ones_bound(visible, shown):
    test = f"# test\n### BEGIN HIDDEN TESTS\nn = 7731\n### END HIDDEN TESTS\n{visible}"
    verdict, judged = verdict_on("def add(a, b): return a + b", test)
    assert "7731" not in json.dumps([c.outputs for c in judged.cells])
    assert ("seen" in verdict.cells[0].message) == shown
    assert (verdict.cells[0].message == "A hidden test failed.") != shown


def test_what_hidden_tests_print_is_dropped_and_what_visible_ones_print_is_kept():
    test = "# test\nprint('seen')\n### BEGIN HIDDEN TESTS\nprint('unseen')\n### END HIDDEN TESTS"
    _, judged = verdict_on("x = 1", test)
    shown = json.dumps(judged.cells[1].outputs)
    assert "seen" in shown
    assert "unseen" not in shown


@pytest.mark.parametrize(
    ("solution", "test", "message"),
    [
        ("def f(): return 1", "# test\nassert f() == 2", "This is not true: `assert f() == 2`"),
        ("def f(): return 1", "# test\nassert f() == 2, 'f() should be 2'", "f() should be 2"),
        (
            "def f(): return 1 / 0",
            "# test\nf()",
            "Your code raised ZeroDivisionError: division by zero, in `def f(): return",
        ),
        ("def f(): raise NotImplementedError", "# test\nf()", "Not written yet"),
        ("x = 1", "# test\nf()", "name 'f' is not defined"),
        ("def f():\n    while True: pass", "# test\nf()", "The test took too long"),
        ("class C: pass\ndef f(): return C()", "# test\nassert f() == 2", "was compared with a plain value"),
        (
            "class C:\n    __sub__ = lambda s, o: 0\ndef f(): return C()",
            "# test\nassert f() - 2 == 0",
            "as if it were a number",
        ),
        ("def f(): return float('nan')", "# test\nf()", "NaN or infinity"),
        *(
            (
                "import networkx\ndef f(): return networkx.DiGraph()",
                f"# test\nimport unittest, networkx as nx\n{test}",
                "Only its own process can tell whether an object of the submission's class DiGraph is an instance of",
            )
            for test in (
                "assert isinstance(f(), nx.DiGraph)",
                "assert not isinstance(f(), (list, nx.Graph))",
                "unittest.TestCase().assertIsInstance(f(), nx.DiGraph)",
            )
        ),
        (
            "def f(kind): return kind()",
            "# test\nimport torch\nclass Net(torch.nn.Module): pass\nf(Net)",
            "`f(Net)` failed with NotRebuilt: the class Net, which names torch.nn.modules.module.Module, cannot",
        ),
    ],
)
def test_a_visible_failure_is_explained_in_a_sentence(solution, test, message):
    verdict, _ = verdict_on(solution, test)
    assert message in verdict.cells[0].message
    assert len(verdict.cells[0].message) <= 400


OF_PYTORCH = {
    "right": ("def f(x): return 2 * x", 2),
    "wrong": ("def f(x): return x", 0),
    "right, with a history": ("w = torch.tensor(2., requires_grad=True)\ndef f(x): return w * x", 2),
    "a comparison of its own": ("torch.equal = torch.allclose = lambda *a, **o: True\ndef f(x): return x", 0),
    "a tensor with a class of its own": (
        "class Liar(torch.Tensor):\n    __torch_function__ = classmethod(lambda *a, **o: True)\n"
        "def f(x): return x.as_subclass(Liar)",
        0,
    ),
    "a tensor that becomes one": (
        "class Liar(torch.Tensor):\n    __torch_function__ = classmethod(lambda *a, **o: True)\n"
        "def f(x):\n    x = x.clone()\n    x.__class__ = Liar\n    return x",
        0,
    ),
    "an empty tensor": ("def f(x): return torch.zeros(0, 1)", 0),
    "an empty array": ("def f(x): return torch.zeros(0, 1).numpy()", 0),
    "the test's own tensor changed": ("def f(x):\n    x.data.zero_()\n    return x", 0),
}


@pytest.mark.parametrize("answer", OF_PYTORCH)
def test_tensors_are_compared_by_their_values_alone(answer):
    text, points = OF_PYTORCH[answer]
    given = cell("import torch\nfrom torch import nn", "locked", "given")
    tests = [
        f"# test\nx, want = torch.tensor([1., -2.]), torch.tensor([2., -4.])\nassert {compare}"
        for compare in (
            "torch.equal(f(x), want)",
            "torch.allclose(f(x), want)",
            "torch.isclose(want, f(x)).all()",
            "(f(x) == want).all()",
            "not (f(x) != want).any()",
            "(f(x) - want).abs().sum() < 1e-6",
            "nn.functional.mse_loss(f(x), want) < 1e-6",
        )
    ]
    verdict, _ = verdict_on(given, text, *tests, source=notebook(given, text, *tests), limits=Limits())  # PyTorch loads
    assert [cell.points for cell in verdict.cells] == [points] * len(tests), verdict.cells


COUNTED = "# test\npoints = 0\nif f(3) == 7:\n    points += 2\nelse:\n    print('7 was made from 3')\npoints"


@pytest.mark.parametrize(
    ("solution", "test", "message"),
    [
        ("def f(n): return 1", COUNTED, "The test printed: 7 was made from 3"),
        ("def f(n): return 1", COUNTED.replace("= 0", "= 1"), "The test printed: 7 was made from 3"),
        ("def f(n):\n    print('give me 2')\n    return 1", COUNTED, "The test printed: 7 was made from 3"),
        ("def f(n): print('give me 2')", "# test\nprint(end='')\nf(1) or 0", "0 of 2 points."),
        ("def f(n): return 1", "# test\nprint('a: ok\\n\\n  b: wrong  ')\n1", "The test printed: a: ok; b: wrong"),
        ("def f(n): return 1", "# test\nprint('x' * 999)\n1", "The test printed: " + "x" * 178 + " ..."),
        ("def f(n): return 1", "# test\n0.5", "0.5 of 2 points."),
        (
            "def f(n): return 1",
            f"{COUNTED[:-7]}\n### BEGIN HIDDEN TESTS\nif f(7731) != 0:\n    print(7731)\n### END HIDDEN TESTS\npoints",
            "The test printed: 7 was made from 3",
        ),
        (
            "def f(n): return 1",
            "# test\n### BEGIN HIDDEN TESTS\nseen = [7731]\n### END HIDDEN TESTS\nprint(seen)\n1",
            "1 of 2 points.",
        ),
        (
            "def f(n): return 1",
            "# test\nright = f(3) == 7\nprint('f(3) should be 7')\nassert right",
            "This is not true: `assert right`. The test printed: f(3) should be 7",
        ),
        ("def f(n): return 1", "# test\nprint('f(3)...')\nassert f(3) == 7, 'f(3) should be 7'", "f(3) should be 7"),
        (
            "def f(n): return 1",
            "# test\nprint('f(3) is a number')\n### BEGIN HIDDEN TESTS\nassert f(3) == 7\n### END HIDDEN TESTS",
            "A hidden test failed.",
        ),
        ("def f(n): return 1", "# test\nprint('no')\n-1", "The test gave -1 points, which is not between 0 and 2."),
    ],
    ids=[
        *("no points", "some points", "an answer that prints too", "an answer that prints, a test that does not"),
        *("several lines", "a long text", "nothing", "hidden prints", "a print of what is hidden"),
        *("then an assertion without words", "then one with words", "then a hidden one", "no points at all"),
    ],
)
def test_the_reason_that_a_test_prints_is_its_message(solution, test, message):
    verdict, judged = verdict_on(solution, test)
    assert verdict.cells[0].message == message
    assert "7731" not in json.dumps([c.outputs for c in judged.cells])


def test_a_printed_reason_follows_those_of_the_checks():
    test = """# test
from autograder.student import check_handwritten_gradient
print("exercise 1")
check_handwritten_gradient(slope, lambda x: x * x, [()], points=2)
"""
    verdict, _ = verdict_on("def slope(x): return (x,)", test)
    checked, _, printed = verdict.cells[0].message.partition(" The test printed: ")
    assert checked.endswith(".")
    assert printed == "exercise 1"


@pytest.mark.parametrize(
    ("value", "points"),
    [
        (None, 2), (1, 1), (1.5, 1.5), (0, 0), (True, 2), (False, 2), ("1", 2), ([1], 2), (2.0000000001, 2), (3, 0),
        (-1, 0), (float("nan"), 0), (float("inf"), 0), (10**400, 0), (Credit(0.5), 0.5),
    ],
)  # fmt: skip
def test_the_last_value_of_a_test_cell_is_points_where_it_is_a_possible_score(value, points):
    assert points_for_value(value, 2.0)[0] == points


def test_a_check_in_a_test_cell_gives_credit_and_a_card():
    from autograder.cards import check_report

    test = """# test
from autograder.student import check_handwritten_gradient
check_handwritten_gradient(slope, lambda x: x * x, [()], points=2)
"""
    right, judged = verdict_on("def slope(x): return (2 * x,)", test)
    wrong, spoilt = verdict_on("def slope(x): return (x,)", test)
    assert (right.points, wrong.points) == (2, 0), right.cells
    assert wrong.cells[0].message
    assert any("text/html" in output.get("data", {}) for output in spoilt.cells[1].outputs)
    assert check_report.Report
    assert judged.cells[1].outputs[0].metadata.autograder.points == 2


def test_an_engine_that_works_element_by_element_is_no_difference_quotient():
    engine = """import numpy as np
class MiniTensor:
    def __init__(self, data, requires_grad=False, source=None, index=None):
        self.data, self.grad, self.source, self.index = np.asarray(data, dtype=float), None, source, index
    def __getitem__(self, index):
        return MiniTensor(self.data[index], source=self, index=index)
    def backward(self, gradient):
        self.grad = gradient if self.grad is None else self.grad + gradient
        if self.source is not None:
            size = self.source.data.size
            places = np.arange(size).reshape(self.source.data.shape)[self.index].ravel()
            total = np.zeros(size)
            shares = np.ravel(gradient)
            for number, place in enumerate(places):
                total[place : place + 1] += shares[number : number + 1]
            self.source.backward(total.reshape(self.source.data.shape))
"""
    test = """# test
from autograder.student import check_gradients
check_gradients({"rows": lambda a: a[np.array([[0, 1], [1, 1], [2, 0]])]}, [(3, 4)], points=2)
"""
    verdict, _ = verdict_on(engine, test)
    assert verdict.points == 2, verdict.cells


def test_the_seed_depends_on_the_secret_and_the_cell_only():
    test = "# test\nfrom autograder.runs import context\nprint('seed', context.current().seed)"
    seeds = [partial(seed_of, secret) for secret in (b"a", b"a", b"b")]
    shown = [str(verdict_on("x = 1", test, seed=seed)[1].cells[1].outputs) for seed in seeds]
    assert shown[0] == shown[1] != shown[2]


SOURCE = notebook(
    cell("import numpy as np\nfrom math import isclose\nTOLERANCE = 1e-6", "plain"),
    cell("def close(a, b):\n    return abs(a - b) < TOLERANCE", "locked", "help"),
    cell("def f(x):\n    return x\ndef max(x, y):\n    return y", "student", "f"),
    cell("# test", "test", "t"),
)


@pytest.mark.parametrize(
    ("student", "test", "points"),
    [
        ("TOLERANCE = 9\ndef f(x): return 0", "# test\nassert close(f(3), 3)", 0),
        ("def close(a, b): return True\ndef f(x): return 0", "# test\nassert close(f(3), 3)", 0),
        ("isclose = lambda a, b: True\ndef f(x): return 0", "# test\nassert isclose(f(3), 3)", 0),
        ("class np:\n    allclose = lambda *a: True\ndef f(x): return 0", "# test\nassert np.allclose(f(3), 3)", 0),
        (
            "def f(x): return x",
            "# test\nassert close(f(3), 3) and isclose(f(3), 3)\nnp.testing.assert_allclose(f(3), 3)",
            2,
        ),
        ("list = [1]\ndef f(x): return x", "# test\nassert type(f([1])) is list and isinstance(f([2]), list)", 2),
        ("def max(x, y): return 5", "# test\nassert max(1, 2) == 2", 0),
        ("def max(x, y): return y", "# test\nassert max(7, 2) == 2", 2),
        ("def max(x, y): return x", "# test\nassert builtins_max(7, 2) == 7", 0),
    ],
)
def test_the_names_of_the_instructor_are_not_the_students_to_change(student, test, points):
    verdict, _ = verdict_on(
        cell("import numpy as np\nfrom math import isclose\nTOLERANCE = 1e-6", "plain"),
        cell("def close(a, b):\n    return abs(a - b) < TOLERANCE", "locked", "help"),
        student,
        test,
        source=SOURCE,
    )
    assert verdict.points == points, verdict.cells


GIVEN = """import os
LIMIT, counter = 3, 0
def given(): return os.getpid()
def limit(): return LIMIT
def count():
    global counter
    counter += 1
    return counter
class Given:
    def where(self): return os.getpid()
by_lambda = lambda: os.getpid()"""
STUDENTS = """def student(): return os.getpid()
def calls_given(): return given()
def calls(function): return function()
def students_limit(): return limit()
def students_count(): return count()"""
WHERE = {
    "given() == by_lambda() == os.getpid()": "a given function or lambda that a test calls runs outside",
    "calls_given() == calls(given) == student() != os.getpid()": "and inside for students' code",
    "Given().where() == student()": "given classes live inside",
    "calls(lambda: os.getpid()) == student()": "a function of the test travels",
    "[count(), count(), students_count()] == [1, 2, 1]": "what a given function changes exists twice",
    "[limit(), students_limit()] == [9, 3]": "a name that a test binds means nothing to students' code",
}


@pytest.mark.parametrize("claim", WHERE, ids=WHERE.get)
def test_given_cells_run_where_the_readme_says(claim):
    source = notebook(cell(GIVEN, "locked", "given"), STUDENTS, f"# test\nLIMIT = 9\nassert {claim}")
    verdict = judge_notebook(copy.deepcopy(source), source=source)
    assert verdict.cells[0].points == verdict.cells[0].max_points, verdict.cells[0].message


def test_cells_tagged_as_demo_are_not_run_and_manually_graded_ones_are():
    demo = cell("x = 2", "plain")
    demo.metadata["tags"] = ["demo"]
    verdict, judged = verdict_on("x = 1", demo, cell("print(x)", "manual", "m"), "# test\nassert x == 1")
    assert verdict.points == 2
    assert judged.cells[2].outputs[0].text == "1\n"
    assert len(verdict.cells) == 1


NAMES = tuple(f"cell{number}" for number in range(9))
COUNTS = """import matplotlib.pyplot as plt
from matplotlib.figure import Figure
drawn, draw = [], Figure.draw
def counted(self, *args):
    drawn.append(self)
    return draw(self, *args)
Figure.draw = counted"""
PLOTS = "figure, axes = plt.subplots()\naxes.plot([1, 2]);"
CLOSED = "# test\nassert not plt.get_fignums() and axes.lines[0].get_ydata().tolist() == [1, 2]"
NOT_DRAWN = "# test\n### BEGIN HIDDEN TESTS\nassert drawn == []\n### END HIDDEN TESTS"
SHOWN_ONCE = "# test\nassert len(drawn) == 2"  # once to find out how large it is
DRAWING = {
    "one run": ([SHOWN_ONCE], {}, 1),
    "one run inside": ([SHOWN_ONCE], {"inside": ("cell2", "cell3")}, 1),
    "a run with hidden tests after the one that is shown": ([NOT_DRAWN], {}, 1),
    "hidden tests inside": ([NOT_DRAWN], {"inside": ("cell3",)}, 1),
    "nothing decided": ([NOT_DRAWN], {"undecided": ("cell3",)}, 1),
    "points only": ([NOT_DRAWN], {"points_only": True}, 0),
    "points only, inside": ([NOT_DRAWN.replace("HIDDEN TESTS", "")], {"points_only": True, "inside": NAMES}, 0),
}


@pytest.mark.parametrize("name", DRAWING)
def test_only_what_is_shown_is_drawn(name):
    cells, options, pictures = DRAWING[name]
    judged = notebook(COUNTS, PLOTS, CLOSED, *cells)
    found = judge_notebook(judged, **options).cells
    assert [cell.points for cell in found] == [2, 2], found
    shown = [output for cell in judged.cells for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(shown) == pictures


def odd_notebooks():
    doubled = notebook(
        "x = 1", cell("# test\nassert x == 1", "test", "same"), cell("# test\nassert x == 2", "test", "same")
    )
    yield "the same id twice", doubled, [2, 0]
    lines = notebook("x = 1", "# test\nassert x == 1")
    lines.cells[0]["source"] = ["x = ", "1"]
    yield "source as lines", lines, [2]
    number = notebook("x = 1", "# test\nassert x == 1")
    number.cells[0]["source"] = 17
    yield "source a number", number, [0]
    strange = notebook("x = 1", "# test\nassert x == 1", "# test\nassert x == 1")
    strange.cells[0]["metadata"] = {"nbgrader": "yes", "tags": 4}
    strange.cells[1]["metadata"]["nbgrader"] = {"grade": True, "points": "many"}
    strange.cells[2]["metadata"]["nbgrader"]["points"] = float("nan")
    yield "metadata of the wrong types", strange, [0, 0]
    yield "no cells", NotebookNode(cells=[], metadata={}, nbformat=4, nbformat_minor=5), []
    yield "cells that are no list", NotebookNode(cells=None, metadata={}), []
    bad = notebook("x = 1", "# test\nassert x ==", "# test\nassert '\x00'", "# test\nassert x == 1")
    yield "tests that are not Python", bad, [0, 0, 2]
    surrogate = notebook(
        "x = '\udcff'\nprint(x)\n\udcff = 3", "# test\nassert x == '\\udcff'", "# test\nprint('\\udcff')"
    )
    yield "surrogates", surrogate, None
    deep = notebook("x = " + "(" * 5000 + ")" * 5000, "# test\nx")
    yield "source too deep", deep, [0]


@pytest.mark.parametrize(("name", "odd", "points"), [pytest.param(*row, id=row[0]) for row in odd_notebooks()])
def test_an_odd_notebook_gets_a_verdict(name, odd, points):
    verdict = judge_notebook(odd, limits=QUICK)
    json.dumps(odd).encode()
    if points is not None:
        assert [cell.points for cell in verdict.cells] == points
    assert all(cell.points == cell.max_points or cell.message for cell in verdict.cells)


def test_in_another_thread_a_submission_cannot_hold_a_test_up_either():
    results = []
    judged = notebook("def f():\n    while True: yield 1", "# test\nfor x in f(): pass", "# test\n2")
    thread = threading.Thread(target=lambda: results.append(judge_notebook(judged, limits=QUICK)))
    thread.start()
    thread.join()
    assert [cell.points for cell in results[0].cells] == [0, 2]


def test_a_test_that_computes_for_ever_is_stopped():
    verdict, _ = verdict_on("n = 1", "# test\nwhile n: pass", "# test\nassert n == 1")
    assert [cell.points for cell in verdict.cells] == [0, 2]
    assert "too long" in verdict.cells[0].message


@pytest.mark.parametrize(
    ("kind", "value", "gone", "kept"),
    [
        ("text/html", "<b>x</b><script>alert(1)</script>", "script", "<b>x</b>"),
        ("text/html", "<img src=x onerror=alert(1)>", "onerror", "img"),
        ("text/html", "<img src='http://x/pixel'><img src='/hub/logout'>", "src", "img"),
        ("text/html", "<img src='data:image/png;base64,AAAA'>", "script", "base64,AAAA"),
        ("text/html", "<a href='javascript:alert(1)'>x</a>", "javascript", "x"),
        ("text/html", "<div style='position:fixed;color:red'>x</div>", "position", "color"),
        ("text/html", "<iframe src='x'></iframe><b>y</b>", "iframe", "<b>y</b>"),
        ("text/markdown", "**x** <script>alert(1)</script>", "script", "**x**"),
        ("image/svg+xml", "<svg><script>alert(1)</script><circle r='3'/></svg>", "script", "circle"),
        ("application/javascript", "alert(1)", "alert", ""),
        ("application/vnd.jupyter.widget-view+json", "{}", "widget", ""),
        ("image/png", "<script>", "script", ""),
    ],
)
def test_what_students_show_cannot_act_in_a_browser(kind, value, gone, kept):
    shown = json.dumps(clean_data({kind: value}, 10_000))
    assert gone not in shown
    assert kept in shown


def test_outputs_of_students_are_bounded():
    flood = [{"output_type": "stream", "name": "stdout", "text": "x" * 100_000}] * 500
    assert len(json.dumps(clean_student_outputs(flood))) < 300_000
    assert clean_student_outputs([{"output_type": "error"}, {"output_type": 3}, {}])[0]["ename"] == ""


def test_without_bubblewrap_grading_refuses_and_names_the_command(monkeypatch):
    isolation.isolation_available.cache_clear()
    monkeypatch.setattr(isolation.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    try:
        with pytest.raises(SandboxUnavailable, match="sudo apt-get install bubblewrap"):
            judge_apart(notebook("x = 1", "# test\nassert x == 1"))
        verdict = judge_apart(notebook("x = 1", "# test\nassert x == 1"), unsafe=True)
        assert verdict.points == 2
        assert verdict.isolation.startswith("none")
    finally:
        isolation.isolation_available.cache_clear()


def test_a_test_cell_may_await_also_where_an_event_loop_runs_already() -> None:
    async def graded() -> float:
        await asyncio.sleep(0)
        cells = notebook(
            "async def f(x):\n    return x + 1", "# test\nimport asyncio\nassert await asyncio.sleep(0, 3) == 3"
        )
        points = judge_notebook(cells).cells[0].points
        await asyncio.sleep(0)  # the loop still runs
        return points

    with no_event_loop():
        assert asyncio.run(graded()) == 2
