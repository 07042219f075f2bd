"""The mistakes that are listed beside a lesson, in `mistakes.txt`.

A block begins with `# %%` and the mistake, in a few words. Then come fields, one per line: `says:` the sentence for the
learner, if the name is not enough, `costs:` the test cells that must notice it, `may:` those that may, too, and `bug:`
the bug of the bank that a card must name. Last comes what becomes of the solutions of the lesson: lines (-), and what
the learner has in place of them (+).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.lessons.builder.lesson_files import MISTAKES, LessonTextError
from autograder.lessons.builder.text import read_lesson

BLOCK = "# %% "
FIELDS = ("says", "costs", "may", "bug")


@dataclass(frozen=True)
class KnownMistake:
    """A mistake: the text in a solution that it replaces, the test cells that must notice it, and those that may.

    `bug` is the bug of the bank that a card must name, if any.
    """

    name: str
    right: str
    wrong: str
    costs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    bug: str = ""
    says: str = ""

    @property
    def said(self) -> str:
        """What a card says."""
        return self.says or self.name

    def into(self, source: str) -> tuple[str, int]:
        """The source with the mistake, and the number of replacements. Spaces and line ends inside the right text may
        differ in a lesson, so that a line that was wrapped there is still found."""
        return _however_spaced(self.right).subn(lambda found: self.wrong, source)


@dataclass(frozen=True)
class Block:
    """A block of a file of changes: its name, its fields, the lines of a solution and those in place of them."""

    name: str
    where: str
    fields: dict[str, str]
    right: str
    wrong: str


def mistakes_of(text: Path) -> list[KnownMistake]:
    """The mistakes listed beside a lesson's text; none if there is no list. Raises LessonTextError."""
    path = text.with_name(MISTAKES)
    if not path.is_file():
        return []
    tests = [cell.grade_id for cell in read_lesson(text) if cell.is_test]
    found: dict[str, KnownMistake] = {}
    for block in blocks_of(path, FIELDS):
        if block.name in found:
            raise LessonTextError(f"{block.where}: {block.name!r} is listed twice")
        costs, may = (tuple(block.fields.get(field, "").split()) for field in ("costs", "may"))
        if not costs or not set(costs + may) <= set(tests):
            raise LessonTextError(f"{block.where}: `costs:` and `may:` name test cells of {', '.join(tests)}")
        bug, says = (block.fields.get(field, "") for field in ("bug", "says"))
        found[block.name] = KnownMistake(block.name, block.right, block.wrong, costs, may, bug, says)
    return list(found.values())


def blocks_of(path: Path, fields: Sequence[str]) -> Iterator[Block]:
    """The blocks of a file. Raises LessonTextError for one that is not written like those above."""
    line = 1
    first, *blocks = re.split(rf"^{re.escape(BLOCK)}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    line += first.count("\n")
    for block in blocks:
        yield _block(block, f"{path.parent.name}/{path.name}:{line}", fields)
        line += block.count("\n")


def _block(block: str, where: str, known: Sequence[str]) -> Block:
    name, *lines = block.rstrip("\n").split("\n")
    fields = {}
    while lines and (field := re.fullmatch(r"(\w+): *(.*)", lines[0])):
        if field[1] not in known:
            raise LessonTextError(f"{where}: the fields are {', '.join(known)}, not {field[1]!r}")
        fields[field[1]] = field[2]
        del lines[0]
    right = [line[1:] for line in lines if line.startswith("-")]
    wrong = [line[1:] for line in lines if line.startswith("+")]
    if not name.strip() or not right or len(right) + len(wrong) != len([line for line in lines if line]):
        raise LessonTextError(f"{where}: expected a name, fields, the lines of the solution (-), the learner's (+)")
    return Block(name.strip(), where, fields, "\n".join(right), "\n".join(wrong))


@cache
def _however_spaced(text: str) -> re.Pattern[str]:
    before, words, after = re.fullmatch(r"(\s*)(.*?)(\s*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    return re.compile(re.escape(before) + r"\s+".join(map(re.escape, words.split())) + re.escape(after))
