"""Operations that act on every element by itself: arithmetic, powers, and what students write first.

The one idea to know: a rule is a derivative for single numbers; broadcasting never appears in it, because the backward
pass sums gradients back to the shape of each input. Inputs may have any shapes that broadcast; the result has their
common shape, and the dtype that PyTorch promotes theirs to. More such operations are in mathematical, rounding and
comparison.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph import function
from mini_autograd.graph.function import FREED, Binary, Function, Unary, Value, as_array, wrap
from mini_autograd.graph.saved_values import kept
from mini_autograd.graph.versions import note_needed
from mini_autograd.numerics import arrays
from mini_autograd.numerics.arrays import floating, is_floating, promoted, promoted_to_floating
from mini_autograd.operations.pointwise.outputs import into

__all__ = [
    "add", "clone", "divide", "exp", "lerp", "log", "mul", "multiply", "neg", "negative", "pow", "relu", "sub",
    "subtract", "true_divide",
]  # fmt: skip
IN_PLACE = [name for name in __all__ if name != "clone"]

CLIPPING_PAYS = 10_000
"""The number of elements above which NumPy clips at 0 and infinity faster than it takes the maximum with 0."""

quiet = np.errstate(all="ignore")  # PyTorch gives inf and nan without a warning


def elementwise_jvp(ctx: Any, *tangents: Value) -> Value:
    """The forward-mode rule of these operations: their backward rule, as a diagonal matrix is its own transpose."""
    total = None
    for number, tangent in enumerate(tangents):
        if tangent is not None:
            parts = ctx.backward(ctx, tangent)
            part = parts[number] if isinstance(parts, tuple) else parts
            total = part if total is None else total + part
    return total


class Elementwise(Unary):
    """Base of the functions of one number, with options or without."""

    jvp = staticmethod(elementwise_jvp)


class OfFloats(Elementwise):
    """A function whose result is floating, even for integers."""

    prepare = staticmethod(floating)


class Arithmetic(Binary):
    """Base of the operations on two numbers: a common dtype, and shapes that broadcast."""

    prepare = staticmethod(promoted)
    jvp = staticmethod(elementwise_jvp)

    @staticmethod
    def complain(*operands: Any, **options: Any) -> None:
        """Raise PyTorch's error for shapes that do not broadcast."""
        check_broadcast(*[np.shape(operand) for operand in operands])


def check_broadcast(a: tuple[int, ...] = (), b: tuple[int, ...] = ()) -> None:
    """Raise PyTorch's error unless the two shapes broadcast."""
    ndim = max(len(a), len(b))
    for axis in reversed(range(ndim)):
        i, j = axis - ndim + len(a), axis - ndim + len(b)
        if i >= 0 and j >= 0 and a[i] != b[j] and 1 not in (a[i], b[j]):
            raise RuntimeError(
                f"The size of tensor a ({a[i]}) must match the size of tensor b ({b[j]}) at non-singleton dimension "
                f"{axis}"
            )


class Add(Arithmetic):
    """Elementwise sum. d(a + b) = da + db."""

    sign = "+"

    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


class Subtract(Arithmetic):
    """Elementwise difference. d(a - b) = da - db."""

    torch_name = "SubBackward0"
    sign = "-"

    @staticmethod
    def prepare(a: Any, b: Any) -> tuple[Any, Any]:
        if is_bool(a) or is_bool(b):
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. "
                "Use the `^` or `logical_xor()` operator instead."
                if is_bool(a) and is_bool(b)
                else "Subtraction, the `-` operator, with a bool tensor is not supported. "
                "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
            )
        return promoted(a, b)

    @staticmethod
    def forward(ctx, a, b):
        return a - b

    @staticmethod
    def backward(ctx, grad):
        return grad, -grad


class Multiply(Arithmetic):
    """Elementwise product. d(ab) = b da + a db."""

    torch_name = "MulBackward0"
    sign = "*"
    needed_by = {0: (1,), 1: (0,)}  # noqa: RUF012

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


class Divide(Arithmetic):
    """Elementwise quotient, in floating point. d(a/b) = da / b - a db / b^2."""

    torch_name = "DivBackward0"
    sign = "/"
    needed_by = {0: (1,)}  # noqa: RUF012
    prepare = staticmethod(promoted_to_floating)

    @staticmethod
    @quiet
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad / b, -grad * (a / b / b)


class Negate(Elementwise):
    """Elementwise negative. d(-x) = -dx."""

    torch_name = "NegBackward0"
    sign = "-a"

    @staticmethod
    def prepare(x: Any) -> tuple[Any]:
        if is_bool(x):
            raise RuntimeError(
                "Negation, the `-` operator, on a bool tensor is not supported. "
                "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
            )
        return (x,)

    @staticmethod
    def forward(ctx, x):
        return -x

    @staticmethod
    def backward(ctx, grad):
        return -grad


class Power(Elementwise):
    """Elementwise power with a number n as exponent. d(x^n) = n x^(n-1) dx."""

    torch_name = "PowBackward0"
    sign = "**"
    __slots__ = ("exponent",)

    @staticmethod
    @quiet
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x)
        ctx.exponent = exponent
        return raised(x, exponent)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        n = ctx.exponent
        if n == 0:
            return no_slope(grad)  # the formula gives 0 * x^(-1), which is nan at 0
        return grad * (n * raised(x, n - 1))


def no_slope(grad: Value) -> Value:
    """The gradient of an input that has no influence: 0, whatever arrives, so not a product, which inf makes nan."""
    return wrap(np.zeros_like(as_array(grad)), grad)


def raised(x: Value, n: float) -> Value:
    """x^n. On large arrays NumPy's own power takes up to 500 times as long as a product, and 6 times as a root."""
    alone = isinstance(x, (np.generic, function.Tensor)) or not is_floating(x.dtype)
    quick = None if alone else QUICK_POWERS.get(n)
    return x**n if quick is None else quick(x)


QUICK_POWERS: dict[float, Any] = {
    1: lambda x: x * 1.0,
    3: lambda x: x * x * x,
    4: lambda x: np.square(x * x),
    -1: lambda x: 1 / x,
    -2: lambda x: 1 / (x * x),
    -0.5: lambda x: 1 / np.sqrt(x),
    1.5: lambda x: x * np.sqrt(x),
}


class PowerOfTensors(Arithmetic):
    """Elementwise power with a tensor as exponent. d(a^b) = b a^(b-1) da + a^b log(a) db."""

    torch_name = "PowBackward1"
    sign = "**"
    input_names = ("self", "exponent")

    @staticmethod
    @quiet
    def forward(ctx, a, b):
        output = arrays.integer_power(a, b) if arrays.are_integers(a, b) else a**b
        ctx.save_for_backward(a, b, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        a, b, output = ctx.saved_tensors
        grad_a = where(b == 0, 0.0, grad * (b * a ** (b - 1.0)))
        grad_b = grad * where((a == 0) & (b >= 0), 0.0, output * log(a))  # 0^b is flat where it is finite
        return grad_a, grad_b


class Exp(OfFloats):
    """Elementwise e^x. d(e^x) = e^x dx."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        output = np.exp(x)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad * output


class Log(OfFloats):
    """Elementwise natural logarithm. d(log x) = dx / x."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.log(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / x


class Relu(Elementwise):
    """Elementwise max(x, 0). The derivative is 1 where x > 0 (or nan) and 0 elsewhere, at 0 too, as in PyTorch."""

    exact = True

    @staticmethod
    def prepare(x: Any) -> tuple[Any]:
        if is_bool(x):
            raise RuntimeError("Boolean inputs not supported for relu")
        return (x,)

    @staticmethod
    def forward(ctx, x):
        clipped = x.size > CLIPPING_PAYS and is_floating(x.dtype)
        output = x.clip(0, np.inf) if clipped else np.maximum(x, 0)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        blocked = output <= 0
        return where(blocked, 0.0, grad) if isinstance(grad, function.Tensor) else arrays.zeroed(grad, blocked)


class Where(Function):
    """The first value where the condition holds, the second elsewhere. Each gets the gradient of its own places."""

    exact = True
    __slots__ = ("condition", "needed")
    prepare = staticmethod(promoted)
    jvp = staticmethod(elementwise_jvp)

    @staticmethod
    def complain(a: Any, b: Any, condition: Any) -> None:
        check_broadcast(np.shape(condition), np.shape(a))
        check_broadcast(np.broadcast_shapes(np.shape(condition), np.shape(a)), np.shape(b))

    @staticmethod
    def forward(ctx, a, b, condition):
        ctx.condition = condition
        return np.where(condition, a, b).astype(arrays.result_type(a, b), copy=False)

    @staticmethod
    def backward(ctx, grad):
        return where(kept(ctx.condition), grad, 0.0), where(ctx.condition, 0.0, grad)

    def release(self) -> None:
        self.condition, self.needed = FREED, ()


class Clone(Elementwise):
    """A copy that stays connected. d(clone x) = dx."""

    exact = True

    @staticmethod
    def forward(ctx, x):
        return x.copy()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Cast(Elementwise):
    """The same numbers in another floating dtype. Gradients are cast to the dtype of their input anyway."""

    torch_name = "ToCopyBackward0"
    exact = True

    @staticmethod
    def forward(ctx, x, dtype):
        return x.astype(dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad


class Move(Function):
    """The same numbers on another device; the gradient comes back to where the input is."""

    torch_name = "ToCopyBackward0"
    exact = True
    __slots__ = ("source", "target")

    @staticmethod
    def forward(ctx, x, device):
        ctx.source, ctx.target = arrays.device_of(x), device
        return arrays.on_device(x, device)

    @staticmethod
    def backward(ctx, grad):
        return move(grad, ctx.source)

    @staticmethod
    def jvp(ctx, tangent):
        return move(tangent, ctx.target)


def move(input: Value, device: Any) -> Value:
    """`input` on the given device; itself if it is already there."""
    here, wanted = arrays.device_of(as_array(input)), arrays.Device(device)
    if here == wanted or (here.type == wanted.type and wanted.index is None):
        return input
    return Move.apply(input, device=wanted)


def is_bool(x: Any) -> bool:
    """Whether this is a Python bool, or an array or Tensor of bools."""
    return getattr(x, "dtype", None) == arrays.bool_ or isinstance(x, bool)


def module_of(value: Value) -> Any:
    """The module, NumPy or CuPy, of a Tensor's array or of an array."""
    return arrays.array_module(getattr(value, "array", value))


def add(input: Value, other: Value, *, alpha: float = 1, out: Any = None) -> Value:
    """`input + alpha * other`."""
    if out is not None:
        return into(out, "add", add, input, other, alpha=alpha)
    return Add.apply(input, arrays.number(other) if alpha == 1 else scaled(arrays.number(other), alpha, input))


def subtract(input: Value, other: Value, *, alpha: float = 1, out: Any = None) -> Value:
    """`input - alpha * other`."""
    if out is not None:
        return into(out, "sub", subtract, input, other, alpha=alpha)
    return Subtract.apply(input, arrays.number(other) if alpha == 1 else scaled(arrays.number(other), alpha, input))


def scaled(other: Value, alpha: float, input: Value) -> Value:
    """`alpha * other`, to be added to `input`. Raises RuntimeError if `alpha` is of a higher kind than their sum."""
    kind = arrays.check_alpha(alpha, as_array(input), as_array(other))
    return multiply(other, bool(alpha) if kind == arrays.bool_ else alpha)


def multiply(input: Value, other: Value, *, out: Any = None) -> Value:
    """`input * other`."""
    return Multiply.apply(input, arrays.number(other)) if out is None else into(out, "mul", multiply, input, other)


def divide(input: Value, other: Value) -> Value:
    """`input / other`; the result is floating even for integers."""
    return Divide.apply(input, arrays.number(other))


def negative(input: Value) -> Value:
    """`-input`."""
    return Negate.apply(input)


def pow(input: Value, exponent: Value) -> Value:
    """`input ** exponent`; each may be a tensor or a number."""
    if isinstance(exponent, arrays.NUMBER) and not isinstance(input, arrays.NUMBER):
        return _power_with_number(input, arrays.number(exponent))
    return PowerOfTensors.apply(input, exponent)


def _power_with_number(x: Value, exponent: Any) -> Value:
    integers = not is_floating(x.dtype)
    if integers and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if integers:
        x = cast(x, arrays.result_type(as_array(x), exponent))
    return Power.apply(x, exponent=exponent)


def exp(input: Value) -> Value:
    """e to the power of each element."""
    return Exp.apply(input)


def log(input: Value) -> Value:
    """Natural logarithm of each element."""
    return Log.apply(input)


def relu(input: Value) -> Value:
    """Each element, or 0 where it is negative."""
    return Relu.apply(input)


def where(condition: Value, input: Value, other: Value) -> Value:
    """`input` where `condition` holds, `other` elsewhere."""
    result = note_needed(Where.apply(input, other, condition=as_array(condition)), condition)
    return wrap(result, condition) if isinstance(result, np.ndarray) else result


def clone(input: Value, *, memory_format: Any = None) -> Value:
    """A copy; gradients flow through it. Memory layouts are not covered: `memory_format` has no effect."""
    return Clone.apply(input)


def cast(input: Value, dtype: np.dtype) -> Value:
    """`input` in another dtype; itself if it already has that dtype. No gradient flows through integers."""
    if input.dtype == dtype:
        return input
    if is_floating(np.dtype(dtype)):
        return Cast.apply(input, dtype=np.dtype(dtype))
    return wrap(as_array(input).astype(dtype), input)


def lerp(input: Value, end: Value, weight: Value) -> Value:
    """Interpolate linearly from `input` to `end`: input + weight (end - input)."""
    return input + multiply(end - input, weight)


mul, sub, true_divide, neg = multiply, subtract, divide, negative
