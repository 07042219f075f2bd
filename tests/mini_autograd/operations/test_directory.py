"""The directory of operations names every file, and what it names is there."""

import importlib
from pathlib import Path

import pytest

from mini_autograd import operations

FOLDER = Path(operations.__file__).parent
FILES = {f"{path.parent.name}.{path.stem}" for path in FOLDER.glob("*/[!_]*.py")}
WITHOUT_OPERATIONS = {"neural.fused", "pointwise.outputs", "neural.targets", "neural.windows"}

LINES = [line.partition(": ") for line in (operations.__doc__ or "").splitlines()]
DIRECTORY = {file: entries for file, colon, entries in LINES if colon and file in FILES}


def test_every_file_is_in_the_directory() -> None:
    assert set(DIRECTORY) == FILES - WITHOUT_OPERATIONS


@pytest.mark.parametrize("file", DIRECTORY)
def test_the_rule_is_where_the_directory_says(file: str) -> None:
    module = importlib.import_module(f"mini_autograd.operations.{file}")
    words = DIRECTORY[file].removesuffix(": none has a gradient").split(", ")
    names = [word.split()[0] for word in words if not word.startswith("and ")]
    assert names
    for name in names:
        assert callable(getattr(module, name)), name
        assert file == "pointwise.comparison" or getattr(module, name).__module__ == module.__name__, name


def test_every_operation_stands_in_a_listed_file() -> None:
    assert {operation.__module__.removeprefix(f"{operations.__name__}.") for operation in operations.ALL} <= set(
        DIRECTORY
    )
