"""What a lesson's notebook imports: checks of gradients and functions, quizzes and hints.

    from autograder.student import between, check_gradients, positive

    check_gradients(lambda a, b: (a * b).tanh(), [(), ()])

The same calls run during grading; the only difference is which process holds the student's objects. A check without
points raises when something is wrong; a check with points returns the points earned.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from traceback import clear_frames
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any

from autograder.cards.check_report import Line, Report
from autograder.cards.credit import Credit
from autograder.checks.gradients import gradients_report
from autograder.checks.limits import limited, printed_in_short
from autograder.quizzes.sealing import is_held_back, open_questions
from autograder.quizzes.typed_quiz import Hints, quiz_report
from autograder.runs.context import current, is_alone
from autograder.runs.engine_protocol import ways_in_words
from autograder.runs.engines import prepare_torch_in_background, run_where_it_lives
from autograder.runs.errors import CheckFailed, LessonError, TookTooMuch
from autograder.runs.inputs import between, positive
from autograder.runs.ways import Adapter
from autograder.sandbox.inside.variants import Choice, chosen, plain_name

if TYPE_CHECKING:
    from autograder.bugs.breaking import BrokenEngine, Expression

__all__ = [
    "Adapter",
    "CheckFailed",
    "Credit",
    "LessonError",
    "between",
    "broken_engine",
    "check",
    "check_function",
    "check_gradients",
    "check_handwritten_gradient",
    "check_tangents",
    "expose",
    "hints",
    "how_it_works",
    "pack",
    "positive",
    "predict",
    "progress",
    "quiz",
    "start_lesson",
    "variant",
]

ENGINE = "MiniTensor"
NOT_YOURS = "{!r} handed this in, but it uses the variant of {!r}: use the name under which you hand in."
AGAIN = "The engine was reset to the start of this lesson. Now run every cell below this one."


def check_gradients(
    expression: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    inputs: Sequence[Any],
    *,
    points: float | None = None,
    engine: Any = None,
    name: str | None = None,
    accumulates: bool = True,
    at_kinks: str = "any",
    dtype: str | None = None,
) -> Credit | None:
    """Check values and gradients of an expression of tensors, on random inputs.

    `expression`: a function of tensors, or a dict of several by the names to show; each is right or wrong as a whole.
    `inputs`: for each argument a shape, fixed numbers, `between(low, high, shape)` or `positive(shape)`; or a list of
    such lists. `engine`: makes a tensor from a number or array; by default the notebook's `MiniTensor`. Any engine will
    do: its tensors keep their numbers in `.data` (or `.value`, `.numpy()`, ...) and their gradient in `.grad` (or
    `.gradient`, `.derivative`, ...), and have a `backward`, which may take the gradient of the output. If it takes
    none, the check multiplies the output by a number, or by a tensor and calls `sum()`, where the engine has these.
    An `Adapter` tells what cannot be found, and `how_it_works(engine)` says what was found.
    `accumulates`: also require that a second `backward` adds to `.grad`.
    `at_kinks`: "any" accepts every gradient between the one-sided derivatives; "PyTorch" accepts only PyTorch's, for
    exercises that state that convention. `dtype`: "float64", or "float32" to give the engine float32 arrays and allow
    for their rounding; by default "float64", and for a given `engine` the one that it keeps.

    With `points`, returns the points earned (each expression is worth the same). Without, shows the card, returns
    nothing, and raises CheckFailed if something is wrong.
    """
    try:
        found = _in_caller(sys._getframe(1), ENGINE) if engine is None else engine
    except NameError:
        return _finish(_missing(ENGINE, points), points)
    if engine is None and dtype is None:
        dtype = "float64"
    options = {"accumulates": accumulates, "at_kinks": at_kinks, "dtype": dtype}
    return _checked(gradients_report, found, expression, inputs, points=points, name=name, **options)


def how_it_works(engine: Any) -> str:
    """How a check works with an engine, in one line: how a leaf is made, where its numbers and its gradient are, how
    `backward` is called.
    """
    return str(run_where_it_lives(engine, ways_in_words))


def check_handwritten_gradient(
    function: Callable[..., Any],
    expression: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    points: float | None = None,
    name: str | None = None,
) -> Credit | None:
    """Check a function that returns the gradients of an expression, one per argument, calculated by hand.

    Each gradient is worth its share of the points.
    """
    from autograder.checks.functions import handwritten_report

    return _checked(handwritten_report, function, expression, inputs, points=points, name=name)


def check_function(
    function: Callable[..., Any],
    reference: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    points: float | None = None,
    name: str | None = None,
    tolerance: float | None = None,
) -> Credit | None:
    """Check that a function returns what a reference function returns, on random inputs; inputs may be functions.

    `tolerance` is relative to max(1, |right|). By default it follows from the conditioning of the reference.
    """
    from autograder.checks.functions import function_report

    return _checked(function_report, function, reference, inputs, points=points, name=name, tolerance=tolerance)


def check_tangents(
    jvp: Callable[..., Any],
    expression: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    inputs: Sequence[Any],
    *,
    points: float | None = None,
    name: str | None = None,
) -> Credit | None:
    """Check a forward-mode engine: a function `jvp(function, inputs, tangents)` that returns the value and its tangent,
    on random inputs and directions. `expression`, `inputs` and `points` are as in `check_gradients`.
    """
    from autograder.checks.tangents import tangents_report

    return _checked(tangents_report, jvp, expression, inputs, points=points, name=name)


def check(name: str, hidden: Any = None) -> Credit:
    """Check an exercise with the cases that lie beside the notebook: `check("06.held")` those of the name `held` in
    `checks_06.py`. You can read them there.

    `hidden` adds further cases, which the builder puts here and students do not get. Returns the points earned. Raises
    LessonError if there is no such check.
    """
    from autograder.checks.beside import check_named
    from autograder.checks.cases import run_check
    from autograder.checks.known import passed_checks

    names = sys._getframe(1).f_globals
    found, signatures = check_named(name)
    passed = passed_checks(name, names)
    signatures = signatures.ruled_out_by(passed.others())
    try:
        with _as_here():
            credit = run_check(found, names, current(), signatures, hidden)
    except TookTooMuch as error:
        credit = Credit(0.0, (_stopped(error, name),))
    passed.note(all(report.passed for report in credit.reports))
    finished = [_finish(report, report.points or 0.0) for report in credit.reports]
    return Credit(float(credit), tuple(report for each in finished if each is not None for report in each.reports))


def broken_engine(name: str) -> BrokenEngine:
    """The reference engine with the named bug from the bank, for `expose` and for `check_gradients(engine=...)`.

    Raises LessonError for a name that is not in the bank.
    """
    from autograder.bugs.breaking import broken

    return broken(name)


def expose(
    engine: BrokenEngine,
    expression: Expression,
    inputs: Sequence[Any],
    *,
    most: int | None = None,
    points: float | None = None,
) -> Credit | None:
    """Check that an example shows the bug of `broken_engine(name)`: a gradient differs from the right one.

    `expression`: a function of tensors, or a text such as "a * b + a" (in graded cells, because the student's functions
    cannot run on this side). `inputs`: numbers or arrays. `most`: the most operations that the example may have.
    """
    from autograder.bugs.breaking import exposure

    try:
        found = exposure(engine, expression, inputs)
        small = most is None or len(found.operations) <= most
        text = found.sentence() if small else f"{found.sentence()} The exercise allows at most {most} operations."
        line = Line(f"an example for {engine.bug.name}", "right" if found.exposed and small else "wrong", text)
    except LessonError as error:
        line = Line(f"an example for {engine.bug.name}", "wrong", str(error))
    return _finish(Report("Break it", (line,), (points or 0.0) * line.passed, points), points)


def quiz(answers: Any, sealed: str, *, points: float | None = None) -> Credit | None:
    """Score a quiz, question by question, and explain every chosen option. Never raises for a wrong answer.

    In a notebook it can also be answered with clicks, which write the letters into the cell with the answers. If the
    class holds the answers back, the letters are only recorded, and explained when they are graded.
    """
    if is_held_back(sealed):
        if current().graded:
            raise LessonError("the answers to this quiz are held back, and the gradebook does not contain them")
        points = None
    report = quiz_report(answers, sealed, points)
    current().reports.append(report)
    live = _clickable(answers, sealed, points)
    if points is not None:
        return Credit(report.earned, (report,), live)
    _show(report, live)
    return None


def hints(sealed: str) -> None:
    """Show the hints of an exercise, folded, each inside the one before it."""
    _show(Hints(sealed))


def start_lesson(sealed: str | None = None, *, own: bool | None = None) -> None:
    """Put the engine of the previous lessons into this notebook: its classes and functions, by their names.

    Your own engine is used if the notebook of the previous lesson is in the folder next to this one and passes its
    visible checks, otherwise the reference engine; one line says which, and why. Once you have begun the lesson,
    another line says what comes next. `own=True` insists on yours, `own=False` on the reference. The course has put the
    reference engine into the call (`sealed`); later calls in the same notebook can leave it out.
    """
    from autograder.lessons.student.starting import choose
    from autograder.sandbox.inside import engine_file

    if sealed is None and not engine_file.LAST:
        raise LessonError("first run the cell at the top of the notebook that calls start_lesson")
    engine = engine_file.LAST[0] if sealed is None else engine_file.open_engine(sealed)
    engine_file.LAST[:] = [engine]
    chosen = choose(engine, own, prepare=lambda: importlib.import_module("torch"))
    namespace = sys._getframe(1).f_globals
    again = ENGINE in namespace
    engine_file.define(chosen.source, chosen.filename, namespace)
    print(chosen.message)
    if again:
        print(AGAIN)
    progress(short=True)


def variant(question: str, choices: Sequence[Choice], student: str) -> Choice:
    """One of several numbers, texts or other values, always the same one for a question and a student.

    `student`: the name under which the student hands in. During grading it must be the name of the student who handed
    the notebook in. Otherwise the test fails and says so, so that students cannot use each other's variants. Raises
    CheckFailed.
    """
    owner = current().student
    if owner is not None and plain_name(owner) != plain_name(student):
        raise CheckFailed(NOT_YOURS.format(owner, student[:50]))
    return chosen(question, choices, student)


def predict(question: str, *options: str) -> None:
    """Ask for a prediction of what this cell shows, and cover the output until there is one. It is not graded.

    With `options` you choose one of them; without, you type a number, a shape or a word. The prediction stays in the
    notebook. When the cell has run, it gets a verdict, if the lesson says what answers the question. Shows nothing
    outside notebooks.
    """
    if current().graded or not _in_notebook():
        return
    from IPython import get_ipython
    from IPython.display import display

    from autograder.lessons.student.outcomes import tell_when_done
    from mini_autograd.widgets.prediction import prediction

    asked = prediction(question, *options)
    display(asked)
    tell_when_done(asked, get_ipython(), Path.cwd())


def progress(*, short: bool = False) -> None:
    """Show how far you have come in all lessons, as the saved notebooks say. Runs nothing.

    `short`: one line about this lesson only, or none if you have not begun it.
    """
    from autograder.lessons.student.progress import progress_of

    found = progress_of(Path.cwd())
    if not short:
        _show(found)
    elif found.so_far:
        print(found.so_far)


def pack() -> None:
    """Show a button that saves one file with all your notebooks and your engine: to hand in, or to go on elsewhere.

    Outside notebooks the file is written into the working directory. Raises LessonError if there are no lessons.
    """
    if current().graded:
        return
    from autograder.lessons.student.packing import PACKED, PackingError
    from autograder.lessons.student.packing import pack as packed

    if _in_notebook():
        from IPython.display import display

        from autograder.lessons.student.pack_button import PackButton

        display(PackButton(Path.cwd()))
        return
    try:
        Path(PACKED).write_bytes(packed(Path.cwd()))
    except PackingError as error:
        raise LessonError(str(error)) from None
    print(f"Your lessons are in {Path(PACKED).resolve()}.")


def _in_caller(frame: FrameType, name: str) -> Any:
    """What a name means where the check was called. Raises NameError."""
    return eval(name, frame.f_globals, frame.f_locals)


def _missing(name: str, points: float | None) -> Report:
    text = f"`{name}` is not defined: run the cell that defines it first"
    return Report("Gradients", (Line(name, "wrong", text),), 0.0, points)


def _checked(
    make: Callable[..., Report], *asked: Any, points: float | None, name: str | None, **options: Any
) -> Credit | None:
    """Make the report of a check, and finish it."""
    try:
        with _as_here():
            report = make(*asked, current(), points=points, name=name, **options)
    except TookTooMuch as error:
        report = _stopped(error, name or "Gradients", points)
    return _finish(report, points)


@contextmanager
def _as_here() -> Iterator[None]:
    """Where a check runs: numbers are printed in short, and on a laptop what a learner's code may use is limited."""
    with printed_in_short(), limited() if is_alone() else nullcontext():
        yield


def _stopped(error: TookTooMuch, title: str, points: float | None = None) -> Report:
    """The report of a check that was stopped. Raises the error if somebody around the check takes care of it."""
    if not is_alone():
        raise error
    clear_frames(error.__traceback__)  # they hold what filled the memory
    return Report(title, (Line("your code", "wrong", error.said),), 0.0, points)


def _finish(report: Report, points: float | None) -> Credit | None:
    """Return the report as credit if there are points; otherwise show it, and raise CheckFailed if it failed. Outside
    notebooks the whole card is the text of the error, which pytest shows in any editor.
    """
    if not report.passed and _is_of_older_code():
        report = report.without_cause()
    if not report.passed and _is_first_try(report.title):
        report = replace(report, asks_first=True)
    current().reports.append(report)
    if not report.passed and report.on_the_graph and _in_notebook():
        _show_after_the_cell(report.on_the_graph)
    if points is not None:
        return Credit(report.earned, (report,))
    in_its_error = not report.passed and not _in_notebook() and not current().graded
    if not in_its_error:
        _show(report)
    if not report.passed:
        raise CheckFailed(report.text() if in_its_error else report.error)
    return None


def _show_after_the_cell(make: Callable[[], Any]) -> None:
    """Show what `make` returns, below everything else that this cell shows."""
    shell = sys.modules["IPython"].get_ipython()

    def show(*_: Any) -> None:
        from IPython.display import display

        shell.events.unregister("post_run_cell", show)
        if (made := make()) is not None:
            display(made)

    shell.events.register("post_run_cell", show)


def _is_of_older_code() -> bool:
    """Whether this cell tests an exercise whose cell did not run as it is now; the page has said so already."""
    if current().graded or not _in_notebook():
        return False
    exercises = getattr(sys.modules["IPython"].get_ipython(), "_autograder_exercises", None)
    return exercises is not None and bool(exercises.stale)


def _is_first_try(title: str) -> bool:
    """Whether this is the first run of this cell, in this kernel, that shows a failed check with this title."""
    if current().graded or not _in_notebook():
        return False
    cells = sys.modules["IPython"].get_ipython().user_ns["In"]
    return _FAILED_FIRST.setdefault((cells[-1], title), len(cells)) == len(cells)


_FAILED_FIRST: dict[tuple[str, str], int] = {}
"""The number of the run in which a check failed first, by the source of its cell and the title of its card: all cards
of one run ask first, or none."""


def _clickable(answers: Any, sealed: str, points: float | None) -> dict[str, Any]:
    """The MIME bundle of a clickable quiz; empty during grading, outside notebooks, and without the widget library."""
    if current().graded or not _in_notebook() or type(answers) is not dict:
        return {}
    try:
        from autograder.quizzes.quiz_widget import QuizWidget
    except ImportError:
        return {}

    def renewed() -> dict[str, str]:
        now = quiz_report(answers, sealed, points)
        if points is None:
            return {"text/html": now.html(), "text/plain": now.text()}
        return Credit(now.earned, (now,)).still()

    questions = open_questions(sealed)
    return QuizWidget(questions, answers, renewed).bundle() if questions else {}


def _show(shown: Any, live: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Show something as HTML in a notebook (or live there), and as text elsewhere."""
    if _in_notebook():
        from IPython.display import display

        html = shown._repr_html_() if isinstance(shown, Hints) else shown.html()
        text = repr(shown) if isinstance(shown, Hints) else shown.text()
        display({"text/html": html, "text/plain": text, **live}, raw=True)
    elif not current().graded:
        print(repr(shown) if isinstance(shown, Hints) else shown.text())


def _in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel, without importing IPython if it is not loaded."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


if _in_notebook():
    prepare_torch_in_background()


def _prepare_notebook() -> None:
    """In a notebook only: have its shell confirm assertions that hold, and show some kinds of errors in few lines."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if hasattr(shell, "kernel"):
        from autograder.lessons.student.shell import prepare

        prepare(shell)


_prepare_notebook()
