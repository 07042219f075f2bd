"""Slips that Python itself reports: the usual cause of an error, by its class and its message, as a question; and hints
for a card: a question, an idea, and where to look.

One table for all checks. The first row that fits is said; rows about one engine's habits come before rows about Python.
Standard library only: students wait for this too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NO_RETURN = "is a `return` missing?"
ANY = ""


@dataclass(frozen=True)
class Slip:
    """The classes of an error, separated by spaces (ANY), a pattern for its message, the question, and hints. A row may
    have only one of these two.
    """

    kinds: str
    pattern: str
    question: str = ""
    hints: tuple[str, ...] = ()

    def fits(self, kind: str, message: str) -> bool:
        return (not self.kinds or kind in self.kinds.split()) and re.search(self.pattern, message) is not None


ANYTHING = (
    "Which line raised the error, and which values did it get there?",
    "The error shows where Python had to stop. The mistake may be in an earlier line, which made these values.",
    "Look at the line that raised the error, and at where the values in it come from.",
)
IN_A_FUNCTION = (
    ANYTHING[0],
    "Without that function nothing raises an error. So something that it does, or leaves out, causes the error.",
    ANYTHING[2],
)
FREED = (
    "In which order does your `backward` call the rule of a node and release that node? Which nodes does it release?",
    "The values that a node has saved are needed until its own rule has run, and not after that.",
    "Look in `backward` at the line that releases a node, and at the line that calls its rule.",
)
NOT_RECORDED = (
    "Print `requires_grad` of the inputs and of the result. Is recording on at that moment?",
    "A result is recorded if recording is on and some input requires grad. Code that switches recording off has "
    "to restore the state from before, even after an error.",
    "Look at the code that makes results, and at every line that switches recording on or off.",
)
ENDLESS = (
    "Which function is called again and again, and by which line?",
    "A function may call itself only if some case ends without a further call. Reading `self.x` inside the function "
    "that computes `self.x` is a call, too.",
    "Look at the line that the error repeats.",
)
SHAPES = (
    "Which line raised the error, and which shapes do the arrays in that line have?",
    "In `forward` the arrays have the shapes of the inputs. In a rule, the gradient that arrives has the shape of the "
    "output.",
    "Print the shapes before that line, and compare them with those that you expect.",
)
NOT_A_TUPLE = (
    "Which object does that line go through, entry by entry, and what is it?",
    "`(a,)` is a tuple with one entry; without the comma, `(a)` is `a` itself. Python's own `sum` and `max` go through "
    "what they are given, too; a tensor has its own.",
    "Look at that line first. If it is right, look at the inputs that you give to a result and at what a rule returns.",
)
ONE_FOR_EACH_ENTRY = (
    "What does the condition in that line give for an array with several entries?",
    "An `if` needs one True or False. An array, or a comparison with one, gives one for each entry.",
    "Look at the condition. NumPy has operations that choose entry by entry; `is None` asks whether there is an array.",
)
NOT_AN_ARRAY = (
    "Which value in that line is a tensor where an array is needed?",
    "A rule calculates with arrays, which are in the `data` of a tensor.",
    "Look at the rule: does it use `a` where it needs `a.data`?",
)
NO_SUCH_NAME = (
    "Which name does that line use, and which line gives it a value?",
    "A name exists once the line that gives it a value has run, in the same function or in a cell.",
    "Compare the spelling of the name in both places.",
)
TENSOR = r"^([A-Z]\w*(\(|<| object)|<.*[A-Z]\w* object at)"
"""The beginning of the printed form of a tensor or a node."""
SLIPS = (
    Slip(
        "RecursionError",
        ANY,
        "does a function call itself without end, or once for each node of a long graph?",
        ENDLESS,
    ),
    Slip(ANY, "backward through the graph a second time", "was a node released before its own rule ran?", FREED),
    Slip(
        ANY,
        "does not require grad and does not have a grad_fn",
        "was recording switched off and never switched back on, or is a result not recorded?",
        NOT_RECORDED,
    ),
    Slip(ANY, "non-broadcastable output operand", "was a broadcast summed back?"),
    Slip("TypeError", "'NoneType' object is not callable", "is None called like a function? A leaf has no rule"),
    Slip(
        "TypeError",
        "'NoneType' object cannot be interpreted|indices must be integers.* NoneType",
        "is None used as a number, such as an axis that was not given?",
    ),
    Slip("TypeError AttributeError", "NoneType", NO_RETURN),
    Slip(
        "TypeError",
        r"'(tuple|list|float)' object is not callable",
        "is a pair of parentheses too many, was a rule called where the rule itself should be passed, or are the "
        "arguments of a call in another order than in the definition?",
    ),
    Slip(
        "TypeError AttributeError",
        "'str' object is not callable|'str' object has no attribute '(data|grad|inputs|rule|backward)'",
        "is a text where a function or a tensor is due? Compare the order of the arguments, where the result is made, "
        "with the definition",
    ),
    Slip(
        "TypeError ValueError",
        r"float\(\) argument must be .* not '(function|method|tuple)'|could not convert string to float",
        "is a function, a tuple or a text where a number is due? Compare the order of the arguments, where the result "
        "is made, with the definition",
    ),
    Slip(
        "TypeError",
        "'int' object is not callable",
        "was the name of a class or of a function given to a number?",
    ),
    Slip(
        "KeyError",
        rf"{TENSOR}.*(index|getitem)",
        "are the inputs of a result `a`, which a loop takes apart, in place of the tuple `(a,)`? Or had nothing "
        "arrived at this node yet?",
    ),
    Slip(
        "KeyError",
        TENSOR,
        "nothing had arrived at this node: was it visited too early, was a share added to the wrong key or not at all, "
        "was a result made without its rule, or is this the first gradient that arrives?",
    ),
    Slip(
        "TypeError",
        r"unsupported operand type.*'[A-Z]\w*' and '([A-Z]\w*|int|float)'|bad operand type for unary",
        "does a rule need `.data` here, or did you not run the cell that defines this operator after the cell that "
        "defines the class?",
    ),
    Slip(
        ANY,
        "'AccumulateGrad' object has no attribute 'backward'",
        "an AccumulateGrad is the end of a path: it has no rule to call",
    ),
    Slip(
        "AttributeError",
        r"'[A-Z]\w*' object has no attribute",
        "is it misspelled, does a rule need `.data` here, or did you not run the cell that defines it after the cell "
        "that defines the class?",
    ),
    Slip("TypeError", r"'(?!NoneType)[A-Z]\w*' object is not iterable", hints=NOT_A_TUPLE),
    Slip(
        "AttributeError",
        r"'(?!NoneType)[A-Z]\w*' object has no attribute '(copy|ndim|astype|swapaxes)'",
        hints=NOT_AN_ARRAY,
    ),
    # Python, whatever the engine
    Slip(ANY, "truth value of an array", hints=ONE_FOR_EACH_ENTRY),
    Slip("ValueError IndexError AxisError", "shape|size|dimension|broadcast|axis|axes", hints=SHAPES),
    Slip(
        "UnboundLocalError",
        ANY,
        "does every way through the function give this name a value before it is used? A name that is given a value "
        "anywhere in a function is the function's own",
        NO_SUCH_NAME,
    ),
    Slip("NameError", ANY, "is it misspelled, or did the cell that defines it not run?", NO_SUCH_NAME),
    Slip(
        "AttributeError",
        "'(list|tuple|dict|set)' object has no attribute",
        "is it a list or a tuple here, or an entry of it?",
    ),
    Slip(
        "TypeError",
        r"missing \d+ required positional argument",
        "was an argument forgotten in the call, or is there one too many in the definition?",
    ),
    Slip(
        "TypeError",
        r"takes \d+ positional arguments? but \d+ (was|were) given",
        "was an argument forgotten in the definition, such as `self`, or is there one too many in the call?",
    ),
    Slip("TypeError", "got an unexpected keyword argument", "is the name of the argument the one in the definition?"),
    Slip(
        "TypeError",
        r"concatenate (list \(not \"tuple|tuple \(not \"list)|operand type.*('list' and 'tuple'|'tuple' and 'list')",
        "is a list where a tuple is needed, or the other way around?",
    ),
    Slip("TypeError", "can't multiply sequence|operand type.*'(list|tuple)'", "is a list or a tuple used as an array?"),
    Slip(
        "TypeError",
        "cannot unpack non-iterable|'(int|float)' object is not (iterable|subscriptable)",
        "is it one number where a tuple or an array is needed? `(a,)` is a tuple with one entry",
    ),
    Slip(
        "TypeError",
        "'(function|method|builtin_function_or_method|type)' object is not|operand type.*'(function|method)'",
        "are the parentheses of a call missing, or are its arguments in another order than in the definition?",
    ),
    Slip("TypeError", "unhashable type", "is a list or an array used as a key? A tuple can be one"),
    Slip("ValueError", "values to unpack", "how many values are there on the right, and how many names on the left?"),
    Slip("IndexError", "pop from|index out of range", "is it empty here, or does a loop go one step too far?"),
    Slip("KeyError", ANY, "was anything put into the dictionary under this key?"),
)


def slip(kind: str, message: str) -> str:
    """The usual cause of an error of this class with this message, as a question; empty if none is known."""
    return next((row.question for row in SLIPS if row.question and row.fits(kind, message)), "")


def hints_on(error: str) -> tuple[str, ...]:
    """The hints for an error, `Class: message`, that shows its cause; none for all others."""
    kind = error.partition(":")[0].partition(",")[0]
    message = error.removeprefix(f"{kind}: ")
    return next((row.hints for row in SLIPS if row.hints and row.fits(kind, message)), ())
