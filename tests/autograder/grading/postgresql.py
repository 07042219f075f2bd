"""A PostgreSQL server of our own, on loopback only, for tests and benchmarks."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def server_programs() -> str:
    """The folder with the server's programs, or the empty string."""
    found = shutil.which("initdb")
    return next(
        iter([*sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:], *([str(Path(found).parent)] * bool(found))]), ""
    )


@contextmanager
def own_server(programs: str, fsync: bool = False) -> Iterator[str]:
    """The address of a new, empty database. `fsync`: whether it waits until data is on the disk."""
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))  # not pytest's folders, which other users cannot enter
    folder.chmod(0o755)
    as_user = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet: dict[str, Any] = {"cwd": folder, "check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([*as_user, f"{programs}/initdb", "-D", "data", "-A", "trust", "-U", "postgres", "-N"], **quiet)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync={'on' if fsync else 'off'}"
    control = [*as_user, f"{programs}/pg_ctl", "-D", "data", "-w"]
    subprocess.run([*control, "-o", options, "-l", "log", "start"], **quiet)
    try:
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
        shutil.rmtree(folder)
