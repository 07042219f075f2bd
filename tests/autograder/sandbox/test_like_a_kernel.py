"""A notebook shows in the sandbox what it shows in a real kernel under nbclient: foreign notebooks that use all of
IPython, and the course's own lessons.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograder.files import files_below
from autograder.lessons.audit.kernel_run import run_in_kernel
from autograder.lessons.audit.passed_gates import PassedGates, fingerprint_of
from autograder.lessons.audit.variants import solved_release
from autograder.lessons.builder.lesson_files import place_files
from autograder.lessons.builder.notebook import assemble
from autograder.lessons.commands.audit import PASSED
from autograder.notebooks.cells import is_test
from autograder.sandbox.process.limits import Limits
from autograder.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.sandbox

LESSONS = sorted((Path(__file__).parents[3] / "course" / "lessons").glob("*/[0-9]*.py"))
ANSI = re.compile(r"\x1b\[[0-9;]*m")
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
TIMES = re.compile(r"((CPU times|Wall time|user|sys|total)\S*:?) ?[\d.]+(e\+\d+)? (ns|μs|µs|us|ms|s)\b")
FILE_LINE = re.compile(r"^.* File \".*\n", re.MULTILINE)
CELL_FILE = re.compile(r"\((\d+\.py|<ipython-input[^>]*>), line")

FOREIGN = {
    "results and displays": """
1 + 1
---
1 + 1;
---
x = 3
x
---
_ + 1, __, Out[1], In[2]
---
print('a'); display('b'); 'c'
---
None
---
[1, 2][0] if x else 2
---
for i in range(3):
    i
---
if x:
    x
---
import numpy as np
np.arange(12).reshape(3, 4)
---
{'b': 1, 'a': [1.5, None]}, {3, 1, 2}, range(3), b'x', ...
---
class Shown:
    def __repr__(self): return 'shown'
    def _repr_html_(self): return '<b>shown</b>'
    def _repr_markdown_(self): return '**shown**'
Shown()
---
class Mime:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'text/plain': 'plain', 'text/html': '<i>html</i>'}, {'text/html': {'isolated': True}}
display(Mime(), Mime())
---
class Broken:
    def __repr__(self): raise ValueError('no repr')
Broken()
---
from IPython.display import HTML, Markdown, Latex, JSON, SVG
display(HTML('<b>x</b>'), Markdown('**x**'), Latex('$x$'))
---
display(JSON({'a': 1}))
---
display(1, 2, 3)
---
h = display('first', display_id=True)
h.update('second')
---
from IPython.display import clear_output
print('gone'); clear_output(); print('kept')
---
import pprint
pprint.pprint(list(range(40)), width=20)
""",
    "magics": """
%matplotlib inline
---
%%time
y = 5
---
y
---
%%capture caught
print('inside')
---
caught.stdout
---
%precision 2
---
3.14159
---
%%writefile note.txt
one
two
---
!cat note.txt
---
lines = !cat note.txt
lines
---
%%bash
echo from bash; echo two
---
%env NOTHING=7
---
import os; os.environ['NOTHING']
---
%%script false --no-raise-error
---
%who_ls str
---
z = %timeit -n1 -r1 -o -q pass
type(z).__name__
---
%alias_magic t time
---
%%python
print(2 + 2)
---
%xmode Minimal
---
1 / 0
---
%nothing_like_this
---
get_ipython().run_line_magic('precision', '3')
---
len?
""",
    "asynchronous": """
import asyncio
async def double(x):
    await asyncio.sleep(0)
    return 2 * x
---
await double(4)
---
await asyncio.gather(double(1), double(2))
---
async for_result = 1
---
async with asyncio.timeout(5):
    print('inside')
---
async def numbers():
    for i in range(3):
        yield i
[i async for i in numbers()]
---
async for i in numbers():
    print(i)
---
loop = asyncio.get_running_loop() if False else None
loop is None
""",
    "errors": """
1 / 0
---
undefined_name
---
def f(:
---
def f(x):
    raise ValueError(f'not {x}')
f(3)
---
try:
    f(1)
except ValueError as e:
    raise RuntimeError('outer') from e
---
print('before')
raise KeyError('k')
---
assert 1 == 2, 'not equal'
---
import warnings
warnings.simplefilter('always')
print('still runs')
---
'a' + 1
---
raise SystemExit
---
class Own(Exception): pass
raise Own
---
  indented = 1
---
raise ExceptionGroup('several', [ValueError(1), TypeError('t')])
---
import sys
print('to stderr', file=sys.stderr)
---
sys.exit(3)
---
exit
""",
    "files and processes": """
from pathlib import Path
Path('a.txt').write_text('hello')
---
open('a.txt').read()
---
import subprocess, time
child = subprocess.run(['echo', 'child'], check=True)
time.sleep(1)  # a kernel reads what a child writes in another thread
child
---
subprocess.run('echo text', shell=True, capture_output=True, text=True).stdout
---
import os
status = os.system('echo from system')
time.sleep(1)
status
---
sorted(p.name for p in Path('.').glob('*.txt'))
---
import sys
sys.stdout.write('partial')
---
print('a', end=''); print('b', end='', flush=True)
---
import logging
logging.getLogger('x').info('unseen')
---
from multiprocessing.dummy import Pool
Pool(2).map(abs, [-1, -2])
---
import threading
t = threading.Thread(target=lambda: print('from a thread')); t.start(); t.join()
---
import tempfile
with tempfile.TemporaryDirectory() as d: print(Path(d).exists())
---
__name__, [n for n in ('__file__',) if n in globals()]
---
import inspect
def here(): return 1
inspect.getsource(here)
---
from dataclasses import dataclass
@dataclass
class P:
    x: int = 1
P()
---
import pickle
pickle.loads(pickle.dumps(P(3)))
""",
    "plots": """
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
---
plt.plot([1, 2, 3]);
---
fig, ax = plt.subplots()
ax.bar(['a', 'b'], [1, 2])
plt.show()
---
fig
---
plt.figure(); plt.figure(); print('two')
---
with plt.rc_context({'font.size': 5}):
    plt.hist([1, 1, 2])
    plt.close()
---
from IPython.display import Image
fig.savefig('f.png'); Image('f.png', width=50)
""",
}


def outputs_in_sandbox(notebook: NotebookNode, files: Mapping[str, bytes] | None = None) -> list[list[dict]]:
    with Sandbox(Limits(cell_seconds=120), files=files) as sandbox:
        return [sandbox.execute(cell.source).outputs for cell in notebook.cells]


def shown(outputs: list[dict]) -> list:
    """What outputs say, without what must differ: numbers of cells, colors, addresses, times, pixels, places of files,
    and questions for predictions, which are not asked while grading."""
    found: list = []
    for output in outputs:
        kind = output["output_type"]
        if str(output.get("data", {}).get("text/plain")).startswith("Predict: "):
            continue
        if kind == "stream":
            text = FILE_LINE.sub("", output["text"])
            text = TIMES.sub("1 s", ADDRESS.sub("0x", text)).replace("\r\n", "\n")
            if found and found[-1][:2] == ["stream", output["name"]]:
                found[-1][2] += text
            else:
                found.append(["stream", output["name"], text])
        elif kind == "error":
            found.append([kind, output["ename"], CELL_FILE.sub("(cell, line", ANSI.sub("", output["evalue"]))])
        else:
            data = {
                k: "..." if k.startswith("image/") else ADDRESS.sub("0x", str(v)) for k, v in output["data"].items()
            }
            found.append([kind, data])
    return found


def same(source: str, ran: list[list], here: list[list]) -> bool:
    """A kernel's own thread reads what a child process prints: it comes before or after the cell's other outputs."""
    if "subprocess" in source or "os.system" in source:
        return sorted(ran, key=str) == sorted(here, key=str)
    return ran == here


def differences(notebook: NotebookNode, expected: NotebookNode, outputs: list[list[dict]]) -> list[str]:
    found = []
    for cell, ran, here in zip(notebook.cells, expected.cells, outputs, strict=True):
        if not same(cell.source, shown(ran.outputs), shown(here)):
            found.append(f"{cell.source[:200]}\n  kernel:  {shown(ran.outputs)}\n  sandbox: {shown(here)}")
    return found


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_notebook_shows_what_it_shows_in_a_kernel(name, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")  # with it, a kernel does not show what its subprocesses print
    sources = [source.strip("\n") for source in re.split(r"^---$", FOREIGN[name], flags=re.MULTILINE)]
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    expected = run_in_kernel(notebook, tmp_path)
    assert "\n".join(differences(notebook, expected, outputs_in_sandbox(notebook))) == ""


# Cells of lessons whose outputs are times and the like, or that use what the sandbox withholds while grading.
NOT_COMPARED = re.compile(
    r"torch|explore|quiz|hints|check_|progress|start_lesson|time|perf_counter|random\(|id\(|getsizeof|tracemalloc|gc\."
)


def run_of(lesson: Path, folder: Path) -> NotebookNode:
    """A solved lesson with a kernel's outputs: those of `autograder audit`, if nothing has changed since."""
    source = assemble(lesson)
    kept = PassedGates(PASSED).kept_run(lesson.stem, fingerprint_of(lesson, lesson.parents[2], source))
    place_files(lesson, lesson.parents[2], folder)
    return kept or run_in_kernel(solved_release(source), folder)


def without_outputs(notebook: NotebookNode) -> NotebookNode:
    cleared = copy.deepcopy(notebook)
    for cell in cleared.cells:
        cell.outputs = []
    return cleared


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_shows_what_it_shows_in_a_kernel(lesson, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    of_kernel, of_sandbox = tmp_path / "kernel", tmp_path / "sandbox"  # neither sees what the other one writes
    of_kernel.mkdir()
    of_sandbox.mkdir()
    place_files(lesson, lesson.parents[2], of_sandbox)
    expected = run_of(lesson, of_kernel)
    expected.cells = [
        cell
        for cell in expected.cells
        if cell.cell_type == "code" and not is_test(cell) and "demo" not in cell.metadata.get("tags", [])
    ]
    notebook = without_outputs(expected)
    outputs = outputs_in_sandbox(notebook, files_below(of_sandbox))
    compared = [number for number, cell in enumerate(notebook.cells) if not NOT_COMPARED.search(cell.source)]
    for number in set(range(len(notebook.cells))) - set(compared):
        expected.cells[number].outputs, outputs[number] = [], []
    assert compared
    assert "\n".join(differences(notebook, expected, outputs)) == ""
