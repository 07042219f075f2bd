"""Words and phrases that read as translated must not come back to lessons, cards, errors and documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BETTER = {
    r"whoever": "anybody who, or the name of the person",
    r"in the place of": "in place of",
    r"(two|three|many|several|different) ways (lead|meet|from|to `)": "paths",
    r"(along|through) one way": "along one path",
    r"without a way through": "without a path through",
    r"mend(s|ed|ing)?": "fix",
    r"should an attempt break": "if something breaks",
    r"the error is meant": "this error is intentional",
    r"for want of": "because there is no",
    r"next to nothing": "almost nothing",
    r"(is|are|was|were) dear(er|est)?": "expensive",
    r"the dearest": "what costs most",
    r"(in|wearing) another dress": "in disguise",
    r"the manners": "how it is done",
    r"reckon with": "expect",
    r"blind for": "cannot see",
    r"belongs? into": "belongs in",
    r"had better": "must, or should",
    r"from above to below": "from top to bottom",
    r"who (does|do|may|looks|leaves|wants)\b[^.?]*, (gets?|is|has|knows|needs)\b": "if you ..., you ...",
    r"turns? it over": "transposes it",
    r"not a letter (of|was)": "is unchanged",
    r"of no use to": "does not help",
    r"grey|centred?|neighbours?|neighbouring|for ever|millimetres?": "the American spelling",
    r"travell(ed|ing)|cancelling|practis\w+|(recogn|optim|initial)is(e|es|ed|ing|ation)": "the American spelling",
}
LESSONS = sorted((ROOT / "course" / "lessons").glob("*/[0-9]*.py"))
OTHERS = [
    ROOT / "course" / "gallery.py",
    *sorted((ROOT / "course" / "lessons").glob("*/helpers_*.py")),
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "autograder").glob("**/*.py")),
    *sorted((ROOT / "mini_autograd").glob("**/*.py")),
]
TURNS = [(re.compile(rf"\b(?:{turn})\b", re.IGNORECASE), better) for turn, better in BETTER.items()]


def found_in(text: str) -> list[str]:
    """The phrases in a text, each with a better one."""
    lines = " ".join(line.removeprefix("# ") for line in text.splitlines())
    return [f"{match[0]!r}: {better}" for turn, better in TURNS for match in turn.finditer(lines)]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_no_turn_comes_back_to_a_lesson(path: Path) -> None:
    assert found_in(path.read_text(encoding="utf-8")) == []


def test_no_turn_comes_back_elsewhere() -> None:
    found = {path.relative_to(ROOT).as_posix(): found_in(path.read_text(encoding="utf-8")) for path in OTHERS}
    assert {name: turns for name, turns in found.items() if turns} == {}


def test_a_turn_would_be_found_also_over_the_end_of_a_line() -> None:
    assert found_in("# Whoever leaves in the\n# place of them") == [
        "'Whoever': anybody who, or the name of the person",
        "'in the place of': in place of",
    ]
