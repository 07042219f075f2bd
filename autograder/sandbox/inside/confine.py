"""Makes a fork of the warm process a sandbox of its own: namespaces, private mounts, no rights, a system call filter.

Everything here runs before the first line of the student's code. It asks the kernel directly, because a second
bubblewrap could not wrap a process that has already loaded its libraries. Mounts that bubblewrap has made read-only or
covered up stay so: the kernel locks them against a namespace made inside.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import socket
import struct

NEW_MOUNTS, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NETWORK = 0x0002_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000
NO_SUID, NO_DEVICES, NO_PROGRAMS = 2, 4, 8
BIND, RECURSIVE = 0x1000, 0x4000
SET_DUMPABLE, CAPBSET_DROP, SET_SECCOMP, SET_NO_NEW_PRIVS, AMBIENT = 4, 24, 22, 38, 47
AMBIENT_CLEAR_ALL, SECCOMP_FILTER = 4, 2
CAPABILITY_VERSION, CAPABILITIES = 0x2008_0522, 64
SET_INTERFACE_FLAGS, UP_AND_RUNNING = 0x8914, 0x41
STUDENT = 1000

LIBC = ctypes.CDLL(None, use_errno=True)


def _succeeds(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def become(uid: int) -> None:
    """Become another user for good. The process may still read itself, which the kernel forbids by default."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    _succeeds(LIBC.prctl(SET_DUMPABLE, 1, 0, 0, 0), "prctl")


def limit(rlimits: dict[str, int]) -> None:
    """Set resource limits by the names of their constants, as far as this system knows them."""
    for name, value in rlimits.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(number, (value, value))
        except (ValueError, OSError):
            continue  # macOS knows some of these names and refuses them


def enter_namespaces() -> None:
    """Enter new namespaces, in which this process is user 1000. Its next child is process 1 of a new process tree."""
    user, group = os.getuid(), os.getgid()
    flags = NEW_USER | NEW_MOUNTS | NEW_IPC | NEW_PIDS | NEW_NETWORK
    _succeeds(LIBC.unshare(flags), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{STUDENT} {user} 1"),
        ("gid_map", f"{STUDENT} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def mount_private(folders: list[str], size: int, inodes: int) -> None:
    """Mount private folders, empty and writable, and a private view of processes and terminals; start a loopback
    interface. Each folder holds so many bytes, and so many files and folders: each of these takes memory of the kernel.

    Files that bubblewrap has made visible inside such a folder stay visible: Python itself may live below /tmp.
    """
    kept = [(point, os.open(point, os.O_PATH)) for point in mounts_below(folders)]
    for folder in folders:
        mount("tmpfs", folder, NO_SUID | NO_DEVICES, f"size={size},nr_inodes={inodes},mode=1777")
    for point, descriptor in kept:
        put_back(point, descriptor)
    mount("proc", "/proc", NO_SUID | NO_DEVICES | NO_PROGRAMS)
    mount("devpts", "/dev/pts", NO_SUID | NO_PROGRAMS, "newinstance,ptmxmode=0666,mode=620")
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as any_socket:
        fcntl.ioctl(any_socket, SET_INTERFACE_FLAGS, struct.pack("16sH14x", b"lo", UP_AND_RUNNING))


def mounts_below(folders: list[str]) -> list[str]:
    """The mount points inside these folders, without those inside another one, which come with it."""
    with open("/proc/self/mountinfo") as file:
        points = [line.split()[4].encode().decode("unicode_escape") for line in file]
    inside = sorted({point for point in points if any(point.startswith(f"{folder}/") for folder in folders)})
    return [point for point in inside if not any(point.startswith(f"{other}/") for other in inside)]


def put_back(point: str, descriptor: int) -> None:
    """Mount again, in its place and as read-only as it was, a file or folder that was opened before it was covered."""
    if os.path.isdir(f"/proc/self/fd/{descriptor}"):
        os.makedirs(point, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(point), exist_ok=True)
        os.close(os.open(point, os.O_CREAT | os.O_WRONLY))
    source = f"/proc/self/fd/{descriptor}".encode()
    result = LIBC.mount(source, point.encode(), None, ctypes.c_ulong(BIND | RECURSIVE), None)
    os.close(descriptor)
    _succeeds(result, f"mount {point}")


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    """Mount a file system without a device."""
    result = LIBC.mount(kind.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode() or None)
    _succeeds(result, f"mount {target}")


def drop_rights(rules: bytes) -> None:
    """Drop all capabilities, prevent programs from gaining any, and install the system call filter."""
    for number in range(CAPABILITIES):
        LIBC.prctl(CAPBSET_DROP, number, 0, 0, 0)  # fails beyond the last capability that this kernel knows
    LIBC.prctl(AMBIENT, AMBIENT_CLEAR_ALL, 0, 0, 0)
    header, none = struct.pack("Ii", CAPABILITY_VERSION, 0), bytes(24)
    _succeeds(LIBC.capset(header, none), "capset")
    _succeeds(LIBC.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    if rules:
        program = _Program(
            len(rules) // 8, ctypes.cast(ctypes.create_string_buffer(rules, len(rules)), ctypes.c_void_p)
        )
        _succeeds(LIBC.prctl(SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(program), 0, 0), "seccomp")


class _Program(ctypes.Structure):
    """The kernel's `struct sock_fprog`: how many instructions, and where."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def sacrifice() -> None:
    """Have the kernel end this process before any of ours when memory runs out on this machine."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def close_all_but(kept: list[int]) -> None:
    """Close every descriptor above the standard ones except these."""
    after = 3
    for number in sorted(kept):
        os.closerange(after, number)
        after = number + 1
    os.closerange(after, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
