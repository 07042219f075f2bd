"""Which listed mistake gives the outcomes that a check saw.

When a lesson is built, its solution runs with each listed mistake through the visible cases, and the short names of the
wrong outcomes are kept: the mistake's *signature* in that check. A student's outcomes are compared with these. The file
holds the names of mistakes and of outcomes, and nothing of a solution.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from autograder.cards.check_report import NEAR, SEVERAL, ended

MOST = 3  # mistakes that a card names at once
LIKE = 0.75  # of the wrong cases, for a mistake that does not explain all of them: below that, most guesses were wrong


@dataclass(frozen=True)
class Explanation:
    """What a card says of a cause, and the names of the mistakes in it, for counting. Empty: nothing is known."""

    sentence: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Signatures:
    """`checks`: check -> mistake -> title of a case -> short name of its wrong outcome. `bugs`: mistake -> the bug of
    the bank that it is, under whose name it is then counted. `elsewhere`: check -> its mistakes in other exercises than
    the one that it checks. `says`: mistake -> what a card says of it, if that is not its name: two forms of one mistake
    have one sentence.
    """

    checks: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    bugs: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, Collection[str]] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Signatures:
        """The signatures in a file; none if it is missing or damaged: then cards show the evidence alone."""
        try:
            found: Any = json.loads(path.read_text(encoding="utf-8"))
            checks = {
                check: {
                    mistake: {case: name for case, name in zip(listed["cases"], names, strict=True) if name}
                    for mistake, names in listed["mistakes"].items()
                }
                for check, listed in found["checks"].items()
            }
            elsewhere = {check: list(listed["elsewhere"]) for check, listed in found["checks"].items()}
            return cls(checks, dict(found["bugs"]), elsewhere, dict(found["says"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def text(self, made_from: str) -> str:
        """The content of the file: for each check its cases, and for each mistake a line with their outcomes, in this
        order, empty where a case is right. `made_from` says what the signatures were made from.
        """
        checks = []
        for check, listed in self.checks.items():
            cases = list(dict.fromkeys(case for outcomes in listed.values() for case in outcomes))
            rows = ((mistake, [outcomes.get(case, "") for case in cases]) for mistake, outcomes in listed.items())
            lines = ",\n".join(f"   {_json(mistake)}: {_json(names)}" for mistake, names in rows)
            elsewhere = [mistake for mistake in listed if mistake in self.elsewhere.get(check, ())]
            heads = f'"cases": {_json(cases)}, "elsewhere": {_json(elsewhere)}'
            checks.append(f'  {_json(check)}: {{{heads}, "mistakes": {{\n{lines}\n  }}}}')
        says = ",\n".join(f"  {_json(mistake)}: {_json(sentence)}" for mistake, sentence in self.says.items())
        bugs = _json(dict(self.bugs))
        head = f' "made_from": {_json(made_from)},\n "bugs": {bugs},\n "says": {{\n{says}\n }},\n "checks": {{'
        return "{\n" + head + "\n" + ",\n".join(checks) + "\n }\n}\n"

    def ruled_out_by(self, passed: Collection[str]) -> Signatures:
        """The signatures without the mistakes that one of these checks shows: it has passed."""
        gone = {mistake for check in passed for mistake in self.checks.get(check, ())}
        checks = {
            check: {mistake: cases for mistake, cases in listed.items() if mistake not in gone}
            for check, listed in self.checks.items()
        }
        return replace(self, checks=checks)

    def explain(self, check: str, wrong: Mapping[str, str]) -> Explanation:
        """The mistake with exactly these wrong outcomes, or some that have them, or the few that share most of them;
        those in the exercise that is checked come first.
        """
        listed = self.checks.get(check, {}) if wrong else {}
        elsewhere = self.elsewhere.get(check, ())
        exact = sorted((name for name, cases in listed.items() if cases == wrong), key=lambda name: name in elsewhere)
        if exact:
            return self._one_of(exact)
        shared = {  # of the mistakes that expect no case to be wrong that is right
            name: sum(wrong[case] == what for case, what in cases.items())
            for name, cases in listed.items()
            if cases.keys() <= wrong.keys()
        }
        best = max(shared.values(), default=0)
        like = [name for name, count in shared.items() if count == best]
        like = [name for name in like if name not in elsewhere] or like
        few = len({self.says.get(name, name) for name in like}) <= MOST
        return self._one_of(like, nearly=True) if few and best >= max(1.0, LIKE * len(wrong)) else Explanation()

    def _one_of(self, mistakes: Sequence[str], nearly: bool = False) -> Explanation:
        """What a card says if it is one of these: the first few sentences."""
        counted = {self.says.get(mistake, mistake): self.bugs.get(mistake, "") for mistake in mistakes}
        sentences = list(counted)[:MOST]
        others = ["another mistake with the same results"] if len(counted) > MOST else []
        which = SEVERAL if len(counted) > 1 else "this" if nearly else ""
        beginning = f"{NEAR} {which}: " if nearly else f"{which}: " if which else ""
        names = tuple(counted[sentence] or sentence for sentence in sentences)
        return Explanation(ended(beginning + "; or ".join(sentences + others)), names)


_PASSED: dict[str, dict[str, frozenset[CodeType]]] = {}
"""lesson -> check that has passed in this kernel -> the code that the notebook had defined then."""


@dataclass(frozen=True)
class PassedChecks:
    """The checks of a lesson that have passed, for the check of that name. As long as all the code of that time is
    still defined, what they have shown to be right is right. In the judge nothing is kept: it sees many notebooks.
    """

    name: str
    kept: dict[str, frozenset[CodeType]]
    names: Mapping[str, Any]

    def others(self) -> list[str]:
        """The other checks, which would pass again."""
        code = self._code() if self.kept else frozenset()
        return [check for check, before in self.kept.items() if check != self.name and before <= code]

    def note(self, passed: bool) -> None:
        """Note how this check ended."""
        self.kept.pop(self.name, None)
        if passed:
            self.kept[self.name] = self._code()

    def _code(self) -> frozenset[CodeType]:
        """The code of the notebook's functions, and of the methods of its classes."""
        found: list[Any] = []
        for value in list(self.names.values()):
            parts = list(vars(value).values()) if isinstance(value, type) else [value]
            found += (getattr(part, "__func__", None) or getattr(part, "fget", None) or part for part in parts)
        return frozenset(part.__code__ for part in found if isinstance(part, FunctionType))


def passed_checks(name: str, names: Mapping[str, Any]) -> PassedChecks:
    """The checks that have passed before a check such as `06.held`, in a notebook with these names."""
    lesson, _, check = name.partition(".")
    judged = getattr(names, "sandbox", None) is not None
    return PassedChecks(check, {} if judged else _PASSED.setdefault(lesson, {}), names)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
