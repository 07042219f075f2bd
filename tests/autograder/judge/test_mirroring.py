"""Which test cells share the notebook's files: all that may read or write one, and none that only mentions saving."""

import pytest

from autograder.judge.outside.mirroring import touches_files


@pytest.mark.parametrize(
    "source",
    [
        "assert open('out').read() == '1'",
        "from pathlib import Path\nassert Path('out')",
        "import os.path\nassert os.path.exists('out')",
        "import csv",
        "table = np.loadtxt(name)",
        "network.save(name)",
        "assert f'{open(name).read()}' == '1'",
        "assert answers_in('results.csv') == [1, 2]",
        "compare('out/results')",
        "%matplotlib inline\nassert read_prices(name)",
        "def load_all(names):\n    return [pickle.load(name) for name in names]",
    ],
)
def test_cell_that_may_touch_a_file(source):
    assert touches_files(source)


@pytest.mark.parametrize(
    "source",
    [
        "assert saved_bytes(w * w) == (0, 48), 'a leaf that is saved twice counts once; load and write nothing'",
        "ctx.save_for_backward(a)  # open",
        "node.saved_tensors[0]",
        "network.load_state_dict(state)",
        "for batch in loader(rows):\n    assert batch.shape == (3, 2)",
        "assert add(1, 2) == 3.5 / 2",
        "this is no Python: open('out')",
    ],
)
def test_cell_that_touches_none(source):
    assert not touches_files(source)
