"""Data sets, loaders, random numbers and saving, compared with PyTorch's."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import torch.utils.data

import mini_autograd as ma


def tolist(value: Any) -> Any:
    """The value with its tensors as lists, however they are nested."""
    if isinstance(value, dict):
        return {key: tolist(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [tolist(entry) for entry in value]
    return (value.tolist(), str(value.dtype).split(".")[-1]) if hasattr(value, "tolist") else value


class Squares:
    """Samples of many kinds."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib

    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> Any:
        return {
            "x": index,
            "y": (index**2 / 2, np.arange(index, index + 2)),
            "name": str(index),
            "t": self.lib.tensor([index]),
        }


def rows(lib: Any) -> Any:
    return lib.utils.data.TensorDataset(lib.arange(20).reshape(10, 2), lib.arange(10))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "in order": lambda lib: list(lib.utils.data.DataLoader(rows(lib), batch_size=4)),
    "drop last": lambda lib: list(lib.utils.data.DataLoader(rows(lib), 4, drop_last=True)),
    "shuffled": lambda lib: [list(lib.utils.data.DataLoader(rows(lib), 4, shuffle=True)) for _ in range(2)],
    "shuffled twice": lambda lib: [list(loader) for loader in [lib.utils.data.DataLoader(rows(lib), 3, True)] * 2],
    "own generator": lambda lib: [
        list(loader)
        for loader in [lib.utils.data.DataLoader(rows(lib), 3, True, generator=lib.Generator().manual_seed(4))] * 2
    ],
    "random numbers afterwards": lambda lib: [list(lib.utils.data.DataLoader(rows(lib), 4, True)), lib.rand(2)],
    "single samples": lambda lib: list(lib.utils.data.DataLoader(rows(lib), batch_size=None)),
    "collate": lambda lib: list(lib.utils.data.DataLoader(Squares(lib), 3)),
    "own collate": lambda lib: list(lib.utils.data.DataLoader(Squares(lib), 3, collate_fn=lambda batch: len(batch))),
    "lengths": lambda lib: [len(lib.utils.data.DataLoader(rows(lib), 4, drop_last=drop)) for drop in (False, True)],
    "sampler": lambda lib: list(
        lib.utils.data.DataLoader(rows(lib), 2, sampler=lib.utils.data.RandomSampler(range(4)))
    ),
    "batch sampler": lambda lib: list(lib.utils.data.DataLoader(rows(lib), batch_sampler=[[1, 2], [0]])),
    "replacement": lambda lib: list(lib.utils.data.RandomSampler(range(9), replacement=True, num_samples=40)),
    "more than there are": lambda lib: list(lib.utils.data.RandomSampler(range(5), num_samples=13)),
    "split": lambda lib: [part.indices for part in lib.utils.data.random_split(rows(lib), [7, 3])],
    "split by fractions": lambda lib: [
        list(part) for part in lib.utils.data.random_split(rows(lib), [0.45, 0.35, 0.2])
    ],
    "subset of a subset": lambda lib: lib.utils.data.Subset(lib.utils.data.Subset(rows(lib), [4, 5, 6]), [2, 0])[1],
    "rand": lambda lib: [lib.rand(3, 2), lib.rand((2,), dtype=lib.float64), lib.rand_like(lib.ones(2))],
    "randint": lambda lib: [lib.randint(10, (5,)), lib.randint(-3, 4, (2, 2)), lib.randint(0, 2**40, (3,))],
    "randperm": lambda lib: [lib.randperm(9), lib.randperm(0), lib.randperm(1)],
    "bernoulli": lambda lib: lib.bernoulli(lib.full((20,), 0.3)),
    "state": lambda lib: [state := lib.get_rng_state(), a := lib.rand(2), lib.set_rng_state(state), a == lib.rand(2)][
        1:
    ],
    "seeds": lambda lib: [lib.initial_seed(), lib.Generator().manual_seed(5).initial_seed()],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_data_and_random_numbers_are_pytorchs(name: str) -> None:
    found = []
    for lib in (torch, ma):
        lib.manual_seed(3)
        found.append(tolist(PROGRAMS[name](lib)))
    assert found[1] == found[0]


def test_normal_numbers_are_pytorchs_but_for_the_last_bits() -> None:
    for shape in ((3,), (15,), (16,), (33,), (4, 5)):
        for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-14)):
            drawn = []
            for lib in (torch, ma):
                lib.manual_seed(1)
                drawn.append([lib.randn(*shape, dtype=getattr(lib, dtype)).numpy() for _ in range(3)])
            np.testing.assert_allclose(drawn[1], drawn[0], rtol=tolerance, atol=tolerance)


ERRORS: dict[str, Callable[[Any], Any]] = {
    "shuffle and sampler": lambda lib: lib.utils.data.DataLoader(rows(lib), shuffle=True, sampler=[1]),
    "batch size": lambda lib: lib.utils.data.DataLoader(rows(lib), 0),
    "split": lambda lib: lib.utils.data.random_split(rows(lib), [3, 3]),
    "sizes": lambda lib: lib.utils.data.TensorDataset(lib.ones(3), lib.ones(4)),
    "ragged": lambda lib: lib.utils.data.default_collate([(1, 2), (1,)]),
    "randint": lambda lib: lib.randint(3, 3, (1,)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011
        ERRORS[name](torch)
    with pytest.raises(type(expected.value)) as got:
        ERRORS[name](ma)
    assert str(got.value) == str(expected.value)


def build(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Conv2d(2, 3, 3), lib.nn.BatchNorm2d(3), lib.nn.Flatten(), lib.nn.Linear(12, 2))


def test_weights_go_to_pytorch_and_back(tmp_path: Path) -> None:
    ma.manual_seed(1)
    ours, theirs, again = build(ma).double(), build(torch).double(), build(ma).double()
    x = np.random.default_rng(1).standard_normal((2, 2, 4, 4))
    ours(ma.tensor(x))
    ma.save(ours.state_dict(), tmp_path / "ours.safetensors")
    theirs.load_state_dict(safetensors.torch.load_file(tmp_path / "ours.safetensors"))
    safetensors.torch.save_file(theirs.state_dict(), tmp_path / "theirs.safetensors")
    again.load_state_dict(ma.load(tmp_path / "theirs.safetensors"))
    for name, value in ours.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[name].numpy(), value.numpy())
    expected = theirs.eval()(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(again.eval()(ma.tensor(x)).detach().numpy(), expected, rtol=1e-10)


def test_saving_keeps_dtypes_and_shapes_and_refuses_anything_else(tmp_path: Path) -> None:
    kept = {"a": ma.tensor(3), "b": ma.ones(2, 3).T, "c": ma.tensor([True, False]), "d": ma.tensor([1.0]).half()}
    ma.save(kept, tmp_path / "file")
    for name, value in ma.load(tmp_path / "file").items():
        assert value.dtype == kept[name].dtype
        np.testing.assert_array_equal(value.numpy(), kept[name].numpy())
    with pytest.raises(TypeError, match=r"cannot save a Linear \(at model.0\): only tensors, numbers, strings"):
        ma.save({"model": [ma.nn.Linear(1, 1)]}, tmp_path / "file")


def test_saving_checkpoints_and_what_else_is_made_of_tensors(tmp_path: Path) -> None:
    weight = ma.nn.Parameter(ma.ones(2))
    optimizer = ma.optim.Adam([weight], lr=0.1)
    weight.sum().backward()
    optimizer.step()
    kept = {"epoch": 5, "optimizer": optimizer.state_dict(), "loss": float("inf"), "best": None, "done": True}
    kept |= {"history": [0.1, np.float64(0.2)], "name": "run", "pair": (1, ma.arange(2)), 3: {}, "pair.1": weight}
    ma.save(kept, tmp_path / "file")
    again = ma.load(tmp_path / "file")
    assert list(again) == list(kept)
    assert repr(again["optimizer"]) == repr(kept["optimizer"])
    assert [again[name] for name in ("epoch", "loss", "best", "done", "history", "name", 3)] == [
        *(5, float("inf"), None, True, [0.1, 0.2], "run", {})
    ]
    assert again["pair"][0] == 1
    assert again["pair"][1].tolist() == [0, 1]
    assert again["pair.1"].tolist() == weight.tolist()
    other = ma.optim.Adam([ma.nn.Parameter(ma.ones(2))])
    other.load_state_dict(again["optimizer"])
    assert other.param_groups[0]["lr"] == 0.1
    assert repr(other.state_dict()["state"]) == repr(optimizer.state_dict()["state"])


@pytest.mark.parametrize("value", [ma.eye(2), [ma.ones(2), ma.tensor(1)], (), {}, ("a", {"b": ma.zeros(0)}), 3])
def test_saving_to_an_open_file(value: Any) -> None:
    file = io.BytesIO()
    ma.save(value, file)
    file.seek(0)
    assert repr(ma.load(file, map_location="cpu")) == repr(value)
