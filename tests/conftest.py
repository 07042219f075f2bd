"""The order of the test files, and hooks and fixtures for all tests. If student code cannot be isolated, the tests that
need isolation are skipped and say what is missing.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from autograder.lessons.garbage_collection import collect_seldom
from autograder.sandbox.process.isolation import isolation_available

collect_seldom()
HERE = Path(__file__).parent
WITHOUT_TORCH = find_spec("torch") is None
collect_ignore = ["course"] if WITHOUT_TORCH else []
ORDER = (
    "autograder/judge/test_hostile.py",
    "browser",
    "course",
    "autograder/bugs",
    "deploy",
    "autograder/grading",
    "autograder/judge",
    "autograder/sandbox",
    "autograder/lessons",
    "test_platforms.py",
    "test_wheel.py",
    "autograder",
)
"""Files and folders in the order in which workers take them; all others follow. A worker takes whole files, so a long
file at the end would keep one worker busy while the other has nothing left to do. While one worker waits for the
browser, the other computes. Tests that only compute come last, where the patient worker begins."""
PATIENT = "gw2"
"""A third worker, which takes files from the end of that order and runs at a lower priority. Tests of a sandbox or of a
time limit leave processors idle, but a third worker at normal priority would slow down the other two."""


LAST_IN_ITS_FOLDER = HERE / "browser" / "test_site.py"
"""The website reuses the lesson runs of the audit, which `make test` starts at the same time. Built before they are
there, it would run every lesson itself."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`, give all browser files to one worker: another worker would start a second browser and a
    second JupyterLab."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _assign_work_unit(self, node: Any) -> None:
            if node.gateway.id == PATIENT:
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

        def _split_scope(self, nodeid: str) -> str:
            return "browser" if "/browser/" in nodeid.partition("::")[0] else super()._split_scope(nodeid)

    return Together(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Print the status of a worker that ended unexpectedly: xdist reports only that it ended."""
    if error:
        with contextlib.suppress(AttributeError, subprocess.TimeoutExpired):
            status = node.gateway._io.popen.wait(timeout=30)
            print(f"\n{node.gateway.id} ended with status {status} (a negative status is a signal number)", flush=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-browsers", action="store_true", help="run more lessons in the lab of the website")


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("PYTEST_XDIST_WORKER") == PATIENT and hasattr(os, "nice"):
        os.nice(5)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """If PyTorch is not installed, skip the files that compare with it; all others run."""
    report = yield
    because = r"No module named 'torch'|cannot import name '\w+' from 'tests\."
    if report.outcome == "failed" and WITHOUT_TORCH and re.search(because, str(report.longrepr)):
        report.outcome = "skipped"
        report.longrepr = str(collector.path), 0, "Skipped: compares with PyTorch, which is not installed"
    refuse_skips_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    refuse_skips_in_ci(report)
    return report


MAY_BE_SKIPPED = re.compile("GPU|root|control group|file system|small disk|linked to|glibc")
"""What a test in CI may be skipped for: what its machine does not have, and nobody can install."""


def refuse_skips_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Let a test fail that CI skips because something is missing: what is not run there is not promised. Whatever tests
    need is in the lock file or in `PROGRAMS` of bootstrap.py, so `make test` installs it. Elsewhere, and on the other
    systems of CI, which run `make quick`, tests are skipped without bubblewrap, Chromium and the like.
    """
    if report.outcome == "skipped" and os.environ.get("CI") and sys.platform == "linux":
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not MAY_BE_SKIPPED.search(reason):
            report.outcome = "failed"
            report.longrepr = f"{reason}\nCI skips no test for something that `make test` can install."


@cache  # files have many tests
def place_in_order(path: Path) -> int:
    """The position in ORDER of the first entry that is this file or a folder above it."""
    inside = (number for number, name in enumerate(ORDER) if path.is_relative_to(HERE / name))
    return next(inside, len(ORDER))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests by their files; within a file, the order stays as it is."""
    if not config.getoption("all_browsers"):
        items[:] = [item for item in items if not item.get_closest_marker("all_browsers")]
    items.sort(key=lambda item: (place_in_order(item.path), item.path == LAST_IN_ITS_FOLDER))
    skip_without_sandbox(items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt the modules and thousands of tests, which all live to the end, from garbage collection: tests that make
    many objects, or collect often, would wait while the collector looks at all of them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Shorten pytest's last search for cycles, which took 7 s in a worker that had run thousands of tests."""
    gc.freeze()


ASKED_ONCE = """#!/bin/sh
test -s {answer} || {{ {alembic} "$@" > {answer}.$$ && mv {answer}.$$ {answer}; }}
cat {answer}
"""


@pytest.fixture(scope="session", autouse=True)
def programs_on_path(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Put the environment's programs first on PATH, where nbgrader looks for `alembic`.

    For each new gradebook nbgrader asks `alembic` which version is the newest, and waits 0.7 s for the answer. Here it
    finds a script that asks once, for all workers.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        alembic = shutil.which("alembic")
        if alembic is not None and os.name == "posix":
            folder = tmp_path_factory.mktemp("programs")
            common = tmp_path_factory.getbasetemp()
            answer = (common.parent if "PYTEST_XDIST_WORKER" in os.environ else common) / "newest_gradebook"
            program = folder / "alembic"
            program.write_text(ASKED_ONCE.format(answer=shlex.quote(str(answer)), alembic=shlex.quote(alembic)))
            program.chmod(0o755)
            patch.setenv("PATH", str(folder), prepend=os.pathsep)
        yield


def skip_without_sandbox(items: list[pytest.Item]) -> None:
    """Skip the tests marked `sandbox` on a machine without one, except in CI, where a missing sandbox is a failure."""
    isolation = isolation_available()
    if isolation or os.environ.get("CI"):
        return
    for item in items:
        if item.get_closest_marker("sandbox"):
            item.add_marker(pytest.mark.skip(reason=isolation.description))
