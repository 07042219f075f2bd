"""CI skips no test because a package or a program is missing, and says so; on other machines such tests are skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import pytest

def test_that_runs():
    pass

def test_with_a_package():
    pytest.importorskip("a_package_that_nobody_has")

def test_with_a_program():
    pytest.skip("there is no npm, which installs the hub's proxy")

@pytest.mark.skipif(True, reason="needs make")
def test_with_a_mark():
    pass

def test_on_a_gpu():
    pytest.skip("there is a GPU")
"""


FILE = "import pytest\npytest.importorskip('a_package_that_nobody_has')\n"


@pytest.mark.skipif(sys.platform != "linux", reason="on other systems, CI runs the quick tests alone")
@pytest.mark.parametrize(
    ("tests", "ci", "said"),
    [
        (TESTS, "", "1 passed, 4 skipped"),
        (TESTS, "true", "2 failed, 1 passed, 1 skipped, 1 error"),
        (FILE, "", "1 skipped"),
        (FILE, "true", "1 error"),
    ],
    ids=["here", "in CI", "a file here", "a file in CI"],
)
def test_what_is_skipped_for_something_missing_fails_in_ci(tmp_path: Path, tests: str, ci: str, said: str) -> None:
    (tmp_path / "test_something.py").write_text(tests)
    options = ["-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    environment = os.environ | {"CI": ci, "PYTHONPATH": str(ROOT)}
    printed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout
    assert f"\n{said} in " in printed
    assert ("CI skips no test for something" in printed) == bool(ci)
