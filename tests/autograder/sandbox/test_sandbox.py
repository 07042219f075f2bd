"""A sandbox runs cells as a notebook does, answers with values, survives what is done to it, and hides the outside."""

import contextlib
import errno
import gc
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from autograder.files import files_below
from autograder.sandbox import sandbox as module_of_sandbox
from autograder.sandbox.files import readable
from autograder.sandbox.handles import is_handle, mark_constructor
from autograder.sandbox.process import isolation, process
from autograder.sandbox.process.kind import STUDENT
from autograder.sandbox.process.limits import Limits, NotAnswered, NotRebuilt, Refused, SandboxDied, StaleHandle
from autograder.sandbox.process.process import start_unsafe
from autograder.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.sandbox

QUICK = Limits(cell_seconds=2, query_seconds=1, grace_seconds=1, restarts=3)
BOX = """
class Box:
    def __init__(self, v): self.v = v
    def __add__(self, o): return Box(self.v + getattr(o, 'v', o))
    def __eq__(self, o): return True
    def __float__(self): return float(self.v)
    def __getitem__(self, i): return self.v
def make(v): return Box(v)
"""


@pytest.fixture
def sandbox():
    with Sandbox(QUICK) as made:
        yield made


@pytest.fixture
def collecting_while_answers_come(sandbox):
    """Run the garbage collector between an answer and its reading, and at no other time."""
    gc.disable()
    yield lambda: setattr(sandbox, "around", (lambda: None, gc.collect))
    gc.enable()


def test_an_object_that_is_dropped_here_while_it_comes_back_is_not_dropped_there(
    sandbox, collecting_while_answers_come
):
    sandbox.execute(BOX + "box = make(3)")
    dropped = [sandbox.lookup("box")]
    dropped.append(dropped)  # only the collector can tell that it is no longer used
    del dropped
    collecting_while_answers_come()
    box = sandbox.lookup("box")
    assert sandbox.lookup("make")(4).v == 4, "a question that tells the process what is not held any more"
    assert box.v == 3


def test_an_exception_that_is_raised_twice_or_asked_twice_stays_known(sandbox):
    sandbox.execute("problem = ValueError('x')\nproblem.balance, problem.list = 7, [object()]\ndef f(): raise problem")
    f, caught = sandbox.lookup("f"), []
    for _ in range(2):
        with pytest.raises(ValueError, match="x") as raised:
            f()
        caught.append(raised.value)
    del raised
    assert [caught[1].balance, caught[1].balance, len(caught[1].list)] == [7, 7, 1]
    caught.pop(0)
    gc.collect()
    assert sandbox.lookup("problem").balance == 7
    assert caught[0].balance == 7


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 1", [("execute_result", "2")]),
        ("1 + 1;", []),
        ("print(1)\nprint(2)", [("stream", "1\n2\n")]),
        (
            "import sys\nprint(1)\nprint(2, file=sys.stderr)\nprint(3)",
            [("stream", "1\n"), ("stream", "2\n"), ("stream", "3\n")],
        ),
        ("display(3)\n4", [("display_data", "3"), ("execute_result", "4")]),
        ("%time 5", None),
        ("!echo six", [("stream", "six\r\n")]),
        ("import subprocess\nsubprocess.run(['echo', 'x']);", [("stream", "x\n")]),
        ("async def f(): return 7\nawait f()", [("execute_result", "7")]),
        ("1 / 0", [("error", "ZeroDivisionError")]),
        ("_ = 3\n_", [("execute_result", "3")]),
        ("from IPython.display import clear_output\nprint(1)\nclear_output()\nprint(2)", [("stream", "2\n")]),
        ("h = display(1, display_id='a')\nh.update(2)", [("display_data", "2")]),
        ("%config IPCompleter.greedy = True\n8", [("execute_result", "8")]),
        ("input('?')", [("error", "RuntimeError")]),
        (
            "import torch\nfrom torch import nn\nfrom mini_autograd.widgets import explore\nexplore(1)\n9",
            [("execute_result", "9")],
        ),
        ("import torch\ntorch.tensor(1.0)", [("error", "ImportError")]),
    ],
)
def test_a_cell_shows_what_a_notebook_shows(sandbox, source, expected):
    outputs = sandbox.execute(source).outputs
    shown = []
    for output in outputs:
        data = output.get("data", {}).get("text/plain")
        shown.append((output["output_type"], output.get("text") or output.get("ename") or data))
    if expected is not None:
        assert shown == expected


def test_a_plot_is_shown(sandbox):
    result = sandbox.execute("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", seconds=60)
    assert any("image/png" in output.get("data", {}) for output in result.outputs)


def test_an_object_is_one_handle_and_forwards(sandbox):
    sandbox.execute(BOX + "b = Box([1, 2])\nsame = b")
    box = sandbox.lookup("b")
    assert is_handle(box)
    assert box is sandbox.lookup("same")
    assert type(box).__name__ == "Box"
    assert box.v == [1, 2]
    box.v = 5
    assert float(box) == 5.0
    assert isinstance(box, sandbox.lookup("Box"))
    assert not isinstance(3, sandbox.lookup("Box"))
    assert not hasattr(type(box), "__len__")
    assert "v" in dir(box)
    with pytest.raises(AttributeError):
        _ = box.nothing
    with pytest.raises(NameError):
        sandbox.lookup("nothing")


def test_an_object_that_a_function_returned_does_not_decide_comparisons(sandbox):
    sandbox.execute(BOX)
    box = sandbox.lookup("make")(3)
    assert (box == 3) is False
    assert (box != 3) is True
    assert (box == 3) is False
    assert sandbox.notes
    with pytest.raises(Refused):
        float(box + 1)
    with pytest.raises(Refused):
        np.abs(box + 1)
    assert (box + 1).v == 4
    with pytest.raises(TypeError):
        _ = box < 3


def test_an_object_that_the_test_made_answers_for_itself(sandbox):
    sandbox.execute(BOX)
    kind = sandbox.lookup("Box")
    mark_constructor(kind)
    with pytest.raises(Refused):
        kind(3) == 99  # noqa: B015
    assert float(kind(3) + 1) == 4.0


LATER = """
class Money:
    def __init__(self, v): self.v = v
def make(v): return Money(v)
def add(self, other): return Money(self.v + other.v)
def with_length(kind):
    kind.__len__ = lambda self: self.v
    return kind
"""


@pytest.mark.parametrize(
    "attach",
    [
        lambda sandbox: sandbox.execute("Money.__add__ = add"),
        lambda sandbox: sandbox.execute("setattr(Money, '__add__', add)"),
        lambda sandbox: sandbox.execute("class Adds:\n    __add__ = add\nMoney.__bases__ = (Adds, *Money.__bases__)"),
        lambda sandbox: setattr(sandbox.lookup("Money"), "__add__", sandbox.lookup("add")),
        lambda sandbox: sandbox.lookup("attach")(),
    ],
)
def test_an_operator_may_be_attached_after_the_first_object_was_seen(sandbox, attach):
    sandbox.execute(LATER + "class Money(Money, type('Base', (), {})): pass\ndef attach(): Money.__add__ = add")
    first = sandbox.lookup("make")(3)
    with pytest.raises(TypeError):
        first + first
    attach(sandbox)
    assert (first + first).v == 6
    assert (first + sandbox.lookup("make")(4)).v == 7


def test_an_operator_may_be_taken_away_or_changed_by_a_decorator(sandbox):
    sandbox.execute(LATER)
    first = sandbox.lookup("make")(3)
    assert not hasattr(type(first), "__len__")
    sandbox.execute("Money = with_length(Money)")
    assert len(first) == 3
    assert bool(first)
    sandbox.execute("del Money.__len__\nMoney.__hash__ = None")
    with pytest.raises(TypeError):
        len(first)
    with pytest.raises(TypeError):
        hash(first)


def test_a_class_cell_that_is_run_again_makes_a_new_class(sandbox):
    sandbox.execute(LATER)
    old = sandbox.lookup("make")(3)
    sandbox.execute(LATER + "Money.__add__ = add")
    new = sandbox.lookup("make")(4)
    assert (new + new).v == 8
    with pytest.raises(TypeError):
        old + old


def test_an_answer_too_large_to_send_describes_no_class():
    with Sandbox(Limits(message_bytes=1 << 16)) as sandbox:
        sandbox.execute(
            "import numpy as np\nclass A: pass\ndef f(): return [A(), np.zeros(1 << 16)]\ndef g(): return A()"
        )
        with pytest.raises(ValueError, match="too large"):
            sandbox.lookup("f")()
        assert type(sandbox.lookup("g")()).__name__ == "A"


def test_a_function_runs_where_the_object_lives(sandbox):
    sandbox.execute(BOX + "offset = 10")

    def batch(target, values, function):
        return [function(target(value).v) for value in values], np.arange(2.0)

    result, array = sandbox.lookup("make").__run_remotely__(batch, [1, 2], lambda v: v + offset)  # noqa: F821
    assert result == [11, 12]
    assert array.tolist() == [0.0, 1.0]


class _Made:
    def __init__(self, source):
        self.source = source

    def __reduce__(self):
        return eval, (self.source,)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (_Made("1 / 0"), "an object of class _Made cannot be rebuilt .*ZeroDivisionError: division by zero"),
        (_Made("missing"), "NameError: name 'missing' is not defined"),
        (_Made("{}['key']"), "KeyError: 'key'"),
        (_Made("int('x')"), "ValueError: invalid literal"),
        (type("Net", (torch.nn.Module,), {}), r"the class Net, which names torch.*Module, cannot .*\(TypeError: "),
        (type("Scale", (), {"factor": torch.ones(1)}), "the class Scale, which names torch.*ImportError: torch"),
    ],
)
def test_what_cannot_be_made_again_inside_is_named_with_the_reason(sandbox, value, message):
    sandbox.execute("def same(value): return value")
    with pytest.raises(NotRebuilt, match=message):
        sandbox.lookup("same")(value)
    assert sandbox.lookup("same")(3) == 3
    assert sandbox.starts == 1


def test_what_cannot_be_made_again_says_which_line_of_the_submission_failed(sandbox):
    sandbox.execute("def made(text):\n    return float(text)\ndef same(value): return value")
    made = sandbox.lookup("made")

    class Half:
        def __reduce__(self):
            return made, ("half",)

    with pytest.raises(NotRebuilt, match=r"an object of class Half .*ValueError: .*'half', in `return float\(text\)`"):
        sandbox.lookup("same")(Half())


def test_the_array_interface_of_an_object_is_never_believed(sandbox):
    interface = {"shape": (9,), "typestr": "<f8", "data": (4096, False), "version": 3}
    sandbox.execute(f"class P:\n    __array_interface__ = {interface}\np = P()")
    array = np.asarray(sandbox.lookup("p"))
    assert array.dtype == object


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("raise KeyError('x')", KeyError),
        ("raise StopIteration", RuntimeError),
        ("raise UnicodeDecodeError('utf-8', b'', 0, 1, 'x')", UnicodeDecodeError),
        ("raise ExceptionGroup('g', [ValueError(1)])", Exception),
        ("raise SystemExit(3)", SystemExit),
        ("raise type('E', (LookupError, ArithmeticError), {})('x')", LookupError),
        ("raise type('E', (OSError,), {'__str__': lambda s: 'mine'})(2, 'x')", OSError),
        ("raise None", TypeError),
    ],
)
def test_exceptions_arrive_as_what_they_are(sandbox, source, error):
    sandbox.execute(f"def f():\n    {source}")
    with pytest.raises(error):
        sandbox.lookup("f")()


def test_an_endless_answer_is_interrupted_and_the_state_kept(sandbox):
    sandbox.execute("x = 1\ndef f():\n    global x\n    x = 2\n    while True: pass")
    with pytest.raises(NotAnswered):
        sandbox.lookup("f")()
    assert sandbox.lookup("x") == 2
    assert sandbox.starts == 1


def test_a_process_that_ends_is_replaced_and_the_cells_replayed(sandbox):
    sandbox.execute("x = 1")
    assert sandbox.execute("import os\nos._exit(1)").died
    assert sandbox.lookup("x") == 1
    sandbox.execute("def f(): os._exit(1)\nimport os")
    function = sandbox.lookup("f")
    with pytest.raises(SandboxDied):
        function()
    assert sandbox.lookup("x") == 1
    with pytest.raises(StaleHandle):
        function()


def test_restarts_are_bounded(sandbox):
    for _ in range(5):
        sandbox.execute("import os\nos._exit(1)")
    assert sandbox.starts == QUICK.restarts + 1
    with pytest.raises(SandboxDied):
        sandbox.lookup("x")


def test_nothing_of_the_outside_is_to_be_seen(sandbox, monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("x")
    ours = [str(tmp_path), str(Path(__file__).parents[3] / "autograder"), str(Path.home() / ".ssh")]
    sandbox.execute(f"""
import os, pathlib
facts = dict(
    files=[p for p in {ours} if os.path.exists(p)],
    environment=sorted(set(os.environ) - {{'HOME', 'PATH', 'LANG', 'TZ', 'TERM', 'PWD'}}),
    processes=[p for p in os.listdir('/proc') if p.isdigit()],
    interfaces=os.listdir('/sys/class/net') if os.path.exists('/sys') else [],
    uid=os.getuid(),
    folder=os.getcwd(),
)
""")
    facts = sandbox.lookup("facts")
    assert facts["files"] == []
    assert not any("KEY" in name or "TOKEN" in name or "SECRET" in name for name in facts["environment"])
    assert facts["processes"] == ["1"]
    assert facts["interfaces"] in ([], ["lo"])
    assert facts["uid"] != 0
    assert facts["folder"] == "/home/student"


@pytest.mark.parametrize(
    "source",
    [
        "import ctypes\nassert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0",
        "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0",
        "import ctypes\nassert ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0",
        "import socket\nsocket.socket(40)",
        "import socket\nsocket.create_connection(('1.1.1.1', 53), 1)",
        "open('/etc/new', 'w')",
        "open('/opt/sandbox/inside/main.py', 'a')",
        "import os\nos.setuid(0)",
        "import fcntl, os\nfcntl.flock(open(os.__file__), fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "import ctypes\nassert ctypes.CDLL(None).inotify_init1(0) >= 0",
        "x = bytearray(1 << 45)",
        "open('big', 'wb').write(bytes(1 << 27))",
    ],
)
def test_what_is_forbidden_fails(sandbox, source):
    assert sandbox.execute(source).error is not None
    assert not sandbox.execute("1").died


ASKS_THE_KERNEL = """
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
file, page = os.open(os.__file__, os.O_RDONLY), mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
room = (ctypes.c_size_t * 2)(at, 8)
lock = (ctypes.c_long * 8)()
def error_of(call, *arguments):
    ctypes.set_errno(0)
    libc.syscall(*map(ctypes.c_long, (call, *arguments)))
    return os.strerror(ctypes.get_errno())
"""
INVALID, UNSUPPORTED, UNKNOWN = (os.strerror(n) for n in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS))
FINE = os.strerror(0)


@pytest.mark.parametrize(
    ("call", "arguments", "said"),
    [
        ("preadv2", "file, room, 1, 0, 0, 0", FINE),
        ("preadv2", "file, room, 1, 0, 0, 8", UNSUPPORTED),  # RWF_NOWAIT: only what is cached
        ("pwritev2", "file, room, 1, 0, 0, 8", UNSUPPORTED),
        ("io_setup", "1, at", UNKNOWN),  # its reads take the same flag
        ("mincore", "at, 4096, at", UNKNOWN),
        (451, "file, room, room, 0", UNKNOWN),  # cachestat
        (440, "-1, room, 1, 21, 0", UNKNOWN),  # process_madvise
        ("fadvise64", "-1, 0, 0, 4", FINE),  # the kernel would say that there is no such file
        ("readahead", "-1, 0, 4096", FINE),
        ("madvise", "at, 4096, 4", FINE),
        ("madvise", "at, 4096, 20", INVALID),  # MADV_COLD
        ("madvise", "at, 4096, 21", INVALID),  # MADV_PAGEOUT
        ("madvise", "at, 4096, (1 << 32) + 21", INVALID),
        ("fcntl", "file, 5, lock", FINE),  # F_GETLK
        ("fcntl", "file, 6, lock", FINE),  # F_SETLK
        *(("fcntl", f"file, {command}, lock", INVALID) for command in (36, 37, 38)),  # F_OFD_GETLK, F_OFD_SETLK(W)
        ("fcntl", "file, (1 << 32) + 37, lock", INVALID),
        *(
            ("fcntl", f"file, {command}, 0", INVALID) for command in (1024, 1025, 1026)
        ),  # F_SETLEASE, F_GETLEASE, F_NOTIFY
        *(("fcntl", f"file, {command}, room", INVALID) for command in range(1035, 1039)),  # F_GET_RW_HINT and on
        ("quotactl_fd", "file, 0, 0, 0", os.strerror(errno.EPERM)),
    ],
)
def test_what_tells_of_the_kernel_s_caches_and_locks_is_refused(sandbox, call, arguments, said):
    import pyseccomp

    number = call if isinstance(call, int) else pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, call)
    values = arguments.replace("room", "ctypes.addressof(room)").replace("lock", "ctypes.addressof(lock)")
    sandbox.execute(f"{ASKS_THE_KERNEL}\nsaid = error_of({number}, {values})")
    assert sandbox.lookup("said") == said


def test_a_database_of_its_own_can_be_locked(sandbox):
    done = sandbox.execute(
        """
import multiprocessing, sqlite3
def add(points):
    with sqlite3.connect('own.db', timeout=20) as database:
        database.execute('insert into marks values (?)', (points,))
for mode in ('delete', 'wal'):
    with sqlite3.connect('own.db') as database:
        database.execute(f'pragma journal_mode={mode}')
        database.execute('create table if not exists marks (points real)')
    with multiprocessing.get_context('fork').Pool(3) as pool:
        pool.map(add, [1.5] * 10)
found = sqlite3.connect('own.db').execute('select count(*), sum(points) from marks').fetchall()
""",
        20,
    )
    assert done.error is None, done.outputs
    assert sandbox.lookup("found") == [(20, 30.0)]


def test_processes_are_limited_and_die_with_the_sandbox():
    mark = f"7{os.getpid()}"
    with Sandbox(QUICK) as sandbox:
        sandbox.execute(f"""
import subprocess
started = 0
for i in range(200):
    try:
        subprocess.Popen(['sleep', '{mark}'], start_new_session=True)
        started += 1
    except OSError:
        break
""")
        assert 0 < sandbox.lookup("started") < QUICK.processes
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not any(mark.encode() in command for command in commands)


def test_two_sandboxes_share_nothing():
    with Sandbox(QUICK) as one, Sandbox(QUICK) as two:
        look = "import os; seen = {*os.listdir('/tmp'), *os.listdir('/dev/shm'), *os.listdir('.')}"
        two.execute(look)
        before = two.lookup("seen")
        one.execute("open('/tmp/x', 'w').write('1'); open('/dev/shm/y', 'w').write('1'); open('z', 'w').write('1')")
        two.execute(look)
        assert not {"x", "y", "z"} & before
        assert two.lookup("seen") == before
        one.execute(look)
        assert {"x", "y", "z"} <= one.lookup("seen")


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", "."])
def test_the_number_of_files_is_limited(folder):
    with Sandbox(replace(QUICK, inodes=100)) as sandbox:
        made = sandbox.execute(f"""
import itertools, os
for made in itertools.count():
    try: os.mkdir(os.path.join({folder!r}, 'x' * 3 + str(made)))
    except OSError as error:
        says = error.errno
        break
""")
        assert made.error is None
        assert sandbox.lookup("says") == errno.ENOSPC
        assert 90 < sandbox.lookup("made") <= 100


def test_files_are_copied_without_notebooks_and_links(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1,2")
    (tmp_path / "hidden.ipynb").write_text("{}")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "b.csv").write_text("3,4")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    files = files_below(tmp_path)
    assert readable(files, 100) == {"data/a.csv": b"1,2"}
    assert readable(files, 2) == {}
    with Sandbox(QUICK, readable(files, 100)) as sandbox:
        sandbox.execute("text = open('data/a.csv').read()")
        assert sandbox.lookup("text") == "1,2"


def test_without_isolation_the_same_process_runs_in_a_folder_that_goes_away():
    with Sandbox(QUICK, start=start_unsafe) as sandbox:
        sandbox.execute("import os\nx = os.getcwd()\ndef f():\n    while True: pass")
        folder = sandbox.lookup("x")
        assert os.path.isdir(folder)
        sandbox.execute("import threading\nthreads = threading.active_count()")
        assert sandbox.lookup("threads") == 1
        with pytest.raises(NotAnswered):
            sandbox.lookup("f")()
    assert not os.path.exists(folder)


KILLED_JUDGE = r"""
import os, signal
from autograder.sandbox.process.process import start_unsafe
from autograder.sandbox.sandbox import Sandbox

sandbox = Sandbox(start=start_unsafe)
sandbox.execute("import os, subprocess, sys, threading")
sandbox.execute("child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\nme = os.getpid()")
print(sandbox.lookup("me"), sandbox.lookup("child").pid, flush=True)
sandbox.execute(f"threading.Timer(1, os.kill, ({os.getpid()}, {signal.SIGKILL})).start()\nwhile True: pass")
"""


def test_without_isolation_the_process_and_its_children_end_with_a_judge_that_is_killed():
    command = [sys.executable, "-c", KILLED_JUDGE]
    judge = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert judge.returncode == -signal.SIGKILL, judge.stderr
    left, until = judge.stdout.split(), time.monotonic() + 10
    while left and time.monotonic() < until:
        left = [process for process in left if os.path.exists(f"/proc/{process}")]
    assert left == []


LOOKS_FOR_ROOM = """
import os
for folder, folders, files in os.walk('/'):
    if folder in ('/proc', '/dev/pts', '/tmp', '/home/student', '/dev/shm'): folders.clear()
    elif os.access(folder, os.W_OK): print(folder)
"""


def test_an_ordinary_user_can_write_nowhere_but_in_the_limited_folders():
    command = isolation.bubblewrap_command(
        isolation.Isolation(True, "", user_namespace=True), STUDENT, Limits(), None, None
    )
    looking = [*command, "--", sys.executable, "-I", "-c", LOOKS_FOR_ROOM]
    looked = subprocess.run(looking, capture_output=True, text=True, timeout=120, check=True, env={})
    assert looked.stdout.split() == []


def test_python_may_live_below_tmp(monkeypatch):
    """A checkout in /tmp has its environment there: the sandbox's own /tmp must not cover it."""
    monkeypatch.setattr(isolation, "_python_paths", lambda: ("/tmp/checkout/.venv",))
    command = isolation.bubblewrap_command(isolation.isolation_available(), STUDENT, Limits(), 3, None)
    covered, shown = command.index("/tmp"), command.index("/tmp/checkout/.venv")
    assert command[covered - 1] == "--tmpfs"
    assert covered < shown


def is_running(number):
    """Whether the process exists and is not a zombie."""
    status = Path(f"/proc/{number}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] not in "ZX"


def test_a_question_at_the_recursion_limit_leaves_no_process(monkeypatch):
    """Any step may be cut short there for lack of stack, including the one that ends the process."""
    made = []

    class Noted(process.StudentProcess):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    def deeper(question):
        try:
            return deeper(question)
        except RecursionError:
            return question()  # with a little more room each time

    monkeypatch.setattr(module_of_sandbox, "StudentProcess", Noted)
    with Sandbox(QUICK) as sandbox:
        sandbox.execute("x = [1, 2]")
        with contextlib.suppress(SandboxDied, RecursionError):  # it may have been stopped too often
            assert deeper(lambda: sandbox.lookup("x")) == [1, 2]
        assert sandbox.starts > 1
    assert all(each.ended for each in made)
    assert not any(is_running(each.process.pid) for each in made)
