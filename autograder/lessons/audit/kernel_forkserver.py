"""A process that has imported what lessons import, and forks a kernel for each request.

    python -m autograder.lessons.audit.kernel_forkserver

A request is a line of JSON on standard input: the kernel's arguments, its working directory and its environment. The
answer is a line with the id of the new process. A fork becomes the kernel that `python -m ipykernel_launcher` would
start, without the seconds of imports. No name is bound in it, so a lesson that forgets an import still fails.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import sys
from importlib.util import find_spec
from typing import Any

import numpy
from ipykernel import kernelapp

# Not `autograder.student`: imported in a kernel, it starts a thread that gets PyTorch ready for the first check.
MODULES = (
    *("ipywidgets", "matplotlib.pyplot", "torch", "autograder.checks.gradients"),
    "torch.fx.experimental.symbolic_shapes",  # PyTorch imports it at the first `backward` that is given a gradient
    "torch._dynamo",  # and this one at the first step of an optimizer
)
INLINE = "module://matplotlib_inline.backend_inline"  # a kernel's backend for Matplotlib, read when that is imported


def main() -> None:
    atexit.register(end_fork, os.getpid())  # registered before all imports below, so it runs last
    if sys.path[0] in ("", os.getcwd()):
        del sys.path[0]  # as ipykernel_launcher does; the kernel puts its own working directory there
    os.environ.setdefault("MPLBACKEND", INLINE)
    gc.disable()  # everything imported stays
    for name in MODULES:
        with contextlib.suppress(ImportError):  # another version of PyTorch may have it elsewhere
            importlib.import_module(name)
    gc.freeze()  # a collection in a fork would touch, and so copy, every page
    gc.enable()
    request = next_birth()
    if request is not None:
        become_kernel(**request)


def next_birth() -> dict[str, Any] | None:
    """Fork for each request. Returns the request in the fork, and None in this process after the last one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a kernel, so none may stay as a zombie
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        server = os.getpid()
        process = os.fork()
        if process == 0:
            request["environment"]["JPY_PARENT_PID"] = str(server)  # the kernel ends when this process ends
            return request
        print(process, flush=True)
    return None


def end_fork(server: int) -> None:
    """End a fork without taking its modules apart one by one, which would first copy the memory of all of them."""
    if os.getpid() != server:
        os._exit(0)


def become_kernel(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Become what the kernel's command would have started, with its own process group, folder and environment."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(silence, descriptor)
    numpy.random.seed()  # else all forks would draw the same numbers
    launcher = find_spec("ipykernel_launcher")
    sys.argv = [str(launcher and launcher.origin), *arguments]
    kernelapp.launch_new_instance()


if __name__ == "__main__":
    main()
