"""Groups of submissions whose answers are nearly the same text, for a person to look at. Similar is not copied.

The students' own answers are compared, without comments, blank lines and the text that was handed out. Equal texts are
grouped first; among the rest, only pairs of about the same length are compared. Each answer is also compared with the
reference solution of its exercise.
"""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nbformat import NotebookNode
from rapidfuzz import fuzz

from autograder.notebooks.cells import grade_id, is_code_solution

NEARLY = 95.0  # percent of the text that is the same
SHORTEST = 200  # characters: below this, honest answers agree by chance
MOST_COMPARED = 600_000  # pairs: a few seconds
LONGEST = 20_000


@dataclass(frozen=True)
class Group:
    """Students with nearly the same answers. `likeness`: by how much their least similar matching pair agrees."""

    students: tuple[str, ...]
    likeness: float


@dataclass(frozen=True)
class AsReference:
    """An answer that is nearly the reference solution of its exercise."""

    student: str
    exercise: str
    likeness: float


def answers(notebook: NotebookNode, given: Mapping[str, str]) -> dict[str, str]:
    """grade_id -> a student's answer, without comments, layout and what was handed out. Untouched ones are left out."""
    return {
        grade_id(cell): own_part(cell.source, given.get(grade_id(cell), ""))
        for cell in notebook.cells
        if is_code_solution(cell) and cell.source != given.get(grade_id(cell))
    }


def joined(answers: Iterable[str]) -> str:
    """All answers of a student as one text, to be compared with those of others."""
    return "\n".join(answers)[:LONGEST]


def as_reference(answers: Mapping[str, Mapping[str, str]], reference: Mapping[str, str]) -> list[AsReference]:
    """The answers (by student and grade_id) that are nearly the reference's, in the order of the lesson."""
    found = []
    for exercise, solution in reference.items():
        if len(solution) < SHORTEST:
            continue
        for student, texts in sorted(answers.items()):
            likeness = fuzz.ratio(texts.get(exercise, "")[:LONGEST], solution[:LONGEST], score_cutoff=NEARLY)
            if likeness:
                found.append(AsReference(student, exercise, likeness))
    return found


def own_part(source: str, given: str) -> str:
    """What a student wrote in a cell: the lines that `plain` returns, without those that were handed out."""
    handed_out = set(plain(given).splitlines())
    return "\n".join(line for line in plain(source).splitlines() if line not in handed_out)


def plain(source: str) -> str:
    """Python without comments, blank lines and spacing, a statement per line. A text that is not Python keeps its lines
    and comments.
    """
    ignored = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    try:
        tokens = [
            token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in ignored
        ]
    except (tokenize.TokenError, SyntaxError, ValueError):
        lines = [" ".join(line.split()) for line in source.splitlines()]
    else:
        words = ("\n" if token.type == tokenize.NEWLINE else token.string for token in tokens)
        lines = [line.strip() for line in " ".join(words).split(" \n")]
    return "\n".join(filter(None, lines))


def groups(texts: Mapping[str, str], known: Iterable[str] = ()) -> tuple[list[Group], bool]:
    """The groups, the most alike first, and whether all pairs that might be alike were compared.

    `known` are texts that everybody may have, such as an answer shown in class.
    """
    common = set(known)
    equal: dict[str, list[str]] = {}
    for student, text in sorted(texts.items()):
        if len(text) >= SHORTEST and text not in common:
            equal.setdefault(hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(), []).append(student)
    leaders = sorted((members[0] for members in equal.values()), key=lambda student: len(texts[student]))
    pairs, complete = _alike(leaders, texts)
    members = {group[0]: group for group in equal.values()}
    return _joined(members, pairs), complete


def _alike(leaders: Sequence[str], texts: Mapping[str, str]) -> tuple[list[tuple[str, str, float]], bool]:
    """Pairs that agree by at least `NEARLY`. `leaders` are sorted by length, so each looks only at its neighbors."""
    pairs: list[tuple[str, str, float]] = []
    room = MOST_COMPARED
    for index, one in enumerate(leaders):
        longest = len(texts[one]) * (200 - NEARLY) / NEARLY
        for other in leaders[index + 1 :]:
            if len(texts[other]) > longest:
                break
            if room == 0:
                return pairs, False
            room -= 1
            likeness = fuzz.ratio(texts[one], texts[other], score_cutoff=NEARLY)
            if likeness:
                pairs.append((one, other, likeness))
    return pairs, True


def _joined(members: dict[str, list[str]], pairs: list[tuple[str, str, float]]) -> list[Group]:
    """The groups that the pairs link together."""
    leader = {one: one for one in members}
    least = dict.fromkeys(members, 100.0)
    for one, other, likeness in pairs:
        first, second = _root(leader, one), _root(leader, other)
        leader[second] = first
        least[first] = min(least[first], least[second], likeness)
    together: dict[str, list[str]] = {}
    for one, group in members.items():
        together.setdefault(_root(leader, one), []).extend(group)
    found = [Group(tuple(sorted(group)), least[root]) for root, group in together.items() if len(group) > 1]
    return sorted(found, key=lambda group: (-group.likeness, group.students))


def _root(leader: dict[str, str], one: str) -> str:
    while leader[one] != one:
        one = leader[one]
    return one
