"""Judges one notebook: runs student cells in the sandbox and test cells on this side against it, and writes the verdict
into the outputs.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from autograder.cards.check_report import Report
from autograder.judge.inside import run_inside
from autograder.judge.outside import mirroring
from autograder.judge.outside.namespace import TestNamespace, TrustedPath
from autograder.judge.outside.running import CellOutcome, Ran, run_test
from autograder.judge.seeds import seed_of
from autograder.judge.verdict import Verdict
from autograder.judge.writing.answers import STOPPED, troubles
from autograder.judge.writing.messages import cut, error_name, explain, said_by
from autograder.judge.writing.outputs import INSIDE, clean_student_outputs, printable, said_of_believed, verdict_outputs
from autograder.judge.writing.points import added_up, points_for_value
from autograder.notebooks.cells import CodeCell, code_cells
from autograder.notebooks.libraries import kind_for
from autograder.notebooks.regions import hidden_lines
from autograder.notebooks.statements import parse
from autograder.notebooks.trusted import TrustedNames, trusted_names
from autograder.notebooks.verdicts import CellVerdict
from autograder.runs.context import check_context
from autograder.sandbox.empty import empty_arrays_kept
from autograder.sandbox.process.limits import Limits
from autograder.sandbox.process.process import Start, start_confined
from autograder.sandbox.sandbox import Sandbox

HIDDEN_VALUE = "The hidden part of the test gave something that is not a number of points between 0 and {:g}."
UNSEEDED = functools.partial(seed_of, b"")
LONGEST_PRINT = 200  # characters of what a test printed; the page has the rest


def judge_notebook(
    notebook: Any,
    *,
    source: Any | None = None,
    seed: Callable[[str], int] = UNSEEDED,
    limits: Limits | None = None,
    files: Mapping[str, bytes] | None = None,
    start: Start | None = None,
    points_only: bool = False,
    inside: Collection[str] = (),
    undecided: Collection[str] = (),
    helpers: Path | None = None,
    student: str | None = None,
) -> Verdict:
    """Run and judge a notebook in place: the outputs of every code cell are rewritten.

    `notebook` is an nbformat v4 notebook with nbgrader metadata whose test cells are the instructor's, hidden tests
    included. `source` is the instructor's own notebook; with it, more names are known to be the instructor's. `seed`
    gives the seed of a test cell's random inputs, by its name; `files` are those that the notebook may read; `start`
    starts submissions' processes, which is otherwise done as `source` says. Raises SandboxUnavailable if one does not
    start; otherwise every test cell gets a verdict, whatever the notebook contains. With `points_only` the outputs will
    not be read, so one run is enough, and the search for causes of wrong answers is skipped. `inside` names test cells
    that run in the submission's process; `undecided` those of which nobody knows whether they have to: they run there
    too, and what they earn there counts if they do not earn more outside. `helpers` is a folder of the instructor's
    with modules that tests import. `student` is the name of the student who handed the notebook in.

    Tests run in this process, so a class is judged with `judge_apart`.
    """
    began = time.monotonic()
    sandboxes: list[Sandbox] = []
    how = start or functools.partial(start_confined, kind=kind_for(source))

    def started(draws: bool = False) -> Sandbox:
        for sandbox in sandboxes:
            sandbox.close()
        sandboxes.append(Sandbox(limits, files, how, draws))
        return stack.enter_context(sandboxes[-1])

    with contextlib.ExitStack() as stack:
        stack.enter_context(TrustedPath(helpers))
        stack.enter_context(check_context(student=student, explained=not points_only))
        cells = [cell for _, cell in code_cells(notebook)]
        if inside and _shows_all(cells, inside):
            scored = shown = run_inside(cells, started(draws=not points_only), inside)
        else:
            names = trusted_names(notebook, source)
            outside = functools.partial(_Pass, names=names, seed=seed, skipped=inside, helpers=helpers)
            shown = [] if points_only else outside(started(draws=True), visible_only=True).run(cells)
            is_all = bool(shown) and not any(ran.outcome and ran.outcome.met_hidden for ran in shown)
            tests = {cell.grade_id for cell in cells if cell.is_test}
            scored = shown if is_all else outside(started()).run(_up_to_last(tests - {*inside}, cells))
            there = {*inside, *_less_than_full(cells, scored, undecided)}  # the other undecided ones can gain nothing
            within = run_inside(_up_to_last(there, cells), started(), there) if there else []
            inside = {*inside, *_better_inside(cells, within, scored, undecided)}
            scored, shown = (_with_those(cells, within, ran, inside) for ran in (scored, shown or scored))
    verdict = Verdict(restarts=sum(sandbox.starts - 1 for sandbox in sandboxes))
    _write_outputs(verdict, notebook, source, shown, scored, inside)
    verdict.seconds = time.monotonic() - began
    return verdict


def _shows_all(cells: list[CodeCell], inside: Collection[str]) -> bool:
    """Whether a run inside decides every test and meets no hidden one, so that its outputs may be shown."""
    tests = [cell for cell in cells if cell.is_test]
    return all(cell.grade_id in inside and not hidden_lines(cell.source) for cell in tests)


def _up_to_last(tests: Collection[str], cells: list[CodeCell]) -> list[CodeCell]:
    """The cells up to the last of these tests: what comes after them cannot change how they go."""
    last = max((n for n, cell in enumerate(cells, 1) if cell.is_test and cell.grade_id in tests), default=0)
    return cells[:last]


def _less_than_full(cells: list[CodeCell], outside: list[Ran], undecided: Collection[str]) -> Iterator[str]:
    """The undecided tests that may earn more inside."""
    for cell, here in zip(cells, outside, strict=False):
        if cell.is_test and cell.grade_id in undecided:
            full = here.outcome is not None and _decide(cell, here.outcome, here.outcome, "")[2]
            if not full:
                yield cell.grade_id


def _better_inside(
    cells: list[CodeCell], within: list[Ran], outside: list[Ran], undecided: Collection[str]
) -> Iterator[str]:
    """The undecided tests whose result inside counts: those that earn more there. Of two failures, too, the one inside
    counts, because being outside may have caused the other.
    """
    for cell, there, here in zip(cells, within, outside, strict=False):
        if cell.is_test and cell.grade_id in undecided and there.outcome and here.outcome:
            more, points = (_decide(cell, outcome, outcome, "")[0] for outcome in (there.outcome, here.outcome))
            if more > points or not points:
                yield cell.grade_id


def _with_those(cells: list[CodeCell], within: list[Ran], outside: list[Ran], inside: Collection[str]) -> list[Ran]:
    """A result for each cell: those from outside, with those of the tests that were decided inside put in place."""
    within, outside = ([*ran, *[Ran()] * (len(cells) - len(ran))] for ran in (within, outside))
    results = zip(cells, within, outside, strict=True)
    return [there if cell.is_test and cell.grade_id in inside else here for cell, there, here in results]


def _write_outputs(
    verdict: Verdict,
    notebook: Any,
    source: Any | None,
    shown: list[Ran],
    scored: list[Ran],
    inside: Collection[str],
) -> None:
    """Write the shown outputs into the notebook, and each test cell's verdict into the notebook and `verdict`."""
    for (node, _), seen in zip(code_cells(notebook), shown, strict=True):
        node["execution_count"], node["outputs"] = None, seen.outputs
    before = troubles(notebook, source)  # read from the outputs, so before verdicts are written there
    for (node, cell), seen, ran in zip(code_cells(notebook), shown, scored, strict=True):
        if cell.is_test:
            first, second = seen.outcome or _not_run(), ran.outcome or _not_run()
            said = before.get(cell.grade_id, "")
            node["outputs"], judged = _judge(cell, first, second, said, cell.grade_id in inside)
            verdict.cells.append(judged)
            verdict.test_seconds.append(first.seconds + (second.seconds if second is not first else 0.0))
    for node, _ in code_cells(notebook):
        node["outputs"] = _of_kind(type(node), node["outputs"])


def _of_kind(kind: type, value: Any) -> Any:
    """A value whose dicts are of the kind that the notebook's own are: nbformat's nodes, or plain ones."""
    if kind is dict:
        return value
    if isinstance(value, dict):
        return kind({key: _of_kind(kind, part) for key, part in value.items()})
    return [_of_kind(kind, part) for part in value] if isinstance(value, list) else value


class _Pass:
    """One run through a notebook: every cell in order, in one sandbox, tests in one namespace."""

    def __init__(
        self,
        sandbox: Sandbox,
        names: TrustedNames,
        seed: Callable[[str], int],
        skipped: Collection[str],
        helpers: Path | None,
        visible_only: bool = False,
    ):
        self.sandbox, self.seed, self.skipped, self.visible_only = sandbox, seed, skipped, visible_only
        self.namespace = TestNamespace(sandbox, names, helpers)
        self.files = mirroring.Files(sandbox, helpers)

    def run(self, cells: list[CodeCell]) -> list[Ran]:
        with mirroring.seeds(self.sandbox), empty_arrays_kept(), contextlib.closing(self.files):
            return [self.cell(cell) for cell in cells]

    def _could_go_on(self, ran: Ran) -> Ran:
        """Return `ran`. If there was no sandbox to run the cell in, or none for all of it, raises the reason."""
        self.sandbox.require_undisturbed()
        return ran

    def cell(self, cell: CodeCell) -> Ran:
        if cell.is_test and cell.grade_id in self.skipped:
            return Ran()
        if cell.is_test:
            return self._could_go_on(Ran(outcome=self.test(cell)))
        if cell.is_demo or not cell.source.strip():
            return Ran()
        return self._could_go_on(self.student(cell))

    def student(self, cell: CodeCell) -> Ran:
        result = self.sandbox.execute(cell.source)
        self.namespace.forget(parse(cell.source))
        outputs = clean_student_outputs(result.outputs)
        if result.timed_out or result.died:
            outputs += clean_student_outputs([_error(STOPPED, result.error or "")])
        return Ran(outputs)

    def test(self, cell: CodeCell) -> CellOutcome:
        seconds = self.sandbox.limits.cell_seconds
        try:
            with self.files.shared(cell.source):
                return run_test(cell, self.namespace, self.seed(cell.grade_id), seconds, self.visible_only)
        except Exception as error:
            said = f"The test could not be run ({type(error).__name__})."
            return CellOutcome(error=TestNotRun(said), met_hidden=bool(hidden_lines(cell.source)))


class TestNotRun(Exception):  # noqa: N818
    """Our own code failed. The text says what failed, and nothing from the submission."""

    __test__ = False


def _not_run() -> CellOutcome:
    """The outcome of a test that was not run: it earns nothing."""
    return CellOutcome(error=TestNotRun("The test was not run."))


def _judge(
    cell: CodeCell, shown: CellOutcome, scored: CellOutcome, before: str, inside: bool
) -> tuple[list[Any], CellVerdict]:
    """Outputs and verdict of a test cell. Points come from the full run, messages from the run without hidden tests,
    except the message that a hidden test failed. `before`: what was wrong with the answer before the test began.
    """
    points, message, full = _decide(cell, shown, scored, _printed(shown, inside))
    if before and not full:
        message = cut(f"{before} {message}")
    weak = INSIDE if inside else said_of_believed(scored.believed)
    reports = _reports_of(shown, scored)
    cards, cards_text = _cards(reports)
    bugs = tuple(_certain_bugs(reports))
    judged = CellVerdict(cell.grade_id, points, cell.points, message, bugs=bugs, inside=bool(weak))
    name, printed = error_name(scored), shown.printed
    outputs = verdict_outputs(judged, name=name, printed=printed, cards=cards, cards_text=cards_text, weak=weak)
    return outputs, judged


def _decide(cell: CodeCell, shown: CellOutcome, scored: CellOutcome, printed: str) -> tuple[float, str, bool]:
    """Points, message, and whether these are full marks. `printed`: what the test printed, as a sentence."""
    if scored.error is not None:
        if not scored.failed_hidden and isinstance(shown.error, AssertionError) and not shown.text and printed:
            return 0.0, cut(f"{explain(shown)}. {printed}"), False
        if scored is shown or (scored.failed_hidden and shown.error is None):
            return 0.0, explain(scored), False
        return 0.0, explain(shown) if shown.error else "The test failed when it was run again.", False
    points, reason = points_for_value(added_up(scored.value, scored.reports, cell.points), cell.points)
    if reason:
        return points, HIDDEN_VALUE.format(cell.points) if scored.hidden_value else reason, False
    if points >= cell.points:
        return cell.points, "", True
    said = cut(f"{said_by(_reports_of(shown, scored))} {printed}")
    return points, said or f"{points:g} of {cell.points:g} points.", False


def _printed(shown: CellOutcome, inside: bool) -> str:
    """What a test printed, in one line, or the empty string: a test that counts points by itself prints its reasons.
    Inside, nobody can tell what the test printed from what the submission's code printed.
    """
    lines = (line.strip() for line in (shown.printed if inside else shown.printed_by_test).splitlines())
    text = "; ".join(filter(None, lines))
    return (
        cut(f"{'Printed while the test ran' if inside else 'The test printed'}: {text}", LONGEST_PRINT) if text else ""
    )


def _reports_of(shown: CellOutcome, scored: CellOutcome) -> list[Any]:
    """The reports of a cell's checks: those of the shown run, and hidden checks, which only the other run made."""
    if scored is shown:
        return scored.reports
    return [*shown.reports, *(report for report in scored.reports if getattr(report, "hidden", False))]


def _certain_bugs(reports: list[Any]) -> list[str]:
    """The names of the mistakes that the checks of a cell are certain of, each once."""
    names: dict[str, None] = {}
    for report in reports:
        if isinstance(report, Report) and report.certain:
            names |= dict.fromkeys(report.bugs)
    return list(names)


def _cards(reports: list[Any]) -> tuple[str, str]:
    """The reports of the checks in a cell as HTML and as text. They are made by us and escape what students say."""
    html, text = [], []
    for report in reports[:50]:
        with contextlib.suppress(Exception):
            html.append(str(report.html()))
            text.append(str(report.text()))
    return printable("\n".join(html)), printable("\n\n".join(text))


def _error(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": [text]}
