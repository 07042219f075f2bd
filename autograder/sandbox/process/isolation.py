"""How student code is isolated: the bubblewrap command line, what is visible inside, and the system calls that are
refused.

There are two ways. An ordinary user gets a user namespace. Root does not need one, and without one each sandbox can
take a user id of its own, which matters because the kernel does not hold root to a limit on processes.
"""

from __future__ import annotations

import errno
import functools
import glob
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autograder.course_folder import BUILT_IN
from autograder.sandbox.inside.protocol import words
from autograder.sandbox.process.kind import CODE, STUDENT, Kind
from autograder.sandbox.process.limits import Limits, SandboxUnavailable

HOME = "/home/student"
WRITABLE = ("/tmp", HOME)
SHARED_MEMORY = "/dev/shm"
TRIAL_SECONDS = 60.0
UNMASK = (
    "In a container, the kernel allows it only if /proc is not masked: start Docker with "
    "`--security-opt systempaths=unconfined`, or Podman with `--security-opt unmask=ALL`."
)
FIRST_UID, UIDS = 200_000, 100_000
PACKAGES = ("lib*/python*/*-packages", "local/lib*/python*/*-packages")  # below the root of a Python
SYSTEM_PATHS: tuple[str, ...] = ("/usr", "/etc/alternatives", "/etc/fonts", "/etc/localtime", "/nix/store")
SYSTEM_PATHS += ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
SYSTEM_LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
REFUSED_CALLS = words("""
    ptrace process_vm_readv process_vm_writev keyctl add_key request_key mount umount2 pivot_root chroot move_mount
    open_tree fsopen fsconfig fsmount fspick mount_setattr bpf unshare setns userfaultfd perf_event_open kexec_load
    kexec_file_load init_module finit_module delete_module swapon swapoff reboot io_uring_setup io_uring_enter
    io_uring_register open_by_handle_at name_to_handle_at quotactl quotactl_fd acct settimeofday clock_settime iopl
    ioperm syslog pidfd_getfd
""")
# With these, submissions could signal to each other through files that all of them see: by locks and notifications, or
# by which parts of a file the kernel has cached, which also a later submission can find out. They fail as on a kernel
# that does not have them, which libraries such as HDF5 can cope with.
UNKNOWN_CALLS = words("flock inotify_init inotify_init1 fanotify_init mincore io_setup")
# For the same reason. They are only advice, which a kernel may take or leave: they succeed and do nothing.
IDLE_CALLS = words("fadvise64 readahead")
# And these, by an argument: its number, the values that are refused (None: all but 0), and the error. Record locks
# (F_SETLK, F_GETLK) stay, because SQLite needs them.
LOCKS_OF_OPEN_FILES, LEASES, NOTIFY, HINTS = (36, 37, 38), (1024, 1025), 1026, (1035, 1036, 1037, 1038)
COLD_PAGES, PAGES_OUT = 20, 21
REFUSED_ARGUMENTS: tuple[tuple[str, int, tuple[int, ...] | None, int], ...] = (
    ("fcntl", 1, (*LOCKS_OF_OPEN_FILES, *LEASES, NOTIFY, *HINTS), errno.EINVAL),
    ("madvise", 2, (COLD_PAGES, PAGES_OUT), errno.EINVAL),
    ("preadv2", 5, None, errno.EOPNOTSUPP),
    ("pwritev2", 5, None, errno.EOPNOTSUPP),
)
INT = 0xFFFF_FFFF  # the kernel reads only so much of an argument that is an int
# Calls by number, because older libraries do not know their names: `process_madvise` and `cachestat`, refused for that
# reason too, and those of kernels newer than Linux 6.7, which have not been reviewed.
NEWER_CALLS = (440, 451, *range(457, 512))
# AF_UNIX, AF_INET, AF_INET6: the network namespace is empty, other families may reach past it.
ALLOWED_SOCKETS = (1, 2, 10)


@dataclass(frozen=True)
class Isolation:
    """Whether student code can be isolated here, and how or why not."""

    available: bool
    description: str
    user_namespace: bool = True

    def __bool__(self) -> bool:
        return self.available


@functools.cache
def isolation_available() -> Isolation:
    """Try once to start Python with the mounts and the user that a submission gets. The result is true or false in a
    condition; its `description` says what is in force, or what is missing.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return Isolation(False, f"bubblewrap is not installed. Install it with: {_install_command()}.")
    reasons = []
    for user_namespace in (False, True) if os.geteuid() == 0 else (True,):
        trial = bubblewrap_command(Isolation(True, "", user_namespace), STUDENT, STUDENT.limits, None, None)
        become = "" if user_namespace else f"from inside.confine import become; become({FIRST_UID})"
        command = [*trial, "--", sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {CODE!r}); {become}"]
        try:
            result = subprocess.run(command, capture_output=True, timeout=TRIAL_SECONDS, check=False, env={})
        except (OSError, subprocess.TimeoutExpired) as error:
            reasons.append(str(error))
            continue
        if result.returncode == 0:
            filters = "with a system call filter" if seccomp_filter() else "without a system call filter"
            return Isolation(True, f"bubblewrap, {filters}", user_namespace)
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()
        reasons.append(said[-1] if said else f"exit status {result.returncode}")
    enable = "sudo sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
    found = "; ".join(reasons)
    if "mount proc" in found:
        return Isolation(False, f"bubblewrap may not mount /proc here ({found}). {UNMASK}")
    return Isolation(False, f"bubblewrap cannot start Python here ({found}). Allow namespaces with: {enable}.")


def require_isolation() -> Isolation:
    """The isolation in force. Raises SandboxUnavailable, with the command that helps, when there is none."""
    isolation = isolation_available()
    if not isolation:
        raise SandboxUnavailable(isolation.description)
    return isolation


def bubblewrap_command(
    isolation: Isolation, kind: Kind, limits: Limits, info_fd: int | None, seccomp_fd: int | None, warm: bool = False
) -> list[str]:
    """The command line before the program: namespaces, the visible files, a new environment. `warm` is true for a warm
    process: its forks make namespaces of their own, for which it has to mount once.
    """
    size = str(limits.disk)
    command = [shutil.which("bwrap") or "bwrap", *_namespaces(isolation.user_namespace)]
    if warm and not isolation.user_namespace:
        command += ["--cap-add", "CAP_SYS_ADMIN"]
    command += ["--as-pid-1"]
    if info_fd is not None:
        command += ["--info-fd", str(info_fd)]
    if seccomp_fd is not None:
        command += ["--seccomp", str(seccomp_fd)]
    command += _open_folders(WRITABLE)
    for path in WRITABLE:  # before the visible files: Python itself may live below /tmp
        command += ["--perms", "1777", "--size", size, "--tmpfs", path]
    command += _open_folders((*_python_paths(), *SYSTEM_PATHS, *kind.code.values()))
    for path in SYSTEM_PATHS:
        command += ["--ro-bind-try", path, path]
    for path in SYSTEM_LINKS:
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            command += ["--ro-bind", path, path]
    for path in _python_paths():
        command += ["--ro-bind", path, path]
    command += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", SHARED_MEMORY]
    command += ["--remount-ro", "/dev"]  # it belongs to the user in there, and so does a folder that is covered up
    for path in (*(_withheld_paths(kind.withholds) if kind.withholds else ()), *_visible_course()):
        covered = os.path.isdir(path)
        command += ["--tmpfs", path, "--remount-ro", path] if covered else ["--ro-bind", "/dev/null", path]
    for folder, place in kind.code.items():
        command += ["--ro-bind", folder, place]
    command += ["--remount-ro", "/", "--chdir", HOME, "--clearenv"]
    for name, value in environment(HOME).items():
        command += ["--setenv", name, value]
    return command


def environment(home: str) -> dict[str, str]:
    """The environment variables of student code; none are the grader's own."""
    return {
        "HOME": home,
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "IPYTHONDIR": f"{home}/.ipython",
        "MPLCONFIGDIR": f"{home}/.matplotlib",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "NBGRADER_EXECUTION": "autograde",
    }


@functools.cache
def seccomp_filter() -> bytes:
    """The compiled filter, or nothing if libseccomp or its Python binding is missing."""
    try:
        import pyseccomp
    except Exception:
        return b""
    try:
        rules = pyseccomp.SyscallFilter(defaction=pyseccomp.ALLOW)
        for name in sorted(REFUSED_CALLS):
            try:
                rules.add_rule(pyseccomp.ERRNO(errno.EPERM), name)
            except (OSError, RuntimeError, ValueError):
                continue  # a call that this kernel or architecture does not have
        for call in (*sorted(UNKNOWN_CALLS), *NEWER_CALLS):
            rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), call)
        for call in sorted(IDLE_CALLS):
            rules.add_rule(pyseccomp.ERRNO(0), call)
        for call, number, refused, error in REFUSED_ARGUMENTS:
            if refused is None:
                rules.add_rule(pyseccomp.ERRNO(error), call, pyseccomp.Arg(number, pyseccomp.GT, 0))
            for value in refused or ():
                rules.add_rule(pyseccomp.ERRNO(error), call, pyseccomp.Arg(number, pyseccomp.MASKED_EQ, INT, value))
        rules.add_rule(
            pyseccomp.ERRNO(errno.ENOSYS), "clone3"
        )  # its flags cannot be inspected; libc falls back to clone
        new_user = 0x10000000
        rules.add_rule(pyseccomp.ERRNO(errno.EPERM), "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, new_user, new_user))
        refuse = pyseccomp.ERRNO(errno.EAFNOSUPPORT)
        rules.add_rule(refuse, "socket", pyseccomp.Arg(0, pyseccomp.GT, max(ALLOWED_SOCKETS)))
        for family in set(range(max(ALLOWED_SOCKETS))) - set(ALLOWED_SOCKETS):
            rules.add_rule(refuse, "socket", pyseccomp.Arg(0, pyseccomp.EQ, family))
        with tempfile.TemporaryFile() as file:
            rules.export_bpf(file)
            file.seek(0)
            return file.read()
    except (OSError, RuntimeError, ValueError, AttributeError):
        return b""


def _namespaces(user_namespace: bool) -> list[str]:
    options = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"]
    if user_namespace:
        return ["--unshare-user", "--uid", "1000", "--gid", "1000", *options]
    return [*options, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]


@functools.cache
def _python_paths() -> tuple[str, ...]:
    """Where the running Python and its packages live, without paths within another one or in /usr."""
    roots = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    roots |= {path for path in sysconfig.get_paths().values() if path}
    roots |= {
        str(path) for prefix in (sys.executable, os.path.realpath(sys.executable)) for path in [Path(prefix).parents[1]]
    }
    paths = sorted(path for path in roots if os.path.isdir(path) and path != "/")
    return tuple(
        path
        for path in paths
        if not any(_within(path, other) for other in (*paths, "/usr") if other != path) and path != "/usr"
    )


def _open_folders(paths: tuple[str, ...]) -> list[str]:
    """Options that make the folders above `paths`. Only root could enter the ones that bubblewrap makes by itself."""
    found = {str(folder) for path in paths for folder in Path(path).parents} - {"/", *WRITABLE}
    folders = sorted(folder for folder in found if not _within(folder, "/usr"))
    return [option for folder in folders for option in ("--perms", "0755", "--dir", folder)]


def _visible_course() -> tuple[str, ...]:
    """The course that a wheel has installed beside its packages, to be covered up: it holds all solutions."""
    course = str(BUILT_IN)
    return (course,) if any(_within(course, root) for root in (*_python_paths(), "/usr")) else ()


@functools.cache
def _withheld_paths(packages: tuple[str, ...]) -> tuple[str, ...]:
    """Folders and files of these packages, and those that say where our own code is, to be covered up: in the packages
    of every visible Python, including the one that this environment was made from.
    """
    visible = (*_python_paths(), "/usr")
    folders = {*site.getsitepackages(), *sysconfig.get_paths().values(), *sys.path}
    installed = [path for root in visible for place in PACKAGES for path in glob.glob(f"{glob.escape(root)}/{place}")]
    folders |= set(map(os.path.realpath, installed))
    found = []
    for folder in sorted(
        {os.path.realpath(folder) for folder in folders if folder and os.path.isdir(folder)} | folders
    ):
        if not os.path.isdir(folder) or not any(_within(folder, root) for root in visible):
            continue
        for name in os.listdir(folder):
            package = name.split(".")[0].split("-")[0]
            editable = name.startswith(
                ("__editable__", "_editable_impl", "_mini_autograd", "mini_autograd_course", "mini-autograd")
            )
            if (
                (package in packages and "-info" not in name)
                or editable
                or name.endswith((".egg-link", "easy-install.pth"))
            ):
                found.append(os.path.join(folder, name))
    return tuple(found)


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _install_command() -> str:
    for tool, command in (
        ("apt-get", "sudo apt-get install bubblewrap"),
        ("dnf", "sudo dnf install bubblewrap"),
        ("pacman", "sudo pacman -S bubblewrap"),
        ("zypper", "sudo zypper install bubblewrap"),
        ("apk", "sudo apk add bubblewrap"),
    ):
        if shutil.which(tool):
            return command
    return "your package manager (bubblewrap exists for Linux only; elsewhere, use a Linux machine or container)"
