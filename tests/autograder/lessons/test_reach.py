"""How far a mistake reaches: the functions that it changes, and who calls them."""

from __future__ import annotations

import pytest

from autograder.lessons.mistakes.reach import CallRecord, functions_changed

CELL = '''
class Number:
    """A number."""
    places = 2

    def __add__(self, other):
        def rule(gradient):
            return gradient, gradient
        return Number(), rule

    def __neg__(self):
        return [-each for each in (1, 2)]


def both(a, b=1):
    key = lambda pair: -pair
    return sorted([a, b], key=key)
'''


@pytest.mark.parametrize(
    ("right", "wrong", "functions"),
    [
        ("return gradient, gradient", "return gradient, -gradient", {"Number.__add__.<locals>.rule"}),
        ("return Number(), rule", "return None, rule", {"Number.__add__"}),
        ("        def rule(gradient)", "        def rule(gradients)", {"Number.__add__"}),
        ("-each for", "each for", {"Number.__neg__"}),
        ("    key = lambda pair: -pair\n", "", {"both"}),
        ("return sorted(", "print(a)\n    return sorted(", {"both"}),
        ('"""A number."""', '"""Numbers."""', None),
        ("places = 2", "places = 3", None),
        ("def both(a, b=1)", "def both(a, b=2)", None),
        ("    def __neg__", "    def __pos__(self):\n        return self\n\n    def __neg__", None),
        ("\n\ndef both", "\n\n\n\ndef both", set()),
    ],
)
def test_which_functions_a_change_is_in(right: str, wrong: str, functions: set[str] | None) -> None:
    assert CELL.count(right) == 1
    assert functions_changed(CELL, CELL.replace(right, wrong)) == functions


def test_a_function_is_called_by_itself_or_by_what_it_defined() -> None:
    calls, code = CallRecord(), compile(CELL, "<cell>", "exec")
    calls.follow(code, "cell")
    names: dict[str, object] = {}
    with calls.of(""):
        exec(code, names)
    with calls.of("adds"):
        exec("result, rule = Number() + Number()", names)
    with calls.of("goes back"):
        exec("rule(1.0)", names)
    with calls.of("sorts"):
        exec("both(2)", names)
    with calls.of("fails"), pytest.raises(TypeError):
        exec("-Number() + both", names)
    named = {caller: {name for _, name in found if not name.endswith(">")} for caller, found in calls.by.items()}
    assert named == {
        "": {"Number"},
        "adds": {"Number.__add__"},
        "goes back": {"Number.__add__", "Number.__add__.<locals>.rule"},
        "sorts": {"both"},
        "fails": {"Number.__neg__"},
    }
    assert {cell for found in calls.by.values() for cell, _ in found} == {"cell"}
