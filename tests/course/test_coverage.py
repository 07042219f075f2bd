"""Every topic of the checklist is taught by a cell of a lesson that it belongs to, as far as the lessons exist."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autograder.lessons.builder.coverage import Coverage, checklist, coverage

COURSE = Path(__file__).parents[2] / "course"
TOPICS = checklist(COURSE / "checklist.toml")
LESSONS = sorted({lesson for topic in TOPICS.values() for lesson in topic.lessons})
LAST_TOPIC, LAST_CORRECTION = 142, 53
MOST_OPTIONAL = 22
GAPS = "broadcasting accumulation where_sqrt ties repeated_indices views saved_tensor_hooks jvp_vmap random_cotangent"


@pytest.fixture(scope="module")
def found() -> Coverage:
    return coverage(COURSE)


def test_the_checklist_is_whole() -> None:
    topics = {str(number) for number in range(1, LAST_TOPIC + 1)}
    corrections = {f"F{number}" for number in range(1, LAST_CORRECTION + 1)} - {"F50"}  # F50 was never given out
    assert set(TOPICS) == topics | corrections | {f"gap:{name}" for name in GAPS.split()}


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_leaves_no_topic_out(lesson: str, found: Coverage) -> None:
    assert [f"{topic.name}: {topic.title}" for topic in found.gaps() if lesson in topic.lessons] == []


def test_what_the_checklist_says_of_tests_and_optional_parts_is_so(found: Coverage) -> None:
    assert found.wrong() == []
    assert len(found.optional()) <= MOST_OPTIONAL, "move a topic into a core, not out of it"


def test_a_wrong_checklist_is_told_so(found: Coverage) -> None:
    wrong = {
        "96": replace(TOPICS["96"], further=""),
        "55": replace(TOPICS["55"], further="it is hard"),
        "47": replace(TOPICS["47"], tested=("05.accumulate", "05.multiply")),
    }
    assert replace(found, topics=wrong).wrong() == [
        "47: there is no exercise or question '05.multiply'",
        "96: only Further teaches it, and no reason is given",
        "55: a core teaches it, so `further` is wrong",
    ]


def test_what_is_run_of_a_cell_is_counted(found: Coverage) -> None:
    """Topic 31: two cells of prose and one of code in the core, with a statement; the rest in *Further*."""
    claims = found.claims_of(TOPICS["31"])
    assert [(claim.further, claim.run) for claim in claims] == [
        *((False, 0), (False, 1), (False, 1)),
        *((True, 0), (True, 1)),
    ]


def test_no_cell_claims_what_the_checklist_does_not_have(found: Coverage) -> None:
    assert [f"{claim.place}: {claim.topic}" for claim in found.unknown()] == []
