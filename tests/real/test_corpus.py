"""Is every engine of the corpus right, and does a card name the cause of each mistake that is planted in it or in a
lesson?
"""

from collections import Counter

import pytest

from autograder.checks.standard import try_engine
from tests.real.corpus import ENGINES, HERE, LESSONS, VERDICTS, engine_of, table
from tests.real.corpus import mistakes_in_engines as in_engines
from tests.real.corpus import mistakes_in_lessons as in_lessons

MISTAKES = list(in_engines())
IN_LESSONS = list(in_lessons())


@pytest.mark.parametrize("name", ENGINES)
def test_a_right_engine_is_right(name):
    trial = try_engine(*engine_of(name))
    assert trial.right, "\n".join([trial.table(), *(report.text() for report in trial.reports)])


def test_each_engine_has_five_mistakes_and_each_has_a_source():
    assert Counter(mistake.place for mistake in MISTAKES) == dict.fromkeys(ENGINES, 5)
    assert len(ENGINES) >= 12
    sources = (HERE / "sources.txt").read_text(encoding="utf-8")
    heads = [line for line in sources.splitlines()[3:] if not line.startswith(" ")]
    named = {name for line in heads for name in line.split(", ")}
    assert named == {mistake.name for mistake in MISTAKES}


def test_sixty_mistakes_are_in_lessons_and_in_each_but_the_first():
    assert len(IN_LESSONS) >= 60
    lessons = {path.name[:2] for path in LESSONS.glob("[0-9][0-9]_*")}
    assert {mistake.place for mistake in IN_LESSONS} == lessons - {"00"}


@pytest.mark.slow
@pytest.mark.parametrize("mistakes", [MISTAKES, IN_LESSONS], ids=["engines", "lessons"])
def test_causes_of_real_mistakes_are_named(mistakes):
    verdicts = {f"{mistake.place}.{mistake.name}": mistake.verdict()[0] for mistake in mistakes}
    counted = Counter(verdicts.values())
    shown = "\n".join([table({"": list(verdicts.values())}), *(f"{k}: {v}" for k, v in verdicts.items())])
    assert counted.keys() <= set(VERDICTS)
    assert counted["silent"] == counted["hangs"] == 0, shown
    assert counted["misleading"] <= 1, shown
    assert counted["right cause"] >= 0.75 * len(mistakes), shown
