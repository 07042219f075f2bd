"""The directory of operations names every file, and what it names exists."""

import importlib
from pathlib import Path

import pytest
import torch

from mini_autograd import operations

FOLDER = Path(operations.__file__).parent
FILES = {f"{path.parent.name}.{path.stem}" for path in FOLDER.glob("*/[!_]*.py")}
WITHOUT_OPERATIONS = {"neural.fused", "pointwise.outputs", "neural.targets", "neural.windows"}

LINES = [line.partition(": ") for line in (operations.__doc__ or "").splitlines()]
DIRECTORY = {file: entries for file, colon, entries in LINES if colon and file in FILES}


def test_every_file_is_in_the_directory() -> None:
    assert set(DIRECTORY) == FILES - WITHOUT_OPERATIONS


LEFT_OUT = {"binary_cross_entropy_with_logits"}  # it follows binary_cross_entropy, and the line would be too long


def names_in(file: str) -> list[str]:
    """The names in the line of a file."""
    words = DIRECTORY[file].removesuffix(": none has a gradient").split(", ")
    return [word.split()[0] for word in words if not word.startswith("and ")]


def own_functions(operation: type) -> set[str]:
    """Functions with a name of PyTorch's that matches an operation of their file: `log_softmax`, for LogSoftmax."""
    there = vars(importlib.import_module(operation.__module__))
    public = [name for name in there if not name.startswith("_")]
    alike = [name for name in public if name.replace("_", "") == operation.__qualname__.lower()]
    return {name for name in alike if hasattr(torch, name) or hasattr(torch.nn.functional, name)}


@pytest.mark.parametrize("file", DIRECTORY)
def test_the_line_of_a_file_names_its_operations(file: str) -> None:
    there = [one for one in operations.ALL if one.__module__ == f"{operations.__name__}.{file}"]
    functions = {name for operation in there for name in own_functions(operation)}
    assert functions - LEFT_OUT <= set(names_in(file))


@pytest.mark.parametrize("file", DIRECTORY)
def test_the_rule_is_where_the_directory_says(file: str) -> None:
    module = importlib.import_module(f"mini_autograd.operations.{file}")
    names = names_in(file)
    assert names
    for name in names:
        assert callable(getattr(module, name)), name
        assert file == "pointwise.comparison" or getattr(module, name).__module__ == module.__name__, name


def test_every_operation_stands_in_a_listed_file() -> None:
    assert {operation.__module__.removeprefix(f"{operations.__name__}.") for operation in operations.ALL} <= set(
        DIRECTORY
    )
