"""Which test cells ask for nothing."""

from __future__ import annotations

import pytest

from autograder.notebooks.giving_points import asserts_nothing

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
