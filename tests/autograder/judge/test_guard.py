"""A test cell executes what the instructor wrote, and nothing that a student could have written."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from autograder.judge.judge import judge_notebook
from autograder.judge.outside import guard
from tests.autograder.judge.notebooks import notebook

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.sandbox

ACT = "open(ACTED, 'w').close()"
STUDENT = """
def f(x): return x * x
def g(x): return TEXT
def documented():
    '''
    >>> TEXT
    '''
"""

# What the student's cell writes besides, what the test does with it, and what is said about that.
TEXT, CODE, FILE, THREAD = (
    "execute only the instructor's",
    "load compiled code",
    "import a file",
    "only with threading.Thread",
)
ATTACKS = {
    "a lone carriage return": (
        "open('a.py', 'wb').write(b'\\r' + TEXT.encode() + b'\\rx = 3')",
        "exec(open('a.py').read())",
        TEXT,
    ),
    "a byte-order mark": (
        "open('a.py', 'w', encoding='utf-8-sig').write(TEXT)",
        "exec(open('a.py', encoding='utf-8-sig').read())",
        TEXT,
    ),
    "a large file": ("open('a.py', 'w').write(TEXT + chr(10) + '#' * (1 << 21))", "exec(open('a.py').read())", TEXT),
    "a text that is put behind another": (
        "open('a.py', 'w').write(TEXT)",
        "exec('import math\\n' + open('a.py').read())",
        TEXT,
    ),
    "a text that is filled into another": ("", "eval(f'f({g(3)})')", TEXT),
    "a returned text": ("", "eval(g(3))", TEXT),
    "a returned text, compiled": ("", "exec(compile(g(3), 'a.py', 'exec'))", TEXT),
    "another encoding": (
        "open('a.py', 'wb').write(b'# coding: utf-7\\n\"+ACIACg-' + TEXT.encode('utf-7') + b'+ACM-\"')",
        "exec(open('a.py', 'rb').read())",
        TEXT,
    ),
    "a syntax tree": ("", "import ast\nexec(compile(ast.parse(g(3)), 'a.py', 'exec'))", TEXT),
    "the examples in a docstring": (
        "",
        "import doctest\nx = lambda: 0\nx.__doc__ = documented.__doc__\n"
        "[test] = doctest.DocTestFinder().find(x, 'x', globs={})\ndoctest.DebugRunner().run(test)",
        "UnexpectedException",
    ),
    "an annotation": (
        "",
        "import typing\nx = lambda: 0\nx.__annotations__ = {'x': g(3)}\ntyping.get_type_hints(x)",
        TEXT,
    ),
    "a formula": ("", "import sympy\nsympy.sympify(g(3))", TEXT),
    "a timed text": ("", "import timeit\ntimeit.timeit(g(3), number=1)", TEXT),
    "a cached module": (
        "import os, py_compile\nopen('m.py', 'w').write(TEXT)\n"
        "made = py_compile.compile('m.py', invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n"
        "open('m.py', 'w').write('')",
        "import importlib.util, os\nspec = importlib.util.spec_from_file_location('m', os.path.abspath('m.py'))\n"
        "spec.loader.exec_module(importlib.util.module_from_spec(spec))",
        FILE,
    ),
    "compiled code": (
        "import marshal\nopen('m.bin', 'wb').write(marshal.dumps(compile(TEXT, 'm', 'exec')))",
        "import marshal\nexec(marshal.loads(open('m.bin', 'rb').read()))",
        CODE,
    ),
    "a module in an archive": (
        "import zipfile\nwith zipfile.ZipFile('m.zip', 'w') as z: z.writestr('m.py', TEXT)",
        "import zipimport\nzipimport.zipimporter('m.zip').load_module('m')",
        "can't open",
    ),
    "a module that the test wrote elsewhere": (
        "",
        "import importlib.util, pathlib, tempfile\npath = pathlib.Path(tempfile.mkdtemp(), 'm.py')\n"
        "path.write_text(g(3))\nspec = importlib.util.spec_from_file_location('m', path)\n"
        "spec.loader.exec_module(importlib.util.module_from_spec(spec))",
        FILE,
    ),
    "unpickling in a thread": (
        "import pickle\nclass P:\n    def __reduce__(self): return exec, (TEXT,)\n"
        "open('p.pkl', 'wb').write(pickle.dumps(P()))",
        "import pickle\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "ThreadPoolExecutor(1).submit(pickle.loads, open('p.pkl', 'rb').read()).result()",
        "unpickle only plain data",
    ),
    "a text in a thread": (
        "",
        "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor(1).submit(eval, g(3)).result()",
        TEXT,
    ),
    "a thread without a guard": ("", "import _thread\n_thread.start_new_thread(exec, (g(3),))", THREAD),
    "a process without a guard": (
        "",
        "import multiprocessing as m\nm.get_context('spawn').Process(target=exec, args=(g(3),)).start()",
        "start programs",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_no_text_of_a_student_is_executed(name: str, tmp_path: Path) -> None:
    written, test, refusal = ATTACKS[name]
    acted = tmp_path / "acted"
    text = ACT.replace("ACTED", repr(str(acted)))
    student = STUDENT.replace(">>> TEXT", f">>> {text}")
    cells = [f"TEXT = {text!r}", student, written, f"# test\n{test}\nimport time\ntime.sleep(0.2)"]
    verdict = judge_notebook(notebook(*(cell for cell in cells if cell)))
    assert not acted.exists()
    assert verdict.points == 0
    [cell] = verdict.cells
    assert refusal in cell.message


def test_a_thread_that_outlives_its_test_stays_guarded(tmp_path: Path) -> None:
    acted = tmp_path / "acted"
    later = "def later():\n    time.sleep(0.3)\n    try:\n        exec(text)\n    except PermissionError:\n"
    cells = [
        f"def g(x): return {ACT.replace('ACTED', repr(str(acted)))!r}",
        f"# test\nimport threading, time\ntext, refused = g(3), []\n{later}        refused.append(True)\n"
        "thread = threading.Thread(target=later)\nthread.start()",
        "# test\nthread.join()\nassert refused",
    ]
    assert judge_notebook(notebook(*cells)).points == 4
    assert not acted.exists()


def test_the_modules_that_the_guard_names_are_there() -> None:
    """A module that has moved would be refused what it may do."""
    ours = [
        guard.STARTING,
        *guard.OUR_GENERATORS,
        *(module for module, _ in guard.GENERATORS if "autograder" in module),
    ]
    for name in ours:
        importlib.import_module(name)
    for module, function in guard.GENERATORS:
        if module in sys.modules:
            assert f"def {function}" in Path(str(sys.modules[module].__file__)).read_text()


OWN = ("autograder.student", "autograder.checks", "mini_autograd")


@pytest.mark.parametrize("name", OWN)
def test_packages_of_the_working_directory_are_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the project grades from its own folder: a module first imported in a test is not a student's."""
    monkeypatch.chdir(ROOT)
    before = {key: module for key, module in sys.modules.items() if f"{key}.".startswith(f"{name}.")}
    for key in before:
        monkeypatch.delitem(sys.modules, key)
    parent, _, child = name.rpartition(".")
    if parent and name in before:  # the import below gives the parent another module by this name
        monkeypatch.setattr(sys.modules[parent], child, before[name])
    try:
        verdict = judge_notebook(notebook("x = 1", f"# test\nimport {name}\nassert x == 1"))
    finally:
        for key in [key for key in sys.modules if f"{key}.".startswith(f"{name}.")]:
            del sys.modules[key]
    assert verdict.points == 2, verdict.cells


HONEST = {
    "a text": "assert eval('f(3)') == 9",
    "a text that is indented": (
        "import textwrap\nexec(textwrap.dedent('''\n    y = f(3)\n    z = y\n'''))\nassert z == 9"
    ),
    "a text with a number in it": "for i in range(3):\n    assert eval(f'f({i})') == i * i == eval('f(%d)' % i)",
    "a name in a text": "for name in ('f', 'h'):\n    assert eval(f'{name}(3)') == 9",
    "data": "assert eval(data()) == [1, {'a': -2.5}]",
    "a tree": "import ast\nassert len(ast.parse(data()).body) == 1",
    "a text of an earlier cell": "assert helper() == 3",
    "timed": (
        "import timeit\n"
        "assert timeit.timeit(lambda: f(3), number=2) and timeit.timeit('f(3)', 'pass', number=1, globals=globals())"
    ),
    "a dataclass": (
        "import dataclasses\n@dataclasses.dataclass(order=True)\nclass P:\n    x: int = 3\nassert P() < P(4)"
    ),
    "named tuples": (
        "import collections, typing\nclass P(typing.NamedTuple):\n    x: int\n"
        "assert P(3).x == 3 == collections.namedtuple('Q', 'a b')(3, 4).a"
    ),
    "annotations": "import typing\nclass P:\n    x: 'list[int]'\nassert typing.get_type_hints(P) == {'x': list[int]}",
    "a mock": "from unittest import mock\nm = mock.create_autospec(lambda a: 1)\nm(1)\nm.assert_called_once_with(1)",
    "a doctest of its own": (
        "import doctest\ndef k():\n    '''\n    >>> 1 + 1\n    2\n    '''\n"
        "[test] = doctest.DocTestFinder().find(k, 'k', globs={})\nassert doctest.DocTestRunner().run(test).failed == 0"
    ),
    "threads": (
        "from concurrent.futures import ThreadPoolExecutor\nassert list(ThreadPoolExecutor(2).map(abs, [-1])) == [1]"
    ),
    "another thread": "import asyncio\nassert await asyncio.to_thread(abs, -3) == 3",
    "libraries": (
        "import sys\nfor name in [n for n in sys.modules if n.partition('.')[0] in ('wsgiref', 'sqlite3', "
        "'networkx')]:\n"
        "    del sys.modules[name]\nimport wsgiref.simple_server, sqlite3, networkx\n"
        "assert networkx.shortest_path(networkx.path_graph(3), 0, 2) == [0, 1, 2]"
    ),
    "a formula": "import sympy\nassert sympy.sympify('x**2').subs('x', 3) == 9",
}


@pytest.mark.parametrize("name", HONEST)
def test_what_the_instructor_wrote_is_executed(name: str) -> None:
    student = "def f(x): return x * x\nh = f\ndef data(): return \"[1, {'a': -2.5}]\""
    verdict = judge_notebook(
        notebook(student, "# test\ndef helper():\n    return eval('1 + 2')", f"# test\n{HONEST[name]}")
    )
    assert verdict.cells[1].points == 2, verdict.cells[1].message
