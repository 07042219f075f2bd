"""Is every engine of the corpus right, and does a card name the cause of each mistake that is planted in it?"""

from collections import Counter

import pytest

from autograder.checks.standard import try_engine
from tests.real.corpus import ENGINES, HERE, VERDICTS, engine_of, mistakes_in_engines, table

MISTAKES = list(mistakes_in_engines())


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


@pytest.mark.slow
def test_causes_of_real_mistakes_are_named():
    verdicts = {f"{mistake.place}.{mistake.name}": mistake.verdict()[0] for mistake in MISTAKES}
    counted = Counter(verdicts.values())
    shown = "\n".join([table({"engines": list(verdicts.values())}), *(f"{k}: {v}" for k, v in verdicts.items())])
    assert counted.keys() <= set(VERDICTS)
    assert counted["silent"] == counted["hangs"] == 0, shown
    assert counted["misleading"] <= 1, shown
    assert counted["right cause"] >= 0.75 * len(MISTAKES), shown
