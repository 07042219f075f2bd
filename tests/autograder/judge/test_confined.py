"""The judge's own process sees what a judge needs and nothing else, and is believed no more than a judge can say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from autograder.course_folder import PROJECT
from autograder.judge import JudgeDied, Source, judge_apart
from autograder.judge import apart as module_of_judge
from autograder.sandbox.process import forkserver
from tests.autograder.judge.notebooks import cell, notebook

pytestmark = pytest.mark.sandbox

ANSWER = "def twice(x): return 2 * x"
LOOK = """# test
import gc, json, os, socket, sys
def refused(do):
    try:
        do()
    except OSError:
        return True
status = dict(line.strip().split(":", 1) for line in open("/proc/self/status"))
secret = "01209"[::-1]
known = [thing for thing in gc.get_objects() if isinstance(thing, (dict, list, tuple))]
texts = {text for thing in known for text in (thing.values() if isinstance(thing, dict) else thing)
         if isinstance(text, (bytes, str))}
print(json.dumps(dict(
    rights=sum(int(status[name], 16) for name in ("CapPrm", "CapEff", "CapAmb")),
    filtered=int(status["Seccomp"]), privileges=int(status["NoNewPrivs"]), user=os.getuid(),
    processes=[name for name in os.listdir("/proc") if name.isdigit()],
    home=os.environ["HOME"], environment=sorted(os.environ),
    offline=refused(lambda: socket.create_connection(("127.0.0.1", PORT), 1)),
    readonly=[refused(lambda: open(f"{folder}/x", "w")) for folder in ("PROJECT/autograder", "/usr", sys.prefix)],
    there=[path for path in ("PROJECT/course", "PROJECT/tests", "PROJECT/.git", "COURSE", "/etc/passwd", "/root/.ssh")
           if os.path.exists(path)],
    secret=any((secret in text) if isinstance(text, str) else (secret.encode() in text) for text in texts
               if text != secret),
    looked=any("assert twice(2) == 4" in text for text in texts if isinstance(text, str)),
)))
assert twice(2) == 4"""


def test_a_judge_sees_no_course_no_process_no_network_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").write_text("marks")
    os.environ["AUTOGRADER_TEST_SECRET"] = "90210"
    try:
        look = LOOK.replace("PROJECT", str(PROJECT)).replace("COURSE", str(tmp_path)).replace("PORT", "1")
        judged = notebook(ANSWER, look)
        assert judge_apart(judged, secret=b"the secret 90210").points == 2
    finally:
        del os.environ["AUTOGRADER_TEST_SECRET"]
    facts = json.loads(judged.cells[1].outputs[0].text)
    assert facts["rights"] == 0
    assert (facts["filtered"], facts["privileges"]) == (2, 1)
    assert facts["user"] != 0
    assert facts["processes"] == ["1"]
    assert "AUTOGRADER_TEST_SECRET" not in facts["environment"]
    assert facts["offline"]
    assert all(facts["readonly"])
    assert facts["there"] == []
    assert facts["looked"], "the search finds what is there"
    assert not facts["secret"]


def test_where_forks_cannot_be_isolated_a_judge_is_a_fresh_python_that_sees_as_little(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("autograder.judge.apart", "autograder.sandbox.process.process"):
        monkeypatch.setattr(f"{module}.why_not_warm", lambda: "no namespaces within namespaces")
    test_a_judge_sees_no_course_no_process_no_network_and_no_secret(tmp_path)
    test_what_a_test_writes_beside_the_notebook_is_gone_with_its_process()


def test_what_a_test_writes_beside_the_notebook_is_gone_with_its_process() -> None:
    source = Source(notebook(cell(GIVEN, "locked"), ANSWER, CHANGES), {"shop.txt": b"3", "hidden.ipynb": b"90210"})
    for _ in range(2):
        judged = notebook(cell(GIVEN, "locked"), ANSWER, CHANGES)
        assert judge_apart(judged, source=source, files=source.given).points == 2, judged.cells[2].outputs


GIVEN = "number = int(open('shop.txt').read())\nimport os\nnames = sorted(os.listdir('.'))"
CHANGES = """# test
assert (number, names) == (3, ["shop.txt"])
open("shop.txt", "w").write("4")
assert twice(2) == 4"""


def test_a_large_file_beside_the_notebook_arrives_whole() -> None:
    given = cell("data = open('data.bin', 'rb').read()", "locked")
    source = Source(notebook(given, ANSWER), {"data.bin": bytes(9_000_000)})
    judged = notebook(ANSWER, "# test\nassert len(data) == len(open('data.bin', 'rb').read()) == 9_000_000")
    assert judge_apart(judged, source=source, files=source.given).points == 2


def told(grade_id: str, points: str) -> str:
    rest = '"max_points": 2, "message": "", "bugs": [], "inside": false'
    return f'{{"grade_id": "{grade_id}", "points": {points}, {rest}}}'


ERROR = '{"output_type": "error", "ename": "", "evalue": "", "traceback": []}'
WITHOUT_TEXT = '{"output_type": "execute_result", "metadata": {}, "data": {}}'


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[]",
        "[{}, []]",
        "[" * 100_000,
        '[{"cells": [], "test_seconds": [0], "restarts": 0}, [[], []]]',
        f'[{{"cells": [{told("cell1", "9")}], "test_seconds": [0], "restarts": 0}}, [[], []]]',
        f'[{{"cells": [{told("cell1", "1")}], "test_seconds": [0], "restarts": 0}}, [[], []]]',
        f'[{{"cells": [{told("cell1", "NaN")}], "test_seconds": [0], "restarts": 0}}, [[], []]]',
        f'[{{"cells": [{told("other", "2")}], "test_seconds": [0], "restarts": 0}}, [[], []]]',
        f'[{{"cells": [{told("cell1", "2")}], "test_seconds": [0], "restarts": 0}}, [[], [{ERROR}]]]',
        f'[{{"cells": [{told("cell1", "2")}], "test_seconds": [0], "restarts": 0}}, [[], [{WITHOUT_TEXT}]]]',
        f'[{{"cells": [{told("cell1", "2")}], "test_seconds": [0], "restarts": 0}}, [[], [3]]]',
        f'[{{"cells": [{told("cell1", "2")}], "test_seconds": [0], "restarts": 0}}, [[]]]',
        f'[{{"cells": [{told("cell1", "2")}], "test_seconds": [0], "restarts": "x"}}, [[], []]]',
    ],
)
def test_an_answer_that_no_judge_could_give_is_none(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_of_judge._Judge, "ask", lambda *_: answer.encode())
    with pytest.raises(JudgeDied, match="invalid answer"):
        judge_apart(notebook(ANSWER, "# test\nassert twice(2) == 4"))


def test_an_answer_that_a_judge_could_give_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would show nothing."""
    answer = f'[{{"cells": [{told("cell1", "2")}], "test_seconds": [0], "restarts": 0}}, [[], []]]'
    monkeypatch.setattr(module_of_judge._Judge, "ask", lambda *_: answer.encode())
    assert judge_apart(notebook(ANSWER, "# test\nassert twice(2) == 5")).points == 2


TURNED = """# test
import gc, os, socket
from autograder.sandbox.process.supervision import SupervisorLine
line = next(thing for thing in gc.get_objects() if type(thing) is SupervisorLine)
"""


@pytest.mark.parametrize(
    "does",
    [
        "line.connection.send(b'not json')",
        "line.connection.send(b'[1, \"start\", 0]')",
        "line.connection.send(b'[1, \"end\", 99]')",
        "line.connection.send(b'[1, \"__class__\", 0]')",
        "socket.send_fds(line.connection, [b'[1, \"start\", 0]'], [os.open('/dev/null', os.O_RDONLY)] * 2)",
        "line.connection.close()",
        "os.closerange(3, 100)",
        "[line.ask('start', 0, socket.socketpair()) for _ in range(200)]",
    ],
)
def test_a_judge_that_was_turned_harms_only_its_own_submission(does: str) -> None:
    """A supervisor believes nothing that it is asked."""
    before = [forkserver.warm_process(kind) for kind in (forkserver.STUDENT, module_of_judge.JUDGE)]
    judged = notebook(ANSWER, f"{TURNED}{does}", "# test\nassert twice(2) == 5")
    try:
        found: list[Any] = [cell.points for cell in judge_apart(judged).cells]
    except JudgeDied:
        found = [0, 0]
    assert found[1] == 0
    assert judge_apart(notebook(ANSWER, "# test\nassert twice(2) == 4")).points == 2
    assert [forkserver.warm_process(kind) for kind in (forkserver.STUDENT, module_of_judge.JUDGE)] == before
