"""nbgrader's own commands, each in a process of its own. All are forked from one that has imported nbgrader, most of a
command's work, and nothing of ours.

Run as a program, this module is that process. Each line of its input is a folder, the PATH, and a command's arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


class NbgraderCommands:
    """Runs commands as `python -m nbgrader` would. The process that they are forked from starts with the first one."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def __call__(self, *arguments: str, cwd: Path) -> str:
        """What a command printed. It must succeed."""
        if self._server is None:
            command = [sys.executable, __file__]
            self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps([str(cwd), os.environ["PATH"], arguments]), file=self._server.stdin, flush=True)
        status, said = json.loads(self._server.stdout.readline())
        assert status == 0, said
        return said

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()


def serve() -> None:
    """Run one command after another, until the input ends."""
    import nbgrader.converters  # noqa: F401  (what most commands import later)
    from nbgrader.apps.nbgraderapp import main

    sys.path[0] = ""  # as after `python -m`
    for line in sys.stdin:
        folder, path, arguments = json.loads(line)
        with tempfile.TemporaryFile() as output:
            child = os.fork()
            if not child:
                become(output.fileno(), folder, path, arguments)
                sys.exit(main())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            output.seek(0)
            print(json.dumps([status, output.read().decode(errors="replace")]), flush=True)


def become(output: int, folder: str, path: str, arguments: list[str]) -> None:
    """Give this process what the process of a command would have."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    os.environ["PATH"] = path
    sys.argv = ["nbgrader", *arguments]


if __name__ == "__main__":
    serve()
