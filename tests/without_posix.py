"""A student's path on a system without POSIX and without UTF-8: delivers all lessons, then runs solved ones.

    python -m tests.without_posix WORKSPACE LESSON...

Libraries are imported first, because their Linux versions need what is then removed; our code must do without it. It is
an error if our code opens a file without naming an encoding. Prints one line per lesson: the number of its errors.
"""

import os
import signal
import sys
import warnings
from pathlib import Path

import anywidget
import ipykernel.kernelapp
import ipywidgets
import jupytext
import matplotlib.pyplot
import nbgrader.apps
import nbgrader.converters
import platformdirs
import rich.console
import torch
from IPython.core.interactiveshell import InteractiveShell

MODULES = "fcntl resource pwd grp termios pty tty"
FUNCTIONS = """
    chown chroot fork forkpty getegid geteuid getgid getpgid getpgrp getuid killpg lchown mkfifo nice pidfd_open
    posix_spawn register_at_fork sched_getaffinity sched_setaffinity setpgid setsid wait3 wait4
"""
SIGNALS = """
    ITIMER_REAL SIGALRM SIGCHLD SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 SIGXCPU alarm getitimer pthread_kill
    pthread_sigmask setitimer siginterrupt sigwait
"""
LIBRARIES = (anywidget, ipykernel.kernelapp, ipywidgets, jupytext, nbgrader.apps, nbgrader.converters, platformdirs)
LESSONS = Path(__file__).resolve().parents[1] / "course" / "lessons"


def take_posix_away() -> None:
    """Leave only what a program finds on Windows."""
    for name in MODULES.split():
        sys.modules[name] = None  # type: ignore[assignment]
    for owner, names in ((os, FUNCTIONS), (signal, SIGNALS)):
        for name in names.split():
            if hasattr(owner, name):
                delattr(owner, name)
    warnings.filterwarnings("error", category=EncodingWarning, module=r"(autograder|mini_autograd)")


def errors_in(lesson: str, workspace: Path) -> int:
    """The number of cells of the solved lesson that fail in the folder where a student runs them."""
    from autograder.lessons.builder.notebook import assemble

    text = next(LESSONS.glob(f"{lesson}_*/{lesson}_*.py"))
    os.chdir(workspace / text.stem)
    sys.path.insert(0, "")  # as in a kernel: helpers lie beside the notebook
    shell = InteractiveShell.instance()
    shell.reset(new_session=False)
    cells = [cell.source for cell in assemble(text).cells if cell.cell_type == "code"]
    return sum(not shell.run_cell(source).success for source in cells)


def main(workspace: Path, lessons: list[str]) -> int:
    from autograder.cli import main as autograder

    matplotlib.use("agg")
    torch.set_num_threads(1)
    status = autograder(["lab", "--prepare-only", "--workspace", str(workspace)])
    counts = {lesson: errors_in(lesson, workspace) for lesson in lessons}
    for lesson, count in counts.items():
        rich.console.Console().print(f"lesson {lesson}: {count} errors")
    return status or int(any(counts.values()))


if __name__ == "__main__":
    take_posix_away()
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
