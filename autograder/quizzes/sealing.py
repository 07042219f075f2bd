"""Keeps hints and quiz answers from being read by accident. Standard library only, because notebooks use it.

This is obfuscation, not cryptography: everything needed to open a sealed text is in this file, and a student who wants
to open it can. It only has to spare all others the answer while they scroll past it. Two forms exist.

Quiz: every option of every question is a record of its own, masked with a stream made from the question's key and the
option's letter. Opening a record requires a letter and reveals only that letter: right or wrong, why, and which
misconception it shows. All records of a question have the same length, which therefore tells nothing.

    sealed = seal_quiz({"sum_rule": {"a": Answer(False, "...", "assigned_not_accumulated"), "b": Answer(True, "...")}})
    question_keys(sealed)                  -> ["sum_rule"]
    option_letters(sealed, "sum_rule")     -> ["a", "b"]
    open_questions(sealed)                 -> what may be read before answering: texts and options, and the records
    open_answer(sealed, "sum_rule", "b")   -> Answer(right=True, explanation="...", misconception="", text="")

A class may hold the records back until its submissions are graded. The texts of the questions then stand alone.

Hints: one masked list of Markdown texts, the mildest hint first.

    open_hints(seal_hints(["Look at ...", "Then ..."]))  -> ["Look at ...", "Then ..."]

A sealed text reads `KIND1.DIGEST.BODY`: KIND is `quiz`, `hints` or `note`, 1 the version of this format, DIGEST the
start of the SHA-256 of BODY (so that a damaged text is noticed), BODY URL-safe base64 of compressed JSON. Equal input
gives equal text, so that building a lesson twice gives the same bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

VERSION = 1
SEALED_TEXT = re.compile(r'"((?:quiz|hints)\d+\.[0-9a-f]+\.[\w\-=]+)"')
"""A sealed quiz, or sealed hints, in the source of a cell."""
LONGEST_SEALED_TEXT = 1_000_000
LONGEST_OPENED_TEXT = 4_000_000


class SealError(ValueError):
    """The text is not sealed, is damaged, or lacks what was asked for. The message can be shown to a student."""


class UnknownQuestionError(SealError):
    """The quiz has no question with that key."""


class UnknownLetterError(SealError):
    """The question has no option with that letter (or the answer is not a letter at all)."""


@dataclass(frozen=True)
class Answer:
    """What one option of a question reveals. `text` is the option as the student reads it."""

    right: bool
    explanation: str
    misconception: str = ""
    text: str = ""


@dataclass(frozen=True)
class OpenQuestion:
    """A question as it is shown before it is answered, and its sealed records, one for each letter."""

    key: str
    text: str
    options: dict[str, str]
    records: dict[str, str]


def seal(value: Any, key: str = "") -> str:
    """Seal a JSON value (a note); `unseal` needs the same key."""
    return _wrap("note", _masked(_to_bytes(value), key))


def unseal(text: str, key: str = "") -> Any:
    """The value given to `seal`. Raises SealError when the text is damaged or the key is wrong."""
    return _from_bytes(_masked(_unwrap("note", text), key))


def seal_hints(hints: Sequence[str]) -> str:
    """Seal the hints of one exercise, the mildest first."""
    return _wrap("hints", _masked(_to_bytes(list(hints)), "hints"))


def open_hints(text: str) -> list[str]:
    """The hints in a sealed text, the mildest first. Raises SealError when the text is damaged."""
    hints = _from_bytes(_masked(_unwrap("hints", text), "hints"))
    if not isinstance(hints, list) or not all(isinstance(hint, str) for hint in hints):
        raise SealError("these sealed hints are damaged")
    return hints


def seal_quiz(questions: Mapping[str, Mapping[str, Answer]], texts: Mapping[str, str] | None = None) -> str:
    """Seal a quiz: question key -> option letter -> what choosing that letter reveals. Keeps the order.

    With the `texts` of the questions the sealed text also holds what a reader sees before answering.
    """
    body: list[list[Any]] = []
    for key, options in questions.items():
        records = {letter: _to_bytes(asdict(answer)) for letter, answer in options.items()}
        length = max((len(record) for record in records.values()), default=0)
        masked = {letter: _masked(record.ljust(length), f"{key}/{letter}") for letter, record in records.items()}
        body.append([key, {letter: base64.b64encode(record).decode() for letter, record in masked.items()}])
        if texts is not None:
            body[-1] += [texts[key], {letter: answer.text for letter, answer in options.items()}]
    return _wrap("quiz", _to_bytes(body))


def held_back(sealed: str) -> str:
    """A sealed quiz without its records: it can be answered, and tells nothing about answers. Raises SealError."""
    questions = open_questions(sealed)
    if len(questions) < len(question_keys(sealed)):
        raise SealError("a quiz that was sealed without its texts cannot be answered without its records")
    return _wrap("quiz", _to_bytes([[question.key, {}, question.text, question.options] for question in questions]))


def is_held_back(sealed: str) -> bool:
    """Whether a quiz has no records. Raises SealError when the text is damaged."""
    return not any(_quiz(sealed).values())


def question_keys(sealed: str) -> list[str]:
    """The keys of the questions of a sealed quiz, in the order in which they are asked."""
    return list(_quiz(sealed))


def open_questions(sealed: str) -> list[OpenQuestion]:
    """The parts of a quiz that may be read before answering; empty if it was sealed without its texts."""
    quiz = _quiz(sealed)
    shown = [entry for entry in _from_bytes(_unwrap("quiz", sealed)) if len(entry) == 4]
    try:
        return [
            OpenQuestion(str(key), str(text), {str(x): str(option) for x, option in options.items()}, quiz[key])
            for key, _, text, options in shown
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise SealError("this sealed quiz is damaged") from error


def option_letters(sealed: str, key: str) -> list[str]:
    """The letters that answer a question. Raises UnknownQuestionError."""
    return sorted(_question(sealed, key))


def letter_in(answer: object) -> str:
    """The letter that a student has given as an answer, empty if there is none: "B" or " b) " is b."""
    return answer.strip().lower().removesuffix(")") if type(answer) is str and len(answer) < 100 else ""


def open_answer(sealed: str, key: str, letter: object) -> Answer:
    """What choosing `letter` for a question reveals; it may be written as `letter_in` allows.

    Raises UnknownQuestionError, UnknownLetterError (also if it is not a string, or is empty), SealError.
    """
    options = _question(sealed, key)
    chosen = letter_in(letter)
    if chosen not in options:
        raise UnknownLetterError(f"answer {key!r} with one of the letters {', '.join(sorted(options))}")
    try:
        record = _from_bytes(_masked(base64.b64decode(options[chosen], validate=True), f"{key}/{chosen}"))
        return Answer(bool(record["right"]), *(str(record[name]) for name in ("explanation", "misconception", "text")))
    except (binascii.Error, KeyError, TypeError) as error:
        raise SealError("this sealed quiz is damaged") from error


def _quiz(sealed: str) -> dict[str, dict[str, str]]:
    body = _from_bytes(_unwrap("quiz", sealed))
    try:
        entries = [(key, options) for key, options, *_ in body]
        quiz = {str(key): {str(letter): str(record) for letter, record in options.items()} for key, options in entries}
    except (AttributeError, TypeError, ValueError) as error:
        raise SealError("this sealed quiz is damaged") from error
    return quiz


def _question(sealed: str, key: str) -> dict[str, str]:
    quiz = _quiz(sealed)
    if not isinstance(key, str) or key not in quiz:
        raise UnknownQuestionError(f"this quiz has no question {str(key)[:60]!r}; its questions are {', '.join(quiz)}")
    return quiz[key]


def _masked(data: bytes, key: str) -> bytes:
    """Data combined with a stream of bytes made from the key. Doing it twice gives the data back."""
    blocks = (len(data) + 31) // 32
    stream = b"".join(hashlib.sha256(f"{key}/{number}".encode()).digest() for number in range(blocks))[: len(data)]
    return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data)) if data else b""


def _wrap(kind: str, data: bytes) -> str:
    body = base64.urlsafe_b64encode(zlib.compress(data, 9)).decode()
    return f"{kind}{VERSION}.{_digest(body)}.{body}"


def _unwrap(kind: str, text: str) -> bytes:
    if not isinstance(text, str):
        raise SealError(f"sealed text must be a string, not {type(text).__name__}")
    parts = text.split(".") if len(text) <= LONGEST_SEALED_TEXT else []
    if len(parts) != 3 or parts[0] != f"{kind}{VERSION}":
        raise SealError(f"this is not sealed text of the kind {kind!r} made by this version of the course")
    if parts[1] != _digest(parts[2]):
        raise SealError("this sealed text is damaged; fetch the lesson again")
    try:
        opener = zlib.decompressobj()
        data = opener.decompress(base64.b64decode(parts[2], altchars=b"-_", validate=True), LONGEST_OPENED_TEXT)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise SealError("this sealed text is damaged; fetch the lesson again") from error
    if not opener.eof:
        raise SealError("this sealed text is damaged; fetch the lesson again")
    return data


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:8]


def _to_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _from_bytes(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SealError("this sealed text is damaged, or another key is needed") from error
