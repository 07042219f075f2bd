"""`gradcheck` and `gradgradcheck`: compare gradients with finite differences.

The one idea to know: the error of a central difference is about eps squared, plus the rounding of the values divided by
eps. So in float64 with eps = 1e-6, a right gradient agrees to about 1e-9; in float32 it cannot.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mini_autograd.graph.function import tensor_of
from mini_autograd.numerics.arrays import on_device, on_host, unit
from mini_autograd.numerics.size import size_of
from mini_autograd.tensors.gradients import grad
from mini_autograd.tensors.tensor import Tensor


class GradcheckError(RuntimeError):
    """A gradient is wrong, or cannot be checked."""


class Precision(NamedTuple):
    """How finite differences are taken, and how closely gradients have to agree: |a - n| <= atol + rtol |n|.

    `nondet_tol` is how far two backward passes over the same graph may differ.
    """

    eps: float
    atol: float
    rtol: float
    nondet_tol: float


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    fast_mode: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    batched: bool = False,
    **ignored: Any,
) -> bool:
    """Whether the gradients of `func(*inputs)` agree with central differences, for all inputs that require grad.

    Inputs can have any shape and should be float64. `fast_mode` compares one random direction. `check_forward_ad` also
    checks the rules of forward mode. Unlike in PyTorch, `batched` takes all differences at once, which is much faster
    for many elements; `func` must then treat an extra leading axis of an input as a batch. `check_undefined_grad` and
    PyTorch's other options have no effect.

    Raises ValueError if no input requires grad, AttributeError if an output is not a tensor, AssertionError if the
    shapes of outputs depend on values, and GradcheckError, with both Jacobians, if they differ or are nan.
    `raise_exception=False` replaces GradcheckError by a result of False.
    """
    precision = Precision(eps, atol, rtol, nondet_tol)
    try:
        _check(func, as_tuple(inputs), precision, check_backward_ad, check_forward_ad, fast_mode, batched)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    func: Callable,
    arguments: Sequence[Any],
    precision: Precision,
    reverse: bool,
    forward: bool,
    fast: bool,
    batched: bool,
) -> None:
    """Run the requested checks in PyTorch's order, which decides the error for a function with several mistakes."""
    _check_inputs(arguments)
    outputs = outputs_of(func, arguments)
    if not outputs:
        _check_constant(func, arguments, precision.eps)
    if reverse:
        jacobian = batched_numerical_jacobian if batched else numerical_jacobian
        numerical = {i: jacobian(func, arguments, i, precision.eps) for i, _ in differentiable(arguments)}
        _check_reverse(arguments, outputs, numerical, precision, fast)
    if forward:
        _check_forward(func, arguments, precision)


def as_tuple(values: Any) -> tuple:
    """Several values, or one, as a tuple."""
    return tuple(values) if isinstance(values, tuple | list) else (values,)


def differentiable(arguments: Sequence[Any]) -> list[tuple[int, Tensor]]:
    """The arguments whose gradients are checked, each with its number."""
    return [(i, x) for i, x in enumerate(arguments) if isinstance(x, Tensor) and x.requires_grad]


def _check_inputs(arguments: Sequence[Any]) -> None:
    """Raise ValueError if there is nothing to check, and warn if the dtype makes the check futile."""
    checked = differentiable(arguments)
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for number, x in checked:
        if x.dtype != np.float64:
            warnings.warn(
                f"Input #{number} requires gradient and is not a double precision floating point or complex. This "
                "check will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )


def outputs_of(func: Callable, arguments: Sequence[Any]) -> list[Tensor]:
    """The outputs that can have a gradient. As in PyTorch, anything but a tensor is an AttributeError, not skipped."""
    return [x for x in as_tuple(func(*arguments)) if x.requires_grad]


def _check_constant(func: Callable, arguments: Sequence[Any], eps: float) -> None:
    """Raise if outputs depend on an input although none requires grad: the history was lost."""

    def tracked(*args: Any) -> list[Any]:
        return [y.detach().requires_grad_() for y in as_tuple(func(*args)) if y.is_floating_point()]

    for i, _ in differentiable(arguments):
        if any(jacobian.any() for jacobian in numerical_jacobian(tracked, arguments, i, eps)):
            raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_reverse(
    arguments: Sequence[Any],
    outputs: Sequence[Tensor],
    numerical: dict[int, list[np.ndarray]],
    precision: Precision,
    fast: bool,
) -> None:
    """Raise unless reverse mode gives the Jacobians `numerical`: by number of the input, a list with one per output."""
    xs = differentiable(arguments)
    for number, output in enumerate(outputs):
        first = analytical_jacobians(output, [x for _, x in xs])
        again = analytical_jacobians(output, [x for _, x in xs])
        for position, (i, _) in enumerate(xs):
            if distances(first[position], again[position]).max(initial=0.0) > precision.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient."
                )
            compare(first[position], numerical[i][number], number, i, precision, fast)


def numerical_jacobian(func: Callable, arguments: Sequence[Any], which: int, eps: float) -> list[np.ndarray]:
    """For each output, its Jacobian with respect to one input, by central differences in float64.

    These are (f(x + eps) - f(x - eps)) / (2 eps), with a row per element of the input and a column per element of the
    output. The input itself is changed and restored, because the function may hold it too, as a module holds its
    parameters.
    """
    x = arguments[which]
    if not x.numel():
        return [np.zeros((0, y.numel())) for y in outputs_of(func, arguments)]
    above, below = [], []
    node = x.gradient_edge  # held, so that not every call makes a new one  # noqa: F841
    if isinstance(x.array, np.generic):
        x.array = np.asarray(x.array)  # a NumPy scalar cannot be changed in place
    elements = x.array.reshape(-1) if x.array.flags.c_contiguous else x.array.flat
    for position, value in enumerate(x.array.ravel().tolist()):
        try:
            elements[position] = value + eps
            above.append(_values(func, arguments))
            elements[position] = value - eps
            below.append(_values(func, arguments))
            if [y.shape for y in below[-1]] != [y.shape for y in above[-1]]:
                raise AssertionError(changed_shapes(below[-1], above[-1], np.unravel_index(position, x.shape), eps))
        finally:
            elements[position] = value
    columns = zip(zip(*above, strict=True), zip(*below, strict=True), strict=True)
    return [central_difference(rows(up), rows(down), eps) for up, down in columns]


@np.errstate(all="ignore")  # of infinities it is nan, which `compare` reports
def central_difference(above: np.ndarray, below: np.ndarray, eps: float) -> np.ndarray:
    """The derivative, from the values at x + eps and x - eps."""
    return (above - below) / (2 * eps)


def changed_shapes(below: Sequence[np.ndarray], above: Sequence[np.ndarray], place: Any, eps: float) -> str:
    """The error text for outputs whose shapes, or whose number, change when an input is changed."""
    moved = f"when inputs are perturbed on index {tuple(map(int, place))} by {eps}, but got: "
    if len(below) != len(above):
        return f"Expected `func` to return as many outputs {moved}{len(below)} and {len(above)}."
    pairs = [(a.shape, b.shape) for a, b in zip(below, above, strict=True) if a.shape != b.shape]
    a, b = pairs[0]
    return f"Expected `func` to return outputs with the same shape {moved}shapes {size_of(a)!r} and {size_of(b)!r}."


def _values(func: Callable, arguments: Sequence[Any]) -> list[np.ndarray]:
    """The outputs, copied: one may show the memory of an input."""
    return [np.array(on_host(y.array), float) for y in outputs_of(func, arguments)]


def rows(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """A matrix with the elements of each array in a row."""
    return np.array(arrays).reshape(len(arrays), arrays[0].size)


def batched_numerical_jacobian(func: Callable, arguments: Sequence[Any], which: int, eps: float) -> list[np.ndarray]:
    """Like `numerical_jacobian`, but from one call, with all changed inputs along an extra leading axis.

    Raises GradcheckError if the function drops that axis.
    """
    x = on_host(arguments[which].array)
    steps = eps * np.eye(x.size).reshape(x.size, *x.shape)
    moved = tensor_of(on_device(np.concatenate([x + steps, x - steps]), arguments[which].device), None)
    values = outputs_of(func, [moved if i == which else argument for i, argument in enumerate(arguments)])
    if any(y.shape[:1] != moved.shape[:1] for y in values):
        raise GradcheckError("batched=True needs a function that keeps an extra leading axis of its input")
    rows = [on_host(y.array).astype(float).reshape(2, x.size, -1) for y in values]
    return [central_difference(up, down, eps) for up, down in rows]


def analytical_jacobians(output: Tensor, xs: Sequence[Tensor]) -> list[np.ndarray]:
    """For each of `xs`, the Jacobian by reverse mode, one pass per column, laid out as by `numerical_jacobian`.

    Raises GradcheckError if a gradient does not have the dtype of its input.
    """
    jacobians = [np.zeros((x.numel(), output.numel())) for x in xs]
    for position in range(output.numel()):
        grads = grad(output, xs, tensor_of(unit(output.array, position)), retain_graph=True, allow_unused=True)
        for jacobian, x, g in zip(jacobians, xs, grads, strict=True):
            if g is None:
                continue
            if g.array.dtype != x.array.dtype:
                raise GradcheckError("Backward returned a gradient whose dtype differs from its input's")
            jacobian[:, position] = on_host(g.array).reshape(-1)
    return jacobians


@np.errstate(all="ignore")
def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a - b|, element by element; 0 for two equal infinities, whose difference is nan."""
    return np.where(a == b, 0.0, np.abs(a - b))


@np.errstate(all="ignore")
def compare(
    analytical: np.ndarray,
    numerical: np.ndarray,
    output: int,
    which: int,
    precision: Precision,
    fast: bool,
    how: str = "",
) -> None:
    """Raise unless two Jacobians of the same shape agree, element by element or, if `fast`, in a random direction.

    As in PyTorch, nan agrees with nothing.
    """
    a, n = analytical, numerical
    if fast:
        generator = np.random.default_rng(0)
        left, right = generator.normal(size=a.shape[0]), generator.normal(size=a.shape[1])
        a, n = left @ a @ right, left @ n @ right
    if np.allclose(a, n, rtol=precision.rtol, atol=precision.atol):
        return
    difference = distances(analytical, numerical)
    row, column = np.unravel_index(int(difference.argmax()), difference.shape)  # the first nan, if there is one
    raise GradcheckError(
        f"Jacobian {how}mismatch for output {output} with respect to input {which},\n"
        f"numerical:{tensor_text(numerical)}\n"
        f"analytical:{tensor_text(analytical)}\n"
        f"The largest difference, {difference[row, column]:.3g}, is at element {row} of the input and element {column} "
        f"of the output: numerical {numerical[row, column]:.6g}, analytical {analytical[row, column]:.6g}.\n"
    )


def tensor_text(array: np.ndarray) -> str:
    """A Jacobian, printed as a tensor."""
    return repr(tensor_of(array))


def _check_forward(func: Callable, arguments: Sequence[Any], precision: Precision) -> None:
    """Raise unless forward mode, one pass per element of an input, gives the rows of the Jacobians."""
    from mini_autograd.autograd import forward_ad  # only now: few checks ask for it

    for i, x in differentiable(arguments):
        numerical = numerical_jacobian(func, arguments, i, precision.eps)
        for position in range(x.numel()):
            with forward_ad.dual_level():
                dual = forward_ad.make_dual(arguments[i], tensor_of(unit(x.array, position)))
                given = [dual if k == i else a for k, a in enumerate(arguments)]
                tangents = [(y, forward_ad.unpack_dual(y).tangent) for y in outputs_of(func, given)]
                for number, (y, t) in enumerate(tangents):
                    row = np.zeros((1, y.numel())) if t is None else on_host(t.detach().array).reshape(1, -1)
                    expected = numerical[number][position : position + 1]
                    compare(row, expected, number, i, precision, False, "computed with forward mode ")


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    fast_mode: bool = False,
    **ignored: Any,
) -> bool:
    """Like `gradcheck`, but for the gradients of `func`: whether their own gradients agree with central differences.

    `grad_outputs` are the gradients to start from, with the shapes of the outputs; the default is random.
    """
    arguments = as_tuple(inputs)
    outputs = outputs_of(func, arguments)
    if grad_outputs is None:
        generator = np.random.default_rng(0)
        draws = [np.asarray(generator.normal(size=y.shape)).astype(y.dtype) for y in outputs]
        seeds = tuple(tensor_of(on_device(d, y.device), None) for d, y in zip(draws, outputs, strict=True))
    else:
        seeds = as_tuple(grad_outputs)
    count = len(arguments)

    def first_gradients(*args: Any) -> tuple:
        ys = outputs_of(func, args[:count])
        xs = [x for _, x in differentiable(args[:count])]
        return tuple(g for g in grad(ys, xs, args[count:], create_graph=True, allow_unused=True) if g is not None)

    options: dict[str, Any] = {"eps": eps, "atol": atol, "rtol": rtol, "nondet_tol": nondet_tol, "fast_mode": fast_mode}
    return gradcheck(first_gradients, (*arguments, *seeds), raise_exception=raise_exception, **options)


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
