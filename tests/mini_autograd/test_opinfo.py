"""PyTorch's own operator samples (OpInfo), run under PyTorch and under mini_autograd.

For every operation of the table and each of its samples: values, first gradients with random cotangents, second
gradients and forward mode, in float64 to 1e-10; values and first gradients in float32 to 1e-5. Three operations have
hundreds of samples, of which a seeded choice is tried; `OPINFO_SAMPLES=all pytest tests/mini_autograd/test_opinfo.py`
tries every one. `python -m tests.mini_autograd.test_opinfo` prints what is covered, and what is left out and why.
"""

from __future__ import annotations

import functools
import os
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

import numpy as np
import pytest
import torch
import torch.autograd.forward_ad
from torch.utils._pytree import tree_flatten, tree_unflatten

import mini_autograd as ma
from mini_autograd import nn, operations
from mini_autograd.operations.products import linear_algebra
from mini_autograd.operations.reductions import norms
from mini_autograd.operations.shapes import gathering, joining

pytestmark = pytest.mark.slow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core as opinfo_core

SAMPLES = os.environ.get("OPINFO_SAMPLES", "64")
"""How many samples of an operation are tried, at most: a number, or "all"."""

MOST = sys.maxsize if SAMPLES == "all" else int(SAMPLES)

COVERED = {
    "arithmetic": """
        add sub rsub mul div.no_rounding_mode div.trunc_rounding div.floor_rounding true_divide floor_divide neg
        pow reciprocal square remainder positive __radd__ __rsub__ __rmul__ __rdiv__ __rpow__ __rmod__
        __rmatmul__ lerp""",
    "functions of one number": """
        abs sign sqrt rsqrt exp log log10 log1p sin cos tanh erf sigmoid floor ceil trunc round round.decimals_0
        round.decimals_3 round.decimals_neg_3 clone""",
    "functions of two numbers": """
        maximum minimum max.binary min.binary clamp where""",
    "comparison": """
        eq ne lt le gt ge isnan isinf isfinite isclose allclose equal any all count_nonzero bitwise_and
        bitwise_or bitwise_xor bitwise_not __rand__ __ror__ __rxor__ logical_and logical_or logical_not nonzero""",
    "reduction": """
        sum mean prod amax amin argmax argmin max.reduction_no_dim max.reduction_with_dim min.reduction_no_dim
        min.reduction_with_dim aminmax var var.unbiased std std.unbiased logsumexp norm norm.fro norm.inf
        linalg.vector_norm cumsum softmax softmax.with_dtype log_softmax log_softmax.with_dtype median trace""",
    "linear algebra": """
        matmul mm bmm mv dot outer nn.functional.linear""",
    "shape": """
        reshape reshape_as view view_as ravel flatten squeeze squeeze.multiple unsqueeze transpose t permute
        expand expand_as broadcast_to repeat cat stack narrow select split split.list_args chunk unbind flip
        roll tril triu diag diag_embed diagonal contiguous T mT nn.functional.pad.constant
        nn.functional.pad.reflect nn.functional.pad.replicate nn.functional.pad.replicate_negative
        nn.functional.pad.circular""",
    "indexing": """
        __getitem__ gather scatter scatter_add index_select masked_fill masked_select sort argsort topk
        nn.functional.embedding""",
    "activations": """
        nn.functional.relu nn.functional.leaky_relu nn.functional.gelu nn.functional.silu
        nn.functional.softplus nn.functional.normalize""",
    "neural": """
        nn.functional.conv1d nn.functional.conv2d nn.functional.conv_transpose1d nn.functional.conv_transpose2d
        nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.avg_pool1d nn.functional.avg_pool2d
        nn.functional.adaptive_avg_pool2d nn.functional.layer_norm nn.functional.batch_norm
        nn.functional.batch_norm.without_cudnn nn.functional.cross_entropy nn.functional.nll_loss
        nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss
        nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits""",
}
"""Entries of PyTorch's table of operations, as name or name.variant."""

NOT_COVERED = {
    "decompositions of matrices": """
        linalg.* cholesky* lu* qr svd* pca_lowrank pinverse geqrf ormqr triangular_solve matrix_exp norm.nuc""",
    "special functions": "special.* i0 igamma* polygamma* mvlgamma* digamma lgamma erfc erfinv sinc",
    "complex numbers, Fourier transforms": "fft.* stft istft view_as_* complex polar angle real imag conj* resolve_*",
    "sparse, masked and nested tensors": "sparse.* masked.* to_sparse _segment_reduce* jagged* nested* signal.*",
    "no gradient, or random numbers": """
        arange linspace* logspace* empty* new_* zeros* ones* full* eye rand* normal* uniform cauchy exponential
        geometric log_normal bernoulli multinomial item triu_indices tril_indices
        scalar_tensor bfloat16 bool byte char double float half int long
        short c*float cdouble chalf bucketize searchsorted nextafter frexp hash_tensor""",
    "a second derivative that PyTorch has not (other tests compare it)": "nn.functional.scaled_dot_product_attention",
    "neural functions that nothing in the course needs": "nn.functional.* *batch_norm* *layer_norm *group_norm",
    "internals of PyTorch, and copies of other entries": """
        _* torch.ops* jiterator* as_strided* *_copy *_scatter unsafe_* native_* *.triton* resize_* alias* to fill zero_
        max_pool2d* grid_sampler* ops.*""",
}
"""Why the other entries are not covered, by patterns of their names."""

HERE = {
    "nn.functional.linear": linear_algebra.linear,
    "nn.functional.pad": joining.pad,
    "nn.functional.embedding": lambda weight, indices, **options: gathering.embedding(indices, weight, **options),
    "nn.functional.normalize": norms.normalize,
    "nn.functional.relu": ma.relu,
    "linalg.vector_norm": norms.vector_norm,
    "__getitem__": lambda x, index: x[index],
    "__rdiv__": lambda x, other: other / x,
    "__rsub__": lambda x, other: other - x,
    "__rpow__": lambda x, other: other**x,
    "__rmatmul__": lambda x, other: other @ x,
    "where": lambda x, condition, other: ma.where(condition, x, other),
    "rsub": lambda x, other, alpha=1: ma.sub(other, x, alpha=alpha),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
}
"""Operations with another name or other arguments here; most have the name that they have in PyTorch."""


LESS_EXACT = {
    ("nn.functional.layer_norm", "float32"): (1e-4, "PyTorch's rule leaves rounding errors where a row is one number"),
    ("nn.functional.binary_cross_entropy", "second gradient"): (1e-7, "PyTorch adds 1e-12 to the divisor"),
}
"""Where PyTorch itself has fewer digits: the tolerance used instead, and why."""


def entry_name(op: Any) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


# For each sample these functions search the call stack for a unittest.TestCase, but the tests here are not of that
# class. The search took longer than all the comparisons.
common_utils.extract_test_fn = opinfo_core.extract_test_fn = lambda: None


def seed_the_cpu(seed: int = common_utils.SEED) -> None:
    """Seed what makes samples. PyTorch does so for each sample, and would note each time, with the call stack, how to
    seed a GPU once it is used. That took as long as making the samples."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


common_utils.set_rng_seed = seed_the_cpu

OPS = {entry_name(op): op for op in op_db}
NAMES = [name for family in COVERED.values() for name in family.split()]


def ours(op: Any) -> Callable[..., Any]:
    """The function of mini_autograd that an entry of the table is about."""
    if op.name in HERE:
        return HERE[op.name]
    name = op.name.removeprefix("nn.functional.")
    if name != op.name:
        return getattr(nn.functional, name)
    return getattr(ma, name) if hasattr(ma, name) else getattr(ma.Tensor, name)


@functools.cache
def samples(name: str) -> tuple[list[Any], int]:
    """A seeded choice of the samples of an operation, and how many there are in all."""
    op = OPS[name]
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dtype = torch.float64 if op.supports_autograd or torch.float64 in op.dtypes else torch.int64
        everything = list(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd))
    if len(everything) <= MOST:
        return everything, len(everything)
    chosen = sorted(random.Random(name).sample(range(1, len(everything)), MOST - 1))
    return [everything[0], *[everything[i] for i in chosen]], len(everything)


DTYPE_NAMES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "bool", "uint8")
DTYPES = {getattr(torch, name): getattr(ma, name) for name in DTYPE_NAMES}


@dataclass
class Call:
    """A sample translated for one library, at one precision."""

    lib: Any
    function: Callable[..., Any]
    op: Any
    sample: Any
    dtype: torch.dtype = torch.float64
    leaves: list[Any] = field(default_factory=list)  # after a run, the tensors to differentiate with respect to

    def translated(self, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            value = self.dtype if value == torch.float64 else value
            return DTYPES[value] if self.lib is ma else value
        if not isinstance(value, torch.Tensor):
            return value
        wanted = value.requires_grad
        array = value.detach().numpy().copy()
        if value.dtype == torch.float64 and self.dtype == torch.float32:
            array = array.astype(np.float32)
        tensor = self.lib.tensor(array, requires_grad=wanted)
        if wanted:
            self.leaves.append(tensor)
        return tensor

    def run(self, change: Callable[[Any], Any] = lambda tensor: tensor) -> list[Any]:
        """Call the function, with `change` applied to the tensors that require grad. Return a flat list of outputs."""
        self.leaves.clear()
        parts, tree = tree_flatten((self.sample.input, self.sample.args, self.sample.kwargs))
        values = [self.translated(part) for part in parts]
        values = [change(value) if any(value is leaf for leaf in self.leaves) else value for value in values]
        first, args, kwargs = tree_unflatten(values, tree)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            output = self.function(first, *args, **kwargs)
        if self.sample.output_process_fn_grad is not None:
            output = self.sample.output_process_fn_grad(output)
        return flat(output)


def flat(output: Any) -> list[Any]:
    """Tensors and numbers of a result, in a list."""
    if isinstance(output, list | tuple) and not hasattr(output, "ndim"):
        return [part for parts in output for part in flat(parts)]
    return [output]


def both(op: Any, sample: Any, dtype: torch.dtype = torch.float64) -> tuple[Call, Call]:
    return Call(ma, ours(op), op, sample, dtype), Call(torch, op.op, op, sample, dtype)


def array_of(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        return value.numpy(force=True)
    return value.detach().numpy() if isinstance(value, ma.Tensor) else np.asarray(value)


def check(name: str, found: Sequence[Any], expected: Sequence[Any], tolerance: float) -> None:
    """Equal shapes and numbers; in float32 up to rounding of the largest one. A missing gradient counts as zeros."""
    assert len(found) == len(expected), f"{name}: {len(found)} results, expected {len(expected)}"
    for position, (got, wanted) in enumerate(zip(found, expected, strict=True)):
        if got is None and wanted is None:
            continue
        zeros = np.zeros_like(array_of(wanted if got is None else got))
        got, wanted = (zeros if value is None else array_of(value) for value in (got, wanted))
        assert got.shape == wanted.shape, f"{name} {position}: shape {got.shape}, expected {wanted.shape}"
        largest = float(np.abs(wanted[np.isfinite(wanted)], dtype=float).max(initial=1.0)) if tolerance > 1e-8 else 1.0
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * largest, err_msg=f"{name} {position}")


def tolerance(name: str, kind: str, usual: float) -> float:
    return LESS_EXACT.get((name, kind), (usual, ""))[0]


def differentiable(outputs: Sequence[Any]) -> list[Any]:
    return [output for output in outputs if getattr(output, "requires_grad", False)]


def random_like(tensors: Sequence[Any], seed: int) -> list[np.ndarray]:
    """Random arrays of the shapes and dtypes of tensors. The first ones do not depend on how many follow."""
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(tuple(t.shape)).astype(array_of(t).dtype) for t in tensors]


def first_and_second(call: Call, order: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Outputs, gradients for random cotangents, and gradients of a random combination of these gradients."""
    outputs = call.run()
    recorded = differentiable(outputs)
    if not recorded:
        return outputs, [], []
    cotangents = [call.lib.tensor(array, requires_grad=order > 1) for array in random_like(recorded, 1)]
    grads = call.lib.autograd.grad(recorded, call.leaves, cotangents, create_graph=order > 1, allow_unused=True)
    if order == 1:
        return outputs, list(grads), []
    shaped = [leaf if grad is None else grad for leaf, grad in zip(call.leaves, grads, strict=True)]
    weights = [call.lib.tensor(array) for array in random_like(shaped, 2)]
    parts = [
        (weight * grad).sum()
        for weight, grad in zip(weights, grads, strict=True)
        if grad is not None and grad.requires_grad
    ]
    if not parts:
        return outputs, list(grads), [None] * (len(call.leaves) + len(cotangents))
    total = functools.reduce(lambda a, b: a + b, parts)
    second = call.lib.autograd.grad(total, [*call.leaves, *cotangents], allow_unused=True)
    return outputs, list(grads), list(second)


def tangents(call: Call) -> list[Any]:
    """Forward mode with random tangents: the tangents of the outputs that require grad."""
    recorded = [getattr(output, "requires_grad", False) for output in call.run()]
    forward_ad = call.lib.autograd.forward_ad
    with forward_ad.dual_level():

        def dual(leaf: Any) -> Any:
            position = next(i for i, other in enumerate(call.leaves) if other is leaf)
            return forward_ad.make_dual(leaf.detach(), call.lib.tensor(random_like(call.leaves, 3)[position]))

        outputs = [output for output, wanted in zip(call.run(dual), recorded, strict=True) if wanted]
        return [forward_ad.unpack_dual(output).tangent for output in outputs]


def tangents_by_reverse_mode(call: Call) -> list[Any]:
    """The tangents of the outputs by reverse mode, twice: for operations of PyTorch without a rule for forward mode."""
    outputs = differentiable(call.run())
    cotangents = [torch.zeros_like(output, requires_grad=True) for output in outputs]
    grads = torch.autograd.grad(outputs, call.leaves, cotangents, create_graph=True, allow_unused=True)
    pairs = [(g, torch.tensor(t)) for g, t in zip(grads, random_like(call.leaves, 3), strict=True) if g is not None]
    total = sum((grad * tangent).sum() for grad, tangent in pairs)
    return list(torch.autograd.grad(total, cotangents, allow_unused=True))


def ancestors(outputs: Sequence[Any]) -> set[Any]:
    """All nodes of the graphs of the outputs."""
    stack = [output.grad_fn for output in outputs if output.grad_fn is not None]
    found = set(stack)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None and node not in found:
                found.add(node)
                stack.append(node)
    return found


KINDS = ("value", "gradient in a recorded pass", "second gradient", "gradient")
by_operation = pytest.mark.parametrize("name", NAMES)


@by_operation
def test_values_and_gradients_are_those_of_pytorch(name: str) -> None:
    op = OPS[name]
    order = 2 if op.supports_gradgrad else 1
    for sample in samples(name)[0]:
        results = [[*first_and_second(call, order)] for call in both(op, sample)]
        for result, call in zip(results, both(op, sample), strict=True):
            result.append(first_and_second(call, 1)[1])
        for kind, found, expected in zip(KINDS, *results, strict=True):
            check(f"{kind} of {sample.summary()}", found, expected, tolerance(name, kind.split(" in ")[0], 1e-10))


@pytest.mark.parametrize("name", [name for name in NAMES if OPS[name].supports_autograd])
def test_forward_mode_is_that_of_pytorch(name: str) -> None:
    op = OPS[name]
    for sample in samples(name)[0]:
        mine, torchs = both(op, sample)
        expected = tangents(torchs) if op.supports_forward_ad else tangents_by_reverse_mode(torchs)
        check(f"tangent of {sample.summary()}", tangents(mine), expected, tolerance(name, "tangent", 1e-10))


@by_operation
def test_float32_is_that_of_pytorch(name: str) -> None:
    op = OPS[name]
    for sample in samples(name)[0]:
        results = [first_and_second(call, 1) for call in both(op, sample, torch.float32)]
        for value, other in zip(*(result[0] for result in results), strict=True):
            assert array_of(value).dtype == array_of(other).dtype, sample.summary()
        for kind, found, expected in zip(("value", "gradient"), results[0], results[1], strict=False):
            check(f"float32 {kind} of {sample.summary()}", found, expected, tolerance(name, "float32", 1e-5))


INSIDE_OTHERS = {"Answer", "Cast", "Put", "Assign", "ConvolutionWeight", "PickWinners", "GiveToWinners", "GiveEqually"}
"""Operations that mostly work inside others, as their rules."""

TESTED_ELSEWHERE = {"Attention", "Dropout", "FloorQuotient", "Move", "ScatterProducts"}
"""Operations that PyTorch's samples do not fit: see tests/mini_autograd/nn, test_devices.py, test_found_at_random,
test_rare_cases."""


NO_METHOD = {
    "__rdiv__": "the name that __rtruediv__ had in Python 2",
    "__rmatmul__": "Python asks for it only where the left operand is no tensor, and a matrix product wants two",
}
"""Methods of PyTorch's tensors that ours lack, though the operation is compared."""


@by_operation
def test_what_is_a_method_in_pytorch_is_a_method_here(name: str) -> None:
    plain = OPS[name].name.removeprefix("nn.functional.").removeprefix("linalg.")
    wanted = {method for method in (plain, f"{plain}_") if hasattr(torch.Tensor, method)}
    missing = {method for method in wanted if not hasattr(ma.Tensor, method)}
    assert missing == wanted & NO_METHOD.keys(), "name it in __all__, or in IN_PLACE, of its family"


def test_every_operation_is_sampled() -> None:
    seen = set()
    for name in NAMES:
        if OPS[name].supports_autograd:
            for sample in samples(name)[0]:
                nodes = ancestors(differentiable(both(OPS[name], sample)[0].run()))
                seen |= {type(node).__qualname__ for node in nodes}
    assert {operation.__qualname__ for operation in operations.ALL} - seen <= INSIDE_OTHERS | TESTED_ELSEWHERE


def as_float32_holds_it(value: Any) -> Any:
    """A tensor of a sample, with digits that float32 can hold."""
    if getattr(value, "dtype", None) != torch.float64:
        return value
    return value.detach().float().double().requires_grad_(value.requires_grad)


def test_exact_operations_add_no_rounding() -> None:
    seen = set()
    for name in NAMES:
        for sample in samples(name)[0][:8] if OPS[name].supports_autograd else ():
            narrow, wide = (
                both(OPS[name], sample.transform(as_float32_holds_it), dtype)[0].run()
                for dtype in (torch.float32, torch.float64)
            )
            nodes = {type(node) for node in ancestors(differentiable(wide)) if node.next_functions}
            if nodes and all(node.exact for node in nodes):
                seen |= nodes
                for found, expected in zip(narrow, wide, strict=True):
                    np.testing.assert_array_equal(array_of(found), array_of(expected), name)
    exact = {operation for operation in operations.ALL if operation.exact}
    assert {operation.__qualname__ for operation in exact - seen} <= INSIDE_OTHERS | TESTED_ELSEWHERE


def print_coverage() -> None:
    """What is covered, with the numbers of samples tried and known; what is not, and why."""
    for family, names in COVERED.items():
        print(f"{family} ({len(names.split())} entries)")
        print("    " + ", ".join(f"{name} {len(samples(name)[0])}/{samples(name)[1]}" for name in names.split()))
    tried, known = (sum(numbers) for numbers in zip(*[(len(s), n) for s, n in map(samples, NAMES)], strict=True))
    print(f"Covered: {len(NAMES)} of PyTorch's {len(OPS)} entries. Samples tried: {tried} of their {known}.")
    for name in NAMES:
        chosen, there = len(samples(name)[0]), samples(name)[1]
        if chosen < there:
            print(f"    {name}: {there - chosen} of {there} samples skipped, chosen with a fixed seed, to save time:")
            print("        they vary the same few arguments in all combinations. OPINFO_SAMPLES=all tries them too.")
    print("Less exact than 1e-10 in float64 and 1e-5 in float32:")
    for (name, kind), (limit, reason) in LESS_EXACT.items():
        print(f"    {name}, {kind}, {limit:g}: {reason}")
    print("Entries that are not covered:")
    missing = [name for name in OPS if name not in NAMES]
    for reason, patterns in NOT_COVERED.items():
        found = [name for name in missing if any(fnmatch(name, pattern) for pattern in patterns.split())]
        missing = [name for name in missing if name not in found]
        print(f"  {reason} ({len(found)})")
        print("    " + ", ".join(found))
    print(f"  neither the course nor a named script needs them ({len(missing)})")
    print("    " + ", ".join(missing))


if __name__ == "__main__":
    print_coverage()
