"""Local rules: the derivative of one operation is wrong, whatever arrives at it.

A wrong rule is `wrong(right, call, grad)`, where `right(grad)` is the right result, so a bug reads as a change to it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.bugs.bug import Bug
from autograder.bugs.families.shares import local, slope
from autograder.runs.reference_patch import Call, Rule


def exchange(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return second, first


def exchange_base_and_exponent(right: Rule, call: Call, grad: Any) -> Any:
    (x,) = call.inputs
    return grad * (x * call.options["exponent"] ** (x - 1.0))


operands_swapped = Bug(
    explanation="the two operands are swapped: each got the derivative that belongs to the other",
    hint="Write d(output)/d(first input) on paper for two different numbers. Which of the two inputs appears in it?",
    misconception="The derivative with respect to an input contains that input itself.",
    rules={
        "Multiply": exchange,
        "Subtract": exchange,
        "Divide": exchange,
        "Power": exchange_base_and_exponent,
    },
    # not the rule's fault if the result keeps its inputs in another order than the rule assumes
    said_in="in the rule{s} of {rules}, or in the order of the inputs,",
    look_at="{where}, and at the order in which the result keeps its inputs",
)


def flip_second(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return first, -second


def flip(right: Rule, call: Call, grad: Any) -> Any:
    return -right(grad)


sign_lost = Bug(
    explanation="a minus sign is missing: the gradient has the right size and the wrong sign",
    hint="If this input grows a little, does the output grow or shrink? The sign of its derivative must say so too.",
    misconception="Subtracting or dividing passes the gradient on like adding or multiplying.",
    rules={"Subtract": flip_second, "Negate": flip, "Divide": flip_second, "Cos": flip},
)


def keep_exponent(right: Rule, call: Call, grad: Any) -> Any:
    (x,) = call.inputs
    return right(grad) * x


exponent_not_lowered = Bug(
    explanation="the exponent was brought to the front but not lowered by one: n * x**n instead of n * x**(n - 1)",
    hint="Try n = 1: x**1 is x, whose derivative is 1. What does your rule give there?",
    misconception="The power rule only multiplies by the exponent.",
    rules={"Power": keep_exponent},
)


input_used_for_output = Bug(
    explanation="the rule uses the input where the formula needs the output",
    hint="The formula contains the result of the operation. Which number does your rule put there?",
    misconception="A derivative is always written in terms of the input.",
    rules={
        "Tanh": slope(lambda x, y: 1.0 - x * x),
        "Exp": slope(lambda x, y: x),
        "Sigmoid": slope(lambda x, y: x * (1.0 - x)),
        "Sqrt": slope(lambda x, y: 0.5 / x),
    },
    examples={
        "Tanh": "1 - tanh(x)**2, not 1 - x**2",
        "Exp": "exp(x), not x",
        "Sigmoid": "s * (1 - s) with s = sigmoid(x), not x * (1 - x)",
        "Sqrt": "1 / (2 * sqrt(x)), not 1 / (2 * x)",
    },
)


plus_for_minus = Bug(
    explanation="the formula has a plus where a minus belongs",
    hint="Far from 0 the curve is almost flat. Does your formula give almost 0 there?",
    misconception="The sign inside a formula does not matter much near zero.",
    rules={"Tanh": slope(lambda x, y: 1.0 + y * y), "Sigmoid": slope(lambda x, y: y * (1.0 + y))},
    examples={"Tanh": "1 - tanh(x)**2, not 1 + tanh(x)**2", "Sigmoid": "s * (1 - s), not s * (1 + s)"},
)


def without_exponent_in_front(right: Rule, call: Call, grad: Any) -> Any:
    (x,) = call.inputs
    return grad * x ** (call.options["exponent"] - 1.0)


exponent_not_in_front = Bug(
    explanation="the exponent was lowered but not brought to the front: x**(n - 1) instead of n * x**(n - 1)",
    hint="Compare the slopes of x**2 and x**4 at x = 1. Which number tells them apart?",
    misconception="The power rule only lowers the exponent.",
    rules={"Power": without_exponent_in_front},
)


def lowered_exponent_in_front(right: Rule, call: Call, grad: Any) -> Any:
    (x,) = call.inputs
    n = call.options["exponent"]
    return grad * (n - 1.0) * x ** (n - 1.0)


exponent_lowered_first = Bug(
    explanation="the exponent was lowered before it was brought to the front: (n - 1) * x**(n - 1)",
    hint="Try n = 1: x**1 is x, whose derivative is 1. What does your rule give there?",
    misconception="First lower the exponent, then multiply by it.",
    rules={"Power": lowered_exponent_in_front},
)

rule_of_the_square = Bug(
    explanation="every power gets the derivative of a square, 2 * x, whatever the exponent is",
    hint="What is the derivative of x**3 at x = 1, and what does your rule give?",
    misconception="The derivative of a power is 2 * x.",
    rules={"Power": slope(lambda x, y: 2.0 * x)},
)


def power_of_output(right: Rule, call: Call, grad: Any) -> Any:
    n = call.options["exponent"]
    return grad * n * call.output ** (n - 1.0)


output_used_for_input = Bug(
    explanation="the rule uses the output where the formula needs the input",
    hint="The formula contains the number that went in. Which number does your rule put there?",
    misconception="A derivative is always written in terms of the output.",
    rules={"Log": slope(lambda x, y: 1.0 / y), "Power": power_of_output, "Sin": slope(lambda x, y: np.cos(y))},
    examples={
        "Log": "1 / x, not 1 / log(x)",
        "Power": "n * x**(n - 1), not n * (x**n)**(n - 1)",
        "Sin": "cos(x), not cos(sin(x))",
    },
)


def unchanged(right: Rule, call: Call, grad: Any) -> Any:
    return grad


derivative_forgotten = Bug(
    explanation="the rule passes the incoming gradient on unchanged: its own derivative is missing",
    hint="What does the operation itself do to a small change of its input? That factor belongs in the rule.",
    misconception="A function of one input passes its gradient straight through.",
    rules=dict.fromkeys(("Exp", "Log", "Tanh", "Power", "Sigmoid", "Sqrt", "Sin", "Cos", "Abs"), unchanged),
    examples={"Abs": "sign(x); the sign of the output is 1"},
)


def as_for_a_sum(right: Rule, call: Call, grad: Any) -> Any:
    return grad, grad


def as_for_a_difference(right: Rule, call: Call, grad: Any) -> Any:
    return grad, -grad


product_like_sum = Bug(
    explanation="a product or quotient is treated like a sum or difference: both inputs get the gradient unchanged",
    hint="Double b in a * b. By how much does the slope with respect to a change?",
    misconception="Both inputs of any operation get the incoming gradient.",
    rules={"Multiply": as_for_a_sum, "Divide": as_for_a_difference},
)


def undivided_square(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return first, second * call.inputs[1]


square_forgotten = Bug(
    explanation="a square is missing from the formula",
    hint="Write the formula on paper, with every exponent, and compare it with your line term by term.",
    misconception="A formula that is right for one number is right for all.",
    rules={"Divide": undivided_square, "Tanh": slope(lambda x, y: 1.0 - y)},
    examples={"Divide": "a / b**2, not a / b", "Tanh": "1 - tanh(x)**2, not 1 - tanh(x)"},
)

square_misplaced = Bug(
    explanation="the whole expression in parentheses is squared",
    hint="What is squared in the formula: the output alone, or the difference?",
    misconception="It does not matter where in a formula the square goes.",
    rules={"Tanh": slope(lambda x, y: (1.0 - y) ** 2), "Sigmoid": slope(lambda x, y: (1.0 - y) ** 2)},
    examples={"Tanh": "1 - tanh(x)**2, not (1 - tanh(x))**2"},
)


def numerator_lost(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return first, second / call.inputs[0]


def denominator_lost(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return first, second * call.inputs[1] ** 2


factor_lost = Bug(
    explanation="one factor is missing from the formula",
    hint="Count the factors of the formula on paper, and those in your line.",
    misconception="The part of a derivative that is easy to remember is the whole derivative.",
    rules={
        "Sigmoid": slope(lambda x, y: y),
        "Sqrt": slope(lambda x, y: 1.0 / y),
        "Divide": numerator_lost,
    },
    forms=({"Sigmoid": slope(lambda x, y: 1.0 - y), "Divide": denominator_lost},),
    examples={"Sigmoid": "s * (1 - s)", "Sqrt": "1 / (2 * sqrt(x))", "Divide": "-a / b**2"},
)


def applied_twice(right: Rule, call: Call, grad: Any) -> Any:
    derivatives = local(right, grad)
    if isinstance(derivatives, tuple):
        return tuple(None if d is None else grad * d * d for d in derivatives)
    return grad * derivatives * derivatives


factor_squared = Bug(
    explanation="a factor appears twice: the gradient is multiplied two times by the operation's own derivative",
    hint="Use inputs for which the derivative is 3. Is the gradient 3 times what came in, or 9 times?",
    misconception="Each of the two places that know the derivative has to multiply by it.",
    rules=dict.fromkeys(("Multiply", "Exp", "Log", "Tanh", "Sigmoid", "Sqrt", "Power", "Sin", "Cos"), applied_twice),
)


def multiplied_by_divisor(right: Rule, call: Call, grad: Any) -> Any:
    _, second = right(grad)
    return grad * call.inputs[1], second


multiplied_not_divided = Bug(
    explanation="the rule multiplies where it must divide (1 / x for the logarithm, 1 / b for the numerator)",
    hint="Where is the curve steep, at small or at large inputs? Does your rule agree?",
    misconception="The derivative of log(x) is x.",
    rules={"Log": slope(lambda x, y: x), "Divide": multiplied_by_divisor, "Sqrt": slope(lambda x, y: 0.5 * y)},
)

power_rule_for_exp = Bug(
    explanation="the power rule was used for exp: x * e**(x - 1), as if x were a fixed exponent",
    hint="In e**x the base is fixed and the exponent moves. Which rule is for a moving base?",
    misconception="exp(x) is a power, so the power rule differentiates it.",
    rules={"Exp": slope(lambda x, y: x * y / math.e)},
)

log_of_base_ten = Bug(
    explanation="the derivative is that of the logarithm to base 10: 1 / (x * log(10)) instead of 1 / x",
    hint="Which base does NumPy's log have, and what does log(10) have to do with it?",
    misconception="All logarithms have the same derivative.",
    rules={"Log": slope(lambda x, y: 1.0 / (x * math.log(10.0)))},
)

relu_mask_lost = Bug(
    explanation="every gradient comes through unchanged, even where the input was negative",
    hint="How much does the output change when a negative input changes a little?",
    misconception="Relu only acts in the forward pass.",
    rules={"Relu": unchanged, "LeakyRelu": unchanged},
)

relu_mask_of_gradient = Bug(
    explanation="the rule keeps the positive gradients, not the gradients of positive inputs",
    hint="Give a positive input a negative incoming gradient. What should come out, and what does?",
    misconception="The backward pass applies the same function to the gradient.",
    rules={"Relu": lambda right, call, grad: grad * (grad > 0)},
)

relu_mask_inverted = Bug(
    explanation="the condition of relu is inverted: the gradient goes to the negative inputs",
    hint="Which inputs does the output follow, the positive or the negative ones?",
    misconception="The mask marks the elements to be zeroed, so the rule multiplies by it.",
    rules={"Relu": lambda right, call, grad: grad * (call.inputs[0] < 0)},
)

relu_gives_value = Bug(
    explanation="the rule multiplies the gradient by its output instead of by the slope 1",
    hint="How steep is relu at x = 2, and at x = 5?",
    misconception="The derivative of relu is relu.",
    rules={"Relu": slope(lambda x, y: y)},
)


def first_alone(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return first, None if second is None else second * 0.0


def second_alone(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return None if first is None else first * 0.0, second


TWO_INPUTS = ("Add", "Subtract", "Multiply", "Divide", "MatMul")
operand_forgotten = Bug(
    explanation="only one of the two inputs gets a gradient; the other one is treated as a constant",
    hint="Count the inputs of the operation, and the gradients that its rule passes on.",
    misconception="The second operand is a parameter, not an input.",
    rules=dict.fromkeys(TWO_INPUTS, first_alone),
    forms=(dict.fromkeys(TWO_INPUTS, second_alone),),
    drops_gradients=True,
)


def steeper_when_negative(right: Rule, call: Call, grad: Any) -> Any:
    (x,) = call.inputs
    return right(grad) * np.where(x > 0, 1.0, 10.0)


constant_mistyped = Bug(
    explanation="a constant in the formula is mistyped (an exponent of 3 instead of 2, a slope of 0.1 instead of 0.01)",
    hint="Read every number of the formula aloud, and compare it with your line, digit by digit.",
    misconception="A small slip in a constant would show at once.",
    rules={
        "Tanh": slope(lambda x, y: 1.0 - y**3),
        "LeakyRelu": steeper_when_negative,
        "Sqrt": slope(lambda x, y: 2.0 / y),
    },
)
