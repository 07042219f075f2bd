"""`start_lesson` on a laptop: the student's own engine from the notebook of the last lesson that the student has begun,
if it passes that notebook's visible checks, else the reference engine. What later lessons add, which the student has
skipped, comes from the reference.

The student's engine is tried in a namespace of its own and under a time limit, so that no mistake in it can stop the
next lesson. If it is chosen, it is written to engine.py beside the lesson; otherwise a file written earlier is removed.
The folder is handed in, and the same engine has to run when it is graded.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.checks.beside import check_named
from autograder.checks.limits import limited
from autograder.lessons.builder.lesson_files import FURTHER
from autograder.lessons.builder.names import completed, is_of_course
from autograder.notebooks.cells import DEMO, grade_id, has_tag, is_grade
from autograder.notebooks.headings import titles
from autograder.notebooks.magics import plain_python
from autograder.notebooks.regions import SOLUTION, edges
from autograder.notebooks.statements import parse
from autograder.runs.context import check_context
from autograder.runs.errors import TookTooMuch
from autograder.sandbox.inside import engine_file
from autograder.sandbox.inside.engine_file import EngineCell, EngineError, SealedEngine
from mini_autograd.system import SLOWER

CASES = re.compile(r"^check\(\s*\"([\w.]+)\"", re.MULTILINE)
STUB = "raise NotImplementedError"  # what an exercise holds until a student replaces it
SECONDS = 20.0 * SLOWER  # for all checks of the student's engine; they take about one second
INSIST = "To use yours anyway, run start_lesson(own=True)."
GONE = "the test cell `{}`, which is no longer in your notebook"
HELD_BACK = (
    "This class gives out the reference engine of lesson {number} later, as {file}. Finish lesson {number}, or put "
    "that file into the folder {folder} once you have it. Then run this cell again."
)


@dataclass(frozen=True)
class Chosen:
    """The engine that a lesson uses: its source, the name of its file in tracebacks, and a line that says why."""

    source: str
    filename: str
    message: str


def choose(engine: SealedEngine, own: bool | None, prepare: Callable[[], object] = lambda: None) -> Chosen:
    """Choose the engine, and write or remove engine.py. `own`: insist on the student's, or (False) on the reference.

    `prepare` is called before the time for checks begins. Raises EngineError if the reference is needed but held back.
    """
    folder = lesson_folder(engine)
    file = folder / engine_file.FILE
    missing = ""
    if engine.is_held_back:
        try:
            engine = replace(engine_file.read_reference(folder, engine.after), start_of=engine.start_of)
        except EngineError as error:
            missing = str(error)
    try:
        last = _last_begun(engine, folder.parent)
        source, failed = _own_engine(engine, last, folder, own, prepare)
    except EngineError as error:
        with contextlib.suppress(FileNotFoundError, OSError, EngineError):
            engine_file.read_file(file, engine.after)  # only a file that start_lesson wrote is taken away
            file.unlink()
        hint = f" {INSIST}" if isinstance(error, NotYetError) and not own else ""
        if missing:
            later = HELD_BACK.format(number=engine.number, file=engine_file.REFERENCE_FILE, folder=folder.name)
            raise EngineError(f"There is no engine to continue with: {error}, and {missing}.{hint} {later}") from None
        message = f"Using the reference engine of lesson {engine.number}: {error}.{hint}"
        return Chosen(engine.source, engine_file.reference_name(engine), message)
    text = engine_file.file_text(source, engine.after)
    message = f"Using your own engine of lesson {last[:2]}."
    if skipped := [name[:2] for name in _lessons(engine, last) if name != last]:
        message += f" What lesson {', '.join(skipped)} adds comes from the reference: you have not begun it."
    if failed:
        message += f" It does not pass these checks yet, so later checks may mislead: {failed}."
    if not _written(file, text):
        message += f" {file.name} could not be written here, so it will not be handed in with this notebook."
    return Chosen(text, str(file), message)


class NotYetError(EngineError):
    """The student has an engine, but it is not finished."""


def lesson_folder(engine: SealedEngine) -> Path:
    """The folder of the lesson that starts: the working directory, or the lesson's folder inside it."""
    here = Path.cwd()
    inside = here / engine.start_of
    return inside if here.name != engine.start_of and inside.is_dir() else here


@dataclass(frozen=True)
class _Notebook:
    """A student's notebook: its path and its code cells."""

    path: Path
    cells: list[dict[str, Any]]

    def has_begun(self, engine: SealedEngine) -> bool:
        """Whether the student has written something of what this lesson adds to an engine."""
        written = {grade_id(cell): _source(cell) for cell in self.cells}
        own = [written.get(part.cell, STUB) for part in engine.cells if part.lesson == self.path.stem and part.solution]
        return any(STUB not in source for source in own)


def _lessons(engine: SealedEngine, first: str = "") -> list[str]:
    """The lessons whose cells make up an engine, in order; from the `first` on, if it is given."""
    names = list(dict.fromkeys(part.lesson for part in engine.cells))
    return names[names.index(first) :] if first else names


def _last_begun(engine: SealedEngine, folder: Path) -> str:
    """The last lesson that the student has begun; if there is none, the last one of all."""
    for name in reversed(_lessons(engine)):
        with contextlib.suppress(EngineError):
            if _begun(engine, folder, name).has_begun(engine):
                return name
    return engine.after


def _own_source(
    engine: SealedEngine, parts: Sequence[EngineCell], notebook: _Notebook, unfinished: Sequence[EngineCell] = ()
) -> str:
    """The student's engine: the one that a notebook began with, plus `parts` as the notebook has them. The reference's
    solutions replace `unfinished` ones, and those of later lessons. Raises EngineError.
    """
    written = {grade_id(cell): _source(cell) for cell in notebook.cells}
    sources = [_base(engine, notebook.path)]
    for part in parts:
        is_here = part.lesson == notebook.path.stem
        if not part.solution or not is_here or part in unfinished:
            if not part.source and not is_here:
                raise EngineError(f"the reference engine of lesson {part.lesson[:2]} is not here yet")
            sources.append(part.source)
        elif part.optional and part.cell not in written:
            sources.append(part.source)
        elif part.cell in written:
            sources.append(_without_helpers(_valid(written[part.cell], part.cell)))
        else:
            raise EngineError(f"your notebook of lesson {part.lesson[:2]} no longer has the cell {part.cell!r}")
    others = [_without_helpers(other) for other in _others(notebook.cells) if _is_python(other)]
    return completed(engine_file.join(filter(None, sources)), others)


def _valid(source: str, cell: str) -> str:
    """The source of a cell that the student wrote. Raises EngineError with the place if it is not valid Python."""
    try:
        compile(source, cell, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise EngineError(f"yours is not valid Python in the cell `{cell}`{line}: {error.msg}") from error
    return source


def _is_python(source: str) -> bool:
    try:
        compile(source, "<cell>", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _own_engine(
    engine: SealedEngine, last: str, folder: Path, own: bool | None, prepare: Callable[[], object]
) -> tuple[str, str]:
    """The student's engine, and the checks that it fails if the student insists on it. `last`: the last lesson begun.

    Its checks decide, tried on the engine as that lesson leaves it: what comes later may change a part of it.
    """
    if own is False:
        raise EngineError("as you asked")
    notebook = _begun(engine, folder.parent, last)
    later = _lessons(engine, last)
    parts = [part for part in engine.cells if part.lesson in later]
    here = [part for part in parts if part.lesson == last]
    needed = (name for part in here if not part.optional for name in part.checks)
    checks = engine.checks if last == engine.after else tuple(needed)
    source = _own_source(engine, here, notebook)
    with contextlib.suppress(ImportError):
        prepare()
    try:
        with limited(SECONDS), _silently(), _importable(notebook.path.parent):
            core = _own_source(engine, [part for part in here if not part.optional], notebook)
            namespace = _defined(engine, core)
            failed = _failing_in_time(checks, notebook, namespace, bool(own))
            if not failed or own:
                exercises = [part for part in here if part.optional and part.checks and not own]
                source = _with_optional(engine, parts, notebook, exercises)
    except TookTooMuch:
        raise NotYetError(f"the checks of your engine did not finish within {SECONDS:g} seconds") from None
    except EngineError:
        raise
    except (Exception, SystemExit) as error:
        said = ": ".join(filter(None, (type(error).__name__, str(error))))
        raise NotYetError(f"yours does not run ({said})") from error
    if failed and not own:
        raise NotYetError(f"yours does not pass these checks yet: {_named(failed, notebook.path)}")
    return source, _named(failed, notebook.path) if failed else ""


def _with_optional(
    engine: SealedEngine, parts: Sequence[EngineCell], notebook: _Notebook, optional: Sequence[EngineCell]
) -> str:
    """The student's whole engine: of `optional` exercises, the solutions that pass their checks, and the reference's in
    place of the others.
    """
    try:
        source = _own_source(engine, parts, notebook)
        namespace = _defined(engine, source)
        unfinished = [part for part in optional if failing_checks(part.checks, notebook.cells, namespace)]
    except (Exception, SystemExit):
        if not optional:
            raise
        unfinished = list(optional)
    if unfinished:
        source = _own_source(engine, parts, notebook, unfinished)
        _defined(engine, source)
    return source


def _failing_in_time(checks: Sequence[str], notebook: _Notebook, namespace: dict[str, Any], own: bool) -> list[str]:
    """The checks that an engine fails: all, if they take too long and the student insists on it (`own`)."""
    try:
        return failing_checks(checks, notebook.cells, namespace)
    except TookTooMuch:
        if own:
            return list(checks)
        raise


def _defined(engine: SealedEngine, source: str) -> dict[str, Any]:
    """A namespace in which a student's engine has run."""
    namespace = engine_file.scratch()
    engine_file.define(source, f"<your engine of lesson {engine.number}>", namespace)
    return namespace


def _named(checks: list[str], notebook: Path) -> str:
    """The headings above these checks in the notebook, each named once; and the checks that are no longer in it."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    found, there = titles(cells), set(map(grade_id, cells))
    names = [found.get(check, f"`{check}`") if check in there else GONE.format(check) for check in checks]
    return "; ".join(dict.fromkeys(names))


def failing_checks(checks: Sequence[str], cells: list[dict[str, Any]], namespace: dict[str, Any]) -> list[str]:
    """The visible checks, by grade_id, that the engine in a namespace does not pass."""
    tests = {grade_id(cell): _source(cell) for cell in cells}
    others = _others(cells, tests=True)
    return [name for name in checks if not _passes(tests.get(name, "raise"), others, namespace)]


def _passes(test: str, others: list[str], namespace: dict[str, Any]) -> bool:
    """Whether a test cell raises nothing, and none of the checks in it finds anything wrong."""
    try:
        needed = {name for called in CASES.findall(test) for name in check_named(called)[0].needed()}
        source = completed(test, others, namespace, needed)
        with check_context() as context:
            engine_file.define(source, "<visible checks>", namespace)
        return all(report.passed for report in context.reports)
    except Exception:
        return False


def _base(engine: SealedEngine, notebook: Path) -> str:
    """The engine that a notebook began with: engine.py in its folder, else the reference."""
    lessons = _lessons(engine)
    before = lessons[: lessons.index(notebook.stem)]
    if not before:
        return ""
    try:
        return engine_file.read_file(notebook.with_name(engine_file.FILE), before[-1]).partition("\n")[2]
    except (FileNotFoundError, EngineError):
        if engine.is_held_back:
            return engine_file.read_reference(notebook.parent, before[-1]).source
        return engine_file.join(part.source for part in engine.cells if part.lesson in before)


def _begun(engine: SealedEngine, folder: Path, lesson: str) -> _Notebook:
    """A lesson's notebook with the cells of the one of its optional part, if that is there and not what starts now.
    Raises EngineError.
    """
    core, further = _notebook(folder, lesson), f"{lesson}{FURTHER}"
    if further != engine.start_of:
        with contextlib.suppress(EngineError):
            return replace(core, cells=[*_notebook(folder, further).cells, *core.cells])
    return core


def _notebook(folder: Path, lesson: str) -> _Notebook:
    """A lesson's notebook. Raises EngineError if it is not there, or is not a student's."""
    notebook = folder / lesson / f"{lesson}.ipynb"
    try:
        cells = [
            cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
        ]
        sources = [_source(cell) for cell in cells]
    except FileNotFoundError:
        raise EngineError(f"your notebook {notebook.name} is not in the folder beside this one") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise EngineError(f"your notebook {notebook.name} cannot be read") from None
    if any(edge.kind == SOLUTION for source in sources for edge in edges(source)):
        raise EngineError(f"{notebook.name} beside this one is the instructor's")
    return _Notebook(notebook, cells)


def _others(cells: list[dict[str, Any]], tests: bool = False) -> list[str]:
    """The cells whose imports, functions and values an engine, or a check, may use: no demos, tests only for tests."""
    return [_source(cell) for cell in cells if not has_tag(cell, DEMO) and (tests or not is_grade(cell))]


def _without_helpers(source: str) -> str:
    lines = source.splitlines()
    for statement in reversed(parse(source)):
        if is_of_course(statement):
            del lines[statement.lineno - 1 : statement.end_lineno]
    return "\n".join(lines)


def _source(cell: dict[str, Any]) -> str:
    """The source of a cell as Python: `%%time` and the like are IPython's."""
    return plain_python("".join(cell["source"]))[0]


def _written(file: Path, text: str) -> bool:
    try:
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    except (OSError, ValueError):
        return False
    return True


@contextlib.contextmanager
def _silently() -> Iterator[None]:
    """Discard what the checks print or display."""
    if "IPython" in sys.modules:
        from IPython.utils.capture import capture_output

        with capture_output():
            yield
    else:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Inside the block, the helpers of the previous lesson can be imported: its checks may use them."""
    sys.path.insert(0, str(folder))  # before any other module of that name
    try:
        yield
    finally:
        sys.path.remove(str(folder))
