"""The wheel and the source distribution are complete: they are used in empty folders, without the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.autograder.checks.test_check_command import RIGHT

ROOT = Path(__file__).resolve().parents[1]
BUILD = "from setuptools import build_meta; import sys; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
BASE = {"cloudpickle", "numpy", "safetensors"}

pytestmark = pytest.mark.slow


def run(command: list[str], folder: Path, **more: str) -> str:
    """Run a command in a folder and return what it printed. No environment variable of Python leads to the checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | more
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a source distribution of the files that git knows."""
    folder = tmp_path_factory.mktemp("dist")
    files = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT).split("\0")
    for name in filter(lambda name: (ROOT / name).is_file(), files):
        (folder / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "checkout" / name).write_bytes((ROOT / name).read_bytes())
    source = run([sys.executable, "-c", BUILD, "build_sdist", str(folder)], folder / "checkout").split()[-1]
    with tarfile.open(folder / source) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11 has it from 3.11.4 on
        archive.extractall(folder / "unpacked")
    (unpacked,) = (folder / "unpacked").iterdir()
    return folder / run([sys.executable, "-c", BUILD, "build_wheel", str(folder)], unpacked).split()[-1]


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that has the wheel, and links to the packages of this one."""
    ours = shutil.ignore_patterns("__editable__*", "mini_autograd_course*")
    return environment(wheel, tmp_path_factory.mktemp("environment"), ours)


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that has the wheel, and links to what it needs without extras."""
    needed = ("pip", *BASE)  # also numpy.libs and the like
    top = Path(sysconfig.get_path("purelib"))

    def others(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder) == top and not name.startswith(needed)]

    return environment(wheel, tmp_path_factory.mktemp("base"), others)


def environment(wheel: Path, folder: Path, left_out: Callable[[str, list[str]], Iterable[str]]) -> Path:
    """Make an environment that has the wheel and links to packages of this one. Returns its folder of programs."""
    folder.chmod(0o755)  # submissions run as another user, who has to read the packages
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder)
    python = folder / "bin" / "python"
    site = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    try:
        shutil.copytree(sysconfig.get_path("purelib"), site, copy_function=os.link, ignore=left_out, dirs_exist_ok=True)
    except OSError as error:
        pytest.skip(f"the packages cannot be linked to: {str(error)[:200]}")
    # What the tests import is compiled then; most of the wheel never is.
    run([str(python), "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", str(wheel)], folder)
    return folder / "bin"


def test_a_wheel_holds_what_git_knows_of_the_packages_and_the_course(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/mini-autograd-course/")[-1] for name in archive.namelist()}
    known = run(["git", "ls-files", "autograder", "mini_autograd", "course"], ROOT).split()
    assert [name for name in known if name not in names and (ROOT / name).is_file()] == []


def test_the_course_is_delivered_in_an_empty_folder(programs: Path, tmp_path: Path) -> None:
    assert run([str(programs / "autograder"), "--version"], tmp_path).startswith("autograder ")
    said = run([str(programs / "autograder"), "lab", "--prepare-only"], tmp_path)
    assert "00_start_here/00_start_here.ipynb: delivered" in said
    delivered = {path.stem for path in tmp_path.glob("workspace/[0-9]*/*.ipynb")}
    assert len({name.removesuffix("_further") for name in delivered}) == 17
    where = run([str(programs / "python"), "-c", "import autograder; print(autograder.__file__)"], tmp_path)
    assert str(programs.parent) in where, "the wheel is used, and not the checkout"


CHECK = """
import mini_autograd
from autograder.student import check_gradients

class Number:
    def __init__(self, data, inputs=(), shares=()):
        self.data, self.grad, self.inputs, self.shares = data, 0.0, inputs, shares
    def __mul__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.data * other.data, (self, other), (other.data, self.data))
    def backward(self, grad=1.0):
        self.grad += grad
        for node, share in zip(self.inputs, self.shares):
            node.backward(grad * share)

class Swapped(Number):
    def __mul__(self, other):
        return Number(self.data * other.data, (self, other), (self.data, other.data))

mini_autograd.save(mini_autograd.ones(3), "ones")
print(mini_autograd.load("ones").sum().item())
for engine in (Number, Swapped):
    print(check_gradients(lambda a, b: a * b, [(), ()], engine=engine, points=1).reports[0].text())
"""


def test_the_engine_and_a_check_work_with_the_base_alone(base: Path, tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(CHECK)
    said = run([str(base / "python"), "check.py"], tmp_path)
    assert "3.0" in said
    assert "Gradients: right, 1 of 1 points" in said
    assert "Gradients: wrong, 0 of 1 points" in said
    assert said.count("the two operands are swapped") == 1
    listed = run([str(base / "python"), "-m", "pip", "list", "--format", "freeze"], tmp_path)
    assert {line.split("==")[0] for line in listed.split()} == BASE | {"pip", "mini-autograd-course"}


def test_an_engine_of_one_s_own_is_tried_with_the_base_alone(base: Path, tmp_path: Path) -> None:
    (tmp_path / "engine.py").write_text(RIGHT)
    said = run([str(base / "autograder"), "check", "engine.py"], tmp_path, COLUMNS="200")
    assert re.search(r"a \* b .*right", said)


def test_a_command_says_what_the_base_lacks(base: Path, tmp_path: Path) -> None:
    ran = subprocess.run([str(base / "autograder"), "lab"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.endswith("Install it with: pip install 'mini-autograd-course[course]'\n")
    run([str(base / "autograder"), "course", "mine"], tmp_path)
    assert len(list(tmp_path.glob("mine/lessons/[0-9]*"))) == 17


@pytest.mark.sandbox
def test_an_instructor_makes_and_grades_a_course_of_their_own(programs: Path, tmp_path: Path) -> None:
    autograder = str(programs / "autograder")
    run([autograder, "course", "mine"], tmp_path)
    run([autograder, "build", "02"], tmp_path / "mine")
    run([str(programs / "python"), "-m", "nbgrader", "generate_assignment", "02_scalar_engine"], tmp_path / "mine")
    source = tmp_path / "mine" / "source" / "02_scalar_engine" / "02_scalar_engine.ipynb"
    handed_in = tmp_path / "mine" / "submitted" / "ann" / "02_scalar_engine" / source.name
    handed_in.parent.mkdir(parents=True)
    handed_in.write_bytes(source.read_bytes())
    said = run([autograder, "grade", "02_scalar_engine", "--workers", "1"], tmp_path / "mine", COLUMNS="200")
    assert "33 / 33" in said
