"""Every topic of the checklist is taught by a cell of a lesson that it belongs to, as far as the lessons exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.lessons.builder.coverage import Coverage, checklist, coverage

COURSE = Path(__file__).parents[2] / "course"
TOPICS = checklist(COURSE / "checklist.toml")
LESSONS = sorted({lesson for topic in TOPICS.values() for lesson in topic.lessons})
LAST_TOPIC, LAST_CORRECTION = 142, 53
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


def test_no_cell_claims_what_the_checklist_does_not_have(found: Coverage) -> None:
    assert [f"{claim.place}: {claim.topic}" for claim in found.unknown()] == []
