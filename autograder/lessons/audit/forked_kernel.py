"""Kernels without the start-up time: forks of a process that has made the imports (see `kernel_forkserver.py`).

A run of all gates starts two kernels per lesson, and each would import PyTorch and Matplotlib again. That takes 6.2
seconds of processor time; a fork takes 0.3. Over 17 lessons this saves an author about three minutes on one processor.
Linux only: no other system lets a process wait for one that is not its child. There, kernels start as usual.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from multiprocessing.util import Finalize
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

USUAL = ["-m", "ipykernel_launcher"]
_lock = threading.Lock()


class ForkedKernel:
    """A kernel's process, with the part of `subprocess.Popen` that jupyter_client uses."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int):
        self.pid = pid
        self.descriptor = os.pidfd_open(pid)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """None while it runs. Its exit status stays unknown."""
        return self._ended(0.0)

    def wait(self) -> int:
        return self._ended(None) or 0

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self.descriptor, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self.descriptor], [], [], seconds)[0]:
            os.close(self.descriptor)
            self.returncode = 0
        return self.returncode


class ForkServer:
    """The process that forks kernels. It ends when this process ends."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "autograder.lessons.audit.kernel_forkserver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def close(self) -> None:
        """End the process, and with it the kernels that still run."""
        if self.owner == os.getpid():
            self.popen.communicate()

    def fork(self, arguments: list[str], folder: str, environment: dict[str, str]) -> ForkedKernel:
        """Fork a new kernel. Raises RuntimeError if the process has ended."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        request = {"arguments": arguments, "folder": folder, "environment": environment}
        with _lock:
            self.popen.stdin.write(json.dumps(request) + "\n")
            self.popen.stdin.flush()
            answer = self.popen.stdout.readline()
        if not answer:
            raise RuntimeError("the process that forks kernels has ended")
        return ForkedKernel(int(answer))


class WarmProvisioner(LocalProvisioner):
    """Forks a kernel if its command is the usual one for this Python."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel, and say how to connect to it."""
        arguments = usual_arguments(cmd)
        if arguments is None:
            return await super().launch_kernel(cmd, **kwargs)
        folder = os.path.abspath(kwargs.get("cwd") or os.getcwd())
        kernel: Any = fork_server().fork(arguments, folder, dict(kwargs.get("env") or os.environ))
        self.process = kernel
        self.pid = self.pgid = kernel.pid  # it makes itself the leader of a group
        self.cwd = folder
        return self.connection_info


class WarmKernelManager(AsyncKernelManager):
    """A manager of forked kernels, for `NotebookClient(kernel_manager_class=...)`."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.provisioner = WarmProvisioner(kernel_id="", kernel_spec=self.kernel_spec, parent=self)


def kernel_manager() -> type[AsyncKernelManager]:
    """The manager for kernels that start quickly on this machine."""
    return WarmKernelManager if sys.platform == "linux" else AsyncKernelManager


def prepare() -> None:
    """Start the imports if kernels will be forked on this system."""
    if sys.platform == "linux":
        fork_server()


def usual_arguments(command: list[str]) -> list[str] | None:
    """The arguments of a kernel of this Python; None if the command starts something else."""
    options = [part for part in command if not part.startswith("-X")]
    return options[3:] if options[:3] == [sys.executable, *USUAL] else None


_fork_server: ForkServer | None = None


def fork_server() -> ForkServer:
    """The process that forks kernels for this one."""
    global _fork_server
    with _lock:
        if _fork_server is None or _fork_server.owner != os.getpid() or _fork_server.popen.poll() is not None:
            _fork_server = ForkServer()
            Finalize(None, _fork_server.close, exitpriority=0)  # at exit, also in a multiprocessing worker
        return _fork_server
