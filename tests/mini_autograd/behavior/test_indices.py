"""Edge cases of indices, shapes that do not fit, printing and data loaders: the same as under PyTorch."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import Program, same


def assigned(index: Callable[[Any, Any], Any], value: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def change(x: Any, lib: Any) -> Any:
        x[index(x, lib)] = value(lib)
        return x

    return change


def deleted(x: Any, lib: Any) -> None:
    del x[0]


OF_A_MATRIX: dict[str, Callable[[Any, Any], Any]] = {
    "new axes": lambda x, lib: x[None, ..., None],
    "last column": lambda x, lib: x[..., -1],
    "negative step": lambda x, lib: x[::-1],
    "step": lambda x, lib: x[:, ::2],
    "slice beyond the end": lambda x, lib: x[5:],
    "slice with a fraction": lambda x, lib: x[0:1.5],
    "row beyond the end": lambda x, lib: x[5],
    "row before the start": lambda x, lib: x[-3],
    "column beyond the end": lambda x, lib: x[0, 7],
    "too many": lambda x, lib: x[0, 0, 0],
    "float": lambda x, lib: x[1.0],
    "text": lambda x, lib: x["a"],
    "True": lambda x, lib: x[True],
    "False": lambda x, lib: x[False],
    "nothing": lambda x, lib: x[[]],
    "empty tuple": lambda x, lib: x[()],
    "slice of a number": lambda x, lib: x[0, 0][:],
    "index of a number": lambda x, lib: x[0, 0][0],
    "two indices of a number": lambda x, lib: x[0, 0][0, 0],
    "mask": lambda x, lib: x[x > 2],
    "mask of rows": lambda x, lib: x[lib.tensor([True, False])],
    "mask of columns": lambda x, lib: x[:, lib.tensor([True, False, True])],
    "mask of the wrong length": lambda x, lib: x[lib.tensor([True, False, True])],
    "mask of bytes": lambda x, lib: x[lib.tensor([0, 1], dtype=lib.uint8)],
    "rows": lambda x, lib: x[[0, 1, 0]],
    "places": lambda x, lib: x[[0, 1], [1, 2]],
    "places of unequal number": lambda x, lib: x[[0, 1], [1, 2, 0]],
    "rows beyond the end": lambda x, lib: x[[0, 5]],
    "tensor": lambda x, lib: x[lib.tensor([[0, 1], [1, 0]])],
    "floating tensor": lambda x, lib: x[lib.tensor([0.0, 1.0])],
    "assigned row of another length": assigned(lambda x, lib: 0, lambda lib: lib.ones(2)),
    "assigned mask": assigned(lambda x, lib: x > 2, lambda lib: 0.0),
    "assigned too many": assigned(lambda x, lib: x > 2, lambda lib: lib.ones(2)),
    "assigned beyond the end": assigned(lambda x, lib: 7, lambda lib: 1.0),
    "assigned text": assigned(lambda x, lib: 0, lambda lib: "a"),
    "assigned list": assigned(lambda x, lib: 0, lambda lib: [1.0, 2.0, 3.0]),
    "assigned None": assigned(lambda x, lib: 0, lambda lib: None),
    "deleted": deleted,
    "gathered beyond the end": lambda x, lib: x.gather(1, lib.tensor([[9]])),
    "item": lambda x, lib: x.item(),
    "truth": lambda x, lib: bool(x),
    "int": lambda x, lib: int(x),
    "contained": lambda x, lib: 2.0 in x,
    "compared with None": lambda x, lib: x == None,  # noqa: E711
    "unequal columns joined": lambda x, lib: lib.cat([x, lib.ones(2, 2)]),
    "stacked": lambda x, lib: lib.stack([x, lib.ones(2, 2)]),
    "view of another size": lambda x, lib: x.view(4),
    "view of a transpose": lambda x, lib: x.T.view(6),
    "two unknown sizes": lambda x, lib: x.reshape(-1, -1),
    "narrowed too far": lambda x, lib: x.narrow(1, 2, 3),
    "split wrongly": lambda x, lib: x.split([1, 1], 1),
    "no chunks": lambda x, lib: x.chunk(0),
    "repeated along too few": lambda x, lib: x.repeat(2),
    "formatted": lambda x, lib: f"{x[0, 0]:.2f} {x}",
    "formatted as a number": lambda x, lib: f"{x:.2f}",
}


@pytest.mark.parametrize("name", OF_A_MATRIX)
def test_of_a_matrix(name: str) -> None:
    same(lambda lib: OF_A_MATRIX[name](lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), lib))


PRINTED: dict[str, Program] = {
    "no rows": lambda lib: lib.zeros(2, 0),
    "sizes far apart": lambda lib: lib.tensor([1e-8, 1.0, 1e8]),
    "not a number": lambda lib: lib.tensor([math.nan, 1.5, -math.inf]),
    "minus zero": lambda lib: lib.tensor([-0.0, 0.0]),
    "many": lambda lib: lib.arange(2000),
    "many rows": lambda lib: lib.arange(3000.0).reshape(30, 100),
    "whole numbers": lambda lib: lib.tensor([1.0, 20.0, 300.0]),
    "a long line": lambda lib: lib.linspace(0, 1, 25),
    "half": lambda lib: lib.ones(2).half(),
    "a view": lambda lib: lib.ones(4, requires_grad=True).view(2, 2),
    "expanded": lambda lib: lib.ones(1, requires_grad=True).expand(3),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printed(name: str) -> None:
    same(lambda lib: repr(PRINTED[name](lib)))


def dataset(lib: Any) -> Any:
    return lib.utils.data.TensorDataset(lib.arange(5).float(), lib.arange(5) * 2)


def batches(**options: Any) -> Program:
    return lambda lib: list(lib.utils.data.DataLoader(dataset(lib), **options))


LOADED: dict[str, Program] = {
    "batches": batches(batch_size=2),
    "without the last": batches(batch_size=2, drop_last=True),
    "one by one": batches(batch_size=None),
    "own collation": batches(batch_size=2, collate_fn=len),
    "no batches": batches(batch_size=0),
    "given batches": batches(batch_sampler=[[0, 1], [4]]),
    "given batches of a size": batches(batch_size=2, batch_sampler=[[0, 1], [4]]),
    "dicts": lambda lib: [
        sorted(batch.items()) for batch in lib.utils.data.DataLoader([{"a": 1, "b": 2.0}, {"a": 3, "b": 4.0}], 2)
    ],
    "texts": lambda lib: list(lib.utils.data.DataLoader(["a", "b", "c"], 2)),
    "unequal lengths": lambda lib: list(lib.utils.data.DataLoader([lib.ones(2), lib.ones(3)], 2)),
    "split too far": lambda lib: lib.utils.data.random_split(dataset(lib), [3, 3]),
    "tensors of unequal length": lambda lib: lib.utils.data.TensorDataset(lib.ones(2), lib.ones(3)),
}


@pytest.mark.parametrize("name", LOADED)
def test_loaded(name: str) -> None:
    same(LOADED[name])
