"""Each gate stops the lesson that it is meant for. The judge here is a small one; the real one has its own tests."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from modulefinder import ModuleFinder
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output

import autograder
from autograder import cli
from autograder.judge.seeds import seed_of
from autograder.lessons.audit import gates, passed_gates, variants
from autograder.lessons.audit.gates import Lesson, audit_lesson
from autograder.lessons.builder.notebook import assemble
from autograder.lessons.commands import audit
from autograder.notebooks.cells import grade_id, is_code_solution, is_test
from autograder.runs.context import check_context, listening
from autograder.student import check_function, check_gradients, check_handwritten_gradient, check_tangents
from mini_autograd import Tensor

TEXT = (Path(__file__).parent / "gates_lesson.txt").read_text()
WITH_FURTHER = TEXT.replace("# ## An engine", "# # Further\n#\n# ## An engine")


@dataclass
class Cell:
    grade_id: str
    points: float
    max_points: float
    message: str = ""


def small_judge(notebook: NotebookNode, source: NotebookNode, folder: Path, secret: bytes, **options: bool) -> Any:
    """Runs the cells in this process; the value of a test cell is its points. Demonstrations are left out."""
    namespace: dict[str, Any] = {"__name__": "notebook"}
    cells = []
    for cell in notebook.cells:
        if cell.cell_type != "code" or "demo" in cell.metadata.get("tags", []):
            continue
        value: Any = 0.0
        try:
            tree = ast.parse(cell.source)
            last = tree.body.pop() if is_test(cell) else ast.Pass()
            exec(compile(tree, "cell", "exec"), namespace)
            if isinstance(last, ast.Expr):
                with check_context(seed_of(secret, grade_id(cell))):
                    value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
        except Exception as error:
            cell.outputs = [new_output("error", ename=type(error).__name__, evalue=str(error), traceback=[])]
        if is_test(cell):
            cells.append(Cell(grade_id(cell), float(value), cell.metadata.nbgrader.points))
    return SimpleNamespace(cells=cells)


@pytest.fixture
def make_lesson(tmp_path: Path) -> Callable[[str], Lesson]:
    """A lesson of the given text, built and with its folder."""

    def make(text: str) -> Lesson:
        path = tmp_path / "course" / "lessons" / "01_gates" / "01_gates.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        (tmp_path / "run").mkdir()
        lesson = Lesson(path, tmp_path / "course", small_judge, tmp_path / "run")
        assert gates.builds(lesson) == ("2 test cells, 5 points", ())
        return lesson

    return make


@pytest.mark.parametrize(("text", "problem"), [("", "is empty"), ("# %% [markdown]\n# # Words\n", "gives points")])
def test_a_lesson_without_anything_to_judge_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "01_words.py"
    path.write_text(text)
    (finding,) = audit_lesson(path, tmp_path, small_judge)
    assert finding.gate == gates.BUILD
    assert not finding.passed
    assert problem in finding.problems[0]


def zeros(lesson: Lesson) -> gates.Result:
    return gates.earns_nothing(lesson, variants.zeroed(lesson.source))


def random_numbers(lesson: Lesson) -> gates.Result:
    return gates.earns_nothing(lesson, variants.randomized(lesson.source))


def solved(lesson: Lesson) -> gates.Result:
    return gates.full_marks(lesson, variants.solved(lesson.source))


def style(lesson: Lesson) -> gates.Result:
    return gates.style_gets_full_marks(lesson, {"slope": "def slope(x):\n    return x + x"})


@pytest.mark.slow
def test_a_sound_lesson_passes_every_gate(make_lesson: Callable[[str], Lesson]) -> None:
    lesson = make_lesson(TEXT)
    findings = list(audit_lesson(lesson.text, lesson.course, small_judge))
    assert [(finding.gate, finding.problems) for finding in findings if not finding.passed] == []
    assert [finding.gate for finding in findings] == [
        "text keeps the rules",
        "release hides what it must",
        "cards can name the mistakes",
        "solved: every cell runs",
        "solved: Validate passes",
        "unsolved: nothing crashes",
        "solved: full marks",
        "solved: the same marks for ten seeds",
        "every bug that applies costs points",
        "style addition: full marks",
        "unsolved: no marks",
        "zeros: no marks for gradients",
        "random: no marks for gradients",
    ]
    assert all(finding.lesson == "01_gates" and finding.seconds >= 0 for finding in findings)


CHECK = "check_function(slope, lambda x: 2 * x, [3.0, -1.5], points=2)"
ENGINE_CHECK = "check_gradients(lambda a, b: a * b, [2.0, 5.0], [5.0, 2.0], points=3)"
CONSTANTS = "slope.__code__.co_consts"
UNSOUND = {
    "a demonstration fails": (gates.every_cell_runs, "Number(3.0)).data", "Number(3.0)).date", "AttributeError"),
    "Validate complains": (gates.validate_passes, "return points if good", "return 1 if good", "test_slope: 1 of 2"),
    "the solution is wrong": (solved, "return 2.0 * x", "return 2.1 * x", "test_slope: 0 of 2 points"),
    "a check refuses a style": (style, CHECK, f"2 if 2.0 in {CONSTANTS} else 0", "test_slope: 0 of 2"),
    "a cell needs more": (gates.stubs_do_not_crash, "at_three = slope(3.0)", "at_three = sloop(4)", "cell .*NameError"),
    "a stub earns": (gates.stubs_earn_nothing, CHECK, "2.0", "test_slope: 2 of 2 points for nothing"),
    "a stub crashes": (gates.stubs_earn_nothing, "at_three = slope(3.0)", "at_three = 1 / 0", "ZeroDivisionError"),
    "zeros earn on a function": (zeros, "[3.0, -1.5]", "[0.0]", "test_slope: 2 of 2 points for nothing"),
    "zeros earn on an engine": (zeros, "[2.0, 5.0], [5.0, 2.0]", "[0.0, 0.0], [0.0, 0.0]", "test_number: 3 of 3"),
    "random numbers earn on a function": (random_numbers, "if good else", "if good or slope(1.0) else", "test_slope"),
    "random numbers earn on an engine": (random_numbers, "== gradients\n", "!= [0.0, 0.0]\n", "test_number"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNSOUND)
def test_an_unsound_lesson_is_stopped_by_its_gate(name: str, make_lesson: Callable[[str], Lesson]) -> None:
    gate, old, new, expected = UNSOUND[name]
    assert old in TEXT
    _, problems = gate(make_lesson(TEXT.replace(old, new)))
    assert problems
    assert re.search(expected, problems[0]), problems


ASKS = TEXT.replace("import math\n", "import math\n\nfrom autograder.student import predict\n").replace(
    'print("after it:"', 'predict("How steep is it at three?", "6", "9")\nprint("after it:"'
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "problem"),
    [("f'{at_three:.0f}'", None), ("at_four", "no verdict on 'How steep"), ("7", "'7' is no answer to 'How steep")],
)
def test_a_prediction_gets_its_verdict(
    expression: str, problem: str | None, make_lesson: Callable[[str], Lesson]
) -> None:
    lesson = make_lesson(ASKS)
    (lesson.folder / "outcomes_01.toml").write_text(f'"How steep is it at three?" = "{expression}"\n')
    _, problems = gates.every_cell_runs(lesson)
    assert len(problems) == (problem is not None)
    assert not problem or problem in problems[0]


def draws_of(lesson: Lesson) -> tuple[dict[str, int], tuple[str, ...]]:
    """How often the gate on draws judges each test cell, and the problems that it finds."""
    gates.solved_gets_full_marks(lesson)
    judged: list[str] = []

    def judge(*arguments: Any, **options: bool) -> Any:
        verdict = small_judge(*arguments, **options)
        judged.extend(cell.grade_id.partition(",")[0] for cell in verdict.cells)
        return verdict

    lesson.judge = judge
    _, problems = gates.same_marks_for_all_draws(lesson)
    return {name: judged.count(name) for name in lesson.tests}, problems


IMPORTS = "import math\n\nfrom autograder.runs.context import current, tell\n"
DRAWING = TEXT.replace("import math\n", IMPORTS).replace("    good = ", "    tell(current())\n    good = ")
SEEDED = f"{CHECK} * (current().seed % 3 > 0)"  # full marks for two seeds of three


def test_every_cell_that_draws_inputs_is_drawn_again(make_lesson: Callable[[str], Lesson]) -> None:
    assert draws_of(make_lesson(DRAWING)) == ({"test_slope": 9, "test_number": 9}, ())


def test_an_author_reads_what_hidden_tests_say(make_lesson: Callable[[str], Lesson]) -> None:
    hiding = f"### BEGIN HIDDEN TESTS\nassert slope\n### END HIDDEN TESTS\n{CHECK}"
    lesson = make_lesson(TEXT.replace("return 2.0 * x", "return 2.1 * x").replace(CHECK, hiding))

    def judge(notebook: NotebookNode, *arguments: Any, **options: bool) -> Any:
        verdict = small_judge(notebook, *arguments, **options)
        hidden = any("HIDDEN TESTS" in cell.source for cell in notebook.cells)
        said = "A hidden test failed." if hidden else "The slope at 3 is 6."
        return SimpleNamespace(cells=[replace(cell, message=said) for cell in verdict.cells])

    lesson.judge = judge
    assert any("HIDDEN TESTS" in cell.source for cell in lesson.source.cells)
    _, problems = gates.solved_gets_full_marks(lesson)
    assert problems
    assert all(problem.endswith("points. The slope at 3 is 6.") for problem in problems)


def test_nothing_is_drawn_again_if_the_solution_has_not_earned_full_marks(
    make_lesson: Callable[[str], Lesson],
) -> None:
    found, problems = draws_of(make_lesson(TEXT.replace("return 2.0 * x", "return 2.1 * x")))
    assert set(found.values()) == {0}
    assert problems == ("not tried, because the solution does not get full marks",)


def test_a_cell_that_draws_nothing_runs_once(make_lesson: Callable[[str], Lesson]) -> None:
    fixed = DRAWING.replace(CHECK, "2.0 * (slope(3.0) == 6.0)")
    assert draws_of(make_lesson(fixed)) == ({"test_slope": 1, "test_number": 9}, ())


def test_a_cell_whose_marks_depend_on_the_seed_is_found(make_lesson: Callable[[str], Lesson]) -> None:
    _, problems = draws_of(make_lesson(DRAWING.replace(CHECK, SEEDED)))
    assert problems
    assert all(problem.startswith("test_slope") for problem in problems)


CHECKS_THAT_DRAW: dict[str, Callable[[], Any]] = {
    "gradients": lambda: check_gradients(lambda a: a * a, [(3,)], points=1, engine=Tensor),
    "by hand": lambda: check_handwritten_gradient(lambda a: 2 * a, lambda a: a * a, [()], points=1),
    "function": lambda: check_function(lambda a: 2 * a, lambda a: 2 * a, [(3,)], points=1),
    "tangents": lambda: check_tangents(lambda function, x, v: None, lambda a: a * a, [(3,)], points=1),
}


@pytest.mark.parametrize("name", CHECKS_THAT_DRAW)
def test_the_gate_is_told_of_every_check_that_draws(name: str) -> None:
    told: list[int | None] = []
    with check_context(5), listening(lambda context, asked: told.append(context.seed)):
        CHECKS_THAT_DRAW[name]()
    assert told == [5]


def test_a_gate_that_breaks_fails_and_hides_no_other(make_lesson: Callable[[str], Lesson]) -> None:
    lesson = make_lesson(TEXT)

    def broken(*_: object, **options: bool) -> None:
        raise RuntimeError("out of order")

    findings = {finding.gate: finding for finding in audit_lesson(lesson.text, lesson.course, broken)}
    assert "RuntimeError: out of order" in findings["solved: full marks"].problems[0]
    assert findings["solved: every cell runs"].passed


def test_no_marks_because_the_audit_itself_broke_is_no_pass(make_lesson: Callable[[str], Lesson]) -> None:
    lesson = make_lesson(TEXT)
    notebook = variants.zeroed(lesson.source)
    for cell in notebook.cells:
        if is_code_solution(cell):
            cell.source = cell.source.replace('_spoiling["spoil"]', '_spoiling["spoilt"]')
    _, problems = gates.earns_nothing(lesson, notebook)
    assert any("KeyError" in problem for problem in problems)


def test_zeros_keep_values_and_spoil_every_gradient(make_lesson: Callable[[str], Lesson]) -> None:
    notebook = variants.zeroed(make_lesson(TEXT).source)
    namespace: dict[str, Any] = {"__name__": "notebook"}
    for cell in notebook.cells:
        if is_code_solution(cell):
            exec(cell.source, namespace)
    assert namespace["slope"](3.0) == 0.0
    a, b = namespace["Number"](2.0), namespace["Number"](5.0)
    product = a * b
    product.backward()
    assert (product.data, a.grad, b.grad) == (10.0, 0.0, 0.0)


def test_a_check_beside_the_text_is_one_of_gradients_if_it_draws_inputs(make_lesson: Callable[[str], Lesson]) -> None:
    lesson = make_lesson(TEXT)
    assert lesson.gradient_tests == ["test_slope", "test_number"]
    checks = 'from autograder.checks.cases import Check\n\ncheck = Check("slope", points=2)\n'
    lesson.text.with_name("checks_01.py").write_text(f"{checks}check.function('slope', lambda x: 2 * x, [3.0])\n")
    lesson.text.write_text(re.sub(rf"# %%.*\n{re.escape(CHECK)}", '# %% check="slope"\n', TEXT))
    lesson.source = assemble(lesson.text)
    assert lesson.gradient_tests == ["test_slope", "test_number"]


def audit_of(lesson: Lesson) -> list[str]:
    """The audit command for this process, where the small judge is, with passed gates in a separate folder."""
    passed = lesson.course.parent / "passed"
    return ["audit", "--course", str(lesson.course), "--passed", str(passed), "--workers", "1"]


@pytest.mark.slow
def test_the_command_names_what_failed_and_writes_json(
    make_lesson: Callable[[str], Lesson], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(audit, "isolated_judge", lambda: small_judge)
    lesson = make_lesson(TEXT.replace("[3.0, -1.5]", "[0.0]"))
    report = tmp_path / "findings.json"
    command = audit_of(lesson)
    assert cli.main([*command, "--json", str(report)]) == 1
    output = capsys.readouterr().out
    assert "01_gates, zeros: no marks for gradients:\n  test_slope: 2 of 2 points for nothing" in output
    records = json.loads(report.read_text())
    assert {record["gate"]: record["passed"] for record in records}["zeros: no marks for gradients"] is False
    (lesson.text.parent / "01_gates.py").write_text('# %% tags=["nonsense"]\n1\n')
    assert cli.main([*command, "01"]) == 1
    assert "01_gates.py:1" in capsys.readouterr().out


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gates that ran, in order. The two real kernel runs are left out."""
    gates_that_ran: list[str] = []
    really = gates.finding_of

    def noting(lesson: Lesson, gate: str, function: gates.Gate) -> gates.Finding:
        gates_that_ran.append(gate)
        return really(lesson, gate, function)

    monkeypatch.setattr(gates, "finding_of", noting)
    monkeypatch.setattr(gates, "run_in_kernel", lambda notebook, folder: notebook)
    monkeypatch.setattr(gates, "validated", lambda cell: float(cell.metadata.nbgrader.points))
    monkeypatch.setattr(audit, "isolated_judge", lambda: small_judge)
    monkeypatch.delenv("CI", raising=False)
    return gates_that_ran


def gates_run_by(command: list[str], ran: list[str]) -> set[str]:
    """The gates that a run of the command runs."""
    ran.clear()
    cli.main(command)
    return set(ran)


def test_long_gates_of_an_unchanged_lesson_rest_on_what_passed_before(
    make_lesson: Callable[[str], Lesson], ran: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    lesson = make_lesson(WITH_FURTHER)
    command = audit_of(lesson)
    every = gates_run_by(command, ran)
    assert every > gates.RESTS
    capsys.readouterr()
    assert gates_run_by(command, ran) == every - gates.RESTS
    assert capsys.readouterr().out.count("kept") == len(gates.RESTS)
    assert gates_run_by([*command, "--all"], ran) == every
    monkeypatch.setenv("CI", "true")
    assert gates_run_by(command, ran) == every


def test_a_changed_line_of_a_lesson_runs_its_gates_again(make_lesson: Callable[[str], Lesson], ran: list[str]) -> None:
    lesson = make_lesson(TEXT)
    command = audit_of(lesson)
    every = gates_run_by(command, ran)
    assert gates_run_by([*command, "--changed"], ran) == set()
    lesson.text.write_text(TEXT.replace("return 2.0 * x", "return x * 2.0"))
    assert gates_run_by([*command, "--changed"], ran) == every
    assert gates_run_by([*command, "--changed"], ran) == set()
    lesson.text.write_text(TEXT)
    assert gates_run_by(command, ran) == every


def test_a_change_of_the_code_or_of_a_package_runs_the_gates_again(
    make_lesson: Callable[[str], Lesson], ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = audit_of(make_lesson(TEXT))
    every = gates_run_by(command, ran)
    monkeypatch.setattr(passed_gates, "_surroundings", lambda: b"another version")
    assert gates_run_by([*command, "--changed"], ran) == set()
    assert gates_run_by(command, ran) == every


def test_a_gate_that_failed_is_run_again(
    make_lesson: Callable[[str], Lesson], ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = audit_of(make_lesson(WITH_FURTHER))
    with monkeypatch.context() as broken:
        broken.setattr(gates, "crashes", lambda *_, **__: ["cell 3: NameError"])
        every = gates_run_by(command, ran)
        assert cli.main(command) == 1
    ran.clear()
    assert cli.main([*command, "--changed"]) == 0
    assert set(ran) == every - gates.RESTS | {gates.NOTHING_CRASHES}


def test_further_may_need_nothing_of_the_core_that_it_does_not_begin_with(
    make_lesson: Callable[[str], Lesson], ran: list[str], capsys: Any
) -> None:
    text = WITH_FURTHER.replace("at_three = slope(3.0)", "for last in [2.0]:\n    at_three = slope(last)")
    text = text.replace("a * b, [2.0,", "a * b, [last,")
    assert cli.main(audit_of(make_lesson(text))) == 1
    said = capsys.readouterr().out
    assert "13 of 14 gates passed" in said
    assert "01_gates, further: runs by itself, full marks:\n  test_number: 0 of 3 points" in said


def test_a_damaged_file_of_passed_gates_says_nothing(make_lesson: Callable[[str], Lesson], ran: list[str]) -> None:
    lesson = make_lesson(TEXT)
    every = gates_run_by(audit_of(lesson), ran)
    (lesson.course.parent / "passed" / "01_gates.json").write_text('{"gates": ')
    assert gates_run_by(audit_of(lesson), ran) == every


def test_gates_run_no_code_that_the_fingerprint_leaves_out() -> None:
    project = Path(autograder.__file__).parents[1]
    finder = ModuleFinder(path=[str(project)])
    for name in ("lessons.commands.audit", "lessons.audit.kernel_forkserver", "sandbox.inside.main", "student"):
        finder.import_hook(f"autograder.{name}")
    assert "autograder.lessons.audit.gates" in finder.modules
    places = [name.split(".") for name in finder.modules]
    assert [place for place in places if not passed_gates.NOT_RUN.isdisjoint(place)] == []


@pytest.mark.slow
def test_the_real_judge_passes_a_sound_lesson_and_stops_a_weak_one(course: Path, lesson: Path) -> None:
    (lesson.parent / "02_weak.py").write_text(
        lesson.read_text().replace("[3.0]", "[0.0]").replace("[-1.75]", "[0.0]").replace("quiz_01", "quiz_02")
    )
    findings = [
        finding for found in audit.audits([lesson, lesson.with_name("02_weak.py")], course, 1) for finding in found
    ]
    judged = [finding for finding in findings if "marks" in finding.gate]
    failed = {(finding.lesson, finding.gate): finding.problems for finding in judged if not finding.passed}
    assert len(judged) == 12
    assert failed == {("02_weak", "zeros: no marks for gradients"): ("test_slope: 3 of 3 points for nothing",)}
