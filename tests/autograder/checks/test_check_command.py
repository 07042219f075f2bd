"""Does `autograder check FILE` say what is right and wrong in an engine, and does it always end?"""

import doctest
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from autograder.checks.commands.check import CannotTry, load
from autograder.cli import main

RIGHT = '''
class Value:
    """An engine of numbers with a graph in `prev`."""

    def __init__(self, data, prev=()):
        self.data, self.grad, self.prev, self.rule = data, 0.0, prev, lambda: None

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other))

        def rule():
            self.grad += out.grad
            other.grad += out.grad

        out.rule = rule
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other))

        def rule():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.rule = rule
        return out

    __radd__, __rmul__ = __add__, __mul__

    def backward(self):
        order, todo, seen = [], [(self, False)], set()
        while todo:
            node, done = todo.pop()
            if done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                todo += [(node, True), *((source, False) for source in node.prev)]
        self.grad = 1.0
        for node in reversed(order):
            node.rule()
'''
SWAPPED = RIGHT.replace("self.grad += other.data * out.grad", "self.grad += self.data * out.grad")
REPLACING = RIGHT.replace(
    "self.grad = 1.0\n", "for node in order:\n            node.grad = 0.0\n        self.grad = 1.0\n"
)
ENDLESS = RIGHT.replace(
    ", __rmul__ = __add__, __mul__", " = __add__\n\n    def __rmul__(self, other):\n        while True: pass"
)
DYING = RIGHT.replace("        self.grad = 1.0\n", "        import os\n        os._exit(3)\n")


@pytest.fixture
def check(tmp_path, capsys):
    def checked(source, *options, name="my_engine.py"):
        file = tmp_path / name
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        status = main(["check", str(file), *options])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return checked


def cells(printed):
    """The words of each row of the table, by operation."""
    rows = [re.split(r"  +", line) for line in printed.splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) == 7}


def test_a_right_engine(check):
    status, printed, _ = check(RIGHT)
    assert status == 0
    assert printed.startswith(
        "a leaf is Value(a number); its numbers are in .data; its gradient is in .grad; .backward()"
    )
    table = cells(printed)
    assert table["operation"] == ["value", "gradient", "broadcast", "reuse", "second call", "deep graph"]
    assert table["a * b"] == ["right", "right", "-", "right", "right", "right"]
    assert set(table) >= {"a + 2", "2 * a", "c + c * a, where c = a * b", "a = a + a, 25 times"}
    assert not set(table) & {"a - b", "a / b", "tanh(a)", "a @ b", "sum(a)"}, "it does not have these"


def test_a_swapped_operand(check):
    status, printed, _ = check(SWAPPED)
    assert status == 1
    table = cells(printed)
    assert table["a + b"][:2] == ["right", "right"], "the check must not multiply by a product that is wrong"
    assert table["a * b"][:2] == ["right", "wrong"]
    assert "gets the same gradient" in printed or "the rule of `*`" in printed


def test_gradients_that_are_replaced_are_noted_and_not_wrong(check):
    status, printed, _ = check(REPLACING)
    assert status == 0
    assert cells(printed)["a * b"][4] == "replaces"
    assert "replaces: a second `backward` replaces the gradients" in printed


def test_a_loop_that_never_ends_is_named(check):
    status, printed, _ = check(ENDLESS, "--seconds", "5")
    assert status == 1
    assert "2 * a: did not end within 5 seconds, in line " in printed
    assert "of my_engine.py: `while True: pass`." in printed
    assert cells(printed)["a * b"][:2] == ["right", "right"], "the others are tried without it"


def test_a_process_that_ends_itself_is_told(check):
    status, _, error = check(DYING)
    assert status == 2
    assert "the process of the engine ended early, at a leaf" in error


def test_how_alone(check):
    status, printed, _ = check(RIGHT, "--how")
    assert status == 0
    assert len(printed.splitlines()) == 1


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def nothing(): pass", "no class in my_engine has operators .* and a method backward"),
        (
            "import numpi",
            "importing .* failed: ModuleNotFoundError: .*'numpi' \\(line 1: `import numpi`\\)",
        ),
        (
            "class Value:\n    def __init__(self): pass\n    __add__ = backward = None",
            "a leaf could not be made of V",
        ),
        ("class A:\n    __add__ = backward = None\nclass B(A): pass", "which of these is the engine\\? A, B"),
    ],
)
def test_what_cannot_be_tried_is_said(check, source, said):
    status, _, error = check(source)
    assert status == 2
    assert re.search(said, error)


def test_an_engine_in_a_package_by_name_and_by_adapter(tmp_path, monkeypatch):
    folder = tmp_path / "engines_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "base.py").write_text(RIGHT)
    (folder / "more.py").write_text("from .base import Value\nclass Other(Value): pass\ndef tanh(a): return a\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    engine, functions = load(str(folder / "more.py"))
    assert (engine.__name__, list(functions)) == ("Value", ["tanh"])
    assert load(f"{folder / 'more.py'}:Other")[0].__name__ == "Other"
    with pytest.raises(CannotTry, match="has no Tensor; its classes: Value, Other"):
        load(f"{folder / 'more.py'}:Tensor")
    (folder / "adapted.py").write_text(
        "from autograder.student import Adapter\nfrom .base import Value\nadapter = Adapter(Value)\n"
    )
    assert load(str(folder / "adapted.py"))[0].leaf.__name__ == "Value"


PAGE = Path(__file__).parents[3] / "docs" / "your_own_engine.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_on_the_page_give_what_it_shows(tmp_path):
    shown = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    commands = {"autograder": ["autograder.cli"], "pytest": ["pytest", "-p", "no:cacheprovider"], "python": []}
    tried = 0
    for language, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        first, _, rest = text.partition("\n")
        if language == "python":
            (tmp_path / first.removeprefix("# ")).write_text(text, encoding="utf-8")
            continue
        name, *arguments = first.removeprefix("$ ").split()
        module = [part for each in commands[name] for part in (["-m", each] if "." in each or each == name else [each])]
        command = [sys.executable, *module, *arguments]
        environment = {**os.environ, "PYTHONPATH": str(PAGE.parents[1])}
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, env=environment)
        assert doctest.OutputChecker().check_output(rest, done.stdout, shown), f"{first}\n{done.stdout}{done.stderr}"
        tried += 1
    assert tried == 4


def test_pytest_shows_the_card_in_any_editor(tmp_path):
    (tmp_path / "my_engine.py").write_text(SWAPPED)
    (tmp_path / "test_my_engine.py").write_text(
        "from autograder.student import check_gradients\n"
        "from my_engine import Value\n\n"
        "def test_sums():\n    check_gradients(lambda a, b: a + b + a, [(), ()], engine=Value)\n\n"
        "def test_products():\n    check_gradients(lambda a, b: a * b, [(), ()], engine=Value)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "1 failed, 1 passed" in done.stdout
    assert "E           autograder.runs.errors.CheckFailed: Gradients: wrong" in done.stdout
    assert re.search(r"^E +wrong +a \* b$", done.stdout, re.MULTILINE)
