"""The sandbox's own process: gives up every right it does not need, then answers the judge's messages one after
another.

Started as `python -I -c "..." DESCRIPTOR SETTINGS`; the descriptor is one end of a socket pair, the settings are JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import sys
from typing import Any


def give_up_rights(settings: dict[str, Any]) -> None:
    """Become the given user and set the resource limits, before anything of the student's is seen."""
    uid = settings.get("uid")
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: /proc/self belongs to the new user again
    for name, value in settings["rlimits"].items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(number, (value, value))
        except (ValueError, OSError):
            continue  # macOS knows some of these names and refuses them


def main() -> None:
    descriptor, settings = int(sys.argv[1]), json.loads(sys.argv[2])
    give_up_rights(settings)
    sys.argv[:] = ["ipykernel_launcher.py"]
    sys.path.insert(0, "")
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)

    from . import absent

    absent.withhold()
    from .server import Server

    Server(connection, settings).serve()
