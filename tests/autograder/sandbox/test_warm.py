"""Forks of the warm process: each is as isolated as a process started in bubblewrap, and none can reach another or
the process that it came from.
"""

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from autograder.judge import JUDGE
from autograder.sandbox.inside import fonts
from autograder.sandbox.inside.absent import ENGINES
from autograder.sandbox.process import forkserver, isolation
from autograder.sandbox.process.kind import INSIDE, OF_OTHER_COURSES, STUDENT
from autograder.sandbox.process.limits import Limits, SandboxLost, SandboxUnavailable, StaleHandle
from autograder.sandbox.process.memory import MemoryGroup
from autograder.sandbox.process.process import isolation_in_force, start_confined
from autograder.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.sandbox

QUICK = Limits(cell_seconds=2, query_seconds=1, grace_seconds=1, restarts=3)
FACTS = """
import os
status = dict(line.rstrip('\\n').split(':\\t', 1) for line in open('/proc/self/status') if ':\\t' in line)
facts = dict(
    rights={name: status[name].strip() for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs')},
    filtered=status['Seccomp'].strip(),
    group=os.getpgrp(), session=os.getsid(0), parent=os.getppid(), user=os.getuid(),
    descriptors=sorted(os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in os.listdir('/proc/self/fd')
                       if os.path.exists(f'/proc/self/fd/{n}') or n == '3'),
    environment=dict(os.environ),
    namespaces={n: os.readlink(f'/proc/self/ns/{n}') for n in ('user', 'mnt', 'pid', 'ipc', 'net')},
    terminals=os.listdir('/dev/pts'),
)
"""


@pytest.fixture(autouse=True)
def _forks_are_possible():
    if forkserver.why_not_warm() and not os.environ.get("CI"):
        pytest.skip(forkserver.why_not_warm())


def facts_of(sandbox: Sandbox) -> dict:
    sandbox.execute(FACTS)
    return sandbox.lookup("facts")


def test_a_fork_has_no_rights_and_no_way_to_the_process_it_came_from():
    with Sandbox(QUICK) as sandbox:
        facts = facts_of(sandbox)
    assert {int(value, 16) for name, value in facts["rights"].items() if name != "NoNewPrivs"} == {0}
    assert facts["rights"]["NoNewPrivs"] == "1"
    assert facts["filtered"] == "2"
    assert (facts["group"], facts["session"], facts["parent"], facts["user"]) == (1, 1, 0, 1000)
    assert facts["descriptors"].count("socket") == 1
    assert facts["terminals"] == ["ptmx"]


def test_each_fork_is_in_namespaces_of_its_own():
    with Sandbox(QUICK) as one, Sandbox(QUICK) as two:
        first, second = facts_of(one), facts_of(two)
    assert not set(first["namespaces"].values()) & set(second["namespaces"].values())
    ours = {os.readlink(f"/proc/self/ns/{name}") for name in first["namespaces"]}
    assert not ours & set(first["namespaces"].values())
    assert first["environment"] == second["environment"]


LEAVE_TRACES = """
import builtins, os, random, subprocess, sys, numpy as np, IPython, json, threading
open('/tmp/trace', 'w').write('x'); open('/dev/shm/trace', 'w').write('x'); open('trace', 'w').write('x')
os.environ['TRACE'] = 'x'
builtins.trace = np.trace_left = json.trace = sys.trace_left = 'x'
get_ipython().user_ns['trace'] = get_ipython().trace = 'x'
get_ipython().events.register('post_run_cell', lambda *a: print('trace'))
random.seed(1); np.random.seed(1)
np.set_printoptions(precision=1)
import matplotlib; matplotlib.rcParams['font.size'] = 99
subprocess.Popen(['sleep', '1000'], start_new_session=True)
threading.Thread(target=lambda: __import__('time').sleep(1000), daemon=True).start()
"""
FIND_TRACES = """
import builtins, os, sys, json, numpy as np, matplotlib
found = [path for path in ('/tmp/trace', '/dev/shm/trace', 'trace') if os.path.exists(path)]
found += [name for name in ('trace', 'TRACE') if name in os.environ or name in globals() or hasattr(builtins, name)]
found += [thing for thing in (np, json, sys, get_ipython()) if hasattr(thing, 'trace_left') or hasattr(thing, 'trace')]
found = [thing for thing in found if thing is not np]  # numpy.trace is a function of its own
found += [name for name in os.listdir('/proc') if name.isdigit() and name != '1']
found += [matplotlib.rcParams['font.size']] if matplotlib.rcParams['font.size'] == 99 else []
found += ['printing'] if np.get_printoptions()['precision'] != 8 or hasattr(np, 'trace_left') else []
"""


def test_nothing_of_one_submission_is_visible_to_the_next():
    for close_first in (True, False):
        one = Sandbox(QUICK)
        assert one.execute(LEAVE_TRACES).error is None
        if close_first:
            one.close()
        with Sandbox(QUICK) as two:
            result = two.execute(FIND_TRACES)
            assert (result.error, result.outputs) == (None, [])
            assert two.lookup("found") == []
        one.close()


def test_forks_do_not_draw_the_same_random_numbers():
    draws = []
    for _ in range(2):
        with Sandbox(QUICK) as sandbox:
            sandbox.execute("import random, numpy as np\ndraw = [random.random(), float(np.random.rand())]")
            draws.append(sandbox.lookup("draw"))
    assert draws[0][0] != draws[1][0]
    assert draws[0][1] != draws[1][1]


@pytest.mark.parametrize(
    "attack",
    [
        "os.kill(0, signal.SIGKILL)",
        "os.killpg(0, signal.SIGKILL)",
        "os.kill(-1, signal.SIGKILL)",
        "[os.kill(n, signal.SIGKILL) for n in range(2, 4000)]",
        "os.kill(os.getppid(), signal.SIGKILL)",
        "[os.close(n) for n in range(3, 200)]",
        "[os.write(n, b'+' * 5000) for n in range(3, 20)]",
        "open('/proc/1/mem', 'wb').write(b'x')",
        "ctypes.CDLL(None).unshare(0x10000000)",
        "open('/proc/self/oom_score_adj', 'w').write('-1000')",
    ],
)
def test_the_warm_process_survives_what_a_fork_does(attack):
    before = forkserver.warm_process()
    with Sandbox(QUICK) as sandbox:
        sandbox.execute(f"import ctypes, os, signal\ntry:\n    {attack}\nexcept OSError:\n    pass")
    with Sandbox(QUICK) as sandbox:
        sandbox.execute("x = 1")
        assert sandbox.lookup("x") == 1
    assert forkserver.warm_process() is before
    assert before.popen.poll() is None


@pytest.mark.parametrize("asked", [False, True], ids=["between two questions", "while it is asked"])
def test_a_warm_process_that_was_killed_is_replaced_and_its_forks_are_not_blamed(asked):
    with Sandbox(QUICK) as lost:
        lost.execute("import time\ndef wait(seconds): time.sleep(seconds)")
        wait, killed = lost.lookup("wait"), forkserver.warm_process().pid
        end = threading.Timer(0.3 * asked, os.kill, (killed, signal.SIGKILL))
        end.start()
        while not asked and not lost._process.has_ended():
            time.sleep(0.01)
        with pytest.raises(SandboxLost, match="process that starts submissions was killed"):
            wait(0.9)
        assert isinstance(lost.failure, SandboxLost), "a test that catches the error changes nothing"
        end.join()
    with Sandbox(QUICK) as next_one:
        assert next_one.execute("1 + 1").outputs[0]["data"]["text/plain"] == "2"


def test_an_object_of_a_process_that_ended_by_itself_since_is_said_to_be_lost():
    with Sandbox(QUICK) as sandbox:
        sandbox.execute("import os, threading\ndef f(x): return x\nthreading.Timer(0.2, os._exit, (1,)).start()")
        function = sandbox.lookup("f")
        while not sandbox._process.has_ended():
            time.sleep(0.01)
        with pytest.raises(StaleHandle):
            function(1)
        assert sandbox.failure is None
        assert sandbox.lookup("f")(1) == 1, "its cells were run again"


TOO_LITTLE = """
import os, sys
from pathlib import Path
from autograder.sandbox.process.limits import SandboxLost
from autograder.sandbox.sandbox import Sandbox
(Path(sys.argv[1]) / "cgroup.procs").write_text(str(os.getpid()))
with Sandbox() as sandbox:
    try:
        sandbox.execute("import numpy; kept = [numpy.ones(1_000_000) for _ in range(100)]")
        print("it found the memory")
    except SandboxLost as error:
        print(error)
"""


def test_a_submission_for_which_this_machine_has_too_little_memory_is_not_blamed(tmp_path):
    """As in a container with a limit of its own, which other submissions use up."""
    group = forkserver.warm_process().branch().memory
    if not group:
        pytest.skip("no control group can be made here")
    container = group.folder.with_name(f"test-{os.getpid()}")
    container.mkdir()
    try:
        (container / group.limit_file).write_text(str(400 << 20))
        done = subprocess.run([sys.executable, "-c", TOO_LITTLE, container], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("The memory of this machine ran out.")
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):
                container.rmdir()
                break
            time.sleep(0.05)


def test_where_forks_cannot_be_isolated_a_python_is_started_for_each_submission(monkeypatch):
    monkeypatch.setattr("autograder.sandbox.process.process.why_not_warm", lambda: "no namespaces within namespaces")
    assert "a fresh Python (no namespaces within namespaces) for each submission" in isolation_in_force()
    with Sandbox(QUICK) as sandbox:
        facts = facts_of(sandbox)
        assert facts["user"] != 0
        assert sandbox.execute("import os\nos._exit(1)").died
        assert sandbox.execute("1 + 1").outputs[0]["data"]["text/plain"] == "2"


def test_the_isolation_in_force_is_told():
    assert "bubblewrap" in isolation_in_force()
    assert "a fork of a warm process in its own namespaces" in isolation_in_force()


def test_a_fork_that_cannot_be_isolated_does_not_run(monkeypatch):
    """A mount that fails must not leave a process that is open to the outside."""
    forkserver.warm_process().branch()
    monkeypatch.setattr("autograder.sandbox.process.isolation.WRITABLE", ("/tmp", "/home/student", "/no/such/folder"))
    with Sandbox(Limits(restarts=0)) as sandbox, pytest.raises(SandboxUnavailable, match="No such file"):
        sandbox.lookup("x")


def test_memory_of_all_processes_together_is_limited():
    group = forkserver.warm_process().branch().memory
    if not group:
        pytest.skip("no control group can be made here")
    limits = Limits(cell_seconds=60, memory=1000 << 20)
    with Sandbox(limits) as sandbox:
        sandbox.execute("""
import os, time
started = []
for _ in range(8):
    started.append(os.fork())
    if started[-1] == 0:
        kept = b'x' * (200 << 20)
        time.sleep(60)
        os._exit(0)
first, status = os.waitpid(-1, 0)
left = [number for number in started if number != first and os.waitpid(number, os.WNOHANG)[0] == 0]
""")
        assert sandbox.lookup("status") == signal.SIGKILL
        assert sandbox.lookup("left")
        assert sandbox.starts == 1


def test_a_submission_is_in_the_memory_group_from_the_beginning():
    with Sandbox(QUICK) as sandbox:
        sandbox.prepare()
        group = forkserver.warm_process().branch().memory
        if not group:
            pytest.skip("no control group can be made here")
        members = (group.folder / "cgroup.procs").read_text().split()
    assert str(sandbox._process.process.pid) in members


def test_a_process_that_shares_the_warm_one_has_a_group_of_its_own_and_removes_it():
    def work():
        forkserver.preload([])
        with Sandbox(QUICK) as sandbox:
            sandbox.prepare()
        own = forkserver.warm_process().branch().memory
        there = own.folder is None or (own.folder != shared.folder and own.folder.exists())
        forkserver.end_warm_process()
        return there and (own.folder is None or not own.folder.exists())

    forkserver.warm_process().branch()
    shared = forkserver.warm_process().branch().memory
    assert in_a_fork(work) == "True"


def test_a_branch_that_was_killed_is_replaced_by_one_of_the_same_warm_process():
    warm = forkserver.warm_process()
    killed = warm.branch()
    signal.pidfd_send_signal(killed.process, signal.SIGKILL)
    select.select([killed.process], [], [])
    with Sandbox(QUICK) as sandbox:
        assert sandbox.execute("1 + 1").error is None
    assert forkserver.warm_process() is warm
    assert warm.branch() is not killed


def test_several_threads_get_the_same_branch():
    forkserver.end_warm_process()
    warm = forkserver.warm_process()
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(lambda number: warm.branch(), range(4)))) == 1


def test_what_is_left_in_a_group_ends_with_it():
    """Also where the keeper was killed: memory may have run out."""

    def work():
        forkserver.preload([])
        sandbox = Sandbox(QUICK)
        sandbox.execute("import subprocess; started = subprocess.Popen(['sleep', '1000'])")
        group = forkserver.warm_process().branch().memory
        if not group:
            return "no group"
        keeper = int(Path(f"/proc/{sandbox._process.process.pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(keeper, signal.SIGKILL)
        left = group.folder / "cgroup.procs"
        while str(keeper) in left.read_text().split():
            time.sleep(0.01)
        forkserver.end_warm_process()
        return not group.folder.exists()

    forkserver.warm_process().branch()
    assert in_a_fork(work) in ("True", "no group")


@pytest.mark.parametrize("elsewhere", [False, True], ids=["of a killed owner", "of another container"])
def test_an_abandoned_group_ends_with_its_processes_unless_its_owner_may_run_elsewhere(elsewhere):
    forkserver.warm_process().branch()
    own = forkserver.warm_process().branch().memory
    if not own:
        pytest.skip("no control group can be made here")
    _, namespace, _, _ = own.folder.name.split("-")
    ended = subprocess.Popen(["true"])
    ended.wait()
    folder = own.folder.with_name(f"autograder-{int(namespace) + elsewhere}-{ended.pid}-0")
    folder.mkdir()
    member = subprocess.Popen(["sleep", "1000"])
    try:
        (folder / "cgroup.procs").write_text(str(member.pid))
        MemoryGroup.make(1 << 30).remove()
        assert folder.exists() == elsewhere
        assert (member.poll() is None) == elsewhere
    finally:
        member.kill()
        member.wait()
        if folder.exists():
            folder.rmdir()


def test_the_warm_process_ends_with_its_owner():
    program = (
        "from autograder.sandbox.process import forkserver; from autograder.sandbox.sandbox import Sandbox; "
        "s = Sandbox(); s.prepare(); print(forkserver.warm_process().pid)"
    )
    for ending in ("", "; import os, signal; __import__('sys').stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)"):
        done = subprocess.run([sys.executable, "-c", program + ending], capture_output=True, text=True, check=False)
        number = int(done.stdout)
        deadline = time.monotonic() + 300
        while Path(f"/proc/{number}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not Path(f"/proc/{number}").exists()


def in_a_fork(work):
    """What `work` returns in a process that is forked from this one, as a text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as file:
        answer = file.read()
    os.waitpid(child, 0)
    return answer


def test_a_submission_ends_with_its_judge_and_no_other_does():
    """This also holds if the judge is killed and several judges share the warm process."""
    warm = forkserver.warm_process()

    def start_and_be_killed():
        forkserver.preload([])
        sandbox = Sandbox(QUICK)
        sandbox.execute("import subprocess; started = subprocess.Popen(['sleep', '1000'])")
        assert forkserver.warm_process().pid == warm.pid
        os.write(writing, str(sandbox._process.process.pid).encode())
        os.kill(os.getpid(), signal.SIGKILL)

    with Sandbox(QUICK) as other:
        other.execute("x = 1")
        reading, writing = os.pipe()
        in_a_fork(start_and_be_killed)
        number = int(os.read(reading, 100))
        deadline = time.monotonic() + 300
        while Path(f"/proc/{number}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not Path(f"/proc/{number}").exists()
        assert other.lookup("x") == 1
        assert (other.starts, warm.popen.poll()) == (1, None)


IN_A_KERNEL = """
import json, sys
from autograder.sandbox.process.forkserver import preload
from autograder.sandbox.sandbox import Sandbox
preload([])
with Sandbox() as sandbox:
    sandbox.execute("import importlib, email")
    sandbox.execute("found = importlib.metadata.version('numpy'), email.utils.__name__, importlib.resources.__name__")
    print(*sandbox.lookup("found"))
"""


def test_modules_that_a_kernel_has_loaded_are_there_without_an_import_of_their_own():
    done = subprocess.run([sys.executable, "-c", IN_A_KERNEL], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [version("numpy"), "email.utils", "importlib.resources"]


def test_a_process_shares_the_warm_one_only_if_that_has_loaded_its_libraries():
    warm = forkserver.warm_process()

    def shared(libraries):
        def work():
            forkserver.preload(libraries)
            with Sandbox(QUICK) as sandbox:
                assert sandbox.execute("1 + 1").error is None
            own = forkserver.warm_process()
            assert own.branch().memory.owner == os.getpid()
            same = own.pid == warm.pid
            forkserver.end_warm_process()
            return same

        return in_a_fork(work)

    assert shared([]) == "True"
    assert shared(["no_such_library"]) == "False"
    assert warm.popen.poll() is None
    with Sandbox(QUICK) as sandbox:
        assert sandbox.execute("1 + 1").error is None


def test_forks_inherit_only_that_all_is_well(monkeypatch):
    forkserver.find_out_before_forking()
    assert forkserver.why_not_warm.cache_info().currsize == 1
    forkserver.why_not_warm.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(forkserver, "why_not_warm", functools.cache(lambda: "too busy just now"))
        forkserver.find_out_before_forking()
        assert forkserver.why_not_warm.cache_info().currsize == 0
    assert forkserver.why_not_warm() == ""


def test_a_library_that_was_not_loaded_before_is_there_all_the_same():
    program = (
        "from autograder.sandbox.process import forkserver; from autograder.sandbox.sandbox import Sandbox\n"
        "forkserver.preload([])\n"
        "with Sandbox() as sandbox:\n"
        "    seen = sandbox.execute('import sys; \"matplotlib\" in sys.modules')\n"
        "    drawn = sandbox.execute('import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()')\n"
        "    print(seen.outputs[0]['data']['text/plain'], sorted(drawn.outputs[-1]['data']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1) == ["False", "['image/png', 'text/plain']\n"]


def test_the_packages_of_every_visible_python_are_covered_up(tmp_path, monkeypatch):
    """This includes the Python that the environment was made from, even if its packages are not on the path."""
    hidden = [
        tmp_path / place / "torch" for place in ("lib/python3.12/site-packages", "local/lib/python3.9/dist-packages")
    ]
    for folder in hidden:
        folder.mkdir(parents=True)
        (folder.parent / "networkx").mkdir()
    monkeypatch.setattr(isolation, "_python_paths", lambda: (str(tmp_path),))
    assert set(isolation._withheld_paths.__wrapped__(ENGINES)) == set(map(str, hidden))  # without the cache


SEES = """
import importlib, sys
def sees(name):
    try:
        return bool(getattr(importlib.import_module(name), "__file__", None))
    except ImportError:
        return False
seen = {name: sees(name) for name in ("torch", "mini_autograd", "autograder")}
seen["in memory"] = any(name.startswith("torch.") for name in sys.modules)
"""


def test_what_is_withheld_from_one_course_and_not_from_another_needs_a_warm_process_of_its_own():
    seen = {}
    for kind in (STUDENT, OF_OTHER_COURSES, STUDENT):
        with Sandbox(replace(QUICK, cell_seconds=30), start=functools.partial(start_confined, kind=kind)) as sandbox:
            sandbox.execute(SEES)
            facts = sandbox.lookup("seen"), forkserver.warm_process(kind).pid
            assert seen.setdefault(kind.name, facts) == facts
    none = dict.fromkeys(("torch", "mini_autograd", "autograder", "in memory"), False)
    assert seen[STUDENT.name][0] == none
    assert seen[OF_OTHER_COURSES.name][0] == {**none, "torch": True, "in memory": True}
    assert seen[STUDENT.name][1] != seen[OF_OTHER_COURSES.name][1]


@pytest.mark.parametrize("kind", [STUDENT, OF_OTHER_COURSES], ids=lambda kind: kind.name)
def test_whether_forks_are_possible_is_tried_with_the_kind_that_runs(kind, monkeypatch):
    monkeypatch.setattr(forkserver, "_current", {})
    forkserver.preload([], kind)
    try:
        assert forkserver.why_not_warm.__wrapped__() == ""
        assert list(forkserver._current) == [kind.name]
    finally:
        forkserver.end_warm_process(kind)


@pytest.mark.parametrize("kind", [STUDENT, JUDGE], ids=lambda kind: kind.name)
def test_an_installed_course_is_covered_up(kind, tmp_path, monkeypatch):
    """A wheel puts it beside the packages, which are visible."""
    course = tmp_path / "share" / "mini-autograd-course" / "course"
    course.mkdir(parents=True)
    monkeypatch.setattr(isolation, "_python_paths", lambda: (str(tmp_path),))
    monkeypatch.setattr(isolation, "BUILT_IN", course)
    command = isolation.bubblewrap_command(isolation.isolation_available(), kind, kind.limits, None, None)
    assert command[command.index(str(course)) - 1] == "--tmpfs"


def test_matplotlib_uses_the_list_of_fonts_that_was_made_once_from_what_the_sandbox_sees(tmp_path):
    with Sandbox(Limits()) as sandbox:
        sandbox.execute("from matplotlib.font_manager import FontManager, fontManager")
        sandbox.execute(
            "known, seen = ({font.name for font in fonts.ttflist} for fonts in (fontManager, FontManager()))"
        )
        assert sandbox.lookup("known") == sandbox.lookup("seen") != set()
    listed = fonts.list_file(INSIDE).read_text()
    planted = tmp_path / "list.json"
    planted.write_text(listed.replace("DejaVu Sans Mono", "Planted Mono"))
    assert planted.read_text() != listed
    program = f"""
from pathlib import Path
from autograder.sandbox.inside import fonts
fonts.list_file = lambda folder: Path({str(planted)!r})
fonts.use_list()
from matplotlib.font_manager import get_font_names
assert "Planted Mono" in get_font_names()
"""
    settings = {**os.environ, "MPLCONFIGDIR": str(tmp_path / "settings")}
    subprocess.run([sys.executable, "-c", program], check=True, env=settings)
