"""A sandbox as the judge uses it: run cells, look names up, ask objects. If its process is lost, it is restarted and
the cells are replayed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from autograder.sandbox import errors
from autograder.sandbox.empty import from_submission
from autograder.sandbox.files import ChangedFiles, KnownFiles, files_in
from autograder.sandbox.handles import (
    CLASSES_LIMIT,
    Handle,
    Reference,
    change_handle_class,
    declare,
    is_handle,
    make_handle,
    make_handle_class,
    reference,
)
from autograder.sandbox.inside.values import Decoder, Malformed
from autograder.sandbox.port import Referring
from autograder.sandbox.process.allowance import ASLEEP, Allowance, Usage, usage_of_this_thread
from autograder.sandbox.process.limits import (
    Limits,
    NotAnswered,
    SandboxDied,
    SandboxError,
    SandboxLost,
    SandboxUnavailable,
)
from autograder.sandbox.process.process import Start, StudentProcess, start_confined
from autograder.sandbox.replies import builtin_class, names_in, places_in, print_again
from autograder.sandbox.travel import (
    ACTING_MODULES,
    REAL_MODULES,
    encode_arguments,
    is_module_function,
    not_rebuilt,
    pickled_function,
    put_back,
    stale,
    take_our_modules_along,
)

CELL_DIED = "The cell stopped the notebook's process: "
READING = {"lookup", "names", "nothing"}  # questions that run no code of the submission
ON_OBJECTS = {"bind", "apply", "run", "base"}  # questions whose arguments may be objects of the process


@dataclass
class CellResult:
    """The result of running a cell: nbformat output dicts as the student's side sent them, and what went wrong, if
    anything.
    """

    outputs: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    died: bool = False
    timed_out: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class _Cell:
    source: str
    seconds: float


class Mirror(Protocol):
    """A folder on this side with the files of the sandbox's working directory."""

    def send(self) -> None:
        """Send to the sandbox what has changed here."""

    def known(self) -> KnownFiles:
        """Which of the sandbox's files are here, and how many bytes of others there is room for."""

    def take(self, changed: ChangedFiles) -> None:
        """Apply the changes from the sandbox."""


class Sandbox:
    """One submission's process and the references to its objects.

    `files` are written into the working directory. `start` starts its process. `draws` says whether the outputs of
    cells have pictures. Raises SandboxUnavailable when student code cannot be isolated here.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        files: Mapping[str, bytes] | None = None,
        start: Start = start_confined,
        draws: bool = True,
    ):
        self.limits = limits or Limits()
        self.start = start
        self.draws = draws
        self.files = files or {}
        self.notes: list[str] = []
        self.allowance: Allowance | None = None  # for all questions of a test cell together
        self.mirror: Mirror | None = None  # of the files in the working directory, kept up to date by each question
        self.before_question: Callable[[], None] | None = None
        self._asking = threading.RLock()
        self.used = 0.0
        self.acts = 0  # how often code of the submission may have run
        self.starts = 0
        self.generation = 0
        self._cells: list[_Cell] = []
        self._request = 0
        self._held: Counter[int] = Counter()  # how many references there are to each number
        self._released: list[int] = []  # numbers that had none left; one may have come back since
        self._process: StudentProcess | None = None
        self.failure: SandboxUnavailable | OSError | None = None  # why there is no process; not the submission's fault
        self._begin()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and everything it started."""
        if self._process is not None:
            self._process.kill()

    # What the judge asks

    def execute(self, source: str, seconds: float | None = None) -> CellResult:
        """Run one cell. An endless cell is interrupted. If a cell ends the process, a new process runs the cells before
        it again.
        """
        limit = self.limits.cell_seconds if seconds is None else seconds
        self.prepare()
        began = time.monotonic()
        try:
            reply, _, late = self._ask({"do": "execute", "source": source, "draw": self.draws}, (), limit)
        except SandboxDied as error:
            return CellResult(error=f"{CELL_DIED}{error}.", died=True, seconds=time.monotonic() - began)
        took = time.monotonic() - began
        outputs = reply.get("outputs")
        result = CellResult(
            [o for o in outputs if isinstance(o, dict)] if isinstance(outputs, list) else [], seconds=took
        )
        if late:
            result.timed_out = True
            result.error = f"The cell ran for more than {limit:g} seconds and was interrupted."
        else:
            self._cells.append(_Cell(source, took))
            result.error = "The cell raised an exception." if reply.get("failed") else None
        return result

    def lookup(self, name: str) -> Any:
        """The value of a name in the notebook: plain, a handle, or an exception class to stand for the student's.
        Raises NameError.
        """
        return self._answer({"do": "lookup", "name": name})

    def names(self) -> list[str]:
        """The names that the notebook has bound, except IPython's own."""
        found = self._answer({"do": "names"})
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []

    def bind(self, name: str, *value: Any) -> None:
        """Bind a name of the notebook to a value, or delete the name if there is no value."""
        codes, encoder = encode_arguments(self, list(value))
        self._answer({"do": "bind", "name": name, "args": codes}, encoder.buffers)

    def apply(self, operation: str, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """Apply an operator or builtin, by name, in the sandbox."""
        kwargs = kwargs or {}
        everything = [*args, *kwargs.values()]
        codes, encoder = encode_arguments(self, everything)
        request: dict[str, Any] = {"do": "apply", "name": operation, "args": codes[: len(args)]}
        if kwargs:
            request["kwargs"] = dict(zip(kwargs, codes[len(args) :], strict=True))
        return self._answer(request, encoder.buffers, everything, encoder.parts)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an object. If a test calls a class of the submission by its name, the new object counts as declared (see
        `handles.py`).
        """
        result = self.apply("call", (function, *args), kwargs)
        if is_handle(result) and reference(function).constructor:
            declare(result)
        return result

    def run(self, function: Callable[..., Any], target: Any, *args: Any) -> Any:
        """Run a trusted function over there, with an object of the submission as first argument. The answer cannot be
        trusted.
        """
        if not is_module_function(function):
            codes, encoder = encode_arguments(self, [function, target, *args])
            return self._answer({"do": "run", "args": codes}, encoder.buffers)
        self._ready_process()
        if function not in self._functions:
            take_our_modules_along()
        codes, encoder = encode_arguments(self, [target, *args])
        number = self._functions.get(function)
        request: dict[str, Any] = {"do": "run", "args": codes, "function": number}
        if number is None:
            request.update(function=len(self._functions), code=len(encoder.buffers))
            encoder.buffers.append(pickled_function(function))
        value = self._answer(request, encoder.buffers)
        self._functions.setdefault(function, request["function"])  # it has arrived: there was an answer
        return value

    def base_value(self, ref: Referring) -> Any:
        return self._answer({"do": "base", "number": self.number_of(ref)})

    def changed_files(self, known: KnownFiles) -> ChangedFiles:
        """What has changed in the working directory."""
        reply, buffers, _ = self._ask({"do": "nothing", "mirror": known}, (), self.limits.query_seconds)
        return files_in(reply, buffers)

    def write_files(self, files: dict[str, bytes], remove: Sequence[str] = ()) -> None:
        """Write and remove files in the working directory."""
        request = {"do": "files", "names": list(files), "remove": list(remove)}
        self._ask(request, list(files.values()), self.limits.query_seconds)

    def note(self, text: str) -> None:
        """Note something that may explain a failed test later."""
        if len(self.notes) < 20:
            self.notes.append(text)

    # References

    def number_of(self, ref: Referring) -> int:
        if ref.sandbox is not self or ref.generation != self.generation:
            raise stale()
        return ref.number

    def hold(self, ref: Referring) -> None:
        """Count a reference. The same object may arrive again while an older reference to it exists."""
        if ref.generation == self.generation:
            self._held[ref.number] += 1

    def release(self, ref: Referring) -> None:
        """Count a reference as gone. Python may call this at any time, even between receiving and reading an answer."""
        if ref.generation == self.generation:
            self._held[ref.number] -= 1
            if not self._held[ref.number]:
                del self._held[ref.number]
                self._released.append(ref.number)

    def handle_of(self, ref: Referring) -> Handle:
        """The handle for an object known by reference only, such as a raised exception."""
        return self._apply_known(ref)

    def is_exception_proxy(self, value: object) -> bool:
        kind = value if isinstance(value, type) else type(value)
        return issubclass(kind, errors.RemoteError) and getattr(value, "student_reference", None) is not None

    # Inside

    def _begin(self) -> None:
        self.generation += 1
        self.starts += 1
        self._released, self._held = [], Counter()
        self._handles: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
        self._classes: dict[int, tuple[type[Handle], str | None]] = {}
        self._exceptions: dict[int, type[BaseException]] = {}
        self._functions: dict[Callable[..., Any], int] = {}  # those that the process has, with their numbers there
        self.close()  # whatever interrupted the last exchange may have interrupted this too
        with self._failures_kept():
            try:
                self._process = StudentProcess(self.limits, self.start)
            except OSError as error:
                self.failure = error
                raise
        self._fresh = True

    def require_undisturbed(self) -> None:
        """Raise the reason if the submission cannot be judged, for a reason that does not lie with it."""
        if self.failure is None and self._process is not None and self._process.disturbed_by:
            self.failure = SandboxLost(self._process.disturbed_by)
        if self.failure is not None:
            raise self.failure

    def prepare(self) -> None:
        """Have a process ready, so that a restart does not use up the time of a cell or test."""
        with contextlib.suppress(SandboxError), self._failures_kept():
            self._ready_process().wait_until_ready()

    @contextlib.contextmanager
    def _failures_kept(self) -> Iterator[None]:
        """Keep SandboxUnavailable in `failure`: a test may catch it and go on, but the submission cannot be judged."""
        try:
            yield
        except SandboxUnavailable as error:
            self.failure = error
            raise

    def _ready_process(self) -> StudentProcess:
        """The process, with the cells run so far replayed if it is a new one."""
        if self.failure is not None:
            raise self.failure
        if self._process is None or self._process.has_ended():
            self.require_undisturbed()
            if self.starts > self.limits.restarts:
                raise SandboxDied("it was stopped too many times to be restarted")
            self._begin()
        assert self._process is not None
        if self._fresh:
            self._fresh = False
            if self.files:
                self._exchange(
                    self._process, {"do": "files", "names": list(self.files)}, list(self.files.values()), 30.0
                )
            for cell in self._cells:
                again = {"do": "execute", "source": cell.source, "draw": False}
                self._exchange(self._process, again, (), self.limits.cell_seconds)
        return self._process

    def _ask(
        self, request: dict[str, Any], buffers: Sequence[Any], seconds: float
    ) -> tuple[dict[str, Any], list[memoryview], bool]:
        if self.allowance is not None:
            seconds = min(seconds, self.allowance.left())
        if seconds <= 0:
            raise NotAnswered("the time for this test cell was up")
        if self._used_up():
            self.close()
            raise SandboxDied("the notebook used up all its time")
        generation, process = self.generation, self._ready_process()
        if self.generation != generation and request["do"] in ON_OBJECTS:
            raise stale()  # its objects are those of a process that has ended by itself since the last question
        reply, reply_buffers, late = self._exchange(process, request, buffers, seconds)
        with self._believing_nothing():
            self._change_classes(reply.get("classes", []))
        return reply, reply_buffers, late

    def _used_up(self) -> bool:
        """Whether the notebook has used up its time. Checks the clock first, because that is already known."""
        total = self.limits.total_seconds
        if self.used <= total or self._process is None:
            return False
        usage = self._process.process.usage()
        return usage is None or usage.processor > total or self.used - sum(usage.waited.values()) > ASLEEP * total

    def usage(self) -> Usage | None:
        """The processor time of this thread, which runs the tests, and of the submission's processes."""
        if self._process is None:
            return None
        theirs = self._process.process.usage()
        return theirs and usage_of_this_thread(asleep=self._process.asked) + theirs

    def quick_usage(self) -> Usage | None:
        """Like `usage`, without running processes that the submission's process has started."""
        theirs = None if self._process is None else self._process.process.quick_usage()
        return theirs and usage_of_this_thread() + theirs

    def _exchange(
        self, process: StudentProcess, request: dict[str, Any], buffers: Sequence[Any], seconds: float
    ) -> Any:
        self._request += 1
        request["id"] = self._request
        self.acts += request["do"] not in READING
        if self._released:
            released, self._released = self._released, []
            request["release"] = [number for number in released if number not in self._held]
        began = time.monotonic()
        try:
            with self._failures_kept():
                return process.exchange(request, buffers, seconds)
        finally:
            self.used += time.monotonic() - began

    def _answer(
        self,
        request: dict[str, Any],
        buffers: Sequence[Any] = (),
        arguments: Sequence[Any] = (),
        parts: Sequence[Any] = (),
    ) -> Any:
        """Ask one question. Returns its value, or raises the exception that student code raised. Threads take turns."""
        with self._asking:
            return self._answer_in_turn(request, buffers, arguments, parts)

    def _answer_in_turn(
        self, request: dict[str, Any], buffers: Sequence[Any], arguments: Sequence[Any], parts: Sequence[Any]
    ) -> Any:
        if self.before_question is not None:
            self.before_question()
        if self.mirror is not None:
            self.mirror.send()
            request["mirror"] = self.mirror.known()
        reply, reply_buffers, late = self._ask(request, buffers, self.limits.query_seconds)
        if self.mirror is not None:
            self.mirror.take(files_in(reply, reply_buffers))
        outputs = reply.get("outputs")
        if isinstance(outputs, list):
            print_again(outputs)
        decoder = self._decoder(reply_buffers, arguments, parts, request["name"] if request["do"] == "lookup" else "")
        if request["do"] != "run":  # our own functions answer with arrays whose shapes our checks look at
            decoder.of_array = from_submission
        with self._believing_nothing():
            self._write_back(reply.get("changed"), decoder, parts)
            error = self._exception(reply["error"], decoder) if "error" in reply else None
            if isinstance(error, (StopIteration, StopAsyncIteration)) and request.get("name") != "next":
                error = errors.that_ends_no_loop(error)
            value = decoder.decode(reply.get("value"))
        if late:
            seconds = self.limits.query_seconds
            raise NotAnswered(f"the submission's code ran for more than {seconds:g} seconds and was interrupted")
        if error is not None:
            raise not_rebuilt(reply["unbuilt"], error) if "unbuilt" in reply else error
        return value

    @contextlib.contextmanager
    def _believing_nothing(self) -> Iterator[None]:
        """Read an answer inside: any error comes from the answer, so it ends the process and becomes SandboxDied."""
        try:
            yield
        except Exception as malformed:
            self.close()
            reason = f"{type(malformed).__name__}: {malformed}"
            raise SandboxDied(f"its process sent an invalid answer ({reason[:200]})") from None

    def _write_back(self, changed: Any, decoder: Decoder, parts: Sequence[Any]) -> None:
        if changed is None:
            return
        if type(changed) is not list or not all(type(entry) is list and len(entry) == 2 for entry in changed):
            raise Malformed("changed arguments are not a list of pairs")
        for part, contents in [(_at(number, parts), decoder.decode(code)) for number, code in changed]:
            put_back(part, contents)

    def _decoder(
        self, buffers: list[memoryview], arguments: Sequence[Any] = (), parts: Sequence[Any] = (), name: str = ""
    ) -> Decoder:
        """A decoder for an answer. `name`: the name in the notebook that was looked up."""
        module = functools.partial(self._module, name)
        others: dict[str, Callable[..., Any]] = {
            "h": self._handle,
            "x": builtin_class,
            "X": self._exception_class,
            "m": module,
        }
        others |= {"g": lambda number: _at(number, arguments), "w": lambda number: _at(number, parts)}
        return Decoder(buffers, others)

    def _handle(self, number: Any, kind: Any, description: Any = None) -> Handle:
        if type(number) is not int or type(kind) is not int:
            raise Malformed("a handle has no number")
        known = self._handles.get(number)
        if description is not None and kind not in self._classes:
            self._classes[kind] = self._handle_class(description)
        elif description is not None:
            self._change_classes([[kind, description.get("special")]])
        if known is not None:
            return known
        class_, base = self._classes[kind]
        handle = make_handle(class_, Reference(self, number, self.generation, base))
        self._handles[number] = handle
        return handle

    def _handle_class(self, description: Any) -> tuple[type[Handle], str | None]:
        if type(description) is not dict or len(self._classes) > CLASSES_LIMIT:
            raise Malformed("a class is not described, or there are too many")
        special, base = names_in(description.get("special")), description.get("base")
        if not isinstance(base, (str, type(None))):
            raise Malformed("a class is not described")
        return make_handle_class(errors.clean_name(description.get("name")), special, base), base

    def _change_classes(self, changes: Any) -> None:
        """Update the classes whose special methods have changed since they were described."""
        if type(changes) is not list or len(changes) > CLASSES_LIMIT:
            raise Malformed("changed classes are not a list, or there are too many")
        for number, special in changes:
            change_handle_class(self._classes[number][0], names_in(special))

    def _apply_known(self, ref: Referring) -> Any:
        return self._answer({"do": "apply", "name": "identity", "args": [["h", self.number_of(ref)]]})

    def _module(self, asked: str, name: Any, handle: Any) -> Any:
        """A module that stands for itself here, or a handle. One that acts on this machine, such as `os`, stands for
        itself only under its own name, so that a test's `account.remove(...)` cannot be `os.remove`.
        """
        found = self._decoder([]).decode(handle)  # first of all, because the class of modules is described only once
        if name in REAL_MODULES and (name not in ACTING_MODULES or name == asked):
            return importlib.import_module(name)
        return found

    def _exception_class(self, number: Any, description: Any) -> type[BaseException]:
        if (
            type(number) is not int
            or type(description) is not list
            or len(description) != 2
            or type(description[1]) is not list
        ):
            raise Malformed("an exception class is not described")
        if number not in self._exceptions:
            if len(self._exceptions) > CLASSES_LIMIT:
                raise Malformed("there are too many exception classes")
            bases = [self._decoder([]).decode(code, depth=5) for code in description[1][:8]]
            good = tuple(base for base in bases if isinstance(base, type) and issubclass(base, BaseException))
            kind = errors.make_class(description[0], good)
            kind.student_reference = Reference(self, number, self.generation, None)  # type: ignore[attr-defined]
            self._exceptions[number] = kind
        return self._exceptions[number]

    def _exception(self, description: Any, decoder: Decoder) -> BaseException:
        """The exception to raise here for one that was raised there."""
        if type(description) is not dict or type(description.get("message")) is not str:
            raise Malformed("an error is not described")
        kind = decoder.decode(description.get("class"))
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise Malformed("an error has no class")
        arguments = decoder.decode(description.get("args"))
        if not issubclass(kind, errors.RemoteError):
            kind = errors.make_class(kind.__name__, (kind,))
        error = errors.make_instance(
            kind, description["message"][:2000], arguments if type(arguments) is tuple else None
        )
        error.student_where = places_in(description.get("where"))  # type: ignore[attr-defined]
        if type(description.get("instance")) is int:
            error.student_reference = Reference(self, description["instance"], self.generation, None)  # type: ignore[attr-defined]
        return error


def _at(number: Any, values: Sequence[Any]) -> Any:
    """One of the values that the judge sent."""
    if type(number) is not int or not 0 <= number < len(values):
        raise Malformed("there is no argument, or part of one, with this number")
    return values[number]
