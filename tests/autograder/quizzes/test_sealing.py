"""Sealed texts open to what was sealed and reveal nothing else, and nonsense raises a clear error."""

from __future__ import annotations

import subprocess
import sys

import pytest

from autograder.quizzes import sealing
from autograder.quizzes.sealing import Answer, SealError, UnknownLetterError, UnknownQuestionError

QUIZ = {
    "sum_rule": {
        "a": Answer(False, "Each path contributes; an assignment keeps the last one only.", "assigned_not_accumulated"),
        "b": Answer(True, "Yes: gradients of several paths add up.", text="they are added"),
    },
    "größe": {"a": Answer(True, "Ja, ∂L/∂x."), "b": Answer(False, ""), "c": Answer(False, "no" * 400)},
}


def test_an_opened_answer_is_the_sealed_one() -> None:
    sealed = sealing.seal_quiz(QUIZ)
    assert sealing.question_keys(sealed) == list(QUIZ)
    for key, options in QUIZ.items():
        assert sealing.option_letters(sealed, key) == sorted(options)
        for letter, answer in options.items():
            assert sealing.open_answer(sealed, key, f" {letter.upper()}) ") == answer


@pytest.mark.parametrize("hints", [[], ["one"], ["Look at `a * b`.", "∂/∂a", "x" * 5000]])
def test_opened_hints_are_the_sealed_ones(hints: list[str]) -> None:
    assert sealing.open_hints(sealing.seal_hints(hints)) == hints


@pytest.mark.parametrize("value", [None, 1.5, "text", {"a": [1, {"b": None}]}])
def test_a_note_opens_with_its_key_only(value: object) -> None:
    sealed = sealing.seal(value, "key")
    assert sealing.unseal(sealed, "key") == value
    with pytest.raises(SealError):
        sealing.unseal(sealing.seal({"long": "enough text to be unreadable"}, "key"), "other key")


def test_equal_input_gives_equal_text() -> None:
    assert sealing.seal_quiz(QUIZ) == sealing.seal_quiz(QUIZ)
    assert sealing.seal_hints(["a"]) == sealing.seal_hints(["a"])


def test_nothing_readable_is_left_even_after_decompression() -> None:
    opened = sealing._unwrap("quiz", sealing.seal_quiz(QUIZ)).decode()
    assert "sum_rule" in opened
    assert not any(word in opened for word in ("Each", "path", "true", "false", "assigned", "added"))
    assert b"Look" not in sealing._unwrap("hints", sealing.seal_hints(["Look here"]))


def test_the_length_of_a_record_does_not_tell_the_right_option() -> None:
    for options in sealing._quiz(sealing.seal_quiz(QUIZ)).values():
        assert len({len(record) for record in options.values()}) == 1


@pytest.mark.parametrize("letter", ["", "z", "ab", None, 1, ["a"], float("nan"), "a" * 10_000, object()])
def test_an_answer_that_is_no_letter_is_named(letter: object) -> None:
    with pytest.raises(UnknownLetterError, match=r"'sum_rule' with one of the letters a, b"):
        sealing.open_answer(sealing.seal_quiz(QUIZ), "sum_rule", letter)


@pytest.mark.parametrize("key", ["", "other", None, 3, "x" * 10_000])
def test_a_question_that_is_not_there_is_named(key: str) -> None:
    with pytest.raises(UnknownQuestionError, match="its questions are sum_rule"):
        sealing.open_answer(sealing.seal_quiz(QUIZ), key, "a")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "quiz1",
        "quiz1..",
        "quiz1.0.",
        "quiz9.aa.bb",
        "\ud800",
        "é.é.é",
        "x" * 2_000_000,
        None,
        3,
        b"quiz1.a.b",
        ["a"],
    ],
)
def test_nonsense_is_met_with_a_clear_error(text: str) -> None:
    for opening in (sealing.question_keys, sealing.open_hints, sealing.unseal):
        with pytest.raises(SealError):
            opening(text)


def test_a_damaged_or_cut_text_is_met_with_a_clear_error() -> None:
    sealed = sealing.seal_hints(["a hint of some length", "and another"])
    for position in range(0, len(sealed), 3):
        damaged = sealed[:position] + ("A" if sealed[position] != "A" else "B") + sealed[position + 1 :]
        for text in (damaged, sealed[:position], sealed + sealed[:position] + "x"):
            with pytest.raises(SealError):
                sealing.open_hints(text)


@pytest.mark.parametrize(
    "body", [[1], {"a": 1}, [["k", 3]], [["k", {"a": "not base64 at all"}]], [["k", {"a": "AAAA"}]]]
)
def test_a_well_wrapped_body_of_another_shape_is_refused(body: object) -> None:
    sealed = sealing._wrap("quiz", sealing._to_bytes(body))
    with pytest.raises(SealError):
        sealing.open_answer(sealed, "k", "a")


def test_a_text_that_would_open_to_gigabytes_is_refused() -> None:
    with pytest.raises(SealError):
        sealing.open_hints(sealing._wrap("hints", b" " * (sealing.LONGEST_OPENED_TEXT + 1)))


def test_it_imports_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import autograder.quizzes.sealing;"
        "extra = {name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names);"
        "assert extra <= {'autograder'}, extra"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
