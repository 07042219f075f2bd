"""Names of PyTorch that are left out on purpose, and what is said about them.

`python -m tests.mini_autograd.test_left_out` writes the list of PyTorch's public names again.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import mini_autograd as ma
from mini_autograd.numerics import left_out

LIST = Path(left_out.__file__).with_suffix(".json")
OWNERS = [
    *("torch", "torch.autograd", "torch.autograd.forward_ad", "torch.autograd.functional"),
    *("torch.autograd.graph", "torch.cuda", "torch.func", "torch.linalg", "torch.nn", "torch.nn.functional"),
    *("torch.nn.init", "torch.nn.utils", "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data"),
]


def of(lib: Any, owner: str) -> Any:
    """The module of this name in PyTorch, or ours in its place."""
    return importlib.import_module(owner.replace("torch", lib.__name__, 1))


def public_names(owner: str) -> list[str]:
    """The names of a module of PyTorch without underscore, apart from what it imports from elsewhere."""
    names = [name for name in dir(of(torch, owner)) if name[0] != "_" and name != "torch"]
    values = [getattr(of(torch, owner), name, None) for name in names]
    homes = [value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "") for value in values]
    return [name for name, home in zip(names, homes, strict=True) if not home or home.partition(".")[0] == "torch"]


@pytest.mark.parametrize("owner", OWNERS)
def test_the_list_is_that_of_pytorch(owner: str) -> None:
    """What is listed is there; all that PyTorch calls public is listed."""
    listed = json.loads(LIST.read_text())[owner].split()
    theirs = of(torch, owner)
    assert [name for name in listed if not hasattr(theirs, name)] == []
    assert {name for name in getattr(theirs, "__all__", ()) if name in public_names(owner)} <= set(listed)


@pytest.mark.parametrize("owner", OWNERS)
def test_a_name_that_is_left_out_says_so(owner: str) -> None:
    ours = of(ma, owner)
    for name in json.loads(LIST.read_text())[owner].split():
        if not hasattr(ours, name):
            with pytest.raises(
                AttributeError, match=rf"no attribute '{name}'\. {owner}\.{name} is left out on purpose"
            ):
                getattr(ours, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing_of_this_name'\Z"):
        _ = ours.nothing_of_this_name


@pytest.mark.parametrize("name", left_out.IN_PLACE_OF_IT)
def test_what_is_said_to_be_left_out_is(name: str) -> None:
    owner, _, last = name.rpartition(".")
    assert hasattr(of(torch, owner), last)
    assert not hasattr(of(ma, owner), last)


if __name__ == "__main__":
    LIST.write_text(json.dumps({owner: " ".join(public_names(owner)) for owner in OWNERS}, indent=0) + "\n")
