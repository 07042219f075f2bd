"""A test cell that forgets the points of its checks is found, and no other."""

from __future__ import annotations

import pytest

from autograder.notebooks.unclaimed import asserts_nothing, unclaimed_points

CHECK = "check_gradients(f, [()], points=2)"
KEPT = f"credit = {CHECK}"

LOST = {
    "no last line": (KEPT, 1, "write `credit` as its last line"),
    "another name": (f"earned = {CHECK}\nassert True", 2, "write `earned` as its last line"),
    "printed, not given": (f"{KEPT}\nprint(credit)", 2, "write `credit` as its last line"),
    "None is given": (f"{KEPT}\nNone", 2, "write `credit` as its last line"),
    "added up in a loop": (f"credit = 0\nfor f in fs:\n    credit += {CHECK}", 3, "write `credit` as its last line"),
    "in a loop without a name": (f"for f in fs:\n    {CHECK}", 2, "as in `credit = check_gradients"),
    "of the module": (f"checks.{CHECK}\nassert True", 1, "the points of this check are lost"),
    "hidden": (f"### BEGIN HIDDEN TESTS\n{KEPT}\n### END HIDDEN TESTS", 2, "last line, before END HIDDEN TESTS"),
    "two on lines of their own": (f"{CHECK}\n{CHECK}", 1, "write `credit = ...`"),
    "one between": (f"{KEPT}\n{CHECK}\ncredit", 2, "write `credit = credit + ...`"),
    "replaced": (f"{KEPT}\n{KEPT}\ncredit", 2, "write `credit = credit + ...`"),
}


@pytest.mark.parametrize("name", LOST)
def test_lost_points_are_named_with_their_line_and_what_to_write(name: str) -> None:
    source, line, words = LOST[name]
    found = unclaimed_points(source)
    assert found is not None
    assert found[0] == line
    assert words in found[1]


KEEPING = {
    "a last line": f"{KEPT}\ncredit",
    "a check alone": CHECK,
    "a sum": f"{CHECK} + {CHECK}",
    "added up": f"{KEPT}\ncredit = credit + {CHECK}\ncredit += {CHECK}\nassert True\ncredit",
    "its own use": f"{KEPT}\nassert credit > 1",
    "its own use, at once": f"if {CHECK} < 2:\n    raise ValueError",
    "a check that raises": "check_gradients(f, [()])\nassert f(2) == 3",
    "points=None": "check_gradients(f, [()], points=None)\nassert f(2) == 3",
    "no check": "assert f(2) == 3",
    "nothing": "",
    "no Python": "%%bash\nls -l",
}


@pytest.mark.parametrize("name", KEEPING)
def test_other_cells_are_left_alone(name: str) -> None:
    assert unclaimed_points(KEEPING[name]) is None


ASSERTS_NOTHING = {
    "if '%(' not in _i:\n    print('No magic was used.')": True,
    "": True,
    "# by hand": True,
    "answer = 42": True,
    "print(answer)": True,
    "'done'": True,
    "assert answer == 42": False,
    "if answer != 42:\n    raise ValueError": False,
    "check(answer)": False,
    "answer.check()": False,
    "points = 0\nif answer == 42:\n    points += 2\npoints": False,
    "%%bash\ntest -f answer.txt": False,
}


@pytest.mark.parametrize("source", ASSERTS_NOTHING)
def test_a_cell_that_asserts_nothing_is_known(source: str) -> None:
    assert asserts_nothing(source) == ASSERTS_NOTHING[source]
