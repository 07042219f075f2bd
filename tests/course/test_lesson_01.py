"""Plants classic mistakes in the solutions of lesson 01: each costs points on its own test cell, and on no other."""

from __future__ import annotations

import pytest

from tests.course.planting import LessonTests, Planted

LESSON = "01_derivatives"
NUMERICAL, PRODUCT = ("test_numerical_gradient",), ("test_product_and_sum",)
TANH, RELU, ERROR = ("test_tanh_neuron",), ("test_relu_chain",), ("test_relative_error",)

PLANTED = [
    Planted("one-sided difference", "", "x[position] = old - h\n", "x[position] = old\n", NUMERICAL),
    Planted("divided by h alone", "", "(above - below) / (2 * h)", "(above - below) / h", NUMERICAL),
    Planted("the step is a constant", "", "(above - below) / (2 * h)", "(above - below) / 2e-5", NUMERICAL),
    Planted("the entry is not put back", "", "        x[position] = old\n", "", NUMERICAL),
    Planted("whole numbers stay whole", "", "x = np.array(x, dtype=np.float64)", "x = np.array(x)", NUMERICAL),
    Planted(
        "slopes become whole with whole numbers",
        "",
        "    x = np.array(x, dtype=np.float64)\n    gradient = np.zeros(x.shape)\n",
        "    gradient = np.zeros_like(x)\n    x = np.array(x, dtype=np.float64)\n",
        NUMERICAL,
    ),
    Planted("a step back to x alone", "", "x[position] = old - h\n", "x[position] = old + h - h\n", NUMERICAL),
    Planted("return inside the loop", "", "    return gradient\n", "        return gradient\n", NUMERICAL),
    Planted("vectors only", "", "np.ndindex(x.shape)", "range(len(x))", NUMERICAL),
    Planted(
        "f gets a flat array",
        "",
        "    x = np.array(x, dtype=np.float64)\n    gradient = np.zeros(x.shape)\n",
        "    whole, x, g = np.shape(x), np.array(x, dtype=np.float64).ravel(), f\n"
        "    f = lambda flat: g(flat)\n    gradient = np.zeros(x.shape)\n",
        NUMERICAL,
    ),
    Planted("all entries moved at once", "", "x[position] = old + h", "x[...] = x + h", NUMERICAL),
    Planted("the second use is forgotten", "", "return d_s * y + d_s, d_s * x", "return d_s * y, d_s * x", PRODUCT),
    Planted(
        "factors swapped", "operands_swapped", "return d_s * y + d_s, d_s * x", "return d_s * x + d_s, d_s * y", PRODUCT
    ),
    Planted("the square is not differentiated", "", "d_s = 2 * s\n", "d_s = s\n", PRODUCT),
    Planted("uses multiplied", "", "return d_s * y + d_s, d_s * x", "return d_s * y * d_s, d_s * x", PRODUCT),
    Planted("another input gets its use too", "", "d_s, d_s * x", "d_s, d_s * x + d_s", PRODUCT),
    Planted("a factor of the product forgotten", "", "d_s, d_s * x", "d_s, d_s", PRODUCT),
    Planted("the incoming gradient of x forgotten", "", "d_s * y + d_s, d_s * x", "y + 1, d_s * x", PRODUCT),
    Planted(
        "b does not go through tanh",
        "",
        "(1 - a**2)\n    return d_z * x, d_z * w, d_z,",
        "(1 - a**2)\n    return d_z * x, d_z * w, d_error,",
        TANH,
    ),
    Planted("one minus the output", "", "(1 - a**2)", "(1 - a)", TANH),
    Planted("the square of the error left out", "", "d_error = 2 * (a - target)", "d_error = 1.0", TANH),
    Planted("half of the error", "", "d_error = 2 * (a - target)", "d_error = a - target", TANH),
    Planted("tanh twice", "", "(1 - a**2)", "(1 - math.tanh(a)**2)", TANH),
    Planted(
        "the target goes through tanh",
        "",
        "d_z = d_error * (1 - a**2)",
        "d_z = d_error = d_error * (1 - a**2)",
        TANH,
    ),
    Planted("slope of tanh from its input", "input_used_for_output", "(1 - a**2)", "(1 - (w * x + b) ** 2)", TANH),
    Planted("slope of tanh left out", "", "d_z = d_error * (1 - a**2)", "d_z = d_error", TANH),
    Planted(
        "sign of the target",
        "",
        "d_z = d_error * (1 - a**2)\n    return d_z * x, d_z * w, d_z, -d_error",
        "d_z = d_error * (1 - a**2)\n    return d_z * x, d_z * w, d_z, d_error",
        TANH,
    ),
    Planted("relu lets everything through", "", "d_z = d_error if z > 0 else 0.0", "d_z = d_error", RELU),
    Planted("the target goes through relu", "", "d_z = d_error if", "d_z = d_error = d_error if", RELU),
    Planted("relu by the sign of x", "", "d_error if z > 0 else", "d_error if x > 0 else", RELU),
    Planted("relu the wrong way around", "", "d_error if z > 0 else", "d_error if z < 0 else", RELU),
    Planted("relu with the slope of tanh", "", "d_error if z > 0", "d_error * (1 - z**2) if z > 0", RELU),
    Planted("relu begins at 1", "", "d_error if z > 0 else", "d_error if z > 1 else", RELU),
    Planted("relu has slope 1 at the corner", "", "d_error if z > 0 else", "d_error if z >= 0 else", RELU),
    Planted(
        "relu by the sign of the gradient",
        "relu_mask_of_gradient",
        "d_error if z > 0 else 0.0",
        "max(d_error, 0.0)",
        RELU,
    ),
    Planted(
        "the prediction is not cut off", "", "d_error = 2 * (max(z, 0.0) - target)", "d_error = 2 * (z - target)", RELU
    ),
    Planted("the length of the difference", "", "np.abs(a - b).max()", "np.linalg.norm(a - b)", ERROR),
    Planted("an input is changed", "", "np.abs(a - b).max()", "np.abs(np.subtract(a, b, out=b)).max()", ERROR),
    Planted(
        "an array in place of a number",
        "",
        "float(difference / size) if size",
        "np.array(difference / size) if size",
        ERROR,
    ),
    Planted("vectors alone have a distance", "", "np.abs(a - b).max()", "max(abs(a - b))", ERROR),
    Planted("no absolute value", "", "np.abs(a - b).max()", "(a - b).max()", ERROR),
    Planted(
        "entry by entry",
        "",
        "size = max(np.abs(a).max(), np.abs(b).max())",
        "size = np.maximum(np.abs(a), np.abs(b))[np.abs(a - b).argmax()]",
        ERROR,
    ),
    Planted("relative to the first", "", "max(np.abs(a).max(), np.abs(b).max())", "np.abs(a).max()", ERROR),
    Planted(
        "a small number in place of the zero case",
        "",
        "return float(difference / size) if size > 0 else 0.0",
        "return float(difference / (size + 1e-12))",
        ERROR,
    ),
    Planted(
        "a smallest size",
        "",
        "size = max(np.abs(a).max(), np.abs(b).max())",
        "size = max(np.abs(a).max(), np.abs(b).max(), 1e-12)",
        ERROR,
    ),
    Planted(
        "zero by zero",
        "",
        "return float(difference / size) if size > 0 else 0.0",
        "return float(difference / size)",
        ERROR,
    ),
]


@pytest.mark.filterwarnings("ignore:invalid value encountered")
class TestLesson(LessonTests):
    lesson = LESSON
    planted = PLANTED
    test_cells = 5
    visible = True
    examples = 5
